"""Planning: how many rows the subgroup test takes to detect an error, and the smallest error that rows detect."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_alpha, checked_beta, checked_seed, number, one_source, refuse
from calibrant.arguments import share as checked_share
from calibrant.data.predictions import Predictions, checked_data, predictions
from calibrant.detect.scan_test import scan_of
from calibrant.detect.subgroup_test import WEIGHT
from calibrant.errors import NotComputable
from calibrant.results import Estimate, Interval
from calibrant.stats.subgroups.scan import Scan
from calibrant.views.boxes import FEWEST as BOX_ROWS
from calibrant.views.boxes import MIN_SIZE, ORDER, SampleRows, Tables, tables_of

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

STREAM = 0x9A2D  # of random numbers, apart from those of other methods at the same seed
NULL_DRAWS, DRAWS = 4095, 1023  # simulated outcomes of calibrated scores, and of scores with the error
MOST_DRAWN = 20_000  # rows that a plan simulates: from there on errors shrink as the root of their number
MOST_ROWS = 10**9
FEWEST = 50  # rows that are planned for
SUBGROUPS = 5  # of pilot rows, for which power is planned in the mean
NEAR = 1.25  # times the share is the largest of them, and the share over it the smallest
ATTRIBUTES = 8  # made-up covariates
CLOSE, TRIES = 0.01, 12  # of the power, and how often it is simulated to come so close
LOST = 0.02  # power that says nothing of how far the error, or the rows, are off
STEEP = 5.4  # standard errors of a subgroup's rate that an error has which is detected four times in five, about
UNWEIGHTED = "a plan is for independent rows of equal weight: leave cluster= and weights= out"


@one_source
def rows_needed(
    error: float,
    data: Predictions | None = None,
    *,
    share: float = 0.1,
    order: int = ORDER,
    power: float = 0.8,
    beta: Sequence[float] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> Estimate:
    r"""Plan a sample: rows for the subgroup test to detect an error of one subgroup.

    Estimand: the least n at which the scan in `subgroup_test` rejects with probability `power`, if in a subgroup of a
    `share` of the rows the event rate is `error` above the mean score, and elsewhere the scores are calibrated.

    Parameters
    ----------
    error : float in (0, 1)
        In probability units: 0.1 is ten points.
    data : Predictions, optional
        Pilot rows whose scores and covariates are those to plan for.
    share : float in (0, 1)
        Of all rows, that the subgroup has.
    order : {1, 2}
        Attributes that the subgroup combines.
    power : float in (0, 1)
    beta : pair of float, optional
        Parameters a and b of a beta distribution of the scores, in place of `data`; uniform scores, (1, 1), if both are
        left out. The covariates are then eight numbers that have nothing to do with the scores.
    alpha : float in (0, 0.5]
        Level of the subgroup test.
    seed : int
        Draws rows, subgroups and outcomes.

    Returns
    -------
    Estimate
        ``value`` in rows, infinite beyond 10^9. ``settings`` say what was planned for. The interval is trivial: a plan
        is no certificate.

    Raises
    ------
    BadInput
        No subgroup of the pilot rows has about this share; an error that leaves the event rate no room below 1.
    NotComputable
        Clusters or weights; pilot rows without covariates.

    Notes
    -----
    **Assumes.** Independent rows; scores and covariates as stated.
    **Guarantee.** None: a plan. The power is that of the scan alone at its part of `alpha`, 0.7: models in the test add
    to it, for errors that are no corner most.
    **Method.** The scan's own law is simulated: its largest margin for outcomes drawn from the scores, and from the
    scores moved on the logit scale inside the subgroup until their mean is `error` higher. The subgroup is a corner of
    made-up covariates, whose edges are no cuts of the search; or the mean over at most five subgroups of the search, of
    the pilot rows, whose share is within a fourth of `share`. Beyond 20,000 rows errors that are detected as often
    shrink as the root of their number.
    **Cost.** Seconds. **Reads.** Nothing, or rows.

    References
    ----------
    As `scan_test`.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, covariates = rng.uniform(size=2000), {"age": rng.uniform(20, 90, 2000), "site": rng.choice(["a", "b"], 2000)}
    >>> data = cal.predictions(rng.uniform(size=2000) < p, p, covariates)
    >>> 50 < cal.detect.rows_needed(0.2, data, share=0.5, order=1).value < 300
    True
    """
    plan = SubgroupPlan.of(data, (share, order, beta), (power, alpha), seed)
    size = number("error", error, above=0.0, below=1.0, what="an error in probability units", hint="such as 0.1")
    rows = plan.rows(size)
    return plan.estimate("detect.rows_needed", rows, "rows", {"error": size, "rows": rows})


@one_source
def smallest_error(
    rows: int,
    data: Predictions | None = None,
    *,
    share: float = 0.1,
    order: int = ORDER,
    power: float = 0.8,
    beta: Sequence[float] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> Estimate:
    r"""Plan a test: the smallest error of one subgroup that a number of rows detects.

    Estimand: the least error at which the scan in `subgroup_test` rejects with probability `power`, if the event rate
    of a subgroup of a `share` of the rows is so much above the mean score, and elsewhere the scores are calibrated.

    Parameters
    ----------
    rows : int from 50 to 10^9
    data, share, order, power, beta, alpha, seed
        As `rows_needed`.

    Returns
    -------
    Estimate
        ``value`` in probability units, infinite where no error is large enough. ``settings`` as of `rows_needed`.

    Raises
    ------
    BadInput, NotComputable
        As `rows_needed`.

    Notes
    -----
    **Assumes.** As `rows_needed`. **Guarantee.** None: a plan. **Method.** As `rows_needed`. **Cost.** A second.
    **Reads.** Nothing, or rows.

    References
    ----------
    As `scan_test`.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, covariates = rng.uniform(size=2000), {"age": rng.uniform(20, 90, 2000), "site": rng.choice(["a", "b"], 2000)}
    >>> data = cal.predictions(rng.uniform(size=2000) < p, p, covariates)
    >>> 0.05 < cal.detect.smallest_error(2000, data, share=0.2).value < 0.15
    True
    """
    plan = SubgroupPlan.of(data, (share, order, beta), (power, alpha), seed)
    n = check_int("rows", rows, FEWEST, MOST_ROWS, hint="such as 5000")
    error = plan.error(n)
    return plan.estimate("detect.smallest_error", error, "probability", {"error": error, "rows": n})


# ---- one plan ----


@dataclass(frozen=True)
class Design:
    """Rows that are searched, subgroups that may have the error, and how large a margin is detected."""

    scan: Scan
    rows: SampleRows
    subgroups: tuple[Flags, ...]  # each of shape (n,)
    detected: float  # a larger margin is

    def power(self, error: float) -> float:
        """The share of simulated outcomes that are detected; the mean over subgroups."""
        draws = math.ceil(DRAWS / len(self.subgroups))
        margins = [
            self.scan.simulated(self.rows.cells, moved(self.rows.p, inside, error), self.rows.ids ^ np.uint64(k), draws)
            for k, inside in enumerate(self.subgroups, 1)  # each has draws of its own
        ]
        return float(np.mean(np.concatenate(margins) > self.detected))

    @property
    def room(self) -> float:
        """No error can be so large: the mean score of the subgroup would reach 1."""
        return min(1.0 - float(self.rows.p[inside].mean()) for inside in self.subgroups)


@dataclass(frozen=True)
class SubgroupPlan:
    """What a plan is for, checked."""

    data: Predictions | None
    share: float
    order: int
    beta: tuple[float, float]
    power: float
    alpha: float
    seed: int

    @classmethod
    def of(
        cls, data: object, subgroup: tuple[float, int, object], level: tuple[float, float], seed: int
    ) -> SubgroupPlan:
        """Check what subgroup it is (share, order and beta), and how surely it is detected (power and alpha)."""
        rows = None if data is None else checked_data(data, Predictions)
        if rows is not None and (rows.weights is not None or rows.cluster is not None):
            raise NotComputable(UNWEIGHTED)
        if rows is not None and subgroup[2] is not None:
            refuse("beta", subgroup[2], "either data or a beta distribution")
        if rows is not None and (rows.covariates is None or not rows.covariates.num_columns):
            raise NotComputable("the pilot rows have no covariates, of which subgroups are made")
        return cls(
            rows,
            share_of(subgroup[0]),
            check_int("order", subgroup[1], 1, 2, hint="how many attributes the subgroup combines"),
            (1.0, 1.0) if subgroup[2] is None else checked_beta(subgroup[2]),
            number("power", level[0], above=0, below=1, hint="such as 0.8"),
            number("alpha", checked_alpha(level[1]), least=0.001, hint="as small as simulated outcomes can show"),
            checked_seed(seed),
        )

    @property
    def noise(self) -> float:
        """The standard error of the event rate in the subgroup, times the root of all rows."""
        a, b = self.beta
        mean = (
            a * b / ((a + b) * (a + b + 1.0)) if self.data is None else float((self.data.p * (1 - self.data.p)).mean())
        )
        return math.sqrt(mean / self.share)

    def design(self, n: int) -> Design:
        """The rows of a sample of this size, searched."""
        rng = np.random.default_rng([STREAM, self.seed, n])
        drawn = self._made(n, rng) if self.data is None else self._taken(n, rng, self.data)
        tables = tables_of(drawn, None, ORDER, self.seed)
        scan, rows = scan_of(tables, MIN_SIZE, 0.0, "two-sided"), tables.rows
        null = np.sort(scan.simulated(rows.cells, rows.p, rows.ids, NULL_DRAWS))[::-1]
        detected = float(null[math.floor(WEIGHT * self.alpha * (NULL_DRAWS + 1)) - 1])
        return Design(scan, rows, tuple(self._subgroups(drawn, tables, scan, rng)), detected)

    def error(self, n: int) -> float:
        """The error that n rows detect; infinity where none is large enough."""
        simulated = min(n, MOST_DRAWN)
        design = self.design(simulated)
        start = STEEP * self.noise / math.sqrt(simulated)
        return solved(design.power, self.power, start, 0.999 * design.room) * math.sqrt(simulated / n)

    def rows(self, error: float) -> float:
        """The rows that detect an error; infinity beyond `MOST_ROWS`."""

        fewest = max(FEWEST, math.ceil(NEAR * BOX_ROWS / self.share))  # so that the search has such a subgroup

        @cache
        def design(n: int) -> Design:
            result = self.design(n)
            if error >= 0.999 * result.room:
                refuse("error", error, f"less than {result.room:.3g}: the subgroup's mean score is the rest of 1")
            return result

        def power(root: float) -> float:
            return design(max(round(root**2), fewest)).power(error)

        needed = solved(power, self.power, STEEP * self.noise / error, math.sqrt(MOST_DRAWN)) ** 2
        if math.isinf(needed):
            needed = (self.error(MOST_DRAWN) / error) ** 2 * MOST_DRAWN
        return float(max(math.ceil(needed), fewest)) if needed <= MOST_ROWS else math.inf

    def estimate(self, method: str, value: float, unit: str, settings: dict[str, float]) -> Estimate:
        """The plan as a result."""
        beta = "uniform scores" if self.beta == (1.0, 1.0) else "scores of a beta distribution ({:g}, {:g})"
        made = f"{beta.format(*self.beta)}; {ATTRIBUTES} covariates that have nothing to do with them"
        return Estimate(
            method=method,
            value=value,
            unit=unit,
            n=0 if self.data is None else self.data.n,
            interval=Interval(low=0.0, high=math.inf, level=1.0 - self.alpha, guarantee="asymptotic"),
            assumes=made if self.data is None else "scores and covariates distributed as given",
            settings=settings
            | {"share": self.share, "order": self.order, "power": self.power, "alpha": self.alpha, "seed": self.seed},
        )

    # ---- rows and subgroups ----

    def _made(self, n: int, rng: np.random.Generator) -> Predictions:
        p = rng.beta(*self.beta, size=n)
        columns = {f"x{j}": rng.uniform(size=n) for j in range(1, ATTRIBUTES + 1)}
        return predictions(rng.uniform(size=n) < p, p, columns)

    def _taken(self, n: int, rng: np.random.Generator, data: Predictions) -> Predictions:
        at = rng.choice(data.n, n, replace=n > data.n)
        return replace(data, y=data.y[at], p=data.p[at], covariates=data.covariates.take(at), cache={})

    def _subgroups(self, drawn: Predictions, tables: Tables, scan: Scan, rng: np.random.Generator) -> list[Flags]:
        """A corner of made-up covariates; or subgroups of the search that have about the share."""
        if self.data is None:
            edge = 1.0 - self.share ** (1.0 / self.order)
            columns = [drawn.covariates.column(f"x{j}").to_numpy() for j in range(1, self.order + 1)]
            return [np.logical_and.reduce([x > edge for x in columns])]
        family = scan.family
        sizes = np.array([len(c) for c in family.combined])[family.table]
        scored = np.array([0 in c for c in family.combined])[family.table]  # the score is the first attribute
        shares = family.rows / family.n
        kept = np.flatnonzero((sizes == self.order) & ~scored)
        near = kept[np.abs(np.log(shares[kept] / self.share)) <= math.log(NEAR)]
        if not len(near):
            least, most = (f"{f(shares[kept]):.3g}" for f in (np.min, np.max)) if len(kept) else ("0", "0")
            what = f"a share that a subgroup of {'two attributes' if self.order == 2 else 'one attribute'} has"
            refuse("share", self.share, what, f"which are from {least} to {most} here")
        chosen = rng.choice(near, min(SUBGROUPS, len(near)), replace=False)
        return [family.inside(int(box), tables.rows.cells) for box in chosen]


def share_of(value: object) -> float:
    """The share of a subgroup, checked."""
    return checked_share("share", value, hint="such as 0.1 for a tenth of the rows")


def moved(p: Floats, inside: Flags, error: float) -> Floats:
    """Return scores that are moved on the logit scale inside a subgroup until their mean there is `error` higher."""
    from scipy.optimize import brentq
    from scipy.special import expit, logit

    at = logit(p[inside])
    wanted = float(p[inside].mean()) + error
    offset = brentq(lambda by: float(expit(at + by).mean()) - wanted, 0.0, 60.0, xtol=1e-9)
    out = p.copy()
    out[inside] = expit(at + offset)
    return out


def solved(power: Callable[[float], float], wanted: float, start: float, most: float) -> float:
    """Return where a simulated power, which rises, is as wanted; infinity beyond `most`.

    Its normal quantile is about linear, and rises by `STEEP` from 0 to where the search starts.
    """
    from scipy.special import ndtri

    target, (low, high), x = float(ndtri(wanted)), (0.0, most), min(start, most)
    slope, last = STEEP / start, (0.0, -np.inf)
    for _ in range(TRIES):
        result = power(x)
        if abs(result - wanted) <= CLOSE or high - low <= 0.01 * high:
            return x
        if result < wanted:
            if x >= most:
                return math.inf
            low = x
        else:
            high = x
        seen = float(ndtri(min(max(result, 0.5 / DRAWS), 1.0 - 0.5 / DRAWS)))
        if abs(last[1]) < 2.0 > abs(seen) and x != last[0]:
            slope = min(max((seen - last[1]) / (x - last[0]), slope / 3.0), 3.0 * slope)
        last = (x, seen)
        x = 2.0 * x if result < LOST and high == most else x + (target - seen) / slope
        if not low < x < high:
            x = most if high == most else 0.5 * (low + high)
    return x
