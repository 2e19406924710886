"""Clusters on several levels of a source: which column is the coarsest, found by one look at these columns alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from calibrant.data.columns import are_absent, row_ids
from calibrant.data.inputs import Levels, levels_of
from calibrant.data.reading import Reading
from calibrant.data.sources.source import Source
from calibrant.errors import BadInput, NotComputable


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
    if opened.cluster is not None:
        raise NotComputable(
            "which clusters hold the others is found where rows are read here: of a Spark or Dask DataFrame name the "
            f"coarsest column, {options.caller.says('cluster')}"
        )
    with opened.one_pass():
        for part in opened.parts:
            yield from part.read(list(options.levels), ())
