"""From rows or a sketch to what inference from probabilities reads: sums, and the values of one variable."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.coding import as_text, is_date, is_number
from calibrant.data.predictions import Predictions
from calibrant.data.sketch import Sketch
from calibrant.errors import BadInput, NotComputable
from calibrant.measure.along import checked_rows, covariate, finite_values, strata_of
from calibrant.measure.points import INDEPENDENT, WEIGHTED
from calibrant.results import Estimate, Interval
from calibrant.stats.inferred import Inferred, Quantity, Sums
from calibrant.stats.strata import MISSING, Strata

CLUSTERED = "independent clusters of rows"
SEARCHED = 1_000  # names at most among which one like that asked for is looked for
DELTA = "delta method, Wald, with the larger of the sandwich and the model variance"


@dataclass(frozen=True)
class Inferring:
    """Sums of entries, and the value of one variable in each.

    Parameters
    ----------
    name : str
    sums : Sums
    x : float array of shape (m,) or None
        Numbers or dates (days since 1970), NaN where missing; None for a category.
    single : bool array of shape (m,) or None
        The entry holds one value only, and not a range of them.
    code : int array of shape (m,)
        Index of the level; of a category.
    labels : tuple of str
        Names of the levels, that of missing values among them if there are any.
    n, missing : int
        Rows, and rows without a value.
    reads, assumes : str
    weighted : bool
    date : bool
    """

    name: str
    sums: Sums
    x: Any
    single: Any
    code: Any
    labels: tuple[str, ...]
    n: int
    missing: int
    reads: str
    assumes: str
    weighted: bool
    date: bool

    def at(self, level: Any) -> Any:
        """Return which entries are at a level, or refuse a level that does not occur."""
        if self.x is not None:
            return self._number_at(level)
        wanted = str(level).lower() if isinstance(level, (bool, np.bool_)) else str(level)
        if wanted not in self.labels:
            searched = self.labels if len(self.labels) <= SEARCHED else ()
            near = difflib.get_close_matches(wanted, searched, n=1, cutoff=0.5)
            there = f"there are: {', '.join(map(repr, self.labels[:12]))}"
            hint = f"did you mean {near[0]!r}?" if near else there
            raise BadInput(f"level={level!r} does not occur in {self.name!r}; {hint}")
        return self.code == self.labels.index(wanted)

    def _number_at(self, level: Any) -> Any:
        if level == MISSING and self.missing:
            return np.isnan(self.x)
        if self.date:
            hint = "inferred_mean without level describes its mean, and text such as the year has levels"
            raise BadInput(f"covariate {self.name!r} is a date, which has no level but 'missing': {hint}")
        try:
            found = self.x == float(level)
        except (TypeError, ValueError):
            raise BadInput(f"level={level!r}: {self.name!r} is a number; pass one of its values") from None
        if not self.single.all():
            raise NotComputable(f"the sketch keeps ranges of {self.name!r} and not each value: pass rows")
        if not found.any():
            raise BadInput(f"level={level!r} does not occur in {self.name!r}: pass one of its values")
        return found

    def estimate(
        self,
        method: str,
        found: Inferred,
        quantity: Quantity,
        alpha: float,
        span: tuple[float, float],
        unit: str,
        **settings: Any,
    ) -> Estimate:
        """Wrap what was found, with its large-sample interval."""
        low, high = found.ends(alpha, span)
        return Estimate(
            method=f"measure.{method}",
            value=found.value,
            unit=unit,
            n=settings.pop("n", self.n),
            interval=Interval(low=low, high=high, level=1.0 - alpha, guarantee="asymptotic"),
            assumes=self.assumes,
            settings={
                "variable": self.name,
                "quantity": quantity,
                "inferred": found.inferred,
                "observed": found.observed,
                "bias": found.inferred - found.observed,
                "error": found.error,
                "freedom": found.freedom,
                "missing": self.missing,
                "reads": self.reads,
                "weights": self.weighted,
                "interval": DELTA,
                **settings,
            },
        )


def inferring(data: Any, variable: str) -> Inferring:
    """Return sums and values along one covariate, from rows or from a sketch's cells.

    Raises
    ------
    BadInput
        No such variable, or values that cannot be used.
    """
    if isinstance(data, Sketch):
        return _sketched(strata_of(data, variable), variable)
    rows = checked_rows(data, clusters=True)
    column = covariate(rows, variable)
    date = is_date(column.type)
    x: Any = None
    labels: tuple[str, ...] = ()
    if date or is_number(column.type):
        x = finite_values(column, variable)
        code, missing = np.zeros(rows.n, dtype=np.int32), int(np.isnan(x).sum())
    else:
        code, labels, missing = _coded(column, variable)
    clustered, weighted = rows.clusters is not None, rows.weights is not None
    return Inferring(
        name=variable,
        sums=_row_sums(rows),
        x=x,
        single=np.ones(rows.n, dtype=bool),
        code=code,
        labels=labels,
        n=rows.n,
        missing=missing,
        reads="rows",
        assumes=CLUSTERED if clustered else WEIGHTED if weighted else INDEPENDENT,
        weighted=weighted,
        date=date,
    )


def _row_sums(rows: Predictions) -> Sums:
    one = np.ones(rows.n)
    unit = None if rows.clusters is None else np.unique(rows.clusters, return_inverse=True)[1].reshape(-1)
    y = rows.y.astype(np.float64)
    return Sums(one, rows.p, y, rows.p**2, rows.p * y, one if rows.weights is None else rows.weights, unit)


def _coded(column: Any, name: str) -> tuple[Any, tuple[str, ...], int]:
    """Return the level of each row, the levels' names, and how many rows have none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    t = column.type
    if pa.types.is_null(t):
        return np.zeros(len(column), dtype=np.int32), (MISSING,), len(column)
    if not (pa.types.is_string(t) or pa.types.is_boolean(t)):
        raise BadInput(f"covariate {name!r} holds {t}: use text, numbers, dates or booleans")
    coded = pc.dictionary_encode(as_text(column))
    levels = tuple(coded.dictionary.to_pylist())
    code = coded.indices.fill_null(len(levels)).to_numpy(zero_copy_only=False)
    missing = coded.null_count
    named = f"({MISSING})" if MISSING in levels else MISSING
    return code, (*levels, named) if missing else levels, missing


def _sketched(strata: Strata, name: str) -> Inferring:
    square = strata.score - strata.noise
    both = (strata.cases + square - strata.resid2) / 2.0
    sums = Sums(strata.rows, strata.score, strata.cases, square, both, np.ones(strata.size))
    return Inferring(
        name=name,
        sums=sums,
        x=strata.x if strata.ordered else None,
        single=np.isnan(strata.x) | (strata.low == strata.high),
        code=np.arange(strata.size),
        labels=strata.labels or (),
        n=strata.n,
        missing=int(strata.rows[-1]) if strata.missing else 0,
        reads="the sketch's cells along the variable",
        assumes=INDEPENDENT,
        weighted=False,
        date=strata.date,
    )
