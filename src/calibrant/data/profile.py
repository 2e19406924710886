"""One column: what it is interpreted as, and, of a group column, its values counted, which fixes its levels."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data.columns import (
    IDENTIFIER,
    LARGEST,
    LONGEST,
    WORDS,
    as_float,
    as_text,
    clipped,
    excess,
    finite_numbers,
    is_large,
    is_number,
    long_name,
    long_text,
    may_be_large,
    number_texts,
)
from calibrant.data.layouts import decoded, is_date, nothing, periods, plain, text_dates, times, unit_of
from calibrant.data.specs.column_names import names_code
from calibrant.data.specs.spec import Kind, Variable
from calibrant.errors import BadInput

FEW = 12  # a number with at most this many values is a category: months, grades, codes
BINS = 6  # about as many as a reader compares at a glance
TOP_LEVELS = 200  # levels kept of a category; the rest become "other"
FREQUENT = 20  # rows of one level that a column with more than 200 of them must have somewhere
MARKED = re.compile(r"[+-]?([0-9]{1,3}([.,' \u00a0\u202f][0-9]{3})+([.,][0-9]+)?|[0-9]*[.,][0-9]+)")  # a number's text
IDENTIFIERS = "it looks like an identifier; group by something coarser"
PLAINLY = "write numbers without marks between thousands, and all decimals one way"
COARSE = np.int64(-1) << np.int64(40)  # keeps 12 bits of a double's mantissa: whole numbers to 4096 stay exact


@dataclass
class LevelCounts:
    """Counts of one column's values; mergeable, and small whatever the number of rows."""

    name: str
    kind: Kind = "category"  # of the values as they are stored; dates are counted by month
    # Rows by value: texts, months, or numbers exactly as long as there are at most 200; of codes at most 100,000.
    texts: dict[str, int] = field(default_factory=dict)
    numbers: dict[float, int] = field(default_factory=dict)  # rows by number, to 12 bits
    large: dict[str, int] = field(default_factory=dict)  # rows by whole number that no double may be
    months: dict[str, int] = field(default_factory=dict)  # rows by month of texts that are dates
    many: bool = False  # there were more numbers, or dates, than `texts` keeps
    dated: bool = True  # texts were dates so far
    whole: bool = True  # numbers were whole so far
    seen: bool = False  # some part of the column was not empty

    @property
    def coded(self) -> bool:
        """Numbers are names so far: whole ones, none below 0, in a column that is called as a code or a cluster is."""
        named = self.kind == "number" and self.whole and names_code(self.name)
        return named and min(self.numbers, default=0.0) >= 0.0

    @property
    def _kept(self) -> int:
        """Numbers that are counted exactly, at most."""
        return IDENTIFIER if self.coded else TOP_LEVELS

    def update(self, column: pa.Array | pa.ChunkedArray) -> None:
        """Count a chunk of the column."""
        column, before = plain(column, self.name), self.kind
        t = column.type
        if pa.types.is_null(t):
            return
        if is_number(t):
            self.kind = "number"
            self._numbers(column)
        elif is_date(t):
            self.kind = "month"
            self._count(self.texts, periods(column, "month", self.name))
        elif pa.types.is_dictionary(t) or pa.types.is_string(t) or pa.types.is_boolean(t):
            self.kind = "category"
            self._texts(column)
        else:
            kind = clipped(str(t))
            raise BadInput(f"group column {self.name!r} holds {kind}: use text, numbers, dates or booleans")
        self._one_kind(before)
        self._guard()

    def _count(self, into: dict[str, int], texts: pa.Array) -> None:
        """Count texts that are there."""
        for item in pc.value_counts(texts):
            value = item["values"].as_py()
            if value is not None and value != "":
                text = str(value).lower() if isinstance(value, bool) else str(value)
                if len(text) > LONGEST:
                    raise BadInput(
                        f"group column {self.name!r} holds a text of {len(text):,} characters ({clipped(text)!r}): "
                        f"a group's name has at most {LONGEST:,}; leave the column out"
                    )
                into[text] = into.get(text, 0) + item["counts"].as_py()

    def _texts(self, column: pa.Array) -> None:
        if pa.types.is_boolean(column.type):
            self.dated = False
        if self.dated:
            text = decoded(column)
            result = text_dates(text)
            if result is not None:
                self._count(self.months, periods(result, "month", self.name))
            self.dated = result is not None or nothing(text)
        if len(pc.unique(column)) <= IDENTIFIER + 1:  # a missing value is none
            self._count(self.texts, column)
        elif self.dated:  # of dates the months are counted
            self.texts, self.many = {}, True
        else:
            self._refuse()

    def _numbers(self, column: pa.Array) -> None:
        numbers = as_float if may_be_large(column) else finite_numbers
        values = numbers(column, self.name, "group column")
        there = values[~np.isnan(values)] + 0.0  # minus zero is zero
        if self.whole:
            self.whole = bool((there == np.floor(there)).all())
        coarse = (there.view(np.int64) & COARSE).view(np.float64)
        counted = pc.value_counts(pa.array(coarse))
        for value, count in zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True):
            self.numbers[value] = self.numbers.get(value, 0) + count
        self._exactly(column.drop_null() if not pa.types.is_floating(column.type) else pa.array(there))

    def _exactly(self, there: pa.Array) -> None:
        """Count numbers as they are: whole ones that no double may be, and all others as long as there are few."""
        large = may_be_large(there)
        if self.many and not large:
            return
        counted = pc.value_counts(there)
        self.many |= not large and len(counted) > self._kept
        if large or not self.many:
            texts = number_texts(counted.field(0)).to_pylist()
            for text, count in zip(texts, counted.field(1).to_pylist(), strict=True):
                into = self.large if large and is_large(text) else self.texts
                into[text] = into.get(text, 0) + count
        self.many |= len(self.texts) > self._kept
        if self.many:
            self.texts = {}

    def _one_kind(self, before: Kind) -> None:
        if self.seen and before != self.kind:
            first, second = sorted((before, self.kind))
            raise BadInput(
                f"group column {self.name!r} holds {first} values in one place and {second} values in another: "
                "store it one way in every file"
            )
        self.seen = True

    def _guard(self) -> None:
        if self.kind == "category" and self.dated and len(self.texts) > IDENTIFIER:
            self.texts, self.many = {}, True
        undated = self.kind == "category" and self.many and not self.dated
        if undated or max(len(self.texts), len(self.numbers), len(self.large)) > IDENTIFIER:
            self._refuse()

    def _refuse(self) -> NoReturn:
        cut = "; if they are quantities, name edges by bins= (--bins)" if self.kind == "number" else ""
        raise BadInput(f"group column {self.name!r} has more than {IDENTIFIER:,} distinct values: {IDENTIFIERS}{cut}")

    def merge(self, other: LevelCounts) -> None:
        """Add the counts of another part of the column."""
        if not other.seen:
            return
        before, self.kind = self.kind, other.kind
        self._one_kind(before)
        for counts in ("texts", "numbers", "large", "months"):
            setattr(self, counts, dict(Counter(getattr(self, counts)) + Counter(getattr(other, counts))))
        self.whole &= other.whole
        self.dated &= other.dated
        self.many |= other.many
        if self.kind == "number" and (self.many or len(self.texts) > self._kept):
            self.many, self.texts = True, {}
        self._guard()

    def variable(self, edges: tuple[float, ...] | None = None) -> Variable:
        """Fix the levels: bins at `edges` if given; else values of text, codes and few numbers, or round bins."""
        if edges is not None:
            self._check_edges(edges)
        elif self.coded and self.many:
            self._refuse()
        elif self.kind != "number" or self.large or self.coded:
            return self._category()
        elif len(self.texts) <= FEW and not self.many:
            return Variable(name=self.name, kind="category", values=tuple(sorted(self.texts, key=float)))
        else:
            edges = round_edges(self.numbers)
        in_whole_numbers = self.whole and all(e == int(e) for e in edges)
        return Variable(name=self.name, kind="number", edges=edges, whole=in_whole_numbers)

    def _check_edges(self, edges: tuple[float, ...]) -> None:
        if self.kind != "number" and (marked := self._marked()):
            raise BadInput(f"bins for {self.name!r}: it is text, such as {marked!r}; {PLAINLY}, or leave its bins out")
        if self.kind != "number":
            raise BadInput(f"bins for {self.name!r}: it is not a number; leave its bins out")
        if not edges:
            raise BadInput(f"bins for {self.name!r} are empty: give the inner edges, or leave its bins out")
        if wrong := [e for e in edges if not abs(e) <= LARGEST]:
            raise BadInput(f"bins for {self.name!r} hold {wrong[0]:g}: give numbers within plus and minus {LARGEST:g}")
        if list(edges) != sorted(set(edges)):
            raise BadInput(f"bins for {self.name!r} must increase: {', '.join(f'{e:g}' for e in edges[:12])}")

    def _marked(self) -> str:
        """A text that is a number with a mark between thousands, or a decimal; empty where there is none."""
        return min((t for t in self.texts if MARKED.fullmatch(t)), default="") if self.kind == "category" else ""

    def _category(self) -> Variable:
        if self.kind == "month" or (self.kind == "category" and self.dated and self.months):
            unit, periods_present = unit_of(self.months or self.texts)
            return Variable(name=self.name, kind=unit, values=tuple(sorted(periods_present)))
        counts = self.texts | self.large
        crowded = len(counts) > TOP_LEVELS and max(counts.values()) < FREQUENT
        if crowded or (self.large and self.many):
            marked = self._marked()
            raise BadInput(
                f"group column {self.name!r} has {len(counts):,} distinct values and none on {FREQUENT} rows: "
                + (f"it is text, such as {marked!r}; {PLAINLY}" if marked else IDENTIFIERS)
            )
        kept = sorted(counts, key=lambda v: (-counts[v], v))[:TOP_LEVELS]
        values = tuple(sorted(kept, key=_natural))
        return Variable(name=self.name, kind="category", values=values, folded=len(counts) - len(kept))


def _natural(text: str) -> tuple[int, float, str]:
    """Sort numbers, and intervals such as ``"(5, 10]"``, by value before text by letter, so that 10 follows 9."""
    try:
        return (0, float(text.lstrip("([").partition(",")[0]), text)
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


Name = Literal["label", "id", "date", "code", "category", "number", "constant", "unusable"]

EXAMPLES = 5
CLIPPED = 40  # characters of a value that are shown
FEW_VALUES = 12  # so many distinct values say nothing about the rest
MOST_TEXTS = 4096  # distinct texts of a category, at most
MOSTLY, ALMOST = 0.5, 0.95  # share of distinct texts, of distinct whole numbers, from which on they are identifiers
EVEN = 0.1  # distance of the distribution from the uniform one; 20,000 of a normal law are .25 off, of a log-normal .8
NAMED = r"(?i)(^|[_\W])(id|ids|key|uuid|guid|mrn|nr|no|number|index|row\w*|unnamed\W.*)$"  # of identifiers
EXACT = 2**53  # whole numbers up to here are exact as doubles

UUID = r"^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$"
DIGITS = r"^[0-9]+$"


class ColumnProfile:
    """What one column holds, and what it is interpreted as: from all its values, or a sample of rows, never a label.

    Raises
    ------
    BadInput
        Its text is not UTF-8, its dates are out of range, or its dictionary is damaged.
    """

    def __init__(self, column: pa.ChunkedArray, name: str) -> None:
        self.name = name
        self.column = decoded(column, name)
        values = self._plain(self.column)
        self.missing, self.distinct = values.null_count, 0  # rows without a value; different values
        self.examples: tuple[str, ...] = ()  # a few values, the first ones that differ
        self.low = self.high = ""  # the ends of numbers, dates and texts; empty if there are none
        # A label may be one: its values are 0 and 1, true and false, yes and no. What is unusable is nested, or of a
        # type that is no covariate. `why` says it in a few words, such as "all values differ".
        self.kind: Name
        self.why: str
        if pa.types.is_null(values.type):
            self.kind, self.why = "constant", _one(0)
        elif not (is_date(values.type) or pa.types.is_string(values.type) or is_number(values.type)):
            self.kind, self.why = "unusable", f"it holds {str(values.type)[:CLIPPED]}"
        else:
            there = values.drop_null()
            different = there.unique()
            self.distinct, self.examples = len(different), _shown(different)
            self.kind, self.why = _kind_of(there, different, name)
            if len(there):
                reach = pc.min_max(there)
                self.low, self.high = _written(reach["min"].as_py()), _written(reach["max"].as_py())

    def _plain(self, values: pa.Array) -> pa.Array:
        """Values as dates, texts or numbers, null where nothing is; what is none of them as it is."""
        t = values.type
        if is_date(t):
            return times(values, self.name)
        if pa.types.is_boolean(t):
            return values.cast(pa.string())
        if pa.types.is_string(t):
            values = as_text(values)
            dates = text_dates(values)
            return values if dates is None else dates
        return pc.if_else(pc.is_nan(values), None, pc.add(values, 0.0)) if pa.types.is_floating(t) else values

    @property
    def unusable(self) -> str:
        """Why it is no covariate; empty if it is one."""
        if len(self.name) > LONGEST:
            return long_name(self.name)
        if self.kind in ("id", "unusable"):
            return f"it looks like an identifier: {self.why}" if self.kind == "id" else self.why
        if self.kind in ("category", "code") and (why := long_text(self.column)):
            return f"it {why}"
        if not is_number(self.column.type):
            return "it is empty" if self.kind == "constant" and not self.distinct else ""
        why = excess(as_float(self.column, self.name, "covariate"))
        return f"it {why}" if why else ""


def _kind_of(there: pa.Array, result: pa.Array, name: str) -> tuple[Name, str]:
    n, distinct = len(there), len(result)
    if distinct < 2:
        return "constant", _one(distinct)
    if is_date(there.type):
        days = pc.all(pc.equal(pc.floor_temporal(there, unit="day"), there)).as_py()
        return "date", f"its values are {'dates' if days else 'dates and times'}"
    if distinct == 2 and {str(v).lower().removesuffix(".0") for v in result.to_pylist()} in WORDS:
        return "label", f"its values are {_shown(result)[0]} and {_shown(result)[1]}"
    return _text_kind(result, n) if pa.types.is_string(there.type) else _number_kind(there, distinct, name)


def _one(distinct: int) -> str:
    return "it takes one value only" if distinct else "it is empty"


def _text_kind(result: pa.Array, n: int) -> tuple[Name, str]:
    distinct = len(result)
    if distinct > FEW_VALUES and pc.all(pc.match_substring_regex(result, UUID)).as_py():
        return "id", "its values are UUIDs"
    if distinct > MOST_TEXTS or (distinct > FEW_VALUES and distinct > MOSTLY * n):
        return "id", "most of its values occur once"
    if pc.all(pc.match_substring_regex(result, DIGITS)).as_py():
        zeros = pc.any(pc.match_substring_regex(result, "^0[0-9]")).as_py()
        return "code", "its values are digits with leading zeros" if zeros else "its values are digits stored as text"
    return "category", f"{distinct:,} texts"


def _number_kind(there: pa.Array, distinct: int, name: str) -> tuple[Name, str]:
    values = there.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    whole, low, high = bool((values == np.floor(values)).all()), float(values.min()), float(values.max())
    large = whole and max(-low, high) > EXACT and not pa.types.is_floating(there.type)
    if whole and np.isfinite([low, high]).all() and distinct > FEW_VALUES and distinct >= ALMOST * len(values):
        if high - low < 2 * len(values) and (np.diff(values) > 0).all():
            return "id", "it counts the rows"
        if large or (low >= 0 and (re.search(NAMED, name) or _evenly_spread(values))):
            return "id", "its values are whole numbers that almost all differ"
    if large:
        return "code", "its values are whole numbers of more than 15 digits"
    if whole and low >= 0 and names_code(name):
        return "code", "its name says so"
    return "number", "its values are whole numbers" if whole else "its values are numbers"


def _evenly_spread(values: NDArray[np.float64]) -> bool:
    """Whether values lie evenly between their ends, as assigned numbers do; amounts and sizes do not."""
    ranked = np.sort(values)
    share = (ranked - ranked[0]) / (ranked[-1] - ranked[0])
    return bool(np.abs(share - (np.arange(len(ranked)) + 0.5) / len(ranked)).max() <= EVEN + 1.0 / np.sqrt(len(ranked)))


def _shown(values: pa.Array) -> tuple[str, ...]:
    return tuple(_written(v) for v in values[:EXAMPLES].to_pylist())


def _written(value: object) -> str:
    text = f"{value:.15g}" if isinstance(value, float) else str(value)
    text = text.removesuffix(" 00:00:00")
    return text if len(text) <= CLIPPED else f"{text[: CLIPPED - 1]}…"
