"""Files under 10 MB that ask for far more time or memory than files of their size: each with its command.

A bomb is a function that writes one file into a folder and returns the command; `BOMBS` has them by name. `scale` is 1
for the size that took a machine down, and smaller for a test.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from calibrant.data.specs import sketch_file
from e2e.hostile_files import LS, calibrators, records, sketches, texts

MB = 1 << 20
MOST = 2**31 - 1  # rows of a batch of Arrow
Bomb = Callable[[Path], list[str]]
BOMBS: dict[str, Bomb] = {}


def rows_of(path: Path) -> list[str]:
    return ["audit", str(path), *LS, "--quick", "--limit", "0.1"]


def log_of(path: Path) -> list[str]:
    return ["audit", str(path), "--quick", "--limit", "0.1"]


def raw_bomb(
    name: str, file: str, content: Callable[[], bytes], command: Callable[[Path], list[str]] = rows_of
) -> None:
    """A bomb of bytes."""

    def write(folder: Path) -> list[str]:
        path = folder / file
        path.write_bytes(content())
        return command(path)

    BOMBS[name] = write


def streams(pack: Callable[[bytes], bytes], head: bytes, unit: bytes, size: int) -> bytes:
    """Packed text of many megabytes: a head, and one packed block again and again."""
    block = unit * (64 * MB // len(unit))
    return pack(head) + pack(block) * (size // 64)


# ---- text ----

HEAD = b"y,p\n1,0.5\n0,0.4\n"
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda raw: pa.compress(raw, codec="zstd", asbytes=True),
}
for packed, pack in PACKERS.items():
    raw_bomb(f"{packed}: blank lines", f"d.csv.{packed}", lambda pack=pack: streams(pack, HEAD, b"\n", 3_000))  # type: ignore[misc]
    raw_bomb(f"{packed}: rows", f"d.csv.{packed}", lambda pack=pack: streams(pack, HEAD, b"1,0.5\n", 2_500))  # type: ignore[misc]
raw_bomb("gz of gz", "d.csv.gz", lambda: gzip.compress(gzip.compress(streams(gzip.compress, HEAD, b"\n", 6_000))))
raw_bomb("gz: one row", "d.csv.gz", lambda: streams(gzip.compress, b'y,p\n"', b"a", 3_000))
raw_bomb("text: blank lines", "d.csv", lambda: HEAD + b"\n" * 9 * MB)
raw_bomb("text: quotes", "d.csv", lambda: HEAD + b'"' * 9 * MB)
raw_bomb("text: quoted commas", "d.csv", lambda: HEAD + b'",' * 4 * MB)
raw_bomb("text: commas", "d.csv", lambda: b"y,p" + b"," * 9 * MB + b"\n")
raw_bomb("text: short rows", "d.csv", lambda: HEAD + b"1,1\n" * (9 * MB // 4))
raw_bomb("text: a comment a line", "d.csv", lambda: b"#\n" * 4 * MB + HEAD)
raw_bomb("text: a long name", "d.csv", lambda: b"y,p," + b"a" * 9 * MB + b"\n1,0.5,1\n")
raw_bomb(
    "text: 200,002 columns",
    "d.csv",
    lambda: b"y,p," + b",".join(b"c%d" % i for i in range(200_000)) + b"\n" + b"1,.5" + b",1" * 200_000,
)
raw_bomb(
    "text: 3,000 columns",
    "d.csv",
    lambda: b"y,p," + b",".join(b"c%d" % i for i in range(3_000)) + b"\n" + (b"1,.5" + b",1" * 3_000 + b"\n") * 1_400,
)
raw_bomb("text: a number of 8 MB", "d.csv", lambda: HEAD + b"1,0." + b"1" * 8 * MB + b"\n")
raw_bomb("text: numbers of 4,000 digits", "d.csv", lambda: HEAD + (b"1,0." + b"5" * 4_000 + b"\n") * 2_000)
for what, unit in (("digits", b"1"), ("spaces", b" "), ("dots", b"1."), ("dashes", b"2020-"), ("colons", b"12:")):
    row = b"1,0.5," + unit * (200_000 // len(unit)) + b"\n"
    raw_bomb(f"text: fields of {what}", "d.csv", lambda row=row: b"y,p,x\n" + row * 40)  # type: ignore[misc]
raw_bomb(
    "text: a million names",
    "d.csv",
    lambda: b"y,p,g\n" + b"".join(b"1,.5,g%d\n" % i for i in range(700_000)),
    lambda p: [*rows_of(p), "--by", "g"],
)


# ---- JSON ----


def nested(begin: str, end: str, times: int) -> bytes:
    return ('{"y":1,"p":0.5,"x":' + begin * times + "1" + end * times + "}\n").encode()


raw_bomb("JSON lines: empty objects, packed", "d.jsonl.gz", lambda: streams(gzip.compress, b"", b"{}\n", 2_000))
raw_bomb(
    "JSON lines: blank lines, packed", "d.jsonl.gz", lambda: streams(gzip.compress, b'{"y":1,"p":0.5}\n', b"\n", 6_000)
)
raw_bomb("JSON: blanks, packed", "d.json.gz", lambda: streams(gzip.compress, b"[", b" ", 6_000))
raw_bomb("JSON: lists in lists", "d.jsonl", lambda: nested("[", "]", 4 * MB))
raw_bomb("JSON: objects in objects", "d.jsonl", lambda: nested('{"a":', "}", MB))
raw_bomb("JSON: lists in lists, no deeper than read", "d.jsonl", lambda: nested("[", "]", 900) * 4_000)
raw_bomb(
    "JSON lines: new fields",
    "d.jsonl",
    lambda: b"\n".join(json.dumps({f"f{i}_{j}": 1 for j in range(500)}).encode() for i in range(400)),
)
raw_bomb("JSON lines: 700,000 fields", "d.jsonl", lambda: json.dumps({f"f{j}": 1 for j in range(700_000)}).encode() * 1)
raw_bomb(
    "JSON lines: a long name of many fields",
    "d.jsonl",
    lambda: json.dumps({"y": 1, "p": 0.5, "k" * 2 * MB: {f"f{j}": 1 for j in range(50_000)}}).encode(),
)
raw_bomb(
    "JSON lines: long names in long names",
    "d.jsonl",
    lambda: json.dumps({"y": 1, "a" * MB: {"b" * MB: {"c" * MB: {f"f{j}": j for j in range(90_000)}}}}).encode(),
)
raw_bomb("JSON: a number of 9 MB", "d.jsonl", lambda: b'{"y":1,"p":0.5,"x":' + b"9" * 9 * MB + b"}")
raw_bomb("JSON: numbers of 4,000 digits", "d.jsonl", lambda: (b'{"y":1,"p":0.5,"x":' + b"9" * 4_000 + b"}\n") * 2_200)
raw_bomb("JSON: a fraction of 9 MB", "d.jsonl", lambda: b'{"y":1,"p":0.' + b"5" * 9 * MB + b"}")
raw_bomb("JSON: empty lists", "d.json", lambda: b'[{"y":1,"p":0.5,"x":[' + b"[]," * 3 * MB + b"[]]}]")
raw_bomb("JSON: empty objects", "d.json", lambda: b"[{}" + b",{}" * 3 * MB + b"]")
raw_bomb("JSON: escapes", "d.jsonl", lambda: b'{"y":1,"p":0.5,"x":"' + b"\\u00e9" * (3 * MB // 2) + b'"}')


# ---- arrays ----


def header(kind: str, shape: str, blank: int = 0) -> bytes:
    text = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}" + " " * blank
    text += " " * (63 - (len(text) + 12) % 64) + "\n"
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text.encode()


def archived(**members: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as z:
        for name, raw in members.items():
            z.writestr(name.replace("__", "/").replace("_dot_", "."), raw)
    return held.getvalue()


def npz(kind: str, shape: str, more: bytes = b"") -> Callable[[], bytes]:
    return lambda: archived(y_dot_npy=header(kind, shape) + more, p_dot_npy=header("'<f8'", "(0,)"))


def overlapping(first: str, content: bytes, names: list[str]) -> bytes:
    """An archive of which every entry of the directory names the same packed bytes."""
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = packed.compress(content) + packed.flush()
    crc = zlib.crc32(content)
    out = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 0, 8, 0, 33, crc, len(body), len(content), len(first), 0)
    out += first.encode() + body
    begin, directory = len(out), b""
    for name in [first, *names]:
        directory += struct.pack(
            "<4sHHHHHHIIIHHHHHII",
            b"PK\1\2",
            20,
            20,
            0,
            8,
            0,
            33,
            crc,
            len(body),
            len(content),
            len(name),
            0,
            0,
            0,
            0,
            0,
            0,
        )
        directory += name.encode()
    count = min(1 + len(names), 65_535)
    return out + directory + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, count, count, len(directory), begin, 0)


raw_bomb("NumPy: text of no size", "d.npz", npz("'<U0'", "(1000000000,)"))
raw_bomb("NumPy: bytes of no size", "d.npz", npz("'|S0'", "(1000000000,)"))
raw_bomb("NumPy: no rows of many columns", "d.npz", npz("'<f8'", "(0, 1000000000)"))
raw_bomb("NumPy: many rows of nothing", "d.npz", npz("'<f8'", "(1000000000, 0, 5)"))
raw_bomb("NumPy: one huge value", "d.npz", npz("'<U500000000'", "(0,)"))
raw_bomb("NumPy: zeros", "d.npz", lambda: archived(y_dot_npy=header("'|i1'", "(2000000000,)") + bytes(2_000_000_000)))
raw_bomb("NumPy: fields of many values", "d.npy", lambda: header("[('y', '|i1', (500000000,))]", "(0,)"))
raw_bomb("NumPy: many fields", "d.npy", lambda: header(str([(f"f{i}", "<f8") for i in range(200_000)]), "(0,)"))
raw_bomb("NumPy: a header of 9 MB", "d.npy", lambda: header("'<f8'", "(1,)", 9 * MB))
raw_bomb("NumPy: a header in brackets", "d.npy", lambda: header("(" * 4 * MB, "(1,)"))
raw_bomb("NumPy: many dimensions", "d.npy", lambda: header("'<f8'", "(" + "1," * MB + ")"))
raw_bomb(
    "NumPy: many arrays", "d.npz", lambda: archived(**{f"a{i}_dot_npy": header("'<f8'", "(0,)") for i in range(30_000)})
)
raw_bomb(
    "NumPy: entries that overlap",
    "d.npz",
    lambda: overlapping(
        "a.npy", header("'<f8'", "(4000000,)") + bytes(32_000_000), [f"a{i}.npy" for i in range(1_000)]
    ),
)


# ---- workbooks ----

NS = "http://schemas.openxmlformats.org"
MAIN = f'xmlns="{NS}/spreadsheetml/2006/main"'


TYPES = f"{NS}/officeDocument/2006/relationships"
SHEET = '<sheet name="S" sheetId="1" r:id="rId1"/>'


def workbook(
    rows: str = "", *, times: int = 1, before: str = "", after: str = "", book: str = "", texts: str = ""
) -> Callable[[], bytes]:
    """A workbook of two columns and three rows, and what is added."""
    data = "".join(f'<row r="{i}"><c r="A{i}"><v>{i % 2}</v></c><c r="B{i}"><v>0.5</v></c></row>' for i in range(2, 5))
    names = '<row r="1"><c r="A1" t="str"><v>y</v></c><c r="B1" t="str"><v>p</v></c></row>'

    def made() -> bytes:
        sheet = f"<sheetData>{names}{data}{rows * times}</sheetData>{after}"
        relation = f'<Relationships xmlns="{NS}/package/2006/relationships"><Relationship Id="rId1" Type="{TYPES}'
        kept = {
            "_rels/.rels": f'{relation}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": book or book_of(SHEET),
            "xl/_rels/workbook.xml.rels": f'{relation}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
            "xl/worksheets/sheet1.xml": f"{before}<worksheet {MAIN}>{sheet}</worksheet>",
        }
        if texts:
            kept["xl/sharedStrings.xml"] = f"<sst {MAIN}>{texts}</sst>"
        return archived(**{k: v.encode() for k, v in kept.items()})

    return made


def book_of(sheets: str, before: str = "") -> str:
    return f'{before}<workbook {MAIN} xmlns:r="{TYPES}"><sheets>{sheets}</sheets></workbook>'


LAUGHS = (
    "<!DOCTYPE x [<!ENTITY a0 'ha'>" + "".join(f"<!ENTITY a{i} '{f'&a{i - 1};' * 10}'>" for i in range(1, 11)) + "]>"
)
ONE = '<sheet name="&a10;" sheetId="1" r:id="rId1"/>'
STRAY = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
raw_bomb("Excel: a stray cell", "d.xlsx", workbook(STRAY))
raw_bomb(
    "Excel: stray cells without a place",
    "d.xlsx",
    workbook('<row r="1048576">' + "<c><v>1</v></c>" * 16_384 + "</row>"),
)
raw_bomb("Excel: a claimed dimension", "d.xlsx", workbook(after='<dimension ref="A1:XFD1048576"/>'))
raw_bomb(
    "Excel: merged ranges",
    "d.xlsx",
    workbook(after="<mergeCells>" + '<mergeCell ref="A1:XFD1048576"/>' * 500_000 + "</mergeCells>"),
)
raw_bomb("Excel: blanks", "d.xlsx", workbook(" " * MB, times=1_500))
raw_bomb("Excel: empty cells", "d.xlsx", workbook("<row>" + "<c/>" * 1_000 + "</row>", times=30_000))
raw_bomb("Excel: many rows", "d.xlsx", workbook("<row><c><v>1</v></c></row>", times=1_000_000))
raw_bomb(
    "Excel: a text in every row",
    "d.xlsx",
    workbook(
        "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(9, 200_000)),
        texts=f"<si><t>{'a' * MB}</t></si>",
    ),
)
raw_bomb(
    "Excel: formulas of blanks", "d.xlsx", workbook(f'<row r="9"><c r="A9"><f>1</f>{" " * 2_000_000}<x/></c></row>' * 3)
)
raw_bomb("Excel: cells that never end", "d.xlsx", workbook('<row r="9"><c ' + 'r="A9" ' * 1_000_000 + "</row>"))
raw_bomb(
    "Excel: entities in a sheet",
    "d.xlsx",
    workbook('<row r="9"><c r="A9" t="str"><v>&a10;</v></c></row>', before=LAUGHS),
)
raw_bomb("Excel: entities in the list of sheets", "d.xlsx", workbook(book=book_of(ONE, LAUGHS)))
raw_bomb(
    "Excel: many sheets",
    "d.xlsx",
    workbook(book=book_of("".join(f'<sheet name="S{i}" sheetId="{i}" r:id="rId1"/>' for i in range(1, 200_000)))),
)
raw_bomb("Excel: elements in elements", "d.xlsx", workbook("<a>", times=3_000_000))


# ---- logs and archives ----

START = json.dumps({"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}).encode()


def evaluation(*samples: bytes) -> bytes:
    return archived(header_dot_json=START, **{f"samples__{k}_epoch_1_dot_json": raw for k, raw in enumerate(samples)})


SAMPLE = b'{"id":1,"epoch":1,"scores":{"a":{"value":"C"}},"metadata":{"x":%b}}'
raw_bomb(
    "Inspect: a sample of blanks", "d.eval", lambda: evaluation(b'{"id":1,"scores":{}}' + b" " * 2_000 * MB), log_of
)
raw_bomb("Inspect: empty lists", "d.eval", lambda: evaluation(SAMPLE % (b"[" + b"[]," * 60 * MB + b"1]")), log_of)
raw_bomb(
    "Inspect: entries that overlap",
    "d.eval",
    lambda: overlapping("header.json", START + b" " * 100 * MB, [f"samples/{i}_epoch_1.json" for i in range(900)]),
    log_of,
)
raw_bomb(
    "Inspect: many samples",
    "d.eval",
    lambda: evaluation(
        *[b'{"id":%d,"scores":{"a":{"value":"C"}},"metadata":{"confidence":0.5}}' % i for i in range(30_000)]
    ),
    log_of,
)
raw_bomb(
    "Inspect: a long name of many fields",
    "d.eval",
    lambda: evaluation(SAMPLE % json.dumps({"k" * MB: {f"f{j}": 1 for j in range(50_000)}}).encode()),
    log_of,
)
raw_bomb(
    "lm-eval: new fields",
    "samples_t.jsonl",
    lambda: b"\n".join(
        json.dumps(
            {"doc_id": i, "doc": {f"f{i}_{j}": 1 for j in range(500)}, "filtered_resps": [], "acc": 1.0}
        ).encode()
        for i in range(400)
    ),
    log_of,
)
raw_bomb(
    "lm-eval: a long name of many fields",
    "samples_t.jsonl",
    lambda: json.dumps(
        {"doc_id": 1, "doc": {"k" * MB: {f"f{j}": 1 for j in range(50_000)}}, "filtered_resps": [], "acc": 1.0}
    ).encode(),
    log_of,
)
raw_bomb(
    "lm-eval: lists in lists",
    "samples_t.jsonl",
    lambda: b'{"doc_id":1,"doc":{},"filtered_resps":' + b"[" * 2 * MB + b"]" * 2 * MB + b',"acc":1}',
    log_of,
)


# ---- files of columns ----


def parquet_of(columns: Callable[[], pa.Table], times: int, **options: Any) -> Callable[[], bytes]:
    def made() -> bytes:
        rows, held = columns(), pa.BufferOutputStream()
        with pq.ParquetWriter(held, rows.schema, **options) as writer:
            for _ in range(times):
                writer.write_table(rows, row_group_size=1 << 26)
        return bytes(held.getvalue())

    return made


def constant(rows: int, text: str = "") -> pa.Table:
    """Rows that are all alike."""
    columns: dict[str, Any] = {"y": pa.array(np.arange(rows) % 2, pa.int8()), "p": pa.array(np.full(rows, 0.5))}
    if text:
        columns["g"] = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), [text])
    return pa.table(columns)


def ipc(batch: Callable[[], pa.RecordBatch], times: int = 1, compression: str | None = None) -> Callable[[], bytes]:
    def made() -> bytes:
        one, held = batch(), pa.BufferOutputStream()
        with pa.ipc.new_file(held, one.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
            for _ in range(times):
                writer.write_batch(one)
        return bytes(held.getvalue())

    return made


def orc_of(columns: Callable[[], pa.Table], **options: Any) -> Callable[[], bytes]:
    def made() -> bytes:
        held = pa.BufferOutputStream()
        orc.write_table(columns(), held, **options)
        return bytes(held.getvalue())

    return made


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(columns)


def run_ends(value: pa.Array, rows: int) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int64()), value)


def as_binary(value: pa.Table) -> pa.Table:
    return value.set_column(2, "g", value["g"].cast(pa.string()))


TEXT = "a" * MB
raw_bomb(
    "Parquet: rows that are all alike", "d.parquet", parquet_of(lambda: constant(20_000_000), 20, compression="zstd")
)
raw_bomb(
    "Parquet: one text in every row",
    "d.parquet",
    parquet_of(lambda: constant(2_000_000, TEXT), 1, compression="zstd"),
    lambda p: [*rows_of(p), "--by", "g"],
)
raw_bomb(
    "Parquet: zeros, packed",
    "d.parquet",
    parquet_of(
        lambda: pa.table({"y": np.zeros(20_000_000, np.int64), "p": np.zeros(20_000_000)}),
        10,
        compression="zstd",
        use_dictionary=False,
    ),
)
raw_bomb(
    "Parquet: texts of zeros, packed",
    "d.parquet",
    parquet_of(
        lambda: pa.table({"y": [0, 1] * 500, "p": [0.5] * 1000, "g": [TEXT] * 1000}),
        1,
        compression="zstd",
        use_dictionary=False,
    ),
    lambda p: [*rows_of(p), "--by", "g"],
)
raw_bomb(
    "Parquet: many columns",
    "d.parquet",
    parquet_of(lambda: pa.table({"y": [0, 1], "p": [0.5, 0.5], **{f"c{i}": [0, 1] for i in range(15_000)}}), 1),
)
raw_bomb("Parquet: many row groups", "d.parquet", parquet_of(lambda: constant(2), 25_000))
raw_bomb(
    "Parquet: nulls",
    "d.parquet",
    parquet_of(lambda: pa.table({"y": pa.nulls(50_000_000, pa.int8()), "p": pa.nulls(50_000_000, pa.float64())}), 10),
)
raw_bomb(
    "Parquet: empty lists",
    "d.parquet",
    parquet_of(
        lambda: pa.table(
            {
                "y": [0, 1] * 5_000_000,
                "p": [0.5] * 10_000_000,
                "x": pa.ListArray.from_arrays(pa.array(np.zeros(10_000_001, np.int32)), pa.array([], pa.int8())),
            }
        ),
        5,
        compression="zstd",
    ),
)
raw_bomb("Arrow: nulls without bytes", "d.arrow", ipc(lambda: batch(y=pa.nulls(MOST), p=pa.nulls(MOST))))
raw_bomb(
    "Arrow: run ends",
    "d.arrow",
    ipc(lambda: batch(y=run_ends(pa.array([1], pa.int8()), MOST), p=run_ends(pa.array([0.5]), MOST))),
)
raw_bomb(
    "Arrow: zeros, packed", "d.arrow", ipc(lambda: batch(y=np.zeros(10**8, np.int8), p=np.zeros(10**8)), 10, "zstd")
)
raw_bomb(
    "Arrow: one text in every row",
    "d.arrow",
    ipc(
        lambda: batch(
            y=np.zeros(10**6, np.int8),
            p=np.zeros(10**6),
            g=pa.DictionaryArray.from_arrays(pa.array(np.zeros(10**6, np.int32)), [TEXT]),
        ),
        1,
        "zstd",
    ),
    lambda p: [*rows_of(p), "--by", "g"],
)
raw_bomb(
    "Arrow: bytes of no size",
    "d.arrow",
    ipc(lambda: batch(y=pa.nulls(MOST), p=pa.Array.from_buffers(pa.binary(0), MOST, [None, pa.py_buffer(b"")]))),
)
raw_bomb(
    "Arrow: structs without fields",
    "d.arrow",
    ipc(lambda: batch(y=pa.nulls(MOST), p=pa.StructArray.from_buffers(pa.struct([]), MOST, [None]))),
)
raw_bomb("Arrow: many batches", "d.arrow", ipc(lambda: batch(y=[1], p=[0.5]), 30_000))
raw_bomb("Arrow: many columns", "d.arrow", ipc(lambda: batch(**{f"c{i}": [0, 1] for i in range(25_000)})))
raw_bomb("Arrow: a claimed length", "d.arrows", lambda: b"\xff\xff\xff\xff\xff\xff\xff\x7f" + b"a" * 1000)
raw_bomb("ORC: rows that are all alike", "d.orc", orc_of(lambda: constant(100_000_000), compression="zstd"))
raw_bomb(
    "ORC: zeros, packed",
    "d.orc",
    orc_of(lambda: pa.table({"y": np.zeros(50_000_000, np.int64), "p": np.zeros(50_000_000)}), compression="zlib"),
)
raw_bomb(
    "ORC: one text in every row",
    "d.orc",
    orc_of(lambda: pa.table({"y": [0, 1] * 500, "p": [0.5] * 1000, "g": [TEXT] * 1000}), compression="zstd"),
    lambda p: [*rows_of(p), "--by", "g"],
)


# ---- what calibrant itself writes ----


def of_sketch(change: Callable[[Any, bytes], tuple[Any, bytes]]) -> Bomb:
    """A sketch of which header and numbers are changed, under a checksum that is right."""

    def write(folder: Path) -> list[str]:
        (folder / "a.csv").write_bytes(texts()[0][1])
        head, body = sketch_file.halves(sketch_file.content_of(sketches(folder)[1][1]))
        first, numbers = change(json.loads(bytes(head)), bytes(body))
        text = first if isinstance(first, bytes) else json.dumps(first).encode()
        path = folder / "d.sketch"
        path.write_bytes(sketch_file.with_checksum(sketch_file.with_sizes(text, numbers)))
        return log_of(path)

    return write


BOMBS["sketch: numbers of zeros"] = of_sketch(lambda h, b: (h, zlib.compress(bytes(2_000 * MB), 9)))
BOMBS["sketch: a header of names"] = of_sketch(lambda h, b: (h | {f"n{i}": i for i in range(500_000)}, b))
BOMBS["sketch: a header in lists"] = of_sketch(lambda h, b: (b"[" * 8 * MB, b))
BOMBS["sketch: a long number"] = of_sketch(lambda h, b: (b'{"a":' + b"9" * 8 * MB + b"}", b))
BOMBS["sketch: every list long"] = of_sketch(
    lambda h, b: ({k: v * 20_000 if isinstance(v, list) else v for k, v in h.items()}, b)
)
BOMBS["sketch: every number large"] = of_sketch(
    lambda h, b: ({k: 2**62 if type(v) is int else v for k, v in h.items()}, b)
)


def of_calibrator(which: int, change: Callable[[str], str]) -> Bomb:
    def write(folder: Path) -> list[str]:
        path, rows = folder / "c.json", folder / "rows.csv"
        rows.write_text("p,x,g\n0.5,1,a\n0.2,0,b\n")
        path.write_text(change(calibrators()[which][1].decode()))
        return ["apply", str(path), str(rows), "--score", "p", "--out", str(folder / "out.csv")]

    return write


def longer(text: str, times: int) -> str:
    """JSON of which every list is longer, up to some 9 MB."""

    def grown(v: Any) -> Any:
        if isinstance(v, dict):
            return {k: grown(w) for k, w in v.items()}
        return v * max(times // max(len(v), 1), 1) if isinstance(v, list) and v and not isinstance(v[0], dict) else v

    return json.dumps(grown(json.loads(text)))[: 9 * MB]


for i, name in enumerate(("slopes", "steps", "levels", "rounding")):
    BOMBS[f"calibrator: long lists of {name}"] = of_calibrator(i, lambda t: longer(t, 100_000))
BOMBS["calibrator: a million names"] = of_calibrator(
    0, lambda t: t.replace("{", "{" + ",".join(f'"n{i}":1' for i in range(600_000)) + ",", 1)
)
BOMBS["calibrator: lists in lists"] = of_calibrator(0, lambda t: t.replace("{", '{"x":' + "[" * 4 * MB, 1))
BOMBS["calibrator: empty lists"] = of_calibrator(0, lambda t: t.replace("{", '{"x":[' + "[]," * 2 * MB + "1],", 1))
BOMBS["calibrator: a long number"] = of_calibrator(0, lambda t: t.replace("{", '{"x":' + "9" * 8 * MB + ",", 1))
BOMBS["calibrator: a long kind"] = of_calibrator(0, lambda t: json.dumps(json.loads(t) | {"kind": "k" * 8 * MB}))


def of_record(change: Callable[[dict[str, Any]], Any]) -> Bomb:
    def write(folder: Path) -> list[str]:
        path = folder / "r.json"
        changed = change(json.loads(records()[0][1]))
        path.write_text(changed if isinstance(changed, str) else json.dumps(changed))
        return ["report", str(path), "-o", str(folder / "out.html")]

    return write


def page_of(content: bytes) -> bytes:
    body = base64.b64encode(content).decode()
    return f'<html><script type="application/gzip" id="calibrant-result">{body}</script></html>'.encode()


def reported(path: Path) -> list[str]:
    return ["report", str(path), "-o", str(path.with_name("out.html"))]


BOMBS["record: many groups"] = of_record(lambda d: d | {"groups": d["groups"] * 1_200})
BOMBS["record: many warnings"] = of_record(lambda d: d | {"data": d["data"] | {"warnings": ["one-class"] * 600_000}})
BOMBS["record: long names"] = of_record(lambda d: d | {"name": "n" * 8 * MB})
BOMBS["record: many files"] = of_record(lambda d: d | {"data": d["data"] | {"left_out": [["a", "b"]] * 600_000}})
BOMBS["record: long columns"] = of_record(
    lambda d: (
        d
        | {
            "curves": {
                "inference": {"method": "measure.inferred_mean", "columns": {"bias": [0.1] * 1_500_000}, "settings": {}}
            }
        }
    )
)
BOMBS["record: many curves"] = of_record(lambda d: d | {"curves": {f"variable_curve/{i}": {} for i in range(300_000)}})
BOMBS["record: many versions"] = of_record(
    lambda d: d | {"versions": d["versions"] | {f"v{i}": "1" for i in range(500_000)}}
)
BOMBS["record: empty lists"] = of_record(lambda d: '{"schema":"calibrant/4","x":[' + "[]," * 3 * MB + "[]]}")
raw_bomb("page: blanks, packed", "d.html", lambda: page_of(streams(gzip.compress, b"{", b" ", 6_000)), reported)
raw_bomb(
    "page: empty lists, packed",
    "d.html",
    lambda: page_of(gzip.compress(b'{"schema":"calibrant/4","x":[' + b"[]," * 20 * MB + b"[]]}")),
    reported,
)
raw_bomb(
    "page: unclosed", "d.html", lambda: b'<script type="application/json" id="calibrant-result">' * 150_000, reported
)


def words_of(path: Path) -> list[str]:
    rows = path.with_name("rows.csv")
    rows.write_bytes(HEAD * 1 + b"1,0.3\n0,0.6\n" * 20)
    return ["audit", str(rows), *LS, "--quick", "--about", str(path)]


raw_bomb("words: lists in lists", "a.toml", lambda: b"model = " + b"[" * 4 * MB, words_of)
raw_bomb("words: names in names", "a.toml", lambda: b"a." * MB + b"a = 1", words_of)
raw_bomb("words: many names", "a.toml", lambda: b"".join(b"n%d = 1\n" % i for i in range(600_000)), words_of)
raw_bomb(
    "words: tables in tables",
    "a.toml",
    lambda: b"".join(b"[" + b".".join(b"a" for _ in range(k % 900 + 1)) + b".b%d]\n" % k for k in range(5_000)),
    words_of,
)
raw_bomb("words: a long number", "a.toml", lambda: b"model = " + b"9" * 8 * MB, words_of)
raw_bomb("words: a long text", "a.toml", lambda: b'model = "' + b"m" * 8 * MB + b'"', words_of)
