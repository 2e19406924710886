"""The map with a beta curve in each leaf of a small tree of variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.coding import Coding, Encoded
from calibrant.repair.augmented import Form, score_columns
from calibrant.repair.fitted import Batch, FittedMap
from calibrant.repair.inputs import Edges
from calibrant.repair.soundness import inputs_of, shares, sound

SHOWN = 8  # levels named in a rule
Path = dict[int, tuple[float, float]]  # inputs and the ends between which they lie


@dataclass(frozen=True, kw_only=True)
class Branches(FittedMap):
    """The map ``expit(a_l ln p - b_l ln(1 - p) + c_l)`` in leaf l of a tree; node 0 is the root.

    Parameters
    ----------
    feature, left, right : tuple of int
        Of each node: which input it splits (numbers, then level variables; -1 for a leaf), and where rows go.
    threshold : tuple of float
        Rows up to it go left.
    slopes : tuple of (float, float)
        a and b of each node.
    intercepts : tuple of float
        c of each node.
    places : tuple of tuple of float
        Where each level of each level variable stands in the order by which the tree splits it.
    edges : tuple of float
        Nearer to 0, and to 1, than these logarithms of the score are continued along their tangents.
    form : {"beta", "published beta"}
    """

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    slopes: tuple[tuple[float, float], ...]
    intercepts: tuple[float, ...]
    places: tuple[tuple[float, ...], ...] = ()
    edges: Edges
    form: Form = "beta"

    @property
    def order(self) -> Any:
        """Kept if the tree has one leaf and its curve rises."""
        if len(self.feature) > 1 or min(self.slopes[0]) < 0:
            return "may change"
        return "kept" if max(self.slopes[0]) > 0 else "kept up to ties"

    def check(self) -> None:
        """Raise `ValueError` if the nodes do not make a tree of these covariates."""
        x, size = inputs_of(self.codings), len(self.feature)
        lengths = {len(v) for v in (self.threshold, self.left, self.right, self.slopes, self.intercepts)}
        sound(size > 0 and lengths == {size}, "every node needs a feature, a threshold, two children and a curve")
        for node, (j, *children) in enumerate(zip(self.feature, self.left, self.right, strict=True)):
            sound(j < x.columns, "a node asks for a covariate that is not there")
            sound(j < 0 or all(node < child < size for child in children), "children must follow their node")
        sound(tuple(map(len, self.places)) == x.levels, "every level needs a place")
        sound(min(self.edges) > 0 and shares(self.edges), "edges must lie between 0 and 1")

    def values(self, rows: Batch) -> Any:
        """Return the repaired scores."""
        from scipy.special import expit

        t = score_columns(np.asarray(rows.p, dtype=np.float64), self.form, self.edges)
        at = np.zeros(len(t), dtype=np.int64)
        if rows.covariates is not None:
            at = leaf_of(tree_inputs(rows.covariates, self.codings, self.places), self)
        return expit((t * np.array(self.slopes)[at]).sum(axis=1) + np.array(self.intercepts)[at])

    @property
    def leaves(self) -> tuple[str, ...]:
        """The leaves in words, in the order of their nodes."""
        return tuple(text for _, text in sorted(self._leaves(0, {})))

    def _leaves(self, node: int, path: Path) -> Iterator[tuple[int, str]]:
        j, cut = self.feature[node], self.threshold[node]
        if j < 0:
            yield node, " and ".join(self._told(k, *ends) for k, ends in path.items()) or "everyone"
            return
        low, high = path.get(j, (-np.inf, np.inf))
        yield from self._leaves(self.left[node], path | {j: (low, min(high, cut))})
        yield from self._leaves(self.right[node], path | {j: (max(low, cut), high)})

    def _told(self, j: int, low: float, high: float) -> str:
        """Say between which ends an input lies."""
        numbers = [c for c in self.codings if c.kind in ("number", "date")]
        if j < len(numbers):
            c = numbers[j]
            if np.isinf(low):
                return f"{c.name} <= {_shown(c, high)}"
            return (
                f"{c.name} > {_shown(c, low)}"
                if np.isinf(high)
                else f"{_shown(c, low)} < {c.name} <= {_shown(c, high)}"
            )
        name, labels = [
            *((c.name, c.labels) for c in self.codings if c.kind == "category"),
            *((f"{c.name} is missing", ("no", "yes")) for c in numbers if c.missing),
        ][j - len(numbers)]
        of = [v for v, place in zip(labels, self.places[j - len(numbers)], strict=True) if low < place <= high]
        return f"{name} is {' or '.join(of[:SHOWN])}{f' or {len(of) - SHOWN} more' if len(of) > SHOWN else ''}"


def _shown(c: Coding, value: float) -> str:
    return str(np.datetime64(int(np.floor(value)), "D")) if c.kind == "date" else f"{value:.6g}"


def tree_inputs(x: Encoded, how: Sequence[Coding], places: Sequence[Sequence[float]]) -> Any:
    """Return the numbers as they come (missing ones by the median) and the places of the levels, shape (n, inputs)."""
    fill = np.array([c.fill for c in how if c.kind in ("number", "date")])
    numbers = np.where(np.isnan(x.numbers), fill, x.numbers)
    return np.column_stack([numbers, *(np.array(v)[x.codes[:, j]] for j, v in enumerate(places))])


def leaf_of(inputs: Any, tree: Any) -> Any:
    """Return the leaf of each row."""
    feature, cut = np.array(tree.feature), np.array(tree.threshold)
    left, right = np.array(tree.left), np.array(tree.right)
    at, rows = np.zeros(len(inputs), dtype=np.int64), np.arange(len(inputs))
    while len(rows := rows[feature[at[rows]] >= 0]):
        node = at[rows]
        at[rows] = np.where(inputs[rows, feature[node]] <= cut[node], left[node], right[node])
    return at
