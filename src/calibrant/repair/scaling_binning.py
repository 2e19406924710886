"""Scaling-binning: a fitted curve, shown in few steps, so that what is left can be measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calibrant.data.predictions import Predictions
from calibrant.data.seed import checked_seed
from calibrant.errors import BadInput, NotComputable
from calibrant.repair.distinct import distinct
from calibrant.repair.fitted import Batch
from calibrant.repair.fitting import fit_rows
from calibrant.repair.platt import Logistic, Platt
from calibrant.repair.provenance import fitted_on
from calibrant.repair.steps import Steps, checked_bins, edges_before, mass_cuts


@dataclass(frozen=True, kw_only=True)
class ScalingBinning:
    r"""Scaling-binning: fit Platt's curve, then show each bin of the score the curve's mean in it.

    Estimand: ``E[g(p) | bin]``, g the curve.

    Parameters
    ----------
    bins : int from 1 to 10,000
        Bins of equally many rows.
    scale : {"logit", "raw"}
        Of the curve; see `Platt`.
    split : bool
        Deal the rows into three equal parts, as the paper proves it: for the curve, for the edges, for the means. False
        uses every row for each, as the authors' program does: better in practice, without the proof.
    seed : int
        Deals the rows.

    Raises
    ------
    BadInput
        A setting that cannot be used.
    NotComputable
        The rows, or those dealt to the curve, have one outcome only.

    Notes
    -----
    **Assumes.** That the curve is near the truth: where it is not, the means are off by as much. Unlike those of
    `Histogram`, they do not follow the outcomes of their bin. **Guarantee.** The paper's, with `split`: up to
    logarithms, ``bins + 1 / eps^2`` rows bring the squared calibration error to within eps^2 of twice the best curve's,
    where `Histogram` takes ``bins / eps^2``, since a mean of a smooth curve varies less than a mean of outcomes.
    `settings` states how many rows each step had. Order is kept up to ties if the curve rises. **Method.** Section 4.1
    of the paper: cuts at quantiles of the scores (those of g, which rises), halfway between neighbours; a bin that the
    third part misses takes the mean over the second. **Cost.** That of `Platt`, and a sort. **Reads.** Rows; weights
    are used.

    References
    ----------
    Kumar, Liang, Ma, "Verified uncertainty calibration", NeurIPS 2019.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=30_000)
    >>> data = cal.predictions(rng.uniform(size=30_000) < p**2 / (p**2 + (1 - p) ** 2), p)
    >>> fitted = cal.repair.ScalingBinning(bins=4).fit(data)
    >>> np.array(fitted.shown).round(1), fitted.settings["rows_curve"]
    (array([0. , 0.3, 0.7, 1. ]), 10000)
    """

    bins: int = 10
    scale: Literal["logit", "raw"] = "logit"
    split: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        checked_bins(self.bins)
        Platt(scale=self.scale)
        if not isinstance(self.split, bool):
            raise BadInput(f"split={self.split!r}: pass True or False")
        checked_seed(self.seed)

    def fit(self, data: Any) -> Steps:
        """Fit curve, edges and means to rows."""
        rows = fit_rows(data, "ScalingBinning", 3)
        parts = [np.arange(rows.n)] * 3
        if self.split:
            dealt = np.random.default_rng([checked_seed(self.seed), 0x5CA1]).permutation(rows.n)
            parts = [np.sort(part) for part in np.array_split(dealt, 3)]
        first, second, third = (_part(rows, at) for at in parts)
        if first.cases in (0, first.n):
            raise NotComputable(
                f"ScalingBinning cannot be fitted: the {first.n:,} rows dealt to its curve have one outcome only"
            )
        curve = Platt(scale=self.scale).fit(first)
        scores, heft, _ = distinct(second)
        edges = edges_before(scores, mass_cuts(np.cumsum(heft), int(self.bins)))
        shown = _means(curve, edges, third, _means(curve, edges, second, None))
        return Steps(
            recipe="ScalingBinning",
            settings={
                "bins": len(shown),
                "scale": self.scale,
                "split": self.split,
                "seed": int(self.seed),
                "rows_curve": first.n,
                "rows_edges": second.n,
                "rows_means": third.n,
                "slope": curve.slope,
                "intercept": curve.intercept,
            },
            fitted_on=fitted_on(rows),
            edges=tuple(edges.tolist()),
            shown=tuple(shown.tolist()),
        )


def _part(rows: Predictions, at: Any) -> Predictions:
    weights = None if rows.weights is None else rows.weights[at]
    return replace(rows, y=rows.y[at], p=rows.p[at], weights=weights, covariates=None, clusters=None, cache={})


def _means(curve: Logistic, edges: Any, rows: Predictions, otherwise: Any) -> Any:
    """Return the curve's mean in each bin, `otherwise` in bins without rows."""
    shown = curve.values(Batch(rows.p, None, None))
    heft = np.ones(rows.n) if rows.weights is None else rows.weights
    held = np.searchsorted(edges, rows.p, side="right")
    total = np.bincount(held, heft, len(edges) + 1)
    mean = np.bincount(held, heft * shown, len(edges) + 1)
    start = np.zeros(len(total)) if otherwise is None else otherwise.copy()
    return np.clip(np.divide(mean, total, out=start, where=total > 0), 0.0, 1.0)
