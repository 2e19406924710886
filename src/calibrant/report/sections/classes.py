"""Several classes: each against the others, all together, and which class is given in place of which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.data.specs.column_names import AT_MOST
from calibrant.report import document as doc
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report import places, svg
from calibrant.report.outline import Declared, OutlineCheck
from calibrant.report.spans import Text, code, lines, literal, say, strong
from calibrant.report.wording.change import (
    AS_AUDITED,
    CLASS_REPAIRS,
    SCORES,
    class_repair,
    impossible,
    of_classes_gained,
)
from calibrant.report.wording.parts import STATES, marked, verdict_word
from calibrant.report.wording.terms import (
    UNPROVEN,
    capital,
    cardinal,
    certified_range,
    classes_counted,
    p_reported,
    repair_named,
    together,
    verdict_on,
)
from calibrant.results import Curve, Outcome
from calibrant.sanitize import sanitize

MOST = 50  # classes that the page lists; all are in the record
REST = (
    "Each row lists some of the classes. What its probabilities lack of 100%, {} points on average, is the probability "
    "of the class (rest), to which a row belongs whose true class it does not list. Each other class is judged over "
    "all rows, by whether it was listed and true: where few rows list it, its gap is small."
)
LINES = 20  # cells of the matrix that it lists in words
MATRIX = "class_matrix"
SCORE, PREDICTED = "(score)", "(predicted class)"  # as the test calls them among its variables
SUM = (
    "Added up over all classes the calibration error is {low} to {high} points, {level}% guaranteed: raw probabilities "
    "from below, of which it is at most 200; rounded ones from above."
)
SINGLE = "One against the others: the class’s own probability against how often the class came true."
CELLS = (
    "Of the rows whose most probable class is the one on the left: how many belong to each class, and how many its "
    "probability says. All ranges are simultaneous. Cells with fewer than {least:g} rows expected are left out."
)


def classes(record: AuditRecord) -> Iterator[doc.Node]:
    yield doc.Paragraph(_answer(record), "answer")
    yield doc.Paragraph(say(f"{SINGLE} {_sum(record)}"), "note")
    if (mass := record.data.get("rest_mass")) is not None:
        yield doc.Paragraph(say(REST.format(num.nearest(mass))), "note")
    if _ordered(record):
        yield from _in_order(record)
    yield _table(record)
    curve = record.curve(MATRIX)
    if curve.columns and curve.columns["rows"]:
        yield doc.Paragraph(_mistaken(curve), "answer")
        yield _cells(record, curve)
    if (check := facts.ran(record, facts.CLASS_LOCAL)) is not None:
        yield doc.Paragraph(_exchanged(record, check), "answer")
    if (check := facts.ran(record, facts.CLASS_STRONG)) is not None:
        yield doc.Paragraph(_searched(record, check), "answer")
    if (tried := record.curve(CLASS_REPAIRS)).columns:
        yield doc.Paragraph(_recommended(record), "answer")
        yield _repairs(record, tried)


def _answer(record: AuditRecord) -> Text:
    every = record.classes
    total = classes_counted(record)
    if facts.limit_of(record) is None:
        return say(f"{total}. No limit was given{'' if _ordered(record) else '; the most evident come first'}.")
    if facts.withheld(record):
        return say(f"{total}: withheld.")
    over, undecided = (sum(f.verdict == v for f in every) for v in ("over", "undecided"))
    ways: Text = ()
    if less := facts.common_less(record):
        rare = f"For {num.count(less)} of {total} the limit is larger than the mean probability, so overprediction is"
        ways = say(f"{rare} never over it. Use ", code("--limit-relative"), " or ", code("--limit-classes"), ". ")
    if not over and not undecided:
        return say(*ways, "No gap is over the limit.") if less else say(f"All {total} are within the limit.")
    first = f"{capital(cardinal(over))} of {total} {'is' if over == 1 else 'are'} over the limit."
    rest = f" For {cardinal(undecided)} there are too few {facts.noun(record)} to decide." if undecided else ""
    none = f"No class {'or cut ' if _ordered(record) else ''}is shown to be over the limit."
    return say(*ways, f"{first if over else none}{rest}")


def _ordered(record: AuditRecord) -> bool:
    return bool(record.data.get("ordered"))


IN_ORDER = {
    "class": "In the order of the classes.",
    "cut": (
        "A cut is the probability of at most a class, against how often that came. The first and the last are judged "
        "as the lowest and the highest class."
    ),
}


def _in_order(record: AuditRecord) -> Iterator[doc.Figure]:
    """The gap of each class, and of each cut, next to its neighbours: one under the other, at the same scale.

    The first and the last cut are drawn from the lowest and the highest class.
    """
    k = len(record.data["classes"])
    limit, every = facts.limit_of(record), list(record.classes)
    gaps = [(100.0 * low, 100.0 * f.gap.value, 100.0 * high) for f in every for low, high in [f.gap_ends]]
    low, value, high = gaps[k - 1]  # at most the last but one: not the last
    cuts = [gaps[0], *gaps[k:], (-high, -value, -low)]
    names = [f.variables[0][1] for f in every[:k]]
    top = places.end_of(max(max(-low, high) for low, _, high in gaps))
    of_cuts = [AT_MOST.format(name) for name in names[:-1]]
    for what, some, called in (("class", gaps[:k][:MOST], names[:MOST]), ("cut", cuts[:MOST], of_cuts[:MOST])):
        words = f"Gap of each {what}, from {called[0]} at the top to {called[-1]}"
        strips = [] if limit is None else [(-100.0 * limit, 100.0 * limit)]
        picture = svg.caterpillar(some, strips, top, words)
        panel = doc.Panel(sanitize(words), picture, axis="observed minus predicted, points, guaranteed range")
        yield doc.Figure(panels=(panel,), key=(), caption=say(IN_ORDER[what]))


def _sum(record: AuditRecord) -> str:
    e = record.estimates.get(facts.ALL_CLASSES)
    if e is None:
        return ""
    limit = record.settings.get("limit_classes")
    low, high = num.bounds(e.interval.low, e.interval.high, limit)
    text = SUM.format(low=low, high=high, level=num.percent(e.interval.level))
    if limit is None or facts.withheld(record):
        return text
    return f"{text} Their limit is {num.limit_points(limit)}: {STATES[facts.summed(record)][1].lower()}."


def _table(record: AuditRecord) -> doc.Table:
    ranked = list(record.classes) if _ordered(record) else facts.by_evidence(record.classes)
    kept, judged = ranked[:MOST], facts.limit_of(record) is not None
    columns = (
        doc.Column(say("Class")),
        doc.Column(say("Came true"), "r n"),
        doc.Column(say("Predicted, %"), "r hide"),
        doc.Column(say("Observed, %"), "r hide"),
        doc.Column(lines("Gap (guaranteed", "range), points"), "r gp", "Gap (guaranteed range), points"),
        doc.Column(lines("Calibration", "error, points"), "r iv", "Calibration error, points"),
        doc.Column(say("Verdict"), "vd", where=doc.WHOLE if judged else doc.NOWHERE),
    )
    rows = []
    for f in kept:
        predicted, observed = num.rates(f.expected / f.rows, f.events / f.rows)
        first, last = num.signed_range(*f.gap_ends)
        verdict = doc.Cell(say(verdict_on(f)), str(-facts.RANK[f.verdict]), icon=f.verdict)
        rows.append(
            doc.row(
                say(literal(f.variables[0][1])),
                num.count(f.events),
                predicted,
                observed,
                f"{num.gap(f.gap.value)} ({first} to {last})",
                certified_range(f, dashed=True),
                verdict,
            )
        )
    total = num.count(len(record.classes))
    caption = f"All {total} ranges of each kind are simultaneous: they hold {together(record)}."
    if len(record.classes) > MOST:
        which = "first" if _ordered(record) else "most evident"
        caption = f"The {MOST} {which} of {classes_counted(record)}. The others are in the record."
    return doc.Table(columns, tuple(rows), caption, "forest long", "classes-all")


def _mistaken(curve: Curve) -> Text:
    """The cell off the diagonal that is certified to be larger than its probability says, by the most rows."""
    off = [
        line
        for line in facts.lines_of(curve)
        if line["predicted_class"] != line["true_class"] and float(line["low"]) > 0.0
    ]
    if not off:
        return say("No class is shown to come true in place of another more often than its probability says.")
    worst = max(off, key=lambda line: float(line["gap"]) * float(line["rows"]))
    return say(
        "Where ",
        literal(str(worst["predicted_class"])),
        " is the most probable class, ",
        strong(
            f"{literal(str(worst['true_class'])).text} comes true in {num.count(int(worst['events']))} of "
            f"{num.count(int(worst['rows']))} rows"
        ),
        f"; its probabilities add up to {num.count(round(float(worst['expected'])))}.",
    )


def _cells(record: AuditRecord, curve: Curve) -> doc.Table:
    def clear(line: facts.Line) -> float:
        gap, low, high = (float(line[k]) for k in ("gap", "low", "high"))
        return -abs(gap) / max(high - low, 1e-9)

    kept = sorted(facts.lines_of(curve), key=clear)[:LINES]
    heads = (
        "Most probable class",
        "Belongs to",
        doc.Column(say(capital(facts.noun(record))), "r n"),
        doc.Column(say("Expected"), "r"),
        doc.Column(say("Came true"), "r"),
        doc.Column(say("Gap (guaranteed range), points"), "r gp"),
    )
    rows = []
    for line in kept:
        first, last = num.signed_range(float(line["low"]), float(line["high"]))
        rows.append(
            (
                say(literal(str(line["predicted_class"]))),
                say(literal(str(line["true_class"]))),
                num.count(int(line["rows"])),
                num.count(round(float(line["expected"]))),
                num.count(int(line["events"])),
                f"{num.gap(float(line['gap']))} ({first} to {last})",
            )
        )
    more = len(curve.columns["rows"]) - len(rows)
    rest = f" The {len(rows)} most evident cells; {num.count(more)} more are in the record." if more else ""
    return doc.number_table(CELLS.format(least=curve.settings["least"]) + rest, heads, rows, "cards")


def _recommended(record: AuditRecord) -> Text:
    """Which repair of all classes is recommended, and by how much it changes the log loss on other rows."""
    line = class_repair(record)
    if line is None:
        by = SCORES[str(record.curve(CLASS_REPAIRS).settings["by"])]
        return say(f"No recalibration of all classes is shown to lower the {by} on rows held out.")
    gained = capital(of_classes_gained(record, line))
    return say(
        strong(f"Recalibrate by {repair_named(str(line['repair']))}."),
        f" {gained}; the interval is ordinary, not guaranteed.",
    )


def _exchanged(record: AuditRecord, check: CheckRecord) -> Text:
    """What the test of all classes says: which class gets too much at the cost of which, over all and where most."""
    outcome = check.outcome
    if outcome is None:
        return ()
    reported, parts = p_reported(outcome), outcome.parts
    if facts.impossible(outcome):
        return say(f"A class came true whose probability was 0: {reported}.")
    if not record.test_shows(check):
        return say(f"A test of all classes at once finds no error, {UNPROVEN} ({reported}).")
    where: Text = ()
    if "region_variable" in parts:
        who = f"{num.count(int(parts['region_rows']))} {facts.noun(record)}{_of_tested(outcome)}"
        where = say("; class ", *_pair(parts, "region_"), f" among {who} where ", *_region(parts))
    shown = strong("A test of all classes at once shows error")
    estimated = ". These gaps are estimates, of the pair of classes that differs most."
    return say(shown, f" ({reported}). Class ", *_pair(parts, ""), " over all rows", *where, estimated)


def _searched(record: AuditRecord, check: CheckRecord) -> Text:
    """What the search of all classes for groups says: in which one which class gets too much at the cost of which."""
    outcome = check.outcome
    if outcome is None or facts.impossible(outcome):
        return ()
    reported, parts = p_reported(outcome), outcome.parts
    if not record.test_shows(check):
        return say(f"A search of each class for groups that nobody named finds no error, {UNPROVEN} ({reported}).")
    shown = strong("A search of each class for groups that nobody named shows error")
    if "peak_over_class" not in parts:
        return say(shown, f" ({reported}).")
    noun = f"{facts.noun(record)}{_of_tested(outcome)}"
    who = f"{num.count(int(parts['peak_rows']))} {noun}" if "peak_rows" in parts else "some rows"
    cause = literal(str(parts["peak_class"]))
    where = say(f" among {who} that were searched out for ", cause, "; these gaps are estimates.")
    return say(shown, f" ({reported}). Class ", *_pair(parts, "peak_"), *where)


def _of_tested(outcome: Outcome) -> str:
    """Such as " of 25,000 tested", where a random part of the rows is; empty where all are."""
    n, rows = int(outcome.settings["n"]), int(outcome.settings["rows"])
    return f" of {num.count(n)} tested" if n < rows else ""


def _pair(parts: Mapping[str, object], of: str) -> Text:
    """Such as "cat gets 3.1 points too much, mostly at the cost of dog (2.9 too little)"."""
    over, under = (num.decimals(100.0 * abs(float(str(parts[f"{of}{side}_gap"]))), 1) for side in ("over", "under"))
    names = (literal(str(parts[f"{of}{side}_class"])) for side in ("over", "under"))
    return say(
        next(names), f" gets {over} points too much, mostly at the cost of ", next(names), f" ({under} too little)"
    )


def _region(parts: Mapping[str, object]) -> Text:
    """The step or level in which classes deviate most, after "where"."""
    variable, side, value = (parts[f"region_{k}"] for k in ("variable", "side", "value"))
    if variable == SCORE:
        what = say("the probability of ", literal(str(parts["region_class"])))
        return say(*what, f" is {side} {num.decimals(100.0 * float(str(value)), 1)}%")
    what = say("the most probable class") if variable == PREDICTED else say(literal(str(variable)))
    end = literal(value) if isinstance(value, str) else f"{float(str(value)):.4g}"
    return say(*what, " is " if side == "is" else f" is {side} ", end)


def _repairs(record: AuditRecord, curve: Curve) -> doc.Table:
    heads = (
        "Probabilities",
        doc.Column(say("Calibration error of all classes, guaranteed, points"), "r iv"),
        doc.Column(say("Log loss (change)"), "r"),
        doc.Column(say("Brier score (change)"), "r"),
    )
    rows = []
    for line in facts.lines_of(curve):
        name, cells = str(line["repair"]), []
        for measure in ("log_loss", "brier"):
            change = "" if name == AS_AUDITED else f" ({num.decimals(float(line[f'{measure}_change']), 4)})"
            cells.append(f"{num.decimals(float(line[measure]), 4)}{change}")
        ends = num.span(float(line["low"]), float(line["high"]))
        rows.append((capital(name if name == AS_AUDITED else repair_named(name)), ends, *cells))
    caption = (
        f"Fitted on {num.count(curve.settings['rows_fitted'])} {facts.noun(record)}, judged on "
        f"{num.count(curve.settings['rows_judged'])} others. All guaranteed ranges hold simultaneously, at "
        f"{num.percent(1.0 - float(curve.settings['alpha']))}%."
    )
    return doc.number_table(caption + impossible(curve), heads, rows, "cards")


def _repairs_check(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    name = str(record.curve(CLASS_REPAIRS).settings.get("recommended", ""))
    named = "" if not name else "leave them as they are" if name == AS_AUDITED else repair_named(name)
    return OutlineCheck("What would repair all classes?", named, "judged on rows that no repair was fitted on")


def _check(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    word = verdict_word(record, "classes")[1].lower() if record.classes else ""
    return OutlineCheck("Is the probability of every class true?", word, f"all ranges hold {together(record)}")


def _cells_check(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    cells = num.count(len(record.curve(MATRIX).columns.get("rows", ())))
    return OutlineCheck("Which class comes true in place of which?", f"{cells} cells", "all ranges hold simultaneously")


def _strong_check(check: CheckRecord, record: AuditRecord) -> OutlineCheck:
    p = "" if check.outcome is None else p_reported(check.outcome)
    how = "one search of all classes, made again in simulated rows"
    return OutlineCheck("Is some group that nobody named badly served by a class?", p, how, record.test_shows(check))


def _local_check(check: CheckRecord, record: AuditRecord) -> OutlineCheck:
    shown = record.test_shows(check)
    p = "" if check.outcome is None else p_reported(check.outcome)
    return OutlineCheck("Which class gets too much at the cost of which?", p, "one test of all classes", shown)


def _sum_check(check: CheckRecord, _: AuditRecord) -> OutlineCheck:
    ends = check.estimate.interval if check.estimate else None
    shown = "" if ends is None else f"{num.span(ends.low, ends.high)} points"
    return OutlineCheck("All classes together", shown, "the class-wise error: the errors of all classes, added up")


def _methods(record: AuditRecord) -> tuple[doc.Entry, ...]:
    if not record.classes:
        return ()
    text = (
        "Everyone, groups and subgroups are about the most probable class of each row: whether it came true, against "
        "its probability. Classes are bounded as groups are, with a share of alpha of their own. The sum over all "
        "classes has one certificate with a vector for a witness, which shares alpha with no class; where it has a "
        "limit, each end spends half of alpha. Each of the two tests of all classes has level alpha by itself, and is "
        "no part of the joint error of the verdicts."
    )
    return (doc.Entry("Several classes", say(text)),)


DECLARED = (
    Declared(
        id="classes",
        order=22,
        nav="Which class?",
        heading="Which class is off, and in place of which?",
        nodes=classes,
        verdict=lambda record: marked(record, "classes") if record.classes else "",
        methods=_methods,
        checks={
            "error-classes": _check,
            facts.ALL_CLASSES: _sum_check,
            "class-matrix": _cells_check,
            facts.CLASS_LOCAL: _local_check,
            facts.CLASS_STRONG: _strong_check,
            "class-repairs": _repairs_check,
        },
        there=lambda record: bool(record.classes),
    ),
)
