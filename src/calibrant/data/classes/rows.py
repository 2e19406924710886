"""Labels and probabilities of several classes, validated once and frozen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from calibrant.arguments import PYTHON, Caller, Missing, flag, shown, takes_names, text
from calibrant.data.arrays import column_of, columns_of, matrix_of
from calibrant.data.classes.columns import (
    ARRAYS,
    EXACT,
    ROUNDED,
    ClassInputs,
    by_class,
    class_names,
    class_texts,
    with_rest,
)
from calibrant.data.columns import (
    Floats,
    absent_labels,
    as_float,
    is_number,
)
from calibrant.data.inputs import PredictionInputs, clusters_of, weights_of
from calibrant.data.layouts import decoded, is_text
from calibrant.data.predictions import MulticlassPredictions, levels_and_crossing, missing_way, without_gaps
from calibrant.data.specs.options import BY_NUMBER, order_of
from calibrant.errors import BadInput, NotComputable

NUMBER = r"[+-]?\d+(\.\d+)?"  # a name that is one


def column_each(p: Floats | None, labels: pa.Array) -> Floats:
    """Probabilities of three classes or more, of as many rows as there are labels."""
    if p is None or p.shape[1] < 3:
        result = 1 if p is None else p.shape[1]
        raise BadInput(f"y_prob has {result} columns: pass one for each of three classes or more, or use predictions")
    if len(labels) != len(p):
        raise BadInput(f"y_true has {len(labels):,} rows and y_prob {len(p):,}: pass one class number for each row")
    if not len(p):
        raise BadInput("no rows to audit: y_true and y_prob are empty")
    return p


def class_numbers(
    labels: pa.Array, order: tuple[str, ...], k: int, called: ClassInputs
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Labels as class numbers, and where there is one."""
    known = ~absent_labels(labels, order)
    if not known.any():
        raise BadInput(f"{called.label} holds nothing: every label is missing")
    labels = labels if known.all() else pc.if_else(pa.array(known), labels, labels[int(np.argmax(known))])
    return _numbered(labels, order, k, called), known


def _numbered(labels: pa.Array, order: tuple[str, ...], k: int, called: ClassInputs) -> NDArray[np.int32]:
    """Labels, of which none is missing, as class numbers."""
    if order:
        known = labels.type if is_text(labels.type) else pa.string()
        result = pc.index_in(labels.cast(known), value_set=pa.array(order, pa.string()))
        if result.null_count:
            row = pc.index(result.is_null(), True).as_py()
            strange, where = labels[row].as_py(), f" in {called.place(row)}" if called.scores else ""
            numbered = all(name.isdecimal() for name in order)
            fix = ": number the labels in the order of the columns, from 0" if numbered else ""
            known = ", ".join(map(repr, order[:8]))
            raise BadInput(f"{called.label} holds {strange!r}{where}, which is none of the classes {known}{fix}")
        return np.array(result.to_numpy(zero_copy_only=False), dtype=np.int32)
    if is_text(labels.type):
        raise BadInput(
            f"{called.label} holds text such as {labels[0].as_py()!r}: pass classes=, the labels in the order of the "
            "columns of y_prob (classes_ of a scikit-learn classifier)"
        )
    of = called.every_score if called.scores else "the columns of y_prob"
    fix = f"{called.label} must hold class numbers 0 to {k - 1}, {of}"
    if not (is_number(labels.type) or pa.types.is_boolean(labels.type)):
        raise BadInput(f"{fix}, and is {labels.type}: encode the classes, or pass classes=")
    numbers = as_float(labels, "y_true", "label")
    strange = ~((numbers >= 0) & (numbers < k) & (numbers == np.floor(numbers)))
    if strange.any():
        row = int(np.argmax(strange))
        mend = "subtract 1" if numbers.min() == 1 and numbers.max() == k else "encode the classes, or pass classes="
        raise BadInput(f"{fix}; {called.place(row)} holds {numbers[row]:g}: {mend}")
    return numbers.astype(np.int32)


def class_probabilities(p: Floats, keep: NDArray[np.bool_], called: ClassInputs) -> Floats:
    """Probabilities of every class, each row divided, in place, by its sum where its digits miss one.

    Rows that are no probabilities are refused.
    """
    total = p.sum(axis=1)
    wrong = keep & ~(np.isfinite(p).all(axis=1) & (p >= 0).all(axis=1) & (np.abs(total - 1) <= ROUNDED))
    if wrong.any():
        raise BadInput(_no_classes(p, wrong, called))
    if bool((np.abs(total[keep] - 1) > EXACT).any()):  # by the digits that were written
        p /= np.where(keep, total, 1.0)[:, None]
    return p


def _no_classes(p: Floats, wrong: NDArray[np.bool_], called: ClassInputs) -> str:
    """Say what is wrong with the first row of class probabilities that is no row of them, and what to do."""
    row, n, caller = int(np.argmax(wrong)), int(wrong.sum()), called.caller
    rows = "row is" if n == 1 else "rows are"
    first = called.place(row)
    if np.isnan(p[wrong]).all():
        stated = f"{called.every_score}: {n:,} {'row has' if n == 1 else 'rows have'} no probability above 0"
        return f"{stated}; first: {first}: leave such rows out, {called.by.turns_on('drop_missing')}"
    stated = f"{called.every_score}: {n:,} {rows} not probabilities that add up to one; first: {first}, "
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
            return f"{stated}{called.score(column)}, {p[row, column]:.6g}: {fixes[mend]}"
    total = p.sum(axis=1)
    mend = fixes["percent" if np.allclose(total, 100, atol=1) else "renormalize"]
    if caller is not None and np.allclose(total, 0.01, atol=1e-4):
        mend = f"these add up to one as they are, so leave {caller.turns_on('percent')} out"
    return f"{stated}sum {p[row].sum():.6g}: {mend}"


# ---- classes that have an order, such as grades ----


def in_order(data: MulticlassPredictions, order: tuple[str, ...], by: Caller) -> MulticlassPredictions:
    """The rows with their classes from the lowest to the highest: by their numbers, or as they were named."""
    k, named = data.p.shape[1], by.name("ordered")
    names = [data.name_of(i) for i in range(k)]
    if data.rest:
        raise NotComputable(f"{named}: rows list some classes only, and at most a class may be any of the others")
    if order == BY_NUMBER:
        values = pc.cast(pa.array([n if re.fullmatch(NUMBER, n) else None for n in names]), pa.float64())
        numbers = values.to_numpy(zero_copy_only=False)
        if np.isnan(numbers).any() or len({*numbers.tolist()}) < k:
            way = f"{named} {shown(','.join(names))}" if by.command else f"{named}={shown(names)}"
            raise BadInput(f"{named}: classes such as {names[0]!r} are no numbers: name all from the lowest, {way}")
        at = np.argsort(numbers, kind="stable").tolist()
    else:
        if sorted(order) != sorted(names):
            strange = next((n for n in (*order, *names) if (n in order) != (n in names)), order[0])
            listed = ", ".join(map(repr, names[:8]))
            raise BadInput(f"{named} and the classes differ in {strange!r}: name each class once, of {listed}")
        at = [names.index(name) for name in order]
    if at == list(range(k)):
        return replace(data, ordered=True)
    place = np.empty(k, dtype=np.int32)
    place[at] = np.arange(k)
    y, p = place[data.y], np.ascontiguousarray(data.p[:, at])
    y.flags.writeable = p.flags.writeable = False
    columns = tuple(data.columns[i] for i in at) if data.columns else ()
    return replace(data, y=y, p=p, classes=tuple(names[i] for i in at), columns=columns, ordered=True)


@takes_names
def multiclass_predictions(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    covariates: object = None,
    *,
    weights: ArrayLike | None = None,
    cluster: object = None,
    classes: Sequence[object] | None = None,
    listed: object = None,
    rest: bool = False,
    ordered: bool | Sequence[str] = False,
    drop_missing: bool = False,
    missing: str = "level",
    name: str = "data",
) -> MulticlassPredictions:
    """Validate labels and probabilities of several classes once, and freeze them.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Class numbers 0 to K - 1, or labels that `classes` names.
    y_prob : array-like of shape (n, K)
        Probabilities of every class, K at least 3, rows adding up to one: within 1e-3, as rounded probabilities do,
        which are then divided by their sum.
    covariates : frame or mapping of arrays, optional
        As `calibrant.predictions`.
    weights : array-like of shape (n,), optional
        Positive numbers, 0 to leave a row out, which projections, `certify.classwise`, `Dirichlet` and `VariableTree`
        use. Methods without a proof for weights raise `NotComputable`.
    cluster : array-like of shape (n,) or mapping of them, optional
        As `calibrant.predictions`; used by projections and `certify.classwise`.
    classes : sequence of K labels, optional
        In the order of the columns of `y_prob`: ``classes_`` of a scikit-learn classifier. By default the names of
        those columns, where labels are text and `y_prob` is a frame.
    listed : array-like of shape (n, m), optional
        Of many classes, those that each row of `y_prob`, of the same shape, lists: numbers or names as in `y_true`,
        such as ``indices`` of ``torch.topk``. Where `y_prob` is NaN a row lists fewer. What a row lacks of one is the
        probability of the class ``"(rest)"``, to which a row belongs whose label it does not list.
    rest : bool
        The same of a column for each class: a row lists the classes whose probability is neither 0 nor missing.
    ordered : bool or sequence of str
        Classes have an order, that of their numbers, or as named from the lowest to the highest: audits judge the
        probability of at most each class, too.
    drop_missing, missing
        As `calibrant.predictions`, but for ``"keep"``, which has no proof for several classes.
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
    way, name = missing_way(drop_missing, missing), text("name", name)
    rows = y_true, y_prob, covariates
    if rest := flag("rest", rest) or listed is not None:
        rows, classes = _with_rest(rows, listed, classes)
    result = replace(frozen_classes(rows, weights, cluster, classes=classes, way=way), name=name, rest=rest)
    order = order_of("ordered", ordered)
    return in_order(result, order, PYTHON) if order else result


def _with_rest(
    rows: tuple[ArrayLike, ArrayLike, object], listed: object, classes: Sequence[object] | None
) -> tuple[tuple[ArrayLike, ArrayLike, object], tuple[str, ...]]:
    """Labels, probabilities and names of classes with one more for what rows do not list."""
    y_true, y_prob, covariates = rows
    if PredictionInputs(y_true=y_true, y_prob=y_prob, listed=listed, covariates=covariates).at:
        raise BadInput("with listed= or rest= rows are joined by position: put all arguments into one order")
    p, labels = matrix_of(y_prob, "y_prob"), decoded(column_of(y_true, "y_true"))
    p = as_float(column_of(y_prob, "y_prob"), "y_prob", "score")[:, None] if p is None else p
    if len(labels) != len(p):
        raise BadInput(f"y_true has {len(labels):,} rows and y_prob {len(p):,}: pass one class for each row")
    if listed is None:
        numbers = tuple(map(str, range(p.shape[1])))
        names = class_names(classes, y_prob, class_texts(labels), p.shape[1]) or numbers
    else:
        if classes is not None:
            raise BadInput("listed= names the classes itself: leave classes= out")
        columns = columns_of(listed, "listed")
        shape = len(columns[0]), len(columns)
        if shape != p.shape:
            raise BadInput(f"listed= has shape {shape} and y_prob {p.shape}: name one class for each probability")
        p, names = by_class(p, columns, ARRAYS)
    p, labels, names = with_rest(p, labels, names, ARRAYS)
    return (labels, p, covariates), names


def frozen_classes(
    rows: tuple[ArrayLike, ArrayLike, object],
    weights: ArrayLike | None = None,
    cluster: object = None,
    *,
    classes: Sequence[object] | None = None,
    way: Missing = "level",
    called: ClassInputs = ARRAYS,
) -> MulticlassPredictions:
    """Rows of several classes as `multiclass_predictions` does; `called` says what refusals call their parts."""
    y_true, y_prob, covariates = rows
    drops, by = way == "drop", called.by
    levels, crossing, clusters = levels_and_crossing(cluster, y_true, called.place)
    inputs = PredictionInputs(y_true=y_true, y_prob=y_prob, covariates=covariates, weights=weights, cluster=clusters)
    p, labels = matrix_of(y_prob, "y_prob"), decoded(column_of(y_true, "y_true"))
    p = column_each(p, labels)
    if way == "keep":
        how = by.turns_on("drop_missing")
        raise BadInput(f"{by.typed('missing', 'keep')} is of two classes: rows without a label are left out by {how}")
    order = class_names(classes, y_prob, labels, p.shape[1])
    numbers, known = class_numbers(labels, order, p.shape[1], called)
    if not (drops or known.all()):
        first = called.place(int(np.argmin(known)))
        count = int(np.count_nonzero(~known))
        stated = f"{called.label}: {count:,} {'value is' if count == 1 else 'values are'} missing, first in {first}"
        raise BadInput(f"{stated}: leave such rows out, {by.turns_on('drop_missing')}")
    p = inputs.ordered("y_prob", p)
    keep = inputs.ordered("y_true", known) & ~(np.isnan(p).any(axis=1) & drops)
    p = class_probabilities(p, keep, called)
    read = partial(weights_of, n=len(p), missing=drops, name=called.weights, zero=True, place=called.place)
    named = partial(clusters_of, n=len(p), missing=drops, name=called.cluster, place=called.place)
    w, who = inputs.attribute("weights", weights, read, keep), inputs.attribute("cluster", clusters, named, keep)
    keep &= w is None or w != 0.0
    without_gaps(table := inputs.table(len(p)), way)
    if not keep.any():
        raise BadInput("no rows are left after dropping missing values")
    y = inputs.ordered("y_true", numbers)
    result = MulticlassPredictions(y=y, p=p, covariates=table, classes=order, weights=w, cluster=who)
    result = replace(result, levels=levels, crossing=crossing)
    result = result if keep.all() else result.part(np.flatnonzero(keep), dropped=int(np.count_nonzero(~keep)))
    for column in (result.y, result.p, result.weights, result.cluster):
        if column is not None:
            column.flags.writeable = False
    return result
