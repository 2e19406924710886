"""What it means to act from a threshold on: for everyone and every group, certified with an alpha of its own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calibrant.audit.decisions.line import COLUMNS, Line, line
from calibrant.audit.decisions.whom import everyone, groups, told
from calibrant.audit.question import COPIES, Answer, Case, Cost, NotRun, Question
from calibrant.audit.record import Check
from calibrant.audit.rounding import step, stepped
from calibrant.decisions.net_benefit import decision_curve
from calibrant.errors import NotComputable
from calibrant.results import Curve

CODE, CURVE = "decisions", "decision_curve"
FEW = "fewer than {} {} are on one side of every threshold"
DRAWN = ("threshold", "net_benefit", "low", "high", "treat_all", "over_all", "over_all_low", "over_all_high")


def decisions(case: Case, _: Mapping[str, Curve]) -> Answer:
    """Tell of each threshold who is acted on, what happened to them, what that is worth and what error costs.

    Half of alpha is everyone's, shared by thresholds; half the groups', shared by these too: all ranges of the section
    hold simultaneously. It is another alpha than that of the other certificates.
    """
    plan = case.judging
    if not plan.thresholds:
        return Answer()
    case.needs_no_crossing()
    if case.copies:
        raise NotRun(COPIES)
    case.announce("asking what decisions mean")
    whole, all_groups = everyone(case), groups(case)
    pairs = {i for i, names in enumerate(case.whole.spec.groupings) if len(names) > 1}
    each = plan.alpha / 2.0 / len(plan.thresholds)
    lines: list[Line] = []
    for at in range(len(plan.thresholds)):
        if whole.least(at) < case.mask:
            continue
        lines.append(line(whole, at, each, case.seed))
        shown = told(all_groups, at, case.mask, pairs)
        lines += [line(p, at, each / len(all_groups), case.seed) for p in shown]
    if not lines:
        raise NotComputable(FEW.format(case.mask, plan.about.noun or "rows"))
    columns = {name: tuple(getattr(found, name) for found in lines) for name in COLUMNS}
    settings = {
        "alpha": plan.alpha,
        "thresholds": plan.thresholds,
        "costs": plan.costs,
        "groups": len(all_groups),
        "assumes": case.everyone.assumes,
    }
    curves = {CODE: Curve(method="audit.decisions", columns=columns, settings=settings), **_curve(case)}
    return Answer(checks=(Check(code=CODE, status="measured"),), curves=curves)


def _curve(case: Case) -> dict[str, Curve]:
    """Return the decision curve of everyone in steps of a few people, without counts; none of too few rows."""
    try:
        found = decision_curve(case.read, alpha=case.judging.alpha, seed=case.seed)
    except NotComputable:
        return {}
    rows, kept = np.array(found.columns["rows"]), [0]
    for i in range(1, len(rows)):  # between two thresholds nobody is, or people enough
        if rows[kept[-1]] == rows[i] or rows[kept[-1]] - rows[i] >= case.mask:
            kept.append(i)
    unit = step(case.everyone.n)
    sides = {"low": -1, "high": 1, "over_all_low": -1, "over_all_high": 1}
    columns = {
        k: tuple(
            v if k == "threshold" else stepped(v, unit, sides.get(k, 0)) for v in (found.columns[k][i] for i in kept)
        )
        for k in DRAWN
    }
    told_settings = {k: found.settings[k] for k in ("alpha", "level", "least_rows")}
    told_settings["guarantee"] = found.columns["guarantee"][0]
    return {CURVE: Curve(method=found.method, columns=columns, settings=told_settings)}


DECLARED = (Question(code=CODE, order=28, make=decisions, cost=Cost(flat=0.1, group=0.02), crosses=True),)
