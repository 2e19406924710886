"""What probabilities in place of labels say about the people with the event, and how far off that is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calibrant.errors import NotComputable

Quantity = Literal["bias", "inferred", "observed"]
USE = {"bias": (1.0, -1.0), "inferred": (1.0, 0.0), "observed": (0.0, 1.0)}  # of what p says, and of what y says


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
            There are fewer than two, too few for a spread.
        """
        part = self.heft * total
        squares = self.heft**2 * square if self.unit is None else np.bincount(self.unit, part) ** 2
        size = float(part.sum()) ** 2 / float(squares.sum()) if part.any() else 0.0
        if size < 2.0 - 1e-6:
            what = "rows" if self.unit is None else "clusters"
            whole = "is none" if not size else "is one" if size < 1.0 + 1e-6 else ""
            there = whole or f"are effectively {np.floor(100 * size) / 100:g}, for they count unevenly"
            raise NotComputable(f"an interval needs two {what} or more {of}: there {there}")
        return size

    def of(self, kept: Any) -> Sums:
        """Return some of the entries."""
        unit = None if self.unit is None else self.unit[kept]
        rows, score, cases, square, both, heft = (
            v[kept] for v in (self.rows, self.score, self.cases, self.square, self.both, self.heft)
        )
        return Sums(rows, score, cases, square, both, heft, unit)

    def variance(self, a: Any, b: Any, c: Any) -> float:
        """Return the variance, by rows or whole clusters, of a sum whose rows contribute ``w (a p + b y + c)``, mean 0."""
        if self.unit is not None:
            total = np.bincount(self.unit, self.heft * (a * self.score + b * self.cases + c * self.rows))
            return float((total**2).sum())
        squares = a**2 * self.square + b**2 * self.cases + c**2 * self.rows
        products = a * b * self.both + a * c * self.score + b * c * self.cases
        return max(float((self.heft**2 * (squares + 2.0 * products)).sum()), 0.0)

    def modelled(self) -> Sums:
        """Return the sums expected of independent rows whose outcome has probability ``q = min(rate p, 1)``.

        The rate is that of cases to cases expected. In an entry of many rows the sums of q and of p q are bounded
        alike, as wholes. Where every p is 0 all rows have one q.
        """
        expected, cases = float(self.heft @ self.score), float(self.heft @ self.cases)
        if expected > 0:
            rate = cases / expected
            likely, both = np.minimum(rate * self.score, self.rows), np.minimum(rate * self.square, self.score)
        else:
            likely, both = self.rows * cases / float(self.heft @ self.rows), np.zeros(len(self.rows))
        return replace(self, cases=likely, both=both, unit=None)


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

    A row moves the first by ``w p (x - first) / sum w p``, the second likewise, to first order. The variance is the
    larger of what was seen and of what the model would give about its own means: so outcomes that are absent where few
    are expected do not make it zero.

    Raises
    ------
    NotComputable
        Effectively fewer than two rows or clusters have a case, or a probability above zero.
    """
    weighed = sums.size(sums.score, sums.square, "with a probability above zero")
    size = sums.size(sums.cases, sums.cases, "with the event")
    size = weighed if quantity == "inferred" else size
    expected, cases = float(sums.heft @ sums.score), float(sums.heft @ sums.cases)
    inferred, observed = (float((sums.heft * v) @ x / t) for v, t in ((sums.score, expected), (sums.cases, cases)))
    use = USE[quantity]
    model, zero = sums.modelled(), np.zeros(len(x))
    centre = float((sums.heft * model.cases) @ x / (sums.heft @ model.cases))
    a, b, b_model = use[0] * (x - inferred) / expected, use[1] * (x - observed) / cases, use[1] * (x - centre) / cases
    variance = max(sums.variance(a, b, zero), model.variance(a, b_model, zero)) * size / (size - 1.0)
    value = {"bias": inferred - observed, "inferred": inferred, "observed": observed}[quantity]
    return Inferred(inferred, observed, value, float(np.sqrt(variance)), size - 1.0)


def inferred_gap_of(sums: Sums, group: Any, other: Any, quantity: Quantity) -> Inferred:
    """Return the difference of mean p, of mean y, and of both, between two groups of entries (boolean masks).

    Raises
    ------
    NotComputable
        A group has effectively fewer than two rows or clusters; or outcomes are asked about and all are the same.
    """
    if quantity != "inferred" and not 0.0 < float(sums.cases.sum()) < float(sums.rows.sum()):
        raise NotComputable("an interval for a difference of event rates needs a case and a row without the event")
    use, model, mass = USE[quantity], sums.modelled(), sums.heft * sums.rows
    means, sizes = [], []
    h, c, c_model = (np.zeros(len(mass)) for _ in range(3))
    for mask, sign in ((group, 1.0), (other, -1.0)):
        there = sums.rows * mask
        size = sums.size(there, there, "in each group")
        total = float(mass[mask].sum())
        mean = [float((sums.heft * v)[mask].sum() / total) for v in (sums.score, sums.cases, model.cases)]
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
