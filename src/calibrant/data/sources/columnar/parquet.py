"""Parquet, by row group, here or on another machine."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pyarrow as pa

from calibrant.data.sources.columnar.sound import AGAIN, checked, names_of, once, readable
from calibrant.data.sources.hive import keyed
from calibrant.data.sources.source import Fragment, Fragments, Part, Read, Source, rows_at_once
from calibrant.errors import BadInput

if TYPE_CHECKING:
    import pyarrow.parquet as pq

KIND = "Parquet"
NO_DICTIONARY = {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}  # encodings that cannot be read as dictionaries


def parquet(path: str, name: str, filesystem: pa.fs.FileSystem) -> Source:
    """A file's row groups."""
    file = ParquetRows(path, name, filesystem)
    meta = file.meta()
    parts, pieces, start = list[Part](), list[Fragment](), 0
    for g in range(meta.num_row_groups):
        with readable(file.name, KIND):
            rows = meta.row_group(g).num_rows
        if rows < 0:
            raise BadInput(f"{file.name} says that row group {g} has {rows} rows; {AGAIN}")
        parts.append(Part(name, start, file.reader(g)))
        pieces.append((path, name, start, g, rows, ()))
        start += rows
    if meta.num_row_groups > 1:
        file.buffered = meta
    return Source(name, file.names, tuple(parts), start, fragments=Fragments(filesystem, tuple(pieces)))


def read_fragments(
    filesystem: pa.fs.FileSystem, pieces: Iterable[Fragment], columns: Sequence[str]
) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Yield the batches of row groups with their part and first row."""
    for (path, part), own in itertools.groupby(pieces, key=lambda piece: piece[:2]):
        if filesystem.type_name == "local" and not os.path.exists(path):
            raise BadInput(f"a worker finds no file {path!r}: give a path that every machine sees, such as s3://")
        file = ParquetRows(path, part, filesystem)
        file.buffered = file.meta()
        for _, name, row, group, _, keys in own:
            for batch in keyed(file.reader(group), keys, file.names, file.name)(columns, ()):
                yield name, row, batch
                row += batch.num_rows


class ParquetRows:
    """A Parquet file and what its footer says.

    Parameters
    ----------
    path, part : str
        The part's name is shown, if it has one.
    filesystem : pyarrow.fs.FileSystem
    """

    def __init__(self, path: str, part: str, filesystem: pa.fs.FileSystem) -> None:
        import pyarrow.parquet as pq

        self.path, self.filesystem, self.name = path, filesystem, part or PurePosixPath(path).name
        with readable(self.name, KIND), pq.ParquetFile(path, filesystem=filesystem) as file:
            schema, self._meta = file.schema_arrow, file.metadata
            leaves = [file.schema.column(i).path for i in range(self._meta.num_columns)]
        self.names = names_of(schema, self.name, KIND)
        texts = {f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)}
        self.texts = {leaf: i for i, leaf in enumerate(leaves) if leaf in texts}
        self.buffered: pq.FileMetaData | None = None

    def meta(self) -> pq.FileMetaData:
        """Hand over the footer, which a file of one row group reads again where it is needed."""
        meta, self._meta = self._meta, None
        return meta

    def reader(self, group: int) -> Read:
        """The reader of a row group; texts stay dictionaries."""

        def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
            import pyarrow.parquet as pq

            once(self.name, self.names, columns)
            texts = [c for c in columns if c in self.texts]
            with readable(self.name, KIND):
                meta = self.buffered or pq.read_metadata(self.path, filesystem=self.filesystem)
                result = meta.row_group(group)
                kept = [t for t in texts if NO_DICTIONARY.isdisjoint(result.column(self.texts[t]).encodings)]
                with pq.ParquetFile(
                    self.path,
                    filesystem=self.filesystem,
                    metadata=meta,
                    read_dictionary=kept,
                    page_checksum_verification=True,
                ) as opened:
                    row, size = 0, rows_at_once(len(columns))
                    for batch in opened.iter_batches(size, [group], columns=list(columns), use_threads=False):
                        for sound in checked(batch, columns, self.name, row):
                            yield encoded(sound, texts) if len(kept) < len(texts) else sound
                        row += batch.num_rows
                if row != result.num_rows:
                    raise BadInput(f"{self.name}: row group {group} has {row} of its {result.num_rows} rows; {AGAIN}")

        return read


def encoded(batch: pa.RecordBatch, texts: Sequence[str]) -> pa.RecordBatch:
    """A batch whose texts are dictionaries, as those of other row groups are."""
    columns = [
        c.dictionary_encode() if n in texts and not pa.types.is_dictionary(c.type) else c
        for n, c in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)
