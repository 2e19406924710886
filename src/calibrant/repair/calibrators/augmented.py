"""Logistic and beta calibration that see variables in addition to the score."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import choice, flag, names, number
from calibrant.data.predictions import Predictions
from calibrant.repair.catalogue import Tunable, recipe
from calibrant.repair.fitted import Batch, Calibrator, fitted_on, inputs_of, known, shares, sound
from calibrant.repair.formulas import expression
from calibrant.repair.formulas.expression import Chosen, Formula, Number, Term
from calibrant.repair.regression import (
    Edges,
    Floats,
    Kept,
    edges_of,
    encoded,
    expit,
    fit_rows,
    indicators,
    kept_levels,
    log_odds,
    log_of,
    of_levels,
    targets,
)
from calibrant.stats.logistic import regress
from calibrant.views.points import weights_of

Form = Literal["logit", "raw", "beta", "published beta"]
PUBLISHED = 1e-4  # where the published procedure puts scores of exactly 0

# ---- The map ----


@dataclass(frozen=True, kw_only=True)
class Augmented(Calibrator):
    """The map ``expit(intercept + slopes . t(p) + b . z + c . (z^2 - 1) + d . levels)``, z the standardised numbers."""

    # ``t(p)``: log-odds; the score; or ``ln p`` and ``-ln(1 - p)``, the last with scores of exactly 0 and 1 moved by
    # 0.0001.
    form: Form
    slopes: tuple[float, ...]
    intercept: float
    # `numbers` and `squares`: coefficients of the numbers, and of their squares (empty without).
    numbers: tuple[float, ...] = ()
    squares: tuple[float, ...] = ()
    kept: Kept = ()  # codes of each level variable's levels that have a coefficient; the others have none
    levels: tuple[float, ...] = ()  # the coefficients, in that order
    edges: Edges  # nearer to 0, and to 1, than these logarithms of the score are continued along their tangents

    def check(self) -> None:
        x = inputs_of(self.codings)
        sound(len(self.slopes) == (2 if "beta" in self.form else 1), "slopes are too many or too few")
        sound(len(self.numbers) == x.numbers and len(self.squares) in (0, x.numbers), "a number lacks its coefficient")
        sound(known(self.kept, x.levels), "kept must name levels of each level variable")
        sound(len(self.levels) == sum(map(len, self.kept)), "a level lacks its coefficient")
        sound(min(self.edges) > 0 and shares(self.edges), "edges must lie between 0 and 1")

    def values(self, rows: Batch) -> Floats:
        z = rows.covariates.scaled
        eta = score_columns(rows.p, self.form, self.edges) @ np.array(self.slopes) + self.intercept
        eta = eta + z @ np.array(self.numbers) + of_levels(rows.covariates.codes, self.kept, self.levels)
        return expit(eta + (z * z - 1.0) @ np.array(self.squares) if self.squares else eta)

    def formula(self, row: Formula) -> Term:
        parts = [t * a for t, a in zip(score_terms(row.score, self.form, self.edges), self.slopes, strict=True)]
        parts += [z * b for z, b in zip(row.scaled, self.numbers, strict=True)]
        parts += [(z * z - 1.0) * c for z, c in zip(row.scaled, self.squares, strict=False)]
        parts += [of_kept(row, self.kept, self.levels)] if self.levels else []
        return expression.probability(expression.total(parts) + self.intercept)


def of_kept(row: Formula, kept: Kept, coefficients: Sequence[float]) -> Term:
    """What the levels that have a coefficient add up to; as `regression.of_levels`."""
    left, parts = list(coefficients), list[Term]()
    for variable, own in zip(row.variables, kept, strict=True):
        parts.append(variable.table(own, left[: len(own)]))
        left = left[len(own) :]
    return expression.total(parts)


def score_terms(p: Term, form: Form, edges: Edges) -> tuple[Term, ...]:
    """What the curve is a function of, as formulas; as `score_columns`."""
    if form == "raw":
        return (p,)
    if form == "logit":
        return (expression.log_odds(p, edges),)
    if form == "beta":
        return expression.logarithm(p, edges[0]), 0.0 - expression.logarithm(1.0 - p, edges[1])
    ends = ((p.upto(0.0), Number(PUBLISHED)), (Number(1.0).upto(p), Number(1.0 - PUBLISHED)))
    inside = Chosen(ends, p)
    return expression.logged(inside), 0.0 - expression.logged(1.0 - inside)


def score_columns(p: Floats, form: Form, edges: Edges) -> Floats:
    """What the curve is a function of, shape (n, 1) or (n, 2)."""
    if form == "raw":
        return p[:, None]
    if form == "logit":
        return log_odds(p, edges)[:, None]
    if form == "beta":
        return np.column_stack([log_of(p, edges[0]), -log_of(1.0 - p, edges[1])])
    inside = np.where(p == 0.0, PUBLISHED, np.where(p == 1.0, 1.0 - PUBLISHED, p))
    return np.column_stack([np.log(inside), -np.log(1.0 - inside)])


# ---- The recipes: logistic calibration and beta calibration, with variables ----


@recipe(
    calibrators=[Augmented],
    words="logistic regression with attributes",
    simplicity=100,
    command="augmented-logistic",
    covariates=True,
    tried="always",
)
class AugmentedLogistic(Tunable):
    r"""Logistic calibration with variables: one curve of the score, moved up or down by who the person is.

    Estimand: a, b, c, d of ``logit P(Y = 1 | p, v) = a t(p) + b . v + d``, with ``c . v^2`` if `quadratic`; t the
    log-odds of the score, or the score; v standardised numbers and 0/1 columns of levels.

    Parameters
    ----------
    variables : str or sequence of str
        Covariates of any kind.
    scale : {"logit", "raw"}
        What the curve is a function of.
    quadratic : bool
        Add the squares of numbers.
    ridge : float, 0 or more
        Penalty ``ridge / 2`` times the sum of squares of the coefficients of the variables; that of the score and the
        intercept are free. Levels are drawn to one another as by a normal prior of standard deviation ``ridge **
        -0.5``.

    Raises
    ------
    BadInput
        A setting out of range; no such covariate.
    NotComputable
        One class only.

    Notes
    -----
    **Assumes.** On the scale of log-odds a variable shifts everyone of a value alike, whatever the score, and a number
    does so along a line (with `quadratic`, a parabola). **Guarantee.** None by itself: judge with
    `calibrant.repair.evaluate` on other rows. Without a ridge, the mean residual of the fit rows would be zero at every
    level of a category. **Method.** Appendix C of the paper, by penalised maximum likelihood. Departures: log-odds of
    the score rather than the score (``scale="raw"`` is the paper's); Platt's targets; several variables and categories;
    the ridge leaves the score alone. Missing numbers count as the median, with a coefficient of their own; levels seen
    fewer than twenty times, and all but the fifty most frequent, have coefficient zero, as has a level that was not
    there at the fit. **Cost.** Ten passes over the rows or so. **Reads.** Rows; weights are used.

    References
    ----------
    Kelly and Smyth, "Variable-based calibration for machine learning classifiers", AAAI 2023, arXiv:2209.15154,
    appendix C.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.uniform(0.2, 0.8, 20_000), rng.integers(18, 90, 20_000)
    >>> y = rng.uniform(size=20_000) < p + (age - 54) / 400  # underpredicts for the old
    >>> data = cal.predictions(y, p, {"age": age})
    >>> repaired = cal.repair.AugmentedLogistic(variables="age").fit(data)(data)
    >>> round(cal.measure.vece(data, "age").value, 2), round(cal.measure.vece(repaired, "age").value, 2)
    (0.04, 0.0)
    """

    variables: str | Sequence[str]
    scale: Literal["logit", "raw"] = "logit"
    quadratic: bool = False
    ridge: float = 1.0

    def __post_init__(self) -> None:
        _checked(self)
        choice("scale", self.scale, ("logit", "raw"))

    def fit(self, data: Predictions) -> Augmented:
        """Fit the curve to rows."""
        return _fitted(self, data, self.scale)


@recipe(
    calibrators=[Augmented],
    words="beta calibration with attributes",
    simplicity=110,
    command="augmented-beta",
    covariates=True,
)
class AugmentedBeta(Tunable):
    r"""Beta calibration with variables: a curve of three parameters, moved up or down by who the person is.

    Estimand: a, b, c, d, f of ``logit P(Y = 1 | p, v) = a ln p - b ln(1 - p) + d . v + f . v^2 + c``; v standardised
    numbers and 0/1 columns of levels, which have no squares.

    Parameters
    ----------
    variables : str or sequence of str
        Covariates of any kind.
    quadratic : bool
        Add the squares of numbers.
    ridge : float, 0 or more
        As in `AugmentedLogistic`.
    paper : bool
        The published procedure: outcomes 0 and 1 as targets, scikit-learn's ridge on every coefficient, scores of
        exactly 0 and 1 moved by 0.0001 and no others, a and b free. `ridge` is not read.

    Raises
    ------
    BadInput
        A setting out of range; no such covariate.
    NotComputable
        One class only.

    Notes
    -----
    **Assumes.** On the scale of log-odds a variable shifts everyone of a value alike, whatever the score, along a
    parabola. Where the error turns more than once along the variable, take `VariableTree` or `LocalBias`.
    **Guarantee.** None by itself: judge with `calibrant.repair.evaluate` on other rows. **Method.** Appendix C of the
    paper, by penalised maximum likelihood. Departures: a and b at least 0, so that for two people who differ in the
    score alone the order is kept; Platt's targets; several variables and categories; the ridge leaves the score alone.
    Missing and unseen values as in `AugmentedLogistic`. **Cost.** Ten passes over the rows or so. **Reads.** Rows;
    weights are used.

    References
    ----------
    Kelly and Smyth, "Variable-based calibration for machine learning classifiers", AAAI 2023, arXiv:2209.15154,
    appendix C. Kull, Silva Filho and Flach, "Beta calibration", AISTATS 2017.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.uniform(0.2, 0.8, 20_000), rng.integers(18, 90, 20_000)
    >>> y = rng.uniform(size=20_000) < p + 0.1 - ((age - 54) / 80) ** 2  # under- and overpredicts
    >>> data = cal.predictions(y, p, {"age": age})
    >>> repaired = cal.repair.AugmentedBeta(variables="age").fit(data)(data)
    >>> round(cal.measure.vece(data, "age").value, 2), round(cal.measure.vece(repaired, "age").value, 2)
    (0.06, 0.0)
    """

    variables: str | Sequence[str]
    quadratic: bool = True
    ridge: float = 1.0
    paper: bool = False

    def __post_init__(self) -> None:
        _checked(self)
        flag("paper", self.paper)

    def fit(self, data: Predictions) -> Augmented:
        """Fit the curve to rows."""
        return _fitted(self, data, "published beta" if self.paper else "beta", paper=self.paper)


def _checked(one: AugmentedLogistic | AugmentedBeta) -> None:
    names("variables", one.variables, what="a covariate", least=1)
    flag("quadratic", one.quadratic)
    number("ridge", one.ridge, least=0, hint="such as 1.0")


def _fitted(one: AugmentedLogistic | AugmentedBeta, data: Predictions, form: Form, *, paper: bool = False) -> Augmented:
    name, variables = type(one).__name__, names("variables", one.variables)
    rows = fit_rows(data, name)
    how, x, constants = encoded(rows, variables)
    edges, kept = edges_of(rows.p), kept_levels(x)
    squared = x.scaled**2 - 1.0 if one.quadratic else x.scaled[:, :0]
    parts: tuple[Floats | NDArray[np.bool_], ...] = (x.scaled, squared, indicators(x.codes, kept))
    score = score_columns(rows.p, form, edges)
    ends = np.cumsum([0, *(part.shape[1] for part in parts)])
    if paper:  # appendix C: scikit-learn's ridge of 1 on every coefficient
        result, intercept = regress([score, *parts], rows.y.astype(np.float64), weights_of(rows), ridge=1.0)
        slopes, rest = result[:2], result[2:]
    else:
        slopes, rest, intercept = coefficients(targets(rows), weights_of(rows), score, parts, one.ridge)
    numbers, squares, levels = (tuple(rest[a:b].tolist()) for a, b in itertools.pairwise(ends))
    return Augmented(
        recipe=name,
        settings={
            "variables": variables,
            "form": form,
            "quadratic": one.quadratic,
            "ridge": 1.0 if paper else float(one.ridge),
            "paper": paper,
            "constant": constants,
            "levels": x.level_names,
            "numbers": x.number_names,
        },
        codings=how,
        fitted_on=fitted_on(rows),
        form=form,
        slopes=tuple(slopes.tolist()),
        intercept=intercept,
        numbers=numbers,
        squares=squares,
        kept=kept,
        levels=levels,
        edges=edges,
    )


def coefficients(
    target: Floats,
    weight: Floats,
    score: Floats,
    others: Sequence[Floats | NDArray[np.bool_]] = (),
    ridge: float = 0.0,
) -> tuple[Floats, Floats, float]:
    """Coefficients of the score's columns (of two, at least 0) and of the other columns, and the intercept.

    The ridge is on the others alone.
    """
    width = sum(part.shape[1] for part in others)
    used = np.arange(score.shape[1])
    while True:
        penalty = np.concatenate([np.zeros(len(used)), np.full(width, ridge)])
        result, intercept = regress([score[:, used], *others], target, weight, ridge=penalty)
        own = result[: len(used)]
        if score.shape[1] == 1 or not (own < 0).any():
            break
        used = used[own > own.min()]  # the lower one is left out, as in Beta
    slopes = np.zeros(score.shape[1])
    slopes[used] = own
    return slopes, result[len(used) :], intercept
