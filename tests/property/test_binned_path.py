"""Comparators' statistics equal their definition, draw by draw."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.data.sketches.sample import identities_of
from calibrant.stats.cusum import Boundary, binned, multiplied_squares, path, simulated_squares, squares
from effort import examples
from oracles.draws import outcomes


@examples(15)
@given(
    seed=st.integers(0, 10**6),
    bins=st.integers(1, 7),
    by_size=st.booleans(),
    weighted=st.booleans(),
    side=st.sampled_from(["two-sided", "greater", "less"]),
)
def test_sums_of_squares(seed: int, bins: int, by_size: bool, weighted: bool, side: str) -> None:
    rng = np.random.default_rng([0xB1, seed])
    n = 70
    p, g = rng.uniform(size=n), rng.normal(size=n).round(1) / 5
    w = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    edge = Boundary.of(p, 0.03)
    route = path(g, edge, side, weights=w)  # type: ignore[arg-type]
    cut = binned(route, n, bins, w, by_size)
    y = rng.integers(0, 2, n).astype(float)

    def plain(high: np.ndarray, low: np.ndarray) -> float:
        total = 0.0
        for b in range(bins):
            steps = [k for k in range(b * n // bins, (b + 1) * n // bins) if k < len(route.rows)]
            score = variance = 0.0
            for k in steps:
                i, up = route.rows[k], route.upper[k]
                rate = edge.high[i] if up else edge.low[i]
                h = w[i] * (route.excess[k] if by_size else 1.0)
                score += h * ((high[i] - rate) if up else (rate - low[i]))
                variance += h * h * rate * (1 - rate)
            total += max(score, 0.0) ** 2 / variance if variance > 0 else 0.0
        return total

    assert squares([cut], y)[0] == pytest.approx(plain(y, y), abs=1e-9)
    ids = identities_of(n, seed)
    high, low = (outcomes(ids, v, 0, 70, 9) for v in (edge.high, edge.low))
    drawn = simulated_squares([cut], edge, ids, 70, 9)[:, 0]
    np.testing.assert_allclose(drawn, [plain(high[:, b], low[:, b]) for b in range(70)], atol=1e-9)


def test_clusters_take_one_sign() -> None:
    rng = np.random.default_rng(3)
    p, cluster = rng.uniform(size=60), np.arange(60) // 60
    route = path(rng.normal(size=60), Boundary.of(p, 0.0))
    y = rng.integers(0, 2, 60).astype(float)
    cut = binned(route, 60, 1)
    found = squares([cut], y)[0]
    drawn = multiplied_squares([cut], y, (cluster, identities_of(1, 0)), 40, 7)[:, 0]
    total = float(cut.weight @ (y[cut.rows] - cut.rate)) / cut.spread(0, 60)
    assert set(np.round(drawn, 9)) == {0.0, round(total**2, 9)}
    assert found in (pytest.approx(total**2), 0.0)
