"""Models held against each other on the same rows, for everyone and every group; or audits of different rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.arguments import MASK, PYTHON, Caller, checked, choice, declared, names, refuse, takes, takes_names
from calibrant.audit.record import AuditRecord, Finding
from calibrant.certify.whole import raw_lower, rounded
from calibrant.data.columns import score_values
from calibrant.data.predictions import Predictions, predictions
from calibrant.data.read import in_memory
from calibrant.data.reading import Reading
from calibrant.data.specs.faults import Faults
from calibrant.data.specs.horizon import all_known
from calibrant.data.specs.spec import Spec
from calibrant.decisions.comparison import EVERYONE, Decision, Difference, ModelComparison, decided, least, overall
from calibrant.decisions.terms import Measure, TermOptions, Terms, usual_margin
from calibrant.errors import BadInput, NotComputable
from calibrant.repair.regression import independent, linear
from calibrant.results import Guarantee, Interval
from calibrant.stats import betting
from calibrant.stats.cells import summed
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.decisions import comparison as losses
from calibrant.stats.decisions.comparison import PairedClusters, cluster_areas, row_areas
from calibrant.stats.measures import placements
from calibrant.views.people import assumed, named, people_of, reported
from calibrant.views.points import weights_of
from calibrant.views.population import BY_SCORES, INDEPENDENT
from calibrant.views.sample import keyed, rows_of_groups

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Limits = Callable[[float], tuple[float, float]]  # error probability -> ends, each missed with half of it
GUARANTEE: Guarantee = "finite-sample"  # of every measure
SHUFFLE = 0xC0A1  # stream of random numbers, apart from those of other methods at the same seed
SHARES: Mapping[tuple[bool, bool], Mapping[str, float]] = {  # of alpha, by: are there groups, several thresholds
    (False, False): {"everyone": 1.0},
    (True, False): {"everyone": 0.5, "groups": 0.25, "worst": 0.25},
    (False, True): {"everyone": 0.5, "worst_threshold": 0.5},
    (True, True): {"everyone": 0.25, "worst_threshold": 0.25, "groups": 0.25, "worst": 0.25},
}
OTHERWISE = "take another measure, such as 'brier', or coarser groups"
MEASURE: Measure = "calibration_error"


@takes_names
@takes(TermOptions)
def compare(
    models: object,
    y_true: object = None,
    covariates: object = None,
    *,
    label: str | None = None,
    score: Iterable[str] | None = None,
    by: Iterable[str] | str | None = None,
    weights: ArrayLike | None = None,
    cluster: ArrayLike | Mapping[str, ArrayLike] | None = None,
    positive: object = None,
    reference: str | None = None,
    **terms: Unpack[TermOptions],
) -> ModelComparison:
    r"""Certify whether a model is better, no worse or worse than another on the same rows, for everyone and each group.

    Estimand: ``E[loss(new) - loss(old)]``, of everyone and within each group; with ``target="rows"`` the mean over the
    rows of ``E[loss(new) - loss(old) | scores]``.

    Parameters
    ----------
    models : mapping of str to array-like of shape (n,)
        Probabilities of each model by its name, on the same rows in the same order; the first is the reference. Or two
        or more `AuditRecord`, of different rows: then everything below but `margin` and `reference` is in them. Or
        `Predictions` of the same rows, by name or as two arguments, ``"old"`` and ``"new"``. Or a file or frame that
        `calibrant.read` takes, with `label` and `score`; `weights`, `cluster` and `by` are then columns too.
    y_true : array-like of shape (n,)
        Outcomes.
    label : str, optional
        Of a file or frame: the column of labels.
    score : sequence of str, optional
        Of a file or frame: the columns of probabilities, one for each model.
    covariates, weights, cluster, positive
        As `calibrant.predictions`.
    by : str or sequence of str, optional
        Covariates whose levels are the groups; numbers are binned at round numbers. Groups of fewer than 20 people are
        left out.
    measure : {"brier", "log_loss", "error", "calibration_error", "auroc", "net_benefit"}
        What is lost. "error" is the share called wrongly at a score of 0.5; "auroc" and "net_benefit" are lost where
        they are smaller.
    threshold : float in (0, 1), or several
        Of "net_benefit", and needed there: act where the score is at least this. In true positives a row.
    costs : two positive numbers
        In its place: what it costs to act on a non-event, and not to act on an event; ``(1, 4)`` acts from 0.2 on.
    margin : float from 0, optional
        By how much more a model may lose and still be no worse; fixed before looking at outcomes. By default, of
        "brier" 2% of ``rate * (1 - rate)``, of "log_loss" 2% of the entropy of the rate, each group by its own rate;
        of "auroc", and of audits, 0.005; of others 0.005, or 2% of the share of the rarer outcome where that is less.
    reference : str, optional
        Another than the first model.
    target : {"population", "rows"}
        About future rows like these; or about the rows at hand, given their scores.
    clip : float in (0, 0.5)
        For "log_loss" scores are kept within ``[clip, 1 - clip]``.
    alpha : float in (0, 0.5]
        Probability, at most, that any verdict here is wrong.
    seed : int
        Orders the rows of a population; pilot clusters.

    Returns
    -------
    ModelComparison
        ``verdict``, ``verdicts`` by model, ``differences`` (``.to_frame()``): below 0 the model is better than the
        reference. ``worst``: in no group is it worse by more.

    Raises
    ------
    BadInput
        Fewer than two models, rows that differ, a score that is missing or no probability, a margin below 0; a net
        benefit without a threshold, or a threshold of another measure.
    NotComputable
        The AUROC of rows with one outcome; an AUROC or a calibration error with ``target="rows"``.

    Notes
    -----
    **Assumes.** Independent rows, or clusters, from one distribution (`target="rows"`: outcomes independent given
    scores); models, groups, measure, thresholds and a margin that is named fixed without looking at these
    outcomes.
    **Guarantee.** Finite-sample, of every measure; all verdicts on all models, groups and thresholds together.
    **Method.** Better: the high end is below 0; no worse: at most the margin; worse within margin: that, and the low
    end is above 0; worse: the low end is above the margin. The default margin is made of the rate in the rows: verdicts
    hold with it, for the interval holds the difference whatever the margin.
    Intervals of paired differences by betting (documentation: compare). "calibration_error": the raw score's certified
    low end of one against the certified high end, as shown in whole percent, of the other. "auroc": bets on random
    blocks of events and others that share no row, or no cluster. DeLong's interval is shorter, and is not used: of
    1,000 data sets with few events, a rare reversal, or scores that separate, it called up to 757 wrongly "no worse".
    By clusters its pairs are rows of different clusters. With groups, half of alpha is everyone's, a quarter is shared
    by the groups, and a quarter, unshared, bounds the worst of them. So with several thresholds, which share half of
    what is everyone's.
    **Cost.** Some fifty passes over the rows for each population and threshold.
    **Reads.** Rows.

    References
    ----------
    I. Waudby-Smith, A. Ramdas (2024), doi:10.1093/jrsssb/qkad009. E. DeLong et al. (1988), doi:10.2307/2531595,
    for what is not used. A. J. Vickers, E. B. Elkin (2006), doi:10.1177/0272989X06295361.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.uniform(size=20_000)
    >>> y = rng.uniform(size=20_000) < eta
    >>> found = cal.compare({"old": np.clip(eta + 0.1, 0, 1), "new": eta}, y, margin=0.005)
    >>> found.verdict
    'better'
    """
    of_rows = {"weights": weights, "cluster": cluster, "positive": positive}
    if label is not None or score is not None:
        if y_true is not None or covariates is not None:
            raise BadInput("label= and score= name columns of one file or frame: leave y_true and covariates out")
        columns = {"label": label, "by": by, **of_rows}
        return _of_columns(models, names("score", score, distinct=True), reference, columns, Terms.of(**terms))
    models, y_true = _paired(models, y_true)
    named = _named(models, reference)
    records = {k: v for k, v in named.items() if isinstance(v, AuditRecord)}
    if records:
        if len(records) < len(named) or y_true is not None:
            raise BadInput("audits bring their own rows: pass audit records alone, without y_true or probabilities")
        return audits_compared(records, settled(PYTHON, terms))
    scored = _rows_of(named, y_true, {"covariates": covariates, **of_rows})
    first, *_ = scored.values()
    return compared(first, {name: d.p for name, d in scored.items()}, names("by", by), Terms.of(**terms))


def _paired(models: object, y_true: object) -> tuple[object, object]:
    """The models by name and the outcomes, in whichever order they came; two predictions are the old and the new."""
    if isinstance(models, Predictions) and isinstance(y_true, Predictions):
        return {"old": models, "new": y_true}, None
    return (y_true, models) if isinstance(y_true, Mapping) and not isinstance(models, Mapping) else (models, y_true)


def _rows_of(models: Mapping[str, object], y_true: object, of_rows: Mapping[str, object]) -> dict[str, Predictions]:
    """The rows of each model: predictions as they are, or probabilities with the outcomes."""
    made = {name: d for name, d in models.items() if isinstance(d, Predictions)}
    if made:
        if len(made) < len(models) or any(v is not None for v in (y_true, *of_rows.values())):
            raise BadInput("predictions bring their own rows: pass predictions alone, without what belongs to rows")
        first, *_ = made.values()
        other = next((name for name, d in made.items() if not np.array_equal(first.y, d.y)), None)
        if other is not None:
            raise BadInput(f"model {other!r}: its labels are not those of the first; compare models on the same rows")
        return made
    if y_true is None:
        raise BadInput("name the outcomes: compare({'old': p1, 'new': p2}, y_true)")
    for name, p in models.items():
        try:
            made[name] = predictions(y_true, p, **of_rows)  # type: ignore[arg-type]
        except BadInput as e:
            raise BadInput(f"model {name!r}: {e}") from None
    return made


def _of_columns(
    source: object, models: tuple[str, ...], reference: str | None, columns: Mapping[str, object], options: Terms
) -> ModelComparison:
    """Compare the scores that stand in columns of a source."""
    if len(models) < 2:
        refuse("score", models, "the columns of two models or more, the reference first", "such as ['old', 'new']")
    first = models[0] if reference is None else choice("reference", reference, models)
    others = tuple(m for m in models if m != first)
    reading = Reading.of(score=first, **columns).named()  # type: ignore[arg-type]
    rows = in_memory(source, reading, others)
    return compared(rows, scores_of_columns(rows, others, reading), reading.by, options)


def scores_of_columns(rows: Predictions, others: Iterable[str], reading: Reading) -> dict[str, Floats]:
    """The scores of rows, and those of other models that stand among their covariates, checked alike."""
    scores = {reading.score: rows.p}
    for model in others:
        scores[model] = score_values(rows.covariates.column(model), model, reading.percent)
        faults = Faults(caller=reading.caller)
        faults.see(scores[model], reading.percent)
        faults.note(scores[model])
        of_model = Spec(label=reading.label, score=model, percent=reading.percent)
        faults.check(of_model)
        faults.check_scale(of_model)
    return scores


def _named(models: object, reference: str | None) -> dict[str, object]:
    if not isinstance(models, Mapping) or len(models) < 2 or not all(isinstance(k, str) for k in models):
        raise BadInput("pass two models or more by name: {'old': p1, 'new': p2}")
    if reference is None:
        return dict(models)
    if reference not in models:
        refuse("reference", reference, f"the name of a model: {', '.join(models)}")
    return {reference: models[reference], **models}


def compared(data: Predictions, scores: Mapping[str, Floats], by: tuple[str, ...], options: Terms) -> ModelComparison:
    """Compare scores on the rows of `data`; the first is the reference."""
    data = all_known(data)
    named_groups = rows_of_groups(data, by) if by else ()
    enough = (one for one in named_groups if independent(data, one[1])[1].max(initial=-1) + 1 >= MASK)
    groups = [(keyed(group), np.sort(rows)) for group, rows in enough]
    if by and not groups:
        raise NotComputable(f"no group has {MASK} people: leave by= out")
    reference, *others = scores
    clusters = people_of(data).clusters(options.seed)
    each = ((data, model, scores[reference], scores[model], options, options.alpha / len(others)) for model in others)
    pairs = [Pair(*one) if clusters is None else ClusterPair(*one, clusters) for one in each]
    differences: list[Difference] = []
    worst: dict[str, float] = {}
    verdicts: dict[str, Decision] = {}
    for pair in pairs:
        own, bound = pair.differences(groups)
        differences += own
        verdicts[pair.model] = least(
            overall(everyone.verdict, [d.verdict for d in of_groups])
            for everyone, *of_groups in ([d for d in own if d.threshold == t] for t in options.at)
        )
        if groups:
            worst[pair.model] = bound
    return ModelComparison(
        reference=reference,
        measure=options.measure,
        margin=differences[0].margin,
        differences=tuple(differences),
        worst=worst,
        verdicts=verdicts,
        settings={
            "rows": data.n,
            "groups": len(groups),
            "target": options.target,
            "guarantee": GUARANTEE,
            "assumes": pairs[0].assumes,
            "alpha": options.alpha,
            "shares": SHARES[bool(groups), len(options.at) > 1],
            "margin": "usual" if options.margin is None else "named",
            **({"thresholds": options.thresholds} if options.thresholds else {}),
            **({"clip": options.clip} if options.measure == "log_loss" else {}),
            **pairs[0].of_clusters,
            "seed": options.seed,
        },
    )


@dataclass(frozen=True)
class Seen:
    """What is measured of both models in one population, how much worse the second is, and the limits of that."""

    old: float
    new: float
    worse: float
    limits: Limits


@dataclass(frozen=True)
class Pair:
    """A model against the reference, on independent rows that count alike."""

    data: Predictions
    model: str
    # `old` and `new`, shape (n,): scores of the reference and of the model.
    old: Floats
    new: Floats
    options: Terms
    alpha: float  # the share of this pair

    @property
    def assumes(self) -> str:
        """What is assumed of the rows."""
        return INDEPENDENT if self.options.target == "population" else BY_SCORES.format("rows")

    @property
    def of_clusters(self) -> dict[str, object]:
        """What settings say of clusters."""
        return {}

    def differences(self, groups: list[tuple[str, Rows]]) -> tuple[list[Difference], float]:
        """The differences, each threshold's together and everyone first, and at most what the worst group's is.

        Both ends of every statement of a family hold simultaneously: its alpha is shared. The worst of them is one
        fixed statement, whichever it is, so that its own high end, at the whole of another share, is below the largest
        of them all; and that bounds each.
        """
        share = SHARES[bool(groups), len(self.options.at) > 1]
        everyone = [(EVERYONE, np.arange(self.data.n))]
        whole, _ = self._family(everyone, self.data.n, share["everyone"], share.get("worst_threshold", 0.0))
        of_groups, bound = self._family(groups, None, share.get("groups", 0.0), share.get("worst", 0.0))
        results = [*whole, *of_groups]
        return [d for t in self.options.at for d in results if d.threshold == t], bound

    def _family(
        self, people: list[tuple[str, Rows]], count: int | None, shared: float, unshared: float
    ) -> tuple[list[Difference], float]:
        """The differences of some populations at every threshold, and what none of them is above."""
        results = [(who, rows, t, self.seen(rows, t)) for t in self.options.at for who, rows in people]
        bound = (
            max((s.limits(2.0 * self.alpha * unshared)[1] for *_, s in results), default=np.inf) if unshared else np.inf
        )
        reported = []
        for who, rows, t, s in results:
            margin = self.options.margin_at(float(np.average(self.data.y[rows], weights=weights_of(self.data)[rows])))
            low, high = s.limits(self.alpha * shared / len(results))
            high = min(high, max(bound, s.worse))
            one = Difference(
                model=self.model,
                population=who,
                rows=count or 5 * round(len(rows) / 5),
                reference=s.old,
                value=s.new,
                difference=s.worse,
                interval=Interval(low=low, high=high, level=1.0 - self.options.alpha, guarantee=GUARANTEE),
                margin=margin,
                verdict=decided(low, high, margin),
                threshold=t,
            )
            reported.append(one)
        return reported, bound

    def seen(self, rows: Rows, threshold: float | None) -> Seen:
        if self.options.measure == "auroc":
            return self._areas(rows)
        if self.options.measure == "calibration_error":
            return self._calibration(rows)
        return self._losses(rows, threshold)

    def _losses(self, rows: Rows, threshold: float | None) -> Seen:
        y, w = self.data.y[rows], weights_of(self.data)[rows]
        ends = [self.options.losses(p[rows], threshold) for p in (self.old, self.new)]
        old, new = (float(np.average(np.where(y == 1, one, zero), weights=w)) for zero, one in ends)
        if self.options.target == "rows":
            limits = self._of_rows(rows, ends)
        else:
            limits = self._of_population(rows, ends, self.options.reach(threshold))
        return Seen(old, new, new - old, limits) if threshold is None else Seen(0.0 - old, 0.0 - new, new - old, limits)

    def _of_rows(self, rows: Rows, ends: list[losses.Ends]) -> Limits:
        """Limits of the mean over these rows, given their scores: a row adds one of two known numbers."""
        (zero, one), (new_zero, new_one) = ends
        rate = 0.5 * (self.old + self.new)[rows]
        return partial(betting.mean_limits, linear(self.data, rows, rate, (new_zero - zero, new_one - one)))

    def _of_population(self, rows: Rows, ends: list[losses.Ends], reach: float) -> Limits:
        """Limits of the population's mean, by clusters in a random order."""
        y = self.data.y[rows]
        (zero, one), (new_zero, new_one) = ends
        d = np.where(y == 1, new_one - one, new_zero - zero)
        value, size, most = self._sums(rows, d)
        order = np.random.default_rng([self.options.seed, SHUFFLE]).permutation(len(value))
        return PairedClusters(value[order], size[order], reach, most).limits

    def _sums(self, _rows: Rows, d: Floats) -> tuple[Floats, Floats, float]:
        """Values of some rows by cluster, the clusters' sizes and the largest size: each row is one."""
        return d, np.ones(len(d)), 1.0

    def _areas(self, rows: Rows) -> Seen:
        y = self.data.y[rows]
        if not 0 < int(y.sum()) < len(y):
            whose = "the rows have" if len(rows) == self.data.n else "a group has"
            raise NotComputable(f"{whose} one outcome only, and no AUROC: {OTHERWISE}")
        scores, event, weight = (self.old[rows], self.new[rows]), y == 1, weights_of(self.data)[rows]
        old, new = (placements(p, event, weight)[0] for p in scores)
        rng = np.random.default_rng([self.options.seed, SHUFFLE])
        return Seen(old, new, old - new, self._ranked(rows, scores, event, rng).limits)

    def _ranked(
        self, _rows: Rows, scores: tuple[Floats, Floats], event: NDArray[np.bool_], rng: np.random.Generator
    ) -> PairedClusters:
        """Blocks of some rows, in which pairs are ranked."""
        return row_areas(scores, event, rng)

    def _calibration(self, rows: Rows) -> Seen:
        some = replace(self.data, covariates=None).part(rows)
        old, new = (replace(some, p=np.array(p[rows]), cache={}) for p in (self.old, self.new))
        seed = self.options.seed
        at = [rounded(d, seed=seed).value for d in (old, new)]

        def limits(delta: float) -> tuple[float, float]:
            # Two ends make each end of the difference: four, each with a quarter.
            low, high = zip(
                *(
                    (
                        raw_lower(d, alpha=delta / 4, seed=seed).low,
                        rounded(d, alpha=delta / 4, side="upper", seed=seed).high,
                    )
                    for d in (old, new)
                ),
                strict=True,
            )
            return low[1] - high[0], high[1] - low[0]

        return Seen(at[0], at[1], at[1] - at[0], limits)


@dataclass(frozen=True)
class ClusterPair(Pair):
    """The same on clusters, or on rows that count more or less."""

    clusters: Clusters

    @property
    def assumes(self) -> str:
        whole, own = assumed(self.clusters), self.clusters
        if self.options.target == "population":
            return whole
        _, *more = whole.split(", ", 1)
        return ", ".join((BY_SCORES.format("clusters" if len(own.cluster) > own.count else "rows"), *more))

    @property
    def of_clusters(self) -> dict[str, object]:
        if self.options.target == "population":
            return reported(self.clusters)
        return named(self.clusters.columns) | {"clusters": self.clusters.count}  # about these rows none is a pilot

    def _sums(self, rows: Rows, d: Floats) -> tuple[Floats, Floats, float]:
        own = self.clusters.of_rows(rows)  # rows ascend, so that those of `d` are its own
        value = summed(own.cluster, own.weight * d, own.count)[own.certified]
        if not len(value):
            raise NotComputable("a group has pilot clusters only: name fewer groups")
        return value, own.size[own.certified], own.largest

    def _ranked(
        self, rows: Rows, scores: tuple[Floats, Floats], event: NDArray[np.bool_], rng: np.random.Generator
    ) -> PairedClusters:
        own = self.clusters.of_rows(rows)
        some = own.certified[own.cluster]  # pilot clusters have fixed M
        if some.any():
            cluster = np.unique(own.cluster[some], return_inverse=True)[1].reshape(-1)
            kept = scores[0][some], scores[1][some]
            result = cluster_areas(kept, event[some], own.weight[some], cluster, own.largest, rng)
            if result.size.any():
                return result
        raise NotComputable(f"no two clusters have an event and another between them: {OTHERWISE}")


# ---- Audits of different rows: the difference of their certified ranges ----


def settled(caller: Caller, terms: Mapping[str, object]) -> float:
    """Refuse what audits have settled when they were made, and would else be passed over; return the margin."""
    usual = {name: (it.default, MEASURE) for name, (_, it) in declared(TermOptions).items() if name != "margin"}
    if stated := [name for name in usual if terms[name] not in usual[name]]:
        raise BadInput(f"audits have their own alpha and certify calibration errors: leave {caller.says(*stated)} out")
    margin = checked(TermOptions, {"margin": terms["margin"]}, caller)["margin"]
    return usual_margin(MEASURE) if margin is None else float(margin)


def audits_compared(records: Mapping[str, AuditRecord], margin: float) -> ModelComparison:
    """Compare the calibration errors that audits certified; the first is the reference.

    In an audit each end of everyone's range fails with probability at most its alpha, and of all groups' ranges any end
    does. So of everyone's differences each end fails with probability at most the sum of the audits' alphas, and either
    end with twice that; of all groups' any end with the sum (union bound), whether or not rows are shared.
    """
    reference, *others = records
    old = records[reference]
    differences: list[Difference] = []
    verdicts, unmatched = {}, {}
    spent = sum(float(r.settings["alpha"]) for r in records.values())
    of_everyone, of_groups = max(1.0 - 2.0 * spent, 0.0), max(1.0 - spent, 0.0)
    for model in others:
        new = records[model]
        everyone = _difference(model, EVERYONE, (old.everyone, new.everyone), of_everyone, margin)
        before, now = _groups_of(old), _groups_of(new)
        both = [name for name in now if name in before]
        groups = [_difference(model, name, (before[name], now[name]), of_groups, margin) for name in both]
        unmatched[model] = tuple(sorted(before.keys() ^ now.keys()))
        differences += [everyone, *groups]
        verdicts[model] = overall(everyone.verdict, [d.verdict for d in groups])
    return ModelComparison(
        reference=reference,
        measure=MEASURE,
        margin=margin,
        differences=tuple(differences),
        verdicts=verdicts,
        settings={
            "audits": {name: r.name for name, r in records.items()},
            "rows": {name: r.everyone.rows for name, r in records.items()},
            "each_end": of_groups,
            "alphas": {name: r.settings["alpha"] for name, r in records.items()},
            "mask": {name: r.settings.get("mask", MASK) for name, r in records.items()},
            "publish": {name: r.settings.get("publish", True) for name, r in records.items()},
            "guarantee": "finite-sample",
            "assumes": "what each audit assumes, of its own rows",
            "unmatched": unmatched,
        },
    )


def _groups_of(record: AuditRecord) -> dict[str, Finding]:
    """The groups by name; pooled values are not the same people in two audits."""
    return {keyed(f.variables): f for f in record.groups if not f.pooled}


def _difference(model: str, name: str, pair: tuple[Finding, Finding], level: float, margin: float) -> Difference:
    old, new = pair
    low = new.lower.interval.low - old.upper.interval.high
    high = new.upper.interval.high - old.lower.interval.low
    return Difference(
        model=model,
        population=name,
        rows=new.rows,
        reference=old.error.value,
        value=new.error.value,
        difference=new.error.value - old.error.value,
        interval=Interval(low=low, high=high, level=level, guarantee="finite-sample"),
        margin=margin,
        verdict=decided(low, high, margin),
    )
