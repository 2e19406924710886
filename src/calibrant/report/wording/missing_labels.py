"""Of whom a verdict is where outcomes are not known, and what the others could change."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from calibrant.arguments import lacking
from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.findings import dropped, limit_of, lost, noun
from calibrant.report.spans import Text, clipped, literal, say

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
    """Return everyone and the groups; none where every outcome is known."""
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
    """Return how many rows were left out of how many, and why; nothing where none were."""
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
