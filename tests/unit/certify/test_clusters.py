"""Certificates of rows that come in units or carry weights: what they say, what they refuse."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.certify.rows_needed import lower_gap, rows_to_decide
from calibrant.errors import NotComputable
from calibrant.views.population import Population
from calibrant.views.sample import everyone


def data(clusters=60, size=5, **more):
    rng = np.random.default_rng(0)
    n = clusters * size
    p = rng.integers(1, 10, n) / 10
    sex = np.array(["f", "m"])[rng.integers(0, 2, n)]
    return cal.predictions(rng.uniform(size=n) < p, p, {"sex": sex}, **more)


def test_settings_tell_units():
    names = np.repeat([f"patient {i}" for i in range(60)], 5)
    found = cal.certify.values(data(cluster=names))
    reported = {k: found.settings[k] for k in ("clusters", "pilot_clusters", "largest_cluster", "truncated_clusters")}
    assert reported == {"clusters": 60, "pilot_clusters": 6, "largest_cluster": 5.0, "truncated_clusters": 0}
    assert found.settings["effective_clusters"] == pytest.approx(54)
    assert found.n == 300
    assert found.assumes == "independent clusters, rows of one cluster as dependent as they like"


def test_weights_scale_is_nothing():
    w = np.random.default_rng(1).gamma(2.0, size=300)
    one, other = (cal.certify.values(data(weights=k * w)).interval for k in (1.0, 1000.0))
    assert one.low == pytest.approx(other.low, abs=1e-9)
    assert one.high == pytest.approx(other.high, abs=1e-9)


def test_larger_units_weigh_down():
    weights = np.ones(300)
    weights[7] = 1e6
    seen = [cal.certify.values(data(weights=weights), seed=seed).settings for seed in range(3)]
    assert all(s["largest_cluster"] == 1.0 and s["truncated_clusters"] == 1 for s in seen if s["largest_cluster"] < 1e6)
    assert any(s["largest_cluster"] == 1.0 for s in seen)


def test_groups_of_units():
    found = cal.certify.groups(data(cluster=np.repeat(np.arange(60), 5)), by="sex", limit=0.3)
    assert set(found) == {"sex = f", "sex = m"}
    assert sum(e.n for e in found.values()) == 300
    assert all(e.settings["clusters"] <= 60 and e.interval.high <= 1 for e in found.values())


def test_one_unit_is_refused():
    stated = (
        "{}: all rows are one cluster, and nothing .*; name in cluster= .* a column that distinguishes clusters, or"
    )
    with pytest.raises(NotComputable, match=stated.format("^cluster= is 0.0 in every row")):
        cal.certify.values(data(cluster=np.zeros(300)))
    with pytest.raises(NotComputable, match=stated.format("^cluster= is 0.0 in every row")):
        cal.measure.brier(data(cluster=np.zeros(300)))
    log = {"y": [0, 1] * 150, "p": np.linspace(0.1, 0.9, 300), "ward": ["west"] * 300}
    with pytest.raises(NotComputable, match=stated.format("^column 'ward' is 'west' in every row")):
        cal.audit(log, label="y", score="p", cluster="ward", quick=True)
    stored = cal.sketch(log, label="y", score="p", cluster="ward")
    with pytest.raises(NotComputable, match=stated.format("^column 'ward' takes one value")):
        cal.certify.values(type(stored).from_bytes(stored.to_bytes()))


def test_distance_of_units():
    p = np.random.default_rng(3).uniform(size=2000)
    y = np.random.default_rng(4).uniform(size=2000) < p
    clusters = np.repeat(np.arange(400), 5)
    found = cal.certify.distance(cal.predictions(y, p, cluster=clusters), side="upper")
    assert found.assumes == "independent clusters, rows of one cluster as dependent as they like"
    assert found.settings["clusters"] == 400
    assert found.settings["route"].startswith("rounded to ")
    assert found.interval.low == 0.0 < found.interval.high < 0.15
    off = cal.certify.distance(cal.predictions(y, np.clip(p - 0.3, 0, 1), cluster=clusters))
    assert 0.05 < off.interval.low < off.interval.high
    assert off.value == pytest.approx(0.5 * (off.interval.low + off.interval.high))


def test_distance_of_a_score_of_few_values_needs_no_rounding():
    found = cal.certify.distance(data(clusters=600, weights=np.random.default_rng(2).gamma(4.0, size=3000)))
    assert found.settings["route"] == "as it is"
    assert found.interval.high <= cal.certify.values(data(clusters=600)).interval.high * 1.7


def test_distance_of_few_units_says_nothing():
    found = cal.certify.distance(cal.predictions([0, 1, 0, 1], [0.1, 0.2, 0.9, 0.4], cluster=[0, 0, 1, 1]))
    assert (found.interval.low, found.interval.high, found.settings["route"]) == (0.0, 1.0, "none")


@pytest.mark.parametrize("name", ["jittered", "bounded_variation"])
def test_unproved_names_what_can_be_used(name):
    with pytest.raises(NotComputable, match=r"use certify\.rounded"):
        getattr(cal.certify, name)(data(cluster=np.repeat(np.arange(60), 5)))


@pytest.mark.slow
def test_plan_in_units():
    known = data(cluster=np.repeat(np.arange(60), 5))
    found = [cal.certify.rows_needed(gap, known, steps=10) for gap in (0.2, 0.1)]
    assert [e.unit for e in found] == ["clusters", "clusters"]
    assert found[1].value > 2 * found[0].value > 20
    with pytest.raises(NotComputable, match="rounded"):
        cal.certify.rows_needed(0.1, known, method="jittered")


def test_a_plan_of_weighted_rows_is_in_rows():
    weight = np.where(np.arange(300) % 3, 1.0, 3.0)
    found = cal.certify.rows_needed(0.1, data(weights=weight), steps=10)
    assert (found.unit, found.assumes) == ("rows", "scores and weights distributed as given")


def test_how_many_times_as_many_units_decide():
    q = everyone(data(cluster=np.repeat(np.arange(60), 5)))
    need = rows_to_decide(q, (0.0, 0.05, 0.25), 0.45, 100, (0.05, 0.05), "error")
    assert need is None or need.at_least  # the end is within already
    need = rows_to_decide(q, (0.0, 0.02, 0.95), 0.5, 100, (0.05, 0.05), "error")
    assert need is not None
    assert not need.at_least
    assert need.times == pytest.approx((0.93 / 0.48) ** 2)  # as the end that was found comes to the limit
    need = rows_to_decide(q, (0.0, 0.05, 0.45), 0.06, 100, (0.05, 0.05), "error")
    assert need is not None
    assert need.at_least  # the estimate is not clear of it


def weighted(n: int, seed: int, off: float = 0.0, weigh: bool = True) -> Population:
    rng = np.random.default_rng([n, seed])
    p, w = rng.beta(2.0, 5.0, n), np.exp(0.7 * rng.normal(size=n))
    y = rng.uniform(size=n) < np.minimum(p + off, 1.0)
    return everyone(cal.predictions(y, p, weights=w if weigh else None), seed)


def high(q: Population) -> float:
    return q.judged(100).above.limit(0.05)


@pytest.mark.slow
def test_weights_need_more_rows_and_so_many_settle():
    """Log-normal weights halve the effective number: a calibrated score needs as many times as many at least."""
    plain, reported = (
        [rows_to_decide(q, (0.0, 0.015, high(q)), 0.02, 100, (0.05, 0.05), "error") for q in of]
        for of in ([weighted(5_000, s, weigh=False) for s in range(3)], [weighted(5_000, s) for s in range(3)])
    )
    effective = weighted(5_000, 0).clusters.effective
    assert all(need is not None and need.at_least for need in (*plain, *reported))
    assert min(n.times for n in reported) > 5_000 / effective * min(n.times for n in plain)
    many = float(np.median([n.times * 5_000 for n in reported]))
    settled = [sum(high(weighted(round(f * many), s)) <= 0.02 for s in range(5)) for f in (0.7, 1.4)]
    assert settled[0] <= 1
    assert settled[1] >= 4


def test_an_estimate_that_may_be_noise_is_not_planned_for():
    """Weighted levels of few rows each: the estimate is high by noise, and was told as about three times the rows."""
    assert rows_to_decide(weighted(1_500, 1, 0.02), (0.0, 0.045, 0.2), 0.02, 100, (0.01, 0.01), "error") is None


def squares(q: Population) -> float:
    """Return the root of the sum of squares of certified units' sums, over the sum of sizes: added up row by row."""
    sums: dict[int, float] = {}
    for cluster, p, y, w in zip(
        q.clusters.cluster.tolist(), q.clusters.p, q.clusters.y, q.clusters.weight, strict=True
    ):
        sums[cluster] = sums.get(cluster, 0.0) + float(w) * (float(y) - float(p))
    return float(np.sqrt(sum(v**2 for cluster, v in sums.items() if q.clusters.certified[cluster])) / q.clusters.total)


def grouped() -> Population:
    """Return 200 units of 20 whose rows mostly share their outcome."""
    rng = np.random.default_rng(8)
    cluster_code, p = np.repeat(np.arange(200), 20), rng.uniform(0.2, 0.8, 4000)
    shared = rng.uniform(size=200)[cluster_code]
    y = np.where(rng.uniform(size=4000) < 0.7, shared, rng.uniform(size=4000)) < p
    return everyone(cal.predictions(y, p, cluster=cluster_code))


@pytest.mark.parametrize("make", [lambda: weighted(2_000, 2), grouped])
def test_gaps_of_units_are_planned_by_their_squares(make):
    """By ``sqrt(2 ln(1 / delta))`` roots of squares, of ends that were found closer; within two roots is noise."""
    q = make()
    root = squares(q)
    within = rows_to_decide(q, (0.0, 0.01, 0.01 + 2.3 * root), 0.01 + 2.2 * root, 100, (0.01, 0.01), "gap")
    assert (within.at_least, within.times) == (False, pytest.approx(2 * np.log(100) / 2.2**2, rel=1e-9))
    over = rows_to_decide(q, (0.5 - 2.3 * root, 0.5, 1.0), 0.5 - 2.2 * root, 100, (0.01, 0.01), "gap")
    assert (over.at_least, over.times) == (False, pytest.approx(2 * np.log(200) / 2.2**2, rel=1e-9))
    unclear = rows_to_decide(q, (0.0, 0.01, 0.5), 0.01 + 1.9 * root, 100, (0.01, 0.01), "gap")
    assert unclear is None or unclear.at_least


def test_errors_of_units_over_the_limit_are_planned_by_their_squares():
    q = grouped()
    m, root = int(q.clusters.certified.sum()), squares(q)
    width = lower_gap((root * q.clusters.total) ** 2 / m, m, 0.01) * m / q.clusters.total
    over = rows_to_decide(q, (0.6 - 0.21 * width, 0.6, 1.0), 0.6 - 0.8 * width, 100, (0.01, 0.01), "error")
    assert (over.at_least, over.times) == (False, pytest.approx(0.8**-2, rel=1e-9))
