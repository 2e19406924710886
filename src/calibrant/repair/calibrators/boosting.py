"""Boosting of the residual: small trees on the log-odds and the covariates, as many as other rows ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, number
from calibrant.data.predictions import Predictions
from calibrant.data.specs.coding import Coding, Encoded
from calibrant.kernels.roots import lowest
from calibrant.kernels.strata import locate
from calibrant.kernels.trees import BINS, Columns, Rule, Tree, add_trees, gradients, grow
from calibrant.repair.catalogue import Tunable
from calibrant.repair.disclosure import cuts, grain, kept_cuts, spread, stepped
from calibrant.repair.fitted import Batch, Calibrator, Order, inputs_of, rising, sound
from calibrant.repair.formulas import expression
from calibrant.repair.formulas.expression import Chosen, Formula, Term, Test, Variable
from calibrant.repair.regression import EDGE, Floats, Whole, encoded, expit, filled, log_odds
from calibrant.stats.logistic import Design, maximise

# ---- Covariates as a few bins each, by rules fixed without a label ----

RARE, LAST = BINS - 3, 2  # levels beyond the 49 most frequent share a bin; unseen and missing ones keep their own
Codes = NDArray[np.uint8]
BinEdges = tuple[tuple[float, ...], ...]  # of each number: where its bins begin


@dataclass(frozen=True)
class Binned:
    """Covariates of rows in bins."""

    codings: tuple[Coding, ...]
    edges: BinEdges  # where the bins of each number begin
    codes: Codes  # shape (n, 1 + d): bins of numbers, then of levels; the first column is left at 0 for the score

    @property
    def columns(self) -> Columns:
        """The bins, and whether those of a column have an order: of the score and of numbers they do."""
        return Columns(self.codes, np.arange(self.codes.shape[1]) <= len(self.edges))


def binned_rows(rows: Predictions, variables: Sequence[str] | None, bins: int) -> Binned:
    """Fix at most `bins` bins for each number, and put the covariates of rows into them."""
    how, x, _ = encoded(rows, variables)
    ordered = (np.sort(v) for v in filled(x, how).T)
    edges = tuple(cuts(bin_edges(v, bins), v, grain(spread(v))) for v in ordered)
    return Binned(how, edges, bins_of(x, how, edges))


def bin_edges(ordered: Floats, bins: int) -> tuple[float, ...]:
    """Inner edges of at most `bins` bins: between the values if they are few, at quantiles otherwise.

    The values are given in order, and the quantiles are NumPy's, to the bit.
    """
    result = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    if len(result) <= bins:
        return tuple(float(v) for v in (result[1:] + result[:-1]) / 2.0)
    return _quantiles(len(ordered), bins, ordered.__getitem__, float(result[0]))


def _quantiles(rows: int, bins: int, ranked: Callable[[Whole], Floats], least: float) -> tuple[float, ...]:
    """The different quantiles above the least value, given the values at places of their order."""
    place = (rows - 1) * np.linspace(0.0, 1.0, bins + 1)[1:-1]
    below = np.floor(place).astype(np.int64)
    low, high, share = ranked(below), ranked(below + 1), place - below
    ends = np.where(share >= 0.5, high - (high - low) * (1.0 - share), low + (high - low) * share)
    return tuple(float(v) for v in np.unique(ends) if v > least)


RANKED = 1 << 14  # values from which a sort takes longer than a count in so many cells and a sort of a few of them
CELLS = 1 << 13


def score_cuts(values: Floats) -> tuple[float, ...]:
    """Where the score's bins begin: what `cuts` makes of `bin_edges`, without a sort of many values."""
    if len(values) < RANKED or len(np.unique(values[:RANKED])) <= BINS:
        ordered = np.sort(values)
        return cuts(bin_edges(ordered, BINS), ordered, SCORES)
    ends = _quantiles(len(values), BINS, lambda places: _ranked(values, places), float(values.min()))
    edges = np.unique(stepped(np.array(ends), SCORES))
    before = np.cumsum(np.bincount(locate(values, edges), minlength=len(edges) + 1))[:-1]
    return kept_cuts(edges, before, len(values))


def _ranked(values: Floats, places: Whole) -> Floats:
    """The values at some places of their order: cells of equal width are in order, and few must be sorted."""
    low, high = float(values.min()), float(values.max())
    cell = ((values - low) * ((CELLS - 1) / (high - low))).astype(np.int32)
    size = np.bincount(cell, minlength=CELLS)
    upto = np.cumsum(size)
    own = np.searchsorted(upto, places, side="right")
    looked = np.zeros(CELLS, dtype=bool)
    looked[own] = True
    first = np.cumsum(np.where(looked, size, 0)) - size  # of a cell that is looked at, among those sorted
    ordered: Floats = np.sort(values[looked[cell]])
    return ordered[first[own] + places - (upto - size)[own]]


def bins_of(x: Encoded, how: Sequence[Coding], edges: BinEdges) -> Codes:
    """The bins of numbers and levels, as `Binned` has them."""
    numbers, width = filled(x, how), len(edges)
    out = np.zeros((len(numbers), 1 + width + x.codes.shape[1]), dtype=np.uint8)
    for j, ends in enumerate(edges):
        out[:, 1 + j] = locate(numbers[:, j], np.array(ends))
    for j, labels in enumerate(x.level_labels):
        code, stored = x.codes[:, j], len(labels)
        if stored > BINS:
            kept = stored - LAST
            code = np.where(code >= kept, code - kept + RARE + 1, np.minimum(code, RARE))
        out[:, 1 + width + j] = code
    return out


# ---- Boosting of the residual: small trees on the log-odds and the covariates, as many as other rows ask for ----

SALT = 0x7EE5  # of random numbers, apart from those of other methods at the same seed
DEEPEST, MOST = 6, 5000  # splits on the way to a leaf, and trees, at most
SCORES = 1e-3  # steps of log-odds, in which their bins are cut
ROUND = 10  # trees that see the same score, before it is brought up to date
PATIENCE = 3 * ROUND  # trees without a better loss after which no more are tried
MANY = 100_000  # rows from which two folds choose as well as five
SAMPLED = 4000  # rows that a tree sees at least, if there are so many; of more rows it sees half
IDENTITY = np.array([1.0, 0.25])  # prior information about slope and intercept: 0.25 is what one row at p = 0.5 has


@dataclass(frozen=True, kw_only=True)
class Trees(Tunable):
    """How `Multicalibrator` boosts.

    Parameters
    ----------
    depth : int
        Splits on the way to a leaf, 1 to 6: how many of the score and the variables can matter together.
    rate : float in (0, 1]
        Share of its Newton step that a tree takes.
    most : int
        Trees at most.
    ridge : float
        Above 0: information (``p (1 - p)`` summed over rows) by which a leaf is drawn towards no change.
    least : float
        Information that each side of a split must hold: 5 is 20 rows at ``p = 0.5``, 500 at ``p = 0.01``.
    folds : int, optional
        Of the cross-validation; by default five, and two from 100,000 rows on, where halves are large: a third of the
        time, and hardly another map.
    doubt : float
        Standard errors by which the changes must be confirmed on other folds; the scores are left alone otherwise.
    """

    depth: int = 2
    rate: float = 0.1
    most: int = 300
    ridge: float = 10.0
    least: float = 5.0
    folds: int | None = None
    doubt: float = 2.5

    def parts(self, rows: int) -> int:
        return self.folds or (2 if rows >= MANY else 5)

    def __post_init__(self) -> None:
        check_int("depth", self.depth, 1, DEEPEST)
        check_int("most", self.most, 1, MOST)
        if self.folds is not None:
            check_int("folds", self.folds, 2, 20)
        number("rate", self.rate, least=1e-3, most=1.0)
        number("ridge", self.ridge, least=1e-3, most=1e6)
        number("least", self.least, least=1e-3, most=1e6)
        number("doubt", self.doubt, least=0.0, most=10.0)


@dataclass(frozen=True)
class Problem:
    """Rows to boost on."""

    columns: Columns  # bins of the covariates from column 1 on
    start: Floats  # shape (n,): log-odds of the score
    y: NDArray[np.int8]  # shape (n,)
    weight: Floats  # shape (n,): mean one

    def loss(self, log_odds: Floats) -> float:
        return logarithmic_loss(log_odds, self.y, self.weight)


def logarithmic_loss(log_odds: Floats, y: NDArray[np.int8], weight: Floats) -> float:
    signed = log_odds * (1 - 2 * y)  # the loss rises with it
    loss = np.abs(signed)
    np.negative(loss, out=loss)
    np.log1p(np.exp(loss, out=loss), out=loss)
    loss += np.maximum(signed, 0.0, out=signed)
    return float(weight @ loss)


class Booster:
    """One run of boosting on some rows; every row's log-odds are kept up to date."""

    def __init__(self, problem: Problem, how: Trees, rows: Whole, seed: tuple[int, ...]) -> None:
        self.problem, self.how, self.rows = problem, how, rows
        self.rng = np.random.default_rng([*seed, SALT])
        self.columns = Columns(problem.columns.codes.copy(), problem.columns.ordered)
        self.slope, self.intercept = straight(problem, rows)
        self.log_odds = self.intercept + self.slope * problem.start
        self.edges: list[tuple[float, ...]] = []
        self.trees: list[Tree] = []

    def step(self) -> None:
        """Grow one more tree: a Newton step of the log loss, as LogitBoost takes it (Friedman et al. 2000)."""
        p, how = self.problem, self.how
        # (1) Every ten trees the score's bins are brought up to date, so that groups are found at its present levels.
        if len(self.trees) % ROUND == 0:
            self.edges.append(score_cuts(self.log_odds))
            self.columns.codes[:, 0] = locate(self.log_odds, np.array(self.edges[-1]))
        # (2) A random half of the rows, with gradient and hessian of the log loss at their present log-odds.
        share = max(0.5, SAMPLED / len(self.rows))
        rows = self.rows
        if share < 1.0:
            rows = rows.take(np.flatnonzero(self.rng.random(len(rows)) < share))
        gradient, hessian = np.empty((2, len(rows)))
        gradients(self.log_odds.take(rows), p.y.take(rows), p.weight.take(rows), gradient, hessian)
        # (3) A tree on them; ridge and least hessian stand for all rows.
        part = len(rows) / len(self.rows)
        columns = Columns(self.columns.codes.take(rows, axis=0), self.columns.ordered)
        rule = Rule(how.depth, how.ridge * part, how.least * part)
        tree = grow(columns, gradient, hessian, np.arange(len(rows), dtype=np.int32), rule)
        # (4) A tenth of the step, for all rows.
        tree = tree._replace(value=tree.value * how.rate)
        add_trees(self.columns.codes, Tree(tree.feature[None], tree.left[None], tree.value[None]), self.log_odds)
        self.trees.append(tree)


def straight(problem: Problem, rows: Whole) -> tuple[float, float]:
    """Slope and intercept of a logistic curve of the log-odds, drawn towards the identity by one row's worth."""
    t, y = problem.start[rows], problem.y[rows].astype(np.float64)
    # the log-odds are known beforehand: what is fitted, and penalised, is how far slope and intercept are from 1 and 0
    design = Design(np.column_stack([t, np.ones(len(t))]), problem.weight[rows], t, IDENTITY)
    slope, intercept = maximise(design, design.sums(y)).coefficients[0]
    return 1.0 + float(slope), float(intercept)


# ---- How many trees, and whether any: decided on rows that did not grow them ----


@dataclass(frozen=True)
class Choice:
    """What cross-validation chose."""

    used: bool  # whether the scores are changed at all
    trees: int
    scale: float  # what the whole change is multiplied by
    # `before` and `after`: mean logarithmic loss on other folds, of the scores as they came and of the chosen repair.
    before: float
    after: float
    standard: float  # by how many standard errors the change points the right way on other folds


def choose(problem: Problem, how: Trees, fold: Whole, rows: Predictions, clusters: Whole | None, seed: int) -> Choice:
    """Grow trees on all folds but one, in step, and watch the loss on the one."""
    stored = [np.flatnonzero(fold == k) for k in range(int(fold.max()) + 1)]
    labels = [(problem.y.take(own), problem.weight.take(own)) for own in stored]
    runs = [Booster(problem, how, np.flatnonzero(fold != k), (seed, k + 1)) for k in range(len(stored))]
    best, at, kept, trees = np.inf, 0, problem.start.copy(), 0
    while True:
        watched = zip(runs, stored, labels, strict=True)
        loss = sum(logarithmic_loss(run.log_odds.take(own), *known) for run, own, known in watched)
        if loss < best:
            best, at = loss, trees
            for run, own in zip(runs, stored, strict=True):
                kept[own] = run.log_odds.take(own)
        if trees >= how.most or trees - at >= PATIENCE:
            break
        for run in runs:
            run.step()
        trees += 1
    change, before = kept - problem.start, problem.loss(problem.start)
    # The score test of the change: its product with the residual, in standard errors of calibrated scores.
    product = problem.weight * change * (problem.y - rows.p)
    if clusters is None:
        variance = float(np.sum((problem.weight * change) ** 2 * rows.p * (1.0 - rows.p)))
    else:
        variance = float(np.sum(np.bincount(clusters, product) ** 2))
    standard = float(product.sum()) / variance**0.5 if variance > 0.0 else 0.0
    used = best < before and standard > how.doubt
    # The multiple of the change that fits other folds best.
    scale = lowest(lambda share: problem.loss(problem.start + share * change), 0.0, 2.0, xtol=1e-3)
    return Choice(used, at, scale, before / rows.n, best / rows.n, standard)


# ---- The map that boosting leaves: a straight line of the log-odds, then trees, in plain numbers ----


@dataclass(frozen=True, kw_only=True)
class BoostedTrees(Calibrator):
    """A line of the score's log-odds, and a sum of small trees of the score and the covariates."""

    # `slope` and `intercept`: of the line.
    slope: float = 1.0
    intercept: float = 0.0
    scale: float = 1.0  # what the whole change of the log-odds is multiplied by
    edges: BinEdges = ()  # where the bins of each number begin
    score_edges: BinEdges = ()  # the same for the log-odds as they stand before trees 0, 10, 20 and so on
    # `feature` and `left`: a tree each: the column that a node asks (0 the log-odds, then numbers, then levels), and
    # the bins that go left, bit by bit. The children of node k are 2k + 1 and 2k + 2; leaves follow the nodes.
    feature: tuple[tuple[int, ...], ...] = ()
    left: tuple[tuple[int, ...], ...] = ()
    value: tuple[tuple[float, ...], ...] = ()  # the leaves

    @property
    def trees(self) -> int:
        """How many trees."""
        return len(self.value)

    @property
    def order(self) -> Order:
        return "kept" if not self.value and 1.0 + self.scale * (self.slope - 1.0) > 0 else "may change"

    def check(self) -> None:
        x, trees = inputs_of(self.codings), len(self.value)
        sound(len(self.feature) == len(self.left) == trees, "every tree needs features, sides and values")
        if not trees:
            return
        nodes = len(self.feature[0])
        sound(nodes > 0 and nodes & (nodes + 1) == 0, "a tree must be full")
        sound(nodes < 1 << DEEPEST and trees <= MOST, "more trees, or deeper ones, than a fit grows")
        same = {(len(f), len(m), len(v)) for f, m, v in zip(self.feature, self.left, self.value, strict=True)}
        sound(same == {(nodes, nodes, nodes + 1)}, "trees must be of one shape")
        sound(all(0 <= j <= x.columns for f in self.feature for j in f), "a tree asks for a column that is not there")
        sound(all(0 <= m < 1 << BINS for own in self.left for m in own), "sides must be sets of bins")
        sound(len(self.edges) == x.numbers, "every number needs edges")
        sound(len(self.score_edges) == -(-trees // ROUND), "every ten trees need edges of the score")
        sound(all(len(e) < BINS and rising(e) for e in (*self.edges, *self.score_edges)), "edges must rise, and be few")

    def values(self, rows: Batch) -> Floats:
        if not self.value and self.slope == 1.0 and self.intercept == 0.0:
            return rows.p.copy()
        start = log_odds(rows.p)
        eta = self.intercept + self.slope * start
        if self.value:
            codes = bins_of(rows.covariates, self.codings, self.edges)
            trees = Tree(np.array(self.feature), np.array(self.left, dtype=np.uint64), np.array(self.value))
            for k, ends in enumerate(self.score_edges):
                codes[:, 0] = locate(eta, np.array(ends))
                part = slice(k * ROUND, (k + 1) * ROUND)
                add_trees(codes, Tree(trees.feature[part], trees.left[part], trees.value[part]), eta)
        return expit(start + self.scale * (eta - start))

    def formula(self, row: Formula) -> Term:
        if not self.value and self.slope == 1.0 and self.intercept == 0.0:
            return row.score
        start = expression.log_odds(row.score, (EDGE, EDGE))
        if not self.value:
            return expression.probability(start + (start * (self.slope - 1.0) + self.intercept) * self.scale)
        start = row.step({"start": start})["start"]
        eta = row.step({"odds": start * self.slope + self.intercept})["odds"]
        for k in range(len(self.score_edges)):
            grown = range(k * ROUND, min((k + 1) * ROUND, self.trees))
            eta = row.step({"odds": eta + expression.total([self._tree(row, eta, k, t, 0) for t in grown])})["odds"]
        return expression.probability(start + (eta - start) * self.scale)

    def _tree(self, row: Formula, eta: Term, part: int, tree: int, node: int) -> Term:
        """What a tree adds, from one of its nodes down."""
        nodes = len(self.feature[tree])
        if node >= nodes:
            return expression.term(self.value[tree][node - nodes])
        low, high = (self._tree(row, eta, part, tree, child) for child in (2 * node + 1, 2 * node + 2))
        j, left = self.feature[tree][node], self.left[tree][node]

        def goes(code: int) -> bool:
            return bool(left >> code & 1)

        test = in_bins(row, self.edges, j, goes) if j else expression.within(eta, self.score_edges[part], goes)
        return low if low == high else Chosen(((test, low),), high)


def in_bins(row: Formula, edges: BinEdges, column: int, goes: Callable[[int], bool]) -> Test:
    """The test that a covariate is in some of its bins; columns count from 1, numbers first, as in `Binned`."""
    if column <= len(edges):
        return expression.within(row.numbers[column - 1], edges[column - 1], goes)
    variable = row.variables[column - 1 - len(edges)]
    return variable.among(lambda code: goes(_level_bin(variable, code)))


def _level_bin(variable: Variable, code: int) -> int:
    """The bin of a level; as `bins_of`."""
    kept = len(variable.coding.labels) if variable.coding.kind == "category" else 2
    if kept <= BINS:
        return code
    return code - (kept - LAST) + RARE + 1 if code >= kept - LAST else min(code, RARE)
