"""Every sentence about the variables that the error follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.along import Along, Point, named
from calibrant.report.ranking import Ranked, certified, draws, ranked, shown
from calibrant.report.spans import Span, Text, clipped, say
from calibrant.report.wording import DIRECTIONS, cardinal

NAMED = 3  # variables in a sentence
TOO = {"low": "too little", "high": "too much", "unclear": "not shown off"}


def name(variable: str) -> Span:
    """Return the name of a variable in a sentence."""
    return Span(clipped(shown(variable), 40), "name")


def named_list(variables: Sequence[str]) -> Text:
    """Return a few variables as "age, race and two more"."""
    few, more = variables[:NAMED], len(variables) - NAMED
    if more == 1:
        few, more = variables[: NAMED + 1], 0
    out: list[str | Span] = []
    for i, v in enumerate(few):
        last = i == len(few) - 1 and more <= 0
        out += [" and " if last else ", "] if i else []
        out.append(name(v))
    return say(*out, f" and {cardinal(more)} more" if more > 0 else "")


def answer(record: AuditRecord) -> Text:
    """Return the first line of "Which variables does the error follow?"."""
    found = ranked(record)
    yes, no = ([r.variable for r in found if r.found is kind] for kind in (True, False))
    if not yes:
        start = say("Not shown for ", name(no[0])) if len(no) == 1 else say(f"None of the {cardinal(len(no))} is shown")
        return say(*start, ": no error beyond the overall shift was found, which is not proof of none.")
    rest = say(", then ", *named_list(yes[1:])) if len(yes) > 1 else ()
    start = say(name(yes[0]), " first", *rest, ".")
    return say(*start, *(say(" ", *_unshown(no)) if no else ()))


def _unshown(variables: Sequence[str]) -> Text:
    verb = "is" if len(variables) == 1 else "are"
    return say(*named_list(variables), f" {verb} not shown to add anything beyond the overall shift.")


def caption(record: AuditRecord) -> str:
    """Return the caption of the ranking."""
    first = "Ranked by the average gap along the variable once the overall shift is taken out, as estimated (dots)."
    if not certified(record):
        return f"{first} Filled: shown to be there. Hollow: not shown."
    level = num.percent(1 - float(record.settings["alpha"]))
    return (
        f"{first} Bars: certified ranges, all true together at {level}%; where they overlap the order is open. "
        "Filled: shown to be there. Hollow: not shown."
    )


def notes(record: AuditRecord, scale: float) -> tuple[str, ...]:
    """Return what is to be known about the numbers of the ranking."""
    found, n = ranked(record), draws(record)
    looked = f"p-values are adjusted for looking at {cardinal(len(found))} variables." if len(found) > 1 else ""
    star = f"* The smallest value that {num.count(n)} simulations can show." if n and _starred(found, n) else ""
    shift = "With the shift: the same without taking it out. In brackets: the gap there, less the overall shift."
    small = f"Small curves reach from {num.MINUS}{scale:g} to +{scale:g} points; the grey line is no gap."
    bare = any(r.variable not in record.family("variable_curve") for r in found)
    none = "A variable without one is farther down the ranking, or has a level of too few people to show."
    drawn = (small, none if bare else "") if record.family("variable_curve") else ()
    return " ".join(t for t in (looked, star) if t), " ".join(t for t in (shift, *drawn) if t)


def shift_note(record: AuditRecord) -> str:
    """Return what the numbers of the ranking mean, where there is no picture."""
    level = num.percent(1 - float(record.settings["alpha"]))
    ranges = f" Ranges are certified, all together at {level}%." if certified(record) else ""
    return f"Average gap along each variable once the overall shift is taken out; p-values are adjusted.{ranges}"


def _starred(found: Sequence[Ranked], n: int) -> bool:
    return any(r.adjusted <= 1 / (n + 1) for r in found)


@dataclass(frozen=True, slots=True)
class Off:
    """Where the model is shown to be off: the largest gap there, its side, and the place in words."""

    size: float
    side: str
    where: str
    wide: bool = False
    level: bool = True

    def by(self, digits: int) -> str:
        """Return by how much."""
        return f"by {'up to ' if self.wide else ''}{num.nearest(self.size, digits)} points"


def heading(along: Along, digits: int) -> str:
    """Return in a few words what is found along a variable, for the line that opens it."""
    off = sorted(_off(along), key=lambda o: -o.size)
    if along_unclear(along) or not off:
        return "not shown to be off anywhere"
    first = off[0]
    more = f"; {cardinal(len(off) - 1)} more" if len(off) > 1 else ""
    at = "for" if first.level else "at"
    return f"{TOO[first.side]} {at} {clipped(first.where, 40)}, {first.by(digits)}{more}"


def along_unclear(along: Along) -> bool:
    """Tell whether the test of the whole curve found nothing."""
    return along.p_value > float(str(along.settings["alpha"]))


def _off(along: Along) -> list[Off]:
    """Return where the model is shown to be off, along the axis and then by level."""
    out = []
    if along.axis is not None:
        written = along.axis.written
        for run in along.runs:
            size = max(abs(p.gap) for p in along.line if p.x is not None and run.low <= p.x <= run.high)
            low, high = written(run.low), written(run.high)
            out.append(Off(size, run.side, low if low == high else f"{low} to {high}", low != high, level=False))
    return out + [Off(abs(p.gap), p.side, named(p)) for p in along.levels if p.side != "unclear"]


def finding(along: Along, digits: int) -> Text:
    """Return what the figure shows: each stretch where the band excludes zero, with its largest gap."""
    if along_unclear(along):
        return say("Nowhere along ", name(along.variable), " is the model shown to be off. ")
    off = _off(along)
    if not off:
        whole = " departs from zero as a whole, but at no single value far enough to be shown off there. "
        return say("The error along ", name(along.variable), whole)
    out: list[str | Span] = ["The model says "]
    for side in ("low", "high"):
        told = [o for o in off if o.side == side]
        if told:
            first = len(out) == 1
            out += ["" if first else ", and ", TOO[side]]
            out += [" at ", name(along.variable), " "] if first and along.axis is not None else [" for "]
            out.append(_several(told, digits))
    everywhere = along.axis is None and len(off) == len(along.levels)
    return say(*out, ". " if everywhere else "; elsewhere it is not shown to be off. ")


def _several(told: Sequence[Off], digits: int) -> str:
    each = [f"{clipped(o.where, 40)} ({o.by(digits)})" for o in told[:4]]
    if len(told) > 4:
        return f"{', '.join(each)} and {cardinal(len(told) - 4)} more"
    return " and ".join([", ".join(each[:-1]), each[-1]] if len(each) > 1 else each)


def further(along: Along, digits: int) -> str:
    """Return the largest gap with its range, what is on one side, and what was left out."""
    return " ".join(t for t in (_worst(along, digits), _one_side(along), _masked(along)) if t)


def _worst(along: Along, digits: int) -> str:
    s = along.settings
    if s.get("worst_gap") is None or s.get("worst_low") is None:
        return ""
    low, high = float(str(s["worst_low"])), float(str(s["worst_high"]))
    at = s.get("worst_at")
    number = along.axis is not None and at is not None
    where = along.axis.written(float(str(at))) if number and along.axis is not None else _level_of(along)
    gap = num.gap(float(str(s["worst_gap"])), digits)
    start = f"The largest gap is estimated as {gap} points, at {clipped(where, 40)}"
    if low <= 0.0:
        return f"{start}; allowing for having looked everywhere, the largest is at most {num.upper_bound(high)}."
    span = f"{num.lower_bound(low)} to {num.upper_bound(high)}"
    return f"{start}; allowing for having looked everywhere, the largest is {span}."


def _level_of(along: Along) -> str:
    label, at = str(along.settings.get("worst_label")), along.settings.get("worst_at")
    found = (p for p in along.levels if p.label == label or (at is not None and p.x == at))
    return next((named(p) for p in found), shown(label))


def _one_side(along: Along) -> str:
    side = {"over": "too much", "under": "too little"}.get(str(along.settings.get("consistent")))
    everywhere = "at every value shown here" if along.axis is not None else "for every level shown here"
    return f"As estimated, the model says {side} {everywhere}." if side else ""


def _masked(along: Along) -> str:
    if not along.masked:
        return "Drawn from the 1st to the 99th percentile." if along.axis is not None else ""
    if along.axis is None:
        levels = "One level is" if along.masked == 1 else f"{cardinal(along.masked).capitalize()} levels are"
        return f"{levels} left out: too few people, or too few expected cases or non-cases."
    n = len(along.points) + along.masked
    return (
        f"Drawn from the 1st to the 99th percentile; {num.count(along.masked)} of {num.count(n)} points are left out: "
        "too few people near them, or too few expected cases or non-cases."
    )


def heads(top: float) -> tuple[tuple[str, str, str], ...]:
    """Return the heads of the table of levels: two lines each, and how they are set."""
    return (
        ("Level", "", ""),
        ("Share of", "people", "r"),
        ("Model says,", "in 100", "r"),
        ("Happened,", "in 100", "r"),
        ("Gap,", "points", "r"),
        ("Gap and its range,", f"{num.MINUS}{top:g} to +{top:g} points", "c"),
        ("Range,", "points", "r"),
        ("The model", "says", ""),
    )


def levels_caption(along: Along, most: int, top: float, times: str) -> str:
    """Return the caption of the table of levels."""
    first = "People without a place on the axis." if along.axis else f"The ranges of all levels hold together, {times}."
    cut = any(max(-p.low, p.high) * 100 > top for p in along.levels[:most])
    beyond = " A range that reaches the edge of the picture goes on beyond it." if cut else ""
    more = len(along.levels) - most
    rest = f" The {num.count(more)} levels not in this table are in the JSON of this audit." if more > 0 else ""
    return first + beyond + rest


def reading(along: Along) -> str:
    """Return how the whole figure was tested."""
    told = num.p_value(along.p_value, draws=along.draws)
    what = "the whole curve" if along.axis is not None else "all levels together"
    return f"Test of {what}: {told}. Gaps include the overall shift of everyone."


def readout(variable: str) -> tuple[str, ...]:
    """Return the sentence of a point of the curve with places for its numbers, for each of the three sides."""
    who = f"\u2068{clipped(shown(variable), 40)}\u2069"
    numbers = "the model says {1} in 100, {2} happened; gap {3} points (band {4})"
    return (who, *(f" {{0}}: {numbers}, {DIRECTIONS[side]}." for side in ("low", "high", "unclear")))


def side_number(point: Point) -> int:
    """Return which of the three sentences tells of a point."""
    return ("low", "high", "unclear").index(point.side)
