"""What the error varies with: up to three small figures whose titles are their findings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.along import Along, along_of, named
from calibrant.report.brief import sparks
from calibrant.report.document import Follow, Follows
from calibrant.report.findings import UNTOLD, needed, pockets_off
from calibrant.report.places import digits_of
from calibrant.report.spans import Span, Text, clipped, plain, say, shown, strong
from calibrant.report.wording.terms import variable_names
from calibrant.visible import visible

MOST = 3  # figures
LONG = 32  # characters of a level or a variable in a title
LONGER = 90  # of the rule of a pocket
FINE = re.compile(r"\d+\.\d{3,}")  # an end of a range, written more finely than anybody reads it
SIDES = {"low": "Underpredicts", "high": "Overpredicts", "unclear": "Off"}


@dataclass(frozen=True, slots=True)
class Ranked:
    """A variable, what is certified along it beyond the overall gap, and whether any is shown."""

    variable: str
    low: float | None
    high: float | None
    found: bool
    worst: str
    gap: float


def ranked(record: AuditRecord) -> list[Ranked]:
    """Return the variables, the one the error varies with most first; pairs are left out."""
    c, alpha = record.curve("ranking").columns, float(record.settings["alpha"])
    lines = [dict(zip(c, row, strict=True)) for row in zip(*c.values(), strict=True)]
    return [
        Ranked(
            str(line["variable"]),
            line["beyond_low"],
            line["beyond_high"],
            float(line["p_adjusted"]) <= alpha,
            str(line["worst"]) if line["worst_rows"] is not None else "",
            float(line["worst_beyond_shift"]) if line["worst_rows"] is not None else 0.0,
        )
        for line in lines
        if line["kind"] != "pair"
    ]


def follows(record: AuditRecord) -> Follows | None:
    """Return the figures; None where no variables were ranked. What shows nothing is said once.

    A column that tells the score is left to the notice about it: error along it is the score's own.
    """
    again = record.data.get("repeats_score") or ()
    found = [r for r in ranked(record) if r.variable not in again]
    if not found:
        return None
    curves = {v: c for v, c in record.family("variable_curve").items() if c.columns.get("gap")}
    yes, no = [r for r in found if r.found], [r for r in found if not r.found]
    room = MOST - bool(no)
    drawn = {v: along_of(v, c) for v, c in curves.items() if v in [r.variable for r in yes[:room]]}
    made = [_follow(r, drawn.get(r.variable), first=i == 0) for i, r in enumerate(yes[:room])]
    more = yes[room:]
    rest = say("Also varies with ", *variable_names([r.variable for r in more]), ".") if more else ()
    return Follows((*made, *([_nothing(record, no, bool(yes))] if no else [])), rest if yes else _pocket(record))


def _pocket(record: AuditRecord) -> Text:
    """Return the subgroup that is farthest off, where no variable by itself shows error."""
    for o in pockets_off(record)[:1]:
        who = Span(clipped(visible(o.rule), LONGER), "name", "#pockets") if o.rule else Span("not named")
        return say(
            "A subgroup is off, though: ", who, f". {SIDES[o.side]} by at least {num.lower_bound(o.least)} points."
        )
    return ()


def _follow(r: Ranked, along: Along | None, *, first: bool) -> Follow:
    """Return the figure of a variable; the first says what its certified range is about."""
    title = _title(r, along)
    picture = sparks.flat(plain(title)) if along is None else sparks.figure(along, plain(title))
    range_ = ""
    if r.low is not None and r.high is not None:
        range_ = f"{num.lower_bound(r.low)} to {num.upper_bound(r.high)}"
        range_ = f"certified {range_} beyond the overall gap" if first else range_
    name = Span(clipped(shown(r.variable), LONG), "given", "" if along is None else "#variables")
    return Follow(title, picture, say(name, f" · {range_}") if range_ else say(name))


def _nothing(record: AuditRecord, no: Sequence[Ranked], after: bool) -> Follow:
    """Return what is said once of all variables along which nothing is found."""
    names = variable_names([r.variable for r in no])
    title = (*say(strong("No variation with ")), *names, *say(" beyond the overall gap"))
    if not after and len(no) > MOST:
        title = say(strong(f"No variation with {num.count(len(no))} variables"), " beyond the overall gap")
    highs = [r.high for r in no if r.high is not None]
    if not after and highs and max(highs) >= UNTOLD:
        title = say(strong(f"Too few {needed(record)} to say"), " what the error varies with")
        return Follow(title, sparks.flat(plain(title)), ())
    most = f"largest possible: {num.upper_bound(max(highs))}" if highs else ""
    return Follow(title, sparks.flat(plain(title)), say(most) if most else ())


def _title(r: Ranked, along: Along | None) -> Text:
    """Return what is found along a variable: where the probabilities are too low or too high, and the farthest."""
    told = () if along is None else _stretches(along) or _level(along)
    if told:
        return told
    name = _name(r.variable)
    if not r.worst:
        return say(strong("Error varies with "), name, " beyond the overall gap")
    where = say(strong("Farthest off for "), name, " ", _name(FINE.sub(lambda m: f"{float(m[0]):.3g}", r.worst)))
    return say(*where, f": {num.gap(r.gap)} points beyond the overall gap")


def _name(text: object) -> Span:
    """Return the name of a variable or a level in a title."""
    return Span(clipped(shown(text), LONG), "name")


def _stretches(along: Along) -> Text:
    """Return the stretch that holds the farthest place shown to be off, and the other side where there is one."""
    if along.axis is None or not along.runs or along.p_value > float(str(along.settings["alpha"])):
        return ()
    written, digits = along.axis.written, digits_of(along.across)
    inside = {
        run: max((p for p in along.line if p.x is not None and run.low <= p.x <= run.high), key=lambda p: abs(p.gap))
        for run in along.runs
    }
    first = max(along.runs, key=lambda run: abs(inside[run].gap))
    peak = inside[first]
    low, high = written(first.low), written(first.high)
    at = f"{low} to {high}" if low != high else low
    start = say(strong(f"{SIDES[first.side]} for "), _name(along.variable), strong(f" {at}"))
    most = f", most at {written(float(peak.x or 0.0))}" if low != high else ""
    other = next((run for run in sorted(along.runs, key=lambda r: -abs(inside[r].gap)) if run.side != first.side), None)
    turn = ""
    if other is not None:
        turn = f"; {SIDES[other.side].lower()} at {written(float(inside[other].x or 0.0))}"
    return say(*start, f"{most}: {num.gap(peak.gap, digits)} points{turn}")


def _level(along: Along) -> Text:
    """Return the level that is shown to be farthest off."""
    off = [p for p in along.levels if p.side != "unclear"]
    if not off or along.p_value > float(str(along.settings["alpha"])):
        return ()
    worst, digits = max(off, key=lambda p: abs(p.gap)), digits_of(along.across)
    other = max((p for p in off if p.side != worst.side), key=lambda p: abs(p.gap), default=None)
    turn = () if other is None else (f"; {SIDES[other.side].lower()} for ", _name(named(other)))
    start = strong(f"{SIDES[worst.side]} for ")
    return say(start, _name(named(worst)), f": {num.gap(worst.gap, digits)} points", *turn)
