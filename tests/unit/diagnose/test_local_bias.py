"""The bias map: eq. 7 from its definition, every kind of covariate, bands and p-values, rows, regions, charts."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.diagnose.local_bias import Variances, band
from calibrant.errors import BadInput, NotComputable
from calibrant.report.by_variable import regions
from calibrant.results import Curve
from calibrant.stats import smoothing as kernels
from calibrant.stats.smoothing import Spots, kernel_bias

N = 600
bias = cal.diagnose.local_bias


def covariates(rng: np.random.Generator, n: int = N) -> dict[str, Any]:
    return {
        "age": rng.integers(18, 90, n),
        "z": rng.normal(size=n),
        "sex": rng.choice(["f", "m"], n),
        "race": rng.choice(["a", "b", "c"], n, p=[0.6, 0.35, 0.05]),
        "flag": rng.random(n) < 0.4,
        "children": rng.integers(0, 4, n),
        "income": np.exp(rng.normal(10, 2, n)),
        "seen": np.datetime64("2023-01-01") + rng.integers(0, 500, n).astype("timedelta64[D]"),
        "one": np.ones(n),
    }


@pytest.fixture(name="data", scope="module")
def make_data() -> Any:
    rng = np.random.default_rng([0xB1, 1])
    cov = covariates(rng)
    p = rng.beta(2, 2, N)
    y = rng.random(N) < np.clip(p + 0.2 * (cov["z"] > 1), 0, 1)
    return cal.predictions(y, p, cov)


def column(data: Any, name: str) -> Any:
    return data.covariates.column(name).to_numpy(zero_copy_only=False)


def naive(k: Any, data: Any, w: Any = 1.0) -> tuple[Any, ...]:
    """Eq. 7, effective rows and null deviation for kernel weights (points, rows)."""
    k = k * w
    total = k.sum(1)
    e, v = data.y - data.p, data.p * (1 - data.p)
    return k @ e / total, total**2 / (k**2).sum(1), np.sqrt(k**2 @ v) / total


def same(curve: Curve, expected: tuple[Any, ...]) -> None:
    for name, value in zip(("gap", "rows", "null_sd"), expected, strict=True):
        np.testing.assert_allclose(curve.columns[name], value, rtol=1e-10, atol=1e-13)


def test_one_number_is_eq_7(data: Any) -> None:
    curve = bias(data, "z", grid=[-1.0, 0.0, 0.5, 1.5], bandwidth=0.3, draws=19)
    k = np.exp(-0.5 * ((np.array(curve.columns["x"])[:, None] - column(data, "z")) / 0.3) ** 2)
    same(curve, naive(k, data))
    c = {k: np.array(v) for k, v in curve.columns.items() if k != "label"}
    np.testing.assert_allclose(c["observed"] - c["predicted"], c["gap"], atol=1e-14)
    np.testing.assert_allclose(c["share"], k.mean(1))


def test_number_and_category_pair_is_a_product(data: Any) -> None:
    curve = bias(data, ("z", "race"), grid={"z": [0.0, 0.4]}, bandwidth=0.5, draws=19)
    z, race = column(data, "z"), column(data, "race")
    x, level = curve.columns["x"], curve.columns["x2"]
    k = np.array([np.exp(-0.5 * ((z - a) / 0.5) ** 2) * (race == b) for a, b in zip(x, level, strict=True)])
    same(curve, naive(k, data))
    assert curve.columns["label"][0] == f"{x[0]:g}, {level[0]}"


def test_groups_restrict_the_weights(data: Any) -> None:
    curve = bias(data, "z", by=("sex", "flag"), grid=[-0.5, 0.5], bandwidth={"z": 0.4}, draws=19)
    z, sex, flag = (column(data, v) for v in ("z", "sex", "flag"))
    k = np.array(
        [
            np.exp(-0.5 * ((z - a) / 0.4) ** 2)
            * (
                s
                == np.char.add(
                    np.char.add("sex ", sex.astype(str)), np.where(flag, " and flag true", " and flag false")
                )
            )
            for a, s in zip(curve.columns["x"], curve.columns["group"], strict=True)
        ]
    )
    assert len(k) == 8
    same(curve, naive(k, data))


def test_levels_are_group_means(data: Any) -> None:
    curve = bias(data, "children", draws=19)
    assert curve.columns["x"] == ("0", "1", "2", "3")
    x = column(data, "children")
    for level, b, n, people in zip(*(curve.columns[k] for k in ("x", "gap", "rows", "people")), strict=True):
        here = x == int(level)
        assert b == pytest.approx((data.y - data.p)[here].mean())
        assert n == pytest.approx(here.sum())
        assert people == here.sum()


def test_weights_weigh(data: Any) -> None:
    w = np.random.default_rng([0xB1, 2]).uniform(0.2, 4, N)
    weighted = cal.predictions(data.y, data.p, data.covariates, weights=w)
    curve = bias(weighted, "z", grid=[0.0, 1.0], bandwidth=0.3, draws=19)
    k = np.exp(-0.5 * ((np.array([[0.0], [1.0]]) - column(data, "z")) / 0.3) ** 2)
    same(curve, naive(k, data, w))
    equal = cal.predictions(data.y, data.p, data.covariates, weights=np.full(N, 7.0))
    assert bias(equal, "z").columns == bias(data, "z").columns


def test_nothing_depends_on_blocks(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [bias(data, *a, draws=99) for a in (("age",), (("z", "sex"),))]
    monkeypatch.setattr(kernels, "BLOCK", 37)
    monkeypatch.setattr(kernels, "AT_ONCE", 1)
    blocked = [bias(data, *a, draws=99) for a in (("age",), (("z", "sex"),))]
    for a, b in zip(whole, blocked, strict=True):
        assert a.columns["p_adjusted"] == b.columns["p_adjusted"]
        np.testing.assert_allclose(a.columns["low"], b.columns["low"], atol=1e-12)


def test_many_places_are_moved_by_little(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = bias(data, "z", grid=31, draws=99)
    monkeypatch.setattr(kernels, "PLACES", 10)
    near = bias(data, "z", grid=31, draws=99)
    np.testing.assert_allclose(exact.columns["gap"], near.columns["gap"], atol=1e-3)
    assert exact.columns["gap"] != near.columns["gap"]


def test_bands_exclude_zero_exactly_where_p_says(data: Any) -> None:
    found = 0
    for seed in range(6):
        curve = bias(data, "z", by="sex", draws=199, seed=seed, alpha=0.1)
        c = {k: np.array(v) for k, v in curve.columns.items()}
        for low, high, p in (("low", "high", "p_adjusted"), ("low_point", "high_point", "p_point")):
            assert (((c[low] > 0) | (c[high] < 0)) == (c[p] <= 0.1)).all()
            assert ((c[low] <= c["gap"]) & (c["gap"] <= c[high])).all()
            found += (c[p] <= 0.1).sum()
        assert (c["p_point"] <= c["p_adjusted"]).all()
        assert curve.settings["p_value"] == c["p_adjusted"].min()
    assert found


def test_band_is_the_score_interval_it_says() -> None:
    b, null, spread, per, c = 0.12, 0.03**2, 0.045**2, 0.005, 2.5
    at, v = np.array([b]), Variances(*(np.array([v]) for v in (null, spread, per)))
    low, high = (float(v[0]) for v in band(at, v, c))
    assert high - b == pytest.approx(c * np.sqrt(spread + per * (high - b)))
    assert b - low == pytest.approx(c * np.sqrt(null + (spread - null) * low / b))
    assert band(at, v, np.inf) == (-1.0, 1.0)
    down = band(-at, v, c)
    assert (float(down[0][0]), float(down[1][0])) == pytest.approx((-high, -low))


def test_heavy_tails_are_ranked_and_told_in_the_users_unit(data: Any) -> None:
    curve = bias(data, "income", draws=19)
    axis = curve.settings["axes"][0]
    assert axis["scaling"] == "rank"
    x, income = np.array(curve.columns["x"]), column(data, "income")
    assert x[0] < np.quantile(income, 0.03)
    assert x[-1] > np.quantile(income, 0.97)
    assert np.abs(np.mean(income < x[len(x) // 2]) - 0.5) < 0.03
    logged = cal.predictions(data.y, data.p, {"income": np.log(income) ** 3})
    assert curve.settings["bandwidths"]["everyone"]["income"] < 1
    assert bias(logged, "income").settings["axes"][0]["scaling"] == "as it is"


def test_dates_are_dates(data: Any) -> None:
    curve = bias(data, "seen", draws=19)
    assert curve.settings["axes"][0]["kind"] == "date"
    assert all(datetime.date.fromisoformat(v) for v in curve.columns["x"])
    own = bias(data, "seen", grid=["2023-03-01", datetime.date(2023, 10, 1)], bandwidth=30, draws=19)
    assert own.columns["x"] == ("2023-03-01", "2023-10-01")
    days = (column(data, "seen").astype("datetime64[D]") - np.datetime64("1970-01-01")).astype(float)
    at = np.array([[float(np.datetime64(v).astype("datetime64[D]").astype(int))] for v in own.columns["x"]])
    same(own, naive(np.exp(-0.5 * ((at - days) / 30) ** 2), data))


def test_missing_is_a_point_of_its_own(data: Any) -> None:
    z = column(data, "z").copy()
    lost = np.arange(N) % 5 == 0
    z[lost] = np.nan
    sex = np.where(np.arange(N) % 7 == 0, None, column(data, "sex"))
    holed = cal.predictions(data.y, data.p, {"z": z, "sex": sex})
    curve = bias(holed, "z", draws=19)
    assert curve.columns["x"][-1] is None
    assert curve.columns["label"][-1] == "missing"
    assert curve.columns["gap"][-1] == pytest.approx((data.y - data.p)[lost].mean())
    there = cal.predictions(data.y[~lost], data.p[~lost], {"z": z[~lost]})
    alone = bias(there, "z", grid=[0.0, 1.0], bandwidth=0.4, draws=19)
    assert bias(holed, "z", grid=[0.0, 1.0], bandwidth=0.4, draws=19).columns["gap"][:2] == pytest.approx(
        alone.columns["gap"]
    )
    assert bias(holed, "sex", draws=19).columns["x"][-1] == "missing"
    assert "sex missing" in bias(holed, "z", by="sex", draws=19).columns["group"]
    assert curve.to_arrow().num_rows == len(curve.columns["x"])


def test_few_people_are_left_out_and_said(data: Any) -> None:
    race = np.where(np.arange(N) < 8, "rare", column(data, "race"))
    few = cal.predictions(data.y, data.p, {"z": column(data, "z"), "race": race})
    curve = bias(few, "race", draws=19)
    assert "rare" not in curve.columns["x"]
    assert curve.settings["masked"] == 1
    assert bias(few, "z", by="race", draws=19).settings["groups_left_out"] == ("race rare",)
    far = bias(few, "z", grid=[0.0, 60.0], draws=19)
    assert far.columns["x"] == (0.0,)
    with pytest.raises(NotComputable, match="10 effective rows"):
        bias(few, "z", grid=[60.0], draws=19)
    assert sum(bias(few, "z", grid=[-50.0, 0.0, 50.0], bandwidth=40, draws=19).columns["people"]) == N


def test_a_contradicted_certainty_refutes_by_itself() -> None:
    rng = np.random.default_rng([0xB1, 3])
    p = rng.integers(0, 2, 300).astype(float)
    sure = cal.predictions(p, p, {"z": rng.normal(size=300)})
    assert bias(sure, "z").settings["p_value"] == 1.0
    y = p.copy()
    y[:3] = 1 - y[:3]
    wrong = bias(cal.predictions(y, p, sure.covariates), "z")
    assert wrong.settings["contradicted"] == 3
    assert wrong.settings["p_value"] == 0.0


def test_score_is_an_axis(data: Any) -> None:
    curve = bias(data, "sex", by_score=True, grid={"score": [0.3, 0.6]}, bandwidth=0.1, draws=19)
    assert [a["name"] for a in curve.settings["axes"]] == ["sex", "score"]
    k = np.array(
        [
            np.exp(-0.5 * ((data.p - b) / 0.1) ** 2) * (column(data, "sex") == a)
            for a, b in zip(curve.columns["x"], curve.columns["x2"], strict=True)
        ]
    )
    same(curve, naive(k, data))


def test_rows_leave_themselves_out(data: Any) -> None:
    curve = bias(data, ("z", "sex"), by_score=True, at="rows")
    h = curve.settings["bandwidths"]["everyone"]
    z, sex = column(data, "z"), column(data, "sex")
    far = np.subtract.outer(z, z) ** 2 / h["z"] ** 2 + np.subtract.outer(data.p, data.p) ** 2 / h["score"] ** 2
    k = np.exp(-0.5 * far) * (sex[:, None] == sex)
    np.fill_diagonal(k, 0.0)
    there = k.sum(1) >= kernels.REACH
    assert there.mean() > 0.95
    expected = np.where(there, k @ (data.y - data.p) / k.sum(1), 0.0)
    np.testing.assert_allclose(curve.columns["gap"], expected, atol=1e-11)
    np.testing.assert_allclose(curve.columns["corrected"], np.clip(data.p + expected, 0, 1), atol=1e-11)
    published = bias(data, "z", at="rows", kernel="published", gamma=2.0)
    k = np.exp(-2.0 * (np.subtract.outer(z, z) ** 2 + np.subtract.outer(data.p, data.p) ** 2))
    np.fill_diagonal(k, 0.0)
    np.testing.assert_allclose(published.columns["gap"], k @ (data.y - data.p) / k.sum(1), atol=1e-11)


def test_rows_elsewhere_and_rows_alone() -> None:
    rng = np.random.default_rng([0xB1, 4])
    here = Spots(rng.normal(size=(1500, 2)), rng.integers(0, 2, (1500, 1)).repeat(2, 1))
    there = Spots(np.array([[0.0, 0.0], [0.0, 0.0], [300.0, 0.0]]), np.array([[1, 1], [2, 2], [0, 0]]))
    w, e = rng.uniform(0.5, 2, 1500), rng.normal(size=1500)
    found, rows = kernel_bias(here, w, e, there, same=False)
    k = np.exp(-0.5 * (here.position**2).sum(1)) * (here.level[:, 0] == 1) * w
    assert found == pytest.approx([k @ e / k.sum(), 0.0, 0.0])
    assert rows == pytest.approx([k.sum() ** 2 / (k @ k), 0.0, 0.0])


def test_clusters_have_their_own_law(data: Any) -> None:
    held = cal.predictions(data.y, data.p, data.covariates, cluster=np.arange(N) // 6)
    curve = bias(held, "z", grid=[0.0], bandwidth=0.5, draws=99)
    assert curve.settings["law"].startswith("asymptotic")
    k = np.exp(-0.5 * (column(data, "z") / 0.5) ** 2)
    sums = np.bincount(np.arange(N) // 6, k * (data.y - data.p))
    assert curve.columns["null_sd"][0] == pytest.approx(np.sqrt((sums**2).sum()) / k.sum())
    mixed = np.random.default_rng(5).permutation(N)
    cov = {"z": column(data, "z")[mixed]}
    shuffled = cal.predictions(data.y[mixed], data.p[mixed], cov, cluster=(np.arange(N) // 6)[mixed])
    assert bias(shuffled, "z", grid=[0.0], bandwidth=0.5, draws=99).columns["p_point"] == curve.columns["p_point"]
    with pytest.raises(NotComputable, match="clusters"):
        bias(cal.predictions(data.y, data.p, data.covariates, cluster=np.arange(N) % 5), "z")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"variables": "agee"}, "did you mean 'age'"),
        ({"variables": ("age", "z", "sex")}, "3 axes"),
        ({"variables": ("age", "z"), "by_score": True}, "3 axes"),
        ({"variables": ("age", "age")}, "twice"),
        ({"variables": ()}, "name of a covariate"),
        ({"variables": 3}, "name of a covariate"),
        ({"variables": "age", "by": "age"}, "in variables and in by"),
        ({"variables": "sex", "by": "z"}, "cut it into groups"),
        ({"variables": "age", "grid": 1}, "2 to 2000"),
        ({"variables": "age", "grid": [3, 1]}, "increasing"),
        ({"variables": "seen", "grid": ["May"]}, "dates such as"),
        ({"variables": "sex", "grid": ["x"]}, "not a level"),
        ({"variables": ("age", "z"), "grid": [1, 2]}, "dictionary"),
        ({"variables": "age", "grid": {"z": 5}}, "not an axis"),
        ({"variables": "age", "bandwidth": 0}, "positive width"),
        ({"variables": "sex", "bandwidth": 2.0}, "no axis"),
        ({"variables": ("age", "z"), "bandwidth": 2.0}, "dictionary"),
        ({"variables": "age", "bandwidth": {"z": 2.0}}, "not a number of this map"),
        ({"variables": "age", "kernel": "rbf"}, "'local' or 'published'"),
        ({"variables": "age", "kernel": "published"}, "gamma=None"),
        ({"variables": "age", "gamma": 1.0}, "belongs to"),
        ({"variables": "age", "kernel": "published", "gamma": 1.0}, "2 columns"),
        ({"variables": "sex", "kernel": "published", "gamma": 1.0, "grid": [[1, 2]]}, "takes numbers"),
        ({"variables": "age", "kernel": "published", "gamma": 1.0, "by": "sex"}, "takes no by"),
        ({"variables": "age", "at": "row"}, "'grid' or 'rows'"),
        ({"variables": "age", "at": "rows", "grid": 5}, "takes no by or grid"),
        ({"variables": "age", "alpha": 2}, "alpha=2"),
        ({"variables": "age", "draws": 9}, "at least 19"),
        ({"variables": ("age", "z"), "grid": 150}, "coarser grid"),
    ],
)
def test_bad_input_is_one_line(data: Any, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message) as error:
        bias(data, **asked)
    assert "\n" not in str(error.value)


def test_what_cannot_be_drawn(data: Any) -> None:
    with pytest.raises(NotComputable, match="one value only"):
        bias(data, "one")
    with pytest.raises(BadInput, match="no covariates"):
        bias(cal.predictions(data.y, data.p), "z")
    with pytest.raises(BadInput, match="several classes"):
        bias(cal.multiclass_predictions(np.zeros(3, int), np.full((3, 3), 1 / 3)), "z")
    with pytest.raises(BadInput, match="rows are read"):
        bias([1], "z")


def test_regions_name_the_shift(data: Any) -> None:
    rng = np.random.default_rng([0xB1, 5])
    n = 4000
    z, sex, p = rng.normal(size=n), rng.choice(["f", "m"], n), rng.uniform(0.3, 0.6, n)
    y = rng.random(n) < p + 0.3 * ((z > 1) & (sex == "f")) - 0.25 * (z < -1)
    off = cal.predictions(y, p, {"z": z, "sex": sex})
    found = regions(bias(off, "z", by="sex"))
    assert found[0]["group"] == "sex f"
    assert [(r["group"], r["sign"]) for r in found[:3]].count(("sex f", 1)) == 1
    top = next(r for r in found if r["sign"] == 1)
    assert 0.4 < top["span"][0]["low"] < 1.2
    assert top["span"][0]["high"] > 1.8
    assert top["low"] > 0.1
    assert abs(top["people"] - ((sex == "f") & (z > top["span"][0]["low"])).sum()) < 60
    assert {r["sign"] for r in regions(bias(off, ("z", "sex")))} == {-1, 1}
    both = regions(bias(off, "sex", by_score=True))
    assert all(r["span"][0]["low"] == r["span"][0]["high"] for r in both)
    assert regions(bias(cal.predictions(rng.random(n) < p, p, off.covariates), "z")) == []


@pytest.mark.parametrize(
    "asked",
    [
        {"variables": "age"},
        {"variables": "income"},
        {"variables": "race"},
        {"variables": "seen"},
        pytest.param({"variables": "age", "by": ("sex", "race")}, marks=pytest.mark.slow),
        pytest.param({"variables": "seen", "by": "sex"}, marks=pytest.mark.slow),
        {"variables": ("age", "z")},
        {"variables": ("seen", "race")},
        pytest.param({"variables": ("race", "income")}, marks=pytest.mark.slow),
        pytest.param({"variables": ("sex", "race"), "by": "flag"}, marks=pytest.mark.slow),
        {"variables": "age", "by_score": True},
        pytest.param({"variables": "hole"}, marks=pytest.mark.slow),
        {"variables": ("hole", "sex")},
    ],
)
def test_every_map_round_trips_and_has_a_chart(data: Any, asked: dict[str, Any]) -> None:
    hole = np.where(np.arange(N) % 4 == 0, np.nan, column(data, "z"))
    table = data.covariates.append_column("hole", [hole])
    curve = bias(cal.predictions(data.y, data.p, table), **asked, draws=19)
    assert Curve.from_dict(curve.to_dict()) == curve
    drawn = curve.chart().to_dict()
    assert drawn["title"]["text"].startswith("Where the probabilities are off, by ")
    assert len({len(v) for v in curve.columns.values()}) == 1
    assert all(isinstance(v, tuple) for v in curve.columns.values())


def test_rows_have_no_chart(data: Any) -> None:
    with pytest.raises(NotComputable, match="to_frame"):
        bias(data, "z", at="rows").chart()


@pytest.mark.slow
def test_homeowners_by_age_sex_and_race(shared: Any) -> None:
    """The paper's Figure 6 on its housing survey: a logistic regression is calibrated overall, and not along age."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    table = pq.read_table(shared / "data/ahs_2019.parquet")
    names = [v for v in table.schema.names if v not in ("Unnamed: 0", "OWNER")]
    x = np.column_stack([table.column(v).to_numpy() for v in names])
    y, test = table.column("OWNER").to_numpy(), np.random.default_rng([0xB1, 9]).random(table.num_rows) < 0.5
    p = make_pipeline(StandardScaler(), LogisticRegression()).fit(x[~test], y[~test]).predict_proba(x[test])[:, 1]
    audited = cal.predictions(y[test], p, table.filter(test))
    curve = bias(audited, "HHAGE", by=("HHSEX", "BLACK"))
    assert curve.settings["p_value"] == 0.001
    assert set(curve.columns["group"]) == {f"HHSEX {s} and BLACK {b}" for s in (1, 2) for b in (0, 1)}
    women = [r for r in regions(curve) if r["group"] == "HHSEX 2 and BLACK 0"]
    young, middle, old = sorted(women, key=lambda r: r["span"][0]["low"])
    assert (young["sign"], middle["sign"], old["sign"]) == (-1, 1, -1)
    assert young["span"][0]["high"] < 35
    assert 50 < middle["span"][0]["low"] < middle["span"][0]["high"] < 75
    assert old["span"][0]["high"] == 85
    assert len(curve.chart().to_dict()["concat"]) == 4
