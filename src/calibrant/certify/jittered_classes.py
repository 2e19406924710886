"""Probabilities of several classes that are perturbed on the simplex, and the certificate of what is emitted."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.arguments import checked_seed, checked_steps
from calibrant.certify.classwise import classes_of
from calibrant.data.arrays import column_of
from calibrant.data.calls import takes_arrays
from calibrant.data.classes.columns import ROUNDED
from calibrant.data.columns import row_ids
from calibrant.data.layouts import whole
from calibrant.data.predictions import MulticlassPredictions, checked_data
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import uniforms
from calibrant.results import Estimate, Interval, Side
from calibrant.stats.clusters.classes import LARGEST, LatticeClasses, emitted
from calibrant.views.population import INDEPENDENT, shares

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
    for what in ("weights", "cluster"):
        if getattr(rows, what) is not None:
            raise NotComputable(
                f"no proof covers perturbed vectors with {what}: leave it out, or use certify.classwise"
            )
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
