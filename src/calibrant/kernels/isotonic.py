"""The increasing sequence nearest to values with weights: compiled where values are many."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.runtime import few, kernel, sealed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def isotonic(values: ArrayLike, weights: ArrayLike) -> Floats:
    """Return the nondecreasing sequence that is nearest to values in weighted least squares.

    Parameters
    ----------
    values, weights : float64 arrays of shape (n,)
        Weights are above 0.

    Returns
    -------
    float64 array of shape (n,)

    Notes
    -----
    **Method.** Pool adjacent violators, as `scipy.optimize.isotonic_regression` runs it (Busing 2022, algorithm 1,
    doi:10.18637/jss.v102.c01): all three give the same bits.
    **Cost.** A microsecond a value in Python, a hundredth of that compiled.
    """
    given = sealed(values, np.float64), sealed(weights, np.float64)
    if few(len(given[0]), often=True):
        return np.array(_pooled(given[0].tolist(), given[1].tolist()), dtype=np.float64)
    fitted = np.empty(len(given[0]))
    _isotonic(*given, fitted, np.empty((2, len(fitted))), np.empty(len(fitted), dtype=np.int64))
    return fitted


@kernel
def _isotonic(values: Floats, weights: Floats, out: Floats, blocks: Floats, start: Ints) -> None:
    level, mass = blocks
    n, held, i = values.shape[0], 0, 0
    while i < n:
        x, w, at = values[i], weights[i], i
        if held and level[held - 1] >= x:
            # (1) and (2) as below
            held -= 1
            total = mass[held] * level[held] + w * x
            at = start[held]
            w += mass[held]
            x = total / w
            while i < n - 1 and x >= values[i + 1]:
                i += 1
                total += weights[i] * values[i]
                w += weights[i]
                x = total / w
            while held and level[held - 1] >= x:
                held -= 1
                total += mass[held] * level[held]
                at = start[held]
                w += mass[held]
                x = total / w
        level[held], mass[held], start[held] = x, w, at
        held += 1
        i += 1
    for block in range(held):
        out[start[block] : start[block + 1] if block + 1 < held else n] = level[block]


def _pooled(values: list[float], weights: list[float]) -> list[float]:
    level, mass, start = values[:1], weights[:1], [0]  # of each block
    i, n = 1, len(values)
    while i < n:
        x, w, at = values[i], weights[i], i
        if level[-1] >= x:
            # (1) The block before takes the value in, and the values after it that it reaches
            before = mass.pop()
            total = before * level.pop() + w * x
            at = start.pop()
            w += before
            x = total / w
            while i < n - 1 and x >= values[i + 1]:
                i += 1
                total += weights[i] * values[i]
                w += weights[i]
                x = total / w
            # (2) and the blocks before it that it has fallen to
            while level and level[-1] >= x:
                before = mass.pop()
                total += before * level.pop()
                at = start.pop()
                w += before
                x = total / w
        level.append(x)
        mass.append(w)
        start.append(at)
        i += 1
    ends = [*start[1:], n]
    return [x for x, a, b in zip(level, start, ends, strict=True) for _ in range(b - a)]
