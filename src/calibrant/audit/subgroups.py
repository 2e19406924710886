"""Which subgroups a record reports, and how: as groups are, and nothing that leaves few people by subtraction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.audit.context import AuditContext
from calibrant.audit.pooling import pool_pairs
from calibrant.audit.rounding import Sums, few, reported_sets, two_digits
from calibrant.results import Curve, Estimate
from calibrant.stats.subgroups.family import EVENTS, ROWS, SCORES, STEPS, sums_of
from calibrant.views.boxes import FEWEST, Tables, condition
from calibrant.views.rules import Condition, Rule

LEFT = ("gap_left", "rows_left")
HOW = ("alpha", "subgroups", "halves", "limit", "min_size", "n", "order", "seed")
NUMBERS = ("number", "date")


# ---- the distinct subgroups ----


def reported_subgroups(curve: Curve, people: int, mask: int, sums: type[Sums]) -> Curve:
    """The subgroups of people enough as reported; what is over the limit is judged by the range as reported."""
    c, s = curve.columns, curve.settings
    # Of clusters, those inside, those outside, and the fewest that tell a subgroup from an earlier one
    own = s.get("people", ((np.inf, np.inf),) * len(c["rows"]))
    apart = [np.inf if n is None else n for n in s.get("people_apart", (None,) * len(c["rows"]))]
    kept = [i for i in _apart(c, people, mask) if min(*own[i], apart[i]) >= mask]
    lines = {k: tuple(v[i] for i in kept) for k, v in c.items()}
    reported = reported_sets(Curve(method=curve.method, columns=lines, settings={}), people, sums).columns
    limit = s.get("limit")
    floors = tuple(max(low, -high, 0.0) for low, high in zip(reported["low"], reported["high"], strict=True))
    whole = len(kept) == len(c["rows"])  # else a gap that is left would be without people of whom nothing is reported
    shared = s.get("people_shared", (0,) * len(c["rows"]))
    left = [_left(c, i, mask, sums) if whole and not 0 < shared[i] < mask else (None, None) for i in kept]
    columns = {
        **reported,
        "floor": floors,
        "evidence": tuple(map(_evidence, lines["evidence"], lines["gap"], reported["gap"])),
        "side": tuple("underpredicts" if v > 0 else "overpredicts" for v in reported["gap"]),
        "over": tuple(limit is not None and v > limit for v in floors),
        **{k: tuple(line[j] for line in left) for j, k in enumerate(LEFT)},
    }
    hide = "people" in s and mask > FEWEST  # of clusters, who else is reported is enough for no larger mask
    settings = {
        **{k: s[k] for k in HOW},
        "conditions": tuple(s["conditions"][i] for i in kept),
        "besides": tuple(() if hide else _besides(s["besides"][i], (c["rows"][i], people), mask, sums) for i in kept),
    }
    return Curve(method=curve.method, columns=columns, settings=settings)


def _evidence(exact: float, gap: float, reported: float) -> float:
    """The evidence that the gap as reported would be: the exact one reveals events to a tenth of a person."""
    return round(exact * abs(reported / gap), 1) if gap else 0.0


def _apart(c: Mapping[str, Sequence[Any]], people: int, mask: int) -> list[int]:
    """The subgroups that are reported: none of few people, or that leaves few, or that few tell from another."""
    kept: list[int] = []
    for i, rows in enumerate(c["rows"]):
        shared = 0 if c["rows_left"][i] is None else rows - c["rows_left"][i]
        apart = (c["rows"][j] - shared for j in kept)  # `shared` with all earlier ones, so with one at most
        if few((rows, people - rows, rows - shared, *apart), mask):
            continue
        kept.append(i)
    return kept


def _left(c: Mapping[str, Sequence[Any]], i: int, mask: int, sums: type[Sums]) -> tuple[float | None, int | None]:
    rows, gap = c["rows_left"][i], c["gap_left"][i]
    if rows is None or few((rows, c["rows"][i] - rows), mask):
        return None, None
    reported = sums.of(rows, 0, rows * gap)
    return reported.near(gap), reported.rows


def _besides(
    results: Iterable[Sequence[Any]], size: tuple[int, int], mask: int, sums: type[Sums]
) -> tuple[tuple[Any, ...], ...]:
    """What else distinguishes the people of a subgroup, where it is neither of few people nor of all but few."""
    rows, people = size
    rest = people - rows
    own, others = sums.of(rows, 0, 0.0), sums.of(rest, 0, 0.0)
    return tuple(
        (
            attribute,
            level,
            own.near(inside, f"inside {attribute} {level}"),
            others.near(outside, f"outside {attribute} {level}"),
        )
        for attribute, level, inside, outside in results
        if not few((inside * rows, rows - inside * rows, outside * rest, rest - outside * rest), mask)
    )


# ---- the worst of all ----

ABOUT = ("about", "attributes", "order", "subgroups", "min_size", "clear_size", "seed")


def reported_worst(least: Estimate, most: Estimate, tables: Tables, context: AuditContext, times: float) -> Estimate:
    """Both ends of the worst subgroup as one estimate, each as reported; a box that leaves few is not named.

    Parameters
    ----------
    least, most : Estimate
        `certify.subgroups` from below, and from above.
    tables : Tables
        Of what was certified.
    context : AuditContext
    times : float
        How many times the rows, or clusters, that were tested there are: a screen deals some of them to the choice.
    """
    (low, below), (high, above) = (
        _reported_end(of, end, tables, context) for of, end in ((least, "low"), (most, "high"))
    )
    # The worst gap, whosever it is, in steps of people of the smallest box.
    rule = tuple(Condition.from_dict(d) for d in least.settings["conditions_low"])
    _, *facts = people_in(tables, rule, context.searched).exact if rule else (0, 0, 0.0)
    value = context.searched.of(least.settings["smallest_subgroup"], *facts).near(max(least.value, most.value))
    noun = "clusters" if "clusters_needed" in least.settings else "rows"
    end = least if least.settings[f"{noun}_needed"] else most
    needed = end.settings[f"{noun}_needed"]
    return replace(
        least,
        value=min(max(value, low), max(low, high)),
        interval=replace(least.interval, low=low, high=high),
        settings={
            **{k: least.settings[k] for k in ABOUT},
            **below,
            **above,
            f"{noun}_needed": None if needed is None else int(two_digits(needed * times)),
            f"{noun}_at_least": end.settings[f"{noun}_at_least"],
        },
    )


def _reported_end(of: Estimate, end: str, tables: Tables, context: AuditContext) -> tuple[float, dict[str, Any]]:
    """An end of the worst subgroup as it is reported, and whose it is."""
    s, value = of.settings, of.interval.low if end == "low" else of.interval.high
    rule = tuple(Condition.from_dict(d) for d in s[f"conditions_{end}"])
    out: dict[str, Any] = {f"subgroup_{end}": None, f"conditions_{end}": (), f"rows_{end}": None, f"share_{end}": None}
    if not rule:
        return value, out
    reported, mask = people_in(tables, rule, context.searched), context.mask
    own = reported.exact[0]
    if not few((own, tables.n - own, *(s.get(f"clusters_{end}") or ())), mask):
        out |= {f"subgroup_{end}": s[f"subgroup_{end}"], f"conditions_{end}": s[f"conditions_{end}"]}
        out |= {f"rows_{end}": reported.rows, f"share_{end}": min(reported.rows / tables.n, 1.0)}
    if end == "high":
        return reported.end(value, 1, 0.0, rises=reported.error_rises), out
    # the same draw as of that end of its range, so that a subgroup reported twice is reported alike
    return reported.end(value, -1, 0.0, rises=reported.error_rises), out


def people_in(tables: Tables, rule: Rule, sums: type[Sums]) -> Sums:
    """The people who meet a rule that is a box."""
    parts = parts_of(tables, rule)
    table = tables.tables[tables.layout.combined.index(tuple(t for t, _ in parts))]
    inside = sums_of(table, [own for _, own in parts]).reshape(-1)
    return sums.of(int(inside[ROWS]), int(inside[EVENTS]), float(inside[SCORES] / STEPS))


def parts_of(tables: Tables, rule: Rule) -> list[tuple[int, NDArray[np.int64]]]:
    """The attributes of a rule that is a box, in order, and its set of cells in each, shape (1, 4)."""
    names = [condition(t, own[0]).variable for t, own in zip(tables.attributes, tables.sets, strict=True)]
    places = sorted((names.index(c.variable), i) for i, c in enumerate(rule))
    return [
        (t, next(own[None] for own in tables.sets[t] if condition(tables.attributes[t], own) == rule[i]))
        for t, i in places
    ]


# ---- the map of two attributes ----


def reported_map(curve: Curve, mask: int, sums: type[Sums]) -> Curve | None:
    """The cells that may be shown, as they are reported; None where none may.

    Blank are cells of few people, and others, so that none of few follows from the totals of rows, columns or
    subgroups.
    """
    c, axes = curve.columns, curve.settings["axes"]
    table = np.zeros(tuple(len(a["labels"]) for a in axes), dtype=np.int64)
    table[list(c["first"]), list(c["second"])] = c["rows"]
    groups = pool_pairs(table, mask)
    shown = np.zeros(table.size, dtype=bool)
    shown[[g[0] for g in groups if len(g) == 1]] = True
    _close(shown.reshape(table.shape), table, curve.settings["subgroups"], mask)
    keep = [i for i, at in enumerate(zip(c["first"], c["second"], strict=True)) if shown.reshape(table.shape)[at]]
    if not keep:
        return None
    lines = Curve(method=curve.method, columns={k: tuple(v[i] for i in keep) for k, v in c.items()}, settings={})
    named = tuple(
        {**a, "labels": tuple(_label(a, j, int(n), mask) for j, n in enumerate(table.sum(axis=1 - k)))}
        for k, a in enumerate(axes)
    )
    settings = {**curve.settings, "axes": named}
    return Curve(method=curve.method, columns=reported_sets(lines, int(table.sum()), sums).columns, settings=settings)


def _label(axis: Mapping[str, Any], cell: int, rows: int, mask: int) -> str | None:
    """The label of a row or column; of a level of few people none, for that it occurs can say who is meant."""
    return None if axis["kind"] not in NUMBERS and rows < mask else axis["labels"][cell]


def _close(shown: NDArray[np.bool_], rows: NDArray[np.int64], subgroups: Iterable[Any], mask: int) -> None:
    """Blank more cells, smallest first, until inside and outside each subgroup none, or people enough, are blank."""
    for ranges in subgroups:
        first, second = (_within(r, n) for r, n in zip(ranges, rows.shape, strict=True))
        inside = first[:, None] & second[None]
        for part in (inside, ~inside):
            while few((int(rows[part & ~shown].sum()),), mask) and (part & shown).any():
                where = np.argwhere(part & shown)
                shown[tuple(where[np.argmin(rows[tuple(where.T)])])] = False


def _within(ranges: Sequence[int], size: int) -> NDArray[np.bool_]:
    at = np.arange(size)
    out: NDArray[np.bool_] = np.zeros(size, dtype=bool)
    for k in range(0, len(ranges), 2):
        out |= (at >= ranges[k]) & (at < ranges[k + 1])
    return out
