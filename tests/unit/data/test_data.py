"""What comes in is what is meant: labels, classes, levels, bins, dates."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.data.profile import LevelCounts, round_edges
from calibrant.data.specs.spec import Spec, Variable, bin_labels
from calibrant.errors import BadInput
from calibrant.views.sample import keyed


def levels(values: object, **options: object) -> dict[str, int]:
    n = len(values)  # type: ignore[arg-type]
    whole = cal.sketch(
        {"y": [0, 1] * (n // 2) + [0] * (n % 2), "p": [0.5] * n, "v": values}, label="y", score="p", by="v", **options
    )  # type: ignore[arg-type]
    rows = whole.group_levels.sum(axis=(1, 2, 3))
    names = [n[0][1] for n in whole.spec.group_names(0)]
    return {name: int(r) for name, r in zip(names, rows, strict=True) if r}


def test_labels_of_any_kind_mean_the_same() -> None:
    p = [0.2, 0.7, 0.9, 0.1]
    same = [[0, 1, 1, 0], [False, True, True, False], [0.0, 1.0, 1.0, 0.0], np.array([0, 1, 1, 0], np.int8)]
    prints = {cal.sketch({"y": y, "p": p}, label="y", score="p").fingerprint for y in same}
    named = cal.sketch({"y": ["n", "s", "s", "n"], "p": p}, label="y", score="p", positive="s")
    assert len(prints) == 1
    assert named.events == 2
    assert cal.predictions(["n", "s", "s", "n"], p, positive="s").events == 2
    assert cal.predictions([1, 2, 2, 1], p, positive=2).events == 2


def test_predictions_are_frozen() -> None:
    data = cal.predictions([0, 1], [0.2, 0.7])
    with pytest.raises(ValueError, match="read-only"):
        data.p[0] = 0.5
    with pytest.raises(AttributeError):
        data.p = None


def test_two_columns_are_a_predict_proba() -> None:
    assert cal.predictions([0, 1], [[0.8, 0.2], [0.3, 0.7]]).p.tolist() == [0.2, 0.7]


def test_multiclass_projects() -> None:
    p = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1]]
    data = cal.multiclass_predictions([0, 2, 1], p, {"g": ["a", "b", "c"]})
    assert data.top_label().y.tolist() == [1, 1, 0]
    assert data.top_label().p.tolist() == [0.5, 0.8, 0.6]
    assert data.one_vs_rest(2).y.tolist() == [0, 1, 0]
    with pytest.raises(cal.BadInput, match="classes 0 to 2"):
        data.one_vs_rest(3)
    with pytest.raises(cal.BadInput, match="top_label"):
        cal.certify.rounded(data)


def test_categories_keep_their_names_and_missing_is_a_level() -> None:
    assert levels(["a", "b", None, "a"]) == {"a": 2, "b": 1, "missing": 1}
    assert levels([True, False, True, None]) == {"false": 1, "true": 2, "missing": 1}
    assert levels([3, 10, 9, 3]) == {"3": 2, "9": 1, "10": 1}
    assert levels([0.5, 1.0, float("nan"), 1.0]) == {"0.5": 1, "1": 2, "missing": 1}
    assert levels(pa.array(["a", None, "b"]).dictionary_encode()) == {"a": 1, "b": 1, "missing": 1}


def test_numbers_are_binned_at_round_edges() -> None:
    ages = list(range(18, 90))
    assert levels(ages) == {
        "19 and under": 2,
        "20–29": 10,
        "30–39": 10,
        "40–49": 10,
        "50–59": 10,
        "60–69": 10,
        "70–79": 10,
        "80 and over": 10,
    }
    assert levels(ages, bins={"v": [40, 65]}) == {"39 and under": 22, "40–64": 25, "65 and over": 25}
    assert bin_labels((0.5, 1.5), whole=False) == ("under 0.5", "0.5 to 1.5", "1.5 and over")
    skewed = LevelCounts("income")
    skewed.update(pa.array(np.random.default_rng(0).lognormal(8, 2, 5000)))
    edges = skewed.variable().edges
    assert 3 <= len(edges) <= 6
    assert list(edges) == sorted(edges)


def of_parts(parts: list[Any], name: str = "hospital_id") -> Variable:
    """Return the levels of a column that was counted in parts."""
    whole = LevelCounts(name)
    for values in parts:
        part = LevelCounts(name)
        part.update(pa.array(values))
        whole.merge(part)
    return whole.variable()


def test_whole_numbers_that_are_names_are_groups_as_they_are() -> None:
    numbers, gaps = list(range(1, 31)), [*map(float, range(1, 31)), float("nan")]
    own = tuple(map(str, numbers))
    for parts in ([numbers], [numbers[:9], numbers[9:]], [gaps[20:], gaps[:20]]):
        found = of_parts(parts)
        assert (found.kind, found.values) == ("category", own)
        assert list(found.codes(pa.array(numbers))) == list(range(30))
        assert list(found.codes(pa.array([30.0, float("nan"), 31.0]))) == [29, 31, 30]
    assert of_parts([numbers], "n_hospital").kind == of_parts([numbers, [0.5]]).kind == "number"
    cut = LevelCounts("hospital_id")
    cut.update(pa.array(numbers))
    assert cut.variable((10.0,)).labels == ("9 and under", "10 and over", "missing")


def test_many_codes_are_what_many_texts_are() -> None:
    often = [i for i in range(300) for _ in range(20 + (300 - i) // 10)]
    for parts in ([often], [often[::2], often[1::2]], [often[:4000], often[4000:]]):
        found, texts = of_parts(parts), of_parts([list(map(str, p)) for p in parts])
        assert (found.values, found.folded) == (texts.values, texts.folded)
        assert found.folded == 100
    for parts in ([list(range(900))], [list(range(500)), list(range(400, 900))]):
        for column in (parts, [list(map(str, p)) for p in parts]):
            with pytest.raises(BadInput, match=r"'hospital_id' has 900 distinct .* looks like an identifier; group by"):
                of_parts(column)
    most = np.arange(10**5 + 1)
    for parts in ([most], [most[:70_000], most[60_000:]]):
        with pytest.raises(BadInput, match=r"'hospital_id' has more than 100,000 distinct values: it looks like an id"):
            of_parts(parts)
    assert of_parts([most, [0.5]]).kind == "number"  # a measurement after all


@pytest.mark.slow
def test_a_sketch_of_codes_is_that_of_parts_and_shows_each(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 60_000
    site, p = rng.integers(1, 15, n), rng.choice([0.1, 0.2, 0.3, 0.4, 0.5], n)
    y = (rng.uniform(size=n) < p + np.where(site == 5, 0.09, 0)).astype(np.int8)
    table = pa.table({"y": y, "p": p, "hospital_id": site, "text": pa.array([f"H{v}" for v in site])})
    asked: dict[str, Any] = {"label": "y", "score": "p", "limit": 0.05, "variables": (), "quick": True}
    made = cal.audit(table, by="hospital_id", **asked)
    same = cal.audit(table, by="text", **asked)
    assert made.exit_status == same.exit_status == 1
    assert (len(made.groups), made.verdicts["groups"]) == (14, same.verdicts["groups"])
    gaps = pa.chunked_array([pa.array([None if v == 3 else float(v) for v in site])])  # as pandas stores gaps
    pq.write_table(table.slice(0, 20_000), tmp_path / "a.parquet")
    pq.write_table(table.slice(20_000), tmp_path / "b.parquet")
    named: dict[str, Any] = {"label": "y", "score": "p", "by": "hospital_id"}
    whole, parts = cal.sketch(table, **named), cal.sketch(tmp_path, **named)
    assert whole.spec.variables == parts.spec.variables
    np.testing.assert_array_equal(whole.group_levels.sum(axis=1), parts.group_levels.sum(axis=1))  # blocks are dealt
    other = cal.sketch(table.set_column(2, "hospital_id", gaps), **named).spec.variables[0]
    assert other.values == tuple(v for v in whole.spec.variables[0].values if v != "3")


def test_a_lump_does_not_break_the_edges() -> None:
    from collections import Counter

    assert round_edges(Counter({0.0: 10_000, **{float(i): 1 for i in range(1, 30)}})) is not None


def test_dates_become_months_or_years() -> None:
    days = [dt.date(2024, 1, 5), dt.date(2024, 1, 20), dt.date(2024, 3, 1), None]
    assert levels(days) == {"2024-01": 2, "2024-03": 1, "missing": 1}
    long = [dt.datetime(2000 + i // 12, 1 + i % 12, 3) for i in range(48)]
    assert levels(long) == {"2000": 12, "2001": 12, "2002": 12, "2003": 12}


def test_an_unseen_level_is_other_when_a_spec_is_reused() -> None:
    first = cal.sketch({"y": [0, 1], "p": [0.5, 0.5], "g": ["a", "b"]}, label="y", score="p", by="g")
    later = cal.sketch({"y": [0, 1], "p": [0.5, 0.5], "g": ["a", "z"]}, spec=first.spec)
    names = [n[0][1] for n in first.spec.group_names(0)]
    rows = first.merge(later).group_levels.sum(axis=(1, 2, 3))
    assert dict(zip(names, rows.tolist(), strict=True)) == {"a": 2, "b": 1, "other": 1, "missing": 0}


def test_specs_round_trip() -> None:
    spec = cal.sketch({"y": [0, 1], "p": [0.5, 0.5], "g": ["a", "b"]}, label="y", score="p", by="g").spec
    again = msgspec.json.decode(msgspec.json.encode(spec), type=Spec)
    assert again == spec
    assert again.digest == spec.digest


def test_intersections_are_all_pairs() -> None:
    data = {"y": [0, 1] * 4, "p": [0.5] * 8, "a": list("xxyyxxyy"), "b": list("uvuvuvuv")}
    found = cal.certify.groups(cal.sketch(data, label="y", score="p", by=["a", "b"], intersections=True))
    assert "a = x, b = u" in found
    assert len(found) == 2 + 2 + 4
    assert found["a = x, b = u"].n == 2


def test_no_two_groups_have_one_name() -> None:
    names = [(("a=b", "c"),), (("a", "b=c"),), (("a", "b, c=d"),), (("a", "b"), ("c", "d")), (("a", '"b"'),)]
    assert [keyed(n) for n in names] == ['"a=b" = c', 'a = "b=c"', 'a = "b, c=d"', "a = b, c = d", 'a = "\\"b\\""']


def test_row_labels_of_pandas_are_no_covariate() -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": rng.random(400) < 0.5, "p": rng.random(400), "v": rng.integers(0, 3, 400)})
    some = frame.sample(frac=0.5, random_state=0)  # as train_test_split leaves it: labels out of order
    data = cal.predictions(some.y.to_numpy(), some.p.to_numpy(), some[["v"]])
    assert data.covariates.column_names == ["v"]
    whole = [cal.sketch(f, label="y", score="p", by="v").fingerprint for f in (some, some.reset_index(drop=True))]
    assert whole[0] == whole[1]
    assert "__index_level_0__" not in cal.audit(some, label="y", score="p", quick=True).to_json()
    named = cal.predictions(some.y.to_numpy(), some.p.to_numpy(), some.set_index("v")[["p"]])
    assert "v" in named.covariates.column_names  # an index with a name is a column like any other


def test_an_empty_dictionary_is_no_covariates() -> None:
    assert cal.predictions([0, 1], [0.2, 0.8], {}).covariates is None
