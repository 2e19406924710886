"""Calibration in a test suite or a pipeline: an assertion, test results, a summary for a pull request."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.faces import Face

if TYPE_CHECKING:
    from calibrant.report.pipelines.assertion import assert_met as assert_met
    from calibrant.report.pipelines.junit import junit as junit
    from calibrant.report.pipelines.summary import summary as summary

_WHERE = {
    "assert_met": "calibrant.report.pipelines.assertion",
    "junit": "calibrant.report.pipelines.junit",
    "summary": "calibrant.report.pipelines.summary",
}
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = Face
