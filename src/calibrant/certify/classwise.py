"""The class-wise error of a classifier over several classes: one certificate for the sum over all of them."""

from __future__ import annotations

import numpy as np

from calibrant.arguments import checked_seed, checked_steps
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import MulticlassPredictions
from calibrant.data.sketches.rows import cluster_ids
from calibrant.errors import BadInput
from calibrant.results import Estimate, Interval, Side
from calibrant.stats.clusters.classes import Classes, largest
from calibrant.stats.clusters.clusters import Clusters
from calibrant.views.population import IN_STEPS, INDEPENDENT, WHOLE, shares
from calibrant.views.sample import assumed, cluster_totals, reported


@takes_arrays
def classwise(
    data: MulticlassPredictions, *, steps: int = 100, alpha: float = 0.05, side: Side = "two-sided", seed: int = 0
) -> Estimate:
    r"""Certify the class-wise calibration error: how far the probabilities of all classes are off, added up.

    Estimand: ``sum_k E|p_k - P(Y = k | p_k)|``, from 0 to 2 (of rounded probabilities up to ``2 + K / (2 steps)``, at
    most 3): in probability units, added up over the classes. Of two classes it is twice the calibration error.

    Parameters
    ----------
    data : MulticlassPredictions
    steps : int from 2 to 1024
        Rounding steps of every class's probability, halves up: the upper end is about probabilities that are shown so.
    alpha : float in (0, 0.5]
        Probability, at most, that the interval misses the truth.
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Deals rows, or clusters, into blocks; used by the lower end only, of clusters by both.

    Returns
    -------
    Estimate
        ``interval.low`` is about the raw probabilities, ``interval.high`` about those rounded. ``value`` is the
        plug-in of the rounded ones less what noise adds to each level's square, moved into the interval; of many
        classes of few rows it is too high. Smaller is better.

    Notes
    -----
    **Assumes.** Independent rows, or independent clusters, from one distribution; weights that no outcome changes.
    **Guarantee.** Finite-sample, for every classifier and every distribution, whatever the number of classes.
    **Method.** Theorems CU and CL with a vector for a witness (documentation: proofs for clusters, many classes): a row
    wins ``sum_k f_k(p_k) (p_k - 1{Y = k})`` (raw: at most 2), so that one factor of a row serves the sum. From above: a
    cell for each class and level, and a mean over bets that no score chooses. From below: half of the evidence is bet
    on over- and underconfidence, half on signs by class and bin of its probability, learnt on earlier blocks.
    **Cost.** Linear in rows times classes: 0.1 s for 20,000 rows of 100 classes.
    **Reads.** Rows.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([0.4] * 3, 4000)
    >>> truth = p**0.5 / (p**0.5).sum(axis=1, keepdims=True)  # the classifier is overconfident
    >>> y = (rng.uniform(size=(4000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    >>> shown = cal.certify.classwise(cal.multiclass_predictions(y, p))
    >>> bool(0.1 < shown.interval.low < shown.interval.high < 0.5)
    True
    """
    steps, seed, spend = checked_steps(steps), checked_seed(seed), shares(alpha, side)
    if not isinstance(data, MulticlassPredictions):
        raise BadInput(
            f"data is {type(data).__name__}: pass calibrant.multiclass_predictions(y_true, y_prob); rows of two "
            "classes, calibrant.predictions(...), are for certify.rounded"
        )
    rows = classes_of(data, seed)
    clusters = rows.clusters
    low = rows.below(spend[0], seed).limit(spend[0]) if spend[0] else 0.0
    high = rows.above(steps).limit(spend[1]) if spend[1] else largest(rows.k, steps)
    return Estimate(
        method="certify.classwise",
        value=min(max(rows.debiased(steps), low), max(high, low)),
        unit="probability",
        n=data.n,
        interval=Interval(low=low, high=high, level=1.0 - alpha, guarantee="finite-sample"),
        assumes=INDEPENDENT if rows.by_row else assumed(clusters),
        settings={
            "about": "every class's probability, raw from below; from above "
            + (WHOLE if steps == 100 else IN_STEPS.format(steps)).removeprefix("the score "),
            "classes": rows.k,
            "steps": steps,
            **({} if rows.by_row else reported(clusters)),
            "delta": spend,
            "seed": seed,
        },
    )


def classes_of(data: MulticlassPredictions, seed: int) -> Classes:
    """Return the rows as independent clusters: clusters of them, or each by itself."""
    top = data.top_label()
    clusters = cluster_totals(top, seed)
    if clusters is not None:
        return Classes(clusters, data.p, data.y, by_row=False)
    alone = Clusters.hash_split(np.arange(data.n), top.p, top.y, None, cluster_ids(top, seed))
    return Classes(alone, data.p, data.y, by_row=True)
