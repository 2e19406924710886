"""Columns that reproduce the outcome: what is known only once the outcome is, and no attribute of anybody.

A column, alone or with another (the winner and the side that plays at home), is held against the label by a rule that
is fitted on other rows, and against the best that a threshold on the score can do: where it makes next to no error, and
the score many, it is a copy, a mirror, or a consequence of the outcome. No rule can tell a copy with some errors from
an honest test with as many: such a column is asked about, and kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Kind = Literal["leak", "ask"]
Way = Literal["values", "levels", "order", "equality", "one outcome"]

MOST = 10_000  # rows of each label that are read
SMALL = 8  # rows of the rarer label, under which nothing is said
FOLDS = 5
LEAVES = 4  # of a number's tree
LEVELS = 30  # of a text, the others together; numbers of at most so many values are read as levels too
RARE = 3  # rows of a level, under which it stands with the others
LIMIT, SIGN = 0.10, 0.01  # of the upper limit of the error, and of the sign test against the score
# Largest held-out error, and its largest ratio to the score's.
LEAK, ASK = (0.025, 0.5), (0.045, 0.6)
GRADED = 2.5  # standard errors by which the column still orders the labels within its own classes
JOINT = 0.12  # error in sample over which a pair is not looked at
SCREENED, ROUGHLY = 200, 0.25  # rows of each label that rule most pairs out, and the error from which they do
ALONE = 0.15  # error of a column by itself under which it joins no pair
ONE_OUTCOME, TIMES, LEAST, ELSEWHERE = 0.005, 10, 20, 0.6  # see `_one_outcome`
VIEWS = 3  # of a column in which levels of one outcome are looked for
GRID = 64  # of quantiles of each rate, whose mean has an upper limit
QUANTILE = 0.95
WAYS = {"levels": "its levels together", "order": "which is larger", "equality": "whether both are the same"}
TINY = 1e-300
ROUND, WIDE = 0.05, 20.0  # of thresholds; times the usual step between scores, the widest step at a threshold
SAME = 1e-3  # of its spread, by which a number may differ from the score
SALT = 0x1EA4


@dataclass(frozen=True)
class Column:
    """A column as it is read here: a number, levels, or both where a number has few values."""

    number: Floats | None = None  # -inf where missing
    level: Ints | None = None  # from 0; those of few rows together, the missing the last
    text: Ints | None = None  # codes that texts of all columns share, so that equal texts have equal codes

    @classmethod
    def of_number(cls, values: Floats) -> Column:
        """A number, a date or a truth value; NaN where missing."""
        number = np.where(np.isnan(values), -np.inf, values)  # the missing lie lowest
        different, level = np.unique(number, return_inverse=True)
        return cls(number, level.reshape(-1).astype(np.int64) if len(different) <= LEVELS else None)

    @classmethod
    def of_text(cls, codes: Ints) -> Column:
        """Texts by codes that all columns of texts share; negative where missing."""
        different, level, count = np.unique(codes, return_inverse=True, return_counts=True)
        rank = np.empty(len(different), dtype=np.int64)
        rank[np.argsort(-count, kind="stable")] = np.arange(len(different))
        rank[count < RARE] = LEVELS
        level = np.minimum(rank[level.reshape(-1)], LEVELS)
        level[codes < 0] = LEVELS + 1
        return cls(level=level, text=codes)

    def repeats(self, p: Floats) -> bool:
        """Whether it is the score again, its complement, percent or log-odds, or a decision at a round threshold of it.

        Not what the score was made from: the one variable of a model is linear in the score, too, but is not equal.
        """
        if len(np.unique(p)) <= LEVELS:  # of few scores, a group may well have one
            return False
        if self.level is not None:
            different, code, count = np.unique(self.level, return_inverse=True, return_counts=True)
            if len(different) != 2 or count.min() < LEAST:
                return False
            ends = sorted((p[code == k].min(), p[code == k].max()) for k in (0, 1))
            below, above = ends[0][1], ends[1][0]
            round_one = below <= np.round((below + above) / 2.0 / ROUND) * ROUND <= above
            return bool(below <= above and above - below <= WIDE * np.ptp(p) / len(np.unique(p)) and round_one)
        if self.number is None or not np.isfinite(self.number).all() or len(np.unique(self.number)) <= LEVELS:
            return False
        inside = np.clip(p, TINY, 1.0 - 1e-16)
        odds = np.log(inside / (1.0 - inside))
        forms = (p, 1.0 - p, 100.0 * p, 100.0 - 100.0 * p, odds, -odds)
        return any(np.abs(self.number - form).max() <= SAME * np.ptp(form) for form in forms)

    def views(self) -> Iterator[Ints]:
        """Yield its levels; whether it is missing; and its most frequent level against all others."""
        gone = np.isneginf(self.number) if self.number is not None else None
        if self.level is not None:
            yield self.level
            gone = self.level == LEVELS + 1 if gone is None else gone
        if gone is not None and 0 < gone.sum() < len(gone):
            yield gone.astype(np.int64)
        if self.level is not None and self.level.max() > 1:
            yield (self.level != np.bincount(self.level).argmax()).astype(np.int64)

    def at(self, rows: Ints) -> Column:
        """The same of some rows, its levels as they are."""
        number, level, text = self.number, self.level, self.text
        return Column(
            None if number is None else number[rows],
            None if level is None else level[rows],
            None if text is None else text[rows],
        )

    def part(self, rows: Ints) -> Column:
        """The same of some rows, whose levels are counted again."""
        if self.text is not None:
            return Column.of_text(self.text[rows])
        return Column() if self.number is None else Column.of_number(self.number[rows])


@dataclass(frozen=True)
class Leak:
    """A column, or two, that reproduce the outcome."""

    columns: tuple[str, ...]
    kind: Kind  # "leak": known only with the outcome; "ask": that, or an honest column that predicts very well
    way: Way  # which facts of the columns reproduce it: values, levels, their order, whether they are equal
    error: float  # mean of the error rates of both labels, on rows that the rule was not fitted on
    limit: float  # its upper 95 % limit
    error_of_score: float  # of the score's best threshold, on the rows it was chosen on
    p_value: float  # of the sign test: rows that the column has right and the score wrong, against the converse
    rows: int  # with one outcome alone, where it is a level that reproduces it; all that were read, else

    def says(self, *, alone: bool = False) -> str:
        """How well, in a few words; `alone`: held against no score."""
        if self.way == "one outcome":
            return f"{self.rows:,} rows, those of some levels, have one outcome alone"
        pair = f"{WAYS[self.way]}, {' and '.join(map(repr, self.columns))}, " if len(self.columns) > 1 else ""
        score = "" if alone else f", where the score's best is {100 * self.error_of_score:.1f}%"
        return f"{pair}{100 * self.error:.1f}% wrong{score}"


def leaks(columns: Mapping[str, Column], y: NDArray[np.int8], p: Floats, seed: int = 0) -> list[Leak]:
    """Columns and pairs of columns that reproduce the outcome.

    Parameters
    ----------
    columns : mapping of str to Column
        Of n rows each; neither label nor score.
    y : int8 array of shape (n,)
    p : float64 array of shape (n,)
        The score, or any order of it.
    seed : int
        Of the rows that are read where there are more than 10,000 of a label, and of the folds.

    Notes
    -----
    **Method.** Stratified folds. A number is cut by a tree of four leaves, levels are a table of rates, with labels of
    equal weight. ``leak``: the held-out balanced error is at most .025 and half the score's best, its upper limit at
    most .10, and the sign test against the score rejects at .01. ``ask``: at most .045 and .6 of the score's, and the
    column does not order labels within its own classes, as graded predictors do; or levels of at least 20 rows have one
    outcome alone where rows of like scores expect ten times as many of the other as chance explains. Then pairs of
    columns that reproduce nothing alone: whether they are equal, which is larger, and their joint levels.
    **Guarantee.** None: rates are measured (docs/data.md).
    **Cost.** O(c n log n + c^2 n) for c columns and at most 20,000 rows.
    """
    rng = np.random.default_rng([SALT, seed])
    if min(y.sum(dtype=np.int64), (1 - y).sum(dtype=np.int64)) < SMALL:
        return []
    rows = np.sort(np.concatenate([rng.permutation(np.flatnonzero(y == v))[:MOST] for v in (0, 1)]))
    against = Against.of(y[rows].astype(np.int64), p[rows], rng)
    read = {name: column.part(rows) for name, column in columns.items()}
    errors, result = {}, []
    for name, column in read.items():
        errors[name], leak = against.alone(name, column)
        result += [leak] if leak else []
    rest = {name: column for name, column in read.items() if errors[name] >= ALONE}
    pairs = (against.judged(*pair) for pair in against.pairs(rest))
    return [*result, *(leak for leak in pairs if leak)]


@dataclass(frozen=True)
class Against:
    """Labels and scores that columns are held against."""

    y: Ints
    fold: Ints
    weight: Floats  # by which both labels count alike
    error_of_score: float
    class_of_score: Ints
    rate: Floats  # of events among rows of like scores

    @classmethod
    def of(cls, y: Ints, p: Floats, rng: np.random.Generator) -> Against:
        fold = np.empty(len(y), dtype=np.int64)
        for v in (0, 1):
            rows = rng.permutation(np.flatnonzero(y == v))
            fold[rows] = np.arange(len(rows)) % FOLDS
        weight = np.where(y == 1, 0.5 / y.sum(), 0.5 / (1 - y).sum())
        # (1) the score's best threshold in sample, in either direction
        order = np.argsort(p, kind="stable")
        last = np.append(np.diff(p[order]) > 0, True)
        above = np.cumsum(np.where(y == 1, weight, -weight)[order]) + 0.5  # events at most here, others beyond
        wrong = np.where(last, np.minimum(above, 1.0 - above), np.inf)
        k = int(wrong.argmin())
        high = p > p[order][k]
        guess = high if above[k] <= 0.5 else ~high
        # (2) the rate of events in about a hundred cells of the score
        cells = min(len(p) // LEAST, 100)
        cell = np.searchsorted(p[order], p) * max(cells, 1) // len(p)
        rate = (np.bincount(cell, y) / np.maximum(np.bincount(cell), 1))[cell]
        return cls(y, fold, weight, float(min(wrong[k], 0.5)), guess.astype(np.int64), rate)

    def alone(self, name: str, column: Column) -> tuple[float, Leak | None]:
        """The smallest error of one column, and what it is judged as."""
        ways: list[tuple[Way, Floats]] = []
        if column.number is not None:
            ways.append(("values", self._by_tree(column.number)))
        if column.level is not None:
            ways.append(("levels", self._by_level(column.level)))
        way, q = min(ways, key=lambda w: self.error(w[1]))
        ordering = q if column.number is None or way == "levels" else column.number
        detected = self._verdict((name,), way, q, ordering)
        return self.error(q), detected or next(filter(None, (self._one_outcome(name, v) for v in column.views())), None)

    def judged(self, names: tuple[str, ...], way: Way, level: Ints) -> Leak | None:
        """What two columns are judged to be, by a level that both make."""
        q = self._by_level(level)
        return self._verdict(names, way, q, q)

    def error(self, q: Floats) -> float:
        """The balanced error of classes by a probability."""
        return float(self.weight @ ((q > 0.5) != (self.y == 1)))

    def _by_level(self, level: Ints) -> Floats:
        """Balanced probability of an event by level, from rows of other folds."""
        q = np.full(len(level), 0.5)
        many = int(level.max()) + 1
        scaled = self.weight * len(level)
        for f in range(FOLDS):
            fit = self.fold != f
            events = np.bincount(level[fit], (scaled * self.y)[fit], many)
            every = np.bincount(level[fit], scaled[fit], many)
            q[~fit] = ((events + 0.5) / (every + 1.0))[level[~fit]]
        return q

    def _by_tree(self, number: Floats) -> Floats:
        """Balanced probability of an event by a tree of four leaves, from rows of other folds."""
        q = np.full(len(number), 0.5)
        order = np.argsort(number, kind="stable")
        least = max(3, len(number) // 500)
        for f in range(FOLDS):
            fit = order[self.fold[order] != f]
            ends, rates = grown(number[fit], self.weight[fit] * self.y[fit], self.weight[fit], least)
            out = self.fold == f
            q[out] = rates[np.searchsorted(ends, number[out], side="left")]
        return q

    def _verdict(self, names: tuple[str, ...], way: Way, q: Floats, ordering: Floats) -> Leak | None:
        guess = (q > 0.5).astype(np.int64)
        wrong = guess != self.y
        error, limit = float(self.weight @ wrong), self._limit(wrong)
        wins = int((~wrong & (self.class_of_score != self.y)).sum())
        losses = int((wrong & (self.class_of_score == self.y)).sum())
        p_value = sign_test(wins, losses)
        if limit > LIMIT or p_value > SIGN:
            return None
        for kind, (most, ratio) in (("leak", LEAK), ("ask", ASK)):
            if error <= most and error <= ratio * self.error_of_score:
                if self._graded(ordering, guess) >= GRADED:  # it orders labels where it has decided, as no copy does
                    if kind == "ask":
                        return None
                    continue
                return Leak(names, kind, way, error, limit, self.error_of_score, p_value, len(q))  # type: ignore[arg-type]
        return None

    def _limit(self, wrong: Flags) -> float:
        """The upper limit of the mean of two error rates: Clopper and Pearson's laws of both, added up."""
        from scipy.special import betaincinv

        at = (np.arange(GRID) + 0.5) / GRID
        parts = []
        for v in (0, 1):
            rows, errors = int((self.y == v).sum()), int(wrong[self.y == v].sum())
            parts.append(betaincinv(errors + 1.0, rows - errors, at) if errors < rows else np.ones(GRID))
        return float(np.quantile(np.add.outer(*parts) / 2.0, QUANTILE))

    def _graded(self, ordering: Floats, guess: Ints) -> float:
        """How many standard errors the column orders labels within its own classes by: copies do not, tests do."""
        z = [0.0]
        for v in (0, 1):
            x, y = ordering[guess == v], self.y[guess == v]
            events, others = int(y.sum()), int((1 - y).sum())
            if min(events, others) >= 2 and x.min() < x.max():
                z.append(abs(area(x, y) - 0.5) / np.sqrt((len(y) + 1) / 12.0 / events / others))
        return float(max(z))

    def _one_outcome(self, name: str, level: Ints) -> Leak | None:
        """Levels that have one outcome alone, though rows of like scores have the other.

        Such as a reason that is missing without event. They are no more than asked about, and not even that where the
        column predicts elsewhere too, as a graded one does.
        """
        n, events, expected = (np.bincount(level, w) for w in (np.ones(len(level)), self.y, self.rate))
        need = -np.log(ONE_OUTCOME / VIEWS / max(int((n >= LEAST).sum()), 1)) * TIMES
        one = (n >= LEAST) & (((events == n) & (n - expected >= need)) | ((events == 0) & (expected >= need)))
        if not one.any():
            return None
        q, rest = self._by_level(level), ~one[level]
        elsewhere = self.y[rest]
        if 0 < elsewhere.sum() < len(elsewhere) and area(q[rest], elsewhere) > ELSEWHERE:
            return None
        wrong = (q > 0.5) != (self.y == 1)
        rows = int(n[one].sum())
        return Leak((name,), "ask", "one outcome", self.error(q), self._limit(wrong), self.error_of_score, 1.0, rows)

    def pairs(self, columns: Mapping[str, Column]) -> Iterator[tuple[tuple[str, str], Way, Ints]]:
        """Yield pairs of columns whose equality, order or joint levels tell the label in sample."""
        # (1) some rows of either label rule most pairs out: numbers by which is larger, all at once
        events, others = np.flatnonzero(self.y == 1), np.flatnonzero(self.y == 0)
        some = np.concatenate([rows[:: -(-len(rows) // SCREENED)] for rows in (events, others)])
        numbers = {k: c.number[some] for k, c in columns.items() if c.number is not None and c.level is None}
        out = {*self._unordered(numbers, self.y[some])}
        few = {k: c.at(some) for k, c in columns.items()}
        y = self.y[some]
        weight = np.where(y == 1, 0.5 / y.sum(), 0.5 / (1 - y).sum())
        # (2) the others on these rows, and then on all
        for a, b in itertools.combinations(columns, 2):
            if (a, b) in out or (made := joint(few[a], few[b], len(self.y))) is None:
                continue
            if (a not in numbers or b not in numbers) and _in_sample(made[1], y, weight) > ROUGHLY:
                continue
            whole = joint(columns[a], columns[b], len(self.y))
            if whole is not None and _in_sample(whole[1], self.y, self.weight) <= JOINT:
                yield (a, b), *whole

    def _unordered(self, numbers: Mapping[str, Floats], y: Ints) -> Iterator[tuple[str, str]]:
        """Yield the pairs of numbers of which, on some rows, which is larger does not tell the label."""
        names = [*numbers]
        if len(names) < 2:
            return
        x = np.column_stack([numbers[name] for name in names])
        sides = np.stack([np.where(y == v, 0.5 / (y == v).sum(), 0.0) for v in (0, 1)])
        gone = np.isneginf(x)
        for j in range(len(names) - 1):
            lacks = gone[:, [j]] | gone[:, j + 1 :]
            above, below = (x[:, [j]] > x[:, j + 1 :]) & ~lacks, (x[:, [j]] < x[:, j + 1 :]) & ~lacks
            parts = np.stack([sides @ part for part in (lacks, above, below)])
            parts = np.concatenate([parts, 0.5 - parts.sum(axis=0, keepdims=True)])
            error = parts.min(axis=1).sum(axis=0)
            yield from ((names[j], names[j + 1 + k]) for k in np.flatnonzero(error > ROUGHLY))


def _in_sample(level: Ints, y: Ints, weight: Floats) -> float:
    """The error of a table of levels on the rows it is made of."""
    one, other = np.bincount(level, weight * y), np.bincount(level, weight * (1 - y))
    return float(np.minimum(one, other).sum())


def joint(a: Column, b: Column, n: int) -> tuple[Way, Ints] | None:
    """What two columns say together, as levels; None where they cannot be compared."""
    if a.level is None and b.level is None and a.number is not None and b.number is not None:
        gone = np.isneginf(a.number) | np.isneginf(b.number)
        return "order", np.where(gone, 3, 1 + (a.number > b.number) - (a.number < b.number)).astype(np.int64)
    if a.level is not None and b.level is not None:
        many = int(b.level.max()) + 1
        if (int(a.level.max()) + 1) * many <= min(LEVELS, n / 10):
            return "levels", a.level * many + b.level
    if a.text is not None and b.text is not None:
        return "equality", (a.text == b.text).astype(np.int64)
    if a.number is not None and b.number is not None:
        return "order", (a.number == b.number) + 2 * (a.number > b.number).astype(np.int64)
    return None


def grown(x: Floats, events: Floats, every: Floats, least: int) -> tuple[Floats, Floats]:
    """The ends and the rates of the leaves of a tree over one sorted variable: best first, by Gini's impurity."""
    a, w = np.append(0.0, np.cumsum(events)), np.append(0.0, np.cumsum(every))
    new = np.append(np.flatnonzero(x[1:] != x[:-1]) + 1, len(x))  # where a new value begins

    def split(low: int, high: int) -> tuple[float, int, int, int]:
        """The gain of the best split of a leaf, where it is, and the leaf."""
        at = new[np.searchsorted(new, low + least) : np.searchsorted(new, high - least, side="right")]
        if len(at) == 0:
            return -np.inf, low, low, high
        left, right, mass, rest = a[at] - a[low], a[high] - a[at], w[at] - w[low], w[high] - w[at]
        gain = (left**2 + (mass - left) ** 2) / mass + (right**2 + (rest - right) ** 2) / rest
        whole, total = a[high] - a[low], w[high] - w[low]
        k = int(gain.argmax())
        return float(gain[k] - (whole**2 + (total - whole) ** 2) / total), int(at[k]), low, high

    leaves = [split(0, len(x))]
    while len(leaves) < LEAVES:
        gain, at, low, high = max(leaves)
        if gain <= 1e-12:
            break
        leaves.remove((gain, at, low, high))
        leaves += [split(low, at), split(at, high)]
    bounds = sorted((low, high) for *_, low, high in leaves)
    ends = [between(x[high - 1], x[high]) for _, high in bounds[:-1]]
    return np.array(ends), np.array([(a[high] - a[low]) / (w[high] - w[low]) for low, high in bounds])


def between(a: float, b: float) -> float:
    """A number from a on and less than b: their middle where there is one."""
    middle = a / 2.0 + b / 2.0
    return float(middle if a < middle < b and np.isfinite(middle) else a)


def area(x: Floats, y: Ints) -> float:
    """The area under the ROC curve; ties count one half."""
    order = np.argsort(x, kind="stable")
    _, first, count = np.unique(x[order], return_index=True, return_counts=True)
    rank = np.repeat(first + (count + 1) / 2.0, count)
    events = y[order] == 1
    m = int(events.sum())
    return float((rank[events].sum() - m * (m + 1) / 2.0) / (m * (len(y) - m)))


def sign_test(wins: int, losses: int) -> float:
    """The chance of so many wins or more where either is as likely."""
    from scipy.special import bdtrc

    return float(bdtrc(wins - 1, wins + losses, 0.5)) if wins > 0 else 1.0


def coded(texts: Sequence[NDArray[np.object_]]) -> list[Ints]:
    """Codes that columns of texts share: equal texts have equal codes; None is missing."""
    book: dict[object, int] = {}
    return [np.array([-1 if v is None else book.setdefault(v, len(book)) for v in t], dtype=np.int64) for t in texts]
