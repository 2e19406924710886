"""Rows counted by the score itself, one by one in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.kernels.tally import fixed_point


def numbers_of(p: Any, scores: list[int], most: int) -> list[int]:
    """The number of each score; new ones are added to `scores`, and -1 stands from the first without room on."""
    out: list[int] = []
    for q in fixed_point(p).tolist():
        if q not in scores:
            if len(scores) == most:
                break
            scores.append(q)
        out.append(scores.index(q))
    return out + [-1] * (len(p) - len(out))


def count_numbers(numbers: Any, y: Any, groups: Any, bases: Any, counts: Any) -> None:
    """Rows of everyone and of each group, added by number and label."""
    np.add.at(counts[0], (numbers, y), 1)
    for levels, base in zip(groups, bases, strict=True):
        np.add.at(counts, (1 + base + levels, numbers, y), 1)
