"""The default local calibration test: its level on models that are right, and of its steps."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.stats.local import spectra
from calibrant.stats.nulls import ranked
from validity.acceptance import LEAST, refuted
from validity.local_designs import DESIGNS, rows

module = import_module("calibrant.detect.local_calibration_test")  # the module, not the function of that name

ALPHA, DRAWS = 0.05, 199
QUICK = ("extreme scores", "rare", "clumped")


def found(design: str, replicate: int, **more: Any) -> Any:
    return cal.detect.local_calibration_test(rows(design, replicate), draws=DRAWS, seed=replicate, **more)


def claims(outcome: Any) -> tuple[float, ...]:
    """The p-values whose level is claimed."""
    parts = outcome.parts
    return outcome.p_value, parts["p_global"], parts["p_local"], min(parts["variable_adjusted_p"], default=1.0)


def level(design: str, runs: int) -> None:
    rejected = (np.array([claims(found(design, r)) for r in range(runs)]) <= ALPHA + 1e-9).sum(axis=0)
    for count in rejected.tolist():
        assert not refuted(count, runs, ALPHA), f"{rejected} rejections in {runs} runs"
    if design not in ("rare", "discrete", "homogeneous"):  # ties: at most alpha there
        assert binom.cdf(int(rejected[0]), runs, ALPHA) >= LEAST, f"only {rejected[0]} rejections in {runs} runs"


@pytest.mark.parametrize("design", QUICK)
def test_level(design: str) -> None:
    level(design, 120)


@pytest.mark.nightly
@pytest.mark.parametrize("design", DESIGNS)
def test_level_at_length(design: str) -> None:
    level(design, 500)


@pytest.mark.nightly
@pytest.mark.parametrize("design", ["extreme scores", "paper", "many rows"])
def test_level_of_the_gaussian_null(design: str) -> None:
    rejected = sum(found(design, r, null="gaussian").p_value <= ALPHA for r in range(400))
    assert not refuted(rejected, 400, 0.06), f"{rejected} rejections in 400 runs"


@pytest.mark.nightly
def test_level_of_the_gaussian_null_with_many_rare_levels() -> None:
    share = 1.0 / np.arange(1, 90)

    def once(r: int) -> tuple[bool, bool]:
        rng = np.random.default_rng([0xC2, r])
        p, g = rng.uniform(0.03, 0.04, 3500), rng.choice(89, 3500, p=share / share.sum()).astype(str)
        data = cal.predictions(rng.random(3500) < p, p, {"x": rng.normal(size=3500), "g": g})
        outcome = cal.detect.local_calibration_test(data, null="gaussian", seed=r)
        return outcome.p_value <= ALPHA, min(outcome.parts["variable_adjusted_p"]) <= ALPHA

    rejected = np.sum([once(r) for r in range(300)], axis=0)
    assert not any(refuted(int(k), 300, 0.06) for k in rejected), f"{rejected} rejections in 300 runs"


@pytest.mark.nightly
def test_level_with_clusters_where_rows_of_a_cluster_agree() -> None:
    def once(r: int, reported: bool) -> bool:
        rng = np.random.default_rng([0xC1, r])
        cluster = np.repeat(np.arange(80), 10)
        x = np.repeat(rng.normal(size=(80, 2)), 10, axis=0)
        p = np.full(800, 0.4)
        y = np.where(rng.random(800) < 0.4, np.repeat(rng.random(80) < 0.4, 10), rng.random(800) < 0.4)
        data = cal.predictions(y, p, {"a": x[:, 0], "b": x[:, 1]}, cluster=cluster if reported else None)
        return bool(cal.detect.local_calibration_test(data, draws=DRAWS, seed=r).p_value <= ALPHA)

    reported = sum(once(r, True) for r in range(400))
    assert not refuted(reported, 400, 0.07), f"{reported} rejections in 400 runs"
    assert refuted(sum(once(r, False) for r in range(60)), 60, ALPHA)


# ---- steps of the test ----


def one_sided(p: list[float]) -> bool:
    """Tell whether p-values are not uniform: too few or too many below one half."""
    low = sum(v <= 0.5 for v in p)
    return refuted(low, len(p), 0.5) or refuted(len(p) - low, len(p), 0.5)


def local(design: str, runs: int, **more: Any) -> list[float]:
    return [found(design, r, **more).parts["p_local"] for r in range(runs)]


def test_p_values_are_spread_evenly() -> None:
    assert not one_sided(local("clumped", 40))


def whitened(true: Any, believed: Any, tolerance: float) -> list[float]:
    """P-values of 200 data sets by a fully whitened statistic; the draws follow the covariance believed in."""
    rng = np.random.default_rng(0x32)
    score = np.hstack([spectra.gaussian_scores(g, k, rng) for g, k in ((true, 200), (believed, 999))])
    with patch.object(spectra, "TOLERANCE", tolerance):
        s = spectra.spectrum(spectra.centred(score, believed), np.arange(2, len(true)))
    assert s is not None
    total = s.squares.sum(axis=0)
    return [float((1 + np.count_nonzero(total[200:] >= t)) / 1000) for t in total[:200]]


def test_saboteur_single_precision_whitening_at_a_millionth() -> None:
    rng, d = np.random.default_rng(0x64), 42
    vectors = np.linalg.qr(rng.normal(size=(d, d)))[0]
    true = 1e6 * (vectors * np.append([1.0, 1.0, 1.0, 0.3, 0.1], np.full(d - 5, 5e-6))) @ vectors.T
    noise = rng.normal(size=(d, d)) * 1e6 * 2.0**-24 * np.sqrt(1e6 / 2048)  # of sums over 500 chunks in float32
    single = true + (noise + noise.T) / 2**0.5
    assert one_sided(whitened(true, single, 1e-6))
    assert not one_sided(whitened(true, single, spectra.TOLERANCE))
    assert not one_sided(whitened(true, true, 1e-6))


def test_p_values_of_everyone_are_joined_at_their_level() -> None:
    rng, gram, runs = np.random.default_rng(0x65), np.array([[40.0, 10.0], [10.0, 90.0]]), 600
    together = 0
    for _ in range(runs):
        each = spectra.centred(spectra.gaussian_scores(gram, 200, rng), gram).everyone
        p = dict(zip(each, ranked(np.array(list(each.values()))), strict=True))
        assert set(p) == set(spectra.GLOBAL)
        together += spectra.together(p, spectra.GLOBAL) <= ALPHA
    assert not refuted(together, runs, ALPHA), f"{together} of {runs}"


def test_a_slope_alone_is_found_more_often_than_with_the_intercept() -> None:
    """The slope about a free intercept has one degree of freedom, the two together have two."""
    rng, gram, runs = np.random.default_rng(0x66), np.array([[40.0, 10.0], [10.0, 90.0]]), 300
    found = dict.fromkeys(spectra.GLOBAL, 0)
    for _ in range(runs):
        score = spectra.gaussian_scores(gram, 200, rng)
        score[:, 0] += 0.25 * gram @ [-0.25, 1.0]  # along the slope, with nothing left of the intercept
        each = spectra.centred(score, gram).everyone
        for name, p in zip(each, ranked(np.array(list(each.values()))), strict=True):
            found[name] += float(p[0]) <= ALPHA
    assert found["slope"] > found["intercept and slope"] + 20 > found["intercept"] + 60
