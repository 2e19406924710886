"""Rows in memory as the tests read them: codings fixed by a first look at a sample, and rows encoded chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import names
from calibrant.data.layouts import plain
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import smallest
from calibrant.data.specs.coding import Coding, Rows, codings, encode, refuse_identifier
from calibrant.data.specs.spec import Spec
from calibrant.data.survey import EVERY, LOOK, survey_rows

Floats = NDArray[np.float64]
Ids = NDArray[np.uint64]
AT_ONCE = 1 << 15  # rows encoded at once, for memory


def first_look(
    data: Predictions, variables: Iterable[str] | str | None, seed: int, ids: Ids
) -> tuple[Floats, pa.Table, tuple[Coding, ...], tuple[tuple[str, str], ...]]:
    """Return scores and covariates of a sample of rows, their codings, and the columns left out, without a label."""
    every = (EVERY,) if data.covariates is not None else ()
    wanted = every if variables is None else names("variables", variables, what="a covariate")
    table = data.covariates
    for name in () if variables is None or table is None else wanted:  # a look at a sample tells less
        if name in table.schema.names:
            column = plain(table.column(name), name)
            if pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
                refuse_identifier(name, column)
    result = survey_rows(data, Spec(label="y_true", score="y_prob", seed=seed), wanted)
    if result is None:
        order = smallest(ids, LOOK, lambda: (data.p,))
        return data.p[order], pa.table({}), (), ()
    return result.p, result.table, codings(result.table, result.names), result.left_out


def chunks(data: Predictions, how: Sequence[Coding], ids: Ids) -> Iterator[Rows]:
    """Yield the rows, covariates encoded."""
    table = data.covariates if data.covariates is not None else pa.table({})
    for start in range(0, data.n, AT_ONCE):
        at = slice(start, start + AT_ONCE)
        p = data.p[at]
        yield Rows(p, data.y[at], ids[at], encode(table.slice(start, AT_ONCE), how, len(p)))
