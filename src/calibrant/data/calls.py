"""How public functions are called: with data as one value, with labels and probabilities, by scikit-learn's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from itertools import islice
from os import PathLike
from typing import ParamSpec, Protocol, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.arguments import Call
from calibrant.data.arrays import counts, dense, index_of, matrix_of
from calibrant.data.classes.rows import multiclass_predictions
from calibrant.data.columns import Floats
from calibrant.data.predictions import (
    Predictions,
    frame_of,
    predictions,
)
from calibrant.errors import BadInput
from calibrant.results import Frame, Framed

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Pair: TypeAlias = tuple[object, object]  # labels and probabilities
Placed: TypeAlias = tuple[object, ...]  # what a call has by position
Named: TypeAlias = dict[str, object]  # and by name

DATA = "data", "source", "pilot"  # what the argument is called that takes the data as one value
OF_ROWS = "covariates", "weights", "cluster", "positive", "missing", "drop_missing"  # as `calibrant.predictions`
OF_CLASSES = "covariates", "weights", "cluster", "classes", "listed", "rest"  # the same, of several classes


class Classifier(Protocol):
    """What is required of a fitted classifier of scikit-learn."""

    classes_: NDArray[np.generic]

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probabilities, shape (n, K)."""


class TakesArrays(Protocol[P, R_co]):
    """A function of data that takes labels and probabilities in their place."""

    __name__: str

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, y_true: ArrayLike, y_prob: ArrayLike, /, *more: object, **settings: object) -> R_co: ...


def takes_arrays(function: Callable[P, R], *, scores_first: bool = False) -> TakesArrays[P, R]:
    """Let a public function that takes the data as one value take rows as a scikit-learn program has them.

    In place of the data stand labels and probabilities, and a frame of covariates if there is one; or a fitted
    classifier, X and y. What `calibrant.predictions` takes besides may then be named too. ``scores_first``: a method
    ``fit(p, y)``. Results remember the library of the frame that came in.
    """
    call = DataCall(**vars(Call.of(function, OF_ROWS)), scores_first=scores_first)

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        positional, named = call.with_data(args, call.renamed(kwargs))
        call.check(positional, named)
        result = function(*positional, **named)  # type: ignore[arg-type]
        library = call.frame(positional, named)
        for one in result.values() if isinstance(result, dict) else (result,):
            if library and isinstance(one, Framed):
                one.remember(library)
        return result

    return called  # type: ignore[return-value]


@dataclass(frozen=True)
class DataCall(Call):
    """How a public function may be called that takes data."""

    scores_first: bool = False

    @cached_property
    def at(self) -> int:
        """The place of the data."""
        return next(self.places.index(n) for n in DATA if n in self.places)

    def frame(self, args: Placed, kwargs: Named) -> str:
        """The library of the frame that the data of a call came in."""
        return frame_of(args[self.at] if len(args) > self.at else kwargs.get(self.places[self.at]))

    def with_data(self, args: Placed, kwargs: Named) -> tuple[Placed, Named]:
        """The call with its rows as one value, if they came as arrays; and with groups that came as an array."""
        at = self.at
        before, rest = args[:at], args[at:]
        of_classifier = len(rest) > 2 and hasattr(rest[0], "classes_") and not hasattr(rest[0], "columns")
        arrays = len(rest) > 1 and _is_column(rest[0]) and (hasattr(rest[1], "columns") or holds_rows(rest[1]))
        if of_classifier:
            y, p, _ = answers_of(*rest[:3])  # type: ignore[arg-type]
            rest, covariates = rest[3:], _features(rest[1])  # type: ignore[arg-type]
            pair: Pair | None = (y, p)
        elif arrays:
            pair, rest, covariates = (rest[0], rest[1]), rest[2:], None
            pair = pair[::-1] if self.scores_first else pair
        elif "y_prob" in kwargs and ("y_true" in kwargs or (rest and not self.scores_first)):
            labels, rest = (kwargs.pop("y_true"), rest) if "y_true" in kwargs else (rest[0], rest[1:])
            pair, covariates = (labels, kwargs.pop("y_prob")), None
        else:
            pair, covariates = None, None
        if pair is None:
            data = rest[0] if rest else kwargs.get(self.places[at])
        else:
            if rest and (isinstance(rest[0], Mapping) or hasattr(rest[0], "columns")):
                covariates, rest = rest[0], rest[1:]
            kwargs = kwargs if covariates is None else {"covariates": covariates} | kwargs
            data, kwargs = self._rows(pair, kwargs)
        grouped = data
        if "by" in self.own and "by" in kwargs and isinstance(data, Predictions):
            grouped, kwargs["by"] = _by_column(data, kwargs["by"])
        if pair is None and grouped is data:
            return args, kwargs
        if len(before) < at or (pair is None and not rest):
            return before, kwargs | {self.places[at]: grouped}
        return (*before, grouped, *(rest if pair is not None else rest[1:])), kwargs

    def _rows(self, pair: Pair, kwargs: Named) -> tuple[object, Named]:
        """Labels and probabilities as one value, with what is named of rows; and the other arguments."""
        y, p = pair
        several = matrix_of(p, "y_prob")
        of_rows = OF_ROWS if several is None or several.shape[1] < 3 else OF_CLASSES
        inputs = {name: kwargs.pop(name) for name in of_rows if name in kwargs}
        make: Callable[..., object] = predictions if of_rows is OF_ROWS else multiclass_predictions
        return make(y, p, **inputs), kwargs


def holds_rows(value: object) -> bool:
    """Tell an array, or a list of numbers, from data, names, paths and tables."""
    return _is_column(value) and not any(isinstance(first, (str, PathLike)) for first in islice(value, 1))  # type: ignore[call-overload]


def _is_column(value: object) -> bool:
    """Tell an array or a list from data, a name, a mapping and a table."""
    if isinstance(value, (str, bytes, Mapping)) or hasattr(value, "columns") or getattr(value, "shape", None) == ():
        return False
    return isinstance(value, Iterable) and hasattr(value, "__len__")


def as_came(values: Floats, column: Frame) -> Frame:
    """Values of rows in the kind of series or frame that the rows came in: of pandas with its row labels, of Polars."""
    library, several = frame_of(column), values.ndim == 2
    if library == "pandas":
        one = column.iloc[:, -1] if hasattr(column, "columns") and not several else column
        names = {"columns": column.columns} if several else {"name": one.name}
        return type(one)(values, index=column.index, **names)
    if library == "polars" and not several:
        one = column.to_series(-1) if hasattr(column, "columns") else column
        return type(one)(one.name, values)
    return type(column)(values, schema=column.columns) if library == "polars" else values


def answers_of(
    estimator: Classifier, X: ArrayLike, y: ArrayLike, event: str | float | bool | None = None
) -> tuple[NDArray[np.int8], Floats, str | float | bool]:
    """The outcomes, 0 and 1, and the probabilities that a fitted classifier of two classes gives them; and the event.

    By default the event is the second of ``estimator.classes_``.
    """
    name = type(estimator).__name__
    if not hasattr(estimator, "predict_proba"):
        raise BadInput(f"{name} has no predict_proba: put it into calibrant.repair.CalibratedClassifier")
    classes = np.asarray(estimator.classes_).tolist()
    if len(classes) != 2:
        raise BadInput(
            f"{name} has {len(classes)} classes: pass y == k and predict_proba(X)[:, k], one class against the rest"
        )
    event = classes[1] if event is None else event
    if event not in classes:
        raise BadInput(f"pos_label={event!r} is no class of {name}: it has {', '.join(map(repr, classes))}")
    row, strange = next(((i, v) for i, v in enumerate(np.asarray(y).tolist()) if v not in classes), (-1, None))
    if row >= 0:
        known = ", ".join(map(repr, classes))
        raise BadInput(f"y has the label {strange!r} in row {row}: {name} has {known}, so leave such rows out")
    return (np.asarray(y) == event).astype(np.int8), estimator.predict_proba(X)[:, classes.index(event)], event


def _features(X: ArrayLike) -> object:
    """The features of a classifier as covariates: an array's are called x0, x1 and so on."""
    if hasattr(X, "columns") or isinstance(X, Mapping):
        return X
    array = np.asarray(dense(X, "X"))
    return {f"x{j}": array[:, j] for j in range(array.shape[1])} if array.ndim == 2 else None


def _by_column(data: Predictions, by: object) -> tuple[Predictions, object]:
    """Rows with the groups that came as one value a row, and the name of that covariate; names stay as they are."""
    if getattr(by, "shape", None) != (data.n,):
        return data, by
    covariates = {} if data.covariates is None else {n: data.covariates.column(n) for n in data.covariates.column_names}
    name = str(getattr(by, "name", None) or "group")
    index = index_of(by)
    if index is not None and not counts(index):
        raise BadInput(f"by= is a series with row labels of its own: pass it as the covariate {name!r} of the rows")
    table = predictions(data.y, data.p, {**covariates, name: by}).covariates
    out = replace(data, covariates=table, cache={})
    out.remember(data.library)
    return out, name
