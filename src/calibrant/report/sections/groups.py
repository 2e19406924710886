"""The sections about named groups, the most evident first, and about clusters that are sites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from calibrant.audit.record import AuditRecord, CheckRecord, Finding
from calibrant.report import document as doc
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report import places, svg
from calibrant.report.commands import naming_groups
from calibrant.report.findings import groupings
from calibrant.report.outline import Declared, OutlineCheck
from calibrant.report.sections.reference import folded
from calibrant.report.spans import Span, Text, clipped, code, label, lines, literal, say, strong
from calibrant.report.wording.change import CHANGE, changed, changes, group_of
from calibrant.report.wording.clusters import independent
from calibrant.report.wording.missing_labels import of_known
from calibrant.report.wording.parts import beyond_worst, marked, unshown_reason
from calibrant.report.wording.terms import (
    VERDICTS,
    capital,
    cardinal,
    certified_range,
    error_at_most,
    gap_guaranteed,
    in_json,
    joined,
    over_expected,
    together,
    verdict_on,
    whose_gaps,
)
from calibrant.results import Curve
from calibrant.sanitize import sanitize

SHORT = 9  # groups in the short table
# As audit/rounding.py reports them
FIVES = (
    "Counts are multiples of five, up or down by chance; “under”: fewer than five. Of fewer than "
    "200, rates are the range that this leaves, and the gap is its certified range alone."
)
EXACT = "Counts are exact: two audits of nearly the same people tell them apart. To publish, audit with --publish."
SHARING = "Groups of {} and of {} share people: exact counts of both would tell those of small groups."
ALL = "Every group is shown, however small: this page is for readers who may see them."
NAMED, COUNTED = 40, 6  # characters of a group, and groups, in a sentence
ACROSS, DOTS = 20, 200  # of the picture of people
MISSED = ", an expected event that did not happen; empty, no event."
GAP = (
    "Gap: observed minus predicted, so errors in both directions cancel. Calibration error: the size of the gap "
    "among people with the same score, averaged, so they do not cancel and it can be larger."
)


def groups(record: AuditRecord) -> Iterator[doc.Node]:
    yield doc.Paragraph(groups_answer(record), "answer", doc.PAGE)
    if not record.groups:
        yield doc.Paragraph(no_groups(record), "panel")
        return
    yield doc.Paragraph(say(about(record)), "note")
    yield table(record)
    if cut_short(record):
        yield doc.Paragraph(say(cut_short(record)), where=doc.MARKDOWN)
    for text in notes(record):
        yield doc.Paragraph(text, "note")
    reported_so = doc.Paragraph(say(counted(record)))
    if facts.mask_of(record) == 1:
        yield doc.Paragraph(say(ALL), "note")
    yield doc.Details("How groups are counted", (reported_so,), id="groups-read", where=doc.PAGE)
    yield replace(reported_so, style="note", where=doc.MARKDOWN)
    if people_drawn := tuple(icons(record)):
        yield doc.Details(
            f"The worst group as {num.count(min(num.denominator(facts.reported(record)), DOTS))} dots",
            people_drawn,
            id="people",
            where=doc.PAGE,
        )


def counted(record: AuditRecord) -> str:
    """Which groups are shown, and how their people are counted."""
    if (mask := facts.mask_of(record)) == 1:
        return EXACT
    pooled = (
        f"A group under {num.count(mask)} is never shown; it is pooled with neighbours where levels are in order, "
        "elsewhere with the next smallest, so that it cannot be found by subtraction."
    )
    if together := record.data.get("rounded_for"):
        return f"{pooled} {SHARING.format(*map(sanitize, together))} {FIVES}"
    return f"{pooled} {FIVES if facts.published(record) else EXACT}"


def groups_answer(record: AuditRecord) -> Text:
    """The first line of "For whom are they off?"."""
    total = len(record.groups)
    if not total:
        reason = unshown_reason(record)
        return say(f"Not answered. {reason}" if reason else "Not checked: no groups were given.")
    if facts.limit_of(record) is None:
        return say("No limit was given; the most evident come first.")
    broken, undecided = (len(facts.with_verdict(record, v)) for v in ("over", "undecided"))
    if not broken and not undecided:
        small = facts.only_together(record)
        of, more = (" shown", f"; {num.count(small)} small ones only pooled") if small else ("", "")
        every = f"All {num.count(total)} groups{of} are" if total > 1 else f"The one group{of} is"
        return say(of_known(record, f"{every} within the limit{more}."))
    first = f"{capital(cardinal(broken))} of {num.count(total)} groups {'is' if broken == 1 else 'are'} over the limit."
    if not broken:
        first = "No group is shown to be over the limit."
    first = of_known(record, first)
    if not undecided:
        return say(f"{first} The most evident come first.")
    rows = independent(record).called
    few = f"For {cardinal(undecided)} there are too few {rows} to decide; the most evident come first."
    return say(f"{first} {few}")


def no_groups(record: AuditRecord) -> Text:
    reason = unshown_reason(record)
    if reason:
        return say(
            strong("No group can be shown."), f" {reason} Name coarser groups, or audit more {facts.noun(record)}."
        )
    by = code(naming_groups(record))
    return say(strong("No groups were given."), " Add ", by, " to see for whom the probabilities are off.")


def people(record: AuditRecord, finding: Finding) -> Text:
    """The natural frequencies of a finding, such as "expects 562 to be employed; 585 were"."""
    d = num.denominator(facts.reported(record))
    expected, happened = map(num.count, num.of_every(finding, d))
    if facts.fives(record, finding.rows) and finding.variables:
        expected, happened = (num.reported_of_every(finding.rows, n, d) for n in (finding.expected, finding.events))
    outcome, was = record.settings.get("outcome"), "was" if happened == "1" else "were"
    if outcome is None:
        events = "event" if expected == "1" else "events"
        return say(f"expects {expected} {events}; there {was} {happened}")
    return say(f"expects {expected} to be ", literal(outcome), f"; {happened} {was}")


def about(record: AuditRecord) -> str:
    """What the two measures of a group are, and which of them the limit is about."""
    limit, gaps = facts.limit_of(record), f"{GAP} Gaps are of {whose_gaps(record)}{_of_each(record)}."
    if which := independent(record).gaps_of:
        gaps += f" Rates are of the rows in the data, gaps of {which} other than the pilot sample, so they differ "
        gaps += "a little."
    if limit is None:
        return gaps
    if record.settings["judge"] == "auto":
        return f"{gaps} The limit is about the gap; a group whose error is certified over it is over the limit too."
    return f"{gaps} The limit is about the {'gap' if facts.by_gap(record, 'groups') else 'calibration error'}."


def _of_each(record: AuditRecord) -> str:
    """How many rows of each group a gap by weights of censoring is of; nothing of others."""
    if record.everyone.proved_above:
        return ""
    judged = [f for f in record.groups if f.withheld is None]
    named = [f"{clipped(label(f), NAMED)} {num.count(f.upper.n)}" for f in judged[:COUNTED]]
    return f": of {', '.join(named)}{' and so on' if len(judged) > COUNTED else ''}" if named else ""


def table(record: AuditRecord) -> doc.Table:
    """All groups, the most evident first: gap and calibration error with ranges; the picture is of what is judged."""
    limit, kept = facts.limit_of(record), facts.by_evidence(record.groups)[: facts.MOST_ROWS]
    judged, gap, rare = limit is not None, facts.by_gap(record, "groups"), facts.rare(record)
    top = places.ruler_top([f.shown for f in kept], limit)
    axis = lines("Gap, either way," if gap else "Calibration error,", f"0 to {top:g}\N{NO-BREAK SPACE}points")
    columns = (
        doc.Column(say("Group")),
        doc.Column(say(capital(facts.noun(record))), "r n"),
        doc.Column(lines("Model says,", "in 100"), "r hide"),
        doc.Column(lines("Happened,", "in 100"), "r hide"),
        doc.Column(lines("Gap (range),", "points"), "r gp", "Gap (certified range), points"),
        doc.Column(
            lines("Observed /", "expected"), "r hide", "Observed / expected", where=doc.WHOLE if rare else doc.NOWHERE
        ),
        doc.Column(axis, "c", where=doc.PAGE),
        doc.Column(lines("Calibration", "error, points"), "r iv", "Calibration error, certified range, points"),
        doc.Column(say("Verdict"), "vd", where=doc.WHOLE if judged else doc.NOWHERE),
        doc.Column(
            lines(independent(record).would_decide, "would decide"),
            "r need",
            where=doc.WHOLE if judged else doc.NOWHERE,
        ),
    )
    rows = [replace(_row(record, record.everyone, top), id="", where=doc.MARKDOWN)]
    rows += [_row(record, f, top) for f in kept]
    return doc.Table(columns, tuple(rows), _caption(record), "forest long", "groups-all", SHORT)


def _row(record: AuditRecord, f: Finding, top: float) -> doc.Row:
    limit, predicted, observed = f.limit, f.expected / f.rows, f.events / f.rows
    low, high = f.shown
    track = svg.track(low, high, top, f.verdict, f"{num.span(low, high, limit)} points", limit)
    reported_in = facts.fives(record, f.rows) if f.variables else 0  # everyone is reported exactly
    known = facts.need_of(f)
    need = "–" if known is None else num.amount(*known).removeprefix("about ")
    digits = facts.decimals(record)
    made = doc.row(
        say(literal(label(f))) if f.variables else "Everyone",
        num.count(f.rows),
        num.reported_rate(predicted, reported_in, digits),
        num.reported_rate(observed, reported_in, digits),
        f"{num.reported_gap(f.gap.value, reported_in, digits)} ({gap_guaranteed(record, f)})",
        "–" if reported_in else over_expected(f),
        doc.Cell(sort=f"{low:.4g}", picture=track),
        certified_range(f, dashed=True),
        doc.Cell(say(verdict_on(f)), str(-facts.RANK[f.verdict]), icon=f.verdict),
        doc.Cell(say(need), str(known[0]) if known and need[0] in "oa" else "", style="none" if need == "–" else ""),
    )
    return replace(made, id=f.id)


def _caption(record: AuditRecord) -> str:
    total, limit = len(record.groups), facts.limit_of(record)
    dashed = "" if limit is None else f" Dashed: the limit of {num.limit_points(limit)}."
    if total == 1:
        return f"The one group that was given.{dashed}"
    kept = f"All {num.count(total)} ranges of each kind are simultaneous: they hold {together(record)}."
    apart = beyond_worst(record, record.groups)
    return (cut_short(record) or kept) + (f" {apart}" if apart else "") + dashed


def cut_short(record: AuditRecord) -> str:
    """Say that the long table of groups is cut, and where the rest is; empty where it is whole."""
    total = len(record.groups)
    if total <= facts.MOST_ROWS:
        return ""
    return (
        f"The first {num.count(facts.MOST_ROWS)} of {num.count(total)} groups, the most evident first. "
        "The others are in the JSON of this audit, which the last section describes."
    )


def notes(record: AuditRecord) -> tuple[Text, ...]:
    """What the table leaves out, a sentence each: folded values, and columns with small groups only."""
    seen = {tuple(k for k, _ in g.variables) for g in record.groups}
    unseen = [names for names in groupings(record) if names not in seen]
    small = [say("No group of ", code(" and ".join(names)), " can be shown: all are too small.") for names in unseen]
    return (*(say(*text, ".") for text in folded(record)), *small)


# ---- the worst group as people ----


def icons(record: AuditRecord) -> Iterator[doc.Columns]:
    """The people of the worst broken group as dots; nothing if none is broken or no dot would differ.

    Nor of counts to publish that are few: rounding alone would make dots.
    """
    worst = [f for f in facts.reported(record) if f.variables]
    if worst and 0 < facts.fives(record, worst[0].rows) < num.CLEAR:
        return
    d = num.denominator(facts.reported(record))
    total = min(d, DOTS)
    expected, happened = num.of_every(worst[0], total) if worst else (0, 0)
    if expected == happened:
        return
    same, apart, beyond = min(expected, happened), abs(happened - expected), happened > expected
    kinds = ["ic1"] * same + ["ic2"] * apart + ["ic0"] * (total - same - apart)
    dots = tuple((k, 6 + 12.6 * (i % ACROSS), 6 + 12.4 * (i // ACROSS)) for i, k in enumerate(kinds))
    each = d // total
    who = f"one of the {facts.noun(record)}" if each == 1 else f"{each} {facts.noun(record)}"
    rest = "more for those beyond that" if beyond else "of them did not happen"
    words = f"{total} dots, {who} each: {expected} that the model expects, {apart} {rest}"
    picture = svg.dots(dots, 252, round(12.4 * (total // ACROSS)), words)
    name = Span(clipped(label(worst[0])), "name")
    start = say(
        strong(f"Of every {num.count(d)} {facts.noun(record)} in "), name, ", the model ", *people(record, worst[0])
    )
    who = f"five {facts.noun(record)}" if each == 5 else who
    yield doc.Columns((*start, *say(f". Each dot is {who}: "), *_legend(record, beyond)), picture)


def _legend(record: AuditRecord, beyond: bool) -> Sequence[Span]:
    outcome, square = record.settings.get("outcome"), Span("square", "square")
    if outcome is None and beyond:
        return say("filled, an expected event; ", square, ", an event beyond that; empty, no event.")
    if outcome is None:
        return say("filled, an expected event that happened; ", square, MISSED)
    if beyond:
        return say(
            "filled, expected; ", square, ", ", literal(outcome), " beyond that; empty, not ", literal(outcome), "."
        )
    return say("filled, expected, and was; ", square, ", expected, and was not; empty, not ", literal(outcome), ".")


# ---- what the section adds to others ----

METHOD = (
    "The same two bounds on each group’s rows, the {alpha}% shared over {groups} groups, so that all hold "
    "simultaneously."
)


def methods(record: AuditRecord) -> Iterator[doc.Entry]:
    alpha = num.percent(float(record.settings["alpha"]))
    shared = METHOD.format(alpha=alpha, groups=num.count(len(record.groups)))
    if len(record.groups) == 1:
        shared = f"The same two bounds on the group’s rows, at {alpha}%."
    yield doc.Entry("Groups", say(shared if record.groups else unshown_reason(record) or "None were given."))


def _check(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    results = [f"{len(facts.with_verdict(record, v))} {VERDICTS[v].lower()}" for v in ("within", "over", "undecided")]
    total = num.count(len(record.groups))
    if facts.withheld(record) and record.groups:
        results = [f"{total} withheld"]
    if facts.limit_of(record) is None:
        results = [f"{total} certified ranges"]
    meaning = f"all {total} ranges hold simultaneously, {together(record)}" if record.groups else "for whom is it off?"
    return OutlineCheck(f"Every group: {error_at_most(record, 'groups')}", ", ".join(results), meaning)


# ---- what changed since an earlier audit ----

SHORT_CHANGE = 12  # lines of the table on the page
CHANGED = {"worse": "Worse", "better": "Better", "changed": "Changed", "none": "Not shown"}
CHANGE_HEAD = ("Who", "Before", "Now", "Change", "Guaranteed", "State")


def change(record: AuditRecord) -> Iterator[doc.Node]:
    lines, earlier = changes(record), record.curve(CHANGE).settings
    yield doc.Paragraph(changed(record), "answer", doc.PAGE)
    rows = [
        (
            "Everyone" if (group := group_of(record, line)) is None else label(group),
            num.gap(line["before"], facts.decimals(record)),
            num.gap(line["now"], facts.decimals(record)),
            num.gap(line["change"], facts.decimals(record)),
            " to ".join(num.signed_range(line["low"], line["high"], facts.decimals(record))),
            CHANGED[line["state"]],
        )
        for line in lines[:SHORT_CHANGE]
    ]
    rest = in_json(len(lines) - SHORT_CHANGE)
    levels = sorted({num.percent(line["level"]) for line in lines})
    alone = {"of the earlier audit": earlier["only_before"], "of this one": earlier["only_now"]}
    counts = [f"{num.count(n)} {which} alone" for which, n in alone.items() if n]
    unmatched = f" Groups left out: {joined(counts)}." if counts else ""
    all_lines = f"all lines together at {num.percent(earlier['level_of_all'])}%"
    yield doc.number_table(
        f"Gaps in points, now less before. Guaranteed: at level {joined(levels)}%, from what both audits certify, "
        f"{all_lines}; rows may be shared. Worse: surely farther from 0 than before.{unmatched}{rest}",
        CHANGE_HEAD,
        rows,
        "cards",
    )


def _change_check(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    means = "how the gaps of everyone and the groups changed since an earlier audit"
    lines = changes(record)
    if not lines:
        return OutlineCheck("What changed", "", means)
    counts = [
        f"{num.count(n)} {word.lower()}" for k, word in CHANGED.items() if (n := sum(v["state"] == k for v in lines))
    ]
    return OutlineCheck("What changed since the earlier audit", ", ".join(counts), means)


CODE = "sites"
LEVEL = 0.05  # of the test that all sites are alike


def sites(record: AuditRecord) -> Iterator[doc.Node]:
    curve = record.curve(CODE)
    if not curve.settings:
        return
    yield doc.Paragraph(_answer(curve), "answer")
    if curve.columns["estimate"]:
        yield _figure(record)
    yield doc.Paragraph(_note(record), "note")


def _answer(curve: Curve) -> Text:
    s = curve.settings
    differ = (
        "Clusters differ beyond chance"
        if s["p_value"] <= LEVEL
        else ("No difference between clusters is shown beyond chance")
    )
    return say(
        f"{differ}. Averaged over {num.count(s['sites'])} clusters (",
        code(s["site"]),
        "), ",
        strong(f"{_times(curve, 'ratio')} times as many events happened as the model expects"),
        f" ({_times(curve, 'ratio_low')} to {_times(curve, 'ratio_high')}). A new one is to expect ",
        strong(f"{_times(curve, 'ratio_new_low')} to {_times(curve, 'ratio_new_high')} times as many"),
        ".",
    )


def _times(curve: Curve, name: str) -> str:
    return num.decimals(float(curve.settings[name]), 2)


def _figure(record: AuditRecord) -> doc.Figure:
    c, s = record.curve(CODE).columns, record.curve(CODE).settings
    inside = [s[k] for k in ("new_low", "new_high", "mean_low", "mean_high")] + list(c["estimate"])
    top = places.end_of(max(abs(float(v)) for v in inside))
    lines = [(float(a), float(b), float(h)) for a, b, h in zip(c["low"], c["estimate"], c["high"], strict=True)]
    mean, new = ((float(s[f"{k}_low"]), float(s[f"{k}_high"])) for k in ("mean", "new"))
    words = f"Calibration intercepts of {num.count(len(lines))} clusters, from {num.decimals(lines[0][1], 2)} to "
    picture = svg.caterpillar(lines, (mean, new), top, f"{words}{num.decimals(lines[-1][1], 2)}.")
    panel = doc.Panel(
        "Each cluster with its range", picture, axis="calibration intercept, logits; above 0: underpredicts"
    )
    return doc.Figure(
        panels=(panel,), key=(), caption=say(_sites_caption(record.curve(CODE))), numbers=(_numbers(record),)
    )


def _numbers(record: AuditRecord) -> doc.Table:
    c, s = record.curve(CODE).columns, record.curve(CODE).settings
    pooled = (
        ("Mean of all clusters", s["mean"], s["mean_low"], s["mean_high"]),
        ("A new cluster", s["mean"], s["new_low"], s["new_high"]),
    )
    each = ((f"number {rank}", *rest) for rank, *rest in zip(*c.values(), strict=True))
    rows = (
        (name, num.decimals(at, 2), num.between(num.decimals(low, 2), num.decimals(high, 2)))
        for name, at, low, high in (*pooled, *each)
    )
    heads = ("Cluster", "Intercept, logits", "Range")
    return doc.number_table("The lowest first, without names.", heads, rows, "cards")


def _sites_caption(curve: Curve) -> str:
    s, shown = curve.settings, len(curve.columns["rank"])
    unshown, all_of = int(s["unshown"]), int(s["sites"]) - int(s["unshown"])
    parts = [
        "The lowest first, without names: a cluster may be one person. Narrow strip: the mean; wide: a new cluster."
    ]
    if shown < all_of:
        parts.append(f"{num.count(shown)} of {num.count(all_of)} are drawn, evenly spaced.")
    if unshown:
        parts.append(f"{num.count(unshown)} with few rows count and are not drawn.")
    return " ".join(parts)


def _note(record: AuditRecord) -> Text:
    s, nested = record.curve(CODE).settings, list(record.data.get("nested") or {})
    level = f"{100.0 * (1.0 - s['alpha']):g}%"
    mean, low, high, new_low, new_high, tau, most = (
        num.decimals(float(s[k]), 2)
        for k in ("mean", "mean_low", "mean_high", "new_low", "new_high", "tau", "tau_high")
    )
    also = " count as independent here, so clusters may seem to differ more than they do."
    kept = (" Rows of one ", code(nested[-1]), also) if nested else ()
    return say(
        f"Calibration intercept, in logits (0: calibrated; above 0: underpredicts): mean {mean} ({low} to {high}), a "
        f"new cluster {new_low} to {new_high}; standard deviation between clusters {tau}, at most {most}. Ranges of "
        f"{level} each hold for many clusters, not for few: no certificate. Every cluster has equal weight here, "
        "large or small.",
        *kept,
    )


def _sites_check(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    curve = record.curve(CODE)
    means = "how far calibration differs between clusters, and what a new one is to expect"
    if not curve.settings:
        return OutlineCheck("Clusters", "", means)
    reported = (
        f"a new cluster: {_times(curve, 'ratio_new_low')} to {_times(curve, 'ratio_new_high')} times the events "
        "expected"
    )
    return OutlineCheck("Does it hold in every cluster?", reported, means)


def sites_methods(record: AuditRecord) -> tuple[doc.Entry, ...]:
    if not record.curve(CODE).settings:
        return ()
    text = (
        "Each cluster's binomial likelihood of its own intercept, integrated over a normal distribution of clusters "
        "(one stage, REML); Student's law for the mean and for a new cluster (Higgins, Thompson, Spiegelhalter). "
        "Assumed: clusters independent, rows of one cluster independent given it. A cluster's own range is Firth's. "
        "Every cluster has equal weight, so the mean is not that of all rows."
    )
    return (doc.Entry("Cluster by cluster", say(text)),)


DECLARED = (
    Declared(
        id="groups",
        order=30,
        nav="For whom?",
        heading="For whom are they off?",
        nodes=groups,
        verdict=lambda record: marked(record, "groups") if record.groups else "",
        methods=methods,
        checks={"error-groups": _check},
    ),
    Declared(
        id="change",
        order=31,
        nav="What changed?",
        heading="What changed since the earlier audit?",
        nodes=change,
        checks={CHANGE: _change_check},
        there=lambda record: bool(record.curve(CHANGE).columns),
    ),
    Declared(
        id="sites",
        order=32,
        nav="In every cluster?",
        heading="Does it hold in every cluster?",
        nodes=sites,
        methods=sites_methods,
        checks={CODE: _sites_check},
        there=lambda record: bool(record.curve(CODE).settings),
    ),
)
