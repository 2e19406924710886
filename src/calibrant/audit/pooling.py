"""Small groups are never shown alone, and never recoverable by subtraction from totals."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.audit.rounding import few
from calibrant.data.layouts import decoded
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.coding import MISSING, OTHER
from calibrant.data.specs.spec import Spec, Variable
from calibrant.repair import disclosure
from calibrant.results import Outcome
from calibrant.views.people import people_of
from calibrant.views.population import Population
from calibrant.views.sample import groups_of

MASK = disclosure.MASK  # people under whom a count is not shown: of fewer, others can tell who is meant
FEWEST = 5  # that a caller may set it to: of fewer, a pool is as good as a list of its people
RATED = re.compile(r"grade|rating|class|tier|band|stage", re.IGNORECASE)  # columns whose letters are in order
Name = tuple[tuple[str, str], ...]  # a group: pairs of variable and level


def pool_levels(rows: Sequence[int], smallest: int, order: Sequence[int] = ()) -> list[tuple[int, ...]]:
    """Pool the levels of one variable.

    Parameters
    ----------
    rows : sequence of int
        People per level.
    smallest : int
        Counts below this are not shown.
    order : sequence of int
        The levels that have an order, from the lowest to the highest; none if levels are names.

    Returns
    -------
    list of tuple of int
        Groups of level indices: singles, then pools. Of names there is at most one pool, of every small level and as
        many of the next smallest as it takes to have two members and `smallest` people. Levels in order are pooled
        with neighbours only, and one without a place, such as "missing", with the smallest. Without a small level there
        is no pool. If everything would be pooled, the list is empty: the pool would be everyone.
    """
    present = [i for i in range(len(rows)) if rows[i] > 0]
    small = [i for i in present if rows[i] < smallest]
    if not small:
        return [(i,) for i in present]
    if order:
        return _neighbours(rows, smallest, [i for i in order if rows[i] > 0], [i for i in small if i not in set(order)])
    order = sorted(present, key=lambda i: (rows[i], i))
    size = len(small)
    while size < len(order) and (size < 2 or sum(rows[i] for i in order[:size]) < smallest):
        size += 1
    if size == len(order):
        return []
    pool = set(order[:size])
    return [*((i,) for i in present if i not in pool), tuple(sorted(pool))]


def _neighbours(
    rows: Sequence[int], smallest: int, order: Sequence[int], placeless: Sequence[int]
) -> list[tuple[int, ...]]:
    """Join levels in order to runs of people enough, the smallest run first, to the smaller of its neighbours."""

    def people(run: Sequence[int]) -> int:
        return sum(rows[i] for i in run)

    runs = [[i] for i in order]
    if placeless and runs:  # they have no neighbours
        runs[min(range(len(runs)), key=lambda k: (people(runs[k]), k))].extend(placeless)
    while len(runs) > 1:
        at = min(range(len(runs)), key=lambda k: (people(runs[k]), k))
        if people(runs[at]) >= smallest:
            break
        neighbor = min((k for k in (at - 1, at + 1) if 0 <= k < len(runs)), key=lambda k: (people(runs[k]), k))
        first, last = sorted((at, neighbor))
        runs[first : last + 1] = [runs[first] + runs[last]]
    others = [[i] for i in range(len(rows)) if rows[i] > 0 and i not in {*order, *placeless}]
    whole = [*runs, *others]
    if len(whole) < 2 or min(map(people, whole)) < smallest:
        return []
    return [tuple(g) for g in sorted(whole, key=lambda g: (len(g) > 1, g[0]))]


def order_of(name: str, labels: Sequence[str | None], numbered: bool = False) -> tuple[int, ...]:
    """The levels of a variable that have an order, in it: bins, dates, numbers, and the letters of a rating.

    None of a variable whose levels are names. `numbered`: its levels, but for the last that says they are missing,
    come in order.
    """
    if numbered:
        return tuple(range(len(labels) - 1))
    there = [i for i, label in enumerate(labels) if label not in (None, MISSING, OTHER, f"({MISSING})", f"({OTHER})")]
    texts = {i: str(labels[i]) for i in there}
    try:
        numbers = {i: float(text) for i, text in texts.items()}
    except ValueError:
        if not (RATED.search(name) and all(len(v) == 1 and v.isalpha() for v in texts.values())):
            return ()
        return tuple(sorted(there, key=texts.__getitem__))
    return tuple(sorted(there, key=numbers.__getitem__))


def pool_pairs(rows: NDArray[np.int64], smallest: int) -> list[tuple[int, ...]]:
    """Pool the cells of a two-way table whose margins may be known.

    A pooled cell can be solved for from the margins exactly when, in the graph that joins row and column levels by
    pooled cells, it is a bridge. So the next smallest cells join the pool until no small cell is a bridge. And a level
    less its cells that are shown is those that are pooled: they join until these are people enough, or none; not of a
    level of few, which is not shown.

    Parameters
    ----------
    rows : int array of shape (a, b)
    smallest : int

    Returns
    -------
    list of tuple of int
        Groups of flat cell indices, as `pool_levels`.
    """
    flat = rows.reshape(-1)
    present = [int(i) for i in np.flatnonzero(flat)]
    small = {i for i in present if flat[i] < smallest}
    if not small:
        return [(i,) for i in present]
    order = sorted(present, key=lambda i: (flat[i], i))
    size = len(small)
    while size < len(order):
        pool = order[:size]
        rests = np.zeros_like(flat)
        rests[pool] = flat[pool]
        sides = [rests.reshape(rows.shape).sum(axis=axis)[rows.sum(axis=axis) >= smallest] for axis in (0, 1)]
        enough = all(not 0 < rest < smallest for side in sides for rest in side.tolist())
        if enough and flat[pool].sum() >= smallest and not any(_is_bridge(i, pool, rows.shape[1]) for i in small):
            return [*((i,) for i in present if i not in set(pool)), tuple(sorted(pool))]
        size += 1
    return []


def _is_bridge(cell: int, pool: Sequence[int], columns: int) -> bool:
    """Whether the ends of `cell` fall apart when it is removed from the pooled cells."""
    start, goal = ("row", cell // columns), ("column", cell % columns)
    edges: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for i in pool:
        if i != cell:
            a, b = ("row", i // columns), ("column", i % columns)
            edges.setdefault(a, []).append(b)
            edges.setdefault(b, []).append(a)
    seen, stack = {start}, [start]
    while stack:
        for other in edges.get(stack.pop(), ()):
            if other == goal:
                return False
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return True


def pooled_rows(rows: Predictions, smallest: int) -> Predictions:
    """Rows with small levels joined, as `pool_levels`; a category that pools away altogether is left out.

    Where no level is small these are the same rows, and what was remembered with them.
    """
    import pyarrow as pa

    if rows.covariates is None:
        return rows
    columns, same = {}, True
    for name in rows.covariates.schema.names:
        column = decoded(rows.covariates.column(name))
        pooled = _pooled_text(name, column, rows, smallest) if pa.types.is_string(column.type) else column
        same &= pooled is column
        if pooled is not None:
            columns[name] = pooled
    return rows if same else replace(rows, covariates=pa.table(columns) if columns else None, cache={})


def _pooled_text(name: str, column: Any, rows: Predictions, smallest: int) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = pc.dictionary_encode(column)
    labels, codes = coded.dictionary.to_pylist(), coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    counts = people_of(rows).among(np.where(codes < 0, len(labels), codes), len(labels) + 1).tolist()
    groups = pool_levels(counts, smallest, order_of(name, [*labels, None]))
    if not groups:
        return None
    if all(len(members) == 1 for members in groups):
        return column
    names, new = [*labels, None], np.full(len(labels) + 1, -1, dtype=np.int32)
    titles: list[str] = []
    for members in groups:
        title = names[members[0]]
        if len(members) > 1:
            named = [MISSING if names[m] is None else names[m] for m in members]
            title = pool_name(named, [counts[m] for m in members], smallest)
            while title in labels or title in titles:  # a value of the data, or another pool, that reads so
                title += " (pooled)"
        for m in members:
            new[m] = len(titles) if title is not None else -1
        titles += [] if title is None else [title]
    return pa.DictionaryArray.from_arrays(pa.array(new[codes], mask=new[codes] < 0), pa.array(titles, pa.string()))


def pooled_counts(sketch: Sketch, smallest: int) -> Sketch:
    """A sketch whose counts along each category have small levels joined, as `pool_levels`.

    A pool is counted at its first level, and the others have none; all of a category that pools away is one level.
    """
    fine = dict(sketch.parts["fine"].stored) if "fine" in sketch.parts else {}
    for coding in (c for c in sketch.spec.codings if c.kind == "category" and c.name in fine):
        values = fine[coding.name]
        fine[coding.name] = _joined(values, _pools(coding.name, coding.labels, values[..., 0], smallest))
    cells, base = sketch.group_cells, 0
    for names, size in zip(sketch.spec.groupings, sketch.spec.sizes, strict=True):
        if len(names) == 1 and (v := sketch.spec.by_name[names[0]]).kind == "category":
            own = slice(base, base + size)
            if pools := _pools(v.name, v.labels, cells[own][..., :2], smallest):
                cells = cells.copy() if cells is sketch.group_cells else cells
                cells[own] = _joined(cells[own], pools)
        base += size
    return sketch.recounted(cells, fine)


def _pools(name: str, labels: Sequence[str | None], rows: NDArray[np.int64], smallest: int) -> list[tuple[int, ...]]:
    """The levels that are joined, of counts whose first axis is the level."""
    people = rows.reshape(len(rows), -1).sum(axis=1).tolist()
    whole = [tuple(i for i, n in enumerate(people) if n)]
    groups = pool_levels(people, smallest, order_of(name, labels)) or whole
    return [group for group in groups if len(group) > 1]


def _joined(values: NDArray[np.int64], pools: Sequence[tuple[int, ...]]) -> NDArray[np.int64]:
    """The same sums with each pool's at its first level."""
    if not pools:
        return values
    out = values.copy()
    for first, *others in pools:
        out[first] += out[others].sum(axis=0)
        out[others] = 0
    return out


def pool_name(labels: Sequence[str], people: Sequence[int], smallest: int) -> str:
    """Name a pool by its members of people enough, two at most where there are others, and how many others there are.

    A level of few people is never named: that it occurs at all can say who is meant.
    """
    known = [label for label, rows in zip(labels, people, strict=True) if rows >= smallest]
    if not known:
        return f"{len(labels):,} levels pooled"
    if len(known) == len(labels) <= 3:
        return " + ".join(known)
    named = known[:2]
    return " + ".join([*named, f"{len(labels) - len(named)} more"])


# ---- what of an audit may be shown ----


def group_populations(sketch: Sketch, mask: int = MASK) -> list[tuple[Name, Population, int]]:
    """Name, population and pool size of every group that may be shown."""
    shown = shown_groups(sketch, mask)
    result = groups_of(sketch, sketch, [members for _, members, _ in shown], sketch.spec.seed)
    return [(name, q, size) for (name, _, size), q in zip(shown, result, strict=True)]


def shown_groups(sketch: Sketch, mask: int = MASK) -> list[tuple[Name, list[int], int]]:
    """Name, numbers in the sketch and pool size of every group that may be shown.

    Levels that are pooled in their own variable stay together in every pair table; otherwise a pooled level's
    count would follow from the pair table's margins.
    """
    out: list[tuple[Name, list[int], int]] = []
    base, rows = 0, people_of(sketch).in_groups(sketch)
    pools: dict[str, list[tuple[int, ...]]] = {}
    people: dict[Name, int] = {}
    for g, names in enumerate(sketch.spec.groupings):
        size = sketch.spec.sizes[g]
        if len(names) == 1:
            v = sketch.spec.by_name[names[0]]
            order = order_of(v.name, v.labels, v.kind != "category")
            shown = pools[names[0]] = pool_levels(rows[base : base + size].tolist(), mask, order)
        else:
            shown = pair_pools(rows[base : base + size], pools[names[0]], pools[names[1]], sketch.spec, names, mask)
        labels = sketch.spec.group_names(g)
        people |= {label: int(n) for label, n in zip(labels, rows[base : base + size], strict=True)}
        for members in shown:
            present = int(np.count_nonzero(rows[[base + m for m in members]]))
            name = group_name([labels[m] for m in members], people, mask)
            while any(name == other for other, *_ in out):  # two pools of one variable
                name = (*name[:-1], (name[-1][0], f"{name[-1][1]} (pooled)"))
            out.append((name, [base + m for m in members], present if present > 1 else 0))
        base += size
    return out


def sharing(sketch: Sketch, rows: Predictions | None, mask: int) -> tuple[str, ...]:
    """Two group columns whose exact numbers would tell those of few people; none if no two do.

    Groups of one column add up to those of another where one lies in the other, as towns do in counties. People who
    are in a group of each are known from both columns' numbers exactly when that cell is a bridge: see `pool_pairs`.
    This is read from the table of the pair, or from the rows where all are held. Where neither is, two columns of which
    one has a pool are taken to.
    """
    shown = [(name[0][0], members) for name, members, _ in shown_groups(sketch, mask) if len(name) == 1]
    of = {g[0]: [m for column, m in shown if column == g[0]] for g in sketch.spec.groupings if len(g) == 1}
    for one, other in combinations([column for column, groups in of.items() if groups], 2):
        table = _two_way_table(sketch, rows, (one, other), (of[one], of[other]))
        if table is None:
            if any(len(members) > 1 for members in (*of[one], *of[other])):
                return one, other
            continue
        there = np.flatnonzero(table).tolist()
        if any(_is_bridge(i, there, table.shape[1]) for i in there if table.reshape(-1)[i] < mask):
            return one, other
    return ()


def _two_way_table(
    sketch: Sketch, rows: Predictions | None, names: tuple[str, str], groups: tuple[Sequence[list[int]], ...]
) -> NDArray[np.int64] | None:
    """The people in each group shown of one column and of another; None where nobody counted them.

    People are rows, or clusters where rows share clusters.
    """
    spec = sketch.spec
    start = dict(zip(spec.groupings, np.cumsum([0, *spec.sizes]).tolist(), strict=False))
    shape = [len(spec.by_name[name].labels) for name in names]
    place = []
    for name, size, shown in zip(names, shape, groups, strict=True):
        of = np.full(size, -1, dtype=np.int64)
        for number, members in enumerate(shown):
            of[np.array(members) - start[(name,)]] = number
        place.append(of)
    sides = len(groups[0]), len(groups[1])

    def cells(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
        result: NDArray[np.int64] = place[0][a] * sides[1] + place[1][b]
        return result

    if names in start:  # a table of the pair
        first, size = start[names], shape[0] * shape[1]
        people = people_of(sketch).in_groups(sketch)[first : first + size]
        there = np.flatnonzero(people)
        table = np.bincount(cells(*np.divmod(there, shape[1])), people[there], minlength=sides[0] * sides[1])
    elif (
        rows is not None
        and rows.covariates is not None
        and rows.n == sketch.n  # every row is held, with the levels of these columns
        and all(holds_levels(sketch, rows, spec.by_name[n]) for n in names)
    ):
        a, b = (spec.by_name[n].codes(rows.covariates.column(n)).astype(np.int64) for n in names)
        table = people_of(rows).among(cells(a, b), sides[0] * sides[1])
    else:
        return None
    return table.astype(np.int64).reshape(sides)


def holds_levels(sketch: Sketch, rows: Predictions, v: Variable) -> bool:
    """Whether the rows held distinguish the levels of a group column: rare levels may be one there."""
    how = {c.name: c for c in sketch.spec.codings}.get(v.name)
    if how is None or rows.covariates is None or v.name not in rows.covariates.column_names:
        return False
    return how.kind != "category" or not set(v.values) - set(how.levels)


def pair_pools(
    rows: NDArray[np.int64],
    first: list[tuple[int, ...]],
    second: list[tuple[int, ...]],
    spec: Spec,
    names: tuple[str, ...],
    mask: int = MASK,
) -> list[tuple[int, ...]]:
    """Pool the cells of a pair table over levels already pooled; none if a variable pools away altogether."""
    if not first or not second:
        return []
    table = rows.reshape(-1, len(spec.by_name[names[1]].labels))
    coarse = np.array([[table[np.ix_(a, b)].sum() for b in second] for a in first])
    cells = [[a * table.shape[1] + b for a in i for b in j] for i in first for j in second]
    return [tuple(m for c in members for m in cells[c]) for members in pool_pairs(coarse, mask)]


def group_name(labels: list[Name], people: Mapping[Name, int], mask: int) -> Name:
    """Name one group, or the pool of several: by levels where they form a block of the table, else by cells.

    `people` counts every level and every cell: what has fewer than may be shown is not named.
    """
    levels = [list(dict.fromkeys(label[i][1] for label in labels)) for i in range(len(labels[0]))]
    if len(labels) == np.prod([len(v) for v in levels]):
        own = [(labels[0][i][0], v) for i, v in enumerate(levels)]
        return tuple(
            (name, v[0] if len(v) == 1 else pool_name(v, [people[((name, level),)] for level in v], mask))
            for name, v in own
        )
    variables, there = " and ".join(v for v, _ in labels[0]), [label for label in labels if people[label]]
    cells = [" and ".join(level for _, level in label) for label in there]
    return ((variables, pool_name(cells, [people[label] for label in there], mask)),)


def identifier(name: Name) -> str:
    """The slug of a group, with a short hash."""
    text = "-".join(f"{v}-{level}" for v, level in name)
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
    digest = hashlib.sha256(repr(name).encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{slug}-{digest}" if slug else digest


def unshown_levels(read: Predictions | Sketch, name: str, mask: int = MASK) -> tuple[str, ...] | None:
    """The levels that are not shown, so that none of few people follows from the others; None for all.

    A number of many values has a smooth curve, and no levels.
    """
    from calibrant.diagnose.bands import FEW
    from calibrant.views.by_variable import by_variable_of, strata_of

    if isinstance(read, Predictions):
        of = by_variable_of(read, name)
        strata = of.strata
        people = people_of(read).among(of.cell, len(strata.rows)).tolist()
    else:
        strata = strata_of(read, name)
        people = [int(n) for n in strata.rows]
    if strata.ordered and strata.there > FEW:
        return ()
    titles = strata.titles()
    order = tuple(range(strata.there)) if strata.ordered else order_of(name, titles)
    groups = pool_levels(people, mask, order)
    shown = {group[0] for group in groups if len(group) == 1}
    return tuple(t for i, t in enumerate(titles) if i not in shown) if groups else None


def guarded(outcome: Outcome, about: str, mask: int = MASK) -> Outcome:
    """A test's outcome without the parts about a set of fewer people than may be shown, or of all but few.

    Where rows share clusters, those inside and those outside count: a cluster may be one person with many rows.
    """
    rows, of = outcome.parts.get(f"{about}rows"), outcome.parts.get("rows_tested", outcome.settings.get("n", 0))
    if rows is not None and few((rows, of - rows, *outcome.parts.get(f"{about}clusters", ())), mask):
        return replace(outcome, parts={k: v for k, v in outcome.parts.items() if not k.startswith(about)})
    return outcome
