"""Covariates of a repair, taken by name from the features that a scikit-learn classifier is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.predictions import Predictions, binary_predictions
from calibrant.errors import BadInput


@dataclass(frozen=True)
class Taken:
    """Columns of X that the repair reads: their places, and the names by which its maps know them."""

    at: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def of(self, X: Any) -> Any:
        """Return the columns as `calibrant.predictions` takes them, or None if there are none."""
        if not self.at:
            return None
        if not hasattr(X, "iloc") and hasattr(X, "__arrow_c_stream__"):
            import pyarrow as pa

            table = pa.RecordBatchReader.from_stream(X).read_all()
            return table.select(list(self.at)).rename_columns(list(self.names))
        return {name: _column(X, j) for j, name in zip(self.at, self.names, strict=True)}


def chosen(X: Any, variables: Sequence[str | int]) -> Taken:
    """Find variables among the columns of X: by name in a frame, by number or as ``"x0"`` in an array.

    Raises
    ------
    BadInput
        There is no such column, or one is named twice.
    """
    labels = list(getattr(X, "columns", ()))
    if labels:
        names = [str(label) for label in labels]
    else:
        shape = np.shape(X) if not hasattr(X, "shape") else X.shape
        if len(shape) != 2:
            raise BadInput(f"variables={tuple(variables)!r}: X has no columns, pass covariates= instead")
        names = [f"x{j}" for j in range(shape[1])]
    at = tuple(_place(v, names) for v in variables)
    if len(set(at)) < len(at):
        raise BadInput(f"variables={tuple(variables)!r} names a column twice: name each once")
    return Taken(at, tuple(names[j] for j in at))


def _place(variable: Any, names: list[str]) -> int:
    if isinstance(variable, (int, np.integer)) and not isinstance(variable, bool):
        if 0 <= variable < len(names):
            return int(variable)
    elif names.count(variable) == 1:
        return names.index(variable)
    elif variable in names:
        raise BadInput(f"variables: X has {names.count(variable)} columns {variable!r}: give each its own name")
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise BadInput(f"variables: X has no column {variable!r}; it has {shown}")


def _column(X: Any, j: int) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[:, j]
    if hasattr(X, "tocsc"):
        return X[:, [j]].toarray().ravel()
    return np.asarray(X)[:, j] if hasattr(X, "shape") else np.asarray([row[j] for row in X])


def table_of(columns: Any, n: int) -> Any:
    """Return columns as an Arrow table of n rows, or None."""
    return None if columns is None else unlabelled(np.zeros(n), columns).covariates


def unlabelled(p: Any, columns: Any) -> Predictions:
    """Return rows whose outcomes are not known, as a map takes them."""
    return binary_predictions(np.zeros(len(p), dtype=np.int8), p, columns)
