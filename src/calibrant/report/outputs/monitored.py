"""What a monitor knows, as a page, as the text of an alert, and for a terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from calibrant import __version__
from calibrant.audit.monitor.monitor import Monitor, MonitorState
from calibrant.audit.monitor.plan import Plan, Settings
from calibrant.audit.monitor.state import MASK, Look, RangeNow, Suspect
from calibrant.data.targets import checked_targets, written
from calibrant.errors import BadInput
from calibrant.report import document as doc
from calibrant.report import numbers as num
from calibrant.report import svg
from calibrant.report.html import page
from calibrant.report.languages.catalogue import ENGLISH
from calibrant.report.languages.translator import in_words
from calibrant.report.markdown import inside
from calibrant.report.outputs import drifted
from calibrant.report.places import end_of, percent, signed
from calibrant.report.spans import Span, clipped, literal, plain, say
from calibrant.sanitize import sanitize

WORDS = {"over": "Over the limit", "within": "Within the limit", "undecided": "Undecided", "not_checked": "Not checked"}
SIDES = {"above": "underpredicts", "below": "overpredicts"}
ALONG = {"slope": ("too flat", "too steep"), "shape": ("follows the score", "follows the score, reversed")}
Waiting: TypeAlias = Sequence[tuple[int, int, int]]  # a day's number, its rows, and how many have a label
SHOWN = 10  # alarms in the table, latest first, and that of any error
HEADED = 4  # populations over the limit that the headline names
SINCE_LAST = " (since the last alarm)"
ENDINGS = (".html", ".json", ".md")
OF_DATA = "level", "pair"  # kinds of directions whose names are words of the data


def save(monitor: Monitor, target: str | os.PathLike[str], language: str = ENGLISH) -> Path:
    """Write the page, the state or the alert, by the ending of the name."""
    name = os.fspath(target)
    checked_targets({"target": name}, ())
    written(name, content(monitor, name, (), language).encode())
    return Path(target)


def content(monitor: Monitor, name: str, waiting: Waiting = (), language: str = ENGLISH) -> str:
    """What is written to a file of this name; `waiting` are days that are not complete."""
    ending = Path(name).suffix.lower()
    if ending not in ENDINGS:
        raise BadInput(f"cannot write {name!r}: a monitor is written as {', '.join(ENDINGS)}; end the name so")
    if ending == ".json":
        return json.dumps(known(monitor, waiting), indent=1, allow_nan=False) + "\n"
    early = monitor.last is None and bool(waiting or monitor.drift is not None)
    if ending == ".md":
        nodes = tuple(_early(monitor, waiting)) if early else _alert(monitor, monitor.state, waiting)
        head, worded = in_words((title(monitor.settings), nodes), names(monitor), language)
        return f"# {head}\n\n{inside(worded)}"
    of = _early_document(monitor, waiting) if early else document(monitor, monitor.state, waiting)
    return page(in_words(of, names(monitor), language), known(monitor, waiting), __version__)


def known(monitor: Monitor, waiting: Waiting = ()) -> dict[str, object]:
    """What is known as plain data: the state, or before the first day is complete what waits, and the drift."""
    if monitor.last is None and (waiting or monitor.drift is not None):
        drift = {} if monitor.drift is None else {"drift": monitor.drift.to_dict()}
        rows, labels = _counted(waiting)
        open_days = {"waiting": {"days": len(waiting), "rows": rows, "labels": labels}} if waiting else {}
        return {**open_days, **drift}
    return monitor.state.to_dict()


def _alert(monitor: Monitor, state: MonitorState, waiting: Waiting = ()) -> tuple[doc.Node, ...]:
    """The text of an alert."""
    alarms = (_alarms(state),) if state.alarms else ()
    return (*_summary(monitor.settings, state), *_open(waiting), _table(monitor.settings, state), *alarms)


def lines(monitor: Monitor, waiting: Waiting = (), language: str = ENGLISH) -> str:
    """What a terminal shows after each day."""
    if monitor.last is None and (waiting or monitor.drift is not None):
        return _paragraphs(in_words(tuple(_early(monitor, waiting)), names(monitor), language))
    s, state = monitor.settings, monitor.state
    first = (state.at, f"{state.rows:,} rows", headline(s, state))
    first, nodes = in_words((first, (*_summary(s, state), *_open(waiting))), names(monitor), language)
    return "\n".join((" · ".join(first), _paragraphs(nodes)))


def _paragraphs(nodes: Iterable[doc.Node]) -> str:
    return "\n".join(plain(n.text) for n in nodes if isinstance(n, doc.Paragraph))


def names(monitor: Monitor) -> set[str]:
    """The words of the data that all this repeats: columns, groups and levels."""
    s = monitor.settings
    own = {s.label, s.score, s.cluster, *s.attributes, *s.key}
    if monitor.last is not None:
        own |= {*monitor.plan.populations[1:], *(w.name for w in monitor.plan.watched if w.kind in OF_DATA)}
    if monitor.drift is not None:
        own |= drifted.names(monitor.drift)
    own = {sanitize(n) for n in own}
    return (own | {clipped(n, 80) for n in own}) - {""}


def document(monitor: Monitor, state: MonitorState, waiting: Waiting = ()) -> doc.Document:
    """The page: the headline and the timeline, groups, alarms, evidence by direction, and how it was computed."""
    s = monitor.settings
    looks = "1 look" if state.looks == 1 else f"{num.count(state.looks)} looks"
    facts = (f"{state.started} to {state.at}", f"{num.count(state.rows)} rows", looks)
    first = (*_summary(s, state), *_open(waiting))
    mark = "measured" if state.verdict == "not_checked" else state.verdict
    sections = [doc.Section("summary", "Summary", "Calibration, watched", first, mark)]
    # The page's script gives no tools to what is in the summary, and its long tables need them to be reached by keys.
    drawn = (_timeline(monitor, state),)
    sections.append(doc.Section("timeline", "Timeline", "Everyone, look by look", drawn, "measured"))
    sections.append(doc.Section("groups", "Groups", "Everyone and groups", (_table(s, state),), "measured"))
    if state.alarms:
        sections.append(doc.Section("alarms", "Alarms", "Alarms", (_alarms(state),), "found"))
    sections.append(
        doc.Section("evidence", "Evidence", "Where evidence is building up", tuple(_evidence(state)), "measured")
    )
    if state.drift is not None:
        drift = tuple(drifted.nodes(state.drift))
        sections.append(doc.Section("drift", "Drift", drifted.HEADING, drift, "measured"))
    sections.append(
        doc.Section("method", "Method", "How this was computed", tuple(_method(s, monitor.plan)), "reference")
    )
    paragraphs = tuple(doc.Paragraph(say(f)) for f in facts)
    return doc.Document(sanitize(f"{s.score} / {s.label}"), title(s), paragraphs, tuple(sections))


def _early(monitor: Monitor, waiting: Waiting) -> Iterator[doc.Node]:
    """The summary before the first day is complete."""
    yield doc.Opening("No day is complete yet: there is no verdict.")
    yield from _open(waiting)
    yield from drifted.drifted(monitor.drift)


def _early_document(monitor: Monitor, waiting: Waiting) -> doc.Document:
    """The page before the first day is complete: what waits, and drift."""
    s, drift = monitor.settings, monitor.drift
    sections = [doc.Section("summary", "Summary", "Calibration, watched", tuple(_early(monitor, waiting)), "absent")]
    facts: tuple[str, ...] = (f"{num.count(_counted(waiting)[0])} rows",)
    if drift is not None:
        sections.append(doc.Section("drift", "Drift", drifted.HEADING, tuple(drifted.nodes(drift)), "measured"))
        method = tuple(_method(s, monitor.plan))
        sections.append(doc.Section("method", "Method", "How this was computed", method, "reference"))
        facts = (f"to {drift.at}", f"{num.count(drift.rows)} rows")
    paragraphs = tuple(doc.Paragraph(say(f)) for f in facts)
    return doc.Document(sanitize(f"{s.score} / {s.label}"), title(s), paragraphs, tuple(sections))


def title(s: Settings) -> str:
    return sanitize(f"Monitor of {s.score} for {s.label}")


# ---- in words ----


def headline(s: Settings, state: MonitorState) -> str:
    """Who is off, since when, and whether it is still within."""
    a = state.lasting
    return (f"Alarm since about {a.onset}: {_who(a.suspects[0])}. " if a else "") + _judged(s, state)


def _judged(s: Settings, state: MonitorState) -> str:
    if s.limit is None:
        return "No limit was set: ranges and alarms only."
    limit = f"{num.limit_points(s.limit)} points"
    over = [f"{clipped(sanitize(r.name), 80)} since {r.since}" for r in state.window if r.verdict == "over"]
    if over:
        more = f" and {len(over) - HEADED:,} more" if len(over) > HEADED else ""
        return f"Over the limit of {limit}: {', '.join(over[:HEADED])}{more}."
    if state.verdict == "within":
        groups = f" and every group of {MASK} rows or more" if len(state.window) > 1 else ""
        small = "1 group has" if state.small_groups == 1 else f"{state.small_groups:,} groups have"
        rest = f" {small} fewer rows, and no verdict." if state.small_groups else ""
        return f"Within the limit of {limit} for everyone{groups}, at every look since {state.since}.{rest}"
    undecided = sum(r.verdict == "undecided" for r in state.window[1:])
    many = "1 group" if undecided == 1 else f"{undecided:,} groups"
    if state.window[0].verdict == "within":
        return f"Everyone is within the limit of {limit}; {many} undecided."
    return f"Undecided against the limit of {limit}: everyone{f' and {many}' if undecided else ''}."


def _summary(s: Settings, state: MonitorState) -> Iterator[doc.Node]:
    yield doc.Opening(headline(s, state))
    e = state.window[0]
    low, high = num.signed_range(e.low, e.high)
    most = num.upper_bound(e.error_high, s.limit)
    error = f" Calibration error of everyone, of the score rounded to whole percent: at most {most}."
    if e.error_low > max(e.low, -e.high, 0.0):
        error += f" Of the score itself: at least {num.lower_bound(e.error_low, s.limit)}."
    answer = (
        f"Last {s.window:,} days, {num.count(e.rows)} rows: observed minus predicted {num.gap(e.gap)} points, "
        f"guaranteed {low} to {high}.{error * (e.error_high < 1.0)}"
        if e.rows
        else f"No row of the last {s.window:,} days has a label."
    )
    yield doc.Paragraph(say(answer), "answer")
    if state.alarms:
        yield doc.Paragraph(say(*_alarm(state)))
    yield from drifted.drifted(state.drift)
    if state.unlabelled:
        yield doc.Paragraph(
            say(
                f"{num.count(state.unlabelled)} rows had no label when their day closed, and are left out: "
                "all of this is about the rows with a label."
            ),
            "note",
        )


def _counted(waiting: Waiting) -> tuple[int, int]:
    """How many rows wait, and how many of them have a label."""
    return sum(n for _, n, _ in waiting), sum(n for _, _, n in waiting)


def _open(waiting: Waiting) -> Iterator[doc.Node]:
    """The days that wait for their labels."""
    if waiting:
        rows, known = _counted(waiting)
        days = "1 day waits" if len(waiting) == 1 else f"{len(waiting):,} days wait"
        yield doc.Paragraph(
            say(
                f"{days} for labels: {num.count(rows)} rows, {num.count(known)} with a label. None of them is used yet."
            ),
            "note",
        )


def _alarm(state: MonitorState) -> tuple[str | Span, ...]:
    """The latest alarm; since when, and for whom, of the first of those that last."""
    latest = state.alarms[-1]
    a = latest if state.lasting is None else state.lasting
    between = f", between {a.onset_first} and {a.onset_last}" if a.onset_first != a.onset_last else ""
    began = () if a.onset is None else (f" It most plausibly began about {a.onset}{between}.",)
    first = (f"Alarm on {a.day}: ", *_whom(a.suspects[0]), ".", *began)
    if a is latest:
        return first
    if _who(latest.suspects[0]) == _who(a.suspects[0]) or latest.kind == "ever":
        return (*first, f" It lasts: alarm again on {latest.day}.")
    since = f", since about {latest.onset}." if latest.onset is not None else "."
    again = f" Alarm again on {latest.day}, by the evidence since the alarm before: "
    return (*first, again, *_whom(latest.suspects[0]), since)


def _whom(suspect: Suspect) -> tuple[str | Span, ...]:
    """For whom, and which way."""
    up, down = ALONG.get(suspect.kind, (SIDES["above"], SIDES["below"]))
    name, side = clipped(sanitize(suspect.name), 80), f" ({up if suspect.observed == 'above' else down})"
    return (literal(name), side) if suspect.kind in OF_DATA else (name + side,)


def _who(suspect: Suspect) -> str:
    return "".join(p if isinstance(p, str) else p.text for p in _whom(suspect))


# ---- tables ----


def _table(s: Settings, state: MonitorState) -> doc.Table:
    heads = ("Population", "Rows", f"Gap, {s.window:,} days", "Guaranteed", "Verdict", "Since the start", "Verdict")
    since_start = {a.name: a for a in state.all_days}  # whoever has so many rows in the window has them in all days
    rows = []
    for r in state.window:
        who = say(r.name if r.name == "everyone" else literal(clipped(r.name, 80)))
        rows.append((doc.Cell(who), *_cells(r), *_cells(since_start[r.name])[2:]))
    caption = (
        "Gap: observed minus predicted event rate, in points, with its guaranteed range; the same since the start."
    )
    return doc.number_table(caption, heads, rows, "cards")


def _cells(r: RangeNow) -> tuple[str | doc.Cell, ...]:
    low, high = num.signed_range(r.low, r.high)
    icon = "" if r.verdict == "not_checked" else r.verdict
    return num.count(r.rows), num.gap(r.gap), num.between(low, high), doc.Cell(say(WORDS[r.verdict]), icon=icon)


def _alarms(state: MonitorState) -> doc.Table:
    kinds = {"changed": "change", "ever": "any error since the start"}
    latest = state.alarms[-SHOWN:]
    changes = [a for a in state.alarms if a.kind == "changed"]
    rows = [
        (
            a.day,
            kinds[a.kind],
            say(*_whom(a.suspects[0])),
            f"{100 * a.suspects[0].share:.0f}%",
            "not known" if a.onset is None else a.onset,
            "" if a.onset is None else f"{drifted.between(a)}{SINCE_LAST * (a in changes[1:])}",
        )
        for a in (*reversed(latest), *(a for a in state.alarms if a.kind == "ever" and a not in latest))
    ]
    heads = ("Day", "Of", "For whom", "Share of the evidence", "Began about", "Between")
    caption = "While an error lasts, the alarm of a change repeats: after each it starts again."
    columns = [doc.Column(say(h), "now" if h in ("Day", "Began about") else "") for h in heads]
    return doc.number_table(caption, columns, rows, "cards")


def _evidence(state: MonitorState) -> Iterator[doc.Node]:
    change, ever = (
        "more than an alarm takes" if v >= 1.0 else f"{100 * max(0.0, v):.0f}% of what an alarm takes"
        for v in (state.change, state.ever)
    )
    yield doc.Paragraph(say(f"Evidence of a change: {change}. Evidence of any error since the start: {ever}."))
    if state.onset is not None and state.suspects:
        rows = [(say(*_whom(x)), f"{100 * x.share:.0f}%") for x in state.suspects]
        yield doc.number_table("Directions with most of the evidence now.", ("For whom", "Share"), rows, "cards")
        yield doc.Paragraph(say("Below an alarm these are no findings."), "note")


def _method(s: Settings, plan: Plan) -> Iterator[doc.Node]:
    level = num.percent(1.0 - s.alpha)
    rows = "Rows"
    if s.cluster:
        rows = f"Clusters of {sanitize(s.cluster)} within a day"
    elif s.shared_shocks:
        rows = "Days"
    yield doc.Paragraph(
        say(
            f"Verdicts: with probability {level}% none, of anyone at any look, is ever wrong. The ranges at the k-th "
            "look have error probability proportional to 1/k². They hold for the rows of those days."
        )
    )
    tolerance = f"off by more than {num.limit_points(s.tolerance)} points" if s.tolerance else "off at all"
    yield doc.Paragraph(
        say(
            f"Alarms test whether any person's probability is {tolerance}. An alarm of any error since the start is "
            f"false with probability at most {num.percent(s.alpha)}%, ever. An alarm of a change is false at most once "
            f"in {s.days_between_false_alarms:,.0f} days in the mean. Days are joint evidence for who and when, and "
            "the interval of the start is plausible, not guaranteed."
        )
    )
    pairs = ", ".join(v.name for v in plan.paired)
    yield doc.Paragraph(
        say(
            f"Alarms look in {len(plan.watched):,} directions: everyone, along the score and its ranges",
            *((", at the levels of ", literal(", ".join(v.name for v in plan.attributes))) if plan.attributes else ()),
            *((", and at pairs of levels of ", literal(pairs)) if pairs else ()),
            ", on each weekday and in each month" * plan.dated + ". An error elsewhere stays unseen.",
        )
    )
    if s.judge == "error" and s.limit is not None:
        yield doc.Paragraph(
            say(
                "Everyone is over the limit by the calibration error of the score itself, and within it by the gap and "
                "the error of the score rounded to whole percent."
            )
        )
    yield doc.Paragraph(
        say(f"{rows} are assumed independent given scores and covariates. A day enters once, when it is complete.")
    )
    if not s.independent_rows:
        yield doc.Paragraph(
            say("Drift of scores and columns is not watched: rows of one cluster or shock are no separate draws.")
        )


# ---- the timeline ----


def _timeline(monitor: Monitor, state: MonitorState) -> doc.Figure:
    """The guaranteed range of everyone's gap at each look, against the limit."""
    looks, limit = state.history, monitor.settings.limit
    heads = ("Day", "Gap", "Guaranteed", "Verdict on everyone", "Worst verdict")
    rows = [
        (k.day, num.gap(k.gap), num.between(*num.signed_range(k.low, k.high)), WORDS[k.verdict], WORDS[k.worst])
        for k in looks
    ]
    over = "1 look" if len(looks) == 1 else f"{len(looks):,} looks"
    label = f"Guaranteed range of observed minus predicted over {over}. {headline(monitor.settings, state)}"
    return doc.Figure(
        panels=(doc.Panel("Observed minus predicted, everyone, last days", _drawn(monitor, looks, limit, label)),),
        key=(),
        caption=say(
            "Band: guaranteed range at each look, in points; line: observed minus predicted; broken lines: the limit."
        ),
        id="fig-timeline",
        numbers=(doc.number_table("Everyone at each look.", heads, rows),),
    )


def _drawn(monitor: Monitor, looks: tuple[Look, ...], limit: float | None, label: str) -> svg.Svg:
    days = [monitor.day_of_text(k.day) for k in looks]
    first, span = days[0], max(days[-1] - days[0], 1)
    shown = looks[len(looks) // 4 :]  # the first ranges are wide, and would make the later ones small
    top = end_of(100 * max(1.4 * (limit or 0.0), *(max(abs(k.low), abs(k.high)) for k in shown))) / 100

    def at(day: int, gap: float) -> svg.At:
        return round((day - first) / span * svg.SIZE), round((top - max(-top, min(top, gap))) / (2 * top) * svg.SIZE)

    columns = [k.low for k in looks], [k.high for k in looks], [k.gap for k in looks]
    low, high, gap = ([at(d, v) for d, v in zip(days, vs, strict=True)] for vs in columns)
    shapes = [("band", svg.area(low, high)), ("zero", f"M0 {at(first, 0.0)[1]}h{svg.SIZE}")]
    shapes += [("limit", f"M0 {at(first, v)[1]}h{svg.SIZE}") for v in ((limit, -limit) if limit else ())]
    shapes.append(("curve", svg.path(gap)))
    up = tuple(
        (percent(at(first, v * top)[1] / svg.SIZE), signed(round(100 * v * top, 6))) for v in (1, 0.5, 0, -0.5, -1)
    )
    ticks = sorted({0, min(len(looks) // 2, max(len(looks) - 2, 0))})
    across = tuple((percent((days[i] - first) / span), looks[i].day) for i in ticks)
    # The last day ends with the plot: centred at its foot it would leave a narrow page.
    last = (svg.Mark("100%", "100%", 17, "end", "yl", looks[-1].day),) if len(looks) > 1 else ()
    return svg.plot(svg.Plot(up, across, tuple(s for s in shapes if s[1]), marks=last), label, "", "")
