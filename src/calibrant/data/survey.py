"""The first look: groups and covariates, never labels, fix a spec."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.data.coding import TOP, codings, is_date, is_number
from calibrant.data.columns import as_float, dated, decoded, require, row_ids
from calibrant.data.local import DRAWS, MOST, local_spec, simulates
from calibrant.data.parts import ends_of
from calibrant.data.predictions import Predictions
from calibrant.data.sample import Look, identities
from calibrant.data.spec import Kind, Spec, Variable
from calibrant.errors import BadInput

# ---- The pre-pass: read the group columns once, and never the labels, to fix the levels of each variable ----

FEW = 12  # a number with at most this many values is a category
BINS = 6
TOP_LEVELS = 200  # levels kept of a category; the rest become "other"
IDENTIFIER = 100_000  # more distinct values than this are not a group column
COARSE = np.int64(-1) << np.int64(40)  # keeps 12 bits of a double's mantissa: whole numbers to 4096 stay exact


class Profile:
    """Counts of one column's values; mergeable, and small whatever the number of rows."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind: Kind = "category"
        self.counts: Counter[Any] = Counter()
        self.exact: set[float] = set()
        self.whole = True
        self.seen = False

    def update(self, column: Any) -> None:
        """Count a chunk of the column."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column, kind = _plain(column), self.kind
        if pa.types.is_null(column.type):
            return
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
            self._numbers(column)
            self._one_kind(kind)
            return
        if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
            self.kind = "month"
            column = dated(column, "month")
        else:
            self.kind = "category"
        if not (
            pa.types.is_dictionary(column.type) or pa.types.is_string(column.type) or pa.types.is_boolean(column.type)
        ):
            raise BadInput(f"group column {self.name!r} holds {column.type}: use text, numbers, dates or booleans")
        self._one_kind(kind)
        for item in pc.value_counts(column):
            value = item["values"].as_py()
            if value is not None and value != "":
                text = str(value).lower() if isinstance(value, bool) else str(value)
                self.counts[text] += item["counts"].as_py()
        self._guard()

    def _numbers(self, column: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

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
            self.counts[value] += count
        if len(self.exact) <= FEW:
            self.exact.update(pc.unique(pa.array(values)).to_pylist()[: FEW + 1])

    def _one_kind(self, before: Kind) -> None:
        if self.seen and before != self.kind:
            first, second = sorted((before, self.kind))
            raise BadInput(
                f"group column {self.name!r} holds {first} values in one place and {second} values in another: "
                "store it one way in every file"
            )
        self.seen = True

    def _guard(self) -> None:
        if len(self.counts) > IDENTIFIER:
            raise BadInput(
                f"group column {self.name!r} has more than {IDENTIFIER:,} distinct values: it looks like an identifier; "
                "group by something coarser"
            )

    def merge(self, other: Profile) -> None:
        """Add the counts of another part of the column."""
        if not other.seen:
            return
        kind, self.kind = self.kind, other.kind
        self._one_kind(kind)
        self.counts.update(other.counts)
        self.whole &= other.whole
        if len(self.exact) <= FEW:
            self.exact |= other.exact
        self._guard()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.name,
            "kind": self.kind,
            "counts": list(self.counts.items()),
            "exact": list(self.exact),
            "whole": self.whole,
            "seen": self.seen,
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Profile:
        """Rebuild from plain data."""
        made = cls(d["name"])
        made.kind, made.whole, made.seen = d["kind"], d["whole"], d["seen"]
        made.counts, made.exact = Counter(dict(map(tuple, d["counts"]))), set(d["exact"])
        return made

    def variable(self, edges: tuple[float, ...] | None = None) -> Variable:
        """Fix the levels: values, or bins at `edges` if given, or bins at round numbers."""
        if edges is not None:
            if self.kind != "number":
                raise BadInput(f"bins for {self.name!r}: it is not a number; leave its bins out")
            if list(edges) != sorted(set(edges)):
                raise BadInput(f"bins for {self.name!r} must increase: {edges}")
            return Variable(name=self.name, kind="number", edges=edges, whole=self.whole and _whole(edges))
        if self.kind == "number":
            if len(self.exact) <= FEW:
                values = tuple(f"{v:.0f}" if v == int(v) else repr(v) for v in sorted(self.exact))
                return Variable(name=self.name, kind="category", values=values)
            chosen = round_edges(self.counts)
            return Variable(name=self.name, kind="number", edges=chosen, whole=self.whole and _whole(chosen))
        return self._category()

    def _category(self) -> Variable:
        counts, kind = self.counts, self.kind
        if kind == "month" and len(counts) > 24:
            kind, counts = "year", Counter()
            for month, count in self.counts.items():
                counts[month[:4]] += count
        if len(counts) > TOP_LEVELS and max(counts.values()) < 20:
            raise BadInput(
                f"group column {self.name!r} has {len(counts):,} distinct values and none on 20 rows: "
                "it looks like an identifier; group by something coarser"
            )
        kept = sorted(counts, key=lambda v: (-counts[v], v))[:TOP_LEVELS]
        values = tuple(sorted(kept, key=_natural))
        return Variable(name=self.name, kind=kind, values=values, folded=len(counts) - len(kept))


def _plain(column: Any) -> Any:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return (
        column
        if pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type)
        else decoded(column)
    )


def _whole(edges: tuple[float, ...]) -> bool:
    return all(e == int(e) for e in edges)


def _natural(text: str) -> tuple[int, float, str]:
    """Sort numbers by value before text by letter, so that 10 follows 9."""
    try:
        return (0, float(text), text)
    except ValueError:
        return (1, 0.0, text)


def round_edges(counts: Counter[float]) -> tuple[float, ...]:
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


# ---- The pre-pass: one look at groups and covariates, never at labels, that fixes a spec; mergeable like a ----


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
        self.look = Look()
        self.rows_read = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read."""
        sampled = (self.spec.score, *self.covariates, *self.spec.key) if self.covariates else ()
        return tuple(dict.fromkeys([*(q.name for q in self.profiles), *sampled]))

    def update(self, batch: Any, *, part: str = "", first_row: int = 0) -> None:
        """Look at an Arrow record batch; `part` and `first_row` as in `Sketch.update`."""
        self.rows_read += batch.num_rows
        for profile in self.profiles:
            profile.update(batch.column(profile.name))
        if not self.covariates or not batch.num_rows:
            return
        require(self.columns, batch.schema.names, "covariate")
        key, spec = self.spec.key, self.spec
        own = row_ids([batch.column(k) for k in key], spec.seed) if key else None
        ids = identities(batch.num_rows, first_row, spec.salt("" if key else part), own)
        p = as_float(batch.column(spec.score), spec.score, "score")
        self.look.add(ids, p, {name: batch.column(name) for name in self.covariates})

    def merge(self, other: FirstLook) -> FirstLook:
        """Add what another part showed, and return this."""
        self.rows_read += other.rows_read
        for mine, theirs in zip(self.profiles, other.profiles, strict=True):
            mine.merge(theirs)
        self.look.merge(other.look)
        return self

    def to_bytes(self) -> bytes:
        """Return the state: what `load` takes."""
        import pyarrow as pa

        counts, table = self.look.to_table()
        header = {"rows_read": self.rows_read, "profiles": [q.to_dict() for q in self.profiles], "look": counts}
        head = json.dumps(header).encode()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        state: bytes = sink.getvalue().to_pybytes()
        return len(head).to_bytes(8, "little") + head + state

    def load(self, raw: bytes) -> FirstLook:
        """Take over the state that `to_bytes` wrote, and return this."""
        import pyarrow as pa

        size = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8 : 8 + size])
        self.rows_read = header["rows_read"]
        self.profiles = [Profile.from_dict(d) for d in header["profiles"]]
        with pa.ipc.open_stream(raw[8 + size :]) as reader:
            self.look = Look.from_table(header["look"], reader.read_all())
        return self


# ---- Fix the features of the local test from a sample of scores and covariates: no label is read ----


# ---- The first look at covariates: a uniform sample of rows, without their labels, fixes how a sketch codes ----

EVERY = "*"
KEPT = 300_000  # rows that a sketch for tests keeps
ONE_VALUE = "it takes one value only"


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

    table: Any
    p: Any
    n: int
    expected: float
    names: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...] = ()


def survey_rows(data: Predictions, spec: Spec, names: tuple[str, ...]) -> Survey | None:
    """Sample the covariates of rows in memory; None if no covariates are named."""
    if not names:
        return None
    table = data.covariates
    used = wanted(names, () if table is None else tuple(table.schema.names), spec)
    look = Look()
    look.add(identities(data.n, 0, spec.salt("")), data.p, {name: table.column(name) for name in used})
    return survey(look, used, EVERY in names)


def survey(look: Look, names: tuple[str, ...], every: bool) -> Survey:
    """Return what was seen; of "every column", leave out those that cannot be used."""
    import pyarrow as pa

    if look.empty:
        raise BadInput("no rows to audit: the data is empty")
    _, p, columns = look.best()
    left = tuple((name, why) for name in names if every and (why := _unusable(columns[name])))
    gone = {name for name, _ in left}
    used = tuple(name for name in names if name not in gone)
    return Survey(pa.table({n: columns[n] for n in used}), p, look.n, look.expected, used, left)


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


def _unusable(column: Any) -> str:
    """Return why a column is no covariate; empty if it is one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    t = column.type
    if pa.types.is_null(t):
        return "it is empty"
    if is_number(t) or is_date(t) or pa.types.is_boolean(t):
        if is_number(t) and not np.isfinite(v := as_float(column, "", "covariate"))[~np.isnan(v)].all():
            return "it holds infinite values"
        return ""
    if not pa.types.is_string(t):
        return f"it holds {t}"
    distinct = len(pc.unique(column))
    if distinct > max(TOP, 12) or (distinct > 12 and distinct > 0.5 * len(column)):
        return "it looks like an identifier: most of its values occur once"
    return ""
