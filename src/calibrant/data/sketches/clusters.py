"""The rows of whole clusters: the one way in for whatever is about rows of one cluster, or count more."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from calibrant.data.columns import Ids, row_ids
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.row_attributes import RowAttributes
from calibrant.data.sketches.sample import Origin, hashes_of, identities_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.spec import Spec
from calibrant.errors import NotComputable


def rows_of_clusters(data: Predictions | Sketch) -> Predictions:
    """Return rows with `cluster` and `weights` as known: all rows, or those of the clusters that a sketch holds.

    Clusters of a sketch are named by hash; which it holds, their hashes alone decide, so that outcomes play no part.

    Raises
    ------
    NotComputable
        The sketch knows neither clusters nor weights, or its first cluster is larger than it has room for.
    """
    if isinstance(data, Predictions):
        return data
    if not data.checked().by_clusters:
        raise NotComputable(
            "the sketch was made without cluster= and weights=: its rows are independent and of equal weight"
        )
    return data.rows()


def cluster_ids(data: Predictions, seed: int) -> Ids:
    """Return one random number a row, that of its unit: a hash of the cluster's name and the seed, and of nothing else.

    The number by which a sketch of the same column and seed knows the cluster, whichever other clusters there are and
    however rows are stored, split or ordered. Without `cluster` a row is a cluster, known by its number.
    """
    if data.cluster_ids is not None:
        return data.cluster_ids
    if data.cluster is None:
        return hashes_of(identities_of(data.n, seed))
    names = RowAttributes(row_ids([pa.array(data.cluster)], seed, ("cluster",), "cluster"))
    result = Origin(row_attributes=names).clusters(Spec(label="y", score="p", seed=seed))
    return hashes_of(np.zeros(0, dtype=np.uint64) if result is None else result)


def which_clusters(data: Predictions | Sketch) -> str:
    """Return whose rows `rows_of_clusters` returns, in words; empty where they are all."""
    if isinstance(data, Predictions) or not data.by_clusters or data.two_way is not None:
        return ""
    if not data.parts["sample"].cut:
        return ""
    kept, noun = data.parts["sample"], f"clusters ({data.spec.cluster})" if data.spec.cluster else "rows"
    return f"the rows of {kept.clusters:,} of about {kept.of_clusters:,} {noun}, chosen without looking at outcomes"
