"""Figure 5 of the strong calibration paper: calibration plots, stratified by the most important variables.

The paper takes the variables that its test's importance puts first beside the score, cuts the audit data by them, and
draws a calibration curve in each part, to see whether the findings of Figure 3 can be seen.

Here: the audits of Figure 3 (credit default and COMPAS in place of the private records and the comments). The two most
important variables beside the score are found anew in half of the audit data; the curves are drawn from the other half,
so that no one is looked at twice. Each has a band that holds at all its points together. --full: under a CPU minute.
"""

from typing import Any

import numpy as np

import calibrant as cal
from reproduce import claim
from reproduce.claim import Claim
from reproduce.experiment import SUBSTITUTE, Experiment, Row
from reproduce.strong.data import AUDITED, audited, scored

TOLERANCE = 0.05
EVERYBODY = "everybody"
SIDES: tuple[Any, ...] = ("greater", "less")


def run(size: int, seed: int) -> list[Row]:
    """Curves in each part, for both models (COMPAS alone at the tiny size); `size` shuffles each variable."""
    return [row for name in (AUDITED if size > 2 else ["COMPAS"]) for row in curves(name, size, seed)]


def curves(name: str, repeats: int, seed: int) -> list[Row]:
    """Find the variables in half of the people; draw everybody's curve and that of each part in the other half."""
    x, y, p = scored(name, seed)
    half = len(y) // 2
    data = audited(name, half, seed)
    side = min(
        SIDES,
        key=lambda s: (
            cal.detect.strong_calibration_test(
                data, tolerance=TOLERANCE, alternative=s, null="split", seed=seed
            ).p_value
        ),
    )
    found = cal.diagnose.importance(
        data, tolerance=TOLERANCE, alternative=side, null="fixed", repeats=repeats, seed=seed
    )
    first = [v for v in found.columns["variable"] if v != "the score"][:2]
    out = curve(y[half:], p[half:], {"data": name, "variable": EVERYBODY, "part": EVERYBODY, "side": side})
    for variable in first:
        values = x[variable].to_numpy()
        cuts = np.unique(np.quantile(values[:half], [1 / 3, 2 / 3]))
        part = np.searchsorted(cuts, values[half:])  # up to a cut, and above it
        for k in np.unique(part):
            low, high = ([None, *cuts][k], [*cuts, None][k])
            words = f"{variable} up to {high:g}" if low is None else f"{variable} above {low:g}"
            words += f", up to {high:g}" if None not in (low, high) else ""
            row = {"data": name, "variable": variable, "part": words, "side": side}
            out += curve(y[half:][part == k], p[half:][part == k], row)
    return out


def curve(y: Any, p: Any, row: Row) -> list[Row]:
    """Return the reliability curve with its band; nothing for a part too small to draw."""
    try:
        found = cal.diagnose.reliability_curve(cal.predictions(y, p), grid=25)
    except cal.NotComputable:
        return []
    c, people = found.columns, {"people": len(y), "p_value": found.settings["p_value"]}
    names = ("predicted", "observed", "gap", "low", "high")
    return [{**row, **people, **dict(zip(names, v, strict=True))} for v in zip(*(c[k] for k in names), strict=True)]


def parts(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows of each curve."""
    return {
        k: [r for r in rows if (r["data"], r["part"]) == k] for k in dict.fromkeys((r["data"], r["part"]) for r in rows)
    }


def farthest(rows: list[Row]) -> tuple[float, float, float]:
    """How far a curve is from zero where its band is farthest, and the band's ends, on the side where it is."""
    worst = max(rows, key=lambda r: max(r["low"], -r["high"]))
    ends = worst["gap"], worst["low"], worst["high"]
    return ends if worst["low"] > -worst["high"] else (-ends[0], -ends[2], -ends[1])


def claims(rows: list[Row]) -> dict[str, Claim]:
    """What the paper reads from its figure; numbers are of the model of which it holds least, with its band."""
    found, names = parts(rows), dict.fromkeys(r["data"] for r in rows)
    part = {
        d: max((farthest(v) for k, v in found.items() if k[0] == d and k[1] != EVERYBODY), key=by_end) for d in names
    }
    whole = {d: farthest(found[d, EVERYBODY]) for d in names}

    def over(bound: float) -> Claim:
        return claim.every(claim.row_attributes(*part[d], 1, bound, None) for d in names)

    apart = [(a[0] - b[0], a[1] - b[2], a[2] - b[1]) for a, b in ((part[d], whole[d]) for d in names)]
    return {
        "each model: in some part the curve leaves its 95 % band (each by itself)": over(0.0),
        "each model: in some part by more than the tolerance": over(TOLERANCE),
        "each model: some part is farther off than everybody together": claim.every(
            claim.row_attributes(*ends, 1, 0.0, None) for ends in apart
        ),
    }


def by_end(ends: tuple[float, float, float]) -> float:
    """Low end of a band, by which the farthest part is chosen."""
    return ends[1]


def table(rows: list[Row]) -> list[Row]:
    """The worst point of each curve."""
    out = []
    for (name, part), points in parts(rows).items():
        worst = max(points, key=lambda r: max(r["low"], -r["high"]))
        stated = {k: f"{worst[k]:.2f}" for k in ("predicted", "observed")}
        band = f"{worst['low']:+.2f} to {worst['high']:+.2f}"
        out.append(
            {
                "audited": name,
                "people": f"{part} ({worst['people']:,})",
                **stated,
                "observed less predicted, 95 % band at its worst point": band,
                "p of the curve": f"{worst['p_value']:.3f}",
            }
        )
    return out


def chart(rows: list[Row]) -> Any:
    """Curves of the parts, one panel a variable."""
    import altair as alt

    panels = []
    for data, variable in dict.fromkeys((r["data"], r["variable"]) for r in rows if r["variable"] != EVERYBODY):
        shown = [r for r in rows if r["data"] == data and r["variable"] in (variable, EVERYBODY)]
        edges = [[min(max(r["predicted"] + r[k], 0), 1) for k in ("low", "high")] for r in shown]
        shown = [{**r, "low": a, "high": b} for r, (a, b) in zip(shown, edges, strict=True)]
        names = list(dict.fromkeys(r["part"] for r in shown))
        scale = alt.Scale(domain=names, range=["#888888", "#1f77b4", "#d95f02", "#1b9e77"][: len(names)])
        legend = alt.Legend(orient="bottom", columns=1, labelLimit=260, symbolOpacity=1)
        x, share = alt.X("predicted:Q", title="the model says", axis=alt.Axis(format="%")), alt.Axis(format="%")
        base = alt.Chart(alt.InlineData(values=shown), title=f"{data}: {variable}").encode(
            x=x, color=alt.Color("part:N", title=None, scale=scale, legend=legend)
        )
        band = base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q", title="happened", axis=share), y2="high:Q")
        right = alt.Chart(alt.InlineData(values=[{"at": 0}, {"at": 1}])).mark_line(strokeDash=[4, 4], color="grey")
        lines = base.mark_line().encode(y="observed:Q") + right.encode(x="at:Q", y="at:Q")
        panels.append((band + lines).properties(width=290, height=220))
    return alt.concat(*panels, columns=2).resolve_scale(color="independent")


EXPERIMENT = Experiment(
    items=("Figure 5",),
    title="Calibration curves in the parts that the test points at",
    status=SUBSTITUTE,
    difference=(
        "Public people stand in for private ones, as in Figure 3. The figure has no numbers in print. The variables "
        "are chosen in one half of the people and the curves drawn in the other, with bands simultaneous along a curve "
        "but not over curves, of which a part is the farthest of five or six; all variables compete, not demographic "
        "ones alone."
    ),
    sizes={"tiny": 2, "quick": 5, "full": 10},
    run=run,
    claims=claims,
    sure=(),
    chart=chart,
    table=table,
)
