"""What would make the probabilities right: maps of the score and of covariates, and the judge of them.

The names are imported here, at once, so that each is always the class or function and never the module of the same
name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibrant.repair.fitted import FittedMap
from calibrant.repair.judge.compare import compare
from calibrant.repair.judge.verdict import Comparison
from calibrant.repair.maps.augmented import AugmentedBeta, AugmentedLogistic
from calibrant.repair.maps.binning import BBQ, Histogram, ScalingBinning
from calibrant.repair.maps.boosting import Trees
from calibrant.repair.maps.curves import Beta, Platt, Temperature
from calibrant.repair.maps.dirichlet import Dirichlet
from calibrant.repair.maps.display import Jitter, Rounding
from calibrant.repair.maps.isotonic import Isotonic
from calibrant.repair.maps.local_bias import LocalBias
from calibrant.repair.maps.multicalibrator import Groups, Multicalibrator, ProportionalMulticalibrator
from calibrant.repair.maps.variable_tree import VariableTree

if TYPE_CHECKING:
    from calibrant.repair import objectives as objectives
    from calibrant.repair.calibrated_classifier import CalibratedClassifier as CalibratedClassifier

__all__ = [
    "BBQ",
    "AugmentedBeta",
    "AugmentedLogistic",
    "Beta",
    "CalibratedClassifier",
    "Comparison",
    "Dirichlet",
    "FittedMap",
    "Groups",
    "Histogram",
    "Isotonic",
    "Jitter",
    "LocalBias",
    "Multicalibrator",
    "Platt",
    "ProportionalMulticalibrator",
    "Rounding",
    "ScalingBinning",
    "Temperature",
    "Trees",
    "VariableTree",
    "compare",
]


def __getattr__(name: str) -> Any:
    """Load what needs scikit-learn or PyTorch when it is first used."""
    if name == "CalibratedClassifier":
        return import_module("calibrant.repair.calibrated_classifier").CalibratedClassifier
    if name == "objectives":
        return import_module("calibrant.repair.objectives")
    raise AttributeError(f"module 'calibrant.repair' has no attribute {name!r}")
