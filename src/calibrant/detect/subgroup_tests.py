"""Tests of subgroups: the scan of boxes of a few attributes, alone and joined with models of the residual."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from calibrant.arguments import check_int, checked_alpha, choice, number
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.detect.strong_calibration_test import strong_calibration_test
from calibrant.errors import NotComputable
from calibrant.results import Outcome
from calibrant.stats.cusum import Alternative, Boundary, off_by, within
from calibrant.stats.nulls import p_value
from calibrant.stats.subgroups.cluster_scan import LEAST_CLUSTERS, ClusterScan, ScannedRows, rests_on_clusters
from calibrant.stats.subgroups.scan import EXTRA, BoxScan, Scan, ScanResult, Subset, bound
from calibrant.views.boxes import (
    FEWEST,
    MIN_SIZE,
    ORDER,
    Tables,
    boxed,
    checked_size,
    condition,
    fewest_rows,
    of_levels,
    tables_of,
)
from calibrant.views.points import SIGNS
from calibrant.views.rules import Rule, text_of

ScanNull = Literal["auto", "simulated", "bound"]
SIDES: dict[Alternative, tuple[int, ...]] = {"two-sided": (0, 1), "greater": (0,), "less": (1,)}
NULLS = ("auto", "simulated", "bound")
LEAST_DRAWS = 19  # so that a p-value can be 0.05
MOST = 300_000  # rows up to which `auto` simulates: as many as a sketch holds
LAWS = {
    "simulated": "finite-sample: exact simulation of every row's outcome",
    "bound": "finite-sample: exact binomial tails, shared over the subgroups",
    "signs": SIGNS,
}
AT_EDGE = " at the edge of the tolerance"
IMPOSSIBLE = "exact: outcomes of probability zero under every rate within the tolerance happened: {}"


@takes_arrays
def scan_test(
    data: Predictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    order: int = ORDER,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
    min_size: float = MIN_SIZE,
    null: ScanNull = "auto",
    draws: int = 999,
    seed: int = 0,
) -> Outcome:
    r"""Test whether the probabilities are within a tolerance of the event rate in every box of a few attributes.

    Null hypothesis: ``|E[Y | p, x] - p| <= tolerance`` with probability one (two-sided), ``E[Y | p, x] - p <=
    tolerance`` (greater), ``p - E[Y | p, x] <= tolerance`` (less). An attribute is the score or a covariate cut into at
    most a dozen cells without looking at labels; a box is a run of cells of a number, or a level or two of a category,
    of each of up to `order` attributes. The score of a box is its standardised residual, and the statistic the largest
    margin by which a score exceeds what its box needs,

    .. math:: T = \max_b \Big( \big|\sum_{i \in b} (y_i - p_i)\big| \Big/ \sqrt{\sum_{i \in b} p_i (1 - p_i) + 4} - a_b
        \Big),

    `a` being the normal quantile at the box's share of 0.05; with a tolerance, the rows times the tolerance are taken
    off the sum.

    Parameters
    ----------
    data : Predictions or Sketch
        A sketch made with ``tests=True`` brings its own covariates and seed, and gives the same answer as its rows.
        Weights multiply residuals; where the data name clusters, spread and chance are by these clusters.
    variables : str or sequence of str, optional
        Covariates in addition to the score, up to 100; all that can be used by default.
    order : {1, 2, 3}
        Most attributes that a box combines.
    tolerance : float in [0, 1)
        How far off a probability may be, in probability units.
    alternative : {"two-sided", "greater", "less"}
        ``"greater"``: somewhere more happens than the model says.
    min_size : float in [0, 1)
        Least share of the rows that a box has; it has 20 rows in any case.
    null : {"auto", "simulated", "bound"}
        Simulate the outcomes; or bound the chance of any box being off so far. ``"auto"`` simulates up to 300,000 rows.
        With clusters either of the first two draws signs of clusters; the bound is for independent rows of equal
        weight.
    draws : int
        Simulated outcomes, 19 or more.
    seed : int

    Returns
    -------
    Outcome
        ``statistic`` is the margin of the box found: the largest one, or for the bound that of the smallest p-value.
        ``settings["null"]`` names the null used. In ``parts``: ``rule`` (text) and ``conditions`` (data) of the box,
        its ``rows``, ``share`` of the rows, ``predicted`` and ``observed`` rates, their ``gap``, its ``score`` and what
        it ``needed``, the ``side`` ("underpredicts": more happens than the model says; "overpredicts"), ``fixed``
        (whether the box is one of the family, which was fixed before any label was read: a best subset of levels is
        not), how many ``subgroups`` and ``tables`` there are, the largest score ``by_order`` (of the boxes of one
        attribute, two, three), ``impossible``, and covariates ``left_out`` with the reason. The box was chosen by these
        outcomes: its gap is no fair estimate; ``certify.subgroups`` has ranges that hold for all boxes at once.

    Raises
    ------
    BadInput
        No such covariate, or a setting that cannot be used; a sketch without the sums.
    NotComputable
        No box with 20 rows, or effective clusters; more than 100 covariates; ``"simulated"`` where the sketch does not
        hold every row; ``"bound"`` with weights or clusters.

    Notes
    -----
    **Assumes.** Rows, or clusters, independent given scores and covariates.
    **Guarantee.** Level alpha at any number of rows, with either null; by clusters asymptotically in their number: of
    100 clusters weighted with a coefficient of variation of 2, 8 of 100 calibrated data sets are rejected at 5%.
    *simulated:* outcomes of every row are drawn at the edge of the tolerance; one uniform number a row serves both
    sides, so that the simulated statistic is at least as large as that of any rates within the tolerance (as Theorem 4
    of Feng et al. 2024), and ``p = (1 + #{T* >= T}) / (draws + 1)``. *bound:* the exact binomial tail of each box at
    the edge of the tolerance, which bounds that of unequal rates (Hoeffding 1956), over the box's share of alpha; the
    smallest of them. *Weights:* every sum is of weighted outcomes, which are simulated; as exact. *Clusters:* a box
    rests on at least 20 effective clusters, V is the sum of squares of the clusters' sums in it, or what rows as alike
    as those of all clusters would have where that is larger, and chance gives every cluster a random sign. **Method.**
    All boxes from cumulative sums of the tables of all combinations of attributes. Two-sided, without a tolerance and
    with the simulated null, the best subset of a category's levels too, alone and within each run or level of every
    other attribute (linear-time subset scanning, Neill 2012): else its score need not rise with every event, as the
    argument asks. Not by clusters or weights.
    **Cost.** Bound: that of the tables, rows x tables additions. Simulated: rows x tables / 64 word operations a draw,
    and boxes x draws. **Reads.** Rows, or the sketch's tables and, for the simulated null, its rows.

    References
    ----------
    Neill (2012), "Fast subset scan for spatial pattern detection", doi:10.1111/j.1467-9868.2011.01014.x. Zhang, Neill
    (2016), "Identifying significant predictive bias in classifiers", arXiv:1611.08292. Hoeffding (1956),
    doi:10.1214/aoms/1177728178.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, income, p = rng.uniform(20, 90, 5000), rng.uniform(10, 60, 5000), rng.uniform(0.1, 0.6, 5000)
    >>> y = rng.random(5000) < np.where((age > 75) & (income < 25), p + 0.3, p)
    >>> found = cal.detect.scan_test(cal.predictions(y, p, {"age": age, "income": income}))
    >>> found.p_value, found.parts["rule"]
    (0.001, 'age over 76 and income up to 25')
    """
    looked = choice("alternative", alternative, tuple(SIDES))
    wanted = choice("null", null, NULLS)
    allowed = number("tolerance", tolerance, least=0, below=1, what="a probability", hint="such as 0.02")
    least = checked_size("min_size", min_size)
    count = check_int("draws", draws, LEAST_DRAWS, hint="such as 999")
    # (1) Cells and boxes, without looking at labels.
    tables = tables_of(data, variables, order, seed)
    rows = boxed(data, tables).scanned
    scan: BoxScan
    # (2) The largest score, and how often chance does as well.
    if rows is not None:
        if wanted not in ("auto", "simulated"):
            raise NotComputable(f"null={wanted!r} is for independent rows of equal weight: leave null='auto'")
        used = rows.null
        scan = scan_of_clusters(tables, rows, least, allowed, looked)
        result = scan.best()
        level = p_value(result.margin, scan.simulated(count))
    else:
        used, scan = _null(tables, wanted), scan_of(tables, least, allowed, looked)
        if used == "simulated" and tables.sample_rows is not None:
            kept, result = tables.sample_rows, scan.best()
            level = p_value(result.margin, scan.simulated(kept.cells, kept.p, kept.ids, count))
        else:
            level, result = bound(scan)
    seen = tables.sample_rows
    impossible = 0 if seen is None else Boundary.of(seen.p, allowed).impossible(seen.y > 0, seen.y == 0, looked)
    return Outcome(
        method="detect.scan_test",
        statistic=result.margin,
        p_value=0.0 if impossible else level,
        alternative=f"in some subgroup of a few attributes the event rate is {off_by(allowed, looked)}",
        null=within(allowed, looked),
        law=IMPOSSIBLE.format(impossible) if impossible else LAWS[used] + (AT_EDGE if allowed else ""),
        settings={
            "alternative": looked,
            "requested": wanted,
            "draws": 0 if used == "bound" else count,
            "extra": EXTRA,
            "min_size": least,
            "null": used,
            "order": max(map(len, tables.layout.combined)),
            "seed": tables.seed,
            "smallest_subgroup": fewest_of(tables, least),
            "tolerance": allowed,
            "variables": tuple(t.name for t in tables.attributes[1:]),
        },
        parts=_parts(tables, scan, result) | {"impossible": impossible, "left_out": tables.left_out},
    )


def scan_of(tables: Tables, min_size: float, tolerance: float, alternative: Alternative) -> Scan:
    """What is searched."""
    return Scan(
        family=tables.family(min_size),
        tables=tables.tables,
        levels=tuple(_levels(tables, t) for t in range(len(tables.attributes))),
        fewest=fewest_of(tables, min_size),
        tolerance=tolerance,
        sides=SIDES[alternative],
        subsets=alternative == "two-sided" and not tolerance,
    )


def scan_of_clusters(
    tables: Tables, rows: ScannedRows, min_size: float, tolerance: float, alternative: Alternative
) -> ClusterScan:
    """What is searched where rows come in units or are weighted."""
    family = tables.family(min_size)
    kept = rests_on_clusters(family, rows)
    if not kept.any():
        raise NotComputable(
            f"{len(rows.ids):,} clusters (cluster=): no subgroup rests on {LEAST_CLUSTERS} of them, of which random "
            "signs would say how far chance goes"
        )
    return ClusterScan(family=family.kept(kept), rows=rows, tolerance=tolerance, sides=SIDES[alternative])


def fewest_of(tables: Tables, min_size: float) -> int:
    """The rows that a box has at least."""
    return max(fewest_rows(min_size, tables.n), FEWEST)


def _levels(tables: Tables, attribute: int) -> tuple[int, ...]:
    """The levels that a subset may take: none of so few rows that others can tell who is meant."""
    t = tables.attributes[attribute]
    if t.kind != "category":
        return ()
    rows = tables.tables[attribute][:, 0]  # the first tables are of one attribute each
    return tuple(c for c in (*range(len(t.levels)), t.size - 1) if rows[c] >= FEWEST)


def rule_of(tables: Tables, scan: BoxScan, box: int | Subset) -> Rule:
    """What selects the rows of a box."""
    if not isinstance(box, Subset):
        return tables.rule(scan.family, box)
    parts = {box.category: of_levels(tables.attributes[box.category], box.levels)}
    if box.other is not None:
        parts[box.other] = condition(tables.attributes[box.other], box.within)
    return tuple(parts[t] for t in sorted(parts))


def _null(tables: Tables, requested: str) -> str:
    if requested == "simulated" and not tables.complete:
        kept = 0 if tables.sample_rows is None else len(tables.sample_rows.p)
        raise NotComputable(
            f"null='simulated' needs every row: the sketch holds {kept:,} of {tables.n:,}; pass null='bound'"
        )
    if requested != "auto":
        return requested
    return "simulated" if tables.complete and tables.n <= MOST else "bound"


def _parts(tables: Tables, scan: BoxScan, result: ScanResult) -> dict[str, Any]:
    """The box found, and what was searched."""
    rule = rule_of(tables, scan, result.box)
    return {
        "rule": text_of(rule),
        "conditions": tuple(c.to_dict() for c in rule),
        "rows": int(result.rows),
        "share": result.rows / tables.n,
        "predicted": result.expected / result.mass,
        "observed": result.events / result.mass,
        "gap": (result.events - result.expected) / result.mass,
        "score": result.score,
        "needed": result.score - result.margin,
        "side": "overpredicts" if result.side else "underpredicts",
        "fixed": not isinstance(result.box, Subset),
        "subgroups": scan.family.size,
        "tables": len(tables.layout.combined),
        "by_order": scan.by_order(),
    }


# ---- joined with models of the residual ----

# Of the scan. How often the two together find an error at the .05 level, in the mean over eleven kinds with 5,000 rows
# (60 data sets each) and nine with 20,000 (40 each): corners of one to three attributes, an outer tenth, slopes of
# one, four and eight attributes, products of two and three, four products, a bump; seeds that no test or benchmark has.
#   w          0.2   0.3   0.4   0.5   0.6   0.7   0.8   0.9
#   found, %    56    58    58    58    58    59    59    57
# A corner of 4 % of 5,000 rows: 63 % at 0.2, 80 % at 0.7, 83 % by the scan alone; four products: 77, 67 and 27 %.
# At 0.7 the least p-value of repeated fits, 0.002 (with 20,001 to 50,000 rows), still counts for 0.007.
WEIGHT = 0.7
ALPHA = 0.05


@takes_arrays
def subgroup_test(
    data: Predictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    order: int = ORDER,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
    min_size: float = MIN_SIZE,
    draws: int = 999,
    seed: int = 0,
    alpha: float = ALPHA,
) -> Outcome:
    """Test whether the probabilities are within a tolerance of the event rate for everyone, in two ways at once.

    `scan_test` looks at every box of a few attributes: it finds a corner that few people are in, and grows sharper with
    every row. `strong_calibration_test` lets models order the rows: it finds what is spread over many attributes or
    smooth. The joined p-value is ``min(p_scan / w, p_adaptive / (1 - w), 1)``, w fixed.

    Parameters
    ----------
    data : Predictions or Sketch
        A sketch made with ``tests=True``: the scan reads all of its rows, the models those that it holds.
    variables : str or sequence of str, optional
        Covariates in addition to the score that subgroups may depend on; all by default.
    order : {1, 2, 3}
        Most attributes that a box combines.
    tolerance : float in [0, 1)
        How far off a probability may be, in probability units.
    alternative : {"two-sided", "greater", "less"}
        ``"greater"``: somewhere more happens than the model says.
    min_size : float in [0, 1)
        Least share of the rows that a box has; models may find fewer.
    draws : int
        Simulated outcomes of the scan; the models take their own default.
    seed : int
    alpha : float in (0, 0.5]
        The level at which ``detected_by`` is reported; the p-value does not depend on it.

    Returns
    -------
    Outcome
        ``statistic`` is the smaller of the two weighted p-values. In ``parts``: ``p_scan`` and ``p_adaptive``,
        ``weight`` of the scan, ``detected_by`` ("scan", "adaptive", "both", "neither": whose weighted p-value is at
        most `alpha`), and the parts of either test as ``scan`` and ``adaptive``.

    Raises
    ------
    BadInput
        What either test refuses.
    NotComputable
        What either cannot do: under 20 rows, or effective clusters, more than 100 covariates.

    Notes
    -----
    **Assumes.** Rows, or clusters, independent given scores and covariates.
    **Guarantee.** Level alpha at any number of rows where both p-values have it; that of the scan always does, that of
    the models as ``law`` says. **Method.** Bonferroni's inequality with fixed weights. Ranking both statistics among
    shared draws would be exact and a little sharper only where every draw repeats all that was done to the data: models
    fitted to the observed outcomes of some rows are no longer what a simulated outcome of those rows would have led to,
    and with them held, draws of the other rows say nothing of the scan's evidence in those.
    **Cost.** Both tests'. **Reads.** Rows, or the sketch's tables and rows.

    References
    ----------
    See `scan_test` and `strong_calibration_test`.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, income, p = rng.uniform(20, 90, 5000), rng.uniform(10, 60, 5000), rng.uniform(0.1, 0.6, 5000)
    >>> y = rng.random(5000) < np.where((age > 75) & (income < 25), p + 0.3, p)
    >>> found = cal.detect.subgroup_test(cal.predictions(y, p, {"age": age, "income": income}))
    >>> round(found.p_value, 4), found.parts["detected_by"]
    (0.0014, 'both')
    """
    checked_alpha(alpha)
    scan = scan_test(
        data,
        variables=variables,
        order=order,
        tolerance=tolerance,
        alternative=alternative,
        min_size=min_size,
        draws=draws,
        seed=seed,
    )
    adaptive = strong_calibration_test(
        data, variables=variables, tolerance=tolerance, alternative=alternative, seed=seed
    )
    return joined(scan, adaptive, alpha)


def joined(scan: Outcome, adaptive: Outcome, alpha: float = ALPHA) -> Outcome:
    """The two tests of the same null hypothesis as one."""
    weighted = {"scan": scan.p_value / WEIGHT, "adaptive": adaptive.p_value / (1.0 - WEIGHT)}
    results = [name for name, p in weighted.items() if p <= alpha]
    least = min(weighted.values())
    return Outcome(
        method="detect.subgroup_test",
        statistic=least,
        p_value=min(1.0, least),
        alternative=adaptive.alternative,
        null=adaptive.null,
        law=f"weighted Bonferroni; subgroups, {scan.law}; models, {adaptive.law}",
        settings={"alpha": alpha, "scan": scan.settings, "adaptive": adaptive.settings},
        parts={
            "p_scan": scan.p_value,
            "p_adaptive": adaptive.p_value,
            "weight": WEIGHT,
            "detected_by": "both" if len(results) == 2 else (*results, "neither")[0],
            "scan": scan.parts,
            "adaptive": adaptive.parts,
        },
    )
