"""Everyone's turn: certified intervals for all groups at once."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np

from calibrant.arguments import checked_levels, names, one_source
from calibrant.certify.raw_lower import raw_lower_of
from calibrant.certify.rounded import rounded_of
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Estimate, Interval, Side
from calibrant.views.population import INDEPENDENT, Population, group, shares, sketch_of

Group = tuple[tuple[str, str], ...]


@one_source
def groups(
    data: Predictions | Sketch,
    *,
    by: Iterable[str] | str | None = None,
    intersections: bool = False,
    levels: int = 100,
    alpha: float = 0.05,
    side: Side = "two-sided",
    seed: int = 0,
) -> dict[str, Estimate]:
    r"""Certify the average calibration error of every group, all at once.

    Estimand, for each group g: from below ``E[|p - E[Y|p, g]| | g]`` of the raw score; from above
    ``E[|r - E[Y|r, g]| | g]`` of the score rounded to `levels` steps. In probability units.

    Parameters
    ----------
    data : Predictions or Sketch
        A sketch brings its own groups; then leave `by` and `intersections` out.
    by : str or sequence of str
        Covariates whose levels are the groups; numbers are binned at round numbers without looking at labels.
    intersections : bool
        Also every pair of the covariates.
    levels : int from 2 to 1024
    alpha : float in (0, 1)
        Probability, at most, that *any* end of *any* group's interval is wrong.
    side : {"two-sided", "lower", "upper"}
    seed : int

    Returns
    -------
    dict of str to Estimate
        By names such as ``"sex=f"`` and ``"sex=f, age=40–49"``; in them, a variable or level that holds ``=``, a
        quote or a comma stands in double quotes, as JSON writes it. Empty groups are left out. Order: as the levels.

    Notes
    -----
    **Assumes.** Independent rows from one distribution; groups named without looking at outcomes.
    **Guarantee.** Finite-sample and simultaneous: alpha is shared equally over all ends of all groups (Bonferroni).
    The two ends are about different classifiers: call it a certified range. Where the display repairs the score, the
    low end can lie above the high one; ``value`` is about the display.
    **Method.** `raw_lower` and `rounded` within each group, conditionally on membership; the raw score on ``2^10``
    cells, so that rounding is exact for 10, 20, 50 and 100 levels and powers of two up to 512, and otherwise rounds
    the middle of the score's cell.
    **Cost.** Linear in the rows, then about 20 ms a group.
    **Reads.** The sketch.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, sex = rng.uniform(size=4000), np.array(["f", "m"])[rng.integers(0, 2, 4000)]
    >>> data = cal.predictions(rng.uniform(size=4000) < p, p, {"sex": sex})
    >>> list(cal.certify.groups(data, by="sex"))
    ['sex=f', 'sex=m']
    """
    steps = checked_levels(levels)
    whole = grouped_sketch(data, names("by", by), intersections, seed)
    present = [(name, group(whole, i)) for name, i in named_groups(whole)]
    if not present:
        raise NotComputable("there are no groups: pass by=")
    low_share, high_share = shares(alpha, side)
    spend = (low_share / len(present), high_share / len(present))
    return {keyed(name): certified_range(q, steps, spend, 1.0 - alpha, seed) for name, q in present}


def keyed(group: Group) -> str:
    """Return the name of a group: ``sex=f, age=40–49``. No two groups have one name."""
    return ", ".join("=".join(map(_quoted, pair)) for pair in group)


def _quoted(text: str) -> str:
    """Return a variable or a level; in quotes where it could be misread."""
    return json.dumps(text, ensure_ascii=False) if any(c in text for c in '=",') else text


def grouped_sketch(data: Predictions | Sketch, by: tuple[str, ...], intersections: bool, seed: int) -> Sketch:
    """Return a sketch that has groups, or say how to get one."""
    if isinstance(data, Sketch) and intersections:
        raise BadInput("this sketch brings its own groups: leave intersections out, or sketch again with it")
    if isinstance(data, Sketch) and by and set(by) != {v.name for v in data.spec.variables}:
        raise BadInput(
            f"this sketch has the groups of {[v.name for v in data.spec.variables]}: leave by= out, or sketch again"
        )
    if isinstance(data, Predictions) and not by:
        raise BadInput("name the group columns: by=['sex', 'age']")
    return sketch_of(data, seed, by, intersections)


def named_groups(whole: Sketch) -> list[tuple[Group, int]]:
    """Return name and index of every group of a sketch that has rows."""
    names = [n for g in range(len(whole.spec.groupings)) for n in whole.spec.group_names(g)]
    rows = whole.group_levels.sum(axis=(1, 2, 3)) if len(names) else np.zeros(0)
    return [(name, i) for i, name in enumerate(names) if rows[i] > 0]


def certified_range(q: Population, levels: int, spend: tuple[float, float], level: float, seed: int) -> Estimate:
    """Return one group's estimate: raw score from below, rounded score from above."""
    above = rounded_of(q, levels, (0.0, spend[1]), level, seed)
    low = raw_lower_of(q, spend[0], level, seed).interval.low if spend[0] else 0.0
    return Estimate(
        method="certify.groups",
        value=above.value,
        unit="probability",
        n=q.n,
        interval=Interval(low=low, high=above.interval.high, level=level, guarantee="finite-sample"),
        assumes=INDEPENDENT,
        settings={
            "about": f"from below the raw score, from above the score shown in {levels} steps",
            "levels": levels,
            "delta": tuple(spend),
            "grid": q.grid,
            "seed": seed,
        },
    )
