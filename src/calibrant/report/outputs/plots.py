"""Curves on axes of Matplotlib: a line in its band, ranges under each other, or a map; `Curve.plot` loads this file.

What a curve is drawn as is data: see `LINES` and `RANGES`. `Curve.chart` draws the same in a browser, with tooltips.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import NotComputable
from calibrant.report import numbers as num
from calibrant.report.places import BAND, HIGH, INK, LINE, LOW, PAPER, QUIET
from calibrant.report.spans import clipped
from calibrant.results import Curve
from calibrant.sanitize import sanitize

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
GAP, PREDICTED = "observed minus predicted, points", "predicted probability, %"
LONGEST, MOST = 40, 60  # characters of a name; lines under each other
WIDTH, ROW, AROUND = 7.0, 0.3, 1.4  # inches
ROOM = 0.12  # of the axis, for what has no place on it
REACH = 1.5  # times the usual width of a range, beyond which a wider one is cut by the picture


@dataclass(frozen=True)
class Line:
    """A line over numbers: the columns of its places, of its values, and of the ends of its band."""

    title: str
    x: str
    y: str
    titles: tuple[str, str]
    ends: tuple[str, str] | None = ("low", "high")
    scales: tuple[float, float] = (100.0, 100.0)
    others: tuple[tuple[str, str], ...] = ()  # columns that are drawn dashed, and what they are called
    zero: str | None = ""  # what no value is called; None for no line there
    dots: bool = False
    apart: str = "group"


@dataclass(frozen=True)
class Ranges:
    """A dot with its ranges for each name: the outer range is drawn thin."""

    title: str
    names: tuple[str, ...]
    value: str | None
    axis: str
    layers: tuple[tuple[str, str, str], ...] = (("low", "high", ""),)  # both ends, and what the range is called
    scale: float = 100.0
    zero: float | None = 0.0


THREE = (("gap_guaranteed_low", "gap_guaranteed_high", "guaranteed"), ("gap_low", "gap_high", "interval"))
RATES = (("guaranteed_low", "guaranteed_high", "certified"), ("low", "high", "interval"))
HIDDEN = "Gaps of subgroups"
LINES: Mapping[str, Line] = {
    "diagnose.reliability_curve": Line("Gap by score", "predicted", "gap", (PREDICTED, GAP)),
    "reliability": Line("Gap by range of the score", "predicted", "gap", (PREDICTED, GAP), dots=True),
    "diagnose.decision_curve": Line(
        "Net benefit",
        "threshold",
        "net_benefit",
        ("threshold, %", "net benefit, true positives per 100"),
        others=(("treat_all", "acting on everyone"),),
        zero="acting on nobody",
    ),
    "diagnose.acceptance_curve": Line(
        "How much may be accepted",
        "share",
        "rate",
        ("share accepted, %", "wrong among the accepted, %"),
        None,
        others=(("high", "certified, at most"),),
        zero=None,
    ),
    "diagnose.control_chart": Line(
        "Control chart",
        "x",
        "evidence",
        ("share of people, most suspicious first, %", "evidence of error"),
        None,
        (100.0, 1.0),
        (("line", "level of the test"),),
    ),
    "papers.calibration_function": Line(
        "Calibration function",
        "x",
        "rate",
        (PREDICTED, "event rate, %"),
        None,
        others=(("x", "calibrated"),),
        zero=None,
    ),
    "papers.reliability_diagram": Line(
        "Reliability diagram",
        "x",
        "rate",
        ("confidence, %", "accuracy, %"),
        None,
        others=(("x", "calibrated"),),
        zero=None,
        dots=True,
    ),
}
RANGES: Mapping[str, Ranges] = {
    "audit": Ranges("Everyone and groups", ("group",), "gap", GAP, THREE),
    "audit.class_matrix": Ranges(
        "Which class comes true in place of which", ("predicted_class", "true_class"), "gap", GAP
    ),
    "audit.class_repairs": Ranges(
        "Calibration error of all classes after each repair",
        ("repair",),
        None,
        "points",
        (("low", "high", "certified"),),
    ),
    "certify.by_fewer": Ranges("Groups decided by fewer columns", ("by",), "decided", "groups", (), 1.0, None),
    "audit.rates": Ranges("Rates at a threshold", ("group", "rate", "threshold"), "value", "rate, %", RATES, zero=None),
    "audit.rate_differences": Ranges(
        "Largest difference between groups",
        ("variable", "rate", "threshold"),
        "difference",
        "highest less lowest rate, points",
        RATES,
    ),
    "audit.decisions": Ranges(
        "Net benefit at a threshold",
        ("group", "threshold"),
        "net_benefit",
        "true positives per 100",
        (("net_benefit_low", "net_benefit_high", "certified"),),
    ),
    "audit.dependence": Ranges(
        "Design effect of columns",
        ("columns",),
        "design_effect",
        "variance over that of independent rows",
        (),
        1.0,
        1.0,
    ),
    "audit.sites": Ranges("Sites", ("rank",), "estimate", "calibration intercept, logits", scale=1.0),
    "diagnose.heterogeneity": Ranges("Sites", ("site",), "estimate", "calibration intercept, logits", scale=1.0),
    "diagnose.subgroups": Ranges(HIDDEN, ("rule",), "gap", GAP),
    "diagnose.subgroups.searched": Ranges(HIDDEN, ("rule",), "gap", GAP),
    "diagnose.rank_variables": Ranges(
        "Error by variable",
        ("variable",),
        "beyond_gap",
        "error beyond the overall gap, points",
        (("beyond_low", "beyond_high", ""),),
    ),
    "diagnose.importance": Ranges(
        "Which variables the finding rests on", ("variable",), "drop", "evidence lost when it is shuffled", scale=1.0
    ),
    "diagnose.variable_curve": Ranges("Gap by level", ("label",), "gap", GAP),
    "diagnose.local_bias": Ranges("Gap by level", ("label",), "gap", GAP),
    "detect.kernel_tuning": Ranges(
        "Errors missed by kernel", ("family", "score_width", "covariate_width"), "type_2", "not detected, %", ()
    ),
    "measure.inferred_mean": Ranges(
        "Probabilities in place of labels", ("variable", "level"), "bias", "inferred minus observed, points"
    ),
    "audit.horizons": Ranges("Gap by horizon", ("people", "horizon"), "gap", "observed minus predicted, points"),
    "audit.change": Ranges("Change of the gap", ("group",), "change", "now less before, points"),
    "audit.task_trust": Ranges(
        "Means that were to be inferred", ("variable", "level"), "bias", "inferred minus observed, points"
    ),
    "repair.evaluate": Ranges(
        "Error after each repair",
        ("probability",),
        None,
        "calibration error, points",
        (("error_low", "error_high", "certified"),),
    ),
    "repair.evaluate.fixed": Ranges(
        "Now and after the repair",
        ("who",),
        None,
        "gap or error, points",
        (("now_low", "now_high", "now"), ("after_low", "after_high", "after")),
    ),
    "repair.evaluate.decisions": Ranges(
        "Gain in net benefit by repair",
        ("probability", "population", "threshold"),
        "gain",
        "true positives per 100",
        (("gain_low", "gain_high", "certified"),),
    ),
    "certify.missing_labels": Ranges(
        "With people without a label",
        ("people", "assumption"),
        None,
        "gap or error, points",
        (("low", "high", "certified"),),
    ),
    "diagnose.missing_labels": Ranges(
        "Who is without a label", ("variable", "level"), "share", "without a label, %", ()
    ),
    "compare": Ranges(
        "Models compared", ("model", "population"), "difference", "difference from the reference", scale=1.0
    ),
    "grades": Ranges("Default rate by grade", ("rating_grade",), "default_rate", "default rate, %", (), zero=None),
}


def plot(curve: Curve, ax: Axes | None = None) -> Axes:
    """Draw a curve, on axes of its own where none are passed."""
    if not next(iter(curve.columns.values()), ()):
        reason = curve.settings.get("reason")
        raise NotComputable(f"the curve is empty: {reason or 'there is nothing to draw'}")
    drawn = _drawn(curve)
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError('a plot needs Matplotlib: pip install "calibrant[displays]"') from None
    if ax is None:
        lines = min(len(next(iter(curve.columns.values()))), MOST) if isinstance(drawn, Ranges) else 0
        _, ax = plt.subplots(figsize=(WIDTH, max(AROUND + ROW * lines, 2.4) if lines else 4.2), layout="constrained")
    match drawn:
        case Line():
            _line(curve, drawn, ax)
        case Ranges():
            _ranges(curve, drawn, ax)
        case _:
            _map(curve, drawn, ax)
    for spine in ("top", "right"):
        ax.spines[spine].set_color("none")
    return ax


Map = tuple[str, str, str, str]  # the columns of both places, and the titles of both axes


def _drawn(curve: Curve) -> Line | Ranges | Map:
    """What a curve is drawn as."""
    s, method = curve.settings, curve.method
    if method == "diagnose.subgroup_map":
        first, second = (str(axis["name"]) for axis in s["axes"])
        return ("first", "second", first, second)
    if method in ("diagnose.variable_curve", "diagnose.local_bias"):
        return _by_variable(curve) if method == "diagnose.variable_curve" else _by_axes(curve)
    if method == "diagnose.heterogeneity" and s["measure"] == "slope":
        return replace(RANGES[method], axis="calibration slope", zero=1.0)
    result = LINES.get(method) or RANGES.get(method)
    if result is None:
        raise NotComputable(f"there is no plot of {method}, a table: use to_frame()")
    return result


def _by_variable(curve: Curve) -> Line | Ranges | Map:
    """A variable curve: a line over numbers, a range for each level, or a map of two variables."""
    s = curve.settings
    if s["kind"] == "pair":
        first, second = map(str, s["variable"])
        return ("label", "group", first, second)
    of = str(s["variable"])
    if s["kind"] == "levels":
        names = ("group", "label") if s["by"] else ("label",)
        return replace(RANGES[curve.method], title=f"Gap by {of}", names=names)
    return Line(f"Gap by {of}", "x", "gap", (of, GAP), scales=(1.0, 100.0))


def _by_axes(curve: Curve) -> Line | Ranges | Map:
    """A map of the bias along one axis or two."""
    axes = curve.settings.get("axes", ())
    if "people" not in curve.columns or not axes:
        raise NotComputable("there is no plot of the bias at rows or at scattered points: use to_frame()")
    titles = ["the score" if a["kind"] == "score" else str(a["name"]) for a in axes]
    if len(axes) == 2:
        return ("x", "x2", titles[0], titles[1])
    if axes[0]["kind"] in ("category", "date"):
        return replace(RANGES[curve.method], title=f"Gap by {titles[0]}")
    scale = 100.0 if axes[0]["kind"] == "score" else 1.0
    return Line(f"Gap by {titles[0]}", "x", "gap", (titles[0], GAP), scales=(scale, 100.0))


def _numbers(curve: Curve, column: str, scale: float = 1.0) -> Floats:
    return np.array([np.nan if v is None else float(v) for v in curve.columns[column]]) * scale


def _level(curve: Curve) -> str:
    """The level of the ranges, such as "95% "."""
    s = curve.settings
    level = s.get("level", None if "alpha" not in s else 1.0 - float(s["alpha"]))
    return "" if level is None else f"{num.percent(float(level))}% "


def _text(words: object, most: int = LONGEST) -> str:
    """Words of the data as they are shown: Matplotlib would typeset what stands between dollars."""
    return clipped(sanitize(str(words)), most).replace("$", r"\$")


# ---- a line in its band ----


def _line(curve: Curve, how: Line, ax: Axes) -> None:
    c = curve.columns
    groups = list(dict.fromkeys(c[how.apart])) if how.apart in c else [None]
    for name, values in ((k, v) for k, v in c.items() if k.startswith("null_")):
        drawn = ax.plot(_numbers(curve, how.x, how.scales[0]), values, color=BAND, linewidth=0.8)
        drawn[0].set_label("calibrated" if name == "null_1" else "_")
    for i, group in enumerate(groups):
        own = np.array([group is None or g == group for g in c.get(how.apart, (None,) * len(c[how.x]))])
        one = (LINE, how.y.replace("_", " ")) if len(groups) == 1 else (f"C{i}", _text(group))
        _one_line(curve, how, ax, own & np.isfinite(_numbers(curve, how.x)), one)
    if how.zero is not None:
        ax.axhline(0.0, color=QUIET, linewidth=1, label=how.zero or None)
    _without_place(curve, how, ax)
    _limits(curve, how.titles[1] == GAP, ax.axhline)
    if curve.settings.get("date") is True:
        ax.xaxis_date()
    if curve.method == "diagnose.decision_curve":
        top = max(*c["net_benefit"], *c["treat_all"], 0.001) * how.scales[1]
        ax.set_ylim(-0.25 * top, 1.1 * top)  # acting on everyone soon loses more than any picture holds
    _titled(ax, how.title, *how.titles)
    handles, labels = ax.get_legend_handles_labels()
    kept = {label: handle for handle, label in zip(handles, labels, strict=True)}
    if len(kept) > 1:
        ax.legend(kept.values(), kept.keys(), frameon=False, fontsize="small")


def _one_line(curve: Curve, how: Line, ax: Axes, own: NDArray[np.bool_], one: tuple[str, str]) -> None:
    """Draw the line of one group in its band, stretch by stretch; `one` is its colour and its name."""
    (across, up), (colour, name) = how.scales, one
    x, y = _numbers(curve, how.x, across), _numbers(curve, how.y, up)
    low, high = (_numbers(curve, end, up) for end in how.ends) if how.ends else (y, y)
    if how.dots:
        off = [np.abs(end - y)[own] for end in (low, high)]
        label = f"{_level(curve)}intervals"
        ax.errorbar(x[own], y[own], yerr=off, fmt="o", color=colour, ecolor=QUIET, markersize=4, label=label)
        return
    stretch = np.array(curve.columns.get("stretch", (0,) * len(x)))
    for run in dict.fromkeys(stretch[own].tolist()):
        here = own & (stretch == run)
        if how.ends:
            label = f"{_level(curve)}band"
            ax.fill_between(x[here], low[here], high[here], color=colour, alpha=0.2, linewidth=0, label=label)
        ax.plot(x[here], y[here], color=colour, linewidth=2, label=name)
        for column, called in how.others:
            ax.plot(x[here], _numbers(curve, column, up)[here], "--", color=QUIET, linewidth=1.2, label=called)


def _without_place(curve: Curve, how: Line, ax: Axes) -> None:
    """Draw points without a number, such as missing values, at the right of the axis with their label."""
    c = curve.columns
    lost = [i for i, v in enumerate(c[how.x]) if v is None]
    known = [float(v) for v in c[how.x] if v is not None]
    if not lost or not known or how.ends is None or "label" not in c:
        return
    step = ROOM * (max(known) - min(known) or 1.0) * how.scales[0]
    ends = [_numbers(curve, name, how.scales[1]) for name in how.ends]
    y = _numbers(curve, how.y, how.scales[1])
    for k, i in enumerate(lost, 1):
        at = max(known) * how.scales[0] + k * step
        ax.errorbar([at], [y[i]], yerr=[[y[i] - ends[0][i]], [ends[1][i] - y[i]]], fmt="o", color=INK, markersize=4)
        ax.annotate(_text(c["label"][i]), (at, y[i]), (4, 4), textcoords="offset points", fontsize="small")


def _limits(curve: Curve, gaps: bool, rule: Callable[..., object]) -> None:
    """Draw the limit to either side of no gap."""
    limit = curve.settings.get("limit")
    size = float(limit) if gaps and limit is not None else None
    for side in () if size is None else (-100.0 * size, 100.0 * size):
        rule(side, color=QUIET, linewidth=1, linestyle=":", label="limit" if side > 0 else None)


def _titled(ax: Axes, title: str, x: str, y: str) -> None:
    ax.set_title(_text(title, 2 * LONGEST), loc="left", color=INK)
    ax.set_xlabel(_text(x, 2 * LONGEST))
    ax.set_ylabel(_text(y, 2 * LONGEST))


# ---- ranges under each other ----


def _ranges(curve: Curve, how: Ranges, ax: Axes) -> None:
    drawn = [c for c in (how.value, *(end for a, b, _ in how.layers for end in (a, b))) if c is not None]
    there = np.any([np.isfinite(_numbers(curve, c)) for c in drawn], axis=0)
    known, keep = int(there.sum()), np.flatnonzero(there)[:MOST]
    if not known:
        raise NotComputable("no line of the curve has a number: there is nothing to draw")
    parts = [[curve.columns[name][i] for i in keep] for name in how.names]
    names = [_name(values) for values in zip(*parts, strict=True)]
    at = np.arange(len(names))
    value = None if how.value is None else _numbers(curve, how.value, how.scale)[keep]
    layers = [tuple(_numbers(curve, c, how.scale)[keep] for c in (a, b)) for a, b, _ in how.layers]
    after = how.layers and how.value is None and len(layers) > 1
    for k, ((low, high), called) in enumerate(zip(layers, (layer[2] for layer in how.layers), strict=True)):
        label = f"{_level(curve)}{called or 'range'}" if called not in ("now", "after") else called
        thin = k == 0 and len(layers) > 1
        colour, height = (QUIET, 1.2) if thin and not after else (LINE if k or not after else QUIET, 3.0)
        ax.hlines(at + (0.2 * k - 0.1 if after else 0.0), low, high, color=colour, linewidth=height, label=label)
    if value is not None:
        ax.plot(value, at, "o", color=LINE, markersize=5, label="estimate", linestyle="none")
    if "pd" in curve.columns:
        ax.plot(
            _numbers(curve, "pd", how.scale)[keep], at, "|", color=HIGH, markersize=12, label="PD", linestyle="none"
        )
    if how.zero is not None:
        ax.axvline(how.zero, color=QUIET, linewidth=1)
    _limits(curve, how.axis == GAP, ax.axvline)
    _window(ax, layers, value, how.zero)
    ax.set_yticks(at, names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    first = f" (first {MOST} of {known})" if known > MOST else ""
    _titled(ax, f"{how.title}{first}", how.axis, "")
    if len(layers) + (value is not None) > 1:
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))


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
    return _text(", ".join(words))


RATE_NAMES = ("selection_rate", "true_positive_rate", "false_positive_rate")


def _window(ax: Axes, layers: Sequence[tuple[Floats, ...]], value: Floats | None, zero: float | None) -> None:
    """Set how far the axis reaches: over all estimates and usual ranges; a far wider one runs off."""
    ends = [v for low, high in layers for v in (low, high)]
    kept = [v for v in (value, *ends) if v is not None]
    numbers = np.concatenate([*kept, np.array([] if zero is None else [zero])])
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return
    low, high = float(numbers.min()), float(numbers.max())
    if layers and len(layers[0][0]) > 4:
        wide = layers[0][1] - layers[0][0]
        usual = REACH * float(np.nanquantile(wide, 0.75))
        most = [v for a, b in layers for v in (a[~(wide > usual)], b[~(wide > usual)])]
        inside = np.concatenate([*most, *([] if value is None else [value]), np.array([] if zero is None else [zero])])
        inside = inside[np.isfinite(inside)]
        low, high = float(inside.min()), float(inside.max())
    edge = 0.05 * (high - low or 1.0)
    ax.set_xlim(low - edge, high + edge)


# ---- a map of two variables ----


def _map(curve: Curve, how: Map, ax: Axes) -> None:
    """Draw gaps as colours in cells, with their numbers where there is room."""
    from matplotlib.colors import LinearSegmentedColormap

    first, second, *titles = how
    columns = [curve.columns[name] for name in (first, second)]
    axes = curve.settings.get("axes", ({}, {}))
    places = [_places(c, a) for c, a in zip(columns, axes, strict=True)]
    grid = np.full((len(places[1]), len(places[0])), np.nan)
    for x, y, gap in zip(*columns, _numbers(curve, "gap", 100.0), strict=True):
        grid[places[1].index(y), places[0].index(x)] = gap
    most = float(np.nanmax(np.abs(grid))) or 1.0
    colours = LinearSegmentedColormap.from_list("gaps", [LOW, PAPER, HIGH])
    drawn = ax.pcolormesh(grid, cmap=colours, vmin=-most, vmax=most, edgecolors=PAPER, linewidth=0.5)
    ax.figure.colorbar(drawn, ax=ax, label=GAP)
    few = grid.size <= MOST * 2
    for (j, i), gap in np.ndenumerate(grid):
        if few and np.isfinite(gap):
            pale = PAPER if abs(gap) > 0.6 * most else INK
            ax.text(i + 0.5, j + 0.5, num.gap(gap / 100.0), ha="center", va="center", fontsize="small", color=pale)
    for k, ticks in enumerate((ax.set_xticks, ax.set_yticks)):
        labels = axes[k].get("labels") if curve.method == "diagnose.subgroup_map" else None
        named = places[k] if labels is None else [labels[v] or "not named" for v in places[k]]
        step = max(1, len(named) // 12)
        at, texts = np.arange(len(named))[::step] + 0.5, [_text(_short(v)) for v in named[::step]]
        ticks(at, texts)
        if k == 0 and max(map(len, texts)) > 5:
            ax.tick_params(axis="x", rotation=40)
    _titled(ax, f"Gap by {titles[0]} and {titles[1]}", *titles)


def _places(values: Sequence[object], axis: Mapping[str, Sequence[object]]) -> list[object]:
    """The places along an axis, in their order."""
    known = axis.get("places")
    there = set(values)
    listed = list(dict.fromkeys(values)) if known is None else [v for v in known if v in there]
    if known is None and all(isinstance(v, (int, float)) for v in listed):
        listed.sort(key=lambda v: float(str(v)))
    return [*listed, *(v for v in dict.fromkeys(values) if v not in listed)]


def _short(value: object) -> str:
    return "missing" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
