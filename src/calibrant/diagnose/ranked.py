"""One variable's bins, its errors along them, and what its statistic is measured by; a line of the ranking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.stats.resample import total_interval
from calibrant.stats.strata import Strata, beyond_shift

SIZE_DRAWS = 1000  # of the label noise that debiased sizes are free of
STREAM = 0x4A9C
TIE = 1e-6  # sizes whose relative difference is smaller are equal
MEAN = float(np.sqrt(2.0 / np.pi))  # of the absolute value of a standard normal


@dataclass(frozen=True)
class Line:
    """A variable in bins, or a pair in cells.

    Parameters
    ----------
    name : str
    kind : {"number", "date", "category", "pair"}
    bins : Strata
    collapsed : int
        Bins asked for that do not exist, for ties.
    cell : int32 array of shape (n,) or None
    """

    name: str
    kind: str
    bins: Strata
    collapsed: int
    cell: Any

    @property
    def share(self) -> Any:
        """Share of the weight in each bin."""
        return self.bins.weight / self.bins.total

    @property
    def left(self) -> Any:
        """Residual sums over the total weight, without the overall shift, shape (bins,)."""
        return beyond_shift(self.bins.residual / self.bins.total, self.share)

    def scale(self, variance: Any) -> tuple[float, float]:
        """Return mean and spread, about, of the size beyond the shift if residual sums are noise of this variance."""
        noise, share = variance / self.bins.total**2, self.share
        var = np.maximum(noise * (1.0 - 2.0 * share) + share**2 * noise.sum(), 0.0)
        return MEAN * float(np.sqrt(var).sum()), float(np.sqrt((1.0 - MEAN**2) * var.sum()))

    def statistic(self, left: Any, variance: Any) -> Any:
        """Return the size of residuals beyond the shift, over the last axis, standardised by `scale`."""
        middle, spread = self.scale(variance)
        return (np.abs(left).sum(axis=-1) - middle) / max(spread, 1e-300)

    def sizes(self, seed: int, alpha: float) -> dict[str, float]:
        """Return the size beyond the shift and the whole one, each freed of label noise and plain."""
        binned = self.bins.as_bins()
        noise = binned.gap_noise(SIZE_DRAWS, np.random.default_rng([seed, STREAM]))
        out = {}
        for name, gap, drawn in (
            ("beyond_shift", beyond_shift(binned.gap, binned.share), beyond_shift(noise, binned.share)),
            ("vece", binned.gap, noise),
        ):
            found = total_interval(gap, drawn, lambda g: np.abs(g).sum(axis=-1), alpha)
            out[name], out[f"{name}_plain"] = float(found.middle), float(found.plug_in)
        return out

    def worst(self) -> dict[str, Any]:
        """Return the bin that adds most to the size beyond the shift, in the user's units; of equal ones, the first.

        Two bins always add equally much, and rounding must not choose between them.
        """
        size = np.abs(self.left)
        at = int(np.flatnonzero(size >= (1.0 - TIE) * size.max())[0])
        weight = float(self.bins.weight[at])
        observed, says = float(self.bins.cases[at]) / weight, float(self.bins.score[at]) / weight
        return {
            "worst": self.bins.titles()[at],
            "worst_predicted": says,
            "worst_observed": observed,
            "worst_gap": observed - says,
            "worst_beyond_shift": observed - says - self.bins.shift,
            "worst_rows": int(self.bins.rows[at]),
        }
