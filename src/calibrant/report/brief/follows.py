"""What the error varies with: up to three small figures whose titles are their findings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.by_variable import ByVariable, Point, by_variable_of, named
from calibrant.report.document import Follow, Follows
from calibrant.report.findings import UNREPORTED, Ranked, at_equal_scores, needed, ranked, subgroups_over
from calibrant.report.places import digits_of, percent, place
from calibrant.report.spans import Span, Text, clipped, plain, say, shown, strong
from calibrant.report.svg import SIZE, Svg, area, path, runs_of, tag
from calibrant.report.wording.terms import variable_names
from calibrant.sanitize import sanitize

POINTS = 48  # of a line, that a small picture shows
LEVELS = 12  # of a category, in order of their gaps
HEAD, FOOT = 18, 17  # pixels above and below the plot, for labels
TALL = 52  # pixels of the plot
Range = tuple[float, float]


def before_after(now: Range, after: Range, top: float, limit: float | None, status: str, label: str) -> Svg:
    """A range as it is, in grey, and as it is after a repair, in the colour and shape of its verdict."""

    def bar(of: Range, kind: str, tall: float, corner: float) -> Svg:
        low, high = (min(max(v * 100, 0.0), top) for v in of)
        rect = tag(
            "rect", cls=kind, x=place(low, top), width=percent((high - low) / top), y=-tall / 2, height=tall, rx=corner
        )
        return tag("svg", rect, y="50%", overflow="visible")

    beyond = tag("path", cls=f"ivl {status}", d="M1 -7l8 7l-8 7z")
    at = None if limit is None else place(min(limit * 100, top), top)
    parts = [
        tag("line", cls="row0", x2="100%", y1="50%", y2="50%"),
        bar(now, "was", 14, 2),
        bar(after, f"ivl {status}", 8, 1 if status == "over" else 4),
        tag("svg", beyond, x="100%", y="50%", overflow="visible") if after[1] * 100 > top else "",
        tag("line", cls="lim", x1=at, x2=at, y2="100%") if at else "",
    ]
    return tag("svg", *parts, cls="t", role="img", aria_label=label)


def figure(by_variable: ByVariable, label: str) -> Svg:
    """The gap along a variable: a band and a line with its ends and its farthest place, or a dot a level."""
    return (
        _line(by_variable, label) if by_variable.axis is not None and by_variable.line else _levels(by_variable, label)
    )


def flat(label: str) -> Svg:
    line = tag("line", cls="zero", x2="100%", y1=HEAD, y2=HEAD)
    return tag("svg", line, cls="follow-fig", height=2 * HEAD, role="img", aria_label=label)


def _line(by_variable: ByVariable, label: str) -> Svg:
    axis, line = by_variable.axis, by_variable.line
    if axis is None:
        return flat(label)
    every = max(1, -(-len(line) // POINTS))
    peak = max(line, key=lambda p: abs(p.gap))
    kept = [p for i, p in enumerate(line) if i % every == 0 or i == len(line) - 1 or p is peak]
    top, low = _ends(kept)
    shapes = [tag("path", cls="zero", d=f"M0 {_y(0.0, top, low)}h{SIZE}")]
    for run in runs_of(kept):
        x = [round(axis.share(float(p.x or 0.0)) * SIZE) for p in run]
        band, curve = (
            [(i, _y(v, top, low)) for i, v in zip(x, vs, strict=True)]
            for vs in ([p.low for p in run], [p.gap for p in run])
        )
        over = [(i, _y(p.high, top, low)) for i, p in zip(x, run, strict=True)]
        shapes.append(tag("path", cls="band", d=area(band, over)))
        shapes.append(tag("path", cls="curve" if len(run) > 1 else "lone", d=path(curve)))
    at = axis.share(float(peak.x or 0.0))
    texts = [
        _text(axis.written(axis.low), 0.0, "foot"),
        _text(axis.written(axis.high), 1.0, "foot"),
        _text(f"{num.gap(peak.gap)} at {axis.written(float(peak.x or 0.0))}", at, "head"),
    ]
    return _picture(shapes, texts, label)


def _levels(by_variable: ByVariable, label: str) -> Svg:
    ranked = sorted(by_variable.levels, key=lambda p: -abs(p.gap))[:LEVELS]
    some = sorted(ranked, key=lambda p: -p.gap)
    if not some:
        return flat(label)
    top, low = _ends(some, dots=True)
    worst, n = ranked[0], len(some)
    shapes = [tag("path", cls="zero", d=f"M0 {_y(0.0, top, low)}h{SIZE}")]
    for i, p in enumerate(some):
        x = round((i + 0.5) / n * SIZE)
        shapes.append(tag("path", cls="whisker", d=f"M{x} {_y(p.high, top, low)}V{_y(p.low, top, low)}"))
        shapes.append(tag("path", cls="lone", d=f"M{x} {_y(p.gap, top, low)}h0"))
    at = (some.index(worst) + 0.5) / n
    return _picture(shapes, [_text(f"{clipped(named(worst), 22)} {num.gap(worst.gap)}", at, "head")], label)


def _ends(points: Sequence[Point], dots: bool = False) -> tuple[float, float]:
    """Return both ends of the axis of gaps: zero, the line and its band are inside, a wide band is cut."""
    most = max(abs(p.gap) for p in points) or 0.01
    reach = 1.0 if dots else 1.6
    high = max(0.15 * most, *(min(p.high, reach * most + max(p.gap, 0.0)) for p in points))
    low = min(-0.15 * most, *(max(p.low, -reach * most + min(p.gap, 0.0)) for p in points))
    return high, low


def _y(v: float, top: float, low: float) -> int:
    return round(SIZE * (top - min(max(v, low), top)) / (top - low))


def _text(words: str, at: float, where: str) -> Svg:
    """A label above or under the plot, inside the picture's edges."""
    anchor = "start" if at < 0.3 else "end" if at > 0.7 else "middle"
    return tag(
        "text", escape(words), x=percent(at), y=13 if where == "head" else HEAD + TALL + FOOT - 3, text_anchor=anchor
    )


def _picture(shapes: Sequence[str], texts: Sequence[str], label: str) -> Svg:
    view = {"viewBox": f"0 0 {SIZE} {SIZE}", "preserveAspectRatio": "none"}
    plot = tag("svg", *shapes, y=HEAD, width="100%", height=TALL, overflow="visible", **view)
    return tag("svg", plot, *texts, cls="follow-fig", height=HEAD + TALL + FOOT, role="img", aria_label=label)


MOST = 3  # figures
LONG = 32  # characters of a level or a variable in a title
LONGER = 90  # of the rule of a subgroup
FINE = re.compile(r"\d+\.\d{3,}")  # an end of a range, written more finely than anybody reads it
SIDES = {"low": "Underpredicts", "high": "Overpredicts", "unclear": "Off"}


def follows(record: AuditRecord) -> Follows | None:
    """The figures; None where no variables were ranked. What shows nothing is said once.

    A column that tells the score is left to the notice about it: error along it is the score's own.
    """
    again = record.data.get("repeats_score") or ()
    results = [r for r in ranked(record) if r.variable not in again]
    if not results:
        return None
    equal = at_equal_scores(record)  # nothing is said to be without variation that a test among equal scores shows
    curves = {v: c for v, c in record.family("variable_curve").items() if c.columns.get("gap")}
    yes, no = [r for r in results if r.error_shown], [r for r in results if not (r.error_shown or r.variable in equal)]
    room = MOST - bool(no)
    drawn = {v: by_variable_of(v, c) for v, c in curves.items() if v in [r.variable for r in yes[:room]]}
    made = [_follow(r, drawn.get(r.variable), first=i == 0) for i, r in enumerate(yes[:room])]
    if not made and not no:
        return None
    more = yes[room:]
    rest = say("Also varies with ", *variable_names([r.variable for r in more]), ".") if more else ()
    return Follows((*made, *([_nothing(record, no, bool(yes))] if no else [])), rest if yes else _subgroup(record))


def _subgroup(record: AuditRecord) -> Text:
    for o in subgroups_over(record)[:1]:
        who = Span(clipped(sanitize(o.rule), LONGER), "name", "#subgroups") if o.rule else Span("not named")
        return say(
            "A subgroup is off, though: ", who, f". {SIDES[o.side]} by at least {num.lower_bound(o.least)} points."
        )
    return ()


def _follow(r: Ranked, by_variable: ByVariable | None, *, first: bool) -> Follow:
    """The figure of a variable; the first says what its certified range is about."""
    title = _title(r, by_variable)
    picture = flat(plain(title)) if by_variable is None else figure(by_variable, plain(title))
    range_ = ""
    if r.low is not None and r.high is not None:
        range_ = f"{num.lower_bound(r.low)} to {num.upper_bound(r.high)}"
        range_ = f"certified {range_} beyond the overall gap" if first else range_
    name = Span(clipped(shown(r.variable), LONG), "given", "" if by_variable is None else "#variables")
    return Follow(title, picture, say(name, f" · {range_}") if range_ else say(name))


def _nothing(record: AuditRecord, no: Sequence[Ranked], after: bool) -> Follow:
    names = variable_names([r.variable for r in no])
    title = (*say(strong("No variation with ")), *names, *say(" beyond the overall gap"))
    if not after and len(no) > MOST:
        title = say(strong(f"No variation with {num.count(len(no))} variables"), " beyond the overall gap")
    highs = [r.high for r in no if r.high is not None]
    if not after and highs and max(highs) >= UNREPORTED:
        title = say(strong(f"Too few {needed(record)} to say"), " what the error varies with")
        return Follow(title, flat(plain(title)), ())
    most = f"largest possible: {num.upper_bound(max(highs))}" if highs else ""
    return Follow(title, flat(plain(title)), say(most) if most else ())


def _title(r: Ranked, by_variable: ByVariable | None) -> Text:
    reported = () if by_variable is None else _stretches(by_variable) or _level(by_variable)
    if reported:
        return reported
    name = _name(r.variable)
    if not r.worst:
        return say(strong("Error varies with "), name, " beyond the overall gap")
    where = say(strong("Farthest off for "), name, " ", _name(FINE.sub(lambda m: f"{float(m[0]):.3g}", r.worst)))
    return say(*where, f": {num.gap(r.gap)} points beyond the overall gap")


def _name(text: object) -> Span:
    return Span(clipped(shown(text), LONG), "name")


def _stretches(by_variable: ByVariable) -> Text:
    if (
        by_variable.axis is None
        or not by_variable.runs
        or by_variable.p_value > float(str(by_variable.settings["alpha"]))
    ):
        return ()
    written, digits = by_variable.axis.written, digits_of(by_variable.across)
    inside = {
        run: max(
            (p for p in by_variable.line if p.x is not None and run.low <= p.x <= run.high), key=lambda p: abs(p.gap)
        )
        for run in by_variable.runs
    }
    first = max(by_variable.runs, key=lambda run: abs(inside[run].gap))
    peak = inside[first]
    low, high = written(first.low), written(first.high)
    at = f"{low} to {high}" if low != high else low
    start = say(strong(f"{SIDES[first.side]} for "), _name(by_variable.variable), strong(f" {at}"))
    most = f", most at {written(float(peak.x or 0.0))}" if low != high else ""
    other = next(
        (run for run in sorted(by_variable.runs, key=lambda r: -abs(inside[r].gap)) if run.side != first.side), None
    )
    turn = ""
    if other is not None:
        turn = f"; {SIDES[other.side].lower()} at {written(float(inside[other].x or 0.0))}"
    return say(*start, f"{most}: {num.gap(peak.gap, digits)} points{turn}")


def _level(by_variable: ByVariable) -> Text:
    off = [p for p in by_variable.levels if p.side != "unclear"]
    if not off or by_variable.p_value > float(str(by_variable.settings["alpha"])):
        return ()
    worst, digits = max(off, key=lambda p: abs(p.gap)), digits_of(by_variable.across)
    other = max((p for p in off if p.side != worst.side), key=lambda p: abs(p.gap), default=None)
    turn = () if other is None else (f"; {SIDES[other.side].lower()} for ", _name(named(other)))
    start = strong(f"{SIDES[worst.side]} for ")
    return say(start, _name(named(worst)), f": {num.gap(worst.gap, digits)} points", *turn)
