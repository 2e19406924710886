"""The caterpillar plot: each site with its range, the mean over sites, and where a new site is to be expected."""

from __future__ import annotations

import altair as alt

import calibrant.report.charts.parts as parts
from calibrant.report import numbers as num
from calibrant.results import Curve

ROW = 15  # pixels of a site
AXES = {
    "intercept": "logits by which the scores underpredict (calibration intercept)",
    "slope": "calibration slope (1: calibrated)",
}
RIGHT = {"intercept": 0.0, "slope": 1.0}


def heterogeneity(curve: Curve) -> alt.LayerChart:
    """Return sites as dots with ranges, the lowest first, over the mean's range and a new site's."""
    c, s = curve.columns, curve.settings
    right = RIGHT[s["measure"]]
    rows = [
        {
            "site": site,
            "estimate": estimate,
            "low": low,
            "high": high,
            "off": low > right or high < right,
            "people": num.count(n),
            "model says": f"{num.nearest(says)} in 100",
            "happened": f"{num.nearest(happened)} in 100",
            "range": f"{num.decimals(low, 2)} to {num.decimals(high, 2)}",
        }
        for site, n, says, happened, estimate, low, high in zip(*c.values(), strict=True)
    ]
    y = alt.Y("site:N", sort=None, title=None, axis=alt.Axis(labelLimit=220, domain=False, ticks=False))
    ends = [float(s[k]) for k in ("new_low", "new_high", "mean_low", "mean_high")]
    shown = [*ends, right, *c["estimate"]]  # ranges of small sites may leave the picture; what they are about may not
    room = 0.15 * (max(shown) - min(shown))
    scale = alt.Scale(domain=[min(shown) - room, max(shown) + room], nice=False)

    def x(name: str) -> alt.X:
        return alt.X(f"{name}:Q", title=AXES[s["measure"]], scale=scale)

    pooled = parts.data(
        [{k: s[k] for k in ("new_low", "new_high", "mean_low", "mean_high", "mean")} | {"right": right}]
    )
    tips = parts.tooltips(("site", "people", "model says", "happened", "range"))
    base = parts.data(rows).encode(y=y, tooltip=tips)
    colour = alt.condition("datum.off", alt.value(parts.HIGH), alt.value(parts.LINE))
    drawn = alt.layer(
        pooled.mark_rect(color=parts.BAND, opacity=0.35, clip=True).encode(x=x("new_low"), x2="new_high:Q"),
        pooled.mark_rect(color=parts.BAND, clip=True).encode(x=x("mean_low"), x2="mean_high:Q"),
        pooled.mark_rule(color=parts.LINE, strokeWidth=1.5).encode(x=x("mean")),
        pooled.mark_rule(color=parts.QUIET, strokeDash=[4, 3]).encode(x=x("right")),
        base.mark_rule(strokeWidth=1.5, clip=True).encode(x=x("low"), x2="high:Q", color=colour),
        base.mark_point(filled=True, size=36, opacity=1).encode(x=x("estimate"), color=colour),
    )
    return drawn.properties(
        title=parts.titled("How far sites differ", _reported(curve)), width=420, height=alt.Step(ROW)
    )


def _reported(curve: Curve) -> list[str]:
    """The mean, a new site's range and what is not shown."""
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
