"""Figure 3 and Table 1: how far the upper bounds lie above the truth, and how fast they come down.

The paper draws scores and outcomes from four known calibration functions, bounds the calibration error from up to 1e7
rows by its kernel smoother (NW), its total variation denoiser (TV) and Lipschitz buckets, and plots the gap between
bound and truth; Table 1 gives the slopes of the log-log curves. Here: the same three bounds as published, with the
validation subsampling of Appendix E; the ECE heuristic; and three certificates of calibrant. Each gap is to the true
error of the classifier that the bound is about: with its scores jittered by 2⁻⁶, rounded to 50 steps, or as they are.

--full: about 6 CPU minutes and 2 GB.
"""

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from reproduce import claim
from reproduce.claim import Claim
from reproduce.experiment import DIFFERS, Experiment, Row
from reproduce.measuring.bounds import (
    ABOUT,
    BOUNDS,
    BUCKETS,
    COLOURS,
    DENOISER,
    ECE,
    JITTERED,
    KERNEL,
    OURS,
    PUBLISHED,
    powers,
)
from reproduce.measuring.functions import CALIBRATED, FUNCTIONS, WAVES, sample, true_error, variation
from reproduce.measuring.rates import GAP, in_most, inside, listed, numbers, rows_for, slopes

Cell = tuple[str, int]  # a function and a number of rows
RATES = {KERNEL: (-0.406, -0.213), DENOISER: (-0.423, -0.164), BUCKETS: (-0.574, -0.346)}  # Table 1
THEORY = dict(zip((*PUBLISHED, *OURS), ("-1/3", "-1/4", "-1/3", "-1/2", "-1/2", "-1/3"), strict=True))
IN_PRINT = {"n": 1e7, "gap": GAP, "method": "in print: 0.02 at 1e7"}  # section 7
FALLS = "all three published bounds come closer with more rows"
BEST = "NW has the smallest gap of the three, for every function and number of rows"
CLOSER = "ECE is closer to the truth than NW for the first three functions"
FAILS = "ECE fails for the fourth: its error does not shrink by a fifth (15 bins; by construction, see the differences)"
NEVER = {
    PUBLISHED: "in over 95% of data sets no published bound is below the truth",
    OURS: "beyond the paper: in over 95% of data sets no bound of calibrant's is below the truth",
}
SHARPER = "beyond the paper: the gap of jittered is under a third of NW's, for the same classifier"


def run(largest: int, seed: int) -> list[Row]:
    """Bound the error of every function at 1e3, 1e4, ... rows; more repeats where they are cheap."""
    rows: list[Row] = []
    for n in (10**k for k in range(3, round(math.log10(largest)) + 1)):
        repeats = min(max(3 * largest // (10 * n), 2), 64)
        for i, function in enumerate(FUNCTIONS):
            found: dict[str, list[float]] = {name: [] for name in BOUNDS}
            for r in range(repeats):
                data = sample(function, n, (seed, i, r))
                for name, bound in BOUNDS.items():
                    found[name].append(bound(data, variation(function)))
            for name in BOUNDS:
                truth = true_error(function, ABOUT[name])
                error = np.array(found[name]) - truth
                rows.append(
                    {
                        "function": function,
                        "method": name,
                        "n": n,
                        "repeats": repeats,
                        "truth": truth,
                        "bound": np.mean(found[name]),
                        "gap": np.abs(error).mean() if name == ECE else error.mean(),
                        "cut": max(found[name]) == 1.0,
                        "missed": 0 if name == ECE else int((error < 0).sum()),
                        "gaps": listed(np.abs(error) if name == ECE else error),
                    }
                )
    return rows


def claims(rows: list[Row]) -> dict[str, Claim]:
    """What the paper says of the figure and the table, and what calibrant adds.

    What is said of every function and number of rows holds in the means of each, and in over 95% of data sets drawn.
    """
    at = {(r["method"], r["function"], r["n"]): np.array(numbers(r["gaps"])) for r in rows}
    sizes = sorted({r["n"] for r in rows})

    def drawn(cell: Cell, method: str) -> Any:
        return at[method, *cell]

    def on_average(cell: Cell, method: str) -> Any:
        return at[method, *cell].mean()

    def of(holds: Callable[[Callable[[str], Any]], Any], functions: Iterable[str] = FUNCTIONS) -> Claim:
        cells = [(f, n) for f in functions for n in sizes]
        each = np.concatenate([holds(partial(drawn, c)) for c in cells])
        return in_most(each, all(holds(partial(on_average, c)) for c in cells))

    def above(methods: tuple[str, ...]) -> Claim:
        return of(lambda gap: np.all([gap(m) >= 0 for m in methods], axis=0))

    first, last = at[ECE, WAVES, sizes[0]], at[ECE, WAVES, sizes[-1]]
    error = math.sqrt(0.8**2 * first.var(ddof=1) / len(first) + last.var(ddof=1) / len(last))
    needed, ours = rows_needed(rows, KERNEL), rows_needed(rows, JITTERED)
    sets = min(int(r["repeats"]) for r in rows)
    return {
        FALLS: claim.every(inside(rows, m, -math.inf, 0.0) for m in PUBLISHED),
        BEST: of(lambda gap: (gap(KERNEL) < gap(DENOISER)) & (gap(KERNEL) < gap(BUCKETS))),
        CLOSER: of(lambda gap: gap(ECE) < gap(KERNEL), [f for f in FUNCTIONS if f != WAVES]),
        FAILS: claim.mean(last.mean() - 0.8 * first.mean(), error, min(len(first), len(last)), above=0.0),
        **{f"the rates of {m} lie in the range of Table 1": inside(rows, m, *RATES[m]) for m in PUBLISHED},
        "NW needs about 1e7 rows for a gap of 0.02 (calibrated scores: 5e6 to 2e7)": claim.every(
            [claim.row_attributes(*needed, sets, 5e6, None), claim.row_attributes(*needed, sets, None, 2e7)]
        ),
        **{words: above(methods) for methods, words in NEVER.items()},
        SHARPER: of(lambda gap: gap(JITTERED) < gap(KERNEL) / 3),
        "beyond the paper: a gap of 0.02 takes jittered under a hundredth of NW's rows": claim.row_attributes(
            ours[0] / needed[0], ours[1] / needed[2], ours[2] / needed[1], sets, None, 0.01
        ),
    }


def rows_needed(rows: list[Row], method: str) -> tuple[float, float, float]:
    """Rows for the gap of print, and the ends of their interval."""
    found, low, high = (rows_for(rows, method, end=end) for end in (0.0, -1.0, 1.0))
    return found, low, high


def table(rows: list[Row]) -> list[Row]:
    """Table 1 beside ours, the rows that a gap of 0.02 takes, and bounds beside true errors at the most rows."""
    out, last = [], max(r["n"] for r in rows)
    for m in (*PUBLISHED, *OURS, ECE):
        s = slopes(rows, m) if m != ECE else []
        at = {r["function"]: f"{r['bound']:.4f} / {r['truth']:.4f}" for r in rows if (r["method"], r["n"]) == (m, last)}
        out.append(
            {
                "method": m,
                "classifier": ABOUT[m],
                "theory": THEORY.get(m, ""),
                "rates, published": "[{:.3f}, {:.3f}]".format(*RATES[m]) if m in RATES else "",
                "rates, here": f"[{s[0][0]:.3f}, {s[-1][0]:.3f}]" if s else "",
                "rows for a gap of 0.02, published": "about 1e7" if m == KERNEL else "",
                "rows for a gap of 0.02, here (calibrated scores)": f"{rows_for(rows, m, CALIBRATED):.1e}" if s else "",
                **{f"bound / true error, {last:,} rows: {f}": at[f] for f in FUNCTIONS},
            }
        )
    return out


def chart(rows: list[Row]) -> Any:
    """Gap against rows, a panel for each function; the cross is the paper's."""
    import altair as alt

    label = IN_PRINT["method"]
    kept = [{k: r[k] for k in ("function", "n", "gap", "method")} for r in rows if not r["cut"]]
    scale = alt.Scale(domain=[*COLOURS, label], range=[*COLOURS.values(), "black"])
    log = alt.Scale(type="log")
    base = alt.Chart(alt.Data(values=kept + [{**IN_PRINT, "function": f} for f in FUNCTIONS])).encode(
        alt.X("n:Q", title="rows", scale=log, axis=alt.Axis(values=powers(3, 7), format="~e")),
        alt.Y("gap:Q", title="bound less true error", scale=log, axis=alt.Axis(values=powers(-5, 0), format="~g")),
        alt.Color("method:N", scale=scale, title=None),
    )
    lines = base.transform_filter(f"datum.method != '{label}'").mark_line(point=alt.OverlayMarkDef(size=25))
    cross = base.transform_filter(f"datum.method == '{label}'").mark_point(shape="cross", size=90, filled=True)
    panels = alt.layer(lines, cross).properties(width=260, height=200)
    facet = alt.Facet("function:N", sort=list(FUNCTIONS), title="event rate η(s)")
    return panels.facet(facet, columns=2).configure_legend(orient="bottom", columns=4, labelLimit=260)


EXPERIMENT = Experiment(
    items=("Figure 3", "Table 1"),
    title="Gap between upper bound and truth against the number of rows, and its rate",
    status=DIFFERS,
    difference="The four calibration functions are printed only inside the image of the figure, so these are ours: a "
    "calibrated one, a square, a parabola (Appendix H mentions one) and fast waves around the diagonal. The bounds "
    "that assume a total variation are given the true one of each function. The buckets are published in outline only; "
    "ours hold no rows out, and their rates are those of theory, which the printed ones exceed. The number of bins of "
    "the ECE is not in print; here 15, and the fourth function has exactly 15 periods, so that its gaps average out in "
    "each bin: that ECE fails there holds by construction. It hangs on the bins: at 200,000 rows, true error 0.0849, "
    "the ECE of 10 bins is 0.0277, of 14 0.0079, of 15 0.0055, of 16 0.0078, of 20 0.0285, and of 30 0.0847, which "
    "recovers the truth. Errors are of the classifier that the bound is about, so jitter, which smooths the waves, "
    "lowers the fourth from 0.0849 to 0.0172. Repeats are 64 only up to 1e4 rows, and two at the largest number, since "
    "gaps hardly vary. Rates are fitted where no bound is cut at 1, one number for each size; their intervals are "
    "those of least squares. What is said of every function and number of rows is asked of the means of each and of "
    "over 95% of all data sets drawn.",
    sizes={"tiny": 10**4, "quick": 10**6, "full": 10**7},
    run=run,
    claims=claims,
    sure=(FALLS, BEST, CLOSER, *NEVER.values(), SHARPER),
    chart=chart,
    table=table,
)
