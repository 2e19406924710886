"""Random numbers that depend on a row's identity alone: hashed names, simulated outcomes, and what they add up to.

Draw b of a row is the b-th number of the SplitMix64 stream that starts at ``mix(id ^ salt)``: it depends neither on the
other rows nor on how rows or draws are cut into chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.runtime import as_readonly, few, inlined, kernel

Floats = NDArray[np.float64]
Ids = NDArray[np.uint64]

# SplitMix64 (Steele, Lea & Flood 2014, doi:10.1145/2660193.2660195): the odd number next to 2^64 over the golden ratio,
# and the multipliers of the finaliser.
GOLDEN, FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31, _32 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_UNIT = 2.0**-53  # of 53 random bits
# FNV-1a of 64 bits (Fowler, Noll & Vo)
PRIME, BASIS = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)

LONG = 64  # bytes that take as long as a byte of all strings
DRAWS_PER_ROW = 64  # outcomes that take as long as a row of other kernels
LANES = 64  # draws in a word
AT_ONCE = 256  # draws whose sums stay in the cache together


@dataclass(frozen=True)
class Draws:
    """Which simulated outcomes: `count` draws from number `first` on; two salts give independent outcomes."""

    first: int
    count: int
    salt: int


class Stream(NamedTuple):
    """Where the numbers of each row start, for kernels: identities of shape (n,), the first draw, the salt."""

    ids: Ids
    first: np.uint64
    salt: np.uint64


def mix(x: ArrayLike) -> Ids:
    """SplitMix64's finaliser: a bijection of 64-bit integers that looks random."""
    with np.errstate(over="ignore"):
        z: Ids = np.asarray(x, dtype=np.uint64) + GOLDEN
        z = (z ^ (z >> _30)) * FIRST
        z = (z ^ (z >> _27)) * SECOND
        return z ^ (z >> _31)


def hash_split(hashed: Ids, blocks: int) -> NDArray[np.int64]:
    """The block of each row, 0 to ``blocks - 1``, equally likely, by the upper half of its hashed identity."""
    result: NDArray[np.int64] = (((hashed >> _32) * np.uint64(blocks)) >> _32).astype(np.int64)
    return result


def uniforms(ids: ArrayLike, salt: int) -> Floats:
    """One uniform number in [0, 1) a row: where it is below the rate, draw 0 of `outcomes` is 1."""
    bits = mix(mix(np.asarray(ids, dtype=np.uint64) ^ np.uint64(salt))) >> _11
    return bits.astype(np.float64) * _UNIT


@inlined
def mixed(x: np.uint64) -> np.uint64:
    x = x + GOLDEN
    x = (x ^ (x >> _30)) * FIRST
    x = (x ^ (x >> _27)) * SECOND
    return x ^ (x >> _31)


@inlined
def start(stream: Stream, i: int) -> np.uint64:
    """The state of row i; each number of its stream adds `GOLDEN` to it."""
    return mixed(stream.ids[i] ^ stream.salt) + stream.first * GOLDEN


@inlined
def uniform(state: np.uint64) -> np.float64:
    return np.float64(mixed(state) >> _11) * _UNIT


def stream(ids: ArrayLike, first: int, salt: int) -> Stream:
    """A stream as the kernels take it."""
    return Stream(as_readonly(ids, np.uint64), np.uint64(first), np.uint64(salt))


# ---- Names hashed to identities ----


def hash_bytes(offsets: ArrayLike, data: ArrayLike, seed: int) -> Ids:
    """Hash variable-length byte strings to uint64: FNV-1a, then SplitMix64.

    `offsets` (int64, shape (n + 1,)) say where each starts in `data` (uint8), as in Arrow's large layout.
    """
    starts, text = as_readonly(offsets, np.int64), as_readonly(data, np.uint8)
    longest = int(np.diff(starts).max(initial=0))
    if few(len(text) + LONG * longest, 8):
        return plain_hash_bytes(starts, text, np.uint64(seed))
    out = np.empty(len(starts) - 1, dtype=np.uint64)
    _hash_bytes(starts, text, np.uint64(seed), out)
    return out


@kernel
def _hash_bytes(offsets: NDArray[np.int64], data: NDArray[np.uint8], seed: np.uint64, out: Ids) -> None:
    for i in range(out.shape[0]):
        h = BASIS ^ seed
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[j])) * PRIME
        out[i] = mixed(h)


# ---- Outcomes, and their sums by cell ----


def outcomes(ids: ArrayLike, rate: ArrayLike, first: int, draws: int, salt: int) -> NDArray[np.uint8]:
    """Outcomes of a calibrated model: ``Y* ~ Bernoulli(rate)``, independent over rows and draws.

    `ids` (uint64) and `rate` have shape (n,), what is returned (n, draws); two salts give independent outcomes.
    """
    out = np.empty((np.size(ids), draws), dtype=np.uint8)
    write = plain_outcomes if few(out.size, DRAWS_PER_ROW, often=True) else _outcomes
    write(stream(ids, first, salt), as_readonly(rate, np.float64), out)
    return out


@kernel
def _outcomes(rows: Stream, rate: Floats, out: NDArray[np.uint8]) -> None:
    for i in range(rate.shape[0]):
        state, p = start(rows, i), rate[i]
        for b in range(out.shape[1]):
            out[i, b] = uniform(state) < p
            state += GOLDEN


def tallies(
    ids: ArrayLike, rate: ArrayLike, weight: ArrayLike | None, codes: ArrayLike, cells: int, draws: Draws
) -> Floats:
    """Weighted sums of simulated outcomes in each cell, for several ways of cutting the rows.

    Every cutting sees the same outcomes, so that their joint law is that of the data.

    Parameters
    ----------
    ids : uint64 array of shape (n,)
    rate : float64 array of shape (n,)
    weight : float64 array of shape (n,), or None
    codes : int32 array of shape (n, cuttings)
        Cell of each row in each cutting, numbered through; negative where the row belongs to none.
    cells : int
        Of all cuttings together.
    draws : Draws

    Returns
    -------
    float64 array of shape (cells, draws)
    """
    last = draws.first + draws.count
    rows = as_readonly(rate, np.float64), as_readonly(weight, np.float64), as_readonly(codes, np.int32)
    parts = []
    for first in range(draws.first, last, AT_ONCE):
        out = np.zeros((cells, min(AT_ONCE, last - first)))
        add = plain_tallies if few(len(rows[0]) * out.shape[1], DRAWS_PER_ROW, often=True) else _tallies
        add(stream(ids, first, draws.salt), *rows, out)
        parts.append(out)
    return np.concatenate(parts, axis=1)


@kernel
def _tallies(rows: Stream, rate: Floats, weight: Floats, codes: NDArray[np.int32], out: Floats) -> None:
    weighted, draws = weight.shape[0] > 0, out.shape[1]
    drawn = np.empty(draws, dtype=np.float64)
    for i in range(rate.shape[0]):
        state, p, w = start(rows, i), rate[i], weight[i] if weighted else 1.0
        for b in range(draws):
            drawn[b] = w if uniform(state) < p else 0.0
            state += GOLDEN
        for v in range(codes.shape[1]):
            c = codes[i, v]
            if c >= 0:
                for b in range(draws):
                    out[c, b] += drawn[b]


# ---- Peaks of cumulative scores ----
# Outcomes are bits, 64 draws to a word: a draw costs one masked addition a step, and all models and both signs share
# the same random numbers.

_ONE = np.uint64(1)


def words(ids: ArrayLike, low: ArrayLike, high: ArrayLike, first: int, salt: int) -> Ids:
    """64 draws of each row's outcome at two rates, from one uniform number a draw: uint64, shape (n, 2).

    Bit b is draw ``first + b`` of `outcomes`, at `low` and at `high`.
    """
    out = np.empty((np.size(ids), 2), dtype=np.uint64)
    write = plain_words if few(len(out), often=True) else _words
    write(stream(ids, first, salt), as_readonly(low, np.float64), as_readonly(high, np.float64), out)
    return out


@kernel
def _words(rows: Stream, low: Floats, high: Floats, out: Ids) -> None:
    for i in range(low.shape[0]):
        state, a, b = start(rows, i), low[i], high[i]
        below, above = np.uint64(0), np.uint64(0)
        for lane in range(LANES):
            u = uniform(state)
            below |= np.uint64(u < a) << np.uint64(lane)
            above |= np.uint64(u < b) << np.uint64(lane)
            state += GOLDEN
        out[i, 0] = below
        out[i, 1] = above


def packed(y: NDArray[np.uint8]) -> Ids:
    """Outcomes of shape (n, sets) as bits, 64 sets a word: shape (n, words), the last one filled up."""
    bits = np.packbits(np.pad(y, ((0, 0), (0, -y.shape[1] % LANES))), axis=1, bitorder="little")
    return np.ascontiguousarray(bits).view("<u8").astype(np.uint64, copy=False)


def peaks(word: ArrayLike, at: ArrayLike, gain: ArrayLike, drift: ArrayLike, scale: ArrayLike, floor: float) -> Floats:
    """``max(floor, max_k scale_k (sum_{j <= k} gain_j bit_j + drift_k))`` of each of 64 draws, over scale > 0.

    Parameters
    ----------
    word : uint64 array of shape (m,)
        64 draws of one bit each.
    at : uint64 array of shape (K,)
        The word of each step.
    gain, drift, scale : float64 arrays of shape (K,)
        What a set bit adds; what has been added by step k whatever the bits; by what the sum is multiplied. A step
        of scale 0 is not looked at.
    floor : float

    Returns
    -------
    float64 array of shape (64,)
    """
    best = np.full(LANES, float(floor))
    steps = as_readonly(gain, np.float64), as_readonly(drift, np.float64), as_readonly(scale, np.float64)
    rise = plain_peaks if few(len(steps[0]), often=True) else _peaks
    rise(as_readonly(word, np.uint64), as_readonly(at, np.uint64), *steps, best)
    return best


@kernel
def _peaks(word: Ids, at: Ids, gain: Floats, drift: Floats, scale: Floats, best: Floats) -> None:
    sums = np.zeros(LANES)
    for k in range(at.shape[0]):
        bits = word[at[k]]
        add = np.float64(gain[k]).view(np.int64)
        for lane in range(LANES):
            taken = np.int64((bits >> np.uint64(lane)) & _ONE)
            sums[lane] += np.int64(-taken & add).view(np.float64)  # the gain's own bits, or those of zero
        c = scale[k]
        if c > 0.0:
            d = drift[k]
            for lane in range(LANES):
                value = c * (sums[lane] + d)
                best[lane] = value if value > best[lane] else best[lane]


# ---- How high and low many walks get ----


class Walks(NamedTuple):
    """Where walks stand, a number a draw: weighted cases so far, and the lowest and highest point so far."""

    at: Floats
    low: Floats
    high: Floats


def extremes(events: ArrayLike, weight: ArrayLike, expected: ArrayLike, read: ArrayLike, walks: Walks) -> None:
    """Continue the walks ``sum weight events - expected`` over some rows, in place.

    Parameters
    ----------
    events : int32 array of shape (m, draws)
        Cases of each entry in each draw.
    weight, expected : float64 arrays of shape (m,)
        Weight of an event, and what is to be subtracted in all up to and with each entry.
    read : bool array of shape (m,)
        Where the walk is looked at.
    walks : Walks of shape (draws,), written
    """
    rows = as_readonly(weight, np.float64), as_readonly(expected, np.float64), as_readonly(read, np.bool_)
    walk = plain_extremes if few(np.size(events), DRAWS_PER_ROW, often=True) else _extremes
    walk(as_readonly(events, np.int32), *rows, walks)


@kernel
def _extremes(
    events: NDArray[np.int32], weight: Floats, expected: Floats, read: NDArray[np.bool_], walks: Walks
) -> None:
    at, low, high = walks.at, walks.low, walks.high
    draws = events.shape[1]
    for i in range(events.shape[0]):
        w, e = weight[i], expected[i]
        if read[i]:
            for b in range(draws):
                at[b] += w * events[i, b]
                seen = at[b] - e
                low[b] = min(low[b], seen)
                high[b] = max(high[b], seen)
        else:
            for b in range(draws):
                at[b] += w * events[i, b]


# ---- Refits: sums of outcomes in tables of two columns, and peaks of what refitted models make of them ----


class Tables(NamedTuple):
    """Where sums are kept: the two columns of each table, its first cell, and how wide its rows are."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    start: NDArray[np.int64]
    width: NDArray[np.int64]


class Refits(NamedTuple):
    """What two learners add up for a row of a fold in a data set: rules that hold it or not, and their sizes."""

    bounds: NDArray[np.int64]  # shape (folds, sets, steps, 6): column, first and last code, twice
    size: NDArray[np.float32]  # shape (folds, sets, steps)
    second: int  # first step of the second learner

    def tops(self) -> Floats:
        """The most that the sizes of each learner, and of their mean, can add up to, shape (sets, 3)."""
        far = np.abs(self.size).astype(np.float64)
        one, other = far[:, :, : self.second].sum(axis=2).max(axis=0), far[:, :, self.second :].sum(axis=2).max(axis=0)
        tops: Floats = np.maximum(np.stack([one, other, 0.5 * (one + other)], axis=1), 1e-300)
        return tops


class Bars(NamedTuple):
    """Rows as peaks see them: what a prediction must exceed upwards and downwards, the rate, the weight; float64."""

    above: Floats
    below: Floats
    rate: Floats
    weight: Floats


def table_sums(bits: Ids, weight: Floats | None, codes: NDArray[np.uint8], tables: Tables, cells: int) -> Floats:
    """Weighted sums of 64 draws in the cells of tables of two columns.

    Parameters
    ----------
    bits : uint64 array of shape (n,)
        Bit b is draw b.
    weight : float64 array of shape (n,), optional
        Without, draws are counted, which is exact and several times as fast.
    codes : uint8 array of shape (n, columns)
    tables : Tables
    cells : int
        Of all tables together.

    Returns
    -------
    float64 array of shape (cells, 64)
    """
    out, where = np.zeros((cells, LANES)), Tables(*(as_readonly(v, np.int64) for v in tables))
    drawn, at = as_readonly(bits, np.uint64), as_readonly(codes, np.uint8)
    if weight is not None:
        _table_sums(drawn, as_readonly(weight, np.float64), at, where, out)
        return out
    for first in range(0, len(drawn), COUNTED):
        rows, counts = slice(first, first + COUNTED), np.zeros((cells, LANES), dtype=np.uint16)
        _table_counts(drawn[rows], at[rows], where, counts)
        out += counts
    return out


COUNTED = (1 << 16) - 1  # rows that a count of 16 bits can hold


@kernel
def _table_counts(bits: Ids, codes: NDArray[np.uint8], tables: Tables, out: NDArray[np.uint16]) -> None:
    first, second, start, width = tables.first, tables.second, tables.start, tables.width
    drawn = np.empty(LANES, dtype=np.uint16)
    for i in range(bits.shape[0]):
        for lane in range(LANES):
            drawn[lane] = np.uint16((bits[i] >> np.uint64(lane)) & _ONE)
        for t in range(first.shape[0]):
            cell = start[t] + np.int64(codes[i, first[t]]) * width[t] + np.int64(codes[i, second[t]])
            for lane in range(LANES):
                out[cell, lane] += drawn[lane]


@kernel
def _table_sums(bits: Ids, weight: Floats, codes: NDArray[np.uint8], tables: Tables, out: Floats) -> None:
    first, second, start, width = tables.first, tables.second, tables.start, tables.width
    drawn = np.empty(LANES, dtype=np.float64)
    for i in range(bits.shape[0]):
        word, w = bits[i], weight[i]
        for lane in range(LANES):
            drawn[lane] = w * np.float64((word >> np.uint64(lane)) & _ONE)
        for t in range(first.shape[0]):
            cell = start[t] + np.int64(codes[i, first[t]]) * width[t] + np.int64(codes[i, second[t]])
            for lane in range(LANES):
                out[cell, lane] += drawn[lane]


def refit_peaks(
    bits: Ids,
    codes: NDArray[np.uint8],
    ends: NDArray[np.int64],
    refits: Refits,
    bars: Bars,
    look: tuple[int, float, float],
) -> Floats:
    """The peaks of the cumulative scores of two refitted learners and of their mean, over levels.

    Predictions beyond the bar are cut into equal levels between 0 and the most that a model's sizes can add up to. A
    row counts with the middle of its level. Levels are added up from the largest down, and looked at once they cover
    the least weight and null variance.

    Parameters
    ----------
    bits : uint64 array of shape (n,)
        Bit b is the outcome in data set b. Rows stand in the order of their folds.
    codes : uint8 array of shape (columns, n)
    ends : int64 array of shape (folds + 1,)
        Where each fold starts, and the last ends.
    refits : Refits
    bars : Bars
    look : (int, float, float)
        Levels, the least weight, and the least null variance in events.

    Returns
    -------
    float64 array of shape (sets, 3)
    """
    out = np.zeros((refits.size.shape[1], 3))
    own, at = as_readonly(bits, np.uint64), as_readonly(codes, np.uint8)
    stated = np.empty((2, own.shape[0]), dtype=np.float32)
    sums = np.empty((3, look[0], 4))
    tops = as_readonly(refits.tops(), np.float64)
    rules = Refits(as_readonly(refits.bounds, np.int64), as_readonly(refits.size, np.float32), refits.second)
    rows, where = Bars(*(as_readonly(v, np.float64) for v in bars)), as_readonly(ends, np.int64)
    for lane in range(len(out)):
        _say(at, where, rules, lane, stated)
        _levels((own >> np.uint64(lane)) & _ONE, stated, rows, tops[lane], sums)
        _highest(sums, float(look[1]), float(look[2]), out[lane])
    return out


@kernel
def _say(
    codes: NDArray[np.uint8], ends: NDArray[np.int64], refits: Refits, lane: int, stated: NDArray[np.float32]
) -> None:
    """Add up the rules that hold each row, for the two learners of its fold."""
    stated[:] = np.float32(0.0)
    for f in range(ends.shape[0] - 1):
        first, stop = ends[f], ends[f + 1]
        for s in range(refits.size.shape[2]):
            by, b = refits.size[f, lane, s], refits.bounds[f, lane, s]
            g = stated[0 if s < refits.second else 1, first:stop]
            one, other = codes[b[0], first:stop], codes[b[3], first:stop]
            lo, hi, low, high = np.uint8(b[1]), np.uint8(b[2]), np.uint8(b[4]), np.uint8(b[5])
            for i in range(g.shape[0]):
                kept = (one[i] >= lo) & (one[i] <= hi) & (other[i] >= low) & (other[i] <= high)
                g[i] += by * np.float32(kept)


@kernel
def _levels(y: Ids, stated: NDArray[np.float32], bars: Bars, tops: Floats, sums: Floats) -> None:
    """Add up scores, variances, events and weight of each level beyond the bar, of two learners and of their mean."""
    levels, half = sums.shape[1], np.float32(0.5)
    per = np.array([levels / tops[0], levels / tops[1], levels / tops[2]])
    sums[:] = 0.0
    for i in range(y.shape[0]):
        rate, w = bars.rate[i], bars.weight[i]
        spread, score = rate * (1.0 - rate), w * (np.float64(y[i]) - rate)
        for m in range(3):
            g = np.float64(stated[m, i] if m < 2 else half * stated[0, i] + half * stated[1, i])
            up, down = g - bars.above[i], -g - bars.below[i]
            excess = up if up > down else down
            if excess > 0.0:
                into = sums[m, min(np.int64(excess * per[m]), levels - 1)]
                into[0] += score if up > down else -score
                into[1] += w * w * spread
                into[2] += spread
                into[3] += w


@kernel
def _highest(sums: Floats, least: float, fewest: float, out: Floats) -> None:
    """Write the highest scaled sum from the top level down, once it covers the least weight and events; or 0."""
    levels = sums.shape[1]
    for m in range(3):
        whole = 0.0
        for k in range(levels):
            whole += ((k + 0.5) / levels) ** 2 * sums[m, k, 1]
        total, seen, events, mass, best = 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(levels - 1, -1, -1):
            h = (k + 0.5) / levels
            total += h * sums[m, k, 0]
            seen += h * h * sums[m, k, 1]
            events += sums[m, k, 2]
            mass += sums[m, k, 3]
            if events >= fewest and seen > 0.0 and mass >= least:
                best = max(best, total * (seen * whole) ** -0.25)
        out[m] = best


# ---- the same in NumPy, for few rows ----

IN_CACHE = 1 << 16  # outcomes that stay in the cache


def plain_hash_bytes(offsets: NDArray[np.int64], data: NDArray[np.uint8], seed: np.uint64) -> Ids:
    """Hash byte strings, a byte of each at a time."""
    h = np.full(len(offsets) - 1, BASIS ^ seed, dtype=np.uint64)
    sizes, bytes_ = np.diff(offsets), data.astype(np.uint64)
    for j in range(int(sizes.max(initial=0))):
        on = np.flatnonzero(sizes > j)
        h[on] = (h[on] ^ bytes_[offsets[on] + j]) * PRIME
    return mix(h)


def _uniforms(rows: Stream, draws: int) -> Floats:
    """The numbers of each row's stream, side by side."""
    start = mix(rows.ids ^ rows.salt)
    steps = (np.uint64(rows.first) + np.arange(draws, dtype=np.uint64)) * GOLDEN
    return (mix(start[:, None] + steps) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def plain_outcomes(rows: Stream, rate: Floats, out: NDArray[np.uint8]) -> None:
    """Write the outcomes of each row."""
    turn = max(1, IN_CACHE // max(1, out.shape[1]))
    for a in range(0, len(rate), turn):
        some = rows._replace(ids=rows.ids[a : a + turn])
        out[a : a + turn] = _uniforms(some, out.shape[1]) < rate[a : a + turn, None]


def plain_tallies(rows: Stream, rate: Floats, weight: Floats, codes: NDArray[np.int32], out: Floats) -> None:
    """Add weighted outcomes at the cells of each cutting."""
    hit = np.empty((len(rate), out.shape[1]), dtype=np.uint8)
    plain_outcomes(rows, rate, hit)
    drawn = hit * weight[:, None] if len(weight) else hit
    for code in codes.T:
        order = np.argsort(code, kind="stable")[int((code < 0).sum()) :]
        cells, begins = np.unique(code[order], return_index=True)
        if len(cells):
            out[cells] += np.add.reduceat(drawn[order], begins, axis=0, dtype=np.float64)


def plain_words(rows: Stream, low: Floats, high: Floats, out: Ids) -> None:
    """Write 64 draws of each row's outcome at two rates, a bit each."""
    u = _uniforms(rows, LANES)
    for k, rate in enumerate((low, high)):
        bits = np.packbits(u < rate[:, None], axis=1, bitorder="little")
        out[:, k] = bits.view("<u8")[:, 0]


def plain_peaks(word: Ids, at: Ids, gain: Floats, drift: Floats, scale: Floats, best: Floats) -> None:
    """Raise `best` to the peak of each of 64 cumulative scores."""
    if not len(at):
        return
    bits = (word[at][:, None] >> np.arange(LANES, dtype=np.uint64)) & np.uint64(1)
    seen = np.flatnonzero(scale > 0.0)
    sums = np.cumsum(gain[:, None] * bits, axis=0)[seen] + drift[seen, None]
    np.maximum(best, (scale[seen, None] * sums).max(axis=0, initial=-np.inf), out=best)


def plain_extremes(
    events: NDArray[np.int32], weight: Floats, expected: Floats, read: NDArray[np.bool_], walks: Walks
) -> None:
    """Continue walks over some rows, in place."""
    if not len(events):
        return
    path = np.cumsum(np.vstack([walks.at, weight[:, None] * events]), axis=0)[1:]
    walks.at[:] = path[-1]
    seen = (path - expected[:, None])[read]
    np.minimum(walks.low, seen.min(axis=0, initial=np.inf), out=walks.low)
    np.maximum(walks.high, seen.max(axis=0, initial=-np.inf), out=walks.high)
