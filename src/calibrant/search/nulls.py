"""Nulls of the strong calibration statistic: where its p-value comes from, and what each guarantees.

Numbers of theorems are those of the paper (Feng et al., AISTATS 2024).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, choice
from calibrant.data.predictions import Predictions
from calibrant.errors import BadInput
from calibrant.kernels.draws import LANES, outcomes, packed
from calibrant.search.corners import CORNERS, FEW
from calibrant.search.detectors import (
    INFLATED,
    DetectorInputs,
    Detectors,
    Fits,
    Settings,
    detector_inputs,
    detectors_of,
    halves_of,
)
from calibrant.search.models import Floats, Rows, cross_fit, predicted
from calibrant.search.products import WEIGHTS, Joint, Products, Singles, log_factor
from calibrant.search.repeats import VALUES, Repeats
from calibrant.stats.cusum import Path, beyond, observed
from calibrant.stats.nulls import p_value, ranked, reaching
from calibrant.views.kinds import refuse_rows

Null = Literal["auto", "refit", "fixed", "split", "forward", "eprocess"]
NULLS: tuple[Null, ...] = ("auto", "refit", "fixed", "split", "forward", "eprocess")
DRAWS, REFITS = 999, 99  # by default: p-values down to 0.001, or 0.01 where each draw takes all fits again
BY_ROWS = ((20_000, 999), (np.inf, 499))  # draws where refits need sums alone, a second or a few
MANY = 50_000  # rows up to which `auto` refits: beyond, draws enough for p-values of 0.001 take too long
LEAST_DRAWS = 19  # so that a p-value can be 0.05
LAST = "strong verdict"  # where the last one is remembered
SALT = 0x57A0C  # of the outcomes simulated with models held
AGAIN = 0xAEF17  # of the outcomes to which models are fitted again
SAMPLED = 0x3C1  # of the rows in which products are tested, where there are too many
EXCEEDANCES = 10  # after which repeated fitting stops (Besag and Clifford); a p-value of 0.1 takes a hundred draws
REFIT_TREES = 10  # of each of the paper's forests, for data and repeats alike: a tenth, as there are a hundred fits
START = 2  # folds that the first models of `forward` are fitted to
BET_SIZES = (0.125, 0.25, 0.5, 1.0)  # shares of the predicted residual that the test martingale bets on

SPLIT = "finite-sample: exact simulation given models fitted to other rows"
LAWS: Mapping[str, str] = {
    "fixed": "asymptotic: simulation with the cross-fitted models held",
    "split": SPLIT,
    "forward": f"{SPLIT}, earlier ones for each block; p-values joined by Fisher's method",
    "eprocess": "finite-sample: test martingale with models fitted to earlier blocks (Ville's inequality)",
}
SLACK = 0.5  # tolerance times the root of the rows (or clusters) from which `auto` holds models: see `may_hold`
EXACT = "finite-sample: exact simulation of the whole procedure, models fitted again to each draw"
AT_EDGE = "; exact where every rate is at the edge of the tolerance, asymptotic elsewhere in the null"
IMPOSSIBLE = "exact: outcomes of probability zero under every rate within the tolerance happened: {}"


UNPROVED = "the test martingale is proved for independent rows without weights: use null='split'"
SHOWN = 8  # simulated paths that are kept, to be drawn: enough to see what chance does, few enough to tell apart


class Drawn(NamedTuple):
    """A path where it is looked at: the share of the rows up to each step, by weight, and the scaled score there."""

    share: Floats
    score: Floats

    @classmethod
    def of(cls, path: Path, y: Floats, weight: Floats) -> Drawn:
        """A path over some rows, of these outcomes and weights."""
        seen = path.scale > 0
        return cls((np.cumsum(weight[path.rows]) / weight.sum())[seen], path.curve(y)[seen])


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A statistic with its p-value, and where it peaks."""

    statistic: float
    p_value: float
    # `statistics` and `p_values`: of each model by itself, not adjusted for the choice among them.
    statistics: tuple[float, ...]
    p_values: tuple[float, ...]
    law: str
    path: Path  # of the model with the largest statistic
    chosen: int  # which model that is
    rows: Rows  # the rows tested, as the path numbers them
    facts: Mapping[str, Any] = field(default_factory=dict)  # how the p-value was found
    # Shape (draws,): the simulated statistics, where there is one law for the whole; else empty.
    peaks: Floats = field(default_factory=lambda: np.zeros(0))
    joint: Joint | None = None  # where the models' largest sum is joined with a mean Bayes factor
    fits: Fits | None = None  # what predicted the rows tested; None where several nulls are joined
    # Where models are fitted again to each draw, the best model's path in the first eight of them; where they are held,
    # none: its path is then that of the verdict.
    drawn: tuple[Drawn, ...] = ()


# ---- Which null, and how many draws ----


def may_hold(q: DetectorInputs) -> bool:
    """Whether the models may be held: the tolerance must exceed the noise of a mean over all rows, or clusters.

    A calibrated model then lies so far within a two-sided tolerance that what the fold models learn of each other's
    rows no longer matters. Nearer to 0, and one-sided, where the null is simulated at the truth itself, it does: with
    100 to 1,000 rows up to 18% of calibrated models were rejected at 10%, and none too many from 0.5 / sqrt(n) on.
    """
    return q.settings.alternative == "two-sided" and q.edge.tolerance * q.clusters**0.5 >= SLACK


def chosen_null(q: DetectorInputs, null: Any) -> str:
    """The null to use: what is asked for, or by guarantee and size."""
    options = choice("null", null, NULLS)
    wide = q.edge.tolerance > 0 and q.settings.alternative == "two-sided"
    if options == "refit" and wide:
        raise BadInput(
            "null='refit' simulates no single law for a two-sided tolerance above 0: pass 'fixed' or 'forward'"
        )
    if options != "auto":
        return options
    if may_hold(q):
        return "fixed"
    # One-sided with a tolerance, the law of a split is that of every model within it, that of repeats of its edge.
    slow = q.n > MANY or (q.n > FEW and (q.edge.tolerance > 0 or _slow(q)))
    return "refit" if q.repeats and not wide and not slow else "split"


def _slow(q: DetectorInputs) -> bool:
    """Whether a refit takes all fits again, not sums alone."""
    return under(q, "refit").pool is not CORNERS


def checked_draws(draws: Any, q: DetectorInputs | None = None, null: str = "fixed") -> int:
    """How many draws to make, by default as many as the null takes for the question."""
    if draws is None:
        if q is None or null != "refit":
            return DRAWS
        return REFITS if _slow(q) else next(d for n, d in BY_ROWS if q.n <= n)
    return check_int("draws", draws, LEAST_DRAWS, hint="such as 999")


def under(q: DetectorInputs, null: str) -> DetectorInputs:
    """The question with the models that a null is for: those of `refit` are fitted by sums alone.

    So are those of `split` where `auto` takes it instead of `refit`, for the many rows.
    """
    s = q.settings
    plain = s.models is None and s.detector == "default" and q.repeats
    sums = null == "refit" or (null == "split" and q.n > MANY and q.edge.tolerance == 0)
    return replace(q, pool=CORNERS) if plain and sums else q


def question_of(q: DetectorInputs, null: Any, draws: Any) -> tuple[DetectorInputs, str, int]:
    """The question with the models of its null, that null, and how many draws it takes: what `verdict_of` decides."""
    used = chosen_null(q, null)
    q = under(q, used)
    return q, used, checked_draws(draws, q, used)


def verdict_of(q: DetectorInputs, null: str, draws: int) -> Verdict:
    """The verdict under one null; the last one on some predictions is remembered with them.

    So the test and what explains it are computed once: the same models, rows and simulated outcomes.
    """
    q = under(q, null)
    s = q.settings
    options = (s.variables, q.pool.identity, s.seed, s.folds, s.tolerance, s.alternative, s.detector, s.min_size)
    key = (*options, null, draws)
    kept = q.memory.get(LAST)
    if kept is None or kept[0] != key:
        # The pool is kept next to it: estimators of the user's are distinguished by where they lie in memory.
        kept = q.memory[LAST] = (key, q.pool, _verdict(q, null, draws))
    result: Verdict = kept[2]
    return result


def _verdict(q: DetectorInputs, null: str, draws: int) -> Verdict:
    if null == "fixed":
        return fixed(detectors_of(q), draws)
    if null == "split":
        return split(halves_of(q), draws)
    if null == "eprocess":
        return eprocess(q)
    return refit(q, draws) if null == "refit" else forward(q, draws)


def law_assumed(q: DetectorInputs) -> str:
    """Say what the null with models held rests on."""
    return LAWS["fixed"] + ("" if may_hold(q) else INFLATED)


def _number(statistic: float) -> float:
    """A statistic, or 0 where no model predicts anything beyond the tolerance."""
    return float(statistic) if np.isfinite(statistic) else 0.0


def _level(statistic: float, null: Floats) -> float:
    return p_value(float(statistic), null) if np.isfinite(statistic) else 1.0


# ---- Models held: outcomes simulated at the edge of the tolerance, for rows in the order of their paths ----


def judged(q: DetectorInputs, paths: Sequence[Path], rows: Rows, draws: int, law: str, salt: int = SALT) -> Verdict:
    """Compare the paths of some rows with outcomes simulated for those rows, models held (Theorem 1).

    Two-sided, one uniform number a row gives its outcome at either edge, and each model takes the edge on its side
    (Theorem 4); that is `simulated`. Clusters keep their scores, with one random sign each.
    """
    result = observed(paths, q.sample.y[rows], q.settings.detector)
    null = q.drawn(paths, rows, draws, salt)
    best = int(np.argmax(result))
    return Verdict(
        statistic=_number(result[best]),
        p_value=_level(result[best], null.max(axis=1)),
        statistics=tuple(_number(v) for v in result),
        p_values=tuple(_level(v, null[:, m]) for m, v in enumerate(result)),
        law=q.law(law),
        path=paths[best],
        chosen=best,
        rows=rows,
        facts={"draws": draws},
        peaks=null.max(axis=1),
    )


def fixed(d: Detectors, draws: int) -> Verdict:
    """Hold the cross-fitted models (Theorems 3 and 4)."""
    return replace(judged(d.question, d.paths, d.rows, draws, law_assumed(d.question)), fits=d.fits)


def split(d: Detectors, draws: int) -> Verdict:
    """Test on one half of the rows what models fitted to the other predict of it (Theorems 1 and 4).

    Where `auto` splits instead of refitting, for many rows or for clusters, products are tested in the same half:
    outcomes of that half alone, or signs of its clusters, are simulated for both, given the models.
    """
    q, rows = d.question, d.rows
    v = replace(judged(q, d.paths, rows, draws, LAWS["split"]), fits=d.fits)
    if len(rows) > MANY:  # a uniform sample, for time
        rows = np.sort(np.random.default_rng([SAMPLED, q.settings.seed]).choice(rows, MANY, replace=False))
    ours = q.settings.models is None and q.settings.detector == "default"
    tested = q.pool is CORNERS or (q.cluster is not None and ours)
    products = Products.chosen(q, rows) if tested else None
    if products is None:
        return v
    scores = products.scores(q, rows, draws, SALT)
    facts = products.facts(q, scores, "products")
    factors = log_factor(scores)
    factors = np.where(np.isfinite(factors), factors, 0.0)  # not finite: no product counts, in any data set
    joint = Joint.of(np.append(v.statistic, v.peaks), factors, **facts)
    return replace(v, p_value=joint.p_value, joint=joint, facts={**v.facts, **joint.facts})


def forward(q: DetectorInputs, draws: int) -> Verdict:
    """Test each block with models fitted to the blocks before it, and join the p-values by Fisher's method.

    Given the blocks before it, each p-value is that of a split: uniform or larger, so that their product is Fisher's.
    """
    from scipy.special import gammaincc

    parts, seen, folds = [], [], q.settings.folds
    for block in range(min(START, folds - 1), folds):
        fitted = q.pool.fitted(q.sample, np.flatnonzero(q.fold < block), q.settings.seed)
        rows = np.flatnonzero(q.fold == block)
        seen.append(predicted(fitted, q.sample, q.pool, rows))
        parts.append(judged(q, q.paths(seen[-1], rows), rows, draws, LAWS["forward"], SALT + block))

    def joined(levels: Sequence[float]) -> tuple[float, float]:
        total = -float(np.log(levels).sum())
        return 2.0 * total, float(gammaincc(len(levels), total))

    statistic, level = joined([v.p_value for v in parts])
    each = [joined([v.p_values[m] for v in parts]) for m in range(len(q.pool.names))]
    best = int(np.argmax([s for s, _ in each]))
    rows = np.concatenate([v.rows for v in parts])
    return replace(
        parts[-1],
        path=q.paths(np.hstack(seen), rows)[best],
        chosen=best,
        rows=rows,
        statistic=statistic,
        p_value=level,
        statistics=tuple(s for s, _ in each),
        p_values=tuple(p for _, p in each),
        facts={"draws": draws, "block_p_values": tuple(v.p_value for v in parts)},
        peaks=np.zeros(0),
    )


# ---- The whole procedure again and again ----


def refit(q: DetectorInputs, most: int) -> Verdict:
    """Repeat the whole procedure on outcomes drawn at the edge, until ten reach the statistic (Besag-Clifford)."""
    refuse_rows(
        q, cluster="repeated fitting is exact for independent rows only, and the data have clusters: use null='fixed'"
    )
    joint = None
    if q.pool is not CORNERS:
        q = replace(q, pool=q.pool.small(REFIT_TREES))
        first, paths, fits = procedure(q)
        null, kept = _again(q, float(first.max()), most)
    else:
        search = Repeats(q, AGAIN)
        first, paths, fits, sums = search.result()
        # A rank among the first few draws is no rank among all: with products every draw is made.
        stop = float(first.max()) if search.products is None and q.stops else np.inf
        null, kept, more = _at_once(search, stop, most)
        if search.products is not None:  # the largest peak is joined with the mean Bayes factor of the same data set
            factors, facts = search.factors(search.products, np.concatenate([sums, more]))
            joint = Joint.of(np.append(first.max(), null.max(axis=1)), factors, **facts)
    # Stopped at the tenth of k draws, 10 / k would keep the level; (1 + reached) / (k + 1), which is never smaller, is
    # at most alpha exactly where the statistic is beyond the critical value of these draws.
    peaks, best = null.max(axis=1), int(np.argmax(first))
    return Verdict(
        statistic=_number(first[best]),
        p_value=_level(first[best], peaks) if joint is None else joint.p_value,
        statistics=tuple(_number(v) for v in first),
        p_values=tuple(_level(v, null[:, m]) for m, v in enumerate(first)),
        law=EXACT + (AT_EDGE if q.edge.tolerance > 0 else ""),
        path=paths[best],
        chosen=best,
        rows=np.arange(q.n),
        facts={"refits": len(null), "at_most": most, "exceedances": EXCEEDANCES, **(joint.facts if joint else {})},
        peaks=peaks,
        joint=joint,
        fits=fits,
        drawn=tuple(kept),
    )


def _again(q: DetectorInputs, statistic: float, most: int) -> tuple[Floats, list[Drawn]]:
    """Repeat the procedure on one draw after the other, whatever the models."""
    null: list[Floats] = []
    kept: list[Drawn] = []
    reached = 0
    while len(null) < most and reached < EXCEEDANCES:
        drawn = drawn_at_edge(q, len(null))
        result, others, _ = procedure(drawn)
        if len(kept) < SHOWN:
            kept.append(_drawn(drawn, others[int(np.argmax(result))]))
        null.append(result)
        reached += int(reaching(statistic, result.max()))
    return np.array(null), kept


def _at_once(search: Repeats, statistic: float, most: int) -> tuple[Floats, list[Drawn], Singles]:
    """Repeat the search on batches of draws, and keep those up to the tenth that reaches the statistic."""
    parts: list[Floats] = []
    sums: list[Singles] = []
    kept: list[Drawn] = []
    reached = 0
    for batch, refits, added in search.simulated(most):
        there = np.flatnonzero(reaching(statistic, batch.max(axis=1)))
        stop = len(batch) if reached + len(there) < EXCEEDANCES else int(there[EXCEEDANCES - reached - 1]) + 1
        parts.append(batch[:stop])
        sums.append(added[:stop])
        if not kept:
            for b in range(min(SHOWN, stop)):
                best = search.path(refits, b, int(np.argmax(batch[b])))
                kept.append(_drawn(search.q.with_outcomes(search.drawn(b)), best))
        reached += len(there)
        if reached >= EXCEEDANCES:
            break
    return np.concatenate(parts), kept, np.concatenate(sums)


def _drawn(q: DetectorInputs, path: Path) -> Drawn:
    return Drawn.of(path, q.sample.y, q.sample.mass_of(np.arange(q.n)))


def drawn_at_edge(q: DetectorInputs, draw: int) -> DetectorInputs:
    """The question of outcomes drawn at the edge of the tolerance, of the side that is looked at."""
    rate = q.edge.low if q.settings.alternative == "less" else q.edge.high
    return q.with_outcomes(outcomes(q.ids, rate, draw, 1, AGAIN)[:, 0])


def procedure(q: DetectorInputs) -> tuple[Floats, tuple[Path, ...], Fits]:
    """Fit, order and sum: everything that depends on the outcomes."""
    g, fitted = cross_fit(q.sample, q.pool, q.fold, q.settings.seed)
    paths = q.paths(g)
    result: Floats = observed(paths, q.sample.y, q.settings.detector)
    return result, paths, Fits(pool=q.pool, fitted=fitted, part=q.fold)


# ---- A test martingale ----


def eprocess(q: DetectorInputs) -> Verdict:
    r"""Bet on each row's outcome with models fitted to earlier blocks.

    A row whose predicted residual lies beyond the tolerance multiplies the wealth by ``(r / t)^y ((1 - r) / (1 - t))^(1
    - y)``, t the rate at the edge and ``r = t + stake x excess`` on the side of the violation: expectation at most one
    under every rate within the tolerance. Wealth is the mean over models and stakes.
    """
    refuse_rows(q, cluster=UNPROVED)
    refuse_rows(q.sample, weights=UNPROVED)
    models = len(q.pool.names)
    total, bets, seen = np.zeros((models, len(BET_SIZES))), [], []
    for block in range(1, q.settings.folds):
        # (1) Models fitted to earlier blocks set the bets on this one before its outcomes are seen.
        fitted = q.pool.fitted(q.sample, np.flatnonzero(q.fold < block), q.settings.seed)
        rows = np.flatnonzero(q.fold == block)
        g = predicted(fitted, q.sample, q.pool, rows)
        # (2) Its outcomes multiply the wealth of each model and stake.
        steps = np.stack([_bets(q, rows, v) for v in g])
        bets.append(total[:, :, None] + np.cumsum(steps, axis=2))
        total = bets[-1][:, :, -1]
        seen.append((g, rows))
    # (3) By Ville's inequality, wealth reaches 1 / alpha at any time with probability at most alpha.
    log = np.concatenate(bets, axis=2).reshape(models * len(BET_SIZES), -1)
    mixed = max(float(_mean_exp(log).max()), 0.0)
    each = [max(float(_mean_exp(v).max()), 0.0) for v in log.reshape(models, len(BET_SIZES), -1)]
    best = int(np.argmax(each))
    tested = np.concatenate([rows for _, rows in seen])
    return Verdict(
        statistic=mixed,
        p_value=float(np.exp(-mixed)),
        statistics=tuple(each),
        p_values=tuple(float(np.exp(-v)) for v in each),
        law=LAWS["eprocess"],
        path=q.paths(np.hstack([g for g, _ in seen]), tested)[best],
        chosen=best,
        rows=tested,
        facts={"bet_sizes": BET_SIZES, "final_log_wealth": float(_mean_exp(log)[-1])},
    )


def _mean_exp(log: Floats) -> Floats:
    """The logarithm of the mean of exponentials over the first axis."""
    top = log.max(axis=0)
    mean: Floats = top + np.log(np.exp(log - top).mean(axis=0))
    return mean


def _bets(q: DetectorInputs, rows: Rows, g: Floats) -> NDArray[np.float64]:
    """The logarithm of what each stake makes of each row, shape (stakes, rows)."""
    edge = q.edge.rows(rows)
    excess, upper = beyond(g, edge, q.settings.alternative)
    t = np.where(upper, edge.high, edge.low)
    live = (excess > 0) & (t > 0) & (t < 1)
    moved = np.where(upper, excess, -excess)[None, :] * np.array(BET_SIZES)[:, None]
    r = np.where(live, np.clip(t + moved, 1e-9, 1.0 - 1e-9), t)  # 1e-9: no bet on certainty, which could lose all
    r = np.where(upper, np.maximum(r, t), np.minimum(r, t))
    with np.errstate(divide="ignore", invalid="ignore"):
        win, loss = np.log(r / t), np.log((1.0 - r) / (1.0 - t))
    return np.where(live, np.where(q.sample.y[rows] > 0, win, loss), 0.0)


# ---- Which outcomes of some rows the test rejects, for plans: its null is simulated once for all ----

Outcomes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class StrongTest:
    """The test with repeated fits, tolerance 0, of rows that have no outcomes yet."""

    search: Repeats
    null: tuple[Floats, ...]  # statistics of the simulated outcomes, rising: peaks, and mean Bayes factors if tested
    least: Floats  # the smaller weighted p-value of each simulated set, rising

    @classmethod
    def of(cls, rows: Predictions, seed: int) -> StrongTest:
        """Simulate the null: outcomes at the scores."""
        q = under(detector_inputs(rows, Settings(seed=seed)), "refit")
        search = Repeats(q, AGAIN)
        draws = checked_draws(None, q, "refit")
        drawn = [_statistics(search, search.outcomes(b, min(LANES, draws - b))) for b in range(0, draws, LANES)]
        null = np.concatenate(drawn, axis=1)
        weights = np.array(WEIGHTS if len(null) > 1 else (1.0,))
        least = np.sort((ranked(null) / weights[:, None]).min(axis=0))
        return cls(search, tuple(np.sort(one) for one in null), least)

    def p_values(self, y: Outcomes) -> Floats:
        """The p-value of each set of outcomes, shape (sets, n), rows in their own order."""
        most = max(VALUES // self.search.q.n // LANES, 1) * LANES  # for memory
        parts = [self._p_values(y[first : first + most]) for first in range(0, len(y), most)]
        return np.concatenate([np.ones(0), *parts])

    def _p_values(self, y: Outcomes) -> Floats:
        draws = len(self.least)
        weights = WEIGHTS if len(self.null) > 1 else (1.0,)
        own = _statistics(self.search, y[:, self.search.order])
        each = [
            (1 + draws - np.searchsorted(null, values * (1.0 - 1e-12), side="left")) / (draws + 1) / weight
            for null, values, weight in zip(self.null, own, weights, strict=True)
        ]
        below = partial(np.searchsorted, self.least, side="right")
        p: Floats = np.asarray((1 + below(np.min(each, axis=0) * (1.0 + 1e-12))) / (draws + 1))
        return p


def _statistics(search: Repeats, y: Outcomes) -> Floats:
    """The models' largest sum, and the mean Bayes factor where products are tested, shape (1 or 2, sets).

    `y` (sets, n): outcomes, rows in the order of the folds.
    """
    y = np.ascontiguousarray(y)
    if search.few:
        batches = [search.of_few(y)]
    else:
        groups = [y[first : first + LANES] for first in range(0, len(y), LANES)]
        batches = [search.of_many(packed(one.T)[:, 0], len(one)) for one in groups]
    peaks = np.concatenate([batch.peaks.max(axis=1) for batch in batches])
    if search.products is None:
        return peaks[None]
    w = search.bars.weight

    def residual(part: slice) -> NDArray[np.float32]:
        return np.asarray((y[:, part].T - search.p[part, None]) * w[part, None], dtype=np.float32)

    scores = search.products.scored(residual, search.p * (1.0 - search.p), w)
    return np.stack([peaks, search.evidence(np.concatenate([batch.sums for batch in batches]), scores)[0]])
