"""From rows or a sketch to the tables of attributes, and the family of boxes that they make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_seed, names, number, shown, whole
from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.sketches.boxes import Boxes, Layout
from calibrant.data.sketches.sample import hashes_of, identities_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sketches.units import rows_of_units, unit_ids
from calibrant.data.specs.coding import SCORE, Coding
from calibrant.data.specs.local import INSTEAD
from calibrant.data.specs.traits import Cells, Trait, cells_of, traits_of
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.boxes import SUMS
from calibrant.stats.cells import summed
from calibrant.stats.pockets.family import STEPS as SCORE_STEPS
from calibrant.stats.pockets.family import Family, Ints, family_of, runs, singles_and_pairs
from calibrant.stats.pockets.ranges import Ranges, RowRanges
from calibrant.stats.pockets.unit_ranges import FEWEST as FEWEST_UNITS
from calibrant.stats.pockets.unit_ranges import UnitRanges
from calibrant.stats.pockets.unit_ranges import unit_rows as in_units
from calibrant.stats.pockets.unit_scan import ScannedRows
from calibrant.stats.units.units import Units
from calibrant.views.coded import chunks, first_look
from calibrant.views.features import SCORE as SCORE_NAME
from calibrant.views.rules import Condition, Rule
from calibrant.views.units import units_of

Floats = NDArray[np.float64]

ORDER = 2  # traits that a box combines, by default
MIN_SIZE = 0.01  # smallest share of the rows that a box has, by default
MOST_BOXES = 2_000_000  # of a family: 30 traits by pairs, ten cells each; more would cost seconds, and width
STEPS = (1, 2, 3, 5)  # edges from one end of a run to the next
FEWEST = 20  # rows that a box has at least: of fewer, others can tell who is meant
UNSUPPORTED = "no proof covers subgroups with {}: use strong_calibration_test and subgroups, which do"


@dataclass(frozen=True, kw_only=True)
class Held:
    """Rows at hand.

    Parameters
    ----------
    cells : uint8 array of shape (traits, n)
        Cell of each row in each attribute.
    p : float64 array of shape (n,)
    y : int8 array of shape (n,)
    ids : uint64 array of shape (n,)
        Who each row is: what keys its simulated outcomes.
    """

    cells: Cells
    p: Floats
    y: NDArray[np.int8]
    ids: NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The sums of the cells of every combination of up to `order` attributes, the score among them.

    Parameters
    ----------
    layout : Layout
    sums : int64 array of shape (cells of all tables, 4)
    n : int
        Rows.
    held : Held or None
        Rows, or a uniform sample of them.
    left_out : tuple of (str, str)
        Covariates that cannot be used, and why.
    """

    layout: Layout
    sums: Ints
    n: int
    held: Held | None
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def traits(self) -> tuple[Trait, ...]:
        """The attributes."""
        return self.layout.traits

    @property
    def complete(self) -> bool:
        """Whether every row is at hand."""
        return self.held is not None and len(self.held.p) == self.n

    @property
    def tables(self) -> list[Ints]:
        """The tables one by one."""
        return [self.layout.of(self.sums, t) for t in range(len(self.layout.combined))]

    @cached_property
    def sets(self) -> tuple[Ints, ...]:
        """Sets of cells of each attribute: runs of a number, one or two levels of a category, missing values."""
        return tuple(_sets(t, 1) for t in self.traits)

    def family(self, min_size: float, fewest: int = FEWEST) -> Family:
        """Return the boxes of at least this share of the rows, and so many rows.

        A level of a category that is rarer than a box may be is part of none. Where attributes are so many that there
        would be more boxes than `MOST_BOXES`, runs start and end at every second edge, or every third, or at the middle
        one alone, and levels do not pair.
        """
        least = max(fewest_rows(min_size, self.n), fewest)
        for step in STEPS:
            sets = tuple(self._frequent(j, _sets(t, step), least) for j, t in enumerate(self.traits))
            sizes = [len(own) for own in sets]
            if sum(prod(sizes[t] for t in c) for c in self.layout.combined) <= MOST_BOXES:
                break
        conditions = [_conditions(t, own) for t, own in zip(self.traits, sets, strict=True)]
        found = family_of(self.tables, self.layout.combined, sets, conditions, self.n, least)
        if not found.size:
            raise NotComputable(f"there are {self.n:,} rows: no subgroup has {least:,} of them and not all")
        return found

    def _frequent(self, trait: int, sets: Ints, least: float) -> Ints:
        """Return the sets that have rows enough for a box to lie in them, each of two levels by itself."""
        rows = self.layout.of(self.sums, trait)[:, 0]  # the first tables are of one trait each
        below = np.concatenate([[0], np.cumsum(rows)])
        first, second = (below[sets[:, k + 1]] - below[sets[:, k]] for k in (0, 2))
        paired = sets[:, 3] > sets[:, 2]
        own: Ints = sets[np.where(paired, np.minimum(first, second), first) >= least]
        return own

    def rule(self, family: Family, box: int) -> Rule:
        """Return a box as a rule."""
        return tuple(condition(self.traits[t], own) for t, own in family.traits(box))


def _sets(t: Trait, step: int) -> Ints:
    if t.kind == "category":
        levels = [*range(len(t.levels)), t.size - 1]
        return singles_and_pairs(levels) if step == 1 else singles_and_pairs(levels)[: len(levels)]
    values = runs(0, t.size - 1)
    on_grid = (values[:, :2] % step == 0) | (values[:, :2] == t.size - 1)
    values = values[on_grid.all(axis=1)]
    return values if t.name == SCORE else np.concatenate([values, runs(t.size - 1, t.size)])


def _conditions(t: Trait, sets: Ints) -> Ints:
    """Return how many conditions describe each set: ends of a run that are not open, or levels."""
    if t.kind == "category":
        return 1 + (sets[:, 3] > sets[:, 2])
    inner = (sets[:, 0] > 0) & (sets[:, 1] < t.size - 1)
    return 1 + inner.astype(np.int64)


def condition(t: Trait, own: Ints) -> Condition:
    """Return a set of cells as a condition."""
    first, last, second, end = (int(v) for v in own)
    name = SCORE_NAME if t.name == SCORE else t.name
    if t.kind == "category":
        return of_levels(t, [*range(first, last), *range(second, end)])
    if first == t.size - 1:
        return Condition(variable=name, kind=t.kind, above=np.inf, missing=True, whole=t.whole)
    return Condition(
        variable=name,
        kind=t.kind,
        above=t.edges[first - 1] if first else None,
        up_to=t.edges[last - 1] if last <= len(t.edges) else None,
        whole=t.whole,
    )


def of_levels(t: Trait, cells: Iterable[int]) -> Condition:
    """Return cells of a category as a condition."""
    return Condition(variable=t.name, kind="category", levels=tuple(t.labels[c] for c in cells))


# ---- From rows or a sketch to tables ----


def tables_of(
    data: object, variables: Iterable[str] | str | None, order: int, seed: int, by_units: bool = False
) -> Tables:
    """Return the tables of the score and the covariates.

    Rows that come in units or are weighted are counted one each, and taken only where `by_units` says that what reads
    the tables knows of them (`unit_rows`).

    Raises
    ------
    BadInput
        No such covariate, or an order that is not 1, 2 or 3; a sketch without the sums.
    NotComputable
        Weights or clusters, unless `by_units`; over 100 covariates; three attributes of a sketch that does not hold
        every row.
    """
    given = checked_data(data, Predictions, Sketch)
    order, seed = whole("order", order, 1, 3, hint="such as 2"), checked_seed(seed)
    if isinstance(given, Sketch):
        if not (by_units and given.by_units):
            return _of_sketch(given.checked(), variables, order)
        given = rows_of_units(given)
    for what, value in (("weights", given.weights), ("cluster", given.cluster)):
        if value is not None and not by_units:
            raise NotComputable(UNSUPPORTED.format(f"{what}="))
    return _of_rows(given, variables, order, seed)


def unit_rows(data: Predictions | Sketch, tables: Tables, seed: int) -> ScannedRows | None:
    """Return the rows of tables with their clusters and weights; None where rows are independent and count alike."""
    units = units_of(data, seed)
    if units is None or tables.held is None:
        return None
    ids = unit_ids(rows_of_units(data), seed)
    together = units.count < len(units.unit)
    return ScannedRows(
        cells=tables.held.cells,
        p=units.p,
        y=units.y,
        weight=units.given,
        unit=units.unit if together else None,
        ids=np.unique(ids) if together else ids,
    )


def checked_size(name: str, value: float) -> float:
    """Return a share of the rows."""
    return number(name, value, least=0, below=1, what="a share of the rows", hint="such as 0.05")


def fewest_rows(size: float, n: int) -> int:
    """Return the rows that a share asks for: 21 of 300 are seven in a hundred, though 0.07 x 300 is a little above."""
    return int(np.ceil(round(size * n, 6)))


def _of_rows(data: Predictions, variables: Iterable[str] | str | None, order: int, seed: int) -> Tables:
    asked = None if variables is None else names("variables", variables, what="a covariate")
    if asked is not None and data.covariates is not None:  # in the order of the columns, as a sketch has them
        place = {name: j for j, name in enumerate(data.covariates.column_names)}
        asked = tuple(sorted(dict.fromkeys(asked), key=lambda name: place.get(name, len(place))))
    key = ("traits", asked, seed)
    if key not in data.cache:  # the cells of each row are made once, whatever is asked of them
        ids = identities_of(data.n, seed)
        p, table, how, left_out = first_look(data, asked, seed, ids)
        used = tuple(c for c in how if c.kind != "constant")
        traits = _few_enough(traits_of(p, table, used), used)
        cells = np.concatenate([cells_of(traits, r.p, r.encoded, used) for r in chunks(data, used, ids)], axis=1)
        constant = tuple((c.name, "it takes one value only") for c in how if c.kind == "constant")
        held = Held(cells=cells, p=data.p, y=data.y, ids=hashes_of(ids))
        data.cache[key] = traits, held, (*left_out, *constant)
    traits, held, left = data.cache[key]
    return _counted(traits, held, order, left)


def _few_enough(traits: tuple[Trait, ...], used: tuple[Coding, ...]) -> tuple[Trait, ...]:
    if not traits:
        raise NotComputable(f"{len(used)} covariates are too many for subgroups: {INSTEAD}")
    return traits


def _counted(traits: tuple[Trait, ...], held: Held, order: int, left: tuple[tuple[str, str], ...]) -> Tables:
    layout = Layout(traits, min(order, len(traits)))
    sums = np.zeros((layout.cells, SUMS), dtype=np.int64)
    layout.summed(held.cells, held.p, held.y, sums)
    return Tables(layout=layout, sums=sums, n=len(held.p), held=held, left_out=left)


def _of_sketch(sketch: Sketch, variables: Iterable[str] | str | None, order: int) -> Tables:
    if "boxes" not in sketch.parts:
        if sketch.spec.sample:
            _few_enough((), sketch.spec.codings)
        raise BadInput(
            "this sketch holds no sums of subgroups: make it with cal.sketch(..., variables=[...], tests=True)"
        )
    boxes: Boxes = sketch.parts["boxes"]
    chosen = _chosen(boxes.layout.traits, variables)
    traits = tuple(boxes.layout.traits[t] for t in chosen)
    held = _sampled(sketch, chosen)
    left = sketch.spec.left_out
    if order > 2:
        if held is None or len(held.p) < sketch.n:
            raise NotComputable(f"order={order}: a sketch holds pairs of attributes; read the rows, or pass order=2")
        return _counted(traits, held, order, left)
    layout = Layout(traits, min(order, len(traits)))
    at = {c: t for t, c in enumerate(boxes.layout.combined)}
    own = [boxes.layout.of(boxes.sums, at[tuple(chosen[i] for i in c)]).reshape(-1, SUMS) for c in layout.combined]
    return Tables(layout=layout, sums=np.concatenate(own), n=sketch.n, held=held, left_out=left)


def _chosen(traits: tuple[Trait, ...], variables: Iterable[str] | str | None) -> list[int]:
    """Return the numbers of the score and of the covariates asked for."""
    if variables is None:
        return list(range(len(traits)))
    asked = names("variables", variables, what="a covariate")
    there = [t.name for t in traits]
    for name in asked:
        if name not in there[1:]:
            raise BadInput(f"variables={shown(name)}: this sketch holds subgroups of {', '.join(there[1:])}")
    return [0, *sorted(there.index(name) for name in dict.fromkeys(asked))]


def _sampled(sketch: Sketch, chosen: list[int]) -> Held | None:
    """Return the rows that a sketch holds."""
    if "sample" not in sketch.parts:
        return None
    rows = sketch.parts["sample"].rows()
    cells = cells_of([sketch.spec.traits[t] for t in chosen], rows.p, rows.encoded, sketch.spec.codings)
    return Held(cells=cells, p=rows.p, y=rows.y, ids=rows.ids)


# ---- Ranges of boxes, by units where rows come in them or weigh ----

FEW_UNITS = (
    "there are {:,} clusters: no subgroup of at least {:g}% of the rows has {} of them, with {} more that have rows "
    "elsewhere"
)


def ranges_of(data: Predictions | Sketch, tables: Tables, min_size: float, seed: int) -> Ranges:
    """Return the ranges of the boxes with at least a share of the rows: by clusters where rows come in them or weigh.

    Raises
    ------
    NotComputable
        No box has rows enough, or clusters enough inside and outside.
    """
    units = units_of(data, seed)
    if units is None or tables.held is None:
        return RowRanges(tables.family(min_size))
    held = rows_of_units(data).cache
    key = (
        "unit boxes",
        tuple(t.name for t in tables.traits),
        tuple(map(tuple, tables.layout.combined)),
        min_size,
        seed,
    )
    if key not in held:
        rows = in_units(tables.held.cells, units.unit, units.p, units.y, units.given)
        held[key] = UnitRanges.of(tables.family(min_size), rows)
    found: UnitRanges | None = held[key]
    if found is None:
        raise NotComputable(FEW_UNITS.format(units.count, 100 * min_size, FEWEST_UNITS, FEWEST_UNITS))
    return found


def told_of_units(units: Units) -> dict[str, float]:
    """Return what the settings of a certificate of boxes tell of clusters: all certify, and none is made lighter."""
    size = units.given_size
    return {
        "units": units.count,
        "effective_units": float(size.sum() ** 2 / (size**2).sum()),
        "largest_unit": float(size.max()),
    }


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """What rows count in a search for subgroups: their weights, one on average, and how much more noise clusters make.

    Parameters
    ----------
    of : Units
    cells : Tables
    times : float array of shape (boxes,)
        Variance of each box's residual by clusters over that of independent rows.
    """

    of: Units
    cells: Tables
    times: Floats

    @property
    def shift(self) -> float:
        """Weighted mean residual of everyone."""
        return float((self.of.given * (self.of.y - self.of.p)).sum() / self.of.given.sum())

    def units(self, inside: NDArray[np.bool_]) -> int:
        """Return how many clusters have some of the rows."""
        return len(np.unique(self.of.unit[inside]))

    def tables(self, rows: NDArray[np.intp]) -> list[Floats]:
        """Return the tables of some rows: weights, weighted events, scores and null variances, two in steps."""
        return [_table(self.of, self.cells, t, rows) for t in range(len(self.cells.layout.combined))]


def _table(units: Units, tables: Tables, number: int, rows: NDArray[np.intp]) -> Floats:
    traits, held = tables.layout.combined[number], tables.held
    w, p, y = units.given[rows] / units.given.mean(), units.p[rows], units.y[rows]
    parts = (w, w * y, w * p * SCORE_STEPS, w**2 * p * (1.0 - p) * SCORE_STEPS)
    shape = tuple(tables.traits[t].size for t in traits)
    cells = np.empty((0, 0)) if held is None else held.cells[list(traits)][:, rows]
    where = np.ravel_multi_index(tuple(cells.astype(np.int64)), shape)
    return np.stack([summed(where, v, int(np.prod(shape))) for v in parts], axis=1).reshape(*shape, len(parts))


def weighed_table(units: Units, tables: Tables, number: int) -> Floats:
    """Return one table with every row counted by its weight."""
    return _table(units, tables, number, np.arange(len(units.p)))


def weighed(tables: Tables, ranges: Ranges, units: Units | None) -> Weighed | None:
    """Return what rows count; None where they are independent and alike."""
    if units is None or not isinstance(ranges, UnitRanges):
        return None
    variance = np.maximum(ranges.quiet / ranges.sums[0] ** 2, 1e-300)
    return Weighed(of=units, cells=tables, times=ranges.error**2 / variance)
