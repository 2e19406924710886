"""Maps of what a classifier says of its classes: one of them all, or one for each, fitted with or without weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data.predictions import MulticlassPredictions, Predictions, multiclass_predictions, predictions
from calibrant.errors import BadInput
from calibrant.repair.calibrators.dirichlet import Dirichlet
from calibrant.repair.calibrators.display import Jittered
from calibrant.repair.catalogue import recipes
from calibrant.repair.classifier_data import Labels, Stated, shares
from calibrant.repair.fitted import Calibrator, Hashes, Recipe
from calibrant.repair.regression import Floats, Whole
from calibrant.repair.tunable import Tunable

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ClassCalibrators:
    """Fitted maps of what a classifier says.

    Parameters
    ----------
    calibrators : tuple of Calibrator
        One for two classes, or for a repair of all classes at once; otherwise one a class.
    scale : float
        What decision values are divided by before they become scores; 1 for probabilities.
    """

    calibrators: tuple[Calibrator, ...]
    scale: float

    @property
    def draw(self) -> bool:
        """Whether a map draws, by the identity of a row."""
        return any(isinstance(m, Jittered) for m in self.calibrators)

    def of(self, stated: Stated, columns: pa.Table | None, ids: Hashes | None = None) -> Floats:
        """Return repaired probabilities, float64 array of shape (n, K)."""
        if self.calibrators[0].several:
            return self.calibrators[0].scores(stated.matrix(self.scale), columns=columns)
        scores = stated.scores(self.scale)
        if scores.ndim == 1:
            p = self.calibrators[0].scores(scores, columns=columns, ids=ids)
            return np.column_stack([1.0 - p, p])
        every = zip(self.calibrators, scores.T, strict=True)
        return shares(np.column_stack([m.scores(p, columns=columns, ids=ids) for m, p in every]))


@dataclass(frozen=True)
class ClassRows:
    """Rows to fit maps on."""

    stated: Stated  # what the classifier says of them
    index: Whole  # shape (n,): labels as numbers of classes
    classes: int  # K
    table: pa.Table | None = None  # what the repair reads besides scores
    weights: Floats | None = None  # shape (n,): positive
    groups: Labels | None = None  # shape (n,): which rows share clusters

    def counted(self) -> ClassRows:
        """The rows whose weight is not 0."""
        if self.weights is None or self.weights.all():
            return self
        kept = np.flatnonzero(self.weights)
        return ClassRows(
            replace(self.stated, values=self.stated.values[kept]),
            self.index[kept],
            self.classes,
            None if self.table is None else self.table.take(kept),
            self.weights[kept],
            None if self.groups is None else self.groups[kept],
        )

    def fitted(self, recipe: Recipe | Dirichlet) -> ClassCalibrators:
        """Fit one map of two classes or of all at once, or one of each class against the rest."""
        scale = self.stated.spread(self.weights)
        fit: Callable[[Predictions | MulticlassPredictions], Calibrator] = recipe.fit  # type: ignore[assignment]
        if at_once(recipe, self.classes):
            return ClassCalibrators((fit(self._all(self.stated.matrix(scale), type(recipe).__name__)),), scale)
        scores = self.stated.scores(scale)
        columns = [(1, scores)] if self.classes == 2 else list(enumerate(scores.T))
        return ClassCalibrators(tuple(fit(self._one(self.index == k, p)) for k, p in columns), scale)

    def _one(self, happened: NDArray[np.bool_], p: Floats) -> Predictions:
        """The rows for a repair of one class against the rest."""
        return predictions(happened, p, self.table, weights=self.weights, cluster=self.groups)

    def _all(self, p: Floats, recipe: str) -> MulticlassPredictions:
        """The rows for a repair of all classes: of two too, which are no `multiclass_predictions`."""
        if self.groups is not None:
            raise BadInput(f"{recipe} of all classes at once takes no groups: leave them out, or use another repair")
        if self.classes > 2:
            return multiclass_predictions(self.index, p, self.table, weights=self.weights)
        return MulticlassPredictions(y=self.index.astype(np.int32), p=p, covariates=self.table, weights=self.weights)


def at_once(one: object, classes: int) -> bool:
    """Whether a recipe repairs so many classes at once; two only if it has no map of two."""
    entry = recipes().get(type(one).__name__)
    if entry is None or not isinstance(one, entry.recipe):
        return False
    return entry.fits(several=True) and (classes > 2 or not entry.fits(several=False))


def checked_recipe(name: str, recipe: object) -> Recipe | Dirichlet:
    """Return a recipe; refuse classes, and estimators, whose fit wants other things."""
    own = isinstance(recipe, Tunable) or not hasattr(recipe, "get_params")
    if isinstance(recipe, type) or not callable(getattr(recipe, "fit", None)) or not own:
        raise BadInput(f"{name}={recipe!r}: pass a recipe of calibrant.repair, such as Platt()")
    return cast("Recipe | Dirichlet", recipe)


def checked_weights(weights: ArrayLike | None, n: int) -> Floats | None:
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


def checked_classes(classes: Labels, index: Whole, weights: Floats | None) -> None:
    """Refuse labels of one class, by count or by weight."""
    there = index if weights is None else index[weights > 0]
    if len(np.unique(there)) < 2:
        raise BadInput(
            f"y has one class, {classes[there[0]]!r}, among rows that count: a repair needs two classes or more"
        )
