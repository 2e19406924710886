"""Which engine a source or a session belongs to, told by the name of its module: nothing is imported to find out."""

from __future__ import annotations

from typing import Any

from calibrant.data.sources import Source
from calibrant.errors import BadInput

ENGINES = "pass a live SparkSession, a distributed.Client, or a DuckDB connection for a query"
LIVE = {"spark": ("sql", "range", "addTag"), "dask": ("gather", "compute", "cancel")}  # of a session, of a client


def kind_of(thing: Any) -> str:
    """Return "spark", "dask", "duckdb" or "" for what a frame, session, client or connection is of."""
    module = type(thing).__module__.lower()
    known = {"pyspark": "spark", "dask": "dask", "distributed": "dask", "duckdb": "duckdb", "_duckdb": "duckdb"}
    return known.get(module.split(".")[0], "")


def cluster_frame(source: Any, engine: Any) -> Source | None:
    """Return a Spark or Dask DataFrame as a source; None for anything else."""
    kind = kind_of(source)
    if kind not in ("spark", "dask") or not hasattr(source, "columns"):
        return None
    if engine is not None and (kind_of(engine) != kind or not all(hasattr(engine, a) for a in LIVE[kind])):
        raise BadInput(
            f"engine= is a {type(engine).__name__} and the source a {kind.capitalize()} DataFrame: leave it out"
        )
    if kind == "spark":
        from calibrant.data.spark import SparkFrame

        frame = source.to_spark() if type(source).__module__.startswith("pyspark.pandas") else source
        return Source("frame", tuple(frame.columns), (), None, numbered=False, cluster=SparkFrame(frame))
    from calibrant.data.dask import DaskFrame

    columns = tuple(map(str, source.columns))
    return Source("frame", columns, (), None, numbered=False, cluster=DaskFrame(source, engine))


def on_engine(source: Source, engine: Any) -> Source:
    """Return the source, read by the engine's machines if there is an engine."""
    if engine is None:
        return source
    kind = kind_of(engine)
    if not all(hasattr(engine, a) for a in LIVE.get(kind, ("none",))):
        raise BadInput(f"engine is a {type(engine).__name__}: {ENGINES}")
    if source.fragments is None:
        raise BadInput(
            "engine= reads Parquet files only: leave it out to read this here, or pass a frame of the engine"
        )
    from dataclasses import replace

    from calibrant.data.dask import DaskFragments
    from calibrant.data.spark import SparkFragments

    made = SparkFragments if kind == "spark" else DaskFragments
    return replace(source, cluster=made(engine, source.fragments))


def query(text: str, engine: Any) -> Any:
    """Return the relation of a query, on the given DuckDB connection or the default one."""
    if engine is not None and kind_of(engine) != "duckdb":
        raise BadInput("a query is DuckDB's: pass engine= a DuckDB connection, or pass the session's own DataFrame")
    try:
        import duckdb
    except ImportError:
        raise BadInput("a query needs DuckDB: pip install 'calibrant[duckdb]'") from None
    try:
        return (engine or duckdb).sql(text)
    except duckdb.Error as e:
        raise BadInput(f"the query cannot be run: {str(e).splitlines()[0]}") from None
