"""Charts of tables: rankings, the control chart, subgroups and their map, sites, and decisions."""

from __future__ import annotations

import json
from itertools import product

import altair as alt

import calibrant.report.charts.parts as parts
from calibrant.report import numbers as num
from calibrant.report.sections.decisions import kind
from calibrant.report.wording.decisions import in_the_pool
from calibrant.results import Curve

WHO, LOOKED_AT = "Who is badly served", "Examined most closely, not shown to be miscalibrated"


# ---- tables as bars: the ranking, and what the search needs ----


def ranking(curve: Curve) -> alt.LayerChart:
    """A ranking as bars with certified ranges; a variable without a finding is pale."""
    c, alpha, rows = curve.columns, float(curve.settings["alpha"]), []
    for i, name in enumerate(c["variable"]):
        low, high = c["beyond_low"][i], c["beyond_high"][i]
        certified = "no range" if low is None else f"{num.lower_bound(low)} to {num.upper_bound(high)} points"
        worst, people = num.gap(c["worst_gap"][i], 1), num.count(c["worst_rows"][i])
        rows.append(
            {
                "variable": name,
                "size": 100 * c["beyond_gap"][i],
                "low": None if low is None else 100 * low,
                "high": None if high is None else 100 * high,
                "certified": certified,
                "finding": "error varies with it" if c["p_adjusted"][i] <= alpha else "not shown",
                "beyond the overall gap": f"{num.nearest(c['beyond_gap'][i], 2)} points",
                "overall": f"{num.nearest(c['vece'][i], 2)} points",
                "p": f"{c['p_adjusted'][i]:.2g} (adjusted)",
                "worst": f"{c['worst'][i]}: {worst} points, {people} rows",
            }
        )
    colours = {"error varies with it": parts.LINE, "not shown": parts.BAND}
    result = parts.legend("finding", colours, orient="top", symbolType="square")
    x = alt.X("size:Q", title="error beyond the overall gap, points", axis=alt.Axis(tickCount=6))
    made = parts.bars(rows, x, ("variable", "beyond the overall gap", "certified", "overall", "p", "worst"), result)
    mean_gap = f"Overall gap, left out here: {num.gap(float(curve.settings['gap']))} points."
    under = [f"{mean_gap} Lines: certified ranges, simultaneously at {parts.level_of(curve)}."]
    return made.properties(title=parts.titled("Which variables the error varies with", under))


def importance(curve: Curve) -> alt.LayerChart:
    k = curve.columns
    rows = [
        {
            "variable": v,
            "drop": d,
            "low": a,
            "high": b,
            "loses": f"{round(100 * s)}% of the evidence",
            "interval": f"{num.decimals(a, 2)} to {num.decimals(b, 2)}",
        }
        for v, d, a, b, s in zip(*(k[n] for n in ("variable", "drop", "low", "high", "share")), strict=True)
    ]
    x = alt.X("drop:Q", title="evidence lost when the variable is shuffled", axis=alt.Axis(tickCount=6))
    whole = num.decimals(curve.settings["statistic"], 2)
    under = [
        f"Of {whole} in all. Lines: {parts.level_of(curve)} intervals, each variable separately. No test.",
        "Where a line takes in 0, the variable is not shown to be needed.",
    ]
    made = parts.bars(rows, x, ("variable", "loses", "interval"), alt.value(parts.LINE))
    return made.properties(title=parts.titled("Which variables point at the badly served", under))


# ---- what a search for hidden errors found ----


def control_chart(curve: Curve) -> alt.LayerChart:
    """The evidence over the share of people, the simulated paths, the line, and the peak named."""
    c, s = curve.columns, curve.settings
    end = max(c["x"])
    paths = [n for n in c if n.startswith("null_")]
    grey = [{"x": x, "evidence": v, "path": n} for n in paths for x, v in zip(c["x"], c[n], strict=True)]
    results = [
        {"x": x, "evidence": v, "people": f"{num.nearest(x)}%", "so far": num.decimals(v, 2)}
        for x, v in zip(c["x"], c["evidence"], strict=True)
    ]
    percent = alt.Axis(labelExpr="format(100 * datum.value, '~g')")
    title = "share of people, most suspicious first (%)"
    x = alt.X("x:Q", title=title, scale=alt.Scale(domain=[0, end], nice=False), axis=percent)
    y = alt.Y("evidence:Q", title="evidence so far", axis=alt.Axis(tickCount=6))
    hidden = parts.data(results).mark_point(filled=True, size=90, opacity=0)
    layers = [
        parts.zero("zero:Q", "y"),
        parts.data(grey).mark_line(color=parts.QUIET, opacity=0.35, strokeWidth=1).encode(x=x, y=y, detail="path:N"),
        parts.data(results).mark_line(color=parts.LINE, strokeWidth=2.5).encode(x=x, y=y),
        hidden.encode(x=x, y=y, tooltip=parts.tooltips(("people", "so far"))),
    ]
    if s["line"] is not None:
        mark = parts.data([{"line": s["line"], "end": end}])
        words = f"line crossed in {num.percent(float(s['alpha']))} of 100 repeats"
        text = mark.mark_text(align="right", baseline="bottom", dy=-3, color=parts.INK, fontSize=10.5)
        layers.append(mark.mark_rule(color=parts.INK, strokeDash=[5, 4]).encode(y="line:Q"))
        layers.append(text.encode(y="line:Q", x="end:Q", text=alt.value(words)))
    if s["peak_rows"]:
        mark = parts.data([{"x": s["peak_share"], "evidence": s["peak_score"]}]).encode(x="x:Q", y="evidence:Q")
        right = s["peak_share"] < 0.6 * end
        text = mark.mark_text(
            align="left" if right else "right", dx=9 if right else -9, dy=-9, color=parts.INK, fontSize=11
        )
        layers.append(mark.mark_point(filled=True, size=70, color=parts.HIGH, opacity=1))
        layers.append(text.encode(text=alt.value(f"peak: {num.nearest(s['peak_share'])}% of people")))
    reported = parts.titled("Is error hiding in a mix of attributes?", _control_lines(curve, end))
    return alt.layer(*layers, title=reported).properties(width=parts.WIDTH, height=280)


def _control_lines(curve: Curve, end: float) -> list[str]:
    s = curve.settings
    p = num.p_value(float(s["p_value"]), draws=int(s["draws"])) if s["p_value"] else "a probability of 0 or 1 was wrong"
    out = [f"Whole test: {p}. Grey: simulated repeats without error beyond the tolerance."]
    if s["peak_rows"] and s["p_value"] <= s["alpha"] and s["peak_observed"] is not None:
        happened, says = (num.nearest(s[f"peak_{k}"]) for k in ("observed", "predicted"))
        share = s["peak_share"]
        where = (
            "concentrated in few people" if share < 0.2 else "widely spread" if share > 0.5 else "neither few nor most"
        )
        out.append(f"Up to the peak the model says {says} in 100, {happened} happened: {where}.")
    else:
        out.append("No error shown: not proof of none.")
    if end < 1.0 - 0.005 and s["rows_beyond"] < s["rows_tested"]:
        off = "beyond the tolerance" if s["tolerance"] else "at all"
        out.append(f"The curve ends at {num.nearest(end)}% of people: the others are not predicted to be off {off}.")
    if s["null"] == "refit":
        out.append(f"The line is from {num.count(s['draws'])} repeats, each with everything fitted again.")
    return out


def searched_subgroups(curve: Curve) -> alt.LayerChart:
    """A forest of the rules: what happened minus what the model says, with limits that hold simultaneously."""
    c, rows = curve.columns, parts.rows_of(curve)
    for i, r in enumerate(rows):
        r |= {
            "off": c["finding"][i],
            "p": f"{c['p_adjusted'][i]:.2g} (adjusted)",
            "found again": f"{round(100 * c['stability'][i])}% of repeats",
            "verdict": "error shown" if c["finding"][i] else "undecided",
        }
    tips = ("rule", "people", "model says", "happened", "off by", "band", "p", "found again", "verdict")
    under = [
        f"Judged on {num.count(curve.settings['rows_judged'])} people who played no part in finding the rules.",
        f"Bars: {parts.level_of(curve)} limits, simultaneous. People are counted among those who judge.",
        "Orange: error shown. Grey: undecided.",
    ]
    return parts.forest(curve, rows, tips, parts.titled(WHO if any(c["finding"]) else LOOKED_AT, under))


LEAST = 20  # people without whom a cell is drawn empty: chance moves it by tens of points
PLACES = ("x", "x2", "across", "y", "y2", "up")  # where a cell begins and ends, and its middle
WIDE, TALL = 46, 30  # pixels of a cell


def subgroups(curve: Curve) -> alt.LayerChart:
    """The gaps of distinct subgroups, with the ranges that hold for all boxes at once."""
    c, s, rows = curve.columns, curve.settings, parts.rows_of(curve)
    limit = s["limit"]
    for i, r in enumerate(rows):
        left = c["gap_left"][i]
        besides = [
            f"{attribute} {level} ({num.nearest(a, 0)}%, others {num.nearest(b, 0)}%)"
            for attribute, level, a, b in s["besides"][i]
        ]
        without = "" if left is None else f"{num.gap(left)} points, {num.count(c['rows_left'][i])} people"
        r |= {
            "off by at least": f"{num.lower_bound(c['floor'][i])} points" if c["floor"][i] else "not shown",
            "limit": "" if limit is None else "over" if c["over"][i] else "not shown to be over",
            "without those above": without,
            "found again": f"in {round(s['halves'] * c['stability'][i])} of {s['halves']} random halves",
            "besides": "; ".join(besides),
        }
    tips = ["rule", "people", "model says", "happened", "off by", "band", "off by at least"]
    tips += [k for k in ("limit", "without those above", "found again", "besides") if any(r[k] for r in rows)]
    under = [
        f"Bars: certified, for all {num.count(s['subgroups'])} subgroups simultaneously at {parts.level_of(curve)}.",
        "Orange: shown to be off. Grey: not shown.",
        "" if limit is None else f"Dashed: the limit, {num.limit_points(limit)} points to either side.",
    ]
    title = "Subgroups of people that are off" if any(c["floor"]) else "The subgroup that seems worst"
    return parts.forest(curve, rows, tips, parts.titled(title, under), limit)


# ---- the map of a pair ----


def subgroup_map(curve: Curve) -> alt.LayerChart:
    """The gap in each combination of cells as colour and number, with the subgroups outlined."""
    c, s = curve.columns, curve.settings
    axes = s["axes"]
    rows = []
    for i, (a, b, n) in enumerate(zip(c["first"], c["second"], c["rows"], strict=True)):
        if n < LEAST:
            continue
        says, happened = (num.nearest(c[k][i]) for k in ("predicted", "observed"))
        rows.append(
            {
                **dict(zip(PLACES, (a, a + 1, a + 0.5, b, b + 1, b + 0.5), strict=True)),
                "first": axes[0]["labels"][a] or "not named",
                "second": axes[1]["labels"][b] or "not named",
                "gap": 100 * c["gap"][i],
                "text": num.gap(c["gap"][i], 0),
                "people": num.count(n),
                "model says": f"{says} in 100",
                "happened": f"{happened} in 100",
                "off by": f"{num.gap(c['gap'][i])} points",
                "error": 100 * (c["predicted"][i] * (1 - c["predicted"][i]) / n) ** 0.5,
            }
        )
    usual = sorted(r["error"] for r in rows)[len(rows) // 2] if rows else 1.0
    frames, inside = _frames(curve)
    of_subgroups = [abs(r["gap"]) for r in rows if (r["x"], r["y"]) in inside]
    most = max(
        3.0 * usual, sorted(of_subgroups)[len(of_subgroups) // 2] if of_subgroups else 0.0, 0.01
    )  # noise looks pale
    x, y = _cells("x", "x", axes[0]), _cells("y", "y", axes[1])
    middle = {"x": _cells("x", "across", axes[0]), "y": _cells("y", "up", axes[1])}
    tips = [alt.Tooltip(f"{k}:N", title=a["name"]) for k, a in zip(("first", "second"), axes, strict=True)]
    tips += parts.tooltips(("people", "model says", "happened", "off by"))
    base = parts.data(rows)
    pale = alt.condition(f"abs(datum.gap) > {0.6 * most}", alt.value(parts.PAPER), alt.value(parts.INK))
    outline = {"stroke": parts.INK, "strokeWidth": 2, "fillOpacity": 0}
    layers = [
        base.mark_rect().encode(x=x, x2="x2:Q", y=y, y2="y2:Q", color=parts.heat_colour(most), tooltip=tips),
        base.mark_text(fontSize=10.5).encode(**middle, text="text:N", color=pale, tooltip=tips),
        parts.data(frames).mark_rect(**outline).encode(x=x, x2="x2:Q", y=y, y2="y2:Q", tooltip=["rule:N"]),
    ]
    under = [
        "Numbers: gaps in points, of single cells: chance moves them too, those of few people most.",
        "" if not frames else f"Outlined: {'; '.join(dict.fromkeys(f['rule'] for f in frames))}.",
        f"Blank: fewer than {LEAST} people." if len(rows) < len(axes[0]["labels"]) * len(axes[1]["labels"]) else "",
    ]
    title = parts.titled(f"Where {axes[0]['name']} and {axes[1]['name']} meet", under)
    size = {"width": WIDE * len(axes[0]["labels"]), "height": TALL * len(axes[1]["labels"])}
    return alt.layer(*layers, title=title).properties(**size)


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


def _cells(way: parts.Way, column: str, axis: parts.Row) -> parts.Place:
    """The axis of an attribute: a label in the middle of each cell, but for levels that are not named."""
    labels, channel = [v or "" for v in axis["labels"]], alt.X if way == "x" else alt.Y
    aslant = {"labelAngle": -40} if way == "x" and max(map(len, labels)) * 6 > WIDE else {"labelAngle": 0}
    words = f"{json.dumps(labels)}[floor(datum.value)]"
    ticks = [i + 0.5 for i in range(len(labels))]
    look = alt.Axis(
        labelExpr=words, values=ticks, grid=False, ticks=False, labelOverlap=False, labelLimit=220, **aslant
    )
    scale = alt.Scale(domain=[0, len(labels)], nice=False)
    return channel(f"{column}:Q", title=axis["name"], axis=look, scale=scale)


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
    colour = parts.legend("by", {BY_SCORE: parts.LINE, ALL: parts.HIGH, NOBODY: parts.QUIET}, orient="top")
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
    colour = parts.legend("by", {CERTIFIED: parts.LINE, SEEN: parts.QUIET}, orient="top")
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
        *in_the_pool(curve.settings),
    ]
    return _panels(drawn, rows, "How much may be accepted", under)


def _panels(
    drawn: list[alt.Chart], rows: list[parts.Row], title: str, under: list[str]
) -> alt.FacetChart | alt.LayerChart:
    data, groups = alt.InlineData(values=rows), list(dict.fromkeys(r["group"] for r in rows))
    reported = parts.titled(title, under)
    if len(groups) == 1:
        return alt.layer(*drawn, data=data).properties(width=parts.WIDTH, height=parts.HEIGHT, title=reported)
    small = alt.layer(*drawn, data=data).properties(width=parts.SMALL, height=160)
    return small.facet(facet=alt.Facet("group:N", title=None, sort=groups), columns=2).properties(title=reported)
