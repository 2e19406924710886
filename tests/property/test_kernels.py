"""Compiled kernels equal their NumPy twins."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from calibrant.kernels import reference
from calibrant.kernels import tally as compiled
from calibrant.kernels import tally as packing
from calibrant.kernels.tally import Packed
from effort import examples

SCORES = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, np.nan, -0.1, 1.5, np.inf, 2**-30, 1 - 2**-31, np.nextafter(1, 0)])
)
LABELS = st.sampled_from([0, 1, -1, 2])


def arrays(blocks: int, groups: int) -> list[np.ndarray]:
    shapes = [(blocks, 1 << 14, 6), (blocks, 200, 2), (groups, blocks, 1 << 10, 4), (groups, blocks, 200, 2), (8,)]
    return [np.zeros(s, dtype=np.int64) for s in shapes]


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
    fast, slow = arrays(3, 4), arrays(3, 4)
    packed = Packed(3, 4, 2)
    compiled.tally(p, y, codes, bases, ids, first, salt, packed, fast[4])
    packed.settle(*fast[:4])
    reference.tally(p, y, codes, bases, ids, first, salt, *slow)
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(a, b)


@examples(100)
@given(words=st.lists(st.binary(max_size=20), max_size=12), seed=st.integers(0, 2**64 - 1))
def test_hash_bytes(words: list[bytes], seed: int) -> None:
    offsets = np.cumsum([0, *map(len, words)], dtype=np.int64)
    data = np.frombuffer(b"".join(words) or b"\x00", dtype=np.uint8)
    np.testing.assert_array_equal(compiled.hash_bytes(offsets, data, seed), reference.hash_bytes(offsets, data, seed))


@examples(150)
@given(n=st.integers(1, 500), share=st.floats(-0.3, 1.3), power=st.floats(-5, 0.5))
def test_notch_peaks(n: int, share: float, power: float) -> None:
    centre, alpha = [share * n], [10.0**power]
    np.testing.assert_allclose(
        compiled.notch_peaks([n], centre, alpha), reference.notch_peaks([n], centre, alpha), atol=1e-9, rtol=0
    )


def test_notch_peaks_of_large_counts() -> None:
    """Where the twin is too slow: against scipy's binomial on a fine grid around the peak."""
    from scipy.stats import binom

    for n, centre, alpha in ((10**5, 50_300.4, 5e-5), (10**6, 1_000.7, 1e-3), (10**6, 999_900.2, 1e-4)):
        k = np.arange(max(int(centre) - 6000, 0), min(int(centre) + 6000, n) + 1)
        notch = -0.5 * alpha * (k - centre) ** 2
        grid = np.clip(
            centre / n + np.linspace(-1, 1, 401) * 3 / np.sqrt(n) * np.sqrt(centre / n * (1 - centre / n)), 1e-12, 1
        )
        values = [np.log(np.exp(binom.logpmf(k, n, e) + notch).sum()) for e in grid]
        found = compiled.notch_peaks([n], [centre], [alpha])[0]
        assert max(values) <= found + 1e-9
        assert found <= max(values) + 1e-4


@examples(40)
@given(data=st.data())
def test_unpacking(data: st.DataObject) -> None:
    cells = data.draw(hnp.arrays(np.int64, (2, 3, 4, 3), elements=st.integers(0, 2**60)))
    levels = data.draw(hnp.arrays(np.int64, (2, 3, 4), elements=st.integers(0, 2**50)))
    for fast, slow, packed, fields in (
        (compiled.unpack_cells, packing.unpacked_cells, cells, 6),
        (compiled.unpack_levels, packing.unpacked_levels, levels, 2),
    ):
        mine, twin = packed.copy(), packed.copy()
        a, b = np.ones((2, 3, 4, fields), np.int64), np.ones((2, 3, 4, fields), np.int64)
        fast(mine, a)
        slow(twin, b)
        np.testing.assert_array_equal(a, b)
        assert not mine.any()
        assert not twin[..., :2].any()
