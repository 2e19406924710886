"""Charts of tables: the ranking of variables, and what a search for hidden errors found."""

from __future__ import annotations

import json
from textwrap import wrap

import altair as alt

import calibrant.report.charts.parts as parts
from calibrant.report import numbers as num
from calibrant.results import Curve

WHO, LOOKED_AT = "Who is badly served", "Examined most closely, not shown to be miscalibrated"
RULE = 52  # letters of a rule on one line


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
    result = alt.Color(
        "finding:N",
        title=None,
        legend=alt.Legend(orient="top", symbolType="square"),
        scale=alt.Scale(domain=["error varies with it", "not shown"], range=[parts.LINE, parts.BAND]),
    )
    x = alt.X("size:Q", title="error beyond the overall gap, points", axis=alt.Axis(tickCount=6))
    made = parts.bars(rows, x, ("variable", "beyond the overall gap", "certified", "overall", "p", "worst"), result)
    mean_gap = f"Overall gap, left out here: {num.gap(float(curve.settings['gap']))} points."
    under = [f"{mean_gap} Lines: certified ranges, simultaneously at {parts.level_of(curve)}."]
    return made.properties(title=parts.titled("Which variables the error varies with", under))


def importance(curve: Curve) -> alt.LayerChart:
    """Return bars of what the statistic loses, with intervals."""
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
    """Return what the chart found, where it ends and what its line rests on."""
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
        says, happened = (num.nearest(c[k][i]) for k in ("predicted", "observed"))
        r |= {
            "number": i,
            "off": c["finding"][i],
            "reported": f"says {says}, happened {happened} in 100",
            "people": f"{num.count(c['rows'][i])} ({num.nearest(c['share'][i])}% of all)",
            "p": f"{c['p_adjusted'][i]:.2g} (adjusted)",
            "found again": f"{round(100 * c['stability'][i])}% of repeats",
            "verdict": "error shown" if c["finding"][i] else "undecided",
        }
    lines = [[*wrap(r["rule"], RULE), r["people"]] for r in rows]  # over as many lines as a rule needs
    look = {"labelLimit": 330, "domain": False, "ticks": False, "labelLineHeight": 13}
    names = alt.Y(
        "number:O", sort=None, title=None, axis=alt.Axis(labelExpr=f"{json.dumps(lines)}[datum.value]", **look)
    )
    tips = ("rule", "people", "model says", "happened", "off by", "band", "p", "found again", "verdict")
    drawn = parts.dots(rows, names, parts.gaps_by_variable(parts.reach(rows), way="x"), tips=tips, quiet=parts.QUIET)
    words = parts.data(rows).mark_text(dy=-11, fontSize=10.5, color=parts.INK)
    words = words.encode(y=names, x="gap:Q", text="reported:N")
    under = [
        f"Judged on {num.count(curve.settings['rows_judged'])} people who played no part in finding the rules.",
        f"Bars: {parts.level_of(curve)} limits, simultaneous. People are counted among those who judge.",
        "Orange: error shown. Grey: undecided.",
    ]
    title = parts.titled(WHO if any(c["finding"]) else LOOKED_AT, under)
    return alt.layer(drawn, words, title=title).properties(width=parts.WIDTH - 180, height=alt.Step(52))
