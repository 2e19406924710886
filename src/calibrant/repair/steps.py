"""Maps that are level within bins of the score, and where to cut the bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.errors import BadInput
from calibrant.repair.fitted import Batch, FittedMap, Order
from calibrant.repair.soundness import rising, shares, sound

Spacing = Literal["mass", "width"]


@dataclass(frozen=True, kw_only=True)
class Steps(FittedMap):
    """The map that shows ``shown[j]`` to scores in bin j; `edges` are inner, and a bin holds its lower one."""

    edges: tuple[float, ...]
    shown: tuple[float, ...]

    @property
    def order(self) -> Order:
        """Kept up to ties if what is shown never falls."""
        return "kept up to ties" if bool((np.diff(self.shown) >= 0).all()) else "may change"

    def check(self) -> None:
        """Raise `ValueError` if the steps are not in order, or not probabilities."""
        sound(len(self.shown) == len(self.edges) + 1, "there must be one edge less than values shown")
        sound(rising(self.edges), "edges must rise")
        sound(shares(self.shown), "shown must lie within 0 and 1")

    def values(self, rows: Batch) -> Any:
        """Return the repaired scores."""
        return np.array(self.shown)[np.searchsorted(np.array(self.edges), rows.p, side="right")]


def checked_bins(bins: Any) -> int:
    """Return the number of bins, or refuse it."""
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or not 1 <= bins <= 10_000:
        raise BadInput(f"bins={bins!r}: pass a whole number from 1 to 10,000, such as 10")
    return int(bins)


def checked_spacing(spacing: Any) -> Spacing:
    """Return how bins are cut, or refuse it."""
    if spacing not in ("mass", "width"):
        raise BadInput(f"spacing={spacing!r}: choose 'mass' (equally many rows a bin) or 'width'")
    return "mass" if spacing == "mass" else "width"


def mass_cuts(heft: Any, bins: int) -> Any:
    """Return which distinct scores start a bin, if bins are to weigh the same; `heft` is the running weight of the scores.

    A score is never split, so that there may be fewer bins.
    """
    wanted = heft[-1] * np.arange(1, bins) / bins
    at = np.searchsorted(heft, wanted, side="left") + 1
    return np.unique(at[at < len(heft)])


def edges_before(scores: Any, at: Any) -> Any:
    """Return edges half-way between the scores at `at` and those before them."""
    middle = 0.5 * (scores[at - 1] + scores[at])
    return np.where(middle > scores[at - 1], middle, scores[at])


def width_edges(bins: int) -> Any:
    """Return the inner edges of bins of equal width."""
    return np.arange(1, bins) / bins
