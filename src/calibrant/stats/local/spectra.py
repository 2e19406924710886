"""From sums over rows to p-values of local calibration: centring, spectra, scans, findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.nulls import ROUNDING, ranked

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]

# ---- From sums over rows to statistics: centring, spectra, scans ----

FLAT = (None, 0.1, 0.01)  # gamma of each spectrum; None leaves the eigenvalues as they are
TOLERANCE = 1e-4  # of the largest eigenvalue (a smaller one broke the level)
SAME = 1e-9  # share of a variance below which nothing is left after centring
LEAST = 2.0  # null variance of a sum that is scanned, in expected events
HEAVIEST = 8.0  # weight of a level, at most: a rare one is not to drown the others


@dataclass(frozen=True)
class Block:
    """Columns of one variable."""

    name: str
    smooth: Columns  # columns of its kernel; for levels, one a level
    steps: Columns  # columns scanned one by one
    levels: bool = False  # the columns are levels, weighted by the inverse of their frequency
    trend: Floats | None = None  # shape (smooth,): the straight line, one at most, as a sum of the kernel's columns


@dataclass(frozen=True)
class Centred:
    """Sums with the constant and the logit projected out."""

    score: Floats  # shape (columns, 1 + draws): the data's, then the simulated ones
    covariance: Floats  # shape (columns, columns): under the null
    # Each of shape (1 + draws,): score tests of the intercept, of the slope about a free intercept, and of both.
    everyone: Mapping[str, Floats]
    share: Floats  # shape (columns,): share of the null variance of the constant that lies where the column is one


def centred(score: Floats, gram: Floats) -> Centred:
    """Project columns 0 and 1 out of all others, by the null covariance `gram`."""
    # (1) An orthonormal basis of the two columns under the covariance; one column if the logit is constant.
    size = np.sqrt(np.maximum(np.diag(gram)[:2], 1e-300))
    values, vectors = np.linalg.eigh(gram[:2, :2] / np.outer(size, size))
    kept = values > SAME * max(values[-1], 1e-300)
    half = (vectors[:, kept] / np.sqrt(values[kept])) / size[:, None]
    # (2) What every other column shares with them goes from sums and covariance.
    projection, base = gram[:, :2] @ half, half.T @ score[:2]
    covariance = gram - projection @ projection.T
    nothing = np.diag(covariance) <= SAME * np.diag(gram)
    left = score - projection @ base
    covariance[nothing], covariance[:, nothing], left[nothing] = 0.0, 0.0, 0.0
    total = max(float(gram[0, 0]), 1e-300)
    # (3) The two by themselves: the sum of residuals, what the logit's sum has next to it, and both.
    everyone = {"intercept": score[0] ** 2 / total}
    if kept.all():
        slope = float(gram[0, 1]) / total
        everyone["slope"] = (score[1] - slope * score[0]) ** 2 / (float(gram[1, 1]) - slope * float(gram[0, 1]))
    return Centred(left, covariance, everyone | {"intercept and slope": (base**2).sum(axis=0)}, gram[:, 0] / total)


def gaussian_scores(gram: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Sums drawn from the Gaussian law with the null covariance, of shape (columns, draws)."""
    size = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    values, vectors = np.linalg.eigh(gram / np.outer(size, size))
    kept = values > 1e-12 * values[-1]  # what rounding leaves of zero
    root = size[:, None] * (vectors[:, kept] * np.sqrt(values[kept]))
    return root @ rng.standard_normal((int(kept.sum()), draws))


@dataclass(frozen=True)
class Spectrum:
    """Independent unit-variance sums of one kernel."""

    values: Floats  # shape (rank,): eigenvalues, increasing
    squares: Floats  # shape (rank, 1 + draws)

    def weights(self, gamma: float | None) -> Floats:
        """Eigenvalues, flattened."""
        return self.values if gamma is None else self.values / (self.values + gamma * self.values[-1])

    def statistic(self, gamma: float | None) -> Floats:
        """The weighted sum of squares."""
        return self.weights(gamma) @ self.squares

    def surprise(self, gamma: float) -> Floats:
        """Minus the logarithm of an approximate p-value (Wilson and Hilferty, matched mean and variance)."""
        from scipy.special import log_ndtr

        w = self.weights(gamma)
        mean, spread = float(w.sum()), 2.0 * float((w**2).sum())
        a = 9.0 * mean * mean / spread
        z = (np.cbrt(self.statistic(gamma) / mean) - (1.0 - 1.0 / a)) * np.sqrt(a)
        return -log_ndtr(-z)


def spectrum(c: Centred, columns: Columns, weights: Floats | float = 1.0) -> Spectrum | None:
    """The spectrum of the kernel that some columns make, each times the root of its weight; None if empty."""
    if not len(columns):
        return None
    root = np.sqrt(weights) * np.ones(len(columns))
    values, vectors = np.linalg.eigh(root[:, None] * c.covariance[np.ix_(columns, columns)] * root)
    kept = values > max(TOLERANCE * values[-1], 0.0)
    if not kept.any():
        return None
    projection = (root[:, None] * vectors[:, kept]).T @ c.score[columns]
    return Spectrum(values[kept], projection**2 / values[kept][:, None])


def level_weights(c: Centred, columns: Columns) -> Floats:
    """The weights of a variable's levels: the inverse of their shares, one on average."""
    share = np.maximum(c.share[columns], 1e-12)
    return np.minimum(1.0 / (len(columns) * share), HEAVIEST)


def scanned(c: Centred, columns: Columns, least: float = LEAST) -> tuple[Columns, Floats]:
    """Which columns have enough null variance to be scanned, and their squared standard scores."""
    kept = columns[np.diag(c.covariance)[columns] >= least]
    return kept, c.score[kept] ** 2 / np.diag(c.covariance)[kept][:, None]


def straight(c: Centred, b: Block, least: float) -> Floats | None:
    """The squared standard score of a variable's trend; None if it has none or its null variance is small."""
    if b.trend is None:
        return None
    variance = float(b.trend @ c.covariance[np.ix_(b.smooth, b.smooth)] @ b.trend)
    if variance < least:
        return None
    squares: Floats = (b.trend @ c.score[b.smooth]) ** 2 / variance
    return squares


def surprise_of(squares: Floats) -> Floats:
    """Minus the logarithm of the smallest two-sided p-value of several scores, times their number."""
    from scipy.special import log_ndtr

    return -log_ndtr(-np.sqrt(squares.max(axis=0))) - np.log(2.0 * len(squares))


def combined(p: Floats, weights: Sequence[float]) -> Floats:
    """The p-values of the weighted harmonic mean of several p-values, by its rank."""
    values = np.asarray(weights) @ (1.0 / p)
    order = np.sort(values)
    return (len(values) - np.searchsorted(order, values * (1.0 - 1e-12), side="left")) / len(values)  # 1e-12: rounding


# ---- What the local test finds: p-values of everyone, the joint kernel, and each variable ----

GAMMA = 0.1  # of a single variable's spectrum
# Weights in the harmonic mean of p-values (Wilson 2019, doi:10.1073/pnas.1814092116), calibrated by the draws whatever
# they are: everyone, each joint and additive view, and single steps and variables get power at the others' expense.
GLOBAL = {"intercept": 3.0, "slope": 1.5, "intercept and slope": 1.0}
LOCAL = {
    "joint": 0.25,
    "joint 0.1": 0.25,
    "joint 0.01": 0.75,
    "additive": 0.25,
    "additive 0.1": 0.25,
    "additive 0.01": 0.25,
    "largest step": 2.0,
    "largest trend": 1.0,
    "strongest variable": 1.0,
}


@dataclass(frozen=True)
class Findings:
    """P-values among data and draws."""

    p_values: Mapping[str, float]  # of every statistic
    # `overall`, `everyone` and `local`: combined: all statistics, those of intercept and slope, the others.
    overall: float
    everyone: float
    local: float
    joint: float  # of the joint kernel's three statistics
    variables: Mapping[str, tuple[float, float]]  # p-value of each variable, by itself and adjusted for all of them
    column: int  # the step or level with the largest standard score; -1 if none
    z: float  # that score: positive where events are more than the model says, the overall level and slope left aside
    excess: float  # the sum of residuals behind it


@dataclass(frozen=True)
class Statistics:
    """Statistics of the data, the first of each array, and of draws under the null."""

    by_name: Mapping[str, Floats]
    variables: Mapping[str, Floats]  # the surprise of each
    # `column`, `z`, `excess`: as of `Findings`.
    column: int
    z: float
    excess: float

    def findings(self) -> Findings:
        """What each says among data and draws, and what all say."""
        p = dict(zip(self.by_name, ranked(np.array(list(self.by_name.values()))), strict=True))
        return Findings(
            p_values={name: float(v[0]) for name, v in p.items()},
            overall=together(p, GLOBAL | LOCAL),
            everyone=together(p, GLOBAL),
            local=together(p, LOCAL),
            joint=together(p, {k: w for k, w in LOCAL.items() if k.startswith("joint")}),
            variables=adjusted(self.variables),
            column=self.column,
            z=self.z,
            excess=self.excess,
        )


def statistics(score: Floats, gram: Floats, joint: Columns, blocks: Sequence[Block], least: float) -> Statistics:
    """What sums say; the first column of `score` is the data's, the others are draws under the null.

    `score` (columns, 1 + draws): sums of features times residuals; columns 0 and 1 are the constant and the logit.
    `gram` (columns, columns): null covariance of the sums. `joint`: columns of the joint kernel. `blocks`: columns of
    each variable. `least`: null variance from which on a step or level is scanned.
    """
    c = centred(score, gram)
    by_name = dict(c.everyone)
    by_name |= flattened("joint", spectrum(c, joint)) | flattened("additive", additive(c, blocks))
    column, z, excess = -1, 0.0, 0.0
    kept, squares = scanned(c, np.concatenate([b.steps for b in blocks] or [np.zeros(0, np.int64)]), least)
    if len(kept):
        by_name["largest step"] = squares.max(axis=0)
        column = strongest(c, kept, squares[:, 0])
        excess = float(c.score[column, 0])
        z = excess / float(np.sqrt(c.covariance[column, column]))
    trends = [t for b in blocks if (t := straight(c, b, least)) is not None]
    if trends:
        by_name["largest trend"] = np.max(trends, axis=0)
    each = {b.name: s for b in blocks if (s := surprise(c, b, least)) is not None}
    if each:
        by_name["strongest variable"] = np.max(list(each.values()), axis=0)
    return Statistics(by_name, each, column, z, excess)


def strongest(c: Centred, columns: Columns, squares: Floats) -> int:
    """The column with the largest score; of equal ones, such as a level and the only other, the smallest."""
    near = columns[squares >= squares.max() * (1.0 - 1e-6)]
    return int(near[np.argmin(c.share[near])])


def flattened(name: str, s: Spectrum | None) -> dict[str, Floats]:
    """The three statistics of a spectrum."""
    return {} if s is None else {name if g is None else f"{name} {g:g}": s.statistic(g) for g in FLAT}


def additive(c: Centred, blocks: Sequence[Block]) -> Spectrum | None:
    """The spectrum of the sum of the variables' kernels."""
    if not blocks:
        return None
    weights = [level_weights(c, b.smooth) if b.levels else np.ones(len(b.smooth)) for b in blocks]
    return spectrum(c, np.concatenate([b.smooth for b in blocks]), np.concatenate(weights))


def surprise(c: Centred, b: Block, least: float) -> Floats | None:
    """The largest of what one variable's spectrum, its steps and its trend say; None if nothing is left."""
    parts = []
    s = spectrum(c, b.smooth, level_weights(c, b.smooth) if b.levels else 1.0)
    if s is not None:
        parts.append(s.surprise(GAMMA))
    kept, squares = scanned(c, b.steps, least)
    if len(kept):
        parts.append(surprise_of(squares))
    line = straight(c, b, least)
    if line is not None:
        parts.append(surprise_of(line[None, :]))
    return np.max(parts, axis=0) if parts else None


def together(p: Mapping[str, Floats], weights: Mapping[str, float]) -> float:
    """The p-value of several statistics at once; 1 if there are none."""
    names = [k for k in weights if k in p]
    return float(combined(np.array([p[k] for k in names]), [weights[k] for k in names])[0]) if names else 1.0


def adjusted(each: Mapping[str, Floats]) -> dict[str, tuple[float, float]]:
    """Each variable's p-value, and that of the largest surprise of all variables under the null reaching it."""
    if not each:
        return {}
    most = np.max(list(each.values()), axis=0)
    own = ranked(np.array(list(each.values())))[:, 0]
    return {
        name: (float(p), float((1 + np.count_nonzero(most[1:] >= s[0] - ROUNDING)) / len(most)))
        for p, (name, s) in zip(own, each.items(), strict=True)
    }
