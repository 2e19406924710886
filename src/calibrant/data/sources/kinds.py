"""What a file is: told by its first bytes, whatever its name says, and by its name where they tell nothing."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path, PurePosixPath

import pyarrow as pa

from calibrant.data.sources.encoded import PACKED as PACKINGS
from calibrant.data.sources.encoded import unpacked
from calibrant.errors import BadInput

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
    ARROW: (".arrow", ".arrows", ".feather", ".ipc"),
    ORC: (".orc",),
    TEXT: TEXTS,
    JSON: tuple(f".{t}{packed}" for t in ("jsonl", "ndjson", "json") for packed in PACKED),
    EXCEL: (".xlsx", ".xlsm"),
    NUMPY: (".npz", ".npy"),
}
OBJECTS = re.compile(rb"(\xef\xbb\xbf)?\s*(\{|\[\s*\{)")  # how JSON of objects begins
ZIP, OLD_EXCEL = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
CONTROL = frozenset(range(32)) - frozenset(b"\t\n\f\r\x1a\x1b")  # bytes that no text holds


def kind_of(path: str, filesystem: pa.fs.FileSystem) -> str:
    """Return what a file is: PARQUET, ARROW, ORC, TEXT, JSON, EXCEL or NUMPY."""
    name = PurePosixPath(path).name
    by_name = next((kind for kind, ends in ENDINGS.items() if name.lower().endswith(ends)), PARQUET)
    if filesystem.type_name != "local" and name.lower().endswith((".parquet", ".pq")):
        return PARQUET  # a request saved
    try:
        with filesystem.open_input_stream(path, compression=None) as file:
            first = file.read(FIRST)
    except OSError as e:
        raise BadInput(f"{name} cannot be read: {(e.strerror or str(e)).splitlines()[0][:160]}") from None
    if not first:
        raise BadInput(f"{name} is empty (0 bytes)")
    if CONTROL.isdisjoint(first):
        return JSON if by_name == JSON or OBJECTS.match(first) else TEXT
    if first.startswith(OLD_EXCEL):
        raise BadInput(f"{name} is an old Excel file, or one with a password: save it as .xlsx without one")
    if first.startswith(ZIP):
        return _zipped(path, filesystem, by_name)
    kind = next((kind for begins, kind in BEGINNINGS if first.startswith(begins)), by_name)
    if first.startswith(MARKS) and name.lower().endswith((".parquet", ".pq", *ENDINGS[ARROW], *ENDINGS[ORC])):
        kind = by_name  # two bytes tell little
    packed = PurePosixPath(name.lower()).suffixes[-2:-1]
    if kind == TEXT and packed and packed[0] in (".parquet", ".pq", ".orc", *ENDINGS[ARROW]):
        raise BadInput(f"{name} is a packed file: unpack it first")
    if filesystem.type_name == "local" and first.startswith(tuple(PACKINGS)):
        return _packed(Path(path), by_name)
    return JSON if kind == TEXT and by_name == JSON else kind


def _packed(path: Path, by_name: str) -> str:
    """Return what a compressed file of text is: its own first bytes tell."""
    with unpacked(path) as file:
        first = file.read(FIRST)
    inside = next((kind for begins, kind in BEGINNINGS if first.startswith(begins)), TEXT)
    if not CONTROL.isdisjoint(first) and (inside != TEXT or first.startswith((ZIP, OLD_EXCEL))):
        raise BadInput(f"{path.name} is a packed file: unpack it first")
    return JSON if by_name == JSON or OBJECTS.match(first) else TEXT


def _zipped(path: str, filesystem: pa.fs.FileSystem, by_name: str) -> str:
    """Return what a zip file is: Excel's and NumPy's are."""
    if by_name in (EXCEL, NUMPY):
        return by_name
    try:
        with filesystem.open_input_file(path) as file, zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        names = []
    if "xl/workbook.xml" in names:
        return EXCEL
    if names and all(n.endswith(".npy") for n in names):
        return NUMPY
    raise BadInput(f"{PurePosixPath(path).name} is a zip file: unpack it first")


def one_kind(kinds: list[str], files: list[str]) -> str:
    """Return the kind of all files of a data set; refuse two."""
    for kind, file in zip(kinds, files, strict=True):
        if kind != kinds[0]:
            raise BadInput(
                f"{files[0]} is {kinds[0]} and {file} is {kind}: files of one data set share a format; "
                "name those of one, such as 'log/*.parquet'"
            )
    return kinds[0]
