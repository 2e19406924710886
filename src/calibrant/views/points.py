"""What every measure reads: weighted points, from rows or from a sketch's cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import MulticlassPredictions, Predictions, checked_data
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Estimate, Interval
from calibrant.stats.cells import SCALE
from calibrant.stats.classical import Scored, in_clusters, scored
from calibrant.stats.measures import Weighed, WeighedByClusters
from calibrant.stats.nulls import SIGNS as SIGNS
from calibrant.views.clusters import named, one_cluster
from calibrant.views.population import INDEPENDENT, Population, everyone

Floats = NDArray[np.float64]

ROWS = "rows"
WEIGHTED = "independent rows, sampled with probability inversely proportional to weights="
IN_CLUSTERS = "independent clusters (cluster=), rows of one cluster as dependent as they like"
WEIGHTED_CLUSTERS = f"{IN_CLUSTERS}, sampled with probability inversely proportional to weights="


def assumed(rows: Predictions) -> str:
    """Return what is assumed of rows, in one line: whether they come in units, and whether they are weighted."""
    if rows.cluster is not None:
        return IN_CLUSTERS if rows.weights is None else WEIGHTED_CLUSTERS
    return INDEPENDENT if rows.weights is None else WEIGHTED


def weights_of(rows: Predictions) -> Floats:
    """The weight of each row, 1 where there are none."""
    return np.ones(rows.n) if rows.weights is None else rows.weights


def even_weights(rows: Predictions | MulticlassPredictions) -> Floats:
    """The weights divided by their mean: how many rows each counts as."""
    return np.ones(rows.n) if rows.weights is None else rows.weights / rows.weights.mean()


def cluster_codes(rows: Predictions) -> NDArray[np.intp] | None:
    """Return the cluster of each row, 0 to G - 1, or None where rows are independent; refuse a single unit."""
    if rows.cluster is None:
        return None
    code = np.unique(rows.cluster, return_inverse=True)[1].reshape(-1)
    if not code.any():
        raise one_cluster(rows)
    return code


def of_rows(data: Predictions | Sketch, reason: str) -> Predictions:
    """The rows, where these were passed and not a sketch."""
    if isinstance(data, Sketch):
        raise NotComputable(reason)
    return checked_data(data, Predictions)


def refuse_rows(rows: object, **reasons: str) -> None:
    """Refuse rows that have what a method has no proof for: its attribute, such as `cluster`, and why not."""
    for name, reason in reasons.items():
        if getattr(rows, name, None) is not None:
            raise NotComputable(reason)


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
        return (
            float(self.n) if self.weight is None else float(self.mass.sum() ** 2 / (self.mass * self.each_weighs).sum())
        )

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
        if self.cluster is None:
            return INDEPENDENT if self.weight is None else WEIGHTED
        return IN_CLUSTERS if self.weight is None else WEIGHTED_CLUSTERS

    def estimate(
        self, method: str, value: float, ends: tuple[float, float], alpha: float, cluster: str, **settings: Any
    ) -> Estimate:
        """Wrap a number and its large-sample interval."""
        low, high = ends
        interval = Interval(low=float(low), high=float(high), level=1.0 - alpha, guarantee="asymptotic")
        known = {"reads": self.reads, "weights": self.weight is not None, **self._clusters(), **settings}
        return Estimate(
            method=f"measure.{method}",
            value=float(value),
            unit=cluster,
            n=self.n,
            interval=interval,
            assumes=self.assumes,
            settings=known,
        )

    def _clusters(self) -> dict[str, object]:
        """Return for `settings` how many clusters there are, and effectively."""
        if self.cluster is None:
            return {}
        count = int(self.cluster.max()) + 1
        return named(self.columns) | {"clusters": count, "effective_clusters": self.effective_clusters}


class ClusterPoints(Points):
    """The same of rows in clusters, which may depend on one another."""

    cluster: NDArray[np.intp]

    @cached_property
    def weighed(self) -> Weighed:
        return WeighedByClusters(self.y.astype(np.float64), self.mass, self.mass * self.each_weighs, self.cluster)

    @property
    def entries(self) -> Scored:
        return in_clusters(self.p, self.y, self.weight, self.cluster)


class CellPoints(Points):
    """The same of a sketch's cells."""

    population: Population

    @property
    def entries(self) -> Scored:
        return Scored.of_cells(self.population.cells)


def points(data: Points | Predictions | Sketch) -> Points:
    """Return the points of predictions or of a sketch; refuse anything else."""
    if isinstance(data, Points):
        return data
    inputs = checked_data(data, Predictions, Sketch)
    if isinstance(inputs, Sketch):
        return cell_points(everyone(inputs))
    if inputs.n == 0:
        raise NotComputable("there are no rows")
    columns = tuple(name for name, _ in inputs.levels)
    code = cluster_codes(inputs)
    kind = Points if code is None else ClusterPoints
    return kind(inputs.p, inputs.y, None, inputs.weights, inputs.n, ROWS, code, columns)


def cell_points(population: Population) -> Points:
    """Return one point for each score cell and outcome that has rows, at the mean score of those rows."""
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
