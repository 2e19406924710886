"""The rows of whole clusters: the one way in for whatever is about rows of one cluster, or count more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from calibrant.data.columns import Ids, are_absent, row_ids
from calibrant.data.inputs import Levels, levels_of
from calibrant.data.predictions import Predictions
from calibrant.data.reading import Reading
from calibrant.data.sketches.sample import Origin, RowAttributes, hashes_of, identities_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sources.source import Source
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput, NotComputable


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


# ---- clusters on several levels of a source: the coarsest column, found by one look at these columns alone ----


def on_levels(options: Reading, batches: Iterable[pa.RecordBatch]) -> tuple[Reading, Levels]:
    """Return what was asked with the coarsest column as the cluster, and the columns with their numbers of clusters.

    Nothing is read where one column names the clusters, or none. Only different combinations of clusters are kept.

    Raises
    ------
    BadInput
        A cluster is missing: which clusters hold the others is unknown.
    ClustersCross
        Columns cross.
    """
    if not options.levels:
        return options, ()
    seen = np.empty((0, len(options.levels)), dtype=np.uint64)
    for batch in batches:
        columns = [batch.column(name) for name in options.levels]
        for name, column in zip(options.levels, columns, strict=True):
            if count := int(np.count_nonzero(are_absent(column, name))):
                noun = "value is" if count == 1 else "values are"
                raise BadInput(
                    f"column {name!r}: {count:,} {noun} missing, and which clusters hold the others cannot be "
                    f"determined: fill in, or name one column: {options.caller.says('cluster')}"
                )
        results = [row_ids([c], 0, (n,), "cluster") for n, c in zip(options.levels, columns, strict=True)]
        seen = np.unique(np.vstack([seen, np.column_stack(results)]), axis=0)
    codes = {name: np.unique(seen[:, i], return_inverse=True)[1].reshape(-1) for i, name in enumerate(options.levels)}
    levels = levels_of(codes)
    return replace(options, cluster=levels[0][0]), levels


def cluster_batches(opened: Source, options: Reading) -> Iterator[pa.RecordBatch]:
    """Yield the columns of clusters of a source that is read here."""
    if not options.levels:
        return
    if opened.engine is not None:
        raise NotComputable(
            "which clusters hold the others is found where rows are read here: of a Spark or Dask DataFrame name the "
            f"coarsest column, {options.caller.says('cluster')}"
        )
    with opened.one_pass():
        for part in opened.parts:
            yield from part.read(list(options.levels), ())
