"""Dirichlet calibration: beta calibration for several classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_seed, choice, number, shown
from calibrant.data.predictions import MulticlassPredictions
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.runtime import parts_of
from calibrant.repair.catalogue import Tunable, recipe
from calibrant.repair.fitted import Batch, Calibrator, fitted_on, sound
from calibrant.repair.formulas import expression
from calibrant.repair.formulas.expression import Formula, Number, Score, Term
from calibrant.repair.regression import EDGE, Floats, edge_of, log_of, sharpness, softmax
from calibrant.views.points import even_weights

Classes = NDArray[np.int32]
Penalty = Literal["odir", "l2", "published"]
AS_THEY_ARE = float(np.finfo(np.float64).tiny)  # an edge below every probability but 0
GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # a decade apart: the log loss is flat around its least
FOLDS = 3  # each costs six fits; the choice is among decades
LISTED = "reads the probability of every class, and rows list some of them: recalibrate rows that hold all"
RIDGE = 1e-6  # what a number pays that is fitted without a penalty
FLAT = 1e-4  # curvature of a class that is sure everywhere, so that no direction is flat
STREAM = 0xD1  # of random numbers, apart from those of other methods at the same seed


@dataclass(frozen=True, kw_only=True)
class ClassCalibrator(Calibrator):
    """A map of all probabilities of K classes at once."""

    several: ClassVar[bool] = True

    def _applied(self, data: object) -> MulticlassPredictions:
        rows = of_classes(data, f"this {self.recipe}", "repairs")
        out = self.scores(rows.p, columns=rows.covariates)
        out.flags.writeable = False
        return replace(rows, p=out)

    def logs(self, p: Floats, k: int, edge: float) -> Floats:
        """The logarithms of rows of K probabilities, and a column of ones, shape (n, K + 1)."""
        return log_columns(self._of_classes(p, k), edge)

    def _of_classes(self, p: Floats, k: int) -> Floats:
        """Rows of K probabilities, as they are, or refused."""
        if p.ndim != 2 or p.shape[1] != k:
            raise BadInput(f"this calibrator is of {k} classes: pass probabilities of shape (n, {k})")
        return p


@dataclass(frozen=True, kw_only=True)
class Softmax(ClassCalibrator):
    """The map ``softmax(W ln p + b)`` of a row's probabilities of K classes."""

    weights: tuple[tuple[float, ...], ...]
    intercepts: tuple[float, ...]
    edge: float = EDGE  # nearer to 0 than this logarithms are continued along their tangent

    def check(self) -> None:
        k = len(self.intercepts)
        sound(k > 1 and [len(row) for row in self.weights] == [k] * k, "weights must be K rows of K, intercepts K")
        sound(AS_THEY_ARE <= self.edge < 1.0, "edge must lie between 0 and 1")

    @property
    def classes(self) -> int:
        return len(self.intercepts)

    def values(self, rows: Batch) -> Floats:
        matrix = np.array(self.weights)
        if np.count_nonzero(matrix) == np.count_nonzero(matrix.diagonal()):
            # Each class has a weight of its own: the numbers of the product below, whose other terms are 0.
            out, intercepts = np.empty(self._of_classes(rows.p, self.classes).shape), np.array(self.intercepts)
            for some in parts_of(len(rows.p)):
                out[some] = softmax(log_of(rows.p[some], self.edge) * matrix.diagonal() + intercepts)
            return out
        x = self.logs(rows.p, self.classes, self.edge)
        return softmax(x @ np.column_stack([self.weights, self.intercepts]).T)

    def formulas(self, row: Formula) -> tuple[Term, ...]:
        logs = log_terms(row, self.classes, self.edge)
        kept = zip(self.weights, self.intercepts, strict=True)
        return expression.softmax(row, [weighed(logs, (*own, b)) for own, b in kept])


@recipe(calibrators=[Softmax], words="Dirichlet calibration", simplicity=160, command="dirichlet")
class Dirichlet(Tunable):
    r"""Dirichlet calibration: multinomial regression of the class on the logarithms of the probabilities.

    Estimand: W, b of ``P(Y = k | p) = softmax(W ln p + b)_k``.

    Parameters
    ----------
    penalty : {"odir", "l2", "published"}
        With K classes, "odir": ``strength sum_(i != j) w_ij^2 / (K (K - 1)) + intercept_strength sum_i b_i^2 / K``;
        "l2": ``strength (sum_ij w_ij^2 + sum_i b_i^2) / (K (K + 1))``; "published", as in the authors' program:
        ``strength (sum_ij (w_ij - w_Kj)^2 + sum_i (b_i - b_K)^2)``, a sum and not a mean, of what each class has beyond
        the last, so that the fit depends on which class comes last; each added to the mean log loss.
    strength : float, optional
        At least 0; None chooses it from 1e-4, 1e-3, ..., 10 by cross-validated log loss.
    intercept_strength : float, optional
        Of "odir"; None is the same as `strength`.
    seed : int
        Deals the folds.

    Raises
    ------
    BadInput
        A setting that cannot be used, or predictions of two classes.
    NotComputable
        One class only, or too few rows to cross-validate.

    Notes
    -----
    **Assumes.** Within each class the probabilities have a Dirichlet distribution, roughly; a matrix of K^2 numbers
    needs rows in proportion or a penalty. **Guarantee.** None by itself: judge the top label and each class on other
    rows. The order of classes and of people may change. **Method.** The penalised log loss by L-BFGS with its exact
    gradient, from W = I, b = 0. "odir" leaves the diagonal free: very strong, it is a power of each probability (vector
    scaling without shift). The paper chooses the penalty by cross-validation; the grid and the three folds are ours,
    and of equal losses the stronger penalty wins. Within ``1e-6`` of 0, nearer if a hundredth of the probabilities is
    nearer, logarithms go on along their tangent; with "published" they are taken as they are. **Cost.** 50 to 500
    passes over the rows times K^2; nineteen times that when the strength is chosen. **Reads.** Rows of several classes;
    weights are used.

    References
    ----------
    Kull, Perello-Nieto, Kängsepp, Silva Filho, Song, Flach, "Beyond temperature scaling: obtaining well-calibrated
    multiclass probabilities with Dirichlet calibration", NeurIPS 2019.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], size=5_000)
    >>> truth = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> y = (rng.uniform(size=(5_000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    >>> fitted = cal.repair.Dirichlet(strength=0.001).fit(cal.multiclass_predictions(y, p))
    >>> bool(abs(fitted.scores(p) - truth).mean() < 0.02)
    True
    """

    penalty: Penalty = "odir"
    strength: float | None = None
    intercept_strength: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        choice("penalty", self.penalty, get_args(Penalty))
        for name, value in (("strength", self.strength), ("intercept_strength", self.intercept_strength)):
            if value is not None:
                number(name, value, least=0, hint="or None")
        if self.intercept_strength is not None and self.penalty != "odir":
            raise BadInput(
                f"intercept_strength={self.intercept_strength!r}: it belongs to penalty='odir'; leave it out"
            )
        checked_seed(self.seed)

    def fit(self, data: MulticlassPredictions) -> Softmax:
        """Fit the matrix to rows."""
        rows = fit_classes(data, "Dirichlet")
        edge = edge_of(rows.p) if self.penalty != "published" else AS_THEY_ARE
        x, weight = log_columns(rows.p, edge), even_weights(rows)
        strength = self.chosen(x, rows.y, weight)
        result = solved(x, rows.y, weight, self.prices(x.shape[1] - 1, strength))
        settings = {"penalty": self.penalty, "strength": strength, "chosen": self.strength is None}
        return softmax_map("Dirichlet", settings, rows, result, edge)

    def prices(self, k: int, strength: float) -> Floats:
        """What each coefficient's square costs, of shape (K, K + 1); infinite where it is held at 0."""
        if self.penalty == "published":  # only what a class has beyond the last counts: the last has nothing
            return np.repeat([strength, np.inf], [k - 1, 1])[:, None] + np.zeros((k, k + 1))
        if self.penalty == "l2":
            return np.full((k, k + 1), strength / (k * (k + 1)))
        price = np.full((k, k + 1), strength / (k * (k - 1)))  # off the diagonal
        price[np.arange(k), np.arange(k)] = 0.0
        price[:, k] = (strength if self.intercept_strength is None else self.intercept_strength) / k
        return price

    def chosen(self, x: Floats, y: Classes, weight: Floats) -> float:
        """The strength asked for, or that of least cross-validated log loss."""
        if self.strength is not None:
            return float(self.strength)
        if len(y) < 2 * FOLDS:
            raise NotComputable(
                f"choosing the strength of Dirichlet calibration takes {2 * FOLDS} rows and there are {len(y)}: "
                "pass more, or use Dirichlet(strength=0.1)"
            )
        fold = np.random.default_rng([int(self.seed), STREAM]).permutation(len(y)) % FOLDS
        losses = np.zeros(len(GRID))
        for f in range(FOLDS):
            fit, kept, result = fold != f, fold == f, None
            for at in range(len(GRID) - 1, -1, -1):  # from strong to weak, each from where the last one ended
                result = solved(x[fit], y[fit], weight[fit], self.prices(x.shape[1] - 1, GRID[at]), result)
                stated = softmax(x[kept] @ result.T)[np.arange(int(kept.sum())), y[kept]]
                losses[at] -= float((weight[kept] * np.log(np.maximum(stated, 1e-300))).sum())
        return GRID[len(GRID) - 1 - int(np.argmin(losses[::-1]))]  # of equal losses the stronger penalty


@recipe(calibrators=[Softmax], words="vector scaling", simplicity=155, command="vector-scaling")
class VectorScaling(Tunable):
    r"""Vector scaling: a power and a shift of each class's probability, then normalised.

    Estimand: w, b of ``P(Y = k | p) = softmax(w ln p + b)_k``, elementwise.

    Raises
    ------
    BadInput
        Predictions of two classes.
    NotComputable
        One class only.

    Notes
    -----
    **Assumes.** Each class is too bold, too timid or shifted by itself. **Guarantee.** None by itself: judge on other
    rows. The order of classes of a row may change. **Method.** The log loss by L-BFGS with its exact gradient; shifts
    pay ``1e-6`` of their square, so that those of all classes together stay where they are. **Cost.** 20 to 100 passes
    over the rows times K^2. **Reads.** Rows of several classes; weights are used.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger, "On calibration of modern neural networks", ICML 2017.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], size=5_000)
    >>> truth = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> y = (rng.uniform(size=(5_000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    >>> fitted = cal.repair.VectorScaling().fit(cal.multiclass_predictions(y, p))
    >>> bool(abs(fitted.scores(p) - truth).mean() < 0.02)
    True
    """

    def fit(self, data: MulticlassPredictions) -> Softmax:
        """Fit powers and shifts to rows."""
        return _unpenalised(data, "VectorScaling", whole=False)


@recipe(calibrators=[Softmax], words="matrix scaling", simplicity=165, command="matrix-scaling")
class MatrixScaling(Tunable):
    r"""Matrix scaling: `Dirichlet` without a penalty.

    Estimand: W, b of ``P(Y = k | p) = softmax(W ln p + b)_k``.

    Raises
    ------
    BadInput
        Predictions of two classes.
    NotComputable
        One class only.

    Notes
    -----
    **Assumes.** Rows by far more than the ``K (K + 1)`` numbers that it fits; with fewer it overfits, and `Dirichlet`
    chooses a penalty. **Guarantee.** None by itself: judge on other rows. **Method.** As `VectorScaling`, with every
    number of the matrix; each pays ``1e-6`` of its square. **Cost.** 50 to 500 passes over the rows times K^2.
    **Reads.** Rows of several classes; weights are used.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger, "On calibration of modern neural networks", ICML 2017.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.repair.MatrixScaling().fit(cal.multiclass_predictions([0, 1, 2] * 9, [[0.4, 0.3, 0.3]] * 27)).classes
    3
    """

    def fit(self, data: MulticlassPredictions) -> Softmax:
        """Fit the matrix to rows."""
        return _unpenalised(data, "MatrixScaling", whole=True)


def _unpenalised(data: object, name: str, *, whole: bool) -> Softmax:
    """Fit the whole matrix, or its diagonal, at hardly any price."""
    rows = fit_classes(data, name)
    edge, k = edge_of(rows.p), rows.p.shape[1]
    price = np.full((k, k + 1), RIDGE)
    if not whole:
        price[:, :k] = np.where(np.eye(k) > 0.0, 0.0, np.inf)
    result = solved(log_columns(rows.p, edge), rows.y, even_weights(rows), price)
    return softmax_map(name, {}, rows, result, edge)


def temperature_of(data: MulticlassPredictions) -> Softmax:
    """Fit temperature scaling of several classes: ``softmax(ln p / T)``."""
    rows = fit_classes(data, "Temperature")
    edge, k = edge_of(rows.p), rows.p.shape[1]
    logs, weight = log_of(rows.p, edge), even_weights(rows) / rows.n
    own = logs[np.arange(rows.n), rows.y]

    def slope(log_sharpness: float) -> float:
        """The derivative of the log loss in 1/T: it rises, for the loss is convex."""
        power, expected = np.exp(log_sharpness), np.empty(rows.n)
        for some in parts_of(rows.n):
            expected[some] = (softmax(power * logs[some]) * logs[some]).sum(axis=1)
        return float(weight @ (expected - own))

    power = sharpness(slope)
    matrix = np.column_stack([power * np.eye(k), np.zeros(k)])
    return softmax_map("Temperature", {"temperature": 1.0 / power}, rows, matrix, edge)


def softmax_map(
    name: str, settings: Mapping[str, object], rows: MulticlassPredictions, matrix: Floats, edge: float
) -> Softmax:
    """The map of a fitted matrix."""
    return Softmax(
        recipe=name,
        settings=dict(settings),
        fitted_on=fitted_on(rows),
        weights=tuple(tuple(row) for row in matrix[:, :-1].tolist()),
        intercepts=tuple(matrix[:, -1].tolist()),
        edge=edge,
    )


def of_classes(data: object, who: str, does: str) -> MulticlassPredictions:
    """Rows of several classes that hold the probability of each; refuse other data."""
    if not isinstance(data, MulticlassPredictions):
        raise BadInput(f"{who} {does} several classes, not a {type(data).__name__}: use Beta for two")
    if data.rest:
        raise NotComputable(f"{who} {LISTED}")
    return data


def fit_classes(data: object, recipe: str) -> MulticlassPredictions:
    """The rows of several classes to fit on; refuse rows of one class."""
    rows = of_classes(data, recipe, "is fitted on")
    if len(np.unique(rows.y)) < 2:
        only = shown(rows.name_of(int(rows.y[0])))
        raise NotComputable(f"{recipe} cannot be fitted: every one of the {len(rows.y):,} rows has class {only}")
    return rows


def log_columns(p: Floats, edge: float) -> Floats:
    """The logarithms of probabilities, and a column of ones, shape (n, K + 1)."""
    return np.column_stack([log_of(p, edge), np.ones(len(p))])


def log_terms(row: Formula, k: int, edge: float) -> list[Term]:
    """The logarithms of probabilities as formulas of a row, worked out before the rest."""
    return list(row.step({f"log{j}": expression.logarithm(Score(j), edge) for j in range(k)}).values())


def weighed(logs: Sequence[Term], own: Sequence[float]) -> Term:
    """A row of ``W ln p + b`` as a formula, given its K weights and the intercept."""
    return expression.total([*(x * w for x, w in zip(logs, own[:-1], strict=True)), Number(own[-1])])


def solved(x: Floats, y: Classes, weight: Floats, price: Floats, start: Floats | None = None) -> Floats:
    """The ``(W, b)``, shape (K, K + 1), of least mean log loss and ``sum(price (W, b)^2)``, from I, 0 or `start`.

    An infinite price holds a coefficient at 0.
    """
    from scipy.optimize import minimize

    k = len(price)
    first = np.where(np.isfinite(price), np.eye(k, k + 1) if start is None else start, 0.0)
    loss, scale = _loss(x, y, weight, price), _scales(x, weight, price, first)

    def scaled(flat: Floats) -> tuple[float, Floats]:
        value, slope = loss(_times(flat.reshape(k, k + 1), scale).ravel())
        return value, _times(slope.reshape(k, k + 1), scale.swapaxes(1, 2)).ravel()

    options = {"maxiter": 2_000, "maxfun": 4_000, "ftol": 1e-13, "gtol": 1e-8, "maxcor": 20}
    begin = np.linalg.solve(scale, first[:, :, None])
    result = minimize(scaled, begin.ravel(), jac=True, method="L-BFGS-B", options=options)
    return _times(result.x.reshape(k, k + 1), scale)


def _times(of: Floats, scale: Floats) -> Floats:
    """Each class's coefficients times its matrix."""
    result: Floats = (scale @ of[:, :, None])[:, :, 0]
    return result


def _scales(x: Floats, weight: Floats, price: Floats, at: Floats) -> Floats:
    """What each class's coefficients are written in, shape (K, K + 1, K + 1), so that no direction is flat or steep.

    ``L^-T`` of the curvature ``L L^T`` at `at` of the class's own coefficients; those held at 0 are left as they are.
    Logarithms of the probabilities of a row go together: without this the search takes ten times as many steps.
    """
    k, share = len(price), weight / weight.sum()
    scale = np.empty((k, k + 1, k + 1))
    for i, p in enumerate(softmax(x @ at.T).T):
        free = np.isfinite(price[i])
        curvature = (x * (share * (p * (1.0 - p) + FLAT))[:, None]).T @ x
        curvature += np.diag(np.where(free, 2.0 * price[i], 0.0) + FLAT)
        scale[i] = np.linalg.inv(np.linalg.cholesky(np.where(free & free[:, None], curvature, np.eye(k + 1)))).T
    return scale


def _loss(x: Floats, y: Classes, weight: Floats, price: Floats) -> Callable[[Floats], tuple[float, Floats]]:
    """The penalised log loss and its gradient, as a function of the coefficients."""
    k, n = len(price), len(y)
    happened, share = np.arange(k)[:, None] == y, weight / weight.sum()
    free = np.isfinite(price)
    price = np.where(free, price, 0.0)

    def loss(flat: Floats) -> tuple[float, Floats]:
        w = flat.reshape(k, k + 1)
        z = w @ x.T
        z -= z.max(axis=0)
        e = np.exp(z)
        total = e.sum(axis=0)
        value = share @ (np.log(total) - z[y, np.arange(n)]) + (price * w**2).sum()
        return float(value), ((((e / total - happened) * share) @ x + 2.0 * price * w) * free).ravel()

    return loss
