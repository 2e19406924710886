"""What it means for decisions: at each threshold who is acted on, what happened to them, and what that is worth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.report import document as doc
from calibrant.report import numbers as num
from calibrant.report import svg
from calibrant.report.findings import Line, noun, published
from calibrant.report.outline import Declared, OutlineCheck
from calibrant.report.places import percent, signed
from calibrant.report.spans import Text, clipped, code, literal, say, shown, strong
from calibrant.report.wording.decisions import (
    CODE,
    EVERYONE,
    RATE_WORDS,
    Acted,
    acted,
    apart_reported,
    at_least,
    differences_at,
    percent_of,
    rates_at,
    worst_reported,
)
from calibrant.report.wording.terms import in_json
from calibrant.results import Curve

BELOW = 0.25  # of the height above zero: acting on everyone soon loses more than any picture holds
MANY = 20  # lines of the table


def drawn(curve: Curve, thresholds: Sequence[float], label: str) -> svg.Svg:
    """Draw net benefit in its band over the thresholds, with acting on everyone, cut where it leaves."""
    c = curve.columns
    top = max(max(c["high"]), max(c["treat_all"]), 0.01) * 1.05
    low = min(max(min(c["low"]), -top), -BELOW * top)

    def at(x: float, y: float) -> svg.At:
        return round(x * svg.SIZE), round((top - max(low, min(top, y))) / (top - low) * svg.SIZE)

    lines = {k: [at(x, y) for x, y in zip(c["threshold"], c[k], strict=True)] for k in ("low", "high", "net_benefit")}
    everyone = [at(x, y) for x, y in zip(c["threshold"], c["treat_all"], strict=True) if y >= low]
    shapes = [("band", svg.area(lines["low"], lines["high"])), ("zero", f"M0 {at(0, 0)[1]}h{svg.SIZE}")]
    shapes += [("limit", f"M{at(t, 0)[0]} 0v{svg.SIZE}") for t in dict.fromkeys(thresholds)]
    shapes += [("says", svg.path(everyone)), ("curve", svg.path(lines["net_benefit"]))]
    step = next((v for v in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if (top - low) / v <= 6), (top - low) / 5)
    up = tuple(
        (percent(at(0, k * step)[1] / svg.SIZE), signed(round(100 * k * step, 6)))
        for k in range(math.ceil(low / step), math.floor(top / step) + 1)
    )
    across = tuple((f"{v}%", f"{v}%") for v in (0, 25, 50, 75, 100))
    return svg.plot(svg.Plot(up, across, tuple(s for s in shapes if s[1])), label, "", "")


def numbers(curve: Curve) -> doc.Table:
    c = curve.columns
    heads = ("Threshold", "Net benefit per 100", "Its band", "Acting on everyone", "Gain over that, band")
    rows = []
    for i in range(0, len(c["threshold"]), max(1, len(c["threshold"]) // MANY)):
        band = " to ".join(num.signed_range(c["low"][i], c["high"][i]))
        gain = " to ".join(num.signed_range(c["over_all_low"][i], c["over_all_high"][i]))
        worth = (num.gap(c["net_benefit"][i]), band, num.gap(c["treat_all"][i]), gain)
        rows.append((f"{round(100 * c['threshold'][i], 6):g}%", *worth))
    level = num.percent(float(curve.settings["level"]))
    return doc.number_table(f"Bands hold at all thresholds at once, {level}%, {kind(curve)}.", heads, rows)


def kind(curve: Curve) -> str:
    """What the bands of a curve are: certified of few clusters, else approximate; an audit's settings say it."""
    reported = set(curve.columns.get("guarantee", (curve.settings.get("guarantee"),)))
    if len(reported) > 1:
        return "certified where there are few clusters, else approximate"
    return "certified" if reported == {"finite-sample"} else "approximate"


CURVE = "decision_curve"
REPORTED = 0.001  # a loss that is written as more than nothing
EACH_MOST = 60  # lines of a table; the others are in the JSON
HEADS = ("acted on", "of them non-events", "events not acted on", "net benefit", "over acting on all", "lost to error")
LABEL = "Net benefit against the threshold, with acting on everyone and on nobody."


def decisions(record: AuditRecord) -> Iterator[doc.Node]:
    lines = acted(record)
    if not lines:
        return
    if worst := worst_reported(record):
        yield doc.Paragraph(worst, "answer")
    if apart := apart_reported(record):
        yield doc.Paragraph(apart, "answer")
    yield doc.Paragraph(say(_scope(record)))
    for threshold in dict.fromkeys(line.threshold for line in lines):
        here = [line for line in lines if line.threshold == threshold]
        yield doc.Heading(f"Acting from {percent_of(threshold)}% on", 3)
        yield doc.Paragraph(_sentence(here[0], noun(record)))
        yield _table(record, here)
        if unshown := int(record.curve(CODE).settings["groups"]) - len(here) + 1:
            yield doc.Paragraph(
                say(f"{num.count(unshown)} groups are not shown: too few on one side, or recoverable by subtraction."),
                "note",
            )
        yield from _rates(record, threshold)
    if (curve := record.curve(CURVE)).columns:
        words = (
            f"Solid: by the score, with its {kind(curve)} band at all thresholds at once. Dashed: acting on everyone. "
            "0: on nobody."
        )
        panel = doc.Panel("Net benefit per 100", drawn(curve, [v.threshold for v in lines], LABEL), axis="threshold")
        yield doc.Figure(panels=(panel,), key=(), caption=say(words), numbers=(numbers(curve),))


def _scope(record: AuditRecord) -> str:
    s = record.curve(CODE).settings
    costs = s["costs"]
    priced = f"Set by costs of {costs[0]:g} (acting on no event) and {costs[1]:g} (an event left). " if costs else ""
    level = num.percent(1.0 - float(s["alpha"]))
    return (
        f"{priced}Ranges of errors and of net benefit are certified and simultaneous, {level}%, in addition to those "
        f"of the verdict, at {level}% too.{' Numbers of people are multiples of five.' if published(record) else ''}"
    )


def _sentence(one: Acted, people: str) -> Text:
    reported, parts = strong(f"{num.count(one.acted)} of {num.count(one.rows)} {people} are acted on"), []
    if one.wrong:
        parts.append(f"; of them {_range(one.wrong)} are non-events")
    if one.missed:
        parts.append(f"; of the others {_range(one.missed)} are events")
    if one.acts_from != one.threshold:
        parts.append(f". Counts of this size act from {percent_of(one.acts_from)}% on")
    return say(reported, *parts, ".")


def _range(ends: tuple[float, float, float]) -> str:
    return f"{num.lower_bound(ends[1])}% to {num.upper_bound(ends[2])}%"


def _cell(ends: tuple[float, float, float]) -> str:
    return f"{num.span(ends[1], ends[2])}%"


def _table(record: AuditRecord, lines: list[Acted]) -> doc.Table:
    rows = []
    for one in lines[:EACH_MOST]:
        cells = (
            f"{num.count(one.acted)} of {num.count(one.rows)}",
            _cell(one.wrong) if one.wrong else "–",
            _cell(one.missed) if one.missed else "–",
            " to ".join(num.signed_range(*one.net_benefit[1:])),
            " to ".join(num.signed_range(*one.over_all[1:])),
            num.span(one.regret[1], one.regret[2]),
        )
        rows.append((_named(one.name), *cells))
    rest = in_json(len(lines) - EACH_MOST, "more groups")
    caption = (
        f"The last three in true positives per 100 {noun(record)}. Lost to error: what the best decisions by the same "
        f"score would bring back.{rest}"
    )
    return doc.number_table(caption, ("Who", *HEADS), rows, "cards")


def _rates(record: AuditRecord, threshold: float) -> Iterator[doc.Node]:
    """The rates of everyone and groups at a threshold, how far groups are apart, and the certified ranges of both."""
    rates, apart = rates_at(record, threshold), differences_at(record, threshold)
    if not rates:
        return
    level = num.percent(1.0 - float(record.settings["alpha"]))
    heads = ("Who", *(f"{word[0].upper()}{word[1:]}, %" for word in RATE_WORDS.values()))
    rest = in_json(len(rates) - EACH_MOST, "more groups")
    few = f" None is shown of fewer than {num.CLEAR} people." if published(record) else ""
    shown_rates = list(rates.items())[:EACH_MOST]
    together = f"Rates with {level}% intervals. Those of one rate hold simultaneously over groups"
    yield doc.Paragraph(say(f"{together}; they are not certified.{few}"))
    yield doc.number_table(
        f"Rates from {percent_of(threshold)}% on.{rest}",
        heads,
        [(_named(name), *(_estimated(by[rate]) for rate in RATE_WORDS)) for name, by in shown_rates],
        "cards",
    )
    if apart:
        yield doc.Paragraph(
            say(
                "Largest difference between groups, in points, and the lowest rate over the highest. The ranges hold "
                "whichever groups these are."
            )
        )
        yield doc.number_table(
            f"Differences between groups from {percent_of(threshold)}% on.",
            ("Rate by group", "Highest, %", "Lowest, %", "Difference", "Certified", "Ratio"),
            [_apart(one) for one in apart],
            "cards",
        )
    yield doc.Details(
        f"Certified ranges of the rates from {percent_of(threshold)}% on",
        (
            doc.Paragraph(
                say(f"Certified ranges of all rates hold simultaneously, {level}%, with an alpha of their own.")
            ),
            doc.number_table(
                "Certified ranges, %.",
                heads,
                [(_named(name), *(_certified(by[rate]) for rate in RATE_WORDS)) for name, by in shown_rates],
                "cards",
            ),
        ),
    )


def _named(name: str) -> Text:
    return say("Everyone") if name == EVERYONE else say(literal(clipped(shown(name))))


def _estimated(one: Line) -> str:
    if one["value"] is None:
        return num.NO_GAP
    value = num.nearest(one["value"])
    return value if one["low"] is None else f"{value} ({num.lower_bound(one['low'])} to {num.upper_bound(one['high'])})"


def _certified(one: Line) -> str:
    if one["value"] is None:
        return num.NO_GAP
    return num.span(one["guaranteed_low"], one["guaranteed_high"])


def _apart(one: Line) -> tuple[str | Text, ...]:
    """One row of the table of differences."""
    ends = (one[f"{name}_{end}"] for name in ("guaranteed",) for end in ("low", "high"))
    difference, ratio = num.nearest(one["difference"]), num.NO_GAP
    if one["low"] is not None:
        difference += f" ({num.lower_bound(one['low'])} to {num.upper_bound(one['high'])})"
    if one["ratio"] is not None:
        ratio = f"{one['ratio']:.2f}"
        if one["ratio_low"] is not None:
            low, high = (
                f"{f(100 * one[k]) / 100:.2f}" for f, k in ((math.floor, "ratio_low"), (math.ceil, "ratio_high"))
            )
            ratio += f" ({low} to {high})"
    by = f"{one['variable']} = "
    who = (
        say(literal(clipped(shown(one[k].removeprefix(by)))), f" {num.nearest(one[f'{k}_rate'])}")
        for k in ("highest", "lowest")
    )
    certified = num.between(*(f(v) for f, v in zip((num.lower_bound, num.upper_bound), ends, strict=True)))
    return say(RATE_WORDS[one["rate"]], " by ", literal(shown(one["variable"]))), *who, difference, certified, ratio


def _check(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    lines = acted(record)
    reported = f"from {percent_of(lines[0].threshold)}% on: {num.count(lines[0].acted)} are acted on" if lines else ""
    costs = [line for line in lines if line.regret[1] >= REPORTED]
    meaning = f"error certified to cost net benefit {at_least(costs)}" if costs else "what acting there means"
    return OutlineCheck("What does acting from a threshold on mean?", reported, meaning)


RATES = {  # by whether rows share clusters: rates of errors, and those of groups
    False: ("by Clopper-Pearson", "intervals and certified ranges by Clopper-Pearson"),
    True: (
        "by test martingales on whole clusters",
        "intervals with the variance of clusters (Korn and Graubard), certified ranges by bets on whole clusters",
    ),
}
ABOUT_RATES = (
    "Selection rate, true and false positive rate and precision, as fairness libraries define them: {}. "
    "Certified ranges have another alpha of their own, shared in the same way. The largest difference lies between "
    "the ranges of all groups' rates, so that it needs none."
)


def methods(record: AuditRecord) -> tuple[doc.Entry, ...]:
    lines = acted(record)
    if not lines:
        return ()
    rates, groups = RATES["cluster" in str(record.curve(CODE).settings["assumes"])]
    text = (
        f"Rates of errors on each side of a threshold {rates}; the loss to error by bets on other uses of the score "
        "from below, on all uses at once from above; net benefit by bets. Half of an alpha of its own is everyone's, "
        "half the groups', shared equally by thresholds, groups and ends. Functions "
    )
    text = f"{ABOUT_RATES.format(groups)} {text}" if rates_at(record, lines[0].threshold) else text
    functions = (code("measure.net_benefit"), ", ", code("measure.regret"), ", ", code("diagnose.decision_curve"))
    return (doc.Entry("Decisions", say(text, *functions, ".")),)


def words(record: AuditRecord) -> tuple[doc.Entry, ...]:
    if not acted(record):
        return ()
    rates = (
        ("selection rate", "Share of people who are acted on."),
        ("true positive rate", "Share of those with the event who are acted on: sensitivity, recall."),
        ("false positive rate", "Share of those without the event who are acted on."),
        ("precision (PPV)", "Share of those acted on who have the event: positive predictive value."),
    )
    text = (
        "True positives, less false positives at the weight that the threshold sets: at 20% four false ones weigh as "
        "much as a true one. Acting on nobody has 0."
    )
    return (doc.Entry("net benefit", say(text)), *(doc.Entry(term, say(line)) for term, line in rates))


DECLARED = (
    Declared(
        id="decisions",
        order=33,
        nav="For decisions?",
        heading="What it means for decisions",
        nodes=decisions,
        methods=methods,
        words=words,
        checks={CODE: _check},
        there=lambda record: bool(acted(record)),
    ),
)
