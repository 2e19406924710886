"""Labels, probabilities and covariates, validated once and frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar, overload

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from calibrant.arguments import MISSING_WAYS, PYTHON, Caller, Missing, choice, flag, takes_names, text
from calibrant.data.columns import Floats, picked
from calibrant.data.inputs import (
    ClustersCross,
    Crossing,
    Levels,
    PredictionInputs,
    cluster_codes,
    cluster_columns,
    clusters_of,
    crossing_of,
    labels_of,
    levels_of,
    row_number,
    scores_of,
    weights_of,
)
from calibrant.data.specs.column_names import AT_MOST
from calibrant.data.specs.faults import Faults
from calibrant.data.specs.horizon import Followed, all_known
from calibrant.data.specs.spec import ATTACHED, Spec
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Frame, Framed
from calibrant.sanitize import sanitize

Kind = TypeVar("Kind")
Other = TypeVar("Other")

NAMED = 6  # covariates in a few words about predictions

# ---- Labels, probabilities and covariates, validated once and frozen ----


@dataclass(frozen=True, kw_only=True)
class Unlabelled:
    """Rows whose label is missing: their scores and covariates.

    Parameters
    ----------
    p : float64 array of shape (m,), read-only
    covariates : pyarrow.Table
        Of as many rows, and of no column where none were given.
    weights, cluster : arrays of shape (m,) or None
        As those of the rows that have a label.
    """

    p: NDArray[np.float64]
    covariates: pa.Table
    weights: NDArray[np.float64] | None = None
    cluster: NDArray[np.generic] | None = None


@dataclass(frozen=True, kw_only=True)
class Predictions(Framed):
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
        Positive weights; which rows share clusters.
    name : str
    dropped : int
        Rows left out because score or label was missing.
    cluster_ids : uint64 array of shape (n,) or None
        Of rows that a sketch held: the hashes by which it knows their clusters.
    levels : tuple of (str, int)
        Where several columns named clusters, each with its number of clusters, the coarsest first: `cluster` holds that
        one.
    crossing : Crossing or None
        Two columns of clusters that cross; `cluster` then holds one cluster, so that nothing takes rows as independent
        that does not know better.
    unlabelled : Unlabelled or None
        Rows without a label that were kept apart, with ``missing="keep"``: `certify.missing_labels` reads them.
    followed : Followed or None
        What ended the follow-up of each row, where some outcomes by a horizon are unknown (`at_horizon`).
    horizon : mapping
        How outcomes by a horizon were made, and how many rows came to what; empty for other outcomes.
    unfinished : tuple of str
        Logs of evaluations among the sources that did not come to their end, each with how many answers it has.
    excluded : tuple of str
        Rows that the score's calibrator was fitted on, which were left out: how many, by which column.
    """

    y: NDArray[np.int8]
    p: NDArray[np.float64]
    covariates: Any = None
    weights: NDArray[np.float64] | None = None
    cluster: NDArray[Any] | None = None
    name: str = "data"
    dropped: int = 0
    cluster_ids: NDArray[np.uint64] | None = field(default=None, repr=False)
    levels: Levels = ()
    crossing: Crossing | None = field(default=None, repr=False)
    unlabelled: Unlabelled | None = None
    followed: Followed | None = field(default=None, repr=False)
    horizon: Mapping[str, str | int | float | None] = field(default_factory=dict)
    unfinished: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    seen_events: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    cache: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.y)

    @property
    def events(self) -> int:
        """Rows with outcome 1."""
        return int(self.y.sum(dtype=np.int64))

    @property
    def weighs(self) -> bool:
        """Whether rows were lost before a horizon, and weights of censoring stand for them."""
        return self.followed is not None and self.unlabelled is not None and self.followed.weighs

    def __len__(self) -> int:
        return self.n

    @property
    def library(self) -> str:
        """The library of the frame that the rows came in: ``"pandas"``, ``"polars"``, or nothing."""
        return str(self.cache.get(FRAME, ""))

    def remember(self, library: str) -> None:
        """Note the library of the frame that the rows came in."""
        self.cache[FRAME] = library

    def part(self, rows: NDArray[np.intp]) -> Predictions:
        """Some of the rows, by number."""
        known = picked(self.cluster_ids, rows)
        return replace(self, **_columns_of(self, rows), cluster_ids=known, dropped=0, cache={})

    def to_arrow(self) -> pa.Table:
        """The rows as a `pyarrow.Table`: ``y_true``, ``y_prob``, the covariates, weights and clusters."""
        columns = {"y_true": pa.array(self.y), "y_prob": pa.array(self.p)}
        if self.covariates is not None:
            columns |= {name: self.covariates.column(name) for name in self.covariates.column_names}
        return pa.table(columns | {name: pa.array(v) for name, v in attached(self).items()})

    def head(self, rows: int = 5) -> Frame:
        """The first rows as a frame."""
        return self.to_frame().head(rows)

    def __repr__(self) -> str:
        apart = [f"{len(self.unlabelled.p):,} rows without a label"] if self.unlabelled is not None else []
        reported = [f"{self.n:,} rows", f"{self.events:,} events", *apart, *_columns(self.covariates), *attached(self)]
        return f"Predictions({sanitize(self.name)}: {', '.join(reported)})"


def attached(data: Predictions | MulticlassPredictions) -> dict[str, NDArray[np.generic]]:
    """The weights and the clusters of rows, as far as there are any."""
    return {name: column for name in reversed(ATTACHED) if (column := getattr(data, name)) is not None}


def _columns_of(data: Predictions | MulticlassPredictions, rows: NDArray[np.intp]) -> dict[str, Any]:
    """What there is one of a row, of some of them."""
    y, p = data.y[rows], data.p[rows]
    y.flags.writeable = p.flags.writeable = False
    return {
        "y": y,
        "p": p,
        "covariates": None if data.covariates is None else data.covariates.take(pa.array(rows)),
        **{name: picked(getattr(data, name), rows) for name in ATTACHED},
        "crossing": None if data.crossing is None else data.crossing.part(rows),
    }


def remembered(data: Predictions, key: object, make: Callable[[], Kind]) -> Kind:
    """What is made of rows once, and kept with them."""
    if key not in data.cache:
        data.cache[key] = make()
    result: Kind = data.cache[key]
    return result


def codes_of(data: Predictions) -> NDArray[np.intp]:
    """The cluster of each row of rows in clusters, 0 to G - 1, made once.

    Raises
    ------
    ClustersCross
        Two columns name clusters that cross: none holds those of the other.
    """

    def made() -> NDArray[np.intp]:
        if data.crossing is not None:
            data.crossing.refuse()
        codes = np.unique(np.asarray(data.cluster), return_inverse=True)[1].reshape(-1)
        codes.flags.writeable = False  # one array for all who ask
        return codes

    return remembered(data, "cluster codes", made)


FRAME = "frame"  # in the cache of rows: the library of the frame that they came in


def frame_of(source: object) -> str:
    """The library of a frame, or of that which rows were made of: pandas or Polars; empty for all else."""
    if isinstance(source, Predictions):
        return source.library
    library = type(source).__module__.partition(".")[0]
    return library if library in ("pandas", "polars") else ""


def _columns(covariates: Any) -> list[str]:
    """How many covariates there are, and the first few by name."""
    if covariates is None:
        return []
    names = [sanitize(n) for n in covariates.column_names]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return [f"covariates {', '.join(names[:NAMED])}{more}"] if names else []


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
    classes : tuple of str
        Labels in the order of the columns; empty where they are the class numbers.
    name : str
    weights : float64 array of shape (n,), read-only, or None
    cluster, levels, crossing
        As of `Predictions`.
    columns : tuple of str
        Of a file, that hold the probabilities; empty where they came as an array.
    dropped : int
        Rows left out because something was missing, or their weight 0; the others are `kept`, by number.
    rest : bool
        The last class, ``"(rest)"``, is whatever a row does not list.
    ordered : bool
        Classes have an order, from the lowest to the highest: ``at_most(k)`` is a view, too.
    """

    y: NDArray[np.int32]
    p: NDArray[np.float64]
    covariates: Any = None
    classes: tuple[str, ...] = ()
    name: str = "data"
    weights: NDArray[np.float64] | None = None
    cluster: NDArray[np.generic] | None = None
    levels: Levels = ()
    crossing: Crossing | None = field(default=None, repr=False)
    columns: tuple[str, ...] = field(default=(), repr=False)
    dropped: int = 0
    kept: NDArray[np.intp] | None = field(default=None, repr=False)
    rest: bool = False
    ordered: bool = False

    def __repr__(self) -> str:
        reported = [f"{self.n:,} rows", f"{self.p.shape[1]} classes", *_columns(self.covariates), *attached(self)]
        return f"MulticlassPredictions({sanitize(self.name)}: {', '.join(reported)})"

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.y)

    def top_label(self) -> Predictions:
        """The confidence view: outcome "the most probable class is right", score its probability."""
        return self._top_label

    @cached_property
    def _top_label(self) -> Predictions:
        """The same, made once: an audit reads it often."""
        return self._projected(self.predicted == self.y, self.p[np.arange(self.n), self.predicted])

    @cached_property
    def predicted(self) -> NDArray[np.intp]:
        """The most probable class of each row, by number: of what it lists."""
        result: NDArray[np.intp] = self.p[:, : self.p.shape[1] - self.rest].argmax(axis=1)
        return result

    def one_vs_rest(self, k: int | str) -> Predictions:
        """The view of one class, by number or label; share ``alpha`` over the classes you look at."""
        k = self._number(k)
        return self._projected(self.y == k, self.p[:, k])

    def at_most(self, k: int | str) -> Predictions:
        """The view of ordered classes up to one, by number or label: its score is their probabilities, added up."""
        if not self.ordered:
            raise BadInput("at_most is of classes that have an order: pass ordered= to multiclass_predictions")
        k = self._number(k)
        return self._projected(self.y <= k, np.minimum(np.cumsum(self.p[:, : k + 1], axis=1)[:, -1], 1.0))

    def _number(self, k: int | str) -> int:
        """The number of a class."""
        if isinstance(k, str) and not self.classes and k.isdecimal():
            k = int(k)
        if isinstance(k, str):
            if k not in self.classes:
                raise BadInput(
                    f"class k={k!r}: there are {', '.join(map(repr, self.classes)) or 'no labels, only numbers'}"
                )
            k = self.classes.index(k)
        if not 0 <= k < self.p.shape[1]:
            raise BadInput(f"class k={k}: there are classes 0 to {self.p.shape[1] - 1}")
        return k

    @property
    def events(self) -> tuple[str, ...]:
        """What each class is called, and of ordered ones each cut with two or more on both sides: what is judged."""
        names = tuple(self.name_of(k) for k in range(self.p.shape[1]))
        return (*names, *(AT_MOST.format(name) for name in names[1:-2] if self.ordered))

    def name_of(self, k: int) -> str:
        """The label of a class, or its number."""
        return self.classes[k] if self.classes else str(k)

    @property
    def columns_by_class(self) -> dict[str, str | None]:
        """Each class with the column of the file that holds its probability; None where it came in an array."""
        k = self.p.shape[1]
        of = (*self.columns, *(None,) * (k - len(self.columns)))
        return {self.name_of(i): of[i] for i in range(k)}

    def part(self, rows: NDArray[np.intp], dropped: int = 0) -> MulticlassPredictions:
        """Some of the rows, by number, which leave out `dropped`."""
        return replace(self, **_columns_of(self, rows), dropped=dropped, kept=rows if dropped else None)

    def _projected(self, y: NDArray[np.bool_], p: Floats) -> Predictions:
        """Two classes of the same rows."""
        result = predictions(y.astype(np.int8), p, self.covariates, weights=self.weights, name=self.name)
        result = replace(result, cluster=self.cluster, levels=self.levels, crossing=self.crossing)
        return replace(result, dropped=self.dropped)


@takes_names
def predictions(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    covariates: object = None,
    *,
    weights: ArrayLike | None = None,
    cluster: object = None,
    positive: object = None,
    drop_missing: bool = False,
    missing: str = "level",
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
        pandas, Polars, Arrow, whatever speaks their protocols, or a dictionary, with n rows. Where two arguments have
        an index (pandas, xarray), rows are joined by it if its labels are the same and unique, else refused.
    weights : array-like of shape (n,), optional
        Positive numbers; a row of weight 0 is left out, and counted. Methods without a proof for weights raise
        `NotComputable`.
    cluster : array-like of shape (n,), or a dictionary, list or frame of such, optional
        Which rows share clusters. Methods without a proof for clusters raise `NotComputable`. Of several columns
        (patient, hospital) the coarsest is the cluster, which must hold every unit of the others whole; two that cross
        (person, question) are taken by `audit` and `certify.raw_lower`, `values`, `rounded`, `groups`, `worst_group`.
    positive : optional
        The label that counts as the event.
    drop_missing : bool
        Leave out, and count, rows whose label, probability, cluster or weight is missing: short for ``missing="drop"``.
    missing : {"level", "drop", "keep", "refuse"}
        By default a missing label or probability is refused, and a missing covariate is a level of its own;
        ``"refuse"`` refuses those too. ``"keep"`` keeps rows without a label apart, for `certify.missing_labels`;
        everything else reads those that have one.
    name : str
        Name for reports.

    Returns
    -------
    Predictions

    Raises
    ------
    BadInput
        A value is missing (masked, null, NaN), out of range or of another length; the message names column, count and
        first row.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.predictions([0, 1, 1], [0.2, 0.7, 0.9], {"age": [31, 52, 67]}).n
    3
    """
    way, name = missing_way(drop_missing, missing), text("name", name)
    result = frozen((y_true, y_prob, covariates), weights, cluster, positive=positive, way=way)
    result.remember(next(filter(None, map(frame_of, (covariates, y_prob, y_true))), ""))
    return replace(result, name=name)


def frozen(
    rows: tuple[ArrayLike, ArrayLike, object],
    weights: ArrayLike | None = None,
    cluster: object = None,
    *,
    positive: object = None,
    way: Missing = "level",
    caller: Caller = PYTHON,
) -> Predictions:
    """Labels, probabilities and covariates as `predictions` does; `caller` says what refusals call arguments."""
    y_true, y_prob, covariates = rows
    drop_missing = way == "drop"
    levels, crossing, clusters = levels_and_crossing(cluster, y_true)
    if way == "keep" and crossing is not None:
        raise NotComputable(APART.format(*crossing.names))
    attached_rows = {caller.name("weights"): weights, caller.name("cluster"): clusters}
    inputs = PredictionInputs(y_true=y_true, y_prob=y_prob, covariates=covariates, **attached_rows)
    y = inputs.ordered("y_true", labels_of(y_true, positive, caller.name("positive")))
    p = inputs.ordered("y_prob", scores_of(y_prob))
    if len(y) != len(p):
        raise BadInput(f"y_true has {len(y):,} rows and y_prob {len(p):,}: pass one label for each probability")
    keep = _validated(y, p, way, caller)
    of, by = caller.name("weights"), caller.name("cluster")
    w = inputs.attribute(of, weights, partial(weights_of, n=len(y), missing=drop_missing, name=of, zero=True), keep)
    who = inputs.attribute(by, clusters, partial(clusters_of, n=len(y), missing=drop_missing, name=by), keep)
    counts = np.ones(len(y), dtype=np.bool_) if w is None else w != 0.0  # a row of weight 0 stands for nobody
    keep &= counts
    lost = counts & ~keep
    dropped = int(np.count_nonzero(~keep))
    table = inputs.table(len(y))
    without_gaps(table, way)
    if not keep.any():
        raise BadInput("no rows are left after dropping missing values")
    apart = None
    if way == "keep":
        covariates = pa.table({}) if table is None else table.filter(lost)
        apart = Unlabelled(p=p[lost], covariates=covariates, weights=picked(w, lost), cluster=picked(who, lost))
    if dropped:
        y, p, w, who = y[keep], p[keep], picked(w, keep), picked(who, keep)
        table = None if table is None else table.filter(keep)
        crossing = None if crossing is None else crossing.part(keep)
    y8 = y.astype(np.int8)
    for column in (y8, p, w, who, None if apart is None else apart.p):
        if column is not None:
            column.flags.writeable = False
    return Predictions(
        y=y8,
        p=p,
        covariates=table,
        weights=w,
        cluster=who,
        levels=levels,
        crossing=crossing,
        dropped=int(np.count_nonzero(~counts)) if apart else dropped,
        unlabelled=apart,
    )


def levels_and_crossing(
    cluster: object, y_true: object, place: Callable[[int], str] = row_number
) -> tuple[Levels, Crossing | None, object]:
    """The levels of clusters, in the order of the labels' rows, or what crosses; and the coarsest column."""
    if not (columns := cluster_columns(cluster)):
        return (), None, cluster
    codes = cluster_codes(columns, place)
    inputs = PredictionInputs(y_true=y_true, **{f"cluster {k!r}": c for k, c in columns.items()})
    ordered = {name: inputs.ordered(f"cluster {name!r}", code) for name, code in codes.items()}
    try:
        levels = levels_of(ordered)
    except ClustersCross:
        return (), crossing_of(ordered), np.zeros(len(next(iter(ordered.values()))), dtype=np.int64)
    return levels, None, columns[levels[0][0]]


APART = "clusters {0!r} and {1!r} cross, and rows without a label are kept apart by one column alone: name one of them"


def missing_way(drop_missing: bool, missing: str, caller: Caller = PYTHON) -> Missing:
    """What is done about missing values, which two arguments may say."""
    stated: Missing = choice(caller.name("missing"), missing, MISSING_WAYS)
    if not flag(caller.name("drop_missing"), drop_missing):
        return stated
    if stated in ("refuse", "keep"):
        raise BadInput(f"{caller.turns_on('drop_missing')} and {caller.name('missing')}={stated}: pass one of them")
    return "drop"


WAYS = {  # what to pass to a function of such kinds of data, the first of those it takes
    "Sketch": "calibrant.predictions(y_true, y_prob), calibrant.read(...) or calibrant.sketch(...)",
    "Predictions": "calibrant.predictions(y_true, y_prob) or calibrant.read(...), for rows are read",
    "MulticlassPredictions": "calibrant.multiclass_predictions(y_true, y_prob)",
}
SEVERAL = "several classes: pass data.top_label(), or data.one_vs_rest(k) with alpha / K"


@overload
def checked_data(data: object, kind: type[Kind], /, *, name: str = ...) -> Kind: ...
@overload
def checked_data(data: object, kind: type[Kind], other: type[Other], /, *, name: str = ...) -> Kind | Other: ...
def checked_data(data: object, *kinds: type[Any], name: str = "data") -> Any:
    """The data of a public function if it is of one of these kinds; else say in one line what to pass.

    Every function that reads rows, or rows or a sketch, begins here: ``checked_data(data, Predictions, Sketch)``.
    """
    if Predictions in kinds and getattr(data, "by_clusters", False):
        data = data.rows()  # type: ignore[attr-defined]
    if isinstance(data, kinds):
        return all_known(data)
    if isinstance(data, MulticlassPredictions):
        raise BadInput(SEVERAL)
    way = next(way for kind, way in WAYS.items() if kind in {each.__name__ for each in kinds})
    raise BadInput(f"{name} is a {type(data).__name__}: pass {way}")


def without_gaps(table: pa.Table | None, way: Missing) -> None:
    """Refuse missing covariates, if nothing may be missing."""
    if table is not None:
        faults, spec = Faults(arrays=True), Spec(label="y_true", score="y_prob", missing=way)
        faults.note_gaps(table, spec, table.column_names, "", 0)
        faults.check(spec)


def _validated(y: Floats, p: Floats, missing: Missing, caller: Caller) -> NDArray[np.bool_]:
    """Check every value; return the rows to keep."""
    labels, between = (0.0, 1.0), (y > 0.0) & (y < 1.0)
    if between.any() and np.isin(p, labels).all():
        raise BadInput("y_true holds probabilities, and y_prob labels: swap the two")
    faults = Faults(arrays=True, caller=caller)
    faults.see(p, percent=False)
    faults.note(p, y, digits=6)
    faults.check(Spec(label="y_true", score="y_prob", missing=missing))
    if not len(y):
        raise BadInput("no rows to audit: y_true and y_prob are empty")
    return ~(np.isnan(p) | np.isnan(y))
