"""Proper scores: Brier score and log loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.errors import BadInput, NotComputable
from calibrant.measure.points import Points, checked_alpha, points
from calibrant.results import Estimate
from calibrant.stats.scoring import isotonic_parts, mean_interval, normal_quantile

WALD = "Wald, with noise for outcomes not seen"


def brier(data: Any, alpha: float = 0.05) -> Estimate:
    r"""Brier score, with its reliability, resolution and uncertainty.

    Estimand: ``E[(p - Y)^2]``.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; clusters are refused.
    alpha : float in (0, 1)

    Returns
    -------
    Estimate
        Smaller is better. Settings hold ``reliability`` (miscalibration, smaller is better), ``resolution``
        (discrimination, larger is better) and ``uncertainty`` (of the outcome); the score is exactly
        reliability - resolution + uncertainty.

    Raises
    ------
    NotComputable
        The data has clusters.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights.
    **Guarantee.** Asymptotic: see Coverage. The parts have no interval; reliability is too large by the noise
    that isotonic regression fits.
    **Method.** The CORP decomposition: reliability is how much isotonic recalibration improves the score, resolution
    how much the recalibrated score improves on the overall rate. No bins, no tuning, never negative. Interval: mean
    and standard error; in each of 15 bins the variance counts an outcome that is rare or absent as `ece` does, so
    that its absence does not make the width zero.
    **Coverage.** 0.939 to 1.00 in nine designs at 200 and 2,000 rows (1,000 samples each). See docs/measures.md.
    **Cost.** A sort of the rows.
    **Reads.** Rows, or the sketch's cells at their mean score: then too small by at most a quarter of the squared
    width of a cell.

    References
    ----------
    Brier, Monthly Weather Review 78 (1950). Dimitriadis, Gneiting, Jordan, "Stable reliability diagrams for
    probabilistic classifiers", PNAS 118 (2021), doi:10.1073/pnas.2016191118.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.measure.brier(cal.predictions([0, 1, 1, 0], [0.5, 0.5, 1.0, 0.0]))
    >>> found.value, found.settings["reliability"], found.settings["uncertainty"]
    (0.125, 0.0, 0.25)
    """
    checked_alpha(alpha)
    q = points(data)
    share, score, missing = q.unseen
    extra = float((share * missing * (1.0 - 2.0 * score) ** 2).sum())
    value, low, high = mean_interval((q.p - q.y) ** 2, q.mass, q.mass * q.heft, extra, normal_quantile(alpha))
    parts = isotonic_parts(q.p, q.y, q.mass)
    return q.estimate(
        "brier",
        value,
        (low, min(high, 1.0)),
        alpha,
        "",
        **parts,
        decomposition="isotonic (CORP)",
        interval=WALD,
    )


def log_loss(data: Any, clip: float = 0.0, alpha: float = 0.05) -> Estimate:
    r"""Logarithmic loss (cross-entropy).

    Estimand: ``-E[Y ln p + (1 - Y) ln(1 - p)]``, in nats.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; clusters are refused.
    clip : float in [0, 0.5)
        Probabilities are moved into ``[clip, 1 - clip]``. By default they are not.
    alpha : float in (0, 1)

    Returns
    -------
    Estimate
        Smaller is better. Settings count the rows that were clipped.

    Raises
    ------
    NotComputable
        A certain prediction was wrong, so the loss is infinite, and `clip` is 0; or the data has clusters.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights; a loss with finite variance.
    **Guarantee.** Asymptotic: see Coverage. Scores near 0 or 1 that are sometimes wrong make large losses rare,
    and an interval from a sample without any of them too short.
    **Method.** Mean and standard error, as `brier`.
    **Coverage.** 0.938 to 1.00 in nine designs at 200 and 2,000 rows (1,000 samples each). See docs/measures.md.
    **Cost.** One pass over the rows.
    **Reads.** Rows, or the sketch's cells at their mean score: then scores within a cell (``2^-14``) of 0 or 1 may
    differ.

    References
    ----------
    Good, "Rational decisions", J. R. Statist. Soc. B 14 (1952), doi:10.1111/j.2517-6161.1952.tb00104.x.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.measure.log_loss(cal.predictions([0, 1], [0.5, 0.5])).value, 4)
    0.6931
    """
    checked_alpha(alpha)
    q = points(data)
    p, clipped = clipped_scores(q, clip)
    wrong = q.times[((p == 0) & (q.y == 1)) | ((p == 1) & (q.y == 0))].sum()
    if wrong:
        raise NotComputable(
            f"log loss is infinite: {int(wrong):,} rows with probability 0 or 1 had the other outcome; pass clip=1e-6"
        )
    sure = (p == 0) | (p == 1)
    if sure.all():
        raise NotComputable("every probability is 0 or 1, and log loss says nothing of such; pass clip=1e-6")
    chance = np.where(q.y == 1, p, 1.0 - p)
    share, score, missing = q.unseen
    edge = max(clip, 1e-12)
    swing = np.log(np.clip(score, edge, 1 - edge) / np.clip(1 - score, edge, 1 - edge))
    extra = float((share * missing * swing**2).sum())
    value, low, high = mean_interval(-np.log(chance), q.mass, q.mass * q.heft, extra, normal_quantile(alpha))
    return q.estimate("log_loss", value, (low, high), alpha, "", clip=clip, clipped=clipped, interval=WALD)


def clipped_scores(q: Points, clip: Any) -> tuple[Any, int]:
    """Return the scores moved into ``[clip, 1 - clip]``, and how many rows moved."""
    if not (isinstance(clip, (int, float, np.floating)) and 0 <= clip < 0.5):
        raise BadInput(f"clip={clip!r}: pass a number from 0 to below 0.5, such as 1e-6")
    p = np.clip(q.p, clip, 1 - clip) if clip else q.p
    return p, int(q.times[p != q.p].sum())
