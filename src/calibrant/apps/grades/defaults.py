"""How surprising the defaults of a grade are, where one factor moves them together; and what colour that has."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Light = Literal["green", "amber", "red"]
END, STEP = 9.0, 0.002  # the factor's normal law: beyond the end lies 2e-19 of it


def default_tails(defaults: ArrayLike, customers: ArrayLike, pd: ArrayLike, rho: float) -> Floats:
    r"""The probability of at least so many defaults, at the PD, with correlation `rho`.

    ``P(D >= d) = E P(Bin(n, p(Z)) >= d)``, ``p(z) = Phi((Phi^-1(PD) + sqrt(rho) z) / sqrt(1 - rho))`` with one standard
    normal factor Z (Vasicek 2002). Without correlation the exact binomial tail. As the tail of the law itself it is at
    most ``a`` with probability at most ``a``, at every number of customers.
    """
    from scipy.special import betainc, ndtr, ndtri

    d, n, p = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (defaults, customers, pd)))
    a, b = np.maximum(d, 1.0), n - np.maximum(d, 1.0) + 1.0  # P(Bin(n, p) >= d) = I_p(d, n - d + 1), for d from 1
    if rho == 0.0:
        return np.where(d > 0, betainc(a, b, p), 1.0)
    # 1. the factor on a fine grid, with its normal weights (trapezes; exact to 1e-12 for smooth tails)
    z = np.linspace(-END, END, round(2 * END / STEP) + 1)
    weight = np.exp(-0.5 * z**2) * (STEP / math.sqrt(2.0 * math.pi))
    # 2. the PD at each state of the factor; 3. the binomial tail there, averaged
    moved = ndtr((ndtri(p)[..., None] + math.sqrt(rho) * z) / math.sqrt(1.0 - rho))
    tails = betainc(a[..., None], b[..., None], moved)
    return np.where(d > 0, np.minimum(tails @ weight, 1.0), 1.0)


def light(p_value: float, levels: tuple[float, float]) -> Light:
    """Green above the first level, red at most the second, amber between."""
    if p_value > levels[0]:
        return "green"
    return "amber" if p_value > levels[1] else "red"
