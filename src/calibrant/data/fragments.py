"""Row groups of Parquet files as plain data, so that another machine can read them: path, name, first row, group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.errors import BadInput

ROWS = 1 << 18  # a batch fills the cache-sized counters of every block many times over
LEAST_SHARES = 64
SHARE = 1 << 24  # rows that one task reads, about
Fragment = tuple[str, str, int, int, int]  # path, part, first row, row group, rows
Share = tuple[Any, list[Fragment]]


@dataclass(frozen=True)
class Fragments:
    """All row groups of a data set.

    Parameters
    ----------
    filesystem : pyarrow.fs.FileSystem
    pieces : tuple of Fragment
    """

    filesystem: Any
    pieces: tuple[Fragment, ...]

    def shares(self) -> list[Share]:
        """Return the row groups, dealt to tasks in runs of about equally many rows."""
        total = sum(p[4] for p in self.pieces)
        size = total / min(len(self.pieces), max(LEAST_SHARES, -(-total // SHARE))) if total else 1.0
        shares: list[list[Fragment]] = []
        before, last = 0, -1
        for piece in self.pieces:
            if (at := int(before // size)) != last:
                shares.append([])
                last = at
            shares[-1].append(piece)
            before += piece[4]
        return [(self.filesystem, share) for share in shares]


def read_fragment(filesystem: Any, piece: Fragment, columns: Sequence[str]) -> Iterator[tuple[str, int, Any]]:
    """Yield a row group's batches with their part and first row."""
    path, name, row, _, _ = piece
    try:
        for batch in read_group(filesystem, piece, columns):
            yield name, row, batch
            row += batch.num_rows
    except FileNotFoundError:
        raise BadInput(f"a worker finds no file {path!r}: give a path that every machine sees, such as s3://") from None


def read_group(filesystem: Any, piece: Fragment, columns: Sequence[str]) -> Iterator[Any]:
    """Yield a row group's batches; texts stay dictionaries."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, _, _, group, _ = piece
    schema = pq.read_schema(path, filesystem=filesystem)
    texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    kept = [t for t in texts if t in columns]
    with pq.ParquetFile(path, filesystem=filesystem, read_dictionary=kept) as opened:
        yield from opened.iter_batches(ROWS, row_groups=[group], columns=list(columns), use_threads=False)
