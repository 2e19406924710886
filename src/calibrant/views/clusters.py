"""From rows with clusters or weights to what certificates read of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import Caller, shown
from calibrant.data.inputs import ALL_AS_ONE, ClustersCross
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.rows import cluster_ids, rows_of_clusters
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.clusters.two_way import Design, DiagonalBlocks

UNPROVED = (
    "this is proved for independent rows of equal weight: with cluster= or weights= use certify.rounded, values, "
    "raw_lower, distance, groups, worst_group, variable or subgroups"
)
ALONE = "rows alone"


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
    if data.weights is None and data.cluster is None:
        return None
    if ("clusters", seed) not in data.cache:
        if data.cluster is not None and not (data.cluster != data.cluster[0]).any():
            raise one_cluster(inputs)
        data.cache["clusters", seed] = _hash_split(data, seed)
    return data.cache["clusters", seed]  # type: ignore[no-any-return]


def two_way_of(inputs: Predictions | Sketch, seed: int) -> tuple[DiagonalBlocks, ...]:
    """The blocks of each shift where columns of clusters cross; nothing where they do not."""
    if isinstance(inputs, Sketch):
        return () if inputs.two_way is None else two_way_of(inputs.two_way, seed)
    if inputs.crossing is None:
        return ()
    if ("two_way", seed) not in inputs.cache:
        codes = inputs.crossing.codes.astype(np.int64)
        inputs.cache["two_way", seed] = tuple(
            replace(each, clusters=replace(each.clusters, columns=inputs.crossing.names))
            for each in Design(codes, seed).diagonal_blocks(inputs.p, inputs.y, inputs.weights)
        )
    return inputs.cache["two_way", seed]  # type: ignore[no-any-return]


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


def _hash_split(data: Predictions, seed: int) -> Clusters | None:
    """Choose pilot clusters and deal the others; None where every row is a cluster and counts as much as any other."""
    ids = cluster_ids(data, seed)
    cluster: NDArray[np.int64] = np.arange(data.n)
    if data.cluster is not None:
        ids, cluster = np.unique(ids, return_inverse=True)
    if len(ids) == data.n and (data.weights is None or bool((data.weights == data.weights[0]).all())):
        return None
    result = Clusters.hash_split(cluster.reshape(-1), data.p, data.y, data.weights, ids)
    return replace(result, columns=tuple(name for name, _ in data.levels)) if data.levels else result


def alone(data: Predictions) -> Predictions:
    """The rows without clusters and weights: what is counted and shown, not what is certified."""
    if data.weights is None and data.cluster is None:
        return data
    if ALONE not in data.cache:
        data.cache[ALONE] = replace(data, weights=None, cluster=None, cluster_ids=None, crossing=None, cache={})
    return data.cache[ALONE]  # type: ignore[no-any-return]


def assumed(clusters: Clusters, whose: str = "") -> str:
    """Say what certificates of clusters take for granted, and whose they are."""
    parts = ["independent rows"]
    if len(clusters.cluster) > clusters.count:
        parts = ["independent clusters", "rows of one cluster as dependent as they like"]
    if bool((clusters.input_weights != clusters.input_weights[:1]).any()):
        parts.append("weights that do not depend on outcomes")
    return "; ".join(filter(None, (", ".join(parts), whose)))


def assumed_of_two_way(diagonals: Sequence[Clusters]) -> str:
    """Say what certificates of clusters that cross take for granted."""
    first, second = diagonals[0].columns
    return (
        f"independent clusters of {first} and of {second}: rows that share neither are independent; which rows there "
        "are, and what they weigh, does not depend on scores and outcomes"
    )


def reported_of_two_way(diagonals: Sequence[Clusters]) -> dict[str, object]:
    """Return what the settings of a result tell of clusters that cross: blocks are of the mean shift."""
    return {
        "two_way": diagonals[0].columns,
        "diagonals": len(diagonals),
        "blocks": round(sum(u.count for u in diagonals) / len(diagonals)),
        "effective_blocks": sum(u.effective for u in diagonals) / len(diagonals),
        "largest_block": max(u.largest for u in diagonals),
    }


def reported(clusters: Clusters) -> dict[str, object]:
    """Return what the settings of a result tell of clusters."""
    return named(clusters.columns) | {
        "clusters": clusters.count,
        "effective_clusters": clusters.effective,
        "pilot_clusters": clusters.pilots,
        "largest_cluster": clusters.largest,
        "truncated_clusters": clusters.truncated_weights,
    }


def named(columns: Sequence[str]) -> dict[str, object]:
    """Return what settings tell of columns that named clusters, the coarsest first; nothing unless they are several."""
    return {"cluster": columns[0], "nested": tuple(columns[1:])} if columns else {}


@dataclass(frozen=True)
class Members:
    """Which group of each grouping every row is in."""

    group: NDArray[np.int64]  # shape (groupings, n): numbers of a sketch's groups

    @classmethod
    def of(cls, data: Predictions | Sketch, sketch: Sketch) -> Members:
        """Return them of the rows that a sketch with groups was made of, or of those that it holds itself."""
        spec = sketch.spec
        data = data.two_way if isinstance(data, Sketch) and data.two_way is not None else data
        if isinstance(data, Sketch):
            bases, kept = np.cumsum([0, *spec.sizes]), sketch.parts["sample"]
            return cls(np.array([kept.levels(i) + bases[i] for i in range(len(spec.groupings))]))
        return cls.of_rows(data.covariates, data.n, sketch)

    @classmethod
    def of_rows(cls, table: pa.Table, n: int, sketch: Sketch) -> Members:
        """Return them of n rows with these covariates."""
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
        """Return which rows are in one of the groups."""
        return np.asarray(np.isin(self.group, list(groups)).any(axis=0))
