"""The validation of default probabilities by grade: one row a customer at the beginning of the observation period."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant import Predictions, predictions
from calibrant.apps.grades import concentration as shares
from calibrant.apps.grades import migrations as moves
from calibrant.apps.grades.customers import FEW, named_segments, numbers_of, one_a_customer, segments_of, texts_of
from calibrant.apps.grades.defaults import default_tails, light
from calibrant.apps.grades.sheet import BackTest, Concentration, Discrimination, GradeValidation, Matrix, Migrations
from calibrant.arguments import checked_alpha, checked_seed, flag, number, refuse, shown
from calibrant.detect import jeffreys_test
from calibrant.errors import BadInput
from calibrant.toolkit.data import checked_data, clipped, takes_arrays
from calibrant.toolkit.methods import covered, posterior_tails, ranking, refuse_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LIGHTS = (0.05, 0.001)  # Tasche (2003): yellow from the 95 %, red from the 99.9 % quantile of the defaults
PORTFOLIO, RELATIVE = "portfolio", "such as 0.2: between 0.8 and 1.2 of the defaults expected"
LEFT = -1  # at the end of the period: no grade


@dataclass(frozen=True)
class Customers:
    """Rows on a scale: the place of each grade, its PD, whether it defaulted, what is owed, and where it ended."""

    grade: Ints
    pd: Floats
    defaulted: NDArray[np.bool_]
    exposure: Floats | None
    end: Ints | None


@dataclass(frozen=True)
class How:
    """How cells are tested: correlation, levels of the lights, draws and seed, the relative limit, and alpha."""

    rho: float
    lights: tuple[float, float]
    simulated: tuple[int, int]
    limit: float | None
    alpha: float


@takes_arrays
def grades(
    data: Predictions,
    *,
    grade: str,
    end_grade: str | None = None,
    exposure: str | None = None,
    by: str | Iterable[str] | None = None,
    limit_relative: float | None = None,
    alpha: float = 0.05,
    order: Iterable[str | int] | None = None,
    average_pd: bool = False,
    initial: Predictions | None = None,
    initial_auc: float | None = None,
    initial_herfindahl: float | None = None,
    rho: float = 0.0,
    lights: tuple[float, float] = LIGHTS,
    draws: int = 999,
    seed: int = 0,
) -> GradeValidation:
    r"""Validate the default probabilities of a rating scale: back-testing, discrimination, migrations, concentration.

    One row is a customer without a default at the beginning of the observation period; the label is a default within
    it, the score the PD of the grade.

    Parameters
    ----------
    data : Predictions
        Rows of one cluster are one customer: it defaults if any of them does, and owes what they add up to; its grade,
        end grade and segments must be the same in all of them. Weights are refused.
    grade : str
        The covariate that holds the grade at the beginning.
    end_grade : str, optional
        The covariate that holds the grade at the end; missing for who has none. For migrations.
    exposure : str, optional
        The covariate that holds what is owed at the beginning, from 0. For concentration.
    by : str or sequence of str, optional
        Covariates of segments, such as region or product: back-testing in each of their levels, by grade and together.
    limit_relative : float in (0, 1), optional
        How far observed defaults may be from those expected, as a share: at 0.2 between 0.8 and 1.2 of them. Each line
        is then ``"over"``, ``"within"`` or ``"undecided"`` by the range of its observed over expected defaults.
    alpha : float in (0, 0.5]
        Of those ranges: of the portfolio, of all grades together, and of all lines of each column of `by` together.
    order : sequence of str or int, optional
        Every grade of the scale, the best first; by default those of the data by their PD.
    average_pd : bool
        Take the mean where PDs differ within a grade (direct estimates), which is refused otherwise.
    initial : Predictions, optional
        The rows of the initial validation, with the same columns: for its AUC and its concentration.
    initial_auc, initial_herfindahl : float in [0, 1], optional
        These figures alone, where the rows are not at hand; the second by number of customers.
    rho : float in [0, 1)
        How strongly defaults move together, as in `jeffreys_test`; 0.12 is common. One observation period.
    lights : (float, float)
        Green where the p-value is above the first, red where it is at most the second, amber between.
    draws : int from 19
        Simulated data sets of the test of all grades together.
    seed : int

    Returns
    -------
    GradeValidation
        ``back_testing`` (a line a grade), ``portfolio``, ``segments``, ``discrimination``, ``migrations``,
        ``concentration``; ``table`` (a `Curve`), ``save``, ``to_json``. ``absent``: what was not asked for or cannot
        be computed, and why.

    Raises
    ------
    BadInput
        No such column, a missing grade, PDs that differ within a grade or do not rise along the scale, two grades of
        one PD without `order`, a grade outside the scale, more than 50 grades, an exposure below 0.
    NotComputable
        Weights; clusters that cross; no rows.

    Notes
    -----
    **Assumes.** Customers are independent, or move together as `rho` says; grades and PDs were made without these
    defaults. **Guarantee.** `correlated_p_value` and `adjusted_p` have level alpha at every number of customers, with
    `rho` if it is the true one (with PDs that differ within a grade the first takes their mean). The Jeffreys p-value
    of one grade, S, ``z_ij`` and the test of concentration are the instructions' own, and asymptotic: see the
    documentation for their level at small numbers. **Method.** Back-testing: 2.5.3.1, ``Beta(D + 1/2, N - D + 1/2)`` at
    the PD. Discrimination: 2.5.4, ``S = (AUC_init - AUC_curr) / s``, DeLong's s, the initial AUC taken as known.
    Migrations: 2.5.5.1 and 2.5.5.2; N_i counts customers with a grade at both ends and no default. Concentration:
    2.5.5.3. Lights: `p_value`, or with `rho` the tail of the defaults in Vasicek's model, at the levels of Tasche;
    the instructions have no colours. **Cost.** A sort, then rows times draws. **Reads.** Rows.

    References
    ----------
    European Central Bank (2019), Instructions for reporting the validation results of internal models: IRB Pillar I
    models for credit risk, sections 2.5.3 to 2.5.5. Tasche (2003), A traffic lights approach to PD validation,
    arXiv:cond-mat/0305038. Vasicek (2002), The distribution of loan portfolio value, Risk 15(12). DeLong, DeLong,
    Clarke-Pearson (1988), doi:10.2307/2531595. Miller (1991), doi:10.1080/03610929108830732.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scale, pds = np.array(["A", "B", "C"]), np.array([0.005, 0.02, 0.1])
    >>> at = rng.integers(0, 3, 3000)
    >>> defaults = rng.uniform(size=3000) < pds[at] * np.array([1, 2, 1])[at]
    >>> found = cal.grades(cal.predictions(defaults, pds[at], {"grade": scale[at]}), grade="grade")
    >>> [(b.rating_grade, b.light) for b in found.back_testing]
    [('A', 'green'), ('B', 'amber'), ('C', 'green')]
    """
    rho, levels = number("rho", rho, least=0, below=1, hint="such as 0.12"), _lights(lights)
    for name, column in (("grade", grade), ("end_grade", end_grade), ("exposure", exposure)):
        if not isinstance(column, str) and (column is not None or name == "grade"):
            refuse(name, column, "the name of one column", "such as 'grade'")
    listed = named_segments(by, (grade, end_grade, exposure))
    constant = [c for c in (grade, end_grade, *listed) if c is not None]
    rows, row_count = one_a_customer(checked_data(data, Predictions), constant, exposure)
    rows = covered(rows, "the validation of grades")
    limit = (
        None if limit_relative is None else number("limit_relative", limit_relative, above=0, below=1, hint=RELATIVE)
    )
    how = How(rho, levels, (draws, checked_seed(seed)), limit, checked_alpha(alpha))
    _one_of(initial, initial_auc, "initial_auc")
    _one_of(initial, initial_herfindahl, "initial_herfindahl")
    scale = _scale(rows, grade, _named(order), flag("average_pd", average_pd))
    now = _customers(rows, scale, grade, exposure, end_grade)
    before = None if initial is None else _initial(initial, scale, grade, exposure)
    tested = _tested(now, now.grade, [("", g) for g in scale], how)
    (whole,) = _tested(now, np.zeros_like(now.grade), [("", PORTFOLIO)], how, mixed=True)
    absent: dict[str, str] = {}
    auc, index = _figure("initial_auc", initial_auc, "0.78"), _figure("initial_herfindahl", initial_herfindahl, "0.1")
    return GradeValidation(
        scale=scale,
        back_testing=tested,
        portfolio=whole,
        segments=tuple(line for one in segments_of(rows, listed) for line in _segments(now, scale, one, how)),
        discrimination=_discrimination(now, before, auc, absent),
        migrations=_migrations(now, len(scale), absent),
        concentration=_concentration(now, before, index, len(scale), absent),
        absent=absent,
        settings={
            "rho": rho,
            "lights": levels,
            "draws": draws,
            "seed": seed,
            "average_pd": average_pd,
            "light_by": "correlated_p_value" if rho else "p_value",
            "grade": grade,
            "end_grade": end_grade,
            "exposure": exposure,
            "by": listed,
            "limit_relative": limit,
            "alpha": how.alpha,
            "cluster_rows": row_count,
            "name": rows.name,
        },
    )


def _figure(name: str, value: float | None, such: str) -> float | None:
    return None if value is None else number(name, value, least=0, most=1, hint=f"such as {such}")


def _one_of(initial: Predictions | None, figure: float | None, name: str) -> None:
    if initial is not None and figure is not None:
        option = name.replace("_", "-")
        raise BadInput(f"initial= (--initial) brings its own figures: leave {name}= (--{option}) out")


def _named(order: object) -> tuple[str, ...] | None:
    """The grades of a scale as text, the best first: whole numbers as they are written."""
    if order is None:
        return None
    kept = tuple(order) if isinstance(order, Iterable) and not isinstance(order, (str, bytes)) else ()
    if len(kept) < 2 or not all(isinstance(g, (str, Integral)) and not isinstance(g, bool) for g in kept):
        what = f"order= (--order) is {shown(order)}"
        raise BadInput(f"{what}: name every grade of the scale, the best first, such as ['A', 'B', 'C'] (A,B,C)")
    result = tuple(map(str, kept))
    if twice := [g for i, g in enumerate(result) if g in result[:i]]:
        raise BadInput(f"order= (--order) names {clipped(twice[0])!r} twice: name each grade once")
    if len(result) > FEW:
        raise BadInput(f"order= (--order) names {len(result):,} grades: rating scales have at most {FEW}")
    return result


def _initial(data: object, scale: tuple[str, ...], grade: str, exposure: str | None) -> Customers:
    """The customers of the initial validation; what is wrong with them is said to be theirs."""
    rows = checked_data(data, Predictions, name="initial")
    refuse_rows(rows, weights="initial= (--initial) has weights=: customers are counted one by one, leave it out")
    try:
        return _customers(one_a_customer(rows, (grade,), exposure)[0], scale, grade, exposure, None)
    except BadInput as e:
        raise BadInput(f"rows of the initial validation (initial=, --initial): {e}") from None


def _lights(lights: object) -> tuple[float, float]:
    """The two levels of the lights."""
    kept = tuple(lights) if isinstance(lights, Sequence) and not isinstance(lights, str) else ()
    if len(kept) != 2:
        refuse("lights", lights, "two probabilities, the larger first", "such as (0.05, 0.001)")
    first, second = (number("lights", v, above=0, below=1, hint="such as 0.05") for v in kept)
    if second >= first:
        refuse("lights", lights, "two probabilities, the larger first", "such as (0.05, 0.001)")
    return first, second


# ---- the scale, and the customers on it ----


def _passed(rows: Predictions, column: str) -> list[str]:
    """The grade of every row; refuse one that is missing."""
    kept = texts_of(rows, column, "grade")
    if gaps := [i for i, g in enumerate(kept) if g is None]:
        what = f"grade column {column!r}: {len(gaps):,} of {len(kept):,} rows have no grade, first in row {gaps[0]}"
        raise BadInput(f"{what}; leave them out, or give them one")
    return [str(g) for g in kept]


def _scale(rows: Predictions, column: str, order: tuple[str, ...] | None, average: bool) -> tuple[str, ...]:
    """The grades, the best first: in the order given, or by their PD."""
    kept = _passed(rows, column)
    result, at = np.unique(kept, return_inverse=True)
    if len(result) > FEW:
        raise BadInput(f"grade column {column!r} holds {len(result):,} values: rating scales have at most {FEW} grades")
    low = np.full(len(result), np.inf)
    high = np.full(len(result), -np.inf)
    np.minimum.at(low, at, rows.p)
    np.maximum.at(high, at, rows.p)
    if not average and (apart := np.flatnonzero(high > low)).size:
        g = apart[0]
        what = f"grade {clipped(str(result[g]))!r} has PDs from {low[g]:.6g} to {high[g]:.6g}"
        raise BadInput(f"{what}: pass one PD a grade, or take their mean with average_pd=True (--average-pd)")
    pd = np.bincount(at, rows.p) / np.bincount(at) if average else low
    mean = dict(zip(map(str, result), map(float, pd), strict=True))
    return _ordered(mean, column) if order is None else _checked(mean, order, column)


def _ordered(mean: dict[str, float], column: str) -> tuple[str, ...]:
    if len(mean) < 2:
        raise BadInput(
            f"grade column {column!r} holds one grade: a scale has two at least; name all with order= (--order)"
        )
    made = sorted(mean, key=lambda g: mean[g])
    for a, b in pairwise(made):
        if mean[a] == mean[b]:
            both = f"grades {clipped(a)!r} and {clipped(b)!r} have one PD, {mean[a]:.6g}"
            raise BadInput(f"{both}: say which is better with order= (--order), the best grade first")
    return tuple(made)


def _checked(mean: dict[str, float], order: tuple[str, ...], column: str) -> tuple[str, ...]:
    if missing := [g for g in mean if g not in order]:
        what = f"grade column {column!r} holds {clipped(missing[0])!r}"
        raise BadInput(f"{what}, which order= (--order) does not name: add it to {', '.join(map(clipped, order))}")
    kept = [g for g in order if g in mean]
    for a, b in pairwise(kept):
        if mean[a] > mean[b]:
            both = f"grade {clipped(a)!r} (PD {mean[a]:.6g}) stands before {clipped(b)!r} (PD {mean[b]:.6g})"
            raise BadInput(f"order= (--order) is not by PD: {both}; name the best grade first")
    return order


def _customers(
    rows: Predictions, scale: tuple[str, ...], grade: str, exposure: str | None, end: str | None
) -> Customers:
    place = {g: i for i, g in enumerate(scale)}
    at = _placed(_passed(rows, grade), place, grade)
    owed = None if exposure is None else numbers_of(rows, exposure)
    ended = None if end is None else _placed(texts_of(rows, end, "end grade"), place, end)
    return Customers(at, rows.p, rows.y == 1, owed, ended)


def _placed(values: Sequence[str | None], place: dict[str, int], column: str) -> Ints:
    """Places on the scale, `LEFT` where there is no grade; refuse one that is not on it."""
    for i, g in enumerate(values):
        if g is not None and g not in place:
            known = ", ".join(map(clipped, place))
            what = f"column {column!r} holds {clipped(g)!r} (row {i}), which is no grade of the scale ({known})"
            raise BadInput(f"{what}: name every grade with order= (--order), or leave the value out")
    return np.array([LEFT if g is None else place[g] for g in values], dtype=np.int64)


# ---- 2.5.3 back-testing ----


def _segments(c: Customers, scale: tuple[str, ...], one: tuple[str, list[str], Ints], how: How) -> Iterator[BackTest]:
    """Yield the grades of each segment that have customers, and the segment's total after them."""
    column, levels, at = one
    k = len(scale)
    named = [f"{column} = {level}" for level in levels]
    cells = _tested(c, at * k + c.grade, [(name, g) for name in named for g in scale], how)
    totals = _tested(c, at, [(name, PORTFOLIO) for name in named], how, mixed=True)
    for i, total in enumerate(totals):
        yield from (line for line in cells[i * k : (i + 1) * k] if line.number_of_customers)
        yield total


def _tested(
    c: Customers, cell: Ints, names: Sequence[tuple[str, str]], how: How, *, mixed: bool = False
) -> tuple[BackTest, ...]:
    """The customers of each cell against their PD; `mixed` where these differ within one.

    Ranges of observed over expected defaults are Clopper and Pearson's, of all cells together; they hold for
    customers of unequal PDs too, since a sum of such defaults varies less.
    """
    k = len(names)
    n, d = np.bincount(cell, minlength=k), np.bincount(cell[c.defaulted], minlength=k)
    kept = np.flatnonzero(n)
    pd = _mean_pd(c, cell, k)
    alone = posterior_tails(d[kept], n[kept], pd[kept], "greater")
    tails = default_tails(d[kept], n[kept], pd[kept], how.rho)
    place = np.full(k, -1)
    place[kept] = np.arange(len(kept))
    together = _together(c, place[cell], how.rho, how.simulated)
    owed = None if c.exposure is None else np.bincount(cell, c.exposure, minlength=k)
    lines = []
    for i, (segment, name) in enumerate(names):
        exposure = None if owed is None else float(owed[i])
        line = BackTest(segment=segment, rating_grade=name, exposure=exposure)
        j = int(place[i])
        if j >= 0:
            tail = None if mixed else float(tails[j])
            by = (together[j] if mixed else tail) if how.rho else float(alone[j])
            line = replace(
                line,
                pd=float(pd[i]),
                number_of_customers=int(n[i]),
                number_of_defaults=int(d[i]),
                default_rate=int(d[i]) / int(n[i]),
                p_value=float(alone[j]),
                correlated_p_value=tail,
                adjusted_p=together[j],
                light=light(float(by or 0.0), how.lights),
            )
            line = _with_ratio(line, (how.alpha / len(kept), how.limit))
        lines.append(line)
    return tuple(lines)


def _with_ratio(line: BackTest, how: tuple[float, float | None]) -> BackTest:
    """A line with observed over expected defaults, their range, and the verdict against the relative limit."""
    from scipy.stats import binomtest

    if not line.pd:
        return line
    alpha, limit = how
    ends = binomtest(line.number_of_defaults, line.number_of_customers).proportion_ci(1.0 - alpha, "exact")
    low, high = float(ends.low) / line.pd, float(ends.high) / line.pd
    verdict = None
    if limit is not None:
        outside = low > 1.0 + limit or high < 1.0 - limit
        verdict = "over" if outside else "within" if 1.0 - limit <= low and high <= 1.0 + limit else "undecided"
    return replace(
        line,
        observed_expected=(line.default_rate or 0.0) / line.pd,
        observed_expected_low=low,
        observed_expected_high=high,
        verdict=verdict,
    )


def _mean_pd(c: Customers, cell: Ints, k: int) -> Floats:
    """The PD of each cell: the mean of its customers', exactly theirs where it is one; NaN of an empty one."""
    low, high, n = np.full(k, np.inf), np.full(k, -np.inf), np.bincount(cell, minlength=k)
    np.minimum.at(low, cell, c.pd)
    np.maximum.at(high, cell, c.pd)
    mean = np.bincount(cell, c.pd, minlength=k) / np.where(n, n, np.nan)
    return np.where(low == high, low, mean)


def _together(c: Customers, grade: Ints, rho: float, simulated: tuple[int, int]) -> tuple[float, ...]:
    """The adjusted p-value of each grade that has customers, in order, by simulation."""
    labels = pa.array([f"g{g:05d}" for g in range(int(grade.max()) + 1)]).take(pa.array(grade))
    data = predictions(c.defaulted, c.pd, {"grade": labels})
    result = jeffreys_test(data, by="grade", rho=rho, draws=simulated[0], seed=simulated[1])
    by_name = dict(zip(result.parts["grade"], result.parts["adjusted_p"], strict=True))
    return tuple(float(by_name[name]) for name in sorted(by_name))


# ---- 2.5.4 discrimination ----


def _discrimination(
    c: Customers, before: Customers | None, value: float | None, absent: dict[str, str]
) -> Discrimination | None:
    """The AUC of the grades now, and whether it has fallen."""
    if c.defaulted.all() or not c.defaulted.any():
        absent["discrimination"] = "all customers have the same outcome: an AUC takes both"
        return None
    area, error = _area(c)
    initial, s = value, None
    if before is not None:
        if before.defaulted.all() or not before.defaulted.any():
            absent["auc_init"] = "all customers of the initial validation have the same outcome"
        else:
            initial = _area(before)[0]
    if initial is not None and error > 0.0:
        s = (initial - area) / error
    elif initial is None:
        absent.setdefault("auc_init", "no initial AUC: pass initial= or initial_auc=")
    else:
        absent["auc_test"] = "the grades separate all defaults from all others, so that the AUC has no variance"
    return Discrimination(
        auc_curr=area,
        variance_curr=error**2,
        auc_init=initial,
        statistic=s,
        p_value=None if s is None else 0.5 * math.erfc(s / math.sqrt(2.0)),
        number_of_customers=len(c.grade),
        number_of_defaults=int(c.defaulted.sum()),
    )


def _area(c: Customers) -> tuple[float, float]:
    one = np.ones(len(c.grade))
    result = ranking(c.grade.astype(float), c.defaulted.astype(np.int8), one, one)
    return result.auroc, result.error


# ---- 2.5.5 stability ----


def _migrations(c: Customers, k: int, absent: dict[str, str]) -> Migrations | None:
    """The matrix of migrations with its bandwidths and tests."""
    if c.end is None:
        absent["migrations"] = "no grade at the end of the period: pass end_grade="
        return None
    stays = ~c.defaulted & (c.end != LEFT)
    counts = np.bincount(c.grade[stays] * k + c.end[stays], minlength=k * k).reshape(k, k)
    upper, lower = moves.bandwidth(counts)
    result = moves.steps(counts)
    gone = ~c.defaulted & (c.end == LEFT)
    return Migrations(
        counts=tuple(tuple(map(int, row)) for row in counts),
        defaulted=tuple(map(int, np.bincount(c.grade[c.defaulted], minlength=k))),
        left=tuple(map(int, np.bincount(c.grade[gone], minlength=k))),
        mwb_upper=_known(upper),
        mwb_lower=_known(lower),
        p_ij=_matrix(result.frequency),
        z_ij=_matrix(result.statistic),
        p_value=_matrix(result.p_value),
    )


def _known(x: float) -> float | None:
    return None if math.isnan(x) else x


def _matrix(values: Floats) -> Matrix:
    return tuple(tuple(_known(float(v)) for v in row) for row in values)


def _concentration(
    c: Customers, before: Customers | None, index: float | None, k: int, absent: dict[str, str]
) -> tuple[Concentration, ...]:
    """The concentration of customers, and of exposure where it is known."""
    earlier = None if before is None else shares.variation(np.bincount(before.grade, minlength=k))
    earlier = earlier if index is None else shares.variation_of(index, k)
    if earlier is None:
        absent["hi_init"] = "no initial concentration: pass initial= or initial_herfindahl="
    made = [_kept("number", np.bincount(c.grade, minlength=k).astype(float), earlier, k)]
    if c.exposure is None:
        absent["exposure"] = "no exposures: pass exposure="
        return tuple(made)
    was = None
    if before is not None and before.exposure is not None:
        was = shares.variation(np.bincount(before.grade, before.exposure, minlength=k))
    return (*made, _kept("exposure", np.bincount(c.grade, c.exposure, minlength=k).astype(float), was, k))


def _kept(by: str, amounts: Floats, initial: float | None, k: int) -> Concentration:
    now = shares.variation(amounts)
    return Concentration(
        weighted_by=by,
        grades=k,
        cv_curr=now,
        hi_curr=shares.herfindahl(now, k),
        cv_init=initial,
        hi_init=None if initial is None else shares.herfindahl(initial, k),
        p_value=None if initial is None else shares.rise(initial, now, k),
    )
