"""The kernel test of calibration given the score alone, for any number of rows."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_seed, choice, positive
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import identities_of
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.runtime import one_thread
from calibrant.results import Outcome
from calibrant.stats.local.kernel_sums import SAMPLE, ClusterRows, Nodes, Rows, nodes_of
from calibrant.stats.nulls import ranked
from calibrant.views.kernel_rows import CONTRADICTED, LEAST_DRAWS, checked_rows, rows_of
from calibrant.views.points import weights_of

Floats = NDArray[np.float64]
Null = Literal["auto", "simulated", "gaussian"]
NULLS: tuple[Null, ...] = ("auto", "simulated", "gaussian")
SIMULATED = 250_000_000  # outcomes that "auto" will simulate: a few seconds
ENOUGH = 100.0  # expected events, and non-events, for the Gaussian null
GAUSSIAN = 4000  # its draws, at least: their cost does not grow with the rows
CHUNK = 1 << 21  # residuals held at once, for memory
STREAM = 0x5CE
NARROW = 0.5  # default width, in median distances: at one, a wave over a quarter of the range goes unseen
STEPS = 25.0  # least default width, as a part of the range of the scores
LAWS = {
    "simulated": Rows.law,
    "gaussian": "asymptotic: Gaussian sums",
    "clusters": ClusterRows.law,
}


@takes_arrays
def kernel_calibration_test(
    data: Predictions, *, draws: int = 999, null: Null = "auto", seed: int = 0, width: float | None = None
) -> Outcome:
    r"""Test calibration given the score alone, with a kernel instead of bins.

    Estimand: ``KCE^2 = E[e k(p, p') e']`` with ``e = y - p``, an independent copy primed, and
    ``k = exp(-(p - p')^2 / (2 w^2))``: zero when ``E[Y | p] = p``, positive otherwise.

    Parameters
    ----------
    data : Predictions
        Weights multiply residuals; clusters are taken into account.
    draws, seed : int
        Simulated outcomes, and their seed.
    null : {"auto", "simulated", "gaussian"}
        Simulate the outcomes, or the Gaussian limit of their sums. ``"auto"`` simulates outcomes up to 250 million of
        them, and where fewer than 100 events or non-events are expected.
    width : float, optional
        ``w``, in probability units. By default half the median distance between scores, and at least 1/25 of their
        range.

    Returns
    -------
    Outcome
        ``statistic`` is the unbiased estimate of ``KCE^2`` (it can be negative). In ``parts``: ``null_sd``, and
        ``contradicted``, the rows whose outcome the score called impossible; any such row makes ``p_value`` zero.

    Raises
    ------
    BadInput
        A setting out of range; a sketch.
    NotComputable
        A single row; the Gaussian null with too few expected events, or with clusters.

    Notes
    -----
    **Assumes.** Independent rows; the width chosen without the labels.
    **Guarantee.** Simulated: level alpha at any number of rows. Gaussian: asymptotic. With clusters the signs of
    whole clusters' residuals are drawn: asymptotic in their number. Weights may not rest on the outcomes.
    **Method.** The unbiased estimator ``1 / (n (n - 1)) sum_{i != j} e_i k_ij e_j`` (SKCE, for two classes half of the
    one with the identity matrix as kernel of the classes), the local statistic with a covariate kernel of one. The
    kernel is interpolated at Chebyshev points, to 1e-12. Equal scores are joined into cells, with Binomial draws, where
    that halves the rows, and where they weigh alike. With weights ``w_i e_i`` stands for ``e_i``, and ``(sum w)^2 - sum
    w^2`` for ``n (n - 1)``. Departure: the null. **Cost.** Linear in the rows: rows times points (a few dozen at the
    default width) times draws. **Reads.** Rows.

    References
    ----------
    Widmann, Lindsten, Zachariah (2019), "Calibration tests in multi-class classification", NeurIPS, arXiv:1910.11385.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> cal.detect.kernel_calibration_test(cal.predictions(rng.uniform(size=2000) < p**1.3, p)).p_value
    0.001
    """
    checked = checked_rows(data, weighted=True)
    draws, seed = check_int("draws", draws, LEAST_DRAWS, hint="such as 999"), checked_seed(seed)
    w = None if width is None else positive("width", width, hint="or None for the default")
    rows, each = rows_of(checked, identities_of(checked.n, seed)), checked.weights
    if each is None:
        rows = rows.joined(rows.rate[:, None])[1]
        each = np.ones(len(rows.rate))
    w = _usual(checked, seed) if w is None else w
    try:
        nodes = nodes_of(rows.rate, w)
    except ValueError:
        raise BadInput(f"width={w:g} is under 1/250 of the range of the scores: pass a wider one") from None
    law = _law(rows, draws, choice("null", null, NULLS))
    with one_thread():
        if law == "gaussian":
            result = _gaussian(nodes, rows, each, max(draws, GAUSSIAN), seed)
        else:
            result = _simulated(nodes, rows, each, draws, seed)
    every = weights_of(checked)
    pairs = float(every.sum() ** 2 - (every**2).sum())
    return Outcome(
        method="detect.kernel_calibration_test",
        statistic=float(result[0] / pairs),
        p_value=0.0 if rows.contradicted else float(ranked(result)[0, 0]),
        alternative="the event rate given the score is not the score",
        null="given the score, outcomes are independent with the probabilities stated",
        law=f"certain: {CONTRADICTED}" if rows.contradicted else LAWS[law],
        settings={
            "draws": len(result) - 1,
            "null": law,
            "seed": seed,
            "width": w,
            "n": checked.n,
            "nodes": len(nodes.at),
            "weights": checked.weights is not None,
        },
        parts={"null_sd": float(result[1:].std() / pairs), "contradicted": rows.contradicted},
    )


def _law(rows: Rows, draws: int, null: Null) -> str:
    if isinstance(rows, ClusterRows):
        if null == "gaussian":
            raise NotComputable("the Gaussian null is for independent rows: use null='auto' with cluster=")
        return "clusters"
    expected = float(rows.rows @ rows.rate)
    enough = min(expected, rows.n - expected) >= ENOUGH
    if null == "gaussian" and not enough:
        raise NotComputable(
            f"the Gaussian null needs {ENOUGH:.0f} expected events and non-events: use null='simulated'"
        )
    if null == "auto":
        return "gaussian" if enough and len(rows.rate) * draws > SIMULATED else "simulated"
    return null


def _usual(data: Predictions, seed: int) -> float:
    """Return half the median non-zero distance between scores of a random sample, or more; 1 for a single score."""
    order = identities_of(data.n, seed)
    few = data.p[np.argpartition(order, SAMPLE)[:SAMPLE]] if data.n > SAMPLE else data.p
    apart = np.abs(few[:, None] - few)[np.triu_indices(len(few), 1)]
    apart = apart[apart > 0]
    if not len(apart):
        return 1.0
    return max(NARROW * float(np.median(apart)), float(np.ptp(data.p)) / STEPS)


def _simulated(nodes: Nodes, rows: Rows, each: Floats, draws: int, seed: int) -> Floats:
    """Return ``sum_{i != j} w_i e_i k_ij w_j e_j`` for the data (first) and for each draw; `each` is what rows weigh.

    With ``k = L K L'`` through the nodes it is ``S' K S - sum (w_i e_i)^2``, ``S = L' (w e)``: linear in the rows.
    """
    step = max(1, CHUNK // (draws + 1))
    sums, own = np.zeros((len(nodes.at), draws + 1)), np.zeros(draws + 1)
    for start in range(0, len(rows.rate), step):
        part = rows.part(slice(start, start + step))
        drawn, whole_part = part.with_data(part.drawn(0, draws, seed)), slice(None)
        weight = each[start : start + step]
        sums += (nodes.weights(part.rate) * weight[:, None]).T @ part.residuals(drawn, whole_part)
        own += part.squares(drawn, whole_part, weight[None] ** 2)[0]
    result: Floats = (sums * (nodes.kernel @ sums)).sum(axis=0) - own
    return result


def _gaussian(nodes: Nodes, rows: Rows, each: Floats, draws: int, seed: int) -> Floats:
    """The same with Gaussian sums of the exact covariance.

    ``e^2 = p (1 - p) + (1 - 2 p) e`` is linear in the residual, so that its sum is one more column next to S.
    """
    size = len(nodes.at) + 1
    cover, data, fixed = np.zeros((size, size)), np.zeros(size), 0.0
    for start in range(0, len(rows.rate), CHUNK // size):
        part = rows.part(slice(start, start + CHUNK // size))
        weight = each[start : start + CHUNK // size]
        features = np.column_stack([nodes.weights(part.rate), weight * (1.0 - 2.0 * part.rate)]) * weight[:, None]
        variance = part.rows * part.rate * (1.0 - part.rate)
        cover += features.T @ (variance[:, None] * features)
        data += features.T @ part.residual
        fixed += float(weight**2 @ variance)
    values, vectors = np.linalg.eigh(cover)
    noise = np.random.default_rng([STREAM, seed]).standard_normal((size, draws))
    sums = np.column_stack([data, vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * noise)])
    result: Floats = (sums[:-1] * (nodes.kernel @ sums[:-1])).sum(axis=0) - sums[-1] - fixed
    return result
