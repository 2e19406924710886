"""Witnesses of the distance: all by one linear programme, and each by itself where that one is not solved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

from calibrant.stats.bounds import KNOTS, lipschitz_witness, lipschitz_witnesses

GAINS = np.random.default_rng(5).normal(size=(4, KNOTS + 1))


class Unsolved:
    status = 4  # numerical difficulties
    x = None


def test_one_that_is_not_solved_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    solve, expected = scipy.optimize.linprog, lipschitz_witnesses(GAINS)
    assert (np.abs(expected).max(axis=1) > 0).all()

    def fails(cost: np.ndarray, **programme: Any) -> Any:
        """Fail for every programme that holds the gains of row 2."""
        held = cost.reshape(-1, KNOTS + 2)[:, :-1]
        return Unsolved() if (held == -GAINS[2]).all(axis=1).any() else solve(cost, **programme)

    monkeypatch.setattr(scipy.optimize, "linprog", fails)
    found = lipschitz_witnesses(GAINS)
    np.testing.assert_array_equal(found[2], 0.0)
    for row in (0, 1, 3):
        assert GAINS[row] @ found[row] == pytest.approx(GAINS[row] @ expected[row], rel=1e-6)
        reach = np.abs(found[row]).max() + KNOTS * np.abs(np.diff(found[row])).max()
        assert reach <= 1 + 1e-12
    np.testing.assert_array_equal(lipschitz_witness(GAINS[2]), 0.0)
