"""No file makes its reader take more than its size allows: bombs are refused in a line, in little time and memory."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import re
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc

import calibrant as cal
from calibrant.apps.llm_logs.answers import plain
from calibrant.data import read
from calibrant.data.sources import budget, columnar, delimited, formats
from calibrant.data.sources.files import open_source
from calibrant.data.sources.source import Form
from calibrant.errors import first_line
from calibrant.repair import Calibrator

SECONDS = 6.0  # of CPU: each takes less than one, and minutes where work goes before size
PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small budget, so that small bombs are over it."""
    monkeypatch.setattr(budget, "FREE", 1 << 20)


def refused(path: Path, said: str) -> None:
    """The file is refused in a short line that says why, in seconds."""
    began = time.process_time()
    with pytest.raises(cal.BadInput, match=said) as e:
        open_source(path)
    assert time.process_time() - began < SECONDS
    assert "\n" not in str(e.value)
    assert len(str(e.value)) < 400


# ---- text ----


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize(
    ("name", "head", "unit", "size"),
    [
        ("d.csv", b"y,p\n1,.5\n", b"\n", 6),
        ("d.json", b"[", b" ", 2),
        ("d.json", b"[{}", b",{}", 1),
        ("d.jsonl", b"", b"{}\n", 1),
        ("d.jsonl", b'{"y":1,"p":0.5}\n', b"\n", 2),
        ("samples_x.jsonl", b'{"doc_id": 1, "doc": {"a": [', b"{},", 1),
    ],
)
@pytest.mark.usefixtures("little")
def test_what_a_packed_file_unpacks_to_is_bounded(
    name: str, head: bytes, unit: bytes, size: int, packed: str, tmp_path: Path
) -> None:
    path = tmp_path / f"{name}.{packed}"
    path.write_bytes(PACKERS[packed](head + unit * ((size << 20) // len(unit))))
    refused(path, "unpacks to")


@pytest.mark.usefixtures("little")
def test_a_file_that_is_not_packed_is_never_over_its_budget() -> None:
    rng = random.Random(5)
    for unit in (b"{},", b"[],", b"[", b"\n", b"1,", b'"",', b'{"a":1}\n', b"{}\n"):
        text = unit * 50_000
        assert budget.json_size(text) <= budget.RATIO * len(text)
        assert budget.streamed_size(text) <= budget.RATIO * len(text)
    noise = bytes(rng.choices(b'[]{}",:1 \n', k=10_000))
    assert budget.json_size(noise) <= budget.RATIO * len(noise)


@pytest.mark.slow
def test_columns_are_bounded_and_new_fields_are_read_in_time_of_the_text(tmp_path: Path) -> None:
    lines = (json.dumps({f"f{i}_{j}": 1 for j in range(500)}) for i in range(400))
    (tmp_path / "d.jsonl").write_text("\n".join(lines))
    refused(tmp_path / "d.jsonl", "has 1[0-9]{2},[0-9]{3} fields in [0-9]{3} rows")
    few = (json.dumps({"y": 1, f"f{i}": 1}) for i in range(2000))
    (tmp_path / "few.jsonl").write_text("\n".join(few))
    assert len(open_source(tmp_path / "few.jsonl").columns) == 2001
    (tmp_path / "d.csv").write_text(f"a{',' * 20_000}\n1{',' * 20_000}\n")
    began = time.process_time()
    assert len(delimited.head_of(tmp_path / "d.csv", Form()).columns) == 20_001
    assert time.process_time() - began < SECONDS


# ---- arrays ----


def header(kind: str, shape: str) -> bytes:
    text = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (63 - (len(text) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def as_npz(path: Path, **arrays: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, raw in arrays.items():
            z.writestr(f"{name}.npy", raw)
    return path


@pytest.mark.parametrize(
    ("kind", "shape", "said"),
    [
        ("'<U0'", "(1000000000,)", "have no size"),
        ("'|S0'", "(1000000000,)", "have no size"),
        ("'|V0'", "(10,)", "have no size"),
        ("'<f8'", "(0, 1000000000)", "1,000,000,001 columns"),
        ("'<f8'", "(1000000000, 0, 5)", "2 columns in 1,000,000,000 rows"),
        ("'<f8'", "(1000000000,)", "truncated"),
        ("'<f8'", "(-1,)", "truncated"),
        ("'<f8'", "((((3,), ", "damaged"),
        ("[('y', '|i1', (500000000,))]", "(0,)", "500,000,001 columns"),
    ],
)
def test_an_array_is_bounded_by_what_is_there(kind: str, shape: str, said: str, tmp_path: Path) -> None:
    refused(as_npz(tmp_path / "d.npz", y=header(kind, shape), p=header("'<f8'", "(0,)")), said)
    if "columns" not in said:
        (tmp_path / "d.npy").write_bytes(header(kind, shape))
        refused(tmp_path / "d.npy", said)


@pytest.mark.usefixtures("little")
def test_what_arrays_unpack_to_is_bounded(tmp_path: Path) -> None:
    held = io.BytesIO()
    np.save(held, np.zeros(1 << 17))
    refused(as_npz(tmp_path / "d.npz", y=held.getvalue(), p=held.getvalue()), "unpacks to arrays of")


# ---- workbooks ----


def workbook(path: Path, rows: str = "", texts: str = "") -> Path:
    """A workbook of two columns and three rows, with more rows."""
    ns = "http://schemas.openxmlformats.org"
    table = "".join(f'<row r="{i}"><c r="A{i}"><v>{i % 2}</v></c><c r="B{i}"><v>0.5</v></c></row>' for i in range(2, 5))
    names = '<row r="1"><c r="A1" t="str"><v>y</v></c><c r="B1" t="str"><v>p</v></c></row>'
    main = f'xmlns="{ns}/spreadsheetml/2006/main"'
    kept = {
        "_rels/.rels": f'<Relationships xmlns="{ns}/package/2006/relationships"><Relationship Id="rId1" '
        f'Type="{ns}/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{ns}/officeDocument/2006/relationships"><sheets>'
        '<sheet name="S" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{ns}/package/2006/relationships"><Relationship Id="rId1" '
        f'Type="{ns}/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f"<worksheet {main}><sheetData>{names}{table}{rows}</sheetData></worksheet>",
    }
    if texts:
        kept["xl/sharedStrings.xml"] = f"<sst {main}>{texts}</sst>"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, text in kept.items():
            z.writestr(name, text)
    return path


def test_a_workbook_with_a_stray_cell_is_refused_before_its_cells_are_made(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    assert open_source(workbook(tmp_path / "d.xlsx")).rows == 3
    stray = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    refused(workbook(tmp_path / "d.xlsx", stray), "cells as far as XFD1048576 in sheet 'S'.*delete what stands far")
    unnamed = f'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>{stray}'.replace(' r="XFD1048576"', "", 1)
    refused(workbook(tmp_path / "d.xlsx", unnamed), "cells as far as")
    prefixed = stray.replace("<row", "<x:row").replace("<c", "<x:c").replace("</row", "</x:row").replace("</c", "</x:c")
    refused(workbook(tmp_path / "d.xlsx", prefixed), "cells as far as")
    formats_alone = '<row r="1048576"><c r="XFD1048576" s="1"/></row>'
    assert open_source(workbook(tmp_path / "d.xlsx", formats_alone)).rows == 3


@pytest.mark.parametrize(
    "rows",
    [
        f'<row r="9"><c r="A9"><f>1</f>{" " * 200_000}<x/></c></row>',
        f'<row r="9"><c r="A9"><f>1</f><v>{" " * 200_000}<x/></v></c></row>',
        '<row r="9"><c ' + 'r="A9" ' * 50_000 + "</row>",
        '<row r="9">' + '<c r="A9"><f>' * 50_000 + "</row>",
        "<c " * 50_000,
    ],
)
def test_sheets_are_looked_through_in_time_of_their_text(rows: str) -> None:
    began = time.process_time()
    raw = rows.encode()
    for pattern in (formats.CELLS, formats.ROWS, formats.SHARED, formats.UNCOMPUTED, formats.TEXTS):
        pattern.findall(raw)
    assert time.process_time() - began < SECONDS


@pytest.mark.usefixtures("little")
def test_texts_that_cells_repeat_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("python_calamine")
    monkeypatch.setattr(formats, "FREE", budget.FREE)
    cells = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(9, 1000))
    texts = f"<si><t>{'a' * 30_000}</t></si>"
    refused(workbook(tmp_path / "d.xlsx", cells, texts), "repeats texts of")
    once = cells.replace("<v>0</v>", "<v>1</v>")
    opened = open_source(workbook(tmp_path / "d.xlsx", once, f"{texts}<si><t>b</t></si>"))
    assert opened.rows == 3 + 991


# ---- logs, and calibrators ----


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (['{"id":1,"scores":{"a":{"value":"C"}},"messages":"' + "a" * (4 << 20) + '"}'], "would unpack to"),
        ([f'{{"id":1,"scores":{{}},"metadata":{{"x":[{"{}," * 60_000}{{}}]}}}}'], "unpacks to JSON of"),
        (
            [f'{{"id":{k},"scores":{{}},"metadata":{{"x":[{"{}," * 4_000}{{}}]}}}}' for k in range(60)],
            "fields of answers",
        ),
    ],
)
def test_what_an_archive_of_answers_unpacks_to_is_bounded(samples: list[str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "d.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}))
        for k, text in enumerate(samples):
            z.writestr(f"samples/{k}_epoch_1.json", text)
    refused(path, said)


def test_names_of_a_calibrator_are_counted_once() -> None:
    fields = ",".join(f'"a{k}":1' for k in range(60_000))
    began = time.process_time()
    with pytest.raises(cal.BadInput, match=re.escape("'a59999' is there twice")):
        Calibrator.from_json(f'{{{fields},"a59999":2}}')
    assert time.process_time() - began < SECONDS


# ---- names of objects in objects, which are made for every field ----

LONG_NAME = {"k" * 200_000: {f"f{j}": 1 for j in range(20_000)}}


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("d.jsonl", {"y": 1, "p": 0.5} | LONG_NAME),
        ("d.json", [{"y": 1, "p": 0.5} | LONG_NAME]),
        ("d.json", {"k" * 200_000: {f"f{j}": [] for j in range(20_000)} | {"rows": [{}]}}),
        ("samples_t.jsonl", {"doc_id": 1, "doc": LONG_NAME, "filtered_resps": [], "acc": 1.0}),
        ("samples_t.jsonl", {"doc_id": 1, "doc": {}, "filtered_resps": [], "acc": 1.0, "more": LONG_NAME}),
    ],
)
def test_names_in_names_are_bounded(name: str, rows: object, tmp_path: Path) -> None:
    (tmp_path / name).write_text(json.dumps(rows))
    refused(tmp_path / name, "names make 2[0-9]{2},[0-9]{3} characters .*give it names of 1,000 at most")


@pytest.mark.parametrize(
    "inside", [{"metadata": LONG_NAME}, {"store": LONG_NAME}, {"scores": {"k" * 200_000: {"value": {"a": 1}}}}]
)
def test_names_in_answers_are_bounded(inside: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "d.eval"
    sample = {"id": 1, "scores": {"a": {"value": "C"}}} | inside
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}))
        z.writestr("samples/1_epoch_1.json", json.dumps(sample))
    refused(path, "names make 2[0-9]{2},[0-9]{3} characters")


def test_fields_of_objects_in_objects_are_read_in_time_of_the_text() -> None:
    fields: dict[str, object] = {f"f{j}": j for j in range(5_000)}
    deep = fields
    for _ in range(300):
        deep = {"a": deep}
    began = time.process_time()
    assert list(plain(deep, "d").values()) == list(fields.values())
    assert time.process_time() - began < SECONDS


# ---- what calibrant writes ----


def test_a_page_of_tags_that_never_end_is_refused_in_time_of_its_text(tmp_path: Path) -> None:
    tag = '<script type="application/json" id="calibrant-result"'
    for i, text in enumerate((f"{tag}>" * 40_000, tag * 40_000, f"{tag} " + "a " * 400_000)):
        path = tmp_path / f"{i}.html"
        path.write_text(text)
        began = time.process_time()
        with pytest.raises(cal.BadInput, match=r"no record|not JSON"):
            cal.AuditRecord.load(path)
        assert time.process_time() - began < SECONDS


# ---- columns, sheets and texts that cost time or memory and few bytes ----


def test_covariates_are_bounded_before_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MOST", 10)
    monkeypatch.setattr(read, "first_look", lambda *_: pytest.fail("they were looked at"))
    columns: dict[str, list[float]] = {"y": [0, 1], "p": [0.5, 0.5]} | {f"c{i}": [0, 1] for i in range(60)}
    table = pa.table(columns)
    with pytest.raises(cal.BadInput, match=r"60 of 62 columns as covariates take too long \(at most 10 of 50\)"):
        cal.audit(table, label="y", score="p", quick=True)
    with pytest.raises(cal.BadInput, match="1 of 62 columns as covariates"):
        cal.audit(table, label="y", score="p", variables=["c1"], quick=True)


def test_sheets_are_bounded_before_any_is_read(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    path, many = workbook(tmp_path / "d.xlsx"), tmp_path / "many.xlsx"
    sheets = "".join(f'<sheet name="S{i}" sheetId="{i}" r:id="rId1"/>' for i in range(2, 5_000)) + "</sheets>"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(many, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).decode().replace("</sheets>", sheets))
    refused(many, r"4,999 sheets that unpack to .*keep the sheet of the table alone")


@pytest.mark.usefixtures("little")
def test_fields_of_answers_are_bounded(tmp_path: Path) -> None:
    lines = (
        {"doc_id": i, "doc": {f"f{i}_{j}": 1 for j in range(50)}, "filtered_resps": [], "acc": 1.0} for i in range(40)
    )
    (tmp_path / "samples_t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    refused(tmp_path / "samples_t.jsonl", "2,00[0-9] fields of answers in 40 rows")


def test_rows_of_orc_are_read_few_at_once_and_all(tmp_path: Path) -> None:
    long, few = "a" * 100_000, 1 << 20
    table = pa.table({"y": [0, 1] * 50, "g": [f"{long}{i % 3}" for i in range(100)]})
    orc.write_table(table, tmp_path / "d.orc", compression="zstd")
    source = open_source(tmp_path / "d.orc")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "BATCH", few)
        for columns in (["g", "y"], ["y"], []):
            batches = [b for part in source.parts for b in part.read(columns, ())]
            assert sum(b.num_rows for b in batches) == 100
            if columns:
                assert pa.Table.from_batches(batches).equals(table.select(columns))
        sizes = [b.nbytes for part in source.parts for b in part.read(["g"], ())]
    assert len(sizes) > 1
    assert max(sizes) <= columnar.FEW * (len(long) + 10)


def test_an_error_that_says_nothing_is_named_by_its_kind() -> None:
    assert first_line(RuntimeError()) == "RuntimeError"
    assert first_line(ValueError("\n \nwrong\nmore")) == "wrong"
