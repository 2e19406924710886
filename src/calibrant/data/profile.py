"""The pre-pass: read the group columns once, and never the labels, to fix the levels of each variable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.data.columns import as_float, dated, decoded
from calibrant.data.spec import Kind, Variable
from calibrant.errors import BadInput

FEW = 12  # a number with at most this many values is a category
BINS = 6
TOP = 200  # levels kept of a category; the rest become "other"
IDENTIFIER = 100_000  # more distinct values than this are not a group column
COARSE = np.int64(-1) << np.int64(40)  # keeps 12 bits of a double's mantissa: whole numbers to 4096 stay exact


class Profile:
    """Counts of one column's values; mergeable, and small whatever the number of rows."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind: Kind = "category"
        self.counts: Counter[Any] = Counter()
        self.exact: set[float] = set()
        self.whole = True
        self.seen = False

    def update(self, column: Any) -> None:
        """Count a chunk of the column."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column, kind = _plain(column), self.kind
        if pa.types.is_null(column.type):
            return
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
            self._numbers(column)
            self._one_kind(kind)
            return
        if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
            self.kind = "month"
            column = dated(column, "month")
        else:
            self.kind = "category"
        if not (
            pa.types.is_dictionary(column.type) or pa.types.is_string(column.type) or pa.types.is_boolean(column.type)
        ):
            raise BadInput(f"group column {self.name!r} holds {column.type}: use text, numbers, dates or booleans")
        self._one_kind(kind)
        for item in pc.value_counts(column):
            value = item["values"].as_py()
            if value is not None and value != "":
                text = str(value).lower() if isinstance(value, bool) else str(value)
                self.counts[text] += item["counts"].as_py()
        self._guard()

    def _numbers(self, column: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self.kind = "number"
        values = as_float(column, self.name, "group")
        values = values[~np.isnan(values)] + 0.0  # minus zero is zero
        if np.isinf(values).any():
            raise BadInput(f"group column {self.name!r} holds infinite values: replace or cap them")
        if self.whole:
            self.whole = bool((values == np.floor(values)).all())
        coarse = (values.view(np.int64) & COARSE).view(np.float64)
        counted = pc.value_counts(pa.array(coarse))
        for value, count in zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True):
            self.counts[value] += count
        if len(self.exact) <= FEW:
            self.exact.update(pc.unique(pa.array(values)).to_pylist()[: FEW + 1])

    def _one_kind(self, before: Kind) -> None:
        if self.seen and before != self.kind:
            first, second = sorted((before, self.kind))
            raise BadInput(
                f"group column {self.name!r} holds {first} values in one place and {second} values in another: "
                "store it one way in every file"
            )
        self.seen = True

    def _guard(self) -> None:
        if len(self.counts) > IDENTIFIER:
            raise BadInput(
                f"group column {self.name!r} has more than {IDENTIFIER:,} distinct values: it looks like an identifier; "
                "group by something coarser"
            )

    def merge(self, other: Profile) -> None:
        """Add the counts of another part of the column."""
        if not other.seen:
            return
        kind, self.kind = self.kind, other.kind
        self._one_kind(kind)
        self.counts.update(other.counts)
        self.whole &= other.whole
        if len(self.exact) <= FEW:
            self.exact |= other.exact
        self._guard()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.name,
            "kind": self.kind,
            "counts": list(self.counts.items()),
            "exact": list(self.exact),
            "whole": self.whole,
            "seen": self.seen,
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Profile:
        """Rebuild from plain data."""
        made = cls(d["name"])
        made.kind, made.whole, made.seen = d["kind"], d["whole"], d["seen"]
        made.counts, made.exact = Counter(dict(map(tuple, d["counts"]))), set(d["exact"])
        return made

    def variable(self, edges: tuple[float, ...] | None = None) -> Variable:
        """Fix the levels: values, or bins at `edges` if given, or bins at round numbers."""
        if edges is not None:
            if self.kind != "number":
                raise BadInput(f"bins for {self.name!r}: it is not a number; leave its bins out")
            if list(edges) != sorted(set(edges)):
                raise BadInput(f"bins for {self.name!r} must increase: {edges}")
            return Variable(name=self.name, kind="number", edges=edges, whole=self.whole and _whole(edges))
        if self.kind == "number":
            if len(self.exact) <= FEW:
                values = tuple(f"{v:.0f}" if v == int(v) else repr(v) for v in sorted(self.exact))
                return Variable(name=self.name, kind="category", values=values)
            chosen = round_edges(self.counts)
            return Variable(name=self.name, kind="number", edges=chosen, whole=self.whole and _whole(chosen))
        return self._category()

    def _category(self) -> Variable:
        counts, kind = self.counts, self.kind
        if kind == "month" and len(counts) > 24:
            kind, counts = "year", Counter()
            for month, count in self.counts.items():
                counts[month[:4]] += count
        if len(counts) > TOP and max(counts.values()) < 20:
            raise BadInput(
                f"group column {self.name!r} has {len(counts):,} distinct values and none on 20 rows: "
                "it looks like an identifier; group by something coarser"
            )
        kept = sorted(counts, key=lambda v: (-counts[v], v))[:TOP]
        values = tuple(sorted(kept, key=_natural))
        return Variable(name=self.name, kind=kind, values=values, folded=len(counts) - len(kept))


def _plain(column: Any) -> Any:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return (
        column
        if pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type)
        else decoded(column)
    )


def _whole(edges: tuple[float, ...]) -> bool:
    return all(e == int(e) for e in edges)


def _natural(text: str) -> tuple[int, float, str]:
    """Sort numbers by value before text by letter, so that 10 follows 9."""
    try:
        return (0, float(text), text)
    except ValueError:
        return (1, 0.0, text)


def round_edges(counts: Counter[float]) -> tuple[float, ...]:
    """Choose bin edges at round numbers: equal steps if they share the rows out, else rounded quantiles."""
    values = np.array(sorted(counts))
    weight = np.array([counts[v] for v in values], dtype=float)
    cumulative = np.cumsum(weight) / weight.sum()

    def quantile(q: float) -> float:
        return float(values[min(int(np.searchsorted(cumulative, q)), len(values) - 1)])

    low, high = quantile(0.02), quantile(0.98)
    raw = (high - low) / BINS
    if raw > 0:
        scale = 10.0 ** np.floor(np.log10(raw))
        step = float(scale * min((1, 2, 2.5, 5, 10), key=lambda m: abs(m * scale - raw)))
        ticks = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
        ticks = np.unique(np.round(ticks, 12))
        share = np.diff([0.0, *cumulative[np.maximum(np.searchsorted(values, ticks) - 1, 0)], 1.0])
        if len(ticks) >= 3 and share.max() < 0.6:
            return tuple(float(t) for t in ticks)
    picked = {float(f"{quantile(j / BINS):.3g}") for j in range(1, BINS)}
    return tuple(sorted(e for e in picked if values[0] < e <= values[-1]))
