"""What follows the covariates: the ranking, the curves, the local test and its maps, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from calibrant.audit.checks import DRAWS, MASK, Plan
from calibrant.audit.pooling import pool_levels, pooled_rows
from calibrant.audit.record import Check
from calibrant.data.predictions import Predictions
from calibrant.data.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Curve, Outcome

CURVES = 8  # variables with a curve of their own, the first of the ranking
POINTS = 41
MAPS = 12  # group variables with a map of their own
MAPPED = (
    "x",
    "label",
    "people",
    "share",
    "gap",
    "low",
    "high",
    "predicted",
    "observed",
    "rows",
    "p_adjusted",
)
LOCAL = "local-calibration"
NONE_GIVEN = "no covariates were given: add columns that describe the people"
QUICK = "left out by --quick"
NO_TESTS = "the sketch was made without what tests need: add --tests when sketching"


@dataclass(frozen=True)
class Followed:
    """What the covariates say about the error."""

    ranking: Curve
    curves: Mapping[str, Curve] = field(default_factory=dict)
    maps: Mapping[str, Curve] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()


def rows_held(whole: Sketch) -> Predictions | None:
    """Return the rows that a sketch for tests holds, small levels pooled; None without."""
    held = whole.parts.get("sample")
    return None if held is None else pooled_rows(held.predictions(whole.name), MASK)


def follow(
    whole: Sketch, rows: Predictions | None, plan: Plan, quick: bool, announce: Callable[[str], None]
) -> Followed:
    """Rank the covariates, draw the first, and test whether error follows any of them.

    Where the sketch holds every row, the rows are read: outcomes can then be simulated for each. Small levels are
    pooled first, so that nothing shown is about fewer people than may be shown.
    """
    read: Any = rows if rows is not None and rows.n == whole.n else whole
    announce("ranking variables")
    ranking, ranked = _ranking(whole, read, plan)
    first = ranking.columns.get("variable", ())[:CURVES]
    hidden = {name: unshown_levels(read, name) for name in first}
    ranking = _masked(ranking, hidden)
    curves = _each(first, lambda name: _curve(read, name, plan, hidden[name]))
    announce("testing for error that follows covariates")
    tested = _local(whole, plan, quick)
    maps = {}
    if rows is not None and tested.status == "measured":
        announce("mapping the error")
        maps = _each(_shown(whole, rows)[:MAPS], lambda name: _map(rows, name, plan))
    return Followed(ranking, curves, maps, (ranked, tested))


def _shown(whole: Sketch, rows: Predictions) -> list[str]:
    """Return the group variables that a map can be drawn along."""
    there = () if rows.covariates is None else rows.covariates.schema.names
    return [name for name in dict.fromkeys(n for g in whole.spec.groupings for n in g) if name in there]


def _each(names: Iterable[str], make: Callable[[str], Curve | None]) -> dict[str, Curve]:
    """Make a curve of each variable that allows one; the ranking has a line for the others."""
    out = {}
    for name in names:
        try:
            curve = make(name)
        except NotComputable:
            continue
        if curve is not None:
            out[name] = curve
    return out


def _ranking(whole: Sketch, read: Any, plan: Plan) -> tuple[Curve, Check]:
    from calibrant.diagnose.rank_variables import METHOD, rank_variables

    empty = Curve(method=METHOD, columns={})
    if not whole.spec.codings:
        return empty, Check(code="variables", status="not-run", reason=NONE_GIVEN)
    try:
        ranking = rank_variables(read, alpha=plan.alpha, draws=DRAWS, seed=plan.seed)
    except NotComputable as e:
        return empty, Check(code="variables", status="not-applicable", reason=e.reason)
    return ranking, Check(code="variables", status="measured")


def unshown_levels(read: Any, name: str) -> tuple[str, ...] | None:
    """Return the levels that are not shown, so that none of few people follows from the others; None for all.

    A number of many values has a smooth curve, and no levels.
    """
    from calibrant.diagnose.panels import FEW
    from calibrant.views.along import strata_of

    strata = strata_of(read, name)
    if strata.ordered and strata.there > FEW:
        return ()
    groups = pool_levels([int(n) for n in strata.rows], MASK)
    shown = {group[0] for group in groups if len(group) == 1}
    return tuple(t for i, t in enumerate(strata.titles()) if i not in shown) if groups else None


def _masked(ranking: Curve, hidden: Mapping[str, tuple[str, ...] | None]) -> Curve:
    """Return the ranking without the worst bins of fewer people than may be shown, or that leave fewer to all others."""
    c, n = ranking.columns, ranking.settings.get("n", 0)
    keys = [k for k in c if k.startswith("worst")]
    if not keys:
        return ranking
    keep = [
        rows >= MASK and not 0 < n - rows < MASK and worst not in (hidden.get(name) or ())
        for name, worst, rows in zip(c["variable"], c["worst"], c["worst_rows"], strict=True)
    ]
    masked = {k: tuple(v if kept else None for v, kept in zip(c[k], keep, strict=True)) for k in keys}
    return Curve(method=ranking.method, columns={**c, **masked}, settings=ranking.settings)


def _curve(read: Any, name: str, plan: Plan, hidden: tuple[str, ...] | None) -> Curve | None:
    from calibrant.diagnose.variable_curve import variable_curve

    if hidden is None:
        return None
    curve = variable_curve(read, name, grid=POINTS, alpha=plan.alpha, draws=DRAWS, seed=plan.seed)
    labels, s = curve.columns["label"], curve.settings
    keep = [i for i, label in enumerate(labels) if label not in hidden] if hidden else list(range(len(labels)))
    if not keep or (hidden and s["worst_label"] in hidden):
        return None
    columns = {k: tuple(v[i] for i in keep) for k, v in curve.columns.items()}
    return Curve(method=curve.method, columns=columns, settings={**s, "masked": s["masked"] + len(labels) - len(keep)})


def _local(whole: Sketch, plan: Plan, quick: bool) -> Check:
    from calibrant.detect.local_calibration_test import local_calibration_test

    if not whole.spec.codings:
        return Check(code=LOCAL, status="not-run", reason=NONE_GIVEN)
    if quick or "local" not in whole.parts:
        return Check(code=LOCAL, status="not-run", reason=QUICK if quick else NO_TESTS)
    try:
        outcome = local_calibration_test(whole, draws=DRAWS, seed=plan.seed)
    except NotComputable as e:
        return Check(code=LOCAL, status="not-applicable", reason=e.reason)
    return Check(code=LOCAL, status="measured", outcome=guarded(outcome, "region_"))


def guarded(outcome: Outcome, about: str) -> Outcome:
    """Return a test's outcome without the parts about a set of fewer people than may be shown, or of all but few."""
    rows, of = outcome.parts.get(f"{about}rows"), outcome.parts.get("rows_tested", outcome.settings.get("n", 0))
    if rows is None or (rows >= MASK and not 0 < of - rows < MASK):
        return outcome
    return replace(outcome, parts={k: v for k, v in outcome.parts.items() if not k.startswith(about)})


def _map(rows: Predictions, name: str, plan: Plan) -> Curve | None:
    """Return the map without the points of few people, and the next smallest, so that none follows from a total."""
    from calibrant.diagnose.local_bias import local_bias

    whole = local_bias(rows, name, grid=POINTS, alpha=plan.alpha, draws=DRAWS, seed=plan.seed)
    shown = sorted(g[0] for g in pool_levels(whole.columns["people"], MASK) if len(g) == 1)
    if not shown:
        return None
    columns = {k: tuple(whole.columns[k][i] for i in shown) for k in MAPPED}
    return Curve(method=whole.method, columns=columns, settings=whole.settings)
