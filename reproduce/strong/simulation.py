"""The paper's simulation, by the design of its authors' program: who is audited, on which rows."""

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import calibrant as cal

LARGEST, TREES = 1_600, 100  # rows that a forest is asked about; the program has 500 trees
GRID = {"max_features": [0.2, 0.5, 0.8], "max_depth": [3, 8]}


def logistic(replicate: int, n: int) -> tuple[Any, Any, Any]:
    """Covariates, outcomes and probabilities of a logistic regression fitted to 10,000 rows."""
    rng = np.random.default_rng([0xF162, replicate, n])
    model = LogisticRegression().fit(*drawn(rng, 10_000))
    x, y = drawn(rng, n)
    return x, y, model.predict_proba(x)[:, 1]


@lru_cache(maxsize=256)
def all_of_forest(replicate: int) -> tuple[Any, Any, Any]:
    """The same of a forest fitted to 2,000 rows, tuned in three folds, calibrated by Platt's method in five."""
    rng = np.random.default_rng([0xF162, replicate, LARGEST])
    x, y = drawn(rng, 2_000)
    tuned = GridSearchCV(RandomForestClassifier(TREES, random_state=replicate), GRID, cv=3, refit=False).fit(x, y)
    best = RandomForestClassifier(TREES, random_state=replicate, **tuned.best_params_)
    model = CalibratedClassifierCV(best, method="sigmoid", cv=5).fit(x, y)
    x, y = drawn(rng, LARGEST)
    return x, y, model.predict_proba(x)[:, 1]


def forest(replicate: int, n: int) -> tuple[Any, Any, Any]:
    """The first rows of a forest's, as the program takes them: fitting it is slow."""
    x, y, p = all_of_forest(replicate)
    return x[:n], y[:n], p[:n]


AUDITED = {"logistic": logistic, "forest": forest}


def rate(x: Any) -> Any:
    """Event rates."""
    eta = 0.8 * x[:, 0] + 0.4 * x[:, 1] + 0.2 * x[:, 2]
    eta = np.where((x[:, 0] < -2) & (x[:, 1] > 2), 0.2 * x[:, 1] + 0.2 * x[:, 2], eta)
    return 1 / (1 + np.exp(-eta))


def drawn(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Covariates and outcomes."""
    x = rng.uniform(-5, 5, (n, 10))
    return x, (rng.random(n) < rate(x)).astype(int)


def audited(kind: str, n: int, replicate: int) -> Any:
    """Predictions of the audited model on new rows."""
    x, y, p = AUDITED[kind](replicate, n)
    return cal.predictions(y, p, {f"x{j}": x[:, j] for j in range(10)})
