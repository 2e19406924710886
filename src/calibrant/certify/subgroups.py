"""Certified ranges of the worst subgroup: of every conjunction of attributes, named by nobody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from calibrant.arguments import share
from calibrant.certify.certificate import Setting, certificate
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.coding import SCORE
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Estimate, Interval, Side
from calibrant.stats.subgroups.ranges import Ranges, rows_needed, shrunken
from calibrant.views.boxes import (
    FEWEST,
    MIN_SIZE,
    ORDER,
    Tables,
    boxed,
    checked_size,
    fewest_rows,
    tables_of,
)
from calibrant.views.features import SCORE as SCORE_NAME
from calibrant.views.population import shares
from calibrant.views.rules import text_of

KINDS = ("one attribute", "one or two attributes", "one to three attributes")
CLEAR_SIZE = 0.05  # smallest share of the rows of the subgroups that are cleared, by default
PEOPLE = "the subgroups are of the people in the data"


@certificate(
    order=60,
    tests=True,
    settings=(
        Setting("order", ORDER, "K", "attributes that a subgroup combines, 1, 2 or 3"),
        Setting("min_size", MIN_SIZE, "SHARE", "smallest share of the people of a subgroup that may be the worst"),
        Setting("clear_size", CLEAR_SIZE, "SHARE", "smallest share of the people of the subgroups under the high end"),
    ),
)
@takes_arrays
def subgroups(
    data: Predictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    order: int = ORDER,
    min_size: float = MIN_SIZE,
    clear_size: float = CLEAR_SIZE,
    limit: float | None = None,
    alpha: float = 0.05,
    side: Side = "two-sided",
    seed: int = 0,
) -> Estimate:
    r"""Certify the worst gap of any subgroup: every box of one, two or three attributes, the score among them.

    Estimand: ``max over subgroups b of |gap_b|`` with ``gap_b = mean over the rows of b of eta_i - p_i``, eta_i the
    event rate of row i given its score and covariates; in probability units. From below over the subgroups with at
    least `min_size` of the rows, from above over those with at least `clear_size`. It is about the people in the data.

    Parameters
    ----------
    data : Predictions or Sketch
        Rows with covariates, or a sketch made with ``variables=[...], tests=True``.
    variables : str or sequence of str, optional
        Covariates to make subgroups of; all by default.
    order : {1, 2, 3}
        Attributes that a subgroup combines, at most.
    min_size, clear_size : float in [0, 1)
        Smallest share of the rows. A subgroup has 20 rows at least, whatever the share.
    limit : float in (0, 1), optional
        Size of gap to judge by.
    alpha : float in (0, 0.5]
        Probability, at most, that an end is wrong.
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Chooses the rows that set the edges of the attributes' cells.

    Returns
    -------
    Estimate
        ``value`` is the worst gap less the luck of the search, over the subgroups with `min_size` of the rows (over
        those with `clear_size`, if only the upper end is asked for); smaller is better. ``settings`` tell the subgroups
        behind the two ends, ``subgroup_low`` and ``subgroup_high``, as text and as data; how many are certified
        ``over`` the limit (Holm); the ``verdict``, "within", "over", "undecided" or, without a limit, "not_checked";
        and, if undecided, about how many rows would decide, ``rows_needed``, or with ``rows_at_least`` how many at
        least; of clusters or weighted rows ``clusters_needed`` and ``clusters_at_least``.

    Raises
    ------
    NotComputable
        Over 100 covariates; no subgroup is large enough, or has 20 clusters inside and outside.

    Notes
    -----
    **Assumes.** Outcomes independent given scores and covariates, or those of clusters (``cluster=``), and weights that
    do not depend on outcomes. Nothing about the event rates, which may differ from row to row.
    **Guarantee.** Finite-sample, at every number of rows. Which subgroups there are is fixed before any outcome is
    read.
    **Method.** Clopper and Pearson's limits of the mean event rate, less the mean score; they hold for unequal rates
    (Hoeffding 1956). Low end: the ranges of all subgroups together, alpha shared by weights. High end: the largest
    one-sided limit of any subgroup, nothing shared, for the truly worst subgroup is one. With clusters or weights the
    gap is weighted, and limits are by bets on clusters (Theorem CB of the documentation). The two ends are about
    subgroups of different sizes, so the low one can lie above the high one.
    **Cost.** One pass, then some 0.1 s with eight covariates and 0.3 s with twenty.
    **Reads.** Rows, or the sums of boxes of a sketch: the same bits.

    References
    ----------
    .. [1] W. Hoeffding, "On the distribution of the number of successes in independent trials", Annals of Mathematical
       Statistics 27 (1956), doi:10.1214/aoms/1177728178.
    .. [2] C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
       binomial", Biometrika 26 (1934), doi:10.1093/biomet/26.4.404.
    .. [3] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6
       (1979), 65-70.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, z = rng.uniform(size=(2, 20_000))
    >>> p = np.full(20_000, 0.3)
    >>> event = rng.uniform(size=20_000) < p + 0.2 * ((x > 0.7) & (z > 0.7))
    >>> found = cal.certify.subgroups(cal.predictions(event, p, {"x": x, "z": z}), limit=0.02)
    >>> found.settings["subgroup_low"], found.settings["verdict"]
    ('x over 0.7 and z over 0.7', 'over')
    """
    spend = shares(alpha, side)
    min_size, clear_size = checked_size("min_size", min_size), checked_size("clear_size", clear_size)
    limit = None if limit is None else share("limit", limit, hint="such as 0.02 for two points")
    if clear_size < min_size:
        raise BadInput(f"clear_size={clear_size:g} is below min_size={min_size:g}: subgroups so small are not examined")
    tables = tables_of(data, variables, order, seed)
    rows = boxed(data, tables)
    ranges = rows.ranges(min_size)
    family = ranges.family
    clear_rows = max(fewest_rows(clear_size, family.n), FEWEST)
    low, low_subgroup = ranges.floor(spend[0]) if spend[0] else (0.0, None)
    high, high_subgroup = ranges.ceiling(spend[1], clear_rows) if spend[1] else (1.0, None)
    if high_subgroup == -1:
        raise NotComputable(f"no subgroup has clear_size={clear_size:g} of the rows")
    most = max(map(len, family.combined))
    estimate = shrunken(ranges, alpha)
    size = abs(estimate)
    value = float(size.max()) if spend[0] else min(float(size[family.rows >= clear_rows].max()), high)
    verdict = "not_checked"
    if limit is not None:
        verdict = "over" if low > limit else "within" if high <= limit else "undecided"
    undecided = limit if verdict == "undecided" else None
    need = None if undecided is None else rows_needed(ranges, estimate, undecided, spend, clear_rows)
    return Estimate(
        method="certify.subgroups",
        value=max(value, low),
        unit="probability",
        n=family.n,
        interval=Interval(low=low, high=high, level=1.0 - alpha, guarantee="finite-sample"),
        assumes=f"{rows.assumes}; {PEOPLE}",
        settings={
            "about": f"the worst of {family.size:,} subgroups of {KINDS[most - 1]}: from below, of those with at least "
            f"{100 * min_size:g}% of the people; from above, with at least {100 * clear_size:g}%",
            "side": side,
            "attributes": tuple(SCORE_NAME if t.name == SCORE else t.name for t in tables.attributes),
            "order": most,
            "subgroups": family.size,
            "min_size": min_size,
            "clear_size": clear_size,
            "smallest_subgroup": int(family.rows.min()),
            "clear_rows": clear_rows,
            "clear_subgroups": int((family.rows >= clear_rows).sum()),
            **_box("low", tables, ranges, low_subgroup if low > 0.0 else None),
            **_box("high", tables, ranges, high_subgroup),
            "delta": spend,
            "seed": tables.seed,
            "limit": limit,
            "over": None if limit is None or not spend[0] else int(ranges.over(limit, spend[0]).sum()),
            f"{rows.unit}_needed": None if need is None else need[0],
            f"{rows.unit}_at_least": need is not None and need[1],
            "verdict": verdict,
            **rows.reported,
        },
    )


def _box(end: str, tables: Tables, ranges: Ranges, box: int | None) -> dict[str, Any]:
    """The subgroup behind an end: as text, as data, its rows and the gap seen in it."""
    family = ranges.family
    rule = () if box is None else tables.rule(family, box)
    return {
        f"subgroup_{end}": None if box is None else text_of(rule),
        f"conditions_{end}": tuple(c.to_dict() for c in rule),
        f"rows_{end}": None if box is None else int(family.rows[box]),
        f"gap_{end}": None if box is None else float(ranges.gap[box]),
        **({} if box is None else {f"{of}_{end}": people for of, people in ranges.reported(box).items()}),
    }
