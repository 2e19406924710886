"""Expected calibration error along a variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_alpha, checked_seed, choice
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.sketches.sample import identities_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import Draws
from calibrant.kernels.strata import Seen, null_sums
from calibrant.results import Estimate, Interval
from calibrant.stats.nulls import BY_ROWS, ClusterSums, Independent, Sizes, p_value, total_interval
from calibrant.stats.strata import (
    Bins,
    Strata,
    Strategy,
    View,
    beyond_gap,
    matched_residuals,
    quantile_cells,
    widened,
)
from calibrant.views.by_variable import (
    ByVariable,
    by_cluster,
    by_variable_of,
    checked_names,
    checked_view,
    numbers_of,
    pair_of,
    rows_by_variable,
    sketched_strata,
)
from calibrant.views.kinds import ByKind, refuse_rows
from calibrant.views.points import SIGNS, assumed
from calibrant.views.population import INDEPENDENT

Floats = NDArray[np.float64]

DRAWS = 1000  # of the interval
STREAM = 0x7ECE
SIMULATED = 128  # draws held at once
INVERSION = "inversion of a parametric bootstrap of the bins"


@dataclass(frozen=True)
class Binned:
    """The bins along a variable, of a sketch's cells; as many as were asked for, and what is reported of them."""

    strata: Strata
    requested: int
    clusters: Independent = BY_ROWS
    assumes: str = INDEPENDENT
    weighted: bool = False
    reads = "the sketch's cells by the variable"
    law = "binomials of each bin's mean and variance"

    @property
    def facts(self) -> dict[str, int]:
        """For settings, how many clusters there are."""
        return {}

    def simulated(self, draws: int, seed: int) -> Floats:
        """Residual sums of a calibrated model over the whole, shape (draws, bins)."""
        return matched_residuals(self.strata, draws, np.random.default_rng([seed, STREAM, 1])) / self.strata.total

    def seen(self, simulated: Floats, seed: int) -> Floats:
        """Residual sums with the noise that is seen next to that of a calibrated model."""
        return widened(simulated, self.strata, np.random.default_rng([seed, STREAM, 2]))


@dataclass(frozen=True, kw_only=True)
class BinnedRows(Binned):
    """The same of rows, and the bin of each."""

    data: Predictions
    cell: NDArray[np.int32]
    reads = "rows"
    law = "exact simulation"

    def simulated(self, draws: int, seed: int) -> Floats:
        s, ids, steps = self.strata, identities_of(self.data.n, seed), range(0, draws, SIMULATED)
        seen = Seen(self.data.p, self.data.weights, s.view == "confidence")
        events = [null_sums(ids, self.cell, s.size, seen, Draws(k, min(SIMULATED, draws - k), STREAM)) for k in steps]
        return (np.concatenate(events, axis=1).T - s.score) / s.total


@dataclass(frozen=True, kw_only=True)
class BinnedClusters(BinnedRows):
    """The same of rows in clusters, whose random signs have the noise that is seen in them already."""

    clusters: ClusterSums
    law = SIGNS

    @property
    def facts(self) -> dict[str, int]:
        return {"clusters": self.clusters.clusters}

    def simulated(self, draws: int, seed: int) -> Floats:
        return self.clusters.signed(draws, np.random.default_rng([seed, STREAM, 3])) / self.strata.total

    def seen(self, simulated: Floats, _seed: int) -> Floats:
        return simulated


@takes_arrays
def vece(
    data: Predictions | Sketch,
    variable: str | Sequence[str],
    *,
    bins: int = 10,
    view: View = "probability",
    strategy: Strategy = "quantile",
    alpha: float = 0.05,
    draws: int = 999,
    seed: int = 0,
    paper: bool = False,
) -> Estimate:
    r"""Expected calibration error along a variable, whatever the score: errors that cancel over scores show here.

    Estimand: ``sum_b P(b) |E[Y - p | b]|`` over the bins or levels b of the variable, or of a pair of variables; in
    probability units. ``settings["beyond_gap"]`` is the same of ``Y - p - E[Y - p]``: what is left when everyone's
    probability is moved by the overall mean residual.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; where the data name clusters, interval and p-values are by these clusters.
    variable : str or pair of str
        Covariates. Numbers and dates are cut into bins; categories keep their levels; missing values are a level.
    bins : int from 1 to 4096
        Of a number or date, for each variable of a pair. Equal values share a bin, so ties can leave fewer; a
        variable with at most `bins` values has a bin for each.
    view : {"probability", "confidence"}
        Of the outcome 1, or of the more probable class (1 from p = 0.5) being right.
    strategy : {"quantile", "uniform"}
    alpha : float in (0, 0.5]
        Probability, about, that the interval misses the estimand.
    draws : int from 99 to 100,000
        Simulations for the p-values.
    seed : int
    paper : bool
        The published procedure: quantile bins closed on the right, duplicate edges dropped, and the plain value.

    Returns
    -------
    Estimate
        ``value`` is the size from which noise would produce the plain value on average (with `paper`, the plain one);
        smaller is better. Settings: ``plug_in`` (the plain value), ``beyond_gap`` and ``beyond_gap_plug_in``,
        ``gap``, ``p_value`` (of the plain value) and ``p_beyond_gap``, ``bins_used``, ``bins_collapsed``.

    Raises
    ------
    BadInput
        No such variable, or a setting out of range.
    NotComputable
        All rows are one cluster; a pair is asked of a sketch that did not count it; or `paper` of a sketch, a category,
        weights or missing values.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights. Bins are cut without looking at outcomes.
    **Guarantee.** The p-values keep their level exactly for a calibrated model: they compare with outcomes simulated as
    ``Y* ~ Bernoulli(p)``, independent given scores and variables (of a sketch, with binomials of each bin's exact mean
    and variance: approximate). ``p_beyond_gap`` is the larger of this and the one with the noise seen in the bins, so
    that in large samples it keeps its level too for a model that is off in ways that have nothing to do with the
    variable. With clusters whole clusters have random signs in place of simulated outcomes: asymptotic in their number.
    The interval is asymptotic; for a certified one see `certify.variable`. **Method.** Equation 7 of the paper, without
    its bias: the plain value grows with the number of bins, in a calibrated model too. Value and interval as in `ece`.
    Departures: ties never split, residuals debiased, the argmax of the confidence view follows from p. **Cost.** A
    sort; 2 ns a row and draw for the p-values; about 20 ms for the interval. From a sketch 20 ms.
    **Reads.** Rows, or the sketch's cells by the variable.

    References
    ----------
    Kelly and Smyth, "Variable-based calibration for machine learning classifiers", AAAI 2023, arXiv:2209.15154.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, age = np.full(20_000, 0.5), rng.integers(18, 90, 20_000)
    >>> y = rng.uniform(size=20_000) < np.where(age < 50, 0.4, 0.6)  # overpredicts for some
    >>> data = cal.predictions(y, p, {"age": age})
    >>> found = cal.measure.vece(data, "age")
    >>> bool(found.interval.low > 0.08), bool(cal.measure.ece(data).value < 0.01), found.settings["p_value"]
    (True, True, 0.001)
    """
    checked_alpha(alpha)
    seed = checked_seed(seed)
    bins = check_int("bins", bins, 1, 4096, hint="such as 10")
    strategy = choice("strategy", strategy, get_args(Strategy))
    draws = check_int("draws", draws, 99, 100_000, hint="such as 999")
    view, names = checked_view(view), checked_names(variable)
    q = _published(data, names, bins, view) if paper else binned_of(data, names, bins, view, strategy)
    s = q.strata
    plain, beyond = _sizes(s.as_bins(q.clusters), alpha, seed)
    p_plain, p_beyond = _p_values(q, draws, seed)
    return Estimate(
        method="measure.vece",
        value=plain.plug_in if paper else plain.middle,
        unit="probability",
        n=s.n,
        interval=Interval(low=plain.low, high=min(plain.high, 1.0), level=1.0 - alpha, guarantee="asymptotic"),
        assumes=q.assumes,
        settings={
            "variable": names[0] if len(names) == 1 else names,
            "view": view,
            "reads": q.reads,
            "weights": q.weighted,
            "strategy": "published quantiles" if paper else strategy,
            "bins": bins,
            "bins_used": s.size,
            "bins_collapsed": q.requested - s.size,
            "paper": paper,
            "missing": s.missing,
            "plug_in": plain.plug_in,
            "without_noise": plain.middle,
            "gap": s.gap,
            "beyond_gap": beyond.middle,
            "beyond_gap_plug_in": beyond.plug_in,
            "p_value": p_plain,
            "p_beyond_gap": p_beyond,
            "draws": draws,
            "interval": INVERSION,
            "seed": seed,
            "null": q.law,
            **q.facts,
        },
    )


def _binned_sketch(data: Sketch, names: tuple[str, ...], bins: int, view: View, strategy: Strategy) -> Binned:
    strata = sketched_strata(data, names, view)
    joined = strata.joined(strata.bin_of(bins, strategy)) if len(names) == 1 else strata
    return Binned(joined, _requested(joined, bins))


def _binned_rows(data: Predictions, names: tuple[str, ...], bins: int, view: View, strategy: Strategy) -> Binned:
    if len(names) == 2:
        by_pair, sizes = pair_of(data, names, bins, strategy, view)
        return _rows(data, by_pair, int(np.prod([s if level else bins + extra for s, level, extra in sizes])))
    by_variable = by_variable_of(data, names[0], view)
    group = by_variable.strata.bin_of(bins, strategy)
    joined = by_variable.strata.joined(group)
    return _rows(data, ByVariable(joined, group[by_variable.cell].astype(np.int32)), _requested(joined, bins))


# The bins of a variable or pair.
binned_of = ByKind(rows=_binned_rows, sketches=_binned_sketch)


def _requested(joined: Strata, bins: int) -> int:
    return bins + int(joined.missing) if joined.ordered else joined.size


def _rows(data: Predictions, q: ByVariable, requested: int) -> Binned:
    clusters = by_cluster(data, q.cell, q.strata.size, q.strata.view)
    kind: Callable[..., Binned] = BinnedRows if clusters is None else partial(BinnedClusters, clusters=clusters)
    weighted = data.weights is not None
    return kind(q.strata, requested, assumes=assumed(data), weighted=weighted, data=data, cell=q.cell)


def _published(data: Predictions | Sketch, names: tuple[str, ...], bins: int, view: View) -> Binned:
    """The bins of the published procedure."""
    if isinstance(data, Sketch):
        raise NotComputable("the published procedure sorts the values themselves: pass rows")
    rows = checked_data(data, Predictions)
    if len(names) > 1:
        raise BadInput(f"variable={names!r}: the published procedure takes one covariate")
    values, known = numbers_of(rows, names[0]), "the published procedure knows no missing values and no weights"
    if np.isnan(values).any():
        raise NotComputable(known)
    refuse_rows(rows, weights=known)
    cell = quantile_cells(values, bins)
    return _rows(rows, ByVariable(rows_by_variable(rows, names[0], values, cell, view), cell), bins)


def _sizes(binned: Bins, alpha: float, seed: int) -> tuple[Sizes, Sizes]:
    """Sizes and intervals of the residuals, and of what is left of them beyond the overall gap."""
    alpha = binned.clusters.level(alpha)
    noise = binned.gap_noise(DRAWS, np.random.default_rng([seed, STREAM]))
    gap_left, noise_left = (beyond_gap(v, binned.share) for v in (binned.gap, noise))
    return total_interval(binned.gap, noise, _total, alpha), total_interval(gap_left, noise_left, _total, alpha)


def _total(gap: Floats) -> Floats:
    size: Floats = np.abs(gap).sum(axis=-1)
    return size


def _p_values(q: Binned, draws: int, seed: int) -> tuple[float, float]:
    """P-values of the plain value, and of that beyond the overall gap, which other error must not feign."""
    s, simulated = q.strata, q.simulated(draws, seed)
    share, gap = s.weight / s.total, s.residual / s.total
    left = float(_total(beyond_gap(gap, share)))
    beyond = max(p_value(left, _total(beyond_gap(v, share))) for v in (simulated, q.seen(simulated, seed)))
    return p_value(float(_total(gap)), _total(simulated)), beyond
