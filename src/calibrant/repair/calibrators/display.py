"""The score as shown: rounded to steps, or perturbed a little."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_seed, checked_steps
from calibrant.data.predictions import Predictions
from calibrant.data.specs.spec import Spec
from calibrant.kernels.draws import uniforms
from calibrant.kernels.tally import CELL_BITS, SCORE_BITS, fixed_point
from calibrant.repair.catalogue import Tunable, recipe
from calibrant.repair.fitted import Batch, Calibrator, Order
from calibrant.repair.formulas.expression import Applied, Formula, Number, Term
from calibrant.repair.regression import of_two_classes
from calibrant.stats.jitter import jitter
from calibrant.views.population import EXACT_STEPS, checked_bandwidth

Floats = NDArray[np.float64]

# ---- Rounding: the probabilities as people see them, in whole percent ----


@dataclass(frozen=True, kw_only=True)
class Rounded(Calibrator):
    """The map to the nearest multiple of ``1 / steps``, exactly as `calibrant.certify.rounded` counts it."""

    steps: int

    @property
    def order(self) -> Order:
        return "kept up to ties"

    def check(self) -> None:
        checked_steps(self.steps)

    def values(self, rows: Batch) -> Floats:
        q, k = fixed_point(rows.p), self.steps
        if k in EXACT_STEPS or k & (k - 1) == 0:  # floor(p K + 1/2), of p in 2^30 parts, up for decimal halves
            step = ((q + (k in EXACT_STEPS)) * k + (1 << (SCORE_BITS - 1))) >> SCORE_BITS
        else:  # floor(m K + 1/2), m the middle of the score's cell of 2^14, in 2^15 parts
            step = ((2 * (q >> (SCORE_BITS - CELL_BITS)) + 1) * k + (1 << CELL_BITS)) >> (CELL_BITS + 1)
        shown: Floats = step / np.float64(k)
        return shown

    def formula(self, row: Formula) -> Term:
        k, parts, cells = self.steps, float(1 << SCORE_BITS), float(1 << CELL_BITS)
        q = Applied("least", (_whole(row.score * parts), Number(parts - 1.0)))
        if k in EXACT_STEPS or k & (k - 1) == 0:
            step = _whole((q + float(k in EXACT_STEPS)) * (k / parts) + 0.5)
        else:
            step = _whole((_whole(q / (parts / cells)) * 2.0 + 1.0) * (k / (2.0 * cells)) + 0.5)
        return step / float(k)


def _whole(x: Term) -> Term:
    return Applied("floor", (x,))


@recipe(calibrators=[Rounded], words="rounding", simplicity=10)
class Rounding(Tunable):
    r"""Rounding: show the score in steps; nothing is fitted.

    Estimand: none. The map gives the rounded score, which is the one that `calibrant.certify.rounded` certifies.

    Parameters
    ----------
    steps : int from 2 to 1024
        Steps from 0 to 1: 100 is whole percent.

    Raises
    ------
    BadInput
        A number of levels that cannot be used.

    Notes
    -----
    **Assumes.** Nothing.
    **Guarantee.** ``certify.rounded(data, steps)`` of the raw data is a certificate of these scores. No score moves by
    more than ``1 / (2 steps)``; order is kept up to ties. **Method.** Integers: with ``q = floor(p 2^30)`` the step is
    ``((q + 1) K + 2^29) >> 30`` for K = 10, 20, 50, 100, so that 0.005 goes up, and ``(q K + 2^29) >> 30`` for powers
    of two, whose halves q holds exactly; otherwise the middle of the score's cell, of ``2^14``, is rounded, which can
    move a score by ``2^-15`` more. (Certificates of groups use cells of ``2^10`` for
    those other K.) **Cost.** One pass. **Reads.** Scores.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> cal.repair.Rounding(steps=20).fit().scores(np.array([0.123, 0.5, 0.99])).tolist()
    [0.1, 0.5, 1.0]
    """

    steps: int = 100

    def __post_init__(self) -> None:
        checked_steps(self.steps)

    def fit(self, data: Predictions | None = None) -> Rounded:
        """The map; the data play no part."""
        if data is not None:
            of_two_classes(data, "Rounding")
        return Rounded(recipe="Rounding", settings={"steps": int(self.steps)}, steps=int(self.steps))


# ---- Jitter: the score perturbed a little, which makes its calibration error certifiable ----

GRID = 1 << CELL_BITS  # the certificate's own grid


@dataclass(frozen=True, kw_only=True)
class Jittered(Calibrator):
    """The map that perturbs a score by a draw that depends on the row's identity and the seed alone."""

    bandwidth: float
    seed: int

    def check(self) -> None:
        checked_bandwidth(self.bandwidth, GRID)
        checked_seed(self.seed)

    def values(self, rows: Batch) -> Floats:
        salt = Spec(label="y", score="p", seed=self.seed).salt("repair.Jitter")
        cells = fixed_point(rows.p) >> (SCORE_BITS - CELL_BITS)
        shown: Floats = jitter(GRID, self.bandwidth).draw(cells, uniforms(rows.ids, salt))
        return shown


@recipe(calibrators=[Jittered], words="jitter", simplicity=20)
class Jitter(Tunable):
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

    def fit(self, data: Predictions | None = None) -> Jittered:
        """The map; the data play no part."""
        if data is not None:
            of_two_classes(data, "Jitter")
        settings = {"bandwidth": float(self.bandwidth), "seed": int(self.seed)}
        return Jittered(recipe="Jitter", settings=settings, bandwidth=float(self.bandwidth), seed=int(self.seed))
