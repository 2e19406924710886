"""Seeded inputs of the frozen cases: rows of every kind, and the kinds of files that hold them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import calibrant as cal

Columns = dict[str, Any]


def people(n: int = 1000, seed: int = 1, *, off: float = 0.0, bend: float = 0.0) -> Columns:
    """Rows that are right but for `off` among the old of the north, and a score bent by `bend` logits a logit."""
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(18, 91, n), rng.choice(["f", "m"], n)
    region = rng.choice(["north", "south", "east", "west", "far"], n, p=[0.3, 0.3, 0.25, 0.138, 0.012])
    p = np.round(np.clip(rng.beta(1.3, 2.2, n), 0.002, 0.998), 3)
    logit = np.log(p / (1 - p)) * (1 + bend)
    rate = np.clip(1 / (1 + np.exp(-logit)) + off * ((age > 60) & (region == "north")), 0, 1)
    y = (rng.uniform(size=n) < rate).astype(int)
    return {
        "y": y,
        "p": p,
        "age": age,
        "sex": sex,
        "region": region,
        "code": np.char.zfill(rng.integers(1, 7, n).astype(str), 4),
    }


def clustered(n: int = 1200, seed: int = 2, *, units: int = 150) -> Columns:
    """Rows of patients who share luck, in wards that cross them, with weights; nurses and beds cross at 30 sites."""
    rng = np.random.default_rng(seed)
    d = people(n, seed)
    unit, ward = rng.integers(0, units, n), rng.integers(0, units, n)
    luck = rng.normal(0, 0.5, units)[unit]
    rate = 1 / (1 + np.exp(-(np.log(d["p"] / (1 - d["p"])) + luck)))
    site = unit % 30
    more = {
        "patient": [f"u{u:04d}" for u in unit],
        "ward": [f"w{w:03d}" for w in ward],
        "nurse": [f"n{s:02d}-{k}" for s, k in zip(site, rng.integers(0, 4, n), strict=True)],
        "bed": [f"b{s:02d}-{k}" for s, k in zip(site, rng.integers(0, 5, n), strict=True)],
    }
    return d | more | {"y": (rng.uniform(size=n) < rate).astype(int), "w": np.round(rng.uniform(0.5, 3.0, n), 2)}


def crowded(n: int = 2000) -> Columns:
    """Rows of crossing patients and wards, scores far too extreme."""
    d, rng = clustered(n, 11, units=400), np.random.default_rng(111)
    rate = 1 / (1 + np.exp(-0.2 * np.log(d["p"] / (1 - d["p"])) - 2))
    return d | {"y": (rng.uniform(size=n) < rate).astype(int)}


def sharp(n: int = 2000) -> Columns:
    """Rows that are right, with scores near 0 and 1."""
    d, rng = clustered(n, 34, units=500), np.random.default_rng(134)
    p = np.round(np.clip(rng.beta(0.25, 0.25, n), 0.001, 0.999), 3)
    return d | {"p": p, "y": (rng.uniform(size=n) < p).astype(int)}


def unlabelled(n: int = 1000, seed: int = 3) -> Columns:
    """Rows of which some lack a label, more often the old."""
    d, rng = people(n, seed), np.random.default_rng(seed + 100)
    gone = rng.uniform(size=n) < np.where(d["age"] > 60, 0.3, 0.1)
    return d | {"y": ["" if g else str(v) for v, g in zip(d["y"], gone, strict=True)]}


def three(n: int = 600, seed: int = 4) -> Columns:
    """Rows of three classes."""
    rng = np.random.default_rng(seed)
    shares = np.round(rng.dirichlet([1.2, 1.0, 0.8], n), 4)
    shares[:, 2] = np.round(1 - shares[:, 0] - shares[:, 1], 4)
    sharp = shares**1.3
    label = np.array(["ill", "well", "dead"])[[rng.choice(3, p=q / q.sum()) for q in sharp]]
    return {"y": label, **dict(zip(("ill", "well", "dead"), shares.T, strict=True)), "age": rng.integers(18, 91, n)}


def lines(columns: Columns, delimiter: str = ",", decimal: str = ".") -> str:
    """Columns as text with a header."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    plain = [np.asarray(v).tolist() for v in columns.values()]
    writer.writerows(
        [str(v).replace(".", decimal) if isinstance(v, float) else v for v in row] for row in zip(*plain, strict=True)
    )
    return out.getvalue()


def write(name: str, columns: Columns) -> str:
    """Write columns as CSV into the current folder."""
    Path(name).write_text(lines(columns))
    return name


def data(d: Columns, **how: Any) -> cal.Predictions:
    """Columns as predictions with covariates."""
    covariates = {k: np.asarray(d[k]) for k in ("age", "sex", "region")}
    y = [None if v == "" else int(v) for v in d["y"]] if isinstance(d["y"], list) else d["y"]
    return cal.predictions(y if not isinstance(y, list) else pa.array(y), d["p"], covariates, **how)


def tied(n: int = 400) -> Columns:
    rng = np.random.default_rng(12)
    p = rng.choice([0.1, 0.3, 0.7], n)
    return {"y": (rng.uniform(size=n) < p).astype(int), "p": p, "sex": rng.choice(["f", "m"], n)}


def rare(n: int = 2000) -> Columns:
    d, rng = people(n, 13), np.random.default_rng(14)
    p = np.round(d["p"] * 0.03, 5)
    return d | {"p": p, "y": (rng.uniform(size=n) < p).astype(int)}


def copied() -> Columns:
    d = people(300, 15)
    return {k: np.concatenate([v, v]) for k, v in d.items()} | {"id": np.concatenate([np.arange(300)] * 2)}


# ---- kinds of files ----


def inspect_log(path: str, n: int = 200) -> None:
    """An evaluation log as Inspect writes it."""
    rng, samples = np.random.default_rng(60), []
    for i in range(n):
        for epoch in (1, 2):
            p = round(float(rng.uniform(0.3, 1.0)), 3)
            score = {
                "value": "C" if rng.uniform() < p else "I",
                "metadata": {"confidence": p, "judge_score": round(p * 0.9, 3)},
            }
            samples.append(
                {"id": i, "epoch": epoch, "scores": {"match": score}, "metadata": {"topic": ("law", "art")[i % 2]}}
            )
    log = {"version": 2, "status": "success", "eval": {"task": "quiz", "model": "m"}, "samples": samples}
    Path(path).write_text(json.dumps(log, indent=2))


def parquet(path: str, d: Columns) -> None:
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table(d), path)


def orc(path: str, d: Columns) -> None:
    import pyarrow.orc

    pyarrow.orc.write_table(pa.table(d), path)


def arrow(path: str, d: Columns) -> None:
    import pyarrow.feather

    pyarrow.feather.write_feather(pa.table(d), path)


def excel(path: str, d: Columns) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(list(d))
    for row in zip(*(np.asarray(v).tolist() for v in d.values()), strict=True):
        book.active.append(row)
    book.save(path)


def numpy_file(path: str, d: Columns) -> None:
    np.savez(path, **{k: np.asarray(v) for k, v in d.items()})


def json_lines(path: str, d: Columns) -> None:
    plain = [np.asarray(v).tolist() for v in d.values()]
    Path(path).write_text(
        "".join(json.dumps(dict(zip(d, row, strict=True))) + "\n" for row in zip(*plain, strict=True))
    )


FILES: dict[str, tuple[str, Callable[[str, Columns], Any]]] = {
    "parquet": ("log.parquet", parquet),
    "csv": ("log.csv", lambda path, d: Path(path).write_text(lines(d))),
    "gzip": ("log.csv.gz", lambda path, d: Path(path).write_bytes(gzip.compress(lines(d).encode(), mtime=0))),
    "semicolons": ("log.csv", lambda path, d: Path(path).write_text(lines(d, ";", ","))),
    "tabs": ("log.tsv", lambda path, d: Path(path).write_text(lines(d, "\t"))),
    "utf16": ("log.csv", lambda path, d: Path(path).write_text(lines(d), encoding="utf-16")),
    "cp1252": (
        "log.csv",
        lambda path, d: Path(path).write_bytes(
            lines(d | {"town": ["Orléans", "Köln"] * (len(d["y"]) // 2)}).encode("cp1252")
        ),
    ),
    "arrow": ("log.arrow", arrow),
    "orc": ("log.orc", orc),
    "json-lines": ("log.jsonl", json_lines),
    "excel": ("log.xlsx", excel),
    "numpy": ("log.npz", numpy_file),
}
