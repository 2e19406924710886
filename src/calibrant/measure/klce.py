"""The kernel local calibration error, of two classes or several, with an interval that holds at any number of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from calibrant.arguments import checked_alpha, checked_seed, choice
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.local import LANDMARKS, LocalSums
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.runtime import one_thread
from calibrant.results import Estimate, Interval
from calibrant.stats.local.kernel_sums import Family, off_diagonal, pair_radius
from calibrant.views.kernel_rows import (
    UNWEIGHTED,
    UNWEIGHTED_CLASSES,
    Shape,
    checked_classes,
    checked_rows,
    checked_size,
    cluster_kernel,
    coded,
    residuals_of,
)
from calibrant.views.kinds import ByKind
from calibrant.views.local_sums import WeightedSums, kernel_bound, natural, squared_error, sums_of_rows, sums_of_sketch

CLUSTERED = "the interval is for independent rows: use local_calibration_test with cluster="
OF_ROWS = "independent rows; covariates, family and widths chosen without the labels"
OF_OUTCOMES = "independent outcomes, given the scores and covariates; covariates chosen without the labels"
ROUNDED = 1e-4  # of a row's own square, at most, by the whole steps in which it is summed
Kind = Literal["exact", "default"]
KINDS: tuple[Kind, ...] = ("exact", "default")


@takes_arrays
def klce(
    data: Predictions | MulticlassPredictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    alpha: float = 0.05,
    family: Family = "gaussian",
    degree: int | None = None,
    score_width: float | None = None,
    covariate_width: float | None = None,
    features: Kind = "exact",
    seed: int = 0,
) -> Estimate:
    r"""The squared kernel local calibration error, ``KLCE^2``.

    Estimand: ``1 / (n (n - 1)) sum_{i != j} d_i' k(p_i, p_j) l(x_i, x_j) d_j`` with the vector ``d = P(Y = . | p, x) -
    p`` of what the probabilities are off, of one class (the positive one) if there are two. Over samples its mean is
    ``KLCE^2``, the largest ``E[d'h]`` over functions h of the kernel's unit ball, squared: zero when the model is
    right given score and covariates. It has no unit of its own; values of different kernels or data are not comparable.

    Parameters
    ----------
    data : Predictions, MulticlassPredictions or Sketch
        Covariates of any kind. A sketch, made with ``tests=True``, takes ``features="default"`` and brings its own
        variables and seed.
    variables : str or sequence of str, optional
        Covariates to measure against; all by default.
    alpha : float in (0, 0.5]
    family : {"gaussian", "laplace", "polynomial"}
    degree : int, optional
        Of a polynomial; 3 by default.
    score_width, covariate_width : float, optional
        In standard deviations; by default twice the median distance between rows.
    features : {"exact", "default"}
        The kernel over all pairs of rows; or the joint features of `local_calibration_test`, a Gaussian kernel seen
        from 128 rows, for two classes and any number of rows: what an audit reports.
    seed : int
        Chooses those 128 rows; without labels.

    Returns
    -------
    Estimate
        ``value`` is unbiased and can be negative.

    Raises
    ------
    BadInput
        No such covariate, or none; a setting out of range, or of the other features; a sketch without tests.
    NotComputable
        A single row; over 50,000 rows with ``features="exact"``; weights; clusters.

    Notes
    -----
    **Assumes.** Independent rows; covariates, family and widths chosen without the labels. Of the default features no
    more than independent outcomes, given scores and covariates: its interval is about those of these rows.
    **Guarantee.** Finite-sample, whatever the kernel, and wide: half the width is ``B sqrt(2 ln(2 / alpha) / floor(n /
    2))`` with B = 1 for two classes and 2 for several, 0.12 of two classes at 1,000 rows. Of the default features,
    given scores and covariates, B is half of ``settings["bound"]``, about 0.56. Whether it is zero is the question of
    `local_calibration_test`, which is far sharper; ``settings["accepted"]`` is what the estimate of a calibrated model
    is under with probability ``1 - alpha``, given scores and covariates.
    **Method.** Equation 4, and its matrix-valued form with ``k l I`` for several classes; Theorem 3.6 with ``floor(n /
    2)`` for n, as derived in the documentation, given scores and covariates. Departures: that; score and covariates are
    standardised (or ranked), categories count as standardised coordinates, widths follow distances.
    **Cost.** ``n^2`` multiplications a class in float64; no n x n matrix. Default features: linear in the rows, nothing
    of a sketch. **Reads.** Rows; or a sketch.

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
    alpha, seed = checked_alpha(alpha), checked_seed(seed)
    shape = Shape(family=family, degree=degree, score_width=score_width, covariate_width=covariate_width)
    several = isinstance(data, MulticlassPredictions)
    if choice("features", features, KINDS) == "default":
        if shape != Shape():
            raise BadInput("family=, degree= and widths have no meaning with features='default': leave them out")
        if several:
            raise BadInput("features='default' is of two classes: pass features='exact', or data.top_label()")
        return _of_sums(_sums(data, variables, seed), alpha)
    rows: Predictions | MulticlassPredictions
    if several:
        rows = checked_classes(data, weights=UNWEIGHTED_CLASSES, cluster=CLUSTERED)
    else:
        rows = checked_rows(data, weights=UNWEIGHTED, cluster=CLUSTERED)
    how = coded(rows, variables)
    cluster = cluster_kernel(rows, how)
    checked_size(cluster)
    kernel, reported = shape.of(cluster, 0)
    # Equation 4, summed over classes: the kernel of classes is the identity.
    with one_thread():
        each = off_diagonal(kernel, residuals_of(rows)[1])[0]
    value, bound = float(each.sum()) / (rows.n * (rows.n - 1.0)), 2.0 if several else 1.0
    # Theorem 3.6. A positive kernel over all pairs is at least 0, and the pairs of a row with itself are at most n B.
    radius = pair_radius(alpha / 2.0, rows.n // 2, bound)
    settings = {
        **reported,
        "features": "exact",
        "variables": tuple(c.name for c in how if c.kind != "constant"),
        "dropped": tuple(c.name for c in how if c.kind == "constant"),
        "bound": bound,
        "accepted": pair_radius(alpha, rows.n // 2, bound if several else bound / 2.0),
    }
    return _estimate(value, (radius, bound), rows.n, alpha, settings, OF_ROWS)


def _sums_of_rows(data: Predictions, variables: Iterable[str] | str | None, seed: int) -> LocalSums | WeightedSums:
    checked_rows(data, weights=UNWEIGHTED, cluster=CLUSTERED)
    return sums_of_rows(data, variables, 0, "auto", seed, LANDMARKS)[0]


def _sums_kept(data: Sketch, variables: Iterable[str] | str | None, seed: int) -> LocalSums | WeightedSums:
    del seed
    return sums_of_sketch(data, variables)


# The sums of the joint features.
_sums = ByKind(rows=_sums_of_rows, counts=_sums_kept)


def _of_sums(sums: LocalSums | WeightedSums, alpha: float) -> Estimate:
    """Equation 4 under the joint features, with its interval given scores and covariates."""
    spec, n = sums.spec, int(sums.counts[0])
    if not spec.joint:
        raise NotComputable("score and covariates are the same in every row: there is nothing by which to look")
    value, bound = squared_error(sums, natural(sums)[0][:, 0]), kernel_bound(spec)
    # A product of two residuals lies in an interval of length 1, so that half of the kernel's bound serves.
    radius = pair_radius(alpha / 2.0, n // 2, bound / 2.0) + ROUNDED * bound / (n - 1.0)
    settings = {
        "features": "default",
        "variables": (*(q.name for q in spec.lines), *(q.name for q in spec.levels)),
        "landmarks": len(spec.landmarks),
        "joint_features": spec.joint,
        "width": spec.width,
        "bound": bound,
        "accepted": pair_radius(alpha, n // 2, bound / 2.0) + ROUNDED * bound / (n - 1.0),
        "seed": spec.seed,
    }
    return _estimate(value, (radius, bound), n, alpha, settings, OF_OUTCOMES)


def _estimate(
    value: float, reach: tuple[float, float], n: int, alpha: float, settings: Mapping[str, object], assumes: str
) -> Estimate:
    """The estimate: `reach` is half of the width, and the largest size of a pair's term."""
    radius, bound = reach
    return Estimate(
        method="measure.klce",
        value=value,
        unit="",
        n=n,
        interval=Interval(
            low=min(value, max(value - radius, -bound / (n - 1.0))),
            high=min(value + radius, bound),
            level=1.0 - alpha,
            guarantee="finite-sample",
        ),
        assumes=assumes,
        settings={**settings, "alpha": alpha},
    )
