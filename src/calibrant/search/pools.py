"""Which models of the residual there are: the default's by the number of rows, the paper's, and a user's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from calibrant.errors import BadInput
from calibrant.search.corners import STEPS, Greedy
from calibrant.search.models import Boosted, FixedModels, Forest, Learner, Models, Pool, Quadratic

FEW = 2_000  # rows up to which the pool with a tolerance has corners too, and slow fits are repeated
TREES = 100  # of each of the paper's forests: with 2,000, as in the authors' program, most of the time goes into them


def _each(k: int) -> tuple[tuple[float, ...], ...]:
    """The mix in which each of k learners is a model by itself."""
    return tuple(tuple(float(i == j) for j in range(k)) for i in range(k))


def _each_and_mean(k: int) -> tuple[tuple[float, ...], ...]:
    """The mix in which each of k learners is a model, and their mean another."""
    return (*_each(k), (1.0 / k,) * k)


# Boosted trees, corners and a regression err differently, and their mean errs least. With few rows the regression of
# all terms of degree two needs a strong ridge: with C = 10 its noise outweighs what it finds, and that of its mean with
# the others (docs/benchmarks-detect.md).
CORNERED = Pool(
    (Boosted("boosted", 50, 0.03, 8), Quadratic("quadratic", 0.1), Greedy("corners", STEPS[1], True)),
    ("boosted", "logistic", "corners", "mean"),
    _each_and_mean(3),
)
# With more rows, of what was tried: 4 to 6 leaves find steps and 12 to 20 three attributes at once somewhat more often;
# larger steps and bags find less, and larger leaves lose small subgroups.
BOOSTED = Pool(
    (Boosted("boosted", 50, 0.03, 8), Quadratic("quadratic", 10.0)),
    ("boosted", "logistic", "both"),
    ((1.0, 0.0), (0.0, 1.0), (0.5, 0.5)),
)


def pool_of(detector: str, models: Models | None, n: int) -> Pool:
    """The default models for so many rows, the paper's, or the user's with their mean."""
    if models is not None:
        return _users(models)
    if detector == "default":
        return CORNERED if n <= FEW else BOOSTED
    # Appendix C of the paper: half of the features or all, depth 4 or 8; a ridge of C = 1000, 100 or 10.
    forests = [Forest(f"forest {s:g} {d}", TREES, s, d, 1) for s in (0.5, 1.0) for d in (4, 8)]
    logistic = [Quadratic(f"logistic C={c:g}", c) for c in (1000.0, 100.0, 10.0)]
    learners: tuple[Learner, ...] = (*forests, *logistic)
    return Pool(learners, tuple(m.name for m in learners), _each(len(learners)))


def _is_estimator(model: object) -> bool:
    """Whether this is an object that can be cloned, fitted and asked."""
    return not isinstance(model, type) and all(hasattr(model, name) for name in ("get_params", "fit", "predict"))


def _users(models: Any) -> Pool:
    from sklearn.base import is_classifier

    if isinstance(models, str) or not isinstance(models, Iterable):
        raise BadInput(f"models={models!r}: pass a list of pairs (name, scikit-learn estimator)")
    pairs: list[Any] = list(models)
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and _is_estimator(pair[1])):
            raise BadInput(f"models: {pair!r} is not a pair (name, scikit-learn estimator)")
        if is_classifier(pair[1]) and not hasattr(pair[1], "predict_proba"):
            raise BadInput(f"models: {pair[0]!r} has no predict_proba: calibrate it, or pass a regressor")
    names = [name for name, _ in pairs]
    if not pairs or len(set(names)) < len(names):
        raise BadInput(f"models names {names}: pass at least one pair (name, estimator), each name once")
    learners = tuple(FixedModels(name, estimator) for name, estimator in pairs)
    if len(learners) == 1:
        return Pool(learners, tuple(names), ((1.0,),))
    return Pool(learners, (*names, "mean"), _each_and_mean(len(learners)))
