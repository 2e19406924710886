"""Plausible audit records without an audit: what the tests of everything that reads a record share."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calibrant.arguments import judged_by
from calibrant.audit.judging import Shares, error_shown, verdicts
from calibrant.audit.record import About, AuditRecord, CheckRecord, Finding, Verdict, joint_error
from calibrant.results import Curve, Estimate, Interval, Layered, Outcome
from calibrant.search.nulls import INFLATED, LAWS
from calibrant.views.population import WHOLE

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>document.title='owned'</script>",
    "javascript:alert(1)//\"'`",
    "{{ 7 * 7 }}{% raw %}",
    "right\u202eto left\u2066",
    "line\none\ttab\x1b[31m\x00",
    "|pipes| `ticks` **stars** @everyone #1",
    "w" * 240,
    "",
    "zero\u200bwidth \ufeffmark",
    "&amp; <b>&lt;</b>",
    "שלום עולם",
)


def estimate(
    low: float,
    high: float,
    *,
    method: str = "certify.rounded",
    value: float | None = None,
    n: int = 1000,
    level: float = 0.95,
    guarantee: Any = "finite-sample",
    assumes: str = "independent rows",
    **settings: Any,
) -> Estimate:
    """Return an estimate with the interval from `low` to `high`."""
    return Estimate(
        method=method,
        value=(low + high) / 2 if value is None else value,
        unit="probability",
        n=n,
        interval=Interval(low=low, high=high, level=level, guarantee=guarantee),
        assumes=assumes,
        settings={"seed": 0, **settings},
    )


RAW = {"about": "the raw score", "grid": 16_384}
SHOWN = {"about": "the score in 50 rounding steps", "steps": 50, "delta": (0.0, 0.05)}


def mean_gap(low: float, high: float, value: float | None = None, n: int = 1000) -> Estimate:
    """Return the gap of everyone, certified."""
    return replace(estimate(low, high, method="measure.gap", value=value, n=n), settings={"about": RAW["about"]})


def moved(high: float, n: int = 1000) -> Estimate:
    """Return the distance from calibration, at most `high`."""
    return estimate(0.0, high, method="certify.distance", n=n, about=RAW["about"], route="rounded")


def jittered(high: float, n: int = 1000) -> Estimate:
    """Return the calibration error with noise added, at most `high`."""
    return estimate(0.0, high, method="certify.jittered", n=n, bandwidth=2**-6, **RAW)


def slug(variables: Sequence[tuple[str, str]]) -> str:
    """Return the id an audit would give the group."""
    text = "-".join(f"{k}-{v}" for k, v in variables)
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40]
    return f"group-{words}-{hashlib.sha256(repr(variables).encode()).hexdigest()[:4]}"


def verdict(low: float, high: float, limit: float | None) -> Verdict:
    """Return the three-valued verdict of a certified range."""
    if limit is None:
        return "not_checked"
    return "over" if low > limit else "within" if high <= limit else "undecided"


def layered(value: float, low: float, high: float) -> Layered:
    """Return a number in two layers: the certified range, and an ordinary one of half its width around the value."""
    ordinary = Interval(
        low=(value + min(low, value)) / 2, high=(value + max(high, value)) / 2, level=0.95, guarantee="asymptotic"
    )
    return Layered(
        value=value,
        interval=ordinary,
        guaranteed=Interval(low=low, high=high, level=0.95, guarantee="finite-sample"),
        p_value=0.001 if low > 0.0 or high < 0.0 else 0.4,
        assumes="independent rows",
        settings={"about": RAW["about"]},
    )


def finding(
    low: float = 0.004,
    high: float = 0.012,
    *,
    variables: Sequence[tuple[str, str]] = (),
    rows: int = 10_000,
    expected: float = 0.50,
    observed: float = 0.51,
    limit: float | None = 0.015,
    rows_needed: int | None = None,
    pooled: int = 0,
    error_shown: bool = False,
) -> Finding:
    """Return what was certified about one population; `expected` and `observed` are rates."""
    pairs = tuple((str(k), str(v)) for k, v in variables)
    says, gap = verdict(low, high, limit), observed - expected
    if says == "undecided" and rows_needed is None:
        rows_needed = int(rows * 7.3)
    off = estimate(gap - 0.01, gap + 0.01, method="certify.gap", value=gap, n=rows)
    lower = estimate(low, 1.0, method="certify.raw_lower", n=rows, delta=0.05, **RAW)
    upper = estimate(0.0, high, method="certify.rounded", n=rows, **SHOWN)
    return Finding(
        id="everyone" if not pairs else slug(pairs),
        variables=pairs,
        rows=rows,
        events=round(observed * rows),
        expected=expected * rows,
        lower=lower,
        upper=upper,
        error=layered(min(max((low + high) / 2, 0.0), 1.0), low, high),
        gap=layered(gap, off.low, off.high),
        observed_expected=layered(observed / expected, max(1 + off.low / expected, 0.0), 1 + off.high / expected)
        if expected * rows >= 1.0
        else None,
        verdict=says,
        by="error",
        limit=limit,
        error_shown=error_shown,
        rows_needed=rows_needed if says == "undecided" else None,
        pooled=pooled,
    )


BINS = ("x", "x_low", "x_high", "predicted", "observed", "gap", "low", "high", "rows")


def reliability(rows: int = 10_000, bins: int = 20, gap: float = 0.009, rate: float = 0.5) -> Curve:
    """Return a reliability curve with equally wide bins and a wave around `gap`."""
    tilt = [1 + (rate - 0.5) * 2 * (2 * (i + 0.5) / bins - 1) * 0.98 for i in range(bins)]
    heap = [max(t, 0.02) * (4.0 if i == 0 else 1.0) for i, t in enumerate(tilt)]
    share = [h / sum(heap) for h in heap]
    columns: dict[str, list[float]] = {k: [] for k in BINS}
    for i in range(bins):
        n, p = max(1, round(rows * share[i])), (i + 0.5) / bins
        mean_gap = max(-p, min(1 - p, gap + 0.012 * math.sin(i)))
        half = 3.0 * math.sqrt(p * (1 - p) / n)
        row = (
            p,
            i / bins,
            (i + 1) / bins,
            p,
            p + mean_gap,
            mean_gap,
            max(mean_gap - half, -1.0),
            min(mean_gap + half, 1.0),
            n,
        )
        for key, value in zip(columns, row, strict=True):
            columns[key].append(value)
    return Curve(method="reliability", columns=columns, settings={"level": 0.95, "simultaneous": True})


def curve(rows: int = 10_000, gap: float = 0.009, rate: float = 0.5, p_value: float = 0.001) -> Curve:
    """Return a smoothed reliability curve with a wave around `gap`; its band excludes zero if `p_value` is small."""
    columns: dict[str, list[float]] = {
        k: []
        for k in (
            "x",
            "predicted",
            "observed",
            "gap",
            "low",
            "high",
            "low_point",
            "high_point",
            "rows",
            "density_events",
            "density_nonevents",
            "stretch",
        )
    }
    top = 1.0 if rate >= 0.1 else 10 * rate
    for i in range(101):
        s = top * (0.01 + 0.98 * i / 100)
        mean_gap = max(-s, min(1 - s, top * (gap + 0.008 * math.sin(i / 8))))
        half = 3.0 * math.sqrt(s * (1 - s) / (rows / 12)) + (abs(mean_gap) if p_value > 0.05 else 0.0)
        row = (
            s,
            s,
            s + mean_gap,
            mean_gap,
            mean_gap - half,
            mean_gap + half,
            mean_gap - half / 1.5,
            mean_gap + half / 1.5,
            max(rows / 12, 20.0),
            s,
            1 - s,
            0,
        )
        for key, value in zip(columns, row, strict=True):
            columns[key].append(value)
    settings = {
        "alpha": 0.05,
        "axis": "probability",
        "band": "simultaneous",
        "bandwidth": 0.08 * top,
        "critical": 3.1,
        "draws": 999,
        "masked": 0,
        "method": "smooth",
        "p_value": p_value,
        "seed": 0,
        "smallest": 20,
        "statistic": 4.2,
        "trim": [0.01, 0.99],
    }
    return Curve(method="diagnose.reliability_curve", columns=columns, settings=settings)


def ranking(names: Sequence[str] = ("age", "marital", "sex"), found: int = 2, kind: str = "category") -> Curve:
    """Return a ranking of these variables, of which the first `found` are shown to add error."""
    lines = []
    for i, name in enumerate(names):
        beyond, p = max(0.0074 - 0.0019 * i, 0.0), 0.001 if i < found else min(0.96, 0.4 + 0.1 * i)
        lines.append(
            {
                "variable": name,
                "kind": kind,
                "beyond_gap": beyond,
                "beyond_gap_plain": beyond + 0.0004,
                "vece": 0.00828,
                "vece_plain": 0.00879,
                "p_value": p,
                "p_adjusted": p,
                "low": 0.00597,
                "high": 0.01169,
                "beyond_low": 0.2 * beyond,
                "beyond_high": beyond + 0.00344,
                "gain": None,
                "worst": "43 to 50",
                "worst_predicted": 0.783,
                "worst_observed": 0.802,
                "worst_gap": 0.0189,
                "worst_beyond_gap": 0.01016,
                "worst_rows": 28_148,
                "bins": 10,
                "bins_collapsed": 0,
            }
        )
    settings = {
        "alpha": 0.05,
        "draws": 999,
        "seed": 0,
        "gap": 0.00875,
        "null": "exact: outcomes simulated",
        "pairs": 0,
        "bins": 10,
        "n": 10_000,
        "variables_tried": len(names),
        "pairs_tried": 0,
        "pairs_null": None,
        "left_out": {},
        "not_certified": None,
        "view": "probability",
    }
    columns = {k: [line[k] for line in lines] for k in lines[0]}
    return Curve(method="diagnose.rank_variables", columns=columns, settings=settings)


def by_variable(
    name: str = "age",
    xs: Sequence[float | None] | None = None,
    labels: Sequence[str] = (),
    *,
    gaps: Sequence[float] | None = None,
    half: float = 0.006,
    p_value: float = 0.001,
    masked: int = 0,
    date: bool = False,
) -> Curve:
    """Return a curve along a variable, from 20 to 80 if nothing is given; `labels` make levels instead."""
    at = [None] * len(labels) if labels else xs or [20 + 1.5 * i for i in range(41)]
    columns: dict[str, list[Any]] = {
        k: []
        for k in (
            "group",
            "x",
            "label",
            "predicted",
            "observed",
            "gap",
            "low",
            "high",
            "low_point",
            "high_point",
            "rows",
            "density",
            "stretch",
        )
    }
    for i, x in enumerate(at):
        p, gap = 0.5 + 0.2 * math.sin(i / 9), 0.009 + 0.012 * math.sin(i / 6) if gaps is None else gaps[i]
        row = (
            "",
            x,
            labels[i] if labels else "missing" if x is None else f"{x:g}",
            p,
            p + gap,
            gap,
            gap - half,
            gap + half,
            gap - half / 2,
            gap + half / 2,
            900.0,
            0.4 / (i + 1),
            -1 if labels or x is None else 0,
        )
        for key, value in zip(columns, row, strict=True):
            columns[key].append(value)
    top = max(range(len(at)), key=lambda i: abs(columns["gap"][i]))
    settings = {
        "variable": name,
        "by": None,
        "view": "probability",
        "kind": "levels" if labels else "curve",
        "date": date,
        "span": 0.75,
        "degree": 2,
        "alpha": 0.05,
        "draws": 999,
        "seed": 0,
        "n": 10_000,
        "gap": 0.00875,
        "p_value": p_value,
        "statistic": 4.2,
        "critical": 2.9,
        "null": "exact",
        "band": "simultaneous",
        "masked": masked,
        "worst_group": "",
        "worst_at": at[top],
        "worst_label": columns["label"][top],
        "worst_gap": columns["gap"][top],
        "worst_low": max(abs(columns["gap"][top]) - half, 0.0),
        "worst_high": abs(columns["gap"][top]) + half,
        "consistent": None,
        "consistent_how": "both sides",
    }
    return Curve(method="diagnose.variable_curve", columns=columns, settings=settings)


def inference(names: Sequence[str] = ("age", "start", "sex"), found: int = 2) -> Curve:
    """Return what probabilities would say of the cases: a number, a date and a level, then levels of the rest."""
    kinds = ("number", "date", *("level" for _ in names))
    columns: dict[str, list[Any]] = {
        k: [] for k in ("variable", "level", "inferred", "observed", "bias", "low", "high")
    }
    for i, name in enumerate(names):
        kind = kinds[i]
        at, error = {"number": (43.6, 0.068), "date": (17_600.0, 5.0), "level": (0.35, 0.003)}[kind]
        z = 6.0 - i if i < found else 0.9 / (i + 1)
        level = names[-1 - i] if kind == "level" else None
        row = (name, level, at + z * error, at, z * error, (z - 3.2) * error, (z + 3.2) * error)
        for key, value in zip(columns, row, strict=True):
            columns[key].append(value)
    return Curve(
        method="measure.inferred_mean",
        columns=columns,
        settings={"alpha": 0.05, "simultaneous": "Bonferroni", "dates": tuple(names[1:2])},
    )


def followed(of: AuditRecord, order: Curve, curves: Mapping[str, Curve]) -> AuditRecord:
    """Return a record with a ranking and curves along variables."""
    done = tuple(CheckRecord(code=c.code, status="measured") if c.code == "variables" else c for c in of.checks)
    return drawn(replace(of, checks=done), ranking=order, **{f"variable_curve/{k}": c for k, c in curves.items()})


def drawn(of: AuditRecord, **curves: Curve) -> AuditRecord:
    """Return a record with these curves, in place of those of the same names."""
    return replace(of, curves={**of.curves, **curves})


ASSUMPTIONS = ("labelled", "at random", "odds", "any")


def unlabelled(of: AuditRecord, missing: int = 2_500, stands: float = 1.47) -> AuditRecord:
    """Return a record with so many people whose outcome is not known."""
    one, limit = of.everyone, of.settings["limit"]
    low, high = one.lower.interval.low, one.upper.interval.high
    ends = [(low * k, min(high / k, 1.0) if k else 1.0) for k in (1.0, 0.9, 0.6, 0.0)]
    lines = [
        ("everyone", name, odds, one.rows, missing, low, high, verdict(low, high, limit), stands)
        for name, odds, (low, high) in zip(ASSUMPTIONS, (None, 1.0, 2.0, None), ends, strict=True)
    ]
    heads = ("people", "assumption", "odds", "rows", "unlabelled", "low", "high", "verdict", "stands_to")
    columns = dict(zip(heads, zip(*lines, strict=True), strict=True))
    return drawn(of, missing_labels=Curve(method="certify.missing_labels", columns=columns, settings={}))


def variables(limit: float | None = 0.015) -> AuditRecord:
    """Return the record of the mock-up with a number, a date and a category that error follows, and one it does not."""
    days = [17_000 + 30.0 * i for i in range(41)]
    curves = {
        "age": by_variable(masked=6),
        "start": by_variable("start", days, date=True),
        "marital": by_variable("marital", labels=("married", "widowed", "separated"), gaps=(0.009, 0.002, -0.03)),
        "sex": by_variable("sex", labels=("female", "male"), gaps=(0.001, -0.002), p_value=0.6),
    }
    return followed(employment(limit), ranking(tuple(curves), found=3), curves)


def local_outcome(
    names: Sequence[str] = ("(score)", "age", "marital", "sex"),
    adjusted: Sequence[float] = (0.4, 0.001, 0.001, 0.8),
    p_value: float = 0.001,
    law: str = "exact simulation",
    **parts: Any,
) -> Outcome:
    """Return an outcome of the local calibration test."""
    held = {
        "p_global": 0.3,
        "p_local": p_value,
        "contradicted": 0,
        "variables": tuple(names),
        "variable_p": tuple(adjusted),
        "variable_adjusted_p": tuple(adjusted),
        **parts,
    }
    return Outcome(
        method="detect.local_calibration_test",
        statistic=0.0001,
        p_value=p_value,
        law=law,
        null="calibrated",
        alternative="not",
        settings={"draws": 999, "seed": 0},
        parts=held,
    )


def bias_map(
    name: str = "age",
    kind: str = "number",
    places: Sequence[Any] = tuple(20.0 + 2 * i for i in range(31)),
    gaps: Sequence[float] | None = None,
    *,
    half: float = 0.006,
    masked: Sequence[int] = (),
    scaling: str = "as it is",
    p_value: float = 0.001,
) -> Curve:
    """Return a bias map along one variable; places listed in `masked` are left out."""
    kept = [i for i in range(len(places)) if i not in masked]
    columns: dict[str, list[Any]] = {
        k: []
        for k in (
            "x",
            "label",
            "people",
            "gap",
            "predicted",
            "observed",
            "rows",
            "share",
            "low",
            "high",
            "p_adjusted",
        )
    }
    for i in kept:
        gap = 0.004 + 0.02 * math.sin(i / 5) if gaps is None else gaps[i]
        p, off = 0.5 + 0.1 * math.sin(i / 9), abs(gap) > half
        x = places[i]
        label = "missing" if x is None else f"{x:g}" if isinstance(x, float) else str(x)
        row = (
            x,
            label,
            400 + i,
            gap,
            p,
            p + gap,
            800.0,
            0.03,
            gap - half,
            gap + half,
            0.001 if off else 0.6,
        )
        for key, value in zip(columns, row, strict=True):
            columns[key].append(value)
    axis = {"name": name, "kind": kind, "places": tuple(places), "scaling": scaling}
    settings = {
        "alpha": 0.05,
        "axes": (axis,),
        "draws": 999,
        "n": 10_000,
        "p_value": p_value,
        "masked": len(masked),
        "contradicted": 0,
        "critical": 3.1,
        "law": "exact simulation",
        "seed": 0,
        "by": (),
        "band": "simultaneous over the whole map",
        "bandwidths": {"everyone": {}},
        "clusters": False,
        "weights": False,
        "groups_left_out": (),
        "kernel": "local",
        "statistic": 1.5,
    }
    return Curve(method="diagnose.local_bias", columns={k: tuple(v) for k, v in columns.items()}, settings=settings)


def strong_outcome(p_value: float = 0.001, null: str = "split", **settings: Any) -> Outcome:
    """Return an outcome of the strong calibration test."""
    held = {"draws": 999, "null": null, "tolerance": 0.0, "seed": 0, **settings}
    law = LAWS["fixed"] + INFLATED if null == "fixed" else "finite-sample: exact simulation"
    return Outcome(
        method="detect.strong_calibration_test",
        statistic=4.2,
        p_value=p_value,
        law=law,
        null="calibrated",
        alternative="not",
        settings=held,
        parts={"impossible": 0},
    )


def of_products(outcome: Outcome, smaller: str = "bayes_factor", largest: str = "products") -> Outcome:
    """The same outcome where products of three attributes were tested too."""
    own = {"p_models": 0.4, "p_bayes_factor": 0.001, "weights": (0.6, 0.4), "smaller": smaller, "largest": largest}
    counts = {"products": 3_000, "triples": 4_495, "strongest": ("age", "race", "the score")}
    return replace(outcome, parts={**outcome.parts, **own, **counts})


OF_STRONG = {"alternative": "two-sided", "detector": "default", "model": "both", "seed": 0, "tolerance": 0.0}


def control_chart(peak: float = 0.1, top: float = 4.2, line: float | None = 2.4, side: str = "underpredicts") -> Curve:
    """Return a control chart that peaks after this share of people."""
    share = [i / 50 for i in range(51)]
    score = [top * min(x / peak, 1.0) - 0.8 * max(x - peak, 0.0) for x in share]
    columns: dict[str, Any] = {"x": tuple(share), "evidence": tuple(score), "line": (line,) * 51}
    for b in range(1, 9):
        columns[f"null_{b}"] = tuple(math.sin(b * x * 3) * (b - 4) / 3 for x in share)
    settings = {
        "alpha": 0.05,
        "peak_share": peak,
        "peak_score": top,
        "peak_rows": round(10_000 * peak),
        "rows_tested": 10_000,
        "side": side,
        "null": "split",
        "line": line,
        "p_value": 0.001,
        "draws": 999,
        **OF_STRONG,
        "statistic": 4.2,
        "impossible": 0,
        "law": LAWS["fixed"],
        "peak_observed": 0.5,
        "peak_predicted": 0.4,
        "rows_beyond": 10_000,
        "threshold": 0.01,
    }
    return Curve(method="diagnose.control_chart", columns=columns, settings=settings)


def importance(names: Sequence[str] = ("age", "the score", "sex")) -> Curve:
    """Return what the statistic loses without each variable."""
    drops = [3.0 / (i + 1) for i in range(len(names))]
    columns = {
        "variable": tuple(names),
        "drop": tuple(drops),
        "low": tuple(d - 0.9 for d in drops),
        "high": tuple(d + 0.9 for d in drops),
        "share": tuple(d / 4.2 for d in drops),
    }
    return Curve(
        method="diagnose.importance",
        columns=columns,
        settings={
            **OF_STRONG,
            "alpha": 0.05,
            "statistic": 4.2,
            "repeats": 10,
            "rows_read": 10_000,
            "rows_tested": 24_000,
            "folds": 5,
            "null": "split",
        },
    )


def searched_subgroups(
    rules: Sequence[str] = ("age over 72 and sex = female", "age up to 30"), found: int = 1
) -> Curve:
    """Return rules, of which the first `found` are shown to be off."""
    n = len(rules)
    columns = {
        "rule": tuple(rules),
        "rows": (120,) * n,
        "share": (0.024,) * n,
        "predicted": (0.34,) * n,
        "observed": (0.79,) * n,
        "observed_low": (0.61,) * n,
        "observed_high": (0.91,) * n,
        "gap": (0.45,) * n,
        "low": tuple(0.2701 if i < found else -0.0301 for i in range(n)),
        "high": (0.5701,) * n,
        "excess": (6.0,) * n,
        "p_value": (0.001,) * n,
        "p_adjusted": (0.001,) * n,
        "side": ("underpredicts",) * n,
        "stability": (0.8,) * n,
        "finding": tuple(i < found for i in range(n)),
    }
    conditions = ({"variable": "age", "kind": "number", "above": 72.0},)
    settings = {"alpha": 0.05, "alternative": "two-sided", "model": "both", "seed": 0, "tolerance": 0.0}
    settings |= {"rows_judged": 5_000, "rows_grown": 5_000, "depth": 3, "fewest": 20, "min_share": 0.01}
    settings |= {"conditions": (conditions,) * n}
    return Curve(method="diagnose.subgroups.searched", columns=columns, settings=settings)


CORNER = "x2 over 0.8 and x3 over 0.8"


def subgroup_lines(
    rules: Sequence[str] = (CORNER, "age over 72 and sex = female", "the score over 0.8"),
    lows: Sequence[float] = (0.0261, -0.0821, -0.0093),
    highs: Sequence[float] = (0.1102, -0.0112, 0.0061),
    limit: float | None = 0.015,
) -> Curve:
    """Return distinct pockets with these ranges; the later ones lose a third of their people to those before."""
    n = len(rules)
    gaps = [(low + high) / 2 for low, high in zip(lows, highs, strict=True)]
    floors = [max(low, -high, 0.0) for low, high in zip(lows, highs, strict=True)]
    columns = {
        "rule": tuple(rules),
        "rows": tuple(2_400 + 300 * i for i in range(n)),
        "share": tuple((2_400 + 300 * i) / 60_000 for i in range(n)),
        "predicted": (0.31,) * n,
        "observed": tuple(0.31 + g for g in gaps),
        "gap": tuple(gaps),
        "low": tuple(lows),
        "high": tuple(highs),
        "floor": tuple(floors),
        "evidence": tuple(8.1 - i for i in range(n)),
        "gap_left": (None, *(g / 2 for g in gaps[1:])),
        "rows_left": (None, *(1_600 + 200 * i for i in range(1, n))),
        "side": tuple("underpredicts" if g > 0 else "overpredicts" for g in gaps),
        "stability": tuple(1.0 - 0.3 * i for i in range(n)),
        "over": tuple(limit is not None and f > limit for f in floors),
    }
    besides = ((("marital", "= married", 0.61, 0.38), ("x1", "over 0.5", 0.7, 0.5)), *(() for _ in rules[1:]))
    conditions = (
        {"variable": "x2", "kind": "number", "above": 0.8},
        {"variable": "x3", "kind": "number", "above": 0.8},
    )
    settings = {
        "alpha": 0.05,
        "besides": besides[:n],
        "subgroups": 103_657,
        "conditions": (conditions,) * n,
        "halves": 10,
        "limit": limit,
        "min_size": 0.01,
        "n": 60_000,
        "order": 2,
        "seed": 0,
    }
    return Curve(method="diagnose.subgroups", columns=columns, settings=settings)


def subgroup_map(
    names: Sequence[str] = ("x2", "x3"),
    levels: Sequence[str] = (),
    blank: Sequence[tuple[int, int]] = ((0, 0), (0, 10), (10, 0)),
    gap: float = 0.07,
) -> Curve:
    """Return the map of two traits in tenths and missing values, or of the first and these levels of the second."""
    tenths = ("up to 0.1", *(f"0.{i} to {(i + 1) / 10:g}" for i in range(1, 9)), "over 0.9", "missing")
    second = tuple(levels) or tenths
    cells = [(i, j) for i in range(len(tenths)) for j in range(len(second)) if (i, j) not in blank]
    off = [gap if i in (8, 9) and j in (8, 9) else 0.013 * math.sin(3 * i + 5 * j) for i, j in cells]
    columns = {
        "first": tuple(i for i, _ in cells),
        "second": tuple(j for _, j in cells),
        "rows": tuple(600 if 10 not in c else 40 for c in cells),
        "predicted": (0.3,) * len(cells),
        "observed": tuple(0.3 + g for g in off),
        "gap": tuple(off),
    }
    axes = (
        {"name": names[0], "kind": "number", "labels": tenths},
        {"name": names[1], "kind": "category" if levels else "number", "labels": second},
    )
    settings = {"axes": axes, "n": 60_000, "subgroups": (((8, 10), (8, 10)),), "rules": (CORNER,), "seed": 0}
    return Curve(method="diagnose.subgroup_map", columns=columns, settings=settings)


def subgroup_outcome(p_value: float = 0.002, detected_by: str = "scan") -> Outcome:
    """Return an outcome of the pocket test."""
    return Outcome(
        method="detect.subgroup_test",
        statistic=p_value,
        p_value=p_value,
        alternative="off",
        null="calibrated",
        law="weighted Bonferroni; boxes, finite-sample: exact simulation; models, finite-sample: exact simulation",
        settings={"order": 2, "min_size": 0.01, "tolerance": 0.0, "draws": 999, "null": "simulated", "seed": 0},
        parts={
            "p_scan": p_value / 2,
            "p_adaptive": 0.4,
            "weight": 0.5,
            "detected_by": detected_by,
            "subgroups": 103_657,
            "impossible": 0,
        },
    )


def scanned(
    of: AuditRecord,
    low: float = 0.0261,
    high: float = 0.119,
    *,
    p_value: float | None = 0.002,
    needed: int | None = 240_000,
    box: str | None = CORNER,
    lines: Curve | None = None,
    drawn_map: Curve | None = None,
) -> AuditRecord:
    """Return a record in which unnamed pockets were certified and searched."""
    limit = of.settings["limit"]
    says = verdict(low, high, limit)
    settings = {
        "about": "the worst of 103,657 subgroups",
        "attributes": ("the score", *(f"x{i}" for i in range(1, 9))),
        "order": 2,
        "subgroups": 103_657,
        "min_size": 0.01,
        "clear_size": 0.05,
        "seed": 0,
        "subgroup_low": box if low > 0 else None,
        "conditions_low": (),
        "rows_low": 2_400 if low > 0 and box else None,
        "share_low": 0.04 if low > 0 and box else None,
        "subgroup_high": "x5 up to 0.2",
        "conditions_high": (),
        "rows_high": 12_000,
        "share_high": 0.2,
        "rows_needed": needed if says == "undecided" else None,
        "rows_at_least": False,
    }
    found = replace(estimate(low, high, method="certify.subgroups", n=of.everyone.rows), settings=settings)
    outcome = None if p_value is None else subgroup_outcome(p_value, "scan" if p_value <= 0.05 else "neither")
    check = CheckRecord(code="subgroups", status="measured" if limit is None else says, estimate=found, outcome=outcome)
    curves = {"subgroups": lines or subgroup_lines(limit=limit), "subgroup_map": drawn_map or subgroup_map()}
    return replace(
        of,
        verdict="over" if says == "over" else of.verdict,
        verdicts=verdicts([of.everyone, *of.groups], [check]),
        error_shown=error_shown([of.everyone, *of.groups], [check], 0.05),
        checks=(*of.checks, check),
        estimates={**of.estimates, "subgroups": found},
        curves={**of.curves, **curves},
    )


def searched(
    of: AuditRecord,
    local: Outcome | None = None,
    strong: Outcome | None = None,
    maps: Mapping[str, Curve] | None = None,
    **curves: Curve,
) -> AuditRecord:
    """Return a record in which these tests were run."""
    made = {"local-calibration": local, "strong-calibration": strong}
    done = tuple(
        CheckRecord(code=c.code, status="measured", outcome=made[c.code]) if made.get(c.code) is not None else c
        for c in of.checks
    )
    kept = {k: c for k, c in of.curves.items() if not k.startswith("local_bias/")}
    mapped = {f"local_bias/{k}": c for k, c in (maps or {}).items()}
    return replace(of, checks=done, curves={**kept, **mapped, **curves})


def hidden(limit: float | None = 0.015) -> AuditRecord:
    """Return the record of the mock-up with both tests of traits, three maps, a chart, bars and rules."""
    levels = ("married", "widowed", "separated")
    days = tuple(f"20{10 + i}-03-01" for i in range(12))
    maps = {
        "age": bias_map(),
        "marital": bias_map("marital", "category", levels, gaps=(0.009, 0.002, -0.03)),
        "start": bias_map("start", "date", days),
        "sex": bias_map("sex", "category", ("female", "male"), gaps=(0.001, -0.002), p_value=0.6),
    }
    return searched(
        variables(limit),
        local_outcome(),
        strong_outcome(),
        maps,
        control_chart=control_chart(),
        importance=importance(),
        searched_subgroups=searched_subgroups(),
    )


def repairs(recommended: str = "Isotonic", after: float = 0.0098, groups: int = 41, **columns: Any) -> Curve:
    """Return as audited and two repairs, judged on one half."""
    made = {
        "probability": ("as audited", "Isotonic", "AugmentedLogistic"),
        "recipe": ("", "Isotonic", "AugmentedLogistic"),
        "order": ("kept", "kept up to ties", "may change"),
        "scale": (None, None, "log-odds"),
        "error_low": (0.0061, 0.0, 0.0),
        "error_high": (0.0139, after, 0.0101),
        "brier": (0.1223, 0.1222, 0.1221),
        "log_loss": (0.3791, 0.3784, 0.3783),
        "auroc": (0.9040, 0.9040, 0.9042),
        "accuracy": (0.82, 0.82, 0.83),
        "impossible": (0, 0, 0),
        "local_p": (0.001, 0.0123, 0.21),
        "largest_gap": (0.037, 0.027, 0.026) if groups else (None,) * 3,
        "largest_gap_group": ("marital: separated",) * 3 if groups else (None,) * 3,
        "groups_better": (0, 27, 28),
        "groups_worse": (0, 4, 2),
        "groups_shown_better": (0, 9, 9),
        "groups_shown_worse": (0, 0, 0),
        "error_by_variable": (0.0102, 0.006, 0.002),
        "largest_rise": (0.0, 0.006, 0.004) if groups else (None,) * 3,
        "largest_rise_group": ("marital = widowed",) * 3 if groups else (None,) * 3,
        **{f"brier_change{end}": (None, -v, -v) for end, v in (("", 1e-4), ("_low", 2e-4), ("_high", 5e-5))},
        **{f"log_loss_change{end}": (None, -v, -v) for end, v in (("", 7e-4), ("_low", 1e-3), ("_high", 4e-4))},
        **columns,
    }
    verdicts = {
        "Isotonic": {
            "better": ("brier",),
            "worse": (),
            "line": "Isotonic: better in Brier score; nothing is shown to be worse",
        },
        "AugmentedLogistic": {
            "better": (),
            "worse": (),
            "line": "AugmentedLogistic: nothing is shown to be better or worse",
        },
    }
    settings = {
        "how": "halves",
        "basis": "guaranteed" if recommended != "as audited" else "",
        "rows_fit": 5_000,
        "rows_judged": 5_000,
        "events_judged": 2_500,
        "groups": groups,
        "alpha": 0.05,
        "steps": 50,
        "tests": ("local",),
        "test_rows": 5_000,
        "draws": 999,
        "left_out": (),
        "recommended": recommended,
        "by_variable": "age",
        "verdicts": verdicts,
    }
    return Curve(method="repair.evaluate", columns=made, settings=settings)


def repaired(limit: float | None = 0.015, **settings: Any) -> AuditRecord:
    """Return the record of the mock-up with repairs compared."""
    of = hidden(limit)
    done = tuple(CheckRecord(code="repair", status="measured") if c.code == "repair" else c for c in of.checks)
    return drawn(replace(of, checks=done), repairs=repairs(**settings))


def fixed(
    limit: float | None = 0.015,
    candidate: str = "AugmentedLogistic",
    command: str = "augmented-logistic",
    after: Sequence[tuple[float, float]] = ((0.0021, 0.0092), (0.0024, 0.0262), (0.0011, 0.0131)),
    tests: Mapping[str, Any] | None = None,
) -> Curve:
    """Return everyone, a group and a pocket before and after a repair; with no candidate there is no after."""
    who = (
        ("everyone", "everyone", "everyone", "", "", 138_838, 0.0064, 0.0118),
        ("nativity = foreign born", "group", "group", "nativity", "foreign born", 20_160, 0.0162, 0.0334),
        (CORNER, "subgroup-1", "subgroup", "", "", 5_620, 0.0261, 0.0442),
    )
    columns: dict[str, list[Any]] = {
        k: []
        for k in (
            *("id", "who", "kind", "variable", "value", "rows", "measure", "now_low", "now_high", "now"),
            *("after_low", "after_high", "after", "now_gap", "after_gap"),
        )
    }
    gaps = iter(((0.0089, 0.0012), (0.0274, 0.0041), (0.0343, 0.0062)))
    for (name, id_, kind, variable, value, rows, low, high), (a, b) in zip(who, after, strict=True):
        reported = (a, b, verdict(a, b, limit)) if candidate else (None, None, None)
        now_gap, after_gap = next(gaps)
        reported = (*reported, now_gap, after_gap if candidate else None)
        measure = "gap" if kind == "subgroup" else "error"
        row = (id_, name, kind, variable, value, rows, measure, low, high, verdict(low, high, limit), *reported)
        for key, cell in zip(columns, row, strict=True):
            columns[key].append(cell)
    tried = ("Platt", "Isotonic", "AugmentedLogistic")
    settings = {
        "candidate": candidate,
        "command": command if candidate else "",
        "rows_fit": 138_839,
        "rows_judged": 138_838,
        "test_rows": 20_000,
        "alpha": 0.05,
        "limit": limit,
        "judge": "error",
        "groups": 41,
        "about": {"now": WHOLE, "after": WHOLE if candidate else None},
        "candidates": tuple(
            {"name": n, "command": n.lower(), "over": 1, "undecided": 1, "within": 1, "low": 0.0021, "high": 0.0092}
            for n in tried
        ),
        "tests": tests or {"local": {"now": 0.001, "after": 0.34}},
    }
    return Curve(method="repair.evaluate.fixed", columns={k: tuple(v) for k, v in columns.items()}, settings=settings)


def whole(limit: float | None = 0.015, use: str | None = None, **settings: Any) -> AuditRecord:
    """Return the record of the mock-up with all that an audit finds: pockets, repairs, before and after."""
    of = drawn(scanned(repaired(limit)), fixed=fixed(limit))
    reported = About(noun="people", intended_use=use).to_dict()
    rate = {"column": "date", "first": "2015-01-01", "last": "2018-12-31", "rows_a_year": 69_000.0}
    bound = estimate(0.0, 0.049, method="certify.worst_group", n=of.everyone.rows)
    return replace(
        of,
        estimates={**of.estimates, "worst_group": bound},
        data={**of.data, "arrival": rate},
        settings={**of.settings, "about": reported, **settings},
    )


def measures(n: int = 10_000) -> dict[str, Estimate]:
    """Return the standard measures, as `calibrant.measure` would."""
    reported = {
        "ece": (0.0112, 0.0089, 0.0141),
        "smooth_ece": (0.0093, 0.0078, 0.0110),
        "brier": (0.1224, 0.1216, 0.1232),
        "log_loss": (0.3791, 0.3768, 0.3815),
        "auroc": (0.9040, 0.9030, 0.9051),
        "calibration_intercept": (0.075, 0.064, 0.086),
        "calibration_slope": (1.021, 1.013, 1.029),
        "observed_expected": (1.018, 1.015, 1.021),
    }
    return {
        k: Estimate(
            method=f"measure.{k}",
            value=v,
            unit="probability" if k.endswith("ece") else "",
            n=n,
            interval=Interval(low=a, high=b, level=0.95, guarantee="asymptotic"),
            assumes="independent rows",
        )
        for k, (v, a, b) in reported.items()
    }


NOT_BUILT = (
    ("variables", "Ranking the variables is not built in this version; the groups show each value."),
    ("local-calibration", "The local calibration test is not built in this version."),
    ("strong-calibration", "The strong calibration test is not built in this version."),
    ("repair", "Comparing repairs is not built in this version."),
)
RANK = {"over": 0, "undecided": 1, "within": 2, "not_checked": 3}


def worst(findings: Sequence[Finding]) -> Verdict:
    """Return the worst verdict of all."""
    return min((f.verdict for f in findings), key=RANK.__getitem__)


def checks(everyone: Finding, groups: Sequence[Finding], estimates: Mapping[str, Estimate]) -> tuple[CheckRecord, ...]:
    """Return the checks an audit of these findings would list."""

    def status(v: Verdict) -> Any:
        return "measured" if v == "not_checked" else v

    out = [CheckRecord(code="error-everyone", status=status(everyone.verdict), estimate=everyone.upper)]
    if groups:
        out.append(CheckRecord(code="error-groups", status=status(worst(groups))))
    else:
        out.append(CheckRecord(code="error-groups", status="not-run", reason="No groups were given."))
    for code in ("gap", "distance", "jittered"):
        if code in estimates:
            out.append(CheckRecord(code=code, status="measured", estimate=estimates[code]))
        else:
            out.append(CheckRecord(code=code, status="not-applicable", reason="Every score is the same (0.31)."))
    out.append(CheckRecord(code="reliability", status="measured"))
    out += [CheckRecord(code=code, status="not-run", reason=reason) for code, reason in NOT_BUILT]
    return tuple(out)


def record(
    everyone: Finding | None = None,
    groups: Sequence[Finding] = (),
    *,
    limit: float | None = 0.015,
    name: str = "employment_ma",
    estimates: Mapping[str, Estimate] | None = None,
    bins: Curve | None = None,
    line: Curve | None = None,
    measured: Mapping[str, Estimate] | None = None,
    data: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AuditRecord:
    """Return a whole record around `everyone` and `groups`; extra keywords replace settings."""
    one, *groups = (
        replace(
            f,
            by=judged_by(settings.get("judge", "error"), "groups" if f.variables else "everyone"),
            limit=limit if settings.get("limit_relative") is None else f.limit,
        )
        for f in (everyone or finding(limit=limit), *groups)
    )
    gap, half = one.gap.value, 2.0 * math.sqrt(0.25 / one.rows)
    held = estimates
    if held is None:
        held = {
            "gap": mean_gap(max(gap - half, -1.0), min(gap + half, 1.0), gap, one.rows),
            "distance": moved(min(1.0, one.upper.interval.high + 0.004)),
            "jittered": jittered(min(1.0, one.upper.interval.high + 0.002)),
        }
    by = list(dict.fromkeys(k for g in groups for k, _ in g.variables))
    shares = Shares(0.05, settings.get("judge", "error"))
    used = (
        *((*shares.of_everyone(), *(shares.of_groups() if groups else ())) if limit is not None else ()),
        *shares.of_error_shown(bool(groups)),
    )
    return AuditRecord(
        name=name,
        verdict=worst([one, *groups]),
        verdicts={
            "everyone": one.verdict,
            "groups": worst(groups) if groups else "not_checked",
            "subgroups": "not_checked",
        },
        error_shown={"everyone": one.error_shown, "groups": any(g.error_shown for g in groups), "subgroups": False},
        shares=used,
        joint_error=joint_error(used),
        everyone=one,
        groups=tuple(groups),
        checks=checks(one, groups, held),
        estimates={**held, **(measured or {})},
        curves={
            "bins": bins or reliability(one.rows, rate=one.expected / one.rows),
            "reliability": line or curve(one.rows, rate=one.expected / one.rows),
        },
        data={
            "label": "employed",
            "score": "predicted_probability",
            "by": [[name] for name in by],
            "positive": "1",
            "percent": False,
            "missing": "level",
            "cluster": None,
            "clusters": None,
            "weights": None,
            "rows": one.rows,
            "events": one.events,
            "dropped": 0,
            "unlabelled": 0,
            "covariates": [],
            "left_out": [],
            "columns": {},
            "repeats": {"rows": 0, "of": one.rows, "exact": True, "by": "row", "copied": False, "times": 1.0},
            "fingerprint": "9f2c41d7a0be6635" * 4,
            "files": ["employment_ma.parquet"],
            "file_count": 1,
            "key": [],
            "variables": {name: {"kind": "category", "edges": [], "folded": 0} for name in by},
            "warnings": [],
            "display": {"steps": 50},
            "arrival": None,
            **(data or {}),
        },
        settings={
            "alpha": 0.05,
            "limit": limit,
            "judge": "error",
            "about": About().to_dict(),
            "steps": 50,
            "bandwidth": 2**-6,
            "seed": 0,
            "blocks": 8,
            "quick": False,
            "outcome": None,
            "date": None,
            "mask": 20,
            "fail_on": [],
            "tolerance": 0.0,
            "missing_odds": 2.0,
            **settings,
        },
        versions={"calibrant": "0.1.0", "numpy": "2.3.1", "python": "3.12"},
    )


EMPLOYMENT = (  # variable, value, rows, low, high, expected, observed
    ("nativity", "foreign born", 40_333, 0.016208, 0.033404, 0.5615, 0.58518),
    ("citizenship", "naturalised", 22_584, 0.014021, 0.038886, 0.58178, 0.60707),
    ("age", "45–54", 37_822, 0.010690, 0.027330, 0.77624, 0.79480),
    ("age", "25–34", 34_717, 0.009884, 0.033494, 0.77371, 0.79359),
    ("age", "35–44", 31_098, 0.008391, 0.029460, 0.784, 0.802),
    ("marital", "divorced", 22_077, 0.007300, 0.036988, 0.553, 0.575),
    ("schooling", "bachelor’s", 52_579, 0.006831, 0.022826, 0.718, 0.731),
    ("sex", "male", 133_658, 0.006359, 0.015844, 0.512, 0.521),
    ("year", "2018", 70_131, 0.006090, 0.020820, 0.494, 0.505),
    ("citizenship", "not a citizen", 17_749, 0.005770, 0.038954, 0.536, 0.557),
    ("marital", "married", 113_995, 0.005733, 0.017660, 0.648, 0.660),
    ("age", "65–74", 30_311, 0.005369, 0.030988, 0.294, 0.310),
    ("race", "some other race", 8_491, 0.005220, 0.050074, 0.426, 0.452),
    ("year", "2017", 69_635, 0.004207, 0.018557, 0.492, 0.503),
    ("schooling", "some college", 59_343, 0.004162, 0.023307, 0.583, 0.593),
    ("race", "Black", 16_793, 0.003978, 0.036490, 0.430, 0.451),
    ("disability", "with a disability", 37_516, 0.003601, 0.022120, 0.181, 0.189),
    ("schooling", "high school", 53_067, 0.001924, 0.022503, 0.491, 0.502),
    ("year", "2016", 69_126, 0.001865, 0.016154, 0.493, 0.502),
    ("race", "Asian", 17_479, 0.001187, 0.033599, 0.498, 0.499),
    ("race", "pooled", 102, 0.0, 0.441733, 0.460, 0.520),
    ("race", "Native, tribe unspecified", 194, 0.0, 0.345967, 0.370, 0.381),
    ("race", "American Indian", 306, 0.0, 0.276078, 0.448, 0.444),
    ("marital", "separated", 3_377, 0.0, 0.078646, 0.566, 0.597),
    ("citizenship", "born abroad, US parents", 2_837, 0.0, 0.066793, 0.510, 0.525),
    ("citizenship", "born in US territories", 4_205, 0.0, 0.064489, 0.375, 0.382),
    ("race", "two or more", 7_743, 0.0, 0.042085, 0.375, 0.375),
    ("age", "18–24", 29_577, 0.0, 0.032226, 0.553, 0.551),
    ("marital", "widowed", 13_955, 0.0, 0.027487, 0.164, 0.165),
    ("schooling", "post-graduate", 42_157, 0.0, 0.019830, 0.725, 0.731),
    ("age", "55–64", 40_657, 0.0, 0.019702, 0.678, 0.678),
    ("year", "2015", 68_785, 0.0, 0.015352, 0.493, 0.496),
    ("age", "75 and over", 22_437, 0.0, 0.015186, 0.074, 0.075),
    ("disability", "without a disability", 240_161, 0.006145, 0.013422, 0.541, 0.550),
    ("sex", "female", 144_019, 0.005334, 0.014387, 0.474, 0.483),
    ("race", "White", 226_569, 0.005323, 0.013391, 0.503, 0.512),
    ("citizenship", "born in the US", 230_302, 0.003308, 0.011755, 0.482, 0.488),
    ("nativity", "native", 237_344, 0.003167, 0.011491, 0.481, 0.487),
    ("marital", "never married", 124_273, 0.001476, 0.013224, 0.374, 0.378),
    ("schooling", "no diploma", 70_531, 0.000896, 0.011105, 0.111, 0.115),
    ("age", "under 18", 51_058, 0.0, 0.006947, 0.033, 0.033),
)


def employment(limit: float | None = 0.015, **settings: Any) -> AuditRecord:
    """Return the record the mock-up shows: 41 groups, one broken, most undecided."""
    groups = [
        finding(
            lo,
            hi,
            variables=[(k, v)],
            rows=n,
            expected=e,
            observed=o,
            limit=limit,
            rows_needed=277_677 + 20_000_000_000 // n,
            pooled=2 if v == "pooled" else 0,
        )
        for k, v, n, lo, hi, e, o in EMPLOYMENT
    ]
    one = finding(0.006358, 0.011819, rows=277_677, expected=0.49255, observed=0.50130, limit=limit)
    estimates = {
        "gap": mean_gap(0.00745, 0.01003, 0.00875, one.rows),
        "distance": moved(0.01563, one.rows),
        "jittered": jittered(0.0131, one.rows),
    }
    return record(one, groups, limit=limit, estimates=estimates, outcome="employed", **settings)


def hostile() -> AuditRecord:
    """Return a record whose every name tries to break out of the page."""
    groups = [
        finding(0.03 if i == 0 else 0.001 * i, 0.06, variables=[(HOSTILE[-1 - i], text)], rows=4_000)
        for i, text in enumerate(HOSTILE)
    ]
    one = finding(0.029, 0.046, rows=16_281, expected=0.31, observed=0.24)
    data = {
        "label": HOSTILE[0],
        "score": HOSTILE[1],
        "files": [HOSTILE[4], HOSTILE[6]],
    }
    made = record(one, groups, name=HOSTILE[1], data=data, outcome=HOSTILE[0], date=HOSTILE[10])
    curves = {HOSTILE[i]: by_variable(HOSTILE[i]) for i in (0, 1, 7)} | {
        HOSTILE[4]: by_variable(HOSTILE[4], labels=HOSTILE)
    }
    maps = {HOSTILE[i]: bias_map(HOSTILE[i]) for i in (0, 7)} | {
        HOSTILE[4]: bias_map(HOSTILE[4], "category", HOSTILE, gaps=[0.01 * (1 + i % 3) for i in range(len(HOSTILE))]),
    }
    made = drawn(made, inference=inference(HOSTILE, found=4))
    return searched(
        followed(made, ranking(HOSTILE, found=5), curves),
        local_outcome(HOSTILE, [0.001] * 6 + [0.5] * 6),
        strong_outcome(),
        maps,
        control_chart=control_chart(),
        importance=importance(HOSTILE),
        searched_subgroups=searched_subgroups(HOSTILE, found=6),
    )


def hostile_subgroups() -> AuditRecord:
    """Return the same with pockets whose rules, traits and levels try it too."""
    lines, box = subgroup_lines(HOSTILE[:3]), HOSTILE[7]
    calibrator_ = subgroup_map((HOSTILE[0], HOSTILE[7]), HOSTILE)
    return scanned(hostile(), lines=lines, box=box, drawn_map=calibrator_)


def tiny() -> AuditRecord:
    """Return a record of 64 people, 9 cases, two groups and nothing to draw."""
    groups = [
        finding(0.0, 0.41, variables=[("sex", "female")], rows=34, expected=0.12, observed=0.15),
        finding(0.0, 1.0, variables=[("sex", "male")], rows=30, expected=0.11, observed=0.13),
    ]
    one = finding(0.0, 0.29, rows=64, expected=0.12, observed=9 / 64, rows_needed=14_321)
    return record(one, groups, name="pilot", estimates={"gap": mean_gap(-0.07, 0.12, 0.02)})


def mixture(everyone: Verdict, groups: Sequence[Verdict], limit: float = 0.015) -> AuditRecord:
    """Return a record with exactly these verdicts."""
    ranges = {"within": (0.002, 0.007), "undecided": (0.004, 0.039), "over": (0.029, 0.046)}
    found = [
        finding(*ranges[v], variables=[("region", f"region {i}")], rows=3_120, limit=limit)
        for i, v in enumerate(groups)
    ]
    one = finding(*ranges[everyone], rows=204_311, expected=0.31, observed=0.24, limit=limit)
    return record(one, found, limit=limit, name="synthetic")


def many(groups: int = 2_000, limit: float | None = 0.015) -> AuditRecord:
    """Return a record with a great many groups of every verdict."""
    found = [
        finding(
            0.0001 * (i % 300),
            0.0001 * (i % 300) + 0.004 + 0.00001 * i,
            limit=limit,
            rows=400 + i,
            variables=[(f"variable {i % 8}", f"value {i:04d}")],
        )
        for i in range(groups)
    ]
    return record(None, found, limit=limit, name="many")


def rare(limit: float | None = 0.02) -> AuditRecord:
    """Return a record of events that happen to 3 in 1,000."""
    one = finding(0.0002, 0.0011, rows=200_000, expected=0.003, observed=0.0034, limit=limit)
    columns: dict[str, list[float]] = {k: [] for k in BINS}
    for i in range(20):
        p = 0.0003 * (i + 0.5)
        gap, ends = p * 1.12 - p, (0.0003 * i, 0.0003 * (i + 1))
        row = (p, *ends, p, p * 1.12, gap, p * 0.12 - 0.001, p * 0.12 + 0.001, 10_000)
        for key, value in zip(columns, row, strict=True):
            columns[key].append(value)
    bins = Curve(method="reliability", columns=columns, settings={"level": 0.95, "simultaneous": True})
    return record(one, limit=limit, name="rare", bins=bins, line=curve(200_000, 0.02, rate=0.0006))


def unshown() -> AuditRecord:
    """Return a record whose groups were named and are all too small to show."""
    made = record(
        data={"by": [["site"], ["age"]], "variables": {"site": {"kind": "category", "edges": [], "folded": 7}}}
    )
    reason = "every group has fewer than 20 people"
    small = CheckRecord(code="error-groups", status="not-applicable", reason=reason)
    listed = tuple(small if c.code == "error-groups" else c for c in made.checks)
    return replace(made, checks=listed)


def kinds_of_curve() -> dict[str, Curve]:
    """Return curves of the kinds that every output draws, by what each is along."""
    return {
        "score": curve(),
        "number": by_variable(),
        "date": by_variable("start", xs=[18_000.0 + 30 * i for i in range(20)], date=True),
        "levels": by_variable("sex", labels=("female", "male"), gaps=(0.02, 0.0)),
        "number and missing": by_variable("income", xs=[1.0, 2.0, 3.0, None], gaps=[0.0, 0.0, 0.0, 0.05]),
        "map": bias_map(),
        "map of levels": bias_map("race", "category", ("asian", "black"), (0.02, 0.0)),
    }


def decision_lines(curve: Curve) -> list[Any]:
    """Return the lines of a comparison's decisions, as the judge made them."""
    from calibrant.repair.judge.decisions import DecisionChange

    c = curve.columns
    return [DecisionChange(**dict(zip(c, row, strict=True))) for row in zip(*c.values(), strict=True)]
