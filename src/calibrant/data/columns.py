"""Arrow columns in plain layouts: frames of any kind as tables, numbers, dates, texts and labels as arrays."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal, InvalidOperation
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.arguments import OTHERS, Caller
from calibrant.data.layouts import decoded, is_date, is_text, plain, text_dates, times, whole
from calibrant.errors import BadInput
from calibrant.kernels.draws import hash_bytes, mix

Floats = NDArray[np.float64]
Ids = NDArray[np.uint64]

ABSENT = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None")  # text that means "no label"
LARGEST = 1e30  # of a covariate: trees hold 32-bit floats, and squares stay finite; what is larger is a filler
TINY = 1e-100  # what is smaller is zero: no scale is divided by it
EXACT, DIGITS = 2**53, 15  # whole numbers, and digits, that every double tells apart
SPELT = 1e16  # whole numbers up to here are written without an exponent
IDENTIFIER = 100_000  # more distinct texts than this name rows, and are neither groups nor levels
LONGEST = 1000  # characters of a name: of a column, or of a group or level
FEW = 20  # of these that are reported
SHOWN = 40  # characters of a value or type that a message shows
VALUES = 8  # of a label that a message shows
MULTICLASS = 5  # strange labels make up this share of all, in percent, from which on they may be classes
# Two outcomes in words.
WORDS: tuple[set[str], ...] = (
    {"no", "yes"},
    {"n", "y"},
    {"false", "true"},
    {"f", "t"},
    {"negative", "positive"},
    {"0", "1"},
)
WORDS += ({"nein", "ja"}, {"n", "j"}, {"falsch", "wahr"}, {"nee", "ja"}, {"nej", "ja"}, {"non", "oui"})
WORDS += ({"no", "sí"}, {"no", "si"}, {"no", "sì"}, {"não", "sim"}, {"nao", "sim"}, {"nie", "tak"})
UNKNOWN = {"unknown", "unk", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", "maybe", "pending", "?", "-"}
UNKNOWN |= {"undetermined", "indeterminate", "uncertain", "unclear", "inconclusive", "not known", "not available", "."}
FIXES = {"label": "pass positive= (--positive) to name the event", "score": "convert it to numbers in [0, 1]"}


def require(names: Iterable[str], available: Sequence[str], role: str) -> None:
    """Raise `BadInput` for a column that is not there, with the nearest name."""
    for name in names:
        shown = repr(clipped(str(name), LONGEST))
        if name not in available:
            of_list = [a for a in map(str, available) if str(name) in map(str.strip, a.split(","))]
            near = of_list or difflib.get_close_matches(str(name)[:LONGEST], [str(a) for a in available], 1, 0.5)
            listed = ", ".join(repr(clipped(str(a))) for a in available[:12])
            there = f"there are: {listed}" if available else f"there is no {role} at all"
            hint = f"did you mean {clipped(near[0])!r}?" if near else there
            more = f" In a list that is typed put it in quotes, as in {IN_QUOTES}" if of_list else ""
            raise BadInput(f"{role} column {shown} is not in the data; {hint}{more}")


IN_QUOTES = "'\"a,b\",c'"


def short(names: Iterable[str], role: str) -> None:
    """Raise `BadInput` for a column whose name is too long for a report."""
    for name in names:
        if len(name) > LONGEST:
            raise BadInput(f"{role} column {clipped(name)!r}: {long_name(name)}; rename it")


def long_name(name: str) -> str:
    """Say that a column's name is too long for a report."""
    return f"its name has {len(name):,} characters, and may have {LONGEST:,}"


def clipped(text: str, most: int = SHOWN) -> str:
    """Text, cut where it is too long for a message."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


Item = TypeVar("Item", bound=np.generic)


def picked(column: NDArray[Item] | None, rows: NDArray[np.bool_] | NDArray[np.intp] | slice) -> NDArray[Item] | None:
    """Some rows of a column, if there is one."""
    return None if column is None else column[rows]


# ---- tables ----


UNNAMED = r"__index_level_\d+__"  # how Arrow calls row labels of pandas that have no name


def table_of(frame: object) -> pa.Table:
    """What speaks the Arrow stream protocol as a table: pandas, Polars, Arrow and anything like them.

    Row labels that pandas hands over as a column, because they have no name, are left out.
    """
    table = frame if isinstance(frame, pa.Table) else pa.RecordBatchReader.from_stream(frame).read_all()
    labels = [c for c in (table.schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(c, str)]
    return table.drop_columns([c for c in table.column_names if c in labels and re.fullmatch(UNNAMED, c)])


# ---- kinds of columns ----


def is_number(t: pa.DataType) -> bool:
    """Whether an Arrow type is a number."""
    return bool(pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t))


def as_float(column: pa.Array | pa.ChunkedArray, name: str, role: str, fix: str = "") -> Floats:
    """A numeric or boolean column as float64, NaN where null; refuse text that is not numbers."""
    column = decoded(column, name)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if not is_number(column.type):
        fix = fix or FIXES.get(role, "store it as numbers")
        if role == "label" and (reported := _unknown_outcomes(column, fix)):
            raise BadInput(f"label column {name!r} holds {reported}")
        kind = clipped(str(column.type))
        raise BadInput(f"{role} column {name!r} holds {kind} (such as {_example(column)!r}), not numbers; {fix}")
    values: Floats = _doubles(column).to_numpy(zero_copy_only=False)
    return values


def score_values(
    column: pa.Array | pa.ChunkedArray, name: str, percent: bool = False, caller: Caller | None = None
) -> Floats:
    """Scores as float64, NaN where missing; percent, with a sign or not, are divided by 100."""
    column = decoded(column, name)
    if pa.types.is_nested(column.type):
        mark = ".*" if pa.types.is_struct(column.type) else "_*"
        raise BadInput(f"score column {name!r} holds {column.type}, of several classes: name its parts, '{name}{mark}'")
    signed = is_text(column.type) and _example(column).rstrip().endswith("%")
    if signed and not percent:
        way = "percent=True (--percent)" if caller is None else caller.turns_on("percent")
        raise BadInput(f"score column {name!r} holds percentages such as {_example(column)!r}: pass {way}")
    values = as_float(_without_signs(column) if signed else column, name, "score")
    return values / 100.0 if percent else values


def _without_signs(column: pa.Array) -> pa.Array:
    """Texts such as "12%" as numbers; unchanged if one is another text."""
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    number = pc.utf8_rtrim_whitespace(pc.replace_substring_regex(text, "%$", ""))
    try:
        return pc.replace_substring(pc.if_else(pc.is_in(text, pa.array(ABSENT)), None, number), ",", ".").cast(
            "float64"
        )
    except pa.ArrowInvalid:
        return column


def are_absent(column: pa.Array | pa.ChunkedArray, name: str) -> NDArray[np.bool_]:
    """Which values are missing: null, NaN or empty text."""
    column = decoded(column, name)
    absent = (as_text(column) if pa.types.is_string(column.type) else column).is_null(nan_is_null=True)
    result: NDArray[np.bool_] = absent.to_numpy(zero_copy_only=False)
    return result


def absent_labels(values: pa.Array, classes: Sequence[str] = ()) -> NDArray[np.bool_]:
    """Where labels are missing: null, NaN, or a text that means so and is none of the `classes`."""
    there = values.is_valid()
    if pa.types.is_floating(values.type):
        there = pc.and_(there, pc.fill_null(pc.invert(pc.is_nan(values)), False))
    if pa.types.is_string(values.type):
        means = [text for text in ABSENT if text not in classes]
        there = pc.and_(there, pc.invert(pc.is_in(values, value_set=pa.array(means))))
    out: NDArray[np.bool_] = ~there.to_numpy(zero_copy_only=False)
    return out


def _example(column: pa.Array) -> str:
    """The first value, for a message; empty if there is none, or none that Python has."""
    try:
        return clipped(str(column.drop_null()[0]))
    except (IndexError, OverflowError, ValueError):
        return ""


def _doubles(column: pa.Array) -> pa.Array:
    """Numbers as float64: decimals by what they print, as text files have them, for Arrow rounds decimals twice."""
    decimal = pa.types.is_decimal(column.type)
    return (column.cast(pa.string()) if decimal else column).cast(pa.float64(), safe=False)


def finite_numbers(column: pa.Array | pa.ChunkedArray, name: str, role: str) -> Floats:
    """Numbers as float64, NaN where missing, tiny ones as zero; refuse those that stand for something else."""
    column = decoded(column, name)
    values = as_float(column, name, role)
    if pa.types.is_integer(column.type):
        return values  # none is beyond 2^64, or between zero and one
    if why := excess(values):
        raise BadInput(f"{role} {name!r} {why}: replace or cap them")
    size = np.abs(values)
    return np.where(size < TINY, 0.0, values) if np.fmin.reduce(size, initial=1.0) < TINY else values


def excess(values: Floats) -> str:
    """Tell of values that no arithmetic can be done with: infinite, or so large that their squares are; else empty."""
    size = np.abs(values)
    if not np.fmax.reduce(size, initial=0.0) > LARGEST:
        return ""
    if np.isinf(size).any():
        return "holds infinite values"
    return f"holds values such as {values[np.nanargmax(size)]:.3g}, beyond {LARGEST:g}"


def as_text(column: pa.Array) -> pa.Array:
    """A decoded column as text, null where missing or empty."""
    text = column if pa.types.is_string(column.type) else column.cast(pa.string())
    return pc.if_else(pc.equal(text, ""), None, text)


def long_text(text: pa.Array) -> str:
    """Tell of texts that are too long to name a level; empty if there are none."""
    if not pa.types.is_string(text.type):
        return ""
    longest = pc.max(pc.utf8_length(text)).as_py() or 0
    return f"holds texts of {longest:,} characters; a level's name may have {LONGEST:,}" if longest > LONGEST else ""


# ---- numbers as names of levels: exact, however large ----


def number_texts(column: pa.Array) -> pa.Array:
    """Numbers as text: whole ones exact and without a point, others as doubles; null where missing."""
    t = column.type
    if pa.types.is_integer(t):
        return column.cast(pa.string())
    coded = column.dictionary_encode()
    texts = [None if v is None else number_text(v) for v in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


def number_text(value: float | Decimal) -> str | None:
    """One number as the name of a level; None for NaN. A decimal has the name that text files give it."""
    if value != value:
        return None
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return str(int(value))
    double = float(value)
    return str(int(double)) if double.is_integer() and abs(double) < SPELT else repr(double)


def is_large(text: str) -> bool:
    """Whether a number, written by `number_text`, is a whole one that no double may be."""
    return len(text) > DIGITS and text.removeprefix("-").isdecimal() and abs(int(text)) > EXACT


def may_be_large(column: pa.Array) -> bool:
    """Whether a column holds numbers that doubles may not hold, so that only their text distinguishes them."""
    t = column.type
    if pa.types.is_decimal(t):
        return bool(t.precision > DIGITS) and any(is_large(v) for v in number_texts(column.unique()).to_pylist() if v)
    if not pa.types.is_integer(t) or t.bit_width < 64:
        return False
    reach = pc.min_max(column)
    return bool(reach["min"].is_valid) and max(-reach["min"].as_py(), reach["max"].as_py()) > EXACT


def as_covariates(table: pa.Table) -> pa.Table:
    """Covariates in plain layouts; as text whole numbers that no double may be, as times text that is dates."""
    columns = []
    for name, inputs in zip(table.schema.names, table.columns, strict=True):
        column = plain(inputs, name)
        if is_number(column.type) and may_be_large(column):
            column = number_texts(column).dictionary_encode()
        elif is_text(column.type) and (dates := text_dates(column)) is not None:
            column = dates
        elif pa.types.is_dictionary(column.type) and (dates := text_dates(column.dictionary)) is not None:
            column = dates.take(column.indices)
        elif is_date(column.type):
            column = times(column, name)
        columns.append(column)
    return pa.Table.from_arrays(columns, names=table.schema.names)


def level_codes(column: pa.Array, levels: Sequence[str]) -> NDArray[np.int32] | None:
    """The place of each value of a plain column among levels, one more for others, two more for missing ones.

    None if the column is of a kind that cannot hold such levels.
    """
    if pa.types.is_dictionary(column.type):
        table = level_codes(column.dictionary, levels)
        if table is None:
            return None
        coded = pc.take(pa.array(table), column.indices, boundscheck=False)  # a plain column's codes are in reach
        at: NDArray[np.int32] = coded.fill_null(len(levels) + 1).to_numpy(zero_copy_only=False)
        return at
    result = _places(column, levels)
    if result is None:
        return None
    absent = (as_text(column) if pa.types.is_string(column.type) else column).is_null(nan_is_null=True)
    codes: NDArray[np.int32] = result.fill_null(len(levels)).to_numpy(zero_copy_only=False).astype(np.int32)
    codes[absent.to_numpy(zero_copy_only=False)] = len(levels) + 1
    return codes


def _places(column: pa.Array, levels: Sequence[str]) -> pa.Array | None:
    """The place of each value of a column without a dictionary among levels, null where it is none of them.

    None if the column is of a kind that cannot hold such levels.
    """
    t = column.type
    if pa.types.is_null(t):
        return pa.nulls(len(column), pa.int32())
    if pa.types.is_string(t):
        return pc.index_in(as_text(column), value_set=pa.array(levels, pa.string()))
    if pa.types.is_boolean(t):
        truth = set(levels) & {"false", "true"} or not levels
        return pc.index_in(column.cast(pa.string()), value_set=pa.array(levels, pa.string())) if truth else None
    numbers = [_exactly(v) for v in levels]
    if not is_number(t) or None in numbers:
        return None
    if not pa.types.is_floating(t):
        named = number_texts(column)
        return pc.index_in(named, value_set=pa.array([number_text(v) for v in numbers if v is not None], pa.string()))
    doubles = [float(v) for v in numbers if v is not None]
    if any(is_large(text) and int(float(text)) != int(text) for text in levels):
        return None
    plain = pc.add(column.cast(pa.float64()), 0.0)  # minus zero is zero
    return pc.index_in(plain, value_set=pa.array(doubles, pa.float64()))


def _exactly(text: str) -> Decimal | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


# ---- labels ----


def label_values(
    column: pa.Array | pa.ChunkedArray,
    name: str,
    positive: str | None,
    is_event: str = "positive",
    caller: Caller | None = None,
) -> NDArray[np.int8] | Floats:
    """Labels as numbers, NaN where missing (null, NaN, text such as "NA"); int8 where every value fits.

    With `positive` the value that it names is 1 and every other is 0: numbers as numbers, text as text. `is_event` is
    what whoever asks calls that argument.
    """
    column = decoded(column, name)
    if positive is None:
        if pa.types.is_integer(column.type) and not column.null_count:
            values = column.to_numpy(zero_copy_only=False)
            if len(values) and values.min() >= 0 and values.max() <= 1:
                small: NDArray[np.int8] = values.astype(np.int8)
                return small
        own = f"{is_event}=" if caller is None else caller.says(is_event)
        either = caller is None and is_event == "positive"  # then both names of it are said
        return as_float(column, name, "label", "" if either else f"pass {own} to name the event")
    try:
        hit = _hits(column, name, positive, is_event)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise BadInput(
            f"label column {name!r} holds {column.type}: store it as text, numbers, or true and false"
        ) from None
    result: Floats = hit.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return result


def _hits(column: pa.Array, name: str, positive: str, event: str = "positive") -> pa.Array:
    """Which labels are the positive one, null where missing."""
    t = column.type
    if pa.types.is_boolean(t):
        return pc.equal(column.cast(pa.string()), positive.lower())
    if not is_number(t):
        text = column if pa.types.is_string(t) else column.cast(pa.string())
        return pc.equal(pc.if_else(pc.is_in(text, value_set=pa.array(ABSENT)), None, text), positive)
    try:
        value = Decimal(positive)
    except InvalidOperation:
        there = number_texts(pc.unique(column).drop_null().slice(0, FEW)).drop_null().to_pylist()
        raise BadInput(no_such_event(there, f"label column {name!r} of numbers", positive, event)) from None
    if not pa.types.is_integer(t):
        numbers = _doubles(column)
        return pc.equal(pc.if_else(pc.is_nan(numbers), None, numbers), float(value))
    try:  # whole numbers as such: above 2^53 several of them are one real number
        exact = pa.scalar(int(value), t)
    except (OverflowError, ValueError):  # beyond what the column can hold, or not finite
        exact = None
    if exact is None or exact.as_py() != value:
        return pc.if_else(pc.is_valid(column), False, None)
    return pc.equal(column, exact)


def spellings(column: pa.Array | pa.ChunkedArray, name: str, positive: str) -> set[str]:
    """The texts of a label that are `positive` but for case and space around; none of a label of numbers."""
    column = decoded(column, name)
    if is_number(column.type) or pa.types.is_boolean(column.type):
        return set()
    texts = pc.unique(column.cast(pa.string())).drop_null()
    plain = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    return set(texts.filter(pc.equal(plain, positive.strip().lower())).to_pylist())


def two_spellings(spelt: AbstractSet[str], name: str, positive: str) -> str:
    """Tell of a label whose event is spelt in several ways, of which all but one would count as a non-event."""
    if positive not in spelt or len(spelt) < 2:
        return ""
    other = clipped(min(spelt - {positive}))
    counts = "which would count as a non-event: write both in one way"
    return f"label column {name!r} holds {other!r} next to {positive!r}, {counts}"


def letters_of(text: str) -> str:
    """A text's letters and digits, in small letters."""
    return re.sub(r"[\W_]+", "", text).lower()


def no_such_event(values: Iterable[str], where: str, positive: object, event: str = "positive") -> str:
    """Say that no label is the one named as the event, which values there are, and which may be meant."""
    there = sorted({clipped(v) for v in values})
    listed = ", ".join(map(repr, there[:VALUES])) + (", and more" if len(there) > VALUES else "")
    near = {letters_of(v): v for v in there}.get(letters_of(str(positive)), "")
    meant = [near] if near else difflib.get_close_matches(str(positive)[:LONGEST], there, n=1, cutoff=0.6)
    hint = f": did you mean {meant[0]!r}?" if meant else ""
    return f"{event}={positive!r} does not occur in {where}" + (f", which holds {listed}{hint}" if there else "")


def no_events(
    column: pa.Array | pa.ChunkedArray, name: str, positive: str, audited: NDArray[np.bool_]
) -> dict[str, int]:
    """The label's values other than the event, as text, with their audited rows: see `few_of`.

    Texts that are the same where they are cut, after `SHOWN` characters, count as one value.
    """
    column = decoded(column, name)
    others = pc.fill_null(pc.invert(_hits(column, name, positive)), False)
    rest = column.filter(pc.and_(others, pa.array(audited)))
    texts = number_texts(rest) if is_number(rest.type) else rest.cast(pa.string())
    values, rows = (part.to_pylist() for part in pc.value_counts(texts).flatten())
    result: Counter[str] = Counter()
    for value, count in zip(values, rows, strict=True):
        result[clipped(value)] += count
    return few_of(result)


def few_of(*counts: Mapping[str, int]) -> dict[str, int]:
    """The sum of counts by text, of the first `OTHERS` + 1 texts in their order; with one more, too many.

    Each of these is among the first in whichever part has it, so its count is whole, however rows were split.
    """
    texts = sorted({text for one in counts for text in one})[: OTHERS + 1]
    return {text: sum(one.get(text, 0) for one in counts) for text in texts}


def unknown_of(values: Mapping[str, int]) -> tuple[str, ...]:
    """The values of a label, given with their rows, that seem to say that an outcome is not known.

    That is where two plain outcomes stand next to them: 0 and 1, no and yes. Words for it, or values of few rows.
    """
    low, pair = {v: v.strip().lower() for v in values}, plain_pair(values)
    others = [v for v in values if low[v] not in pair]
    few = 100 * sum(values[v] for v in others) < MULTICLASS * sum(values.values())
    plain_words = {word for words in WORDS for word in words}
    results = [v for v in others if low[v] in UNKNOWN or (few and low[v] not in plain_words)]
    return tuple(sorted(results, key=lambda v: (-values[v], v))) if pair else ()


def plain_pair(values: Iterable[str]) -> set[str]:
    """The two plain outcomes that are among the values of a label, in small letters; none if there are none."""
    low = {v.strip().lower() for v in values}
    return next((pair for pair in WORDS if pair <= low), set())


def _unknown_outcomes(column: pa.Array, fix: str) -> str:
    """Say that a label of text holds what seems to be unknown outcomes, and what to do; empty if it does not."""
    if not pa.types.is_string(column.type):
        return ""
    values, rows = (part.to_pylist() for part in pc.value_counts(as_text(column)).flatten())
    kept = {v: n for v, n in zip(values, rows, strict=True) if v is not None and v not in ABSENT}
    result = unknown_of(kept) if len(kept) <= FEW else ()
    if not result:
        return ""
    pair, (it, means) = plain_pair(kept), ("it", "it means") if len(result) == 1 else ("them", "they mean")
    listed = ", ".join(repr(clipped(v)) for v in result)
    reported = f"{listed} next to {' and '.join(sorted(pair))}; if these outcomes are not known, store {it} as missing"
    if pair & {"0", "false"}:
        return f"{reported}; only if {means} a non-event, {fix}"
    return f"{reported} and {fix}, which alone would count {it} as a non-event"


def binary_labels(y: NDArray[np.int8] | Floats) -> NDArray[np.int8]:
    """Labels as int8: 0, 1, -1 where missing, 2 for anything else."""
    if y.dtype == np.int8:
        return y.astype(np.int8, copy=False)
    return np.where(np.isnan(y), -1, np.where(y == 0, 0, np.where(y == 1, 1, 2))).astype(np.int8)


# ---- hashes ----


def text_hashes(text: pa.Array, seed: int) -> Ids:
    """Hash texts (large strings without nulls) to one uint64 each, the same on every machine."""
    if not len(text):
        return np.zeros(0, dtype=np.uint64)
    offsets = np.frombuffer(text.buffers()[1], dtype=np.int64)[text.offset : text.offset + len(text) + 1]
    data = text.buffers()[2]
    raw = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return hash_bytes(offsets, raw, seed)


def row_ids(columns: Sequence[pa.Array], seed: int, names: Sequence[str] = (), part: str = "key") -> Ids:
    """Hash key columns to one uint64 a row; equal keys give equal identities on every machine. Messages name `part`."""
    named = names or [""] * len(columns)
    hashes = [text_hashes(_key_bytes(c, name, part), seed) for c, name in zip(columns, named, strict=True)]
    first, *others = hashes
    for hashed in others:
        first = mix(first) ^ hashed
    return first


def joint_texts(columns: Sequence[pa.Array], names: Sequence[str]) -> pa.Array:
    """The values of several columns as one text a row, equal only where all are; null where one is missing."""
    texts = [pc.replace_substring(_key_bytes(c, n, "cluster"), "+", "++") for c, n in zip(columns, names, strict=True)]
    gone = np.any([are_absent(c, n) for c, n in zip(columns, names, strict=True)], axis=0)
    result = pc.binary_join_element_wise(*texts, pa.scalar(b" + ", pa.large_binary())).cast(pa.large_string())
    return pc.if_else(pa.array(gone), None, result)


def _key_bytes(column: pa.Array | pa.ChunkedArray, name: str, part: str) -> pa.Array:
    """A key as bytes that are equal where it is: times to the microsecond unless they are finer."""
    column = whole(column, name)
    if not is_text(column.type) or pa.types.is_fixed_size_binary(column.type):
        column = decoded(column, name)
    t = column.type
    if pa.types.is_timestamp(t):
        micro = times(column, name)
        finer = t.unit == "ns" and pc.any(pc.not_equal(micro.cast(t), column)).as_py()
        column = (column if finer else micro).cast(pa.string())
    elif pa.types.is_date(t):
        column = times(column, name).cast(pa.date32()).cast(pa.string())
    elif pa.types.is_floating(t):
        column = pc.add(column, pa.scalar(0.0, t)).cast(pa.string())
    elif is_text(t):
        column = column.cast(pa.binary_view()) if pa.types.is_string_view(t) else column
    else:
        try:
            column = column.cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            kind = clipped(str(t))
            raise BadInput(f"{part} column {name!r} holds {kind}: name a column of text, numbers or dates") from None
    return column.cast(pa.large_binary()).fill_null(b"\x00")
