"""The reliability figure: Altair specifications, drawn to SVG that follows the page's colours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from calibrant.results import Curve

# Drawn in colours that stand for the variables of the style sheet, and mapped to them afterwards.
SENTINELS = {
    "#010101": "var(--line)",
    "#010102": "var(--bg)",
    "#010103": "var(--grid)",
    "#010104": "var(--ink2)",
    "#010105": "var(--bar)",
    "#010106": "var(--okzone)",
}
LINE, PAPER, GRID, QUIET, BAR, ZONE = SENTINELS
STEPS = (4, 6, 8, 10, 15, 20, 30, 50, 100)
STRIP = 0.3  # share of the plot under the axis that holds the strip of people


@dataclass(frozen=True, slots=True)
class Frame:
    """Size of a picture and the margins around its plot, in pixels."""

    width: int
    height: int
    left: int = 40
    right: int = 20
    top: int = 22
    bottom: int = 38

    @property
    def plot(self) -> tuple[int, int]:
        """Width and height of the plot."""
        return self.width - self.left - self.right, self.height - self.top - self.bottom


SQUARE = Frame(280, 262, bottom=36)
WIDE = Frame(530, 330)
NARROW = Frame(350, 300, left=36)


def points(curve: Curve) -> list[dict[str, float]]:
    """Return the bins of a reliability curve in points, ready to draw."""
    c = curve.columns
    keys = ("low", "high", "rows", "predicted", "observed", "gap_low", "gap_high")
    out = []
    for low, high, n, p, y, a, b in zip(*(c[k] for k in keys), strict=True):
        out.append({
            "low": low * 100, "high": high * 100, "rows": float(n), "predicted": p * 100, "observed": y * 100,
            "gap": (y - p) * 100, "gap_low": a * 100, "gap_high": b * 100,
        })  # fmt: skip
    return out


def reach(bins: list[dict[str, float]], limit: float | None) -> int:
    """Return where the axis of gaps ends: 4 points or more; every gap and all but a few ranges are inside."""
    ends = sorted(max(abs(b["gap_low"]), abs(b["gap_high"])) for b in bins)
    most = ends[max(0, -(-len(ends) * 9 // 10) - 1)]
    most = ends[-1] if ends[-1] <= 1.6 * most else most
    gaps = max(abs(b["gap"]) for b in bins)
    need = max(most, 1.1 * gaps, 1.2 * 100 * (limit or 0.0))
    return next((s for s in STEPS if s >= need), STEPS[-1])


def cut_off(curve: Curve, limit: float | None) -> bool:
    """Tell whether a range of the figure of gaps goes on beyond its axis."""
    bins = points(curve)
    top = reach(bins, limit)
    return any(b["gap_low"] < -top or b["gap_high"] > top for b in bins)


def classic(curve: Curve) -> str:
    """Return the classic view: observed against predicted, the area of a dot is people.

    Parameters
    ----------
    curve : Curve
        With the columns of a record's ``reliability``.

    Returns
    -------
    str
        SVG markup without a title: the page says what it shows.
    """
    import altair as alt

    bins = points(curve)
    scale = alt.Scale(domain=[0, 100], nice=False)
    axis = {"values": [0, 25, 50, 75, 100], "labelExpr": "datum.value + '%'", "title": None}
    x = alt.X("predicted:Q", scale=scale, axis=alt.Axis(grid=False, **axis))
    y = alt.Y("observed:Q", scale=scale, axis=alt.Axis(**axis))
    ends = alt.InlineData(values=[{"predicted": 0, "observed": 0}, {"predicted": 100, "observed": 100}])
    most = max(b["rows"] for b in bins)
    size = alt.Size("rows:Q", scale=alt.Scale(domain=[0, most], range=[7, 90]), legend=None)
    chart = alt.layer(
        alt.Chart(ends).mark_line(color=QUIET, strokeDash=[5, 3], strokeWidth=1.5).encode(x=x, y=y),
        alt.Chart(alt.InlineData(values=bins))
        .mark_point(filled=True, fill=PAPER, stroke=LINE, strokeWidth=1.25, opacity=1)
        .encode(x=x, y=y, size=size),
    )
    return draw(chart, SQUARE)


def gaps(curve: Curve, limit: float | None, frame: Frame = WIDE) -> str:
    """Return the gap of every bin with its simultaneous range, and where the people are.

    Parameters
    ----------
    curve : Curve
        With the columns of a record's ``reliability``.
    limit : float or None
        Drawn as a zone around zero, for scale.
    frame : Frame

    Returns
    -------
    str
        SVG markup.
    """
    import altair as alt

    bins = points(curve)
    top = reach(bins, limit)
    floor = -top * (1 + 2 * STRIP)
    for b in bins:
        b["a"], b["b"] = max(-top, min(top, b["gap_low"])), max(-top, min(top, b["gap_high"]))
        b["g"] = max(-top, min(top, b["gap"]))
    strip(bins, floor, -top * 1.12)
    axes = _axes(alt, top, floor, 5 if frame is NARROW else 6)
    return draw(alt.layer(*_layers(alt, bins, top, limit, axes)), frame)


def strip(bins: list[dict[str, float]], floor: float, ceiling: float) -> None:
    """Give each bin the top of its bar in the strip: people per point of score, square-root height."""
    crowd = [b["rows"] / max(b["high"] - b["low"], 1.0) for b in bins]
    for b, d in zip(bins, crowd, strict=True):
        b["floor"], b["crowd"] = floor, floor + (ceiling - floor) * (d / max(crowd)) ** 0.5
        half = 0.5 * max(b["high"] - b["low"], 1.0)
        middle = min(100 - half, max(half, (b["low"] + b["high"]) / 2))
        b["left"], b["right"] = middle - half * 0.86, middle + half * 0.86


def _axes(alt: Any, top: int, floor: float, labels: int) -> tuple[Any, Any]:
    """Return what turns a column into the position across, and up, on the axes that all layers share."""
    sign = "datum.value > 0 ? '+' + datum.label : datum.label"
    ticks = [top * k / 2 for k in (-2, -1, 0, 1, 2)]
    up = alt.Axis(values=ticks, labelExpr=sign, format="~g", title=None, domain=False)
    at = [round(100 * i / (labels - 1)) for i in range(labels)]
    across = alt.Axis(values=at, labelExpr="datum.value + '%'", grid=False, title=None)
    wide, high = alt.Scale(domain=[0, 100], nice=False), alt.Scale(domain=[floor, top], nice=False)
    return (
        lambda column: alt.X(f"{column}:Q", scale=wide, axis=across),
        lambda column: alt.Y(f"{column}:Q", scale=high, axis=up),
    )


def _layers(
    alt: Any, bins: list[dict[str, float]], top: int, limit: float | None, axes: tuple[Any, Any]
) -> list[Any]:
    x, y = axes
    base = alt.Chart(alt.InlineData(values=bins))
    layers = []
    if limit is not None and limit * 100 < top:
        zone = alt.InlineData(values=[{"x": 0, "x2": 100, "y": -limit * 100, "y2": limit * 100}])
        layers.append(alt.Chart(zone).mark_rect(color=ZONE).encode(x=x("x"), x2="x2:Q", y=y("y"), y2="y2:Q"))
    whisker = base.mark_rule(color=LINE, strokeWidth=1.75, opacity=0.75)
    return [
        *layers,
        base.mark_rect(color=BAR).encode(x=x("left"), x2="right:Q", y=y("crowd"), y2="floor:Q"),
        alt.Chart(alt.InlineData(values=[{"g": 0}])).mark_rule(color=QUIET).encode(y=y("g")),
        whisker.encode(x=x("predicted"), y=y("a"), y2="b:Q"),
        base.mark_point(filled=True, size=38, color=LINE, opacity=1).encode(x=x("predicted"), y=y("g")),
    ]


def draw(chart: Any, frame: Frame) -> str:
    """Return a chart as SVG of exactly this frame, in the colours of the page, with no ids and no script."""
    import altair as alt
    import vl_convert as vlc

    width, height = frame.plot
    margins = {"left": frame.left, "right": frame.right, "top": frame.top, "bottom": frame.bottom}
    styled = (
        chart.properties(width=width, height=height, padding=margins, background="transparent")
        .properties(autosize=alt.AutoSizeParams(type="none"))
        .configure(aria=False)
        .configure_view(stroke=None)
        .configure_axis(
            gridColor=GRID, domainColor=BAR, tickColor=BAR, labelFontSize=12, labelFlush=False, tickSize=4
        )
    )
    ours = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    known = vlc.get_vegalite_versions()
    version = ours if ours in known else known[-1]
    return clean(vlc.vegalite_to_svg(styled.to_dict(), vl_version=version))


def clean(svg: str) -> str:
    """Map the stand-in colours to the page's variables and leave only what is drawn."""
    inner = svg[svg.index(">") + 1 : svg.rindex("</svg>")]
    for sentinel, variable in SENTINELS.items():
        inner = inner.replace(sentinel, variable)
    inner = re.sub(r' (?:role|aria-[a-z]+|class|font-family|font-size|pointer-events)="[^"]*"', "", inner)
    inner = re.sub(r'<path(?: d="[^"]*")?(?: d="")? display="none"/>|<path d="M0,0h0v0h0Z"/>', "", inner)
    inner = re.sub(r' opacity="1"| fill="#000"|<defs></defs>', "", inner)
    return re.sub(r"-?\d+\.\d{3,}(?:e-\d+)?", lambda m: f"{float(m[0]):.2f}", inner)
