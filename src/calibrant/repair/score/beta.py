"""Beta calibration: the curve that is right when the scores of each class have beta distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.errors import BadInput
from calibrant.repair.fitted import Batch, FittedMap, Order, fitted_on
from calibrant.repair.regression import fit_rows, log_of, newton

RIDGE = 1e-11  # keeps the fit finite when the classes separate; betacal's 1/C
Parameters = Literal["abm", "am", "ab"]


@dataclass(frozen=True, kw_only=True)
class BetaCurve(FittedMap):
    """The map ``expit(a ln p - b ln(1 - p) + c)``."""

    a: float
    b: float
    c: float

    @property
    def order(self) -> Order:
        """Kept if neither a nor b is below 0."""
        if min(self.a, self.b) < 0:
            return "may change"
        return "kept" if max(self.a, self.b) > 0 else "kept up to ties"

    def values(self, rows: Batch) -> Any:
        """Return the repaired scores."""
        from scipy.special import expit

        return expit(self.a * log_of(rows.p) - self.b * log_of(1.0 - rows.p) + self.c)


@dataclass(frozen=True, kw_only=True)
class Beta:
    r"""Beta calibration: logistic regression of the outcome on ln p and -ln(1 - p).

    Estimand: a, b, c of ``P(Y = 1 | p) = expit(a ln p - b ln(1 - p) + c)``, a and b at least 0.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}
        Which are free: all three; a and b equal (Platt scaling of the log-odds); or the score one half kept where it
        is, ``c = (a - b) ln 2``.

    Raises
    ------
    BadInput
        Unknown parameters.
    NotComputable
        The rows have one outcome only.

    Notes
    -----
    **Assumes.** The true curve has this shape: S, inverted S, or bent to one side, so that it can be right at both
    ends, where `Platt` has one slope for both. **Guarantee.** None by itself: judge with `calibrant.repair.judge.compare` on
    other rows. Order is kept when `order` says so. **Method.** Maximum likelihood. If a comes out below 0 it is set to
    0 and the rest fitted again; else if b does, likewise: betacal's rule. It leaves the remaining coefficient free, and
    "am" and "ab" altogether, so that a score that ranks backwards yields a falling map, whose `order` is "may change".
    Within ``1e-6`` of 0 and 1 logarithms go on along their tangent (betacal cuts scores at 2e-16, which gives scores of
    exactly 0 and 1 more leverage). **Cost.** About five passes over the rows: 0.5 s a million. **Reads.** Rows; weights
    are used.

    References
    ----------
    Kull, Silva Filho, Flach, "Beta calibration: a well-founded and easily implemented improvement on logistic
    calibration for binary classifiers", AISTATS 2017.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=50_000)
    >>> odds = p**2 / (1 - p) ** 0.5
    >>> data = cal.predictions(rng.uniform(size=50_000) < odds / (1 + odds), p)
    >>> fitted = cal.repair.Beta().fit(data)
    >>> round(fitted.a, 1), round(fitted.b, 1), fitted.order
    (2.0, 0.5, 'kept')
    """

    parameters: Parameters = "abm"

    def __post_init__(self) -> None:
        if self.parameters not in ("abm", "am", "ab"):
            raise BadInput(f"parameters={self.parameters!r}: choose 'abm', 'am' or 'ab'")

    def fit(self, data: Any) -> BetaCurve:
        """Fit the curve to rows."""
        rows = fit_rows(data, "Beta")
        a, b, c = beta_fit(rows.p, rows.y, rows.weights, self.parameters)
        return BetaCurve(
            recipe="Beta", settings={"parameters": self.parameters}, fitted_on=fitted_on(rows), a=a, b=b, c=c
        )


def beta_fit(p: Any, y: Any, weight: Any = None, parameters: Parameters = "abm") -> tuple[float, float, float]:
    """Return a, b and c for scores p and outcomes (or targets in [0, 1]) y."""
    up, down = log_of(p), -log_of(1.0 - p)
    target = np.asarray(y, dtype=np.float64)
    if parameters == "am":
        (a,), c = newton((up + down)[:, None], target, weight, RIDGE)
        return float(a), float(a), c
    if parameters == "ab":
        (a, b), _ = newton(np.column_stack([up + np.log(2.0), down - np.log(2.0)]), target, weight, RIDGE, offset=False)
        return float(a), float(b), float((a - b) * np.log(2.0))
    (a, b), c = newton(np.column_stack([up, down]), target, weight, RIDGE)
    if a < 0:
        (b,), c = newton(down[:, None], target, weight, RIDGE)
        return 0.0, float(b), c
    if b < 0:
        (a,), c = newton(up[:, None], target, weight, RIDGE)
        return float(a), 0.0, c
    return float(a), float(b), c
