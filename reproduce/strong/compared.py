"""The tests that the figures compare: the six of the paper's Table 1, with our residual models or with the paper's."""

from collections.abc import Callable, Iterable, Sequence
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
PRINTED, THEIRS = "strong, as printed", ", paper's models"


def requested(test: Callable[..., Any], **settings: Any) -> Test:
    """Return a test as it is asked here."""
    return lambda d, t, r, a: test(d, tolerance=t, seed=r, alternative=a, **settings)


def comparators(words: str = "", detector: str = "default", folds: int = 5) -> dict[str, Test]:
    """Tests with these residual models, held ("fixed") where a test cross-fits them, as in the paper."""
    held: dict[str, Any] = {"null": "fixed", "detector": detector, "folds": folds}
    return {
        f"multicalibration score{words}": requested(cal.papers.multicalibration_score_test, detector=detector),
        f"adaptive chi-square, 2 groups{words}": requested(cal.papers.adaptive_chi_square_test, **held),
        f"adaptive chi-square, 10 groups{words}": requested(cal.papers.adaptive_chi_square_test, bins=10, **held),
        f"adaptive score{words}": requested(cal.papers.adaptive_score_test, **held),
    }


TESTS: dict[str, Test] = {
    ALONG_SCORE[0]: requested(D.hosmer_lemeshow_test, bins=2),
    ALONG_SCORE[1]: requested(D.hosmer_lemeshow_test, bins=10),
    ALONG_SCORE[2]: requested(D.score_test),
    **comparators(),
    STRONG[0]: requested(D.strong_calibration_test, null="fixed", detector="authors"),
    STRONG[1]: requested(D.strong_calibration_test, null="fixed"),
}
# The paper's own: its residual models in its four folds; "authors" is the detector of its program.
PAPER = {
    **comparators(THEIRS, detector="authors", folds=4),
    PRINTED: requested(D.strong_calibration_test, null="fixed", detector="paper", folds=4),
    STRONG[0]: requested(D.strong_calibration_test, null="fixed", detector="authors", folds=4),
}


def shares(
    make: Callable[[int], Any], replicates: range, tests: dict[str, Test], tolerances: Any, sides: Any = ("two-sided",)
) -> list[Any]:
    """Shares of replicates in which each test rejects at 0.10, and in which it does: a 1 or 0 for each.

    `make` gives the predictions of a replicate.
    """
    found: dict[Any, str] = dict.fromkeys(product(tests, tolerances, sides), "")
    for r in replicates:
        data = make(r)
        for k in found:
            found[k] += str(int(tests[k[0]](data, k[1], r, k[2]).p_value <= ALPHA))
    return [
        {"test": t, "tolerance": delta, "side": a, "value": v.count("1") / len(v), "replicates": len(v), "found": v}
        for (t, delta, a), v in found.items()
    ]


Cell = tuple[Any, ...]  # who is audited, on how many rows, and the tolerance or the side


class Found:
    """Which data sets each test finds, by setting: tests are compared on the same data sets."""

    def __init__(self, rows: list[Any], setting: tuple[str, str, str]) -> None:
        power = [r for r in rows if r["what"] == "power"]
        self.error_shown = {(r["test"], *(r[k] for k in setting)): r["found"] for r in power}
        self.tests = list(dict.fromkeys(k[0] for k in self.error_shown))

    def settings(self, *tests: str, kind: str | None = None) -> list[Cell]:
        """Return the settings, of one audited model or of all, in which all of these tests were run."""
        cells = dict.fromkeys(k[1:] for k in self.error_shown if kind in (None, k[1]))
        return [c for c in cells if all((t, *c) in self.error_shown for t in tests)]

    def average(self, test: str, cells: list[Cell]) -> Any:
        """Return of each data set the share of some settings in which a test finds it."""
        return np.mean([[int(v) for v in self.error_shown[test, *c]] for c in cells], axis=0)

    def everywhere(self, one: str, others: Iterable[str]) -> Claim:
        """Tell whether, in each setting, one test finds what others do not oftener than they find what it does not."""
        pairs = [(self.error_shown[one, *c], self.error_shown[o, *c]) for o in others for c in self.settings(one, o)]
        counts = [list(zip(mine, theirs, strict=True)) for mine, theirs in pairs]
        return claim.every(
            claim.oftener(k.count(("1", "0")), k.count(("0", "1")), len(k), looks=len(pairs)) for k in counts
        )

    def ahead(self, one: str, others: Sequence[str]) -> Claim:
        """Tell whether one test finds more than each of others, on average over the settings of both."""
        gains = [self.average(one, c) - self.average(o, c) for o in others for c in [self.settings(one, o)]]
        return claim.every(above_zero(g, len(others)) for g in gains)


def above_zero(values: Any, looks: int) -> Claim:
    """Tell whether the mean of a number of each data set is above zero."""
    error = float(np.std(values, ddof=min(len(values) - 1, 1)) / len(values) ** 0.5)
    return claim.mean(float(np.mean(values)), error, len(values), above=0.0, looks=looks)


COLOURS = (
    *("#cccccc", "#aaaaaa", "#777777", "#e6b800", "#9ecae1", "#4292c6", "#31a354", "#fc9272", "#cb181d"),
    *("#f6e08a", "#c6dbef", "#6baed6", "#a1d99b", "#ff8c5a"),
)


def power_lines(points: list[Any], column: str, title: str) -> Any:
    """Power against rows: a line for each test, a panel for each value of a column."""
    import altair as alt

    points = [r for r in points if r["what"] == "power"]
    known = dict(zip([*TESTS, *(t for t in PAPER if t not in TESTS)], COLOURS, strict=True))
    names = sorted(dict.fromkeys(r["test"] for r in points), key=[*known, "strong, split"].index)
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
