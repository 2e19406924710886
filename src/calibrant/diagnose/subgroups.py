"""Unlisted subgroups in which probabilities are off, fixed or searched, and the map of two attributes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

from calibrant.arguments import checked_seed, choice, shown, text
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.attributes import Attribute
from calibrant.diagnose.fixed_subgroups import METHOD, fixed_subgroups
from calibrant.diagnose.fixed_subgroups import fixed_subgroups as search
from calibrant.diagnose.searched_subgroups import searched_subgroups
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.search.models import Models
from calibrant.stats.cusum import Alternative
from calibrant.stats.subgroups.family import EVENTS, ROWS, SCORES, STEPS, Ints
from calibrant.views.boxes import Tables, boxed, condition, tables_of
from calibrant.views.features import SCORE
from calibrant.views.rules import Condition, number_words

Method = Literal["fixed", "searched"]


@takes_arrays
def subgroups(
    data: Predictions | Sketch,
    *,
    method: Method = "fixed",
    variables: Iterable[str] | str | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    rules: int = 5,
    order: int | None = None,
    min_size: float | None = None,
    limit: float | None = None,
    tolerance: float | None = None,
    alternative: Alternative | None = None,
    depth: int | None = None,
    min_share: float | None = None,
    models: Models | None = None,
) -> Curve:
    r"""Unlisted subgroups in which probabilities are off, such as "age over 76 and income up to 25".

    Estimand, for each subgroup: the mean over its rows of the event rate given score and covariates, minus the score.

    Parameters
    ----------
    data : Predictions or Sketch
        A sketch made with ``tests=True`` brings its own covariates and seed.
    method : {"fixed", "searched"}
        ``"fixed"``: a family of subgroups fixed before labels are read, with ranges that hold for all of them at once.
        ``"searched"``: rules found in one half of the rows by models of the residual, and tested on the other half.
    variables : str or sequence of str, optional
        Covariates next to the score; all that can be used by default.
    alpha : float in (0, 0.5]
        Probability, at most, that any range misses, and that any subgroup is falsely reported.
    seed : int
    rules : int from 1 to 20
        At most so many subgroups.
    order : {1, 2, 3}, optional
        Of "fixed": most attributes that a subgroup combines; 2 by default.
    min_size : float in [0, 1), optional
        Of "fixed": least share of the rows that a subgroup has; 0.01 by default. It has 20 rows in any event.
    limit : float in (0, 1), optional
        Of "fixed": how far off a subgroup may be; ``over`` says which are shown to be further off.
    tolerance : float in [0, 1), optional
        Of "searched": how far off a probability may be; 0 by default.
    alternative : {"two-sided", "greater", "less"}, optional
        Of "searched": ``"greater"`` reports only subgroups that the model underpredicts; "two-sided" by default.
    depth : int from 1 to 6, optional
        Of "searched": conditions of a rule; 3 by default.
    min_share : float in [0, 0.5), optional
        Of "searched": share of the rows that a rule must have, about; 0.01 by default.
    models : sequence of (str, estimator), optional
        Of "searched": your own scikit-learn models of the residual, as in `strong_calibration_test`.

    Returns
    -------
    Curve
        A line for each subgroup. Of both methods: ``rule`` in words, ``rows``, ``share``, ``predicted``, ``observed``,
        ``gap`` with limits ``low`` to ``high``, ``side`` and ``stability``. "fixed" adds ``floor`` (how far off at
        least), ``evidence``, ``gap_left`` and ``rows_left`` (without the rows of earlier subgroups) and ``over``;
        "searched" adds ``observed_low``, ``observed_high``, ``excess``, ``p_value``, ``p_adjusted`` and ``finding``.
        ``settings["conditions"]`` holds the rules as data. ``.chart()`` draws it.

    Raises
    ------
    BadInput
        No such covariate, a setting that cannot be used, or one of the other method.
    NotComputable
        Too few rows or clusters for the method.

    Notes
    -----
    **Assumes.** Rows (or clusters) independent given scores and covariates.
    **Guarantee.** Finite-sample, of both. "fixed": the family is fixed before labels are read, and the limits hold for
    all its subgroups at once. "searched": the half that tests plays no part in finding the rules, and alpha is shared
    over the rules tested.
    **Method.** `calibrant.diagnose.fixed_subgroups` and `calibrant.diagnose.searched_subgroups` describe the steps.
    **Reads.** "fixed": rows, or the sketch's tables and its sample. "searched": rows.

    References
    ----------
    Hoeffding (1956), doi:10.1214/aoms/1177728178. Clopper, Pearson (1934), doi:10.1093/biomet/26.4.404. Friedman,
    Fisher (1999), "Bump hunting in high-dimensional data", Statistics and Computing 9. Feng, Gossmann, Pirracchio,
    Petrick, Pennello, Sahiner (2024), "Is this model reliable for everyone? Testing for strong calibration", AISTATS.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, income, p = rng.uniform(20, 90, 5000), rng.uniform(10, 60, 5000), rng.uniform(0.1, 0.6, 5000)
    >>> y = rng.random(5000) < np.where((age > 75) & (income < 25), p + 0.3, p)
    >>> data = cal.predictions(y, p, {"age": age, "income": income})
    >>> cal.diagnose.subgroups(data).columns["rule"]
    ('age over 76 and income up to 25',)
    >>> cal.diagnose.subgroups(data, method="searched", tolerance=0.02).columns["finding"][0]
    True
    """
    choice("method", method, get_args(Method))
    fixed = {"order": order, "min_size": min_size, "limit": limit}
    searched = {
        "tolerance": tolerance,
        "alternative": alternative,
        "depth": depth,
        "min_share": min_share,
        "models": models,
    }
    own, other = (fixed, searched) if method == "fixed" else (searched, fixed)
    for name, value in other.items():
        if value is not None:
            needs = "searched" if method == "fixed" else "fixed"
            raise BadInput(f"{name}= is of method={needs!r}, and method is {method!r}: set method, or leave it out")
    settings = {name: value for name, value in own.items() if value is not None}
    compute = fixed_subgroups if method == "fixed" else searched_subgroups
    return compute(data, variables=variables, alpha=alpha, seed=seed, rules=rules, **settings)  # type: ignore[arg-type]


# ---- the map of two attributes ----

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
    tables = tables_of(data, covariates, 2, seed)
    counted = boxed(data, tables)
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
    """Which attribute is meant: the score is the first."""
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
