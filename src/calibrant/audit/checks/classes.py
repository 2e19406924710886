"""What is certified of a classifier over several classes: each class, all together, which in place of which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.audit.checks.everyone import status
from calibrant.audit.checks.groups import certified, judged
from calibrant.audit.context import DRAWS, AuditContext, Check, CheckResult, Cost
from calibrant.audit.judging import verdict_of, worst
from calibrant.audit.pooling import guarded
from calibrant.audit.record import ALL_CLASSES, CLASS_LOCAL, CLASS_STRONG
from calibrant.audit.rounding import few, reported_outcome
from calibrant.certify.classes import classwise
from calibrant.measure.classes import ranked_probability_score
from calibrant.results import Curve
from calibrant.stats.subgroups.row_gaps import binomial
from calibrant.views.kinds import refuse_rows
from calibrant.views.sample import each_class

CLASS = "class"  # the variable by which a class is named
EQUAL = "the matrix of classes counts independent rows of equal weight, by exact binomial limits"
RANKED = "ranked_probability_score"
SEARCHES = 199  # data sets that the search is made in again: seconds each thousand, so the smallest p-value is 0.005
MOST, LEAST = 50, 5.0  # classes that are drawn against each other; events that a cell expects at least


def of_classes(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Certify each class against the others as groups are: ranges hold simultaneously, verdicts share alpha.

    Cuts of ordered classes with two or more on both sides are among them, and share with them.
    """
    rows = context.classes
    if rows is None:
        return CheckResult()
    context.needs_no_crossing()
    every = []
    for name, q in zip(rows.events, each_class(rows, rows.top_label(), context.seed), strict=True):
        one = certified(((CLASS, name),), 0, q, context, len(rows.events))
        # no bet is learnt from its blocks any more, which are gigabytes of a thousand classes
        every.append(replace(one, people=replace(q.as_one_block(), shown=q.shown)))
    result = judged(every, context)
    shares = context.judging.shares.of_groups("classes") if context.judging.limited else ()
    estimates = {}
    if rows.ordered:
        estimates[RANKED] = ranked_probability_score(rows, alpha=context.judging.alpha)
    verdict = status(worst(f.verdict for f in result))
    return CheckResult(status=verdict, classes=result, shares=shares, estimates=estimates)


def _classwise(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Certify the sum over all classes, which shares alpha with nobody, and judge it by its own limit if it has one."""
    if context.classes is None:
        return CheckResult()
    context.needs_no_crossing()
    plan = context.judging
    result = classwise(context.classes, steps=plan.steps, alpha=plan.alpha, seed=context.seed)
    verdict = verdict_of(result.interval.low, result.interval.high, plan.limit_classes)
    shares = plan.shares.of_all_classes() if plan.limit_classes is not None else ()
    return CheckResult(status=status(verdict), estimate=result, estimates={ALL_CLASSES: result}, shares=shares)


@dataclass(frozen=True, slots=True)
class Cell:
    """Rows whose top label is one class, and how many of them belong to another: a row of the matrix."""

    predicted_class: str
    true_class: str
    rows: int
    events: int
    expected: float
    # `gap`, `low` and `high`: observed minus expected of a row, in probability units, and its certified range.
    gap: float
    low: float
    high: float


def _matrix(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Certify, of rows whose top label is one class, how many more belong to another than are expected.

    Scores alone choose the cells: those in which at least `LEAST` rows are expected, of the `MOST` classes that are the
    top label most often, and of no fewer people than may be shown; nor are the others fewer, who are the rest of each
    class. All ranges hold simultaneously. A top label's rows are reported once for its whole line.
    """
    rows = context.classes
    if rows is None:
        return CheckResult()
    refuse_rows(rows, weights=EQUAL, cluster=EQUAL)
    top, k = rows.predicted, rows.p.shape[1]
    often = np.bincount(top, minlength=k)
    common = np.sort(np.argsort(-often, kind="stable")[:MOST])
    expected = np.array([rows.p[top == i][:, common].sum(axis=0) for i in common])
    shown = _shown(often, common, context.mask)
    at = np.argwhere((expected >= LEAST) & shown[:, None])
    seen = np.bincount(top * k + rows.y, minlength=k * k).reshape(k, k)[np.ix_(common, common)]
    each = context.judging.alpha / (2.0 * max(len(at), 1))
    people = [context.sums.of(int(often[k]), int(seen[i, i]), float(expected[i, i])).rows for i, k in enumerate(common)]
    cells = []
    for i, j in at.tolist():
        n, events, of = int(often[common[i]]), int(seen[i, j]), float(expected[i, j])
        evidence, reported = binomial(events, n, of), context.sums.of(n, events, of)
        ends = (evidence.at_most.limit(each), -1), (evidence.at_least.limit(each), 1)
        low, high = (reported.end(end, side) for end, side in ends)
        names = rows.name_of(int(common[i])), rows.name_of(int(common[j]))
        came, due = min(reported.events, people[i]), min(float(reported.expected), people[i])
        cells.append(Cell(*names, people[i], came, due, min(max((came - due) / people[i], low), high), low, high))
    columns = {f.name: tuple(getattr(c, f.name) for c in cells) for f in fields(Cell)}
    settings = {"classes": len(common), "of": k, "least": LEAST, "alpha": context.judging.alpha}
    return CheckResult(curves={"class_matrix": Curve(method="audit.class_matrix", columns=columns, settings=settings)})


def _shown(often: NDArray[np.int64], common: NDArray[np.int64], mask: int) -> NDArray[np.bool_]:
    """Which of the `common` top labels may be shown: what is left over of all rows is no fewer people than `mask`."""
    kept = often[common] >= mask
    for i in np.argsort(often[common], kind="stable"):
        if not few([often.sum() - often[common[kept]].sum()], mask):
            break
        kept[i] = False
    return kept


def _local(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Test all classes at once for error that follows scores, attributes or the predicted class."""
    return _tested(context, "local_calibration_test", "testing all classes at once", "region_", DRAWS)


def _strong(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Search all classes at once for groups that some class's probability serves badly, whatever describes them."""
    return _tested(context, "strong_calibration_test", "searching all classes for groups", "peak_", SEARCHES)


def _tested(context: AuditContext, test: str, step: str, part: str, draws: int) -> CheckResult:
    """What a test of all classes found; nothing about few people in the part of it that is named."""
    if context.classes is None:
        return CheckResult()
    context.needs_no_crossing()
    context.needs_tests()
    from calibrant import detect

    context.announce(step)
    # what a screen chose, it chose on rows that are tested here; the test of the most probable class reads it
    table = None if context.screen is not None or context.sample_rows is None else context.sample_rows.covariates
    names = () if table is None else tuple(table.schema.names)
    outcome = getattr(detect, test)(context.classes, variables=names, draws=draws, seed=context.seed)
    guard = guarded(outcome, part, context.mask)
    return CheckResult(status="measured", outcome=reported_outcome(guard, context.searched))


def _repairs(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Fit repairs of all classes at once on half of the rows, or clusters, and judge them on the other half."""
    if context.classes is None:
        return CheckResult()
    context.needs_no_crossing()
    context.needs_tests()
    context.announce("comparing repairs")
    from calibrant.repair.judge.classes import judged_classes

    plan = context.judging
    result = judged_classes(context.classes, steps=plan.steps, alpha=plan.alpha, seed=context.seed)
    return CheckResult(status="measured", curves={"class_repairs": result.curve})


DECLARED = (
    Check(
        code="error-classes",
        order=21,
        make=of_classes,
        optional=True,
        step="certifying classes",
        cost=Cost(flat=0.01),
        crosses=True,
    ),
    Check(code=ALL_CLASSES, order=22, make=_classwise, optional=True, cost=Cost(flat=0.01), crosses=True),
    Check(code="class-matrix", order=23, make=_matrix, optional=True, crosses=True),
    Check(
        code=CLASS_LOCAL,
        order=91,
        make=_local,
        optional=True,
        cost=Cost(flat=0.05, sample_rows=0.01, tests=True),
        crosses=True,
    ),
    Check(
        code="class-repairs",
        order=111,
        make=_repairs,
        optional=True,
        cost=Cost(flat=0.01, tests=True),
        crosses=True,
    ),
    Check(
        code=CLASS_STRONG,
        order=92,
        make=_strong,
        optional=True,
        cost=Cost(flat=0.05, sample_rows=0.01, tests=True),
        crosses=True,
    ),
)
