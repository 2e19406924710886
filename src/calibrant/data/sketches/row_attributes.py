"""What stands next to a row's score and label: the cluster that it belongs to, and how much it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import shown
from calibrant.data.columns import Floats, Ids, are_absent, as_float, row_ids
from calibrant.data.specs.faults import CLUSTER_MISSING, WEIGHT_MISSING, WEIGHT_VALUE, Faults
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput
from calibrant.kernels.draws import mix

SALT = np.uint64(0x91C4E2A7D35B8F06)  # any number, so that nothing here is the hash of a key or a named cluster


@dataclass(frozen=True)
class RowAttributes:
    """Clusters and weights of a run of rows."""

    clusters: Ids | None = None  # shape (n,): hashes of the cluster column; None where rows are independent
    # Shape (n,): positive and finite but for rows that are `gone`, or refused; None where every row counts alike.
    weights: Floats | None = None
    # Shape (n,): rows without a cluster, or without a weight; None if there are none.
    gone: NDArray[np.bool_] | None = None
    # Each of shape (n,): hashes of columns that may be the cluster, though nobody said so; 0 where a value is missing.
    candidates: tuple[Ids, ...] = ()

    @classmethod
    def of(
        cls, batch: pa.RecordBatch | pa.Table, spec: Spec, faults: Faults, part: str = "", first_row: int = 0
    ) -> Self:
        """Read the spec's columns of a batch, and note what is missing or cannot be a weight."""
        clusters, weights, gone = None, None, np.zeros(batch.num_rows, dtype=np.bool_)
        if spec.cluster:
            column = batch.column(spec.cluster)
            absent = are_absent(column, spec.cluster)
            faults.note_rows(CLUSTER_MISSING, absent, part, first_row)
            if not faults.cluster and not absent.all():
                faults.cluster = shown(column[int(np.argmin(absent))].as_py())
            clusters, gone = row_ids([column], spec.seed, (spec.cluster,), "cluster"), absent
        if spec.weights:
            weights = as_float(batch.column(spec.weights), spec.weights, "weights")
            absent = np.isnan(weights)
            strange = ~absent & ~((weights > 0) & np.isfinite(weights))
            faults.note_rows(WEIGHT_MISSING, absent, part, first_row)
            faults.note_rows(WEIGHT_VALUE, strange, part, first_row, weights)
            gone = gone | absent | strange
        may_be = tuple(joined(batch.column(name), name, spec.seed) for name in spec.candidates or ())
        return cls(clusters, weights, gone if gone.any() else None, may_be)

    def part(self, rows: slice) -> RowAttributes:
        """Return clusters and weights of some rows."""
        clusters, weights = self.clusters, self.weights
        may_be = tuple(column[rows] for column in self.candidates)
        own = None if clusters is None else clusters[rows]
        return RowAttributes(own, None if weights is None else weights[rows], candidates=may_be)

    def labelled(self, y: NDArray[np.int8] | Floats) -> NDArray[np.int8] | Floats:
        """The labels, missing in rows that are gone, which are left out as if they had none.

        What rows lack is noted of the labels as they are.
        """
        return y if self.gone is None else np.where(self.gone, np.nan, y)

    def there(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which of some rows are not gone."""
        return rows if self.gone is None else rows & ~self.gone


def joined(column: pa.Array | pa.ChunkedArray, name: str, seed: int) -> Ids:
    """Return hashes of the values by which rows may belong together, 0 where one is missing; of no type, none."""
    try:
        result = mix(row_ids([column], seed, (name,), "covariate") ^ SALT)
        return np.where(are_absent(column, name), np.uint64(0), result)
    except BadInput:  # nobody asked for this column: what cannot be compared joins no rows
        return np.zeros(len(column), dtype=np.uint64)


NOTHING = RowAttributes()  # of independent rows that count alike
