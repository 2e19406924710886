"""The classical tests: laws against enumeration, symmetries, what they refuse, what they say of the impossible."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

import calibrant as cal
import oracles.draws
from calibrant.kernels.draws import Walks, extremes
from calibrant.results import Outcome
from calibrant.stats.classical import CROSS, Drawing, maximum_tail, range_tail, scored, simulated
from calibrant.stats.logistic import compressed, recalibrations
from effort import examples

D = cal.detect
SINGLE: dict[str, Callable[..., Outcome]] = {
    "hosmer-lemeshow": lambda data, **k: D.hosmer_lemeshow_test(data, bins=4, **k),
    "spiegelhalter": D.spiegelhalter_test,
    "score": D.score_test,
    "kuiper": D.cumulative_test,
    "kolmogorov-smirnov": lambda data, **k: D.cumulative_test(data, statistic="kolmogorov-smirnov", **k),
    "jeffreys": lambda data, **k: D.jeffreys_test(data, by="g", **k),
    "jeffreys two-sided": lambda data, **k: D.jeffreys_test(data, by="g", alternative="two-sided", **k),
    "cox": D.cox_test,
}


def rows(n: int = 300, seed: int = 1, power: float = 1.0) -> Any:
    rng = np.random.default_rng([0xC1A, n, seed])
    p = rng.permutation(np.arange(1, n + 1)) / (n + 1)
    return cal.predictions(rng.random(n) < p**power, p, {"g": rng.integers(0, 4, n)})


def size(found: Outcome) -> float:
    """The statistic as the test orders it: large speaks against calibration."""
    if found.method.endswith("jeffreys_test"):
        return -found.statistic
    return abs(found.statistic)


@pytest.mark.parametrize("name", [k for k in SINGLE if k != "cox"])
@pytest.mark.parametrize("tied", [False, True])
def test_simulated_p_value_is_that_of_all_outcomes_weighed(name: str, tied: bool) -> None:
    """Eight rows have 256 outcomes, each with its chance."""
    p = np.array([0.1, 0.25, 0.25, 0.4, 0.55, 0.7, 0.7, 0.9])
    y = np.array([1, 0, 1, 0, 1, 1, 0, 1])
    if tied:
        p = np.repeat([0.2, 0.6], [3, 5])
    g = {"g": np.arange(8) // 2}
    found = SINGLE[name](cal.predictions(y, p, g), draws=9999, seed=3)
    chance, extreme = 0.0, size(found)
    for other in itertools.product([0, 1], repeat=8):
        o = np.array(other)
        if size(SINGLE[name](cal.predictions(o, p, g), null="asymptotic")) >= extreme - 1e-9:
            chance += float(np.prod(np.where(o == 1, p, 1 - p)))
    assert abs(found.p_value - chance) < 5 * np.sqrt(chance * (1 - chance) / 9999) + 2e-4


@pytest.mark.parametrize("name", SINGLE)
def test_cells_and_rows_are_simulated_from_one_law(name: str) -> None:
    """A score on 16 rows or more is drawn as a cell; the p-value agrees with that of rows drawn one by one."""
    rng = np.random.default_rng(77)
    p = np.repeat([0.1, 0.3, 0.5, 0.8], 60)
    y, g = rng.random(240) < p + 0.04, {"g": np.tile([0, 1], 120)}
    cells = SINGLE[name](cal.predictions(y, p, g), draws=4999)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("calibrant.stats.classical.TIED", 10**9)
        single = SINGLE[name](cal.predictions(y, p, g), draws=4999)
    assert cells.statistic == pytest.approx(single.statistic, rel=1e-9)
    assert cells.p_value == pytest.approx(single.p_value, abs=5 * np.sqrt(0.5 * cells.p_value / 2500) + 1e-3)
    assert cells.p_value != single.p_value or cells.p_value > 0.9


@pytest.mark.parametrize("name", SINGLE)
@examples(15)
@given(seed=st.integers(0, 10**6), power=st.sampled_from([0.7, 1.0, 1.5]), weighted=st.booleans())
def test_row_order_plays_no_part(name: str, seed: int, power: float, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 40, 90) / 40 * 0.999
    y, g, w = rng.random(90) < p**power, rng.integers(0, 3, 90), rng.integers(1, 4, 90) / 2
    w = w if weighted and not name.startswith(("cox", "jeffreys")) else None
    order = rng.permutation(90)
    one = SINGLE[name](cal.predictions(y, p, {"g": g}, weights=w), draws=39, seed=5)
    two = SINGLE[name](
        cal.predictions(y[order], p[order], {"g": g[order]}, weights=None if w is None else w[order]), draws=39, seed=5
    )
    assert one.p_value == two.p_value
    assert one.statistic == pytest.approx(two.statistic, rel=1e-10, abs=1e-12)
    assert Outcome.from_dict(one.to_dict()) == one


@pytest.mark.parametrize("name", ["hosmer-lemeshow", "spiegelhalter", "score", "kuiper", "jeffreys two-sided", "cox"])
@examples(15)
@given(seed=st.integers(0, 10**6))
def test_two_sided_statistics_do_not_mind_which_outcome_is_the_case(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.choice(np.arange(1, 1024), 80, replace=False) / 1024
    y, g = rng.random(80) < p, {"g": rng.integers(0, 3, 80)}
    one, two = (SINGLE[name](cal.predictions(*d, g), null="asymptotic") for d in ((y, p), (~y, 1 - p)))
    assert one.statistic == pytest.approx(two.statistic, rel=1e-7, abs=1e-9)
    assert one.p_value == pytest.approx(two.p_value, rel=1e-7, abs=1e-9)


@examples(40)
@given(seed=st.integers(0, 10**6), m=st.integers(1, 40), draws=st.integers(1, 12))
def test_compiled_walk_is_the_readable_one(seed: int, m: int, draws: int) -> None:
    rng = np.random.default_rng(seed)
    events, weight, expected = rng.integers(0, 5, (m, draws)), rng.random(m), np.cumsum(rng.random(m))
    read = rng.random(m) < 0.6
    ours, theirs = ([np.zeros(draws), np.zeros(draws), np.zeros(draws)] for _ in range(2))
    for block in (slice(0, m // 2), slice(m // 2, m)):
        if block.stop > block.start:
            extremes(events[block], weight[block], expected[block], read[block], Walks(*ours))
            oracles.draws.extremes(events[block], weight[block], expected[block], read[block], Walks(*theirs))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)


@pytest.mark.parametrize("tied", [False, True])
def test_chunks_play_no_part(tied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    p = rng.integers(1, 5, 400) / 5 if tied else rng.random(400)
    q = scored(p, rng.random(400) < p)
    ids = np.arange(len(q.p), dtype=np.uint64)

    def drawn() -> Any:
        out = np.full((len(q.p), 30), -1)
        for at, numbers, events in simulated(q, Drawing(ids, 30, 9)):
            out[at, numbers] = events
        return out

    whole = drawn()
    monkeypatch.setattr("calibrant.stats.classical.AT_ONCE", 700)
    monkeypatch.setattr("calibrant.stats.nulls.CHUNK", 7 if tied else 700)
    assert (drawn() == whole).all()
    assert (q.rows is not None) == tied
    assert abs(whole.mean(axis=1).sum() - (q.times * q.p).sum()) < 5 * np.sqrt(q.variance.sum() / 30)


def test_series_of_brownian_motion_agree_where_they_meet() -> None:
    for tail in (maximum_tail, range_tail):
        below, above = tail(CROSS - 1e-12), tail(CROSS + 1e-12)
        assert below == pytest.approx(above, rel=1e-9)
        values = [tail(x) for x in np.linspace(0.0, 9.0, 200)]
        assert values[0] == 1.0
        assert all(a >= b - 1e-15 for a, b in itertools.pairwise(values))
    rng = np.random.default_rng(6)
    paths = np.cumsum(rng.normal(size=(2000, 2000)), axis=1) / np.sqrt(2000)
    spans = np.maximum(paths.max(axis=1), 0) - np.minimum(paths.min(axis=1), 0)
    assert abs((spans > 1.8).mean() - range_tail(1.8)) < 0.05
    assert abs((np.abs(paths).max(axis=1) > 1.2).mean() - maximum_tail(1.2)) < 0.05


def test_likelihood_gain_is_that_of_a_general_optimiser() -> None:
    rng = np.random.default_rng(8)
    p = np.sort(rng.beta(0.5, 3, 200))
    x = np.log(p / (1 - p))
    y = rng.random((4, 200)) < np.stack([p, p**0.5, p**2, 1 - p])
    found = recalibrations(np.stack([(y - p).sum(axis=1), (y - p) @ x], axis=1), x, np.ones(200), True)
    for i in range(4):

        def loss(t: Any, i: int = i) -> float:
            eta = t[0] + t[1] * x
            return float(np.logaddexp(0, eta).sum() - y[i] @ eta)

        best = minimize(loss, [0.0, 1.0], method="BFGS", options={"gtol": 1e-8})
        assert found.gain[i] == pytest.approx(2 * (loss(np.array([0.0, 1.0])) - best.fun), rel=1e-6, abs=1e-7)
        assert (found.intercept[i], found.slope[i]) == pytest.approx(tuple(best.x), rel=1e-3, abs=1e-3)
    nodes, mass = compressed(np.linspace(-9, 3, 5000), np.ones(5000))
    assert len(nodes) <= 128
    assert mass.sum() == pytest.approx(5000)
    assert mass @ nodes == pytest.approx(-15000)


def test_separated_draws_gain_the_supremum() -> None:
    x = np.linspace(-2, 2, 20)
    p = 1 / (1 + np.exp(-x))
    for y in (np.zeros(20), np.ones(20), (x > 0.1).astype(float)):
        gain = recalibrations(np.array([[(y - p).sum(), (y - p) @ x]]), x, np.ones(20), True).gain[0]
        null = float(np.log(np.where(y == 1, p, 1 - p)).sum())
        assert gain == pytest.approx(-2 * null, rel=5e-3)


@pytest.mark.parametrize("null", ["simulated", "asymptotic"])
@pytest.mark.parametrize("name", SINGLE)
def test_gross_error_is_found_and_calibration_is_not(name: str, null: str) -> None:
    bad = SINGLE[name](rows(2000, power=0.6), null=null)
    assert bad.p_value <= 0.002
    assert SINGLE[name](rows(2000, 2), null=null).p_value > 0.01
    assert bad.law == ("exact simulation" if null == "simulated" else "asymptotic")


@pytest.mark.parametrize("name", SINGLE)
def test_sketch_gives_the_statistic_of_its_rows(name: str) -> None:
    rng = np.random.default_rng(12)
    p = (rng.integers(0, 1 << 14, 3000) + 0.5) / (1 << 14)
    p = p if not name.startswith("jeffreys") else (np.floor(p * 1024) + 0.5) / 1024
    data = cal.predictions(rng.random(3000) < p, p, {"g": rng.choice(["a", "b", "c"], 3000)})
    one, two = SINGLE[name](data), SINGLE[name](cal.sketch(data, by=["g"]))
    assert two.statistic == pytest.approx(one.statistic, rel=1e-6)
    assert two.p_value == pytest.approx(one.p_value, abs=0.08)
    assert two.law == "simulation from cells"


@pytest.mark.parametrize("tied", [False, True])
def test_correlated_defaults_have_the_p_value_of_all_outcomes_weighed(tied: bool) -> None:
    """Eight rows have 256 outcomes; the chance of each is an integral over the factor."""
    p = np.repeat([0.2, 0.6], 4) if tied else np.array([0.1, 0.2, 0.25, 0.4, 0.55, 0.6, 0.7, 0.9])
    y, g, rho = np.array([1, 0, 1, 0, 1, 1, 0, 1]), {"g": np.repeat([0, 1], 4)}, 0.3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("calibrant.stats.classical.TIED", 2)
        found = D.jeffreys_test(cal.predictions(y, p, g), by="g", rho=rho, draws=9999, seed=3)
    z = np.linspace(-8, 8, 801)[:, None]
    chances = norm.cdf((norm.ppf(p) - np.sqrt(rho) * z) / np.sqrt(1 - rho))
    density = norm.pdf(z[:, 0]) * (z[1, 0] - z[0, 0])
    chance = 0.0
    for other in itertools.product([0, 1], repeat=8):
        o = np.array(other)
        least = D.jeffreys_test(cal.predictions(o, p, g), by="g", null="asymptotic").statistic
        if least <= found.statistic + 1e-9:
            chance += float(density @ np.where(o == 1, chances, 1 - chances).prod(axis=1))
    assert abs(found.p_value - chance) < 5 * np.sqrt(chance * (1 - chance) / 9999) + 2e-4
    assert found.settings["rho"] == 0.3
    assert "correlation 0.3" in found.null


def test_what_correlation_is_refused() -> None:
    data = rows()
    for rho in (-0.1, 1.0, float("nan")):
        with pytest.raises(cal.BadInput, match="rho"):
            D.jeffreys_test(data, by="g", rho=rho)
    with pytest.raises(cal.NotComputable, match="null='simulated'"):
        D.jeffreys_test(data, by="g", rho=0.1, null="asymptotic")


def test_outcomes_of_probability_zero_refute_calibration() -> None:
    p = np.array([0.0] * 5 + [0.3, 0.4, 0.6] * 40 + [1.0] * 5)
    y = np.array([0] * 5 + [0, 1, 1, 1, 0, 0] * 20 + [1] * 5)
    for name, test in SINGLE.items():
        g = {"g": np.arange(130) % 3}
        fine = test(cal.predictions(y, p, g))
        assert (fine.parts["impossible"], fine.law) == (0, "exact simulation")
        wrong = y.copy()
        wrong[0] = 1
        found = test(cal.predictions(wrong, p, g))
        assert (found.p_value, found.parts["impossible"]) == (0.0, 1), name
        assert "probability zero" in found.law
    late = y.copy()
    late[-1] = 0
    data = cal.predictions(late, p, {"g": np.arange(130) % 3})
    assert D.jeffreys_test(data, by="g").parts["impossible"] == 0
    assert D.jeffreys_test(data, by="g", alternative="less").p_value == 0.0
    fewer = D.cox_test(cal.predictions(y, p))
    inner = D.cox_test(cal.predictions(y[5:-5], p[5:-5]))
    assert (fewer.statistic, fewer.p_value, fewer.parts["left_out"]) == (inner.statistic, inner.p_value, 10)


def test_two_parts_add_up_to_the_whole() -> None:
    for test in (D.cox_test, D.score_test):
        found = test(rows(500, power=1.2))
        parts = found.parts["intercept_statistic"] + found.parts["slope_statistic"]
        assert parts == pytest.approx(found.statistic, rel=1e-9)


def test_cumulative_names_the_stretch() -> None:
    """Its ends are sharp where something else begins: here too many, then too few, then too many cases."""
    p = (np.arange(4000) + 0.5) / 4000
    rng = np.random.default_rng(2)
    y = rng.random(4000) < np.where((p > 0.4) & (p < 0.6), p - 0.3, p + 0.1)
    found = D.cumulative_test(cal.predictions(y, p)).parts
    assert 0.36 < found["from_score"] < 0.44
    assert 0.56 < found["to_score"] < 0.64
    assert found["surplus"] == pytest.approx(-found["ecce"]) == pytest.approx(-0.06, abs=0.015)


def test_jeffreys_tests_each_distinct_score_and_names_the_grade() -> None:
    rng = np.random.default_rng(3)
    p = rng.choice([0.01, 0.05, 0.2], 5000)
    data = cal.predictions(rng.random(5000) < p - 0.03 * (p == 0.05), p)
    high, low = D.jeffreys_test(data), D.jeffreys_test(data, alternative="less")
    assert high.parts["grade"] == ("0.01", "0.05", "0.2")
    assert high.p_value > 0.05
    assert low.parts["adjusted_p"][1] == low.p_value == 0.001
    whole = D.jeffreys_test(cal.sketch(data))
    assert whole.parts["grade"] == high.parts["grade"]
    assert whole.statistic == pytest.approx(high.statistic, rel=1e-5)


def test_score_test_of_one_score_tests_the_intercept() -> None:
    found = D.score_test(cal.predictions([0] * 60 + [1] * 40, [0.3] * 100))
    assert found.settings["degrees"] == 1
    assert found.statistic == pytest.approx(10**2 / 21)
    assert D.score_test(cal.predictions([0] * 50, [0.1] * 50)).p_value < 0.05


CLUSTER_TESTS = [D.spiegelhalter_test, D.score_test, D.hosmer_lemeshow_test, D.cumulative_test]


def in_clusters(clusters=200, copies=3, **more):
    """Return rows of which each stands there several times, in units."""
    data = rows(clusters)
    y, p, cluster_code = (np.repeat(v, copies) for v in (data.y, data.p, np.arange(clusters)))
    return cal.predictions(y, p, cluster=cluster_code, **more)


@pytest.mark.parametrize("test", CLUSTER_TESTS)
def test_copies_in_units_add_no_evidence(test):
    once, thrice = test(in_clusters(copies=1), draws=4999), test(in_clusters(), draws=4999)
    assert thrice.p_value == pytest.approx(once.p_value, abs=0.03)
    assert test(cal.predictions(in_clusters().y, in_clusters().p)).p_value < thrice.p_value
    assert thrice.law.startswith("random signs of whole clusters")
    assert thrice.settings["clusters"] == 200
    assert "clusters are independent" in thrice.null


@pytest.mark.parametrize("test", CLUSTER_TESTS)
def test_units_do_not_depend_on_the_order_of_rows_and_take_weights(test):
    data, order = in_clusters(), np.random.default_rng(0).permutation(600)
    turned = cal.predictions(data.y[order], data.p[order], cluster=data.cluster[order])
    assert test(turned).p_value == test(data).p_value
    assert test(in_clusters(weights=1.0 + np.arange(600) % 5)).statistic != test(data).statistic


def test_statistics_of_units_are_sums_over_them():
    data = in_clusters(60)
    x = np.log(data.p / (1 - data.p))
    each = np.array([[(r := (data.y - data.p)[data.cluster == g]).sum(), r @ x[data.cluster == g]] for g in range(60)])
    total = each.sum(axis=0)
    assert D.score_test(data).statistic == pytest.approx(total @ np.linalg.solve(each.T @ each, total))
    slope = [((data.y - data.p) * (1 - 2 * data.p))[data.cluster == g].sum() for g in range(60)]
    assert D.spiegelhalter_test(data).statistic == pytest.approx(np.sum(slope) / np.sqrt(np.square(slope).sum()))


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: D.score_test([1, 0]), "data is a list"),
    (lambda: D.score_test(cal.multiclass_predictions([0, 1, 2], np.eye(3))), "several classes"),
    (lambda: D.score_test(rows(), draws=3), "draws=3"),
    (lambda: D.score_test(rows(), null="exact"), "null='exact'"),
    (lambda: D.score_test(rows(), seed=-1), "seed=-1"),
    (lambda: D.hosmer_lemeshow_test(rows(), bins=1), "bins=1"),
    (lambda: D.cumulative_test(rows(), statistic="ks"), "statistic='ks'"),
    (lambda: D.jeffreys_test(rows(), by="h"), "h"),
    (lambda: D.jeffreys_test(rows()), "by="),
    (lambda: D.jeffreys_test(rows(), by="g", alternative="more"), "alternative='more'"),
]
NOT: list[tuple[Callable[[], Any], str]] = [
    (lambda: D.score_test(cal.predictions([0, 1], [0.3, 0.4], cluster=["a", "a"])), "one cluster"),
    (lambda: D.score_test(in_clusters(50), null="asymptotic"), "random signs as its null, not an asymptotic law"),
    (lambda: D.score_test(in_clusters(50), tolerance=0.1), "not room for a tolerance or one side: use strong"),
    (lambda: D.cox_test(in_clusters(19)), "19 clusters are under 20"),
    (lambda: D.jeffreys_test(in_clusters(50), by="g"), "those of one cluster are not: use score_test"),
    (lambda: D.cox_test(cal.predictions([0, 1, 0, 1], [0.3, 0.2, 0.1, 0.4], weights=[1, 2, 1, 1])), "under 20"),
    (lambda: D.jeffreys_test(cal.predictions([0, 1], [0.3, 0.4], weights=[1, 2])), "weights"),
    (lambda: D.cox_test(cal.predictions([0, 0], [0.3, 0.4])), "both outcomes"),
    (lambda: D.cox_test(cal.predictions([0, 1], [0.3, 0.3])), "differ"),
    (lambda: D.cox_test(cal.predictions([0, 0, 1, 1], [0.3, 0.4, 0.4, 0.6])), "separate"),
    (lambda: D.spiegelhalter_test(cal.predictions([0, 1, 1], [0.5, 0.5, 1.0])), "1/2"),
    (lambda: D.cumulative_test(cal.predictions([0, 1], [0.0, 1.0])), "0 or 1"),
    (lambda: D.score_test(cal.predictions([0, 1], [0.0, 1.0])), "0 and 1"),
    (lambda: D.hosmer_lemeshow_test(cal.predictions([0, 1], [0.0, 1.0])), "can vary"),
    (lambda: D.hosmer_lemeshow_test(rows(), fitted=True), "asymptotic"),
    (lambda: D.jeffreys_test(cal.sketch(rows())), "by="),
]


@pytest.mark.parametrize(("call", "says"), BAD)
def test_bad_input_is_named(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(cal.BadInput) as error:
        call()
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("call", "says"), NOT)
def test_what_does_not_exist_is_refused_with_a_reason(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(cal.NotComputable) as error:
        call()
    assert says in error.value.reason
