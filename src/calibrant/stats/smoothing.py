"""Local averages: residuals smoothed along the score, along a variable, and at the points of a map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.draws import outcomes
from calibrant.kernels.roots import crossing
from calibrant.kernels.smooth import operator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ids = NDArray[np.uint64]
Places = NDArray[np.intp]

# ---- Residuals smoothed by a reflected Gaussian kernel on a grid (Blasiok & Nakkiran 2023, arXiv:2309.12236) ----

STEPS = 1 << 12  # of the grid, unless a bandwidth asks for more
FINEST = 1 << 15  # of the grid, at most
SMALLEST = 2.0**-10  # least automatic bandwidth: a thousandth of a probability
PER_WIDTH = 16  # grid points per bandwidth, at least, so that a bell is a smooth curve on the grid


def smoothed(mass: Floats, width: float) -> Floats:
    """Smooth masses at ``0, 1/m, ..., 1`` (last axis) into a density there, reflected at both ends.

    The reflected Gaussian is the heat kernel of [0, 1] with closed ends, so the cosines are its eigenvectors and
    two cosine transforms smooth exactly, however wide the kernel.
    """
    from scipy.fft import dct

    last = mass.shape[-1] - 1
    half = np.concatenate([mass[..., :1], 0.5 * mass[..., 1:-1], mass[..., -1:]], axis=-1)
    waves = dct(half, type=1, axis=-1) * np.exp(-0.5 * (np.pi * width * np.arange(last + 1)) ** 2)
    waves[..., -1] *= 2.0
    return dct(waves, type=1, axis=-1)


def length(density: Floats) -> Floats:
    """Integral over [0, 1] of the absolute value, by the trapezoid rule, over the last axis."""
    size = np.abs(density)
    return (size.sum(axis=-1) - 0.5 * (size[..., 0] + size[..., -1])) / (density.shape[-1] - 1)


def fixed_point(mass: Floats) -> float:
    """The bandwidth that equals the smoothed size, or the smallest one if that is larger.

    The size does not increase with the bandwidth, so there is exactly one.
    """

    def excess(width: float) -> float:
        return float(length(smoothed(mass, width))) - width

    if excess(SMALLEST) <= 0.0:
        return SMALLEST
    return float(crossing(excess, SMALLEST, 1.0 + 1e-9, xtol=1e-7))


def steps_for(width: float) -> int:
    """Grid steps that resolve a bandwidth."""
    return min(FINEST, max(STEPS, 1 << int(np.ceil(np.log2(PER_WIDTH / width)))))


def noise_steps(width: float) -> int:
    """Grid steps of the simulated noise: about four to a bandwidth."""
    return min(STEPS, max(64, 1 << int(np.ceil(np.log2(4.0 / width)))))


def coarser(values: Floats, steps: int) -> Floats:
    """Share masses at ``0, 1/m, ..., 1`` among fewer grid points, nearness deciding; m is a multiple of `steps`."""
    ratio = (len(values) - 1) // steps
    if ratio == 1:
        return values
    share = np.arange(ratio) / ratio
    body = values[:-1].reshape(steps, ratio)
    out = np.zeros(steps + 1)
    out[:-1] += body @ (1.0 - share)
    out[1:] += body @ share
    out[-1] += values[-1]
    return out


# ---- Local-linear averages of cell totals: the weights, what they rest on, and how wide to look ----

SPREAD = 2.65  # half-width of the biweight kernel whose standard deviation is one: sqrt(7)
FLAT = 1e-4  # square of the spread (sd in half-widths) in a window under which there is no slope: one hundredth;
#              a smaller one would fit lines to nearly one point, whose weights are large and of both signs
WIDTH_STEPS = 50  # parts of a half-width to which the score is resolved before smoothing: more runs cost time, and
#                   a run of a fiftieth hardly moves a row against a kernel that is a hundred times as wide


@dataclass(frozen=True)
class Runs:
    """Neighbouring score cells added together; nothing here depends on a label except `events`."""

    x: Floats  # shape (runs,): position on the axis of smoothing, increasing: the mean score, or its logit
    # `rows` and `events`, shape (runs,): where rows are weighted, their weights added up.
    rows: Floats
    events: Floats
    score: Floats  # shape (runs,): sum of the scores, weighted too
    square: Floats | None = None  # shape (runs,): sum of the squared weights; by default each row weighs one

    @property
    def squares(self) -> Floats:
        """Sum of the squared weights of each run."""
        return self.rows if self.square is None else self.square

    @property
    def rate(self) -> Floats:
        """Mean score of each run: the event rate if the model is calibrated."""
        return np.clip(self.score / self.rows, 0.0, 1.0)

    @property
    def noise(self) -> Floats:
        """Null variance of the events of each run, at most: ``n m (1 - m)``."""
        return self.noise_at(self.rate)

    def noise_at(self, rate: Floats) -> Floats:
        """The variance of the events of each run at these event rates."""
        return self.squares * rate * (1.0 - rate)


def run_starts(rows: Floats | Ints, smallest: int, x: Floats | None = None, width: float = 0.0) -> list[int]:
    """Where each run of neighbouring cells begins that holds `smallest` rows; a short last one joins the rest.

    With positions `x` a run also goes on while it spans at most `width`.
    """
    counts = rows.tolist()
    return starts_of(len(counts), lambda i, _: counts[i], smallest, x, width)


def starts_of(
    cells: int, new: Callable[[int, int], int], smallest: int, x: Floats | None = None, width: float = 0.0
) -> list[int]:
    """The same of what `new` counts: people whom a cell adds to a run that begins at another."""
    starts, kept, first = [0], 0, 0
    for i in range(cells):
        if i > first and kept >= smallest and (x is None or x[i] - x[first] > width):
            starts.append(i)
            kept, first = 0, i
        kept += new(i, first)
    if kept < smallest and len(starts) > 1:
        starts.pop()
    return starts


def clusters_new(cell: Ints, cluster: Ints, cells: int) -> Callable[[int, int], int]:
    """How many clusters a cell adds to a run of cells: those with rows in it, and in none since the run began."""
    count = int(cluster.max(initial=0)) + 1
    at, of = np.divmod(np.unique(cell.astype(np.int64) * count + cluster), count)
    order = np.argsort(of, kind="stable")
    before = np.full(len(at), -1)  # the last cell before it in which a cluster has rows
    again = np.flatnonzero(of[order][1:] == of[order][:-1])
    before[order[again + 1]] = at[order[again]]
    ends = np.searchsorted(at, np.arange(cells + 1))
    return lambda i, first: int(np.count_nonzero(before[ends[i] : ends[i + 1]] < first))


def runs_of(
    x: Floats, rows: Floats | Ints, events: Floats | Ints, score: Floats, width: float, smallest: int = 1
) -> Runs:
    """Join neighbouring cells while they span at most `width`, and further until they hold `smallest` rows.

    `x` (cells,): positions of the occupied cells, non-decreasing. `rows`, `events`, `score` (cells,). `width`: in the
    cluster of `x`. `smallest`: a short last run joins the one before.
    """
    starts = run_starts(rows, smallest, x, width)
    n, k, s, at = (np.add.reduceat(np.asarray(v, dtype=float), starts) for v in (rows, events, score, rows * x))
    return Runs(at / n, n, k, s)


def half_width(x: Floats, noise: Floats) -> float:
    r"""Choose the half-width of the window from the scores alone: ``2.65 sd V^(-1/5)``.

    `V` is the null variance ``sum p (1 - p)``, the number of rows that carry information times a quarter at most;
    `sd` is the standard deviation of `x`, each row weighted by its share of V.
    """
    total = float(noise.sum())
    if total <= 0.0:
        return 0.0
    middle = float((noise * x).sum() / total)
    spread = float(np.sqrt((noise * (x - middle) ** 2).sum() / total))
    return float(SPREAD * spread * total**-0.2)


def weights(x: Floats, rows: Floats, grid: Floats, half: float) -> Floats:
    r"""The weight of one row of each run at each point: a local-linear fit with the biweight kernel.

    With ``d = x - t`` and ``K = (1 - (d / half)^2)^2``, the estimate at ``t`` of the mean of what is summed in
    ``z`` is ``weights @ z``; the weights times the rows add up to one. Where the window holds too little spread
    for a slope the fit is a local constant; where it holds nothing the weights are zero.

    `x`, `rows` (runs,). `grid` (points,). The result has shape (points, runs).
    """
    d = (x[None, :] - grid[:, None]) / half
    k = np.clip(1.0 - d * d, 0.0, None) ** 2
    s0, s1, s2 = (((k * d**j) @ rows)[:, None] for j in (0, 1, 2))
    spread = s0 * s2 - s1 * s1  # s0^2 times the variance of d in the window
    straight = spread > FLAT * s0 * s0
    slope = k * (s2 - s1 * d) / np.where(straight, spread, 1.0)
    level = k / np.where(s0 > 0, s0, 1.0)
    return np.where(straight, slope, level)


def effective(weight: Floats, squares: Floats) -> Floats:
    """The rows whose plain mean would be as noisy as the weighted mean, shape (points,)."""
    square = (weight * weight) @ squares
    return np.where(square > 0, 1.0 / np.where(square > 0, square, 1.0), 0.0)


def density(x: Floats, mass: Floats, grid: Floats, half: float) -> Floats:
    """The kernel density at each point: per cluster of `x`, of total mass one."""
    d = (x[None, :] - grid[:, None]) / half
    total = float(mass.sum())
    return (np.clip(1.0 - d * d, 0.0, None) ** 2 @ mass) * (15.0 / 16.0) / (half * max(total, 1.0))


# ---- Local regression along a variable, from sums by cell: LOESS with tricube weights and the Gaussian family ----

MARGIN = 0.005  # of the range, by which the published surface reaches beyond the values: netlib's `dloess`
LEAF = 0.2  # share of a window's rows below which its k-d tree does not cut a cell: its argument `cell`


def smoother(x: Floats, rows: Floats, mass: Floats, grid: Floats, span: float, degree: int) -> Floats:
    """The matrix that turns sums by cell into the local fit at each point.

    `x` (cells,): increasing. `rows`, `mass` (cells,): rows, which the span counts; and their weights. `grid` (points,).
    `span`: share of the rows in a window, in (0, 1]. `degree`: from 0 to 2. The result has shape (points, cells): the
    same matrix smooths outcomes, scores and residuals, so that the smoothed residual is the difference of the two
    curves, with the variance of a difference.
    """
    return operator(x, rows, mass, grid, _needed(rows, span), degree)[0]


def interpolated(x: Floats, rows: Floats, mass: Floats, grid: Floats, span: float, degree: int) -> Floats:
    """The matrix of the published surface: exact at a few vertices, cubic in between.

    Cleveland and Grosse's k-d tree cuts the values at medians until a leaf holds under a fifth of a window, fits value
    and slope at the cuts, and joins them by cubic Hermite pieces. Programs that call LOESS with its default surface
    draw this; it differs from `smoother` by up to a hundredth of the range. Equal to scikit-misc's to rounding where no
    cut falls on a value that many rows share; there the order of equal rows decides in theirs, and does not here.
    """
    knots = _knots(x, rows, int(np.floor(rows.sum() * span * LEAF)))
    value, slope = operator(x, rows, mass, knots, _needed(rows, span), degree)
    left = np.clip(np.searchsorted(knots, grid, side="right") - 1, 0, len(knots) - 2)
    width = (knots[left + 1] - knots[left])[:, None]
    h = (np.asarray(grid) - knots[left])[:, None] / width
    ends = (1 - h) ** 2 * (1 + 2 * h) * value[left] + h * h * (3 - 2 * h) * value[left + 1]
    return ends + width * h * (1 - h) * ((1 - h) * slope[left] - h * slope[left + 1])


def _needed(rows: Floats, span: float) -> float:
    return float(max(np.floor(rows.sum() * span + 1e-5), 1.0))  # 1e-5: as `dloess` rounds


def _knots(x: Floats, rows: Floats, least: int) -> Floats:
    """The ends, and the cuts of the k-d tree at the rows' medians, each a value of the data."""
    upto = np.cumsum(rows)
    gap = MARGIN * max(x[-1] - x[0], 1e-10 * max(abs(x[0]), abs(x[-1])) + 1e-30)
    results = {float(x[0] - gap), float(x[-1] + gap)}
    todo = [(0, int(upto[-1]) - 1)]
    while todo:
        first, last = todo.pop()
        middle = (first + last) // 2
        cut = float(x[int(np.searchsorted(upto, middle, side="right"))])
        if last - first + 1 > least and cut not in results:
            results.add(cut)
            todo += [(first, middle), (middle + 1, last)]
    return np.array(sorted(results))


# ---- Kernel-weighted mean residuals: at the points of a map with their simulated null, and at rows ----

BLOCK = 8192  # rows taken at once, at most
AT_ONCE = 1 << 22  # kernel weights held at once, about: 32 MB
PLACES = 20_000  # distinct places up to which every row stays where it is; more cost time, not accuracy
FAR = -300.0  # least exponent of a kernel weight: smaller ones are slow subnormal numbers, and their squares nothing
REACH = 0.01  # kernel weights in all, under which a row has no others within reach
SIDE = 512  # rows and columns of a tile of kernel weights: 2 MB
PARTS = (50, 10)  # parts of a bandwidth to which more rows are placed, along one number and along several: a row
#                   moves by at most 1% and 5% of a bandwidth; with several, the places are a power of the parts


Index = slice | Places | NDArray[np.bool_]


@dataclass(frozen=True)
class Spots:
    """Where rows or points lie."""

    position: Floats  # shape (m, axes): along each number, in bandwidths; 0 along a category, and where missing
    level: Ints  # shape (m, axes): of each category; along a number 0, or 1 where missing

    def __getitem__(self, at: Index) -> Spots:
        return Spots(self.position[at], self.level[at])

    def __len__(self) -> int:
        return len(self.position)


def affinity(points: Spots, rows: Spots) -> Floats:
    """The kernel ``exp(-d^2 / 2)`` along numbers, times one for equal levels, shape (points, rows)."""
    out: Floats = np.ones((1, 1))
    for j in range(points.position.shape[1]):
        pairs = np.column_stack([points.position[:, j], points.level[:, j]])
        places, index = np.unique(pairs, axis=0, return_inverse=True)
        near = (places[:, 1:] == rows.level[None, :, j]).astype(float)
        if places[:, 0].any() or rows.position[:, j].any():
            near *= np.exp(np.maximum(-0.5 * (places[:, :1] - rows.position[None, :, j]) ** 2, FAR / 2))
        out = out * near[index.reshape(-1)]
    return out


@dataclass(frozen=True)
class Sample:
    """Rows with what is averaged over them."""

    y: NDArray[np.int8] | Floats  # shape (n,)
    p: Floats  # shape (n,)
    weight: Floats  # shape (n,)
    ids: Ids  # shape (n,): identities, of rows or of the clusters they belong to, which key the simulation
    spots: Spots

    def __getitem__(self, at: Index) -> Sample:
        return Sample(self.y[at], self.p[at], self.weight[at], self.ids[at], self.spots[at])

    @cached_property
    def cells(self) -> Cells:
        """The rows in order of their place."""
        return cells_of(self.spots)


@dataclass(frozen=True)
class Cells:
    """Rows that lie at one place, together: rows ``order[starts[c] : starts[c + 1]]`` at ``spots[c]``."""

    order: Places
    starts: Places
    spots: Spots

    def sums(self, values: Floats) -> Floats:
        """Add row values up by cell."""
        return np.add.reduceat(values[self.order], self.starts, axis=0)


def cells_of(spots: Spots) -> Cells:
    """Put rows of one place together; where there are many places, neighbours a fraction of a bandwidth apart too."""
    for step in (0.0, 1.0 / PARTS[0] if spots.position.any(axis=0).sum() < 2 else 1.0 / PARTS[1]):
        key = np.zeros(len(spots), dtype=np.int64)
        for j in range(spots.position.shape[1]):
            x = spots.position[:, j]
            for column in (np.round(x / step) if step else x, spots.level[:, j]):
                values, code = np.unique(column, return_inverse=True)
                key = np.unique(key * len(values) + code.reshape(-1), return_inverse=True)[1].reshape(-1)
        if key.max(initial=0) < PLACES:
            break
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    first = order[starts]
    rows = np.diff(starts, append=len(key))[:, None]
    middle = np.add.reduceat(spots.position[order], starts, axis=0) / rows if step else spots.position[first]
    return Cells(order, starts, Spots(middle, spots.level[first]))


@dataclass(frozen=True)
class Means:
    """What eq. 7 is made of at each point, arrays of shape (points,)."""

    near: Floats  # rows near the point, each counted by its kernel weight
    mass: Floats  # the same in sample weights
    rows: Floats  # effective rows `(sum w K)^2 / sum (w K)^2`
    # `predicted` and `observed`: kernel-weighted mean of the score and of the outcome.
    predicted: Floats
    observed: Floats
    null: Floats  # variance of `observed - predicted` if the model is calibrated
    spread: Floats  # its variance from the residuals themselves

    @property
    def bias(self) -> Floats:
        """Kernel-weighted mean residual."""
        return self.observed - self.predicted

    def __getitem__(self, at: Index) -> Means:
        return Means(**{k: v[at] for k, v in vars(self).items()})


def means(points: Spots, s: Sample) -> Means:
    """The kernel-weighted means at every point; zero where no row is within reach."""
    w, e, v = s.weight, s.y - s.p, s.p * (1.0 - s.p)
    columns = (np.ones(len(w)), w, w * s.p, w * s.y, w * w, w * w * v, w * w * e * e, w * w * e)
    sums = np.column_stack([s.cells.sums(column) for column in columns])  # one at a time, for memory
    total = np.zeros((len(points), 8))
    step = max(1, min(BLOCK, AT_ONCE // len(points)))
    for a in range(0, len(sums), step):
        k = affinity(points, s.cells.spots[a : a + step])
        total[:, :4] += k @ sums[a : a + step, :4]
        total[:, 4:] += (k * k) @ sums[a : a + step, 4:]
    near, mass, says, happened, square, null, e2, e1 = total.T
    there = square > 0
    one, two = np.where(there, mass, 1.0), np.where(there, square, 1.0)
    rows = np.where(there, mass / two * mass, 0.0)
    b = (happened - says) / one
    few = rows / np.maximum(rows - 1.0, 0.5)
    spread = np.maximum(e2 - 2 * b * e1 + b * b * square, 0.0) * few / one**2
    return Means(near, mass, rows, says / one, happened / one, null / one**2, spread)


def simulated(points: Spots, s: Sample, draws: int, salt: int) -> Floats:
    """The mean residuals at the points of outcomes ``Y* ~ Bernoulli(p)``, shape (points, draws)."""
    total, mass, says = np.zeros((len(points), draws)), np.zeros(len(points)), np.zeros(len(points))
    weighted = bool((s.weight != 1.0).any())
    for at, cells, starts in _blocks(s.cells, len(points)):
        k = affinity(points, s.cells.spots[cells])
        w = s.weight[at]
        events = outcomes(s.ids[at], s.p[at], 0, draws, salt)
        drawn = events * w[:, None] if weighted else events
        mass += k @ np.add.reduceat(w, starts)
        says += k @ np.add.reduceat(w * s.p[at], starts)
        total += k @ _added(drawn, starts)
    return (total - says[:, None]) / mass[:, None]


def _added(drawn: NDArray[np.uint8] | Floats, starts: Places) -> Floats:
    """Add rows up from each start to the next."""
    if len(starts) == len(drawn):
        return drawn.astype(float)
    if len(drawn) < 8 * len(starts):
        return np.add.reduceat(drawn, starts, axis=0, dtype=float)
    ends = np.append(starts[1:], len(drawn))
    return np.stack([drawn[a:b].sum(axis=0, dtype=float) for a, b in zip(starts, ends, strict=True)])


def _blocks(c: Cells, points: int) -> Iterator[tuple[Places, slice, Places]]:
    """Yield rows, the cells they lie in, and where each cell starts among them."""
    step = max(512, min(BLOCK, AT_ONCE // points))
    for a in range(0, len(c.order), step):
        b = min(a + step, len(c.order))
        first, last = np.searchsorted(c.starts, a, side="right") - 1, np.searchsorted(c.starts, b)
        yield c.order[a:b], slice(first, last), np.maximum(c.starts[first:last] - a, 0)


@dataclass(frozen=True)
class Signed:
    """A map by clusters: variance, effective clusters and random-sign draws at each point."""

    noise: Floats  # shape (points,)
    clusters: Floats  # shape (points,)
    draws: Floats  # shape (points, draws)


def signed(points: Spots, s: Sample, draws: int, salt: int) -> Signed:
    """Give the residuals of whole clusters random signs; `ids` are those of clusters, equal within each.

    With ``S_c`` the kernel-weighted residual sum of cluster c, the variance is ``sum S_c^2`` and a draw
    ``sum +-S_c``, both divided by the total weight (the wild bootstrap with the null imposed).
    """
    order = np.argsort(s.ids, kind="stable")
    ids = s.ids[order]
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    ends = np.append(starts[1:], len(ids))
    total, noise = np.zeros((len(points), draws)), np.zeros(len(points))
    mass, square = np.zeros(len(points)), np.zeros(len(points))
    a, step = 0, max(512, min(BLOCK, AT_ONCE // len(points)))
    while a < len(starts):
        b = max(a + 1, int(np.searchsorted(ends, starts[a] + step, side="right")))
        rows = order[starts[a] : ends[b - 1]]
        k = affinity(points, s.spots[rows]) * s.weight[rows]
        cut = starts[a:b] - starts[a]
        sums, kept = (np.add.reduceat(v, cut, axis=1) for v in (k * (s.y[rows] - s.p[rows]), k))
        signs = 2.0 * outcomes(ids[starts[a:b]], np.full(b - a, 0.5), 0, draws, salt) - 1.0
        total += sums @ signs
        noise += (sums * sums).sum(axis=1)
        mass += kept.sum(axis=1)
        square += (kept * kept).sum(axis=1)
        a = b
    one = np.where(square > 0, mass, 1.0)
    clusters = np.where(square > 0, mass / np.where(square > 0, square, 1.0) * mass, 0.0)
    return Signed(noise / one**2, clusters, total / one[:, None])


def kernel_bias(rows: Spots, weight: Floats, residual: Floats, at: Spots, same: bool) -> tuple[Floats, Floats]:
    r"""Eq. 7 at any spots, by tiles, and the effective rows it rests on.

    `weight`, `residual` (n,). `at`: where the bias is wanted, coded and scaled as `rows` are. `same`: `at` are the rows
    themselves: each is left out of its own mean. Returns `bias`, `effective` (m,): both zero where the weights of the
    other rows add up to under a hundredth of a row.
    """
    sums = np.zeros((len(at), 3))
    # (1) The kernel is zero between rows of different levels: sort both sides by their levels.
    levels = np.unique(np.concatenate([rows.level, at.level]), axis=0, return_inverse=True)[1].reshape(-1)
    mine, theirs = levels[: len(rows)], levels[len(rows) :]
    order, places = np.argsort(mine, kind="stable"), np.argsort(theirs, kind="stable")
    counts = np.arange(levels.max(initial=-1) + 2)
    cut, edge = np.searchsorted(mine[order], counts), np.searchsorted(theirs[places], counts)
    # (2) Within equal levels, add up kernel weights, their squares and weighted residuals, a tile at a time.
    for level in counts[:-1]:
        block, wanted = order[cut[level] : cut[level + 1]], places[edge[level] : edge[level + 1]]
        if len(block):
            terms = np.column_stack([weight[block] * residual[block], weight[block]])
            numbers = {int(row): i for i, row in enumerate(block)}
            own = np.array([numbers[int(row)] for row in wanted]) if same else None
            sums[wanted] = _tiles(rows.position[block], terms, at.position[wanted], own)
    there = sums[:, 1] >= REACH
    mass, square = np.where(there, sums[:, 1], 1.0), np.where(there, sums[:, 2], 1.0)
    return np.where(there, sums[:, 0] / mass, 0.0), np.where(there, mass / square * mass, 0.0)


def _tiles(x: Floats, terms: Floats, at: Floats, own: Places | None) -> Floats:
    """Kernel-weighted sums of each of two terms, and of squared weights, at each point: shape (points, 3).

    ``-d^2 / 2`` of a tile is one product. `own` is the row that each point is, whose weight does not count.
    """
    middle = x.mean(axis=0)  # nearer the origin the exponent cancels less
    left, right = _lifted(at - middle), _lifted(x - middle)[:, [*range(x.shape[1]), -1, -2]].T
    square, out = terms[:, 1] ** 2, np.zeros((len(at), 3))
    for a in range(0, len(at), SIDE):
        to = slice(a, a + SIDE)
        for b in range(0, len(x), SIDE):
            k = left[to] @ right[:, b : b + SIDE]
            np.exp(np.clip(k, FAR, 0.0, out=k), out=k)
            if own is not None:
                mine = np.flatnonzero((own[to] >= b) & (own[to] < b + SIDE))
                k[mine, own[to][mine] - b] = 0.0
            out[to, :2] += k @ terms[b : b + SIDE]
            np.multiply(k, k, out=k)
            out[to, 2] += k @ square[b : b + SIDE]
    return out


def _lifted(x: Floats) -> Floats:
    """``[x, -|x|^2 / 2, 1]``."""
    return np.column_stack([x, -0.5 * (x * x).sum(axis=1), np.ones(len(x))])
