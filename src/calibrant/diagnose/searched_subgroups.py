"""Readable rules for who is badly served, found in one half of the rows and judged on the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.arguments import check_int, checked_alpha, number
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.diagnose.rule_search import FEWEST, Search, search
from calibrant.errors import NotComputable
from calibrant.results import Curve
from calibrant.search.detectors import FOLDS, LEAST_ROWS, DetectorInputs, Settings, detector_inputs
from calibrant.search.models import Models, Rows
from calibrant.stats.betting import Clusters, rate_evidence, rate_limits, ratio_evidence, ratio_limits
from calibrant.stats.cusum import Alternative
from calibrant.stats.nulls import holm
from calibrant.views.features import rows_of
from calibrant.views.rules import Columns, columns_of, text_of

COLUMNS = (
    "rule",
    "rows",
    "share",
    "predicted",
    "observed",
    "observed_low",
    "observed_high",
    "gap",
    "low",
    "high",
    "excess",
    "p_value",
    "p_adjusted",
    "side",
    "stability",
    "finding",
)


@takes_arrays
def searched_subgroups(
    data: Predictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
    seed: int = 0,
    rules: int = 5,
    depth: int = 3,
    min_share: float = 0.01,
    models: Models | None = None,
) -> Curve:
    r"""Describe who is badly served by rules such as "age over 72 and sex = female".

    Estimand, for each rule R: ``E[Y - p | R]``, the mean of what happened minus what the model says.

    Parameters
    ----------
    data : Predictions or Sketch
        Of a sketch (made with ``tests=True``) its uniform sample of rows. Weights and clusters are used.
    variables : str or sequence of str, optional
        Covariates that rules may name in addition to the score; all of them by default.
    tolerance : float in [0, 1)
        How far off a probability may be.
    alternative : {"two-sided", "greater", "less"}
        ``"greater"``: only groups to whom more happens than the model says.
    alpha : float in (0, 0.5]
        Probability, at most, that any interval misses, and that any rule is a false finding.
    seed : int
    rules : int from 1 to 20
        At most so many.
    depth : int from 1 to 6
        Conditions of a rule.
    min_share : float in [0, 0.5)
        Share of the rows that a rule must have, about; and never fewer than 20 rows of the half that judges.
    models : sequence of (str, estimator), optional
        Your own scikit-learn models of the residual, as in `strong_calibration_test`.

    Returns
    -------
    Curve
        A line for each rule, the largest standardised ``excess`` first; none if nothing was worth judging. ``rule`` in
        words; ``share`` of all rows; and of the judging half alone: ``rows``, ``predicted`` (mean score), ``observed``
        (event rate) with limits ``observed_low`` to ``observed_high``, ``gap`` with limits ``low`` to ``high``,
        simultaneously at ``1 - alpha``; ``excess`` beyond the tolerance in standard deviations, ``p_value`` and Holm's
        ``p_adjusted`` against "the gap is within the tolerance, on this side"; ``side`` ("underpredicts",
        "overpredicts": what the model says, as the half that found the rule saw it; the other half's ``gap`` may lie on
        the other side of a rule that is no finding); ``stability``, the share of five searches among pairs alone, each
        without a fifth of the growing half, that lead to a rule with at least half of the rows in common; ``finding``,
        whether ``p_adjusted`` is at most `alpha`. ``settings["conditions"]`` holds the rules as data; of clusters
        ``settings["people"]``, with judging rows inside and outside. ``.chart()`` draws it.

    Raises
    ------
    BadInput
        An argument that cannot be used.
    NotComputable
        Under 40 rows; under 20 clusters.

    Notes
    -----
    **Assumes.** Rows (or clusters) independent given scores and covariates.
    **Guarantee.** Finite-sample: the judging half's outcomes play no part in finding the rules, and alpha is shared
    over the rules judged. Limits and p-values are Clopper's and Pearson's, which hold for unequal rates (Hoeffding
    1956); with weights or clusters, bets on the weighted residuals (of whole clusters). They are of the rows given, as
    they are, and so of those rows' mean rate. **Method.** Three sources of rules in the growing half. Residual models
    are fitted to it, those of `strong_calibration_test` with ``null="refit"``; what their mean predicts of the other
    half's covariates beyond the tolerance is the target of four trees of the given depth: over all of these rows, and
    with nothing but the 30, 10 and 3% of largest prediction. And all pairs of simple conditions (nine cuts a number,
    twenty levels a category, at most 500 conditions) are tried at once; and where a product of three conditions stands
    out more than by chance, its eight parts, in which no pair needs to show an error. The rule with the largest squared
    standardised excess in the growing half, less what the best of so many rules reaches by chance, is then improved one
    condition at a time; the next is the best over the rows that are left, and is judged only if worth more than chance.
    Cuts are numbers with few digits; missing numbers are a side of their own. Departure: a tree alone overlapped a
    planted group of 8% half as often, as its first cut ignores the second. **Cost.** One fit of the models to a half,
    none after a split by the same; and six searches on at most 25,000 rows of either half. **Reads.** Rows.

    References
    ----------
    Feng, Gossmann, Pirracchio, Petrick, Pennello, Sahiner (2024), "Is this model reliable for everyone? Testing for
    strong calibration", AISTATS. Hoeffding (1956), doi:10.1214/aoms/1177728178. Clopper, Pearson (1934),
    doi:10.1093/biomet/26.4.404.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex, ward = rng.choice(["female", "male"], 3000), rng.choice(["a", "b", "c", "d"], 3000)
    >>> p = rng.uniform(0.1, 0.5, 3000)
    >>> y = rng.random(3000) < np.where((ward == "b") & (sex == "female"), p + 0.3, p)
    >>> data = cal.predictions(y, p, {"sex": sex, "ward": ward})
    >>> table = cal.diagnose.subgroups(data, method="searched", tolerance=0.02)
    >>> sorted(table.columns["rule"][0].split(" and ")), table.columns["side"][0]
    (['sex = female', 'ward = b'], 'underpredicts')
    >>> table.columns["finding"][0], table.columns["low"][0] < 0.3 < table.columns["high"][0]
    (True, True)
    """
    rules, depth = check_int("rules", rules, 1, 20), check_int("depth", depth, 1, 6)
    min_share = number("min_share", min_share, least=0, below=0.5, what="a share of the rows", hint="such as 0.01")
    level, rows = checked_alpha(alpha), rows_of(data)
    settings = Settings(variables=variables, tolerance=tolerance, alternative=alternative, seed=seed, models=models)
    q = detector_inputs(rows, settings)
    options = SubgroupOptions(rules=rules, depth=depth, min_share=min_share, alpha=level)
    return described(q, columns_of(rows, q.settings.variables), options)


@dataclass(frozen=True, kw_only=True)
class SubgroupOptions:
    """What is asked of the rules; each is described with `searched_subgroups`."""

    rules: int = 5
    depth: int = 3
    min_share: float = 0.01
    alpha: float = 0.05


def described(q: DetectorInputs, columns: Columns, options: SubgroupOptions) -> Curve:
    """The rules of a question in the words of some columns of its rows, such as those with small levels pooled.

    Models, rows and halves are the question's, whatever the columns: they are those of its split test.
    """
    if q.n < 2 * LEAST_ROWS:
        raise NotComputable(f"there are {q.n:,} rows: two halves need at least {2 * LEAST_ROWS}")
    if q.clusters < 4 * FOLDS:
        raise NotComputable(f"there are {q.clusters} clusters: two halves need at least {4 * FOLDS}")
    result = search(q, columns, options.rules, options.depth, options.min_share)
    lines = _judged(q, columns, result, options.alpha)
    return Curve(
        method="diagnose.subgroups.searched",
        columns={k: tuple(line[k] for line in lines) for k in COLUMNS},
        settings={
            "alpha": options.alpha,
            "alternative": q.settings.alternative,
            "conditions": tuple(tuple(c.to_dict() for c in line["conditions"]) for line in lines),
            "depth": options.depth,
            "fewest": FEWEST,
            "min_share": options.min_share,
            "model": result.model,
            **q.reported(people=tuple(line["people"] for line in lines)),
            "rows_grown": q.n - len(result.judges),
            "rows_judged": len(result.judges),
            "seed": q.settings.seed,
            "tolerance": q.edge.tolerance,
        },
    )


def _judged(q: DetectorInputs, columns: Columns, result: Search, alpha: float) -> list[dict[str, Any]]:
    """Judge the rules on the other half, all together; the largest excess first."""
    inside = [columns.matching(rule) for rule in result.rules]
    kept = [j for j, rows in enumerate(inside) if rows[result.judges].sum() >= FEWEST]
    delta, w, lines = alpha / max(len(kept), 1), q.sample.mass_of(np.arange(q.n)), []
    for j in kept:
        rows = result.judges[inside[j][result.judges]]
        lines.append(
            {
                "conditions": result.rules[j],
                "rule": text_of(result.rules[j]),
                "rows": len(rows),
                "people": q.people(result.judges, inside[j][result.judges]),
                "share": float(w[inside[j]].sum() / w.sum()),
                "stability": result.stability[j],
                "side": "underpredicts" if result.sides[j] > 0 else "overpredicts",
                **_evidence(q, rows, result.sides[j], delta),
            }
        )
    for line, p in zip(lines, holm(np.array([line["p_value"] for line in lines])), strict=True):
        line |= {"p_adjusted": float(p), "finding": bool(p <= alpha)}
    return sorted(lines, key=lambda line: (-line["excess"], line["rule"]))


def _evidence(q: DetectorInputs, rows: Rows, side: float, delta: float) -> dict[str, float]:
    """Rates, limits and the p-value of one rule, from the rows that judge it."""
    y, p = q.sample.y[rows], q.edge.p[rows]
    edge = (q.edge.high if side > 0 else q.edge.low)[rows]
    w = q.sample.mass_of(rows)
    mass = float(w.sum())
    predicted, observed, at = (float(w @ v) / mass for v in (p, y, edge))
    spread = float(np.sqrt((w**2 * edge * (1.0 - edge)).sum()))
    if q.sample.weights is None and q.cluster is None:
        n, events = len(rows), int(y.sum())
        low, high = rate_limits(events, n, delta)
        gap_low, gap_high = low - predicted, high - predicted
        level = float(rate_evidence(events, n, at) if side > 0 else rate_evidence(n - events, n, 1.0 - at))
    else:
        cluster_sums = Clusters.of_residuals(y, p, w, q.clusters_of(rows)[0])
        gap_low, gap_high = ratio_limits(cluster_sums, delta)
        low, high = max(predicted + gap_low, 0.0), min(predicted + gap_high, 1.0)
        level = ratio_evidence(cluster_sums, at - predicted, side)
    return {
        "predicted": predicted,
        "observed": observed,
        "observed_low": low,
        "observed_high": high,
        "gap": observed - predicted,
        "low": gap_low,
        "high": gap_high,
        "p_value": level,
        "excess": side * (observed - at) * mass / spread if spread > 0 else 0.0,
    }
