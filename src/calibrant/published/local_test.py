"""The local calibration test with its two published nulls, neither of which has the level it states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_seed, choice, positive, whole
from calibrant.data.predictions import Predictions
from calibrant.data.specs.coding import encode
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.runtime import one_thread
from calibrant.results import Outcome
from calibrant.stats.kernel_sums import Kernel, off_diagonal
from calibrant.views.kernel_rows import LEAST_DRAWS, checked_rows, coded

Floats = NDArray[np.float64]
Null = Literal["resampled", "permuted"]
Normalisation = Literal["paper", "code"]
HELD = 1 << 25  # residuals held at once, for memory
STREAM = 0xB007
LEVELS = (0.05, 0.5, 0.9, 0.95, 0.99)  # quantiles of the null that are reported
LAW = {
    "resampled": "as published, not level alpha: residuals drawn with replacement (Algorithm 1)",
    "permuted": "as published, not level alpha: residuals permuted (the authors' program)",
}


@dataclass(frozen=True, kw_only=True)
class PublishedKernel:
    """The kernel as published, on covariates that are not scaled, and how the sum over pairs is normalised.

    Parameters
    ----------
    score_width, covariate_gamma : float
        ``w`` (the authors: 0.1) and ``gamma`` (0.5 for COMPAS, 25 elsewhere; 0.04 for both kernels of the simulations,
        that is a width of 5).
    normalisation : {"paper", "code"}
        Divide the sum over pairs by ``n (n - 1)``, or by ``(n - 1) / n`` times the sum of the kernel over all pairs.
    """

    score_width: float = 0.1
    covariate_gamma: float = 0.5
    normalisation: Normalisation = "paper"

    def __post_init__(self) -> None:
        choice("normalisation", self.normalisation, ("paper", "code"))
        positive("score_width", self.score_width)
        positive("covariate_gamma", self.covariate_gamma)


def published_local_test(
    data: Predictions,
    *,
    variables: Iterable[str] | str | None = None,
    draws: int = 1000,
    null: Null = "resampled",
    seed: int = 0,
    kernel: PublishedKernel | None = None,
) -> Outcome:
    r"""Test local calibration as the paper or its authors' program does, for comparison.

    Estimand: ``KLCE^2 = E[e k(p, p') l(x, x') e']``, ``e = y - p``, with ``k = exp(-(p - p')^2 / w^2)`` and
    ``l = exp(-gamma |x - x'|^2)`` on covariates that are not scaled.

    Parameters
    ----------
    data : Predictions
        Covariates are numbers or booleans, none missing.
    variables : str or sequence of str, optional
        Covariates to test against; all by default.
    draws, seed : int
        Bootstraps or permutations (the paper: 1000, 500 in its tables), and their seed.
    null : {"resampled", "permuted"}
        Algorithm 1, or the authors' program.
    kernel : PublishedKernel, optional

    Returns
    -------
    Outcome
        ``statistic``, and ``p_value`` as published: it can be 0 for ``"resampled"`` and is at least ``1 / draws`` for
        ``"permuted"``. In ``parts``: both normalisations, the plain sum over pairs, the sum of the kernel as the
        program uses it, mean, deviation and quantiles of the null sums, and the p-values of the null as it is
        (``p_plain``) and shifted to mean zero (``p_centred``).

    Raises
    ------
    BadInput
        A covariate that is not a number, or has missing values; a setting out of range.
    NotComputable
        A single row; weights or clusters.

    Notes
    -----
    **Assumes.** That residuals are exchangeable, which ``Var(e) = p (1 - p)`` contradicts.
    **Guarantee.** As published, not level alpha: measured error rates at 0.05 lie between 0.000 and 0.10 for
    Algorithm 1 and between 0.05 and 0.14 for permutation. Use `local_calibration_test` for a test.
    **Method.** Equation 4; Algorithm 1 with ``p = #{null > data} / draws``. Permutation: NumPy's legacy
    ``RandomState(seed).permutation(n)``, in sequence, the null shifted to mean zero, ``p = max(1 / draws, #/draws)``.
    No departure but the order of summation.
    **Cost.** ``n^2 draws`` multiplications in float64; no n x n matrix.
    **Reads.** Rows.

    References
    ----------
    Vashistha and Farahi (2025), "I-trustworthy models", AISTATS, equation 4 and Algorithm 1.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> from calibrant.published.local_test import published_local_test
    >>> rng = np.random.default_rng(0)
    >>> p, x = rng.uniform(0.2, 0.8, 300), rng.normal(size=300)
    >>> data = cal.predictions(rng.uniform(size=300) < p + 0.2 * np.sign(x), p, {"x": x})
    >>> published_local_test(data, null="permuted", seed=123).p_value
    0.001
    """
    rows = checked_rows(data)
    if rows.cluster is not None:
        raise NotComputable("the published nulls are for independent rows: leave cluster= out, or use the default test")
    draws = whole("draws", draws, LEAST_DRAWS, hint="such as 1000")
    choice("null", null, tuple(LAW))
    seed = checked_seed(seed)
    if null == "permuted" and seed >= 1 << 32:
        raise BadInput(f"seed={seed}: the authors' permutations take seeds under 2**32")
    how = kernel or PublishedKernel()
    pairwise, names = _kernel(rows, variables, how)
    # Algorithm 1, step 2: the residuals. Steps 3 and 4: their sum over pairs, and equation 4 from it.
    e, n = rows.y - rows.p, rows.n
    with one_thread():
        (pairs,), beside = off_diagonal(pairwise, e[:, None], np.ones((n, 1)))
        # Steps 5 to 10: the same of residuals under the published null.
        found = np.concatenate([off_diagonal(pairwise, batch)[0] for batch in _simulated(e, draws, null, seed)])
    by = {"paper": n * (n - 1.0), "code": float(beside.sum() + n) * (n - 1.0) / n}
    above, above_centred = float((found > pairs).mean()), float((found - found.mean() > pairs).mean())
    return Outcome(
        method="detect.local_calibration_test",
        statistic=float(pairs / by[how.normalisation]),
        p_value=above if null == "resampled" else max(1.0 / len(found), above_centred),  # step 11, or the program's
        alternative="the event rate given score and covariates is not the score",
        null="residuals are exchangeable",
        law=LAW[null],
        settings={
            "features": "published",
            "null": null,
            "draws": draws,
            "seed": seed,
            "n": n,
            "variables": names,
            "score_width": float(how.score_width),
            "covariate_gamma": float(how.covariate_gamma),
            "normalisation": how.normalisation,
            "guarantee": "as published",
        },
        parts={
            "sum": float(pairs),
            "kernel_sum": by["code"],
            "paper": float(pairs / by["paper"]),
            "code": float(pairs / by["code"]),
            "null_mean": float(found.mean()),
            "null_sd": float(found.std()),
            "levels": LEVELS,
            "null_quantiles": tuple(float(v) for v in np.quantile(found, LEVELS)),
            "p_plain": above,
            "p_centred": above_centred,
        },
    )


def _simulated(e: Floats, draws: int, null: Null, seed: int) -> Iterator[Floats]:
    """Yield residuals under the published null, columns in batches; the same for any batch size."""
    n, orders = len(e), _orders(len(e), draws, null, seed)
    step = max(1, HELD // n)
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
    """Return the published kernel: score and covariates as they come, each by its own gamma."""
    encoded = encode(data.covariates, coded(data, variables))
    for name, labels in zip(encoded.level_names, encoded.level_labels, strict=True):
        if labels[:-2] != ("false", "true"):
            raise BadInput(f"covariate {name!r}: the published kernel takes numbers or booleans, none missing")
        if (encoded.codes[:, encoded.level_names.index(name)] > 1).any():
            raise BadInput(f"covariate {name!r} has missing values: the published kernel takes none")
    x = np.hstack([encoded.numbers, encoded.codes])
    points = np.column_stack([np.sqrt(2.0) / how.score_width * data.p, np.sqrt(2.0 * how.covariate_gamma) * x])
    kernel = Kernel(points, np.zeros((data.n, 0), dtype=np.int32), np.zeros(0))
    return kernel, (*encoded.number_names, *encoded.level_names)
