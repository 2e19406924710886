"""Whole rows of a source of any size, chosen by their identities: a uniform sample that fits in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.columns import as_float, binary_labels, label_values, require, row_ids
from calibrant.data.faults import LABEL_MISSING, LABEL_VALUE, SCORE_MISSING, SCORE_RANGE, Faults
from calibrant.data.identity import identities
from calibrant.data.predictions import Predictions
from calibrant.data.sample import SALT, smallest
from calibrant.data.sources import Source
from calibrant.data.spec import Spec
from calibrant.errors import BadInput
from calibrant.kernels.reference import mix

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Chosen:
    """Sampled rows, and the number by which each is known again when the source is read again.

    Parameters
    ----------
    data : Predictions
        By increasing hash.
    hashes : uint64 array of shape (n,)
    read : int
        Rows of the source.
    """

    data: Predictions
    hashes: Any
    read: int


def identities_in(batch: Any, spec: Spec, part: str, first_row: int) -> Any:
    """Return the identity of each row of a batch: by its key, or by its file and row number."""
    own = row_ids([batch.column(k) for k in spec.key], spec.seed) if spec.key else None
    return identities(batch.num_rows, first_row, spec.salt("" if spec.key else part), own)


def hashes_of(batch: Any, spec: Spec, part: str, first_row: int) -> Any:
    """Return the number that decides whether a row is chosen."""
    return mix(identities_in(batch, spec, part, first_row) ^ SALT)


def note_scores(faults: Faults, p: Any, part: str, first_row: int) -> None:
    """Count scores that are missing or out of range."""
    missing = np.isnan(p)
    outside = ~missing & ~((p >= 0.0) & (p <= 1.0))
    if missing.any():
        faults.add(SCORE_MISSING, int(missing.sum()), (part, first_row + int(np.argmax(missing))), "")
    if outside.any():
        row = int(np.argmax(outside))
        faults.add(SCORE_RANGE, int(outside.sum()), (part, first_row + row), f"{p[row]:.9g}")
        faults.low, faults.high = min(faults.low, float(np.nanmin(p))), max(faults.high, float(np.nanmax(p)))


def _note_labels(faults: Faults, y: Any, values: Any, part: str, first_row: int) -> None:
    for kind, bad in ((LABEL_MISSING, y == -1), (LABEL_VALUE, (y != -1) & (y != 0) & (y != 1))):
        if bad.any():
            row = int(np.argmax(bad))
            example = f"{values[row]:.9g}" if kind == LABEL_VALUE else ""
            faults.add(kind, int(bad.sum()), (part, first_row + row), example)


def chosen_rows(
    source: Source, spec: Spec, names: Sequence[str], most: int, drop_missing: bool, progress: Progress | None = None
) -> Chosen:
    """Read a source once and keep the `most` sound rows with the smallest hashed identities, covariates as they are.

    Raises
    ------
    BadInput
        A column is not there, or a score or label cannot be used: it names column, count and first row.
    """
    import pyarrow as pa

    require([spec.label], source.columns, "label")
    require([spec.score], source.columns, "score")
    require(spec.key, source.columns, "key")
    require(names, source.columns, "covariate")
    if not source.again:
        raise BadInput("a stream can be read only once, and a repair is fitted before it is applied: pass a file")
    columns = list(dict.fromkeys([spec.label, spec.score, *names, *spec.key]))
    kept, limit, read, faults = [], np.uint64(0xFFFFFFFFFFFFFFFF), 0, Faults()
    for part in source.parts:
        row = part.first_row
        for batch in part.read(columns, (spec.score,)):
            p, values = (
                as_float(batch.column(spec.score), spec.score, "score"),
                label_values(batch.column(spec.label), spec),
            )
            y = binary_labels(values)
            note_scores(faults, p, part.name, row)
            _note_labels(faults, y, values, part.name, row)
            hashes = hashes_of(batch, spec, part.name, row)
            good = np.flatnonzero((p >= 0.0) & (p <= 1.0) & ((y == 0) | (y == 1)) & (hashes <= limit))
            good = good[smallest(hashes[good], (), most)]
            kept.append((hashes[good], p[good], y[good], batch.select(list(names)).take(pa.array(good))))
            if sum(len(k[0]) for k in kept) > 3 * most:
                kept = [_smallest_of(kept, most)]
                limit = kept[0][0][-1]
            row += batch.num_rows
            read += batch.num_rows
            if progress is not None:
                progress(batch.num_rows)
    faults.check(spec, drop_missing)
    return _chosen(kept, spec, most, read, source.name)


def _chosen(kept: list[Any], spec: Spec, most: int, read: int, name: str) -> Chosen:
    if not sum(len(k[0]) for k in kept):
        raise BadInput("no rows to repair: the data is empty, or every row lacks a score or label")
    hashes, p, y, table = _smallest_of(kept, most)
    if spec.positive is not None and not y.any():
        raise BadInput(f"positive={spec.positive!r} does not occur in column {spec.label!r}; check its spelling")
    p.flags.writeable = y.flags.writeable = False
    return Chosen(Predictions(y=y, p=p, covariates=table if table.num_columns else None, name=name), hashes, read)


def _smallest_of(kept: list[Any], most: int) -> Any:
    import pyarrow as pa

    hashes, p, y = (np.concatenate([k[i] for k in kept]) for i in range(3))
    tables = [k[3] if isinstance(k[3], pa.Table) else pa.Table.from_batches([k[3]]) for k in kept if len(k[0])]
    try:
        table = pa.concat_tables(tables or [pa.Table.from_batches([k[3]]) for k in kept], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as e:
        raise BadInput(
            f"the files store a column in different types ({str(e).splitlines()[0]}): store it one way"
        ) from None
    order = smallest(hashes, (p, y), most)
    return hashes[order], p[order], y[order], table.unify_dictionaries().take(pa.array(order))
