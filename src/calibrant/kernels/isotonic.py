"""The increasing sequence nearest to values with weights: compiled where values are many."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.runtime import as_readonly, few, kernel

Floats = NDArray[np.float64]
Values = Floats | list[float]
Starts = NDArray[np.int64] | list[int]


def isotonic(values: ArrayLike, weights: ArrayLike) -> Floats:
    """The nondecreasing sequence that is nearest to values in weighted least squares.

    `values`, `weights`: float64 of shape (n,); weights are above 0. Returned: float64 of shape (n,).

    Notes
    -----
    **Method.** Pool adjacent violators, as `scipy.optimize.isotonic_regression` runs it (Busing 2022, algorithm 1,
    doi:10.18637/jss.v102.c01): all three give the same bits.
    **Cost.** A microsecond a value in Python, a hundredth of that compiled.
    """
    inputs = as_readonly(values, np.float64), as_readonly(weights, np.float64)
    n = len(inputs[0])
    fitted = np.empty(n)
    if few(n, often=True):  # lists, whose values plain Python reads faster than those of arrays
        _pool(inputs[0].tolist(), inputs[1].tolist(), fitted, [0.0] * n, [0.0] * n, [0] * n)
    else:
        _compiled(*inputs, fitted, np.empty(n), np.empty(n), np.empty(n, dtype=np.int64))
    return fitted


def _pool(values: Values, weights: Values, out: Floats, level: Values, mass: Values, start: Starts) -> None:
    """Write the fit; the last three hold each block's level, weight and first value."""
    n, kept, i = len(values), 0, 0
    while i < n:
        x, w, at = values[i], weights[i], i
        if kept and level[kept - 1] >= x:
            # (1) The block before takes the value in, and the values after it that it reaches
            kept -= 1
            total = mass[kept] * level[kept] + w * x
            at = start[kept]
            w += mass[kept]
            x = total / w
            while i < n - 1 and x >= values[i + 1]:
                i += 1
                total += weights[i] * values[i]
                w += weights[i]
                x = total / w
            # (2) and the blocks before it that it has fallen to
            while kept and level[kept - 1] >= x:
                kept -= 1
                total += mass[kept] * level[kept]
                at = start[kept]
                w += mass[kept]
                x = total / w
        level[kept], mass[kept], start[kept] = x, w, at
        kept += 1
        i += 1
    for block in range(kept):
        out[start[block] : start[block + 1] if block + 1 < kept else n] = level[block]


_compiled = kernel(_pool)
