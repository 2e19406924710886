"""The local calibration test over all pairs of rows: the kernel itself, for up to 50,000 distinct rows."""

from __future__ import annotations

from collections.abc import Iterable

from calibrant.arguments import checked_seed, positive, whole
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import identities_of
from calibrant.data.specs.coding import encode
from calibrant.errors import NotComputable
from calibrant.results import Outcome
from calibrant.stats.kernel_sums import NAMES, smallest, statistics, typical_distance
from calibrant.stats.nulls import ranked
from calibrant.views.kernel_rows import (
    CONTRADICTED,
    LEAST_DRAWS,
    NULL,
    checked_rows,
    coded,
    joined,
    narrowed,
    rows_of,
    scaled_kernel,
)

LARGEST = 50_000  # distinct rows: about a CPU-minute at 999 draws, and four times that for twice as many
WIDTH = 2.0  # default width, in median distances, as in the default features (theory 3, step 1)


def exact_local_test(
    data: Predictions,
    *,
    variables: Iterable[str] | str | None = None,
    draws: int = 999,
    seed: int = 0,
    score_width: float | None = None,
    covariate_width: float | None = None,
) -> Outcome:
    r"""Test local calibration over all pairs of rows.

    Estimand of the raw statistic: ``KLCE^2 = E[e k(p, p') l(x, x') e']`` with ``e = y - p`` and an independent copy
    primed; zero when ``E[Y | p, x] = p``, positive otherwise.

    Parameters
    ----------
    data : Predictions
        Covariates of any kind. Clusters are taken into account.
    variables : str or sequence of str, optional
        Covariates to test against; all by default.
    draws, seed : int
        Simulated outcomes, and their seed.
    score_width, covariate_width : float, optional
        Widths ``w`` of ``exp(-d^2 / (2 w^2))``, for the score and for every covariate, in standard deviations. By
        default twice the median distance between rows, of score and covariates together.

    Returns
    -------
    Outcome
        ``statistic`` is the unbiased estimate ``KLCE^2_u`` (it can be negative), ``p_value`` that of the whole test. In
        ``parts``: ``p_raw``, ``p_local`` (the centred statistic), ``p_intercept``, ``p_intercept_slope``, ``p_global``
        (the smaller of the last two, calibrated), the centred ``KLCE^2_u`` as ``centred``, ``null_sd`` of the raw one,
        and ``contradicted``: rows whose outcome the score called impossible. Any such row makes ``p_value`` zero.

    Raises
    ------
    BadInput
        No such covariate, or none; draws or widths that cannot be used.
    NotComputable
        Over 50,000 distinct rows; a single row; weights.

    Notes
    -----
    **Assumes.** Independent rows; covariates and widths chosen without the labels.
    **Guarantee.** Level alpha at any number of rows: given the rows, the data and the draws are exchangeable under the
    null, and the p-value is a rank among them. A row with score 0 or 1 and the other outcome refutes the null, hence
    the zero. With clusters the signs of whole clusters' residuals are drawn instead: asymptotic in their number.
    **Method.** Equation 4, normalised by ``n (n - 1)``, on the standardised (or ranked) score and covariates; a
    category counts as a standardised coordinate: two rows of different levels are at squared distance ``2 /
    P(differ)``. The wide kernel spends itself on the overall level, so the sum is also taken with ``P' K P`` for K,
    where P projects ``[1, logit p]`` out of the residuals with weights ``p (1 - p)``; these two and the score tests of
    the intercept and of intercept and slope become ranks among all draws, and the smallest rank is itself ranked (equal
    ones by the product of the four). Equal statistics are told from rounding at 1e-5 null standard deviations.
    Departures: the null, the default widths, the minimum. The score enters as it is: its logit gave the same power.
    **Cost.** ``n^2 draws`` multiplications in float32: under a CPU-second at 5,000 rows, about sixty at 50,000, on one
    thread; memory ``5 n draws`` bytes, no n x n matrix. Repeated rows are joined into cells, with Binomial draws, where
    that halves them. **Reads.** Rows.

    References
    ----------
    Vashistha and Farahi (2025), "I-trustworthy models", AISTATS.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> from calibrant.detect.exact_local_test import exact_local_test
    >>> rng = np.random.default_rng(0)
    >>> p, x = rng.uniform(0.2, 0.8, 500), rng.normal(size=500)
    >>> data = cal.predictions(rng.uniform(size=500) < p + 0.2 * np.sign(x), p, {"x": x})
    >>> exact_local_test(data).p_value < 0.01
    True
    """
    checked = checked_rows(data)
    draws, seed = whole("draws", draws, LEAST_DRAWS, hint="such as 999"), checked_seed(seed)
    for name, width in (("score_width", score_width), ("covariate_width", covariate_width)):
        if width is not None:
            positive(name, width, hint="or None for the default")
    how = coded(checked, variables)
    # (1) Standardise, and join equal rows into cells with Binomial outcomes.
    ids = identities_of(checked.n, seed)
    unit, rows = joined(scaled_kernel(checked.p, encode(checked.covariates, how)), rows_of(checked, ids))
    if len(rows.rate) > LARGEST:
        raise NotComputable(
            f"{len(rows.rate):,} distinct rows: all pairs are summed up to {LARGEST:,}; the default features take any "
            "number"
        )
    # (2) Widths, from distances alone.
    usual = WIDTH * typical_distance(unit, ids if rows.ids is not None else identities_of(len(rows.rate), seed))
    widths = score_width or usual, covariate_width or usual
    # (3) Equation 4, raw and centred, and two score tests, of the data and of each draw; each becomes a rank.
    found = statistics(narrowed(unit, *widths), rows, draws, seed)
    ranks, pairs = ranked(found), checked.n * (checked.n - 1.0)
    law = (
        "sign flips of whole clusters, asymptotic in their number" if rows.clusters is not None else "exact simulation"
    )
    # (4) The smallest rank, ranked again among the draws'.
    return Outcome(
        method="detect.local_calibration_test",
        statistic=float(found[0, 0] / pairs),
        p_value=0.0 if rows.contradicted else smallest(ranks),
        alternative="the event rate given score and covariates is not the score",
        null=NULL,
        law=f"certain: {CONTRADICTED}" if rows.contradicted else law,
        settings={
            "features": "exact",
            "draws": draws,
            "seed": seed,
            "n": checked.n,
            "cells": len(rows.rate),
            "score_width": widths[0],
            "covariate_width": widths[1],
            "statistics": NAMES,
            "variables": tuple(c.name for c in how if c.kind != "constant"),
            "ranked": tuple(c.name for c in how if c.scaling == "rank"),
            "dropped": tuple(c.name for c in how if c.kind == "constant"),
            "categories": "standardised coordinates",
        },
        parts={
            "p_raw": float(ranks[0, 0]),
            "p_local": float(ranks[1, 0]),
            "p_global": smallest(ranks[2:]),
            "p_intercept": float(ranks[2, 0]),
            "p_intercept_slope": float(ranks[3, 0]),
            "centred": float(found[1, 0] / pairs),
            "null_sd": float(found[0, 1:].std() / pairs),
            "contradicted": rows.contradicted,
        },
    )
