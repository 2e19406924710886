"""Models of the residual ``E[Y - p | score, covariates]``, each row predicted from other rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import BadInput
from calibrant.kernels.runtime import one_thread
from calibrant.views.features import Features

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]  # numbers of rows
Models = Sequence[tuple[str, Any]]  # a user's own: names, and estimators as scikit-learn has them

# What a fit sees grows with the rows, up to what it costs; every row is predicted, and tested.
TRAIN = 20_000  # rows that any fit may see, a uniform sample of its folds: of a user's model we do not know the cost
BAG = 5_000  # rows that one tree of a forest sees
BINS = 64  # of a column, for boosted trees: a subgroup's edge is known to a sixty-fourth of the rows
VALUES = 1 << 24  # that boosted trees may see, rows times columns: a second or two, and 128 MB
PRODUCTS = 4 * 10**8  # rows times squared terms that a logistic regression may see: half a second or so
CHUNK = 1 << 14  # rows predicted at once, for memory
STREAM = 0x1EA2  # of random numbers


@dataclass(frozen=True)
class Sample:
    """Rows with outcomes, as learners see them."""

    x: Features
    y: Floats  # shape (n,)
    p: Floats  # shape (n,)
    weights: Floats | None = None  # shape (n,): mean one; None where rows count alike

    def weights_of(self, _rows: Rows) -> Floats | None:
        """The weights of some rows, None if no row has any."""
        return None

    def fit_weights(self, _rows: Rows) -> dict[str, Floats]:
        """The weights of some rows as an argument of scikit-learn's fits."""
        return {}

    @cached_property
    def mass(self) -> Floats:
        """The weights, ones if no row has any."""
        return np.ones(len(self.y))

    def mass_of(self, rows: Rows) -> Floats:
        """The weights of some rows, ones if no row has any."""
        return self.mass[rows]

    def added(self, y: NDArray[np.uint8], member: NDArray[np.float32], _rows: Rows) -> Floats:
        """Events of data sets, shape (sets, rows), added up over sets of the rows given; counts are exact."""
        return (y.astype(np.float32) @ member.T).astype(np.float64)

    def part(self, rows: Rows) -> Sample:
        """Some rows, their weights of mean one again."""
        return replace(self, x=self.x.rows(rows), y=self.y[rows], p=self.p[rows])


@dataclass(frozen=True, kw_only=True)
class WeightedSample(Sample):
    """Rows that do not count alike."""

    weights: Floats

    def weights_of(self, rows: Rows) -> Floats:
        return self.weights[rows]

    def fit_weights(self, rows: Rows) -> dict[str, Floats]:
        return {"sample_weight": self.weights[rows]}

    @property
    def mass(self) -> Floats:
        return self.weights

    def added(self, y: NDArray[np.uint8], member: NDArray[np.float32], rows: Rows) -> Floats:
        return (y * self.weights[rows]) @ member.T.astype(np.float64)

    def part(self, rows: Rows) -> Sample:
        weights = self.weights[rows]
        return replace(super().part(rows), weights=weights / weights.mean())


class Fitted(Protocol):
    """A fitted model of the residual.

    One that is a sum may also have ``reading(x, variable)``: the part of it that reads a variable, None for none.
    """

    def predict(self, x: Features, p: Floats, rows: Rows, /) -> Floats:
        """The predicted residuals of some rows."""


class Learner(Protocol):
    """A way to fit one."""

    @property
    def name(self) -> str:
        """Name in results."""

    def most(self, x: Features, /) -> int:
        """How many rows a fit may see; it sees a uniform sample of so many if there are more."""

    def fit(self, s: Sample, rows: Rows, seed: int, /) -> Fitted:
        """Fit to some rows."""


def _parts(rows: Rows) -> list[Rows]:
    return [rows[i : i + CHUNK] for i in range(0, max(len(rows), 1), CHUNK)]


# ---- Learners: trees for the residual, a logistic regression of the outcome, and what users bring ----


@dataclass(frozen=True)
class Forest:
    """A forest for ``Y - p`` on the score and the covariates."""

    name: str
    trees: int
    share: float
    depth: int
    leaf: int

    def most(self, _x: Features) -> int:
        """20,000 rows."""
        return TRAIN

    def fit(self, s: Sample, rows: Rows, seed: int) -> Fitted:
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
        model.fit(s.x.trees[rows], s.y[rows] - s.p[rows], **s.fit_weights(rows))
        return _Trees(tuple(one.tree_ for one in model.estimators_), self.trees)


@dataclass(frozen=True)
class _Trees:
    trees: tuple[Any, ...]  # asked directly: a forest's own predict costs more than its trees
    of: int  # trees of which this is the mean

    def reading(self, x: Features, variable: str) -> _Trees | None:
        """The trees that read a variable."""
        own = [j for j, name in enumerate(x.tree_of) if name == variable]
        kept = tuple(tree for tree in self.trees if np.isin(tree.feature, own).any())
        return replace(self, trees=kept) if kept else None

    def predict(self, x: Features, _p: Floats, rows: Rows) -> Floats:
        out, at = np.zeros(len(rows)), 0
        for part in _parts(rows):
            columns = np.ascontiguousarray(x.trees[part], dtype=np.float32)
            for tree in self.trees:
                out[at : at + len(part)] += tree.predict(columns).reshape(-1)
            at += len(part)
        return out / self.of


@dataclass(frozen=True)
class Boosted:
    """Many small trees for ``Y - p``, each a little of what is left, on binned columns: all rows at little cost.

    Small steps, few leaves with many rows each, and a random half of the columns at each split keep the noise of a
    hundred thousand outcomes out of the order. With more rows a leaf may be a smaller share of them. Each frequent
    level is a column: split into any two sets, 40 levels of pure noise hid a corner of two numbers.
    """

    name: str
    trees: int
    step: float
    leaves: int

    def most(self, x: Features) -> int:
        """As many rows as a second or two allows."""
        return max(TRAIN, VALUES // len(x.flat_of))

    def fit(self, s: Sample, rows: Rows, seed: int) -> Fitted:
        """Fit to some rows."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        model = HistGradientBoostingRegressor(
            max_iter=self.trees,
            learning_rate=self.step,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=max(20, int(0.5 * len(rows) ** 0.5)),
            max_features=0.5,
            max_bins=BINS,
            early_stopping=False,
            random_state=seed,
        )
        with one_thread("openmp"):
            model.fit(s.x.flat[rows], s.y[rows] - s.p[rows], **s.fit_weights(rows))
        return _Steps(model, 1.0 - (1.0 - self.step) ** self.trees)


@dataclass(frozen=True)
class _Steps:
    model: Any
    taken: float  # share of an error that so many steps towards it cover; a tolerance is compared with all of it

    def reading(self, x: Features, variable: str) -> _Steps | None:
        """The steps whose tree reads a variable."""
        own = [j for j, name in enumerate(x.flat_of) if name == variable]
        kept = [step for step in self.model._predictors if any(_splits_on(tree.nodes, own) for tree in step)]
        if not kept:
            return None
        model = copy(self.model)
        model._predictors = kept
        return replace(self, model=model)

    def predict(self, x: Features, _p: Floats, rows: Rows) -> Floats:
        with one_thread("openmp"):
            out = [self.model.predict(x.flat[part]) for part in _parts(rows)]
        return np.concatenate(out) / self.taken


def _splits_on(nodes: NDArray[Any], columns: Sequence[int]) -> bool:
    return bool((np.isin(nodes["feature_idx"], columns) & (nodes["is_leaf"] == 0)).any())


@dataclass(frozen=True)
class Quadratic:
    """A ridge-penalised logistic regression of Y on all terms of degree two, less the score."""

    name: str
    strength: float

    def most(self, x: Features) -> int:
        """As many rows as half a second or so allows."""
        return max(TRAIN, PRODUCTS // (len(x.flat_of) + len(x.pairs)) ** 2)

    def fit(self, s: Sample, rows: Rows, _seed: int) -> Fitted:
        """Fit to some rows; their event rate if they share one outcome."""
        y = s.y[rows]
        if y.min() == y.max():
            return _Rate.of(y)
        from sklearn.linear_model import LogisticRegression

        # A model that only orders rows may stop early, and in single precision: the 300 products are most of the cost.
        model = LogisticRegression(C=self.strength, solver="newton-cholesky", max_iter=50, tol=1e-3)
        with one_thread():
            fit_logistic(model, s.x.quadratic(rows), y, s.fit_weights(rows))
        return _Logistic.of(model.coef_[0].astype(np.float64), float(model.intercept_[0]), x=s.x)


def fit_logistic(model: Any, z: NDArray[np.float32], y: Floats, weights: Mapping[str, Floats]) -> None:
    """Fit in single precision, or in double where columns that nearly repeat each other ask for it.

    Steps that run out leave a model that orders the rows a little worse; no level depends on it.
    """
    from scipy.linalg import LinAlgWarning
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("error", LinAlgWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model.fit(z, y, **weights)
        except LinAlgWarning:
            warnings.simplefilter("ignore", LinAlgWarning)
            model.fit(z.astype(np.float64), y, **weights)


@dataclass(frozen=True)
class _Logistic:
    linear: Floats
    square: Floats  # slopes of products, shape (columns, columns): no product of a row need be made
    intercept: float

    @classmethod
    def of(cls, slopes: Floats, intercept: float, x: Features) -> _Logistic:
        columns = len(x.flat_of)
        square = np.zeros((columns, columns))
        square[x.pairs[:, 0], x.pairs[:, 1]] = slopes[columns:]
        return cls(slopes[:columns], square, intercept)

    def predict(self, x: Features, p: Floats, rows: Rows) -> Floats:
        from scipy.special import expit

        parts = (x.flat[part].astype(np.float64) for part in _parts(rows))
        sums = [np.einsum("ij,ij->i", z @ self.square + self.linear, z) for z in parts]
        rate: Floats = expit(np.concatenate(sums) + self.intercept)
        return rate - p[rows]


@dataclass(frozen=True)
class _Rate:
    """One event rate for everyone: what is left of a classifier where all outcomes are the same."""

    rate: float

    @classmethod
    def of(cls, y: Floats) -> _Rate:
        return cls((float(y.sum()) + 0.5) / (len(y) + 1.0))

    def predict(self, _x: Features, p: Floats, rows: Rows) -> Floats:
        return self.rate - p[rows]


@dataclass(frozen=True)
class FixedModels:
    """A scikit-learn estimator of the user's: a regressor of ``Y - p``, or a classifier of Y, less the score."""

    name: str
    estimator: Any

    def most(self, _x: Features) -> int:
        """20,000 rows."""
        return TRAIN

    def fit(self, s: Sample, rows: Rows, seed: int) -> Fitted:
        """Fit a clone to some rows, with their weights if there are any."""
        from sklearn.base import clone, is_classifier

        model = clone(self.estimator)
        unset = {k: seed for k, v in model.get_params().items() if k.split("__")[-1] == "random_state" and v is None}
        model.set_params(**unset)
        two, y = is_classifier(model), s.y[rows]
        if two and y.min() == y.max():
            return _Rate.of(y)
        target = y.astype(np.int64) if two else y - s.p[rows]
        extra = s.fit_weights(rows)
        if extra and hasattr(model, "steps"):  # a pipeline hands weights to its last step, by name
            extra = {f"{model.steps[-1][0]}__{k}": v for k, v in extra.items()}
        try:
            model.fit(s.x.flat[rows], target, **extra)
        except (TypeError, ValueError) as e:
            why = " ".join(str(e).split())
            if extra and "sample_weight" in why:
                raise BadInput(
                    f"models: {self.name!r} takes no sample_weight ({why}), and the data have weights"
                ) from e
            raise BadInput(
                f"models: {self.name!r} cannot be fitted to an array of standardised numbers without names of columns "
                f"({why}): pass an estimator of numbers, without steps that name columns"
            ) from e
        return _FixedModels(self.name, model, two)


@dataclass(frozen=True)
class _FixedModels:
    name: str
    model: Any
    two: bool

    def predict(self, x: Features, p: Floats, rows: Rows) -> Floats:
        return np.concatenate([self._part(x.flat[part], p[part]) for part in _parts(rows)])

    def _part(self, z: NDArray[np.float32], p: Floats) -> Floats:
        predicted = self.model.predict_proba(z)[:, 1] - p if self.two else self.model.predict(z)
        g: Floats = np.asarray(predicted, dtype=np.float64)
        if g.shape in ((len(z), 1), (len(z),)) and np.isfinite(g).all():
            return g.reshape(-1)
        raise BadInput(f"models: {self.name!r} predicts no finite number for each row: predict must return shape (n,)")


# ---- Pools: learners, and the models that are averages of them ----


@dataclass(frozen=True)
class Pool:
    """Learners, and the models that are averages of them."""

    learners: tuple[Learner, ...]
    names: tuple[str, ...]  # of the models
    mix: tuple[tuple[float, ...], ...]  # a row a model: weights of the learners' predictions

    def models(self, predictions: Floats) -> Floats:
        """The models' predictions from the learners'."""
        mixed: Floats = np.array(self.mix) @ predictions
        return mixed

    def fitted(self, s: Sample, rows: Rows, seed: int) -> tuple[Fitted, ...]:
        """Fit the learners to some rows, each to a uniform sample of as many as it may see."""
        return tuple(
            learner.fit(s, _some(rows, learner.most(s.x), seed), (seed * 1_000 + i) % 2**32)
            for i, learner in enumerate(self.learners)
        )

    def small(self, trees: int) -> Pool:
        """The pool with smaller forests, for a procedure that is repeated."""
        learners = tuple(replace(m, trees=trees) if isinstance(m, Forest) else m for m in self.learners)
        return replace(self, learners=learners)

    @property
    def identity(self) -> Any:
        """Distinguishes pools; one of the user's by its estimators and their settings, as they are now."""
        own = [getattr(m, "estimator", None) for m in self.learners]
        settings = [None if e is None else repr(sorted(map(repr, e.get_params().items()))) for e in own]
        return tuple((m.name, type(e).__name__, id(e), s) for m, e, s in zip(self.learners, own, settings, strict=True))


# ---- Cross-fitting: who is fitted to whom ----


def hash_split(n: int, folds: int, seed: int, groups: Rows | None = None) -> Rows:
    """The fold of each row, at random and label free; all rows of a group (0 to G - 1) share one."""
    clusters = n if groups is None else int(groups.max()) + 1
    rng = np.random.default_rng([seed, STREAM])
    fold = np.empty(clusters, dtype=np.int64)
    fold[rng.permutation(clusters)] = np.arange(clusters) % folds
    return fold if groups is None else fold[groups]


def _some(rows: Rows, most: int, seed: int) -> Rows:
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng([seed, STREAM, 1]).choice(rows, most, replace=False))


def predicted(fitted: Sequence[Fitted], s: Sample, pool: Pool, rows: Rows) -> Floats:
    """The models' predicted residuals of some rows, shape (models, rows)."""
    return pool.models(np.stack([f.predict(s.x, s.p, rows) for f in fitted]))


def cross_fit(s: Sample, pool: Pool, fold: Rows, seed: int) -> tuple[Floats, tuple[tuple[Fitted, ...], ...]]:
    """Predict each fold from the others.

    Returns `g` (models, n). `fitted`: the learners of each fold.
    """
    g, kept = np.empty((len(pool.names), len(fold))), []
    for f in range(int(fold.max()) + 1):
        here = fold == f
        fitted = pool.fitted(s, np.flatnonzero(~here), seed)
        g[:, here] = predicted(fitted, s, pool, np.flatnonzero(here))
        kept.append(fitted)
    return g, tuple(kept)
