"""The local calibration test: is the probability right given the covariates, wherever they lie?

The public function is here, and how sums of features times residuals become an outcome; how rows become such sums is in
`views.local_sums`. The features, which see no label, are in `data.specs.local`; the p-values in `stats.local.spectra`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_seed, choice
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.coding import Coding
from calibrant.data.specs.local import (
    JOINT_LEVELS,
    KNOTS,
    LANDMARKS,
    NULLS,
    STEPS,
    LocalSpec,
    LocalSums,
)
from calibrant.detect.class_tests import local_class_test
from calibrant.detect.exact_local_test import exact_class_test, exact_local_test
from calibrant.errors import BadInput
from calibrant.kernels.features import CLUSTER, LOGIT
from calibrant.kernels.runtime import one_thread
from calibrant.results import Outcome
from calibrant.stats.local.kernel_sums import Family
from calibrant.stats.local.spectra import GLOBAL, LEAST, LOCAL, Block, gaussian_scores, statistics
from calibrant.stats.nulls import ranked
from calibrant.views.kernel_rows import CONTRADICTED, LEAST_DRAWS, NULL, Shape, checked_rows
from calibrant.views.local_sums import (
    CLUSTERED,
    EXACT,
    Flips,
    WeightedSums,
    blocks_of,
    natural,
    region_of,
    squared_error,
    steps_of,
    sums_of_rows,
    sums_of_sketch,
)
from calibrant.views.points import refuse_rows

Floats = NDArray[np.float64]
LocalNull = Literal["auto", "simulated", "gaussian"]
Kind = Literal["default", "exact"]
KINDS: tuple[Kind, ...] = ("default", "exact")
TAKES = {  # what each kind of features takes: its nulls, and its own settings
    "default": (NULLS, ()),
    "exact": (("auto", "simulated"), ("score_width", "covariate_width", "family", "degree")),
}
CLASSES = "null='gaussian' is for two classes: leave null='auto' with several"
GAUSSIAN = 4000  # draws of the Gaussian null: their cost does not grow with the rows
LEAST_GAUSSIAN = 25.0  # null variance from which on the sum of a step or a level counts as Gaussian
GAUSSIAN_STREAM = 0x10CA1
LIMIT = "asymptotic: the sums' joint Gaussian law"


@takes_arrays
def local_calibration_test(
    data: Predictions | MulticlassPredictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    draws: int = 999,
    null: LocalNull = "auto",
    seed: int = 0,
    features: Kind = "default",
    landmarks: int = LANDMARKS,
    score_width: float | None = None,
    covariate_width: float | None = None,
    family: Family | None = None,
    degree: int | None = None,
) -> Outcome:
    r"""Test whether the probabilities are right given the covariates, and say for which of them they are not.

    Estimand of the raw statistic: ``KLCE^2 = E[e k(z, z') e']`` with ``e = y - p``, ``z = (p, x)`` and an independent
    copy primed: zero when ``E[Y | p, x] = p``, positive otherwise. Larger is worse; it has no unit of its own.

    Parameters
    ----------
    data : Predictions, MulticlassPredictions or Sketch
        Covariates of any kind; clusters and weights are taken into account. A sketch made with ``tests=True`` brings
        its own variables, draws, null and seed, and gives the same answer as the rows. Several classes take
        ``features="exact"``.
    variables : str or sequence of str, optional
        Covariates to test against, up to 100; all that can be used by default. Without any, the score alone.
    draws, seed : int
        Simulated outcomes, and their seed.
    null : {"auto", "simulated", "gaussian"}
        Simulate outcomes; or the joint Gaussian law of the sums (4,000 draws). ``"auto"`` simulates up to 200,000 rows,
        and where fewer than 100 events or non-events are expected.
    features : {"default", "exact"}
        Features that take any number of rows; or the kernel over all pairs of rows (at most 50,000 distinct ones).
        `papers.published_local_test` is the procedure as published, for comparison.
    landmarks : int
        Rows whose neighbourhoods make the joint features, 2 to 1,024.
    score_width, covariate_width : float, optional
        Of the kernel over all pairs.
    family : {"gaussian", "laplace", "polynomial"}, optional
        Kernel over all pairs, Gaussian by default; `degree` of a polynomial, 3 by default.
        `kernel_tuning` shows before any outcome is seen which family and width find an error.

    Returns
    -------
    Outcome
        ``statistic`` is the unbiased estimate ``KLCE^2_u`` under the joint kernel (it can be negative); ``p_value`` is
        that of the whole test. In ``parts``: ``p_global`` (the overall level and slope; ``p_intercept``, ``p_slope``
        and ``p_intercept_slope`` separately), ``p_local`` (everything else), ``p_joint``, ``p_klce`` (of
        ``KLCE^2`` by itself, nothing taken off); ``variables`` with
        ``variable_p`` and ``variable_adjusted_p`` (for all of them together), the score being ``"(score)"``; the step
        or level that deviates most as ``region_variable``, ``region_side`` ("at least", "under", "is"),
        ``region_value``, ``region_rows``, ``region_gap`` (mean of y - p there), ``region_excess`` (what the overall
        level and slope leave of it), ``region_z`` (that in null standard deviations) and, with clusters,
        ``region_clusters`` (on either side of the step or level); ``events`` and ``expected``;
        every statistic's name and p-value; and ``contradicted``: rows whose outcome the score called impossible. Any
        such row makes ``p_value`` zero. The kernel over all pairs has its own parts; with several classes also
        ``classes``, ``class_statistic``, ``class_p`` and ``class_adjusted_p``.

    Raises
    ------
    BadInput
        No such covariate, too many, or a setting that cannot be used; a sketch without the sums.
    NotComputable
        A single row; weights with ``features="exact"``; the Gaussian null with too few expected events, or
        with clusters or weights.

    Notes
    -----
    **Assumes.** Independent rows (or clusters); covariates chosen without the labels.
    **Guarantee.** Simulated: level alpha at any number of rows, for ``p_value``, ``p_global``, ``p_local`` and the
    smallest adjusted p: given the rows, data and draws are exchangeable under the null and every p-value is a rank
    among them. Gaussian: asymptotic; levels whose residuals have a null variance under 25 are not read separately. With
    clusters the signs of whole clusters' residuals are drawn: asymptotic in their number. With weights every sum is of
    weighted residuals, and so are those of simulated outcomes, at any number of rows: the level is exact for weights
    that do not depend on outcomes. **Method.** Features see no label. Joint: a Gaussian kernel on standardised (or
    ranked) score and covariates, width twice the median distance, at 128 landmarks, categories of up to 14 levels
    included. Each number by itself: a kernel at 12 quantiles, width the median distance, and steps at 5 quantiles. Each
    category: its levels (of more than 128, the 96 most frequent; the rest share 31 columns by hash). Sums of features
    times residuals are centred by projecting ``[1, logit p]`` out (logit kept within 16) and taken apart into
    eigenvectors of their null covariance; the statistics are ``sum lambda / (lambda + gamma lambda_1) u^2`` with gamma
    infinite, 0.1 and 0.01 for the joint and for the added single kernels, the largest standard score of a step or level
    and that of a trend, the most surprising variable (by its kernel, a step, or its trend), and the score tests of the
    intercept, of the slope about a free intercept, and of both. Each becomes a rank among the draws; their weighted
    harmonic mean is ranked again. Features are whole numbers, so that sums are exact: chunks, order and threads do not
    matter, equal rows tie exactly, and no joining of repeated rows is needed. Departures from the paper: the null, the
    widths, centring, the flattened spectra, the steps, the combination. **Cost.** Linear in the rows. With 10
    covariates: two CPU-seconds at 100,000 rows (999 draws), five at a million (Gaussian). Memory: sums of features
    times draws, and one chunk. **Reads.** Rows, or the sketch.

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
        "family": family,
        "degree": degree,
    }
    inputs, seed = _checked(features, null, options), checked_seed(seed)
    check_int("landmarks", landmarks, 2, 1024)
    if features == "default" and isinstance(data, Sketch) and not data.by_clusters:
        return _from_sketch(data, variables, null)
    if isinstance(data, MulticlassPredictions):
        if features == "default":
            if null == "gaussian":
                raise BadInput(CLASSES)
            return local_class_test(data, variables=variables, draws=draws, seed=seed, landmarks=landmarks)
        return exact_class_test(data, variables=variables, draws=draws, seed=seed, shape=Shape(**inputs))
    rows = checked_rows(data, weighted=features == "default")
    if features == "exact":
        return exact_local_test(rows, variables=variables, draws=draws, seed=seed, shape=Shape(**inputs))
    draws = check_int("draws", draws, LEAST_DRAWS, hint="such as 999")
    if null == "gaussian":
        refuse_rows(
            rows,
            cluster="the Gaussian null is for independent rows: leave null='auto' with clusters",
            weights="the Gaussian null is for rows of equal weight: leave null='auto' with weights=",
        )
    sums, how, left_out = sums_of_rows(rows, variables, draws, null, seed, landmarks)
    flips = None if rows.cluster is None else Flips.of(sums.spec, rows, how, draws)
    return outcome(sums, how, flips, left_out)


def _checked(features: Any, null: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options given, or refuse those that do not belong to these features."""
    nulls, own = TAKES[choice("features", features, KINDS)]
    choice("null", null, nulls, hint=f"with features={features!r}")
    inputs = {k: v for k, v in options.items() if v is not None}
    for name in inputs:
        if name not in own:
            raise BadInput(f"{name}={inputs[name]!r} has no meaning with features={features!r}: leave it out")
    return inputs


def _from_sketch(data: Sketch, variables: Any, null: str) -> Outcome:
    sums = sums_of_sketch(data, variables)
    has = "simulated" if sums.spec.draws else "gaussian"
    if null not in ("auto", has):
        raise BadInput(f"null={null!r}: this sketch holds what the {has} null needs; leave null='auto'")
    return outcome(sums, data.spec.codings, None, data.spec.left_out)


# ---- From sums to the outcome ----


def outcome(
    sums: LocalSums | WeightedSums,
    how: Sequence[Coding],
    flips: Flips | None = None,
    left_out: Sequence[tuple[str, str]] = (),
) -> Outcome:
    """The outcome of the default test; `flips` are those of clusters."""
    spec = sums.spec
    with one_thread():
        score, gram, rows = natural(sums)
        simulated = bool(spec.draws) or flips is not None
        # (3) The null: simulated outcomes, random signs of clusters, or the joint Gaussian law.
        if flips is not None:
            score = np.column_stack([score[:, 0], flips.sums / steps_of(spec)[:, None]])
        elif not simulated:
            rng = np.random.default_rng([GAUSSIAN_STREAM, spec.seed])
            score = np.column_stack([score[:, 0], gaussian_scores(gram, GAUSSIAN, rng)])
        joint, blocks = np.arange(2, 2 + spec.joint), blocks_of(spec)
        if not simulated:
            blocks = [populous(b, gram) for b in blocks]
        # (4) Centre, whiten, rank each statistic among the draws, and rank their combination (steps 3 and 4).
        result = statistics(score, gram, joint, blocks, LEAST if simulated else LEAST_GAUSSIAN).findings()
    law = CLUSTERED if flips is not None else EXACT if simulated else LIMIT
    clusters = {}
    if flips is not None and result.column >= 0:  # with rows in the step or level that deviates most, and outside
        clusters = {"region_clusters": (int(flips.inside[result.column]), int(flips.outside[result.column]))}
    n, events, contradicted = (int(v) for v in sums.counts)
    expected = sums.expected if isinstance(sums, WeightedSums) else events - float(score[0, 0])
    return Outcome(
        method="detect.local_calibration_test",
        statistic=squared_error(sums, score[:, 0]),
        p_value=0.0 if contradicted else result.overall,
        alternative="the event rate given score and covariates is not the score",
        null=NULL,
        law=f"certain: {CONTRADICTED}" if contradicted else law,
        settings=_settings(spec, how, score.shape[1] - 1, n, left_out),
        parts={
            "p_global": result.everyone,
            "p_local": result.local,
            "p_joint": result.joint,
            "p_klce": float(ranked((score[joint] ** 2).sum(axis=0)[None, :])[0, 0]),
            "p_intercept": result.p_values["intercept"],
            "p_slope": result.p_values.get("slope", 1.0),
            "p_intercept_slope": result.p_values["intercept and slope"],
            "events": events,
            "expected": expected,
            "contradicted": contradicted,
            "statistics": tuple(result.p_values),
            "p_values": tuple(result.p_values.values()),
            "variables": tuple(result.variables),
            "variable_p": tuple(p for p, _ in result.variables.values()),
            "variable_adjusted_p": tuple(q for _, q in result.variables.values()),
            **region_of(spec, how, result, score[:, 0], (rows, sums.rows if isinstance(sums, WeightedSums) else rows)),
            **clusters,
        },
    )


def populous(b: Block, gram: Floats) -> Block:
    """A variable without the levels whose sums are too small to be Gaussian."""
    if not b.levels:
        return b
    variance = np.diag(gram)[b.smooth]
    kept = b.smooth[(variance >= LEAST_GAUSSIAN) | (variance == 0.0)]  # nothing is read from an empty one
    return Block(b.name, kept, kept, levels=True)


def _settings(
    spec: LocalSpec, how: Sequence[Coding], draws: int, n: int, left_out: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """Return what the number depends on, and what was done to the covariates."""
    return {
        "features": "default",
        "n": n,
        "draws": draws,
        "seed": spec.seed,
        "landmarks": len(spec.landmarks),
        "joint_features": spec.joint,
        "columns": spec.columns,
        "width": spec.width,
        "knots": KNOTS,
        "steps": STEPS,
        "variables": tuple(c.name for c in how),
        "score_only": not how,
        "score_scaling": "constant" if spec.score.kind == "constant" else spec.score.scaling,
        "ranked": tuple(c.name for c in how if c.scaling == "rank"),
        "left_out": tuple(tuple(pair) for pair in left_out),
        "levels_shared": tuple(q.name for q in spec.levels if q.shared),
        "levels_in_joint": JOINT_LEVELS,
        "weights": tuple((GLOBAL | LOCAL).items()),
        "logit_limit": CLUSTER / LOGIT,
    }
