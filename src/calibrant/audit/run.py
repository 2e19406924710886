"""Run an audit."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from calibrant.audit.checks import (
    MASK,
    Plan,
    finding,
    group_findings,
    reliability,
    shift,
    smoothed,
    worst,
)
from calibrant.audit.covariates import follow, rows_held
from calibrant.audit.inference import inference
from calibrant.audit.record import GATES, NO_CURVE, AuditRecord, Check, Finding, Status
from calibrant.audit.repairs import weigh
from calibrant.audit.strong import search
from calibrant.certify.distance import distance
from calibrant.certify.jittered import jittered
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.arguments import names
from calibrant.data.read import sketch
from calibrant.data.sketch import Sketch
from calibrant.data.survey import ONE_VALUE
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.threads import one_thread
from calibrant.results import Curve, Estimate
from calibrant.views.population import Population, checked_bandwidth, checked_levels, everyone, shares, sketch_of

MEASURES = (
    "ece",
    "smooth_ece",
    "max_calibration_error",
    "brier",
    "log_loss",
    "auroc",
    "calibration_intercept",
    "calibration_slope",
    "observed_expected",
)
Step = Callable[[str], None]


def audit(
    source: Any,
    *,
    label: str | None = None,
    score: str | None = None,
    by: Iterable[str] | str | None = None,
    variables: Iterable[str] | str | None = "*",
    limit: float | None = None,
    levels: int = 50,
    bandwidth: float = 2**-6,
    alpha: float = 0.05,
    intersections: bool = False,
    bins: Mapping[str, Sequence[float]] | None = None,
    key: Iterable[str] | str | None = None,
    positive: str | None = None,
    drop_missing: bool = False,
    outcome: str | None = None,
    name: str | None = None,
    date: str | None = None,
    quick: bool = False,
    tolerance: float = 0.0,
    fail_on: Iterable[str] | str | None = None,
    seed: int = 0,
    rows_read: Callable[[int], None] | None = None,
    step: Step | None = None,
    engine: Any = None,
) -> AuditRecord:
    r"""Audit predicted probabilities: certified error for everyone and for every group, judged against a limit.

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
        Largest acceptable average error, in probability units: 0.02 is two points.
    levels : int from 2 to 1024
        Steps in which probabilities are shown to people.
    bandwidth : float
        Of the jittered certificate.
    alpha : float in (0, 1)
        Error probability of each certificate about everyone, and of all groups together.
    intersections, bins, key, positive, drop_missing, seed
        As `calibrant.sketch`.
    outcome : str, optional
        What a case is, for wording: ``"employed"``.
    name, date : str, optional
        For the report; a date appears only if given (or from SOURCE_DATE_EPOCH).
    quick : bool
        Leave out the tests.
    tolerance : float in [0, 1)
        Of the strong calibration test: how far off a probability may be for anyone, in probability units.
    fail_on : str or sequence of str, optional
        Tests that count for the exit status if they find error: ``"local-calibration"``, ``"strong-calibration"``.
    rows_read, step : callable, optional
        Progress: rows just read, and the name of the step that begins.
    engine : SparkSession, distributed.Client or DuckDB connection, optional
        As `calibrant.sketch`.

    Returns
    -------
    AuditRecord

    Raises
    ------
    BadInput
        The data or a setting cannot be used; the message says how to mend it.

    Notes
    -----
    **Assumes.** Independent rows from one distribution; groups, limit and levels chosen without these labels.
    **Guarantee.** Each certificate about everyone holds with probability ``1 - alpha``; all groups' ranges hold
    together with probability ``1 - alpha``. "Broken" rests on the raw score's lower bound, "met" on the shown
    score's upper bound.
    **Cost.** One pass over the data, two with groups; then about 1 s plus 20 ms a group.
    **Reads.** The sketch.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=5000)
    >>> cal.audit(cal.predictions(rng.uniform(size=5000) < p, p), limit=0.1).verdict
    'met'
    """
    shares(alpha, "two-sided")
    if limit is not None and not (isinstance(limit, (int, float)) and 0.0 < limit < 1.0):
        raise BadInput(f"limit={limit!r}: pass a number between 0 and 1; 0.02 is two points")
    steps, width = checked_levels(levels), checked_bandwidth(bandwidth, 1 << 14)
    if not (isinstance(tolerance, (int, float)) and 0.0 <= tolerance < 1.0):
        raise BadInput(f"tolerance={tolerance!r}: pass a number from 0 up to 1; 0.02 is two points")
    gates = checked_gates(fail_on, quick)
    announce = step or (lambda _: None)
    announce("reading")
    asked = names("variables", variables)
    whole = _summarise(
        source,
        label,
        score,
        names("by", by),
        asked,
        not quick,
        intersections,
        bins,
        key,
        positive,
        drop_missing,
        seed,
        rows_read,
        engine,
    )
    plan = Plan(alpha=alpha, limit=limit, levels=steps, bandwidth=width, seed=whole.spec.seed, tolerance=tolerance)
    settings = {
        "alpha": alpha,
        "limit": limit,
        "levels": steps,
        "bandwidth": width,
        "seed": plan.seed,
        "blocks": whole.spec.blocks,
        "quick": quick,
        "outcome": outcome,
        "date": date or _epoch_date(),
        "mask": MASK,
        "fail_on": gates,
        "tolerance": tolerance,
        "variables": _asked(whole) if isinstance(source, Sketch) else asked,
    }
    with one_thread():  # its products are too small to share: threads that wait for each other only burn time
        return _record(whole, plan, settings, name, announce)


def _asked(whole: Sketch) -> tuple[str, ...]:
    """Return the covariates that a sketch was made with, those of one value only among them."""
    constant = tuple(name for name, why in whole.spec.left_out if why == ONE_VALUE)
    return (*(c.name for c in whole.spec.codings), *constant)


def _summarise(
    source: Any,
    label: str | None,
    score: str | None,
    by: tuple[str, ...],
    variables: tuple[str, ...],
    tests: bool,
    intersections: bool,
    bins: Mapping[str, Sequence[float]] | None,
    key: Iterable[str] | str | None,
    positive: str | None,
    drop_missing: bool,
    seed: int,
    rows_read: Callable[[int], None] | None,
    engine: Any,
) -> Sketch:
    if isinstance(source, MulticlassPredictions):
        return sketch_of(source, seed)
    more: dict[str, Any] = {"variables": variables, "tests": tests and bool(variables)}
    if isinstance(source, Sketch):
        options = (by, label, score, key, positive, bins, intersections, drop_missing, engine is not None)
        if any(options) or seed not in (0, source.spec.seed):
            raise BadInput("a sketch brings its own columns, groups and seed: leave every option of reading out")
        return source.checked()
    if isinstance(source, Predictions):
        if label or score or key or positive or drop_missing or engine is not None:
            raise BadInput(
                "predictions bring their own labels and scores: leave label, score, key, positive, drop_missing and engine out"
            )
        return sketch(source, by=by, intersections=intersections, bins=bins, seed=seed, **more)
    return sketch(
        source,
        label=label,
        score=score,
        by=by,
        intersections=intersections,
        bins=bins,
        key=key,
        positive=positive,
        drop_missing=drop_missing,
        seed=seed,
        progress=None if rows_read is None else lambda _, n: rows_read(n),
        engine=engine,
        **more,
    )


def _record(whole: Sketch, plan: Plan, settings: Mapping[str, Any], name: str | None, announce: Step) -> AuditRecord:
    announce("certifying everyone")
    q = everyone(whole, plan.seed)
    overall = finding("everyone", (), q, plan, (plan.alpha, plan.alpha))
    estimates, checks = _estimates(whole, q, plan)
    bins, drawn = _bins(q, plan)
    announce("measuring")
    measured, unmeasured = _measures(whole, plan)
    announce("certifying groups")
    groups = group_findings(whole, plan)
    rows, quick = rows_held(whole), bool(settings["quick"])
    followed = follow(whole, rows, plan, quick, announce)
    searched, diagnosis = search(whole, rows, plan, quick, announce)
    weighed, repairs = weigh(whole, rows, followed.ranking.columns.get("variable", ()), plan, quick, announce)
    checks = [
        Check(code="error-everyone", status=_status(overall), estimate=overall.upper),
        _group_check(groups, whole),
        *checks,
        drawn,
        *unmeasured,
        *followed.checks,
        searched,
        weighed,
    ]
    curves = {
        "bins": bins,
        "reliability": smoothed(q, plan),
        "ranking": followed.ranking,
        **{f"variable_curve/{name}": curve for name, curve in followed.curves.items()},
        **{f"local_bias/{name}": curve for name, curve in followed.maps.items()},
        **diagnosis,
        "inference": inference(whole, plan),
        "repairs": repairs,
    }
    return AuditRecord(
        name=name or whole.name,
        verdict=worst([overall.verdict, *(g.verdict for g in groups)]),
        everyone=overall,
        groups=groups,
        checks=tuple(checks),
        estimates={**estimates, **measured},
        curves={name: curve for name, curve in curves.items() if curve.columns or curve.settings},
        data=_data(whole),
        settings=settings,
        versions=_versions(),
    )


def checked_gates(fail_on: Any, quick: bool) -> tuple[str, ...]:
    """Return the tests that count for the exit status, or refuse them."""
    gates = names("fail_on", fail_on)
    for gate in gates:
        if gate not in GATES:
            raise BadInput(f"fail_on={gate!r}: choose from {', '.join(GATES)}")
    if gates and quick:
        raise BadInput(f"fail_on={gates[0]!r} needs the tests that quick leaves out: drop one of the two")
    return gates


def _status(f: Finding) -> Status:
    return "measured" if f.verdict == "none" else f.verdict


def _group_check(groups: tuple[Finding, ...], whole: Sketch) -> Check:
    if not whole.spec.groupings:
        return Check(code="error-groups", status="not-run", reason="no groups were given: add --by age,sex")
    if not groups:
        return Check(code="error-groups", status="not-applicable", reason=f"every group has fewer than {MASK} people")
    verdict = worst([g.verdict for g in groups])
    return Check(code="error-groups", status="measured" if verdict == "none" else verdict)


def _estimates(whole: Sketch, q: Population, plan: Plan) -> tuple[dict[str, Estimate], list[Check]]:
    made: dict[str, Callable[[], Estimate]] = {
        "shift": lambda: shift(q, plan),
        "distance": lambda: distance(whole, alpha=plan.alpha, side="upper", seed=plan.seed),
        "jittered": lambda: jittered(whole, bandwidth=plan.bandwidth, alpha=plan.alpha, side="upper", seed=plan.seed),
    }
    estimates, checks = {}, []
    for code, make in made.items():
        try:
            estimates[code] = make()
            checks.append(Check(code=code, status="measured", estimate=estimates[code]))
        except NotComputable as e:
            checks.append(Check(code=code, status="not-applicable", reason=e.reason))
    return estimates, checks


def _measures(whole: Sketch, plan: Plan) -> tuple[dict[str, Estimate], list[Check]]:
    """Compute the standard measures; those that do not exist for this data become checks that did not apply."""
    from calibrant import measure

    found, checks = {}, []
    for name in MEASURES:
        try:
            found[name] = getattr(measure, name)(whole, alpha=plan.alpha)
        except NotComputable as e:
            checks.append(Check(code=name.replace("_", "-"), status="not-applicable", reason=e.reason))
    return found, checks


def _bins(q: Any, plan: Plan) -> tuple[Curve, Check]:
    try:
        return reliability(q, plan), Check(code="reliability", status="measured")
    except NotComputable as e:
        return NO_CURVE, Check(code="reliability", status="not-applicable", reason=e.reason)


def _data(whole: Sketch) -> dict[str, Any]:
    spec = whole.spec
    return {
        "label": spec.label,
        "score": spec.score,
        "positive": spec.positive,
        "by": tuple(tuple(g) for g in spec.groupings),
        "key": tuple(spec.key),
        "rows": whole.n,
        "cases": whole.cases,
        "dropped": whole.dropped,
        "covariates": tuple(c.name for c in spec.codings),
        "left_out": tuple(tuple(v) for v in spec.left_out),
        "fingerprint": whole.fingerprint,
        "files": tuple(whole.files[:20]),
        "file_count": len(whole.files),
        "variables": {v.name: {"kind": v.kind, "edges": tuple(v.edges), "folded": v.folded} for v in spec.variables},
        "warnings": ("one-class",) if whole.cases in (0, whole.n) else (),
    }


def _versions() -> dict[str, str]:
    found = {n: version(n) for n in ("numpy", "scipy", "numba", "pyarrow", "scikit-learn")}
    from calibrant import __version__

    return {"calibrant": __version__, "python": platform.python_version(), **found}


def _epoch_date() -> str | None:
    stamp = os.environ.get("SOURCE_DATE_EPOCH")
    if not stamp:
        return None
    if not stamp.isdigit() or len(stamp) > 11:
        raise BadInput(f"SOURCE_DATE_EPOCH={stamp!r}: set it to seconds since 1970, or unset it")
    from datetime import UTC, datetime

    return datetime.fromtimestamp(int(stamp), UTC).date().isoformat()
