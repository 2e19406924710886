"""What the error varies with: up to three small figures whose titles are their findings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.brief import sparks
from calibrant.report.by_variable import ByVariable, by_variable_of, named
from calibrant.report.document import Follow, Follows
from calibrant.report.findings import UNREPORTED, needed, subgroups_over
from calibrant.report.places import digits_of
from calibrant.report.spans import Span, Text, clipped, plain, say, shown, strong
from calibrant.report.wording.terms import variable_names
from calibrant.sanitize import sanitize

MOST = 3  # figures
LONG = 32  # characters of a level or a variable in a title
LONGER = 90  # of the rule of a subgroup
FINE = re.compile(r"\d+\.\d{3,}")  # an end of a range, written more finely than anybody reads it
SIDES = {"low": "Underpredicts", "high": "Overpredicts", "unclear": "Off"}


@dataclass(frozen=True, slots=True)
class Ranked:
    """A variable, what is certified along it beyond the overall gap, and whether any is shown."""

    variable: str
    low: float | None
    high: float | None
    error_shown: bool
    worst: str
    gap: float


def ranked(record: AuditRecord) -> list[Ranked]:
    """The variables, the one the error varies with most first; pairs are left out."""
    c, alpha = record.curve("ranking").columns, float(record.settings["alpha"])
    lines = [dict(zip(c, row, strict=True)) for row in zip(*c.values(), strict=True)]
    return [
        Ranked(
            str(line["variable"]),
            line["beyond_low"],
            line["beyond_high"],
            float(line["p_adjusted"]) <= alpha,
            str(line["worst"]) if line["worst_rows"] is not None else "",
            float(line["worst_beyond_gap"]) if line["worst_rows"] is not None else 0.0,
        )
        for line in lines
        if line["kind"] != "pair"
    ]


def follows(record: AuditRecord) -> Follows | None:
    """The figures; None where no variables were ranked. What shows nothing is said once.

    A column that tells the score is left to the notice about it: error along it is the score's own.
    """
    again = record.data.get("repeats_score") or ()
    results = [r for r in ranked(record) if r.variable not in again]
    if not results:
        return None
    curves = {v: c for v, c in record.family("variable_curve").items() if c.columns.get("gap")}
    yes, no = [r for r in results if r.error_shown], [r for r in results if not r.error_shown]
    room = MOST - bool(no)
    drawn = {v: by_variable_of(v, c) for v, c in curves.items() if v in [r.variable for r in yes[:room]]}
    made = [_follow(r, drawn.get(r.variable), first=i == 0) for i, r in enumerate(yes[:room])]
    more = yes[room:]
    rest = say("Also varies with ", *variable_names([r.variable for r in more]), ".") if more else ()
    return Follows((*made, *([_nothing(record, no, bool(yes))] if no else [])), rest if yes else _subgroup(record))


def _subgroup(record: AuditRecord) -> Text:
    """The subgroup that is farthest off, where no variable by itself shows error."""
    for o in subgroups_over(record)[:1]:
        who = Span(clipped(sanitize(o.rule), LONGER), "name", "#subgroups") if o.rule else Span("not named")
        return say(
            "A subgroup is off, though: ", who, f". {SIDES[o.side]} by at least {num.lower_bound(o.least)} points."
        )
    return ()


def _follow(r: Ranked, by_variable: ByVariable | None, *, first: bool) -> Follow:
    """The figure of a variable; the first says what its certified range is about."""
    title = _title(r, by_variable)
    picture = sparks.flat(plain(title)) if by_variable is None else sparks.figure(by_variable, plain(title))
    range_ = ""
    if r.low is not None and r.high is not None:
        range_ = f"{num.lower_bound(r.low)} to {num.upper_bound(r.high)}"
        range_ = f"certified {range_} beyond the overall gap" if first else range_
    name = Span(clipped(shown(r.variable), LONG), "given", "" if by_variable is None else "#variables")
    return Follow(title, picture, say(name, f" · {range_}") if range_ else say(name))


def _nothing(record: AuditRecord, no: Sequence[Ranked], after: bool) -> Follow:
    """Return what is said once of all variables along which nothing is found."""
    names = variable_names([r.variable for r in no])
    title = (*say(strong("No variation with ")), *names, *say(" beyond the overall gap"))
    if not after and len(no) > MOST:
        title = say(strong(f"No variation with {num.count(len(no))} variables"), " beyond the overall gap")
    highs = [r.high for r in no if r.high is not None]
    if not after and highs and max(highs) >= UNREPORTED:
        title = say(strong(f"Too few {needed(record)} to say"), " what the error varies with")
        return Follow(title, sparks.flat(plain(title)), ())
    most = f"largest possible: {num.upper_bound(max(highs))}" if highs else ""
    return Follow(title, sparks.flat(plain(title)), say(most) if most else ())


def _title(r: Ranked, by_variable: ByVariable | None) -> Text:
    """Return what is found along a variable: where the probabilities are too low or too high, and the farthest."""
    reported = () if by_variable is None else _stretches(by_variable) or _level(by_variable)
    if reported:
        return reported
    name = _name(r.variable)
    if not r.worst:
        return say(strong("Error varies with "), name, " beyond the overall gap")
    where = say(strong("Farthest off for "), name, " ", _name(FINE.sub(lambda m: f"{float(m[0]):.3g}", r.worst)))
    return say(*where, f": {num.gap(r.gap)} points beyond the overall gap")


def _name(text: object) -> Span:
    """The name of a variable or a level in a title."""
    return Span(clipped(shown(text), LONG), "name")


def _stretches(by_variable: ByVariable) -> Text:
    """The stretch that holds the farthest place shown to be off, and the other side where there is one."""
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
    """The level that is shown to be farthest off."""
    off = [p for p in by_variable.levels if p.side != "unclear"]
    if not off or by_variable.p_value > float(str(by_variable.settings["alpha"])):
        return ()
    worst, digits = max(off, key=lambda p: abs(p.gap)), digits_of(by_variable.across)
    other = max((p for p in off if p.side != worst.side), key=lambda p: abs(p.gap), default=None)
    turn = () if other is None else (f"; {SIDES[other.side].lower()} for ", _name(named(other)))
    start = strong(f"{SIDES[worst.side]} for ")
    return say(start, _name(named(worst)), f": {num.gap(worst.gap, digits)} points", *turn)
