"""Sketches as bytes; nothing in a file is believed before it is checked."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import stat
import struct
import types
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from calibrant.arguments import LARGEST_SEED
from calibrant.data.coding import QUANTILES, Coding
from calibrant.data.coding import TOP as MOST_CODED
from calibrant.data.parts import MOST as MOST_FINE
from calibrant.data.parts import Part, load_state, state_of
from calibrant.data.spec import SCORE, SPEC_VERSION, Levels, Line, LocalSpec, Spec, Variable
from calibrant.errors import BadInput
from calibrant.kernels.features import CELLS as TABLE
from calibrant.kernels.features import UNIT, VARIANCE
from calibrant.kernels.tally import CELL_BITS, GROUP_BITS, LEVELS, SCORE_BITS

if TYPE_CHECKING:
    from calibrant.data.sketch import Sketch


# ---- From JSON back to the frozen dataclasses it was written from: every field there, of its type, finite, ----

T = TypeVar("T")
LARGEST = 2**63 - 1
SOUND: dict[Any, Callable[[Any], bool]] = {
    bool: lambda _: True,
    str: lambda v: v.isascii() or not any("\ud800" <= c <= "\udfff" for c in v),  # what UTF-8 can hold
    int: lambda v: -LARGEST <= v <= LARGEST,
    float: math.isfinite,
}


class Damaged(BadInput):
    """What was stored cannot have been written by this version."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"the sketch is damaged ({where[:100]} {what[:60]}): make it again")


@cache
def _fields(cls: Any) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


def rebuilt(cls: type[T], plain: Any, where: str) -> T:
    """Return the dataclass that was stored as a mapping; `where` is what messages call it."""
    kind: Any = cls
    fields = _fields(kind)
    if not isinstance(plain, dict) or plain.keys() != fields.keys():
        known = plain.keys() if isinstance(plain, dict) else ()
        odd = sorted(set(known) ^ set(fields))
        raise Damaged(
            where, f"must have {odd[0]!r}" if odd and odd[0] in fields else f"holds {odd!r}" if odd else "is none"
        )
    given = {name: value(wanted, plain[name], f"{where}.{name}") for name, wanted in fields.items()}
    try:
        return cls(**given)
    except BadInput as e:
        raise Damaged(where, f"is unsound: {e}") from None


def value(kind: Any, plain: Any, where: str) -> Any:
    """Return one stored value as the type that its field declares, or refuse it."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _row(inner, plain, where)
    if origin in (types.UnionType, Union):
        kinds = [k for k in inner if k is not type(None)]
        return None if plain is None and len(kinds) < len(inner) else value(kinds[0], plain, where)
    if origin is Literal:
        if isinstance(plain, str) and plain in inner:
            return plain
    elif dataclasses.is_dataclass(kind):
        return rebuilt(kind, plain, where)  # type: ignore[arg-type]
    elif type(plain) is kind and kind in SOUND and SOUND[kind](plain):
        return plain
    raise Damaged(where, f"is {str(plain)[:40]!r}")


def _row(inner: tuple[Any, ...], plain: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(plain, list):
        raise Damaged(where, "is no list")
    kinds = inner[:1] * len(plain) if inner[-1] is Ellipsis else inner
    if len(kinds) != len(plain):
        raise Damaged(where, f"has {len(plain)} entries, not {len(kinds)}")
    if inner[-1] is Ellipsis and inner[0] in SOUND and all(type(v) is inner[0] and SOUND[inner[0]](v) for v in plain):
        return tuple(plain)
    return tuple(value(k, v, f"{where}[{i}]") for i, (k, v) in enumerate(zip(kinds, plain, strict=True)))


# ---- Whether a stored spec is one that this version could have fixed: what sizes the arrays is bounded before ----

MOST_GROUPS = 4000
MOST_BLOCKS = 64
MOST_CELLS = 1024  # along a number
MOST_SAMPLED = 10_000_000
MOST_DRAWS = 100_000
MOST_COLUMNS = 8192  # features of the local test
REACH = 1 << 24  # of a landmark's coordinates, in steps
NARROW, WIDE = 1e-5, 1e5  # of a bell, in standard deviations; coordinates have steps of 1/4096 and end at 8
LARGE = 1e6  # in absolute value, of a whitening


def check_spec(spec: Spec) -> None:
    """Refuse a spec whose fields do not fit together; the types of its fields were checked when it was rebuilt."""
    if spec.version != SPEC_VERSION:
        raise BadInput(
            f"the sketch's spec has version {spec.version}, this calibrant knows {SPEC_VERSION}: use the version that made it"
        )
    _need(1 <= spec.blocks <= MOST_BLOCKS, "spec.blocks", f"is {spec.blocks}")
    _need(0 <= spec.seed <= LARGEST_SEED, "spec.seed", "is not a seed")
    for name, given in (("key", spec.key), ("variables", [v.name for v in spec.variables])):
        _need(len(set(given)) == len(given), f"spec.{name}", "names a column twice")
    _need(not {spec.label, spec.score} & set(spec.key), "spec.key", "is the label or the score")
    for v in spec.variables:
        _check_variable(v, f"spec variable {v.name!r}")
    known = spec.by_name
    for names in spec.groupings:
        sound = 1 <= len(names) <= 2 and len(set(names)) == len(names) and set(names) <= known.keys()
        _need(sound, "spec.groupings", f"holds {names}")
    _need(len(set(spec.groupings)) == len(spec.groupings), "spec.groupings", "names one twice")
    _need(spec.group_count * spec.blocks <= 8 * MOST_GROUPS, "spec.groupings", f"has {spec.group_count:,} groups")
    _need(0 <= spec.sample <= MOST_SAMPLED, "spec.sample", f"is {spec.sample}")
    _check_codings(spec)
    if spec.local is not None:
        _check_local(spec.local, spec.codings)


def _need(sound: bool | np.bool, where: str, what: str) -> None:
    if not sound:
        raise Damaged(where, what)


def increasing(values: Sequence[Any]) -> bool:
    """Tell whether every value is larger than the one before."""
    return all(a < b for a, b in pairwise(values))


def _check_variable(v: Variable, where: str) -> None:
    number = v.kind == "number"
    _need(v.folded >= 0, where, f"has {v.folded} folded values")
    _need(not (v.values if number else v.edges), where, "has both values and edges")
    _need(increasing(v.edges), where, "has edges that do not increase")
    _need(len(set(v.values)) == len(v.values), where, "has one value twice")
    _need(len(v.labels) <= MOST_GROUPS, where, f"has {len(v.labels):,} levels")


def _check_codings(spec: Spec) -> None:
    names = [c.name for c in spec.codings]
    _need(len(set(names)) == len(names), "spec.codings", "names a covariate twice")
    _need(not {spec.label, spec.score, *spec.key} & set(names), "spec.codings", "names the label, the score or the key")
    _need(bool(names) or not (spec.sample or spec.local), "spec.codings", "is empty, and there are tests")
    for c in spec.codings:
        check_coding(c, f"spec covariate {c.name!r}")


def check_coding(c: Coding, where: str) -> None:
    """Refuse a coding of a covariate that cannot be."""
    _need(c.kind != "constant" or c.name == SCORE, where, "is constant")
    _need(c.scale > 0, where, f"has scale {c.scale}")
    if c.kind == "category":
        _need(1 <= len(c.levels) <= MOST_CODED, where, f"has {len(c.levels)} levels")
        _need(len(set(c.levels)) == len(c.levels), where, "has one level twice")
        _need(not (c.ranks or c.cells or c.missing), where, "is a category with cells or ranks")
        return
    _need(not c.levels, where, "is a number with levels")
    _need(not c.ranks or len(c.ranks) == QUANTILES, where, f"has {len(c.ranks)} quantiles")
    _need(all(a <= b for a, b in pairwise(c.ranks)), where, "has quantiles that fall")
    if c.name == SCORE:
        return
    _need(2 <= len(c.cells) <= MOST_CELLS + 1, where, f"has {len(c.cells) - 1} cells")
    _need(increasing(c.cells[:-1]) and c.cells[-2] <= c.cells[-1], where, "has cells out of order")


def _check_local(s: LocalSpec, how: Sequence[Coding]) -> None:
    numbers = [c for c in how if c.kind != "category"]
    categories = [(c.name, len(c.labels)) for c in how if c.kind == "category"]
    flags = [(f"{c.name} is missing", 2) for c in numbers if c.missing]
    _need(
        0 <= s.seed <= LARGEST_SEED and 0 <= s.draws <= MOST_DRAWS, "spec.local", "has an odd seed or number of draws"
    )
    _need(s.score.name == SCORE and s.score.kind in ("number", "constant"), "spec.local.score", "is not the score")
    check_coding(s.score, "spec.local.score")
    own = [SCORE] if s.score.kind == "number" else []
    _need([q.name for q in s.lines] == own + [c.name for c in numbers], "spec.local.lines", "are not the numbers")
    _need([(q.name, q.size) for q in s.levels] == categories + flags, "spec.local.levels", "are not the levels")
    for line in s.lines:
        _check_line(line, f"spec.local line {line.name!r}")
    for q in s.levels:
        _check_levels(q, f"spec.local level {q.name!r}")
    _check_joint(s)
    _need(s.columns <= MOST_COLUMNS, "spec.local", f"has {s.columns:,} features")


def _check_line(line: Line, where: str) -> None:
    _need(0 < len(line.knots) <= MOST_CELLS and increasing(line.knots), where, "has knots that do not increase")
    _need(NARROW <= line.width <= WIDE and all(abs(v) <= WIDE for v in line.knots), where, f"has width {line.width}")
    _need(_shaped(line.whitening, len(line.knots), len(line.knots)), where, "has a whitening of the wrong shape")
    _need(all(abs(v) <= LARGE for row in line.whitening for v in row), where, "has a whitening out of reach")
    _need(increasing((-1, *line.steps, TABLE)), where, "has steps outside the table")


def _check_levels(q: Levels, where: str) -> None:
    _need(1 <= q.own <= q.size and 0 <= q.shared <= MOST_CODED, where, "has an odd number of columns")
    _need((q.shared > 0) == (q.size > q.own), where, "shares columns among no levels")
    _need(0 <= q.spread <= REACH, where, f"has spread {q.spread}")


def _check_joint(s: LocalSpec) -> None:
    where, marks = "spec.local.landmarks", len(s.landmarks)
    wide = len(s.lines) + sum(q.width for q in s.levels if q.spread)
    _need(bool(s.landmarks) == bool(s.whitening), where, "do not go with the whitening")
    _need(NARROW <= s.width <= WIDE, where, f"have width {s.width}")
    _need(marks <= MOST_CELLS and all(len(m) == wide for m in s.landmarks), where, "have the wrong shape")
    _need(not marks or _shaped(s.whitening, marks, marks), "spec.local.whitening", "has the wrong shape")
    _need(all(abs(v) <= REACH for m in s.landmarks for v in m), where, "lie out of reach")
    _need(all(abs(v) <= 1 << 40 for m in s.whitening for v in m), "spec.local.whitening", "is out of reach")


def _shaped(rows: Sequence[Sequence[Any]], high: int, wide: int) -> bool:
    """Tell whether a matrix has `high` rows of one width from 1 to `wide`."""
    return len(rows) == high and 1 <= len(rows[0]) <= wide and all(len(r) == len(rows[0]) for r in rows)


# ---- Whether stored counts can be those of rows: none negative, none too large, and every table with the same ----

MOST_ROWS = 1 << 40  # so that no sum over all rows leaves 64 bits
LIMB = 1 << 20  # of the local test's sums
REST = SCORE_BITS - CELL_BITS
GROUP_REST = SCORE_BITS - GROUP_BITS
LATEST = 106_751_991.0  # days that microseconds in 64 bits can hold


def check_sums(sketch: Sketch) -> None:
    """Refuse counts that contradict themselves, one another or the spec."""
    everyone, levels = sketch._arrays["cells"], sketch._arrays["levels"]
    at = np.unique(np.flatnonzero(everyone) // everyone.shape[2] % everyone.shape[1])
    held = everyone[:, at]  # the cells that hold rows: most may be empty
    rows = _checked_everyone(at, held, levels)
    complete = sketch.rows_read == sketch.n if not sketch.drop_missing else sketch.rows_read >= sketch.n
    _need(complete and sketch.rows_read <= MOST_ROWS, "the number of rows read", "is not that of the counts")
    if sketch.spec.groupings:
        _check_groups(sketch, _folded(at, held, GROUP_REST), levels)
    if "fine" in sketch.parts:
        totals = _folded(at, held.sum(axis=0), SCORE_BITS - 1)
        for c in sketch.spec.codings:
            _check_fine(sketch.parts["fine"].held[c.name], totals, f"covariate {c.name!r}")
    if "sample" in sketch.parts:
        _check_sample(sketch, int(rows.sum()), int(rows[1]))
    if "local" in sketch.parts:
        shown = (
            float((held[..., :2].sum(axis=(0, 2)) * (at * 2.0**REST)).sum() + held[..., 2:4].sum()) / 2.0**SCORE_BITS
        )
        _check_local_sums(sketch.parts["local"], int(rows.sum()), int(rows[1]), shown)


def _within(counts: Any, sums: Any, step: int, where: str) -> None:
    """Check counts of rows, and sums over them of whole numbers from 0 to ``step - 1``."""
    _need((counts >= 0).all() and (counts <= MOST_ROWS).all(), where, "has a negative or impossible count")
    _need((sums >= 0).all() and (sums <= counts * (step - 1)).all(), where, "has a sum that its rows cannot have")


def _checked_everyone(at: Any, held: Any, levels: Any) -> Any:
    """Return rows by label; `at` are the cells held."""
    counts, where = held[..., :2], "the cells"
    _within(counts, held[..., 2:4], 1 << REST, where)
    low, high, n = held[..., 4], held[..., 5], counts.sum(axis=-1)
    _need((low >= 0).all() and (low <= 0xFFFFFFFF).all() and (high >= 0).all(), where, "have squares out of range")
    square, total = high * 2.0**32 + low, held[..., 2:4].sum(axis=-1).astype(np.float64)
    _need((square <= total * ((1 << REST) - 1)).all(), where, "have squares that their rows cannot have")
    _need((square * n >= total**2 * (1 - 1e-9)).all(), where, "have squares that their rows cannot have")
    rows = counts.sum(axis=1)
    _need(rows.astype(np.float64).sum() <= MOST_ROWS, where, "have an impossible number of rows")
    _within(levels, np.zeros(1, dtype=np.int64), 1, "the levels")
    _need((levels.sum(axis=1) == rows).all(), "the levels", "do not add up to the cells")
    below = np.concatenate([np.zeros_like(rows[:, None]), counts.cumsum(axis=1)], axis=1)
    end, up_to = -(-(np.arange(1, LEVELS + 1, dtype=np.int64) << SCORE_BITS) // LEVELS), levels.cumsum(axis=1)
    least, most = (below[:, np.searchsorted(at, cell)] for cell in (end >> REST, -(-end >> REST)))
    _need((least <= up_to).all() and (up_to <= most).all(), "the levels", "do not agree with the cells")
    return rows.sum(axis=0)


def _folded(at: Any, held: Any, to: int) -> Any:
    """Return counts and remainder sums by label of coarser cells, whose remainders have `to` bits."""
    counts, sums = held[..., :2], held[..., 2:4]
    place = (at % (1 << (to - REST)))[:, None] << REST
    out = np.zeros((*held.shape[:-2], 1 << (SCORE_BITS - to), 4), dtype=np.int64)
    to_cell: Any = (..., at >> (to - REST), slice(None))
    np.add.at(out, to_cell, np.concatenate([counts, sums + counts * place], axis=-1))
    return out


def _check_groups(sketch: Sketch, coarse: Any, levels: Any) -> None:
    none, first = np.zeros(1, dtype=np.int64), 0
    for names, size in zip(sketch.spec.groupings, sketch.spec.sizes, strict=True):
        where, cells, levels_of = f"the groups of {' and '.join(names)}", np.zeros_like(coarse), np.zeros_like(levels)
        for g in range(first, first + size):
            own, shown = sketch._arrays["group_cells"][g], sketch._arrays["group_levels"][g]
            _within(own[..., :2], own[..., 2:], 1 << GROUP_REST, where)
            _within(shown, none, 1, where)
            _need((own[..., :2].sum(axis=1) == shown.sum(axis=1)).all(), where, "have levels unlike their cells")
            cells += own
            levels_of += shown
        _need((cells == coarse).all() and (levels_of == levels).all(), where, "do not add up to everyone")
        first += size


def _check_fine(held: Any, totals: Any, where: str) -> None:
    """Check one covariate's sums; `totals` are everyone's counts and remainder sums by side and label."""
    n, q, square, place = (
        held[..., k] for k in range(4)
    )  # sums of q wrap where they leave 64 bits, alike on both sides
    _need((n <= MOST_FINE).all(), where, "has an impossible count")
    _within(n, place, 1 << 16, where)
    low = np.array([0, 1 << (SCORE_BITS - 1)], dtype=np.int64)[:, None]
    _within(n, q - n * low, 1 << (SCORE_BITS - 1), where)
    side = (n.sum(axis=0), (q - n * low).sum(axis=0))
    _need((side[0] == totals[:, :2]).all() and (side[1] == totals[:, 2:]).all(), where, "does not add up to the cells")
    most, least = q * (((1 << 16) - 1) / 2.0**14), (np.maximum(q / 2.0**14 - n, 0.0)) ** 2
    slack = 1e-9
    _need((square >= 0).all() and (square <= most * (1 + slack)).all(), where, "has squares that its rows cannot have")
    _need(
        (square * n.astype(np.float64) * (1 + slack) + slack >= least).all(),
        where,
        "has squares that its rows cannot have",
    )


def _check_sample(sketch: Sketch, n: int, cases: int) -> None:
    lines, where = sketch.parts["sample"].lines, "the sample"
    _need(len(lines) <= min(n, sketch.spec.sample), where, "has too many rows")
    if not len(lines):
        return
    hashes, p, y = lines[:, 0].view(np.uint64), np.ascontiguousarray(lines[:, 1]).view(np.float64), lines[:, 2]
    _need((hashes[1:] >= hashes[:-1]).all(), where, "is out of order")
    _need(((p >= 0.0) & (p <= 1.0)).all() and ((y == 0) | (y == 1)).all(), where, "has a score or label that is none")
    _need(len(lines) < n or int(y.sum()) == cases, where, "has other labels")
    column = 3
    for c in (c for c in sketch.spec.codings if c.kind != "category"):
        values = np.ascontiguousarray(lines[:, column]).view(np.float64)
        reach = LATEST if c.kind == "date" else np.finfo(np.float64).max
        _need((np.isnan(values) | (np.abs(values) <= reach)).all(), where, f"has an impossible {c.name!r}")
        column += 1
    for name, most in _levels(sketch.spec.codings):
        codes = lines[:, column]
        _need(((codes >= 0) & (codes < most)).all(), where, f"has an impossible {name!r}")
        column += 1


def _levels(how: tuple[Coding, ...]) -> list[tuple[str, int]]:
    """Return the level variables of encoded rows and how many levels each has."""
    categories = [(c.name, len(c.labels)) for c in how if c.kind == "category"]
    return categories + [(c.name, 2) for c in how if c.kind != "category" and c.missing]


def _check_local_sums(sums: Any, n: int, cases: int, shown: float) -> None:
    """Check the local test's sums; `shown` is the sum of everyone's scores by the cells."""
    where = "the local test"
    counts, hits, means, gram, diagonal = (sums.arrays()[k] for k in ("counts", "hits", "means", "gram", "diagonal"))
    _need(counts[0] == n and counts[1] == cases and 0 <= counts[2] <= n, where, "has another number of rows")
    _need((np.abs(hits.astype(np.float64)) <= float(UNIT) * n).all(), where, "has impossible sums of outcomes")
    _need(hits[0, 0] == cases and (hits[0] >= 0).all() and (hits[0] <= n).all(), where, "has other outcomes")
    reach = float(UNIT) * n * np.array([1 << 15, 1 << 15, 1])
    _need((np.abs(means.astype(np.float64)) <= reach).all() and means[0, 2] == n, where, "has impossible means")
    scores = (means[0, 0] * 2.0**15 + means[0, 1]) / 2.0**SCORE_BITS
    _need(abs(scores - shown) <= 4.0 * n / 2.0**SCORE_BITS + 1e-12 * n, where, "has other scores")
    for limbs, most in ((gram, float(UNIT) ** 2 * VARIANCE), (diagonal, float(UNIT) * (1 << 20) * len(gram[0]))):
        _need(((limbs[0] >= 0) & (limbs[0] < LIMB)).all(), where, "has sums out of range")
        _need((np.abs(limbs[1].astype(np.float64)) * LIMB <= most * n + LIMB).all(), where, "has sums out of range")


# ---- Sketches as bytes: a header, the non-zero counts, and a checksum; nothing in a file is believed before ----

MAGIC = b"calibrant sketch\n"
FORMAT = 2
ARRAYS = ("cells", "levels", "group_cells", "group_levels")
SIZES = struct.Struct("<QQ")  # of the header and of the compressed body
BEGIN = len(MAGIC) + 32 + SIZES.size
STEP = 1 << 22  # bytes decompressed at once
FREE, RATIO = 1 << 28, 256  # bytes that any file may unpack to, and times its own size beyond them
HEADER = {
    "format": int,
    "spec": Any,
    "lengths": tuple[int, int, int, int],
    "rows_read": int,
    "name": str,
    "files": tuple[str, ...],
    "drop_missing": bool,
    "parts": Any,
}
FOREIGN = "not a calibrant sketch: pass a file that `calibrant sketch` wrote"
CHANGED = "the sketch is truncated or was changed after it was written: make it again"


def sketch_bytes(sketch: Sketch, level: int = 6) -> bytes:
    """Return the sketch as bytes; a lower level is quicker and larger."""
    body, lengths = [], []
    for name in ARRAYS:
        where, values = sketch._sparse(name)
        lengths.append(len(where))
        body += [where.tobytes(), values.tobytes()]
    shapes, more = state_of(sketch.parts)
    header = json.dumps(
        {
            "format": FORMAT,
            "spec": sketch.spec.to_dict(),
            "lengths": lengths,
            "rows_read": sketch.rows_read,
            "name": _plain(sketch.name),
            "files": [_plain(f) for f in sketch.files],
            "drop_missing": sketch.drop_missing,
            "parts": shapes,
        },
        sort_keys=True,
    ).encode()
    small = zlib.compress(b"".join([*body, more]), level)
    content = SIZES.pack(len(header), len(small)) + header + small
    return MAGIC + hashlib.sha256(content).digest() + content


def _plain(text: str) -> str:
    """Return text that UTF-8 can hold: a file's name need not be."""
    return text.encode("utf-8", "replace").decode()


def stored_sketch(path: Any) -> bytes:
    """Read a sketch file; one that is none is refused by its first bytes and its size, however large it is."""
    try:
        with Path(path).open("rb") as file:
            first, status = file.read(BEGIN), os.fstat(file.fileno())
            if _size(first) != status.st_size and stat.S_ISREG(status.st_mode):
                raise BadInput(CHANGED)
            return first + file.read()
    except OSError as e:
        raise BadInput(f"cannot be read: {e.strerror}") from None


def _size(first: bytes) -> int:
    """Return how many bytes a file that begins so must have."""
    if first[: len(MAGIC)] != MAGIC:
        raise BadInput(FOREIGN)
    if len(first) < BEGIN:
        raise BadInput(CHANGED)
    return BEGIN + int(sum(SIZES.unpack_from(first, BEGIN - SIZES.size)))


def sketch_of_bytes(raw: bytes, make: type[Sketch]) -> Sketch:
    """Rebuild what `sketch_bytes` wrote; anything else is refused, before it can cost memory or time."""
    if not isinstance(raw, (bytes, bytearray, memoryview)):
        raise BadInput(FOREIGN)
    view = memoryview(bytes(raw))
    content = view[len(MAGIC) + 32 :]
    sound = _size(bytes(view[:BEGIN])) == len(view)
    if not sound or hashlib.sha256(content).digest() != view[len(MAGIC) : len(MAGIC) + 32]:
        raise BadInput(CHANGED)
    head, _ = SIZES.unpack_from(content)
    header = _header(bytes(content[SIZES.size : SIZES.size + head]))
    spec = rebuilt(Spec, header["spec"], "spec")
    check_spec(spec)
    sketch = make(spec, header["drop_missing"])
    sketch.rows_read, sketch.name, sketch.files = header["rows_read"], header["name"], header["files"]
    body = _Body(content[SIZES.size + head :], _expected(sketch, header), len(view))
    for name, length in zip(ARRAYS, header["lengths"], strict=True):
        _fill(sketch._arrays[name].reshape(-1), body, length, name)
    load_state(sketch.parts, header["parts"], body.take)
    body.end()
    check_sums(sketch)
    return sketch


def _header(raw: bytes) -> dict[str, Any]:
    try:
        header = json.loads(raw.decode("utf-8"), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        raise Damaged("the header", "is no JSON") from None
    if not isinstance(header, dict) or type(header.get("format")) is not int:
        raise Damaged("the header", "has no format")
    if header["format"] != FORMAT:
        by = "a newer calibrant: upgrade this one" if header["format"] > FORMAT else "an older calibrant: make it again"
        raise BadInput(
            f"the sketch has format {str(header['format'])[:20]}, this version reads {FORMAT}; it is from {by}"
        )
    if header.keys() != HEADER.keys():
        raise Damaged("the header", "has other fields")
    return {k: header[k] if kind is Any else value(kind, header[k], f"header.{k}") for k, kind in HEADER.items()}


def _expected(sketch: Sketch, header: Mapping[str, Any]) -> int:
    """Return the bytes that the body must unpack to, from sizes that fit the spec."""
    for name, length in zip(ARRAYS, header["lengths"], strict=True):
        if not 0 <= length <= sketch._arrays[name].size:
            raise Damaged(f"the length of {name}", f"is {length}")
    return 16 * int(sum(header["lengths"])) + 8 * sum(_sizes(sketch.parts, header["parts"]))


def _sizes(parts: Mapping[str, Part], shapes: Any) -> Iterator[int]:
    if not isinstance(shapes, dict) or shapes.keys() != parts.keys():
        raise Damaged("the parts", "are not those of the spec")
    for name, part in parts.items():
        if not isinstance(shapes[name], dict):
            raise Damaged(f"part {name!r}", "is none")
        given = {k: value(tuple[int, ...], v, f"the shape of {k!r}") for k, v in shapes[name].items()}
        if not part.takes(given):
            raise Damaged(f"part {name!r}", "has shapes that are not those of the spec")
        yield from map(math.prod, given.values())


class _Body:
    """Whole numbers unpacked piece by piece, never more than expected."""

    def __init__(self, small: Any, expected: int, stored: int) -> None:
        if expected > FREE + RATIO * stored:
            raise Damaged("the header", f"claims {expected:,} bytes")
        self._unpack, self._small, self._at, self._tail = zlib.decompressobj(), small, 0, b""

    def take(self, size: int) -> Any:
        """Return the next whole numbers."""
        out = np.empty(8 * size, dtype=np.uint8)
        into, at = out.data, 0
        while at < len(into):
            piece = self._more(min(len(into) - at, STEP))
            if not piece:
                raise Damaged("the body", "is too short")
            into[at : at + len(piece)] = piece
            at += len(piece)
        return out.view("<i8")

    def _more(self, most: int) -> bytes:
        """Return up to `most` bytes, none if there are no more."""
        piece = b""
        while not piece and not self._unpack.eof:
            if not self._tail:
                self._tail = bytes(self._small[self._at : self._at + STEP])
                self._at += len(self._tail)
            over = not self._tail
            try:
                piece = self._unpack.decompress(self._tail, most)
            except zlib.error:
                raise Damaged("the body", "cannot be unpacked") from None
            self._tail = self._unpack.unconsumed_tail
            if over:
                break
        return piece

    def end(self) -> None:
        """Check that nothing is left."""
        if self._more(1) or not self._unpack.eof or self._unpack.unused_data or self._at < len(self._small):
            raise Damaged("the body", "is too long")


def _fill(flat: Any, body: _Body, length: int, name: str) -> None:
    """Put non-zero counts in their places, which increase."""
    places, last = [], -1
    for start in range(0, length, STEP // 8):
        where = body.take(min(STEP // 8, length - start))
        if where[0] <= last or where[-1] >= len(flat) or not (where[1:] > where[:-1]).all():
            raise Damaged(f"the places of {name}", "do not increase within the array")
        places.append(where)
        last = int(where[-1])
    for where in places:
        values = body.take(len(where))
        if not values.all():
            raise Damaged(f"the values of {name}", "hold a zero")
        flat[where] = values
