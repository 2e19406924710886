"""A seed that cannot be used is refused by name wherever one enters."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.arguments import checked_seed
from calibrant.errors import BadInput

TIERS = (cal.certify, cal.detect, cal.diagnose, cal.measure)
ARGUMENTS = {
    "variable": "x",
    "variables": "x",
    "names": ["x"],
    "gap": 0.05,
    "error": 0.1,
    "ids": ["a", "b"],
    "rows": 100,
    "tolerance": 0.001,
    "threshold": 0.4,
    "first": "x",
    "second": "g",
    "y_prob": np.full((4, 4), 0.25),
}


def seeded() -> list[str]:
    found = []
    for tier in TIERS:
        for name in tier.__all__:
            f = getattr(tier, name)
            if inspect.isfunction(f) and "seed" in inspect.signature(f).parameters:
                found.append(f"{tier.__name__.rsplit('.', 1)[1]}.{name}")
    return found


def refused(call: Callable[[], object]) -> str:
    """Return the words in which a call is refused."""
    with pytest.raises(BadInput) as reported:
        call()
    return str(reported.value)


def data() -> tuple[pa.Table, cal.Predictions]:
    rng = np.random.default_rng(811)
    p, x, g = rng.uniform(0.1, 0.9, 200), rng.normal(size=200), rng.integers(0, 2, 200)
    table = pa.table({"y": (rng.uniform(size=200) < p).astype(int), "p": p, "x": x, "g": np.array(["a", "b"])[g]})
    return table, cal.predictions(np.asarray(table["y"]), p, {"x": x, "g": np.asarray(table["g"])})


@pytest.mark.parametrize("seed", [-1, 1.5, "7", None, True, 2**64])
def test_refuses_a_seed_that_cannot_be_used(seed):
    with pytest.raises(BadInput, match="seed="):
        checked_seed(seed)


def test_every_seed_is_checked_so():
    """Whatever a function does with it: each says what `checked_seed` says."""
    reported, (_, rows), names = refused(lambda: checked_seed(-1)), data(), seeded()
    assert len(names) > 44
    for name in names:
        tier, short = name.split(".")
        function = getattr(getattr(cal, tier), short)
        needed = {}
        for k, v in inspect.signature(function).parameters.items():
            if v.default is v.empty:
                needed[k] = rows if k in ("data", "pilot") else ARGUMENTS[k]
        if name in ("certify.groups", "certify.worst_group"):
            needed["by"] = "g"
        if name == "certify.rows_needed":
            needed["data"] = rows
        assert refused(lambda: function(**needed, seed=-1)) == reported, name  # noqa: B023


def test_refuses_it_beside_a_sketch_and_when_sketching():
    table, _ = data()
    whole = cal.sketch(table, label="y", score="p", by=["g"], variables=["x"], tests=True)
    for call in (
        cal.certify.rounded,
        cal.certify.distance,
        cal.detect.score_test,
        cal.detect.local_calibration_test,
        cal.measure.ece,
    ):
        with pytest.raises(BadInput, match="seed="):
            call(whole, seed=-1)
    with pytest.raises(BadInput, match="seed="):
        cal.sketch(table, label="y", score="p", seed=-1)


def test_takes_a_numpy_integer():
    _, rows = data()
    a, b = (cal.detect.local_calibration_test(rows, draws=19, seed=s) for s in (np.int64(5), 5))
    assert a == b
    assert type(a.settings["seed"]) is int


def test_the_permutations_of_the_authors_take_32_bits():
    _, rows = data()
    with pytest.raises(BadInput, match="under 2\\*\\*32"):
        cal.papers.published_local_test(rows, variables=["x"], null="permuted", seed=2**32)
