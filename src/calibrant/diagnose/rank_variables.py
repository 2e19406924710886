"""All variables at once: along which do the probabilities err, beyond being off for everyone?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.arguments import check_int, checked_alpha, checked_seed
from calibrant.certify.variable import FOR_GAP, ClusterCut, Cut, VariableOptions, cuts_of
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.diagnose.ranking import Counted, Line, lines_of, ranked, tested_pairs
from calibrant.errors import NotComputable
from calibrant.results import Curve
from calibrant.stats.strata import View
from calibrant.stats.variable import NONE
from calibrant.views.by_variable import checked_view

COLUMNS = (
    "variable",
    "kind",
    "beyond_gap",
    "beyond_gap_plain",
    "vece",
    "vece_plain",
    "p_value",
    "p_adjusted",
    "low",
    "high",
    "beyond_low",
    "beyond_high",
    "gain",
    "worst",
    "worst_predicted",
    "worst_observed",
    "worst_gap",
    "worst_beyond_gap",
    "worst_rows",
    "bins",
    "bins_collapsed",
)


@takes_arrays
def rank_variables(
    data: Predictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    view: View = "probability",
    bins: int = 10,
    alpha: float = 0.05,
    draws: int = 999,
    seed: int = 0,
    pairs: int = 0,
) -> Curve:
    r"""Rank variables by the calibration error along them beyond the overall gap.

    Estimand, for each variable: ``sum_b P(b) |E[Y - p | b] - E[Y - p]|`` over its bins or levels b, in probability
    clusters: what is left of its VECE when everyone's probability is moved by the overall mean residual. Without that,
    a model that is low for everyone has the same VECE along every variable.

    Parameters
    ----------
    data : Predictions or Sketch
        Weights are used; where the data name clusters, p-values, sizes and certified ranges are by these clusters.
    variables : str or sequence of str, optional
        Every covariate by default.
    view : {"probability", "confidence"}
    bins : int from 2 to 100
        Of a number or a date, of about equally many rows; categories keep their levels, missing values are a level.
    alpha : float in (0, 0.5]
        Probability, at most, that any certified interval is wrong.
    draws, seed : int
        Simulated data sets, and their seed.
    pairs : int
        Also the best so many pairs, by what the pair shows beyond its two variables; all pairs are tried.

    Returns
    -------
    Curve
        A line for each variable, the largest ``beyond_gap`` first, then the best pairs, the largest ``gain`` first.
        ``beyond_gap`` and ``vece`` are freed of label noise, the columns ``_plain`` are not; ``p_value`` and
        ``p_adjusted`` are of error beyond the overall gap, in size, in one level, along a trend or beyond a split (of a
        pair: of the size of what its variables' sum leaves unexplained, adjusted over all pairs tried); ``low`` and
        ``high`` certify ``vece``, ``beyond_low`` and ``beyond_high`` certify ``beyond_gap``, all ends of all
        variables together (None for a pair, beyond the first 100 lines, and where no proof covers the data:
        ``settings["not_certified"]`` says why); ``worst`` is the bin that adds most, with ``worst_predicted``,
        ``worst_observed``, ``worst_gap``, ``worst_beyond_gap`` and ``worst_rows``; ``bins`` hold rows,
        ``bins_collapsed`` do not exist for ties. ``settings``: of clusters ``people`` (with rows in the worst
        bin, and with others), ``left_out`` (variables not ranked, with the reason),
        ``null`` and ``pairs_null`` (where p-values come from), ``gap``, ``variables_tried``, ``pairs_tried``.
        ``.chart()`` draws it.

    Raises
    ------
    NotComputable
        No variable can be ranked; all rows are one cluster.

    Notes
    -----
    **Assumes.** Independent rows; variables named, and bins cut, without looking at outcomes.
    **Guarantee.** *p-values.* Where rows times variables times draws is at most 2e10, outcomes ``Y* ~ Bernoulli(p)`` of
    all rows are simulated, the same for every variable: each p-value is exact for a calibrated model, and the step-down
    maximum keeps the probability of any false finding at `alpha` however the variables depend on each other. When the
    model is off for everyone, or along some of them, outcomes vary otherwise than its scores say; so the test is done
    once more with the noise seen in each bin where that is more, and the larger p-value counts: approximately valid for
    the rest in large samples. Beyond that size (or from a sketch) the residual sums are Gaussian with the larger of
    these variances, and Holm's correction needs no dependence: asymptotic. With clusters whole clusters have random
    signs, the same for every variable: asymptotic in their number.
    *Intervals.* Finite-sample and simultaneous over the variables: see `certify.variable`. **Method.** Paper, Section
    6: variables ranked by plain VECE (Table 1). Here: by the size from which label noise would produce the plain value
    on average, beyond the overall gap. The p-value joins several statistics of the same sums: that size; of a category
    the largest standardised residual of a level; of a number or date the score test of a trend over its ranks and the
    largest standardised residual of a split between bins, or of the missing. A level or split is looked at from two
    expected events of variance on. Each statistic becomes minus the logarithm of its p-value among the draws
    (`stats.nulls.surprises`), the largest counts, and is ranked among the draws' largest: three looks for the price of
    less than two. The noise seen in a bin is drawn towards that of all bins, as far as chance explains their difference
    (DerSimonian and Laird 1986). Pairs: numbers are cut into six; ``gain`` is the pair's ``beyond_gap`` less the
    larger of its variables' in the same cut; its test fits an additive residual to the cells and sums what remains, so
    that two variables that err separately are no finding. **Cost.** A sort per variable, and the draws: at a million
    rows 0.1 s a variable; pairs about 20 ms a pair and million rows. **Reads.** Rows, or the sketch's cells (no pairs).

    References
    ----------
    Kelly, Smyth, "Variable-based calibration for machine learning classifiers", AAAI 2023, arXiv:2209.15154.
    Westfall, Young, "Resampling-based multiple testing", Wiley 1993 (step-down maximum). Holm (1979).

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, x = rng.uniform(0.2, 0.8, 20_000), rng.normal(size=(20_000, 2))
    >>> y = rng.uniform(size=20_000) < p + 0.05 * np.sign(x[:, 1]) + 0.03
    >>> data = cal.predictions(y, p, {"height": x[:, 0], "income": x[:, 1]})
    >>> found = cal.diagnose.rank_variables(data)
    >>> found.columns["variable"], found.columns["p_adjusted"][0]
    (('income', 'height'), 0.001)
    """
    bins, pairs = check_int("bins", bins, 2, 100), check_int("pairs", pairs, 0, 10_000)
    draws = check_int("draws", draws, 99, 100_000)
    how = _How(checked_view(view), checked_alpha(alpha), draws, checked_seed(seed))
    rows = ranked(data)
    if pairs and not rows.pairs:
        raise NotComputable("a sketch keeps no cells of pairs of variables: pass rows, or leave pairs out")
    # (1) Of all covariates, none that reproduces the outcome or follows from the score, unless it is named.
    out = rows.left_out(how.seed) if variables is None else {}
    names = tuple(name for name in rows.names_of(variables) if name not in out)
    # (2) Bins of each variable, without a label; what looks like an identifier is left out, and said to be.
    null = rows.null(len(names), draws, how.seed, 2)
    lines, left_out = lines_of(rows, names, view, bins, null.reads_cells)
    left_out = out | left_out
    if not lines:
        raise NotComputable(f"no variable can be ranked: {next(iter(left_out.items()))}")
    # (3) p-values over all of them, and certified ranges that hold together.
    own, adjusted = null.judged(null.measures(lines, lines))
    table = [_row(line, how, p, a) for line, p, a in zip(lines, own.tolist(), adjusted.tolist(), strict=True)]
    for row, line in zip(table, lines, strict=True):
        row["people"] = null.people(line)
    table.sort(key=lambda r: (-r["beyond_gap"], r["p_value"], -r["beyond_gap_plain"], r["variable"]))
    ends, no_range = certified_ranges(rows.data, [r["variable"] for r in table], bins, view, alpha, how.seed)
    table = [r | ends.get(r["variable"], {}) for r in table]
    if no_range is None and len(ends) < len(table):
        no_range = f"ranges are given for the first {RANGES} variables of {len(table):,}; they hold simultaneously"
    # (4) Pairs, by what they show beyond their two variables.
    paired, tried, pair_law = _pairs(rows, lines, how, pairs)
    people = [row.get("people") for row in (*table, *paired)]
    return Curve(
        method="diagnose.rank_variables",
        columns={k: tuple(r[k] for r in (*table, *paired)) for k in COLUMNS},
        settings={
            "view": view,
            "bins": bins,
            "alpha": alpha,
            "draws": draws,
            "seed": how.seed,
            "n": lines[0].bins.n,
            "gap": lines[0].bins.gap,
            "null": null.law,
            "variables_tried": len(lines),
            "left_out": left_out,
            "not_certified": no_range,
            "pairs": pairs,
            "pairs_tried": tried,
            "pairs_null": pair_law,
            **({"people": tuple(people)} if any(people) else {}),
        },
    )


@dataclass(frozen=True)
class _How:
    """The settings of a ranking, checked."""

    view: View
    alpha: float
    draws: int
    seed: int


def _row(line: Line, how: _How, p: float, adjusted: float) -> dict[str, Any]:
    return {
        "variable": line.name,
        "kind": line.kind,
        **line.sizes(how.seed, how.alpha),
        "p_value": p,
        "p_adjusted": adjusted,
        "low": None,
        "high": None,
        "beyond_low": None,
        "beyond_high": None,
        "gain": None,
        **line.worst(),
        "bins": line.bins.size,
        "bins_collapsed": line.collapsed,
    }


def _pairs(
    data: Counted, lines: Sequence[Line], how: _How, wanted: int
) -> tuple[list[dict[str, Any]], int, str | None]:
    """The best pairs' rows of the table, how many pairs were tried, and the law of their p-values."""
    if not wanted or len(lines) < 2:
        return [], 0, None
    tested, law = tested_pairs(data, [line.name for line in lines], how.view, how.draws, how.seed)
    best = sorted(tested, key=lambda t: (t.adjusted, -t.statistic))
    made = []
    for t in best[: max(2 * wanted, wanted + 10)]:  # sizes are drawn for the likeliest only
        row = _row(t.line, how, t.p_value, t.adjusted)
        single = max(s.sizes(how.seed, how.alpha)["beyond_gap"] for s in t.singles)
        made.append(row | {"gain": row["beyond_gap"] - single})
    made.sort(key=lambda r: (-r["gain"], r["p_adjusted"], r["variable"]))
    return made[:wanted], len(tested), law


# ---- Certified ranges of every ranked variable: of its whole error, and of that beyond the overall shift ----

Ends = dict[str, float]
RANGES = 100  # lines of the ranking that have ranges: some milliseconds each


def certified_ranges(
    data: Predictions | Sketch, names: Sequence[str], bins: int, view: View, alpha: float, seed: int
) -> tuple[dict[str, Ends], str | None]:
    """The ends for each of the first variables, or none and why no proof covers the data.

    All ends hold simultaneously with probability at least ``1 - alpha``: each is `certify.variable`'s with its part of
    it. Alpha is shared over all the variables named, so those of the first hold simultaneously whatever put them first.
    Each variable is cut once for both of its ranges. Limits of the overall gap are the same for all variables that are
    cut alike: they read the same rows, whatever their cells, so they are found once.
    """
    delta = alpha / (4.0 * len(names))
    try:
        cut_along = cuts_of(data, VariableOptions(bins, None, True, view, "two-sided", seed))
        out: dict[str, Ends] = {}
        gaps: dict[tuple[str, str, int], tuple[float, float]] = {}
        for name in names[:RANGES]:
            cut = cut_along((name,))
            low, high = _ends(cut, delta, NONE, seed)
            cut_by = cut.edges_from, cut.reads, cut.pilot
            if cut_by not in gaps:
                gaps[cut_by] = cut.limits(2.0 * FOR_GAP * delta)
            beyond_low, beyond_high = _ends(cut, delta * (1.0 - FOR_GAP), gaps[cut_by], seed)
            out[name] = {"low": low, "high": high, "beyond_low": beyond_low, "beyond_high": beyond_high}
    except NotComputable as e:
        return {}, e.reason
    return out, None


def _ends(cut: Cut | ClusterCut, delta: float, gaps: tuple[float, ...], seed: int) -> tuple[float, float]:
    return cut.lower(delta, seed, gaps), cut.upper(delta, gaps)
