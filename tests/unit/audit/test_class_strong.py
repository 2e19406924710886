"""The search of all classes for groups that nobody named, as an audit makes it and the report states it."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit import run
from calibrant.audit.record import AuditRecord
from calibrant.report import markdown

NAMES = "cat", "dog", "fox"
ASKED = "error-everyone", "error-classes", "class-strong"


def audited(moved: float, rows: int = 1500, publish: bool = False) -> AuditRecord:
    """Rows of which, where old and in the north, a part of cat's probability is truly dog's."""
    rng = np.random.default_rng(7)
    p, site, age = rng.dirichlet([0.8] * 3, rows), rng.choice(["north", "south"], rows), rng.uniform(20, 80, rows)
    truth, inside = p.copy(), (site == "north") & (age > 50)
    truth[inside, 1] += moved * p[inside, 0]
    truth[inside, 0] *= 1.0 - moved
    y = np.minimum((rng.uniform(size=(rows, 1)) > truth.cumsum(axis=1)).sum(axis=1), 2)
    data = cal.multiclass_predictions(np.array(NAMES)[y], p, {"site": site, "age": age}, classes=NAMES)
    checks = tuple(c for c in run.all_checks() if c.code in ASKED)
    with patch.object(run, "all_checks", lambda: checks):
        return cal.audit(data, limit=0.3, publish=publish)


@pytest.mark.slow
def test_a_group_that_nobody_named_is_found_with_the_pair_of_classes() -> None:
    record = audited(0.9)
    (check,) = (c for c in record.checks if c.code == "class-strong")
    parts = check.outcome.parts
    assert check.outcome.p_value == pytest.approx(1 / 200)
    assert (parts["peak_over_class"], parts["peak_under_class"]) == ("cat", "dog")
    assert parts["peak_over_gap"] < -0.1 < 0.1 < parts["peak_under_gap"]
    page = markdown.render(record)
    assert "shows error" in page
    assert "`cat` gets" in page
    assert record.verdicts["everyone"] != "over"  # a test decides nothing


@pytest.mark.slow
def test_nothing_is_found_where_nothing_is_off_and_gaps_are_rounded_to_publish() -> None:
    record = audited(0.0, publish=True)
    (check,) = (c for c in record.checks if c.code == "class-strong")
    assert check.outcome.p_value > 0.05
    gap = check.outcome.parts.get("peak_over_gap", 0.0)
    assert gap == pytest.approx(round(gap, 3), abs=1e-12)
    assert "finds no error" in markdown.render(record)


def test_a_quick_audit_does_not_search() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1.0] * 3, 60)
    record = cal.audit(cal.multiclass_predictions(rng.integers(0, 3, 60), p), quick=True)
    (check,) = (c for c in record.checks if c.code == "class-strong")
    assert check.status == "not-run"
