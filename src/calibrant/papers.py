"""What papers print, as they print it: their own tests, certificates and bands, for comparison with ours."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule

if TYPE_CHECKING:
    from calibrant.apps.papers.adaptive_tests import adaptive_chi_square_test as adaptive_chi_square_test
    from calibrant.apps.papers.adaptive_tests import adaptive_score_test as adaptive_score_test
    from calibrant.apps.papers.adaptive_tests import multicalibration_score_test as multicalibration_score_test
    from calibrant.apps.papers.calibration_function import calibration_function as calibration_function
    from calibrant.apps.papers.certificates import published_kernel as published_kernel
    from calibrant.apps.papers.certificates import published_lipschitz as published_lipschitz
    from calibrant.apps.papers.certificates import published_total_variation as published_total_variation
    from calibrant.apps.papers.local_test import published_local_test as published_local_test

_WHERE = {
    "adaptive_chi_square_test": "calibrant.apps.papers.adaptive_tests",
    "adaptive_score_test": "calibrant.apps.papers.adaptive_tests",
    "calibration_function": "calibrant.apps.papers.calibration_function",
    "multicalibration_score_test": "calibrant.apps.papers.adaptive_tests",
    "published_kernel": "calibrant.apps.papers.certificates",
    "published_lipschitz": "calibrant.apps.papers.certificates",
    "published_local_test": "calibrant.apps.papers.local_test",
    "published_total_variation": "calibrant.apps.papers.certificates",
}
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
