"""What `predictions` is given, array by array: read into plain columns, and put into one order of rows."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.arguments import Caller, shown
from calibrant.data.arrays import column_of, matrix_of, positions
from calibrant.data.columns import (
    ABSENT,
    Floats,
    absent_labels,
    are_absent,
    as_covariates,
    as_float,
    is_number,
    label_values,
    letters_of,
    no_such_event,
    spellings,
    two_spellings,
)
from calibrant.data.layouts import decoded, is_text
from calibrant.data.sources.frames import as_rows
from calibrant.data.sources.source import FITTED_ON, REPAIRED
from calibrant.errors import BadInput, NotComputable


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
        """Return values in the order of the first argument's rows."""
        return values[self.at[name]] if name in self.at else values

    def table(self, n: int) -> pa.Table | None:
        """The covariates as a table of n rows in that order."""
        if self.covariates is None or (isinstance(self.covariates, Mapping) and not self.covariates):
            return None
        kept = as_rows(self.covariates, "covariate", order=self.at if isinstance(self.covariates, Mapping) else None)
        if kept is None:
            inputs = type(self.covariates).__name__
            raise BadInput(f"covariates is a {inputs}: pass a pandas, Polars or Arrow table, or a dictionary")
        for name, why in kept.unread.items():
            raise BadInput(f"covariate {name!r} {why}")
        table = as_covariates(kept.table)
        if table.num_rows != n:
            raise BadInput(f"covariates has {table.num_rows:,} rows and y_true {n:,}: pass one row each")
        return table.take(self.at["covariates"]) if "covariates" in self.at else table


def labels_of(y_true: object, positive: object, event: str) -> Floats:
    """Return labels as numbers, NaN where missing; `event` is what whoever asks calls the argument `positive`."""
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
    """Return scores as numbers, NaN where missing: one column, or the second of two that add up to one."""
    p = matrix_of(y_prob, "y_prob")
    if p is None:
        return np.array(as_float(column_of(y_prob, "y_prob"), "y_prob", "score"))
    if p.shape[1] > 2:
        raise BadInput(
            f"y_prob has {p.shape[1]} columns, one for each class: use calibrant.multiclass_predictions(y_true, y_prob)"
        )
    off = np.abs(p.sum(axis=1) - 1.0) > 1e-3
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


def clusters_of(
    cluster: object, n: int, missing: bool, name: str = "cluster"
) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
    """Return which rows share clusters, and where that is known; refuse rows of which it is not, unless some may."""
    column = _one_each(cluster, n, name)
    absent = are_absent(column, name)
    if absent.any() and not missing:
        row = int(np.argmax(absent))
        raise BadInput(f"{name} is missing in {np.count_nonzero(absent):,} rows, first in row {row}: fill it in")
    if column.null_count and not absent.all():
        column = column.fill_null(column.drop_null()[0])  # whole numbers stay whole: those rows are left out
    return np.array(column.to_numpy(zero_copy_only=False)), ~absent


def weights_of(
    weights: object, n: int, missing: bool, name: str = "weights", zero: bool = False
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return weights, and where they are known; refuse rows of which they are not positive, but for what may be."""
    out = np.array(as_float(_one_each(weights, n, name), name, "weight"))
    known = ~np.isnan(out)
    sound = (np.isfinite(out) & (out > 0)) | (~known & missing) | ((out == 0) & zero)
    if not sound.all():
        row = int(np.argmin(sound))
        raise BadInput(f"{name} must be positive and finite; row {row} has {out[row]:g}: leave such rows out")
    return out, known


# ---- clusters on several levels ----

Levels = tuple[tuple[str, int], ...]  # columns of clusters and how many there are, the coarsest first


def cluster_columns(cluster: object) -> dict[str, object]:
    """The columns of clusters by name: those of a dictionary, a frame or a list of arrays; none of one array."""
    if isinstance(cluster, Mapping):
        results = {str(name): column for name, column in cluster.items()}
    elif isinstance(cluster, (list, tuple)) and cluster and all(map(_is_column, cluster)):
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


def _is_column(value: object) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, tuple, list))


def cluster_codes(columns: Mapping[str, object]) -> dict[str, NDArray[np.intp]]:
    """The cluster of each row as a number, by column; all are known."""
    codes = {name: _cluster_codes(name, column) for name, column in columns.items()}
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

    def part(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Crossing:
        """Return some of the rows."""
        codes = [np.unique(code[rows], return_inverse=True)[1].reshape(-1) for code in self.codes]
        return Crossing(self.names, np.array(codes))


ALL_AS_ONE = (
    "clusters {0!r} and {1!r} cross: this needs one column of independent clusters, so name one of them; both are "
    "taken by raw_lower, values, rounded, distance, groups and worst_group of certify, and by audit"
)


class ClustersCross(NotComputable):
    """Columns of clusters cross where one is needed that holds the others."""


def levels_of(codes: Mapping[str, NDArray[np.intp]]) -> Levels:
    """Return columns of clusters, the coarsest first: each of its clusters holds whole clusters of every other column.

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


def _cluster_codes(name: str, column: object) -> NDArray[np.intp]:
    try:
        n = len(column)  # type: ignore[arg-type]
    except TypeError:
        raise BadInput(f"cluster {name!r} is a {type(column).__name__}: pass one value for each row") from None
    try:
        result, _ = clusters_of(column, n, False)
    except BadInput as e:
        raise BadInput(f"cluster {name!r}: {e}") from None
    return np.asarray(np.unique(result, return_inverse=True)[1].reshape(-1), dtype=np.intp)


def _split(fine: NDArray[np.intp], coarse: NDArray[np.intp]) -> int:
    """Return how many clusters of one column have rows in more than one unit of the other."""
    pairs = np.unique(np.column_stack([fine, coarse]), axis=0)
    return int((np.bincount(pairs[:, 0]) > 1).sum()) if len(pairs) else 0


# ---- several classes ----


def class_names(classes: object, y_prob: object, labels: pa.Array, k: int) -> tuple[str, ...]:
    """The names of the classes in the order of the columns; empty where labels are their numbers."""
    if classes is None:
        names = getattr(y_prob, "column_names", getattr(y_prob, "columns", ()))
        if not is_text(labels.type) or not all(isinstance(n, str) for n in names):
            return ()
        return tuple(names)
    order = tuple(decoded(column_of(classes, "classes")).cast(pa.string()).to_pylist())
    if len(set(order)) != k or len(order) != k or None in order:
        raise BadInput(f"classes={shown(classes)}: name each of the {k} columns of y_prob once")
    return order


def class_labels(columns: Sequence[str], values: Iterable[object]) -> tuple[str, ...]:
    """What text labels call the classes of these columns: the columns, or what their names differ by.

    As labels write it, whatever the case and the marks between words; those that mean "no label" are passed over.
    """
    there = {letters_of(str(v)): str(v) for v in values if v is not None}
    for names in (tuple(columns), differing(columns)):
        known = {letters_of(name) for name in names}
        if all(plain in known or v in ABSENT for plain, v in there.items()):
            return tuple(there.get(letters_of(name), name) for name in names)
    return differing(columns)


def differing(family: Sequence[str]) -> tuple[str, ...]:
    """What names differ by: of p_home and p_away it is home and away."""
    first, last = _whole(beginning(family)), _whole(beginning([name[::-1] for name in family]))
    rest = [name[len(first) : len(name) - len(last)] for name in family]
    return tuple(rest) if all(rest) else tuple(family)


def beginning(names: Sequence[str]) -> str:
    """What all names begin with: what the first and the last in their order do."""
    first, last = min(names), max(names)
    return next((first[:i] for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), first)


def _whole(shared: str) -> str:
    """What names share, up to the last mark between words; a beginning such as that of p1 and p2 as it is."""
    marks = [m.end() for m in re.finditer(r"[_.\s-]", shared)]
    return shared[: marks[-1]] if marks else ("" if len(shared) > 1 and shared.isalpha() else shared)


OTHERS = REPAIRED, FITTED_ON  # ends of columns that a repair adds


def of_pattern(pattern: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that a pattern such as ``p_*`` stands for; of repaired scores only where it ends as they do."""
    others = OTHERS[1:] if pattern.endswith(REPAIRED) else OTHERS
    return tuple(name for name in fnmatch.filter(columns, pattern) if not name.endswith(others))


def matched(patterns: Sequence[str], columns: Sequence[str], caller: Caller) -> tuple[str, ...]:
    """The columns of three classes or more that names and patterns such as ``p_*`` stand for.

    Each once, those of a pattern in their order.
    """
    name, result = caller.name("score"), dict[str, None]()
    for pattern in patterns:
        own = (pattern,) if pattern in columns or "*" not in pattern else of_pattern(pattern, columns)
        if not own:
            raise BadInput(
                f"{name}={pattern!r} is the pattern of no column: there are {', '.join(map(repr, columns[:8]))}"
            )
        result |= dict.fromkeys(own)
    if len(result) < 3:
        event, most = next(reversed(result)), "one column" if len(result) == 1 else "two columns"
        one = f"--score {event} --positive VALUE" if caller.command else f"score={event!r}, positive="
        raise BadInput(
            f"{name} names {most}, {', '.join(map(repr, result))}: of several classes name three or more; of two name "
            f"the event's alone, {one}"
        )
    return tuple(result)


def one_label(table: pa.Table, labels: Sequence[str], scores: Sequence[str], name: str) -> pa.Array:
    """The class of each row, of a column of 0 and 1 for each class, in the order of the columns of probabilities."""
    if len(labels) != len(scores):
        raise BadInput(f"{name} names {len(labels)} columns of {len(scores)} classes: name one of each")
    flags = np.column_stack([label_values(table.column(name), name, None) for name in labels])
    wrong = ~(flags.sum(axis=1) == 1.0)
    if wrong.any():
        row, named = int(np.argmax(wrong)), ", ".join(map(repr, labels[:4]))
        raise BadInput(f"columns {named}: row {row} has not one of them at 1: each row belongs to one class")
    return pa.array([labels[i] for i in flags.argmax(axis=1).tolist()])


def column_each(p: Floats | None, labels: pa.Array) -> Floats:
    """Return probabilities of three classes or more, of as many rows as there are labels."""
    if p is None or p.shape[1] < 3:
        result = 1 if p is None else p.shape[1]
        raise BadInput(f"y_prob has {result} columns: pass one for each of three classes or more, or use predictions")
    if len(labels) != len(p):
        raise BadInput(f"y_true has {len(labels):,} rows and y_prob {len(p):,}: pass one class number for each row")
    if not len(p):
        raise BadInput("no rows to audit: y_true and y_prob are empty")
    return p


def class_numbers(labels: pa.Array, order: tuple[str, ...], k: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return labels as class numbers, and where there is one."""
    known = ~absent_labels(labels, order)
    if not known.any():
        raise BadInput("y_true holds nothing: every label is missing")
    labels = labels if known.all() else pc.if_else(pa.array(known), labels, labels[int(np.argmax(known))])
    return _numbered(labels, order, k), known


def _numbered(labels: pa.Array, order: tuple[str, ...], k: int) -> NDArray[np.int32]:
    """Return labels, of which none is missing, as class numbers."""
    if order:
        known = labels.type if is_text(labels.type) else pa.string()
        result = pc.index_in(labels.cast(known), value_set=pa.array(order, pa.string()))
        if result.null_count:
            strange = labels.filter(result.is_null())[0].as_py()
            numbered = all(name.isdecimal() for name in order)
            fix = ": number the labels in the order of the columns, from 0" if numbered else ""
            known = ", ".join(map(repr, order[:8]))
            raise BadInput(f"y_true holds {strange!r}, which is none of the classes {known}{fix}")
        return np.array(result.to_numpy(zero_copy_only=False), dtype=np.int32)
    if is_text(labels.type):
        raise BadInput(
            f"y_true holds text such as {labels[0].as_py()!r}: pass classes=, the labels in the order of the columns "
            "of y_prob (classes_ of a scikit-learn classifier)"
        )
    fix = f"y_true must hold class numbers 0 to {k - 1}, the columns of y_prob"
    if not (is_number(labels.type) or pa.types.is_boolean(labels.type)):
        raise BadInput(f"{fix}, and is {labels.type}: encode the classes, or pass classes=")
    numbers = as_float(labels, "y_true", "label")
    strange = ~((numbers >= 0) & (numbers < k) & (numbers == np.floor(numbers)))
    if strange.any():
        row = int(np.argmax(strange))
        mend = "subtract 1" if numbers.min() == 1 and numbers.max() == k else "encode the classes, or pass classes="
        raise BadInput(f"{fix}; row {row} holds {numbers[row]:g}: {mend}")
    return numbers.astype(np.int32)


ROUNDED, EXACT = 1e-3, 1e-9  # by which probabilities of a row, as written or as computed, may miss one in sum


def class_probabilities(p: Floats, keep: NDArray[np.bool_], caller: Caller | None) -> Floats:
    """Probabilities of every class, divided by their sum where their digits miss one; refuse rows that are none.

    `caller` names the options of a reader of files, None those of arrays.
    """
    total = p.sum(axis=1)
    wrong = keep & ~(np.isfinite(p).all(axis=1) & (p >= 0).all(axis=1) & (np.abs(total - 1) <= ROUNDED))
    if wrong.any():
        raise BadInput(_no_classes(p, wrong, caller))
    if bool((np.abs(total[keep] - 1) > EXACT).any()):  # by the digits that were written
        p = p / np.where(keep, total, 1.0)[:, None]
    return p


def _no_classes(p: Floats, wrong: NDArray[np.bool_], caller: Caller | None) -> str:
    """Say what is wrong with the first row of class probabilities that is no row of them, and what to do."""
    row, n = int(np.argmax(wrong)), int(wrong.sum())
    rows = "row is" if n == 1 else "rows are"
    stated = f"y_prob: {n:,} {rows} not probabilities that add up to one; first: row {row}, "
    fixes = {
        "drop_missing": "leave such rows out",
        "logits": "of logits pass their softmax, scipy.special.softmax(logits, axis=1)",
        "percent": "pass y_prob / 100",
        "renormalize": "pass every class; if all are there, y_prob / y_prob.sum(axis=1, keepdims=True)",
    }
    if caller is not None:
        words = {"drop_missing": "leave such rows out:", "logits": "of logits pass", "percent": "of percentages pass"}
        words["renormalize"] = "pass every class; if all are there,"
        fixes = {name: f"{how} {caller.turns_on(name)}" for name, how in words.items()}
    for fault, mend in ((~np.isfinite(p[row]), "drop_missing"), (p[row] < 0, "logits")):
        if fault.any():
            column = int(np.argmax(fault))
            return f"{stated}column {column}, {p[row, column]:.6g}: {fixes[mend]}"
    total = p.sum(axis=1)
    mend = fixes["percent" if np.allclose(total, 100, atol=1) else "renormalize"]
    if caller is not None and np.allclose(total, 0.01, atol=1e-4):
        mend = f"these add up to one as they are, so leave {caller.turns_on('percent')} out"
    return f"{stated}sum {p[row].sum():.6g}: {mend}"
