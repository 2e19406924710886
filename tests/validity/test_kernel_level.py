"""Level of the exact kernel tests, and designs on which the published nulls fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.detect.local_calibration_test import exact_local_test
from calibrant.papers import published_local_test
from calibrant.stats.local.kernel_sums import Kernel, Rows, smallest, statistics
from calibrant.stats.nulls import ranked
from validity.acceptance import LEAST, count, refuted

ALPHA, DRAWS = 0.05, 199
Design = Callable[[np.random.Generator, int], tuple[Any, Any]]


def sigmoid(z: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-z))


def normal(d: int) -> Design:
    """The paper's null: scores are a logistic function of the sum of the covariates."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        x = rng.normal(size=(n, d))
        return sigmoid(x.sum(axis=1)), x

    return draw


def homogeneous(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    return np.full(n, 0.3), rng.normal(size=(n, 2))


def arcsine(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    return rng.beta(0.5, 0.5, n), rng.normal(size=(n, 3))


def rare(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """About 1 % positives, the covariate tells who."""
    x = rng.normal(size=(n, 1))
    return np.clip(0.01 * np.exp(1.2 * x[:, 0] - 0.72), 1e-5, 0.9), x


def clumped(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """The rows of high variance lie close together."""
    high = rng.random(n) < 0.15
    p = np.where(high, rng.uniform(0.4, 0.6, n), rng.uniform(0.005, 0.03, n))
    return p, np.where(high, rng.normal(0.0, 0.05, n), rng.uniform(-3.0, 3.0, n))[:, None]


def discrete(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    x = rng.integers(0, 3, (n, 2))
    return np.array([0.05, 0.2, 0.5])[x[:, 0]], x


DESIGNS: dict[str, tuple[Design, int]] = {
    "homogeneous": (homogeneous, 100),
    "arcsine": (arcsine, 200),
    "rare": (rare, 300),
    "clumped": (clumped, 150),
    "discrete": (discrete, 300),
    "paper, d = 1": (normal(1), 100),
    "paper, d = 10": (normal(10), 200),
    "paper, d = 50": (normal(50), 500),
    "arcsine, 2000 rows": (arcsine, 2000),
}
NARROW = 200.0  # gamma


def data(design: str, replicate: int, eta: Callable[[Any, Any], Any] = lambda p, x: p) -> Any:
    draw, n = DESIGNS[design]
    rng = np.random.default_rng([0x1E7E1, replicate, *design.encode()])
    p, x = draw(rng, n)
    return cal.predictions(rng.random(n) < eta(p, x), p, {f"x{j}": v for j, v in enumerate(x.T)})


def local(design: str) -> Callable[[int], bool]:
    return lambda r: exact_local_test(data(design, r), draws=DRAWS, seed=r).p_value <= ALPHA


def score(design: str) -> Callable[[int], bool]:
    return lambda r: cal.detect.kernel_calibration_test(data(design, r), draws=DRAWS, seed=r).p_value <= ALPHA


def level(miss: Callable[[int], bool], runs: int, ties: bool) -> None:
    """Fail unless the rejections are those of an exact test; with real ties there may be fewer."""
    misses = count(miss, runs)
    assert not refuted(misses, runs, ALPHA), f"{misses} rejections in {runs} runs: more than {ALPHA}"
    if not ties:
        assert binom.cdf(misses, runs, ALPHA) >= LEAST, f"{misses} rejections in {runs} runs: fewer than {ALPHA}"


@pytest.mark.parametrize("design", ["rare", "clumped", "discrete"])
def test_level(design: str) -> None:
    level(local(design), 150, design in ("rare", "discrete"))
    level(score(design), 150, design in ("rare", "discrete"))


@pytest.mark.nightly
@pytest.mark.parametrize("design", DESIGNS)
def test_level_over_many_runs(design: str) -> None:
    level(local(design), 400, design in ("rare", "discrete", "homogeneous"))
    level(score(design), 400, design in ("rare", "discrete", "homogeneous"))


def clustered(replicate: int) -> Any:
    """Fifty clusters of twenty with their own event rates, right on average."""
    rng = np.random.default_rng([0xC1, replicate])
    cluster = np.repeat(np.arange(50), 20)
    x, p = rng.normal(size=50)[cluster], np.full(1000, 0.4)
    rate = p + rng.choice([-0.15, 0.15], 50)[cluster]
    return cal.predictions(rng.random(1000) < rate, p, {"x": x, "z": rng.normal(size=1000)}, cluster=cluster)


def test_level_with_clusters() -> None:
    runs = 60
    assert not refuted(count(lambda r: exact_local_test(clustered(r), draws=99).p_value <= ALPHA, runs), runs, 0.08)


@pytest.mark.nightly
@pytest.mark.parametrize("null", ["resampled", "permuted"])
def test_the_published_nulls_are_refuted(null: Any) -> None:
    def miss(r: int) -> bool:
        return (
            published_local_test(data("clumped", r), draws=DRAWS, null=null, seed=r, covariate_gamma=NARROW).p_value
            <= ALPHA
        )

    assert refuted(count(miss, 350), 350, ALPHA)


def test_the_smallest_of_four_ranks_is_calibrated() -> None:
    def miss(r: int) -> bool:
        rng = np.random.default_rng([0x4A, r])
        p = rng.uniform(0.1, 0.9, 40)
        kernel = Kernel(np.column_stack([p, rng.normal(size=40)]), np.zeros((40, 0), np.int32), np.zeros(0))
        rows = Rows(p, np.ones(40), (rng.random(40) < p).astype(float), rng.integers(0, 2**63, 40).astype(np.uint64))
        ranks = ranked(statistics(kernel, rows, 99, r))
        return smallest(ranks) <= ALPHA

    assert not refuted(count(miss, 1200), 1200, ALPHA)


def test_power_where_a_covariate_is_left_out() -> None:
    """The paper's Figure 3 design at d = 10: the score misses one of ten covariates."""
    draw = normal(10)

    def miss(r: int) -> bool:
        rng = np.random.default_rng([0xF13, r])
        _, x = draw(rng, 500)
        p, eta = sigmoid(x[:, :-1].sum(axis=1)), sigmoid(x.sum(axis=1))
        d = cal.predictions(rng.random(500) < eta, p, {f"x{j}": v for j, v in enumerate(x.T)})
        return exact_local_test(d, draws=DRAWS, seed=r).parts["p_local"] > ALPHA

    assert count(miss, 40) <= 2
