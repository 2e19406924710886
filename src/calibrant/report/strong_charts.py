"""Interactive charts of hidden errors: the control chart, the importance of variables, and the rules."""

from __future__ import annotations

from typing import Any

from calibrant.errors import NotComputable
from calibrant.report import numbers as num
from calibrant.report.variable_charts import DARK, LIGHT, Colours, dressed
from calibrant.report.wording import LOOKED_AT
from calibrant.results import Curve

WIDTH, HEIGHT = 560, 280
LONG = 52  # letters of a rule on one line


def strong_chart(curve: Curve, dark: bool = False) -> Any:
    """Return the chart of a control chart, an importance table or a table of rules; `report.notebook` calls this."""
    c = DARK if dark else LIGHT
    if not next(iter(curve.columns.values()), ()):
        raise NotComputable("the curve is empty: there is nothing to draw")
    make = {
        "diagnose.control_chart": _control,
        "diagnose.importance": _importance,
        "diagnose.subgroups": _rules,
    }[curve.method]
    return dressed(make(curve, c), c)


def spread(share: float) -> str:
    """Say what the place of the peak means."""
    return "concentrated in few people" if share < 0.2 else "widely spread" if share > 0.5 else "neither few nor most"


def _control(curve: Curve, c: Colours) -> Any:
    """Return the evidence over the share of people, the simulated paths, the line, and the peak named."""
    import altair as alt

    k, s = curve.columns, curve.settings
    share = [100 * v for v in k["x"]]
    paths = [n for n in k if n.startswith("null_")]
    grey = [{"share": x, "score": v, "path": n} for n in paths for x, v in zip(share, k[n], strict=True)]
    found = [
        {
            "share": x,
            "score": v,
            "people": f"{num.nearest(x / 100)} %",
            "evidence": num.decimals(v, 2),
        }
        for x, v in zip(share, k["evidence"], strict=True)
    ]
    x = alt.X(
        "share:Q",
        title="share of people, most suspicious first (%)",
        scale=alt.Scale(domain=[0, max(share)], nice=False),
    )
    y = alt.Y("score:Q", title="evidence so far", axis=alt.Axis(tickCount=6))
    layers = [
        alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color=c.grid).encode(y="zero:Q"),
        alt.Chart(alt.InlineData(values=grey))
        .mark_line(color=c.quiet, opacity=0.35, strokeWidth=1)
        .encode(x=x, y=y, detail="path:N"),
        alt.Chart(alt.InlineData(values=found)).mark_line(color=c.line, strokeWidth=2.5).encode(x=x, y=y),
        alt.Chart(alt.InlineData(values=found))
        .mark_point(filled=True, size=90, opacity=0)
        .encode(x=x, y=y, tooltip=[alt.Tooltip("people:N"), alt.Tooltip("evidence:N")]),
    ]
    layers += _line(alt, s, max(share), c) + _peak(alt, s, max(share), c)
    return alt.layer(*layers, title=_control_title(alt, s, max(share) / 100)).properties(width=WIDTH, height=HEIGHT)


def _line(alt: Any, s: Any, end: float, c: Colours) -> list[Any]:
    if s["line"] is None:
        return []
    of = num.percent(float(s["alpha"]))
    mark = alt.Chart(alt.InlineData(values=[{"line": s["line"], "end": end}]))
    text = mark.mark_text(align="right", baseline="bottom", dy=-3, color=c.ink, fontSize=10.5)
    said = text.encode(y="line:Q", x="end:Q", text=alt.value(f"line crossed in {of} of 100 repeats"))
    return [mark.mark_rule(color=c.ink, strokeDash=[5, 4]).encode(y="line:Q"), said]


def _peak(alt: Any, s: Any, end: float, c: Colours) -> list[Any]:
    if not s["peak_rows"]:
        return []
    at, score = 100 * s["peak_share"], s["peak_score"]
    mark = alt.Chart(alt.InlineData(values=[{"share": at, "score": score}])).encode(x="share:Q", y="score:Q")
    right = at < 0.6 * end
    words = f"peak: {num.nearest(s['peak_share'])} % of people"
    text = mark.mark_text(align="left" if right else "right", dx=9 if right else -9, dy=-9, color=c.ink, fontSize=11)
    return [mark.mark_point(filled=True, size=70, color=c.high, opacity=1), text.encode(text=alt.value(words))]


def _control_title(alt: Any, s: Any, end: float) -> Any:
    p = num.p_value(float(s["p_value"]), draws=int(s["draws"])) if s["p_value"] else "a probability of 0 or 1 was wrong"
    sub = [f"Whole test: {p}. Grey: simulated repeats without error beyond the tolerance."]
    if s["peak_rows"] and s["p_value"] <= s["alpha"] and s["peak_observed"] is not None:
        happened, says = (num.nearest(s[f"peak_{k}"]) for k in ("observed", "predicted"))
        sub.append(f"Up to the peak the model says {says} in 100, {happened} happened: {spread(s['peak_share'])}.")
    else:
        sub.append("No error found: not proof of none.")
    if end < 1.0 - 0.005 and s["rows_beyond"] < s["rows_tested"]:
        off = "beyond the tolerance" if s["tolerance"] else "at all"
        sub.append(f"The curve ends at {num.nearest(end)} % of people: the others are not predicted to be off {off}.")
    if s["null"] == "refit":
        sub.append(f"The line is from {num.count(s['draws'])} repeats, each with everything fitted anew.")
    return alt.TitleParams("Is error hiding in a mix of traits?", subtitle=sub)


def _importance(curve: Curve, c: Colours) -> Any:
    """Return bars of what the statistic loses, with intervals."""
    import altair as alt

    k = curve.columns
    rows = [
        {
            "variable": v,
            "drop": d,
            "low": a,
            "high": b,
            "loses": f"{round(100 * s)} % of the evidence",
            "interval": f"{num.decimals(a, 2)} to {num.decimals(b, 2)}",
        }
        for v, d, a, b, s in zip(*(k[n] for n in ("variable", "drop", "low", "high", "share")), strict=True)
    ]
    y = alt.Y("variable:N", sort=None, title=None, axis=alt.Axis(labelLimit=220, domain=False, ticks=False))
    tips = [alt.Tooltip(f"{n}:N") for n in ("variable", "loses", "interval")]
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=y)
    x = alt.X("drop:Q", title="evidence lost when the variable is shuffled", axis=alt.Axis(tickCount=6))
    ends = [base.mark_tick(color=c.ink, size=8, thickness=1.25).encode(x=f"{n}:Q") for n in ("low", "high")]
    layers = [
        base.mark_bar(height=13, color=c.line).encode(x=x, tooltip=tips),
        base.mark_rule(color=c.ink, strokeWidth=1.25).encode(x="low:Q", x2="high:Q", tooltip=tips),
        *ends,
        alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color=c.quiet).encode(x="zero:Q"),
    ]
    whole = num.decimals(curve.settings["statistic"], 2)
    level = num.percent(1 - float(curve.settings["alpha"]))
    sub = [f"Of {whole} in all. Lines: {level} % intervals, each variable by itself. No test."]
    sub.append("Where a line takes in 0, the variable is not shown to be needed.")
    title = alt.TitleParams("Which variables point at the badly served", subtitle=sub)
    return alt.layer(*layers, title=title).properties(width=WIDTH, height=alt.Step(24))


def _rules(curve: Curve, c: Colours) -> Any:
    """Return a forest of the rules: what happened minus what the model says, with limits that hold together."""
    import altair as alt

    rows = _rule_rows(curve)
    y = alt.Y(
        "number:O",
        sort=None,
        title=None,
        axis=alt.Axis(
            labelExpr=_labels(rows),
            labelLimit=330,
            domain=False,
            ticks=False,
            labelLineHeight=13,
        ),
    )
    tips = [
        alt.Tooltip(f"{n}:N")
        for n in ("rule", "people", "model says", "happened", "off by", "limits", "p", "found again", "verdict")
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=y)
    colour = alt.Color(
        "verdict:N",
        title=None,
        legend=alt.Legend(orient="top", symbolType="circle"),
        scale=alt.Scale(domain=["error found", "undecided"], range=[c.high, c.quiet]),
    )
    x = alt.X("gap:Q", title="happened minus model says, points", axis=alt.Axis(tickCount=7))
    layers = [
        alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color=c.quiet).encode(x="zero:Q"),
        base.mark_rule(strokeWidth=4, opacity=0.45).encode(x="low:Q", x2="high:Q", color=colour),
        base.mark_point(filled=True, size=80, opacity=1).encode(x=x, color=colour, tooltip=tips),
        base.mark_text(dy=-11, fontSize=10.5, color=c.ink).encode(x="gap:Q", text="told:N"),
    ]
    level = num.percent(1 - float(curve.settings["alpha"]))
    sub = [f"Judged on {num.count(curve.settings['rows_judged'])} people who played no part in finding the rules."]
    sub.append(f"Bars: {level} % limits, all together. People are counted among those who judge.")
    head = "Who is badly served" if any(curve.columns["finding"]) else LOOKED_AT
    title = alt.TitleParams(head, subtitle=sub)
    return alt.layer(*layers, title=title).properties(width=WIDTH - 180, height=alt.Step(52))


def _rule_rows(curve: Curve) -> list[dict[str, Any]]:
    k, out = curve.columns, []
    for i, rule in enumerate(k["rule"]):
        a, b = num.signed_range(k["low"][i], k["high"][i])
        says, happened = (f"{num.nearest(k[n][i])} in 100" for n in ("predicted", "observed"))
        out.append(
            {
                "number": i,
                "rule": rule,
                "gap": 100 * k["gap"][i],
                "low": 100 * k["low"][i],
                "high": 100 * k["high"][i],
                "told": f"says {num.nearest(k['predicted'][i])}, happened {num.nearest(k['observed'][i])} in 100",
                "model says": says,
                "happened": happened,
                "people": f"{num.count(k['rows'][i])} ({num.nearest(k['share'][i])} % of all)",
                "off by": f"{num.gap(k['gap'][i])} points",
                "limits": f"{a} to {b} points",
                "p": f"{k['p_adjusted'][i]:.2g} (adjusted)",
                "found again": f"{round(100 * k['stability'][i])} % of repeats",
                "verdict": "error found" if k["finding"][i] else "undecided",
            }
        )
    return out


def _labels(rows: list[dict[str, Any]]) -> str:
    """Return the expression that writes each rule over as many lines as it needs."""
    import json

    lines = [[*_wrapped(r["rule"]), r["people"]] for r in rows]
    return f"{json.dumps(lines)}[datum.value]"


def _wrapped(rule: str) -> list[str]:
    lines = [""]
    for word in rule.split(" "):
        if lines[-1] and len(lines[-1]) + len(word) + 1 > LONG:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines
