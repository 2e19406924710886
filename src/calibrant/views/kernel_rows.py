"""Rows as a kernel reads them: checked, coded, scaled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from calibrant.data.coding import Coding, Encoded, codings, encode
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.sample import identities_of
from calibrant.data.seed import checked_seed
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Outcome
from calibrant.stats.kernel_sums import NAMES, Kernel, Rows, ranked, smallest, statistics, typical_distance

METHOD = "detect.local_calibration_test"
LARGEST = 50_000  # distinct rows
WIDTH = 2.0  # default width, in median distances
NULL = "given score and covariates, outcomes are independent with the probabilities stated"


def exact_local_test(
    data: Any,
    variables: Sequence[str] | None = None,
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
    variables : sequence of str, optional
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
    >>> from calibrant.views.kernel_rows import exact_local_test
    >>> rng = np.random.default_rng(0)
    >>> p, x = rng.uniform(0.2, 0.8, 500), rng.normal(size=500)
    >>> data = cal.predictions(rng.uniform(size=500) < p + 0.2 * np.sign(x), p, {"x": x})
    >>> exact_local_test(data).p_value < 0.01
    True
    """
    checked_rows(data)
    checked_draws(draws)
    seed = checked_seed(seed)
    for name, width in (("score_width", score_width), ("covariate_width", covariate_width)):
        checked_width(name, width)
    how = wanted_codings(data, variables)
    ids = identities_of(data.n, seed)
    unit, rows = joined(scaled_kernel(data.p, encode(data.covariates, how)), rows_of(data, ids))
    if len(rows.rate) > LARGEST:
        raise NotComputable(
            f"{len(rows.rate):,} distinct rows: all pairs are summed up to {LARGEST:,}; the default features take any number"
        )
    usual = WIDTH * typical_distance(unit, ids if rows.ids is not None else identities_of(len(rows.rate), seed))
    widths = score_width or usual, covariate_width or usual
    kernel = narrowed(unit, *widths)
    found = statistics(kernel, rows, draws, seed)
    return _outcome(data, rows, how, found, widths, draws, seed)


def _outcome(
    data: Predictions, rows: Rows, how: Sequence[Coding], found: Any, widths: tuple[float, float], draws: int, seed: int
) -> Outcome:
    ranks, pairs = ranked(found), data.n * (data.n - 1.0)
    parts: dict[str, Any] = {
        "p_raw": float(ranks[0, 0]),
        "p_local": float(ranks[1, 0]),
        "p_global": smallest(ranks[2:]),
        "p_intercept": float(ranks[2, 0]),
        "p_intercept_slope": float(ranks[3, 0]),
        "centred": float(found[1, 0] / pairs),
        "null_sd": float(found[0, 1:].std() / pairs),
        "contradicted": rows.contradicted,
    }
    law = (
        "sign flips of whole clusters, asymptotic in their number" if rows.clusters is not None else "exact simulation"
    )
    return Outcome(
        method=METHOD,
        statistic=float(found[0, 0] / pairs),
        p_value=0.0 if rows.contradicted else smallest(ranks),
        alternative="the event rate given score and covariates is not the score",
        null=NULL,
        law=f"certain: {CONTRADICTED}" if rows.contradicted else law,
        settings={
            "features": "exact",
            "draws": draws,
            "seed": seed,
            "n": data.n,
            "cells": len(rows.rate),
            "score_width": widths[0],
            "covariate_width": widths[1],
            "statistics": NAMES,
            "variables": tuple(c.name for c in how if c.kind != "constant"),
            "ranked": tuple(c.name for c in how if c.scaling == "rank"),
            "dropped": tuple(c.name for c in how if c.kind == "constant"),
            "categories": "standardised coordinates",
        },
        parts=parts,
    )


SINGLE = "a single row has no pairs: pass two rows or more"
CONTRADICTED = "a row with score 0 or 1 has the other outcome"


def checked_rows(data: Any) -> None:
    """Refuse what is not rows of two classes, and what no proof covers."""
    if isinstance(data, MulticlassPredictions):
        raise BadInput("several classes: pass data.top_label(), or data.one_vs_rest(k) with alpha / K")
    if not isinstance(data, Predictions):
        raise BadInput(
            f"data is a {type(data).__name__}: this test reads rows; pass calibrant.predictions(...) or read"
        )
    if data.weights is not None:
        raise NotComputable("the kernel test has no null for weighted rows: leave the weights out, and say so")
    if data.n < 2:
        raise NotComputable(SINGLE)


def checked_draws(draws: Any) -> None:
    """Refuse a number of draws that gives no p-value."""
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 19:
        raise BadInput(f"draws={draws!r}: pass a whole number of at least 19, such as 999")


def checked_names(variables: Any) -> None:
    """Refuse what is no list of names."""
    if isinstance(variables, str):
        raise BadInput(f"variables={variables!r}: pass a list of names, such as [{variables!r}]")
    if variables is not None and not isinstance(variables, Iterable):
        raise BadInput(f"variables={variables!r}: pass a list of names of covariates, or None for all")


def checked_width(name: str, width: Any) -> None:
    """Refuse a width that is not positive."""
    if width is not None and not (isinstance(width, (int, float, np.number)) and np.isfinite(width) and width > 0):
        raise BadInput(f"{name}={width!r}: pass a positive number, or None for the default")


def wanted_codings(data: Predictions, variables: Sequence[str] | None) -> tuple[Coding, ...]:
    """Return how the covariates asked for are coded; refuse none."""
    checked_names(variables)
    how = codings(data.covariates, variables)
    if not how:
        raise BadInput("no covariates: pass predictions(..., covariates=...) or use detect.kernel_calibration_test")
    return how


def rows_of(data: Predictions, ids: Any) -> Rows:
    """Return the rows of predictions, with their clusters."""
    clusters = None if data.cluster is None else np.unique(data.cluster, return_inverse=True)[1].astype(np.int64)
    if clusters is not None and not clusters.any():
        raise NotComputable("all rows are one cluster: nothing tells its noise from a bias")
    return Rows(data.p, np.ones(data.n), data.y.astype(np.float64), ids, clusters)


def scaled_kernel(p: Any, encoded: Encoded) -> Kernel:
    """Return the kernel of width one: standardised score first, then the numbers; categories as penalties."""
    spread = float(p.std())
    score = (p - p.mean()) / (spread if spread > 1e-12 else 1.0)
    differ = np.array([1.0 - np.sum((np.bincount(c) / len(p)) ** 2) for c in encoded.codes.T])
    kept = differ > 0
    return Kernel(np.column_stack([score, encoded.scaled]), encoded.codes[:, kept], 1.0 / differ[kept])


def narrowed(kernel: Kernel, score_width: float, covariate_width: float) -> Kernel:
    """Return a kernel of width one with other widths."""
    widths = np.full(kernel.points.shape[1], covariate_width)
    widths[0] = score_width
    return Kernel(kernel.points / widths, kernel.codes, kernel.penalties / covariate_width**2)


def joined(kernel: Kernel, rows: Rows) -> tuple[Kernel, Rows]:
    """Join equal rows into cells if that leaves at most half as many; rows in clusters stay apart."""
    if rows.clusters is not None:
        return kernel, rows
    table = np.column_stack([rows.rate, kernel.points[:, 1:], kernel.codes])
    order = np.lexsort(table.T)
    ordered = table[order]
    starts = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)])
    if len(starts) > len(order) // 2:
        return kernel, rows
    count, cases = (np.add.reduceat(v[order], starts) for v in (rows.rows, rows.cases))
    first = order[starts]
    return (
        Kernel(kernel.points[first], kernel.codes[first], kernel.penalties),
        Rows(rows.rate[first], count, cases),
    )
