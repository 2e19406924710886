"""Weights that make the audited rows look like a named population; made without labels."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule

if TYPE_CHECKING:
    from calibrant.apps.population.classifier import odds as odds
    from calibrant.apps.population.population import to as to
    from calibrant.apps.population.weighting import Weighting as Weighting

_WHERE = {
    "Weighting": "calibrant.apps.population.weighting",
    "odds": "calibrant.apps.population.classifier",
    "to": "calibrant.apps.population.population",
}
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
