"""Estimates of how far probabilities are off, and of what they are worth, with honest large-sample intervals.

The functions are imported here, at once, so that `measure.ece` is always the function and never the module of the
same name, whichever is imported first.
"""

from __future__ import annotations

from calibrant.measure.auroc import auroc
from calibrant.measure.by_group import by_group
from calibrant.measure.ece import ece
from calibrant.measure.inferred_gap import inferred_gap
from calibrant.measure.inferred_mean import inferred_mean
from calibrant.measure.max_calibration_error import max_calibration_error
from calibrant.measure.observed_expected import observed_expected
from calibrant.measure.recalibration import calibration_intercept, calibration_slope
from calibrant.measure.scores import brier, log_loss
from calibrant.measure.smooth_ece import smooth_ece
from calibrant.measure.vece import vece

__all__ = [
    "auroc",
    "brier",
    "by_group",
    "calibration_intercept",
    "calibration_slope",
    "ece",
    "inferred_gap",
    "inferred_mean",
    "log_loss",
    "max_calibration_error",
    "observed_expected",
    "smooth_ece",
    "vece",
]
