"""Interactive charts along variables: the curve with its residual, small multiples, heat map, and the ranking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrant.errors import NotComputable
from calibrant.report import numbers as num
from calibrant.report.order import side
from calibrant.report.wording import DIRECTIONS
from calibrant.results import Curve

WIDTH, SMALL = 560, 250
UP = "happened minus model says, points"
SIGN = "(datum.value > 0 ? '+' : '') + replace(format(datum.value, '~g'), '-', '\u2212')"
TIPS = ("at", "model says", "happened", "off by", "band", "finding", "effective rows")


@dataclass(frozen=True, slots=True)
class Colours:
    """The report's palette, for light or dark paper."""

    line: str
    band: str
    quiet: str
    ink: str
    paper: str
    grid: str
    high: str
    low: str


LIGHT = Colours("#27517a", "#b9cbdd", "#576068", "#1e2428", "#ffffff", "#e6e4df", "#b03a06", "#0a6a86")
DARK = Colours("#8fbbe8", "#3a5169", "#a7b0b6", "#e8e7e2", "#15191c", "#2c3338", "#f39a70", "#62bcd8")


def curve_chart(curve: Curve, dark: bool = False) -> Any:
    """Return a variable curve as an interactive Altair chart.

    A number or date: the two rates of the paper's plot, the residual in its simultaneous band, and where people are. A
    category: a point and a range for each level. `by`: small multiples on the same axes. A pair: a heat map.

    Parameters
    ----------
    curve : Curve
        Of `diagnose.variable_curve`.
    dark : bool
        Draw for a dark background.
    """
    c = DARK if dark else LIGHT
    kind = curve.settings["kind"]
    made = _heat(curve, c) if kind == "pair" else _levels(curve, c) if kind == "levels" else _line(curve, c)
    return dressed(made, c)


def ranking_chart(curve: Curve, dark: bool = False) -> Any:
    """Return a ranking as bars with certified ranges; a variable without a finding is pale.

    Parameters
    ----------
    curve : Curve
        Of `diagnose.rank_variables`.
    dark : bool
        Draw for a dark background.
    """
    import altair as alt

    c = DARK if dark else LIGHT
    rows = _ranks(curve)
    y = alt.Y("variable:N", sort=None, title=None, axis=alt.Axis(labelLimit=220, domain=False, ticks=False))
    x = alt.X("size:Q", title="error beyond the overall shift, points", axis=alt.Axis(tickCount=6))
    tips = [alt.Tooltip(f"{k}:N") for k in ("variable", "beyond the shift", "certified", "overall", "p", "worst")]
    found = alt.Color(
        "finding:N",
        title=None,
        legend=alt.Legend(orient="top", symbolType="square"),
        scale=alt.Scale(domain=["error follows it", "not shown"], range=[c.line, c.band]),
    )
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=y)
    held = alt.Chart(alt.InlineData(values=[r for r in rows if r["low"] is not None])).encode(y=y)
    bars = base.mark_bar(height=13).encode(x=x, color=found, tooltip=tips)
    ranges = held.mark_rule(color=c.ink, strokeWidth=1.25).encode(x="low:Q", x2="high:Q", tooltip=tips)
    ends = [held.mark_tick(color=c.ink, size=8, thickness=1.25).encode(x=f"{k}:Q") for k in ("low", "high")]
    alpha = num.percent(1 - float(curve.settings["alpha"]))
    shift = num.gap(float(curve.settings["shift"]))
    under = [f"Overall shift, left out here: {shift} points. Lines: certified ranges, all together at {alpha} %."]
    title = alt.TitleParams("Which variables the error follows", subtitle=under)
    return dressed(alt.layer(bars, ranges, *ends, title=title).properties(width=WIDTH, height=alt.Step(24)), c)


def _ranks(curve: Curve) -> list[dict[str, Any]]:
    c, alpha, out = curve.columns, float(curve.settings["alpha"]), []
    for i, name in enumerate(c["variable"]):
        low, high = c["beyond_low"][i], c["beyond_high"][i]
        certified = f"{num.lower_bound(low)} to {num.upper_bound(high)}" if low is not None else "no range"
        out.append(
            {
                "variable": name,
                "size": 100 * c["beyond_shift"][i],
                "low": None if low is None else 100 * low,
                "high": None if high is None else 100 * high,
                "certified": f"{certified} points",
                "finding": "error follows it" if c["p_adjusted"][i] <= alpha else "not shown",
                "beyond the shift": f"{num.nearest(c['beyond_shift'][i], 2)} points",
                "overall": f"{num.nearest(c['vece'][i], 2)} points",
                "p": f"{c['p_adjusted'][i]:.2g} (adjusted)",
                "worst": f"{c['worst'][i]}: {num.gap(c['worst_gap'][i], 1)} points, {num.count(c['worst_rows'][i])} rows",
            }
        )
    return out


def _points(curve: Curve) -> list[dict[str, Any]]:
    """Return the points in points of probability, with what the tooltip says."""
    c, out = curve.columns, []
    keys = ("group", "x", "label", "predicted", "observed", "gap", "low", "high", "rows", "density", "stretch")
    for group, x, label, says, happened, gap, low, high, n, crowd, stretch in zip(*(c[k] for k in keys), strict=True):
        a, b = num.signed_range(low, high, 1)
        out.append(
            {
                "group": group,
                "x": label if curve.settings["date"] and x is not None else x,
                "label": label,
                "gap": 100 * gap,
                "low": 100 * low,
                "high": 100 * high,
                "stretch": stretch,
                "density": crowd,
                "says": 100 * says,
                "rate": 100 * happened,
                "at": label,
                "model says": f"{num.nearest(says)} in 100",
                "happened": f"{num.nearest(happened)} in 100",
                "off by": f"{num.gap(gap)} points",
                "band": f"{a} to {b} points",
                "finding": DIRECTIONS[side(low, high)],
                "effective rows": num.count(n),
                "off": side(low, high) != "unclear",
            }
        )
    return out


def _line(curve: Curve, c: Colours) -> Any:
    """Return the rates, the residual and the strip of people; small multiples where there are groups."""
    import altair as alt

    points = _points(curve)
    groups = list(dict.fromkeys(p["group"] for p in points))
    for p in points:
        p["number"] = groups.index(p["group"])
    columns = [_column(alt, curve, [p for p in points if p["group"] == g], g, c, len(groups) > 1) for g in groups]
    body = columns[0] if len(columns) == 1 else alt.concat(*columns, columns=3)
    return body.properties(title=_title(curve)).resolve_scale(color="shared")


def _column(alt: Any, curve: Curve, points: list[dict[str, Any]], group: str, c: Colours, small: bool) -> Any:
    """Return one group's pictures above each other, on the same horizontal axis; small ones share their gaps' axis."""
    line, alone = [p for p in points if p["stretch"] >= 0], [p for p in points if p["stretch"] < 0]
    width = SMALL if small else WIDTH
    parts = [_gaps(alt, curve, line, c, small).properties(width=width, height=190)]
    if not small:
        parts.insert(0, _rates(alt, curve, line, c).properties(width=width, height=150))
    parts.append(_crowd(alt, curve, line, c).properties(width=width, height=34))
    made = alt.vconcat(*parts, spacing=6).resolve_scale(x="shared")
    if alone:
        made = alt.hconcat(made, _alone(alt, alone, c, _reach(curve)), spacing=4)
    return made.properties(title=alt.TitleParams(f"{curve.settings['by']}: {group}", fontSize=12)) if small else made


def _across(alt: Any, curve: Curve, title: bool) -> Any:
    name = str(curve.settings["variable"]) if title else None
    points = zip(curve.columns["x"], curve.columns["label"], strict=True)
    dates = curve.settings["date"]
    ends = sorted((x, label if dates else x) for x, label in points if x is not None)
    scale: dict[str, Any] = {"domain": [ends[0][1], ends[-1][1]], "nice": False}
    if not dates:
        return alt.X("x:Q", title=name, scale=alt.Scale(zero=False, **scale), axis=alt.Axis(labels=title, ticks=title))
    axis = alt.Axis(labels=title, ticks=title, format="%b %Y", tickCount=6, labelFlush=False)
    return alt.X("x:T", title=name, scale=alt.Scale(type="utc", **scale), axis=axis)


def _rates(alt: Any, curve: Curve, points: list[dict[str, Any]], c: Colours) -> Any:
    """Return the paper's plot: error and predicted error in the confidence view, else event rate and mean probability."""
    error = curve.settings["view"] == "confidence"
    names = ("error rate", "predicted error") if error else ("happened", "model says")
    values = [
        {"x": p["x"], "stretch": p["stretch"], "of": name, "rate": 100 - p[k] if error else p[k]}
        for name, k in zip(names, ("rate", "says"), strict=True)
        for p in points
    ]
    colour = alt.Color(
        "of:N",
        title=None,
        sort=None,
        scale=alt.Scale(domain=list(names), range=[c.high, c.line]),
        legend=alt.Legend(orient="top", symbolType="stroke"),
    )
    dash = alt.StrokeDash("of:N", scale=alt.Scale(domain=list(names), range=[[1, 0], [5, 3]]), legend=None)
    y = alt.Y("rate:Q", title="in 100", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5))
    base = alt.Chart(alt.InlineData(values=values)).mark_line(strokeWidth=2)
    detail = alt.Detail(["stretch:N"])
    return base.encode(x=_across(alt, curve, False), y=y, color=colour, strokeDash=dash, detail=detail)


def _reach(curve: Curve) -> list[float]:
    """Return the ends of the axis of gaps: zero, all gaps, and all bands but a few that are far wider."""
    k = curve.columns
    widths = sorted(b - a for a, b in zip(k["low"], k["high"], strict=True))
    usual = 2.5 * widths[len(widths) * 3 // 4]
    held = [(a, b, g) for a, b, g in zip(k["low"], k["high"], k["gap"], strict=True) if b - a <= usual]
    low = min([0.0, *(a for a, _, _ in held), *(1.1 * g for g in k["gap"])])
    high = max([0.0, *(b for _, b, _ in held), *(1.1 * g for g in k["gap"])])
    edge = 0.05 * max(high - low, 0.01)
    return [100 * (low - edge), 100 * (high + edge)]


def _gaps(alt: Any, curve: Curve, points: list[dict[str, Any]], c: Colours, small: bool) -> Any:
    """Return the residual in its simultaneous band, with the point nearest to the pointer told."""
    scale = alt.Scale(domain=_reach(curve), nice=False)
    up = alt.Axis(labelExpr=SIGN, tickCount=5)
    x = _across(alt, curve, False)
    y = alt.Y("gap:Q", title="points" if small else UP, axis=up, scale=scale)
    name = f"near{next(iter(points), {}).get('number', 0)}"
    near = alt.selection_point(name, nearest=True, on="pointerover", fields=["x"], empty=False, clear="pointerout")
    base = alt.Chart(alt.InlineData(values=points)).encode(x=x)
    tips = [alt.Tooltip(f"{k}:N") for k in TIPS]
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color=c.quiet).encode(y="zero:Q")
    here = alt.condition(near, alt.value(1.0), alt.value(0.0))
    area = base.mark_area(color=c.band, opacity=0.75, clip=True)
    return alt.layer(
        area.encode(
            y=alt.Y("low:Q", title="points" if small else UP, axis=up, scale=scale), y2="high:Q", detail="stretch:N"
        ),
        zero,
        base.mark_line(color=c.line, strokeWidth=2, clip=True).encode(y=y, detail="stretch:N"),
        base.mark_point(filled=True, size=60, color=c.line).encode(y=y, opacity=here, tooltip=tips).add_params(near),
    )


def _crowd(alt: Any, curve: Curve, points: list[dict[str, Any]], c: Colours) -> Any:
    """Return the strip that shows where the people are."""
    y = alt.Y("density:Q", title="people", axis=alt.Axis(labels=False, ticks=False, grid=False, domain=False))
    base = alt.Chart(alt.InlineData(values=points)).mark_area(color=c.quiet, opacity=0.45)
    return base.encode(x=_across(alt, curve, True), y=y, detail="stretch:N")


def _alone(alt: Any, points: list[dict[str, Any]], c: Colours, domain: list[float]) -> Any:
    """Return the levels that stand beside a curve, such as missing values."""
    x = alt.X("label:N", sort=None, title=None, axis=alt.Axis(labelAngle=0))
    scale = alt.Scale(domain=domain, nice=False)
    tips = [alt.Tooltip(f"{k}:N") for k in TIPS]
    base = alt.Chart(alt.InlineData(values=points)).encode(x=x, tooltip=tips)
    y = alt.Y("gap:Q", title="points", scale=scale, axis=alt.Axis(labelExpr=SIGN, tickCount=5))
    return alt.layer(
        base.mark_rule(color=c.line, strokeWidth=1.75, clip=True).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        base.mark_point(filled=True, size=45, color=c.line, opacity=1).encode(y=y),
    ).properties(width=60, height=190)


def _levels(curve: Curve, c: Colours) -> Any:
    """Return a point and a range for each level, under each other; groups beside each other."""
    import altair as alt

    points = _points(curve)
    for p in points:
        p["share"] = f"{100 * p['density']:.2g} % of the rows"
    tips = [alt.Tooltip(f"{k}:N") for k in (*TIPS, "share")]
    domain = _reach(curve)
    x = alt.X("gap:Q", title=UP, scale=alt.Scale(domain=domain, nice=False), axis=alt.Axis(labelExpr=SIGN, tickCount=6))
    name = str(curve.settings["variable"])
    y = alt.Y("label:N", sort=None, title=name, axis=alt.Axis(labelLimit=220))
    groups = list(dict.fromkeys(p["group"] for p in points))
    made = []
    for group in groups:
        base = alt.Chart(alt.InlineData(values=[p for p in points if p["group"] == group])).encode(y=y, tooltip=tips)
        zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color=c.quiet).encode(x="zero:Q")
        dot = alt.condition("datum.off", alt.value(c.line), alt.value(c.paper))
        part = alt.layer(
            zero,
            base.mark_rule(color=c.line, strokeWidth=2, clip=True).encode(x=alt.X("low:Q", title=UP), x2="high:Q"),
            base.mark_point(filled=True, size=55, stroke=c.line, opacity=1, clip=True).encode(x=x, fill=dot),
        ).properties(width=WIDTH if len(groups) == 1 else SMALL, height=alt.Step(22))
        by = curve.settings["by"]
        made.append(part.properties(title=alt.TitleParams(f"{by}: {group}", fontSize=12)) if by else part)
    return (made[0] if len(made) == 1 else alt.concat(*made, columns=3)).properties(title=_title(curve))


def _heat(curve: Curve, c: Colours) -> Any:
    """Return the gap of each combination as colour and number; those shown to be off are set in bold."""
    import altair as alt

    points = _points(curve)
    for p in points:
        p["text"] = num.gap(p["gap"] / 100)
    first, second = curve.settings["variable"]
    reach = max(abs(p["gap"]) for p in points)
    colour = alt.Color(
        "gap:Q",
        title=["points", "+ says too little", "\u2212 says too much"],
        scale=alt.Scale(domain=[-reach, 0, reach], range=[c.low, c.paper, c.high], interpolate="rgb"),
        legend=alt.Legend(format="+.1f", gradientLength=120),
    )
    x = alt.X("label:N", sort=None, title=first, axis=alt.Axis(labelAngle=0, labelLimit=110, labelOverlap=False))
    y = alt.Y("group:N", sort=None, title=second, axis=alt.Axis(labelLimit=200))
    wide = len({p["label"] for p in points}) > 8
    if wide:
        x = alt.X("label:N", sort=None, title=first, axis=alt.Axis(labelAngle=-40, labelLimit=110))
    tips = [alt.Tooltip(f"{k}:N") for k in ("label", "group", *TIPS[1:])]
    base = alt.Chart(alt.InlineData(values=points)).encode(x=x, y=y, tooltip=tips)
    bold = alt.Chart(alt.InlineData(values=[p for p in points if p["off"]])).encode(x=x, y=y, tooltip=tips)
    plain = alt.Chart(alt.InlineData(values=[p for p in points if not p["off"]])).encode(x=x, y=y, tooltip=tips)
    strong = alt.condition(f"abs(datum.gap) > {0.6 * reach}", alt.value(c.paper), alt.value(c.ink))
    step = alt.Step(46 if wide else 82)
    return alt.layer(
        base.mark_rect(stroke=c.paper, strokeWidth=2).encode(color=colour),
        bold.mark_text(fontWeight="bold", fontSize=12).encode(text="text:N", color=strong),
        plain.mark_text(fontSize=12).encode(text="text:N", color=strong),
    ).properties(width=step, height=alt.Step(30), title=_title(curve))


def _title(curve: Curve) -> Any:
    import altair as alt

    s = curve.settings
    kind = s["kind"]
    level = num.percent(1 - float(s["alpha"]))
    p = num.p_value(float(s["p_value"]), draws=int(s["draws"]))
    name = " and ".join(s["variable"]) if kind == "pair" else str(s["variable"])
    held = {"curve": "Band", "levels": "Lines", "pair": "Bold: off zero, at"}[kind]
    what = (
        f"{held} {level} % for all points at once." if kind == "pair" else f"{held}: {level} % for all points at once."
    )
    under = [f"{what} All points: {p}."]
    if s["masked"]:
        under.append(f"{s['masked']} points not drawn: too few people.")
    return alt.TitleParams(f"Where along {name} the probabilities are off", subtitle=under)


def dressed(chart: Any, c: Colours) -> Any:
    """Return a chart in the palette, with a quiet frame."""
    text = {"labelColor": c.ink, "titleColor": c.ink}
    return (
        chart.configure(background=c.paper, font="sans-serif")
        .configure_view(stroke=None)
        .configure_axis(gridColor=c.grid, domainColor=c.quiet, tickColor=c.quiet, titleFontWeight="normal", **text)
        .configure_legend(titleFontWeight="normal", **text)
        .configure_title(anchor="start", color=c.ink, subtitleColor=c.quiet)
    )


def chart_of(curve: Curve) -> Any:
    """Return the chart of a variable curve or of a ranking; `report.notebook` calls this."""
    if not curve.columns["variable" if curve.method == "diagnose.rank_variables" else "gap"]:
        raise NotComputable("the curve is empty: there is nothing to draw")
    return ranking_chart(curve) if curve.method == "diagnose.rank_variables" else curve_chart(curve)
