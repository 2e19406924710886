"""The map of two traits: its cells are those of the rows, its labels read as rules do, its outlines are the pockets."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve

N = 8_000
RNG = np.random.default_rng([0xD158])
AGE, X = RNG.integers(20, 90, N), RNG.uniform(size=N)
SEX, P = RNG.choice(["f", "m"], N, p=[0.4, 0.6]), RNG.uniform(0.1, 0.6, N)
INCOME = np.where(RNG.random(N) < 0.1, np.nan, X)
SINCE = [dt.date(2020, 1, 1) + dt.timedelta(days=int(d)) for d in RNG.integers(0, 1000, N)]
Y = (RNG.random(N) < P + 0.3 * ((AGE > 68) & (SEX == "f"))).astype(int)
TABLE = pa.table({"y": Y, "p": P, "age": AGE, "sex": SEX, "income": INCOME, "since": SINCE})
DATA = cal.predictions(Y, P, TABLE.drop_columns(["y", "p"]))


def labels(curve: Any, axis: int) -> tuple[str, ...]:
    return curve.settings["axes"][axis]["labels"]  # type: ignore[no-any-return]


def test_cells_are_those_of_the_rows() -> None:
    c = cal.diagnose.subgroup_map(DATA, "income", "sex").columns
    edges = [float(v.split(" to ")[0]) for v in labels(cal.diagnose.subgroup_map(DATA, "income", "sex"), 0)[1:-2]]
    edges.append(float(labels(cal.diagnose.subgroup_map(DATA, "income", "sex"), 0)[-2].removeprefix("over ")))
    cell = np.where(np.isnan(INCOME), len(edges) + 1, np.searchsorted(edges, INCOME))
    level = np.where(SEX == "m", 0, 1)  # the most frequent first
    assert sum(c["rows"]) == N
    for i, j, n, says, happened, gap in zip(*c.values(), strict=True):
        own = (cell == i) & (level == j)
        assert n == own.sum()
        assert says == pytest.approx(P[own].mean(), abs=1e-8)
        assert happened == Y[own].mean()
        assert gap == happened - says


def test_labels_read_as_rules_do() -> None:
    found = cal.diagnose.subgroup_map(DATA, "age", "since")
    age, since = labels(found, 0), labels(found, 1)
    assert age[0].startswith("up to ")
    assert age[-1].startswith("over ")
    assert all(" to " in v for v in age[1:-1])
    first, second = (tuple(map(int, v.split(" to "))) for v in age[1:3])
    assert first[1] + 1 == second[0]  # whole numbers
    assert int(age[0].removeprefix("up to ")) + 1 == first[0]
    day, until = (dt.date.fromisoformat(v) for v in since[1].split(" to "))
    assert day < until
    assert since[-1].startswith("after 20")
    assert labels(cal.diagnose.subgroup_map(DATA, "sex", "age"), 0) == ("m", "f")
    assert labels(cal.diagnose.subgroup_map(DATA, "age", "income"), 1)[-1] == "missing"


def test_the_score_is_a_trait() -> None:
    found = cal.diagnose.subgroup_map(DATA, "the score", "sex")
    assert [a["name"] for a in found.settings["axes"]] == ["the score", "sex"]
    assert "missing" not in labels(found, 0)


def test_the_other_way_round_is_the_same_turned() -> None:
    one, other = cal.diagnose.subgroup_map(DATA, "age", "sex"), cal.diagnose.subgroup_map(DATA, "sex", "age")
    cells = [
        {(c[a][i], c[b][i]): (c["rows"][i], c["gap"][i]) for i in range(len(c["rows"]))}
        for c, a, b in ((one.columns, "first", "second"), (other.columns, "second", "first"))
    ]
    assert cells[0] == cells[1]
    assert [tuple(reversed(p)) for p in one.settings["subgroups"]] == list(other.settings["subgroups"])


def test_pockets_of_the_two_are_outlined_and_no_others() -> None:
    own = cal.diagnose.subgroup_map(DATA, "age", "sex")
    assert own.settings["rules"] == ("age over 68 and sex = f",)
    (ages, levels), size = own.settings["subgroups"][0], len(labels(own, 0))
    assert levels == (1, 2)
    assert labels(own, 0)[ages[0]].startswith("69 to ")
    assert ages[1] == size
    found = cal.diagnose.subgroups(DATA)
    assert (
        cal.diagnose.subgroup_map(DATA, "age", "sex", subgroups=found).settings["subgroups"]
        == own.settings["subgroups"]
    )
    assert cal.diagnose.subgroup_map(DATA, "age", "income", subgroups=found).settings["subgroups"] == ()


def test_a_pocket_of_one_trait_goes_all_the_way_and_levels_apart_are_two_runs() -> None:
    ward = RNG.choice(list("abcd"), N, p=[0.4, 0.3, 0.2, 0.1])
    y = (RNG.random(N) < P + 0.2 * np.isin(ward, ["a", "c"])).astype(int)
    data = cal.predictions(y, P, {"ward": ward, "x": X})
    found = cal.diagnose.subgroup_map(data, "x", "ward")
    across, levels = found.settings["subgroups"][0]
    assert across == (0, len(labels(found, 0)))
    assert levels == (0, 1, 2, 3)


def test_a_level_called_missing_is_told_from_missing_values() -> None:
    kind = np.array(["missing", "there", None], dtype=object)[RNG.choice(3, N, p=[0.5, 0.3, 0.2])]
    names = labels(cal.diagnose.subgroup_map(cal.predictions(Y, P, {"kind": kind, "x": X}), "kind", "x"), 0)
    assert names[:2] == ("missing", "there")
    assert len(set(names)) == len(names)


def test_a_sketch_gives_the_same_bits_and_the_curve_round_trips() -> None:
    of_rows = cal.diagnose.subgroup_map(DATA, "age", "sex")
    sketched = cal.sketch(TABLE, label="y", score="p", variables="*", tests=True)
    assert cal.diagnose.subgroup_map(sketched, "age", "sex").to_dict() == of_rows.to_dict()
    text = json.dumps(of_rows.to_dict(), allow_nan=False)
    assert json.dumps(Curve.from_dict(json.loads(text)).to_dict()) == text


@pytest.mark.parametrize(
    ("names", "more", "says"),
    [
        (("age", "age"), {}, "name two attributes"),
        (("age", "nobody"), {}, "nobody"),
        (("age", 3), {}, "second=3: pass text"),
        (("age", "sex"), {"subgroups": Curve(method="other", columns={})}, "pass what diagnose.subgroups returned"),
        (("age", "sex"), {"seed": -1}, "seed=-1"),
    ],
)
def test_what_cannot_be_mapped_is_refused(names: tuple[Any, Any], more: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        cal.diagnose.subgroup_map(DATA, *names, **more)


def test_a_constant_is_no_trait() -> None:
    data = cal.predictions(Y, P, {"x": X, "same": np.ones(N)})
    with pytest.raises(NotComputable, match="'same' has no cells: it takes one value only"):
        cal.diagnose.subgroup_map(data, "x", "same")
