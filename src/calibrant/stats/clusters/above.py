"""Theorem CU: the calibration error of a score shown in finitely many values, from above, one factor a cluster.

For the true signs ``f*`` of the error in each cell every factor of ``E_x(f*) = prod_g [1 - kappa (f*' t_g - x W_g)]``
has mean one at the true error, and rises with x. The signs are not known, so that what is computed is a lower bound of
the product over all patterns of signs. A sum of known sign, such as how far scores are moved to be shown, is certified
along with the error: ``D_g`` is taken off the price ``x W_g``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import log_curvature
from calibrant.stats.cells import summed
from calibrant.stats.clusters.clusters import Tallies
from calibrant.stats.evidence import SEARCHED, Evidence, log_mean_exp

Floats = NDArray[np.float64]

# ---- How large a quadratic form can be, at most, over all patterns of signs ----

MOST = 256  # signs up to which the relaxation is solved: its cost grows with their square, and of its bound their cube
RANK = 24  # of the vectors that signs are relaxed to: more than the root of twice their number
SWEEPS = 10  # over all vectors: more gained nothing; the bound holds after any number


def largest_root(matrix: Floats) -> float:
    """The largest eigenvalue of a symmetric matrix, at least 0, with more than its rounding error added."""
    from scipy.linalg import eigvalsh

    k = len(matrix)
    if not k:
        return 0.0
    try:
        top = float(eigvalsh(matrix, subset_by_index=[k - 1, k - 1])[0])
    except np.linalg.LinAlgError:  # some builds of LAPACK fail for one root of a matrix of many equal ones: all, then
        top = float(np.linalg.eigvalsh(matrix)[-1])
    return max(top, 0.0) + 1e-13 * k * float(np.abs(matrix).max())


def root_bounds(g: Floats, reach: float) -> float:
    r"""An upper bound of ``f' G f`` over signs f: the least of four.

    With ``D`` the diagonal of G and ``off = G - D``: ``tr G + k lambda_max(off)``;
    ``tr G (1 + lambda_max(D^{-1/2} off D^{-1/2}))``; ``sum |G_cd|``; and `reach`.

    `g` (k, k): positive semidefinite. `reach`: what no pattern of signs exceeds, by the sizes of the clusters.
    """
    diagonal = np.diag(g)
    off, trace = g - np.diag(diagonal), float(diagonal.sum())
    root = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 0.0)  # 0: so is its row
    plain = trace + len(g) * largest_root(off)
    scaled = trace * (1.0 + largest_root(off * root * root[:, None]))
    return min(plain, scaled, float(np.abs(g).sum()), reach)


def relaxed(c: Floats) -> Floats:
    r"""Return d with a small sum and ``diag(d) - C`` nearly positive semidefinite.

    Maximises ``<C, V V'>`` over rows of length one, one row at a time (the mixing method, reference 1); then
    ``d_i = |sum_j C_ij v_j|`` solves its dual. Nothing is relied on: `bounded` holds for every d.

    `c` (k, k): symmetric, with zeros on its diagonal.

    References
    ----------
    .. [1] P.-W. Wang, W.-C. Chang, J. Z. Kolter (2017), "The mixing method", arXiv:1706.00476.
    """
    v = np.random.default_rng(0).normal(size=(len(c), RANK))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    for _ in range(SWEEPS):
        for i, row in enumerate(c):
            toward = row @ v
            length = float(np.sqrt(toward @ toward))
            if length > 0.0:
                v[i] = toward / length
    d: Floats = np.linalg.norm(c @ v, axis=1)
    return d


def bounded(c: Floats, d: Floats) -> float:
    """An upper bound of ``z' C z`` over signs z, whatever d is: ``sum d + k lambda_max(C - diag d)``."""
    return float(d.sum()) + len(c) * largest_root(c - np.diag(d))


# ---- Theorem CU: one factor a cluster ----

Ints = NDArray[np.int64]

LARGEST = 0.95  # kappa M of the largest bet; each of the others is half of the one before
DRAWN = 0x0BE2  # stream of random numbers, apart from those of other methods at the same seed
USUAL = 3.0  # ln(1 / delta) that the smallest bet is chosen for: fixed, so that one evidence serves every delta


def bets(clusters: int, largest: float) -> Floats:
    """The bets for so many clusters of size `largest` at most: numbers that no outcome changes."""
    steps = np.arange(1 + max(int(np.ceil(np.log2(LARGEST * np.sqrt(max(clusters, 1) / (2.0 * USUAL))))), 0))
    return np.asarray(LARGEST * 0.5**steps / largest, dtype=np.float64)


@dataclass(frozen=True)
class Pairs:
    """The certified clusters' sums, by cluster and cell."""

    # `cluster` and `cell`, shape (pairs,): from 0, sorted by cluster.
    cluster: Ints
    cell: Ints
    value: Floats  # shape (pairs,): `t_gc`
    # `reach` and `size`, shape (u,): `R_g = sum_c |t_gc|` and `W_g`.
    reach: Floats
    size: Floats
    cells: int
    # Shape (u,), or (1,): `D_g`, what is certified along with the error; 0 by default.
    moved: Floats = field(default_factory=lambda: np.zeros(1))
    multiplicity: Floats = field(default_factory=lambda: np.ones(1))  # shape (u,), or (1,): units that each stands for

    @classmethod
    def of(cls, tallies: Tallies, moved: Floats | None = None) -> Pairs:
        """Keep the certified clusters; `moved` has ``D_g`` of every cluster, shape (m,)."""
        clusters = tallies.clusters
        number = np.cumsum(clusters.certified) - 1
        own = clusters.certified[tallies.cluster] & (tallies.value != 0.0)
        cluster, value, size = number[tallies.cluster[own]], tallies.value[own], clusters.size[clusters.certified]
        kept, cell = np.unique(tallies.cell[own], return_inverse=True)
        apart = np.zeros(1) if moved is None else moved[clusters.certified]
        return cls(cluster, cell.reshape(-1), value, summed(cluster, np.abs(value), len(size)), size, len(kept), apart)

    def drawn(self, clusters: int, seed: int) -> Pairs:
        """Return so many of the clusters, drawn with replacement, each with a random sign: as of a calibrated score."""
        rng = np.random.default_rng([seed, DRAWN])
        chosen, signs = rng.integers(0, len(self.size), clusters), 2.0 * rng.integers(0, 2, clusters) - 1.0
        starts = np.searchsorted(self.cluster, np.arange(len(self.size) + 1))
        count = np.diff(starts)[chosen]
        cluster = np.repeat(np.arange(clusters), count)
        at = np.arange(len(cluster)) + np.repeat(starts[chosen] - np.cumsum(count) + count, count)
        value = self.value[at] * signs[cluster]
        return Pairs(cluster, self.cell[at], value, self.reach[chosen], self.size[chosen], self.cells)

    @property
    def apart(self) -> bool:
        """Every unit touches one cell at most."""
        return bool((np.diff(self.cluster) > 0).all())


@dataclass(frozen=True)
class Separable:
    r"""``sum_c min over f = +-1 of sum_g (|t_gc| / R_g) ln(1 - kappa (f sgn(t_gc) R_g - x W_g + D_g))``.

    By concavity at most ``ln E_x(f)`` for every pattern f, and equal to the least where each cluster touches one cell.
    """

    pairs: Pairs
    kappa: float

    def at(self, x: float) -> float:
        """Return it at x."""
        q, k = self.pairs, self.kappa
        price = x * q.size - q.moved
        with_it, against = np.log1p(-k * (q.reach - price)), np.log1p(k * (q.reach + price))
        none = q.reach == 0.0
        mean, half = 0.5 * (with_it + against), 0.5 * (with_it - against)
        share = q.value / np.where(none, 1.0, q.reach)[q.cluster]
        by_cell = summed(q.cell, share * half[q.cluster], q.cells)
        return float((q.multiplicity * mean).sum() - np.abs(by_cell).sum())


@dataclass(frozen=True)
class Quadratic:
    r"""``kappa sum V - sum_c |kappa t_c - 2 kappa^2 h_c| - kappa^2 (Q + s2)``, for every f at most ``ln E_x(f)``.

    ``V_g = x W_g - D_g``; ``h = sum psi_g V_g t_g`` and ``s2 = sum psi_g V_g^2`` are polynomials in x. It holds as
    ``ln(1 - b) >= -b - psi(b) b^2`` with psi increasing and ``b <= kappa (R_g + D_g)``. Where `relaxation` was found,
    the linear and the quadratic term are bounded together.
    """

    # `kappa` and `least`: kappa and Q.
    kappa: float
    least: float
    t: Floats  # shape (k,): `sum t_g`
    # `total`, `h` and `s2`, shapes (2,), (k, 2) and (2, 2): `sum v_g`, `sum psi_g t_g v_g'` and `sum psi_g v_g v_g'`,
    # with `v_g = (W_g, D_g)`.
    total: Floats
    h: Floats
    s2: Floats
    g: Floats  # shape (k, k): `sum psi_g t_g t_g'`
    relaxation: Floats | None = None  # shape (k + 1,)

    @classmethod
    def of(cls, q: Pairs, kappa: float) -> Quadratic:
        """Sum what the bound needs."""
        from scipy.sparse import csr_array

        psi = log_curvature(kappa * (q.reach + q.moved))
        at = (q.cluster, q.cell)
        root = csr_array((q.value * np.sqrt(psi)[q.cluster], at), shape=(len(q.size), q.cells))
        g = (root.T @ root).toarray()
        t = summed(q.cell, q.value, q.cells)
        v = np.stack([q.size, np.broadcast_to(q.moved, q.size.shape)])
        h = np.stack([summed(q.cell, q.value * (psi * each)[q.cluster], q.cells) for each in v], axis=1)
        least = root_bounds(g, float((psi * q.reach**2).sum()))
        return cls(kappa, least, t, v.sum(axis=1), h, (psi * v) @ v.T, g)

    def at(self, x: float) -> float:
        """Return it at x."""
        k, price = self.kappa, np.array([x, -1.0])
        fixed = float(k * (price @ self.total) - k**2 * (price @ self.s2 @ price))
        cost = float(np.abs(self._linear(x)).sum()) + k**2 * self.least
        if self.relaxation is not None:
            form = self._form(x)
            cost = min(cost, bounded(form, self.relaxation) + k**2 * float(np.trace(self.g)))
        return fixed - cost

    def relaxed(self, x: float) -> Quadratic:
        """The same with both terms bounded together, best at x."""
        return replace(self, relaxation=relaxed(self._form(x)))

    def _linear(self, x: float) -> Floats:
        """The terms that are linear in f."""
        linear: Floats = self.kappa * self.t - 2.0 * self.kappa**2 * (self.h @ np.array([x, -1.0]))
        return linear

    def _form(self, x: float) -> Floats:
        """Return C with zeros on the diagonal: ``z' C z`` with z = (f, 1) is the cost but for the trace of G."""
        k, n = self.kappa, len(self.t)
        out = np.zeros((n + 1, n + 1))
        out[:n, :n] = k**2 * (self.g - np.diag(np.diag(self.g)))
        out[n, :n] = out[:n, n] = 0.5 * self._linear(x)
        return out


@dataclass(frozen=True)
class Above(Evidence):
    """Evidence against "the error is at least x": the mean over bets of a lower bound of ``E_x(f*)``."""

    # Sequence, one of each bet, of sequences of forms: of each bet the largest counts.
    forms: Sequence[Sequence[Separable | Quadratic]]
    start: float | Sequence[float] = SEARCHED
    stop = 0.0

    @classmethod
    def of(cls, tallies: Tallies, kappas: Floats | None = None) -> Above:
        """Make the forms of each bet; `kappas` times the largest cluster are below 1, and no outcome changes them."""
        q = Pairs.of(tallies)
        return cls.of_pairs(q, bets(len(q.size), tallies.clusters.largest) if kappas is None else kappas)

    @classmethod
    def of_pairs(cls, q: Pairs, kappas: Floats) -> Above:
        """Make the forms of each bet."""
        plain = cls.plain(q, kappas)
        return plain if q.apart or q.cells > MOST else plain.relaxed(plain.usual)

    @classmethod
    def plain(cls, q: Pairs, kappas: Floats) -> Above:
        """Make the forms of each bet, but for the relaxation, which costs most."""
        if q.apart:
            return cls([[Separable(q, k)] for k in kappas.tolist()])
        return cls([(Separable(q, k), Quadratic.of(q, k)) for k in kappas.tolist()])

    def relaxed(self, x: float) -> Above:
        """The same with the terms of up to `MOST` signs bounded together, best at x."""

        def of(form: Separable | Quadratic) -> Separable | Quadratic:
            return form.relaxed(x) if isinstance(form, Quadratic) and len(form.t) <= MOST else form

        return Above([[of(form) for form in forms] for forms in self.forms])

    def at(self, x: float) -> float:
        """The log e-value; of too few clusters to bet on it is that of no bet, which refutes nothing."""
        logs = self.by_bet(x)
        if not logs:
            return 0.0
        return log_mean_exp(logs)

    @property
    def usual(self) -> float:
        """The limit at `USUAL`, about which relaxations are made."""
        return self.limit(float(np.exp(-USUAL)))

    def by_bet(self, x: float) -> list[float]:
        """The log e-value of each bet."""
        return [max(form.at(x) for form in forms) for forms in self.forms]
