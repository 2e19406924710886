"""People whose outcome is not known: who they are, and what they could change about each range and its verdict.

Of several horizons that share alpha: by each, how many were lost, and what everyone and the groups are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.report import numbers as num
from calibrant.report.document import Details, Entry, Node, Paragraph, Table, number_table
from calibrant.report.findings import by_gap, limit_of, lines_of, lost, noun
from calibrant.report.outline import OutlineCheck
from calibrant.report.spans import Text, clipped, code, literal, say, shown
from calibrant.report.wording.clusters import independent
from calibrant.report.wording.missing_labels import People, any_lost, each, implied, people, ratio, recorded
from calibrant.report.wording.terms import VERDICTS, capital, error_at_most, in_json

MOST = 60  # populations, and lines of those without an outcome; the others are in the JSON
MATTERS = 0.1  # standardised difference from which on two parts are commonly held to differ
READ = (
    "Each column takes in those whose outcome is not known: as if missing at random among people of one score (and "
    "group); with odds that differ by at most the stated ratio; whatever their outcomes. All are certified."
)
OF_LOST = (
    "Each column takes in those whose outcome is unknown: with the odds of those known at one score (and group); with "
    "odds that differ by at most the stated ratio; whatever their outcomes. All are certified."
)
STANDS = " Stands to: the ratio of odds up to which the verdict at random stands."
DIFFERS = (
    "Standardised difference: of the share among those without an outcome from that among those with one; beyond 0.1, "
    "either way, it is commonly held to matter."
)
TESTED = " p: the share without is the same at every level, tested for all columns simultaneously."
UNTESTED = " Shares are of rows; that they differ is not tested, for the test assumes independent rows of equal weight."
NO_PROOF = "That outcomes are missing at random given the score, no test of these data can show."


def missing(record: AuditRecord) -> Iterator[Node]:
    kept = people(record)
    if not kept:
        return
    read = (OF_LOST if lost(record) else READ) + independent(record).without_outcome
    read += STANDS if limit_of(record) is not None else ""
    nodes: list[Node] = [Paragraph(say(read)), _ranges(record, kept)]
    nodes += [Paragraph(say(text))] if (text := implied(record)) else []
    if record.curve("without_label").columns:
        nodes += [_who(record), Paragraph(say(NO_PROOF), "note")]
    yield Details(heading(record, kept[0]), tuple(nodes), id="missing-labels")


def heading(record: AuditRecord, everyone: People) -> str:
    reported = f"Outcomes not known: {everyone.unknown} of {noun(record)}"
    if limit_of(record) is None:
        return reported
    word = VERDICTS[everyone.verdicts[0]].lower()
    if everyone.stands:
        word += ", whatever they are" if math.isinf(everyone.stands) else f", up to odds of {ratio(everyone.stands)}"
    return f"{reported}; everyone, {'as those known' if lost(record) else 'at random'}: {word}"


def stated(record: AuditRecord) -> float:
    return float(record.settings["missing_odds"])


# ---- what they could change ----


def _ranges(record: AuditRecord, values: tuple[People, ...]) -> Table:
    judged, odds = limit_of(record) is not None, stated(record)
    heads = [
        "Who",
        "Outcome not known",
        "As those known" if lost(record) else "At random",
        f"Odds up to {odds:g}",
        "Whatever they are",
    ]
    heads += ["Stands to"] if judged else []
    rows: list[tuple[str | Text, ...]] = []
    for one in values[:MOST]:
        who = say("Everyone") if one.everyone else say(literal(clipped(shown(one.name))))
        cells = [one.unknown, *(_range(record, one, i) for i in range(3))]
        if judged:
            cells.append("any" if math.isinf(one.stands) else ratio(one.stands) if one.stands else "–")
        rows.append((who, *cells))
    rest = in_json(len(values) - MOST, "more groups")
    kinds = {by_gap(record, part) for part in ("everyone", *(("groups",) if len(values) > 1 else ()))}
    what = "calibration error or gap" if len(kinds) > 1 else "gap" if kinds == {True} else "calibration error"
    caption = f"{capital(what)} of all {noun(record)}, points. Everyone's ranges hold separately, those of groups "
    return number_table(f"{caption}simultaneously.{rest}", heads, rows, "cards")


def _range(record: AuditRecord, one: People, at: int) -> str:
    low, high = one.ranges[at]
    if by_gap(record, "everyone" if one.everyone else "groups"):
        reported = " to ".join(num.signed_range(low, high))
    else:
        reported = num.span(low, high, limit_of(record))
    return reported if limit_of(record) is None else f"{reported} · {VERDICTS[one.verdicts[at]].lower()}"


# ---- who they are ----


def _who(record: AuditRecord) -> Table:
    c, dependent = record.curve("without_label").columns, independent(record).counted
    heads = ("Who is without", capital(noun(record)), "Outcome not known", "Standardised difference", "p")
    rows, last, untested = [], "", "not tested" if dependent else "too few"
    keys = ("variable", "level", "rows", "unlabelled", "share", "difference", "p_adjusted")
    for variable, level, known, without, share, difference, p in list(zip(*(c[k] for k in keys), strict=True))[:MOST]:
        first, last = variable != last, str(variable)
        reported_p = (
            ""
            if not first
            else untested
            if p is None
            else num.p_value(float(str(p))).removeprefix("p ").removeprefix("= ")
        )
        cells = (
            num.count(int(str(known)) + int(str(without))),
            f"{num.nearest(float(str(share)))}%",
            "none there" if difference is None else _signed(float(str(difference))),
            reported_p,
        )
        rows.append((say(code(shown(variable)), ": ", literal(clipped(shown(level)))), *cells))
    rest = in_json(len(c["level"]) - MOST)
    caption = DIFFERS + (UNTESTED if dependent else TESTED) + rest
    return number_table(caption, heads, rows, "cards")


def _signed(x: float) -> str:
    text = f"{abs(x):.2f}"
    return text if text == "0.00" else f"{'+' if x > 0 else num.MINUS}{text}"


# ---- what the section of everyone adds to others ----


def check(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    kept, odds = people(record), stated(record)
    question = f"All, outcomes known or not: {error_at_most(record, 'everyone')}"
    numbers = f"everyone {_range(record, kept[0], 1)}".replace(" ·", " points:") if kept else ""
    meaning = f"the worst of everyone and the groups, if odds differ by up to {odds:g}; no verdict counts it"
    return OutlineCheck(question, numbers, meaning)


HOW = (
    "Whoever has an outcome stands for people of the same score who have none, as far as the assumption lets them: a "
    "line above the largest probability that the odds allow, below the least, turns each into a test martingale; what "
    "the line leaves over counts as the worst. {by}True at this number of rows. Function "
)
BY_CLUSTERS = "The terms of one {one}, weighted, are added up to one. "


def methods(record: AuditRecord) -> Iterator[Entry]:
    if people(record):
        what = independent(record)
        by = BY_CLUSTERS.format(one=what.one) if what.counted else ""
        yield Entry("Outcomes not known", say(HOW.format(by=by), code("certify.missing_labels"), "."))


# ---- several horizons ----

EVERYONE = "everyone"
NONE = "no estimate"
CAPTION = (
    "All {count} horizons share the {alpha}%: everyone's guaranteed ranges hold simultaneously, and so do those of "
    "groups. This page is about {which}, {shown}. Points."
)


def by_horizon(record: AuditRecord) -> Iterator[Node]:
    """A table with a line for each horizon; nothing of one horizon."""
    curve = record.curve("horizons")
    lines = lines_of(curve)
    if not lines:
        return
    judged = limit_of(record) is not None
    gone = {horizon: how.cell.format(num.count(n)) for horizon, how, n in each(record)}
    happened = "Estimated, in 100" if any_lost(record) else "Happened, in 100"
    heads = [
        "Horizon",
        *(["Rows lost"] if gone else []),
        "Model says, in 100",
        happened,
        "Gap",
        "Guaranteed",
        *(["Everyone", "Groups"] if judged else []),
    ]
    rows = []
    for line in (x for x in lines if x["people"] == EVERYONE):
        groups = [x["verdict"] for x in lines if x["horizon"] == line["horizon"] and x["people"] != EVERYONE]
        counts = ((v, groups.count(v)) for v in ("over", "undecided", "within"))
        summed = ", ".join(f"{num.count(n)} {VERDICTS[v].lower()}" for v, n in counts if n) or "none"
        low, high = num.signed_range(float(line["low"]), float(line["high"]))
        cells = [NONE if line[k] is None else f"{float(line[k]) * 100:.1f}" for k in ("predicted", "observed")]
        cells += [NONE if line["gap"] is None else num.gap(float(line["gap"]))]
        more = (VERDICTS[line["verdict"]], summed) if judged else ()
        left = (gone.get(line["horizon"], "none"),) if gone else ()
        rows.append((f"{float(line['horizon']):g}", *left, *cells, f"{low} to {high}", *more))
    caption = CAPTION.format(
        count=num.count(len(rows)),
        alpha=f"{100 * float(curve.settings['alpha']):g}",
        which=recorded(record),
        shown=f"{record.data['horizon']['horizon']:g}",
    )
    yield Paragraph(say(caption))
    yield number_table("By horizon", heads, rows, "cards")
