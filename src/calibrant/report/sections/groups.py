"""The section about named groups: the worst of them as people, and all of them as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from calibrant.audit.record import AuditRecord, Check, Finding
from calibrant.report import numbers as num
from calibrant.report import places, svg
from calibrant.report.commands import groupings
from calibrant.report.document import (
    MARKDOWN,
    NOWHERE,
    PAGE,
    WHOLE,
    Beside,
    Cell,
    Column,
    Details,
    Entry,
    Node,
    Paragraph,
    Row,
    Table,
)
from calibrant.report.findings import MOST_ROWS, RANK, limit_of, ordered, told, with_verdict
from calibrant.report.outline import Asked, Declared
from calibrant.report.sections.reference import folded
from calibrant.report.spans import (
    Span,
    Text,
    clipped,
    code,
    given,
    label,
    lines,
    say,
    strong,
    value_label,
    variable_label,
)
from calibrant.report.wording import (
    VERDICTS,
    certified_range,
    error_at_most,
    groups_answer,
    no_groups,
    people,
    range_label,
    together,
    unshown_reason,
)

SHORT = 9  # groups in the short table
# As audit/rounding.py tells them
FIVES = "Numbers of people are multiples of five, up or down by chance; “under”: fewer than five people."
ACROSS, DOTS = 20, 200  # of the picture of people
MISSED = ", an expected case that did not happen; empty, no case."
GAP = (
    "The gap is what happened minus what the model says, so errors in both directions cancel; the average error does "
    "not cancel and can be larger."
)


def groups(record: AuditRecord) -> Iterator[Node]:
    """Return the picture of the worst group and the table of groups."""
    yield Paragraph(groups_answer(record), "answer", PAGE)
    if not record.groups:
        yield Paragraph(no_groups(record), "panel")
        return
    yield from icons(record)
    whole, total = table(record), len(record.groups)
    if total > SHORT:
        first = f"The nine groups with the largest certified error. All {num.count(total)} ranges hold together"
        shown = tuple(replace(r, id="") for r in whole.rows if "page" in r.where)[:SHORT]
        columns = (*whole.columns[:-1], replace(whole.columns[-1], where=NOWHERE))
        caption = f"{first}, {together(record)}."
        yield Table(columns, shown, caption, "forest sort short", where=PAGE)
    yield Paragraph(say(GAP), "note", PAGE)
    if total > SHORT:
        which = (
            f"the first {num.count(MOST_ROWS)} of {num.count(total)}"
            if total > MOST_ROWS
            else f"all {num.count(total)}"
        )
        need = ", and the rows that would decide each" if limit_of(record) is not None else ""
        yield Details(f"Show {which} groups{need}", (whole,), id="groups-all")
    else:
        yield replace(whole, id="groups-all")
    if cut_short(record):
        yield Paragraph(say(cut_short(record)), where=MARKDOWN)
    for text in notes(record):
        yield Paragraph(text, "note")


def table(record: AuditRecord) -> Table:
    """Return all groups, the worst first; everyone is the first row where there is no ruler."""
    limit, held = limit_of(record), ordered(record.groups)[:MOST_ROWS]
    top, judged = places.ruler_top(held, limit), limit is not None
    axis = f"Average error, 0 to {top:g}\N{NO-BREAK SPACE}points"
    if limit is not None:
        axis += f"; dashed: limit {num.limit_points(limit)}"
    columns = (
        Column(say("Group"), sorts=True),
        Column(say("People"), "r n", True),
        Column(lines("Model says,", "in 100"), "r hide", True),
        Column(lines("Happened,", "in 100"), "r hide", True),
        Column(lines("Gap,", "points"), "r hide", True),
        Column(say(axis), "c", True, where=PAGE),
        Column(say("Points"), "r iv", True, "Certified range, points"),
        Column(say("Verdict"), "vd", True, where=WHOLE if judged else NOWHERE),
        Column(lines("Rows that", "would decide"), "r need", True, where=WHOLE if judged else NOWHERE),
    )
    rows = [replace(_row(record.everyone, limit, top), id="", where=MARKDOWN)]
    rows += [_row(f, limit, top) for f in held]
    return Table(columns, tuple(rows), _caption(record), "forest sort long")


def _row(f: Finding, limit: float | None, top: float) -> Row:
    low, high = f.lower.interval.low, f.upper.interval.high
    predicted, observed = f.expected / f.rows, f.cases / f.rows
    track = places.track(low, high, top, f.verdict, range_label(f, limit), limit)
    told_in = f.rows if f.variables else 0  # everyone is told exactly
    name = Cell(say("Everyone"))
    if f.variables:
        value, variable = value_label(f), variable_label(f)
        name = Cell(say(given(value), Span(variable, "small")), f"{variable}: {value}", brief=say(given(label(f))))
    need = "–" if f.rows_needed is None else num.rows_needed(f.rows_needed)
    cells = (
        name,
        Cell(say(num.count(f.rows)), repr(f.rows)),
        Cell(say(num.told_rate(predicted, told_in)), f"{predicted:.6g}"),
        Cell(say(num.told_rate(observed, told_in)), f"{observed:.6g}"),
        Cell(say(num.gap(f.gap.value)), f"{f.gap.value:.6g}"),
        Cell(sort=f"{low:.6g}", picture=svg.track(track)),
        Cell(say(certified_range(f, limit)), f"{high:.6g}"),
        Cell(say(VERDICTS[f.verdict]), str(RANK[f.verdict]), icon=f.verdict),
        Cell(say(need), str(f.rows_needed or 0)),
    )
    return Row(cells, f.id)


def _caption(record: AuditRecord) -> str:
    total = len(record.groups)
    if total == 1:
        return "The one group that was given."
    if total <= SHORT:
        return f"All groups; their {num.count(total)} ranges hold together, {together(record)}. {FIVES}"
    mask = num.count(int(record.settings.get("mask", 20)))
    return (
        f"{cut_short(record) or 'All groups.'} A group under {mask} people is never shown; it is pooled with the next "
        f"smallest, so that it cannot be found by subtraction. {FIVES}"
    )


def cut_short(record: AuditRecord) -> str:
    """Return that the long table of groups is cut, and where the rest is; empty where it is whole."""
    total = len(record.groups)
    if total <= MOST_ROWS:
        return ""
    return (
        f"The first {num.count(MOST_ROWS)} of {num.count(total)} groups, the worst first. "
        "The others are in the JSON of this audit, which the last section describes."
    )


def notes(record: AuditRecord) -> tuple[Text, ...]:
    """Return what the table leaves out, a sentence each: folded values, and columns with small groups only."""
    seen = {tuple(k for k, _ in g.variables) for g in record.groups}
    unseen = [names for names in groupings(record) if names not in seen]
    small = [say("No group of ", code(" and ".join(names)), " can be shown: all are too small.") for names in unseen]
    return (*(say(*text, ".") for text in folded(record)), *small)


# ---- the worst group as people ----


def icons(record: AuditRecord) -> Iterator[Beside]:
    """Return the people of the worst broken group as dots; nothing if none is broken or no dot would differ.

    Nor where fewer than five are told as none: they would be no dot.
    """
    worst = [f for f in told(record) if f.variables]
    d = num.denominator(told(record))
    total = min(d, DOTS)
    expected, happened = num.of_every(worst[0], total) if worst else (0, 0)
    if expected == happened or not (worst[0].expected and worst[0].cases):
        return
    same, apart, beyond = min(expected, happened), abs(happened - expected), happened > expected
    kinds = ["ic1"] * same + ["ic2"] * apart + ["ic0"] * (total - same - apart)
    dots = tuple((k, 6 + 12.6 * (i % ACROSS), 6 + 12.4 * (i // ACROSS)) for i, k in enumerate(kinds))
    each = d // total
    who = "one person" if each == 1 else f"{each} people"
    rest = "more for those beyond that" if beyond else "of them did not happen"
    words = f"{total} dots, {who} each: {expected} for the people the model expects, {apart} {rest}"
    picture = svg.dots(svg.Dots(252, round(12.4 * (total // ACROSS)), dots), words, 4.3)
    name = Span(clipped(label(worst[0])), "name")
    start = say(strong(f"Of every {num.count(d)} people in "), name, ", the model ", *people(record, worst[0]))
    who = "five people" if each == 5 else who
    yield Beside((*start, *say(f". Each dot is {who}: "), *_legend(record, beyond)), picture)


def _legend(record: AuditRecord, beyond: bool) -> Sequence[Span]:
    """Return what the three kinds of dots stand for."""
    outcome, square = record.settings.get("outcome"), Span("square", "square")
    if outcome is None and beyond:
        return say("filled, an expected case; ", square, ", a case beyond that; empty, no case.")
    if outcome is None:
        return say("filled, an expected case that happened; ", square, MISSED)
    if beyond:
        return say("filled, expected; ", square, ", ", given(outcome), " beyond that; empty, not ", given(outcome), ".")
    return say("filled, expected, and was; ", square, ", expected, and was not; empty, not ", given(outcome), ".")


# ---- what the section adds to others ----

METHOD = (
    "The same two bounds on each group’s rows, the {alpha}% shared over {groups} groups, so that all hold together."
)


def methods(record: AuditRecord) -> Iterator[Entry]:
    """Return how the groups were certified."""
    alpha = num.percent(float(record.settings["alpha"]))
    shared = METHOD.format(alpha=alpha, groups=num.count(len(record.groups)))
    yield Entry("Groups", say(shared if record.groups else unshown_reason(record) or "None were given."))


def _check(_: Check, record: AuditRecord) -> Asked:
    found = [f"{len(with_verdict(record, v))} {v}" for v in ("met", "broken", "undecided")]
    total = num.count(len(record.groups))
    if limit_of(record) is None:
        found = [f"{total} certified ranges"]
    meaning = f"all {total} ranges hold together, {together(record)}" if record.groups else "for whom is it off?"
    return Asked(f"Every group: {error_at_most(record)}", ", ".join(found), meaning)


def _verdict(record: AuditRecord) -> str:
    return ordered(record.groups)[0].verdict if record.groups and limit_of(record) is not None else ""


DECLARED = (
    Declared(
        id="groups",
        order=30,
        nav="For whom?",
        heading="For whom are they off?",
        nodes=groups,
        verdict=_verdict,
        methods=methods,
        checks={"error-groups": _check},
    ),
)
