"""Certificates of several classes: the class-wise error, and of probabilities that are perturbed on the simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.arguments import checked_seed, checked_steps
from calibrant.data.arrays import column_of
from calibrant.data.calls import takes_arrays
from calibrant.data.classes.columns import ROUNDED
from calibrant.data.columns import row_ids
from calibrant.data.layouts import whole
from calibrant.data.predictions import MulticlassPredictions, checked_data
from calibrant.errors import BadInput
from calibrant.kernels.draws import uniforms
from calibrant.results import Estimate, Interval, Side
from calibrant.stats.clusters.classes import LARGEST, Classes, LatticeClasses, emitted, largest
from calibrant.stats.clusters.clusters import Clusters
from calibrant.views.kinds import refuse_rows
from calibrant.views.people import assumed, people_of, reported
from calibrant.views.population import IN_STEPS, INDEPENDENT, WHOLE, shares


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
    rows = classes_of(checked_data(data, MulticlassPredictions), seed)
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
    """The rows as independent clusters: clusters of them, or each by itself."""
    top = data.top_label()
    clusters = people_of(top).clusters(seed)
    if clusters is not None:
        return Classes(clusters, data.p, data.y, by_row=False)
    alone = Clusters.hash_split(np.arange(data.n), top.p, top.y, np.ones(data.n), people_of(top).ids(seed))
    return Classes(alone, data.p, data.y, by_row=True)


NO_PROOF = "no proof covers perturbed vectors with {}: leave it out, or use certify.classwise"
SALT = 0x51AB  # of random numbers, apart from those of other methods at the same seed


@takes_arrays
def jittered_classes(
    data: MulticlassPredictions, *, steps: int = 100, alpha: float = 0.05, side: Side = "two-sided", seed: int = 0
) -> Estimate:
    r"""Certify the class-wise calibration error of probabilities that are perturbed on the simplex.

    Estimand: ``sum_k E|s_k - P(Y = k | s_k)|``, from 0 to 2, of the vector s that `jitter_classes` emits: multiples of
    ``1 / steps`` that add up to one, of mean p; in probability units, added up over the classes.

    Parameters
    ----------
    data : MulticlassPredictions
        Without weights and clusters.
    steps : int from 2 to 1024
        Multiples; the fewer, the more noise. Fixed before the labels are seen.
    alpha : float in (0, 0.5]
        Probability, at most, that the interval misses the truth.
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Deals rows into blocks; used by the lower end only. Nothing is sampled.

    Returns
    -------
    Estimate
        Both ends are about what is emitted. ``value`` is the plug-in less what noise adds to each multiple's square,
        moved into the interval. Smaller is better.

    Raises
    ------
    NotComputable
        Weights or clusters, for which there is no proof.

    Notes
    -----
    **Assumes.** Independent rows from one distribution; that each emitted row has a random number of its own.
    **Guarantee.** Finite-sample, for every classifier and every distribution, whatever the number of classes. The noise
    costs a calibrated classifier up to about ``1 / (2 steps)`` a class, so the lower end is no evidence against the
    model; use `classwise` for that.
    **Method.** Theorems CU and CL of the vector witness, with the two multiples that a class's probability may be
    emitted as, each with its chance (documentation: proofs, perturbed vectors). A row can win ``2 (1 - p_y)``, at most
    2, where a rounded vector can win 3.
    **Cost.** Linear in rows times classes: 0.1 s for 20,000 rows of 10 classes.
    **Reads.** Rows.

    References
    ----------
    Ciosek et al., Measuring Uncertainty Calibration, section 5 (two classes). Systematic sampling: Madow, Annals of
    Mathematical Statistics 20 (1949). Vectors and certificates are this project's.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([0.4] * 3, 4000)
    >>> truth = p**0.5 / (p**0.5).sum(axis=1, keepdims=True)  # the classifier is overconfident
    >>> y = (rng.uniform(size=(4000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    >>> emitted = cal.certify.jittered_classes(cal.multiclass_predictions(y, p))
    >>> bool(0.1 < emitted.interval.low < emitted.interval.high < 0.5)
    True
    """
    steps, seed, spend = checked_steps(steps), checked_seed(seed), shares(alpha, side)
    rows = checked_data(data, MulticlassPredictions)
    refuse_rows(rows, weights=NO_PROOF.format("weights"), cluster=NO_PROOF.format("cluster"))
    plain = classes_of(rows, seed)
    lattice = LatticeClasses(plain.clusters, rows.p, rows.y, by_row=True, steps=steps)
    above, value = lattice.ends_above()
    low = lattice.below(spend[0], seed).limit(spend[0]) if spend[0] else 0.0
    high = above.limit(spend[1]) if spend[1] else LARGEST
    return Estimate(
        method="certify.jittered_classes",
        value=min(max(value, low), max(high, low)),
        unit="probability",
        n=rows.n,
        interval=Interval(low=low, high=high, level=1.0 - alpha, guarantee="finite-sample"),
        assumes=INDEPENDENT,
        settings={
            "about": f"every class's probability, emitted at random in multiples of 1/{steps} that add up to one",
            "classes": lattice.k,
            "steps": steps,
            "delta": spend,
            "seed": seed,
        },
    )


def jitter_classes(y_prob: ArrayLike, *, ids: object, steps: int = 100, seed: int = 0) -> NDArray[np.float64]:
    """Perturb probabilities of several classes on the simplex, as `jittered_classes` certifies them.

    Parameters
    ----------
    y_prob : array-like of shape (n, K)
        Probabilities that add up to one in each row, within 1e-3.
    ids : array-like of shape (n,)
        Who each row is, such as numbers or text: no two rows ever have the same, in this call or another.
        ``range(n)`` where all rows are in one call.
    steps : int from 2 to 1024
    seed : int
        With a row's id, of its uniform number.

    Returns
    -------
    float64 array of shape (n, K)
        Multiples of ``1 / steps`` that add up to one. Each is the multiple below or above its probability, and its mean
        over seeds is the probability.

    Raises
    ------
    BadInput
        Rows that are no probabilities; an id that is missing, or that two rows have.

    Notes
    -----
    **Assumes.** An id says nothing about its row's class. Rows of the same id in two calls get the same number: then
    what is emitted is not what is certified.
    **Method.** Systematic sampling (Madow 1949): differences of ``floor(steps (p_1 + ... + p_k) + U)``.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.certify.jitter_classes([[0.25, 0.5, 0.25]], ids=["row 17"], steps=4).tolist()
    [[0.25, 0.5, 0.25]]
    """
    p = np.asarray(y_prob, dtype=np.float64)
    if p.ndim != 2 or not (
        np.isfinite(p).all() and (p >= 0.0).all() and (np.abs(p.sum(axis=1) - 1.0) <= ROUNDED).all()
    ):
        raise BadInput(f"y_prob has shape {p.shape}: pass probabilities that add up to one in each row")
    return emitted(p, checked_steps(steps), uniforms(_own_ids(ids, len(p), checked_seed(seed)), SALT))


def _own_ids(ids: object, n: int, seed: int) -> NDArray[np.uint64]:
    """The hashes of ids and seed, of which each row has its own."""
    column = whole(column_of(ids, "ids"), "ids")
    if len(column) != n:
        raise BadInput(f"ids has {len(column):,} rows and y_prob {n:,}: pass one id for each row")
    if column.null_count:
        raise BadInput(f"ids: {column.null_count:,} are missing: pass one id for each row")
    hashes = row_ids([column], seed, ("ids",), "ids")
    if len(np.unique(hashes)) < n:
        raise BadInput("ids has the same id twice, so that two rows get one random number: pass an id for each row")
    return hashes
