"""Charts of decisions: net benefit against the threshold, and certified risk against the share accepted."""

from __future__ import annotations

import altair as alt

import calibrant.report.charts.parts as parts
from calibrant.report import numbers as num
from calibrant.report.sections.decisions.picture import kind
from calibrant.results import Curve

BY_SCORE, ALL, NOBODY = "by the score", "acting on everyone", "acting on nobody"
BELOW = 0.25  # of the height above zero that is drawn below it
CERTIFIED, SEEN = "certified, at most", "seen"
PERCENT = alt.Axis(labelExpr="format(100 * datum.value, '.3~g') + '%'")


def decision_curve(curve: Curve) -> alt.FacetChart | alt.LayerChart:
    """Return net benefit in its band, with acting on everyone and on nobody; a panel for each group."""
    c = curve.columns
    top = max(*c["high"], *c["treat_all"], 0.01)
    low = min(max(min(c["low"]), -top), -BELOW * top)
    rows, group = [], c.get("group", ("everyone",) * len(c["threshold"]))
    for i, t in enumerate(c["threshold"]):
        band = " to ".join(num.signed_range(c["low"][i], c["high"][i], 2))
        gain = " to ".join(num.signed_range(c["over_all_low"][i], c["over_all_high"][i], 2))
        reported = {"threshold": f"{100 * t:.4g}%", "per 100": num.gap(c["net_benefit"][i], 2), "band": band}
        reported |= {"over acting on everyone": gain}
        own = {"t": t, "group": group[i], "low": c["low"][i], "high": c["high"][i]}
        worth = {BY_SCORE: c["net_benefit"][i], ALL: c["treat_all"][i], NOBODY: 0.0}
        rows += [{**own, **reported, "by": by, "worth": v} for by, v in worth.items()]
    x = alt.X("t:Q", title="threshold", axis=PERCENT, scale=alt.Scale(nice=False))
    per_100 = alt.Axis(labelExpr="replace(format(100 * datum.value, '.3~g'), '-', '\u2212')", tickCount=6)
    scale = alt.Scale(domain=[low, 1.05 * top], nice=False)
    colour = alt.Color(
        "by:N",
        title=None,
        legend=alt.Legend(orient="top"),
        scale=alt.Scale(domain=[BY_SCORE, ALL, NOBODY], range=[parts.LINE, parts.HIGH, parts.QUIET]),
    )
    base = alt.Chart().encode(x=x)
    band = base.transform_filter(alt.datum.by == BY_SCORE).mark_area(color=parts.BAND, opacity=0.75, clip=True)
    y = alt.Y("worth:Q", title="net benefit, true positives per 100", axis=per_100, scale=scale)
    tips = parts.tooltips(("group", "threshold", "per 100", "band", "over acting on everyone"))
    drawn = [
        band.encode(y=alt.Y("low:Q", title="", scale=scale), y2="high:Q"),
        base.mark_line(clip=True).encode(y=y, color=colour),
        base.transform_filter(alt.datum.by == BY_SCORE).mark_point(size=60, opacity=0).encode(y=y, tooltip=tips),
    ]
    under = [
        f"Band: {parts.level_of(curve)}, at all thresholds at once, {kind(curve)}. Worth using where it is the highest."
    ]
    return _panels(drawn, rows, "What acting above a threshold is worth", under)


def acceptance_curve(curve: Curve) -> alt.FacetChart | alt.LayerChart:
    """The certified and the observed rate of errors against the share accepted, and the risk."""
    c, rows = curve.columns, []
    for group, share, t, n, wrong, rate, high in zip(
        *(c[k] for k in ("group", "share", "threshold", "rows", "wrong", "rate", "high")), strict=True
    ):
        sign = ">=" if curve.settings["end"] == "high" else "<="
        reported = {"accept": f"score {sign} {t:.4g}", "accepted": num.count(n), "wrong": num.count(wrong)}
        reported |= {SEEN: f"{num.nearest(rate, 2)}%", CERTIFIED: f"{num.upper_bound(high)}%"}
        for by, v in ((CERTIFIED, high), (SEEN, rate)):
            rows.append({"share": share, "group": group, "by": by, "value": v, **reported})
    risk = float(curve.settings["risk"])
    top = min(1.0, max(4.0 * risk, 1.2 * max(c["rate"])))
    x = alt.X("share:Q", title="share accepted", axis=PERCENT, scale=alt.Scale(domain=[0, 1], nice=False))
    y = alt.Y("value:Q", title="wrong among the accepted", axis=PERCENT, scale=alt.Scale(domain=[0, top], nice=False))
    colour = alt.Color(
        "by:N",
        title=None,
        legend=alt.Legend(orient="top"),
        scale=alt.Scale(domain=[CERTIFIED, SEEN], range=[parts.LINE, parts.QUIET]),
    )
    tips = parts.tooltips(("group", "accept", "accepted", "wrong", SEEN, CERTIFIED))
    base = alt.Chart().encode(x=x, y=y, color=colour)
    drawn = [
        base.mark_line(clip=True),
        base.mark_point(size=60, opacity=0, clip=True).encode(tooltip=tips),
        alt.Chart().mark_rule(color=parts.HIGH, strokeDash=[4, 3]).encode(y=alt.datum(risk)),
    ]
    level = num.percent(float(curve.settings["level"]))
    under = [
        f"Certified: {level}%, at all thresholds of all groups together. Dashed: the risk, {num.percent(risk)}%.",
        "Accept down to the last share at which the certified rate is at most the risk.",
    ]
    return _panels(drawn, rows, "How much may be accepted", under)


def _panels(
    drawn: list[alt.Chart], rows: list[parts.Row], title: str, under: list[str]
) -> alt.FacetChart | alt.LayerChart:
    """Return one picture, or one for each group."""
    data, groups = alt.InlineData(values=rows), list(dict.fromkeys(r["group"] for r in rows))
    reported = parts.titled(title, under)
    if len(groups) == 1:
        return alt.layer(*drawn, data=data).properties(width=parts.WIDTH, height=parts.HEIGHT, title=reported)
    small = alt.layer(*drawn, data=data).properties(width=parts.SMALL, height=160)
    return small.facet(facet=alt.Facet("group:N", title=None, sort=groups), columns=2).properties(title=reported)
