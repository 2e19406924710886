"""Figures of tables: rankings, subgroups and their map, sites; and ranges under each other, for the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
from itertools import product
from textwrap import wrap

import numpy as np

import calibrant.report.figures.marks as parts
from calibrant.errors import NotComputable
from calibrant.report import numbers as num
from calibrant.report.figures.marks import GAP, Axis, Figure, Mark, Panel, ruler
from calibrant.report.places import BAND, HIGH, INK, LINE, QUIET
from calibrant.report.wording.inferred import lines_of
from calibrant.results import Curve

WHO, LOOKED_AT = "Who is badly served", "Examined most closely, not shown to be miscalibrated"


# ---- bars: the ranking, and what the search needs ----


def ranking(curve: Curve) -> Figure:
    """A ranking as bars with certified ranges; a variable without a finding is pale."""
    alpha, numbers = float(curve.settings["alpha"]), ("beyond_gap", "beyond_low", "beyond_high")
    words = {
        "beyond the overall gap": "{beyond_gap:p2} points",
        "overall": "{vece:p2} points",
        "p": "{p_adjusted:.2g} (adjusted)",
        "worst cell": "{worst}: {worst_gap:g1} points, {worst_rows:n} rows",
    }
    rows = parts.rows(curve, words, numbers)
    for r, low, high in zip(rows, *(curve.columns[k] for k in numbers[1:]), strict=True):
        r["finding"] = "error varies with it" if r["p_adjusted"] <= alpha else "not shown"
        r["certified"] = "no range" if low is None else f"{num.lower_bound(low)} to {num.upper_bound(high)} points"
    mean_gap = f"Overall gap, left out here: {num.gap(float(curve.settings['gap']))} points."
    under = [f"{mean_gap} Lines: certified ranges, simultaneously at {parts.level_of(curve)}."]
    panel = _bars(rows, "error beyond the overall gap, points", numbers, ("variable", "certified", *words))
    return Figure("Which variables the error varies with", under, [panel])


def importance(curve: Curve) -> Figure:
    words = {"loses": "{share:.0%} of the evidence", "interval": "{low:d2} to {high:d2}"}
    under = [
        f"Of {num.decimals(curve.settings['statistic'], 2)} in all. "
        f"Lines: {parts.level_of(curve)} intervals, each variable separately. No test.",
        "Where a line takes in 0, the variable is not shown to be needed.",
    ]
    rows, title = parts.rows(curve, words, ()), "evidence lost when the variable is shuffled"
    panel = _bars(rows, title, ("drop", "low", "high"), ("variable", *words))
    return Figure("Which variables point at the badly served", under, [panel])


def _bars(rows: list[parts.Row], title: str, columns: Sequence[str], tips: Sequence[str]) -> Panel:
    """A bar with its range for each variable, one without a range is a bare bar; pale where nothing is shown."""
    drop, low, high = columns
    kinds = list(dict.fromkeys(r.get("finding", "") for r in rows))
    look: parts.Row = {"y": "variable", "tips": tips}
    kept: parts.Row = {**look, "rows": [r for r in rows if r[low] is not None], "colour": INK, "size": 1.25}
    bars = [
        Mark("bar", x=drop, rows=own, colour=BAND if k == "not shown" else LINE, name=k, **look)
        for k in kinds
        if (own := [r for r in rows if r.get("finding", "") == k])
    ]
    marks = [*bars, Mark("range", x=low, x2=high, **kept), *(Mark("tick", x=k, **kept) for k in (low, high))]
    names = Axis(None, "names", names=[r["variable"] for r in rows], step=24)
    return Panel(rows, Axis(title), names, [*marks, ruler(0.0, "x")], (parts.WIDTH, 0), legend=len(kinds) > 1)


# ---- rules under each other ----


def searched_subgroups(curve: Curve) -> Figure:
    """A forest of the rules: observed minus predicted, with limits that hold simultaneously."""
    rows, shown = parts.gaps(curve), curve.columns["finding"]
    for r, off in zip(rows, shown, strict=True):
        r |= {"off": off, "p": f"{r['p_adjusted']:.2g} (adjusted)", "verdict": "error shown" if off else "undecided"}
        r["found again"] = f"{round(100 * r['stability'])}% of repeats"
    under = [
        f"Judged on {num.count(curve.settings['rows_judged'])} people who played no part in finding the rules.",
        f"Bars: {parts.level_of(curve)} limits, simultaneous. People are counted among those who judge.",
        "Orange: error shown. Grey: undecided.",
    ]
    return Figure(WHO if any(shown) else LOOKED_AT, under, [_forest(curve, rows, ("p", "found again", "verdict"))])


def subgroups(curve: Curve) -> Figure:
    """The gaps of distinct subgroups, with the ranges that hold for all boxes at once."""
    s, rows, limit = curve.settings, parts.gaps(curve), curve.settings["limit"]
    for r, others in zip(rows, s["besides"], strict=True):
        left = r["gap_left"]
        besides = (f"{a} {v} ({num.nearest(here, 0)}%, others {num.nearest(b, 0)}%)" for a, v, here, b in others)
        r |= {
            "off by at least": f"{num.lower_bound(r['floor'])} points" if r["floor"] else "not shown",
            "limit": "" if limit is None else "over" if r["over"] else "not shown to be over",
            "without those above": ""
            if left is None
            else f"{num.gap(left)} points, {num.count(r['rows_left'])} people",
            "found again": f"in {round(s['halves'] * r['stability'])} of {s['halves']} random halves",
            "besides": "; ".join(besides),
        }
    seldom = ("limit", "without those above", "found again", "besides")
    under = [
        f"Bars: certified, for all {num.count(s['subgroups'])} subgroups simultaneously at {parts.level_of(curve)}.",
        "Orange: shown to be off. Grey: not shown.",
        "" if limit is None else f"Dashed: the limit, {num.limit_points(limit)} points to either side.",
    ]
    title = "Subgroups of people that are off" if any(curve.columns["floor"]) else "The subgroup that seems worst"
    tips = ("off by at least", *(k for k in seldom if any(r[k] for r in rows)))
    return Figure(title, under, [_forest(curve, rows, tips)])


def _forest(curve: Curve, rows: list[parts.Row], tips: Sequence[str]) -> Panel:
    """Rules under each other, each on as many lines as it needs over its people, with its gap, range and rates."""
    gaps, labels = Axis(GAP, unit="+", ends=parts.reach(rows)), {}
    for i, r in enumerate(rows):
        predicted, observed = (num.nearest(curve.columns[k][i]) for k in ("predicted", "observed"))
        people = f"{num.count(r['rows'])} ({num.nearest(r['share'])}% of all)"
        r |= {"at": str(i), "reported": f"{predicted} predicted, {observed} observed", "people": people}
        labels[r["at"]] = [*wrap(r["rule"], 52), people]
    names = Axis(None, "names", names=list(labels), labels=labels, step=52)
    words = Mark("text", x="gap", y="at", text="reported", colour=INK, aside=(0, -11))
    tips = ("rule", "people", "predicted rate", "observed rate", "off by", "band", *tips)
    return Panel(rows, gaps, names, [*parts.dots(curve, "x", gaps, tips, QUIET), words], (parts.WIDTH - 180, 0))


# ---- the map of a pair ----

LEAST = 20  # people without whom a cell is drawn empty: chance moves it by tens of points
WIDE, TALL = 46, 30  # pixels of a cell


def subgroup_map(curve: Curve) -> Figure:
    """The gap in each combination of cells as colour and number, with the subgroups outlined."""
    axes, words = (
        curve.settings["axes"],
        {"predicted rate": "{predicted:p} in 100", "observed rate": "{observed:p} in 100"},
    )
    words |= {"off by": "{gap:g} points", "text": "{gap:g0}", "people": "{rows:n}"}
    rows = [r for r in parts.rows(curve, words, ("gap",)) if r["rows"] >= LEAST]
    for r in rows:
        a, b, p = r["first"], r["second"], r["predicted"]
        r |= {"x": a, "x2": a + 1, "across": a + 0.5, "y": b, "y2": b + 1, "up": b + 0.5}
        r |= {k: v["labels"][r[k]] or "not named" for k, v in zip(("first", "second"), axes, strict=True)}
        r["error"] = 100 * (p * (1 - p) / r["rows"]) ** 0.5
    usual = sorted(r["error"] for r in rows)[len(rows) // 2] if rows else 1.0
    frames, inside = _frames(curve)
    outlined = sorted(abs(r["gap"]) for r in rows if (r["x"], r["y"]) in inside)
    most = max(3.0 * usual, outlined[len(outlined) // 2] if outlined else 0.0, 0.01)  # noise looks pale
    tips = ("first", "second", "people", "predicted rate", "observed rate", "off by")
    marks = (
        Mark("cell", x2="x2", y2="y2", colour="heat", most=most, tips=tips),
        Mark("text", x="across", y="up", text="text", most=most, tips=tips),
        Mark("frame", x2="x2", y2="y2", rows=frames, colour=INK, tips=("rule",)),
    )
    x, y = (
        Axis(a["name"], "cells", names=[v or "" for v in a["labels"]], step=step)
        for a, step in zip(axes, (WIDE, TALL), strict=True)
    )
    under = [
        "Numbers: gaps in points, of single cells: chance moves them too, those of few people most.",
        "" if not frames else f"Outlined: {'; '.join(dict.fromkeys(f['rule'] for f in frames))}.",
        f"Blank: fewer than {LEAST} people." if len(rows) < len(x.names) * len(y.names) else "",
    ]
    return Figure(f"Where {x.title} and {y.title} meet", under, [Panel(rows, x, y, marks)])


def _frames(curve: Curve) -> tuple[list[parts.Row], set[tuple[int, int]]]:
    """A rectangle for each run of cells of a subgroup along both attributes, and the cells inside."""
    s, frames, inside = curve.settings, [], set()
    rules = s.get("rules", ("the subgroup",) * len(s["subgroups"]))
    for rule, (first, second) in zip(rules, s["subgroups"], strict=True):
        runs = ([(r[k], r[k + 1]) for k in range(0, len(r), 2)] for r in (first, second))
        for (a, b), (i, j) in product(*runs):
            frames.append({"x": a, "x2": b, "y": i, "y2": j, "rule": rule})
            inside |= set(product(range(a, b), range(i, j)))
    return frames, inside


# ---- sites ----

INTERCEPT = "logits by which the scores underpredict (calibration intercept)"
SITES = {"intercept": (INTERCEPT, 0.0), "slope": ("calibration slope (1: calibrated)", 1.0)}


def heterogeneity(curve: Curve) -> Figure:
    """Sites as dots with ranges, the lowest first, over the mean's range and a new site's."""
    c, s = curve.columns, curve.settings
    title, right = SITES[s["measure"]]
    words = {"site": "{site}", "people": "{rows:n}", "predicted rate": "{predicted:p} in 100"}
    words |= {"observed rate": "{observed:p} in 100", "range": "{low:d2} to {high:d2}"}
    rows = [r | {"off": r["low"] > right or r["high"] < right} for r in parts.rows(curve, words, ())]
    pooled = {k: float(s[k]) for k in ("new_low", "new_high", "mean_low", "mean_high")}
    shown = [*pooled.values(), right, *c["estimate"]]  # ranges of small sites may leave the picture; these may not
    room = 0.15 * (max(shown) - min(shown))
    look: parts.Row = {"y": "site", "off": True, "tips": tuple(words)}
    marks = (
        *(
            Mark("cell", x=f"{k}_low", x2=f"{k}_high", y="", rows=[pooled], colour=BAND, opacity=opacity)
            for k, opacity in (("new", 0.35), ("mean", 1.0))
        ),
        ruler(float(s["mean"]), "x", colour=LINE, size=1.5),
        ruler(right, "x", dash=(4, 3)),
        Mark("range", x="low", x2="high", size=1.5, **look),
        Mark("dot", x="estimate", size=36, **look),
    )
    names = Axis(None, "names", names=list(c["site"]), step=15)
    x = Axis(title, ends=(min(shown) - room, max(shown) + room))
    return Figure("How far sites differ", _reported(curve), [Panel(rows, x, names, marks, (420, 0))])


def _reported(curve: Curve) -> list[str]:
    s, level = curve.settings, parts.level_of(curve)
    mean, low, high, new_low, new_high, tau = (
        num.decimals(float(s[k]), 2) for k in ("mean", "mean_low", "mean_high", "new_low", "new_high", "tau")
    )
    out = [
        f"Mean of {num.count(s['sites'])} sites {mean} ({low} to {high}, dark); "
        f"a new site {new_low} to {new_high} (pale).",
        f"{level} each. Standard deviation between sites: {tau}. Orange: off by the site's own range.",
    ]
    if s["unshown"]:
        out.append(f"{num.count(s['unshown'])} sites of fewer than 20 rows, or clusters, count and are not shown.")
    return out


# ---- ranges under each other ----

MOST = 60  # lines under each other
ERROR, EITHER, GAIN = "calibration error, points", "gap or error, points", "true positives per 100"
APART = "highest less lowest rate, points"
DESIGN = "variance over that of independent rows"


@dataclass(frozen=True)
class Ranges:
    """A dot with its ranges for each name: how the columns of each range begin and what it is called, widest first."""

    title: str
    names: str  # columns, with blanks between
    value: str
    axis: str
    layers: tuple[tuple[str, str], ...] = (("", ""),)
    scale: float = 100.0
    zero: float | None = 0.0


GUARANTEED = (("gap_guaranteed_", "guaranteed"), ("gap_", "interval"))
RATES, NOW = (("guaranteed_", "certified"), ("", "interval")), (("now_", "now"), ("after_", "after"))
CERTIFIED, BENEFIT, GAINED, OF_ERROR = (((k, "certified"),) for k in ("", "net_benefit_", "gain_", "error_"))
RANGES = {
    "audit": Ranges("Everyone and groups", "group", "gap", GAP, GUARANTEED),
    "audit.change": Ranges("Change of the gap", "group", "change", "now less before, points"),
    "audit.class_matrix": Ranges("Which class comes true in place of which", "predicted_class true_class", "gap", GAP),
    "audit.class_repairs": Ranges("Error of all classes after each repair", "repair", "", ERROR, CERTIFIED),
    "audit.decisions": Ranges("Net benefit at a threshold", "group threshold", "net_benefit", GAIN, BENEFIT),
    "audit.dependence": Ranges("Design effect of columns", "columns", "design_effect", DESIGN, (), 1.0, 1.0),
    "audit.horizons": Ranges("Gap by horizon", "people horizon", "gap", GAP),
    "audit.rate_differences": Ranges("Largest difference", "variable rate threshold", "difference", APART, RATES),
    "audit.rates": Ranges("Rates at a threshold", "group rate threshold", "value", "rate, %", RATES, zero=None),
    "audit.sites": Ranges("Sites", "rank", "estimate", "calibration intercept, logits", scale=1.0),
    "certify.by_fewer": Ranges("Groups decided by fewer columns", "by", "decided", "groups", (), 1.0, None),
    "certify.missing_labels": Ranges("With people without a label", "people assumption", "", EITHER, CERTIFIED),
    "compare": Ranges("Models compared", "model population", "difference", "less the reference", scale=1.0),
    "diagnose.missing_labels": Ranges("Who is without a label", "variable level", "share", "without a label, %", ()),
    "grades": Ranges("Default rate by grade", "rating_grade", "default_rate", "default rate, %", (), zero=None),
    "repair.evaluate": Ranges("Error after each repair", "probability", "", ERROR, OF_ERROR),
    "repair.evaluate.decisions": Ranges("Gain by repair", "probability population threshold", "gain", GAIN, GAINED),
    "repair.evaluate.fixed": Ranges("Now and after the repair", "who", "", EITHER, NOW),
}


def ranges(curve: Curve) -> Figure:
    """A dot with its ranges for each line of a table; the outer range is drawn thin."""
    how, c = RANGES[curve.method], curve.columns
    columns = [how.value] * bool(how.value) + [f"{k}{end}" for k, _ in how.layers for end in ("low", "high")]
    columns += ["pd"] * ("pd" in c)
    rows: list[parts.Row] = []
    for i, values in enumerate(zip(*(c[k] for k in how.names.split()), strict=True)):
        own = {k: None if c[k][i] is None or not np.isfinite(float(c[k][i])) else how.scale * c[k][i] for k in columns}
        if any(v is not None for v in own.values()):
            rows.append({"at": str(len(rows)), "name": _name(values), **own})
    if not rows:
        raise NotComputable("no line of the curve has a number: there is nothing to draw")
    title = _first(how.title, rows)
    rows = rows[:MOST]
    wide = [{"gap": r.get(how.value), "low": r[f"{k}low"], "high": r[f"{k}high"]} for r in rows for k, _ in how.layers]
    wide = [r if None not in (r["low"], r["high"]) else r | {"low": None} for r in wide]
    ends = parts.reach(wide or [{"gap": r[k], "low": None} for r in rows for k in columns], how.zero)
    both, level = len(how.layers) > 1, parts.level_of(curve)
    marks = [] if how.zero is None else [ruler(how.zero, "x")]
    marks += parts.limits(curve, Axis(ends=ends), "x") if how.axis == GAP else []
    for k, (of, called) in enumerate(how.layers):
        quiet, now = both and k == 0, how.layers is NOW
        look: parts.Row = {"colour": QUIET if quiet else LINE, "size": 1.2 if quiet and not now else 3.0}
        look |= {"name": called if now else f"{level} {called or 'range'}".strip(), "aside": (0, (8 * k - 4) * now)}
        marks.append(_one("range", rows, f"{of}low", f"{of}high", look))
    marks += [_one("dot", rows, how.value, "", {"size": 40, "name": "estimate"})] if how.value else []
    marks += [_one("tick", rows, "pd", "", {"colour": HIGH, "name": "PD"})] if "pd" in c else []
    labels = {r["at"]: [r["name"]] for r in rows}
    names = Axis(None, "names", names=list(labels), labels=labels, step=22)
    x = Axis(how.axis, unit="+" if how.axis == GAP else "", ends=ends)
    panel = Panel(rows, x, names, marks, (420, 0), legend=both)
    return Figure(title, [], [panel])


def _first(title: str, rows: Sequence[object]) -> str:
    """A title that says how many lines are drawn, where that is not all."""
    return f"{title} (first {MOST} of {len(rows)})" if len(rows) > MOST else title


def _one(kind: parts.Sign, rows: list[parts.Row], x: str, x2: str, look: parts.Row) -> Mark:
    """A mark of the rows that have it, with its numbers: ends rounded outward."""
    kept = [r for r in rows if r[x] is not None and (not x2 or r[x2] is not None)]
    tip, sides = look["name"], (ROUND_FLOOR, ROUND_CEILING) if x2 else (ROUND_HALF_EVEN,)
    for r in kept:
        ends = zip((r[x], r[x2]) if x2 else (r[x],), sides, strict=True)
        r[tip] = " to ".join(num.written(num.cut(num.exact(v / 100), 2, side)) for v, side in ends)
    return Mark(kind, x=x, x2=x2, y="at", rows=kept, tips=("name", tip), **look)


def _name(values: Sequence[object]) -> str:
    """What a line is called: rates in words, thresholds in percent, several columns by their names."""
    words = (
        f"from {100 * v:.4g}%" if isinstance(v, float) and 0.0 < v < 1.0
        else " and ".join(map(str, v)) if isinstance(v, tuple)
        else str(v).replace("_", " ") if str(v) in RATE_NAMES
        else str(v)
        for v in values
        if v is not None and v != ""
    )  # fmt: skip
    return ", ".join(words)


RATE_NAMES = ("selection_rate", "true_positive_rate", "false_positive_rate")


# ---- means and shares that probabilities give ----

INFERRED = {
    "audit.task_trust": "Means that were to be inferred",
    "measure.inferred_mean": "Probabilities in place of labels",
}
HALVES = "bias, in half-widths of its range"  # years, days and points share no other axis


def inferred(curve: Curve) -> Figure:
    """The bias of each mean and share, named with its size and range in its own unit."""
    rows: list[parts.Row] = []
    for line in lines_of(curve):
        half = (line.high - line.low) / 2 or 1.0
        rows.append({"at": str(len(rows)), "name": line.name, "off by": line.off(), "range": line.range()})
        rows[-1] |= {k: v / half for k, v in (("gap", line.bias), ("low", line.low), ("high", line.high))}
        rows[-1]["off"] = line.error_shown
    title, rows = _first(INFERRED[curve.method], rows), rows[:MOST]
    labels = {r["at"]: [r["name"], f"{r['off by']} ({r['range']})"] for r in rows}
    names, x = Axis(None, "names", names=list(labels), labels=labels, step=40), Axis(HALVES, ends=parts.reach(rows))
    marks = parts.dots(curve, "x", x, ("name", "off by", "range"))
    return Figure(title, [parts.ORANGE], [Panel(rows, x, names, marks, (420, 0))])
