"""The bounds of Ciosek et al. as published: kernel smoother, total variation, Lipschitz buckets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.apps.papers.bounds import (
    BUCKETS,
    SHIFTS,
    Bound,
    Folds,
    kernel_bound,
    lipschitz_bound,
    total_variation_bound,
)
from calibrant.arguments import check_int, checked_alpha, checked_seed, choice, number
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Estimate, Interval
from calibrant.toolkit.data import takes_arrays

# ---- Proposition 2 of Ciosek et al.: the certified error of a perturbed classifier through a kernel smoother ----


def published_rows(
    data: Any, name: str, alpha: float, side: str, smallest: int = 2
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Scores and labels for a published bound; refuse data to which it does not apply."""
    checked_alpha(alpha)
    choice("side", side, ("upper",), hint="for the paper states no other bound")
    if hasattr(data, "one_vs_rest"):
        raise BadInput(f"{name} reads one score: of several classes pass data.top_label() or data.one_vs_rest(k)")
    if not hasattr(data, "p") or not hasattr(data, "y"):
        raise NotComputable(
            f"{name} reads rows of one score and one label each; pass calibrant.predictions(y_true, y_prob)"
        )
    for what in ("weights", "cluster"):
        if getattr(data, what, None) is not None:
            raise NotComputable(f"{name} has no proof for {what}: use measure.ece, whose interval takes it")
    if len(data.p) < smallest:
        raise BadInput(f"{name} was given {len(data.p):,} rows: pass at least {smallest}.")
    return data.p, data.y


def published_stream(seed: int) -> np.random.Generator:
    """A generator for `seed` whose draws are unrelated to those of `numpy.random.default_rng(seed)`.

    A user who simulates scores with the same seed would otherwise have each score perturbed by itself.
    """
    return np.random.default_rng([checked_seed(seed), 0x5EC4])


def published_estimate(
    name: str, bound: Bound, n: int, alpha: float, assumes: str, settings: dict[str, Any]
) -> Estimate:
    """Wrap a published bound; it is one-sided, so the lower end is the trivial 0."""
    interval = Interval(low=0.0, high=bound.high, level=1.0 - alpha, guarantee="as published")
    return Estimate(
        method=f"papers.{name}",
        value=bound.value,
        unit="probability",
        n=n,
        interval=interval,
        assumes=assumes,
        settings={**settings, **bound.parts},
    )


@takes_arrays
def published_kernel(
    data: Any,
    *,
    bandwidth: float = 2**-6,
    alpha: float = 0.05,
    folds: int = 5,
    subsample: bool = False,
    side: str = "upper",
    seed: int = 0,
) -> Estimate:
    r"""Bound the L1 calibration error of the perturbed classifier by the published kernel smoother.

    The classifier that is certified emits `s` drawn from the density proportional to `sech((s - p) / h)` on
    [0, 1] in place of its score `p`, and the target is :math:`CE = E|s - \eta(s)|`, `eta(s) = P(Y = 1 | s)`.
    A comparator: `certify.jittered` bounds the same quantity with about a thousandth of the rows.

    Parameters
    ----------
    data : Predictions
        Rows with labels `y` in {0, 1} and scores `p` in [0, 1]; no weights, no clusters.
    bandwidth : float > 0
        The perturbation `h`, fixed before the labels are seen.
    alpha : float in (0, 0.5]
        Error probability, half for each of the two Bernstein terms.
    folds : int >= 2
        Folds of the cross-fitting.
    subsample : bool
        Evaluate only `min(15000, max(5000, 0.05 n))` held-out rows a fold (Appendix E).
    side : {"upper"}
        The paper states upper bounds only.
    seed : int
        Fixes the perturbation, the folds and the subsample.

    Returns
    -------
    Estimate
        `interval.high` is the bound (a probability, smaller is better); `value` is the mean gap between
        score and surrogate. `settings` also holds the terms of the bound.

    Raises
    ------
    BadInput
        A setting out of range, or fewer than `2 * folds` rows.
    NotComputable
        Weights, clusters, or a sketch.

    Notes
    -----
    **Assumes.** Independent, identically distributed rows; nothing about the classifier.

    **Guarantee.** As published, and not more. The proof of Proposition 2 bounds `E_s |eta^(s) - eta(s)|`
    for the training labels that were drawn by its expectation over training labels (between its equations
    9 and 10). That step needs a concentration term, for instance McDiarmid's inequality with
    `c_i = E_s w_i(s)`, which the paper does not have. False as stated for an arbitrary calibration function: with
    one score of 0.2, an event rate of 0.5 and 1,000 training rows it missed 14 to 16% of the time at `alpha` 0.05.
    For the perturbed classifier at the paper's bandwidth no miss was seen. The pooled form over folds is not
    proved either.

    **Method.** Perturbation by equation 8, exactly inverted; `b1 = 1/(2h)`, `b2 = 3/(2h^2)` (Lemma 1);
    weights `(1 - u^2)^1.2` with `u = |s - s_i| / h'`, normalised to one (section 5), `h'` by the plug-in
    rule of Appendix E; `g_T` of Lemma 6; `R = b1 h' + b2 h'^2 / 2 + 1/2`; the empirical Bernstein term of
    section 3 with `ln(3/delta)`; `delta1 = delta2 = alpha / 2`. Departures and choices where print is
    open: (1) "Aggregate across folds" is read as pooling, one mean and one Bernstein term over all
    held-out rows, the reading that favours the published bound; averaging the folds' own bounds gives
    0.58 instead of 0.45 at n = 1000, and 4% more at n = 1e6 with subsampling (uniform calibrated scores, `h = 2**-6`).
    (2) Where no training score lies within `h'`, the nearest one gets all the weight, and `g_T` may exceed the printed
    `R`; there it is capped at `max(R, 1)`, and `R` is replaced by that maximum whenever the training scores leave a gap
    in [0, 1]. (3) Five folds; print gives no number. (4) The bound is cut at 1.

    **Cost.** One sort, then `n` windows of about `1.6 n h'` scores, `O(n^(5/3))` in all: about 5 CPU
    seconds at n = 1e6. With `subsample` sorting and dealing dominate: about 10 CPU seconds at n = 1e7.

    **Reads.** Rows.

    References
    ----------
    K. Ciosek, N. Felicioni, S. Ghiassian, J. Elenter Litwin, F. Tonolini, D. Gustafsson, E. Garcia Martin,
    C. Barcena Gonzales, R. Bertrand-Lalo, "Measuring Uncertainty Calibration", ICLR 2026, arXiv:2512.13872.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> data = cal.predictions(rng.random(2000) < p, p)
    >>> cal.papers.published_kernel(data).interval.high < 0.5
    True
    """
    check_int("folds", folds, 2, hint="such as 5")
    number("bandwidth", bandwidth, least=1e-9, most=1e9, hint="such as 2**-6")
    p, y = published_rows(data, "published_kernel", alpha, side, 2 * int(folds))
    rng = published_stream(seed)
    bound = kernel_bound(p, y, bandwidth, alpha, Folds(int(folds), subsample, rng))
    settings = {
        "bandwidth": bandwidth,
        "alpha": alpha,
        "folds": folds,
        "subsample": subsample,
        "side": side,
        "seed": seed,
    }
    assumes = "independent rows; about the perturbed classifier; the published proof omits a concentration term"
    return published_estimate("published_kernel", bound, len(p), alpha, assumes, settings)


# ---- The Lipschitz bucketing that Ciosek et al. compare to, on the perturbed score ----


@takes_arrays
def published_lipschitz(
    data: Any, *, bandwidth: float = 2**-6, alpha: float = 0.05, side: str = "upper", seed: int = 0
) -> Estimate:
    r"""Bound the L1 calibration error of the perturbed classifier by Lipschitz buckets with shifts.

    The certified classifier is that of `papers.published_kernel`, with target :math:`CE = E|s -
    \eta(s)|`. Its calibration function is Lipschitz with constant `L = 1 / (2 h)`, so bucket means of the
    labels come with a known bias. A comparator, published in outline only.

    Parameters
    ----------
    data : Predictions
        Rows with labels `y` in {0, 1} and scores `p` in [0, 1]; no weights, no clusters.
    bandwidth : float > 0
        The perturbation `h`, fixed before the labels are seen.
    alpha : float in (0, 0.5]
        Error probability, shared equally by all pairs of a bucket count and a shift.
    side : {"upper"}
        The paper states upper bounds only.
    seed : int
        Fixes the perturbation.

    Returns
    -------
    Estimate
        `interval.high` is the bound (a probability, smaller is better); `value` is the mean gap between
        score and bucket mean. `settings` also names the winning bucket count and shift.

    Raises
    ------
    BadInput
        A setting out of range, or fewer than two rows.
    NotComputable
        Weights, clusters, or a sketch.

    Notes
    -----
    **Assumes.** Independent, identically distributed rows; nothing about the classifier.

    **Guarantee.** Labelled as published, in outline: Appendix E prints the union over partitions and not
    the bound of one partition. The bound used here is proved below and holds at finite n.

    **Method.** Perturbation by equation 8; Corollary 3; Appendix E. One partition, `delta' = alpha / (B R)`
    with `B` bucket counts and `R` shifts, bucket `b` with `n_b` rows, label mean `ybar_b` and scores
    spread over `w_b = max s - min s`, `m` buckets with rows:

    1. Given the scores, `|eta(s_i) - etabar_b|` averages to at most half its oscillation, `L w_b / 2`,
       over a bucket.
    2. Given the scores, Hoeffding gives `|ybar_b - etabar_b| <= eps_b = sqrt(ln(4 m / delta') / (2 n_b))`
       for all `m` buckets at once with probability `1 - delta' / 2`.
    3. On that event `(1/n) sum_i |s_i - eta(s_i)|` is at most
       `A = (1/n) sum_b min(n_b, sum_(i in b) |s_i - ybar_b| + n_b (eps_b + L w_b / 2))`, as each term is
       at most 1.
    4. `|s_i - eta(s_i)|` are independent in [0, 1] with mean CE, and depend on no label: by Hoeffding
       `CE <= A + sqrt(ln(2 / delta') / (2 n))` with probability `1 - delta'`.

    The least bound over the partitions is reported. Departures: (1) The bound is valid on the rows that
    made the buckets, so nothing is held out, where the paper cross-fits. (2) The bias is `L w_b / 2` with
    the observed spread in place of `L / buckets`. (3) The offset, printed as `r / B`, is read as `r / R`
    of a bucket (a whole bucket changes nothing). (4) The grid, not printed, is 8, 16, ..., 4096 buckets
    and four shifts. (5) The bound is cut at 1.

    **Cost.** One sort and `B R = 40` passes over bucket edges: about 0.4 CPU seconds at n = 1e6.

    **Reads.** Rows.

    References
    ----------
    K. Ciosek, N. Felicioni, S. Ghiassian, J. Elenter Litwin, F. Tonolini, D. Gustafsson, E. Garcia Martin,
    C. Barcena Gonzales, R. Bertrand-Lalo, "Measuring Uncertainty Calibration", ICLR 2026, arXiv:2512.13872.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20000)
    >>> data = cal.predictions(rng.random(20000) < p, p)
    >>> cal.papers.published_lipschitz(data).interval.high < 0.5
    True
    """
    number("bandwidth", bandwidth, least=1e-9, most=1e9, hint="such as 2**-6")
    p, y = published_rows(data, "published_lipschitz", alpha, side)
    bound = lipschitz_bound(p, y, bandwidth, alpha, published_stream(seed))
    settings = {
        "bandwidth": bandwidth,
        "alpha": alpha,
        "side": side,
        "seed": seed,
        "bucket_counts": BUCKETS,
        "shifts": SHIFTS,
    }
    assumes = "independent rows; about the perturbed classifier, whose calibration function is Lipschitz"
    return published_estimate("published_lipschitz", bound, len(p), alpha, assumes, settings)


# ---- Proposition 1 of Ciosek et al.: the error of an unmodified classifier under bounded variation ----


@takes_arrays
def published_total_variation(
    data: Any,
    *,
    variation: float = 1.0,
    alpha: float = 0.05,
    folds: int = 5,
    side: str = "upper",
    seed: int = 0,
) -> Estimate:
    r"""Bound the L1 calibration error of the raw score by the published total variation denoiser.

    The target is :math:`CE = E|p - \eta(p)|`, `eta(p) = P(Y = 1 | p)`, given that the total variation of
    `eta` is at most `variation` (1 covers every monotone `eta`). A comparator:
    `certify.bounded_variation` makes the same assumption and shrinks as `n^(-1/3)` where this shrinks as
    `n^(-1/4)`.

    Parameters
    ----------
    data : Predictions
        Rows with labels `y` in {0, 1} and scores `p` in [0, 1]; no weights, no clusters.
    variation : float >= 0
        The assumed bound `V` on the total variation of `eta`.
    alpha : float in (0, 0.5]
        Error probability, a quarter for each of the four terms.
    folds : int >= 2
        Folds of the cross-fitting.
    side : {"upper"}
        The paper states upper bounds only.
    seed : int
        Fixes the folds.

    Returns
    -------
    Estimate
        `interval.high` is the bound (a probability, smaller is better); `value` is the mean gap between
        score and surrogate. `settings` also holds the terms of the bound.

    Raises
    ------
    BadInput
        A setting out of range, or fewer than `2 * folds` rows.
    NotComputable
        Weights, clusters, or a sketch.

    Notes
    -----
    **Assumes.** Independent, identically distributed rows, and `TV(eta) <= variation`, which no data can
    check.

    **Guarantee.** As published. Proposition 1 is proved for one split; that the folds' results may be
    aggregated is stated in print and not proved.

    **Method.** Equation 2 with `lambda = t2 / |T|` (Lemma 4), solved exactly by the taut string in linear
    time; `eta^(s)` is the value at the largest training score that is at most `s`; TVB of Corollary 1,
    PTB of equation 5 with the surrogate's own variation `V^`, and the empirical Bernstein term of section
    3; `delta1 = ... = delta4 = alpha / 4`. Departures and choices where print is open: (1) Ties: equal
    training scores share one value, that is, equation 2 is minimised over functions of the score. As the
    true `eta` is one, the first inequality of Lemma 4's proof and all that follows hold unchanged, and
    the order of rows within a tie decides nothing but their folds. (2) Below every training score `eta^`
    continues the first value, which adds no variation. (3) Cross-fitting (section 5, footnote 6): gaps
    are pooled over the folds with one Bernstein term; TVB and PTB, which depend on the training part, are
    averaged over the folds at the printed `delta` (a union over the folds would take `delta / folds`).
    Five folds; print gives no number. (4) `n` in Corollary 2 is read as `|T|`, as in equation 5. (5) The
    bound is cut at 1.

    **Cost.** One sort and `folds` linear passes: about 0.6 CPU seconds at n = 1e6 and 10 at n = 1e7.

    **Reads.** Rows.

    References
    ----------
    K. Ciosek, N. Felicioni, S. Ghiassian, J. Elenter Litwin, F. Tonolini, D. Gustafsson, E. Garcia Martin,
    C. Barcena Gonzales, R. Bertrand-Lalo, "Measuring Uncertainty Calibration", ICLR 2026, arXiv:2512.13872.
    J.-C. Hutter, P. Rigollet, "Optimal rates for total variation denoising", COLT 2016, PMLR 49:1115-1146.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20000)
    >>> data = cal.predictions(rng.random(20000) < p, p)
    >>> cal.papers.published_total_variation(data).interval.high < 0.4
    True
    """
    check_int("folds", folds, 2, hint="such as 5")
    number("variation", variation, least=0, hint="such as 1.0")
    p, y = published_rows(data, "published_total_variation", alpha, side, 2 * int(folds))
    bound = total_variation_bound(p, y, variation, alpha, int(folds), published_stream(seed))
    settings = {"variation": variation, "alpha": alpha, "folds": folds, "side": side, "seed": seed}
    assumes = f"independent rows; the calibration function has total variation at most {variation:g}"
    return published_estimate("published_total_variation", bound, len(p), alpha, assumes, settings)
