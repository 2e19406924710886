"""Planning: how many rows the subgroup test takes to detect an error, and the smallest error that rows detect."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_alpha, checked_beta, checked_seed, number, refuse
from calibrant.arguments import share as checked_share
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions, checked_data, predictions
from calibrant.detect.subgroup_tests import WEIGHT, scan_of
from calibrant.errors import NotComputable
from calibrant.kernels.draws import outcomes, packed
from calibrant.kernels.runtime import sized
from calibrant.results import Estimate, Interval
from calibrant.search.nulls import StrongTest
from calibrant.stats.subgroups.scan import SALT, UP, Scan
from calibrant.views.boxes import FEWEST as BOX_ROWS
from calibrant.views.boxes import MIN_SIZE, ORDER, Tables, tables_of
from calibrant.views.kinds import refuse_rows

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

STREAM = 0x9A2D  # of random numbers, apart from those of other methods at the same seed
NULL_DRAWS, DRAWS = 4095, 1023  # simulated outcomes of calibrated scores, and of scores with the error
FIRST = 4  # of these a fourth is drawn at first, until a number of rows is nearly right
MOST_DRAWN = 20_000  # rows that a plan simulates: from there on errors shrink as the root of their number
MOST_ROWS = 10**9
FEWEST = 50  # rows that are planned for
SAMPLES = 5  # of rows, each with subgroups of its own: of a power of .8 one is .04 off, as samples differ
SUBGROUPS = 5  # of each sample of pilot rows: powers of subgroups of one share differ by more
MIDDLE = 0.25, 0.75  # of the mean scores of these: next to 1 no more can happen
NEAR = 1.25  # times the share is the largest of them, and the share over it the smallest
ATTRIBUTES = 8  # made-up covariates
CLOSE, TRIES = 0.015, 12  # of the power, about its simulation error; how often it is simulated to come so close
LOST = 0.02  # power that says nothing of how far the error, or the rows, are off
STEEP = 5.4  # standard errors of a subgroup's rate that an error has which is detected four times in five, about
UNWEIGHTED = "a plan is for independent rows of equal weight: leave cluster= and weights= out"


@takes_arrays
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

    Estimand: the least n at which `subgroup_test` rejects with probability `power`, if in a subgroup of a `share` of
    the rows the event rate is `error` above the mean score, and elsewhere the scores are calibrated.

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
        ``value`` in rows, infinite beyond 10^9. ``settings`` say what was planned for, and the power that was simulated
        for the answer: ``simulated_power``, with its standard error ``simulation_error``. The interval is trivial: a
        plan is no certificate.

    Raises
    ------
    BadInput
        No subgroup of the pilot rows has about this share; an error that leaves the event rate no room below 1.
    NotComputable
        Clusters or weights; pilot rows without covariates.

    Notes
    -----
    **Assumes.** Independent rows; scores and covariates as stated.
    **Guarantee.** None: a plan.
    **Method.** The laws of both tests are simulated: the scan's largest margin, and models joined with products, each
    at its part of `alpha`. Outcomes are then drawn from the scores moved on the logit scale inside the subgroup
    until their mean is `error` higher, and the share that either test rejects is the power: one sample of rows and a
    fourth of the draws find about where it is as wanted, the mean over five samples from there on. The subgroup is a
    corner of made-up covariates, whose edges are no cuts of the search. Of pilot rows it is one of at most five in each
    sample, drawn from the subgroups of the search whose share is within a fourth of `share`, and of these from the half
    with the most usual mean scores. Beyond 20,000 rows errors that are
    detected as often shrink as the root of their number;
    beyond 50,000, where the models see half of the rows, the models' part is then a little too large.
    **Cost.** Ten seconds, about; a minute with 60 columns of pilot rows. **Reads.** Nothing, or rows.

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
    rows, reached = plan.rows(size)
    return plan.estimate("detect.rows_needed", "rows", reached, {"error": size, "rows": rows})


@takes_arrays
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

    Estimand: the least error at which `subgroup_test` rejects with probability `power`, if the event rate of a subgroup
    of a `share` of the rows is so much above the mean score, and elsewhere the scores are calibrated.

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
    **Assumes.** As `rows_needed`. **Guarantee.** None: a plan. **Method.** As `rows_needed`. **Cost.** The same.
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
    return _errors(rows, [SubgroupPlan.of(data, (share, order, beta), (power, alpha), seed)])[0]


def planned_errors(
    rows: int,
    data: Predictions | None,
    shares: Iterable[float],
    described: tuple[int, object],
    level: tuple[float, float],
) -> list[Estimate]:
    """`smallest_error` of several shares: the rows are searched once for all.

    `described`: order and beta. `level`: power and alpha.
    """
    return _errors(rows, [SubgroupPlan.of(data, (share, *described), level, 0) for share in shares])


def _errors(rows: int, plans: Sequence[SubgroupPlan]) -> list[Estimate]:
    """The smallest error of each plan; they differ in the subgroup's share alone."""
    n = check_int("rows", rows, FEWEST, MOST_ROWS, hint="such as 5000")
    searched, results = plans[0].searched(min(n, MOST_DRAWN)), []
    for plan in plans:
        error, reached = plan.error(n, searched)
        how = {"error": error, "rows": n}
        results.append(plan.estimate("detect.smallest_error", "probability", reached, how))
    return results


# ---- one plan ----


class Power(NamedTuple):
    """A simulated power, and the standard error of its simulation."""

    value: float
    error: float


@dataclass(frozen=True, eq=False)
class Searched:
    """A sample of rows that both tests look at, and what calibrated scores lead to; outcomes are simulated."""

    drawn: Predictions
    tables: Tables
    scan: Scan
    strong: StrongTest
    null: Floats  # the scan's largest margins

    @classmethod
    def of(cls, drawn: Predictions, seed: int, sample: int, draws: int) -> Searched:
        """Simulate what calibrated scores lead to; of each sample's rows by draws of its own."""
        tables = tables_of(drawn, None, ORDER, seed)
        scan, rows = scan_of(tables, MIN_SIZE, 0.0, "two-sided"), tables.rows
        with sized(drawn.n * draws):
            null = scan.simulated(rows.cells, rows.p, rows.ids ^ np.uint64(sample << 8), draws)
        return cls(drawn, tables, scan, StrongTest.of(drawn, seed), null)

    def detected(
        self, y: NDArray[np.uint8], table: int, margins: tuple[float, float, float], level: float
    ) -> NDArray[np.bool_]:
        """Which sets of outcomes are detected, at each of three margins, shape (3, sets); `level` of the strong test.

        `y` (n, sets). `table`: the one most likely to show the error, looked at first: what it shows is not looked at
        again, nor is by the strong test what the scan shows.
        """
        cells, (low, at, high) = self.tables.rows.cells, margins
        margin = self.scan.largest(cells, {UP: packed(y)}, [table])[: y.shape[1]]
        left = np.flatnonzero(margin <= high)
        if len(left):
            margin[left] = self.scan.largest(cells, {UP: packed(y[:, left])})[: len(left)]
        left = np.flatnonzero(margin <= high)
        strong = np.zeros(y.shape[1], dtype=bool)
        strong[left] = self.strong.p_values(y[:, left].T) <= level
        return (margin > np.array([[low], [at], [high]])) | strong


@dataclass(frozen=True, eq=False)
class Design:
    """Samples of rows that are searched, and subgroups of each of which one has the error."""

    searched: tuple[Searched, ...]
    subgroups: tuple[tuple[tuple[Flags, int], ...], ...]  # of each sample: rows inside, and the table of the attributes
    alpha: float

    @cached_property
    def margins(self) -> tuple[float, float, float]:
        """A larger margin is detected: one standard error of the simulated null below, at alpha's part, and above."""
        null = np.sort(np.concatenate([one.null for one in self.searched]))[::-1]
        rank = WEIGHT * self.alpha * (len(null) + 1)
        spread = math.sqrt(rank * (1.0 - WEIGHT * self.alpha))
        low, at, high = (null[min(max(math.floor(rank + by), 1), len(null)) - 1] for by in (spread, 0.0, -spread))
        return float(low), float(at), float(high)

    def power(self, error: float, draws: int) -> Power:
        """The share of simulated outcomes that are detected; the mean over samples, whose powers say how sure it is."""
        many = len(self.searched)
        parts = [self._power(k, error, math.ceil(draws / many)) for k in range(many)]
        low, at, high = np.mean(parts, axis=0).tolist()
        spread = max(at * (1.0 - at) / draws, float(np.var(parts, axis=0)[1]) / max(many - 1, 1))
        return Power(at, math.hypot(math.sqrt(spread), 0.5 * (low - high)))

    def _power(self, sample: int, error: float, draws: int) -> Floats:
        """That of one sample, the mean over its subgroups, at each of the margins."""
        one, subgroups, parts = self.searched[sample], self.subgroups[sample], []
        rows = one.tables.rows
        for k, (inside, table) in enumerate(subgroups, 1 + SUBGROUPS * sample):  # each subgroup has draws of its own
            y = outcomes(
                rows.ids ^ np.uint64(k), moved(rows.p, inside, error), 0, math.ceil(draws / len(subgroups)), SALT
            )
            with sized(y.size):  # kernels see as many rows in all as there are outcomes
                parts.append(one.detected(y, table, self.margins, (1.0 - WEIGHT) * self.alpha).mean(axis=1))
        mean: Floats = np.mean(parts, axis=0)
        return mean

    @property
    def room(self) -> float:
        """No error can be so large: the mean score of the subgroup would reach 1."""
        each = zip(self.searched, self.subgroups, strict=True)
        return min(1.0 - float(one.tables.rows.p[inside].mean()) for one, some in each for inside, _ in some)


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
        refuse_rows(rows, weights=UNWEIGHTED, cluster=UNWEIGHTED)
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

    def searched(self, n: int, samples: int | None = None) -> tuple[Searched, ...]:
        """Samples of this size, searched; the same, whatever the subgroup. All of them by default."""
        out = []
        for sample in range(samples or SAMPLES):
            rng = np.random.default_rng([STREAM, self.seed, n, *([sample] if sample else [])])
            if self.data is None:
                drawn = self._made(n, rng)
            else:
                drawn = self.data.part(rng.choice(self.data.n, n, replace=n > self.data.n))
            seed = int(rng.integers(2**31)) if sample else self.seed
            out.append(Searched.of(drawn, seed, sample, NULL_DRAWS // SAMPLES))
        return tuple(out)

    def error(self, n: int, searched: tuple[Searched, ...]) -> tuple[float, Power]:
        """The error that n rows detect, and its power; infinity where none is large enough. `searched`: such rows."""
        simulated = searched[0].drawn.n
        designs = {part: self.design(searched[: self._samples(part)]) for part in (FIRST, 1)}
        most = 0.999 * designs[1].room

        @cache
        def power(x: float, part: int) -> Power:
            return designs[part].power(min(x, most), DRAWS // part)

        error = self._solved(power, STEEP * self.noise / math.sqrt(simulated), most)
        return error * math.sqrt(simulated / n), power(error, 1)

    def rows(self, error: float) -> tuple[float, Power]:
        """The rows that detect an error, and their power; infinity beyond `MOST_ROWS`."""
        fewest = max(FEWEST, math.ceil(NEAR * BOX_ROWS / self.share))  # so that the search has such a subgroup

        @cache
        def power(n: int, part: int) -> Power:
            design = self.design(self.searched(n, self._samples(part)))
            if error >= 0.999 * design.room:
                refuse("error", error, f"less than {design.room:.3g}: the subgroup's mean score is the rest of 1")
            return design.power(error, DRAWS // part)

        def rows(root: float) -> int:
            return min(max(round(root**2), fewest), MOST_DRAWN)

        start, most = STEEP * self.noise / error, math.sqrt(MOST_DRAWN)
        root = self._solved(lambda x, part: power(rows(x), part), start, most)
        if math.isinf(root):
            least, reached = self.error(MOST_DRAWN, self.searched(MOST_DRAWN))
            needed = (least / error) ** 2 * MOST_DRAWN
        else:
            needed, reached = root**2, power(rows(root), 1)
        return (float(max(math.ceil(needed), fewest)) if needed <= MOST_ROWS else math.inf), reached

    @staticmethod
    def _samples(part: int) -> int:
        return 1 if part == FIRST else SAMPLES

    def _solved(self, power: Callable[[float, int], Power], start: float, most: float) -> float:
        """Where the power is as wanted: by a fourth of the draws of one sample first, then by all from there on."""
        x = start
        for part in (FIRST, 1):
            if math.isfinite(x):
                x = solved(lambda x, part=part: power(x, part).value, self.power, (x, most), CLOSE * part**0.5)  # type: ignore[misc]
        return x

    def estimate(self, method: str, unit: str, reached: Power, settings: dict[str, float]) -> Estimate:
        """The plan as a result, with the power that was simulated for it."""
        beta = "uniform scores" if self.beta == (1.0, 1.0) else "scores of a beta distribution ({:g}, {:g})"
        made = f"{beta.format(*self.beta)}; {ATTRIBUTES} covariates that have nothing to do with them"
        return Estimate(
            method=method,
            value=settings["rows" if unit == "rows" else "error"],
            unit=unit,
            n=0 if self.data is None else self.data.n,
            interval=Interval(low=0.0, high=math.inf, level=1.0 - self.alpha, guarantee="asymptotic"),
            assumes=made if self.data is None else "scores and covariates distributed as given",
            settings=settings
            | {"share": self.share, "order": self.order, "power": self.power, "alpha": self.alpha, "seed": self.seed}
            | {"simulated_power": reached.value, "simulation_error": reached.error},
        )

    # ---- rows and subgroups ----

    def _made(self, n: int, rng: np.random.Generator) -> Predictions:
        p = rng.beta(*self.beta, size=n)
        columns = {f"x{j}": rng.uniform(size=n) for j in range(1, ATTRIBUTES + 1)}
        return predictions(rng.uniform(size=n) < p, p, columns)

    def design(self, searched: tuple[Searched, ...]) -> Design:
        """A corner of made-up covariates; or subgroups of the search that have about the share. In each sample."""
        chosen = self._near if self.data is not None else self._corner
        return Design(searched, tuple(chosen(one, k) for k, one in enumerate(searched)), self.alpha)

    def _corner(self, searched: Searched, _: int) -> tuple[tuple[Flags, int], ...]:
        """A corner that has exactly the share: by chance alone its power would be several points off."""
        columns = [searched.drawn.covariates.column(f"x{j}").to_numpy() for j in range(1, self.order + 1)]
        least = np.minimum.reduce(columns)
        inside = least > np.sort(least)[-1 - max(round(self.share * len(least)), 1)]
        own = tuple(range(1, self.order + 1))  # the score is the first attribute
        return ((inside, next(t for t, of in enumerate(searched.scan.family.combined) if tuple(of) == own)),)

    def _near(self, searched: Searched, sample: int) -> tuple[tuple[Flags, int], ...]:
        """Some of the subgroups of the search that are near the share: in each sample others."""
        family = searched.scan.family
        sizes = np.array([len(c) for c in family.combined])[family.table]
        scored = np.array([0 in c for c in family.combined])[family.table]  # the score is the first attribute
        shares = family.rows / family.n
        kept = np.flatnonzero((sizes == self.order) & ~scored)
        near = kept[np.abs(np.log(shares[kept] / self.share)) <= math.log(NEAR)]
        if not len(near):
            least, most = (f"{f(shares[kept]):.3g}" for f in (np.min, np.max)) if len(kept) else ("0", "0")
            what = f"a share that a subgroup of {'two attributes' if self.order == 2 else 'one attribute'} has"
            refuse("share", self.share, what, f"which are from {least} to {most} here")
        score = (family.expected / family.rows)[near]
        low, high = np.quantile(score, MIDDLE)
        usual = near[(score >= low) & (score <= high)]
        rng = np.random.default_rng([STREAM, self.seed, family.n, 1, sample])
        boxes = rng.choice(usual, min(SUBGROUPS, len(usual)), replace=False).tolist()
        return tuple((family.inside(b, searched.tables.rows.cells), int(family.table[b])) for b in boxes)


def share_of(value: object) -> float:
    """The share of a subgroup, checked."""
    return checked_share("share", value, hint="such as 0.1 for a tenth of the rows")


def moved(p: Floats, inside: Flags, error: float) -> Floats:
    """Scores that are moved on the logit scale inside a subgroup until their mean there is `error` higher."""
    from scipy.optimize import brentq
    from scipy.special import expit, logit

    at = logit(p[inside])
    wanted = float(p[inside].mean()) + error
    offset = brentq(lambda by: float(expit(at + by).mean()) - wanted, 0.0, 60.0, xtol=1e-9)
    out = p.copy()
    out[inside] = expit(at + offset)
    return out


def solved(power: Callable[[float], float], wanted: float, within: tuple[float, float], close: float) -> float:
    """Where a simulated power, which rises, is as wanted but for `close`; infinity beyond the search's end.

    Its normal quantile is about linear, and rises by `STEEP` from 0 to where the search starts. `within`: that, and its
    end.
    """
    from scipy.special import ndtri

    start, most = min(within), within[1]
    target, (low, high), x = float(ndtri(wanted)), (0.0, most), start
    slope, last = STEEP / start, (0.0, -np.inf)
    for _ in range(TRIES):
        result = power(x)
        if abs(result - wanted) <= close or high - low <= 0.01 * high:
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
