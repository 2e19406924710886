"""What would repair it: repairs fitted on one half of the rows held and judged on the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from calibrant.audit.checks import Plan
from calibrant.audit.covariates import NO_TESTS, QUICK
from calibrant.audit.record import Check
from calibrant.data.predictions import Predictions
from calibrant.data.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Curve

REPAIR = "repair"
NO_ROWS = "no rows were kept: a repair is fitted on rows, which an audit keeps where there are covariates"
NONE = Curve(method="repair.compare", columns={})
COLUMNS = (
    "probability",
    "recipe",
    "order",
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


def weigh(
    whole: Sketch,
    rows: Predictions | None,
    ranked: Sequence[str],
    plan: Plan,
    quick: bool,
    announce: Callable[[str], None],
) -> tuple[Check, Curve]:
    """Compare repairs on held-out rows; the curve is without columns where there is nothing to compare.

    `ranked` are the covariates, the one that the error follows most first: the error along it is shown for each repair.
    """
    if quick or rows is None:
        reason = QUICK if quick else NO_TESTS if whole.spec.codings else NO_ROWS
        return Check(code=REPAIR, status="not-run", reason=reason), NONE
    from calibrant.repair.judge.compare import compare

    announce("comparing repairs")
    held = () if rows.covariates is None else tuple(rows.covariates.schema.names)
    by = tuple(v.name for v in whole.spec.variables if v.name in held)
    bins = {v.name: v.edges for v in whole.spec.variables if v.name in by and v.edges}
    try:
        found = compare(
            rows,
            by=by or None,
            bins=bins,
            levels=plan.levels,
            alpha=plan.alpha,
            tests=("local",),
            certify_groups=False,
            seed=plan.seed,
        )
    except NotComputable as e:
        return Check(code=REPAIR, status="not-applicable", reason=e.reason), NONE
    return Check(code=REPAIR, status="measured"), _shortened(found, ranked)


def _shortened(found: Any, ranked: Sequence[str]) -> Curve:
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
    c = found.groups.columns
    called = {f"{v}={level}": f"{v}: {level}" for v, level in zip(c["variable"], c["level"], strict=True)}
    columns["largest_gap_group"] = tuple(called.get(g, g) for g in columns["largest_gap_group"])
    columns["error_along"] = tuple(vece.get((name, along)) for name in columns["probability"])
    settings = {
        **{k: found.settings[k] for k in SETTINGS},
        "recommended": found.recommended,
        "along": along,
        "verdicts": {name: _plain(v) for name, v in found.verdicts.items()},
    }
    return replace(NONE, columns=columns, settings=settings)


def _plain(verdict: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: tuple(i for i in verdict[k] if not i.startswith("group:")) for k in ("better", "worse")}
    return {**kept, "line": verdict["line"]}
