"""Labels, probabilities and covariates, validated once and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from calibrant.arguments import flag, text
from calibrant.data.columns import Floats, label_values, table_of
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput

Kind = TypeVar("Kind")
Other = TypeVar("Other")

# ---- What was wrong with the rows read so far, and the one line that says so ----

SCORE_MISSING, SCORE_RANGE, LABEL_MISSING, LABEL_VALUE = range(4)


@dataclass
class Faults:
    """Counts and first places of faulty rows, by kind; merged over parts."""

    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    first: list[tuple[str, int] | None] = field(default_factory=lambda: [None] * 4)
    example: list[str] = field(default_factory=lambda: [""] * 4)
    low: float = 0.0
    high: float = 1.0

    def add(self, kind: int, count: int, where: tuple[str, int], example: str) -> None:
        """Count faulty rows of one kind, keeping the earliest place."""
        self.counts[kind] += count
        known = self.first[kind]
        if known is None or where < known:
            self.first[kind], self.example[kind] = where, example

    def note(
        self,
        p: Floats,
        y: Floats | NDArray[np.int8] | None = None,
        part: str = "",
        first_row: int = 0,
        digits: int = 9,
    ) -> None:
        """Count the faulty among rows: their scores and, if given, their labels as numbers, NaN where missing."""
        missing = np.isnan(p)
        outside = ~missing & ~((p >= 0.0) & (p <= 1.0))
        bad = [missing, outside]
        if y is not None:
            absent = np.isnan(y)
            bad += [absent, ~absent & (y != 0) & (y != 1)]
        for kind, rows in enumerate(bad):
            if rows.any():
                row = int(np.argmax(rows))
                value = p[row] if y is None or kind == SCORE_RANGE else y[row]
                example = f"{value:.{digits}g}" if kind in (SCORE_RANGE, LABEL_VALUE) else ""
                self.add(kind, int(np.count_nonzero(rows)), (part, first_row + row), example)
        if outside.any():
            reach = np.nan_to_num(p[outside])  # infinite ones as the largest there are
            self.low, self.high = min(self.low, float(reach.min())), max(self.high, float(reach.max()))

    def merge(self, other: Faults) -> None:
        """Add another part's faults."""
        for kind in range(4):
            where = other.first[kind]
            if where is not None:
                self.add(kind, other.counts[kind], where, other.example[kind])
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)

    def check(self, spec: Spec, drop_missing: bool) -> None:
        """Raise `BadInput` for the first kind of fault there is."""
        if self.counts[SCORE_RANGE]:
            raise BadInput(self._line(SCORE_RANGE, spec.score, f"outside 0 to 1; {self._hint()}"))
        if self.counts[LABEL_VALUE]:
            fix = "pass positive= (--positive) to name the class that counts as a case"
            raise BadInput(self._line(LABEL_VALUE, spec.label, f"neither 0 nor 1; {fix}"))
        for kind, column in ((SCORE_MISSING, spec.score), (LABEL_MISSING, spec.label)):
            if self.counts[kind] and not drop_missing:
                fix = "fill them in, or pass drop_missing=True (--drop-missing) to leave those rows out and count them"
                raise BadInput(self._line(kind, column, f"missing (null or NaN); {fix}"))

    def _hint(self) -> str:
        if self.low >= -1e-4 and self.high <= 1.0 + 1e-4:
            return "is it rounding error? Clip to 0 and 1"
        if self.low >= 0.0 and self.high <= 100.0 and self.high > 1.5:
            return "did you pass percentages? Divide by 100"
        return "did you pass logits? Apply 1 / (1 + exp(-x)) first"

    def _line(self, kind: int, column: str, what: str) -> str:
        part, row = self.first[kind] or ("", 0)
        place = f"row {row}" + (f" of {part}" if part else "")
        shown = f" ({self.example[kind]})" if self.example[kind] else ""
        count = self.counts[kind]
        noun = "value is" if count == 1 else "values are"
        return f"column {column!r}: {count} {noun} {what}. First: {place}, counting from 0{shown}."


# ---- Labels, probabilities and covariates, validated once and frozen ----


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Rows of a binary classifier: make them with `calibrant.predictions` or `calibrant.read`.

    Parameters
    ----------
    y : int8 array of shape (n,), read-only
        Outcomes, 0 or 1.
    p : float64 array of shape (n,), read-only
        Predicted probabilities of outcome 1, in [0, 1].
    covariates : pyarrow.Table or None
        Variables by name, one row each.
    weights, cluster : arrays of shape (n,) or None
        Positive weights; which rows belong together.
    name : str
        Name for reports.
    dropped : int
        Rows left out because score or label was missing.
    """

    y: NDArray[np.int8]
    p: NDArray[np.float64]
    covariates: Any = None
    weights: NDArray[np.float64] | None = None
    cluster: NDArray[Any] | None = None
    name: str = "data"
    dropped: int = 0
    cache: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.y)

    @property
    def cases(self) -> int:
        """Rows with outcome 1."""
        return int(self.y.sum(dtype=np.int64))

    def __len__(self) -> int:
        return self.n


@dataclass(frozen=True, kw_only=True)
class MulticlassPredictions:
    """Rows of a classifier over K classes, from `calibrant.multiclass_predictions`; binary methods read a projection.

    Parameters
    ----------
    y : int32 array of shape (n,), read-only
        Class index of each row, 0 to K - 1.
    p : float64 array of shape (n, K), read-only
        Probabilities; each row adds up to one.
    covariates : pyarrow.Table or None
    name : str
    """

    y: NDArray[np.int32]
    p: NDArray[np.float64]
    covariates: Any = None
    name: str = "data"

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.y)

    def top_label(self) -> Predictions:
        """Return the confidence view: outcome "the most probable class is right", score its probability."""
        hit = (self.p.argmax(axis=1) == self.y).astype(np.int8)
        return predictions(hit, self.p.max(axis=1), self.covariates)

    def one_vs_rest(self, k: int) -> Predictions:
        """Return the view of one class; share ``alpha`` over the classes you look at."""
        if not 0 <= k < self.p.shape[1]:
            raise BadInput(f"class k={k}: there are classes 0 to {self.p.shape[1] - 1}")
        return predictions((self.y == k).astype(np.int8), self.p[:, k], self.covariates)


def predictions(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    covariates: object = None,
    *,
    weights: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    positive: object = None,
    drop_missing: bool = False,
    name: str = "data",
) -> Predictions:
    """Validate labels and probabilities of two classes once, and freeze them.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels 0 and 1 (or booleans); any two values with `positive` given.
    y_prob : array-like of shape (n,)
        Probabilities in [0, 1] of the positive class. A scikit-learn ``predict_proba`` of two columns is read as its
        second column; one of more columns belongs to `calibrant.multiclass_predictions`.
    covariates : frame or mapping of arrays, optional
        pandas, Polars or Arrow table, or a dictionary, with n rows.
    weights : array-like of shape (n,), optional
        Positive numbers. Methods without a proof for weights raise `NotComputable`.
    cluster : array-like of shape (n,), optional
        Which rows belong together. Methods without a proof for clusters raise `NotComputable`.
    positive : optional
        The label that counts as a case.
    drop_missing : bool
        Leave out, and count, rows whose label or probability is missing.
    name : str
        Name for reports.

    Returns
    -------
    Predictions

    Raises
    ------
    BadInput
        A value is missing, out of range or of another length; the message names column, count and first row.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.predictions([0, 1, 1], [0.2, 0.7, 0.9], {"age": [31, 52, 67]}).n
    3
    """
    drop_missing, name = flag("drop_missing", drop_missing), text("name", name)
    y, p = _label_array(y_true, positive), _score_array(y_prob)
    if len(y) != len(p):
        raise BadInput(f"y_true has {len(y):,} rows and y_prob {len(p):,}: pass one label for each probability")
    keep, dropped = _validated(y, p, drop_missing)
    w = None if weights is None else _weights(weights, len(y))
    who = None if cluster is None else _same_length(cluster, len(y), "cluster")
    table = _covariates(covariates, len(y))
    if dropped:
        y, p = y[keep], p[keep]
        w, who = None if w is None else w[keep], None if who is None else who[keep]
        table = None if table is None else table.filter(keep)
    y8 = y.astype(np.int8)
    for column in (y8, p, w, who):
        if column is not None:
            column.flags.writeable = False
    return Predictions(y=y8, p=p, covariates=table, weights=w, cluster=who, name=name, dropped=dropped)


def multiclass_predictions(
    y_true: ArrayLike, y_prob: ArrayLike, covariates: object = None, *, name: str = "data"
) -> MulticlassPredictions:
    """Validate labels and probabilities of several classes once, and freeze them.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Class numbers 0 to K - 1.
    y_prob : array-like of shape (n, K)
        Probabilities of every class, K at least 3, rows adding up to one.
    covariates : frame or mapping of arrays, optional
        As `calibrant.predictions`.
    name : str
        Name for reports.

    Returns
    -------
    MulticlassPredictions
        Project it, by ``top_label()`` or ``one_vs_rest(k)``, onto what every binary method reads.

    Raises
    ------
    BadInput
        A value is missing, out of range or of another length.

    Examples
    --------
    >>> import calibrant as cal
    >>> many = cal.multiclass_predictions([0, 2, 1], [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2]])
    >>> many.top_label().p.tolist()
    [0.7, 0.8, 0.5]
    """
    name = text("name", name)
    p, y = np.array(y_prob, dtype=np.float64), np.asarray(y_true)
    if p.ndim != 2 or p.shape[1] < 3:
        raise BadInput(
            f"y_prob has shape {p.shape}: pass a column for each of three classes or more, or use predictions"
        )
    k = p.shape[1]
    if y.shape != (p.shape[0],):
        raise BadInput(f"y_true has shape {y.shape} and y_prob {p.shape}: pass one class number for each row")
    if y.size == 0:
        raise BadInput("no rows to audit: y_true and y_prob are empty")
    if y.dtype.kind not in "iub" or y.min() < 0 or y.max() >= k:
        raise BadInput(f"y_true must hold class numbers 0 to {k - 1}, the columns of y_prob: encode the classes first")
    wrong = ~(np.isfinite(p).all(axis=1) & (p >= 0).all(axis=1) & (np.abs(p.sum(axis=1) - 1) < 1e-6))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise BadInput(
            f"y_prob: {int(wrong.sum())} rows are not probabilities that add up to one; first: row {row}, "
            f"sum {p[row].sum():.6g}"
        )
    y32 = y.astype(np.int32)
    y32.flags.writeable = p.flags.writeable = False
    return MulticlassPredictions(y=y32, p=p, covariates=_covariates(covariates, len(y)), name=name)


SEVERAL = "several classes: pass data.top_label(), or data.one_vs_rest(k) with alpha / K"


@overload
def checked_data(data: object, kind: type[Kind], /, *, name: str = ...) -> Kind: ...
@overload
def checked_data(data: object, kind: type[Kind], other: type[Other], /, *, name: str = ...) -> Kind | Other: ...
def checked_data(data: object, *kinds: type[Any], name: str = "data") -> Any:
    """Return the data of a public function if it is of one of these kinds, or say in one line what to pass.

    Every function that reads rows, or rows or a sketch, begins here: ``checked_data(data, Predictions, Sketch)``.
    """
    if isinstance(data, kinds):
        return data
    if isinstance(data, MulticlassPredictions):
        raise BadInput(SEVERAL)
    if any(kind.__name__ == "Sketch" for kind in kinds):
        way = "calibrant.predictions(y_true, y_prob), calibrant.read(...) or calibrant.sketch(...)"
    else:
        way = "calibrant.predictions(y_true, y_prob) or calibrant.read(...), for rows are read"
    raise BadInput(f"{name} is a {type(data).__name__}: pass {way}")


def _label_array(y_true: ArrayLike, positive: object) -> Floats:
    """Return labels as numbers, NaN where missing."""
    y = np.asarray(y_true).reshape(-1)
    if positive is not None:
        try:
            column = pa.array(y, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise BadInput("y_true mixes text and numbers: make it one or the other") from None
        found = label_values(column, "y_true", str(positive))
        if not np.nansum(found):
            seen = sorted({str(v) for v in column.drop_null().to_pylist()})[:5]
            raise BadInput(f"positive={positive!r} does not occur in y_true, which holds {', '.join(map(repr, seen))}")
        return found.astype(np.float64)
    try:
        return np.array(y, dtype=np.float64)
    except (TypeError, ValueError):
        example = next((v for v in y.tolist() if isinstance(v, str)), y[0])
        raise BadInput(f"y_true holds {example!r}, not 0 and 1: pass positive= to name the case") from None


def _score_array(y_prob: ArrayLike) -> Floats:
    """Return scores as numbers, NaN where missing: one column, or the second of two that add up to one."""
    p = np.ma.filled(y_prob.astype(np.float64), np.nan) if isinstance(y_prob, np.ma.MaskedArray) else np.asarray(y_prob)
    if p.ndim == 2 and p.shape[1] == 2 and p.dtype.kind == "f":
        off = np.abs(p.sum(axis=1) - 1.0) > 1e-3
        if off.any():
            row = int(np.argmax(off))
            raise BadInput(
                f"y_prob has two columns that do not add up to one (row {row}: {p[row].sum():.6g}): pass one column"
            )
    if p.ndim == 2 and p.shape[1] > 2:
        raise BadInput(
            f"y_prob has {p.shape[1]} columns, one for each class: use calibrant.multiclass_predictions(y_true, y_prob)"
        )
    if p.ndim == 2:
        p = p[:, -1]
    if p.ndim != 1:
        raise BadInput(f"y_prob has {p.ndim} dimensions: pass one probability for each row")
    try:
        return np.array(p, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"y_prob holds {p[0]!r}, not numbers: convert it to probabilities in [0, 1]") from None


def _validated(y: Floats, p: Floats, drop_missing: bool) -> tuple[NDArray[np.bool_], int]:
    """Check every value; return the rows to keep and how many are left out."""
    faults = Faults()
    faults.note(p, y, digits=6)
    faults.check(Spec(label="y_true", score="y_prob"), drop_missing)
    keep = ~(np.isnan(p) | np.isnan(y))
    if not keep.any():
        raise BadInput(
            "no rows to audit: y_true and y_prob are empty"
            if not len(y)
            else "no rows are left after dropping missing values"
        )
    return keep, int((~keep).sum())


def _same_length(values: ArrayLike, n: int, name: str) -> NDArray[np.generic]:
    out = np.array(values)
    if out.shape != (n,):
        raise BadInput(f"{name} has shape {out.shape}: pass one value for each of the {n:,} rows")
    return out


def _weights(weights: ArrayLike, n: int) -> Floats:
    out = _same_length(weights, n, "weights").astype(np.float64)
    if not (np.isfinite(out) & (out > 0)).all():
        row = int(np.argmin(np.isfinite(out) & (out > 0)))
        raise BadInput(f"weights must be positive and finite; row {row} has {out[row]:g}: leave such rows out")
    return out


def _covariates(covariates: object, n: int) -> pa.Table | None:
    """Return covariates as a table: by the Arrow stream protocol, whatever library they are of, or from a mapping."""
    if covariates is None or (isinstance(covariates, Mapping) and not covariates):
        return None
    if isinstance(covariates, Mapping):
        table = _table(covariates)
    elif hasattr(covariates, "__arrow_c_stream__"):
        table = table_of(covariates)
    else:
        raise BadInput(
            f"covariates is a {type(covariates).__name__}: pass a pandas, Polars or Arrow table, or a dictionary"
        )
    if table.num_rows != n:
        raise BadInput(f"covariates has {table.num_rows:,} rows and y_true {n:,}: pass one row each")
    return table


def _table(columns: Mapping[str, ArrayLike]) -> pa.Table:
    out = {}
    for name, values in columns.items():
        try:
            out[name] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as e:
            raise BadInput(
                f"covariate {name!r} mixes types ({str(e).splitlines()[0]}): make it text or numbers"
            ) from None
    if len({len(v) for v in out.values()}) > 1:
        raise BadInput(f"covariates have different lengths: {', '.join(f'{k} {len(v)}' for k, v in out.items())}")
    return pa.table(out)
