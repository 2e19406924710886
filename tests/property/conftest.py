"""Properties of kernels hold both ways: in NumPy, as few rows are counted, and with --rest compiled, as many are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calibrant.kernels import runtime

WAYS = {"plain": 1 << 60, "compiled": -1}
KERNELS = (
    *("test_kernels", "test_contents", "test_values", "test_strata", "test_measure"),
    *("test_variable_kernels", "test_box_kernels", "test_tree_kernels", "test_strong_kernels"),
)
ONCE = (
    "test_merge_laws",
    "test_a_sketch_counts_repeated_rows_in_any_parts",
    "test_parts_add_up_in_any_order",
    "test_laws",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each property of kernels twice, the second time where compiling may take its time; those of sketches once."""
    if metafunc.module.__name__.split(".")[-1] in KERNELS and metafunc.function.__name__ not in ONCE:
        ways = [pytest.param(name, marks=[pytest.mark.slow] if name == "compiled" else []) for name in WAYS]
        metafunc.parametrize("way", ways, indirect=True, scope="module")


@pytest.fixture(scope="module", autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Set from how many rows on kernels are compiled."""
    kept = runtime.FEW
    name = getattr(request, "param", "")
    runtime.FEW = WAYS.get(name, kept)
    yield name
    runtime.FEW = kept
