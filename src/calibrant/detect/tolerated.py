"""The tests of the score alone, with room for a tolerance: exact, by simulation at both edges of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.detect.strong_detectors import check_choice, check_share
from calibrant.detect.tested import Tested
from calibrant.errors import NotComputable
from calibrant.results import Outcome
from calibrant.stats.cusum import Alternative
from calibrant.stats.simulate import p_value
from calibrant.stats.tolerated import along_logit, group_squares, paired_totals

SIDES = ("two-sided", "greater", "less")


def leaves_room(t: Tested, tolerance: Any, alternative: Any) -> bool:
    """Check both arguments, and tell whether the test is another than that of exact calibration."""
    check_share("tolerance", tolerance)
    check_choice("alternative", alternative, SIDES)
    if tolerance == 0.0 and alternative == "two-sided":
        return False
    if not t.simulates:
        raise NotComputable("a tolerance, or one side alone, has no asymptotic law here: pass null='simulated'")
    return True


def grouped_within(t: Tested, groups: Any, tolerance: float, alternative: Alternative) -> tuple[float, float]:
    """Return the Hosmer-Lemeshow statistic beyond a tolerance, and its p-value."""
    q = t.q
    found = float(group_squares(q, groups, tolerance, alternative, (groups.observed, groups.observed)))
    totals = paired_totals(q, groups.first, tolerance, t.ids, t.draws, t.seed)
    return found, p_value(found, group_squares(q, groups, tolerance, alternative, totals))


def scored_within(t: Tested, x: Any, tolerance: float, alternative: Alternative) -> tuple[list[float], list[float]]:
    """Return the score statistics beyond a tolerance (whole, intercept, slope; one-sided: one), and their p-values."""
    pulls = along_logit(t.q, x, alternative)
    found = pulls.observed(t.q, tolerance)
    drawn = pulls.simulated(t.q, tolerance, t.ids, t.draws, t.seed)
    values = [float(found.sum()), *found.tolist()]
    columns = [drawn.sum(axis=1), *drawn.T]
    return values, [p_value(v, d) for v, d in zip(values, columns, strict=True)]


def within(outcome: Outcome, tolerance: float, alternative: Alternative) -> Outcome:
    """Say in an outcome what was tested, and with what tolerance; none of the outcomes is impossible beyond it."""
    t = f"{tolerance:g}"
    null, other = {
        "two-sided": (f"|E[Y | p] - p| <= {t} for every row", "the event rate is off the score somewhere"),
        "greater": (f"E[Y | p] - p <= {t} for every row", "the event rate is above the score somewhere"),
        "less": (f"p - E[Y | p] <= {t} for every row", "the event rate is below the score somewhere"),
    }[alternative]
    by = f" by more than {t}" if tolerance else ""
    settings = {**outcome.settings, "tolerance": float(tolerance), "alternative": alternative}
    return replace(outcome, null=null, alternative=other + by, settings=settings)


def contradicted(t: Tested, tolerance: float, alternative: Alternative) -> int:
    """Count outcomes that have probability zero under every rate within the tolerance."""
    q = t.q
    up = float(q.cases[np.minimum(q.p + tolerance, 1.0) <= 0.0].sum()) if alternative != "less" else 0.0
    other = q.times - q.cases
    down = float(other[np.maximum(q.p - tolerance, 0.0) >= 1.0].sum()) if alternative != "greater" else 0.0
    return int(up + down)
