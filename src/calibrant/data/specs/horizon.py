"""An outcome by a horizon: 1 where the event came by then, 0 where it had not come, unknown where nobody followed.

With T the time to the first event and C the end of follow-up, a file has ``min(T, C)`` and what ended it. The outcome
``Y = 1{T <= H}``, with competing events ``1{T <= H and of the kind asked}``, is known where ``T <= min(H, C)`` or
``C >= H``. Who is kept follows from dates of entry and one closing date, and never from what ended the follow-up.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from threading import Lock
from typing import Literal, NamedTuple, NoReturn, TypeAlias, TypeVar, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.arguments import PYTHON, Caller, choice, increasing, names, text
from calibrant.data.columns import (
    Floats,
    are_absent,
    as_float,
    clipped,
    is_number,
    label_values,
    no_such_event,
    number_texts,
    require,
    score_values,
)
from calibrant.data.layouts import as_days, decoded, has_zone, is_date, is_text, may_be_dates
from calibrant.data.sources.source import Part, Source, making, row_of
from calibrant.data.specs.options import OF_HORIZON
from calibrant.errors import BadInput, NotComputable

Rows = TypeVar("Rows")
Way: TypeAlias = Literal["followed", "weights", "unknown"]
WAYS: tuple[Way, ...] = get_args(Way)
CENSORED, EVENT, COMPETING, LACKING = 0, 1, 2, -1  # what ended the follow-up of a row; of LACKING nothing is known
# Columns of rows that were read by a horizon, which no file has.
TIME, KIND, LEVEL, PLACE = "calibrant:time", "calibrant:kind", "calibrant:level", "calibrant:place"
HIDDEN = TIME, KIND, LEVEL, PLACE
FEWEST = 20  # rows on either side of which a share is compared
SHORT = 0.05  # of the days from entry to the closing date, that no follow-up exceeds where times are no days
OTHERWISE = "calibrant certify --method horizon --by GROUP --way weights has the gap of each group where rows were lost"
VALUES = 20  # of the column of events that are kept for a message
EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Followed:
    """What ended the follow-up of rows, those with an outcome by the horizon first, then those whose is unknown."""

    horizon: float
    time: NDArray[np.float64]  # shape (n + m,): to the event, or to the end of follow-up
    kind: NDArray[np.int8]  # shape (n + m,): 0 if follow-up ended without an event, 1 by the event, 2 by another one
    weighs: bool  # rows with an outcome stand for those without, by the inverse of how likely they were followed
    level: NDArray[np.int64]  # shape (n + m,): follow-up has a law of its own in each; one level where none was named
    place: NDArray[np.int64]  # shape (n + m,): in which order rows were read, by which they are drawn at random
    within: tuple[str, ...] = ()  # the columns that make levels

    @classmethod
    def of(cls, at: Horizon, known: pa.Table, unknown: pa.Table) -> tuple[Followed, pa.Table | None, pa.Table]:
        """What ended the follow-up of rows with and without an outcome, and their covariates without its columns."""
        time, kind, level, place = (
            np.concatenate([as_float(t.column(c), c, "time") for t in (known, unknown)]) for c in HIDDEN
        )
        known, unknown = (t.drop_columns(list(HIDDEN)) for t in (known, unknown))
        weighs, levels = at.way == "weights", level.astype(np.int64)
        made = cls(at.horizon, time, kind.astype(np.int8), weighs, levels, place.astype(np.int64), at.within)
        return made, known if known.num_columns else None, unknown


def level_keys(column: pa.Array | pa.ChunkedArray) -> list[object]:
    """The level of each row of a column: its value, NaN as missing, which is one level."""
    return [None if value != value else value for value in column.to_pylist()]


class Levels:
    """The levels that some columns make, numbered as they are met; they may be read by several threads."""

    def __init__(self, within: tuple[str, ...]) -> None:
        self.within, self.seen, self.lock = within, dict[tuple[object, ...], int](), Lock()

    def of(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """The level of each row; one for all where no column is named."""
        if not self.within:
            return np.zeros(batch.num_rows, dtype=np.int64)
        keys = zip(*(level_keys(decoded(batch.column(c), c)) for c in self.within), strict=True)
        with self.lock:
            return np.array([self.seen.setdefault(key, len(self.seen)) for key in keys], dtype=np.int64)


class Outcomes(NamedTuple):
    """What rows of a batch come to."""

    time: Floats  # shape (n,): to the event, or to the end of follow-up
    kind: NDArray[np.int8]  # shape (n,): what ended it
    late: NDArray[np.bool_]  # shape (n,): entered so late that the closing date came before the horizon
    ended: pa.Array  # of n values: the column of what ended it
    hits: Mapping[str, NDArray[np.bool_]]  # shape (n,) each: which rows have each value that was named, the event first
    days: Floats | None = None  # shape (n,): from entry to the closing date; None where entries are no dates

    def longest(self) -> float:
        """The longest follow-up as a share of the days from entry to the closing date; 1 where entries are no dates."""
        if self.days is None:
            return 1.0
        there = (self.kind != LACKING) & (self.days > 0.0)
        return float((self.time[there] / self.days[there]).max(initial=0.0))

    def labels(self, horizon: float) -> Floats:
        """The outcomes by a horizon, NaN where they are unknown."""
        event = (self.kind == EVENT) & (self.time <= horizon)
        none = (self.time >= horizon) | (self.kind == COMPETING)
        return np.where(event, 1.0, np.where(none & (self.kind != LACKING), 0.0, np.nan))


@dataclass
class Tally:
    """Rows counted so far, and what else the first reading of them shows."""

    counts: Counter[str] = field(default_factory=Counter)
    hits: Counter[str] = field(default_factory=Counter)  # rows of each value that was named
    others: set[str] = field(default_factory=set)  # values of the column of events that were not
    longest: float = 0.0  # follow-up, as a share of the days from entry to the closing date
    first_unknown: str = ""  # where the first row stands whose outcome is unknown
    means: dict[tuple[str, bool], float] = field(
        default_factory=lambda: defaultdict(float)
    )  # sums of numbers, of rows kept and of those late
    known: Counter[tuple[str, bool]] = field(default_factory=Counter)  # rows that have such a number
    levels: Counter[tuple[str, str, bool]] = field(default_factory=Counter)


@dataclass(frozen=True, kw_only=True)
class Horizon:
    """How outcomes by a horizon are made of a file; made by `Horizon.of`, which checks."""

    time: str  # column of the time to the event or to the end of follow-up, or of its date
    event: str  # column of what ended the follow-up
    horizon: float  # in the unit of the times; of dates in days
    entered: str = ""  # column of the date of entry, or of a time on one clock for all
    closed: str = ""  # the last date, or time, of follow-up
    competing: tuple[str, ...] = ()  # values of `event` of other events, after which this one cannot come
    positive: str | None = None  # the value of `event` that is the event: 1 by default
    way: Way = "followed"
    within: tuple[str, ...] = ()  # columns within whose levels rows are lost independently of the outcome
    drop: bool = False  # leave out rows without a time, an event or an entry
    caller: Caller = PYTHON
    # Of several horizons that share alpha: all of them, increasing, and the score of each; empty of one.
    family: tuple[float, ...] = ()
    scores: tuple[str, ...] = ()
    one: bool = False  # of them this one is read

    @classmethod
    def of(cls, inputs: Mapping[str, object], event: str | None, drop: bool, caller: Caller) -> Horizon | None:
        """Check what was asked for; None where no horizon was."""
        way = choice(caller.name("way"), inputs["way"] or "followed", WAYS)
        needed, more = (
            OF_HORIZON[:3],
            [n for n in ("entered", "closed", "competing", "within") if inputs[n] not in (None, ())],
        )
        lacking = [name for name in needed if inputs[name] is None]
        if len(lacking) == len(needed):
            more += ["way"] if way != "followed" else []
            if more:
                raise BadInput(
                    f"{caller.says(*more)} goes with an outcome by a horizon: name {caller.says(*needed)} too"
                )
            return None
        if lacking:
            raise BadInput(f"an outcome by a horizon needs {caller.says(*needed)}: name {caller.says(*lacking)} too")
        if inputs["within"] and way != "weights":
            weights = caller.typed("way", "weights")
            raise BadInput(f"{caller.says('within')} goes with {weights}, which takes being lost as independent")
        if way != "followed" and "way" in caller.lacks:
            raise BadInput(
                f"{caller.typed('way', way)}: outcomes are counted here, and no row may be lost: {OTHERWISE}"
            )
        closed = inputs["closed"]
        if closed is not None and inputs["entered"] is None:
            raise BadInput(
                f"{caller.says('closed')} needs to know when each row entered: name {caller.says('entered')}"
            )
        horizons = increasing(caller.name("horizon"), inputs["horizon"], hint="such as 365, or 30,90,365")
        return cls(
            family=horizons if len(horizons) > 1 else (),
            time=text(caller.name("time"), inputs["time"]),
            event=text(caller.name("event"), inputs["event"]),
            horizon=horizons[-1],
            entered="" if inputs["entered"] is None else text(caller.name("entered"), inputs["entered"]),
            closed="" if closed is None else _day(closed),
            competing=tuple(map(str, names(caller.name("competing"), inputs["competing"] or None, what="a value"))),
            positive=event,
            way=way,
            within=names(caller.name("within"), inputs["within"] or None),
            drop=drop,
            caller=caller,
        )

    @property
    def several(self) -> bool:
        """Several horizons, of which none was taken."""
        return len(self.family) > 1 and not self.one

    @property
    def label(self) -> str:
        """What the outcome is called: ``died by 365``."""
        return f"{self.event} by {self.horizon:g}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(dict.fromkeys(c for c in (self.time, self.event, self.entered, *self.within) if c))

    @property
    def hidden(self) -> tuple[str, ...]:
        """The columns that say what ended the follow-up, where some outcomes are unknown."""
        return () if self.complete else HIDDEN

    @property
    def complete(self) -> bool:
        """Every row that is kept has an outcome."""
        return self.way == "followed"

    # ---- rows of a batch ----

    def outcomes(self, batch: pa.RecordBatch) -> Outcomes:
        """What the rows of a batch come to; a row that lacks a time, an event or an entry has the kind LACKING."""
        values, dated = self._moments(batch, self.time)
        lacks, days = np.isnan(values), None
        late = np.zeros(len(values), dtype=np.bool_)
        if self.entered:
            start, dates = self._moments(batch, self.entered)
            lacks |= np.isnan(start)
            values = values - start if dated else values
            if dated and not dates:
                raise BadInput(f"time column {self.time!r} holds dates and {self.entered!r} none: store both as dates")
            if dated:
                self._one_clock(batch)
            if self.closed:
                closing = self._closing(dates)
                late, days = start + self.horizon > closing, closing - start if dates else None
        elif dated:
            entered = self.caller.says("entered")
            raise BadInput(f"time column {self.time!r} holds dates: name the date of entry by {entered}, or store days")
        column, kind = decoded(batch.column(self.event), self.event), np.zeros(len(values), dtype=np.int8)
        hits = {value: label_values(column, self.event, value, name) for name, value in self._named(column)}
        event = next(iter(hits.values()))
        kind[event == 1.0] = EVENT
        for value in self.competing:
            kind[hits[value] == 1.0] = COMPETING
        lacks |= are_absent(column, self.event) | np.isnan(event)
        kind[lacks] = LACKING
        return Outcomes(values, kind, late & ~lacks, column, {value: hit == 1.0 for value, hit in hits.items()}, days)

    def _moments(self, batch: pa.RecordBatch, name: str) -> tuple[Floats, bool]:
        """A column of times as numbers, or as days of the calendar, and whether it holds dates."""
        column = decoded(batch.column(name), name)
        if is_date(column.type) or (is_text(column.type) and may_be_dates(column)):
            return as_days(column, name), True
        return as_float(column, name, "time", "store times as numbers, or as dates such as 2026-06-30"), False

    def _one_clock(self, batch: pa.RecordBatch) -> None:
        """Refuse dates of entry and of the end of which only one names a zone: they are apart by hours."""
        names = self.entered, self.time
        zoned = [name for name in names if has_zone(decoded(batch.column(name), name))]
        if len(zoned) == 1:
            other = names[zoned[0] == names[0]]
            raise BadInput(
                f"time column {zoned[0]!r} names a zone and {other!r} none, so that times between them are off by "
                "hours: store both with a zone, or both without"
            )

    def _closing(self, dates: bool) -> float:
        """The closing date on the clock of entries."""
        says = self.caller.says("closed")
        try:
            return float((date.fromisoformat(self.closed) - EPOCH).days) if dates else float(self.closed)
        except ValueError:
            like = "a date such as 2026-06-30, as entries are" if dates else "a number, as entries are"
            raise BadInput(f"{says} {self.closed!r}: pass {like}") from None

    def _named(self, column: pa.Array) -> Iterator[tuple[str, str]]:
        """The values that were named, the event first, each with its argument."""
        usual = "true" if pa.types.is_boolean(column.type) else "1" if is_number(column.type) else None
        event = usual if self.positive is None else self.positive
        if event is None:
            seen = ", ".join(repr(clipped(v)) for v in pc.unique(column).drop_null()[:4].to_pylist())
            raise BadInput(
                f"event column {self.event!r} holds text ({seen}): name the event by {self.caller.says('positive')}"
            )
        yield "positive", event
        yield from (("competing", value) for value in self.competing)

    # ---- a source with the outcome in place of time and event ----

    def of_source(self, opened: Source, score: str, percent: bool, by: Sequence[str] = ()) -> Source:
        """The source with a column of outcomes, without those of time and event, and without rows that entered late.

        Its rows are read once before, to count them; what has to be chosen by whoever asks is refused with the count.
        """
        if opened.log.horizon:
            return opened
        if self.several:
            raise BadInput(f"{self.caller.says('horizon')}: an audit takes several horizons; name one here")
        for role, name in (("time", self.time), ("event", self.event), ("entry", self.entered)):
            require((name,) if name else (), opened.columns, role)
        require(self.within, opened.columns, "within")
        if self.label in opened.columns:
            raise BadInput(f"the data has a column {self.label!r}, as the outcome by the horizon is called: rename it")
        if {self.time, self.event} & {score, *by, *self.within}:
            raise BadInput(f"{self.time!r} and {self.event!r} make the outcome: leave them out of score and groups")
        if opened.engine is not None or not opened.again:
            raise BadInput("outcomes by a horizon are counted before they are read: pass a file or a frame in memory")
        own = self.time, self.event, self.entered
        groups = tuple(c for c in by if c in opened.columns and c not in own)
        tally = self._tally(opened, score, percent, groups)
        self._refuse(tally, opened)

        needs, levels = dict.fromkeys((self.label, *HIDDEN), ()), Levels(self.within)

        def kept(number: int, part: Part) -> Part:
            def made(batch: pa.RecordBatch, used: Collection[str], row: int) -> tuple[dict[str, pa.Array], pa.Array]:
                of, first = self.outcomes(batch), (number << 32) + row  # rows of a part have fewer numbers
                places = np.arange(first, first + batch.num_rows, dtype=np.int64)
                values = of.labels(self.horizon), of.time, of.kind, levels.of(batch), places
                new = {c: pa.array(v, from_pandas=True) for c, v in zip(needs, values, strict=True) if c in used}
                return new, pa.array(~of.late & (of.kind != LACKING))

            return replace(part, read=making(part.read, needs, made, self.columns))

        away = tally.counts["late"] + tally.counts["lacking"]
        gone = {self.time, self.event}  # those of levels and of entry may be groups
        return replace(
            opened,
            parts=tuple(kept(i, part) for i, part in enumerate(opened.parts)),
            columns=(self.label, *(c for c in opened.columns if c not in gone)),
            kinds={k: v for k, v in opened.kinds.items() if k not in gone},
            rows=None if opened.rows is None else opened.rows - away,
            fragments=None,
            as_text=None,
            place=row_of if away else opened.place,
            log=replace(opened.log, horizon=self._reported(tally), compared=_compared(tally)),
        )

    def _tally(self, opened: Source, score: str, percent: bool, by: tuple[str, ...]) -> Tally:
        """Read every row once, and count."""
        tally = Tally()
        columns = list(dict.fromkeys((*self.columns, *((score,) if score in opened.columns else ()), *by)))
        with opened.one_pass():
            for part in opened.parts:
                row = 0
                for batch in part.read(columns, [c for c in (score,) if c in columns]):
                    of = self.outcomes(batch)
                    self._count(tally, of, partial(_place, opened, part.name, row))
                    if self.closed:
                        tally.longest = max(tally.longest, of.longest())
                        self._compare(tally, batch, of, score, percent, by)
                    row += batch.num_rows
        return tally

    def _count(self, tally: Tally, of: Outcomes, place: Callable[[int], str]) -> None:
        there = of.kind != LACKING
        if (negative := there & (of.time < 0.0)).any():
            at = int(np.argmax(negative))
            raise BadInput(
                f"time column {self.time!r}: {int(negative.sum()):,} rows end before they begin, the first by "
                f"{-of.time[at]:g} ({place(at)}): correct these times"
            )
        kept, labels = there & ~of.late, of.labels(self.horizon)
        unknown = kept & np.isnan(labels)
        tally.first_unknown = tally.first_unknown or (place(int(np.argmax(unknown))) if unknown.any() else "")
        competing = kept & (of.kind == COMPETING) & (of.time <= self.horizon)
        tally.counts.update(
            rows=len(kept),
            lacking=int((~there).sum()),
            late=int((there & of.late).sum()),
            events=int((labels[kept] == 1.0).sum()),
            competing_events=int(competing.sum()),
            none=int((labels[kept] == 0.0).sum()) - int(competing.sum()),
            unknown=int(unknown.sum()),
        )
        tally.hits.update({value: int(hit.sum()) for value, hit in of.hits.items()})
        rest = of.ended.filter(pa.array(~np.any([*of.hits.values()], axis=0) & there))
        for value in (number_texts(pc.unique(rest)) if is_number(rest.type) else pc.unique(rest)).to_pylist():
            if len(tally.others) < VALUES:
                tally.others.add(str(value))

    def _compare(
        self, tally: Tally, batch: pa.RecordBatch, of: Outcomes, score: str, percent: bool, by: tuple[str, ...]
    ) -> None:
        """Add up the score and the groups of rows kept, and of rows that entered too late."""
        for late in (False, True):
            rows = pa.array((of.kind != LACKING) & (of.late == late))
            for name in ((score,) if score in batch.schema.names else ()) + by:
                column = decoded(batch.column(name), name).filter(rows)
                if name == score or is_number(column.type):
                    values = score_values(column, name, percent) if name == score else as_float(column, name, "group")
                    tally.means[name, late] += float(np.nansum(values))
                    tally.known[name, late] += int((~np.isnan(values)).sum())
                elif not is_date(column.type):
                    counted = pc.value_counts(column.cast(pa.string())).to_pylist()
                    tally.levels.update({(name, str(v["values"]), late): int(v["counts"]) for v in counted})

    def _refuse(self, tally: Tally, opened: Source) -> None:
        """Refuse what no rule decides, each with its count and the fix."""
        n, says = tally.counts, self.caller.says
        if not n["rows"]:
            raise BadInput(opened.no_rows())
        columns = " or ".join(repr(c) for c in self.columns)
        if n["lacking"] and not self.drop:
            rows = "row has" if n["lacking"] == 1 else "rows have"
            drop = self.caller.typed("missing", "drop")
            raise BadInput(f"{n['lacking']:,} {rows} nothing in {columns}: complete them, or leave them out by {drop}")
        event, *competing = tally.hits
        if not tally.hits[event]:
            raise BadInput(no_such_event(sorted(tally.others), f"event column {self.event!r}", event))
        for value in competing:
            if not tally.hits[value]:
                raise BadInput(no_such_event(sorted({*tally.others, event}), f"event column {self.event!r}", value))
        if len(tally.others) > 1:
            listed = ", ".join(repr(clipped(v)) for v in sorted(tally.others)[:6])
            raise BadInput(
                f"event column {self.event!r} holds {listed} next to the event {event!r}: name those after which "
                f"the event cannot come by {says('competing')}, and write one value for rows that had none"
            )
        kept = n["rows"] - n["late"] - n["lacking"]
        if not kept:
            raise BadInput(
                f"no row entered {self.horizon:g} or more before {self.closed}: name an earlier horizon, or a later "
                f"{says('closed')}"
            )
        if self.closed and n["rows"] >= FEWEST and 0.0 < tally.longest < SHORT:
            raise BadInput(
                f"{self.entered!r} holds dates, so that {self.time!r} and {says('horizon')} count days, and no row is "
                f"followed for more than {100.0 * tally.longest:.2g}% of the days from its entry to {self.closed}: "
                f"store {self.time!r} in days, or as dates"
            )
        if n["unknown"] and self.complete:
            raise BadInput(self._lost(n["unknown"], kept, tally.first_unknown))

    def _lost(self, unknown: int, kept: int, first: str) -> str:
        """Say that outcomes are unknown, of how many rows, and the ways to go on."""
        says, name = self.caller.says, self.caller.name("way")
        equals = " " if self.caller.command else "="
        weighs = f"{name}{equals}weights takes being lost as independent of the outcome; {name}{equals}unknown assumes "
        onward = OTHERWISE if "way" in self.caller.lacks else f"{weighs}nothing"
        were = "row was" if unknown == 1 else "rows were"
        entry = f"{says('entered', 'closed')} leave out rows that entered too late; "
        return (
            f"{unknown:,} of {kept:,} {were} followed for less than {self.horizon:g} without an event (first: "
            f"{first}), so their outcome is unknown and no event seen is no outcome: {'' if self.closed else entry}"
            f"{onward}"
        )

    def _reported(self, tally: Tally) -> dict[str, str | int | float | None]:
        """What a record holds of it."""
        n = tally.counts
        return {
            "time": self.time,
            "event": self.event,
            "positive": self.positive,
            "horizon": self.horizon,
            "entered": self.entered or None,
            "closed": self.closed or None,
            "competing": ",".join(self.competing) or None,
            "way": self.way,
            **({"within": ",".join(self.within)} if self.within else {}),
            **{k: n[k] for k in ("rows", "late", "lacking", "events", "competing_events", "none", "unknown")},
        }


def _day(closed: object) -> str:
    """A closing date, or a time, as text; what is a date at midnight in another form is that date."""
    stated = closed.isoformat() if isinstance(closed, date) else str(closed)
    return re.sub(r"^(\d{4}-\d{2}-\d{2})[T ]00:00(:00(\.0+)?)?$", r"\1", stated)


def _place(opened: Source, part: str, first: int, row: int) -> str:
    """Where a row of a batch stands, whose first row has this number in its part."""
    return opened.place(part, first + row)


def _compared(tally: Tally) -> tuple[tuple[str, str, float, float], ...]:
    """The means of numbers and the shares of levels, of rows kept and of rows that entered too late."""
    out = []
    for name in dict.fromkeys(name for name, _ in tally.known):
        rows = [tally.known[name, late] for late in (False, True)]
        if min(rows) >= FEWEST:
            kept, left = (tally.means[name, late] / n for late, n in zip((False, True), rows, strict=True))
            out.append((name, "mean", _digits(kept), _digits(left)))
    totals: Counter[tuple[str, bool]] = Counter()
    for (name, _, late), n in tally.levels.items():
        totals[name, late] += n
    for name, level in dict.fromkeys((name, level) for name, level, _ in tally.levels):
        own = [tally.levels[name, level, late] for late in (False, True)]
        if min(own) >= FEWEST and min(totals[name, late] for late in (False, True)) >= 2 * FEWEST:
            kept, left = (n / totals[name, late] for late, n in zip((False, True), own, strict=True))
            out.append((name, level, round(kept, 2), round(left, 2)))
    return tuple(out)


def _digits(value: float) -> float:
    """A mean of many, to four digits."""
    return float(f"{value:.4g}")


def refuse_horizon(at: Horizon | None, what: str) -> None:
    """Refuse an outcome by a horizon where the source brings its own labels."""
    if at is not None:
        raise BadInput(
            f"{what}: leave {at.caller.says(*OF_HORIZON[:3])} out, or use calibrant.at_horizon to make the rows"
        )


def all_known(data: Rows) -> Rows:
    """The data of a method that reads known outcomes; refuse rows of which some by a horizon are unknown."""
    followed: Followed | None = getattr(data, "followed", None)
    complete = followed is None or len(followed.time) == getattr(data, "n", -1)
    return data if followed is None or complete else refuse_known(followed.horizon, followed.weighs)


def refuse_known(horizon: float, weighs: bool) -> NoReturn:
    """Say that known outcomes are no fair sample, and what reads all rows."""
    by = "" if weighs else " of rows with way='weights' (--way weights)"
    raise NotComputable(
        f"some outcomes by {horizon:g} are unknown, and those known are no fair sample, for events are known sooner: "
        "use audit, or certify.missing_labels, which assumes nothing, or certify.horizon and the measures of the score"
        f"{by}; or keep rows that were followed long enough (entered=, closed=; --entered, --closed)"
    )
