"""The map of two attributes: what the model says and what happened in every combination of their cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant.arguments import checked_seed, shown, text
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.attributes import Attribute
from calibrant.diagnose.fixed_subgroups import METHOD
from calibrant.diagnose.fixed_subgroups import fixed_subgroups as search
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.stats.subgroups.family import EVENTS, ROWS, SCORES, STEPS, Ints
from calibrant.views.boxes import Tables, boxed, condition, tables_of
from calibrant.views.features import SCORE
from calibrant.views.rules import Condition, number_words

Runs = tuple[int, ...]  # cells from the first to below the second; of two runs, two more


@takes_arrays
def subgroup_map(
    data: Predictions | Sketch, first: str, second: str, *, subgroups: Curve | None = None, seed: int = 0
) -> Curve:
    """Map what the model says and what happened over two attributes, with the subgroups that lie in them outlined.

    Parameters
    ----------
    data : Predictions or Sketch
        A sketch made with ``tests=True`` brings its own covariates and seed, and gives the same answer as its rows.
    first, second : str
        Covariates, or ``"the score"``, cut as for `subgroups`.
    subgroups : Curve, optional
        From `diagnose.subgroups`: those that name none but these two attributes are outlined. By default those that a
        search of these two attributes finds.
    seed : int
        As of `subgroups`: rows in memory are cut by a sample.

    Returns
    -------
    Curve
        A line for each combination of cells that somebody is in: ``first`` and ``second`` (numbers of the cells, from
        0), ``rows``, ``predicted`` (mean score), ``observed`` (event rate), ``gap`` (observed minus predicted). In
        ``settings``: ``axes`` (for each attribute ``name``, ``kind`` and the ``labels`` of its cells), ``subgroups``
        (for each one outlined, the cells of either attribute: from the first number to below the second; four numbers
        for two levels that are not neighbours), ``rules`` (their words). ``.chart()`` draws it.

    Raises
    ------
    BadInput
        One attribute twice, no such covariate, or something else than subgroups to outline; a sketch without the sums.
    NotComputable
        A covariate that cannot be used.

    Notes
    -----
    **Assumes.** Nothing. **Guarantee.** None: cells are drawn as they are, and those of few people are off by chance.
    Ranges that hold are those of `diagnose.subgroups`. **Method.** Sums over the cells; a cell of a number holds its
    upper edge. **Cost.** One pass. **Reads.** Rows, or the sketch's tables.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, sex, p = rng.integers(20, 90, 5000), rng.choice(["f", "m"], 5000), rng.uniform(0.1, 0.6, 5000)
    >>> y = rng.random(5000) < np.where((age > 75) & (sex == "f"), p + 0.3, p)
    >>> drawn = cal.diagnose.subgroup_map(cal.predictions(y, p, {"age": age, "sex": sex}), "age", "sex")
    >>> drawn.settings["axes"][0]["labels"][-2:], drawn.settings["axes"][1]["labels"]
    (('76 to 82', 'over 82'), ('m', 'f'))
    >>> drawn.settings["rules"], drawn.settings["subgroups"]
    (('age over 75 and sex = f',), (((8, 10), (1, 2)),))
    """
    names, seed = (text("first", first), text("second", second)), checked_seed(seed)
    if first == second:
        raise BadInput(f"second={shown(second)}: name two attributes")
    covariates = [v for v in names if v != SCORE]
    tables = tables_of(data, covariates, 2, seed, by_clusters=True)
    counted = boxed(data, tables, data.spec.seed if isinstance(data, Sketch) else seed)
    result = search(data, variables=covariates, seed=seed) if subgroups is None else subgroups
    if not isinstance(result, Curve) or result.method != METHOD:
        raise BadInput(f"subgroups={shown(subgroups)}: pass what diagnose.subgroups returned")
    # (1) The table of the pair, the first attribute first
    pair = tuple(_number(tables, v) for v in names)
    number, turn = tables.layout.combined.index(tuple(sorted(pair))), 0 if pair[0] < pair[1] else 1
    # (2) Its cells, of weighted rows by their weights
    table, own = (t.swapaxes(0, turn) for t in (tables.layout.of(tables.sums, number), counted.table(number)))
    cells = [(i, j, own[i, j]) for i, j in zip(*table[..., ROWS].nonzero(), strict=True)]
    rows = [int(table[i, j, ROWS]) for i, j, _ in cells]
    predicted = [float(c[SCORES] / STEPS / c[ROWS]) for *_, c in cells]
    observed = [float(c[EVENTS] / c[ROWS]) for *_, c in cells]
    # (3) The subgroups that lie in it
    attribute_list = [tables.attributes[t] for t in pair]
    labels = [_labels(t, table[..., ROWS].sum(axis=1 - axis)) for axis, t in enumerate(attribute_list)]
    sets = [(t, tables.sets[k], len(v)) for t, k, v in zip(attribute_list, pair, labels, strict=True)]
    outlined = []
    for rule, parts in zip(result.columns["rule"], result.settings["conditions"], strict=True):
        outlined.append((rule, _outline({c.variable: c for c in map(Condition.from_dict, parts)}, sets)))
    return Curve(
        method="diagnose.subgroup_map",
        columns={
            "first": tuple(int(i) for i, *_ in cells),
            "second": tuple(int(j) for _, j, _ in cells),
            "rows": tuple(rows),
            "predicted": tuple(predicted),
            "observed": tuple(observed),
            "gap": tuple(o - p for o, p in zip(observed, predicted, strict=True)),
        },
        settings={
            "axes": tuple(
                {"name": v, "kind": t.kind, "labels": own}
                for v, t, own in zip(names, attribute_list, labels, strict=True)
            ),
            "n": tables.n,
            "subgroups": tuple(at for _, at in outlined if at is not None),
            "rules": tuple(rule for rule, at in outlined if at is not None),
            "seed": seed,
        },
    )


def _number(tables: Tables, name: str) -> int:
    """Return which attribute is meant: the score is the first."""
    for t, own in enumerate(tables.attributes):
        if name == (own.name if t else SCORE):
            return t
    raise NotComputable(f"{shown(name)} has no cells: {dict(tables.left_out).get(name, 'it cannot be used')}")


def _outline(requested: dict[str, Condition], axes: Sequence[tuple[Attribute, Ints, int]]) -> tuple[Runs, ...] | None:
    """The cells of a subgroup along both attributes, given the sets and number of cells of each, or None."""
    left, out = dict(requested), []
    for t, sets, size in axes:
        known = {condition(t, own): tuple(int(v) for v in own) for own in sets}
        wanted = left.pop(next(c.variable for c in known), None)
        cells = (0, size, size, size) if wanted is None else known.get(wanted)
        if cells is None:
            return None
        out.append(cells if cells[2] < cells[3] else cells[:2])
    return None if left else tuple(out)


def _labels(t: Attribute, rows: Any) -> tuple[str, ...]:
    """The names of the cells; the last ones, for other levels and missing values, only where somebody is."""
    if t.kind == "category":
        names, usual = list(t.labels), len(t.levels)
    else:
        ends = [number_words(v, t.kind, t.whole) for v in t.edges]
        above = [number_words(v + 1.0, t.kind, t.whole) for v in t.edges] if t.whole else ends
        middle = [a if a == b else f"{a} to {b}" for a, b in zip(above, ends[1:], strict=False)]
        over = "after" if t.kind == "date" else "over"
        names = [f"up to {ends[0]}", *middle, f"{over} {ends[-1]}", "missing"] if ends else ["known", "missing"]
        usual = len(t.edges) + 1
    while len(names) > usual and not rows[len(names) - 1]:
        names.pop()
    return tuple(names)
