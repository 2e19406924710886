"""Certificates from score cells: error of the shown score and of the raw score, the gap, and the distance."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.quadratic_penalty import penalty_peaks
from calibrant.stats.betting import (
    BLOCK_ORDERS,
    FORWARD,
    SCALED,
    SOFT,
    SWITCH,
    Above,
    Below,
    Bet,
    Learn,
    bernstein,
    bet,
    block_orders,
    gammas,
    joined,
    leaning,
    sign_paths,
    sized,
    solve,
    steady,
    steady_bet_sizes,
)
from calibrant.stats.cells import SCALE, Cells, log_growth, summed
from calibrant.stats.evidence import Gap, log_mean_exp
from calibrant.stats.jitter import jittered_upper, mean_displacement

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# ---- The L1 calibration error of a score shown in finitely many values, from above ----
# A level shows the value ``s`` to ``n`` rows of which ``k`` are events; ``CE = sum_s P(s) |s - e(s)|`` with ``e(s)``
# the event rate at the level. Nothing is assumed but independent rows from one distribution.

# Shares of the evidence: of each of the bets `SCALED` the linear form in every level, and the better form a level. The
# second to fourth bet's linear forms win where a model is far off, so that notches cost more than they forgive.
PRODUCTS = ((0.02, 0.28), (0.1, 0.34), (0.03, 0.1), (0.03, 0.05))
# The bet that no score chooses, gamma sqrt(n), and shares of its two forms: for scores that say that outcomes hardly
# vary, of a model that is far off, all others are too large.
PLAIN, OF_PLAIN = 7.0, (0.045, 0.005)
FEWEST_PILOT, MOST_PILOT = 10, 50  # rows whose scores choose the bets: their variance to a fifth or better
PILOT = 0x9107  # stream of random numbers, apart from those of other methods
SLACK = 1e-9  # added to every notch constant, and a millionth of it per row: above the rounding error of its search


def bernstein_upper(s: Floats, n: Floats, k: Floats, delta: float) -> float:
    """Theorem 1, the readable reference: ``F = sum_s |n s - k| / N``, and ``w`` the mean squared residual."""
    rows = float(np.sum(n))
    plug_in = float(np.abs(n * s - k).sum()) / rows
    moment = float((k * (1.0 - s) ** 2 + (n - k) * s**2).sum()) / rows
    return bernstein(plug_in, moment, rows, delta)


def product_upper(s: ArrayLike, n: ArrayLike, k: ArrayLike, delta: float) -> float:
    """The upper bound of Theorem U with the notch; it fails with probability at most `delta`.

    `s`, `n`, `k` (levels,): shown values, rows and events of each.
    """
    return product_evidence(s, n, k).limit(delta)


def product_evidence(s: ArrayLike, n: ArrayLike, k: ArrayLike) -> Above:
    r"""Theorem U's evidence with the notch: an average of eight or ten products of e-values.

    For each of four or five bets ``gamma`` one product uses the linear form in every level, another the form, linear or
    notch, whose expected cost in a calibrated model, a function of ``n`` and ``s`` alone, is smaller.
    """
    is_kept = np.asarray(n) > 0
    s, n, k = (np.asarray(v, dtype=float)[is_kept] for v in (s, n, k))
    bets = upper_bets(int(n.sum()), pilot_variance(s, n))
    linear = linear_cost(s, n, k, bets.gamma[:, None])  # (1) -ln q of each bet and level, linear in the bets
    quadratic_penalty, better = penalty_cost(
        s, n, k, bets.gamma[:, None]
    )  # (2) the same by the notch, where it should cost less
    both = (
        linear.sum(axis=1),
        np.where(better, quadratic_penalty, linear).sum(axis=1),
    )  # (3) Phi of both products of each bet
    return Above(np.stack(both, axis=1).ravel(), np.repeat(bets.gamma, 2), bets.weights, bets.rows)


class UpperBets(NamedTuple):
    """Bets of Theorem U, weights of both products of each, and the rows whose error is paid for."""

    gamma: Floats  # shape (m,)
    weights: Floats  # shape (2 m,): add up to one
    rows: int


def upper_bets(rows: int, variance: float) -> UpperBets:
    """Bets for so many rows, and the mean variance ``s (1 - s)`` of some of them, which are not paid for.

    Of few rows the bets depend on their number alone.
    """
    pilot = pilot_rows(rows)
    if not pilot:
        return UpperBets(gammas(rows), np.full(8, 1 / 8), rows)
    gamma = np.append(SCALED.bets(np.sqrt(rows * variance)), PLAIN / np.sqrt(rows))
    return UpperBets(gamma, np.array((*PRODUCTS, OF_PLAIN)).ravel(), rows - pilot)


def pilot_rows(rows: int) -> int:
    """How many rows choose the bets: one in two hundred, from 10 to 50; none of fewer than a thousand."""
    return min(max(rows // 200, FEWEST_PILOT), MOST_PILOT) if rows >= 100 * FEWEST_PILOT else 0


def pilot_variance(s: Floats, n: Floats) -> float:
    """The mean variance of the scores of a random few of the rows, n of which are shown s; no outcome is read."""
    rows, pilot = int(n.sum()), pilot_rows(int(n.sum()))
    row = np.random.default_rng(PILOT).choice(rows, pilot, replace=False)
    shown = s[np.searchsorted(np.cumsum(n), row, side="right")]
    return (float((shown * (1.0 - shown)).sum()) + SOFT / 5.0) / (pilot + 1.0 / 5.0)


def shown_evidence(shown: Cells) -> Above:
    """`product_evidence` of a score shown in finitely many values, a cell each; made once."""
    if ("upper",) not in shown.cache:
        shown.cache["upper",] = product_evidence(shown.low, shown.totals.sum(axis=1), shown.totals[:, 1])
    return cast(Above, shown.cache["upper",])


def linear_cost(s: Floats, n: Floats, k: Floats, gamma: float | Floats) -> Floats:
    """``-ln q`` of Theorem U's linear form, per level: the cost of the smaller of the two products.

    Here and below `gamma` is one bet, or a column of several: the result has a row for each.
    """
    over = k * np.log1p(-gamma * (1 - s)) + (n - k) * np.log1p(gamma * s)
    under = k * np.log1p(gamma * (1 - s)) + (n - k) * np.log1p(-gamma * s)
    return -np.minimum(over, under)


def penalty_cost(s: Floats, n: Floats, k: Floats, gamma: float | Floats) -> tuple[Floats, Flags]:
    """``-ln q`` of the notch form, per level, and where it is expected to be the cheaper.

    Levels 0 and 1 have no notch (their null variance is zero); there the cost is infinite.
    """
    shape = np.broadcast_shapes(s.shape, np.shape(gamma))
    cost, better = np.full(shape, np.inf), np.zeros(shape, dtype=bool)
    inner = (s > 0) & (s < 1)
    if not inner.any():
        return cost, better
    t, m, events = s[inner], n[inner], k[inner]
    variance = m * t * (1 - t)
    a = penalty_width(gamma * np.sqrt(variance))
    alpha = a / variance
    normaliser = penalty_normaliser(t, m, gamma, alpha)
    cost[..., inner] = 0.5 * alpha * (events - m * t) ** 2 + normaliser
    better[..., inner] = 0.5 * a + normaliser < expected_linear_cost(t, m, gamma)
    return cost, better


def penalty_width(g: Floats) -> Floats:
    """The a that minimises ``a/2 - ln(1 + a)/2 + g^2 (1 + a) / (2 a)``: the root of ``a^3 = g^2 (1 + a)``."""
    # The root tends to g ** (2/3) for small g and to g for large g, so a start within a quarter of it is known. From
    # there on the cubic rises and is convex: Newton's first step lands above the root, the others come down to it.
    # Measured from g = 1e-8 to 1e4: with 1.2 five steps reach rounding error, with 1 six and with 2 seven. Any a > 0
    # keeps the certificate valid; a worse one costs width only.
    a = np.maximum(1.2 * g, g ** (2.0 / 3.0))
    for _ in range(7):  # two to spare, as it is cheap
        a = a - (a**3 - g**2 * (1 + a)) / (3 * a**2 - g**2)
    return a


def penalty_normaliser(s: Floats, n: Floats, gamma: float | Floats, alpha: Floats) -> Floats:
    r"""``N = max_e [ln E exp(-alpha (k - n s)^2 / 2) - n ln(1 - gamma |e - s|)]``, ``k ~ Binomial(n, e)``.

    On each side of s the change of variable ``e' = e (1 - gamma (1 - s)) / (1 - gamma (e - s))`` turns the
    objective into a binomial mean of a Gaussian in k about a shifted centre: a Bernstein polynomial of a
    log-concave sequence, hence unimodal, whose peak `penalty_peaks` finds. The search ignores that e
    stops at s, which can only raise N.
    """
    side = np.array([1.0, -1.0]).reshape(2, *(1 for _ in alpha.shape))  # e above s, and below
    up, down = np.log1p(-side * gamma * (1 - s)), np.log1p(side * gamma * s)
    gap = (down - up) / alpha
    constant = -n * down + 0.5 * alpha * gap * (2 * n * s + gap)
    trials, curvature = (np.broadcast_to(v, gap.shape).ravel() for v in (n, alpha))
    peaks = penalty_peaks(trials, (n * s + gap).ravel(), curvature).reshape(gap.shape)
    return np.maximum(*(constant + peaks)) + SLACK * (1.0 + 1e-6 * n)


def expected_linear_cost(s: Floats, n: Floats, gamma: float | Floats) -> Floats:
    """The linear form's mean cost under calibration, with k normal: a guide for choosing, not a bound."""
    from scipy.special import ndtr

    # (1) o and u: log growth of the bets that the score is too high and too low; per row they grow by `over` and
    #     `under` in the mean, as ``E k = n s``, and ``o - u`` changes by `slope` with each case.
    over = s * np.log1p(-gamma * (1 - s)) + (1 - s) * np.log1p(gamma * s)
    under = s * np.log1p(gamma * (1 - s)) + (1 - s) * np.log1p(-gamma * s)
    slope = np.log1p(-gamma * (1 - s)) - np.log1p(gamma * s) - np.log1p(gamma * (1 - s)) + np.log1p(-gamma * s)
    # (2) The cost is -min(o, u) = -(o + u) / 2 + |o - u| / 2.
    mean, sd = n * (over - under), np.abs(slope) * np.sqrt(n * s * (1 - s))
    # (3) E|N(m, s^2)| = s sqrt(2 / pi) exp(-z^2 / 2) + m (2 Phi(z) - 1) with z = m / s.
    z = mean / np.maximum(sd, 1e-300)  # no division by zero at levels 0 and 1, where sd is 0
    absolute = sd * np.sqrt(2 / np.pi) * np.exp(-0.5 * z * z) + mean * (2 * ndtr(z) - 1)
    return -0.5 * n * (over + under) + 0.5 * absolute


def debiased_error(s: Floats, n: Floats | Ints, k: Floats | Ints) -> float:
    r"""``sum_s sqrt(max(0, (n s - k)^2 - n s (1 - s))) / N``: the plug-in without its calibrated noise."""
    square = (n * s - k) ** 2 - n * s * (1 - s)
    return float(np.sqrt(np.maximum(square, 0.0)).sum() / np.sum(n))


# ---- The raw L1 calibration error from below, whatever the score: Theorem L on ten cells ----

BINS = 10  # of equal mass, edges from the first block: "more cells lose power"
# Of the evidence, what is bet on a plain shift, the commonest error. By simulation (1,000 to 60,000 rows): with a half
# the floor of a shift rises by a sixth, to that of the shift's own interval; an error that alternates loses a twelfth.
GAP = 0.5


def lower_bound(cells: Cells, delta: float, seed: int = 0) -> float:
    """A lower bound on ``E|p - E[Y|p]|`` that fails with probability at most `delta`."""
    return solve(*_wagers(cells, delta, seed), delta)


def lower_evidence(cells: Cells, delta: float, seed: int = 0) -> Below:
    """The evidence that `lower_bound` solves, with the stakes that are the best at `delta`; made once."""
    key = ("lower", delta, seed)
    if key not in cells.cache:
        cells.cache[key] = joined(*_wagers(cells, delta, seed))
    return cast(Below, cells.cache[key])


def _wagers(cells: Cells, delta: float, seed: int) -> tuple[list[Bet], Floats]:
    """What is bet, and the weights.

    `GAP` of the evidence comes from bets that all scores underpredict, or all overpredict; the rest in equal parts from
    `BLOCK_ORDERS` random orders of the blocks, in which signs are learnt on earlier blocks and bet on later ones, and
    from a forward recursion over all rows that learns nothing. Signs are those of `BINS` bins along the score; of a
    score of few values, in the first order, those of each cell, as its error may alternate. Whether it takes few, the
    scores of all rows decide: one bit that looks ahead, of which the documentation says what it costs (certificates,
    Theorem L).
    """
    kept = cells.nonempty

    def learner(order: Ints, first: bool) -> Learn:
        own = first and kept.few
        return _signs_of(kept, order, np.arange(kept.size) if own else kept.equal_mass(BINS, order[:1]))

    def grow(block: int, tilt: Floats) -> float:
        return log_growth(kept, block, tilt)

    orders = block_orders(kept.blocks, seed)
    parts = (
        [bet(kept.block_rows, order, delta, learner(order, k == 0), grow) for k, order in enumerate(orders)],
        [_forward(kept, bet_size) for bet_size in FORWARD.multiples],
        steady(kept.block_rows, kept.variances.sum(axis=1), orders[0], 0.5 * GAP * delta, grow),
    )
    shares = ((1.0 - GAP) / 2.0, (1.0 - GAP) / 2.0, GAP)
    weights = [share / len(part) for share, part in zip(shares, parts, strict=True) for _ in part]
    return [w for part in parts for w in part], np.array(weights)


def _signs_of(cells: Cells, order: Ints, bins: Ints) -> Learn:
    """Learn soft signs ``2 Phi(z) - 1`` of the standardised residual, per cell, and their mean square winnings.

    `bins` are runs of consecutive cells, each of one sign; what is asked for are the signs of the first blocks of the
    order, so many as are given.
    """
    from scipy.special import ndtr

    first = np.flatnonzero(np.diff(bins, prepend=-1))
    run = np.repeat(np.arange(len(first)), np.diff(first, append=len(bins)))
    sums = (np.add.reduceat(v, first, axis=1)[order] for v in (cells.residuals, cells.variances))
    residual, variance = (np.cumsum(v, axis=0) for v in sums)
    signal = 2.0 * ndtr(residual / np.sqrt(variance + SOFT)) - 1.0
    moment = (signal**2 * variance).sum(axis=1) / np.maximum(np.cumsum(cells.block_rows[order]), 1)
    return lambda past: (signal[len(past) - 1][run], float(moment[len(past) - 1]))


def _forward(cells: Cells, bet_size: float) -> Bet:
    """Average, over paths of signs in {-1, 0, 1} along the score, of the wealth over all rows.

    Signs and bet sizes are fixed by the number of rows alone; only the bins follow the scores.
    """
    kappa = min(bet_size / np.sqrt(max(cells.n, 1)), FORWARD.largest)
    chords, log_wealth = cells.joined.chords, np.zeros((BINS, 3))
    if ("bins",) not in cells.cache:
        cells.cache["bins",] = cells.equal_mass(BINS)[chords.cell]
    bins = cells.cache["bins",]
    for column, sign in ((0, -1.0), (2, 1.0)):
        log_wealth[:, column] = np.bincount(bins, chords.weight * np.log1p(sign * kappa * chords.at), BINS)
    return Bet(sign_paths(log_wealth, SWITCH), np.array([kappa]), np.array([cells.n]))


# ---- The gap E[Y - p], signed ----

GAP_CELLS = 256  # cells of consecutive scores that bet together: the limits widen little


def gap_evidence(cells: Cells, delta: float) -> Gap:
    r"""Evidence about the mean residual: ``prod_i (1 + kappa (y_i - p_i - m))`` has mean one at the true mean m.

    Per cell the product is bounded below by the chord through the cell's ends at the exact mean score. Stakes are the
    best at `delta`.
    """
    # (1) The chords: residuals at the ends of each cell, by label, and the rows put there, by block
    starts = np.arange(0, cells.size, max(cells.size // GAP_CELLS, 1))
    low, high = cells.low[starts], cells.high[np.append(starts[1:], cells.size) - 1]
    counts, sums = (np.add.reduceat(v, starts, axis=1) for v in (cells.counts, cells.sums))
    width = np.where(high > low, high - low, 1.0)[:, None]
    share = np.clip((sums / SCALE / np.maximum(counts, 1) - low[:, None]) / width, 0.0, 1.0)
    is_kept = counts.sum(axis=(0, 2)) > 0
    residual = (np.array([0.0, 1.0])[None, :, None] - np.stack([low, high], axis=1)[:, None])[is_kept]
    weight = (counts[..., None] * np.stack([1.0 - share, share], axis=-1))[:, is_kept]
    # (2) The stakes of each bet, by block: the best for the scores of earlier blocks, as far as a hypothesis allows
    variance, third = cells.variances.sum(axis=1), (cells.variances * (1.0 - 2.0 * cells.middle)).sum(axis=1)
    skewness = (np.cumsum(third) - third) / (np.cumsum(variance) - variance + SOFT)
    best = steady_bet_sizes(cells.block_rows, variance, delta, np.inf)

    def log_e(mean: float, side: float) -> float:
        away, bet_sizes = side * (residual - mean), sized(leaning(best, side * skewness), mean, side)
        return log_mean_exp([(weight * np.log1p(k[:, None, None, None] * away)).sum() for k in bet_sizes])

    return Gap.of(log_e)


# ---- The distance from calibration, which needs no assumption and no change to the classifier ----
# The (lower) distance is the least ``E|p - u|`` over calibrated ``u`` on the same space enlarged by independent
# noise (Blasiok, Gopalan, Hu, Nakkiran, STOC 2023).

STEPS = (8, 16, 32, 64, 128)  # dyadic: a level's boundaries, and the level itself, are ends of cells
BANDWIDTHS = (2.0**-5, 2.0**-6, 2.0**-7, 2.0**-8)  # around the default, 2^-6
KNOTS = 16  # intervals of the witness: its slope is at most 1, so it moves by 1/16 between knots at most


def distance_upper(cells: Cells, delta: float) -> tuple[float, str]:
    r"""An upper bound and the route that gave it.

    ``d <= CE(shown) + E|shown - p|`` for the score rounded to dyadic steps or jittered, because the event rate given
    the rounded score is itself calibrated. ``delta`` is shared equally over all routes; each spends nine tenths on the
    certificate and one on Hoeffding's inequality for the mean displacement.
    """
    share = delta / (len(STEPS) + len(BANDWIDTHS))
    routes = []
    for k in STEPS:
        values, rows, events, moved = dyadic_levels(cells, k)
        moved += np.sqrt(-np.log(0.1 * share) / (2 * cells.n)) / (2 * k)
        routes.append((moved, f"rounded to {k} steps", partial(product_upper, values, rows, events, 0.9 * share)))
    for h in BANDWIDTHS:
        mean, largest = mean_displacement(cells, h)
        moved = mean + largest * np.sqrt(-np.log(0.1 * share) / (2 * cells.n))
        routes.append((moved, f"jittered by {h:g}", partial(jittered_upper, cells, h, 0.9 * share)))
    best = (1.0, "none")
    for moved, route, certificate in routes[::-1]:
        if moved < best[0]:  # otherwise it cannot win, whatever its certificate
            best = min(best, (float(certificate() + moved), route))
    return best


def dyadic_levels(cells: Cells, steps: int) -> tuple[Floats, Floats, Floats, float]:
    """Levels, rows, events and mean ``|p - shown|`` of the score rounded to a power of two of steps.

    Exact from the cells: a dyadic level's boundaries, and the level itself, are ends of cells.
    """
    where = cells.occupied()
    level = np.floor(cells.middle[where] * steps + 0.5).astype(np.int64)
    values, counts = np.arange(steps + 1) / steps, cells.totals[where]
    rows, events = (summed(level, v, steps + 1) for v in (counts.sum(axis=1), counts[:, 1]))
    moved = np.abs(cells.score_sums[where].sum(axis=1) - counts.sum(axis=1) * values[level]).sum() / cells.n
    return values, rows, events, float(moved)


def distance_lower(cells: Cells, delta: float, seed: int = 0) -> float:
    r"""A lower bound: ``d >= E[w(p)(Y - p)]`` whenever ``sup|w| + Lip(w) <= 1``.

    The witness w is piecewise linear on `KNOTS` intervals and solves a linear programme on earlier blocks. It
    is evaluated at cell middles, which moves a score, and so the distance, by at most half a cell.
    """
    middle, where = cells.middle, cells.occupied()
    basis = np.stack([np.interp(middle, np.linspace(0, 1, KNOTS + 1), row) for row in np.eye(KNOTS + 1)], axis=1)

    def learn(past: Ints) -> tuple[Floats, float]:
        residual, variance = cells.residuals[past].sum(axis=0), cells.variances[past].sum(axis=0)
        noise = np.sqrt(basis.T @ variance)
        gain = basis.T @ residual  # what a unit of each knot's height wins; less than its noise counts as nothing
        w = basis @ lipschitz_witness(np.sign(gain) * np.maximum(np.abs(gain) - noise, 0.0))
        moment = float((w**2 * variance).sum()) / max(int(cells.block_rows[past].sum()), 1)
        return w[where], moment

    def grow(block: int, tilt: Floats) -> float:
        n = cells.counts[block, where]
        return float((n[:, 0] * np.log1p(-tilt * middle[where]) + n[:, 1] * np.log1p(tilt * (1 - middle[where]))).sum())

    wagers = [bet(cells.block_rows, order, delta, learn, grow) for order in block_orders(cells.blocks, seed)]
    return max(solve(wagers, np.full(BLOCK_ORDERS, 1 / BLOCK_ORDERS), delta) - 0.5 / cells.size, 0.0)


def lipschitz_witness(gain: Floats) -> Floats:
    """Knot values w that maximise ``gain . w`` subject to ``sup|w| + Lip(w) <= 1``."""
    return lipschitz_witnesses(gain[None])[0]


def lipschitz_witnesses(gains: Floats) -> Floats:
    """`lipschitz_witness` of every row: of all by one linear programme, whose preparation costs most."""
    from scipy.optimize import linprog
    from scipy.sparse import block_diag, csr_array

    out, some = np.zeros(gains.shape), np.flatnonzero(gains.any(axis=1))
    if not len(some):
        return out
    m, k = len(some), gains.shape[1]
    # Variables w_1 ... w_k and the height h of each: |w_i| <= h, |slope| <= 1 - h.
    eye, step = np.eye(k), np.diff(np.eye(k), axis=0) * KNOTS
    height = np.concatenate([np.full(2 * k, -1.0), np.full(2 * (k - 1), 1.0)])
    a = csr_array(np.column_stack([np.concatenate([eye, -eye, step, -step]), height]))
    b = np.tile(np.concatenate([np.zeros(2 * k), np.ones(2 * (k - 1))]), m)
    bounds = ([(-1.0, 1.0)] * k + [(0.0, 1.0)]) * m
    cost = np.column_stack([-gains[some], np.zeros(m)]).reshape(-1)
    result = linprog(cost, A_ub=block_diag([a] * m, format="csr"), b_ub=b, bounds=bounds, method="highs")
    if result.status != 0:
        if m > 1:  # each by itself: one that is not solved must not silence the others
            out[some] = [lipschitz_witness(gain) for gain in gains[some]]
        return out  # alone: what is not solved stays 0, which wins nothing and is allowed
    w = np.clip(result.x.reshape(m, k + 1)[:, :k], -1.0, 1.0)
    reach = np.abs(w).max(axis=1) + KNOTS * np.abs(np.diff(w, axis=1)).max(axis=1)
    out[some] = w / np.maximum(reach, 1.0)[:, None]  # the solver's tolerance
    return out


# ---- The raw L1 calibration error from above, when the event rate has bounded variation (Theorem 3) ----
# Scores are cut into runs of whole sketch cells, intervals of the score, so ties are never split. Within a run
# the mean absolute deviation of ``eta`` from its mean is at most half its oscillation, and oscillations over
# disjoint intervals add up to at most V.

SHARES = (0.9, 0.1)  # of delta: the sum over rows, and the step from sample to population, which costs less


def variation_upper(cells: Cells, variation: float, delta: float, single: Flags) -> tuple[float, int]:
    """The bound and the run length it used.

    `variation`: V, an upper bound on the total variation of ``E[Y|p]``. `single` (cells,): cells whose rows all share
    one score; they have no oscillation.
    """
    n = cells.n
    best = np.log2(0.4 * n / max(variation, 1e-9)) * (2.0 / 3.0)  # m near (0.4 n / V)^(2/3), on a dyadic grid
    targets = sorted({int(np.clip(2.0 ** np.round(best + j), 1, n)) for j in (-1.0, 0.0, 1.0)})
    l1, l2 = -np.log(SHARES[0] * delta / len(targets)), -np.log(SHARES[1] * delta)
    bounds = []
    for m in targets:
        plug_in, longest = _plug_in(cells, m, single)  # (1) F_m, and the longest run that can oscillate
        sample = plug_in + longest * variation / (2 * n) + np.sqrt(l1 / (2 * n))  # (2) A, of the sample
        bounds.append(float((np.sqrt(l2 / (2 * n)) + np.sqrt(sample + l2 / (2 * n))) ** 2))  # (3) CE
    i = int(np.argmin(bounds))
    return min(bounds[i], 1.0), targets[i]


def _runs(rows: Ints, m: int) -> Ints:
    """Assign consecutive cells to runs that close as soon as another cell would take them over `m` rows."""
    out, run, kept = np.empty(len(rows), dtype=np.int64), 0, 0
    for i, r in enumerate(rows):
        if kept and kept + r > m:
            run, kept = run + 1, 0
        out[i] = run
        kept += int(r)
    return out


def _plug_in(cells: Cells, m: int, single: Flags) -> tuple[float, float]:
    """Upper bound on ``sum |run mean - p| / n``, and the largest run that is not a single score."""
    where = cells.occupied()
    counts = cells.totals[where].sum(axis=1)
    events = cells.totals[where, 1]
    score = cells.sums[:, where].sum(axis=(0, 2)) / SCALE
    run = _runs(counts, m)
    size = np.bincount(run, counts)
    mean = (np.bincount(run, events) / size)[run]
    low, high = cells.low[where], cells.high[where]
    inside = (low < mean) & (mean < high)
    share = np.clip((score / counts - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0)
    chord = counts * ((1 - share) * np.abs(mean - low) + share * np.abs(mean - high))
    total = np.where(inside, chord, np.abs(counts * mean - score)).sum()
    spread = (np.bincount(run, counts > 0) > 1) | (np.bincount(run, ~single[where]) > 0)
    return float(total / cells.n), float(size[spread].max(initial=0.0))
