"""Proposition 1 of Ciosek et al.: the error of an unmodified classifier under bounded variation."""

from __future__ import annotations

from typing import Any

from calibrant.certify.published_kernel import (
    enough_folds,
    published_estimate,
    published_rows,
    published_stream,
)
from calibrant.errors import BadInput
from calibrant.results import Estimate
from calibrant.stats.published import total_variation_bound


def published_total_variation(
    data: Any,
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
    alpha : float in (0, 1)
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
    >>> cal.certify.published_total_variation(data).interval.high < 0.4
    True
    """
    enough_folds(folds)
    if not 0.0 <= variation < float("inf"):
        raise BadInput(f"variation is {variation}: pass a finite number of at least 0, such as 1.0.")
    p, y = published_rows(data, "published_total_variation", alpha, side, 2 * int(folds))
    bound = total_variation_bound(p, y, variation, alpha, int(folds), published_stream(seed))
    settings = {"variation": variation, "alpha": alpha, "folds": folds, "side": side, "seed": seed}
    assumes = f"independent rows; the calibration function has total variation at most {variation:g}"
    return published_estimate("published_total_variation", bound, len(p), alpha, assumes, settings)
