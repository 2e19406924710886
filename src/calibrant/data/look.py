"""The rows that the first look remembers: those of the smallest hashed identities, whatever the order of reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.data.coding import as_days, is_date, is_number
from calibrant.data.columns import as_float, decoded, row_ids
from calibrant.data.sample import smallest
from calibrant.errors import BadInput

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
