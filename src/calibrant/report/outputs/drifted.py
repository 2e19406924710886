"""What a monitor knows of drift in words and pictures: who is scored, never how good the scores are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date

from calibrant.audit.monitor.drift import Change, DriftNow, DriftSeries
from calibrant.audit.monitor.state import MASK, Alarm
from calibrant.report import document as doc
from calibrant.report import numbers as num
from calibrant.report import svg
from calibrant.report.languages.translator import in_words
from calibrant.report.places import percent
from calibrant.report.spans import Span, Text, clipped, literal, plain, say

HEADING = "Drift of scores and columns, without labels"
SHOWN = 10  # changes in the table, the latest
DRAWN = 4  # pictures of the score and of columns: those with the largest evidence
NAMED = 3  # of these, in the title of the pictures
LEAST, MOST = 1e-2, 1e4  # of the axis of evidence, on which these places are always, and what is beyond lies at an end
LABELS = 6  # on that axis, at most


def drifted(drift: DriftNow | None) -> tuple[doc.Paragraph, ...]:
    """The line on drift, if any became certain in the recent window: what is new on the latest day, or the first.

    Of a share that changed several times, the latest change.
    """
    recent = [] if drift is None else [c for c in drift.changes if c.recent]
    latest = [c for i, c in enumerate(recent) if c.name not in {later.name for later in recent[i + 1 :]}]
    if drift is None or not latest:
        return ()
    first = next((c for c in latest if c.day == drift.at), latest[0])
    more = len(latest) - 1
    others = f" So have {more:,} more shares." if more > 1 else " So has 1 more share." if more else ""
    of = "the rows before" if first.earlier else "the reference"
    return (
        doc.Paragraph(
            say(
                "Drift, which says nothing of calibration: ",
                _share_name(first.name),
                f" has changed{' again' * (first.earlier > 0)} since about {first.onset}, from "
                f"{of_rows(first.before)} of {of} to {of_rows(first.now)} of the rows since, in the last "
                f"{drift.window:,} days.{others}",
            ),
            "note",
        ),
    )


def _share_name(name: str) -> Span:
    return Span(name) if name.startswith("score of ") else literal(clipped(name, 80))


def of_rows(share: float | None) -> str:
    return f"fewer than {MASK} rows" if share is None else f"{num.in_percent(share)}%"


def nodes(drift: DriftNow) -> Iterator[doc.Node]:
    """The section on drift."""
    level = num.percent(drift.alpha)
    yield doc.Paragraph(
        say(
            f"{drift.watched:,} shares of rows to {drift.at} are compared with {num.count(drift.reference_rows)} rows "
            "of the reference and the days before. After a share is named, it is compared with the rows since then. "
            f"The probability that any change is ever named falsely is at most {level}%. Shares that swing from day to "
            "day, such as by weekday, are named, too. Rows of different days are assumed to be different draws: people "
            "scored on several days make their levels look drifted."
        )
    )
    for part in _unwatched(drift):
        yield doc.Paragraph(part, "note")
    yield from _pictures(drift)
    if drift.changes:
        yield _changes(drift)
        if len(drift.changes) > SHOWN:
            yield doc.Paragraph(say(f"{len(drift.changes) - SHOWN:,} more changes are in the state as JSON."), "note")
    else:
        most = f"{100 * max(0.0, drift.evidence):.0f}%"
        yield doc.Paragraph(say(f"No change is named. The largest evidence is {most} of what that takes, in logs."))
    yield doc.Paragraph(
        say("Drift is about who is scored, not about how good the scores are: it changes no verdict."), "note"
    )


def _changes(drift: DriftNow) -> doc.Table:
    latest = sorted(drift.changes, key=lambda c: -_day(c.day))[:SHOWN]
    rows = [(say(_share_name(c.name)), of_rows(c.before), of_rows(c.now), c.onset, between(c), c.day) for c in latest]
    heads = ("Share", "Before", "Since", "Began about", "Between", "Certain on")
    caption = (
        "Shares that have changed, the latest first. Before: of the reference, or of the rows since the change before. "
        f"Since: of the last {drift.window:,} days, those from the beginning on, or until the next change. Percentages "
        "are estimates; that there is a change is guaranteed."
    )
    return doc.number_table(caption, [doc.Column(say(h)) for h in heads], rows, "cards")


def between(c: Change | Alarm) -> str:
    """When it began, as the first and the last day that share most of the evidence; one day where they are one."""
    return f"{c.onset_first} to {c.onset_last}" if c.onset_first != c.onset_last else f"{c.onset}"


def _unwatched(drift: DriftNow) -> Iterator[Text]:
    """What is not watched, although it was asked for."""
    if not drift.score:
        yield say("The score is not watched: in a fifth of the reference no score is over 0.")
    if drift.unwatched:
        yield say(
            "Not watched, because a fifth of the reference does not show the kind of its values: ",
            literal(clipped(", ".join(drift.unwatched), 160)),
            ".",
        )


# ---- the evidence over time ----


def _pictures(drift: DriftNow) -> Iterator[doc.Node]:
    """The evidence of the score and of columns at each look: what was named first, then what has the most evidence."""
    needed = -math.log(drift.alpha)
    ordered = sorted(drift.series, key=lambda s: (s.column is not None, -max(s.log_evidence)))
    shown, rest = ordered[:DRAWN], ordered[DRAWN:]
    top = _top(drift, needed)
    caption = say(
        "Line: the largest evidence of a change among the shares of each, day by day, on a log scale. Broken line: "
        f"1/alpha = {_written(1.0 / drift.alpha)}, from which on a change is named; dots: days with such evidence. The "
        "search for that share then starts again. None of this is about calibration."
    )
    for i, series in enumerate(shown):
        rows = [(d, _written(math.exp(v))) for d, v in zip(drift.days, series.log_evidence, strict=True)]
        yield doc.Figure(
            panels=(doc.Panel(_name(series), _picture(drift, series, top)),),
            key=(),
            caption=caption if i == len(shown) - 1 else (),
            id=f"fig-drift-{i + 1}",
            title="" if i else finding(drift),
            numbers=(doc.number_table("Evidence of drift by day.", ("Day", "Evidence"), rows),),
        )
    if rest:
        most = _written(math.exp(max(max(s.log_evidence) for s in rest)))
        columns = "1 more column has" if len(rest) == 1 else f"{len(rest):,} more columns have"
        yield doc.Paragraph(say(f"{columns} no larger evidence: at most {most}."), "note")


def _top(drift: DriftNow, needed: float) -> float:
    """The end of the axis of evidence, a power of ten, as a log to the base of ten."""
    most = max(max(s.log_evidence) for s in drift.series)
    room = max(min(most / math.log(10.0), math.log10(MOST)), needed / math.log(10.0) + 0.5)
    return float(math.ceil(room - 1e-9))


def finding(drift: DriftNow) -> str:
    """What the pictures show, in a sentence."""
    named = [s for s in drift.series if max(s.log_evidence) >= -math.log(drift.alpha)]
    if not named:
        return "No evidence of drift has reached the threshold."
    who = ["the score" if s.column is None else _name(s) for s in named]
    if len(who) > NAMED:
        who = [*who[: NAMED - 1], f"{len(who) - NAMED + 1:,} more columns"]
    listed = " and ".join((", ".join(who[:-1]), who[-1])) if len(who) > 1 else who[0]
    return f"Evidence of drift has reached the threshold for {listed}."


def _name(series: DriftSeries) -> str:
    return "The score" if series.column is None else clipped(series.column, 80)


def _picture(drift: DriftNow, series: DriftSeries, top: float) -> svg.Svg:
    """One line of evidence against its threshold."""
    low, days = math.log10(LEAST), [_day(d) for d in drift.days]
    first, span = days[0], max(days[-1] - days[0], 1)

    def at(day: int, log: float) -> svg.At:
        value = max(low, min(top, log / math.log(10.0)))
        return round((day - first) / span * svg.SIZE), round((top - value) / (top - low) * svg.SIZE)

    needed = -math.log(drift.alpha)
    line = at(first, needed)[1]
    points = [at(d, v) for d, v in zip(days, series.log_evidence, strict=True)]
    over = [p for p, v in zip(points, series.log_evidence, strict=True) if v >= needed]
    shapes = [("limit", f"M0 {line}h{svg.SIZE}"), ("curve" if len(points) > 1 else "lone", svg.path(points))]
    shapes += [("peak", "".join(f"M{x} {y}h0" for x, y in over))] if over else []
    every = -(-round(top - low + 1) // LABELS)
    powers = range(round(low), round(top) + 1, every)
    up = tuple((percent((top - k) / (top - low)), _power(k)) for k in reversed(powers))
    marks = [svg.Mark("0", percent(line / svg.SIZE), -6, "start", "mark small", "1/alpha")]
    middle = min(len(days) // 2, max(len(days) - 2, 0))
    across = tuple((percent((days[i] - first) / span), drift.days[i]) for i in sorted({0, middle}))
    if len(days) > 1:  # the last day ends with the plot: centred at its foot it would leave a narrow page
        marks.append(svg.Mark("100%", "100%", 17, "end", "yl", drift.days[-1]))
    return svg.plot(svg.Plot(up, across, tuple(shapes), marks=tuple(marks)), _label(drift, series), "", "", "flat")


def _label(drift: DriftNow, series: DriftSeries) -> str:
    """The picture in words, for those who do not see it."""
    needed = -math.log(drift.alpha)
    i = max(range(len(drift.days)), key=lambda k: series.log_evidence[k])
    reached = "reached" if series.log_evidence[i] >= needed else "not reached"
    return (
        f"Evidence of drift: {_name(series)}. From {drift.days[0]} to {drift.days[-1]}. Largest on {drift.days[i]}: "
        f"{_written(math.exp(series.log_evidence[i]))}. The threshold is {_written(math.exp(needed))}: {reached}."
    )


def _written(evidence: float) -> str:
    """Evidence as a number of few digits."""
    if evidence < LEAST:
        return f"under {LEAST:g}"
    if evidence > 1e6:
        return "over 1,000,000"
    return f"{evidence:,.0f}" if evidence >= 100 else f"{evidence:.3g}"


def _power(k: int) -> str:
    return f"{10**k:,}" if 0 <= k < 5 else f"{10.0**k:g}" if k < 0 else "10" + str(k).translate(RAISED)


RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _day(text: str) -> int:
    """The number of a day as it was entered."""
    return int(text) if text.isdigit() else date.fromisoformat(text).toordinal()


def names(drift: DriftNow) -> set[str]:
    """The words of the data that all this repeats."""
    own = {c.name for c in drift.changes if not c.name.startswith("score of ")}
    return own | {s.column for s in drift.series if s.column is not None} | set(drift.unwatched)


def wait(at: str, rows: int, drift: DriftNow | None, language: str) -> str:
    """What a terminal shows after the predictions of a day."""
    waiting = f"{at}: {rows:,} predictions wait for their labels"
    first, more = in_words((waiting, drifted(drift)), set() if drift is None else names(drift), language)
    return "\n".join((first, *(plain(p.text) for p in more)))
