"""What a fitted scikit-learn classifier says of rows, as scores in [0, 1] that a repair can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.errors import BadInput

ROUNDING = 1e-6  # single-precision probabilities may pass 0 and 1 by this much


@dataclass(frozen=True)
class Said:
    """Answers of a classifier.

    Parameters
    ----------
    values : float64 array of shape (n,) or (n, K)
        Probabilities, the second column's only if there are two classes; or decision values.
    decision : bool
        They are decision values.
    """

    values: Any
    decision: bool

    def scores(self, scale: float) -> Any:
        """Return scores in [0, 1]: probabilities as they are, decision values by ``expit(d / scale)``."""
        from scipy.special import expit

        return expit(self.values / scale) if self.decision else self.values

    def matrix(self, scale: float) -> Any:
        """Return scores of several classes whose rows add up to one."""
        from scipy.special import softmax

        return softmax(self.values / scale, axis=1) if self.decision else shares(self.values)

    def spread(self, weights: Any = None) -> float:
        """Return the standard deviation of decision values, 1 if there is none or for probabilities."""
        if not self.decision:
            return 1.0
        heft = np.ones(len(self.values)) if weights is None else weights
        each = (heft / heft.sum()).reshape(-1, *[1] * (self.values.ndim - 1)) / (self.values[0].size)
        mean = (each * self.values).sum()
        return float(np.sqrt((each * (self.values - mean) ** 2).sum())) or 1.0


def answers(estimator: Any, X: Any, classes: Any) -> Said:
    """Ask a fitted classifier for probabilities, or for decision values if it has none.

    Raises
    ------
    BadInput
        It has neither, did not learn the same classes, or says something that is not a probability.
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
        return Said(values, True)
    values = values[:, 1] if len(classes) == 2 else values
    if values.size and (values.min() < -ROUNDING or values.max() > 1 + ROUNDING):
        raise BadInput(f"{name}.predict_proba gives {values.min():.6g} to {values.max():.6g}: it must lie in [0, 1]")
    return Said(np.clip(values, 0.0, 1.0), False)


def stacked(parts: list[Said], rows: list[Any], n: int) -> Said:
    """Put the answers of several classifiers, each about its own rows, into one array."""
    values = np.empty((n, *parts[0].values.shape[1:]))
    for part, index in zip(parts, rows, strict=True):
        values[index] = part.values
    return Said(values, parts[0].decision)


def shares(scores: Any) -> Any:
    """Divide rows by their sums; a row of zeros becomes equal shares."""
    total = scores.sum(axis=1, keepdims=True)
    return np.where(total > 0, scores / np.where(total > 0, total, 1.0), 1.0 / scores.shape[1])


def _listed(classes: Any) -> str:
    few = ", ".join(repr(c) for c in np.asarray(classes).tolist()[:6])
    return f"{few}, ..." if len(classes) > 6 else few
