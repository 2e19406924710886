"""The section about everyone: the reliability figure, what is certified, and the standard measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.report import document as doc
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report import svg
from calibrant.report.by_variable import Bin, ByVariable, Stretch, bins_of, score_view
from calibrant.report.outline import Declared, OutlineCheck
from calibrant.report.places import Window, digits_of
from calibrant.report.sections import missing_labels
from calibrant.report.sections.curves import GAP, HEADS, RATES, cells
from calibrant.report.sections.missing_labels import by_horizon, missing
from calibrant.report.spans import Text, code, plain, say, sentence, strong
from calibrant.report.wording.clusters import chance, independent, weighing
from calibrant.report.wording.missing_labels import happened, how_lost, of_known
from calibrant.report.wording.parts import marked
from calibrant.report.wording.terms import (
    DIRECTIONS,
    capital,
    cardinal,
    certified_range,
    error_at_most,
    gap_guaranteed,
    joined,
    judged_range,
    people_share,
    together,
    whose_gaps,
)
from calibrant.results import Estimate
from calibrant.sanitize import sanitize

SAYS = svg.Mark("100%", "100%", 36, "end", "", "the model says")
HAPPENED = svg.Mark("0", "0", -10, "start", "", "happened")
ABOVE = (
    svg.Mark("0", "0", -10, "start", "wide", "points; above zero: happened more often than the model says"),
    svg.Mark("0", "0", -10, "start", "narrow", "points (above 0: happened more often)"),
)
RANKED = "ranked_probability_score"  # a value of the classes, which no check of its own judges
MEASURES = {  # name in the record: its name on the page, what it says, its decimals (None: points)
    "ece": ("Binned calibration error (ECE)", "average gap over ranges of the score; grows with chance", None),
    "smooth_ece": ("Smooth calibration error", "the same without ranges: the score is smoothed", None),
    "max_calibration_error": ("Largest binned error (MCE)", "the largest of those gaps; grows with chance", None),
    "integrated_calibration_index": (
        "Integrated calibration index (ICI)",
        "mean distance of a smooth curve by the horizon from the score; above 0 by chance",
        None,
    ),
    "brier": ("Brier score", "mean squared distance from what happened; smaller is better", 4),
    "log_loss": ("Log loss", "punishes confident mistakes; smaller is better", 4),
    RANKED: (
        "Ranked probability score",
        "of all classes in their order: the mean Brier score of their cuts; smaller is better",
        4,
    ),
    "auroc": ("AUROC", "how well events are distinguished from others; 0.5 is guessing, 1 is perfect", 4),
    "calibration_intercept": (
        "Calibration intercept",
        "0 if calibrated on average; above 0: the model underpredicts",
        3,
    ),
    "calibration_slope": ("Calibration slope", "1 if calibrated; below 1: scores too extreme; above 1: too timid", 3),
    "observed_expected": (
        "Observed over expected events",
        "1 if calibrated on average; above 1: the model underpredicts",
        3,
    ),
}
STATED = {  # on the reliability diagram, in the order of clinical reports
    "calibration_slope": "slope",
    "calibration_intercept": "intercept",
    "observed_expected": "O/E",
    "brier": "Brier",
    "auroc": "C",
}


def overall(record: AuditRecord) -> Iterator[doc.Node]:
    yield doc.Paragraph(overall_answer(record), "answer")
    yield from by_horizon(record)
    yield figure(record) if facts.carries_curve(record) else doc.Paragraph(no_figure(record), "panel", doc.PAGE)
    yield doc.Details("What is certified, and about which score", (certified(record),), id="certified")
    yield from missing(record)
    if record.measures:
        table = measures(record)
        first = " ".join(plain(cell.text) for cell in table.rows[0].cells[:2])
        yield doc.Details(f"Standard measures, not certified: {first}", (table,), id="measures")
        yield doc.Paragraph(say(measures_note(record)), where=doc.MARKDOWN)


def overall_answer(record: AuditRecord) -> Text:
    """The first line of "How far off are the probabilities?"."""
    one = record.everyone
    predicted, observed = num.rates(one.expected / one.rows, one.events / one.rows, facts.decimals(record))
    start = f"On average by {certified_range(one)} points."
    if one.two_scores:
        low, high = num.bounds(*one.error_ends, one.limit)
        start = f"On average the raw score by at least {low} points, the rounded score by at most {high}."
    mostly = {
        "low": "Mostly the model underpredicts: it",
        "high": "Mostly the model overpredicts: it",
        "unclear": "On balance it is not shown to be off: the model",
    }.get(facts.gap_side(record) or "", "The model")
    if facts.lost(record):
        return say(f"The gap is {gap_guaranteed(record, one)} points. {happened(record, predicted, observed)}.")
    return say(f"{of_known(record, start)} {mostly} predicts {predicted} in 100, and {observed} in 100 happened.")


# ---- the reliability figure ----


def score(record: AuditRecord) -> ByVariable:
    return score_view(bins_of(record.curve("bins")), record.curve("reliability"))


def smooth(record: AuditRecord) -> bool:
    return bool(record.curve("reliability").columns.get("gap"))


def figure(record: AuditRecord) -> doc.Figure:
    limit, bins, by_variable = facts.limit_of(record), bins_of(record.curve("bins")), score(record)
    low, high = (f"{v:g}" for v in by_variable.across)
    top, digits, finds = by_variable.top(limit), digits_of(by_variable.across), finding(record)
    diagram = svg.cross(bins, by_variable.across, stated(record))
    cross = replace(diagram, marks=(HAPPENED, SAYS, *diagram.marks))
    drawn = svg.gaps(by_variable, limit, top, facts.noun(record))
    gaps = replace(drawn, marks=(*ABOVE, SAYS, *drawn.marks), ruled=True)
    of_cross = "Reliability diagram: what happened against what the model says, one dot a range of the score."
    of_cross = " ".join((of_cross, *(f"{text}." for text in stated(record))))
    of_gaps = f"{GAP}, by score. {finds}."
    kept = f"Ranges: all {len(bins)} hold simultaneously, {together(record)}."
    if smooth(record):
        many = ", if clusters are many" if "clusters" in record.curve("reliability").settings else ""
        kept = f"Band: holds the whole curve, {together(record)}{many}."
    start = float(by_variable.line[len(by_variable.line) * 4 // 5].x or 0.0)
    cut = any(max(-p.low, p.high) * 100 > top for p in by_variable.line)
    form = "Where the model says {0}%, {2} in 100 happened: {3} points ({4}), {side}. "
    form += f"{{5}} {facts.noun(record)} in {{6}}."
    return doc.Figure(
        panels=(
            doc.Panel(
                RATES,
                svg.plot(cross, of_cross, low, high, "cross"),
                small=f"a dot is the mean of a range; its area, {facts.noun(record)}",
            ),
            doc.Panel(GAP, svg.plot(gaps, of_gaps, low, high, "score")),
        ),
        key=(),
        caption=say(f"{kept} {reading(smooth(record), by_variable.across, cut)}"),
        id="fig-reliability",
        title=finds,
        readout=doc.Readout(
            "Read the figure by score", low, high, f"{100 * start:.4f}", form, tuple(DIRECTIONS.values())
        ),
        numbers=_tables(record, by_variable, bins, digits),
    )


def stated(record: AuditRecord) -> tuple[str, ...]:
    """What a reliability diagram states: slope, intercept, O/E, Brier score and C, as far as the record has them."""
    known = ((word, record.measures.get(name), MEASURES[name][2] or 1) for name, word in STATED.items())
    return tuple(f"{word} {num.decimals(e.value, digits)}" for word, e, digits in known if e is not None)


def no_figure(record: AuditRecord) -> Text:
    one, check = record.everyone, facts.check_of(record, "reliability")
    counts = strong(f"No curve: {num.count(one.rows)} {facts.noun(record)}, {num.count(one.events)} events.")
    why = "A curve needs at least 50 expected events and 50 expected non-events."
    if not facts.few(record) and check is not None and check.status in ("not-applicable", "not-run"):
        why = sentence(check.reason or "it was not drawn")
    return say(counts, f" {why} The certified range above is still valid.")


def finding(record: AuditRecord) -> str:
    by_variable = score(record)
    if smooth(record):
        shown_off = by_variable.p_value <= float(record.settings["alpha"])
        return curve_finding(by_variable.runs if shown_off else None, digits_of(by_variable.across))
    off, total = bins_off(record), len(by_variable.line)
    if not off:
        return f"In none of {_ranges(total)} shown to be off"
    return f"Shown to be off in {off} of {_ranges(total)}"


def _ranges(total: int) -> str:
    return f"{num.count(total)} {'range' if total == 1 else 'ranges'} of the score"


def curve_finding(stretches: Sequence[Stretch] | None, digits: int) -> str:
    """What the curve shows, by where its band excludes zero; None where the test of the whole found nothing."""
    if stretches is None:
        return "At no score shown to be off"
    if not stretches:
        return "Off as a whole, but at no single score far enough to be shown off there"
    reported: list[str] = []
    for where, words in (("low", "underpredicts"), ("high", "overpredicts")):
        spans = [_span(s, digits - 1) for s in stretches if s.side == where]
        if spans:
            more = f"{cardinal(len(spans) - 4)} more stretch{'' if len(spans) == 5 else 'es'}"
            listed = f"{', '.join(spans[:4])} and {more}" if len(spans) > 4 else joined(spans)
            reported.append(f"{words} {'where it says' if not reported else 'at'} {listed}")
    return f"{capital('; '.join(reported))}"


def _span(stretch: Stretch, digits: int) -> str:
    low, high = (num.nearest(v, digits) for v in (stretch.low, stretch.high))
    return f"about {low}%" if low == high else f"{low}% to {high}%"


def reading(smooth: bool, across: Window, cut: bool) -> str:
    at, gap = across[0] + 0.7 * (across[1] - across[0]), 0.02 * (across[1] - across[0])
    of = 100 if gap >= 1 else 1_000 if gap >= 0.1 else 10_000
    happened = num.count(round((at + gap) * of / 100))
    words = f"At {at:g}%, a gap of +{gap:g}: it happened to {happened} of {num.count(of)} such."
    what = "band" if smooth else "range"
    return f"{words} A {what} at the edge goes on beyond it." if cut else words


def _tables(record: AuditRecord, by_variable: ByVariable, bins: Sequence[Bin], digits: int) -> tuple[doc.Table, ...]:
    heads = ("Score, %", *HEADS[:3], HEADS[3] if by_variable.line[0] not in bins else "Range of the gap, points")
    rows, rounded = [], facts.published(record)
    for p in by_variable.line:
        b = p if isinstance(p, Bin) else next((b for b in bins if float(p.x or 0.0) <= b.end), bins[-1])
        span = f"{b.start * 100:.3g}–{b.end * 100:.3g}%"
        rows.append(
            (
                num.nearest(float(p.x or 0.0), digits),
                *cells(p, digits, rounded),
                num.count(b.rows),
                span,
            )
        )
    return (doc.number_table("", (*heads, f"{capital(facts.noun(record))} in range", "Range of the score"), rows),)


# ---- what is certified ----


def certified(record: AuditRecord) -> doc.Table:
    kept = certificates(record)
    shared = f" All assume {kept[0][-1]}." if len({assumes for *_, assumes in kept}) == 1 else ""
    heads = (
        doc.Column(say("Quantity"), brief="Certified"),
        doc.Column(say("Points"), "r"),
        doc.Column(say("About")),
        doc.Column(say("Assumes"), "quiet", where=doc.MARKDOWN if shared else doc.WHOLE),
    )
    rows = [(a, b, c, doc.Cell(say(d), brief=say(code(d)))) for a, b, c, d in kept]
    caption = f"What is certified, and about which score. Each line holds separately, {together(record)}.{shared}"
    gap, most = record.estimates.get("gap"), record.everyone.upper.interval.high
    if gap is not None and max(gap.interval.high, -gap.interval.low) > most:  # both hold, each by itself
        caption += " A gap is no larger than the calibration error: where its line goes further, it is only less exact."
    return doc.number_table(caption, heads, rows, "cards")


def certificates(record: AuditRecord) -> list[tuple[str, str, str, str]]:
    """Each quantity, points, what it is about and assumes; an estimate not known here is shown by its name."""
    one = record.everyone
    low, high = num.bounds(*one.error_ends, one.limit)
    rows = [
        ("Calibration error, at least", low, "the raw score", assumption(one.lower)),
        ("Calibration error, at most", high, str(one.upper.settings["about"]), assumption(one.upper)),
    ]
    rows = rows if one.proved_above else rows[:1]
    about = {
        "distance": ("Distance from calibration, at most", "the raw score, nothing changed"),
        "jittered": ("Calibration error with noise added, at most", "the raw score plus a little noise"),
        "gap": ("Overall gap", f"the raw score, of {whose_gaps(record)}"),
    }
    if (worst := record.estimates.get("worst_group")) is not None:
        what = "Gap" if worst.settings.get("judge") == "gap" else "Calibration error"
        about["worst_group"] = (f"{what} of any group shown, at most", str(worst.settings.get("about", "")))
    for name, (quantity, subject) in about.items():
        e = record.estimates.get(name)
        if e is not None:
            low, high = num.signed_range(e.interval.low, e.interval.high)
            shown = f"{low} to {high}" if name == "gap" else num.upper_bound(e.interval.high)
            rows.append((quantity, shown, subject, assumption(e)))
    if (e := record.estimates.get(facts.SUBGROUPS)) is not None:
        for end, word, value in (("min_size", "least", e.interval.low), ("clear_size", "most", e.interval.high)):
            shown = num.lower_bound(value) if word == "least" else num.upper_bound(value)
            size = people_share(float(e.settings[end]))
            of = f"the raw score, subgroups of {size} of the {facts.noun(record)} or more"
            if chosen := facts.screened(record):
                tested = f"{num.count(chosen['rows_tested'])} {facts.noun(record)} tested"
                of += f", by the {num.count(len(chosen['chosen']))} columns searched, among the {tested}"
            rows.append((f"Gap of the worst unlisted subgroup, at {word}", shown, of, assumption(e)))
    if (e := record.estimates.get("klce")) is not None:
        shown = f"{e.interval:.4f}".replace("-", num.MINUS)
        subject = f"the raw score, given the scores and attributes of these {facts.noun(record)}"
        rows.append(("Kernel local calibration error (KLCE²), no unit", shown, subject, assumption(e)))
    if (e := record.estimates.get(facts.ALL_CLASSES)) is not None:
        shown = num.span(e.interval.low, e.interval.high)
        subject = "every class’s probability, raw from below, rounded from above"
        rows.append(("Calibration error of all classes, added up", shown, subject, assumption(e)))
    for name in sorted(record.certified.keys() - about.keys() - {facts.SUBGROUPS, "klce", facts.ALL_CLASSES}):
        e = record.certified[name]
        rows.append((sanitize(name), num.interval(e).removesuffix(" points"), "", assumption(e)))
    return rows


def assumption(estimate: Estimate) -> str:
    """What an estimate assumes, and whether it is exact at this number of rows."""
    rough = "; many rows" if estimate.interval.guarantee == "asymptotic" else ""
    return sanitize(estimate.assumes) + rough


# ---- the standard measures, none of them certified ----


def measures(record: AuditRecord) -> doc.Table:
    """The standard measures in the order of this page; one not known here is shown as it is."""
    known = [k for k in MEASURES if k in record.measures]
    others = sorted(k for k in record.measures if k not in MEASURES)
    heads = (
        doc.Column(say("Measure"), brief="Standard measure, not certified"),
        doc.Column(say("Value"), "r"),
        doc.Column(say("Range"), "r"),
        doc.Column(say("What it says"), "quiet"),
    )
    rows = (_measure(k, record.measures[k]) for k in (*known, *others))
    return doc.number_table(measures_note(record), heads, rows, "cards")


def _measure(name: str, e: Estimate) -> tuple[str, ...]:
    title, says, digits = MEASURES.get(name, (sanitize(name), "", None if e.unit == "probability" else 4))
    if digits is None:
        value, low, high = (num.nearest(v) for v in (e.value, e.interval.low, e.interval.high))
        value = f"{value} points"
    else:
        value, low, high = (num.decimals(v, digits) for v in (e.value, e.interval.low, e.interval.high))
    return title, value, num.between(low, high), says


def measures_note(record: AuditRecord) -> str:
    levels = {e.interval.level for e in record.measures.values()}
    kept = f"{num.percent(levels.pop())}% ranges" if len(levels) == 1 else "Ranges"
    return f"{kept} are approximate and each holds separately; no verdict rests on them."


# ---- what the section adds to others ----

AT_LEAST = (
    "Part of the {rows}, chosen at random, estimates where the raw score underpredicts or overpredicts; "
    "the other {rows} test that estimate."
)
AT_MOST = "At each {step}, what happened is compared with what it says, and an allowance for chance is added."
FURTHER = {
    "distance": ("Distance", "The error of a coarser or noisier score, plus how far that is from the raw score."),
    "jittered": ("Noise", "A little random noise, of width {width}, is added to the score on paper only."),
    "gap": ("Overall gap", "Events that happened minus events expected, {weighted}over the number of people."),
}
GUARANTEES = {
    "finite-sample": "True at this number of {rows}, not only for very many.",
    "asymptotic": "Approximate; true in the limit of very many {rows}.",
    "as published": "As its authors published it.",
}
BINS = (
    "People with similar scores are put together; each gap has a range, and all ranges of the figure hold "
    "simultaneously."
)
CURVE = (
    " The line averages the gap over neighbouring scores (at most {reach} points away, near ones more). Its band comes "
    "from {null}: for a calibrated model it takes in zero everywhere in {often}; where the model is off it holds the "
    "smoothed gap about as often, approximately. Bumps narrower than the average are not seen. Function "
)


def methods(record: AuditRecord) -> Iterator[doc.Entry]:
    one, exact = record.everyone, "values" in record.data["display"]
    step = "value of the score" if exact else f"rounding step of {num.step(record.settings['steps'])}"
    how = {"width": f"{float(record.settings.get('bandwidth') or 0.0):g}", "weighted": weighing(record).each}
    if facts.lost(record):
        yield doc.Entry("Rows lost", how_lost(record))
    else:
        yield doc.Entry("At least", made(AT_LEAST, one.lower, record))
        yield doc.Entry("At most", made(AT_MOST.format(step=step), one.upper, record))
    yield from missing_labels.methods(record)
    for name, (term, text) in FURTHER.items():
        if name in record.estimates and not facts.lost(record):
            yield doc.Entry(term, made(text.format(**how), record.estimates[name], record))
    curve = record.curve("reliability")
    s = curve.settings
    if "p_value" not in s:
        yield doc.Entry("Figure", say(BINS))
        return
    times, of = num.confidence(1 - float(s["alpha"]))
    reach = num.nearest(float(s["bandwidth"]), 1 if s["bandwidth"] >= 0.01 else 3)
    by = independent(record)
    often = f"{by.least} {times} of {of} audits, {by.when}"
    words = CURVE.format(reach=reach, null=chance(record, int(s["draws"])), often=often)
    yield doc.Entry("Figure", say(BINS + words, code(curve.method), "."))


def made(text: str, estimate: Estimate, record: AuditRecord) -> Text:
    reported = f"{text} {GUARANTEES[estimate.interval.guarantee]}".format(rows=independent(record).many)
    return say(f"{reported} Function ", code(estimate.method), ".")


# ---- how to read the checks of the section ----


def bins_off(record: AuditRecord) -> int:
    c = record.curve("bins").columns
    ends = zip(c.get("low", ()), c.get("high", ()), strict=True)
    return sum(facts.side(low, high) != "unclear" for low, high in ends)


def _everyone(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    one = record.everyone
    assumes = one.gap.assumes if facts.by_gap(record, "everyone") else one.upper.assumes
    shown = f"{judged_range(one)} points"
    return OutlineCheck(
        f"Everyone: {error_at_most(record, 'everyone')}", shown, f"certified; assumes {sanitize(assumes)}"
    )


def _gap(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    one, mean_gap = record.everyone, record.estimates.get("gap")
    if mean_gap is None:
        return OutlineCheck("Overall gap", "", "does the model underpredict or overpredict on average?", False)
    low, high = num.signed_range(mean_gap.interval.low, mean_gap.interval.high)
    predicted, observed = num.rates(one.expected / one.rows, one.events / one.rows, facts.decimals(record))
    meaning = f"the model says {predicted} in 100; {observed} happened"
    meaning = happened(record, predicted, observed) if facts.lost(record) else meaning
    numbers = f"{num.gap(mean_gap.value)} points ({low} to {high})"
    return OutlineCheck("Overall gap", numbers, meaning, facts.gap_side(record) != "unclear")


def _bound(name: str, question: str, meaning: str) -> Callable[[CheckRecord, AuditRecord], OutlineCheck]:
    def read(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
        e = record.estimates.get(name)
        return OutlineCheck(
            question, "" if e is None else f"at most {num.upper_bound(e.interval.high)} points", meaning
        )

    return read


def _reliability(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    """Whether error along the score was found: by the test of the whole curve, or without a curve by a bin."""
    question, s = "Error by score", record.curve("reliability").settings
    off, total = bins_off(record), len(record.curve("bins").columns.get("predicted", ()))
    numbers = f"off in {off} of {_ranges(total)}"
    if s.get("p_value") is None:
        return OutlineCheck(question, numbers, f"all {total} ranges hold simultaneously, {together(record)}", off > 0)
    p = float(s["p_value"])
    numbers = f"{num.p_value(p, draws=int(s['draws']))}; {numbers}"
    shown = p <= float(record.settings["alpha"])
    return OutlineCheck(question, numbers, f"test of the whole curve against {independent(record).chance}", shown)


def _measured(question: str) -> Callable[[CheckRecord, AuditRecord], OutlineCheck]:
    return lambda check, _: OutlineCheck(question, num.interval(check.estimate), "")


NOISE = "the noise adds error of its own; no evidence against the model"

DECLARED = (
    Declared(
        id="overall",
        order=20,
        nav="How far off?",
        heading="How far off are the probabilities?",
        nodes=overall,
        verdict=lambda record: marked(record, "everyone"),
        methods=methods,
        checks={
            "error-everyone": _everyone,
            "missing-labels": missing_labels.check,
            "gap": _gap,
            "distance": _bound("distance", "Distance from calibration", "how far the scores would have to move"),
            "jittered": _bound("jittered", "Calibration error with noise added", NOISE),
            "reliability": _reliability,
            **{name.replace("_", "-"): _measured(title) for name, (title, *_) in MEASURES.items() if name != RANKED},
        },
    ),
)
