"""Rows in order of their score, tied rows counted together where there are many, and outcomes simulated for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibrant.kernels.draws import outcomes
from calibrant.stats.simulate import null_cases

HELD = 1 << 21  # simulated outcomes held at once
TIED = 16  # rows a distinct score, on average, from which cells are drawn instead of rows
SALT = 0xC1A551C


@dataclass(frozen=True)
class Scored:
    """Entries sorted by grade, score and weight: rows, or cells of rows that agree in all three.

    Parameters
    ----------
    p, cases : float arrays of shape (m,)
        Score of each entry, and how many of its rows have the outcome.
    rows : int64 array of shape (m,) or None
        Rows of each entry; None for one each.
    weight : float array of shape (m,) or None
        Sampling weight of each of those rows; None for one.
    grade : int64 array of shape (m,) or None
        Non-decreasing numbers of the grades; None for a single one.
    """

    p: Any
    cases: Any
    rows: Any
    weight: Any
    grade: Any

    @cached_property
    def times(self) -> Any:
        """`rows`, or ones."""
        return np.ones(len(self.p)) if self.rows is None else self.rows.astype(float)

    @cached_property
    def heft(self) -> Any:
        """`weight`, or ones."""
        return np.ones(len(self.p)) if self.weight is None else self.weight

    @cached_property
    def n(self) -> int:
        """Rows."""
        return int(self.times.sum())

    @cached_property
    def residual(self) -> Any:
        """Weighted cases less expected cases."""
        return self.heft * (self.cases - self.times * self.p)

    @cached_property
    def variance(self) -> Any:
        """Variance of `residual` if the model is calibrated."""
        return self.heft**2 * self.times * self.p * (1.0 - self.p)

    @cached_property
    def ends(self) -> Any:
        """Index of the last entry of each distinct score."""
        return np.append(np.flatnonzero(np.diff(self.p) != 0), len(self.p) - 1)

    def where(self, keep: Any) -> Scored:
        """Return the entries that are kept."""
        return Scored(
            *(None if v is None else v[keep] for v in (self.p, self.cases, self.rows, self.weight, self.grade))
        )

    @property
    def impossible_cases(self) -> int:
        """Cases among rows whose probability is exactly 0."""
        return int(self.cases[self.p == 0.0].sum())

    @property
    def impossible_others(self) -> int:
        """Non-cases among rows whose probability is exactly 1."""
        return int((self.times - self.cases)[self.p == 1.0].sum())


def scored(p: Any, y: Any, weight: Any = None, grade: Any = None) -> Scored:
    """Sort rows by grade, score and weight, and count equal ones together if they are 16 times fewer.

    The result, and what is simulated for it, does not depend on the order of the rows.
    """
    keys = tuple(k for k in (weight, p, grade) if k is not None)
    order = np.argsort(p, kind="stable") if len(keys) == 1 else np.lexsort(keys)
    s, case = p[order], y[order].astype(float)
    w, g = (None if v is None else v[order] for v in (weight, grade))
    new = np.zeros(len(s) - 1, dtype=bool)
    for v in (s, w, g):
        new |= False if v is None else np.diff(v) != 0
    first = np.flatnonzero(np.append(True, new))
    if len(first) * TIED > len(s):
        return Scored(s, case, None, w, g)
    rows = np.diff(np.append(first, len(s)))
    return Scored(s[first], np.add.reduceat(case, first), rows, *(None if v is None else v[first] for v in (w, g)))


def simulated(q: Scored, ids: Any, draws: int, seed: int) -> Iterator[tuple[slice, slice, Any]]:
    """Yield the cases of a calibrated model, ``Bernoulli(p)`` for each row, in blocks of bounded size.

    Parameters
    ----------
    q : Scored
    ids : uint64 array of shape (m,)
        Identities of the entries in their order; used where each is a row.
    draws, seed : int

    Yields
    ------
    entries, numbers : slice
        Which entries and which draws. For every draw the entries come in order.
    cases : array of shape (entries, draws) of the block
    """
    m = len(q.p)
    if q.rows is not None:
        done = 0
        for block in null_cases(q.rows, q.p, draws, seed):
            yield slice(0, m), slice(done, done + len(block)), block.T
            done += len(block)
        return
    step = max(1, HELD // draws)
    for start in range(0, m, step):
        at = slice(start, min(start + step, m))
        yield at, slice(0, draws), outcomes(ids[at], q.p[at], 0, draws, SALT)
