"""What would make the probabilities right: maps of the score and of covariates, and the judge of them.

The names are imported here, at once, so that each is always the class or function and never the module of the same
name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibrant.repair.augmented import AugmentedBeta, AugmentedLogistic
from calibrant.repair.bbq import BBQ
from calibrant.repair.beta import Beta
from calibrant.repair.boosting import Trees
from calibrant.repair.compare import compare
from calibrant.repair.comparison import Comparison
from calibrant.repair.dirichlet import Dirichlet
from calibrant.repair.fitted import FittedMap
from calibrant.repair.groups import Groups
from calibrant.repair.histogram import Histogram
from calibrant.repair.isotonic import Isotonic
from calibrant.repair.jitter import Jitter
from calibrant.repair.local_bias import LocalBias
from calibrant.repair.multicalibrator import Multicalibrator
from calibrant.repair.platt import Platt
from calibrant.repair.proportional_multicalibrator import ProportionalMulticalibrator
from calibrant.repair.rounding import Rounding
from calibrant.repair.scaling_binning import ScalingBinning
from calibrant.repair.temperature import Temperature
from calibrant.repair.variable_tree import VariableTree

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
