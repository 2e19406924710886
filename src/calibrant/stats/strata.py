"""Cells along a variable and bins of the score: sums from which errors along them are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.strata import bin_sums
from calibrant.stats.cells import summed
from calibrant.stats.nulls import BY_ROWS, Independent, noise

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

# ---- Scores in bins: equal width or equal mass, ties never split, empty bins left out ----


def equal_mass_edges(p: Floats, mass: Floats | None, bins: int) -> Floats:
    """Inner edges between at most `bins` bins of about equal mass; equal scores share a bin.

    A score whose mass lies at ranks F to F + m goes to bin ``floor(bins (F + m / 2) / total)``.

    `p` (n,). `mass` (n,): weight of each entry; one by default.
    """
    if mass is None:
        s = np.sort(p)
        upto = np.arange(len(s) + 1, dtype=np.float64)
    else:
        order = np.argsort(p, kind="stable")
        s, upto = p[order], np.concatenate([[0.0], np.cumsum(mass[order])])
    targets = upto[-1] * np.arange(1, bins) / bins
    at = np.minimum(np.searchsorted(upto, targets, side="right") - 1, len(s) - 1)
    first, after = np.searchsorted(s, s[at], side="left"), np.searchsorted(s, s[at], side="right")
    here = 0.5 * (upto[first] + upto[after]) >= targets
    edges = np.where(here, s[at], np.where(after < len(s), s[np.minimum(after, len(s) - 1)], np.inf))
    return np.unique(edges[(edges > s[0]) & np.isfinite(edges)])


ROWS, WEIGHT, EVENTS, SCORES, SQUARES, WEIGHT2 = range(6)  # columns of the sums of bins
LEAST = 0.5  # of the variance that the judged event rate implies: a bin whose rows happen to agree is not noiseless


@dataclass(frozen=True)
class Bins:
    """Sums in each bin that holds rows."""

    # Shape (bins, 6): rows, weight, weight of events, weighted scores, squared weighted residuals, squared weights.
    sums: Floats
    requested: int  # bins asked for; fewer may hold rows
    edges: Floats | None = None  # inner edges between the bins asked for; None for equal width
    # What each cluster adds to each bin, where rows of one cluster may depend on one another.
    clusters: Independent = BY_ROWS

    @classmethod
    def of(cls, p: Floats, y: ArrayLike, count: Floats | None, weight: Floats | None, bins: int, strategy: str) -> Bins:
        """Bin points; `count` and `weight` may be None."""
        each = [v for v in (count, weight) if v is not None]
        edges = (
            None if strategy == "uniform" else equal_mass_edges(p, reduce(np.multiply, each) if each else None, bins)
        )
        sums = bin_sums(p, y, count, weight, edges, bins if edges is None else len(edges) + 1)
        return cls(sums[sums[:, ROWS] > 0], bins, edges)

    def cell(self, p: Floats) -> Places:
        """The bin of each of the scores that were binned."""
        if self.edges is None:
            at = np.minimum((p * self.requested).astype(np.intp), self.requested - 1)
        else:
            at = np.searchsorted(self.edges, p, "right")
        return np.unique(at, return_inverse=True)[1]

    @property
    def used(self) -> int:
        """Bins that hold rows."""
        return len(self.sums)

    @cached_property
    def share(self) -> Floats:
        """Share of the weight in each bin."""
        return self.sums[:, WEIGHT] / self.sums[:, WEIGHT].sum()

    @cached_property
    def gap(self) -> Floats:
        """Weighted mean residual ``y - p`` over the bin's share: adds up to the overall mean residual."""
        return (self.sums[:, EVENTS] - self.sums[:, SCORES]) / self.sums[:, WEIGHT].sum()

    @cached_property
    def effective(self) -> float:
        """Kish's effective number of rows; the number of rows if all weigh the same."""
        return float(self.sums[:, WEIGHT].sum() ** 2 / self.sums[:, WEIGHT2].sum())

    @cached_property
    def kish(self) -> Floats:
        """Effective rows in each bin."""
        return self.sums[:, WEIGHT] ** 2 / self.sums[:, WEIGHT2]

    @cached_property
    def noise_rate(self) -> Floats:
        """Event rate per bin by which label noise is judged: never 0 or 1, whatever the outcomes.

        Each bin's rate is shrunk towards what the scores, made to agree with the overall rate, lead one to expect; the
        expectation counts as many rows as hold one event and one non-event, and at most as many as the bin. Then all
        rates are raised until events, and non-events, are overall as frequent as with two more of each (Agresti & Coull
        1998).
        """
        rows, events, scores = (self.sums[:, k] * self.scale for k in (WEIGHT, EVENTS, SCORES))
        # (1) What the scores lead one to expect: their odds, times what takes the overall odds to those seen.
        half, n, k = 0.5 * rows / rows.sum(), rows.sum(), events.sum()
        yes = (k + 0.5) * (scores + half) / (scores.sum() + 0.5)
        no = (n - k + 0.5) * (rows - scores + half) / (n - scores.sum() + 0.5)
        expected = yes / (yes + no)
        # (2) Each bin's rate, with the expectation as a prior of at most as many rows.
        prior = np.minimum(1.0 / (expected * (1.0 - expected)), self.kish)
        rate = (self.kish * events / rows + prior * expected) / (self.kish + prior)
        # (3) At least as many events, and as many non-events, as with two more of each.
        few = min((k + 2) / (n + 4) * n / float(rows @ rate), 0.5 / float(rate.max()))
        rate = rate * few if few > 1 else rate
        lack = (n - k + 2) / (n + 4) * n / float(rows @ (1 - rate))
        return 1 - (1 - rate) * min(lack, max(0.5 / float((1 - rate).max()), 1.0)) if lack > 1 else rate

    @cached_property
    def scale(self) -> float:
        """Effective rows per cluster of weight."""
        return self.effective / float(self.sums[:, WEIGHT].sum())

    @cached_property
    def second_moment(self) -> Floats:
        """Second moment of ``1_bin (y - p)``, per effective row, with label noise at `noise_rate`."""
        rate, total = self.sums[:, EVENTS] / self.sums[:, WEIGHT], self.sums[:, WEIGHT].sum()
        change = self.noise_rate * (1 - self.noise_rate) - rate * (1 - rate)
        least = self.share * self.noise_rate * (1 - self.noise_rate) * LEAST
        return np.maximum(self.effective * (self.sums[:, SQUARES] + change * self.sums[:, WEIGHT2]) / total**2, least)

    def shocks(self, draws: int, rng: np.random.Generator) -> Floats:
        """Draw binomial label noise of mean 0 and variance 1 per bin, shape (draws, bins)."""
        rows, rate = np.maximum(np.rint(self.kish), 1.0), self.noise_rate
        counts = rng.binomial(rows.astype(np.int64), rate, (draws, self.used))
        return (counts - rows * rate) / np.sqrt(rows * rate * (1 - rate))

    def gap_noise(self, draws: int, rng: np.random.Generator) -> Floats:
        """Simulate the noise of `gap`, shape (draws, bins)."""
        alone = noise(self.second_moment, self.gap, self.effective, self.shocks(draws, rng))
        return self.clusters.noisier(alone, lambda clusters: clusters.gap_noise(draws, rng))

    def mean_noise(self, draws: int, rng: np.random.Generator) -> Floats:
        """Simulate the noise of each bin's own mean residual ``gap / share``, shape (draws, bins)."""
        mean = self.gap / self.share
        least = LEAST * self.noise_rate * (1 - self.noise_rate)
        spread = np.maximum(self.second_moment / self.share - mean**2, least) / self.share
        alone = noise(spread, np.zeros(self.used), self.effective, self.shocks(draws, rng))
        return self.clusters.noisier(alone, lambda clusters: clusters.mean_noise(draws, rng))


# ---- Cells along one variable: sums of outcomes and scores from which errors along it are read ----

View = Literal["probability", "confidence"]
Strategy = Literal["quantile", "uniform"]  # of bins, in scikit-learn's words
MISSING = "missing"
UNSPACED = 10_000  # numbers below, years among them, are written without a comma between thousands
SUMS = ("rows", "weight", "weight2", "events", "score", "noise", "resid2")


@dataclass(frozen=True)
class Strata:
    """Sums in cells along one variable that hold rows.

    The confidence view counts right answers: its outcome is "the more probable class (1 from p = 0.5) is right", its
    score the probability of that class. Its residual is that of the probability view, with the sign turned where p <
    0.5.
    """

    name: str
    # Names of a category's cells; None for a number or a date, whose cells are in increasing order.
    labels: tuple[str, ...] | None
    # `x`, `low` and `high`, shape (c,): mean, smallest and largest value in the user's units (days since 1970 for a
    # date); of categories the index. NaN for the cell of missing values.
    x: Floats
    low: Floats
    high: Floats
    # `rows`, `weight` and `weight2`, shape (c,): rows, and sums of their weights and squared weights.
    rows: Floats
    weight: Floats
    weight2: Floats
    # `events` and `score`, shape (c,): weighted sums of outcomes and of scores, of the view.
    events: Floats
    score: Floats
    # `noise` and `resid2`, shape (c,): sums of `w^2 p (1 - p)`, the variance of the residual sum if the model is
    # calibrated, and of `w^2 (y - p)^2`.
    noise: Floats
    resid2: Floats
    missing: bool = False  # the last cell holds the rows without a value
    view: View = "probability"
    date: bool = False

    @property
    def size(self) -> int:
        """Cells, that of missing values included."""
        return len(self.rows)

    @property
    def there(self) -> int:
        """Cells that have a value."""
        return self.size - int(self.missing)

    @property
    def ordered(self) -> bool:
        """The variable is a number or a date."""
        return self.labels is None

    @cached_property
    def n(self) -> int:
        """Rows."""
        return int(self.rows.sum())

    @cached_property
    def total(self) -> float:
        """Sum of the weights; the number of rows if there are none."""
        return float(self.weight.sum())

    @cached_property
    def residual(self) -> Floats:
        """Weighted residual sums ``sum w (y - p)``, shape (c,)."""
        return self.events - self.score

    @cached_property
    def gap(self) -> float:
        """Overall mean residual."""
        return float(self.residual.sum() / self.total)

    @cached_property
    def variance(self) -> Floats:
        """Variance of the residual sums, shape (c,): `noise`, or what is seen about each cell's own mean if more.

        What is seen in a cell, as a multiple of `noise`, is drawn towards the same of all cells, the more the less it
        is known (DerSimonian & Laird 1986): of few rows or events, chance alone would be interpreted as noise.
        """
        seen = self.resid2 - self.weight2 * (self.residual / self.weight) ** 2
        seen = np.maximum(seen * self.rows / np.maximum(self.rows - 1.0, 1.0), 0.0)
        live = self.noise > 0.0
        out = np.maximum(self.noise, seen)
        if live.sum() > 1:
            out[live] = self.noise[live] * np.maximum(self._dispersion(seen[live], live), 1.0)
        return out

    def _dispersion(self, seen: Floats, live: NDArray[np.bool_]) -> Floats:
        """The variance of some cells as a multiple of `noise`, each drawn towards that of all of them."""
        noise, rows = self.noise[live], self.rows[live]
        own, common = seen / noise, float(seen.sum() / noise.sum())
        # (1) How well each is known: (y - p)^2 of a row has variance p (1 - p) (1 - 2 p)^2, and the mean is estimated.
        each = noise / self.weight2[live]
        error = max(common, 1.0) * np.maximum(1.0 - 4.0 * each, 0.0) / (each * rows) + 2.0 / rows**2
        # (2) How much they differ beyond that, from Cochran's Q, and what is kept of each cell's own.
        kept = 1.0 / error
        excess = float(kept @ (own - common) ** 2) - (len(own) - 1.0)
        apart = max(excess, 0.0) / float(kept.sum() - (kept @ kept) / kept.sum())
        result: Floats = common + apart / (apart + error) * (own - common)
        return result

    @cached_property
    def effective(self) -> Floats:
        """Kish's effective rows of each cell."""
        return self.weight**2 / self.weight2

    def present(self) -> Strata:
        """The cells that have a value."""
        return self.taken(np.arange(self.there), missing=False) if self.missing else self

    def taken(self, where: Places, missing: bool) -> Strata:
        """Some of the cells, in the order given."""
        labels = None if self.labels is None else tuple(self.labels[int(i)] for i in where)
        arrays: dict[str, Any] = {k: getattr(self, k)[where] for k in ("x", "low", "high", *SUMS)}
        return replace(self, labels=labels, missing=missing, **arrays)

    def joined(self, group: Places, labels: Sequence[str] | None = None) -> Strata:
        """Cells joined to groups 0, 1, ...; every group has a cell, and the missing cell its own, the last.

        `group` (c,). `labels`: names of the groups, for a category.
        """
        size = int(group.max()) + 1
        sums: dict[str, Any] = {k: summed(group, getattr(self, k), size) for k in SUMS}
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        np.fmin.at(low, group, self.low)
        np.fmax.at(high, group, self.high)
        x = summed(group, self.x * self.rows, size) / sums["rows"]
        if self.missing:
            low[-1] = high[-1] = np.nan
        named = None if self.labels is None else tuple(self.labels if labels is None else labels)
        return replace(self, labels=named, x=x, low=low, high=high, **sums)

    def binned(self, bins: int, method: str = "quantile") -> Strata:
        """At most `bins` bins of a number or date, plus the missing values; a category as it is."""
        return self.joined(self.bin_of(bins, method)) if self.ordered else self

    def bin_of(self, bins: int, method: str = "quantile") -> Places:
        """The bin of each cell, numbered without gaps; labels play no part, and a cell is never split.

        At most `bins` cells keep one each. Else a cell whose weight lies at ranks F to F + m goes to bin ``floor(bins
        (F + m / 2) / total)``; with equal width its mean value decides.
        """
        if not self.ordered or self.there <= bins:
            return np.arange(self.size)
        mass, x = self.weight[: self.there], self.x[: self.there]
        if method == "quantile":
            raw = np.floor(bins * (np.cumsum(mass) - 0.5 * mass) / max(mass.sum(), 1e-300))
        else:
            bottom, top = float(self.low[0]), float(self.high[self.there - 1])
            raw = np.floor(bins * (x - bottom) / max(top - bottom, 1e-300))
        raw = np.maximum.accumulate(np.clip(raw, 0, bins - 1).astype(np.int64))
        result = np.unique(raw, return_inverse=True)[1]
        return np.append(result, result[-1] + 1 if len(result) else 0) if self.missing else result

    def as_bins(self, clusters: Independent = BY_ROWS) -> Bins:
        """The cells in the form that intervals for binned errors read."""
        columns = (self.rows, self.weight, self.events, self.score, self.resid2, self.weight2)
        return Bins(np.stack(columns, axis=1), self.size, clusters=clusters)

    def titles(self) -> tuple[str, ...]:
        """A name for each cell: the level, or the range of values, and "missing"."""
        if self.labels is not None:
            return self.labels
        ends = zip(self.low[: self.there], self.high[: self.there], strict=True)
        named = tuple(self._value(a) if a == b else f"{self._value(a)} to {self._value(b)}" for a, b in ends)
        return (*named, MISSING) if self.missing else named

    def _value(self, v: float) -> str:
        if self.date:
            return str(np.datetime64(int(np.floor(v)), "D"))
        text = f"{v:,.6g}"
        return text if abs(v) >= UNSPACED else text.replace(",", "")


def beyond_gap(gap: Floats, share: Floats) -> Floats:
    """Residual sums over the whole, shape (..., cells), without their overall mean, shared by weight."""
    return gap - share * gap.sum(axis=-1, keepdims=True)


def widened(residual: Floats, cells: Strata, rng: np.random.Generator) -> Floats:
    """Add noise to simulated residual sums over the whole, shape (draws, cells), where more is seen than simulated.

    Outcomes simulated at the scores vary as those of a calibrated model do. Where the model is off, outcomes may vary
    more: error that has nothing to do with a variable must not be found along it.
    """
    more = np.sqrt(cells.variance - cells.noise) / cells.total
    return residual + more * rng.standard_normal(residual.shape)


def matched_residuals(cells: Strata, draws: int, rng: np.random.Generator) -> Floats:
    """Draw residual sums of a calibrated model without rows, shape (draws, cells).

    The outcomes of a cell add up to a sum of Bernoulli variables of unequal rates; a binomial with its mean m and
    variance v, ``m^2 / (m - v)`` rows rounded to a whole number, stands for it. Weights are not provided for.
    """
    mean, spread = cells.score, np.minimum(cells.noise, cells.score)
    rows = np.maximum(np.rint(mean**2 / np.maximum(mean - spread, 1e-12 * mean + 1e-300)), 1.0)
    rows = np.minimum(np.maximum(rows, np.ceil(mean)), 2.0**62)
    return rng.binomial(rows.astype(np.int64), np.minimum(mean / rows, 1.0), (draws, cells.size)) - mean


def quantile_cells(values: Floats, bins: int) -> NDArray[np.int32]:
    """The cell of each value among quantile bins closed on the right, duplicate edges dropped, as published.

    Edges are linearly interpolated quantiles; the first bin holds the smallest value. Cells are numbered without gaps.
    """
    edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, bins + 1)))
    raw = np.maximum(np.searchsorted(edges, values, side="left") - 1, 0)
    return np.unique(raw, return_inverse=True)[1].astype(np.int32)
