"""Evidence against the model as it stands: a certified lower bound on its calibration error."""

from __future__ import annotations

from calibrant.arguments import one_source
from calibrant.certify.certificate import Certificate, certificate
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import BadInput
from calibrant.results import Estimate, Side
from calibrant.stats.cells import Cells
from calibrant.views.population import QUANTISATION, Population, shares
from calibrant.views.sample import everyone


@certificate(order=10, usual=True, side="lower")
@one_source
def raw_lower(data: Predictions | Sketch, *, alpha: float = 0.05, side: Side = "lower", seed: int = 0) -> Estimate:
    r"""Certify from below the average calibration error of the raw score.

    Estimand: ``CE = E|p - E[Y|p]|``, in probability units (0.01 is one point).

    Parameters
    ----------
    data : Predictions or Sketch
    alpha : float in (0, 0.5]
        Probability, at most, that the bound exceeds the truth.
    side : {"lower", "two-sided"}
        Two-sided spends ``alpha / 2`` on the lower end; the upper end is always the trivial 1, because no
        bound from above exists for a score of many values without an assumption; of few values, see `values`.
    seed : int
        Deals the rows into blocks.

    Returns
    -------
    Estimate
        ``interval.low`` is the certificate; larger is stronger evidence. ``value`` is the same number.

    Raises
    ------
    BadInput
        ``side="upper"``: use `values` where the score takes few values, else `rounded`, `distance` or, with an
        assumption, `bounded_variation`.

    Notes
    -----
    **Assumes.** Independent rows from one distribution.
    **Guarantee.** Finite-sample: ``P(low > CE) <= alpha`` for every classifier and every distribution.
    **Method.** Theorem L of the theory page: bets on the sign of the residual, learnt on earlier random blocks and
    settled on later ones, averaged over four deals (in one of them for each value, if the score takes few), and mixed
    with a forward recursion over signs that needs no learning, and with bets on a plain shift either way, which have
    half of the weight; the average e-value is solved for the error. Scores are read to ``2^-30``, which is subtracted.
    Data with ``cluster=`` or ``weights=``: independent clusters, Theorems CL and CU (documentation: clusters); error
    and gap are of these weights.
    **Cost.** Linear in the rows, then about 0.1 s whatever their number.
    **Reads.** The sketch; rows, where they have clusters or weights.

    References
    ----------
    Howard, Ramdas, McAuliffe, Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence sequences,
    doi:10.1214/20-AOS1991. Waudby-Smith and Ramdas (2024), doi:10.1093/jrsssb/qkad009.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> p = np.linspace(0.05, 0.95, 2000)
    >>> y = np.arange(2000) % 2  # a coin, whatever the score says
    >>> bool(cal.certify.raw_lower(cal.predictions(y, p)).interval.low > 0.1)
    True
    """
    if side == "upper":
        raise BadInput("side='upper': use values where the score takes few values, else rounded or distance")
    spend = shares(alpha, side)
    return raw_certificate(everyone(data, seed)).run(spend, 1.0 - alpha, seed)


def raw_certificate(q: Population, bet_sizes: float = 0.0) -> Certificate:
    """The certificate of one population, by bets that are the best at `bet_sizes`, or at its error probability."""

    def below(delta: float, seed: int) -> float:
        return max(q.below(bet_sizes or delta, seed).limit(delta) - QUANTISATION, 0.0)

    # Nothing is estimated: the value is the lower end.
    return Certificate("raw_lower", q, "the raw score", below, estimate=0.0, display={"grid": q.grid}, spends=True)


def lower_of(cells: Cells, delta: float, seed: int) -> float:
    """Return what `raw_certificate` certifies, of cells."""
    from calibrant.stats.bounds import lower_evidence

    return max(lower_evidence(cells, delta, seed).limit(delta) - QUANTISATION, 0.0)
