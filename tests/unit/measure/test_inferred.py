"""`measure.inferred_mean` and `measure.inferred_gap`: values by hand, standard errors of textbook cases, refusals."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import ttest_1samp, ttest_ind

import calibrant as cal
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Estimate

MEAN, GAP = cal.measure.inferred_mean, cal.measure.inferred_gap
QUANTITIES = ("bias", "inferred", "observed")


def rows(n=900, weights=None, clusters=None):
    g = np.random.default_rng([0x1FE2, n])
    age, town = g.integers(18, 90, n).astype(float), g.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    p = g.uniform(0.05, 0.95, n)
    y = g.uniform(size=n) < np.where(age > 60, 0.2 + 0.6 * p, 0.8 * p)
    age[: n // 30] = np.nan
    table = {
        "age": age,
        "town": pa.array([None if i % 50 == 0 else v for i, v in enumerate(town)]),
        "day": np.datetime64("2021-03-01") + g.integers(0, 40, n),
        "flag": g.uniform(size=n) < 0.5,
        "kind": g.integers(1, 4, n),
        "one": np.full(n, 7),
    }
    return cal.predictions(y, p, table, weights=weights, cluster=clusters)


def test_values_by_hand():
    data = cal.predictions(
        [0, 1, 0, 1, 1], [0.2, 0.4, 0.1, 0.5, 0.8], {"age": [10, 20, 30, 40, 50], "town": list("aabbb")}
    )
    found = MEAN(data, "age")
    assert found.settings["inferred"] == pytest.approx((2 + 8 + 3 + 20 + 40) / 2.0)
    assert found.settings["observed"] == pytest.approx((20 + 40 + 50) / 3)
    assert found.value == found.settings["bias"] == pytest.approx(36.5 - 110 / 3)
    share = MEAN(data, "town", level="b").settings
    assert (share["inferred"], share["observed"]) == (pytest.approx(1.4 / 2.0), pytest.approx(2 / 3))
    gap = GAP(data, "town", "b").settings
    assert (gap["inferred"], gap["observed"]) == (pytest.approx(1.4 / 3 - 0.3), pytest.approx(2 / 3 - 0.5))
    assert gap["rows"] == (3, 2)


def test_values_by_hand_with_weights():
    table = {"age": [10, 20, 30, 40] * 2, "town": list("aabb") * 2}
    data = cal.predictions([0, 1, 1, 1] * 2, [0.2, 0.4, 0.5, 0.8] * 2, table, weights=[1, 2, 3, 4] * 2)
    found = MEAN(data, "age").settings
    assert found["inferred"] == pytest.approx((2 + 16 + 45 + 128) / (0.2 + 0.8 + 1.5 + 3.2))
    assert found["observed"] == pytest.approx((40 + 90 + 160) / 9)
    gap = GAP(data, "town", "b").settings
    assert gap["inferred"] == pytest.approx(4.7 / 7 - 1.0 / 3)
    assert gap["observed"] == pytest.approx(1 - 2 / 3)


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize(
    "call",
    [
        lambda d, q: MEAN(d, "age", quantity=q),
        lambda d, q: MEAN(d, "day", quantity=q),
        lambda d, q: MEAN(d, "town", level="b", quantity=q),
        lambda d, q: MEAN(d, "flag", level=True, quantity=q),
        lambda d, q: MEAN(d, "kind", level=2, quantity=q),
        lambda d, q: GAP(d, "town", "b", quantity=q),
        lambda d, q: GAP(d, "town", "c", reference="missing", quantity=q),
        lambda d, q: GAP(d, "age", "missing", quantity=q),
        lambda d, q: GAP(d, "kind", 1, reference=3, quantity=q),
    ],
)
def test_rows_and_sketch_agree_and_round_trip(call, quantity):
    data = rows()
    found, sketched = call(data, quantity), call(cal.sketch(data, variables="*"), quantity)
    assert Estimate.from_dict(found.to_dict()) == found
    assert found.value == found.settings[quantity]
    assert found.interval.low < found.value < found.interval.high
    assert sketched.value == pytest.approx(found.value, abs=1e-6)
    assert sketched.settings["error"] == pytest.approx(found.settings["error"], rel=1e-3)
    assert sketched.n == found.n
    assert sketched.settings["missing"] == found.settings["missing"]


def test_ranges_of_a_sketch_are_near_rows_and_have_no_levels():
    g = np.random.default_rng([0x1FE2, 1])
    x, p = g.normal(size=6000), g.uniform(size=6000)
    data = cal.predictions(g.uniform(size=6000) < p, p, {"x": x})
    sketched = cal.sketch(data, variables="*")
    found, near = MEAN(data, "x"), MEAN(sketched, "x")
    assert near.value == pytest.approx(found.value, abs=0.02 * found.settings["error"])
    with pytest.raises(NotComputable, match="ranges"):
        MEAN(sketched, "x", level=float(x[0]))


def test_missing_values_are_left_out_of_means_and_count_elsewhere_for_levels():
    data = rows()
    known = np.isfinite(data.covariates.column("age").to_numpy())
    kept = cal.predictions(data.y[known], data.p[known], data.covariates.filter(pa.array(known)))
    found, without = MEAN(data, "age"), MEAN(kept, "age")
    assert (found.value, found.interval, found.n) == (without.value, without.interval, int(known.sum()))
    assert found.settings["missing"] == 30
    assert without.settings["missing"] == 0
    share = MEAN(data, "age", level="missing")
    assert share.n == data.n
    assert share.settings["observed"] == pytest.approx(data.y[~known].sum() / data.events)
    whole = MEAN(data, "town", level="b")
    assert whole.settings["missing"] == 18
    everyone_else = GAP(data, "town", "b").settings["rows"]
    assert sum(everyone_else) == data.n


def test_observed_interval_is_student_t_among_the_cases():
    x, y = np.arange(40.0) ** 2, np.zeros(40, dtype=int)
    y[[0, 1, 2, 36, 37, 38, 39]] = 1  # farther apart than chance would have it: the sandwich is the larger variance
    found = MEAN(cal.predictions(y, np.full(40, 0.2), {"x": x}), "x", quantity="observed", alpha=0.1)
    outside = ttest_1samp(x[y == 1], 0).confidence_interval(0.9)
    assert (found.interval.low, found.interval.high) == pytest.approx((outside.low, outside.high))
    assert found.settings["freedom"] == pytest.approx(6)


@pytest.mark.parametrize("off", [False, True])
def test_observed_is_as_sharp_as_student_t_if_the_model_is_far_off(off):
    g = np.random.default_rng([0x1FE2, 3])
    age = g.uniform(18, 90, 4000)
    rate = 1 / (1 + np.exp(-(age - 54) / 12))
    y = g.uniform(size=4000) < rate
    found = MEAN(cal.predictions(y, 1 - rate if off else rate, {"age": age}), "age", quantity="observed")
    outside = ttest_1samp(age[y], 0).confidence_interval()
    assert abs(found.settings["bias"]) > 20 or not off
    assert found.interval.high - found.interval.low == pytest.approx(outside.high - outside.low, rel=0.04)


@pytest.mark.parametrize("quantity", ["bias", "observed"])
def test_a_group_far_from_its_probabilities_has_the_width_of_what_was_seen(quantity):
    g = np.random.default_rng([0x1FE2, 4])
    town, p = np.arange(4000) % 2 == 0, np.full(4000, 0.5)
    y = g.uniform(size=4000) < np.where(town, 0.9, 0.1)
    found = GAP(cal.predictions(y, p, {"town": town}), "town", True, quantity=quantity)
    assert found.settings["error"] == pytest.approx(2 * 0.5 / np.sqrt(4000), rel=0.01)  # what p = 1/2 would give
    share = MEAN(cal.predictions(y, p, {"town": town}), "town", level=True, quantity=quantity)
    assert share.settings["error"] < 1.03 * 0.5 / np.sqrt(2000)


def test_probabilities_that_would_pass_one_if_raised_to_the_rate():
    g = np.random.default_rng([0x1FE2, 5])
    x, p = g.integers(0, 10, 2000).astype(float), np.where(np.arange(2000) < 20, 0.9, 0.005)
    data = cal.predictions(g.uniform(size=2000) < 0.3, p, {"x": x})
    found, sketched = (MEAN(d, "x", quantity="observed") for d in (data, cal.sketch(data, variables="*")))
    outside = ttest_1samp(x[data.y == 1], 0)
    assert found.settings["error"] == pytest.approx(found.value / outside.statistic, rel=0.02)
    assert sketched.settings["error"] == pytest.approx(found.settings["error"], rel=0.02)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_gap_has_the_standard_error_of_welch(quantity):
    g = np.random.default_rng([0x1FE2, 2])
    p = np.full(400, 0.5) if quantity == "observed" else g.choice([0.02, 0.98], 400)  # noise above what the model says
    y, town = g.uniform(size=400) < 0.5, g.choice(["a", "b"], 400)
    found = GAP(cal.predictions(y, p, {"town": town}), "town", "a", quantity=quantity)
    values = {"bias": p - y, "inferred": p, "observed": y.astype(float)}[quantity]
    outside = ttest_ind(values[town == "a"], values[town == "b"], equal_var=False)
    assert found.settings["error"] == pytest.approx(found.value / outside.statistic, rel=0.005)


def test_bias_counts_what_inferred_and_observed_share():
    data = rows(3000)
    for call in (lambda q: MEAN(data, "age", quantity=q), lambda q: GAP(data, "town", "b", quantity=q)):
        bias, inferred, observed = (call(q).settings["error"] for q in QUANTITIES)
        assert bias < 0.97 * np.hypot(inferred, observed)


def test_clusters_of_one_row_change_little_and_copies_add_nothing():
    data = rows()
    for call in (lambda d: MEAN(d, "age"), lambda d: MEAN(d, "town", level="b"), lambda d: GAP(d, "town", "b")):
        alone = call(data)
        single = call(rows(clusters=np.arange(900)))
        assert single.value == alone.value
        assert single.settings["error"] == pytest.approx(alone.settings["error"], rel=0.01)
        three = np.repeat(np.arange(900), 3)
        copied = (data.y[three], data.p[three], data.covariates.take(pa.array(three)))
        held = call(cal.predictions(*copied, cluster=three))
        assert held.settings["error"] == pytest.approx(single.settings["error"], rel=1e-9)
        assert call(cal.predictions(*copied)).settings["error"] < 0.7 * held.settings["error"]
        assert held.assumes == "independent clusters of rows"


def test_weights_are_sampling_weights():
    data = rows()
    same, plain = MEAN(rows(weights=np.full(900, 3.0)), "age"), MEAN(data, "age")
    assert same.value == pytest.approx(plain.value)
    assert same.settings["error"] == pytest.approx(plain.settings["error"])
    uneven = MEAN(rows(weights=np.where(np.arange(900) % 9, 0.1, 10.0)), "age")
    assert uneven.settings["error"] > 2 * plain.settings["error"]
    assert uneven.assumes.startswith("independent rows, sampled")


def test_width_without_a_case_in_the_group():
    y, town = np.arange(200) < 20, np.where(np.arange(200) < 150, "a", "b")
    data = cal.predictions(y, np.full(200, 0.1), {"town": town})
    share, gap = MEAN(data, "town", level="b", quantity="observed"), GAP(data, "town", "b", quantity="observed")
    assert share.value == 0.0 == share.interval.low
    assert share.interval.high > 0.2
    assert gap.interval.high - gap.interval.low > 0.1


@pytest.mark.parametrize("y", [0, 1])
def test_no_gap_if_all_outcomes_are_the_same(y):
    data = cal.predictions(np.full(40, y), np.linspace(0.1, 0.9, 40), {"town": list("ab") * 20})
    for d in (data, cal.sketch(data, variables="*")):
        for quantity in ("bias", "observed"):
            with pytest.raises(NotComputable, match="needs an event and a row without the event"):
                GAP(d, "town", "a", quantity=quantity)
        assert GAP(d, "town", "a", quantity="inferred").settings["error"] > 0


def test_probabilities_that_are_all_zero_leave_width():
    data = cal.predictions(np.arange(40) % 2 == 0, np.zeros(40), {"town": list("ab") * 20})
    found = GAP(data, "town", "a", quantity="observed")
    assert found.value == 1.0
    assert found.interval.low < 0.9


def test_weights_that_leave_too_few_effective_rows():
    y, weights = np.arange(40) < 5, np.where(np.arange(40) % 5, 1e-3, 1.0)
    data = cal.predictions(y, np.full(40, 0.2), {"x": np.arange(40.0), "town": list("ab") * 20}, weights=weights)
    with pytest.raises(NotComputable, match="rows or more with the event: there are effectively 1"):
        MEAN(data, "x")
    heavy = cal.predictions(y, np.full(40, 0.2), data.covariates, weights=np.where(np.arange(40) == 1, 1.0, 1e-3))
    with pytest.raises(NotComputable, match=r"in each group: there are effectively 1\.03, for they count unevenly"):
        GAP(heavy, "town", "a")


def test_constant_where_anything_counts():
    y, p = np.arange(40) < 10, np.where(np.arange(40) < 30, 0.3, 0.0)
    data = cal.predictions(y, p, {"x": np.where(p > 0, 0.1, np.arange(40.0)), "town": list("a" * 30 + "b" * 10)})
    for d in (data, cal.sketch(data, variables="*")):
        with pytest.raises(NotComputable, match="'x' has one value only where p or y is above zero"):
            MEAN(d, "x")
        with pytest.raises(NotComputable, match="'town' has one value only where"):
            MEAN(d, "town", level="b")


def test_dates_have_missing_values_as_a_level():
    data = rows()
    day = data.covariates.column("day").to_numpy().astype("datetime64[D]")
    day[::9] = np.datetime64("NaT", "D")
    late = cal.predictions(data.y, data.p, {"day": day})
    for d in (late, cal.sketch(late, variables="*")):
        assert GAP(d, "day", "missing").settings["rows"] == (100, 800)
        assert MEAN(d, "day", level="missing").settings["observed"] == pytest.approx(data.y[::9].sum() / data.events)


def test_clusters_counted_are_those_described():
    data = rows(clusters=np.arange(900) // 3)
    assert MEAN(data, "kind").settings["clusters"] == 300
    assert MEAN(data, "age").settings["clusters"] == 290
    town = np.array(data.covariates.column("town").to_pylist(), dtype=object)
    there = len(np.unique((np.arange(900) // 3)[(town == "c") | (town == "b")]))
    assert GAP(data, "town", "c", reference="b").settings["clusters"] == there < 300


def test_names_among_very_many_levels():
    data = cal.predictions(np.arange(4000) % 2, np.full(4000, 0.5), {"id": [f"u{i // 2}" for i in range(4000)]})
    with pytest.raises(BadInput, match=r"does not occur in 'id'; there are: 'u0', 'u1'"):
        MEAN(data, "id", level="u")


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda d: MEAN(d, "agee"), BadInput, "did you mean 'age'"),
        (lambda d: MEAN(d, 3), BadInput, "pass the name of one covariate"),
        (lambda d: MEAN(d, "town"), BadInput, "is a category: pass level="),
        (lambda d: MEAN(d, "town", level="bb"), BadInput, "does not occur in 'town'; did you mean 'b'"),
        (lambda d: MEAN(d, "town", level="zzz"), BadInput, "there are: "),
        (lambda d: MEAN(d, "age", level="old"), BadInput, "is a number"),
        (lambda d: MEAN(d, "age", level=7), BadInput, "does not occur in 'age'"),
        (lambda d: MEAN(d, "day", level="2021-03-02"), BadInput, "is a date, which has no level but 'missing'"),
        (lambda d: MEAN(d, "kind", level="missing"), BadInput, "is a number"),
        (lambda d: MEAN(d, "age", quantity="gap"), BadInput, "pass 'bias', 'inferred' or 'observed'"),
        (lambda d: MEAN(d, "age", alpha=2), BadInput, "alpha=2"),
        (lambda d: MEAN("file.csv", "age"), BadInput, "data is a str"),
        (lambda d: MEAN(cal.sketch(d, by="flag"), "age"), NotComputable, "did not count 'age'"),
        (lambda d: MEAN(d, "one"), NotComputable, "one value only"),
        (lambda d: GAP(d, "one", 7), NotComputable, "in each group: there is none"),
        (lambda d: GAP(d, "town", "a", reference="a"), BadInput, "is the level itself"),
        (lambda d: GAP(d, "town", "a", reference="zz"), BadInput, "level='zz' does not occur"),
    ],
)
def test_refusals(call, kind, message):
    with pytest.raises(kind, match=message):
        call(rows())


def test_nobody_to_describe():
    x = {"x": [1.0, 2.0, 3.0, 4.0], "g": list("aaab")}
    one, two, even = [1, 0, 0, 0], [1, 1, 0, 0], [0.5] * 4
    with pytest.raises(NotComputable, match="two rows or more with the event: there is one"):
        MEAN(cal.predictions(one, even, x), "x")
    with pytest.raises(NotComputable, match="above zero: there is none"):
        MEAN(cal.predictions(two, [0.0] * 4, x), "x")
    with pytest.raises(NotComputable, match="above zero: there is one"):
        MEAN(cal.predictions(two, [0.0, 0.0, 0.0, 0.5], x), "x")
    with pytest.raises(NotComputable, match="two clusters or more with the event: there is one"):
        MEAN(cal.predictions(two, even, x, cluster=[1, 1, 2, 3]), "x")
    with pytest.raises(NotComputable, match="in each group: there is one"):
        GAP(cal.predictions(two, even, x), "g", "b")
    with pytest.raises(NotComputable, match="has no values"):
        MEAN(cal.predictions(two, even, {"x": [np.nan] * 4}), "x")
