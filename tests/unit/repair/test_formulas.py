"""Maps as SQL and JavaScript: engines repair scores as Python does, whatever the columns and levels are called."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
import engines
from calibrant.cli.run import main
from calibrant.repair.catalogue import recipes
from calibrant.repair.fitted import Calibrator
from calibrant.repair.formulas.dialects import DIALECTS, dialect_named
from engines import in_node, in_postgres, in_sqlite

CLOSE = 1e-12
AGE, TOWN = "we\"ird [age] `x` '; DROP TABLE scores; --", "to\\wn]"  # columns that break out where quoting is naive
LEVELS = ("O'Brien", 'a"b', "back\\slash\\'", "'; DROP TABLE scores; --", "Über", "x ", "x")
UNSEEN = ("nowhere", "", None, "X", "\\")


@cache
def rows() -> cal.Predictions:
    """Rows to fit: numbers with gaps and heavy tails, text that injects, truth values, dates."""
    rng = np.random.default_rng([7, 0x501])
    n = 4000
    p = rng.beta(0.7, 1.4, n)
    age = rng.integers(18, 90, n).astype(float)
    town = rng.integers(0, len(LEVELS), n)
    member, income = rng.random(n) < 0.4, np.exp(rng.normal(8, 2, n)).round(2)
    days = rng.integers(15_000, 19_000, n)
    eta = np.log(p / (1 - p)) * 0.7 + (age - 50) / 25 + 0.6 * (town == 0) - 0.8 * (town == 2) + 0.5 * member
    y = rng.random(n) < 1 / (1 + np.exp(-eta))
    gone = rng.random(n) < 0.1
    table = pa.table(
        {
            AGE: pa.array(age, mask=gone),
            TOWN: pa.array([LEVELS[k] for k in town]),
            "member": pa.array(member),
            "income": pa.array(income),
            "since": pa.array(days.astype("datetime64[D]")),
        }
    )
    return cal.predictions(y, p, table)


@cache
def requested() -> tuple[np.ndarray[Any, Any], pa.Table]:
    """Rows to repair: edges of the score, gaps, levels that no fit has seen, a number beyond all others."""
    data = rows()
    rng = np.random.default_rng([8, 0x501])
    take = rng.integers(0, data.n, 60)
    scores = np.concatenate([[0.0, 1.0, 0.5, 1e-300, 1e-9, 5e-7, 1 - 1e-9, 1 / 3, 0.005, 0.015], data.p[take[10:]]])
    table = data.covariates.take(take)
    town = [*UNSEEN, *table.column(TOWN).to_pylist()[len(UNSEEN) :]]
    member = [None, *table.column("member").to_pylist()[1:]]
    income = [None, 0.0, -5.0, 1e12, 1e-310, *table.column("income").to_pylist()[5:]]
    since = [None, *table.column("since").to_pylist()[1:]]
    held = {AGE: table.column(AGE), TOWN: town, "member": member, "income": income, "since": since}
    return scores, pa.table({k: pa.array(v, table.schema.field(k).type) for k, v in held.items()})


@cache
def calibrators() -> dict[str, Calibrator]:
    """A map of every recipe, and of settings that take another form."""
    data, every = rows(), ("income", AGE, TOWN, "member", "since")
    out = {}
    for name, entry in recipes().items():
        if entry.fits(several=False) and name != "Jitter":
            out[name] = entry.make(every).fit(data)
    r = cal.repair
    out |= {
        "Platt raw": r.Platt(scale="raw", ridge=1.0).fit(data),
        "Platt percent": replace(r.Platt(scale="logit").fit(data), percent=True),
        "Rounding 7": r.Rounding(steps=7).fit(),
        "Rounding 64": r.Rounding(steps=64).fit(),
        "Isotonic of few": r.Isotonic(fewest=1).fit(data),
        "AugmentedBeta as published": r.AugmentedBeta(variables=every, paper=True).fit(data),
        "AugmentedLogistic of the score": r.AugmentedLogistic(variables=every, scale="raw", quadratic=True).fit(data),
        "VariableTree of three splits": r.VariableTree(variables=every, depth=3).fit(data),
        "Multicalibrator over groups": r.Multicalibrator(
            variables=(AGE, TOWN), learner=r.Groups(tolerance=0.03, bins=3, depth=2)
        ).fit(data),
    }
    return out


def wanted(one: Calibrator) -> list[float]:
    scores, table = requested()
    return [float(v) * (100.0 if one.percent else 1.0) for v in one.scores(scores, columns=table)]


def loaded(one: Calibrator) -> pa.Table:
    """The rows as a table of an engine: numbered, in the unit of the map, with three that cannot be repaired."""
    scores, table = requested()
    cluster = 100.0 if one.percent else 1.0
    last = table.slice(20, 3)
    ends = pa.array([None, -0.01 * cluster, 1.01 * cluster], pa.float64())
    whole = pa.concat_tables([table, last])
    return whole.add_column(0, "id", pa.array(range(len(whole)))).add_column(
        1, "p", pa.concat_arrays([pa.array(scores * cluster), ends])
    )


def agree(one: Calibrator, found: Sequence[tuple[int, float | None]]) -> None:
    """The values are those of Python, and what Python refuses is null."""
    shown, expected = dict(found), wanted(one)
    assert len(found) == len(shown) == len(expected) + 3
    assert [shown[len(expected) + k] for k in range(3)] == [None] * 3
    cluster = 100.0 if one.percent else 1.0
    worst = max(abs(shown[k] - v) for k, v in enumerate(expected))  # type: ignore[operator]
    assert worst <= CLOSE * cluster


def statement(one: Calibrator, dialect: str) -> str:
    return one.to_sql(dialect, score="p", table="scores", output="new", keep=["id"])


@pytest.mark.parametrize("name", sorted(calibrators()))
def test_duckdb_repairs_as_python_does(name: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    one = calibrators()[name]
    con = duckdb.connect()
    con.execute("SET threads = 1")
    con.register("scores", loaded(one))
    agree(one, con.execute(statement(one, "duckdb")).fetchall())
    every = con.execute(one.to_sql("duckdb", score="p", table="scores"))
    assert [c[0] for c in every.description] == [*loaded(one).column_names, "p_repaired"]
    alone = con.execute(one.to_sql("duckdb", score="p", table="scores", keep=[]))
    assert [c[0] for c in alone.description] == ["p_repaired"]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(calibrators()))
def test_sqlite_repairs_as_python_does(name: str) -> None:
    one = calibrators()[name]
    agree(one, in_sqlite(loaded(one), statement(one, "sqlite")))


def test_sqlite_does_not_take_text_for_a_score() -> None:
    one = cal.repair.Rounding(steps=10).fit()
    with contextlib.closing(sqlite3.connect(":memory:")) as con:
        con.execute("CREATE TABLE scores (id, p)")
        con.executemany("INSERT INTO scores VALUES (?, ?)", [(0, "high"), (1, 0.5)])
        assert con.execute(statement(one, "sqlite")).fetchall() == [(0, None), (1, 0.5)]
        with pytest.raises(sqlite3.OperationalError, match="no such column"):  # and no misspelt column for text
            con.execute(one.to_sql("sqlite", score="q", table="scores"))


@pytest.mark.parametrize("dialect", ["bigquery", "tsql"])
@pytest.mark.parametrize("name", ["Platt", "Isotonic", "Rounding", "AugmentedLogistic", "VariableTree"])
def test_dialects_of_services_mean_the_same(dialect: str, name: str) -> None:
    """No such service is at hand: sqlglot, which reads their SQL by its own grammar, takes it to DuckDB."""
    sqlglot, duckdb = pytest.importorskip("sqlglot"), pytest.importorskip("duckdb")
    one = cal.repair.Calibrator.from_json(calibrators()[name].to_json())
    assert isinstance(one, Calibrator)
    written = statement(one, dialect)
    (tree,) = sqlglot.parse(written, read=dialect)
    columns = {c.name for c in tree.find_all(sqlglot.exp.Column)}
    assert {"p"} <= {c for c in columns if not c.startswith("calibrant_")} <= {"p", "id", *one.reads}  # as they are
    texts = tree.find_all(sqlglot.exp.Literal, sqlglot.exp.National)
    reported = {t.this.rstrip("|") for t in texts if isinstance(t.this, str)}
    text = next((c for c in one.codings if c.of_text), None)
    if name == "AugmentedLogistic":
        assert text is not None
        assert set(text.levels) <= reported | {t + " " for t in reported}
    if not one.codings:
        con = duckdb.connect()
        con.register("scores", loaded(one))
        agree(one, con.execute(re.sub(r"AS (FLOAT|REAL)(\(53\))?", "AS DOUBLE", tree.sql("duckdb"))).fetchall())


# ---- several classes at once ----

CLASSES = ("no", "'; DROP TABLE scores; --", "may`be")


@cache
def class_calibrators() -> dict[str, Calibrator]:
    """Maps of three classes: one matrix, the published penalty that takes logarithms as they are, one matrix a leaf."""
    rng = np.random.default_rng([9, 0x501])
    p, age = rng.dirichlet([0.4, 0.6, 0.8], size=3000), rng.integers(18, 90, 3000).astype(float)
    tilted = p ** np.where(age > 50, 0.5, 1.4)[:, None]
    truth = (tilted / tilted.sum(axis=1, keepdims=True)).cumsum(axis=1)
    y = (rng.uniform(size=(3000, 1)) > truth).sum(axis=1).clip(0, 2)
    data = cal.multiclass_predictions(y, p, pa.table({AGE: pa.array(age, mask=rng.random(3000) < 0.1)}))
    r = cal.repair
    return {
        "Dirichlet": r.Dirichlet(strength=0.01).fit(data),
        "Dirichlet as published": r.Dirichlet(penalty="published", strength=0.01).fit(data),
        "VariableTree": r.VariableTree(variables=(AGE,), depth=2).fit(data),
        "BetaOneVsRest": r.BetaOneVsRest().fit(data),
        "IsotonicOneVsRest": r.IsotonicOneVsRest(fewest=1).fit(data),
    }


def of_classes(one: Calibrator) -> tuple[pa.Table, list[list[float]]]:
    """Rows of three classes, the last one with a score that is missing, and what Python repairs of the others."""
    rng = np.random.default_rng([10, 0x501])
    corners = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [1e-9, 1e-300, 1.0], [0.2, 0.3, 0.5]]
    p = np.concatenate([corners, rng.dirichlet([0.3] * 3, size=40)])
    age = pa.array([None, *rng.integers(18, 90, len(p) - 1).astype(float)], pa.float64())
    held = {"id": list(range(len(p) + 1)), AGE: pa.concat_arrays([age, age[1:2]])}
    held |= {name: [*p[:, k].tolist(), None if k == 1 else 0.5] for k, name in enumerate(CLASSES)}
    wanted = one.scores(p, columns=pa.table({AGE: age}))
    assert wanted.shape == p.shape
    return pa.table(held), wanted.tolist()


def agree_on_classes(one: Calibrator, found: Sequence[Sequence[float | None]]) -> None:
    """Each row is its number and three probabilities, those of Python; the last one has none."""
    _, wanted = of_classes(one)
    *rows, last = sorted(found, key=lambda row: row[0] or 0)
    assert list(last) == [len(wanted), None, None, None]
    assert np.abs(np.array([row[1:] for row in rows], dtype=float) - wanted).max() <= CLOSE


def classes_requested(one: Calibrator, dialect: str) -> str:
    return one.to_sql(dialect, score=CLASSES, table="scores", keep=["id"])


@pytest.mark.parametrize("name", sorted(class_calibrators()))
def test_duckdb_and_sqlite_repair_several_classes_as_python_does(name: str) -> None:
    duckdb, one = pytest.importorskip("duckdb"), class_calibrators()[name]
    con = duckdb.connect()
    con.register("scores", of_classes(one)[0])
    agree_on_classes(one, con.execute(classes_requested(one, "duckdb")).fetchall())
    every = con.execute(one.to_sql("duckdb", score=CLASSES, table="scores", output=["a", "b", "c"]))
    assert [c[0] for c in every.description] == ["id", AGE, *CLASSES, "a", "b", "c"]
    agree_on_classes(one, in_sqlite(of_classes(one)[0], classes_requested(one, "sqlite")))


@pytest.mark.parametrize("dialect", ["bigquery", "tsql"])
def test_dialects_of_services_mean_the_same_of_several_classes(dialect: str) -> None:
    sqlglot, duckdb = pytest.importorskip("sqlglot"), pytest.importorskip("duckdb")
    one = class_calibrators()["Dirichlet"]
    (tree,) = sqlglot.parse(classes_requested(one, dialect), read=dialect)
    con = duckdb.connect()
    con.register("scores", of_classes(one)[0])
    read = re.sub(r"AS (FLOAT|REAL)(\(53\))?", "AS DOUBLE", tree.sql("duckdb"))
    agree_on_classes(one, con.execute(read).fetchall())


@pytest.mark.slow
def test_javascript_repairs_several_classes_as_python_does() -> None:
    for one in class_calibrators().values():
        table, _ = of_classes(one)
        rows = [[row["id"], [row[c] for c in CLASSES], {AGE: row[AGE]}] for row in table.to_pylist()]
        calls = f"{json.dumps(rows)}.map(([id, p, row]) => [id, ...(repaired(p, row) ?? [null, null, null])])"
        agree_on_classes(one, in_node(one.to_javascript(), calls))  # type: ignore[arg-type]
        refused = ("[0.5, 0.5]", "0.5", "[0.5, 0.2, '0.3']", "[0.5, 0.7, -0.2]", "null")
        assert in_node(one.to_javascript(), f"[{', '.join(f'repaired({p})' for p in refused)}]") == [None] * 5


# ---- JavaScript ----


def test_javascript_repairs_as_python_does() -> None:
    scripts, calls, expected = [], [], []
    for k, one in enumerate(calibrators().values()):
        table = loaded(one)
        held = [{c: str(v) if hasattr(v, "isoformat") else v for c, v in row.items()} for row in table.to_pylist()]
        scripts.append(one.to_javascript(f"f{k}"))
        calls.append(f"{json.dumps(held)}.map(r => f{k}(r.p, r))")
        expected.append(one)
    found = in_node("\n".join(scripts), f"[{', '.join(calls)}]")
    for one, values in zip(expected, found, strict=True):
        agree(one, list(enumerate(values)))  # type: ignore[arg-type]


def test_javascript_refuses_what_python_refuses() -> None:
    one = calibrators()["AugmentedLogistic"]
    script = one.to_javascript()
    row = {AGE: None, TOWN: "x", "member": True, "income": 3.0, "since": "2015-03-01"}
    calls = [f"repaired({s}, {json.dumps(row)})" for s in ("'0.5'", "null", "NaN", "undefined")]
    calls.append(f"repaired(0.5, {{...{json.dumps(row)}, income: Infinity}})")
    assert in_node(script, f"[{', '.join(calls)}]") == [None] * 5
    page = Calibrator.from_json(one.to_json().replace("O'Brien", "</script>")).to_javascript()
    assert "</script>" not in page
    assert "u003c/script>" in page
    with pytest.raises(cal.BadInput, match="name="):
        one.to_javascript("f(){}; steal")


# ---- what is written, and what is refused ----


def test_a_map_of_the_score_is_an_expression() -> None:
    one = cal.repair.Histogram(bins=2, fewest=1).fit(cal.predictions([0, 1, 0, 1], [0.125, 0.25, 0.75, 0.875]))
    assert one.to_sql("postgres", score="p") == (
        'CASE WHEN CAST("p" AS double precision) >= float8 \'0.0E0\' AND CAST("p" AS double precision) <= '
        "float8 '1.0E0' THEN CASE WHEN CAST(\"p\" AS double precision) < float8 '0.5E0' THEN float8 '0.5E0' "
        "ELSE float8 '0.5E0' END END"
    )


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(cal.NotComputable, match="Jitter"):
        cal.repair.Jitter().fit().to_sql("duckdb")
    with pytest.raises(cal.BadInput, match="choose one of duckdb"):
        calibrators()["Platt"].to_sql("mysql")
    boosted = calibrators()["Multicalibrator"]
    assert boosted.to_dict()["kind"] == "BoostedTrees"
    assert boosted.to_dict()["value"]
    with pytest.raises(cal.NotComputable, match="pass table="):
        boosted.to_sql("duckdb")
    with pytest.raises(cal.BadInput, match="keep="):
        boosted.to_sql("postgres", table="scores")
    with pytest.raises(cal.BadInput, match="table="):
        calibrators()["Platt"].to_sql("duckdb", output="q")
    with pytest.raises(cal.NotComputable, match="character"):
        calibrators()["Platt"].to_sql("duckdb", score="a\0b")
    with pytest.raises(cal.BadInput, match="score='p': this calibrator is of 3 classes: name a column each"):
        class_calibrators()["Dirichlet"].to_sql("duckdb", score="p")
    with pytest.raises(cal.BadInput, match="this calibrator is of 3 classes"):
        class_calibrators()["Dirichlet"].to_sql("duckdb", score=["a", "b", "a"], table="t")
    with pytest.raises(cal.BadInput, match="this calibrator is of one score"):
        calibrators()["Platt"].to_sql("duckdb", score=["a", "b"])
    with pytest.raises(cal.NotComputable, match="pass table="):
        class_calibrators()["Dirichlet"].to_sql("duckdb", score=["a", "b", "c"])


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@pytest.mark.parametrize("text", ["a'b", "a\\", "\\'", "'' OR 1=1 --", "`", "]", '"', "a\nb"])
def test_text_and_names_end_where_they_should(dialect: Any, text: str) -> None:
    sqlglot = pytest.importorskip("sqlglot")
    d = dialect_named(dialect)
    literal, name = d.literal(text), d.name(text)
    read = sqlglot.parse_one(f"SELECT {literal} AS t, {name} AS n", read=dialect)
    first, second = read.expressions
    assert first.this.this.rstrip("|") == text
    assert second.this.name == text


def test_constants_keep_all_digits() -> None:
    for d in DIALECTS.values():
        for value in (0.1, -1e-300, 1.7e308, 1 / 3, 5e-324):
            digits = d.number(value).strip("()").removeprefix("float8 ").strip("'")
            assert float(digits) == value
            assert "E" in digits
        with pytest.raises(cal.NotComputable):
            d.number(math.inf)


def test_broken_formulas_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of the writer with one fault each, which the comparison with Python must reject."""
    from calibrant.repair.formulas import expression

    duckdb = pytest.importorskip("duckdb")

    def differs(one: Calibrator) -> bool:
        con = duckdb.connect()
        con.register("scores", loaded(one))
        try:
            agree(one, con.execute(statement(one, "duckdb")).fetchall())
        except AssertionError:
            return True
        return False

    faults: list[tuple[str, str, Callable[..., Any]]] = [
        ("logarithm", "Beta", lambda p, edge: expression.logged(p + edge)),
        ("stairs", "Histogram", lambda x, edges, values, upto=False: expression.term(values[0])),
        ("within", "Multicalibrator", lambda x, edges, bins: expression.Joined("and", ())),
        ("clipped", "Multicalibrator over groups", lambda x, low, high: x),
    ]
    for what, name, fault in faults:
        with monkeypatch.context() as m:
            m.setattr(expression, what, fault)
            assert differs(calibrators()[name]), what
        assert not differs(calibrators()[name])


def test_files_of_maps_are_as_they_were(tmp_path: Path) -> None:
    one = calibrators()["Platt"]
    assert Calibrator.from_json(one.to_json()).to_sql("spark") == one.to_sql("spark")


# ---- what the command prints is what engines read: no character is shown in another form ----

UNPRINTED = (
    *("\xad", "\u2028", "\u2029", "\u202e", "\x1b[31m", "\x07", "\x7f", "\x85", "\x9b", "\r", "\n", "\t", "\r\n"),
    *("\u200b", "\u200e", "\ufeff", "\u2066", "\U000e0041", "\ue000", "\ufffe", "\u061c", "\x0b", "\x0c", "\x01"),
)
BREAKING = (
    *("⟨U+00AD⟩", "'\x1b", '"\u202e', "\\\xad", "\\u202e", "`"),
    *("'; DROP TABLE scores; --\u2028", "</script>\u2028"),
)
HIDDEN_NAME = "to\u202ewn\xad"


@cache
def of_hidden_levels() -> tuple[Calibrator, pa.Table, list[float]]:
    """A calibrator of 32 levels that a terminal would obey or hide, rows of every one, and what Python repairs."""
    rng = np.random.default_rng([12, 0x501])
    levels = [f"a{c}b" for c in (*UNPRINTED, *BREAKING)]
    k, p = rng.integers(0, len(levels), 6000), rng.uniform(0.2, 0.8, 6000)
    y = rng.random(6000) < np.clip(p + (k - 15) / 100, 0, 1)
    one = cal.repair.AugmentedLogistic(variables=(HIDDEN_NAME,)).fit(
        cal.predictions(y, p, pa.table({HIDDEN_NAME: [levels[i] for i in k]}))
    )
    assert set(one.codings[0].levels) == set(levels)
    asked = np.full(len(levels), 0.4)
    wanted = one.scores(asked, columns=pa.table({HIDDEN_NAME: levels})).tolist()
    assert len(set(wanted)) == len(levels)
    return one, pa.table({"id": range(len(levels)), "p": asked, HIDDEN_NAME: levels}), wanted


@pytest.fixture
def command_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What the command prints of the calibrator."""
    path = tmp_path / "calibrator.json"
    path.write_text(of_hidden_levels()[0].to_json(), encoding="utf-8")

    def printed(*options: str) -> str:
        assert main(["apply", str(path), *options]) == 0
        return capsys.readouterr().out

    return printed


def as_found(found: Sequence[tuple[Any, ...]]) -> None:
    assert np.allclose([v for _, v in sorted(found)], of_hidden_levels()[2], rtol=0, atol=CLOSE)


OF_SCORES = "--score", "p", "--table", "scores", "--keep", "id"


def test_sql_that_the_command_prints_repairs_hidden_characters_as_python_does(
    command_prints: Callable[..., str],
) -> None:
    duckdb, (one, table, _) = pytest.importorskip("duckdb"), of_hidden_levels()
    for dialect in DIALECTS:
        written = one.to_sql(dialect, score="p", table="scores", keep=["id"])
        assert command_prints("-o", f"{dialect}:-", *OF_SCORES) == written + "\n"
    con = duckdb.connect()
    con.register("scores", table)
    as_found(con.execute(command_prints("-o", "duckdb:-", *OF_SCORES)).fetchall())
    as_found(in_sqlite(table, command_prints("-o", "sqlite:-", *OF_SCORES)))


def test_javascript_that_the_command_prints_repairs_hidden_characters_as_python_does(
    command_prints: Callable[..., str],
) -> None:
    rows = json.dumps(of_hidden_levels()[1].to_pylist())
    as_found(in_node(command_prints("-o", "javascript:-"), f"{rows}.map(r => [r.id, repaired(r.p, r)])"))  # type: ignore[arg-type]


@pytest.mark.slow
def test_postgres_repairs_hidden_characters_as_python_does(
    postgres: Callable[[str], str], command_prints: Callable[..., str]
) -> None:
    as_found(in_postgres(postgres, of_hidden_levels()[1], command_prints("-o", "postgres:-", *OF_SCORES).rstrip("\n")))


def test_a_terminal_is_sent_no_sql_that_would_steer_it(
    command_prints: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["apply", str(tmp_path / "calibrator.json"), "-o", "duckdb:-", *OF_SCORES]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert re.fullmatch(
        r"calibrant: what is printed holds ⟨U\+[0-9A-F]{4}⟩, which .*: send it to a file.*\n", printed.err
    )


# ---- a server, and a cluster's engine ----

NO_SPARK = "PySpark 4 is not installed: pip install 'calibrant[spark]'"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Callable[[str], str]]:
    """A server of its own."""
    if why := engines.no_postgres():
        pytest.skip(why)
    with engines.postgres() as run:
        yield run


@pytest.mark.slow
@pytest.mark.parametrize("escaped", ["on", "off"])
def test_postgres_repairs_as_python_does(postgres: Callable[[str], str], escaped: str) -> None:
    for one in calibrators().values():
        written = f"SET standard_conforming_strings = {escaped}; SET escape_string_warning = off;\n"
        table = loaded(one)
        if one.codings:  # no number, as files of floats have it, is a missing one
            place = table.schema.get_field_index(AGE)
            held = [math.nan if v is None else v for v in table.column(AGE).to_pylist()]
            table = table.set_column(place, AGE, pa.array(held))
        agree(one, in_postgres(postgres, table, written + statement(one, "postgres")))
    for one in class_calibrators().values():
        agree_on_classes(one, in_postgres(postgres, of_classes(one)[0], written + classes_requested(one, "postgres")))


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.filterwarnings("ignore::FutureWarning:pyspark", "ignore::UserWarning:pyspark", "ignore::ResourceWarning")
def test_spark_repairs_as_python_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = pytest.importorskip("pyspark.sql", reason=NO_SPARK)
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        pytest.skip("there is no Java, which Spark runs in: install version 17 or set JAVA_HOME")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.log.level", "ERROR").config("spark.sql.session.timeZone", "America/New_York")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    try:
        for k, (name, one) in enumerate(calibrators().items()):
            pq.write_table(loaded(one), tmp_path / f"{k}.parquet")
            session.read.parquet(str(tmp_path / f"{k}.parquet")).createOrReplaceTempView("scores")
            found = session.sql(statement(one, "spark")).collect()
            try:
                agree(one, [(row["id"], row["new"]) for row in found])
            except AssertionError as e:
                raise AssertionError(name) from e
            every = session.sql(one.to_sql("spark", score="p", table="scores"))
            assert every.columns == [*loaded(one).column_names, "p_repaired"]
        for name, one in class_calibrators().items():
            pq.write_table(of_classes(one)[0], tmp_path / f"{name}.parquet")
            session.read.parquet(str(tmp_path / f"{name}.parquet")).createOrReplaceTempView("scores")
            agree_on_classes(one, session.sql(classes_requested(one, "spark")).collect())
    finally:
        session.stop()
