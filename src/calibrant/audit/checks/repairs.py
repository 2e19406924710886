"""What would repair it: repairs fitted on one half of the rows held and judged on the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from calibrant.audit.question import DRAWS, NO_TESTS, Answer, Case, Cost, Question
from calibrant.audit.record import NO_CURVE, Check
from calibrant.audit.rounding import step, stepped
from calibrant.repair.catalogue import tried_by_default
from calibrant.results import Curve

if TYPE_CHECKING:
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
SETTINGS = (
    "how",
    "rows_fit",
    "rows_judged",
    "cases_judged",
    "groups",
    "alpha",
    "levels",
    "tests",
    "test_rows",
    "draws",
    "left_out",
)


def repairs(case: Case, so_far: Mapping[str, Curve]) -> Answer:
    """Compare the repairs that `calibrant repair` tries; hold the same people against the limit before and after."""
    rows, plan = case.needs_rows(NO_TESTS if case.whole.spec.codings else NO_ROWS), case.judging
    from calibrant.audit.before_after import Populations
    from calibrant.repair.judge.compare import Asked, Judging, audited_variables, compared
    from calibrant.repair.judge.evidence import TESTS
    from calibrant.repair.judge.fixed import Against

    case.announce("comparing repairs")
    case.forget()
    held = () if rows.covariates is None else tuple(rows.covariates.schema.names)
    by = tuple(v.name for v in case.whole.spec.variables if v.name in held)
    along, left_out = audited_variables(rows, None, case.seed)
    people = Populations(case, case.needs_held(), so_far.get("pockets", NO_CURVE))
    asked = Asked(
        repairs=tried_by_default(along, quick=False),
        variables=along,
        by=by,
        bins={v.name: v.edges for v in case.whole.spec.variables if v.name in by and v.edges},
        left_out=left_out,
        people=people.of,
        thresholds=plan.thresholds,
    )
    judging = Judging(
        levels=plan.levels,
        alpha=plan.alpha,
        tests=tuple(TESTS),
        test_rows=TEST_ROWS,
        draws=DRAWS,
        certify_groups=False,
        smallest_group=case.mask,
        seed=case.seed,
        against=Against(
            limit=plan.limit,
            judge=plan.judge,
            levels=plan.levels,
            alpha=plan.alpha,
            seed=case.seed,
            told=people.ends,
            exact=case.everyone.exact,
        ),
        every=False,
    )
    found = compared(rows, asked, judging)
    ranked = so_far["ranking"].columns.get("variable", ()) if "ranking" in so_far else ()
    curves = {"repairs": _shortened(found, ranked)}
    if found.fixed.columns:
        curves["fixed"] = people.shown(found.fixed)
    if found.decisions.columns:
        curves["repair_decisions"] = found.decisions
    return Answer(checks=(Check(code=REPAIR, status="measured"),), curves=curves)


def _shortened(found: Comparison, ranked: Sequence[str]) -> Curve:
    """Return the table with what the verdicts say; groups are counted, not listed."""
    columns = {name: found.table.columns[name] for name in COLUMNS}
    audited = found.settings["variables"]
    along = next((v for v in ranked if v in audited), "")
    vece = dict(
        zip(
            zip(found.variables.columns["probability"], found.variables.columns["variable"], strict=True),
            found.variables.columns["vece"],
            strict=True,
        )
    )
    columns["error_along"] = tuple(vece.get((name, along)) for name in columns["probability"])
    columns |= _told(columns, found)
    settings = {
        **{k: found.settings[k] for k in SETTINGS},
        "recommended": found.recommended,
        "along": along,
        "verdicts": {name: _plain(v) for name, v in found.verdicts.items()},
    }
    return Curve(method="repair.compare", columns=columns, settings=settings)


def _told(columns: Mapping[str, tuple[Any, ...]], found: Comparison) -> dict[str, tuple[Any, ...]]:
    """Return what is reported of some of the people, a group or the ranges of a variable, in steps of their number."""
    c = found.groups.columns
    people = {f"{v} = {level}": n for v, level, n in zip(c["variable"], c["level"], c["rows"], strict=True)}
    gaps = zip(columns["largest_gap"], columns["largest_gap_group"], strict=True)
    everyone = step(found.settings["rows_judged"])
    return {
        "largest_gap": tuple(None if gap is None else stepped(gap, step(people[group])) for gap, group in gaps),
        "error_along": tuple(None if v is None else stepped(v, everyone) for v in columns["error_along"]),
    }


def _plain(verdict: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: tuple(i for i in verdict[k] if not i.startswith("group:")) for k in ("better", "worse")}
    return {**kept, "line": verdict["line"]}


TAKES = Cost(tests=True, flat=0.7, group=0.02, covariate=0.05, each=0.003)
DECLARED = (Question(code=REPAIR, order=110, make=repairs, cost=TAKES),)
