"""The subgroup test: boxes of a few attributes and models of the residual, joined into one p-value."""

from __future__ import annotations

from collections.abc import Iterable

from calibrant.arguments import checked_alpha
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.detect.scan_test import scan_test
from calibrant.detect.strong_calibration_test import strong_calibration_test
from calibrant.results import Outcome
from calibrant.stats.cusum import Alternative
from calibrant.views.boxes import MIN_SIZE, ORDER

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
