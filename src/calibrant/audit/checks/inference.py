"""What probabilities in place of labels would say about the events: a table over the covariates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from calibrant.audit.context import NONE_NAMED, AuditContext, Check, CheckResult, NotRun
from calibrant.audit.pooling import unshown_levels
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.measure.inferred import Inferring, described, inferring
from calibrant.results import Curve
from calibrant.stats.strata import MISSING
from calibrant.views.by_variable import strata_of

METHOD = "measure.inferred_mean"
MOST_LEVELS = 10  # of a category that is described
GUARANTEED = "task-trust"
UNSAID = "of {0} nothing is said: too few people have, or have not, the event or a value"
BY_CLUSTERS = (
    "an audit has no guaranteed range of {0} for clusters: calibrant measure inferred_mean --variable {0} --guaranteed"
)
FEW = "means among the events need {0} events and {0} others"


def inference(sketch: Sketch, alpha: float, mask: int) -> Curve:
    """The bias of every covariate's mean, or levels' shares, among the events; the least likely by chance first.

    The limits of all lines hold simultaneously with probability ``1 - alpha``, asymptotically (Bonferroni). Nothing is
    said of levels of few people, or of a number that few people decide. Values are rounded to about a tenth of a
    standard error, limits outward, so that none leads back to a sum over the events. Without columns where nothing can
    be said: settings hold the reason.
    """
    names = [c.name for c in sketch.spec.codings if c.kind != "constant"]
    if not names:
        return Curve(method=METHOD, columns={}, settings={"reason": NONE_NAMED})
    if min(sketch.events, sketch.n - sketch.events) < mask:
        return Curve(method=METHOD, columns={}, settings={"reason": FEW.format(mask)})
    tested = [(q, level) for name in names for q, level in _lines(sketch, name, mask)]
    results = [line for q, level in tested if (line := _line(q, level, alpha / len(tested))) is not None]
    lines = sorted(results, key=_chance)
    columns = {k: tuple(line[i] for line in lines) for i, k in enumerate(Line._fields)} if lines else {}
    dates = tuple(sorted({q.name for q, _ in tested if q.date}))
    settings = {"alpha": alpha, "simultaneous": "Bonferroni", "lines": len(tested), "dates": dates}
    if not lines:
        settings["reason"] = "no covariate can be described"
    return Curve(method=METHOD, columns=columns, settings=settings)


class Line(NamedTuple):
    """A line of the table: what is described, both means, and the bias with its limits."""

    variable: str
    level: str | None
    inferred: float
    observed: float
    bias: float
    low: float
    high: float


def _lines(sketch: Sketch, name: str, mask: int) -> list[tuple[Inferring, str | None]]:
    """What is said of one covariate: its mean, or the share at each level that may be shown.

    Of two levels the rarer one alone, for the other mirrors it; of missing values nothing.
    """
    try:
        q, unshown = inferring(sketch, name), unshown_levels(sketch, name, mask)
    except NotComputable:
        return []
    if q.x is not None:
        return [(q, None)] if unshown == () and _of_many(sketch, name, mask) else []
    named = [v for v in q.labels if not (q.missing and v == q.labels[-1]) and v != MISSING]
    if unshown is None or len(named) > MOST_LEVELS:
        return []
    shown = [v for v in named if v not in unshown]
    if len(named) == 2 and len(shown) == 2 and not q.missing:
        shown = [min(shown, key=lambda v: float(q.sums.rows[q.at(v)].sum()))]
    return [(q, v) for v in shown]


def _of_many(sketch: Sketch, name: str, mask: int) -> bool:
    """Whether the mean of a number rests on many people, so that it reveals none.

    Not where few have no value, or few people with a value have, or have not, the event; nor where few differ from the
    most common value. Nor where one person holds more than one part in `mask` of all distances from the median, or is
    farther from it than the root mean square times the root of the rarer outcome's people: that person alone would move
    their mean by a standard error. A cell of many values counts as far off as its farthest end, and as one value.
    """
    strata = strata_of(sketch, name)
    there = strata.present()
    n, events = there.n, float(there.events.sum())
    rarer = min(events, n - events)
    if 0 < strata.n - n < mask or rarer < mask or n - float(there.rows.max()) < mask:
        return False
    median = there.x[np.searchsorted(np.cumsum(there.rows), n / 2)]
    top = float(np.maximum(abs(there.low - median), abs(there.high - median)).max())
    off = abs(there.x - median) / top
    return bool(there.rows @ off >= mask and rarer * (there.rows @ off**2) >= n)


def _line(q: Inferring, level: str | None, alpha: float, *, guaranteed: bool = False) -> Line | None:
    """One line of the table; None where there is no interval."""
    try:
        of_events = described(q, level, "observed", alpha)
        bias = described(q, level, "bias", alpha, guaranteed=guaranteed)
    except NotComputable:
        return None
    s, error = bias.settings, float(of_events.settings["error"])
    fine, coarse = _digits(s["error"] or error), _digits(max(s["error"], error))
    if fine is None or coarse is None:
        return None
    half, most = 10.0**-fine / 2, math.inf if level is None else 1.0
    low, high = max(bias.interval.low - half, -most), min(bias.interval.high + half, most)
    return Line(
        s["variable"],
        s["level"],
        inferred=round(s["inferred"], coarse),
        observed=round(s["observed"], coarse),
        bias=round(bias.value, fine),
        low=round(low, fine),
        high=round(high, fine),
    )


def _digits(error: float) -> int | None:
    """The decimals of about a tenth of a standard error; None where it says nothing."""
    return 1 - round(math.log10(error)) if 0.0 < error < math.inf else None


def _chance(line: Line) -> float:
    """Minus the bias in widths of its range, and so, for one number of events, in standard errors."""
    return -abs(line.bias) / (line.high - line.low) if line.high > line.low else 0.0


def of_the_events(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Answer by the table alone: it is no check."""
    return CheckResult(curves={"inference": inference(context.sketch, context.judging.alpha, context.mask)})


def task_trust(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Guarantee the bias of the covariates that were named; all their lines share alpha.

    Rounded and left out as in the table, for the same people could be counted.
    """
    wanted, sketch, mask = context.judging.infer, context.sketch, context.mask
    if not wanted:
        return CheckResult()
    context.needs_outcomes()
    if context.withheld_for:
        raise NotRun(context.withheld_for)
    if sketch.by_clusters:
        raise NotComputable(BY_CLUSTERS.format(wanted[0]))
    if min(sketch.events, sketch.n - sketch.events) < mask:
        raise NotComputable(FEW.format(mask))
    tested = [(q, level) for name in wanted for q, level in _lines(sketch, name, mask)]
    each = context.judging.alpha / max(len(tested), 1)
    lines = [line for q, level in tested if (line := _line(q, level, each, guaranteed=True)) is not None]
    if unsaid := [name for name in wanted if name not in {line.variable for line in lines}]:
        raise NotComputable(UNSAID.format(" and ".join(unsaid)))
    columns = {k: tuple(line[i] for line in lines) for i, k in enumerate(Line._fields)}
    settings = {"alpha": context.judging.alpha, "simultaneous": "Bonferroni", "guarantee": "finite-sample"}
    settings |= {"of": "these rows, given their scores and covariates", "lines": len(tested)}
    settings |= {"dates": tuple(sorted({q.name for q, _ in tested if q.date}))}
    curve = Curve(method="audit.task_trust", columns=columns, settings=settings)
    return CheckResult(status="measured", curves={"task_trust": curve})


DECLARED = (
    Check(
        code=GUARANTEED,
        order=121,
        make=task_trust,
        optional=True,
        asks="Means that were to be inferred",
        means="the guaranteed bias of a mean among the events that is inferred from probabilities",
    ),
    Check(
        code="inference",
        order=120,
        make=of_the_events,
        asks="The events, by probabilities",
        means="what means and shares among the events would be if probabilities stood in for labels",
    ),
)
