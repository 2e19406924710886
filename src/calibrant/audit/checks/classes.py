"""What is certified of a classifier over several classes: each class, all together, and who is given for whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.audit.checks.certified import status
from calibrant.audit.checks.groups import certified, judged
from calibrant.audit.context import AuditContext, Check, CheckResult, Cost
from calibrant.audit.judging import worst
from calibrant.certify.classwise import classwise
from calibrant.data.columns import picked
from calibrant.data.predictions import MulticlassPredictions
from calibrant.errors import NotComputable
from calibrant.kernels.draws import hash_split, mix
from calibrant.repair.catalogue import recipes
from calibrant.results import Curve
from calibrant.stats.measures import normal_quantile
from calibrant.stats.subgroups.row_gaps import binomial
from calibrant.views.points import points
from calibrant.views.sample import classes_of

CLASS = "class"  # the variable by which a class is named
FEWEST, TINY = 100, 1e-12  # rows of half of the data; of a probability whose logarithm is taken
Floats = NDArray[np.float64]
MOST, LEAST = 50, 5.0  # classes that are drawn against each other; events that a cell expects at least


def of_classes(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Certify each class against the others as groups are: ranges hold simultaneously, verdicts share alpha."""
    rows = context.classes
    if rows is None:
        return CheckResult()
    populations = enumerate(classes_of(rows, rows.top_label(), context.seed))
    every = [certified(((CLASS, rows.name_of(k)),), 0, q, context, rows.p.shape[1]) for k, q in populations]
    result = judged(every, context)
    shares = context.judging.shares.of_groups("classes") if context.judging.limited else ()
    return CheckResult(status=status(worst(f.verdict for f in result)), classes=result, shares=shares)


def _classwise(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Certify the sum over all classes, which shares alpha with nobody."""
    if context.classes is None:
        return CheckResult()
    plan = context.judging
    result = classwise(context.classes, steps=plan.steps, alpha=plan.alpha, seed=context.seed)
    return CheckResult(status="measured", estimate=result, estimates={"classwise": result})


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
    top label most often, and of no fewer people than may be shown. All ranges hold simultaneously.
    """
    rows = context.classes
    if rows is None or rows.weights is not None or rows.cluster is not None:  # the binomial is of independent rows
        return CheckResult()
    top, k = rows.p.argmax(axis=1), rows.p.shape[1]
    often = np.bincount(top, minlength=k)
    common = np.sort(np.argsort(-often, kind="stable")[:MOST])
    expected = np.array([rows.p[top == i][:, common].sum(axis=0) for i in common])
    at = np.argwhere((expected >= LEAST) & (often[common] >= context.mask)[:, None])
    seen = np.bincount(top * k + rows.y, minlength=k * k).reshape(k, k)[np.ix_(common, common)]
    each = context.judging.alpha / (2.0 * max(len(at), 1))
    cells = []
    for i, j in at.tolist():
        n, events, of = int(often[common[i]]), int(seen[i, j]), float(expected[i, j])
        evidence, reported = binomial(events, n, of), context.sums.of(n, events, of)
        ends = (evidence.at_most.limit(each), -1), (evidence.at_least.limit(each), 1)
        low, high = (reported.end(end, side) for end, side in ends)
        names = rows.name_of(int(common[i])), rows.name_of(int(common[j]))
        gap = min(max(reported.observed - reported.predicted, low), high)
        cells.append(Cell(*names, reported.rows, reported.events, float(reported.expected), gap, low, high))
    columns = {f.name: tuple(getattr(c, f.name) for c in cells) for f in fields(Cell)}
    settings = {"classes": len(common), "of": k, "least": LEAST, "alpha": context.judging.alpha}
    return CheckResult(curves={"class_matrix": Curve(method="audit.class_matrix", columns=columns, settings=settings)})


# ---- Repairs of all classes at once, judged on rows that none was fitted on ----

AS_AUDITED = "as audited"
TRIED = (("Temperature", 10**6), ("VectorScaling", 30), ("Dirichlet", 12))  # with the classes up to which it is quick
FITTED = 5_000_000  # probabilities at most that a repair is fitted to


@dataclass(frozen=True, slots=True)
class ClassRepair:
    """One repair of all classes, as other rows judge it."""

    repair: str
    # `low` and `high`: certified range of the class-wise error.
    low: float
    high: float
    log_loss: float
    brier: float
    # Change of either score against the probabilities as audited, paired, with the ordinary interval; 0 of these.
    log_loss_change: float
    log_loss_change_low: float
    log_loss_change_high: float
    brier_change: float
    brier_change_low: float
    brier_change_high: float


def _repairs(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Fit repairs on half of the rows, or clusters, and judge them on the other half."""
    rows = context.classes
    if rows is None:
        return CheckResult()
    context.needs_tests()
    who = np.arange(rows.n) if rows.cluster is None else np.unique(rows.cluster, return_inverse=True)[1].reshape(-1)
    half = hash_split(mix(np.arange(int(who.max()) + 1, dtype=np.uint64) ^ np.uint64(context.seed)), 2)[who]
    fit, judged = np.flatnonzero(half == 0), np.flatnonzero(half == 1)
    k = rows.p.shape[1]
    if min(len(fit), len(judged)) < FEWEST:
        raise NotComputable(f"repairs of classes are judged on {FEWEST} rows or more, half of all: pass more rows")
    context.announce("comparing repairs")
    fitting, kept = _some(rows, fit[: max(FITTED // k, FEWEST)]), _some(rows, judged)
    names = [name for name, most in TRIED if k <= most]
    tried = {AS_AUDITED: kept} | {name: recipes()[name].make().fit(fitting)(kept) for name in names}
    level = context.judging.alpha / max(len(names), 1)
    before = _losses(kept)
    made = [_judged(context, name, data, before, level) for name, data in tried.items()]
    best = min(made[1:], key=lambda one: one.log_loss)
    settings = {
        "recommended": best.repair if best.log_loss_change_high < 0.0 else AS_AUDITED,
        "rows_fitted": fitting.n,
        "rows_judged": kept.n,
        "alpha": context.judging.alpha,
    }
    columns = {f.name: tuple(getattr(one, f.name) for one in made) for f in fields(ClassRepair)}
    return CheckResult(
        status="measured",
        curves={"class_repairs": Curve(method="audit.class_repairs", columns=columns, settings=settings)},
    )


def _judged(context: AuditContext, name: str, data: MulticlassPredictions, before: Floats, alpha: float) -> ClassRepair:
    """Judge probabilities: certify their class-wise error, and compare their losses with those before."""
    plan, losses, q = context.judging, _losses(data), points(data.top_label()).weighed
    ends = classwise(data, steps=plan.steps, alpha=plan.alpha, seed=context.seed).interval
    changes: list[float] = []
    for loss in losses - before:
        mean, wide = q.mean(loss), normal_quantile(q.level(alpha)) * float(np.sqrt(q.variance(loss)))
        changes += [mean, mean - wide, mean + wide]
    return ClassRepair(name, ends.low, ends.high, *(q.mean(loss) for loss in losses), *changes)


def _losses(data: MulticlassPredictions) -> Floats:
    """Log loss and Brier score of each row, shape (2, n)."""
    own = np.take_along_axis(data.p, data.y[:, None].astype(np.intp), axis=1)[:, 0]
    return np.stack([-np.log(np.maximum(own, TINY)), (data.p**2).sum(axis=1) - 2.0 * own + 1.0])


def _some(rows: MulticlassPredictions, at: NDArray[np.intp]) -> MulticlassPredictions:
    """Some rows, without their covariates."""
    some = replace(rows, y=rows.y[at], p=rows.p[at], covariates=None, weights=picked(rows.weights, at))
    return replace(some, cluster=picked(rows.cluster, at))


DECLARED = (
    Check(code="error-classes", order=22, make=of_classes, step="certifying classes", cost=Cost(flat=0.01)),
    Check(code="classwise", order=24, make=_classwise, cost=Cost(flat=0.01)),
    Check(code="class-matrix", order=26, make=_matrix),
    Check(code="class-repairs", order=111, make=_repairs, cost=Cost(flat=0.01, tests=True)),
)
