"""Unlisted subgroups in which probabilities are off: certified in a fixed family, or searched and then tested."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from calibrant.arguments import choice
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.diagnose.fixed_subgroups import fixed_subgroups
from calibrant.diagnose.searched_subgroups import searched_subgroups
from calibrant.errors import BadInput
from calibrant.results import Curve
from calibrant.search.models import Models
from calibrant.stats.cusum import Alternative

Method = Literal["fixed", "searched"]


@takes_arrays
def subgroups(
    data: Predictions | Sketch,
    *,
    method: Method = "fixed",
    variables: Iterable[str] | str | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    rules: int = 5,
    order: int | None = None,
    min_size: float | None = None,
    limit: float | None = None,
    tolerance: float | None = None,
    alternative: Alternative | None = None,
    depth: int | None = None,
    min_share: float | None = None,
    models: Models | None = None,
) -> Curve:
    r"""Unlisted subgroups in which probabilities are off, such as "age over 76 and income up to 25".

    Estimand, for each subgroup: the mean over its rows of the event rate given score and covariates, minus the score.

    Parameters
    ----------
    data : Predictions or Sketch
        A sketch made with ``tests=True`` brings its own covariates and seed.
    method : {"fixed", "searched"}
        ``"fixed"``: a family of subgroups fixed before labels are read, with ranges that hold for all of them at once.
        ``"searched"``: rules found in one half of the rows by models of the residual, and tested on the other half.
    variables : str or sequence of str, optional
        Covariates next to the score; all that can be used by default.
    alpha : float in (0, 0.5]
        Probability, at most, that any range misses, and that any subgroup is falsely reported.
    seed : int
    rules : int from 1 to 20
        At most so many subgroups.
    order : {1, 2, 3}, optional
        Of "fixed": most attributes that a subgroup combines; 2 by default.
    min_size : float in [0, 1), optional
        Of "fixed": least share of the rows that a subgroup has; 0.01 by default. It has 20 rows in any event.
    limit : float in (0, 1), optional
        Of "fixed": how far off a subgroup may be; ``over`` says which are shown to be further off.
    tolerance : float in [0, 1), optional
        Of "searched": how far off a probability may be; 0 by default.
    alternative : {"two-sided", "greater", "less"}, optional
        Of "searched": ``"greater"`` reports only subgroups that the model underpredicts; "two-sided" by default.
    depth : int from 1 to 6, optional
        Of "searched": conditions of a rule; 3 by default.
    min_share : float in [0, 0.5), optional
        Of "searched": share of the rows that a rule must have, about; 0.01 by default.
    models : sequence of (str, estimator), optional
        Of "searched": your own scikit-learn models of the residual, as in `strong_calibration_test`.

    Returns
    -------
    Curve
        A line for each subgroup. Of both methods: ``rule`` in words, ``rows``, ``share``, ``predicted``, ``observed``,
        ``gap`` with limits ``low`` to ``high``, ``side`` and ``stability``. "fixed" adds ``floor`` (how far off at
        least), ``evidence``, ``gap_left`` and ``rows_left`` (without the rows of earlier subgroups) and ``over``;
        "searched" adds ``observed_low``, ``observed_high``, ``excess``, ``p_value``, ``p_adjusted`` and ``finding``.
        ``settings["conditions"]`` holds the rules as data. ``.chart()`` draws it.

    Raises
    ------
    BadInput
        No such covariate, a setting that cannot be used, or one of the other method.
    NotComputable
        Too few rows or clusters for the method.

    Notes
    -----
    **Assumes.** Rows (or clusters) independent given scores and covariates.
    **Guarantee.** Finite-sample, of both. "fixed": the family is fixed before labels are read, and the limits hold for
    all its subgroups at once. "searched": the half that tests plays no part in finding the rules, and alpha is shared
    over the rules tested.
    **Method.** `calibrant.diagnose.fixed_subgroups` and `calibrant.diagnose.searched_subgroups` describe the steps.
    **Reads.** "fixed": rows, or the sketch's tables and its sample. "searched": rows.

    References
    ----------
    Hoeffding (1956), doi:10.1214/aoms/1177728178. Clopper, Pearson (1934), doi:10.1093/biomet/26.4.404. Friedman,
    Fisher (1999), "Bump hunting in high-dimensional data", Statistics and Computing 9. Feng, Gossmann, Pirracchio,
    Petrick, Pennello, Sahiner (2024), "Is this model reliable for everyone? Testing for strong calibration", AISTATS.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, income, p = rng.uniform(20, 90, 5000), rng.uniform(10, 60, 5000), rng.uniform(0.1, 0.6, 5000)
    >>> y = rng.random(5000) < np.where((age > 75) & (income < 25), p + 0.3, p)
    >>> data = cal.predictions(y, p, {"age": age, "income": income})
    >>> cal.diagnose.subgroups(data).columns["rule"]
    ('age over 76 and income up to 25',)
    >>> cal.diagnose.subgroups(data, method="searched", tolerance=0.02).columns["finding"][0]
    True
    """
    choice("method", method, get_args(Method))
    fixed = {"order": order, "min_size": min_size, "limit": limit}
    searched = {
        "tolerance": tolerance,
        "alternative": alternative,
        "depth": depth,
        "min_share": min_share,
        "models": models,
    }
    own, other = (fixed, searched) if method == "fixed" else (searched, fixed)
    for name, value in other.items():
        if value is not None:
            needs = "searched" if method == "fixed" else "fixed"
            raise BadInput(f"{name}= is of method={needs!r}, and method is {method!r}: set method, or leave it out")
    settings = {name: value for name, value in own.items() if value is not None}
    compute = fixed_subgroups if method == "fixed" else searched_subgroups
    return compute(data, variables=variables, alpha=alpha, seed=seed, rules=rules, **settings)  # type: ignore[arg-type]
