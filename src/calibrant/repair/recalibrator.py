"""A scikit-learn estimator that repairs scores: fit and predict on arrays and frames of scores."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import Tags, check_array, indexable
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from calibrant.arguments import choice
from calibrant.errors import BadInput
from calibrant.repair.calibrators.curves import Platt
from calibrant.repair.calibrators.dirichlet import Dirichlet
from calibrant.repair.classifier_data import (
    ROUNDING,
    ClassCalibrators,
    ClassifierInputs,
    ClassRows,
    Features,
    Labelled,
    Labels,
    Stated,
    checked_recipe,
    chosen,
    table_of,
    wanted,
)
from calibrant.repair.fitted import Calibrator, Recipe
from calibrant.repair.regression import Floats

if TYPE_CHECKING:
    import pyarrow as pa

Scale = Literal["auto", "probability", "decision"]
SCALES: tuple[Scale, ...] = ("auto", "probability", "decision")
SUM = 1e-4  # rows of probabilities may miss one by this much


class Recalibrator(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Scores to probabilities, as a scikit-learn estimator: X holds the scores, and perhaps variables.

    Estimand: ``P(Y = class | the scores, and the variables)``, in the shape of the recipe.

    Parameters
    ----------
    recipe : recipe or str, optional
        Of `calibrant.repair`; ``Platt()`` by default. Searches reach its settings as ``recipe__ridge``. A word names
        one with default settings: ``"isotonic"``, ``"beta"``, ``"platt"`` (or scikit-learn's ``"sigmoid"``).
    scores : str, int, or sequence of these, optional
        The column of X that holds the score, by name or place; with three classes or more, a column a class in the
        order of `classes_`. By default the last column that is no variable, so that what ``predict_proba`` says of two
        classes can be passed as it is; with more classes, all columns that are no variable.
    variables : sequence of str or int, optional
        Columns of X that the recipe may read besides. By default those that the recipe itself names in its setting
        ``variables``, if it has one.
    scale : {"auto", "probability", "decision"}
        What the scores are: probabilities in [0, 1], as ``predict_proba`` gives them, or decision values of any size,
        as ``decision_function`` gives them, which are divided by about their standard deviation (by the median distance
        from the median, so that outliers do not set it) and passed through the logistic function. "auto" reads as
        probabilities what has their shape: a one-dimensional X, or a column a class whose rows sum to one; and as
        decision values what no probability can be. One column of numbers from 0 to 1 may be either: it reads
        probabilities, and warns. Name the scale.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Labels; the second of two is the event.
    decision_ : bool
        The scores are read as decision values.
    calibrators_ : tuple of Calibrator
        One, or with three classes or more one a class unless the recipe repairs all at once.
    calibrator_ : Calibrator
        The one map, whose ``to_json`` deploys it without pickle; `AttributeError` if there are several.
    n_features_in_, feature_names_in_
        Of X, as scikit-learn has them.

    Raises
    ------
    BadInput
        On `fit`: no recipe, a column that is not there, one class, scores that are missing or of another scale.
    NotComputable
        On `fit`: the recipe cannot be fitted to these scores.

    Notes
    -----
    **Assumes.** Rows that the model behind the scores was not trained on, independent but for `groups`.
    **Guarantee.** None by itself: judge with `calibrant.repair.evaluate` on rows that `fit` has not seen. **Method.**
    That of the recipe; with three classes or more, unless it repairs all at once, each class against the rest, rows
    divided by their sums. A one-dimensional X is probabilities. Rows of weight 0 do not enter the map; weights say how
    much a row counts relative to others, not how many rows it stands for. With
    ``sklearn.set_config(enable_metadata_routing=True)``, ask for ``sample_weight`` and ``groups`` by
    ``set_fit_request``. **Cost.** One fit of the recipe. **Reads.** Arrays, pandas and Polars; weights; `groups`, rows
    of one cluster, in recipes that deal rows into parts.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=5000)
    >>> y = rng.uniform(size=5000) < p**2
    >>> model = cal.repair.Recalibrator(cal.repair.Beta()).fit(p, y)
    >>> bool(0.2 < model.predict_proba([0.5])[0, 1] < 0.3)
    True
    """

    def __init__(
        self,
        recipe: Recipe | Dirichlet | str | None = None,
        *,
        scores: str | int | Sequence[str | int] | None = None,
        variables: str | int | Sequence[str | int] | None = None,
        scale: Scale = "auto",
    ) -> None:
        self.recipe = recipe
        self.scores = scores
        self.variables = variables
        self.scale = scale

    def fit(
        self, X: Features, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Fit the repair.

        Parameters
        ----------
        X : array-like or frame of shape (n, d), or probabilities of shape (n,)
        y : array-like of shape (n,)
            Labels, numbers or text.
        sample_weight : array-like of shape (n,), optional
        groups : array-like of shape (n,), optional
            Which rows share clusters.
        """
        recipe = checked_recipe("recipe", Platt() if self.recipe is None else self.recipe)
        choice("scale", self.scale, SCALES)
        if y is None:
            raise BadInput("Recalibrator requires y to be passed, but the target y is None")
        flat = not hasattr(X, "columns") and len(X.shape if hasattr(X, "shape") else _array(X).shape) == 1
        X, inputs = indexable(self._as_rows(X, reset=True), y)
        labels = Labelled.of(inputs, sample_weight)
        self.classes_, n = labels.classes, len(labels.y)
        named = wanted(self.variables, self.recipe)
        self._taken = chosen(X, named, self._labels()) if named else ClassifierInputs()
        self._at = self._scores(X, len(self.classes_))
        values = self._values(X, self._at)
        self.decision_ = self._are_decisions(X, values, flat) if self.scale == "auto" else self.scale == "decision"
        clusters = None if groups is None else column_or_1d(groups)
        if clusters is not None and len(clusters) != n:
            raise BadInput(f"groups has {len(clusters):,} values: pass one for each of the {n:,} rows")
        result = ClassRows(self._stated(values), labels, self._table(X), clusters).fitted(recipe)
        self.calibrators_, self._divisor = result.calibrators, result.scale
        return self

    def predict_proba(self, X: Features) -> Floats:
        """Repaired probabilities, float64 array of shape (n, K), columns in the order of `classes_`."""
        check_is_fitted(self)
        X = self._as_rows(X, reset=False)
        calibrators = ClassCalibrators(self.calibrators_, self._divisor)
        return calibrators.of(self._stated(self._values(X, self._at)), self._table(X), X)

    def transform(self, X: Features) -> Floats:
        """Repaired probabilities as features: of the event alone, shape (n, 1), or of three classes or more."""
        p = self.predict_proba(X)
        return p[:, 1:] if p.shape[1] == 2 else p

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:  # noqa: ARG002
        """The names of the columns of `transform`, which `set_output` gives a frame."""
        check_is_fitted(self)
        classes = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return np.array([f"probability_{c}" for c in classes], dtype=object)

    def predict(self, X: Features) -> Labels:
        """The label of the largest repaired probability."""
        check_is_fitted(self)
        labels: Labels = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    @property
    def calibrator_(self) -> Calibrator:
        """The fitted map."""
        calibrators: tuple[Calibrator, ...] = getattr(self, "calibrators_", ())
        if len(calibrators) != 1:
            raise AttributeError("one calibrator a class: see maps_" if calibrators else "not fitted yet")
        return calibrators[0]

    def _as_rows(self, X: Features, reset: bool) -> Features:
        """X as rows and columns; of one dimension it is a column of probabilities."""
        if issparse(X):
            check_array(X)  # says that sparse data are not taken
        X = X if hasattr(X, "shape") else _array(X)
        shape = X.shape
        if len(shape) == 1 and shape[0] and (reset or self.n_features_in_ == 1):
            column = check_array(X, ensure_2d=False, dtype=np.float64, input_name="X")
            if not ((column >= 0.0) & (column <= 1.0)).all():
                raise BadInput(
                    "Expected 2D array, got 1D array instead. Reshape your data: one-dimensional scores must be "
                    "probabilities from 0 to 1, pass decision values as a column, X.reshape(-1, 1)"
                )
            X, shape = column.reshape(-1, 1), (len(column), 1)
        if len(shape) == 1:
            raise BadInput("Expected 2D array, got 1D array instead. Reshape your data.")
        if not shape[0]:
            raise BadInput("X has 0 sample(s): a repair needs rows")
        if shape[1:] == (0,):
            raise BadInput(f"0 feature(s) (shape={shape}) while a minimum of 1 is required.")
        if wanted(self.variables, self.recipe) or (self.scores is not None and hasattr(X, "columns")):
            validate_data(self, X, skip_check_array=True, reset=reset)
            return X
        try:
            return validate_data(self, X, dtype=np.float64, reset=reset)
        except ValueError as e:
            if "could not convert" not in str(e):
                raise
            raise BadInput(
                f"X holds text ({e}): say which column holds the score, scores=, or is read, variables="
            ) from e

    def _labels(self) -> Sequence[str]:
        """The columns' names, which validation takes from a frame."""
        return getattr(self, "feature_names_in_", ())

    def _scores(self, X: Features, classes: int) -> tuple[int, ...]:
        """The places of the columns that hold scores."""
        if self.scores is not None:
            options = (self.scores,) if isinstance(self.scores, (str, int)) else tuple(self.scores)
            at = chosen(X, options, self._labels()).at
        else:
            at = tuple(j for j in range(self.n_features_in_) if j not in self._taken.at)
            at = at[-1:] if classes == 2 else at
        if not at:
            raise BadInput(
                f"X has {self.n_features_in_} feature(s), all of them variables: add the column of the score"
            )
        if classes == 2 and len(at) != 1:
            raise BadInput(f"scores={self.scores!r} names {len(at):,} columns: of two classes one holds the score")
        if classes > 2 and len(at) != classes:
            raise BadInput(
                f"Only binary classification is supported. The type of the target is multiclass: unless X holds a "
                f"score for each class; y has {classes} classes, and scores are {len(at)} of X's columns (scores= says "
                "which)"
            )
        return at

    def _are_decisions(self, X: Features, values: Floats, flat: bool) -> bool:
        """Tell decision values from probabilities by their shape; warn of what may be either."""
        if flat:
            return False
        if not ((values >= -ROUNDING) & (values <= 1.0 + ROUNDING)).all():
            return True
        others = tuple(j for j in range(self.n_features_in_) if j not in self._taken.at)
        pair = values.ndim == 1 and len(others) == 2 and self._at[0] in others
        try:
            every = self._values(X, others) if pair else values
        except ValueError:  # the other column is text
            every = values
        if every.ndim == 2 and (every >= -ROUNDING).all() and np.abs(every.sum(axis=1) - 1.0).max() <= SUM:
            return False
        warnings.warn(
            f"X holds scores from {values.min():.6g} to {values.max():.6g}, read as probabilities; they may be "
            "decision values too: pass scale='probability' for those of predict_proba, scale='decision' for those of "
            "decision_function",
            UserWarning,
            stacklevel=3,
        )
        return False

    def _values(self, X: Features, at: tuple[int, ...]) -> Floats:
        """Columns of scores, shape (n,) of one or (n, K)."""
        if isinstance(X, np.ndarray):
            kept = X[:, at]
        else:
            columns = ClassifierInputs(at, tuple(f"score {j}" for j in at)).of(X)
            kept = np.column_stack([np.asarray(columns[f"score {j}"]) for j in at])  # type: ignore[index]
        out: Floats = check_array(kept, dtype=np.float64, input_name="X")
        return out[:, 0] if len(at) == 1 else out

    def _stated(self, values: Floats) -> Stated:
        if not self.decision_:
            wrong = (values < -ROUNDING) | (values > 1.0 + ROUNDING)
            if wrong.any():
                raise BadInput(
                    f"X holds the score {values[wrong].flat[0]:.6g}: probabilities lie in [0, 1]; did you pass logits? "
                    "Then fit with scale='decision'"
                )
            values = np.clip(values, 0.0, 1.0)
        return Stated(values, self.decision_)

    def _table(self, X: Features) -> pa.Table | None:
        return table_of(self._taken.of(X), X.shape[0] if hasattr(X, "shape") else len(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # not of any X: of several classes it needs a column each, and the score may say nothing of the label
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        tags.input_tags.string = tags.input_tags.categorical = bool(wanted(self.variables, self.recipe))
        return tags


def _array(X: Features) -> NDArray[np.generic]:
    """Lists of rows as an array, in which numbers next to text stay numbers."""
    out = np.asarray(X)
    return np.asarray(X, dtype=object) if out.dtype.kind in "US" else out
