"""What the Spark engine says of a job that failed, and how its sums are gathered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from calibrant.data.engines.spark import BUCKETS, NO_ARROW, _gathered, told


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
    assert told(RuntimeError(trace)) == NO_ARROW
    assert "PYSPARK_PYTHON" in NO_ARROW


def test_another_error_is_told_by_its_last_line() -> None:
    assert told(RuntimeError('Traceback (most recent call last):\n  File "a"\nValueError: no\n')) == "ValueError: no"


class Sums:
    """A DataFrame that tells how it was repartitioned."""

    def repartition(self, *how: Any) -> tuple[Any, ...]:
        return how


@pytest.mark.parametrize(
    ("off", "parts", "expected"),
    [
        ("", None, ("bucket",)),
        ("spark.sql.adaptive.enabled", None, (BUCKETS, "bucket")),
        ("spark.sql.adaptive.coalescePartitions.enabled", None, (BUCKETS, "bucket")),
        ("", 3, (3, "bucket")),
        ("", 500, (BUCKETS, "bucket")),
    ],
)
def test_a_small_log_is_joined_by_few_tasks(off: str, parts: int | None, expected: tuple[Any, ...]) -> None:
    session: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda name: "false" if name == off else "true"))
    sums: Any = Sums()
    assert _gathered(session, sums, parts) == expected
