"""Raking against ipfn 1.4.4, a program not written here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal

GOLDEN = json.loads((Path(__file__).parent / "data/raking_ipfn.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", ["one_way", "two_way"])
def test_raked_shares_are_those_of_ipfn(case: str) -> None:
    seed, wanted = np.array(GOLDEN["seed"], dtype=int), np.array(GOLDEN[case])
    cells = np.repeat(np.arange(seed.size), seed.ravel())
    a, b, c = np.unravel_index(cells, seed.shape)
    table = {n: [f"{n}{v}" for v in codes] for n, codes in zip("abc", (a, b, c), strict=True)}
    one = {n: {f"{n}{i}": v for i, v in enumerate(GOLDEN[n])} for n in "abc"}
    ab = {(f"a{i}", f"b{j}"): GOLDEN["ab"][i][j] for i in range(2) for j in range(2)}
    margins = one if case == "one_way" else {("a", "b"): ab, "c": one["c"]}
    rows = cal.predictions(cells % 2, np.full(len(cells), 0.5), table)
    found = cal.weights.to(rows, margins).weights
    shares = np.bincount(cells, found, seed.size).reshape(seed.shape) / found.sum()
    assert np.allclose(shares, wanted, atol=1e-8)
