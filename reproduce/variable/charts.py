"""The charts of this paper: errors as dots, and what the model says of itself beside what happens, along a variable."""

from typing import Any

import altair as alt
import pandas as pd

from reproduce.experiment import Row

OBSERVED, PREDICTED = "#c44e52", "#4c72b0"
COLOURS = ["#222222", "#1b9e77", "#d95f02", "#7570b3", "#e7298a"]


def dots(
    rows: list[Row],
    kinds: str = "way",
    facet: str = "error",
    across: str = "method",
    height: int = 150,
    zero: bool = True,
) -> Any:
    """Draw errors, one line a method (or variable); the printed values are crosses."""
    frame = pd.DataFrame(rows)
    order = list(dict.fromkeys(frame[across]))
    base = alt.Chart(frame).encode(
        x=alt.X("value:Q", title="percent", scale=alt.Scale(zero=zero)), y=alt.Y(f"{across}:N", sort=order, title=None)
    )
    named = list(dict.fromkeys(frame[kinds]))
    legend = alt.Legend(title=None, orient="bottom", columns=3, labelLimit=400)
    shapes = ["cross", "circle", "square", "triangle-up", "diamond"][: len(named)]
    marks = base.mark_point(size=70, filled=False, strokeWidth=2).encode(
        color=alt.Color(f"{kinds}:N", legend=legend, scale=alt.Scale(domain=named, range=COLOURS[: len(named)])),
        shape=alt.Shape(f"{kinds}:N", legend=legend, scale=alt.Scale(domain=named, range=shapes)),
    )
    facets = alt.Column(f"{facet}:N", title=None, sort=list(dict.fromkeys(frame[facet])))
    width = 560 // frame[facet].nunique() - 60
    return marks.properties(width=width, height=height).facet(column=facets).resolve_scale(x="independent")


def panels(rows: list[Row], variable: str, log: bool = False) -> Any:
    """Draw a reliability diagram and the errors along the variable for each method: one column a method."""
    frame = pd.DataFrame(rows)
    methods = list(dict.fromkeys(frame["method"]))
    width = 620 // len(methods) - 34
    by_variable = frame[frame["kind"] == "variable"]
    top = float(by_variable[["high", "predicted"]].max().max())
    ticks = {"values": [30, 100, 300, 1_000, 3_000]} if log else {"tickCount": 4}
    axis = alt.X(
        "x:Q",
        title=variable,
        axis=alt.Axis(grid=not log, **ticks),
        scale=alt.Scale(
            domain=[float(by_variable["x"].min()), float(by_variable["x"].max())], type="log" if log else "linear"
        ),
    )
    height = alt.Scale(domain=[0.0, min(1.0, 1.05 * top)])
    score = frame[frame["kind"] == "score"]
    ends = [min(0.5, float(score[["x", "observed"]].min().min())), 1.0]
    columns = [
        alt.vconcat(
            _diagram(score[score["method"] == m], m, width, ends, i == 0),
            _errors(by_variable[by_variable["method"] == m], axis, height, width, i == 0),
        )
        for i, m in enumerate(methods)
    ]
    return alt.hconcat(*columns).configure_legend(orient="bottom").configure_title(fontSize=11)


def _diagram(score: Any, method: str, width: int, ends: list[float], first: bool) -> Any:
    """Draw accuracy by confidence."""
    scale = alt.Scale(domain=ends, nice=False)
    x, y = (
        alt.X("x:Q", title="confidence", scale=scale),
        alt.Y("observed:Q", title="accuracy" if first else None, scale=scale),
    )
    marks = (
        alt.Chart(score).mark_line(point=alt.OverlayMarkDef(color=OBSERVED, size=20), color=OBSERVED).encode(x=x, y=y)
    )
    line = (
        alt.Chart(pd.DataFrame({"x": ends, "observed": ends}))
        .mark_line(color="#999", strokeDash=[4, 3])
        .encode(x=x, y=y)
    )
    return (line + marks).properties(width=width, height=min(width, 160), title=method.replace(" (", "|(").split("|"))


def _errors(by_variable: Any, axis: Any, height: Any, width: int, first: bool) -> Any:
    """Draw the error with its band, and the error that the model predicts."""
    title = "share of errors" if first else None
    base = alt.Chart(by_variable).encode(x=axis)
    band = base.mark_area(opacity=0.18, color=OBSERVED, clip=True).encode(
        y=alt.Y("low:Q", title=title, scale=height), y2="high:Q"
    )
    long = by_variable.melt(id_vars=["x"], value_vars=["observed", "predicted"], var_name="line", value_name="rate")
    long["line"] = long["line"].map({"observed": "error", "predicted": "error that the model predicts of itself"})
    named = alt.Scale(domain=["error", "error that the model predicts of itself"], range=[OBSERVED, PREDICTED])
    lines = (
        alt.Chart(long)
        .mark_line(clip=True)
        .encode(
            x=axis,
            y=alt.Y("rate:Q", title=title, scale=height),
            color=alt.Color("line:N", title=None, scale=named, legend=alt.Legend(labelLimit=300)),
        )
    )
    return (band + lines).properties(width=width, height=150)
