"""Drift: whether scores and columns of new rows are like those of a reference; known before any label, and no verdict.

Shares of the levels of each attribute, and of the scores from each of some thresholds on, are compared with those of
the reference and of all days in between. Levels and thresholds are fixed by a fifth of the reference, which is then
left out of the comparison: chosen by the rows that count, they would not be fair.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.audit.monitor.plan import Plan, Settings
from calibrant.audit.monitor.state import LEVEL, MASK, day_text, decoded_field, to_plain
from calibrant.data.predictions import Predictions
from calibrant.data.profile import LevelCounts
from calibrant.data.specs.spec import Variable
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Plain, converted
from calibrant.stats.sequential import exchange
from calibrant.stats.sequential.detector import Detector

Ints = NDArray[np.int64]

ALPHA = 0.05  # where nothing else is asked for
FIXING = 5  # one row of the reference in so many fixes levels and thresholds
THRESHOLDS = 10  # the scores are cut into so many parts of about equal size
SEED = 45  # of ties, and of the rows that are picked, as kept in files: never to change


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Change(Plain):
    """A share that has surely changed: since when, and how large as estimates."""

    name: str
    day: str  # on which it was certain
    onset: str  # the day on which it most plausibly began, and the days that have 90% of the evidence
    onset_first: str
    onset_last: str
    before: float | None  # share of the reference's rows; None: of fewer than 20 rows, but not of none
    now: float | None  # the same of the recent window's rows, from the onset on
    recent: bool  # it was certain on a day of the recent window


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DriftNow(Plain):
    """What is known of scores and columns at the latest day of which they are known, whatever labels there are."""

    at: str
    window: int  # days of the recent window
    rows: int  # in the recent window
    reference_rows: int  # that are compared with
    alpha: float  # probability, at most, that any share is ever said to have changed while rows are exchangeable
    watched: int  # shares
    columns: tuple[str, ...]  # whose levels are watched
    unwatched: tuple[str, ...]  # columns that a fifth of the reference does not show as they are
    score: bool  # the score is watched: a fifth of the reference has one over 0
    evidence: float  # the largest of shares of 20 rows or more, as a share of what it takes, in logs: 1 is certain
    changes: tuple[Change, ...]  # recent ones first, then in the order in which they were certain; each share once


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
        if data.weights is not None:
            raise NotComputable("the reference has weights, of which a monitor has no proof: leave them out")
        if data.cluster is not None or data.crossing is not None:
            raise BadInput(
                "the reference has clusters, and the monitor takes rows as independent: leave them out, or start it "
                "with cluster="
            )
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


@dataclass(frozen=True, eq=False)
class DriftState:
    """Everything after some days; immutable."""

    detector: Detector
    looks: int = 0
    # Of the reference and all days: rows, and how many of them each share has.
    all_rows: int = 0
    all_counts: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # Of the days of the window, oldest first: `days`, `rows` (d,) and `counts` (d, shares).
    days: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rows: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    counts: Ints = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    detected: tuple[Detected, ...] = ()

    @classmethod
    def fresh(cls, reference: Reference) -> DriftState:
        counts = np.array(reference.counts, dtype=np.int64)
        none = np.zeros((0, len(counts)), dtype=np.int64)
        return cls(Detector.fresh(reference.prior), all_rows=reference.rows, all_counts=counts, counts=none)

    def share_since(self, changed: Detected) -> float | None:
        """The share in the days of the window from its onset on; of all of them where that lies before."""
        since = self.days >= changed.onset[0]
        return _share(int(self.counts[since, changed.share].sum()), int(self.rows[since].sum()))

    def after(self, day: DriftDay, window: int, alpha: float) -> DriftState:
        """The state after one more day, which is later than the others."""
        draws = np.random.default_rng([SEED, 1, day.day]).uniform(size=len(day.counts))
        z = exchange.ranks(day.counts, day.rows, self.all_counts, self.all_rows, draws)
        look = self.looks + 1
        detector = self.detector.after(exchange.gains(z), day.day, exchange.start_share(look))
        log, old = detector.log_directions, {f.share for f in self.detected}
        new = [int(i) for i in np.argsort(-log, kind="stable") if log[i] >= -math.log(alpha) and i not in old]
        kept, weights = self.days > day.day - window, exchange.start_weights(detector.days)
        return replace(
            self,
            detector=detector,
            looks=look,
            all_rows=self.all_rows + day.rows,
            all_counts=self.all_counts + day.counts,
            days=np.append(self.days[kept], day.day),
            rows=np.append(self.rows[kept], day.rows),
            counts=np.concatenate([self.counts[kept], day.counts[None]]),
            detected=(
                *self.detected,
                *(Detected(share=i, day=day.day, onset=detector.onset(LEVEL, i, weights)) for i in new),
            ),
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
            self._after[window] = self.settled.after(self.latest, window, self.reference.spent)
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
                before=_share(r.counts[f.share], r.rows),
                now=now.share_since(f),
                recent=f.day > self.latest.day - window,
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
            evidence=float(now.detector.log_directions[enough].max(initial=0.0)) / -math.log(r.spent),
            changes=tuple(sorted(changes, key=lambda c: not c.recent)),
        )

    # ---- as plain data ----

    def to_plain(self) -> dict[str, object]:
        """The watch as plain data; arrays as their bytes."""
        import msgspec

        own = {f.name: to_plain(getattr(self.settled, f.name)) for f in fields(DriftState)}
        day = self.latest and {f.name: to_plain(getattr(self.latest, f.name)) for f in fields(DriftDay)}
        return {"reference": msgspec.to_builtins(self.reference), "settled": own, "latest": day}

    @classmethod
    def from_plain(cls, d: Mapping[str, Mapping[str, object]]) -> Drift:
        """Rebuild the watch that `to_plain` wrote."""
        reference, settled, day = converted(d["reference"], Reference), d["settled"], d["latest"]
        detector = Detector(**{k: decoded_field(k, v) for k, v in settled["detector"].items()})  # type: ignore[attr-defined, arg-type]
        own = {k: decoded_field(k, v, {"detected": Detected}) for k, v in settled.items() if k != "detector"}
        latest = None if day is None else DriftDay(**{k: decoded_field(k, v) for k, v in day.items()})  # type: ignore[arg-type]
        made = cls(reference, DriftState(detector, **own), latest)  # type: ignore[arg-type]
        shares = len(reference.names)
        if not len(reference.counts) == len(made.settled.all_counts) == len(detector.ever) == shares:
            raise BadInput("the drift is of other shares than the reference's")
        if made.settled.counts.shape[1] != shares or (latest is not None and len(latest.counts) != shares):
            raise BadInput("the days of drift are of other shares than the reference's")
        return made


def _share(count: int, rows: int) -> float | None:
    """A share, unless it is of so few rows that they are not shown."""
    return None if 0 < count < MASK or not rows else count / rows
