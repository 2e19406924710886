"""What every measure reads: weighted points, from rows or from a sketch's cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import MulticlassPredictions, Predictions, codes_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.kernels.draws import mix
from calibrant.results import Estimate, Interval
from calibrant.stats.cells import SCALE, summed
from calibrant.stats.classical import Scored, in_clusters, scored
from calibrant.stats.measures import Weighed, WeighedByClusters
from calibrant.stats.nulls import SIGNS as SIGNS
from calibrant.views.kinds import ByKind
from calibrant.views.people import named, people_of
from calibrant.views.people import weights_of as weights_of
from calibrant.views.population import INDEPENDENT, Population
from calibrant.views.sample import Group, everyone, group, grouped_sketch, named_groups, rows_of_groups
from calibrant.views.unlabelled import FollowedRows, follow_up_of_groups

Floats = NDArray[np.float64]

ROWS = "rows"
WEIGHTED = "independent rows, sampled with probability inversely proportional to weights="
IN_CLUSTERS = "independent clusters (cluster=), rows of one cluster as dependent as they like"
WEIGHTED_CLUSTERS = f"{IN_CLUSTERS}, sampled with probability inversely proportional to weights="

BY_CENSORING = (
    "independent rows, lost to follow-up independently of outcome and score{}; weights of censoring taken as known, "
    "which makes intervals a little wide"
)

ASSUMES = {  # of rows in clusters or not, weighted or not
    (False, False): INDEPENDENT,
    (False, True): WEIGHTED,
    (True, False): IN_CLUSTERS,
    (True, True): WEIGHTED_CLUSTERS,
}


def assumed(rows: Predictions) -> str:
    """What is assumed of rows, in one line."""
    return ASSUMES[rows.cluster is not None, rows.weights is not None]


def even_weights(rows: Predictions | MulticlassPredictions) -> Floats:
    """The weights divided by their mean: how many rows each counts as."""
    weights = weights_of(rows)
    even: Floats = weights / weights.mean()
    return even


def clusters_or_rows(rows: MulticlassPredictions) -> NDArray[np.intp]:
    """The cluster of each row of several classes, 0 to G - 1; of independent rows each is its own."""
    if rows.cluster is None:
        return np.arange(rows.n)
    code: NDArray[np.intp] = np.unique(rows.cluster, return_inverse=True)[1].reshape(-1)
    return code


def hash_part(numbers: NDArray[np.int64], most: int, seed: int) -> NDArray[np.bool_]:
    """Which rows are in a part of about so many at most, all rows of one number together, by the hash of their number.

    Of a file that is sorted the first rows would be one corner.
    """
    if len(numbers) <= most:
        return np.ones(len(numbers), dtype=np.bool_)
    key = mix(numbers.astype(np.uint64) ^ mix(np.array([seed], dtype=np.uint64)))
    result: NDArray[np.bool_] = key <= np.partition(key, most - 1)[most - 1]
    return result


def cluster_codes(rows: Predictions) -> NDArray[np.intp] | None:
    """The cluster of each row, 0 to G - 1, or None where rows are independent; refuse a single unit."""
    people_of(rows).needs_two()
    return None if rows.cluster is None else codes_of(rows)


@dataclass(frozen=True)
class Points:
    """Scores and outcomes, with how often each occurs and how much it weighs."""

    p: Floats  # shape (m,)
    y: NDArray[np.int8]  # shape (m,)
    count: Floats | None  # shape (m,): rows that an entry stands for (a sketch's cell); None for one each
    weight: Floats | None  # shape (m,): sampling weights
    n: int  # rows
    reads: str  # for `settings`: "rows", or the cells of the sketch
    # Shape (m,): cluster of each entry, whose rows may depend on one another; then entries are single rows.
    cluster: NDArray[np.intp] | None = None
    # Where several columns named clusters: the coarsest, which is `cluster`, and the others.
    columns: tuple[str, ...] = ()
    population: Population | None = None  # what points of a sketch's cells were made of, which has finer counts

    @cached_property
    def times(self) -> Floats:
        """`count`, or ones."""
        return np.ones(len(self.p)) if self.count is None else self.count

    @cached_property
    def each_weighs(self) -> Floats:
        """`weight`, or ones."""
        return np.ones(len(self.p)) if self.weight is None else self.weight

    @cached_property
    def mass(self) -> Floats:
        """Count times weight."""
        return self.times * self.each_weighs

    @cached_property
    def effective(self) -> float:
        """Kish's effective number of rows."""
        return float(self.mass.sum() ** 2 / (self.mass * self.each_weighs).sum())

    @property
    def effective_clusters(self) -> float:
        """Kish's effective number of clusters; of rows, where these are independent."""
        return self.weighed.effective_clusters

    @cached_property
    def weighed(self) -> Weighed:
        """The outcomes with their counts, weights and clusters."""
        return Weighed(self.y.astype(np.float64), self.mass, self.mass * self.each_weighs)

    @property
    def entries(self) -> Scored:
        """Rows in order of the score, or cells of them, as tests of the score alone read them."""
        return scored(self.p, self.y, self.weight)

    def by_class(self, at: NDArray[np.intp], classes: int) -> tuple[Floats, float]:
        """What each cluster weighs in each class, shape (clusters, classes), and how many there are.

        Of independent rows the root of each class's sum of squares, on the diagonal, and how many rows.
        """
        return np.diag(np.sqrt(summed(at, self.mass * self.each_weighs, classes))), float(self.n)

    def level(self, alpha: float) -> float:
        """The alpha whose normal quantile is that of Student's law for as many clusters; of rows `alpha`."""
        return self.weighed.level(alpha)

    @cached_property
    def events(self) -> int:
        """Rows with outcome 1."""
        return int(self.times[self.y == 1].sum())

    @property
    def assumes(self) -> str:
        """The assumption, in one line."""
        return ASSUMES[self.cluster is not None, self.weight is not None]

    @property
    def reported(self) -> dict[str, object]:
        """For `settings`, how many clusters there are, and effectively."""
        return {}

    def estimate(
        self, method: str, value: float, ends: tuple[float, float], alpha: float, cluster: str, **settings: Any
    ) -> Estimate:
        """Wrap a number and its large-sample interval."""
        low, high = ends
        interval = Interval(low=float(low), high=float(high), level=1.0 - alpha, guarantee="asymptotic")
        known = {"reads": self.reads, "weights": self.weight is not None, **self.reported, **settings}
        return Estimate(
            method=f"measure.{method}",
            value=float(value),
            unit=cluster,
            n=self.n,
            interval=interval,
            assumes=self.assumes,
            settings=known,
        )


class ClusterPoints(Points):
    """The same of rows in clusters, which may depend on one another."""

    cluster: NDArray[np.intp]

    @cached_property
    def weighed(self) -> Weighed:
        return WeighedByClusters(self.y.astype(np.float64), self.mass, self.mass * self.each_weighs, self.cluster)

    @property
    def entries(self) -> Scored:
        return in_clusters(self.p, self.y, self.weight, self.cluster)

    def by_class(self, at: NDArray[np.intp], classes: int) -> tuple[Floats, float]:
        clusters = int(self.cluster.max()) + 1
        sums = summed(self.cluster * classes + at, self.mass, clusters * classes)
        return sums.reshape(clusters, classes), float(clusters)

    @property
    def reported(self) -> dict[str, object]:
        count = int(self.cluster.max()) + 1
        return named(self.columns) | {"clusters": count, "effective_clusters": self.effective_clusters}


class CellPoints(Points):
    """The same of a sketch's cells."""

    population: Population

    @property
    def entries(self) -> Scored:
        return Scored.of_cells(self.population.cells)


class HorizonPoints(Points):
    """The same of outcomes by a horizon: those known stand for those unknown, by how likely they came to be known."""

    rows: FollowedRows
    within: tuple[str, ...]  # columns whose levels have a law of being followed each

    @classmethod
    def of(cls, data: Predictions) -> HorizonPoints:
        """Weigh each known outcome by the inverse of the Kaplan-Meier estimate of being followed to it."""
        rows = FollowedRows.of(data)
        if not all(g.before(np.array([rows.horizon]))[0] > 0.0 for g in rows.remaining):
            raise NotComputable(
                f"no row was followed to {rows.horizon:g}, so no weight reaches it: name an earlier horizon"
            )
        result = cls(data.p, data.y, None, rows.weights[: data.n], data.n, "rows, by inverse weights of censoring")
        object.__setattr__(result, "rows", rows)
        object.__setattr__(result, "within", () if data.followed is None else data.followed.within)
        return result

    @property
    def assumes(self) -> str:
        return BY_CENSORING.format(self.of_levels)

    @property
    def of_levels(self) -> str:
        """Within what rows are lost independently; empty of all rows together."""
        return f" within levels of {', '.join(self.within)}" if self.within else ""

    @property
    def reported(self) -> dict[str, object]:
        rows = self.rows
        return {"horizon": rows.horizon, "unknown": int((~rows.known).sum()), "risk": rows.risk}


def points(data: Points | Predictions | Sketch) -> Points:
    """The points of predictions or of a sketch; refuse anything else."""
    return data if isinstance(data, Points) else _points(data)


def _of_rows(data: Predictions) -> Points:
    if data.n == 0:
        raise NotComputable("there are no rows")
    columns = tuple(name for name, _ in data.levels)
    code = cluster_codes(data)
    kind = Points if code is None else ClusterPoints
    return kind(data.p, data.y, None, data.weights, data.n, ROWS, code, columns)


_points = ByKind(rows=_of_rows, counts=lambda data: cell_points(everyone(data)))


def points_by_horizon(data: Points | Predictions | Sketch) -> Points:
    """The same for measures that hold with weights of censoring, where some outcomes by a horizon are unknown."""
    return HorizonPoints.of(data) if isinstance(data, Predictions) and data.weighs else points(data)


def cell_points(population: Population) -> Points:
    """One point for each score cell and outcome that has rows, at the mean score of those rows."""
    cells = population.cells
    count, total = cells.totals, cells.sums.sum(axis=0) / SCALE
    where, label = np.nonzero(count)
    rows = count[where, label].astype(np.float64)
    score = np.clip(total[where, label] / rows, 0.0, 1.0)
    reported, n = f"{population.grid} score cells", int(count.sum())
    return CellPoints(score, label.astype(np.int8), rows, None, n, reported, population=population)


def both_outcomes(q: Points, what: str) -> None:
    """Refuse data in which every outcome is the same."""
    if q.events in (0, q.n):
        raise NotComputable(f"{what} needs both outcomes; all {q.n:,} rows have outcome {int(q.events > 0)}")


def parts(
    data: Predictions | Sketch, by: tuple[str, ...], intersections: bool = False
) -> Iterator[tuple[Group, Predictions | Points]]:
    """Yield each group that has rows, and these rows; of a sketch without clusters or weights its cells."""
    if isinstance(data, Predictions) and by and data.followed is not None:
        yield from follow_up_of_groups(data, by, intersections)
        return
    if isinstance(data, Predictions) and by:
        scored = replace(data, covariates=None)
        yield from ((name, scored.part(rows)) for name, rows in rows_of_groups(data, by, intersections))
        return
    sketch = grouped_sketch(data, by, intersections, seed=0)
    if sketch.by_clusters:
        members, rows = people_of(sketch).holder.members(sketch), replace(sketch.rows(), covariates=None)
        for name, index in named_groups(sketch):
            if len(kept := np.flatnonzero(members.rows((index,)))):
                yield name, rows.part(kept)
        return
    yield from ((name, cell_points(group(sketch, index))) for name, index in named_groups(sketch))
