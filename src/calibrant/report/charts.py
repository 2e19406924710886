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
    "#010107": "var(--band)",
}
LINE, PAPER, GRID, QUIET, BAR, ZONE, BAND = SENTINELS
STEPS = (0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.5, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50, 100)
LEAST = 4  # points the axis of gaps reaches at least, where the axis of scores is whole
WINDOWS = (1, 2, 5, 10, 20, 50)
Window = tuple[float, float]
WHOLE: Window = (0.0, 100.0)
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
WIDE = Frame(530, 330, left=44)
NARROW = Frame(350, 300, left=42)


def points(curve: Curve) -> list[dict[str, float]]:
    """Return the bins of a reliability curve in points, ready to draw."""
    c = curve.columns
    keys = ("x_low", "x_high", "rows", "predicted", "observed", "gap", "low", "high")
    out = []
    for low, high, n, p, y, gap, a, b in zip(*(c[k] for k in keys), strict=True):
        out.append(
            {
                "low": low * 100,
                "high": high * 100,
                "rows": float(n),
                "predicted": p * 100,
                "observed": y * 100,
                "gap": gap * 100,
                "gap_low": a * 100,
                "gap_high": b * 100,
            }
        )
    return out


def window(curve: Curve) -> Window:
    """Return the part of the axis of scores, in points, that holds every bin: all of it, unless they crowd at an end."""
    return window_of([b[k] for b in points(curve) for k in ("predicted", "observed")])


def window_of(seen: list[float]) -> Window:
    """Return the part of the axis of probabilities, in points, that holds all of these."""
    for w in WINDOWS:
        if max(seen) <= w:
            return 0.0, float(w)
        if min(seen) >= 100 - w:
            return 100.0 - w, 100.0
    return WHOLE


def reach(rows: list[dict[str, float]], limit: float | None, across: Window = WHOLE) -> float:
    """Return where the axis of gaps ends: every gap and all but a few ranges are inside, and the limit if it is near.

    At least 4 points, or the same share of a part of the axis of scores.
    """
    ends = sorted(max(abs(b["gap_low"]), abs(b["gap_high"])) for b in rows)
    most = ends[max(0, -(-len(ends) * 9 // 10) - 1)]
    most = ends[-1] if ends[-1] <= 1.6 * most else most
    need = max(most, 1.1 * max(abs(b["gap"]) for b in rows), LEAST * (across[1] - across[0]) / 100)
    zone = 120 * (limit or 0.0)
    need = max(need, zone) if zone <= 2 * need or across == WHOLE else need
    return next((s for s in STEPS if s >= need), STEPS[-1])


def cut_off(curve: Curve, limit: float | None) -> bool:
    """Tell whether a range of the figure of gaps goes on beyond its axis."""
    bins = points(curve)
    top = reach(bins, limit, window(curve))
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

    bins, (low, high) = points(curve), window(curve)
    scale = alt.Scale(domain=[low, high], nice=False)
    axis = {"values": ticks((low, high), 5), "labelExpr": "datum.value + '%'", "title": None}
    x = alt.X("predicted:Q", scale=scale, axis=alt.Axis(grid=False, **axis))
    y = alt.Y("observed:Q", scale=scale, axis=alt.Axis(**axis))
    ends = alt.InlineData(values=[{"predicted": v, "observed": v} for v in (low, high)])
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

    bins, across = points(curve), window(curve)
    top = reach(bins, limit, across)
    for b in bins:
        b["a"], b["b"] = max(-top, min(top, b["gap_low"])), max(-top, min(top, b["gap_high"]))
        b["g"] = max(-top, min(top, b["gap"]))
    axes = places(alt, top, across, frame)
    x, y = axes
    base = alt.Chart(alt.InlineData(values=bins))
    layers = [
        *ground(alt, bins, top, limit, across, axes),
        base.mark_rule(color=LINE, strokeWidth=1.75, opacity=0.75).encode(x=x("predicted"), y=y("a"), y2="b:Q"),
        base.mark_point(filled=True, size=38, color=LINE, opacity=1).encode(x=x("predicted"), y=y("g")),
    ]
    return draw(alt.layer(*layers), frame)


def strip(bins: list[dict[str, float]], floor: float, ceiling: float, across: Window) -> None:
    """Give each bin the top of its bar in the strip: people per point of score, square-root height."""
    least = (across[1] - across[0]) / 100
    crowd = [b["rows"] / max(min(across[1], b["high"]) - max(across[0], b["low"]), least) for b in bins]
    for b, d in zip(bins, crowd, strict=True):
        b["floor"], b["crowd"] = floor, floor + (ceiling - floor) * (d / max(crowd)) ** 0.5
        left, right = max(across[0], b["low"]), min(across[1], b["high"])
        half = 0.5 * max(right - left, least)
        middle = min(across[1] - half, max(across[0] + half, (left + right) / 2))
        b["left"], b["right"] = middle - half * 0.86, middle + half * 0.86


def signed(points: float) -> str:
    """Write a label of an axis of gaps."""
    return f"{points:+g}".replace("-", "\u2212") if points else "0"


def ticks(across: Window, labels: int) -> list[float]:
    """Return equally spaced places for labels along the axis of scores."""
    low, high = across
    return [round(low + (high - low) * i / (labels - 1), 6) for i in range(labels)]


def places(alt: Any, top: float, across: Window, frame: Frame) -> tuple[Any, Any]:
    """Return what turns a column into the position across, and up, on the axes that all layers share."""
    sign = "(datum.value > 0 ? '+' : '') + format(datum.value, '~g')"
    up = alt.Axis(values=[top * k / 2 for k in (-2, -1, 0, 1, 2)], labelExpr=sign, title=None, domain=False)
    at = ticks(across, 5 if frame is NARROW else 6)
    side = alt.Axis(values=at, labelExpr="datum.value + '%'", grid=False, title=None)
    wide = alt.Scale(domain=list(across), nice=False)
    high = alt.Scale(domain=[-top * (1 + 2 * STRIP), top], nice=False)
    return (
        lambda column: alt.X(f"{column}:Q", scale=wide, axis=side),
        lambda column: alt.Y(f"{column}:Q", scale=high, axis=up),
    )


def ground(
    alt: Any, bins: list[dict[str, float]], top: float, limit: float | None, across: Window, axes: tuple[Any, Any]
) -> list[Any]:
    """Return what lies under every figure of gaps: the zone of the limit, the strip of people and the line of zero."""
    x, y = axes
    strip(bins, -top * (1 + 2 * STRIP), -top * 1.12, across)
    layers = []
    if limit is not None:
        edge = min(limit * 100, top)
        zone = alt.InlineData(values=[{"x": across[0], "x2": across[1], "y": -edge, "y2": edge}])
        layers.append(alt.Chart(zone).mark_rect(color=ZONE).encode(x=x("x"), x2="x2:Q", y=y("y"), y2="y2:Q"))
    bars = alt.Chart(alt.InlineData(values=bins)).mark_rect(color=BAR)
    return [
        *layers,
        bars.encode(x=x("left"), x2="right:Q", y=y("crowd"), y2="floor:Q"),
        alt.Chart(alt.InlineData(values=[{"g": 0}])).mark_rule(color=QUIET).encode(y=y("g")),
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
        .configure_axis(gridColor=GRID, domainColor=BAR, tickColor=BAR, labelFontSize=12, labelFlush=False, tickSize=4)
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
