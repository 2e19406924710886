"""The tests of several classes at once keep their level, whichever of their p-values is read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
from calibrant.detect import class_tests
from calibrant.detect.class_tests import MOST, OTHERS
from validity.acceptance import refuted

ALPHA, DRAWS, SETS = 0.1, 19, 200
DESIGNS = {  # concentrations of the classes: alike, one rare, one that hardly occurs (the two others mirror each other)
    "alike": (0.8, 0.8, 0.8),
    "rare": (2.0, 1.0, 0.05, 0.5),
    "mirrored": (1.0, 1.0, 1e-4),
}


def drawn(concentrations, seed, n=100):
    rng = np.random.default_rng([seed, len(concentrations), 0xC1A])
    p = rng.dirichlet(concentrations, n)
    p /= p.sum(axis=1, keepdims=True)
    y = np.minimum((rng.uniform(size=(n, 1)) >= p.cumsum(axis=1)).sum(axis=1), len(concentrations) - 1)
    y = np.where(p[np.arange(n), y] > 0.0, y, p.argmax(axis=1))
    return cal.multiclass_predictions(y, p, {"x": rng.normal(size=n)})


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_the_local_test_of_classes_keeps_its_level(design):
    rejected = dict.fromkeys(("p_value", "class", "variable", "p_global", "p_local"), 0)
    for seed in range(SETS):
        found = cal.detect.local_calibration_test(drawn(DESIGNS[design], seed), draws=DRAWS, seed=seed)
        smallest = {
            "p_value": found.p_value,
            "class": min(found.parts["class_adjusted_p"]),
            "variable": min(found.parts["variable_adjusted_p"]),
            "p_global": found.parts["p_global"],
            "p_local": found.parts["p_local"],
        }
        for name, p in smallest.items():
            rejected[name] += p <= ALPHA
    assert not [name for name, k in rejected.items() if refuted(k, SETS, ALPHA)], rejected


@pytest.mark.slow
def test_the_local_test_keeps_its_level_where_rare_classes_are_one_and_some_rows_are_tested(monkeypatch):
    """Thirteen classes, of which eleven are tested, on a random half of 160 weighted rows."""
    monkeypatch.setattr(class_tests, "VALUES", 80 * (MOST + 1))
    rejected = dict.fromkeys(("p_value", "class", "p_global", "p_local"), 0)
    for seed in range(SETS // 2):
        data = drawn((1.0,) * 6 + (0.3,) * 7, seed, n=160)
        data = replace(data, weights=np.random.default_rng([seed, 1]).uniform(0.5, 2.0, 160))
        found = cal.detect.local_calibration_test(data, draws=DRAWS, seed=seed)
        assert (found.settings["classes"], found.settings["n"], found.settings["rows"]) == (MOST + 1, 80, 160)
        assert OTHERS in found.parts["classes"]
        ps = found.p_value, min(found.parts["class_adjusted_p"]), found.parts["p_global"], found.parts["p_local"]
        for name, p in zip(rejected, ps, strict=True):
            rejected[name] += p <= ALPHA
    assert not [name for name, k in rejected.items() if refuted(k, SETS // 2, ALPHA)], rejected


@pytest.mark.slow
def test_the_strong_test_of_classes_keeps_its_level():
    rejected = dict.fromkeys(("p_value", "class"), 0)
    for seed in range(SETS):
        data = drawn(DESIGNS["mirrored" if seed % 2 else "rare"], seed, n=60)
        found = cal.detect.strong_calibration_test(data, draws=DRAWS, seed=seed)
        rejected["p_value"] += found.p_value <= ALPHA
        rejected["class"] += min(found.parts["class_adjusted_p"]) <= ALPHA
    assert not [name for name, k in rejected.items() if refuted(k, SETS, ALPHA)], rejected
