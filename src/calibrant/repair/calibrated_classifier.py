"""A scikit-learn classifier whose probabilities are repaired."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, Tags, _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from calibrant.errors import BadInput
from calibrant.repair.calibrators.curves import Platt
from calibrant.repair.calibrators.dirichlet import Dirichlet
from calibrant.repair.classifier_data import (
    ClassCalibrators,
    ClassifierInputs,
    ClassRows,
    Columns,
    Features,
    Labelled,
    Labels,
    Stated,
    answers,
    checked_recipe,
    chosen,
    stacked,
    table_of,
    wanted,
)
from calibrant.repair.fitted import Calibrator, Recipe
from calibrant.repair.regression import Floats, Whole

if TYPE_CHECKING:
    import pyarrow as pa

Metadata = dict[str, object]  # what scikit-learn passes on by name

# ---- Fitting a classifier to folds and a repair to what it says of the rows left out ----


@dataclass(frozen=True)
class Repaired(ClassCalibrators):
    """A fitted classifier and the maps of its scores."""

    estimator: BaseEstimator

    def probabilities(self, X: Features, columns: pa.Table | None, classes: Labels) -> Floats:
        """Repaired probabilities, float64 array of shape (n, K)."""
        return self.of(answers(self.estimator, X, classes), columns, X)


@dataclass(frozen=True)
class ClassifierFit:
    """Everything one fit is made of."""

    X: Features
    labels: Labelled
    # What the repair reads besides scores; asked once the classifier has said what is wrong with X.
    table: Callable[[], pa.Table | None]
    params: Metadata  # for the classifier's fit
    recipe: Recipe | Dirichlet
    pairwise: bool = False  # X is a matrix of kernels or distances between rows

    def learnt(self, classes: Labels) -> ClassifierFit:
        """The fit with labels coded by the classes of a classifier that was fitted before."""
        y = self.labels.y
        if strange := sorted({str(v) for v in np.unique(y) if v not in classes}):
            raise BadInput(f"y has the class {strange[0]!r}, which the fitted classifier does not know")
        return replace(self, labels=replace(self.labels, classes=classes, index=np.searchsorted(classes, y)))

    def rows(self, at: Whole, trained_on: Whole) -> Features:
        """Rows of X, as a classifier trained on other rows takes them."""
        return self.X[np.ix_(at, trained_on)] if self.pairwise else _safe_indexing(self.X, at)

    def trained(self, estimator: BaseEstimator, train: Whole | None) -> BaseEstimator:
        """Fit a classifier to the rows of a fold, or to all."""
        y = self.labels.y
        if train is None:
            return estimator.fit(self.X, y, **self.params)
        params = {k: _part(v, train, len(y)) for k, v in self.params.items()}
        return estimator.fit(self.rows(train, train), y[train], **params)

    def repaired(self, estimator: BaseEstimator, stated: Stated, rows: Whole) -> Repaired:
        """Fit the repair to what a classifier says of rows."""
        table = self.table()
        data = ClassRows(stated, self.labels.take(rows), None if table is None else table.take(rows))
        return Repaired(estimator=estimator, **vars(data.fitted(self.recipe)))


def _part(value: object, at: Whole, n: int) -> object:
    """The rows of a fold of what has one entry a row, and anything else as it is."""
    rows = len(value) if isinstance(value, (list, tuple)) else next(iter(getattr(value, "shape", ())), -1)
    return _safe_indexing(value, at) if rows == n else value


# ---- A scikit-learn classifier whose probabilities are repaired ----


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    r"""A scikit-learn classifier with its probabilities repaired by any recipe of `calibrant.repair`.

    Estimand: ``P(Y = class | the classifier's score, and the variables)``, in the shape of the recipe.

    Parameters
    ----------
    estimator : classifier, optional
        With ``predict_proba``, or else ``decision_function``; `sklearn.linear_model.LogisticRegression` by default.
        Wrap a fitted one in `sklearn.frozen.FrozenEstimator` to keep it as it is.
    repair : recipe or str, optional
        ``Platt()`` by default; a word names one with default settings, such as ``"isotonic"``. `Dirichlet`, and with
        three classes or more `VariableTree`, repair all classes at once; any other repairs each of three or more
        against the rest, and the rows are divided by their sums.
    variables : sequence of str or int, optional
        Columns of X that the repair may read: names, or places (``"x0"`` or 0 is the first column of an array). With
        ``covariates=`` given to `fit`, columns of those. By default the columns that the recipe itself names in its
        setting ``variables``, if it has one; otherwise none of X, and all of ``covariates=``.
    cv : int, splitter, iterable of splits, or "prefit"
        How rows are divided for scores out of fold; an int means so many stratified folds, or as
        many as the rarest class has rows if those are fewer (`folds_` states how many). ``"prefit"``: `estimator`
        is fitted already, is never changed, and all rows passed to `fit` serve the repair: they must not be its
        training rows.
    ensemble : bool
        False: scores out of fold fit one map, and the classifier is fitted again to all rows. True: each fold's
        classifier keeps the map fitted on the rows it left out, and the probabilities are averaged, as scikit-learn
        does.
    n_jobs : int, optional
        Processes over the folds.
    method : recipe or str, optional
        `repair` under the name that it has in `sklearn.calibration.CalibratedClassifierCV`.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Labels; the second of two is the event.
    repaired_ : tuple of Repaired
        Classifiers and their maps: one, or with ``ensemble=True`` one a fold.
    folds_ : int
        Folds used; 0 if the classifier was fitted already.
    estimator_ : classifier
        The fitted classifier; with ``ensemble=True`` there are several and this raises `AttributeError`.
    calibrator_ : Calibrator
        The one map, whose ``to_json`` deploys it without pickle; `AttributeError` if there are several.
    n_features_in_, feature_names_in_
        Of X, as scikit-learn has them.

    Raises
    ------
    BadInput
        On `fit`: something that is not a recipe, a column that is not there, one class, a class of one row.
    NotComputable
        On `fit`: the recipe cannot be fitted to these scores.

    Notes
    -----
    **Assumes.** Rows are independent, or a group splitter keeps those together that are not. With ``ensemble=False``,
    that the classifier fitted to all rows errs as those fitted to parts of them do: with few rows it is a little less
    wrong, and the one map corrects slightly too much. **Guarantee.** None by itself: judge with
    `calibrant.repair.evaluate` on rows that `fit` has not seen. **Method.** Decision values d become scores ``expit(d /
    s)``, s about their standard deviation over the rows of the fit, by the median distance from the median. Rows of
    weight 0 do not enter the map. `Jitter` draws by the row's features, so that the same features are always shown the
    same score, alone or among others. Metadata: with
    ``sklearn.set_config(enable_metadata_routing=True)``, ``covariates`` is requested by ``set_fit_request``,
    ``set_predict_proba_request`` and the like, ``groups`` goes to the splitter and the rest where it is requested;
    without routing, ``groups`` goes to the splitter and the rest to the classifier's fit. **Cost.** ``cv`` fits of the
    classifier and one more; one map. **Reads.** pandas, Polars, arrays and sparse matrices; weights.

    References
    ----------
    Platt, "Probabilistic outputs for support vector machines", Advances in Large Margin Classifiers (1999), section
    2.1, for scores out of fold.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.normal(size=(2000, 1)), 4, axis=1)  # four times the same: naive Bayes is too sure
    >>> y = np.where(rng.normal(size=2000) < X[:, 0], "bought", "left")
    >>> model = cal.repair.CalibratedClassifier(GaussianNB(), cal.repair.Platt()).fit(X, y)
    >>> bool(0.2 < model.calibrator_.slope < 0.6), model.classes_.tolist()
    (True, ['bought', 'left'])
    """

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        repair: Recipe | Dirichlet | str | None = None,
        *,
        variables: Sequence[str | int] | None = None,
        cv: object = 5,
        ensemble: bool = False,
        n_jobs: int | None = None,
        method: Recipe | Dirichlet | str | None = None,
    ) -> None:
        self.estimator = estimator
        self.repair = repair
        self.variables = variables
        self.cv = cv
        self.ensemble = ensemble
        self.n_jobs = n_jobs
        self.method = method

    def fit(
        self,
        X: Features,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        covariates: Columns | None = None,
        **params: object,
    ) -> Self:
        """Fit the classifier and the repair of its probabilities.

        Parameters
        ----------
        X : array-like or frame of shape (n, d)
        y : array-like of shape (n,)
            Labels, numbers or text.
        sample_weight : array-like of shape (n,), optional
        covariates : frame or mapping of n rows, optional
            Variables for the repair that the classifier does not see.
        **params
            ``groups`` for the splitter, and whatever the classifier's fit takes; see Notes on routing.
        """
        if y is None:
            raise BadInput("CalibratedClassifier requires y to be passed, but the target y is None")
        X, inputs = indexable(X, y)
        if not len(inputs):
            raise BadInput("X has 0 sample(s): a repair needs rows")
        if np.shape(X)[1:] == (0,):
            raise BadInput(f"0 feature(s) (shape={np.shape(X)}) while a minimum of 1 is required.")
        validate_data(self, X, skip_check_array=True)
        labels = Labelled.of(inputs, sample_weight)
        self.classes_ = labels.classes
        params = params if sample_weight is None else {**params, "sample_weight": labels.weights}
        to_split, to_fit = self._routed(params)
        self._taken, self._attached = self._columns(X, covariates)
        recipe = checked_recipe("repair" if self.method is None else "method", self._named())
        pairwise = get_tags(self._base()).input_tags.pairwise
        fit = ClassifierFit(X, labels, lambda: self._table(X, covariates, len(labels.y)), to_fit, recipe, pairwise)
        self.repaired_ = tuple(self._repaired(fit, to_split))
        return self

    def _named(self) -> object:
        """The repair, under either of its names."""
        if self.method is not None and self.repair is not None:
            raise BadInput("method= and repair= are one argument: pass one of the two")
        named = self.repair if self.method is None else self.method
        return Platt() if named is None else named

    def _base(self) -> BaseEstimator:
        if self.estimator is not None:
            return self.estimator
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression()

    def _columns(self, X: Features, covariates: Columns | None) -> tuple[ClassifierInputs, tuple[str, ...] | None]:
        """Decide which columns of X the repair reads, or which of the covariates passed in addition to it."""
        named = wanted(self.variables, self._named())
        if covariates is not None:
            return ClassifierInputs(), () if named is None else tuple(str(v) for v in named)
        return (ClassifierInputs() if named is None else chosen(X, named)), None

    def _table(self, X: Features, covariates: Columns | None, n: int) -> pa.Table | None:
        if self._attached is None:
            if covariates is not None:
                raise BadInput("covariates= was not given to fit: leave it out, or fit with it")
            return table_of(self._taken.of(X), n)
        if covariates is None:
            raise BadInput("the repair was fitted with covariates=: pass those of these rows")
        table: pa.Table = table_of(covariates, n)
        for name in self._attached:
            if name not in table.schema.names:
                raise BadInput(f"covariates have no column {name!r}; they have {', '.join(table.schema.names[:8])}")
        return table.select(list(self._attached)) if self._attached else table

    def _routed(self, params: Metadata) -> tuple[Metadata, Metadata]:
        """Divide metadata between the splitter and the classifier's fit."""
        from sklearn import get_config

        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **params)
            splitter = routed.get("splitter", Bunch(split={}))
            return dict(splitter.split), dict(routed.estimator.fit)
        to_fit = dict(params)
        groups = to_fit.pop("groups", None)
        base, name = self._base(), type(self._base()).__name__
        fitted = isinstance(base, FrozenEstimator)  # weights are the repair's alone
        if "sample_weight" in to_fit and not fitted and not has_fit_parameter(base, "sample_weight"):
            raise BadInput(
                f"{name}.fit takes no sample_weight: leave the weights out, or choose a classifier that does"
            )
        return ({} if groups is None else {"groups": groups}), to_fit

    def _repaired(self, fit: ClassifierFit, to_split: Metadata) -> Iterator[Repaired]:
        base, n = self._base(), len(fit.labels.y)
        if (isinstance(self.cv, str) and self.cv == "prefit") or isinstance(base, FrozenEstimator):
            check_is_fitted(base)
            self.classes_, self.folds_ = base.classes_, 0
            fit = fit.learnt(self.classes_)
            yield fit.repaired(base, answers(base, fit.X, self.classes_), np.arange(n))
            return
        folds = self._folds(fit, to_split)
        self.folds_ = len(folds)
        models = Parallel(n_jobs=self.n_jobs)(delayed(fit.trained)(clone(base), train) for train, _ in folds)
        stated = [
            answers(m, fit.rows(test, train), self.classes_) for m, (train, test) in zip(models, folds, strict=True)
        ]
        if self.ensemble:
            for model, s, (_, test) in zip(models, stated, folds, strict=True):
                yield fit.repaired(model, s, test)
            return
        tests = [test for _, test in folds]
        every = np.concatenate(tests)
        if len(np.unique(every)) < len(every) or len(every) < n:
            raise BadInput(
                "cv: every row must be left out exactly once to fit one calibrator; use such folds, or ensemble=True"
            )
        yield fit.repaired(fit.trained(clone(base), None), stacked(stated, tests, n), np.arange(n))

    def _folds(self, fit: ClassifierFit, to_split: Metadata) -> list[tuple[Whole, Whole]]:
        cv, fewest = self.cv, int(np.bincount(fit.labels.index).min())
        if isinstance(cv, (int, np.integer)):
            if cv < 2 or fewest < 2:
                needed = "two folds or more are needed, and two rows of every class"
                raise BadInput(f"cv={cv}: {needed}; the rarest has {fewest} of {len(fit.labels.y)}")
            cv = min(int(cv), fewest)
        return list(check_cv(cv, fit.labels.y, classifier=True).split(fit.X, fit.labels.y, **to_split))

    def predict_proba(self, X: Features, *, covariates: Columns | None = None) -> Floats:
        """Repaired probabilities, float64 array of shape (n, K), columns in the order of `classes_`."""
        check_is_fitted(self)
        (X,) = indexable(X)
        if getattr(X, "ndim", 2) != 1:  # if it is, the classifier says what is wrong
            validate_data(self, X, skip_check_array=True, reset=False)
        elif self._taken.at:
            raise BadInput(
                "Expected 2D array, got 1D array instead. Reshape your data: X holds variables of the repair"
            )
        table = self._table(X, covariates, X.shape[0] if hasattr(X, "shape") else len(X))
        p: Floats = np.mean([r.probabilities(X, table, self.classes_) for r in self.repaired_], axis=0)
        return p

    def predict(self, X: Features, *, covariates: Columns | None = None) -> Labels:
        """The label of the largest repaired probability."""
        check_is_fitted(self)
        labels: Labels = self.classes_[self.predict_proba(X, covariates=covariates).argmax(axis=1)]
        return labels

    def score(
        self,
        X: Features,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        covariates: Columns | None = None,
    ) -> float:
        """The accuracy of `predict`."""
        return float(accuracy_score(y, self.predict(X, covariates=covariates), sample_weight=sample_weight))

    @property
    def estimator_(self) -> BaseEstimator:
        """The fitted classifier."""
        return self._only().estimator

    @property
    def calibrator_(self) -> Calibrator:
        """The fitted map."""
        calibrators = self._only().calibrators
        if len(calibrators) > 1:
            raise AttributeError("one calibrator a class: see repaired_[0].maps")
        return calibrators[0]

    def _only(self) -> Repaired:
        if not hasattr(self, "repaired_"):
            raise AttributeError("not fitted yet")
        if len(self.repaired_) > 1:
            raise AttributeError("ensemble=True has one a fold: see repaired_")
        return self.repaired_[0]

    def get_metadata_routing(self) -> MetadataRouter:
        """Who asks for which metadata, for scikit-learn."""
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self._base(), method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        if hasattr(self.cv, "split"):
            router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        return router

    def __sklearn_tags__(self) -> Tags:
        tags, base = super().__sklearn_tags__(), get_tags(self._base())
        tags.input_tags = base.input_tags
        tags.non_deterministic = base.non_deterministic
        if base.classifier_tags is not None:
            tags.classifier_tags = base.classifier_tags
            tags.classifier_tags.multi_label = False
        tags.target_tags.multi_output = False
        return tags
