"""Several horizons as one family: an audit by each, which share alpha, and a record of one with what all of them say.

Verdicts, error that is shown and the exit status are the worst of all horizons; ranges, checks and curves are of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from calibrant.audit.judging import Judging
from calibrant.audit.record import AuditRecord, Verdict, joint_error, name_of
from calibrant.data.reading import Reading
from calibrant.results import Curve

CURVE = "horizons"
COLUMNS = ("horizon", "score", "people", "rows", "predicted", "observed", "gap", "low", "high", "verdict")
ORDER: tuple[Verdict, ...] = ("over", "undecided", "within", "not_checked")  # from the worst
EXITS = (1, 3, 0)  # from the worst


def by_horizon(options: Reading, judging: Judging, audit: Callable[[Reading, Judging], AuditRecord]) -> AuditRecord:
    """Audit by each horizon at an equal share of alpha, and record the worst: by verdict, exit status, error shown.

    Of several that are as bad it is the last. Everything that any of them says holds with the shares of all: which one
    is recorded costs nothing.
    """
    each = options.by_horizon()
    share = judging.alpha / len(each)
    plan = replace(judging, alpha=math.floor(share * 1e4) / 1e4 or share)  # as it is written on the page
    records = _audited(each, plan, audit)
    worst = min(reversed(records), key=_badness)
    shares = tuple(share for record in records for share in record.shares)
    lines = [line for record in records for line in _lines(record)]
    columns = dict(zip(COLUMNS, map(tuple, zip(*lines, strict=True)), strict=True))
    scores = [one.score for one in each]
    settings = {
        "alpha": judging.alpha,
        "horizons": tuple(r.data["horizon"]["horizon"] for r in records),
        "scores": tuple(dict.fromkeys(scores)) if len(set(scores)) == 1 else tuple(scores),
        "exit_statuses": tuple(r.exit_status for r in records),
        "ways": tuple(r.data["horizon"]["way"] for r in records),
        "unknown": tuple(r.data["horizon"]["unknown"] for r in records),
        "judged": tuple(r.everyone.by for r in records),
        "judge": judging.judge,
    }
    table = Curve(method="audit.horizons", columns=columns, settings=settings)
    return replace(
        worst,
        verdicts={part: min((r.verdicts[part] for r in records), key=ORDER.index) for part in worst.verdicts},
        error_shown={part: any(r.error_shown[part] for r in records) for part in worst.error_shown},
        shares=shares,
        joint_error=joint_error(shares),
        curves={**worst.curves, CURVE: table},
    )


def _audited(
    each: Sequence[Reading], plan: Judging, audit: Callable[[Reading, Judging], AuditRecord]
) -> list[AuditRecord]:
    """The audit by each horizon; where rows were lost before one, all judge gaps, for a family judges one thing.

    The latest is first: it loses rows if any does, so that none is audited again, unless rows entered too late for it.
    """
    gaps, records = replace(plan, judge="gap"), list[AuditRecord]()
    for one in reversed(each):
        records.insert(0, audit(one, gaps if plan.judge == "auto" and _any_lost(records) else plan))
    if plan.judge != "auto" or not _any_lost(records):
        return records
    return [r if r.settings["judge"] == "gap" else audit(one, gaps) for r, one in zip(records, each, strict=True)]


def _any_lost(records: Sequence[AuditRecord]) -> bool:
    """Whether rows were lost before one of the horizons."""
    return any(r.data["horizon"]["unknown"] for r in records)


def _badness(record: AuditRecord) -> tuple[int, int, int]:
    """By verdict, by exit status, and by how many parts show error; the worst is the least."""
    shown = sum(record.error_shown.values()) + sum(f.error_shown for f in (record.everyone, *record.groups))
    return ORDER.index(record.verdict), EXITS.index(record.exit_status), -shown


def _lines(record: AuditRecord) -> Iterator[tuple[object, ...]]:
    """Everyone and each group by one horizon."""
    for one in (record.everyone, *record.groups):
        ends = one.gap.guaranteed
        yield (
            record.data["horizon"]["horizon"],
            record.data["score"],
            name_of(one),
            one.rows,
            one.expected / one.rows,
            min(max(one.events / one.rows, 0.0), 1.0) if "estimate" not in one.gap.settings else None,
            one.gap.value if "estimate" not in one.gap.settings else None,
            -1.0 if ends is None else ends.low,
            1.0 if ends is None else ends.high,
            one.verdict,
        )
