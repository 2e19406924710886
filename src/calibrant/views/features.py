"""What residual models see of a row: the score and the covariates, coded without labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.coding import Encoded, codings, encode
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.sketch import Sketch
from calibrant.errors import BadInput, NotComputable

SCORE = "the score"
EDGE = 1e-6  # by which a score is kept off 0 and 1 before its logit is taken
LEVELS = 20  # most frequent levels of a category that get a column of their own in regressions
SEEN = 10  # rows that such a level must have
TERMS = 300  # products of two columns in the quadratic regression


@dataclass(frozen=True, kw_only=True)
class Features:
    """Rows as matrices.

    Parameters
    ----------
    trees : float32 array of shape (n, d)
        Logit of the score, standardised numbers, and the level numbers of categories (0 the most frequent).
    flat : float32 array of shape (n, q)
        Standardised logit of the score, standardised numbers, and a column for each frequent level.
    tree_of, flat_of : tuple of str
        The variable each column comes from; ``"the score"`` for the score.
    pairs : int array of shape (r, 2)
        Columns of `flat` that the quadratic regression multiplies.
    left_out : int
        Products left out because there are more than 300.
    """

    trees: Any
    flat: Any
    tree_of: tuple[str, ...]
    flat_of: tuple[str, ...]
    pairs: Any
    left_out: int

    def quadratic(self, rows: Any) -> Any:
        """Return columns and products of some rows."""
        z = self.flat[rows]
        return np.hstack([z, z[:, self.pairs[:, 0]] * z[:, self.pairs[:, 1]]])

    def permuted(self, variable: str, order: Any) -> Features:
        """Return the features with one variable's values taken from other rows."""
        trees, flat = self.trees.copy(), self.flat.copy()
        for matrix, names in ((trees, self.tree_of), (flat, self.flat_of)):
            for j, name in enumerate(names):
                if name == variable:
                    matrix[:, j] = matrix[order, j]
        return Features(
            trees=trees,
            flat=flat,
            tree_of=self.tree_of,
            flat_of=self.flat_of,
            pairs=self.pairs,
            left_out=self.left_out,
        )


def rows_of(data: Any) -> Predictions:
    """Return predictions, or a sketch's uniform sample of rows; refuse what has no rows of one score."""
    if isinstance(data, Predictions):
        return data
    if isinstance(data, MulticlassPredictions):
        raise BadInput("several classes: pass data.top_label(), or data.one_vs_rest(k) with alpha / K")
    if not isinstance(data, Sketch):
        raise BadInput(
            f"data is a {type(data).__name__}: pass calibrant.predictions(...), calibrant.read(...) or calibrant.sketch(...)"
        )
    if "sample" not in data.parts:
        raise NotComputable("the sketch holds no rows: sketch with variables= and tests=True, or read the rows")
    sample: Predictions = data.checked().parts["sample"].predictions(data.name)
    return sample


def features_of(data: Predictions, variables: Sequence[str] | None) -> Features:
    """Return the features of predictions, remembered with them."""
    if variables is not None and (isinstance(variables, str) or not isinstance(variables, Iterable)):
        raise BadInput(f"variables={variables!r}: pass a list of names, such as [{variables!r}]")
    key = ("strong features", None if variables is None else tuple(variables))
    if key not in data.cache:
        data.cache[key] = _features(data, variables)
    found: Features = data.cache[key]
    return found


def _features(data: Predictions, variables: Sequence[str] | None) -> Features:
    how = codings(data.covariates, variables)
    table = data.covariates.select([c.name for c in how]) if how else None
    p = np.clip(data.p, EDGE, 1.0 - EDGE)
    logit = np.log(p / (1.0 - p))
    spread = float(logit.std()) or 1.0
    score = ((logit - logit.mean()) / spread).astype(np.float32)[:, None]
    if table is None:
        return _assembled([score], (SCORE,), [score], (SCORE,), np.ones(1, dtype=bool))
    x = encode(table, how)
    scaled = x.scaled.astype(np.float32)
    trees = [score, scaled, x.codes.astype(np.float32)]
    columns, names = _indicators(x)
    numeric = np.arange(1 + scaled.shape[1] + len(names)) <= scaled.shape[1]
    return _assembled(
        trees,
        (SCORE, *x.number_names, *x.level_of),
        [score, scaled, columns],
        (SCORE, *x.number_names, *names),
        numeric,
    )


def _indicators(x: Encoded) -> tuple[Any, tuple[str, ...]]:
    """Return a 0/1 column for each frequent level but one of each level variable."""
    out, names = [np.zeros((x.n, 0), dtype=np.float32)], []
    for j, variable in enumerate(x.level_of):
        rows = np.bincount(x.codes[:, j], minlength=2)
        kept = [v for v in np.argsort(-rows, kind="stable")[1 : LEVELS + 1] if rows[v] >= SEEN]
        out.append((x.codes[:, j][:, None] == np.array(kept, dtype=np.int32)[None, :]).astype(np.float32))
        names += [variable] * len(kept)
    return np.hstack(out), tuple(names)


def _assembled(
    trees: list[Any], tree_of: tuple[str, ...], flat: list[Any], flat_of: tuple[str, ...], numeric: Any
) -> Features:
    """Choose the products: squares of numbers, then those with the score, of numbers, and with levels."""
    q = len(flat_of)
    first, second = np.triu_indices(q)
    square = first == second
    allowed = np.where(square, numeric[first], np.array(flat_of)[first] != np.array(flat_of)[second])
    rank = np.where(
        square, 0, np.where(first == 0, 1, 3 - numeric[first].astype(int) - numeric[second].astype(int) + 1)
    )
    order = np.lexsort((second, first, rank))
    order = order[allowed[order]]
    return Features(
        trees=np.ascontiguousarray(np.hstack(trees)),
        flat=np.ascontiguousarray(np.hstack(flat)),
        tree_of=tree_of,
        flat_of=flat_of,
        pairs=np.stack([first[order[:TERMS]], second[order[:TERMS]]], axis=1),
        left_out=max(len(order) - TERMS, 0),
    )
