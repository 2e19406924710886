"""Rows chosen from a source of any size: a uniform sample, or whole clusters, that fits in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa

from calibrant.arguments import Caller, lacking
from calibrant.data.columns import Ids, binary_labels, label_values, picked, score_values
from calibrant.data.predictions import Predictions
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
from calibrant.data.specs.coding import Rows, encode
from calibrant.data.specs.faults import Faults
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput


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
        self.rows_read += other.rows_read
        return self

    def chosen(self, name: str, caller: Caller) -> Chosen:
        """The rows if all were sound, or if those that were not may be left out."""
        self.faults.caller = caller
        self.faults.check(self.spec)
        lines, spec = self.sample.lines, self.spec
        if not len(lines):
            lack = lacking(spec.cluster, spec.weights)
            raise BadInput(f"no rows to repair: the data is empty, or every row is without {lack}")
        table = self.sample.table()
        if spec.positive is not None and not lines[:, LABEL].any():
            raise BadInput(f"positive={spec.positive!r} does not occur in column {spec.label!r}; check its spelling")
        hashes = self.sample.row_hashes
        at = source_order(hashes, spec)
        cluster, weights = self.sample.row_attributes(at, spec)
        data = Predictions(
            y=labels_of(lines[at]),
            p=scores_of(lines[at]),
            covariates=table.take(at) if table.num_columns else None,
            cluster=cluster,
            weights=weights,
            name=name,
            cluster_ids=self.sample.cluster_ids(at),
        )
        return Chosen(data, hashes[at], self.rows_read, self.contents)
