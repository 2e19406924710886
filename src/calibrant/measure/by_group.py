"""One measure, group by group."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from calibrant.arguments import names, one_source, shown
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import BadInput, CalibrantWarning, NotComputable
from calibrant.results import Estimate
from calibrant.views.points import parts
from calibrant.views.sample import keyed


@one_source
def by_group(
    function: Callable[..., Estimate],
    data: Predictions | Sketch,
    *,
    by: Iterable[str] | str | None = None,
    intersections: bool = False,
    **settings: Any,
) -> dict[str, Estimate]:
    r"""Measure each group by itself.

    Estimand: that of `function`, given membership of the group.

    Parameters
    ----------
    function : callable
        A function of this module, such as ``cal.measure.ece``.
    data : Predictions or Sketch
        A sketch brings its own groups; then leave `by` and `intersections` out.
    by : str or sequence of str
        Covariates whose levels are the groups; numbers are binned at round numbers without looking at labels.
    intersections : bool
        Also every pair of the covariates.
    **settings
        Passed on to `function`.

    Returns
    -------
    dict of str to Estimate
        Named as by `certify.groups`: ``"sex = f"``, ``"sex = f, age = 40–49"``. Empty groups are left out; one in which
        the measure is not computable is left out with a `CalibrantWarning` that says why.

    Raises
    ------
    NotComputable
        There are no groups, or the measure is computable in none.

    Notes
    -----
    **Assumes.** As `function`; groups named without looking at outcomes.
    **Guarantee.** As `function`, for each group by itself. The intervals are not simultaneous: with G groups pass
    ``alpha = 0.05 / G`` for that, or use `certify.groups`.
    **Method.** The rows of each group, or the group's cells (``2^10``) of a sketch; where it has clusters or weights,
    the rows that it holds.
    **Cost.** One call of `function` a group.
    **Reads.** Rows or the sketch.

    References
    ----------
    As `function`.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.predictions([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.5], {"sex": ["f", "f", "m", "m"]})
    >>> found = cal.measure.by_group(cal.measure.brier, data, by="sex")
    >>> {group: round(e.value, 3) for group, e in found.items()}
    {'sex = f': 0.1, 'sex = m': 0.17}
    """
    if not callable(function):
        raise BadInput(f"function={shown(function)}: pass a function such as cal.measure.ece")
    out: dict[str, Estimate] = {}
    refused: list[tuple[str, str]] = []
    for name, part in parts(data, names("by", by), intersections):
        try:
            out[keyed(name)] = function(part, **settings)
        except NotComputable as e:
            refused.append((keyed(name), e.reason))
    if not out:
        raise NotComputable(
            f"computable in none of {len(refused):,} groups; first: {refused[0][1]}"
            if refused
            else "there are no groups"
        )
    for left_out, reason in refused:
        warnings.warn(f"left out {left_out}: {reason}", CalibrantWarning, stacklevel=2)
    return out
