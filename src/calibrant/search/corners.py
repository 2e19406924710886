"""Boosting over steps and corners: residual models whose refits to many simulated data sets are a few products.

What a fit needs of the outcomes is the sum of residuals in each step (``x > c``) and corner (``x > c and z <= d``):
cuts and overlaps are fixed without labels. A refit takes as many small steps as `STEPS` says, each to the step or
corner whose residuals add up highest for its size, in the sums alone; so hundreds of data sets are fitted at once.

Which models of the residual there are: the default's by the number of rows, the paper's, and a user's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import BadInput
from calibrant.kernels.runtime import one_thread
from calibrant.search.models import (
    Boosted,
    Fitted,
    FixedModels,
    Floats,
    Forest,
    Learner,
    Models,
    Pool,
    Quadratic,
    Rows,
    Sample,
)
from calibrant.views.features import Features

Singles = NDArray[np.float32]
Codes = NDArray[np.uint8]

# Corners cut at quartiles found a little less than at these shares; 60 steps instead of 10 find corners as often and
# smooth errors less (8 data sets of 60,000 rows each).
TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
CUTS = (TENTHS, (0.1, 0.3, 0.5, 0.7, 0.9), (0.3, 0.5, 0.7), (0.5,))  # shares of the rows at which steps lie
ACROSS = ((0.1, 0.3, 0.7, 0.9), (0.3, 0.7), (0.5,))  # and the sides of corners: the finest that are not too many
STEPS_AT_MOST, AT_MOST = 1_200, 3_000  # steps, and steps and corners: an overlap of any two is kept, 36 MB
STEPS, RATE = (20, 10), 0.2  # steps of the two learners, and how much of what a step promises is taken
PRIOR = 5.0  # rows without residual that each step and corner is thought to hold besides: the smallest are shrunk
SAMPLED = 2_000  # rows, a uniform sample, from which overlaps are taken
FULL = 255  # no upper end of codes
SCATTER = 0xC0A  # of random numbers
PART = 1 << 12  # rows looked at together, for memory


# ---- What is fixed before any outcome is seen: cuts, steps and corners, and how they overlap ----


@dataclass(frozen=True, eq=False)
class Cuts:
    """Steps and corners, chosen without labels."""

    knots: tuple[Floats, ...]  # cuts of each column, rising
    coarse: tuple[Rows, ...]  # which of its knots bound the corners of a column
    pairs: Rows  # shape (r, 2): columns that form corners

    @classmethod
    def of(cls, x: Features) -> Cuts:
        """Cut columns at shares of the rows: finely, or coarsely where there are many of them."""
        width = x.flat.shape[1]
        steps = next((s for s in CUTS if width * len(s) <= STEPS_AT_MOST), CUTS[-1])
        # a column is put in order at a time, for memory; what corners may be cut at is kept of each
        columns = [_cuts(np.sort(x.flat[:, j]), steps) for j in range(width)]
        knots = tuple(own for own, _ in columns)
        pairs = x.pairs[x.pairs[:, 0] != x.pairs[:, 1]]
        for k in range(len(ACROSS)):
            result = cls(knots, tuple(coarse[k] for _, coarse in columns), pairs)
            if len(result.rules) <= AT_MOST:
                break
        return result

    @cached_property
    def alone(self) -> int:
        """Steps, which come before the corners; the first holds every row."""
        return 1 + sum(map(len, self.knots))

    @cached_property
    def rules(self) -> NDArray[np.int64]:
        """Bounds of each step and corner, shape (m, 6): column, first and last code, twice."""
        every = [(0, 0, FULL, 0, 0, FULL)]
        steps = [(j, k + 1, FULL, j, 0, FULL) for j, at in enumerate(self.knots) for k in range(len(at))]
        corners = [
            (i, *a, j, *b)
            for i, j in self.pairs.tolist()
            for a in _sides(self.coarse[i])
            for b in _sides(self.coarse[j])
        ]
        return np.array(every + steps + corners, dtype=np.int64)

    def codes(self, flat: Singles) -> Codes:
        """How many of its column's cuts each value exceeds, shape (columns, n)."""
        out = np.empty((len(self.knots), len(flat)), dtype=np.uint8)
        for j, at in enumerate(self.knots):
            out[j] = np.searchsorted(at, flat[:, j])
        return out

    def member(self, codes: Codes) -> Singles:
        """1 where a step or corner holds a row, shape (m, n)."""
        n = codes.shape[1]
        above = [(c > np.arange(len(at))[:, None]).astype(np.float32) for c, at in zip(codes, self.knots, strict=True)]
        sides = [np.concatenate([v[at], 1.0 - v[at]]) for v, at in zip(above, self.coarse, strict=True)]
        out = np.ones((len(self.rules), n), dtype=np.float32)
        out[1 : self.alone] = np.concatenate(above)
        first = self.alone
        for i, j in self.pairs.tolist():
            a, b = sides[i], sides[j]
            stop = first + len(a) * len(b)
            np.multiply(a[:, None, :], b[None, :, :], out=out[first:stop].reshape(len(a), len(b), n))
            first = stop
        return out


def _cuts(column: NDArray[np.float32], by_variable: tuple[float, ...]) -> tuple[Floats, list[Rows]]:
    """The steps of a sorted column, and which of them bound its corners, from the finest to the coarsest."""
    at_shares = np.unique(column[[int(s * (len(column) - 1)) for s in by_variable]])
    at_shares = at_shares[at_shares < column[-1]]
    if not len(at_shares):  # one below its largest value, if there is any
        at_shares = column[column < column[-1]][-1:]
    knots: Floats = at_shares.astype(np.float64)
    return knots, [_bounds(column, knots, across) for across in ACROSS]


def _bounds(column: NDArray[np.float32], knots: Floats, shares: tuple[float, ...]) -> Rows:
    """Which knots lie at these shares of a sorted column or next to them."""
    wanted = column[[int(s * (len(column) - 1)) for s in shares]]
    result: Rows = np.unique(np.minimum(np.searchsorted(knots, wanted), len(knots) - 1))
    return result[result >= 0]


def _sides(at: Rows) -> list[tuple[int, int]]:
    """The codes above each cut, then those up to it."""
    return [(int(k) + 1, FULL) for k in at] + [(0, int(k)) for k in at]


class Overlaps(NamedTuple):
    """How steps and corners overlap: scaled by the roots of their sizes, and one over these roots."""

    scaled: Singles  # (m, m)
    root: Singles  # (m,)

    @classmethod
    def of(cls, cuts: Cuts, codes: Codes, weights: Floats, sizes: Floats) -> Overlaps:
        """Those of as many rows as a fit sees: sizes are exact, overlaps from a uniform sample.

        Sampled sizes are not enough: a rule that holds one row in a thousand, and few of the sample, would look much
        smaller than it is, so that its noise would stand out from every other rule's residuals.

        `codes` (columns, n). `weights` (n,). `sizes` (m,): weight in each step and corner, of the rows that a fit sees.
        """
        n = codes.shape[1]
        if n > SAMPLED:
            some = np.sort(np.random.default_rng(SCATTER).choice(n, SAMPLED, replace=False))
            codes, weights = codes[:, some], weights[some]
        kept = cuts.member(codes)
        kept *= np.sqrt(weights * (float(sizes[0]) / len(weights))).astype(np.float32)
        both = kept @ kept.T
        # No two sets share more than the smaller holds, whatever the sample says.
        size = sizes.astype(np.float32)
        for i, own in enumerate(size):
            np.minimum(both[i], np.minimum(size, own), out=both[i])
        np.fill_diagonal(both, size)
        root = np.asarray(1.0 / np.sqrt(size + np.float32(PRIOR)), dtype=np.float32)
        both *= root
        both *= root[:, None]
        return cls(both, root)


# ---- A fit: small steps, each to the step or corner whose residuals add up highest for its size ----


def boosted(sums: Singles, overlaps: Overlaps, rules: int, steps: int) -> tuple[Rows, Singles]:
    """The rules that each data set chooses, and how far it goes along each.

    `sums` (sets, m): weighted residuals in each step and corner. `rules`, `steps`: how many of the first rules may be
    chosen, and how often. Returns `rules` (sets, steps). `sizes` (sets, steps): in clusters of a residual; of few
    steps, made larger by what so many leave out.
    """
    root, sets = overlaps.root[:rules], np.arange(len(sums))
    left = sums[:, :rules] * root
    chosen, far = np.empty((len(sums), steps), dtype=np.int64), np.empty((len(sums), steps), dtype=np.float32)
    for s in range(steps):
        best = np.abs(left).argmax(axis=1)
        step = np.float32(RATE) * left[sets, best]
        left -= overlaps.scaled[best, :rules] * step[:, None]
        chosen[:, s], far[:, s] = best, step * root[best]
    return chosen, far / np.float32(1.0 - (1.0 - RATE) ** steps)


@dataclass(frozen=True, eq=False)
class Sum:
    """A fitted model: sizes added up over the rules that hold a row."""

    cuts: Cuts
    bounds: Rows
    far: Singles

    def predict(self, x: Features, _p: Floats, rows: Rows) -> Floats:
        """The predicted residuals of some rows."""
        read, at = np.unique(self.bounds[:, [0, 3]], return_inverse=True)
        bounds = self.bounds.copy()
        bounds[:, [0, 3]] = at.reshape(-1, 2)
        own = Cuts(tuple(self.cuts.knots[j] for j in read), (), self.cuts.pairs[:0])
        return Sum(own, bounds, self.far).add_up(own.codes(x.flat[np.ix_(rows, read)])).astype(np.float64)

    def reading(self, x: Features, variable: str) -> Sum | None:
        """The rules that read a variable."""
        own = [j for j, name in enumerate(x.flat_of) if name == variable]
        kept = np.isin(self.bounds[:, [0, 3]], own).any(axis=1)
        return Sum(self.cuts, self.bounds[kept], self.far[kept]) if kept.any() else None

    def add_up(self, codes: Codes) -> Singles:
        """The predicted residuals of rows of these codes."""
        out = np.zeros(codes.shape[1], dtype=np.float32)
        for (i, lo, hi, j, low, high), far in zip(self.bounds, self.far, strict=True):
            out += far * ((codes[i] >= lo) & (codes[i] <= hi) & (codes[j] >= low) & (codes[j] <= high))
        return out


@dataclass(frozen=True)
class Greedy:
    """Boosting over steps, or over steps and corners."""

    name: str
    steps: int
    corners: bool

    def most(self, x: Features) -> int:
        """All rows: a fit needs sums alone."""
        return len(x.flat)

    def fit(self, s: Sample, rows: Rows, _seed: int) -> Fitted:
        """Fit to some rows."""
        return self.fitted(Summed.of(s, rows))

    def fitted(self, of: Summed) -> Fitted:
        """Fit to sums."""
        rules = len(of.cuts.rules) if self.corners else of.cuts.alone
        chosen, far = boosted(of.sums, of.overlaps, rules, self.steps)
        return Sum(of.cuts, of.cuts.rules[chosen[0]], far[0])


class Summed(NamedTuple):
    """What fits to some rows need: residuals in each step and corner, shape (1, m), and how they overlap."""

    cuts: Cuts
    sums: Singles
    overlaps: Overlaps

    @classmethod
    def of(cls, s: Sample, rows: Rows) -> Summed:
        """Add up the residuals of some rows."""
        cuts, weights = Cuts.of(s.x), s.mass_of(rows)
        parts = [slice(i, i + PART) for i in range(0, len(rows), PART)]  # rows at a time, for memory
        codes = np.hstack([cuts.codes(s.x.flat[rows[part]]) for part in parts])
        residual = (s.y[rows] - s.p[rows]) * weights
        both, added = np.stack([residual, weights], axis=1).astype(np.float32), np.zeros((len(cuts.rules), 2))
        with one_thread():
            for part in parts:
                added += cuts.member(codes[:, part]) @ both[part]
            overlaps = Overlaps.of(cuts, codes, weights, added[:, 1])
        return cls(cuts, added[:, 0].astype(np.float32)[None], overlaps)


@dataclass(frozen=True)
class Boosting(Pool):
    """Learners over the same steps and corners, fitted to the same sums."""

    def fitted(self, s: Sample, rows: Rows, _seed: int) -> tuple[Fitted, ...]:
        """Fit the learners to all of some rows."""
        summed = Summed.of(s, rows)
        return tuple(learner.fitted(summed) for learner in self.learners if isinstance(learner, Greedy))


CORNERS = Boosting(
    (Greedy("steps", STEPS[0], False), Greedy("corners", STEPS[1], True)),
    ("steps", "corners", "both"),
    ((1.0, 0.0), (0.0, 1.0), (0.5, 0.5)),
)


# ---- Which models there are: the default's by the number of rows, the paper's, and a user's own ----

FEW = 2_000  # rows up to which the pool with a tolerance has corners too, and slow fits are repeated
TREES = 100  # of each of the paper's forests: with 2,000, as in the authors' program, most of the time goes into them


def _each(k: int) -> tuple[tuple[float, ...], ...]:
    """The mix in which each of k learners is a model by itself."""
    return tuple(tuple(float(i == j) for j in range(k)) for i in range(k))


def _each_and_mean(k: int) -> tuple[tuple[float, ...], ...]:
    """The mix in which each of k learners is a model, and their mean another."""
    return (*_each(k), (1.0 / k,) * k)


# Boosted trees, corners and a regression err differently, and their mean errs least. With few rows the regression of
# all terms of degree two needs a strong ridge: with C = 10 its noise outweighs what it finds, and that of its mean with
# the others (docs/evidence/detect-*.csv).
CORNERED = Pool(
    (Boosted("boosted", 50, 0.03, 8), Quadratic("quadratic", 0.1), Greedy("corners", STEPS[1], True)),
    ("boosted", "logistic", "corners", "mean"),
    _each_and_mean(3),
)
# With more rows, of what was tried: 4 to 6 leaves find steps and 12 to 20 three attributes at once somewhat more often;
# larger steps and bags find less, and larger leaves lose small subgroups.
BOOSTED = Pool(
    (Boosted("boosted", 50, 0.03, 8), Quadratic("quadratic", 10.0)),
    ("boosted", "logistic", "both"),
    ((1.0, 0.0), (0.0, 1.0), (0.5, 0.5)),
)


def pool_of(detector: str, models: Models | None, n: int) -> Pool:
    """The default models for so many rows, the paper's, or the user's with their mean."""
    if models is not None:
        return _users(models)
    if detector == "default":
        return CORNERED if n <= FEW else BOOSTED
    # Appendix C of the paper: half of the features or all, depth 4 or 8; a ridge of C = 1000, 100 or 10.
    forests = [Forest(f"forest {s:g} {d}", TREES, s, d, 1) for s in (0.5, 1.0) for d in (4, 8)]
    logistic = [Quadratic(f"logistic C={c:g}", c) for c in (1000.0, 100.0, 10.0)]
    learners: tuple[Learner, ...] = (*forests, *logistic)
    return Pool(learners, tuple(m.name for m in learners), _each(len(learners)))


def _is_estimator(model: object) -> bool:
    """Whether this is an object that can be cloned, fitted and asked."""
    return not isinstance(model, type) and all(hasattr(model, name) for name in ("get_params", "fit", "predict"))


def _users(models: object) -> Pool:
    from sklearn.base import is_classifier

    if isinstance(models, str) or not isinstance(models, Iterable):
        raise BadInput(f"models={models!r}: pass a list of pairs (name, scikit-learn estimator)")
    pairs: list[Any] = list(models)
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and _is_estimator(pair[1])):
            raise BadInput(f"models: {pair!r} is not a pair (name, scikit-learn estimator)")
        if is_classifier(pair[1]) and not hasattr(pair[1], "predict_proba"):
            raise BadInput(f"models: {pair[0]!r} has no predict_proba: calibrate it, or pass a regressor")
    names = [name for name, _ in pairs]
    if not pairs or len(set(names)) < len(names):
        raise BadInput(f"models names {names}: pass at least one pair (name, estimator), each name once")
    learners = tuple(FixedModels(name, estimator) for name, estimator in pairs)
    if len(learners) == 1:
        return Pool(learners, tuple(names), ((1.0,),))
    return Pool(learners, (*names, "mean"), _each_and_mean(len(learners)))
