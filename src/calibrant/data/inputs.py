"""What `predictions` is given, array by array: read into plain columns, and put into one order of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.arrays import column_of, matrix_of, positions
from calibrant.data.columns import (
    Floats,
    are_absent,
    as_covariates,
    as_float,
    label_values,
    no_such_event,
    spellings,
    two_spellings,
)
from calibrant.data.layouts import decoded
from calibrant.data.sources.frames import as_rows
from calibrant.errors import BadInput, NotComputable

Flags = NDArray[np.bool_]
Known = tuple[NDArray[Any], Flags]  # values, and where they are known


class PredictionInputs:
    """Arguments whose rows share clusters, and the order in which each has them.

    `**arguments`: by name, as the caller passed them; None for what was not.
    """

    def __init__(self, **arguments: object) -> None:
        self.covariates = arguments.pop("covariates", None)
        columns = {"covariates": self.covariates}
        if isinstance(self.covariates, Mapping):
            columns = {f"covariate {str(name)!r}": column for name, column in self.covariates.items()}
        self.at = positions(arguments | columns)

    def ordered(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Values in the order of the first argument's rows."""
        return values[self.at[name]] if name in self.at else values

    def attribute(self, name: str, values: object, read: Callable[[object], Known], keep: Flags) -> NDArray[Any] | None:
        """Weights or clusters of rows in that order, if there are any; rows whose own is unknown leave `keep`."""
        if values is None:
            return None
        column, known = (self.ordered(name, each) for each in read(values))
        keep &= known
        return column

    def table(self, n: int) -> pa.Table | None:
        """The covariates as a table of n rows in that order."""
        if self.covariates is None or (isinstance(self.covariates, Mapping) and not self.covariates):
            return None
        kind, order = type(self.covariates).__name__, self.at if isinstance(self.covariates, Mapping) else None
        refusal = f"covariates is a {kind}: pass a pandas, Polars or Arrow table, or a dictionary"
        kept = as_rows(self.covariates, "covariate", refusal, order=order)
        for name, why in kept.unread.items():
            raise BadInput(f"covariate {name!r} {why}")
        table = as_covariates(kept.table)
        if table.num_rows != n:
            raise BadInput(f"covariates has {table.num_rows:,} rows and y_true {n:,}: pass one row each")
        return table.take(self.at["covariates"]) if "covariates" in self.at else table


def labels_of(y_true: object, positive: object, event: str) -> Floats:
    """Labels as numbers, NaN where missing; `event` is what whoever asks calls the argument `positive`."""
    column = column_of(y_true, "y_true")
    named = None if positive is None else str(positive)
    result = label_values(column, "y_true", named, event)
    if named is not None and not np.nansum(result):
        seen = (str(v) for v in decoded(column).drop_null().unique().to_pylist())
        raise BadInput(no_such_event(seen, "y_true", positive, event))
    if named is not None and (why := two_spellings(spellings(column, "y_true", named), "y_true", named)):
        raise BadInput(why)
    return result.astype(np.float64)


def scores_of(y_prob: object) -> Floats:
    """Scores as numbers, NaN where missing: one column, or the second of two that add up to one."""
    p = matrix_of(y_prob, "y_prob")
    if p is None:
        return np.array(as_float(column_of(y_prob, "y_prob"), "y_prob", "score"))
    if p.shape[1] > 2:
        raise BadInput(
            f"y_prob has {p.shape[1]} columns, one for each class: use calibrant.multiclass_predictions(y_true, y_prob)"
        )
    off = np.abs(p.sum(axis=1) - 1.0) > 1e-3 + 1e-9  # 0.999 misses by 1e-3 and what doubles add to it
    if off.any():
        row = int(np.argmax(off))
        raise BadInput(
            f"y_prob has two columns that do not add up to one (row {row}: {p[row].sum():.6g}): pass one column"
        )
    return p[:, 1].copy()


def _one_each(values: object, n: int, name: str) -> pa.Array:
    column = decoded(column_of(values, name))
    if len(column) != n:
        raise BadInput(f"{name} has shape ({len(column)},): pass one value for each of the {n:,} rows")
    return column


def row_number(row: int) -> str:
    return f"row {row:,}"


def clusters_of(
    cluster: object, n: int, missing: bool, name: str = "cluster", place: Callable[[int], str] = row_number
) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
    """Which rows share clusters, and where that is known; refuse unknown clusters unless they may be missing."""
    column = _one_each(cluster, n, name)
    absent = are_absent(column, name)
    if absent.any() and not missing:
        first = place(int(np.argmax(absent)))
        raise BadInput(f"{name} is missing in {np.count_nonzero(absent):,} rows, first in {first}: fill it in")
    if column.null_count and not absent.all():
        column = column.fill_null(column.drop_null()[0])  # whole numbers stay whole: those rows are left out
    return np.array(column.to_numpy(zero_copy_only=False)), ~absent


def weights_of(
    weights: object,
    n: int,
    missing: bool,
    name: str = "weights",
    zero: bool = False,
    place: Callable[[int], str] = row_number,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Weights, and where they are known; refuse weights that are not positive, but for those that may be."""
    out = np.array(as_float(_one_each(weights, n, name), name, "weight"))
    known = ~np.isnan(out)
    sound = (np.isfinite(out) & (out > 0)) | (~known & missing) | ((out == 0) & zero)
    if not sound.all():
        row = int(np.argmin(sound))
        raise BadInput(f"{name} must be positive and finite; {place(row)} has {out[row]:g}: leave such rows out")
    return out, known


# ---- clusters on several levels ----

Levels = tuple[tuple[str, int], ...]  # columns of clusters and how many there are, the coarsest first


def cluster_columns(cluster: object) -> dict[str, object]:
    """The columns of clusters by name: those of a dictionary, a frame or a list of arrays; none of one array."""
    if isinstance(cluster, Mapping):
        results = {str(name): column for name, column in cluster.items()}
    elif (
        isinstance(cluster, (list, tuple))
        and cluster
        and all(hasattr(each, "__len__") and not isinstance(each, (str, bytes, tuple, list)) for each in cluster)
    ):
        results = {str(getattr(each, "name", None) or f"column {i + 1}"): each for i, each in enumerate(cluster)}
        if len(results) < len(cluster):
            raise BadInput("cluster= holds two columns of one name: pass a dictionary that names each")
    else:
        names = getattr(cluster, "column_names", getattr(cluster, "columns", None))
        if names is None or callable(names):
            return {}
        results = {str(name): cluster[name] for name in names}  # type: ignore[index]
    if not results:
        raise BadInput("cluster= holds no column: pass one or more, or leave it out")
    return results


def cluster_codes(
    columns: Mapping[str, object], place: Callable[[int], str] = row_number
) -> dict[str, NDArray[np.intp]]:
    """The cluster of each row as a number, by column; all are known."""
    codes = dict[str, NDArray[np.intp]]()
    for name, column in columns.items():
        try:
            n = len(column)  # type: ignore[arg-type]
        except TypeError:
            raise BadInput(f"cluster {name!r} is a {type(column).__name__}: pass one value for each row") from None
        cluster, _ = clusters_of(column, n, False, f"cluster {name!r}", place)
        codes[name] = np.asarray(np.unique(cluster, return_inverse=True)[1].reshape(-1), dtype=np.intp)
    first = next(iter(codes), "")
    for name, code in codes.items():
        if len(code) != len(codes[first]):
            raise BadInput(
                f"cluster {name!r} has {len(code):,} rows and {first!r} {len(codes[first]):,}: pass equally many"
            )
    return codes


@dataclass(frozen=True)
class Crossing:
    """Two columns of clusters of which neither holds the other: rows that share neither cluster are independent."""

    names: tuple[str, str]  # that of more clusters first
    codes: NDArray[np.intp]  # shape (2, n): the cluster of each row by column, by number

    @property
    def named(self) -> str:
        """Both names, for words."""
        return " and ".join(self.names)

    @property
    def clusters(self) -> tuple[int, int]:
        """Clusters of each column."""
        return int(self.codes[0].max()) + 1, int(self.codes[1].max()) + 1

    def refuse(self) -> NoReturn:
        """Refuse them where one column of independent clusters is needed."""
        raise ClustersCross(ALL_AS_ONE.format(*self.names))

    def part(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Crossing:
        """Some of the rows."""
        codes = [np.unique(code[rows], return_inverse=True)[1].reshape(-1) for code in self.codes]
        return Crossing(self.names, np.array(codes))


ALL_AS_ONE = (
    "clusters {0!r} and {1!r} cross: this needs one column of independent clusters, so name one of them; both are "
    "taken by raw_lower, values, rounded, distance, groups and worst_group of certify, and by audit"
)


class ClustersCross(NotComputable):
    """Columns of clusters cross where one is needed that holds the others."""


def levels_of(codes: Mapping[str, NDArray[np.intp]]) -> Levels:
    """Columns of clusters, the coarsest first: each of its clusters holds whole clusters of every other column.

    Raises
    ------
    ClustersCross
        Two columns cross: a cluster of either has rows in several clusters of the other.
    """
    count = {name: int(code.max(initial=-1)) + 1 for name, code in codes.items()}
    order = sorted(count, key=lambda name: count[name])
    name = order[0]
    for other in order[1:]:
        if split := _split(codes[other], codes[name]):
            raise ClustersCross(
                f"clusters {other!r} and {name!r} cross: {split:,} of the former have rows in several of the latter. "
                f"Name one: by {other!r} alone results are about these clusters of {name!r}, and the other way round. "
                "About both columns as random samples, an audit of the rows and certify raw_lower, values, rounded "
                "and worst_group can be had"
            )
    return tuple((name, count[name]) for name in order)


def crossing_of(codes: Mapping[str, NDArray[np.intp]]) -> Crossing:
    """The two columns that cross, of columns that `levels_of` refuses; finer ones that lie whole in them go.

    Raises
    ------
    NotComputable
        Three columns or more cross.
    """
    count = {name: int(code.max(initial=-1)) + 1 for name, code in codes.items()}
    kept: list[str] = []
    for name in sorted(count, key=lambda name: (count[name], name)):  # what holds a column has no more clusters
        if all(_split(codes[name], codes[other]) for other in kept):
            kept.append(name)
    if len(kept) > 2:
        raise NotComputable(f"clusters {', '.join(map(repr, kept))} cross: two columns may, so name two of them")
    first, second = reversed(kept)
    return Crossing((first, second), np.array([codes[first], codes[second]]))


def _split(fine: NDArray[np.intp], coarse: NDArray[np.intp]) -> int:
    """How many clusters of one column have rows in more than one unit of the other."""
    pairs = np.unique(np.column_stack([fine, coarse]), axis=0)
    return int((np.bincount(pairs[:, 0]) > 1).sum()) if len(pairs) else 0
