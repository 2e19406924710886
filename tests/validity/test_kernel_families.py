"""Levels of the exact tests with every family of kernels, of several classes, and of the bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.data.sketches.sample import identities_of
from calibrant.kernels.features import CLUSTER
from calibrant.measure import klce
from calibrant.views.features import chunks, first_look
from calibrant.views.local_sums import sums_of_rows
from validity.acceptance import LEAST, count, refuted
from validity.test_kernel_level import data

ALPHA, DRAWS = 0.05, 99
FAMILIES = ("laplace", "polynomial")
local = cal.detect.local_calibration_test


def rejects(design: str, family: str) -> Callable[[int], bool]:
    def miss(r: int) -> bool:
        return local(data(design, r), features="exact", family=family, draws=DRAWS, seed=r).p_value <= ALPHA

    return miss


def classes(replicate: int, n: int = 60, intraclass_correlation: bool = False) -> Any:
    """Right probabilities of four classes, sharp ones of rows that lie together; or the same for all rows."""
    rng = np.random.default_rng([0xC1A, replicate, n])
    x = rng.normal(size=n)
    p = rng.dirichlet(np.ones(4), n) if not intraclass_correlation else np.tile([0.4, 0.3, 0.2, 0.1], (n, 1))
    if not intraclass_correlation:
        p = np.where(np.abs(x[:, None]) < 0.3, p, p**3 / (p**3).sum(axis=1, keepdims=True))
    y = (rng.random((n, 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return cal.multiclass_predictions(y, p, {"x": x})


def of_classes(n: int, intraclass_correlation: bool = False, single: bool = False) -> Callable[[int], bool]:
    """Whether the test rejects; or, of single classes, the smallest of their adjusted p-values."""

    def miss(r: int) -> bool:
        found = local(classes(r, n, intraclass_correlation), features="exact", draws=DRAWS, seed=r)
        return (min(found.parts["class_adjusted_p"]) if single else found.p_value) <= ALPHA

    return miss


def level(miss: Callable[[int], bool], runs: int) -> None:
    """Fail unless the rejections are those of a test whose level is used up."""
    misses = count(miss, runs)
    assert not refuted(misses, runs, ALPHA), f"{misses} rejections in {runs} runs: more than {ALPHA}"
    assert binom.cdf(misses, runs, ALPHA) >= LEAST, f"{misses} rejections in {runs} runs: fewer than {ALPHA}"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("design", ["clumped", "arcsine"])
def test_level_of_every_family(design: str, family: str) -> None:
    level(rejects(design, family), 200)


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("design", ["clumped", "arcsine", "paper, d = 10", "arcsine, 2000 rows"])
def test_level_of_every_family_over_many_runs(design: str, family: str) -> None:
    level(rejects(design, family), 400)


@pytest.mark.parametrize("n", [20, 150])
def test_level_of_several_classes(n: int) -> None:
    level(of_classes(n), 250)


@pytest.mark.nightly
@pytest.mark.parametrize(("n", "runs"), [(20, 500), (150, 500), (1000, 200)])
def test_level_of_several_classes_over_many_runs(n: int, runs: int) -> None:
    level(of_classes(n), runs)
    assert not refuted(count(of_classes(n, single=True), runs), runs, ALPHA)


@pytest.mark.parametrize(("n", "runs"), [(4, 400), (2000, 60)])
def test_the_bounded_test_holds_its_level(n: int, runs: int) -> None:
    def miss(r: int) -> bool:
        rng = np.random.default_rng([0xB0, n, r])
        p = rng.beta(0.5, 0.5, n)
        rows = cal.predictions(rng.random(n) < p, p, {"x": np.zeros(n)})
        return cal.papers.published_local_test(rows, null="bounded", score_width=1e6).p_value <= 0.5

    assert not refuted(count(miss, runs), runs, 0.5)


def of_one_score(n: int) -> Callable[[int], bool]:
    """Whether the interval misses: everyone has score 0, and three of four are cases; a flat kernel."""

    def miss(r: int) -> bool:
        y = np.random.default_rng([0x1C, n, r]).random(n) < 0.75
        found = klce(cal.predictions(y, np.zeros(n), {"x": np.zeros(n)}), score_width=1e6, covariate_width=1e6)
        return 0.75**2 not in found.interval

    return miss


@pytest.mark.parametrize("n", [5, 400])
def test_the_interval_of_klce_holds(n: int) -> None:
    assert not refuted(count(of_one_score(n), 150), 150, ALPHA)


def of_features(n: int) -> Callable[[int], bool]:
    """The same of the local test's features: the mean over pairs given scores and covariates, two different rows."""
    x, p, off = (np.arange(n) < max(n // 20, 1)).astype(float), np.zeros(n), 0.75
    spec = sums_of_rows(cal.predictions(p, p, {"x": x}), None, 0, "auto", 0, 128)[0]
    phi = np.array([features_of(spec, v, x) for v in (0.0, 1.0)])
    sizes = np.array([n - x.sum(), x.sum()])
    truth = off**2 * (((sizes @ phi) ** 2).sum() - sizes @ (phi**2).sum(axis=1)) / (n * (n - 1.0))

    def miss(r: int) -> bool:
        y = np.random.default_rng([0x1F, n, r]).random(n) < off
        found = klce(cal.predictions(y, p, {"x": x}), features="default")
        return truth not in found.interval

    return miss


def features_of(sums: Any, value: float, x: Any) -> Any:
    """Return the joint features of a row whose score is 0 and whose covariate is this."""
    data = cal.predictions(np.zeros(len(x)), np.zeros(len(x)), {"x": x})
    _, _, how, _ = first_look(data, None, 0, identities_of(len(x), 0))
    rows = next(chunks(data, how, identities_of(len(x), 0)))
    out = np.empty((len(x), sums.spec.columns))
    sums.features.of(rows.p, rows.encoded, out)
    return out[int(np.flatnonzero(x == value)[0]), 2 : 2 + sums.spec.joint] / CLUSTER


@pytest.mark.parametrize("n", [5, 400])
def test_the_interval_of_the_features_holds(n: int) -> None:
    assert not refuted(count(of_features(n), 150), 150, ALPHA)


@pytest.mark.parametrize(("n", "runs"), [(4, 200), (1000, 60)])
def test_the_region_of_the_features_holds_its_level(n: int, runs: int) -> None:
    def miss(r: int) -> bool:
        rng = np.random.default_rng([0xB1, n, r])
        p = rng.beta(0.5, 0.5, n)
        found = klce(cal.predictions(rng.random(n) < p, p, {"x": rng.normal(size=n)}), features="default", alpha=0.5)
        return found.value >= found.settings["accepted"]

    assert not refuted(count(miss, runs), runs, 0.5)


def test_the_tuning_curve_tells_how_often_the_test_accepts() -> None:
    """Data sets with the planted error, tested one by one, are accepted as often as the curve says."""
    rng, n = np.random.default_rng(1), 200
    p, x = rng.uniform(0.2, 0.8, n), rng.normal(size=n)
    rows = cal.predictions(np.zeros(n), p, {"x": x})
    curve = cal.detect.kernel_tuning(
        rows, by_variable="x", gap=0.15, families="laplace", widths=[1.0], runs=400, draws=DRAWS
    )
    width, truth = curve.columns["score_width"][0], p + np.where(x < np.median(x), 0.15, -0.15)

    def accepted(r: int) -> bool:
        y = np.random.default_rng([0x7E, r]).random(n) < truth
        how: Any = {"family": "laplace", "score_width": width, "covariate_width": width}
        return local(cal.predictions(y, p, {"x": x}), features="exact", draws=DRAWS, seed=r, **how).p_value > ALPHA

    found, reported = count(accepted, 400) / 400, curve.columns["type_2"][0]
    assert abs(found - reported) < 5 * np.sqrt(2 * 0.25 / 400)
    assert 0.05 < reported < 0.95
