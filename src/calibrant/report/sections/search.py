"""What a search for a mix of attributes found: the strong calibration test, its chart, its rules, what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal

from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.report import document as doc
from calibrant.report import numbers as num
from calibrant.report import svg
from calibrant.report.findings import STRONG, Line, decimals, fives, lines_of, noun, products, ran, stands
from calibrant.report.outline import OutlineCheck
from calibrant.report.spans import BREAK, Span, Text, code, lines, literal, say, shown
from calibrant.report.wording.terms import LOOKED_AT, UNPROVEN, WHO, cardinal, joined, p_reported, variable_names

UNNEEDED = "not shown"
UNDECIDED = "undecided"
SEARCHES = 5  # again, each without a fifth of the half that finds the rules
FEW, MANY = 0.2, 0.5  # shares of people: a peak before the first is concentrated, one after the second spread
TITLE = "Evidence of error, the most suspicious first"


def search(record: AuditRecord) -> Iterator[doc.Node]:
    check = ran(record, STRONG)
    if check is None:
        return
    if spread(record):
        yield doc.Paragraph(say(spread(record)), where=doc.MARKDOWN)
    if strongest(record):
        yield doc.Paragraph(strongest(record))
    result = rules(record)
    if result:
        yield doc.Heading(WHO if first_shown(record) else LOOKED_AT, 3)
        yield rules_table(record)
    yield doc.Paragraph(say(rules_note(record)), "note", doc.MARKDOWN if result else doc.WHOLE)
    chart, read = control(record), (doc.Paragraph(say(rules_note(record)), "note"),) if result else ()
    if chart is not None:
        yield doc.Details(f"Evidence of error: {peak_reported(record)}", (*read, chart), id="evidence", where=doc.PAGE)
    elif read:
        yield doc.Details("How the rules were found", read, id="evidence", where=doc.PAGE)
    if not needs(record):
        yield doc.Paragraph(say(needs_note(record)), where=doc.MARKDOWN)


# ---- what the test found ----


def tolerance(record: AuditRecord) -> float:
    """The error that the test lets pass."""
    check = ran(record, STRONG)
    return 0.0 if check is None or check.outcome is None else float(check.outcome.settings.get("tolerance", 0.0))


def sought(record: AuditRecord) -> str:
    t = tolerance(record)
    return f"errors of over {num.limit_points(t)} points" if t else "the error"


def predicts(record: AuditRecord) -> str:
    check, also = ran(record, STRONG), products(record)
    shown = check is not None and record.test_shows(check)
    if shown and also.get("smaller") == "bayes_factor":
        return f"{FEATURES[str(also['largest'])]} show the error"
    verb = "predicts" if shown else "does not predict"
    them = "them" if tolerance(record) else "it"
    text = f"a model trained to find {sought(record)} {verb} {them} on {noun(record)} it has not seen"
    return f"{text}, and no product of three attributes shows it" if also.get("products") and not shown else text


FEATURES = {
    "steps": "thresholds of single attributes",
    "corners": "ranges of two attributes",
    "products": "products of three attributes",
}


def strongest(record: AuditRecord) -> Text:
    """Which product of three stands out most, where products are what shows the error."""
    check, also = ran(record, STRONG), products(record)
    shown = check is not None and stands(record, check)
    if not shown or also.get("smaller") != "bayes_factor" or also.get("largest") != "products":
        return ()
    names = [str(v) for v in also["strongest"]]
    why = " An error that changes its sign from one side of each of the three to the other shows in no two of them."
    return say("The product that stands out most is of ", *variable_names(names), f".{why}")


def reported(record: AuditRecord) -> str:
    check = ran(record, STRONG)
    return "" if check is None or check.outcome is None else p_reported(check.outcome)


def spread(record: AuditRecord) -> str:
    """What the place of the peak says; nothing where nothing was found."""
    check, s = ran(record, STRONG), record.curve("control_chart").settings
    if check is None or not stands(record, check) or not s.get("peak_rows"):
        return ""
    if products(record).get("smaller") == "bayes_factor":  # the peak is the models'
        return ""
    share = float(s["peak_share"])
    what = f"neither in few {noun(record)} nor spread over most"
    if share < FEW:
        what = f"concentrated in few {noun(record)}"
    elif share > MANY:
        what = "widely spread, not confined to a small subgroup"
    side = {"underpredicts": " The model underpredicts for them.", "overpredicts": " The model overpredicts for them."}
    both = " The model underpredicts for some of them and overpredicts for others."
    peak = f"The peak comes after {whole(share)}% of {noun(record)}: the error is {what}."
    return peak + side.get(str(s.get("side")), both)


def none_detected(record: AuditRecord) -> str:
    return f"None was found, {UNPROVEN}: {predicts(record)} ({reported(record)})."


def whole(share: float) -> str:
    """Write a share of people in whole percent; a decimal where it is under one."""
    return num.nearest(share, 0 if share >= 0.01 or not share else 1)


# ---- the control chart: evidence added up over people, most suspicious first ----


def control(record: AuditRecord) -> doc.Figure | None:
    c, s = record.curve("control_chart").columns, record.curve("control_chart").settings
    times, of = num.confidence(float(s["alpha"])) if "alpha" in s else ("", "")
    peak = ""
    if s.get("peak_rows"):
        peak = f"peak {_evidence(float(s['peak_score']))} at {whole(float(s['peak_share']))}% of {noun(record)}"
    most_often = "at most " * bool(products(record))
    drawn = svg.control(record.curve("control_chart"), f"line crossed in {most_often}{times} of {of} repeats", peak)
    if drawn is None:
        return None
    line = None if s.get("line") is None else float(s["line"])
    points = [(float(x), float(y)) for x, y in zip(c["x"], c["evidence"], strict=True)]
    most = max(y for _, y in points)
    crosses = "crosses the line" if line is not None and most > line else "stays under the line"
    under = "" if line is None else f" of {_evidence(line, ROUND_CEILING)}"
    label = f"{TITLE}. It {crosses}{under}, and is {_evidence(most, signed=True)} at most. {spread(record)}".strip()
    start, axis = num.nearest(float(s["peak_share"]), 1), f"of {noun(record)}, most suspicious first"
    rows = [(num.nearest(x), _evidence(y, signed=True)) for x, y in points]
    times, of = num.confidence(1 - float(s["alpha"]))
    under = ""
    if line is not None:
        least = "at least " * bool(products(record))
        under = f"; a calibrated model stays under {_evidence(line, ROUND_CEILING)} in {least}{times} of {of} repeats"
    form = f"After the {{0}}% most suspicious {noun(record)}: evidence {{1}}{under}."
    return doc.Figure(
        panels=(doc.Panel("", svg.plot(drawn, label, 0, 100), axis=axis),),
        key=(),
        caption=say(_caption(record, points[-1][0], line)),
        id="fig-control",
        style="along",
        readout=doc.Readout(f"Read the evidence by {noun(record)}", "0", "100", start, form),
        numbers=(doc.number_table("", (f"Most suspicious {noun(record)}, %", "Evidence"), rows),),
    )


def peak_reported(record: AuditRecord) -> str:
    c, s = record.curve("control_chart").columns, record.curve("control_chart").settings
    line, most = s.get("line"), max(map(float, c["evidence"]))
    if line is None or not s.get("peak_rows"):
        return f"{_evidence(most, signed=True)} at most"
    crosses = "over" if most > float(line) else "under"
    who = f"among the {whole(float(s['peak_share']))}% most suspicious {noun(record)}"
    return f"{_evidence(most)} {who}, {crosses} the {_evidence(float(line), ROUND_CEILING)} of a calibrated model"


def _evidence(score: float, rounding: str = ROUND_HALF_UP, signed: bool = False) -> str:
    """Write evidence to two decimals, as fine as the picture shows it."""
    return num.written(num.cut(Decimal(repr(score)), 2, rounding), signed=signed)


def _caption(record: AuditRecord, end: float, line: float | None) -> str:
    check, s = ran(record, STRONG), record.curve("control_chart").settings
    text = f"{num.count(s['rows_tested'])} {noun(record)}, "
    text += "which the models had not seen." if s.get("null") == "split" else "each judged by models fitted to others."
    repeats = cardinal(sum(k.startswith("null_") for k in record.curve("control_chart").columns))
    text += f" Grey: {repeats} repeats in which the model is calibrated."
    if line is None:
        text += " There are too few simulations for a line."
    elif check is not None and not record.test_shows(check):
        text += " It stays under the dashed line, as for a calibrated model."
    elif products(record).get("smaller") == "bayes_factor":
        text += f" It is of the models alone: {FEATURES[str(products(record)['largest'])]} show the error."
    if end <= 1.0 - 0.005 and s.get("rows_beyond", s["rows_tested"]) != s["rows_tested"]:
        t = float(s.get("tolerance", 0.0))
        off = f"to be off by no more than the tolerance of {num.limit_points(t)} points" if t else "not to be off"
        text += f" The curve ends at {whole(end)}% of {noun(record)}: the others are predicted {off}."
    if s.get("null") == "refit" and check is not None and check.outcome is not None:
        made, most = int(s["draws"]), int(check.outcome.settings.get("draws", 0))
        early = ", and then no more: enough of them had shown as much evidence" if made < most else ""
        text += f" All was fitted again in {num.count(made)} repeats{early}."
    return f"{text} {spread(record)}".strip()


# ---- the rules: groups in words, judged on people who did not find them ----


def rules(record: AuditRecord) -> list[Line]:
    """The rules, the largest excess first, with the numbers of the half that did not find them."""
    return lines_of(record.curve("searched_subgroups"))


def off(line: Line, record: AuditRecord) -> bool:
    """Whether a rule is shown to be off: by its test, and by its range, which excludes what the test allows."""
    t = float(record.curve("searched_subgroups").settings.get("tolerance", 0.0))
    inner = float(line["low"]) if line["side"] == "underpredicts" else -float(line["high"])
    return bool(line["finding"]) and inner > t


def first_shown(record: AuditRecord) -> Line | None:
    """The first rule that is shown to be off; None where none is."""
    return next((r for r in rules(record) if off(r, record)), None)


def rules_table(record: AuditRecord) -> doc.Table:
    columns = (
        doc.Column(say("Rule")),
        doc.Column(lines("Share of", noun(record)), "r"),
        doc.Column(lines("Model says,", "in 100"), "r"),
        doc.Column(lines("Happened,", "in 100"), "r"),
        doc.Column(lines("Gap and its", "range, points"), "r"),
        doc.Column(say("The model says"), "now"),
    )
    return doc.Table(columns, tuple(_rule(r, record) for r in rules(record)), style="cards", id="rules")


def _rule(c: Line, record: AuditRecord) -> doc.Row:
    digits = decimals(record)
    low, high = num.signed_range(float(c["low"]), float(c["high"]), digits)
    rows, result, name = fives(record, c["rows"], searched=True), off(c, record), literal(shown(c["rule"]))
    searches = f"found again in {round(SEARCHES * float(c['stability']))} of {SEARCHES} searches"
    again = f"{num.count(c['rows'])} {noun(record)} judged; {searches}"
    return doc.row(
        doc.Cell((name, BREAK, Span(again, "quiet")), brief=say(name, f" ({again})")),
        f"{num.nearest(float(c['share']))}%",
        num.reported_rate(float(c["predicted"]), rows, digits),
        num.reported_rate(float(c["observed"]), rows, digits),
        f"{num.reported_gap(float(c['gap']), rows, digits)} ({low} to {high})",
        doc.Cell(say(str(c["side"]) if result else UNDECIDED), style="" if result else "quiet"),
    )


def rules_note(record: AuditRecord) -> str:
    c, s = record.curve("searched_subgroups").columns, record.curve("searched_subgroups").settings
    n = len(c.get("rule", ()))
    if not n:
        why = "no rule was worth judging." if "rule" in c else f"there are too few {noun(record)} for two halves."
        return f"No rule says who they are: {why}"
    times, of = num.confidence(1 - float(s["alpha"]))
    every = "Its range holds" if n == 1 else f"{'Both' if n == 2 else f'All {cardinal(n)}'} ranges hold simultaneously"
    return (
        f"Found in one half of the {noun(record)}; but for the share, every number is from the other half, "
        f"{num.count(s['rows_judged'])} that did not find {'it' if n == 1 else 'them'}. "
        f"{every} in at least {times} of {of} audits."
    )


# ---- the variables that the search needs ----


def needs(record: AuditRecord) -> list[Line]:
    """The variables without which evidence is lost, the most needed first; none where nothing was found."""
    check = ran(record, STRONG)
    return lines_of(record.curve("importance")) if check is not None and record.test_shows(check) else []


def share_lost(line: Line, statistic: float) -> str:
    lost, low, high = (float(line[k]) / statistic for k in ("drop", "low", "high"))
    return f"{_percents(lost)}% ({num.between(_percents(low), _percents(high))})"


def _percents(share: float) -> str:
    text = num.nearest(share, 0)
    return "0" if text == f"{num.MINUS}0" else text


def needs_note(record: AuditRecord) -> str:
    check, result, s = ran(record, STRONG), needs(record), record.curve("importance").settings
    if check is not None and not record.test_shows(check):
        return "Which variables the search needs is not shown: where nothing is found it would be noise."
    if not result:
        return "Which variables the search needs is not shown: no model predicts an error that what happened bears out."
    few = "shuffles are few"
    if s.get("repeats"):
        few = f"the shuffles are few ({num.count(s['repeats'])} of each variable)"
    total = f"{num.decimals(s['statistic'], 2)} in all"
    reported = f"The evidence split up here, {total}, comes from a fit of its own, not that of the test above"
    if "rows_tested" in s:  # not so in a record made when importance had models of its own
        of = f"{num.count(s['rows_read'])} of them" if s["rows_read"] < s["rows_tested"] else "all of them"
        reported = (
            f"Models and {noun(record)} are those of the test above; the evidence split up, {total}, is that of {of}"
        )
    return (
        f"Share of the evidence that is lost when the variable is shuffled among {noun(record)}; "
        f"{num.percent(1 - float(s['alpha']))}% range, approximate, each separately. "
        f"{reported}. A share may lie outside 0 to 100%: {few}, and variables share information, so that those that "
        f"carry the same information hide each other. Where a range takes in 0, the variable is {UNNEEDED}."
    )


# ---- what the search adds to other sections ----

SEARCH = (
    "Models learn from part of the people where what happened departs from what the model says. Other people are "
    "sorted by their guesses, the most suspicious first, and the departures are added up. The largest sum over all "
    "models and places is compared with {null}. Function "
)
NULLS = {
    "split": "the same from {draws} sets of outcomes simulated at the score; true at this number of rows",
    "refit": (
        "{done}{draws} repeats of all of it on simulated outcomes, models fitted again; true at this number of rows"
    ),
    "fixed": "the same from {draws} sets of simulated outcomes, with the models held; approximate{inflated}",
    "clusters": "the same from {draws} sets of random signs of whole clusters; approximate{inflated}",
}
INFLATED = ", and more ready to find error in a calibrated model than asked for"
PRODUCTS = (
    "In the same repeats the departures are also added up by thresholds of one attribute, ranges of two, and "
    "products of three, each attribute above its median or below, of few columns by rank too ({products} of {triples} "
    "triples of columns have events enough and are looked at), and averaged into one Bayes factor. The smaller of the "
    "two p-values, with weights of {weights}, is compared with that of every repeat. Function "
)
RULES = (
    "One half of the people finds the rules: all pairs of simple conditions are tried, in addition to a tree of "
    "conditions fitted to models of the error and to sums of thresholds and products of two, and the best is improved "
    "one condition at a time. Where a product of three conditions stands out more than by chance, its eight parts are "
    "tried too. The other half judges each rule, against the share that the model says{edge}. Ranges of "
    "the gaps hold simultaneously at this number of rows. A rule is shown to be off where a test on the side it "
    "was found on finds error and its range excludes what that test allows. Function "
)
EDGE = (
    ", plus the tolerance of {points} points where it seemed to underpredict, minus it where it seemed to overpredict"
)
WORD = doc.Entry(
    "Evidence, in the search",
    say(
        "What happened less what the model says, added up from the most suspicious people on, in units of its chance "
        "spread over everyone."
    ),
)


def methods(record: AuditRecord) -> Iterator[doc.Entry]:
    check = ran(record, STRONG)
    if check is not None and check.outcome is not None:
        s, law = check.outcome.settings, check.outcome.law
        kind = "clusters" if "clusters" in law else str(s.get("null"))
        inflated = INFLATED if "too often" in law else ""
        done = f"{num.count(n)} of at most " if (n := record.curve("control_chart").settings.get("draws")) else "up to "
        also = products(record)  # then every repeat is made
        done = "" if also else done
        null = NULLS.get(kind, law).format(draws=num.count(int(s.get("draws", 0))), inflated=inflated, done=done)
        words = SEARCH.format(null=null)
        if also:
            counts = {k: num.count(int(also[k])) for k in ("products", "triples")}
            weights = joined([f"{w:g}" for w in also["weights"]])
            words = words.removesuffix("Function ") + PRODUCTS.format(**counts, weights=weights)
        yield doc.Entry("Search", say(words, code(check.outcome.method), "."))
    if check is not None and rules(record):
        curve = record.curve("searched_subgroups")
        t = float(curve.settings.get("tolerance", 0.0))
        edge = EDGE.format(points=num.limit_points(t)) if t else ""
        yield doc.Entry("Rules", say(RULES.format(edge=edge), code(curve.method), "."))


def read(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    result, numbers = rules(record), reported(record)
    if result:
        numbers += f"; {sum(off(r, record) for r in result)} of {len(result)} rules shown to be off"
    return OutlineCheck("Strong calibration test", numbers, f"does some mix of attributes predict {sought(record)}?")
