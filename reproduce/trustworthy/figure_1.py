"""Owners' mean age: a model that is better on accuracy, Brier score and ECE can be worse for inference.

American Housing Survey. The mean age of home owners is inferred by weighting people with their probability to own.
Model 1 is a logistic regression on everything but age; model 2 one on age, metropolitan area, household size, division
and race only. Half of the rows train, the others are judged, 200 times. The print does not name the features; these are
those of the authors' program (github.com/ritwikvashistha/I-trustworthy).

Here the estimator is `measure.inferred_mean`; its bias is against the labels of the same rows, with an interval in each
split. A third line repairs model 1 along age (`repair.AugmentedLogistic`), fitted on half of the judged rows and judged
on the other half. The size is the number of splits; --full: 200, about 25 CPU seconds.
"""

from typing import Any

import numpy as np

import calibrant as cal
from reproduce.claim import Claim
from reproduce.experiment import REPRODUCED, Experiment, Row
from reproduce.trustworthy.data import Table
from reproduce.trustworthy.inference import (
    RIGHT,
    SCORES,
    WRONG,
    better,
    biased,
    drawn,
    of_means,
    over_splits,
    regression,
    side_by_side,
    summary,
    unbiased,
)


def models(table: Table) -> dict[str, tuple[list[str], Any]]:
    """Return the two models with what they see."""
    return {
        "model 1": ([c for c in table.x if c != table.age], regression()),
        "model 2": (list(table.few), regression()),
    }


def requested(table: Table) -> tuple[str, Any]:
    """Return what is inferred: the mean age of the owners."""
    return table.age, lambda data: cal.measure.inferred_mean(data, table.age)


def run(size: int, seed: int) -> list[Row]:
    """Return means, deviations and histograms over splits."""
    return over_splits(size, seed, 0.5, models, requested)


def claims(rows: list[Row]) -> dict[str, Claim]:
    """Return what the paper says of the figure."""
    sign = {m: float(np.sign(v["bias"][0])) for m, v in summary(rows).items()}
    return {
        **{f"model 1 is better than model 2 on {m}": better(rows, "model 1", "model 2", m) for m in SCORES},
        f"model 1 infers a wrong mean age: {WRONG}": biased(rows, "model 1"),
        f"model 2 infers it without bias: {RIGHT}": unbiased(rows, "model 2"),
        "model 2's bias is less than a third of model 1's": of_means(
            rows, "bias", {"model 1": sign["model 1"], "model 2": -3 * sign["model 2"]}, above=0.0
        ),
        f"beyond the paper: repaired along age, model 1 infers without bias: {RIGHT}": unbiased(
            rows, "model 1, repaired"
        ),
    }


EXPERIMENT = Experiment(
    items=("Figure 1",),
    title="owners' mean age: better on accuracy, Brier score and ECE, worse for inference",
    status=REPRODUCED,
    difference=(
        "The print has no numbers, so the shape is compared. Features are standardised before the regression, so that "
        "it converges. The repaired model and the intervals are ours; they are about the trained model, which has a "
        "small bias of its own from its training half, so that of a model without bias on average they exclude 0 in "
        "one split of six, not of twenty."
    ),
    sizes={"tiny": 1, "quick": 40, "full": 200},
    run=run,
    claims=claims,
    sure=("model 1 is better than model 2 on Brier score", f"model 1 infers a wrong mean age: {WRONG}"),
    chart=lambda rows: drawn(rows, "inferred mean age"),
    table=side_by_side,
)
