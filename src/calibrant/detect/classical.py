"""Tests of long standing that need no fit: Hosmer-Lemeshow, Spiegelhalter's z, and the cumulative test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_seed, choice, flag, number
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import identities_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Outcome
from calibrant.stats.classical import (
    Drawing,
    Scored,
    group_squares,
    groups_of,
    maximum_tail,
    paired_totals,
    range_tail,
    upper_tail,
    walk_of,
)
from calibrant.stats.cusum import Alternative, Boundary, off_by, within
from calibrant.stats.nulls import p_value
from calibrant.views.kinds import refuse_rows
from calibrant.views.points import points

Floats = NDArray[np.float64]
Null = Literal["simulated", "asymptotic"]
NULLS: tuple[Null, ...] = ("simulated", "asymptotic")
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "greater", "less")
CALIBRATED = "the outcomes are independent and happen with the probabilities given"
EXACT = "exact simulation"
FROM_CELLS = "simulation from cells"
ASYMPTOTIC = "asymptotic"
IMPOSSIBLE = "exact: outcomes happened that have probability zero"
LEAST_DRAWS, MOST_DRAWS = 19, 1_000_000  # so that a p-value can be 0.05, and that a slip of the keyboard is seen


# ---- The settings of a test: how far off the event rate may be, which way is looked at, and the null ----


@dataclass(frozen=True)
class ScoreTestOptions:
    """The settings of a test as they are passed, until `checked`; exact calibration is tested by default."""

    draws: int
    null: Null
    seed: int
    tolerance: float = 0.0  # in [0, 1): rates within it, on one side or both, are the null hypothesis
    alternative: Alternative = "two-sided"
    sandwich: bool = False  # clusters have a law of their own, and need no random signs

    def checked(self) -> ScoreTestOptions:
        """The settings as they will be used; refuse those that cannot be."""
        return replace(
            self,
            draws=check_int("draws", self.draws, LEAST_DRAWS, MOST_DRAWS, hint="such as 999"),
            null=choice("null", self.null, NULLS),
            seed=checked_seed(self.seed),
            tolerance=number("tolerance", self.tolerance, least=0, below=1, hint="such as 0.05"),
            alternative=choice("alternative", self.alternative, ALTERNATIVES),
        )

    @property
    def exact(self) -> bool:
        """Whether exact calibration is tested."""
        return self.tolerance == 0.0 and self.alternative == "two-sided"

    def impossible(self, q: Scored) -> int:
        """Count outcomes that have probability zero under every rate in the null hypothesis."""
        return Boundary.of(q.p, self.tolerance).impossible(q.events, q.times - q.events, self.alternative)


# ---- The rows or cells of a test with its settings ----


@dataclass(frozen=True)
class Finding:
    """A statistic with its p-value."""

    statistic: float
    p_value: float
    speaks_for: str  # the alternative, if there is no room for a tolerance
    impossible: int | None = None  # outcomes that the null hypothesis rules out; by default as many as the options say


@dataclass(frozen=True)
class Tested:
    """Scored rows with the settings of a test."""

    q: Scored
    options: ScoreTestOptions
    reads: str  # "rows", or the cells of the sketch

    @property
    def simulates(self) -> bool:
        """Whether the p-value comes from simulated outcomes."""
        return self.options.null == "simulated"

    @property
    def drawing(self) -> Drawing:
        """What data are simulated with."""
        return Drawing(identities_of(len(self.q.p), self.options.seed), self.options.draws, self.options.seed)

    @property
    def mass(self) -> float:
        """Rows, or their weight."""
        return float((self.q.each_weighs * self.q.times).sum())

    def judge(self, statistic: float, simulated: Floats, tail: float) -> float:
        """The p-value by the null asked for: a rank among simulated statistics, or the tail of a law."""
        return p_value(statistic, simulated) if self.simulates else tail

    def outcome(self, name: str, result: Finding, settings: Mapping[str, Any], parts: Mapping[str, Any]) -> Outcome:
        """Wrap a result; outcomes of probability zero refute the null hypothesis whatever the statistic says."""
        a = self.options
        impossible = a.impossible(self.q) if result.impossible is None else result.impossible
        law = ASYMPTOTIC if not self.simulates else EXACT if self.reads == "rows" else FROM_CELLS
        known = {
            "draws": a.draws if self.simulates else 0,
            "null": a.null,
            "reads": self.reads,
            "seed": a.seed,
            "weights": self.q.weight is not None,
            **self.q.facts,
            **settings,
        }
        null, speaks_for = CALIBRATED, result.speaks_for
        if not a.exact:
            known |= {"tolerance": a.tolerance, "alternative": a.alternative}
            null = within(a.tolerance, a.alternative, "p")
            speaks_for = f"the event rate is {off_by(a.tolerance, a.alternative, 'the score somewhere')}"
        return Outcome(
            method=f"detect.{name}",
            statistic=float(result.statistic),
            p_value=0.0 if impossible else float(result.p_value),
            alternative=speaks_for,
            null=self.q.null or null,
            law=IMPOSSIBLE if impossible else self.q.law or law,
            settings=known,
            parts={"rows": self.q.n, "impossible": impossible, **parts},
        )


def tested(data: Predictions | Sketch, options: ScoreTestOptions, what: str) -> Tested:
    """Check everything once; read rows, or the cells of a sketch at their mean score."""
    a, p = options.checked(), points(data)
    q = p.entries
    if q.clusters and not a.sandwich and not (a.exact and a.null == "simulated"):
        why = "an asymptotic law" if a.exact else "room for a tolerance or one side"
        raise NotComputable(f"{what} of clusters has random signs as its null, not {why}: use strong_calibration_test")
    if a.null == "asymptotic" and not a.exact:
        raise NotComputable("a tolerance, or one side alone, has no asymptotic law here: pass null='simulated'")
    return Tested(q, a, p.reads)


def covered(rows: Predictions, what: str) -> Predictions:
    """Predictions of independent rows of equal weight; refuse others, and say why the test has no form for them."""
    refuse_rows(
        rows,
        cluster=f"{what} takes rows as independent; those of one cluster are not: use score_test",
        weights=f"{what} counts rows and has no form for weights: use score_test",
    )
    if rows.n == 0:
        raise NotComputable("there are no rows")
    return rows


def chi_square(statistic: float, degrees: int) -> float:
    """The upper tail of the chi-square law."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees, statistic))


# ---- Hosmer and Lemeshow's groups of the score, kept for comparison ----


@takes_arrays
def hosmer_lemeshow_test(
    data: Predictions | Sketch,
    *,
    bins: int = 10,
    fitted: bool = False,
    draws: int = 999,
    null: Null = "simulated",
    seed: int = 0,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
) -> Outcome:
    r"""Hosmer-Lemeshow test: are events as frequent as predicted in each of ten groups of the score? A legacy test.

    Statistic: ``sum_g (O_g - E_g)^2 / (n_g P_g (1 - P_g))`` over groups of about equal mass, with `O` the events, `E`
    the sum of the scores and `P` their mean. Large values speak against calibration.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; where the data name clusters, whole clusters have random signs.
    bins : int from 2 to 1,000
        Groups asked for. Equal scores always share a group, so ties can leave fewer.
    fitted : bool
        The scores come from a logistic regression fitted to these very rows. The asymptotic law then has two degrees
        of freedom fewer, and no simulated null exists.
    draws : int from 19
        Simulated data sets.
    null : {"simulated", "asymptotic"}
        ``"asymptotic"`` is chi-square, with a degree of freedom a group.
    seed : int
    tolerance : float in [0, 1)
        How far off the event rate may be at any score: a group then adds ``max(0, O - E_high, E_low - O)^2`` over its
        variance, with ``E_high`` and ``E_low`` the sums of ``p + tolerance`` and ``p - tolerance`` kept in [0, 1].
    alternative : {"two-sided", "greater", "less"}
        ``"greater"``: somewhere more happens than the model says. Without the default, or with a tolerance, the null
        is simulated.

    Returns
    -------
    Outcome
        Parts: ``degrees`` of freedom, and per group ``low``, ``high`` (least and largest score), ``group_rows``,
        ``observed`` and ``expected`` events.

    Raises
    ------
    NotComputable
        No group's outcomes can vary; `fitted` with a simulated null; a tolerance or one side with another, or with
        clusters; one cluster only.

    Notes
    -----
    **Assumes.** Independent rows; the scores were made without their outcomes (unless `fitted`).
    **Guarantee.** Simulated: level alpha at every number of rows; with clusters asymptotic in
    their number. Asymptotic: as groups grow; a little conservative
    where scores differ within a group, as ``n P (1 - P)`` is then too large a variance. **Method.** Hosmer and Lemeshow
    (1980); groups whose scores are all 0, or all 1, cannot vary and are left out. With weights the variance is ``S P (1
    - P)``, S the sum of squared weights. With a tolerance, one uniform number a row draws its outcome at both edges, so
    that the simulated statistic dominates (both signs, one level). Legacy: the answer depends on an arbitrary number of
    groups, has no direction, and errors of opposite sign within a group cancel. Prefer `cumulative_test`, which has no
    groups, or `score_test`, which has a direction. **Cost.** A sort, then rows times draws (about 4 s for a million
    rows and 999 draws, in bounded memory; far less with ties). **Reads.** Rows, or the sketch's cells at their mean
    score.

    References
    ----------
    Hosmer, Lemeshow (1980), doi:10.1080/03610928008827941. Hosmer, Hosmer, le Cessie, Lemeshow (1997),
    doi:10.1002/(SICI)1097-0258(19970515)16:9<965::AID-SIM509>3.0.CO;2-O.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> found = cal.detect.hosmer_lemeshow_test(cal.predictions(rng.uniform(size=2000) < p**1.3, p))
    >>> found.p_value, found.parts["degrees"]
    (0.001, 10)
    """
    options = ScoreTestOptions(draws, null, seed, tolerance, alternative)
    t = tested(data, options, "the Hosmer-Lemeshow test")
    bins = check_int("bins", bins, 2, 1000, of="groups", hint="such as 10")
    if flag("fitted", fitted) and t.simulates:
        raise NotComputable(
            "scores fitted to these outcomes have no simulated null: pass null='asymptotic', or test on other rows"
        )
    groups = groups_of(t.q, bins)
    degrees = int((groups.variance > 0.0).sum()) - (2 if fitted else 0)
    if degrees < 1:
        raise NotComputable("the Hosmer-Lemeshow test needs groups whose outcomes can vary: there are too few")
    if t.options.exact:
        statistic = float(groups.statistic(groups.observed))
        drawn = t.q.totals(groups.first, t.drawing) if t.simulates else groups.observed
        p = t.judge(statistic, groups.statistic(drawn), chi_square(statistic, degrees))
    else:
        # Outcomes are drawn at both edges from one uniform number a row.
        tolerance, side = t.options.tolerance, t.options.alternative
        statistic = float(group_squares(t.q, groups, tolerance, side, (groups.observed, groups.observed)))
        totals = paired_totals(t.q, groups.first, tolerance, t.drawing)
        p = p_value(statistic, group_squares(t.q, groups, tolerance, side, totals))
    ends = np.append(groups.first[1:], len(t.q.p)) - 1
    columns = {
        "low": t.q.p[groups.first],
        "high": t.q.p[ends],
        "group_rows": groups.rows.astype(np.int64),
        "observed": groups.observed,
        "expected": groups.expected,
    }
    return t.outcome(
        "hosmer_lemeshow_test",
        Finding(statistic, p, "the event rate of some group is not its mean score"),
        {"bins": bins, "fitted": fitted},
        {"degrees": degrees, **{k: tuple(v.tolist()) for k, v in columns.items()}},
    )


# ---- Spiegelhalter's z: the Brier score against what the scores lead one to expect ----


@takes_arrays
def spiegelhalter_test(
    data: Predictions | Sketch, *, draws: int = 999, null: Null = "simulated", seed: int = 0
) -> Outcome:
    r"""Spiegelhalter's z: is the Brier score what it would be if the probabilities were right? Two-sided.

    Statistic: ``z = sum (y - p)(1 - 2p) / sqrt(sum p (1 - p)(1 - 2p)^2)``. Above 0 the Brier score is larger than the
    model leads one to expect (scores too extreme), below 0 smaller (too timid).

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; where the data name clusters, whole clusters have random signs.
    draws : int from 19
        Simulated data sets.
    null : {"simulated", "asymptotic"}
        ``"asymptotic"`` is the normal law.
    seed : int

    Returns
    -------
    Outcome
        `statistic` is z, with its sign. Parts: ``brier``, and the Brier score ``expected`` if the model is calibrated.

    Raises
    ------
    NotComputable
        Every score is 0, 1/2 or 1, where the statistic cannot vary; one cluster only.

    Notes
    -----
    **Assumes.** Independent rows; the scores were made without their outcomes.
    **Guarantee.** Simulated: level alpha at every number of rows; with clusters asymptotic in their number. Asymptotic:
    with many expected events and non-events.
    **Method.** Spiegelhalter (1986), equation 6; weights multiply residuals, their squares the variance. Two-sided by
    ``|z|``. Errors at scores under 1/2 and over 1/2 with the same sign of ``y - p`` cancel, so that a shift of
    symmetric scores is invisible: it is a test of spread. Use `score_test` for shift and spread. **Cost.** A sort, then
    rows times draws (about 4 s for a million rows and 999 draws, in bounded memory; far less with ties). **Reads.**
    Rows, or the sketch's cells at their mean score.

    References
    ----------
    Spiegelhalter (1986), doi:10.1002/sim.4780050506.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> timid = cal.predictions(rng.uniform(size=2000) < p, 0.25 + 0.5 * p)
    >>> found = cal.detect.spiegelhalter_test(timid)
    >>> found.p_value, found.statistic < -5
    (0.001, True)
    """
    t = tested(data, ScoreTestOptions(draws, null, seed), "Spiegelhalter's test")
    q, slope = t.q, 1.0 - 2.0 * t.q.p
    if float(q.variance @ slope**2) == 0.0:
        raise NotComputable("Spiegelhalter's statistic cannot vary: every score is 0, 1/2 or 1")
    spread = float(np.sqrt(q.covariance(slope[:, None])[0, 0]))
    if spread == 0.0:
        raise NotComputable("every cluster's residuals add up to nothing: Spiegelhalter's statistic has no law")
    z = float(q.residual @ slope) / spread
    sums = q.sums(slope[:, None], t.drawing) if t.simulates else np.zeros((1, 1))
    expected = float((q.each_weighs * q.times) @ (q.p * (1.0 - q.p))) / t.mass
    p = t.judge(abs(z), np.abs(sums[:, 0]) / spread, 2.0 * upper_tail(abs(z)))
    return t.outcome(
        "spiegelhalter_test",
        Finding(z, p, "the Brier score is not what the scores lead one to expect"),
        {},
        {"brier": expected + z * spread / t.mass, "expected": expected},
    )


# ---- The cumulative test: residuals added up along the score, without bins or bandwidth ----

Statistic = Literal["kuiper", "kolmogorov-smirnov"]
STATISTICS: tuple[Statistic, ...] = ("kuiper", "kolmogorov-smirnov")


@takes_arrays
def cumulative_test(
    data: Predictions | Sketch,
    *,
    statistic: Statistic = "kuiper",
    draws: int = 999,
    null: Null = "simulated",
    seed: int = 0,
) -> Outcome:
    r"""Cumulative test (ECCE): do outcomes drift away from the scores along the score? No bins, no bandwidth.

    Statistic: with ``C_k = sum_{i <= k} (y_i - p_i) / n`` in order of the score and ``C_0 = 0``, the range
    ``max C - min C`` (Kuiper) or the largest ``|C|`` (Kolmogorov-Smirnov), over ``sqrt(sum p (1 - p)) / n``. Large
    values speak against calibration.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; where the data name clusters, whole clusters have random signs.
    statistic : {"kuiper", "kolmogorov-smirnov"}
    draws : int from 19
        Simulated data sets.
    null : {"simulated", "asymptotic"}
        ``"asymptotic"`` is the law of the range, or of the maximum modulus, of a Brownian motion.
    seed : int

    Returns
    -------
    Outcome
        Parts: ``ecce``, the same in probability units: no stretch of scores holds more surplus or lack of events, as
        a share of all rows (Kuiper); ``deviation``, the divisor; ``from_score`` and ``to_score``, where the stretch
        that gives the statistic begins (above it) and ends; and ``surplus``, events less expected events there as a
        share of all rows, above 0 where the model underpredicts.

    Raises
    ------
    NotComputable
        Every score is 0 or 1; one cluster only.

    Notes
    -----
    **Assumes.** Independent rows; the scores were made without their outcomes.
    **Guarantee.** Simulated: level alpha at every number of rows; with clusters asymptotic in
    their number. Asymptotic: as rows grow, conservative in small
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
    t = tested(data, ScoreTestOptions(draws, null, seed), "the cumulative test")
    span, q = choice("statistic", statistic, STATISTICS) == "kuiper", t.q
    walk = walk_of(q)
    if walk.deviation == 0.0:
        raise NotComputable("every score is 0 or 1: the cumulative test has no law")
    value, drawn = walk.size(span), np.zeros(1)
    if t.simulates:
        low, high = q.extremes(t.drawing)
        drawn = (high - low if span else np.maximum(high, -low)) / walk.deviation
    begin, end = sorted((int(walk.at.argmin()), int(walk.at.argmax())) if span else (0, int(np.abs(walk.at).argmax())))
    score: Floats = np.append(0.0, q.p[q.ends])
    p = t.judge(value, drawn, (range_tail if span else maximum_tail)(value))
    return t.outcome(
        "cumulative_test",
        Finding(value, p, "events are too many or too few over a stretch of scores"),
        {"statistic": statistic},
        {
            "ecce": value * walk.deviation / t.mass,
            "deviation": walk.deviation / t.mass,
            "from_score": float(score[begin]),
            "to_score": float(score[end]),
            "surplus": float(walk.at[end] - walk.at[begin]) / t.mass,
        },
    )
