"""Errors along a variable, and reliability diagrams, as the rows of a chart."""

from typing import Any

import numpy as np

import calibrant as cal
from reproduce.experiment import Row
from reproduce.variable.models import Fold
from reproduce.variable.recalibrated import errors, recipes


def curves(
    name: str,
    folds: list[Fold],
    variable: str,
    methods: tuple[str, ...],
    *,
    depth: int = 2,
    leaf: float = 0.1,
    span: float = 0.85,
) -> list[Row]:
    """Smooth error and predicted error along the variable, and the accuracy along the confidence, as published."""
    pairs, rows = recipes(variable, depth, leaf), []
    for method in methods:
        shown = errors(pairs[method][0], folds, "as published")
        rows += drawn(shown, variable, {"data": name, "method": method}, span)
    return rows


def drawn(shown: Any, variable: str, about: Row, span: float = 0.85) -> list[Row]:
    """Return the rows of two charts: along the variable, and along the score."""
    try:
        c = cal.diagnose.variable_curve(shown, variable, span=span, grid=41, draws=199)
    except cal.errors.NotComputable:  # the model expects next to no errors of so few people
        return diagram(shown, about)
    x, predicted, observed, low, high = (c.columns[k] for k in ("x", "predicted", "observed", "low", "high"))
    rows: list[Row] = [
        {
            **about,
            "kind": "variable",
            "x": a,
            "predicted": p,
            "observed": o,
            "low": p + lo,
            "high": p + hi,
            "worst": c.settings["worst_gap"],
            "p_value": c.settings["p_value"],
        }
        for a, p, o, lo, hi in zip(x, predicted, observed, low, high, strict=True)
    ]
    return rows + diagram(shown, about)


def diagram(shown: Any, about: Row) -> list[Row]:
    """Return the paper's reliability diagram: confidence and accuracy of ten bins of equally many rows."""
    parts = np.array_split(np.argsort(shown.p, kind="stable")[::-1], 10)
    return [
        {**about, "kind": "score", "x": 1.0 - shown.p[i].mean(), "observed": 1.0 - shown.y[i].mean()} for i in parts
    ]
