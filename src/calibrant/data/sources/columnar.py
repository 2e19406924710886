"""Files of columns: Parquet and Arrow IPC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import pyarrow as pa

from calibrant.data.sources.frames import table_source
from calibrant.data.sources.source import ROWS, Fragment, Fragments, Part, Read, Source
from calibrant.errors import BadInput

# ---- Parquet ----


def parquet(path: str, name: str, filesystem: pa.fs.FileSystem) -> Source:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, filesystem=filesystem) as file:
            schema, meta = file.schema_arrow, file.metadata
    except (pa.ArrowInvalid, OSError) as e:
        what = "Parquet, CSV or Arrow IPC" if filesystem.type_name == "local" else "Parquet"
        raise BadInput(f"{PurePosixPath(path).name} is not {what} ({str(e).splitlines()[0][:80]})") from None

    def reader(piece: Fragment) -> Read:
        return lambda columns, _: read_group(filesystem, piece, columns)

    parts, pieces, start = [], [], 0
    for g in range(meta.num_row_groups):
        piece = (path, name, start, g, meta.row_group(g).num_rows)
        parts.append(Part(name, start, reader(piece)))
        pieces.append(piece)
        start += piece[4]
    return Source(name, tuple(schema.names), tuple(parts), start, fragments=Fragments(filesystem, tuple(pieces)))


def read_fragment(
    filesystem: pa.fs.FileSystem, piece: Fragment, columns: Sequence[str]
) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Yield a row group's batches with their part and first row."""
    path, name, row, _, _ = piece
    try:
        for batch in read_group(filesystem, piece, columns):
            yield name, row, batch
            row += batch.num_rows
    except FileNotFoundError:
        raise BadInput(f"a worker finds no file {path!r}: give a path that every machine sees, such as s3://") from None


def read_group(filesystem: pa.fs.FileSystem, piece: Fragment, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield a row group's batches; texts stay dictionaries."""
    import pyarrow.parquet as pq

    path, _, _, group, _ = piece
    schema = pq.read_schema(path, filesystem=filesystem)
    texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    kept = [t for t in texts if t in columns]
    with pq.ParquetFile(path, filesystem=filesystem, read_dictionary=kept) as opened:
        yield from opened.iter_batches(ROWS, row_groups=[group], columns=list(columns), use_threads=False)


# ---- Arrow IPC ----


def ipc(path: Path) -> Source:
    from pyarrow import feather

    try:
        return table_source(feather.read_table(path, memory_map=True))
    except (pa.ArrowInvalid, OSError) as e:
        raise BadInput(f"{path.name} cannot be read as Arrow IPC: {str(e).splitlines()[0]}") from None
