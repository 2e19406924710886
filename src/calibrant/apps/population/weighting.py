"""What was made: a weight for each row, what it did to the shares and means, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import DTypeLike, NDArray

from calibrant import Predictions
from calibrant.arguments import MASK
from calibrant.errors import BadInput, NotComputable
from calibrant.results import plain
from calibrant.toolkit.data import Floats

MEAN = "(mean)"  # stands for the level in a line about a number
FEW = "(levels of few)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """One line of the table of balance: a level's share, or a number's mean.

    Parameters
    ----------
    column, level : str
        ``"(mean)"`` for a number; ``"(levels of few)"`` where levels of fewer than 20 are reported together.
    before, after, target : float
        Of the rows before and after, and of the population.
    difference_before, difference_after : float
        From the target, in standard deviations of the population: the standardised mean difference.
    """

    column: str
    level: str
    before: float
    after: float
    target: float
    difference_before: float
    difference_after: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Weighting:
    """Weights of audited rows for a named population, from `calibrant.weights.to`.

    Parameters
    ----------
    weights : float64 array of shape (n,), read-only
        One for each row of the data, of mean 1 over the rows kept; 0 where the row is left out.
    method : {"cells", "rake", "classifier"}
    columns : tuple of str
        What the weights were made of.
    effective : float
        ``(sum w)^2 / sum w^2``: equal rows that would say as much.
    pilot : int
        Rows that the weights were learnt on, and that are left out; 0 where the weights were learnt on all rows.
    outside : int
        Rows left out since the population, or the pilot rows, have none like them.
    uncovered : tuple of str
        Levels of the population that no row has, left out of it where that was asked for.
    uncovered_share : float
        The population's share in them.
    cap : float or None
        Largest weight allowed, in multiples of the mean: of the pilot rows', where there are any.
    capped : int
        Rows that it lowered.
    largest : float
        The largest weight, before the cap.
    trimmed : float
        Share of the total weight that the cap took away.
    balance : tuple of Balance
    """

    weights: Floats
    method: str
    columns: tuple[str, ...]
    effective: float
    pilot: int
    outside: int
    uncovered: tuple[str, ...]
    uncovered_share: float
    cap: float | None
    capped: int
    largest: float
    trimmed: float
    balance: tuple[Balance, ...]

    @property
    def n(self) -> int:
        """Rows of the data."""
        return len(self.weights)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Rows that have a weight."""
        return self.weights > 0

    @property
    def estimand(self) -> str:
        """What an audit with these weights is about."""
        whom = f"the named population as seen in {', '.join(self.columns)}"
        if self.uncovered:
            whom += f", without the {100 * self.uncovered_share:.2g}% of it like no row"
        if self.capped:
            whom += f", and with {self.capped:,} rows counting less than it asks (capped)"
        return f"the error in {whom}; if outcomes given these columns and the score are as in the audited rows"

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Floats:
        return np.array(self.weights, dtype=dtype)

    def __repr__(self) -> str:
        return f"Weighting({self.method} of {', '.join(self.columns)}: {self.n:,} rows count as {self.effective:,.0f})"

    def of(self, data: Predictions) -> Predictions:
        """The rows that have a weight, with it; weights of the data's own are in it already."""
        if not isinstance(data, Predictions) or data.n != self.n:
            raise BadInput(f"these weights are of {self.n:,} rows: pass the calibrant.predictions they were made for")
        kept = np.flatnonzero(self.kept)
        weights = self.weights[kept]
        weights.flags.writeable = False
        return replace(data.part(kept), weights=weights, dropped=data.dropped + self.n - len(kept))

    def to_dict(self) -> dict[str, object]:
        """Everything as plain lists, dictionaries, numbers and strings."""
        results = {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.name != "balance"}
        lines = [{f.name: plain(getattr(b, f.name)) for f in fields(b)} for b in self.balance]
        return results | {"balance": lines, "estimand": self.estimand}


def effective(weights: Floats) -> float:
    """``(sum w)^2 / sum w^2``."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def capped(weights: Floats, cap: float | None, pilots: Floats | None = None) -> tuple[Floats, int]:
    """Weights of mean 1, lowered to a ceiling, and how many were lowered.

    Without `pilots` none is above `cap`. Given the weights of pilot rows, these alone set the ceiling: a ceiling that
    other rows set would make a row's weight depend on them.
    """
    top = ceiling(weights if pilots is None else pilots, cap)
    low = np.minimum(weights, top)
    return low / low.mean(), int(np.count_nonzero(weights > top))


def ceiling(weights: Floats, cap: float | None) -> float:
    """The weight down to which larger ones are lowered, so that none is above `cap` times the mean.

    Lowering one raises all others in proportion: the ceiling t solves ``t = cap * mean(min(w, t))``.
    """
    mean = float(weights.mean())
    scaled = weights / mean
    if cap is None or scaled.max() <= cap:
        return np.inf if cap is None else cap * mean
    n, ordered = len(scaled), np.sort(scaled)[::-1]
    # With the k largest at t: n t = cap (k t + sum of the others), where t lies between the k-th and the next.
    k = np.arange(1, n)
    below = ordered.sum() - np.cumsum(ordered)[:-1]
    room = n - cap * k
    t = np.divide(cap * below, room, out=np.full(n - 1, np.inf), where=room > 0)
    fits = (t <= ordered[:-1]) & (t >= ordered[1:])
    if not fits.any():
        raise NotComputable(f"no weights of {n:,} rows stay under cap={cap:g}: raise it, or leave it out")
    return float(t[np.argmax(fits)]) * mean


# ---- balance ----


def levels_balance(column: str, labels: tuple[str, ...], shares: Mapping[str, Floats], fewest: Floats) -> list[Balance]:
    """A line for each level; levels of fewer than the mask, in rows or in the population, are one."""
    order = np.argsort(fewest, kind="stable")
    order = order[fewest[order] > 0]
    small = int(np.count_nonzero(fewest[order] < MASK))
    few = list(order[:small])
    while few and fewest[few].sum() < MASK and len(few) < len(order):  # nobody is found by subtracting
        few.append(order[len(few)])
    if 1 <= len(few) < 2 and len(order) > 1:
        few.append(order[len(few)])
    reported = [(labels[i], np.array([i])) for i in range(len(labels)) if i in set(order) - set(few)]
    reported += [(FEW, np.array(few))] if few else []
    return [_line(column, level, {k: float(v[at].sum()) for k, v in shares.items()}, None) for level, at in reported]


def mean_balance(column: str, means: Mapping[str, float], spread: float) -> Balance:
    """The line of a number; `spread` is its standard deviation in the population."""
    return _line(column, MEAN, means, spread)


def _line(column: str, level: str, v: Mapping[str, float], spread: float | None) -> Balance:
    spread = (v["target"] * (1.0 - v["target"])) ** 0.5 if spread is None else spread
    before, after = (
        (v[k] - v["target"]) / spread if spread > 1e-12 else float(np.sign(round(v[k] - v["target"], 12)))
        for k in ("before", "after")
    )
    return Balance(column=column, level=level, **v, difference_before=before, difference_after=after)
