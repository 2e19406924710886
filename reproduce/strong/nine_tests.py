"""The nine tests that the figures compare: the six of the paper's Table 1, of which three come in two forms."""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np

import calibrant as cal
from reproduce import claim
from reproduce.claim import Claim

D, ALPHA = cal.detect, 0.1
Test = Callable[[Any, float, int, Any], Any]  # predictions, tolerance, seed, alternative
ALONG_SCORE = ("Hosmer-Lemeshow, 2 groups", "Hosmer-Lemeshow, 10 groups", "score along the logit (Platt)")
STRONG = ("strong, authors", "strong, default")
# Models are held ("fixed") where a test cross-fits them, as in the paper.
TESTS: dict[str, Test] = {
    ALONG_SCORE[0]: lambda d, t, r, a: D.hosmer_lemeshow_test(d, bins=2, tolerance=t, seed=r, alternative=a),
    ALONG_SCORE[1]: lambda d, t, r, a: D.hosmer_lemeshow_test(d, bins=10, tolerance=t, seed=r, alternative=a),
    ALONG_SCORE[2]: lambda d, t, r, a: D.score_test(d, tolerance=t, seed=r, alternative=a),
    "multicalibration score": lambda d, t, r, a: D.multicalibration_score_test(d, tolerance=t, seed=r, alternative=a),
    "adaptive chi-square, 2 groups": lambda d, t, r, a: D.adaptive_chi_square_test(
        d, tolerance=t, seed=r, alternative=a, null="fixed"
    ),
    "adaptive chi-square, 10 groups": lambda d, t, r, a: D.adaptive_chi_square_test(
        d, tolerance=t, seed=r, alternative=a, null="fixed", bins=10
    ),
    "adaptive score": lambda d, t, r, a: D.adaptive_score_test(d, tolerance=t, seed=r, alternative=a, null="fixed"),
    "strong, authors": lambda d, t, r, a: D.strong_calibration_test(
        d, tolerance=t, seed=r, alternative=a, null="fixed", detector="authors"
    ),
    "strong, default": lambda d, t, r, a: D.strong_calibration_test(
        d, tolerance=t, seed=r, alternative=a, null="fixed"
    ),
}


def shares(
    make: Callable[[int], Any], replicates: range, tests: dict[str, Test], tolerances: Any, sides: Any = ("two-sided",)
) -> list[Any]:
    """Shares of replicates in which each test rejects at 0.10; `make` gives the predictions of a replicate."""
    asked, hits = list(product(tests, tolerances, sides)), Counter[Any]()
    for r in replicates:
        data = make(r)
        hits.update(k for k in asked if tests[k[0]](data, k[1], r, k[2]).p_value <= ALPHA)
    row = {"replicates": len(replicates)}
    return [{"test": k[0], "tolerance": k[1], "side": k[2], "value": hits[k] / len(replicates), **row} for k in asked]


def averaged(parts: list[Claim]) -> Claim:
    """Tell whether one test finds more than another on average, from intervals that hold at all settings at once."""
    value, low, high = (float(np.mean([getattr(c, k) for c in parts])) for k in ("value", "low", "high"))
    return claim.beside(value, low, high, parts[0].sets, 0.0, None)


COLOURS = ("#cccccc", "#aaaaaa", "#777777", "#e6b800", "#9ecae1", "#4292c6", "#31a354", "#fc9272", "#cb181d")


def power_lines(points: list[Any], column: str, title: str) -> Any:
    """Power against rows: a line for each test, a panel for each value of a column."""
    import altair as alt

    points = [r for r in points if r["what"] == "power"]
    known = dict(zip(TESTS, COLOURS, strict=True))
    names = sorted(dict.fromkeys(r["test"] for r in points), key=[*TESTS, "strong, split"].index)
    scale = alt.Scale(domain=names, range=[known.get(t, "#4a0e4e") for t in names])
    color = alt.Color("test:N", title=None, scale=scale, legend=alt.Legend(columns=3, orient="bottom", labelLimit=240))
    lines = (
        alt.Chart()
        .mark_line(point=alt.OverlayMarkDef(size=20), clip=True)
        .encode(
            x=alt.X(
                "rows:Q",
                title="rows audited",
                axis=alt.Axis(values=sorted({r["rows"] for r in points})),
                scale=alt.Scale(type="log", nice=False),
            ),
            y=alt.Y("value:Q", title="share found", scale=alt.Scale(domain=[0, 1])),
            color=color,
        )
        .properties(width=140, height=130)
    )
    return lines.facet(data=alt.InlineData(values=points), column=alt.Column(f"{column}:N", title=title))


def importance_bars(rows: list[Any]) -> Any:
    """Loss of the statistic when each variable is shuffled, the largest first."""
    import altair as alt

    bars = alt.Chart(alt.InlineData(values=[r for r in rows if r["what"] == "importance"])).mark_bar()
    at = {"x": alt.X("value:Q", title="loss when shuffled"), "y": alt.Y("variable:N", sort="-x", title=None)}
    return bars.encode(**at).properties(width=90, height=140)


def stacked(charts: Iterable[Any]) -> Any:
    """One chart above the other."""
    import altair as alt

    return alt.vconcat(*charts)
