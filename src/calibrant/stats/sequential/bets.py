r"""What a day's outcomes win for bets that a score misses by more than a tolerance, by direction and size of the bet.

A *direction* says of every row how much of a bet it takes, between -1 and 1, from the score and covariates alone: all
rows alike, a level of a variable, a function of the score. A bet on a direction wins where outcomes exceed the scores
along it. Whatever the direction and the size, the mean of what a day multiplies wealth by is at most one as long as
every row's probability is within the tolerance of its score (documentation: Proofs, monitoring).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.cells import summed

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]

# Log odds ratios that independent rows are bet to be off by: a difference of half a point at a score of one half is
# 0.02, of five points 0.2; the largest is a slope of about two, or a rare event that is twice as frequent.
TILTS = (0.04, 0.1, 0.2, 0.4, 0.8)
# Shares of its wealth that a bet may lose on the cluster, or the day, that can lose most.
FRACTIONS = (0.03, 0.1, 0.3, 0.9)
SIGNS = (1.0, -1.0)  # outcomes exceed the scores along the direction, or stay below them


@dataclass(frozen=True)
class Levels:
    """A partition of the rows: each level is a direction, which its rows take whole."""

    codes: Codes  # shape (n,)
    size: int

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows of each level."""
        return np.bincount(self.codes, minlength=self.size)

    def sums(self, values: Floats, cluster: Codes, clusters: int) -> Floats:
        """Sums of values by level and cluster, shape (size, clusters)."""
        at = self.codes.astype(np.int64) * clusters + cluster
        return summed(at, values, self.size * clusters).reshape(self.size, clusters)


@dataclass(frozen=True)
class Function:
    """One direction: how much of a bet each row takes, in [-1, 1]."""

    values: Floats  # shape (n,)

    size = 1

    @property
    def rows(self) -> NDArray[np.int64]:
        """All rows."""
        return np.array([len(self.values)])


Direction: TypeAlias = Levels | Function
Kind = TypeVar("Kind", Levels, Function)


def bet_count(independent_rows: bool) -> int:
    """How many bets are made on each direction."""
    return len(SIGNS) * len(TILTS if independent_rows else FRACTIONS)


def row_gains(y: Floats, p: Floats, directions: Sequence[Direction], tolerance: float) -> Floats:
    r"""Log likelihood ratios of independent rows, shape (directions, bets): outcomes that exceed the scores first.

    A row of direction f wins ``d f y - ln(1 - p' + p' e^(d f))``, where p' is the score moved by the tolerance towards
    what is bet on, and cut to [0, 1]: the logarithm of a ratio of mean one at p', and of at most one at every
    probability on the other side of p'.
    """
    gains = np.zeros((sum(d.size for d in directions), bet_count(True)))
    room = (
        np.empty_like(p),
        np.empty_like(p),
    )  # arrays of a million rows are written over, which is faster than new ones
    starts = np.cumsum([0, *(d.size for d in directions)])
    levels = [(first, d.codes.astype(np.intp), d.size) for first, d in _of(Levels, directions, starts)]
    for i, sign in enumerate(SIGNS):
        columns = [(i * len(TILTS) + j, sign * tilt) for j, tilt in enumerate(TILTS)]
        moved = _moved(p, sign * tolerance)
        for column, tilt in columns:
            whole = _log_ratio(y, moved, tilt, room)
            for first, codes, size in levels:
                gains[first : first + size, column] = summed(codes, whole, size)
        for first, d in _of(Function, directions, starts):
            moved = _moved(p, np.sign(sign * d.values) * tolerance)
            for column, tilt in columns:
                gains[first, column] = _log_ratio(y, moved, np.multiply(d.values, tilt, out=room[0]), room).sum()
    return gains


def _of(kind: type[Kind], directions: Sequence[Direction], starts: NDArray[np.int64]) -> Iterator[tuple[int, Kind]]:
    """The directions of a kind, each with the place of its first row of gains."""
    return ((int(first), d) for first, d in zip(starts, directions, strict=False) if isinstance(d, kind))


def _moved(p: Floats, by: float | Floats) -> Floats:
    moved = p + by
    return np.clip(moved, 0.0, 1.0, out=moved)


def _log_ratio(y: Floats, p: Floats, tilt: float | Floats, room: tuple[Floats, Floats]) -> Floats:
    """The log likelihood ratio of each row, in the second array of `room`; the first may hold the tilts."""
    ratio = np.multiply(p, np.expm1(tilt, out=room[1]) if isinstance(tilt, np.ndarray) else np.expm1(tilt), out=room[1])
    np.log1p(ratio, out=ratio)
    return np.subtract(np.multiply(tilt, y, out=room[0]), ratio, out=ratio)


def cluster_gains(
    y: Floats, p: Floats, directions: Sequence[Direction], tolerance: float, cluster: Codes, clusters: int
) -> Floats:
    r"""Log wealth of bets on whole clusters, shape (directions, bets), whatever the dependence within a cluster.

    With ``s`` the sum of ``f (y - p)`` over a cluster, and ``a`` that of ``|f|``, the cluster multiplies wealth by ``1
    + kappa (s - tolerance a)``, which is linear in every outcome, so that its mean follows from each row's own
    probability. All rows of a day as one cluster allow for shocks that a day's rows share. kappa follows from the
    scores: on the cluster that can lose most a bet loses at most its fraction.
    """
    gains = []
    for d in directions:
        if isinstance(d, Levels):
            sums = [d.sums(v, cluster, clusters) for v in (y - p, p, np.ones(len(p)))]
        else:
            f = d.values
            lost = np.maximum(f, 0.0) * p + np.maximum(-f, 0.0) * (1.0 - p)
            sums = [summed(cluster, v, clusters)[None] for v in (f * (y - p), lost, np.abs(f))]
        value, below, size = sums  # the sum s, how far it can fall below zero, and the sum a
        for sign, most in zip(SIGNS, (below, size - below), strict=True):
            worst = (most + tolerance * size).max(axis=1, keepdims=True)
            won = (sign * value - tolerance * size) / np.maximum(worst, 1e-300)  # at least -1
            gains.append(np.stack([np.log1p(c * won).sum(axis=1) for c in FRACTIONS], axis=1))
    each = len(SIGNS)
    return np.concatenate([np.concatenate(gains[i : i + each], axis=1) for i in range(0, len(gains), each)])
