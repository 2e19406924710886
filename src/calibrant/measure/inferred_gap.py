"""The gap in event rates between groups, inferred from probabilities."""

from __future__ import annotations

from typing import Any

from calibrant.errors import BadInput
from calibrant.measure.inferred_mean import checked_quantity
from calibrant.measure.inferring import Inferring, inferring
from calibrant.measure.points import checked_alpha
from calibrant.results import Estimate
from calibrant.stats.inferred import Quantity, inferred_gap_of


def inferred_gap(
    data: Any, variable: str, level: Any, reference: Any = None, quantity: Quantity = "bias", alpha: float = 0.05
) -> Estimate:
    r"""Difference of event rates between a group and the others, inferred from probabilities in place of labels: its bias.

    Estimand: ``(E[p | G] - E[p | R]) - (E[Y | G] - E[Y | R])``, where G are the people at `level` and R everyone else,
    or those at `reference`; in probability units. With ``quantity="inferred"`` the first difference, with
    ``"observed"`` the second.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights and clusters are used.
    variable : str
        A covariate: a category, or a number with values that come again.
    level : str, number or bool
        The group; ``"missing"`` for missing values.
    reference : str, number or bool, optional
        Whom the group is compared with; by default everyone else, people without a value among them.
    quantity : {"bias", "inferred", "observed"}
        What the value and its interval are about.
    alpha : float in (0, 1)

    Returns
    -------
    Estimate
        A bias of 0 is best; above 0 the group's rate looks too high beside that of the others. Settings hold
        ``inferred``, ``observed`` and ``bias``, the standard error ``error`` of the value with its degrees of
        ``freedom``, and the rows of both.

    Raises
    ------
    BadInput
        No such variable or level, `reference` is `level`, or a setting out of range.
    NotComputable
        Either group has fewer than two rows (or clusters), or with uneven weights fewer than two effective ones; or,
        but for ``quantity="inferred"``, there is no case or no row without the event.

    Notes
    -----
    **Assumes.** Independent rows (or clusters), or rows sampled with known weights.
    **Guarantee.** Asymptotic in the rows of the smaller group, or in the number of clusters: see Coverage. The bias is
    zero if the model is calibrated in both groups, or off by the same in both.
    **Method.** The ownership gap of the paper's Figure 2. The variance is that of the residuals ``p - Y`` in each group
    (of p or Y for the other quantities), or if larger the one expected of outcomes with probability ``min(r p, 1)``, r
    being cases over cases expected in both groups, about the rates that these would give: so it is not zero where one
    group has no case. Student's t with the effective rows (or clusters) of the group that has fewer, less one.
    **Coverage.** Bias 0.93 to 1.00, means and shares included, in seven designs at 200 and 2,000 rows (400 samples
    each). See docs/measures.md. **Cost.** One pass over the rows: 0.08 s for 280,000. **Reads.** Rows, or the sketch's
    cells along the variable.

    References
    ----------
    Vashistha and Farahi, "I-trustworthy models: a framework for trustworthiness evaluation of probabilistic
    classifiers", AISTATS 2025, arXiv:2501.15617.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.predictions([0, 1, 1, 1], [0.25, 0.75, 0.5, 0.75], {"town": ["a", "a", "b", "b"]})
    >>> found = cal.measure.inferred_gap(data, "town", "b")
    >>> found.settings["inferred"], found.settings["observed"], found.value
    (0.125, 0.5, -0.375)
    """
    checked_alpha(alpha)
    return compared(inferring(data, variable), level, reference, checked_quantity(quantity), alpha)


def compared(q: Inferring, level: Any, reference: Any, wanted: Quantity, alpha: float) -> Estimate:
    """Return the gap between a level and another, or all others."""
    group = q.at(level)
    other = ~group if reference is None else q.at(reference)
    if (group & other).any():
        raise BadInput(f"reference={reference!r} is the level itself: pass another, or leave it out for everyone else")
    rows = [int(q.sums.rows[mask].sum()) for mask in (group, other)]
    kept = group | other
    sums = q.sums.of(kept)
    found = inferred_gap_of(sums, group[kept], other[kept], wanted)
    named = {"level": str(level), "reference": None if reference is None else str(reference)}
    return q.estimate(
        "inferred_gap",
        found,
        wanted,
        alpha,
        (-1.0, 1.0),
        "probability",
        n=sum(rows),
        rows=tuple(rows),
        clusters=sums.clusters,
        **named,
    )
