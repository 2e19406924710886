"""The local calibration test: is the probability right given the covariates, wherever they lie?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from calibrant.data.local_plan import LANDMARKS, NULLS
from calibrant.data.seed import checked_seed
from calibrant.data.sketch import Sketch
from calibrant.detect.local_exact import SINGLE, checked_draws, checked_names, checked_rows, exact_local_test
from calibrant.detect.local_features import outcome
from calibrant.detect.local_published import published_local_test
from calibrant.detect.local_rows import flipped, sums_of_rows
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Outcome

Null = Literal["auto", "simulated", "gaussian", "resampled", "permuted"]
Kind = Literal["default", "exact", "published"]
OPTIONS = {
    "default": (),
    "exact": ("score_width", "covariate_width"),
    "published": ("score_width", "covariate_gamma", "normalisation"),
}


def local_calibration_test(
    data: Any,
    variables: Sequence[str] | None = None,
    draws: int = 999,
    null: Null = "auto",
    seed: int = 0,
    *,
    features: Kind = "default",
    landmarks: int = LANDMARKS,
    score_width: float | None = None,
    covariate_width: float | None = None,
    covariate_gamma: float | None = None,
    normalisation: Literal["paper", "code"] | None = None,
) -> Outcome:
    r"""Test whether the probabilities are right given the covariates, and say for which of them they are not.

    Estimand of the raw statistic: ``KLCE^2 = E[e k(z, z') e']`` with ``e = y - p``, ``z = (p, x)`` and an independent
    copy primed: zero when ``E[Y | p, x] = p``, positive otherwise. Larger is worse; it has no unit of its own.

    Parameters
    ----------
    data : Predictions or Sketch
        Covariates of any kind; clusters are taken into account. A sketch made with ``tests=True`` brings its own
        variables, draws, null and seed, and gives the same answer as the rows.
    variables : sequence of str, optional
        Covariates to test against, up to 100; all that can be used by default. Without any, the score alone.
    draws, seed : int
        Simulated outcomes, and their seed.
    null : {"auto", "simulated", "gaussian", "resampled", "permuted"}
        Simulate outcomes; or the joint Gaussian law of the sums (4,000 draws). ``"auto"`` simulates up to 200,000 rows,
        and where fewer than 100 cases or non-cases are expected. The last two belong to ``features="published"``.
    features : {"default", "exact", "published"}
        Features that take any number of rows; the kernel over all pairs of rows (`detect.local_exact`); or the
        procedure as published (`detect.local_published`).
    landmarks : int
        Rows whose neighbourhoods make the joint features, 2 to 1,024.
    score_width, covariate_width : float, optional
        Of the other two procedures; `covariate_gamma` and `normalisation` of the published one.

    Returns
    -------
    Outcome
        ``statistic`` is the unbiased estimate ``KLCE^2_u`` under the joint kernel (it can be negative); ``p_value`` is
        that of the whole test. In ``parts``: ``p_global`` (the overall level and slope), ``p_local`` (everything else),
        ``p_joint``; ``variables`` with ``variable_p`` and ``variable_adjusted_p`` (for all of them together), the score
        being ``"(score)"``; the step or level that deviates most as ``region_variable``, ``region_side`` ("at least",
        "under", "is"), ``region_value``, ``region_rows``, ``region_gap`` (mean of y - p there), ``region_excess`` (what
        the overall level and slope leave of it) and ``region_z`` (that in null standard deviations); ``cases`` and
        ``expected``; every statistic's name and p-value; and ``contradicted``: rows whose outcome the score called
        impossible. Any such row makes ``p_value`` zero.

    Raises
    ------
    BadInput
        No such covariate, too many, or a setting that cannot be used; a sketch without the sums.
    NotComputable
        A single row; weights; the Gaussian null with too few expected cases, or with clusters.

    Notes
    -----
    **Assumes.** Independent rows (or clusters); covariates chosen without the labels.
    **Guarantee.** Simulated: level alpha at any number of rows, for ``p_value``, ``p_global``, ``p_local`` and the
    smallest adjusted p: given the rows, data and draws are exchangeable under the null and every p-value is a rank
    among them. Gaussian: asymptotic; levels whose residuals have a null variance under 25 are not read by themselves.
    With clusters the signs of whole clusters' residuals are drawn: asymptotic in their number. **Method.** Features see
    no label. Joint: a Gaussian kernel on standardised (or ranked) score and covariates, width twice the median
    distance, at 128 landmarks, categories of up to 14 levels included. Each number by itself: a kernel at 12 quantiles,
    width the median distance, and steps at 5 quantiles. Each category: its levels (of more than 128, the 96 most
    frequent; the rest share 31 columns by hash). Sums of features times residuals are centred by projecting ``[1, logit
    p]`` out (logit kept within 16) and taken apart into eigenvectors of their null covariance; the statistics are ``sum
    lambda / (lambda + gamma lambda_1) u^2`` with gamma infinite, 0.1 and 0.01 for the joint and for the added single
    kernels, the largest standard score of a step or level, the most surprising variable, and the score tests of the
    intercept and of intercept and slope. Each becomes a rank among the draws; their weighted harmonic mean is ranked
    again. Features are whole numbers, so that sums are exact: chunks, order and threads do not matter, equal rows tie
    exactly, and no joining of repeated rows is needed. Departures from the paper: the null, the widths, centring, the
    flattened spectra, the steps, the combination. **Cost.** Linear in the rows. With 10 covariates: two CPU-seconds at
    100,000 rows (999 draws), five at a million (Gaussian). Memory: sums of features times draws, and one chunk.
    **Reads.** Rows, or the sketch.

    References
    ----------
    Vashistha and Farahi (2025), "I-trustworthy models", AISTATS. Wilson (2019), doi:10.1073/pnas.1814092116 (harmonic
    mean of p-values, here calibrated by the draws).

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, x, z = rng.uniform(0.2, 0.8, 1000), rng.normal(size=1000), rng.normal(size=1000)
    >>> data = cal.predictions(rng.uniform(size=1000) < p + 0.15 * np.sign(x), p, {"x": x, "z": z})
    >>> found = cal.detect.local_calibration_test(data)
    >>> found.p_value, found.parts["region_variable"]
    (0.001, 'x')
    """
    options = {
        "score_width": score_width,
        "covariate_width": covariate_width,
        "covariate_gamma": covariate_gamma,
        "normalisation": normalisation,
    }
    given, seed = _checked(features, null, landmarks, options), checked_seed(seed)
    if features == "exact":
        return exact_local_test(data, variables, draws, seed, **given)
    if features == "published":
        return published_local_test(data, variables, draws, "resampled" if null == "auto" else null, seed, **given)  # type: ignore[arg-type]
    if isinstance(data, Sketch):
        return _from_sketch(data, variables, null)
    checked_rows(data)
    checked_draws(draws)
    if null == "gaussian" and data.clusters is not None:
        raise NotComputable("the Gaussian null is for independent rows: leave null='auto' with clusters")
    sums, how, left_out = sums_of_rows(data, variables, int(draws), null, seed, landmarks)
    flips = None if data.clusters is None else flipped(sums, data, how, int(draws), seed)
    return outcome(sums, how, flips, left_out)


def _checked(features: Any, null: Any, landmarks: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options given, or refuse those that do not belong to these features."""
    if not isinstance(features, str) or features not in OPTIONS:
        raise BadInput(f"features={features!r}: pass 'default', 'exact' or 'published'")
    allowed = {"default": NULLS, "exact": ("auto", "simulated"), "published": ("auto", "resampled", "permuted")}[
        features
    ]
    if null not in allowed:
        raise BadInput(f"null={null!r} with features={features!r}: pass one of {', '.join(map(repr, allowed))}")
    given = {k: v for k, v in options.items() if v is not None}
    for name in given:
        if name not in OPTIONS[features]:
            raise BadInput(f"{name}={given[name]!r} has no meaning with features={features!r}: leave it out")
    if isinstance(landmarks, bool) or not isinstance(landmarks, int) or not 2 <= landmarks <= 1024:
        raise BadInput(f"landmarks={landmarks!r}: pass a whole number from 2 to 1024")
    return given


def _from_sketch(data: Sketch, variables: Sequence[str] | None, null: str) -> Outcome:
    whole = data.checked()
    if "local" not in whole.parts:
        raise BadInput("this sketch holds no sums for tests: make it with cal.sketch(..., variables=[...], tests=True)")
    sums, held = whole.parts["local"], tuple(c.name for c in whole.spec.codings)
    checked_names(variables)
    if whole.n < 2:
        raise NotComputable(SINGLE)
    if variables is not None and not (all(isinstance(v, str) for v in variables) and set(variables) == set(held)):
        raise BadInput(f"variables={list(variables)!r}: this sketch holds sums for all of {', '.join(held)} together")
    has = "simulated" if sums.spec.draws else "gaussian"
    if null not in ("auto", has):
        raise BadInput(f"null={null!r}: this sketch holds what the {has} null needs; leave null='auto'")
    return outcome(sums, whole.spec.codings, None, whole.spec.left_out)
