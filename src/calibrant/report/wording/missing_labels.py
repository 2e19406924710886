"""What is said where outcomes are not known: of whom a verdict is, and what the others could change.

Of those lost before a horizon: the way that was chosen, and its price.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from calibrant.arguments import lacking
from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.findings import Line, dropped, limit_of, lost, noun, unestimated
from calibrant.report.spans import Text, clipped, code, label, literal, say
from calibrant.sanitize import sanitize

LINES = 4  # of one population: those known alone, and three assumptions about the others
NAMED, LARGE = 40, 10.0  # characters of a name; ratios from there on are whole
LEAST = 0.01  # share of people without an outcome that the first screen tells
OF_KNOWN = "Of those whose outcome is known: "
SHORTER = ("Where the outcome is known: ", "Known outcomes: ")  # where a sentence must be short
FELL = {"within": "Within the limit", "over": "Over the limit"}


@dataclass(frozen=True, slots=True)
class People:
    """What is certified of everyone, or a group, whether their outcomes are known or not."""

    name: str
    everyone: bool
    # `rows` and `missing`: people whose outcome is known, and the others; of a group as reported.
    rows: int
    missing: int
    # `ranges` and `verdicts`: at random, at the stated odds, and whatever they are.
    ranges: tuple[tuple[float, float], ...]
    verdicts: tuple[str, ...]
    stands: float  # the ratio of odds up to which the verdict at random stands; 0 if it is undecided

    @property
    def unknown(self) -> str:
        """The share whose outcome is not known, in percent."""
        return f"{num.nearest(self.missing / max(self.rows + self.missing, 1))}%"


def people(record: AuditRecord) -> tuple[People, ...]:
    """Everyone and the groups; none where every outcome is known."""
    c = record.curve("missing_labels").columns
    out = []
    for i in range(0, len(c.get("people", ())), LINES):
        under = range(i + 1, i + LINES)  # the first line is of those whose outcome is known
        ranges = tuple((float(c["low"][j]), float(c["high"][j])) for j in under)
        rows, missing, stands = int(c["rows"][i]), int(c["unlabelled"][i]), float(c["stands_to"][i])
        verdicts = tuple(str(c["verdict"][j]) for j in under)
        out.append(People(str(c["people"][i]), i == 0, rows, missing, ranges, verdicts, stands))
    return tuple(out)


def ratio(odds: float) -> str:
    """Write a ratio of odds, rounded down: up to it something stands."""
    return f"{math.floor(odds * 10.0) / 10.0:.1f}" if odds < LARGE else f"{math.floor(odds)}"


def partly(record: AuditRecord) -> bool:
    """Whether outcomes are known of some only, so that every verdict is of those."""
    if lost(record):  # every range is of all
        return False
    return any(one.missing >= LEAST * (one.rows + one.missing) for one in people(record)[:1])


def of_known(record: AuditRecord, text: str) -> str:
    """A sentence, which says that it is of those whose outcome is known where that is not everyone."""
    return _after(OF_KNOWN, text) if partly(record) else text


def known_only(record: AuditRecord) -> str:
    """The end of the name of a part of the verdict: of whom it is."""
    return ", outcomes known" if partly(record) else ""


def qualified(record: AuditRecord, form: str) -> Iterator[str]:
    """Yield ways to say of whom a headline is, the clearest first."""
    if not partly(record):
        yield form
        return
    for lead in (OF_KNOWN, *SHORTER):
        yield _after(lead, form)


def _after(lead: str, sentence: str) -> str:
    return f"{lead}{sentence[:1].lower()}{sentence[1:]}"


def left_out(record: AuditRecord) -> Text:
    """How many rows were left out of how many, and why; nothing where none were."""
    gone, data = dropped(record.data), record.data
    if not gone:
        return ()
    every = num.count(record.everyone.rows + gone + (0 if lost(record) else data.get("unlabelled") or 0))
    lack = {part: n for part, n in (data.get("dropped_for") or {}).items() if n}
    if not lack:
        may = lacking(data.get("cluster"), data.get("weights"))
        return say(f"{num.count(gone)} of {every} {noun(record)} left out, without {may}")
    if len(lack) == 1:
        return say(f"{num.count(gone)} of {every} {noun(record)} left out, without {next(iter(lack))}")
    reported = ", ".join(f"{num.count(n)} without {part}" for part, n in lack.items())
    return say(f"{num.count(gone)} of {every} {noun(record)} left out: {reported}")


def unknown(record: AuditRecord) -> Iterator[Text]:
    """Yield of whom the verdict is, and how far it stands for the others; nothing where hardly anyone is missing."""
    if not partly(record):
        return
    one, *groups = people(record)
    known, every = num.count(one.rows), num.count(one.rows + one.missing)
    reported = f"Outcomes are known of {known} of {every} {noun(record)}: verdicts are of these. {_of_all(record, one)}"
    fewer = (g for g in groups if g.rows and g.verdicts[0] == one.verdicts[0] and g.stands < one.stands)
    first = min(fewer, key=lambda g: g.stands, default=None)
    least: Text = ()
    if first is not None and limit_of(record) is not None:
        least = say(" For ", literal(clipped(first.name, NAMED)), f", up to {ratio(first.stands)} times.")
    bare = [g for g in groups if not g.rows]
    none: Text = say(" None is known of ", literal(clipped(bare[0].name, NAMED)), ".") if bare else ()
    yield (*say(reported), *least, *none)


def _of_all(record: AuditRecord, one: People) -> str:
    at_random, stands = one.verdicts[0], one.stands
    if limit_of(record) is None:
        high = max(map(abs, one.ranges[-1]))
        return f"Of all, off by at most {num.upper_bound(high)} points whatever the others' outcomes."
    if at_random not in FELL:
        return "Of all it is undecided, even if outcomes are missing at random."
    if math.isinf(stands):
        return f"{FELL[at_random]} for all, whatever the others' outcomes."
    odds = f"{ratio(stands)} times at one score"
    return f"{FELL[at_random]} for all, unless the others' odds differ by more than {odds}."


# ---- lost before a horizon ----

LEAST_P = 1e-4  # below which a p-value is shown as below it
APART, LONGEST = 3, 60  # groups that are not judged, and characters of a name

TAKES = (
    "Weights of censoring take being lost as independent of outcome and score together: for everyone among all rows, "
    "for a group among its own. No data can show it. A group that is lost sooner and has more events than its score "
    "breaks it for everyone."
)
TAKES_WITHIN = (
    "Weights of censoring take being lost as independent of outcome and score together within each level of {}. No "
    "data can show it."
)
UNLIKE = "Rows of some levels of {} are lost sooner than others (log-rank test of pilot rows, p {})."
NO_LAW = "Levels of {} are too small or too many for a law of their own each: merge them in a new column."
LAW = (
    "The law of censoring{of} comes from {pilots} pilot rows, which are certified nowhere, with "
    "limits that hold at this number of rows: being followed to {horizon} has probability {least} or more, so no row "
    "counts over {most} times. None was truncated."
)
UNKNOWN = "Nothing is assumed of them: guaranteed ranges hold whatever their outcomes."
OUTSIDE = (
    "Everyone's estimate lies outside of the guaranteed range: being lost depends on outcome or score, so that neither "
    "can be relied on."
)
NO_ESTIMATE = "Nobody was followed to {}, so that there is no estimate, only the guaranteed range."
ESTIMATED = "Estimates are Aalen and Johansen's, which take being lost as independent of the outcome."
HOW = (
    "Each known outcome counts by the inverse of how probable it was to be followed to it, between limits that pilot "
    "rows give at all times together; the ends take the worst between these. True at this number of rows. Function "
)
HOW_UNKNOWN = (
    "Each row whose outcome is unknown counts as the worst that its score allows. True at this number of rows. "
    "Function "
)
ODDS = (
    "Known outcomes are no fair sample: events are known sooner. If loss were independent of the outcome, the odds of "
    "those lost would be about {odds} times those of the others at all scores together."
)


def _by_weights(of: Line) -> Iterator[str]:
    """Yield what weights of censoring take for granted, and the law of censoring."""
    least = float(of["followed_at_least"])
    yield TAKES_WITHIN.format(sanitize(of["within"])) if of.get("within") else TAKES
    for name, p in (of.get("lost_unlike") or {}).items():
        yield UNLIKE.format(sanitize(name), f"= {p:.2g}" if p >= LEAST_P else f"< {LEAST_P:g}")
        if name not in of.get("own_law", ()):
            yield NO_LAW.format(sanitize(name))
    yield LAW.format(
        of=f" of each level of {sanitize(of['within'])}" if of.get("within") else "",
        pilots=num.count(of["pilots"]),
        horizon=f"{of['horizon']:g}",
        least=f"{int(least * 1000) / 1000:g}",
        most=f"{int(10.0 / least) / 10 + 0.1:.1f}",
    )


@dataclass(frozen=True, slots=True)
class Way:
    """What is said of rows that were lost before a horizon, by the way that was chosen; here of none."""

    cell: str = "none"  # of a table, of how many
    rows: str = "no row lost, nothing assumed, events observed"  # the same in a sentence
    takes: str = ""  # for granted
    how: str = ""  # it is computed


ESTIMATES = "{} rows lost, %s, events estimated"
ASSUMES_NOTHING = Way("{}, nothing assumed", ESTIMATES % "nothing assumed", UNKNOWN, HOW_UNKNOWN)
WEIGHTS = Way("{}, weights", ESTIMATES % "weights of censoring", TAKES, HOW)
WAYS = {"weights": WEIGHTS, "unknown": ASSUMES_NOTHING}


def way(record: AuditRecord) -> Iterator[str]:
    """Yield how many rows were lost, the way that was chosen, and what it takes for granted; nothing of others."""
    of = record.data.get("horizon") or {}
    if not lost(record):
        others = [how.takes for _, how, n in each(record) if n]
        yield from (others[0], ESTIMATED) if others else ()
        return
    audited = of["rows"] - of["late"] - of["lacking"]
    yield f"{num.count(of['unknown'])} of {num.count(audited)} rows were lost before {of['horizon']:g}."
    if lost(record) == "unknown":
        yield UNKNOWN
    else:
        yield from _by_weights(of)
    if not record.everyone.proved_above:
        low, high = record.everyone.gap_ends
        if not low <= record.everyone.gap.value <= high:
            yield OUTSIDE
    yield NO_ESTIMATE.format(f"{of['horizon']:g}") if unestimated(record.everyone) else ESTIMATED
    apart = [f for f in record.groups if f.withheld is not None]
    for f in apart[:APART]:
        yield f"Not judged is {clipped(label(f), LONGEST)}: {sanitize(f.withheld or '')}."
    if len(apart) > APART:
        yield f"{num.count(len(apart) - APART)} more groups are not judged."


def each(record: AuditRecord) -> list[tuple[float, Way, int]]:
    """Of several horizons each, the way of its rows that were lost, and how many these are."""
    of = record.curve("horizons").settings
    ways = zip(*(of.get(k, ()) for k in ("horizons", "ways", "unknown")), strict=True)
    return [(horizon, WAYS.get(how, ASSUMES_NOTHING) if n else Way(), n) for horizon, how, n in ways]


def any_lost(record: AuditRecord) -> bool:
    """Whether rows were lost before the horizon, of several before any."""
    return bool(lost(record)) or any(n for _, _, n in each(record))


def by_each(record: AuditRecord) -> Iterator[str]:
    """Yield a sentence for each of several horizons: rows lost, the way, what is judged, and what the share is."""
    of = record.curve("horizons").settings
    for (horizon, how, n), by in zip(each(record), of.get("judged", ()), strict=True):
        about = f"the {'gap' if by == 'gap' else 'calibration error'} is {'judged' if limit_of(record) else 'shown'}"
        yield f"By {horizon:g}: {how.rows.format(num.count(n))}, {about}."


def recorded(record: AuditRecord) -> str:
    """Which of several horizons a page is about."""
    if limit_of(record) is not None:
        return "the one with the worst verdict"
    return "one that shows error" if any(record.error_shown.values()) else "the last, for none shows error"


def happened(record: AuditRecord, predicted: str, observed: str) -> str:
    """What is predicted and what is known of what happened, in percent, as the start of a sentence."""
    if lost(record) != "unknown":
        return f"Predicted {predicted}%, {'estimated' if lost(record) else 'observed'} {observed}%"
    low, high = record.everyone.gap_ends
    mean = record.everyone.expected / record.everyone.rows
    ends = (max(mean + low, 0.0), min(mean + high, 1.0))
    return f"Predicted {predicted}%, {num.nearest(ends[0])}% to {num.nearest(ends[1])}% happened"


def implied(record: AuditRecord) -> str:
    """How unlike those known the others would be if loss were independent of the outcome; empty where not known."""
    odds = (record.data.get("horizon") or {}).get("implied_odds")
    return "" if odds is None or not lost(record) else ODDS.format(odds=f"{float(odds):.2g}")


def how_lost(record: AuditRecord) -> Text:
    """How it is computed."""
    return say(WAYS[lost(record)].how, code(record.everyone.upper.method), ".")
