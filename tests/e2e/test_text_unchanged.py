"""What a repair does not touch comes out of a text file character for character."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli.run import main
from calibrant.data.sources import delimited
from calibrant.data.sources.files import open_source

HEADER = ["y", "p", "id", "code", "flag", "text", "day", "gone", "number", "a, b"]
CODES = ["1.50", "1e3", "007", "5", "+2", "0x1F", "", "1,234"]
TEXTS = [" x ", 'he said "no"', "a, b; c\td|e", "two\nlines", "", "NA", "#1", "=1+1", "ünï", "'q'"]
DAYS = ["2024-01-31", "31.1.2024", ""]


def rows(n: int = 600, decimal: str = ".") -> list[list[str]]:
    g = np.random.default_rng(3)
    p = g.uniform(size=n)
    y = g.uniform(size=n) < p**2
    flags = ["TRUE", "False", "true"]
    return [
        [
            *(str(int(y[i])), f"{p[i]:.4f}0".replace(".", decimal), f"{i:08d}", CODES[i % len(CODES)], flags[i % 3]),
            *(TEXTS[i % len(TEXTS)], DAYS[i % 3], "NA" if i % 5 else "", "1.50" if i % 2 else " 2", "x"),
        ]
        for i in range(n)
    ]


def write(path: Path, lines: list[list[str]], **how: object) -> None:
    with gzip.open(path, "wt", newline="") if path.suffix == ".gz" else path.open("w", newline="") as file:
        csv.writer(file, **how).writerows([HEADER, *lines])


def read(path: Path, delimiter: str) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "how", "decimal", "out"),
    [
        ("a.csv", {}, ".", "out.csv"),
        ("a.csv", {"quoting": csv.QUOTE_ALL, "lineterminator": "\n"}, ".", "out.tsv"),
        ("a.csv", {"delimiter": ";", "quoting": csv.QUOTE_ALL}, ",", "out.csv"),
        ("a.tsv.gz", {"delimiter": "\t"}, ".", "out.csv"),
    ],
)
def test_untouched_columns(
    name: str, how: dict[str, object], decimal: str, out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delimiter = "\t" if out.endswith(".tsv") else ";" if decimal == "," else ","
    monkeypatch.setattr(delimited, "BLOCK", 5000)
    lines = rows(decimal=decimal)
    write(tmp_path / name, lines, **how)
    columns = ["--label", "y", "--score", "p"]
    target, made = tmp_path / out, tmp_path / "calibrator.json"
    data = str(tmp_path / name)
    assert main(["repair", data, *columns, "--method", "platt", "--quick", "--out", str(target), "-o", str(made)]) < 2
    written = read(target, delimiter)
    assert written[0] == [*HEADER, "p_repaired", "p_fitted_on"]
    assert [row[: len(HEADER)] for row in written[1:]] == lines
    again = rows_of(str(target))
    assert np.corrcoef(again["p_repaired"], again["p"])[0, 1] > 0.9
    applied = tmp_path / f"applied-{out}"
    assert main(["apply", str(made), data, "--score", "p", "--out", str(applied)]) == 0
    assert [row[:-1] for row in read(applied, delimiter)] == [row[:-2] for row in written]
    assert [row[-1] for row in read(applied, delimiter)[1:]] == [row[-2] for row in written[1:]]


def rows_of(path: str) -> dict[str, list[float]]:
    source = open_source(path)
    batches = [b.to_pydict() for part in source.parts for b in part.read(["p", "p_repaired"], ())]
    return {name: [v for b in batches for v in b[name]] for name in ("p", "p_repaired")}


def test_text_becomes_typed_columns_in_parquet(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", rows())
    columns = ["--label", "y", "--score", "p"]
    target = tmp_path / "out.parquet"
    assert main(["repair", str(tmp_path / "a.csv"), *columns, "--method", "platt", "--quick", "--out", str(target)]) < 2
    types = dict(zip(pq.read_schema(target).names, pq.read_schema(target).types, strict=True))
    assert types["id"] == types["code"] == types["text"] == pa.string()
    assert types["day"] == pa.date32()  # as two countries write them, and each can be read in one way
    assert (types["y"], types["number"], types["flag"]) == (pa.int64(), pa.float64(), pa.bool_())
    assert pq.read_table(target)["id"].to_pylist()[:2] == ["00000000", "00000001"]


def test_a_map_of_codes_reads_codes(tmp_path: Path) -> None:
    """Zip codes none of which begins with 0 are the levels that the map knows, not numbers."""
    g = np.random.default_rng(0)
    p, zips = g.uniform(size=4000), np.array(["02139", "10001", "60601"])[g.integers(0, 3, 4000)]
    y = g.uniform(size=4000) < np.clip(p + np.where(zips == "10001", 0.3, -0.2) * p * (1 - p) * 3, 0, 1)
    for name, some in (("a.csv", slice(None)), ("b.csv", zips != "02139")):
        lines = [f"{int(a)},{b:.4f},{c}\n" for a, b, c in zip(y[some], p[some], zips[some], strict=True)]
        (tmp_path / name).write_text("y,p,zip\n" + "".join(lines))
    columns, made = ["--label", "y", "--score", "p"], str(tmp_path / "m.json")
    more = ["--variables", "zip", "--method", "augmented-logistic", "--quick", "-o", made]
    assert main(["repair", str(tmp_path / "a.csv"), *columns, *more]) < 2
    assert main(["apply", made, str(tmp_path / "b.csv"), "--score", "p", "--out", str(tmp_path / "out.csv")]) == 0
    data = cal.read(str(tmp_path / "a.csv"), label="y", score="p", by="zip")
    assert sorted(set(data.covariates["zip"].to_pylist())) == ["02139", "10001", "60601"]
