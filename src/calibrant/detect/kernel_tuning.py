"""Which kernel finds an error that one is afraid of: Type II error against family and width, before any outcome."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.arguments import check_int, checked_alpha, checked_draws, checked_seed, choice, number
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import identities_of
from calibrant.data.specs.coding import encode
from calibrant.errors import BadInput
from calibrant.results import Curve
from calibrant.stats.local.kernel_sums import FAMILIES, Family, Kernel, Rows, smallest, statistics_of, typical_distance
from calibrant.stats.nulls import ranked
from calibrant.views.kernel_rows import Shape, checked_rows, checked_size, checked_width, cluster_kernel, coded, rows_of
from calibrant.views.points import refuse_rows

Floats = NDArray[np.float64]
STREAM = 0x7C7E
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
    rows, seed, alpha = checked_rows(data), checked_seed(seed), checked_alpha(alpha)
    refuse_rows(rows, cluster="data sets are simulated row by row, not by cluster=: use kernel_calibration_test alone")
    runs, draws = check_int("runs", runs, 20, hint="such as 200"), checked_draws(draws, alpha)
    shapes = _kernels(families, widths, degree)
    truth = _rates(rows, by_variable, rate, number("gap", gap, above=0, below=1), check_int("bands", bands, 2, 20))
    how = coded(rows, variables)
    unit = cluster_kernel(rows, how)
    checked_size(unit)
    ids = identities_of(rows.n, seed)
    # (1) Outcomes with the error, then of a right model: the same for every kernel, those of the data never read.
    null = rows_of(rows, ids)
    wrong = np.random.default_rng([STREAM, seed]).random((rows.n, runs)) < truth[:, None]
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
    """Return event rates as given, or refuse them."""
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
