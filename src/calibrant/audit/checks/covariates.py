"""What follows the covariates: the ranking and curves, the local test and maps, the strong test and its diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from calibrant.audit.pooling import guarded, pool_levels, unshown_levels
from calibrant.audit.question import DRAWS, NO_TESTS, Answer, Case, Cost, NotRun, Question
from calibrant.audit.record import Check
from calibrant.audit.rounding import (
    Told,
    told_along,
    told_line,
    told_outcome,
    told_peak,
    told_rules,
    told_sets,
    told_sizes,
    told_worst,
)
from calibrant.data.predictions import Predictions
from calibrant.errors import NotComputable
from calibrant.results import Curve

CURVES = 8  # variables with a curve of their own, the first of the ranking: what a reader takes in
POINTS = 41  # of a map: about one a pixel of ten
LOCAL = "local-calibration"
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
STRONG = "strong-calibration"


# ---- which variables does the error follow? ----


def ranking(case: Case, _: Mapping[str, Curve]) -> Answer:
    """Rank the covariates, and draw the first.

    Where the sketch holds every row, the rows are read: outcomes can then be simulated for each. Variables are ranked
    with the levels that they have, as by `rank_variables` itself; where levels are drawn, small ones are pooled.
    """
    from calibrant.diagnose.rank_variables import RANGES, rank_variables

    case.needs_covariates()
    ranked = rank_variables(case.fullest, alpha=case.judging.alpha, draws=DRAWS, seed=case.seed)
    first = ranked.columns.get("variable", ())[:CURVES]
    curves = {f"variable_curve/{name}": _curve(case, name) for name in first}
    told = ranked.columns.get("variable", ())[:RANGES]
    hidden = {name: unshown_levels(case.fullest, name, case.mask) for name in told}
    made = {name: curve for name, curve in curves.items() if curve is not None}
    return Answer(
        checks=(Check(code="variables", status="measured"),),
        curves={"ranking": _masked(ranked, hidden, case.mask), **made},
    )


def _masked(ranking: Curve, hidden: Mapping[str, tuple[str, ...] | None], mask: int) -> Curve:
    """Return the ranking without worst bins of fewer people than may be shown, or that leave fewer to all others.

    Worst bins are reported of the variables of `hidden` alone.
    """
    c, n = ranking.columns, ranking.settings.get("n", 0)
    keys = [k for k in c if k.startswith("worst")]
    if not keys:
        return ranking
    keep = [
        name in hidden
        and rows >= mask
        and not 0 < n - rows < mask
        and (levels := hidden[name]) is not None
        and worst not in levels
        for name, worst, rows in zip(c["variable"], c["worst"], c["worst_rows"], strict=True)
    ]
    told = [told_worst({k: c[k][i] for k in keys}) if kept else dict.fromkeys(keys) for i, kept in enumerate(keep)]
    worst = {k: tuple(line[k] for line in told) for k in keys}
    return Curve(method=ranking.method, columns={**c, **told_sizes(c, n), **worst}, settings=ranking.settings)


def _curve(case: Case, name: str) -> Curve | None:
    """Return the curve along a variable without the levels of few people; None where it cannot be drawn or shown."""
    from calibrant.diagnose.variable_curve import variable_curve

    data = case.fullest_pooled
    if isinstance(data, Predictions) and (data.covariates is None or name not in data.covariates.schema.names):
        return None  # pooled away
    if (hidden := unshown_levels(data, name, case.mask)) is None:
        return None
    try:
        curve = variable_curve(data, name, alpha=case.judging.alpha, draws=DRAWS, seed=case.seed)
    except NotComputable:  # the ranking has a line for it
        return None
    labels, s = curve.columns["label"], curve.settings
    keep = [i for i, label in enumerate(labels) if label not in hidden] if hidden else list(range(len(labels)))
    if not keep or (hidden and s["worst_label"] in hidden):
        return None
    columns = {k: tuple(v[i] for i in keep) for k, v in curve.columns.items()}
    settings = {**s, "masked": s["masked"] + len(labels) - len(keep)}
    return told_along(Curve(method=curve.method, columns=columns, settings=settings), case.whole.n)


# ---- is error left among people with the same score? ----


def local(case: Case, _: Mapping[str, Curve]) -> Answer:
    """Test for error that follows any covariate, and map it along each group variable."""
    case.needs_covariates()
    case.needs_tests()
    if "local" not in case.whole.parts and case.screen is None and not case.whole.by_units:
        raise NotRun(NO_TESTS)
    from calibrant.detect.local_calibration_test import local_calibration_test

    case.announce("testing for error that varies with covariates")
    outcome = local_calibration_test(case.tested, draws=DRAWS, seed=case.seed)
    check = Check(code=LOCAL, status="measured", outcome=told_outcome(guarded(outcome, "region_", case.mask)))
    return Answer(checks=(check,), curves=_maps(case))


def _maps(case: Case) -> dict[str, Curve]:
    """Return a map of each group variable that one can be drawn along."""
    if (rows := case.rows) is None:
        return {}
    case.announce("mapping the error")
    there = () if rows.covariates is None else rows.covariates.schema.names
    names = [n for n in dict.fromkeys(n for g in case.whole.spec.groupings for n in g) if n in there]
    made = {f"local_bias/{name}": _map(rows, name, case) for name in names[:MAPS]}
    return {name: curve for name, curve in made.items() if curve is not None}


def _map(rows: Predictions, name: str, case: Case) -> Curve | None:
    """Return the map without the points of few people, and the next smallest, so that none follows from a total."""
    from calibrant.diagnose.local_bias import local_bias

    try:
        whole = local_bias(rows, name, grid=POINTS, alpha=case.judging.alpha, draws=DRAWS, seed=case.seed)
    except NotComputable:
        return None
    shown = sorted(g[0] for g in pool_levels(whole.columns["people"], case.mask) if len(g) == 1)
    if not shown:
        return None
    columns = {k: tuple(whole.columns[k][i] for i in shown) for k in MAPPED}
    seen = set(columns["x"])  # a place that is not shown keeps its turn, and not its value
    axes = tuple({**a, "places": tuple(v if v in seen else None for v in a["places"])} for a in whole.settings["axes"])
    curve = Curve(method=whole.method, columns=columns, settings={**whole.settings, "axes": axes})
    if columns["people"] == columns["rows"]:
        sets = told_sets(curve, rows.n)
        people = tuple(map(int, sets.columns["rows"]))
        return Curve(method=sets.method, columns={**sets.columns, "people": people}, settings=sets.settings)
    people = tuple(Told.of(n, 0, g).rows for n, g in zip(columns["people"], columns["gap"], strict=True))
    line, of = told_line(curve), rows.n
    told = {"people": people, "share": tuple(n / of for n in people)}
    return Curve(method=line.method, columns={**line.columns, **told}, settings=line.settings)


# ---- is any mix of traits badly served? ----


def strong(case: Case, _: Mapping[str, Curve]) -> Answer:
    """Test for any badly served group among the rows held, and draw what was found."""
    case.needs_covariates()
    rows = case.needs_rows()
    outcome = told_outcome(guarded(case.adaptive, "peak_", case.mask))
    found = outcome.p_value <= case.judging.alpha
    check = Check(code=STRONG, status="measured", outcome=outcome)
    return Answer(checks=(check,), curves=_diagnosis(case.needs_held(), rows, case, found))


def _diagnosis(held: Predictions, rows: Predictions, case: Case, found: bool) -> dict[str, Curve]:
    """Draw what the test of the rows held says, by its own fits and draws.

    Rules name levels, so that they read rows with small levels pooled; the models behind them are still the test's.
    Which variables a finding needs is asked only where there is one: of nothing found it would be noise.
    """
    from calibrant import diagnose
    from calibrant.diagnose.subgroups import Asked, described
    from calibrant.search.detectors import Settings, question_of
    from calibrant.views.rules import columns_of

    how: dict[str, Any] = {"tolerance": case.judging.tolerance, "seed": case.seed}
    makers: dict[str, Callable[[], Curve]] = {
        "control_chart": lambda: diagnose.control_chart(held, **how),
        "subgroups": lambda: described(question_of(held, Settings(**how)), columns_of(rows, None), Asked()),
    }
    if found:
        makers["importance"] = lambda: diagnose.importance(held, **how)
    out: dict[str, Curve] = {}
    for name, make in makers.items():
        try:
            out[name] = make()
        except NotComputable:
            continue  # the outcome says what was found; its picture is left out
    if "control_chart" in out:
        out["control_chart"] = told_peak(out["control_chart"], case.mask)
    if "subgroups" in out:
        out["subgroups"] = told_rules(out["subgroups"], rows.n, case.mask)
    return out


DECLARED = (
    Question(
        code="variables", order=80, make=ranking, step="ranking variables", cost=Cost(covariate=0.08, each=0.0024)
    ),
    Question(code=LOCAL, order=90, make=local, cost=Cost(tests=True, held=0.003), gate=True),
    Question(
        code=STRONG,
        order=100,
        make=strong,
        cost=Cost(tests=True, flat=0.25, held=0.0025, each=0.0005),
        gate=True,
    ),
)
