"""Hashes and simulated outcomes: those of `calibrant.kernels.draws`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels import draws as d

Floats = NDArray[np.float64]
Ids = NDArray[np.uint64]

AT_ONCE = 1 << 16  # outcomes that stay in the cache


def hash_bytes(offsets: NDArray[np.int64], data: NDArray[np.uint8], seed: np.uint64) -> Ids:
    """Hash byte strings, a byte of each at a time."""
    h = np.full(len(offsets) - 1, d.BASIS ^ seed, dtype=np.uint64)
    sizes, bytes_ = np.diff(offsets), data.astype(np.uint64)
    for j in range(int(sizes.max(initial=0))):
        on = np.flatnonzero(sizes > j)
        h[on] = (h[on] ^ bytes_[offsets[on] + j]) * d.PRIME
    return d.mix(h)


# ---- simulated outcomes ----


def _uniforms(rows: d.Stream, draws: int) -> Floats:
    """The numbers of each row's stream, side by side."""
    start = d.mix(rows.ids ^ rows.salt)
    steps = (np.uint64(rows.first) + np.arange(draws, dtype=np.uint64)) * d.GOLDEN
    return (d.mix(start[:, None] + steps) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def outcomes(rows: d.Stream, rate: Floats, out: NDArray[np.uint8]) -> None:
    """Write the outcomes of each row."""
    turn = max(1, AT_ONCE // max(1, out.shape[1]))
    for a in range(0, len(rate), turn):
        some = rows._replace(ids=rows.ids[a : a + turn])
        out[a : a + turn] = _uniforms(some, out.shape[1]) < rate[a : a + turn, None]


def tallies(rows: d.Stream, rate: Floats, weight: Floats, codes: NDArray[np.int32], out: Floats) -> None:
    """Add weighted outcomes at the cells of each cutting."""
    hit = np.empty((len(rate), out.shape[1]), dtype=np.uint8)
    outcomes(rows, rate, hit)
    drawn = hit * weight[:, None] if len(weight) else hit
    for code in codes.T:
        order = np.argsort(code, kind="stable")[int((code < 0).sum()) :]
        cells, begins = np.unique(code[order], return_index=True)
        if len(cells):
            out[cells] += np.add.reduceat(drawn[order], begins, axis=0, dtype=np.float64)


def words(rows: d.Stream, low: Floats, high: Floats, out: Ids) -> None:
    """Write 64 draws of each row's outcome at two rates, a bit each."""
    u = _uniforms(rows, d.LANES)
    for k, rate in enumerate((low, high)):
        bits = np.packbits(u < rate[:, None], axis=1, bitorder="little")
        out[:, k] = bits.view("<u8")[:, 0]


def peaks(word: Ids, at: Ids, gain: Floats, drift: Floats, scale: Floats, best: Floats) -> None:
    """Raise `best` to the peak of each of 64 cumulative scores."""
    if not len(at):
        return
    bits = (word[at][:, None] >> np.arange(d.LANES, dtype=np.uint64)) & np.uint64(1)
    seen = np.flatnonzero(scale > 0.0)
    sums = np.cumsum(gain[:, None] * bits, axis=0)[seen] + drift[seen, None]
    np.maximum(best, (scale[seen, None] * sums).max(axis=0, initial=-np.inf), out=best)


def extremes(
    events: NDArray[np.int32], weight: Floats, expected: Floats, read: NDArray[np.bool_], walks: d.Walks
) -> None:
    """Continue walks over some rows, in place."""
    if not len(events):
        return
    path = np.cumsum(np.vstack([walks.at, weight[:, None] * events]), axis=0)[1:]
    walks.at[:] = path[-1]
    seen = (path - expected[:, None])[read]
    np.minimum(walks.low, seen.min(axis=0, initial=np.inf), out=walks.low)
    np.maximum(walks.high, seen.max(axis=0, initial=-np.inf), out=walks.high)
