"""Damaged files and what becomes of them: made here, read by `python corrupt_files.py HOW FILE ...`, which may die.

One line a file: `refused`, `same` or `other` rows than were written, `raw` for an error that is no refusal. A file
that takes the process down has no line.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from calibrant.data.layouts import decoded

ROWS = 500
MEMORY = 6 << 30  # bytes of address space: what asks for more is refused by the system
NUMBERS = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    1 << 15,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    (1 << 63) - 1,
    (1 << 64) - 1,
)


def table() -> pa.Table:
    rng = np.random.default_rng(3)
    x = rng.normal(size=ROWS)
    words = np.array(["", "north", "south", "Zürich", "a long name of a place " * 4])[rng.integers(0, 5, ROWS)]
    return pa.table(
        {
            "y": pa.array(rng.integers(0, 2, ROWS), pa.int64()),
            "p": pa.array(rng.random(ROWS)),
            "g": pa.array(words).dictionary_encode(),
            "t": pa.array([f"{i % 97:05d}" if i % 11 else None for i in range(ROWS)]),
            "x": pa.array(x, mask=x > 2),
            "d": pa.array(np.arange(ROWS, dtype="int32"), pa.date32()),
        }
    )


def sound(kind: str) -> Iterator[tuple[str, bytes]]:
    """Yield the ending and bytes of sound files of one kind, stored in different ways."""
    import pyarrow.parquet as pq
    from pyarrow import orc

    rows = table()
    writers: list[tuple[str, Callable[[pa.BufferOutputStream], Any]]] = []
    if kind == "parquet":
        ways: tuple[dict[str, Any], ...] = (
            {"compression": "none", "use_dictionary": False},
            {"compression": "snappy", "data_page_version": "2.0", "row_group_size": 100},
            {"compression": "zstd", "write_page_checksum": True},
            {"compression": "none", "write_page_checksum": True, "row_group_size": 200},
            {"compression": "gzip", "write_statistics": False},
            {"compression": "none", "use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
        )
        for way in ways:
            encoding = way.pop("column_encoding", None)
            more = {"column_encoding": {"t": encoding}} if encoding else {}
            writers.append((".parquet", lambda out, way=way, more=more: pq.write_table(rows, out, **way, **more)))
    if kind == "arrow":
        for ending, make in ((".arrow", pa.ipc.new_file), (".arrows", pa.ipc.new_stream)):
            for compression in (None, "lz4", "zstd"):

                def write(out: Any, make: Any = make, compression: Any = compression) -> None:
                    options = pa.ipc.IpcWriteOptions(compression=compression)
                    with make(out, rows.schema, options=options) as w:
                        w.write_table(rows, max_chunksize=200)

                writers.append((ending, write))
    if kind == "orc":
        plain = rows.set_column(2, "g", rows["g"].cast(pa.string()))
        for compression in ("uncompressed", "zlib", "zstd"):
            writers.append((".orc", lambda out, c=compression: orc.write_table(plain, out, compression=c)))
    for ending, writer in writers:
        out = pa.BufferOutputStream()
        writer(out)
        yield ending, out.getvalue().to_pybytes()


def damaged(raw: bytes, seed: int) -> bytes:
    """Return bytes with one kind of damage, anywhere, near the end or near the beginning: descriptions lie there."""
    rng, out, n = np.random.default_rng(seed), bytearray(raw), len(raw)
    where = int(rng.integers(0, 3))

    def place() -> int:
        near = int(min(n, 3000) * rng.random() ** 2)
        return (int(rng.integers(0, n)), n - 1 - near, near)[where] % n

    HARM[int(rng.integers(0, len(HARM)))](out, place, rng)
    return bytes(out)


Place = Callable[[], int]


def bits(out: bytearray, place: Place, rng: np.random.Generator) -> None:
    for _ in range(int(rng.integers(1, 4))):
        out[place()] ^= 1 << int(rng.integers(0, 8))


def scattered(out: bytearray, place: Place, rng: np.random.Generator) -> None:
    for _ in range(int(rng.integers(1, 20))):
        out[place()] = int(rng.integers(0, 256))


def cut(out: bytearray, _: Place, rng: np.random.Generator) -> None:
    del out[int(rng.integers(1, len(out))) :]


def blank(out: bytearray, place: Place, rng: np.random.Generator) -> None:
    at, length = place(), int(rng.integers(1, 200))
    out[at : at + length] = bytes([int(rng.choice([0, 255]))]) * len(out[at : at + length])


def size(out: bytearray, place: Place, rng: np.random.Generator) -> None:
    at, width = place(), int(rng.choice([2, 4, 8]))
    number = NUMBERS[int(rng.integers(0, len(NUMBERS)))] & ((1 << 8 * width) - 1)
    out[at : at + width] = number.to_bytes(width, "little")[: len(out[at : at + width])]


def aligned(out: bytearray, place: Place, rng: np.random.Generator) -> None:
    at = place() // 4 * 4
    out[at : at + 4] = struct.pack("<i", int(rng.choice([-1, 1 << 30, (1 << 31) - 1, 5, 0])))[: len(out) - at]


def moved(out: bytearray, place: Place, rng: np.random.Generator) -> None:
    at, to, length = place(), place(), int(rng.integers(1, 400))
    out[to:to] = out[at : at + length]


def lost(out: bytearray, place: Place, rng: np.random.Generator) -> None:
    at = place()
    del out[at : at + int(rng.integers(1, 40))]


HARM = (bits, scattered, cut, blank, size, aligned, moved, lost)


def spoilt(kind: str, count: int, folder: Path, first: int = 0) -> list[Path]:
    """Write damaged files of one kind."""
    bases, paths = list(sound(kind)), []
    for i in range(first, first + count):
        ending, raw = bases[i % len(bases)]
        path = folder / f"{i % len(bases)}-{i:05d}{ending}"
        path.write_bytes(damaged(raw, i))
        paths.append(path)
    return paths


def reported(path: str, rows: pa.Table, how: str) -> str:
    """Read a file, its rows only or in every way there is, and say what became of it."""
    import calibrant as cal
    from calibrant.data.sources.files import open_source

    try:
        source = open_source(path)
        batches = [b for part in source.parts for b in part.read(source.columns, ("p",))]
        if how == "all":
            cal.sketch(path, label="y", score="p", by=["g", "t"], variables=["x", "d"])
            cal.read(path, label="y", score="p", by=["g", "t", "x", "d"])
    except cal.BadInput as e:
        return f"refused {e}" if "\n" not in str(e) and len(str(e)) < 500 else f"raw lines in {e!r}"
    except Exception as e:  # what no file may bring about
        return f"raw {type(e).__module__}.{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
    return "same" if same(batches, rows) else "other"


def same(batches: list[pa.RecordBatch], rows: pa.Table) -> bool:
    """Tell whether batches hold the rows, in whatever layout."""
    if any(b.schema.names != rows.schema.names for b in batches):
        return False
    plain = [pa.table([decoded(c) for c in b.columns], b.schema.names) for b in batches]
    return bool(pa.concat_tables(plain).equals(pa.table([decoded(c) for c in rows.columns], rows.schema.names)))


def main() -> None:
    import resource

    rows, how, paths = table(), sys.argv[1], sys.argv[2:]
    reported_first = reported("/nonexistent", rows, how)  # everything is loaded before memory is limited
    assert reported_first.startswith("refused"), reported_first
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for path in paths:
        print(f"at {path}", flush=True)
        print(reported(path, rows, how), flush=True)


if __name__ == "__main__":
    main()
