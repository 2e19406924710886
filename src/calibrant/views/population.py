"""From a sketch to the cells and levels that one certificate reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_alpha, checked_seed, choice, number
from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.read import sketch_rows
from calibrant.data.reading import Reading
from calibrant.data.sketches.clusters import which_clusters
from calibrant.data.sketches.sample import HERE, identities
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.spec import Spec
from calibrant.errors import NotComputable
from calibrant.kernels.draws import hash_split
from calibrant.kernels.values import MOST
from calibrant.results import Side
from calibrant.stats.bounds import debiased_error, gap_evidence, lower_evidence, shown_evidence
from calibrant.stats.cells import FINE_GRID, SCALE, Cells, thin_starts
from calibrant.stats.clusters.above import Above
from calibrant.stats.clusters.below import below_of, gap_of
from calibrant.stats.clusters.clusters import Clusters, Tallies
from calibrant.stats.clusters.two_way import DiagonalBlocks, debiased
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
SIGNED = 1024  # cells of the score in which clusters' residuals are added up; signs are learnt of runs of them


@dataclass(frozen=True)
class Shown:
    """The score that a certificate from above is about, in finitely many values."""

    cells: Cells  # one for each value
    about: str  # which score that is, in words
    # `{"values": m}` for the score itself, which takes m values, or `{"steps": K}` for a display in K steps.
    display: dict[str, int]
    tallies: Tallies | None = None  # the clusters' sums by value, where rows are not independent or do not count alike
    two_way: tuple[Tallies, ...] = ()  # those of every shift, where columns of clusters cross

    @property
    def above(self) -> Evidence:
        """Evidence that this score's error is smaller: Theorem U, or CU of clusters; made once."""
        if self.tallies is None:
            return shown_evidence(self.cells)
        if ("clusters",) not in self.cells.cache:
            self.cells.cache["clusters",] = mean([Above.of(t) for t in self.two_way or (self.tallies,)])
        return cast(Evidence, self.cells.cache["clusters",])

    def below(self, delta: float, seed: int) -> Evidence:
        """Return evidence that this score's error is larger, with the stakes that are the best at `delta`."""
        if self.tallies is None:
            return lower_evidence(self.cells, delta, seed)
        return mean([below_of(t, delta, seed, few=False) for t in self.two_way or (self.tallies,)])

    @property
    def debiased(self) -> float:
        """The error as estimated, less what noise adds."""
        if self.two_way:
            return debiased(self.two_way)
        if self.tallies is not None:
            return self.tallies.debiased
        return debiased_error(self.cells.low, self.cells.totals.sum(axis=1), self.cells.totals[:, 1])


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
    # Whose rows are certified, where these are not independent or do not count alike.
    clusters: Clusters | None = field(default=None, compare=False, kw_only=True)
    # Which clusters these are, where a sketch does not hold all; empty where they are all.
    whose: str = field(default="", kw_only=True)
    # The blocks of every shift, where columns of clusters cross; `clusters` are then those of the first.
    two_way: tuple[Clusters, ...] = field(default=(), compare=False, kw_only=True)

    @property
    def cells(self) -> Cells:
        """Cells of the raw score, of rows that are independent and count alike: what is proved for these alone."""
        if self.clusters is not None:
            raise NotComputable(UNPROVED)
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

    @property
    def assumes(self) -> str:
        """What certificates of these rows take for granted."""
        if self.clusters is None:
            return INDEPENDENT
        if self.two_way:
            return assumed_of_two_way(self.two_way)
        return f"{assumed(self.clusters)}; {self.whose}" if self.whose else assumed(self.clusters)

    @property
    def reported(self) -> dict[str, object]:
        """What a result reports about clusters, for its settings; nothing of independent rows."""
        if self.two_way:
            return reported_of_two_way(self.two_way)
        return {} if self.clusters is None else reported(self.clusters)

    def below(self, delta: float, seed: int) -> Evidence:
        """Return evidence that the raw score's error is larger: Theorem L, or CL of clusters.

        With the stakes that are the best at `delta`; about scores as they are read, up to `QUANTISATION` less.
        """
        if self.clusters is None:
            return lower_evidence(self.cells, delta, seed)
        return mean([below_of(self._signed(u), delta, seed, few=self.exact) for u in self.diagonals])

    def _signed(self, u: Clusters) -> Tallies:
        """The clusters' residuals by cell of the raw score, of which signs are learnt."""
        if self.exact:
            return u.tallies(np.searchsorted(self.scores, fixed_scores(u.p)), len(self.scores), u.p)
        return u.tallies(np.minimum((u.p * SIGNED).astype(np.int64), SIGNED - 1), SIGNED, u.p)

    def gap(self, delta: float) -> Gap:
        """Return evidence about the mean residual, with the stakes that are the best at `delta`."""
        if self.clusters is None:
            return gap_evidence(self.cells, delta)
        return Gap.mean([gap_of(u, delta) for u in self.diagonals])

    @property
    def off(self) -> float:
        """The mean residual as estimated."""
        if self.two_way:
            total = [u.total for u in self.two_way]
            return float(np.average([u.mean for u in self.two_way], weights=total)) if sum(total) else 0.0
        return (self.events - self.expected) / self.n if self.clusters is None else self.clusters.mean

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
        if 0 in self.shown:
            return self.shown[0]
        if not self.exact:
            raise NotComputable(
                f"the score takes too many values (more than {MOST:,}, or more than one for each {ROWS_A_VALUE} rows): "
                "certify the rounded score, with rounded"
            )
        values = np.where(self.scores == round(SCALE) - 1, 1.0, self.scores / SCALE)
        about = "the raw score, which takes one value" if len(values) == 1 else OF_VALUES.format(len(values))
        tallies = []
        for u in self.diagonals:
            cell = np.searchsorted(self.scores, fixed_scores(u.p))
            tallies.append(u.tallies(cell, len(values), values[cell]))
        self.shown[0] = self._shown(Cells.levels(self.by_score[None], values), about, {"values": len(values)}, tallies)
        return self.shown[0]

    @property
    def diagonals(self) -> tuple[Clusters, ...]:
        """The clusters of every shift, or those that there are; none of independent rows."""
        return self.two_way or (() if self.clusters is None else (self.clusters,))

    def _shown(self, cells: Cells, about: str, display: dict[str, int], tallies: Sequence[Tallies]) -> Shown:
        """A score shown, with the clusters' sums of every shift."""
        first = tallies[0] if tallies else None
        return Shown(cells, about, display, first, tuple(tallies) if self.two_way else ())

    def as_shown(self, steps: int) -> Shown:
        """The raw score shown in so many steps; made once."""
        if steps not in self.shown:
            about = WHOLE if steps == 100 else IN_STEPS.format(steps)
            tallies = []
            for u in self.diagonals:
                level = (2 * steps * fixed_scores(u.p) + round(SCALE)) >> 31  # halves up, exactly
                tallies.append(u.tallies(level, steps + 1, level / steps))
            self.shown[steps] = self._shown(self.levels(steps), about, {"steps": steps}, tallies)
        return self.shown[steps]

    def judged(self, steps: int) -> Shown:
        """The score that "within" is about: as it is where it takes few values, else as shown in `steps`."""
        return self.as_it_is() if self.exact else self.as_shown(steps)


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


def everyone(data: Predictions | Sketch, seed: int = 0) -> Population:
    """The population of all rows; of a sketch with clusters, counts are of all rows, and clusters those held."""
    sketch = counted(data, checked_seed(seed))
    two_way = tuple(s.clusters for s in two_way_of(data, seed))
    clusters = two_way[0] if two_way else cluster_totals(data, seed)
    if sketch.n == 0:
        raise NotComputable("there are no rows")
    of = _by_score(sketch, None)
    return Population(sketch.cells, sketch.levels, *of, clusters=clusters, whose=which_clusters(data), two_way=two_way)


def groups_of(
    data: Predictions | Sketch, sketch: Sketch, groups: Sequence[Sequence[int]], seed: int
) -> list[Population]:
    """Return populations of one group each, or of several pooled, of the sketch that was made of the data."""
    results = [group(sketch, each[0]) if len(each) == 1 else pooled(sketch, each) for each in groups]
    if diagonals := two_way_of(data, seed):
        return _two_way_groups(Members.of(data, sketch), diagonals, results, groups)
    clusters = cluster_totals(data, seed)
    if clusters is None:
        return results
    members, whose = Members.of(data, sketch), which_clusters(data)
    return [
        replace(q, clusters=clusters.within(members.rows(each)), whose=whose)
        for q, each in zip(results, groups, strict=True)
    ]


def _two_way_groups(
    members: Members,
    diagonals: Sequence[DiagonalBlocks],
    results: Sequence[Population],
    groups: Sequence[Sequence[int]],
) -> list[Population]:
    """Return groups with the blocks of their rows, of the shifts that have any."""
    out = []
    for q, each in zip(results, groups, strict=True):
        rows = members.rows(each)
        parts = [s.within(rows).clusters for s in diagonals]
        is_kept = tuple(u for u in parts if u.count) or (parts[0],)
        out.append(
            replace(
                q,
                clusters=is_kept[0],
                two_way=tuple(replace(u, columns=diagonals[0].clusters.columns) for u in is_kept),
            )
        )
    return out


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
