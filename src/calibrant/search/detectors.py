"""The detectors of the strong calibration test: residual models, and the rows in order of what they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from calibrant.data.predictions import Predictions
from calibrant.data.sample import identities_of
from calibrant.data.seed import checked_seed
from calibrant.errors import BadInput, NotComputable
from calibrant.search.models import (
    DEFAULT,
    Fitted,
    Forest,
    Pool,
    Sample,
    cross_fit,
    dealt,
    fit_pool,
    pool_of,
    predicted,
)
from calibrant.stats.cusum import Alternative, Boundary, Detector, Path, observed, path
from calibrant.views.features import Features, features_of, rows_of

LEAST_ROWS = 20
FOLDS = 5


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked: everything but the labels that fixes the test.

    Parameters
    ----------
    n : int
    sample : Sample
        Features, outcomes, scores and weights (mean one).
    edge : Boundary
    alternative, detector, min_size, folds, seed
        As in `strong_calibration_test`.
    pool : Pool
    cluster : int array of shape (n,) or None
        Cluster of each row, 0 to C - 1.
    """

    sample: Sample
    edge: Boundary
    alternative: Alternative
    detector: Detector
    min_size: float
    folds: int
    seed: int
    pool: Pool
    cluster: Any

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.edge.p)

    @cached_property
    def fold(self) -> Any:
        """Fold of each row, dealt without looking at labels."""
        return dealt(self.n, self.folds, self.seed, self.cluster)

    @cached_property
    def ids(self) -> Any:
        """Identities of the rows."""
        return identities_of(self.n, self.seed)

    def paths(self, g: Any, rows: Any = None) -> tuple[Path, ...]:
        """Return the path of each model; of some rows, numbered anew, if they are given."""
        edge = self.edge if rows is None else self.edge.rows(rows)
        weights = self.sample.weights if rows is None else self.sample.heft(rows)
        return tuple(path(q, edge, self.alternative, self.detector, weights, self.min_size) for q in g)

    def with_outcomes(self, y: Any) -> Question:
        """Return the same question of other outcomes."""
        return replace(self, sample=replace(self.sample, y=np.asarray(y, dtype=np.float64)))


@dataclass(frozen=True, kw_only=True)
class Detectors:
    """Cross-fitted residual models and their paths: what the test and its diagnosis share.

    Parameters
    ----------
    question : Question
    g : float array of shape (models, n)
        Predicted ``E[Y - p | x]`` of each row, by models fitted without its fold.
    fitted : tuple of tuple of Fitted
        Learners of each fold (before averaging: ``question.pool.models``).
    paths : tuple of Path
        One a model.
    """

    question: Question
    g: Any
    fitted: tuple[tuple[Fitted, ...], ...]
    paths: tuple[Path, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models."""
        return self.question.pool.names

    @cached_property
    def statistics(self) -> Any:
        """Each model's largest scaled cumulative score."""
        return observed(self.paths, self.question.sample.y, self.question.detector)

    @cached_property
    def chosen(self) -> int:
        """The model with the largest statistic."""
        return int(np.argmax(self.statistics))

    def predicted(self, x: Features) -> Any:
        """Return the models' out-of-fold predictions from other features of the same rows, shape (models, n)."""
        q = self.question
        out = np.empty_like(self.g)
        for f, fitted in enumerate(self.fitted):
            rows = np.flatnonzero(q.fold == f)
            out[:, rows] = q.pool.models(np.stack([m.predict(x, q.edge.p, rows) for m in fitted]))
        return out


def question_of(
    data: Any,
    variables: Sequence[str] | None,
    tolerance: float,
    alternative: Any,
    seed: int,
    *,
    detector: Any = "default",
    models: Sequence[tuple[str, Any]] | None = None,
    min_size: float = 0.0,
    folds: int = FOLDS,
) -> Question:
    """Check the arguments, and put data and settings together."""
    rows = rows_of(data)
    check_choice("alternative", alternative, ("two-sided", "greater", "less"))
    check_choice("detector", detector, ("default", "paper", "authors"))
    check_share("tolerance", tolerance)
    check_share("min_size", min_size)
    if isinstance(folds, bool) or not isinstance(folds, (int, np.integer)) or not 2 <= folds <= 20:
        raise BadInput(f"folds={folds!r}: pass a whole number from 2 to 20")
    seed = checked_seed(seed)
    if rows.n < LEAST_ROWS:
        raise NotComputable(f"there are {rows.n} rows: residual models need at least {LEAST_ROWS}")
    weights = None if rows.weights is None else rows.weights / rows.weights.mean()
    return Question(
        sample=Sample(features_of(rows, variables), rows.y.astype(np.float64), rows.p, weights),
        edge=Boundary.of(rows.p, float(tolerance)),
        alternative=alternative,
        detector=detector,
        min_size=float(min_size),
        folds=int(folds),
        seed=int(seed),
        pool=pool_of(detector, models),
        cluster=_clusters(rows, int(folds)),
    )


def _clusters(rows: Predictions, folds: int) -> Any:
    if rows.cluster is None:
        return None
    codes = np.unique(rows.cluster, return_inverse=True)[1].astype(np.int64)
    count = int(codes.max()) + 1
    if count < 2 * folds:
        raise NotComputable(f"there are {count} clusters: {folds} folds of whole clusters need at least {2 * folds}")
    return codes


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise BadInput(f"{name}={value!r}: pass {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}")


def check_share(name: str, value: Any) -> None:
    """Refuse what is not a number in [0, 1)."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 <= value < 1.0:
        raise BadInput(f"{name}={value!r}: pass a number from 0 to below 1, such as 0.05")


def fit_detectors(
    data: Any,
    variables: Sequence[str] | None = None,
    tolerance: float = 0.0,
    alternative: Any = "two-sided",
    seed: int = 0,
    *,
    detector: Any = "default",
    models: Sequence[tuple[str, Any]] | None = None,
    min_size: float = 0.0,
    folds: int = FOLDS,
) -> Detectors:
    """Fit the residual models of a strong calibration test, or return them if these predictions remember them.

    The fits do not depend on the tolerance, the alternative or `min_size`, so that changing those fits nothing anew.
    """
    rows = rows_of(data)
    q = question_of(
        rows, variables, tolerance, alternative, seed, detector=detector, models=models, min_size=min_size, folds=folds
    )
    return detectors_of(q, rows, variables)


def detectors_of(q: Question, data: Predictions, variables: Sequence[str] | None) -> Detectors:
    """Return the detectors of a question about some predictions, fitted once."""
    names = None if variables is None else tuple(variables)
    key = ("strong detectors", names, _identity(q.pool), q.folds, q.seed)
    if key not in data.cache:
        data.cache[key] = (q.pool, cross_fit(q.sample, q.pool, q.fold, q.seed))
    g, fitted = data.cache[key][1]
    return Detectors(question=q, g=g, fitted=fitted, paths=q.paths(g))


def halves_of(q: Question, data: Predictions, variables: Sequence[str] | None) -> tuple[Any, Any]:
    """Return one half of the rows and what models fitted to the other predict of it, fitted once."""
    names = None if variables is None else tuple(variables)
    key = ("strong halves", names, _identity(q.pool), q.seed)
    if key not in data.cache:
        half = dealt(q.n, 2, q.seed, q.cluster)
        fitted = fit_pool(q.sample, q.pool, np.flatnonzero(half == 0), q.seed)
        rows = np.flatnonzero(half == 1)
        data.cache[key] = (q.pool, rows, predicted(fitted, q.sample, q.pool, rows))
    _, rows, g = data.cache[key]
    return rows, g


def _identity(pool: Pool) -> Any:
    """Tell pools apart; one of the user's by its estimators (kept alive beside the fits) and their settings."""
    if pool is DEFAULT:
        return "default"
    own = [getattr(m, "estimator", None) for m in pool.learners]
    settings = [None if e is None else repr(sorted(map(repr, e.get_params().items()))) for e in own]
    return tuple((m.name, type(e).__name__, id(e), s) for m, e, s in zip(pool.learners, own, settings, strict=True))


def small(pool: Pool, trees: int) -> Pool:
    """Return the pool with smaller forests, for a procedure that is repeated."""
    learners = tuple(replace(m, trees=trees) if isinstance(m, Forest) else m for m in pool.learners)
    return replace(pool, learners=learners)
