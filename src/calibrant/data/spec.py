"""What a sketch summarises, fixed before any label is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from calibrant.arguments import checked_seed
from calibrant.data.coding import MISSING, OTHER, Coding
from calibrant.kernels.draws import mix
from calibrant.kernels.features import CELLS, COORDINATE, REACH, UNIT

# ---- What the sums of the local test are sums of: features fixed from a sample of rows, without their labels ----

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


# ---- What a sketch summarises, fixed before any label is read: columns, levels of the variables, blocks, seed ----

SPEC_VERSION = 2
UNSPACED = 10_000  # bins of smaller numbers, years among them, are written without a space
Kind = Literal["category", "number", "month", "year"]


@dataclass(frozen=True, kw_only=True)
class Variable:
    """How one covariate becomes levels.

    Parameters
    ----------
    name : str
    kind : {"category", "number", "month", "year"}
    values : tuple of str
        Levels of a category, a month or a year, as text; empty for a number.
    edges : tuple of float
        Increasing inner edges of a number's bins, each bin closed on the left; empty for a category.
    whole : bool
        The number takes whole values only, so bins are named ``"18–24"`` and not ``"18 to 25"``.
    folded : int
        Less frequent values that share the level "other".
    """

    name: str
    kind: Kind
    values: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    whole: bool = False
    folded: int = 0

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the levels, in order; a category ends in "other", and everything in "missing".

        Where the data has such a value of its own, the reserved level is in brackets.
        """
        if self.kind == "number":
            return (*bin_labels(self.edges, self.whole), MISSING)
        return (*self.values, *(f"({r})" if r in self.values else r for r in (OTHER, MISSING)))


def bin_labels(edges: tuple[float, ...], whole: bool) -> tuple[str, ...]:
    """Name the bins between edges as a reader would."""
    if not edges:
        return ("all values",)
    space = "\u202f" if max(abs(e) for e in edges) >= UNSPACED else ""
    text = [f"{e:,.6g}".replace(",", space) for e in edges]
    if not whole:
        inner = [f"{a} to {b}" for a, b in pairwise(text)]
        return (f"under {text[0]}", *inner, f"{text[-1]} and over")
    last = [f"{e - 1:,.0f}".replace(",", space) for e in edges]
    inner = [a if a == b else f"{a}–{b}" for a, b in zip(text, last[1:], strict=False)]
    return (f"{last[0]} and under", *inner, f"{text[-1]} and over")


@dataclass(frozen=True, kw_only=True)
class Spec:
    """Everything that decides what a sketch counts; two sketches merge only if their specs are equal.

    Parameters
    ----------
    label, score : str
        Column names, for messages and reports.
    positive : str or None
        The label value that counts as a case; None when labels are 0 and 1.
    variables : tuple of Variable
    groupings : tuple of tuple of str
        Variables, or pairs of variables, whose levels are the groups.
    key : tuple of str
        Columns that identify a row; empty for file and row number.
    seed, blocks : int
        Seed and number of random blocks.
    codings : tuple of Coding
        Covariates of the curves and tests, and how each becomes numbers or levels.
    left_out : tuple of (str, str)
        Columns that were asked for by "all" and cannot be used, with the reason.
    sample : int
        Whole rows kept, at most; 0 for none.
    local : LocalSpec or None
        Features of the local test, if its sums are kept.
    """

    label: str
    score: str
    positive: str | None = None
    variables: tuple[Variable, ...] = ()
    groupings: tuple[tuple[str, ...], ...] = ()
    key: tuple[str, ...] = ()
    seed: int = 0
    blocks: int = 8
    codings: tuple[Coding, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    sample: int = 0
    local: LocalSpec | None = None
    version: int = SPEC_VERSION

    def __post_init__(self) -> None:
        checked_seed(self.seed)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns to read: score, label, variables, covariates, key; each once."""
        covariates = (c.name for c in self.codings)
        return tuple(dict.fromkeys([self.score, self.label, *self.by_name, *covariates, *self.key]))

    @cached_property
    def by_name(self) -> dict[str, Variable]:
        """Variables by name."""
        return {v.name: v for v in self.variables}

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Groups in each grouping, empty ones included."""
        out = []
        for names in self.groupings:
            size = 1
            for name in names:
                size *= len(self.by_name[name].labels)
            out.append(size)
        return tuple(out)

    @property
    def group_count(self) -> int:
        """Groups over all groupings, empty ones included."""
        return sum(self.sizes)

    def group_names(self, grouping: int) -> list[tuple[tuple[str, str], ...]]:
        """Return the ``(variable, level)`` pairs of each group of one grouping, in code order."""
        names: list[tuple[tuple[str, str], ...]] = [()]
        for variable in self.groupings[grouping]:
            names = [(*n, (variable, level)) for n in names for level in self.by_name[variable].labels]
        return names

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Spec:
        """Rebuild from plain data."""
        kept = dict(d)
        kept["variables"] = tuple(
            Variable(**(dict(item) | {k: tuple(item[k]) for k in ("values", "edges")})) for item in d["variables"]
        )
        kept["groupings"] = tuple(tuple(g) for g in d["groupings"])
        kept["key"] = tuple(d["key"])
        kept["codings"] = tuple(Coding.from_dict(c) for c in d["codings"])
        kept["local"] = None if d["local"] is None else LocalSpec.from_dict(d["local"])
        kept["left_out"] = tuple((name, why) for name, why in d["left_out"])
        return cls(**kept)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the spec."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    @property
    def counted(self) -> Spec:
        """The spec without its parts: what the counts of scores and groups depend on."""
        return replace(self, codings=(), left_out=(), sample=0, local=None)

    def salt(self, part: str) -> int:
        """Return the 64-bit number mixed into the identity of every row of a part."""
        text = f"{self.seed}\x00{part}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")
