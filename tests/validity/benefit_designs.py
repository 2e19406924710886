"""Two models whose difference in net benefit at a threshold is a formula, for `calibrant.compare`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import calibrant as cal
from calibrant.decisions.comparison import ModelComparison
from validity.compare_designs import row_attributes

MARGIN = 0.005


@dataclass(frozen=True)
class Design:
    """Rows of kinds, on each of which the models decide alike or not; within a kind all have one rate.

    The reference acts on a kind where it says the threshold or more, the other model likewise. A kind of share s and
    rate r on which only the reference acts makes the other lose ``s (r - (1 - r) t / (1 - t))``.

    Parameters
    ----------
    n : int
    thresholds : tuple of float
    share, rate, old, new : tuple of float
        Of each kind: its share of the rows, its rate, and what the models say.
    groups : int
    size : int
        Rows of a unit, which are copies of its first.
    weighted : bool
        Weights from 0.5 to 1.5.
    """

    n: int
    thresholds: tuple[float, ...]
    share: tuple[float, ...]
    rate: tuple[float, ...]
    old: tuple[float, ...]
    new: tuple[float, ...]
    groups: int = 1
    size: int = 1
    weighted: bool = False

    def truth(self, t: float) -> float:
        """How much worse the other model is than the reference, in every group."""
        share, rate, old, new = map(np.array, (self.share, self.rate, self.old, self.new))
        gain = rate - (1.0 - rate) * t / (1.0 - t)
        return float(share @ (gain * ((old >= t).astype(float) - (new >= t))))

    def drawn(self, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray, dict[str, np.ndarray]]:
        """Return models, outcomes, and what else `compare` takes."""
        rng = np.random.default_rng([seed, 31])
        m = self.n // self.size
        kind = rng.choice(len(self.share), m, p=self.share)
        y = rng.uniform(size=m) < np.array(self.rate)[kind]
        group, weight = rng.integers(0, self.groups, m), rng.uniform(0.5, 1.5, m)
        kind, y, group, cluster, weight = (np.repeat(v, self.size) for v in (kind, y, group, np.arange(m), weight))
        more = row_attributes(self, cluster, weight, group)
        return {"old": np.array(self.old)[kind], "new": np.array(self.new)[kind]}, y.astype(int), more

    def error_shown(self, seed: int, margin: float, **how: object) -> ModelComparison:
        """Compare on one data set."""
        models, y, more = self.drawn(seed)
        usual = {"measure": "net_benefit", "threshold": self.thresholds, "margin": margin, "seed": seed}
        return cal.compare(models, y, **(usual | more | how))

    def margin(self) -> float:
        """Just under the largest true loss, where that is less than the usual one: "no worse" is then wrong."""
        return min(MARGIN, max(0.0, *map(self.truth, self.thresholds))) * (1.0 - 1e-8)

    def wrong(self, seed: int, **how: object) -> bool:
        """Tell whether any verdict on one data set is wrong, or an interval misses."""
        margin = self.margin()
        found = self.error_shown(seed, margin, **how)
        for d in found.differences:
            truth = self.truth(d.threshold)
            stated = {"better": truth >= 0.0, "no worse": truth > margin, "worse": truth <= margin, "undecided": False}
            stated["worse within margin"] = not 0.0 < truth <= margin
            if stated[d.verdict] or not d.interval.low <= truth <= d.interval.high:
                return True
        return any(bound < max(map(self.truth, self.thresholds)) for bound in found.worst.values())

    def falsely_no_worse(self, seed: int, **how: object) -> bool:
        """Tell whether the other model is called better or no worse anywhere that it loses more than the margin."""
        margin = self.margin()
        return any(
            d.verdict in ("better", "no worse", "worse within margin") and self.truth(d.threshold) > margin
            for d in self.error_shown(seed, margin, **how).differences
        )


MIXED = {"share": (0.3, 0.1, 0.1, 0.5), "rate": (0.05, 0.25, 0.4, 0.6), "old": (0.1, 0.3, 0.3, 0.7)}
LOSES = {**MIXED, "new": (0.1, 0.1, 0.3, 0.7)}  # at 0.2 the second kind is not acted on any more
SLEEPS = {"share": (0.99, 0.01), "rate": (0.01, 0.7), "old": (0.0, 0.9), "new": (0.0, 0.0)}  # on one row in a hundred
AWAKE = {"share": (0.996, 0.004), "rate": (0.3, 0.05), "old": (0.0, 0.0), "new": (0.0, 1.0)}  # and acts there
DESIGNS = {
    "the same decisions": Design(1000, (0.2,), **{**MIXED, "new": (0.0, 0.4, 0.2, 1.0)}),
    "loses at the threshold": Design(1000, (0.2,), **LOSES),
    "the same, few rows": Design(60, (0.2,), **LOSES),
    "the same, many rows": Design(20_000, (0.2,), **LOSES),
    "gains and loses alike": Design(1500, (0.5,), (0.4, 0.3, 0.3), (0.2, 0.7, 0.7), (0.1, 0.9, 0.1), (0.1, 0.1, 0.9)),
    "rare events": Design(2000, (0.01,), (0.95, 0.05), (0.003, 0.02), (0.001, 0.02), (0.001, 0.005)),
    "one row in a hundred": Design(300, (0.3,), **SLEEPS),
    "threshold near 0": Design(800, (0.002,), **SLEEPS),
    "threshold near 1": Design(800, (0.98,), **AWAKE),
    "several thresholds": Design(1200, (0.15, 0.25, 0.35, 0.6), **{**MIXED, "new": (0.1, 0.2, 0.4, 0.5)}),
    "twenty groups": Design(6000, (0.2,), groups=20, **LOSES),
    "units of five alike": Design(3000, (0.2,), size=5, **LOSES),
    "units, groups and thresholds": Design(4000, (0.2, 0.35), size=4, groups=4, **LOSES),
    "weights": Design(1500, (0.2,), weighted=True, **LOSES),
}
