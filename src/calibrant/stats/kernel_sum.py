"""Sums over all pairs of rows under a Gaussian kernel, a tile at a time: the matrix is never held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

TILE = 256
SAMPLE = 512  # rows whose distances set the width
EQUAL = 1e-12  # squared distance, beside the largest from the middle, that is rounding


@dataclass(frozen=True)
class Kernel:
    r"""The kernel ``exp(-|w_i - w_j|^2 / 2 - sum_a g_a 1{c_ia != c_ja})``, one at i = j.

    Parameters
    ----------
    points : float64 array of shape (rows, d)
        Coordinates, already divided by their widths.
    codes : int32 array of shape (rows, categories)
        Levels.
    penalties : float64 array of shape (categories,)
        What a differing level subtracts from the exponent; infinite for a delta kernel.
    """

    points: Any
    codes: Any
    penalties: Any

    @cached_property
    def rows(self) -> int:
        """Rows."""
        return len(self.points)

    def tiles(self, dtype: Any, size: int) -> Iterator[tuple[slice, slice, Any]]:
        """Yield ``(rows, columns, block)`` of the upper triangle, row block by row block; zero where i = j.

        The exponent is one product of ``[w, -|w|^2 / 2, 1]`` with ``[w, 1, -|w|^2 / 2]``. A block is valid until the
        next one is asked for.
        """
        w = self.points - self.points.mean(axis=0)  # nearer the origin the exponent cancels less
        half, one = -0.5 * np.einsum("ij,ij->i", w, w)[:, None], np.ones((len(w), 1))
        left, right = np.hstack([w, half, one]).astype(dtype), np.hstack([w, one, half]).astype(dtype)
        space = np.empty(size * size, dtype)
        for i in range(0, self.rows, size):
            mine = slice(i, min(i + size, self.rows))
            for j in range(i, self.rows, size):
                other = slice(j, min(j + size, self.rows))
                shape = mine.stop - i, other.stop - j
                block = space[: shape[0] * shape[1]].reshape(shape)
                np.matmul(left[mine], right[other].T, out=block)
                np.minimum(block, 0.0, out=block)
                for a, penalty in enumerate(self.penalties):
                    block[self.codes[mine, a][:, None] != self.codes[other, a]] -= dtype(penalty)
                np.exp(block, out=block)
                if i == j:
                    np.fill_diagonal(block, 0.0)
                yield mine, other, block


def off_diagonal(kernel: Kernel, vectors: Any, fixed: Any = None, tile: int = TILE) -> tuple[Any, Any]:
    r"""Return ``sum_{i != j} v_i K_ij v_j`` of each column v, and ``sum_{j != i} K_ij f_j`` of each column f.

    Parameters
    ----------
    kernel : Kernel
    vectors : float32 or float64 array of shape (rows, m)
        Their type is that of the tiles and the products; sums over tiles are in float64.
    fixed : float64 array of shape (rows, k), optional
    tile : int
        Rows and columns of a tile: memory, and rounding, but no other effect.

    Returns
    -------
    float64 arrays of shapes (m,) and (rows, k)
    """
    dtype = vectors.dtype.type
    f = np.zeros((kernel.rows, 0)) if fixed is None else fixed
    g = f.astype(dtype)
    total, product = np.zeros(vectors.shape[1]), np.zeros(f.shape)
    space = np.empty((tile, vectors.shape[1]), dtype)
    for mine, other, block in kernel.tiles(dtype, tile):
        out = space[: mine.stop - mine.start]
        np.matmul(block, vectors[other], out=out)
        out *= vectors[mine]
        total += (1.0 if mine == other else 2.0) * out.sum(axis=0, dtype=np.float64)
        if g.shape[1]:
            product[mine] += block @ g[other]
            if mine != other:
                product[other] += block.T @ g[mine]
    return total, product


def typical_distance(kernel: Kernel, order: Any, sample: int = SAMPLE) -> float:
    """Return the median non-zero distance, ``sqrt(-2 log K)``, among the rows that come first in `order`; or 1.

    Parameters
    ----------
    order : array of shape (rows,)
        Anything that sorts the rows at random, such as their identities.
    """
    at = np.argpartition(order, sample)[:sample] if len(order) > sample else np.arange(len(order))
    few = Kernel(kernel.points[at], kernel.codes[at], kernel.penalties)
    w = few.points - few.points.mean(axis=0)
    own = np.einsum("ij,ij->i", w, w)
    square = own[:, None] + own - 2.0 * (w @ w.T)
    square[square < EQUAL * own.max(initial=0.0)] = 0.0
    for a, penalty in enumerate(few.penalties):
        square += 2.0 * penalty * (few.codes[:, a][:, None] != few.codes[:, a])
    found = square[square > 0]
    return float(np.sqrt(np.median(found))) if len(found) else 1.0
