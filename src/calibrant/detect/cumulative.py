"""The cumulative test: residuals added up along the score, without bins or bandwidth."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from calibrant.detect.tested import Null, impossible, tested
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Outcome
from calibrant.stats.brownian import maximum_tail, range_tail
from calibrant.stats.classical import simulated_extremes, walk_of

Statistic = Literal["kuiper", "kolmogorov-smirnov"]


def cumulative_test(
    data: Any, statistic: Statistic = "kuiper", draws: int = 999, null: Null = "simulated", seed: int = 0
) -> Outcome:
    r"""Cumulative test (ECCE): do outcomes drift away from the scores along the score? No bins, no bandwidth.

    Statistic: with ``C_k = sum_{i <= k} (y_i - p_i) / n`` in order of the score and ``C_0 = 0``, the range
    ``max C - min C`` (Kuiper) or the largest ``|C|`` (Kolmogorov-Smirnov), over ``sqrt(sum p (1 - p)) / n``. Large
    values speak against calibration.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; clusters are refused.
    statistic : {"kuiper", "kolmogorov-smirnov"}
    draws : int from 19
        Simulated data sets.
    null : {"simulated", "asymptotic"}
        ``"asymptotic"`` is the law of the range, or of the maximum modulus, of a Brownian motion.
    seed : int

    Returns
    -------
    Outcome
        Parts: ``ecce``, the same in probability units: no stretch of scores holds more surplus or lack of cases, as a
        share of all rows (Kuiper); ``deviation``, the divisor; ``from_score`` and ``to_score``, where the stretch that
        gives the statistic begins (above it) and ends; and ``surplus``, cases less expected cases there as a share of
        all rows, above 0 where the model says too little.

    Raises
    ------
    NotComputable
        Every score is 0 or 1; clusters.

    Notes
    -----
    **Assumes.** Independent rows; the scores were made without their outcomes.
    **Guarantee.** Simulated: level alpha at every number of rows. Asymptotic: as rows grow, conservative in small
    samples and for few distinct scores. **Method.** Arrieta-Ibarra et al. (2022), sections 2 and 3. The walk is free at
    its end, so that its law is that of Brownian motion, not of a bridge as in the two-sample tests of the same names.
    Departure: it is read at the last row of each distinct score only, which makes it independent of the order of tied
    rows. Weights multiply residuals, their squares the variance. **Cost.** A sort, then rows times draws (about 4 s for
    a million rows and 999 draws, in bounded memory; far less with ties). **Reads.** Rows, or the sketch's cells at
    their mean score (``2^14`` cells: the walk is read at their ends).

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu (2022), JMLR 23(351), https://jmlr.org/papers/v23/22-0658.html. Feller
    (1951), doi:10.1214/aoms/1177729589.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> found = cal.detect.cumulative_test(cal.predictions(rng.uniform(size=2000) < p**1.3, p))
    >>> found.p_value, found.parts["surplus"] < -0.05
    (0.001, True)
    """
    t = tested(data, draws, null, seed, "the cumulative test", weighted=True)
    if statistic not in ("kuiper", "kolmogorov-smirnov"):
        raise BadInput(f"statistic={statistic!r}: pass 'kuiper' or 'kolmogorov-smirnov'")
    span, q = statistic == "kuiper", t.q
    walk = walk_of(q)
    if walk.deviation == 0.0:
        raise NotComputable("every score is 0 or 1: the cumulative test has no law")
    value, drawn = walk.size(span), np.zeros(1)
    if t.simulates:
        low, high = simulated_extremes(q, t.ids, t.draws, t.seed)
        drawn = (high - low if span else np.maximum(high, -low)) / walk.deviation
    begin, end = sorted((int(walk.at.argmin()), int(walk.at.argmax())) if span else (0, int(np.abs(walk.at).argmax())))
    score, mass = np.append(0.0, q.p[q.ends]), float((q.heft * q.times).sum())
    parts = {
        "ecce": value * walk.deviation / mass,
        "deviation": walk.deviation / mass,
        "from_score": float(score[begin]),
        "to_score": float(score[end]),
        "surplus": float(walk.at[end] - walk.at[begin]) / mass,
    }
    return t.outcome(
        "cumulative_test",
        value,
        t.judge(value, drawn, (range_tail if span else maximum_tail)(value)),
        "cases are too many or too few over a stretch of scores",
        impossible(q),
        {"statistic": statistic},
        parts,
    )
