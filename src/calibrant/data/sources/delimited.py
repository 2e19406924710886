"""Files of delimited text: CSV and its kin, scanned once for rows and types, then read in parts."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from calibrant.data.layouts import readings
from calibrant.data.sources.budget import Bytes, afford_columns
from calibrant.data.sources.encoded import as_utf8, checked, encoding_of, seekable
from calibrant.data.sources.inferred_types import (
    FALSE,
    NULLS,
    TEXT,
    TRUE,
    InferredType,
    Places,
    cast,
    dated,
    doubtful,
    inferred_type,
    new_kinds,
    proven,
)
from calibrant.data.sources.source import SAME_NAME, Form, Part, Source, parallel_map
from calibrant.errors import BadInput, first_line

if TYPE_CHECKING:
    from pyarrow.csv import InvalidRow

BLOCK = 1 << 24  # bytes that are scanned, and later read, at once, at most
LEAST_BLOCK = 1 << 21  # at least, where rows are short:
AT_ONCE = 1 << 16  # so many of them, about, are enough for what costs by batch and not by row
LONGEST = 1 << 28  # bytes of a row: a longer one is a quote left open
SAMPLE = 1 << 20  # bytes in which the header must end
LINES = 50  # that tell the delimiter
DELIMITERS = (",", ";", "\t", "|")
SEPARATOR = re.compile(r'\ufeff?"?sep=([ -~\t])"?', re.IGNORECASE)  # Excel's first line
NUMBER = re.compile(r"\s*[-+]?[0-9.,]*[0-9][0-9.,]*([eE][-+]?[0-9]+)?\s*")
SCANNERS = 8
MARK = "\ufeff".encode()
LINE_END = re.compile(rb"[\r\n]")
EVERY = "*"  # stands for every column
WAY = "fix that line, or save the file as Parquet"


# ---- the beginning of a file ----


@dataclass(frozen=True)
class Head:
    """How a file is written, detected from its beginning."""

    path: Path
    encoding: str
    delimiter: str
    columns: tuple[str, ...]
    begins: int  # bytes of its text before the first row
    lines: int  # lines before the first row
    sought: bool  # a place in the text is a place in the file
    row: int  # bytes of a line, about

    @property
    def block(self) -> int:
        """Bytes that are read at once."""
        return min(BLOCK, max(LEAST_BLOCK, AT_ONCE * self.row))


def head_of(path: Path, form: Form) -> Head:
    """Find out encoding, delimiter and header of a file."""
    # 1. its first lines
    encoding, mark = encoding_of(path, form.encoding)
    with as_utf8(path, encoding) as file:
        raw = file.read(SAMPLE)
    checked(raw[: raw.rfind(b"\n") + 1] if len(raw) == SAMPLE else raw, path.name, 0)
    if b"\0" in raw:
        raise BadInput(f"{path.name} holds zero bytes: if it is UTF-16, pass encoding='utf-16' (--encoding utf-16)")
    text = raw[mark:].decode("utf-8", "ignore")
    lines = io.StringIO(text, newline="").readlines()
    # 2. those that are no rows: empty ones, Excel's and comments
    skipped, delimiter = 0, form.delimiter
    while skipped < len(lines) and not lines[skipped].strip():
        skipped += 1
    if skipped < len(lines) and (inputs := SEPARATOR.fullmatch(lines[skipped].strip("\r\n"))):
        delimiter, skipped = delimiter or inputs[1], skipped + 1
    skipped += _comments(lines[skipped:])
    rest = lines[skipped:]
    if not any(line.strip() for line in rest):
        raise BadInput(f"{path.name} is empty: it holds no line of column names")
    # 3. the delimiter, and the header
    delimiter = delimiter or _delimiter(rest)
    rows = _rows(rest, delimiter)
    header, used = next(rows)
    body = next((row for row, _ in rows if row), None)
    if len(raw) == SAMPLE and skipped + used == len(lines):
        with as_utf8(path, encoding) as file:
            raise BadInput(_too_wide(path.name, _after(file, len(raw)), raw, delimiter.encode()))
    begins = mark + len("".join(lines[: skipped + used]).encode("utf-8"))
    columns = _columns(header, body, path.name)
    row = -(-len(raw) // len(lines))
    afford_columns(path, len(columns), path.stat().st_size // row, "columns")
    return Head(path, encoding, delimiter, columns, begins, skipped + used, seekable(path, encoding), row)


def _too_wide(name: str, file: Bytes, begin: bytes, delimiter: bytes) -> str:
    """Say how many columns a header names that ends beyond the sample which it begins."""
    columns, size = begin.count(delimiter) + 1, len(begin)
    while block := file.read(SAMPLE):
        rest = LINE_END.split(block, maxsplit=1)
        columns, size = columns + rest[0].count(delimiter), size + len(rest[0])
        if len(rest) > 1:
            break
    many = f"{columns:,} columns in {size:,} bytes"
    return f"{name} names {many}, and a line of column names may have {SAMPLE:,} bytes: write those that matter alone"


def _comments(lines: list[str]) -> int:
    """How many lines before the header are comments: they begin with #, and have not its delimiters."""
    n = 0
    while n < len(lines) and lines[n].startswith("#"):
        n += 1
    if 0 < n < len(lines):
        d = _delimiter(lines[n:])
        fields = len(next(_rows(lines[n:], d))[0])
        if fields > 1 and len(next(_rows(lines[n - 1 :], d))[0]) == fields:
            n -= 1  # the last is the header: "#id,y,p"
    return n if n < len(lines) else 0


def _rows(lines: list[str], delimiter: str) -> Iterator[tuple[list[str], int]]:
    """Yield rows and the lines read so far."""
    rows = csv.reader(iter(lines), delimiter=delimiter)
    while True:
        try:
            yield next(rows), rows.line_num
        except StopIteration:
            return
        except csv.Error:  # a field of more than 128 KiB
            yield [], rows.line_num


def _delimiter(lines: list[str]) -> str:
    """What cuts most of the first lines into as many fields as the header, and most of them."""

    def score(delimiter: str) -> tuple[float, int]:
        widths = [len(row) for row, _ in _rows(lines[:LINES], delimiter) if row]
        if not widths or widths[0] < 2:
            return 0.0, 0
        fitting = [w - widths[0] in (0, 1) for w in widths[1:]]
        return sum(fitting) / max(len(fitting), 1) if fitting else 1.0, widths[0]

    scores = {d: score(d) for d in DELIMITERS}
    best = max(scores.values())
    if best[0] > 0:
        return next(d for d in DELIMITERS if scores[d] == best)
    return max(DELIMITERS, key=lambda d: lines[0].count(d))


def _columns(header: list[str], body: list[str] | None, file: str) -> tuple[str, ...]:
    """The names of the columns, of which those without one are numbered."""
    if all(NUMBER.fullmatch(h) or not h.strip() for h in header):
        begin = ", ".join(header)[:60]
        raise BadInput(f"{file} has no line of column names, for it begins with {begin!r}: put one first")
    if body is not None and len(body) == len(header) + 1 and not body[-1]:
        header = [*header, ""]  # rows end in a delimiter
    names, taken = list[str](), set(header)
    for i, name in enumerate(header, 1):
        while not name.strip() or (not header[i - 1].strip() and name in taken):
            name = f"column {i}" if not name.strip() else f"{name}_"
        names.append(name)
    return tuple(names)


# ---- the scan: rows, and what the values of each column can be ----


@dataclass(frozen=True)
class Cut:
    """A run of whole rows: where it begins in the text, its bytes, the number of its first row, its rows."""

    begins: int
    size: int
    first_row: int
    rows: int
    line: int  # lines before it


@dataclass
class Scan:
    """What reading all of a file showed."""

    cuts: list[Cut] = field(default_factory=list)
    # What the values of the columns looked at can be, and where each was first.
    places: dict[int, Places] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows in all."""
        return self.cuts[-1].first_row + self.cuts[-1].rows if self.cuts else 0


def scanned(head: Head, wanted: Collection[int]) -> Scan:
    """Read a file through; refuse one whose rows are not all as wide as its header, or whose quotes stay open."""
    name, out = head.path.name, Scan(places={column: {} for column in wanted})
    begins, line, kept, final = head.begins, head.lines, b"", False
    with as_utf8(head.path, head.encoding) as file:
        _after(file, begins)
        while not final:
            size = max(head.block, len(kept))  # a long row is not scanned ever again
            more = file.read(size)
            final = len(more) < size
            kept += more
            if final and kept and not kept.endswith((b"\n", b"\r")):
                kept += b"\n"
            end = len(kept) if final else max(kept.rfind(b"\n"), kept.rfind(b"\r", 0, len(kept) - 1)) + 1
            block = _Block(kept[:end], head, line)
            if taken := len(block.text):
                block.look(out.places)
                out.cuts.append(Cut(begins, taken, out.rows, block.rows, line))
            block.refuse_quote(final)
            begins, line, kept = begins + taken, line + block.lines, kept[taken:]
            if len(kept) > LONGEST:
                long = f"the row of line {line + 1:,} has more than 256 MB: is a quote left open there?"
                raise BadInput(f"{name}: {long} {WAY}")
    return out


def _after(file: Bytes, begins: int) -> Bytes:
    file.read(begins)
    return file


class _Block:
    """Bytes that begin with a row, and end in a line end, though perhaps within quotes; those of whole rows, `text`."""

    def __init__(self, block: bytes, head: Head, line: int) -> None:
        if head.encoding == "utf-8":
            checked(block, head.path.name, line)
        self.head, self.line = head, line  # lines before it
        self.syntax, self.block = Syntax.of(head), block
        self.text = block if self.syntax.closed(block) else block[: self.syntax.whole(block)]
        self.lines, self.rows = _lines(self.text), 0

    def look(self, places: Mapping[int, Places]) -> None:
        """Count the rows, and note what columns can be that was not seen before."""
        # 1. the rows, of which all are to be as wide as the header
        blank = 0  # lines of spaces
        odd: list[InvalidRow] = []  # the first row that is too short or too long

        def skip(row: InvalidRow) -> str:
            nonlocal blank
            if not odd and row.actual_columns == 1 and not row.text.strip(" \t"):
                blank += 1
            elif not odd:
                odd.append(row)
            return "skip"

        wanted = [column for column, seen in places.items() if TEXT not in seen]
        table = _parsed(self.text, self.head, {str(column): pa.binary() for column in wanted or [0]}, skip)
        self.rows = table.num_rows
        if odd:
            self._refuse_row(odd[0], *self._lines_of([(odd[0].number - blank - 1, 0)]))
        # 2. what is in them
        columns = {column: table.column(str(column)).combine_chunks() for column in wanted}
        news = [*new_kinds(columns, {column: frozenset(places[column]) for column in wanted})]
        lines = self._lines_of([(row, column) for column, _, row in news])
        for (column, code, row), line in zip(news, lines, strict=True):
            value = columns[column][row].as_py()[:100].decode("utf-8", "ignore")
            places[column][code] = (self.head.path.name, line, value)

    def _lines_of(self, fields: Sequence[tuple[int, int]]) -> list[int]:
        """The lines in which fields begin, by their rows and columns."""
        if self.rows == self.lines:
            return [self.line + row + 1 for row, _ in fields]
        wanted = dict.fromkeys(sorted(fields), 0)
        last, rows = max(wanted, default=(-1, 0))[0], enumerate(self.syntax.rows(self.text))
        columns = {row: [c for _, c in some] for row, some in groupby(wanted, key=itemgetter(0))}
        for row, (line, at) in islice(rows, last + 1):
            before = 0
            for column in columns.get(row, ()):  # each field of the row is passed once
                to = self.syntax.skipped(self.text, at, column - before)
                line, at, before = line + _lines(self.text[at:to]), to, column
                wanted[row, column] = self.line + line + 1
        return [wanted[one] for one in fields]

    def _refuse_row(self, row: InvalidRow, line: int) -> None:
        fix = "comments may stand before the header only" if row.text.startswith("#") else WAY
        values = f"{row.actual_columns:,} value{'' if row.actual_columns == 1 else 's'}"
        many = f"{len(self.head.columns):,}"
        raise BadInput(f"{self.head.path.name}: line {line:,} has {values} and the header names {many}; {fix}")

    def refuse_quote(self, final: bool) -> None:
        """Refuse what follows the whole rows if no quote ends it, or not where its field does."""
        if len(self.text) == len(self.block):
            return
        at = self.syntax.skipped(self.block, len(self.text))
        where, name = f"line {self.line + _lines(self.block[:at]) + 1:,}", self.head.path.name
        if re.compile(QUOTED).match(self.block, at):
            fix = "write a quote within quotes twice"
            raise BadInput(f"{name}: the quoted value of {where} goes on after its closing quote; {fix}")
        if final:  # else the next block may close it
            raise BadInput(f"{name}: the quote in {where} is never closed, so rows would be lost; {WAY}")


def _lines(text: bytes) -> int:
    """How many lines end in a text."""
    return text.count(b"\n") + (text.count(b"\r") - text.count(b"\r\n") if b"\r" in text else 0)


# ---- how rows are written ----

QUOTED = rb'"[^"]*+(?:""[^"]*+)*+"'


@dataclass(frozen=True)
class Syntax:
    """How rows of a delimiter are written, as Arrow reads them.

    A field that begins with a quote ends at the next quote that is not doubled; delimiters and line ends within it are
    text. Elsewhere a quote is a character like any other. A line ends in LF, CR or both; empty ones are no rows.
    """

    columns: int
    delimiter: bytes
    field: re.Pattern[bytes]
    row: re.Pattern[bytes]
    run: re.Pattern[bytes]  # of rows
    quotes: re.Pattern[bytes]  # text up to a closing quote

    @staticmethod
    def of(head: Head) -> Syntax:
        """That of a file."""
        return _syntax(len(head.columns), head.delimiter.encode())

    def closed(self, text: bytes) -> bool:
        """Tell whether each quote opens or closes a field."""
        at = 0
        while (quote := text.find(b'"', at)) >= 0 and (result := self.quotes.match(text, at)):
            at = result.end()
        return quote < 0

    def whole(self, text: bytes) -> int:
        """The place where whole rows end."""
        at = 0
        while result := self.run.match(text, at):
            at = result.end()
        return at

    def rows(self, text: bytes) -> Iterator[tuple[int, int]]:
        """The lines of whole rows before each, and where it begins."""
        line = 0
        for result in self.row.finditer(text):
            row = result[0].rstrip(b"\r\n")
            if row if self.columns == 1 else row.strip(b" \t") or self.delimiter in row:
                yield line, result.start()
            line += _lines(result[0])

    def skipped(self, text: bytes, at: int, fields: float = math.inf) -> int:
        """The place behind so many fields of a row, or where something begins that is no field."""
        while fields > 0 and (result := self.field.match(text, at)):
            at, fields = result.end() + 1, fields - 1
        return at


@lru_cache(64)
def _syntax(columns: int, delimiter: bytes) -> Syntax:
    mark, blanks = re.escape(delimiter), b" \t".replace(delimiter, b"")
    quoted = rb"%b[%b]*+(?=[%b\r\n])" % (QUOTED, blanks, mark)
    # not possessive where a repeat can go back: up to Python 3.11.4 it then ends in the wrong place (gh-106052)
    one = rb'(?:%b|(?!")[^%b\r\n]*+)' % (quoted, mark)
    row = rb"%b(?:%b%b)*(?:\r\n?|\n)" % (one, mark, one)
    run = rb"(?:%b){1,999}" % row
    quotes = rb'(?:[^"]*+(?<![^%b\r\n])%b){1,999}' % (mark, quoted)
    return Syntax(columns, delimiter, *(re.compile(pattern, re.DOTALL) for pattern in (one, row, run, quotes)))


# ---- the files of one data set ----


class Texts:
    """Files of delimited text, scanned, with one type for each column in all of them.

    `names`: under which the rows of each are known. `wanted`: columns that will be read; all of them if empty. What
    others are is detected when they are read after all.
    """

    def __init__(self, paths: Sequence[Path], names: Sequence[str], form: Form, wanted: Collection[str] = ()) -> None:
        if form.decimal not in ("", ".", ","):
            raise BadInput(f"decimal {form.decimal!r} is neither '.' nor ','")
        if form.delimiter and (len(form.delimiter.encode()) != 1 or form.delimiter in '"\r\n'):
            raise BadInput(f"delimiter {form.delimiter!r} is not one plain character, such as ',' ';' '|' or tab")
        self.names, self.form, self.lock = names, form, Lock()
        self.heads = parallel_map(lambda p: head_of(p, form), paths, SCANNERS)
        self.scans = [Scan() for _ in paths]
        self.places: dict[str, Places] = {}
        self.dates: dict[str, InferredType] = {}  # of columns that may hold dates in another form than ISO's
        every = [c for head in self.heads for c in head.columns]
        self._scan(set(every) if not wanted or EVERY in wanted else set(wanted) & set(every))

    def _scan(self, columns: Collection[str]) -> None:
        """Look at columns, and at the rows if that was not done."""

        def one(head: Head) -> Scan:
            return scanned(head, [i for i, c in enumerate(head.columns) if c in columns])

        self.scans = parallel_map(one, self.heads, SCANNERS)
        for column in columns:
            self.places.setdefault(column, {})
        for head, scan in zip(self.heads, self.scans, strict=True):
            for i, places in scan.places.items():
                kept = self.places[head.columns[i]]
                kept |= {code: where for code, where in places.items() if code not in kept}

    def taken(self, columns: Collection[str]) -> dict[str, InferredType]:
        """What columns are interpreted as."""
        with self.lock:
            if missing := set(columns) - self.places.keys():
                self._scan(missing)
            commas = self.heads[0].delimiter != ","
            proof = commas and any(map(proven, self.places.values()))
            if commas and not (proof or self.form.decimal) and any(map(doubtful, self.places.values())):
                # what 1,234 and 1.234 are, any other column may prove: the same whichever are read
                self._scan({c for head in self.heads for c in head.columns} - self.places.keys())
                proof = any(map(proven, self.places.values()))
            decimal = self.form.decimal or ("" if commas else ".")
            kinds = {c: inferred_type(self.places[c], decimal, proof) for c in columns}
            for c in columns:
                if c not in self.dates and kinds[c].code == TEXT and readings(pa.array([kinds[c].value.strip()])):
                    self.dates[c] = dated(kinds[c], self._texts(c), self.form.dates)
            return kinds | {c: self.dates[c] for c in columns if c in self.dates}

    def _texts(self, column: str) -> Iterator[pa.Array]:
        """Yield a column as text."""
        for head, scan in zip(self.heads, self.scans, strict=True):
            at = [(p, c, InferredType("text"), pa.string()) for p, c in _places([column], head)]
            with _opened(head) as chunk:
                for cut in scan.cuts:
                    yield _batch(chunk(cut), cut, head, at).column(0)

    def sources(self, texts: Collection[str] = ()) -> list[Source]:
        """Each file as a source, in which `texts` are text whatever they hold."""
        return [self._source(i, frozenset(texts)) for i in range(len(self.heads))]

    def _source(self, i: int, texts: frozenset[str]) -> Source:
        head, scan, name = self.heads[i], self.scans[i], self.names[i]

        def types(columns: Sequence[str], real: Sequence[str]) -> dict[str, tuple[InferredType, pa.DataType]]:
            kinds = self.taken([c for c in columns if c not in texts]) | {
                c: InferredType("text") for c in columns if c in texts
            }
            for c in real:
                kinds[c].score(c)
            whole = pa.types.is_integer
            return {c: (k, pa.float64() if c in real and whole(k.type) else k.type) for c, k in kinds.items()}

        def read(cuts: Sequence[Cut], columns: Sequence[str], real: Sequence[str]) -> Iterator[pa.RecordBatch]:
            at, wanted = _places(columns, head), types(columns, real)
            with _opened(head) as chunk:
                for cut in cuts:
                    yield _batch(chunk(cut), cut, head, [(p, c, *wanted[c]) for p, c in at])

        runs = [[cut] for cut in scan.cuts] if head.sought else [scan.cuts]
        parts = tuple(Part(name, cuts[0].first_row, partial(read, cuts)) for cuts in runs if cuts)
        kinds = self.taken([c for c in head.columns if c in self.places]) | dict.fromkeys(texts, InferredType("text"))
        comma = any(k.comma for k in kinds.values())
        form = Form(head.encoding, head.delimiter, "," if comma else ".")
        twice = tuple((c, SAME_NAME) for c, n in Counter(head.columns).items() if n > 1)

        def place(_: str, row: int) -> str:
            return f"line {_line_of(head, scan, row):,} of {head.path.name}"

        return Source(name, head.columns, parts, scan.rows, kinds=kinds, form=form, unread=twice, place=place)


def _line_of(head: Head, scan: Scan, row: int) -> int:
    """The line of a file in which a row begins; an empty line is no row, and a value may have line ends."""
    runs = [cut for cut in scan.cuts if cut.first_row <= row]
    with _opened(head) as chunk:  # what is translated is read in order
        text = [chunk(cut) for cut in (runs[-1:] if head.sought else runs)][-1]
    cut = runs[-1]
    lines = Syntax.of(head).rows(text + b"\n")  # the last line of a file may not end
    return cut.line + next(islice(lines, row - cut.first_row, None))[0] + 1


def _places(columns: Sequence[str], head: Head) -> list[tuple[int, str]]:
    """Where columns stand; of two of one name, both must be asked for."""
    out, used = [], dict[str, int]()
    for c in columns:
        there = [i for i, name in enumerate(head.columns) if name == c]
        if len(there) > 1 and list(columns).count(c) != len(there):
            raise BadInput(f"{head.path.name} has {len(there):,} columns named {c!r}: rename all but one")
        out.append((there[used.setdefault(c, 0)], c))
        used[c] += 1
    return out


@contextmanager
def _opened(head: Head) -> Iterator[Callable[[Cut], bytes]]:
    """Open a file to read its runs of rows, in order."""
    if head.sought:
        with head.path.open("rb") as file:

            def sought(cut: Cut) -> bytes:
                file.seek(cut.begins)
                return file.read(cut.size)

            yield sought
    else:
        with as_utf8(head.path, head.encoding) as text:
            _after(text, head.begins)
            yield lambda cut: text.read(cut.size)


Wanted = tuple[int, str, InferredType, pa.DataType]  # where a column stands, its name, what it is taken for, its type


def _batch(chunk: bytes, cut: Cut, head: Head, columns: Sequence[Wanted]) -> pa.RecordBatch:
    """Whole rows as a record batch."""
    types = {
        str(p): pa.string() if k.comma or k.order is not None or pa.types.is_null(t) else t for p, _, k, t in columns
    }
    try:
        try:
            table = _parsed(chunk, head, types)
        except pa.ArrowInvalid:  # a spelling that only `cast` knows, such as "+5" or " NA "
            table = _parsed(chunk, head, dict.fromkeys(types, pa.string()))
    except pa.ArrowInvalid:
        table = None
    if table is None or table.num_rows != cut.rows:
        raise BadInput(f"{head.path.name} changed while it was read: run it again when it is complete")
    arrays = []
    for place, name, kind, type_ in columns:
        values = table.column(str(place)).combine_chunks()
        try:
            arrays.append(values if values.type == type_ else cast(values, kind, type_))
        except pa.ArrowInvalid as e:
            raise BadInput(f"{head.path.name}, column {name!r}: {first_line(e)}; {WAY}") from None
    return pa.RecordBatch.from_arrays(arrays, [c for _, c, _, _ in columns])


def _parsed(
    chunk: bytes,
    head: Head,
    types: Mapping[str, pa.DataType],
    skip: Callable[[InvalidRow], str] = lambda _: "skip",  # lines of spaces only: others were refused
) -> pa.Table:
    from pyarrow import csv as arrow_csv

    if chunk.startswith(MARK):  # within a file it is text, and Arrow drops it at the beginning
        chunk = b"\n" + chunk
    return arrow_csv.read_csv(
        pa.BufferReader(chunk),
        arrow_csv.ReadOptions(
            use_threads=False, block_size=len(chunk) + 1, column_names=[str(i) for i in range(len(head.columns))]
        ),
        arrow_csv.ParseOptions(
            delimiter=head.delimiter,
            newlines_in_values=True,
            invalid_row_handler=skip,
        ),
        arrow_csv.ConvertOptions(
            include_columns=list(types),
            column_types=types,
            check_utf8=False,  # it was checked
            null_values=NULLS,
            true_values=TRUE,
            false_values=FALSE,
        ),
    )
