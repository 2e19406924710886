"""KLCE of two classes and of several: the double loop, its interval, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Estimate


def binary(n: int = 60, **more: Any) -> Any:
    rng = np.random.default_rng(3)
    p, x = rng.uniform(size=n), rng.normal(size=n)
    return cal.predictions(rng.random(n) < p, p, {"x": x}, **more)


def several(n: int = 50, classes: int = 4) -> Any:
    rng = np.random.default_rng(4)
    p, x = rng.dirichlet(np.ones(classes), n), rng.normal(size=n)
    y = (rng.random((n, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return cal.multiclass_predictions(y, p, {"x": x})


def literal(e: Any, score: Any, x: Any) -> float:
    """Equation 4 with ``k l`` times the identity, Gaussian, one pair at a time."""
    total, n = 0.0, len(e)
    for i in range(n):
        for j in range(n):
            if i != j:
                apart = ((score[i] - score[j]) ** 2).sum() + (x[i] - x[j]) ** 2
                total += float(e[i] @ e[j]) * np.exp(-0.5 * apart)
    return total / (n * (n - 1))


def test_it_is_the_double_loop_of_two_classes_and_of_four() -> None:
    for data in (binary(), several()):
        found = cal.measure.klce(data, score_width=0.7, covariate_width=1.3)
        p = data.p.reshape(data.n, -1)
        e = (data.y - data.p)[:, None] if data.p.ndim == 1 else np.eye(4)[data.y] - data.p
        x = data.covariates["x"].to_numpy()
        score = p / np.sqrt(p.var(axis=0).sum()) / 0.7
        assert found.value == pytest.approx(literal(e, score, (x - x.mean()) / x.std() / 1.3), rel=1e-9)
        assert Estimate.from_dict(found.to_dict()) == found


@pytest.mark.parametrize("family", ["gaussian", "laplace", "polynomial"])
def test_it_is_the_statistic_of_the_exact_test(family: Any) -> None:
    for data in (binary(300), several(200)):
        measured = cal.measure.klce(data, family=family)
        tested = cal.detect.local_calibration_test(data, features="exact", family=family, draws=19)
        assert measured.value == pytest.approx(tested.statistic, rel=1e-3, abs=1e-6)
        assert measured.settings["score_width"] == tested.settings["score_width"]


def test_the_interval_is_theorem_3_6_with_half_of_the_rows() -> None:
    for data, bound in ((binary(101), 1.0), (several(101), 2.0)):
        found = cal.measure.klce(data, alpha=0.1)
        half = bound * np.sqrt(2 * np.log(20) / 50)
        assert found.high == pytest.approx(min(found.value + half, bound))
        assert found.low == pytest.approx(max(found.value - half, -bound / 100))
        assert found.interval.guarantee == "finite-sample"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cal.measure.klce(binary(), family="cosine"), BadInput, "family='cosine'"),
        (lambda: cal.measure.klce(binary(), degree=2), BadInput, "degree=2 has no meaning with family='gaussian'"),
        (lambda: cal.measure.klce(binary(), family="polynomial", degree=0), BadInput, "degree=0"),
        (lambda: cal.measure.klce(binary(), score_width=-1), BadInput, "score_width=-1"),
        (lambda: cal.measure.klce(binary(), variables="age"), BadInput, "age"),
        (lambda: cal.measure.klce(cal.predictions([1, 0], [0.5, 0.5])), BadInput, "no covariates"),
        (lambda: cal.measure.klce([0.5]), BadInput, "data is a list"),
        (lambda: cal.measure.klce(binary(2, cluster=[0, 1])), NotComputable, "independent rows"),
        (lambda: cal.measure.klce(binary(1)), NotComputable, "single row"),
    ],
)
def test_what_cannot_be_used_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
