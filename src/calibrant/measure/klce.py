"""The kernel local calibration error, of two classes or several, with an interval that holds at any number of rows."""

from __future__ import annotations

from collections.abc import Iterable

from calibrant.arguments import checked_alpha, one_source
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.errors import NotComputable
from calibrant.kernels.runtime import one_thread
from calibrant.results import Estimate, Interval
from calibrant.stats.kernel_sums import Family, off_diagonal, pair_radius
from calibrant.views.kernel_rows import SINGLE, Shape, checked_rows, checked_size, coded, residuals_of, unit_kernel


@one_source
def klce(
    data: Predictions | MulticlassPredictions,
    *,
    variables: Iterable[str] | str | None = None,
    alpha: float = 0.05,
    family: Family = "gaussian",
    degree: int | None = None,
    score_width: float | None = None,
    covariate_width: float | None = None,
) -> Estimate:
    r"""Return the squared kernel local calibration error, ``KLCE^2``.

    Estimand: ``1 / (n (n - 1)) sum_{i != j} d_i' k(p_i, p_j) l(x_i, x_j) d_j`` with the vector ``d = P(Y = . | p, x) -
    p`` of what the probabilities are off, of one class (the positive one) if there are two. Over samples its mean is
    ``KLCE^2``, the largest ``E[d'h]`` over functions h of the kernel's unit ball, squared: zero when the model is right
    given score and covariates. It has no unit of its own; values of different kernels or data are not comparable.

    Parameters
    ----------
    data : Predictions or MulticlassPredictions
        Covariates of any kind.
    variables : str or sequence of str, optional
        Covariates to measure against; all by default.
    alpha : float in (0, 1)
    family : {"gaussian", "laplace", "polynomial"}
    degree : int, optional
        Of a polynomial; 3 by default.
    score_width, covariate_width : float, optional
        In standard deviations; by default twice the median distance between rows.

    Returns
    -------
    Estimate
        ``value`` is unbiased and can be negative.

    Raises
    ------
    BadInput
        No such covariate, or none; a setting out of range; a sketch.
    NotComputable
        A single row; over 50,000 rows; weights; clusters.

    Notes
    -----
    **Assumes.** Independent rows; covariates, family and widths chosen without the labels.
    **Guarantee.** Finite-sample, whatever the kernel, and wide: half the width is ``B sqrt(2 ln(2 / alpha) / floor(n /
    2))`` with B = 1 for two classes and 2 for several, 0.12 of two classes at 1,000 rows. Whether it is zero is the
    question of `local_calibration_test`, which is far sharper.
    **Method.** Equation 4, and its matrix-valued form with ``k l I`` for several classes; Theorem 3.6 with ``floor(n /
    2)`` for n, as derived in the documentation, given scores and covariates. Departures: that; score and covariates are
    standardised (or ranked), categories count as standardised coordinates, widths follow distances.
    **Cost.** ``n^2`` multiplications a class in float64; no n x n matrix. **Reads.** Rows.

    References
    ----------
    Vashistha and Farahi (2025), "I-trustworthy models", AISTATS, equation 4 and Theorem 3.6. Widmann, Lindsten,
    Zachariah (2019), arXiv:1910.11385 (several classes).

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, x = rng.uniform(0.2, 0.8, 1000), rng.normal(size=1000)
    >>> data = cal.predictions(rng.uniform(size=1000) < p + 0.2 * np.sign(x), p, {"x": x})
    >>> f"{cal.measure.klce(data):.3f}"
    '0.001 (-0.002 to 0.123)'
    """
    alpha, shape = (
        checked_alpha(alpha),
        Shape(family=family, degree=degree, score_width=score_width, covariate_width=covariate_width),
    )
    several = isinstance(data, MulticlassPredictions)
    rows = data if several else checked_rows(data)
    if isinstance(rows, Predictions) and rows.cluster is not None:
        raise NotComputable("the interval is for independent rows: use local_calibration_test with cluster=")
    if rows.n < 2:
        raise NotComputable(SINGLE)
    how = coded(rows, variables)
    unit = unit_kernel(rows, how)
    checked_size(unit)
    kernel, told = shape.of(unit, 0)
    # Equation 4, summed over classes: the kernel of classes is the identity.
    with one_thread():
        each = off_diagonal(kernel, residuals_of(rows)[1])[0]
    value, bound = float(each.sum()) / (rows.n * (rows.n - 1.0)), 2.0 if several else 1.0
    # Theorem 3.6. A positive kernel over all pairs is at least 0, and the pairs of a row with itself are at most n B.
    radius = pair_radius(alpha / 2.0, rows.n // 2, bound)
    return Estimate(
        method="measure.klce",
        value=value,
        unit="",
        n=rows.n,
        interval=Interval(
            low=max(value - radius, -bound / (rows.n - 1.0)),
            high=min(value + radius, bound),
            level=1.0 - alpha,
            guarantee="finite-sample",
        ),
        assumes="independent rows; covariates, family and widths chosen without the labels",
        settings={
            **told,
            "variables": tuple(c.name for c in how if c.kind != "constant"),
            "dropped": tuple(c.name for c in how if c.kind == "constant"),
            "bound": bound,
            "alpha": alpha,
        },
    )
