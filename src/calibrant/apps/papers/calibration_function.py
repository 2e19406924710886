"""The calibration function as Ciosek et al. reconstruct it: a kernel smoother, and a total variation denoiser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.apps.papers.bounds import (
    denoised,
    denoising_error,
    denoising_radius,
    derivative_bounds,
    perturbed,
    plug_in_bandwidth,
    population_transfer,
)
from calibrant.apps.papers.certificates import published_rows, published_stream
from calibrant.arguments import check_int, choice, flag, number
from calibrant.errors import BadInput
from calibrant.kernels.smooth import smooth
from calibrant.results import Curve
from calibrant.toolkit.data import takes_arrays

Floats = NDArray[np.float64]
METHOD = "papers.calibration_function"
MOST_POINTS = 2000


@takes_arrays
def calibration_function(
    data: Any,
    *,
    method: Literal["kernel", "total-variation"] = "kernel",
    grid: int | Sequence[float] = 101,
    bandwidth: float = 2**-6,
    perturb: bool = True,
    variation: float = 1.0,
    alpha: float = 0.05,
    seed: int = 0,
) -> Curve:
    r"""Reconstruct the calibration function from outcomes, by the surrogates of Ciosek et al.

    Estimand: the calibration function :math:`\eta(s) = P(Y = 1 | S = s)`, in probability units. These are the curves
    inside the published bounds, with what is proved of them. `diagnose.reliability_curve` tests and has a band.

    Parameters
    ----------
    data : Predictions
        Rows with labels `y` in {0, 1} and scores `p` in [0, 1]; no weights, no clusters.
    method : {"kernel", "total-variation"}
        The Nadaraya-Watson smoother of section 5, or the denoiser of section 4.
    grid : int from 2 to 2000, or increasing scores in [0, 1]
        Number of points, equally spaced from the smallest score to the largest; or the scores.
    bandwidth : float > 0
        Kernel only: `h` of the perturbation, which bounds the derivatives of `eta` by ``b1 = 1 / (2 h)`` and
        ``b2 = 3 / (2 h^2)`` (Lemma 1); they set the smoother's own bandwidth.
    perturb : bool
        Kernel only: draw each score again around `p` (equation 8), so that `S` is the perturbed score and its `eta` has
        these derivatives. If False `S` is the raw score, whose `eta` is then *assumed* to have them.
    variation : float >= 0
        Total variation only: the assumed bound `V` on the total variation of `eta`; in ``settings["error"]`` alone.
    alpha : float in (0, 0.5]
        Total variation only: error probability of ``settings["error"]``, a third for each of its three terms.
    seed : int
        Kernel only: fixes the perturbation.

    Returns
    -------
    Curve
        Columns: ``x`` (the score), ``rate`` (the reconstruction, in [0, 1]), ``gap`` (``rate - x``, positive where the
        model underpredicts), ``rows`` (within reach of the kernel; or on the constant piece), and, kernel only,
        ``error``: a bound on the expected distance ``E|rate - eta(x)|``, a probability, smaller is better. In
        ``settings``: kernel, ``smoothing_bandwidth`` and ``nearest_neighbour`` (points without a score in reach); total
        variation, ``pieces``, ``surrogate_variation`` and ``error``, a bound on the distance from `eta` averaged over
        scores. ``.chart()`` draws it.

    Raises
    ------
    BadInput
        A setting out of range, or fewer than two rows.
    NotComputable
        Weights, clusters, or a sketch.

    Notes
    -----
    **Assumes.** Independent, identically distributed rows. Kernel: nothing about the classifier if it is perturbed.
    Total variation: ``TV(eta) <= variation``, which no data can check.
    **Guarantee.** *Kernel.* At each point by itself and given the scores, the mean of ``|rate - eta(x)|`` over outcomes
    is at most ``error`` (equation 9, Lemma 6). It is a bound on a mean, not a band. *Total variation.* With probability
    at least ``1 - alpha``, ``E_s|rate(s) - eta(s)| <= settings["error"]`` (equation 5, Corollary 2).
    **Method.** *Kernel.* Weights ``(1 - u^2)^1.2`` with ``u = |x - s_i| / h'``, normalised to one; `h'` by the plug-in
    rule of Appendix E; where no score lies within `h'`, the nearest has all the weight; ``error`` is `g_T` of Lemma 6.
    *Total variation.* Equation 2 with `lambda` of Lemma 4, solved exactly by the taut string; between scores the value
    of the largest score at or below. Departures: (1) all rows make the curve, none is held out, as no error is measured
    on it. (2) Equal scores share one value (total variation). (3) Below all scores the first value goes on. (4)
    ``error`` is cut at 1. (5) ``delta`` in thirds, as Corollary 2 has it; the bound of Proposition 1 takes quarters, so
    its `lambda` is a little larger.
    **Cost.** One sort; then rows within reach times points, or linear. Under a second at a million rows.
    **Reads.** Rows.

    References
    ----------
    K. Ciosek, N. Felicioni, S. Ghiassian, J. Elenter Litwin, F. Tonolini, D. Gustafsson, E. Garcia Martin,
    C. Barcena Gonzales, R. Bertrand-Lalo, "Measuring Uncertainty Calibration", ICLR 2026, arXiv:2512.13872:
    equations 2, 5 and 9, Appendices B, C, E and H (Figure 5).

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20000)
    >>> data = cal.predictions(rng.random(20000) < p**2, p)
    >>> curve = cal.papers.calibration_function(data, method="total-variation", grid=[0.25, 0.5, 0.75])
    >>> [round(rate, 1) for rate in curve.columns["rate"]]
    [0.1, 0.2, 0.6]
    """
    kernel = choice("method", method, ("kernel", "total-variation")) == "kernel"
    h = number("bandwidth", bandwidth, least=1e-9, most=1e9, hint="such as 2**-6")
    most = number("variation", variation, least=0.0, most=1e9, hint="such as 1")
    drawn = flag("perturb", perturb)
    p, y = published_rows(data, "calibration_function", alpha, "upper")
    s = perturbed(p, h, published_stream(seed)) if kernel and drawn else p
    order = np.argsort(s, kind="stable")
    s, labels = np.ascontiguousarray(s[order]), y[order].astype(np.float64)
    x = _points(grid, s)
    if kernel:
        columns, settings = _smoothed(x, s, labels, h)
        settings |= {"bandwidth": h, "perturb": drawn, "seed": seed}
    else:
        columns, settings = _denoised(x, s, labels, alpha / 3, most)
        settings |= {"variation": most, "alpha": alpha}
    rate = np.clip(columns.pop("rate"), 0.0, 1.0)  # sums of weights, and slopes of a string, may be off by a rounding
    columns = {"x": x, "rate": rate, "gap": rate - x, **columns}
    return Curve(
        method=METHOD,
        columns={k: tuple(v.tolist()) for k, v in columns.items()},
        settings={"method": method, **settings},
    )


def _points(grid: int | Sequence[float], s: Floats) -> Floats:
    """The points: equally spaced between the ends of the sorted scores, or those given."""
    if isinstance(grid, (int, np.integer)):
        return np.unique(
            np.linspace(s[0], s[-1], check_int("grid", grid, 2, MOST_POINTS, of="points", hint="such as 101"))
        )
    try:
        x = np.asarray(grid, dtype=float)
    except (TypeError, ValueError):  # words, or rows of several lengths
        x = np.zeros(0)
    if x.ndim != 1 or not 1 <= len(x) <= MOST_POINTS or not ((x >= 0) & (x <= 1)).all() or (np.diff(x) <= 0).any():
        raise BadInput(f"grid: pass a number of points, or up to {MOST_POINTS:,} increasing scores between 0 and 1")
    return x


def _smoothed(x: Floats, s: Floats, labels: Floats, h: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """The kernel surrogate at the points; scores ascend."""
    slope, curvature = derivative_bounds(h)
    width = plug_in_bandwidth(s.size, slope, curvature)[1]
    rate, error, alone = smooth(x, s, labels, width, slope, curvature)
    rows = np.searchsorted(s, x + width, side="left") - np.searchsorted(s, x - width, side="right")
    settings = {"smoothing_bandwidth": width, "nearest_neighbour": int(alone)}
    return {"rate": rate, "rows": rows, "error": np.minimum(error, 1.0)}, settings


def _denoised(
    x: Floats, s: Floats, labels: Floats, delta: float, variation: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The total variation surrogate at the points, a step function of the score; scores ascend."""
    n = s.size
    knots, values = denoised(s, labels, denoising_radius(n, delta))
    at = np.maximum(np.searchsorted(knots, x, side="right") - 1, 0)
    # (1) rows of each constant piece
    piece = np.cumsum(np.diff(values, prepend=values[0]) != 0.0)
    rows = np.bincount(piece, np.diff(np.searchsorted(s, knots), append=n)).astype(int)
    # (2) Corollary 2: the error on the scores at hand, and what other scores add
    result = float(np.abs(np.diff(values)).sum())
    error = denoising_error(n, delta, variation) + population_transfer(n, variation + result, delta, delta)
    settings = {"pieces": len(rows), "surrogate_variation": result, "error": min(error, 1.0)}
    return {"rate": values[at], "rows": rows[piece[at]]}, settings
