"""Curves of the score: Platt scaling, temperature scaling, beta calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from calibrant.arguments import choice, number
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.repair.calibrators.dirichlet import Softmax, temperature_of
from calibrant.repair.catalogue import Tunable, recipe
from calibrant.repair.fitted import Batch, Calibrator, Order, fitted_on
from calibrant.repair.formulas import expression
from calibrant.repair.formulas.expression import Formula, Term
from calibrant.repair.regression import EDGE, Floats, expit, fit_rows, log_odds, log_of, losses, sharpness, targets
from calibrant.stats.logistic import regress
from calibrant.views.points import weights_of

# ---- Platt scaling: a logistic curve of the score, or of its log-odds ----

Scale = Literal["logit", "raw", "log ratio"]
ScaleOption = Literal["auto", "logit", "raw", "log ratio"]
EQUAL = 1e-9  # log loss of a row by which two curves differ from rounding alone, as through two points
TINY = 1e-12  # added to a score and its complement in a log ratio, as scikit-learn does


@dataclass(frozen=True, kw_only=True)
class Logistic(Calibrator):
    """The map ``expit(slope t + intercept)``, t the score, its log-odds, or ``ln((p + 1e-12) / (1 - p + 1e-12))``."""

    slope: float
    intercept: float
    scale: Scale = "logit"

    @property
    def order(self) -> Order:
        return "kept" if self.slope > 0 else "kept up to ties" if self.slope == 0 else "may change"

    def values(self, rows: Batch) -> Floats:
        return expit(self.eta(rows.p))

    def formula(self, row: Formula) -> Term:
        p = row.score
        if self.scale == "log ratio":
            t = expression.logged(p + TINY) - expression.logged((1.0 - p) + TINY)
        else:
            t = p if self.scale == "raw" else expression.log_odds(p, (EDGE, EDGE))
        return expression.probability(t * self.slope + self.intercept)

    def eta(self, p: Floats) -> Floats:
        return self.slope * scaled(p, self.scale) + self.intercept


def scaled(p: Floats, scale: Scale) -> Floats:
    """What the curve is a function of."""
    if scale == "raw":
        return p
    if scale == "logit":
        return log_odds(p)
    return np.log(p + TINY) - np.log((1.0 - p) + TINY)


@recipe(calibrators=[Logistic], words="Platt scaling", simplicity=40, command="platt", tried="always")
class Platt(Tunable):
    r"""Platt scaling: logistic regression of the outcome on the score's log-odds, or on the score.

    Estimand: a, b of ``P(Y = 1 | p) = expit(a t + b)``, t = logit p or p.

    Parameters
    ----------
    scale : {"auto", "logit", "raw", "log ratio"}
        What the curve is a function of. "logit", the log-odds, keep a calibrated score as it is (a = 1, b = 0 is the
        identity); "log ratio" are log-odds that end at 27.6, ``ln((p + 1e-12) / (1 - p + 1e-12))``. "raw", the score,
        is Platt's own form and scikit-learn's, on which no row can lie far out. "auto" takes the likelier of "logit"
        and "raw".
    ridge : float, 0 or more, optional
        Penalty ``ridge a^2 / 2`` on the slope, in addition to the sum of the log losses: scikit-learn's 1/C. The
        outcomes are then 1 and 0 as they are. None: no penalty and Platt's targets. ``Platt(scale="raw", ridge=1.0)``
        is scikit-learn's ``LogisticRegression()`` of the score, as programs that say Platt scaling often have it.

    Raises
    ------
    BadInput
        An unknown scale, or a ridge below 0.
    NotComputable
        The rows have one outcome only.

    Notes
    -----
    **Assumes.** The true curve has this shape; otherwise the fit is the nearest of this shape in log loss.
    **Guarantee.** None by itself: judge with `calibrant.repair.evaluate` on other rows.
    **Method.** Maximum likelihood with Platt's targets, (events + 1)/(events + 2) and 1/(non-events + 2) in place of 1
    and 0, which keep the fit finite when the classes separate; a ridge above 0 does so too, and replaces them. Within
    ``1e-6`` of 0 and 1 the log-odds go on along their tangent, so that they stay finite and no two scores tie. A line
    in the log-odds is ruled by the scores nearest to 0 and 1: a twentieth of the rows, scored below one in 60,000 and
    yet events one time in eight, turn it nearly level for everyone. "auto" therefore fits both curves, of two numbers
    each, and takes that with the smaller log loss on these rows (outcomes 1 and 0, no penalty), the log-odds where they
    are equal; `scale` of the map says which. Of uniform scores that were right it took the score, which leaves no score
    as it is, in 24.5 % of 200 fits on 100 rows, 15.5 % on 300 and 3.5 % on 1,000. A ridge weighs more on the score than
    on the log-odds, for its slope is steeper; a ridge of 0 has no finite fit where the classes separate, and stops at a
    steep curve. **Cost.** About five passes over the rows a curve. **Reads.** Rows. A weight counts as so many rows.

    References
    ----------
    Platt, "Probabilistic outputs for support vector machines", Advances in Large Margin Classifiers (1999).

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p**2 / (p**2 + (1 - p) ** 2), p)
    >>> fitted = cal.repair.Platt().fit(data)
    >>> fitted.scale, bool(abs(fitted.slope - 2.0) < 0.1), fitted.order
    ('logit', True, 'kept')
    """

    scale: ScaleOption = "auto"
    ridge: float | None = None

    def __post_init__(self) -> None:
        choice("scale", self.scale, get_args(ScaleOption))
        if self.ridge is not None:
            number("ridge", self.ridge, least=0, hint="or None for Platt's targets")

    def fit(self, data: Predictions) -> Logistic:
        """Fit the curve to rows."""
        rows = fit_rows(data, "Platt")
        if self.scale != "auto":
            return self._curve(rows, self.scale)
        line, plain = self._curve(rows, "logit"), self._curve(rows, "raw")
        y, weight = rows.y.astype(np.float64), weights_of(rows)
        gain = float(weight @ (losses(y, line.eta(rows.p)) - losses(y, plain.eta(rows.p))))
        return plain if gain > EQUAL * float(weight.sum()) else line

    def _curve(self, rows: Predictions, scale: Scale) -> Logistic:
        y = targets(rows) if self.ridge is None else rows.y.astype(np.float64)
        slopes, intercept = regress(scaled(rows.p, scale)[:, None], y, weights_of(rows), ridge=self.ridge or 0.0)
        return Logistic(
            recipe="Platt",
            settings={
                "scale": scale,
                "scale_requested": self.scale,
                "ridge": None if self.ridge is None else float(self.ridge),
            },
            fitted_on=fitted_on(rows),
            slope=float(slopes[0]),
            intercept=intercept,
            scale=scale,
        )


def scale_of(fitted: Calibrator) -> Scale | None:
    """What the curve of a map is a function of; None where its recipe leaves no choice."""
    result = fitted.settings.get("scale")
    return next((s for s in get_args(Scale) if s == result), None)


# ---- Temperature scaling: one number that makes all scores bolder or more timid ----


@recipe(calibrators=[Logistic, Softmax], words="temperature scaling", simplicity=30, command="temperature")
class Temperature(Tunable):
    r"""Temperature scaling: divide the log-odds by one number.

    Estimand: T of ``P(Y = 1 | p) = expit(logit(p) / T)``. T above 1 draws scores towards one half; an even score stays.
    Of several classes T of ``softmax(ln p / T)``.

    Raises
    ------
    NotComputable
        The rows have one outcome only.

    Notes
    -----
    **Assumes.** The model is too bold or too timid and nothing else: no overall gap, which `Platt` has.
    **Guarantee.** None by itself: judge with `calibrant.repair.evaluate` on other rows. Order is kept.
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

    def fit(self, data: Predictions | MulticlassPredictions) -> Logistic | Softmax:
        """Fit the temperature to rows."""
        if isinstance(data, MulticlassPredictions):
            return temperature_of(data)
        rows = fit_rows(data, "Temperature")
        t = scaled(rows.p, "log ratio")
        weighted = t * weights_of(rows)
        happened = float(weighted @ rows.y)

        def rises(log_sharpness: float) -> float:
            """The derivative of the log loss in 1/T, for the loss is convex."""
            return float(weighted @ expit(np.exp(log_sharpness) * t)) - happened

        slope = sharpness(rises)
        return Logistic(
            recipe="Temperature",
            settings={"temperature": 1.0 / slope},
            fitted_on=fitted_on(rows),
            slope=slope,
            intercept=0.0,
            scale="log ratio",
        )


# ---- Beta calibration: right when the scores of each class have beta distributions ----

RIDGE = 1e-11  # keeps the fit finite when the classes separate; betacal's 1/C
Parameters = Literal["abm", "am", "ab"]


@dataclass(frozen=True, kw_only=True)
class BetaCurve(Calibrator):
    """The map ``expit(a ln p - b ln(1 - p) + c)``."""

    a: float
    b: float
    c: float

    @property
    def order(self) -> Order:
        if min(self.a, self.b) < 0:
            return "may change"
        return "kept" if max(self.a, self.b) > 0 else "kept up to ties"

    def values(self, rows: Batch) -> Floats:
        return expit(self.a * log_of(rows.p) - self.b * log_of(1.0 - rows.p) + self.c)

    def formula(self, row: Formula) -> Term:
        up, down = (expression.logarithm(v, EDGE) for v in (row.score, 1.0 - row.score))
        return expression.probability(up * self.a - down * self.b + self.c)


@recipe(calibrators=[BetaCurve], words="beta calibration", simplicity=50, command="beta", tried="always")
class Beta(Tunable):
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
    ends, where `Platt` has one slope for both. **Guarantee.** None by itself: judge with `calibrant.repair.evaluate` on
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
        choice("parameters", self.parameters, get_args(Parameters))

    def fit(self, data: Predictions) -> BetaCurve:
        """Fit the curve to rows."""
        rows = fit_rows(data, "Beta")
        a, b, c = _beta(rows, self.parameters)
        return BetaCurve(
            recipe="Beta", settings={"parameters": self.parameters}, fitted_on=fitted_on(rows), a=a, b=b, c=c
        )


def _beta(rows: Predictions, parameters: Parameters) -> tuple[float, float, float]:
    """The coefficients a, b and c: Kull et al. (2017), section 4, with their program's rule for negative a or b."""
    up, down, y = log_of(rows.p), -log_of(1.0 - rows.p), rows.y.astype(np.float64)

    def free(*columns: Floats, intercept: bool = True) -> tuple[Floats, float]:
        return regress(np.column_stack(columns), y, weights_of(rows), ridge=RIDGE, intercept=intercept)

    if parameters == "am":  # a = b: one column, their sum
        (a,), c = free(up + down)
        return float(a), float(a), c
    if parameters == "ab":  # c = (a - b) ln 2: the columns are 0 at one half
        (a, b), _ = free(up + np.log(2.0), down - np.log(2.0), intercept=False)
        return float(a), float(b), float((a - b) * np.log(2.0))
    (a, b), c = free(up, down)
    if a < 0:
        (b,), c = free(down)
        return 0.0, float(b), c
    if b < 0:
        (a,), c = free(up)
        return float(a), 0.0, c
    return float(a), float(b), c
