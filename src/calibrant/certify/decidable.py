"""What a log can decide, before its labels are compared with its scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import (
    Judge,
    check_int,
    checked_alpha,
    checked_seed,
    checked_steps,
    choice,
    names,
    share,
)
from calibrant.certify.closed import OVER_BY_GAP, Limit, SignedEvidence, bet_sizes_for, rejected
from calibrant.certify.groups import checked_limit
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.results import Curve
from calibrant.views.population import Population, Target
from calibrant.views.sample import counted, everyone, grouped_sketch, groups_of, keyed, named_groups

Floats = NDArray[np.float64]

EVERYONE = "everyone"
SHARES_LOOKED_AT = 6  # of alpha, from alone to shared by all groups: between them it is that of more groups
LIMITS = 80  # at which groups are judged together
STEPS_UP = 3  # in which the smallest gap that shows is approached
DRAWS, FEWEST_DRAWS = 20, 5  # sets of outcomes for fewer groups: a share of many groups scatters little
EVALUATED, ROWS_DRAWN = 1_000, 2_000_000  # of groups and sets; of rows in clusters and sets: a few hundred milliseconds


@takes_arrays
def decidable(
    data: Predictions | Sketch,
    *,
    by: Iterable[str] | str | None = None,
    intersections: bool = False,
    limit: float | None = None,
    steps: int = 100,
    alpha: float = 0.05,
    power: float = 0.8,
    judge: Judge = "auto",
    draws: int = 200,
    seed: int = 0,
) -> Curve:
    r"""Say what this number of rows can decide: of everyone and each group the smallest limit that could be met.

    Estimand, for everyone and each group: the smallest limit within which its gap, and its calibration error, is
    certified with probability `power` if every score is right; and the smallest gap that is certified over `limit` (or,
    without one, as different from 0) with that probability, if the group's events are more frequent by that much and
    all other scores are right. In probability units. No label is compared with a score: outcomes are drawn from the
    scores.

    Parameters
    ----------
    data : Predictions or Sketch
    by : str or sequence of str, optional
        Covariates whose levels are the groups, as of `groups`; a sketch brings its own.
    intersections : bool
        Also every pair of the covariates.
    limit : float in (0, 1), optional
        The limit planned for.
    steps : int from 2 to 1024
    alpha : float in (0, 0.5]
    power : float in (0, 1)
    judge : {"auto", "error", "gap"}
        As of `audit`, which spends .8 of alpha on groups over the limit by their gaps, and all of it where gaps alone
        are judged. Of errors alone gaps have the ranges that are shown next to them, with all of alpha too.
    draws : int from 20 to 10,000
        Sets of outcomes that are drawn; errors are certified in half of them, of clusters in a fifth.
    seed : int

    Returns
    -------
    Curve
        A row for everyone, then for each group: ``group``, ``rows``, ``clusters`` (None of independent rows),
        ``gap_within``, ``gap_over``, ``error_within``, and ``gap_within_alone``, the limit for the gap if no other
        group were judged. With `limit` also ``power_within``, the probability of "within" if every score is right. A
        limit of 1 is none. ``settings["simulation_error"]`` is the standard error of a probability.

    Notes
    -----
    **Assumes.** Scores that are right, but where a gap is planned for; rows of one cluster no more alike than their
    scores say: where they are, more clusters are needed. Groups are drawn each by itself.
    **Guarantee.** None: a plan. The power is that of the drawn sets, up to two standard errors of
    ``sqrt(power (1 - power) / draws)``.
    **Method.** The certificates of an audit and its shares of alpha, run on outcomes drawn from the scores: Holm's
    procedure for gaps of groups, at half of alpha for "within" and the share of `judge` for "over"; Bonferroni's for
    their errors, at half of alpha; for everyone's error all of it. A group's smallest gap is approached in three steps.
    **Cost.** About half a second a group.
    **Reads.** The sketch; rows, where they have clusters or weights. Of labels, how many rows have one.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.uniform(size=4000), np.array(["a", "b", "c"])[rng.choice(3, 4000, p=[0.7, 0.25, 0.05])]
    >>> plan = cal.certify.decidable(cal.predictions(np.zeros(4000), p, {"site": site}), by="site", draws=50)
    >>> plan.columns["group"]
    ('everyone', 'site = a', 'site = b', 'site = c')
    >>> bool(plan.columns["gap_within"][1] < plan.columns["gap_within"][3])
    True
    """
    seed, power = checked_seed(seed), share("power", power, hint="such as 0.8")
    draws = check_int("draws", draws, low=20, high=10_000, hint="such as 200")
    by_gap = choice("judge", judge, get_args(Judge)) != "auto"
    plan = Planned(checked_limit(limit), checked_steps(steps), checked_alpha(alpha), power, draws, seed, by_gap=by_gap)
    return decided(*of_everyone_and_groups(data, names("by", by), intersections, seed), plan)


@dataclass(frozen=True)
class Planned:
    """What is planned for."""

    limit: float | None = None
    steps: int = 100
    alpha: float = 0.05
    power: float = 0.8
    draws: int = 200
    seed: int = 0
    times: float = 1.0  # as many rows as these, or clusters
    by_gap: bool = False  # groups over the limit by their gap spend all of alpha

    @property
    def shrunk(self) -> float:
        """How many times shorter ranges of so many more rows are."""
        return math.sqrt(self.times)

    @property
    def noise(self) -> float:
        """The standard error of a drawn power."""
        return math.sqrt(self.power * (1.0 - self.power) / self.draws)


def of_everyone_and_groups(
    data: Predictions | Sketch, by: Sequence[str], intersections: bool, seed: int
) -> tuple[Population, list[tuple[str, Population]]]:
    """Everyone, and each group that has rows with its name."""
    sketch = grouped_sketch(data, tuple(by), intersections, seed) if by else counted(data, seed)
    named = named_groups(sketch)
    parts = groups_of(data, sketch, [[i] for _, i in named], seed)
    return everyone(data, seed, sketch), [(keyed(name), q) for (name, _), q in zip(named, parts, strict=True)]


def decided(
    whole: Population, groups: Sequence[tuple[str, Population]], plan: Planned, most: int | None = None
) -> Curve:
    """What could be decided of everyone and of groups; of more than `most`, of the largest and the smallest.

    Then groups are judged as Holm's procedure would if each were decided before all that have fewer rows.
    """
    whole, groups = whole.as_one_block(), [(name, q.as_one_block()) for name, q in groups]
    count = len(groups)
    parts, shown = [_Together.of([whole], plan, _Shares(plan.alpha, 1, True, everyone=True))], list(groups)
    shares = _Shares(plan.alpha, max(count, 1), plan.by_gap)
    if most is not None and count > most:
        order = sorted(range(count), key=lambda i: (-groups[i][1].n, i))
        ranks = [*range(most - most // 2), *range(count - most // 2, count)]
        shown = [groups[order[r]] for r in ranks]
        parts.append(_Together.of([q for _, q in shown], plan, shares, [count - r for r in ranks]))
    elif groups:
        parts.append(_Together.of([q for _, q in groups], plan, shares))
    of = [whole, *(q for _, q in shown)]
    columns: dict[str, tuple[object, ...]] = {
        "group": (EVERYONE, *(name for name, _ in shown)),
        "rows": tuple(round(q.n * plan.times) for q in of),
        "clusters": tuple(None if q.clusters is None else round(q.clusters.count * plan.times) for q in of),
        "gap_within": tuple(v for part in parts for v in part.within()),
        "gap_over": tuple(v for part in parts for v in part.over()),
        "error_within": tuple(v for part in parts for v in part.error()),
        "gap_within_alone": tuple(v for part in parts for v in part.within_alone()),
    }
    if plan.limit is not None:
        columns["power_within"] = tuple(v for part in parts for v in part.power_within(plan.limit))
    settings = {
        "limit": plan.limit,
        "steps": plan.steps,
        "alpha": plan.alpha,
        "power": plan.power,
        "simulation_error": plan.noise,
        "draws": plan.draws,
        "seed": plan.seed,
        "groups": count,
        "error": whole.judged(plan.steps).about,
    }
    return Curve(method="certify.decidable", columns=columns, settings=settings)


# ---- fewer groups, of an audit that left most undecided ----


@dataclass(frozen=True)
class Grouped:
    """A group of an audit, as it is judged by its gap: by which columns, who is in it, and up to where it is within."""

    columns: tuple[str, ...]
    people: Population
    inside: Limit


def by_fewer(
    groups: Sequence[Grouped], alpha: float, bet_sizes: float, target: Target, seed: int
) -> dict[str, tuple[object, ...]]:
    """How many groups would be within at these rows if every score is right, by the columns that form them.

    `alpha`: of any group wrongly within. `bet_sizes`: of the gaps as they were certified. No label is read: outcomes
    are drawn from the scores. Lines: ``by``, the best column alone, then with the next best, and so on to all, none
    crossed; ``groups``, and how many of them would be ``decided``. Holm's procedure and closed testing decide no more
    of a column's groups where others are judged with them, so no set of columns has a larger share than the best alone.
    """
    evidence = _evidence_drawn(groups, bet_sizes, target, seed)
    p_values = any(one.p_values for of in evidence for one in of)
    log_e = np.array([[e.within(g.inside) for e in of] for g, of in zip(groups, evidence, strict=True)])

    def often(columns: Sequence[str]) -> tuple[int, float]:
        """How many groups there are, and how many are decided in the mean."""
        some = [i for i, g in enumerate(groups) if len(g.columns) == 1 and g.columns[0] in columns]
        if not some:
            return 0, 0.0
        met = sum(int(rejected(drawn, alpha, p_values).sum()) for drawn in log_e[some].T)
        return len(some), met / log_e.shape[1]

    names = list(dict.fromkeys(name for g in groups for name in g.columns))
    alone = {name: often([name]) for name in names}
    share = {name: met / count for name, (count, met) in alone.items() if count}
    order = sorted(share, key=lambda name: (-share[name], names.index(name)))
    lines = [(tuple(order[: k + 1]), *often(order[: k + 1])) for k in range(len(order))]
    by, count, met = zip(*lines, strict=True) if lines else ((), (), ())
    return {"by": by, "groups": count, "decided": tuple(round(v, 1) for v in met)}


def _evidence_drawn(
    groups: Sequence[Grouped], bet_sizes: float, target: Target, seed: int
) -> list[list[SignedEvidence]]:
    """Evidence about each group's gap in sets of outcomes drawn from its scores; fewer sets where they take long."""
    rng = np.random.default_rng(seed)
    one_by_one = sum(len(u.p) for g in groups for u in g.people.diagonals)  # rows of clusters; others are counts
    most = min(DRAWS, EVALUATED // len(groups), ROWS_DRAWN // max(one_by_one, 1))
    sets, result = range(max(most, FEWEST_DRAWS)), []
    for g in groups:
        if target == g.people.target:
            drawn = g.people.as_one_block().drawn_gaps(bet_sizes)
            result.append([SignedEvidence(drawn(rng, 0.0)) for _ in sets])
        else:  # bets of the population learn from earlier blocks
            result.append([SignedEvidence.of(g.people.redrawn(rng), bet_sizes, target) for _ in sets])
    return result


@dataclass(frozen=True)
class _Shares:
    """What an audit spends on each of the populations that share alpha."""

    alpha: float
    count: int  # of groups
    by_gap: bool  # gaps over the limit spend all of alpha
    everyone: bool = False  # in place of groups; then nobody shares

    @property
    def over(self) -> float:
        """An end of a gap that is wrongly over the limit."""
        return self.alpha * (1.0 if self.by_gap else OVER_BY_GAP) / 2.0 / self.count

    @property
    def error(self) -> float:
        """The end of an error that is wrongly within."""
        return self.alpha if self.everyone else self.alpha / 2.0 / self.count

    @property
    def bet_sizes(self) -> float:
        """The error probability that stakes on gaps are the best at."""
        return bet_sizes_for(self.over * self.count, self.count)


@dataclass(frozen=True)
class _Together:
    """Populations that share alpha, and how large their gaps are at most in sets of outcomes drawn from the scores."""

    populations: Sequence[Population]
    plan: Planned
    shares: _Shares
    sharing: NDArray[np.int64]  # shape (k,): how many share alpha, increasing; none where each has its own turn
    tops: Floats  # shape (populations, draws, k), or k = 2: alone, and where it is its turn

    @classmethod
    def of(
        cls, populations: Sequence[Population], plan: Planned, shares: _Shares, turns: Sequence[int] = ()
    ) -> _Together:
        """Draw the sets; `turns`: how many share alpha when each is decided."""
        sharing = np.unique(np.rint(np.geomspace(1, shares.count, SHARES_LOOKED_AT)).astype(np.int64))
        own = [np.array([1, t]) for t in turns] or [sharing] * len(populations)
        rng, shrunk = np.random.default_rng(plan.seed), plan.shrunk
        tops = np.empty((len(populations), plan.draws, len(own[0])))
        for g, q in enumerate(populations):
            drawn = q.drawn_gaps(shares.bet_sizes)
            for d in range(plan.draws):
                evidence = SignedEvidence(drawn(rng, 0.0))
                ends = [evidence.ends(delta, delta) for delta in plan.alpha / 2.0 / own[g]]
                tops[g, d] = [min(max(most, -least) / shrunk, 1.0) for least, most in ends]
        return cls(populations, plan, shares, np.zeros(0, np.int64) if turns else sharing, tops)

    def within(self) -> list[float]:
        """The smallest limits within which each is certified so often."""
        if not len(self.sharing):
            return self._reached(1)
        limits = np.append(np.geomspace(max(float(self.tops.min()), 1e-9), float(self.tops.max()), LIMITS), 1.0)
        share = np.stack([self._met(limit).mean(axis=1) for limit in limits])  # (limits, populations)
        share[-1] = 1.0
        return [float(limits[np.argmax(often >= self.plan.power)]) for often in share.T]

    def power_within(self, limit: float) -> list[float]:
        """How often each is certified within a limit."""
        return [float(v) for v in self._met(limit).mean(axis=1)]

    def within_alone(self) -> list[float]:
        """The same if no other were judged."""
        return self._reached(0)

    def _reached(self, at: int) -> list[float]:
        """The smallest drawn end within which so many are: events are whole, and between two ends are fewer."""
        return [float(v) for v in np.quantile(self.tops[:, :, at], self.plan.power, axis=1, method="inverted_cdf")]

    def _met(self, limit: float) -> NDArray[np.bool_]:
        """Which are within, in each drawn set, by Holm's procedure: shape (populations, draws)."""
        met = np.zeros(self.tops.shape[:2], dtype=bool)
        while True:
            left = np.maximum(len(met) - met.sum(axis=0), 1)
            at = np.searchsorted(self.sharing, left)  # among as many, or among more
            now = met | (np.take_along_axis(self.tops, at[None, :, None], axis=2)[..., 0] <= limit)
            if np.array_equal(now, met):
                return met
            met = now

    def over(self) -> list[float]:
        """The smallest gaps that are certified over the limit so often, all others being within."""
        plan, limit, delta = self.plan, self.plan.limit or 0.0, self.shares.over
        rng, shrunk = np.random.default_rng(plan.seed + 1), plan.shrunk
        result = []
        for q, tops in zip(self.populations, self.tops, strict=True):
            drawn, gap = q.drawn_gaps(self.shares.bet_sizes), limit + float(np.median(tops[:, -1]))
            for step in range(1, STEPS_UP + 1):  # the first ones from fewer sets
                sets = range(max(plan.draws * step // STEPS_UP, 20))
                floors = [SignedEvidence(drawn(rng, gap)).ends(delta, 0.0)[0] for _ in sets]
                floor = (
                    gap - (gap - float(-np.quantile(np.negative(floors), plan.power, method="inverted_cdf"))) / shrunk
                )
                gap = min(max(gap + limit - floor, limit), 1.0)
            result.append(gap)
        return result

    def error(self) -> list[float]:
        """The smallest limits within which the calibration error of each is certified so often."""
        from scipy.special import ndtri

        plan, rng, shrunk = self.plan, np.random.default_rng(self.plan.seed + 2), self.plan.shrunk
        delta, result = self.shares.error, []
        for q in self.populations:
            first = q.redrawn(rng).judged(plan.steps)
            sets = max(plan.draws // first.costs, 5)
            end, plain = (e.limit(delta) for e in (first.above, first.above_plain))
            ratio = end / plain if plain else 1.0  # the whole evidence takes long of clusters, and shortens all alike
            others = (q.redrawn(rng).judged(plan.steps).above_plain.limit(delta) for _ in range(sets - 1))
            tops = np.array([end, *(ratio * top for top in others)])
            usual = float(tops.mean() + ndtri(plan.power) * tops.std(ddof=1))  # bounds scatter about normally
            result.append(min(usual / shrunk + first.slack, 1.0))
        return result
