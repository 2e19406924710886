"""What a classifier is given and says, and the maps of that: covariates by name, scores in [0, 1], identities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from calibrant.data.classes.rows import multiclass_predictions
from calibrant.data.predictions import MulticlassPredictions, Predictions, predictions
from calibrant.errors import BadInput
from calibrant.kernels.draws import mix
from calibrant.repair.calibrators.dirichlet import Dirichlet
from calibrant.repair.calibrators.display import Jittered
from calibrant.repair.catalogue import Tunable, recipe_named, recipes
from calibrant.repair.fitted import Calibrator, Hashes, Recipe
from calibrant.repair.regression import Floats, Whole, expit, softmax

if TYPE_CHECKING:
    import pyarrow as pa
    from sklearn.base import BaseEstimator

Features: TypeAlias = Any  # rows of X: an array, a sparse matrix or a frame, as scikit-learn takes them
Labels = NDArray[np.generic]
Columns: TypeAlias = Mapping[str, Features] | Features  # covariates, as `calibrant.predictions` takes them

# ---- Covariates of a repair, taken by name from the features that a scikit-learn classifier is given ----


@dataclass(frozen=True)
class ClassifierInputs:
    """Columns of X that the repair reads: their places, and the names by which its maps know them."""

    at: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def of(self, X: Features) -> Columns | None:
        """The columns as `calibrant.predictions` takes them, or None if there are none."""
        if not self.at:
            return None
        if not hasattr(X, "iloc") and hasattr(X, "__arrow_c_stream__"):
            import pyarrow as pa

            table = pa.RecordBatchReader.from_stream(X).read_all()
            return table.select(list(self.at)).rename_columns(list(self.names))
        return {name: _column(X, j) for j, name in zip(self.at, self.names, strict=True)}


def wanted(variables: str | int | Sequence[str | int] | None, recipe: object) -> Sequence[str | int] | None:
    """The variables that are named here, or else by the recipe."""
    names = getattr(recipe, "variables", None) if variables is None else variables
    return (names,) if isinstance(names, (str, int)) else names


def chosen(X: Features, variables: Sequence[str | int], names: Sequence[str] = ()) -> ClassifierInputs:
    """Find variables among the columns of X: by name in a frame, by number or as ``"x0"`` in an array.

    A frame whose columns are not all named by text has none of its own, as scikit-learn reads it: ``"x0"`` finds them.
    `names` are those of an array that was a frame. Refuse a column that is not there, or is named twice.
    """
    labels = list(getattr(X, "columns", names))
    if labels and all(isinstance(label, str) for label in labels):
        names = [str(label) for label in labels]
    else:
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        if len(shape) != 2:
            raise BadInput(f"variables={tuple(variables)!r}: X has no columns, pass covariates= instead")
        names = [f"x{j}" for j in range(shape[1])]
    at = tuple(_place(v, names) for v in variables)
    if len(set(at)) < len(at):
        raise BadInput(f"variables={tuple(variables)!r} names a column twice: name each once")
    return ClassifierInputs(at, tuple(names[j] for j in at))


def _place(variable: str | int, names: list[str]) -> int:
    if isinstance(variable, (int, np.integer)) and not isinstance(variable, bool):
        if 0 <= variable < len(names):
            return int(variable)
    elif (many := names.count(str(variable))) == 1:
        return names.index(str(variable))
    elif many:
        raise BadInput(f"variables: X has {many} columns {variable!r}: give each its own name")
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise BadInput(f"variables: X has no column {variable!r}; it has {shown}")


def _column(X: Features, j: int) -> Features:
    if hasattr(X, "iloc"):
        return X.iloc[:, j]
    if hasattr(X, "tocsc"):
        return X[:, [j]].toarray().ravel()
    return np.asarray(X)[:, j] if hasattr(X, "shape") else np.asarray([row[j] for row in X])


def table_of(columns: Columns | None, n: int) -> pa.Table | None:
    """Columns as an Arrow table of n rows, or None."""
    return None if columns is None else predictions(np.zeros(n, dtype=np.int8), np.zeros(n), columns).covariates


# ---- What a fitted scikit-learn classifier says of rows, as scores in [0, 1] that a repair can read ----

NORMAL = 1.4826  # of normal values: the standard deviation over the median distance from the median
ROUNDING = 1e-6  # single-precision probabilities may pass 0 and 1 by this much


@dataclass(frozen=True)
class Stated:
    """Answers of a classifier."""

    # Shape (n,) or (n, K): probabilities, the second column's only if there are two classes; or decision values.
    values: Floats
    decision: bool  # they are decision values

    def scores(self, scale: float) -> Floats:
        """Scores in [0, 1]: probabilities as they are, decision values by ``expit(d / scale)``."""
        return expit(self.values / scale) if self.decision else self.values

    def matrix(self, scale: float) -> Floats:
        """Scores of all classes whose rows add up to one."""
        if self.values.ndim == 1:
            p = self.scores(scale)
            return np.column_stack([1.0 - p, p])
        return softmax(self.values / scale) if self.decision else shares(self.values)

    def spread(self, weights: Floats) -> float:
        """About the standard deviation of decision values, 1 if there is none or for probabilities.

        It is the median distance from the median, of the values that are elsewhere, so that no outlier sets it.
        """
        if not self.decision:
            return 1.0
        each, values = np.repeat(weights, self.values[0].size), self.values.reshape(-1)
        away = np.abs(values - _median(values, each))
        apart = (away > 0.0) & (each > 0.0)
        return NORMAL * _median(away[apart], each[apart]) if apart.any() else 1.0


def _median(values: Floats, weights: Floats) -> float:
    """The least value that half of the weight is at or below."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, 0.5 * total[-1] * (1.0 - 1e-12))])


def answers(estimator: BaseEstimator, X: Features, classes: Labels) -> Stated:
    """Ask a fitted classifier for probabilities, or for decision values if it has none.

    Refuse one that has neither, did not learn the same classes, or says something that is not a probability.
    """
    name = type(estimator).__name__
    if not hasattr(estimator, "predict_proba") and not hasattr(estimator, "decision_function"):
        raise BadInput(f"{name} has neither predict_proba nor decision_function: pass a classifier that has one")
    if not np.array_equal(estimator.classes_, classes):
        raise BadInput(
            f"{name} learnt the classes {_listed(estimator.classes_)} and y has {_listed(classes)}: "
            "choose folds (cv) whose training rows hold every class"
        )
    if hasattr(estimator, "predict_proba"):
        values, decision = np.asarray(estimator.predict_proba(X), dtype=np.float64), False
    else:
        values, decision = np.asarray(estimator.decision_function(X), dtype=np.float64), True
    if not np.isfinite(values).all():
        raise BadInput(f"{name} gives scores that are missing or infinite: check the rows it is given")
    if decision:
        if len(classes) > 2 and values.shape != (len(values), len(classes)):
            raise BadInput(f"{name} gives decision values of shape {values.shape}: ask it for one column a class")
        return Stated(values, True)
    values = values[:, 1] if len(classes) == 2 else values
    if values.size and (values.min() < -ROUNDING or values.max() > 1 + ROUNDING):
        raise BadInput(f"{name}.predict_proba gives {values.min():.6g} to {values.max():.6g}: it must lie in [0, 1]")
    return Stated(np.clip(values, 0.0, 1.0), False)


def stacked(parts: list[Stated], rows: list[Whole], n: int) -> Stated:
    """Put the answers of several classifiers, each about its own rows, into one array."""
    values = np.empty((n, *parts[0].values.shape[1:]))
    for part, index in zip(parts, rows, strict=True):
        values[index] = part.values
    return Stated(values, parts[0].decision)


def shares(scores: Floats) -> Floats:
    """Divide rows by their sums; a row of zeros becomes equal shares."""
    total = scores.sum(axis=1, keepdims=True)
    return np.where(total > 0, scores / np.where(total > 0, total, 1.0), 1.0 / scores.shape[1])


def _listed(classes: Labels) -> str:
    few = ", ".join(repr(c) for c in np.asarray(classes).tolist()[:6])
    return f"{few}, ..." if len(classes) > 6 else few


# ---- Who a row of features is, to a map that draws: the same features, the same draw, wherever the row stands ----


def row_identities(X: Features) -> Hashes:
    """One uint64 a row that depends on the row's values and the order of the columns alone."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    out = np.zeros(n, dtype=np.uint64)
    if hasattr(X, "tocoo"):
        cells = X.tocoo()
        row, column = cells.coords if hasattr(cells, "coords") else (cells.row, cells.col)
        np.add.at(out, row, mix(_bits(cells.data) ^ mix(column.astype(np.uint64))))
        return mix(out)
    for column in _columns(X):
        out = mix(out ^ _bits(column))
    return out


def _columns(X: Features) -> list[NDArray[np.generic]]:
    if hasattr(X, "iloc"):
        return [X.iloc[:, j].to_numpy() for j in range(X.shape[1])]
    if hasattr(X, "columns"):
        return [X[name].to_numpy() for name in X.columns]
    values = np.asarray(X)
    return list(values.reshape(len(values), -1).T)


def _bits(column: NDArray[np.generic]) -> Hashes:
    if np.asarray(column).dtype.kind in "fiub":
        return (np.asarray(column, dtype=np.float64) + 0.0).view(np.uint64)  # + 0.0: -0 is 0
    distinct, which = np.unique(np.asarray(column).astype(str), return_inverse=True)
    hashes = [int.from_bytes(blake2b(v.encode(), digest_size=8).digest(), "little") for v in distinct.tolist()]
    return np.array(hashes, dtype=np.uint64)[which]


# ---- Maps of what a classifier says of its classes: one of them all, or one for each ----


@dataclass(frozen=True)
class ClassCalibrators:
    """Fitted maps of what a classifier says."""

    # One for two classes, or for a repair of all classes at once; otherwise one a class.
    calibrators: tuple[Calibrator, ...]
    scale: float  # what decision values are divided by before they become scores; 1 for probabilities

    def of(self, stated: Stated, columns: pa.Table | None, X: Features) -> Floats:
        """Repaired probabilities, float64 array of shape (n, K); a map that draws does so by the row of X."""
        if self.calibrators[0].several:
            return self.calibrators[0].scores(stated.matrix(self.scale), columns=columns)
        ids = row_identities(X) if any(isinstance(m, Jittered) for m in self.calibrators) else None
        scores = stated.scores(self.scale)
        if scores.ndim == 1:
            p = self.calibrators[0].scores(scores, columns=columns, ids=ids)
            return np.column_stack([1.0 - p, p])
        every = zip(self.calibrators, scores.T, strict=True)
        return shares(np.column_stack([m.scores(p, columns=columns, ids=ids) for m, p in every]))


@dataclass(frozen=True)
class Labelled:
    """Labels of rows, and how much each row counts."""

    y: Labels
    classes: Labels  # shape (K,)
    index: Whole  # labels as places in `classes`
    weights: Floats  # ones where none were named

    @classmethod
    def of(cls, y: ArrayLike, sample_weight: ArrayLike | None) -> Labelled:
        """Check labels and weights; refuse labels of one class, by count or by weight."""
        labels: Labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        classes, index = np.unique(labels, return_inverse=True)
        weights = checked_weights(sample_weight, len(labels))
        there = index[weights > 0]
        if len(np.unique(there)) < 2:
            raise BadInput(
                f"y has one class, {classes[there[0]]!r}, among rows that count: a repair needs two classes or more"
            )
        return cls(labels, classes, index, weights)

    @cached_property
    def unweighted(self) -> bool:
        """Every row counts as one."""
        return bool((self.weights == 1.0).all())

    def take(self, rows: Whole) -> Labelled:
        """Those of some rows."""
        return replace(self, y=self.y[rows], index=self.index[rows], weights=self.weights[rows])


@dataclass(frozen=True)
class ClassRows:
    """Rows to fit maps on."""

    stated: Stated  # what the classifier says of them
    labels: Labelled
    table: pa.Table | None = None  # what the repair reads besides scores
    groups: Labels | None = None  # shape (n,): which rows share clusters

    def _counted(self) -> ClassRows:
        """The rows whose weight is not 0."""
        if self.labels.unweighted:
            return self
        kept = np.flatnonzero(self.labels.weights)
        if not len(kept):
            raise BadInput("sample_weight is 0 in every row of a fold: leave such rows out")
        return ClassRows(
            replace(self.stated, values=self.stated.values[kept]),
            self.labels.take(kept),
            None if self.table is None else self.table.take(kept),
            None if self.groups is None else self.groups[kept],
        )

    def fitted(self, recipe: Recipe | Dirichlet) -> ClassCalibrators:
        """Fit one map of two classes or of all at once, or one of each class against the rest, to rows that count."""
        rows = self._counted()
        index, classes = rows.labels.index, len(rows.labels.classes)
        scale = rows.stated.spread(rows.labels.weights)
        weights = None if rows.labels.unweighted else rows.labels.weights  # without weights fits are faster
        fit: Callable[[Predictions | MulticlassPredictions], Calibrator] = recipe.fit  # type: ignore[assignment]
        if not at_once(recipe, classes):
            scores = rows.stated.scores(scale)
            columns = [(1, scores)] if classes == 2 else list(enumerate(scores.T))
            each = (predictions(index == k, p, rows.table, weights=weights, cluster=rows.groups) for k, p in columns)
            return ClassCalibrators(tuple(map(fit, each)), scale)
        if self.groups is not None:
            name = type(recipe).__name__
            raise BadInput(f"{name} of all classes at once takes no groups: leave them out, or use another repair")
        p = rows.stated.matrix(scale)
        if classes > 2:
            data = multiclass_predictions(index, p, rows.table, weights=weights)
        else:  # of two too, which are no `multiclass_predictions`
            data = MulticlassPredictions(y=index.astype(np.int32), p=p, covariates=rows.table, weights=weights)
        return ClassCalibrators((fit(data),), scale)


def at_once(one: object, classes: int) -> bool:
    """Whether a recipe repairs so many classes at once; two only if it has no map of two."""
    entry = recipes().get(type(one).__name__)
    if entry is None or not isinstance(one, entry.recipe):
        return False
    return entry.fits(several=True) and (classes > 2 or not entry.fits(several=False))


def checked_recipe(name: str, recipe: object) -> Recipe | Dirichlet:
    """A recipe, which may be named by a word; refuse classes, and estimators, whose fit wants other things."""
    recipe = recipe_named(name, recipe) if isinstance(recipe, str) else recipe
    own = isinstance(recipe, Tunable) or not hasattr(recipe, "get_params")
    if isinstance(recipe, type) or not callable(getattr(recipe, "fit", None)) or not own:
        raise BadInput(f"{name}={recipe!r}: pass a recipe of calibrant.repair, such as Platt() or 'platt'")
    return cast("Recipe | Dirichlet", recipe)


def checked_weights(weights: ArrayLike | None, n: int) -> Floats:
    """Weights as an array, ones if there are none."""
    if weights is None:
        return np.ones(n)
    out = np.asarray(weights, dtype=np.float64)
    if out.shape != (n,):
        raise BadInput(f"sample_weight has shape {out.shape}: pass one weight for each of the {n:,} rows")
    if not (np.isfinite(out) & (out >= 0)).all():
        raise BadInput("sample_weight must be finite and not negative: leave rows out by the weight 0")
    if not out.any():
        raise BadInput("every sample_weight is zero: leave the weights out")
    return out
