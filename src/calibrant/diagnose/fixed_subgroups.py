"""A few distinct subgroups: who is badly served, each reported once, with a range that holds for every box at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_alpha, number
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.kernels.draws import mix
from calibrant.results import Curve
from calibrant.stats.subgroups.family import ROWS, Family, Ints
from calibrant.stats.subgroups.ranges import Ranges, floors
from calibrant.stats.subgroups.scan import Left, both, nearly_best, sums_in
from calibrant.views.boxes import (
    FEWEST,
    MIN_SIZE,
    ORDER,
    Boxed,
    ClusterBoxed,
    Tables,
    boxed,
    checked_size,
    condition,
    tables_of,
)
from calibrant.views.rules import Rule, quoted, text_of

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

METHOD = "diagnose.subgroups"
COLUMNS = (
    "rule",
    "rows",
    "share",
    "predicted",
    "observed",
    "gap",
    "low",
    "high",
    "floor",
    "evidence",
    "gap_left",
    "rows_left",
    "side",
    "stability",
    "over",
)
MOST = 20  # subgroups reported
SPLITS = 5  # of the rows into two halves, for stability
SALT = np.uint64(0x9F7E11EDC0DEB0B5)  # any number, so that halves have nothing to do with samples and outcomes
FIRST = 50  # boxes whose ranges by clusters are solved for, to tell the worst
ATTRIBUTES = 3  # next to the rule, of a subgroup
DISTINCT = 0.1  # difference of shares inside and outside from which an attribute distinguishes a subgroup's people
ERRORS = 4.0  # and standard errors of the share inside
SECOND = 0.05  # difference for which a second condition is worth telling


@takes_arrays
def fixed_subgroups(
    data: Predictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    order: int = ORDER,
    min_size: float = MIN_SIZE,
    limit: float | None = None,
    alpha: float = 0.05,
    rules: int = 5,
    seed: int = 0,
) -> Curve:
    r"""Tell who is badly served as a few distinct subgroups, such as "age over 76 and income up to 25".

    Estimand, for each subgroup B: the mean over its rows of ``eta_i - p_i``, eta_i the event rate of row i given its
    score and covariates. It is about the people in the data. An attribute is the score or a covariate cut into at most
    a dozen cells without looking at labels; a subgroup is a run of cells of a number, or a level or two of a category,
    of each of up to `order` attributes.

    Parameters
    ----------
    data : Predictions or Sketch
        A sketch made with ``tests=True`` brings its own covariates and seed. While it holds every row (up to 300,000)
        the answer is that of its rows; beyond, what subgroups share with one another is counted in its sample.
    variables : str or sequence of str, optional
        Covariates in addition to the score, up to 100; all that can be used by default.
    order : {1, 2, 3}
        Most attributes that a subgroup combines.
    min_size : float in [0, 1)
        Least share of the rows that a subgroup has; it has 20 rows in any case.
    limit : float in (0, 1), optional
        How far off a subgroup may be: ``over`` says which are shown to be further off.
    alpha : float in (0, 0.5]
        Probability, at most, that the range of any box of the family misses, reported or not; and that any box is said
        to be over the limit that is not.
    rules : int from 1 to 20
        At most so many subgroups.
    seed : int

    Returns
    -------
    Curve
        A line for each subgroup, in the order in which they were found; at least one. ``rule`` in words; ``rows`` and
        their ``share``; ``predicted`` (mean score), ``observed`` (event rate) and their ``gap``, with limits ``low`` to
        ``high``; ``floor``, how far off it is at least (0 where the limits hold zero: then nothing is shown, and the
        subgroup is the one that looks worst); ``evidence``, the statistic of `scan_test`; ``gap_left`` and
        ``rows_left``, what remains of it once the people of the subgroups before it are taken out (None for the first;
        where fewer than 20 are shared, as if none were); ``side`` ("underpredicts": more happens than the model says;
        "overpredicts"); ``stability``, the share of ten random halves of the rows in which as many subgroups, searched
        in the same way, include one that has at least half its people in common with it; ``over``. In ``settings``:
        ``conditions`` (rules as data), ``besides`` (for each subgroup up to three attributes that its rule does not
        name, as attribute, level or range, share inside, share outside), ``subgroups`` (size of the family), ``gap``
        (gap of everyone), ``n``, ``rows_in_sample`` (fewer than `n` if what subgroups share was counted in a sample),
        ``left_out``. Of clusters also ``people``, with rows inside and outside, ``people_apart``, the fewest in what
        one subgroup has beyond others, and ``people_shared``, in earlier ones. ``.chart()`` draws it.

    Raises
    ------
    BadInput
        No such covariate, or a setting that cannot be used; a sketch without the sums.
    NotComputable
        No box with 20 rows, or 20 clusters inside and outside; more than 100 covariates; a sketch without rows.

    Notes
    -----
    **Assumes.** Rows independent given scores and covariates, or clusters (``cluster=``); weights are used.
    **Guarantee.** Finite-sample: the family is fixed before labels are read, and the limits hold for all its boxes at
    once (exact binomial tails at shares of alpha; Hoeffding 1956), so also for those reported, however they were
    chosen. Of a calibrated model a floor is above 0 with probability at most alpha. Which subgroups are reported,
    ``gap_left``, ``stability`` and ``besides`` describe, and promise nothing. **Method.** *First subgroup.* The box
    with the largest floor is the worst. It may be the upper end, by chance, of a wider error; so it is reported as the
    box with the most evidence among those that hold at least half of its people, err on the same side, and have a floor
    at least half as large. Evidence is half the squared statistic plus the log of the box's share of alpha, of which
    boxes of fewer attributes and conditions have more; and within 3 of the most, the simpler box is reported. If no
    floor is above zero, the same over all boxes. *Further subgroups.* The people of the subgroups reported are taken
    out of every box. Of the boxes that keep more than half of their people, and are still further off than any would be
    by chance (the exact tail of those left, at the box's share of alpha), the one with the most evidence is next, the
    simpler one as before. *Next to the rule.* The attributes whose shares inside and outside differ most, by at least
    0.1 and four standard errors, counted without labels and of at least 20 people. **Cost.** That of the tables, and of
    those of half of the rows five times; under a second for 60,000 rows and eight attributes. **Reads.** Rows, or the
    sketch's tables and its sample.

    References
    ----------
    Hoeffding (1956), doi:10.1214/aoms/1177728178. Friedman, Fisher (1999), "Bump hunting in high-dimensional data",
    Statistics and Computing 9, for peeling boxes off one after another; here the family is fixed, which is what makes
    the ranges hold.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, income, p = rng.uniform(20, 90, 5000), rng.uniform(10, 60, 5000), rng.uniform(0.1, 0.6, 5000)
    >>> y = rng.random(5000) < np.where((age > 75) & (income < 25), p + 0.3, p)
    >>> found = cal.diagnose.subgroups(cal.predictions(y, p, {"age": age, "income": income}))
    >>> found.columns["rule"], found.columns["side"], found.columns["floor"][0] > 0.1
    (('age over 76 and income up to 25',), ('underpredicts',), True)
    """
    level = checked_alpha(alpha)
    least, most = checked_size("min_size", min_size), check_int("rules", rules, 1, MOST)
    if limit is not None:
        limit = number("limit", limit, above=0, below=1, what="a probability", hint="such as 0.05")
    rows = boxed(data, tables_of(data, variables, order, seed))
    ranges = rows.ranges(least)
    kind: Callable[..., Search] = ClusterSearch if isinstance(rows, ClusterBoxed) else Search
    search = kind(boxed=rows, ranges=ranges, alpha=level)
    reported = list(search.reported(most))
    family, boxes = search.family, np.array([t.box for t in reported])
    low, high = ranges.together(level, boxes)
    size = floors(low, high)
    beyond = ranges.over(limit, level)[boxes] if limit is not None else np.zeros(len(boxes), dtype=bool)
    stable = search.stability(reported, rows.tables.seed)
    lines = []
    for i, (t, box) in enumerate(zip(reported, boxes, strict=True)):
        n = family.rows[box]
        lines.append(
            {
                "rule": text_of(search.rule(box)),
                "rows": int(n),
                "share": float(n / family.n),
                "predicted": float(ranges.predicted[box]),
                "observed": ranges.observed(box),
                "gap": float(ranges.gap[box]),
                "low": float(low[i]),
                "high": float(high[i]),
                "floor": float(size[i]),
                "evidence": float(search.everyone.score[box]),
                "gap_left": t.gap_left,
                "rows_left": t.rows_left,
                "side": "underpredicts" if search.everyone.residual[box] > 0 else "overpredicts",
                "stability": stable[i],
                "over": bool(beyond[i]),
            }
        )
    return Curve(
        method=METHOD,
        columns={k: tuple(line[k] for line in lines) for k in COLUMNS},
        settings={
            "alpha": level,
            "besides": tuple(search.besides(t) for t in reported),
            "subgroups": family.size,
            "conditions": tuple(tuple(c.to_dict() for c in search.rule(box)) for box in boxes),
            "halves": 2 * SPLITS,
            "left_out": dict(rows.tables.left_out),
            "limit": limit,
            "min_size": least,
            "n": family.n,
            "order": order,
            "rows_in_sample": len(rows.tables.rows.p),
            "seed": rows.tables.seed,
            "gap": rows.gap,
            **rows.reported,
            **search.people(reported),
        },
    )


@dataclass(frozen=True, kw_only=True)
class ReportedSubgroup:
    """A subgroup."""

    box: int  # of the family
    inside: Flags  # shape (rows at hand,): who is in it
    gap_left: float | None
    rows_left: int | None  # what remains of it without the people of earlier subgroups


@dataclass(frozen=True, kw_only=True)
class Search:
    """The search for distinct subgroups."""

    boxed: Boxed
    ranges: Ranges  # of all boxes
    alpha: float

    @property
    def tables(self) -> Tables:
        """What the boxes are made of."""
        return self.boxed.tables

    @property
    def family(self) -> Family:
        """All boxes."""
        return self.ranges.family

    def people(self, _reported: Sequence[ReportedSubgroup]) -> dict[str, tuple[object, ...]]:
        """How many clusters have rows in each subgroup and outside, set it apart, and are in others."""
        return {}

    @cached_property
    def everyone(self) -> Left:
        """All rows in every box."""
        return self._left(sums_in(self.family, self.boxed.whole))

    def _left(self, sums: Ints) -> Left:
        """What some rows hold of the boxes; of clusters, with what their rows have in common as noise."""
        return Left.of(self.family, sums).noisier(self.ranges.times)

    def rule(self, box: int) -> Rule:
        """A box as a rule."""
        return self.tables.rule(self.family, box)

    # ---- One subgroup after another ----

    def reported(self, most: int) -> Iterator[ReportedSubgroup]:
        """Yield subgroups: the worst, then what stands out among the people left."""
        times = self.family.n / len(self.tables.rows.p)
        box = self._first()
        inside = self.family.inside(box, self.tables.rows.cells)
        yield ReportedSubgroup(box=box, inside=inside, gap_left=None, rows_left=None)
        out = inside
        for _ in range(most - 1):
            taken = self._sums(out)
            left = self.everyone.without(taken, times)
            score, among = both(left, self.everyone)
            result = self._best(score, left.beyond_chance(self.alpha, among))
            if result is None or not self._off(result):
                return
            inside = self.family.inside(result, self.tables.rows.cells)
            apart = taken[ROWS, result] < FEWEST
            now = self.everyone if apart else left
            rows = round(self._remaining(now.rows[result], inside if apart else inside & ~out))
            yield ReportedSubgroup(box=result, inside=inside, gap_left=now.gap(result), rows_left=rows)
            out = out | inside

    def _first(self) -> int:
        """The worst box as it is best reported."""
        family, everyone = self.family, self.everyone
        least, worst = self.ranges.floor(self.alpha)
        if least <= 0.0:
            return self._best(everyone.score, np.ones(family.size, dtype=bool)) or 0
        inside = self._sums(family.inside(worst, self.tables.rows.cells))[ROWS]
        among = (2 * inside >= inside[worst]) & (everyone.residual * everyone.residual[worst] > 0.0)
        boxes = np.flatnonzero(among)
        among[boxes] = self._floors(boxes) >= least / 2.0
        return self._best(everyone.score, among) or 0

    def _best(self, score: Floats, among: Flags) -> int | None:
        """The box with the most evidence, as a simpler one that holds half of its people if there is one."""
        near = nearly_best(score, self.family.weight, among)
        if not len(near):
            return None
        own = self.family.inside(near[-1], self.tables.rows.cells)
        people = np.count_nonzero(own)
        for box in near[:-1]:
            if 2 * np.count_nonzero(own & self.family.inside(box, self.tables.rows.cells)) >= people:
                return int(box)
        return int(near[-1])

    def _floors(self, boxes: Ints) -> Floats:
        """The floors of boxes."""
        return floors(*self.ranges.together(self.alpha, boxes))

    def _off(self, _box: int) -> bool:
        """Whether a box that is beyond chance is off by its range, too."""
        return True

    def _remaining(self, rows: float, _inside: Flags) -> float:
        """The rows of a subgroup that are left, of all rows and of those at hand."""
        return rows

    def _sums(self, rows: Flags) -> Ints:
        """The sums of some of the rows at hand in every box."""
        return sums_in(self.family, self.boxed.some(np.flatnonzero(rows)))

    # ---- How firmly the data point to it ----

    def stability(self, reported: list[ReportedSubgroup], seed: int) -> tuple[float, ...]:
        """The share of random halves whose own subgroups include one that shares half its people with each."""
        ids = mix(self.tables.rows.ids ^ mix(np.array([seed], dtype=np.uint64) ^ SALT))
        everyone = self._sums(np.ones(len(ids), dtype=bool))
        again = np.zeros(len(reported))
        for split in range(SPLITS):
            half = (ids >> np.uint64(split)) & np.uint64(1) == 1
            sums = self._sums(half)
            for rows, own in ((half, sums), (~half, everyone - sums)):
                result = list(self._peeled(self._left(own), rows, len(reported)))
                again += [  # half of the people in either are in both
                    any(2 * np.count_nonzero(t.inside & b) >= np.count_nonzero(t.inside | b) for b in result)
                    for t in reported
                ]
        return tuple(float(v) for v in again / (2 * SPLITS))

    def _peeled(self, full: Left, rows: Flags, most: int) -> Iterator[Flags]:
        """Yield who is in the subgroups of some of the rows at hand, of all rows."""
        score, among, out = full.score, full.rows > 0.0, np.zeros(len(rows), dtype=bool)
        for i in range(most):
            box = self._best(score, among)
            if box is None:
                return
            inside = self.family.inside(box, self.tables.rows.cells)
            yield inside
            out |= inside
            if i < most - 1:
                score, among = both(full.without(self._sums(out & rows)), full)

    # ---- Who is in it besides ----

    def besides(self, reported: ReportedSubgroup) -> tuple[tuple[str, str, float, float], ...]:
        """The attributes not in the rule whose shares inside and outside differ most; labels are not read."""
        named = {t for t, _ in self.family.attributes(reported.box)}
        results = [self._most_unlike(t, reported.inside) for t in range(len(self.tables.attributes)) if t not in named]
        there = sorted((f for f in results if f is not None), key=lambda f: f[3] - f[2])
        return tuple(there[:ATTRIBUTES])

    def _of_many(self, _attribute: int, _own: Ints, _inside: Flags) -> bool:
        """Whether clusters enough, or none, have rows of some cells and of others, inside and outside."""
        return True

    def _most_unlike(self, attribute: int, inside: Flags) -> tuple[str, str, float, float] | None:
        """The level or range of an attribute of which a subgroup's people have most in excess of the others."""
        t, cells = self.tables.attributes[attribute], self.tables.rows.cells[attribute]
        every = np.bincount(cells, minlength=t.size)
        own = np.bincount(cells[inside], minlength=t.size)
        sets = self.tables.sets[attribute]
        # (1) Shares of each set inside and outside
        below = np.concatenate([np.zeros((2, 1), dtype=np.int64), np.cumsum([own, every - own], axis=1)], axis=1)
        rows = below[:, sets[:, 1]] - below[:, sets[:, 0]] + below[:, sets[:, 3]] - below[:, sets[:, 2]]
        people = rows[0]
        shares = rows / np.maximum(below[:, -1:], 1)
        more = shares[0] - shares[1]
        # (2) Of people enough, among those who have it and among those who have not
        others = own.sum() - people
        reported = (people >= FEWEST) & ((others >= FEWEST) | (others == 0)) & (more >= DISTINCT)
        reported &= more >= ERRORS * np.sqrt(shares[1] * (1.0 - shares[1]) / max(own.sum(), 1))
        reported[reported] = [self._of_many(attribute, s, inside) for s in sets[reported]]
        if not reported.any():
            return None
        conditions = [condition(t, s) for s in sets]
        worth = more - SECOND * np.array(
            [len(c.levels) + (c.above is not None) + (c.up_to is not None) for c in conditions]
        )
        best = int(np.argmax(np.where(reported, worth, -np.inf)))
        words = conditions[best].text.removeprefix(quoted(conditions[best].variable)).strip()
        return conditions[best].variable, words, float(shares[0, best]), float(shares[1, best])


@dataclass(frozen=True, kw_only=True)
class ClusterSearch(Search):
    """The same of rows in clusters, or that weigh: what is reported is of clusters enough."""

    boxed: ClusterBoxed

    def people(self, reported: Sequence[ReportedSubgroup]) -> dict[str, tuple[object, ...]]:
        count = self.boxed.people
        earlier = [np.logical_or.reduce([t.inside for t in reported[:i]]) for i in range(1, len(reported))]
        return {
            "people": tuple((count(t.inside), count(~t.inside)) for t in reported),
            "people_apart": tuple(self._fewest_apart(reported[: i + 1]) for i in range(len(reported))),
            "people_shared": (0, *(count(t.inside & e) for t, e in zip(reported[1:], earlier, strict=True))),
        }

    def _fewest_apart(self, reported: Sequence[ReportedSubgroup]) -> int | None:
        """The fewest clusters with rows in the last subgroup and no earlier one, or in one of two; None of none.

        What is reported of two subgroups gives, by subtraction, what there is of those in between.
        """
        *earlier, last = (t.inside for t in reported)
        parts = [last & ~np.logical_or.reduce(earlier)] if earlier else []
        parts += [part for other in earlier for part in (last & ~other, other & ~last)]
        return min((n for n in map(self.boxed.people, parts) if n), default=None)

    def _floors(self, boxes: Ints) -> Floats:
        """Those of the boxes with the most evidence, and 0 of the others."""
        out, first = np.zeros(len(boxes)), np.argsort(-self.everyone.score[boxes], kind="stable")[:FIRST]
        out[first] = super()._floors(boxes[first])
        return out

    def _off(self, box: int) -> bool:
        return bool(self._floors(np.array([box]))[0])  # tails are those of rows

    def _remaining(self, _rows: float, inside: Flags) -> float:
        return int(np.count_nonzero(inside))

    def _of_many(self, attribute: int, own: Ints, inside: Flags) -> bool:
        cells = self.tables.rows.cells[attribute]
        has = ((cells >= own[0]) & (cells < own[1])) | ((cells >= own[2]) & (cells < own[3]))
        parts = (side & part for side in (inside, ~inside) for part in (has, ~has))
        return all(not 0 < self.boxed.people(part) < FEWEST for part in parts)
