"""Estimates of how far probabilities are off, and of what they are worth, with honest large-sample intervals.

The functions are imported here, at once, so that `measure.ece` is always the function and never the module of the
same name, whichever is imported first.
"""

from __future__ import annotations

import sys

from calibrant.decisions.net_benefit import net_benefit, regret
from calibrant.lazy_module import PublicModule
from calibrant.measure.by_group import by_group
from calibrant.measure.by_horizon import integrated_calibration_index
from calibrant.measure.classes import classwise_ece, ranked_probability_score
from calibrant.measure.ece import ece, max_calibration_error, smooth_ece
from calibrant.measure.inferred import inferred_gap, inferred_mean
from calibrant.measure.klce import klce
from calibrant.measure.rows_needed import rows_needed
from calibrant.measure.scorers import scorer
from calibrant.measure.scores import auroc, brier, calibration_intercept, calibration_slope, log_loss, observed_expected
from calibrant.measure.vece import vece

__all__ = [
    "auroc",
    "brier",
    "by_group",
    "calibration_intercept",
    "calibration_slope",
    "classwise_ece",
    "ece",
    "inferred_gap",
    "inferred_mean",
    "integrated_calibration_index",
    "klce",
    "log_loss",
    "max_calibration_error",
    "net_benefit",
    "observed_expected",
    "ranked_probability_score",
    "regret",
    "rows_needed",
    "scorer",
    "smooth_ece",
    "vece",
]
sys.modules[__name__].__class__ = PublicModule


def __dir__() -> list[str]:
    return __all__
