"""COMPAS: classical calibration does not make a model locally calibrated.

A random forest (the defaults of scikit-learn, as in the authors' program) is trained on a third of the defendants to
predict recidivism; a second third fits Platt scaling, temperature scaling, isotonic regression or Bayesian binning; the
last third is judged: Brier score, ECE and MCE in 20 equal-width bins, and KLCE^2 given age, gender and race with its
p-value (score width 0.1, gamma 0.5 on age in decades, the program's normaliser and permutation, 1,000 draws).

Here beside them: the p-value of this library's `local_calibration_test`, and a repair that looks at age, gender and
race, `repair.LocalBias`. Scores are kept within [0.001, 0.999], for no probability of 0 or 1 survives a test. The size
is the number of random splits, where the paper has one; --full: 30, about three CPU minutes.
"""

from collections.abc import Iterable
from itertools import product
from typing import Any

import altair as alt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

import calibrant as cal
from calibrant.repair import BBQ, Isotonic, LocalBias, Platt, Temperature
from reproduce import claim
from reproduce.claim import Claim
from reproduce.experiment import DIFFERS, Experiment, Row
from reproduce.trustworthy.data import compas, thirds

MEASURES = "Brier score", "ECE", "MCE", "KLCE²", "published p", "p of this library's test"
PUBLISHED = {
    "no calibration": (0.262, 0.160, 0.269, 0.032),
    "Platt": (0.231, 0.022, 0.037, 0.003),
    "temperature": (0.241, 0.091, 0.207, 0.005),
    "isotonic": (0.231, 0.018, 0.046, 0.002),
    "BBQ": (0.232, 0.009, 0.027, 0.003),
}
TESTED = ("age", "male", "white")
RECIPES = {
    "no calibration": None,
    "Platt": Platt(scale="raw"),
    "temperature": Temperature(),
    "isotonic": Isotonic(fewest=1),
    "BBQ": BBQ(),
    "LocalBias (ours)": LocalBias(variables=TESTED),
}
EDGE = 1e-3
THEIRS = "the published test (level fails, see Figure 5)"
TITLES = {"published p": f"p by {THEIRS}", "p of this library's test": "p by this library's test"}
CLASSICAL = tuple(PUBLISHED)[1:]


def judged(data: Any, draws: int, seed: int) -> tuple[float, ...]:
    """Return the measures of a repaired model."""
    test = cal.detect.local_calibration_test
    published = cal.papers.published_local_test(
        data,
        null="permuted",
        score_width=0.1,
        covariate_gamma=0.5,
        normalisation="code",
        draws=draws,
        seed=seed,
    )
    bins: dict[str, Any] = {"bins": 20, "strategy": "uniform"}
    return (
        cal.measure.brier(data).value,
        cal.measure.ece(data, **bins).value,
        cal.measure.max_calibration_error(data, **bins).value,
        published.statistic,
        published.p_value,
        test(data, draws=draws, seed=seed).p_value,
    )


def run(size: int, seed: int) -> list[Row]:
    """Return the measures of every repair on every split."""
    x, y = compas()
    out: list[Row] = []
    for split in range(size):
        train, fit, held = thirds(len(y), seed, split)
        model = RandomForestClassifier(random_state=split).fit(x.iloc[train], y[train])
        p = np.clip(model.predict_proba(x)[:, 1], EDGE, 1 - EDGE)
        parts: list[Any] = [cal.predictions(y[r], p[r], x[list(TESTED)].iloc[r]) for r in (fit, held)]
        one, other = parts
        for name, recipe in RECIPES.items():
            data = recipe.fit(one)(other) if recipe else other
            data = cal.predictions(data.y, np.clip(data.p, EDGE, 1 - EDGE), data.covariates)
            found = judged(data, 1000 if size > 1 else 199, split)
            out.append({"repair": name, "split": split, **dict(zip(MEASURES, found, strict=True))})
    return out


def middle(rows: list[Row], repair: str, measure: str) -> float:
    """Return the median over splits of a p-value, the mean of another measure."""
    values = [r[measure] for r in rows if r["repair"] == repair]
    return float(np.median(values) if measure.endswith((" p", "test")) else np.mean(values))


def values(rows: list[Row], repair: str, measure: str) -> Any:
    """Return a measure of each split."""
    return np.array([r[measure] for r in sorted(rows, key=lambda r: r["split"]) if r["repair"] == repair])


def mostly(rows: list[Row], repairs: Iterable[str], measure: str, above: bool = False) -> Claim:
    """Return whether p is at most 0.05 in most splits (or above it), for each of these repairs."""
    kept = [values(rows, r, measure) for r in repairs]
    hits = [int(((v > 0.05) if above else (v <= 0.05)).sum()) for v in kept]
    return claim.every(claim.share(k, len(v), above=0.5, looks=len(kept)) for k, v in zip(hits, kept, strict=True))


def lower(rows: list[Row], pairs: list[tuple[str, str]], measures: tuple[str, ...]) -> Claim:
    """Return whether the first of each pair has the lower mean of every measure: differences on the same splits."""
    looks, parts = len(pairs) * len(measures), []
    for (a, b), measure in product(pairs, measures):
        gap = values(rows, b, measure) - values(rows, a, measure)
        error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else 0.0
        parts.append(claim.mean(float(gap.mean()), error, len(gap), above=0.0, looks=looks))
    return claim.every(parts)


def claims(rows: list[Row]) -> dict[str, Claim]:
    """Return what the paper says of the figure; means and shares are over random splits of one data set."""
    before, ours = "no calibration", "LocalBias (ours)"
    theirs, own = "published p", "p of this library's test"
    error = values(rows, before, "ECE")
    wide = float(error.std(ddof=1) / np.sqrt(len(error))) if len(error) > 1 else 0.0
    return {
        f"the forest is miscalibrated, globally and locally by {THEIRS}": claim.every(
            [claim.mean(float(error.mean()), wide, len(error), above=0.05), mostly(rows, [before], theirs)]
        ),
        "every classical repair lowers the mean Brier score, ECE and KLCE²": lower(
            rows, [(r, before) for r in CLASSICAL], ("Brier score", "ECE", "KLCE²")
        ),
        "temperature scaling lowers the mean ECE least": lower(
            rows, [(r, "temperature") for r in CLASSICAL if r != "temperature"], ("ECE",)
        ),
        f"no classical repair makes it locally calibrated: p at most 0.05 in most splits by {THEIRS}": mostly(
            rows, CLASSICAL, theirs
        ),
        "beyond the paper: no classical repair does by this library's test either": mostly(rows, CLASSICAL, own),
        "beyond the paper: LocalBias has a lower mean KLCE² than every classical repair": lower(
            rows, [(ours, r) for r in CLASSICAL], ("KLCE²",)
        ),
        "beyond the paper: LocalBias has a p above 0.05 in most splits by this library's test": mostly(
            rows, [ours], own, above=True
        ),
    }


def side_by_side(rows: list[Row]) -> list[Row]:
    """Return a line for each repair."""
    lines = []
    for repair in RECIPES:
        line: Row = {"repair": repair}
        for i, measure in enumerate(MEASURES):
            if i < 4:
                line[f"{measure}, published (authors' program)"] = PUBLISHED.get(repair, (None,) * 4)[i]
            line[f"{TITLES.get(measure, measure)}, {'mean' if i < 4 else 'median'} over splits"] = round(
                middle(rows, repair, measure), 4 if i == 3 else 3
            )
        below = [r["published p"] <= 0.05 for r in rows if r["repair"] == repair]
        line[f"splits with p at most 0.05 by {THEIRS}"] = f"{sum(below)} of {len(below)}"
        lines.append(line)
    return lines


def drawn(rows: list[Row]) -> Any:
    """Draw every measure by repair: a dot for each split, a diamond as the authors' program prints it."""
    panels = []
    y = alt.Y("repair:N", sort=list(RECIPES), title=None)
    for i, measure in enumerate(MEASURES):
        dots = [{"repair": r["repair"], "x": r[measure], "of": "here, each split"} for r in rows]
        dots += [{"repair": k, "x": v[i], "of": "published"} for k, v in PUBLISHED.items()] if i < 4 else []
        mark = {"of": alt.Scale(domain=["here, each split", "published"], range=["circle", "diamond"])}
        colors = alt.Scale(domain=["here, each split", "published"], range=["#4c78a8", "#e45756"])
        chart = alt.Chart(alt.Data(values=dots)).mark_point(size=40, filled=True, opacity=0.7)
        chart = chart.encode(
            x=alt.X(
                "x:Q",
                title=TITLES.get(measure, measure).replace(" (level", "; level").rstrip(")"),
                axis=alt.Axis(tickCount=3),
            ),
            y=y if i % 3 == 0 else y.axis(None),
            shape=alt.Shape("of:N", title=None, scale=mark["of"], legend=alt.Legend(orient="bottom")),
            color=alt.Color("of:N", title=None, scale=colors, legend=alt.Legend(orient="bottom")),
        )
        panels.append(chart.properties(width=170, height=120))
    return alt.vconcat(alt.hconcat(*panels[:3]), alt.hconcat(*panels[3:]))


EXPERIMENT = Experiment(
    items=("Figure 4",),
    title="COMPAS before and after four classical repairs",
    status=DIFFERS,
    difference=(
        "The print has no numbers; those beside ours are printed by the authors' program. The print's 2,714 defendants "
        "are 7,214 in the program, with any later offence as outcome; the public file has the 6,167 of ProPublica's "
        "own filter, and two-year recidivism. Its race is Caucasian or not, the paper's African-American or not. "
        "Medians of p and means of the rest over random splits stand beside the paper's one; by the published test "
        "LocalBias is still rejected in 5 of the 10 splits kept here. Temperature's ECE, 0.043 against 0.091, hangs on "
        "where a forest's scores of 0 and 1 are clipped: at 1e-12 in place of our 0.001 it is 0.084 on the same "
        "splits. Isotonic's MCE, 0.308 against 0.046, is the largest gap of 20 bins, mostly one of a few rows (over "
        "bins of 50 rows or more 0.097); why the one published split has so little is unexplained."
    ),
    sizes={"tiny": 1, "quick": 10, "full": 30},
    run=run,
    claims=claims,
    sure=(f"the forest is miscalibrated, globally and locally by {THEIRS}",),
    chart=drawn,
    table=side_by_side,
)
