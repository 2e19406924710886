"""Margins: rows and a population side by side, as levels with shares or as features; raking; margins in a file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import shown
from calibrant.errors import BadInput, NotComputable
from calibrant.toolkit.data import Codes, Floats, LevelCounts, codings, encode, level_codes, plain, require

Pool = Mapping[str, Mapping[str, str]]
MarginsInput = Mapping[object, Mapping[object, object]]
Rows = NDArray[np.bool_]
ROUNDED = 0.005  # by which shares, rounded as they are published, may miss one


@dataclass(frozen=True, kw_only=True, eq=False)
class Leveled:
    """One column's levels, in the rows and, if it is rows, in the population."""

    name: str
    labels: tuple[str, ...]
    rows: Codes
    people: Codes | None = None

    def pooled(self, into: Mapping[str, str]) -> Leveled:
        """The column with some levels called by the name of another."""
        if strange := [v for v in into if v not in self.labels]:
            raise BadInput(f"pool={shown(dict(into))}: column {self.name!r} has no level {strange[0]!r}")
        named = [into.get(label, label) for label in self.labels]
        labels = tuple(dict.fromkeys(named))
        to = np.array([labels.index(v) for v in named], dtype=np.int32)
        people = None if self.people is None else to[self.people]
        return Leveled(name=self.name, labels=labels, rows=to[self.rows], people=people)


def leveled(
    rows: pa.Table, people: pa.Table, columns: Sequence[str], pool: Pool, on: Rows | None = None
) -> list[Leveled]:
    """Columns as levels fixed by rows and population together: numbers of many values in bins.

    Of the rows, pilot rows alone fix them where there are any (`on`).
    """
    out, learn = [], rows if on is None else rows.filter(pa.array(on))
    for name in columns:
        profile = LevelCounts(name)
        for table in (learn, people):
            profile.update(table.column(name))
        levels = profile.variable()
        codes = [levels.codes(t.column(name)) for t in (rows, people)]
        one = Leveled(name=name, labels=levels.labels, rows=codes[0], people=codes[1])
        out.append(one.pooled(pool.get(name, {})))
    return out


def joint(columns: Sequence[Leveled], weights: Floats) -> Margin:
    """The margin of columns jointly, with the shares of a population's rows, which count as `weights` say."""

    def two_way(parts: Sequence[Codes]) -> NDArray[np.int64]:
        at = np.zeros(len(parts[0]), dtype=np.int64)
        for part, c in zip(parts, columns, strict=True):
            at = at * len(c.labels) + part
        return at

    mine = two_way([c.rows for c in columns])
    theirs = two_way([c.people for c in columns if c.people is not None])
    cells, codes = np.unique(np.r_[mine, theirs], return_inverse=True)
    labels = []
    for cell in cells.tolist():
        names = []
        for c in reversed(columns):
            cell, at = divmod(cell, len(c.labels))
            names.append(c.labels[at])
        labels.append(", ".join(reversed(names)))
    inside = codes[len(mine) :]
    return Margin(
        columns=tuple(c.name for c in columns),
        labels=tuple(labels),
        codes=codes[: len(mine)].astype(np.int32),
        shares=np.bincount(inside, weights, len(cells)) / weights.sum(),
        people=np.bincount(inside, minlength=len(cells)).astype(float),
    )


# ---- margins that were given ----


def margin(rows: pa.Table, columns: tuple[str, ...], inputs: Mapping[object, object], pool: Pool) -> Margin:
    """Rows at the levels of a margin that was given: shares, or counts, by level."""
    reported = [(k if isinstance(k, tuple) else (k,), v) for k, v in inputs.items()]
    where = f"margin {' x '.join(columns)!r}"
    if wrong := next((k for k, _ in reported if len(k) != len(columns)), None):
        raise BadInput(f"{where}: level {shown(wrong)} does not name one level of each column")
    sums: dict[tuple[str, ...], float] = {}
    for key, value in reported:
        cell = tuple(pool.get(c, {}).get(_text(k), _text(k)) for c, k in zip(columns, key, strict=True))
        sums[cell] = sums.get(cell, 0.0) + _share(value, f"{where}, level {', '.join(map(_text, key))!r}")
    total = sum(sums.values())
    if not total > 0:
        raise BadInput(f"{where}: nobody is in it; give shares or counts above 0")
    if all(v <= 1.0 for v in sums.values()) and abs(total - 1.0) > ROUNDED:
        raise BadInput(f"{where}: its shares add up to {total:.4g}; make them add up to 1, or give counts")
    cells = list(sums)
    at = _cells(rows, columns, cells, pool)
    labels = tuple(", ".join(c) for c in cells)
    return Margin(columns=columns, labels=labels, codes=at, shares=np.array([sums[c] / total for c in cells]))


def _cells(rows: pa.Table, columns: tuple[str, ...], cells: list[tuple[str, ...]], pool: Pool) -> Codes:
    """The cell of each row; refuse rows that are in none."""
    parts = []
    require(columns, rows.column_names, "margin")
    for j, name in enumerate(columns):
        into = pool.get(name, {})
        known = tuple(dict.fromkeys([*(c[j] for c in cells), *into]))
        column = plain(rows.column(name), name)
        codes = level_codes(column, known)
        if codes is None:
            raise BadInput(f"column {name!r} cannot hold the margin's levels, such as {known[0]!r}")
        named = [*(into.get(v, v) for v in known), "(another)", "missing"]
        parts.append([named[c] for c in codes.tolist()])
    results = {c: i for i, c in enumerate(cells)}
    keys = list(zip(*parts, strict=True))
    strange = [i for i, k in enumerate(keys) if k not in results]
    if strange:
        kept = [rows.column(name)[strange[0]].as_py() for name in columns]
        raise BadInput(
            f"margin {' x '.join(columns)!r} lacks {', '.join(map(str, kept))!r}, which {len(strange):,} rows have, "
            f"first row {strange[0]}: give it a share (0 leaves such rows out), or pool it with another level"
        )
    return np.array([results[k] for k in keys], dtype=np.int32)


def _text(level: object) -> str:
    return str(level).lower() if isinstance(level, bool) else f"{level:g}" if isinstance(level, float) else str(level)


def _share(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise BadInput(f"{where}: {shown(value)} is no share or count; give a number from 0 up")
    return float(value)


# ---- features of a classifier ----


def features(
    rows: pa.Table, people: pa.Table, columns: Sequence[str], on: Rows | None = None
) -> tuple[Floats, dict[str, Floats]]:
    """Rows, then the population, as numbers: standardised, or 0 and 1 for a level; and the numbers by column.

    How they are coded, the population and the rows fix: of these pilot rows alone where there are any (`on`).
    """
    both = pa.concat_tables([_loose(t, columns) for t in (rows, people)], promote_options="permissive")
    fixing = np.ones(both.num_rows, dtype=bool)
    if on is not None:
        fixing[: len(on)] = on
    how = [c for c in codings(both.filter(pa.array(fixing)), columns) if c.kind != "constant"]
    if not how:
        raise BadInput(f"{', '.join(columns)}: one value only, in rows and population alike; name other columns")
    x = encode(both.select([c.name for c in how]), how)
    levels = [x.codes[:, j] == v for j in range(x.codes.shape[1]) for v in np.unique(x.codes[fixing, j])[1:]]
    flat = np.column_stack([x.scaled, *levels]) if levels else x.scaled
    numbers = {n: np.where(np.isnan(v), np.nanmedian(v), v) for n, v in zip(x.number_names, x.numbers.T, strict=True)}
    return np.asarray(flat, dtype=float), numbers


def _loose(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Columns without dictionaries, so that those of two tables go together."""
    from calibrant.toolkit.data import decoded

    return pa.table({name: decoded(table.column(name), name) for name in columns})


# ---- raking: a factor for each level of each margin, so that weighted shares are those of a population ----

ROUNDS = 2000
CLOSE = 1e-10  # by which a share may miss its target


@dataclass(frozen=True, kw_only=True, eq=False)
class Margin:
    """Levels of one column, or of several jointly, in rows and in a population."""

    columns: tuple[str, ...]
    labels: tuple[str, ...]
    codes: Codes  # shape (n,): the level of each row
    shares: Floats  # shape (len(labels),): of the population; they add up to one
    # Shape (len(labels),): rows of the population in each level, where it was given as rows.
    people: Floats | None = None

    @property
    def name(self) -> str:
        """The columns, as one name."""
        return " x ".join(self.columns)

    def current(self, weights: Floats) -> Floats:
        """The weighted share of rows in each level."""
        values: Floats = np.bincount(self.codes, weights, len(self.labels)) / weights.sum()
        return values


def factors(margins: Sequence[Margin], base: Floats) -> tuple[Floats, ...]:
    """A factor for each level of each margin, by which rows of starting weights `base` have its shares.

    Iterative proportional fitting; with one margin, post-stratification, exact after one step. Levels that no row has
    must have share 0; theirs is 1.

    Raises
    ------
    NotComputable
        The margins contradict one another on these rows.
    """
    results = [np.ones(len(m.labels)) for m in margins]
    weights = base / base.sum()
    for _ in range(ROUNDS):
        for m, factor in zip(margins, results, strict=True):
            kept = m.current(weights)
            step = np.divide(m.shares, kept, out=np.ones_like(kept), where=kept > 0)
            factor *= step
            weights = weights * step[m.codes]
        gaps = [float(np.abs(m.current(weights) - m.shares).max()) for m in margins]
        if max(gaps) <= CLOSE:
            return tuple(results)
    worst = margins[int(np.argmax(gaps))].name
    raise NotComputable(
        f"raking does not settle: the margins contradict one another on these rows, {worst!r} is off by "
        f"{100 * max(gaps):.2g} points after {ROUNDS:,} rounds; name fewer margins, or pool their levels"
    )


# ---- margins in a file of TOML or JSON ----

LARGEST = 16_000_000  # bytes
Names = Callable[[str], tuple[str, ...]]
Margins = dict[object, Mapping[object, object]]


def margins_of(path: str, names: Names) -> Margins:
    """What a file says: a table for each column, a level and its share or count on each line.

    Of several columns jointly, both the columns and their levels are separated by commas, as `names` splits them.
    """
    file = Path(path)
    try:
        with file.open("rb") as opened:
            raw = opened.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise BadInput(f"{path}: more than {LARGEST // 1_000_000} MB of margins; name fewer levels")
        text = raw.decode("utf-8")
        kept = json.loads(text) if file.suffix.lower() == ".json" else tomllib.loads(text)
    except OSError as e:
        raise BadInput(f"cannot read {path!r}: {e.strerror or e}") from None
    except (ValueError, RecursionError) as e:
        raise BadInput(f"{path}: not {'JSON' if file.suffix.lower() == '.json' else 'TOML'} ({e})") from None
    if not isinstance(kept, dict) or not kept or not all(isinstance(v, dict) and v for v in kept.values()):
        raise BadInput(f"{path}: write a table for each column, such as [sex] with the line F = 0.51")
    return dict(_margin(key, levels, names) for key, levels in kept.items())


def _margin(key: str, levels: Mapping[str, object], names: Names) -> tuple[object, Mapping[object, object]]:
    columns = names(key)
    if len(columns) == 1:
        return columns[0], dict[object, object](levels.items())
    jointly: dict[object, object] = {names(level): share for level, share in levels.items()}
    return columns, jointly
