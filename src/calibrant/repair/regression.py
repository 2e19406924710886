"""What fits share: rows checked, scores as log-odds, covariates as columns, a correction that must earn its place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import MulticlassPredictions, Predictions, codes_of
from calibrant.data.specs.coding import Coding, Encoded, encode
from calibrant.data.specs.horizon import all_known
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.roots import crossing
from calibrant.repair.disclosure import MASK, cells, reported_codings
from calibrant.stats.betting import Clusters
from calibrant.stats.logistic import Design, maximise
from calibrant.stats.missing.survival import LEAST
from calibrant.views.points import HorizonPoints, weights_of

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Rows = Whole | slice  # which rows: their numbers, or a stretch of them

# ---- Rows to fit on ----


def fit_rows(data: object, recipe: str, fewest: int = 2) -> Predictions:
    """The rows to fit a repair on; refuse other data, rows of one outcome and too few.

    Of outcomes by a horizon, by weights of censoring: those known, each by the inverse of how likely it was followed.
    """
    data = of_two_classes(data, recipe, ", or use Dirichlet")
    if data.events in (0, data.n):
        raise NotComputable(f"{recipe} cannot be fitted: every one of the {data.n:,} rows has outcome {int(data.y[0])}")
    if data.n < fewest:
        raise NotComputable(f"{recipe} needs at least {fewest} rows and there are {data.n}")
    return all_known(_weighed(data))


def of_two_classes(data: object, recipe: str, instead: str = "") -> Predictions:
    """Rows of two classes; refuse other data."""
    if isinstance(data, MulticlassPredictions):
        raise BadInput(f"{recipe} repairs two classes: project with .top_label() or .one_vs_rest(k){instead}")
    if not isinstance(data, Predictions):
        way = "pass calibrant.predictions(...) or calibrant.read(...)"
        raise BadInput(f"{recipe} is fitted on rows: {way}, not a {type(data).__name__}")
    return data


def _weighed(data: Predictions) -> Predictions:
    """The rows of known outcome, weighted for those lost, where the way was chosen; other data as they are."""
    if not data.weighs:
        return data
    of = HorizonPoints.of(data)
    least = min(float(g.before(np.array([of.rows.horizon]))[0]) for g in of.rows.remaining)
    if least < LEAST:
        among = " in a level of within= (--within)" if len(of.rows.levels) > 1 else ""
        raise NotComputable(
            f"being followed to {of.rows.horizon:g} is estimated at {least:.2g}{among}, less likely than {LEAST:g}, so "
            "that few rows would rule a repair by weights: make the rows at an earlier horizon, or keep rows that were "
            "followed long enough (entered=, closed=; --entered, --closed)"
        )
    return replace(data, weights=of.rows.weights[: data.n], unlabelled=None, followed=None, cache={})


def clusters_of(data: Predictions, rows: Rows = slice(None)) -> Whole | None:
    """The cluster of each row, or of some rows, as a number counted from 0; None without clusters."""
    if data.cluster is None:
        return None
    return np.unique(codes_of(data)[rows], return_inverse=True)[1].reshape(-1).astype(np.int64)


def independent(data: Predictions, rows: Rows = slice(None)) -> tuple[str, Whole]:
    """What is independent of one another, "rows" or "clusters", and the number of that of each row, from 0."""
    clusters = clusters_of(data, rows)
    return ("rows", np.arange(len(data.p[rows]))) if clusters is None else ("clusters", clusters)


RANGE = 10.0  # of the logarithm of the temperature, scikit-learn's


def sharpness(slope: Callable[[float], float]) -> float:
    """The 1/T of least log loss, by its derivative in 1/T, which rises, as a function of ln(1/T).

    An end of the range where there is no root; 1 where the loss does not depend on T.
    """
    low, high = slope(-RANGE), slope(RANGE)
    if low >= 0.0:  # the scores rank backwards, or are all alike
        return math.exp(0.0 if high == low else -RANGE)
    if high <= 0.0:
        return math.exp(RANGE)
    return math.exp(crossing(slope, -RANGE, RANGE, xtol=1e-12, rtol=1e-12))


def linear(data: Predictions, rows: Rows, p: Floats, ends: tuple[Floats, Floats]) -> Clusters:
    """Some rows' part in a mean that is linear in the outcomes: of each, what it adds without the event and with it.

    The noise is guessed from the rates p.
    """
    return Clusters.of_values(data.y[rows], p, ends, weights_of(data)[rows], clusters_of(data, rows))


def targets(rows: Predictions) -> Floats:
    """Platt's targets: outcomes drawn in a little, so that a fit stays finite when the classes separate."""
    weight = weights_of(rows)
    events, rest = float(weight @ rows.y), float(weight @ (1 - rows.y))
    return np.where(rows.y == 1, (events + 1.0) / (events + 2.0), 1.0 / (rest + 2.0))  # Platt 1999, eq. 2.2


def distinct(rows: Predictions) -> tuple[Floats, Floats, Floats, Whole]:
    """The scores that occur, increasing, the weight of the rows and of the events at each, and how many rows these are.

    Without weights the label rides in the lowest bit of a whole number that orders like the score, so that one plain
    sort does it.
    """
    p = rows.p + 0.0  # so that -0.0 is 0.0
    one = np.uint64(1)
    if rows.weights is None:
        keys = (p.view(np.uint64) << one) | rows.y.astype(np.uint64)  # positive floats order like their bits
        keys.sort()
        scores, events, weight = (keys >> one).view(np.float64), (keys & one).astype(np.float64), np.ones(rows.n)
    else:
        order = np.argsort(p, kind="stable")
        scores, weight = p[order], rows.weights[order]
        events = rows.y[order] * weight
    first = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
    many = np.diff(first, append=rows.n)
    if len(first) == len(scores):
        return scores, weight, events, many
    return scores[first], np.add.reduceat(weight, first), np.add.reduceat(events, first), many


def scores_of(rows: Predictions, fewest: int) -> tuple[Floats, Floats, Floats]:
    """The `distinct` scores, neighbours joined until each stands for so many rows; see `repair.reported`."""
    scores, weight, events, many = distinct(rows)
    return (scores, weight, events) if fewest < 2 else cells(scores, weight, events, many, fewest)


# ---- Scores as log-odds, finite at 0 and 1 and without new ties ----

EDGE = 1e-6  # nearer to 0 and 1 than this a logarithm is continued along its tangent
Edges = tuple[float, float]  # the same of one map: how near to 0, and how near to 1


def edge_of(p: Floats) -> float:
    """How near 0 logarithms of scores are taken as they are.

    A millionth, or nearer if a hundredth of the rows is nearer: a network that says 1e-20 of most people still orders
    them, while a lone 0 among moderate scores must not rule the fit.
    """
    above = p[p > 0.0]
    near = min(EDGE, float(np.quantile(above, 0.01))) if len(above) else EDGE
    return max(float(f"{near:.1g}"), 1e-300)  # one digit: not the score of anyone; the inverse of 1e-300 is finite


def edges_of(p: Floats) -> Edges:
    """How near 0 and 1 logarithms of scores are taken as they are."""
    return edge_of(p), edge_of(1.0 - p)


def log_of(p: Floats, edge: float = EDGE) -> Floats:
    """The logarithm of scores, continued below `edge` along its tangent: finite at 0, and no two scores tie."""
    return np.log(np.maximum(p, edge)) + np.minimum(p - edge, 0.0) / edge


def log_odds(p: Floats, edges: Edges = (EDGE, EDGE)) -> Floats:
    """The log-odds of scores, continued along their tangents within `edges` of 0 and 1."""
    return log_of(p, edges[0]) - log_of(1.0 - p, edges[1])


def expit(eta: Floats) -> Floats:
    from scipy.special import expit as curve

    p: Floats = curve(eta)
    return p


def softmax(z: Floats) -> Floats:
    """The probabilities of classes, a row each, given what their logarithms are up to a constant of the row."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p: Floats = e / e.sum(axis=1, keepdims=True)
    return p


# ---- Covariates as columns, all of them fixed when the map is fitted ----

LEVELS = 50  # most frequent levels of a category that get a column of their own: Grams of a few hundred columns at most
SEEN = MASK  # rows that such a level must have
Kept = tuple[tuple[int, ...], ...]  # of each level variable, the levels that have a column


def encoded(
    data: Predictions | MulticlassPredictions, names: Sequence[str] | None
) -> tuple[tuple[Coding, ...], Encoded, tuple[str, ...]]:
    """Fix the codings of the variables of rows; return them, the encoded rows and the constants left out."""
    how = reported_codings(data.covariates, names)
    kept = tuple(c for c in how if c.kind != "constant")
    return kept, encode(data.covariates, kept, data.n), tuple(c.name for c in how if c.kind == "constant")


def filled(x: Encoded, how: Sequence[Coding]) -> Floats:
    """The numbers as they came, each missing one replaced by its median."""
    fill = np.array([c.fill for c in how if c.kind in ("number", "date")])
    return np.where(np.isnan(x.numbers), fill, x.numbers)


def kept_levels(x: Encoded) -> Kept:
    """The levels of each level variable that get a column; the others are distinguished by none."""
    out = []
    for j in range(x.codes.shape[1]):
        rows = np.bincount(x.codes[:, j])
        order = np.argsort(-rows, kind="stable")[:LEVELS]
        out.append(tuple(int(v) for v in order if rows[v] >= SEEN))
    return tuple(out)


def indicators(codes: NDArray[np.int32], kept: Kept) -> NDArray[np.bool_]:
    """A 0/1 column for each kept level of each level variable."""
    columns = [codes[:, j][:, None] == np.array(k, dtype=np.int32)[None, :] for j, k in enumerate(kept) if len(k)]
    return np.hstack(columns) if columns else np.zeros((len(codes), 0), dtype=bool)


def of_levels(codes: NDArray[np.int32], kept: Kept, coefficients: Sequence[float]) -> Floats:
    """What the columns of kept levels add up to, ``indicators(codes, kept) @ coefficients``."""
    out, left = np.zeros(len(codes)), list(coefficients)
    for j, own in enumerate(kept):
        table = np.zeros(max(int(codes[:, j].max(initial=0)), *own, 0) + 1)
        table[list(own)], left = left[: len(own)], left[len(own) :]
        out += table[codes[:, j]]
    return out


# ---- A penalised logistic correction of log-odds, and how much of it survives on rows that it has not seen ----

FOLDS = 5  # of cross-fitting: each fit sees four fifths of the rows
PENALTIES = tuple(10.0 ** (k / 2.0) for k in range(-2, 9))  # 0.1 to 10,000 rows' worth, two a decade
JOINT = (0.0, 0.3, 3.0)  # prior variance of the joint features, in that of the others; 0: without them


@dataclass(frozen=True)
class Trial:
    """Rows of a correction ``log-odds = base + features @ beta``."""

    y: Floats  # shape (n,)
    weight: Floats  # shape (n,)
    base: Floats  # shape (n,)
    # Shape (n, k): the first `free` columns are not penalised, the last `joint` less or more than the others.
    features: Floats
    free: int
    joint: int
    # `fold` and `cluster`, shape (n,): the fold of each row, and the independent unit (row or cluster) that it belongs
    # to.
    fold: Whole
    cluster: Whole

    def penalty(self, strength: float, joint: float) -> Floats:
        """The diagonal of the penalty; infinite where a feature is left out."""
        k = self.features.shape[1]
        out = np.full(k, strength)
        out[: self.free] = 1e-9  # a billionth of a row: free, and yet never singular
        out[k - self.joint :] = strength / joint if joint > 0 else np.inf
        return out

    def fitted(self, penalty: Floats) -> Floats:
        design = Design(self.features, self.weight, self.base, penalty)
        result: Floats = maximise(design, design.sums(self.y)).coefficients[0]
        return result


@dataclass(frozen=True)
class Choice:
    """How much to correct."""

    penalty: Floats | None  # shape (k,): none: not at all
    strength: float
    joint: float
    # `gain` and `error`: log loss that cross-fitting gained over the base, by row, and its standard error.
    gain: float
    error: float


def chosen(t: Trial, strengths: Sequence[float] = PENALTIES, shares: Sequence[float] = JOINT) -> Choice:
    """Choose a penalty by the log loss of one Newton step from the base, on the folds left out of it.

    The correction must gain more than a standard error of its gain, or there is none.
    """
    steps, before, best = _steps(t), losses(t.y, t.base), Choice(None, 0.0, 0.0, 0.0, 0.0)
    for share in shares:
        if share > 0 and not t.joint:
            continue
        for strength in strengths:
            penalty = t.penalty(strength, share)
            after = losses(t.y, t.base + _held_out(t, steps, penalty))
            gain, error = paired(t.weight * (before - after), t.cluster)
            if gain > max(error, best.gain):
                best = Choice(penalty, strength, share, gain, error)
    return best


def _steps(t: Trial) -> list[tuple[Floats, Floats]]:
    """Gradient and information at the base of the rows outside each fold."""
    p = expit(t.base)
    residual, variance = t.weight * (t.y - p), t.weight * p * (1.0 - p)
    parts = []
    for k in range(FOLDS):
        x = t.features[t.fold == k]
        parts.append((x.T @ residual[t.fold == k], (x * variance[t.fold == k, None]).T @ x))
    gradient, information = (sum(part[i] for part in parts) for i in (0, 1))
    return [(gradient - g, information - h) for g, h in parts]


def _held_out(t: Trial, steps: Sequence[tuple[Floats, Floats]], penalty: Floats) -> Floats:
    """Each row's correction, found on the other folds."""
    out = np.empty(len(t.y))
    for k, (gradient, information) in enumerate(steps):
        out[t.fold == k] = t.features[t.fold == k] @ newton_step(information, gradient, penalty)
    return out


def newton_step(information: Floats, gradient: Floats, penalty: Floats) -> Floats:
    """The step ``(information + diag(penalty))^-1 gradient``, zero where the penalty is infinite."""
    from scipy.linalg import cho_factor, cho_solve

    out, used = np.zeros(len(gradient)), np.flatnonzero(np.isfinite(penalty))
    matrix = information[np.ix_(used, used)]
    typical = max(float(np.trace(matrix)) / max(len(used), 1), 1e-3)
    matrix[np.diag_indices(len(used))] += penalty[used] + 1e-10 * typical  # 1e-10: for columns that repeat each other
    out[used] = cho_solve(cho_factor(matrix), gradient[used])
    return out


def folds_of(rows: Predictions, rng: np.random.Generator) -> tuple[Whole, Whole]:
    """The independent unit of each row (its cluster, or itself), and a fold that keeps clusters whole."""
    _, cluster = independent(rows)
    return cluster, rng.permutation(np.arange(cluster.max() + 1) % FOLDS)[cluster]


def paired(gains: Floats, cluster: Whole) -> tuple[float, float]:
    """The mean gain of the rows, and its standard error over independent clusters."""
    sums, n = np.bincount(cluster, gains), len(gains)
    return float(gains.sum()) / n, float(sums.std() * np.sqrt(len(sums)) / n)


def losses(y: Floats, eta: Floats) -> Floats:
    return np.logaddexp(0.0, eta) - y * eta
