"""What probabilities in place of labels would say about the cases: a table over the covariates."""

from __future__ import annotations

from typing import Any

from calibrant.audit.checks import MASK, Plan
from calibrant.audit.covariates import NONE_GIVEN, unshown_levels
from calibrant.data.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Curve, Estimate

METHOD = "measure.inferred_mean"
MOST_LEVELS = 10  # of a category that is described
COLUMNS = ("variable", "level", "inferred", "observed", "bias", "low", "high")
FEW = f"means among the cases need {MASK} cases and {MASK} others"


def inference(whole: Sketch, plan: Plan) -> Curve:
    """Return the bias of every covariate's mean, or levels' shares, among the cases; the least likely by chance first.

    The limits of all lines hold together with probability ``1 - alpha``, asymptotically (Bonferroni). Nothing is said of
    levels of few people, or where a number of few values would tell of one by subtraction. Without columns where nothing
    can be said: settings hold the reason.
    """
    names = [c.name for c in whole.spec.codings if c.kind != "constant"]
    if not names:
        return Curve(method=METHOD, columns={}, settings={"reason": NONE_GIVEN})
    if min(whole.cases, whole.n - whole.cases) < MASK:
        return Curve(method=METHOD, columns={}, settings={"reason": FEW})
    asked = [(q, level) for name in names for q, level in _lines(whole, name)]
    found = [e for q, level in asked if (e := _estimate(q, level, plan.alpha / len(asked))) is not None]
    lines = sorted(map(_line, found), key=_chance)
    columns = {k: tuple(line[i] for line in lines) for i, k in enumerate(COLUMNS)} if lines else {}
    dates = tuple(sorted({q.name for q, _ in asked if q.date}))
    settings = {"alpha": plan.alpha, "simultaneous": "Bonferroni", "lines": len(asked), "dates": dates}
    if not lines:
        settings["reason"] = "no covariate can be described"
    return Curve(method=METHOD, columns=columns, settings=settings)


def _lines(whole: Sketch, name: str) -> list[tuple[Any, str | None]]:
    """Return what is said of one covariate: its mean, or the share at each level that may be shown.

    Of two levels the rarer one alone, for the other mirrors it; of missing values nothing.
    """
    from calibrant.measure.inferring import inferring
    from calibrant.stats.strata import MISSING

    try:
        q, unshown = inferring(whole, name), unshown_levels(whole, name)
    except NotComputable:
        return []
    if q.x is not None:
        return [(q, None)] if unshown == () else []
    named = [v for v in q.labels if not (q.missing and v == q.labels[-1]) and v != MISSING]
    if unshown is None or len(named) > MOST_LEVELS:
        return []
    shown = [v for v in named if v not in unshown]
    if len(named) == 2 and len(shown) == 2 and not q.missing:
        shown = [min(shown, key=lambda v: float(q.sums.rows[q.at(v)].sum()))]
    return [(q, v) for v in shown]


def _estimate(q: Any, level: str | None, alpha: float) -> Estimate | None:
    from calibrant.measure.inferred_mean import described

    try:
        return described(q, level, "bias", alpha)
    except NotComputable:
        return None


def _line(e: Estimate) -> tuple[Any, ...]:
    s = e.settings
    ends = (e.interval.low, e.interval.high)
    return s["variable"], s["level"], s["inferred"], s["observed"], e.value, *ends


def _chance(line: tuple[Any, ...]) -> float:
    """Return minus the bias in widths of its range, and so, for one number of cases, in standard errors."""
    bias, low, high = line[-3:]
    return -abs(bias) / (high - low) if high > low else 0.0
