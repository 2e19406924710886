"""What tests and residual models see of a row: the score and the covariates, coded without labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import names
from calibrant.data.layouts import plain
from calibrant.data.predictions import Predictions, checked_data, remembered
from calibrant.data.sketches.sample import smallest
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.coding import Coding, Encoded, codings, encode, refuse_identifier
from calibrant.data.specs.coding import Rows as EncodedRows
from calibrant.data.survey import EVERY, LOOK, ONE_VALUE, survey_rows

Floats = NDArray[np.float64]
Ids = NDArray[np.uint64]
Matrix = NDArray[np.float32]
Rows = NDArray[np.int64]

SCORE = "the score"
EDGE = 1e-6  # by which a score is kept off 0 and 1 before its logit is taken
LEVELS = 20  # most frequent levels of a category that get a column of their own in regressions
SEEN = 10  # rows that such a level must have
TERMS = 300  # products of two columns in the quadratic regression: 24 columns have so many, and a fit takes seconds
AT_ONCE = 1 << 15  # rows encoded at once, for memory


def first_look(
    data: Predictions, variables: Iterable[str] | str | None, seed: int, ids: Ids
) -> tuple[Floats, pa.Table, tuple[Coding, ...], tuple[tuple[str, str], ...]]:
    """Return scores and covariates of a sample of rows, codings, fixed without a label, and the columns left out."""
    every = (EVERY,) if data.covariates is not None else ()
    wanted = every if variables is None else names("variables", variables, what="a covariate")
    table = data.covariates
    for name in () if variables is None or table is None else wanted:  # a look at a sample tells less
        if name in table.schema.names:
            column = plain(table.column(name), name)
            if pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
                refuse_identifier(name, column)
    result = survey_rows(data, wanted, seed)
    if result is None:
        order = smallest(ids, LOOK, lambda: (data.p,))
        return data.p[order], pa.table({}), (), ()
    coded = codings(result.table, result.names)
    constant = tuple((c.name, ONE_VALUE) for c in coded if c.kind == "constant")
    return result.p, result.table, tuple(c for c in coded if c.kind != "constant"), (*result.left_out, *constant)


def chunks(data: Predictions, how: Sequence[Coding], ids: Ids) -> Iterator[EncodedRows]:
    """Yield the rows, covariates encoded."""
    table = data.covariates if data.covariates is not None else pa.table({})
    for start in range(0, data.n, AT_ONCE):
        at = slice(start, start + AT_ONCE)
        p = data.p[at]
        yield EncodedRows(p, data.y[at], ids[at], encode(table.slice(start, AT_ONCE), how, len(p)))


@dataclass(frozen=True, kw_only=True)
class Features:
    """Rows as matrices."""

    # Shape (n, d): logit of the score, standardised numbers, and the level numbers of categories (0 the most frequent).
    trees: Matrix
    # Shape (n, q): standardised logit of the score, standardised numbers, and a column for each frequent level.
    flat: Matrix
    # `tree_of` and `flat_of`: the variable each column comes from; "the score" for the score.
    tree_of: tuple[str, ...]
    flat_of: tuple[str, ...]
    pairs: Rows  # shape (r, 2): columns of `flat` that the quadratic regression multiplies
    left_out: int  # products left out because there are more than 300

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that columns come from, the score first."""
        return tuple(dict.fromkeys((*self.tree_of, *self.flat_of)))

    def rows(self, which: Rows) -> Features:
        """Return some rows."""
        return replace(self, trees=self.trees[which], flat=self.flat[which])

    def quadratic(self, rows: Rows) -> Matrix:
        """Return columns and products of some rows."""
        z = self.flat[rows]
        return np.hstack([z, z[:, self.pairs[:, 0]] * z[:, self.pairs[:, 1]]])

    def altered(self, variable: str, other: Features, order: Rows) -> Features:
        """The features with one variable's values taken from some rows of others."""
        trees, flat = self.trees.copy(), self.flat.copy()
        for matrix, source, columns in ((trees, other.trees, self.tree_of), (flat, other.flat, self.flat_of)):
            own = np.array([name == variable for name in columns])
            matrix[:, own] = source[np.ix_(order, own)]
        return replace(self, trees=trees, flat=flat)


def rows_of(data: object) -> Predictions:
    """Return predictions, or a sketch's uniform sample of rows; refuse what has no rows of one score."""
    inputs = checked_data(data, Predictions, Sketch)
    return inputs if isinstance(inputs, Predictions) else inputs.rows()


def features_of(data: Predictions, variables: Iterable[str] | str | None) -> Features:
    """The features of predictions, remembered with them."""
    wanted = None if variables is None else names("variables", variables, what="a covariate")
    return remembered(data, ("strong features", wanted), lambda: _features(data, wanted))


def _features(data: Predictions, variables: tuple[str, ...] | None) -> Features:
    how = codings(data.covariates, _usable(data) if variables is None else variables)
    p = np.clip(data.p, EDGE, 1.0 - EDGE)
    logit = np.log(p / (1.0 - p))
    spread = float(logit.std()) or 1.0
    score = ((logit - logit.mean()) / spread).astype(np.float32)[:, None]
    if not how:
        return _assembled(score, (SCORE,), score, (SCORE,), np.ones(1, dtype=bool))
    x = encode(data.covariates.select([c.name for c in how]), how)
    columns, first = _indicators(x), 1 + x.scaled.shape[1]
    # Filled in place: parts that are put together afterwards are held twice.
    flat = np.empty((x.n, first + len(columns)), dtype=np.float32)
    flat[:, :1], flat[:, 1:first] = score, x.scaled
    for at, (j, level) in enumerate(columns, first):
        flat[:, at] = x.codes[:, j] == level
    trees = np.empty((x.n, first + x.codes.shape[1]), dtype=np.float32)
    trees[:, :first], trees[:, first:] = flat[:, :first], x.codes
    of = (SCORE, *x.number_names)
    flat_of = (*of, *(x.level_of[j] for j, _ in columns))
    return _assembled(trees, (*of, *x.level_of), flat, flat_of, np.arange(flat.shape[1]) < first)


def _usable(data: Predictions) -> tuple[str, ...]:
    """The covariates that an audit would use: identifiers and what cannot be read are none."""
    every = () if data.covariates is None else (EVERY,)
    result = survey_rows(data, every, 0)
    return () if result is None else result.names


def _indicators(x: Encoded) -> list[tuple[int, int]]:
    """The level variable and the level of each 0/1 column: each frequent level but one of each variable."""
    out = []
    for j in range(len(x.level_of)):
        rows = np.bincount(x.codes[:, j], minlength=2)
        out += [(j, int(v)) for v in np.argsort(-rows, kind="stable")[1 : LEVELS + 1] if rows[v] >= SEEN]
    return out


def _assembled(
    trees: Matrix, tree_of: tuple[str, ...], flat: Matrix, flat_of: tuple[str, ...], numeric: NDArray[Any]
) -> Features:
    """Choose the products: squares of numbers, then those with the score, of numbers, and with levels."""
    first, second = np.triu_indices(len(flat_of))
    square = first == second
    allowed = np.where(square, numeric[first], np.array(flat_of)[first] != np.array(flat_of)[second])
    levels = 2 - numeric[first].astype(int) - numeric[second].astype(int)
    rank = np.where(square, 0, np.where(first == 0, 1, 2 + levels))
    order = np.lexsort((second, first, rank))
    order = order[allowed[order]]
    return Features(
        trees=trees,
        flat=flat,
        tree_of=tree_of,
        flat_of=flat_of,
        pairs=np.stack([first[order[:TERMS]], second[order[:TERMS]]], axis=1),
        left_out=max(len(order) - TERMS, 0),
    )
