"""A fitted repair: a small immutable map from scores to scores, which JSON can carry, and which knows its rows."""

from __future__ import annotations

import itertools
import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.arguments import shown
from calibrant.data.arrays import matrix_of
from calibrant.data.calls import as_came, holds_rows
from calibrant.data.columns import require
from calibrant.data.predictions import MulticlassPredictions, Predictions, predictions
from calibrant.data.sketches.sample import identities_of
from calibrant.data.specs.coding import QUANTILES, TOP, Coding, Encoded, encode
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import mix
from calibrant.plugins import OUTPUTS
from calibrant.repair.catalogue import calibrator_classes
from calibrant.repair.disclosure import MASK
from calibrant.results import frozen, plain, plain_json

if TYPE_CHECKING:
    import pyarrow as pa

    from calibrant.repair.formulas.expression import Formula, Term

Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]

# ---- Which rows a map was fitted on, in a few numbers: enough to refuse judging it on them ----

KEPT = 128  # hashed scores that a map carries: 2 kB of JSON, and an overlap of a tenth is found
LOOK = 4096  # distinct hashes, about, from which they and the share of repeated rows are taken
FEW = 8  # distinct scores below which equal rows are no evidence of the same rows
CHANCE = 1e-6  # an overlap is claimed where so many common rows have at most this probability without one


@dataclass(frozen=True, kw_only=True)
class FittedOn:
    """The rows of a fit."""

    # `rows` and `events`: 0 rows: nothing was fitted.
    rows: int = 0
    events: int = 0
    digest: str = ""  # of the scores and labels, whatever their order; empty if nothing was fitted
    # Hashes of up to 128 scores that occur once among the rows; labels play no part, for a hash can be undone.
    sample: tuple[str, ...] = ()
    repeated: float = 1.0  # share of rows whose score occurs more than once
    distinct: int = 0  # scores, counted up to 128

    def __post_init__(self) -> None:
        for h in self.sample:
            sound(0 <= int(h, 16) < 2**64, "sample must be 64-bit numbers in hexadecimal")


def fitted_on(data: Predictions | MulticlassPredictions) -> FittedOn:
    """Describe the rows of a fit; of several classes, every class but the first counts as the event."""
    once, repeated, distinct = _looked_at(score_hashes(data))
    return FittedOn(
        rows=len(data.y),
        events=int(np.count_nonzero(data.y)),
        digest=_digest(row_hashes(data)),
        sample=tuple(f"{int(h):016x}" for h in once[:KEPT]),
        repeated=repeated,
        distinct=distinct,
    )


def row_hashes(data: Predictions | MulticlassPredictions) -> Hashes:
    """One number for the score, or the scores of all classes, and label of each row."""
    hashes: Hashes = mix(score_hashes(data) ^ data.y.astype(np.uint64))
    return hashes


def score_hashes(data: Predictions | MulticlassPredictions) -> Hashes:
    """One number for the score, or the scores of all classes, of each row."""
    state = np.zeros(len(data.y), dtype=np.uint64)
    for column in data.p.T if data.p.ndim == 2 else (data.p,):
        state = mix(state ^ np.ascontiguousarray(column).view(np.uint64))
    return state


def _digest(hashes: Hashes) -> str:
    return f"{int(np.add.reduce(hashes, dtype=np.uint64)):016x}{int(np.bitwise_xor.reduce(hashes)):016x}"


def _looked_at(hashes: Hashes) -> tuple[Hashes, float, int]:
    """The smallest hashes that occur once, the share of rows whose hash repeats, and distinct hashes up to 128.

    Equal rows have equal hashes, so that all rows below a bound show exactly which of them repeat.
    """
    near = hashes
    if len(hashes) > 2 * LOOK:
        near = hashes[hashes <= np.uint64(int(LOOK / len(hashes) * 2**64))]
        if len(near) < KEPT:  # few distinct rows, each many times: all of them are looked at
            near = hashes
    result, count = np.unique(near, return_counts=True)
    return result[count == 1], float(count[count > 1].sum() / max(count.sum(), 1)), min(len(result), KEPT)


def overlap(fitted: FittedOn, data: Predictions | MulticlassPredictions) -> str:
    """Say how rows overlap those of a fit, as far as scores and labels can tell; empty if they seem to be others.

    The same rows in any order are known by their digest, unless there are fewer than 8 distinct scores. Otherwise the
    scores that occurred once in the fit are looked for: without an overlap each is found with at most the probability
    that a row repeats, in the fit or here, and more finds than that allows (exact binomial, 1e-6) are an overlap. Where
    most rows repeat (scores of few values) nothing can be said, and nothing is claimed.
    """
    from scipy.special import bdtrc

    if not fitted.rows:
        return ""
    n, hashes = len(data.y), score_hashes(data)
    if fitted.rows == n and fitted.distinct >= FEW and fitted.digest == _digest(row_hashes(data)):
        return "the very rows it was fitted on"
    sample = np.array([int(h, 16) for h in fitted.sample], dtype=np.uint64)
    if not len(sample):
        return ""
    result = int(np.isin(sample, hashes[hashes <= sample.max()]).sum())
    chance = max(_looked_at(hashes)[1], fitted.repeated) + 1.0 / (n + 1)
    if result < 2 or chance >= 1.0 or bdtrc(result - 1, len(sample), chance) > CHANCE:
        return ""
    return f"rows it was fitted on: {result} of {len(sample)} looked for are here"


# ---- What a fitted repair is: a small immutable value that turns scores into scores, and that JSON can carry ----

FORMAT = "calibrant-calibrator/1"
Order = Literal["kept", "kept up to ties", "may change"]
Rows = TypeVar("Rows", Predictions, MulticlassPredictions)


@dataclass(frozen=True)
class Batch:
    """Rows as a map reads them: scores, covariates encoded by the map's codings, identities."""

    p: Floats
    covariates: Encoded  # of a map that reads none, no columns of so many rows
    ids: Hashes = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))  # of none, for maps that do not draw


@dataclass(frozen=True, kw_only=True)
class Calibrator:
    """A fitted repair: call it on data to repair the scores; `to_json` and `from_json` carry it without pickle.

    Parameters
    ----------
    recipe : str
        The repair that was fitted: ``"Platt"``.
    settings : Mapping
        Its settings, and facts about the fit.
    mask : int
        Rows on which every level, cut and knot rests at least: of fewer people it reveals nothing (`repair.reported`).
    codings : tuple of Coding
        How the covariates that it reads become numbers and levels; empty for a map of the score alone.
    fitted_on : FittedOn
        The rows it was fitted on, so that it is never judged on them.
    percent : bool
        The files it was fitted on hold scores in percent: so does what it is applied to.
    """

    several: ClassVar[bool] = False  # it repairs all classes of `multiclass_predictions` at once, not two

    recipe: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    mask: int = MASK
    codings: tuple[Coding, ...] = ()
    fitted_on: FittedOn = field(default_factory=FittedOn)
    percent: bool = False

    @property
    def kind(self) -> str:
        """The name of the class, by which `from_dict` finds it."""
        return type(self).__name__

    @property
    def order(self) -> Order:
        """Whether the order of people by score is kept."""
        return "may change"

    @property
    def reads(self) -> tuple[str, ...]:
        """Covariates that the map reads."""
        return tuple(c.name for c in self.codings)

    def values(self, rows: Batch) -> Floats:
        """The repaired scores, float64 in [0, 1]."""
        raise NotImplementedError

    def formula(self, row: Formula) -> Term:
        """The repaired score as a formula of a row, for `to_sql` and `to_javascript`."""
        reads = ", ".join([f"a {type(row.score).__name__.lower()}", *self.reads])
        raise NotComputable(f"{self.recipe} is no formula of {reads}: apply it with calibrant apply, or in Python")

    @property
    def classes(self) -> int:
        """How many scores of a row it repairs: one, or those of all classes at once."""
        return 1

    def formulas(self, row: Formula) -> tuple[Term, ...]:
        """The repaired score, or that of each class, as formulas of a row."""
        return (self.formula(row),)

    def to_sql(
        self,
        dialect: str,
        *,
        score: str | Sequence[str] = "score",
        table: str | Sequence[str] | None = None,
        output: str | Sequence[str] | None = None,
        keep: Sequence[str] | None = None,
    ) -> str:
        """The map as SQL, to repair scores where they are, without Python.

        Parameters
        ----------
        dialect : {"duckdb", "postgres", "spark", "bigquery", "tsql", "sqlite"}
        score : str or sequence of str
            The column of scores, in percent if the map's are; of a map of several classes a column each, in the order
            of the fit. Covariates are the columns that the map `reads`.
        table : str or sequence of str, optional
            Return a query of this table, ``"schema.table"`` or its parts; by default an expression of its columns.
        output : str or sequence of str, optional
            Of a query: the column added, ``<score>_repaired`` by default; of several classes one each.
        keep : sequence of str, optional
            Of a query: the other columns to return; all by default.

        Returns
        -------
        str
            Null where `scores` would refuse a row: a score that is null or out of range, an infinite covariate.

        Raises
        ------
        BadInput
            Another dialect; not as many columns as the map has scores; columns to keep must be named.
        NotComputable
            The map has no formula; it takes several steps, and no table is named; columns differ by case alone.

        Notes
        -----
        **Method.** The map's own arithmetic in double precision, names and levels quoted. See the page on deployment.
        **Cost.** A map of the score is one expression; boosted trees take a step for every ten trees. **Reads.** The
        map.

        Examples
        --------
        >>> import calibrant as cal
        >>> fitted = cal.repair.Rounding(steps=2).fit()
        >>> fitted.to_sql("duckdb", score="p", table="scores").splitlines()[-1]
        'FROM "scores"'
        """
        from calibrant.repair.formulas.dialects import dialect_named
        from calibrant.repair.formulas.expression import Formula
        from calibrant.repair.formulas.sql import Written, expression, query

        columns, row, named = self._columns("score", score), Formula(self.codings), dialect_named(dialect)
        named.distinct([*dict.fromkeys((*columns, *self.reads))])
        writer = Written(named, columns, 100.0 if self.percent else 1.0)
        results = self.formulas(row)
        if table is None:
            if output is not None or keep is not None:
                raise BadInput("output= and keep= are of a query: name its table with table=")
            return expression(row, results[0], writer)
        own = [f"{c}_repaired" for c in columns] if output is None else self._columns("output", output)
        return query(row, dict(zip(own, results, strict=True)), writer, table=table, keep=keep)

    def _columns(self, argument: str, inputs: str | Sequence[str]) -> tuple[str, ...]:
        """A column for each score of a row, as they were given."""
        names = (inputs,) if isinstance(inputs, str) else tuple(inputs)
        if len(names) != self.classes or len(set(names)) != len(names):
            what = (
                "of one score: name its column"
                if self.classes == 1
                else f"of {self.classes} classes: name a column each (--scores)"
            )
            raise BadInput(f"{argument}={inputs!r}: this calibrator is {what}")
        return names

    def to_javascript(self, name: str = "repaired") -> str:
        """The map as a JavaScript function ``name(score, row)``, to repair scores in a page or a service.

        Parameters
        ----------
        name : str
            Of the function: letters, digits and underscores.

        Returns
        -------
        str
            A function of the score (in percent if the map's are) and an object of covariates by column. It returns a
            number, or null where `scores` would refuse the row; of several classes it takes and returns an array.

        Raises
        ------
        BadInput
            Not a name.
        NotComputable
            The map has no formula.

        Notes
        -----
        **Method.** The map's own arithmetic, which JavaScript does in double precision. **Reads.** The map.

        Examples
        --------
        >>> import calibrant as cal
        >>> cal.repair.Rounding(steps=2).fit().to_javascript("shown").splitlines()[0]
        'function shown(score, row = {}) {'
        """
        if not (name.isascii() and name.isidentifier()):
            raise BadInput(f"name={name!r}: a function's name is letters, digits and underscores, such as repaired")
        return str(OUTPUTS.own("javascript").content(self, name, Namespace()))

    def check(self) -> None:
        """Raise `ValueError` if parts of the map do not go together; `from_dict` asks, once their types are right."""

    def scores(self, p: ArrayLike, *, columns: pa.Table | None = None, ids: Hashes | None = None) -> Floats:
        """The repaired scores of rows given as arrays.

        Parameters
        ----------
        p : float array of shape (n,)
        columns : pyarrow.Table or RecordBatch, optional
            Covariates; needed if the map `reads` any.
        ids : uint64 array of shape (n,), optional
            Identities of the rows, for a map that draws; by default those of rows 0 to n - 1.

        Raises
        ------
        BadInput
            A score is missing or outside 0 to 1; a covariate is not there, is of another kind than at the fit, or has
            another number of rows.
        """
        p = np.asarray(p, dtype=np.float64)
        if not p.ndim or not ((p >= 0.0) & (p <= 1.0)).all():
            raise BadInput(
                "scores to repair must be an array of numbers from 0 to 1, none missing: did you pass logits?"
            )
        ids = identities_of(len(p), 0) if ids is None else ids
        if self.codings:
            if columns is not None and getattr(columns, "num_rows", None) != len(p):
                raise BadInput(f"columns must be a pyarrow.Table of as many rows as there are scores, {len(p):,}")
            require(self.reads, () if columns is None else tuple(columns.schema.names), "covariate")
        return self.values(Batch(p, encode(columns, self.codings, len(p)), ids))

    def predict(self, p: ArrayLike, covariates: object = None) -> Floats:
        """The repaired probabilities of rows whose outcomes are not known.

        Parameters
        ----------
        p : array-like of shape (n,) or (n, 2), or of shape (n, K) of a map of K classes
            Probabilities, as a model gives them.
        covariates : frame or mapping of arrays, optional
            Needed if the map `reads` any.

        Returns
        -------
        array of shape (n,), or (n, K) of a map of K classes
            A series or frame of pandas or Polars if `p` is one, with its row labels.

        Raises
        ------
        BadInput
            As `scores`.
        """
        rows = len(p) if holds_rows(p) or hasattr(p, "columns") else 0  # type: ignore[arg-type]
        if not rows:
            raise BadInput(f"p={shown(p)}: pass probabilities of one row or more, an array of shape (n,)")
        own = matrix_of(p, "p") if self.several else p
        data = predictions(np.zeros(rows, np.int8), np.zeros(rows) if self.several else p, covariates)
        made: Floats = as_came(self.scores(own if self.several else data.p, columns=data.covariates), p)  # type: ignore[arg-type]
        return made

    transform = predict  # as `sklearn.isotonic.IsotonicRegression` has both

    def predict_proba(self, p: ArrayLike, covariates: object = None) -> Floats:
        """The repaired probabilities of every class: of two, shape (n, 2), those of the event come second."""
        values = np.asarray(self.predict(p, covariates))
        return values if self.several else np.column_stack([1.0 - values, values])

    @overload
    def __call__(self, data: Rows) -> Rows: ...
    @overload
    def __call__(self, data: ArrayLike) -> Floats: ...
    def __call__(self, data: object) -> object:
        """The data with repaired scores; or `predict`, of probabilities."""
        return self.predict(data) if holds_rows(data) else self._applied(data)  # type: ignore[arg-type]

    def _applied(self, data: object) -> object:
        """The data with repaired scores."""
        if not isinstance(data, Predictions):
            raise BadInput(
                f"this {self.recipe} is of two classes: project with .top_label() or .one_vs_rest(k), or use Dirichlet"
            )
        out, apart = self.scores(data.p, columns=data.covariates), data.unlabelled
        out.flags.writeable = False
        if apart is not None:
            apart = replace(apart, p=self.scores(apart.p, columns=apart.covariates))
        repaired = replace(data, p=out, unlabelled=apart, cache={})
        repaired.remember(data.library)
        return repaired

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Calibrator.from_dict, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """The map as plain lists, dictionaries, numbers and strings."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        parts = {"codings": [asdict(c) for c in self.codings], "fitted_on": asdict(self.fitted_on)}
        return {"format": FORMAT, "kind": self.kind, **plain(own | parts, str)}

    def to_json(self) -> str:
        """The map as JSON text, from which `from_json` makes an equal one."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=1)

    @staticmethod
    def from_dict(d: Mapping[str, Any]) -> Calibrator:
        """Rebuild the map that `to_dict` described.

        Raises
        ------
        BadInput
            It is not a map, was written by a newer calibrant, or lacks something.
        """
        written = d.get("format") if isinstance(d, Mapping) else type(d).__name__
        if written == "calibrant-map/1":
            raise BadInput(f"this calibrator was written by an older calibrant, as {written!r}: fit it again")
        if not isinstance(d, Mapping) or written != FORMAT:
            raise BadInput(f"not a calibrator of this version of calibrant: format is {shown(written)}, not {FORMAT!r}")
        kind, known = d.get("kind"), calibrator_classes()
        if not isinstance(kind, str) or kind not in known:
            every = ", ".join(sorted(known))
            raise BadInput(f"calibrator of an unknown kind {shown(kind)}: this calibrant knows {every}")
        try:
            return _decoded(known[kind], {k: v for k, v in d.items() if k not in ("format", "kind")})
        except ValueError as e:
            raise BadInput(f"calibrator of kind {kind!r} cannot be used: {e}") from None

    @staticmethod
    def from_json(text: str) -> Calibrator:
        """Rebuild the map from JSON text, which may come from anyone: size, depth and numbers are bounded first."""
        return Calibrator.from_dict(parsed(text))


class Recipe(Protocol):
    """A repair with its settings, not fitted yet."""

    def fit(self, data: Predictions) -> Calibrator:
        """Fit it to rows."""


# ---- Whether a map that was read from outside could have been fitted: types, finite numbers, lengths that agree ----
# Compiled code trusts the numbers of a map as indices, so that one that was damaged is refused before it is used.

HUGE = 1.7e308  # a little below the largest float, so that rounding on the way does not make it infinite
CODED = 10_000  # covariates of a map
Decoded = TypeVar("Decoded", bound=Calibrator)


def _decoded(kind: type[Decoded], d: Mapping[str, Any]) -> Decoded:
    """Build a map from plain data; raise `ValueError` unless every field is there, of its type, and sound."""
    import msgspec

    one = msgspec.convert(d, kind)
    parts: list[tuple[type[Calibrator | FittedOn | Coding], Mapping[str, Any]]] = [(kind, d)]
    parts += [(FittedOn, d.get("fitted_on", {})), *((Coding, c) for c in d.get("codings", ()))]
    for of, inputs in parts:
        extra = sorted(set(inputs) - {f.name for f in fields(of)})
        sound(not extra, f"unknown field {', '.join(map(shown, extra[:5]))}")
    for f in fields(one):
        sound(f.name == "settings" or _finite(getattr(one, f.name)), f"{f.name} is not what a fit leaves there")
    sound(len(one.codings) <= CODED, f"more than {CODED:,} covariates")
    for c in one.codings:
        sound(len(c.levels) <= TOP and len(c.ranks) <= QUANTILES, f"the coding of covariate {c.name!r} is too long")
        whole = c.scale > 0 and len(c.ranks) != 1 and rising(c.ranks) and (c.kind != "category" or c.levels)
        sound(bool(whole), f"the coding of covariate {c.name!r} is not what a fit leaves there")
    sound(len({c.name for c in one.codings}) == len(one.codings), "a covariate is coded twice")
    one.check()
    return replace(one, settings=frozen(one.settings))


def _finite(value: object) -> bool:
    """Whether arrays can hold every number inside: neither NaN, nor infinite, nor of more than 64 bits."""
    if isinstance(value, float):
        return abs(value) <= HUGE
    if isinstance(value, int):
        return abs(value) < 2**63
    if isinstance(value, tuple):
        return all(map(_finite, value))
    return not isinstance(value, (Coding, FittedOn)) or all(map(_finite, vars(value).values()))


def sound(holds: bool, why: str) -> None:
    """Raise `ValueError` unless something holds."""
    if not holds:
        raise ValueError(why)


def rising(values: Sequence[float], *, strictly: bool = False) -> bool:
    """Whether values never fall, or always rise."""
    return all(a < b if strictly else a <= b for a, b in itertools.pairwise(values))


def shares(values: Sequence[float]) -> bool:
    """Whether values lie in [0, 1]."""
    return all(0.0 <= v <= 1.0 for v in values)


def known(codes: Sequence[Sequence[int]], levels: Sequence[int]) -> bool:
    """Whether there are codes for each level variable, all of levels that it has."""
    return len(codes) == len(levels) and all(0 <= c < n for own, n in zip(codes, levels, strict=True) for c in own)


@dataclass(frozen=True)
class Inputs:
    """What a map sees of a row besides the score."""

    numbers: int  # numbers and dates
    levels: tuple[int, ...]  # how many levels each level variable has

    @property
    def columns(self) -> int:
        """Numbers and level variables."""
        return self.numbers + len(self.levels)


def inputs_of(codings: Sequence[Coding]) -> Inputs:
    """What `encode` makes of covariates."""
    numbers = [c for c in codings if c.kind in ("number", "date")]
    categories = tuple(len(c.labels) for c in codings if c.kind == "category")
    return Inputs(len(numbers), (*categories, *(2 for c in numbers if c.missing)))


# ---- The text of a map, taken from anyone: how large, deep and full it may be is settled before it is parsed ----

LARGEST = 16 << 20  # bytes: the fullest map that a recipe makes has a few
LISTS = 200_000  # lists and objects: an empty one is three bytes in the file and seventy in memory
WRITTEN = "a calibrator is written by to_json or calibrant repair"


def calibrator_text(path: str) -> str:
    """The text of a map's file, read no further than a map can be long."""
    try:
        with open(path, "rb") as file:
            kept = file.read(LARGEST + 1)
        if len(kept) > LARGEST:
            raise BadInput(f"cannot read the calibrator {path!r}: it is larger than {LARGEST >> 20} MB; {WRITTEN}")
        return kept.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as e:
        why = "it is not UTF-8" if isinstance(e, UnicodeDecodeError) else e.strerror or e
        raise BadInput(f"cannot read the calibrator {path!r}: {why}") from None


def parsed(text: str) -> Any:
    """What the JSON text of a map holds, no larger and no fuller than a map is."""
    if len(text) > LARGEST:
        raise BadInput(f"no calibrator: the text is longer than {LARGEST >> 20} MB; {WRITTEN}")
    if text.count("[") + text.count("{") > LISTS:
        raise BadInput(f"no calibrator: it holds more than {LISTS:,} lists; {WRITTEN}")
    return plain_json(text, WRITTEN)
