"""Weights to a named population: hand-computed cases, refusals, and what a cap, a pilot and a classifier do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.apps.population.weighting import capped, effective
from calibrant.cli import main
from calibrant.errors import BadInput, NotComputable
from effort import examples


def rows(n: int = 400, **more: Any) -> cal.Predictions:
    """Half are F; two thirds of F and a third of M are old; age follows."""
    rng = np.random.default_rng(3)
    sex = rng.permutation(np.repeat(["F", "M"], n // 2))
    old = rng.uniform(size=n) < np.where(sex == "F", 2 / 3, 1 / 3)
    table = {"sex": sex, "band": np.where(old, "old", "young"), "age": rng.normal(40 + 20 * old, 5)}
    p = rng.uniform(size=n)
    return cal.predictions(rng.uniform(size=n) < p, p, table, **more)


SMALL = cal.predictions([0, 1, 0, 1], [0.2, 0.8, 0.3, 0.6], {"sex": ["F", "F", "F", "M"], "b": [True, False] * 2})


def test_one_margin_is_post_stratified_by_hand() -> None:
    found = cal.weights.to(SMALL, {"sex": {"F": 0.5, "M": 0.5}})
    assert found.weights == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2])
    assert found.effective == pytest.approx(16 / (3 * 4 / 9 + 4))
    assert (found.method, found.outside, found.capped) == ("cells", 0, 0)
    assert cal.predictions(SMALL.y, SMALL.p, weights=found).weights == pytest.approx(found.weights)


def test_raking_two_by_two_keeps_the_odds_ratio() -> None:
    """Margins of one half of a table (4, 2; 1, 2): x^2 / (1/2 - x)^2 = 4, so x = 1/3."""
    a, b = ["a"] * 6 + ["b"] * 3, list("uuuuvvuvv")
    d = cal.predictions([0, 1] * 4 + [0], [0.5] * 9, {"g": a, "h": b})
    w = cal.weights.to(d, {"g": {"a": 9, "b": 9}, "h": {"u": 7, "v": 7}}).weights / 9
    assert w[:4].sum() == pytest.approx(1 / 3)
    assert w[6] == pytest.approx(1 / 6)


def test_cells_make_every_joint_share_that_of_the_population() -> None:
    d, e = rows(), rows(600)
    tilted = e.covariates.filter(pa.array(np.arange(600) % 3 > 0))
    found = cal.weights.to(d, tilted, columns=["sex", "band"])
    for line in found.balance:
        assert line.after == pytest.approx(line.target)
    assert {b.column for b in found.balance} == {"sex x band"}


def test_weights_of_the_data_are_multiplied_and_counted() -> None:
    base = np.random.default_rng(0).uniform(0.5, 2, 400)
    found = cal.weights.to(d := rows(weights=base), {"sex": {"F": 0.3, "M": 0.7}})
    female = np.array(d.covariates["sex"].to_pylist()) == "F"
    assert found.weights[female].sum() / found.weights.sum() == pytest.approx(0.3)
    assert np.ptp(found.weights[female] / base[female]) == pytest.approx(0, abs=1e-12)
    assert found.of(d).weights == pytest.approx(found.weights)


def test_people_weights_of_the_population_count() -> None:
    people = {"sex": ["F", "M"], "count": [30, 70]}
    found = cal.weights.to(d := rows(), people, columns="sex", target_weights="count")
    assert found.weights == pytest.approx(cal.weights.to(d, {"sex": {"F": 30, "M": 70}}).weights)


def test_labels_and_scores_change_nothing() -> None:
    d = rows()
    other = cal.predictions(1 - d.y, d.p[::-1].copy(), d.covariates)
    for more in ({"method": "rake"}, {"method": "classifier"}, {"pilot": 0.2}):
        one, two = (cal.weights.to(x, rows(600).covariates, columns=["sex", "band"], **more) for x in (d, other))
        assert np.array_equal(one.weights, two.weights)


def test_a_classifier_makes_numbers_alike_and_never_sees_the_row_it_weighs() -> None:
    d = rows(1000)
    age = rows(4000).covariates["age"].to_numpy()
    target = pa.table({"age": age[np.random.default_rng(1).uniform(size=4000) < 1 / (1 + np.exp((50 - age) / 8))]})
    found = cal.weights.to(d, target, columns="age", method="classifier", cap=None)
    line = found.balance[0]
    assert abs(line.difference_before) > 0.5 > 5 * abs(line.difference_after)
    noise = np.random.default_rng(2).normal(size=(120, 60))
    w = cal.weights.odds(noise, np.repeat([False, True], 60))
    fitted = np.log(w[60:]).mean() - np.log(w[:60]).mean()
    assert fitted < 1.0  # a classifier that had seen the rows would tell them apart: about 4


def test_units_are_in_one_fold() -> None:
    """Two rows of a unit are alike in features that nothing else has; one must not teach the other's odds."""
    x = np.repeat(np.eye(40), 2, axis=0)
    member = np.repeat(np.arange(40) % 2 == 0, 2)
    by_rows = cal.weights.odds(x, member)
    by_clusters = cal.weights.odds(x, member, groups=np.repeat(np.arange(40), 2))
    assert by_rows[member].mean() > 1.2
    assert np.ptp(by_clusters[member]) < 0.8


def test_pilot_rows_leave_and_unknown_levels_with_them() -> None:
    d = rows()
    found = cal.weights.to(d, {"sex": {"F": 0.3, "M": 0.7}}, pilot=0.25)
    assert found.pilot == 100 == np.count_nonzero(~found.kept)
    left = found.of(d)
    assert (left.n, left.dropped) == (300, 100)
    assert len(np.unique(found.weights[found.kept].round(9))) == 2
    with pytest.raises(BadInput, match="at least 30"):
        cal.weights.to(d, {"sex": {"F": 0.3, "M": 0.7}}, pilot=0.05)


def test_who_is_like_no_row_is_refused_by_name_pooled_or_left_out() -> None:
    d, margin = rows(), {"sex": {"F": 0.5, "M": 0.3, "X": 0.2}}
    with pytest.raises(BadInput, match=r"20% of the population \(sex = X\).*leave_out=True"):
        cal.weights.to(d, margin)
    out = cal.weights.to(d, margin, leave_out=True)
    assert out.uncovered == ("sex = X",)
    assert out.uncovered_share == pytest.approx(0.2)
    assert "without the 20%" in out.estimand
    pooled = cal.weights.to(d, margin, pool={"sex": {"X": "M"}})
    assert pooled.balance[1].target == pytest.approx(0.5)


def test_rows_of_share_zero_are_left_out_and_counted() -> None:
    found = cal.weights.to(d := rows(), {"sex": {"F": 1.0, "M": 0.0}})
    assert found.outside == 200
    assert found.of(d).n == 200
    weighed = cal.predictions(d.y, d.p, weights=found)
    assert (weighed.n, weighed.dropped) == (200, 200)


def test_rows_left_out_leave_clusters_that_cross_and_are_certified() -> None:
    d = rows()
    crossed = cal.predictions(d.y, d.p, d.covariates, cluster={"of": np.arange(400) % 40, "at": np.arange(400) // 40})
    left = cal.weights.to(crossed, {"sex": {"F": 1.0, "M": 0.0}}).of(crossed)
    assert left.crossing.codes.shape == (2, 200)
    assert not left.weights.flags.writeable
    assert cal.certify.raw_lower(left).n == 200


@pytest.mark.parametrize(
    ("target", "more", "why"),
    [
        ({"sex": {"F": 0.5}}, {}, r"add up to 0\.5"),
        ({"sex": {"F": 1.0}}, {}, r"lacks 'M', which 200 rows have"),
        ({"sex": {"F": -1, "M": 2}}, {}, r"no share or count"),
        ({"sexe": {"F": 0.5, "M": 0.5}}, {}, r"sexe"),
        ({"sex": {"F": 0.5, "M": 0.5}}, {"cap": 1.0}, r"cap=1\.0"),
        ({"sex": {"F": 0.5, "M": 0.5}}, {"method": "classifier"}, r"margins name their columns"),
        ({"sex": {"F": 0.5, "M": 0.5}}, {"pool": {"sex": {"Z": "F"}}, "columns": "sex"}, r"margins name"),
        ({"sex": ["F", "M"]}, {}, r"name the columns"),
        ({"sex": ["F", "M"]}, {"columns": "sex", "method": "ipw"}, r"choose cells, rake or classifier"),
        ({"sex": ["F", "M"]}, {"columns": "band"}, r"band"),
    ],
)
def test_refusals(target: Any, more: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        cal.weights.to(rows(), target, **more)


def test_margins_that_contradict_each_other_are_not_computable() -> None:
    d = cal.predictions([0, 1] * 2, [0.5] * 4, {"a": list("uuvv"), "b": list("uuvv")})
    with pytest.raises(NotComputable, match="contradict"):
        cal.weights.to(d, {"a": {"u": 0.5, "v": 0.5}, "b": {"u": 0.6, "v": 0.4}})


@examples(100, quick=30)
@given(st.lists(st.floats(0.01, 1000), min_size=2, max_size=30), st.floats(1.01, 50))
def test_no_weight_is_above_the_cap_and_the_others_keep_their_ratio(values: list[float], cap: float) -> None:
    w = np.array(values)
    low, lowered = capped(w, cap)
    assert low.mean() == pytest.approx(1)
    assert low.max() <= cap * (1 + 1e-9) or not lowered
    assert lowered == 0 or low.max() == pytest.approx(cap)
    free = low < low.max() * (1 - 1e-9)
    assert np.ptp((low / w)[free]) <= 1e-9 * (low / w).max() if free.any() else True
    assert effective(low) <= len(w) * (1 + 1e-9)


def test_a_cap_says_what_it_changes() -> None:
    d, margin = rows(), {"band": {"old": 0.98, "young": 0.02}}
    free, low = cal.weights.to(d, margin), cal.weights.to(d, margin, cap=1.5)
    assert low.capped == np.count_nonzero(free.weights > 1)
    assert low.weights.max() == pytest.approx(1.5)
    assert low.trimmed > 0
    assert low.effective > free.effective
    assert "capped" in low.estimand and "capped" not in free.estimand  # noqa: PT018
    assert low.balance[0].after < low.balance[0].target or low.balance[1].after < low.balance[1].target


def test_levels_of_few_are_told_together() -> None:
    level = np.array(["a"] * 100 + ["b"] * 60 + ["c"] * 5 + ["d"] * 3)
    d = cal.predictions(np.arange(168) % 2, np.full(168, 0.5), {"g": level})
    found = cal.weights.to(d, {"g": level[::2]}, columns="g")
    assert [b.level for b in found.balance] == ["a", "(levels of few)"]


def test_everything_is_plain() -> None:
    reported = json.loads(json.dumps(cal.weights.to(rows(), {"sex": {"F": 0.4, "M": 0.6}}).to_dict()))
    assert {"weights", "effective", "cap", "capped", "balance", "method", "estimand"} <= set(reported)


def test_the_command_writes_the_same_weights_and_leaves_columns_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d = rows(60)
    sex = d.covariates["sex"].to_pylist()
    lines = [f"{y},{p:.3f},{s},00{i}" for i, (y, p, s) in enumerate(zip(d.y, d.p, sex, strict=True))]
    (tmp_path / "a.csv").write_text("y,p,sex,code\n" + "\n".join(lines) + "\n")
    (tmp_path / "m.toml").write_text("[sex]\nF = 30\nM = 70\n")
    out = tmp_path / "b.csv"
    asked = ["weights", str(tmp_path / "a.csv"), "--margins", str(tmp_path / "m.toml"), "--out", str(out)]
    assert main(asked) == 0
    assert "60 of 60 rows weighted (cells)" in capsys.readouterr().out
    head, *written = out.read_text().splitlines()
    assert head == "y,p,sex,code,weight"
    assert [w.rpartition(",")[0] for w in written] == lines
    weights = [float(w.rpartition(",")[2]) for w in written]
    assert weights == cal.weights.to(d, {"sex": {"F": 30, "M": 70}}).weights.tolist()
    assert main([*asked[:-1], str(tmp_path / "c.csv"), "--to", str(out)]) == 2
    assert "not both" in capsys.readouterr().err
