"""Certificates of calibration error from score cells: upper, lower, distance, bounded variation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.errors import BadInput
from calibrant.stats.betting import gammas, solve_lower, solve_upper
from calibrant.stats.cells import SCALE, Cells, log_growth

# ---- Upper bounds on the L1 calibration error of a score shown in finitely many values (theory 1.1 and 1.4) ----
# A level shows the value ``s`` to ``n`` rows of which ``k`` are cases; ``CE = sum_s P(s) |s - e(s)|`` with ``e(s)``
# the event rate at the level. Nothing is assumed but independent rows from one distribution.

SLACK = 1e-9  # added to every notch constant, and a millionth of it per row: above the rounding error of its search


def bernstein_upper(s: Any, n: Any, k: Any, delta: float) -> float:
    r"""Theorem 1, the readable reference: plug-in plus Bernstein, ``delta`` split 0.8 to 0.2.

    ``CE <= F + sqrt(2 v L1 / N) + L1 / (3 N)`` with ``F = sum_s |n s - k| / N``, ``w`` the mean squared residual
    and ``v = (sqrt(L2 / 2N) + sqrt(w + L2 / 2N))^2``, an upper confidence bound on its expectation.
    """
    rows = float(np.sum(n))
    plug_in = float(np.abs(n * s - k).sum()) / rows
    moment = float((k * (1.0 - s) ** 2 + (n - k) * s**2).sum()) / rows
    return bernstein(plug_in, moment, rows, delta)


def bernstein(plug_in: float, moment: float, rows: float, delta: float) -> float:
    """Theorem 1's bound from its plug-in F and empirical second moment w, for either display."""
    l1, l2 = -np.log(0.8 * delta), -np.log(0.2 * delta)
    v = min(1.0, (np.sqrt(l2 / (2 * rows)) + np.sqrt(moment + l2 / (2 * rows))) ** 2)
    return float(min(1.0, plug_in + np.sqrt(2 * v * l1 / rows) + l1 / (3 * rows)))


def product_upper(s: Any, n: Any, k: Any, delta: float) -> float:
    r"""Theorem U with the notch: solve an average of eight products of e-values.

    For each of four bets ``gamma`` one product uses the linear form in every level, another the form, linear or
    notch, whose expected cost in a calibrated model, a function of ``n`` and ``s`` alone, is smaller.
    """
    s, n, k = (np.asarray(v, dtype=float)[np.asarray(n) > 0] for v in (s, n, k))
    rows = int(n.sum())
    bets = gammas(rows)
    phi = []
    for gamma in bets:
        linear = linear_cost(s, n, k, gamma)
        notch, better = notch_cost(s, n, k, gamma)
        phi += [linear.sum(), np.where(better, notch, linear).sum()]
    return solve_upper(np.array(phi), np.repeat(bets, 2), np.full(8, 1 / 8), rows, delta)


def linear_cost(s: Any, n: Any, k: Any, gamma: float) -> Any:
    """Return ``-ln q`` of Theorem U's linear form, per level."""
    over = k * np.log1p(-gamma * (1 - s)) + (n - k) * np.log1p(gamma * s)
    under = k * np.log1p(gamma * (1 - s)) + (n - k) * np.log1p(-gamma * s)
    return -np.minimum(over, under)


def notch_cost(s: Any, n: Any, k: Any, gamma: float) -> tuple[Any, Any]:
    """Return ``-ln q`` of the notch form, per level, and where it is expected to be the cheaper.

    Levels 0 and 1 have no notch (their null variance is zero); there the cost is infinite.
    """
    cost, better = np.full(len(s), np.inf), np.zeros(len(s), dtype=bool)
    inner = (s > 0) & (s < 1)
    if not inner.any():
        return cost, better
    t, m, hits = s[inner], n[inner], k[inner]
    variance = m * t * (1 - t)
    a = notch_width(gamma * np.sqrt(variance))
    alpha = a / variance
    normaliser = notch_normaliser(t, m, gamma, alpha)
    cost[inner] = 0.5 * alpha * (hits - m * t) ** 2 + normaliser
    better[inner] = 0.5 * a + normaliser < expected_linear_cost(t, m, gamma)
    return cost, better


def notch_width(g: Any) -> Any:
    """Return the a that minimises ``a/2 - ln(1 + a)/2 + g^2 (1 + a) / (2 a)``: the root of ``a^3 = g^2 (1 + a)``."""
    a = np.maximum(1.2 * g, g ** (2.0 / 3.0))
    for _ in range(7):  # Newton from above converges quadratically; any a > 0 keeps the certificate valid
        a = a - (a**3 - g**2 * (1 + a)) / (3 * a**2 - g**2)
    return a


def notch_normaliser(s: Any, n: Any, gamma: float, alpha: Any) -> Any:
    r"""Return ``N = max_e [ln E exp(-alpha (k - n s)^2 / 2) - n ln(1 - gamma |e - s|)]``, ``k ~ Binomial(n, e)``.

    On each side of s the change of variable ``e' = e (1 - gamma (1 - s)) / (1 - gamma (e - s))`` turns the
    objective into a binomial mean of a Gaussian in k about a shifted centre: a Bernstein polynomial of a
    log-concave sequence, hence unimodal, whose peak `kernels.notch_peaks` finds. The search ignores that e
    stops at s, which can only raise N.
    """
    from calibrant.kernels.notch import notch_peaks

    sides = []
    for sign in (1.0, -1.0):
        up, down = np.log1p(-sign * gamma * (1 - s)), np.log1p(sign * gamma * s)
        shift = (down - up) / alpha
        constant = -n * down + 0.5 * alpha * shift * (2 * n * s + shift)
        sides.append(constant + notch_peaks(n, n * s + shift, alpha))
    return np.maximum(*sides) + SLACK * (1.0 + 1e-6 * n)


def expected_linear_cost(s: Any, n: Any, gamma: float) -> Any:
    """Return the linear form's mean cost under calibration, with k normal: a guide for choosing, not a bound."""
    from scipy.special import ndtr

    a = s * np.log1p(-gamma * (1 - s)) + (1 - s) * np.log1p(gamma * s)
    b = s * np.log1p(gamma * (1 - s)) + (1 - s) * np.log1p(-gamma * s)
    slope = np.log1p(-gamma * (1 - s)) - np.log1p(gamma * s) - np.log1p(gamma * (1 - s)) + np.log1p(-gamma * s)
    mean, sd = n * (a - b), np.abs(slope) * np.sqrt(n * s * (1 - s))
    z = mean / np.maximum(sd, 1e-300)
    absolute = sd * np.sqrt(2 / np.pi) * np.exp(-0.5 * z * z) + mean * (2 * ndtr(z) - 1)
    return -0.5 * n * (a + b) + 0.5 * absolute


def debiased_error(s: Any, n: Any, k: Any) -> float:
    r"""Return ``sum_s sqrt(max(0, (n s - k)^2 - n s (1 - s))) / N``: the plug-in without its calibrated noise."""
    square = (n * s - k) ** 2 - n * s * (1 - s)
    return float(np.sqrt(np.maximum(square, 0.0)).sum() / np.sum(n))


# ---- Theorem L: lower confidence bounds on calibration error by betting on learnt signs (theory 1.4) ----
# For any ``|f| <= 1`` chosen before a block is read and any ``kappa in (0, 1)``, a row of the block satisfies
# ``E[1 + kappa f(p)(Y - p) | past] <= 1 + kappa CE``. So the product over rows, divided by
# ``(1 + kappa CE)^n``, is a test supermartingale started at one: whoever could win much more than the error
# allows has shown that the error is larger.

BINS = 10
DEALS = 4
GRID = (2.0, 4.0, 8.0, 16.0)  # kappa * sqrt(n) of the forward recursion
LARGEST = 0.9
SWITCH = 0.1  # prior chance that the sign changes from one bin to the next
Wager = tuple[float, Any, Any]  # log wealth at zero error, stakes per block, rows per block
Learn = Callable[[Any], tuple[Any, float]]  # past blocks -> signal, its mean square winnings per row
Grow = Callable[[int, Any], float]  # block, stake times signal -> log wealth gained


def lower_bound(cells: Cells, delta: float, seed: int = 0) -> float:
    """Return a lower bound on ``E|p - E[Y|p]|`` that fails with probability at most `delta`.

    Half of the evidence comes from `DEALS` random orders of the blocks, in which signs are learnt on earlier
    blocks and bet on later ones; half from a forward recursion over all rows that learns nothing.
    """
    cells = cells.thinned()
    where = cells.occupied()

    def learner(order: Any) -> Learn:
        bins = cells.equal_mass(BINS, order[:1])
        return lambda past: _learn_signs(cells, past, bins, where)

    def grow(block: int, tilt: Any) -> float:
        return float(log_growth(cells, block, tilt, where).sum())

    wagers = [wager(cells.block_rows, order, delta, learner(order), grow) for order in deals(cells.blocks, seed)]
    wagers += [_forward(cells, stake) for stake in GRID]
    return solve(wagers, np.repeat([0.5 / DEALS, 0.5 / len(GRID)], [DEALS, len(GRID)]), delta)


def deals(blocks: int, seed: int) -> list[Any]:
    """Random orders of the blocks; each starts with a different block while there are enough."""
    if blocks < 2:
        raise BadInput(
            "a lower bound learns on some rows and is judged on others, and rows without identity cannot be dealt: "
            "pass key= (columns that identify a row) when sketching"
        )
    rng = np.random.default_rng([seed, 0xCA11])
    base = rng.permutation(blocks)
    return [np.concatenate(([base[i % blocks]], rng.permutation(np.delete(base, i % blocks)))) for i in range(DEALS)]


def wager(block_rows: Any, order: Any, delta: float, learn: Learn, grow: Grow) -> Wager:
    """Bet on each block of an order but the first, with a signal learnt on the blocks before it."""
    rows = block_rows[order[1:]]
    log_wealth, stakes = 0.0, np.zeros(len(rows))
    for i, block in enumerate(order[1:]):
        signal, moment = learn(order[: i + 1])
        stakes[i] = min(np.sqrt(2.0 * -np.log(delta) / max(rows.sum() * moment, 1e-12)), LARGEST)
        log_wealth += grow(int(block), stakes[i] * signal)
    return log_wealth, stakes, rows


def solve(wagers: list[Wager], weights: Any, delta: float) -> float:
    """Average the wagers' e-values and return the error at which they reach ``1 / delta``."""
    width = max(len(stakes) for _, stakes, _ in wagers)
    stakes = np.array([np.pad(k, (0, width - len(k))) for _, k, _ in wagers])
    rows = np.array([np.pad(r, (0, width - len(r))) for _, _, r in wagers])
    return solve_lower(np.array([w for w, _, _ in wagers]), stakes, rows, weights, delta)


def _learn_signs(cells: Cells, past: Any, bins: Any, where: Any) -> tuple[Any, float]:
    """Soft signs ``2 Phi(z) - 1`` of the standardised residual, per occupied cell, and their mean square winnings."""
    from scipy.special import ndtr

    residual, variance = (np.bincount(bins, v[past].sum(axis=0), BINS) for v in (cells.residuals, cells.variances))
    signal = 2.0 * ndtr(residual / np.sqrt(variance + 0.25)) - 1.0
    moment = float((signal**2 * variance).sum()) / max(int(cells.block_rows[past].sum()), 1)
    return signal[bins[where]], moment


def _forward(cells: Cells, stake: float) -> Wager:
    """Average, over paths of signs in {-1, 0, 1} along the score, of the wealth over all rows.

    The signs follow a Markov chain with uniform start that keeps its state with probability ``1 - SWITCH``;
    the forward algorithm adds up all ``3^10`` paths. Signs and stake are fixed given the scores alone.
    """
    kappa = min(stake / np.sqrt(max(cells.n, 1)), LARGEST)
    bins, where = cells.equal_mass(BINS), cells.occupied()
    log_wealth = np.zeros((BINS, 3))
    for column, sign in ((0, -1.0), (2, 1.0)):
        gain = log_growth(cells, None, np.full(len(where), sign * kappa), where)
        log_wealth[:, column] = np.bincount(bins[where], gain, BINS)
    step = np.full((3, 3), SWITCH / 2.0) + np.eye(3) * (1.0 - 1.5 * SWITCH)
    state, total = np.full(3, 1.0 / 3.0), 0.0
    for b in range(BINS):
        top = log_wealth[b].max()
        state = (state @ step if b else state) * np.exp(log_wealth[b] - top)
        total += top + float(np.log(state.sum()))
        state = state / state.sum()
    return total, np.array([kappa]), np.array([cells.n])


# ---- Bounds on the distance from calibration, which need no assumption and no change to the classifier ----
# The (lower) distance is the least ``E|p - u|`` over calibrated ``u`` on the same space enlarged by independent
# noise (Blasiok, Gopalan, Hu, Nakkiran, STOC 2023).


# ---- Theorem 3: an upper bound on the raw L1 calibration error when the event rate has bounded variation ----
# Scores are cut into runs of whole sketch cells, intervals of the score, so ties are never split. Within a run
# the mean absolute deviation of ``eta`` from its mean is at most half its oscillation, and oscillations over
# disjoint intervals add up to at most V.

SHARES = (0.9, 0.1)  # of delta: the sum over rows, and the step from sample to population


def variation_upper(cells: Cells, variation: float, delta: float, single: Any) -> tuple[float, int]:
    """Return the bound and the run length it used.

    Parameters
    ----------
    cells : Cells
    variation : float
        V, an upper bound on the total variation of ``E[Y|p]``.
    delta : float
    single : bool array of shape (cells,)
        Cells whose rows all share one score; they have no oscillation.
    """
    n = cells.n
    best = 0.5 * np.log2(0.4 * n / max(variation, 1e-9)) * (4.0 / 3.0)
    targets = sorted({int(np.clip(2.0 ** np.round(best + j), 1, n)) for j in (-1.0, 0.0, 1.0)})
    l1, l2 = -np.log(SHARES[0] * delta / len(targets)), -np.log(SHARES[1] * delta)
    bounds = []
    for m in targets:
        plug_in, longest = _plug_in(cells, m, single)
        sample = plug_in + longest * variation / (2 * n) + np.sqrt(l1 / (2 * n))
        bounds.append(float((np.sqrt(l2 / (2 * n)) + np.sqrt(sample + l2 / (2 * n))) ** 2))
    i = int(np.argmin(bounds))
    return min(bounds[i], 1.0), targets[i]


def _runs(rows: Any, m: int) -> Any:
    """Assign consecutive cells to runs that close as soon as another cell would take them over `m` rows."""
    out, run, held = np.empty(len(rows), dtype=np.int64), 0, 0
    for i, r in enumerate(rows):
        if held and held + r > m:
            run, held = run + 1, 0
        out[i] = run
        held += int(r)
    return out


def _plug_in(cells: Cells, m: int, single: Any) -> tuple[float, float]:
    """Upper bound on ``sum |run mean - p| / n``, and the largest run that is not a single score."""
    where = cells.occupied()
    counts = cells.totals[where].sum(axis=1)
    cases = cells.totals[where, 1]
    score = cells.sums[:, where].sum(axis=(0, 2)) / SCALE
    run = _runs(counts, m)
    size = np.bincount(run, counts)
    mean = (np.bincount(run, cases) / size)[run]
    low, high = cells.low[where], cells.high[where]
    inside = (low < mean) & (mean < high)
    share = np.clip((score / counts - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0)
    chord = counts * ((1 - share) * np.abs(mean - low) + share * np.abs(mean - high))
    total = np.where(inside, chord, np.abs(counts * mean - score)).sum()
    spread = (np.bincount(run, counts > 0) > 1) | (np.bincount(run, ~single[where]) > 0)
    return float(total / cells.n), float(size[spread].max(initial=0.0))
