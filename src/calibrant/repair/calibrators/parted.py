"""A small tree that parts rows by variables: how it is grown, kept in a map, and reported in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.data.specs.coding import Coding, Encoded
from calibrant.repair.disclosure import MASK, grain, spread, stepped
from calibrant.repair.fitted import Batch, Calibrator, inputs_of, sound
from calibrant.repair.formulas.expression import Chosen, Formula, Term
from calibrant.repair.regression import Floats, Whole, filled, paired

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeRegressor

Codes = NDArray[np.int32]
Places = tuple[tuple[float, ...], ...]  # where each level of each level variable stands in the order that is split
SHOWN = 8  # levels named in a rule
STEEPEST = 8  # splits on the way to a leaf, at most
Path = dict[int, tuple[float, float]]  # inputs and the ends between which they lie

# ---- The tree, in a map ----


@dataclass(frozen=True)
class Splits:
    """The splits of a tree, node 0 its root.

    Parameters
    ----------
    feature, left, right : tuple of int
        Of each node: which input it asks (numbers, then level variables; -1 for a leaf), and where rows go.
    threshold : tuple of float
        Rows up to it go left.
    """

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def leaf_nodes(self) -> tuple[int, ...]:
        """The leaves, in the order of the nodes."""
        return tuple(node for node, f in enumerate(self.feature) if f < 0)

    def leaf_of(self, inputs: Floats) -> Whole:
        """The leaf of each row."""
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
    """A map with a part of its own for each leaf of a tree of variables: its splits, and what stands with them.

    Parameters
    ----------
    places : tuple of tuple of float
        Where each level of each level variable stands in the order by which the tree splits it.
    """

    places: Places = ()

    def check(self) -> None:
        """Raise `ValueError` if the nodes do not make a tree of these covariates."""
        x, size = inputs_of(self.codings), len(self.feature)
        sound(size < 2 << STEEPEST, "more nodes than a fit grows")
        lengths = {len(v) for v in (self.threshold, self.left, self.right)}
        sound(size > 0 and lengths == {size}, "every node needs a feature, a threshold and two children")
        for node, (j, *children) in enumerate(zip(self.feature, self.left, self.right, strict=True)):
            sound(j < x.columns, "a node asks for a covariate that is not there")
            sound(j < 0 or all(node < child < size for child in children), "children must follow their node")
        sound(tuple(map(len, self.places)) == x.levels, "every level needs a place")

    def at(self, rows: Batch) -> Whole:
        """The leaf of each row; the root of all of them without covariates."""
        x = rows.covariates
        if x is None:
            return np.zeros(len(rows.p), dtype=np.int64)
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


# ---- How it is grown ----

Target = Literal["residual", "outcome"]
PRIOR = 20.0  # rows of average outcome by which a level's place in the order is drawn in


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Settings of a tree: see `VariableTree`."""

    depth: int
    leaf: float
    target: Target
    shrink: float
    paper: bool


def places_of(aim: Floats, weight: Floats, codes: NDArray[np.int32], size: int) -> tuple[float, ...]:
    """The mean aim of each level of a level variable, drawn to that of everyone."""
    middle = float(np.average(aim, weights=weight))
    total = np.bincount(codes, weight * (aim - middle), size)
    return tuple((total / (np.bincount(codes, weight, size) + PRIOR)).tolist())


def splits_of(aim: Floats, weight: Floats, inputs: Floats, g: Growth) -> Splits:
    """The splits of a regression tree of the aim, or of several at once: squared error, as in the paper."""
    n, even = len(aim), bool((weight == 1.0).all())
    least = max(1 if g.paper else MASK, int(g.leaf * n) if even else 1)
    if g.depth == 0 or not inputs.shape[1] or n < 2 * least:
        return Splits((-1,), (0.0,), (-1,), (-1,))
    tree = _learner(g, least, even).fit(inputs, aim, sample_weight=None if even else weight).tree_
    inner = tree.children_left >= 0
    return Splits(
        tuple(int(f) if i else -1 for f, i in zip(tree.feature, inner, strict=True)),
        tuple(float(c) if i else 0.0 for c, i in zip(tree.threshold, inner, strict=True)),
        tuple(tree.children_left.tolist()),
        tuple(tree.children_right.tolist()),
    )


def _learner(g: Growth, least: int, even: bool) -> DecisionTreeRegressor:
    from sklearn.tree import DecisionTreeRegressor

    weight = {} if even else {"min_weight_fraction_leaf": g.leaf}
    return DecisionTreeRegressor(max_depth=g.depth, min_samples_leaf=least, random_state=0, **weight)


def numbers_of(x: Encoded, how: Sequence[Coding], exact: bool) -> Floats:
    """The numbers to split, missing ones by the median.

    They stand in steps, unless `exact`, so that a split halfway between two of them is halfway between no two people's.
    """
    numbers = filled(x, how)
    return numbers if exact else np.column_stack([numbers[:, :0], *(stepped(v, grain(spread(v))) for v in numbers.T)])


def preferred(losses: Floats, cluster: Whole) -> tuple[int, float, float]:
    """The depth that gains most over depth 0, and the gain with its standard error, which it must exceed.

    `losses` of shape (depths, n) are those of left-out rows, from depth 0 on; without such a gain the depth is 0.
    """
    best = (0, 0.0, 0.0)
    for d in range(1, len(losses)):
        gain, error = paired(losses[0] - losses[d], cluster)
        if gain > max(error, best[1]):
            best = (d, gain, error)
    return best
