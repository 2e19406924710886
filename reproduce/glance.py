"""Results at a glance, for the README: published against calibrant in rows needed, power, level and time.

    python reproduce/glance.py

Rows, power and level are read from the results that are checked in, with the data sets that they rest on: power of the
local test as the authors' program prints it, of the strong test with the detectors, weights and folds of the authors'
program; level of the published permutation and of the published held models. Times are measured here, in one process
with one thread: the published certificate with its own subsample of the rows and this library's, both on the same
million rows, and the strong test with the authors' detectors and with the default on the same 1,000.
Writes reproduce/results/glance.json and docs/img/reproduce/glance.svg.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import calibrant as cal
from reproduce.experiment import CHARTS, Result, Row, place, plain, versions
from reproduce.measuring.bounds import JITTERED, KERNEL
from reproduce.measuring.rates import rows_for
from reproduce.strong.compared import ALPHA, STRONG
from reproduce.strong.figure_4 import EXACT, pooled
from reproduce.trustworthy.figure_3 import DEFAULT
from reproduce.trustworthy.figure_3 import PUBLISHED as IN_PRINT
from reproduce.trustworthy.figure_5 import PERMUTED, SIMULATED

PUBLISHED, HERE = "published", "calibrant"
NEEDED, DETECTED, FALSE, TIME = (
    "rows to certify within 2 points",
    "wrong models found (share)",
    "right models rejected, over the share asked for",
    "CPU seconds",
)


def value(name: str, field: str, **wanted: Any) -> float:
    """Return the one number of a result's rows that agrees with what is wanted."""
    found = [r[field] for r in Result.load(name).rows if all(r.get(k) == v for k, v in wanted.items())]
    assert len(found) == 1, (name, wanted, len(found))
    return float(found[0])


def took(call: Callable[[Any], Any], make: Callable[[], Any]) -> float:
    """Return the least CPU seconds of three calls, each on predictions made anew, after one that compiles."""
    times = []
    for _ in range(4):
        data = make()
        start = time.process_time()
        call(data)
        times.append(time.process_time() - start)
    return min(times[1:])


def scores(n: int, d: int = 0) -> Any:
    """Return rows of a calibrated model, with `d` covariates."""
    rng = np.random.default_rng([0x61A, n])
    p = rng.uniform(size=n)
    return cal.predictions(rng.uniform(size=n) < p, p, {f"x{j}": rng.normal(size=n) for j in range(d)})


def worst(null: str) -> float:
    """Return the largest share of right models that a null of the local test rejects, of all designs of its figure."""
    return float(max(r["type 1"] for r in Result.load("trustworthy/figure_5").rows if r["null"] == null))


def power_rows(test: str) -> list[Row]:
    """Return a test's rows of the strong test's figure: a regression, where the published test was run too."""
    power = [r for r in Result.load("strong/figure_2").rows if r["what"] == "power"]
    cells = [
        (r["audited"], r["rows"], r["tolerance"])
        for r in power
        if r["test"] == STRONG[0] and r["audited"] == "logistic"
    ]
    return [r for r in power if r["test"] == test and (r["audited"], r["rows"], r["tolerance"]) in cells]


def mean_power(test: str) -> float:
    """Return the mean over these settings."""
    return float(np.mean([r["value"] for r in power_rows(test)]))


def counted(rows: list[Row], count: str) -> str:
    """Return the least and the greatest number of data sets behind a number, for the label of a line."""
    found = sorted({r[count] for r in rows})
    return f"{' to '.join(f'{n:,}' for n in dict.fromkeys((found[0], found[-1])))} data sets"


def pairs() -> list[tuple[str, str, float, float]]:
    """Return panel, line, the published number and ours."""
    bounds, level = Result.load("measuring/figure_3_table_1").rows, Result.load("strong/figure_4").rows
    power, local = power_rows(STRONG[1]), Result.load("trustworthy/figure_3").rows
    null = Result.load("trustworthy/figure_5").rows
    designs = len({(r["design"], r["n"], r["width"]) for r in null})
    (held, n), (split, m) = (pooled(level, EXACT, t, "two-sided") for t in (STRONG[1], "strong, split"))
    found = {d: 1 - value("trustworthy/figure_3", "type 2", test=DEFAULT, d=d, n=500) for d in (10, 50)}
    many, few = partial(scores, 1_000_000), partial(scores, 1_000, 10)
    kernel = partial(cal.papers.published_kernel, subsample=True)
    strong = partial(cal.detect.strong_calibration_test, tolerance=0.05, null="fixed")
    return [
        (
            NEEDED,
            f"a calibrated score with noise; {counted(bounds, 'repeats')} a size",
            rows_for(bounds, KERNEL),
            rows_for(bounds, JITTERED),
        ),
        *(
            (
                DETECTED,
                f"one of {d} covariates left out, 500 rows; 1,000 (theirs), {counted(local, 'data sets')}",
                1 - IN_PRINT[500][d],
                share,
            )
            for d, share in found.items()
        ),
        (
            DETECTED,
            f"a badly served group, mean of {len(power)} settings; {counted(power, 'replicates')} each",
            mean_power(STRONG[0]),
            mean_power(STRONG[1]),
        ),
        (
            FALSE,
            f"local calibration, worst of {designs} designs; {counted(null, 'data sets')} each",
            worst(PERMUTED) / 0.05,
            worst(SIMULATED) / 0.05,
        ),
        (
            FALSE,
            f"strong calibration, tolerance 0; {min(n, m):,} data sets",
            held / n / ALPHA,
            split / m / ALPHA,
        ),
        (
            TIME,
            "upper bound, 1,000,000 rows",
            took(kernel, many),
            took(partial(cal.certify.jittered, side="upper"), many),
        ),
        (TIME, "strong test, 1,000 rows", took(partial(strong, detector="authors"), few), took(strong, few)),
    ]


def rows() -> list[Row]:
    """Return the lines of the chart in long form."""
    return [
        plain({"panel": panel, "line": line, "whose": whose, "value": v})
        for panel, line, published, here in pairs()
        for whose, v in ((PUBLISHED, published), (HERE, here))
    ]


def chart(lines: list[Row]) -> Any:
    """A panel for each of the four; a line joins the published number and ours."""
    import altair as alt

    colour = alt.Color("whose:N", title=None, scale=alt.Scale(domain=[PUBLISHED, HERE], range=["#b03a06", "#27517a"]))
    panels = []
    for panel in (NEEDED, DETECTED, FALSE, TIME):
        kept = [r for r in lines if r["panel"] == panel]
        scale = alt.Scale(type="log") if panel in (NEEDED, TIME) else alt.Scale(zero=True)
        base = alt.Chart(alt.InlineData(values=kept)).encode(
            y=alt.Y("line:N", title=None, sort=None, axis=alt.Axis(labelLimit=420))
        )
        x = alt.X(
            "value:Q", title=panel, scale=scale, axis=alt.Axis(format="~s" if panel == NEEDED else "~g", tickCount=6)
        )
        layers = [
            base.mark_line(color="#b9b5aa").encode(x=x, detail="line:N"),
            base.mark_point(filled=True, size=110, opacity=1).encode(x=x, color=colour),
        ]
        if panel == FALSE:
            layers.append(alt.Chart(alt.InlineData(values=[{"v": 1}])).mark_rule(strokeDash=[5, 4]).encode(x="v:Q"))
        panels.append(alt.layer(*layers).properties(width=380, height=alt.Step(24)))
    return (
        alt.vconcat(*panels, spacing=12)
        .configure(background="#ffffff")
        .configure_legend(orient="top", labelFontSize=12)
    )


def main() -> None:
    """Write the result and the chart."""
    import vl_convert

    lines = rows()
    place("glance").write_text(json.dumps({"versions": versions(), "rows": lines}, indent=1) + "\n", encoding="utf-8")
    CHARTS.mkdir(parents=True, exist_ok=True)
    (CHARTS / "glance.svg").write_text(vl_convert.vegalite_to_svg(chart(lines).to_json()), encoding="utf-8")


if __name__ == "__main__":
    main()
