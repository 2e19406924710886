"""Where things stand on the page: the rulers, the tally and the dots, as numbers for the templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import numbers as num
from calibrant.report.order import MOST_ROWS, limit_of, ordered, told
from calibrant.report.spans import value_label, variable_label
from calibrant.report.wording import VERDICTS, certified_range, range_label

NICE = (0.1, 0.2, 0.3, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 80, 100)
WORST = 4  # groups on the first screen
SHORT = 9  # groups in the short table
COLUMNS = 21  # dots in a row of the tally
MOST_DOTS = 420
ACROSS, DOTS = 20, 200  # of the icon array


@dataclass(frozen=True, slots=True)
class Track:
    """One certified range on an axis; positions are per cent of its length."""

    x: str
    width: str
    limit: str
    over: bool
    verdict: str
    label: str


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
    track: Track
    sorts: dict[str, str]


@dataclass(frozen=True, slots=True)
class Ruler:
    """Rows that share one axis, which ends at `top` points."""

    top: str
    ticks: tuple[tuple[str, str, str], ...]
    limit: str
    limit_at: str
    limit_anchor: str
    rows: tuple[Row, ...]


def ruler(record: AuditRecord, findings: Sequence[Finding]) -> Ruler:
    """Return the ruler of these findings, in the order given."""
    limit = limit_of(record)
    top = axis_top(findings, limit)
    ticks = tuple((place(t, top), f"{t:g}", _anchor(t, top)) for t in _ticks(top))
    return Ruler(
        top=f"{top:g}",
        ticks=ticks,
        limit="" if limit is None else num.limit_points(limit),
        limit_at="" if limit is None else place(limit * 100, top),
        limit_anchor="" if limit is None else _anchor(limit * 100, top, near=0.12),
        rows=tuple(row(f, limit, top) for f in findings),
    )


def axis_top(findings: Sequence[Finding], limit: float | None) -> float:
    """Return where the axis ends, in points: most ranges fit, and every lower end and the limit show."""
    highs = sorted(max(f.lower.interval.low, f.upper.interval.high) * 100 for f in findings)
    lows = [f.lower.interval.low * 100 for f in findings]
    most = highs[max(0, -(-len(highs) * 4 // 5) - 1)]
    least = max(1.15 * max(lows), 1.6 * 100 * (limit or 0.0))
    cap = max(20.0, 2000 * (limit or 0.0), 2 * least)
    return float(next((t for t in NICE if t >= max(min(most, cap), least)), 100))


def _ticks(top: float) -> list[float]:
    step = next(s for s in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 25) if top / s <= 6)
    return [round(i * step, 6) for i in range(int(top / step + 1e-9) + 1)]


def _anchor(points: float, top: float, near: float = 0.0) -> str:
    return "start" if points <= near * top else "end" if points >= (1 - near) * top else "middle"


def place(points: float, top: float) -> str:
    """Return a position on the axis as a percentage."""
    return f"{min(100.0, max(0.0, points / top * 100)):.2f}%"


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
        track=track(finding, limit, top),
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


def track(finding: Finding, limit: float | None, top: float) -> Track:
    """Return the certified range of a finding as a bar on an axis."""
    ends = (finding.lower.interval.low * 100, finding.upper.interval.high * 100)
    start, stop = min(ends), max(ends)
    width = max(min(stop, top) - start, 0.008 * top)
    start = min(start, top - width)
    return Track(
        x=place(start, top),
        width=place(width, top),
        limit="" if limit is None else place(limit * 100, top),
        over=stop > top,
        verdict=finding.verdict,
        label=range_label(finding, limit),
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
    short = Ruler(whole.top, whole.ticks, whole.limit, whole.limit_at, whole.limit_anchor, whole.rows[:SHORT])
    return short, whole


@dataclass(frozen=True, slots=True)
class Dots:
    """Dots on a grid: (class, x, y) each, and the size of the picture."""

    width: int
    height: int
    dots: tuple[tuple[str, float, float], ...]


def tally_dots(record: AuditRecord) -> Dots | None:
    """Return one dot a group, worst first; None where there are too many to see."""
    groups = ordered(record.groups)
    if not 0 < len(groups) <= MOST_DOTS:
        return None
    dots = tuple((f.verdict, 6.0 + 14 * (i % COLUMNS), 6.0 + 14 * (i // COLUMNS)) for i, f in enumerate(groups))
    return Dots(14 * min(len(groups), COLUMNS), 14 * -(-len(groups) // COLUMNS), dots)


@dataclass(frozen=True, slots=True)
class Icons:
    """The people of the worst group as dots: expected, beyond or short of it, and the rest."""

    picture: Dots
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
    picture = Dots(252, round(12.4 * (total // ACROSS)), dots)
    return Icons(picture, d // total, d, expected, apart, happened > expected)
