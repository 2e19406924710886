"""Is any mix of traits badly served? The strong calibration test and, beside it, what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from calibrant.audit.checks import MASK, Plan
from calibrant.audit.covariates import NO_TESTS, NONE_GIVEN, QUICK, guarded
from calibrant.audit.record import Check
from calibrant.data.predictions import Predictions
from calibrant.data.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Curve

STRONG = "strong-calibration"
DIAGNOSED = ("control_chart", "importance", "subgroups")
MORE: dict[str, dict[str, Any]] = {"importance": {"folds": 2}}  # two fits instead of five, for the time of an audit


def search(
    whole: Sketch, rows: Predictions | None, plan: Plan, quick: bool, announce: Callable[[str], None]
) -> tuple[Check, Mapping[str, Curve]]:
    """Test for any badly served group among the rows held; the diagnosis by name, without columns where there is none."""
    from calibrant.detect.strong_calibration_test import strong_calibration_test

    if not whole.spec.codings:
        return Check(code=STRONG, status="not-run", reason=NONE_GIVEN), _diagnosis(None, plan)
    if quick or rows is None:
        return Check(code=STRONG, status="not-run", reason=QUICK if quick else NO_TESTS), _diagnosis(None, plan)
    announce("searching for badly served groups")
    try:
        outcome = strong_calibration_test(rows, tolerance=plan.tolerance, seed=plan.seed)
    except NotComputable as e:
        return Check(code=STRONG, status="not-applicable", reason=e.reason), _diagnosis(None, plan)
    return Check(code=STRONG, status="measured", outcome=guarded(outcome, "peak_")), _diagnosis(rows, plan)


def _diagnosis(rows: Predictions | None, plan: Plan) -> dict[str, Curve]:
    out = {name: Curve(method=f"diagnose.{name}", columns={}) for name in DIAGNOSED}
    if rows is None:
        return out
    from calibrant import diagnose

    for name in DIAGNOSED:
        try:
            out[name] = getattr(diagnose, name)(rows, tolerance=plan.tolerance, seed=plan.seed, **MORE.get(name, {}))
        except NotComputable:
            continue  # the outcome says what was found; its picture is left out
    chart = out["control_chart"]
    if 0 < chart.settings.get("peak_rows", 0) < MASK:
        rates = {"peak_observed": None, "peak_predicted": None}
        out["control_chart"] = replace(chart, settings={**chart.settings, **rates})
    return out
