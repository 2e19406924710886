"""Recalibration of several classes: as published, and with this library's defaults."""

from typing import Any

import numpy as np

import calibrant as cal
from calibrant.repair import Dirichlet, ScalingBinning, VariableTree
from reproduce import sources
from reproduce.variable.models import Fold

NONE, BINNED, DIRICHLET, TREE = "uncalibrated", "scaling-binning", "Dirichlet calibration", "variable-based (tree)"
METHODS = (NONE, BINNED, DIRICHLET, TREE)
CIFAR, DIGITS = "CIFAR-10H, the authors' predictions", "digits"
TIME, AMBIGUITY = "reaction time", "ambiguity"
DEPTH = {TIME: 3, AMBIGUITY: 2}  # of the authors' program, of their text


def authors(deal: tuple[int, int] | None = None) -> list[Fold]:
    """Return the authors' predictions of CIFAR-10H, dealt as theirs, or at random by the seed `deal`.

    There are 2,000 to calibrate and 7,767 to test; nothing if the file is not here.
    """
    import pandas as pd

    try:
        table = pd.read_parquet(sources.shared("cifar_out.parquet"))
    except sources.Missing:
        return []
    draw = np.random.RandomState(0) if deal is None else np.random.default_rng([31, *deal])  # 0: theirs
    order = draw.permutation(len(table))
    parts = [table.iloc[order[:2_000]], table.iloc[np.sort(order[2_000:])]]
    made = [
        cal.multiclass_predictions(
            t["actual"].to_numpy(), t[[f"prob_{k}" for k in range(10)]].to_numpy(), {TIME: t["median_rt"].to_numpy()}
        )
        for t in parts
    ]
    return [Fold(*made, *(1.0 - d.p for d in made))]


def variable_of(f: Fold) -> str:
    """Return the name of the variable of interest."""
    return str(f.test.covariates.column_names[0])


def published(method: str, f: Fold) -> Any:
    """Return the probabilities of all classes for the test rows."""
    variable = variable_of(f)
    if method == NONE:
        return f.test.p
    if method == BINNED:  # of each class by itself
        recipe, classes = ScalingBinning(scale="log ratio", ridge=1e-10, split=False, fewest=1), range(f.fit.p.shape[1])
        return np.column_stack([recipe.fit(f.fit.one_vs_rest(c))(f.test.one_vs_rest(c)).p for c in classes])
    if method == DIRICHLET:
        return Dirichlet(penalty="published", strength=0.001).fit(f.fit)(f.test).p
    return VariableTree(variables=variable, depth=DEPTH[variable], leaf=0.1, paper=True).fit(f.fit)(f.test).p


def shown(method: str, f: Fold, way: str) -> Any:
    """Return wrong or right, and the error that the model predicts of itself, for the test rows."""
    before, variable = f.test.top_label(), variable_of(f)
    columns = {variable: f.test.covariates.column(variable).to_numpy(), "error before": 1.0 - before.p}
    if way == "as published":
        p = published(method, f)
        return cal.predictions(f.test.p.argmax(axis=1) != f.test.y, np.clip(1.0 - p.max(axis=1), 0.0, 1.0), columns)
    recipe: Any = {DIRICHLET: Dirichlet(), TREE: VariableTree(variables=variable)}.get(method)
    if recipe is not None:  # of all classes
        after = recipe.fit(f.fit)(f.test).top_label()
    else:  # of the top label's confidence
        after = before if method == NONE else ScalingBinning().fit(f.fit.top_label())(before)
    return cal.predictions(1 - after.y, 1.0 - after.p, columns)


def accuracy(method: str, f: Fold) -> float:
    """Return the share of test rows whose most probable class is right, recalibrated as published."""
    return float((published(method, f).argmax(axis=1) == f.test.y).mean())
