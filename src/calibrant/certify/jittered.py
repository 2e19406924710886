"""The certificate of a classifier that perturbs its score a little, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant.arguments import checked_steps, positive
from calibrant.certify.certificate import Certificate, Setting, certificate
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Curve, Estimate, Side
from calibrant.views.population import checked_bandwidth, shares
from calibrant.views.sample import everyone

# ---- The seed paper's setting: the certificate of a classifier that perturbs its score a little ----


@certificate(order=40, settings=(Setting("bandwidth", 2**-6, "H", "how far the score is moved"),))
@takes_arrays
def jittered(
    data: Predictions | Sketch,
    *,
    bandwidth: float = 2**-6,
    alpha: float = 0.05,
    side: Side = "two-sided",
    seed: int = 0,
) -> Estimate:
    r"""Certify the average calibration error of the score after a hyperbolic-secant jitter.

    Estimand: ``CE = E|s - E[Y|s]|`` where s is drawn with density proportional to ``sech((s - p) / h)`` on [0, 1]; in
    probability units. On the grid of the sketch: p is rounded to the middle of one of ``2^14`` cells and s is the
    middle of another.

    Parameters
    ----------
    data : Predictions or Sketch
    bandwidth : float
        h. Fixed before the labels are seen: choosing it on these rows voids the guarantee; see `jitter_bandwidth`.
    alpha : float in (0, 0.5]
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Deals the rows into blocks; used by the lower end only. Nothing is sampled.

    Returns
    -------
    Estimate
        ``value`` is the debiased plug-in, moved into the interval; smaller is better.

    Notes
    -----
    **Assumes.** Independent rows from one distribution.
    **Guarantee.** Finite-sample, about the jittered classifier. Where scores pile up on one value the jitter alone
    costs about ``1.17 h``, so the lower end is no evidence against the model; use `raw_lower` for that.
    **Method.** Upper end: Theorem U for the jitter; lower end: Theorem L with a sign per grid point. Both are
    sums over the grid by FFT; there is no smoothing bias, no derivative bound and no quadrature, which is why a
    gap of 0.02 takes about 1e4 rows and not 1e7.
    **Cost.** Linear in the rows, then about 0.2 s whatever their number.
    **Reads.** The sketch.

    References
    ----------
    Ciosek et al., Measuring Uncertainty Calibration, section 5 (the jitter). The certificates are this project's.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p, p)
    >>> bool(cal.certify.jittered(data, side="upper").interval.high < 0.02)
    True
    """
    from calibrant.stats.jitter import jittered_estimate, jittered_lower, jittered_upper

    spend = shares(alpha, side)
    q = everyone(data, seed)
    h = checked_bandwidth(bandwidth, q.grid)
    declared = Certificate(
        "jittered",
        q,
        f"the score jittered by {h:g}",
        lambda delta, seed: jittered_lower(q.cells, h, delta, seed),
        lambda delta: (jittered_upper(q.cells, h, delta), {}),
        estimate=jittered_estimate(q.cells, h),
        display={"bandwidth": h, "grid": q.grid},
    )
    return declared.run(spend, 1.0 - alpha, seed)


# ---- What a rounded or jittered classifier loses, exactly ----


@takes_arrays
def jitter_cost(
    data: Predictions | Sketch,
    *,
    bandwidths: float | Sequence[float] = 2**-6,
    steps: int | Sequence[int] = (),
    seed: int = 0,
) -> Curve:
    r"""Compute the expected AUROC, Brier score and log loss of jittered and rounded classifiers.

    Estimand: the expectation over the jitter, on these rows, of each score; no sampling.

    Parameters
    ----------
    data : Predictions or Sketch
    bandwidths : float or sequence of float
        Jitters to look at.
    steps : int or sequence of int
        Roundings to look at.
    seed : int
        Not used by the numbers; kept so that every function takes one.

    Returns
    -------
    Curve
        Columns ``display`` ("as it is", "jittered", "rounded"), ``bandwidth``, ``steps`` (zero where not meant),
        ``auroc`` (larger is better), ``brier``, ``log_loss`` (smaller is better; infinite where an event is shown as 0
        or a non-event as 1).

    Notes
    -----
    **Assumes.** Nothing: these are properties of the rows given.
    **Guarantee.** Exact for the jittered and rounded classifiers of `jittered` and `rounded`. "As it is" is read at
    the mean score of each of ``2^14`` cells.
    **Method.** Expectations under the transition kernel are convolutions; ties in the AUROC count one half.
    **Cost.** Milliseconds a bandwidth after the sketch.
    **Reads.** The sketch.

    Examples
    --------
    >>> import calibrant as cal
    >>> cost = cal.certify.jitter_cost(cal.predictions([0, 1, 0, 1], [0.1, 0.8, 0.4, 0.6]))
    >>> cost.columns["auroc"][0]
    1.0
    """
    from calibrant.stats.jitter import jitter_scores, level_scores

    population = everyone(data, seed)
    if population.events in (0, population.n):
        raise NotComputable("the AUROC needs both outcomes; all rows have the same one")
    widths = [bandwidths] if isinstance(bandwidths, (int, float)) else list(bandwidths)
    all_steps = [steps] if isinstance(steps, int) else list(steps)
    rows = [("as it is", 0.0, 0, level_scores(population.cells))]
    for h in (checked_bandwidth(w, population.grid) for w in widths):
        rows.append(("jittered", h, 0, jitter_scores(population.cells, h)))
    for k in (checked_steps(s) for s in all_steps):
        rows.append(("rounded", 0.0, k, level_scores(population.levels(k))))
    columns: dict[str, tuple[Any, ...]] = {
        "display": tuple(r[0] for r in rows),
        "bandwidth": tuple(r[1] for r in rows),
        "steps": tuple(r[2] for r in rows),
    }
    columns |= {name: tuple(r[3][name] for r in rows) for name in ("auroc", "brier", "log_loss")}
    return Curve(method="certify.jitter_cost", columns=columns, settings={"n": population.n})


@takes_arrays
def jitter_bandwidth(pilot: Predictions | Sketch, *, tolerance: float = 0.001, seed: int = 0) -> float:
    r"""Choose the largest dyadic bandwidth that costs at most `tolerance` of AUROC, on pilot rows.

    Parameters
    ----------
    pilot : Predictions or Sketch
        Rows that are *not* certified afterwards: choosing by the labels of certified rows voids the guarantee.
    tolerance : float, positive
        AUROC that may be lost.
    seed : int
        Not used by the number.

    Returns
    -------
    float
        One of ``2^-3 ... 2^-10``.

    Raises
    ------
    NotComputable
        Even the smallest costs more.
    """
    tolerance = positive("tolerance", tolerance, what="a positive loss of AUROC", hint="such as 0.001")
    widths = [2.0**-j for j in range(3, 11)]
    auroc = jitter_cost(pilot, bandwidths=widths, seed=seed).columns["auroc"]
    for width, value in zip(widths, auroc[1:], strict=True):
        if auroc[0] - value <= tolerance:
            return width
    raise NotComputable(f"every bandwidth down to {widths[-1]:g} costs more than {tolerance:g} of AUROC")
