"""Accept above a threshold: the largest share that may pass while errors in it stay under a rate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, TypeVar, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.arguments import MASK, checked_alpha, checked_seed, choice, names, number
from calibrant.data.calls import takes_arrays
from calibrant.data.columns import as_float, is_number
from calibrant.data.layouts import decoded
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.profile import FEW, TOP_LEVELS
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.survey import no_attributes
from calibrant.errors import BadInput
from calibrant.results import Estimate, Interval
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.decisions import acceptance
from calibrant.stats.decisions.acceptance import ClusterRanking, Ranking
from calibrant.views.kinds import ByKind
from calibrant.views.people import assumed, people_of, reported
from calibrant.views.points import weights_of
from calibrant.views.population import INDEPENDENT
from calibrant.views.sample import grouped_sketch, keyed, named_groups, rows_of_groups, sketch_of

End = Literal["high", "low"]
Target = Literal["population", "rows"]
Accepted = Mapping[str, float | int | None]  # of everyone or a group, as `settings` tell it
Row = tuple[str | float | int, ...]  # of a curve
POWER = 0.8
EVERYONE = "everyone"
CLASS = "class"  # the predicted class, as a group


@takes_arrays
def accept(
    data: Predictions | MulticlassPredictions | Sketch,
    *,
    risk: float = 0.01,
    by: Iterable[str] | str | None = None,
    end: End = "high",
    target: Target = "population",
    alpha: float = 0.05,
    seed: int = 0,
) -> Estimate:
    r"""Certify the largest share that may be accepted with errors among it at most at a rate: `P(wrong | accepted)`.

    Estimand: the largest share ``P(score >= t)`` over thresholds t with ``P(Y = 0 | score >= t) <= risk``; with
    ``end="low"`` the largest ``P(score <= t)`` with ``P(Y = 1 | score <= t) <= risk``. With `by` a threshold for each
    group, and the rate holds in every one.

    Parameters
    ----------
    data : Predictions, MulticlassPredictions or Sketch
        Labels say whether an answer was right (``end="high"``), or who had the event (``end="low"``: passed as none).
        Of several classes the most probable one is the answer, its probability the score, and ``by="class"`` makes a
        group of each predicted class.
    risk : float in (0, 1)
        Largest acceptable share of wrong rows among those accepted.
    by : str or sequence of str, optional
        Covariates whose levels are the groups; several make groups of each. Numbers are binned at round numbers.
    end : {"high", "low"}
        Which scores are accepted: the highest, of which outcome 0 is wrong, or the lowest, of which outcome 1 is.
    target : {"population", "rows"}
        About future rows like these; or about the rows at hand, given their scores: of clusters those that certify,
        with the weights that they certify by.
    alpha : float in (0, 0.5]
        Probability, at most, that the rate among what is accepted is above `risk`, in any group.
    seed : int
        Draws pilot clusters.

    Returns
    -------
    Estimate
        ``interval.low`` is the certified share, 0 if none; its other end is trivial. ``value`` is the largest share
        whose observed rate is within, which is optimistic. Larger is better. ``settings["groups"]`` has for each group,
        or for ``"everyone"``: ``rows``, ``threshold`` (accept from this score on; None for nobody), ``accepted`` rows,
        ``share``, ``wrong`` among them, ``rate``, ``certified_rate`` (at most this: `risk` itself; of independent rows
        at hand the least rate that holds at all thresholds at once), and ``fewest``, the accepted rows that it would
        take without a single error; None of clusters. ``settings["thresholds"]`` states at which the rate holds:
        ``"all"``, or those that ``"pilot clusters"`` chose. ``settings["pool"]``, without `by`, lists the groups of
        covariates in which one threshold for everyone fails: ``columns`` and how many ``groups`` were looked at,
        ``left_out`` columns that reproduce the outcome, ``above_risk`` by group (``accepted``, ``wrong``, ``rate``),
        and the columns to pass as ``by``.

    Notes
    -----
    **Assumes.** Independent rows, or clusters, from one distribution (`target="rows"`: outcomes independent given the
    scores, or those of different clusters, however unlike); groups named, and `risk` and `end` chosen, without looking
    at outcomes. Nothing about how errors follow the score.
    **Guarantee.** Finite-sample, for the `risk` that was fixed beforehand. With `by`, all groups together. Of
    independent rows at all thresholds at once: the threshold may be chosen after looking, and any other that
    `diagnose.acceptance_curve` shows within the risk may be taken in its place. Of clusters at the thresholds that
    pilot clusters chose: the curve spends another alpha. Of the rows at hand (`target="rows"`) every rate holds,
    whatever the risk asked for. A group of the pool is reported as above the risk wrongly with probability at most
    `alpha`, of all groups and at all thresholds together; it is about the rows at hand. Silence promises nothing,
    `by` does.
    **Method.** Rows in the order of the score, ties together: ``E_k = sum_j pi_j (1 - theta_j)^(wrong among k) (1 -
    theta_j risk)^(-k)``, accept down to the last k with ``E_k >= 1 / alpha``. All rows certify, of the population too
    (documentation: accept). Groups share alpha equally.
    Data with ``cluster=`` or ``weights=``: thresholds chosen by pilot clusters and tested in a fixed sequence, a factor
    a cluster.
    **Cost.** Sorting the rows; of clusters, fifty sums over them.
    **Reads.** Rows; or a sketch, whose cells (``2^14`` for everyone, ``2^10`` for groups) are then the thresholds.

    References
    ----------
    J. Ville (1939), for the inequality. W. Hoeffding (1956), doi:10.1214/aoms/1177728178. The theorems are proved in
    the documentation; selective classification: Y. Geifman, R. El-Yaniv (2017), arXiv:1705.08500.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(0.5, 1.0, 20_000)
    >>> right = rng.uniform(size=20_000) < confidence
    >>> found = cal.certify.accept(cal.predictions(right, confidence), risk=0.1)
    >>> 0.3 < found.low < 0.4, found.settings["groups"]["everyone"]["threshold"] < 0.85
    (True, True)
    """
    options = AcceptOptions.of(risk, end, target, alpha, seed)
    return accepted(answers(data, names("by", by), options), names("by", by), options)


def accepted(data: Predictions | Sketch, by: tuple[str, ...], options: AcceptOptions) -> Estimate:
    """Accept, as was asked for."""
    parts = list(parts_of(data, by, options))
    results = {p.name: p.accepted(options.alpha / len(parts)) for p in parts}
    weight = {p.name: p.weight / sum(q.weight for q in parts) for p in parts}
    low = sum(weight[name] * float(f["share"] or 0.0) for name, f in results.items())
    value = sum(weight[p.name] * p.plausible for p in parts)
    about = "scores from the highest down" if options.highest else "scores from the lowest up"
    if len(parts) > 1:
        about += f", a threshold for each of {len(parts)} groups"
    of_population = options.target == "population"
    about += "; future rows like these" if of_population else f"; {parts[0].here}, given their scores"
    return Estimate(
        method="certify.accept",
        value=max(value, low),
        unit="probability",
        n=sum(p.ranking.n for p in parts),
        interval=Interval(low=low, high=1.0, level=1.0 - options.alpha, guarantee="finite-sample"),
        assumes=parts[0].assumes,
        settings={
            "about": about,
            "risk": options.risk,
            "end": options.end,
            "target": options.target,
            "thresholds": parts[0].thresholds,
            "groups": results,
            "pool": pooled(data, parts[0], results, options),
            **(parts[0].reported if len(parts) == 1 else {}),
            "delta": options.alpha / len(parts),
            "seed": options.seed,
        },
    )


def rows_to_accept(
    *, risk: float = 0.01, error: float, share: float = 1.0, power: float = POWER, alpha: float = 0.05
) -> Estimate:
    """Plan how many rows it takes to certify that a share may be accepted.

    Estimand: the least n at which `accept` certifies the best ``share`` of n rows with probability `power`, if `error`
    is the rate of errors among them.

    Parameters
    ----------
    risk : float in (0, 1)
        As of `accept`.
    error : float in [0, risk)
        The rate of errors expected among the accepted.
    share : float in (0, 1]
        Of all rows, that is to be accepted.
    power : float in (0, 1)
    alpha : float in (0, 0.5]
        Of several groups, the share of each: ``0.05 / 12`` for twelve.

    Returns
    -------
    Estimate
        ``value`` in rows; the interval runs from what fixing the threshold beforehand would take (Clopper-Pearson) to
        ``value``. ``settings["accepted"]`` are the rows accepted among them.

    Notes
    -----
    **Assumes.** Independent rows with one rate of errors.
    **Guarantee.** A plan, exact for the event at that depth, of both targets; thresholds before it only help.
    **Method.** Exact binomial tails of `E_k`, by bisection.
    **Cost.** Milliseconds. **Reads.** Nothing.

    References
    ----------
    As `accept`.

    Examples
    --------
    >>> import calibrant as cal
    >>> plan = cal.certify.rows_to_accept(risk=0.02, error=0.01, share=0.6)
    >>> 3000 < plan.value < 3500
    True
    """
    risk, alpha = number("risk", risk, above=0, below=1, hint="such as 0.01"), checked_alpha(alpha)
    power = number("power", power, above=0, below=1)
    error = number("error", error, least=0.0, below=risk, what="the rate expected among the accepted")
    part = number("share", share, above=0.0, most=1.0)
    accepted = acceptance.rows_needed(risk, error, power, alpha)
    rows = int(np.ceil(accepted / part))
    fixed = int(np.ceil(acceptance.fixed_needed(risk, error, power, alpha) / part))
    return Estimate(
        method="certify.rows_to_accept",
        value=float(rows),
        unit="rows",
        n=0,
        interval=Interval(low=float(min(fixed, rows)), high=float(rows), level=power, guarantee="finite-sample"),
        assumes="independent rows with one rate of errors among the accepted",
        settings={
            "risk": risk,
            "error": error,
            "share": part,
            "power": power,
            "alpha": alpha,
            "accepted": accepted,
            "threshold_fixed_beforehand": fixed,
        },
    )


# ---- what is ranked: everyone, or each group ----


Data = TypeVar("Data", Predictions, Predictions | Sketch)


def answers(data: MulticlassPredictions | Data, by: tuple[str, ...], options: AcceptOptions) -> Predictions | Data:
    """Data of two outcomes; of several classes whether the most probable one is right, and which it is."""
    if not isinstance(data, MulticlassPredictions):
        return data
    if not options.highest:
        raise BadInput("end='low' is for two classes: of several the most probable one is accepted, by end='high'")
    table = pa.table({}) if data.covariates is None else data.covariates
    if CLASS in table.schema.names:
        if CLASS in by:
            raise BadInput(f"by={CLASS!r} is the predicted class, and a covariate has that name: rename the column")
        return data.top_label()
    columns = {name: table.column(name) for name in table.schema.names}
    predicted = pa.array([data.name_of(k) for k in data.predicted.tolist()])
    return replace(data.top_label(), covariates=pa.table({**columns, CLASS: predicted}), cache={})


@dataclass(frozen=True)
class AcceptOptions:
    """What `accept` was asked, checked."""

    risk: float
    end: End
    target: Target
    alpha: float
    seed: int
    allow: tuple[str, ...] = ()  # columns to look at in the pool, though they reproduce the outcome

    @classmethod
    def of(cls, risk: float, end: End, target: Target, alpha: float, seed: int) -> AcceptOptions:
        """Check what was asked."""
        return cls(
            number("risk", risk, above=0, below=1, hint="such as 0.01"),
            choice("end", end, get_args(End)),
            choice("target", target, get_args(Target)),
            checked_alpha(alpha),
            checked_seed(seed),
        )

    @property
    def highest(self) -> bool:
        """The highest scores are accepted."""
        return self.end == "high"

    @property
    def wrong(self) -> int:
        """The outcome that is wrong among the accepted."""
        return 0 if self.highest else 1

    def passing(self, scores: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
        """Which scores pass a threshold, its own among them."""
        return scores >= threshold if self.highest else scores <= threshold


class Passed(NamedTuple):
    """What passes a threshold: rows, how many of them are wrong, and their share, weighted where rows are."""

    rows: int
    wrong: int
    share: float


@dataclass(frozen=True)
class Part:
    """Independent rows that count alike, with a threshold of their own."""

    name: str
    ranking: Ranking  # of all rows, as counts
    weight: float  # of all rows
    options: AcceptOptions
    # At which thresholds rates hold, and the rows at hand that a rate may be about.
    thresholds, here = "all", "these rows"

    @property
    def assumes(self) -> str:
        """What is assumed."""
        return INDEPENDENT

    @property
    def reported(self) -> dict[str, object]:
        """What settings tell of clusters."""
        return {}

    @property
    def plausible(self) -> float:
        """The largest share whose observed rate is within."""
        within = self.ranking.wrong <= self.options.risk * self.ranking.rows
        at = int(np.nonzero(within)[0].max(initial=-1))
        return float(self.ranking.rows[at]) / self.ranking.n if at >= 0 else 0.0

    def accepted(self, alpha: float) -> Accepted:
        """What is accepted at the certified threshold, for the settings of the result."""
        threshold, certified = self.certified(alpha)
        passed = self.down_to(threshold)
        return {
            "rows": self.ranking.n,
            "threshold": threshold,
            "accepted": passed.rows,
            "share": passed.share,
            "wrong": passed.wrong,
            "rate": passed.wrong / passed.rows if passed.rows else None,
            "certified_rate": certified,
            "fewest": self.fewest(alpha),
        }

    def certified(self, alpha: float) -> tuple[float | None, float | None]:
        """The last threshold that is certified, and the rate that is; None for none."""
        ranking, options = self.ranking, self.options
        at = acceptance.deepest(ranking, options.risk, alpha)
        if at < 0:
            return None, None
        if options.target == "population":  # evidence holds for the one rate that was fixed beforehand
            return float(ranking.threshold[at]), options.risk
        one = Ranking(ranking.threshold[[at]], ranking.rows[[at]], ranking.wrong[[at]])
        return float(ranking.threshold[at]), float(acceptance.highest_rate(one, alpha)[0])

    def fewest(self, alpha: float) -> int | None:
        """How many accepted rows it takes without a single error; None where that is not known."""
        return acceptance.fewest(self.options.risk, alpha)

    def down_to(self, threshold: float | None) -> Passed:
        """What passes a threshold, of all rows; None is passed by nobody."""
        if threshold is None:
            return Passed(0, 0, 0.0)
        at = int(np.count_nonzero(self.options.passing(self.ranking.threshold, threshold))) - 1
        if at < 0:
            return Passed(0, 0, 0.0)
        rows, wrong = int(self.ranking.rows[at]), int(self.ranking.wrong[at])
        return Passed(rows, wrong, rows / self.ranking.n)

    def log_evidence_above(self, _t: float, _rows: NDArray[np.intp], accepted: int, wrong: int) -> float:
        """The log e-value against "at most `risk` of a group's accepted rows are wrong", at every threshold."""
        return float(acceptance.log_evidence_above(accepted, wrong, self.options.risk))

    @property
    def rates(self) -> tuple[float, ...]:
        """The rates of a curve, which share alpha; none where all hold."""
        of_population = self.options.target == "population"
        return tuple(map(float, acceptance.rates(self.options.risk))) if of_population else ()

    def curve(self, alpha: float, points: int) -> Iterator[Row]:
        """Yield the lines of `diagnose.acceptance_curve`."""
        ranking = self.ranking
        # A share's threshold is the first one that passes as many rows; scores alone choose it.
        at = np.unique(np.searchsorted(ranking.rows, np.arange(1, points + 1) / points * ranking.n))
        kept = Ranking(ranking.threshold[at], ranking.rows[at], ranking.wrong[at])
        if self.options.target == "population":
            high = acceptance.highest_of_rates(kept, self.options.risk, alpha)
        else:
            high = acceptance.highest_rate(kept, alpha)
        alone = acceptance.clopper_pearson(kept.rows, kept.wrong, alpha)
        for i, (rows, wrong) in enumerate(zip(kept.rows.tolist(), kept.wrong.tolist(), strict=True)):
            reported = (rows / ranking.n, float(kept.threshold[i]), rows, wrong, wrong / rows)
            yield (self.name, *reported, float(high[i]), float(alone[i]))

    def others(self, alpha: float) -> tuple[float | None, float | None]:
        """The shares that a fixed sequence of Clopper-Pearson tests accepts, and that picking by them would."""
        ranking, risk = self.ranking, self.options.risk
        passed = acceptance.sequence(ranking, risk, alpha)
        picked = np.nonzero(acceptance.clopper_pearson(ranking.rows, ranking.wrong, alpha) <= risk)[0]
        shares = ranking.rows / ranking.n
        return float(shares[passed]) if passed >= 0 else 0.0, float(shares[picked.max()]) if len(picked) else 0.0


@dataclass(frozen=True)
class ClusterPart(Part):
    """The same of clusters, or of rows that do not count alike: pilot clusters choose the thresholds."""

    clusters: Clusters
    thresholds, here, rates = "pilot clusters", "these rows but those of pilot clusters", ()

    @property
    def assumes(self) -> str:
        return assumed(self.clusters)

    @property
    def reported(self) -> dict[str, object]:
        return reported(self.clusters)

    @cached_property
    def ranked(self) -> ClusterRanking:
        """The thresholds."""
        return ClusterRanking.of(self.clusters, self.options.highest)

    def certified(self, alpha: float) -> tuple[float | None, float | None]:
        at = self.ranked.deepest(self.options.risk, alpha)
        return (float(self.ranked.threshold[at]), self.options.risk) if at >= 0 else (None, None)

    def fewest(self, _: float) -> None:
        return None

    def down_to(self, threshold: float | None) -> Passed:
        passed = super().down_to(threshold)
        if threshold is None or not passed.rows:
            return passed
        weights = self.clusters.input_weights
        own = weights[self.options.passing(self.clusters.p, threshold)]
        return passed._replace(share=float(own.sum() / weights.sum()))

    def log_evidence_above(self, t: float, rows: NDArray[np.intp], _accepted: int, _wrong: int) -> float:
        group = ClusterRanking.of(self.clusters.of_rows(rows), self.options.highest)
        return group.log_evidence_above(t, self.options.risk) - float(np.log(len(self.ranked.threshold)))

    def curve(self, alpha: float, _: int) -> Iterator[Row]:
        shared = alpha / max(len(self.ranked.threshold), 1)
        for t in map(float, self.ranked.threshold):
            rows, wrong, share = self.down_to(t)
            if rows:
                high, alone = (self.ranked.highest_rate(t, each) for each in (shared, alpha))
                yield self.name, share, t, rows, wrong, wrong / rows, high, alone

    def others(self, _: float) -> tuple[None, None]:
        return None, None


def pooled(
    data: Predictions | Sketch, everyone: Part, results: Mapping[str, Accepted], options: AcceptOptions
) -> dict[str, object]:
    """What settings tell of groups in the pool: none where groups have thresholds, or no rows are at hand."""
    at = results[everyone.name]["threshold"]
    if everyone.name != EVERYONE or not isinstance(data, Predictions) or at is None:
        return not_looked_at()
    return above_risk(data, everyone, float(at), options)


def _of_rows(data: Predictions, by: tuple[str, ...], options: AcceptOptions) -> Iterator[Part]:
    clusters = people_of(data).clusters(options.seed)
    weights = weights_of(data)
    everyone = [(EVERYONE, np.arange(data.n))]
    for name, rows in ((keyed(g), r) for g, r in rows_of_groups(data, by)) if by else everyone:
        ranking = Ranking.of(data.p[rows], data.y[rows] == options.wrong, options.highest)
        part = name, ranking, float(weights[rows].sum()), options
        yield Part(*part) if clusters is None else ClusterPart(*part, clusters.of_rows(rows))


def _of_cells(sketch: Sketch, by: tuple[str, ...], options: AcceptOptions) -> Iterator[Part]:
    """Yield the parts of a sketch, whose cells are ties; a cell is accepted as a whole."""
    if not by:
        yield _cells(EVERYONE, sketch_of(sketch, options.seed).cells[..., :2].sum(axis=0), options)
        return
    full_sketch = grouped_sketch(sketch, by, False, options.seed)
    for group, index in named_groups(full_sketch):
        yield _cells(keyed(group), full_sketch.group_cells[index][..., :2].sum(axis=0), options)


# Everyone, or each group that has rows.
parts_of = ByKind(rows=_of_rows, counts=_of_cells)


def _cells(name: str, counts: NDArray[np.int64], options: AcceptOptions) -> Part:
    """Rank cells: the threshold of a cell is its end that is passed last."""
    cells = len(counts)
    edge = np.arange(cells) / cells if options.highest else np.nextafter(np.arange(1, cells + 1) / cells, 0.0)
    edge = np.where(edge >= np.nextafter(1.0, 0.0), 1.0, edge)  # the last cell holds a score of 1
    order = np.arange(cells)[::-1] if options.highest else np.arange(cells)
    ranking = Ranking.of_counts(edge[order], counts.sum(axis=1)[order], counts[order, options.wrong])
    return Part(name, ranking, float(ranking.n), options)


# ---- groups that one threshold for everyone hides ----


def not_looked_at() -> dict[str, object]:
    """What settings tell where no groups were looked at."""
    return {"columns": (), "left_out": (), "groups": 0, "above_risk": {}, "by": ()}


def above_risk(data: Predictions, everyone: Part, threshold: float, options: AcceptOptions) -> dict[str, object]:
    """What settings tell of the groups in the pool: which were looked at, and which are above the risk.

    A group is above it if its own evidence at this threshold is ``G / alpha`` or more, of G groups. The evidence holds
    at all thresholds at once, so that this one may have been chosen by outcomes. Shares of alpha are equal, and not
    Holm's: which groups are within the risk changes from threshold to threshold, and Holm's second step would need one
    set of them. Columns that reproduce the outcome, or follow from the score, are counted and left out, but
    for those of `allow`.
    """
    columns = tuple(_columns(data))
    if not columns:
        return not_looked_at()
    known = tuple(name for name in no_attributes(data, options.seed, options.allow) if name in columns)
    # The groups that are large enough to be shown.
    groups = {keyed(g): (c, r) for c in columns for g, r in rows_of_groups(data, (c,)) if len(r) >= MASK}
    above = dict[str, dict[str, float | int]]()
    for name, (column, rows) in groups.items():
        if column in known:
            continue
        inside = rows[options.passing(data.p[rows], threshold)]
        accepted, wrong = len(inside), int(np.count_nonzero(data.y[inside] == options.wrong))
        evidence = everyone.log_evidence_above(threshold, rows, accepted, wrong) if accepted >= MASK else -np.inf
        if evidence >= np.log(len(groups) / options.alpha):
            above[name] = {"accepted": accepted, "wrong": wrong, "rate": wrong / accepted}
    looked = tuple(c for c in columns if c not in known)
    return {
        "columns": looked,
        "left_out": known,
        "groups": sum(c not in known for c, _ in groups.values()),
        "above_risk": dict(sorted(above.items(), key=lambda g: -g[1]["rate"])),
        "by": tuple(dict.fromkeys(groups[name][0] for name in above)),
    }


def _columns(data: Predictions) -> Iterator[str]:
    """Yield the covariates that name groups: texts and truth values of few levels, and numbers of few values."""
    table = pa.table({}) if data.covariates is None else data.covariates
    for name in dict.fromkeys(table.column_names):
        t = table.schema.field(name).type
        t = t.value_type if pa.types.is_dictionary(t) else t
        texts = pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_boolean(t)
        if texts or is_number(t):
            levels = pc.unique(decoded(table.column(name), name)).drop_null()
            finite = texts or bool(np.isfinite(as_float(levels, name, "covariate")).all())
            if 1 < len(levels) <= (TOP_LEVELS if texts else FEW) and finite:
                yield name
