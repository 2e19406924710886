"""A uniform sample of whole rows, chosen by their identities: the same however the rows were split or ordered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calibrant.data.coding import Coding
from calibrant.data.parts import Rows
from calibrant.data.predictions import Predictions
from calibrant.data.spec import Spec
from calibrant.errors import BadInput
from calibrant.kernels.reference import mix

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
