"""Multicalibration: right at every level of the score in every group, found by trees or named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_seed, names, number, share
from calibrant.data.predictions import Predictions
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.trees import BINS, Grouping, cell_sums, gap
from calibrant.repair.calibrators.boosting import (
    BinEdges,
    Binned,
    BoostedTrees,
    Booster,
    Choice,
    Problem,
    Trees,
    binned_rows,
    bins_of,
    choose,
    in_bins,
)
from calibrant.repair.catalogue import Tunable, recipe
from calibrant.repair.disclosure import MASK
from calibrant.repair.fitted import Batch, Calibrator, fitted_on, inputs_of, rising, sound
from calibrant.repair.formulas import expression
from calibrant.repair.formulas.expression import Chosen, Formula, Joined, Number, Term, Test
from calibrant.repair.regression import Floats, clusters_of, fit_rows, independent, log_odds
from calibrant.search.models import hash_split
from calibrant.views.points import even_weights

# ---- Shifts of the score in cells (group x bin of the score), one grouping after another, until no cell is off ----

MOST = 100  # bins of the score
SWEEPS = 500  # over all groupings, at most: each shift lowers the Brier score, but by little at a tolerance near 0
Judge = Callable[[Floats, Floats], NDArray[np.bool_]]  # event rates and mean scores of cells -> which are off


@dataclass(frozen=True, kw_only=True)
class LevelShifts(Calibrator):
    """Shifts in cells of groups and bins of the score, made one after another."""

    bins: int  # bins of the score, of equal width
    edges: BinEdges = ()  # where the bins of each number begin
    # The two columns of each step (0 none, then numbers, then levels), -1 for none.
    grouping: tuple[tuple[int, int], ...] = ()
    # The cells each step shifts: ``(first bin * 52 + second bin) * bins + bin``.
    cells: tuple[tuple[int, ...], ...] = ()
    shifts: tuple[tuple[float, ...], ...] = ()  # by how much

    def check(self) -> None:
        x = inputs_of(self.codings)
        sound(1 <= self.bins <= MOST, f"bins must be from 1 to {MOST}")
        sound(len(self.edges) == x.numbers and all(len(e) < BINS and rising(e) for e in self.edges), "edges must rise")
        steps = SWEEPS * (1 + x.columns + x.columns * (x.columns - 1) // 2)
        sound(len(self.grouping) <= steps, "more steps than a fit takes")
        sound(len(self.grouping) == len(self.cells) == len(self.shifts), "every step needs columns, cells and shifts")
        for (first, second), cells, by in zip(self.grouping, self.cells, self.shifts, strict=True):
            sound(-1 <= first <= x.columns and -1 <= second <= x.columns, "a step asks for a column that is not there")
            top = Grouping(first, second, self.bins).cells
            sound(len(cells) == len(by) and all(0 <= c < top for c in cells), "a step shifts a cell that is not there")

    def values(self, rows: Batch) -> Floats:
        out, codes = rows.p.copy(), bins_of(rows.covariates, self.codings, self.edges)
        for (first, second), cells, by in zip(self.grouping, self.cells, self.shifts, strict=True):
            here = Grouping(first, second, self.bins)
            table = np.zeros(here.cells)
            table[list(cells)] = by
            gap(codes, here, table, out)
        return out

    def formula(self, row: Formula) -> Term:
        p = row.score
        for columns, cells, by in zip(self.grouping, self.cells, self.shifts, strict=True):
            moves = tuple((self._cell(row, p, columns, c), Number(s)) for c, s in zip(cells, by, strict=True) if s)
            if moves:
                p = row.step({"score": expression.clipped(p + Chosen(moves, Number(0.0)), 0.0, 1.0)})["score"]
        return p

    def _cell(self, row: Formula, p: Term, columns: tuple[int, int], cell: int) -> Test:
        key, level = divmod(cell, self.bins)
        tests: list[Test] = [] if level == 0 else [expression.term(float(level)).upto(p * self.bins)]
        tests += [] if level == self.bins - 1 else [(p * self.bins).below(float(level + 1))]
        for column, its in zip(columns, divmod(key, BINS), strict=True):
            if column > 0:
                tests.append(in_bins(row, self.edges, column, its.__eq__))
            elif its:  # no column, whose only bin is 0
                tests.append(Joined("or", ()))
        return Joined("and", tuple(tests))


# ---- The groups over which `Multicalibrator` can work, as published ----


@dataclass(frozen=True, kw_only=True)
class Groups(Tunable):
    """How `Multicalibrator` works over named groups.

    Parameters
    ----------
    tolerance : float in (0, 1)
        Residual that a cell may keep: the paper's alpha.
    fewest : int
        Rows (of mean weight) that a cell must hold to be looked at.
    bins : int
        Bins of the score, of equal width: the paper's levels.
    cuts : int
        Groups that a number is cut into, of equal size.
    depth : {1, 2}
        Groups of one variable; or of each pair of variables too.
    """

    tolerance: float = 0.02
    fewest: int = 100
    bins: int = 10
    cuts: int = 5
    depth: int = 1

    def __post_init__(self) -> None:
        share("tolerance", self.tolerance)
        checked_cells(self)


def checked_cells(cells: Groups | ProportionalMulticalibrator) -> None:
    """Refuse settings of cells that cannot be used."""
    check_int("fewest", cells.fewest, 1, 10**9)
    check_int("bins", cells.bins, 1, MOST)
    check_int("cuts", cells.cuts, 2, BINS)
    check_int("depth", cells.depth, 1, 2)


def shifted(
    recipe: str, rows: Predictions, x: Binned, cells: Groups | ProportionalMulticalibrator, off: Judge
) -> LevelShifts:
    """Shift cells that are off until none is: the map that does the same to other rows.

    Algorithm 3.2 of Hebert-Johnson et al. and algorithm 1 of La Cava et al.: they differ in when a cell is off.
    """
    weight, p = even_weights(rows), rows.p.copy()
    columns = range(1, x.codes.shape[1])  # everyone, each column of covariates, and each pair of them if asked for
    pairs = [(-1, -1), *((-1, j) for j in columns), *(combinations(columns, 2) if cells.depth > 1 else ())]
    every = [Grouping(first, second, cells.bins) for first, second in pairs]
    steps: list[tuple[tuple[int, int], tuple[int, ...], tuple[float, ...]]] = []
    done, sweeps = False, 0
    while not done and sweeps < SWEEPS:  # (3) until a sweep shifts nothing
        done, sweeps = True, sweeps + 1
        for here in every:
            # (1) Cells that hold enough rows, and whose mean residual is too large.
            sums = cell_sums(x.codes, here, rows.y, p, weight)
            total = np.maximum(sums[:, 0], np.finfo(float).tiny)
            rate, score = sums[:, 1] / total, sums[:, 2] / total
            kept = np.flatnonzero((sums[:, 0] >= cells.fewest * (1.0 - 1e-12)) & off(rate, score))  # 1e-12: rounding
            # (2) Each is shifted by its mean residual; those of one grouping at once, for they are disjoint.
            if len(kept):
                done = False
                by = np.zeros(len(sums))
                by[kept] = (rate - score)[kept]
                steps.append(((here.first, here.second), tuple(kept.tolist()), tuple(by[kept].tolist())))
                gap(x.codes, here, by, p)
    grouping, kept_cells, shifts = zip(*steps, strict=True) if steps else ((), (), ())
    learner = {"learner": "groups"} if isinstance(cells, Groups) else {}
    return LevelShifts(
        recipe=recipe,
        settings={**learner, **_plain(cells), "sweeps": sweeps, "reached": done, "groupings": len(every)},
        codings=x.codings,
        fitted_on=fitted_on(rows),
        mask=min(MASK, cells.fewest),
        bins=cells.bins,
        edges=x.edges,
        grouping=grouping,
        cells=kept_cells,
        shifts=shifts,
    )


def _plain(one: Groups | Trees | ProportionalMulticalibrator) -> dict[str, Any]:
    """The settings of a learner; which covariates are read, the codings tell."""
    return {k: v for k, v in asdict(one).items() if k != "variables"}


def _names(variables: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return None if variables is None else names("variables", variables, what="a covariate", least=1)


# ---- Multicalibration: right at every level of the score in every group, found by trees or named ----

NAME = "Multicalibrator"


@recipe(
    calibrators=[BoostedTrees, LevelShifts],
    words="multicalibration",
    simplicity=150,
    command="multicalibrator",
    covariates=True,
    tried="unless quick",
)
class Multicalibrator(Tunable):
    r"""Multicalibration: the repaired score is right on average at each level of the score in each of many groups.

    Estimand: p' with ``E[(Y - p') 1{x in S} 1{p' in v}] = 0`` for every group S of a collection and every level v of
    the score. The collection is what small trees can describe, or the groups that are named.

    Parameters
    ----------
    variables : str or sequence of str, optional
        Covariates that make the groups; all by default.
    learner : Trees or Groups
        ``Trees()`` looks for groups itself, by boosting the residual; ``Groups()`` goes over every level of the named
        variables, and over pairs of them, as published.
    seed : int
        Of folds and of the rows that each tree sees.

    Returns
    -------
    BoostedTrees or LevelShifts
        From `fit`, by the learner.

    Raises
    ------
    BadInput
        No such covariate, or a setting that cannot be used.
    NotComputable
        From `fit`: all rows have one outcome; fewer rows, or clusters, than folds.

    Notes
    -----
    **Assumes.** Rows like those to be repaired, which the model was not trained on. **Guarantee.** None on other rows
    by itself: judge with `calibrant.repair.evaluate`. On the rows of the fit ``Groups`` leaves no cell of `fewest` rows
    with a mean residual beyond `tolerance` (``settings["reached"]``). ``Trees`` changes nothing unless the change
    lowers the log loss on rows that did not choose it and points along their residuals by `doubt` null standard errors;
    that test is not exact, because folds share rows. **Method.** ``Trees``: the log-odds first become a straight line
    of themselves (logistic regression), then a sum of trees of ``[log-odds as they stand, x]`` on bins, each a Newton
    step of the log loss on a half of the rows; the log-odds that trees ask for are brought up to date every 10 trees,
    so that groups are found at levels of the repaired score, as in MCGrad. The number of trees is that of the least
    loss in cross-validation (clusters kept whole), and the whole change is multiplied by the number, up to 2, that fits
    the held-out rows best. Levels of a category are sorted by their own step at each split. ``Groups``: Algorithm 3.2
    of Hebert-Johnson et al. without its noise: a cell (group x level) whose mean residual is beyond the tolerance is
    shifted by it, clipped to [0, 1]; repeated over all cells until none is. Each shift lowers the Brier score on the
    fit's rows by at least ``tolerance^2 fewest / n``, so it ends. Departures: cells of one variable are shifted at
    once, being disjoint; a cell must hold a number of rows rather than a share ``alpha lambda`` of its group; scores
    are not rounded to their level at the end, which would lose the order within it. **Cost.** ``Trees``: linear in the
    rows, times columns and trees; two to five CPU-seconds at 100,000 rows and 10 covariates. ``Groups``: a pass over
    the rows for each variable and sweep. **Reads.** Rows; weights are used, and clusters by ``Trees``. Missing numbers
    are the median with a flag; levels not seen go with the heavier side of a split, and are not shifted by ``Groups``.

    References
    ----------
    Hebert-Johnson, Kim, Reingold and Rothblum (2018), "Multicalibration", ICML. Globus-Harris, Harrison, Kearns, Roth
    and Sorrell (2023), "Multicalibration as boosting for regression", ICML. Tax et al. (2026), "MCGrad:
    multicalibration at web scale", KDD.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, age, sex = rng.uniform(0.1, 0.9, 4000), rng.uniform(20, 80, 4000), rng.choice(["f", "m"], 4000)
    >>> y = rng.uniform(size=4000) < p + 0.1 * ((age > 60) & (sex == "f"))
    >>> fitted = cal.repair.Multicalibrator().fit(cal.predictions(y, p, {"age": age, "sex": sex}))
    >>> two = cal.predictions([0, 1], [0.5, 0.5], {"age": [70, 30], "sex": ["f", "f"]})
    >>> fitted(two).p.round(1).tolist()
    [0.6, 0.5]
    """

    variables: str | Sequence[str] | None = None
    learner: Trees | Groups = field(default_factory=Trees)
    seed: int = 0

    def __post_init__(self) -> None:
        _names(self.variables)
        checked_seed(self.seed)
        if not isinstance(self.learner, (Trees, Groups)):
            raise BadInput(f"learner={self.learner!r}: pass calibrant.repair.Trees(...) or Groups(...)")

    def fit(self, data: Predictions) -> BoostedTrees | LevelShifts:
        """Fit to rows."""
        rows, learner = fit_rows(data, NAME), self.learner
        if isinstance(learner, Trees):
            return _boosted(rows, binned_rows(rows, _names(self.variables), BINS), learner, int(self.seed))
        x, tolerance = binned_rows(rows, _names(self.variables), learner.cuts), learner.tolerance
        return shifted(NAME, rows, x, learner, lambda rate, score: abs(rate - score) > tolerance)


def _boosted(rows: Predictions, x: Binned, learner: Trees, seed: int) -> BoostedTrees:
    problem = Problem(x.columns, log_odds(rows.p), rows.y, even_weights(rows))
    clusters, (what, own), folds = clusters_of(rows), independent(rows), learner.parts(rows.n)
    if (many := int(own.max()) + 1) < folds:
        raise NotComputable(f"{NAME} needs a {what[:-1]} for each of its {folds} folds and there are {many} {what}")
    fold = hash_split(rows.n, folds, seed, clusters)
    choice = choose(problem, learner, fold, rows, clusters, seed)
    return BoostedTrees(
        recipe=NAME,
        settings={"learner": "trees", **_plain(learner), "folds": folds, "seed": seed, **asdict(choice)},
        codings=x.codings,
        fitted_on=fitted_on(rows),
        **_grown(problem, learner, choice, x.edges, seed),
    )


def _grown(problem: Problem, learner: Trees, choice: Choice, edges: BinEdges, seed: int) -> dict[str, Any]:
    if not choice.used:
        return {}
    run = Booster(problem, learner, np.arange(len(problem.y)), (seed, 0))
    for _ in range(choice.trees):
        run.step()
    return {
        "slope": run.slope,
        "intercept": run.intercept,
        "scale": choice.scale,
        "edges": edges if choice.trees else (),
        "score_edges": tuple(run.edges),
        "feature": tuple(tuple(tree.feature.tolist()) for tree in run.trees),
        "left": tuple(tuple(tree.left.tolist()) for tree in run.trees),
        "value": tuple(tuple(tree.value.tolist()) for tree in run.trees),
    }


# ---- Proportional multicalibration: the residual of each group and level is small next to its event rate ----

PROPORTIONAL = "ProportionalMulticalibrator"


@recipe(
    calibrators=[LevelShifts],
    words="proportional multicalibration",
    simplicity=140,
    command="proportional-multicalibrator",
    covariates=True,
)
class ProportionalMulticalibrator(Tunable):
    r"""Proportional multicalibration: each group, at each level of the score, is off by a share of its event rate.

    Estimand: p' with ``|E[Y - p' | S, v]| <= tolerance max(E[Y | S, v], rho)`` for every group S and level v of the
    score.

    Parameters
    ----------
    variables : str or sequence of str, optional
        Covariates whose levels (or parts, of a number) are the groups; all by default.
    tolerance : float in (0, 1)
        Share of the event rate that a cell may be off by: the paper's alpha.
    rho : float in (0, 1]
        Event rate below which `tolerance` is taken of `rho` instead.
    fewest : int
        Rows (of mean weight) that a cell must hold to be looked at.
    bins : int
        Bins of the score, of equal width: its levels v.
    cuts : int
        Groups that a number is cut into, of equal size.
    depth : {1, 2}
        Groups of one variable; or of each pair of variables too.

    Returns
    -------
    LevelShifts
        From `fit`.

    Raises
    ------
    BadInput
        No such covariate, or a setting that cannot be used.
    NotComputable
        From `fit`: all rows have one outcome.

    Notes
    -----
    **Assumes.** Rows like those to be repaired, which the model was not trained on. **Guarantee.** On the rows of the
    fit no cell of `fewest` rows is off by more (``settings["reached"]``); on others none: judge with
    `calibrant.repair.evaluate`. **Method.** Algorithm 1 of La Cava et al.: a cell (group S, level I) with event rate
    ybar and mean score rbar is shifted by ``ybar - rbar`` where ``|ybar - rbar| > tolerance max(ybar, rho)``, clipped
    to [0, 1]; repeated until none is. Each shift lowers the Brier score by at least ``(tolerance rho)^2 fewest / n``,
    so it ends. Departures: one number of rows takes the place of the paper's ``gamma`` (of a group) and ``alpha
    lambda`` (of a level in it); cells of one variable are shifted at once, being disjoint; everyone is a group too.
    **Cost.** A pass over the rows for each variable (and pair) and sweep. **Reads.** Rows; weights are used. Levels not
    seen in the fit are not shifted.

    References
    ----------
    La Cava, Lett and Wan (2023), "Fair admission risk prediction with proportional multicalibration", CHIL.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, ward = rng.uniform(0.02, 0.2, 20_000), rng.choice(["a", "b"], 20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p * np.where(ward == "a", 1.5, 1.0), p, {"ward": ward})
    >>> repaired = cal.repair.ProportionalMulticalibrator().fit(data)(data)
    >>> [round(float(data.y[ward == w].mean() / repaired.p[ward == w].mean()), 1) for w in "ab"]
    [1.0, 1.0]
    """

    variables: str | Sequence[str] | None = None
    tolerance: float = 0.1
    rho: float = 0.1
    fewest: int = 100
    bins: int = 10
    cuts: int = 5
    depth: int = 1

    def __post_init__(self) -> None:
        _names(self.variables)
        share("tolerance", self.tolerance)
        number("rho", self.rho, above=0, most=1)
        checked_cells(self)

    def fit(self, data: Predictions) -> LevelShifts:
        """Fit to rows."""
        rows, tolerance, rho = fit_rows(data, PROPORTIONAL), self.tolerance, self.rho
        x = binned_rows(rows, _names(self.variables), self.cuts)
        return shifted(
            PROPORTIONAL, rows, x, self, lambda rate, score: abs(rate - score) > tolerance * np.maximum(rate, rho)
        )
