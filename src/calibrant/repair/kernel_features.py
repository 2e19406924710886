"""Features of score and covariates by which a local correction is found: bells along each axis, and of all axes together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.repair.inputs import indicators
from calibrant.repair.kernel_shift import Line, bells, blocks, squared

KNOTS = 12
REAL = 1e-6  # share of the largest eigenvalue below which a direction of a kernel is left out


@dataclass(frozen=True)
class Kernel:
    """Bells around marks, and the matrix that makes of them features whose penalty is the sum of squares.

    Parameters
    ----------
    axes : tuple of int
        Which axes of the positions it reads.
    marks : float array of shape (k, axes)
    codes : int array of shape (k, level variables) or None
    width : float
    half : float array of shape (k, features)
    """

    axes: tuple[int, ...]
    marks: Any
    codes: Any
    width: float
    half: Any

    def features(self, z: Any, codes: Any) -> Any:
        """Return the features of rows."""
        read = None if self.codes is None else codes
        return bells(z[:, list(self.axes)], self.marks, self.width, read, self.codes) @ self.half

    def line(self, beta: Any) -> Line:
        """Return the bells along an axis, given coefficients of the features."""
        heights = self.half @ beta
        return self.axes[0], self.width, tuple(self.marks[:, 0].tolist()), tuple(heights.tolist())


@dataclass(frozen=True)
class Frame:
    """All features, fixed without a label.

    Parameters
    ----------
    lines : tuple of Kernel
        Along the axes that vary.
    joint : Kernel or None
    kept : tuple of tuple of int
        Levels that get a column.
    """

    lines: tuple[Kernel, ...]
    joint: Kernel | None
    kept: tuple[tuple[int, ...], ...]

    def columns(self, free: Any, z: Any, codes: Any) -> Any:
        """Return the unpenalised columns `free`, then lines, levels and joint features, of all rows."""
        widths = [free.shape[1], *(k.half.shape[1] for k in self.kernels)]
        levels = sum(map(len, self.kept))
        out = np.empty((len(z), sum(widths) + levels))
        for at in blocks(len(z)):
            parts = [free[at], *(k.features(z[at], codes[at]) for k in self.lines), indicators(codes[at], self.kept)]
            if self.joint is not None:
                parts.append(self.joint.features(z[at], codes[at]))
            out[at] = np.hstack(parts)
        return out

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Lines and joint kernel."""
        return self.lines if self.joint is None else (*self.lines, self.joint)


def frame_of(
    z: Any, codes: Any, kept: tuple[tuple[int, ...], ...], landmarks: int, bandwidth: float, rng: np.random.Generator
) -> Frame:
    """Fix the features of rows at positions `z` (the score first) with levels `codes`."""
    lines = tuple(k for j in range(z.shape[1]) if (k := _line(z, j, bandwidth)) is not None)
    return Frame(lines, _joint(z, codes, landmarks, bandwidth, rng), kept)


def _line(z: Any, axis: int, bandwidth: float) -> Kernel | None:
    knots = np.unique(np.quantile(z[:, axis], np.linspace(0.02, 0.98, KNOTS)))[:, None]
    if len(knots) < 2:
        knots = np.unique(z[:, axis])[[0, -1], None]
    if knots[0] == knots[-1]:
        return None
    return _kernel((axis,), knots, None, bandwidth)


def _joint(z: Any, codes: Any, landmarks: int, bandwidth: float, rng: np.random.Generator) -> Kernel | None:
    if z.shape[1] + codes.shape[1] < 2:
        return None
    rows = rng.choice(len(z), min(landmarks, len(z)), replace=False)
    places = np.unique(np.hstack([z[rows], codes[rows]]), axis=0)
    d = z.shape[1]
    if len(places) < 2:
        return None
    return _kernel(tuple(range(d)), places[:, :d], places[:, d:].astype(np.int32), bandwidth)


def _kernel(axes: tuple[int, ...], marks: Any, codes: Any, bandwidth: float) -> Kernel:
    d2 = squared(marks, marks, codes, codes)
    width = bandwidth * float(np.sqrt(np.median(d2[d2 > 1e-12])))
    values, vectors = np.linalg.eigh(bells(marks, marks, width, codes, codes))
    real = values > REAL * values[-1]
    return Kernel(axes, marks, codes, width, vectors[:, real] / np.sqrt(values[real]))
