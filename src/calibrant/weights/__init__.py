"""Weights that make the audited rows look like a named population; made without labels."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.faces import Face

if TYPE_CHECKING:
    from calibrant.weights.classifier import odds as odds
    from calibrant.weights.population import to as to
    from calibrant.weights.weighting import Weighting as Weighting

_WHERE = {
    "Weighting": "calibrant.weights.weighting",
    "odds": "calibrant.weights.classifier",
    "to": "calibrant.weights.population",
}
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = Face
