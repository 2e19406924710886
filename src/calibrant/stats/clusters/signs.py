r"""How large a quadratic form can be, at most, over all patterns of signs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST = 256  # signs up to which the relaxation is solved: its cost grows with their square, and of its bound their cube
RANK = 24  # of the vectors that signs are relaxed to: more than the root of twice their number
SWEEPS = 10  # over all vectors: more gained nothing; the bound holds after any number


def largest_root(matrix: Floats) -> float:
    """The largest eigenvalue of a symmetric matrix, at least 0, with more than its rounding error added."""
    from scipy.linalg import eigvalsh

    k = len(matrix)
    if not k:
        return 0.0
    try:
        top = float(eigvalsh(matrix, subset_by_index=[k - 1, k - 1])[0])
    except np.linalg.LinAlgError:  # some builds of LAPACK fail for one root of a matrix of many equal ones: all, then
        top = float(np.linalg.eigvalsh(matrix)[-1])
    return max(top, 0.0) + 1e-13 * k * float(np.abs(matrix).max())


def root_bounds(g: Floats, reach: float) -> float:
    r"""An upper bound of ``f' G f`` over signs f: the least of four.

    With ``D`` the diagonal of G and ``off = G - D``: ``tr G + k lambda_max(off)``;
    ``tr G (1 + lambda_max(D^{-1/2} off D^{-1/2}))``; ``sum |G_cd|``; and `reach`.

    `g` (k, k): positive semidefinite. `reach`: what no pattern of signs exceeds, by the sizes of the clusters.
    """
    diagonal = np.diag(g)
    off, trace = g - np.diag(diagonal), float(diagonal.sum())
    root = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 0.0)  # 0: so is its row
    plain = trace + len(g) * largest_root(off)
    scaled = trace * (1.0 + largest_root(off * root * root[:, None]))
    return min(plain, scaled, float(np.abs(g).sum()), reach)


def relaxed(c: Floats) -> Floats:
    r"""Return d with a small sum and ``diag(d) - C`` nearly positive semidefinite.

    Maximises ``<C, V V'>`` over rows of length one, one row at a time (the mixing method, reference 1); then
    ``d_i = |sum_j C_ij v_j|`` solves its dual. Nothing is relied on: `bounded` holds for every d.

    `c` (k, k): symmetric, with zeros on its diagonal.

    References
    ----------
    .. [1] P.-W. Wang, W.-C. Chang, J. Z. Kolter (2017), "The mixing method", arXiv:1706.00476.
    """
    v = np.random.default_rng(0).normal(size=(len(c), RANK))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    for _ in range(SWEEPS):
        for i, row in enumerate(c):
            toward = row @ v
            length = float(np.sqrt(toward @ toward))
            if length > 0.0:
                v[i] = toward / length
    d: Floats = np.linalg.norm(c @ v, axis=1)
    return d


def bounded(c: Floats, d: Floats) -> float:
    """An upper bound of ``z' C z`` over signs z, whatever d is: ``sum d + k lambda_max(C - diag d)``."""
    return float(d.sum()) + len(c) * largest_root(c - np.diag(d))
