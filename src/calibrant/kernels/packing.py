"""Packed counters: a count and a sum share one integer, and a block's counters lie together, so that they stay cached.

A packed cell holds ``count << 40 | remainder sum`` for each label and, for everyone, the sum of squares; a packed
level holds ``negatives | positives << 32``. Nothing overflows for up to `capacity` rows; then `settle` unpacks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.kernels.reference import CELL_BITS, GROUP_BITS, LEVELS, carry

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
        from calibrant.kernels.compiled import unpack_cells, unpack_levels

        unpack_cells(self.cells, cells[:, None])
        unpack_levels(self.levels[:, None], levels[:, None])
        unpack_cells(self.group_cells, group_cells.swapaxes(0, 1))
        unpack_levels(self.group_levels, group_levels.swapaxes(0, 1))
        carry(cells)
        self.rows = 0


def unpack_cells(packed: Any, plain: Any) -> None:
    """Move packed cells of shape (a, b, cells, 2 or 3) into plain ones of shape (a, b, cells, 4 or more), in place."""
    plain[..., :2] += packed[..., :2] >> 40
    plain[..., 2:4] += packed[..., :2] & _SUM
    if packed.shape[-1] > 2:
        plain[..., 4] += packed[..., 2]
    packed[...] = 0


def unpack_levels(packed: Any, plain: Any) -> None:
    """Move packed levels of shape (a, b, levels) into plain ones of shape (a, b, levels, 2), in place."""
    plain[..., 0] += packed & _LOW
    plain[..., 1] += packed >> 32
    packed[...] = 0
