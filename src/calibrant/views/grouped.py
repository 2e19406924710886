"""Named groups: which there are, and which rows are in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.columns import require
from calibrant.data.predictions import Predictions
from calibrant.data.profile import LevelCounts
from calibrant.data.read import make_spec
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import BadInput
from calibrant.views.clusters import Members
from calibrant.views.points import Points, cell_points
from calibrant.views.population import counted, group

Group = tuple[tuple[str, str], ...]


def keyed(group: Group) -> str:
    """The name of a group: ``sex = f, age = 40–49``. No two groups have one name."""
    return ", ".join(" = ".join(map(_quoted, pair)) for pair in group)


def _quoted(text: str) -> str:
    """A variable or a level; in quotes where it could be misread."""
    return json.dumps(text, ensure_ascii=False) if any(c in text for c in '=",') else text


def rows_of_groups(
    data: Predictions, by: tuple[str, ...], intersections: bool = False
) -> Iterator[tuple[Group, NDArray[np.intp]]]:
    """Yield each group that has rows, in the order of the levels, and its rows."""
    table = data.covariates
    require(by, () if table is None else tuple(table.schema.names), "group")
    variables = []
    for name in by:
        profile = LevelCounts(name)
        profile.update(table.column(name))
        variables.append(profile.variable())
    spec = make_spec("y_true", "y_prob", tuple(variables), intersections)
    codes = {v.name: v.codes(table.column(v.name)) for v in variables}
    for index, grouping in enumerate(spec.groupings):
        code = np.zeros(data.n, dtype=np.int64)
        for name in grouping:
            code = code * len(spec.by_name[name].labels) + codes[name]
        order = np.argsort(code, kind="stable")
        ends = np.searchsorted(code[order], np.arange(spec.sizes[index] + 1))
        for g, group_name in enumerate(spec.group_names(index)):
            if ends[g + 1] > ends[g]:
                yield group_name, order[ends[g] : ends[g + 1]]


def grouped_sketch(data: Predictions | Sketch, by: tuple[str, ...], intersections: bool, seed: int) -> Sketch:
    """Return a sketch that has groups, or say how to get one."""
    if isinstance(data, Sketch) and intersections:
        raise BadInput("this sketch brings its own groups: leave intersections out, or sketch again with it")
    if isinstance(data, Sketch) and by and set(by) != {v.name for v in data.spec.variables}:
        raise BadInput(
            f"this sketch has the groups of {[v.name for v in data.spec.variables]}: leave by= out, or sketch again"
        )
    if isinstance(data, Predictions) and not by:
        raise BadInput("name the group columns: by=['sex', 'age']")
    return counted(data, seed, by, intersections)


def named_groups(sketch: Sketch) -> list[tuple[Group, int]]:
    """Return name and index of every group of a sketch that has rows."""
    names = [n for g in range(len(sketch.spec.groupings)) for n in sketch.spec.group_names(g)]
    rows = sketch.group_levels.sum(axis=(1, 2, 3)) if len(names) else np.zeros(0)
    return [(name, i) for i, name in enumerate(names) if rows[i] > 0]


def some_rows(data: Predictions, rows: NDArray[np.intp]) -> Predictions:
    """Return some rows of predictions, without their covariates."""

    def some(v: Any) -> Any:
        return None if v is None else v[rows]

    return replace(
        data,
        y=data.y[rows],
        p=data.p[rows],
        covariates=None,
        weights=some(data.weights),
        cluster=some(data.cluster),
        cluster_ids=some(data.cluster_ids),
        crossing=None if data.crossing is None else data.crossing.part(rows),
        cache={},
    )


def parts(
    data: Predictions | Sketch, by: tuple[str, ...], intersections: bool = False
) -> Iterator[tuple[Group, Predictions | Points]]:
    """Yield each group that has rows, and these rows; of a sketch without clusters or weights its cells."""
    if isinstance(data, Predictions) and by:
        yield from ((name, some_rows(data, rows)) for name, rows in rows_of_groups(data, by, intersections))
        return
    sketch = grouped_sketch(data, by, intersections, seed=0)
    if sketch.by_clusters:
        members, rows = Members.of(sketch, sketch), sketch.rows()
        for name, index in named_groups(sketch):
            if len(kept := np.flatnonzero(members.rows((index,)))):
                yield name, some_rows(rows, kept)
        return
    yield from ((name, cell_points(group(sketch, index))) for name, index in named_groups(sketch))
