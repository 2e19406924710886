"""Tests whether probabilities are calibrated, each with a null whose error rate is stated."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule, where

if TYPE_CHECKING:
    from calibrant.detect.classical import cumulative_test as cumulative_test
    from calibrant.detect.classical import hosmer_lemeshow_test as hosmer_lemeshow_test
    from calibrant.detect.classical import spiegelhalter_test as spiegelhalter_test
    from calibrant.detect.jeffreys import jeffreys_test as jeffreys_test
    from calibrant.detect.kernel_calibration_test import kernel_calibration_test as kernel_calibration_test
    from calibrant.detect.kernel_calibration_test import kernel_tuning as kernel_tuning
    from calibrant.detect.local_calibration_test import local_calibration_test as local_calibration_test
    from calibrant.detect.recalibration import cox_test as cox_test
    from calibrant.detect.recalibration import score_test as score_test
    from calibrant.detect.rows_needed import rows_needed as rows_needed
    from calibrant.detect.rows_needed import smallest_error as smallest_error
    from calibrant.detect.strong_calibration_test import strong_calibration_test as strong_calibration_test
    from calibrant.detect.subgroup_tests import scan_test as scan_test
    from calibrant.detect.subgroup_tests import subgroup_test as subgroup_test

_WHERE = where(
    {
        "calibrant.detect.classical": "cumulative_test hosmer_lemeshow_test spiegelhalter_test",
        "calibrant.detect.jeffreys": "jeffreys_test",
        "calibrant.detect.kernel_calibration_test": "kernel_calibration_test kernel_tuning",
        "calibrant.detect.local_calibration_test": "local_calibration_test",
        "calibrant.detect.recalibration": "cox_test score_test",
        "calibrant.detect.rows_needed": "rows_needed smallest_error",
        "calibrant.detect.strong_calibration_test": "strong_calibration_test",
        "calibrant.detect.subgroup_tests": "scan_test subgroup_test",
    }
)
__all__ = sorted(_WHERE)

sys.modules[__name__].__class__ = LazyModule
