"""The local calibration test: by features of a kernel for any number of rows, and over all pairs of some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_seed, choice
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.sketches.sample import identities_of
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
from calibrant.detect.class_tests import IMPOSSIBLE, local_class_test
from calibrant.errors import BadInput
from calibrant.kernels.features import CLUSTER, LOGIT
from calibrant.kernels.runtime import one_thread
from calibrant.results import Outcome
from calibrant.stats.local.kernel_sums import NAMES, Family, Rows, smallest, statistics_of
from calibrant.stats.local.kernel_sums import statistics as statistics_of_pairs
from calibrant.stats.local.spectra import GLOBAL, LEAST, LOCAL, Block, gaussian_scores, statistics
from calibrant.stats.nulls import holm, ranked
from calibrant.views.kernel_rows import (
    CONTRADICTED,
    LEAST_DRAWS,
    NULL,
    UNWEIGHTED,
    UNWEIGHTED_CLASSES,
    Shape,
    checked_classes,
    checked_rows,
    checked_size,
    cluster_kernel,
    coded,
    joined,
    rows_of,
)
from calibrant.views.kinds import ByKind, refuse_rows
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

Floats = NDArray[np.float64]
Names = Iterable[str] | str | None
LocalNull = Literal["auto", "simulated", "gaussian"]
Kind = Literal["default", "exact"]
KINDS: tuple[Kind, ...] = ("default", "exact")
CLUSTERED_CLASSES = (
    "features='exact' simulates the classes of several row by row, as if those of a cluster were independent: leave it "
    "out, and clusters keep their outcomes; or use data.top_label() or data.one_vs_rest(k)"
)
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
        A single row; weights, or clusters of several classes, with ``features="exact"``; the Gaussian null with too few
        expected events, or with clusters or weights.

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
    if features == "exact":
        return by_exact(data, variables=variables, draws=draws, seed=seed, shape=Shape(**inputs))
    return by_landmarks(data, variables, null, draws=draws, seed=seed, landmarks=landmarks)


def _of_classes(
    data: MulticlassPredictions, variables: Names, null: str, *, draws: int, seed: int, landmarks: int
) -> Outcome:
    if null == "gaussian":
        raise BadInput(CLASSES)
    return local_class_test(data, variables=variables, draws=draws, seed=seed, landmarks=landmarks)


def _of_rows(data: Predictions, variables: Names, null: str, *, draws: int, seed: int, landmarks: int) -> Outcome:
    rows = checked_rows(data)
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
    """The options that were passed; refuse those that do not belong to these features."""
    nulls, own = TAKES[choice("features", features, KINDS)]
    choice("null", null, nulls, hint=f"with features={features!r}")
    inputs = {k: v for k, v in options.items() if v is not None}
    for name in inputs:
        if name not in own:
            raise BadInput(f"{name}={inputs[name]!r} has no meaning with features={features!r}: leave it out")
    return inputs


def _of_sketch(data: Sketch, variables: Names, null: str, *, draws: int, seed: int, landmarks: int) -> Outcome:
    del draws, seed, landmarks
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
    """What the number depends on, and what was done to the covariates."""
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


# ---- over all pairs of rows: the kernel itself, of two classes, and of several, whose residuals are vectors ----

CLASS_STREAM = 0xC1A55  # of random numbers, apart from those of other methods at the same seed


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
    checked = checked_rows(data, weights=UNWEIGHTED)
    draws, seed = check_int("draws", draws, LEAST_DRAWS, hint="such as 999"), checked_seed(seed)
    how = coded(checked, variables)
    # (1) Standardise, and join equal rows into cells with Binomial outcomes.
    cluster, rows = joined(cluster_kernel(checked, how), rows_of(checked, identities_of(checked.n, seed)))
    checked_size(cluster)
    # (2) The kernel; its widths from distances alone.
    kernel, reported = (shape or Shape()).of(cluster, seed)
    # (3) Equation 4, raw and centred, and two score tests, of the data and of each draw; each becomes a rank.
    result = statistics_of_pairs(kernel, rows, draws, seed)
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
            **_settings_of_pairs(
                how, {"draws": draws, "seed": seed, "n": checked.n, "cells": len(rows.rate), **reported}
            ),
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
    checked = checked_classes(data, weights=UNWEIGHTED_CLASSES, cluster=CLUSTERED_CLASSES)
    draws, seed = check_int("draws", draws, LEAST_DRAWS, hint="such as 999"), checked_seed(seed)
    how, classes = coded(checked, variables), checked.p.shape[1]
    cluster = cluster_kernel(checked, how)
    checked_size(cluster)
    kernel, reported = (shape or Shape()).of(cluster, seed)
    # (1) The classes of the data (first column) and of each draw; (2) of each class against the rest, four statistics.
    drawn, one = np.column_stack([checked.y, drawn_classes(checked.p, draws, seed)]), np.ones(checked.n)
    against = (Rows(checked.p[:, c], one, (checked.y == c).astype(np.float64)) for c in range(classes))
    each = np.stack([statistics_of(kernel, rows, (drawn == c).astype(np.uint8)) for c, rows in enumerate(against)])
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
        settings=_settings_of_pairs(how, {"draws": draws, "seed": seed, "n": checked.n, **reported}),
        parts={
            **_parts(result / pairs, ranks),
            "classes": checked.classes or tuple(map(str, range(classes))),
            "class_statistic": tuple(float(own[0, 0] / pairs) for own in each),
            "class_p": tuple(alone),
            "class_adjusted_p": tuple(float(p) for p in holm(alone)),
            "contradicted": contradicted,
        },
    )


def _settings_of_pairs(how: Sequence[Coding], known: Mapping[str, object]) -> dict[str, object]:
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
    """Classes drawn from the probabilities of each row, shape (rows, draws); those of score 0 never."""
    edges = np.cumsum(p, axis=1)[:, :-1] / p.sum(axis=1, keepdims=True)
    out = np.empty((len(p), draws), np.int16)
    for b in range(draws):
        at = np.random.default_rng([CLASS_STREAM, seed, b]).random((len(p), 1))
        out[:, b] = (at >= edges).sum(axis=1)
    return out


by_exact = ByKind(rows=exact_local_test, classes=exact_class_test)
by_landmarks = ByKind(rows=_of_rows, counts=_of_sketch, classes=_of_classes)
