"""Functions with a form for each kind of data."""

from __future__ import annotations

from typing import Any

import pytest

import calibrant as cal
from calibrant.errors import BadInput, NotComputable
from calibrant.views.kinds import ByKind, refuse_rows

TABLE = {"y": [0, 1, 1, 0, 1, 0], "p": [0.2, 0.7, 0.6, 0.3, 0.9, 0.1], "g": ["a", "a", "b", "b", "c", "c"]}
ROWS = cal.predictions(TABLE["y"], TABLE["p"])
COUNTS = cal.sketch(TABLE, label="y", score="p")
BY_CLUSTERS = cal.sketch(TABLE, label="y", score="p", cluster="g")
CLASSES = cal.multiclass_predictions([0, 1, 2], [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]])


def rows(data: cal.Predictions, more: str = "") -> str:
    return f"rows{more}" + (" in clusters" if data.cluster is not None else "")


def counts(data: Any, more: str = "") -> str:
    return f"counts{more}"


def test_each_kind_has_its_form() -> None:
    named = ByKind(rows=rows, counts=counts)
    assert [named(data) for data in (ROWS, COUNTS, BY_CLUSTERS)] == ["rows", "counts", "rows in clusters"]
    assert named(ROWS, more="!") == "rows!"
    assert ByKind(rows=rows, sketches=counts)(BY_CLUSTERS) == "counts"
    assert ByKind(rows=rows, classes=counts)(CLASSES) == "counts"


def test_other_kinds_are_refused() -> None:
    with pytest.raises(BadInput, match="several classes"):
        ByKind(rows=rows, counts=counts)(CLASSES)
    with pytest.raises(BadInput, match="for rows are read"):
        ByKind(rows=rows)(COUNTS)
    with pytest.raises(BadInput, match="data is a list"):
        ByKind(rows=rows, sketches=counts)([0.2, 0.3])


def test_rows_are_refused_by_the_reason_named() -> None:
    clustered = cal.predictions(TABLE["y"], TABLE["p"], cluster=TABLE["g"])
    refuse_rows(clustered, weights="no weights")
    refuse_rows(None, cluster="no clusters")
    with pytest.raises(NotComputable, match="no clusters"):
        refuse_rows(clustered, weights="no weights", cluster="no clusters")
