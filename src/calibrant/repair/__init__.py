"""What would make the probabilities right: maps of the score and of covariates, and the judge of them.

Recipes are found by what their files declare (see `calibrant.repair.catalogue`); names load what they need when they
are first used.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from calibrant.lazy_module import lacking, synonym

if TYPE_CHECKING:  # for editors and type checkers; a recipe that is not listed works all the same
    from calibrant.repair import objectives as objectives
    from calibrant.repair.calibrated_classifier import CalibratedClassifier as CalibratedClassifier
    from calibrant.repair.calibrators.augmented import AugmentedBeta as AugmentedBeta
    from calibrant.repair.calibrators.augmented import AugmentedLogistic as AugmentedLogistic
    from calibrant.repair.calibrators.binning import BBQ as BBQ
    from calibrant.repair.calibrators.binning import Histogram as Histogram
    from calibrant.repair.calibrators.binning import Isotonic as Isotonic
    from calibrant.repair.calibrators.binning import ScalingBinning as ScalingBinning
    from calibrant.repair.calibrators.boosting import Trees as Trees
    from calibrant.repair.calibrators.curves import Beta as Beta
    from calibrant.repair.calibrators.curves import Platt as Platt
    from calibrant.repair.calibrators.curves import Temperature as Temperature
    from calibrant.repair.calibrators.dirichlet import Dirichlet as Dirichlet
    from calibrant.repair.calibrators.dirichlet import MatrixScaling as MatrixScaling
    from calibrant.repair.calibrators.dirichlet import VectorScaling as VectorScaling
    from calibrant.repair.calibrators.display import Jitter as Jitter
    from calibrant.repair.calibrators.display import Rounding as Rounding
    from calibrant.repair.calibrators.local_bias import LocalBias as LocalBias
    from calibrant.repair.calibrators.multicalibrator import Groups as Groups
    from calibrant.repair.calibrators.multicalibrator import Multicalibrator as Multicalibrator
    from calibrant.repair.calibrators.multicalibrator import ProportionalMulticalibrator as ProportionalMulticalibrator
    from calibrant.repair.calibrators.one_vs_rest import BetaOneVsRest as BetaOneVsRest
    from calibrant.repair.calibrators.one_vs_rest import IsotonicOneVsRest as IsotonicOneVsRest
    from calibrant.repair.calibrators.one_vs_rest import PlattOneVsRest as PlattOneVsRest
    from calibrant.repair.calibrators.variable_tree import VariableTree as VariableTree
    from calibrant.repair.catalogue import recipes as recipes
    from calibrant.repair.fitted import Calibrator as Calibrator
    from calibrant.repair.judge.evaluate import evaluate as evaluate
    from calibrant.repair.judge.verdict import Comparison as Comparison
    from calibrant.repair.recalibrator import Recalibrator as Recalibrator

_WHERE = {  # public names that are not recipes
    "CalibratedClassifier": "calibrant.repair.calibrated_classifier",
    "Comparison": "calibrant.repair.judge.verdict",
    "Calibrator": "calibrant.repair.fitted",
    "Recalibrator": "calibrant.repair.recalibrator",
    "Groups": "calibrant.repair.calibrators.multicalibrator",
    "Trees": "calibrant.repair.calibrators.boosting",
    "evaluate": "calibrant.repair.judge.evaluate",
    "recipes": "calibrant.repair.catalogue",
}


def __getattr__(name: str) -> Any:
    if name == "objectives":  # needs PyTorch
        return import_module("calibrant.repair.objectives")
    if name in _WHERE:
        value = getattr(import_module(_WHERE[name]), name)
    elif (name.startswith("_") and name != "__all__") or find_spec(f"{__name__}.{name}") is not None:
        # a file of the folder is imported by its name: nothing need be read to tell that it is no recipe
        raise lacking(__name__, name, ())
    else:
        recipes = import_module("calibrant.repair.catalogue").recipes()
        if name == "__all__":
            return sorted([*_WHERE, *recipes])
        own = sorted([*_WHERE, *recipes])
        if ours := synonym(name, own):
            return __getattr__(ours)
        if name not in recipes:
            raise lacking(__name__, name, own)
        value = recipes[name].recipe
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__getattr__("__all__"))
