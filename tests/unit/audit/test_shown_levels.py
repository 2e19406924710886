"""What an audit shows of covariates leaves no level of fewer people than may be shown to subtraction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrant as cal

LEAST = 20


def audited(**columns: Any) -> tuple[dict[str, Any], int]:
    n = len(next(iter(columns.values())))
    rng = np.random.default_rng(4)
    p = rng.uniform(0.2, 0.8, n)
    found = cal.audit(cal.predictions(rng.random(n) < p, p, columns))
    return found.to_dict(), n


@pytest.mark.slow
@pytest.mark.parametrize("kind", [float, pytest.param(str, marks=pytest.mark.slow)])
def test_a_small_level_cannot_be_found_by_subtraction(kind: type) -> None:
    level = np.repeat([0, 1, 2, 3, 9], [1400, 1000, 500, 300, 8])
    record, n = audited(children=level.astype(kind), other=np.tile([0.0, 1.0], 1604))
    curve = record["curves"]["variable_curve/children"]["columns"]
    rest = n - sum(curve["rows"])
    assert abs(rest) <= 5 * len(curve["rows"]) or rest >= LEAST  # counts are told as multiples of five
    assert len(curve["label"]) <= 3 if kind is float else min(curve["rows"]) >= LEAST
    ranking = record["curves"]["ranking"]["columns"]
    assert all(w is None or w >= LEAST for w in ranking["worst_rows"])
    at = ranking["variable"].index("children")
    assert ranking["worst"][at] is None or ranking["worst"][at] in curve["label"]


@pytest.mark.slow
def test_the_rest_of_a_large_worst_bin_is_not_found_by_subtraction() -> None:
    record, _ = audited(ill=np.repeat([0.0, 1.0], [1000, 7]), other=np.arange(1007) % 5)
    ranking = record["curves"]["ranking"]["columns"]
    assert ranking["worst_rows"][ranking["variable"].index("ill")] is None
    assert "variable_curve/ill" not in record["curves"]
