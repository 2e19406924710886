"""Drift: whether scores and columns of new rows are like those of a reference; known before any label, and no verdict.

Shares of the levels of each attribute, and of the scores from each of some thresholds on, are compared with those of
the reference and of all days in between. Levels and thresholds are fixed by a fifth of the reference, which is then
left out of the comparison: chosen by the rows that count, they would not be fair. A share that is named is compared
with the rows since from then on, at the next part of its alpha, so that later changes are named, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.audit.monitor.plan import Plan, Settings
from calibrant.audit.monitor.state import ALARMS, LEVEL, MASK, day_text, decoded_field, to_plain
from calibrant.data.predictions import Predictions
from calibrant.data.profile import LevelCounts
from calibrant.data.specs.spec import Variable
from calibrant.errors import BadInput
from calibrant.results import Plain, converted
from calibrant.stats.sequential import exchange
from calibrant.stats.sequential.detector import Detector
from calibrant.views.kinds import refuse_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Number = TypeVar("Number", np.float64, np.int64)

ALPHA = 0.05  # where nothing else is asked for
FIXING = 5  # one row of the reference in so many fixes levels and thresholds
THRESHOLDS = 10  # the scores are cut into so many parts of about equal size
SEED = 45  # of ties, and of the rows that are picked, as kept in files: never to change
LOOKS = 200  # whose evidence is kept; of older ones two become one
FAINT = -30.0  # log evidence below this counts as this, such as that of a share which has just been named


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Change(Plain):
    """A share that has surely changed: since when, and how large as estimates."""

    name: str
    day: str  # on which it was certain
    onset: str  # the day on which it most plausibly began, and the days that have 90% of the evidence
    onset_first: str
    onset_last: str
    # Share of the reference's rows, or of a later change of those after the one before; None: of fewer than 20 rows,
    # but not of none.
    before: float | None
    now: float | None  # the same of the recent window's rows, from the onset on; or of those before it changed again
    recent: bool  # it was certain on a day of the recent window
    earlier: int  # changes of the same share that were named before


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DriftSeries(Plain):
    """The largest evidence of a change among the shares of the score, or of a column, at each look that is kept."""

    column: str | None  # None: the score
    log_evidence: tuple[float, ...]  # a change is named from ``-log(alpha)`` on


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DriftNow(Plain):
    """What is known of scores and columns at the latest day of which they are known, whatever labels there are."""

    at: str
    window: int  # days of the recent window
    rows: int  # in the recent window
    reference_rows: int  # that are compared with
    # Probability, at most, that any share is ever said to have changed while the rows since it was named before, or of
    # the reference and all days, are exchangeable.
    alpha: float
    watched: int  # shares
    columns: tuple[str, ...]  # whose levels are watched
    unwatched: tuple[str, ...]  # columns that a fifth of the reference does not show as they are
    score: bool  # the score is watched: a fifth of the reference has one over 0
    evidence: float  # the largest of shares of 20 rows or more, as a share of what it takes, in logs: 1 is certain
    changes: tuple[Change, ...]  # recent ones first, then in the order in which they were certain
    days: tuple[str, ...]  # looks whose evidence is kept
    series: tuple[DriftSeries, ...]  # of the score, where it is watched, then of the columns


CLUSTERED = (
    "the reference has clusters, and the monitor takes rows as independent: leave them out, or start it with cluster="
)


class Rows(NamedTuple):
    """Scores and columns of some rows."""

    p: NDArray[np.float64]
    columns: dict[str, pa.ChunkedArray]

    @classmethod
    def of(cls, data: Predictions, settings: Settings, rows: Ints | None = None) -> Rows:
        """The rows at these places, or all."""
        columns = {name: data.covariates.column(name) for name in settings.attributes}
        if rows is None:
            return cls(data.p, columns)
        return cls(data.p[rows], {name: column.take(pa.array(rows)) for name, column in columns.items()})


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What is compared with: levels, thresholds, and how many rows of the reference have each."""

    alpha: float
    unwatched: tuple[str, ...]  # columns that a fifth of the reference does not show as they are: without levels
    attributes: tuple[Variable, ...]
    thresholds: tuple[float, ...]
    rows: int
    counts: tuple[int, ...]  # of each share, in the order of `names`

    @classmethod
    def of(cls, settings: Settings, plan: Plan, data: Predictions) -> Reference:
        """The reference's scores and columns; its outcomes are not read."""
        refuse_rows(data, weights="the reference has weights, of which a monitor has no proof: leave them out")
        refuse_rows(data, BadInput, cluster=CLUSTERED)
        picked = np.random.default_rng([SEED, 0, 0]).permutation(len(data.p))
        fixing = math.ceil(len(picked) / FIXING)
        first, rest = Rows.of(data, settings, picked[:fixing]), Rows.of(data, settings, picked[fixing:])
        attributes = []
        for variable in plan.attributes:
            counts = LevelCounts(variable.name)
            counts.update(first.columns[variable.name])
            try:
                own = counts.variable()
            except BadInput:  # too many values for so few rows
                continue
            if counts.seen and own.kind == variable.kind:
                attributes.append(own)
        cuts = np.unique(np.quantile(first.p, np.arange(1, THRESHOLDS) / THRESHOLDS))
        over = cuts[cuts > 0.0]
        if not len(over):  # nearly all scores are 0: how many are not
            over = np.sort(first.p[first.p > 0.0])[:1]
        if not (len(over) or attributes):
            raise BadInput(
                f"the reference: among {len(first.p):,} rows, a fifth of it, no score is over 0, and no column has "
                "levels, so that nothing can drift: pass more rows, or no reference"
            )
        levelled = {v.name for v in attributes}
        made = cls(
            alpha=ALPHA if settings.drift_alpha is None else settings.drift_alpha,
            unwatched=tuple(name for name in settings.attributes if name not in levelled),
            attributes=tuple(attributes),
            thresholds=tuple(map(float, over)),
            rows=len(rest.p),
            counts=(),
        )
        return replace(made, counts=tuple(int(c) for c in made.count(rest)))

    @property
    def names(self) -> tuple[str, ...]:
        """Every share in words."""
        scores = (f"score of {100 * t:.3g}% or more" for t in self.thresholds)
        return (*scores, *(f"{v.name} = {level}" for v in self.attributes for level in v.labels))

    @property
    def prior(self) -> NDArray[np.float64]:
        """The share of alpha of each bet, shape (shares, bets): the score has as much as each attribute."""
        sizes = self._sizes
        weight = np.concatenate([np.full(n, 1.0 / (len(sizes) * n)) for n in sizes])
        bets = len(exchange.SIGNS) * len(exchange.SIZES)
        return np.repeat(weight[:, None] / bets, bets, axis=1)

    @property
    def spent(self) -> float:
        """The part of alpha that the score and the columns with levels have; that of others is not theirs."""
        return self.alpha * len(self._sizes) / (1 + len(self.attributes) + len(self.unwatched))

    @property
    def _sizes(self) -> list[int]:
        return [n for n in (len(self.thresholds), *(len(v.labels) for v in self.attributes)) if n]

    @property
    def columns(self) -> tuple[str | None, ...]:
        """What the shares are of, in their order: the score (None), where it is watched, and columns."""
        return (*((None,) if self.thresholds else ()), *(v.name for v in self.attributes))

    @property
    def starts(self) -> Ints:
        """The place of the first share of each of `columns`."""
        return np.cumsum([0, *self._sizes[:-1]])

    def count(self, rows: Rows) -> Ints:
        """How many rows have each share."""
        above = [np.count_nonzero(rows.p >= t) for t in self.thresholds]
        levels = [v.counts(rows.columns[v.name]) for v in self.attributes]
        return np.concatenate([np.array(above, dtype=np.int64), *levels])


@dataclass(frozen=True, eq=False)
class DriftDay:
    """The rows of one day."""

    day: int
    rows: int
    counts: Ints
    dated: bool = False

    def text(self, day: int) -> str:
        """A day as it was entered."""
        return day_text(day, dated=self.dated)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Detected(Plain):
    """When a share was certain to have changed."""

    share: int
    day: int
    onset: tuple[int, int, int]
    earlier: int  # how often it was named before
    before: tuple[int, int]  # of the rows since it was named before, up to the onset: how many have it, and all


@dataclass(frozen=True, eq=False)
class Since:
    """What the evidence of each share is since: the first day, or the day on which it was named; shape (shares,)."""

    named: Ints  # how often
    look: Ints  # the look whose rows are the first that the next are compared with, and its day; with a reference 0
    day: Ints
    rows: Ints  # up to when it was named, which do not count since: rows, and how many of them have it
    counts: Ints

    @classmethod
    def fresh(cls, shares: int) -> Since:
        return cls(*(np.zeros((len(fields(cls)), shares), dtype=np.int64)))

    def after(self, shares: list[int], look: int, rows: int, counts: Ints) -> Since:
        """This after some shares were named on a look, with so many rows up to then."""
        at = np.isin(np.arange(len(counts)), shares)
        return Since(
            named=self.named + at,
            look=np.where(at, look + 1, self.look),
            day=self.day,
            rows=np.where(at, rows, self.rows),
            counts=np.where(at, counts, self.counts),
        )


@dataclass(frozen=True, eq=False)
class DriftState:
    """Everything after some days; immutable."""

    detector: Detector
    since: Since
    looks: int = 0
    # Of the reference and all days: rows, and how many of them each share has.
    all_rows: int = 0
    all_counts: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # Of the days of the window, oldest first: `days`, `rows` (d,) and `counts` (d, shares).
    days: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rows: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    counts: Ints = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    detected: tuple[Detected, ...] = ()
    # Of looks, thinned: their days (h,), and the log evidence of each of the reference's columns (h, columns).
    history_days: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    history: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def fresh(cls, reference: Reference) -> DriftState:
        counts = np.array(reference.counts, dtype=np.int64)
        none = np.zeros((0, len(counts)), dtype=np.int64)
        return cls(
            Detector.fresh(reference.prior),
            Since.fresh(len(counts)),
            all_rows=reference.rows,
            all_counts=counts,
            counts=none,
            history=np.zeros((0, len(reference.columns))),
        )

    @property
    def log_evidence(self) -> Floats:
        """The log evidence of each share, which is named from minus the log of its shares' alpha on."""
        log: Floats = self.detector.log_directions + np.log(exchange.part(self.since.named + 1))
        return log

    def share_since(self, changed: Detected) -> float | None:
        """The share in the days of the window from its onset on; where it changed again, that before it did."""
        for f in self.detected:
            if (f.share, f.earlier) == (changed.share, changed.earlier + 1):
                return _share(*f.before)
        since = self.days >= changed.onset[0]
        return _share(int(self.counts[since, changed.share].sum()), int(self.rows[since].sum()))

    def after(self, day: DriftDay, window: int, reference: Reference) -> DriftState:
        """The state after one more day, which is later than the others."""
        since, look, alpha = self.since, self.looks + 1, reference.spent
        draws = np.random.default_rng([SEED, 1, day.day]).uniform(size=len(day.counts))
        before = self.all_counts - since.counts, self.all_rows - since.rows
        gains = exchange.gains(exchange.ranks(day.counts, day.rows, *before, draws))
        detector = self.detector.after(gains, day.day, exchange.start_share(look - since.look)[:, None])
        kept = self.days > day.day - window
        now = replace(
            self,
            detector=detector,
            since=replace(since, day=np.where(since.look == look, day.day, since.day)),
            looks=look,
            all_rows=self.all_rows + day.rows,
            all_counts=self.all_counts + day.counts,
            days=np.append(self.days[kept], day.day),
            rows=np.append(self.rows[kept], day.rows),
            counts=np.concatenate([self.counts[kept], day.counts[None]]),
        )
        log = now.log_evidence
        new = [int(i) for i in np.argsort(-log, kind="stable") if log[i] >= -math.log(alpha)]
        shown = np.where(now.all_counts >= MASK, log, FAINT).clip(FAINT)
        most = np.maximum.reduceat(shown, reference.starts) - math.log(reference.alpha / alpha)
        return replace(
            now,
            detector=detector.without_starts(np.array(new)) if new else detector,
            since=now.since.after(new, look, now.all_rows, now.all_counts),
            detected=_kept((*self.detected, *(now._detected(i) for i in new))),
            history_days=_thinned(np.append(self.history_days, day.day)),
            history=_thinned(np.concatenate([self.history, most[None]])),
        )

    def _detected(self, share: int) -> Detected:
        """What is known of a share that is named on the latest day."""
        s = self.since
        weights = exchange.start_weights(self.detector.days, int(s.look[share]))
        # A block of days may have begun before the share was named; the first day after that is compared with nothing.
        least = int(s.day[share]) + 1 if s.named[share] else 0
        most, first, last = (max(d, least) for d in self.detector.onset(LEVEL, share, weights))
        after = self.days >= most
        count = self.all_counts[share] - s.counts[share] - self.counts[after, share].sum()
        return Detected(
            share=share,
            day=int(self.days[-1]),
            onset=(most, first, last),
            earlier=int(s.named[share]),
            before=(int(count), int(self.all_rows - s.rows[share] - self.rows[after].sum())),
        )


@dataclass(frozen=True, eq=False)
class Drift:
    """A watch over scores and columns; immutable."""

    reference: Reference
    settled: DriftState  # before the latest day, which can be replaced
    latest: DriftDay | None = None
    # The state after the latest day, by the window it was made with.
    _after: dict[int, DriftState] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, settings: Settings, plan: Plan, data: Predictions) -> Drift:
        """The watch against the rows of a reference."""
        reference = Reference.of(settings, plan, data)
        return cls(reference, DriftState.fresh(reference))

    def after(self, data: Predictions, settings: Settings, day: int, *, dated: bool) -> Drift:
        """The watch after the rows of a day, which take the place of those of the same day."""
        again = self.latest is None or day == self.latest.day
        rows = Rows.of(data, settings)
        new = DriftDay(day, len(rows.p), self.reference.count(rows), dated)
        return Drift(self.reference, self.settled if again else self._now(settings.window), new)

    def _now(self, window: int) -> DriftState:
        if self.latest is None:
            return self.settled
        if window not in self._after:
            self._after[window] = self.settled.after(self.latest, window, self.reference)
        return self._after[window]

    def now(self, window: int) -> DriftNow | None:
        """What is known at the latest day; None before the first."""
        if self.latest is None:
            return None
        now, r, say = self._now(window), self.reference, self.latest.text
        enough = now.all_counts >= MASK  # of fewer rows nothing is shown
        changes = [
            Change(
                name=r.names[f.share],
                day=say(f.day),
                onset=say(f.onset[0]),
                onset_first=say(f.onset[1]),
                onset_last=say(f.onset[2]),
                before=_share(*f.before) if f.earlier else _share(r.counts[f.share], r.rows),
                now=now.share_since(f),
                recent=f.day > self.latest.day - window,
                earlier=f.earlier,
            )
            for f in now.detected
            if enough[f.share]
        ]
        return DriftNow(
            at=say(self.latest.day),
            window=window,
            rows=int(now.rows.sum()),
            reference_rows=r.rows,
            alpha=r.alpha,
            watched=len(r.counts),
            columns=tuple(v.name for v in r.attributes),
            unwatched=r.unwatched,
            score=bool(r.thresholds),
            evidence=float(now.log_evidence[enough].max(initial=0.0)) / -math.log(r.spent),
            changes=tuple(sorted(changes, key=lambda c: not c.recent)),
            days=tuple(say(int(d)) for d in now.history_days),
            series=tuple(
                DriftSeries(column=c, log_evidence=tuple(round(float(v), 3) for v in log))
                for c, log in zip(r.columns, now.history.T, strict=True)
            ),
        )

    # ---- as plain data ----

    def to_plain(self) -> dict[str, object]:
        """The watch as plain data; arrays as their bytes."""
        import msgspec

        own = {f.name: to_plain(getattr(self.settled, f.name)) for f in fields(DriftState) if f.name != "since"}
        own["since"] = {f.name: to_plain(getattr(self.settled.since, f.name)) for f in fields(Since)}
        day = self.latest and {f.name: to_plain(getattr(self.latest, f.name)) for f in fields(DriftDay)}
        return {"reference": msgspec.to_builtins(self.reference), "settled": own, "latest": day}

    @classmethod
    def from_plain(cls, d: Mapping[str, Mapping[str, object]]) -> Drift:
        """Rebuild the watch that `to_plain` wrote."""
        reference, settled, day = converted(d["reference"], Reference), d["settled"], d["latest"]
        detector = Detector(**{k: decoded_field(k, v) for k, v in settled["detector"].items()})  # type: ignore[attr-defined, arg-type]
        since = Since(**{k: decoded_field(k, v) for k, v in settled["since"].items()})  # type: ignore[attr-defined, arg-type]
        apart = "detector", "since"
        own = {k: decoded_field(k, v, {"detected": Detected}) for k, v in settled.items() if k not in apart}
        latest = None if day is None else DriftDay(**{k: decoded_field(k, v) for k, v in day.items()})  # type: ignore[arg-type]
        made = cls(reference, DriftState(detector, since, **own), latest)  # type: ignore[arg-type]
        shares = len(reference.names)
        if not len(reference.counts) == len(made.settled.all_counts) == len(detector.ever) == len(since.rows) == shares:
            raise BadInput("the drift is of other shares than the reference's")
        if made.settled.counts.shape[1] != shares or (latest is not None and len(latest.counts) != shares):
            raise BadInput("the days of drift are of other shares than the reference's")
        return made


def _share(count: int, rows: int) -> float | None:
    """A share, unless it is of so few rows that they are not shown."""
    return None if 0 < count < MASK or not rows else count / rows


def _kept(detected: tuple[Detected, ...]) -> tuple[Detected, ...]:
    """Of each share the latest change, and as many of those before as there is room for."""
    times = {f.share: f.earlier for f in detected}
    over = max(len(detected) - max(ALARMS, len(times)), 0)
    old = [(f.share, f.earlier) for f in detected if f.earlier < times[f.share]][:over]
    return tuple(f for f in detected if (f.share, f.earlier) not in old)


def _thinned(looks: NDArray[Number]) -> NDArray[Number]:
    """Looks, of whose older half two become one, by the larger values, when there are too many."""
    half = LOOKS // 2
    return np.concatenate([np.maximum(looks[:half:2], looks[1:half:2]), looks[half:]]) if len(looks) > LOOKS else looks
