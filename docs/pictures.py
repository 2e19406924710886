"""Draw the pictures of the guide into docs/img: python docs/pictures.py [NAME ...]

Simulated outcomes come from fixed seeds, so the same versions draw the same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import vl_convert

import calibrant as cal
from calibrant.data import employment_path

OUT = Path(__file__).parent / "img"
BLUE, RUST, GREY, TEAL, PALE = "#27517a", "#b03a06", "#6d6555", "#0a6a86", "#b9cbdd"
COLOURS = [BLUE, RUST, TEAL, GREY]
LOOK = {
    "background": "#ffffff",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "gridColor": "#e6e4df"},
    "legend": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 260},
}
SIZES = [300, 1_000, 3_000, 10_000, 30_000, 100_000]


def simulated(n: int, seed: int, power: float = 1.0) -> Any:
    """Return n rows with even scores and event rate score**power; calibrated if the power is one."""
    rng = np.random.default_rng([seed, n])
    p = rng.uniform(size=n)
    return cal.predictions(rng.uniform(size=n) < p**power, p)


def employment(by: list[str] | None = None) -> Any:
    """Return the bundled rows."""
    return cal.read(employment_path(), label="employed", score="predicted_probability", by=by)


def points(x: float) -> float:
    """Return a probability in points, rounded so that the picture does not hang on the last digit."""
    return round(100 * float(x), 4)


def chart(rows: list[dict[str, Any]]) -> alt.Chart:
    """Return a chart of these rows."""
    return alt.Chart(alt.InlineData(values=rows))


def rule(value: float, axis: str = "y", label: str = "", at: float = 0.0) -> Any:
    """Return a dashed line, with a label if one is given."""
    base = chart([{"v": value, "t": label, "at": at}])
    other = "x" if axis == "y" else "y"
    line = base.mark_rule(strokeDash=[5, 4], color="#1e2428").encode(**{axis: alt.datum(value)})
    if not label:
        return line
    text = base.mark_text(align="left", baseline="bottom", dy=-3, dx=3, fontSize=12, color="#1e2428")
    return line + text.encode(text="t:N", **{axis: alt.datum(value), other: alt.datum(at)})


def rows_axis(title: str = "rows") -> alt.X:
    """Return the axis of sample sizes."""
    ticks = [300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
    return alt.X("n:Q", title=title, scale=alt.Scale(type="log", nice=False), axis=alt.Axis(values=ticks, format="~s"))


def log_axis(field: str, title: str, ticks: list[float], domain: tuple[float, float], which: Any = alt.Y) -> Any:
    """Return a logarithmic axis with these ticks."""
    scale = alt.Scale(type="log", domain=list(domain), nice=False)
    return which(
        f"{field}:Q", title=title, scale=scale, axis=alt.Axis(values=ticks, format="~s" if max(ticks) > 999 else "~g")
    )


def legend(order: list[str], colours: list[str] | None = None, columns: int = 3, symbol: str = "stroke") -> alt.Color:
    """Return colours in a fixed order, with a legend above the picture."""
    scale = alt.Scale(domain=order, range=(colours or COLOURS)[: len(order)])
    width = 3 if symbol == "stroke" else 0
    key = alt.Legend(orient="top", columns=columns, symbolType=symbol, symbolStrokeWidth=width, symbolOpacity=1)
    return alt.Color("of:N", title=None, scale=scale, sort=None, legend=key)


def raw_lower() -> Any:
    """Lower bounds of ten samples a size, under the true error."""
    truth = points(0.5 - 1 / 2.2)
    rows = [
        {"n": n, "y": points(cal.certify.raw_lower(simulated(n, seed, 1.2)).interval.low)}
        for n in SIZES
        for seed in range(10)
    ]
    y = alt.Y("y:Q", title="off by at least, points", scale=alt.Scale(domain=[0, 5]))
    dots = chart(rows).mark_point(color=BLUE, size=30, opacity=0.7, filled=True).encode(x=rows_axis(), y=y)
    return (dots + rule(truth, label="the error of this model", at=300)).properties(width=460, height=240)


def rounded() -> Any:
    """Upper bounds of a calibrated model by number of steps and rows."""
    names = {1_000: "1 000 rows", 10_000: "10 000 rows", 100_000: "100 000 rows"}
    rows = []
    for n, of in names.items():
        data = [simulated(n, seed) for seed in range(5)]
        for k in (5, 10, 20, 50, 100, 200):
            high = [cal.certify.rounded(d, steps=k, side="upper").interval.high for d in data]
            rows.append({"k": k, "y": points(np.mean(high)), "of": of})
    base = chart(rows).encode(
        x=log_axis("k", "steps shown", [5, 10, 20, 50, 100, 200], (4.6, 220), alt.X),
        y=alt.Y("y:Q", title="off by at most, points", scale=alt.Scale(domain=[0, 16])),
        color=legend(list(names.values())),
    )
    return (base.mark_line() + base.mark_point(filled=True, size=40)).properties(width=460, height=240)


def groups() -> Any:
    """Certified ranges of the groups of two variables of the bundled data."""
    found = cal.certify.groups(employment(["nativity", "age"]), by=["nativity", "age"], steps=50)
    limit, rows = 1.4, []
    for name, e in found.items():
        low, high = points(e.interval.low), points(e.interval.high)
        of = "over the limit" if low > limit else "within the limit" if high <= limit else "undecided"
        rows.append({"g": name, "low": low, "high": high, "of": of})
    order = ["within the limit", "undecided", "over the limit"]
    base = chart(rows).encode(y=alt.Y("g:N", sort=None, title=None, axis=alt.Axis(labelLimit=220)))
    x = alt.X("low:Q", title="off by, points", scale=alt.Scale(domainMin=0))
    bars = base.mark_bar(height=9).encode(x=x, x2="high:Q", color=legend(order, [TEAL, PALE, RUST], symbol="square"))
    return (bars + rule(limit, "x")).properties(width=360, height=18 * len(rows))


def rows_needed() -> Any:
    """Rows by gap, for scores spread evenly."""
    plans: dict[str, dict[str, Any]] = {
        "at most, shown in 100 steps": {"levels": 100},
        "at most, shown in 50 steps": {"levels": 50},
        "at most, with noise of 1/64": {"method": "jittered"},
        "at least, raw score": {"side": "lower"},
    }
    rows = [
        {"x": points(gap), "n": cal.certify.rows_needed(gap, **how).value, "of": of}
        for of, how in plans.items()
        for gap in (0.05, 0.03, 0.02, 0.015, 0.01, 0.005, 0.003)
    ]
    x = log_axis("x", "gap, points", [0.3, 0.5, 1, 2, 3, 5], (0.28, 5.4), alt.X)
    y = log_axis("n", "rows", [10.0**k for k in range(3, 7)], (300, 2e6))
    color = legend(list(plans), columns=2)
    return chart(rows).mark_line(point=True).encode(x=x, y=y, color=color).properties(width=460, height=240)


def published() -> Any:
    """Upper bounds of a calibrated model: as published, and those made here for the same quantity."""
    c = cal.certify
    bounds: dict[str, Callable[[Any], Any]] = {
        "published_kernel": cal.papers.published_kernel,
        "jittered": lambda d: c.jittered(d, side="upper"),
        "published_total_variation": cal.papers.published_total_variation,
        "bounded_variation": lambda d: c.bounded_variation(d, side="upper"),
    }
    rows = [
        {"n": n, "y": points(bound(simulated(n, 0)).interval.high), "of": of}
        for n in (1_000, 3_000, 10_000, 30_000, 100_000)
        for of, bound in bounds.items()
    ]
    y = log_axis("y", "off by at most, points", [0.5, 1, 2, 5, 10, 20, 50, 100], (0.5, 100))
    ranges = [[5, 4], [1, 0], [5, 4], [1, 0]]
    key = alt.Legend(orient="top", columns=2, symbolType="stroke", symbolStrokeWidth=3)
    dash = alt.StrokeDash("of:N", title=None, sort=None, legend=key, scale=alt.Scale(domain=list(bounds), range=ranges))
    base = chart(rows).encode(x=rows_axis(), y=y, color=legend(list(bounds), [BLUE, BLUE, RUST, RUST], columns=2))
    return (base.mark_line().encode(strokeDash=dash) + base.mark_point(filled=True, size=40)).properties(
        width=460, height=240
    )


def calibration_function() -> Any:
    """The two surrogates of 20,000 rows, over the parabola that the rows come from."""
    rng = np.random.default_rng(0)
    p = rng.uniform(size=20_000)
    data = cal.predictions(rng.uniform(size=20_000) < (2 * p - 1) ** 2, p)
    curves = {
        "kernel": cal.papers.calibration_function(data, perturb=False),
        "total variation": cal.papers.calibration_function(data, method="total-variation"),
    }
    lines = {of: list(zip(c.columns["x"], c.columns["rate"], strict=True)) for of, c in curves.items()}
    lines["the truth"] = [(x, (2 * x - 1) ** 2) for x in np.linspace(0, 1, 101)]
    rows = [{"x": points(x), "y": points(y), "of": of} for of, line in lines.items() for x, y in line]
    x, y = alt.X("x:Q", title="score, %"), alt.Y("y:Q", title="event rate, %", scale=alt.Scale(domain=[0, 100]))
    colour = legend(list(lines), [BLUE, RUST, GREY])
    return chart(rows).mark_line().encode(x=x, y=y, color=colour).properties(width=460, height=240)


def variable_curve() -> Any:
    """The gap along age in the bundled data in 2018, with the band that holds for all ages."""
    data = employment(["age", "year"])
    last = np.asarray(data.covariates.column("year")) == 2018
    rows = cal.predictions(data.y[last], data.p[last], {"age": np.asarray(data.covariates.column("age"))[last]})
    c = cal.diagnose.variable_curve(rows, "age", grid=61).columns
    keys = ("x", "gap", "low", "high", "low_point", "high_point")
    table = [
        {k: round(v, 4) if k == "x" else points(v) for k, v in zip(keys, row, strict=True)}
        for row in zip(*(c[k] for k in keys), strict=True)
    ]
    x = alt.X("x:Q", title="age", scale=alt.Scale(zero=False, nice=False))
    y = alt.Y("low:Q", title="observed minus predicted, points")
    base = chart(table).encode(x=x)
    return (
        base.mark_area(color=PALE, opacity=0.6).encode(y=y, y2="high:Q")
        + base.mark_area(color=PALE).encode(y=alt.Y("low_point:Q"), y2="high_point:Q")
        + base.mark_line(color=BLUE).encode(y="gap:Q")
        + rule(0.0)
    ).properties(width=460, height=240)


def rank_variables() -> Any:
    """The variables of the bundled data in 2018: the error beyond the shift, with certified ranges."""
    names = ["age", "sex", "race", "schooling", "marital", "disability", "citizenship", "nativity"]
    data = employment([*names, "year"])
    last = np.asarray(data.covariates.column("year")) == 2018
    table = data.covariates.filter(last).select(names)
    found = cal.diagnose.rank_variables(cal.predictions(data.y[last], data.p[last], table))
    c, alpha = found.columns, found.settings["alpha"]
    keys = ("variable", "beyond_gap", "beyond_low", "beyond_high", "p_adjusted")
    kinds = ["error follows it", "not shown"]
    rows = [
        {"v": v, "x": points(b), "low": points(a), "high": points(z), "of": kinds[p > alpha]}
        for v, b, a, z, p in zip(*(c[k] for k in keys), strict=True)
    ]
    y = alt.Y("v:N", sort=None, title=None)
    base = chart(rows).encode(y=y)
    x = alt.X("x:Q", title="error beyond the overall shift, points")
    bars = base.mark_bar(height=12).encode(x=x, color=legend(kinds, [BLUE, PALE], symbol="square"))
    return (bars + base.mark_rule(color="#1e2428").encode(x="low:Q", x2="high:Q")).properties(width=430, height=200)


def variable() -> Any:
    """Certified ranges by rows: a model that is 5 points off along a variable, up or down, and a calibrated one."""
    rows: list[dict[str, Any]] = []
    names = {"5 points off, up or down": 0.05, "a calibrated model": 0.0}
    for of, off in names.items():
        for n in SIZES:
            rng = np.random.default_rng([7, n])
            x, p = rng.uniform(size=n), rng.uniform(0.2, 0.8, n)
            data = cal.predictions(rng.uniform(size=n) < p + np.where(x < 0.5, off, -off), p, {"x": x})
            e = cal.certify.variable(data, "x").interval
            rows.append({"n": n, "low": points(e.low), "high": points(e.high), "of": of})
    base = chart(rows).encode(x=rows_axis(), color=legend(list(names), columns=2))
    y = alt.Y("low:Q", title="certified error along the variable, points", scale=alt.Scale(domain=[0, 16]))
    low, high = base.encode(y=y), base.encode(y="high:Q")
    lines = (
        low.mark_line()
        + high.mark_line()
        + low.mark_point(filled=True, size=40)
        + high.mark_point(filled=True, size=40)
    )
    return (lines + rule(5.0, label="5 points", at=300)).properties(width=460, height=240)


def _logistic(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def _clumped(rng: Any) -> tuple[Any, Any, Any]:
    """Right; the rows whose outcomes vary most lie close together."""
    high = rng.random(150) < 0.15
    p = np.where(high, rng.uniform(0.4, 0.6, 150), rng.uniform(0.005, 0.03, 150))
    return p, np.where(high, rng.normal(0, 0.05, 150), rng.uniform(-3, 3, 150))[:, None], p


def _normal(wrong: str) -> Callable[[Any], tuple[Any, Any, Any]]:
    """Ten normal covariates: right, or wrong in one of three ways."""

    def draw(rng: Any) -> tuple[Any, Any, Any]:
        x = rng.normal(size=(500, 10))
        if wrong in ("right", "left out"):
            return _logistic(x[:, : 9 if wrong == "left out" else 10].sum(axis=1)), x, _logistic(x.sum(axis=1))
        p = _logistic(x[:, 0] + 0.5 * x[:, 1])
        return p, x, np.clip(p + (0.06 if wrong == "gap" else 0.2 * (x[:, 2] > 1.2816)), 0, 1)

    return draw


def local_calibration_test() -> Any:
    """How often the default test and the two published ones reject models that are right, and models that are wrong."""
    wide, narrow = {"score_width": 5.0, "covariate_gamma": 0.04}, {"score_width": 0.1, "covariate_gamma": 200.0}
    designs: dict[str, tuple[Any, dict[str, float]]] = {
        "right: noise in clumps, narrow kernel": (_clumped, narrow),
        "right: the paper's simulation": (_normal("right"), wide),
        "wrong: one covariate of ten left out": (_normal("left out"), wide),
        "wrong: everyone 6 points too low": (_normal("gap"), wide),
        "wrong: a tenth 20 points too low": (_normal("tenth"), wide),
    }
    theirs = cal.papers.published_local_test
    tests: dict[str, tuple[Any, dict[str, Any]]] = {
        "this test": (cal.detect.local_calibration_test, {}),
        "published, resampled": (theirs, {"null": "resampled"}),
        "published, permuted": (theirs, {"null": "permuted"}),
    }
    runs, rows = 200, []
    for design, (draw, widths) in designs.items():
        hits = dict.fromkeys(tests, 0)
        for r in range(runs):
            rng = np.random.default_rng([0x10C, r])
            p, x, eta = draw(rng)
            data = cal.predictions(rng.random(len(p)) < eta, p, {f"x{j}": v for j, v in enumerate(x.T)})
            for of, (test, how) in tests.items():
                more = widths if test is theirs else {}
                hits[of] += test(data, draws=199, seed=r, **how, **more).p_value <= 0.05
        rows += [{"d": design, "x": round(100 * h / runs, 1), "of": of} for of, h in hits.items()]
    base = chart(rows).encode(
        x=alt.X("x:Q", title="rejected at 0.05, of 100 data sets", scale=alt.Scale(domain=[0, 100])),
        y=alt.Y("d:N", sort=None, title=None, axis=alt.Axis(labelLimit=280, grid=True)),
        color=legend(list(tests), [BLUE, RUST, GREY], symbol="circle"),
        yOffset=alt.YOffset("of:N", sort=list(tests)),
    )
    return (base.mark_point(filled=True, size=70, opacity=1) + rule(5.0, "x")).properties(width=330, height=230)


def local_bias() -> Any:
    """The map along age in the bundled data in 2018, women and men apart, under one band."""
    data = employment(["age", "sex", "year"])
    table = data.covariates
    last = np.asarray(table.column("year")) == 2018
    c = cal.diagnose.local_bias(
        cal.predictions(data.y[last], data.p[last], table.filter(last).select(["age", "sex"])), "age", by="sex"
    ).columns
    rows = [
        {"x": x, "b": points(b), "low": points(low), "high": points(high), "of": of}
        for x, b, low, high, of in zip(*(c[k] for k in ("x", "gap", "low", "high", "group")), strict=True)
    ]
    x = alt.X("x:Q", title="age", scale=alt.Scale(zero=False, nice=False))
    panels = []
    for i, of in enumerate(dict.fromkeys(c["group"])):
        y = alt.Y("low:Q", title=None if i else "observed minus predicted, points")
        base = chart([r for r in rows if r["of"] == of]).encode(x=x)
        band = base.mark_area(color=PALE).encode(y=y, y2="high:Q")
        line = base.mark_line(color=BLUE).encode(y="b:Q")
        panels.append(
            (band + line + rule(0.0)).properties(
                width=230, height=220, title=alt.Title(str(of), fontWeight="normal", fontSize=12)
            )
        )
    return alt.hconcat(*panels).resolve_scale(y="shared")


def sites() -> Any:
    """Return 24 simulated hospitals of unequal size, whose intercepts differ with standard deviation .35."""
    rng = np.random.default_rng(12)
    size = rng.integers(60, 900, 24)
    site = np.repeat(np.arange(24), size)
    p = 1.0 / (1.0 + np.exp(-rng.normal(-1.8, 0.9, size.sum())))
    shifted = np.log(p / (1.0 - p)) + rng.normal(0.25, 0.35, 24)[site]
    y = rng.uniform(size=size.sum()) < 1.0 / (1.0 + np.exp(-shifted))
    return cal.predictions(y, p, {"hospital": np.array([f"hospital {i + 1:02d}" for i in site])})


def heterogeneity() -> Any:
    """Return the caterpillar plot of simulated hospitals."""
    return cal.diagnose.heterogeneity(sites(), site="hospital").chart()


def corner(n: int, seed: int, gap: float) -> Any:
    """Return n rows of five even traits; the rate is above the score by the gap where x2 and x3 are over 0.8."""
    rng = np.random.default_rng([seed, n])
    x = rng.uniform(size=(n, 5))
    p = rng.uniform(0.1, 0.4, n)
    rate = p + gap * ((x[:, 1] > 0.8) & (x[:, 2] > 0.8))
    return cal.predictions(rng.uniform(size=n) < rate, p, {f"x{j + 1}": x[:, j] for j in range(5)})


def subgroups() -> Any:
    """What some subgroup is off by at least, where one is; and what none of 5 % is off by more than, where none is."""
    names = ["a subgroup of 4% is off by 7: at least", "no subgroup is off: at most"]
    rows = []
    for n in (3_000, 10_000, 30_000, 100_000, 300_000):
        for seed in range(5):
            low = cal.certify.subgroups(corner(n, seed, 0.07), side="lower").interval.low
            high = cal.certify.subgroups(corner(n, seed, 0.0), side="upper").interval.high
            rows += [{"n": n, "y": points(v), "of": of} for v, of in zip((low, high), names, strict=True)]
    y = alt.Y("y:Q", title="points", scale=alt.Scale(domain=[0, 20], clamp=True))
    marks = chart(rows).mark_point(size=30, opacity=0.7, filled=True)
    dots = marks.encode(x=rows_axis(), y=y, color=legend(names, columns=2, symbol="circle"))
    return (dots + rule(7.0, label="the gap of the subgroup", at=3_000)).properties(width=460, height=240)


def accept() -> Any:
    """Certified risk against the share accepted: at all thresholds at once, and at each by itself."""
    rng = np.random.default_rng(3)
    score = rng.beta(6, 1, 12_000)
    data = cal.predictions(rng.uniform(size=12_000) < score, score)
    curve = cal.diagnose.acceptance_curve(data, risk=0.05)
    names = {"high": "all thresholds at once", "high_alone": "one fixed beforehand", "rate": "observed"}
    rows = [
        {"x": round(100 * share, 2), "y": points(y), "of": of}
        for column, of in names.items()
        for share, y in zip(curve.columns["share"], curve.columns[column], strict=True)
    ]
    x = alt.X("x:Q", title="accepted, % of the answers", scale=alt.Scale(domain=[0, 100]))
    y = alt.Y("y:Q", title="wrong among them at most, %", scale=alt.Scale(domain=[0, 16], clamp=True))
    lines = chart(rows).mark_line().encode(x=x, y=y, color=legend(list(names.values())))
    return (lines + rule(5.0, label="the wish", at=4)).properties(width=460, height=240)


PICTURES = (
    accept,
    raw_lower,
    rounded,
    groups,
    rows_needed,
    published,
    calibration_function,
    variable_curve,
    rank_variables,
    variable,
    local_calibration_test,
    heterogeneity,
    local_bias,
    subgroups,
)


def main(names: list[str]) -> None:
    """Draw the pictures named, or all."""
    for draw in PICTURES:
        if not names or draw.__name__ in names:
            spec = draw().configure(**LOOK).to_json()
            svg = vl_convert.vegalite_to_svg(spec)
            (OUT / f"{draw.__name__}.svg").write_text(svg + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
