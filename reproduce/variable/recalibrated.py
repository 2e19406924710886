"""The paper's recalibrations and its two errors, each as published and as this library does it by default."""

from dataclasses import replace
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.repair import AugmentedBeta, Beta, Platt, ScalingBinning, VariableTree
from reproduce.experiment import Row
from reproduce.variable.models import Fold

WAYS, BEYOND = ("as published", "default"), "beyond the paper: "
NONE, BINNED, PLATT, BETA = "uncalibrated", "scaling-binning", "Platt scaling", "beta calibration"
TREE, AUGMENTED = "variable-based (tree)", "variable-based (augmented beta)"
METHODS = (NONE, BINNED, PLATT, BETA, TREE, AUGMENTED)


def recipes(variable: str, depth: int = 2, leaf: float = 0.1) -> dict[str, tuple[Any, Any]]:
    """Recipes of the paper: as published, and with this library's defaults."""
    tree = VariableTree(variables=variable, depth=depth, leaf=leaf, paper=True)
    return {
        NONE: (None, None),
        BINNED: (ScalingBinning(scale="log ratio", ridge=1e-10, split=False, fewest=1), ScalingBinning()),
        PLATT: (Platt(scale="raw", ridge=1.0), Platt()),
        BETA: (replace(tree, depth=0), Beta()),
        TREE: (tree, VariableTree(variables=variable)),
        AUGMENTED: (AugmentedBeta(variables=variable, paper=True), AugmentedBeta(variables=variable)),
    }


def worded(claim: str, way: str, data: str = "") -> str:
    """Say of what a claim is; the paper made none of this library's default way."""
    return ("" if way == WAYS[0] else BEYOND) + f"{claim} ({data + ', ' if data else ''}{way})"


def other_class(d: Any, zero: Any) -> Any:
    """Return the same rows with class 0 as the outcome."""
    return cal.predictions(1 - d.y, zero, {c: d.covariates.column(c).to_numpy() for c in d.covariates.column_names})


def after(recipe: Any, fold: Fold, way: str) -> tuple[Any, Any]:
    """Return the probabilities of the classes 1 and 0 that are shown for the test rows."""
    if recipe is None:
        return fold.test.p, fold.zero_test
    p = recipe.fit(fold.fit)(fold.test).p
    if isinstance(recipe, ScalingBinning) and way == "as published":  # theirs is fitted for each class
        mapped = recipe.fit(other_class(fold.fit, fold.zero_fit))
        return p, mapped(other_class(fold.test, fold.zero_test)).p
    return p, 1.0 - p


def errors(recipe: Any, folds: list[Fold], way: str) -> Any:
    """Return wrong or right, and the error that the model predicts of itself, for the test rows of all folds.

    As published, right and wrong stay those of the class before recalibration; by default the class follows from the
    probability.
    """
    wrong, predicted, columns = [], [], []
    for f in folds:
        one, zero = after(recipe, f, way)
        stated = np.maximum(f.test.p, f.zero_test)
        decides = f.test.p > f.zero_test if way == "as published" else one >= 0.5
        wrong.append(decides != f.test.y)
        predicted.append(np.clip(1.0 - np.maximum(one, zero), 0.0, 1.0))
        columns.append({c: f.test.covariates.column(c).to_numpy() for c in f.test.covariates.column_names})
        columns[-1]["error before"] = 1.0 - stated
    joined = {c: np.concatenate([v[c] for v in columns]) for c in columns[0]}
    return cal.predictions(np.concatenate(wrong), np.concatenate(predicted), joined)


def measured(shown: Any, variable: str, way: str) -> dict[str, float]:
    """Return ECE and VECE in percent: published in bins of the score before; by default its own, free of noise."""
    if way == "as published":
        ece = cal.measure.vece(shown, "error before", paper=True, draws=99).value
        vece = cal.measure.vece(shown, variable, paper=True, draws=99).value
    else:
        ece = cal.measure.ece(shown, bins=10, debiased=True).value
        vece = cal.measure.vece(shown, variable, draws=99).value
    return {"ECE": 100 * ece, "VECE": 100 * vece}


def compared(
    name: str,
    rounds: list[list[Fold]],
    variable: str,
    depth: int = 2,
    leaf: float = 0.1,
    only: tuple[str, ...] = METHODS,
) -> list[Row]:
    """Measure every recalibration, or `only` some, both ways; means over the rounds."""
    rows: list[Row] = []
    for method in only:
        for way, recipe in zip(WAYS, recipes(variable, depth, leaf)[method], strict=True):
            found = [measured(errors(recipe, folds, way), variable, way) for folds in rounds]
            rows += [
                {"data": name, "method": method, "way": way, "error": e, "value": float(np.mean([f[e] for f in found]))}
                for e in ("ECE", "VECE")
            ]
    return rows


def by_variable(
    name: str,
    rounds: list[list[Fold]],
    variable: str,
    others: tuple[str, ...],
    score: str,
    *,
    depth: int = 2,
    leaf: float = 0.1,
) -> list[Row]:
    """Measure the VECE of several variables: uncalibrated, after a map of the score, and after a tree of `variable`."""
    pairs, rows = recipes(variable, depth, leaf), []
    for method in (NONE, score, TREE) if rounds else ():
        for way, recipe in zip(WAYS, pairs[method], strict=True):
            shown = [errors(recipe, folds, way) for folds in rounds]
            rows += [
                {
                    "data": name,
                    "method": method,
                    "way": way,
                    "error": "VECE",
                    "variable": v,
                    "value": float(np.mean([measured(s, v, way)["VECE"] for s in shown])),
                }
                for v in others
            ]
    return rows
