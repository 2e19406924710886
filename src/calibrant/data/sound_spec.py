"""Whether a stored spec is one that this version could have fixed: what sizes the arrays is bounded before any is made."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from calibrant.data.coding import QUANTILES, Coding
from calibrant.data.coding import TOP as MOST_CODED
from calibrant.data.local_spec import SCORE, Levels, Line, LocalSpec
from calibrant.data.seed import LARGEST as LARGEST_SEED
from calibrant.data.spec import SPEC_VERSION, Spec, Variable
from calibrant.data.stored import Damaged
from calibrant.errors import BadInput
from calibrant.kernels.features_reference import CELLS as TABLE

MOST_GROUPS = 4000
MOST_BLOCKS = 64
MOST_CELLS = 1024  # along a number
MOST_SAMPLED = 10_000_000
MOST_DRAWS = 100_000
MOST_COLUMNS = 8192  # features of the local test
REACH = 1 << 24  # of a landmark's coordinates, in steps
NARROW, WIDE = 1e-5, 1e5  # of a bell, in standard deviations; coordinates have steps of 1/4096 and end at 8
LARGE = 1e6  # in absolute value, of a whitening


def check_spec(spec: Spec) -> None:
    """Refuse a spec whose fields do not fit together; the types of its fields were checked when it was rebuilt."""
    if spec.version != SPEC_VERSION:
        raise BadInput(
            f"the sketch's spec has version {spec.version}, this calibrant knows {SPEC_VERSION}: use the version that made it"
        )
    _need(1 <= spec.blocks <= MOST_BLOCKS, "spec.blocks", f"is {spec.blocks}")
    _need(0 <= spec.seed <= LARGEST_SEED, "spec.seed", "is not a seed")
    for name, given in (("key", spec.key), ("variables", [v.name for v in spec.variables])):
        _need(len(set(given)) == len(given), f"spec.{name}", "names a column twice")
    _need(not {spec.label, spec.score} & set(spec.key), "spec.key", "is the label or the score")
    for v in spec.variables:
        _check_variable(v, f"spec variable {v.name!r}")
    known = spec.by_name
    for names in spec.groupings:
        sound = 1 <= len(names) <= 2 and len(set(names)) == len(names) and set(names) <= known.keys()
        _need(sound, "spec.groupings", f"holds {names}")
    _need(len(set(spec.groupings)) == len(spec.groupings), "spec.groupings", "names one twice")
    _need(spec.group_count * spec.blocks <= 8 * MOST_GROUPS, "spec.groupings", f"has {spec.group_count:,} groups")
    _need(0 <= spec.sample <= MOST_SAMPLED, "spec.sample", f"is {spec.sample}")
    _check_codings(spec)
    if spec.local is not None:
        _check_local(spec.local, spec.codings)


def _need(sound: bool, where: str, what: str) -> None:
    if not sound:
        raise Damaged(where, what)


def increasing(values: Sequence[Any]) -> bool:
    """Tell whether every value is larger than the one before."""
    return all(a < b for a, b in pairwise(values))


def _check_variable(v: Variable, where: str) -> None:
    number = v.kind == "number"
    _need(v.folded >= 0, where, f"has {v.folded} folded values")
    _need(not (v.values if number else v.edges), where, "has both values and edges")
    _need(increasing(v.edges), where, "has edges that do not increase")
    _need(len(set(v.values)) == len(v.values), where, "has one value twice")
    _need(len(v.labels) <= MOST_GROUPS, where, f"has {len(v.labels):,} levels")


def _check_codings(spec: Spec) -> None:
    names = [c.name for c in spec.codings]
    _need(len(set(names)) == len(names), "spec.codings", "names a covariate twice")
    _need(not {spec.label, spec.score, *spec.key} & set(names), "spec.codings", "names the label, the score or the key")
    _need(bool(names) or not (spec.sample or spec.local), "spec.codings", "is empty, and there are tests")
    for c in spec.codings:
        check_coding(c, f"spec covariate {c.name!r}")


def check_coding(c: Coding, where: str) -> None:
    """Refuse a coding of a covariate that cannot be."""
    _need(c.kind != "constant" or c.name == SCORE, where, "is constant")
    _need(c.scale > 0, where, f"has scale {c.scale}")
    if c.kind == "category":
        _need(1 <= len(c.levels) <= MOST_CODED, where, f"has {len(c.levels)} levels")
        _need(len(set(c.levels)) == len(c.levels), where, "has one level twice")
        _need(not (c.ranks or c.cells or c.missing), where, "is a category with cells or ranks")
        return
    _need(not c.levels, where, "is a number with levels")
    _need(not c.ranks or len(c.ranks) == QUANTILES, where, f"has {len(c.ranks)} quantiles")
    _need(all(a <= b for a, b in pairwise(c.ranks)), where, "has quantiles that fall")
    if c.name == SCORE:
        return
    _need(2 <= len(c.cells) <= MOST_CELLS + 1, where, f"has {len(c.cells) - 1} cells")
    _need(increasing(c.cells[:-1]) and c.cells[-2] <= c.cells[-1], where, "has cells out of order")


def _check_local(s: LocalSpec, how: Sequence[Coding]) -> None:
    numbers = [c for c in how if c.kind != "category"]
    categories = [(c.name, len(c.labels)) for c in how if c.kind == "category"]
    flags = [(f"{c.name} is missing", 2) for c in numbers if c.missing]
    _need(
        0 <= s.seed <= LARGEST_SEED and 0 <= s.draws <= MOST_DRAWS, "spec.local", "has an odd seed or number of draws"
    )
    _need(s.score.name == SCORE and s.score.kind in ("number", "constant"), "spec.local.score", "is not the score")
    check_coding(s.score, "spec.local.score")
    own = [SCORE] if s.score.kind == "number" else []
    _need([q.name for q in s.lines] == own + [c.name for c in numbers], "spec.local.lines", "are not the numbers")
    _need([(q.name, q.size) for q in s.levels] == categories + flags, "spec.local.levels", "are not the levels")
    for line in s.lines:
        _check_line(line, f"spec.local line {line.name!r}")
    for q in s.levels:
        _check_levels(q, f"spec.local level {q.name!r}")
    _check_joint(s)
    _need(s.columns <= MOST_COLUMNS, "spec.local", f"has {s.columns:,} features")


def _check_line(line: Line, where: str) -> None:
    _need(0 < len(line.knots) <= MOST_CELLS and increasing(line.knots), where, "has knots that do not increase")
    _need(NARROW <= line.width <= WIDE and all(abs(v) <= WIDE for v in line.knots), where, f"has width {line.width}")
    _need(_shaped(line.whitening, len(line.knots), len(line.knots)), where, "has a whitening of the wrong shape")
    _need(all(abs(v) <= LARGE for row in line.whitening for v in row), where, "has a whitening out of reach")
    _need(increasing((-1, *line.steps, TABLE)), where, "has steps outside the table")


def _check_levels(q: Levels, where: str) -> None:
    _need(1 <= q.own <= q.size and 0 <= q.shared <= MOST_CODED, where, "has an odd number of columns")
    _need((q.shared > 0) == (q.size > q.own), where, "shares columns among no levels")
    _need(0 <= q.spread <= REACH, where, f"has spread {q.spread}")


def _check_joint(s: LocalSpec) -> None:
    where, marks = "spec.local.landmarks", len(s.landmarks)
    wide = len(s.lines) + sum(q.width for q in s.levels if q.spread)
    _need(bool(s.landmarks) == bool(s.whitening), where, "do not go with the whitening")
    _need(NARROW <= s.width <= WIDE, where, f"have width {s.width}")
    _need(marks <= MOST_CELLS and all(len(m) == wide for m in s.landmarks), where, "have the wrong shape")
    _need(not marks or _shaped(s.whitening, marks, marks), "spec.local.whitening", "has the wrong shape")
    _need(all(abs(v) <= REACH for m in s.landmarks for v in m), where, "lie out of reach")
    _need(all(abs(v) <= 1 << 40 for m in s.whitening for v in m), "spec.local.whitening", "is out of reach")


def _shaped(rows: Sequence[Sequence[Any]], high: int, wide: int) -> bool:
    """Tell whether a matrix has `high` rows of one width from 1 to `wide`."""
    return len(rows) == high and 1 <= len(rows[0]) <= wide and all(len(r) == len(rows[0]) for r in rows)
