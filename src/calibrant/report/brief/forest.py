"""The forest plot of the first screen: estimates, what is guaranteed, and states, the most evident first; as SVG."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import document as doc
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report import places
from calibrant.report.brief.cards import by_error, estimate_of, least_error, shown
from calibrant.report.places import THINNEST, anchor, percent, place, signed
from calibrant.report.spans import clipped, label
from calibrant.report.svg import Svg, tag
from calibrant.report.wording.parts import state_of
from calibrant.report.wording.terms import VERDICTS, gap_guaranteed
from calibrant.sanitize import sanitize

ROWS, FOLDED, SUBGROUPS = 12, 8, 2  # lines that are seen, those opened on demand, and of subgroups
NAMED = 44  # characters of a name
Span = tuple[float, float]
SPOTS = {  # the shape of an estimate: a disc, a diamond, a triangle, an open ring
    "within": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
    "over": "M0 -7l7 7l-7 7l-7 -7z",
    "error_shown": "M0 -6.5l6.5 11.5h-13z",
    "undecided": "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
}
ARROWS = ("M-1 -6l-7 6l7 6z", "0"), ("M1 -6l7 6l-7 6z", "100%")  # beyond the left and the right edge


@dataclass(frozen=True, slots=True)
class Scale:
    """The axis of a forest plot, in points: its ends, which hold zero, and its labels."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, points: float) -> str:
        return place(points, self.high, self.low)


def estimated(  # one line of a forest plot
    scale: Scale,
    value: float | None,
    interval: tuple[float, float] | None,
    guaranteed: tuple[float, float] | None,
    limit: float | None,
    status: str,
) -> Svg:
    """Draw an estimate as a shape, its interval as a line and what is guaranteed as a bar; the limit as a band.

    What goes on beyond the axis ends at its edge, and an estimate beyond it is an arrow there.
    """

    def inside(points: float) -> float:
        return max(scale.low, min(scale.high, points))

    parts = []
    if limit is not None:
        left, right = (inside(v * 100) for v in (-limit, limit))
        across = percent((right - left) / (scale.high - scale.low))
        parts.append(tag("rect", cls="okzone", x=scale.at(left), width=across, height="100%"))
    parts.append(tag("line", cls="ax", x1=scale.at(0), x2=scale.at(0), y2="100%"))
    if guaranteed is not None:
        low, high = (inside(v * 100) for v in guaranteed)
        wide = max(high - low, THINNEST * (scale.high - scale.low))
        bar = tag(
            "rect",
            cls=f"sure {status}",
            x=scale.at(min(low, scale.high - wide)),
            width=percent(wide / (scale.high - scale.low)),
            y=-6,
            height=12,
            rx=3,
        )
        parts.append(tag("svg", bar, y="50%", overflow="visible"))
        off = guaranteed[0] * 100 < scale.low, guaranteed[1] * 100 > scale.high
        parts += [
            tag("svg", tag("path", cls=f"sure {status}", d=d), x=x, y="50%", overflow="visible")
            for (d, x), beyond in zip(ARROWS, off, strict=True)
            if beyond
        ]
    if interval is not None:
        low, high = (inside(v * 100) for v in interval)
        parts.append(tag("line", cls=f"span {status}", x1=scale.at(low), x2=scale.at(high), y1="50%", y2="50%"))
    if value is not None:
        points = value * 100
        arrow, _ = ARROWS[points > scale.high]
        d = SPOTS.get(status, SPOTS["within"]) if inside(points) == points else arrow
        shape = tag("path", cls=f"spot {status}", d=d)
        parts.append(tag("svg", shape, x=scale.at(inside(points)), y="50%", overflow="visible"))
    return tag("svg", *parts, cls="t", aria_hidden="true")


def head(scale: Scale, words: str) -> Svg:
    """Write the directions over a forest plot on both sides of zero, and between them the words of the limit."""
    zero = (0 - scale.low) / (scale.high - scale.low)
    near = min(max(zero, 0.3), 0.7)  # words of either direction need room
    parts = [
        tag("text", "← overpredicts", x="0", y=28),
        tag("text", "underpredicts →", x="100%", y=28, text_anchor="end"),
    ]
    if words:
        parts.append(tag("text", escape(words), cls="t-lim", x=percent(near), y=12, text_anchor="middle"))
    return tag("svg", *parts, cls="t", aria_hidden="true")


def foot(scale: Scale) -> Svg:
    parts = []
    for t in scale.ticks:
        side = anchor(t - scale.low, scale.high - scale.low)
        parts.append(tag("line", cls="ax", x1=scale.at(t), x2=scale.at(t), y2=4))
        parts.append(tag("text", signed(t), x=scale.at(t), y=17, text_anchor=side))
    return tag("svg", *parts, cls="t", aria_hidden="true")


def forest(record: AuditRecord) -> doc.Forest:
    """Everyone, then subgroups that are shown to be off and groups, sorted by evidence, on one axis of gaps."""
    named = [*record.groups, *record.classes]
    groups, off = facts.by_evidence(named), [o for o in facts.unlisted_known(record) if o.rule][:SUBGROUPS]
    kept = groups[: ROWS - 1 - len(off)]
    spans = [*(_span(record, f) for f in (record.everyone, *kept)), *((o.low, o.high) for o in off)]
    values = [*(f.gap.value for f in (record.everyone, *kept) if shown(record, f)), *(o.gap for o in off), 0.0]
    limit = facts.limit_of(record)
    low, high, step = places.forest_ends(spans, values, limit)
    scale = Scale(low, high, tuple(round(low + step * i, 6) for i in range(round((high - low) / step) + 1)))
    over = [f for f in kept if facts.is_pressing(f)]
    lines = [
        _line(record, record.everyone, scale),
        *(_line(record, f, scale) for f in over),
        *(_subgroup(record, o, scale) for o in off),
        *(_line(record, f, scale) for f in kept[len(over) :]),
    ]
    rest = groups[len(kept) :]
    folded = tuple(_line(record, f, scale) for f in rest[:FOLDED])
    relative = record.settings.get("limit_relative")
    words = "" if limit is None else f"limit ±{num.limit_points(limit)}"
    words = words if relative is None else f"limit ±{num.percent(relative)}% of the mean score"
    level = num.percent(facts.ordinary_level(record) or 0.95)
    what = f"Gap (observed minus predicted, percentage points): estimate, {level}% interval, guaranteed range and state"
    return doc.Forest(
        what,
        "observed minus predicted",
        tuple(lines),
        folded,
        len(rest) - len(folded),
        head(scale, words),
        foot(scale),
    )


def _span(record: AuditRecord, finding: Finding) -> Span:
    """What of a line must fit the axis: its estimate and its interval; where there are none, what is guaranteed."""
    if not shown(record, finding):
        return finding.gap_ends
    of, value = finding.gap.interval, finding.gap.value
    return (value, value) if of is None else (min(of.low, value), max(of.high, value))


def _line(record: AuditRecord, f: Finding, scale: Scale) -> doc.Line:
    (status, word), known = state_of(f), shown(record, f)
    ends = f.gap.interval if known else None
    interval = None if ends is None else (ends.low, ends.high)
    value = f.gap.value if known else None
    sure = None if f.gap.guaranteed is None else f.gap_ends
    picture = estimated(scale, value, interval, sure, f.limit, status)
    rows = num.count(f.rows) if f.variables else f"{num.count(f.rows)} {facts.noun(record)}"
    of_class = any(f is c for c in record.classes)  # by identity: a thousand classes are slow to compare
    what = "events" if not record.classes else "came true" if of_class else "right"
    of = f"{rows} · {_events(record, f)} {what}" if known else rows
    error = f" ·\N{NO-BREAK SPACE}{_error(f)}" if f.withheld is None and by_error(f) else ""
    who = clipped(label(f), NAMED) if f.variables else "Most probable class" if record.classes else "Everyone"
    href = f"#{f.id}" if f.variables and len(record.groups) <= facts.MOST_ROWS else ""
    href = "#classes" if of_class else href
    sure_text = gap_guaranteed(record, f) if sure else ""
    return doc.Line(who, num.count(f.rows), of, estimate_of(record, f) + error, sure_text, status, word, picture, href)


def _events(record: AuditRecord, f: Finding) -> str:
    """How many events; of counts to publish 0 is fewer than five."""
    few = bool(f.variables) and facts.fives(record, f.rows) > 0 and not f.events
    about = "about " if facts.lost(record) else ""
    return f"under {num.FIVE}" if few else f"{about}{num.count(f.events)}"


def _error(f: Finding) -> str:
    """The end of the certified calibration error that its verdict is about."""
    low, high = num.bounds(*f.error_ends, f.limit)
    if f.two_scores:
        return f"raw error ≥ {low}, rounded ≤ {high}"
    nbsp = "\N{NO-BREAK SPACE}"  # the line breaks before it
    if f.error_shown and f.verdict != "over" and f.by == "error":
        return f"error{nbsp}{low}{nbsp}to{nbsp}{high}"
    if f.verdict != "over" and not f.error_shown:
        return f"error{nbsp}≤{nbsp}{high}"
    least = least_error(f)
    over = f.verdict == "over" and f.limit is not None and float(least) <= 100.0 * f.limit  # rounded down to the limit
    return f"error{nbsp}{'>' if over else '≥'}{nbsp}{least}"


def _subgroup(record: AuditRecord, o: facts.Off, scale: Scale) -> doc.Line:
    limit, over = facts.limit_of(record), {one.rule for one in facts.subgroups_over(record)}
    status = "over" if o.rule in over and limit is not None else "error_shown"
    word = VERDICTS["over"] if status == "over" else "Error shown"
    low, high = num.signed_range(o.low, o.high, facts.decimals(record))
    picture = estimated(scale, o.gap, None, (o.low, o.high), limit, status)
    return doc.Line(
        clipped(sanitize(o.rule), NAMED),
        num.count(o.rows),
        f"{num.count(o.rows)} · unlisted subgroup",
        num.gap(o.gap, facts.decimals(record)),
        f"{low} to {high}",
        status,
        word,
        picture,
        "#subgroups",
    )
