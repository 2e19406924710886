"""Several horizons as one family: an audit by each, which share alpha, and a record of the worst with all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from calibrant.audit.judging import Judging
from calibrant.audit.record import AuditRecord, Finding, joint_error, name_of
from calibrant.data.reading import Reading
from calibrant.results import Curve

CURVE = "horizons"
COLUMNS = ("horizon", "score", "people", "rows", "predicted", "observed", "gap", "low", "high", "verdict")
ORDER = ("over", "undecided", "within", "not_checked")  # from the worst


def by_horizon(options: Reading, judging: Judging, audit: Callable[[Reading, Judging], AuditRecord]) -> AuditRecord:
    """Audit by each horizon at an equal share of alpha, and record the one with the worst verdict, the last of several.

    Everything that any of them says holds with the shares of all: which one is recorded costs nothing.
    """
    each = options.by_horizon()
    share = judging.alpha / len(each)
    plan = replace(judging, alpha=math.floor(share * 1e4) / 1e4 or share)  # as it is written on the page
    records = [audit(one, plan) for one in each]
    worst = min(reversed(records), key=lambda r: ORDER.index(r.verdict))
    shares = tuple(share for record in records for share in record.shares)
    lines = [line for record in records for line in _lines(record)]
    columns = dict(zip(COLUMNS, map(tuple, zip(*lines, strict=True)), strict=True))
    scores = [one.score for one in each]
    settings = {
        "alpha": judging.alpha,
        "horizons": tuple(r.data["horizon"]["horizon"] for r in records),
        "scores": tuple(dict.fromkeys(scores)) if len(set(scores)) == 1 else tuple(scores),
    }
    table = Curve(method="audit.horizons", columns=columns, settings=settings)
    return replace(worst, shares=shares, joint_error=joint_error(shares), curves={**worst.curves, CURVE: table})


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
            _observed(one),
            one.gap.value,
            -1.0 if ends is None else ends.low,
            1.0 if ends is None else ends.high,
            one.verdict,
        )


def _observed(one: Finding) -> float:
    return min(max(one.events / one.rows, 0.0), 1.0)
