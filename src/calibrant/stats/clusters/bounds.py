r"""The calibration error of clusters from above (Theorem CU) and below (Theorem CL), and the gap from both sides.

Each cluster gives one factor. Theorem CU, of a score shown in finitely many values: for the true signs ``f*`` of the
error in each cell every factor of ``E_x(f*) = prod_g [1 - kappa (f*' t_g - x W_g)]`` has mean one at the true error,
and rises with x. The signs are not known, so that what is computed is a lower bound of the product over all patterns
of signs. A sum of known sign, such as how far scores are moved to be shown, is certified along with the error: ``D_g``
is taken off the price ``x W_g``.

Theorem CL: for a witness ``|f| <= 1`` and a bet kappa, both learnt on earlier clusters, a cluster has ``E[1 + kappa
(sum w f (y - p) - x W) | past] <= 1`` wherever the error is at most x; the factor is positive as long as ``kappa M (1 +
x) < 1``, whatever its rows have to do with each other. So a bet is cut to ``.95 / (M (1 + x))``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import BLOCK_ORDERS, MOST_LOST, SOFT, log_curvature, sized
from calibrant.stats.cells import summed
from calibrant.stats.clusters.clusters import BLOCKS, Clusters, Tallies
from calibrant.stats.evidence import SEARCHED, Evidence, Gap, log_mean_exp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

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
    r"""Find d with a small sum and ``diag(d) - C`` nearly positive semidefinite.

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
        """So many of the clusters, drawn with replacement, each with a random sign: as of a calibrated score."""
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
        """The bound at x."""
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
        """The bound at x."""
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
        """C with zeros on the diagonal: ``z' C z`` with z = (f, 1) is the cost but for the trace of G."""
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


# ---- Theorem CL, and the gap from both sides ----

BINS = 10  # along the score, edges from pilot clusters
ORDERS = 0x0BE1  # stream of random numbers, apart from those of other methods at the same seed
GAP = 0.5  # of the evidence is bet on a plain shift, as of independent rows
# Bets on a constant witness: multiples of the best for what earlier clusters showed, and shares of the evidence.
MULTIPLES = (0.5, 1.0, 2.0)
SHARES = (0.1, 0.8, 0.1)


@dataclass(frozen=True)
class Bet:
    """One e-value: what a witness wins of each cluster, the bet on it, and its share of the evidence."""

    # Shape (u,), or (k, u): `sum w f (y - p)` of each certified cluster; or of `y - p - m`, for each of k shifts m, of
    # which the worst counts.
    gain: Floats
    bet: Floats  # shape (u,): kappa, or more than a hypothesis allows, which cuts it
    share: float


@dataclass(frozen=True)
class Below(Evidence):
    """Evidence against "the error is at most x": ``sum_j share_j prod_g (1 + kappa_jg (gain_jg - x W_g))``."""

    wagers: Sequence[Bet]
    size: Floats  # shape (u,): `W_g`
    largest: float  # M
    # `room` cuts the bets: no number that outcomes change. `reach` is what no residual exceeds: 1, or more where a
    # shift is taken off that outcomes chose. A bet that could lose too much at a reach above `room` counts nothing.
    room: float = 1.0
    reach: float = 1.0

    def at(self, x: float) -> float:
        """The log e-value, which falls with x; no bet is larger than is safe at x."""
        logs = [self._log(bet, x) for bet in self.wagers]
        return log_mean_exp(logs, np.array([w.share for w in self.wagers]))

    def _log(self, bet: Bet, x: float) -> float:
        kappa = sized(bet.bet * self.largest, x, most=self.room) / self.largest
        lost = float(kappa.max(initial=0.0)) * self.largest * (self.reach + x)
        if self.reach > self.room and lost > MOST_LOST:
            return -np.inf
        return float(np.log1p(kappa * (bet.gain - x * self.size)).sum(axis=-1).min())


@dataclass(frozen=True)
class GapBets:
    """Evidence about the weighted mean residual: ``prod_g (1 + kappa_g (t_g - m W_g))`` has mean one at the true m."""

    # `gain` and `size`, shape (u,): `t_g = sum w (y - p)` and `W_g` of each certified cluster.
    gain: Floats
    size: Floats
    bets: Floats  # shape (j, u): kappa of each of several bets, or more than a hypothesis allows, which cuts it
    largest: float  # M

    def at(self, mean: float, side: float) -> float:
        """The log e-value against "the gap is at most `mean`" (`side` 1), or at least (-1)."""
        away = side * (self.gain - mean * self.size)
        bets = sized(self.bets * self.largest, mean, side) / self.largest
        return log_mean_exp(np.log1p(bets * away).sum(axis=1), np.array(SHARES))


def gap_of(clusters: Clusters, delta: float, gain: Floats | None = None) -> Gap:
    """Bet on the gap of clusters, with bets that are the best at `delta`.

    `gain` has the clusters' sums, shape (m,): of ``w (y - p)`` by default.
    """
    own = clusters.certified
    gain = residuals(clusters) if gain is None else gain
    order = np.arange(1, BLOCKS + 1)
    bets = np.outer(MULTIPLES, _bets(clusters, gain, order, delta)[own])
    return Gap.of(GapBets(gain[own], clusters.size[own], bets, clusters.largest).at)


def below_of(tallies: Tallies, delta: float, seed: int, few: bool, bins: Ints | None = None) -> Below:
    """Bet that the error is larger, with bets that are the best at `delta`.

    `GAP` of the evidence is bet on a plain shift either way, whose witness is constant; the rest in equal parts on
    signs learnt on earlier blocks of clusters, in `BLOCK_ORDERS` random orders of the blocks after the pilot clusters.

    `seed`: orders the blocks. `few`: the cells are the values that the score takes: each has its own sign in the first
    order. `bins`: of cells that share a sign; runs of them by default.
    """
    clusters, own = tallies.clusters, tallies.clusters.certified
    plain = tallies.witnessed(np.ones(tallies.cells))
    orders = orders_of(seed)
    wagers = steady(clusters, plain, orders[0], delta)
    bins = runs_of(tallies) if bins is None else bins
    for i, order in enumerate(orders):
        signs = signs_of(tallies, order, np.arange(tallies.cells) if few and i == 0 else bins)
        gain, bet = learnt(tallies, order, signs, delta)
        wagers.append(Bet(gain[own], bet[own], (1.0 - GAP) / BLOCK_ORDERS))
    return Below(wagers, clusters.size[own], clusters.largest)


def steady(clusters: Clusters, plain: Floats, order: Ints, delta: float) -> list[Bet]:
    """Bet on a plain shift, either way, with `GAP` of the evidence; `plain` has the clusters' sums, shape (m,)."""
    own = clusters.certified
    best = _bets(clusters, plain, order, delta)[own]
    return [
        Bet(sign * plain[own], multiple * best, 0.5 * GAP * share)
        for sign in (1.0, -1.0)
        for multiple, share in zip(MULTIPLES, SHARES, strict=True)
    ]


def residuals(clusters: Clusters) -> Floats:
    """Each cluster's sum of ``w (y - p)``, shape (m,)."""
    return clusters.tallies(np.zeros(len(clusters.p), dtype=np.int64), 1, clusters.p).witnessed(np.ones(1))


def orders_of(seed: int) -> list[Ints]:
    """Random orders of the blocks of certified clusters."""
    rng = np.random.default_rng([seed, ORDERS])
    return [1 + rng.permutation(BLOCKS) for _ in range(BLOCK_ORDERS)]


def best_bet(square: float, clusters: int, certified: int, delta: float) -> float:
    """The bet that is the best on all certified clusters, of the sum of squares that earlier clusters won.

    With winnings of mean mu and mean square v a cluster, ``n (kappa mu - kappa^2 v / 2)`` of n clusters reaches ``ln(1
    / delta)`` from the least mu at this kappa. What is won of every block adds up, so that n counts those bet on too.
    """
    return float(np.sqrt(2.0 * -np.log(delta) * max(clusters, 1) / (max(certified, 1) * max(square, 1e-300))))


def _bets(clusters: Clusters, gain: Floats, order: Ints, delta: float) -> Floats:
    """The best bet for each cluster on a constant witness, from squares of ``t - r W`` of earlier clusters, shape (m,).

    r is the mean residual of these clusters; a cluster of independent rows at one half comes on top, as heavy as
    earlier ones are on average: of no cluster is anything known before it is bet on, its rows' weights neither.
    """
    bets, certified = np.zeros(clusters.count), int(np.count_nonzero(clusters.certified))
    for here, past in clusters.ahead(order):
        g, size = gain[past], clusters.size[past]
        mean = g.sum() / max(size.sum(), 1e-300)
        soft = float(clusters.squares[past].mean()) if len(g) else clusters.largest**2
        square = float(((g - mean * size) ** 2).sum()) + SOFT * soft
        bets[here] = best_bet(square, len(g) + 1, certified, delta)
    return bets


def runs_of(tallies: Tallies) -> Ints:
    """The bin of each cell: runs of cells of about equally many pairs of pilot clusters."""
    pilot = tallies.cell[~tallies.clusters.certified[tallies.cluster]]
    rows = np.bincount(pilot, minlength=tallies.cells)
    before = np.cumsum(rows) - rows
    raw = np.floor(BINS * (before + 0.5 * rows) / max(rows.sum(), 1)).astype(np.int64)
    return np.minimum(np.maximum.accumulate(raw), BINS - 1)


def signs_of(tallies: Tallies, order: Ints, bins: Ints) -> Floats:
    """Soft signs of cells learnt on the pilot clusters and the first blocks of an order, shape (blocks, cells).

    ``2 Phi(z) - 1`` of the residual over the root of the clusters' sum of squares, so that rows of one cluster are one.
    """
    from scipy.special import ndtr

    joined = tallies.joined(bins)
    past = np.concatenate([[0], order[:-1]])
    residual, square = (np.cumsum(joined.by_block(v)[past], axis=0) for v in (False, True))
    clusters = tallies.clusters
    heavy, rows = (
        np.cumsum(np.bincount(clusters.block, v, BLOCKS + 1)[past])
        for v in (clusters.squares, np.bincount(clusters.cluster))
    )
    soft = SOFT * np.divide(heavy, rows, out=np.ones(len(past)), where=rows > 0)  # of the mean row of earlier clusters
    signs: Floats = 2.0 * ndtr(residual / np.sqrt(square + soft[:, None])) - 1.0
    return signs[:, bins]


def learnt(tallies: Tallies, order: Ints, signs: Floats, delta: float) -> tuple[Floats, Floats]:
    """What each cluster wins by the signs of its block, and the bet on it, shape (m,) each."""
    clusters = tallies.clusters
    gain, bet = np.zeros((2, clusters.count))
    certified = int(np.count_nonzero(clusters.certified))
    for (here, past), f in zip(clusters.ahead(order), signs, strict=True):
        won = tallies.witnessed(f)
        gain[here] = won[here]
        bet[here] = best_bet(float((won[past] ** 2).sum()), int(past.sum()), certified, delta)
    return gain, bet
