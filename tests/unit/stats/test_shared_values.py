"""Columns whose rows of one value are clusters are found, whatever they are called; groups that are off are not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from calibrant.stats.clusters.shared_values import Looked, SharedValue, shared_values

Columns = dict[str, tuple[np.ndarray, bool]]


def codes(values: np.ndarray, is_number: bool = False) -> tuple[np.ndarray, bool]:
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64), is_number


def others(rng: np.random.Generator, n: int) -> Columns:
    """Columns that say nothing."""
    made = {f"c{k}": codes(rng.integers(0, k, n)) for k in (3, 40, n // 4)}
    return made | {"row": codes(np.arange(n), True), "age": codes(np.round(50.0 + 12.0 * rng.normal(size=n)), True)}


def only(looked: Looked) -> SharedValue:
    assert len(looked.detected) == 1
    return looked.detected[0]


def test_one_outcome_looked_at_many_times_is_a_cluster() -> None:
    rng = np.random.default_rng(0)
    game = np.repeat(np.arange(120), 20)
    y = (rng.random(120) < 0.5)[game].astype(np.int8)
    p = np.clip(0.3 + 0.4 * y + 0.3 * rng.normal(size=len(y)), 0.01, 0.99)
    found = only(shared_values({"q7": codes(game), **others(rng, len(y))}, y, p))
    assert (found.columns, found.kind, found.clusters, found.one_outcome) == (("q7",), "cluster", 120, 1.0)
    assert found.design_effect > 10.0
    assert found.p_value < 1e-6


def test_three_columns_that_name_a_game_together_are_a_cluster() -> None:
    rng = np.random.default_rng(1)
    season, week, team = (v.ravel() for v in np.meshgrid(np.arange(6), np.arange(8), np.arange(10), indexing="ij"))
    season, week, team = (np.repeat(v, 6) for v in (season, week, team))
    game = season * 80 + week * 10 + team
    y = (rng.random(480) < 0.5)[game].astype(np.int8)
    p = np.clip(0.3 + 0.4 * y + 0.3 * rng.normal(size=len(y)), 0.01, 0.99)
    columns = {"a": codes(season, True), "b": codes(week, True), "c": codes(team)}
    found = only(shared_values(columns, y, p))
    assert (set(found.columns), found.kind) == ({"a", "b", "c"}, "cluster")


def test_visits_whose_rates_differ_are_a_cluster() -> None:
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        who = rng.integers(0, 300, 900)
        p = rng.beta(1.0, 2.0, 900)
        rate = expit(np.log(p / (1.0 - p)) + 1.5 * rng.normal(size=300)[who])
        looked = shared_values({"k": codes(who)}, (rng.random(900) < rate).astype(np.int8), p)
        found += any(f.kind == "cluster" and f.columns == ("k",) for f in looked.detected)
    assert found >= 9


@pytest.mark.slow
def test_independent_rows_are_named_in_one_log_of_a_hundred() -> None:
    """Of 100 logs with trends, sites and a score that is off; over 6 would refute 1 % at one in ten thousand."""
    named = 0
    for seed in range(100):
        rng = np.random.default_rng([1, seed])
        n = int(rng.choice([200, 600, 1500]))
        x = rng.normal(size=n)
        off = [0.0, 0.5 * (x > 1.0), np.linspace(-0.6, 0.6, n)][seed % 3]
        y = (rng.random(n) < expit(x - 0.5 + off)).astype(np.int8)
        columns = others(rng, n) | {"x": codes(np.round(10.0 * x), True), "site": codes(rng.integers(0, 50, n))}
        named += bool(shared_values(columns, y, expit(0.8 * x - 0.5), seed=seed).detected)
    assert named <= 6


def test_a_site_that_is_off_is_no_cluster() -> None:
    kinds = []
    for seed in range(10):
        rng = np.random.default_rng([2, seed])
        site, p = rng.integers(0, 40, 4000), rng.beta(2.0, 5.0, 4000)
        y = (rng.random(4000) < np.clip(p + 0.2 * (site == 7), 0.0, 1.0)).astype(np.int8)
        kinds += [f.kind for f in shared_values({"site": codes(site)}, y, p, seed=seed).detected]
    assert "group" in kinds
    assert kinds.count("cluster") <= 1


def test_thirty_values_are_groups_and_not_looked_at() -> None:
    rng = np.random.default_rng(3)
    site = rng.integers(0, 30, 3000)
    y = (rng.random(3000) < rng.beta(2.0, 2.0, 30)[site]).astype(np.int8)
    looked = shared_values({"site": codes(site)}, y, np.full(3000, y.mean()))
    assert looked.detected == ()
    assert looked.columns == 1


@pytest.mark.parametrize("events", [0, 9])
def test_few_events_say_nothing(events: int) -> None:
    y = np.zeros(400, dtype=np.int8)
    y[:events] = 1
    assert shared_values({"k": codes(np.repeat(np.arange(100), 4))}, y, np.full(400, 0.02)).detected == ()


def test_missing_values_share_nothing() -> None:
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1], 500).astype(np.int8)
    code = np.full(1000, -1)
    code[::10] = np.arange(100)
    assert shared_values({"k": (code, False)}, y, rng.beta(2.0, 2.0, 1000)).columns == 0


def test_a_pair_that_reproduces_the_outcome_is_no_cluster() -> None:
    rng = np.random.default_rng(6)
    season, team = (np.repeat(v.ravel(), 20) for v in np.meshgrid(np.arange(12), np.arange(10)))
    y = (rng.random(120) < 0.5)[season + 12 * team].astype(np.int8)
    p = np.clip(0.3 + 0.4 * y + 0.3 * rng.normal(size=len(y)), 0.01, 0.99)
    columns = {"season": codes(season), "team": codes(team), "c": codes(rng.integers(0, 3, len(y)))}
    assert only(shared_values(columns, y, p)).columns == ("season", "team")
    assert shared_values(columns, y, p, apart=[("season", "team")]).detected == ()
