"""From a sketch to the cells and levels that one certificate reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_alpha, checked_seed, choice, number
from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.read import sketch_rows
from calibrant.data.reading import Reading
from calibrant.data.sketches.rows import which_clusters
from calibrant.data.sketches.sample import HERE, identities
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.spec import Spec
from calibrant.errors import NotComputable
from calibrant.kernels.draws import hash_split
from calibrant.kernels.tally import MOST
from calibrant.results import Side
from calibrant.stats.bounds import (
    debiased_error,
    distance_lower,
    distance_upper,
    gap_evidence,
    lower_evidence,
    shown_evidence,
)
from calibrant.stats.cells import FINE_GRID, SCALE, Cells, thin_starts
from calibrant.stats.clusters.above import Above
from calibrant.stats.clusters.below import below_of, gap_of
from calibrant.stats.clusters.clusters import Clusters, Tallies
from calibrant.stats.clusters.distance import Routes, distance_above, distance_below
from calibrant.stats.clusters.two_way import debiased
from calibrant.stats.evidence import Evidence, Gap, mean
from calibrant.views.clusters import (
    UNPROVED,
    Members,
    alone,
    assumed,
    assumed_of_two_way,
    cluster_totals,
    reported,
    reported_of_two_way,
    two_way_of,
)

FINE = 200  # levels a sketch keeps
EXACT_STEPS = (10, 20, 50, 100)
ROWS_A_VALUE = 10  # rows, in the mean, that each value must have where the score is certified as it is
QUANTISATION = 2.0**-30  # scores are read as whole multiples of this, rounded down
WHOLE = "the score rounded to whole percent"
IN_STEPS = "the score in {} rounding steps"
OF_VALUES = "the raw score, which takes {} values"
INDEPENDENT = "independent rows from one distribution"
CellOf = Callable[[NDArray[np.float64]], NDArray[np.int64]]
SIGNED = 1024  # cells of the score in which clusters' residuals are added up; signs are learnt of runs of them


@dataclass(frozen=True)
class Shown:
    """The score that a certificate from above is about, in finitely many values."""

    cells: Cells  # one for each value
    about: str  # which score that is, in words
    # `{"values": m}` for the score itself, which takes m values, or `{"steps": K}` for a display in K steps.
    display: dict[str, object]
    slack: float  # by how much reading scores to fixed precision can move its error
    tallies: tuple[Tallies, ...] = ()  # the clusters' sums by value, of every shift; none of independent rows

    @property
    def above(self) -> Evidence:
        """Evidence that this score's error is smaller: Theorem U; made once."""
        return shown_evidence(self.cells)

    def below(self, delta: float, seed: int) -> Evidence:
        """Evidence that this score's error is larger, with the stakes that are the best at `delta`."""
        return lower_evidence(self.cells, delta, seed)

    @property
    def debiased(self) -> float:
        """The error as estimated, less what noise adds."""
        return debiased_error(self.cells.low, self.cells.totals.sum(axis=1), self.cells.totals[:, 1])


class ShownByClusters(Shown):
    """The same of clusters: Theorems CU and CL."""

    @cached_property
    def above(self) -> Evidence:
        return mean([Above.of(t) for t in self.tallies])

    def below(self, delta: float, seed: int) -> Evidence:
        return mean([below_of(t, delta, seed, few=False) for t in self.tallies])

    @property
    def debiased(self) -> float:
        return debiased(self.tallies)


@dataclass(frozen=True)
class Population:
    """One population's counts: everyone, a group, or several groups pooled."""

    raw: NDArray[np.int64]  # shape (blocks, cells, 4 or more): rows and remainder sums by label
    fine: NDArray[np.int64]  # shape (blocks, 200, 2)
    # Shape (m,): the values of the score, out of `2^30`, where it is certified as it is; of everyone, so that some may
    # have no rows here. Empty where it takes many values.
    scores: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # Shape (m, 2): rows by label of each.
    by_score: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    # The score as it is shown in so many steps, and in 0 as it is, once it was made.
    shown: dict[int, Shown] = field(default_factory=dict, repr=False, compare=False, kw_only=True)
    # Whose rows are certified, where these are not independent or do not count alike: of every shift, where columns of
    # clusters cross.
    diagonals: tuple[Clusters, ...] = field(default=(), compare=False, kw_only=True)
    two_way: bool = field(default=False, kw_only=True)
    assumes: str = field(default=INDEPENDENT, kw_only=True)  # what certificates of these rows take for granted
    reported: dict[str, object] = field(default_factory=dict, compare=False, kw_only=True)  # of clusters, by a result

    @property
    def clusters(self) -> Clusters | None:
        """Whose rows are certified, those of the first shift; None of independent rows."""
        return next(iter(self.diagonals), None)

    @property
    def cells(self) -> Cells:
        """Cells of the raw score, of rows that are independent and count alike: what is proved for these alone."""
        return self.counted

    @cached_property
    def counted(self) -> Cells:
        """Rows by cell of the raw score, whatever they weigh; sums of scores are exact to a float's 53 bits."""
        counts = self.raw[..., :2]
        width = float((1 << 30) // self.raw.shape[1])
        start = np.arange(self.raw.shape[1])[None, :, None] * width
        return replace(Cells.grid(counts, counts * start + self.raw[..., 2:4]), few=self.exact)

    @cached_property
    def n(self) -> int:
        """Rows."""
        return int(self.fine.sum())

    @cached_property
    def events(self) -> int:
        """Rows with the outcome."""
        return int(self.fine[..., 1].sum())

    @property
    def grid(self) -> int:
        """Cells of the raw score."""
        return int(self.raw.shape[1])

    @property
    def exact(self) -> bool:
        """The score takes few values, and is certified as it is."""
        return len(self.scores) > 0

    @cached_property
    def single(self) -> NDArray[np.bool_]:
        """Cells whose rows provably share one score: the variance of the remainder is zero."""
        if self.raw.shape[2] < 6:
            return np.zeros(self.grid, dtype=bool)
        total = self.raw.sum(axis=0)
        rows, remainder, low, high = total[:, :2].sum(axis=1), total[:, 2:4].sum(axis=1), total[:, 4], total[:, 5]
        square = [(int(h) << 32) + int(v) for v, h in zip(low, high, strict=True)]
        flat = [int(a) * b == int(r) ** 2 for a, b, r in zip(rows, square, remainder, strict=True)]
        return np.array(flat)

    @property
    def expected(self) -> float:
        """Sum of the scores of all rows."""
        return self.counted.expected

    def below(self, delta: float, seed: int) -> Evidence:
        """Return evidence that the raw score's error is larger: Theorem L, or CL of clusters.

        With the stakes that are the best at `delta`; about scores as they are read, up to `QUANTISATION` less.
        """
        return lower_evidence(self.cells, delta, seed)

    def gap(self, delta: float) -> Gap:
        """Return evidence about the mean residual, with the stakes that are the best at `delta`."""
        return gap_evidence(self.cells, delta)

    def distance_below(self, delta: float, seed: int) -> float:
        """What the distance from calibration is at least."""
        return distance_lower(self.cells, delta, seed)

    def distance_above(self, delta: float) -> tuple[float, dict[str, object]]:
        """What the distance from calibration is at most, and the route that gave it."""
        high, route = distance_upper(self.cells, delta)
        return high, {"route": route}

    @property
    def off(self) -> float:
        """The mean residual as estimated."""
        return (self.events - self.expected) / self.n

    def levels(self, steps: int) -> Cells:
        """The score rounded to multiples of ``1 / steps``, one cell a level.

        Exact for 10, 20, 50, 100 and powers of two; otherwise the middle of the score's cell is rounded.
        """
        values = np.arange(steps + 1) / steps
        if steps in EXACT_STEPS:
            ratio = FINE // steps
            level, counts = (np.arange(FINE) + ratio // 2) // ratio, self.fine
        else:
            middle = (np.arange(self.grid) + 0.5) / self.grid
            level, counts = np.floor(middle * steps + 0.5).astype(np.int64), self.raw[..., :2]
        out = np.zeros((counts.shape[0], steps + 1, 2), dtype=np.int64)
        for label in (0, 1):
            for block in range(len(out)):
                out[block, :, label] = np.bincount(level, counts[block, :, label], steps + 1)
        return Cells.levels(out, values)

    def as_it_is(self) -> Shown:
        """Return the score itself, one cell a value, made once; refuse a score of many values.

        A score of 1 is read as ``1 - 2^-30``, and is put back to 1.
        """
        if not self.exact:
            raise NotComputable(
                f"the score takes too many values (more than {MOST:,}, or more than one for each {ROWS_A_VALUE} rows): "
                "certify the rounded score, with rounded"
            )
        if 0 not in self.shown:
            values = np.where(self.scores == round(SCALE) - 1, 1.0, self.scores / SCALE)
            about = "the raw score, which takes one value" if len(values) == 1 else OF_VALUES.format(len(values))
            cells = Cells.levels(self.by_score[None], values)
            self.shown[0] = self._shown(cells, about, {"values": len(values)}, self._value, QUANTISATION)
        return self.shown[0]

    def as_shown(self, steps: int) -> Shown:
        """The raw score shown in so many steps; made once."""
        if steps not in self.shown:
            about = WHOLE if steps == 100 else IN_STEPS.format(steps)

            def level(p: NDArray[np.float64]) -> NDArray[np.int64]:
                return (2 * steps * fixed_scores(p) + round(SCALE)) >> 31  # halves up, exactly

            self.shown[steps] = self._shown(self.levels(steps), about, {"steps": steps}, level, 0.0)
        return self.shown[steps]

    def _value(self, p: NDArray[np.float64]) -> NDArray[np.int64]:
        """Which of the score's values each is."""
        return np.searchsorted(self.scores, fixed_scores(p))

    def _shown(self, cells: Cells, about: str, display: dict[str, object], _: CellOf, slack: float) -> Shown:
        """A score shown, by the cell of each of its values."""
        return Shown(cells, about, display, slack)

    def judged(self, steps: int) -> Shown:
        """The score that "within" is about: as it is where it takes few values, else as shown in `steps`."""
        return self.as_it_is() if self.exact else self.as_shown(steps)


class OfClusters(Population):
    """The same of clusters, or of rows that do not count alike: Theorems CU, CL and CD, and means over shifts."""

    @property
    def cells(self) -> Cells:
        raise NotComputable(UNPROVED)

    def below(self, delta: float, seed: int) -> Evidence:
        return mean([below_of(self._signed(u), delta, seed, few=self.exact) for u in self.diagonals])

    def _signed(self, u: Clusters) -> Tallies:
        """The clusters' residuals by cell of the raw score, of which signs are learnt."""
        if self.exact:
            return u.tallies(self._value(u.p), len(self.scores), u.p)
        return u.tallies(np.minimum((u.p * SIGNED).astype(np.int64), SIGNED - 1), SIGNED, u.p)

    def gap(self, delta: float) -> Gap:
        return Gap.mean([gap_of(u, delta) for u in self.diagonals])

    def distance_below(self, delta: float, seed: int) -> float:
        return mean([distance_below(u, delta, seed) for u in self.diagonals]).limit(delta)

    def distance_above(self, delta: float) -> tuple[float, dict[str, object]]:
        routes = Routes.mean([distance_above(u, self.scores / SCALE) for u in self.diagonals])
        high = routes.limit(delta)
        return high, {"route": routes.route(high)}

    @property
    def off(self) -> float:
        total = [u.total for u in self.diagonals]
        return float(np.dot([u.mean for u in self.diagonals], np.array(total) / (sum(total) or 1.0)))

    def _shown(self, cells: Cells, about: str, display: dict[str, object], cell: CellOf, slack: float) -> Shown:
        at = [cell(u.p) for u in self.diagonals]
        tallies = [u.tallies(c, cells.size, cells.low[c]) for u, c in zip(self.diagonals, at, strict=True)]
        return ShownByClusters(cells, about, display, slack, tuple(tallies))


def few(sketch: Sketch) -> bool:
    """Whether the score takes so few values that it is certified as it is: decided once, for every group alike.

    Only scores decide, of all rows and never of a group, and no label.
    """
    kept = sketch.parts["values"]
    return not kept.many and are_few(len(kept.scores), sketch.n)


def are_few(values: int, rows: int) -> bool:
    """Whether a score of so many values, in so many rows, is certified as it is."""
    return values <= min(MOST, rows // ROWS_A_VALUE)


def values_of_scores(p: NDArray[np.float64]) -> NDArray[np.int64]:
    """The different values of scores, out of ``2^30``, increasing."""
    return np.unique(fixed_scores(p))


def fixed_scores(p: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return scores out of ``2^30`` as a sketch reads them."""
    result: NDArray[np.int64] = np.minimum(np.floor(p * SCALE), SCALE - 1.0).astype(np.int64)
    return result


def sketch_of(data: Predictions | Sketch, seed: int, by: Sequence[str] = (), intersections: bool = False) -> Sketch:
    """A sketch of predictions, or the sketch itself."""
    seed = checked_seed(seed)
    inputs = data if isinstance(data, Sketch) else checked_data(data, Predictions, Sketch)
    if isinstance(inputs, Sketch) and inputs.by_clusters:
        named = " and ".join(inputs.spec.row_attributes)
        raise NotComputable(
            f"a sketch's counts take rows as independent and of equal weight, not by {named}: pass its rows()"
        )
    if isinstance(inputs, Predictions) and (inputs.weights is not None or inputs.cluster is not None):
        raise NotComputable(UNPROVED)
    if isinstance(inputs, Sketch):
        return inputs.checked()
    return sketch_rows(inputs, Reading(by=tuple(by), intersections=intersections, seed=seed))


def counted(data: Predictions | Sketch, seed: int, by: Sequence[str] = (), intersections: bool = False) -> Sketch:
    """A sketch of rows with reported counts, clusters or not: certifying clusters reads `cluster_totals`."""
    if isinstance(data, Sketch) and data.by_clusters:
        checked_seed(seed)
        return data.checked()
    return sketch_of(alone(data) if isinstance(data, Predictions) else data, seed, by, intersections)


class Clustering(NamedTuple):
    """Whose rows are certified: clusters of every shift, those of some rows, and whether columns of clusters cross."""

    clusters: tuple[Clusters, ...]
    within: tuple[Callable[[NDArray[np.bool_]], Clusters], ...] = ()
    two_way: bool = False
    whose: str = ""  # which clusters these are, where a sketch does not hold all

    @classmethod
    def of(cls, data: Predictions | Sketch, seed: int) -> Clustering | None:
        """That of data; None where rows are independent and count alike."""
        if diagonals := two_way_of(data, seed):
            return cls(tuple(s.clusters for s in diagonals), tuple(s.within for s in diagonals), two_way=True)
        clusters = cluster_totals(data, seed)
        return None if clusters is None else cls((clusters,), (clusters.within,), whose=which_clusters(data))

    def population(self, q: Population, clusters: tuple[Clusters, ...]) -> Population:
        """A population of clusters."""
        if self.two_way:
            assumes, of = assumed_of_two_way(clusters), reported_of_two_way(clusters)
        else:
            assumes, of = assumed(clusters[0], self.whose), reported(clusters[0])
        counts = q.raw, q.fine, q.scores, q.by_score
        return OfClusters(*counts, diagonals=clusters, two_way=self.two_way, assumes=assumes, reported=of)

    def part(self, q: Population, rows: NDArray[np.bool_]) -> Population:
        """The population of some rows, of the shifts that have any."""
        parts = tuple(within(rows) for within in self.within)
        return self.population(q, tuple(u for u in parts if u.count) or parts[:1])


def everyone(data: Predictions | Sketch, seed: int = 0) -> Population:
    """The population of all rows; of a sketch with clusters, counts are of all rows, and clusters those held."""
    sketch, by = counted(data, checked_seed(seed)), Clustering.of(data, seed)
    if sketch.n == 0:
        raise NotComputable("there are no rows")
    q = Population(sketch.cells, sketch.levels, *_by_score(sketch, None))
    return q if by is None else by.population(q, by.clusters)


def groups_of(
    data: Predictions | Sketch, sketch: Sketch, groups: Sequence[Sequence[int]], seed: int
) -> list[Population]:
    """Return populations of one group each, or of several pooled, of the sketch that was made of the data."""
    results = [group(sketch, each[0]) if len(each) == 1 else pooled(sketch, each) for each in groups]
    by = Clustering.of(data, seed)
    if by is None:
        return results
    members = Members.of(data, sketch)
    return [by.part(q, members.rows(each)) for q, each in zip(results, groups, strict=True)]


def part_of(data: Predictions, scores: NDArray[np.int64], seed: int = 0) -> Population:
    """The population of some rows, whose score is certified as it is in the values given; in none, as shown."""
    sketch = sketch_of(data, seed)
    q = Population(sketch.cells, sketch.levels)
    if not len(scores):
        return q
    at = np.searchsorted(scores, fixed_scores(data.p))
    counts = np.bincount(2 * at + data.y, minlength=2 * len(scores)).reshape(-1, 2)
    return Population(q.raw, q.fine, scores, counts)


@dataclass(frozen=True)
class Dealing:
    """How a sketch deals rows in memory that have no key: the same whatever the rows, so made once for many."""

    block: NDArray[np.int64]  # shape (n,): of the first row, the second, and so on
    blocks: int

    @classmethod
    def of(cls, rows: int, seed: int) -> Dealing:
        """Deal so many rows."""
        spec = Spec(label="y_true", score="y_prob", seed=seed)
        return cls(hash_split(identities(rows, 0, HERE.salt(spec)), spec.blocks), spec.blocks)

    def cells(self, q: NDArray[np.int64], y: NDArray[np.int8], few: bool) -> Cells:
        """The thinned cells of some rows, of scores out of ``2^30``: as of a sketch of these rows alone."""
        starts = thin_starts()
        place, size = np.repeat(np.arange(len(starts)), np.diff(starts, append=FINE_GRID))[q >> 16], len(starts)
        at = 2 * (self.block[: len(q)] * size + place) + y
        counts, sums = (np.bincount(at, v, 2 * self.blocks * size).reshape(-1, size, 2) for v in (None, q))
        edges = np.append(starts, FINE_GRID) / FINE_GRID
        return Cells(counts, sums, edges[:-1], edges[1:], few)


def group(sketch: Sketch, index: int) -> Population:
    """The population of one group of a sketch."""
    return Population(sketch.group_cells[index], sketch.group_levels[index], *_by_score(sketch, [index]))


def pooled(sketch: Sketch, indices: Sequence[int]) -> Population:
    """Return several groups of a sketch as one population."""
    rows = list(indices)
    cells, levels = sketch.group_cells[rows].sum(axis=0), sketch.group_levels[rows].sum(axis=0)
    return Population(cells, levels, *_by_score(sketch, rows))


def _by_score(sketch: Sketch, groups: Sequence[int] | None) -> tuple[NDArray[np.int64], ...]:
    """The score's values and the rows of each where they are few, otherwise nothing."""
    kept = sketch.parts["values"]
    return (kept.scores, kept.counts(groups)) if few(sketch) else ()


def shares(alpha: float, side: Side) -> tuple[float, float]:
    """The error probabilities of the lower and the upper end; zero for a trivial end.

    A two-sided interval spends half of alpha on each end.
    """
    alpha = checked_alpha(alpha)
    ends = {"two-sided": (alpha / 2, alpha / 2), "lower": (alpha, 0.0), "upper": (0.0, alpha)}
    return ends[choice("side", side, get_args(Side))]


def checked_bandwidth(bandwidth: float, grid: int) -> float:
    """The bandwidth of the jitter: at least two cells of the grid wide, so that the grid resolves it."""
    return number("bandwidth", bandwidth, least=2.0 / grid, most=0.5, hint="such as 2**-6")
