"""What chance is made of: draws of rows are independent, and several p-values are told adjusted."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.tree import DecisionTreeRegressor

import calibrant as cal
from calibrant.detect.local_calibration_test import drawn_classes
from calibrant.diagnose.ranking import RankedRows, lines_of
from calibrant.diagnose.rule_search import hash_split
from calibrant.stats.local.kernel_sums import Rows
from calibrant.stats.local.spectra import GLOBAL, together
from calibrant.stats.nulls import ranked
from calibrant.stats.strata import widened
from calibrant.views.features import hash_split as screened

DRAWS, N = 400, 150
SURE = 1e-6


def independent(counts: np.ndarray, rate: float) -> bool:
    """Tell whether sums over rows of independent outcomes vary as they should: neither less nor more."""
    square = float(((counts - N * rate) ** 2).sum() / (N * rate * (1.0 - rate)))
    return bool(chi2.ppf(SURE, DRAWS) < square < chi2.isf(SURE, DRAWS))


def test_classes_of_rows_are_drawn_independently() -> None:
    p = np.tile([0.4, 0.3, 0.2, 0.1], (N, 1))
    drawn = drawn_classes(p, DRAWS, 3)
    for number, rate in enumerate(p[0]):
        assert independent((drawn == number).sum(axis=0), float(rate))


@pytest.mark.parametrize("joined", [False, True])
def test_outcomes_of_rows_are_drawn_independently(joined: bool) -> None:
    rate, ids = np.full(N, 0.3), np.random.default_rng(0).integers(0, 2**63, N).astype(np.uint64)
    rows = Rows(rate, np.ones(N), np.zeros(N), None if joined else ids)
    assert independent(rows.drawn(0, DRAWS, 1).sum(axis=0), 0.3)


def test_grades_judged_without_draws_are_adjusted_by_holm() -> None:
    rng = np.random.default_rng(7)
    p = rng.choice([0.05, 0.1, 0.2, 0.4], 3000)
    found = cal.detect.jeffreys_test(cal.predictions(rng.uniform(size=3000) < p * 1.15, p), null="asymptotic")
    own = np.array(found.parts["posterior"])
    order = np.argsort(own)
    holm = np.minimum(np.maximum.accumulate(own[order] * (len(own) - np.arange(len(own)))), 1.0)
    assert np.array(found.parts["adjusted_p"])[order] == pytest.approx(holm)
    assert found.p_value == pytest.approx(len(own) * own.min())


# ---- the maximum decides, not one point; rows that chose do not judge ----


@pytest.mark.slow
def test_a_band_along_a_variable_excludes_zero_only_where_its_test_rejects() -> None:
    """By one critical value of the largest deviation: at a level of a half many do, and each with the p-value."""
    found = []
    for seed in range(25):
        rng = np.random.default_rng([0xBA2D, seed])
        p, x = rng.uniform(0.2, 0.8, 250), rng.uniform(size=250)
        data = cal.predictions(rng.uniform(size=250) < p, p, {"x": x})
        curve = cal.diagnose.variable_curve(data, "x", grid=21, alpha=0.5, draws=99, seed=seed)
        out = bool((np.array(curve.columns["low"]) > 0).any() or (np.array(curve.columns["high"]) < 0).any())
        assert curve.settings["p_value"] <= 0.5 or not out
        found.append(out)
    assert 2 < sum(found) < 23


def test_rules_are_judged_by_the_half_that_did_not_grow_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = import_module("calibrant.diagnose.searched_subgroups")
    real, found = rules.search, []

    def search(*given: Any) -> Any:
        found.append(real(*given))
        return found[-1]

    monkeypatch.setattr(rules, "search", search)
    rng = np.random.default_rng(2)
    p, x = rng.uniform(0.2, 0.8, 240), rng.uniform(size=(240, 2))
    data = cal.predictions(rng.uniform(size=240) < p, p, {"a": x[:, 0], "b": x[:, 1]})
    tree = [("tree", DecisionTreeRegressor(max_depth=2, min_samples_leaf=10, random_state=0))]
    cal.diagnose.subgroups(data, models=tree, rules=1, depth=1, seed=5, method="searched")
    assert found[0].judges.tolist() == np.flatnonzero(hash_split(240, 2, 5, None) == 1).tolist()


def test_rows_that_choose_covariates_are_not_tested() -> None:
    pilot, rest = screened(500, 3)
    assert not set(pilot) & set(rest)
    assert len(pilot) + len(rest) == 500


def test_p_values_of_everyone_are_ranked_by_their_harmonic_mean() -> None:
    rng = np.random.default_rng(6)
    p = dict(zip(GLOBAL, ranked(rng.normal(size=(3, 60))), strict=True))
    mean = sum(GLOBAL[name] / p[name] for name in GLOBAL)
    assert together(p, GLOBAL) == pytest.approx(float((mean >= mean[0] - 1e-9).mean()))
    assert together(p, GLOBAL) > min(float(v[0]) for v in p.values())


def test_simulated_noise_is_widened_to_what_is_seen() -> None:
    """Scores that are too sure: outcomes vary more than those of a right model, along any variable."""
    rng = np.random.default_rng(9)
    p = np.where(rng.uniform(size=2000) < 0.5, 0.02, 0.98)
    data = cal.predictions(rng.uniform(size=2000) < 0.25 + 0.5 * p, p, {"v": rng.uniform(size=2000)})
    cells = lines_of(RankedRows(data), ["v"], "probability", 10, True)[0][0].bins
    more = (cells.variance - cells.noise) / cells.total**2
    assert (more > 0.0).all()
    drawn = widened(np.zeros((4000, cells.size)), cells, rng)
    assert drawn.var(axis=0) == pytest.approx(more, rel=0.2)


def test_the_second_of_two_stages_of_draws_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that stands out in the first is ranked among all draws, and told by that rank, be it larger."""
    ranking = import_module("calibrant.diagnose.ranking")
    data = cal.predictions(np.arange(200) % 2, np.full(200, 0.5), {"v": np.arange(200) % 4})
    lines, _ = lines_of(RankedRows(data), ["v"], "probability", 10, True)
    for stages, reported in (((0.001, 0.004), 0.004), ((0.004, 0.001), 0.001), ((0.9,), 0.9)):
        levels = iter(stages)
        monkeypatch.setattr(ranking, "_gaussian", lambda *_, levels=levels: (1.0, next(levels)))
        assert ranking.gaussian_measures(lines, lines, 0)[0][0][1].tolist() == [reported]
        assert not list(levels)
