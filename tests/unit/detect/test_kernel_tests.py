"""The exact and the published kernel test, and the one of the score alone: what they return and what they refuse."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.detect.kernel_calibration_test import _gaussian, _simulated
from calibrant.detect.local_calibration_test import exact_local_test
from calibrant.errors import BadInput, NotComputable
from calibrant.papers import published_local_test
from calibrant.results import Outcome
from calibrant.stats.local.kernel_sums import Kernel, Rows, nodes_of, statistics
from calibrant.views.kernel_rows import Shape, rows_of


def data(n: int = 200, off: float = 0.0, seed: int = 1, **more: Any) -> Any:
    rng = np.random.default_rng([n, seed])
    x, p = rng.normal(size=n), rng.uniform(0.2, 0.8, n)
    y = rng.random(n) < p + off * np.sign(x)
    covariates = {"x": x, "level": rng.choice(["a", "b", "c"], n), "one": np.ones(n)}
    return cal.predictions(y, p, covariates, **more)


def literal(p: Any, y: Any, points: Any) -> float:
    e, total = y - p, 0.0
    for i in range(len(p)):
        for j in range(len(p)):
            if i != j:
                total += e[i] * e[j] * np.exp(-0.5 * np.sum((points[i] - points[j]) ** 2))
    return total / (len(p) * (len(p) - 1))


def test_exact_statistic_is_the_double_loop_with_the_widths_it_names() -> None:
    d = data(60)
    o = exact_local_test(d, variables=["x"], draws=19, shape=Shape(score_width=0.7, covariate_width=1.3))
    x, p = d.covariates["x"].to_numpy(), d.p
    points = np.column_stack([(p - p.mean()) / p.std() / 0.7, (x - x.mean()) / x.std() / 1.3])
    assert o.statistic == pytest.approx(literal(p, d.y, points), rel=1e-4)
    assert (o.settings["score_width"], o.settings["covariate_width"]) == (0.7, 1.3)


def test_score_statistic_is_the_double_loop() -> None:
    d = data(60)
    o = cal.detect.kernel_calibration_test(d, draws=19, width=0.15)
    assert o.statistic == pytest.approx(literal(d.p, d.y, d.p[:, None] / 0.15), rel=1e-9)


def test_score_statistic_is_the_local_one_with_a_covariate_kernel_of_one() -> None:
    d = data(300)
    rows = rows_of(d, np.arange(300, dtype=np.uint64))
    kernel = Kernel(d.p[:, None] / 0.1, np.zeros((300, 0), np.int32), np.zeros(0))
    assert _simulated(nodes_of(d.p, 0.1), rows, np.ones(len(rows.rate)), 30, 4) == pytest.approx(
        statistics(kernel, rows, 30, 4)[0], abs=1e-3
    )


def test_results_round_trip_and_depend_on_the_seed_only() -> None:
    d = data()
    for o in (
        exact_local_test(d, draws=99),
        published_local_test(d, variables=["x"]),
        cal.detect.kernel_calibration_test(d),
    ):
        assert Outcome.from_dict(o.to_dict()) == o
    assert exact_local_test(d, draws=99, seed=3) == exact_local_test(d, draws=99, seed=3)
    assert exact_local_test(d, draws=99, seed=3) != exact_local_test(d, draws=99, seed=4)


def test_what_is_constant_is_left_out_and_said() -> None:
    o = exact_local_test(data(), draws=19)
    assert o.settings["dropped"] == ("one",)
    assert o.settings["variables"] == ("x", "level")


def test_every_kind_of_column() -> None:
    rng, n = np.random.default_rng(5), 150
    x = rng.standard_cauchy(n)
    x[::7] = np.nan
    p = rng.uniform(0.1, 0.9, n)
    covariates = {
        "heavy": x,
        "flag": rng.random(n) < 0.3,
        "day": np.datetime64("2020-01-01") + rng.integers(0, 900, n),
        "level": rng.choice(["a", None], n),
    }
    o = exact_local_test(cal.predictions(rng.random(n) < p, p, covariates), draws=49)
    assert set(o.settings["variables"]) == set(covariates)
    assert 0 < o.p_value <= 1


def test_an_impossible_outcome_has_p_value_zero_and_says_so() -> None:
    p, y = np.full(100, 0.5), np.arange(100) % 2
    p[:3] = [0.0, 1.0, 0.0]
    y[:3] = [1, 1, 0]
    d = cal.predictions(y, p, {"x": np.arange(100.0)})
    for o in (exact_local_test(d, draws=19), cal.detect.kernel_calibration_test(d, draws=19)):
        assert o.p_value == 0.0
        assert o.parts["contradicted"] == 1
        assert o.law == "certain: a row with score 0 or 1 has the other outcome"


def test_scores_all_certain_and_right_are_no_evidence() -> None:
    y = np.arange(40) % 2
    d = cal.predictions(y, y.astype(float), {"x": np.arange(40.0)})
    assert exact_local_test(d, draws=19).p_value == 1.0
    assert cal.detect.kernel_calibration_test(d, draws=19).p_value == 1.0


def test_few_distinct_rows_are_joined_and_any_number_is_taken() -> None:
    rng, n = np.random.default_rng(3), 60_000
    p, x = rng.choice([0.2, 0.5, 0.8], n), rng.integers(0, 4, n)
    d = cal.predictions(rng.random(n) < p + 0.03 * (x == 2), p, {"x": x})
    o = exact_local_test(d, draws=199)
    assert (o.settings["cells"], o.p_value) == (12, 0.005)
    wide = {"x": rng.normal(size=n)}
    with pytest.raises(NotComputable, match="60,000 distinct rows"):
        exact_local_test(cal.predictions(rng.random(n) < p, p, wide))


def test_joining_does_not_change_the_statistic() -> None:
    rng, n = np.random.default_rng(4), 120
    p, x = rng.choice([0.2, 0.5, 0.8], n), rng.integers(0, 4, n)
    y = rng.random(n) < p
    d, own = cal.predictions(y, p, {"x": x}), np.arange(n)
    apart = cal.predictions(y, p, {"x": x}, cluster=own)
    setting: dict[str, Any] = {"draws": 19, "shape": Shape(score_width=1.0, covariate_width=1.0)}
    joined, single = exact_local_test(d, **setting), exact_local_test(apart, **setting)
    assert joined.settings["cells"] < single.settings["cells"] == n
    assert joined.statistic == pytest.approx(single.statistic, rel=1e-4)
    assert joined.parts["centred"] == pytest.approx(single.parts["centred"], rel=1e-4)


def test_gaussian_and_simulated_nulls_agree() -> None:
    rng = np.random.default_rng(8)
    p = rng.beta(2, 5, 3000)
    rows = Rows(p, np.ones(3000), np.zeros(3000), np.arange(3000, dtype=np.uint64))
    nodes = nodes_of(p, 0.1)
    a, b = (
        _simulated(nodes, rows, np.ones(len(rows.rate)), 4000, 1),
        _gaussian(nodes, rows, np.ones(len(rows.rate)), 20_000, 1),
    )
    assert a[0] == pytest.approx(b[0], rel=1e-9)
    for q in (0.5, 0.9, 0.95, 0.99):
        assert np.quantile(a[1:], q) == pytest.approx(np.quantile(b[1:], q), abs=0.12 * b[1:].std())


def test_the_null_chosen_is_named() -> None:
    d = data(400)
    assert cal.detect.kernel_calibration_test(d).settings["null"] == "simulated"
    assert cal.detect.kernel_calibration_test(d, null="gaussian").law == "asymptotic: Gaussian sums"
    with pytest.raises(NotComputable, match="100 expected"):
        cal.detect.kernel_calibration_test(data(150), null="gaussian")
    grouped = data(400, cluster=np.arange(400) // 4)
    assert cal.detect.kernel_calibration_test(grouped).settings["null"] == "clusters"
    with pytest.raises(NotComputable, match="cluster="):
        cal.detect.kernel_calibration_test(grouped, null="gaussian")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda d: exact_local_test(d, variables=3), BadInput, "list of names"),
        (lambda d: exact_local_test(d, variables=["z"]), BadInput, "'z'"),
        (lambda d: exact_local_test(d, variables=[]), BadInput, "no covariates"),
        (lambda d: exact_local_test(d, draws=5), BadInput, "draws=5"),
        (lambda d: exact_local_test(d, shape=Shape(score_width=0.0)), BadInput, "score_width"),
        (lambda d: exact_local_test(d.y), BadInput, "ndarray"),
        (lambda d: exact_local_test(data(weights=np.ones(200))), NotComputable, "weight"),
        (lambda d: published_local_test(d), BadInput, "'level'"),
        (lambda d: published_local_test(d, variables=["x"], null="exact"), BadInput, "null='exact'"),
        (
            lambda d: published_local_test(d, variables=["x"], normalisation="n"),
            BadInput,
            "normalisation='n'",
        ),
        (
            lambda d: published_local_test(d, variables=["x"], covariate_gamma=-1),
            BadInput,
            "covariate_gamma",
        ),
        (lambda d: published_local_test(data(cluster=np.arange(200)), variables=["x"]), NotComputable, "cluster="),
        (lambda d: cal.detect.kernel_calibration_test(d, null="x"), BadInput, "null='x'"),
        (lambda d: cal.detect.kernel_calibration_test(d, width=1e-7), BadInput, "1/250"),
    ],
)
def test_what_is_refused(call: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        call(data())


def test_missing_values_have_no_published_kernel() -> None:
    d = cal.predictions([0, 1, 1], [0.2, 0.5, 0.7], {"x": [1.0, np.nan, 2.0], "b": [True, False, None]})
    for name in ("x", "b"):
        with pytest.raises(BadInput, match="missing"):
            published_local_test(d, variables=[name])


def test_no_square_matrix_is_held() -> None:
    n = 4000
    exact_local_test(data(50), draws=19)
    d = data(n)
    tracemalloc.start()
    exact_local_test(d, draws=19)
    published_local_test(d, variables=["x"], draws=19)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * n * n / 4, f"{peak:,} bytes at n = {n}"


def classes(n: int = 200, off: float = 0.0) -> Any:
    rng = np.random.default_rng([n, 9])
    p, x = rng.dirichlet([2.0, 2.0, 2.0], n), rng.normal(size=n)
    truth = np.clip(p + off * np.sign(x)[:, None] * [1.0, -1.0, 0.0], 0.0, 1.0)
    y = (rng.random((n, 1)) * truth.sum(axis=1, keepdims=True) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
    names = np.array(["cat", "dog", "owl"])
    return cal.multiclass_predictions(names[y], p, {"x": x}, classes=list(names))


def test_several_classes_are_tested_together_and_one_by_one() -> None:
    found = cal.detect.local_calibration_test(classes(400, 0.15), features="exact", draws=199)
    assert found.p_value <= 0.01
    assert found.parts["classes"] == ("cat", "dog", "owl")
    assert sum(found.parts["class_statistic"]) == pytest.approx(found.statistic)
    assert max(found.parts["class_adjusted_p"][:2]) <= 0.05
    assert Outcome.from_dict(found.to_dict()) == found


def test_a_class_that_never_happens_leaves_the_binary_statistics_twice() -> None:
    rng, n = np.random.default_rng(2), 150
    p, x = rng.uniform(0.1, 0.9, n), rng.normal(size=n)
    y = (rng.random(n) < p).astype(int)
    how: dict[str, Any] = {"features": "exact", "draws": 19, "covariate_width": 1.0, "score_width": 1.0}
    two = cal.detect.local_calibration_test(cal.predictions(y, p, {"x": x}), **how)
    # two columns that mirror each other are one standardised column: their differences and deviation grow alike
    three = cal.multiclass_predictions(y, np.column_stack([1 - p, p, np.zeros(n)]), {"x": x})
    found = cal.detect.local_calibration_test(three, **how)
    assert found.statistic == pytest.approx(2 * two.statistic, rel=1e-4)
    assert found.parts["centred"] == pytest.approx(2 * two.parts["centred"], rel=1e-4)
    assert found.parts["class_statistic"][2] == 0.0


def test_classes_that_were_called_impossible() -> None:
    data = cal.multiclass_predictions([0, 2, 1], [[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0]], {"x": [1.0, 2.0, 3.0]})
    found = cal.detect.local_calibration_test(data, features="exact", draws=19)
    assert (found.p_value, found.parts["contradicted"]) == (0.0, 1)
    assert found.parts["class_p"][2] == found.parts["class_adjusted_p"][2] == 0.0
    assert found.parts["class_p"][0] > 0
    one = cal.multiclass_predictions([0], [[0.2, 0.3, 0.5]], {"x": [1.0]})
    with pytest.raises(NotComputable, match="single row"):
        cal.detect.local_calibration_test(one, features="exact")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"family": "laplace"}, "family='laplace' has no meaning with features='default'"),
        ({"features": "exact", "family": "cosine"}, "family='cosine'"),
        ({"features": "exact", "family": "laplace", "degree": 2}, "degree=2 has no meaning"),
        ({"features": "exact", "family": "polynomial", "degree": 11}, "degree=11"),
        ({"features": "exact", "null": "bounded"}, "null='bounded'"),
        ({"features": "exact", "score_width": 1e160}, "score_width=1e[+]160: pass a number from 1e-09 to 1e[+]09"),
    ],
)
def test_kernels_that_cannot_be_used_are_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        cal.detect.local_calibration_test(data(), variables=["x"], **more)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"family": "polynomial", "degree": 11}, "degree=11"),
        ({"null": "bounded", "normalisation": "code"}, "the bound is for 'paper'"),
        ({"covariate_gamma": 1e-160}, "covariate_gamma=1e-160"),
    ],
)
def test_published_kernels_and_bounds_that_cannot_be_used_are_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        published_local_test(data(), variables=["x"], **more)


# ---- Weights in the test of the score alone ----


def weighted(seed=0, n=300, power=1.0, cluster=None):
    rng = np.random.default_rng(seed)
    p, w = rng.uniform(0.05, 0.95, n), rng.gamma(0.25, size=n) + 1e-3  # a coefficient of variation of 2
    return cal.predictions(rng.uniform(size=n) < p**power, p, weights=w, cluster=cluster)


@pytest.mark.parametrize("cluster", [None, np.arange(300) // 3])
def test_the_weighted_statistic_is_the_sum_over_pairs(cluster):
    d = weighted(cluster=cluster)
    found = cal.detect.kernel_calibration_test(d, width=0.2, draws=19)
    e, k = d.weights * (d.y - d.p), np.exp(-0.5 * ((d.p[:, None] - d.p) / 0.2) ** 2)
    pairs = d.weights.sum() ** 2 - (d.weights**2).sum()
    assert found.statistic == pytest.approx((e @ k @ e - (e**2).sum()) / pairs, rel=1e-9)


def test_weights_all_alike_change_nothing():
    d = weighted()
    plain = cal.detect.kernel_calibration_test(cal.predictions(d.y, d.p), draws=99)
    intraclass_correlation = cal.detect.kernel_calibration_test(
        cal.predictions(d.y, d.p, weights=np.full(d.n, 2.0)), draws=99
    )
    assert intraclass_correlation.statistic == pytest.approx(plain.statistic, rel=1e-12)
    assert intraclass_correlation.p_value == plain.p_value


@pytest.mark.slow
@pytest.mark.parametrize("null", ["simulated", "gaussian"])
def test_both_weighted_nulls_keep_the_level_and_find_error(null):
    test = cal.detect.kernel_calibration_test
    p = [test(weighted(seed, 600), draws=99, null=null).p_value for seed in range(60)]
    assert binom.sf(sum(v <= 0.05 for v in p) - 1, 60, 0.05) > 1e-6
    assert 0.3 < np.mean(p) < 0.7
    assert test(weighted(power=2.0, n=2000), draws=99, null=null).p_value <= 0.01


@pytest.mark.slow
def test_a_null_that_passes_over_the_weights_is_refuted():
    """The saboteur: the weighted statistic among unweighted draws."""
    found = 0
    for seed in range(40):
        d = weighted(seed)
        e, k = d.y - d.p, np.exp(-0.5 * ((d.p[:, None] - d.p) / 0.2) ** 2)
        y = np.random.default_rng([seed, 1]).uniform(size=(d.n, 99)) < d.p[:, None]
        drawn = np.einsum("ib,ij,jb->b", y - d.p[:, None], k, y - d.p[:, None]) - ((y - d.p[:, None]) ** 2).sum(axis=0)
        w = d.weights / d.weights.mean()
        own = (w * e) @ k @ (w * e) - ((w * e) ** 2).sum()
        found += (1 + (drawn >= own).sum()) / 100 <= 0.05
    assert binom.sf(found - 1, 40, 0.05) < 1e-6
