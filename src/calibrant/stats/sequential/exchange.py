r"""Whether a day's rows are like all rows before: exact for the share of a level, whatever that share is.

If the rows of the reference and of all days are exchangeable, the number of a day's rows that have a level is
hypergeometric given how many of all rows so far have it. Its randomised rank is then uniform, and independent of the
ranks of all other days (documentation: Proofs, drift). The rows of a day join those before, since a reference that
stays as it is would be wrong on every day by the same chance.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# By how many standard deviations of a day's count bets are that it exceeds, or falls short of, what is expected.
SIZES = (0.1, 0.3, 1.0, 3.0)
SIGNS = (1.0, -1.0)  # the level is more frequent than before, or less
LEAST = 1e-300  # ranks below count as this: a bet then wins less than it might


def chances(counts: Ints, total: Ints | int, having: Ints, drawn: int) -> tuple[Floats, Floats, Floats]:
    """Hypergeometric chances of fewer than a count, of the count, and of more, each of shape (levels,).

    Of counts that can occur, among `drawn` of `total` rows of which `having` have each level.
    """
    ufuncs = _ufuncs()
    if ufuncs is None:
        from scipy.stats import hypergeom

        those = total, having, drawn
        return hypergeom.cdf(counts - 1, *those), hypergeom.pmf(counts, *those), hypergeom.sf(counts, *those)
    law = having, drawn, total
    least, most = np.maximum(drawn - (total - having), 0), np.minimum(having, drawn)
    fewer = np.where(counts > least, ufuncs._hypergeom_cdf(np.maximum(counts - 1, least), *law), 0.0)
    more = np.where(counts < most, ufuncs._hypergeom_sf(counts, *law), 0.0)
    equal = ufuncs._hypergeom_pmf(counts, *law)
    return np.clip(fewer, 0.0, 1.0), np.clip(equal, 0.0, 1.0), np.clip(more, 0.0, 1.0)


@cache
def _ufuncs() -> ModuleType | None:
    """What `scipy.stats.hypergeom` calls, without importing `scipy.stats`, which takes a second of CPU time.

    None where SciPy has them elsewhere, or where they do not take what they are given here.
    """
    from scipy.special import _ufuncs as module

    try:  # one of three rows that are drawn from ten, two of which have a level
        law = 2.0, 3.0, 10.0
        known = module._hypergeom_cdf(1.0, *law), module._hypergeom_pmf(1.0, *law), module._hypergeom_sf(1.0, *law)
    except (AttributeError, TypeError):
        return None
    return module if np.allclose(known, (14 / 15, 7 / 15, 1 / 15), rtol=1e-12, atol=0.0) else None


def ranks(counts: Ints, rows: int, before: Ints, rows_before: Ints | int, draws: Floats) -> Floats:
    """Of each level the rank of a day's count as a standard normal number: above zero, it is more frequent than before.

    `counts` of a day's `rows`, and `before` of the `rows_before`, which may differ by level: shape (levels,). `draws`
    between 0 and 1 break ties.
    """
    from scipy.special import ndtri

    fewer, tie, more = chances(counts, rows_before + rows, before + counts, rows)
    above = more + draws * tie
    below = fewer + (1.0 - draws) * tie
    tail = ndtri(np.clip(np.minimum(above, below), LEAST, 0.5))
    z: Floats = np.where(above < below, -tail, tail)
    return z


def gains(z: Floats) -> Floats:
    """Log likelihood ratios of shifted ranks, shape (levels, bets): bets on more rows of a level first."""
    sizes = np.array([sign * size for sign in SIGNS for size in SIZES])
    won: Floats = z[:, None] * sizes - sizes**2 / 2.0
    return won


def start_share(look: Ints) -> Floats:
    """How much of the evidence has the start on the k-th look; over all looks they add up to one. Before the first: 0.

    `look`, shape (levels,): that of each level, counted from its own first one.
    """
    k = np.maximum(look, 1)
    share: Floats = np.where(look > 0, 1.0 / (k * (k + 1.0)), 0.0)
    return share


def part(change: Ints) -> Floats:
    """The part of its alpha at which a level is named for the k-th time; over all times they add up to one."""
    parts: Floats = 6.0 / (np.pi**2 * change.astype(np.float64) ** 2)
    return parts


def start_weights(looks: Ints, before: int = 0) -> Floats:
    """The log of the mean `start_share` of blocks of so many looks, shape (blocks,); 0 of a block without a start.

    So many looks `before` the first with a start do not count.
    """
    last = np.cumsum(looks) - before
    first = np.maximum(last - looks + 1, 1)
    last = np.maximum(last, first)
    log: Floats = np.log(1.0 / first - 1.0 / (last + 1.0)) - np.log(last - first + 1.0)
    return np.where(np.cumsum(looks) > before, log, 0.0)
