"""Counting rows into score cells: fixed-point scores, hashed identities, packed counters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from calibrant.kernels.reference import CELL_BITS, GROUP_BITS, LEVELS, carry

# ---- Packed counters: a count and a sum share one integer, and a block's counters lie together, so that they ----
# A packed cell holds ``count << 40 | remainder sum`` for each label and, for everyone, the sum of squares; a packed
# level holds ``negatives | positives << 32``. Nothing overflows for up to `capacity` rows; then `settle` unpacks.

CAPACITY = 1 << 20  # with groups: so many remainders below 2**20 stay below 2**40
CAPACITY_ALONE = 1 << 22  # without: remainders are below 2**16, and their squares below 2**32
AT_ONCE = 1 << 18  # rows that one call takes with groups, which bounds its scratch
AT_ONCE_ALONE = 1 << 20  # and without
_SUM = np.int64((1 << 40) - 1)
_LOW = np.int64((1 << 32) - 1)


class Packed:
    """The four packed arrays of one sketch and the rows they hold.

    Parameters
    ----------
    blocks, groups, groupings : int
    """

    def __init__(self, blocks: int, groups: int, groupings: int) -> None:
        self.cells = np.zeros((blocks, 1, 1 << CELL_BITS, 4), dtype=np.int64)  # the fourth pads to half a cache line
        self.levels = np.zeros((blocks, LEVELS), dtype=np.int64)
        self.group_cells = np.zeros((blocks, groups, 1 << GROUP_BITS, 2), dtype=np.int64)
        self.group_levels = np.zeros((blocks, groups, LEVELS), dtype=np.int64)
        self.at_once = AT_ONCE if groups else AT_ONCE_ALONE
        self.dealt = np.empty((blocks, self.at_once), dtype=np.uint32)  # scratch; mostly unused pages
        self.level_of = np.empty((groupings, blocks, self.at_once), dtype=np.int32)
        self.capacity = CAPACITY if groups else CAPACITY_ALONE
        self.rows = 0

    def settle(self, cells: Any, levels: Any, group_cells: Any, group_levels: Any) -> None:
        """Add everything to a sketch's plain arrays and start again from zero."""

        unpack_cells(self.cells, cells[:, None])
        unpack_levels(self.levels[:, None], levels[:, None])
        unpack_cells(self.group_cells, group_cells.swapaxes(0, 1))
        unpack_levels(self.group_levels, group_levels.swapaxes(0, 1))
        carry(cells)
        self.rows = 0


def unpacked_cells(packed: Any, plain: Any) -> None:
    """Move packed cells of shape (a, b, cells, 2 or 3) into plain ones of shape (a, b, cells, 4 or more), in place."""
    plain[..., :2] += packed[..., :2] >> 40
    plain[..., 2:4] += packed[..., :2] & _SUM
    if packed.shape[-1] > 2:
        plain[..., 4] += packed[..., 2]
    packed[...] = 0


def unpacked_levels(packed: Any, plain: Any) -> None:
    """Move packed levels of shape (a, b, levels) into plain ones of shape (a, b, levels, 2), in place."""
    plain[..., 0] += packed & _LOW
    plain[..., 1] += packed >> 32
    packed[...] = 0


# ---- Compiled twins of `reference`; each takes one argument signature, so each compiles once and is cached ----

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_S16, _S20, _FINE = np.uint64(16), np.uint64(20), np.uint64(200)  # unsigned throughout: no check for negative indices
_Q, _REST, _GROUP_REST = np.uint64(0x3FFFFFFF), np.uint64(0xFFFF), np.uint64(0xFFFFF)


@njit(cache=True, nogil=True, inline="always")
def _mix(x: Any) -> Any:
    x = x + _GOLDEN
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


@njit(cache=True, nogil=True, inline="always")
def _note(faults: Any, slot: int, row: Any) -> None:
    if faults[2 * slot] == 0:
        faults[2 * slot + 1] = row
    faults[2 * slot] += 1


@njit(cache=True, nogil=True)
def _deal(
    p: Any, y: Any, codes: Any, ids: Any, first_row: int, salt: Any, dealt: Any, level_of: Any, held: Any, faults: Any
) -> None:
    """Deal each row, as ``label << 31 | q`` and its levels, to its block, or note what is wrong with it."""
    blocks = np.uint64(held.shape[0])
    own_ids = ids.shape[0] > 0
    for i in range(p.shape[0]):
        s, label = p[i], np.int64(y[i])
        if not (s >= 0.0 and s <= 1.0 and (label == 0 or label == 1)):
            if s != s:
                _note(faults, 0, first_row + i)
            elif not (s >= 0.0 and s <= 1.0):
                _note(faults, 1, first_row + i)
            if label == -1:
                _note(faults, 2, first_row + i)
            elif label != 0 and label != 1:
                _note(faults, 3, first_row + i)
            continue
        q = min(np.int64(s * 1073741824.0), np.int64(1073741823))
        who = ids[i] if own_ids else np.uint64(first_row + i)
        b = ((_mix(who ^ salt) >> _S32) * blocks) >> _S32
        at = np.uint64(held[b])
        held[b] += 1
        dealt[b, at] = np.uint32(q | (label << 31))
        for v in range(codes.shape[0]):
            level_of[v, b, at] = codes[v, i]


@njit(cache=True, nogil=True)
def _tally(
    p: Any,
    y: Any,
    codes: Any,
    bases: Any,
    ids: Any,
    first_row: int,
    salt: Any,
    dealt: Any,
    level_of: Any,
    cells: Any,
    levels: Any,
    group_cells: Any,
    group_levels: Any,
    faults: Any,
) -> None:
    """Deal the rows to blocks first, so that the counters of one block at a time stay in the cache."""
    held = np.zeros(cells.shape[0], np.int64)
    _deal(p, y, codes, ids, first_row, salt, dealt, level_of, held, faults)
    for b in range(cells.shape[0]):
        words, own, fine = dealt[b, : held[b]], cells[b, 0], levels[b]
        for at in range(words.shape[0]):
            word = np.uint64(words[at])
            q, label = word & _Q, word >> _S31
            rest = np.int64(q & _REST)
            own[q >> _S16, label] += (1 << 40) + rest
            own[q >> _S16, 2] += rest * rest
            fine[(q * _FINE) >> _S30] += 1 + np.int64(label) * 0xFFFFFFFF
        for v in range(codes.shape[0]):
            mine, groups, group_fine = level_of[v, b], group_cells[b], group_levels[b]
            for at in range(words.shape[0]):
                word = np.uint64(words[at])
                q, label = word & _Q, word >> _S31
                g = np.uint64(bases[v] + mine[at])
                groups[g, q >> _S20, label] += (1 << 40) + np.int64(q & _GROUP_REST)
                group_fine[g, (q * _FINE) >> _S30] += 1 + np.int64(label) * 0xFFFFFFFF


@njit(cache=True, nogil=True)
def unpack_cells(packed: Any, plain: Any) -> None:
    """Unpack cells; see `packing.unpack_cells`."""
    squares = packed.shape[3] > 2
    for a in range(packed.shape[0]):
        for b in range(packed.shape[1]):
            for c in range(packed.shape[2]):
                for label in range(2):
                    v = packed[a, b, c, label]
                    if v:
                        plain[a, b, c, label] += v >> 40
                        plain[a, b, c, 2 + label] += v & 0xFFFFFFFFFF
                        packed[a, b, c, label] = 0
                if squares:
                    plain[a, b, c, 4] += packed[a, b, c, 2]
                    packed[a, b, c, 2] = 0


@njit(cache=True, nogil=True)
def unpack_levels(packed: Any, plain: Any) -> None:
    """Unpack levels; see `packing.unpack_levels`."""
    for a in range(packed.shape[0]):
        for b in range(packed.shape[1]):
            for c in range(packed.shape[2]):
                v = packed[a, b, c]
                if v:
                    plain[a, b, c, 0] += v & 0xFFFFFFFF
                    plain[a, b, c, 1] += v >> 32
                    packed[a, b, c] = 0


@njit(cache=True, nogil=True)
def _hash_bytes(offsets: Any, data: Any, seed: Any, out: Any) -> None:
    prime = np.uint64(0x100000001B3)
    start = np.uint64(0xCBF29CE484222325) ^ seed
    for i in range(out.shape[0]):
        h = start
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[j])) * prime
        out[i] = _mix(h)


@njit(cache=True, nogil=True)
def _log_value(weight: Any, first: int, n: int, e: float) -> float:
    """Log of ``sum_k exp(weight_k) e^k (1 - e)^(n - k)`` over the window that starts at `first`."""
    if e <= 0.0:
        return weight[0] if first == 0 else -np.inf
    if e >= 1.0:
        return weight[-1] if first + weight.shape[0] - 1 == n else -np.inf
    step = math.log(e) - math.log1p(-e)
    base = first * step + n * math.log1p(-e)
    top = -np.inf
    for j in range(weight.shape[0]):
        v = weight[j] + j * step
        if v > top:
            top = v
    total = 0.0
    for j in range(weight.shape[0]):
        d = weight[j] + j * step - top
        if d > -45.0:
            total += math.exp(d)
    return base + top + math.log(total)


@njit(cache=True, nogil=True)
def _window(n: int, centre: float, alpha: float) -> Any:
    """First index and log weights ``ln C(n, k) - alpha (k - centre)^2 / 2`` where they can matter."""
    e = min(max(centre / n, 0.0), 1.0)
    spread = n * e * (1.0 - e) + 1.0
    reach: Any = np.int64(10.0 * math.sqrt(spread / (1.0 + alpha * spread)) + 0.02 * math.sqrt(spread)) + 12
    middle: Any = min(max(np.int64(centre + 0.5), 0), n)
    first: Any = max(middle - reach, 0)
    last: Any = min(middle + reach, n)
    weight = np.empty(last - first + 1)
    choose = math.lgamma(n + 1.0) - math.lgamma(first + 1.0) - math.lgamma(n - first + 1.0)
    for j in range(weight.shape[0]):
        k = first + j
        weight[j] = choose - 0.5 * alpha * (k - centre) ** 2
        choose += math.log((n - k) / (k + 1.0)) if k < n else 0.0
    return first, weight


@njit(cache=True, nogil=True)
def _golden_peak(n: int, centre: float, alpha: float) -> float:
    """Golden-section search of the unimodal log mean; exact to rounding, used where counts are small."""
    first, weight = _window(n, centre, alpha)
    e0 = min(max(centre / n, 0.0), 1.0)
    half = 2.0 * math.sqrt(e0 * (1.0 - e0) / n) + 2.0 / n
    low, high = max(e0 - half, 0.0), min(e0 + half, 1.0)
    ratio = 0.6180339887498949
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    fa, fb = _log_value(weight, first, n, a), _log_value(weight, first, n, b)
    best = max(_log_value(weight, first, n, low), _log_value(weight, first, n, high), fa, fb)
    while (high - low) * n > 1e-5 * (1.0 + math.sqrt(n * e0 * (1.0 - e0))):
        if fa < fb:
            low, a, fa = a, b, fb
            b = low + ratio * (high - low)
            fb = _log_value(weight, first, n, b)
        else:
            high, b, fb = b, a, fa
            a = high - ratio * (high - low)
            fa = _log_value(weight, first, n, a)
        best = max(best, fa, fb)
    return best


@njit(cache=True, nogil=True)
def _stirling_error(x: float) -> float:
    """``ln x! - ln(sqrt(2 pi x) (x / e)^x)`` (Loader 2000)."""
    if x < 16.0:
        return math.lgamma(x + 1.0) - (x + 0.5) * math.log(x) + x - 0.9189385332046727
    y = 1.0 / (x * x)
    return (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x


@njit(cache=True, nogil=True)
def _tilted(up: Any, down: Any, tilt: float) -> Any:
    """Mass, mean and second moment about the middle of the outward weights times ``tilt^(k - middle)``."""
    mass, one, two = 1.0, 0.0, 0.0
    t = 1.0
    for j in range(up.shape[0]):
        t *= tilt
        w = up[j] * t
        mass += w
        one += w * (j + 1)
        two += w * (j + 1) * (j + 1)
    t = 1.0
    for j in range(down.shape[0]):
        t /= tilt
        w = down[j] * t
        mass += w
        one -= w * (j + 1)
        two += w * (j + 1) * (j + 1)
    return mass, one / mass, two / mass


@njit(cache=True, nogil=True)
def _outward(n: int, middle: int, centre: float, alpha: float, reach: int) -> Any:
    """Weights right and left of `middle`, relative to it, of Binomial(n, middle / n) times the notch."""
    odds = middle / (n - middle)
    shrink = math.exp(-alpha)
    up, down = np.empty(min(reach, n - middle)), np.empty(min(reach, middle))
    w, g = 1.0, math.exp(-alpha * (middle - centre + 0.5))
    for j in range(up.shape[0]):
        k = middle + j
        w *= (n - k) / (k + 1.0) * odds * g
        g *= shrink
        up[j] = w
    w, g = 1.0, math.exp(alpha * (middle - centre - 0.5))
    for j in range(down.shape[0]):
        k = middle - j
        w *= k / ((n - k + 1.0) * odds) * g
        g *= shrink
        down[j] = w
    return up, down


@njit(cache=True, nogil=True)
def _notch_peak(n: int, centre: float, alpha: float) -> float:
    """Newton's method on the log odds; falls back on golden section where counts are small."""
    middle: Any = np.int64(math.floor(centre + 0.5))
    if middle < 4 or middle > n - 4:
        return _golden_peak(n, centre, alpha)
    e = middle / n
    spread = n * e * (1.0 - e)
    up, down = _outward(n, middle, centre, alpha, np.int64(9.5 * math.sqrt(spread / (1.0 + alpha * spread))) + 14)
    logit0 = math.log(e) - math.log1p(-e)
    logit, value, slope = logit0, -np.inf, 0.0
    for _ in range(12):
        q = 1.0 / (1.0 + math.exp(-logit))
        mass, mean, square = _tilted(up, down, math.exp(logit - logit0))
        value = math.log(mass) + middle * math.log(q / e) + (n - middle) * math.log((1.0 - q) / (1.0 - e))
        slope = middle + mean - n * q
        bend = square - mean * mean - n * q * (1.0 - q)
        if not bend < 0.0:
            return _golden_peak(n, centre, alpha)
        if slope * slope < -1e-13 * bend:
            break
        logit -= slope / bend
    else:
        return _golden_peak(n, centre, alpha)
    reference = _stirling_error(n * 1.0) - _stirling_error(middle * 1.0) - _stirling_error((n - middle) * 1.0)
    reference -= 0.5 * math.log(2.0 * math.pi * spread)
    return value + reference - 0.5 * alpha * (middle - centre) ** 2


@njit(cache=True, nogil=True)
def _notch_peaks(n: Any, centre: Any, alpha: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i] = _notch_peak(n[i], centre[i], alpha[i])


def _sealed(a: Any, dtype: Any) -> Any:
    """View of `a` as a read-only contiguous array, so that a kernel sees one type."""
    view = np.ascontiguousarray(a, dtype=dtype).view()
    view.flags.writeable = False
    return view


def tally(
    p: Any, y: Any, codes: Any, bases: Any, ids: Any, first_row: int, salt: int, packed: Packed, faults: Any
) -> None:
    """Add rows to packed counters, which have room for them; see `reference.tally` and `packing`."""
    packed.rows += len(p)
    _tally(
        _sealed(p, np.float64),
        _sealed(y, np.int8),
        _sealed(codes, np.int32),
        _sealed(bases, np.int64),
        _sealed(ids, np.uint64),
        int(first_row),
        np.uint64(salt),
        packed.dealt,
        packed.level_of,
        packed.cells,
        packed.levels,
        packed.group_cells,
        packed.group_levels,
        faults,
    )


def hash_bytes(offsets: Any, data: Any, seed: int) -> Any:
    """Hash variable-length byte strings to uint64; see `reference.hash_bytes`."""
    out = np.empty(len(offsets) - 1, dtype=np.uint64)
    _hash_bytes(_sealed(offsets, np.int64), _sealed(data, np.uint8), np.uint64(seed), out)
    return out


def notch_peaks(n: Any, centre: Any, alpha: Any) -> Any:
    """Return the largest log mean of each binomial's Gaussian notch; see `reference.notch_peak`."""
    out = np.empty(len(n), dtype=np.float64)
    _notch_peaks(_sealed(n, np.int64), _sealed(centre, np.float64), _sealed(alpha, np.float64), out)
    return out
