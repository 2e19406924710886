"""The section about variables: one line for each, from the ranking, the tests and the search, and its curve."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.report import document as doc
from calibrant.report import numbers as num
from calibrant.report import places, svg
from calibrant.report.by_variable import ByVariable, by_variable_of
from calibrant.report.findings import Ranked, carries_curve, draws_of, noun, ran, ranked
from calibrant.report.outline import Declared, OutlineCheck
from calibrant.report.places import digits_of
from calibrant.report.sections.curves import Map, figure, map_figure, maps, unclear, worst_off
from calibrant.report.sections.hidden import LOCAL, SCORE, SCORE_NAME, Evidence, carried, note
from calibrant.report.sections.overall import score
from calibrant.report.sections.search import UNNEEDED, needs, needs_note, share_lost
from calibrant.report.spans import Span, Text, clipped, code, literal, say, shown
from calibrant.report.wording.clusters import chance, independent
from calibrant.report.wording.inferred import inference, wrong
from calibrant.report.wording.terms import UNPROVEN, cardinal, unmade, variable_name, variable_names
from calibrant.sanitize import sanitize

SHORT = 9  # variables that the page shows at first
LONG = 50  # variables in the whole table; the others are in the JSON only
SCORES = ("the score", SCORE)  # how the search calls the score among its variables


def variables(record: AuditRecord) -> Iterator[doc.Node]:
    result, rows = ranked(record), reported(record)
    if result:
        yield doc.Paragraph(answer(record), "answer")
    else:
        why = unmade(record, "variables", "No variables were ranked in this audit.")
        yield doc.Paragraph(why, "quiet", doc.WHOLE if wrong(record) else doc.PAGE)
    if rows:
        whole = table(record, rows)
        read = doc.Details(
            "How to read this table", tuple(doc.Paragraph(say(n)) for n in notes(record, rows)), where=doc.PAGE
        )
        shown_off = sum(v.shown for v in rows)
        if shown_off:
            yield replace(whole, folded=min(shown_off, SHORT))
            yield read
        else:
            yield doc.Details(f"What was examined: {num.count(len(rows))} variables", (whole, read), id="variables-all")
    if result:
        yield doc.Paragraph(say(gap_note(record)), where=doc.MARKDOWN)
    drawn = tuple(d for v in rows for d in v.figure(record))
    if drawn:
        variables = "variable" if len(drawn) == 1 else "variables"
        yield doc.Details(f"Show the curves of {cardinal(len(drawn))} {variables}", drawn, id="curves", where=doc.PAGE)
    yield from inference(record)


# ---- one line for each variable ----


@dataclass(frozen=True, slots=True)
class ReportedVariable:
    """All that is known of one variable: by the ranking, the test of each attribute, the search, and as a curve."""

    name: str
    ranked: Ranked | None
    evidence: Evidence | None
    needed: Mapping[str, Any] | None
    by_variable: ByVariable | None  # its curve, or its map where there is no curve
    drawn: Map | None  # its map, where there is no curve

    @property
    def shown(self) -> bool:
        """Whether any of the three shows error along it."""
        by = (
            self.ranked is not None and self.ranked.error_shown,
            self.evidence is not None and self.evidence.error_shown,
        )
        return any(by) or (self.needed is not None and float(self.needed["low"]) > 0)

    @property
    def anchor(self) -> str:
        """Where its curve is on the page; empty where there is none."""
        if self.by_variable is None:
            return ""
        return "fig-reliability" if self.name == SCORE_NAME else self.by_variable.anchor

    def figure(self, record: AuditRecord) -> tuple[doc.Details, ...]:
        if self.by_variable is None or self.name == SCORE_NAME:
            return ()
        return (figure(record, self.by_variable) if self.drawn is None else map_figure(record, self.drawn),)


def reported(record: AuditRecord) -> tuple[ReportedVariable, ...]:
    """Every variable: in the order of the ranking, then what only the tests looked at."""
    by, drawn = {r.variable: r for r in ranked(record)}, curves(record)
    carries = {SCORE_NAME if e.variable == SCORE else e.variable: e for e in carried(record)}
    needed = {SCORE_NAME if n["variable"] in SCORES else str(n["variable"]): n for n in needs(record)}
    mapped = {m.by_variable.variable: m for m in maps(record)}
    names = dict.fromkeys((*by, *carries, *needed, *drawn, *mapped))
    if carries_curve(record):
        drawn[SCORE_NAME] = score(record)
    out = []
    for name in names:
        only = None if name in drawn else mapped.get(name)
        by_variable = drawn.get(name, only.by_variable if only is not None else None)
        out.append(ReportedVariable(name, by.get(name), carries.get(name), needed.get(name), by_variable, only))
    return tuple(sorted(out, key=lambda v: not v.shown))


# ---- the ranking, as the record holds it ----


def draws(record: AuditRecord) -> int | None:
    """How many simulated outcomes of everyone the p-values rest on; None where they rest on the normal law."""
    s = record.curve("ranking").settings
    return int(s["draws"]) if "draws" in s and str(s.get("null", "")).startswith("exact") else None


def certified(record: AuditRecord) -> bool:
    return any(r.high is not None for r in ranked(record))


def curves(record: AuditRecord) -> dict[str, ByVariable]:
    order = {r.variable: i for i, r in enumerate(ranked(record))}
    kept = {v: c for v, c in record.family("variable_curve").items() if c.columns.get("gap")}
    return {v: by_variable_of(v, kept[v]) for v in sorted(kept, key=lambda v: (order.get(v, len(order)), v))}


# ---- the table ----


def table(record: AuditRecord, rows: Sequence[ReportedVariable]) -> doc.Table:
    scale, n = spark_scale([v.by_variable for v in rows if v.by_variable is not None]), draws(record)
    check = ran(record, LOCAL)
    simulated = draws_of(check.outcome) if check is not None and check.outcome is not None else None

    def where(known: Iterable[object], shown: doc.Where = doc.WHOLE) -> doc.Where:
        return shown if any(k is not None for k in known) else doc.NOWHERE

    ranks, tests = where(v.ranked for v in rows), where(v.evidence for v in rows)
    columns = (
        doc.Column(say("Variable")),
        doc.Column(say("Gap by value"), "sp", where=where((v.by_variable for v in rows), doc.PAGE)),
        doc.Column(say("Beyond the overall gap (certified)"), "r", "Beyond the overall gap, points (range)", ranks),
        doc.Column(say("With the overall gap, points"), "r", where=doc.MARKDOWN & ranks),
        doc.Column(say("Adjusted p"), "r p", where=ranks),
        doc.Column(
            say("Farthest off at (gap)"), "at", where=where((v.by_variable or v.ranked for v in rows), doc.PAGE)
        ),
        doc.Column(say("Among equal scores, p"), "r", where=tests),
        doc.Column(say("The search needs it"), "r", where=where(v.needed for v in rows)),
    )
    lost = float(record.curve("importance").settings.get("statistic") or 1.0)
    made = tuple(_row(v, (scale, n, simulated), lost) for v in rows[:LONG])
    return doc.Table(columns, made, caption(record, rows), "cards follow", id="variables-reported")


def _row(v: ReportedVariable, known: tuple[float, int | None, int | None], lost: float) -> doc.Row:
    scale, n, simulated = known
    r, at = v.ranked, farthest(v)
    beyond = whole = p = "–"
    if r is not None:
        beyond = certified_or(r.beyond, r.low, r.high)
        if r.low is not None and r.high is not None:  # else no proof covers the data
            beyond = f"{num.nearest(r.beyond)} ({beyond})"
        whole, p = certified_or(r.whole, r.whole_low, r.whole_high), floored(r.adjusted, n)
    dim = "none" if r is None else "" if r.error_shown else "quiet"
    equal = "–" if v.evidence is None else floored(v.evidence.adjusted, simulated)
    search, unneeded = "–", False
    if v.needed is not None:
        search, unneeded = share_lost(v.needed, lost), float(v.needed["low"]) <= 0
    return doc.row(
        say(Span(shown(v.name), "given", f"#{v.anchor}" if v.anchor else "")),
        doc.Cell(picture="" if v.by_variable is None else svg.spark(v.by_variable, scale)),
        doc.Cell(say(beyond), style=dim),
        whole,
        doc.Cell(say(p), style=dim),
        doc.Cell(at or say("–"), style="" if at else "none"),
        doc.Cell(say(equal), style="" if v.evidence is not None and v.evidence.error_shown else "quiet"),
        doc.Cell(say(UNNEEDED if unneeded else search), style="quiet" if unneeded else "", brief=say(search)),
    )


def farthest(v: ReportedVariable) -> Text:
    """Where the model is farthest off along a variable, and by how much; empty where it is not shown to be."""
    if v.by_variable is None:
        at = place(v.ranked) if v.ranked is not None and v.ranked.error_shown else ""
        return say(literal(at)) if at else ()
    top = None if unclear(v.by_variable) else worst_off(v.by_variable)
    if top is None:
        return ()
    gap = num.gap(top.size if top.side == "low" else -top.size, digits_of(v.by_variable.across))
    return say(literal(clipped(top.where, 40)), f" ({gap})")


def certified_or(estimate: float, low: float | None, high: float | None) -> str:
    """A certified range in points, or the estimate where there is none."""
    if low is None or high is None:
        return f"about {num.nearest(estimate)}"
    return num.span(low, high)


def place(r: Ranked) -> str:
    """The values that add most, as they are read; a number of four digits is not set apart, it may be a year."""
    text = sanitize(r.worst)
    if r.kind == "number":
        text = re.sub(r"(?<![\d,.])(\d),(\d{3})(?![\d,])", r"\1\2", text)
    return text if text.strip() or not r.worst else "(blank)"


def floored(p: float, n: int | None) -> str:
    """Write a p-value for a table: with a star at the floor of the simulation."""
    reported = num.p_value(p, draws=n)
    return reported if "," not in reported else f"{reported.partition(',')[0]}*"


def spark_scale(drawn: Sequence[ByVariable]) -> float:
    """Where the small curves end, in points: the largest gap that is shown fits in all of them."""
    shown_off = [abs(p.gap) * 100 for a in drawn for p in a.points if p.side != "unclear"]
    return places.end_of(max(1.1 * max(shown_off, default=0.0), 1.0), places.NICE)


# ---- in words ----


def answer(record: AuditRecord) -> Text:
    """The first line of "Which variables does the error vary with?"."""
    result = ranked(record)
    yes, no = ([r.variable for r in result if r.error_shown is kind] for kind in (True, False))
    if not yes:
        which = say("Not shown for ", variable_name(no[0]))
        if len(no) > 1:
            which = say(f"None of the {cardinal(len(no))} is shown")
        none = say(*which, f": no error beyond the overall gap was found, {UNPROVEN}.")
        if equal := [e.variable for e in carried(record) if e.error_shown and e.variable != SCORE]:
            some = f" But among {noun(record)} with the same score, what happens depends on "
            return say(*none, some, *variable_names(equal), ".")
        return none
    rest = say(", then ", *variable_names(yes[1:])) if len(yes) > 1 else ()
    verb = "is" if len(no) == 1 else "are"
    unshown = say(" ", *variable_names(no), f" {verb} not shown to add anything beyond the overall gap.") if no else ()
    return say(variable_name(yes[0]), " first", *rest, ".", *unshown)


def caption(record: AuditRecord, rows: Sequence[ReportedVariable]) -> str:
    level = num.percent(1 - float(record.settings["alpha"]))
    kept = f"Certified ranges hold simultaneously at {level}%. " if certified(record) else ""
    grey = "Grey: not shown. " if any(not v.shown for v in rows) else ""
    more = len(rows) - LONG
    rest = f"The first {LONG} variables; {num.count(more)} more are in the JSON of this audit." if more > 0 else ""
    return f"{kept}{grey}{rest}".strip()


def notes(record: AuditRecord, rows: Sequence[ReportedVariable]) -> Iterator[str]:
    drawn = [v.by_variable for v in rows if v.by_variable is not None]
    if drawn:
        scale = spark_scale(drawn)
        reach = f"from {num.MINUS}{scale:g} to +{scale:g} points; the grey line is no gap"
        yield f"Small curves are what happened minus what the model says, {reach}."
    result, n = ranked(record), draws(record)
    if result:
        looked = f", adjusted for looking at {cardinal(len(result))} variables" if len(result) > 1 else ""
        starred = n and any(r.adjusted <= 1 / (n + 1) for r in result)
        star = f" * The smallest value that {num.count(n)} simulations can show." if n and starred else ""
        bars = " Where certified ranges overlap the order is open." if certified(record) else ""
        yield f"Beyond the overall gap: points once the overall gap is taken out. p is of that{looked}.{star}{bars}"
    if any(v.evidence is not None for v in rows):
        same = f"{noun(record)} with the same score"
        yield f"Among equal scores: does what happens depend on it among {same}? {note(record)}"
    if any(v.needed is not None for v in rows):
        yield f"The search needs it: {needs_note(record)[0].lower()}{needs_note(record)[1:]}"


def gap_note(record: AuditRecord) -> str:
    level = num.percent(1 - float(record.settings["alpha"]))
    ranges = f" Ranges are certified, simultaneously at {level}%." if certified(record) else ""
    return f"Average gap by each variable once the overall gap is taken out; p-values are adjusted.{ranges}"


# ---- what the section adds to others ----


RANKING = (
    "Each variable is cut into ranges of about equally many people, or its levels; in each, what happened is compared "
    "with what the model says, less the overall gap, and the sizes are averaged. What chance alone adds is taken off "
    "the estimate. p-values come from {null}; they are adjusted so that, if the model is calibrated, "
    "any finding at all has a chance of at most {alpha} in 100. "
)
NULLS = {
    True: "{draws} sets of outcomes simulated for every person at the score given",
    False: "the normal law of sums over many people, which is approximate",
}
RANGES = "Certified ranges hold simultaneously at this number of people. "
BY_VARIABLE = (
    "Each curve averages the gap over the nearest {span}% of the people, near ones more, by a local curve of degree "
    "{degree}. Its band, from {null}, takes in zero everywhere in {times} of {of} audits of a calibrated model; where "
    "the model is off it holds the smoothed gap about as often, approximately. Function "
)
WORDS = (
    doc.Entry(
        "Average gap by a variable",
        say(
            "In each range or level of the variable, the size of the gap; averaged over all people. Errors that cancel "
            "within a range do not count."
        ),
    ),
    doc.Entry(
        "Beyond the overall gap",
        say(
            "What would be left if everyone’s probability were moved by the overall gap. Without that, a model that "
            "underpredicts for everyone has the same error by every variable."
        ),
    ),
    doc.Entry(
        "Adjusted p",
        say(
            "How often simulations of a calibrated model show at least this much, adjusted for looking at all "
            "the variables."
        ),
    ),
)


def methods(record: AuditRecord) -> Iterator[doc.Entry]:
    if ranked(record):
        order, n = record.curve("ranking"), draws(record)
        null = independent(record).signs or NULLS[n is not None].format(draws=num.count(n or 0))
        alpha = num.percent(float(order.settings.get("alpha", record.settings["alpha"])))
        ranges = RANGES if certified(record) else ""
        words = say(RANKING.format(null=null, alpha=alpha), ranges, "Function ", code(order.method), ".")
        yield doc.Entry("Variables", words)
    for curve in list(record.family("variable_curve").values())[:1]:
        s = curve.settings
        times, of = num.confidence(1 - float(s["alpha"]))
        reported = {"times": f"{independent(record).least} {times}", "of": of, "null": chance(record, int(s["draws"]))}
        words = say(BY_VARIABLE.format(span=num.percent(float(s["span"])), degree=s["degree"], **reported))
        yield doc.Entry("Curves", say(*words, code(curve.method), "."))


def _check(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    result = ranked(record)
    numbers = ""
    if result:
        least = num.p_value(min(r.adjusted for r in result), draws=draws(record))
        numbers = (
            f"{sum(r.error_shown for r in result)} of {num.count(len(result))} variables; smallest adjusted {least}"
        )
    meaning = "does the error vary with a variable, beyond the overall gap?"
    return OutlineCheck("Error by variable", numbers, meaning, any(r.error_shown for r in result))


DECLARED = (
    Declared(
        id="variables",
        order=40,
        nav="By variable",
        heading="Which variables does the error vary with?",
        nodes=variables,
        methods=methods,
        words=lambda record: WORDS if ranked(record) else (),
        checks={"variables": _check},
    ),
)
