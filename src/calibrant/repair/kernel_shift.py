"""The map that moves log-odds by a smooth function of score and covariates, held as a few hundred bells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.repair.fitted import Batch, FittedMap
from calibrant.repair.inputs import Edges, indicators, log_odds
from calibrant.repair.soundness import inputs_of, known, rising, shares, sound

APART = 2.0  # squared distance of two different levels, numbers being in standard deviations
HELD = 8192  # rows taken at once
Line = tuple[int, float, tuple[float, ...], tuple[float, ...]]  # axis, width, knots, heights


@dataclass(frozen=True, kw_only=True)
class KernelShift(FittedMap):
    """The map ``expit(slope logit p + intercept + f(p, x))``, f a sum of Gaussian bells and of constants by level.

    Parameters
    ----------
    slope, intercept : float
    score : tuple of float
        Location and scale of the score; then, if its ranks are used, their table.
    edges : tuple of float
        Nearer to 0, and to 1, than these logarithms of the score are continued along their tangents.
    lines : tuple of (axis, width, knots, heights)
        Bells along one axis: 0 is the score, then the numbers.
    landmarks : tuple of tuple of float
        Score and numbers, standardised, of the rows around which the joint bells lie.
    levels_there : tuple of tuple of int
        Their levels.
    heights : tuple of float
        Of the joint bells.
    width : float
        Of the joint bells.
    kept : tuple of tuple of int
        Levels that have a constant.
    constants : tuple of float
    """

    slope: float
    intercept: float
    score: tuple[float, ...]
    edges: Edges
    lines: tuple[Line, ...] = ()
    landmarks: tuple[tuple[float, ...], ...] = ()
    levels_there: tuple[tuple[int, ...], ...] = ()
    heights: tuple[float, ...] = ()
    width: float = 1.0
    kept: tuple[tuple[int, ...], ...] = ()
    constants: tuple[float, ...] = ()

    @property
    def order(self) -> Any:
        """Kept if nothing but the overall curve is moved."""
        if self.lines or self.heights or self.constants or self.slope < 0:
            return "may change"
        return "kept" if self.slope > 0 else "kept up to ties"

    def check(self) -> None:
        """Raise `ValueError` if bells, levels and covariates do not match."""
        x, bells_there = inputs_of(self.codings), len(self.heights)
        sound(len(self.score) > 1 and self.score[1] > 0 and rising(self.score[2:]), "score must be location and scale")
        sound(min(self.edges) > 0 and shares(self.edges) and self.width > 0, "edges must lie between 0 and 1")
        for axis, width, knots, heights in self.lines:
            sound(0 <= axis <= x.numbers and width > 0, "a line is along an axis that is not there")
            sound(len(knots) == len(heights) > 0, "every knot needs a height")
        sound(len(self.landmarks) == len(self.levels_there) == bells_there, "every landmark needs levels and a height")
        sound(all(len(m) == 1 + x.numbers for m in self.landmarks), "a landmark lacks a number")
        sound(all(known([(c,) for c in own], x.levels) for own in self.levels_there), "a landmark lacks a level")
        sound(len(self.constants) == sum(map(len, self.kept)), "a level lacks its constant")
        sound(not self.constants or known(self.kept, x.levels), "kept must name levels of each level variable")

    def values(self, rows: Batch) -> Any:
        """Return the repaired scores."""
        from scipy.special import expit

        p = np.asarray(rows.p, dtype=np.float64)
        if self.order == "kept" and (self.slope, self.intercept) == (1.0, 0.0):
            return p.copy()
        eta = self.slope * log_odds(p, self.edges) + self.intercept
        if self.lines or self.heights or self.constants:
            for at in blocks(len(p)):
                eta[at] += self._shift(p[at], rows.covariates, at)
        return expit(eta)

    def _shift(self, p: Any, x: Any, at: slice) -> Any:
        z, codes = positions(p, None if x is None else x.scaled[at], self.score), codes_of(x, at, len(p))
        out = np.zeros(len(p))
        for axis, width, knots, heights in self.lines:
            out += bells(z[:, [axis]], np.array(knots)[:, None], width) @ np.array(heights)
        if self.heights:
            marks = np.array(self.landmarks), np.array(self.levels_there, dtype=np.int32).reshape(len(self.heights), -1)
            out += bells(z, marks[0], self.width, codes, marks[1]) @ np.array(self.heights)
        return out + indicators(codes, self.kept) @ np.array(self.constants) if self.constants else out


def positions(p: Any, scaled: Any, score: tuple[float, ...]) -> Any:
    """Return score and numbers on the axes of the kernels, shape (n, 1 + numbers)."""
    location, scale, *ranks = score
    own = np.interp(p, ranks, np.linspace(0.0, 1.0, len(ranks))) if ranks else p
    axis = ((own - location) / scale)[:, None]
    return axis if scaled is None else np.hstack([axis, scaled])


def codes_of(x: Any, at: slice, n: int) -> Any:
    """Return the rows' levels, with no columns where there are no covariates."""
    return np.zeros((n, 0), dtype=np.int32) if x is None else x.codes[at]


def blocks(n: int) -> Iterator[slice]:
    """Yield slices of at most 8,192 rows."""
    return (slice(a, min(a + HELD, n)) for a in range(0, n, HELD))


def squared(z: Any, marks: Any, codes: Any = None, codes_there: Any = None) -> Any:
    """Return squared distances of rows and marks: of their numbers, and `APART` for each level that differs."""
    out = (z * z).sum(axis=1)[:, None] + (marks * marks).sum(axis=1)[None, :] - 2.0 * (z @ marks.T)
    np.maximum(out, 0.0, out=out)
    for j in range(0 if codes is None else codes.shape[1]):
        out += APART * (codes[:, j][:, None] != codes_there[None, :, j])
    return out


def bells(z: Any, marks: Any, width: float, codes: Any = None, codes_there: Any = None) -> Any:
    """Return ``exp(-d^2 / (2 width^2))`` of rows and marks, shape (rows, marks)."""
    d = squared(z, marks, codes, codes_there)
    np.multiply(d, -0.5 / width**2, out=d)
    return np.exp(np.maximum(d, -300.0, out=d), out=d)
