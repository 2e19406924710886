"""The paper's simulation, by the design of its authors' program: who is audited, on which rows."""

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import calibrant as cal

AUDITED: dict[str, tuple[int, Any]] = {
    "logistic": (10_000, lambda _: LogisticRegression()),
    "forest": (2_000, lambda r: RandomForestClassifier(300, max_depth=8, max_features=0.5, random_state=r)),
}


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
    size, make = AUDITED[kind]
    rng = np.random.default_rng([0xF162, replicate, n])
    model = make(replicate).fit(*drawn(rng, size))
    x, y = drawn(rng, n)
    return cal.predictions(y, model.predict_proba(x)[:, 1], {f"x{j}": x[:, j] for j in range(10)})
