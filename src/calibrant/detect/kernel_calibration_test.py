"""The kernel test of calibration by the score alone, and which kernel finds an error that one is afraid of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.arguments import check_int, checked_alpha, checked_draws, checked_seed, choice, number, positive
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import identities_of
from calibrant.data.specs.coding import encode
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.runtime import one_thread
from calibrant.results import Curve, Outcome
from calibrant.stats.local.kernel_sums import (
    FAMILIES,
    SAMPLE,
    ClusterRows,
    Family,
    Kernel,
    Nodes,
    Rows,
    nodes_of,
    smallest,
    statistics_of,
    typical_distance,
)
from calibrant.stats.nulls import ranked
from calibrant.views.kernel_rows import (
    CONTRADICTED,
    LEAST_DRAWS,
    UNWEIGHTED,
    Shape,
    checked_rows,
    checked_size,
    checked_width,
    cluster_kernel,
    coded,
    rows_of,
)
from calibrant.views.points import weights_of

Floats = NDArray[np.float64]
Null = Literal["auto", "simulated", "gaussian"]
NULLS: tuple[Null, ...] = ("auto", "simulated", "gaussian")
SIMULATED = 250_000_000  # outcomes that "auto" will simulate: a few seconds
ENOUGH = 100.0  # expected events, and non-events, for the Gaussian null
GAUSSIAN = 4000  # its draws, at least: their cost does not grow with the rows
CHUNK = 1 << 21  # residuals held at once, for memory
STREAM = 0x5CE
NARROW = 0.5  # default width, in median distances: at one, a wave over a quarter of the range goes unseen
STEPS = 25.0  # least default width, as a part of the range of the scores
LAWS = {
    "simulated": Rows.law,
    "gaussian": "asymptotic: Gaussian sums",
    "clusters": ClusterRows.law,
}


@takes_arrays
def kernel_calibration_test(
    data: Predictions, *, draws: int = 999, null: Null = "auto", seed: int = 0, width: float | None = None
) -> Outcome:
    r"""Test calibration given the score alone, with a kernel instead of bins.

    Estimand: ``KCE^2 = E[e k(p, p') e']`` with ``e = y - p``, an independent copy primed, and
    ``k = exp(-(p - p')^2 / (2 w^2))``: zero when ``E[Y | p] = p``, positive otherwise.

    Parameters
    ----------
    data : Predictions
        Weights multiply residuals; clusters are taken into account.
    draws, seed : int
        Simulated outcomes, and their seed.
    null : {"auto", "simulated", "gaussian"}
        Simulate the outcomes, or the Gaussian limit of their sums. ``"auto"`` simulates outcomes up to 250 million of
        them, and where fewer than 100 events or non-events are expected.
    width : float, optional
        ``w``, in probability units. By default half the median distance between scores, and at least 1/25 of their
        range.

    Returns
    -------
    Outcome
        ``statistic`` is the unbiased estimate of ``KCE^2`` (it can be negative). In ``parts``: ``null_sd``, and
        ``contradicted``, the rows whose outcome the score called impossible; any such row makes ``p_value`` zero.

    Raises
    ------
    BadInput
        A setting out of range; a sketch.
    NotComputable
        A single row; the Gaussian null with too few expected events, or with clusters.

    Notes
    -----
    **Assumes.** Independent rows; the width chosen without the labels.
    **Guarantee.** Simulated: level alpha at any number of rows. Gaussian: asymptotic. With clusters the signs of
    whole clusters' residuals are drawn: asymptotic in their number. Weights may not rest on the outcomes.
    **Method.** The unbiased estimator ``1 / (n (n - 1)) sum_{i != j} e_i k_ij e_j`` (SKCE, for two classes half of the
    one with the identity matrix as kernel of the classes), the local statistic with a covariate kernel of one. The
    kernel is interpolated at Chebyshev points, to 1e-12. Equal scores are joined into cells, with Binomial draws, where
    that halves the rows, and where they weigh alike. With weights ``w_i e_i`` stands for ``e_i``, and ``(sum w)^2 - sum
    w^2`` for ``n (n - 1)``. Departure: the null. **Cost.** Linear in the rows: rows times points (a few dozen at the
    default width) times draws. **Reads.** Rows.

    References
    ----------
    Widmann, Lindsten, Zachariah (2019), "Calibration tests in multi-class classification", NeurIPS, arXiv:1910.11385.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> cal.detect.kernel_calibration_test(cal.predictions(rng.uniform(size=2000) < p**1.3, p)).p_value
    0.001
    """
    checked = checked_rows(data)
    draws, seed = check_int("draws", draws, LEAST_DRAWS, hint="such as 999"), checked_seed(seed)
    w = None if width is None else positive("width", width, hint="or None for the default")
    rows, each = rows_of(checked, identities_of(checked.n, seed)), checked.weights
    if each is None:
        rows = rows.joined(rows.rate[:, None])[1]
        each = np.ones(len(rows.rate))
    w = _usual(checked, seed) if w is None else w
    try:
        nodes = nodes_of(rows.rate, w)
    except ValueError:
        raise BadInput(f"width={w:g} is under 1/250 of the range of the scores: pass a wider one") from None
    law = _law(rows, draws, choice("null", null, NULLS))
    with one_thread():
        if law == "gaussian":
            result = _gaussian(nodes, rows, each, max(draws, GAUSSIAN), seed)
        else:
            result = _simulated(nodes, rows, each, draws, seed)
    every = weights_of(checked)
    pairs = float(every.sum() ** 2 - (every**2).sum())
    return Outcome(
        method="detect.kernel_calibration_test",
        statistic=float(result[0] / pairs),
        p_value=0.0 if rows.contradicted else float(ranked(result)[0, 0]),
        alternative="the event rate given the score is not the score",
        null="given the score, outcomes are independent with the probabilities stated",
        law=f"certain: {CONTRADICTED}" if rows.contradicted else LAWS[law],
        settings={
            "draws": len(result) - 1,
            "null": law,
            "seed": seed,
            "width": w,
            "n": checked.n,
            "nodes": len(nodes.at),
            "weights": checked.weights is not None,
        },
        parts={"null_sd": float(result[1:].std() / pairs), "contradicted": rows.contradicted},
    )


def _law(rows: Rows, draws: int, null: Null) -> str:
    if isinstance(rows, ClusterRows):
        if null == "gaussian":
            raise NotComputable("the Gaussian null is for independent rows: use null='auto' with cluster=")
        return "clusters"
    expected = float(rows.rows @ rows.rate)
    enough = min(expected, rows.n - expected) >= ENOUGH
    if null == "gaussian" and not enough:
        raise NotComputable(
            f"the Gaussian null needs {ENOUGH:.0f} expected events and non-events: use null='simulated'"
        )
    if null == "auto":
        return "gaussian" if enough and len(rows.rate) * draws > SIMULATED else "simulated"
    return null


def _usual(data: Predictions, seed: int) -> float:
    """Half the median non-zero distance between scores of a random sample, or more; 1 for a single score."""
    order = identities_of(data.n, seed)
    few = data.p[np.argpartition(order, SAMPLE)[:SAMPLE]] if data.n > SAMPLE else data.p
    apart = np.abs(few[:, None] - few)[np.triu_indices(len(few), 1)]
    apart = apart[apart > 0]
    if not len(apart):
        return 1.0
    return max(NARROW * float(np.median(apart)), float(np.ptp(data.p)) / STEPS)


def _simulated(nodes: Nodes, rows: Rows, each: Floats, draws: int, seed: int) -> Floats:
    """``sum_{i != j} w_i e_i k_ij w_j e_j`` for the data (first) and for each draw; `each` is what rows weigh.

    With ``k = L K L'`` through the nodes it is ``S' K S - sum (w_i e_i)^2``, ``S = L' (w e)``: linear in the rows.
    """
    step = max(1, CHUNK // (draws + 1))
    sums, own = np.zeros((len(nodes.at), draws + 1)), np.zeros(draws + 1)
    for start in range(0, len(rows.rate), step):
        part = rows.part(slice(start, start + step))
        drawn, whole_part = part.with_data(part.drawn(0, draws, seed)), slice(None)
        weight = each[start : start + step]
        sums += (nodes.weights(part.rate) * weight[:, None]).T @ part.residuals(drawn, whole_part)
        own += part.squares(drawn, whole_part, weight[None] ** 2)[0]
    result: Floats = (sums * (nodes.kernel @ sums)).sum(axis=0) - own
    return result


def _gaussian(nodes: Nodes, rows: Rows, each: Floats, draws: int, seed: int) -> Floats:
    """The same with Gaussian sums of the exact covariance.

    ``e^2 = p (1 - p) + (1 - 2 p) e`` is linear in the residual, so that its sum is one more column next to S.
    """
    size = len(nodes.at) + 1
    cover, data, fixed = np.zeros((size, size)), np.zeros(size), 0.0
    for start in range(0, len(rows.rate), CHUNK // size):
        part = rows.part(slice(start, start + CHUNK // size))
        weight = each[start : start + CHUNK // size]
        features = np.column_stack([nodes.weights(part.rate), weight * (1.0 - 2.0 * part.rate)]) * weight[:, None]
        variance = part.rows * part.rate * (1.0 - part.rate)
        cover += features.T @ (variance[:, None] * features)
        data += features.T @ part.residual
        fixed += float(weight**2 @ variance)
    values, vectors = np.linalg.eigh(cover)
    noise = np.random.default_rng([STREAM, seed]).standard_normal((size, draws))
    sums = np.column_stack([data, vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * noise)])
    result: Floats = (sums[:-1] * (nodes.kernel @ sums[:-1])).sum(axis=0) - sums[-1] - fixed
    return result


# ---- which kernel ----

TUNING_STREAM = 0x7C7E
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
CERTAIN = 0.95  # level of the intervals


@takes_arrays
def kernel_tuning(
    data: Predictions,
    *,
    by_variable: str | None = None,
    gap: float = 0.05,
    bands: int = 2,
    rate: ArrayLike | None = None,
    variables: Sequence[str] | str | None = None,
    families: Sequence[Family] = FAMILIES,
    widths: Sequence[float] = WIDTHS,
    degree: int | None = None,
    alpha: float = 0.05,
    runs: int = 200,
    draws: int = 199,
    seed: int = 0,
) -> Curve:
    r"""Estimate the Type II error of the local calibration test for kernels of several families and widths.

    Estimand: the probability that ``local_calibration_test(features="exact")`` accepts at ``alpha``, for the scores and
    covariates of these rows, if the event rates are the scores with a planted error. The outcomes of `data` are not
    read.

    Parameters
    ----------
    data : Predictions
        Covariates of any kind.
    by_variable : str, optional
        The variable that the planted error follows; that, or `rate`. A number is cut at quantiles into `bands`, which
        are `gap` too low and too high in turn; the levels of a category are, by their frequency. Rates stay within 0
        and 1.
    gap : float in (0, 1)
        In probability units: 0.05 is five points.
    bands : int
        2 to 20.
    rate : array of shape (n,), optional
        Event rates of an error of one's own.
    variables : str or sequence of str, optional
        Covariates that the test will look at; all by default.
    families : sequence of {"gaussian", "laplace", "polynomial"}
    widths : sequence of float
        For score and covariates, in median distances between rows. The test's default is 2.
    degree : int, optional
        Of a polynomial; 3 by default.
    alpha : float in (0, 0.5]
    runs : int
        Simulated data sets with the error, the same for every kernel; at least 20.
    draws, seed : int
        Simulated outcomes of each test, and the seed of all.

    Returns
    -------
    Curve
        A row for each kernel: ``family``; ``width`` in median distances, ``score_width`` and ``covariate_width`` in
        standard deviations; ``type_2`` of the whole test with its exact binomial interval (95%), ``low`` and ``high``;
        ``raw``, ``raw_low`` and ``raw_high`` of the paper's statistic by itself. ``settings["best"]`` holds the
        arguments for ``local_calibration_test(features="exact", **best)`` of the least Type II error (the first of
        equals), and ``settings["planted"]`` the mean size of the error. ``chart()`` draws it.

    Raises
    ------
    BadInput
        Neither or both of `by_variable` and `rate`; no such covariate; a setting out of range.
    NotComputable
        Over 50,000 rows; a single row; weights; clusters.

    Notes
    -----
    **Assumes.** Independent rows; an error of this kind.
    **Guarantee.** The test that is chosen so keeps its level, for no outcome is read. The intervals hold for each
    kernel by itself, given the draws of its null, which all data sets share.
    **Method.** Section 5 of the paper leaves the choice of the kernel to the Type II error; this is that error by
    simulation, with the test of `local_calibration_test`. Departure: simulated outcomes as the null.
    **Cost.** ``n^2 (runs + draws)`` multiplications in float32 for each kernel: two CPU-seconds for 15 kernels at 2,000
    rows. **Reads.** Rows, without their outcomes.

    References
    ----------
    Vashistha and Farahi (2025), "I-trustworthy models", AISTATS, sections 4 and 5.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, x = rng.uniform(0.2, 0.8, 400), rng.normal(size=400)
    >>> data = cal.predictions(rng.uniform(size=400) < p, p, {"x": x})
    >>> found = cal.detect.kernel_tuning(data, by_variable="x", gap=0.1, widths=(0.5, 2), runs=50, draws=99)
    >>> best = found.settings["best"]
    >>> cal.detect.local_calibration_test(data, features="exact", **best).p_value > 0.05
    True
    """
    by_row = "data sets are simulated row by row, not by cluster=: use kernel_calibration_test alone"
    rows = checked_rows(data, weights=UNWEIGHTED, cluster=by_row)
    seed, alpha = checked_seed(seed), checked_alpha(alpha)
    runs, draws = check_int("runs", runs, 20, hint="such as 200"), checked_draws(draws, alpha)
    shapes = _kernels(families, widths, degree)
    truth = _rates(rows, by_variable, rate, number("gap", gap, above=0, below=1), check_int("bands", bands, 2, 20))
    how = coded(rows, variables)
    unit = cluster_kernel(rows, how)
    checked_size(unit)
    ids = identities_of(rows.n, seed)
    # (1) Outcomes with the error, then of a right model: the same for every kernel, those of the data never read.
    null = rows_of(rows, ids)
    wrong = np.random.default_rng([TUNING_STREAM, seed]).random((rows.n, runs)) < truth[:, None]
    drawn = np.column_stack([wrong, null.drawn(0, draws, seed)]).astype(np.uint8)
    # (2) The test of each data set with each kernel.
    median = typical_distance(unit, ids)
    lines = [_line(unit, null, drawn, shape, (median, alpha, runs)) for shape in shapes]
    best = lines[int(np.argmin([line["type_2"] for line in lines]))]
    passed = {k: best[k] for k in ("family", "score_width", "covariate_width")}
    if best["family"] == "polynomial" and degree is not None:
        passed["degree"] = degree
    return Curve(
        method="detect.kernel_tuning",
        columns={k: tuple(line[k] for line in lines) for k in lines[0]},
        settings={
            "best": passed,
            "by_variable": by_variable,
            "bands": None if by_variable is None else bands,
            "gap": None if by_variable is None else gap,
            "planted": float(np.abs(truth - rows.p).mean()),
            "variables": tuple(c.name for c in how if c.kind != "constant"),
            "alpha": alpha,
            "level": CERTAIN,
            "runs": runs,
            "draws": draws,
            "seed": seed,
            "n": rows.n,
        },
    )


def _kernels(families: Sequence[Family], widths: Sequence[float], degree: int | None) -> list[Shape]:
    """The kernels to try, widths in median distances."""
    one = isinstance(families, str) or not isinstance(families, Iterable)
    listed: list[Family] = [choice("families", f, FAMILIES) for f in ([families] if one else families)]
    if degree is not None and "polynomial" not in listed:
        raise BadInput(f"degree={degree!r} has no meaning without 'polynomial' among families: leave it out")
    each = widths if isinstance(widths, Iterable) else [widths]
    many = [checked_width("widths", w, hint="in median distances, such as 2") for w in each]
    if not (listed and many):
        raise BadInput("families= and widths=: pass one of each or more")
    return [
        Shape(family=f, degree=degree if f == "polynomial" else None, score_width=w, covariate_width=w)
        for f, w in product(listed, many)
    ]


def _rates(data: Predictions, by_variable: str | None, rate: ArrayLike | None, gap: float, bands: int) -> Floats:
    """The event rates with the planted error."""
    if (by_variable is None) == (rate is None):
        raise BadInput("pass one of by_variable= (a variable) and rate= (event rates)")
    if rate is not None:
        return _passed(data, rate)
    (how,) = coded(data, str(by_variable))
    if how.kind == "constant":
        raise BadInput(f"by_variable={by_variable!r} takes one value only: pass a variable that differs between rows")
    encoded = encode(data.covariates, (how,))
    if encoded.scaled.shape[1]:
        x = encoded.scaled[:, 0]
        order = np.sort(x)  # equal values are in one band, that of their middle
        middle = 0.5 * (np.searchsorted(order, x, "left") + np.searchsorted(order, x, "right")) / len(x)
        band = np.unique(np.floor(bands * middle), return_inverse=True)[1].reshape(-1)  # some may hold no rows
    else:
        often = np.bincount(encoded.codes[:, 0])
        band = np.argsort(np.argsort(-often, kind="stable"), kind="stable")[encoded.codes[:, 0]]
    return np.clip(data.p + np.where(band % 2 == 0, gap, -gap), 0.0, 1.0)


def _passed(data: Predictions, rate: ArrayLike) -> Floats:
    """Event rates as they were passed; refuse what is not one rate for each row."""
    try:
        rates = np.asarray(rate, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"rate= is not all numbers: pass {data.n:,} between 0 and 1, one for each row") from None
    if rates.shape != data.p.shape:
        raise BadInput(f"rate= has shape {rates.shape}: pass {data.n:,} numbers between 0 and 1, one for each row")
    beyond = np.flatnonzero(~((rates >= 0) & (rates <= 1)))
    if len(beyond):
        raise BadInput(
            f"rate= has {len(beyond):,} values that are not between 0 and 1, the first {rates[beyond[0]]:g} in row "
            f"{beyond[0]}: pass numbers between 0 and 1"
        )
    return rates


def _line(
    unit: Kernel, rows: Rows, drawn: NDArray[np.uint8], shape: Shape, how: tuple[float, float, int]
) -> dict[str, str | float]:
    """The Type II errors of one kernel: how often the test accepts data sets with the error."""
    median, alpha, runs = how
    width = float(shape.score_width or 0.0)
    kernel, reported = replace(shape, score_width=width * median, covariate_width=width * median).of(unit, 0)
    result = statistics_of(kernel, rows, drawn)
    ranks = [ranked(np.column_stack([result[:, r], result[:, runs:]])) for r in range(runs)]
    # An outcome that a score of 0 or 1 called impossible has the whole test's p-value 0.
    impossible = np.vstack([drawn[rows.rate == 0, :runs] == 1, drawn[rows.rate == 1, :runs] == 0]).sum(axis=0)
    whole_test = [0.0 if some else smallest(r) for r, some in zip(ranks, impossible, strict=True)]
    ends, raw = (_rate(sum(bool(v > alpha) for v in own), runs) for own in (whole_test, [r[0, 0] for r in ranks]))
    return {
        "family": reported["family"],
        "width": width,
        "score_width": reported["score_width"],
        "covariate_width": reported["covariate_width"],
        **dict(zip(("type_2", "low", "high"), ends, strict=True)),
        **dict(zip(("raw", "raw_low", "raw_high"), raw, strict=True)),
    }


def _rate(kept: int, runs: int) -> tuple[float, float, float]:
    """A rate with Clopper and Pearson's limits."""
    from scipy.special import betaincinv

    side = (1.0 - CERTAIN) / 2.0
    low = float(betaincinv(kept, runs - kept + 1, side)) if kept else 0.0
    high = float(betaincinv(kept + 1, runs - kept, 1.0 - side)) if kept < runs else 1.0
    return kept / runs, low, high
