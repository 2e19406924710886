"""What the Spark engine says of a job that failed, and how its sums are gathered."""

from __future__ import annotations

from typing import Any

import pytest

from calibrant.data.engines.spark import BUCKETS, GROUP, NO_ARROW, reported, stages


@pytest.mark.parametrize(
    "line",
    [
        "ModuleNotFoundError: No module named 'pyarrow'",
        "pyspark.errors.PySparkImportError: [PACKAGE_NOT_INSTALLED] PyArrow >= 15.0.0 must be installed",
        "ImportError: PyArrow >= 15.0.0 must be installed; however, it was not found.",
    ],
)
def test_workers_without_pyarrow_are_told_the_setting(line: str) -> None:
    trace = f'An error occurred while calling o7.collect\nTraceback (most recent call last):\n  File "a.py"\n{line}\n'
    assert reported(RuntimeError(trace)) == NO_ARROW
    assert "PYSPARK_PYTHON" in NO_ARROW


def test_another_error_is_told_by_its_last_line() -> None:
    assert (
        reported(RuntimeError('Traceback (most recent call last):\n  File "a"\nValueError: no\n')) == "ValueError: no"
    )


@pytest.mark.parametrize(
    ("adapts", "parts", "expected"),
    [
        (True, None, [("part",), ("bucket",)]),
        (False, None, [(BUCKETS, "bucket")]),
        (True, 3, [(3, "bucket")]),
        (True, BUCKETS * GROUP, [(BUCKETS, "bucket")]),
        (False, BUCKETS * GROUP + 1, [(BUCKETS + 1, "part"), (BUCKETS, "bucket")]),
    ],
)
def test_sums_are_dealt_to_few_tasks_and_many_in_two_stages(adapts: bool, parts: int | None, expected: Any) -> None:
    assert stages(adapts, parts) == expected
