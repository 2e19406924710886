"""Labels, probabilities and covariates, validated once and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.data.columns import imported, label_values
from calibrant.data.faults import Faults
from calibrant.data.spec import Spec
from calibrant.errors import BadInput


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
    weights, clusters : arrays of shape (n,) or None
        Positive weights; cluster identifiers.
    name : str
        Name for reports.
    dropped : int
        Rows left out because score or label was missing.
    """

    y: Any
    p: Any
    covariates: Any = None
    weights: Any = None
    clusters: Any = None
    name: str = "data"
    dropped: int = 0
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

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
    """Rows of a classifier over K classes; every binary method reads one of its projections.

    Parameters
    ----------
    y : int32 array of shape (n,), read-only
        Class index of each row, 0 to K - 1.
    p : float64 array of shape (n, K), read-only
        Probabilities; each row adds up to one.
    covariates : pyarrow.Table or None
    name : str
    """

    y: Any
    p: Any
    covariates: Any = None
    name: str = "data"

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.y)

    def top_label(self) -> Predictions:
        """Return the confidence view: outcome "the most probable class is right", score its probability."""
        hit = (self.p.argmax(axis=1) == self.y).astype(np.int8)
        return binary_predictions(hit, self.p.max(axis=1), self.covariates)

    def one_vs_rest(self, k: int) -> Predictions:
        """Return the view of one class; share ``alpha`` over the classes you look at."""
        if not 0 <= k < self.p.shape[1]:
            raise BadInput(f"class k={k}: there are classes 0 to {self.p.shape[1] - 1}")
        return binary_predictions((self.y == k).astype(np.int8), self.p[:, k], self.covariates)


def predictions(
    y_true: Any,
    y_prob: Any,
    covariates: Any = None,
    weights: Any = None,
    clusters: Any = None,
    *,
    positive: Any = None,
    drop_missing: bool = False,
    name: str = "data",
) -> Predictions | MulticlassPredictions:
    """Validate labels and probabilities once, and freeze them.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels 0 and 1 (or booleans); any two values with `positive` given; class numbers 0 to K - 1 with a
        matrix of probabilities.
    y_prob : array-like of shape (n,) or (n, K)
        Probabilities in [0, 1] of the positive class; or of every class, K at least 3, rows adding up to one.
        A scikit-learn ``predict_proba`` of two columns is read as its second column.
    covariates : frame or mapping of arrays, optional
        pandas, Polars or Arrow table, or a dictionary, with n rows.
    weights : array-like of shape (n,), optional
        Positive numbers. Methods without a proof for weights raise `NotComputable`.
    clusters : array-like of shape (n,), optional
        Cluster identifiers. Methods without a proof for clusters raise `NotComputable`.
    positive : optional
        The label that counts as a case.
    drop_missing : bool
        Leave out, and count, rows whose label or probability is missing.
    name : str
        Name for reports.

    Returns
    -------
    Predictions or MulticlassPredictions
        The second for a matrix of three or more columns.

    Raises
    ------
    BadInput
        A value is missing, out of range or of another length; the message names column, count and first row.
    """
    matrix = np.asarray(y_prob)
    if matrix.ndim == 2 and matrix.shape[1] >= 3:
        if weights is not None or clusters is not None or positive is not None or drop_missing:
            raise BadInput(
                "several classes take no weights, clusters, positive or drop_missing: project to one class first"
            )
        return _multiclass(y_true, matrix, covariates, name)
    return binary_predictions(
        y_true, y_prob, covariates, weights, clusters, positive=positive, drop_missing=drop_missing, name=name
    )


def binary_predictions(
    y_true: Any,
    y_prob: Any,
    covariates: Any = None,
    weights: Any = None,
    clusters: Any = None,
    *,
    positive: Any = None,
    drop_missing: bool = False,
    name: str = "data",
) -> Predictions:
    """Validate and freeze two classes."""
    y, p = _label_array(y_true, positive), _score_array(y_prob)
    if len(y) != len(p):
        raise BadInput(f"y_true has {len(y):,} rows and y_prob {len(p):,}: pass one label for each probability")
    keep, dropped = _validated(y, p, positive, drop_missing)
    rest = {"weights": _weights(weights, len(y)), "clusters": _same_length(clusters, len(y), "clusters")}
    table = _covariates(covariates, len(y))
    if dropped:
        y, p = y[keep], p[keep]
        rest = {k: None if v is None else v[keep] for k, v in rest.items()}
        table = None if table is None else table.filter(keep)
    for v in rest.values():
        if v is not None:
            v.flags.writeable = False
    y8 = y.astype(np.int8)
    y8.flags.writeable = p.flags.writeable = False
    return Predictions(y=y8, p=p, covariates=table, name=name, dropped=dropped, **rest)


def _label_array(y_true: Any, positive: Any) -> Any:
    y = np.asarray(y_true).reshape(-1) if np.ndim(y_true) != 1 else np.asarray(y_true)
    if positive is not None:
        import pyarrow as pa

        try:
            column = pa.array(y, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise BadInput("y_true mixes text and numbers: make it one or the other") from None
        found = label_values(column, Spec(label="y_true", score="y_prob", positive=str(positive)))
        if not np.nansum(found):
            seen = sorted({str(v) for v in column.drop_null().to_pylist()})[:5]
            raise BadInput(f"positive={positive!r} does not occur in y_true, which holds {', '.join(map(repr, seen))}")
        return found
    try:
        return np.array(y, dtype=np.float64)
    except (TypeError, ValueError):
        example = next((v for v in y.tolist() if isinstance(v, str)), y[0])
        raise BadInput(f"y_true holds {example!r}, not 0 and 1: pass positive= to name the case") from None


def _score_array(y_prob: Any) -> Any:
    p = np.ma.filled(y_prob.astype(np.float64), np.nan) if isinstance(y_prob, np.ma.MaskedArray) else np.asarray(y_prob)
    if p.ndim == 2 and p.shape[1] == 2 and p.dtype.kind == "f":
        off = np.abs(p.sum(axis=1) - 1.0) > 1e-3
        if off.any():
            row = int(np.argmax(off))
            raise BadInput(
                f"y_prob has two columns that do not add up to one (row {row}: {p[row].sum():.6g}): pass one column"
            )
    if p.ndim == 2:
        p = p[:, -1]
    if p.ndim != 1:
        raise BadInput(f"y_prob has {p.ndim} dimensions: pass one probability a row, or one column a class")
    try:
        return np.array(p, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"y_prob holds {p[0]!r}, not numbers: convert it to probabilities in [0, 1]") from None


def _validated(y: Any, p: Any, positive: Any, drop_missing: bool) -> tuple[Any, int]:
    """Check every value; return the rows to keep and how many are left out."""
    absent = (np.isnan(p), np.isnan(y))
    bad = [absent[0], ~absent[0] & ~((p >= 0) & (p <= 1)), absent[1], ~absent[1] & (y != 0) & (y != 1)]
    faults = Faults()
    for kind, mask in enumerate(bad):
        if mask.any():
            row = int(np.argmax(mask))
            faults.add(kind, int(mask.sum()), ("", row), f"{(p if kind < 2 else y)[row]:.6g}" if kind % 2 else "")
    if bad[1].any():
        faults.low, faults.high = float(np.nanmin(p)), float(np.nanmax(p))
    faults.check(Spec(label="y_true", score="y_prob", positive=positive), drop_missing)
    keep = ~(absent[0] | absent[1])
    if not keep.any():
        raise BadInput(
            "no rows to audit: y_true and y_prob are empty"
            if not len(y)
            else "no rows are left after dropping missing values"
        )
    return keep, int((~keep).sum())


def _same_length(values: Any, n: int, name: str) -> Any:
    if values is None:
        return None
    out = np.array(values)
    if out.shape != (n,):
        raise BadInput(f"{name} has shape {out.shape}: pass one value for each of the {n:,} rows")
    return out


def _weights(weights: Any, n: int) -> Any:
    out = _same_length(weights, n, "weights")
    if out is None:
        return None
    out = out.astype(np.float64)
    if not (np.isfinite(out) & (out > 0)).all():
        row = int(np.argmin(np.isfinite(out) & (out > 0)))
        raise BadInput(f"weights must be positive and finite; row {row} has {out[row]:g}: leave such rows out")
    return out


def _covariates(covariates: Any, n: int) -> Any:
    if covariates is None or (isinstance(covariates, Mapping) and not covariates):
        return None
    import pyarrow as pa

    if isinstance(covariates, Mapping):
        covariates = _table(covariates)
    elif not isinstance(covariates, pa.Table):
        if not hasattr(covariates, "__arrow_c_stream__"):
            raise BadInput(
                f"covariates is a {type(covariates).__name__}: pass a pandas, Polars or Arrow table, or a dictionary"
            )
        covariates = imported(covariates)
    if covariates.num_rows != n:
        raise BadInput(f"covariates has {covariates.num_rows:,} rows and y_true {n:,}: pass one row each")
    return covariates


def _table(columns: Mapping[str, Any]) -> Any:
    import pyarrow as pa

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


def _multiclass(y_true: Any, p: Any, covariates: Any, name: str) -> MulticlassPredictions:
    y = np.asarray(y_true)
    k = p.shape[1]
    if y.shape != (p.shape[0],):
        raise BadInput(f"y_true has shape {y.shape} and y_prob {p.shape}: pass one class number for each row")
    p = np.array(p, dtype=np.float64)
    if y.size == 0:
        raise BadInput("no rows to audit: y_true and y_prob are empty")
    if y.dtype.kind not in "iub" or y.min() < 0 or y.max() >= k:
        raise BadInput(f"y_true must hold class numbers 0 to {k - 1}, the columns of y_prob: encode the classes first")
    wrong = ~(np.isfinite(p).all(axis=1) & (p >= 0).all(axis=1) & (np.abs(p.sum(axis=1) - 1) < 1e-6))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise BadInput(
            f"y_prob: {int(wrong.sum())} rows are not probabilities that add up to one; first: row {row}, sum {p[row].sum():.6g}"
        )
    y32 = y.astype(np.int32)
    y32.flags.writeable = p.flags.writeable = False
    return MulticlassPredictions(y=y32, p=p, covariates=_covariates(covariates, len(y)), name=name)
