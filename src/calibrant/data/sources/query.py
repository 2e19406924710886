"""Queries: one SELECT of DuckDB's SQL, which need not fit in memory, and relations, queries that the caller made."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from calibrant.arguments import text as checked_text
from calibrant.data.sources.source import ROWS, Part, Source
from calibrant.errors import BadInput

QUERY = re.compile(r"\s*(select|from|with|values|table)\s", re.IGNORECASE)  # how text begins that may be meant as one
HOW = 'SQL goes in calibrant.sql("select ...") (--sql on the command line)'
ALLOWED_NODES = ("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE")
ALLOWED_FUNCTIONS = re.compile(  # that a FROM may call: what reads files and makes rows
    "read_(blob|csv|csv_auto|json|json_auto|json_objects|json_objects_auto|ndjson|ndjson_auto|ndjson_objects|parquet|text)"
    "|parquet_(file_metadata|kv_metadata|metadata|scan|schema)|sniff_csv|json_each|json_tree"
    "|generate_series|glob|range|repeat|repeat_row|unnest"
)
OWN = {  # of the connection that a query is run on unless one is given: in memory, nothing fetched, nothing kept
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,  # a name in a query is a table or a file, never a variable of this program
}


class Relation(Protocol):
    """A query of DuckDB that has not run yet, and need not fit in memory."""

    columns: Sequence[str]

    def project(self, columns: str) -> Relation:
        """The relation of some columns."""

    def to_arrow_reader(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Run the query."""


class Connection(Protocol):
    """A connection of DuckDB."""

    def sql(self, query: str) -> Relation:
        """The relation of a query."""


@dataclass(frozen=True)
class Query:
    """A query as data: make it with `calibrant.sql`, pass it where a path would go.

    Parameters
    ----------
    text : str
        One SELECT.
    connection : DuckDB connection or None
        Where it is run; None for a connection of its own.
    """

    text: str
    connection: Connection | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        checked_text("sql", self.text)
        _checked(self.text, own=self.connection is None)

    def relation(self) -> Relation:
        """The relation of the query."""
        import duckdb

        try:
            return (self.connection or _own_connection()).sql(self.text)
        except duckdb.Error as e:
            raise _cannot_run(e) from None


def sql(text: str, *, connection: Connection | None = None) -> Query:
    """Name the rows of a SQL query as data: `audit`, `read` and `sketch` take it in place of a path.

    Parameters
    ----------
    text : str
        One SELECT statement in DuckDB's SQL: ``"select * from 'log/*.parquet' where day >= '2026-10-01'"``.
    connection : DuckDB connection, optional
        Live and yours, with your tables, views and extensions. By default the query runs in memory on a connection of
        its own that reads files on this machine only, loads no extension and writes nothing.

    Returns
    -------
    Query

    Raises
    ------
    BadInput
        It is not one SELECT, or writes, or calls what neither reads a file nor makes rows.

    Notes
    -----
    **Assumes.** Whoever wrote the query may read the files it names: it can read every file that you can.
    **Cost.** The query runs once for each pass over the rows: once, or twice with groups or covariates. Rows are
    distinguished by their place in the result: add ``order by``, or pass `key`, where the query does not fix their
    order.

    Examples
    --------
    >>> import calibrant as cal
    >>> few = cal.sql("select i % 2 as y, i / 10 as p from range(10) as t(i)")
    >>> cal.read(few, label="y", score="p").n
    10
    """
    return Query(text, connection)


def relation(relation: Relation) -> Source:
    """The rows of a relation."""
    import duckdb

    def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
        quoted = ", ".join('"' + c.replace('"', '""') + '"' for c in columns)
        try:
            yield from relation.project(quoted).to_arrow_reader(ROWS)
        except (duckdb.Error, OSError) as e:  # what fails on a row comes from the reader as an OSError
            raise _cannot_run(e) from None

    times = Counter(c.lower() for c in {*relation.columns})  # to DuckDB a and A are one: it would read either
    cased = "it differs from another by case alone, which DuckDB does not tell apart: give it another name, with AS"
    unread = tuple((c, cased) for c in dict.fromkeys(relation.columns) if times[c.lower()] > 1)
    columns = tuple(c for c in relation.columns if times[c.lower()] == 1)
    return Source("query", columns, (Part("", 0, read),), None, unread=unread)


def _own_connection() -> Any:
    """A connection in memory that can do little but read files; what it may do cannot be changed."""
    import duckdb

    spill = str(Path(tempfile.gettempdir()) / "calibrant-duckdb")  # made only where a query needs more than memory
    return duckdb.connect(":memory:", config=OWN | {"temp_directory": spill, "lock_configuration": True})


def _cannot_run(error: Exception) -> BadInput:
    return BadInput(f"the query cannot be run: {str(error).splitlines()[0]}")


# ---- one SELECT that only reads ----


def _checked(text: str, own: bool) -> None:
    """Refuse anything but one SELECT that only reads, before any of it runs.

    A statement may be of type SELECT and still write, by a COPY or an INSERT in its WITH: so its tree is looked at too.
    """
    try:
        import duckdb
    except ImportError:
        raise BadInput("a query needs DuckDB: pip install 'calibrant[duckdb]'") from None
    parser = _own_connection()
    try:
        result = parser.extract_statements(text)
    except duckdb.Error as e:
        raise _cannot_run(e) from None
    if len(result) != 1:
        raise BadInput(f"sql holds {len(result)} statements: pass one SELECT")
    if result[0].type != duckdb.StatementType.SELECT:
        raise BadInput(f"sql is a statement of type {result[0].type.name}: pass one SELECT, for data are only read")
    tree = json.loads(parser.execute("select json_serialize_sql(?::varchar)", [text]).fetchall()[0][0])
    if tree.get("error"):
        raise BadInput(f"the query cannot be checked ({tree.get('error_message')}): write it as one plain SELECT")
    _only_reads(tree["statements"], own)


def _only_reads(tree: object, own: bool) -> None:
    """Refuse a node that writes; on a connection of one's own also a call that is not known to read only."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        if not isinstance(node, dict):
            continue
        waiting += node.values()
        kind = str(node.get("type", ""))
        if kind.endswith("_NODE") and kind not in ALLOWED_NODES:
            what = kind.removesuffix("_NODE").removesuffix("_QUERY")
            raise BadInput(f"sql holds a statement of type {what}: pass one SELECT, for data are only read")
        if own and kind == "TABLE_FUNCTION":
            name = str(node["function"].get("function_name", "")).lower()
            if not ALLOWED_FUNCTIONS.fullmatch(name):
                raise BadInput(
                    f"sql calls {name}(), which is not known to read only: read files by name, or pass a connection "
                    "of your own to calibrant.sql(..., connection=...)"
                )
