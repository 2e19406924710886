"""People with and without an outcome: by step of the score, as a sketch holds them, and by a horizon."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Unpack, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import checked_seed, takes
from calibrant.data.calls import takes_arrays
from calibrant.data.columns import Floats, picked
from calibrant.data.engines.reduce import source_of
from calibrant.data.predictions import Predictions, Unlabelled, attached, checked_data, remembered
from calibrant.data.read import in_memory, sketch_rows
from calibrant.data.reading import Reading
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sketches.sums import CELLS, STEPS, UNLABELLED_REST
from calibrant.data.specs.horizon import Way, refuse_horizon
from calibrant.data.specs.options import FIRST, Columns, RowOptions
from calibrant.data.specs.spec import ATTACHED
from calibrant.errors import NotComputable
from calibrant.kernels.tally import CELL_BITS, GROUP_BITS
from calibrant.stats.missing import survival
from calibrant.stats.missing.survival import Steps
from calibrant.stats.missing.unlabelled import ClusterCounts, ClusterRange, Counts, Ends, Range, of_rows
from calibrant.views.kinds import refuse_rows
from calibrant.views.people import Members, clusters_in, people_of, weights_of
from calibrant.views.sample import Group, counted, grouped_sketch, rows_of_groups

TWO_WAY = "clusters cross, and rows without a label are kept apart by one column alone: name one of them"
NONE_KEPT = (
    'rows without a label were not kept: pass missing="keep" (--missing keep) to predictions, read, sketch or audit'
)


ASSUMES = "independent outcomes, given the scores and whose label is missing"
OF_CLUSTERS = (
    "independent clusters, rows of one as dependent as they like, given scores, weights and whose label is missing; "
    "weights that do not depend on outcomes"
)


@dataclass(frozen=True)
class Cells:
    """Counts by ``2^10`` cells of the score, of everyone or of some groups."""

    assumes: ClassVar[str] = ASSUMES
    apart: ClassVar[bool] = True  # people lack a label independently of one another
    every: ClassVar[int] = 1  # one ratio of odds in so many is looked at for that up to which a verdict stands
    labelled: NDArray[np.int64]  # shape (1024, 2): rows by label
    unlabelled: NDArray[np.int64]  # shape (1024,)
    sums: NDArray[np.int64]  # shape (1024, 2): sums of the scores, out of `2^30`, of the labelled and of the others

    @classmethod
    def of(cls, sketch: Sketch, *groups: int) -> Cells:
        """Read everyone's, or those of a group, or of several, by their numbers; of clusters with their rows."""
        return kind_of(sketch).counted(sketch, *groups)

    @classmethod
    def counted(cls, sketch: Sketch, *groups: int) -> Cells:
        """Count them, whatever they weigh."""
        if not groups:
            stored = sketch.cells.sum(axis=0).reshape(CELLS, -1, sketch.cells.shape[-1])
            counts = stored[..., :2].sum(axis=1)
            place = np.arange(stored.shape[1]) << (UNLABELLED_REST - (CELL_BITS - GROUP_BITS))
            rest = (stored[..., :2].sum(axis=-1) * place).sum(axis=1) + stored[..., 2:4].sum(axis=(1, 2))
        else:
            own = sketch.group_cells[list(groups)].sum(axis=(0, 1))
            counts, rest = own[:, :2], own[:, 2:4].sum(axis=1)
        apart = sketch.parts["unlabelled"].stored[[1 + g for g in groups] or [0]].sum(axis=0)
        start = np.arange(CELLS, dtype=np.int64) << UNLABELLED_REST
        sums = np.stack([counts.sum(axis=1) * start + rest, apart[:, 0] * start + apart[:, 1]], axis=1)
        return Cells(counts, apart[:, 0], sums)

    @classmethod
    def people_apart(cls, sketch: Sketch) -> int:
        """How many people of a sketch have a row without a label: rows, or clusters where rows share clusters."""
        return sketch.unlabelled

    @classmethod
    def in_groups(cls, sketch: Sketch) -> NDArray[np.int64]:
        """The same of each group."""
        rows: NDArray[np.int64] = sketch.parts["unlabelled"].stored[1:, :, 0].sum(axis=1)
        return rows

    @property
    def rows(self) -> int:
        """People with a label."""
        return int(self.labelled.sum())

    @property
    def missing(self) -> int:
        """People without."""
        return int(self.unlabelled.sum())

    @property
    def expected(self) -> tuple[float, float]:
        """Sum of the scores of those with a label, and of those without."""
        first, second = self.sums.sum(axis=0) / STEPS
        return float(first), float(second)

    @property
    def reported(self) -> dict[str, object]:
        """What settings tell of clusters."""
        return {}

    def ranges(self, count: int, smallest: int = 1) -> list[tuple[int, int]]:
        """Cut the cells into at most so many ranges that hold about as many people each.

        In each are so many people or more, and so many with a label, or none. No label is read.
        """
        every = (self.labelled.sum(axis=1) + self.unlabelled).cumsum()
        cuts = np.searchsorted(every, np.arange(1, count) * every[-1] / count) + 1
        ends = [0, *(int(c) for c in np.unique(cuts) if c < CELLS), CELLS]

        def few(a: int, b: int) -> bool:
            known, people = self.people(a, b)
            return people < smallest or 0 < known < smallest

        while len(ends) > 2:
            bad = next((i for i in range(len(ends) - 1) if few(ends[i], ends[i + 1])), None)
            if bad is None:
                break
            del ends[bad + 1 if bad + 2 < len(ends) else bad]  # it joins the next, and the last the one before
        return list(pairwise(ends))

    def people(self, low: int, high: int) -> tuple[int, int]:
        """The people of a range of cells with a label, and all of them."""
        known = int(self.labelled[low:high].sum())
        return known, known + int(self.unlabelled[low:high].sum())

    def part(self, low: int, high: int) -> Cells:
        """Those of a range of cells."""
        return Cells(self.labelled[low:high], self.unlabelled[low:high], self.sums[low:high])

    def ranged(self, steps: int, odds: float, *, labelled_only: bool = False) -> Ends:
        """What certifies the people under an assumption, by step of the score."""
        return Range(self.stepped(steps, labelled_only=labelled_only), odds)

    def stepped(self, steps: int, *, labelled_only: bool = False) -> Counts:
        """People by step of the score, of which there are so many to one: the middle of a cell is rounded."""
        step = steps_of(np.arange(CELLS), steps)
        known, events, unknown, sums = (np.zeros(steps + 1, dtype=np.int64) for _ in range(4))
        np.add.at(known, step, self.labelled.sum(axis=1))
        np.add.at(events, step, self.labelled[:, 1])
        np.add.at(sums, step, self.sums[:, 0])
        if not labelled_only:
            np.add.at(unknown, step, self.unlabelled)
            np.add.at(sums, step, self.sums[:, 1])
        there = known + unknown > 0
        score = sums[there] / (known + unknown)[there] / STEPS
        return Counts(known[there], events[there], unknown[there], score)


def steps_of(cell: NDArray[np.int64], steps: int) -> NDArray[np.int64]:
    """The step of the score of each cell."""
    return np.floor((cell + 0.5) / CELLS * steps + 0.5).astype(np.int64)


@dataclass(frozen=True)
class ClusterRows:
    """Every row, with a label or without, of data whose rows share clusters or count more."""

    cluster: NDArray[np.int64]  # shape (n,)
    cell: NDArray[np.int64]  # shape (n,)
    y: NDArray[np.float64]  # shape (n,): NaN without a label
    p: NDArray[np.float64]  # shape (n,)
    weight: NDArray[np.float64]  # shape (n,)
    group: NDArray[np.int64]  # shape (groupings, n): numbers of the sketch's groups

    def within(self, groups: Sequence[int]) -> ClusterRows:
        """The rows of some groups; of none named all."""
        if not groups:
            return self
        at = np.isin(self.group, list(groups)).any(axis=0)
        return ClusterRows(self.cluster[at], self.cell[at], self.y[at], self.p[at], self.weight[at], self.group[:, at])

    @property
    def clusters(self) -> tuple[int, int]:
        """Clusters, and those of them that have a row without a label."""
        return len(np.unique(self.cluster)), len(np.unique(self.cluster[np.isnan(self.y)]))


@dataclass(frozen=True)
class ClusterCells(Cells):
    """Counts of people, and their rows by cluster, which are certified."""

    assumes, apart = OF_CLUSTERS, False
    every = 4  # each takes the work of all clusters
    rows_of: ClusterRows

    @classmethod
    def counted(cls, sketch: Sketch, *groups: int) -> Cells:
        result = super().counted(sketch, *groups)
        return cls(result.labelled, result.unlabelled, result.sums, cluster_rows(sketch).within(groups))

    @classmethod
    def people_apart(cls, sketch: Sketch) -> int:
        return cluster_rows(sketch).clusters[1]

    @classmethod
    def in_groups(cls, sketch: Sketch) -> NDArray[np.int64]:
        q = cluster_rows(sketch)
        apart = np.isnan(q.y)
        return clusters_in(q.group[:, apart], q.cluster[apart], sketch.spec.group_count)

    def ranged(self, steps: int, odds: float, *, labelled_only: bool = False) -> Ends:
        """What certifies the clusters under an assumption; those counted once serve every other."""
        if (steps, labelled_only) not in self._made:
            q = self.rows_of
            at = ~np.isnan(q.y) if labelled_only else np.ones(len(q.y), dtype=np.bool_)
            step = steps_of(q.cell[at], steps)
            self._made[steps, labelled_only] = of_rows(q.cluster[at], step, q.y[at], q.p[at], q.weight[at])
        return ClusterRange(self._made[steps, labelled_only], odds)

    def people(self, low: int, high: int) -> tuple[int, int]:
        """The clusters that have a row with a label in a range of cells, and all that have one."""
        q = self.rows_of
        here = (q.cell >= low) & (q.cell < high)
        known, every = (len(np.unique(q.cluster[at])) for at in (here & ~np.isnan(q.y), here))
        return known, every

    @cached_property
    def _made(self) -> dict[tuple[int, bool], ClusterCounts]:
        return {}

    @property
    def reported(self) -> dict[str, object]:
        clusters, apart = self.rows_of.clusters
        return {"clusters": clusters, "clusters_unlabelled": apart}


def kind_of(sketch: Sketch) -> type[Cells]:
    """How people with and without a label are counted of a sketch: by rows, or by clusters of rows in memory."""
    return Cells if sketch.kept is None else ClusterCells


def cluster_rows(sketch: Sketch) -> ClusterRows:
    """Every row of data that were kept in memory; made once."""
    data = cast(Predictions, sketch.kept)

    def made() -> ClusterRows:
        every = without_outcomes(data)
        y = np.full(every.n, np.nan)
        y[: data.n] = data.y
        return ClusterRows(
            cluster=people_of(every).codes.astype(np.int64),
            cell=np.minimum(np.floor(every.p * STEPS), STEPS - 1.0).astype(np.int64) >> UNLABELLED_REST,
            y=y,
            p=every.p,
            weight=weights_of(every),
            group=Members.of_rows(every.covariates, every.n, sketch).group,
        )

    return remembered(data, ("unlabelled units", sketch.spec.digest), made)


def kept_sketch(data: Predictions | Sketch, seed: int, by: tuple[str, ...] = (), intersections: bool = False) -> Sketch:
    """The sketch of data whose rows without a label were kept, with groups where some are named."""
    if isinstance(data, Predictions) and data.unlabelled is not None:
        return sketch_rows(data, Reading(by=by, allow=by, intersections=intersections, seed=checked_seed(seed)))
    # A sketch whose groups are others is refused for these first: it must be made again anyway.
    whole = grouped_sketch(data, by, intersections, seed) if by else counted(data, seed)
    if "unlabelled" not in whole.parts:
        crossing = data.crossing if isinstance(data, Predictions) else data.two_way
        raise NotComputable(NONE_KEPT if crossing is None else TWO_WAY)
    return whole


# ---- Outcomes by a horizon ----

NO_PROOF = (
    "of outcomes by a horizon, weights of censoring are proved for independent rows of equal weight: leave {} out"
)


NOT_WEIGHTED = (
    "an audit in which some outcomes by a horizon are unknown counts each row once: leave weights= (--weights) out, or "
    "certify the weighted rows by certify.missing_labels"
)


@takes_arrays
@takes(RowOptions, FIRST)
def at_horizon(
    source: object,
    *,
    score: str,
    time: str,
    event: str,
    horizon: float,
    entered: str | None = None,
    closed: str | float | date | None = None,
    competing: Columns = None,
    way: Way = "followed",
    within: Columns = None,
    **settings: Unpack[RowOptions],
) -> Predictions:
    """Make rows whose label is an outcome by a horizon: within 30 days, within a year.

    With ``T`` the time to the event and ``C`` the end of follow-up, a row has ``min(T, C)`` and what ended it. The
    outcome is 1 where the event came by the horizon H, and 0 where follow-up reached H without it, or another event
    came first. It is unknown where follow-up ended before H without an event.

    Parameters
    ----------
    source : path, glob, list of paths, directory or frame
        As `read`.
    score : str
        Column of the probability of the event by the horizon; with competing events, of its absolute risk.
    time, event : str
        Columns of the time to the event or to the end of follow-up (numbers, or dates if `entered` has dates), and of
        what ended it: 1, or `positive`, is the event; every other value but those of `competing` is none.
    horizon : float above 0
        In the unit of the times; days where they are dates.
    entered, closed : str, optional
        Column of entry, and the last date of follow-up. Rows with ``entered + horizon > closed`` are left out, and
        counted: all that remain could be followed to the horizon. With dates, times count in days.
    competing : str or sequence of str, optional
        Values of `event` of other events, such as death, after which this one cannot come: outcome 0.
    way : {"followed", "weights", "unknown"}
        What is done about rows lost before the horizon. ``"followed"`` refuses them with their count. ``"weights"``
        takes being lost as independent of the outcome: `certify.horizon`, `audit` and the measures weigh the other
        rows. ``"unknown"`` assumes nothing: `certify.missing_labels` and `audit` read them.
    within : str or sequence of str, optional
        With ``way="weights"``: columns within whose levels being lost is independent of the outcome. Each level has its
        own law of being followed; without them all rows have one.
    positive, by, cluster, weights, percent, missing, drop_missing, encoding, delimiter, decimal, sheet, dates
        As `read`; ``missing="drop"`` leaves out rows without a time, an event or an entry too.

    Returns
    -------
    Predictions
        With ``followed`` where outcomes are unknown; methods that read known outcomes alone then raise `NotComputable`.

    Raises
    ------
    BadInput
        A column is not there, a value cannot be used, or rows were lost and `way` does not say what that means.

    Examples
    --------
    >>> import calibrant as cal
    >>> log = {"days": [30, 400, 500, 90], "died": [1, 0, 1, 0], "risk": [0.6, 0.1, 0.2, 0.3]}
    >>> rows = cal.at_horizon(log, score="risk", time="days", event="died", horizon=365, way="unknown")
    >>> rows.y, len(rows.unlabelled.p)
    (array([1, 0, 0], dtype=int8), 1)
    """
    ends = None if closed is None else str(closed)
    reading = Reading.of(
        score=score,
        time=time,
        event=event,
        horizon=horizon,
        entered=entered,
        closed=ends,
        competing=competing,
        way=way,
        within=within,
        allow_same=True,
        **settings,
    )
    return in_memory(source, reading.named())


@dataclass(frozen=True)
class WithLost:
    """Rows of which some outcomes by a horizon are unknown, and the sketch of those known; of groups alone."""

    rows: Predictions
    sketch: Sketch

    def __post_init__(self) -> None:
        if self.rows.weights is not None and not self.weighs:
            raise NotComputable(NOT_WEIGHTED)

    @property
    def weighs(self) -> bool:
        """Those known stand for the others by weights of censoring."""
        return self.rows.weighs

    @property
    def predicted(self) -> float:
        """Mean score of all rows."""
        return float(FollowedRows.of(replace(self.rows, cluster=None)).p.mean())


def with_lost(source: object, options: Reading, engine: object = None) -> tuple[WithLost | None, Reading]:
    """Rows of which some outcomes by a horizon are unknown, held in memory; none of other data, and how to read these.

    Rows that were all followed long enough need no way.
    """
    if isinstance(source, Predictions):
        followed = source.followed
        if followed is None or len(followed.time) == source.n:
            return None, options
        options.for_predictions(engine)
        of_groups = replace(options, variables=(), tests=False, candidates=False)
        return WithLost(source, sketch_rows(source, of_groups)), options
    if options.at is None or options.at.complete:
        return None, options
    if isinstance(source, Sketch):
        refuse_horizon(options.at, "a sketch brings its own outcomes")
    if engine is not None:
        raise NotComputable(f"follow-up is read in memory: leave {options.caller.says('engine')} out")
    opened = options.rows_of(source_of(source, options, options.columns))
    if not opened.log.horizon["unknown"]:
        return None, replace(options, at=replace(options.at, way="followed"), missing="level")
    of_groups = replace(options, variables=(), tests=False, candidates=False)
    rows = in_memory(opened, of_groups.named())
    out = sketch_rows(rows, of_groups)
    out.spec = replace(out.spec, percent=options.percent)
    out.files, out.log = opened.files, opened.log
    return WithLost(rows, out), options


def groups_of_all(
    data: Predictions, by: tuple[str, ...], intersections: bool = False
) -> Iterator[tuple[Group, NDArray[np.intp]]]:
    """Yield each group, and the numbers of its rows: those of unknown outcome come after all others."""
    yield from rows_of_groups(without_outcomes(data), by, intersections)


def follow_up_of_groups(
    data: Predictions, by: tuple[str, ...], intersections: bool = False
) -> Iterator[tuple[Group, Predictions]]:
    """Yield each group with its rows, those of unknown outcome among them, without covariates."""
    for name, rows in groups_of_all(data, by, intersections):
        yield name, replace(taken_with_lost(data, rows), covariates=None)


def taken_with_lost(data: Predictions, rows: NDArray[np.integer]) -> Predictions:
    """Some of the rows, given by their numbers, those of unknown outcome after all others."""
    apart, followed = data.unlabelled, data.followed
    if apart is None or followed is None:
        raise NotComputable("rows of unknown outcome were not kept")
    numbers = rows.astype(np.intp)
    known, lost = numbers[numbers < data.n], numbers[numbers >= data.n] - data.n
    order = np.concatenate([known, lost + data.n])
    return replace(
        data.part(known),
        dropped=data.dropped,
        unlabelled=Unlabelled(
            p=apart.p[lost],
            covariates=apart.covariates.take(pa.array(lost)),
            **{name: picked(getattr(apart, name), lost) for name in ATTACHED},
        ),
        followed=replace(
            followed,
            time=followed.time[order],
            kind=followed.kind[order],
            level=followed.level[order],
            place=followed.place[order],
        ),
    )


def without_outcomes(data: Predictions) -> Predictions:
    """Every row, those of unknown outcome after all others; every label is 0, and none is one."""
    apart = data.unlabelled
    if apart is None:
        raise NotComputable("rows of unknown outcome were not kept")
    covariates = None if data.covariates is None else pa.concat_tables([data.covariates, apart.covariates])
    p = np.concatenate([data.p, apart.p])
    own: dict[str, Any] = {k: np.concatenate([v, getattr(apart, k)]) for k, v in attached(data).items()}
    return Predictions(y=np.zeros(len(p), np.int8), p=p, covariates=covariates, name=data.name, **own)


@dataclass(frozen=True)
class FollowedRows:
    """Every row, whether its outcome by the horizon is known or not."""

    p: Floats  # shape (n + m,): those with an outcome first
    y: Floats  # shape (n + m,): NaN where it is unknown
    time: Floats
    kind: NDArray[np.int8]  # what ended the follow-up
    level: NDArray[np.int64]  # follow-up has a law of its own in each
    place: NDArray[np.int64]  # in which order rows were read: whether an outcome is known has no part in it
    horizon: float

    @classmethod
    def of(cls, data: object) -> FollowedRows:
        """Those of rows from `at_horizon`; refuse rows without follow-up, and what no proof covers."""
        if isinstance(data, Sketch):
            raise NotComputable("a sketch holds no follow-up: pass rows from calibrant.at_horizon(..., way='weights')")
        data = data if isinstance(data, Predictions) else checked_data(data, Predictions)
        apart, followed = data.unlabelled, data.followed
        if apart is None or followed is None:
            raise NotComputable(
                "these rows have no follow-up: make them with calibrant.at_horizon(..., way='weights'), or by --time, "
                "--event, --horizon and --way weights"
            )
        refuse_rows(data, cluster=NO_PROOF.format("cluster="), weights=NO_PROOF.format("weights="))
        return cls(
            np.concatenate([data.p, apart.p]),
            np.concatenate([data.y.astype(np.float64), np.full(len(apart.p), np.nan)]),
            followed.time,
            followed.kind,
            followed.level,
            followed.place,
            followed.horizon,
        )

    def some(self, at: NDArray[np.bool_] | NDArray[np.int64]) -> FollowedRows:
        """Some of the rows, in the order that numbers name them."""
        p, y, time = self.p[at], self.y[at], self.time[at]
        return FollowedRows(p, y, time, self.kind[at], self.level[at], self.place[at], self.horizon)

    @property
    def rank(self) -> NDArray[np.int64]:
        """The number of each row, from 0, in the order in which rows were read."""
        out = np.empty(len(self.place), dtype=np.int64)
        out[np.argsort(self.place, kind="stable")] = np.arange(len(self.place))
        return out

    @cached_property
    def levels(self) -> tuple[NDArray[np.bool_], ...]:
        """Which rows are of each level."""
        return tuple(self.level == one for one in np.unique(self.level))

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have an outcome."""
        return ~np.isnan(self.y)

    @property
    def reaches(self) -> bool:
        """Whether follow-up says what happened by the horizon: somebody was followed so long, or nobody was at risk."""
        return all(survival.reaches(self.time[at], self.kind[at], self.horizon) for at in self.levels)

    def needs_reach(self) -> None:
        """Refuse an estimate by a horizon behind all follow-up."""
        if not self.reaches:
            raise NotComputable(
                f"nobody was followed to {self.horizon:g}, the longest to {self.time.max():g}: nothing says what "
                "happened between, so that there is no estimate; name an earlier horizon"
            )

    @property
    def until(self) -> Floats:
        """When each outcome is decided: at the event, or at the horizon."""
        return np.minimum(self.time, self.horizon)

    @cached_property
    def remaining(self) -> tuple[Steps, ...]:
        """The Kaplan-Meier estimate of still being followed, in each level."""
        return tuple(survival.censoring(self.time[at], self.kind[at]) for at in self.levels)

    @cached_property
    def weights(self) -> Floats:
        """The inverse of how likely each outcome came to be known, by that estimate; 0 of those unknown."""
        result = np.zeros(len(self.p))
        for at, g in zip(self.levels, self.remaining, strict=True):
            result[at] = survival.inverse_weights(self.time[at], self.kind[at], self.horizon, g)
        return result

    @cached_property
    def risk(self) -> float:
        """The Aalen-Johansen estimate of the event's probability by the horizon; of levels by their rows."""
        self.needs_reach()
        each = (at.mean() * survival.incidence(self.time[at], self.kind[at]).at(self.horizon) for at in self.levels)
        return float(sum(each))

    @cached_property
    def risk_error(self) -> float:
        """Its standard error."""
        variances = (
            at.mean() ** 2 * survival.incidence_variance(self.time[at], self.kind[at], self.horizon)
            for at in self.levels
        )
        return math.sqrt(sum(variances))
