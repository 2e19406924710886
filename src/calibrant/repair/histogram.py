"""Histogram binning: in each bin of the score, what happened there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.repair.distinct import distinct
from calibrant.repair.fitting import fit_rows
from calibrant.repair.provenance import fitted_on
from calibrant.repair.steps import Spacing, Steps, checked_bins, checked_spacing, edges_before, mass_cuts, width_edges


@dataclass(frozen=True, kw_only=True)
class Histogram:
    r"""Histogram binning: show each bin of the score the event rate of its rows.

    Estimand: ``P(Y = 1 | p in bin)``.

    Parameters
    ----------
    bins : int from 1 to 10,000
    spacing : {"mass", "width"}
        Bins of equally many rows (rows of one score stay together), or of equal width.

    Raises
    ------
    BadInput
        A setting that cannot be used.
    NotComputable
        The rows have one outcome only.

    Notes
    -----
    **Assumes.** Nothing about the shape; what varies within a bin is lost, and with it some AUROC.
    **Guarantee.** None by itself, but the map takes few values, so that `calibrant.repair.compare` or
    `calibrant.certify` can be tight about it. Each rate is off by about ``sqrt(rate (1 - rate) / rows of the bin)``.
    Order is kept only if the rates happen to rise; see `order`. **Method.** Event rates. A bin of equal width without
    rows shows its middle, as netcal's does. A bin whose rows all had one outcome shows 0 or 1, where a single surprise
    makes the log loss infinite. **Cost.** One sort. **Reads.** Rows; weights are used.

    References
    ----------
    Zadrozny, Elkan, "Obtaining calibrated probability estimates from decision trees and naive Bayesian classifiers",
    ICML 2001.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p**2, p)
    >>> np.array(cal.repair.Histogram(bins=4).fit(data).shown).round(1)
    array([0. , 0.1, 0.4, 0.8])
    """

    bins: int = 10
    spacing: Spacing = "mass"

    def __post_init__(self) -> None:
        checked_bins(self.bins)
        checked_spacing(self.spacing)

    def fit(self, data: Any) -> Steps:
        """Fit the rates to rows."""
        rows = fit_rows(data, "Histogram")
        scores, heft, cases = distinct(rows)
        if self.spacing == "mass":
            cuts = mass_cuts(np.cumsum(heft), int(self.bins))
            edges = edges_before(scores, cuts)
        else:
            edges = width_edges(int(self.bins))
            cuts = np.searchsorted(scores, edges, side="left")
        shown = rates(heft, cases, cuts, edges)
        return Steps(
            recipe="Histogram",
            settings={"bins": len(shown), "spacing": self.spacing},
            fitted_on=fitted_on(rows),
            edges=tuple(edges.tolist()),
            shown=tuple(shown.tolist()),
        )


def rates(heft: Any, cases: Any, cuts: Any, edges: Any) -> Any:
    """Return the event rate of each bin, an empty bin's middle; `cuts` are the first distinct scores of bins 2, 3, ..."""
    rows = np.diff(np.concatenate([[0], cuts, [len(heft)]]))
    held = np.repeat(np.arange(len(rows)), rows)
    total, hits = np.bincount(held, heft, len(rows)), np.bincount(held, cases, len(rows))
    ends = np.concatenate([[0.0], edges, [1.0]])
    return np.clip(np.divide(hits, total, out=0.5 * (ends[:-1] + ends[1:]), where=rows > 0), 0.0, 1.0)
