"""What a sketch holds beside its score cells: sums along covariates and for the local test."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

import numpy as np

from calibrant.data.coding import Coding, Rows, as_days, encode, is_date
from calibrant.data.columns import as_float, decoded
from calibrant.data.local import LocalSums
from calibrant.data.sample import identities
from calibrant.data.spec import Spec
from calibrant.errors import BadInput

# ---- What a sketch may hold beside its score cells: parts that see each sound row once and add up ----

Take = Callable[[int], Any]


class Part(Protocol):
    """Integer sums, or a sample by identity: the same however the rows were split, ordered or spread."""

    def update(self, rows: Rows) -> None:
        """Add rows."""

    def merge(self, other: Self) -> None:
        """Add another part of the same spec."""

    def arrays(self) -> dict[str, Any]:
        """Return the state as int64 arrays by name, the same bits for the same rows."""

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Tell whether arrays of these shapes can be this part's state."""

    def load(self, arrays: Mapping[str, Any]) -> None:
        """Take over the state that `arrays` described."""


def parts_of(spec: Spec) -> dict[str, Any]:
    """Return the empty parts that a spec asks for, by name."""
    from calibrant.data.sample import Sample

    parts: dict[str, Any] = {"fine": Fine(spec)} if spec.codings else {}
    parts |= {"sample": Sample(spec)} if spec.sample else {}
    return parts | ({"local": LocalSums(spec.local)} if spec.local else {})


def sound_rows(
    spec: Spec, p: Any, y: Any, columns: Mapping[str, Any], own: Any, first_row: int, salt: int
) -> Rows | None:
    """Return the rows whose score and label are sound, covariates encoded; None if there are none."""
    import pyarrow as pa

    table = pa.table({c.name: columns[c.name] for c in spec.codings})
    ids = identities(len(p), first_row, salt, own) if spec.sample or spec.local else np.zeros(len(p), dtype=np.uint64)
    good = (p >= 0.0) & (p <= 1.0) & ((y == 0) | (y == 1))
    if not good.all():
        p, y, ids = p[good], y[good], ids[good]
        table = table.filter(pa.array(good)) if table.num_columns else table
    return Rows(p, y, ids, encode(table, spec.codings, len(p), spec.local is not None)) if len(p) else None


def state_of(parts: Mapping[str, Part]) -> tuple[dict[str, dict[str, list[int]]], bytes]:
    """Return the shapes of all parts' arrays, and their bytes one after the other; in the order of names."""
    held = {name: dict(sorted(part.arrays().items())) for name, part in sorted(parts.items())}
    shapes = {name: {k: list(a.shape) for k, a in arrays.items()} for name, arrays in held.items()}
    return shapes, b"".join(a.astype("<i8").tobytes() for arrays in held.values() for a in arrays.values())


def load_state(parts: Mapping[str, Part], shapes: Mapping[str, Mapping[str, list[int]]], take: Take) -> None:
    """Load what `state_of` returned into empty parts; `take` returns its next so many whole numbers."""
    for name, part in sorted(parts.items()):
        sizes = sorted(shapes[name].items())
        part.load({key: take(math.prod(shape)).astype(np.int64).reshape(shape) for key, shape in sizes})


# ---- Cells along every covariate: integer sums from which curves, rankings and errors along a variable are read ----

CELLS = 1024  # along a number or a date; distinct values where there are fewer
MOST = 1 << 31  # rows of a cell, side and label: so many squares of 16-bit scores stay within 64 bits
FIELDS = 4  # rows, sum of the 30-bit score, sum of the squared 16-bit score, sum of the 16-bit place in the cell


def ends_of(column: Any, name: str) -> tuple[float, ...]:
    """Return where the cells along a number or date begin, and where the last ends; labels play no part.

    At most `CELLS` distinct values have a cell each, from the value up to the next; otherwise cells hold about equally
    many of the rows seen, and equal values share one.
    """
    column = decoded(column)
    values = as_days(column) if is_date(column.type) else as_float(column, name, "covariate")
    values = np.sort(values[~np.isnan(values)])
    if not len(values):
        return ()
    starts = np.unique(values)
    if len(starts) > CELLS:
        starts = np.unique(values[np.arange(CELLS) * len(values) // CELLS])
    return (*starts.tolist(), float(values[-1]))


class Fine:
    """Int64 sums per cell, side of the score (below one half or not) and label, for every covariate of the spec.

    The score is read as ``q = min(floor(p 2^30), 2^30 - 1)``; its square as that of ``q >> 14``. A value's place in its
    cell is read in 65,535 steps, and one outside the range first seen counts at the range's end. The last cell of a
    number or date is for missing values.
    """

    def __init__(self, spec: Spec) -> None:
        self.numbers = [c for c in spec.codings if c.kind in ("number", "date")]
        self.levels = [c for c in spec.codings if c.kind == "category"]
        self.held = {
            c.name: np.zeros((cells_of(c), 2, 2, FIELDS), dtype=np.int64) for c in (*self.numbers, *self.levels)
        }

    def update(self, rows: Rows) -> None:
        """Add rows."""
        from calibrant.kernels.strata import fine_sums, locate

        p, y = np.ascontiguousarray(rows.p, dtype=np.float64), rows.y
        for j, c in enumerate(self.numbers):
            x, ends = np.ascontiguousarray(rows.encoded.numbers[:, j]), np.array(c.cells)
            fine_sums(locate(x, ends[1:-1]), x, ends, p, y, self.held[c.name])
        for j, c in enumerate(self.levels):
            fine_sums(np.ascontiguousarray(rows.encoded.codes[:, j]), None, None, p, y, self.held[c.name])
        self._guard()

    def merge(self, other: Fine) -> None:
        """Add the sums of another part of the same spec."""
        for name, held in self.held.items():
            held += other.held[name]
        self._guard()

    def _guard(self) -> None:
        for name, held in self.held.items():
            if int(held[..., 0].max(initial=0)) > MOST:
                raise BadInput(
                    f"covariate {name!r}: more than {MOST:,} rows share one value, outcome and side of 0.5; sketch fewer rows "
                    "at a time, or leave it out of variables"
                )

    def arrays(self) -> dict[str, Any]:
        """Return the sums by covariate."""
        return dict(self.held)

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Tell whether arrays of these shapes can be this part's state."""
        return {name: held.shape for name, held in self.held.items()} == dict(shapes)

    def load(self, arrays: Mapping[str, Any]) -> None:
        """Take over the sums that `arrays` described."""
        self.held = {name: np.array(arrays[name]) for name in self.held}


def cells_of(coding: Coding) -> int:
    """Return how many cells a covariate has; a number's cells of values, and one of missing values."""
    if coding.kind == "constant":
        return 0
    return len(coding.labels) if coding.kind == "category" else max(len(coding.cells) - 1, 1) + 1


# ---- Sums over rows that the local test reads: whole numbers, the same however the rows were split, ordered ----
