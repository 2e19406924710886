"""The search for rules in one half of the rows; the outcomes of the other half play no part in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import lgamma, log

import numpy as np
from numpy.typing import NDArray

from calibrant.data.specs.attributes import between
from calibrant.search.corners import CORNERS
from calibrant.search.detectors import DetectorInputs, halves_of
from calibrant.search.models import Rows, hash_split
from calibrant.search.products import Products
from calibrant.stats.cusum import Boundary, beyond
from calibrant.views.rules import Columns, Condition, Flags, Floats, Rule, extended

# ---- Outcomes of the growing half, by which rules are chosen ----


@dataclass(frozen=True)
class Look:
    """One side that the alternative looks at: which sums tell of it, see `Ballot.measures`."""

    sign: float  # 1 above, -1 below
    score: int
    factor: float
    variance: int


@dataclass(frozen=True, kw_only=True)
class Ballot:
    """Outcomes, and the rates that they are held against."""

    columns: Columns
    y: Floats  # shape (n,)
    edge: Boundary
    weights: Floats  # shape (n,)
    alternative: str  # "two-sided", "greater" or "less"

    @cached_property
    def _sides(self) -> tuple[Floats, tuple[Look, ...]]:
        w, rows = self.weights, [np.ones(len(self.y))]
        looks: list[Look] = []
        for sign, rate in ((1.0, self.edge.high), (-1.0, self.edge.low)):
            if self.alternative == ("less" if sign > 0 else "greater"):
                continue
            if looks and np.array_equal(self.edge.high, self.edge.low):  # the same sums, turned round
                looks.append(Look(sign, 1, -1.0, 2))
                continue
            looks.append(Look(sign, len(rows), 1.0, len(rows) + 1))
            rows += [sign * w * (self.y - rate), w**2 * rate * (1.0 - rate)]
        return np.stack(rows), tuple(looks)

    @property
    def measures(self) -> Floats:
        """What is summed over the rows of a rule: ones, and each side's scores and null variances, shape (k, n)."""
        return self._sides[0]

    @property
    def looks(self) -> tuple[Look, ...]:
        """The sides that the alternative looks at."""
        return self._sides[1]

    def excess(self, sums: Floats, least: int) -> Floats:
        """The larger standardised excess from sums of `measures`; infinitely low for too few rows."""
        best = np.full(sums.shape[1:], -np.inf)
        for look in self.looks:
            spread = sums[look.variance]
            with np.errstate(divide="ignore", invalid="ignore"):
                z = look.factor * sums[look.score] / np.sqrt(spread)
            best = np.maximum(best, np.where((sums[0] >= least) & (spread > 0), z, -np.inf))
        return best

    def side(self, inside: Flags) -> float:
        """On which side the excess of some rows is larger."""
        sums = self.measures[:, inside].sum(axis=1)
        score = [look.factor * sums[look.score] / max(float(sums[look.variance]), 1e-300) ** 0.5 for look in self.looks]
        return self.looks[int(np.argmax(score))].sign


def overlap(a: Flags, b: Flags) -> float:
    """Jaccard's index of two sets of rows."""
    either = int((a | b).sum())
    return float((a & b).sum()) / either if either else 0.0


# ---- Rules from shallow trees, grown on what a residual model predicts ----

LEVELS = 20  # most frequent levels of a category that a rule may ask for, as in the residual models
BINS = 255  # of a number, of about as many rows each: a tree's cut is known to half a percent of the rows


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """One column that a tree reads: bins of a number, from the lowest value to the highest, or whether a level."""

    variable: str
    label: str | None
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Binned:
    """Columns that trees read, binned once for all that are grown."""

    columns: Columns
    candidates: tuple[_Candidate, ...]
    codes: NDArray[np.uint8]  # shape (columns, n): bin of each row; a column's last one holds what is missing
    # `first` and `last`, shape (columns,): numbers of each column's first bin, and of the one that holds what is
    # missing.
    first: Rows
    last: Rows

    @classmethod
    def of(cls, columns: Columns) -> Binned:
        """Bin score and covariates, without looking at labels."""
        made = [(one, bins.astype(np.uint8)) for some in (_numbers, _levels) for one, bins in some(columns)]
        size = np.array([len(one.low) + 1 for one, _ in made], dtype=np.int64)
        first = np.cumsum(size) - size
        n = len(next(iter(columns.numbers.values())))
        whole = np.array([bins for _, bins in made], dtype=np.uint8).reshape(len(made), n)
        return cls(columns, tuple(one for one, _ in made), whole, first, first + size - 1)

    def grown(self, target: Floats, weights: Floats, depth: int, least: int) -> list[Rule]:
        """Grow a tree on the target, by least squares, and return the rules of its nodes but the root.

        `depth` and `least`: levels of the tree, and rows that a leaf must have.
        """
        measures, out = np.stack([np.ones(len(target)), weights, weights * target]), []

        def visit(rows: Rows, rule: Rule, steps: int) -> None:
            split = self._split(rows, measures, least) if steps and len(rows) >= 2 * least else None
            if split is None:
                return
            column, cut, missing = split
            bins = self.codes[column, rows]
            below = np.where(bins == len(self.candidates[column].low), missing, bins <= cut)
            for low in (True, False):
                out.append(extended(rule, _condition(self, column, cut, low, missing == low), self.columns))
                visit(rows[below == low], out[-1], steps - 1)

        if self.candidates:
            visit(np.arange(len(target)), (), depth)
        return out

    def _split(self, rows: Rows, measures: Floats, least: int) -> tuple[int, int, bool] | None:
        """The column, the last bin of the lower side, and whether what is missing goes there."""
        # (1) Sums of rows, weights and weighted targets by bin, and over each column's bins up to each.
        own, parts = measures[:, rows], []
        for codes, bins in zip(self.codes, self.last - self.first + 1, strict=True):
            at = codes[rows].astype(np.intp)  # a column at a time, for memory
            parts.append([np.bincount(at, v, bins) for v in own])
        sums = np.concatenate(parts, axis=1)
        column = np.repeat(np.arange(len(self.candidates)), self.last - self.first + 1)
        run = np.cumsum(sums, axis=1)
        below = run - (run - sums)[:, self.first[column]]
        whole, absent = own.sum(axis=1)[:, None], sums[:, self.last[column]]
        base, best, result = float(whole[2, 0] ** 2 / whole[1, 0]), 1e-12, None
        # (2) The cut that takes most off the squared error, with what is missing above it or below.
        for missing in (False, True):
            low = below + absent if missing else below
            high = whole - low
            open_ = (low[0] >= least) & (high[0] >= least) & (low[1] > 0) & (high[1] > 0)
            open_[self.last] = False
            if missing:
                open_ &= absent[0] > 0
            with np.errstate(divide="ignore", invalid="ignore"):
                gain = np.where(open_, low[2] ** 2 / low[1] + high[2] ** 2 / high[1] - base, 0.0)
            at = int(np.argmax(gain))
            if gain[at] > best:
                best, result = float(gain[at]), (int(column[at]), int(at - self.first[column[at]]), missing)
        return result


def _numbers(columns: Columns) -> Iterator[tuple[_Candidate, Rows]]:
    for name, values in columns.numbers.items():
        there = ~np.isnan(values)
        known = np.sort(values[there])
        high = np.unique(known)
        if len(high) < 2 and there.all():
            continue
        if len(high) > BINS:
            high = np.unique(known[(np.arange(1, BINS + 1) * len(known)) // BINS - 1])
        low = known[np.searchsorted(known, np.append(-np.inf, high[:-1]), side="right")[: len(high)]]
        bins = np.full(len(values), len(high), dtype=np.int64)
        bins[there] = np.searchsorted(high, values[there])
        yield _Candidate(variable=name, label=None, low=low, high=high), bins


def _levels(columns: Columns) -> Iterator[tuple[_Candidate, Rows]]:
    two = np.arange(2.0)
    for name, codes in columns.codes.items():
        labels = columns.labels[name]
        rows = np.bincount(codes, minlength=len(labels))
        kept = [k for k in np.argsort(-rows, kind="stable") if rows[k] > 0][:LEVELS]
        for k in kept[: 1 if (rows > 0).sum() == 2 else None] if len(kept) > 1 else []:
            yield _Candidate(variable=name, label=labels[k], low=two, high=two), (codes == k).astype(np.int64)


def _condition(binned: Binned, at: int, cut: int, low: bool, missing: bool) -> Condition:
    """The condition of one side of a split."""
    columns, column = binned.columns, binned.candidates[at]
    if column.label is not None:
        one = (column.label,)
        return Condition(
            variable=column.variable, kind="category", levels=() if low else one, others=one if low else ()
        )
    kind, whole = columns.kind(column.variable)
    absent = bool(np.isnan(columns.numbers[column.variable]).any())
    above = up_to = None
    if cut >= len(column.high) - 1:
        above = None if low else np.inf
    else:
        t = between(float(column.high[cut]), float(column.low[cut + 1]), kind, whole)
        above, up_to = (None, t) if low else (t, None)
    return Condition(
        variable=column.variable, kind=kind, whole=whole, missing=missing and absent, above=above, up_to=up_to
    )


# ---- All pairs of simple conditions at once, and what becomes of the best ----

CUTS = 9  # of a number, when pairs are searched: tenths of the rows; the cost grows with the square
FINE = 49  # of a number, when one condition of a rule is improved: fiftieths
MOST = 500  # conditions paired, for cost; of more, those that stand out most by themselves
SAME = 0.8  # overlap from which two rules are one


def conditions_of(columns: Columns, cuts: int, only: str | None = None) -> list[Condition]:
    """Simple conditions: a number on one side of a cut with few digits, a level or any other."""
    out: list[Condition] = []
    for name, values in columns.numbers.items():
        if only in (None, name):
            out += _sides(columns, name, values, cuts)
    for name, codes in columns.codes.items():
        if only not in (None, name):
            continue
        labels, rows = columns.labels[name], np.bincount(codes, minlength=len(columns.labels[name]))
        kept = [labels[k] for k in np.argsort(-rows, kind="stable") if rows[k] > 0][:LEVELS]
        out += [Condition(variable=name, kind="category", levels=(v,)) for v in kept]
        if len(kept) > 2:
            out += [Condition(variable=name, kind="category", others=(v,)) for v in kept]
    return out


def _sides(columns: Columns, name: str, values: Floats, cuts: int) -> list[Condition]:
    there = values[~np.isnan(values)]
    kind, whole = columns.kind(name)
    absent = (False,) if len(there) == len(values) else (False, True)
    known = Condition(variable=name, kind=kind, whole=whole)
    out = [replace(known, above=np.inf, missing=True), known] if len(absent) > 1 and len(there) else []
    shares = (np.arange(1, cuts + 1)[:, None] + np.array([-0.3, 0.3])) / (cuts + 1)
    if len(there):
        ends = np.quantile(there, shares, method="inverted_cdf")
        top = there.max()
        for t in sorted({between(float(a), float(b), kind, whole) for a, b in ends if a < top}):
            for missing in absent:
                out += [replace(known, above=t, missing=missing), replace(known, up_to=t, missing=missing)]
    return out


def price(terms: int, conditions: int) -> float:
    """The square of the excess that the best of all rules of so many conditions reaches by chance, about.

    The largest of m standard normal numbers is about ``sqrt(2 ln m)``; m is twice (two sides) the number of rules.
    """
    return 2.0 * (log(2.0) + terms * log(max(conditions, 2)) - lgamma(terms + 1))


def _terms(rule: Rule) -> int:
    return sum(1 + (c.above is not None and c.up_to is not None) for c in rule)


def _some(parts: Rows, size: int) -> Iterator[Rows]:
    return (parts[i : i + size] for i in range(0, len(parts), size))


AT_ONCE = 64  # conditions whose rows are summed at once, for memory
BLOCK = 4096  # rows whose pairs are


@dataclass(frozen=True, kw_only=True)
class Hunt:
    """What searches over the same rows share: conditions, the rows that meet them, and sums over pairs of them."""

    ballot: Ballot
    fold: Rows  # shape (n,): of each row: searches leave out one fold each
    # `least`, `depth` and `most`: rows and conditions of a rule, and rules.
    least: int
    depth: int
    most: int
    conditions: tuple[Condition, ...]  # those that enough rows meet, at most 500
    met: Flags  # shape (conditions, n)

    @classmethod
    def of(cls, ballot: Ballot, fold: Rows, least: int, depth: int, most: int) -> Hunt:
        """Find the conditions that enough rows meet, and if there are too many, those that stand out most."""
        candidates = conditions_of(ballot.columns, CUTS)
        made = [(c, rows) for c in candidates if least <= (rows := ballot.columns.select(c)).sum() < len(rows)]
        if len(made) > MOST:
            alone = [float(ballot.excess(ballot.measures @ rows, least)) for _, rows in made]
            made = [made[k] for k in np.sort(np.argsort(alone, kind="stable")[-MOST:])]
        met = np.array([rows for _, rows in made], dtype=bool).reshape(len(made), len(ballot.y))
        conditions = tuple(c for c, _ in made)
        return cls(ballot=ballot, fold=fold, least=least, depth=depth, most=most, conditions=conditions, met=met)

    @cached_property
    def _folds(self) -> Floats:
        """Sums over the rows of each pair of conditions, fold by fold, shape (folds, measures, c, c)."""
        return np.stack([self._pairs(self.fold == f) for f in range(int(self.fold.max()) + 1)])

    @cached_property
    def _alone(self) -> tuple[Condition, ...]:
        """The conditions as rules write them."""
        return tuple(extended((), c, self.ballot.columns)[0] for c in self.conditions)

    @cached_property
    def _finer(self) -> dict[str, list[Condition]]:
        return {}

    def _pairs(self, inside: Flags) -> Floats:
        """Sums over some rows of each pair, in single precision: they order rules, and count rows exactly."""
        out = np.zeros((len(self.ballot.measures), len(self.conditions), len(self.conditions)))
        for rows in _some(np.flatnonzero(inside), BLOCK):
            met = self.met[:, rows].astype(np.float32)
            for k, v in enumerate(self.ballot.measures):
                out[k] += (met * v[rows].astype(np.float32) if k else met) @ met.T
        return out

    def rules(self, nodes: Sequence[Rule], without: int | None = None) -> list[Rule]:
        """Rules, each the best over the rows that earlier ones left; from the second on, if worth its price.

        `nodes` are tried in addition to the pairs; `without` is the fold to leave out.
        """
        left = np.ones(len(self.fold), dtype=bool) if without is None else self.fold != without
        least = max(1, round(self.least * int(left.sum()) / len(left)))
        sums = self._folds.sum(axis=0) - (0.0 if without is None else self._folds[without])
        out: list[Rule] = []
        taken: list[Flags] = []
        eighths = self._eighths(left)
        while len(self.conditions) > 1 and len(out) < self.most and left.any():
            rivals = [self._best_pair(sums, least), *((self._value(rule, left, least), rule) for rule in nodes)]
            parts = [(max(self._excess(r, left, least), 0.0) ** 2 - 2.0 * log(2 * len(eighths)), r) for r in eighths]
            worth, rule = max((*rivals, *parts), key=lambda v: v[0])
            if rule not in eighths:  # whose sides by themselves are worth nothing
                worth, rule = self._improved(rule, left, least)
            inside = self.ballot.columns.matching(rule)
            if self._excess(rule, left, least) <= 0 or (out and worth <= 0) or not (inside & left).any():
                break
            if all(overlap(inside, other) < SAME for other in taken):
                out.append(rule)
                taken.append(inside)
            sums = sums - self._pairs(inside & left)
            left = left & ~inside
        return out

    def _eighths(self, left: Flags) -> list[Rule]:
        """The eight rules of the three conditions whose product stands out most in some rows, if more than by chance.

        An error that changes its sign with a third attribute is worth nothing in any pair of conditions, so that no
        pair leads to it. Of a number the condition next to its median takes part, of a category every level.
        """
        middle: dict[str, int] = {}
        for k, c in enumerate(self.conditions):
            if c.kind != "category" and c.up_to is not None and not c.missing:
                old = middle.setdefault(c.variable, k)
                middle[c.variable] = min(old, k, key=lambda j: abs(float(self.met[j].mean()) - 0.5))
        some = [*middle.values(), *(k for k, c in enumerate(self.conditions) if c.levels)]
        rows, names = np.flatnonzero(left), [self.conditions[k].variable for k in some]
        if self.depth < 3 or len(set(names)) < 3:
            return []
        products = Products.of(self.met[np.ix_(np.array(some), rows)].T.astype(np.float32), names, 0)
        b, w, p = self.ballot, self.ballot.weights[rows], self.ballot.edge.p[rows]
        residual = (w * (b.y[rows] - p)).astype(np.float32)[:, None]
        score = np.abs(products.scored(lambda part: residual[part], p * (1.0 - p), w)[:, 0])
        if not len(score) or float(score.max()) ** 2 <= 2.0 * log(2 * len(score)):
            return []
        three = [self.conditions[some[k]] for k in products.kept[products.which[int(np.argmax(score)), 1:]]]
        out: list[Rule] = [()]
        for c in three:
            other = replace(c, levels=(), others=c.levels) if c.levels else replace(c, above=c.up_to, up_to=None)
            out = [extended(rule, side, b.columns) for rule in out for side in (c, other)]
        return out

    def _best_pair(self, sums: Floats, least: int) -> tuple[float, Rule]:
        """The single condition or pair with the largest excess over its price."""
        one, two = (price(terms, len(self.conditions)) for terms in (1, 2))
        worth = np.maximum(self.ballot.excess(sums, least), 0.0) ** 2 - two
        worth[np.diag_indices_from(worth)] += two - one
        a, b = divmod(int(np.argmax(worth)), len(self.conditions))
        rule = extended((), self.conditions[a], self.ballot.columns)
        return float(worth[a, b]), rule if a == b else extended(rule, self.conditions[b], self.ballot.columns)

    def _excess(self, rule: Rule, left: Flags, least: int) -> float:
        inside = np.flatnonzero(self.ballot.columns.matching(rule) & left)
        return float(self.ballot.excess(self.ballot.measures[:, inside].sum(axis=1), least))

    def _worth(self, excess: Floats, terms: Sequence[int]) -> Floats:
        """The square of excesses less their price."""
        paid = np.array([price(t, len(self.conditions)) for t in terms])
        result: Floats = np.where(excess > 0, np.maximum(excess, 0.0) ** 2, -1e9) - paid
        return result

    def _value(self, rule: Rule, left: Flags, least: int) -> float:
        return float(self._worth(np.array([self._excess(rule, left, least)]), [_terms(rule)])[0])

    def _improved(self, rule: Rule, left: Flags, least: int) -> tuple[float, Rule]:
        """Drop, add and move conditions as long as that pays its price."""
        worth = self._value(rule, left, least)
        for _ in range(2 * self.depth):
            best = (worth, rule)
            for step in (*self._shorter(rule), self._longer(rule), *self._moved(rule)):
                rows = np.flatnonzero(self.ballot.columns.matching(step.base) & left)
                values = self.ballot.measures[:, rows]
                parts = _some(np.arange(len(step.rules)), AT_ONCE)
                sums = [values @ step.met(part, rows).T for part in parts] if len(rows) else []
                if sums:
                    result = self._worth(self.ballot.excess(np.hstack(sums), least), [_terms(r) for r in step.rules])
                    at = int(np.argmax(result))
                    best = max(best, (float(result[at]), step.rules[at]), key=lambda v: v[0])
            if best[0] <= worth + 1e-9:  # no step is worth a rounding
                break
            worth, rule = best
        return worth, rule

    def _shorter(self, rule: Rule) -> Iterator[_Step]:
        for k in range(len(rule) if len(rule) > 1 else 0):
            base = rule[:k] + rule[k + 1 :]
            yield _Step(base, (base,), lambda _, rows: np.ones((1, len(rows))))

    def _longer(self, rule: Rule) -> _Step:
        """Add a condition, joined with what the rule asks of the same variable already."""
        named = {c.variable for c in rule}
        kept = [k for k, c in enumerate(self.conditions) if c.variable in named or len(rule) < self.depth]
        made = tuple(
            extended(rule, c, self.ballot.columns)
            if (c := self.conditions[k]).variable in named
            else (*rule, self._alone[k])
            for k in kept
        )
        return _Step(rule, made, lambda part, rows: self.met[np.ix_(np.array(kept)[part], rows)].astype(np.float64))

    def _moved(self, rule: Rule) -> Iterator[_Step]:
        """Put the cut of a number elsewhere."""
        for k, old in enumerate(rule):
            if old.kind == "category" or (old.above is None) == (old.up_to is None) or old.above == np.inf:
                continue
            if old.variable not in self._finer:
                self._finer[old.variable] = conditions_of(self.ballot.columns, FINE, old.variable)
            same = [
                c for c in self._finer[old.variable] if (c.above is None, c.missing) == (old.above is None, old.missing)
            ]
            same = [c for c in same if (c.up_to is None) == (old.up_to is None)]
            made = tuple((*rule[:k], c, *rule[k + 1 :]) for c in same)
            yield _Step(rule[:k] + rule[k + 1 :], made, partial(_selected, self.ballot.columns, same))


@dataclass(frozen=True)
class _Step:
    """Rules that say one thing more than one they share: which of its rows meet some of them, shape (rules, rows)."""

    base: Rule
    rules: tuple[Rule, ...]
    met: Callable[[Rows, Rows], Floats]


def _selected(columns: Columns, conditions: Sequence[Condition], part: Rows, rows: Rows) -> Floats:
    name = conditions[0].variable
    some = Columns(numbers={name: columns.numbers[name][rows]}, codes={}, labels={}, how=columns.how)
    return np.stack([some.select(conditions[k]) for k in part]).astype(np.float64)


# ---- The search in one half of the rows; the outcomes of the other half play no part in it ----

FEWEST = 20  # rows that a rule must have in the half that judges it: a rate of 20 rows is known within about 20 points
GROWN = 25_000  # rows of either half that are read, a uniform sample: beyond it rules gain little and take minutes
DETECTED = 0.5  # overlap from which a rule was found again
GROW = 0x62071
SEARCHES = 5  # again, each without one of as many parts of the growing half
SHARES = (1.0, 0.3, 0.1, 0.03)  # of the rows, those that the models suspect most: a tree is grown on each


@dataclass(frozen=True, kw_only=True)
class Search:
    """Rules, and what was detected about them without the judging half's outcomes."""

    judges: Rows  # rows of the judging half
    model: str  # the one whose predictions trees were grown on
    rules: tuple[Rule, ...]
    sides: tuple[float, ...]  # 1 where more happens than the model says, -1 where less
    stability: tuple[float, ...]  # share of the parts without which the search leads to about the rule as well


def search(q: DetectorInputs, columns: Columns, most: int, depth: int, min_share: float) -> Search:
    """Find at most so many rules in the first of two halves; `columns` are what rules may name of the same rows."""
    # (1) Models fitted to this half by sums, or the user's; the last is the mean of all. They predict the other half.
    d = halves_of(q if q.settings.models is not None else replace(q, pool=CORNERS))
    mine = np.flatnonzero(d.fits.part < 0)
    model = len(d.fits.pool.names) - 1
    # (2) Rows that are read: of this half with their outcomes, and of the other with predictions alone.
    rng = np.random.default_rng([q.settings.seed, GROW])
    at, seen = _sample(rng, np.arange(len(d.rows))), mine[_sample(rng, np.arange(len(mine)))]
    ballot = Ballot(
        columns=columns.rows(seen),
        y=q.sample.y[seen],
        edge=q.edge.rows(seen),
        weights=q.sample.mass_of(seen),
        alternative=q.settings.alternative,
    )
    least = max(round(FEWEST * len(seen) / len(mine)), round(min_share * len(seen)), 1)
    fold = hash_split(q.n, 2 * SEARCHES, q.settings.seed, q.cluster)[seen] // 2  # this half holds the even ones of ten
    hunt = Hunt.of(ballot, fold, least, depth, most)
    # (3) Rules from trees over the other half's covariates and from all pairs, chosen by this half's outcomes.
    fresh = columns.rows(d.rows[at])
    rules = hunt.rules(_nodes(q, fresh, d.rows[at], d.g[model, at], (depth, min_share)))
    # (4) Pairs alone, without each fold: how often the search leads to about the same rules.
    again = [hunt.rules((), f) for f in range(SEARCHES)] if rules else []
    stability = []
    for own in map(fresh.matching, rules):
        result = [any(overlap(own, fresh.matching(r)) >= DETECTED for r in rival) for rival in again]
        stability.append(float(np.mean(result)))
    return Search(
        judges=d.rows,
        model=d.fits.pool.names[model],
        rules=tuple(rules),
        sides=tuple(ballot.side(ballot.columns.matching(r)) for r in rules),
        stability=tuple(stability),
    )


def _sample(rng: np.random.Generator, rows: Rows) -> Rows:
    return rows if len(rows) <= GROWN else np.sort(rng.choice(rows, GROWN, replace=False))


def _nodes(q: DetectorInputs, columns: Columns, rows: Rows, g: Floats, how: tuple[int, float]) -> list[Rule]:
    """Grow trees over some rows on predictions beyond the tolerance, signed, of all and of those suspected most."""
    excess, upper = beyond(g, q.edge.rows(rows), q.settings.alternative)
    binned, (depth, min_share) = Binned.of(columns), how
    least = max(2 * FEWEST * len(rows) // q.n, round(min_share * len(rows)), 1)
    out: dict[Rule, None] = {}
    for share in SHARES:
        cut = float(np.quantile(excess, 1.0 - share))
        target = np.where(excess >= cut, np.where(upper, excess, -excess), 0.0)
        out |= dict.fromkeys(binned.grown(target, q.sample.mass_of(rows), depth, least))
    return list(out)
