"""The mergeable summary: integer counts per random block and score cell, for everyone and for each group."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.data.columns import as_float, binary_labels, label_values, level_codes, require, row_ids
from calibrant.data.parts import parts_of, sound_rows
from calibrant.data.predictions import LABEL_MISSING, LABEL_VALUE, SCORE_MISSING, SCORE_RANGE, Faults
from calibrant.data.sketch_file import ARRAYS, sketch_bytes, sketch_of_bytes
from calibrant.data.spec import Spec
from calibrant.errors import BadInput
from calibrant.kernels.tally import CELL_BITS, FAULTS, FIELDS, GROUP_BITS, LEVELS, Counters, Packed, Rows, carry, tally


class Sketch:
    """Counts that are bit-identical however the rows were split, ordered or spread over machines.

    Scores are integers ``q = min(floor(p 2^30), 2^30 - 1)``. For everyone there are ``2^14`` cells ``q >> 16``,
    for each group ``2^10``; per block and cell the sketch holds rows and sums of the in-cell remainder by label
    (and, for everyone, of its square), and rows by label for 200 levels from which rounding to 10, 20, 50 and
    100 steps follows exactly.

    Parameters
    ----------
    spec : Spec
        Fixed before any label is read.
    drop_missing : bool
        Leave out, and count, rows whose score or label is missing; otherwise they are an error.
    """

    name: str
    files: tuple[str, ...]

    def __init__(self, spec: Spec, drop_missing: bool = False) -> None:
        self.spec, self.drop_missing = spec, drop_missing
        b, g = spec.blocks, spec.group_count
        self._arrays = {
            "cells": np.zeros((b, 1 << CELL_BITS, FIELDS), dtype=np.int64),
            "levels": np.zeros((b, LEVELS, 2), dtype=np.int64),
            "group_cells": np.zeros((g, b, 1 << GROUP_BITS, 4), dtype=np.int64),
            "group_levels": np.zeros((g, b, LEVELS, 2), dtype=np.int64),
        }
        self._packed: Packed | None = None
        self.rows_read = 0
        self.name, self.files = "data", ()
        self.faults = Faults()
        self._bases = np.cumsum([0, *spec.sizes], dtype=np.int64)[:-1]
        self.parts = parts_of(spec)

    # ---- what it holds ----

    def _settled(self, name: str) -> Any:
        if self._packed is not None and self._packed.rows:
            self._packed.settle(Counters(**self._arrays))
        return self._arrays[name]

    @property
    def cells(self) -> Any:
        """Everyone's counts, int64 of shape (blocks, 2**14, 6): see `kernels.tally.FIELDS`."""
        return self._settled("cells")

    @property
    def levels(self) -> Any:
        """Everyone's rows per fine level and label, int64 of shape (blocks, 200, 2)."""
        return self._settled("levels")

    @property
    def group_cells(self) -> Any:
        """Each group's counts, int64 of shape (groups, blocks, 2**10, 4)."""
        return self._settled("group_cells")

    @property
    def group_levels(self) -> Any:
        """Each group's rows per fine level and label, int64 of shape (groups, blocks, 200, 2)."""
        return self._settled("group_levels")

    @property
    def n(self) -> int:
        """Rows counted."""
        return int(self.levels.sum())

    @property
    def cases(self) -> int:
        """Rows with the outcome."""
        return int(self.levels[..., 1].sum())

    @property
    def dropped(self) -> int:
        """Rows left out because score or label was missing."""
        return self.rows_read - self.n

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the counts and what decides them: equal for equal data, however it was stored or read."""
        digest = hashlib.sha256(self.spec.counted.digest.encode())
        for name in ARRAYS:
            where, values = self._sparse(name)
            digest.update(where.tobytes())
            digest.update(values.tobytes())
        return digest.hexdigest()

    # ---- adding rows ----

    def update(self, batch: Any, *, part: str = "", first_row: int = 0) -> None:
        """Count the rows of an Arrow record batch.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            Holds at least the spec's columns.
        part : str
            The file the rows come from, relative to the data set's root; empty for a single file or a frame.
        first_row : int
            Number, within that file, of the batch's first row. With a key, both are used in messages only.
        """
        require([self.spec.label], batch.schema.names, "label")
        require([self.spec.score], batch.schema.names, "score")
        require([v.name for v in self.spec.variables], batch.schema.names, "group")
        require([c.name for c in self.spec.codings], batch.schema.names, "covariate")
        require(self.spec.key, batch.schema.names, "key")
        p = as_float(batch.column(self.spec.score), self.spec.score, "score")
        y = label_values(batch.column(self.spec.label), self.spec)
        codes = {v.name: level_codes(batch.column(v.name), v) for v in self.spec.variables}
        ids = row_ids([batch.column(k) for k in self.spec.key], self.spec.seed) if self.spec.key else None
        covariates = {c.name: batch.column(c.name) for c in self.spec.codings}
        self.update_arrays(p, y, codes, covariates, ids=ids, part=part, first_row=first_row)

    def update_arrays(
        self,
        p: Any,
        y: Any,
        codes: dict[str, Any],
        covariates: Mapping[str, Any],
        *,
        ids: Any = None,
        part: str = "",
        first_row: int = 0,
    ) -> None:
        """Count rows given as arrays: float64 scores, labels as `binary_labels` takes them, int32 levels.

        `covariates` are Arrow arrays of the columns that the spec codes.
        """
        stacked = np.empty((len(self.spec.groupings), len(p)), dtype=np.int32)
        for i, names in enumerate(self.spec.groupings):
            stacked[i] = codes[names[0]]
            for name in names[1:]:
                stacked[i] = stacked[i] * len(self.spec.by_name[name].labels) + codes[name]
        faults = np.zeros(FAULTS, dtype=np.int64)
        labels = binary_labels(y)
        packed = self._packed = self._packed or Packed(self.spec.blocks, self.spec.group_count, len(stacked))
        salt = self.spec.salt(part if ids is None else "")
        for start in range(0, len(p), packed.at_once):
            rows = slice(start, start + packed.at_once)
            own = np.zeros(0, dtype=np.uint64) if ids is None else ids[rows]
            if packed.rows + len(p[rows]) > packed.capacity:
                packed.settle(Counters(**self._arrays))
            part_of = p[rows], labels[rows], stacked[:, rows], self._bases, own, first_row + start, salt
            tally(Rows(*part_of), packed, faults)
        self.rows_read += len(p)
        self._note(faults, p, y, part, first_row)
        if self.parts:
            sound = sound_rows(self.spec, p, labels, covariates, ids, first_row, salt)
            for each in self.parts.values() if sound is not None else ():
                each.update(sound)

    def _note(self, faults: Any, p: Any, y: Any, part: str, first_row: int) -> None:
        for kind in (SCORE_MISSING, SCORE_RANGE, LABEL_MISSING, LABEL_VALUE):
            if faults[2 * kind]:
                row = int(faults[2 * kind + 1])
                value = (p if kind == SCORE_RANGE else y)[row - first_row]
                example = f"{value:.9g}" if kind in (SCORE_RANGE, LABEL_VALUE) else ""
                self.faults.add(kind, int(faults[2 * kind]), (part, row), example)
        if faults[2 * SCORE_RANGE]:
            self.faults.low = min(self.faults.low, float(np.nanmin(p)))
            self.faults.high = max(self.faults.high, float(np.nanmax(p)))

    def merge(self, other: Sketch) -> Sketch:
        """Add another sketch's counts to this one, and return it. Specs must be equal."""
        if other.spec != self.spec:
            raise BadInput(
                "these sketches have different specs (columns, levels, seed or version): make both from one spec"
            )
        for name in ARRAYS:
            self._settled(name)[...] += other._settled(name)
        carry(self._arrays["cells"])
        for key, mine in self.parts.items():
            mine.merge(other.parts[key])
        self.rows_read += other.rows_read
        self.files = (*self.files, *(f for f in other.files if f not in self.files))
        self.faults.merge(other.faults)
        return self

    def copy(self) -> Sketch:
        """Return a sketch of its own with the same counts."""
        out = Sketch(self.spec, self.drop_missing)
        out.name = self.name
        return out.merge(self)

    def checked(self) -> Sketch:
        """Return the sketch if its rows were sound; raise `BadInput` naming the first fault otherwise."""
        self.faults.check(self.spec, self.drop_missing)
        self._settled("cells")
        self._packed = None
        if self.n == 0:
            left = f" ({self.dropped} rows had a missing score or label)" if self.dropped else ""
            raise BadInput(f"no rows to audit{left}: the data is empty")
        if self.spec.positive is not None and self.cases == 0:
            raise BadInput(
                f"positive={self.spec.positive!r} does not occur in column {self.spec.label!r}; check its spelling"
            )
        return self

    # ---- bytes ----

    def _sparse(self, name: str) -> tuple[Any, Any]:
        flat = self._settled(name).reshape(-1)
        where = np.flatnonzero(flat).astype("<i8")
        return where, flat[where].astype("<i8")

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes: a header, the non-zero counts, and a checksum over both."""
        self.faults.check(self.spec, self.drop_missing)
        return sketch_bytes(self)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Sketch:
        """Rebuild the sketch that `to_bytes` wrote; anything else is refused with `BadInput`, at little cost.

        The checksum finds accidents. It is no signature: whoever can write the file can write another sound one.
        """
        return sketch_of_bytes(raw, cls)
