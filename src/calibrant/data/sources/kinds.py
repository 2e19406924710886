"""What a file is: recognised by its first bytes, whatever its name says, and by its name where they tell nothing."""

from __future__ import annotations

import re
import shlex
import zipfile
from pathlib import Path, PurePosixPath

import pyarrow as pa

from calibrant.data.sources.encoded import PACKED as PACKINGS
from calibrant.data.sources.encoded import unpacked
from calibrant.errors import BadInput
from calibrant.plugins import FORMATS, Format

PARQUET, ARROW, ORC, TEXT = "Parquet", "Arrow IPC", "ORC", "text"
JSON, EXCEL, NUMPY = "JSON", "Excel", "NumPy"

FIRST = 1 << 12  # bytes to look at
MARKS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16
BEGINNINGS = (
    (b"PAR1", PARQUET),
    (b"PARE", PARQUET),  # encrypted
    (b"ARROW1\0", ARROW),
    (b"FEA1", ARROW),
    (b"\xff\xff\xff\xff", ARROW),  # a stream
    (b"ORC", ORC),
    (b"\x93NUMPY", NUMPY),
    (b"\x1f\x8b", TEXT),  # gzip
    (b"BZh", TEXT),
    (b"\xfd7zXZ\0", TEXT),
    (b"\x28\xb5\x2f\xfd", TEXT),  # Zstandard
    *((mark, TEXT) for mark in MARKS),
)
PACKED = ("", ".gz", ".bz2", ".zst", ".xz")
TEXTS = tuple(f".{t}{packed}" for t in ("csv", "tsv", "txt") for packed in PACKED)
ENDINGS = {
    PARQUET: (".parquet", ".pq"),
    ARROW: (".arrow", ".arrows", ".feather", ".ipc"),
    ORC: (".orc",),
    TEXT: TEXTS,
    JSON: tuple(f".{t}{packed}" for t in ("jsonl", "ndjson", "json") for packed in PACKED),
    EXCEL: (".xlsx", ".xlsm"),
    NUMPY: (".npz", ".npy"),
}
FOREIGN = {  # what other files begin with, and are
    b"$FL": "an SPSS file",
    b"<stata_dta>": "a Stata file",
    b"\0\0\0\0\0\0\0\0\0\0\0\0\xc2\xea\x81\x60": "a SAS file",
    b"X\n\0\0": "a file of R",
    b"RDX": "a file of R",
    b"\x80\x02": "a pickle, which is code",
    b"\x80\x03": "a pickle, which is code",
    b"\x80\x04": "a pickle, which is code",
    b"\x80\x05": "a pickle, which is code",
    b"\x89HDF": "an HDF5 file",
    b"SQLite format 3\0": "an SQLite database",
    b"Obj\x01": "an Avro file",
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
}
OBJECTS = re.compile(rb"(\xef\xbb\xbf)?\s*(\{|\[\s*\{)")  # how JSON of objects begins
RECORD = re.compile(rb'\s*\{\s*"name":\s*"(?:[^"\\]|\\.)*",\s*"verdict":\s*"\w+",\s*"verdicts":\s*\{')
ZIP, OLD_EXCEL = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
CONTROL = frozenset(range(32)) - frozenset(b"\t\n\f\r\x1a\x1b")  # bytes that no text holds


def kind_of(path: str, filesystem: pa.fs.FileSystem) -> str:
    """What a file is: PARQUET, ARROW, ORC, TEXT, JSON, EXCEL or NUMPY, or what a plug-in calls its format."""
    name = PurePosixPath(path).name
    by_name = next((kind for kind, ends in known().items() if name.lower().endswith(ends)), "")
    if filesystem.type_name != "local" and by_name == PARQUET:
        return PARQUET  # a request saved
    try:
        with filesystem.open_input_stream(path, compression=None) as file:
            first = file.read(FIRST)
    except OSError as e:
        raise BadInput(f"{name} cannot be read: {(e.strerror or str(e)).splitlines()[0][:160]}") from None
    if not first:
        raise BadInput(f"{name} is empty (0 bytes)")
    try:
        kind = _ours(path, filesystem, by_name, first)
    except BadInput as e:
        other, broken = _installed(path, filesystem, first)
        if other:
            return other
        raise BadInput(f"{e}; {broken}") if broken else e from None
    if kind in (TEXT, JSON) and not by_name and PurePosixPath(name).suffix:
        return _installed(path, filesystem, first)[0] or kind
    return kind


def _ours(path: str, filesystem: pa.fs.FileSystem, by_name: str, first: bytes) -> str:
    """What a file is of what is read without looking for installed packages; refuse all else."""
    name = PurePosixPath(path).name
    _no_stranger(first, name)
    if CONTROL.isdisjoint(first):
        return log_of(first) or (JSON if by_name == JSON or OBJECTS.match(first) else TEXT)
    if first.startswith(OLD_EXCEL):
        raise BadInput(f"{name} is an old Excel file, or one with a password: save it as .xlsx without one")
    if first.startswith(ZIP):
        return _zipped(path, filesystem, by_name)
    return _by_bytes(first, Path(path), by_name, filesystem.type_name == "local")


# ---- formats of plug-ins ----


def known() -> dict[str, tuple[str, ...]]:
    """What is read without looking for installed packages, and the endings of its files."""
    return ENDINGS | {f.called: f.endings for f in FORMATS.ours().values() if f.endings}


def log_of(first: bytes) -> str:
    """Which of our formats begins so; nothing where none does."""
    return next((f.called for f in FORMATS.ours().values() if f.begins(first)), "")


def _installed(path: str, filesystem: pa.fs.FileSystem, first: bytes) -> tuple[str, str]:
    """Which installed format a file is, and what is wrong with one that cannot be asked; empty where none.

    One whose name is the ending of the file must work; of the others each that does is asked by the first bytes.
    """
    name = PurePosixPath(path).name.lower()
    for ending in FORMATS.installed:
        if name.endswith(f".{ending.lower()}"):
            return str(FORMATS.loaded(ending).called), ""
    working, broken = _working()
    names = _names(path, filesystem) if working and first.startswith(ZIP) else []
    for own, f in working.items():
        with FORMATS.calling(own):
            if f.begins(first) or (names and f.holds(names)) or name.endswith(tuple(f.endings)):
                return f.called, ""
    return "", broken


def other_format(called: str) -> tuple[str, Format]:
    """The format of a plug-in, and its name in the table, by what messages call it."""
    every = FORMATS.ours()
    if all(f.called != called for f in every.values()):
        every = _working()[0]
    return next((name, f) for name, f in every.items() if f.called == called)


def _working() -> tuple[dict[str, Format], str]:
    """The installed formats that can be used, and what is wrong with the first that cannot."""
    result, broken = dict[str, Format](), ""
    for name in FORMATS.installed:
        try:
            result[name] = FORMATS.loaded(name)
        except BadInput as e:
            broken = broken or str(e)
    return result, broken


def _by_bytes(first: bytes, path: Path, by_name: str, local: bool) -> str:
    """What a file that is no plain text is."""
    name = path.name
    kind = next((kind for begins, kind in BEGINNINGS if first.startswith(begins)), by_name)
    if first.startswith(MARKS) and by_name in (PARQUET, ARROW, ORC):
        kind = by_name  # two bytes tell little
    packed = PurePosixPath(name.lower()).suffixes[-2:-1]
    if kind == TEXT and packed and packed[0] in (*ENDINGS[PARQUET], *ENDINGS[ORC], *ENDINGS[ARROW]):
        raise BadInput(f"{name} is a packed file: unpack it first")
    if local and first.startswith(tuple(PACKINGS)):
        return _packed(path, by_name)
    if not kind:
        raise BadInput(f"{name} is none of {', '.join(known())}, as its first bytes show: save it as one of these")
    return JSON if kind == TEXT and by_name == JSON else kind


def _packed(path: Path, by_name: str) -> str:
    """What a compressed file of text is: its own first bytes tell."""
    with unpacked(path) as file:
        first = file.read(FIRST)
    _no_stranger(first, path.name)
    inside = next((kind for begins, kind in BEGINNINGS if first.startswith(begins)), TEXT)
    if not CONTROL.isdisjoint(first) and (inside != TEXT or first.startswith((ZIP, OLD_EXCEL))):
        raise BadInput(f"{path.name} is a packed file: unpack it first")
    return log_of(first) or (JSON if by_name == JSON or OBJECTS.match(first) else TEXT)


def _no_stranger(first: bytes, name: str) -> None:
    """Refuse a file of another program, by what it is, and what calibrant wrote that holds no rows."""
    if RECORD.match(first):
        show = f"calibrant report {shlex.quote(name)}"
        raise BadInput(f"{name} is the record of an audit and holds no rows: pass the rows, or show it by `{show}`")
    if first.startswith(b"calibrant sketch"):
        raise BadInput(f"{name} is a sketch: end its name in .sketch, or pass calibrant.Sketch.from_bytes(...)")
    if what := next((what for begins, what in FOREIGN.items() if first.startswith(begins)), ""):
        raise BadInput(f"{name} is {what}, which is not read: save its table as Parquet or CSV")


def _zipped(path: str, filesystem: pa.fs.FileSystem, by_name: str) -> str:
    """What a zip file is: Excel's, NumPy's and those of our plug-ins are."""
    if by_name in (EXCEL, NUMPY) or by_name in {f.called for f in FORMATS.ours().values()}:
        return by_name
    names = _names(path, filesystem)
    if "xl/workbook.xml" in names:
        return EXCEL
    if names and all(n.endswith(".npy") for n in names):
        return NUMPY
    if called := next((f.called for f in FORMATS.ours().values() if f.holds(names)), ""):
        return called
    raise BadInput(f"{PurePosixPath(path).name} is a zip file: unpack it first")


def _names(path: str, filesystem: pa.fs.FileSystem) -> list[str]:
    """The names in a zip file; none where it is broken."""
    try:
        with filesystem.open_input_file(path) as file, zipfile.ZipFile(file) as archive:
            return archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return []


def one_kind(kinds: list[str], files: list[str]) -> str:
    """The kind of all files of a data set; refuse two kinds."""
    for kind, file in zip(kinds, files, strict=True):
        if kind != kinds[0]:
            raise BadInput(
                f"{files[0]} is {kinds[0]} and {file} is {kind}: files of one data set share a format; "
                "name those of one, such as 'log/*.parquet'"
            )
    return kinds[0]
