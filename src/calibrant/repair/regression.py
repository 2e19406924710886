"""Fits that the maps share: rows checked, inputs coded, logistic regression, penalised and cross-fitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.coding import Coding, Encoded, codings, encode
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.errors import BadInput, NotComputable

# ---- What every fit asks of its rows ----

EDGE = 1e-6  # nearer to 0 and 1 than this a logarithm is continued along its tangent


def fit_rows(data: Any, recipe: str, fewest: int = 2) -> Predictions:
    """Return the rows to fit a repair on, or say why they will not do."""
    if isinstance(data, MulticlassPredictions):
        raise BadInput(f"{recipe} repairs two classes: project with .top_label() or .one_vs_rest(k), or use Dirichlet")
    if not isinstance(data, Predictions):
        raise BadInput(
            f"{recipe} is fitted on rows: pass calibrant.predictions(...) or calibrant.read(...), not a {type(data).__name__}"
        )
    if data.cases in (0, data.n):
        raise NotComputable(f"{recipe} cannot be fitted: every one of the {data.n:,} rows has outcome {int(data.y[0])}")
    if data.n < fewest:
        raise NotComputable(f"{recipe} needs at least {fewest} rows and there are {data.n}")
    return data


def log_of(p: Any) -> Any:
    """Return the logarithm of scores, continued below `EDGE` along its tangent: finite at 0, and no two scores tie."""
    return np.log(np.maximum(p, EDGE)) + np.minimum(p - EDGE, 0.0) / EDGE


def logit(p: Any) -> Any:
    """Return the log-odds of scores, continued along their tangents within `EDGE` of 0 and 1."""
    return log_of(p) - log_of(1.0 - p)


def targets(rows: Predictions) -> Any:
    """Return Platt's targets: outcomes drawn in a little, so that a fit stays finite when the classes separate."""
    weight = np.ones(rows.n) if rows.weights is None else rows.weights
    cases, rest = float(weight @ rows.y), float(weight @ (1 - rows.y))
    return np.where(rows.y == 1, (cases + 1.0) / (cases + 2.0), 1.0 / (rest + 2.0))


def logistic_fit(features: Any, target: Any, weight: Any = None, ridge: float = 0.0) -> tuple[Any, float]:
    """Return coefficients and intercept of a logistic regression on targets in [0, 1]; `ridge` is scikit-learn's 1/C."""
    from sklearn.linear_model import LogisticRegression

    heft = np.ones(len(target)) if weight is None else np.asarray(weight, dtype=np.float64)
    sides = [(1, heft * target), (0, heft * (1.0 - target))]
    kept = [(side, np.flatnonzero(w > 0), w) for side, w in sides]
    x = np.concatenate([features[at] for _, at, _ in kept])
    y = np.concatenate([np.full(len(at), side) for side, at, _ in kept])
    w = np.concatenate([w[at] for _, at, w in kept])
    model = LogisticRegression(C=1.0 / ridge if ridge > 0 else np.inf, solver="newton-cholesky", tol=1e-8, max_iter=200)
    model.fit(x, y, sample_weight=w)
    return model.coef_[0].astype(float), float(model.intercept_[0])


# ---- What a regression on score and variables sees of a row, all of it fixed when the map is fitted ----

LEVELS = 50  # most frequent levels of a category that get a column of their own
SEEN = 10  # rows that such a level must have
Edges = tuple[float, float]  # nearer to 0, and to 1, than these a logarithm is continued along its tangent


def checked_names(variables: Any) -> tuple[str, ...]:
    """Return the names of variables, given one or several."""
    if isinstance(variables, str):
        return (variables,)
    if not isinstance(variables, Iterable):
        raise BadInput(f"variables={variables!r}: pass the name of a covariate or a list of names")
    names = tuple(variables)
    if not names or not all(isinstance(v, str) for v in names):
        raise BadInput(f"variables={variables!r}: pass at least one name of a covariate, such as 'age'")
    return names


def encoded(data: Any, names: Sequence[str] | None) -> tuple[tuple[Coding, ...], Encoded, tuple[str, ...]]:
    """Fix the codings of the variables of rows; return them, the encoded rows and the constants left out."""
    how = codings(data.covariates, names)
    kept = tuple(c for c in how if c.kind != "constant")
    table = data.covariates.select([c.name for c in kept]) if data.covariates is not None else None
    if table is None:
        raise BadInput("variables: the data has no covariates; pass them to calibrant.predictions or read")
    return kept, encode(table, kept, data.n), tuple(c.name for c in how if c.kind == "constant")


def kept_levels(x: Encoded) -> tuple[tuple[int, ...], ...]:
    """Return the levels of each level variable that get a column; the others are told apart by none."""
    out = []
    for j in range(x.codes.shape[1]):
        rows = np.bincount(x.codes[:, j])
        order = np.argsort(-rows, kind="stable")[:LEVELS]
        out.append(tuple(int(v) for v in order if rows[v] >= SEEN))
    return tuple(out)


def indicators(codes: Any, kept: Sequence[Sequence[int]]) -> Any:
    """Return a 0/1 column for each kept level of each level variable."""
    columns = [codes[:, j][:, None] == np.array(k, dtype=np.int32)[None, :] for j, k in enumerate(kept) if len(k)]
    return np.hstack(columns).astype(np.float64) if columns else np.zeros((len(codes), 0))


def edges_of(p: Any) -> Edges:
    """Return how near 0 and 1 logarithms of scores are taken as they are.

    A millionth, or nearer if a hundredth of the rows is nearer: a network that says 1e-20 of most people still orders
    them, while a lone 0 among moderate scores must not rule the fit.
    """
    low, high = (min(EDGE, float(np.quantile(v[v > 0.0], 0.01))) if (v > 0.0).any() else EDGE for v in (p, 1.0 - p))
    return (max(low, 1e-300), high)


def logs(p: Any, edges: Edges) -> tuple[Any, Any]:
    """Return the logarithms of scores and of what is left to 1, finite and without new ties."""
    one, zero = (np.log(np.maximum(v, e)) + np.minimum(v - e, 0.0) / e for v, e in ((p, edges[0]), (1.0 - p, edges[1])))
    return one, zero


def log_odds(p: Any, edges: Edges) -> Any:
    """Return the log-odds of scores."""
    one, zero = logs(p, edges)
    return one - zero


# ---- Logistic regression on a few columns, for targets between 0 and 1: what the maps of the score are fitted ----

WARM = 65_536  # above four times as many rows the start is fitted on about so many of them
STEPS = 100


def newton(
    features: Any, target: Any, weight: Any = None, ridge: float = 0.0, offset: bool = True
) -> tuple[Any, float]:
    """Return coefficients and intercept that minimise the weighted log loss plus ``ridge |coefficients|^2 / 2``.

    Newton's method with halved steps on standardised columns; scikit-learn's `LogisticRegression` minimises the same
    sum, but takes labels 0 and 1 only, so that every row would enter it twice.

    Parameters
    ----------
    features : float64 array of shape (n, d)
    target : float64 array of shape (n,)
        In [0, 1].
    weight : float64 array of shape (n,), optional
    ridge : float
        scikit-learn's 1/C.
    offset : bool
        Fit an intercept; otherwise it is 0.
    """
    n, d = features.shape
    heft = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    centre = np.average(features, axis=0, weights=heft) if offset else np.zeros(d)
    spread = np.sqrt(np.average((features - centre) ** 2, axis=0, weights=heft))
    flat = spread <= 1e-12 * (1.0 + np.abs(centre))
    scale = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, spread))
    x = np.empty((d + offset, n))
    x[:d] = ((features - centre) * scale).T
    x[d:] = 1.0
    penalty = np.concatenate([ridge * scale**2, np.zeros(int(offset))])
    start = np.zeros(d + offset)
    stride = n // WARM
    if stride > 4:
        part = np.ascontiguousarray(x[:, ::stride])
        start = _descend(part, target[::stride], heft[::stride], penalty, start)
    solved = _descend(x, target, heft, penalty, start)
    slopes = solved[:d] * scale
    return slopes, float(solved[d] - slopes @ centre) if offset else 0.0


def _descend(x: Any, target: Any, heft: Any, penalty: Any, at: Any) -> Any:
    """Newton's iteration from `at`; one column of x a row of data."""
    from scipy.special import expit

    total, before = float(heft.sum()), np.inf
    step = np.zeros_like(at)
    for _ in range(STEPS):
        z = at @ x
        loss = _loss(z, target, heft) + 0.5 * float(penalty @ at**2)
        if not loss <= before + 1e-12 * (total + abs(before)):
            step *= 0.5
            at = at - step
            if np.abs(step).max() < 1e-12:
                break
            continue
        before = loss
        mean = expit(z)
        slope = x @ (heft * (mean - target)) + penalty * at
        bend = (x * (heft * mean * (1.0 - mean))) @ x.T
        bend[np.diag_indices_from(bend)] += penalty
        step = -np.linalg.lstsq(bend, slope, rcond=1e-10)[0]
        at = at + step
        if -float(step @ slope) <= 1e-14 * total:  # the error left is of the order of its square
            break
    return at


def _loss(z: Any, target: Any, heft: Any) -> float:
    return float(heft @ (np.logaddexp(0.0, z) - target * z))


# ---- Rows put in order of their score, those of one score together ----

_LABEL = np.uint64(1)


def distinct(rows: Predictions) -> tuple[Any, Any, Any]:
    """Return the scores that occur, increasing, and the weight of the rows and of the cases at each.

    Without weights the label rides in the lowest bit of a whole number that orders like the score, so that one plain
    sort does it.
    """
    p = rows.p + 0.0  # so that -0.0 is 0.0
    if rows.weights is None:
        keys = (p.view(np.uint64) << _LABEL) | rows.y.astype(np.uint64)
        keys.sort()
        scores, y, weight = (keys >> _LABEL).view(np.float64), (keys & _LABEL).astype(np.float64), None
    else:
        order = np.argsort(p, kind="stable")
        scores, weight = p[order], rows.weights[order]
        y = rows.y[order] * weight
    first = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
    if len(first) == len(scores):
        return scores, np.ones(len(y)) if weight is None else weight, y
    heft = np.diff(np.append(first, len(scores))).astype(float) if weight is None else np.add.reduceat(weight, first)
    return scores[first], heft, np.add.reduceat(y, first)


# ---- A penalised logistic correction of log-odds, and how much of it survives on rows that it has not seen ----

FOLDS = 5
PENALTIES = tuple(10.0 ** (k / 2.0) for k in range(-2, 9))
JOINT = (0.0, 0.3, 3.0)  # prior variance of the joint features, in that of the others; 0: without them
SHRINKAGE_STEPS = 12  # of Newton's method, at most
SETTLED = 1e-6  # log-odds


@dataclass(frozen=True)
class Trial:
    """Rows of a correction ``log-odds = base + features @ beta``.

    Parameters
    ----------
    y, weight, base : float arrays of shape (n,)
    features : float array of shape (n, k)
        The first `free` columns are not penalised, the last `joint` less or more than the others.
    free, joint : int
    fold, unit : int arrays of shape (n,)
        The fold of each row, and the independent unit (row or cluster) that it belongs to.
    """

    y: Any
    weight: Any
    base: Any
    features: Any
    free: int
    joint: int
    fold: Any
    unit: Any

    def penalty(self, strength: float, joint: float) -> Any:
        """Return the diagonal of the penalty; infinite where a feature is left out."""
        k = self.features.shape[1]
        out = np.full(k, strength)
        out[: self.free] = 1e-9
        out[k - self.joint :] = strength / joint if joint > 0 else np.inf
        return out


@dataclass(frozen=True)
class Choice:
    """How much to correct.

    Parameters
    ----------
    penalty : array of shape (k,) or None
        None: not at all.
    strength, joint : float
    gain, error : float
        Log loss that cross-fitting gained over the base, by row, and its standard error.
    """

    penalty: Any
    strength: float
    joint: float
    gain: float
    error: float


def chosen(t: Trial, strengths: Sequence[float] = PENALTIES, shares: Sequence[float] = JOINT) -> Choice:
    """Choose a penalty by the log loss of one Newton step from the base, on the folds left out of it.

    The correction must gain more than a standard error of its gain, or there is none.
    """
    p = expit(t.base)
    steps = _fold_sums(t, t.weight * (t.y - p), t.weight * p * (1.0 - p))
    before, best = losses(t.y, t.base), Choice(None, 0.0, 0.0, 0.0, 0.0)
    for share in shares:
        if share > 0 and not t.joint:
            continue
        for strength in strengths:
            penalty = t.penalty(strength, share)
            after = losses(t.y, t.base + _held_out(t, steps, penalty))
            gain, error = paired(t.weight * (before - after), t.unit)
            if gain > max(error, best.gain):
                best = Choice(penalty, strength, share, gain, error)
    return best


def folds_of(rows: Predictions, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the independent unit of each row (its cluster, or itself), and a fold that keeps units whole."""
    names = np.arange(rows.n) if rows.cluster is None else rows.cluster
    unit = np.unique(names, return_inverse=True)[1].reshape(-1)
    return unit, rng.permutation(np.arange(unit.max() + 1) % FOLDS)[unit]


def paired(gains: Any, unit: Any) -> tuple[float, float]:
    """Return the mean gain of the rows, and its standard error over independent units."""
    sums, n = np.bincount(unit, gains), len(gains)
    return float(gains.sum()) / n, float(sums.std() * np.sqrt(len(sums)) / n)


def losses(y: Any, eta: Any) -> Any:
    """Return the log loss of each row."""
    return np.logaddexp(0.0, eta) - y * eta


def expit(eta: Any) -> Any:
    """Return the probability of log-odds."""
    from scipy.special import expit as curve

    return curve(eta)


def _fold_sums(t: Trial, residual: Any, variance: Any) -> list[tuple[Any, Any]]:
    """Return score and information of the rows outside each fold."""
    parts = []
    for k in range(FOLDS):
        x = t.features[t.fold == k]
        parts.append((x.T @ residual[t.fold == k], (x * variance[t.fold == k, None]).T @ x))
    score, gram = (sum(part[i] for part in parts) for i in (0, 1))
    return [(score - s, gram - g) for s, g in parts]


def _held_out(t: Trial, steps: Sequence[tuple[Any, Any]], penalty: Any) -> Any:
    out = np.empty(len(t.y))
    for k, (score, gram) in enumerate(steps):
        out[t.fold == k] = t.features[t.fold == k] @ solved(gram, score, penalty)
    return out


def solved(gram: Any, score: Any, penalty: Any) -> Any:
    """Return ``(gram + diag(penalty))^-1 score``, zero where the penalty is infinite."""
    from scipy.linalg import cho_factor, cho_solve

    out, used = np.zeros(len(score)), np.flatnonzero(np.isfinite(penalty))
    matrix = gram[np.ix_(used, used)]
    matrix[np.diag_indices(len(used))] += penalty[used] + 1e-10 * max(float(np.trace(matrix)) / max(len(used), 1), 1e-3)
    out[used] = cho_solve(cho_factor(matrix), score[used])
    return out


def fitted(t: Trial, penalty: Any) -> Any:
    """Return the penalised maximum likelihood coefficients, by Newton's method with halved steps."""
    finite = np.where(np.isfinite(penalty), penalty, 0.0)
    beta, eta = np.zeros(len(penalty)), t.base

    def objective(b: Any, at: Any) -> float:
        return float(t.weight @ losses(t.y, at)) + 0.5 * float(finite @ (b * b))

    now = objective(beta, eta)
    for _ in range(SHRINKAGE_STEPS):
        p = expit(eta)
        gram = (t.features * (t.weight * p * (1.0 - p))[:, None]).T @ t.features
        step = solved(gram, t.features.T @ (t.weight * (t.y - p)) - finite * beta, penalty)
        move = t.features @ step
        scale = 1.0
        while (then := objective(beta + scale * step, eta + scale * move)) > now and scale > 1e-4:
            scale /= 2.0
        if then > now:
            break
        beta, eta, now = beta + scale * step, eta + scale * move, then
        if np.abs(scale * move).max() < SETTLED:
            break
    return beta
