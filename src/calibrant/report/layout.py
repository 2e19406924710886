"""The groups as the page shows them: rows of a ruler or a table, and dots; numbers and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import numbers as num
from calibrant.report import places, svg
from calibrant.report.order import MOST_ROWS, limit_of, ordered, told
from calibrant.report.spans import value_label, variable_label
from calibrant.report.wording import VERDICTS, certified_range, range_label

WORST = 4  # groups on the first screen
SHORT = 9  # groups in the short table
COLUMNS = 21  # dots in a row of the tally
MOST_DOTS = 420
ACROSS, DOTS = 20, 200  # of the icon array


@dataclass(frozen=True, slots=True)
class Row:
    """One population in a ruler or a table, ready to print; `sorts` are the keys the script sorts by."""

    anchor: str
    value: str
    variable: str
    people: str
    predicted: str
    observed: str
    gap: str
    range: str
    verdict: str
    word: str
    need: str
    track: places.Track
    sorts: dict[str, str]


@dataclass(frozen=True, slots=True)
class Ruler:
    """Rows that share one axis, which ends at `top` points."""

    top: str
    axis: svg.Svg
    limit: str
    limit_mark: svg.Svg
    rows: tuple[Row, ...]


def ruler(record: AuditRecord, findings: Sequence[Finding]) -> Ruler:
    """Return the ruler of these findings, in the order given."""
    limit = limit_of(record)
    top = places.ruler_top(findings, limit)
    told = "" if limit is None else num.limit_points(limit)
    return Ruler(
        top=f"{top:g}",
        axis=svg.ruler_axis(top, "average error, points (1 point = 1 person in 100)"),
        limit=told,
        limit_mark=svg.Svg() if limit is None else svg.ruler_limit(limit, top, f"limit {told}"),
        rows=tuple(row(f, limit, top) for f in findings),
    )


def row(finding: Finding, limit: float | None, top: float) -> Row:
    """Return one population, ready to print."""
    low, high = finding.lower.interval.low, finding.upper.interval.high
    predicted, observed = finding.expected / finding.rows, finding.cases / finding.rows
    return Row(
        anchor=finding.id,
        value=value_label(finding) if finding.variables else "Everyone",
        variable=variable_label(finding),
        people=num.count(finding.rows),
        predicted=num.nearest(predicted),
        observed=num.nearest(observed),
        gap=num.gap(finding.gap),
        range=certified_range(finding, limit),
        verdict=finding.verdict,
        word=VERDICTS[finding.verdict],
        need="–" if finding.rows_needed is None else num.rows_needed(finding.rows_needed),
        track=places.track(low, high, top, finding.verdict, range_label(finding, limit), limit),
        sorts={
            "people": repr(finding.rows),
            "predicted": f"{predicted:.6g}",
            "observed": f"{observed:.6g}",
            "gap": f"{finding.gap:.6g}",
            "low": f"{low:.6g}",
            "high": f"{high:.6g}",
            "verdict": str(("broken", "undecided", "met", "none").index(finding.verdict)),
            "need": str(finding.rows_needed or 0),
        },
    )


def summary_ruler(record: AuditRecord) -> Ruler:
    """Return everyone and the four groups with the largest certified error."""
    return ruler(record, [record.everyone, *ordered(record.groups)[:WORST]])


def forest(record: AuditRecord) -> tuple[Ruler, Ruler | None]:
    """Return the table of groups: all if they are few; else the first nine, and the first few hundred."""
    groups = ordered(record.groups)[:MOST_ROWS]
    whole = ruler(record, groups)
    if len(groups) <= SHORT:
        return whole, None
    return replace(whole, rows=whole.rows[:SHORT]), whole


def tally_dots(record: AuditRecord) -> svg.Dots | None:
    """Return one dot a group, worst first; None where there are too many to see."""
    groups = ordered(record.groups)
    if not 0 < len(groups) <= MOST_DOTS:
        return None
    dots = tuple((f.verdict, 6.0 + 14 * (i % COLUMNS), 6.0 + 14 * (i // COLUMNS)) for i, f in enumerate(groups))
    return svg.Dots(14 * min(len(groups), COLUMNS), 14 * -(-len(groups) // COLUMNS), dots)


@dataclass(frozen=True, slots=True)
class Icons:
    """The people of the worst group as dots: expected, beyond or short of it, and the rest."""

    picture: svg.Dots
    each: int
    people: int
    expected: int
    apart: int
    beyond: bool


def icons(record: AuditRecord) -> Icons | None:
    """Return the dots of the worst broken group; None if none is broken or no dot would differ."""
    worst = [f for f in told(record) if f.variables]
    if not worst:
        return None
    d = num.denominator(told(record))
    total = min(d, DOTS)
    expected, happened = num.of_every(worst[0], total)
    if expected == happened:
        return None
    same, apart = min(expected, happened), abs(happened - expected)
    kinds = ["ic1"] * same + ["ic2"] * apart + ["ic0"] * (total - same - apart)
    dots = tuple((k, 6 + 12.6 * (i % ACROSS), 6 + 12.4 * (i // ACROSS)) for i, k in enumerate(kinds))
    picture = svg.Dots(252, round(12.4 * (total // ACROSS)), dots)
    return Icons(picture, d // total, d, expected, apart, happened > expected)
