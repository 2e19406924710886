"""From rows or a sketch to populations: what kind of data this is, asked once; and its named groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import Caller, checked_seed, shown
from calibrant.data.columns import require
from calibrant.data.inputs import ALL_AS_ONE, ClustersCross
from calibrant.data.predictions import MulticlassPredictions, Predictions, codes_of, remembered
from calibrant.data.profile import LevelCounts
from calibrant.data.read import make_spec, sketch_rows
from calibrant.data.reading import Reading
from calibrant.data.sketches.rows import cluster_ids, rows_of_clusters, which_clusters
from calibrant.data.sketches.sample import HERE, SharedColumns, identities
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import hash_split
from calibrant.kernels.runtime import columns_of
from calibrant.kernels.tally import CELL_BITS, LEVELS, SCORE_BITS, levels_of
from calibrant.sanitize import keyed as keyed
from calibrant.stats.cells import FINE_GRID, Cells, thin_starts
from calibrant.stats.clusters.clusters import Clusters, Design, DiagonalBlocks
from calibrant.stats.clusters.shared_values import Looked, shared_values
from calibrant.views.kinds import ByKind
from calibrant.views.population import UNPROVED, OfClusters, Population, are_few, fixed_scores

Group = tuple[tuple[str, str], ...]

# ---- Whose rows these are ----


def cluster_totals(inputs: Predictions | Sketch, seed: int) -> Clusters | None:
    """The clusters of rows, or those that a sketch holds; None where rows are independent and count alike.

    Whether a cluster is a pilot, and its block, hashes of the values of `cluster` decide (`cluster_ids`), whatever the
    order of rows and the same from rows and from a sketch; without `cluster` a row is a cluster, known by its number.

    Raises
    ------
    ClustersCross
        Columns of clusters cross: see `two_way_of`.
    """
    if isinstance(inputs, Sketch) and not inputs.by_clusters:
        return None
    data = rows_of_clusters(inputs)
    if data.crossing is not None:
        raise ClustersCross(ALL_AS_ONE.format(*data.crossing.names))
    if alone(data) is data:
        return None
    return remembered(data, ("clusters", seed), lambda: _hash_split(inputs, data, seed))


def two_way_of(inputs: Predictions | Sketch, seed: int) -> tuple[DiagonalBlocks, ...]:
    """The blocks of each shift where columns of clusters cross; nothing where they do not."""
    rows = inputs.two_way if isinstance(inputs, Sketch) else inputs
    crossing = None if rows is None else rows.crossing
    if rows is None or crossing is None:
        return ()

    def made() -> tuple[DiagonalBlocks, ...]:
        blocks = Design(crossing.codes.astype(np.int64), seed).diagonal_blocks(rows.p, rows.y, weights_of(rows))
        return tuple(replace(each, clusters=replace(each.clusters, columns=crossing.names)) for each in blocks)

    return remembered(rows, ("two_way", seed), made)


def one_cluster(inputs: Predictions | Sketch, caller: Caller | None = None) -> NotComputable:
    """Say that all rows are one cluster, by which column and which value as far as they are known, and the way out."""
    says = "cluster= (--cluster)" if caller is None else caller.says("cluster")
    if isinstance(inputs, Sketch):
        column, value = f"column {inputs.spec.cluster!r}", inputs.faults.cluster
    else:
        column = f"column {inputs.levels[0][0]!r}" if inputs.levels else says.split(" ")[0]
        known = None if inputs.cluster_ids is not None else inputs.cluster  # otherwise clusters are named by hash
        value = "" if known is None else shown(pa.array(known[:1])[0].as_py())
    kept = f"is {value} in every row" if value else "takes one value"
    return NotComputable(
        f"{column} {kept}: all rows are one cluster, and nothing independent separates its noise from an error; name "
        f"in {says} a column that distinguishes clusters, or leave it out if rows are independent"
    )


def _hash_split(inputs: Predictions | Sketch, data: Predictions, seed: int) -> Clusters | None:
    """Choose pilot clusters and deal the others; None where every row is a cluster and counts as much as any other."""
    ids, weight = cluster_ids(data, seed), weights_of(data)
    cluster: NDArray[np.int64] = np.arange(data.n)
    if data.cluster is not None:
        if not (data.cluster != data.cluster[0]).any():
            raise one_cluster(inputs)
        ids, cluster = np.unique(ids, return_inverse=True)
    if len(ids) == data.n and bool((weight == weight[0]).all()):
        return None
    result = Clusters.hash_split(cluster.reshape(-1), data.p, data.y, weight, ids)
    return replace(result, columns=tuple(name for name, _ in data.levels)) if data.levels else result


def weights_of(rows: Predictions | MulticlassPredictions) -> NDArray[np.float64]:
    """The weight of each row, 1 where there are none."""
    return np.ones(rows.n) if rows.weights is None else rows.weights


def alone(data: Predictions) -> Predictions:
    """The rows without clusters and weights: what is counted and shown, not what is certified."""
    if data.weights is None and data.cluster is None:
        return data
    return remembered(
        data,
        "rows alone",
        lambda: replace(data, weights=None, cluster=None, cluster_ids=None, crossing=None, cache={}),
    )


def assumed(clusters: Clusters, whose: str = "") -> str:
    """Say what certificates of clusters take for granted, and whose they are."""
    parts = ["independent rows"]
    if len(clusters.cluster) > clusters.count:
        parts = ["independent clusters", "rows of one cluster as dependent as they like"]
    if bool((clusters.input_weights != clusters.input_weights[:1]).any()):
        parts.append("weights that do not depend on outcomes")
    return "; ".join(filter(None, (", ".join(parts), whose)))


def reported(clusters: Clusters) -> dict[str, object]:
    """What the settings of a result tell of clusters."""
    return named(clusters.columns) | {
        "clusters": clusters.count,
        "effective_clusters": clusters.effective,
        "pilot_clusters": clusters.pilots,
        "largest_cluster": clusters.largest,
        "truncated_clusters": clusters.truncated_weights,
    }


def named(columns: Sequence[str]) -> dict[str, object]:
    """What settings tell of columns that named clusters, the coarsest first; nothing unless they are several."""
    return {"cluster": columns[0], "nested": tuple(columns[1:])} if columns else {}


@dataclass(frozen=True)
class Members:
    """Which group of each grouping every row is in."""

    group: NDArray[np.int64]  # shape (groupings, n): numbers of a sketch's groups

    @classmethod
    def of(cls, data: Predictions | Sketch, sketch: Sketch) -> Members:
        """The groups of the rows that a sketch was made of, or of those that it holds itself."""
        rows = data.two_way if isinstance(data, Sketch) else data
        if rows is not None:
            return cls.of_rows(rows.covariates, rows.n, sketch)
        bases, kept = np.cumsum([0, *sketch.spec.sizes]), sketch.parts["sample"]
        return cls(np.array([kept.levels(i) + bases[i] for i in range(len(sketch.spec.groupings))]))

    @classmethod
    def of_rows(cls, table: pa.Table, n: int, sketch: Sketch) -> Members:
        """The groups of n rows with these covariates."""
        spec = sketch.spec
        codes: dict[str, NDArray[Any]] = {v.name: v.codes(table.column(v.name)) for v in spec.variables}
        out, start = np.empty((len(spec.groupings), n), dtype=np.int64), 0
        for i, (names, size) in enumerate(zip(spec.groupings, spec.sizes, strict=True)):
            out[i] = codes[names[0]]
            for name in names[1:]:
                out[i] = out[i] * len(spec.by_name[name].labels) + codes[name]
            out[i], start = out[i] + start, start + size
        return cls(out)

    def rows(self, groups: Sequence[int]) -> NDArray[np.bool_]:
        """Which rows are in one of the groups."""
        return np.asarray(np.isin(self.group, list(groups)).any(axis=0))


# ---- What certificates read of them ----


def _stored(data: Sketch, seed: int, by: Sequence[str] = (), intersections: bool = False) -> Sketch:
    del by, intersections
    checked_seed(seed)
    return data.checked()


def _counted(data: Predictions, seed: int, by: Sequence[str] = (), intersections: bool = False) -> Sketch:
    by, seed = tuple(by), checked_seed(seed)
    return sketch_rows(alone(data), Reading(by=by, allow=by, intersections=intersections, seed=seed))


def _unweighed(data: Predictions, seed: int, by: Sequence[str] = (), intersections: bool = False) -> Sketch:
    if alone(data) is not data:
        raise NotComputable(UNPROVED)
    return _counted(data, seed, by, intersections)


# A sketch of rows with reported counts, or the sketch itself: of any rows, for certifying clusters reads
# `cluster_totals`; and of rows that are independent and count alike alone.
counted = ByKind(rows=_counted, sketches=_stored)
sketch_of = ByKind(rows=_unweighed, counts=_stored)


class Sample:
    """Whose rows are certified: independent ones, that count alike."""

    @classmethod
    def of(cls, data: Predictions | Sketch, seed: int) -> Sample:
        """That of data."""
        if diagonals := two_way_of(data, seed):
            return TwoWaySample(tuple(s.clusters for s in diagonals), tuple(s.within for s in diagonals))
        clusters = cluster_totals(data, seed)
        return cls() if clusters is None else ClusterSample((clusters,), (clusters.within,), which_clusters(data))

    def population(self, counts: Population) -> Population:
        """Everyone's, of counts of all rows."""
        return counts

    def of_class(self, counts: Population, _: NDArray[np.float64], __: NDArray[np.int8]) -> Population:
        """That of all rows, for other scores and outcomes."""
        return counts

    def groups(self, counts: list[Population], _: Callable[[], list[NDArray[np.bool_]]]) -> list[Population]:
        """Those of some rows each, of their counts; `rows` says which they are."""
        return counts


@dataclass(frozen=True)
class ClusterSample(Sample):
    """Clusters, or rows that do not count alike."""

    clusters: tuple[Clusters, ...]  # of every shift
    within: tuple[Callable[[NDArray[np.bool_]], Clusters], ...]  # those of some rows
    whose: str = ""  # which clusters these are, where a sketch does not hold all

    def population(self, counts: Population) -> Population:
        return self._certified(counts, self.clusters)

    def of_class(self, counts: Population, p: NDArray[np.float64], y: NDArray[np.int8]) -> Population:
        return self._certified(counts, tuple(replace(u, p=p, y=y) for u in self.clusters))

    def groups(self, counts: list[Population], rows: Callable[[], list[NDArray[np.bool_]]]) -> list[Population]:
        return [self._part(q, each) for q, each in zip(counts, rows(), strict=True)]

    def _part(self, q: Population, rows: NDArray[np.bool_]) -> Population:
        """The population of some rows, of the shifts that have any."""
        parts = tuple(within(rows) for within in self.within)
        return self._certified(q, tuple(u for u in parts if u.count) or parts[:1])

    def _certified(self, q: Population, clusters: tuple[Clusters, ...]) -> Population:
        assumes, of = assumed(clusters[0], self.whose), reported(clusters[0])
        return OfClusters(q.raw, q.fine, q.scores, q.by_score, diagonals=clusters, assumes=assumes, reported=of)


class TwoWaySample(ClusterSample):
    """Clusters of two columns that cross: blocks of every shift."""

    def _certified(self, q: Population, clusters: tuple[Clusters, ...]) -> Population:
        first, second = clusters[0].columns
        assumes = (
            f"independent clusters of {first} and of {second}: rows that share neither are independent; which rows "
            "there are, and what they weigh, does not depend on scores and outcomes"
        )
        of = {  # blocks are of the mean shift
            "two_way": clusters[0].columns,
            "diagonals": len(clusters),
            "blocks": round(sum(u.count for u in clusters) / len(clusters)),
            "effective_blocks": sum(u.effective for u in clusters) / len(clusters),
            "largest_block": max(u.largest for u in clusters),
        }
        counts = q.raw, q.fine, q.scores, q.by_score
        return OfClusters(*counts, diagonals=clusters, two_way=True, assumes=assumes, reported=of)


def everyone(data: Predictions | Sketch, seed: int = 0, made: Sketch | None = None) -> Population:
    """The population of all rows; of a sketch with clusters, counts are of all rows, and clusters those held.

    `made`: the sketch that was made of the data, where there is one, so that rows are not counted twice.
    """
    sketch, sample = counted(data, checked_seed(seed)) if made is None else made, Sample.of(data, seed)
    if sketch.n == 0:
        raise NotComputable("there are no rows")
    return sample.population(Population(sketch.cells, sketch.levels, *_by_score(sketch, None)))


def groups_of(
    data: Predictions | Sketch, sketch: Sketch, groups: Sequence[Sequence[int]], seed: int
) -> list[Population]:
    """Populations of one group each, or of several pooled, of the sketch that was made of the data."""

    def rows() -> list[NDArray[np.bool_]]:
        members = Members.of(data, sketch)
        return [members.rows(each) for each in groups]

    return Sample.of(data, seed).groups([group(sketch, *each) for each in groups], rows)


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
    dealing, sample = Dealing.of(data.n, checked_seed(seed)), Sample.of(top, seed)
    for p, y in _events(data):
        yield sample.of_class(dealing.counts(fixed_scores(p), y), p, y)


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


def people_in(data: Predictions, code: NDArray[np.integer], of: int) -> NDArray[np.int64]:
    """How many people there are at each of so many codes: rows, or clusters where rows share clusters.

    Where clusters cross, those of the column of which it has fewer.
    """
    crossing = data.crossing
    if crossing is not None:
        one, other = (clusters_in(code, each, of) for each in crossing.codes)
        return np.minimum(one, other)
    if data.cluster is None:
        rows: NDArray[np.int64] = np.bincount(code, minlength=of)
        return rows
    return clusters_in(code, codes_of(data), of)


def sides_in(data: Predictions, inside: NDArray[np.bool_]) -> tuple[int, int]:
    """How many people there are among some rows, and among the others: see `people_in`."""
    outside, own = people_in(data, inside.astype(np.intp), 2).tolist()
    return own, outside


def rows_of_people(data: Predictions | None, people: int) -> int:
    """How many rows are certain to belong to so many people, whichever rows they are: see `people_in`."""
    if data is None or (data.cluster is None and data.crossing is None):
        return people
    codes = (data.cluster,) if data.crossing is None else data.crossing.codes
    sizes = [np.sort(np.unique(code, return_counts=True)[1])[::-1] for code in codes if code is not None]
    return max(int(size[: people - 1].sum()) + 1 for size in sizes)


def clusters_in(code: NDArray[np.integer], cluster: NDArray[np.intp], of: int) -> NDArray[np.int64]:
    """How many clusters, which have numbers, have rows at each of so many codes."""
    count = int(cluster.max(initial=0)) + 1
    pairs = np.unique(code.astype(np.int64) * count + cluster)
    result: NDArray[np.int64] = np.bincount(pairs // count, minlength=of)
    return result


def sought(shared: SharedColumns, by: Sequence[str], seed: int) -> Looked:
    """What is detected of columns whose values rows share; columns of `by` are no clusters by themselves."""
    apart = (*((name,) for name in by), *shared.apart)
    return shared_values(shared.columns, shared.y, shared.p, seed, shared.share, apart=apart)
