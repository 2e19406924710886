"""What probabilities in place of labels say about the people with the event, and how far off that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.errors import NotComputable

Quantity = Literal["bias", "inferred", "observed"]


@dataclass(frozen=True)
class Sums:
    """Sums over entries: single rows, or cells of rows that count alike.

    Parameters
    ----------
    rows, score, cases, square, both : float arrays of shape (m,)
        Rows, and sums over them of p, y, p^2 and p y.
    heft : float array of shape (m,)
        Sampling weight of each row of the entry.
    unit : int array of shape (m,) or None
        Cluster of each entry, 0 to G - 1; then entries are single rows.
    """

    rows: Any
    score: Any
    cases: Any
    square: Any
    both: Any
    heft: Any
    unit: Any = None

    @property
    def clusters(self) -> int:
        """Clusters that have an entry; 0 for independent rows."""
        return 0 if self.unit is None else len(np.unique(self.unit))

    def size(self, total: Any, square: Any, of: str) -> float:
        """Return Kish's effective number of rows, or clusters, from sums of a quantity and of its square per entry.

        Raises
        ------
        NotComputable
            There is one at most, which has no spread.
        """
        part = self.heft * total
        squares = self.heft**2 * square if self.unit is None else np.bincount(self.unit, part) ** 2
        size = float(part.sum()) ** 2 / float(squares.sum()) if part.any() else 0.0
        if size < 1.0 + 1e-9:
            what = "rows" if self.unit is None else "clusters"
            raise NotComputable(f"an interval needs two {what} or more {of}: there is {'one' if size else 'none'}")
        return size

    def of(self, kept: Any) -> Sums:
        """Return some of the entries."""
        unit = None if self.unit is None else self.unit[kept]
        rows, score, cases, square, both, heft = (
            v[kept] for v in (self.rows, self.score, self.cases, self.square, self.both, self.heft)
        )
        return Sums(rows, score, cases, square, both, heft, unit)

    def variance(self, a: Any, b: Any, c: Any, rate: float) -> float:
        r"""Return the variance of a sum whose rows contribute ``w (a p + b y + c)``, centred at 0.

        The larger of what was seen, by rows or whole clusters, and what it would be if the outcome came up with
        probability ``rate p``: so outcomes that are absent where few are expected do not make it zero.
        """
        seen = a**2 * self.square + b**2 * self.cases + c**2 * self.rows
        seen = seen + 2 * (a * b * self.both + a * c * self.score + b * c * self.cases)
        g = a + b * rate
        drift = g**2 * self.square + 2 * g * c * self.score + c**2 * self.rows
        chance = np.maximum(rate * self.score - rate**2 * self.square, 0.0)
        model = float((self.heft**2 * (drift + b**2 * chance)).sum())
        if self.unit is None:
            return max(float((self.heft**2 * seen).sum()), model)
        total = np.bincount(self.unit, self.heft * (a * self.score + b * self.cases + c * self.rows))
        return max(float((total**2).sum()), model)


@dataclass(frozen=True)
class Inferred:
    """The three values, and the standard error and degrees of freedom of the one asked for."""

    inferred: float
    observed: float
    value: float
    error: float
    freedom: float

    def ends(self, alpha: float, span: tuple[float, float]) -> tuple[float, float]:
        """Return the ends of a Wald interval with Student's t, kept within `span`."""
        from scipy.special import stdtrit

        half = float(-stdtrit(self.freedom, alpha / 2)) * self.error
        return max(self.value - half, span[0]), min(self.value + half, span[1])


def inferred_mean_of(sums: Sums, x: Any, quantity: Quantity) -> Inferred:
    """Return ``sum w p x / sum w p``, ``sum w y x / sum w y`` and their difference, by the delta method.

    A row moves the first by ``w p (x - first) / sum w p``, the second likewise, to first order.

    Raises
    ------
    NotComputable
        Fewer than two rows or clusters have a case, or a probability above zero.
    """
    likely = sums.size(sums.score, sums.square, "with a probability above zero")
    size = sums.size(sums.cases, sums.cases, "with the event")
    size = likely if quantity == "inferred" else size
    expected, cases = float(sums.heft @ sums.score), float(sums.heft @ sums.cases)
    inferred, observed = (float((sums.heft * v) @ x / t) for v, t in ((sums.score, expected), (sums.cases, cases)))
    zero = np.zeros(len(x))
    a, b = (x - inferred) / expected, (x - observed) / cases
    terms = {"bias": (a, -b), "inferred": (a, zero), "observed": (zero, b)}[quantity]
    variance = sums.variance(*terms, zero, cases / expected) * size / (size - 1.0)
    value = {"bias": inferred - observed, "inferred": inferred, "observed": observed}[quantity]
    return Inferred(inferred, observed, value, float(np.sqrt(max(variance, 0.0))), size - 1.0)


def inferred_gap_of(sums: Sums, group: Any, other: Any, quantity: Quantity) -> Inferred:
    """Return the difference of mean p, of mean y, and of both, between two groups of entries (boolean masks).

    Raises
    ------
    NotComputable
        A group has fewer than two rows or clusters.
    """
    mass = sums.heft * sums.rows
    expected, cases = float(sums.heft @ sums.score), float(sums.heft @ sums.cases)
    use = {"bias": (1.0, -1.0), "inferred": (1.0, 0.0), "observed": (0.0, 1.0)}[quantity]
    means, sizes = [], []
    h, c = np.zeros(len(mass)), np.zeros(len(mass))
    for mask, sign in ((group, 1.0), (other, -1.0)):
        there = sums.rows * mask
        size = sums.size(there, there, "in each group")
        total = float(mass[mask].sum())
        mean = [float((sums.heft * v)[mask].sum() / total) for v in (sums.score, sums.cases)]
        grown = float(np.sqrt(size / (size - 1.0)))
        h[mask] = sign * grown / total
        c[mask] = -sign * grown / total * (use[0] * mean[0] + use[1] * mean[1])
        means.append(mean)
        sizes.append(size)
    rate = cases / expected if expected > 0 else 0.0
    variance, size = sums.variance(use[0] * h, use[1] * h, c, rate), min(sizes)
    inferred, observed = (means[0][k] - means[1][k] for k in (0, 1))
    value = {"bias": inferred - observed, "inferred": inferred, "observed": observed}[quantity]
    return Inferred(inferred, observed, value, float(np.sqrt(max(variance, 0.0))), size - 1.0)
