"""Which outcomes of some rows the strong calibration test rejects, for plans: its null is simulated once for all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Predictions
from calibrant.kernels.draws import LANES, packed
from calibrant.search.detectors import Settings, detector_inputs
from calibrant.search.models import Floats
from calibrant.search.nulls import AGAIN, checked_draws, under
from calibrant.search.products import WEIGHTS
from calibrant.search.repeats import VALUES, Repeats
from calibrant.stats.nulls import ranked

Outcomes = NDArray[np.uint8]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class StrongTest:
    """The test with repeated fits, tolerance 0, of rows that have no outcomes yet."""

    search: Repeats
    null: tuple[Floats, ...]  # statistics of the simulated outcomes, rising: peaks, and mean Bayes factors if tested
    least: Floats  # the smaller weighted p-value of each simulated set, rising

    @classmethod
    def of(cls, rows: Predictions, seed: int) -> StrongTest:
        """Simulate the null: outcomes at the scores."""
        q = under(detector_inputs(rows, Settings(seed=seed)), "refit")
        search = Repeats(q, AGAIN)
        draws = checked_draws(None, q, "refit")
        drawn = [_statistics(search, search.outcomes(b, min(LANES, draws - b))) for b in range(0, draws, LANES)]
        null = np.concatenate(drawn, axis=1)
        weights = np.array(WEIGHTS if len(null) > 1 else (1.0,))
        least = np.sort((ranked(null) / weights[:, None]).min(axis=0))
        return cls(search, tuple(np.sort(one) for one in null), least)

    def p_values(self, y: Outcomes) -> Floats:
        """The p-value of each set of outcomes, shape (sets, n), rows in their own order."""
        most = max(VALUES // self.search.q.n // LANES, 1) * LANES  # for memory
        parts = [self._p_values(y[first : first + most]) for first in range(0, len(y), most)]
        return np.concatenate([np.ones(0), *parts])

    def _p_values(self, y: Outcomes) -> Floats:
        draws = len(self.least)
        weights = WEIGHTS if len(self.null) > 1 else (1.0,)
        own = _statistics(self.search, y[:, self.search.order])
        each = [
            (1 + draws - np.searchsorted(null, values * (1.0 - 1e-12), side="left")) / (draws + 1) / weight
            for null, values, weight in zip(self.null, own, weights, strict=True)
        ]
        below = partial(np.searchsorted, self.least, side="right")
        p: Floats = np.asarray((1 + below(np.min(each, axis=0) * (1.0 + 1e-12))) / (draws + 1))
        return p


def _statistics(search: Repeats, y: Outcomes) -> Floats:
    """The models' largest sum, and the mean Bayes factor where products are tested, shape (1 or 2, sets).

    `y` (sets, n): outcomes, rows in the order of the folds.
    """
    y = np.ascontiguousarray(y)
    if search.few:
        batches = [search.of_few(y)]
    else:
        groups = [y[first : first + LANES] for first in range(0, len(y), LANES)]
        batches = [search.of_many(packed(one.T)[:, 0], len(one)) for one in groups]
    peaks = np.concatenate([batch.peaks.max(axis=1) for batch in batches])
    if search.products is None:
        return peaks[None]
    w = search.bars.weight

    def residual(part: slice) -> NDArray[np.float32]:
        return np.asarray((y[:, part].T - search.p[part, None]) * w[part, None], dtype=np.float32)

    scores = search.products.scored(residual, search.p * (1.0 - search.p), w)
    return np.stack([peaks, search.evidence(np.concatenate([batch.sums for batch in batches]), scores)[0]])
