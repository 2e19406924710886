"""Two models whose difference in Brier score is a formula, for `calibrant.compare`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.decisions.comparison import ModelComparison

FINE = (np.arange(100_000) + 0.5) / 100_000
MARGIN = 0.005


def row_attributes(design: Any, cluster: np.ndarray, weight: np.ndarray, group: np.ndarray) -> dict[str, Any]:
    """Return what `compare` takes beside models and outcomes, as the size, weights and groups of a design say."""
    more: dict[str, Any] = {}
    if design.size > 1:
        more["cluster"] = cluster
    if design.weighted:
        more["weights"] = weight
    if design.groups > 1:
        more |= {"covariates": {"g": np.char.add("g", group.astype(str))}, "by": "g"}
    return more


@dataclass(frozen=True)
class Design:
    """Rows with rate `eta(u)` for uniform u; the reference says it, the other says it moved by `moved(u)`.

    Moved by h, the Brier score of a calibrated score rises by the mean of h^2.

    Parameters
    ----------
    n : int
    eta, moved : callables
    groups : int
    size : int
        Rows of a unit, which are copies of its first.
    weighted : bool
        Weights from 0.5 to 1.5.
    swapped : bool
        The moved model is the reference, so that the other is better.
    """

    n: int
    eta: Callable[[np.ndarray], np.ndarray]
    moved: Callable[[np.ndarray], np.ndarray]
    groups: int = 1
    size: int = 1
    weighted: bool = False
    swapped: bool = False

    @property
    def truth(self) -> float:
        """How much worse the other is than the reference, in every group."""
        gap = float((self.moved(FINE) ** 2).mean())
        return -gap if self.swapped else gap

    def drawn(self, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray, dict[str, np.ndarray]]:
        """Return models, outcomes, and what else `compare` takes."""
        rng = np.random.default_rng([seed, 11])
        m = self.n // self.size
        u = rng.uniform(size=m)
        y = rng.uniform(size=m) < self.eta(u)
        group, weight = rng.integers(0, self.groups, m), rng.uniform(0.5, 1.5, m)
        u, y, group, cluster, weight = (np.repeat(v, self.size) for v in (u, y, group, np.arange(m), weight))
        calm, off = self.eta(u), self.eta(u) + self.moved(u)
        models = {"old": off, "new": calm} if self.swapped else {"old": calm, "new": off}
        more = row_attributes(self, cluster, weight, group)
        return models, y.astype(int), more

    def error_shown(self, seed: int, margin: float | None, **how: object) -> ModelComparison:
        """Compare on one data set."""
        models, y, more = self.drawn(seed)
        return cal.compare(models, y, margin=margin, seed=seed, **more, **how)

    def wrong(self, seed: int, margin: float | None, **how: object) -> bool:
        """Tell whether any verdict on one data set is wrong, or an interval misses."""
        found, truth = self.error_shown(seed, margin, **how), self.truth
        return any(
            not d.interval.low <= truth <= d.interval.high
            or (d.verdict == "better" and truth >= 0.0)
            or (d.verdict == "no worse" and truth > d.margin)
            or (d.verdict == "worse within margin" and not 0.0 < truth <= d.margin)
            or (d.verdict == "worse" and truth <= d.margin)
            for d in found.differences
        ) or any(bound < truth for bound in found.worst.values())


def skewed(u: np.ndarray) -> np.ndarray:
    return 0.1 + 0.6 * u**2


def flat(v: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda u: np.full_like(u, v)


EDGE = float(np.sqrt(MARGIN))
JUST_OVER = float(np.sqrt(MARGIN * (1.0 + 1e-9)))
DESIGNS = {
    "identical": Design(1000, skewed, flat(0.0)),
    "worse by just over the margin": Design(1000, skewed, flat(JUST_OVER)),
    "the same, few rows": Design(60, skewed, flat(JUST_OVER)),
    "the same, many rows": Design(20_000, skewed, flat(JUST_OVER)),
    "better by a little": Design(2000, skewed, flat(EDGE), swapped=True),
    "rare events": Design(3000, flat(0.004), flat(JUST_OVER)),
    "one row in two hundred is far off": Design(400, flat(0.02), lambda u: np.where(u < 0.005, 0.98, 0.0)),
    "thirty groups": Design(6000, skewed, flat(JUST_OVER), groups=30),
    "units of five alike": Design(3000, skewed, flat(JUST_OVER), size=5),
    "units in groups": Design(4000, skewed, flat(JUST_OVER), size=4, groups=4),
    "weights": Design(1500, skewed, flat(JUST_OVER), weighted=True),
}
