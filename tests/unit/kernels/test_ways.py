"""Which way a kernel takes: sizes decide, and for what is done often, those of the data."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from calibrant.kernels import draws
from calibrant.kernels.runtime import FEW, few, sized


def test_little_work_is_done_in_numpy():
    assert few(FEW)
    assert not few(FEW + 1)
    assert few(8 * FEW, 8)
    assert few(FEW, often=True)


def test_what_is_done_often_is_compiled_where_the_data_are_many():
    with sized(FEW + 1):
        assert not few(1, often=True)
        assert few(1)  # once: numba need not load one more kernel
        with sized(1):  # of some rows of many
            assert not few(1, often=True)
    with sized(FEW):
        assert few(1, often=True)
    assert few(1, often=True)


def test_a_size_holds_for_its_own_thread_and_ends_with_an_error():
    with sized(FEW + 1), ThreadPoolExecutor(1) as pool:
        assert pool.submit(few, 1, 1, True).result()
    with pytest.raises(ZeroDivisionError), sized(FEW + 1):
        _ = 1 // 0
    assert few(1, often=True)


def test_outcomes_are_the_same_both_ways():
    ids, rate = np.arange(50, dtype=np.uint64), np.linspace(0.0, 1.0, 50)
    one = draws.outcomes(ids, rate, 3, 7, 11)
    with sized(FEW + 1):
        assert np.array_equal(draws.outcomes(ids, rate, 3, 7, 11), one)
