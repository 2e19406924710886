"""What every fit asks of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.errors import BadInput, NotComputable

EDGE = 1e-6  # nearer to 0 and 1 than this a logarithm is continued along its tangent


def fit_rows(data: Any, recipe: str, fewest: int = 2) -> Predictions:
    """Return the rows to fit a repair on, or say why they will not do."""
    if isinstance(data, MulticlassPredictions):
        raise BadInput(f"{recipe} repairs two classes: project with .top_label() or .one_vs_rest(k), or use Dirichlet")
    if not isinstance(data, Predictions):
        raise BadInput(
            f"{recipe} is fitted on rows: pass calibrant.predictions(...) or calibrant.read(...), not a {type(data).__name__}"
        )
    if data.cases in (0, data.n):
        raise NotComputable(f"{recipe} cannot be fitted: every one of the {data.n:,} rows has outcome {int(data.y[0])}")
    if data.n < fewest:
        raise NotComputable(f"{recipe} needs at least {fewest} rows and there are {data.n}")
    return data


def log_of(p: Any) -> Any:
    """Return the logarithm of scores, continued below `EDGE` along its tangent: finite at 0, and no two scores tie."""
    return np.log(np.maximum(p, EDGE)) + np.minimum(p - EDGE, 0.0) / EDGE


def logit(p: Any) -> Any:
    """Return the log-odds of scores, continued along their tangents within `EDGE` of 0 and 1."""
    return log_of(p) - log_of(1.0 - p)


def targets(rows: Predictions) -> Any:
    """Return Platt's targets: outcomes drawn in a little, so that a fit stays finite when the classes separate."""
    weight = np.ones(rows.n) if rows.weights is None else rows.weights
    cases, rest = float(weight @ rows.y), float(weight @ (1 - rows.y))
    return np.where(rows.y == 1, (cases + 1.0) / (cases + 2.0), 1.0 / (rest + 2.0))


def logistic_fit(features: Any, target: Any, weight: Any = None, ridge: float = 0.0) -> tuple[Any, float]:
    """Return coefficients and intercept of a logistic regression on targets in [0, 1]; `ridge` is scikit-learn's 1/C."""
    from sklearn.linear_model import LogisticRegression

    heft = np.ones(len(target)) if weight is None else np.asarray(weight, dtype=np.float64)
    sides = [(1, heft * target), (0, heft * (1.0 - target))]
    kept = [(side, np.flatnonzero(w > 0), w) for side, w in sides]
    x = np.concatenate([features[at] for _, at, _ in kept])
    y = np.concatenate([np.full(len(at), side) for side, at, _ in kept])
    w = np.concatenate([w[at] for _, at, w in kept])
    model = LogisticRegression(C=1.0 / ridge if ridge > 0 else np.inf, solver="newton-cholesky", tol=1e-8, max_iter=200)
    model.fit(x, y, sample_weight=w)
    return model.coef_[0].astype(float), float(model.intercept_[0])
