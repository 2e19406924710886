"""The first look: groups and covariates, never labels, fix a spec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.data.columns import Floats, Ids, as_float, dated, decoded, is_date, is_number, require, whole
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.parts import ends_of
from calibrant.data.sketches.sample import COVARIATES, HERE, Batch, Origin, RawSample, scores_of
from calibrant.data.specs.coding import TOP, codings
from calibrant.data.specs.local import DRAWS, MOST, local_spec, simulates
from calibrant.data.specs.sketch_file import packed, unpacked
from calibrant.data.specs.spec import Kind, Spec, Variable
from calibrant.errors import BadInput
from calibrant.kernels.tally import SCORE_BITS

# ---- what a group column holds: its values counted, which fixes its levels ----

FEW = 12  # a number with at most this many values is a category: months, grades, codes
BINS = 6  # about as many as a reader compares at a glance
TOP_LEVELS = 200  # levels kept of a category; the rest become "other"
IDENTIFIER = 100_000  # more distinct values than this are not a group column
FREQUENT = 20  # rows of one level that a column with more than 200 of them must have somewhere
MONTHS = 24  # from more of them on years are the levels
COARSE = np.int64(-1) << np.int64(40)  # keeps 12 bits of a double's mantissa: whole numbers to 4096 stay exact


@dataclass
class Profile:
    """Counts of one column's values; mergeable, and small whatever the number of rows.

    Parameters
    ----------
    name : str
    kind : {"category", "number", "month", "year"}
    texts, numbers : dict
        Rows by value; numbers to 12 bits.
    exact : tuple of float
        Numbers as they are, in order, while there are few.
    whole : bool
        Numbers were whole so far.
    seen : bool
        Some part of the column was not empty.
    """

    name: str
    kind: Kind = "category"
    texts: dict[str, int] = field(default_factory=dict)
    numbers: dict[float, int] = field(default_factory=dict)
    exact: tuple[float, ...] = ()
    whole: bool = True
    seen: bool = False

    def update(self, column: pa.Array | pa.ChunkedArray) -> None:
        """Count a chunk of the column."""
        column = whole(column)
        if not (pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type)):
            column = decoded(column)
        t, before = column.type, self.kind
        if pa.types.is_null(t):
            return
        if is_number(t):
            self._numbers(column)
            self._one_kind(before)
            return
        self.kind = "month" if is_date(t) else "category"
        column = dated(column, self.kind) if is_date(t) else column
        if not (is_date(t) or pa.types.is_dictionary(t) or pa.types.is_string(t) or pa.types.is_boolean(t)):
            raise BadInput(f"group column {self.name!r} holds {t}: use text, numbers, dates or booleans")
        self._one_kind(before)
        for item in pc.value_counts(column):
            value = item["values"].as_py()
            if value is not None and value != "":
                text = str(value).lower() if isinstance(value, bool) else str(value)
                self.texts[text] = self.texts.get(text, 0) + item["counts"].as_py()
        self._guard()

    def _numbers(self, column: pa.Array) -> None:
        self.kind = "number"
        values = as_float(column, self.name, "group")
        values = values[~np.isnan(values)] + 0.0  # minus zero is zero
        if np.isinf(values).any():
            raise BadInput(f"group column {self.name!r} holds infinite values: replace or cap them")
        if self.whole:
            self.whole = bool((values == np.floor(values)).all())
        coarse = (values.view(np.int64) & COARSE).view(np.float64)
        counted = pc.value_counts(pa.array(coarse))
        for value, count in zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True):
            self.numbers[value] = self.numbers.get(value, 0) + count
        if len(self.exact) <= FEW:
            self.exact = tuple(sorted({*self.exact, *pc.unique(pa.array(values)).to_pylist()[: FEW + 1]}))

    def _one_kind(self, before: Kind) -> None:
        if self.seen and before != self.kind:
            first, second = sorted((before, self.kind))
            raise BadInput(
                f"group column {self.name!r} holds {first} values in one place and {second} values in another: "
                "store it one way in every file"
            )
        self.seen = True

    def _guard(self) -> None:
        if max(len(self.texts), len(self.numbers)) > IDENTIFIER:
            raise BadInput(
                f"group column {self.name!r} has more than {IDENTIFIER:,} distinct values: "
                "it looks like an identifier; group by something coarser"
            )

    def merge(self, other: Profile) -> None:
        """Add the counts of another part of the column."""
        if not other.seen:
            return
        before, self.kind = self.kind, other.kind
        self._one_kind(before)
        self.texts = dict(Counter(self.texts) + Counter(other.texts))
        self.numbers = dict(Counter(self.numbers) + Counter(other.numbers))
        self.whole &= other.whole
        if len(self.exact) <= FEW:
            self.exact = tuple(sorted({*self.exact, *other.exact}))
        self._guard()

    def variable(self, edges: tuple[float, ...] | None = None) -> Variable:
        """Fix the levels: values, or bins at `edges` if given, or bins at round numbers."""
        if edges is not None:
            if self.kind != "number":
                raise BadInput(f"bins for {self.name!r}: it is not a number; leave its bins out")
            if list(edges) != sorted(set(edges)):
                raise BadInput(f"bins for {self.name!r} must increase: {edges}")
        elif self.kind != "number":
            return self._category()
        elif len(self.exact) <= FEW:
            values = tuple(f"{v:.0f}" if v == int(v) else repr(v) for v in self.exact)
            return Variable(name=self.name, kind="category", values=values)
        else:
            edges = round_edges(self.numbers)
        in_whole_numbers = self.whole and all(e == int(e) for e in edges)
        return Variable(name=self.name, kind="number", edges=edges, whole=in_whole_numbers)

    def _category(self) -> Variable:
        counts, kind = Counter(self.texts), self.kind
        if kind == "month" and len(counts) > MONTHS:
            kind, counts = "year", Counter()
            for month, count in self.texts.items():
                counts[month[:4]] += count
        if len(counts) > TOP_LEVELS and max(counts.values()) < FREQUENT:
            raise BadInput(
                f"group column {self.name!r} has {len(counts):,} distinct values and none on {FREQUENT} rows: "
                "it looks like an identifier; group by something coarser"
            )
        kept = sorted(counts, key=lambda v: (-counts[v], v))[:TOP_LEVELS]
        values = tuple(sorted(kept, key=_natural))
        return Variable(name=self.name, kind=kind, values=values, folded=len(counts) - len(kept))


def _natural(text: str) -> tuple[int, float, str]:
    """Sort numbers by value before text by letter, so that 10 follows 9."""
    try:
        return (0, float(text), text)
    except ValueError:
        return (1, 0.0, text)


def round_edges(counts: dict[float, int]) -> tuple[float, ...]:
    """Choose bin edges at round numbers: equal steps if they share the rows out, else rounded quantiles."""
    values = np.array(sorted(counts))
    weight = np.array([counts[v] for v in values], dtype=float)
    cumulative = np.cumsum(weight) / weight.sum()

    def quantile(q: float) -> float:
        return float(values[min(int(np.searchsorted(cumulative, q)), len(values) - 1)])

    low, high = quantile(0.02), quantile(0.98)
    raw = (high - low) / BINS
    if raw > 0:
        scale = 10.0 ** np.floor(np.log10(raw))
        step = float(scale * min((1, 2, 2.5, 5, 10), key=lambda m: abs(m * scale - raw)))
        ticks = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
        ticks = np.unique(np.round(ticks, 12))
        share = np.diff([0.0, *cumulative[np.maximum(np.searchsorted(values, ticks) - 1, 0)], 1.0])
        if len(ticks) >= 3 and share.max() < 0.6:
            return tuple(float(t) for t in ticks)
    picked = {float(f"{quantile(j / BINS):.3g}") for j in range(1, BINS)}
    return tuple(sorted(e for e in picked if values[0] < e <= values[-1]))


# ---- one look at groups and covariates, mergeable like a sketch ----

LOOK = 20_000  # rows that fix the codings: a quantile of them is off by 0.35 points of rank, a standard error


class Look(RawSample):
    """Rows seen, those with a score, the sum of the scores, and a sample of their covariates; never a label.

    Parameters
    ----------
    names : sequence of str
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names, LOOK)
        self.rows, self.n, self.total = 0, 0, 0

    @property
    def expected(self) -> float:
        """Sum of the scores, each rounded down to 2^-30: the same in any order."""
        return self.total / (1 << SCORE_BITS)

    def see(self, ids: Ids, p: Floats, batch: Batch) -> None:
        """Look at a batch. Identities are not hashed again: two samples of the same rows may hold other ones."""
        good = (p >= 0.0) & (p <= 1.0)
        self.rows += len(p)
        self.n += int(np.count_nonzero(good))
        self.total += int(np.floor(p[good] * (1 << SCORE_BITS)).astype(np.int64).sum())
        self.keep(ids, p, np.zeros(len(p), dtype=np.int8), batch, good)

    def merge(self, other: Look) -> None:
        """Add another look at the same columns."""
        self.rows += other.rows
        self.n += other.n
        self.total += other.total
        super().merge(other)


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What stands before the numbers of a first look that travels.

    Parameters
    ----------
    rows_read, n, total : int
    profiles : tuple of Profile
    texts : dict of int to str
        By hash.
    types : bytes
        The covariates' names and types, as Arrow writes a schema.
    lines : int
    """

    rows_read: int
    n: int
    total: int
    profiles: tuple[Profile, ...]
    texts: dict[int, str]
    types: bytes
    lines: int


class FirstLook:
    """What the group columns hold, and a sample of the covariates.

    Parameters
    ----------
    spec : Spec
        Of columns, key and seed only: what is to be fixed is still missing.
    by : sequence of str
        Group columns.
    covariates : sequence of str
        Columns to sample; none for no sample.
    """

    def __init__(self, spec: Spec, by: Sequence[str], covariates: Sequence[str]) -> None:
        self.spec, self.covariates = spec, tuple(covariates)
        self.profiles = [Profile(name) for name in by]
        self.look = Look(self.covariates)
        self.rows_read = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read."""
        sampled = (self.spec.score, *self.covariates, *self.spec.key) if self.covariates else ()
        return tuple(dict.fromkeys([*(q.name for q in self.profiles), *sampled]))

    def update(self, batch: Batch, *, part: str = "", first_row: int = 0) -> None:
        """Look at an Arrow record batch; `part` and `first_row` as in `Sketch.update`."""
        self.rows_read += batch.num_rows
        for profile in self.profiles:
            profile.update(batch.column(profile.name))
        if not self.covariates or not batch.num_rows:
            return
        require(self.columns, batch.schema.names, "covariate")
        ids = Origin.of(batch, self.spec, part, first_row).identities(batch.num_rows, self.spec)
        self.look.see(ids, as_float(batch.column(self.spec.score), self.spec.score, "score"), batch)

    def merge(self, other: FirstLook) -> FirstLook:
        """Add what another part showed, and return this."""
        self.rows_read += other.rows_read
        for mine, theirs in zip(self.profiles, other.profiles, strict=True):
            mine.merge(theirs)
        self.look.merge(other.look)
        return self

    def to_bytes(self, *, level: int = 6) -> bytes:
        """Return the state: what `load` takes."""
        look = self.look
        lines = look.lines
        header = Looked(
            rows_read=self.rows_read,
            n=look.n,
            total=look.total,
            profiles=tuple(self.profiles),
            texts=look.texts,
            types=pa.schema(list(zip(look.names, look.types, strict=True))).serialize().to_pybytes(),
            lines=len(lines),
        )
        return packed(header, [lines], level)

    def load(self, raw: bytes) -> FirstLook:
        """Take over the state that `to_bytes` wrote, and return this."""
        header, numbers = unpacked(raw, Looked)
        look = self.look
        self.rows_read, look.rows, look.n, look.total = header.rows_read, header.rows_read, header.n, header.total
        self.profiles, look.texts = list(header.profiles), header.texts
        look.types = list(pa.ipc.read_schema(pa.py_buffer(header.types)).types)
        shape = (header.lines, COVARIATES + len(look.names))
        look.load({"lines": numbers.take(shape[0] * shape[1]).reshape(shape)})
        numbers.end()
        return self


# ---- what was found, and the spec that it fixes ----

EVERY = "*"
KEPT = 300_000  # rows that a sketch for tests keeps: 55 MB with 20 covariates
ONE_VALUE = "it takes one value only"
MOSTLY = 0.5  # share of distinct texts from which on a column looks like an identifier


@dataclass(frozen=True)
class Survey:
    """What the first look found.

    Parameters
    ----------
    table : pyarrow.Table
        Covariates of the sampled rows, by increasing hashed identity.
    p : float64 array
        Scores of the sampled rows.
    n : int
        Rows with a score in all.
    expected : float
        Sum of all scores.
    names : tuple of str
        Covariates that can be used.
    left_out : tuple of (str, str)
        Those of "every column" that cannot, and why.
    """

    table: pa.Table
    p: Floats
    n: int
    expected: float
    names: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...] = ()


def survey_rows(data: Predictions, spec: Spec, names: tuple[str, ...]) -> Survey | None:
    """Sample the covariates of rows in memory; None if no covariates are named."""
    if not names:
        return None
    table = pa.table({}) if data.covariates is None else data.covariates
    look = Look(wanted(names, tuple(table.schema.names), spec))
    look.see(HERE.identities(data.n, spec), data.p, table)
    return survey(look, look.names, EVERY in names)


def survey(look: Look, names: tuple[str, ...], every: bool) -> Survey:
    """Return what was seen; of "every column", leave out those that cannot be used."""
    if not look.rows:
        raise BadInput("no rows to audit: the data is empty")
    table = look.table()
    left = tuple((name, why) for name in names if every and (why := _unusable(decoded(table.column(name)))))
    gone = {name for name, _ in left}
    used = tuple(name for name in names if name not in gone)
    return Survey(table.select(list(used)), scores_of(look.lines), look.n, look.expected, used, left)


def with_parts(spec: Spec, found: Survey | None, tests: bool) -> Spec:
    """Return the spec with everything that the first look fixes."""
    if found is None:
        if tests:
            raise BadInput("tests need covariates: name them in variables=, or pass variables='*' for every column")
        return spec
    coded = codings(found.table, found.names)
    constant = tuple((c.name, ONE_VALUE) for c in coded if c.kind == "constant")
    used = tuple(
        replace(c, cells=ends_of(found.table.column(c.name), c.name)) if c.kind in ("number", "date") else c
        for c in coded
        if c.kind != "constant"
    )
    spec = replace(spec, codings=used, left_out=(*found.left_out, *constant), sample=KEPT if tests else 0)
    if not tests or len(used) > MOST:
        return spec
    draws = DRAWS if simulates("auto", found.n, found.expected) else 0
    return replace(spec, local=local_spec(found.p, found.table, used, draws, spec.seed))


def wanted(names: tuple[str, ...], available: Sequence[str], spec: Spec) -> tuple[str, ...]:
    """Return the covariates to look at: those named, or every column that is not label, score or key."""
    taken = {spec.label, spec.score, *spec.key}
    if EVERY in names:
        return tuple(dict.fromkeys(c for c in available if c not in taken))
    require(names, available, "covariate")
    wrong = sorted(taken & set(names))
    if wrong:
        raise BadInput(f"covariate {wrong[0]!r} is the label, the score or the key: leave it out of variables")
    return tuple(dict.fromkeys(names))


def _unusable(column: pa.Array) -> str:
    """Return why a column is no covariate; empty if it is one."""
    t = column.type
    if pa.types.is_null(t):
        return "it is empty"
    if is_number(t):
        return "it holds infinite values" if np.isinf(as_float(column, "", "covariate")).any() else ""
    if is_date(t) or pa.types.is_boolean(t):
        return ""
    if not pa.types.is_string(t):
        return f"it holds {t}"
    distinct = len(pc.unique(column))
    if distinct > max(TOP, FEW) or (distinct > FEW and distinct > MOSTLY * len(column)):
        return "it looks like an identifier: most of its values occur once"
    return ""
