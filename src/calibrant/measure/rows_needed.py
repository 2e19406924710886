"""Planning: how many rows it takes to estimate observed over expected, the calibration slope and the AUROC."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_alpha, checked_beta, number, refuse
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Estimate, Interval
from calibrant.stats.measures import ranking
from calibrant.views.kinds import refuse_rows
from calibrant.views.points import points

Floats = NDArray[np.float64]
QUANTILES = 20_000  # of a beta distribution, at equal steps
UNWEIGHTED = "the formulas are for independent rows of equal weight: leave cluster= and weights= out"


@takes_arrays
def rows_needed(
    widths: Mapping[str, float],
    data: Predictions | Sketch | None = None,
    *,
    beta: Sequence[float] | None = None,
    rate: float | None = None,
    expected_auroc: float | None = None,
    alpha: float = 0.05,
) -> Estimate:
    r"""Plan a sample: rows for the intervals of measures to be as narrow as wished, of a calibrated model.

    Estimand: the least n at which the large-sample interval of each measure in `widths` is at most so wide.

    Parameters
    ----------
    widths : mapping of str to float
        Width of the interval of ``"observed_expected"`` (as a ratio: 0.2 is about 0.9 to 1.1), ``"calibration_slope"``
        and ``"auroc"``; one or more of them.
    data : Predictions or Sketch, optional
        Pilot rows whose *scores* set the distribution to plan for.
    beta : pair of float, optional
        Parameters a and b of a beta distribution of the scores, in place of `data`. Uniform scores, (1, 1), if both are
        left out.
    rate : float in (0, 1), optional
        Rate of events to expect; by default the mean score.
    expected_auroc : float in (0, 1), optional
        AUROC to expect; by default that of scores that are calibrated.
    alpha : float in (0, 0.5]

    Returns
    -------
    Estimate
        ``value`` in rows: the largest number. ``settings["rows"]`` has that of each measure, ``settings["events"]`` the
        events expected among them; ``rate`` and ``expected_auroc`` are those planned for. The interval is trivial: a
        plan is no certificate.

    Raises
    ------
    NotComputable
        Clusters or weights; the slope of scores that are all alike.

    Notes
    -----
    **Assumes.** Independent rows with the stated scores; a calibrated model for the slope.
    **Guarantee.** None: large-sample standard errors at the expected values. With few events intervals of `measure` are
    wider.
    **Method.** Riley et al. (2021). O/E: ``SE(ln O/E)^2 = (1 - rate) / (n rate)``. Slope: ``SE^2 = I_00 / (n (I_00 I_11
    - I_01^2))``, with ``I_jk = E[p (1 - p) logit(p)^(j + k)]``. AUROC: Newcombe's (2006) variance, which
    Hanley and McNeil's areas give.
    Departures: widths are solved for and not searched in steps of the standard error; the beta distribution is read at
    20,000 quantiles and not drawn.
    **Cost.** Milliseconds, or a sort of the rows. **Reads.** Nothing, or the scores of rows or of the sketch's cells.

    References
    ----------
    Riley et al., Statistics in Medicine 40 (2021), doi:10.1002/sim.9025. Riley et al., BMJ 384 (2024),
    doi:10.1136/bmj-2023-074821. Newcombe, Statistics in Medicine 25 (2006), doi:10.1002/sim.2324.

    Examples
    --------
    >>> import calibrant as cal
    >>> plan = cal.measure.rows_needed({"calibration_slope": 0.2, "auroc": 0.1}, beta=(2, 8))
    >>> plan.value == max(plan.settings["rows"].values())
    True
    """
    from scipy.special import ndtri

    if not isinstance(widths, Mapping) or not widths or any(name not in SIZES for name in widths):
        refuse("widths", widths, f"a width of one or more of {', '.join(SIZES)}", "such as {'auroc': 0.1}")
    wished = {
        name: number(f"width of {name}", value, above=0, most=1.0 if name == "auroc" else 10.0, hint="such as 0.2")
        for name, value in widths.items()
    }
    z = float(-ndtri(0.5 * checked_alpha(alpha)))
    scores = Scores.of(data, beta)
    expected = scores.rate if rate is None else number("rate", rate, above=0, below=1, hint="the share of events")
    area = scores.auroc
    if expected_auroc is not None:
        area = number("expected_auroc", expected_auroc, above=0, below=1, hint="such as 0.75")
    if rate is None and not 0.0 < expected < 1.0:
        raise NotComputable(f"the mean score is {expected:g}: pass rate=, the share of events to expect")
    half = {name: 0.5 * width for name, width in wished.items()}
    if "observed_expected" in half:  # which is 1: on the scale of its logarithm
        half["observed_expected"] = math.asinh(half["observed_expected"])
    rows = {name: math.ceil(SIZES[name](scores, expected, area, each / z)) for name, each in half.items()}
    return Estimate(
        method="measure.rows_needed",
        value=float(max(rows.values())),
        unit="rows",
        n=0 if data is None else int(data.n),
        interval=Interval(low=0.0, high=float("inf"), level=1.0 - alpha, guarantee="asymptotic"),
        assumes=scores.stated,
        settings={
            "widths": dict(wished),
            "rows": rows,
            "events": {name: math.ceil(n * expected) for name, n in rows.items()},
            "rate": expected,
            "expected_auroc": area,
            "alpha": alpha,
        },
    )


# ---- the scores planned for ----


@dataclass(frozen=True)
class Scores:
    """Scores and the share of rows that have each."""

    p: Floats  # shape (m,)
    mass: Floats  # shape (m,): adds up to one
    stated: str

    @classmethod
    def of(cls, data: Predictions | Sketch | None, beta: Sequence[float] | None) -> Scores:
        """Those of pilot rows, of a beta distribution, or uniform ones."""
        if data is None:
            from scipy.special import betaincinv

            a, b = (1.0, 1.0) if beta is None else checked_beta(beta)
            at = (np.arange(QUANTILES) + 0.5) / QUANTILES
            stated = "uniform scores" if beta is None else f"scores of a beta distribution ({a:g}, {b:g})"
            return cls(betaincinv(a, b, at), np.full(QUANTILES, 1.0 / QUANTILES), stated)
        if beta is not None:
            refuse("beta", tuple(beta), "either data or a beta distribution")
        q = points(data)
        refuse_rows(q, weight=UNWEIGHTED, cluster=UNWEIGHTED)
        return cls(q.p, q.times / q.times.sum(), "scores distributed as given")

    @property
    def rate(self) -> float:
        """The rate of events of a calibrated model."""
        return float(self.mass @ self.p)

    @property
    def auroc(self) -> float:
        """The AUROC of a calibrated model: each score is that of an event with the score's probability."""
        y = np.repeat(np.array([1, 0], dtype=np.int8), len(self.p))
        mass = np.concatenate([self.mass * self.p, self.mass * (1.0 - self.p)])
        some = mass > 0.0
        both = np.concatenate([self.p, self.p])
        return ranking(both[some], y[some], np.ones(np.count_nonzero(some)), mass[some]).auroc

    @property
    def slope_variance(self) -> float:
        """n times the variance of the calibration slope of a calibrated model."""
        inner = (self.p > 0.0) & (self.p < 1.0)  # p (1 - p) logit(p)^2 goes to 0 at both ends
        p, logit = self.p[inner], np.log(self.p[inner]) - np.log1p(-self.p[inner])
        information = self.mass[inner] * p * (1.0 - p)
        total = float(information.sum())
        if total <= 0.0:
            raise NotComputable("the calibration slope has no size: every score is 0 or 1")
        mean = float(information @ logit) / total
        spread = float(information @ (logit - mean) ** 2)  # I_11 - I_01^2 / I_00, without its cancellation
        if spread <= 1e-12 * total:
            raise NotComputable("the calibration slope has no size: the scores are all alike")
        return 1.0 / spread


# ---- rows at which a standard error is so large ----


def _auroc(_: Scores, rate: float, area: float, error: float) -> float:
    """Solve Newcombe's ``SE^2 = A (1 + (n / 2 - 1) k) / n^2``."""
    k = (1.0 - area) / (2.0 - area) + area / (1.0 + area)
    a = area * (1.0 - area) / (rate * (1.0 - rate))
    half = 0.5 * a * k
    return (half + math.sqrt(half**2 + 4.0 * error**2 * a * (1.0 - k))) / (2.0 * error**2)


SIZES: Mapping[str, Callable[[Scores, float, float, float], float]] = {
    "observed_expected": lambda _scores, rate, _area, error: (1.0 - rate) / (rate * error**2),
    "calibration_slope": lambda scores, _rate, _area, error: scores.slope_variance / error**2,
    "auroc": _auroc,
}
