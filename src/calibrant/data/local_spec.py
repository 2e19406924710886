"""What the sums of the local test are sums of: features fixed from a sample of rows, without their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibrant.data.coding import Coding
from calibrant.kernels.features_reference import CELLS, COORDINATE, REACH, UNIT
from calibrant.kernels.reference import mix

SCORE = "(score)"


@dataclass(frozen=True, kw_only=True)
class Line:
    """Functions of one coordinate: smooth ones, and steps.

    Parameters
    ----------
    name : str
        Of the covariate, or ``"(score)"``.
    knots : tuple of float
        Centres of the Gaussian bells, in standard deviations.
    width : float
    whitening : tuple of tuple of float
        From bells to functions that are orthonormal in the kernel's space.
    steps : tuple of int
        Cells at which a step rises from zero to one.
    """

    name: str
    knots: tuple[float, ...]
    width: float
    whitening: tuple[tuple[float, ...], ...]
    steps: tuple[int, ...]

    @property
    def smooth(self) -> int:
        """Number of smooth functions."""
        return len(self.whitening[0])

    @cached_property
    def table(self) -> Any:
        """The functions at the middle of every cell, in whole steps."""
        z = (np.arange(CELLS) + 0.5) * (2.0 * REACH / CELLS) - REACH
        bells = np.exp(-0.5 * ((z[:, None] - np.array(self.knots)) / self.width) ** 2)
        smooth = np.einsum("ck,kr->cr", bells, np.array(self.whitening))
        rises = np.arange(CELLS)[:, None] >= np.array(self.steps, dtype=np.int64)
        return np.hstack([np.clip(np.rint(UNIT * smooth), -UNIT, UNIT), rises]).astype(np.int16)


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Columns of one level variable.

    Parameters
    ----------
    name : str
    size : int
        Levels, "other" and "missing" included.
    own : int
        Levels with a column of their own, from the first on, the last one ("missing") beside them if there are more.
    shared : int
        Columns among which the remaining levels are dealt by hash.
    spread : int
        Coordinate of a level in the joint kernel, in steps; 0 if the variable does not enter it.
    """

    name: str
    size: int
    own: int
    shared: int
    spread: int

    @property
    def width(self) -> int:
        """Columns."""
        return self.own + (self.size > self.own) + self.shared

    @cached_property
    def column(self) -> Any:
        """Column of each level."""
        level = np.arange(self.size)
        if self.size == self.own:
            return level
        dealt = self.own + 1 + (mix(level.astype(np.uint64)) % np.uint64(max(self.shared, 1))).astype(np.int64)
        return np.where(level < self.own, level, np.where(level == self.size - 1, self.own, dealt))


@dataclass(frozen=True, kw_only=True)
class LocalSpec:
    """Features of the local test; two sums add up only if their specs are equal.

    Parameters
    ----------
    seed : int
    draws : int
        Simulated outcomes summed beside the data; 0 for the Gaussian null.
    score : Coding
        How the score is standardised.
    lines : tuple of Line
        The score (unless constant), then the numeric covariates.
    levels : tuple of Levels
        Of the level variables, in the order of the encoded codes.
    landmarks : tuple of tuple of int
        Coordinates of rows, in steps: score, numbers, then one a level.
    width : float
        Of the joint Gaussian kernel, in standard deviations.
    whitening : tuple of tuple of int
        From landmarks to features that are orthonormal in the joint kernel's space, in steps of 1/4096.
    """

    seed: int
    draws: int
    score: Coding
    lines: tuple[Line, ...]
    levels: tuple[Levels, ...]
    landmarks: tuple[tuple[int, ...], ...]
    width: float
    whitening: tuple[tuple[int, ...], ...]

    @property
    def joint(self) -> int:
        """Joint features."""
        return len(self.whitening[0]) if self.whitening else 0

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """First column of each line, then of each level variable, then the number of columns.

        Columns 0 and 1 are the constant and the logit; the joint features follow.
        """
        widths = [len(q.whitening[0]) + len(q.steps) for q in self.lines] + [q.width for q in self.levels]
        return tuple(int(v) for v in np.cumsum([2 + self.joint, *widths]))

    @property
    def columns(self) -> int:
        """Features in all."""
        return self.starts[-1]

    @property
    def scale(self) -> float:
        """Exponent of the joint kernel per squared step."""
        return 0.5 / (self.width * COORDINATE) ** 2

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> LocalSpec:
        """Rebuild from plain data."""
        rest: dict[str, Any] = {k: _matrix(d[k]) for k in ("landmarks", "whitening")}
        rest["score"] = Coding.from_dict(d["score"])
        rest["levels"] = tuple(Levels(**q) for q in d["levels"])
        rest["lines"] = tuple(
            Line(
                name=q["name"],
                width=q["width"],
                knots=tuple(q["knots"]),
                steps=tuple(q["steps"]),
                whitening=_matrix(q["whitening"]),
            )
            for q in d["lines"]
        )
        return cls(**(dict(d) | rest))


def _matrix(rows: Sequence[Sequence[Any]]) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(row) for row in rows)
