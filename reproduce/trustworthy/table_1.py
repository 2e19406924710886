"""Local calibration after multicalibration: a constant, a logistic regression and a forest on the Housing Survey.

Three quarters of the rows train each model and its multicalibrated (MC) and proportionally multicalibrated (PMC)
versions, over household income and race; the last quarter, 12,165 rows, is tested for local calibration on the same two
(score width 0.1, gamma 25, 500 permutations, so that p is at least 0.002; for MC and PMC the authors' program also uses
score widths of 0.2 and 0.7).

Here MC is `repair.Multicalibrator(learner=Groups())` and PMC `repair.ProportionalMulticalibrator()`, fitted on scores
of the training rows that are cross-fitted, each row's from a model that did not see it. The published test has score
width 0.1 in every cell; beside its p-value stands that of this library's `local_calibration_test`. The logistic
regression is the authors', which stops after 100 iterations on features as they are, before it has converged; the
converged one stands beside it. Two lines are ours: `Multicalibrator()` with trees, and `LocalBias`. Scores are kept
within [0.001, 0.999]. One split, as in the paper. The size is the number of rows of the survey that are used; --full:
all, about four CPU minutes.
"""

import warnings
from typing import Any

import altair as alt
import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cal
from calibrant.repair import Groups, LocalBias, Multicalibrator, ProportionalMulticalibrator
from reproduce.claim import Claim
from reproduce.experiment import DIFFERS, Experiment, Row
from reproduce.trustworthy.data import housing

DRAWS, EDGE = 500, 1e-3
FAILS = "level fails, see Figure 5"
THEIRS = f"p by the published test ({FAILS})"
PUBLISHED = {
    "none": {"constant": "< 0.002", "logistic regression": "< 0.002", "forest": "< 0.002"},
    "MC": {"constant": "< 0.002", "logistic regression": "< 0.002", "forest": "0.004"},
    "PMC": {"constant": "< 0.002", "logistic regression": "< 0.002", "forest": "0.008"},
}
MODELS = {
    "constant": DummyClassifier(strategy="prior"),
    "logistic regression": LogisticRegression(),
    "regression, converged": make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": RandomForestClassifier(random_state=0),
}


def recipes(on: tuple[str, str]) -> dict[str, Any]:
    """Return the repairs by name."""
    return {
        "none": None,
        "MC": Multicalibrator(variables=on, learner=Groups()),
        "PMC": ProportionalMulticalibrator(variables=on),
        "trees (ours)": Multicalibrator(variables=on),
        "LocalBias (ours)": LocalBias(variables=on),
    }


def within(data: Any) -> Any:
    """Keep scores off 0 and 1."""
    return cal.predictions(data.y, np.clip(data.p, EDGE, 1 - EDGE), data.covariates)


def p_values(data: Any, seed: int) -> dict[str, float]:
    """Return the published p-value and statistic, and this library's p-value."""
    test = cal.detect.local_calibration_test
    as_published: dict[str, Any] = {"score_width": 0.1, "covariate_gamma": 25.0, "normalisation": "code"}
    published = cal.papers.published_local_test(data, null="permuted", draws=DRAWS, seed=seed, **as_published)
    ours = test(data, draws=499, seed=seed)
    return {"KLCE²": published.statistic, "published p": published.p_value, "our p": ours.p_value}


def run(size: int, seed: int) -> list[Row]:
    """Return the p-values of every model and repair."""
    table = housing()
    rows = np.random.default_rng(seed).permutation(len(table.y))[:size]
    every, outcome = table.x.iloc[rows], table.y[rows]
    on = list(table.tested)
    x, test_x, y, test_y = train_test_split(every, outcome, test_size=0.25, random_state=1090 + seed)
    out: list[Row] = []
    for name, model in MODELS.items():
        with warnings.catch_warnings(action="ignore"):  # that it did not converge
            two_way = cross_val_predict(model, x, y, cv=5, method="predict_proba")[:, 1]
            p = model.fit(x, y).predict_proba(test_x)[:, 1]
        fit = within(cal.predictions(y, two_way, x[on]))
        held = within(cal.predictions(test_y, p, test_x[on]))
        for repair, recipe in recipes(table.tested).items():
            found = p_values(within(recipe.fit(fit)(held)) if recipe else held, seed)
            out.append({"data": table.name, "tested": len(test_y), "model": name, "repair": repair, **found})
    return out


def by_cell(rows: list[Row]) -> dict[tuple[str, str, str], float]:
    """Return the numbers by repair, model and name."""
    return {(r["repair"], r["model"], k): r[k] for r in rows for k in ("KLCE²", "published p", "our p")}


def claims(rows: list[Row]) -> dict[str, Claim]:
    """Return what the paper says of the table: of one split, the greatest p-value against 0.05."""
    m = by_cell(rows)
    few = ("constant", "logistic regression")
    asked: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
        "no model is locally calibrated before": (("none",), tuple(PUBLISHED["none"])),
        "the constant and the regression are not after MC and PMC": (("MC", "PMC"), few),
        "the forest is not after MC and PMC": (("MC", "PMC"), ("forest",)),
    }
    return {
        words.format(reported): rejected([m[r, k, p] for r in repairs for k in models])
        for reported, (repairs, models) in asked.items()
        for words, p in (
            (f"{{}}: {THEIRS}", "published p"),
            ("beyond the paper: {} by this library's test either", "our p"),
        )
    }


def rejected(p_values: list[float]) -> Claim:
    """Return whether all p-values are at most 0.05."""
    return Claim(max(p_values) <= 0.05, value=max(p_values), bound=0.05)


def side_by_side(rows: list[Row]) -> list[Row]:
    """Return a line for each repair and model."""
    m = by_cell(rows)
    return [
        {
            "repair": repair,
            "model": model,
            f"p, published ({FAILS})": PUBLISHED.get(repair, {}).get(model),
            f"{THEIRS}": round(m[repair, model, "published p"], 3),
            "KLCE²": round(m[repair, model, "KLCE²"], 5),
            "p by this library's test": round(m[repair, model, "our p"], 3),
        }
        for repair in recipes(("", ""))
        for model in MODELS
    ]


def drawn(rows: list[Row]) -> Any:
    """Draw the p-values on a logarithmic axis; dashed: 0.05."""
    dots = [
        {**r, "p": max(r[k], 0.001), "test": t}
        for r in rows
        for k, t in (("published p", f"published test ({FAILS})"), ("our p", "this library's test"))
    ]
    axis = {"scale": alt.Scale(type="log", domain=[0.001, 1]), "axis": alt.Axis(values=[0.002, 0.05, 1])}
    x = alt.X("p:Q", title="p-value", **axis)
    panels = []
    for model in MODELS:
        points = alt.Chart(alt.Data(values=[d for d in dots if d["model"] == model])).mark_point(
            size=45, filled=True, opacity=0.6
        )
        y = alt.Y("repair:N", sort=list(recipes(("", ""))), title=None)
        points = points.encode(
            x=x,
            y=y if model == "constant" else y.axis(None),
            color=alt.Color("test:N", title=None, legend=alt.Legend(orient="bottom", labelLimit=350)),
        )
        line = alt.Chart(alt.Data(values=[{"p": 0.05}])).mark_rule(strokeDash=[4, 3]).encode(x="p:Q")
        panels.append((points + line).properties(width=130, height=130, title=model))
    return alt.hconcat(*panels)


EXPERIMENT = Experiment(
    items=("Table 1",),
    title="p-values of local calibration after multicalibration",
    status=DIFFERS,
    difference=(
        "MC and PMC are this library's, fitted on cross-fitted scores; the authors use pmcboost, which fits them on "
        "scores of the rows that trained the model. One score width in every cell, where their program changes it from "
        "cell to cell. The published result for the regression hangs on its not having converged, see the line of the "
        "one that has. The forest after MC has p 0.048 by the published test on this one split and 0.55 by this "
        "library's, where the print has 0.004: its claim hangs on a test that does not hold its level."
    ),
    sizes={"tiny": 1000, "quick": 20_000, "full": 48_660},
    run=run,
    claims=claims,
    chart=drawn,
    table=side_by_side,
)
