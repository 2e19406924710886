"""Frames and streams in memory, of whatever library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import pyarrow as pa

from calibrant.data.columns import table_of
from calibrant.data.sources.query import Relation, relation
from calibrant.data.sources.source import ROWS, Part, Read, Source
from calibrant.errors import BadInput


def frame(source: object, wanted: Sequence[str]) -> Source:
    """Return what is in memory, or can be read there: by the Arrow stream protocol, whatever library it is of."""
    if isinstance(source, Mapping):
        try:
            return table_source(pa.table(dict(source)))
        except (pa.ArrowInvalid, TypeError, AttributeError) as e:
            raise BadInput(f"a dictionary of columns needs arrays of equal length: {str(e).splitlines()[0]}") from None
    if hasattr(source, "to_arrow_reader") and hasattr(source, "project"):
        return relation(cast(Relation, source))
    if isinstance(source, pa.RecordBatchReader):
        return _stream(source)
    collect = getattr(source, "collect", None)
    if callable(collect) and not hasattr(source, "__arrow_c_stream__"):  # a lazy frame
        source = collect()
    if not hasattr(source, "__arrow_c_stream__"):
        raise BadInput(
            f"cannot read a {type(source).__name__}: pass a path, a glob, a pandas, Polars or Arrow table, a DuckDB "
            "relation, or a dictionary of columns; arrays are calibrant.predictions(y_true, y_prob)"
        )
    try:
        return table_source(table_of(source))
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # a column that pandas may hold and Arrow does not
        kept = [w for w in wanted if w in list(getattr(source, "columns", ()))]
        try:
            return table_source(table_of(source[kept]))  # type: ignore[index]
        except (pa.ArrowInvalid, pa.ArrowTypeError) as e:
            raise BadInput(f"a column mixes types ({str(e).splitlines()[0]}): make it text or numbers") from None


def table_source(table: pa.Table) -> Source:
    def reader(start: int, length: int) -> Read:
        def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
            yield from table.select(list(columns)).slice(start, length).to_batches(max_chunksize=ROWS)

        return read

    step = 4 * ROWS
    parts = [Part("", s, reader(s, step)) for s in range(0, max(table.num_rows, 1), step)]
    return Source("data", tuple(table.schema.names), tuple(parts), table.num_rows)


def _stream(reader: pa.RecordBatchReader) -> Source:
    def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield batch.select(list(columns))

    return Source("stream", tuple(reader.schema.names), (Part("", 0, read),), None, again=False)
