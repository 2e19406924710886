"""Files of delimited text: CSV and its kin, scanned once for rows and types, then read in parts."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa

from calibrant.data.layouts import readings
from calibrant.data.sources.budget import Bytes, afford_columns
from calibrant.data.sources.encoded import as_utf8, checked, encoding_of, seekable
from calibrant.data.sources.inferred_types import (
    ABSENT,
    FALSE,
    TRUE,
    InferredType,
    cast,
    dated,
    doubtful,
    inferred_type,
    proven,
)
from calibrant.data.sources.source import SAME_NAME, Form, Part, Source, parallel_map
from calibrant.errors import BadInput, first_line
from calibrant.kernels import field_patterns as fields
from calibrant.kernels.fields import scan as scan_fields

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
    multiline: bool = False  # some values have line ends
    # What the values of the columns looked at can be, and where each was first.
    places: dict[int, dict[int, tuple[str, int, str]]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows in all."""
        return self.cuts[-1].first_row + self.cuts[-1].rows if self.cuts else 0


def scanned(head: Head, wanted: Collection[int]) -> Scan:
    """Read a file through; refuse one whose rows are not all as wide as its header, or whose quotes stay open."""
    width, name, out = len(head.columns), head.path.name, Scan()
    seen = np.full(width, fields.DONE, dtype=np.uint32)
    seen[list(wanted)] = 0
    out.places = {column: {} for column in wanted}
    tally = np.zeros(fields.TALLIES, dtype=np.int64)
    tally[fields.LINE] = head.lines
    at = head.begins
    with as_utf8(head.path, head.encoding) as file:
        for block, final in _blocks(_after(file, head.begins), head, tally):
            if head.encoding == "utf-8":
                checked(block, name, int(tally[fields.LINE]))
            first, rows = np.zeros((width, fields.CODES, 3), dtype=np.int64), int(tally[fields.ROWS])
            line_before = int(tally[fields.LINE])
            tally[fields.TAKEN] = 0
            scan_fields(np.frombuffer(block, np.uint8), final, ord(head.delimiter), seen, first, tally)
            _refuse(tally, head, block)
            for column, code in np.argwhere(first[:, :, 0] > 0).tolist():
                line, begin, end = first[column, code].tolist()
                value = block[begin : min(end, begin + 100)].decode("utf-8", "ignore")
                out.places[column][code] = (name, line, value)
            if size := int(tally[fields.TAKEN]):
                out.cuts.append(Cut(at, size, rows, int(tally[fields.ROWS]) - rows, line_before))
                at += size
    out.multiline = bool(tally[fields.MULTILINE])
    return out


def _after(file: Bytes, begins: int) -> Bytes:
    file.read(begins)
    return file


def _blocks(file: Bytes, head: Head, tally: np.ndarray) -> Iterator[tuple[bytes, bool]]:
    """Yield bytes that end in a line end, each beginning where the whole rows of the one before it end."""
    kept, final, size = b"", False, head.block
    while not final:
        more = file.read(size)
        final = len(more) < size
        kept += more
        end = len(kept) if final else max(kept.rfind(b"\n"), kept.rfind(b"\r", 0, len(kept) - 1)) + 1
        if final and kept and not kept.endswith((b"\n", b"\r")):
            kept += b"\n"
            end += 1
        if end:
            yield kept[:end], final
            kept = kept[int(tally[fields.TAKEN]) :]
        if len(kept) > LONGEST:
            line = int(tally[fields.LINE]) + 1
            long = f"the row of line {line:,} has more than 256 MB: is a quote left open there?"
            raise BadInput(f"{head.path.name}: {long} {WAY}")
        size = max(head.block, len(kept))  # a long row is not scanned ever again


def _refuse(tally: np.ndarray, head: Head, block: bytes) -> None:
    """Refuse what is no table."""
    name = head.path.name
    if line := int(tally[fields.OPEN]):
        raise BadInput(f"{name}: the quote in line {line:,} is never closed, so rows would be lost; {WAY}")
    if line := int(tally[fields.ENDED]):
        raise BadInput(
            f"{name}: the quoted value of line {line:,} goes on after its closing quote; "
            "write a quote within quotes twice"
        )
    if line := int(tally[fields.RAGGED]):
        n, begin = int(tally[fields.FIELDS]), int(tally[fields.TAKEN])
        comment = block[begin : begin + 1] == b"#"
        fix = "comments may stand before the header only" if comment else WAY
        values = f"{n:,} value{'' if n == 1 else 's'}"
        raise BadInput(f"{name}: line {line:,} has {values} and the header names {len(head.columns):,}; {fix}")


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
        self.places: dict[str, dict[int, tuple[str, int, str]]] = {}
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
                if (
                    c not in self.dates
                    and kinds[c].code == fields.TEXT
                    and readings(pa.array([kinds[c].value.strip()]))
                ):
                    self.dates[c] = dated(kinds[c], self._texts(c), self.form.dates)
            return kinds | {c: self.dates[c] for c in columns if c in self.dates}

    def _texts(self, column: str) -> Iterator[pa.Array]:
        """Yield a column as text."""
        for head, scan in zip(self.heads, self.scans, strict=True):
            at = [(p, c, InferredType("text"), pa.string()) for p, c in _places([column], head)]
            with _opened(head) as chunk:
                for cut in scan.cuts:
                    yield _batch(chunk(cut), cut, head, scan.multiline, at).column(0)

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
                    yield _batch(chunk(cut), cut, head, scan.multiline, [(p, c, *wanted[c]) for p, c in at])

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
    lines = io.StringIO(text.decode("utf-8", "replace"), newline="").readlines()
    number, before = cut.first_row - 1, 0
    for values, read in _rows(lines, head.delimiter):
        number += len(values) > 1 or "".join(values).strip() != ""
        if number == row:
            break
        before = read
    return cut.line + before + 1


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


def _batch(chunk: bytes, cut: Cut, head: Head, multiline: bool, columns: Sequence[Wanted]) -> pa.RecordBatch:
    """Whole rows as a record batch."""
    types = {
        str(p): pa.string() if k.comma or k.order is not None or pa.types.is_null(t) else t for p, _, k, t in columns
    }
    try:
        try:
            table = _parsed(chunk, head, multiline, types)
        except pa.ArrowInvalid:  # a spelling that only `cast` knows, such as "+5" or " NA "
            table = _parsed(chunk, head, multiline, dict.fromkeys(types, pa.string()))
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


def _parsed(chunk: bytes, head: Head, multiline: bool, types: Mapping[str, pa.DataType]) -> pa.Table:
    from pyarrow import csv as arrow_csv

    return arrow_csv.read_csv(
        pa.BufferReader(chunk),
        arrow_csv.ReadOptions(
            use_threads=False, block_size=len(chunk) + 1, column_names=[str(i) for i in range(len(head.columns))]
        ),
        arrow_csv.ParseOptions(
            delimiter=head.delimiter,
            newlines_in_values=multiline,
            invalid_row_handler=lambda _: "skip",  # lines of spaces only: others were refused
        ),
        arrow_csv.ConvertOptions(
            include_columns=list(types),
            column_types=types,
            check_utf8=False,  # it was checked
            null_values=ABSENT,
            true_values=TRUE,
            false_values=FALSE,
        ),
    )
