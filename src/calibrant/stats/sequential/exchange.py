r"""Whether a day's rows are like all rows before: exact for the share of a level, whatever that share is.

If the rows of the reference and of all days are exchangeable, the number of a day's rows that have a level is
hypergeometric given how many of all rows so far have it. Its randomised rank is then uniform, and independent of the
ranks of all other days (documentation: Proofs, drift). The rows of a day join those before, since a reference that
stays as it is would be wrong on every day by the same chance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# By how many standard deviations of a day's count bets are that it exceeds, or falls short of, what is expected.
SIZES = (0.1, 0.3, 1.0, 3.0)
SIGNS = (1.0, -1.0)  # the level is more frequent than before, or less
LEAST = 1e-300  # ranks below count as this: a bet then wins less than it might


def ranks(counts: Ints, rows: int, before: Ints, rows_before: int, draws: Floats) -> Floats:
    """Of each level the rank of a day's count as a standard normal number: above zero, it is more frequent than before.

    `counts` of a day's `rows` and `before` of the `rows_before`, shape (levels,); `draws` between 0 and 1 break ties.
    """
    from scipy.special import ndtri
    from scipy.stats import hypergeom

    law = rows_before + rows, before + counts, rows
    tie = hypergeom.pmf(counts, *law)
    above = hypergeom.sf(counts, *law) + draws * tie
    below = hypergeom.cdf(counts - 1, *law) + (1.0 - draws) * tie
    tail = ndtri(np.clip(np.minimum(above, below), LEAST, 0.5))
    z: Floats = np.where(above < below, -tail, tail)
    return z


def gains(z: Floats) -> Floats:
    """Log likelihood ratios of shifted ranks, shape (levels, bets): bets on more rows of a level first."""
    sizes = np.array([sign * size for sign in SIGNS for size in SIZES])
    won: Floats = z[:, None] * sizes - sizes**2 / 2.0
    return won


def start_share(look: int) -> float:
    """How much of the evidence has the start on the k-th look; over all looks they add up to one."""
    return 1.0 / (look * (look + 1.0))


def start_weights(looks: Ints) -> Floats:
    """The log of the mean `start_share` of blocks of so many looks, from the first on: shape (blocks,)."""
    last = np.cumsum(looks)
    log: Floats = np.log(1.0 / (last - looks + 1.0) - 1.0 / (last + 1.0)) - np.log(looks)
    return log
