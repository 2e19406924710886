"""Recalibration of several classes: as published, and with this library's defaults."""

from typing import Any

import numpy as np

import calibrant as cal
from calibrant.repair import Dirichlet, ScalingBinning, VariableTree
from reproduce.variable.models import Fold

NONE, BINNED, DIRICHLET, TREE = "uncalibrated", "scaling-binning", "Dirichlet calibration", "variable-based (tree)"
METHODS, VARIABLE = (NONE, BINNED, DIRICHLET, TREE), "ambiguity"


def theirs(k: int) -> Dirichlet:
    """Return Dirichlet calibration with their penalty: 0.001 times the sum of squares, for the library a mean."""
    return Dirichlet(penalty="l2", strength=0.001 * k * (k + 1))


def column(d: Any) -> Any:
    """Return the variable of interest."""
    return d.covariates.column(VARIABLE).to_numpy()


def published(method: str, f: Fold) -> Any:
    """Return the probabilities of all classes for the test rows."""
    k = f.fit.p.shape[1]
    if method == NONE:
        return f.test.p
    if method == BINNED:  # of each class by itself
        recipe = ScalingBinning(split=False)
        return np.column_stack([recipe.fit(f.fit.one_vs_rest(c))(f.test.one_vs_rest(c)).p for c in range(k)])
    if method == DIRICHLET:
        return theirs(k).fit(f.fit)(f.test).p
    from sklearn.tree import DecisionTreeClassifier  # the library's VariableTree is of two classes

    tree = DecisionTreeClassifier(max_depth=2, min_samples_leaf=0.1, random_state=0).fit(
        column(f.fit)[:, None], f.fit.y
    )
    leaf, p = [tree.apply(column(d)[:, None]) for d in (f.fit, f.test)], np.array(f.test.p)
    for at in np.unique(leaf[1]):
        here, there = (
            cal.multiclass_predictions(d.y[i], d.p[i])
            for d, i in zip((f.fit, f.test), (v == at for v in leaf), strict=True)
        )
        p[leaf[1] == at] = theirs(k).fit(here)(there).p
    return p


def shown(method: str, f: Fold, way: str) -> Any:
    """Return wrong or right, and the error that the model predicts of itself, for the test rows."""
    before = f.test.top_label()
    columns = {VARIABLE: column(f.test), "error before": 1.0 - before.p}
    if way == "as published":
        p = published(method, f)
        return cal.predictions(f.test.p.argmax(axis=1) != f.test.y, np.clip(1.0 - p.max(axis=1), 0.0, 1.0), columns)
    recipe: Any = {BINNED: ScalingBinning(), TREE: VariableTree(variables=VARIABLE)}.get(method)
    if recipe is not None:  # of the top label's confidence
        after = recipe.fit(f.fit.top_label())(before)
    else:
        after = before if method == NONE else Dirichlet().fit(f.fit)(f.test).top_label()
    return cal.predictions(1 - after.y, 1.0 - after.p, columns)


def accuracy(method: str, f: Fold) -> float:
    """Return the share of test rows whose most probable class is right, recalibrated as published."""
    return float((published(method, f).argmax(axis=1) == f.test.y).mean())
