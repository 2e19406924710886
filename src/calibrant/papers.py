"""What papers print, as they print it: their own tests, certificates and bands, for comparison with ours."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule, where

if TYPE_CHECKING:
    from calibrant.apps.papers.adaptive_tests import adaptive_chi_square_test as adaptive_chi_square_test
    from calibrant.apps.papers.adaptive_tests import adaptive_score_cusum_test as adaptive_score_cusum_test
    from calibrant.apps.papers.adaptive_tests import adaptive_score_test as adaptive_score_test
    from calibrant.apps.papers.adaptive_tests import multicalibration_score_test as multicalibration_score_test
    from calibrant.apps.papers.calibration_function import calibration_function as calibration_function
    from calibrant.apps.papers.certificates import published_kernel as published_kernel
    from calibrant.apps.papers.certificates import published_lipschitz as published_lipschitz
    from calibrant.apps.papers.certificates import published_total_variation as published_total_variation
    from calibrant.apps.papers.local_test import published_local_bias as published_local_bias
    from calibrant.apps.papers.local_test import published_local_test as published_local_test
    from calibrant.apps.papers.perturbed import Perturbed as Perturbed
    from calibrant.apps.papers.perturbed import perturb as perturb
    from calibrant.apps.papers.variable_error import published_variable_curve as published_variable_curve
    from calibrant.apps.papers.variable_error import published_variable_table as published_variable_table
    from calibrant.apps.papers.variable_error import reliability_diagram as reliability_diagram
    from calibrant.certify.classes import jittered_classes as jittered_classes
    from calibrant.detect.classical import hosmer_lemeshow_test as hosmer_lemeshow_test
    from calibrant.detect.recalibration import score_test as score_test
    from calibrant.diagnose.strong_diagnosis import control_chart as control_chart
    from calibrant.diagnose.strong_diagnosis import importance as importance
    from calibrant.measure.inferred import inferred_gap as inferred_gap
    from calibrant.measure.inferred import inferred_mean as inferred_mean

_WHERE = where(
    {  # those of other folders are what the papers print, and tests or measures of ours as well
        "calibrant.apps.papers.adaptive_tests": (
            "adaptive_chi_square_test adaptive_score_cusum_test adaptive_score_test multicalibration_score_test"
        ),
        "calibrant.apps.papers.calibration_function": "calibration_function",
        "calibrant.apps.papers.certificates": "published_kernel published_lipschitz published_total_variation",
        "calibrant.apps.papers.local_test": "published_local_bias published_local_test",
        "calibrant.apps.papers.perturbed": "Perturbed perturb",
        "calibrant.apps.papers.variable_error": "published_variable_curve published_variable_table reliability_diagram",
        "calibrant.certify.classes": "jittered_classes",
        "calibrant.detect.classical": "hosmer_lemeshow_test",
        "calibrant.detect.recalibration": "score_test",
        "calibrant.diagnose.strong_diagnosis": "control_chart importance",
        "calibrant.measure.inferred": "inferred_gap inferred_mean",
    }
)
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
