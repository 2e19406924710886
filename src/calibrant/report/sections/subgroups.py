"""The section about unlisted subgroups: what is certified of all of them, a few distinct ones, and where one lies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.report import document as doc
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report import svg
from calibrant.report.outline import Declared, OutlineCheck
from calibrant.report.places import end_of
from calibrant.report.spans import BREAK, Span, Text, clipped, code, lines, literal, say, shown
from calibrant.report.wording.clusters import independent
from calibrant.report.wording.missing_labels import OF_KNOWN, partly
from calibrant.report.wording.parts import marked, subgroups_reported
from calibrant.report.wording.terms import (
    LOOKED_AT,
    TOO,
    VERDICTS,
    capital,
    cardinal,
    p_reported,
    people_share,
    together,
)
from calibrant.results import Estimate
from calibrant.sanitize import sanitize

HEADING = "Is a subgroup off that was not listed?"
HALVES = 10  # of the people, at random, in each of which subgroups are looked for again
BESIDES = 2  # attributes that tell the people of a subgroup apart, besides its rule; more are in the JSON
LABEL = 32  # characters of a label of the map
WHOLE_POINTS = 0.03  # where the largest gap of a map is so large, its cells tell whole points
NOT_SHOWN = "No subgroup can be shown: those that are farthest off are too small, or leave too few outside."


def subgroups(record: AuditRecord) -> Iterator[doc.Node]:
    absent = facts.subgroups_state(record) == "absent"
    of = say(OF_KNOWN) if partly(record) and not absent else ()
    yield doc.Paragraph((*of, *subgroups_reported(record)), "quiet" if absent else "answer")
    e, result = record.estimates.get(facts.SUBGROUPS), reported(record)
    if e is None or facts.subgroups_state(record) == "absent":
        return
    read: list[doc.Node] = [doc.Paragraph(say(looked_at(record, e)))]
    if result:
        yield table(record, result)
        read.append(doc.Paragraph(say(note(record, result))))
        reported_apart = [say(literal(shown(r["rule"])), f": {besides(r['besides'])}") for r in result if r["besides"]]
        if reported_apart:
            read += [doc.Paragraph(say("What more of them have than others:")), doc.Items(tuple(reported_apart))]
    elif facts.SUBGROUPS in record.curves:
        yield doc.Paragraph(say(NOT_SHOWN), "quiet")
    if by := searches(record):
        read.append(doc.Paragraph(by))
    if drawn := figure(record):
        yield drawn
    yield doc.Details("What a subgroup is, and how these were found", tuple(read), id="subgroups-read", where=doc.PAGE)
    for text in (looked_at(record, e), note(record, result) if result else ""):
        yield doc.Paragraph(say(text), "note", doc.MARKDOWN if text else doc.NOWHERE)
    yield doc.Paragraph(by, "note", doc.MARKDOWN if by else doc.NOWHERE)


def reported(record: AuditRecord) -> list[facts.Line]:
    """The distinct subgroups, those found first before those found once the first are taken out."""
    curve = record.curve(facts.SUBGROUPS)
    besides = curve.settings.get("besides") or ()
    rows = enumerate(facts.lines_of(curve))
    return [{**row, "besides": besides[i] if i < len(besides) else ()} for i, row in rows]


def looked_at(record: AuditRecord, e: Estimate) -> str:
    least, s, tested = num.percent(float(e.settings["min_size"])), e.settings, facts.tested_rows(record)
    among = "" if tested is None else f", among the {num.count(tested)} {facts.noun(record)} tested"
    return (
        "A subgroup is everyone with the same one or two attributes, such as ages 40 to 50 with scores over 80%. All "
        f"{num.count(int(s['subgroups']))} subgroups were looked at that have {least}% of the {facts.noun(record)} or "
        f"more, of "
        f"one attribute or of {cardinal(int(s['order']))} among {cardinal(len(s['attributes']))}, the score being "
        f"one{among}. Which subgroups there are was fixed before any outcome was read, so the ranges below, and “at "
        f"least”, hold for all of them at once, {together(record)}; and so, separately, does “no subgroup is off by "
        "more than”."
    )


# ---- the distinct subgroups ----


def table(record: AuditRecord, results: Sequence[facts.Line]) -> doc.Table:
    limit, judged = facts.limit_of(record), facts.limit_of(record) is not None
    top = end_of(100 * max(*(max(abs(r["low"]), abs(r["high"])) for r in results), 1.2 * (limit or 0.0)))
    axis = f"Gap, {num.MINUS}{top:g} to +{top:g}\N{NO-BREAK SPACE}points"
    axis += f"; dashed: limit ±{num.limit_points(limit)}" if limit is not None else ""
    columns = (
        doc.Column(say("Subgroup")),
        doc.Column(say(axis), "c", where=doc.PAGE),
        doc.Column(lines("Gap and its", "range, points"), "r iv"),
        doc.Column(say("Verdict" if judged else "The model says"), "vd"),
    )
    caption = (
        "A few distinct subgroups, the most evident first; their ranges, and those of all others, hold simultaneously."
    )
    if not any(r["floor"] for r in results):
        caption = f"{LOOKED_AT}. {caption}"
    return doc.Table(
        columns,
        tuple(_row(r, limit, top, record) for r in results),
        caption,
        "forest subgroups",
        id="subgroups-reported",
    )


def _row(r: facts.Line, limit: float | None, top: float, record: AuditRecord) -> doc.Row:
    digits = facts.decimals(record)
    low, high = num.signed_range(float(r["low"]), float(r["high"]), digits)
    kind, word = verdict(r, limit)
    name = literal(shown(r["rule"]))
    again = f"found again in {round(HALVES * float(r['stability']))} of {HALVES} halves"
    rows = facts.fives(record, r["rows"], searched=True)
    says, happened = (num.reported_rate(float(r[k]), rows, digits) for k in ("predicted", "observed"))
    people = f"{num.count(r['rows'])} {facts.noun(record)}, {people_share(float(r['share']))}"
    first, more = f"{people}: {says} predicted, {happened} happened", [again]
    if r["gap_left"] is not None:
        more[0] += f"; without those above: {num.gap(float(r['gap_left']))}"
    also = f"; more of them: {besides(r['besides'])}" if r["besides"] else ""
    under = [span for text in (first, *more) for span in (BREAK, Span(capital(text), "quiet"))]
    brief = say(name, f" ({'; '.join((first, *more))}{also})")
    at, gap, end = (float(r[k]) for k in ("low", "gap", "high"))
    return doc.row(
        doc.Cell(say(name, *under), brief=brief),
        doc.Cell(sort=f"{gap:.6g}", picture=svg.signed_track(at, gap, end, top, limit, kind)),
        f"{num.reported_gap(gap, rows, digits)} ({low} to {high})",
        doc.Cell(say(word), icon=kind if limit is not None else ""),
    )


def verdict(r: facts.Line, limit: float | None) -> tuple[str, str]:
    """The status of a subgroup, and its word; without a limit, what the model says."""
    side = "low" if r["low"] > 0 else "high" if r["high"] < 0 else "unclear"
    if limit is None:
        return ("undecided" if side == "unclear" else "none"), TOO[side]
    if r["over"]:
        return "over", VERDICTS["over"]
    kind = "within" if max(abs(r["low"]), abs(r["high"])) <= limit else "undecided"
    return kind, VERDICTS[kind]


def besides(results: Sequence[Sequence[Any]]) -> str:
    """What else distinguishes the people of a subgroup, such as "marital = married (61%, of others 38%)"."""
    reported = []
    for attribute, level, inside, outside in results[:BESIDES]:
        reported.append(
            f"{clipped(f'{sanitize(attribute)} {sanitize(level)}', 40)} ({_whole(inside)}, of others {_whole(outside)})"
        )
    return "; ".join(reported)


def _whole(share: float) -> str:
    return f"{num.nearest(share, 0)}%"


def note(record: AuditRecord, results: Sequence[facts.Line]) -> str:
    mean_gap, start = record.estimates.get("gap"), "The gap is what happened minus what the model says"
    everyone = "" if mean_gap is None else f", for everyone {num.gap(mean_gap.value)}"
    counts = "Counts are multiples of five, up or down by chance. " if facts.fives(record, 1, searched=True) else ""
    text = (
        f"{start}{everyone}, of the raw score; its range is certified. {counts}Halves are random halves of the "
        f"{facts.noun(record)}, searched again."
    )
    if mean_gap is not None and all(float(r["low"]) <= mean_gap.value <= float(r["high"]) for r in results):
        text += " No range leaves out everyone’s gap: no subgroup is shown to be off in another way than everyone is."
    if any(r["gap_left"] is not None for r in results):
        text += " “Without those above”: the gap of those in no subgroup above; near zero, it adds little."
    return text


# ---- the map ----


def figure(record: AuditRecord) -> doc.Figure | None:
    """The map of the worst pair of attributes; None where there is none."""
    curve = record.curve("subgroup_map")
    c, axes = curve.columns, curve.settings.get("axes", ())
    if not c.get("gap") or len(axes) != 2:
        return None
    turned = len(axes[0]["labels"]) > len(axes[1]["labels"])  # more room for rows than for columns
    cells = list(zip(c["first"], c["second"], c["gap"], strict=True))
    across, up = (axes[1], axes[0]) if turned else (axes[0], axes[1])
    top = max(max(abs(float(g)) for _, _, g in cells), 1e-9)
    digits = 0 if top >= WHOLE_POINTS else 1
    drawn = tuple(
        (int(b), int(a), float(g) / top, _points(float(g), digits))
        if turned
        else (int(a), int(b), float(g) / top, _points(float(g), digits))
        for a, b, g in cells
    )
    size = len(across["labels"]), len(up["labels"])
    frames = tuple(f for ranges in curve.settings.get("subgroups", ()) for f in _frames(ranges, turned, size))
    names = tuple(clipped(shown(a["name"]), 40) for a in (across, up))
    worst = reported(record)[:1]
    several = len(curve.settings.get("subgroups", ())) > 1
    where = " Outlined: the subgroups." if several else f" Outlined: {worst[0]['rule']}." if worst and frames else ""
    heat = svg.Heat(_labels(across), _labels(up), drawn, frames)
    blank = len(cells) < len(heat.across) * len(heat.up)
    label = f"Map of the gap by {names[0]} and {names[1]}.{where}"
    key = [("over", "happened more often than predicted"), ("under", "less often")]
    key += [("blank", "too few to show")] if blank else []
    key += [("frame", "a subgroup" if several else "the subgroup")] if frames else []
    mask = num.count(facts.mask_of(record))
    caption = "Gaps in points. Single cells are not certified: chance moves them too, small ones the most."
    if blank:
        caption += f" Cells of fewer than {mask} are blank, and some more, so that none follows from totals."
    return doc.Figure(
        panels=(doc.Panel(f"Gap by {names[0]} (across) and {names[1]} (up)", svg.heat(heat, label), axis=names[0]),),
        key=tuple(key),
        caption=say(caption),
        id="fig-subgroups",
        style="mapped",
        title=title(worst, names),
        numbers=(_numbers(c, axes, record),),
    )


def title(worst: Sequence[facts.Line], names: Sequence[str]) -> str:
    off = [r for r in worst if r["low"] > 0 or r["high"] < 0]
    if not off:
        return f"No cell by {names[0]} and {names[1]} is shown to be off"
    side = "underpredicts" if off[0]["low"] > 0 else "overpredicts"
    least = num.lower_bound(float(max(off[0]["low"], -off[0]["high"])))
    return f"{capital(side)} by at least {least} points: {clipped(sanitize(off[0]['rule']))}"


def _points(gap: float, digits: int) -> str:
    text = num.gap(gap, digits)
    return "0" if not text.strip("+0.\N{MINUS SIGN}") else text


def _labels(axis: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple("" if v is None else clipped(shown(v), LABEL) for v in axis["labels"])


def _frames(
    ranges: Sequence[Sequence[int]], turned: bool, size: tuple[int, int]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the rectangles of a subgroup: columns, then rows; two runs of cells make two."""
    first, second = ([r[k : k + 2] for k in range(0, len(r), 2)] for r in ranges)
    for a, b in product(*((second, first) if turned else (first, second))):
        yield int(a[0]), min(int(a[1]), size[0]), int(b[0]), min(int(b[1]), size[1])


def _numbers(c: Mapping[str, Sequence[Any]], axes: Sequence[Mapping[str, Any]], record: AuditRecord) -> doc.Table:
    """The cells, those farthest off for their people first."""
    names = (doc.Column(say(literal(clipped(shown(a["name"]), 40)))) for a in axes)
    heads = (capital(facts.noun(record)), "Model says, in 100", "Happened, in 100", "Gap, points")
    order = sorted(range(len(c["gap"])), key=lambda i: -abs(float(c["gap"][i])) * float(c["rows"][i]) ** 0.5)
    rows: list[tuple[str | Text, ...]] = []
    for i in order:
        labels = (axes[k]["labels"][int(c[name][i])] for k, name in enumerate(("first", "second")))
        cells = (say(literal("" if v is None else clipped(shown(v), 40))) for v in labels)
        few = facts.fives(record, c["rows"][i], searched=True)
        rates = (num.reported_rate(float(c[k][i]), few) for k in ("predicted", "observed"))
        rows.append((*cells, num.count(c["rows"][i]), *rates, num.reported_gap(float(c["gap"][i]), few)))
    return doc.number_table("", (*names, *heads), rows)


# ---- which search found what ----


def searches(record: AuditRecord) -> Text:
    check = facts.check_of(record, facts.SUBGROUPS)
    if check is None or check.outcome is None:
        return ()
    parts, text = check.outcome.parts, DETECTED_BY[str(check.outcome.parts["detected_by"])]
    scan, adaptive = (num.p_value(float(parts[k])) for k in ("p_scan", "p_adaptive"))
    if facts.impossible(check.outcome):
        return say(f"Two searches for any error: {p_reported(check.outcome)}.")
    three = " and by products of three attributes" if facts.products(record).get("products") else ""
    return say(
        f"Two searches for any error, however small: one of all subgroups ({scan}) and one by models trained to find "
        f"it{three} ({adaptive}). {text} together, allowing for both: {p_reported(check.outcome)}."
    )


DETECTED_BY = {
    "both": "Both find error;",
    "scan": "Only the search of subgroups finds error: it sits where one or two attributes show it;",
    "adaptive": "Only the second search finds error: it is spread over more attributes than two, or varies sharply "
    "with none of them;",
    "neither": "Neither finds error, which is not proof of none;",
}


# ---- what the section adds to others ----

BINOMIAL = (
    "Given scores and attributes, the events in a subgroup are a sum of independent outcomes, whose exact binomial "
    "limits hold whatever each person’s own probability is (Hoeffding 1956)"
)
BETS = (
    "Given scores and attributes, the weighted error of each {of} is one independent term (Theorem CB), at any "
    "number of them"
)
METHOD = (
    "Each covariate and the score is cut into a few cells by rules that see no outcome. A subgroup is a run of cells "
    "of a number or date, or one or two levels of a category, of one attribute or of each of two. {limits}; the "
    "{alpha}% is shared over all {boxes} subgroups for their lower ends, "
    "and for each range. “No subgroup is off by more than” needs no sharing: one subgroup is the worst. Functions "
)
SEARCH = (
    "All subgroups are scanned for the one whose events depart most, in units of chance, in addition to the search by "
    "trained models (Search, below); one p-value combines the two. Function "
)
WORDS = (
    doc.Entry(
        "Subgroup",
        say("Everyone with the same one or two attributes, not listed beforehand: “age over 70 and site = b”."),
    ),
)


def methods(record: AuditRecord) -> Iterator[doc.Entry]:
    e, check = record.estimates.get(facts.SUBGROUPS), facts.check_of(record, facts.SUBGROUPS)
    if e is None:
        return
    alpha = num.percent(1 - float(e.interval.level))
    term = independent(record).term
    limits = BETS.format(of=term) if term else BINOMIAL
    words = METHOD.format(limits=limits, alpha=alpha, boxes=num.count(int(e.settings["subgroups"])))
    yield doc.Entry("Subgroups", say(words, code(e.method), " and ", code("diagnose.subgroups"), "."))
    if check is not None and check.outcome is not None:
        yield doc.Entry("Two searches", say(SEARCH, code(check.outcome.method), "."))


def words(record: AuditRecord) -> Iterator[doc.Entry]:
    if facts.SUBGROUPS in record.estimates:
        yield from WORDS


def _check(check: CheckRecord, record: AuditRecord) -> OutlineCheck:
    e, limit = record.estimates.get(facts.SUBGROUPS), facts.limit_of(record)
    numbers = ""
    if e is not None:
        low, high = num.bounds(e.interval.low, e.interval.high, limit)
        size = people_share(float(e.settings["clear_size"]))
        numbers = f"worst at least {low} points; of {size} of the {facts.noun(record)} or more, at most {high}"
    if check.outcome is not None:
        numbers += f"; test: {p_reported(check.outcome)}"
    meaning = "is a subgroup off that was not listed?"
    return OutlineCheck(
        "Unlisted subgroups", numbers, meaning, None if check.outcome is None else record.test_shows(check)
    )


DECLARED = (
    Declared(
        id="subgroups",
        order=35,
        nav="Unlisted subgroups",
        heading=HEADING,
        nodes=subgroups,
        verdict=lambda record: marked(record, facts.SUBGROUPS),
        methods=methods,
        words=words,
        checks={facts.SUBGROUPS: _check},
    ),
)
