"""What a regression on score and variables sees of a row, all of it fixed when the map is fitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from calibrant.data.coding import Coding, Encoded, codings, encode
from calibrant.errors import BadInput
from calibrant.repair.fitting import EDGE

LEVELS = 50  # most frequent levels of a category that get a column of their own
SEEN = 10  # rows that such a level must have
Edges = tuple[float, float]  # nearer to 0, and to 1, than these a logarithm is continued along its tangent


def checked_names(variables: Any) -> tuple[str, ...]:
    """Return the names of variables, given one or several."""
    if isinstance(variables, str):
        return (variables,)
    if not isinstance(variables, Iterable):
        raise BadInput(f"variables={variables!r}: pass the name of a covariate or a list of names")
    names = tuple(variables)
    if not names or not all(isinstance(v, str) for v in names):
        raise BadInput(f"variables={variables!r}: pass at least one name of a covariate, such as 'age'")
    return names


def encoded(data: Any, names: Sequence[str] | None) -> tuple[tuple[Coding, ...], Encoded, tuple[str, ...]]:
    """Fix the codings of the variables of rows; return them, the encoded rows and the constants left out."""
    how = codings(data.covariates, names)
    kept = tuple(c for c in how if c.kind != "constant")
    table = data.covariates.select([c.name for c in kept]) if data.covariates is not None else None
    if table is None:
        raise BadInput("variables: the data has no covariates; pass them to calibrant.predictions or read")
    return kept, encode(table, kept, data.n), tuple(c.name for c in how if c.kind == "constant")


def kept_levels(x: Encoded) -> tuple[tuple[int, ...], ...]:
    """Return the levels of each level variable that get a column; the others are told apart by none."""
    out = []
    for j in range(x.codes.shape[1]):
        rows = np.bincount(x.codes[:, j])
        order = np.argsort(-rows, kind="stable")[:LEVELS]
        out.append(tuple(int(v) for v in order if rows[v] >= SEEN))
    return tuple(out)


def indicators(codes: Any, kept: Sequence[Sequence[int]]) -> Any:
    """Return a 0/1 column for each kept level of each level variable."""
    columns = [codes[:, j][:, None] == np.array(k, dtype=np.int32)[None, :] for j, k in enumerate(kept) if len(k)]
    return np.hstack(columns).astype(np.float64) if columns else np.zeros((len(codes), 0))


def edges_of(p: Any) -> Edges:
    """Return how near 0 and 1 logarithms of scores are taken as they are.

    A millionth, or nearer if a hundredth of the rows is nearer: a network that says 1e-20 of most people still orders
    them, while a lone 0 among moderate scores must not rule the fit.
    """
    low, high = (min(EDGE, float(np.quantile(v[v > 0.0], 0.01))) if (v > 0.0).any() else EDGE for v in (p, 1.0 - p))
    return (max(low, 1e-300), high)


def logs(p: Any, edges: Edges) -> tuple[Any, Any]:
    """Return the logarithms of scores and of what is left to 1, finite and without new ties."""
    one, zero = (np.log(np.maximum(v, e)) + np.minimum(v - e, 0.0) / e for v, e in ((p, edges[0]), (1.0 - p, edges[1])))
    return one, zero


def log_odds(p: Any, edges: Edges) -> Any:
    """Return the log-odds of scores."""
    one, zero = logs(p, edges)
    return one - zero
