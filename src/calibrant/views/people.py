"""Who the people of rows are, asked once: rows, clusters, or clusters of two columns that cross; and what is certified.

A kind of data is a class of `People` here, made by `people_of` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from types import MappingProxyType
from typing import ClassVar, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import Caller, shown
from calibrant.data.columns import Ids, row_ids
from calibrant.data.inputs import Crossing
from calibrant.data.predictions import MulticlassPredictions, Predictions, codes_of, remembered
from calibrant.data.sketches.sample import hashes_of, identities
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.spec import Spec
from calibrant.errors import NotComputable
from calibrant.results import Estimate
from calibrant.stats.clusters.clusters import Clusters, Design
from calibrant.views.population import OfClusters, OfTwoWay, Population

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Diagonals: TypeAlias = tuple[tuple[Clusters, Callable[[Flags], Clusters]], ...]

OF_EITHER = "clusters of {} or of {}"
ONE_COLUMN = (
    "clusters {0} and {1} cross, and this has no proof for rows that depend through both: audit by one, --cluster {0}, "
    "which answers it for these clusters of {1}, or --cluster {1}"
)

# ---- Who the people are: rows, clusters, or clusters of two columns that cross ----


class People:
    """Rows that are independent and count alike: each is one of the people, and certificates read counts."""

    are_rows = True
    called = ""  # what a group must have enough of to be shown; empty for what rows are called
    columns: Mapping[str, int] = MappingProxyType({})  # the two whose clusters cross, each with their number
    one_column = ""  # why a question is left open where clusters cross, and the way out

    def __init__(self, holder: Holder) -> None:
        self.holder = holder

    @property
    def rows(self) -> Predictions:
        """All rows, or those of the clusters that a sketch holds, which are named by hash.

        Which clusters a sketch holds, their hashes alone decide, so that outcomes play no part.
        """
        return self.holder.rows

    @property
    def alone(self) -> Predictions:
        """The rows without clusters and weights: what is counted and shown, not what is certified."""
        return self.rows

    def clusters(self, _seed: int) -> Clusters | None:
        """The clusters that are certified; None where rows are independent and count alike.

        Whether a cluster is a pilot, and its block, hashes of the values of `cluster` decide (`ids`), whatever the
        order of rows and the same from rows and from a sketch; without `cluster` a row is one, known by its number.

        Raises
        ------
        ClustersCross
            Columns of clusters cross: their blocks are of many shifts.
        """
        return None

    def _diagonals(self, _seed: int) -> Diagonals:
        """The clusters that certify, of every shift, and what takes those of some rows; none where counts do."""
        return ()

    def population(self, counts: Population, seed: int) -> Population:
        """Everyone's, of counts of all rows."""
        return self._certified(counts, tuple(u for u, _ in self._diagonals(seed)))

    def of_class(self, counts: Population, p: Floats, y: NDArray[np.int8], seed: int) -> Population:
        """That of all rows, for other scores and outcomes."""
        return self._certified(counts, tuple(replace(u, p=p, y=y) for u, _ in self._diagonals(seed)))

    def groups(self, counts: list[Population], rows: Callable[[], list[Flags]], seed: int) -> list[Population]:
        """Those of some rows each, of their counts; `rows` says which they are."""
        if not (diagonals := self._diagonals(seed)):
            return counts
        parts = [tuple(within(some) for _, within in diagonals) for some in rows()]
        there = [tuple(u for u in part if u.count) or part[:1] for part in parts]  # of the shifts that have any
        return [self._certified(q, clusters) for q, clusters in zip(counts, there, strict=True)]

    def _certified(self, counts: Population, clusters: tuple[Clusters, ...]) -> Population:
        return certified(counts, clusters, self.holder.whose) if clusters else counts

    @property
    def codes(self) -> NDArray[np.intp]:
        """The number of the one whose each row is."""
        return np.arange(self.rows.n)

    def ids(self, seed: int) -> Ids:
        """One random number a row, that of its unit: a hash of the cluster's name and the seed, and of nothing else.

        The number by which a sketch of the same column and seed knows the cluster, whichever other clusters there are
        and however rows are stored, split or ordered. Without clusters a row is known by its number.
        """
        rows, salt = self.rows, Spec(label="y", score="p", seed=seed).salt("")
        known = rows.cluster_ids
        return hashes_of(identities(rows.n, 0, salt, self._named(seed))) if known is None else known

    def _named(self, _seed: int) -> Ids | None:
        """The hashes of the names of their units; None of rows, which have numbers."""
        return None

    def needs_two(self, _caller: Caller | None = None) -> None:
        """Refuse rows that are all of one cluster."""

    def among(self, code: NDArray[np.integer], of: int) -> NDArray[np.int64]:
        """How many there are at each of so many codes of rows."""
        counts: NDArray[np.int64] = np.bincount(code, minlength=of)
        return counts

    def sides(self, inside: Flags) -> tuple[int, int]:
        """How many there are among some rows, and among the others."""
        outside, own = self.among(inside.astype(np.intp), 2).tolist()
        return own, outside

    def in_groups(self, sketch: Sketch) -> NDArray[np.int64]:
        """How many each group of the sketch has."""
        rows: NDArray[np.int64] = sketch.group_levels.sum(axis=(1, 2, 3))
        return rows

    def needed(self, log: Callable[[int], float], everyone: Population) -> tuple[int | None, int | None]:
        """The rows and the clusters that a finding needs, by how many a log of so many calls for."""
        return int(log(everyone.n)), None

    def times(self, sketch: Sketch, tested: Estimate) -> float:
        """How many times as many a sketch is of as were tested."""
        return sketch.n / tested.n

    def most_rows(self, people: int) -> int:
        """How many rows are certain to belong to so many of them, whichever rows they are."""
        return people


class WeighedPeople(People):
    """Rows that are independent, and count more or less."""

    @property
    def alone(self) -> Predictions:
        rows = self.rows
        return remembered(
            rows,
            "rows alone",
            lambda: replace(rows, weights=None, cluster=None, cluster_ids=None, crossing=None, cache={}),
        )

    def clusters(self, seed: int) -> Clusters | None:
        return remembered(self.rows, ("clusters", seed), lambda: self._hash_split(seed))

    def _diagonals(self, seed: int) -> Diagonals:
        clusters = self.clusters(seed)
        return () if clusters is None else ((clusters, clusters.within),)

    def _hash_split(self, seed: int) -> Clusters | None:
        """Choose pilot clusters and deal the others; None where every row is one and counts as much as any other."""
        rows, weight = self.rows, weights_of(self.rows)
        ids, cluster = self._numbered(self.ids(seed))
        if len(ids) == rows.n and bool((weight == weight[0]).all()):
            return None
        result = Clusters.hash_split(cluster, rows.p, rows.y, weight, ids)
        return replace(result, columns=tuple(name for name, _ in rows.levels))

    def _numbered(self, ids: Ids) -> tuple[Ids, NDArray[np.int64]]:
        """The numbers of units, and which of them each row belongs to."""
        return ids, np.arange(len(ids))


class ClusteredPeople(WeighedPeople):
    """Clusters of rows, which may depend on one another: one person may have many rows."""

    are_rows = False
    called = "clusters"

    def _numbered(self, ids: Ids) -> tuple[Ids, NDArray[np.int64]]:
        self.needs_two()
        ids, cluster = np.unique(ids, return_inverse=True)
        return ids, cluster.reshape(-1)

    @property
    def codes(self) -> NDArray[np.intp]:
        return codes_of(self.rows)

    def _named(self, seed: int) -> Ids:
        return row_ids([pa.array(self.rows.cluster)], seed, ("cluster",), "cluster")

    def needs_two(self, caller: Caller | None = None) -> None:
        """Refuse one cluster, by which column and which value as far as they are known, and say the way out."""
        cluster = np.asarray(self.rows.cluster)
        if (cluster != cluster[0]).any():
            return
        says = "cluster= (--cluster)" if caller is None else caller.says("cluster")
        column, value = self.holder.only(says)
        kept = f"is {value} in every row" if value else "takes one value"
        raise NotComputable(
            f"{column} {kept}: all rows are one cluster, and nothing independent separates its noise from an error; "
            f"name in {says} a column that distinguishes clusters, or leave it out if rows are independent"
        )

    def among(self, code: NDArray[np.integer], of: int) -> NDArray[np.int64]:
        return clusters_in(code, self.codes, of)

    def in_groups(self, sketch: Sketch) -> NDArray[np.int64]:
        rows = super().in_groups(sketch)
        return self.among(self.holder.members(sketch).group, len(rows)) if len(rows) else rows

    def needed(self, log: Callable[[int], float], everyone: Population) -> tuple[int | None, int | None]:
        if not everyone.diagonals:  # each is one row, and they count alike: certified as rows are
            return super().needed(log, everyone)
        return None, int(log(everyone.diagonals[0].count))

    def times(self, sketch: Sketch, tested: Estimate) -> float:
        if "clusters" not in tested.settings:
            return super().times(sketch, tested)
        return float(sketch.parts["sample"].of_clusters) / float(tested.settings["clusters"])

    def most_rows(self, people: int) -> int:
        sizes = np.sort(np.bincount(self.codes))[::-1]
        return int(sizes[: people - 1].sum()) + 1


class CrossingPeople(ClusteredPeople):
    """Clusters of two columns that cross: as many as there are of the column of which there are fewer."""

    def __init__(self, holder: Holder, crossing: Crossing) -> None:
        super().__init__(holder)
        self.crossing, self.columns = crossing, dict(zip(crossing.names, crossing.clusters, strict=True))
        self.called, self.one_column = (text.format(*crossing.names) for text in (OF_EITHER, ONE_COLUMN))

    def clusters(self, _seed: int) -> Clusters | None:
        self.crossing.refuse()

    def needs_two(self, _caller: Caller | None = None) -> None:
        self.crossing.refuse()

    def _diagonals(self, seed: int) -> Diagonals:
        rows, crossing = self.rows, self.crossing

        def made() -> Diagonals:
            design = Design(crossing.codes.astype(np.int64), seed)
            blocks = design.diagonal_blocks(rows.p, rows.y, weights_of(rows))
            each = [replace(one, clusters=replace(one.clusters, columns=crossing.names)) for one in blocks]
            return tuple((one.clusters, one.within) for one in each)

        return remembered(rows, ("two_way", seed), made)

    def _certified(self, counts: Population, clusters: tuple[Clusters, ...]) -> Population:
        first, second = self.crossing.names
        assumes = (
            f"independent clusters of {first} and of {second}: rows that share neither are independent; which rows "
            "there are, and what they weigh, does not depend on scores and outcomes"
        )
        of = {  # blocks are of the mean shift
            "two_way": self.crossing.names,
            "diagonals": len(clusters),
            "blocks": round(sum(u.count for u in clusters) / len(clusters)),
            "effective_blocks": sum(u.effective for u in clusters) / len(clusters),
            "largest_block": max(u.largest for u in clusters),
        }
        kept = counts.raw, counts.fine, counts.scores, counts.by_score
        return OfTwoWay(*kept, diagonals=clusters, assumes=assumes, reported=of)

    def among(self, code: NDArray[np.integer], of: int) -> NDArray[np.int64]:
        one, other = (clusters_in(code, each, of) for each in self.crossing.codes)
        return np.minimum(one, other)

    def needed(self, _log: Callable[[int], float], _everyone: Population) -> tuple[None, None]:
        return None, None  # of persons, of questions or of both: no plan says how many of which

    def most_rows(self, people: int) -> int:
        sizes = (np.sort(np.bincount(code))[::-1] for code in self.crossing.codes)
        return max(int(size[: people - 1].sum()) + 1 for size in sizes)


@singledispatch
def people_of(data: Predictions | Sketch) -> People:
    """Who the people of rows are, or of what a sketch holds: what kind of data this is, asked here alone."""
    rows = cast(Predictions, data)
    if rows.crossing is not None:
        return CrossingPeople(InMemory(rows), rows.crossing)
    return _of_one_column(InMemory(rows))


@people_of.register
def _of_sketch(data: Sketch) -> People:
    if not data.by_clusters:
        return People(InSketch(data))
    return _of_one_column(InSketch(data)) if data.two_way is None else people_of(data.two_way)


def _of_one_column(holder: Holder) -> People:
    if holder.rows.cluster is not None:
        return ClusteredPeople(holder)
    return People(holder) if holder.rows.weights is None else WeighedPeople(holder)


def clusters_in(code: NDArray[np.integer], cluster: NDArray[np.intp], of: int) -> NDArray[np.int64]:
    """How many clusters, which have numbers, have rows at each of so many codes."""
    count = int(cluster.max(initial=0)) + 1
    pairs = np.unique(code.astype(np.int64) * count + cluster)
    result: NDArray[np.int64] = np.bincount(pairs // count, minlength=of)
    return result


# ---- What holds the rows, and which groups of a sketch each of them is in ----


@dataclass(frozen=True)
class InMemory:
    """Rows in memory."""

    rows: Predictions
    whose: ClassVar[str] = ""  # which clusters these are, in words; empty where they are all

    def only(self, says: str) -> tuple[str, str]:
        """The column of clusters that has one, and its value as far as it is known."""
        column = f"column {self.rows.levels[0][0]!r}" if self.rows.levels else says.split(" ")[0]
        known = None if self.rows.cluster_ids is not None else self.rows.cluster  # otherwise named by hash
        return column, "" if known is None else shown(pa.array(known[:1])[0].as_py())

    def members(self, sketch: Sketch) -> Members:
        """The groups of the rows, of which the sketch was made."""
        return Members.of_rows(self.rows.covariates, self.rows.n, sketch)


@dataclass(frozen=True)
class InSketch:
    """Rows that a sketch holds: of clusters all of some, of others a sample."""

    sketch: Sketch

    @property
    def rows(self) -> Predictions:
        return self.sketch.rows()

    @property
    def whose(self) -> str:
        kept, column = self.sketch.parts["sample"], self.sketch.spec.cluster
        if not kept.cut:
            return ""
        noun = f"clusters ({column})" if column else "rows"
        return f"the rows of {kept.clusters:,} of about {kept.of_clusters:,} {noun}, chosen without looking at outcomes"

    def only(self, _says: str) -> tuple[str, str]:
        return f"column {self.sketch.spec.cluster!r}", self.sketch.faults.cluster

    def members(self, sketch: Sketch) -> Members:
        bases, kept = np.cumsum([0, *sketch.spec.sizes]), sketch.parts["sample"]
        return Members(np.array([kept.levels(i) + bases[i] for i in range(len(sketch.spec.groupings))]))


Holder = InMemory | InSketch


@dataclass(frozen=True)
class Members:
    """Which group of each grouping every row is in."""

    group: NDArray[np.int64]  # shape (groupings, n): numbers of a sketch's groups

    @classmethod
    def of_rows(cls, table: pa.Table, n: int, sketch: Sketch) -> Members:
        """The groups of n rows with these covariates."""
        spec = sketch.spec
        codes = {v.name: v.codes(table.column(v.name)) for v in spec.variables}
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


def weights_of(rows: Predictions | MulticlassPredictions) -> NDArray[np.float64]:
    """The weight of each row, 1 where there are none."""
    return np.ones(rows.n) if rows.weights is None else rows.weights


FIXED_WEIGHTS = "weights that do not depend on outcomes"
ANY_WITHIN = "independent clusters, rows of one cluster as dependent as they like"
ASSUMED = {  # where clusters have several rows or not, and weights differ or not
    (False, False): "independent rows",
    (False, True): f"independent rows, {FIXED_WEIGHTS}",
    (True, False): ANY_WITHIN,
    (True, True): f"{ANY_WITHIN}, {FIXED_WEIGHTS}",
}


def assumed(clusters: Clusters, whose: str = "") -> str:
    """Say what certificates of clusters take for granted, and whose they are."""
    unlike = bool((clusters.input_weights != clusters.input_weights[:1]).any())
    return "; ".join(filter(None, (ASSUMED[len(clusters.cluster) > clusters.count, unlike], whose)))


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


def certified(q: Population, clusters: tuple[Clusters, ...], whose: str = "") -> Population:
    """A population of which clusters certify, or rows that do not count alike."""
    assumes, of = assumed(clusters[0], whose), reported(clusters[0])
    return OfClusters(q.raw, q.fine, q.scores, q.by_score, diagonals=clusters, assumes=assumes, reported=of)
