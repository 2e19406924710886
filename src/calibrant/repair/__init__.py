"""What would make the probabilities right: maps of the score and of covariates, and the judge of them.

The names are imported here, at once, so that each is always the class or function and never the module of the same
name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibrant.repair.covariates.augmented import AugmentedBeta, AugmentedLogistic
from calibrant.repair.covariates.boosting import Trees
from calibrant.repair.covariates.local_bias import LocalBias
from calibrant.repair.covariates.multicalibrator import Groups, Multicalibrator, ProportionalMulticalibrator
from calibrant.repair.covariates.variable_tree import VariableTree
from calibrant.repair.fitted import FittedMap
from calibrant.repair.judge.compare import compare
from calibrant.repair.judge.verdict import Comparison
from calibrant.repair.score.bbq import BBQ
from calibrant.repair.score.beta import Beta
from calibrant.repair.score.binning import Histogram, ScalingBinning
from calibrant.repair.score.dirichlet import Dirichlet
from calibrant.repair.score.display import Jitter, Rounding
from calibrant.repair.score.isotonic import Isotonic
from calibrant.repair.score.platt import Platt, Temperature

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
