"""The mergeable summary: integer counts per random block and score cell, for everyone and for each group."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Annotated, cast

import numpy as np
import pyarrow as pa
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from calibrant.arguments import lacking
from calibrant.data.columns import (
    Floats,
    binary_labels,
    few_of,
    label_values,
    no_events,
    no_such_event,
    require,
    score_values,
)
from calibrant.data.inputs import Levels
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.contents import Chance, Contents, Repeats, in_both, repeats_of
from calibrant.data.sketches.parts import MOST_ROWS, Part, need_within, parts_of, sound_rows
from calibrant.data.sketches.sample import HERE, Batch, Origin, RowAttributes, SharedColumns
from calibrant.data.sketches.sums import NOBODY, Apart
from calibrant.data.sources.source import CARRIED, NO_LOG, Log
from calibrant.data.specs.coding import Codes
from calibrant.data.specs.faults import Faults
from calibrant.data.specs.sketch_file import (
    FORMAT,
    Integers,
    Numbers,
    content_of,
    need,
    nonzero,
    packed,
    text_of,
    unpacked,
    with_checksum,
)
from calibrant.data.specs.spec import ATTACHED, Spec
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.tally import (
    CELL_BITS,
    FAULTS,
    FIELDS,
    GROUP_BITS,
    LEVELS,
    SCORE_BITS,
    Counters,
    Packed,
    Rows,
    carry,
    tally,
)
from calibrant.sanitize import sanitize

REST = SCORE_BITS - CELL_BITS  # bits of a score within its cell
GROUP_REST = SCORE_BITS - GROUP_BITS
UNSTORED = (
    "{}, and a sketch of such rows is neither stored nor merged, for it lives by them: audit or certify the rows "
    "themselves, or sketch them by one column, and without rows that have no label"
)
NO_KEYS: NDArray[np.uint64] = np.zeros(0, dtype=np.uint64)

Size = Annotated[int, Meta(ge=0, le=2**63 - 1)]


@dataclass(frozen=True, kw_only=True)
class Header:
    """What stands before the numbers of a stored sketch."""

    spec: Spec
    rows_read: Annotated[int, Meta(ge=0, le=MOST_ROWS)]
    name: str
    files: tuple[str, ...]
    lengths: tuple[Size, Size, Size, Size]  # non-zero counts of each of `Counters`
    parts: dict[str, dict[str, tuple[Size, ...]]]  # shapes of the arrays of each part
    format: int = FORMAT
    # Values of the label next to the one named as the event, and their rows: see `columns.few_of`.
    no_event: dict[str, Size] = field(default_factory=dict)
    # How many of the rows left out lack which part; empty where it is not known.
    dropped_for: dict[str, Size] = field(default_factory=dict)
    unfinished: tuple[str, ...] = ()  # of the `Log` that the rows came from
    excluded: tuple[str, ...] = ()  # of the same
    horizon: dict[str, str | int | float | None] = field(default_factory=dict)  # of the same
    seen_events: dict[str, str | int | float | bool] | UnsetType = UNSET  # of the same, where something was noticed


class Sketch:
    """Counts that are bit-identical however the rows were split, ordered or spread over machines.

    Scores are integers ``q = min(floor(p 2^30), 2^30 - 1)``. For everyone there are ``2^14`` cells ``q >> 16``,
    for each group ``2^10``; per block and cell the sketch holds rows and sums of the in-cell remainder by label
    (and, for everyone, of its square), and rows by label for 200 levels from which rounding to 10, 20, 50 and
    100 steps follows exactly.

    Parameters
    ----------
    spec : Spec
        Fixed before any label is read.
    """

    name: str
    files: tuple[str, ...]
    log: Log  # that the rows came from, if from one: stored is only what of it was unfinished
    nested: Levels  # of clusters, as the rows showed them: neither stored nor merged, since two sketches may cross
    two_way: Predictions | None  # the rows, where their clusters cross: in memory alone, neither stored nor merged
    no_event: dict[str, int]  # values of the label next to the one named as the event, and their rows
    kept: Predictions | None  # and those where rows without a label have clusters or weights too
    unstored: str  # why it is neither stored nor merged, as it lives by these rows; empty where it may be
    shared: SharedColumns | None  # rows of the first look, for an audit that looks for clusters: alike in memory alone

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        b, g = spec.blocks, spec.group_count
        self._counters = Counters(
            cells=np.zeros((b, 1 << CELL_BITS, FIELDS), dtype=np.int64),
            levels=np.zeros((b, LEVELS, 2), dtype=np.int64),
            group_cells=np.zeros((g, b, 1 << GROUP_BITS, 4), dtype=np.int64),
            group_levels=np.zeros((g, b, LEVELS, 2), dtype=np.int64),
        )
        self._packed: Packed | None = None
        self._rows: tuple[Integers, Predictions] | None = None  # of these lines; counting and merging make others
        self.rows_read = 0
        self.name, self.files, self.nested, self.log, self.two_way = "data", (), (), NO_LOG, None
        self.kept, self.unstored, self.shared, self.no_event = None, "", None, {}
        self.faults = Faults()
        self._bases = np.cumsum([0, *spec.sizes], dtype=np.int64)[:-1]
        self.parts = parts_of(spec)
        self.apart: Apart = self.parts.get("unlabelled", NOBODY)  # rows that have no label

    def recounted(self, group_cells: Integers, fine: Mapping[str, Integers]) -> Sketch:
        """A copy to read, never to add to: with these counts of groups and along covariates."""
        made = copy(self)
        made._counters, made._packed, made.parts = self.counters._replace(group_cells=group_cells), None, {**self.parts}
        if "fine" in self.parts:
            made.parts["fine"] = copy(self.parts["fine"])
            made.parts["fine"].stored = dict(fine)
        return made

    # ---- what it holds ----

    @property
    def counters(self) -> Counters:
        """The four arrays of counts."""
        if self._packed is not None and self._packed.rows:
            self._packed.settle(self._counters)
        return self._counters

    @property
    def cells(self) -> Integers:
        """Everyone's counts, int64 of shape (blocks, 2**14, 6): see `kernels.tally.FIELDS`."""
        return self.counters.cells

    @property
    def levels(self) -> Integers:
        """Everyone's rows per fine level and label, int64 of shape (blocks, 200, 2)."""
        return self.counters.levels

    @property
    def group_cells(self) -> Integers:
        """Each group's counts, int64 of shape (groups, blocks, 2**10, 4)."""
        return self.counters.group_cells

    @property
    def group_levels(self) -> Integers:
        """Each group's rows per fine level and label, int64 of shape (groups, blocks, 200, 2)."""
        return self.counters.group_levels

    @property
    def n(self) -> int:
        """Rows counted."""
        return int(self.levels.sum())

    @property
    def events(self) -> int:
        """Rows with the outcome."""
        return int(self.levels[..., 1].sum())

    @property
    def dropped(self) -> int:
        """Rows left out because score, label, cluster or weight was missing, or the weight 0."""
        return self.rows_read - self.n - self.unlabelled

    @property
    def unlabelled(self) -> int:
        """Rows counted apart, whose label is missing and whose score is known."""
        return self.apart.n

    @property
    def dropped_for(self) -> dict[str, int]:
        """How many of the rows left out lack which part; empty where that is not known of all of them."""
        return self.faults.absences(self.spec) if self.dropped else {}

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the counts and what decides them: equal for equal data, however it was stored or read."""
        digest = hashlib.sha256(self.spec.counted.digest.encode())
        for counts in self.counters:
            for numbers in nonzero(counts):
                digest.update(numbers.astype("<i8").tobytes())
        if self.spec.row_attributes:
            digest.update(self.parts["sample"].total.to_bytes(8, "little"))
        return digest.hexdigest()

    @property
    def by_clusters(self) -> bool:
        """Rows are clusters, or count more: what is about them reads `rows`, and not the counts."""
        return bool(self.spec.row_attributes)

    def rows(self) -> Predictions:
        """The rows that the sketch holds: a uniform sample, or whole clusters, with clusters and weights.

        Clusters are named by hash; made once, so callers must not change them. Which rows are held, hashes of their
        identities alone decide, and no outcome.

        Raises
        ------
        NotComputable
            It holds none, or its first cluster has more rows than it has room for.
        """
        if self.two_way is not None:
            return self.two_way
        kept = self.checked().parts.get("sample")
        if kept is None:
            raise NotComputable("the sketch holds no rows: sketch with variables= and tests=True, or read the rows")
        if not len(kept.lines):
            raise NotComputable(
                f"one cluster of {self.spec.cluster!r} has more than the {kept.size:,} rows that a sketch holds: read "
                "the rows"
            )
        if self._rows is None or self._rows[0] is not kept.lines or self._rows[1].name != self.name:
            self._rows = kept.lines, kept.predictions(self.name)
        return self._rows[1]

    def __repr__(self) -> str:
        reported = [f"{self.n:,} rows", f"{self.events:,} events"]
        reported += [f"{self.spec.group_count:,} groups of {', '.join(self.spec.by_name)}"] if self.spec.by_name else []
        reported += [f"{len(self.spec.codings):,} covariates"] if self.spec.codings else []
        return f"Sketch({sanitize(self.name)}: {', '.join(reported)})"

    # ---- adding rows ----

    def update(self, batch: Batch, *, part: str = "", first_row: int = 0) -> None:
        """Count the rows of an Arrow record batch.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            Holds at least the spec's columns.
        part : str
            The file the rows come from, relative to the data set's root; empty for a single file or a frame.
        first_row : int
            Number, within that file, of the batch's first row. With a key, both are used in messages only.
        """
        spec, there = self.spec, batch.schema.names
        require([spec.label], there, "label")
        require([spec.score], there, "score")
        require([v.name for v in spec.variables], there, "group")
        require([c.name for c in spec.codings], there, "covariate")
        for role in ("key", *ATTACHED):
            require(spec.roles.get(role, ()), there, role)
        p = score_values(batch.column(spec.score), spec.score, spec.percent)
        y = label_values(batch.column(spec.label), spec.label, spec.positive)
        codes = {v.name: v.codes(batch.column(v.name)) for v in spec.variables}
        covariates = {c.name: batch.column(c.name) for c in spec.codings}
        self.faults.note_event(batch, spec)
        self.faults.note_gaps(batch, spec, dict.fromkeys((*codes, *covariates, *spec.key)), part, first_row)
        row_attributes = RowAttributes.of(batch, spec, self.faults, part, first_row)
        if spec.positive is not None:
            audited = row_attributes.there((p >= 0.0) & (p <= 1.0))
            others = no_events(batch.column(spec.label), spec.label, spec.positive, audited)
            self.no_event = few_of(self.no_event, others)
        origin = Origin.of(batch, spec, part, first_row, row_attributes)
        self.update_arrays(p, y, codes=codes, covariates=covariates, origin=origin)

    def update_arrays(
        self,
        p: Floats,
        y: NDArray[np.int8] | Floats,
        *,
        codes: Mapping[str, Codes],
        covariates: Mapping[str, pa.Array],
        origin: Origin = HERE,
    ) -> None:
        """Count rows given as arrays: float64 scores, labels as `binary_labels` takes them, int32 levels.

        `covariates` are Arrow arrays of the columns that the spec codes. Labels are as they are in rows without a
        cluster.
        """
        # (1) the group of each row
        stacked = self._stacked(codes, len(p))
        # (2) rows are dealt to blocks by identity, clusters as a whole, and counted in packed cells, emptied before
        # they run over
        faults = np.zeros(FAULTS, dtype=np.int64)
        labels = binary_labels(origin.row_attributes.labelled(y))
        is_kept = self._packed = self._packed or Packed(self.spec.blocks, self.spec.group_count, len(stacked))
        keys, salt = origin.keyed(self.spec)
        keys = NO_KEYS if keys is None else keys
        for start in range(0, len(p), is_kept.at_once):
            rows = slice(start, start + is_kept.at_once)
            if is_kept.rows + len(p[rows]) > is_kept.capacity:
                is_kept.settle(self._counters)
            first = origin.first_row + start
            tally(Rows(p[rows], labels[rows], stacked[:, rows], self._bases, keys[rows], first, salt), is_kept, faults)
        self.rows_read += len(p)
        self.faults.see(p, self.spec.percent, origin.part)
        if faults.any():
            self.faults.note(p, y, origin.part, origin.first_row)
        # (3) the parts see the sound rows, and one of them those without a label
        self.apart.see(p, labels, stacked)
        sound = sound_rows(self.spec, p, labels, stacked, covariates, origin)
        if sound is not None:
            for _, part in self._named_parts():
                part.update(sound)

    def _stacked(self, codes: Mapping[str, Codes], rows: int) -> NDArray[np.int32]:
        """Each row's group, by grouping: of two variables the first's times the other's levels."""
        stacked = np.empty((len(self.spec.groupings), rows), dtype=np.int32)
        for i, names in enumerate(self.spec.groupings):
            stacked[i] = codes[names[0]]
            for name in names[1:]:
                stacked[i] = stacked[i] * len(self.spec.by_name[name].labels) + codes[name]
        return stacked

    def count_unlabelled(self, p: Floats, codes: Mapping[str, Codes]) -> None:
        """Count sound scores of rows without a label, given with the levels of their groups."""
        self.apart.count(p, self._stacked(codes, len(p)))
        self.rows_read += len(p)

    def _named_parts(self) -> list[tuple[str, Part]]:
        """The parts, in the order of their names."""
        return sorted(cast(dict[str, Part], self.parts).items())

    @property
    def repeats(self) -> Repeats:
        """Rows that occur more than once: how many, of how many, and whether chance explains them."""
        return repeats_of(self.parts["contents"], self._equal_by_chance())

    def _equal_by_chance(self) -> Chance:
        """The share of pairs of rows that are alike by chance in the columns next to score and label."""
        first = dict(zip(self.spec.groupings, np.cumsum([0, *self.spec.sizes]).tolist(), strict=False))
        levels = {v.name: self.group_levels[first[v.name,] :][: len(v.labels)] for v in self.spec.variables}
        fine = self.parts["fine"].stored if "fine" in self.parts else {}
        rows = {name: kept.sum(axis=(1, 2, 3)) for name, kept in levels.items()}
        rows |= {name: kept[..., 0].sum(axis=(1, 2)) for name, kept in fine.items()}
        shares = [float(((n / max(self.n, 1)) ** 2).sum()) for n in rows.values()]
        return Chance(every=math.prod(shares), finest=min(shares, default=1.0))

    def merge(self, other: Sketch, *, allow_same: bool = False) -> Sketch:
        """Add another sketch's counts to this one, and return it. Specs must be equal.

        Parameters
        ----------
        other : Sketch
        allow_same : bool
            Add rows that this sketch holds already, which then count twice; by default they are refused.
        """
        why = "" if allow_same else self.shares(other)
        if why:
            raise BadInput(
                f"{self.name!r} and {other.name!r} {why}, which would count twice: leave one out, or pass "
                "allow_same=True if that is meant"
            )
        return self.add(other)

    def shares(self, other: Sketch) -> str:
        """Which rows of another sketch this one holds too, in words; empty if none, or as many as by chance."""
        if not self.n or not other.n or self.spec.counted != other.spec.counted:
            return ""
        if self.n == other.n and (self is other or self.fingerprint == other.fingerprint):
            return f"hold the same {self.n:,} rows"
        mine, theirs = (s.parts["contents"].named(s.files) for s in (self, other))
        return in_both(mine, theirs, (*self.files, *other.files), self._equal_by_chance())

    def add(self, other: Sketch) -> Sketch:
        """Add another sketch's counts, of whichever rows, and return this one: what `merge` does once it has looked."""
        self._stored()
        other._stored()
        if other.spec.as_read != self.spec.as_read:
            raise BadInput(
                "these sketches have different specs (columns, levels, seed or version): make both from one spec"
            )
        if other.spec.missing != self.spec.missing:
            self.spec = replace(self.spec, missing="drop" if self.spec.drops or other.spec.drops else "level")
        for own, more in zip(self.counters, other.counters, strict=True):
            own += more
        carry(self.cells)
        if self.files and other.files:
            self.parts["contents"] = self.parts["contents"].named(self.files)
        for name, mine in self._named_parts():
            theirs = cast(dict[str, Part], other.parts)[name]
            if self.files and isinstance(theirs, Contents):
                theirs = theirs.named(other.files)
            mine.merge(theirs)
        self.rows_read += other.rows_read
        self.files = (*self.files, *(f for f in other.files if f not in self.files))
        self.faults.merge(other.faults)
        self.no_event = few_of(self.no_event, other.no_event)
        self.nested, self.shared, self.log = (), None, self.log.merged(other.log)
        return self

    def _stored(self) -> None:
        """Refuse a sketch that lives by rows in memory."""
        if self.unstored:
            raise NotComputable(UNSTORED.format(self.unstored))

    def copy(self) -> Sketch:
        """A sketch of its own with the same counts."""
        out = Sketch(self.spec)
        out.name = self.name
        out.add(self)
        out.nested, out.shared, out.log = self.nested, self.shared, self.log
        return out

    def counted(self) -> Sketch:
        """The sketch without its scratch, which counting more rows makes again."""
        _, self._packed = self.counters, None  # reading the counters settles what is packed
        return self

    def checked(self) -> Sketch:
        """The sketch if its rows were sound; raise `BadInput` naming the first fault otherwise."""
        self.faults.check(self.spec)
        n = self.counted().n
        if n == 0:
            lack = lacking(self.spec.cluster, self.spec.weights)
            left = f" ({self.dropped} rows are without {lack})" if self.dropped else ""
            raise BadInput(f"no rows to audit{left}: the data is empty")
        if self.spec.positive is not None and self.events == 0:
            raise BadInput(no_such_event(self.no_event, f"column {self.spec.label!r}", self.spec.positive))
        return self

    # ---- bytes ----

    def to_bytes(self, *, level: int = 6) -> bytes:
        """The sketch as bytes: a header, the non-zero counts, and a checksum over both.

        A lower `level` of compression, from 0 to 9, is quicker and larger.
        """
        self.faults.check(self.spec)
        self._stored()
        counts = [nonzero(array) for array in self.counters]
        kept = {name: dict(sorted(part.arrays().items())) for name, part in self._named_parts()}
        a, b, c, d = (len(where) for where, _ in counts)
        header = Header(
            spec=self.spec,
            rows_read=self.rows_read,
            name=text_of(self.name),
            files=tuple(map(text_of, self.files)),
            lengths=(a, b, c, d),
            parts={name: {k: v.shape for k, v in arrays.items()} for name, arrays in kept.items()},
            no_event={text_of(value): rows for value, rows in self.no_event.items()},
            dropped_for=self.dropped_for,
            unfinished=tuple(map(text_of, self.log.unfinished)),
            excluded=tuple(map(text_of, self.log.excluded)),
            horizon={k: text_of(v) if isinstance(v, str) else v for k, v in self.log.horizon.items()},
            seen_events={k: text_of(v) if isinstance(v, str) else v for k, v in self.log.seen_events.items()} or UNSET,
        )
        numbers = [n for pair in counts for n in pair] + [v for arrays in kept.values() for v in arrays.values()]
        return with_checksum(packed(header, numbers, level))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Sketch:
        """Rebuild the sketch that `to_bytes` wrote; anything else is refused with `BadInput`, at little cost.

        The checksum finds accidents. It is no signature: whoever can write the file can write another sound one.
        """
        try:
            return cls._loaded(*unpacked(content_of(raw), Header, FORMAT))
        except MemoryError:
            raise BadInput("the sketch takes more memory than there is: audit it where there is more") from None

    @classmethod
    def _loaded(cls, header: Header, numbers: Numbers) -> Sketch:
        header.spec.check()
        sketch = cls(header.spec)
        sketch.rows_read, sketch.name, sketch.files = header.rows_read, header.name, header.files
        sketch.no_event = few_of(header.no_event)
        carried = {name: getattr(header, name) for name in CARRIED} | {"seen_events": header.seen_events or {}}
        sketch.log = Log(**carried)
        numbers.expect(sketch._expected(header))
        for name, length, array in zip(Counters._fields, header.lengths, sketch._counters, strict=True):
            numbers.take_into(array.reshape(-1), length, name)
        for name, part in sketch._named_parts():
            shapes = sorted(header.parts[name].items())
            part.load({key: numbers.take(math.prod(shape)).reshape(shape) for key, shape in shapes})
        numbers.end()
        sketch._check()
        sketch.faults.stored(header.dropped_for, sketch.dropped)
        return sketch

    def _expected(self, header: Header) -> int:
        """How many numbers must follow a header whose sizes fit the spec; refuse one whose do not."""
        for name, length, array in zip(Counters._fields, header.lengths, self._counters, strict=True):
            need(length <= array.size, f"the length of {name}", f"is {length}")
        need(header.parts.keys() == self.parts.keys(), "the parts", "are not those of the spec")
        for name, part in self._named_parts():
            need(part.takes(header.parts[name]), f"part {name!r}", "has shapes that are not those of the spec")
        shapes = [shape for arrays in header.parts.values() for shape in arrays.values()]
        return 2 * sum(header.lengths) + sum(map(math.prod, shapes))

    # ---- whether stored counts can be those of rows: none negative, none too large, tables that agree ----

    def _check(self) -> None:
        """Refuse counts that contradict themselves, one another or the spec."""
        everyone, levels = self.cells, self.levels
        at = np.unique(np.flatnonzero(everyone) // FIELDS % (1 << CELL_BITS))
        kept = everyone[:, at]  # the cells that hold rows: most may be empty
        _check_everyone(at, kept, levels)
        n, events = self.n, self.events
        steps = (int((kept[..., :2].sum(axis=(0, 2)) * at).sum()) << REST) + int(kept[..., 2:4].sum())
        need(sum(self.no_event.values()) <= n - events, "the rows of other labels", "are more than the non-events")
        fewer = self.spec.drops or self.spec.weights  # rows of weight 0 are left out
        complete = self.rows_read >= n if fewer else self.rows_read == n + self.unlabelled
        need(complete, "the number of rows read", "is not that of the counts")
        if self.spec.groupings:
            self._check_groups(_folded(at, kept, GROUP_REST), levels)
        self.apart.check(MOST_ROWS)
        self.parts["contents"].check(n, events)
        self.parts["values"].check(at, kept.sum(axis=0), self.group_levels.sum(axis=(1, 2)))
        if "fine" in self.parts:
            self.parts["fine"].check(_folded(at, kept.sum(axis=0), SCORE_BITS - 1))
        if "boxes" in self.parts:
            self.parts["boxes"].check(n, events, steps)
        if "sample" in self.parts:
            self.parts["sample"].check(n, events)
        if "local" in self.parts:
            self.parts["local"].check(n, events, steps / 2.0**SCORE_BITS)

    def _check_groups(self, coarse: Integers, levels: Integers) -> None:
        """Refuse groups of which one variable's do not add up to everyone."""
        first = 0
        for names, size in zip(self.spec.groupings, self.spec.sizes, strict=True):
            where, cells, fine = f"the groups of {' and '.join(names)}", np.zeros_like(coarse), np.zeros_like(levels)
            for g in range(first, first + size):
                own, shown = self.group_cells[g], self.group_levels[g]
                need_within(own[..., :2], own[..., 2:], 1 << GROUP_REST, where)
                need_within(shown, np.zeros(1, dtype=np.int64), 1, where)
                need((own[..., :2].sum(axis=1) == shown.sum(axis=1)).all(), where, "have levels unlike their cells")
                cells += own
                fine += shown
            need((cells == coarse).all() and (fine == levels).all(), where, "do not add up to everyone")
            first += size


def _check_everyone(at: Integers, values: Integers, levels: Integers) -> None:
    """Refuse everyone's counts that no rows can have; `at` are the cells held."""
    counts, sums, where = values[..., :2], values[..., 2:4], "the cells"
    need_within(counts, sums, 1 << REST, where)
    # the sum S of squares of n remainders r < 2^16 that sum to R: S <= R (2^16 - 1), and n S >= R^2
    low, high, n = values[..., 4], values[..., 5], counts.sum(axis=-1)
    need((low >= 0).all() and (low <= 0xFFFFFFFF).all() and (high >= 0).all(), where, "have squares out of range")
    square, total = high * 2.0**32 + low, sums.sum(axis=-1).astype(np.float64)
    possible = (square <= total * ((1 << REST) - 1)) & (square * n >= total**2 * (1 - 1e-9))
    need(possible.all(), where, "have squares that their rows cannot have")
    rows = counts.sum(axis=1)
    need(rows.astype(np.float64).sum() <= MOST_ROWS, where, "have an impossible number of rows")
    # rows up to the end of a level lie between those of the whole cells below it and those of the cells that it touches
    need_within(levels, np.zeros(1, dtype=np.int64), 1, "the levels")
    need((levels.sum(axis=1) == rows).all(), "the levels", "do not add up to the cells")
    below = np.concatenate([np.zeros_like(rows[:, None]), counts.cumsum(axis=1)], axis=1)
    end = -(-(np.arange(1, LEVELS + 1, dtype=np.int64) << SCORE_BITS) // LEVELS) - 1  # of q in each level, not reached
    end[-1], up_to = 1 << SCORE_BITS, levels.cumsum(axis=1)
    least, most = (below[:, np.searchsorted(at, cell)] for cell in (end >> REST, -(-end >> REST)))
    need((least <= up_to).all() and (up_to <= most).all(), "the levels", "do not agree with the cells")


def _folded(at: Integers, values: Integers, to: int) -> Integers:
    """Counts and remainder sums by label of coarser cells, whose remainders have `to` bits."""
    counts, sums = values[..., :2], values[..., 2:4]
    place = (at % (1 << (to - REST)))[:, None] << REST
    out = np.zeros((*values.shape[:-2], 1 << (SCORE_BITS - to), 4), dtype=np.int64)
    by_cell = np.moveaxis(out, -2, 0)  # a view: the cell first
    np.add.at(by_cell, at >> (to - REST), np.moveaxis(np.concatenate([counts, sums + counts * place], axis=-1), -2, 0))
    return out
