"""Fitting a classifier to folds and a repair to what it says of the rows left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from calibrant.data.predictions import binary_predictions, predictions
from calibrant.errors import BadInput
from calibrant.repair.classifier_identities import row_identities
from calibrant.repair.classifier_scores import Said, answers, shares
from calibrant.repair.dirichlet import Dirichlet
from calibrant.repair.fitted import FittedMap
from calibrant.repair.jitter import Jittered


@dataclass(frozen=True)
class Repaired:
    """A fitted classifier and the maps of its scores.

    Parameters
    ----------
    estimator : classifier
    maps : tuple of FittedMap
        One for two classes, or for a repair of all classes at once; otherwise one a class.
    scale : float
        What decision values are divided by before they become scores; 1 for probabilities.
    """

    estimator: Any
    maps: tuple[FittedMap, ...]
    scale: float

    def probabilities(self, X: Any, columns: Any, classes: Any) -> Any:
        """Return repaired probabilities, float64 array of shape (n, K)."""
        said = answers(self.estimator, X, classes)
        if len(classes) > 2 and len(self.maps) == 1:
            return self.maps[0].scores(said.matrix(self.scale))
        ids = row_identities(X) if any(isinstance(m, Jittered) for m in self.maps) else None
        scores = said.scores(self.scale)
        if len(classes) == 2:
            p = self.maps[0].scores(scores, columns, ids)
            return np.column_stack([1.0 - p, p])
        every = zip(self.maps, scores.T, strict=True)
        return shares(np.column_stack([m.scores(p, columns, ids) for m, p in every]))


@dataclass(frozen=True)
class ClassifierFit:
    """Everything one fit is made of.

    Parameters
    ----------
    X, y : rows and labels
    index : int array of shape (n,)
        Labels as places in `classes`.
    classes : array of shape (K,)
    weights : float64 array of shape (n,) or None
    table : pyarrow.Table or None
        What the repair reads besides scores.
    params : dict
        For the classifier's fit.
    recipe : recipe
    pairwise : bool
        X is a matrix of kernels or distances between rows.
    """

    X: Any
    y: Any
    index: Any
    classes: Any
    weights: Any
    table: Any
    params: dict[str, Any]
    recipe: Any
    pairwise: bool = False

    def learnt(self, classes: Any) -> ClassifierFit:
        """Return the fit with labels coded by the classes of a classifier that was fitted before."""
        if strange := sorted({str(v) for v in np.unique(self.y) if v not in classes}):
            raise BadInput(f"y has the class {strange[0]!r}, which the fitted classifier does not know")
        return replace(self, classes=classes, index=np.searchsorted(classes, self.y))

    def rows(self, at: Any, trained_on: Any) -> Any:
        """Return rows of X, as a classifier trained on other rows takes them."""
        return self.X[np.ix_(at, trained_on)] if self.pairwise else _safe_indexing(self.X, at)

    def trained(self, estimator: Any, train: Any) -> Any:
        """Fit a classifier to the rows of a fold, or to all."""
        if train is None:
            return estimator.fit(self.X, self.y, **self.params)
        params = {k: _part(v, train, len(self.y)) for k, v in self.params.items()}
        return estimator.fit(self.rows(train, train), self.y[train], **params)

    def repaired(self, estimator: Any, said: Said, rows: Any) -> Repaired:
        """Fit the repair to what a classifier says of rows."""
        rows, said = self._counted(rows, said)
        if not len(rows):
            raise BadInput("sample_weight is 0 in every row of a fold: leave such rows out")
        table = None if self.table is None else self.table.take(rows)
        weights = None if self.weights is None else self.weights[rows]
        scale, index = said.spread(weights), self.index[rows]
        if len(self.classes) > 2 and isinstance(self.recipe, Dirichlet):
            if weights is not None and np.ptp(weights) > 0:
                raise BadInput("Dirichlet takes no sample_weight: leave it out, or use another repair")
            return Repaired(estimator, (self.recipe.fit(predictions(index, said.matrix(scale), table)),), scale)
        scores = said.scores(scale)
        columns = [(1, scores)] if len(self.classes) == 2 else list(enumerate(scores.T))
        maps = tuple(self.recipe.fit(binary_predictions(index == k, p, table, weights)) for k, p in columns)
        return Repaired(estimator, maps, scale)

    def _counted(self, rows: Any, said: Said) -> tuple[Any, Said]:
        if self.weights is None or self.weights[rows].all():
            return rows, said
        kept = self.weights[rows] > 0
        return rows[kept], replace(said, values=said.values[kept])


def checked_weights(weights: Any, n: int) -> Any:
    """Return weights as an array, None if there are none."""
    if weights is None:
        return None
    out = np.asarray(weights, dtype=np.float64)
    if out.shape != (n,):
        raise BadInput(f"sample_weight has shape {out.shape}: pass one weight for each of the {n} rows")
    if not (np.isfinite(out) & (out >= 0)).all():
        raise BadInput("sample_weight must be finite and not negative: leave rows out by the weight 0")
    if not out.any():
        raise BadInput("every sample_weight is zero: leave the weights out")
    return out


def checked_classes(classes: Any, index: Any, weights: Any) -> None:
    """Refuse labels of one class, by count or by weight."""
    there = index if weights is None else index[weights > 0]
    if len(np.unique(there)) < 2:
        raise BadInput(
            f"y has one class, {classes[there[0]]!r}, among rows that count: a repair needs two classes or more"
        )


def _part(value: Any, at: Any, n: int) -> Any:
    sized = hasattr(value, "shape") or isinstance(value, (list, tuple)) or hasattr(value, "iloc")
    rows = (
        0
        if not sized
        else value.shape[0]
        if getattr(value, "shape", ())
        else len(value)
        if hasattr(value, "__len__")
        else 0
    )
    return _safe_indexing(value, at) if rows == n else value
