"""One table through every reader: the same rows, the same counts, whatever the file is called or made of."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather, orc

import calibrant as cal
from calibrant.cli import main
from calibrant.data.sources import standard_input
from calibrant.data.sources.files import open_source

N = 240
BY = ["code", "sex", "day", "grade", "big"]
Rows = list[dict[str, Any]]


def table() -> pa.Table:
    """Return rows with codes, dates, categories, gaps, few numbers and whole numbers that no double holds."""
    rng = np.random.default_rng(5)
    p = np.round(rng.uniform(size=N), 6)
    days = [datetime.date(2026, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 90, N)]
    sex = [None if v == 2 else "fm"[v] for v in rng.integers(0, 3, N)]
    return pa.table(
        {
            "y": pa.array((rng.uniform(size=N) < p).astype(int)),
            "p": pa.array(p),
            "code": pa.array([("00002018", "2018", "02139", "NA")[v] for v in rng.integers(0, 4, N)]),
            "sex": pa.array(sex),
            "day": pa.array(days, pa.date32()),
            "grade": pa.array([None if v == 3 else int(v) for v in rng.integers(0, 4, N)], pa.int64()),
            "big": pa.array([2**53 + int(v) for v in rng.integers(0, 3, N)], pa.int64()),
        }
    )


def plain(rows: pa.Table) -> Rows:
    return [{k: v.isoformat() if isinstance(v, datetime.date) else v for k, v in r.items()} for r in rows.to_pylist()]


def lines(rows: pa.Table) -> bytes:
    return b"".join(json.dumps({k: v for k, v in r.items() if v is not None}).encode() + b"\n" for r in plain(rows))


def as_npz(rows: pa.Table, path: Path) -> None:
    columns = {name: rows[name].to_numpy() for name in ("y", "p", "big")}
    columns |= {name: np.array([v or "" for v in rows[name].to_pylist()]) for name in ("code", "sex")}
    columns["day"] = np.array(rows["day"].to_pylist(), dtype="datetime64[D]")
    columns["grade"] = np.array([np.nan if v is None else v for v in rows["grade"].to_pylist()])
    np.savez(path, **columns)


def as_npy(rows: pa.Table, path: Path) -> None:
    as_npz(rows, path.with_suffix(".npz"))
    with np.load(path.with_suffix(".npz")) as held:
        made = np.zeros(N, dtype=[(name, held[name].dtype) for name in held])
        for name in held:
            made[name] = held[name]
    path.with_suffix(".npz").unlink()
    np.save(path, made)


def as_excel(rows: pa.Table, path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    book = openpyxl.Workbook()
    book.active.append(rows.schema.names)
    for row in rows.to_pylist():
        book.active.append([str(v) if k == "big" else v for k, v in row.items()])
        if row["y"] == 1:
            book.active.append([])  # an empty row is no row
    book.save(path)


def as_csv(rows: pa.Table, path: Path) -> None:
    csv.write_csv(rows, path)


WRITERS: dict[str, Callable[[pa.Table, Path], object]] = {
    "log.csv": as_csv,
    "log.tsv": lambda t, f: csv.write_csv(t, f, csv.WriteOptions(delimiter="\t")),
    "log.parquet": pq.write_table,
    "log.arrow": lambda t, f: feather.write_feather(t, f),
    "log.orc": lambda t, f: orc.write_table(t, f),
    "log.jsonl": lambda t, f: f.write_bytes(lines(t)),
    "log.ndjson.gz": lambda t, f: f.write_bytes(gzip.compress(lines(t))),
    "log.json": lambda t, f: f.write_text(json.dumps(plain(t), indent=1)),
    "unnamed": lambda t, f: f.write_bytes(b"\n" + lines(t)),
    "log.npz": as_npz,
    "log.npy": as_npy,
    "log.xlsx": as_excel,
}


@pytest.fixture(scope="module")
def expected() -> cal.Sketch:
    return cal.sketch(table(), label="y", score="p", by=BY)


@pytest.mark.parametrize("file", WRITERS)
def test_every_reader_counts_the_same(tmp_path: Path, expected: cal.Sketch, file: str) -> None:
    WRITERS[file](table(), tmp_path / file)
    found = cal.sketch(tmp_path / file, label="y", score="p", by=BY)
    assert found.spec.variables == expected.spec.variables
    assert found.fingerprint == expected.fingerprint
    rows = cal.read(tmp_path / file, label="y", score="p", by="code")
    assert rows.covariates["code"].to_pylist() == table()["code"].to_pylist()


@pytest.mark.parametrize("file", [f for f in WRITERS if f != "unnamed"])
def test_standard_input_is_read_as_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: cal.Sketch, file: str
) -> None:
    WRITERS[file](table(), tmp_path / file)
    monkeypatch.setattr(standard_input, "_taken", [])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / file).read_bytes())))
    form = ["--format", "jsonl"] if file == "log.jsonl" else []
    columns = ["--label", "y", "--score", "p", "--by", ",".join(BY), "--variables", "none"]
    assert main(["sketch", "-", *form, *columns, "--out", str(tmp_path / "made.sketch")]) == 0
    assert cal.Sketch.from_bytes((tmp_path / "made.sketch").read_bytes()).fingerprint == expected.fingerprint
    assert cal.read("-", label="y", score="p").n == N  # it is kept


def test_compressed_files_are_what_is_in_them(tmp_path: Path, expected: cal.Sketch) -> None:
    (tmp_path / "unnamed").write_bytes(gzip.compress(lines(table())))
    assert cal.sketch(tmp_path / "unnamed", label="y", score="p", by=BY).fingerprint == expected.fingerprint
    pq.write_table(table(), tmp_path / "log.parquet")
    (tmp_path / "unnamed").write_bytes(gzip.compress((tmp_path / "log.parquet").read_bytes()))
    with pytest.raises(cal.BadInput, match="unnamed is a packed file: unpack it first"):
        cal.sketch(tmp_path / "unnamed", label="y", score="p")
    (tmp_path / "unnamed").write_bytes(gzip.compress(b"ORC,y,p\n1,0,0.2\n2,1,0.7\n", mtime=0))
    assert cal.sketch(tmp_path / "unnamed", label="y", score="p").n == 2


@pytest.mark.parametrize(
    ("first", "stated"),
    [
        (b"$FL2@(#)", "an SPSS file"),
        (b"<stata_dta><header>", "a Stata file"),
        (b"\x80\x04\x95", "a pickle"),
        (gzip.compress(b"X\n\0\0\0\3", mtime=0), "a file of R"),
        (b"calibrant sketch", "is a sketch: end its name in .sketch"),
        (b'{\n "name": "r",\n "verdict": "met",\n "verdicts": {', "holds no rows: .* show it by `calibrant report"),
        (b'{"name":"a \\"b\\"","verdict":"not_checked","verdicts":{"everyone":', "is the record of an audit"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\x01\x02\x03", "none of Parquet, Arrow IPC, ORC, text"),
    ],
)
@pytest.mark.parametrize("file", ["log.dat", "log.csv"])
def test_files_of_other_programs_are_called_by_name(tmp_path: Path, first: bytes, stated: str, file: str) -> None:
    (tmp_path / file).write_bytes(first + bytes(600))
    with pytest.raises(cal.BadInput, match="zero bytes" if stated[:4] == "none" and file == "log.csv" else stated):
        cal.sketch(tmp_path / file, label="y", score="p")


def test_two_files_of_one_format_are_told_apart(tmp_path: Path) -> None:
    for file in ("log.jsonl", "log.npz", "log.parquet"):
        folder = tmp_path / file.partition(".")[2]
        folder.mkdir()
        for i in (0, 1):
            WRITERS[file](
                table().slice(120 * i, 120), folder / f"{i}.{file.partition('.')[2]}"
            ) if "npz" not in file else (
                np.savez(
                    folder / f"{i}.npz",
                    y=table()["y"].to_numpy()[120 * i :][:120],
                    p=table()["p"].to_numpy()[120 * i :][:120],
                )
            )
    found = [cal.sketch(tmp_path / kind, label="y", score="p") for kind in ("jsonl", "npz", "parquet")]
    assert [s.n for s in found] == [N] * 3
    assert np.array_equal(found[0].levels.sum(axis=0), found[2].levels.sum(axis=0))


# ---- JSON ----

SOUND = '{"y": 1, "p": 0.5}\n'


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        (SOUND + "{y: 1}\n", "line 2 is not JSON"),
        (SOUND + '{"y": 1, "p": \n', "line 2 is not JSON"),
        (SOUND + "\n3\n", "line 3 is no object"),
        ('[{"y": 1, "p": 0.5}, 7]', "element 2 of the array is no object"),
        ('[{"y": 1, "p": 0.5}', "is not JSON"),
        ('{"a": {"b": 1}, "a.b": 2}\n', "two fields 'a.b'"),
        ("{" * 5000, "is not JSON"),
        (SOUND * 2 + '{"y": 1, "p": "high"}\n', "score column 'p' holds string"),
    ],
)
def test_what_is_no_json_is_told_in_one_line(tmp_path: Path, text: str, stated: str) -> None:
    (tmp_path / "log.jsonl").write_text(text)
    with pytest.raises(cal.BadInput, match=stated) as reported:
        cal.read(tmp_path / "log.jsonl", label="y", score="p")
    assert "\n" not in str(reported.value)


def test_json_types_are_decided_on_all_values(tmp_path: Path) -> None:
    rows = [
        {
            "y": True,
            "p": 1,
            "n": 1,
            "mixed": 7,
            "o": {"in": {"side": "a"}},
            "list": [1, {"b": 2}],
            "large": 2**70,
            "f": 1.5,
        },
        {
            "y": False,
            "p": 0.25,
            "n": 2.5,
            "mixed": "007",
            "o": {"in": {"side": None}},
            "list": [],
            "large": 1,
            "f": float("nan"),
        },
        {"y": False, "p": 0.5, "extra": "x"},
    ]
    (tmp_path / "log.jsonl").write_text("\ufeff" + "\n\n".join(map(json.dumps, rows)))
    by = ["n", "mixed", "o.in.side", "list", "large", "f", "extra"]
    read = cal.read(tmp_path / "log.jsonl", label="y", score="p", by=by)
    assert read.p.tolist() == [1.0, 0.25, 0.5]
    assert read.covariates.to_pydict() == {
        "n": [1.0, 2.5, None],
        "mixed": ["7", "007", None],
        "o.in.side": ["a", None, None],
        "list": ['[1,{"b":2}]', "[]", None],
        "large": [str(2**70), "1", None],
        "f": [1.5, None, None],
        "extra": [None, None, "x"],
    }


# ---- NumPy ----


@pytest.mark.parametrize(
    ("arrays", "stated"),
    [
        ({"y": np.array([1, "a", None], dtype=object), "p": np.zeros(3)}, "holds Python objects"),
        ({"y": np.zeros(3), "p": np.zeros(4)}, "'y' has 3 rows and 'p' 4"),
        ({"y": np.zeros((3, 2, 2))}, "has 3 dimensions"),
        ({}, "unpack it first|holds no arrays|cannot be read"),
    ],
)
def test_arrays_that_are_no_table_are_refused(tmp_path: Path, arrays: dict[str, Any], stated: str) -> None:
    np.savez(tmp_path / "log.npz", **arrays)
    with pytest.raises(cal.BadInput, match=stated):
        cal.read(tmp_path / "log.npz", label="y", score="p")


def test_damaged_arrays_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(cal.BadInput, match="no names"):
        cal.read(tmp_path / "one.npy", label="y", score="p")
    np.save(tmp_path / "softmax.npy", np.full((3, 2), 0.5))
    with pytest.raises(cal.BadInput, match=r"^softmax\.npy holds a matrix of 3 x 2 .*--score 'probs_1'; else .*p=p\)$"):
        cal.read(tmp_path / "softmax.npy", label="y", score="p")
    as_npy(table(), tmp_path / "log.npy")
    as_npz(table(), tmp_path / "log.npz")
    for file in ("log.npy", "log.npz"):
        raw = (tmp_path / file).read_bytes()
        for cut in (7, 60, len(raw) // 2, len(raw) - 1):
            (tmp_path / f"cut{file}").write_bytes(raw[:cut])
            with pytest.raises(cal.BadInput):
                cal.read(tmp_path / f"cut{file}", label="y", score="p")
    claims = (
        np.lib.format.magic(1, 0)
        + b"v\0"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (10**18,), }".ljust(118)
    )
    (tmp_path / "huge.npy").write_bytes(claims)
    with pytest.raises(cal.BadInput):
        cal.read(tmp_path / "huge.npy", label="y", score="p")


def test_a_matrix_is_its_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "log.npz", y=[[0], [1]], p=[0.5, 0.25], x=[[1, 2], [3, 4]])
    rows = cal.read(tmp_path / "log.npz", label="y", score="p", by=["x_0", "x_1"])
    assert rows.covariates.to_pydict() == {"x_0": [1, 3], "x_1": [2, 4]}


# ---- Excel ----


def workbook(path: Path, change: Callable[[Any], object] = lambda _: None) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "scores"
    sheet.append(["y", "p", "site", "when", "sum"])
    for i in range(4):
        sheet.append([i % 2, i / 4, ["01", "1", 5, None][i], datetime.datetime(2026, 1, 1 + i, 6 * i), i])
    change(book)
    book.save(path)
    return path


def test_cells_keep_what_they_hold(tmp_path: Path) -> None:
    path = workbook(tmp_path / "log.xlsx", lambda book: book.create_sheet("empty"))
    rows = cal.read(path, label="y", score="p", by=["site", "when", "sum"])
    assert rows.p.tolist() == [0, 0.25, 0.5, 0.75]
    assert rows.covariates["site"].to_pylist() == ["01", "1", "5", None]
    assert rows.covariates["when"].to_pylist()[3] == datetime.datetime(2026, 1, 4, 18)


def formula(book: Any) -> None:
    book.active["E3"] = "=A3+1"


def title(book: Any) -> None:
    book.active.insert_rows(1)
    book.active["A1"] = "Scores of 2026"


@pytest.mark.parametrize(
    ("change", "stated"),
    [
        (
            lambda book: book.create_sheet("more").append(["y", "p"]),
            r"^log\.xlsx has 2 sheets, 'scores', 'more': name one with sheet= \(--sheet NAME\)$",
        ),
        (lambda book: book.active.merge_cells("D1:E1"), "cells D1 to E1 .* merged"),
        (title, "row 1 holds 'Scores of 2026' alone"),
        (lambda book: book.active.delete_rows(1, 9), "has no sheet with anything in it"),
        (lambda book: setattr(book.active["C1"], "value", "y"), "two columns named 'y'"),
        (lambda book: setattr(book.active["B2"], "value", "high"), "score column 'p' holds string"),
    ],
)
def test_sheets_that_are_no_table_are_refused(tmp_path: Path, change: Callable[[Any], object], stated: str) -> None:
    with pytest.raises(cal.BadInput, match=stated):
        cal.read(workbook(tmp_path / "log.xlsx", change), label="y", score="p")


def test_a_sheet_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = workbook(tmp_path / "log.xlsx", lambda book: book.create_sheet("more").append(["y", "p"]))
    assert cal.read(path, label="y", score="p", sheet="scores").n == 4
    line = ["sketch", str(path), "--label", "y", "--score", "p", "--out", str(tmp_path / "o.sketch")]
    assert main([*line, "--sheet", "scores"]) == 0
    assert main([*line, "--sheet", "none"]) == 2
    assert capsys.readouterr().err == "calibrant: log.xlsx has no sheet 'none': pass one of 'scores', 'more'\n"


def test_formulas_that_were_never_computed_are_told(tmp_path: Path) -> None:
    path = workbook(tmp_path / "log.xlsx", formula)
    assert cal.read(path, label="y", score="p").n == 4
    with pytest.raises(cal.BadInput, match="cell E3 has a formula without a value"):
        cal.read(path, label="y", score="p", by="sum")


def test_damaged_workbooks_are_refused(tmp_path: Path) -> None:
    raw = workbook(tmp_path / "log.xlsx").read_bytes()
    for cut in (5, 100, len(raw) // 2, len(raw) - 1):
        (tmp_path / "cut.xlsx").write_bytes(raw[:cut])
        with pytest.raises(cal.BadInput, match=r"cut\.xlsx"):
            cal.read(tmp_path / "cut.xlsx", label="y", score="p")
    rng = np.random.default_rng(0)
    for _ in range(30):
        bad = bytearray(raw)
        for at in rng.integers(0, len(raw), 5):
            bad[at] ^= 255
        (tmp_path / "bad.xlsx").write_bytes(bad)
        with suppress(cal.BadInput):  # nothing else comes out
            cal.read(tmp_path / "bad.xlsx", label="y", score="p")
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(cal.BadInput, match=r"save it as \.xlsx"):
        cal.read(tmp_path / "old.xls", label="y", score="p")


def test_a_data_set_of_files_named_one_by_one_is_called_by_all_of_them(tmp_path: Path) -> None:
    given = [str(tmp_path / f"{name}.csv") for name in "abc"]
    for path in given:
        Path(path).write_text(f"y,p\n1,0.{len(path)}\n", encoding="utf-8")
    assert open_source(given[0]).name == "a"
    assert open_source(given[:2]).name == f"{given[0]} and {given[1]}"
    assert open_source(given).name == f"{given[0]} and 2 more"
    assert open_source(str(tmp_path / "*.csv")).name == str(tmp_path / "*.csv")


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        (
            '{\n "source": "x",\n "rows": [\n  {"y": 1, "p": 0.5},\n  {"y": 0, "p": 0.4}\n ]\n}',
            "field 'rows' .2.:.*jq -c",
        ),
        ('{"a": {"the rows": [{"y": 1, "p": 0.5}]}}', r"field 'a.the rows' .1.:.*\[\"a\"\]\[\"the rows\"\]\[\]"),
        ('{"train": [{"y": 1}], "test": [{"y": 1}, {"y": 0}]}', "whose fields 'train' .1. and 'test' .2. hold rows"),
        ('{"y": [1, 0],\n "p": [0.5, 0.4]}', "whose fields are columns .'y', 'p'.: write one object a row"),
        ('{"y": {"0": 1, "1": 0}, "p": {"0": 0.5, "1": 0.4}}', "whose fields are columns"),
    ],
)
def test_one_object_that_holds_the_rows_names_their_field(tmp_path: Path, text: str, stated: str) -> None:
    (tmp_path / "x.json").write_text(text)
    for call in (cal.look, cal.audit):
        with pytest.raises(cal.BadInput, match=stated):
            call(tmp_path / "x.json", label="y", score="p")


def test_one_object_that_is_a_row_stays_one(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"y": 1, "p": 0.5, "notes": ["a", "b"]}')
    assert cal.look(tmp_path / "x.json").rows == 1


# ---- columns that hold a list, or a struct, of the probabilities of classes ----

LISTED = np.random.default_rng(5).dirichlet([0.6] * 3, 60)
OF_LISTS = np.array([np.random.default_rng(i).choice(3, p=q) for i, q in enumerate(LISTED)])


def listed(kind: str, path: Path) -> Any:
    """The same rows with their probabilities in one column."""
    texts = [json.dumps(q) for q in LISTED.tolist()]
    lists: dict[str, Any] = {
        "fixed": pa.FixedSizeListArray.from_arrays(LISTED.ravel(), 3),
        "list": pa.array(LISTED.tolist()),
        "large": pa.array(LISTED.tolist(), pa.large_list(pa.float32())),
        "text": texts,
        "struct": pa.array([dict(zip("012", q, strict=True)) for q in LISTED.tolist()]),
    }
    if kind == "pandas":
        return pd.DataFrame({"k": OF_LISTS, "p": LISTED.tolist()})
    if kind == "jsonl":
        lines = (f'{{"k": {k}, "p": {text}}}\n' for k, text in zip(OF_LISTS, texts, strict=True))
        (path / "log.jsonl").write_text("".join(lines))
        return path / "log.jsonl"
    if kind == "csv":
        quoted = (f'{k},"{text}"\n' for k, text in zip(OF_LISTS, texts, strict=True))
        (path / "log.csv").write_text("".join(["k,p\n", *quoted]))
        return path / "log.csv"
    table = pa.table({"k": OF_LISTS, "p": lists[kind.removeprefix("parquet ")]})
    if not kind.startswith("parquet "):
        return table
    pq.write_table(table, path / "log.parquet", row_group_size=25)
    return path / "log.parquet"


@pytest.mark.parametrize(
    "kind", ["fixed", "list", "large", "text", "struct", "pandas", "jsonl", "csv", "parquet fixed"]
)
def test_a_column_of_lists_is_a_column_for_each_class(kind: str, tmp_path: Path) -> None:
    data = listed(kind, tmp_path)
    pattern = "p.*" if kind == "struct" else "p_*"
    made = cal.audit(data, label="k", score=pattern, quick=True, variables=None)
    assert made.everyone.expected == pytest.approx(LISTED.max(axis=1).sum(), rel=1e-6)
    assert [f.events for f in made.classes] == np.bincount(OF_LISTS, minlength=3).tolist()
    seen = cal.look(data)
    assert pattern in seen.command
    assert not seen.refusals


def test_lists_of_classes_that_cannot_be_read_are_refused() -> None:
    lists = LISTED.tolist()
    table = pa.table({"k": OF_LISTS, "p": pa.array([None, *lists[1:]])})
    kept = cal.audit(table, label="k", score="p_*", quick=True, variables=None, missing="drop")
    assert (kept.everyone.rows, kept.data["dropped"]) == (59, 1)
    with pytest.raises(cal.BadInput, match="of several classes: name its parts, 'p_\\*'"):
        cal.audit(table, label="k", score="p", quick=True)
    table = pa.table({"k": OF_LISTS, "p": pa.array([*lists[:4], [0.5, 0.5], *lists[5:]])})
    with pytest.raises(cal.BadInput, match="column 'p': 1 row has lists of another length than 3, first row 4 with 2"):
        cal.audit(table, label="k", score="p_*", quick=True)
    table = pa.table({"k": pa.array(np.array(["a", "b", "c"])[OF_LISTS]), "p": pa.array(lists)})
    with pytest.raises(cal.BadInput, match="number the labels in the order of the columns, from 0"):
        cal.audit(table, label="k", score="p_*", quick=True)


def test_lists_that_are_no_probabilities_stay_as_they_are() -> None:
    table = pa.table({"y": OF_LISTS > 0, "risk": LISTED[:, 0], "embedding": pa.array((9 * LISTED).tolist())})
    assert [c.name for c in cal.look(table).columns] == ["y", "risk", "embedding"]
