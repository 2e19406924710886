"""What would make the probabilities right: maps of the score and of covariates, and the judge of them.

The names are imported here, at once, so that each is always the class or function and never the module of the same name.
"""

from __future__ import annotations

from calibrant.repair.augmented import AugmentedBeta, AugmentedLogistic
from calibrant.repair.fitted import FittedMap
from calibrant.repair.platt import Platt

__all__ = [
    "AugmentedBeta",
    "AugmentedLogistic",
    "FittedMap",
    "Platt",
]
