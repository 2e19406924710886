"""What it means to act from a threshold on: for everyone and every group, certified with an alpha of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from calibrant.audit.checks import rates
from calibrant.audit.context import AuditContext, Check, CheckResult, Cost, NotRun
from calibrant.audit.decisions import COLUMNS, Line, People, everyone, groups, line, reported
from calibrant.audit.rounding import step, stepped
from calibrant.decisions.net_benefit import decision_curve
from calibrant.errors import NotComputable
from calibrant.results import Curve
from calibrant.stats.smoothing import clusters_new

CODE, CURVE = "decisions", "decision_curve"
FEW = "fewer than {} {} are on one side of every threshold"
DRAWN = ("threshold", "net_benefit", "low", "high", "treat_all", "over_all", "over_all_low", "over_all_high")


def decisions(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Tell of each threshold who is acted on, what happened to them, what that is worth and what error costs.

    Half of alpha is everyone's, shared by thresholds; half the groups', shared by these too: all ranges of the section
    hold simultaneously. It is another alpha than that of the other certificates.
    """
    plan = context.judging
    if not plan.thresholds:
        return CheckResult()
    context.needs_outcomes()
    context.needs_no_crossing()
    if context.withheld_for:
        raise NotRun(context.withheld_for)
    context.announce("asking what decisions mean")
    whole, all_groups = everyone(context), groups(context)
    pairs = {i for i, names in enumerate(context.sketch.spec.groupings) if len(names) > 1}
    each = plan.alpha / 2.0 / len(plan.thresholds)
    lines: list[Line] = []
    at_each: list[tuple[int, list[People]]] = []
    for at in range(len(plan.thresholds)):
        if whole.least(at) < context.mask:
            continue
        lines.append(line(whole, at, each, context))
        shown = reported(all_groups, at, context.mask, pairs)
        lines += [line(p, at, each / len(all_groups), context) for p in shown]
        at_each.append((at, [whole, *shown]))
    if not lines:
        raise NotComputable(FEW.format(context.mask, plan.about.noun or "rows"))
    columns = {name: tuple(getattr(result, name) for result in lines) for name in COLUMNS}
    settings = {
        "alpha": plan.alpha,
        "thresholds": plan.thresholds,
        "costs": plan.costs,
        "groups": len(all_groups),
        "assumes": context.everyone.assumes,
    }
    curves = {CODE: Curve(method="audit.decisions", columns=columns, settings=settings), **_curve(context)}
    return CheckResult(status="measured", curves=curves | rates.curves(at_each, len(all_groups), context))


def _curve(context: AuditContext) -> dict[str, Curve]:
    """The decision curve of everyone in steps of a few people, without counts; none of too few rows."""
    try:
        result = decision_curve(context.read, alpha=context.judging.alpha, seed=context.seed)
    except NotComputable:
        return {}
    kept = _kept(context, result)
    if not kept:
        return {}
    cluster = step(context.everyone.n)  # in every record: at so many thresholds exact ones would count events
    sides = {"low": -1, "high": 1, "over_all_low": -1, "over_all_high": 1}
    columns = {
        k: tuple(
            v if k == "threshold" else stepped(v, cluster, sides.get(k, 0))
            for v in (result.columns[k][i] for i in kept)
        )
        for k in DRAWN
    }
    reported_settings = {k: result.settings[k] for k in ("alpha", "level", "least_rows")}
    reported_settings["guarantee"] = result.columns["guarantee"][0]
    return {CURVE: Curve(method=result.method, columns=columns, settings=reported_settings)}


def _kept(context: AuditContext, curve: Curve) -> list[int]:
    """The thresholds below, above and between which people are enough, or none."""
    rows, q = np.array(curve.columns["rows"]), context.everyone
    between = (-np.diff(rows, prepend=q.n, append=0)).tolist()
    new: Callable[[int, int], int] = lambda i, _: between[i]  # noqa: E731
    if q.clusters is not None:
        at = np.searchsorted(np.array(curve.columns["threshold"]) - 1e-9, q.clusters.p, side="right")
        new = clusters_new(at, q.clusters.cluster, len(between))
    kept, first, people = list[int](), 0, 0
    for i in range(len(rows)):
        people += new(i, first)
        if people == 0 or people >= context.mask:
            kept.append(i)
            first, people = i + 1, 0

    def above(i: int) -> int:
        return sum(new(j, i + 1) for j in range(i + 1, len(between)))

    while kept and 0 < above(kept[-1]) < context.mask:
        kept.pop()
    return kept


DECLARED = (Check(code=CODE, order=28, make=decisions, optional=True, cost=Cost(flat=0.1, group=0.02), crosses=True),)
