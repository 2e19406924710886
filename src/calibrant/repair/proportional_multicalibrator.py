"""Proportional multicalibration: the residual of each group and level is small beside its event rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.repair.fitting import fit_rows
from calibrant.repair.groups import checked_number
from calibrant.repair.inputs import checked_names
from calibrant.repair.level_shifts import Cells, LevelShifts, shifted

NAME = "ProportionalMulticalibrator"


@dataclass(frozen=True, kw_only=True)
class ProportionalMulticalibrator:
    r"""Proportional multicalibration: in each group, at each level of the score, the error is small beside the event rate.

    Estimand: p' with ``|E[Y - p' | S, v]| <= alpha max(E[Y | S, v], rho)`` for every group S and level v of the score.

    Parameters
    ----------
    variables : str or sequence of str, optional
        Covariates whose levels (or parts, of a number) are the groups; all by default.
    alpha : float in (0, 1)
        Share of the event rate that a cell may be off by.
    rho : float in (0, 1]
        Event rate below which `alpha` is taken of `rho` instead.
    fewest : int
        Rows (of mean weight) that a cell must hold to be looked at.
    levels : int
        Levels of the score, of equal width.
    cuts : int
        Groups that a number is cut into, of equal size.
    depth : {1, 2}
        Groups of one variable; or of each pair of variables too.

    Returns
    -------
    LevelShifts
        From `fit`.

    Raises
    ------
    BadInput
        No such covariate, or a setting that cannot be used.
    NotComputable
        From `fit`: all rows have one outcome.

    Notes
    -----
    **Assumes.** Rows like those to be repaired, which the model was not trained on.
    **Guarantee.** On the rows of the fit no cell of `fewest` rows is off by more (``settings["reached"]``); on others
    none: judge with `calibrant.repair.compare`.
    **Method.** Algorithm 1 of La Cava et al.: a cell (group S, level I) with event rate ybar and mean score rbar is
    shifted by ``ybar - rbar`` where ``|ybar - rbar| > alpha max(ybar, rho)``, clipped to [0, 1]; repeated until none
    is. Each shift lowers the Brier score by at least ``(alpha rho)^2 fewest / n``, so it ends. Departures: one number
    of rows takes the place of the paper's ``gamma`` (of a group) and ``alpha lambda`` (of a level in it); cells of one
    variable are shifted at once, being disjoint; everyone is a group too. **Cost.** A pass over the rows for each
    variable (and pair) and sweep. **Reads.** Rows; weights are used. Levels not seen in the fit are not shifted.

    References
    ----------
    La Cava, Lett and Wan (2023), "Fair admission risk prediction with proportional multicalibration", CHIL.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, ward = rng.uniform(0.02, 0.2, 20_000), rng.choice(["a", "b"], 20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p * np.where(ward == "a", 1.5, 1.0), p, {"ward": ward})
    >>> repaired = cal.repair.ProportionalMulticalibrator().fit(data)(data)
    >>> [round(float(data.y[ward == w].mean() / repaired.p[ward == w].mean()), 1) for w in "ab"]
    [1.0, 1.0]
    """

    variables: str | Sequence[str] | None = None
    alpha: float = 0.1
    rho: float = 0.1
    fewest: int = 100
    levels: int = 10
    cuts: int = 5
    depth: int = 1

    def __post_init__(self) -> None:
        if self.variables is not None:
            checked_names(self.variables)
        checked_number("alpha", self.alpha, 0.0, 1.0)
        checked_number("rho", self.rho, 0.0, 1.0 + 1e-12)
        self._cells().check()

    def _cells(self) -> Cells:
        names = None if self.variables is None else checked_names(self.variables)
        return Cells(variables=names, cuts=self.cuts, depth=self.depth, levels=self.levels, fewest=self.fewest)

    def fit(self, data: Any) -> LevelShifts:
        """Fit to rows."""
        rows = fit_rows(data, NAME)
        alpha, rho = self.alpha, self.rho
        settings = {k: v for k, v in asdict(self).items() if k != "variables"}
        return shifted(
            rows, self._cells(), lambda rate, score: abs(rate - score) > alpha * np.maximum(rate, rho), NAME, settings
        )
