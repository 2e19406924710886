"""What units add up to in boxes: the kernel and its form for few rows, against one box and one unit at a time."""

import numpy as np
import pytest

from calibrant.kernels import boxes as kernels
from calibrant.stats.subgroups.cluster_ranges import _pair
from calibrant.stats.subgroups.family import runs, singles_and_pairs
from oracles.boxes import cluster_boxes


@pytest.mark.parametrize("compiled", [True, False])
def test_against_one_box_at_a_time(monkeypatch, compiled):
    monkeypatch.setattr(kernels, "few", lambda *_: not compiled)
    rng = np.random.default_rng(4)
    size = rng.integers(1, 5, 40)
    starts = np.concatenate([[0], np.cumsum(size)])
    cells = rng.integers(0, [[5], [4]], (2, starts[-1]))
    w, p = rng.uniform(0.5, 2.0, starts[-1]), rng.random(starts[-1])
    parts = np.stack([np.ones(starts[-1]), w, w * (rng.integers(0, 2, starts[-1]) - p), w * p], axis=1)
    first, second = runs(0, 4), singles_and_pairs([0, 1, 2])  # the last cell of each is in no set
    wanted = cluster_boxes(cells, starts, parts, first, second)
    assert kernels.cluster_boxes(cells, starts, parts, first, second) == pytest.approx(wanted, abs=1e-9)
    assert _pair(cells, starts, parts, [first, second]) == pytest.approx(wanted, abs=1e-9)
