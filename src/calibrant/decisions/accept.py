"""Accept above a threshold: the largest share that may pass while errors in it stay under a rate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.arguments import MASK, checked_alpha, checked_seed, choice, names, number
from calibrant.data.calls import takes_arrays
from calibrant.data.columns import as_float, is_number
from calibrant.data.layouts import decoded
from calibrant.data.predictions import MulticlassPredictions, Predictions, checked_data
from calibrant.data.profile import FEW, TOP_LEVELS
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.survey import no_attributes
from calibrant.errors import BadInput
from calibrant.results import Estimate, Interval
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.decisions import acceptance
from calibrant.stats.decisions.acceptance import ClusterRanking, Ranking
from calibrant.views.points import weights_of
from calibrant.views.population import INDEPENDENT
from calibrant.views.sample import (
    assumed,
    cluster_totals,
    grouped_sketch,
    keyed,
    named_groups,
    reported,
    rows_of_groups,
    sketch_of,
)

End = Literal["high", "low"]
Target = Literal["population", "rows"]
Accepted = Mapping[str, float | int | None]  # of everyone or a group, as `settings` tell it
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
    results = {p.name: p.accepted(options, options.alpha / len(parts)) for p in parts}
    weight = {p.name: p.weight / sum(q.weight for q in parts) for p in parts}
    low = sum(weight[name] * float(f["share"] or 0.0) for name, f in results.items())
    value = sum(weight[p.name] * p.plausible(options.risk) for p in parts)
    return Estimate(
        method="certify.accept",
        value=max(value, low),
        unit="probability",
        n=sum(p.ranking.n for p in parts),
        interval=Interval(low=low, high=1.0, level=1.0 - options.alpha, guarantee="finite-sample"),
        assumes=parts[0].assumes,
        settings={
            "about": _about(options, len(parts), parts[0].clusters is not None),
            "risk": options.risk,
            "end": options.end,
            "target": options.target,
            "thresholds": "all" if parts[0].clusters is None else "pilot clusters",
            "groups": results,
            "pool": pooled(data, parts[0], results, options),
            **(reported(parts[0].clusters) if parts[0].clusters is not None and len(parts) == 1 else {}),
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
    """Return data of two outcomes; of several classes whether the most probable one is right, and which it is."""
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


class Passed(NamedTuple):
    """What passes a threshold: rows, how many of them are wrong, and their share, weighted where rows are."""

    rows: int
    wrong: int
    share: float


@dataclass(frozen=True)
class Part:
    """Rows that have a threshold of their own."""

    name: str
    ranking: Ranking  # of all rows, as counts
    weight: float  # of all rows
    clusters: Clusters | None = None  # where rows are not independent or do not count alike

    @property
    def assumes(self) -> str:
        """What is interpreted as granted."""
        return INDEPENDENT if self.clusters is None else assumed(self.clusters)

    def ranked_clusters(self, highest: bool) -> ClusterRanking | None:
        """The thresholds of clusters; None of independent rows."""
        u = self.clusters
        return None if u is None else ClusterRanking.of(u, highest)

    def plausible(self, risk: float) -> float:
        """The largest share whose observed rate is within."""
        within = self.ranking.wrong <= risk * self.ranking.rows
        at = int(np.nonzero(within)[0].max(initial=-1))
        return float(self.ranking.rows[at]) / self.ranking.n if at >= 0 else 0.0

    def accepted(self, options: AcceptOptions, alpha: float) -> Accepted:
        """Return what is accepted at the certified threshold, for the settings of the result."""
        by_clusters = self.ranked_clusters(options.highest)
        if by_clusters is None:
            threshold, certified = self._by_rows(options, alpha)
            fewest: int | None = acceptance.fewest(options.risk, alpha)
        else:
            fewest = None
            at = by_clusters.deepest(options.risk, alpha)
            threshold = float(by_clusters.threshold[at]) if at >= 0 else None
            certified = options.risk if threshold is not None else None
        passed = self.down_to(threshold, options.highest)
        return {
            "rows": self.ranking.n,
            "threshold": threshold,
            "accepted": passed.rows,
            "share": passed.share,
            "wrong": passed.wrong,
            "rate": passed.wrong / passed.rows if passed.rows else None,
            "certified_rate": certified,
            "fewest": fewest,
        }

    def _by_rows(self, options: AcceptOptions, alpha: float) -> tuple[float | None, float | None]:
        ranking = self.ranking
        at = acceptance.deepest(ranking, options.risk, alpha)
        if at < 0:
            return None, None
        if options.target == "population":  # evidence holds for the one rate that was fixed beforehand
            return float(ranking.threshold[at]), options.risk
        one = Ranking(ranking.threshold[[at]], ranking.rows[[at]], ranking.wrong[[at]])
        return float(ranking.threshold[at]), float(acceptance.highest_rate(one, alpha)[0])

    def down_to(self, threshold: float | None, highest: bool) -> Passed:
        """Return what passes a threshold, of all rows; None is passed by nobody."""
        if threshold is None:
            return Passed(0, 0, 0.0)
        past = self.ranking.threshold >= threshold if highest else self.ranking.threshold <= threshold
        at = int(np.count_nonzero(past)) - 1
        if at < 0:
            return Passed(0, 0, 0.0)
        rows, wrong, share = int(self.ranking.rows[at]), int(self.ranking.wrong[at]), 0.0
        if self.clusters is None:
            share = rows / self.ranking.n
        else:
            passed = self.clusters.p >= threshold if highest else self.clusters.p <= threshold
            share = float(self.clusters.input_weights[passed].sum() / self.clusters.input_weights.sum())
        return Passed(rows, wrong, share)


def pooled(
    data: Predictions | Sketch, everyone: Part, results: Mapping[str, Accepted], options: AcceptOptions
) -> dict[str, object]:
    """What settings tell of groups in the pool: none where groups have thresholds, or no rows are at hand."""
    at = results[everyone.name]["threshold"]
    if everyone.name != EVERYONE or not isinstance(data, Predictions) or at is None:
        return not_looked_at()
    ranked = everyone.ranked_clusters(options.highest)
    choices = 1 if ranked is None else len(ranked.threshold)
    t = Threshold(float(at), options.highest, options.risk, options.alpha, choices)
    return above_risk(data, t, everyone.clusters, options.seed, options.allow)


def parts_of(data: Predictions | Sketch, by: tuple[str, ...], options: AcceptOptions) -> Iterator[Part]:
    """Yield everyone, or each group that has rows."""
    inputs = checked_data(data, Predictions, Sketch)
    if isinstance(inputs, Sketch) and inputs.by_clusters:
        inputs = inputs.rows()
    if isinstance(inputs, Sketch):
        yield from _sketched(inputs, by, options)
        return
    clusters = cluster_totals(inputs, options.seed)
    everyone = [(EVERYONE, np.arange(inputs.n))]
    for name, rows in ((keyed(g), r) for g, r in rows_of_groups(inputs, by)) if by else everyone:
        yield _part(name, inputs, rows, clusters, options)


def _part(
    name: str, data: Predictions, rows: NDArray[np.intp], clusters: Clusters | None, options: AcceptOptions
) -> Part:
    wrong = data.y[rows] == (0 if options.highest else 1)
    weight = float(weights_of(data)[rows].sum())
    of = None if clusters is None else clusters.of_rows(rows)
    return Part(name, Ranking.of(data.p[rows], wrong, options.highest), weight, of)


def _sketched(sketch: Sketch, by: tuple[str, ...], options: AcceptOptions) -> Iterator[Part]:
    """Yield the parts of a sketch, whose cells are ties; a cell is accepted as a whole."""
    if not by:
        yield _cells(EVERYONE, sketch_of(sketch, options.seed).cells[..., :2].sum(axis=0), options)
        return
    full_sketch = grouped_sketch(sketch, by, False, options.seed)
    for group, index in named_groups(full_sketch):
        yield _cells(keyed(group), full_sketch.group_cells[index][..., :2].sum(axis=0), options)


def _cells(name: str, counts: NDArray[np.int64], options: AcceptOptions) -> Part:
    """Rank cells: the threshold of a cell is its end that is passed last."""
    cells = len(counts)
    edge = np.arange(cells) / cells if options.highest else np.nextafter(np.arange(1, cells + 1) / cells, 0.0)
    edge = np.where(edge >= np.nextafter(1.0, 0.0), 1.0, edge)  # the last cell holds a score of 1
    wrong = counts[:, 0] if options.highest else counts[:, 1]
    order = np.arange(cells)[::-1] if options.highest else np.arange(cells)
    ranking = Ranking.of_counts(edge[order], counts.sum(axis=1)[order], wrong[order])
    return Part(name, ranking, float(ranking.n))


def _about(options: AcceptOptions, groups: int, by_clusters: bool) -> str:
    """Say what is accepted."""
    which = "scores from the highest down" if options.highest else "scores from the lowest up"
    of = f", a threshold for each of {groups} groups" if groups > 1 else ""
    here = "these rows but those of pilot clusters" if by_clusters else "these rows"
    whose = "future rows like these" if options.target == "population" else f"{here}, given their scores"
    return f"{which}{of}; {whose}"


# ---- groups that one threshold for everyone hides ----


@dataclass(frozen=True)
class Threshold:
    """Which rows of everyone are accepted, and what was asked for."""

    at: float
    highest: bool  # the highest scores are accepted, or the lowest
    risk: float
    alpha: float
    choices: int  # thresholds of clusters, one of which this is

    def passing(self, p: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which scores pass, the threshold's own among them."""
        return p >= self.at if self.highest else p <= self.at


def not_looked_at() -> dict[str, object]:
    """What settings tell where no groups were looked at."""
    return {"columns": (), "left_out": (), "groups": 0, "above_risk": {}, "by": ()}


def above_risk(
    data: Predictions, t: Threshold, clusters: Clusters | None, seed: int, allow: Sequence[str] = ()
) -> dict[str, object]:
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
    known = tuple(name for name in no_attributes(data, seed, allow) if name in columns)
    # The groups that are large enough to be shown.
    groups = {keyed(g): (c, r) for c in columns for g, r in rows_of_groups(data, (c,)) if len(r) >= MASK}
    above = dict[str, dict[str, float | int]]()
    for name, (column, rows) in groups.items():
        if column in known:
            continue
        inside = rows[t.passing(data.p[rows])]
        wrong = int(np.count_nonzero(data.y[inside] == (0 if t.highest else 1)))
        if len(inside) >= MASK and _evidence_above(rows, inside, wrong, clusters, t) >= np.log(len(groups) / t.alpha):
            above[name] = {"accepted": len(inside), "wrong": wrong, "rate": wrong / len(inside)}
    looked = tuple(c for c in columns if c not in known)
    return {
        "columns": looked,
        "left_out": known,
        "groups": sum(c not in known for c, _ in groups.values()),
        "above_risk": dict(sorted(above.items(), key=lambda g: -g[1]["rate"])),
        "by": tuple(dict.fromkeys(groups[name][0] for name in above)),
    }


def _evidence_above(
    rows: NDArray[np.intp], inside: NDArray[np.intp], wrong: int, clusters: Clusters | None, t: Threshold
) -> float:
    """The log e-value against "at most `risk` of the group's accepted rows are wrong", at every threshold."""
    if clusters is None:
        return float(acceptance.log_evidence_above(len(inside), wrong, t.risk))
    ranked = ClusterRanking.of(clusters.of_rows(rows), t.highest)
    return ranked.log_evidence_above(t.at, t.risk) - float(np.log(t.choices))


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
