"""Run an audit: read, ask every question in order, keep the record."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import singledispatch
from importlib.metadata import version
from typing import Unpack

import numpy as np

from calibrant.arguments import declared, of_declared, takes
from calibrant.audit.checks import all_checks, gates
from calibrant.audit.checks.everyone import gap
from calibrant.audit.context import LITTLE, AuditContext, NotRun, Size
from calibrant.audit.horizons import by_horizon
from calibrant.audit.inputs import arrival, inputs, rest
from calibrant.audit.judging import (
    ASSUMING,
    Judging,
    JudgingOptions,
    error_shown,
    showing_error,
    showing_together,
    verdict_by,
    verdicts,
    withholding,
    worst,
)
from calibrant.audit.lost import LostRows, judged_by_gap, of_lost
from calibrant.audit.record import ALL_CLASSES, AuditRecord, CheckRecord, Finding, Groups, Share, joint_error
from calibrant.certify.groups import checked_target
from calibrant.data.calls import takes_arrays
from calibrant.data.columns import require
from calibrant.data.engines.reduce import merged, release_memory
from calibrant.data.predictions import MulticlassPredictions, Predictions, frame_of
from calibrant.data.progress import Progress, ProgressEvent, ProgressTracker
from calibrant.data.read import with_classes, with_rows
from calibrant.data.reading import Reading
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.options import FIRST, ColumnOptions
from calibrant.data.survey import EVERY, KEPT, ONE_VALUE
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.runtime import interpreted, one_thread, sized
from calibrant.results import Curve, Estimate
from calibrant.views.points import weights_of
from calibrant.views.population import OfClusters, OfTwoWay, Population
from calibrant.views.sample import everyone
from calibrant.views.unlabelled import with_lost

RECORDED = (  # settings, in the order of a record; what else an audit is judged by follows
    *("alpha", "limit", "limit_relative", "limit_classes", "against", "judge", "target", "steps", "bandwidth", "seed"),
    *("blocks", "quick", "outcome", "date", "mask", "publish", "fail_on", "threshold", "costs", "infer", "tolerance"),
    *("missing_odds", "variables", "allow", "allow_same", "about"),
)
SELDOM = {name: one.default for name, (_, one) in declared(JudgingOptions).items() if one.seldom}
MANY, LEVELS_EACH = 10, 4  # covariates, and levels of a group column, as long as they are not known


class AuditOptions(ColumnOptions, JudgingOptions, total=False):
    """Every setting of an audit."""


@takes_arrays
@takes(AuditOptions, (*FIRST, "limit", "judge"))
def audit(
    source: object, *, progress: Progress | None = None, engine: object = None, **settings: Unpack[AuditOptions]
) -> AuditRecord:
    r"""Audit predicted probabilities: everyone, every group and unlisted subgroups certified, judged against a limit.

    Parameters
    ----------
    source : path, URI, glob, query, frame, Predictions or Sketch
        As `calibrant.sketch`. Files may be larger than memory; Spark and Dask DataFrames stay on their cluster and need
        `key`.
    label, score : str
        Columns of labels and probabilities; not used for `Predictions` and `Sketch`.
    by : str or sequence of str, optional
        Columns whose levels are the groups.
    variables : str or sequence of str, optional
        Covariates to rank and test; by default ``"*"``, every other column that can be used.
    limit : float in (0, 1), optional
        Largest acceptable calibration error (or gap), in probability units: 0.02 is two points.
    limit_relative : float in (0, 1), optional
        In place of `limit`: the same as a share of the mean score of everyone, and of each group of its own: at 0.1 and
        judged by gaps, observed over expected events between 0.9 and 1.1. Subgroups take everyone's limit in points.
    limit_classes : float in (0, 2], optional
        Of several classes, in addition to `limit`: the largest acceptable sum of the errors of all classes
        (`certify.classwise`). Each end of its range spends ``alpha / 2``.
    judge : {"auto", "error", "gap"}
        What the limit is about: the calibration error, which does not cancel along the score, or the gap between the
        share that happened and the mean score. By default everyone is judged by the error and groups by their gap; a
        group whose error is certified over the limit is over it too. Subgroups are always judged by their gap.
    target : {"rows", "population"}, optional
        Whose gaps, of everyone and the groups: of the rows in the data, given their scores, or of all rows like these.
        By default of the rows; with `cluster` or `weights` always of the population.
    steps : int from 2 to 1024
        Steps in which probabilities are shown to people: 100 for whole percent.
    bandwidth : float
        Of the jittered certificate.
    alpha : float in (0, 0.5]
        Error probability of each certificate about everyone, and of all groups together.
    intersections, bins, key, cluster, weights, positive, percent, drop_missing, missing
    encoding, delimiter, decimal, sheet, dates, allow_same, seed
        As `calibrant.sketch`. Clusters of two columns may cross (person, question), of rows that fit into memory:
        everyone, groups and ranges of the score are then certified for both drawn again, and what has no proof for both
        says so. Rows without a label may have clusters and weights, in memory too.
    renormalize, logits, listed, rest, ordered
        Of several classes: divide each row by its sum; take the softmax of logits; columns that name the classes that a
        row lists; what a row lacks of one is one more class; classes have an order, by number (True) or as named from
        the lowest, and the probability of at most each is judged too.
    outcome : str, optional
        What an event is, for wording: ``"employed"``.
    name, date : str, optional
        For the report; a date appears only if given (or from SOURCE_DATE_EPOCH).
    about : mapping, or path of a TOML file, optional
        The next six at once; what is given by itself wins.
    noun : str, optional
        What a row is, in the plural, for wording: ``"people"``, ``"loans"``.
    model, intended_use, period, population, set_by : str, optional
        For the report: the model, what it is used for, when the rows were recorded, whom they stand for, who set the
        limit.
    quick : bool
        Leave out the tests.
    mask : int of 5 or more, "none" or None
        People under whom a count is not shown: smaller groups are pooled, and never named. With "none" or None every
        group is shown: for readers who may see it.
    publish : bool
        Round for readers outside: what is reported of some of the people is in multiples of five, certified ends move
        outward, and rates of fewer than 200 people are shown as the range that rounding leaves.
    tolerance : float in [0, 1)
        Of the strong calibration test: how far off a probability may be for anyone, in probability units.
    missing_odds : float, at least 1
        With ``missing="keep"``: how many times the odds of the outcome of people without a label may differ from those
        of people of the same score who have one.
    fail_on : str or sequence of str, optional
        Tests that count for the exit status if they find error: ``"local-calibration"``, ``"strong-calibration"``,
        ``"subgroups"`` (which also counts while it is undecided); or ``"error-shown"``: error of any size that is shown
        of everyone, a group or unlisted subgroups.
    threshold : float in (0, 1), or up to five
        Act on people from this score on: what that means is reported for everyone and every group, certified, with an
        error probability `alpha` of its own.
    costs : two positive numbers, optional
        In place of `threshold`: of acting on somebody who is a non-event, and of not acting on an event. The threshold
        is ``c_FP / (c_FP + c_FN)``.
    against : AuditRecord, Sketch, path or frame, optional
        An earlier audit, or what it is made of: a record (``.json``), a sketch, or data that are read by the same
        options. ``curves["change"]`` says by how much the gap of everyone and of each group changed since, certified.
    infer : str or sequence of str, optional
        Covariates of which the mean (or the share at each level) among the events is to be inferred from the
        probabilities: the bias of each is reported on the first screen, with ranges that are guaranteed together, with
        an error probability `alpha` of their own.
    progress : callable, optional
        Called with a `calibrant.data.progress.ProgressEvent`: the step, its rows, the share of the audit that is done
        and the seconds left, about; ``progress=print`` will do. The first calls say what the data are interpreted as.
    engine : SparkSession or distributed.Client, optional
        As `calibrant.sketch`.

    Returns
    -------
    AuditRecord

    Raises
    ------
    BadInput
        The data or a setting cannot be used; the message says how to correct it.

    Notes
    -----
    **Assumes.** Independent rows from one distribution; groups, limit and levels chosen without these labels.
    **Guarantee.** Each certificate about everyone holds with probability ``1 - alpha``; all groups' ranges hold
    simultaneously with probability ``1 - alpha``, and so do those of all subgroups. An error is "over" by the raw
    score's lower bound and "within" by the judged score's upper bound; a gap is of the raw score. ``joint_error`` of
    the record is the sum of all shares of alpha that the verdicts used.
    **Cost.** One pass over the data, two with groups; then about 1 s plus 20 ms a group.
    **Reads.** The sketch.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=5000)
    >>> cal.audit(cal.predictions(rng.uniform(size=5000) < p, p), limit=0.1).verdict
    'within'
    """
    judging = Judging.of(gates=gates(), **of_declared(JudgingOptions, settings))
    options = Reading.of(**of_declared(ColumnOptions, settings))
    if progress is not None:
        from calibrant.inspect.run import preview

        source, seen = preview(source, options, engine)
        if seen is not None:
            for line in seen.lines():
                progress(ProgressEvent(step=line))
    record, frame = audited(source, options, judging, progress, engine), frame_of(source)
    return replace(record, data={**record.data, "frame": frame}) if frame else record


def audited(
    source: object, options: Reading, judging: Judging, progress: Progress | None = None, engine: object = None
) -> AuditRecord:
    """The record of an audit: what `audit` and the command both run."""
    if options.at is not None and options.at.several:
        return by_horizon(options, judging, lambda one, plan: audited(source, one, plan, progress, engine))
    before = _earlier(options, judging)
    lost, options = with_lost(source, options, engine)
    options = options.with_tests(not judging.quick).with_candidates()
    tracker = ProgressTracker(progress, 2 if options.by or options.variables else 1, _ahead(options, judging))
    classes = None
    if options.scores or isinstance(source, MulticlassPredictions):  # everyone and groups are judged by the top label
        classes, sketch = with_classes(source, options, engine)
    elif lost is not None:
        judging, sketch = replace(judging, judge=judged_by_gap(judging.judge, lost.weighs)), lost.sketch
    else:
        sketch = with_rows(source, options, None if progress is None else tracker.reading, engine)
    for name, stated in (("limit_classes", judging.limit_classes is not None), ("ordered", bool(options.ordered))):
        if stated and classes is None:
            raise BadInput(f"{options.caller.says(name)} is of three classes or more: leave it out")
    variables = options.variables
    if isinstance(source, Sketch):  # the covariates that it was made with, those of one value only among them
        constant = (name for name, why in sketch.spec.left_out if why == ONE_VALUE)
        variables = (*(c.name for c in sketch.spec.codings), *constant)
    if judging.limit_relative is not None:
        judging = judging.at(everyone(sketch, sketch.spec.seed).predicted if lost is None else lost.predicted)
    judging = judging.of_rows(sketch.log.noun)
    context = AuditContext(
        sketch,
        judging,
        tracker.begin,
        meant=options.allow_same,
        left_out=not variables,
        independent=options.independent,
        classes=classes,
        before=before,
        lost=None if lost is None else lost.rows,
    )
    if lost is not None:
        LostRows.of(context)  # where weights have no bound nothing is audited
    _check_inferred(judging.infer, tuple(c.name for c in sketch.spec.codings), variables)
    checked_target(judging.target, "gap", context.everyone)  # what is not certified for everyone is not audited
    spec, kept = sketch.spec, sketch.parts.get("sample")
    tracker.expect(_costs(spec.group_count, len(spec.codings), sketch.n, kept is not None and not judging.quick))
    # products are too small to share: threads that wait for each other only burn time
    with sized(sketch.n), one_thread():
        return _record(context, variables, tracker, options)


def _earlier(options: Reading, judging: Judging) -> AuditRecord | None:
    """The audit that this one is held against: as it was kept, or made now of other rows, by the same settings."""
    earlier = judging.against
    if earlier is None or isinstance(earlier, AuditRecord):
        return earlier
    path = str(earlier) if isinstance(earlier, str | os.PathLike) else ""
    if path.endswith((".json", ".html")):
        return AuditRecord.load(path)
    source: object = merged([path]) if path.endswith(".sketch") else earlier
    if isinstance(source, Sketch):  # it brings its own columns
        options = Reading.of(caller=options.caller)
    return audited(source, options, replace(judging, against=None, quick=True, fail_on=(), infer=(), name=None))


def _check_inferred(wanted: tuple[str, ...], read: tuple[str, ...], variables: tuple[str, ...]) -> None:
    """Refuse covariates that are to be inferred and are not read."""
    if variables and EVERY not in variables and (unread := [name for name in wanted if name not in read]):
        raise BadInput(
            f"infer (--infer) names {unread[0]!r}, which is not read: name it in variables (--variables) too"
        )
    require(wanted, read, "covariate")


def _costs(groups: int, covariates: int, rows: int, tests: bool) -> dict[str, float]:
    """The seconds that each question takes, about."""
    size = Size(
        groups=groups, covariates=covariates, sample_rows=min(rows, KEPT) / 1000, tests=tests and covariates > 0
    )
    return {q.code: q.cost.seconds(size) for q in all_checks()}


def _ahead(options: Reading, judging: Judging) -> Callable[[int], float]:
    """The seconds that all questions take for a number of rows, before covariates and groups are known."""
    covariates = MANY if EVERY in options.variables else len(options.variables)
    return lambda rows: sum(_costs(LEVELS_EACH * len(options.by), covariates, rows, not judging.quick).values())


def _record(
    context: AuditContext, variables: tuple[str, ...], tracker: ProgressTracker, options: Reading
) -> AuditRecord:
    """Ask every question in order."""
    checks: list[CheckRecord] = []
    findings: list[Finding] = context.findings
    classes: list[Finding] = []
    shares: list[Share] = []
    estimates: dict[str, Estimate] = {}
    curves: dict[str, Curve] = {}
    step = ""
    for check in all_checks():
        if check.step not in ("", step):
            context.announce(step := check.step)
        try:
            if not check.crosses:
                context.needs_no_crossing()
            answer = (check.make if context.lost is None or check.optional else check.make_of_lost)(context, curves)
        except NotComputable as e:
            checks.append(CheckRecord(code=check.code, status="not-applicable", reason=e.reason))
        except NotRun as e:
            checks.append(CheckRecord(code=check.code, status="not-run", reason=e.reason))
        else:
            checks += answer.listed(check.code)
            findings += answer.findings
            classes += answer.classes
            estimates |= answer.estimates
            curves |= answer.curves
            shares += answer.shares
        if check.cost is not LITTLE:
            release_memory()
        tracker.finish(check.code)
    if context.withheld is not None:
        findings, checks = withholding(findings, checks, context.withheld)
        classes, _ = withholding(classes, (), context.withheld)
        shares = []
    else:
        findings = showing_error(findings, context.judging.shares)
        classes = showing_together(classes, context.judging.shares)
        shares += context.judging.shares.of_error_shown(len(findings) > 1, bool(classes))
    everyone, *groups = findings
    settings = context.judging.settings() | {"seed": context.seed, "blocks": context.sketch.spec.blocks}
    settings |= {"variables": variables, "allow_same": context.meant}
    settings |= {"allow": allowed} if (allowed := context.sketch.spec.allowed) else {}
    form_stated = {name: value for name, value in asdict(options.form).items() if value}  # how files are written
    return AuditRecord(
        name=context.judging.name or context.sketch.name,
        verdict="over"
        if any(c.status == "over" and c.code not in ASSUMING for c in checks)
        else worst([*(f.verdict for f in (*findings, *classes)), verdict_by(checks, ALL_CLASSES)]),
        verdicts=verdicts(findings, checks, classes),
        error_shown=error_shown(findings, checks, context.judging.alpha, classes),
        shares=tuple(shares),
        joint_error=joint_error(shares),
        everyone=everyone,
        groups=Groups(groups),
        classes=Groups(classes),
        checks=tuple(checks),
        estimates=estimates,
        curves=curves,
        data={
            **inputs(context),
            **({} if context.classes is None else {"classes": context.classes.columns_by_class}),
            **({} if context.classes is None or not context.classes.rest else rest(context.classes)),
            **({name: True for name in ("logits", "renormalize", "rest") if getattr(options, name)}),
            **({"listed": ",".join(options.listed)} if options.listed else {}),
            **({} if context.classes is None or not context.classes.ordered else {"ordered": True}),
            **({} if context.lost is None else of_lost(context)),
            "clusters": clusters(context.everyone, context),
            **({"rounded_for": context.sharing} if context.sharing else {}),
            "display": context.everyone.judged(context.judging.steps).display,
            "arrival": arrival(context.sketch, context.fewest_rows),
            "screen": None if context.judging.quick or context.screen is None else context.screen.to_dict(),
        },
        settings={
            name: settings[name]
            for name in dict.fromkeys((*RECORDED, *settings))
            if name in settings and (name not in SELDOM or settings[name] not in (SELDOM[name], ()))
        }
        | ({"form": form_stated} if form_stated else {})
        | ({"independent": True} if context.independent else {})
        | ({"final": True} if options.final else {}),
        versions=_versions(),
    )


def _versions() -> dict[str, str]:
    compiled = () if interpreted() else ("numba",)
    results = {n: version(n) for n in ("numpy", "scipy", *compiled, "pyarrow", "scikit-learn")}
    from calibrant import __version__

    return {"calibrant": __version__, "python": platform.python_version(), **results}


# ---- clusters and weights: how many, how alike their rows are, and what it does to ranges ----


@singledispatch
def clusters(_: Population, _context: AuditContext) -> dict[str, int | float | bool | None] | None:
    """What a record holds of clusters; None where rows are independent and count alike."""
    return None


@clusters.register
def _of_clusters(q: OfClusters, context: AuditContext) -> dict[str, int | float | bool | None]:
    kept, sample = q.diagonals[0], context.sketch.parts["sample"]
    return {
        "count": sample.of_clusters,
        "exact": not sample.cut,
        "held": kept.count,
        "rows_in_sample": len(kept.cluster),
        "effective": kept.effective,
        "pilots": kept.pilots,
        "truncated_weights": kept.truncated_weights,
        "design_effect": kept.design_effect,
        "wider": _wider(context, sample.cut),
    }


@clusters.register
def _two_way(q: OfTwoWay, context: AuditContext) -> dict[str, int | float | bool | None]:
    """Blocks are of the mean shift."""
    gaps, rows = q.diagonals, context.people.rows
    blocks, pilots = (round(sum(of) / len(gaps)) for of in ([u.count for u in gaps], [u.pilots for u in gaps]))
    return {
        "count": blocks,
        "exact": True,
        "held": blocks,
        "rows_in_sample": rows.n,
        "effective": sum(u.effective for u in gaps) / len(gaps),
        "pilots": pilots,
        "truncated_weights": 0,
        "design_effect": _design_effect(rows),
        "wider": _wider(context, part=False),
    }


def _design_effect(rows: Predictions) -> float:
    """The variance of the mean residual, of rows that share a cluster of either column, over rows alone."""
    weight = weights_of(rows)
    residual = rows.y - rows.p
    off = weight * (residual - np.average(residual, weights=weight))
    codes = [] if rows.crossing is None else [c.astype(np.int64) for c in rows.crossing.codes]
    both = np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].reshape(-1)
    one, other, pair = (float((np.bincount(c, off) ** 2).sum()) for c in (*codes, both))
    alone = float((off**2).sum())
    return max(one + other - pair, 0.0) / alone if alone else 1.0


def _wider(context: AuditContext, part: bool) -> float | None:
    """How many times as wide everyone's gap is as with rows taken as independent and alike; None if no rows.

    Where a `part` of the clusters is held, rows are those of these alone, though counts are of all.
    """
    q = context.everyone
    every = Population(q.raw, q.fine, q.scores, q.by_score)
    rows = everyone(context.people.alone, context.seed) if part else every
    by_clusters, by_rows = (gap(each, context.judging.alpha, "population") for each in (q, rows))
    width = _width(by_rows)
    return _width(by_clusters) / width if width > 0.0 else None


def _width(gap: Estimate) -> float:
    return gap.interval.high - gap.interval.low
