"""Calibration in a test suite or a pipeline: an assertion, test results, a summary for a pull request."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule

if TYPE_CHECKING:
    from calibrant.apps.trackers.summaries import summary as summary
    from calibrant.report.pipelines import assert_within as assert_within
    from calibrant.report.pipelines import junit as junit

_WHERE = {
    "assert_within": "calibrant.report.pipelines",
    "junit": "calibrant.report.pipelines",
    "summary": "calibrant.apps.trackers.summaries",
}
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
