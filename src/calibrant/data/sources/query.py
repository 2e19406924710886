"""Queries: relations of DuckDB, which need not fit in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from calibrant.data.sources.source import ROWS, Part, Source
from calibrant.errors import BadInput

QUERY = re.compile(r"\s*(select|from|with)\s", re.IGNORECASE)


def is_query(text: str) -> bool:
    """Tell a query from a path."""
    return QUERY.match(text) is not None and not Path(text.strip()).exists()


class Relation(Protocol):
    """A query of DuckDB that has not run yet, and need not fit in memory."""

    columns: Sequence[str]

    def project(self, columns: str) -> Relation:
        """Return the relation of some columns."""

    def to_arrow_reader(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Run the query."""


def relation(relation: Relation) -> Source:
    def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
        quoted = ", ".join('"' + c.replace('"', '""') + '"' for c in columns)
        yield from relation.project(quoted).to_arrow_reader(ROWS)

    return Source("query", tuple(relation.columns), (Part("", 0, read),), None)


class Connection(Protocol):
    """A connection of DuckDB."""

    def sql(self, text: str) -> Relation:
        """Return the relation of a query."""


def query(text: str, connection: Connection | None = None) -> Relation:
    """Return the relation of a query, on a DuckDB connection or the default one."""
    try:
        import duckdb
    except ImportError:
        raise BadInput("a query needs DuckDB: pip install 'calibrant[duckdb]'") from None
    try:
        found: Relation = (connection or duckdb).sql(text)
    except duckdb.Error as e:
        raise BadInput(f"the query cannot be run: {str(e).splitlines()[0]}") from None
    return found
