"""The default local calibration test: what it names, what it refuses, and that a sketch says the same as its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.audit.pooling import guarded
from calibrant.data.specs.local import LocalSpec, local_spec
from calibrant.detect.local_calibration_test import (
    blocks_of,
    exact_local_test,
    natural,
    outcome,
    populous,
    sums_of_rows,
)
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.features import CELLS, CLUSTER, REACH
from calibrant.results import Outcome
from calibrant.views.kernel_rows import Shape
from calibrant.views.local_sums import fixed_features, weighted_sums

local = cal.detect.local_calibration_test


def table(n: int = 1500, off: float = 0.0, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng([seed, 0xA1])
    site = np.array([f"site {k}" for k in rng.integers(0, 400, n)])
    ward = np.array(["a", "b", "c", "d"])[rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])]
    age = np.where(rng.random(n) < 0.1, np.nan, rng.normal(50, 10, n))
    p = rng.uniform(0.1, 0.7, n)
    return pa.table(
        {
            "y": (rng.random(n) < p + off * (ward == "d")).astype(np.int8),
            "p": p,
            "site": site,
            "ward": ward,
            "age": pa.array(age, from_pandas=True),
            "income": np.exp(2 * rng.normal(size=n)),
            "member": rng.random(n) < 0.4,
            "same": np.ones(n),
        }
    )


def rows(t: pa.Table, **more: Any) -> Any:
    names = [c for c in t.column_names if c not in ("y", "p")]
    return cal.predictions(t["y"].to_numpy(), t["p"].to_numpy(), t.select(names), **more)


def test_names_the_level_that_is_off_and_says_what_was_done() -> None:
    found = local(rows(table(off=0.3)), draws=399)
    assert found.p_value <= 0.01
    assert found.law == "exact simulation"
    assert (found.parts["region_variable"], found.parts["region_value"]) == ("ward", "d")
    assert found.parts["region_gap"] == pytest.approx(0.3, abs=0.1)
    assert 0.1 < found.parts["region_excess"] < found.parts["region_gap"]
    assert found.parts["region_rows"] == (np.array(table(off=0.3)["ward"]) == "d").sum()
    adjusted = dict(zip(found.parts["variables"], found.parts["variable_adjusted_p"], strict=True))
    assert adjusted["ward"] <= 0.01
    assert min(v for k, v in adjusted.items() if k != "ward") > 0.05
    assert set(adjusted) == {"(score)", "site", "ward", "age", "income", "member", "age is missing"}
    assert found.settings["ranked"] == ("income",)
    assert found.settings["left_out"] == (("same", "it takes one value only"),)
    assert found.settings["levels_shared"] == ("site",)
    assert Outcome.from_dict(found.to_dict()) == found


def test_names_the_range_that_is_off_in_its_own_unit() -> None:
    t = table(3000)
    age = np.nan_to_num(t["age"].to_numpy(), nan=0.0)
    y = np.random.default_rng(5).random(3000) < t["p"].to_numpy() + 0.25 * (age > 60)
    found = local(rows(t.set_column(0, "y", pa.array(y.astype(np.int8)))), variables=["age", "member"], draws=199)
    assert found.parts["region_variable"] == "age"
    assert found.parts["region_side"] == "at least"
    assert found.parts["region_value"] == pytest.approx(60, abs=4)
    assert found.statistic > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3])
def test_a_sketch_its_bytes_and_its_pieces_say_the_same_as_the_rows(seed: int) -> None:
    from calibrant.data.sketches.sketch import Sketch

    t = table(2500)
    names = ["site", "ward", "age", "income", "member"]
    by_rows = local(rows(t), variables=names, seed=seed)
    whole = cal.sketch(t, label="y", score="p", variables=names, tests=True, seed=seed)
    assert local(whole) == by_rows
    assert local(Sketch.from_bytes(whole.to_bytes())) == by_rows
    merged = Sketch(whole.spec)
    for start, stop in ((1000, 2500), (0, 137), (137, 1000)):
        piece = Sketch(whole.spec)
        piece.update(t.slice(start, stop - start).combine_chunks().to_batches()[0], first_row=start)
        merged.merge(piece)
    assert local(merged) == by_rows


def test_a_region_is_the_smaller_side() -> None:
    rng = np.random.default_rng(12)
    p, x = rng.uniform(0.2, 0.8, 2000), rng.exponential(size=2000)
    low = x < np.quantile(x, 0.25)
    found = local(cal.predictions(rng.random(2000) < p - 0.2 * low, p, {"x": x}), draws=99).parts
    assert (found["region_variable"], found["region_side"]) == ("x", "under")
    assert found["region_value"] == pytest.approx(np.quantile(x, 0.25), abs=0.02)
    assert found["region_rows"] == pytest.approx(500, abs=15)
    assert found["region_gap"] == pytest.approx(-0.2, abs=0.06)
    assert found["region_z"] < 0
    flag = rng.random(2000) < 0.2
    parts = local(cal.predictions(rng.random(2000) < p + 0.2 * flag, p, {"flag": flag}), draws=99).parts
    assert (parts["region_variable"], parts["region_value"]) == ("flag", "true")
    assert parts["region_excess"] > 0.1


def test_the_score_alone_is_enough() -> None:
    rng = np.random.default_rng(8)
    p = rng.uniform(size=1500)
    found = local(cal.predictions(rng.random(1500) < p + 0.2 * np.sin(6 * p) * (p < 0.9), p), draws=199)
    assert found.p_value <= 0.01
    assert found.settings["score_only"] is True
    assert found.parts["variables"] == ("(score)",)


def test_a_single_score_and_nothing_else_leaves_the_level() -> None:
    y = np.arange(200) % 4 == 0
    assert local(cal.predictions(y, np.full(200, 0.25)), draws=99).p_value == 1.0
    assert local(cal.predictions(y, np.full(200, 0.6)), draws=99).p_value == 0.01


def test_an_impossible_outcome_settles_it() -> None:
    rng = np.random.default_rng(2)
    p = np.append(rng.uniform(size=300), [0.0, 1.0])
    y = np.append(rng.random(300) < p[:300], [True, True])
    found = local(cal.predictions(y, p, {"x": np.arange(302.0)}), draws=99)
    assert (found.p_value, found.parts["contradicted"]) == (0.0, 1)
    assert found.law.startswith("certain")
    certain = local(cal.predictions([0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0], {"x": [1.0, 2.0, 3.0, 4.0]}), draws=99)
    assert certain.p_value == 1.0


def test_gaussian_and_simulated_nulls_agree_and_are_named() -> None:
    data = rows(table(4000, off=0.12))
    a, b = local(data, variables=["ward", "age"]), local(data, variables=["ward", "age"], null="gaussian")
    assert b.settings["draws"] == 4000
    assert "asymptotic" in b.law
    for x, z in zip(a.parts["p_values"], b.parts["p_values"], strict=True):
        assert x == pytest.approx(z, abs=0.06)
    assert a.statistic == b.statistic


def test_the_gaussian_null_reads_no_level_of_few_expected_events() -> None:
    rng = np.random.default_rng(17)
    p, g = rng.uniform(0.2, 0.3, 2000), np.where(rng.random(2000) < 0.3, "often", "rest").astype("U9")
    g[:600] = [f"seldom {i % 50}" for i in range(600)]
    data = cal.predictions(rng.random(2000) < p, p, {"g": g})
    spec = sums_of_rows(data, ["g"], 0, "gaussian", 3, 32)[0]
    _, gram, people = natural(spec)
    kept = populous(blocks_of(spec.spec)[-1], gram)
    assert len(blocks_of(spec.spec)[-1].smooth) > 50
    read = people[kept.smooth]
    assert (read[read > 0] > 100).all()
    assert np.count_nonzero(read) == 2
    assert "g" in local(data, null="gaussian", variables=["g"]).parts["variables"]


def test_the_raw_statistic_is_the_sum_over_pairs() -> None:
    rng = np.random.default_rng(4)
    n, p, x = 120, rng.uniform(0.2, 0.8, 120), rng.normal(size=120)
    y = rng.random(n) < p + 0.2 * np.sign(x)
    found = local(cal.predictions(y, p, {"x": x}), draws=19)
    z = np.column_stack([(v - v.mean()) / v.std() for v in (p, x)])
    k = np.exp(-0.5 * ((z[:, None] - z[None]) ** 2).sum(axis=2) / found.settings["width"] ** 2)
    e = y - p
    assert found.statistic == pytest.approx((e @ k @ e - e @ e) / (n * (n - 1)), abs=2e-4)


def weighted(seed: int, off: float = 0.0, cluster: Any = None, n: int = 400) -> Any:
    """Rows of a right model whose weights differ much; `off` is the error of one level."""
    t, rng = table(n, off, seed), np.random.default_rng([seed, 0xA2])
    return rows(t, weights=rng.lognormal(0.0, 1.0, n), cluster=cluster)


def test_the_weighted_statistic_is_the_double_loop() -> None:
    rng = np.random.default_rng(4)
    n, p, x, w = 120, rng.uniform(0.2, 0.8, 120), rng.normal(size=120), rng.lognormal(0.0, 1.0, 120)
    y = rng.random(n) < p + 0.2 * np.sign(x)
    found = local(cal.predictions(y, p, {"x": x}, weights=w), draws=19)
    z = np.column_stack([(v - v.mean()) / v.std() for v in (p, x)])
    k = np.exp(-0.5 * ((z[:, None] - z[None]) ** 2).sum(axis=2) / found.settings["width"] ** 2)
    e = w * (y - p)
    assert found.statistic == pytest.approx((e @ k @ e - e @ e) / (w.sum() ** 2 - (w**2).sum()), abs=2e-4)


@pytest.mark.parametrize("cluster", [None, np.arange(1500) // 5])
def test_weights_all_alike_change_nothing(cluster: Any) -> None:
    one, two = (local(rows(table(off=0.1), cluster=cluster, weights=w), draws=99) for w in (None, np.full(1500, 3.0)))
    assert one.statistic == pytest.approx(two.statistic, abs=1e-7)
    assert one.p_value == two.p_value
    for name in ("p_global", "p_local", "p_joint", "region_variable", "region_rows", "events"):
        assert one.parts[name] == two.parts[name]
    assert one.parts["region_z"] == pytest.approx(two.parts["region_z"], rel=1e-3)


def test_an_error_of_rows_that_weigh_is_found_and_one_of_rows_that_hardly_do_is_not() -> None:
    t = table(off=0.3)
    heavy = np.where(np.array(t["ward"]) == "d", 1.0, 1e-3)
    found = local(rows(t, weights=heavy), variables=["ward"], draws=199)
    assert found.p_value <= 0.01
    light = np.where(np.array(t["ward"]) == "d", 1e-3, 1.0)
    found = local(rows(t, weights=light), variables=["ward"], draws=199)
    assert found.parts["p_global"] > 0.02
    uneven = np.random.default_rng(3).uniform(2.0, 9.0, len(t))
    found = local(rows(t, weights=uneven), variables=["ward"], draws=199)
    assert (found.parts["region_value"], found.parts["region_rows"]) == ("d", (np.array(t["ward"]) == "d").sum())
    assert found.parts["region_gap"] == pytest.approx(0.3, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("by_clusters", [False, True])
def test_weights_keep_the_level(by_clusters: bool) -> None:
    cluster = np.arange(400) // 2 if by_clusters else None
    p = [local(weighted(s, cluster=cluster), variables=["ward", "age"], draws=39).p_value for s in range(30)]
    assert binom.sf(sum(v <= 0.1 for v in p) - 1, len(p), 0.1) > 1e-6


@pytest.mark.slow
def test_draws_that_pass_over_the_weights_are_refuted() -> None:
    """The saboteur: weighted sums of the data among sums of simulated outcomes that all weigh one."""
    found = 0
    for s in range(20):
        d = weighted(s)
        spec, how, _ = fixed_features(d, ["ward", "age"], 99, 0, 128)
        sums = weighted_sums(d, spec, how, 99)
        plain = weighted_sums(rows(table(400, 0.0, s)), spec, how, 99)
        score = np.column_stack([sums.score[:, 0], plain.score[:, 1:]])
        found += outcome(replace(sums, score=score, gram=plain.gram), how).p_value <= 0.1
    assert binom.sf(found - 1, 20, 0.1) < 1e-6


def test_clusters_flip_signs_together() -> None:
    t = table(1200)
    found = local(rows(t, cluster=np.arange(1200) // 6), variables=["ward", "age"], draws=199)
    assert "clusters" in found.law
    assert found.p_value > 0.01
    with pytest.raises(NotComputable, match="one cluster"):
        local(rows(t, cluster=np.zeros(1200)), variables=["ward"], draws=99)
    with pytest.raises(NotComputable, match="independent rows"):
        local(rows(t, cluster=np.arange(1200)), variables=["ward"], null="gaussian")


def test_the_other_procedures_are_reached() -> None:
    rng = np.random.default_rng(6)
    p, x = rng.uniform(0.2, 0.8, 200), rng.normal(size=200)
    data = cal.predictions(rng.random(200) < p, p, {"x": x})
    assert local(data, draws=99, features="exact", score_width=1.0) == exact_local_test(
        data, variables=None, draws=99, seed=0, shape=Shape(score_width=1.0)
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"null": "bootstrap"}, "null='bootstrap'"),
        ({"null": "permuted"}, "null='permuted'"),
        ({"features": "fourier"}, "features='fourier'"),
        ({"landmarks": 1}, "landmarks=1"),
        ({"score_width": 1.0}, "score_width=1.0"),
        ({"draws": 5}, "draws=5"),
        ({"variables": 5}, "or a list of names"),
        ({"features": ["exact"]}, "features="),
        ({"variables": ["ages"]}, "did you mean 'age'"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        local(rows(table(60)), **more)


def test_one_variable_needs_no_list() -> None:
    data = rows(table(60))
    assert local(data, variables="age", draws=19) == local(data, variables=["age"], draws=19)


def test_data_that_cannot_be_used_is_refused() -> None:
    t = table(60)
    with pytest.raises(NotComputable, match="weighted"):
        local(rows(t, weights=np.ones(60)), features="exact")
    with pytest.raises(NotComputable, match="equal weight"):
        local(rows(t, weights=np.ones(60)), null="gaussian")
    with pytest.raises(BadInput, match="tests=True"):
        local(cal.sketch(t, label="y", score="p", variables=["age"]))
    with pytest.raises(BadInput, match="age, member"):
        local(cal.sketch(t, label="y", score="p", variables=["age", "member"], tests=True), variables=["age"])
    with pytest.raises(BadInput, match="simulated null needs"):
        local(cal.sketch(t, label="y", score="p", variables=["age"], tests=True), null="gaussian")
    with pytest.raises(NotComputable, match="expected"):
        local(rows(t), null="gaussian")
    with pytest.raises(BadInput, match="at most 100"):
        local(cal.predictions([0, 1], [0.2, 0.7], {f"x{j}": [1.0, 2.0] for j in range(101)}))
    sketched = cal.sketch(t, label="y", score="p", variables=["age"], tests=True)
    for names in (5, ["age", ["age"]]):
        with pytest.raises(BadInput, match="variables="):
            local(sketched, variables=names)
    with pytest.raises(NotComputable, match="single row"):
        local(cal.sketch(t.slice(0, 1), label="y", score="p", variables=["age"], tests=True))


@pytest.mark.parametrize("features", ["default", "exact"])
def test_one_cluster_of_all_rows_is_refused(features: str) -> None:
    with pytest.raises(NotComputable, match="one cluster"):
        local(rows(table(60), cluster=np.zeros(60)), features=features)


@pytest.mark.parametrize("name", ["(score)", "a is missing"])
def test_two_variables_of_one_name_are_refused(name: str) -> None:
    rng = np.random.default_rng(6)
    a = np.where(rng.uniform(size=60) < 0.3, np.nan, rng.normal(size=60))
    with pytest.raises(BadInput, match="rename"):
        local(cal.predictions(rng.integers(0, 2, 60), rng.uniform(size=60), {"a": a, name: rng.normal(size=60)}))


def test_the_features_survive_plain_data() -> None:
    t = table(300)
    from calibrant.data.specs.coding import codings

    how = [c for c in codings(t, ["site", "ward", "age", "income"]) if c.kind != "constant"]
    spec = local_spec(t["p"].to_numpy(), t, how, 99, 7)
    assert msgspec.json.decode(msgspec.json.encode(spec), type=LocalSpec) == spec


def test_a_trend_is_the_straight_line_between_the_knots() -> None:
    rng = np.random.default_rng(0x7E)
    p, values = rng.uniform(0.2, 0.8, 2000), rng.normal(size=2000)
    spec = sums_of_rows(cal.predictions(rng.random(2000) < p, p, {"x": values}), None, 0, "gaussian", 0, 32)[0].spec
    z = (np.arange(CELLS) + 0.5) * (2.0 * REACH / CELLS) - REACH
    score, x = blocks_of(spec)
    assert score.trend is None  # that is the slope of everyone
    q = spec.lines[1]
    between = (z >= q.knots[0]) & (z <= q.knots[-1])
    assert x.trend is not None
    line = q.table[between, : q.smooth] / CLUSTER @ x.trend
    np.testing.assert_allclose(line, z[between] / np.abs(q.knots).max(), atol=0.02)


def test_a_trend_is_found_and_named() -> None:
    rng = np.random.default_rng(0x7F)
    x, eta = rng.normal(size=(3000, 3)), rng.normal(size=3000)
    y = rng.random(3000) < 1 / (1 + np.exp(-eta - 0.2 * x[:, 1]))
    parts = local(cal.predictions(y, 1 / (1 + np.exp(-eta)), {f"x{j}": v for j, v in enumerate(x.T)}), draws=199).parts
    adjusted = dict(zip(parts["variables"], parts["variable_adjusted_p"], strict=True))
    assert adjusted["x1"] == 0.005
    assert parts["p_slope"] > 0.05


def test_a_level_of_many_rows_of_few_clusters_says_how_few() -> None:
    t = table(off=0.4)
    own = np.where(np.array(t["ward"]) == "d", np.arange(1500) % 7, 100 + np.arange(1500) // 3)
    found = local(rows(t, cluster=own), variables=["ward"], draws=99)
    assert (found.parts["region_value"], found.parts["region_clusters"][0]) == ("d", 7)
    assert found.parts["region_rows"] > 100
    assert "region_value" not in guarded(found, "region_", 20).parts
    assert guarded(found, "region_", 5) == found
