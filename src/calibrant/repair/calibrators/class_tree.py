"""Variable-based calibration of several classes: a small tree of variables, a Dirichlet map in each of its leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrant.data.predictions import MulticlassPredictions
from calibrant.data.specs.coding import Coding, Encoded
from calibrant.repair.calibrators.dirichlet import (
    AS_THEY_ARE,
    ClassCalibrator,
    Classes,
    Dirichlet,
    edge_of,
    log_columns,
    log_terms,
    solved,
    weighed,
)
from calibrant.repair.calibrators.parted import (
    Codes,
    Growth,
    Parted,
    Places,
    Splits,
    numbers_of,
    places_of,
    preferred,
    splits_of,
    tree_inputs,
)
from calibrant.repair.fitted import Batch, sound
from calibrant.repair.formulas import expression
from calibrant.repair.formulas.expression import Formula, Term
from calibrant.repair.regression import FOLDS, Floats, Whole, softmax
from calibrant.views.points import even_weights

# ---- The map with a Dirichlet map in each leaf ----


@dataclass(frozen=True, kw_only=True)
class ClassBranches(Parted, ClassCalibrator):
    """The map ``softmax(W_l ln p + b_l)`` of a row's probabilities of K classes in leaf l of a tree.

    Parameters
    ----------
    matrices : tuple of tuple of tuple of float
        Of each leaf, in the order of their nodes: K rows of K weights and an intercept.
    edge : float
        Nearer to 0 than this logarithms are continued along their tangent.
    """

    matrices: tuple[tuple[tuple[float, ...], ...], ...]
    edge: float

    def check(self) -> None:
        """Raise `ValueError` if the nodes do not make a tree of these covariates, or lack a matrix."""
        super().check()
        sound(len(self.matrices) == len(self.leaf_nodes), "every leaf needs a matrix")
        k = len(self.matrices[0])
        whole = all([len(row) for row in m] == [k + 1] * k for m in self.matrices)
        sound(k > 2 and whole, "every matrix must be K rows of K + 1, of three classes or more")
        sound(AS_THEY_ARE <= self.edge < 1.0, "edge must lie between 0 and 1")

    @property
    def classes(self) -> int:
        """K."""
        return len(self.matrices[0])

    def formulas(self, row: Formula) -> tuple[Term, ...]:
        """The repaired probability of each class as formulas."""
        logs, leaves = log_terms(row, self.classes, self.edge), self.leaf_nodes
        z = [
            self.branched(row, {node: weighed(logs, m[k]) for node, m in zip(leaves, self.matrices, strict=True)})
            for k in range(self.classes)
        ]
        return expression.softmax(row, z)

    def values(self, rows: Batch) -> Floats:
        """The repaired probabilities, of shape (n, K)."""
        x = self.logs(rows.p, self.classes, self.edge)
        at, out = self.at(rows), np.empty_like(rows.p)
        for node, matrix in zip(self.leaf_nodes, self.matrices, strict=True):
            out[at == node] = softmax(x[at == node] @ np.array(matrix).T)
        return out


# ---- The tree, and the maps of its nodes ----


@dataclass(frozen=True)
class ClassTable:
    """Rows of K classes to fit a tree on.

    Parameters
    ----------
    y : int32 array of shape (n,)
    x : float64 array of shape (n, K + 1)
        Logarithms of the probabilities, and ones.
    weight : float64 array of shape (n,)
        Of mean one over all rows.
    numbers : float64 array of shape (n, d)
        Missing ones by the median.
    codes : int32 array of shape (n, c)
    sizes : tuple of int
        How many levels each level variable has.
    edge : float
        Nearer to 0 than this logarithms are continued along their tangent.
    """

    y: Classes
    x: Floats
    weight: Floats
    numbers: Floats
    codes: Codes
    sizes: tuple[int, ...]
    edge: float

    @property
    def classes(self) -> int:
        """K."""
        return int(self.x.shape[1]) - 1

    def __getitem__(self, rows: Whole) -> ClassTable:
        arrays = {name: getattr(self, name)[rows] for name in ("y", "x", "weight", "numbers", "codes")}
        return replace(self, **arrays)


def class_table(rows: MulticlassPredictions, how: Sequence[Coding], x: Encoded, paper: bool) -> ClassTable:
    """The rows of a fit."""
    edge = AS_THEY_ARE if paper else edge_of(rows.p)
    return ClassTable(
        y=rows.y,
        x=log_columns(rows.p, edge),
        weight=even_weights(rows),
        numbers=numbers_of(x, how, paper),
        codes=x.codes,
        sizes=tuple(map(len, x.level_labels)),
        edge=edge,
    )


@dataclass(frozen=True)
class ClassTree:
    """A tree with a matrix ``(W, b)`` of shape (K, K + 1) in every node, and its depth; see `ClassBranches`."""

    splits: Splits
    places: Places
    matrices: Sequence[Floats]
    depth: Sequence[int]

    def losses(self, t: ClassTable, deepest: int) -> Floats:
        """The log loss of each row by the maps at most so deep."""
        cut = self.splits.cut(self.depth, deepest)
        at, out = cut.leaf_of(tree_inputs(t.numbers, t.codes, self.places)), np.empty(len(t.y))
        for node in np.unique(at):
            here = at == node
            out[here] = log_losses(t.x[here], t.y[here], self.matrices[node])
        return out


def log_losses(x: Floats, y: Classes, matrix: Floats) -> Floats:
    """The log loss of each row by a matrix."""
    z = x @ matrix.T
    z -= z.max(axis=1, keepdims=True)
    out: Floats = np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(y)), y]
    return out


def grown_classes(t: ClassTable, g: Growth, recipe: Dirichlet, strength: float) -> ClassTree:
    """Grow a tree and fit the map of every node: its parent's, moved; as published, of each leaf a map of its own."""
    # (1) The map of everyone: Dirichlet calibration.
    k, prices = t.classes, recipe.prices(t.classes, strength)
    root = np.eye(k, k + 1) if g.paper else solved(t.x, t.y, t.weight, prices)
    # (2) What the tree explains: what that map leaves of each class and of the most probable, or the class itself.
    shown, happened = softmax(t.x @ root.T), np.eye(k)[t.y]
    right = (t.y == shown.argmax(axis=1)) - shown.max(axis=1)
    aim = happened if g.target == "outcome" else np.column_stack([happened - shown, right])
    # (3) Levels in the order of how far the most probable class is right more often than it says.
    places = tuple(places_of(right, t.weight, t.codes[:, j], size) for j, size in enumerate(t.sizes))
    # (4) The tree, and (5) from the root down the map of each node.
    inputs = tree_inputs(t.numbers, t.codes, places)
    splits = splits_of(aim, t.weight, inputs, g)
    matrices, depth = [root] * len(splits.feature), [0] * len(splits.feature)
    if g.paper:
        at = splits.leaf_of(inputs)
        for node in np.unique(at):
            matrices[node] = solved(t.x[at == node], t.y[at == node], t.weight[at == node], prices)
        return ClassTree(splits, places, matrices, depth)
    z = t.x @ root.T
    centred = z - z.mean(axis=1, keepdims=True)  # of which every row adds up to 0
    scale = float(np.sqrt(t.weight @ (centred**2).mean(axis=1) / t.weight.sum()))
    for node, child, own in splits.down(inputs):
        depth[child] = depth[node] + 1
        matrices[child] = _moved(t[own], g.shrink, matrices[node], scale)
    return ClassTree(splits, places, matrices, depth)


def _moved(t: ClassTable, shrink: float, parent: Floats, scale: float) -> Floats:
    """The map of a node: its parent's log-odds, stretched and shifted as far as its rows say against a penalty.

    ``a >= 0`` and c of least log loss of ``softmax(a z + c)`` plus ``shrink (scale^2 (a - 1)^2 + c . c) / 2`` rows'
    worth, which rows weigh, z what the parent's map makes of the logarithms.
    """
    from scipy.optimize import minimize

    n, z, happened = len(t.y), t.x @ parent.T, np.eye(t.classes)[t.y]
    share = t.weight / t.weight.sum()
    price = shrink * np.append(scale**2, np.ones(t.classes)) / (2.0 * t.weight.sum())
    start = np.append(1.0, np.zeros(t.classes))

    def loss(w: Floats) -> tuple[float, Floats]:
        moved = w[0] * z + w[1:]
        moved -= moved.max(axis=1, keepdims=True)
        e = np.exp(moved)
        total = e.sum(axis=1)
        excess = (e / total[:, None] - happened) * share[:, None]
        value = share @ (np.log(total) - moved[np.arange(n), t.y]) + (price * (w - start) ** 2).sum()
        return float(value), np.append((excess * z).sum(), excess.sum(axis=0)) + 2.0 * price * (w - start)

    bounds = [(0.0, None)] + [(None, None)] * t.classes
    best = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-12, "gtol": 1e-8}).x
    out: Floats = best[0] * parent
    out[:, -1] += best[1:]
    return out


def best_class_depth(
    t: ClassTable, g: Growth, recipe: Dirichlet, strength: float, fold: Whole
) -> tuple[int, float, float]:
    """The depth that gains most log loss on left-out folds over no tree, and the gain with its standard error.

    The gain must exceed its standard error, or the depth is 0.
    """
    loss = np.empty((g.depth + 1, len(t.y)))
    for k in range(FOLDS):
        out = np.flatnonzero(fold == k)
        tree, rest = grown_classes(t[np.flatnonzero(fold != k)], g, recipe, strength), t[out]
        for d in range(g.depth + 1):  # one tree of full depth holds all the others
            loss[d, out] = tree.losses(rest, d)
    return preferred(t.weight * loss, np.arange(len(t.y)))
