"""What probabilities in place of labels say about the events: means and gaps."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_alpha, choice, flag, shown
from calibrant.data.calls import takes_arrays
from calibrant.data.columns import as_text, is_number
from calibrant.data.layouts import is_date
from calibrant.data.predictions import Predictions, codes_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Estimate, Interval
from calibrant.stats.measures import (
    Inferred,
    Quantity,
    Sums,
    SumsByCluster,
    inferred_gap_of,
    inferred_mean_of,
    mean_of_events_limits,
)
from calibrant.stats.strata import MISSING
from calibrant.views.by_variable import checked_rows, covariate, finite_values, strata_of
from calibrant.views.kinds import ByKind
from calibrant.views.points import IN_CLUSTERS, assumed, weights_of
from calibrant.views.population import INDEPENDENT

Floats = NDArray[np.float64]

# ---- From rows or a sketch to what inference from probabilities reads: sums, and the values of one variable ----

CLUSTERED = "independent clusters of rows"
SEARCHED = 1_000  # names at most among which one like that asked for is looked for
BETS = "of these rows, given scores and covariates: e-values of bets that read no outcome"
DELTA = "delta method, Wald, with the larger of the sandwich and the model variance"


@dataclass(frozen=True)
class Inferring:
    """Sums of entries, and the value of one variable in each."""

    name: str
    sums: Sums
    x: Floats | None  # shape (m,): numbers or dates (days since 1970), NaN where missing; None for a category
    single: NDArray[np.bool_]  # shape (m,): the entry holds one value only, and not a range of them
    code: NDArray[np.int32]  # shape (m,): index of the level; of a category
    labels: tuple[str, ...]  # names of the levels, that of missing values among them if there are any
    # `n` and `missing`: rows, and rows without a value.
    n: int
    missing: int
    reads: str
    assumes: str
    weighted: bool
    date: bool

    def at(self, level: object) -> NDArray[np.bool_]:
        """Which entries are at a level; refuse a level that does not occur."""
        if self.x is not None:
            return self._number_at(self.x, level)
        wanted = str(level).lower() if isinstance(level, (bool, np.bool_)) else str(level)
        if wanted not in self.labels:
            searched = self.labels if len(self.labels) <= SEARCHED else ()
            near = difflib.get_close_matches(wanted, searched, n=1, cutoff=0.5)
            there = f"there are: {', '.join(map(repr, self.labels[:12]))}"
            hint = f"did you mean {near[0]!r}?" if near else there
            raise BadInput(f"level={shown(level)} does not occur in {self.name!r}; {hint}")
        return np.equal(self.code, self.labels.index(wanted))

    def _number_at(self, x: Floats, level: object) -> NDArray[np.bool_]:
        if level == MISSING and self.missing:
            return np.isnan(x)
        if self.date:
            hint = "inferred_mean without level describes its mean, and text such as the year has levels"
            raise BadInput(f"covariate {self.name!r} is a date, which has no level but 'missing': {hint}")
        try:
            result = np.equal(x, float(level))  # type: ignore[arg-type]  # what is no number is refused below
        except (TypeError, ValueError):
            raise BadInput(f"level={shown(level)}: {self.name!r} is a number; pass one of its values") from None
        if not self.single.all():
            raise NotComputable(f"the sketch keeps ranges of {self.name!r} and not each value: pass rows")
        if not result.any():
            raise BadInput(f"level={shown(level)} does not occur in {self.name!r}: pass one of its values")
        return result

    def estimate(
        self,
        method: str,
        result: Inferred,
        quantity: Quantity,
        alpha: float,
        span: tuple[float, float],
        unit: str,
        **settings: Any,
    ) -> Estimate:
        """Wrap what was found, with its large-sample interval."""
        low, high = result.ends(alpha, span)
        return Estimate(
            method=f"measure.{method}",
            value=result.value,
            unit=unit,
            n=settings.pop("n", self.n),
            interval=Interval(low=low, high=high, level=1.0 - alpha, guarantee="asymptotic"),
            assumes=self.assumes,
            settings={
                "variable": self.name,
                "quantity": quantity,
                "inferred": result.inferred,
                "observed": result.observed,
                "bias": result.inferred - result.observed,
                "error": result.error,
                "freedom": result.freedom,
                "missing": self.missing,
                "reads": self.reads,
                "weights": self.weighted,
                "interval": DELTA,
                **settings,
            },
        )


def _of_rows(data: Predictions, variable: str) -> Inferring:
    rows = checked_rows(data)
    column = covariate(rows, variable)
    date = is_date(column.type)
    x: Floats | None = None
    labels: tuple[str, ...] = ()
    if date or is_number(column.type):
        x = finite_values(column, variable)
        code, missing = np.zeros(rows.n, dtype=np.int32), int(np.isnan(x).sum())
    else:
        code, labels, missing = _coded(column, variable)
    return Inferring(
        name=variable,
        sums=_row_sums(rows),
        x=x,
        single=np.ones(rows.n, dtype=np.bool_),
        code=code,
        labels=labels,
        n=rows.n,
        missing=missing,
        reads="rows",
        assumes=CLUSTERED if assumed(rows).startswith(IN_CLUSTERS) else assumed(rows),
        weighted=rows.weights is not None,
        date=date,
    )


def _row_sums(rows: Predictions) -> Sums:
    one = np.ones(rows.n)
    y = rows.y.astype(np.float64)
    sums = one, rows.p, y, rows.p**2, rows.p * y, weights_of(rows)
    if rows.cluster is None:
        return Sums(*sums)
    return SumsByCluster(*sums, codes_of(rows))


def _coded(column: Any, name: str) -> tuple[NDArray[np.int32], tuple[str, ...], int]:
    """The level of each row, the levels' names, and how many rows have none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    t = column.type
    if pa.types.is_null(t):
        return np.zeros(len(column), dtype=np.int32), (MISSING,), len(column)
    if not (pa.types.is_string(t) or pa.types.is_boolean(t)):
        raise BadInput(f"covariate {name!r} holds {t}: use text, numbers, dates or booleans")
    coded = pc.dictionary_encode(as_text(column))
    levels = tuple(coded.dictionary.to_pylist())
    code = coded.indices.fill_null(len(levels)).to_numpy(zero_copy_only=False)
    missing = coded.null_count
    named = f"({MISSING})" if MISSING in levels else MISSING
    return code, (*levels, named) if missing else levels, missing


def _of_sketch(sketch: Sketch, variable: str) -> Inferring:
    strata = strata_of(sketch, variable)
    square = strata.score - strata.noise
    both = (strata.events + square - strata.resid2) / 2.0
    sums = Sums(strata.rows, strata.score, strata.events, square, both, np.ones(strata.size))
    return Inferring(
        name=variable,
        sums=sums,
        x=strata.x if strata.ordered else None,
        single=np.isnan(strata.x) | (strata.low == strata.high),
        code=np.arange(strata.size, dtype=np.int32),
        labels=strata.labels or (),
        n=strata.n,
        missing=int(strata.rows[-1]) if strata.missing else 0,
        reads="the sketch's cells by the variable",
        assumes=INDEPENDENT,
        weighted=False,
        date=strata.date,
    )


# Sums and values along one covariate, from rows or from a sketch's cells.
inferring = ByKind(rows=_of_rows, sketches=_of_sketch)


# ---- The mean of a covariate among the people with the event, inferred from probabilities ----


@takes_arrays
def inferred_mean(
    data: Predictions | Sketch,
    variable: str,
    *,
    level: object = None,
    quantity: Quantity = "bias",
    alpha: float = 0.05,
    guaranteed: bool = False,
) -> Estimate:
    r"""Mean of a covariate among the people with the event, inferred from probabilities in place of labels: its bias.

    Estimand: ``E[p I] / E[p] - E[Y I] / E[Y]``, the inferred mean less the true one, where I is the covariate, or 1 at
    `level` and 0 elsewhere; in the covariate's unit (days for a date), or in probability units with `level`. With
    ``quantity="inferred"`` the first term, with ``"observed"`` the second, ``E[I | Y = 1]``.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights and clusters are used.
    variable : str
        A covariate: a number or a date, or with `level` a category too.
    level : str, number or bool, optional
        Describe by the share of people at this value. Needed for a category; ``"missing"`` for missing values.
    quantity : {"bias", "inferred", "observed"}
        What the value and its interval are about.
    alpha : float in (0, 0.5]
    guaranteed : bool
        Report the range that holds at this number of rows, of these rows: ``sum p I / sum p - sum r I / sum r`` with r
        the probability of the event that each row has, given its score and covariates.

    Returns
    -------
    Estimate
        A bias of 0 is best; above 0 the people with the event look to have more of the covariate than they have.
        Settings hold ``inferred``, ``observed`` and ``bias``, the standard error ``error`` of the value with its
        degrees of ``freedom``, and ``missing``, the rows without a value.

    Raises
    ------
    BadInput
        No such variable or level, a category without `level`, or a setting out of range.
    NotComputable
        Fewer than two rows (or clusters), or with uneven weights fewer than two effective ones, have an event, or a
        probability above zero; or the covariate has one value only among rows that have either. With `guaranteed`,
        clusters of two columns that cross.

    Notes
    -----
    **Assumes.** Independent rows (or clusters), or rows sampled with known weights.
    **Guarantee.** Asymptotic in the number of events, or of clusters: see Coverage. The bias is zero if the model is
    locally calibrated on the covariate; the converse does not hold. With `guaranteed`: finite-sample, whatever the
    model and the covariate; a value far from all others widens the range.
    **Method.** Equation 1 of the paper with p for ``P(Y = 1 | x)``, over the empirical distribution of the rows. The
    paper judges the bias by 200 refitted models; here it has the delta method's variance, in which p, Y and both
    denominators are random together, or if larger the one expected of outcomes with probability ``min(r p, 1)``, r
    being events over events expected, about the mean that these would give. Student's t with the effective number of
    events, or of clusters that hold them, less one. **Missing values:** without `level` the mean is among people whose
    value is known, in both terms, and `n` counts them; with `level` they are people elsewhere. **Coverage.** Bias 0.93
    to 1.00 in seven designs at 200 and 2,000 rows (400 samples each); of the inferred value 0.915 and more, but 0.77 at
    200 rows where a few large probabilities decide. See docs/measures.md. **Cost.** One pass over the rows: 0.06 s for
    280,000. **Reads.** Rows, or the sketch's cells by the variable: a number of many values is read at each cell's
    mean.

    References
    ----------
    Vashistha and Farahi, "I-trustworthy models: a framework for trustworthiness evaluation of probabilistic
    classifiers", AISTATS 2025, arXiv:2501.15617. The weighted estimator: Chen, Kallus, Mao, Svacha and Udell, "Fairness
    under unawareness", FAT* 2019, arXiv:1811.11154.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.predictions([0, 1, 0, 1], [0.25, 0.75, 0.5, 0.5], {"age": [20, 30, 50, 60]})
    >>> found = cal.measure.inferred_mean(data, "age")
    >>> found.settings["inferred"], found.settings["observed"], found.value
    (41.25, 45.0, -3.75)
    """
    checked_alpha(alpha)
    wanted = checked_quantity(quantity)
    if not flag("guaranteed", guaranteed):
        return described(inferring(data, variable), level, wanted, alpha)
    if wanted == "inferred":
        raise BadInput("quantity='inferred' with guaranteed=True: of these rows it is known, without a range")
    if getattr(data, "crossing", None) is not None:
        raise NotComputable("no proof covers rows that depend through two columns of clusters: name one in cluster=")
    return described(inferring(data, variable), level, wanted, alpha, guaranteed=True)


def described(q: Inferring, level: object, wanted: Quantity, alpha: float, *, guaranteed: bool = False) -> Estimate:
    """The mean of a covariate, or the share at a level, among the events."""
    if level is None:
        x, kept = _numbers(q)
        span, unit = (-np.inf, np.inf), ""
    else:
        x, kept = q.at(level).astype(np.float64), np.ones(len(q.code), dtype=np.bool_)
        span, unit = (-1.0 if wanted == "bias" else 0.0, 1.0), "probability"
    sums = q.sums.of(kept)
    reported = x[(sums.score > 0) | (sums.events > 0)]
    if len(reported) and (reported == reported[0]).all():
        where = "" if len(reported) == len(x) else " where p or y is above zero"
        raise NotComputable(f"{q.name!r} has one value only{where}, so that nothing is inferred about it")
    result = inferred_mean_of(sums, x, wanted)
    named = {"level": None if level is None else str(level)}
    estimate = q.estimate(
        "inferred_mean",
        result,
        wanted,
        alpha,
        span,
        unit,
        n=int(sums.rows.sum()),
        events=int(sums.events.sum()),
        clusters=sums.clusters,
        **named,
    )
    if not guaranteed:
        return estimate
    # Limits of the mean among the events, or those of the bias that follow.
    s, (low, high) = estimate.settings, mean_of_events_limits(sums, x, alpha)
    if s["quantity"] == "bias":
        low, high = s["inferred"] - high, s["inferred"] - low
    exact = replace(estimate.interval, low=low, high=high, guarantee="finite-sample")
    return replace(estimate, interval=exact, settings={**s, "interval": BETS})


def checked_quantity(quantity: Quantity) -> Quantity:
    """The quantity asked for; refuse any other."""
    return choice("quantity", quantity, get_args(Quantity))


def _numbers(q: Inferring) -> tuple[Floats, NDArray[np.bool_]]:
    """The values there are, and where."""
    if q.x is None:
        raise BadInput(f"covariate {q.name!r} is a category: pass level=, such as level={q.labels[0]!r}")
    kept = ~np.isnan(q.x)
    if not kept.any():
        raise NotComputable(f"{q.name!r} has no values")
    return q.x[kept], kept


# ---- The gap in event rates between groups, inferred from probabilities ----


@takes_arrays
def inferred_gap(
    data: Predictions | Sketch,
    variable: str,
    level: object,
    *,
    reference: object = None,
    quantity: Quantity = "bias",
    alpha: float = 0.05,
) -> Estimate:
    r"""Gap of event rates between a group and the others, inferred from probabilities in place of labels: its bias.

    Estimand: ``(E[p | G] - E[p | R]) - (E[Y | G] - E[Y | R])``, where G are the people at `level` and R everyone else,
    or those at `reference`; in probability units. With ``quantity="inferred"`` the first difference, with
    ``"observed"`` the second.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights and clusters are used.
    variable : str
        A covariate: a category, or a number with values that come again.
    level : str, number or bool
        The group; ``"missing"`` for missing values.
    reference : str, number or bool, optional
        Whom the group is compared with; by default everyone else, people without a value among them.
    quantity : {"bias", "inferred", "observed"}
        What the value and its interval are about.
    alpha : float in (0, 0.5]

    Returns
    -------
    Estimate
        A bias of 0 is best; above 0 the group's rate looks higher than it is next to that of the others. Settings hold
        ``inferred``, ``observed`` and ``bias``, the standard error ``error`` of the value with its degrees of
        ``freedom``, and the rows of both.

    Raises
    ------
    BadInput
        No such variable or level, `reference` is `level`, or a setting out of range.
    NotComputable
        Either group has fewer than two rows (or clusters), or with uneven weights fewer than two effective ones; or,
        but for ``quantity="inferred"``, there is a non-event or no row without the event.

    Notes
    -----
    **Assumes.** Independent rows (or clusters), or rows sampled with known weights.
    **Guarantee.** Asymptotic in the rows of the smaller group, or in the number of clusters: see Coverage. The bias is
    zero if the model is calibrated in both groups, or off by the same in both.
    **Method.** The ownership gap of the paper's Figure 2. The variance is that of the residuals ``p - Y`` in each group
    (of p or Y for the other quantities), or if larger the one expected of outcomes with probability ``min(r p, 1)``, r
    being events over events expected in both groups, about the rates that these would give: so it is not zero where one
    group has a non-event. Student's t with the effective rows (or clusters) of the group that has fewer, less one.
    **Coverage.** Bias 0.93 to 1.00, means and shares included, in seven designs at 200 and 2,000 rows (400 samples
    each). See docs/measures.md. **Cost.** One pass over the rows: 0.08 s for 280,000. **Reads.** Rows, or the sketch's
    cells along the variable.

    References
    ----------
    Vashistha and Farahi, "I-trustworthy models: a framework for trustworthiness evaluation of probabilistic
    classifiers", AISTATS 2025, arXiv:2501.15617.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.predictions([0, 1, 1, 1], [0.25, 0.75, 0.5, 0.75], {"town": ["a", "a", "b", "b"]})
    >>> found = cal.measure.inferred_gap(data, "town", "b")
    >>> found.settings["inferred"], found.settings["observed"], found.value
    (0.125, 0.5, -0.375)
    """
    checked_alpha(alpha)
    return compared(inferring(data, variable), level, reference, checked_quantity(quantity), alpha)


def compared(q: Inferring, level: object, reference: object, wanted: Quantity, alpha: float) -> Estimate:
    """The gap between a level and another, or all others."""
    group = q.at(level)
    other = ~group if reference is None else q.at(reference)
    if (group & other).any():
        raise BadInput(
            f"reference={shown(reference)} is the level itself: pass another, or leave it out for everyone else"
        )
    rows = [int(q.sums.rows[mask].sum()) for mask in (group, other)]
    kept = group | other
    sums = q.sums.of(kept)
    result = inferred_gap_of(sums, group[kept], other[kept], wanted)
    named = {"level": str(level), "reference": None if reference is None else str(reference)}
    return q.estimate(
        "inferred_gap",
        result,
        wanted,
        alpha,
        (-1.0, 1.0),
        "probability",
        n=sum(rows),
        rows=tuple(rows),
        clusters=sums.clusters,
        **named,
    )
