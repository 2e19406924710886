"""Values and large-sample intervals of the measures: proper scores, ranking, ratios, means inferred from probabilities.

Points are rows, or cells of rows that count alike: how many each stands for, and their sampling weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import NotComputable
from calibrant.kernels.roots import crossing
from calibrant.kernels.smooth import isotonic
from calibrant.stats.cells import summed
from calibrant.stats.evidence import limit_of
from calibrant.stats.nulls import ClusterSums, at_least, effective, studied
from calibrant.stats.strata import Bins

Floats = NDArray[np.float64]
Labels = NDArray[np.int8] | Floats
Flags = NDArray[np.bool_]
Places = NDArray[np.intp]

# ---- Proper scores, the area under the ROC curve, and observed over expected ----


def normal_quantile(alpha: float) -> float:
    """Upper ``alpha / 2`` quantile of the standard normal distribution."""
    from scipy.special import ndtri

    return float(-ndtri(alpha / 2))


@dataclass(frozen=True)
class Weighed:
    """Outcomes with how often each occurs and how much it weighs, and moments over them; of independent rows."""

    y: Labels  # shape (m,)
    # `mass` and `square`, shape (m,): count times weight, and count times squared weight.
    mass: Floats
    square: Floats

    @property
    def rows(self) -> float:
        """Kish's effective number of rows."""
        return float(self.mass.sum()) ** 2 / float(self.square.sum())

    @property
    def effective_clusters(self) -> float:
        """Kish's effective number of what is independent."""
        return self.rows

    def level(self, alpha: float) -> float:
        """The alpha at which a normal quantile is Student's, with a degree of freedom fewer than clusters."""
        return alpha

    def mean(self, values: Floats | Labels) -> float:
        """The weighted mean."""
        return float(self.mass @ values) / float(self.mass.sum())

    def products(self, values: Floats) -> Floats:
        """The covariance of weighted sums of values of mean zero, shape (k, m), as far as it was seen: (k, k)."""
        return (values * self.square) @ values.T

    def variance(self, values: Floats | Labels) -> float:
        """The variance of the weighted mean, as far as it was seen."""
        centred: Floats = np.asarray(values - self.mean(values), dtype=np.float64)
        return float(self.products(centred[None])[0, 0]) / float(self.mass.sum()) ** 2

    def modelled(self, rates: Floats, swing: Floats | float = 1.0) -> float:
        """The variance of the mean of ``swing Y`` for outcomes of these rates, given the rows."""
        likely = np.clip(rates, 0.0, 1.0)
        return float(self.square @ (swing**2 * likely * (1.0 - likely))) / float(self.mass.sum()) ** 2

    def noisier(self, drawn: Floats, _by_clusters: Callable[[Places], Floats]) -> Floats:
        """Noise drawn for independent rows, or where it is wider that of their clusters."""
        return drawn

    def binned(self, bins: Bins, _p: Floats) -> Bins:
        """Bins of these scores with what their noise is."""
        return bins

    def ranking(self, p: Floats, count: Floats) -> Ranking:
        """The area under the ROC curve of these scores, of entries of so many rows."""
        return ranking(p, self.y, count, self.mass / count)


@dataclass(frozen=True)
class WeighedByClusters(Weighed):
    """The same of single rows in clusters, the rows of one as dependent as they like."""

    cluster: Places  # shape (m,): 0 to G - 1

    @cached_property
    def rows(self) -> float:
        """Kish's effective number of rows, over the outcomes' design effect if above 1, at most rows a cluster."""
        alone = Weighed(self.y, self.mass, self.square)
        most, variance = alone.rows / self.effective_clusters, alone.variance(self.y)
        effect = max(min(self.variance(self.y) / variance, most), 1.0) if variance > 0.0 else max(most, 1.0)
        return alone.rows / effect

    @cached_property
    def effective_clusters(self) -> float:
        return effective(summed(self.cluster, self.mass))

    def level(self, alpha: float) -> float:
        return studied(alpha, self.effective_clusters)

    def products(self, values: Floats) -> Floats:
        sums = np.array([summed(self.cluster, self.mass * row) for row in values])
        return sums @ sums.T * (sums.shape[1] / (sums.shape[1] - 1.0))

    def noisier(self, drawn: Floats, by_clusters: Callable[[Places], Floats]) -> Floats:
        return at_least(by_clusters(self.cluster), drawn)

    def binned(self, bins: Bins, p: Floats) -> Bins:
        residual = self.mass * (self.y - p)
        return replace(bins, clusters=ClusterSums.of(bins.cell(p), self.cluster, bins.used, residual, self.mass))

    def ranking(self, p: Floats, count: Floats) -> Ranking:
        """Influences are added up within each cluster before they are squared (Obuchowski 1997)."""
        return ranking(p, self.y, count, self.mass, lambda influence: float(self.products(influence[None])[0, 0]))


def bounded_ends(mean: float, variance: float, rows: float, alpha: float) -> tuple[float, float]:
    """Limits for the mean of a variable in [0, 1] that is mostly 0, from its mean and the variance of that.

    Clopper and Pearson's (1934) limits are quantiles of two beta laws. Here these have the moments that they have there
    for a variable of 0 and 1, with the variance seen in place of ``mean (1 - mean) / rows``; a mean near 0 makes them
    Fay and Feuer's (1997) gamma limits for weighted sums of rare events. A row that is larger than all seen, of 1,
    is allowed for at the high end. A larger variance than a variable in [0, 1] can have leaves fewer effective rows
    (Korn and Graubard 1998).
    """
    from scipy.special import betaincinv

    mean = min(max(mean, 0.0), 1.0)
    most = mean * (1.0 - mean)
    n = max(min(rows, most / variance), 1.0) if variance > 0.0 and most > 0.0 else max(rows, 1.0)
    scale = n * n / ((n + 1.0) ** 2 * (n + 2.0))

    def quantile(centre: float, spread: float, at: float) -> float:
        size = centre * (1.0 - centre) / spread - 1.0
        return float(betaincinv(centre * size, (1.0 - centre) * size, at))

    low = quantile(mean * n / (n + 1.0), (n * variance + mean / n) * scale, alpha / 2) if mean > 0.0 else 0.0
    high = 1.0
    if mean < 1.0:
        high = quantile((mean * n + 1.0) / (n + 1.0), (n * variance + (1.0 - mean) / n) * scale, 1.0 - alpha / 2)
    return min(low, mean), max(high, mean)


def loss_interval(q: Weighed, p: Floats, base: Floats, swing: Floats, most: float, alpha: float) -> tuple[float, ...]:
    """A mean loss and its limits: of the likelier outcome in [0, most], plus a swing where it is the other.

    Both parts are means of bounded variables, the second of rare ones: its variance is the larger of what was seen and
    of what the scores, made to agree with how often the less likely outcome came, lead one to expect. The limits are
    joined as those of a sum of two correlated estimates (Zou and Donner 2008).
    """
    unlikely = np.where(p < 0.5, q.y, 1.0 - q.y)
    chance = np.minimum(p, 1.0 - p)
    added, expected = swing * unlikely, q.mean(chance)
    rates = chance * (q.mean(unlikely) / expected) if expected > 0.0 else np.full(len(p), q.mean(unlikely))
    first, second, largest = q.mean(base), q.mean(added), max(float(swing.max()), 1e-12)
    spread, seen = q.variance(base), q.variance(added)
    both = (q.variance(base + added) - spread - seen) / 2.0
    tie = min(max(both / np.sqrt(spread * seen), -1.0), 1.0) if spread > 1e-20 and seen > 1e-20 else 0.0
    own = bounded_ends(first / most, spread / most**2, q.rows, alpha)
    rare = bounded_ends(second / largest, max(seen, q.modelled(rates, swing)) / largest**2, q.rows, alpha)
    value, ends = first + second, []
    for one, other, side in ((own[0], rare[0], -1.0), (own[1], rare[1], 1.0)):
        a, b = abs(one * most - first), abs(other * largest - second)
        ends.append(value + side * float(np.sqrt(max(a * a + b * b + 2.0 * tie * a * b, 0.0))))
    return value, max(ends[0], 0.0), ends[1]


LOOKS = 4  # times the variance is taken at the end that it led to; it hardly moves after two


def rate_interval(
    q: Weighed, start: float, rates: Callable[[float], Floats], solve: Callable[[float, float], float], alpha: float
) -> tuple[float, float]:
    """Limits for a number t at which rows have ``rates(t)``, from limits for the mean outcome.

    The outcome that is rarer is counted, with the variance of ``Y - rates(t)``: the larger of what was seen and of what
    independent outcomes of these rates have, at the estimate; and again at either end, as in a score interval, for few
    events say little of the spread (a sum of events near its most has none).

    `start`: the estimate. `solve`: from a mean outcome, and a t to start from, to the t that gives it.
    """
    mean = q.mean(q.y)
    rarer = mean <= 0.5
    fewer = 0 if rarer else 1  # the end at which there are fewer of what is counted

    def ends(variance: float) -> tuple[float, float]:
        low, high = bounded_ends(mean if rarer else 1.0 - mean, variance, q.rows, alpha)
        return (low, high) if rarer else (1.0 - high, 1.0 - low)

    at = rates(start)
    least, result = max(q.variance(q.y - at), q.modelled(at)), []
    for side in (0, 1):
        t = solve(ends(least)[side], start)
        for _ in range(LOOKS):
            there = rates(t)
            variance = max(least, q.variance(q.y - there), q.modelled(there) if side == fewer else 0.0)
            t = solve(ends(variance)[side], t)
        result.append(t)
    return result[0], result[1]


def isotonic_parts(p: Floats, y: Labels, mass: Floats) -> dict[str, float]:
    """Split the mean Brier score into reliability, resolution and uncertainty by isotonic recalibration.

    ``score = reliability - resolution + uncertainty`` exactly (CORP; Dimitriadis, Gneiting & Jordan 2021,
    doi:10.1073/pnas.2016191118).
    """
    order = np.argsort(p, kind="stable")
    s, w, event = p[order], mass[order], (mass * y)[order]
    first = np.flatnonzero(np.concatenate([[True], np.diff(s) > 0]))
    weight, events = np.add.reduceat(w, first), np.add.reduceat(event, first)
    total = weight.sum()
    fit = isotonic(events / weight, weight)
    rate, score = events.sum() / total, float((mass * (p - y) ** 2).sum() / total)
    best = float((events * (1.0 - fit) ** 2 + (weight - events) * fit**2).sum() / total)
    uncertainty = float(rate * (1.0 - rate))
    return {"reliability": score - best, "resolution": uncertainty - best, "uncertainty": uncertainty}


@dataclass(frozen=True)
class Ranking:
    """Area under the ROC curve and its DeLong standard error, with the effective numbers of events and of others."""

    auroc: float
    error: float
    events: float
    others: float


def placements(p: Floats, event: NDArray[np.bool_], weight: Floats) -> tuple[float, Floats]:
    """The area under the ROC curve, and each row's placement value.

    That of an event is the share of non-events it outscores, that of a non-event the share of events that outscore it.
    """
    score, at = np.unique(p, return_inverse=True)
    area, below, above = _midranks(*(summed(at, np.where(rows, weight, 0.0), len(score)) for rows in (event, ~event)))
    return area, np.where(event, below[at], above[at])


def _midranks(event: Floats, other: Floats) -> tuple[float, Floats, Floats]:
    """The area, and at each score the share of non-events below and of events above, ties half."""
    m, n = event.sum(), other.sum()
    below = (np.cumsum(other) - 0.5 * other) / n
    above = (m - np.cumsum(event) + 0.5 * event) / m
    return float(event @ below / m), below, above


def ranking(
    p: Floats, y: Labels, count: Floats, weight: Floats, seen: Callable[[Floats], float] | None = None
) -> Ranking:
    """The chance that an event outscores a non-event, ties half (DeLong, DeLong & Clarke-Pearson 1988).

    Placement values are weighted midranks (Sun & Xu 2014); with sampling weights the squared influence of a row
    carries its squared weight; or what is `seen` of the influences, if that is more. `error` is zero when one outcome
    outscores the other everywhere.
    """
    order = np.argsort(p, kind="stable")
    s, label = p[order], y[order] == 1
    f, w = count[order], weight[order]
    first = np.flatnonzero(np.concatenate([[True], np.diff(s) > 0]))
    mass = f * w
    event, other = (np.add.reduceat(np.where(k, mass, 0.0), first) for k in (label, ~label))
    m, n = event.sum(), other.sum()
    area, below, above = _midranks(event, other)
    variance, rows = 0.0, []
    for mask, value, total in ((label, below, m), (~label, above, n)):
        size = float(f[mask].sum())
        square = np.add.reduceat(np.where(mask, f * w**2, 0.0), first) @ (value - area) ** 2
        variance += float(square) / total**2 * size / max(size - 1.0, 1.0)
        rows.append(float(total**2 / (f * w**2)[mask].sum()))
    if seen is not None:
        at, influence = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(s)))), np.empty(len(s))
        influence[order] = np.where(label, (below[at] - area) / m, (above[at] - area) / n)
        variance = max(variance, seen(influence))
    return Ranking(area, float(np.sqrt(variance)), *rows)


TRUSTED = 30.0  # events, or others, up to which DeLong's variance may not make an interval narrower


def area_interval(r: Ranking, alpha: float) -> tuple[float, float]:
    """The ends of a score interval, or of a Wald interval on the logit scale where that reaches further.

    The logit interval alone is too short where few events happen to lie together, the score interval where scores are
    spread unevenly about the events. The high end takes Student's quantile, with one degree of freedom fewer than there
    are of the rarer outcome: where by luck many events lie in a tie above nearly all others, the area is too low and
    its variance seems small.
    """
    from scipy.special import stdtrit

    fewer = max(min(r.events, r.others) - 1.0, 1.0)
    low, _ = _area_ends(r, normal_quantile(alpha))
    _, high = _area_ends(r, float(stdtrit(fewer, 1.0 - alpha / 2.0)))
    return low, high


def _area_ends(r: Ranking, z: float) -> tuple[float, float]:
    low, high = score_ends(r, z)
    if 0.0 < r.auroc < 1.0 and r.error > 0.0 and min(r.events, r.others) >= 2:
        centre, half = np.log(r.auroc / (1 - r.auroc)), z * r.error / (r.auroc * (1 - r.auroc))
        below, above = 1 / (1 + np.exp(-np.array([centre - half, centre + half])))
        low, high = min(low, float(below)), max(high, float(above))
    return low, high


def score_ends(r: Ranking, z: float) -> tuple[float, float]:
    """Solve ``|area - t| = z sqrt(V(t))`` with Newcombe's form of the Hanley-McNeil variance.

    Where DeLong's variance is larger at the estimate, V is larger by that factor everywhere; where it is smaller, V is
    smaller only as far as there are events and others to rely on it.
    """
    middle = 0.5 * (r.events + r.others) - 1.0

    def variance(t: float) -> float:
        return t * (1 - t) * (1 + middle * ((1 - t) / (2 - t) + t / (1 + t))) / (r.events * r.others)

    own = variance(r.auroc)
    ratio = r.error**2 / own if own > 0.0 else 1.0
    trusted = 1.0 - min(TRUSTED / min(r.events, r.others), 1.0)
    wider = max(ratio, 1.0 + trusted * (ratio - 1.0))

    def ends(stop: float) -> float:
        def excess(t: float) -> float:
            return abs(r.auroc - t) - z * float(np.sqrt(wider * variance(t)))

        inside = min(max(r.auroc, 1e-9), 1 - 1e-9)
        return stop if excess(stop) <= 0 else float(crossing(excess, inside, stop))

    low = ends(0.0) if r.auroc > 0 else 0.0
    return low, (ends(1.0) if r.auroc < 1 else 1.0)


# ---- Means and gaps of rates inferred from probabilities in place of labels, and how far off they are ----

Quantity = Literal["bias", "inferred", "observed"]
USE = {"bias": (1.0, -1.0), "inferred": (1.0, 0.0), "observed": (0.0, 1.0)}  # of what p says, and of what y says


@dataclass(frozen=True)
class Sums:
    """Sums over entries: single rows, or cells of rows that count alike."""

    # `rows`, `score`, `events`, `square` and `both`, shape (m,): rows, and sums over them of p, y, p^2 and p y.
    rows: Floats
    score: Floats
    events: Floats
    square: Floats
    both: Floats
    weight: Floats  # shape (m,): sampling weight of each row of the entry
    one = "rows"  # what is independent

    @property
    def clusters(self) -> int:
        """Clusters that have an entry; 0 for independent rows."""
        return 0

    def squared(self, _part: Floats, square: Floats) -> float:
        """The sum of squares of what each row counts, which adds up to `_part` and unweighted `square` by entry."""
        return float((self.weight**2 * square).sum())

    def size(self, total: Floats, square: Floats, of: str) -> float:
        """Kish's effective number of rows, or clusters, from sums of a quantity and of its square per entry.

        Raises NotComputable: there are fewer than two, too few for a spread.
        """
        part = self.weight * total
        size = float(part.sum()) ** 2 / self.squared(part, square) if part.any() else 0.0
        if size < 2.0 - 1e-6:
            whole = "is none" if not size else "is one" if size < 1.0 + 1e-6 else ""
            there = whole or f"are effectively {np.floor(100 * size) / 100:g}, for they count unevenly"
            raise NotComputable(f"an interval needs two {self.one} or more {of}: there {there}")
        return size

    def of(self, kept: Flags) -> Sums:
        """Some of the entries."""
        return replace(self, **{f.name: getattr(self, f.name)[kept] for f in fields(self)})

    def variance(self, a: Floats, b: Floats, c: Floats) -> float:
        """The variance of a sum whose rows contribute ``w (a p + b y + c)``, of mean 0, by rows or clusters."""
        squares = a**2 * self.square + b**2 * self.events + c**2 * self.rows
        products = a * b * self.both + a * c * self.score + b * c * self.events
        return max(float((self.weight**2 * (squares + 2.0 * products)).sum()), 0.0)

    def spreads(self, a: Floats) -> tuple[float, float]:
        """The variance of the sum of ``w a (y - p)`` if p is right, at least and at most; no outcome is read."""
        mean = self.score / self.rows
        variance = float((self.weight**2 * a**2 * self.rows * mean * (1.0 - mean)).sum())
        return variance, variance

    def loss(self, a: Floats) -> float:
        """The most that a row (or cluster) can take from the sum of ``w a (y - p)``, whatever its outcome."""
        mean = self.score / self.rows
        return float((self.weight * np.maximum(a * mean, -a * (1.0 - mean))).max())

    def wealth(self, bet: float, a: Floats) -> float:
        """The log of ``prod (1 + bet w a (y - p))``, with the mean score of an entry for each of its p."""
        mean, bet_size = self.score / self.rows, bet * self.weight * a
        won, lost = np.log1p(bet_size * (1.0 - mean)), np.log1p(-bet_size * mean)
        return float(self.events @ won + (self.rows - self.events) @ lost)

    def modelled(self) -> Sums:
        """The sums expected of independent rows whose outcome has probability ``q = min(rate p, 1)``.

        The rate is that of events to events expected. In an entry of many rows the sums of q and of p q are bounded
        alike, as wholes. Where every p is 0 all rows have one q.
        """
        expected, events = float(self.weight @ self.score), float(self.weight @ self.events)
        if expected > 0:
            rate = events / expected
            likely, both = np.minimum(rate * self.score, self.rows), np.minimum(rate * self.square, self.score)
        else:
            likely, both = self.rows * events / float(self.weight @ self.rows), np.zeros(len(self.rows))
        return Sums(self.rows, self.score, likely, self.square, both, self.weight)


@dataclass(frozen=True)
class SumsByCluster(Sums):
    """The same of single rows in clusters."""

    cluster: Places  # shape (m,)
    one = "clusters"

    @property
    def clusters(self) -> int:
        return len(np.unique(self.cluster))

    def squared(self, part: Floats, _square: Floats) -> float:
        return float((summed(self.cluster, part) ** 2).sum())

    def variance(self, a: Floats, b: Floats, c: Floats) -> float:
        total = self.weight * (a * self.score + b * self.events + c * self.rows)
        return self.squared(total, total)

    def spreads(self, a: Floats) -> tuple[float, float]:
        deviation = self.weight * np.abs(a) * np.sqrt(self.score * (1.0 - self.score))
        return float((deviation**2).sum()), self.squared(deviation, deviation)

    def loss(self, a: Floats) -> float:
        return float(summed(self.cluster, self.weight * np.maximum(a * self.score, -a * (1.0 - self.score))).max())

    def wealth(self, bet: float, a: Floats) -> float:
        return float(np.log1p(bet * summed(self.cluster, self.weight * a * (self.events - self.score))).sum())


@dataclass(frozen=True)
class Inferred:
    """The three values, and the standard error and degrees of freedom of the one asked for."""

    inferred: float
    observed: float
    value: float
    error: float
    freedom: float

    def ends(self, alpha: float, span: tuple[float, float]) -> tuple[float, float]:
        """The ends of a Wald interval with Student's t, kept within `span`."""
        from scipy.special import stdtrit

        half = float(-stdtrit(self.freedom, alpha / 2)) * self.error
        return max(self.value - half, span[0]), min(self.value + half, span[1])


def inferred_mean_of(sums: Sums, x: Floats, quantity: Quantity) -> Inferred:
    """``sum w p x / sum w p``, ``sum w y x / sum w y`` and their difference, by the delta method.

    A row moves the first by ``w p (x - first) / sum w p``, the second likewise, to first order. The variance is the
    larger of what was seen and of what the model would give about its own means: so outcomes that are absent where few
    are expected do not make it zero.

    Raises NotComputable: effectively fewer than two rows or clusters have an event, or a probability above zero.
    """
    weighed = sums.size(sums.score, sums.square, "with a probability above zero")
    size = sums.size(sums.events, sums.events, "with the event")
    size = weighed if quantity == "inferred" else size
    expected, events = float(sums.weight @ sums.score), float(sums.weight @ sums.events)
    inferred, observed = (float((sums.weight * v) @ x / t) for v, t in ((sums.score, expected), (sums.events, events)))
    use = USE[quantity]
    model, zero = sums.modelled(), np.zeros(len(x))
    centre = float((sums.weight * model.events) @ x / (sums.weight @ model.events))
    a, b, b_model = use[0] * (x - inferred) / expected, use[1] * (x - observed) / events, use[1] * (x - centre) / events
    variance = max(sums.variance(a, b, zero), model.variance(a, b_model, zero)) * size / (size - 1.0)
    value = {"bias": inferred - observed, "inferred": inferred, "observed": observed}[quantity]
    return Inferred(inferred, observed, value, float(np.sqrt(variance)), size - 1.0)


def inferred_gap_of(sums: Sums, group: Flags, other: Flags, quantity: Quantity) -> Inferred:
    """The difference of mean p, of mean y, and of both, between two groups of entries (boolean masks).

    Raises NotComputable: a group has effectively fewer than two rows or clusters; or outcomes are asked about and all
    are the same.
    """
    if quantity != "inferred" and not 0.0 < float(sums.events.sum()) < float(sums.rows.sum()):
        raise NotComputable("an interval for a difference of event rates needs an event and a row without the event")
    use, model, mass = USE[quantity], sums.modelled(), sums.weight * sums.rows
    means, sizes = [], []
    h, c, c_model = (np.zeros(len(mass)) for _ in range(3))
    for mask, sign in ((group, 1.0), (other, -1.0)):
        there = sums.rows * mask
        size = sums.size(there, there, "in each group")
        total = float(mass[mask].sum())
        mean = [float((sums.weight * v)[mask].sum() / total) for v in (sums.score, sums.events, model.events)]
        grown = float(np.sqrt(size / (size - 1.0)))
        h[mask] = sign * grown / total
        c[mask], c_model[mask] = (-sign * grown / total * (use[0] * mean[0] + use[1] * mean[k]) for k in (1, 2))
        means.append(mean)
        sizes.append(size)
    a, b, size = use[0] * h, use[1] * h, min(sizes)
    variance = max(sums.variance(a, b, c), model.variance(a, b, c_model))
    inferred, observed = (means[0][k] - means[1][k] for k in (0, 1))
    value = {"bias": inferred - observed, "inferred": inferred, "observed": observed}[quantity]
    return Inferred(inferred, observed, value, float(np.sqrt(variance)), size - 1.0)


STAKED = 0.5  # of its wealth that a bet may lose on one row or cluster, at most
LEAST_VARIANCE = 1e-300  # where every score is 0 or 1
APART = 16.0  # times that the variances of two bets are apart: half of it costs a quarter of the width


def mean_of_events_limits(sums: Sums, x: Floats, delta: float) -> tuple[float, float]:
    """Limits of ``sum w r x / sum w r``, r being what each row's probability of an event is: both hold together.

    Given x and p they miss it with probability at most `delta`, at any number of independent rows (or clusters).
    """
    least, span = float(x.min()), float(np.ptp(x))
    place = (x - least) / span
    low, high = _mean_at_least(sums, place, delta / 2.0), 1.0 - _mean_at_least(sums, 1.0 - place, delta / 2.0)
    return least + span * low, least + span * high


def _mean_at_least(sums: Sums, place: Floats, delta: float) -> float:
    """The lower limit of the mean of a place in [0, 1].

    For m that is at least the truth and a bet k >= 0, ``exp(k sum w p a) prod (1 + k w a (y - p))`` with ``a = place -
    m`` has a mean of at most ``exp(k sum w r a) <= 1``. Its logarithm is concave in m: what it refutes is an interval.
    Bets read no outcome. Clusters have several, which share `delta`: nobody knows how alike their rows are.
    """
    expected = sums.weight * sums.score
    middle = float(expected @ place / expected.sum())
    small, large = (max(v, LEAST_VARIANCE) for v in sums.spreads(place - middle))
    count = 1 + int(np.ceil(np.log(large / small) / np.log(APART) - 1e-9))
    return max(_refuted(sums, place, middle, float(v), delta / count) for v in np.geomspace(small, large, count))


def _refuted(sums: Sums, place: Floats, middle: float, variance: float, delta: float) -> float:
    """The end of what is refuted from 0 on, if the variance of the sum of ``w a (y - p)`` is about so large.

    Every m has one test: up to `start` by a bet that is safe everywhere, beyond it, up to `stop`, by the best one.
    """
    expected = sums.weight * sums.score
    best = min(float(np.sqrt(-2.0 * np.log(delta) / variance)), STAKED / (2.0 * sums.loss(place - middle)))

    def lost(m: float) -> float:
        return best * sums.loss(place - m) - STAKED

    def log_e(bet: float) -> Callable[[float], float]:
        return lambda m: bet * float(expected @ (place - m)) + sums.wealth(bet, place - m)

    start, stop = (end if lost(end) <= 0.0 else crossing(lost, middle, end) for end in (0.0, 1.0))
    safest = STAKED / max(sums.loss(place), sums.loss(place - 1.0))
    end = limit_of(log_e(safest), delta, 0.0, 1.0)
    return limit_of(log_e(best), delta, start, stop) if end >= start else end
