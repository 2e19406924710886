"""Whole rows chosen by hashed identity: one uniform sample for a sketch, a first look, and a source of any size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.coding import Coding, Rows, as_days, is_date, is_number
from calibrant.data.columns import as_float, binary_labels, decoded, label_values, require, row_ids
from calibrant.data.predictions import LABEL_MISSING, LABEL_VALUE, SCORE_MISSING, SCORE_RANGE, Faults, Predictions
from calibrant.data.sources import Source
from calibrant.data.spec import Spec
from calibrant.errors import BadInput
from calibrant.kernels.draws import mix

# ---- A uniform sample of whole rows, chosen by their identities: the same however the rows were split or ----

MOST_ALIKE = 0.01  # share of the sample that the rows of one key may be where the sample ends
SALT = np.uint64(0x5A3C91E7B2D4F680)  # so that the sample is independent of the random blocks


def smallest(hashes: Any, ties: tuple[Any, ...] | Callable[[], tuple[Any, ...]], size: int) -> Any:
    """Return the indices of the `size` smallest hashes in increasing order; equal hashes by `ties`, made if needed."""
    near = np.arange(len(hashes))
    if len(hashes) > 2 * size:
        near = np.flatnonzero(hashes <= np.partition(hashes, size)[size])
    order = near[np.argsort(hashes[near], kind="stable")]
    found = hashes[order]
    if (found[1:] == found[:-1]).any():
        keys = ties() if callable(ties) else ties
        order = near[np.lexsort((*(t[near] for t in reversed(keys)), hashes[near]))]
    return order[:size]


class Sample:
    """The rows with the smallest hashed identities, at most ``spec.sample`` of them.

    One line a row: hash, score, label, numbers and levels, all as 64-bit integers (bits of the doubles).
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.lines = np.zeros((0, 3 + width(spec.codings)), dtype=np.int64)
        self._new: list[Any] = []
        self._held = 0
        self._limit = np.uint64(0xFFFFFFFFFFFFFFFF)

    def narrow(self, share: float) -> None:
        """Take only rows whose hash is in this smallest share of all: where the whole is known to hold enough of them."""
        if share < 1.0:
            self._limit = np.uint64(int(share * 2.0**64))

    def update(self, rows: Rows) -> None:
        """Add rows."""
        hashes = mix(rows.ids ^ SALT)
        kept = np.flatnonzero(hashes <= self._limit)
        e = rows.encoded
        line = np.empty((len(kept), self.lines.shape[1]), dtype=np.int64)
        line[:, 0] = hashes[kept].view(np.int64)
        line[:, 1] = (np.ascontiguousarray(rows.p[kept], dtype=np.float64) + 0.0).view(np.int64)
        line[:, 2] = rows.y[kept]
        d = e.numbers.shape[1]
        numbers = np.ascontiguousarray(e.numbers[kept]) + 0.0  # minus zero is zero
        numbers[np.isnan(numbers)] = np.nan  # of one kind
        line[:, 3 : 3 + d] = numbers.view(np.int64)
        line[:, 3 + d :] = e.codes[kept]
        self._add(line)

    def merge(self, other: Sample) -> None:
        """Add another sample of the same spec."""
        self._add(other.arrays()["lines"])

    def _add(self, lines: Any) -> None:
        self._new.append(lines)
        self._held += len(lines)
        if self._held > max(self.spec.sample, 1 << 16):
            self._settle()

    def _settle(self) -> None:
        lines = np.concatenate([self.lines, *self._new])
        order = smallest(lines[:, 0].view(np.uint64), lambda: _ties(lines), self.spec.sample)
        self.lines, self._new, self._held = lines[order], [], 0
        if len(order) == self.spec.sample:
            self._limit = self.lines[-1:, 0].view(np.uint64)[0]

    def arrays(self) -> dict[str, Any]:
        """Return the lines, by increasing hash."""
        if self._new:
            self._settle()
        return {"lines": self.lines}

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Tell whether arrays of these shapes can be this part's state."""
        rows, wide = shapes["lines"] if shapes.keys() == {"lines"} and len(shapes["lines"]) == 2 else (-1, 0)
        return 0 <= rows <= self.spec.sample and wide == self.lines.shape[1]

    def load(self, arrays: Mapping[str, Any]) -> None:
        """Take over the state that `arrays` described."""
        self.lines, self._new, self._held = arrays["lines"], [], 0

    def _check_key(self, lines: Any) -> None:
        """Refuse a sample that was cut through many rows of one key: which of them are in it, their content decides."""
        if not self.spec.key or len(lines) < self.spec.sample:
            return
        last = int((lines[:, 0] == lines[-1, 0]).sum())
        if last > MOST_ALIKE * len(lines):
            raise BadInput(
                f"key={'+'.join(self.spec.key)!r} tells too few rows apart: {last:,} of {len(lines):,} sampled rows share one "
                "value (rows without a key share one): name more columns in key="
            )

    def predictions(self, name: str = "data") -> Predictions:
        """Return the sample as rows, covariates as the user knows them."""
        import pyarrow as pa

        lines = self.arrays()["lines"]
        self._check_key(lines)
        numbers = [c for c in self.spec.codings if c.kind in ("number", "date")]
        levels = [c for c in self.spec.codings if c.kind == "category"]
        columns = {c.name: _number(lines[:, 3 + j], c) for j, c in enumerate(numbers)}
        columns |= {c.name: _text(lines[:, 3 + len(numbers) + j], c) for j, c in enumerate(levels)}
        table = pa.table({c.name: columns[c.name] for c in self.spec.codings if c.name in columns})
        y, p = lines[:, 2].astype(np.int8), np.ascontiguousarray(lines[:, 1]).view(np.float64)
        y.flags.writeable = p.flags.writeable = False
        return Predictions(y=y, p=p, covariates=table if columns else None, name=name)


def _ties(lines: Any) -> tuple[Any, ...]:
    """Return what orders rows of one identity: their content, stirred; the label last, so that it does not choose rows."""
    others = [lines[:, j] for j in (1, *range(3, lines.shape[1]))]
    stirred = np.zeros(len(lines), dtype=np.uint64)
    for column in others:
        stirred = mix(stirred ^ column.view(np.uint64))
    return (stirred, *others, lines[:, 2])


def width(codings: tuple[Coding, ...]) -> int:
    """Return how many numbers and levels a row has."""
    numbers = [c for c in codings if c.kind in ("number", "date")]
    return len(numbers) + sum(c.kind == "category" for c in codings) + sum(c.missing for c in numbers)


def _number(bits: Any, c: Coding) -> Any:
    import pyarrow as pa

    values = np.ascontiguousarray(bits).view(np.float64)
    absent = np.isnan(values)
    if c.kind == "date":
        days = np.where(absent, 0.0, values)
        return pa.array((days * 86_400_000_000).round().astype(np.int64), pa.timestamp("us"), mask=absent)
    return pa.array(values, mask=absent)


def _text(codes: Any, c: Coding) -> Any:
    import pyarrow as pa

    absent = codes == len(c.levels) + 1
    labels = pa.array(c.labels[:-1], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=absent), labels)


# ---- The rows that the first look remembers: those of the smallest hashed identities, whatever the order of ----

LOOK = 20_000  # rows that fix the codings
UNIT = 1 << 30  # steps of a score in one


class Look:
    """Bottom-k sample of rows by hashed identity; mergeable."""

    def __init__(self) -> None:
        self.n, self._total = 0, 0
        self.kept: list[tuple[Any, Any, dict[str, Any]]] = []
        self.limit = np.uint64(0xFFFFFFFFFFFFFFFF)  # no larger hash can be among the smallest

    @property
    def empty(self) -> bool:
        """No rows were seen."""
        return not self.kept

    @property
    def expected(self) -> float:
        """Sum of the scores, each rounded down to 2^-30: the same in any order."""
        return self._total / UNIT

    def add(self, ids: Any, p: Any, columns: Mapping[str, Any]) -> None:
        """Look at a batch: keep its smallest hashes only."""
        good = (p >= 0.0) & (p <= 1.0)
        self.n += int(good.sum())
        self._total += int(np.floor(p[good] * UNIT).astype(np.int64).sum())
        rows = np.flatnonzero(good & (ids <= self.limit))
        if len(rows) > LOOK:
            rows = rows[ids[rows] <= np.partition(ids[rows], LOOK - 1)[LOOK - 1]]
        self.kept.append(_cut(ids[rows], p[rows], {k: _taken(v, rows) for k, v in columns.items()}))
        self._settle(3 * LOOK)

    def merge(self, other: Look) -> None:
        """Add another look of the same columns."""
        self.n += other.n
        self._total += other._total
        self.kept += other.kept
        self._settle(3 * LOOK)

    def _settle(self, most: int) -> None:
        if sum(len(k[0]) for k in self.kept) > most:
            self.kept = [self.best()]
            self.limit = self.kept[0][0][-1]

    def best(self) -> tuple[Any, Any, dict[str, Any]]:
        """Return identities, scores and covariates of the sample, by increasing identity."""
        ids, p = (np.concatenate([k[i] for k in self.kept]) for i in (0, 1))
        return _cut(ids, p, {name: _joined([k[2][name] for k in self.kept], name) for name in self.kept[0][2]})

    def to_table(self) -> tuple[dict[str, int], Any]:
        """Return the counts, and the sample as an Arrow table: identity, score, covariates in their order."""
        import pyarrow as pa

        counts = {"n": self.n, "total": self._total}
        if self.empty:
            return counts, pa.table({})
        ids, p, columns = self.best()
        return counts, pa.Table.from_arrays([pa.array(ids), pa.array(p), *columns.values()], ["ids", "p", *columns])

    @classmethod
    def from_table(cls, counts: Mapping[str, int], table: Any) -> Look:
        """Rebuild what `to_table` returned."""
        made = cls()
        made.n, made._total = counts["n"], counts["total"]
        if table.num_columns:
            ids, p = (table.column(i).to_numpy() for i in (0, 1))
            names = table.schema.names[2:]
            made.kept = [(ids, p, {name: decoded(table.column(i + 2)) for i, name in enumerate(names)})]
        return made


def _cut(ids: Any, p: Any, columns: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Return the rows of the `LOOK` smallest identities, in order; rows of one identity by what they hold."""
    order = smallest(ids, lambda: (_content(columns, len(ids)), p), LOOK)
    return ids[order], p[order], {k: _taken(v, order) for k, v in columns.items()}


def _content(columns: Mapping[str, Any], n: int) -> Any:
    """Hash what rows hold, however their columns are stored: decides nothing but the order of rows of one identity."""
    import pyarrow as pa

    plain = [pa.nulls(n)]
    for column in columns.values():
        if is_date(column.type):
            plain.append(pa.array(as_days(column)))
        elif is_number(column.type):
            plain.append(pa.array(as_float(column, "", "covariate")))
        elif pa.types.is_string(column.type) or pa.types.is_boolean(column.type):
            plain.append(column)
    return row_ids(plain, 0)


def _taken(column: Any, rows: Any) -> Any:
    """Return some values in a plain layout; a dictionary is not spelt out for the others."""
    import pyarrow as pa

    return decoded((column if pa.types.is_dictionary(column.type) else decoded(column)).take(pa.array(rows)))


def _joined(chunks: Sequence[Any], name: str) -> Any:
    import pyarrow as pa

    try:
        table = pa.concat_tables([pa.table({"x": c}) for c in chunks], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise BadInput(
            f"covariate {name!r} is stored as different types in different files: store it one way"
        ) from None
    return decoded(table.column("x"))


# ---- Who a row is: one number that depends on its key, or on its file and row number, and never on its content ----


def identities(n: int, first_row: int, salt: int, keys: Any = None) -> Any:
    """Return one uint64 a row, mixed: `keys` are hashes of key columns, or None to use row numbers."""
    own = np.arange(first_row, first_row + n, dtype=np.uint64) if keys is None else keys
    return mix(own ^ np.uint64(salt))


def identities_of(n: int, seed: int) -> Any:
    """Return the identities of n rows in memory: those of the same rows read from one file."""
    return identities(n, 0, Spec(label="y", score="p", seed=seed).salt(""))


# ---- Whole rows of a source of any size, chosen by their identities: a uniform sample that fits in memory ----

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
