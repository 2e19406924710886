"""Interactive charts for notebooks, with tooltips in the user's units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calibrant.errors import NotComputable
from calibrant.report import numbers as num
from calibrant.report.bias_chart import bias
from calibrant.report.order import side
from calibrant.report.strong_charts import strong_chart
from calibrant.report.variable_charts import chart_of
from calibrant.report.wording import DIRECTIONS
from calibrant.results import Curve

BLUE, PALE, GREY = "#27517a", "#b9cbdd", "#8a8f94"
WIDTH, HEIGHT = 560, 260
UP = "happened minus model says, points"


def chart(curve: Curve) -> Any:
    """Return a curve as an interactive Altair chart; `Curve.chart` calls this.

    Parameters
    ----------
    curve : Curve

    Returns
    -------
    altair.Chart
        Zoom with the wheel; point at it to read it.
    """
    make = CHARTS.get(curve.method)
    if make is None:
        raise NotComputable(f"there is no chart for {curve.method}: use to_frame()")
    if not next(iter(curve.columns.values()), ()):
        raise NotComputable("the curve is empty: there is nothing to draw")
    return make(curve)


def reliability(curve: Curve) -> Any:
    """Return the gap along the score in its band, over the densities of cases and non-cases."""
    import altair as alt

    x = _across(alt, curve)
    values = alt.InlineData(values=_rows(curve))
    base = alt.Chart(values).encode(x=x)
    gap = alt.Y("gap:Q", title=UP)
    tips = [alt.Tooltip(f"{k}:N") for k in ("model says", "happened", "off by", "band", "finding", "effective rows")]
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color=GREY).encode(y="zero:Q")
    near = alt.selection_point(
        nearest=True, on="pointerover", fields=["at"], empty=False, clear="pointerout", name="near"
    )
    here = alt.condition(near, alt.value(1.0), alt.value(0.0))
    upper = alt.layer(
        zero,
        base.mark_area(color=PALE, opacity=0.6).encode(y=alt.Y("low:Q", title=UP), y2="high:Q", detail="stretch:N"),
        base.mark_line(color=BLUE).encode(y=gap, detail="stretch:N"),
        base.mark_point(filled=True, size=60, color=BLUE).encode(y=gap, opacity=here, tooltip=tips).add_params(near),
    ).properties(width=WIDTH, height=HEIGHT)
    lower = (
        alt.Chart(alt.InlineData(values=_densities(curve)))
        .mark_line()
        .encode(
            x=x,
            detail="stretch:N",
            y=alt.Y("density:Q", title="density", axis=alt.Axis(tickCount=2)),
            color=alt.Color(
                "of:N", title=None, scale=alt.Scale(domain=["cases", "non-cases"], range=["#b03a06", GREY])
            ),
        )
        .properties(width=WIDTH, height=60)
    )
    return alt.vconcat(upper, lower, title=_title(curve)).resolve_scale(x="shared")


def _across(alt: Any, curve: Curve) -> Any:
    if curve.settings.get("axis") != "logit":
        return alt.X("at:Q", title="the model says", axis=alt.Axis(labelExpr="datum.label + '%'"))
    percent = "format(100 / (1 + exp(-datum.value)), '.2~g') + '%'"
    return alt.X("at:Q", title="the model says (logit axis)", axis=alt.Axis(labelExpr=percent))


def _place(curve: Curve, score: float) -> float:
    from math import log

    if curve.settings.get("axis") != "logit":
        return 100.0 * score
    p = min(max(score, 2.0**-15), 1.0 - 2.0**-15)
    return log(p / (1.0 - p))


def _rows(curve: Curve) -> list[dict[str, Any]]:
    c = curve.columns
    keys = ("x", "predicted", "observed", "gap", "low", "high", "rows", "stretch")
    out = []
    for score, says, happened, gap, low, high, n, stretch in zip(*(c[k] for k in keys), strict=True):
        a, b = num.signed_range(low, high, 2)
        out.append(
            {
                "at": _place(curve, score),
                "gap": 100 * gap,
                "low": 100 * low,
                "high": 100 * high,
                "stretch": stretch,
                "model says": f"{num.nearest(says, 2)}%",
                "happened": f"{num.nearest(happened, 2)} in 100",
                "off by": f"{num.gap(gap, 2)} points",
                "band": f"{a} to {b} points",
                "finding": DIRECTIONS[side(low, high)],
                "effective rows": num.count(n),
            }
        )
    return out


def _densities(curve: Curve) -> list[dict[str, Any]]:
    c = curve.columns
    pairs = (("cases", c["density_cases"]), ("non-cases", c["density_noncases"]))
    return [
        {"at": _place(curve, s), "of": of, "density": d, "stretch": run}
        for of, values in pairs
        for s, d, run in zip(c["x"], values, c["stretch"], strict=True)
    ]


def _title(curve: Curve) -> Any:
    import altair as alt

    s = curve.settings
    p = num.p_value(float(s["p_value"]), draws=int(s["draws"]))
    times, of = num.confidence(1 - float(s["alpha"]))
    return alt.TitleParams(
        "Where the probabilities are off", subtitle=[f"Band: {times} of {of} times. Whole curve: {p}."]
    )


CHARTS: dict[str, Callable[[Curve], Any]] = {
    "diagnose.control_chart": strong_chart,
    "diagnose.importance": strong_chart,
    "diagnose.local_bias": bias,
    "diagnose.rank_variables": chart_of,
    "diagnose.reliability_curve": reliability,
    "diagnose.subgroups": strong_chart,
    "diagnose.variable_curve": chart_of,
}
