"""Each question an audit asks: measured, or refused with a reason; judged against the limit in one place."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.audit.pooling import pool_levels, pool_name, pool_pairs
from calibrant.audit.record import Finding, Verdict
from calibrant.certify.raw_lower import raw_lower_of
from calibrant.certify.rounded import rounded_of
from calibrant.certify.rows_needed import rows_to_decide
from calibrant.data.sketch import Sketch
from calibrant.data.spec import Spec
from calibrant.errors import NotComputable
from calibrant.results import Curve, Estimate, Interval
from calibrant.views.population import INDEPENDENT, Population, pooled

MASK = 20
CURVE_EVENTS = 50
FEW_BINS = 10
DRAWS = 999


@dataclass(frozen=True)
class Plan:
    """Settings that every check shares."""

    alpha: float
    limit: float | None
    levels: int
    bandwidth: float
    seed: int
    tolerance: float = 0.0


def judge(low: float, high: float, limit: float | None) -> Verdict:
    """Return the three-valued verdict; "none" without a limit."""
    if limit is None:
        return "none"
    if low > limit:
        return "broken"
    return "met" if high <= limit else "undecided"


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return the worst verdict there is."""
    order: tuple[Verdict, ...] = ("broken", "undecided", "met")
    return next((v for v in order if v in verdicts), "none")


def finding(
    name: str,
    variables: tuple[tuple[str, str], ...],
    q: Population,
    plan: Plan,
    spend: tuple[float, float],
    members: int = 0,
) -> Finding:
    """Certify and judge one population; `spend` is for the lower and the upper end."""
    level = 1.0 - plan.alpha
    lower = raw_lower_of(q, spend[0], level, plan.seed)
    upper = rounded_of(q, plan.levels, (0.0, spend[1]), level, plan.seed)
    low, high = lower.interval.low, upper.interval.high
    error = min(max(upper.value, low), high) if low <= high else upper.value
    verdict = judge(low, high, plan.limit)
    needed = None
    if verdict == "undecided" and plan.limit is not None:
        needed = rows_to_decide(q, error, plan.limit, plan.levels, spend)
    return Finding(
        id=name,
        variables=variables,
        rows=q.n,
        cases=q.cases,
        expected=q.cells.expected,
        lower=lower,
        upper=upper,
        error=error,
        verdict=verdict,
        rows_needed=needed,
        pooled=members,
    )


def group_populations(whole: Sketch) -> list[tuple[tuple[tuple[str, str], ...], Population, int]]:
    """Return name, population and pool size of every group that may be shown.

    Levels that are pooled in their own variable stay together in every pair table; otherwise a pooled level's
    count would follow from the pair table's margins.
    """
    out, base = [], 0
    rows = whole.group_levels.sum(axis=(1, 2, 3))
    pools: dict[str, list[tuple[int, ...]]] = {}
    for g, names in enumerate(whole.spec.groupings):
        size = whole.spec.sizes[g]
        if len(names) == 1:
            shown = pools[names[0]] = pool_levels(rows[base : base + size].tolist(), MASK)
        else:
            shown = _pair_pools(rows[base : base + size], pools[names[0]], pools[names[1]], whole.spec, names)
        labels = whole.spec.group_names(g)
        for members in shown:
            present = int(np.count_nonzero(rows[[base + m for m in members]]))
            q = pooled(whole, [base + m for m in members])
            out.append((_group_name([labels[m] for m in members]), q, present if present > 1 else 0))
        base += size
    return out


def _pair_pools(
    rows: Any, first: list[tuple[int, ...]], second: list[tuple[int, ...]], spec: Spec, names: tuple[str, ...]
) -> list[tuple[int, ...]]:
    """Pool the cells of a pair table over levels already pooled; none if a variable pools away altogether."""
    if not first or not second:
        return []
    table = rows.reshape(-1, len(spec.by_name[names[1]].labels))
    coarse = np.array([[table[np.ix_(a, b)].sum() for b in second] for a in first])
    cells = [[a * table.shape[1] + b for a in i for b in j] for i in first for j in second]
    return [tuple(m for c in members for m in cells[c]) for members in pool_pairs(coarse, MASK)]


def _group_name(labels: list[tuple[tuple[str, str], ...]]) -> tuple[tuple[str, str], ...]:
    """Name one group, or the pool of several: by levels where they form a block of the table, else by cells."""
    levels = [list(dict.fromkeys(label[i][1] for label in labels)) for i in range(len(labels[0]))]
    if len(labels) == np.prod([len(v) for v in levels]):
        return tuple((labels[0][i][0], pool_name(v)) for i, v in enumerate(levels))
    variables = " and ".join(v for v, _ in labels[0])
    return ((variables, pool_name([" and ".join(level for _, level in label) for label in labels])),)


def group_findings(whole: Sketch, plan: Plan) -> tuple[Finding, ...]:
    """Certify all groups at once: alpha is shared over both ends of every group."""
    shown = group_populations(whole)
    spend = (plan.alpha / (2 * len(shown)),) * 2 if shown else (0.0, 0.0)
    return tuple(finding(_identifier(name), name, q, plan, spend, members) for name, q, members in shown)


def _identifier(name: tuple[tuple[str, str], ...]) -> str:
    text = "-".join(f"{v}-{level}" for v, level in name)
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
    digest = hashlib.sha256(repr(name).encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{slug}-{digest}" if slug else digest


def shift(q: Population, plan: Plan) -> Estimate:
    """Certify the mean residual of the raw score."""
    from calibrant.stats.betting import residual_mean_limits

    counts, sums, low, high = _coarse(q, np.arange(q.grid) * 256 // q.grid)
    limits = residual_mean_limits(counts, sums, low, high, plan.alpha)
    return Estimate(
        method="shift",
        value=(q.cases - q.cells.expected) / q.n,
        unit="probability",
        n=q.n,
        interval=Interval(low=limits[0], high=limits[1], level=1.0 - plan.alpha, guarantee="finite-sample"),
        assumes=INDEPENDENT,
        settings={"about": "the raw score"},
    )


def _coarse(q: Population, bins: Any) -> tuple[Any, Any, Any, Any]:
    """Sum the cells over bins of consecutive cells: counts, score sums, lower and upper ends."""
    size = int(bins.max()) + 1
    counts, sums = np.zeros((size, 2)), np.zeros((size, 2))
    np.add.at(counts, bins, q.cells.totals)
    np.add.at(sums, bins, q.cells.score_sums)
    first = np.searchsorted(bins, np.arange(size))
    last = np.searchsorted(bins, np.arange(size), side="right") - 1
    return counts, sums, q.cells.low[first], q.cells.high[last]


def reliability(q: Population, plan: Plan) -> Curve:
    """Return the binned reliability of the score, with gaps certified all at once.

    Bins are the steps of the display, neighbours joined until each holds enough people to show. Where fewer than
    ten come of that (rare events), they are twenty ranges of the raw score with about equally many people.
    """
    from calibrant.stats.betting import residual_mean_limits

    cases = q.cells.expected
    if min(cases, q.n - cases) < CURVE_EVENTS:
        raise NotComputable(
            f"a curve needs at least {CURVE_EVENTS} expected cases and {CURVE_EVENTS} expected non-cases"
        )
    bins = _bins(q, np.floor(q.cells.middle * plan.levels + 0.5).astype(np.int64))
    if bins[-1] + 1 < FEW_BINS:
        bins = max(bins, _bins(q, q.cells.equal_mass(2 * FEW_BINS)), key=lambda b: int(b[-1]))
    counts, sums, low, high = _coarse(q, bins)
    n = counts.sum(axis=1)
    delta = plan.alpha / len(n)
    limits = [
        residual_mean_limits(counts[i : i + 1], sums[i : i + 1], low[i : i + 1], high[i : i + 1], delta)
        for i in range(len(n))
    ]
    predicted, observed = sums.sum(axis=1) / n, counts[:, 1] / n
    columns = {
        "x": predicted,
        "x_low": low,
        "x_high": high,
        "predicted": predicted,
        "observed": observed,
        "gap": observed - predicted,
        "low": [v[0] for v in limits],
        "high": [v[1] for v in limits],
        "rows": n.astype(np.int64),
    }
    plain: Mapping[str, tuple[Any, ...]] = {k: tuple(np.asarray(v).tolist()) for k, v in columns.items()}
    return Curve(method="reliability", columns=plain, settings={"level": 1.0 - plan.alpha, "simultaneous": True})


def _bins(q: Population, first: Any) -> Any:
    """Join runs of cells, numbered without gaps or not, until each holds enough people to show."""
    return _joined(np.bincount(first, q.cells.totals.sum(axis=1)), max(MASK, q.n // 500))[first]


def smoothed(q: Population, plan: Plan) -> Curve:
    """Return the smoothed reliability curve, from cells of at least as many people as may be shown.

    Without columns where it cannot be computed: the check of the bins says why.
    """
    from calibrant.diagnose.reliability_curve import METHOD, curve_of

    try:
        return curve_of(q, 101, None, "probability", "smooth", plan.alpha, DRAWS, plan.seed, MASK)
    except NotComputable as e:
        return Curve(method=METHOD, columns={}, settings={"reason": e.reason})


def _joined(rows: Any, smallest: int) -> Any:
    """Assign consecutive bins to runs of at least `smallest` rows; a short last run joins the one before."""
    out, run, held = np.zeros(len(rows), dtype=np.int64), 0, 0
    for i, r in enumerate(rows):
        out[i] = run
        held += int(r)
        if held >= smallest:
            run, held = run + 1, 0
    if held < smallest and run:
        out[out == run] = run - 1
    return out
