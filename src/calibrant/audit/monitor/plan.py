"""What a monitor watches: fixed before the first outcome is read, by settings and by the first day's scores alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import combinations, pairwise
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import (
    PYTHON,
    Caller,
    check_int,
    checked_alpha,
    choice,
    flag,
    named,
    names,
    number,
    optional,
    share,
    text,
)
from calibrant.data.predictions import Predictions, codes_of
from calibrant.data.profile import LevelCounts
from calibrant.data.specs.spec import Variable
from calibrant.errors import BadInput
from calibrant.stats.sequential import bets, ranges
from calibrant.views.kinds import refuse_rows

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Directions: TypeAlias = Sequence[bets.Direction]
Judge: TypeAlias = Literal["error", "gap"]
Kind: TypeAlias = Literal["everyone", "slope", "shape", "score", "level", "pair", "season"]

# How much of the evidence each kind of direction has, before what is there is scaled to one.
PRIOR: dict[Kind, float] = {"everyone": 0.25, "slope": 0.1, "shape": 0.15, "score": 0.1, "level": 0.25}
PRIOR |= {"pair": 0.15, "season": 0.05}
WEEKDAYS = "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays"
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
QUANTILES = 21  # of the first day's scores: every other one ends a range of the score, a tenth of that day's rows
PERIODS = 2  # and sines of it, with whole periods
WAVES = 4  # shapes of an error along the score: cosines of its rank, with one to four changes of sign
PAIRED = 6  # attributes of which every pair of levels is watched, too, as long as directions are not too many
SHAPES = 2 + WAVES + PERIODS  # functions of the score, with two slopes
MOST = 600  # directions, so that the state stays small: three megabytes after ten years, next to its window's days
HALF = 3.0  # log odds: scores beyond take all of a bet on the slope around one half
WIDEST = 6.0  # log odds: scores beyond take all of a bet on the slope


UNWEIGHTED = "a monitor has no proof for weights: leave them out"
ONE_COLUMN = "a monitor has no proof for two columns of clusters that cross: name one"
CLUSTERED = "the batch has clusters, and the monitor takes rows as independent: start it with cluster="


class Watched(NamedTuple):
    """One direction in words."""

    kind: Kind
    name: str


class Kept(NamedTuple):
    """What is kept of a day."""

    gains: Floats  # what its bets won, shape (directions, bets)
    sums: Floats  # of its populations, shape (populations, SUMS)
    counts: NDArray[np.int64]  # its rows without and with the event, by score in whole percent
    seen: NDArray[np.int64]  # its rows of each direction
    cells: Floats  # of its ranges of the score, shape (ranges, 3), as `cell_sums`; none unless rows are independent


class RowBets:
    """What is bet on: here rows, which are independent of each other given their scores and covariates."""

    argument = ""  # which says otherwise

    def __init__(self, column: str) -> None:
        self.column = column  # of clusters, where these are bet on

    def gains(self, data: Predictions, directions: Directions, tolerance: float) -> tuple[Floats, Codes | None]:
        """What a day's bets won, and the cluster of each row, by number, where whole clusters are bet on."""
        refuse_rows(data, BadInput, cluster=CLUSTERED)
        return bets.row_gains(data.y.astype(np.float64), data.p, directions, tolerance), None


class DayBets(RowBets):
    """Whole days, whose rows may depend on one another."""

    argument = "shared_shocks"

    def gains(self, data: Predictions, directions: Directions, tolerance: float) -> tuple[Floats, Codes | None]:
        cluster, y = self._of(data), data.y.astype(np.float64)
        return bets.cluster_gains(y, data.p, directions, tolerance, cluster, int(cluster.max()) + 1), cluster

    def _of(self, data: Predictions) -> Codes:
        """The cluster of each row, by number."""
        return np.zeros(data.n, dtype=np.intp)


class ClusterBets(DayBets):
    """Whole clusters of a day's rows."""

    argument = "cluster"

    def _of(self, data: Predictions) -> Codes:
        if data.cluster is None:
            raise BadInput(f"the batch has no clusters, and the monitor's are {self.column!r}: pass cluster=")
        return codes_of(data)


BETS: dict[tuple[bool, bool], type[RowBets]] = {
    (False, False): RowBets,
    (False, True): DayBets,
    (True, False): ClusterBets,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is asked of a monitor, checked."""

    label: str
    score: str
    positive: str | None = None
    percent: bool = False
    by: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    cluster: str = ""
    shared_shocks: bool = False
    limit: float | None = None
    tolerance: float = 0.0
    judge: Judge = "error"
    alpha: float = 0.05
    days_between_false_alarms: float = 3650.0
    window: int = 28
    # Of predictions that come before their labels: the days after which a day is complete, and the columns of a row's
    # name.
    labels_within: int | None = None
    key: tuple[str, ...] = ()
    drift_alpha: float | None = None  # of drift against a reference; None: the usual one, where there is a reference

    @property
    def attributes(self) -> tuple[str, ...]:
        """Columns whose levels are watched: groups first."""
        return tuple(dict.fromkeys((*self.by, *self.variables)))

    @property
    def bets_on(self) -> RowBets:
        """What the monitor bets on."""
        return BETS[bool(self.cluster), self.shared_shocks](self.cluster)

    @property
    def independent_rows(self) -> bool:
        """Whether rows are independent of each other, given their scores and covariates."""
        return not (self.cluster or self.shared_shocks)


def settings_of(inputs: Mapping[str, object], caller: Caller = PYTHON) -> Settings:
    """What is asked of a monitor, checked."""

    def name(argument: str) -> str:
        return caller.name(argument)

    limit = optional(share)(name("limit"), inputs["limit"])
    cluster = optional(text)(name("cluster"), inputs["cluster"]) or ""
    shocks = flag(name("shared_shocks"), inputs["shared_shocks"])
    if cluster and shocks:
        raise BadInput(f"{caller.says('cluster', 'shared_shocks')}: a day is one cluster already, so name one of them")
    independent = not (cluster or shocks)
    usual: Judge = "error" if independent else "gap"
    judge: Judge = usual if inputs["judge"] is None else choice(name("judge"), inputs["judge"], ("error", "gap"))
    if judge == "error" and not independent:
        raise BadInput(
            f"{name('judge')}='error': no range of the error is proved for clusters at every look: pass 'gap'"
        )
    key = names(name("key"), inputs["key"], distinct=True)
    within = inputs["labels_within"]
    if within is not None:
        within = check_int(name("labels_within"), within, 0, 3650, of="days")
        if not key:
            raise BadInput(
                f"{name('labels_within')} needs {caller.says('key')}: columns by which a label finds its row"
            )
    tolerance = inputs["tolerance"]
    tolerance = (limit or 0.0) if tolerance is None else number(name("tolerance"), tolerance, least=0, below=1)
    between = number(name("days_between_false_alarms"), inputs["days_between_false_alarms"], least=2)
    settings = Settings(
        label=text(name("label"), inputs["label"]),
        score=text(name("score"), inputs["score"]),
        positive=None if inputs["positive"] is None else str(inputs["positive"]),
        percent=flag(name("percent"), inputs["percent"]),
        by=names(name("by"), inputs["by"], distinct=True),
        variables=names(name("variables"), inputs["variables"], distinct=True),
        cluster=cluster,
        shared_shocks=shocks,
        limit=limit,
        tolerance=tolerance,
        judge=judge,
        alpha=checked_alpha(inputs["alpha"], name("alpha")),
        days_between_false_alarms=between,
        window=check_int(name("window"), inputs["window"], 1, 3650, of="days"),
        labels_within=within,
        key=key,
        drift_alpha=optional(named(checked_alpha))(name("drift_alpha"), inputs["drift_alpha"]),
    )
    twice = [c for c in settings.attributes if c in (settings.label, settings.score)]
    if twice:
        raise BadInput(f"column {twice[0]!r} is the label or the score: watch other columns")
    return replace(settings, variables=tuple(v for v in settings.variables if v not in settings.by))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Settings, with the levels and ranges that the first day's scores and covariates fixed."""

    settings: Settings
    attributes: tuple[Variable, ...]
    quantiles: tuple[float, ...]  # of the first day's scores, increasing
    dated: bool = False  # days are dates: each weekday and each month is a direction, too

    @classmethod
    def of(cls, settings: Settings, data: Predictions) -> Plan:
        """The plan for rows like these, whose outcomes are not read."""
        levels = []
        for name in settings.attributes:
            counts = LevelCounts(name)
            counts.update(data.covariates.column(name))
            levels.append(counts.variable())
        quantiles = np.unique(np.quantile(data.p, np.linspace(0.0, 1.0, QUANTILES)))
        plan = cls(settings=settings, attributes=tuple(levels), quantiles=tuple(map(float, quantiles)))
        if len(plan.watched) > MOST:
            widest = max(levels, key=lambda v: len(v.labels))
            raise BadInput(
                f"{len(plan.watched):,} directions are too many to watch (at most {MOST:,}): leave {widest.name!r} "
                f"out, which has {len(widest.labels):,} levels, or make it coarser"
            )
        return plan

    # ---- directions ----

    @property
    def watched(self) -> tuple[Watched, ...]:
        """Every direction, in the order of `directions`."""
        return tuple(self._watched())

    def _watched(self) -> Iterator[Watched]:
        yield Watched("everyone", "everyone")
        yield Watched("slope", "slope of the score")
        yield Watched("slope", "slope of the score around one half")
        for k in range(1, WAVES + 1):
            yield Watched("shape", f"curve along the score ({k} {'change' if k == 1 else 'changes'} of sign)")
        for k in range(1, PERIODS + 1):
            yield Watched("shape", f"wave along the score ({k} {'period' if k == 1 else 'periods'})")
        ends = (0.0, *self._edges, 1.0)
        for low, high in pairwise(ends):
            yield Watched("score", f"score {100 * low:.3g}% to {100 * high:.3g}%")
        for v in self.attributes:
            yield from (Watched("level", f"{v.name} = {level}") for level in v.labels)
        for a, b in self._pairs:
            yield from (Watched("pair", f"{a.name} = {x}, {b.name} = {z}") for x in a.labels for z in b.labels)
        if self.dated:
            yield from (Watched("season", name) for name in (*WEEKDAYS, *MONTHS))

    @property
    def _edges(self) -> tuple[float, ...]:
        """Inner ends of the ranges of the score; of scores that tie, each value that is a quantile begins a range."""
        inner = self.quantiles[2:-1:2] if len(self.quantiles) == QUANTILES else self.quantiles[1:]
        return tuple(q for q in inner if 0.0 < q < 1.0)

    @cached_property
    def paired(self) -> tuple[Variable, ...]:
        """Attributes whose levels are watched in pairs: all if they are few, else those of groups, else none."""
        groups = tuple(v for v in self.attributes if v.name in self.settings.by)
        single = 1 + SHAPES + len(self._edges) + 1 + sum(len(v.labels) for v in self.attributes)
        for some in (self.attributes, groups[:PAIRED]):
            pairs = sum(len(a.labels) * len(b.labels) for a, b in combinations(some, 2))
            if len(some) <= PAIRED and single + pairs <= MOST:
                return some
        return ()

    @property
    def _pairs(self) -> Sequence[tuple[Variable, Variable]]:
        return list(combinations(self.paired, 2))

    @property
    def prior(self) -> Floats:
        """How much of the evidence each bet has, shape (directions, bets)."""
        kinds = [w.kind for w in self.watched]
        weight = np.array([PRIOR[k] / kinds.count(k) for k in kinds])
        shares = bets.bet_count(self.settings.independent_rows)
        return np.repeat(weight[:, None] / weight.sum() / shares, shares, axis=1)

    def directions(self, data: Predictions, day: int | None = None) -> list[bets.Direction]:
        """The directions of some rows, of the date with this ordinal where days are dates."""
        p = data.p
        edges = np.asarray(self._edges)
        codes = [v.codes(data.covariates.column(v.name)) for v in self.attributes]
        levels = [bets.Levels(c, len(v.labels)) for c, v in zip(codes, self.attributes, strict=True)]
        by_name = {v.name: d for v, d in zip(self.attributes, levels, strict=True)}
        pairs = [(by_name[a.name], by_name[b.name]) for a, b in self._pairs]
        return [
            bets.Levels(np.zeros(len(p), dtype=np.int32), 1),
            *map(bets.Function, self.functions(p)),
            bets.Levels(np.searchsorted(edges, p, side="right"), len(edges) + 1),
            *levels,
            *(bets.Levels(a.codes * b.size + b.codes, a.size * b.size) for a, b in pairs),
            *self._seasons(day, len(p)),
        ]

    def _seasons(self, day: int | None, rows: int) -> Iterator[bets.Levels]:
        """The weekday and the month, which all rows of a day share."""
        if self.dated and day is not None:
            when = date.fromordinal(day)
            yield bets.Levels(np.full(rows, when.weekday()), len(WEEKDAYS))
            yield bets.Levels(np.full(rows, when.month - 1), len(MONTHS))

    def functions(self, p: Floats) -> list[Floats]:
        """How much of a bet scores take along a slope, and along each shape."""
        rank = np.interp(p, self.quantiles, np.linspace(0.0, 1.0, len(self.quantiles)))
        # Log odds around the first day's middle, in units of twice their usual distance from it.
        odds = _log_odds(np.asarray(self.quantiles))
        centre = float(np.median(odds))
        spread = max(2.0 * float(np.mean(np.abs(odds - centre))), 0.1)
        slope = np.clip((_log_odds(p) - centre) / spread, -1.0, 1.0)
        # A model that is too sure, or not sure enough, is off by a multiple of its log odds: around one half.
        around_half = np.clip(_log_odds(p) / HALF, -1.0, 1.0)
        cosines = [np.cos(math.pi * k * rank) for k in range(1, WAVES + 1)]
        sines = [np.sin(2.0 * math.pi * k * rank) for k in range(1, PERIODS + 1)]
        return [slope, around_half, *cosines, *sines]

    # ---- populations ----

    @property
    def populations(self) -> tuple[str, ...]:
        """Everyone, then each group, in the order of `sums`."""
        groups = (f"{v.name} = {level}" for v in self.attributes if v.name in self.settings.by for level in v.labels)
        return ("everyone", *groups)

    def no_rows(self) -> Kept:
        """What is kept of a day without outcomes."""
        sums = np.zeros((len(self.populations), ranges.SUMS))
        counts, seen = np.zeros((ranges.LEVELS + 1, 2), dtype=np.int64), np.zeros(len(self.watched), dtype=np.int64)
        return Kept(np.zeros(self.prior.shape), sums, counts, seen, np.zeros((self._cells, 3)))

    @property
    def _cells(self) -> int:
        """How many ranges of the score bound everyone's error from below, which is done for independent rows."""
        return len(self._edges) + 1 if self.settings.independent_rows else 0

    def day(self, data: Predictions, day: int | None = None) -> Kept:
        """What is kept of a day."""
        refuse_rows(data, weights=UNWEIGHTED, crossing=ONE_COLUMN)
        y, p, s = data.y.astype(np.float64), data.p, self.settings
        directions = self.directions(data, day)
        gains, cluster = s.bets_on.gains(data, directions, s.tolerance)
        everyone = ranges.day_sums(y, p, np.zeros(len(p), dtype=np.int64), 1, cluster)
        groups = [
            ranges.day_sums(y, p, v.codes(data.covariates.column(v.name)), len(v.labels), cluster)
            for v in self.attributes
            if v.name in s.by
        ]
        seen = np.concatenate([d.rows for d in directions])
        cells = np.zeros((0, 3))
        if self._cells:
            cells = ranges.cell_sums(y, p, np.searchsorted(self._edges, p, side="right"), self._cells)
        return Kept(gains, np.concatenate([everyone, *groups]), ranges.level_counts(y, p), seen, cells)


def _log_odds(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        odds: Floats = np.clip(np.log(p) - np.log1p(-p), -WIDEST, WIDEST)
    return odds
