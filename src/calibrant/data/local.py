"""Sums over rows that the local test reads: whole numbers, the same however the rows were split, ordered or spread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.data.local_plan import cell_of, joint_points, salt_of
from calibrant.data.local_spec import LocalSpec
from calibrant.kernels.features_reference import (
    COORDINATE,
    HALF,
    ROWS,
    SCORE_STEPS,
    UNIT,
    coordinates,
    flagged,
    logits,
    variances,
)

if TYPE_CHECKING:
    from calibrant.data.coding import Encoded
    from calibrant.data.parts import Rows

LIMB = 20  # bits of the lower limb of a large sum
SQUARE = 1 << 16  # steps of a squared residual in one
BESIDE = 4  # columns beside the weighted features: outcome, two halves of the score, one
PANEL = 64  # columns of the Gram matrix multiplied at once
COUNTS = ("rows", "cases", "contradicted")


class Features:
    """From rows to whole-numbered features."""

    def __init__(self, spec: LocalSpec) -> None:
        from calibrant.kernels.features import Tables

        self.spec = spec
        self.tables = Tables([q.table for q in spec.lines], 2 + spec.joint)
        self.landmarks = np.array(spec.landmarks, dtype=np.float64)
        self.whitening = np.array(spec.whitening, dtype=np.float64) / COORDINATE  # exact: a power of two

    def of(self, p: Any, e: Encoded, out: Any) -> None:
        """Write the features into `out`, float64 of shape (rows, columns): whole, within plus and minus 8192."""
        from calibrant.kernels.features import bells

        s = self.spec
        z = np.column_stack([s.score.scaled(p), e.scaled]) if s.score.kind != "constant" else e.scaled
        fixed = coordinates(z)
        out[:, 0], out[:, 1] = 1.0, logits(p)
        if s.joint:
            near = bells(joint_points(fixed, e.codes, s.levels), self.landmarks, s.scale)
            smooth = near @ self.whitening
            np.rint(smooth, out=smooth)
            np.clip(smooth, -UNIT, UNIT, out=out[:, 2 : 2 + s.joint])
        self.tables.write(cell_of(fixed), out)
        if s.levels:
            out[:, s.starts[len(s.lines)] :] = 0.0
            columns = np.column_stack([q.column[e.codes[:, j]] for j, q in enumerate(s.levels)])
            flagged(columns, s.starts[len(s.lines) : -1], out)


class LocalSums:
    """Sums of features times outcomes, simulated outcomes, scores and null variances.

    Parameters
    ----------
    spec : LocalSpec
    """

    def __init__(self, spec: LocalSpec) -> None:
        self.spec = spec
        self.features = Features(spec)
        d = spec.columns
        self.counts = np.zeros(len(COUNTS), dtype=np.int64)
        self.hits = np.zeros((d, 1 + spec.draws), dtype=np.int64)
        self.means = np.zeros((d, 3), dtype=np.int64)
        self.gram = np.zeros((2, d, d), dtype=np.int64)
        self.diagonal = np.zeros((2, 1), dtype=np.int64)
        self._room = np.empty((ROWS, d)), np.empty((ROWS, d + BESIDE))

    def update(self, rows: Rows) -> None:
        """Add rows."""
        for start in range(0, len(rows.p), ROWS):
            at = slice(start, start + ROWS)
            f = self._room[0][: len(rows.p[at])]
            self.features.of(rows.p[at], part_of(rows.encoded, at), f)
            self._add(rows.p[at], rows.y[at], rows.ids[at], f)

    def _add(self, p: Any, y: Any, ids: Any, f: Any) -> None:
        n, d = f.shape
        self.counts += np.array([n, np.count_nonzero(y), np.count_nonzero(np.where(y == 1, p == 0.0, p == 1.0))])
        steps = np.rint(p * SCORE_STEPS).astype(np.int64)
        left = self._room[1][:n]
        for j, column in enumerate((y, steps >> HALF, steps & ((1 << HALF) - 1), 1.0)):
            left[:, j] = column
        np.multiply(f, variances(p, ids)[:, None], out=left[:, BESIDE:])
        for first in range(0, d, PANEL):
            part = slice(first and first + BESIDE, first + BESIDE + PANEL)
            product = left[:, part].T @ f[:, first:]
            if not first:
                self.hits[:, 0] += product[0].astype(np.int64)
                self.means += product[1:BESIDE].T.astype(np.int64)
                product = product[BESIDE:]
            add(self.gram[:, first : first + PANEL, first:], product)
        if self.spec.draws:
            self._simulate(p, ids, f)
        joint = f[:, 2 : 2 + self.spec.joint]
        square = np.rint((y - p) ** 2 * SQUARE)
        add(self.diagonal, np.atleast_1d(np.rint(np.einsum("ij,ij->i", joint, joint) / UNIT) @ square))

    def _simulate(self, p: Any, ids: Any, f: Any) -> None:
        from calibrant.kernels.draws import outcomes

        drawn = outcomes(ids, p, 0, self.spec.draws, salt_of(self.spec.seed))
        self.hits[:, 1:] += (f.astype(np.float32).T @ drawn.astype(np.float32)).astype(np.int64)

    def merge(self, other: LocalSums) -> None:
        """Add other sums of the same spec."""
        self.counts += other.counts
        self.hits += other.hits
        self.means += other.means
        for mine, theirs in ((self.gram, other.gram), (self.diagonal, other.diagonal)):
            mine += theirs
            carry(mine)

    def arrays(self) -> dict[str, Any]:
        """Return the state."""
        return {name: getattr(self, name) for name in ("counts", "hits", "means", "gram", "diagonal")}

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Tell whether arrays of these shapes can be this part's state."""
        return {name: held.shape for name, held in self.arrays().items()} == dict(shapes)

    def load(self, arrays: Mapping[str, Any]) -> None:
        """Take over the state that `arrays` described."""
        for name, values in arrays.items():
            setattr(self, name, values)


def part_of(e: Encoded, at: slice) -> Encoded:
    """Return some of the rows."""
    return replace(e, numbers=e.numbers[at], scaled=e.scaled[at], codes=e.codes[at])


def add(limbs: Any, more: Any) -> None:
    """Add whole numbers (exact in float64) to sums kept as two limbs."""
    limbs[0] += more.astype(np.int64)
    carry(limbs)


def carry(limbs: Any) -> None:
    """Leave `LIMB` bits in the lower limb, so that equal sums have equal limbs."""
    limbs[1] += limbs[0] >> LIMB
    limbs[0] &= (1 << LIMB) - 1


def joined(limbs: Any) -> Any:
    """Return sums kept as two limbs as float64."""
    return np.ldexp(limbs[1].astype(np.float64), LIMB) + limbs[0]
