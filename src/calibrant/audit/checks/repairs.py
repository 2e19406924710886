"""What would repair it: repairs fitted on one half of the rows held and judged on the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calibrant.audit.checks.missing_labels import shown as shown_with_lost
from calibrant.audit.context import DRAWS, NO_TESTS, AuditContext, Check, CheckResult, Cost
from calibrant.audit.lost import LostRows
from calibrant.audit.record import NO_CURVE
from calibrant.audit.rounding import Sums, stepped
from calibrant.data.predictions import Predictions
from calibrant.repair.catalogue import tried_by_default
from calibrant.results import Curve

if TYPE_CHECKING:
    from calibrant.audit.before_after import Populations
    from calibrant.repair.judge.rows import Judging
    from calibrant.repair.judge.verdict import Comparison

REPAIR = "repair"
NO_ROWS = "no rows were kept: a repair is fitted on rows, which an audit keeps where there are covariates"
TEST_ROWS = 20_000  # people tested, of those judged
COLUMNS = (
    "probability",
    "recipe",
    "order",
    "scale",
    "error_low",
    "error_high",
    "brier",
    "log_loss",
    "auroc",
    "accuracy",
    "impossible",
    "local_p",
    "largest_gap",
    "largest_gap_group",
    "groups_better",
    "groups_worse",
    "groups_shown_better",
    "groups_shown_worse",
)
CHANGES = ("brier", "log_loss")  # whose paired changes are reported, with their ordinary intervals
SETTINGS = (
    "how",
    "basis",
    "rows_fit",
    "rows_judged",
    "events_judged",
    "groups",
    "alpha",
    "steps",
    "tests",
    "test_rows",
    "draws",
    "left_out",
)

OF_WEIGHTS = ("way", "pilots")  # that a record holds where rows were lost


def repairs(context: AuditContext, so_far: Mapping[str, Curve]) -> CheckResult:
    """Compare the repairs that `calibrant repair` tries; hold the same people against the limit before and after."""
    if context.classes is not None:
        return CheckResult()  # they are judged for all classes together
    rows = context.needs_rows(NO_TESTS if context.sketch.spec.codings else NO_ROWS)
    from calibrant.audit.before_after import Populations
    from calibrant.repair.judge.evaluate import audited_variables
    from calibrant.repair.judge.evidence import TESTS

    context.announce("comparing repairs")
    context.forget()
    by_variable, left_out = audited_variables(rows, None, context.seed)
    people = Populations(context, context.needs_sample(), so_far.get("subgroups", NO_CURVE))
    how = _judging(context, rows)
    judging = replace(
        how,
        repairs=tried_by_default(by_variable, "unless quick"),
        variables=by_variable,
        left_out=left_out,
        tests=tuple(TESTS),
        people=people.of,
        reported=people.ends,
        exact=context.everyone.exact,
    )
    return _compared(context, so_far, rows, judging, people)


def repairs_of_lost(context: AuditContext, so_far: Mapping[str, Curve]) -> CheckResult:
    """The same where rows were lost before the horizon: by weights of censoring, recipes of the score alone."""
    rows = LostRows.of(context).by_weights().data
    context.needs_tests()
    from calibrant.audit.before_after import PopulationsOfLost
    from calibrant.views.unlabelled import without_outcomes

    context.announce("comparing repairs")
    groups = tuple((one.name, one.members) for one in shown_with_lost(context))
    people = PopulationsOfLost(context, without_outcomes(rows), NO_CURVE, groups=groups)
    how = replace(_judging(context, rows), repairs=tried_by_default((), "unless quick"))
    return _compared(context, so_far, rows, replace(how, people=people.of, reported=people.ends), people)


def _judging(context: AuditContext, rows: Predictions) -> Judging:
    """What both ask of the judge."""
    from calibrant.repair.judge.rows import Judging

    plan, kept = context.judging, () if rows.covariates is None else tuple(rows.covariates.schema.names)
    by = tuple(v.name for v in context.sketch.spec.variables if v.name in kept)
    return Judging(
        by=by,
        bins={v.name: v.edges for v in context.sketch.spec.variables if v.name in by and v.edges},
        smallest_group=context.mask,
        thresholds=plan.thresholds,
        steps=plan.steps,
        alpha=plan.alpha,
        test_rows=TEST_ROWS,
        draws=DRAWS,
        every=False,
        seed=context.seed,
        limit=plan.limit,
        judge=plan.judge,
        target=plan.target or "rows",
    )


def _compared(
    context: AuditContext, so_far: Mapping[str, Curve], rows: Predictions, judging: Judging, people: Populations
) -> CheckResult:
    from calibrant.repair.judge.evaluate import compared

    result = compared(rows, judging)
    ranked = so_far["ranking"].columns.get("variable", ()) if "ranking" in so_far else ()
    groups = {f"{name[0][0]} = {name[0][1]}" for name, *_ in context.shown_groups if len(name) == 1}
    curves = {"repairs": _shortened(result, ranked, groups, context.sums)}
    if result.fixed.columns:
        curves["fixed"] = people.shown(result.fixed)
    if result.decisions.columns:
        curves["repair_decisions"] = result.decisions
    return CheckResult(status="measured", curves=curves)


def _shortened(result: Comparison, ranked: Sequence[str], groups: Collection[str], sums: type[Sums]) -> Curve:
    """The table with what the verdicts say; groups are counted, not listed."""
    columns = {name: result.table.columns[name] for name in COLUMNS}
    audited = result.settings["variables"]
    by_variable = next((v for v in ranked if v in audited), "")
    vece = dict(
        zip(
            zip(result.variables.columns["probability"], result.variables.columns["variable"], strict=True),
            result.variables.columns["vece"],
            strict=True,
        )
    )
    columns["error_by_variable"] = tuple(vece.get((name, by_variable)) for name in columns["probability"])
    columns |= _reported(columns, result, groups, sums.step)
    columns |= _changes(columns["probability"], result)
    settings = {
        **{k: result.settings[k] for k in SETTINGS},
        **{k: result.settings[k] for k in OF_WEIGHTS if k in result.settings},
        "recommended": result.recommended,
        "by_variable": by_variable,
        "verdicts": {name: _plain(v) for name, v in result.verdicts.items()},
    }
    return Curve(method="repair.evaluate", columns=columns, settings=settings)


def _reported(
    columns: Mapping[str, tuple[Any, ...]], result: Comparison, groups: Collection[str], step: Callable[[float], float]
) -> dict[str, tuple[Any, ...]]:
    """What is reported of some of the people, a group or the ranges of a variable, in steps of their number.

    Of groups only those that are shown under the same name.
    """
    c = result.groups.columns
    people = {f"{v} = {level}": n for v, level, n in zip(c["variable"], c["level"], c["rows"], strict=True)}
    largest_gap = [
        (stepped(gap, step(people[group])), group) if group in groups else (None, None)
        for gap, group in zip(columns["largest_gap"], columns["largest_gap_group"], strict=True)
    ]
    everyone = step(result.settings["rows_judged"])
    rises: dict[str, tuple[float, str]] = {}
    for name, v, level, rise in zip(*(c[k] for k in ("probability", "variable", "level", "change")), strict=True):
        if f"{v} = {level}" in groups and (name not in rises or rise > rises[name][0]):
            rises[name] = stepped(rise, step(people[f"{v} = {level}"])), f"{v} = {level}"
    largest = [rises.get(name, (None, None)) for name in columns["probability"]]
    return {
        "largest_rise": tuple(rise for rise, _ in largest),
        "largest_rise_group": tuple(group for _, group in largest),
        "largest_gap": tuple(gap for gap, _ in largest_gap),
        "largest_gap_group": tuple(group for _, group in largest_gap),
        "error_by_variable": tuple(None if v is None else stepped(v, everyone) for v in columns["error_by_variable"]),
    }


def _changes(names: Sequence[str], result: Comparison) -> dict[str, tuple[float | None, ...]]:
    """The paired change of each proper score of everyone, with its ordinary interval; None as audited."""
    c = result.differences.columns
    at = {pair: i for i, pair in enumerate(zip(c["probability"], c["measure"], strict=True))}
    kinds = {"": "change", "_low": "interval_low", "_high": "interval_high"}
    return {
        f"{measure}_change{end}": tuple(c[kind][at[name, measure]] if (name, measure) in at else None for name in names)
        for measure in CHANGES
        for end, kind in kinds.items()
    }


def _plain(verdict: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: tuple(i for i in verdict[k] if not i.startswith("group:")) for k in ("better", "worse")}
    return {**kept, "line": verdict["line"]}


TAKES = Cost(tests=True, flat=0.7, group=0.02, covariate=0.05, each=0.003)
DECLARED = (Check(code=REPAIR, order=110, make=repairs, make_of_lost=repairs_of_lost, cost=TAKES),)
