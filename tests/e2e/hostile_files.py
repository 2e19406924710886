"""Sound files of every kind that is read, what reads each, and what damages them: bytes anywhere, or values inside.

`damaged_file` gives the bytes of the i-th damaged file of a kind, the same for one seed wherever it is made.
"""

from __future__ import annotations

import bz2
import copy
import gzip
import io
import json
import lzma
import random
import re
import zipfile
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

import calibrant as cal
from calibrant.cli import main
from calibrant.data.specs import sketch_file
from e2e import corrupt_files

ZSTANDARD = 93  # the method of compression that logs of Inspect take
LS = ["--label", "y", "--score", "p"]
LOGS = Path(__file__).parents[1] / "unit/apps/llm_logs/files"
BIG = "@big@"  # stands for a whole number of 400 digits, NAN for one that JSON has not
NAN = "@nan@"
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 5, 2**31, 2**53, 2**63, -(2**63), 2**64, 0.5, -0.5, 1.5, 1e308, -1e308, 5e-324),
    *("", " ", "x", "inf", "-inf", "\\inf", "nan", "\u202e\x1b[31m", "\ud800", "\0", "0.5", "everyone", "x" * 70_000),
    *([], {}, [[]], [None], [0], [0.5, "x"], ["x", "x"], [[0, 1]], {"": 1}, {"x": {}}, {"value": []}, BIG, NAN),
)


@dataclass(frozen=True)
class Kind:
    """Files of one kind: their names with their bytes, the commands that read them, and what damages them."""

    sound: Callable[[], list[tuple[str, bytes]]]
    commands: tuple[tuple[str, ...], ...]  # FILE stands for the file, OUT for a folder
    harm: Callable[[bytes, int], bytes] = corrupt_files.damaged


# ---- damage to values: any place of plain data, any other value ----


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside plain data; of a long list the first places stand for all."""
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    if isinstance(value, list):
        inside = list(enumerate(value[:6]))
    return [p for key, inner in inside for p in [(*path, key), *places(inner, (*path, key))]]


def altered(value: Any, seed: int) -> Any:
    """Plain data of which one to three places are others."""
    rng, out = random.Random(seed), copy.deepcopy(value)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if every := places(out):
            _alter(out, rng.choice(every), rng)
    return out


def _alter(out: Any, path: tuple[Any, ...], rng: random.Random) -> None:
    for key in path[:-1]:
        out = out[key]
    key = path[-1]
    how = rng.randrange(9)
    if how < 5:
        out[key] = copy.deepcopy(rng.choice(VALUES))
    elif how == 5:
        del out[key]
    elif how == 6 and isinstance(out, dict):
        out[rng.choice(["", "x", "value", "n", "\ud800", "a.b", *out])] = out.pop(key)
    elif how == 6:
        out.insert(key, copy.deepcopy(out[key]))
    elif isinstance(out[key], list) and out[key]:
        out[key] = out[key][: rng.randrange(len(out[key]))] if how == 7 else out[key] * 2
    elif isinstance(out[key], (int, float)):
        out[key] = str(out[key]) if how == 7 else -out[key] * 10 ** rng.randrange(20)
    elif isinstance(out[key], str):
        out[key] = out[key][::-1] if how == 7 else out[key] * rng.randrange(9)
    else:
        out[key] = [out[key]] if how == 7 else copy.deepcopy(out)


def as_json(value: Any) -> bytes:
    """JSON, with numbers that JSON has not or that no machine holds."""
    text = json.dumps(value)
    return text.replace(f'"{BIG}"', "9" * 400).replace(f'"{NAN}"', "NaN").encode()


def values_or_bytes(raw: bytes, seed: int) -> bytes:
    """JSON damaged inside, three times in four; else its bytes."""
    if seed % 4 == 0:
        return corrupt_files.damaged(raw, seed)
    return as_json(altered(json.loads(raw), seed))


def lines_or_bytes(raw: bytes, seed: int) -> bytes:
    """JSON lines of which one is damaged inside, three times in four; else bytes."""
    if seed % 4 == 0:
        return corrupt_files.damaged(raw, seed)
    lines = raw.splitlines()
    i = random.Random(seed).randrange(len(lines))
    lines[i] = as_json(altered(json.loads(lines[i]), seed))
    return b"\n".join(lines)


def in_page(raw: bytes, seed: int) -> bytes:
    """A page whose record is damaged inside."""
    begin = raw.index(b'id="calibrant-result"')
    begin = raw.index(b">", begin) + 1
    end = raw.index(b"</script>", begin)
    return raw[:begin] + values_or_bytes(raw[begin:end], seed) + raw[end:]


def sealed_again(raw: bytes, seed: int) -> bytes:
    """A sketch that is damaged inside and whose checksum says that it is whole, four times in five; else bytes."""
    if seed % 5 == 0:
        return corrupt_files.damaged(raw, seed)
    head, body = sketch_file.halves(sketch_file.content_of(raw))
    rng = random.Random(seed)
    if seed % 5 < 3:
        head = as_json(altered(json.loads(bytes(head)), seed))
    else:
        import zlib

        numbers = bytearray(zlib.decompress(body))
        for _ in range(rng.choice([1, 1, 5])):
            at = rng.randrange(max(len(numbers) // 8, 1)) * 8
            wrong = rng.choice([-1, 0, 1, 2**62, -(2**62), 7, 2**31])
            numbers[at : at + 8] = int(wrong).to_bytes(8, "little", signed=True)
        if seed % 3 == 0:
            del numbers[rng.randrange(len(numbers)) :]
        body = memoryview(zlib.compress(bytes(numbers)))
    return sketch_file.with_checksum(sketch_file.with_sizes(bytes(head), bytes(body)))


def in_archive(raw: bytes, seed: int) -> bytes:
    """An archive of which one member is damaged, two times in three; else its bytes, as where Python unpacks it not."""
    with zipfile.ZipFile(io.BytesIO(raw)) as old:
        foreign = old.infolist()[0].compress_type == ZSTANDARD
    if seed % 3 == 0 or foreign:
        return corrupt_files.damaged(raw, seed)
    out, rng = io.BytesIO(), random.Random(seed)
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        names = old.namelist()
        chosen = rng.choice(names)
        for name in names:
            content = old.read(name)
            if name == chosen:
                inside = name.endswith(".json") and rng.random() < 0.8
                harm = values_or_bytes if inside else corrupt_files.damaged
                content = harm(content, seed)
            new.writestr(name, content)
    return out.getvalue()


# ---- sound files ----


def table(rows: int = 300) -> pa.Table:
    return corrupt_files.table().slice(0, rows)


def texts() -> list[tuple[str, bytes]]:
    rows = table()
    rows = rows.set_column(2, "g", rows["g"].cast(pa.string()))
    out = []
    for name, options in (("a.csv", {}), ("b.tsv", {"delimiter": "\t"}), ("c.csv", {"delimiter": ";"})):
        held = pa.BufferOutputStream()
        csv.write_csv(rows, held, csv.WriteOptions(**options))
        out.append((name, held.getvalue().to_pybytes()))
    plain = out[0][1].decode()
    return [*out, ("d.csv", plain.encode("utf-16")), ("e.csv", plain.encode("cp1252"))]


def packed_texts() -> list[tuple[str, bytes]]:
    raw = texts()[0][1]
    zstd = pa.compress(raw, codec="zstd", asbytes=True)
    packed = (("gz", gzip.compress(raw)), ("bz2", bz2.compress(raw)), ("xz", lzma.compress(raw)), ("zst", zstd))
    return [(f"d.csv.{ending}", content) for ending, content in packed]


def json_lines() -> list[tuple[str, bytes]]:
    rows = table(60).drop_columns(["d"]).to_pylist()
    nested = [{"y": r["y"], "p": r["p"], "who": {"g": r["g"], "t": r["t"]}, "more": [r["x"]]} for r in rows]
    return [(f"{name}.jsonl", "\n".join(map(json.dumps, own)).encode()) for name, own in (("a", rows), ("b", nested))]


def json_arrays() -> list[tuple[str, bytes]]:
    return [("d.json", json.dumps([json.loads(line) for line in raw.splitlines()]).encode()) for _, raw in json_lines()]


def arrays() -> list[tuple[str, bytes]]:
    rows = table()
    own: dict[str, Any] = {"y": rows["y"].to_numpy(), "p": rows["p"].to_numpy(), "g": np.array(["a", "bc", "d"] * 100)}
    out = []
    for name, write in (("a.npz", np.savez), ("b.npz", np.savez_compressed)):
        held = io.BytesIO()
        write(held, **own)
        out.append((name, held.getvalue()))
    held = io.BytesIO()
    np.save(held, np.array(list(zip(*own.values(), strict=True)), [("y", "<i8"), ("p", "<f8"), ("g", "<U2")]))
    return [*out, ("c.npy", held.getvalue())]


def workbooks() -> list[tuple[str, bytes]]:
    import openpyxl

    rows = table(60)
    book, held = openpyxl.Workbook(), io.BytesIO()
    book.active.append(rows.column_names)
    for row in zip(*(c.to_pylist() for c in rows.columns), strict=True):
        book.active.append(row)
    book.save(held)
    return [("d.xlsx", held.getvalue())]


@cache
def records() -> list[tuple[str, bytes]]:
    """A quick record and a full one with decisions, and a record without a limit."""
    rng = np.random.default_rng(4)
    p, group, age = rng.random(1500), rng.integers(0, 3, 1500), rng.integers(18, 90, 1500)
    y = rng.random(1500) < np.where(group == 1, p**2, p)
    data = cal.predictions(y, p, pa.table({"g": ["abc"[k] for k in group], "age": age}))
    made = (
        cal.audit(data, by=["g"], limit=0.1, quick=True),
        cal.audit(data, by=["g"], limit=0.02, threshold=0.5),
        cal.audit(data, by=["g"], quick=True),
    )
    return [(f"{k}.json", record.to_json().encode()) for k, record in enumerate(made)]


@cache
def pages(folder: Path) -> list[tuple[str, bytes]]:
    out = folder / "page.html"
    cal.AuditRecord.from_json(records()[0][1].decode()).save(out)
    return [("d.html", out.read_bytes())]


@cache
def sketches(folder: Path) -> list[tuple[str, bytes]]:
    rows, out = folder / "a.csv", []
    for name, more in (("a", ["--by", "g"]), ("b", ["--by", "g", "--variables", "x,d", "--tests"])):
        path = folder / f"{name}.sketch"
        with redirect_stdout(io.StringIO()):
            assert main(["sketch", str(rows), *LS, *more, "--out", str(path)]) == 0
        out.append((path.name, path.read_bytes()))
    return out


@cache
def calibrators() -> list[tuple[str, bytes]]:
    rng = np.random.default_rng(6)
    p, x, g = rng.random(600), rng.normal(size=600), rng.integers(0, 3, 600)
    covariates = pa.table({"x": x, "g": ["abc"[k] for k in g]})
    data = cal.predictions(rng.random(600) < p**1.3, p, covariates)
    recipes = (cal.repair.Platt(), cal.repair.Isotonic(), cal.repair.Multicalibrator(), cal.repair.Rounding(steps=10))
    fitted = [recipe.fit(data) if recipe is not recipes[-1] else recipe.fit() for recipe in recipes]
    return [(f"{k}.json", one.to_json().encode()) for k, one in enumerate(fitted)]


def logs(*endings: str) -> Callable[[], list[tuple[str, bytes]]]:
    """The logs of evaluations that are kept with the tests."""
    return lambda: [
        (p.name, p.read_bytes()) for p in sorted(LOGS.rglob("*")) if p.is_file() and p.name.endswith(endings)
    ]


def archives() -> list[tuple[str, bytes]]:
    """The log of Inspect that is kept with the tests, and the same packed as every Python can."""
    from calibrant.apps.llm_logs.decoded import member, members

    path, held = LOGS / "inspect.eval", io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as new:
        for name, one in members(path).items():
            new.writestr(name, member(path, one))
    return [("a.eval", path.read_bytes()), ("b.eval", held.getvalue())]


def words() -> list[tuple[str, bytes]]:
    text = 'noun = "loans"\nmodel = "M 1.2"\nintended_use = "to lend"\nset_by = "the board, 2024-01-02"\n'
    return [("about.toml", text.encode())]


def columnar(kind: str) -> Callable[[], list[tuple[str, bytes]]]:
    return lambda: [(f"{i}{ending}", raw) for i, (ending, raw) in enumerate(corrupt_files.sound(kind))]


def packed_values(raw: bytes, seed: int) -> bytes:
    """JSON that is damaged inside and packed again, three times in four."""
    return (
        corrupt_files.damaged(raw, seed)
        if seed % 4 == 0
        else gzip.compress(values_or_bytes(gzip.decompress(raw), seed))
    )


LOOK = ("look", "FILE", *LS)
AUDIT = ("audit", "FILE", *LS, "--quick", "--limit", "0.1")
LOG = ("look", "FILE"), ("audit", "FILE", "--quick", "--limit", "0.1")
REPORT = ("report", "FILE", "-o", "OUT/page.html"), ("report", "FILE", "-o", "summary:-")
PRINT = ("apply", "FILE", "--score", "p", "-o", "duckdb:-")
APPLY = ("apply", "FILE", "OUT/../rows.csv", "--score", "p", "--out", "OUT/repaired.csv")


@cache
def kinds(folder: Path) -> dict[str, Kind]:
    """Files of every kind by name; `folder` takes what has to be written to be made, and the rows for calibrators."""
    (folder / "a.csv").write_bytes(texts()[0][1])
    rows = table(60).select(["y", "p", "x", "t"]).rename_columns(["y", "p", "x", "g"])
    csv.write_csv(rows, folder / "rows.csv")
    rows_of = {
        "Parquet": Kind(columnar("parquet"), (LOOK, AUDIT)),
        "Arrow IPC": Kind(columnar("arrow"), (LOOK, AUDIT)),
        "ORC": Kind(columnar("orc"), (LOOK, AUDIT)),
        "text": Kind(texts, (LOOK, AUDIT)),
        "packed text": Kind(packed_texts, (LOOK, AUDIT)),
        "JSON lines": Kind(json_lines, (LOOK, AUDIT), lines_or_bytes),
        "JSON": Kind(json_arrays, (LOOK, AUDIT), values_or_bytes),
        "NumPy": Kind(arrays, (LOOK, AUDIT)),
        "Excel": Kind(workbooks, (LOOK, AUDIT), in_archive),
    }
    logs_of = {
        "Inspect archive": Kind(archives, LOG, in_archive),
        "Inspect JSON": Kind(logs(".json.gz"), LOG, packed_values),
        "lm-eval": Kind(logs("101739.jsonl"), LOG, lines_or_bytes),
        "OpenAI evals": Kind(logs("openai_evals.jsonl"), LOG, lines_or_bytes),
        "promptfoo": Kind(logs("promptfoo.json"), LOG, values_or_bytes),
        "DeepEval": Kind(logs("deepeval.json"), LOG, values_or_bytes),
    }
    own = {
        "record": Kind(records, REPORT, values_or_bytes),
        "page": Kind(lambda: pages(folder), REPORT, in_page),
        "sketch": Kind(lambda: sketches(folder), (("audit", "FILE", "--quick", "--limit", "0.1"),), sealed_again),
        "calibrator": Kind(calibrators, (APPLY, PRINT), values_or_bytes),
        "words": Kind(words, (("audit", "OUT/../rows.csv", *LS, "--quick", "--about", "FILE"),)),
    }
    return rows_of | logs_of | own


def damaged_file(kind: Kind, seed: int, folder: Path) -> list[str]:
    """Write one damaged file into a folder; the command that reads it, by turns."""
    sound = kind.sound()
    name, raw = sound[seed % len(sound)]
    path = folder / name
    path.write_bytes(kind.harm(raw, seed))
    words = kind.commands[seed // len(sound) % len(kind.commands)]
    return [re.sub("^OUT", str(folder), str(path) if w == "FILE" else w) for w in words]
