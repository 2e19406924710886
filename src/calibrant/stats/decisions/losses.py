"""What a row loses under a score, if the outcome is 0 and if it is 1: the difference is what is compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]
HALF = 0.5  # from this score on a row is called a case


def squared(p: Floats) -> Ends:
    """The squared error."""
    return p**2, (1.0 - p) ** 2


def logarithmic(p: Floats, edge: float) -> Ends:
    """The logarithmic loss, scores kept `edge` from 0 and 1."""
    kept = np.clip(p, edge, 1.0 - edge)
    return -np.log1p(-kept), -np.log(kept)


def wrong(p: Floats) -> Ends:
    """Whether the row is called wrongly."""
    called = (p >= HALF).astype(np.float64)
    return called, 1.0 - called


def benefit_lost(p: Floats, threshold: float) -> Ends:
    """Return minus the row's part of the net benefit: acting on an event gains one, on another it costs the odds."""
    acted = (p >= threshold).astype(np.float64)
    return acted * odds(threshold), 0.0 - acted


def odds(threshold: float) -> float:
    """Return what acting on a non-event costs, in events acted on: such that acting at the threshold gains 0."""
    return threshold / (1.0 - threshold)
