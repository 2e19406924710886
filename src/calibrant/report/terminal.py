"""What the terminal shows: the summary of an audit, a record at a prompt, and short lines for the other commands."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import ChainMap
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from calibrant.audit.record import AuditRecord
from calibrant.report import document as doc
from calibrant.report import numbers as num
from calibrant.report.brief import brief
from calibrant.report.brief.action import decision
from calibrant.report.brief.cards import cards
from calibrant.report.commands import from_python
from calibrant.report.findings import limit_of, lines_of, range_of
from calibrant.report.languages.catalogue import ENGLISH, Words
from calibrant.report.languages.translator import in_language
from calibrant.report.spans import Text, plain
from calibrant.report.wording.change import AS_AUDITED, AT_ONCE, SCORES, impossible, scores_changed
from calibrant.report.wording.decisions import lost_by_repair
from calibrant.report.wording.headline import headline
from calibrant.report.wording.in_python import in_python
from calibrant.report.wording.terms import VERDICTS, capital, fitted_to
from calibrant.results import Curve, Estimate
from calibrant.sanitize import sanitize

if TYPE_CHECKING:
    from calibrant.repair.judge.verdict import Comparison

WIDTH = 88  # cells of a line: two windows side by side, and it can be quoted in a mail
WIDEST = 120  # of the line of facts
NAME, SEEN = 26, 6  # cells of a name, and lines, of the plot as a table
GLYPHS = {"within": "●", "over": "◆", "undecided": "○", "error_shown": "▲", "absent": "–", "measured": "·"}
FLOOR = re.compile(
    ", (?:the smallest that [^ ]+ simulations can show|der kleinste Wert, den [^ ]+ Simulationen zeigen können)"
)


def render(record: AuditRecord, language: str = ENGLISH) -> str:
    """The brief for a terminal, without colour codes: the decision, the verdict in three parts, and what to do."""
    return written(in_language(brief(record), record, language))


def written(of: doc.Document) -> str:
    facts = " · ".join((of.name, *(plain(f.text) for f in doc.seen(of.facts, "terminal"))))
    blocks = ["\n".join(wrap(facts, width=WIDEST))]
    for section in of.sections:
        lines = [line for node in doc.seen(section.nodes, "terminal") for line in _lines(node, Words(of.language))]
        blocks += ["\n".join(lines).strip("\n")] if lines else []
    return "\n\n".join(blocks)


def _lines(node: doc.Node, words: Words) -> list[str]:
    match node:
        case doc.Heading():
            return [f"{node.text}:"]
        case doc.Items():
            return [line for text in node.items for line in wrap(_stated(text), "- ")]
        case doc.Paragraph():
            return wrap(_stated(node.text))
        case _:
            return _of_the_brief(node, words)


def _of_the_brief(node: doc.Node, words: Words) -> list[str]:
    match node:
        case doc.Opening():
            return [*wrap(node.headline), ""]
        case doc.Parts():
            parts = ((p, f"{p.who}: {words.inside(p.word)}. {_stated(p.text)}".strip()) for p in node.parts)
            return [*(line for p, text in parts for line in wrap(text, f"{GLYPHS.get(p.status, '·')} ")), ""]
        case doc.Decision():
            command = [f"    {line}" for line in node.command.split("\n")] if node.command else []
            return [*wrap(f"{words('What to do')}: {_stated(node.text)}"), *command, ""]
        case doc.Forest():
            return [*_forest(node, words), ""]
        case doc.Signing():
            reported = (e for e in node.entries if "terminal" in e.where)
            return [*(line for e in reported for line in wrap(f"{e.term}: {plain(e.text)}"))]
        case _:
            return []


def _forest(forest: doc.Forest, words: Words) -> list[str]:
    rows = [("", "", forest.heading, words("gap guaranteed"), "")]
    seen = forest.lines[:SEEN]
    for r in seen:
        name = clip(f"{GLYPHS.get(r.status, '·')} {r.who}", NAME)
        rows.append((name, r.rows, r.estimate, r.guaranteed, words.inside(r.word)))
    more = len(forest.lines) - len(seen) + len(forest.folded) + forest.left
    last = f"  {words(f'and {num.count(more)} more, less evident: the report shows them')}"
    return [*(clip(f"  {line}", WIDEST) for line in aligned(rows, left=(0, 2, 3, 4))), *([last] if more else [])]


def _stated(text: Text) -> str:
    """A sentence without what is too long for a terminal: how fine a simulation can see."""
    return FLOOR.sub("", plain(text))


def cells(text: str) -> int:
    """How many columns a terminal needs for a text."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(bool(unicodedata.combining(c)) for c in text)


def clip(text: str, width: int) -> str:
    if len(text) <= 8 * width and cells(text) <= width:
        return text
    text = text[: 8 * width]  # a longer text has a column to lose even if most of its characters combine
    while cells(text) > width - 1:
        text = text[:-1]
    return text.rstrip(" …") + "…"


def pad(text: str, width: int) -> str:
    return text + " " * max(0, width - cells(text))


def aligned(rows: Sequence[Sequence[str]], left: Container[int] = (0,)) -> list[str]:
    """Rows as lines, each column as wide as its widest cell; the columns of `left` begin under each other."""
    wide = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            pad(text, w) if i in left else " " * (w - cells(text)) + text
            for i, (text, w) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in rows
    ]


def wrap(text: str, start: str = "", width: int = WIDTH) -> list[str]:
    """Break a text into lines that fit a terminal, the first with a number or mark before it."""
    lines, line = [], start
    for word in text.split(" "):
        if cells(line) + cells(word) + 1 > width and line.strip() and line != start:
            lines.append(line)
            line = " " * len(start)
        line += word if line in (start, " " * len(start)) else f" {word}"
    return [*lines, line]


# ---- certificates and plans ----


def certificates(results: Sequence[Estimate], missed: Mapping[str, str], cluster: str = "") -> str:
    """Write two lines a certificate: bounds in points, rounded outward, and what they are about.

    `missed` are those that cannot be had, with the reason; `cluster` is the column of clusters, if there is one.
    """
    s = ChainMap(*(dict(e.settings) for e in results))
    of = f" of {num.count(s['clusters'])} clusters ({sanitize(cluster)})" if cluster and "clusters" in s else ""
    of = f"; clusters ({' and '.join(map(sanitize, s['two_way']))}) cross" if "two_way" in s else of
    lines = [f"{num.count(results[0].n)} rows{of}. 1 point = 1 person in 100; bounds are rounded outward."]
    for e in results:
        low, high = num.bounds(e.interval.low, e.interval.high)
        span = num.between(low, high)
        if e.interval.high >= 1.0:
            span = f"at least {low}"
        elif e.interval.low == 0.0:  # of an error; a gap has a sign
            span = f"at most {high}"
        lines.append(f"{e.method.removeprefix('certify.'):<18} {span:>16} points   {e.settings['about']}")
        lines.append(f"{'':<18} {'':>16}          assumes {e.assumes}; level {e.interval.level:g}")
    lines += [f"{name:<18} {'none':>16}          {why}" for name, why in missed.items()]
    return "\n".join(lines)


def plan(result: Estimate) -> str:
    s = result.settings
    shown = f"in {s['steps']} rounding steps" if s["method"] == "rounded" else f"jittered by {s['bandwidth']:g}"
    about = "the raw score, from below" if s["side"] == "lower" else f"the score {shown}"
    if not math.isfinite(result.value):
        return f"No number of {result.unit} up to 10^12 gives a gap of {s['gap']:g} for {about}."
    scale = 10 ** max(len(str(int(result.value))) - 2, 0)
    rows = num.count(math.ceil(result.value / scale) * scale)
    points = f"{100 * s['gap']:g} point" + "s" * (s["gap"] != 0.01)
    side = {"upper": "an upper bound", "lower": "a lower bound", "two-sided": "both bounds"}[s["side"]]
    return (
        f"About {rows} {result.unit} for {side} within {points} of the error, on average, for {about}\n"
        f"(level {result.interval.level:g}; {result.assumes}). A plan, not a certificate."
    )


# ---- repairs compared ----

HOW = {
    "halves": "Fitted on {rows_fit} rows, judged on {rows_judged} others.",
    "fit_on": "Fitted on {rows_fit} other rows, judged on {rows_judged}.",
    "folds": (
        "Cross-fitted in {folds} folds: each of {rows_judged} rows is judged with a calibrator fitted on the other "
        "folds."
    ),
    "fitted": "Fitted before; judged on {rows_judged} rows.",
}
FITTED, JUDGED = "{rows_fit} rows of {clusters_fit}", "{rows_judged} rows of {clusters_judged}"
OF_CLUSTERS = {
    "halves": f"Fitted on {FITTED} clusters, judged on {JUDGED} other clusters.",
    "fit_on": f"Fitted on {FITTED} other clusters, judged on {JUDGED} clusters.",
    "folds": (
        f"Cross-fitted in {{folds}} folds of whole clusters: each of {JUDGED} clusters is judged with a calibrator "
        "fitted on the other folds."
    ),
    "fitted": f"Fitted before; judged on {JUDGED} clusters.",
}
HEAD = ("", "error", "Brier", "log loss", "AUROC", "accuracy", "local p", "groups +/-")


def comparison(result: Comparison) -> str:
    s = result.settings
    how = (OF_CLUSTERS if s.get("clusters_judged") else HOW)[s["how"]]
    reported = {
        name: num.count(s.get(name) or 0) for name in ("rows_fit", "clusters_fit", "rows_judged", "clusters_judged")
    }
    stated = how.format(folds=s["folds"], **reported)
    if s.get("way") == "weights":
        lost = f"{num.count(s['unknown'])} of those judged were lost before {s['horizon']:g}"
        law = f"{num.count(s['pilots'])} rows that are not judged give the law of censoring"
        stated += f" {lost}, and weights of censoring stand for them: {law}. Assumed: {s['assumes']}."
    lines = wrap(stated)
    rows = [HEAD, *(_compared(result.row(name)) for name in result.table.columns["probability"])]
    kept = [i for i in range(len(HEAD)) if i == 0 or any(r[i] for r in rows[1:])]
    lines += aligned([[r[i] for i in kept] for r in rows])
    lines += ["", *(v["line"] + "." for v in result.verdicts.values())]
    c = result.table.columns
    made = zip(c["probability"], map(fitted_to, c["scale"]), strict=True)
    lines += [sanitize(f"{name}: {words}.") for name, words in made if words]
    lines += [f"{name}: left out, {reason}." for name, reason in s["left_out"]]
    if result.fixed.columns:
        lines += ["", *before_and_after(result)]
    lines.append(recommendation(result))
    spent = f"{100 * (1 - s['alpha']):g}%, all rows of the table simultaneously"
    error = f"error: certified range in points ({spent}), upper bounds of the score in {s['steps']} rounding steps.  "
    shown = error if HEAD.index("error") in kept else ""  # of clusters none is certified here
    lines.append(f"{shown}Better and worse: wrong with probability at most {s['alpha']:g}, simultaneously.")
    return "\n".join(lines)


def class_repairs(curve: Curve) -> str:
    """Repairs of all classes at once, as rows that none was fitted on judge them."""
    s = curve.settings
    lines = wrap(
        f"Fitted on {num.count(s['rows_fitted'])} rows, judged on {num.count(s['rows_judged'])} others. "
        f"All guaranteed ranges hold simultaneously, at {num.percent(1.0 - float(s['alpha']))}%.{impossible(curve)}"
    )
    rows = [["", "error of all classes, guaranteed", "log loss (change)", "Brier score (change)"]]
    for line in lines_of(curve):
        ends = num.span(float(line["low"]), float(line["high"]))
        cells = [f"{float(line[m]):.4f} ({float(line[f'{m}_change']):+.4f})" for m in ("log_loss", "brier")]
        rows.append([str(line["repair"]), ends, *cells])
    lines += aligned(rows)
    lines.append(
        f"Recommended: {s['recommended']}, by its {SCORES[str(s['by'])]} on the rows judged: an ordinary interval."
    )
    return "\n".join(lines)


def before_and_after(result: Comparison) -> list[str]:
    """Who is over the limit before and after the repair recommended, and how many are under each repair."""
    c, s = result.fixed.columns, result.fixed.settings
    limit, after = float(s["limit"]), s["candidate"]
    what = {"auto": "calibration error of everyone, gaps of groups", "error": "calibration error", "gap": "gap"}[
        s["judge"]
    ]
    heads = ("", "rows", "now", "", *((f"after {after}", "") if after else ()))
    rows = [heads]
    for p in lines_of(result.fixed):
        line = [sanitize(p["who"]), num.count(p["rows"])]
        for when in ("now", "after") if after else ("now",):
            low, high = range_of(p, when, limit) or (0.0, 1.0)
            line += [num.ends(low, high, limit), VERDICTS[p[when]].lower()]
        rows.append(tuple(line))
    whose = "of all rows like those judged" if s.get("target") == "population" else "on the rows judged"
    lines = [f"{capital(what)} in points against the limit of {num.limit_points(limit)}, {whose}:"]
    lines += aligned(rows, left=range(len(heads)))
    whom = "Everyone and the groups over the limit now or after" if s["groups"] else "Everyone"
    counts = (f"{d['name']} {d['over']} over the limit and {d['undecided']} undecided" for d in s["candidates"])
    unlisted = s["groups"] > c["kind"].count("group")
    lines += wrap(
        f"{whom}: {'; '.join(counts)}."
        + (f" Of {num.count(s['groups'])} groups only those over it now or after are listed." if unlisted else "")
        + (
            " The range of everyone above (as audited) is of the same rows, but shares its risk with every line there."
            if s["judge"] != "gap"
            else ""
        )
    )
    return lines


CHANGES = ("", "rows", "come to act", "leave", "gain", "certified", "")


def changed(result: Comparison) -> list[str]:
    """Who changes side for everyone under every repair, and for groups under the one recommended or the only one."""
    chosen = result.recommended if result.recommended != AS_AUDITED else ""
    if not chosen and len(result.calibrators) == 1:
        chosen = next(iter(result.calibrators))
    shown = (d for d in lines_of(result.decisions) if d["population"] == "everyone" or d["probability"] == chosen)
    rows, unshown, s = [CHANGES], False, result.decisions.settings
    for d in shown:
        who = f"  {d['population']}"
        if d["population"] == "everyone":
            who = f"{d['threshold']:g} {d['probability']}: everyone"
        numbers = ("–", "–", "–", "–", "")
        unshown |= d["shown"] is None
        if d["shown"] is not None and d["gain"] is not None:
            sides = num.count(d["to_act"] or 0), num.count(d["to_leave"] or 0)
            gain = f"{d['gain']:+.4f}", f"{d['gain_low']:+.4f} to {d['gain_high']:+.4f}"
            numbers = (*sides, *gain, "no row changes side" if d["shown"] == "none" else d["shown"])
        rows.append((sanitize(who), num.count(d["rows"]), *numbers))
    note = "Rows rounded to multiples of five; gain in net benefit, true positives a row. "
    if unshown:
        note += f"–: under {s['least']} rows change side, or recoverable by subtraction. "
    note += f"A gain is called better or worse wrongly with probability at most {s['alpha']:g}, simultaneously."
    head = (
        "Acted on from the threshold: repaired but not as audited (come to act), and the reverse (leave); rows judged:"
    )
    return [*wrap(head), *aligned(rows, left=(0, len(CHANGES) - 1)), *wrap(note)]


def recommendation(result: Comparison) -> str:
    changes = scores_of(result)
    if result.recommended == AS_AUDITED:
        least = min(result.calibrators, key=lambda name: result.row(name)["brier"])
        text = "None is recommended: no repair is shown better, or estimated better in Brier score or log loss,"
        text += f" without harm elsewhere. {_error_shown(result)}"
        return "\n".join(wrap(f"{text} The least Brier score has {least}: {changes[least]}. {AT_ONCE}"))
    first = ""
    if result.fixed.columns:
        first = "with the fewest over the limit, then the fewest undecided, then the least left in the worst, then "
    how = "shown" if result.settings.get("basis") != "estimated" else "estimated"
    why = f"{first}the simplest that is {how} to be better and not worse than the best."
    if how == "estimated":
        why += " This rests on ordinary intervals, and is no guarantee."
    why += f" On the rows judged: {changes[result.recommended]}."
    lost = lost_by_repair(result.decisions, result.recommended) if result.decisions.columns else ""
    return "\n".join((*wrap(f"Recommended: {result.recommended}, {why}"), *(wrap(f"But: {lost}") if lost else ())))


def scores_of(result: Comparison) -> dict[str, str]:
    """The paired changes of both proper scores of each repair, with their ordinary intervals."""
    lines = lines_of(result.differences)
    return {
        name: scores_changed(
            {
                d["measure"]: (d["change"], d["interval_low"], d["interval_high"])
                for d in lines
                if d["probability"] == name and d["measure"] in SCORES
            }
        )
        for name in result.calibrators
    }


def _error_shown(result: Comparison) -> str:
    """Whether error is shown of the score as audited: then it is not to be left alone."""
    row = result.row(AS_AUDITED)
    ends = [row[k] for k in ("error_low", "worst_group_low") if row[k] is not None]
    tests = [row[k] for k in ("local_p", "strong_p", "scan_p") if row[k] is not None]
    over = "over" in result.fixed.columns.get("now", ())
    if over or max(ends, default=0.0) > 0.0 or min(tests, default=1.0) <= result.settings["alpha"]:
        return "Error is shown all the same: fit it on more rows, with other --variables, or retrain the model."
    return "On the rows judged no error is shown of the score as audited."


def _compared(row: Mapping[str, Any]) -> tuple[str, ...]:
    low, high = row["error_low"], row["error_high"]
    error = "" if low is None else num.span(low, high)
    name = row["probability"]
    moved = "" if name == AS_AUDITED or row["largest_gap"] is None else f"{row['groups_better']}/{row['groups_worse']}"
    return (
        name,
        error,
        f"{row['brier']:.5f}",
        f"{row['log_loss']:.5f}",
        "" if row["auroc"] is None else f"{row['auroc']:.4f}",
        f"{row['accuracy']:.4f}",
        "" if row["local_p"] is None else f"{row['local_p']:.3f}",
        moved,
    )


LEAD = 17  # cells of the words at the left
SAVE = 'record.save("audit.html") writes the report; also .json, .md and .pdf.'
MORE = "In a notebook the record shows its first screen; record.groups, .checks, .estimates and .curves hold the rest."


def lines(record: AuditRecord) -> str:
    """The verdict in three parts, each with its estimate and what is guaranteed; what to do, and how to save it."""
    return "\n".join(line for text in _texts(record) if (line := clip(text, WIDEST - 1)))


def _texts(record: AuditRecord) -> Iterator[str]:
    limit = limit_of(record)
    bound = "no limit" if limit is None else f"limit {num.limit_points(limit)} points"
    yield f"Audit of {sanitize(record.name)}: {num.count(record.everyone.rows)} rows, {bound}"
    word = "" if limit is None else f"{'WITHHELD' if record.withheld else VERDICTS[record.verdict].upper()}. "
    yield f"{word}{headline(record)}"
    worded = in_python if from_python(record) else tuple  # options as whoever made the record writes them
    for card in worded(cards(record)):
        yield f"  {pad(card.who, max(LEAD, cells(card.who)))} {card.word}"
        yield f"    {plain(card.text)}"
    (action,) = worded((decision(record),))
    yield from wrap(f"What to do: {plain(action.text)}", width=WIDEST - 1)
    yield from (f"    {line}" for line in action.command.splitlines())
    yield SAVE
    yield MORE
