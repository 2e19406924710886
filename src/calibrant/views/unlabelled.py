"""People by step of the score, with and without an outcome, as a sketch holds them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sketches.unlabelled import CELLS, REST, SCALE
from calibrant.errors import NotComputable
from calibrant.kernels.tally import CELL_BITS, GROUP_BITS
from calibrant.stats.unlabelled.lines import Counts
from calibrant.views.population import sketch_of

NONE_KEPT = (
    'rows without a label were not kept: pass missing="keep" (--missing keep) to predictions, read, sketch or audit'
)


@dataclass(frozen=True)
class Cells:
    """Counts by ``2^10`` cells of the score, of everyone or of some groups.

    Parameters
    ----------
    labelled : int64 array of shape (1024, 2)
        Rows by label.
    unlabelled : int64 array of shape (1024,)
    sums : int64 array of shape (1024, 2)
        Sums of the scores, out of ``2^30``, of the labelled and of the others.
    """

    labelled: NDArray[np.int64]
    unlabelled: NDArray[np.int64]
    sums: NDArray[np.int64]

    @classmethod
    def of(cls, whole: Sketch, *groups: int) -> Cells:
        """Read everyone's, or those of a group, or of several together, by their numbers."""
        if not groups:
            held = whole.cells.sum(axis=0).reshape(CELLS, -1, whole.cells.shape[-1])
            counts = held[..., :2].sum(axis=1)
            place = np.arange(held.shape[1]) << (REST - (CELL_BITS - GROUP_BITS))
            rest = (held[..., :2].sum(axis=-1) * place).sum(axis=1) + held[..., 2:4].sum(axis=(1, 2))
        else:
            own = whole.group_cells[list(groups)].sum(axis=(0, 1))
            counts, rest = own[:, :2], own[:, 2:4].sum(axis=1)
        apart = whole.parts["unlabelled"].held[[1 + g for g in groups] or [0]].sum(axis=0)
        start = np.arange(CELLS, dtype=np.int64) << REST
        sums = np.stack([counts.sum(axis=1) * start + rest, apart[:, 0] * start + apart[:, 1]], axis=1)
        return cls(counts, apart[:, 0], sums)

    @property
    def rows(self) -> int:
        """People with a label."""
        return int(self.labelled.sum())

    @property
    def missing(self) -> int:
        """People without."""
        return int(self.unlabelled.sum())

    @property
    def expected(self) -> tuple[float, float]:
        """Sum of the scores of those with a label, and of those without."""
        first, second = self.sums.sum(axis=0) / SCALE
        return float(first), float(second)

    def ranges(self, count: int, smallest: int = 1) -> list[tuple[int, int]]:
        """Cut the cells into at most so many ranges that hold about as many people each.

        In each are so many people or more, and so many with a label, or none. No label is read.
        """
        rows, every = (v.cumsum() for v in (self.labelled.sum(axis=1), self.labelled.sum(axis=1) + self.unlabelled))
        cuts = np.searchsorted(every, np.arange(1, count) * every[-1] / count) + 1
        ends = [0, *(int(c) for c in np.unique(cuts) if c < CELLS), CELLS]

        def few(a: int, b: int) -> bool:
            known, people = (int(v[b - 1] - (v[a - 1] if a else 0)) for v in (rows, every))
            return people < smallest or 0 < known < smallest

        while len(ends) > 2:
            bad = next((i for i in range(len(ends) - 1) if few(ends[i], ends[i + 1])), None)
            if bad is None:
                break
            del ends[bad if bad else 1]
        return list(pairwise(ends))

    def part(self, low: int, high: int) -> Cells:
        """Return those of a range of cells."""
        return Cells(self.labelled[low:high], self.unlabelled[low:high], self.sums[low:high])

    def stepped(self, levels: int, *, labelled_only: bool = False) -> Counts:
        """Return people by step of the score, of which there are so many to one: the middle of a cell is rounded."""
        step = np.floor((np.arange(CELLS) + 0.5) / CELLS * levels + 0.5).astype(np.int64)
        known, cases, unknown, sums = (np.zeros(levels + 1, dtype=np.int64) for _ in range(4))
        np.add.at(known, step, self.labelled.sum(axis=1))
        np.add.at(cases, step, self.labelled[:, 1])
        np.add.at(sums, step, self.sums[:, 0])
        if not labelled_only:
            np.add.at(unknown, step, self.unlabelled)
            np.add.at(sums, step, self.sums[:, 1])
        there = known + unknown > 0
        score = sums[there] / (known + unknown)[there] / SCALE
        return Counts(known[there], cases[there], unknown[there], score)


def kept(data: Predictions | Sketch, seed: int, by: tuple[str, ...] = (), intersections: bool = False) -> Sketch:
    """Return the sketch of data whose rows without a label were kept, or say how to keep them."""
    whole = sketch_of(data, seed, by, intersections)
    if "unlabelled" not in whole.parts:
        raise NotComputable(NONE_KEPT)
    return whole
