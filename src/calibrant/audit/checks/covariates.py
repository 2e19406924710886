"""What follows the covariates: the ranking and curves, the local test and maps, the strong test and its diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from calibrant.audit.context import DRAWS, NO_TESTS, AuditContext, Check, CheckResult, Cost, NotRun
from calibrant.audit.pooling import guarded, order_of, pool_levels, unshown_levels
from calibrant.audit.rounding import (
    few,
    reported_by_variable,
    reported_line,
    reported_outcome,
    reported_peak,
    reported_rules,
    reported_sets,
    reported_sizes,
    reported_worst,
)
from calibrant.data.predictions import Predictions
from calibrant.errors import NotComputable
from calibrant.results import Curve

CURVES = 8  # variables with a curve of their own, the first of the ranking: what a reader takes in
POINTS = 41  # of a map: about one a pixel of ten
KERNEL = "kernel-error"
LOCAL = "local-calibration"
MAPS = 12  # group variables with a map of their own
MAPPED = ("x", "label", "people", "share", "gap", "low", "high", "predicted", "observed", "rows", "p_adjusted")
STRONG = "strong-calibration"


# ---- which variables does the error follow? ----


def ranking(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Rank the covariates, and draw the first.

    Where the sketch holds every row, the rows are read: outcomes can then be simulated for each. Small levels are
    pooled: a variable's size adds up its levels' gaps, and less those that are shown it would be that of the small one.
    """
    from calibrant.diagnose.rank_variables import RANGES, rank_variables

    context.needs_covariates()
    ranked = rank_variables(context.ranked, alpha=context.judging.alpha, draws=DRAWS, seed=context.seed)
    first = ranked.columns.get("variable", ())[:CURVES]
    curves = {f"variable_curve/{name}": _curve(context, name) for name in first}
    reported = ranked.columns.get("variable", ())[:RANGES]
    hidden = {name: unshown_levels(context.fullest, name, context.mask) for name in reported}
    made = {name: curve for name, curve in curves.items() if curve is not None}
    return CheckResult(status="measured", curves={"ranking": _masked(ranked, hidden, context), **made})


def _masked(ranking: Curve, hidden: Mapping[str, tuple[str, ...] | None], context: AuditContext) -> Curve:
    """The ranking without worst bins of fewer people than may be shown, or that leave fewer to all others.

    Worst bins are reported of the variables of `hidden` alone.
    """
    c, settings = ranking.columns, dict(ranking.settings)
    n, keys = settings.get("n", 0), [k for k in c if k.startswith("worst")]
    people = settings.pop("people", None) or tuple((rows, n - rows) for rows in c.get("worst_rows", ()))
    if not keys:
        return ranking
    keep = [
        name in hidden and not few(sides, context.mask) and (levels := hidden[name]) is not None and worst not in levels
        for name, worst, sides in zip(c["variable"], c["worst"], people, strict=True)
    ]
    # a level is reported as the group that it may be, a range as what was searched
    sums = [context.sums if kind == "category" else context.searched for kind in c["kind"]]
    reported = [
        reported_worst({k: c[k][i] for k in keys}, sums[i]) if kept else dict.fromkeys(keys)
        for i, kept in enumerate(keep)
    ]
    worst = {k: tuple(line[k] for line in reported) for k in keys}
    return Curve(method=ranking.method, columns={**c, **reported_sizes(c, n, context.sums), **worst}, settings=settings)


def _curve(context: AuditContext, name: str) -> Curve | None:
    """The curve along a variable without the levels of few people; None where it cannot be drawn or shown."""
    from calibrant.diagnose.variable_curve import variable_curve

    data = context.fullest_pooled
    if isinstance(data, Predictions) and (data.covariates is None or name not in data.covariates.schema.names):
        return None  # pooled away
    if (hidden := unshown_levels(data, name, context.mask)) is None:
        return None
    try:
        curve = variable_curve(data, name, alpha=context.judging.alpha, draws=DRAWS, seed=context.seed)
    except NotComputable:  # the ranking has a line for it
        return None
    labels, s = curve.columns["label"], curve.settings
    keep = [i for i, label in enumerate(labels) if label not in hidden] if hidden else list(range(len(labels)))
    if hidden and _is_binned(context, name):  # levels shown, and ranges that hold them, would tell those that are not
        return None
    if not keep or (hidden and s["worst_label"] in hidden):
        return None
    columns = {k: tuple(v[i] for i in keep) for k, v in curve.columns.items()}
    settings = {**s, "masked": s["masked"] + len(labels) - len(keep)}
    made = Curve(method=curve.method, columns=columns, settings=settings)
    return reported_by_variable(made, context.sketch.n, context.sums)


def _is_binned(context: AuditContext, name: str) -> bool:
    """Whether a variable's ranges are groups."""
    own = context.sketch.spec.by_name.get(name)
    return own is not None and own.kind != "category"


# ---- is error left among people with the same score? ----


def local(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Test for error that follows any covariate, and map it along each group variable."""
    _needs_sums(context)
    from calibrant.detect.local_calibration_test import local_calibration_test

    context.announce("testing for error that varies with covariates")
    outcome = local_calibration_test(context.tested, draws=DRAWS, seed=context.seed)
    reported = reported_outcome(guarded(outcome, "region_", context.mask), context.searched)
    return CheckResult(status="measured", outcome=reported, curves=_maps(context))


def _needs_sums(context: AuditContext) -> None:
    """Say that what reads sums along score and covariates is not run where there are none."""
    context.needs_covariates()
    context.needs_tests()
    if "local" not in context.sketch.parts and context.tested is context.sketch:
        raise NotRun(NO_TESTS)


def kernel_error(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Measure the squared kernel local calibration error of the sums that the local test reads.

    A sketch for tests holds them already, so that no row is read again; rows of clusters or of weights have no
    interval.
    """
    _needs_sums(context)
    from calibrant.measure.klce import klce

    result = klce(context.tested, alpha=context.judging.alpha, features="default", seed=context.seed)
    return CheckResult(status="measured", estimate=result, estimates={"klce": result})


def _maps(context: AuditContext) -> dict[str, Curve]:
    """A map of each group variable that one can be drawn along."""
    if (rows := context.rows) is None:
        return {}
    context.announce("mapping the error")
    there = () if rows.covariates is None else rows.covariates.schema.names
    names = [n for n in dict.fromkeys(n for g in context.sketch.spec.groupings for n in g) if n in there]
    made = {f"local_bias/{name}": _map(rows, name, context) for name in names[:MAPS]}
    return {name: curve for name, curve in made.items() if curve is not None}


def _map(rows: Predictions, name: str, context: AuditContext) -> Curve | None:
    """The map without the points of few people, and the next smallest, so that none follows from a total."""
    from calibrant.diagnose.local_bias import local_bias

    try:
        whole = local_bias(rows, name, grid=POINTS, alpha=context.judging.alpha, draws=DRAWS, seed=context.seed)
    except NotComputable:
        return None
    c, settings = whole.columns, dict(whole.settings)
    people = settings.pop("people", c["people"])
    order = order_of(name, [None if x is None else str(x) for x in c["x"]])
    shown = sorted(g[0] for g in pool_levels(people, context.mask, order) if len(g) == 1)
    if not shown or (len(shown) < len(c["x"]) and c["people"] == c["rows"] and _is_binned(context, name)):
        return None
    columns = {k: tuple(whole.columns[k][i] for i in shown) for k in MAPPED}
    seen = set(columns["x"])  # a place that is not shown keeps its turn, and not its value
    axes = tuple({**a, "places": tuple(v if v in seen else None for v in a["places"])} for a in settings["axes"])
    curve = Curve(method=whole.method, columns=columns, settings={**settings, "axes": axes})
    if columns["people"] == columns["rows"]:
        sets = reported_sets(curve, rows.n, context.sums)
        people = tuple(map(int, sets.columns["rows"]))
        return Curve(method=sets.method, columns={**sets.columns, "people": people}, settings=sets.settings)
    people = tuple(context.sums.of(n, 0, g).rows for n, g in zip(columns["people"], columns["gap"], strict=True))
    line, of = reported_line(curve), rows.n
    reported = {"people": people, "share": tuple(n / of for n in people)}
    return Curve(method=line.method, columns={**line.columns, **reported}, settings=line.settings)


# ---- is any mix of attributes badly served? ----


def strong(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Test for any badly served group among the rows held, and draw what was found."""
    context.needs_covariates()
    rows = context.needs_rows()
    outcome = reported_outcome(guarded(context.adaptive, "peak_", context.mask), context.searched)
    shown = outcome.p_value <= context.judging.alpha
    curves = _diagnosis(context.needs_sample(), rows, context, shown)
    return CheckResult(status="measured", outcome=outcome, curves=curves)


def _diagnosis(sample_rows: Predictions, rows: Predictions, context: AuditContext, shown: bool) -> dict[str, Curve]:
    """Draw what the test of the rows held says, by its own fits and draws.

    Rules name levels, so that they read rows with small levels pooled; the models behind them are still the test's.
    Which variables a finding needs is asked only where there is one: of nothing found it would be noise.
    """
    from calibrant import diagnose
    from calibrant.diagnose.searched_subgroups import SubgroupOptions, described
    from calibrant.search.detectors import Settings, detector_inputs
    from calibrant.views.rules import columns_of

    how: dict[str, Any] = {"tolerance": context.judging.tolerance, "seed": context.seed}
    makers: dict[str, Callable[[], Curve]] = {
        "control_chart": lambda: diagnose.control_chart(sample_rows, **how),
        "searched_subgroups": lambda: described(
            detector_inputs(sample_rows, Settings(**how)), columns_of(rows, None), SubgroupOptions()
        ),
    }
    if shown:
        makers["importance"] = lambda: diagnose.importance(sample_rows, **how)
    out: dict[str, Curve] = {}
    for name, make in makers.items():
        try:
            out[name] = make()
        except NotComputable:
            continue  # the outcome says what was found; its picture is left out
    if "control_chart" in out:
        out["control_chart"] = reported_peak(out["control_chart"], context.mask, context.searched)
    if "searched_subgroups" in out:
        out["searched_subgroups"] = reported_rules(out["searched_subgroups"], rows.n, context.mask, context.searched)
    return out


DECLARED = (
    Check(code="variables", order=80, make=ranking, step="ranking variables", cost=Cost(covariate=0.08, each=0.0024)),
    Check(code=LOCAL, order=90, make=local, cost=Cost(tests=True, sample_rows=0.003), gate=True),
    Check(code=KERNEL, order=95, make=kernel_error),
    Check(
        code=STRONG,
        order=100,
        make=strong,
        cost=Cost(tests=True, flat=0.25, sample_rows=0.0025, each=0.0005),
        gate=True,
    ),
)
