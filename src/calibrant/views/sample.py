"""From rows or a sketch to populations, and its named groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_seed
from calibrant.data.columns import require
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.profile import LevelCounts
from calibrant.data.read import make_spec, sketch_rows
from calibrant.data.reading import Reading
from calibrant.data.sketches.sample import HERE, SharedColumns, identities
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import hash_split
from calibrant.kernels.runtime import columns_of
from calibrant.kernels.tally import CELL_BITS, LEVELS, SCORE_BITS, levels_of
from calibrant.sanitize import keyed as keyed
from calibrant.stats.cells import FINE_GRID, Cells, thin_starts
from calibrant.stats.clusters.shared_values import Looked, shared_values
from calibrant.views.kinds import ByKind
from calibrant.views.people import people_of
from calibrant.views.population import UNPROVED, Population, are_few, fixed_scores

Group = tuple[tuple[str, str], ...]

# ---- What certificates read of them ----


def _stored(data: Sketch, seed: int, by: Sequence[str] = (), intersections: bool = False) -> Sketch:
    del by, intersections
    checked_seed(seed)
    return data.checked()


def _counted(data: Predictions, seed: int, by: Sequence[str] = (), intersections: bool = False) -> Sketch:
    by, seed = tuple(by), checked_seed(seed)
    return sketch_rows(people_of(data).alone, Reading(by=by, allow=by, intersections=intersections, seed=seed))


def _unweighed(data: Predictions, seed: int, by: Sequence[str] = (), intersections: bool = False) -> Sketch:
    if people_of(data).alone is not data:
        raise NotComputable(UNPROVED)
    return _counted(data, seed, by, intersections)


# A sketch of rows with reported counts, or the sketch itself: of any rows, for certifying clusters reads
# `people_of`; and of rows that are independent and count alike alone.
counted = ByKind(rows=_counted, sketches=_stored)
sketch_of = ByKind(rows=_unweighed, counts=_stored)


def everyone(data: Predictions | Sketch, seed: int = 0, made: Sketch | None = None) -> Population:
    """The population of all rows; of a sketch with clusters, counts are of all rows, and clusters those held.

    `made`: the sketch that was made of the data, where there is one, so that rows are not counted twice.
    """
    sketch = counted(data, checked_seed(seed)) if made is None else made
    if sketch.n == 0:
        raise NotComputable("there are no rows")
    return people_of(data).population(Population(sketch.cells, sketch.levels, *_by_score(sketch, None)), seed)


def groups_of(
    data: Predictions | Sketch, sketch: Sketch, groups: Sequence[Sequence[int]], seed: int
) -> list[Population]:
    """Populations of one group each, or of several pooled, of the sketch that was made of the data."""

    def rows() -> list[NDArray[np.bool_]]:
        members = people.holder.members(sketch)
        return [members.rows(each) for each in groups]

    people = people_of(data)
    return people.groups([group(sketch, *each) for each in groups], rows, seed)


def part_of(data: Predictions, scores: NDArray[np.int64], seed: int = 0) -> Population:
    """The population of some rows, whose score is certified as it is in the values given; in none, as shown."""
    sketch = sketch_of(data, seed)
    q = Population(sketch.cells, sketch.levels)
    if not len(scores):
        return q
    at = np.searchsorted(scores, fixed_scores(data.p))
    counts = np.bincount(2 * at + data.y, minlength=2 * len(scores)).reshape(-1, 2)
    return Population(q.raw, q.fine, scores, counts)


def group(sketch: Sketch, *indices: int) -> Population:
    """The counts of one group of a sketch, or of several pooled."""
    rows = list(indices)
    cells, levels = sketch.group_cells[rows].sum(axis=0), sketch.group_levels[rows].sum(axis=0)
    return Population(cells, levels, *_by_score(sketch, rows))


def few(sketch: Sketch) -> bool:
    """Whether the score takes so few values that it is certified as it is: decided once, for every group alike.

    Only scores decide, of all rows and never of a group, and no label.
    """
    kept = sketch.parts["values"]
    return not kept.many and are_few(len(kept.scores), sketch.n)


def _by_score(sketch: Sketch, groups: Sequence[int] | None) -> tuple[NDArray[np.int64], ...]:
    """The score's values and the rows of each where they are few, otherwise nothing."""
    kept = sketch.parts["values"]
    return (kept.scores, kept.counts(groups)) if few(sketch) else ()


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

    def counts(self, q: NDArray[np.int64], y: NDArray[np.int8]) -> Population:
        """The counts of all rows, of scores out of ``2^30``: as of a sketch of them."""
        rest, cells = q & ((1 << SCORE_BITS - CELL_BITS) - 1), 1 << CELL_BITS
        at = 2 * ((self.block << CELL_BITS) + (q >> SCORE_BITS - CELL_BITS)) + y
        rows, sums = (np.bincount(at, v, 2 * self.blocks * cells).reshape(-1, cells, 2) for v in (None, rest))
        raw = np.concatenate([rows, sums], axis=2).astype(np.int64)
        at = 2 * (self.block * LEVELS + levels_of(q)) + y
        fine = np.bincount(at, minlength=2 * self.blocks * LEVELS).reshape(-1, LEVELS, 2)
        if not are_few(len(np.unique(q[:SEEN])), len(q)):
            return Population(raw, fine)
        scores, value = np.unique(q, return_inverse=True)
        if not are_few(len(scores), len(q)):
            return Population(raw, fine)
        by_score = np.bincount(2 * value.reshape(-1) + y, minlength=2 * len(scores)).reshape(-1, 2)
        return Population(raw, fine, scores, by_score)

    def cells(self, q: NDArray[np.int64], y: NDArray[np.int8], few: bool) -> Cells:
        """The thinned cells of some rows, of scores out of ``2^30``: as of a sketch of these rows alone."""
        starts = thin_starts()
        place, size = np.repeat(np.arange(len(starts)), np.diff(starts, append=FINE_GRID))[q >> 16], len(starts)
        at = 2 * (self.block[: len(q)] * size + place) + y
        counts, sums = (np.bincount(at, v, 2 * self.blocks * size).reshape(-1, size, 2) for v in (None, q))
        edges = np.append(starts, FINE_GRID) / FINE_GRID
        return Cells(counts, sums, edges[:-1], edges[1:], few)


# ---- Classes: each against the others, of the same rows ----

SEEN = 1 << 12  # rows whose scores may already show that a class's probability takes many values


def each_class(data: MulticlassPredictions, top: Predictions, seed: int) -> Iterator[Population]:
    """Yield the population of each class against the others, as `everyone` makes it of ``one_vs_rest(k)``.

    Of ordered classes then those of ``at_most(k)`` that no class alone decides, as the lowest and the highest do those
    of the first and the last but one, and the last is sure: no fault counts twice. Rows are dealt once for all, and
    no sketch is made of any: `top` is their projection on the top label.
    """
    dealing, people = Dealing.of(data.n, checked_seed(seed)), people_of(top)
    for p, y in _events(data):
        yield people.of_class(dealing.counts(fixed_scores(p), y), p, y, seed)


def _events(data: MulticlassPredictions) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int8]]]:
    """Yield scores and outcomes of each class, and of each cut of ordered ones."""
    k = data.p.shape[1]
    for i, p in enumerate(columns_of(data.p)):
        yield p, (data.y == i).astype(np.int8)
    below = np.zeros(data.n)
    for i in range(k - 2 if data.ordered else 0):
        below = below + data.p[:, i]
        if i > 0:
            yield np.minimum(below, 1.0), (data.y <= i).astype(np.int8)


# ---- Named groups: which there are, and which rows are in them ----


def rows_of_groups(
    data: Predictions, by: tuple[str, ...], intersections: bool = False
) -> Iterator[tuple[Group, NDArray[np.intp]]]:
    """Yield each group that has rows, in the order of the levels, and its rows."""
    table = data.covariates
    require(by, () if table is None else tuple(table.schema.names), "group")
    variables = []
    for name in by:
        profile = LevelCounts(name)
        profile.update(table.column(name))
        variables.append(profile.variable())
    spec = make_spec("y_true", "y_prob", tuple(variables), intersections)
    codes = {v.name: v.codes(table.column(v.name)) for v in variables}
    for index, grouping in enumerate(spec.groupings):
        code = np.zeros(data.n, dtype=np.int64)
        for name in grouping:
            code = code * len(spec.by_name[name].labels) + codes[name]
        order = np.argsort(code, kind="stable")
        ends = np.searchsorted(code[order], np.arange(spec.sizes[index] + 1))
        for g, group_name in enumerate(spec.group_names(index)):
            if ends[g + 1] > ends[g]:
                yield group_name, order[ends[g] : ends[g + 1]]


def _grouped_rows(data: Predictions, by: tuple[str, ...], intersections: bool, seed: int) -> Sketch:
    if not by:
        raise BadInput("name the group columns: by=['sex', 'age']")
    return _counted(data, seed, by, intersections)


def _own_groups(data: Sketch, by: tuple[str, ...], intersections: bool, seed: int) -> Sketch:
    if intersections:
        raise BadInput("this sketch brings its own groups: leave intersections out, or sketch again with it")
    brings = [v.name for v in data.spec.variables]
    if by and set(by) != set(brings):
        has = f"the groups of {brings}" if brings else "no groups"
        raise BadInput(f"this sketch has {has}: leave by= out, or sketch again")
    return _stored(data, seed)


# A sketch that has groups.
grouped_sketch = ByKind(rows=_grouped_rows, sketches=_own_groups)


def named_groups(sketch: Sketch) -> list[tuple[Group, int]]:
    """Name and index of every group of a sketch that has rows."""
    names = [n for g in range(len(sketch.spec.groupings)) for n in sketch.spec.group_names(g)]
    rows = sketch.group_levels.sum(axis=(1, 2, 3)) if len(names) else np.zeros(0)
    return [(name, i) for i, name in enumerate(names) if rows[i] > 0]


def sought(shared: SharedColumns, by: Sequence[str], seed: int) -> Looked:
    """What is detected of columns whose values rows share; columns of `by` are no clusters by themselves."""
    apart = (*((name,) for name in by), *shared.apart)
    return shared_values(shared.columns, shared.y, shared.p, seed, shared.share, apart=apart)
