"""The local calibration test as published, with two nulls that lack the level they state; and the bias it localizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant import Predictions
from calibrant.arguments import check_int, checked_seed, choice, names
from calibrant.diagnose import local_bias
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve, Outcome
from calibrant.stats.local.kernel_sums import Family, Kernel, off_diagonal, pair_radius, pair_tail
from calibrant.toolkit.data import decoded, encode, finite_numbers, is_number, require, takes_arrays
from calibrant.toolkit.methods import one_thread
from calibrant.views.kernel_rows import (
    LEAST_DRAWS,
    NULL,
    UNWEIGHTED,
    checked_family,
    checked_rows,
    checked_width,
    coded,
)

Floats = NDArray[np.float64]
Null = Literal["resampled", "permuted", "bounded", "printed"]
Normalisation = Literal["paper", "code"]
AT_ONCE = 1 << 25  # residuals held at once, for memory
STREAM = 0xB007
LEVELS = (0.05, 0.5, 0.9, 0.95, 0.99)  # quantiles of the null that are reported
ALPHAS = (0.1, 0.05, 0.01)  # error probabilities whose acceptance regions are reported
RIGHT = 0.5  # half of the interval that holds a pair's term of two classes, the score being given
LAW = {
    "resampled": "as published, not level alpha: residuals drawn with replacement (Algorithm 1)",
    "permuted": "as published, not level alpha: residuals permuted (the authors' program)",
    "bounded": "distribution-free: Hoeffding's inequality, floor(n / 2) pairs (Corollary 3.7, proved)",
    "printed": "as published: Hoeffding's inequality with n in place of floor(n / 2) (Corollary 3.7)",
}


@dataclass(frozen=True)
class PublishedKernel:
    """The kernel as published, on covariates that are not scaled, and how the sum over pairs is normalised."""

    score_width: float
    covariate_gamma: float
    normalisation: Normalisation
    family: Family
    degree: int | None

    def __post_init__(self) -> None:
        checked_family(self.family, self.degree)
        choice("normalisation", self.normalisation, ("paper", "code"))
        checked_width("score_width", self.score_width)
        checked_width("covariate_gamma", self.covariate_gamma)


@takes_arrays
def published_local_test(
    data: Predictions,
    *,
    variables: Iterable[str] | str | None = None,
    draws: int = 1000,
    null: Null = "resampled",
    seed: int = 0,
    score_width: float = 0.1,
    covariate_gamma: float = 0.5,
    normalisation: Normalisation = "paper",
    family: Family = "gaussian",
    degree: int | None = None,
) -> Outcome:
    r"""Test local calibration as the paper or its authors' program does, for comparison.

    Estimand: ``KLCE^2 = E[e k(p, p') l(x, x') e']``, ``e = y - p``, with ``k = exp(-(p - p')^2 / w^2)`` and
    ``l = exp(-gamma |x - x'|^2)`` on covariates that are not scaled, or the other families.

    Parameters
    ----------
    data : Predictions
        Covariates are numbers or booleans, none missing.
    variables : str or sequence of str, optional
        Covariates to test against; all by default.
    draws, seed : int
        Bootstraps or permutations (the paper: 1000, 500 in its tables), and their seed.
    null : {"resampled", "permuted", "bounded", "printed"}
        Algorithm 1; the authors' program; Corollary 3.7 as proved here, and as printed. The last two draw nothing.
    score_width, covariate_gamma : float
        ``w`` (the authors: 0.1) and ``gamma`` (0.5 for COMPAS, 25 elsewhere; 0.04 for both kernels of the simulations,
        that is a width of 5).
    normalisation : {"paper", "code"}
        Divide the sum over pairs by ``n (n - 1)``, or by ``(n - 1) / n`` times the sum of the kernel over all pairs.
        The last two nulls take the paper's.
    family : {"gaussian", "laplace", "polynomial"}
        ``exp(-(p - p')^2 / w^2) exp(-gamma |x - x'|^2)``, the paper's; ``exp(-|p - p'| / w - sqrt(gamma) |x - x'|)``;
        or ``(1 + p p' / w^2)^q (1 + gamma x.x')^q``, over the root of its own value at (p, x) and at (p', x').
    degree : int, optional
        ``q`` of a polynomial; 3 by default.

    Returns
    -------
    Outcome
        ``statistic``, and ``p_value`` as published: it can be 0 for ``"resampled"`` and is at least ``1 / draws`` for
        ``"permuted"``. In ``parts``: both normalisations, the plain sum over pairs, and the sum of the kernel as the
        program uses it. Of null sums their mean, deviation and quantiles, and the p-values of the null as it is
        (``p_plain``) and shifted to mean zero (``p_centred``). Of the bounds ``alphas``, for each the ``limits`` under
        which ``statistic`` is accepted (Corollary 3.7) and the ``radii`` about it that hold ``KLCE^2`` of rows from one
        distribution and a kernel fixed beforehand (Theorem 3.6), and ``pairs``, the number of pairs that they count.

    Raises
    ------
    BadInput
        A covariate that is not a number, or has missing values; a setting out of range.
    NotComputable
        A single row; weights or clusters.

    Notes
    -----
    **Assumes.** The bounds: independent rows. Both nulls by simulation: that residuals are exchangeable, which
    ``Var(e) = p (1 - p)`` contradicts.
    **Guarantee.** ``"bounded"``: level alpha for a model that is right given score and covariates, at any number of
    rows, whatever the kernel, and with next to no power: an error of g points common to everyone, of a flat kernel, is
    about to be found from ``ln(1 / alpha) / (g / 100)^4`` rows on. ``"printed"``: for such a model the same, for its
    region is the wider; its radii need not hold ``KLCE^2``. The others are as published, not level alpha: the level
    depends on kernel and design. At 0.05, of calibrated models, Algorithm 1 rejected from 0.00 to 0.20, mostly too few,
    and the centred permutation from 0.05 to 0.31; the plain permutation holds in the paper's own design, and does not
    where noise clumps (200 or 1,500 data sets each; intervals are in the documentation of `local_calibration_test`).
    Use `local_calibration_test` for a test.
    **Method.** Equation 4; Algorithm 1 with ``p = #{null > data} / draws``. Permutation: NumPy's legacy
    ``RandomState(seed).permutation(n)``, in sequence, the null shifted to mean zero, ``p = max(1 / draws, #/draws)``.
    Bounds, of a statistic t above 0 and ``m = floor(n / 2)``: ``p = exp(-2 m t^2)``, for given the scores the terms of
    a pair lie within 1 of each other; radii from ``2 exp(-m t^2 / (2 B^2))`` with ``B = 1``, the least of the paper's
    ``B_{alpha;beta}`` for residuals that are numbers and a kernel of at most one. Printed: ``exp(-n t^2 / (2 B^2))``
    for both, which Hoeffding's inequality does not give. As printed in the main text, with ``P``, it is false of the
    radii: at 2 to 4, 100, 200 and 2,000 rows the exact probability of residuals of 1 and -1 under a flat kernel lies
    above it. Theorem A.8 and Corollary 3.7 hold for ``a = b`` (``B = 2 P``), being wider. No other departure but the
    order of summation.
    **Cost.** ``n^2 draws`` multiplications in float64, the bounds ``n^2``; no n x n matrix.
    **Reads.** Rows.

    References
    ----------
    Vashistha and Farahi (2025), "I-trustworthy models", AISTATS, equation 4, Algorithm 1, Theorem 3.6 and Corollary
    3.7. Hoeffding (1963), doi:10.1080/01621459.1963.10500830, section 5a.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, x = rng.uniform(0.2, 0.8, 300), rng.normal(size=300)
    >>> data = cal.predictions(rng.uniform(size=300) < p + 0.2 * np.sign(x), p, {"x": x})
    >>> cal.papers.published_local_test(data, null="permuted", seed=123).p_value
    0.001
    """
    independent = "the published nulls are for independent rows: use the default test with cluster="
    rows = checked_rows(data, weights=UNWEIGHTED, cluster=independent)
    draws = check_int("draws", draws, LEAST_DRAWS, hint="such as 1000")
    choice("null", null, tuple(LAW))
    seed, how = checked_seed(seed), PublishedKernel(score_width, covariate_gamma, normalisation, family, degree)
    bound = null in ("bounded", "printed")
    if null == "permuted" and seed >= 1 << 32:
        raise BadInput(f"seed={seed}: the authors' permutations take seeds under 2**32")
    if bound and how.normalisation != "paper":
        raise BadInput(f"normalisation={how.normalisation!r} with null={null!r}: the bound is for 'paper'")
    pairwise, read = _kernel(rows, variables, how)
    # Algorithm 1, step 2: the residuals. Steps 3 and 4: their sum over pairs, and equation 4 from it.
    e, n = rows.y - rows.p, rows.n
    with one_thread():
        (pairs,), row_attributes = off_diagonal(pairwise, e[:, None], np.ones((n, 1)))
        # Steps 5 to 10: the same of residuals under the published null.
        batches = () if bound else _simulated(e, draws, null, seed)
        result = np.concatenate([np.zeros(0), *(off_diagonal(pairwise, batch)[0] for batch in batches)])
    by = {"paper": n * (n - 1.0), "code": float(row_attributes.sum() + n) * (n - 1.0) / n}
    statistic = float(pairs / by[how.normalisation])
    p_value, parts = _accepted(statistic, n, null) if bound else _counted(float(pairs), result, null)
    reported = {} if bound else {"draws": draws, "seed": seed}
    return Outcome(
        method="papers.published_local_test",
        statistic=statistic,
        p_value=p_value,
        alternative="the event rate given score and covariates is not the score",
        null=NULL if bound else "residuals are exchangeable",
        law=LAW[null],
        settings={
            "features": "published",
            "null": null,
            **reported,
            "n": n,
            "variables": read,
            "score_width": float(how.score_width),
            "covariate_gamma": float(how.covariate_gamma),
            "normalisation": how.normalisation,
            "family": how.family,
            **({"degree": pairwise.degree} if how.family == "polynomial" else {}),
            "guarantee": "finite-sample" if null == "bounded" else "as published",
        },
        parts={
            "sum": float(pairs),
            "kernel_sum": by["code"],
            "paper": float(pairs / by["paper"]),
            "code": float(pairs / by["code"]),
            **parts,
        },
    )


@takes_arrays
def published_local_bias(
    data: Predictions,
    *,
    variables: Iterable[str] | str | None = None,
    gamma: float = 0.5,
    points: int = 200,
    alpha: float = 0.05,
    draws: int = 999,
    seed: int = 0,
) -> Curve:
    r"""Local calibration bias, LCB, as published: the mean residual of rows with a score and covariates like these.

    Estimand: ``LCB(z') = sum_i k(z', z_i) e_i / sum_i k(z', z_i)``, ``e = y - p``, with the kernel ``k = exp(-gamma
    |z - z'|^2)`` on covariates and score that are not scaled; in probability units, positive where the model
    underpredicts.

    Parameters
    ----------
    data : Predictions
        Covariates are numbers, none missing.
    variables : str or sequence of str, optional
        Covariates of the kernel; all by default.
    gamma : float, positive
        Of the kernel (the authors: 0.5 for COMPAS).
    points : int from 1 to 10,000
        Rows at which it is computed: every n-th of those with different scores or covariates.
    alpha : float in (0, 0.5]
        Error probability of all points together.
    draws, seed : int
        Simulated data sets, and their seed.

    Returns
    -------
    Curve
        As of `diagnose.local_bias`: ``x``, ``x2``, ... (the covariates), ``score``, ``gap``, ``low`` and ``high``
        (simultaneous), ``p_adjusted``; points under ten effective rows are left out.

    Raises
    ------
    BadInput
        A covariate that is no number, or has missing values.
    NotComputable
        No covariate; no point with ten effective rows.

    Notes
    -----
    **Assumes.** Independent rows, or independent clusters.
    **Guarantee.** As of `diagnose.local_bias`: p-values are exact for rows; the paper has none.
    **Method.** Proposition 3.8, equation 7. `diagnose.local_bias` scales each covariate, takes categories and leaves
    the kernel on the score out. **Cost.** Rows times points, and times draws. **Reads.** Rows.

    References
    ----------
    Vashistha and Farahi (2025), "I-trustworthy models", AISTATS, equation 7 and Figure 6.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, x = rng.uniform(0.2, 0.8, 500), rng.normal(size=500)
    >>> data = cal.predictions(rng.uniform(size=500) < p + 0.2 * np.sign(x), p, {"x": x})
    >>> bias = cal.papers.published_local_bias(data, points=20, draws=99).columns
    >>> bool(np.corrcoef(bias["x"], bias["gap"])[0, 1] > 0.9)
    True
    """
    rows = checked_rows(data, weights=UNWEIGHTED)
    check_int("points", points, 1, 10_000, of="points", hint="such as 200")
    if rows.covariates is None or not rows.covariates.num_columns:
        raise NotComputable("local calibration bias is given covariates: pass a number in covariates")
    wanted = names("variables", variables, what="a covariate", distinct=True) or tuple(rows.covariates.column_names)
    require(wanted, tuple(rows.covariates.column_names), "covariate")
    read = [decoded(rows.covariates.column(name)) for name in wanted]
    if unfit := [n for n, c in zip(wanted, read, strict=True) if not is_number(c.type) or c.null_count]:
        raise BadInput(f"covariate {unfit[0]!r}: the published kernel takes numbers, none missing; name others")
    columns = [finite_numbers(c, n, "covariate") for n, c in zip(wanted, read, strict=True)]
    places = np.unique(np.column_stack([*columns, rows.p]), axis=0)
    grid = places[np.unique(np.linspace(0, len(places) - 1, min(points, len(places))).astype(int))]
    result = local_bias(data, wanted, kernel="published", gamma=gamma, grid=grid, alpha=alpha, draws=draws, seed=seed)
    return replace(result, method="papers.published_local_bias")


def _counted(pairs: float, result: Floats, null: Null) -> tuple[float, dict[str, object]]:
    """The p-value by step 11, or by the program, and what the null sums are."""
    above, above_centred = float((result > pairs).mean()), float((result - result.mean() > pairs).mean())
    return above if null == "resampled" else max(1.0 / len(result), above_centred), {
        "null_mean": float(result.mean()),
        "null_sd": float(result.std()),
        "levels": LEVELS,
        "null_quantiles": tuple(float(v) for v in np.quantile(result, LEVELS)),
        "p_plain": above,
        "p_centred": above_centred,
    }


def _accepted(statistic: float, n: int, null: Null) -> tuple[float, dict[str, object]]:
    """The p-value by Corollary 3.7, and its acceptance regions."""
    pairs, half = (n, 1.0) if null == "printed" else (n // 2, RIGHT)
    return pair_tail(max(statistic, 0.0), pairs, half), {
        "alphas": ALPHAS,
        "limits": tuple(pair_radius(a, pairs, half) for a in ALPHAS),
        "radii": tuple(pair_radius(a / 2.0, pairs) for a in ALPHAS),
        "pairs": pairs,
    }


def _simulated(e: Floats, draws: int, null: Null, seed: int) -> Iterator[Floats]:
    """Yield residuals under the published null, columns in batches; the same for any batch size."""
    n, orders = len(e), _orders(len(e), draws, null, seed)
    step = max(1, AT_ONCE // n)
    for _ in range(0, draws, step):
        yield np.stack([e[order] for order in islice(orders, step)], axis=1)


def _orders(n: int, draws: int, null: Null, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield which row's residual each row gets in each draw."""
    if null == "permuted":
        legacy = np.random.RandomState(seed)  # NumPy's former generator: the authors' draws can be had again
        yield from (legacy.permutation(n) for _ in range(draws))
    else:
        rng = np.random.default_rng([STREAM, seed])
        yield from (rng.integers(0, n, n) for _ in range(draws))


def _kernel(
    data: Predictions, variables: Iterable[str] | str | None, how: PublishedKernel
) -> tuple[Kernel, tuple[str, ...]]:
    """The published kernel: score and covariates as they come, each by its own gamma."""
    encoded = encode(data.covariates, coded(data, variables))
    for name, labels in zip(encoded.level_names, encoded.level_labels, strict=True):
        if labels[:-2] != ("false", "true"):
            raise BadInput(f"covariate {name!r}: the published kernel takes numbers or booleans, none missing")
        if (encoded.codes[:, encoded.level_names.index(name)] > 1).any():
            raise BadInput(f"covariate {name!r} has missing values: the published kernel takes none")
    x = np.hstack([encoded.numbers, encoded.codes])
    points = np.column_stack([data.p / how.score_width, np.sqrt(how.covariate_gamma) * x])
    if how.family == "gaussian":
        points *= np.sqrt(2.0)  # no half in the paper's exponent
    family, degree = checked_family(how.family, how.degree)
    kernel = Kernel(points, np.zeros((data.n, 0), dtype=np.int32), np.zeros(0), family, degree=degree)
    return kernel, (*encoded.number_names, *encoded.level_names)
