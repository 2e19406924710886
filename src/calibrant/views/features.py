"""What tests and residual models see of a row: the score and the covariates, coded without labels.

Of many covariates a screen chooses those that the dear tests read. A test of some covariates is valid whatever chose
them, as long as the labels that it reads had no part in the choice. So a third of the rows, dealt by number and seed,
chooses; the tests read the other two thirds. Given the third, those rows are independent as before, and every level,
range and p-value of theirs holds as if the covariates had been named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import names
from calibrant.data.columns import is_number
from calibrant.data.layouts import decoded, is_date, plain
from calibrant.data.predictions import Predictions, checked_data, remembered
from calibrant.data.sketches.sample import identities, smallest
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.coding import Coding, codings, encode, refuse_identifier
from calibrant.data.specs.coding import Rows as EncodedRows
from calibrant.data.specs.local import MOST
from calibrant.data.specs.spec import Spec
from calibrant.data.survey import EVERY, LOOK, ONE_VALUE, survey_rows
from calibrant.kernels.strata import locate
from calibrant.views.by_variable import finite_values

Floats = NDArray[np.float64]
Ids = NDArray[np.uint64]
Matrix = NDArray[np.float32]
Places = NDArray[np.integer]
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
    """Scores and covariates of a sample of rows, codings, fixed without a label, and the columns left out."""
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
        """Some of the rows."""
        return replace(self, trees=self.trees[which], flat=self.flat[which])

    def quadratic(self, rows: Rows) -> Matrix:
        """Columns and products of some rows."""
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
    """Predictions, or a sketch's uniform sample of rows; refuse what has no rows of one score."""
    inputs = checked_data(data, Predictions, Sketch)
    return inputs if isinstance(inputs, Predictions) else inputs.rows()


def features_of(data: Predictions, variables: Iterable[str] | str | None) -> Features:
    """The features of predictions, remembered with them."""
    wanted = None if variables is None else names("variables", variables, what="a covariate")
    return remembered(data, ("strong features", wanted), lambda: _features(data, wanted))


def _features(data: Predictions, variables: tuple[str, ...] | None) -> Features:
    if variables is None:  # those that an audit would use: identifiers and what cannot be read are none
        used = survey_rows(data, () if data.covariates is None else (EVERY,), 0)
        variables = () if used is None else used.names
    how = codings(data.covariates, variables)
    p = np.clip(data.p, EDGE, 1.0 - EDGE)
    logit = np.log(p / (1.0 - p))
    spread = float(logit.std()) or 1.0
    score = ((logit - logit.mean()) / spread).astype(np.float32)[:, None]
    if not how:
        return _assembled(score, (SCORE,), score, (SCORE,), np.ones(1, dtype=bool))
    x = encode(data.covariates.select([c.name for c in how]), how)
    columns, first = list[tuple[int, int]](), 1 + x.scaled.shape[1]
    for j in range(len(x.level_of)):  # columns of 0 and 1: each frequent level but one of each variable
        rows = np.bincount(x.codes[:, j], minlength=2)
        columns += [(j, int(v)) for v in np.argsort(-rows, kind="stable")[1 : LEVELS + 1] if rows[v] >= SEEN]
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


# ---- Many covariates: which of them the dear tests read, chosen on rows that are not tested ----

CHOSEN = 24  # covariates next to those named that are read where there are too many: 325 tables with the score's
PILOT = 1.0 / 3.0  # share of the rows that choose them
BINS = 10  # of a number, of about equally many rows
LEAST = 2.0  # null variance of a level that is looked at by itself, in expected events; the others are together


@dataclass(frozen=True, kw_only=True)
class Screen:
    """What was chosen, and by whom."""

    chosen: tuple[str, ...]  # covariates that are tested: those asked for in any case, then the largest departure first
    of: int  # covariates in all
    # `pilot` and `tested`: rows that chose, none where there was no choice, and rows that are tested.
    pilot: int
    tested: int

    def to_dict(self) -> dict[str, Any]:
        """What a record says of it."""
        return {"chosen": self.chosen, "of": self.of, "rows_chose": self.pilot, "rows_tested": self.tested}


def hash_split(n: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows that choose, and the rows that are tested; labels play no part."""
    ids = identities(n, 0, Spec(label="y", score="p", seed=seed).salt("screen"))
    pilot = ids < np.uint64(PILOT * 2.0**64)
    return np.flatnonzero(pilot), np.flatnonzero(~pilot)


def strongest(pilot: Predictions, most: int = CHOSEN, always: Sequence[str] = ()) -> tuple[str, ...]:
    """Those of `always`, then the others along which residuals depart most from noise: `most`, while all fit.

    Notes
    -----
    **Assumes.** Rows that no test reads afterwards. **Cost.** Rows times covariates: two sums each.
    **Reads.** Rows, and their labels.
    """
    table = pilot.covariates if pilot.covariates is not None else pa.table({})
    residual, variance = pilot.y - pilot.p, pilot.p * (1.0 - pilot.p)
    first = [name for name in dict.fromkeys(always) if name in table.column_names][:MOST]
    results = {}
    for name in table.column_names:
        if name not in first:
            cell, ordered = _cells(decoded(table.column(name), name), name)
            results[name] = departure(cell, residual, variance, ordered)
    rest = sorted(results, key=lambda name: -results[name])  # of equal ones the first column
    return (*first, *rest[: min(most, MOST - len(first))])


def _cells(column: Any, name: str) -> tuple[Places, int]:
    """The cell of each row of a covariate, and how many of the cells are in order."""
    if is_number(column.type) or is_date(column.type):
        values = finite_values(column, name)
        there = np.sort(values[~np.isnan(values)])
        edges = np.unique(there[np.arange(1, BINS) * len(there) // BINS]) if len(there) else there
        return np.where(np.isnan(values), len(edges) + 1, locate(values, edges)), len(edges) + 1
    coded = column.dictionary_encode()
    return coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False), 0


def departure(cell: Places, residual: Floats, variance: Floats, ordered: int) -> float:
    """The largest standardised departure of residual sums from noise, in about standard normal deviations.

    The overall mean residual is taken out. Looked at are the level that stands out most, the sum of squares over all
    cells and, of cells in order, the trend and the bend over their ranks: score statistics of a linear, a quadratic and
    a level-wise term.

    Parameters
    ----------
    cell : int array of shape (n,)
        From 0 on.
    residual, variance : float64 arrays of shape (n,)
        Outcome less probability, and its null variance.
    ordered : int
        How many of the first cells are in order; those after them, such as the one of missing values, are not.

    Notes
    -----
    **Cost.** Two sums over the rows. **Reads.** Labels: use it on rows that are not tested afterwards.
    """
    # (1) Sums of each cell, small cells joined, less the overall mean residual by the share of the variance
    sums, noise = np.bincount(cell, residual), np.bincount(cell, variance)
    total = float(noise.sum())
    if total <= 0.0:
        return 0.0
    left = sums - noise / total * sums.sum()
    # (2) Trend and bend over the ranks of the cells in order
    results = [0.0]
    there = np.flatnonzero(noise[:ordered] > 0.0)
    if len(there) > 1:
        rank, root = np.cumsum(noise[there]) - 0.5 * noise[there], np.sqrt(noise[there])
        basis = np.ones((len(there), 1))
        for power in (1, 2):
            column = (rank / rank[-1]) ** power
            column = column - basis @ np.linalg.lstsq(basis * root[:, None], column * root, rcond=None)[0]
            size = float(column**2 @ noise[there])
            if size > 1e-12 * total:
                results.append(abs(float(column @ left[there])) / np.sqrt(size))
                basis = np.column_stack([basis, column])
    # (3) Cell by cell: the one that stands out most, less what the most of so many do, and all of them together
    few = noise < LEAST
    if few.any():
        left = np.append(left[~few], left[few].sum())
        noise = np.append(noise[~few], noise[few].sum())
    kept = (noise >= LEAST) & (noise < total)
    cells = int(kept.sum())
    if cells > 1:
        squares = left[kept] ** 2 / (noise[kept] * (1.0 - noise[kept] / total))
        results.append(float(np.sqrt(squares.max())) - np.sqrt(2.0 * np.log(cells)) + 1.0)
        mean = float(squares.sum()) / cells  # by Wilson and Hilferty's cube root a chi-square is about normal
        results.append((mean ** (1.0 / 3.0) - (1.0 - 2.0 / (9.0 * cells))) / np.sqrt(2.0 / (9.0 * cells)))
    return float(max(results))
