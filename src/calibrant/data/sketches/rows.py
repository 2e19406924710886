"""Rows for what needs rows, chosen from a source of any size; and the levels of its clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pyarrow as pa

from calibrant.arguments import Caller, lacking
from calibrant.data.columns import (
    Ids,
    are_absent,
    binary_labels,
    few_of,
    label_values,
    no_events,
    no_such_event,
    picked,
    row_ids,
    score_values,
)
from calibrant.data.inputs import Levels, levels_of
from calibrant.data.predictions import Predictions
from calibrant.data.reading import Reading
from calibrant.data.sketches.contents import Contents
from calibrant.data.sketches.sample import (
    LABEL,
    Batch,
    Origin,
    RawSample,
    RowAttributes,
    hashes_of,
    labels_of,
    of_clusters,
    scores_of,
    source_order,
)
from calibrant.data.sources.source import Place, Source, row_of
from calibrant.data.specs.coding import Rows, encode
from calibrant.data.specs.faults import Faults
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput, NotComputable


@dataclass(frozen=True)
class Chosen:
    """Sampled rows, and the number by which each is known again when the source is read again."""

    # In the order of the source if these are all its rows, else by increasing hash: as a sketch for tests holds them.
    data: Predictions
    hashes: Ids  # shape (n,)
    read: int  # rows of the source
    contents: Contents  # scores, labels and keys of all of them, by which the same rows are known elsewhere

    @property
    def left_out(self) -> int:
        """Rows of the source that lack a label, a score, a cluster or a weight."""
        return self.read - self.contents.n


NOTHING = pa.table({})  # no covariates: what is compared of files here is scores, labels and keys


class Choice:
    """The sound rows seen so far with the smallest hashes, covariates as they are, and what was wrong with others.

    `spec` names label, score and key, `names` the covariates; at most `most` rows are kept.
    """

    def __init__(self, spec: Spec, names: Sequence[str], most: int) -> None:
        self.spec, self.faults, self.rows_read = spec, Faults(), 0
        self.no_event: dict[str, int] = {}  # values of the label next to the one named as the event
        self.sample = RawSample(names, most, whole=bool(spec.row_attributes))
        self.contents = Contents(replace(spec, variables=(), codings=()))

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read."""
        spec = self.spec
        return tuple(dict.fromkeys([spec.label, spec.score, *self.sample.names, *spec.key, *spec.row_attributes]))

    def update(self, batch: Batch, *, part: str = "", first_row: int = 0) -> None:
        """Add the rows of an Arrow record batch; `part` and `first_row` as in `Sketch.update`."""
        spec = self.spec
        p = score_values(batch.column(spec.score), spec.score, spec.percent)
        values = label_values(batch.column(spec.label), spec.label, spec.positive)
        self.faults.see(p, spec.percent, part)
        self.faults.note(p, values, part, first_row)
        self.faults.note_event(batch, spec)
        if spec.positive is not None:
            every = np.ones(batch.num_rows, dtype=np.bool_)
            self.no_event = few_of(self.no_event, no_events(batch.column(spec.label), spec.label, spec.positive, every))
        self.faults.note_gaps(batch, spec, dict.fromkeys((*self.sample.names, *spec.key)), part, first_row)
        row_attributes = RowAttributes.of(batch, spec, self.faults, part, first_row)
        y = binary_labels(row_attributes.labelled(values))
        sound = (p >= 0.0) & (p <= 1.0) & ((y == 0) | (y == 1))
        origin = Origin.of(batch, spec, part, first_row, row_attributes)
        ids, clusters = origin.identities(batch.num_rows, spec), origin.clusters(spec)
        if sound.any():
            nothing = encode(NOTHING, (), int(sound.sum()), scale=False)
            keys = picked(origin.keys, sound)
            self.contents.update(Rows(p[sound], y[sound], ids[sound], nothing, keys=keys, part=part))
        hashes = hashes_of(ids)
        of, more = (hashes, ()) if not spec.row_attributes else of_clusters(hashes, clusters, row_attributes.weights)
        self.sample.keep(of, p, y, batch, sound, more)
        self.rows_read += batch.num_rows

    def add(self, other: Self) -> Self:
        """Add the rows of another part."""
        self.sample.merge(other.sample)
        self.contents.merge(other.contents)
        self.faults.merge(other.faults)
        self.no_event = few_of(self.no_event, other.no_event)
        self.rows_read += other.rows_read
        return self

    def chosen(self, name: str, caller: Caller, place: Place = row_of) -> Chosen:
        """The rows if all were sound, or if those that were not may be left out."""
        self.faults.caller = caller
        self.faults.check(self.spec, place)
        lines, spec = self.sample.lines, self.spec
        if not len(lines):
            lack = lacking(spec.cluster, spec.weights)
            raise BadInput(f"no rows to repair: the data is empty, or every row is without {lack}")
        table = self.sample.table()
        if spec.positive is not None and not lines[:, LABEL].any():
            raise BadInput(no_such_event(self.no_event, f"column {spec.label!r}", spec.positive))
        hashes = self.sample.row_hashes
        at = source_order(hashes, spec)
        data = Predictions(
            y=labels_of(lines[at]),
            p=scores_of(lines[at]),
            covariates=table.take(at) if table.num_columns else None,
            name=name,
            cluster_ids=self.sample.cluster_ids(at),
            **self.sample.row_attributes(at, spec),
        )
        return Chosen(data, hashes[at], self.rows_read, self.contents)


# ---- clusters on several levels of a source: the coarsest column, found by one look at these columns alone ----


def on_levels(options: Reading, batches: Iterable[pa.RecordBatch]) -> tuple[Reading, Levels]:
    """What was asked with the coarsest column as the cluster, and the columns with their numbers of clusters.

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
        yield from opened.read(list(options.levels))
