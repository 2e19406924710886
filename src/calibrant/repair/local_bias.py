"""Correct the local calibration bias: move each probability by how far off the people nearby were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.seed import checked_seed
from calibrant.errors import BadInput, NotComputable
from calibrant.repair.fitting import fit_rows
from calibrant.repair.inputs import checked_names
from calibrant.repair.kernel_shift import KernelShift
from calibrant.repair.local_fit import local_fit, sample_of
from calibrant.repair.provenance import fitted_on
from calibrant.repair.shrinkage import FOLDS

FEWEST = 20  # cases, and non-cases
WIDTHS = (1.0, 0.4)


@dataclass(frozen=True, kw_only=True)
class LocalBias:
    r"""Correct the local calibration bias, by a smooth function of score and covariates found among the residuals.

    Estimand: ``f`` of ``logit P(Y = 1 | p, x) = a logit p + b + f(p, x)``; the correction ``p' - p`` estimates the
    local bias ``E[Y - p | p, x]`` of eq. 7 of the paper.

    Parameters
    ----------
    variables : str or sequence of str, optional
        Covariates of any kind; by default all.
    bandwidth : float above 0, optional
        Standard deviation of the kernels, in median distances: of landmarks for the joint kernel, of knots along each
        axis. By default
        1 or 0.4, whichever cross-fitted log loss prefers.
    shrink : float above 0, optional
        Penalty on ``|f|^2``, in rows' worth; the larger, the smaller the correction. By default chosen by cross-fitted
        log loss from 0.1 to 10,000, without and with the joint kernel; or no correction, if none gains more than a
        standard error.
    landmarks : int from 2 to 1,024
        Fit rows around which the joint kernel's bells lie.
    seed : int
        Of folds and landmarks.

    Raises
    ------
    BadInput
        A setting out of range; no such covariate.
    NotComputable
        Fewer than 20 rows of either outcome, or five clusters.

    Notes
    -----
    **Assumes.** Independent rows, or independent clusters (folds keep them together). The error varies smoothly with
    numbers; with levels it may jump. **Guarantee.** None by itself: judge with `calibrant.repair.compare` on other
    rows. Of a calibrated model it leaves the scores exactly as they are in most samples, and moves them little in the
    others; far from all fit rows only overall curve and levels act. **Method.** f lies in the span of Gaussian bells:
    along the score and each number (12 quantile knots), of all of them together (levels a fixed distance apart) around
    random fit rows, and a constant for each level; these are the features of `detect.local_calibration_test` but for
    its steps. Penalised maximum likelihood in the reproducing norm; the penalty is chosen by five-fold cross-fitting of
    one Newton step. Departures from eq. 7, which averages residuals with kernel weights: the correction is on the
    log-odds, so that no probability leaves [0, 1]; it is fitted jointly, so that neighbours are not counted for one
    another and a direction that noise could explain is left alone; and it is a map for new rows, of a few hundred
    numbers. Of more than 200,000 rows a uniform sample is fitted. **Cost.** Rows times the square of the features (256,
    and 12 a number, at most), some fifteen times: 20 s of CPU time for 100,000 rows with ten variables. A repaired row
    takes 3 to 11 us. **Reads.** Rows; weights and clusters are used.

    References
    ----------
    Vashistha and Farahi (2025), "I-trustworthy models", AISTATS, eq. 7.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.uniform(0.2, 0.8, 16_000), rng.uniform(18, 90, 16_000)
    >>> y = rng.uniform(size=16_000) < p + 0.1 * np.sin(age / 10)  # too low at some ages, too high at others
    >>> first, second = (cal.predictions(y[a], p[a], {"age": age[a]}) for a in (slice(0, 12_000), slice(12_000, None)))
    >>> fitted = cal.repair.LocalBias().fit(first)
    >>> tests = [cal.detect.local_calibration_test(d, draws=199).p_value for d in (second, fitted(second))]
    >>> bool(tests[0] <= 0.01), bool(tests[1] > 0.05)
    (True, True)
    """

    variables: str | Sequence[str] | None = None
    bandwidth: float | None = None
    shrink: float | None = None
    landmarks: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        if self.variables is not None:
            checked_names(self.variables)
        for name, value in (("bandwidth", self.bandwidth), ("shrink", self.shrink)):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value < np.inf:
                raise BadInput(f"{name}={value!r}: pass a number above 0, such as 1.0")
        k = self.landmarks
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 2 <= k <= 1024:
            raise BadInput(f"landmarks={k!r}: pass a whole number from 2 to 1,024")
        checked_seed(self.seed)

    def fit(self, data: Any) -> KernelShift:
        """Fit the correction to rows."""
        rows = fit_rows(data, "LocalBias")
        if min(rows.cases, rows.n - rows.cases) < FEWEST:
            raise NotComputable(
                f"LocalBias needs at least {FEWEST} rows of each outcome, to choose how much to correct: there are "
                f"{rows.cases} with outcome 1 and {rows.n - rows.cases} with outcome 0; take Platt or AugmentedLogistic"
            )
        if rows.clusters is not None and (many := len(np.unique(rows.clusters))) < FOLDS:
            raise NotComputable(
                f"LocalBias needs at least {FOLDS} clusters, to choose how much to correct: there are {many}"
            )
        names = None if self.variables is None else checked_names(self.variables)
        widths = WIDTHS if self.bandwidth is None else (float(self.bandwidth),)
        found = local_fit(sample_of(rows, self.seed), names, widths, self.shrink, int(self.landmarks), self.seed)
        return KernelShift(recipe="LocalBias", fitted_on=fitted_on(rows), **found)
