"""Certificates of everyone's score: raw, in steps, of few values, far from a calibrated one, and if assumed."""

from __future__ import annotations

from calibrant.arguments import checked_steps, positive
from calibrant.certify.certificate import Certificate, Setting, certificate
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import BadInput
from calibrant.results import Estimate, Interval, Side
from calibrant.stats.cells import Cells
from calibrant.views.population import QUANTISATION, Population, Shown, shares
from calibrant.views.sample import everyone


@certificate(order=10, usual=True, side="lower")
@takes_arrays
def raw_lower(data: Predictions | Sketch, *, alpha: float = 0.05, side: Side = "lower", seed: int = 0) -> Estimate:
    r"""Certify from below the average calibration error of the raw score.

    Estimand: ``CE = E|p - E[Y|p]|``, in probability units (0.01 is one point).

    Parameters
    ----------
    data : Predictions or Sketch
    alpha : float in (0, 0.5]
        Probability, at most, that the bound exceeds the truth.
    side : {"lower", "two-sided"}
        Two-sided spends ``alpha / 2`` on the lower end; the upper end is always the trivial 1, because no
        bound from above exists for a score of many values without an assumption; of few values, see `values`.
    seed : int
        Deals the rows into blocks.

    Returns
    -------
    Estimate
        ``interval.low`` is the certificate; larger is stronger evidence. ``value`` is the same number.

    Raises
    ------
    BadInput
        ``side="upper"``: use `values` where the score takes few values, else `rounded`, `distance` or, with an
        assumption, `bounded_variation`.

    Notes
    -----
    **Assumes.** Independent rows from one distribution.
    **Guarantee.** Finite-sample: ``P(low > CE) <= alpha`` for every classifier and every distribution; at most twice
    that where it is chance that the score takes few values, which the scores of all rows decide (documentation:
    Proofs, Theorem L).
    **Method.** Theorem L (documentation: Proofs): bets on the sign of the residual, learnt on earlier random blocks and
    settled on later ones, averaged over four deals (in one of them for each value, if the score takes few), and mixed
    with a forward recursion over signs that needs no learning, and with bets on a plain shift either way, which have
    half of the weight; the average e-value is solved for the error. Scores are read to ``2^-30``, which is subtracted.
    Data with ``cluster=`` or ``weights=``: independent clusters, Theorems CL and CU (documentation: Proofs); error
    and gap are of these weights.
    **Cost.** Linear in the rows, then about 0.1 s whatever their number.
    **Reads.** The sketch; rows, where they have clusters or weights.

    References
    ----------
    Howard, Ramdas, McAuliffe, Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence sequences,
    doi:10.1214/20-AOS1991. Waudby-Smith and Ramdas (2024), doi:10.1093/jrsssb/qkad009.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> p = np.linspace(0.05, 0.95, 2000)
    >>> y = np.arange(2000) % 2  # a coin, whatever the score says
    >>> bool(cal.certify.raw_lower(cal.predictions(y, p)).interval.low > 0.1)
    True
    """
    if side == "upper":
        raise BadInput("side='upper': use values where the score takes few values, else rounded or distance")
    spend = shares(alpha, side)
    return raw_certificate(everyone(data, seed)).run(spend, 1.0 - alpha, seed)


def raw_certificate(q: Population, bet_sizes: float = 0.0) -> Certificate:
    """The certificate of one population, by bets that are the best at `bet_sizes`, or at its error probability."""

    def below(delta: float, seed: int) -> float:
        return max(q.below(bet_sizes or delta, seed).limit(delta) - QUANTISATION, 0.0)

    # Nothing is estimated: the value is the lower end.
    return Certificate("raw_lower", q, "the raw score", below, estimate=0.0, display={"grid": q.grid}, spends=True)


def lower_of(cells: Cells, delta: float, seed: int) -> float:
    """What `raw_certificate` certifies, of cells."""
    from calibrant.stats.bounds import lower_evidence

    return max(lower_evidence(cells, delta, seed).limit(delta) - QUANTISATION, 0.0)


def shown_certificate(q: Population, shown: Shown) -> Certificate:
    """The certificate of one population's score as it is shown; from below, one of few values is the raw score.

    Which of the two is judged was decided from everyone's scores (`views.sample.few`), the same for every group.
    """
    return Certificate(
        "values" if shown.slack else "rounded",
        q,
        shown.about,
        raw_certificate(q).below if shown.slack else lambda delta, seed: shown.below(delta, seed).limit(delta),
        lambda delta: (min(shown.above.limit(delta) + shown.slack, 1.0), {}),
        estimate=shown.debiased,
        display=shown.display,
        spends=True,
    )


@certificate(order=20, usual=True, settings=(Setting("steps", 100, "K", "rounding steps of the score"),))
@takes_arrays
def rounded(
    data: Predictions | Sketch, *, steps: int = 100, alpha: float = 0.05, side: Side = "two-sided", seed: int = 0
) -> Estimate:
    r"""Certify the average calibration error of the score rounded to `steps` steps.

    Estimand: ``CE = E|r - E[Y|r]|`` with r the score rounded to the nearest multiple of ``1 / steps`` (halves up:
    0.005 becomes 0.01 at 100 levels; scores are read to ``2^-30``, so that those less than that below a half go up with
    it); in probability units. ``steps=100`` is whole percent.

    Parameters
    ----------
    data : Predictions or Sketch
    steps : int from 2 to 1024
        Fewer levels give a tighter certificate of a coarser display.
    alpha : float in (0, 0.5]
        Probability, at most, that the interval misses the truth.
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Deals the rows into blocks; used by the lower end only.

    Returns
    -------
    Estimate
        ``value`` is the debiased plug-in, moved into the interval if it falls outside; smaller is better.

    Notes
    -----
    **Assumes.** Independent rows from one distribution; levels fixed before the labels are seen. Rows drawn to a quota
    of events are not independent: then only Theorem U's linear form with fixed bets is proved.
    **Guarantee.** Finite-sample, for every classifier and every distribution. The lower end is about the rounded
    score; the raw score may be better calibrated, so it is evidence against the display and not the model.
    **Method.** Upper end: Theorem U with the notch, a mean over four bets and both forms; from 1,000 rows
    on the bets follow the variance of a few rows' scores, drawn at random, whose error is not paid for (documentation:
    Proofs, Theorem U'). Lower end: Theorem L on the levels. Rounding is exact for 10, 20, 50 and 100 levels and
    powers of two; otherwise the middle of the score's cell (of ``2^14``) is rounded, which is the classifier certified.
    Data with ``cluster=`` or ``weights=``: independent clusters, Theorems CL and CU (documentation: Proofs); error
    and gap are of these weights.
    **Cost.** Linear in the rows, then milliseconds; a tenth of a second of clusters.
    **Reads.** The sketch; rows, where they have clusters or weights.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p, p)
    >>> bool(cal.certify.rounded(data, steps=50, side="upper").interval.high < 0.03)
    True
    """
    steps = checked_steps(steps)
    spend = shares(alpha, side)
    q = everyone(data, seed)
    return shown_certificate(q, q.as_shown(steps)).run(spend, 1.0 - alpha, seed)


@certificate(order=30, usual=True)
@takes_arrays
def distance(data: Predictions | Sketch, *, alpha: float = 0.05, side: Side = "two-sided", seed: int = 0) -> Estimate:
    r"""Certify the distance from calibration of the raw score.

    Estimand: the least ``E|p - u|`` over calibrated predictors u on the same space enlarged by independent noise (the
    lower distance of Blasiok et al.); in probability units. It is at most the calibration error, and unlike it, it
    can be certified from above without rounding, jitter or assumption.

    Parameters
    ----------
    data : Predictions or Sketch
        Where the data name clusters or weights, whole clusters certify, and the distance is of a row drawn by weight.
    alpha : float in (0, 0.5]
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Deals the rows into blocks; used by the lower end only. Of clusters it chooses pilot clusters too.

    Returns
    -------
    Estimate
        ``value`` is the middle of a two-sided interval and the certified end of a one-sided one: no debiased
        estimate of the distance is known. Smaller is better. ``settings["route"]`` says which display gave the upper
        end.

    Notes
    -----
    **Assumes.** Independent rows, or independent clusters, from one distribution; weights that no outcome changes.
    **Guarantee.** Finite-sample, for every classifier and every distribution.
    **Method.** Upper end: the least over five roundings and four jitters of their certificate plus how far they move a
    score, sharing alpha over the nine. Lower end: ``E[w(p)(Y - p)]`` for a witness with ``sup|w| + Lip(w) <= 1``,
    learnt by a linear programme on earlier blocks. Data with ``cluster=`` or ``weights=``: Theorems CD and
    CL (documentation: Proofs). Upper end: the score rounded, or as it is if it takes few values, each with how far it
    moves in one product over clusters; the mean over these routes is one e-value. No jitter. Lower end: the same
    witnesses, half of the evidence on a plain shift.
    **Cost.** Linear in the rows, then about 0.3 s whatever their number; 10 s for a million rows of 100,000 clusters.
    **Reads.** The sketch; rows, where they have clusters or weights.

    References
    ----------
    Blasiok, Gopalan, Hu, Nakkiran, A unifying theory of distance from calibration, STOC 2023, arXiv:2211.16886.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p, p)
    >>> bool(cal.certify.distance(data, side="upper").interval.high < 0.04)
    True
    """
    spend = shares(alpha, side)
    return distance_certificate(everyone(data, seed)).run(spend, 1.0 - alpha, seed)


def distance_certificate(q: Population) -> Certificate:
    """The certificate of one population."""
    about = "the raw score, nothing changed"
    return Certificate("distance", q, about, q.distance_below, q.distance_above, display={"route": ""})


@certificate(order=50, settings=(Setting("variation", 1.0, "V", "1 is a monotone event rate"),))
@takes_arrays
def bounded_variation(
    data: Predictions | Sketch, *, variation: float = 1.0, alpha: float = 0.05, side: Side = "two-sided", seed: int = 0
) -> Estimate:
    r"""Certify the average calibration error of the raw score, assuming bounded variation.

    Estimand: ``CE = E|p - eta(p)|`` with ``eta(p) = E[Y|p]`` of total variation at most V; probability units.

    Parameters
    ----------
    data : Predictions or Sketch
    variation : float, positive
        V. One covers every non-decreasing event rate.
    alpha : float in (0, 0.5]
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Deals the rows into blocks; used by the lower end, which needs no assumption, only.

    Returns
    -------
    Estimate
        ``value`` is the debiased plug-in at 100 levels, moved into the interval; smaller is better.

    Notes
    -----
    **Assumes.** Independent rows from one distribution, and total variation of the event rate at most V, which no
    data can verify.
    **Guarantee.** Finite-sample under that assumption, about the score cut to whole multiples of ``2^-30``: scores
    closer than that count as one.
    **Method.** Theorem 3 (documentation: Proofs), the least over three run lengths near ``(0.4 n / V)^(2/3)`` sharing
    alpha. Departure: runs are made of whole sketch cells (``2^14``), so rows and sketch agree and ties are never
    split; where one cell holds more rows than a run should, it counts with its own length unless its rows
    provably share one score. Lower end: `raw_lower`.
    **Cost.** Linear in the rows, then about 0.05 s.
    **Reads.** The sketch.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p, p)
    >>> bool(cal.certify.bounded_variation(data, side="upper").interval.high < 0.06)
    True
    """
    from calibrant.stats.bounds import debiased_error, lower_bound, variation_upper

    variation = positive(
        "variation", variation, what="a positive bound on the total variation", hint="1.0 for a monotone event rate"
    )
    low_share, high_share = shares(alpha, side)
    population = everyone(data, seed)
    low = lower_bound(population.cells, low_share, seed) if low_share else 0.0
    high, run = variation_upper(population.cells, variation, high_share, population.single) if high_share else (1.0, 0)
    shown = population.levels(100)
    value = debiased_error(shown.low, shown.totals.sum(axis=1), shown.totals[:, 1])
    return Estimate(
        method="certify.bounded_variation",
        value=min(max(value, low), max(high, low)),
        unit="probability",
        n=population.n,
        interval=Interval(low=low, high=high, level=1.0 - alpha, guarantee="finite-sample"),
        assumes=f"independent rows; total variation of the event rate at most {variation:g}",
        settings={"about": "the raw score", "variation": variation, "run": run, "seed": seed},
    )


@certificate(order=15, usual=True)
@takes_arrays
def values(data: Predictions | Sketch, *, alpha: float = 0.05, side: Side = "two-sided", seed: int = 0) -> Estimate:
    r"""Certify the average calibration error of a score that takes few values, as it is.

    Estimand: ``CE = E|p - E[Y|p]|``, in probability units (0.01 is one point).

    Parameters
    ----------
    data : Predictions or Sketch
    alpha : float in (0, 0.5]
        Probability, at most, that the interval misses the truth.
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Deals the rows into blocks; used by the lower end only.

    Returns
    -------
    Estimate
        ``value`` is the debiased plug-in, moved into the interval if it falls outside; smaller is better.
        ``settings["values"]`` is how many values the score takes.

    Raises
    ------
    NotComputable
        The score takes more than 1,024 values, or more than one for ten rows: use `rounded`.

    Notes
    -----
    **Assumes.** Independent rows from one distribution. The values need not be declared.
    **Guarantee.** Finite-sample. The lower end is that of `raw_lower`. The upper end holds for the population, values
    that did not occur in the rows included, where it is no chance that the score takes few values: whole percentages do
    in every sample, a continuous score in none. Where it is chance, an upper end that is reported, by this function or
    in its place by `rounded`, is wrong with at most twice the probability. And given these scores of independent rows,
    however they led to this function, it holds as it is for the mean of ``|p - E[Y|p]|`` over these rows.
    **Method.** Upper end: Theorem U with the notch, a cell for each of the ``2^30`` scores that are
    distinguished; those without rows contribute a factor of 1. Lower end: `raw_lower`. Scores are read to ``2^-30``,
    which is added and subtracted; two that agree to there count as one value. Data with ``cluster=`` or ``weights=``:
    independent clusters, Theorems CL and CU (documentation: Proofs); error and gap are of these weights.
    **Cost.** Linear in the rows, then milliseconds; a tenth of a second of clusters.
    **Reads.** The sketch; rows, where they have clusters or weights.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.integers(10, 91, 20_000) / 100  # whole per cents
    >>> off = np.where(np.arange(10, 91) % 2, 0.025, -0.025)[np.rint(100 * p).astype(int) - 10]
    >>> data = cal.predictions(rng.uniform(size=20_000) < p + off, p)
    >>> found = cal.certify.values(data)
    >>> bool(found.interval.low <= 0.025 <= found.interval.high), found.settings["values"]
    (True, 81)
    """
    spend = shares(alpha, side)
    q = everyone(data, seed)
    return shown_certificate(q, q.as_it_is()).run(spend, 1.0 - alpha, seed)
