"""Models of the residual ``E[Y - p | score, covariates]``, each row predicted from other rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from calibrant.errors import BadInput
from calibrant.kernels.threads import one_thread
from calibrant.views.features import Features

TRAIN = 20_000  # rows that one fit sees, a uniform sample of its folds
BAG = 5_000  # rows that one tree sees
CHUNK = 1 << 16  # rows predicted at once
LEARN = 0x1EA2


@dataclass(frozen=True)
class Sample:
    """Rows with outcomes, as learners see them.

    Parameters
    ----------
    x : Features
    y, p : float arrays of shape (n,)
    weights : float array of shape (n,) or None
        Mean one.
    """

    x: Features
    y: Any
    p: Any
    weights: Any

    def heft(self, rows: Any) -> Any:
        """Return the weights of some rows for scikit-learn."""
        return None if self.weights is None else self.weights[rows]


class Fitted(Protocol):
    """A fitted model of the residual."""

    def predict(self, x: Features, p: Any, rows: Any, /) -> Any:
        """Return the predicted residuals of some rows."""


class Learner(Protocol):
    """A way to fit one."""

    @property
    def name(self) -> str:
        """Name in results."""

    def fit(self, s: Sample, rows: Any, seed: int, /) -> Fitted:
        """Fit to some rows."""


@dataclass(frozen=True)
class Forest:
    """A forest for ``Y - p`` on the score and the covariates."""

    name: str
    trees: int
    share: float
    depth: int
    leaf: int

    def fit(self, s: Sample, rows: Any, seed: int) -> Fitted:
        """Fit to some rows; a tree sees at most 5,000."""
        from sklearn.ensemble import RandomForestRegressor

        model = RandomForestRegressor(
            n_estimators=self.trees,
            max_features=self.share,
            max_depth=self.depth,
            min_samples_leaf=self.leaf,
            max_samples=BAG if len(rows) > BAG else None,
            random_state=seed,
            n_jobs=1,
        )
        model.fit(s.x.trees[rows], s.y[rows] - s.p[rows], sample_weight=s.heft(rows))
        return _Trees(tuple(one.tree_ for one in model.estimators_))


@dataclass(frozen=True)
class _Trees:
    trees: tuple[Any, ...]  # asked directly: a forest's own predict costs more than its trees

    def predict(self, x: Features, _p: Any, rows: Any) -> Any:
        out = np.zeros(len(rows))
        at = 0
        for part in _parts(rows):
            columns = np.ascontiguousarray(x.trees[part], dtype=np.float32)
            for tree in self.trees:
                out[at : at + len(part)] += tree.predict(columns).reshape(-1)
            at += len(part)
        return out / len(self.trees)


@dataclass(frozen=True)
class Quadratic:
    """A ridge-penalised logistic regression of Y on all terms of degree two, less the score."""

    name: str
    strength: float

    def fit(self, s: Sample, rows: Any, _seed: int) -> Fitted:
        """Fit to some rows; their event rate if they share one outcome."""
        y, w = s.y[rows], s.heft(rows)
        if y.min() == y.max():
            return _Rate((float(y.sum()) + 0.5) / (len(y) + 1.0))
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=self.strength, solver="newton-cholesky", max_iter=50, tol=1e-3)
        with one_thread():
            fit_logistic(model, s.x.quadratic(rows), y, w)
        return _Logistic(model.coef_[0].astype(np.float64), float(model.intercept_[0]))


def fit_logistic(model: Any, z: Any, y: Any, w: Any) -> None:
    """Fit in single precision, or in double where columns that nearly repeat each other ask for it.

    Steps that run out leave a model that orders the rows a little worse; no level depends on it.
    """
    from scipy.linalg import LinAlgWarning
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("error", LinAlgWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model.fit(z, y, sample_weight=w)
        except LinAlgWarning:
            warnings.simplefilter("ignore", LinAlgWarning)
            model.fit(z.astype(np.float64), y, sample_weight=w)


@dataclass(frozen=True)
class _Logistic:
    slopes: Any
    intercept: float

    def predict(self, x: Features, p: Any, rows: Any) -> Any:
        from scipy.special import expit

        eta = np.concatenate([x.quadratic(part) @ self.slopes for part in _parts(rows)])
        return expit(eta + self.intercept) - p[rows]


@dataclass(frozen=True)
class _Rate:
    rate: float

    def predict(self, _x: Features, p: Any, rows: Any) -> Any:
        return self.rate - p[rows]


@dataclass(frozen=True)
class Given:
    """A scikit-learn estimator of the user's: a regressor of ``Y - p``, or a classifier of Y, less the score."""

    name: str
    estimator: Any

    def fit(self, s: Sample, rows: Any, seed: int) -> Fitted:
        """Fit a clone to some rows, with their weights if there are any."""
        from sklearn.base import clone, is_classifier

        model = clone(self.estimator)
        unset = {k: seed for k, v in model.get_params().items() if k.split("__")[-1] == "random_state" and v is None}
        model.set_params(**unset)
        two = is_classifier(model)
        y = s.y[rows]
        if two and y.min() == y.max():
            return _Rate((float(y.sum()) + 0.5) / (len(y) + 1.0))
        target = y.astype(np.int64) if two else y - s.p[rows]
        extra = {} if s.weights is None else {"sample_weight": s.heft(rows)}
        try:
            model.fit(s.x.flat[rows], target, **extra)
        except TypeError as e:
            if not extra:
                raise
            raise BadInput(f"models: {self.name!r} takes no sample_weight ({e}), and the data have weights") from None
        return _Given(self.name, model, two)


@dataclass(frozen=True)
class _Given:
    name: str
    model: Any
    two: bool

    def predict(self, x: Features, p: Any, rows: Any) -> Any:
        return np.concatenate([self._part(x.flat[part], p[part]) for part in _parts(rows)])

    def _part(self, z: Any, p: Any) -> Any:
        g = self.model.predict_proba(z)[:, 1] - p if self.two else np.asarray(self.model.predict(z), dtype=float)
        if g.shape in ((len(z), 1), (len(z),)) and np.isfinite(g).all():
            return g.reshape(-1)
        raise BadInput(f"models: {self.name!r} predicts no finite number for each row: predict must return shape (n,)")


def _parts(rows: Any) -> list[Any]:
    return [rows[i : i + CHUNK] for i in range(0, max(len(rows), 1), CHUNK)]


@dataclass(frozen=True)
class Pool:
    """Learners, and the models that are averages of them.

    Parameters
    ----------
    learners : tuple of Learner
    names : tuple of str
        Of the models.
    mix : tuple of tuple of float
        A row a model: weights of the learners' predictions.
    """

    learners: tuple[Learner, ...]
    names: tuple[str, ...]
    mix: tuple[tuple[float, ...], ...]

    def models(self, predictions: Any) -> Any:
        """Return the models' predictions from the learners'."""
        return np.array(self.mix) @ predictions


TREES = 50
DEFAULT = Pool(
    (Forest("deep", TREES, 0.5, 10, 5), Forest("shallow", TREES, 1.0, 6, 10), Quadratic("quadratic", 10.0)),
    ("forest", "logistic", "both"),
    ((0.5, 0.5, 0.0), (0.0, 0.0, 1.0), (0.25, 0.25, 0.5)),
)


def pool_of(detector: str, models: Sequence[tuple[str, Any]] | None) -> Pool:
    """Return the default models, the paper's, or the user's with their mean."""
    if models is not None:
        return _users(models)
    if detector == "default":
        return DEFAULT
    forests = [Forest(f"forest {s:g} {d}", 2 * TREES, s, d, 1) for s in (0.5, 1.0) for d in (4, 8)]
    logistic = [Quadratic(f"logistic C={c:g}", c) for c in (1000.0, 100.0, 10.0)]
    learners: tuple[Learner, ...] = (*forests, *logistic)
    return Pool(learners, tuple(m.name for m in learners), _identity(len(learners)))


def _is_estimator(model: Any) -> bool:
    """Tell whether this is an object that can be cloned, fitted and asked."""
    return not isinstance(model, type) and all(hasattr(model, name) for name in ("get_params", "fit", "predict"))


def _identity(k: int) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in np.eye(k).tolist())


def _users(models: Any) -> Pool:
    from sklearn.base import is_classifier

    if isinstance(models, str) or not isinstance(models, Iterable):
        raise BadInput(f"models={models!r}: pass a list of pairs (name, scikit-learn estimator)")
    pairs = list(models)
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and _is_estimator(pair[1])):
            raise BadInput(f"models: {pair!r} is not a pair (name, scikit-learn estimator)")
        if is_classifier(pair[1]) and not hasattr(pair[1], "predict_proba"):
            raise BadInput(f"models: {pair[0]!r} has no predict_proba: calibrate it, or pass a regressor")
    names = [name for name, _ in pairs]
    if not pairs or len(set(names)) < len(names):
        raise BadInput(f"models names {names}: pass at least one pair (name, estimator), each name once")
    learners = tuple(Given(name, estimator) for name, estimator in pairs)
    if len(learners) == 1:
        return Pool(learners, tuple(names), ((1.0,),))
    mean = tuple([1.0 / len(learners)] * len(learners))
    return Pool(learners, (*names, "mean"), (*_identity(len(learners)), mean))


def dealt(n: int, folds: int, seed: int, groups: Any = None) -> Any:
    """Return the fold of each row, at random and label free; all rows of a group (0 to G - 1) share one."""
    units = n if groups is None else int(groups.max()) + 1
    rng = np.random.default_rng([seed, LEARN])
    fold = np.empty(units, dtype=np.int64)
    fold[rng.permutation(units)] = np.arange(units) % folds
    return fold if groups is None else fold[groups]


def fit_pool(s: Sample, pool: Pool, rows: Any, seed: int) -> tuple[Fitted, ...]:
    """Fit the learners to some rows, or to a uniform sample of 20,000 of them."""
    if len(rows) > TRAIN:
        rows = np.sort(np.random.default_rng([seed, LEARN, 1]).choice(rows, TRAIN, replace=False))
    return tuple(learner.fit(s, rows, (seed * 1_000 + i) % 2**32) for i, learner in enumerate(pool.learners))


def predicted(fitted: Sequence[Fitted], s: Sample, pool: Pool, rows: Any) -> Any:
    """Return the models' predicted residuals of some rows, shape (models, rows)."""
    return pool.models(np.stack([f.predict(s.x, s.p, rows) for f in fitted]))


def cross_fit(s: Sample, pool: Pool, fold: Any, seed: int) -> tuple[Any, tuple[tuple[Fitted, ...], ...]]:
    """Predict each fold from the others.

    Returns
    -------
    g : float array of shape (models, n)
    fitted : tuple of tuple of Fitted
        The learners of each fold.
    """
    g, kept = np.empty((len(pool.names), len(fold))), []
    for f in range(int(fold.max()) + 1):
        here = fold == f
        fitted = fit_pool(s, pool, np.flatnonzero(~here), seed)
        g[:, here] = predicted(fitted, s, pool, np.flatnonzero(here))
        kept.append(fitted)
    return g, tuple(kept)
