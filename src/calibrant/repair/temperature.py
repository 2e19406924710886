"""Temperature scaling: one number that makes all scores bolder or more timid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.repair.fitting import fit_rows
from calibrant.repair.platt import Logistic, scaled
from calibrant.repair.provenance import fitted_on

RANGE = 10.0  # of the logarithm of the temperature, scikit-learn's


@dataclass(frozen=True, kw_only=True)
class Temperature:
    r"""Temperature scaling: divide the log-odds by one number.

    Estimand: T of ``P(Y = 1 | p) = expit(logit(p) / T)``. T above 1 draws scores towards one half; an even score stays.

    Raises
    ------
    NotComputable
        The rows have one outcome only.

    Notes
    -----
    **Assumes.** The model is too bold or too timid and nothing else: no overall shift, which `Platt` has.
    **Guarantee.** None by itself: judge with `calibrant.repair.compare` on other rows. Order is kept.
    **Method.** Maximum likelihood: the root of the slope of the log loss in ln(1/T), from -10 to 10; an end of that
    range if there is none. The log-odds are ``ln((p + 1e-12) / (1 - p + 1e-12))``. Both are as scikit-learn's
    ``CalibratedClassifierCV(method="temperature")`` has them. **Cost.** About fifteen passes over the rows: 0.3 s a
    million. **Reads.** Rows; weights are used.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger, "On calibration of modern neural networks", ICML 2017.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p**2 / (p**2 + (1 - p) ** 2), p)
    >>> fitted = cal.repair.Temperature().fit(data)
    >>> bool(abs(fitted.slope - 2.0) < 0.1), fitted.order
    (True, 'kept')
    """

    def fit(self, data: Any) -> Logistic:
        """Fit the temperature to rows."""
        rows = fit_rows(data, "Temperature")
        sharpness = _sharpness(scaled(rows.p, "log ratio"), rows.y, rows.weights)
        return Logistic(
            recipe="Temperature",
            settings={"temperature": 1.0 / sharpness},
            fitted_on=fitted_on(rows),
            slope=sharpness,
            intercept=0.0,
            scale="log ratio",
        )


def _sharpness(t: Any, y: Any, weight: Any) -> float:
    """Return 1/T."""
    from scipy.optimize import brentq
    from scipy.special import expit

    lever = t if weight is None else t * weight
    hits = float(lever @ y)

    def slope(log_sharpness: float) -> float:
        return float(lever @ expit(np.exp(log_sharpness) * t)) - hits

    low, high = slope(-RANGE), slope(RANGE)
    if low >= 0.0:
        return float(np.exp(0.0 if high == low else -RANGE))
    if high <= 0.0:
        return float(np.exp(RANGE))
    return float(np.exp(brentq(slope, -RANGE, RANGE, xtol=1e-12, rtol=1e-12)))
