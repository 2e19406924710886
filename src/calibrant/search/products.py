"""Products of three columns, and the evidence of steps, corners and products together.

An error that changes its sign with a third attribute is in no step and in no corner of two columns; a product of the
three adds all of it up. No label chooses a product, so that data and simulated outcomes are exchangeable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.draws import Draws, Ids, outcomes
from calibrant.kernels.runtime import one_thread
from calibrant.search.detectors import DetectorInputs
from calibrant.search.models import Floats, Rows
from calibrant.stats.nulls import ranked

Singles = NDArray[np.float32]

AT_MOST = 3_000  # products: those of the most balanced columns, and of equally balanced ones some at random
COLUMNS = 128  # columns, the most balanced, whose triples are listed
FEW = 64  # products looked at together where rows come in clusters
PART = 1 << 10  # rows looked at together, for memory
LEAST = 4.0  # null variance, in events, from which on a feature counts: 20 rows at a rate of 0.3
LEAST_CLUSTERS = 20.0  # effective clusters, of Kish, from which on a product of rows in clusters counts
SPREAD = 20.0  # prior variance of a standardised effect, in the Bayes factor
SHARES = {"steps": 0.4, "corners": 0.4, "products": 0.2}  # in the mean Bayes factor
# Of the models' largest sum and of the mean Bayes factor in the smaller of the two p-values. Chosen on simulated data
# sets, and measured on others (docs/evidence/detect-*.csv).
WEIGHTS = (0.6, 0.4)
SCATTER = 0x3C0  # of random numbers


@dataclass(frozen=True, eq=False)
class Products:
    """Products of three columns of different variables, each centred: signs at the median, and ranks where few."""

    columns: Singles  # shape (kinds, columns, n): mean 0, variance 1
    which: Rows  # shape (products, 4): kind, and three columns
    kept: Rows  # shape (columns,): which of the columns given each is
    triples: int  # triples of columns there are

    @classmethod
    def of(cls, flat: Singles, variables: Sequence[str], seed: int) -> Products:
        """Choose products without labels; `flat` (n, q), `variables` (q,): the variable of each column."""
        code = np.unique(np.asarray(variables, dtype=str), return_inverse=True)[1]
        sides = [_sides(column) for column in flat.T]
        share = np.array([s.mean() for s in sides])
        balance = (4.0 * share * (1.0 - share)).round(1)
        varied = np.flatnonzero((share > 0.0) & (share < 1.0))
        kept = np.sort(varied[np.argsort(-balance[varied], kind="stable")[:COLUMNS]])
        # Every triple of columns of three variables, shape (triples, 3).
        of, (i, j, k) = code[kept], np.ogrid[: len(kept), : len(kept), : len(kept)]
        every = np.argwhere((i < j) & (j < k) & (of[i] != of[j]) & (of[i] != of[k]) & (of[j] != of[k]))
        # (1) Of more triples than products, the most balanced; of equally balanced ones a random part.
        scattered, own = np.random.default_rng([SCATTER, seed]).random(len(every)), balance[kept]
        order = np.lexsort((scattered, -own[every].prod(axis=1).round(1)))[:AT_MOST]
        chosen = every[np.sort(order)]
        # (2) Ranks too, of triples in which a column has more than two values, where there is room for both.
        kinds, parts = [[_standardised(sides[j]) for j in kept]], [chosen]
        if 2 * len(every) <= AT_MOST:
            several = np.array([len(np.unique(flat[:, j])) > 2 for j in kept], dtype=bool)
            kinds.append([_standardised(_ranks(flat[:, j])) if several[a] else kinds[0][a] for a, j in enumerate(kept)])
            parts.append(chosen[several[chosen].any(axis=1)])
        which = np.concatenate([np.insert(part, 0, kind, axis=1) for kind, part in enumerate(parts)])
        columns = np.array(kinds, dtype=np.float32).reshape(len(kinds), len(kept), len(flat))
        return cls(columns, which, kept, _count(code[varied]))

    def values(self, rows: slice) -> Singles:
        """The products of some rows, shape (products, rows)."""
        return self._some(slice(None), rows)

    def _some(self, products: slice, rows: slice | Rows) -> Singles:
        """Some of the products, of some rows."""
        own, (kind, *three) = self.columns[:, :, rows], self.which[products].T
        out: Singles = own[kind, three[0]] * own[kind, three[1]]
        out *= own[kind, three[2]]
        return out

    @classmethod
    def chosen(cls, q: DetectorInputs, rows: Rows) -> Products | None:
        """The products that are tested in some rows; None where none is.

        None one-sided, with a tolerance or a least size, of which a product says nothing; none of fewer than three
        variables, the score among them.
        """
        s, x = q.settings, q.sample.x
        if s.alternative != "two-sided" or q.edge.tolerance > 0.0 or s.min_size > 0.0:
            return None
        made = cls.of(x.flat[rows], x.flat_of, s.seed)
        return made if len(made.which) else None

    def facts(self, q: DetectorInputs, scores: Singles, largest: str) -> dict[str, Any]:
        """Of how many triples a product is tested, and the variables of the product with the largest score in the data.

        `scores` (products, sets): 0 in all sets where there are too few events for a product to count. `largest`: the
        features with the largest part of the mean Bayes factor, "steps", "corners" or "products".
        """
        strongest = self.kept[self.which[int(np.argmax(np.abs(scores[:, 0]))), 1:]]
        tested = np.unique(self.which[scores.any(axis=1), 1:], axis=0)
        names = tuple(q.sample.x.flat_of[j] for j in strongest)
        facts = {"products": len(tested), "triples": self.triples}
        return {**facts, "largest": largest, "strongest": names}

    def scores(self, q: DetectorInputs, rows: Rows, draws: int, salt: int) -> Singles:
        """The standardised sums of residuals times products in some rows, those of `chosen`, shape (products, sets).

        The first set is the data; the others are the first draws of these rows, simulated at the score.
        """
        p, w, y = q.edge.p[rows], q.sample.mass_of(rows), q.sample.y[rows] > 0

        def residual(part: slice) -> Singles:
            both = np.column_stack([y[part], q.simulated(rows[part], p[part], Draws(0, draws, salt))])
            return np.asarray((both - p[part, None]) * w[part, None], dtype=np.float32)

        if q.cluster is not None:
            return self._of_clusters((y - p) * w, q.clusters_of(rows), draws, salt)
        return self.scored(residual, p * (1.0 - p), w)

    def _of_clusters(self, residual: Floats, clusters: tuple[Rows, Ids], draws: int, salt: int) -> Singles:
        """The same where a draw gives each cluster a random sign, shape (products, 1 + draws).

        A sum is divided by the root of the squares that clusters add to it: signs do not change those. So all signs
        are treated alike, those of the data too. `residual` (n,), weighted. `clusters`: of each row, and identities.
        """
        cluster, ids = clusters
        sums = np.empty((len(self.which), len(ids)), dtype=np.float32)
        order = np.argsort(cluster, kind="stable")
        starts = np.searchsorted(cluster[order], np.arange(len(ids)))
        for first in range(0, len(sums), FEW):
            part = slice(first, first + FEW)
            own = self._some(part, order) * residual[order].astype(np.float32)
            sums[part] = np.add.reduceat(own, starts, axis=1)
        coins = outcomes(ids, np.full(len(ids), 0.5), 0, draws, salt)
        signs = np.column_stack([np.ones(len(ids)), 2.0 * coins - 1.0]).astype(np.float32)
        squares, fourths = ((sums.astype(np.float64) ** k).sum(axis=1) for k in (2, 4))
        with one_thread():
            return standardised(sums @ signs, squares, fourths, LEAST_CLUSTERS)

    def scored(self, residual: Callable[[slice], Singles], spread: Floats, weight: Floats) -> Singles:
        """The standardised sums of any residuals of the rows times products, shape (products, sets).

        `residual`: of some rows the weighted ones, shape (rows, sets). `spread`, `weight` (n,): null variance of an
        outcome, and weight of a row.
        """
        sums: Singles | float = 0.0
        squares, fourths = np.zeros(len(self.which)), np.zeros(len(self.which))
        second, fourth = ((weight**k * spread).astype(np.float32) for k in (2, 4))
        with one_thread():
            for first in range(0, len(weight), PART):
                part = slice(first, first + PART)
                values = self.values(part)
                sums = sums + values @ residual(part)
                np.square(values, out=values)
                squares += values @ second[part]
                np.square(values, out=values)
                fourths += values @ fourth[part]
        return standardised(np.asarray(sums), squares, fourths)


def standardised(sums: Singles, squares: Floats, fourths: Floats, least: float = LEAST) -> Singles:
    """Sums over their null deviation, shape (features, data sets); 0 of features that do not count.

    `squares`, `fourths` (features,): sums of squared and fourth powers of weighted features times the null variance of
    an outcome; the square of the one over the other is the null variance in events, by Kish's effective number.
    """
    kept = squares**2 >= least * np.maximum(fourths, 1e-300)
    scale = np.where(kept, 1.0 / np.sqrt(np.where(kept, squares, 1.0)), 0.0)
    out: Singles = sums * scale.astype(np.float32)[:, None]
    return out


def log_factor(z: Singles) -> Floats:
    """The logarithm of the mean Bayes factor of normal effects against none, over the features that count.

    `z` (features, data sets). The result has shape (data sets,).
    """
    z = z[z.any(axis=1)]
    if not len(z):
        return np.full(z.shape[1], -np.inf)
    exponent = (0.5 * SPREAD / (1.0 + SPREAD)) * z.astype(np.float64) ** 2
    top = exponent.max(axis=0)
    mean: Floats = top + np.log(np.exp(exponent - top).mean(axis=0)) - 0.5 * np.log1p(SPREAD)
    return mean


def pooled(factors: Mapping[str, Floats]) -> tuple[Floats, str]:
    """The logarithm of the weighted mean of Bayes factors, shape (data sets,), and which is largest in the data."""
    each = {name: f + np.log(SHARES[name]) for name, f in factors.items()}
    total: Floats = np.logaddexp.reduce(list(each.values()), axis=0)
    largest = max(each, key=lambda name: float(each[name][0]))
    return np.where(np.isfinite(total), total, 0.0), largest  # not finite: no feature counts, in any data set


@dataclass(frozen=True, eq=False)
class Joint:
    """Two statistics of the data and of every simulated set as one test: the rank of the smaller weighted p-value.

    Exact whatever the weights, where both are of the same simulated outcomes and their number was fixed before.
    """

    each: Floats  # shape (2, sets): p-value of the models' largest sum and of the mean Bayes factor, the data's first
    facts: Mapping[str, object]  # of the data

    @classmethod
    def of(cls, peaks: Floats, factors: Floats, **facts: object) -> Joint:
        """Rank both statistics among those of all sets, the data's first; `facts` of the data are kept."""
        each = ranked(np.stack([peaks, factors]))
        models, mean = (float(p) for p in each[:, 0])
        by = "models" if models / WEIGHTS[0] <= mean / WEIGHTS[1] else "bayes_factor"
        return cls(each, {"p_models": models, "p_bayes_factor": mean, "smaller": by, "weights": WEIGHTS, **facts})

    @cached_property
    def least(self) -> Floats:
        """The smaller weighted p-value of each set."""
        out: Floats = (self.each / np.array(WEIGHTS)[:, None]).min(axis=0)
        return out

    @property
    def p_value(self) -> float:
        """The share of sets whose smaller weighted p-value is at most the data's; 1e-12: rounding."""
        return float((self.least <= self.least[0] * (1.0 + 1e-12)).mean())

    def models_alpha(self, alpha: float) -> float:
        """The largest p-value of the models at which they alone take the joint p-value to at most `alpha`."""
        rising = np.sort(self.least)
        ranks = np.searchsorted(rising, rising * (1.0 + 1e-12), side="right")
        within = rising[ranks <= alpha * len(rising) * (1.0 + 1e-12)]
        return float(WEIGHTS[0] * within[-1]) if len(within) else 0.0


def _sides(column: Singles) -> NDArray[np.bool_]:
    """Which rows are above the middle of a column; where more than half share its largest value, below it or not."""
    middle = np.partition(column, (len(column) - 1) // 2)[(len(column) - 1) // 2]
    above: NDArray[np.bool_] = column > middle
    return above if above.any() else column >= middle


def _ranks(column: Singles) -> Floats:
    """The mean rank of each value."""
    _, code, rows = np.unique(column, return_inverse=True, return_counts=True)
    middle: Floats = (np.cumsum(rows) - 0.5 * (rows - 1))[code]
    return middle


def _standardised(column: NDArray[np.bool_] | Floats) -> Singles:
    centred = column - column.mean()
    out: Singles = (centred / centred.std()).astype(np.float32)
    return out


def _count(code: Rows) -> int:
    """How many triples of columns of three variables there are."""
    one, two, three = 0, 0, 0
    for columns in np.bincount(code).tolist():
        one, two, three = one + columns, two + columns * one, three + columns * two
    return three
