"""Weights that make rows look like a named population: post-stratification, raking, or a classifier's odds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant import Predictions
from calibrant.apps.population.classifier import Learner, fitted_odds, odds
from calibrant.apps.population.margins import Margin, MarginsInput, Pool, factors, features, joint, leveled, margin
from calibrant.apps.population.weighting import Balance, Weighting, capped, effective, levels_balance, mean_balance
from calibrant.arguments import checked_seed, names, number, shown
from calibrant.errors import BadInput
from calibrant.toolkit.data import Floats, Source, as_covariates, open_source, require, takes_arrays, weights_of

Method = Literal["cells", "rake", "classifier"]
METHODS = ("cells", "rake", "classifier")
AUTO: Literal["auto"] = "auto"
CAP = 20.0  # times the mean: of a classifier's odds, whose largest say most about the classifier
LEAST = 30  # pilot rows
Rows = NDArray[np.bool_]


@takes_arrays
def to(
    data: object,
    target: object,
    *,
    columns: Iterable[str] | str | None = None,
    method: Method | None = None,
    cap: float | Literal["auto"] | None = AUTO,
    target_weights: str | None = None,
    pool: Pool | None = None,
    leave_out: bool = False,
    pilot: float = 0.0,
    learner: Learner = "logistic",
    folds: int = 5,
    seed: int = 0,
) -> Weighting:
    """Weights that make the audited rows look like a named population, without a label.

    ``w(x) = (population's share of x) / (rows' share of x)``, times the weights that the data have already.

    Parameters
    ----------
    data : Predictions, or what `calibrant.read` takes as a frame or path
        Of which covariates, weights and clusters are read; labels and scores never.
    target : mapping, frame, or path
        *Margins*: by column (or tuple of columns, for a joint table) a mapping of level (or tuple of levels) to share
        or count. Or *rows* of the population, with the same columns.
    columns : str or sequence of str
        Of rows: what is made alike. Margins name theirs.
    method : {"cells", "rake", "classifier"}, optional
        Of rows: post-stratified over every combination of levels (the default), raked to the margin of each column, or
        weighted by the odds of a classifier that separates the population from the rows. Margins are raked; one alone
        is post-stratified. Numbers of more than 12 values are binned at round numbers, but not for the classifier.
    cap : float above 1, or None, or "auto"
        Largest weight, in multiples of the mean: of the pilot rows' weights, where there are pilot rows. "auto": 20 for
        the classifier, none otherwise. A cap changes the target, and the result says so.
    target_weights : str, optional
        Column of the population's rows: how many people each stands for.
    pool : mapping, optional
        By column, levels to count as another: ``{"region": {"Guam": "West"}}``.
    leave_out : bool
        Levels of the population that no row has are refused; with True they are left out of it, and named.
    pilot : float
        Share of the rows (clusters, where rows have them) that the weights are learnt on and that then leave; 0 for all
        rows, which stay.
    learner : {"logistic", "trees"}
        The classifier: see `odds`.
    folds : int
        Without pilot rows, each row has the odds of a classifier that has not seen its fold.
    seed : int
        Deals pilot rows and folds.

    Returns
    -------
    Weighting
        ``found.of(data)`` is the data with these weights.

    Raises
    ------
    BadInput
        A column or level does not fit, or the population has levels that no row has.
    NotComputable
        Margins contradict one another; no weights stay under the cap.

    Notes
    -----
    **Assumes.** Outcomes, given these columns and the score, are as in the audited rows (covariate shift). No data can
    show that they are.
    **Guarantee.** Of the certificates on ``found.of(data)``: with pilot rows, all of them for the population that the
    weights make, given the weights. Without, the upper end for these very weights and covariates; the others as
    simulated. See `docs/clusters.md`.
    **Method.** Post-stratification; iterative proportional fitting (Deming and Stephan 1940) until every share is
    within 1e-10; odds of membership, classes of equal weight, cross-fitted (Bickel et al. 2009).
    **Reads.** Rows.

    References
    ----------
    W. E. Deming, F. F. Stephan (1940), doi:10.1214/aoms/1177731829. S. Bickel, M. Brückner, T. Scheffer (2009),
    Discriminative learning under covariate shift, JMLR 10, 2137-2155.

    Examples
    --------
    >>> import calibrant as cal
    >>> d = cal.predictions([0, 1, 0, 1], [.2, .8, .3, .6], {"sex": ["F", "F", "F", "M"]})
    >>> cal.weights.to(d, {"sex": {"F": 50, "M": 50}}).weights.round(3)
    array([0.667, 0.667, 0.667, 2.   ])
    """
    options = _WeightingOptions.of(columns, method, cap, {} if pool is None else pool, leave_out)
    pilot = number("pilot", pilot, least=0.0, below=1.0)
    sides = _Sides.of(data, target, options, target_weights)
    on = _pilots(sides, pilot, checked_seed(seed))
    if options.method == "classifier":
        return _classified(sides, options, on, _Learnt(learner, folds, seed))
    return _fitted(sides, options, on)


# ---- what was asked, and the two sides ----


@dataclass(frozen=True)
class Covariates:
    """Rows without labels and scores: what weights are made of."""

    covariates: pa.Table
    weights: Floats | None = None
    cluster: NDArray[np.generic] | None = None


def columns_of(target: object) -> tuple[str, ...]:
    """The columns that margins name."""
    return tuple(dict.fromkeys(c for key, _ in _passed(target) for c in key))


@dataclass(frozen=True)
class _WeightingOptions:
    columns: tuple[str, ...]
    method: str
    cap: float | None
    pool: Pool
    leave_out: bool
    chosen: bool = True  # the method was

    @classmethod
    def of(cls, columns: object, method: object, cap: object, pool: Pool, leave_out: bool) -> _WeightingOptions:
        """Check what was asked."""
        named = names("columns", columns, distinct=True)
        if method is not None and method not in METHODS:
            raise BadInput(f"method={shown(method)}: choose cells, rake or classifier")
        result = str(method or "cells")
        if cap == AUTO:
            most = CAP if result == "classifier" else None
        else:
            most = None if cap is None else number("cap", cap, above=1, hint="or None for no cap")
        if result == "classifier" and pool:
            raise BadInput("pool= goes with method 'cells' or 'rake': a classifier takes levels unchanged")
        return cls(named, result, most, pool, leave_out, method is not None)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sides:
    """The rows, and the population as rows or as margins."""

    rows: pa.Table
    base: Floats
    clusters: NDArray[np.int64]
    people: pa.Table | None = None
    count: Floats | None = None
    margins: tuple[tuple[tuple[str, ...], Mapping[object, object]], ...] = ()

    @classmethod
    def of(cls, data: object, target: object, options: _WeightingOptions, target_weights: str | None) -> _Sides:
        """Read both sides."""
        inputs = _passed(target)
        wanted = columns_of(target) if inputs else options.columns
        if not wanted:
            raise BadInput("columns=(): name the columns in which the rows are to be like the population")
        rows = table_of_rows(data, wanted, "data")
        known = data if isinstance(data, (Predictions, Covariates)) else None
        n = rows.num_rows
        base = np.ones(n) if known is None or known.weights is None else known.weights
        who = None if known is None else known.cluster
        clusters = np.arange(n) if who is None else np.unique(who, return_inverse=True)[1]
        side = cls(rows=rows, base=np.asarray(base, dtype=float), clusters=clusters, margins=inputs)
        if inputs:
            if options.columns or target_weights is not None or (options.chosen and options.method != "rake"):
                raise BadInput(
                    "margins name their columns and are raked: leave columns=, target_weights= and method= out"
                )
            return side
        more = () if target_weights is None else (target_weights,)
        people = table_of_rows(target, (*wanted, *more), "the population")
        count = np.ones(people.num_rows)
        if target_weights is not None:
            named = f"column {target_weights!r} of the population"
            count, _ = weights_of(people.column(target_weights), people.num_rows, False, named, zero=True)
            if not count.any():
                raise BadInput(f"{named} is 0 in every row: leave target_weights= out")
        return replace(side, people=people, count=count)

    def axes(self, options: _WeightingOptions, on: Rows | None) -> list[Margin]:
        """What is to be matched, at levels that the pilot rows and the population fix."""
        if self.people is None or self.count is None:
            return [margin(self.rows, key, levels, options.pool) for key, levels in self.margins]
        each = leveled(self.rows, self.people, options.columns, options.pool, on)
        together = [each] if options.method == "cells" else [[one] for one in each]
        return [joint(some, self.count) for some in together]


def _passed(target: object) -> tuple[tuple[tuple[str, ...], Mapping[object, object]], ...]:
    """Margins by their columns; nothing if the target is rows."""
    if not isinstance(target, Mapping) or not target or not all(isinstance(v, Mapping) for v in target.values()):
        return ()
    margins: MarginsInput = target
    return tuple((k if isinstance(k, tuple) else (str(k),), v) for k, v in margins.items())


def table_of_rows(source: object, columns: Sequence[str], whose: str) -> pa.Table:
    """Columns of predictions, a frame or files."""
    if isinstance(source, (Predictions, Covariates)):
        if source.covariates is None:
            raise BadInput("data has no covariates: pass them to calibrant.predictions")
        require(columns, source.covariates.column_names, "covariate")
        return source.covariates.select(list(columns))
    if (
        not isinstance(source, (str, Mapping, Source))
        and not hasattr(source, "__fspath__")
        and not any(hasattr(source, a) for a in ("columns", "column_names", "__arrow_c_stream__", "get_fragments"))
    ):
        raise BadInput(f"{whose} is a {type(source).__name__}: pass calibrant.predictions, a frame or a path")
    opened = source if isinstance(source, Source) else open_source(source, columns)
    require(columns, opened.columns, "covariate")
    with opened.one_pass():
        batches = [b for part in opened.parts for b in part.read(list(columns), ())]
    if not sum(b.num_rows for b in batches):
        raise BadInput(f"{whose} has no rows")
    table = pa.concat_tables([pa.Table.from_batches([b]) for b in batches], promote_options="permissive")
    return as_covariates(table.unify_dictionaries())


def _pilots(sides: _Sides, share: float, seed: int) -> Rows | None:
    """Deal the pilot rows, whole clusters together; None for no pilot."""
    if not share:
        return None
    m = int(sides.clusters.max()) + 1
    chosen = np.zeros(m, dtype=bool)
    chosen[np.random.default_rng(seed).permutation(m)[: max(1, round(share * m))]] = True
    on = chosen[sides.clusters]
    if on.sum() < LEAST or on.all():
        raise BadInput(f"pilot={share:g}: {on.sum():,} of {len(on):,} rows; at least {LEAST} are needed, and not all")
    return on


# ---- post-stratified and raked ----


def _fitted(sides: _Sides, options: _WeightingOptions, on: Rows | None) -> Weighting:
    """Learn a factor for each level, and give each row the product of its own."""
    axes = sides.axes(options, on)
    inside = np.all([m.shares[m.codes] > 0 for m in axes], axis=0)
    learn = inside if on is None else inside & on
    if not learn.any():
        raise BadInput("no row is like anyone of the population: check that levels are spelt the same")
    axes, lacking, lost = _covered(axes, learn, options.leave_out)
    seen = [np.bincount(m.codes[learn], minlength=len(m.labels)) > 0 for m in axes]
    known = inside & np.all([s[m.codes] for s, m in zip(seen, axes, strict=True)], axis=0)
    mine = [replace(m, codes=m.codes[learn]) for m in axes]
    result = factors(mine, sides.base[learn])
    weights = np.prod([f[m.codes] for f, m in zip(result, axes, strict=True)], axis=0) * sides.base
    method = "rake" if len(axes) > 1 else "cells"
    columns = tuple(dict.fromkeys(c for m in axes for c in m.columns))
    made = _made(replace(options, method=method, columns=columns), np.where(known, weights, 0.0), on)
    balance = [line for m in axes for line in _margin_balance(m, sides.base, made.weights)]
    return replace(made, uncovered=lacking, uncovered_share=lost, balance=tuple(balance))


def _covered(axes: list[Margin], learn: Rows, leave_out: bool) -> tuple[list[Margin], tuple[str, ...], float]:
    """The margins without levels that no row has: refused, unless they may be left out of the population."""
    out, lacking, lost = [], list[str](), 0.0
    for m in axes:
        bare = (m.shares > 0) & (np.bincount(m.codes[learn], minlength=len(m.labels)) == 0)
        named = [f"{m.name} = {m.labels[i]}" for i in np.flatnonzero(bare)]
        share = float(m.shares[bare].sum())
        if named and not leave_out:
            more = f" and {len(named) - 3} more" if len(named) > 3 else ""
            raise BadInput(
                f"no row is like {100 * share:.3g}% of the population ({'; '.join(named[:3])}{more}): pool levels, "
                "name fewer columns, or leave those people out with leave_out=True"
            )
        lacking += named
        lost = max(lost, share)
        shares = np.where(bare, 0.0, m.shares)
        out.append(replace(m, shares=shares / shares.sum()))
    return out, tuple(lacking), lost


def _margin_balance(m: Margin, base: Floats, weights: Floats) -> list[Balance]:
    """The lines of one margin."""
    kept = np.bincount(m.codes, minlength=len(m.labels)).astype(float)
    fewest = kept if m.people is None else np.where(m.people > 0, np.minimum(kept, m.people), kept)
    shares = {"before": m.current(base), "after": m.current(weights), "target": m.shares}
    return levels_balance(m.name, m.labels, shares, fewest)


def _made(options: _WeightingOptions, raw: Floats, on: Rows | None) -> Weighting:
    """Cap the weights, leave the pilot rows out, and say what it cost."""
    kept = raw > 0 if on is None else (raw > 0) & ~on
    if not kept.any():
        raise BadInput("no row that is not a pilot row is like anyone of the population: make the pilot smaller")
    every = raw / raw[kept].mean()
    scaled = every[kept]
    low, lowered = capped(scaled, options.cap, None if on is None else every[on & (raw > 0)])
    weights = np.zeros(len(raw))
    weights[kept] = low
    weights.flags.writeable = False
    pilots = 0 if on is None else int(np.count_nonzero(on))
    return Weighting(
        weights=weights,
        method=options.method,
        columns=options.columns,
        effective=effective(low),
        pilot=pilots,
        outside=int(np.count_nonzero(~kept)) - pilots,
        uncovered=(),
        uncovered_share=0.0,
        cap=options.cap,
        capped=lowered,
        largest=float(scaled.max()),
        trimmed=float(np.maximum(scaled - low.max(), 0.0).sum() / scaled.sum()) if lowered else 0.0,
        balance=(),
    )


# ---- by a classifier ----


@dataclass(frozen=True)
class _Learnt:
    learner: Learner
    folds: int
    seed: int


def _classified(sides: _Sides, options: _WeightingOptions, on: Rows | None, how: _Learnt) -> Weighting:
    """Weigh rows by the odds of a classifier that separates the population from them."""
    if sides.people is None or sides.count is None:
        raise BadInput("method='classifier' needs rows of the population: margins are raked")
    n, m = sides.rows.num_rows, sides.people.num_rows
    x, numbers = features(sides.rows, sides.people, options.columns, on)
    member, counts = np.repeat([False, True], [n, m]), np.r_[sides.base, sides.count]
    if on is None:
        groups = np.r_[sides.clusters, n + np.arange(m)]  # clusters are numbered below n
        ratio = odds(x, member, weights=counts, learner=how.learner, folds=how.folds, groups=groups, seed=how.seed)[:n]
        raw = ratio * sides.base
    else:
        fit = fitted_odds(x, member, counts, np.r_[on, np.ones(m, dtype=bool)], how.learner)
        raw = fit(x[:n]) * sides.base
    made = _made(options, raw, on)
    return replace(made, balance=tuple(_rows_balance(sides, options, numbers, made.weights)))


def _rows_balance(
    sides: _Sides, options: _WeightingOptions, numbers: Mapping[str, Floats], weights: Floats
) -> list[Balance]:
    """The mean of each number and the shares of each other column."""
    out: list[Balance] = []
    n = sides.rows.num_rows
    count = np.ones(0) if sides.count is None else sides.count
    for name in options.columns:
        if name in numbers:
            mine, theirs = numbers[name][:n], numbers[name][n:]
            target = float(np.average(theirs, weights=count))
            spread = float(np.average((theirs - target) ** 2, weights=count)) ** 0.5
            means = {k: float(np.average(mine, weights=w)) for k, w in (("before", sides.base), ("after", weights))}
            out.append(mean_balance(name, means | {"target": target}, spread))
        else:
            one = leveled(sides.rows, sides.rows.slice(0, 0) if sides.people is None else sides.people, [name], {})
            out += _margin_balance(joint(one, count), sides.base, weights)
    return out
