"""Tests whether probabilities are calibrated, each with a null whose error rate is stated.

The functions are imported here, at once, so that a function always wins over a module of the same name.
"""

from __future__ import annotations

from calibrant.detect.classical import cumulative_test, hosmer_lemeshow_test, spiegelhalter_test
from calibrant.detect.jeffreys import jeffreys_test
from calibrant.detect.kernel_calibration_test import kernel_calibration_test
from calibrant.detect.local_calibration_test import local_calibration_test
from calibrant.detect.recalibration import cox_test, score_test
from calibrant.detect.strong_calibration_test import strong_calibration_test
from calibrant.published.adaptive_tests import (
    adaptive_chi_square_test,
    adaptive_score_test,
    multicalibration_score_test,
)

__all__ = [
    "adaptive_chi_square_test",
    "adaptive_score_test",
    "cox_test",
    "cumulative_test",
    "hosmer_lemeshow_test",
    "jeffreys_test",
    "kernel_calibration_test",
    "local_calibration_test",
    "multicalibration_score_test",
    "score_test",
    "spiegelhalter_test",
    "strong_calibration_test",
]


def __dir__() -> list[str]:
    return __all__
