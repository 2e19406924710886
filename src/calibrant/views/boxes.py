"""From rows or a sketch to the tables of attributes, and the family of boxes that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_seed, names, number, shown
from calibrant.data.predictions import Predictions, remembered
from calibrant.data.sketches.sample import hashes_of, identities_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sketches.sums import Boxes, Layout
from calibrant.data.specs.attributes import Attribute, Cells, attributes_of, cells_of
from calibrant.data.specs.coding import SCORE, Coding
from calibrant.data.specs.local import INSTEAD
from calibrant.data.survey import LEAKED
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.boxes import SUMS
from calibrant.stats.cells import summed
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.subgroups.cluster_ranges import FEWEST as FEWEST_CLUSTERS
from calibrant.stats.subgroups.cluster_ranges import ClusterRanges
from calibrant.stats.subgroups.cluster_ranges import cluster_rows as in_clusters
from calibrant.stats.subgroups.cluster_scan import ScannedClusters, ScannedRows
from calibrant.stats.subgroups.family import EVENTS, ROWS, SCORES, Family, Ints, family_of, runs, singles_and_pairs
from calibrant.stats.subgroups.family import STEPS as SCORE_STEPS
from calibrant.stats.subgroups.ranges import Ranges, RowRanges
from calibrant.views.features import SCORE as SCORE_NAME
from calibrant.views.features import chunks, first_look
from calibrant.views.kinds import ByKind
from calibrant.views.people import assumed, people_of
from calibrant.views.rules import Condition, Rule

Floats = NDArray[np.float64]

ORDER = 2  # attributes that a box combines, by default
MIN_SIZE = 0.01  # smallest share of the rows that a box has, by default
MOST_BOXES = 2_000_000  # of a family: 30 attributes by pairs, ten cells each; more would cost seconds, and width
STEPS = (1, 2, 3, 5)  # edges from one end of a run to the next
FEWEST = 20  # rows that a box has at least: of fewer, others can tell who is meant


@dataclass(frozen=True, kw_only=True)
class SampleRows:
    """Rows at hand."""

    cells: Cells  # shape (attributes, n): cell of each row in each attribute
    p: Floats  # shape (n,)
    y: NDArray[np.int8]  # shape (n,)
    ids: NDArray[np.uint64]  # shape (n,): who each row is: what keys its simulated outcomes


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The sums of the cells of every combination of up to `order` attributes, the score among them."""

    layout: Layout
    sums: Ints  # shape (cells of all tables, 4)
    n: int  # rows
    sample_rows: SampleRows | None  # rows, or a uniform sample of them
    seed: int = 0  # by which rows have their identities
    left_out: tuple[tuple[str, str], ...] = ()  # covariates that cannot be used, and why

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes."""
        return self.layout.attributes

    @property
    def rows(self) -> SampleRows:
        """Rows at hand: all, or a uniform sample."""
        if self.sample_rows is None:
            raise NotComputable("this sketch holds no rows, in which people whom subgroups share are counted")
        return self.sample_rows

    @property
    def complete(self) -> bool:
        """Whether every row is at hand."""
        return self.sample_rows is not None and len(self.sample_rows.p) == self.n

    @property
    def tables(self) -> list[Ints]:
        """The tables one by one."""
        return [self.layout.of(self.sums, t) for t in range(len(self.layout.combined))]

    @cached_property
    def sets(self) -> tuple[Ints, ...]:
        """Sets of cells of each attribute: runs of a number, one or two levels of a category, missing values."""
        return tuple(_sets(t, 1) for t in self.attributes)

    def family(self, min_size: float, fewest: int = FEWEST) -> Family:
        """The boxes of at least this share of the rows, and so many rows.

        A level of a category that is rarer than a box may be is part of none. Where attributes are so many that there
        would be more boxes than `MOST_BOXES`, runs start and end at every second edge, or every third, or at the middle
        one alone, and levels do not pair.
        """
        least = max(fewest_rows(min_size, self.n), fewest)
        for step in STEPS:
            sets = tuple(self._frequent(j, _sets(t, step), least) for j, t in enumerate(self.attributes))
            sizes = [len(own) for own in sets]
            if sum(prod(sizes[t] for t in c) for c in self.layout.combined) <= MOST_BOXES:
                break
        conditions = [_conditions(t, own) for t, own in zip(self.attributes, sets, strict=True)]
        result = family_of(self.tables, self.layout.combined, sets, conditions, self.n, least)
        if not result.size:
            raise NotComputable(f"there are {self.n:,} rows: no subgroup has {least:,} of them and not all")
        return replace(result, weight=result.weight * self._share)

    @property
    def _share(self) -> float:
        """The part of alpha that the boxes have: what was left out because of the labels keeps its own."""
        order = max(map(len, self.layout.combined))
        kept = len(self.attributes)
        every = kept + sum(why.startswith(LEAKED) for _, why in self.left_out)
        return comb(kept, order) / comb(every, order) if kept >= order else 1.0

    def _frequent(self, attribute: int, sets: Ints, least: float) -> Ints:
        """The sets that have rows enough for a box to lie in them, each of two levels by itself."""
        rows = self.layout.of(self.sums, attribute)[:, 0]  # the first tables are of one attribute each
        below = np.concatenate([[0], np.cumsum(rows)])
        first, second = (below[sets[:, k + 1]] - below[sets[:, k]] for k in (0, 2))
        paired = sets[:, 3] > sets[:, 2]
        own: Ints = sets[np.where(paired, np.minimum(first, second), first) >= least]
        return own

    def rule(self, family: Family, box: int) -> Rule:
        """A box as a rule."""
        return tuple(condition(self.attributes[t], own) for t, own in family.attributes(box))


def _sets(t: Attribute, step: int) -> Ints:
    if t.kind == "category":
        levels = [*range(len(t.levels)), t.size - 1]
        return singles_and_pairs(levels) if step == 1 else singles_and_pairs(levels)[: len(levels)]
    values = runs(0, t.size - 1)
    on_grid = (values[:, :2] % step == 0) | (values[:, :2] == t.size - 1)
    values = values[on_grid.all(axis=1)]
    return values if t.name == SCORE else np.concatenate([values, runs(t.size - 1, t.size)])


def _conditions(t: Attribute, sets: Ints) -> Ints:
    """How many conditions describe each set: ends of a run that are not open, or levels."""
    if t.kind == "category":
        return 1 + (sets[:, 3] > sets[:, 2])
    inner = (sets[:, 0] > 0) & (sets[:, 1] < t.size - 1)
    return 1 + inner.astype(np.int64)


def condition(t: Attribute, own: Ints) -> Condition:
    """A set of cells as a condition."""
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


def of_levels(t: Attribute, cells: Iterable[int]) -> Condition:
    """Cells of a category as a condition."""
    return Condition(variable=t.name, kind="category", levels=tuple(t.labels[c] for c in cells))


# ---- From rows or a sketch to tables ----


def tables_of(data: object, variables: Iterable[str] | str | None, order: int, seed: int) -> Tables:
    """The tables of the score and the covariates; rows that come in units or are weighted are counted one each.

    Raises
    ------
    BadInput
        No such covariate, or an order that is not 1, 2 or 3; a sketch without the sums.
    NotComputable
        Over 100 covariates; three attributes of a sketch that does not hold every row.
    """
    order, seed = check_int("order", order, 1, 3, hint="such as 2"), checked_seed(seed)
    return _tables(data, variables, order, seed)


def checked_size(name: str, value: float) -> float:
    """A share of the rows."""
    return number(name, value, least=0, below=1, what="a share of the rows", hint="such as 0.05")


def fewest_rows(size: float, n: int) -> int:
    """The rows that a share asks for: 21 of 300 are seven in a hundred, though 0.07 x 300 is a little above."""
    return int(np.ceil(round(size * n, 6)))


def _of_rows(data: Predictions, variables: Iterable[str] | str | None, order: int, seed: int) -> Tables:
    options = None if variables is None else names("variables", variables, what="a covariate")
    if options is not None and data.covariates is not None:  # in the order of the columns, as a sketch has them
        place = {name: j for j, name in enumerate(data.covariates.column_names)}
        options = tuple(sorted(dict.fromkeys(options), key=lambda name: place.get(name, len(place))))

    def made() -> tuple[tuple[Attribute, ...], SampleRows, tuple[tuple[str, str], ...]]:
        """The cells of each row: made once, whatever is asked of them."""
        ids = identities_of(data.n, seed)
        p, table, used, left_out = first_look(data, options, seed, ids)
        attributes = _few_enough(attributes_of(p, table, used), used)
        cells = np.concatenate([cells_of(attributes, r.p, r.encoded, used) for r in chunks(data, used, ids)], axis=1)
        kept = SampleRows(cells=cells, p=data.p, y=data.y, ids=hashes_of(ids))
        return attributes, kept, left_out

    attributes, kept, left = remembered(data, ("attributes", options, seed), made)
    return _counted(attributes, kept, order, left, seed)


def _few_enough(attributes: tuple[Attribute, ...], used: tuple[Coding, ...]) -> tuple[Attribute, ...]:
    if not attributes:
        raise NotComputable(f"{len(used)} covariates are too many for subgroups: {INSTEAD}")
    return attributes


def _counted(
    attributes: tuple[Attribute, ...], rows: SampleRows, order: int, left: tuple[tuple[str, str], ...], seed: int
) -> Tables:
    layout = Layout(attributes, min(order, len(attributes)))
    sums = np.zeros((layout.cells, SUMS), dtype=np.int64)
    layout.summed(rows.cells, rows.p, rows.y, sums)
    return Tables(layout=layout, sums=sums, n=len(rows.p), sample_rows=rows, seed=seed, left_out=left)


def _of_sketch(sketch: Sketch, variables: Iterable[str] | str | None, order: int, seed: int) -> Tables:
    seed = sketch.checked().spec.seed
    if sketch.by_clusters:
        return _of_rows(sketch.rows(), variables, order, seed)
    if "boxes" not in sketch.parts:
        if sketch.spec.sample:
            _few_enough((), sketch.spec.codings)
        raise BadInput(
            "this sketch holds no sums of subgroups: make it with cal.sketch(..., variables=[...], tests=True)"
        )
    boxes: Boxes = sketch.parts["boxes"]
    chosen = _chosen(boxes.layout.attributes, variables)
    attribute_list = tuple(boxes.layout.attributes[t] for t in chosen)
    kept = None
    if "sample" in sketch.parts:
        rows = sketch.parts["sample"].rows()
        cells = cells_of([sketch.spec.attributes[t] for t in chosen], rows.p, rows.encoded, sketch.spec.codings)
        kept = SampleRows(cells=cells, p=rows.p, y=rows.y, ids=rows.ids)
    left = sketch.spec.left_out
    if order > 2:
        if kept is None or len(kept.p) < sketch.n:
            raise NotComputable(f"order={order}: a sketch holds pairs of attributes; read the rows, or pass order=2")
        return _counted(attribute_list, kept, order, left, seed)
    layout = Layout(attribute_list, min(order, len(attribute_list)))
    at = {c: t for t, c in enumerate(boxes.layout.combined)}
    own = [boxes.layout.of(boxes.sums, at[tuple(chosen[i] for i in c)]).reshape(-1, SUMS) for c in layout.combined]
    sums = np.concatenate(own)
    return Tables(layout=layout, sums=sums, n=sketch.n, sample_rows=kept, seed=seed, left_out=left)


_tables = ByKind(rows=_of_rows, sketches=_of_sketch)


def _chosen(attributes: tuple[Attribute, ...], variables: Iterable[str] | str | None) -> list[int]:
    """The numbers of the score and of the covariates asked for."""
    if variables is None:
        return list(range(len(attributes)))
    options = names("variables", variables, what="a covariate")
    there = [t.name for t in attributes]
    for name in options:
        if name not in there[1:]:
            raise BadInput(f"variables={shown(name)}: this sketch holds subgroups of {', '.join(there[1:])}")
    return [0, *sorted(there.index(name) for name in dict.fromkeys(options))]


# ---- Whose rows boxes hold, and the ranges of boxes: by clusters where rows come in them or weigh ----

FEW_CLUSTERS = (
    "there are {:,} clusters: no subgroup of at least {:g}% of the rows has {} of them, with {} more that have rows "
    "elsewhere"
)


@dataclass(frozen=True, kw_only=True)
class Boxed:
    """Rows in the cells of boxes: independent ones, that count alike."""

    tables: Tables
    unit = "rows"

    @property
    def assumes(self) -> str:
        """What certificates take for granted of them."""
        return "independent outcomes"

    @property
    def scanned(self) -> ScannedRows | None:
        """The rows as the scan test reads them, where they come in clusters or weigh."""
        return None

    @property
    def reported(self) -> dict[str, float]:
        """What settings tell of clusters."""
        return {}

    def ranges(self, min_size: float) -> Ranges:
        """The ranges of the boxes with at least a share of the rows.

        Raises
        ------
        NotComputable
            No box has rows enough, or clusters enough inside and outside.
        """
        return RowRanges(self.tables.family(min_size))

    @property
    def gap(self) -> float:
        """What happened minus what the model says, of everyone."""
        everyone = self.table(0).sum(axis=0)
        return float((everyone[EVENTS] - everyone[SCORES] / SCORE_STEPS) / everyone[ROWS])

    @property
    def whole(self) -> Sequence[Ints]:
        """The tables of all rows, whether at hand or not."""
        return self.tables.tables

    def table(self, number: int) -> Ints | Floats:
        """One of them."""
        return self.tables.layout.of(self.tables.sums, number)

    def some(self, rows: NDArray[np.intp]) -> Sequence[Ints]:
        """The tables of some of the rows at hand."""
        layout, kept = self.tables.layout, self.tables.rows
        out = np.zeros((layout.cells, SUMS), dtype=np.int64)
        layout.summed(kept.cells[:, rows], kept.p[rows], kept.y[rows], out)
        return [layout.of(out, t) for t in range(len(layout.combined))]


@dataclass(frozen=True, kw_only=True)
class ClusterBoxed(Boxed):
    """Rows that come in clusters or weigh, one on average: all certify, and none is made lighter."""

    clusters: Clusters
    data: Predictions  # the rows themselves, with which ranges are kept
    unit = "clusters"

    @property
    def scanned(self) -> ScannedRows:
        u, ids = self.clusters, people_of(self.data).ids(self.tables.seed)
        scanned: Callable[..., ScannedRows] = ScannedRows
        if u.count < len(u.cluster):
            ids, scanned = np.unique(ids), partial(ScannedClusters, cluster=u.cluster)
        return scanned(cells=self.tables.rows.cells, p=u.p, y=u.y, weight=u.input_weights, ids=ids)

    @property
    def assumes(self) -> str:
        return assumed(self.clusters)

    @property
    def reported(self) -> dict[str, float]:
        size = self.clusters.size_at
        return {
            "clusters": self.clusters.count,
            "effective_clusters": float(size.sum() ** 2 / (size**2).sum()),
            "largest_cluster": float(size.max()),
        }

    def ranges(self, min_size: float) -> Ranges:
        u, layout = self.clusters, self.tables.layout

        def made() -> ClusterRanges | None:
            rows = in_clusters(self.tables.rows.cells, u.cluster, u.p, u.y, u.input_weights)
            return ClusterRanges.of(self.tables.family(min_size), rows)

        boxes = tuple(t.name for t in layout.attributes), tuple(map(tuple, layout.combined))
        result = remembered(self.data, ("unit boxes", *boxes, min_size, self.tables.seed), made)
        if result is None:
            raise NotComputable(FEW_CLUSTERS.format(u.count, 100 * min_size, FEWEST_CLUSTERS, FEWEST_CLUSTERS))
        return result

    @property
    def gap(self) -> float:
        u = self.clusters
        return float((u.input_weights * (u.y - u.p)).sum() / u.input_weights.sum())

    @property
    def whole(self) -> Sequence[Ints]:
        return self.some(np.arange(len(self.clusters.p)))

    def table(self, number: int) -> Floats:
        return self._table(number, np.arange(len(self.clusters.p)))

    def some(self, rows: NDArray[np.intp]) -> Sequence[Ints]:
        return [self._table(t, rows) for t in range(len(self.tables.layout.combined))]  # type: ignore[misc]

    def _table(self, number: int, rows: NDArray[np.intp]) -> Floats:
        """Weights, weighted events, scores and null variances of some rows, two in steps."""
        u, attributes = self.clusters, self.tables.layout.combined[number]
        w, p, y = u.input_weights[rows] / u.input_weights.mean(), u.p[rows], u.y[rows]
        parts = (w, w * y, w * p * SCORE_STEPS, w**2 * p * (1.0 - p) * SCORE_STEPS)
        shape = tuple(self.tables.attributes[t].size for t in attributes)
        cells = self.tables.rows.cells[list(attributes)][:, rows]
        where = np.ravel_multi_index(tuple(cells.astype(np.int64)), shape)
        return np.stack([summed(where, v, int(np.prod(shape))) for v in parts], axis=1).reshape(*shape, len(parts))

    def people(self, inside: NDArray[np.bool_]) -> int:
        """How many clusters have some of the rows."""
        return people_of(self.data).sides(inside)[0]


def boxed(data: Predictions | Sketch, tables: Tables) -> Boxed:
    """The rows of tables as they come."""
    people = people_of(data)
    clusters = people.clusters(tables.seed)
    if clusters is None:
        return Boxed(tables=tables)
    return ClusterBoxed(tables=tables, clusters=clusters, data=people.rows)
