"""How much likelier a row is in one set of rows than in another: a classifier's odds, cross-fitted."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.arguments import check_int, checked_seed
from calibrant.errors import BadInput
from calibrant.toolkit.data import Floats
from calibrant.toolkit.methods import one_thread

Learner = Literal["logistic", "trees"]
LEARNERS = ("logistic", "trees")
EDGE = 1e-6  # a probability of membership is kept this far from 0 and 1
Rows = NDArray[np.bool_]


class Classifier(Protocol):
    """What is asked of a classifier of scikit-learn."""

    def fit(self, x: Floats, y: Rows, sample_weight: Floats) -> object:
        """Learn."""

    def predict_proba(self, x: Floats) -> Floats:
        """A column of probabilities for each class."""


def odds(
    features: ArrayLike,
    member: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    learner: Learner = "logistic",
    folds: int = 5,
    groups: ArrayLike | None = None,
    seed: int = 0,
) -> Floats:
    """Odds that a row is a member, each from a classifier that has not seen the row.

    With members and others given the same total weight, so that without any difference between them the odds are 1
    about: they estimate the ratio of the members' density to the others'.

    Parameters
    ----------
    features : array-like of shape (n, d)
        Numbers without gaps; levels as columns of 0 and 1.
    member : array-like of bool of shape (n,)
    weights : array-like of shape (n,), optional
        How much each row counts.
    learner : {"logistic", "trees"}
        scikit-learn's `LogisticRegression`, with its usual penalty, or `HistGradientBoostingClassifier`.
    folds : int
        Each row has the odds of the classifier fitted on the other folds.
    groups : array-like of shape (n,), optional
        Rows of one group are in one fold.
    seed : int
        Deals the folds.

    Returns
    -------
    float64 array of shape (n,)
        Positive.

    Raises
    ------
    BadInput
        A fold lacks members, or others.

    Notes
    -----
    **Assumes.** Nothing for what it returns; what it is used for assumes that the classifier is good enough.
    **Cost.** `folds` fits.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> x = np.r_[np.zeros(300), np.ones(100), np.zeros(100), np.ones(300)][:, None]
    >>> w = cal.weights.odds(x, np.repeat([False, True], 400))
    >>> w[:300].mean().round(1), w[300:400].mean().round(1)
    (np.float64(0.3), np.float64(2.9))
    """
    x, inside = np.asarray(features, dtype=float), np.asarray(member, dtype=bool)
    if x.ndim != 2 or inside.shape != (len(x),) or not np.isfinite(x).all():
        raise BadInput("features must be numbers without gaps, one row each, and member one value for each row")
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=float)
    if learner not in LEARNERS:
        raise BadInput(f"learner={learner!r}: choose logistic or trees")
    folds, seed = check_int("folds", folds, 2), checked_seed(seed)
    clusters = np.arange(len(x)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    out = np.empty(len(x))
    where = np.random.default_rng(seed).permutation(int(clusters.max()) + 1) % folds  # clusters are dealt whole
    for fold in range(folds):
        kept = where[clusters] == fold
        if not kept.any():
            continue
        out[kept] = fitted_odds(x, inside, w, ~kept, learner)(x[kept])
    return out


def fitted_odds(x: Floats, member: Rows, weights: Floats, on: Rows, learner: Learner) -> _Odds:
    """The odds that a classifier fitted on some of the rows gives."""
    if not (member[on].any() and (~member[on]).any()):
        raise BadInput("a fold has no rows of the population, or none of the data: pass more rows, or fewer folds")
    w = weights[on] * np.where(member[on], 1.0 / weights[on][member[on]].sum(), 1.0 / weights[on][~member[on]].sum())
    model = _made(learner)
    with one_thread("openmp"):  # threads that wait for one another take minutes on a machine that is busy
        model.fit(x[on], member[on], sample_weight=w * len(w) / w.sum())
    return _Odds(model)


class _Odds:
    """Odds of a fitted classifier."""

    def __init__(self, model: Classifier) -> None:
        self.model = model

    def __call__(self, x: Floats) -> Floats:
        with one_thread("openmp"):
            q = np.clip(self.model.predict_proba(x)[:, 1], EDGE, 1.0 - EDGE)
        result: Floats = q / (1.0 - q)
        return result


def _made(learner: Learner) -> Classifier:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    made: Classifier = (
        LogisticRegression(max_iter=1000)
        if learner == "logistic"
        else HistGradientBoostingClassifier(max_iter=100, max_leaf_nodes=15, early_stopping=False, random_state=0)
    )
    return made
