"""One curve for each class against the rest, and probabilities divided by their sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, get_args

import numpy as np

from calibrant.arguments import choice
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.repair.calibrators.binning import Isotonic, Piecewise
from calibrant.repair.calibrators.curves import Beta, Parameters, Platt
from calibrant.repair.calibrators.dirichlet import ClassCalibrator, fit_classes
from calibrant.repair.calibrators.parted import Fields
from calibrant.repair.catalogue import Tunable, recipe
from calibrant.repair.disclosure import MASK, checked_fewest
from calibrant.repair.fitted import Batch, Calibrator, fitted_on, sound
from calibrant.repair.formulas import expression
from calibrant.repair.formulas.expression import Applied, Chosen, Formula, Number, Score, Term
from calibrant.repair.regression import EDGE, Floats, expit, log_of

LEAST = 1e-300  # a sum of probabilities that is divided by
AS_IT_IS = 1.0, 1.0, 0.0  # the curve of a class that is never or always the true one
Curve = TypeVar("Curve", bound=Calibrator)


class OneVsRest(ClassCalibrator):
    """A curve of each class's probability; a row whose curves all show 0 keeps its probabilities."""

    def shown_of(self, p: Floats) -> Floats:
        """What each class's curve shows, shape (n, K)."""
        raise NotImplementedError

    def shown_terms(self) -> list[Term]:
        """The same as formulas."""
        raise NotImplementedError

    def values(self, rows: Batch) -> Floats:
        self.logs(rows.p[:1], self.classes, EDGE)  # refuses another number of classes
        shown = self.shown_of(rows.p)
        whole = shown.sum(axis=1, keepdims=True)
        out: Floats = np.where(whole > 0.0, shown / np.maximum(whole, LEAST), rows.p)
        return out

    def formulas(self, row: Formula) -> tuple[Term, ...]:
        shown = list(row.step({f"shown{k}": t for k, t in enumerate(self.shown_terms())}).values())
        whole = row.step({"whole": expression.total(shown)})["whole"]
        divisor = row.step({"divisor": Applied("greatest", (whole, Number(LEAST)))})["divisor"]
        return tuple(Chosen(((whole.upto(0.0), Score(k)),), t / divisor) for k, t in enumerate(shown))


@dataclass(frozen=True, kw_only=True)
class CurvesOneVsRest(OneVsRest):
    """Each class by ``expit(a ln p - b ln(1 - p) + c)``, divided by the sum."""

    curves: tuple[tuple[float, float, float], ...]  # a, b, c of each class

    def check(self) -> None:
        sound(len(self.curves) > 2, "there must be a curve for each of three classes or more")

    @property
    def classes(self) -> int:
        return len(self.curves)

    def shown_of(self, p: Floats) -> Floats:
        a, b, c = np.array(self.curves).T
        return expit(a * log_of(p) - b * log_of(1.0 - p) + c)

    def shown_terms(self) -> list[Term]:
        out = []
        for k, (a, b, c) in enumerate(self.curves):
            up, down = (expression.logarithm(v, EDGE) for v in (Score(k), 1.0 - Score(k)))
            out.append(expression.probability(up * a - down * b + c))
        return out


@dataclass(frozen=True, kw_only=True)
class PiecewiseOneVsRest(OneVsRest):
    """Each class by the line through its points, level outside, divided by the sum."""

    knots: tuple[tuple[float, ...], ...]
    shown: tuple[tuple[float, ...], ...]

    def check(self) -> None:
        sound(len(self.knots) == len(self.shown) > 2, "there must be points for each of three classes or more")
        for knots, shown in zip(self.knots, self.shown, strict=True):
            Piecewise(recipe=self.recipe, knots=knots, shown=shown).check()

    @property
    def classes(self) -> int:
        return len(self.knots)

    def shown_of(self, p: Floats) -> Floats:
        kept = enumerate(zip(self.knots, self.shown, strict=True))
        return np.column_stack([np.interp(p[:, k], knots, shown) for k, (knots, shown) in kept])

    def shown_terms(self) -> list[Term]:
        kept = enumerate(zip(self.knots, self.shown, strict=True))
        return [expression.broken_line(Score(k), knots, shown) for k, (knots, shown) in kept]


def _each(
    data: MulticlassPredictions, name: str, fit: Callable[[Predictions], Curve]
) -> tuple[list[Curve | None], Fields]:
    """The curve of each class, None of one that is never or always the true one; and what a map keeps of the fit."""
    rows, curves = fit_classes(data, name), []
    for k in range(rows.p.shape[1]):
        there = int(np.count_nonzero(rows.y == k))
        curves.append(fit(rows.one_vs_rest(k)) if 0 < there < rows.n else None)
    as_it_is = tuple(rows.name_of(k) for k, one in enumerate(curves) if one is None)
    return curves, {"recipe": name, "settings": {"as_it_is": as_it_is}, "fitted_on": fitted_on(rows)}


@recipe(
    calibrators=[CurvesOneVsRest],
    words="Platt scaling of each class against the rest",
    simplicity=151,
    command="platt-one-vs-rest",
)
class PlattOneVsRest(Tunable):
    r"""Platt scaling of each class against the rest, and probabilities divided by their sum.

    Estimand: s, c of ``q_k = expit(s_k logit(p_k) + c_k)``, and ``P(Y = k | p) = q_k / sum_j q_j``.

    Raises
    ------
    BadInput
        Predictions of two classes.
    NotComputable
        One class only.

    Notes
    -----
    **Assumes.** Each class by itself is too bold, too timid or too frequent. **Guarantee.** None by itself: judge on
    other rows. Dividing by the sum moves what each curve was fitted to; the order of classes may change.
    **Method.** `Platt` with ``scale="logit"`` of each class; one that never comes true stays as it is
    (``settings["as_it_is"]``). As scikit-learn's ``CalibratedClassifierCV(method="sigmoid")`` does it, which takes
    decision values. **Cost.** As many fits as classes. **Reads.** Rows of several classes; weights are used.

    References
    ----------
    Zadrozny, Elkan, "Transforming classifier scores into accurate multiclass probability estimates", KDD 2002.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], size=5_000)
    >>> truth = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> y = (rng.uniform(size=(5_000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    >>> fitted = cal.repair.PlattOneVsRest().fit(cal.multiclass_predictions(y, p))
    >>> bool(abs(fitted.scores(p) - truth).mean() < 0.05)
    True
    """

    def fit(self, data: MulticlassPredictions) -> CurvesOneVsRest:
        """Fit a curve to each class."""
        curves, kept = _each(data, "PlattOneVsRest", Platt(scale="logit").fit)
        made = tuple(AS_IT_IS if one is None else (one.slope, one.slope, one.intercept) for one in curves)
        return CurvesOneVsRest(**kept, curves=made)


@recipe(
    calibrators=[CurvesOneVsRest],
    words="beta calibration of each class against the rest",
    simplicity=152,
    command="beta-one-vs-rest",
)
class BetaOneVsRest(Tunable):
    r"""Beta calibration of each class against the rest, and probabilities divided by their sum.

    Estimand: a, b, c of ``q_k = expit(a_k ln p_k - b_k ln(1 - p_k) + c_k)``, and ``P(Y = k | p) = q_k / sum_j q_j``.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}
        As of `Beta`.

    Raises
    ------
    BadInput
        Unknown parameters; predictions of two classes.
    NotComputable
        One class only.

    Notes
    -----
    **Assumes.** As `Beta`, of each class. **Guarantee.** None by itself: judge on other rows. Dividing by the sum moves
    what each curve was fitted to; the order of classes may change. **Method.** `Beta` of each class; one that never
    comes true stays as it is (``settings["as_it_is"]``). **Cost.** As many fits as classes. **Reads.** Rows of several
    classes; weights are used.

    References
    ----------
    As `Beta` and `PlattOneVsRest`.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.multiclass_predictions([0, 1, 2] * 50, [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]] * 50)
    >>> fitted = cal.repair.BetaOneVsRest().fit(data)
    >>> fitted.scores(data.p).sum(axis=1)[:2].round(6).tolist()
    [1.0, 1.0]
    """

    parameters: Parameters = "abm"

    def __post_init__(self) -> None:
        choice("parameters", self.parameters, get_args(Parameters))

    def fit(self, data: MulticlassPredictions) -> CurvesOneVsRest:
        """Fit a curve to each class."""
        curves, kept = _each(data, "BetaOneVsRest", Beta(parameters=self.parameters).fit)
        kept["settings"] |= {"parameters": self.parameters}
        made = tuple(AS_IT_IS if one is None else (one.a, one.b, one.c) for one in curves)
        return CurvesOneVsRest(**kept, curves=made)


@recipe(
    calibrators=[PiecewiseOneVsRest],
    words="isotonic regression of each class against the rest",
    simplicity=153,
    command="isotonic-one-vs-rest",
)
class IsotonicOneVsRest(Tunable):
    r"""Isotonic regression of each class against the rest, and probabilities divided by their sum.

    Estimand: the increasing ``f_k`` that minimise ``E (1{Y = k} - f_k(p_k))^2``, and ``f_k(p_k) / sum_j f_j(p_j)``.

    Parameters
    ----------
    fewest : int, 1 or more
        As of `Isotonic`.

    Raises
    ------
    BadInput
        A setting that cannot be used; predictions of two classes.
    NotComputable
        One class only.

    Notes
    -----
    **Assumes.** No class's true curve falls. Needs rows of every class: below a hundred or so take `BetaOneVsRest`.
    **Guarantee.** None by itself: judge on other rows. A class may be shown 0, which makes the log loss infinite if it
    comes true. **Method.** `Isotonic` of each class; one that never comes true stays as it is
    (``settings["as_it_is"]``). A row in which every curve shows 0 keeps its probabilities; scikit-learn's
    ``CalibratedClassifierCV(method="isotonic")`` makes all classes equal there. **Cost.** A sort for each class.
    **Reads.** Rows of several classes; weights are used.

    References
    ----------
    As `PlattOneVsRest`.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.multiclass_predictions([0, 1, 2] * 50, [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]] * 50)
    >>> fitted = cal.repair.IsotonicOneVsRest().fit(data)
    >>> fitted.scores(data.p).sum(axis=1)[:2].round(6).tolist()
    [1.0, 1.0]
    """

    fewest: int = MASK

    def __post_init__(self) -> None:
        checked_fewest(self.fewest)

    def fit(self, data: MulticlassPredictions) -> PiecewiseOneVsRest:
        """Fit an increasing function to each class."""
        curves, kept = _each(data, "IsotonicOneVsRest", Isotonic(fewest=self.fewest).fit)
        kept["settings"] |= {"fewest": int(self.fewest)}
        line = Piecewise(recipe="", knots=(0.0, 1.0), shown=(0.0, 1.0))  # of a class that stays as it is
        every = [one or line for one in curves]
        knots, shown = tuple(one.knots for one in every), tuple(one.shown for one in every)
        return PiecewiseOneVsRest(**kept, mask=int(self.fewest), knots=knots, shown=shown)
