"""A small tree that parts rows by variables: how it is kept in a map and reported in words, grown, and how deep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.data.specs.coding import Coding, Encoded
from calibrant.repair.disclosure import MASK, grain, spread, stepped
from calibrant.repair.fitted import Batch, Calibrator, inputs_of, sound
from calibrant.repair.formulas.expression import Chosen, Formula, Term
from calibrant.repair.regression import FOLDS, Floats, Whole, filled, paired

Codes = NDArray[np.int32]
Places = tuple[tuple[float, ...], ...]  # where each level of each level variable stands in the order that is split
SHOWN = 8  # levels named in a rule
STEEPEST = 8  # splits on the way to a leaf, at most
Path = dict[int, tuple[float, float]]  # inputs and the ends between which they lie

# ---- The tree, in a map ----


@dataclass(frozen=True)
class Splits:
    """The splits of a tree, node 0 its root."""

    feature: tuple[int, ...]  # of each node: which input it asks, numbers, then level variables; -1 for a leaf
    threshold: tuple[float, ...]  # rows up to it go left
    left: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def leaf_nodes(self) -> tuple[int, ...]:
        """The leaves, in the order of the nodes."""
        return tuple(node for node, f in enumerate(self.feature) if f < 0)

    def leaf_of(self, inputs: Floats) -> Whole:
        feature, threshold = np.array(self.feature), np.array(self.threshold)
        left, right = np.array(self.left), np.array(self.right)
        at, rows = np.zeros(len(inputs), dtype=np.int64), np.arange(len(inputs))
        while len(rows := rows[feature[at[rows]] >= 0]):
            node = at[rows]
            at[rows] = np.where(inputs[rows, feature[node]] <= threshold[node], left[node], right[node])
        return at

    def down(self, inputs: Floats) -> Iterator[tuple[int, int, Whole]]:
        """Yield each node with a child of it and the child's rows; parents come before their children."""
        stack = [(0, np.arange(len(inputs)))]
        while stack:
            node, members = stack.pop()
            if self.feature[node] < 0:
                continue
            low = inputs[members, self.feature[node]] <= self.threshold[node]
            for child, own in ((self.left[node], members[low]), (self.right[node], members[~low])):
                yield node, child, own
                stack.append((child, own))

    def cut(self, depth: Sequence[int], deepest: int) -> Splits:
        """The splits of nodes less deep than `deepest`, given the depth of each."""
        kept = tuple(f if d < deepest else -1 for f, d in zip(self.feature, depth, strict=True))
        return replace(self, feature=kept)


def tree_inputs(numbers: Floats, codes: Codes, places: Places) -> Floats:
    """The numbers and the places of the levels, shape (n, inputs)."""
    return np.column_stack([numbers, *(np.array(v)[codes[:, j]] for j, v in enumerate(places))])


@dataclass(frozen=True, kw_only=True)
class Parted(Splits, Calibrator):
    """A map with a part of its own for each leaf of a tree of variables: its splits, and what stands with them."""

    places: Places = ()

    def check(self) -> None:
        x, size = inputs_of(self.codings), len(self.feature)
        sound(size < 2 << STEEPEST, "more nodes than a fit grows")
        lengths = {len(v) for v in (self.threshold, self.left, self.right)}
        sound(size > 0 and lengths == {size}, "every node needs a feature, a threshold and two children")
        for node, (j, *children) in enumerate(zip(self.feature, self.left, self.right, strict=True)):
            sound(j < x.columns, "a node asks for a covariate that is not there")
            sound(j < 0 or all(node < child < size for child in children), "children must follow their node")
        sound(tuple(map(len, self.places)) == x.levels, "every level needs a place")

    def at(self, rows: Batch) -> Whole:
        """The leaf of each row."""
        x = rows.covariates
        return self.leaf_of(tree_inputs(filled(x, self.codings), x.codes, self.places))

    def branched(self, row: Formula, leaves: Mapping[int, Term], node: int = 0) -> Term:
        """The term of the leaf that a row is in, as a formula."""
        j, cut = self.feature[node], self.threshold[node]
        if j < 0:
            return leaves[node]
        if j < len(row.numbers):
            goes = row.numbers[j].upto(cut)
        else:
            places = self.places[j - len(row.numbers)]
            goes = row.variables[j - len(row.numbers)].among(lambda code: places[code] <= cut)
        low, high = (self.branched(row, leaves, child) for child in (self.left[node], self.right[node]))
        return Chosen(((goes, low),), high)

    @property
    def leaves(self) -> tuple[str, ...]:
        """The leaves in words, in the order of their nodes."""
        return tuple(text for _, text in sorted(self._leaves(0, {})))

    def _leaves(self, node: int, path: Path) -> Iterator[tuple[int, str]]:
        j, cut = self.feature[node], self.threshold[node]
        if j < 0:
            yield node, " and ".join(self._reported(k, *ends) for k, ends in path.items()) or "everyone"
            return
        low, high = path.get(j, (-np.inf, np.inf))
        yield from self._leaves(self.left[node], path | {j: (low, min(high, cut))})
        yield from self._leaves(self.right[node], path | {j: (max(low, cut), high)})

    def _reported(self, j: int, low: float, high: float) -> str:
        """Say between which ends an input lies."""
        numbers = [c for c in self.codings if c.kind in ("number", "date")]
        if j < len(numbers):
            c = numbers[j]
            if np.isinf(low):
                return f"{c.name} <= {_shown(c, high)}"
            if np.isinf(high):
                return f"{c.name} > {_shown(c, low)}"
            return f"{_shown(c, low)} < {c.name} <= {_shown(c, high)}"
        level_variables = [
            *((c.name, c.labels) for c in self.codings if c.kind == "category"),
            *((f"{c.name} is missing", ("no", "yes")) for c in numbers if c.missing),
        ]
        (name, labels), places = level_variables[j - len(numbers)], self.places[j - len(numbers)]
        of = [v for v, place in zip(labels, places, strict=True) if low < place <= high]
        return f"{name} is {' or '.join(of[:SHOWN])}{f' or {len(of) - SHOWN} more' if len(of) > SHOWN else ''}"


def _shown(c: Coding, value: float) -> str:
    return str(np.datetime64(int(np.floor(value)), "D")) if c.kind == "date" else f"{value:.6g}"


# ---- How it is grown, with a map in every node ----

Target = Literal["residual", "outcome"]
Fields = dict[str, Any]  # of a table or a map, as they are made from rows
Gain = dict[str, float | None]  # in log loss by the depth chosen, and its standard error
PRIOR = 20.0  # rows of average outcome by which a level's place in the order is drawn in


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Settings of a tree: see `VariableTree`."""

    depth: int
    leaf: float
    target: Target
    shrink: float
    paper: bool


@dataclass(frozen=True, kw_only=True)
class Table(ABC):
    """Rows to fit a tree on, and what kind of map its nodes have."""

    by_row: ClassVar[tuple[str, ...]] = ("weight", "numbers", "codes", "cluster")  # what there is one of a row

    weight: Floats  # of mean one over all rows
    numbers: Floats  # shape (n, d): missing ones by the median
    codes: Codes  # shape (n, c)
    sizes: tuple[int, ...]  # how many levels each level variable has
    cluster: Whole  # which rows are not independent of one another

    def __getitem__(self, rows: Whole) -> Self:
        return replace(self, **{name: getattr(self, name)[rows] for name in self.by_row})

    @abstractmethod
    def root(self, g: Growth) -> Floats:
        """The map of everyone."""

    @abstractmethod
    def aims(self, root: Floats, g: Growth) -> tuple[Floats, Floats]:
        """What the tree explains, one column or several; and the one column by which levels are put in order."""

    @abstractmethod
    def spread(self, root: Floats) -> Floats:
        """The scale on which maps move."""

    @abstractmethod
    def moved(self, own: Whole, parent: Floats, spread: Floats, g: Growth, leaf: bool) -> Floats:
        """The map of a node: its parent's, moved as far as its own rows say against a penalty."""

    @abstractmethod
    def losses(self, here: NDArray[np.bool_], one: Floats) -> Floats:
        """The log loss of some rows by a map."""

    @abstractmethod
    def calibrator(self, tree: Tree, leaves: Sequence[NDArray[np.bool_]], kept: Fields, gain: Gain) -> Parted:
        """The map that a tree leaves, given the rows of each leaf and what all such maps keep."""


@dataclass(frozen=True)
class Tree:
    """A tree with a map in every node."""

    splits: Splits
    places: Places
    maps: Sequence[Floats]
    depth: Sequence[int]

    def leaf_of(self, t: Table, deepest: int = STEEPEST) -> Whole:
        return self.splits.cut(self.depth, deepest).leaf_of(tree_inputs(t.numbers, t.codes, self.places))

    def losses(self, t: Table, deepest: int) -> Floats:
        """The log loss of each row by the maps at most so deep."""
        at, out = self.leaf_of(t, deepest), np.empty(len(t.weight))
        for node in np.unique(at):
            here = at == node
            out[here] = t.losses(here, self.maps[node])
        return out


def grown(t: Table, g: Growth) -> Tree:
    """Grow a tree and fit the map of every node, each drawn to that of its parent."""
    # (1) The map of everyone, what the tree explains, and (2) levels in an order, so that a split cuts them as it cuts
    # a number.
    root = t.root(g)
    aim, order = t.aims(root, g)
    places = tuple(_places_of(order, t.weight, t.codes[:, j], size) for j, size in enumerate(t.sizes))
    # (3) The tree, and (4) from the root down the map of each node.
    inputs, spread = tree_inputs(t.numbers, t.codes, places), t.spread(root)
    splits = _splits_of(aim, t.weight, inputs, g)
    maps, depth = [root] * len(splits.feature), [0] * len(splits.feature)
    if g.paper and len(maps) == 1:
        maps = [t.moved(np.arange(len(t.weight)), root, spread, g, leaf=True)]
    for node, child, own in splits.down(inputs):
        depth[child] = depth[node] + 1
        maps[child] = t.moved(own, maps[node], spread, g, leaf=splits.feature[child] < 0)
    return Tree(splits, places, maps, depth)


def _places_of(aim: Floats, weight: Floats, codes: NDArray[np.int32], size: int) -> tuple[float, ...]:
    """The mean aim of each level of a level variable, drawn to that of everyone."""
    middle = float(np.average(aim, weights=weight))
    total = np.bincount(codes, weight * (aim - middle), size)
    return tuple((total / (np.bincount(codes, weight, size) + PRIOR)).tolist())


def _splits_of(aim: Floats, weight: Floats, inputs: Floats, g: Growth) -> Splits:
    """The splits of a regression tree of the aim, or of several at once: squared error, as in the paper."""
    n, even = len(aim), bool((weight == 1.0).all())
    least = max(1 if g.paper else MASK, int(g.leaf * n) if even else 1)
    if g.depth == 0 or not inputs.shape[1] or n < 2 * least:
        return Splits((-1,), (0.0,), (-1,), (-1,))
    from sklearn.tree import DecisionTreeRegressor

    share = {} if even else {"min_weight_fraction_leaf": g.leaf}
    learner = DecisionTreeRegressor(max_depth=g.depth, min_samples_leaf=least, random_state=0, **share)
    tree = learner.fit(inputs, aim, sample_weight=None if even else weight).tree_
    inner = tree.children_left >= 0
    return Splits(
        tuple(int(f) if i else -1 for f, i in zip(tree.feature, inner, strict=True)),
        tuple(float(c) if i else 0.0 for c, i in zip(tree.threshold, inner, strict=True)),
        tuple(tree.children_left.tolist()),
        tuple(tree.children_right.tolist()),
    )


def numbers_of(x: Encoded, how: Sequence[Coding], exact: bool) -> Floats:
    """The numbers to split, missing ones by the median.

    They stand in steps, unless `exact`, so that a split halfway between two of them is halfway between no two people's.
    """
    numbers = filled(x, how)
    return numbers if exact else np.column_stack([numbers[:, :0], *(stepped(v, grain(spread(v))) for v in numbers.T)])


def best_depth(t: Table, g: Growth, fold: Whole) -> tuple[int, float, float]:
    """The depth that gains most log loss on left-out folds over no tree, and the gain with its standard error.

    The gain must exceed its standard error, or the depth is 0.
    """
    loss = np.empty((g.depth + 1, len(t.weight)))
    for k in range(FOLDS):
        out = np.flatnonzero(fold == k)
        tree, rest = grown(t[np.flatnonzero(fold != k)], g), t[out]
        for d in range(g.depth + 1):  # one tree of full depth holds all the others
            loss[d, out] = tree.losses(rest, d)
    loss, best = t.weight * loss, (0, 0.0, 0.0)
    for d in range(1, g.depth + 1):
        gain, error = paired(loss[0] - loss[d], t.cluster)
        if gain > max(error, best[1]):
            best = (d, gain, error)
    return best
