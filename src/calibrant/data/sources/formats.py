"""Files read whole, JSON, Excel and NumPy; their values, each of a type of its own, as columns, nothing altered.

A column is a number, a date or true and false only if all values that are there are. Every other is text: text stays
as it is, codes among it, and what is not text is written out.
"""

from __future__ import annotations

import codecs
import datetime
import json
import math
import operator
import re
import shlex
import tokenize
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeGuard, cast
from xml.etree import ElementTree

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.arrays import SPARSE, with_dense
from calibrant.data.columns import ABSENT, EXACT, number_text
from calibrant.data.sources.budget import (
    AS_TABLE,
    CELL,
    FREE,
    SHEET,
    afford,
    afford_columns,
    afford_json,
    afford_name,
    read_whole,
    streamed_size,
)
from calibrant.data.sources.encoded import as_utf8, checked, encoding_of
from calibrant.data.sources.frames import as_rows, table_source
from calibrant.data.sources.source import Form, Part, Source
from calibrant.errors import BadInput, first_line
from calibrant.kernels.runtime import columns_of
from calibrant.sanitize import has_half_characters

TRUTH, WHOLE, BIG, LARGE, REAL, DATE, TIME, TEXT, NONE = (1 << i for i in range(9))  # NONE: text such as "NA"
SIMPLE: dict[type, int] = {bool: TRUTH, float: REAL, datetime.datetime: TIME, datetime.date: DATE}
LAST = 2**63  # whole numbers from here on, and below its negative, fit no column of numbers


def seen_in(values: Sequence[object]) -> int:
    """What the values of a column can be, as bits; missing ones are nothing."""
    result = 0
    for t in set(map(type, values)) - {type(None)}:
        result |= SIMPLE.get(t) or _of_type(t, values)
    return result


def _of_type(t: type, values: Sequence[object]) -> int:
    """What values of one type can be."""
    own = [v for v in values if type(v) is t]
    if t is int:
        low, high = min(own), max(own)  # type: ignore[type-var]
        return WHOLE if -EXACT <= low <= high <= EXACT else BIG if -LAST <= low <= high < LAST else LARGE  # type: ignore[operator]
    if t is str:
        return TEXT if any(v not in ABSENT for v in own) else NONE if any(own) else 0
    return TEXT


def type_of(result: int) -> pa.DataType:
    """The type of a column whose values can be these."""
    kinds = result & ~NONE
    if kinds == 0:
        return pa.string() if result else pa.null()
    if kinds == TRUTH:
        return pa.bool_()
    if not kinds & ~(WHOLE | BIG):
        return pa.int64()
    if not kinds & ~(WHOLE | REAL):
        return pa.float64()
    if not kinds & ~(DATE | TIME):
        return pa.date32() if kinds == DATE else pa.timestamp("us")
    return pa.string()


def column(values: Sequence[object], t: pa.DataType | None = None) -> pa.Array:
    """Values as a column of the type that `type_of` gave; by default of the one that they can all have."""
    t = type_of(seen_in(values)) if t is None else t
    kinds = set(map(type, values)) - {type(None)}
    if pa.types.is_string(t):
        return pa.array(values if kinds <= {str} else [_written(v) for v in values], t)
    plain = [None if isinstance(v, str) else v for v in values] if str in kinds else values  # empty, or such as "NA"
    if pa.types.is_timestamp(t):
        plain = [datetime.datetime(v.year, v.month, v.day) if type(v) is datetime.date else v for v in plain]
    return pa.array(plain, t, from_pandas=True)


def _written(value: object) -> str | None:
    """A value as text, as its file has it as nearly as can be."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def whole(table: pa.Table, name: str, unread: dict[str, str] | None = None) -> Source:
    """A file that was read whole as a source; `unread` are columns that it lacks, and why."""
    source = table_source(table, unread)
    return replace(source, name=name, parts=tuple(replace(part, name=name) for part in source.parts))


# ---- JSON: one object a line, read in batches, or one array of objects, read whole ----


BLOCK = 1 << 23  # bytes read at once
LONGEST = 1 << 28  # bytes of one line
DEEPEST = 8  # objects within objects whose fields are columns

Row = dict[str, object]
LINES: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def json_rows(path: Path, name: str, form: Form) -> Source:
    """Objects as rows, their fields as columns; the field ``b`` of an object ``a`` is the column ``a.b``.

    Columns and their types are found on all rows first. A list is text, as JSON writes it.
    """
    encoding, _ = encoding_of(path, form.encoding)
    with as_utf8(path, encoding) as file:
        if _marked(file.read(BLOCK)).lstrip().startswith(b"["):
            return _array(path, name, encoding)
    kinds: dict[str, int] = {}
    count = 0
    try:
        for rows in _rows(path, encoding):
            count += len(rows)
            values = defaultdict[str, list[object]](list)
            for row in rows:
                for field, value in row.items():
                    values[field].append(value)
            for field, there in values.items():
                kinds[field] = kinds.get(field, 0) | seen_in(there)
            afford_columns(path, len(kinds), count, "fields")
    except BadInput:
        _refuse_one_object(path, encoding)
        raise
    if count == 1:
        _refuse_one_object(path, encoding)
    types = {field: type_of(result) for field, result in kinds.items()}

    def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for rows in _rows(path, encoding):
            arrays = [column([row.get(c) for row in rows], types[c]) for c in columns]
            yield pa.RecordBatch.from_arrays(arrays, list(columns))

    return Source(name, tuple(types), (Part(name, 0, read),), count)


def _refuse_one_object(path: Path, encoding: str) -> None:
    """Refuse a file that is one object, where that holds the rows in a field, or the columns."""
    text = json_text(path, encoding)
    try:
        value = _decoded(text, path.name)
    except BadInput:
        return  # many lines, one of which is no JSON
    if not isinstance(value, dict):
        return
    rows = [(field, len(inner)) for field, inner in value.items() if _are_rows(inner)]
    deeper = ((a, b, v) for a, inner in value.items() if isinstance(inner, dict) for b, v in inner.items())
    rows += [(afford_name(f"{a}.{b}", path.name), len(v)) for a, b, v in deeper if _are_rows(v)]
    if rows:
        listed = " and ".join(f"{at!r} ({n:,})" for at, n in rows[:3])
        stand = f"whose rows stand in field {listed}" if len(rows) == 1 else f"whose fields {listed} hold rows"
        path_in = "".join(f'["{part}"]' for part in rows[0][0].split("."))
        fix = shlex.quote(f".{path_in}[]")
        raise BadInput(
            f"{path.name} is one object, {stand}: write those rows one object a line, "
            f"jq -c {fix} {shlex.quote(path.name)} > rows.jsonl"
        )
    sizes = {len(v) for v in value.values() if isinstance(v, (list, dict))}
    if len(sizes) == 1 < max(sizes) and all(isinstance(v, (list, dict)) for v in value.values()):
        raise BadInput(
            f"{path.name} is one object whose fields are columns ({', '.join(map(repr, [*value][:3]))}): "
            "write one object a row (pandas: to_json(orient='records', lines=True))"
        )


def _are_rows(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list) and bool(value) and all(isinstance(x, dict) for x in value)


def json_text(path: Path, encoding: str = "") -> bytes:
    """A whole file of JSON in UTF-8, unpacked and without a mark, if what it unpacks to can be read at once."""
    with as_utf8(path, encoding_of(path, encoding)[0]) as file:
        text = _marked(read_whole(file, path, BLOCK))
    afford_json(path, text)
    return text


def _array(path: Path, name: str, encoding: str) -> Source:
    """The objects of one array."""
    text = json_text(path, encoding)
    result = _decoded(text, path.name)
    if not isinstance(result, list):
        raise BadInput(f"{path.name} holds no array of objects: write one object a line")
    rows = [_row(value, f"{path.name}: element {i:,} of the array") for i, value in enumerate(result, 1)]
    fields = list(dict.fromkeys(f for row in rows for f in row))
    afford_columns(path, len(fields), len(rows), "fields")
    values = {f: [row.get(f) for row in rows] for f in fields}
    return whole(pa.table({f: column(v) for f, v in values.items()}), name)


# ---- lines, and what is in them ----


def _rows(path: Path, encoding: str) -> Iterator[list[Row]]:
    """Yield the objects of a file, many at once."""
    with as_utf8(path, encoding) as file:
        kept, number, first, size = b"", 1, True, 0
        while block := file.read(BLOCK):
            kept, first = kept + (_marked(block) if first else block), False
            size += streamed_size(block)
            afford(path, size, "unpacks to values without end")
            end = kept.rfind(b"\n") + 1
            if end and (rows := _objects(kept[:end], number, path)):
                yield rows
            number, kept = number + kept.count(b"\n", 0, end), kept[end:]
            if len(kept) > LONGEST:
                raise BadInput(f"{path.name}: line {number:,} has more than 256 MB: write one object a line")
        if rows := _objects(kept, number, path):
            yield rows


def _marked(first: bytes) -> bytes:
    """The first bytes without the mark of UTF-8."""
    return first.removeprefix(codecs.BOM_UTF8)


def _objects(block: bytes, number: int, path: Path) -> list[Row]:
    """The objects of whole lines, of which the first has this number; empty lines are none."""
    afford_json(path, block)
    try:
        values = LINES.decode_lines(block)
        if all(type(v) is dict and not any(type(x) is dict for x in v.values()) for v in values):
            return cast(list[Row], values)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # said below, with its line
    lines = ((f"{path.name}: line {n:,}", line) for n, line in enumerate(block.split(b"\n"), number) if line.strip())
    return [_row(_decoded(line, where), where) for where, line in lines]


def _decoded(raw: bytes, where: str) -> Any:
    """JSON as a value; NaN, which JSON has not and Python writes, as such."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        try:
            result = json.loads(raw)
            halves = has_half_characters(result)
        except (ValueError, RecursionError):
            checked(raw, where, 0)
            raise BadInput(f"{where} is not JSON ({first_line(e, 100)}): write one object a line") from None
        if halves:
            raise BadInput(f"{where} holds half of a character, such as \\ud800, which is no text: mend it") from None
        return result


def _row(value: object, where: str) -> Row:
    if not isinstance(value, dict):
        raise BadInput(f'{where} is no object such as {{"y": 1, "p": 0.2}}: write one object a row')
    row: Row = {}
    _flatten(value, "", row, where)
    return row


def _flatten(value: Mapping[str, object], prefix: str, row: Row, where: str) -> None:
    """Add the fields of an object, those of objects in it under dotted names."""
    for key, inner in value.items():
        name = afford_name(prefix + key, where) if prefix else key
        if isinstance(inner, dict) and inner and prefix.count(".") < DEEPEST:
            _flatten(inner, f"{name}.", row, where)
        elif name in row:
            raise BadInput(f"{where} has two fields {name!r}, one of them within another: rename one")
        else:
            row[name] = inner


# ---- workbooks of Excel: one sheet, whose first row names the columns ----


if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

# What is in a sheet, each sought in time that grows as its text does: no part of a pattern is tried twice.
TAG = rb"<(?:[\w.-]{1,40}+:)?+"  # with a prefix or none
CELLS = re.compile(TAG + rb"c(\s[^<>]*+|)>")  # the attributes of a cell
PLACE = re.compile(rb'\sr="([A-Z]{1,3})([0-9]{1,7})"')
ROWS = re.compile(TAG + rb'row\b(?:\s++r="([0-9]{1,7})")?')
SHARED = re.compile(rb'\st="s"[^<>]*+>\s*+<v>([0-9]{1,9})<')  # a cell whose text stands in the list of texts
STRINGS = "xl/sharedstrings.xml"
TEXTS = re.compile(TAG + rb"si\b")
UNCOMPUTED = re.compile(  # a formula whose value was never stored
    rb"<c(\s[^<>]*+)>\s*+<f\b[^<>]*+>(?:[^<]*+</f>)?+\s*+(?:<v\s*+/>|<v>\s*+</v>)?+\s*+</c>"
)
IS_TEXT = b' t="str"'  # of a formula that gives empty text
RELATED = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
BROKEN = (OSError, zipfile.BadZipFile, zlib.error, ElementTree.ParseError, LookupError, ValueError, RuntimeError)
WAY = "or save the sheet as CSV"


def excel(path: Path, name: str, form: Form) -> Source:
    """The rows of a sheet that are not empty, whole numbers as such, dates as dates, text as it is."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise BadInput(f"{path.name} is an Excel file: pip install 'calibrant[excel]', {WAY}") from None
    try:
        _bounded(path, form.sheet)
        with CalamineWorkbook.from_path(str(path)) as book:
            sheet = _sheet(book, path, form.sheet)
            rows = [_plain(row) for row in sheet.to_python(skip_empty_area=False)]
            merged = sheet.merged_cell_ranges or []
        missing = _uncomputed(path, sheet.name)
    except BadInput:  # which is a ValueError: it says what to do, and saving again is not that
        raise
    except (CalamineError, *BROKEN) as e:
        raise BadInput(f"{path.name} cannot be read as Excel ({first_line(e, 120)}): save it again") from None
    except BaseException as e:
        if type(e).__name__ != "PanicException":  # how the reader, which is not Python, fails
            raise
        raise BadInput(f"{path.name} is damaged: save it again in Excel, {WAY}") from None
    return _source(path.name, name, rows, merged, missing, sheet)


def _source(
    file: str,
    name: str,
    rows: list[list[object]],
    merged: Sequence[tuple[tuple[int, int], tuple[int, int]]],
    missing: dict[int, str],
    sheet: CalamineSheet,
) -> Source:
    """The rows below the first that is not empty as a source."""
    head = next((i for i, row in enumerate(rows) if any(map(_there, row))), None)
    if head is None:
        raise BadInput(f"{file}: sheet {sheet.name!r} is empty: pass sheet= (--sheet) to name another")
    header, body = rows[head], [row for row in rows[head + 1 :] if any(map(_there, row))]
    used = [j for j in range(len(header)) if _there(header[j]) or any(_there(row[j]) for row in body)]
    if len(used) > 1 and sum(_there(header[j]) for j in used) == 1:
        title = next(str(v) for v in header if _there(v))
        raise BadInput(
            f"{file}: row {head + 1} holds {title[:40]!r} alone, a title it seems: delete what stands above the names"
        )
    for (top, left), (bottom, right) in merged:
        if top <= head <= bottom and right > left:
            raise BadInput(
                f"{file}: cells {_letters(left)}{head + 1} to {_letters(right)}{head + 1} of the names of columns are "
                "merged: give each column a name of its own"
            )
    columns: dict[str, pa.Array] = {}
    unread: dict[str, str] = {}
    for j in used:
        label = str(header[j]) if _there(header[j]) else f"column {j + 1}"
        if label in columns or label in unread:
            raise BadInput(f"{file} has two columns named {label!r}: rename one")
        values = [row[j] for row in body]
        if j in missing:
            unread[label] = f"cell {missing[j]} has a formula without a value: open and save the file in Excel"
        elif any(isinstance(v, datetime.time | datetime.timedelta) for v in values):
            unread[label] = "it holds times of day or durations"
        else:
            columns[label] = column(values)
    return whole(pa.table(columns), name, unread)


def _there(value: object) -> bool:
    return value is not None


def _plain(row: Sequence[object]) -> list[object]:
    """Cells, None where empty, whole numbers as such: Excel stores all as real ones, and 15 digits of them."""
    whole_ones = (int(v) if isinstance(v, float) and v.is_integer() and abs(v) <= EXACT else v for v in row)
    return [None if v == "" else v for v in whole_ones]


def _sheet(book: CalamineWorkbook, path: Path, requested: str) -> CalamineSheet:
    """The sheet that was asked for, or the only one that is visible."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    file = path.name
    tables = [s for s in book.sheets_metadata if s.typ == SheetTypeEnum.WorkSheet]
    listed = ", ".join(repr(s.name) for s in tables)
    if requested:
        if requested not in [s.name for s in tables]:
            raise BadInput(f"{file} has no sheet {requested!r}: pass one of {listed}")
        return book.get_sheet_by_name(requested)
    shown = [s.name for s in tables if s.visible == SheetVisibleEnum.Visible]
    kept = [sheet for sheet in map(book.get_sheet_by_name, shown) if sheet.height]
    if len(kept) > 1:
        there = ", ".join(repr(sheet.name) for sheet in kept)
        raise BadInput(f"{file} has {len(kept)} sheets, {there}: name one with sheet= (--sheet NAME)")
    if not kept:
        raise BadInput(f"{file} has no sheet with anything in it: put the table on a sheet that is shown")
    return kept[0]


def _letters(place: int) -> str:
    """The name of a column: A for 0, AA for 26."""
    out = ""
    while place >= 0:
        out, place = chr(65 + place % 26) + out, place // 26 - 1
    return out


# ---- what the reader does not tell: how much it would unpack, and formulas that were never computed ----


def _bounded(path: Path, requested: str) -> None:
    """Refuse a workbook that would take too much: the reader makes every cell from A1 to the last one."""
    with zipfile.ZipFile(path) as archive:
        size = sum(one.file_size for one in archive.infolist())
        afford(path, 2 * size, f"would unpack to {size:,} bytes", AS_TABLE)
        there = {name.lower(): name for name in archive.namelist()}
        texts = TEXTS.split(archive.read(there[STRINGS])) if STRINGS in there else []
        sheets = _sheets(archive)
        unpacked = sum(archive.getinfo(there[t.lower()]).file_size for t in sheets.values() if t.lower() in there)
        what = f"has {len(sheets):,} sheets that unpack to {unpacked:,} bytes"
        afford(path, SHEET * len(sheets) + 2 * unpacked, what, "keep the sheet of the table alone, or save it as CSV")
        for sheet, inside in sheets.items():
            if inside.lower() in there and requested in ("", sheet):
                _bounded_sheet(path, sheet, archive.read(there[inside.lower()]), [len(text) for text in texts[1:]])


def _bounded_sheet(path: Path, sheet: str, raw: bytes, texts: Sequence[int]) -> None:
    rows = ROWS.findall(raw)
    width, height, unnamed = 0, len(rows), False
    for attributes in map(operator.itemgetter(1), CELLS.finditer(raw)):
        if attributes.endswith(b"/"):  # with a format and nothing in it
            continue
        if place := PLACE.search(attributes):
            width, height = max(width, _place(place[1]) + 1), max(height, int(place[2]))
        else:
            unnamed = True
    if unnamed:  # cells that stand behind the one before them
        width += max(len(CELLS.findall(row)) for row in ROWS.split(raw)[2::2] or [raw])
        height += max((int(row) for row in rows if row), default=0)
    last = f"{_letters(width - 1)}{height}"
    fix = "delete what stands far from the table, with its rows and columns, or save the table as CSV"
    afford(path, CELL * width * height, f"has cells as far as {last} in sheet {sheet!r}", fix)
    if len(texts) and raw.count(b' t="s"') * max(texts) > FREE:
        named = np.array([int(i) for i in SHARED.findall(raw)], dtype=np.int64)
        size = int(np.array(texts)[named[named < len(texts)]].sum())
        afford(path, 2 * size, f"repeats texts of {size:,} bytes in sheet {sheet!r}", AS_TABLE)


def _sheets(archive: zipfile.ZipFile) -> dict[str, str]:
    """Where the sheets of a workbook stand in its archive, by name."""
    book = ElementTree.fromstring(archive.read("xl/workbook.xml"))  # noqa: S314 - expat bounds entities
    links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))  # noqa: S314
    targets = {link.get("Id"): link.get("Target", "") for link in links}
    named = {str(s.get("name")): targets.get(s.get(RELATED), "") for s in book.iter() if s.tag.endswith("}sheet")}
    return {name: t.lstrip("/") if t.startswith("/") else f"xl/{t}" for name, t in named.items()}


def _place(letters: bytes) -> int:
    """The place of a column: 0 for A, 26 for AA."""
    place = 0
    for letter in letters:
        place = 26 * place + letter - 64
    return place - 1


def _uncomputed(path: Path, sheet: str) -> dict[int, str]:
    """The first cell of each column that holds a formula and no value: such a cell would be read as empty."""
    with zipfile.ZipFile(path) as archive:
        raw = archive.read(_sheets(archive)[sheet])
    out: dict[int, str] = {}
    for attributes in UNCOMPUTED.findall(raw):
        if IS_TEXT not in attributes and (place := PLACE.search(attributes)):
            out.setdefault(_place(place[1]), (place[1] + place[2]).decode())
    return out


# ---- arrays of NumPy on disk, never pickled objects ----


Arrays = dict[str, NDArray[Any]]
BEGINS = b"\x93NUMPY"
ENDING = ".npy"
ARRAY = 3  # times its bytes, about, that an array takes until it is a column
AS_ARRAYS = "save named columns of one length: np.savez('log.npz', y=y, p=p)"


def numpy_arrays(path: Path, name: str, _: Form) -> Source:
    """The arrays of an `.npz` as columns, or the fields of a structured `.npy`."""
    try:
        with path.open("rb") as file:
            if file.read(len(BEGINS)) == BEGINS:
                file.seek(0)
                arrays = _fields(_read_array(file, path.stat().st_size, path), path.name)
            else:
                arrays = _archive(path)
    except BadInput:
        raise
    except (ValueError, EOFError, OSError, MemoryError, zipfile.BadZipFile, zlib.error, NotImplementedError) as e:
        raise BadInput(f"{path.name} cannot be read as NumPy's: {first_line(e, 120)}") from None
    if not arrays:
        raise BadInput(f"{path.name} holds no arrays: {AS_ARRAYS}")
    kept = as_rows(_columns(arrays, path), "column", AS_ARRAYS)
    return whole(kept.table, name, {name: f"it {why}" for name, why in kept.unread.items()})


def _archive(path: Path) -> Arrays:
    with zipfile.ZipFile(path) as archive:
        size = sum(one.file_size for one in archive.infolist())
        afford(path, ARRAY * size, f"unpacks to arrays of {size:,} bytes")
        out: Arrays = {}
        for one in archive.infolist():
            if not one.filename.endswith(ENDING):
                raise BadInput(f"{path.name} is a zip file with {one.filename[:60]!r} in it, not arrays: {AS_ARRAYS}")
            with archive.open(one) as file:
                result = _read_array(file, one.file_size, path)
            column = one.filename.removesuffix(ENDING)
            out |= {column: result} if result.dtype.names is None else _fields(result, path.name)
        if out.keys() >= SPARSE:
            afford(path, ARRAY * 8 * math.prod(out["shape"].tolist()), "holds a sparse matrix")
            out = with_dense(out, path.name)
        return out


def _read_array(file: IO[bytes], size: int, path: Path) -> NDArray[Any]:
    """An array whose header claims no more than there is."""
    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, _, dtype = header(file)
    except (SyntaxError, RecursionError, TypeError, tokenize.TokenError) as e:  # it should be a literal of Python
        raise BadInput(f"{path.name} is damaged: its header is none ({str(e)[:80]}); write it again") from None
    if dtype.hasobject:
        raise BadInput(
            f"{path.name} holds Python objects, which run code when they are read: save text as a text array"
        )
    if not dtype.itemsize:
        raise BadInput(f"{path.name} holds values of type {str(dtype)[:40]!r}, which have no size: {AS_ARRAYS}")
    if dtype.itemsize * math.prod(shape) > size or min(shape, default=0) < 0:
        raise BadInput(f"{path.name} is truncated: its header says {shape}, and there is not so much")
    file.seek(0)
    result: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return result


def _fields(array: NDArray[Any], name: str) -> Arrays:
    if array.dtype.names is None:
        shape = " x ".join(f"{n:,}" for n in array.shape)
        if array.ndim == 2 and array.shape[1] > 1:
            read = f"np.savez('log.npz', labels=labels, probs=np.load({name!r}))"
            read += f" and pass --label labels --score {'probs_*' if array.shape[1] > 2 else 'probs_1'!r}"
            stated = f"{name} holds a matrix of {shape} numbers and no labels"
            raise BadInput(f"{stated}: of class probabilities save {read}; else {AS_ARRAYS}")
        raise BadInput(f"{name} holds one array of {shape} values and no names: {AS_ARRAYS}")
    return {field: np.asarray(array[field]) for field in array.dtype.names}


def _columns(arrays: Mapping[str, NDArray[Any]], path: Path) -> Arrays:
    """Arrays of one dimension and one length; the columns of a matrix ``x`` are ``x_0``, ``x_1``."""
    out: Arrays = {}
    width = sum(array.shape[1] if array.ndim == 2 else 1 for array in arrays.values())
    afford_columns(path, width, max((len(a) for a in arrays.values() if a.ndim), default=0), "columns")
    for column, array in arrays.items():
        if array.ndim == 2 and array.shape[1] == 1:
            out[column] = array[:, 0]
        elif array.ndim == 2:
            out |= {f"{column}_{i}": values for i, values in enumerate(columns_of(array))}
        elif array.ndim == 1:
            out[column] = array
        else:
            raise BadInput(f"{path.name}: array {column!r} has {array.ndim} dimensions: {AS_ARRAYS}")
    lengths = {column: len(array) for column, array in out.items()}
    if len(set(lengths.values())) > 1:
        short, long = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
        raise BadInput(
            f"{path.name}: array {short!r} has {lengths[short]:,} rows and {long!r} {lengths[long]:,}: "
            "give one value a row"
        )
    return out
