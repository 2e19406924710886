"""Jitter: the score perturbed a little, which makes its calibration error certifiable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrant.certify.population import checked_bandwidth
from calibrant.data.seed import checked_seed
from calibrant.data.spec import Spec
from calibrant.kernels.draws_reference import uniforms
from calibrant.kernels.reference import CELL_BITS, SCORE_BITS, fixed_point
from calibrant.repair.fitted import Batch, FittedMap
from calibrant.repair.rounding import two_classes

GRID = 1 << CELL_BITS


@dataclass(frozen=True, kw_only=True)
class Jittered(FittedMap):
    """The map that perturbs a score by a draw that depends on the row's identity and the seed alone."""

    bandwidth: float
    seed: int

    def check(self) -> None:
        """Raise `ValueError` if bandwidth or seed cannot be used."""
        checked_bandwidth(self.bandwidth, GRID)
        checked_seed(self.seed)

    def values(self, rows: Batch) -> Any:
        """Return the perturbed scores."""
        from calibrant.stats.jitter import jitter

        salt = Spec(label="y", score="p", seed=self.seed).salt("repair.Jitter")
        cells = fixed_point(rows.p) >> (SCORE_BITS - CELL_BITS)
        return jitter(GRID, self.bandwidth).draw(cells, uniforms(rows.ids, salt))


@dataclass(frozen=True, kw_only=True)
class Jitter:
    r"""Jitter: show a score drawn near the model's; nothing is fitted.

    Estimand: none. The score shown is drawn with density proportional to ``sech((s - p) / h)`` on [0, 1], and is the
    classifier that `calibrant.certify.jittered` certifies.

    Parameters
    ----------
    bandwidth : float
        h, at most 0.5; scores move by about ``1.2 h``.
    seed : int
        Of the draws.

    Raises
    ------
    BadInput
        A setting that cannot be used.

    Notes
    -----
    **Assumes.** Nothing; that a row's identity says nothing about its outcome.
    **Guarantee.** ``certify.jittered(data, bandwidth)`` of the raw data is a certificate of this randomised classifier.
    Order may change: AUROC falls, by what `calibrant.certify.jitter_bandwidth` can tell in advance. **Method.** On the
    certificate's own grid: p is rounded to the middle of one of ``2^14`` cells and the middle of another is drawn by
    exact inversion of the running sum of the kernel. The draw is keyed by the row's identity (its place in its file, or
    its key) and the seed, so that the same row is always shown the same score however the data are cut into chunks;
    arrays without identities are numbered from 0. **Cost.** One pass and a look-up: about 0.3 s a million rows.
    **Reads.** Scores and identities.

    References
    ----------
    Ciosek et al., Measuring Uncertainty Calibration, section 5.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> shown = cal.repair.Jitter(bandwidth=2**-6).fit().scores(np.full(10_000, 0.5))
    >>> bool(abs(shown.mean() - 0.5) < 0.001), bool(0.02 < shown.std() < 0.03)
    (True, True)
    """

    bandwidth: float = 2**-6
    seed: int = 0

    def __post_init__(self) -> None:
        checked_bandwidth(self.bandwidth, GRID)
        checked_seed(self.seed)

    def fit(self, data: Any = None) -> Jittered:
        """Return the map; the data play no part."""
        two_classes(data, "Jitter")
        settings = {"bandwidth": float(self.bandwidth), "seed": int(self.seed)}
        return Jittered(recipe="Jitter", settings=settings, bandwidth=float(self.bandwidth), seed=int(self.seed))
