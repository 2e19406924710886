"""Certified intervals of the error along a variable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.certify.population import INDEPENDENT, shares
from calibrant.certify.residuals import Cut, Dealt, cut_of, dealt_of
from calibrant.certify.residuals_sketch import sketched_cut
from calibrant.data.seed import checked_seed
from calibrant.data.sketch import Sketch
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Estimate, Interval, Side
from calibrant.stats.strata import View
from calibrant.stats.witness import NONE, Smear, debiased_error, lower_bound, shift_limits, upper_bound

GRID = 256  # cells of a jittered variable's ranks
FOR_SHIFT = 0.1  # share of each end's error probability that pays for the unknown overall shift


def variable(
    data: Any,
    variable: str | Sequence[str],
    bins: int = 10,
    bandwidth: float | None = None,
    beyond_shift: bool = False,
    view: View = "probability",
    alpha: float = 0.05,
    side: Side = "two-sided",
    seed: int = 0,
) -> Estimate:
    r"""Certify the average error along a variable: how far probabilities are off for people who differ in it.

    Estimand: ``sum_c |E[(Y - p) 1_c]|`` over the bins or levels c of the variable (or of a pair); with `bandwidth`
    ``sum_t |E[(Y - p) K(t | V)]|``, the error after the variable's rank is jittered; with `beyond_shift` of
    ``Y - p - E[Y - p]`` in place of ``Y - p``. In probability units.

    Parameters
    ----------
    data : Predictions or Sketch
        A sketch brings its own bins and levels.
    variable : str or pair of str
        Covariates. Missing values are a level.
    bins : int from 1 to 4096
        Of a number or date, about equally many rows in each; equal values share one.
    bandwidth : float from 0.01 to 0.5, optional
        Jitter a number's rank instead of cutting bins: ``K(t | v)`` proportional to ``sech((t - v) / h)`` on 256 ranks.
        Fixed before the labels are seen.
    beyond_shift : bool
        Certify what is left when everyone's probability is moved by the overall mean residual.
    view : {"probability", "confidence"}
        As in `measure.vece`.
    alpha : float in (0, 1)
        Probability, at most, that the interval misses the estimand.
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Picks the pilot rows and deals the others into blocks.

    Returns
    -------
    Estimate
        ``value`` is the debiased plain error, moved into the interval; smaller is better.

    Raises
    ------
    BadInput
        No such variable, or a setting out of range.
    NotComputable
        There are weights or clusters; a category is to be jittered; or the sketch did not count the variable.

    Notes
    -----
    **Assumes.** Independent rows from one distribution.
    **Guarantee.** Finite-sample, for every classifier and every distribution. Unlike the lower end for a displayed or
    jittered *score*, this lower end is evidence against the model: binning or jittering the *variable* can only average
    its error away (Jensen), so the error given the variable itself is at least as large.
    **Method.** Upper end: Theorem U (theory 1.3, 1.4) in its linear form with the raw residuals as bets, four stakes.
    Lower end: Theorem L, signs learnt on earlier blocks, mixed with an average over all signs. Bins of a number are cut
    at quantiles of at most 1,000 pilot rows, a tenth at most, which then leave the certificate. With `beyond_shift` a
    tenth of each end's alpha pays for limits of the mean residual, and the worst mean in them is taken; the bounds are
    monotone towards the ends of the limits. Above 20,000 rows logarithms are replaced by their series to the fourth
    power less a bound of the rest. **Cost.** Linear in the rows, then about 10 ms. **Reads.** Rows; or the cells of the
    sketch's groups, if the variable is one of `by`, else its cells along the variable (whose lower end learns no
    signs). Bins that a sketch fixed at its first look count as fixed.

    References
    ----------
    Kelly and Smyth, "Variable-based calibration for machine learning classifiers", AAAI 2023, arXiv:2209.15154 (the
    quantity; the certificates are this project's). Waudby-Smith and Ramdas (2024), doi:10.1093/jrsssb/qkad009.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, age = np.full(20_000, 0.5), rng.integers(18, 90, 20_000)
    >>> y = rng.uniform(size=20_000) < np.where(age < 50, 0.4, 0.6)
    >>> found = cal.certify.variable(cal.predictions(y, p, {"age": age}), "age")
    >>> bool(0.08 < found.interval.low < 0.1 < found.interval.high < 0.13)
    True
    """
    name = _named(variable)
    checked = Asked(bins, bandwidth, beyond_shift, view, side, checked_seed(seed))
    return _family(data, (name,), checked, alpha)[name]


def variables(
    data: Any,
    names: Sequence[str | tuple[str, str]],
    bins: int = 10,
    beyond_shift: bool = False,
    view: View = "probability",
    alpha: float = 0.05,
    side: Side = "two-sided",
    seed: int = 0,
) -> dict[str | tuple[str, str], Estimate]:
    """Certify many variables at once: alpha, shared equally, bounds the chance that any interval is wrong.

    Each is what `variable` certifies; see there.
    """
    asked = Asked(bins, None, beyond_shift, view, side, checked_seed(seed))
    return _family(data, tuple(_named(name) for name in names), asked, alpha)


def _named(variable: Any) -> str | tuple[str, str]:
    """Return one covariate or a pair, or refuse it."""
    if isinstance(variable, str):
        return variable
    if isinstance(variable, (list, tuple)) and len(variable) == 2 and variable[0] != variable[1]:
        return variable[0], variable[1]
    raise BadInput(f"variable={variable!r}: pass the name of one covariate, or two different names")


@dataclass(frozen=True)
class Asked:
    """Settings of a certificate along a variable, checked."""

    bins: int
    bandwidth: float | None
    beyond_shift: bool
    view: View
    side: Side
    seed: int

    def __post_init__(self) -> None:
        if isinstance(self.bins, bool) or not isinstance(self.bins, (int, np.integer)) or not 1 <= self.bins <= 4096:
            raise BadInput(f"bins={self.bins!r}: pass a whole number from 1 to 4096, such as 10")
        h = self.bandwidth
        if h is not None and not (isinstance(h, (int, float, np.floating)) and 0.01 <= h <= 0.5):
            raise BadInput(f"bandwidth={h!r}: pass a number from 0.01 to 0.5, such as 0.05, or None for bins")
        if self.view not in ("probability", "confidence"):
            raise BadInput(f"view={self.view!r}: pass 'probability' or 'confidence'")


def _family(data: Any, names: tuple[Any, ...], asked: Asked, alpha: float) -> dict[Any, Estimate]:
    low_share, high_share = shares(alpha, asked.side)
    if not names:
        raise BadInput("no variables: name at least one")
    spend = low_share / len(names), high_share / len(names)
    dealt: Dealt | None = None if isinstance(data, Sketch) else dealt_of(data, asked.view, asked.seed)
    out = {}
    for name in names:
        if dealt is None:
            cut = sketched_cut(data, name, asked.bins, asked.bandwidth, asked.view)
        else:
            cut = cut_of(dealt, name, GRID if asked.bandwidth is not None else asked.bins, asked.bandwidth is not None)
        out[name] = _certified(cut, name, asked, spend, alpha)
    return out


def _certified(cut: Cut, name: Any, asked: Asked, spend: tuple[float, float], alpha: float) -> Estimate:
    smear = None if asked.bandwidth is None else Smear(cut.points, float(asked.bandwidth))
    shifts: tuple[float, ...] = NONE
    low_share, high_share = spend
    if asked.beyond_shift:
        pays = FOR_SHIFT * (low_share + high_share)
        shifts = shift_limits(cut.ledger, pays)
        low_share, high_share = low_share * (1 - FOR_SHIFT), high_share * (1 - FOR_SHIFT)
    high = upper_bound(cut.ledger, high_share, shifts, smear) + cut.rounding if high_share else 1.0
    low = 0.0
    if low_share:
        low = max(lower_bound(cut.ledger, low_share, asked.seed, cut.ordered, shifts, smear) - cut.rounding, 0.0)
    n = int(cut.ledger.sums[..., 0].sum())
    if n == 0:
        raise NotComputable("there are no rows")
    value = debiased_error(cut.ledger, asked.beyond_shift, smear)
    return Estimate(
        method="certify.variable",
        value=max(min(value, high), low),
        unit="probability",
        n=n,
        interval=Interval(low=low, high=min(high, 1.0), level=1.0 - alpha, guarantee="finite-sample"),
        assumes=INDEPENDENT,
        settings={
            "variable": name,
            "about": cut.about(asked.bandwidth),
            "view": asked.view,
            "bins": cut.cells,
            "bandwidth": asked.bandwidth,
            "beyond_shift": asked.beyond_shift,
            "edges_from": cut.edges_from,
            "pilot": cut.pilot,
            "reads": cut.reads,
            "delta": spend,
            "seed": asked.seed,
        },
    )
