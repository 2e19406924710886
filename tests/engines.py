"""Programs that run what calibrant prints: SQLite, a PostgreSQL server of its own, and Node."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from calibrant.repair.formulas.dialects import DIALECTS, dialect_named

POSTGRES = "initdb", "pg_ctl", "psql"


def in_sqlite(table: pa.Table, query: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as con:
        fill(con, table)
        return con.execute(query).fetchall()


def fill(con: sqlite3.Connection, table: pa.Table) -> None:
    names = ", ".join(DIALECTS["sqlite"].name(c) for c in table.column_names)
    con.execute(f"CREATE TABLE scores ({names})")
    held = [[str(v) if hasattr(v, "isoformat") else v for v in row.values()] for row in table.to_pylist()]
    con.executemany(f"INSERT INTO scores VALUES ({', '.join('?' * table.num_columns)})", held)  # noqa: S608


def in_node(script: str, calls: str) -> list[float | None]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    text = f"{script}\nconsole.log(JSON.stringify({calls}))"
    done = subprocess.run([node, "-"], input=text, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr[-500:]
    return list(json.loads(done.stdout))


# ---- PostgreSQL ----


def no_postgres() -> str:
    """Why there is no PostgreSQL; empty where there is one."""
    return "" if all(map(_program, POSTGRES)) else "PostgreSQL is not installed: apt-get install postgresql"


def _program(name: str) -> str | None:
    return shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))[::-1]), None)


@contextlib.contextmanager
def postgres() -> Iterator[Callable[[str], str]]:
    """A cluster of its own in a folder, behind a socket and without a port, run by nobody."""
    start, control, client = (str(_program(name)) for name in POSTGRES)
    root = os.getuid() == 0
    held = tempfile.mkdtemp(prefix="pg")  # not in pytest's folder, which is closed to nobody; its path is short
    if root:
        shutil.chown(held, "nobody")
    who: dict[str, Any] = {"user": "nobody", "cwd": held} if root else {"cwd": held}
    quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    where = ["-D", f"{held}/data"]
    subprocess.run([start, *where, "-A", "trust", "-U", "tests", "-E", "UTF8", "--no-sync"], **who, **quiet)
    listens = f"-k {held} -c listen_addresses='' -c fsync=off"
    subprocess.run([control, *where, "-w", "-l", f"{held}/log", "-o", listens, "start"], **who, **quiet)

    def run(statements: str) -> str:
        call = [client, "-h", held, "-U", "tests", "-d", "postgres", "-qAtX", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(call, input=statements, capture_output=True, text=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr[-500:]
        return done.stdout

    try:
        yield run
    finally:
        subprocess.run([control, *where, "-m", "immediate", "stop"], **who, **quiet)
        shutil.rmtree(held)


def in_postgres(run: Callable[[str], str], table: pa.Table, query: str) -> list[tuple[Any, ...]]:
    d = dialect_named("postgres")
    kinds = {"double": "double precision", "string": "text", "bool": "boolean", "int64": "bigint"}
    columns = ", ".join(f"{d.name(f.name)} {kinds.get(str(f.type), 'timestamp')}" for f in table.schema)

    def cell(v: object) -> str:
        return "NULL" if v is None else d.literal(str(v))

    values = ", ".join(f"({', '.join(map(cell, row.values()))})" for row in table.to_pylist())
    load = f"DROP TABLE IF EXISTS scores; CREATE TABLE scores ({columns}); INSERT INTO scores VALUES {values};"  # noqa: S608
    lines = run(f"{load}\n{query};").splitlines()
    return [(int(k), *(float(v) if v else None for v in values)) for k, *values in (line.split("|") for line in lines)]
