"""Multicalibration: right at every level of the score in every group, found by trees or named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from calibrant.arguments import checked_seed
from calibrant.data.coding import Coding, codings, encode
from calibrant.data.predictions import Predictions
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.trees import BINS, Grouping, cell_sums, shift
from calibrant.repair.catalogue import recipe
from calibrant.repair.fitted import Batch, FittedMap, fitted_on, inputs_of, rising, sound
from calibrant.repair.maps.boosting import (
    BoostedTrees,
    Booster,
    Choice,
    Edges,
    Problem,
    Trees,
    binned,
    choose,
    number_edges,
    ordered,
)
from calibrant.repair.regression import checked_names, fit_rows, logit
from calibrant.search.models import dealt

# ---- Shifts of the score in cells (group x level of the score), one grouping after another, until no cell is ----

MOST = 100  # levels
SWEEPS = 500  # over all groupings, at most
Judge = Callable[[Any, Any], Any]  # event rates and mean scores of cells -> which are off


@dataclass(frozen=True, kw_only=True)
class LevelShifts(FittedMap):
    """Shifts in cells of groups and levels of the score, made one after another.

    Parameters
    ----------
    levels : int
        Levels of the score, of equal width.
    edges : tuple of tuple of float
        Where the bins of each number begin.
    grouping : tuple of tuple of int
        The two columns of each step (0 none, then numbers, then levels), -1 for none.
    cells : tuple of tuple of int
        The cells each step shifts: ``(first bin * 52 + second bin) * levels + level``.
    shifts : tuple of tuple of float
        By how much.
    """

    levels: int
    edges: Edges = ()
    grouping: tuple[tuple[int, int], ...] = ()
    cells: tuple[tuple[int, ...], ...] = ()
    shifts: tuple[tuple[float, ...], ...] = ()

    def check(self) -> None:
        """Raise `ValueError` if a step is about columns or cells that are not there."""
        x = inputs_of(self.codings)
        sound(1 <= self.levels <= MOST, f"levels must be from 1 to {MOST}")
        sound(len(self.edges) == x.numbers and all(len(e) < BINS and rising(e) for e in self.edges), "edges must rise")
        sound(len(self.grouping) == len(self.cells) == len(self.shifts), "every step needs columns, cells and shifts")
        for (first, second), cells, by in zip(self.grouping, self.cells, self.shifts, strict=True):
            sound(-1 <= first <= x.columns and -1 <= second <= x.columns, "a step asks for a column that is not there")
            top = Grouping(first, second, self.levels).cells
            sound(len(cells) == len(by) and all(0 <= c < top for c in cells), "a step shifts a cell that is not there")

    def values(self, rows: Batch) -> Any:
        """Return the repaired scores."""
        out = np.array(rows.p, dtype=np.float64)
        codes = binned(rows.covariates, self.codings, self.edges, len(out))
        for (first, second), cells, by in zip(self.grouping, self.cells, self.shifts, strict=True):
            here = Grouping(first, second, self.levels)
            table = np.zeros(here.cells)
            table[list(cells)] = by
            shift(codes, here, table, out)
        return out


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Which cells are looked at.

    Parameters
    ----------
    variables : sequence of str or None
    cuts : int
        Groups that a number is cut into, of equal size.
    depth : int
        1: groups of one variable; 2: of each pair too.
    levels : int
    fewest : int
        Rows that a cell must hold.
    """

    variables: Sequence[str] | None
    cuts: int
    depth: int
    levels: int
    fewest: int

    def check(self) -> None:
        """Refuse settings that cannot be used."""
        for name, low, high in (("cuts", 2, BINS), ("depth", 1, 2), ("levels", 1, MOST), ("fewest", 1, 10**9)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
                raise BadInput(f"{name}={value!r}: pass a whole number from {low} to {high}")


def groupings(columns: int, depth: int) -> tuple[tuple[int, int], ...]:
    """Return everyone, each column of covariates, and each pair of them if the depth is 2."""
    alone = ((-1, -1), *((-1, j) for j in range(1, columns)))
    return (*alone, *combinations(range(1, columns), 2)) if depth > 1 else alone


def shifted(rows: Predictions, cells: Cells, off: Judge, recipe: str, settings: dict[str, Any]) -> LevelShifts:
    """Shift cells that are off until none is, and return the map that does the same to other rows."""
    how: tuple[Coding, ...] = codings(rows.covariates, cells.variables)
    columns = encode(rows.covariates.select([c.name for c in how]), how) if how else None
    edges = () if columns is None else number_edges(columns, how, cells.cuts)
    codes = binned(columns, how, edges, rows.n)
    weight = np.ones(rows.n) if rows.weights is None else rows.weights / rows.weights.mean()
    p = np.array(rows.p, dtype=np.float64)
    every = groupings(codes.shape[1], cells.depth)
    steps: list[tuple[tuple[int, int], tuple[int, ...], tuple[float, ...]]] = []
    done, sweeps = False, 0
    while not done and sweeps < SWEEPS:
        done, sweeps = True, sweeps + 1
        for first, second in every:
            here = Grouping(first, second, cells.levels)
            held, by = _step(cell_sums(codes, here, rows.y, p, weight), cells.fewest, off)
            if len(held):
                done = False
                steps.append(((first, second), tuple(int(c) for c in held), tuple(float(v) for v in by[held])))
                shift(codes, here, by, p)
    grouping, held_cells, shifts = tuple(zip(*steps, strict=True)) if steps else ((), (), ())
    return LevelShifts(
        recipe=recipe,
        settings={**settings, "sweeps": sweeps, "reached": done, "groupings": len(every)},
        codings=how,
        fitted_on=fitted_on(rows),
        levels=cells.levels,
        edges=edges,
        grouping=grouping,
        cells=held_cells,
        shifts=shifts,
    )


def _step(sums: Any, fewest: int, off: Judge) -> tuple[Any, Any]:
    """Return the cells of one grouping that are large enough and off, and what each cell is to be shifted by."""
    heft = np.maximum(sums[:, 0], np.finfo(float).tiny)
    rate, score = sums[:, 1] / heft, sums[:, 2] / heft
    held = np.flatnonzero((sums[:, 0] >= fewest * (1.0 - 1e-12)) & off(rate, score))
    by = np.zeros(len(sums))
    by[held] = (rate - score)[held]
    return held, by


# ---- The groups over which `Multicalibrator` can work, as published ----


def checked_number(name: str, value: object, low: float, high: float) -> None:
    """Refuse what is not a number in (low, high)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low < value < high:
        raise BadInput(f"{name}={value!r}: pass a number above {low:g} and below {high:g}")


@dataclass(frozen=True, kw_only=True)
class Groups:
    """How `Multicalibrator` works over named groups.

    Parameters
    ----------
    alpha : float in (0, 1)
        Residual that a cell may keep.
    fewest : int
        Rows (of mean weight) that a cell must hold to be looked at.
    levels : int
        Levels of the score, of equal width.
    cuts : int
        Groups that a number is cut into, of equal size.
    depth : {1, 2}
        Groups of one variable; or of each pair of variables too.
    """

    alpha: float = 0.02
    fewest: int = 100
    levels: int = 10
    cuts: int = 5
    depth: int = 1

    def __post_init__(self) -> None:
        checked_number("alpha", self.alpha, 0.0, 1.0)
        self.cells(None).check()

    def cells(self, variables: tuple[str, ...] | None) -> Cells:
        """Return the cells to look at."""
        return Cells(variables=variables, cuts=self.cuts, depth=self.depth, levels=self.levels, fewest=self.fewest)


# ---- Multicalibration: right at every level of the score in every group, found by trees or named ----

NAME = "Multicalibrator"


@recipe(
    maps=[BoostedTrees, LevelShifts],
    words="multicalibration",
    simplicity=150,
    command="multicalibrator",
    covariates=True,
    tried="unless quick",
)
@dataclass(frozen=True, kw_only=True)
class Multicalibrator:
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
    **Assumes.** Rows like those to be repaired, which the model was not trained on.
    **Guarantee.** None on other rows by itself: judge with `calibrant.repair.compare`. On the rows of the fit
    ``Groups`` leaves no cell of `fewest` rows with a mean residual beyond `alpha` (``settings["reached"]``). ``Trees``
    changes nothing unless the change lowers the log loss on rows that did not choose it and points along their
    residuals by `doubt` null standard errors; that test is not exact, because folds share rows. **Method.** ``Trees``:
    the log-odds first become a straight line of themselves (logistic regression), then a sum of trees of ``[log-odds as
    they stand, x]`` on bins, each a Newton step of the log loss on a half of the rows; the log-odds that trees ask for
    are brought up to date every 10 trees, so that groups are found at levels of the repaired score, as in MCGrad. The
    number of trees is that of the least loss in cross-validation (clusters kept whole), and the whole change is
    multiplied by the number, up to 2, that fits the held-out rows best. Levels of a category are sorted by their own
    step at each split. ``Groups``: Algorithm 3.2 of Hebert-Johnson et al. without its noise: a cell (group x level)
    whose mean residual is beyond alpha is shifted by it, clipped to [0, 1]; repeated over all cells until none is. Each
    shift lowers the Brier score on the fit's rows by at least ``alpha^2 fewest / n``, so it ends. Departures: cells of
    one variable are shifted at once, being disjoint; a cell must hold a number of rows rather than a share ``alpha
    lambda`` of its group; scores are not rounded to their level at the end, which would lose the order within it.
    **Cost.** ``Trees``: linear in the rows, times columns and trees; two to five CPU-seconds at 100,000 rows and 10
    covariates. ``Groups``: a pass over the rows for each variable and sweep. **Reads.** Rows; weights are used, and
    clusters by ``Trees``. Missing numbers are the median with a flag; levels not seen go with the heavier side of a
    split, and are not shifted by ``Groups``.

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
        if self.variables is not None:
            checked_names(self.variables)
        checked_seed(self.seed)
        if not isinstance(self.learner, (Trees, Groups)):
            raise BadInput(f"learner={self.learner!r}: pass calibrant.repair.Trees(...) or Groups(...)")

    def fit(self, data: Any) -> BoostedTrees | LevelShifts:
        """Fit to rows."""
        rows = fit_rows(data, NAME)
        names = None if self.variables is None else checked_names(self.variables)
        if isinstance(self.learner, Groups):
            alpha = self.learner.alpha
            settings = {"learner": "groups", **asdict(self.learner)}
            return shifted(
                rows, self.learner.cells(names), lambda rate, score: abs(rate - score) > alpha, NAME, settings
            )
        return _boosted(rows, names, self.learner, int(self.seed))


def _boosted(rows: Predictions, names: tuple[str, ...] | None, learner: Trees, seed: int) -> BoostedTrees:
    how = codings(rows.covariates, names)
    columns = encode(rows.covariates.select([c.name for c in how]), how) if how else None
    edges = () if columns is None else number_edges(columns, how, BINS)
    codes = binned(columns, how, edges, rows.n)
    weight = np.ones(rows.n) if rows.weights is None else rows.weights / rows.weights.mean()
    problem = Problem(codes, ordered(codes.shape[1], edges), logit(rows.p), rows.y, weight)
    clusters = None if rows.cluster is None else np.unique(rows.cluster, return_inverse=True)[1]
    units = rows.n if clusters is None else int(clusters.max()) + 1
    if units < learner.folds:
        what = "rows" if clusters is None else "clusters"
        raise NotComputable(f"{NAME} needs a row for each of its {learner.folds} folds and there are {units} {what}")
    choice = choose(problem, learner, dealt(rows.n, learner.folds, seed, clusters), rows.p, clusters, seed)
    return BoostedTrees(
        recipe=NAME,
        settings={"learner": "trees", **asdict(learner), "seed": seed, **asdict(choice)},
        codings=how,
        fitted_on=fitted_on(rows),
        **_grown(problem, learner, choice, edges, seed),
    )


def _grown(problem: Problem, learner: Trees, choice: Choice, edges: Any, seed: int) -> dict[str, Any]:
    """Grow the chosen number of trees on all rows."""
    if not choice.used:
        return {}
    run = Booster(problem, learner, np.arange(len(problem.y)), (seed, 0))
    for _ in range(choice.trees):
        run.step()
    trees = {
        name: tuple(tuple(one.tolist()) for one in grown)
        for name, grown in (("feature", run.feature), ("left", run.left), ("value", run.value))
    }
    return {
        "slope": run.slope,
        "intercept": run.intercept,
        "scale": choice.scale,
        "edges": edges if choice.trees else (),
        "score_edges": tuple(run.edges),
        **trees,
    }


# ---- Proportional multicalibration: the residual of each group and level is small beside its event rate ----

PROPORTIONAL = "ProportionalMulticalibrator"


@recipe(
    maps=[LevelShifts],
    words="proportional multicalibration",
    simplicity=140,
    command="proportional-multicalibrator",
    covariates=True,
)
@dataclass(frozen=True, kw_only=True)
class ProportionalMulticalibrator:
    r"""Proportional multicalibration: in each group, at each level of the score, the error is small beside the event rate.

    Estimand: p' with ``|E[Y - p' | S, v]| <= alpha max(E[Y | S, v], rho)`` for every group S and level v of the score.

    Parameters
    ----------
    variables : str or sequence of str, optional
        Covariates whose levels (or parts, of a number) are the groups; all by default.
    alpha : float in (0, 1)
        Share of the event rate that a cell may be off by.
    rho : float in (0, 1]
        Event rate below which `alpha` is taken of `rho` instead.
    fewest : int
        Rows (of mean weight) that a cell must hold to be looked at.
    levels : int
        Levels of the score, of equal width.
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
    **Assumes.** Rows like those to be repaired, which the model was not trained on.
    **Guarantee.** On the rows of the fit no cell of `fewest` rows is off by more (``settings["reached"]``); on others
    none: judge with `calibrant.repair.compare`.
    **Method.** Algorithm 1 of La Cava et al.: a cell (group S, level I) with event rate ybar and mean score rbar is
    shifted by ``ybar - rbar`` where ``|ybar - rbar| > alpha max(ybar, rho)``, clipped to [0, 1]; repeated until none
    is. Each shift lowers the Brier score by at least ``(alpha rho)^2 fewest / n``, so it ends. Departures: one number
    of rows takes the place of the paper's ``gamma`` (of a group) and ``alpha lambda`` (of a level in it); cells of one
    variable are shifted at once, being disjoint; everyone is a group too. **Cost.** A pass over the rows for each
    variable (and pair) and sweep. **Reads.** Rows; weights are used. Levels not seen in the fit are not shifted.

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
    alpha: float = 0.1
    rho: float = 0.1
    fewest: int = 100
    levels: int = 10
    cuts: int = 5
    depth: int = 1

    def __post_init__(self) -> None:
        if self.variables is not None:
            checked_names(self.variables)
        checked_number("alpha", self.alpha, 0.0, 1.0)
        checked_number("rho", self.rho, 0.0, 1.0 + 1e-12)
        self._cells().check()

    def _cells(self) -> Cells:
        names = None if self.variables is None else checked_names(self.variables)
        return Cells(variables=names, cuts=self.cuts, depth=self.depth, levels=self.levels, fewest=self.fewest)

    def fit(self, data: Any) -> LevelShifts:
        """Fit to rows."""
        rows = fit_rows(data, PROPORTIONAL)
        alpha, rho = self.alpha, self.rho
        settings = {k: v for k, v in asdict(self).items() if k != "variables"}
        return shifted(
            rows,
            self._cells(),
            lambda rate, score: abs(rate - score) > alpha * np.maximum(rate, rho),
            PROPORTIONAL,
            settings,
        )
