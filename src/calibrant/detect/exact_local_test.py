"""The local calibration test over all pairs of rows: the kernel itself, for up to 50,000 distinct rows.

For two classes, and for several, whose residuals are vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_seed
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.sketches.sample import identities_of
from calibrant.data.specs.coding import Coding
from calibrant.results import Outcome
from calibrant.stats.local.kernel_sums import NAMES, Kernel, Rows, smallest, statistics, statistics_of
from calibrant.stats.nulls import holm, ranked
from calibrant.views.kernel_rows import (
    CONTRADICTED,
    LEAST_DRAWS,
    NULL,
    Shape,
    checked_classes,
    checked_rows,
    checked_size,
    cluster_kernel,
    coded,
    joined,
    rows_of,
)

CLASS_STREAM = 0xC1A55  # of random numbers, apart from those of other methods at the same seed
IMPOSSIBLE = "a row is of a class of score 0"


def exact_local_test(
    data: Predictions,
    *,
    variables: Iterable[str] | str | None = None,
    draws: int = 999,
    seed: int = 0,
    shape: Shape | None = None,
) -> Outcome:
    r"""Test local calibration over all pairs of rows.

    Estimand of the raw statistic: ``KLCE^2 = E[e k(p, p') l(x, x') e']`` with ``e = y - p`` and an independent copy
    primed; zero when ``E[Y | p, x] = p``, positive otherwise.

    **Assumes.** Independent rows; covariates, family and widths chosen without the labels.
    **Guarantee.** Level alpha at any number of rows: given the rows, the data and the draws are exchangeable under the
    null, and the p-value is a rank among them. A row with score 0 or 1 and the other outcome refutes the null, hence
    the zero. With clusters the signs of whole clusters' residuals are drawn instead: asymptotic in their number. Of any
    kernel; a polynomial is not universal: its ``KLCE^2`` can be zero where the model is wrong, which costs power only.
    **Method.** Equation 4, normalised by ``n (n - 1)``, on the standardised (or ranked) score and covariates; a
    category counts as a standardised coordinate: two rows of different levels are at squared distance ``2 /
    P(differ)``. The wide kernel spends itself on the overall level, so the sum is also taken with ``P' K P`` for K,
    where P projects ``[1, logit p]`` out of the residuals with weights ``p (1 - p)``; these two and the score tests of
    the intercept and of intercept and slope become ranks among all draws, and the smallest rank is itself ranked (equal
    ones by the product of the four). Equal statistics are reported from rounding at 1e-5 null standard deviations.
    Departures: the null, the default widths, the minimum. The score enters as it is: its logit gave the same power.
    **Cost.** ``n^2 draws`` multiplications in float32: under a CPU-second at 5,000 rows, about sixty at 50,000, on one
    thread; memory ``5 n draws`` bytes, no n x n matrix. Repeated rows are joined into cells, with Binomial draws, where
    that halves them. **Reads.** Rows.
    """
    checked = checked_rows(data)
    draws, seed = check_int("draws", draws, LEAST_DRAWS, hint="such as 999"), checked_seed(seed)
    how = coded(checked, variables)
    # (1) Standardise, and join equal rows into cells with Binomial outcomes.
    cluster, rows = joined(cluster_kernel(checked, how), rows_of(checked, identities_of(checked.n, seed)))
    checked_size(cluster)
    # (2) The kernel; its widths from distances alone.
    kernel, reported = (shape or Shape()).of(cluster, seed)
    # (3) Equation 4, raw and centred, and two score tests, of the data and of each draw; each becomes a rank.
    result = statistics(kernel, rows, draws, seed)
    ranks, pairs = ranked(result), checked.n * (checked.n - 1.0)
    # (4) The smallest rank, ranked again among the draws'.
    return Outcome(
        method="detect.local_calibration_test",
        statistic=float(result[0, 0] / pairs),
        p_value=0.0 if rows.contradicted else smallest(ranks),
        alternative="the event rate given score and covariates is not the score",
        null=NULL,
        law=f"certain: {CONTRADICTED}" if rows.contradicted else rows.law,
        settings={
            **_settings(how, {"draws": draws, "seed": seed, "n": checked.n, "cells": len(rows.rate), **reported}),
            "categories": "standardised coordinates",
        },
        parts={
            **_parts(result / pairs, ranks),
            "contradicted": rows.contradicted,
        },
    )


def exact_class_test(
    data: MulticlassPredictions,
    *,
    variables: Iterable[str] | str | None = None,
    draws: int = 999,
    seed: int = 0,
    shape: Shape | None = None,
) -> Outcome:
    r"""Test local calibration of the probabilities of several classes over all pairs of rows.

    Estimand of the raw statistic: ``KLCE^2 = E[e' K(p, p') l(x, x') e']`` with the vector ``e = 1_y - p`` of residuals
    of every class, an independent copy primed, and ``K = k(p, p') I``: the sum over classes of what each adds; zero
    when ``P(Y = c | p, x) = p_c`` for every class c, positive otherwise.

    The score is the vector of all probabilities, divided by one deviation, the root of the classes' added variances;
    a row whose class had score 0 makes ``p_value`` zero, and that of each class whose score of 0 or 1 it contradicts.

    **Assumes.** Independent rows; covariates, family and widths chosen without the labels.
    **Guarantee.** Level alpha at any number of rows, for ``p_value``, each of ``class_p``, and the smallest of
    ``class_adjusted_p``: given the rows, classes are drawn from the probabilities stated, so that data and draws are
    exchangeable under the null.
    **Method.** The remark under equation 4, with the matrix-valued kernel of Widmann, Lindsten and Zachariah (2019,
    arXiv:1910.11385). The four statistics
    of `exact_local_test` are those of each class against the rest, with this kernel, added up over classes; their ranks
    are joined as there. **Cost.** As many times that of `exact_local_test` as there are classes; no rows are joined.
    **Reads.** Rows.
    """
    checked = checked_classes(data)
    draws, seed = check_int("draws", draws, LEAST_DRAWS, hint="such as 999"), checked_seed(seed)
    how, classes = coded(checked, variables), checked.p.shape[1]
    cluster = cluster_kernel(checked, how)
    checked_size(cluster)
    kernel, reported = (shape or Shape()).of(cluster, seed)
    # (1) The classes of the data (first column) and of each draw; (2) of each class against the rest, four statistics.
    drawn = np.column_stack([checked.y, drawn_classes(checked.p, draws, seed)])
    each = np.stack([_of_class(kernel, checked, drawn, c) for c in range(classes)])
    # (3) Added up over classes, and ranked as of two classes.
    result, pairs = each.sum(axis=0), checked.n * (checked.n - 1.0)
    ranks, alone = ranked(result), [smallest(ranked(own)) for own in each]
    contradicted = int((checked.p[np.arange(checked.n), checked.y] == 0).sum())
    happened = checked.y[:, None] == np.arange(classes)
    sure = (happened & (checked.p == 0) | ~happened & (checked.p == 1)).any(axis=0)
    alone = [0.0 if certain else p for p, certain in zip(alone, sure, strict=True)]
    return Outcome(
        method="detect.local_calibration_test",
        statistic=float(result[0, 0] / pairs),
        p_value=0.0 if contradicted else smallest(ranks),
        alternative="the rate of some class given scores and covariates is not its score",
        null="given scores and covariates, classes are independent with the probabilities stated",
        law=f"certain: {IMPOSSIBLE}" if contradicted else "exact simulation",
        settings=_settings(how, {"draws": draws, "seed": seed, "n": checked.n, **reported}),
        parts={
            **_parts(result / pairs, ranks),
            "classes": checked.classes or tuple(map(str, range(classes))),
            "class_statistic": tuple(float(own[0, 0] / pairs) for own in each),
            "class_p": tuple(alone),
            "class_adjusted_p": tuple(float(p) for p in holm(alone)),
            "contradicted": contradicted,
        },
    )


def _settings(how: Sequence[Coding], known: Mapping[str, object]) -> dict[str, object]:
    """What the number depends on, and what was done to the covariates."""
    return {
        "features": "exact",
        **known,
        "statistics": NAMES,
        "variables": tuple(c.name for c in how if c.kind != "constant"),
        "ranked": tuple(c.name for c in how if c.scaling == "rank"),
        "dropped": tuple(c.name for c in how if c.kind == "constant"),
    }


def _parts(mean: NDArray[np.float64], ranks: NDArray[np.float64]) -> dict[str, float]:
    """The four statistics, over the pairs of rows, and their p-values."""
    return {
        "p_raw": float(ranks[0, 0]),
        "p_local": float(ranks[1, 0]),
        "p_global": smallest(ranks[2:]),
        "p_intercept": float(ranks[2, 0]),
        "p_intercept_slope": float(ranks[3, 0]),
        "centred": float(mean[1, 0]),
        "null_sd": float(mean[0, 1:].std()),
    }


def drawn_classes(p: NDArray[np.float64], draws: int, seed: int) -> NDArray[np.int16]:
    """Return classes drawn from the probabilities of each row, shape (rows, draws); those of score 0 never."""
    edges = np.cumsum(p, axis=1)[:, :-1] / p.sum(axis=1, keepdims=True)
    out = np.empty((len(p), draws), np.int16)
    for b in range(draws):
        at = np.random.default_rng([CLASS_STREAM, seed, b]).random((len(p), 1))
        out[:, b] = (at >= edges).sum(axis=1)
    return out


def _of_class(
    kernel: Kernel, data: MulticlassPredictions, drawn: NDArray[np.integer], number: int
) -> NDArray[np.float64]:
    """The four statistics of one class against the rest, of the data and of each draw."""
    rows = Rows(data.p[:, number], np.ones(data.n), (data.y == number).astype(np.float64))
    return statistics_of(kernel, rows, (drawn == number).astype(np.uint8))
