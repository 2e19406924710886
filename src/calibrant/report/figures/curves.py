"""Figures of curves: along the score, a variable, thresholds, the width of a kernel; maps of the gap along two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from itertools import pairwise
from typing import TypeAlias

import calibrant.report.figures.marks as parts
from calibrant.errors import NotComputable
from calibrant.report import numbers as num
from calibrant.report.figures.marks import Axis, Figure, Mark, Panel, ruler
from calibrant.report.places import BAND, HIGH, INK, LINE, QUIET
from calibrant.report.sections.decisions import kind
from calibrant.report.wording.decisions import in_the_pool
from calibrant.results import Curve

Variable: TypeAlias = parts.Row  # an axis of a map, as its settings tell it
OFF = "Where the probabilities are off"
WITH = 60  # pixels of levels at the side
EPOCH = date(1970, 1, 1)
PUBLISHED = {  # how it was made, how its points are joined, and what it is called
    "kernel": ("the kernel smoother", "linear", "Calibration function"),
    "total-variation": ("the total variation denoiser", "step-after", "Calibration function"),
    "bins": ("bins of equally many rows", "linear", "Reliability diagram"),
}


# ---- along the score ----


def reliability(curve: Curve) -> Figure:
    """The gap along the score in its band, over the densities of events and non-events."""
    logit, rows = curve.settings.get("axis") == "logit", parts.gaps(curve)
    x = Axis(f"{parts.SAYS}{' (logit axis)' if logit else ''}", "logit" if logit else "number", "%")
    for r in rows:
        r["x"] *= 100
    looks = (("density_events", "events", HIGH), ("density_nonevents", "non-events", QUIET))
    lines = [Mark("line", y=column, colour=colour, name=name) for column, name, colour in looks]
    crowd = Panel(rows, x, Axis("density", count=2), lines, (parts.WIDTH, 60), legend=True)
    times, of = num.confidence(1 - float(curve.settings["alpha"]))
    panel = parts.line(curve, rows, x, _gaps(parts.reach(rows)), (parts.WIDTH, parts.HEIGHT))
    under = [f"Band: {times} of {of} times. Whole curve: {parts.tested(curve)}. {parts.ORANGE}"]
    return Figure(OFF, under, [replace(panel, under=(crowd,))])


def bins(curve: Curve) -> Figure:
    """The gap in ranges of the score, each with its interval."""
    rows = parts.rows(curve, {"at": "{predicted:p}%", "off by": "{gap:g} points"})
    ends = parts.reach(rows)
    look: parts.Row = {"x": "predicted", "tips": ("at", "off by")}
    ranges = Mark("range", y="low", y2="high", colour=QUIET, name=f"{parts.level_of(curve)} intervals", **look)
    marks = [ruler(0.0), *parts.limits(curve, _gaps(ends), "y"), ranges, Mark("dot", y="gap", size=40, **look)]
    return Figure("Gap by range of the score", [], [Panel(rows, Axis(parts.SAYS, unit="%"), _gaps(ends), marks)])


def calibration_function(curve: Curve) -> Figure:
    """The event rate along the score as the published surrogates have it, over the line of a calibrated one."""
    how, joined, title = PUBLISHED[curve.settings["method"]]
    words = {"the score": "{x:p1}%", "event rate": "{rate:p1} in 100", "rows": "{rows:n}"}
    rows, tips = parts.rows(curve, words | {"at": "{x:p1}%"}, ("x", "rate")), tuple(words)
    even = [{"x": v, "rate": v} for v in (0, 100)]
    marks = [
        Mark("line", y="rate", rows=even, colour=QUIET, dash=(4, 4), size=1.2, name="calibrated"),
        Mark("line", y="rate", joined=joined, name="rate"),
        Mark("near", y="rate", tips=tips),
    ]
    marks += [Mark("dot", y="rate", size=40, tips=tips)] if curve.settings["method"] == "bins" else []
    x, y = (Axis(name, unit="%", ends=(0, 100)) for name in ("the score", "event rate"))
    under = [f"As published, by {how}. Dashed: a calibrated score."]
    return Figure(title, under, [Panel(rows, x, y, marks, (parts.HEIGHT, parts.HEIGHT))])


def control_chart(curve: Curve) -> Figure:
    """The evidence over the share of people, the simulated paths, the line, and the peak named."""
    s, end, share = curve.settings, 100 * max(curve.columns["x"]), curve.settings["peak_share"]
    rows = parts.rows(curve, {"at": "{x:p}%", "so far": "{evidence:d2}"}, ("x",))
    grey: parts.Row = {"colour": QUIET, "opacity": 0.35, "size": 1.0}
    paths = [n for n in curve.columns if n.startswith("null_")]
    marks = [ruler(0.0), *(Mark("line", y=n, **grey, name="" if k else "calibrated") for k, n in enumerate(paths))]
    marks += [Mark("line", y="evidence", size=2.5, name="evidence"), Mark("near", y="evidence", tips=("at", "so far"))]
    look: parts.Row = {"y": "evidence", "text": "text", "colour": INK}
    if s["line"] is not None:
        at = [{"x": end, "evidence": s["line"], "text": f"line crossed in {100 * s['alpha']:.3g} of 100 repeats"}]
        marks += [ruler(s["line"], colour=INK, dash=(5, 4))]
        marks += [Mark("text", rows=at, align="right", aside=(0, -8), **look)]
    if s["peak_rows"]:
        align, way = ("left", 9) if 100 * share < 0.6 * end else ("right", -9)
        at = [{"x": 100 * share, "evidence": s["peak_score"], "text": f"peak: {num.nearest(share)}% of people"}]
        marks += [Mark("dot", y="evidence", rows=at, colour=HIGH, size=70)]
        marks += [Mark("text", rows=at, align=align, aside=(way, -9), **look)]
    x = Axis("share of people, most suspicious first", unit="%", ends=(0, end))
    panel = Panel(rows, x, Axis("evidence so far"), marks, (parts.WIDTH, 280))
    return Figure("Is error hiding in a mix of attributes?", _control_lines(curve, end / 100), [panel])


def _control_lines(curve: Curve, end: float) -> list[str]:
    s = curve.settings
    out = [f"Whole test: {parts.tested(curve)}. Grey: simulated repeats without error beyond the tolerance."]
    if s["peak_rows"] and s["p_value"] <= s["alpha"] and s["peak_observed"] is not None:
        observed, predicted = (num.nearest(s[f"peak_{k}"]) for k in ("observed", "predicted"))
        few, many = s["peak_share"] < 0.2, s["peak_share"] > 0.5
        where = "concentrated in few people" if few else "widely spread" if many else "neither few nor most"
        out.append(f"Up to the peak {predicted} in 100 are predicted, {observed} are observed: {where}.")
    else:
        out.append("No error shown: not proof of none.")
    if end < 1.0 - 0.005 and s["rows_beyond"] < s["rows_tested"]:
        off = "beyond the tolerance" if s["tolerance"] else "at all"
        out.append(f"The curve ends at {num.nearest(end)}% of people: the others are not predicted to be off {off}.")
    if s["null"] == "refit":
        out.append(f"The line is from {num.count(s['draws'])} repeats, each with everything fitted again.")
    return out


# ---- along thresholds ----


def decision_curve(curve: Curve) -> Figure:
    """Net benefit in its band, with acting on everyone and on nobody; a panel for each group."""
    c = curve.columns
    top = max(*c["high"], *c["treat_all"], 0.01)
    low = min(max(min(c["low"]), -top), -0.25 * top)  # acting on everyone soon loses more than any picture holds
    numbers = ("threshold", "net_benefit", "treat_all", "low", "high")
    rows = parts.rows(curve, {"per 100": "{net_benefit:g2}"}, numbers)
    for i, r in enumerate(rows):
        r |= {"group": r.get("group", "everyone"), "at": f"{r['threshold']:.4g}%"}
        ranges = {"band": "", "over acting on everyone": "over_all_"}
        r |= {k: " to ".join(num.signed_range(c[f"{v}low"][i], c[f"{v}high"][i], 2)) for k, v in ranges.items()}
    look: parts.Row = {"x": "threshold"}
    tips = ("group", "at", "per 100", "band", "over acting on everyone")
    marks = [
        Mark("band", y="low", y2="high", colour=BAND, opacity=0.75, **look),
        Mark("line", y="net_benefit", name="by the score", **look),
        Mark("line", y="treat_all", colour=HIGH, name="acting on everyone", **look),
        ruler(0.0, size=1.5, name="acting on nobody"),
        Mark("near", y="net_benefit", tips=tips, **look),
    ]
    y = Axis("net benefit, true positives per 100", ends=(100 * low, 105 * top))
    level = f"{parts.level_of(curve)}, at all thresholds at once, {kind(curve)}"
    under = [f"Band: {level}. Worth using where it is the highest."]
    x = Axis("threshold", unit="%", ends=parts.ends([100 * v for v in c["threshold"]]))
    panel = Panel(rows, x, y, marks, legend=True)
    return _panels("What acting above a threshold is worth", under, panel)


def acceptance_curve(curve: Curve) -> Figure:
    """The certified and the observed rate of errors against the share accepted, and the risk."""
    s, sign = curve.settings, ">=" if curve.settings["end"] == "high" else "<="
    words = {"at": f"score {sign} {{threshold:.4g}}", "accepted": "{rows:n}", "wrong": "{wrong:n}"}
    words |= {"seen": "{rate:p2}%", "certified, at most": "{high:u}%"}
    rows, risk = parts.rows(curve, words, ("share", "rate", "high")), float(s["risk"])
    marks = [
        Mark("line", x="share", y="high", name="certified, at most"),
        Mark("line", x="share", y="rate", colour=QUIET, name="seen"),
        ruler(100 * risk, colour=HIGH, dash=(4, 3), name="the risk"),
        Mark("near", x="share", y="rate", tips=("group", *words)),
    ]
    top = min(100.0, max(400.0 * risk, 120.0 * max(curve.columns["rate"])))
    y = Axis("wrong among the accepted", unit="%", ends=(0, top))
    level = f"{num.percent(float(s['level']))}%, at all thresholds of all groups together"
    under = [
        f"Certified: {level}. Dashed: the risk, {num.percent(risk)}%.",
        "Accept down to the last share at which the certified rate is at most the risk.",
        *in_the_pool(s),
    ]
    panel = Panel(rows, Axis("share accepted", unit="%", ends=(0, 100)), y, marks, legend=True)
    return _panels("How much may be accepted", under, panel)


def _panels(title: str, under: list[str], panel: Panel) -> Figure:
    groups, size = parts.by_group(panel.rows), (parts.SMALL, 160)
    small = [replace(panel, rows=rows, size=size, title=g) for g, rows in groups.items()]
    return Figure(title, under, small if len(groups) > 1 else [panel])


# ---- along a variable: rates, gap and people; levels; pairs ----


def variable(curve: Curve) -> Figure:
    """A variable curve: a line, levels, or a map of two variables; small multiples where there are groups."""
    s, rows = curve.settings, parts.gaps(curve)
    name = " and ".join(s["variable"]) if s["kind"] == "pair" else str(s["variable"])
    kept = {"curve": "Band:", "levels": "Lines:", "pair": "Outlined: off zero, at"}[s["kind"]]
    under = [
        f"{kept} {parts.level_of(curve)} for all points at once. All points: {parts.tested(curve)}.",
        "" if s["kind"] == "pair" else parts.ORANGE,
        f"{parts.counted(s['masked'])} not drawn: too few people." if s["masked"] else "",
    ]
    groups = {"": rows} if s["kind"] == "pair" else parts.by_group(rows)
    panel = {"curve": _line, "levels": _levels}.get(s["kind"], _pair)
    panels = [
        replace(panel(curve, mine, parts.reach(rows), len(groups) > 1), title=f"{s['by']} = {group}" if s["by"] else "")
        for group, mine in groups.items()
    ]
    return Figure(f"By {name}: where the probabilities are off", under, panels, 3)


def _line(curve: Curve, rows: list[parts.Row], ends: Sequence[float], small: bool) -> Panel:
    """One group's pictures above each other, on the same horizontal axis, with its levels at their side."""
    drawn, alone = [r for r in rows if r["stretch"] >= 0], [r for r in rows if r["stretch"] < 0]
    scale, width = parts.DAY if curve.settings["date"] else 1, parts.SMALL if small else parts.WIDTH
    known = [scale * x for x in curve.columns["x"] if x is not None]
    for r in drawn:
        r["x"] *= scale
    x = Axis(str(curve.settings["variable"]), "date" if scale > 1 else "number", ends=parts.ends(known))
    over = () if small else (_rates(curve, drawn, x),)
    return _with_people(curve, (drawn, alone), x, _gaps(ends), (width, 190), over)


def _with_people(
    curve: Curve, rows: Sequence[list[parts.Row]], x: Axis, y: Axis, size: parts.Size, over: tuple[Panel, ...] = ()
) -> Panel:
    """The line of the first rows over their people, with the second, which have no place, at its side."""
    crowd = Mark("band", y="density", colour=QUIET, opacity=0.45)
    people = Panel(rows[0], x, Axis("people", unit="none"), [crowd], (size[0], parts.STRIP))
    side = _upright(curve, rows[1], None, replace(y, title="points"), (WITH, size[1])) if rows[1] else None
    return replace(parts.line(curve, rows[0], x, y, size), over=over, under=(people,), side=side)


def _gaps(ends: Sequence[float]) -> Axis:
    return Axis(parts.GAP, unit="+", ends=ends)


def _rates(curve: Curve, rows: list[parts.Row], x: Axis) -> Panel:
    error = curve.settings["view"] == "confidence"
    names = ("error rate", "predicted error") if error else ("observed", "predicted")
    drawn = [{**r, **{k: 100 - r[k] for k in ("observed", "predicted") if error}} for r in rows]
    looks: tuple[parts.Row, ...] = ({"y": "observed", "colour": HIGH}, {"y": "predicted", "dash": (5, 3)})
    marks = [Mark("line", name=name, **look) for name, look in zip(names, looks, strict=True)]
    return Panel(drawn, x, Axis("in 100"), marks, (parts.WIDTH, 150), legend=True)


def _levels(curve: Curve, rows: list[parts.Row], ends: Sequence[float], small: bool) -> Panel:
    for r in rows:
        r["share"] = f"{100 * r['density']:.2g}% of the rows"
    names = Axis(str(curve.settings["variable"]), "names", names=[r["at"] for r in rows], step=22)
    marks = parts.dots(curve, "x", _gaps(ends), (*parts.TIPS, "share"))
    return Panel(rows, _gaps(ends), names, marks, (parts.SMALL if small else parts.WIDTH, 0))


def _upright(curve: Curve, rows: list[parts.Row], name: str | None, gaps: Axis, size: parts.Size) -> Panel:
    """Levels side by side."""
    names = Axis(name, "names", names=list(dict.fromkeys(r["at"] for r in rows)))
    return Panel(rows, names, gaps, parts.dots(curve, "y", gaps), size)


def _pair(curve: Curve, rows: list[parts.Row], _: Sequence[float], __: bool) -> Panel:
    for r in rows:
        r["text"] = num.gap(r["gap"] / 100)
    first, second = curve.settings["variable"]
    most, places = max(abs(r["gap"]) for r in rows), list(dict.fromkeys(r["at"] for r in rows))
    x = Axis(first, "names", names=places, step=46 if len(places) > 8 else 82)
    y = Axis(second, "names", names=list(dict.fromkeys(r["group"] for r in rows)), step=30)
    text = Mark("text", x="at", y="group", text="text", most=most, tips=("group", *parts.TIPS))
    return Panel(rows, x, y, [*_heat(most, {"x": "at", "y": "group"}), text])


def _heat(most: float, places: parts.Row) -> list[Mark]:
    """Gaps as colours, outlined where shown to be off; the strongest colour is `most` points."""
    cells = Mark("cell", **places, colour="heat", most=most, tips=parts.TIPS)
    return [cells, Mark("frame", **places, colour=INK, size=1.2, only="off")]


# ---- maps of the bias ----


def local_bias(curve: Curve) -> Figure:
    """A bias map: a line over where people are, or colours along two variables; groups are small multiples."""
    axes, s, c = curve.settings.get("axes", ()), curve.settings, curve.columns
    if "people" not in c or not axes:
        raise NotComputable("there is no picture of the bias at rows or at scattered points: use to_frame()")
    rows, tall, two = parts.gaps(curve), max(c["share"]), len(axes) == 2
    axes = [{**a, "places": [_place(a, v) for v in a["places"]]} for a in axes]
    for r in rows:
        r |= {"group": r.get("group", ""), "density": r["share"] / tall}
        r |= {k: _place(a, r[k]) for a, k in zip(axes, ("x", "x2"), strict=False)}
    rows, every = _cells(rows, axes) if two else rows, len(rows)
    lost = f"Not drawn: {parts.counted(every - len(rows))} with a missing value." if len(rows) < every else ""
    names = " and ".join("the score" if a["kind"] == "score" else str(a["name"]) for a in axes)
    times, of = num.confidence(1 - float(s["alpha"]))
    under = [
        f"{'Outlined' if two else 'Orange'}: off, allowing for every point ({times} of {of} times no false one).",
        f"Whole map: {parts.tested(curve)}.",
        f"Blank: fewer than ten people near, at {parts.counted(s['masked'])}." if two and s["masked"] else "",
    ]
    groups, ends = parts.by_group(rows), parts.reach(rows)
    wide, small = sorted((r["high"] - r["low"]) / 2 for r in rows), len(groups) > 1
    most = max([wide[len(wide) // 2], *(abs(r["gap"]) for r in rows if r["off"])])  # noise looks pale
    panels = [
        replace(_coloured(mine, axes, most, small) if two else _along(curve, mine, axes[0], ends, small), title=group)
        for group, mine in groups.items()
    ]
    return Figure(f"{OFF}, by {names}", under, panels, together=not two, left_out=lost)


def _place(axis: Variable, value: str | float | None) -> str | float | None:
    """A value where it is drawn: dates in milliseconds, scores in percent, numbers and levels as they are."""
    if axis["kind"] == "date" and isinstance(value, str):
        return parts.DAY * (date.fromisoformat(value) - EPOCH).days
    return 100 * value if axis["kind"] == "score" and isinstance(value, float) else value


def _along(curve: Curve, rows: list[parts.Row], axis: Variable, ends: Sequence[float], small: bool) -> Panel:
    size = (parts.SMALL, 180) if small else (parts.WIDTH, parts.HEIGHT)
    order = {v: i for i, v in enumerate(axis["places"])}
    for r in rows:
        r["at"] = "missing" if r["x"] is None else r["at"]
    there, lost = [r for r in rows if r["x"] is not None], [r for r in rows if r["x"] is None]
    if axis["kind"] == "category" or not there:
        rows = sorted(rows, key=lambda r: order.get(r["x"], len(order)))
        return _upright(curve, rows, str(axis["name"]), _gaps(ends), size)
    for i, r in enumerate(there):
        before = there[i - 1]
        r["stretch"] = 0 if i == 0 else before["stretch"] + (order[r["x"]] != order[before["x"]] + 1)
    known = [v for v in axis["places"] if v is not None]
    x = _units(axis, [known[0], known[-1], *(r["x"] for r in there)])
    return _with_people(curve, (there, lost), x, _gaps(ends), size)


def _units(axis: Variable, values: Sequence[float]) -> Axis:
    """The axis of a map in the user's unit, of ranks as a logarithm."""
    ends = parts.ends(values)
    if axis["kind"] == "date":
        return Axis(str(axis["name"]), "date", ends=ends)
    which: parts.Kind = "number" if axis["scaling"] != "rank" else "log" if min(values) > 0 else "symlog"
    name, unit = (parts.SAYS, "%") if axis["kind"] == "score" else (str(axis["name"]), "")
    return Axis(name, which, unit, ends)


def _cells(rows: list[parts.Row], axes: Sequence[Variable]) -> list[parts.Row]:
    """The points that have a place on both axes, each with the edges of its cell: half-way to its neighbours."""
    pairs = list(zip(axes, ("x", "x2"), strict=True))
    kept = [r for r in rows if all(a["kind"] == "category" or r[k] is not None for a, k in pairs)]
    if not kept:
        raise NotComputable("every point of the map has a missing value: use to_frame()")
    for a, k in pairs:
        if a["kind"] == "category":
            continue
        at = [v for v in a["places"] if v is not None]
        edges = [at[0], *((u + v) / 2 for u, v in pairwise(at)), at[-1]]
        for r in kept:
            r[f"{k}a"], r[f"{k}b"] = edges[at.index(r[k])], edges[at.index(r[k]) + 1]
    return kept


def _coloured(rows: list[parts.Row], axes: Sequence[Variable], most: float, small: bool) -> Panel:
    made, places, length = [], {}, parts.SMALL if small else 340
    for a, k, way in zip(axes, ("x", "x2"), ("x", "y"), strict=True):
        if a["kind"] == "category":
            made.append(Axis(a["name"], "names", names=[v for v in a["places"] if any(r[k] == v for r in rows)]))
            places[way] = k
            continue
        made.append(_units(a, [r[f"{k}{end}"] for r in rows for end in "ab"]))
        places |= {way: f"{k}a", f"{way}2": f"{k}b"}
    return Panel(rows, made[0], made[1], _heat(most, places), (length, length))


# ---- along the width of a kernel ----


def kernel_tuning(curve: Curve) -> Figure:
    """How often a planted error is missed, a line for each family: by the whole test, by one statistic alone."""
    s = curve.settings
    error = f"{num.nearest(s['planted'], 1)} points off on average"
    where = f", in {s['bands']} bands by {s['by_variable']}" if s["by_variable"] is not None else ""
    under = [f"{num.count(s['n'])} rows, {error}{where}. Bars: 95% ranges from {num.count(s['runs'])} data sets."]
    columns = {"the whole test": ("type_2", "low", "high"), "KLCE alone": ("raw", "raw_low", "raw_high")}
    panels = [replace(_missed(curve, *names), title=title) for title, names in columns.items()]
    return Figure("Which kernel finds this error", under, panels, together=False)


def _missed(curve: Curve, missed: str, low: str, high: str) -> Panel:
    words = {"width": "{width:.3g}", "misses": f"{{{missed}:p0}} in 100 ({{{low}:p0}} to {{{high}:p0}})"}
    rows, marks = parts.rows(curve, words, (missed, low, high)), []
    for r, width in zip(rows, curve.columns["width"], strict=True):
        r["x"] = width
    for family, colour in zip(dict.fromkeys(curve.columns["family"]), (LINE, HIGH, QUIET), strict=False):
        look: parts.Row = {"colour": colour, "rows": [r for r in rows if r["family"] == family]}
        marks += [Mark("range", y=low, y2=high, opacity=0.5, **look), Mark("line", y=missed, name=family, **look)]
        marks += [Mark("dot", y=missed, size=50, tips=("family", *words), **look)]
    widths = sorted(set(curve.columns["width"]))
    x = Axis("width, in median distances", "log", ends=(widths[0] / 1.1, widths[-1] * 1.1), ticks=widths)
    return Panel(rows, x, Axis("missed, of 100", ends=(0, 100)), marks, (parts.SMALL, parts.HEIGHT), legend=True)
