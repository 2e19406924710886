"""What a sketch may hold beside its score cells: parts that see each sound row once and add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from calibrant.data.coding import Encoded, encode
from calibrant.data.identity import identities
from calibrant.data.spec import Spec

Take = Callable[[int], Any]


@dataclass(frozen=True)
class Rows:
    """Sound rows of one batch.

    Parameters
    ----------
    p : float64 array of shape (n,)
    y : int8 array of shape (n,)
    ids : uint64 array of shape (n,)
        Identities, mixed with the seed; zeros where no part of the spec uses them.
    encoded : Encoded
        The covariates that the spec codes.
    """

    p: Any
    y: Any
    ids: Any
    encoded: Encoded


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
    from calibrant.data.fine import Fine
    from calibrant.data.local import LocalSums
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
