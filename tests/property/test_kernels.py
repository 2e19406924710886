"""Counting, hashing and the notch: kernels equal their oracles; every kernel is compiled on first use, and once."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import calibrant.kernels
import oracles.draws
import oracles.quadratic_penalty
import oracles.tally
from calibrant.kernels import draws, quadratic_penalty, runtime, smooth, strata, tally, trees
from calibrant.kernels.tally import Counters, Packed, Rows
from effort import examples

SCORES = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, np.nan, -0.1, 1.5, np.inf, 2**-30, 1 - 2**-31, np.nextafter(1, 0)])
)
LABELS = st.sampled_from([0, 1, -1, 2])


def counters(blocks: int, groups: int) -> Counters:
    shapes = (blocks, 1 << 14, 6), (blocks, 200, 2), (groups, blocks, 1 << 10, 4), (groups, blocks, 200, 2)
    return Counters(*(np.zeros(s, dtype=np.int64) for s in shapes))


@examples(60)
@given(
    data=st.data(), n=st.integers(0, 30), own=st.booleans(), first=st.integers(0, 10**9), salt=st.integers(0, 2**64 - 1)
)
def test_tally(data: st.DataObject, n: int, own: bool, first: int, salt: int) -> None:
    p = data.draw(hnp.arrays(np.float64, n, elements=SCORES))
    y = data.draw(hnp.arrays(np.int8, n, elements=LABELS))
    codes = data.draw(hnp.arrays(np.int32, (2, n), elements=st.integers(0, 1)))
    ids = data.draw(hnp.arrays(np.uint64, n)) if own else np.zeros(0, np.uint64)
    bases = np.array([0, 2], dtype=np.int64)
    fast, slow, faults = counters(3, 4), counters(3, 4), np.zeros((2, 8), dtype=np.int64)
    rows, packed = Rows(p, y, codes, bases, ids, first, salt), Packed(3, 4, 2)
    tally.tally(rows, packed, faults[0])
    packed.settle(fast)
    oracles.tally.tally(rows, slow, faults[1])
    for a, b in ((*faults,), *zip(fast, slow, strict=True)):
        np.testing.assert_array_equal(a, b)


@examples(100)
@given(words=st.lists(st.binary(max_size=20), max_size=12), seed=st.integers(0, 2**64 - 1))
def test_hash_bytes(words: list[bytes], seed: int) -> None:
    offsets = np.cumsum([0, *map(len, words)], dtype=np.int64)
    data = np.frombuffer(b"".join(words) or b"\x00", dtype=np.uint8)
    np.testing.assert_array_equal(draws.hash_bytes(offsets, data, seed), oracles.draws.hash_bytes(offsets, data, seed))


@examples(150)
@given(n=st.integers(1, 500), share=st.floats(-0.3, 1.3), power=st.floats(-5, 0.5))
def test_notch_peaks(n: int, share: float, power: float) -> None:
    centre, alpha = [share * n], [10.0**power]
    np.testing.assert_allclose(
        quadratic_penalty.penalty_peaks([n], centre, alpha),
        oracles.quadratic_penalty.penalty_peaks([n], centre, alpha),
        atol=1e-9,
        rtol=0,
    )


@pytest.mark.slow
def test_notch_peaks_of_large_counts() -> None:
    """Where the twin is too slow: against scipy's binomial on a fine grid around the peak."""
    from scipy.stats import binom

    for n, centre, alpha in ((10**5, 50_300.4, 5e-5), (10**6, 1_000.7, 1e-3), (10**6, 999_900.2, 1e-4)):
        k = np.arange(max(int(centre) - 6000, 0), min(int(centre) + 6000, n) + 1)
        log_penalty = -0.5 * alpha * (k - centre) ** 2
        grid = np.clip(
            centre / n + np.linspace(-1, 1, 401) * 3 / np.sqrt(n) * np.sqrt(centre / n * (1 - centre / n)), 1e-12, 1
        )
        values = [np.log(np.exp(binom.logpmf(k, n, e) + log_penalty).sum()) for e in grid]
        found = quadratic_penalty.penalty_peaks([n], [centre], [alpha])[0]
        assert max(values) <= found + 1e-9
        assert found <= max(values) + 1e-4


@examples(40)
@given(data=st.data())
def test_unpacking(data: st.DataObject) -> None:
    cells = data.draw(hnp.arrays(np.int64, (2, 3, 4, 3), elements=st.integers(0, 2**60)))
    levels = data.draw(hnp.arrays(np.int64, (2, 3, 4), elements=st.integers(0, 2**50)))
    for fast, slow, packed, fields in (
        (tally.unpack_cells, oracles.tally.unpack_cells, cells, 6),
        (tally.unpack_levels, oracles.tally.unpack_levels, levels, 2),
    ):
        mine, twin = packed.copy(), packed.copy()
        a, b = np.ones((2, 3, 4, fields), np.int64), np.ones((2, 3, 4, fields), np.int64)
        fast(mine, a)
        slow(twin, b)
        np.testing.assert_array_equal(a, b)
        assert not mine.any()
        assert not twin[..., :2].any()


FILES = [import_module(f"calibrant.kernels.{m.name}") for m in iter_modules(calibrant.kernels.__path__)]
INLINED = {"mixed", "start", "uniform", "fixed"}  # of a line, tested through every kernel that calls them


def kernels(file: ModuleType) -> dict[str, Any]:
    """Kernels that a file defines, compiled or not yet."""
    found = {k: v for k, v in vars(file).items() if isinstance(v, runtime._Kernel) or hasattr(v, "py_func")}
    return {k: v for k, v in found.items() if v.__module__ == file.__name__ and k not in INLINED}


def test_importing_kernels_imports_no_compiler() -> None:
    code = "import sys; " + "; ".join(f"import {m.__name__}" for m in FILES) + "; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("file", FILES, ids=lambda m: m.__name__.split(".")[-1])
def test_every_kernel_that_is_called_from_outside_has_an_oracle_of_its_name(file: ModuleType) -> None:
    called = {k.lstrip("_") for k in kernels(file)} & {k for k in vars(file) if not k.startswith("_")}
    if called:
        oracle = import_module(f"oracles.{file.__name__.split('.')[-1]}")
        assert called <= set(vars(oracle))


def test_one_signature_whatever_arrays_are_given() -> None:
    x, y = np.linspace(0.0, 1.0, 8), np.arange(8) % 2
    ids, codes = np.arange(8), np.zeros((8, 2), dtype=np.int64)
    fixed = np.array(x)
    fixed.flags.writeable = False
    for a in (x, fixed, np.repeat(x, 2)[::2], x.astype(np.float32), x.tolist()):
        draws.outcomes(ids, a, 0, 2, 5)
        draws.tallies(ids, a, a, codes, 1, draws.Draws(0, 2, 5))
        draws.peaks(draws.words(ids, a, a, 0, 5)[:, 0], ids, a, a, a, 0.0)
        draws.extremes(codes, a, a, y == 1, draws.Walks(*np.zeros((3, 2))))
        strata.bin_sums(a, y, a, a, None, 2)
        strata.bin_sums(a, y, None, None, a[1:3], 3)
        strata.spread(a, y, None, a, 4)
        strata.strata_sums(strata.locate(a, a[2:4]), 3, y, strata.Seen(a, None), a)
        strata.power_sums(a, y, y, 2, 2)
        smooth.operator(a, a, a, a, 3.0, 1)
        smooth.smooth(a, a, a, 0.1, 1, 2)
        smooth.taut_string(a, a, 1)
        quadratic_penalty.penalty_peaks([9], a[3:4], a[1:2])
        trees.grow(trees.Columns(codes, y[:2] == 1), a, a, ids, trees.Rule(1, 1, 0))
    for file in FILES:
        for name, found in kernels(file).items():
            if hasattr(found, "signatures"):  # two for these: everyone's counters lie together, groups' are turned
                assert len(found.signatures) <= (2 if name in ("unpack_cells", "unpack_levels") else 1), name
