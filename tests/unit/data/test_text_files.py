"""Text files as they are: codes stay codes, rows are all there or refused by line, whatever the dialect."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.data.sources import delimited
from calibrant.data.sources.files import open_source
from calibrant.data.sources.source import Form, Source
from calibrant.errors import BadInput

NAMES = ("y", "p", "code", "day", "kind", "x", "big", "id", "flag", "note")


def table(n: int = 240) -> pa.Table:
    """Return rows with codes, dates, categories, missing values, large whole numbers and awkward text."""
    rng = np.random.default_rng(5)
    p = np.round(rng.uniform(size=n), 4)
    notes = ["", "plain", "a, b; c|d\te", 'he said "no"', "two\nlines", " spaces ", "NA", "ünïcödé", "#5", "5'11\""]
    return pa.table(
        {
            "y": (rng.uniform(size=n) < p).astype(np.int64),
            "p": p,
            "code": [f"{i % 7:05d}" if i % 7 else f"{12345 + i % 3}" for i in range(n)],
            "day": pa.array((np.datetime64("2024-01-01") + np.arange(n)).astype("datetime64[D]")),
            "kind": [["a", "b", "", "other"][i % 4] for i in range(n)],
            "x": pa.array([None if i % 5 == 0 else round(0.25 * i - 20, 2) for i in range(n)]),
            "big": [str(2**53 + i // 2) for i in range(n)],
            "id": np.arange(n),
            "flag": pa.array([i % 3 == 0 for i in range(n)]),
            "note": [notes[i % len(notes)] for i in range(n)],
        }
    )


def spelled(value: object, decimal: str, missing: str) -> str:
    if value is None:
        return missing
    if isinstance(value, float):
        return repr(value).replace(".", decimal)
    return str(value)


def written(t: pa.Table, delimiter: str = ",", decimal: str = ".", missing: str = "", **how: object) -> str:
    """Return a table as Python's csv module writes it."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, **how)
    writer.writerow(t.column_names)
    for row in t.to_pylist():
        writer.writerow([spelled(v, decimal, missing) for v in row.values()])
    return out.getvalue()


def print_of(source: object, **how: object) -> str:
    groups, key = ["code", "day", "kind", "flag", "note"], ["big", "id"]
    return cal.sketch(source, label="y", score="p", by=groups, variables=["x"], key=key, **how).fingerprint


QUOTED = {
    "as needed": {},
    "all": {"quoting": csv.QUOTE_ALL},
    "but numbers": {"quoting": csv.QUOTE_NONNUMERIC},
}
DIALECTS: dict[str, Callable[[pa.Table], bytes]] = {}
for mark, separator in {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}.items():
    for how, quoting in QUOTED.items():
        for ending in ("\n", "\r\n", "\r")[: 3 if quoting else 2]:  # the module leaves "\n" bare in a file of "\r"
            DIALECTS[f"{mark}, {how}, {ending!r}"] = lambda t, d=separator, q=quoting, e=ending: written(
                t, d, lineterminator=e, **q
            ).encode()
for spelling in ("NA", "N/A", "null", "nan", "None", "-", "?", ".", "#N/A", " NA "):
    DIALECTS[f"missing as {spelling!r}"] = lambda t, s=spelling: written(t, missing=s).encode()
DIALECTS |= {
    "decimal commas": lambda t: written(t, ";", ",").encode(),
    "decimal commas, all quoted": lambda t: written(t, ";", ",", quoting=csv.QUOTE_ALL).encode(),
    "with a mark of UTF-8": lambda t: written(t).encode("utf-8-sig"),
    "UTF-16 with a mark": lambda t: written(t).encode("utf-16"),
    "gzip": lambda t: gzip.compress(written(t, ";").encode()),
    "gzip in two members": lambda t: (
        gzip.compress(written(t).encode()[:999]) + gzip.compress(written(t).encode()[999:])
    ),
    "bzip2": lambda t: bz2.compress(written(t, "\t").encode()),
    "xz": lambda t: lzma.compress(written(t, "|").encode()),
    "Zstandard": lambda t: pa.compress(written(t, ";", ",").encode(), codec="zstd", asbytes=True),
    "no line end at the end": lambda t: written(t).encode().rstrip(),
    "empty lines around": lambda t: ("\n\n" + written(t) + "\n\n  \n\t\n").encode(),
    "comments before the header": lambda t: b"# made by hand\n# y, p, and more\n" + written(t).encode(),
    "Excel's first line": lambda t: b"sep=;\r\n" + written(t, ";").encode(),
    "rows end in a delimiter": lambda t: written(t, lineterminator=",\n").encode(),
    "rows end in a delimiter, not the header": lambda t: (
        written(t, lineterminator=",\n").replace(",\n", "\n", 1).encode()
    ),
    "row numbers without a name": lambda t: written(t.add_column(0, "", pa.array(np.arange(t.num_rows)))).encode(),
    "numbers with spaces": lambda t: written(
        t.set_column(1, "p", pa.array([f" {v} " for v in t["p"].to_pylist()]))
    ).encode(),
    "numbers with signs": lambda t: written(
        t.set_column(1, "p", pa.array([f"+{v}" for v in t["p"].to_pylist()]))
    ).encode(),
    "numbers with exponents": lambda t: written(
        t.set_column(1, "p", pa.array([f"{v:.6E}" for v in t["p"].to_pylist()]))
    ).encode(),
    "true and false in capitals": lambda t: written(
        t.set_column(8, "flag", pa.array([str(v).upper() for v in t["flag"].to_pylist()]))
    ).encode(),
}


SMALL = [d for d in DIALECTS if d.startswith(("pipe", "decimal", "UTF", "gzip", "Zstandard"))]


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the fingerprint of the table as Parquet."""
    path = tmp_path_factory.mktemp("truth") / "a.parquet"
    pq.write_table(table(), path)
    return print_of(str(path))


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "block"), [*((d, 1 << 24) for d in DIALECTS), *((d, 1500) for d in SMALL)])
def test_every_dialect_reads_like_parquet(
    dialect: str, block: int, truth: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK", block)
    path = tmp_path / "a.csv"
    path.write_bytes(DIALECTS[dialect](table()))
    assert print_of(str(path)) == truth


def test_there_are_fifty_dialects() -> None:
    assert len(DIALECTS) >= 50


# ---- what is a number is decided on all values ----


@pytest.mark.parametrize(
    "last", ["02139", "12345678901234567890", "x", "1.2.3", "0x1F", "1,234", "007.5", "1 234", "12%"]
)
def test_one_value_in_the_last_file_makes_a_column_text(last: str, tmp_path: Path) -> None:
    for name, code in (("a.csv", "2139"), ("b.csv", "2140"), ("c.csv", last)):
        (tmp_path / name).write_text(f'y,p,zip\n0,0.2,1\n1,0.7,"{code}"\n')
    opened = open_source(str(tmp_path / "*.csv"))
    assert rows_of(opened)["zip"] == ["1", "2139", "1", "2140", "1", last]
    taken = opened.kinds["zip"]
    assert (taken.kind, taken.file, taken.line, taken.value) == ("text", "c.csv", 3, last)
    assert "'c.csv'" not in taken.why
    assert "line 3 of c.csv" in taken.why


@pytest.mark.parametrize(
    ("values", "kind", "read"),
    [
        (["1", "-2", "0"], "whole", [1, -2, 0]),
        (["1", "", "NA"], "whole", [1, None, None]),
        (["1", "+2"], "whole", [1, 2]),
        (["123456789012345"], "whole", [123456789012345]),
        (["1234567890123456"], "text", ["1234567890123456"]),
        (["1", "2.50", "-1e3", ".5", "5."], "number", [1.0, 2.5, -1000.0, 0.5, 5.0]),
        (["0.10", "-inf", "Infinity"], "number", [0.1, -np.inf, np.inf]),
        (["0", "0.25", " 7 ", " null "], "number", [0.0, 0.25, 7.0, None]),
        (['"0"', '"0.25" ', '" 7 "', '""  '], "number", [0.0, 0.25, 7.0, None]),
        (["007", "8"], "text", ["007", "8"]),
        (["00", "1"], "text", ["00", "1"]),
        (["NA", "NA"], "text", ["NA", "NA"]),
        (["", ""], "empty", [None, None]),
        (["1", "0x1F"], "text", ["1", "0x1F"]),
        (["1_000"], "text", ["1_000"]),
        (["１２"], "text", ["１２"]),
        (["yes", "no"], "text", ["yes", "no"]),
        (["TRUE", "false", ""], "boolean", [True, False, None]),
        (["true", "1"], "text", ["true", "1"]),
        (["2023-02-29"], "text", ["2023-02-29"]),
        (["10:30"], "text", ["10:30"]),
        (["1-2-2024"], "text", ["1-2-2024"]),
        (["-", "5"], "whole", [None, 5]),
        (["1e-07", "2E+3", "0.5", "1.5e-07"], "number", [1e-07, 2000.0, 0.5, 1.5e-07]),
        (["1e-07", "02e3"], "text", ["1e-07", "02e3"]),
        (["-"], "text", ["-"]),
    ],
)
def test_what_a_column_is_taken_for(values: list[str], kind: str, read: list[object], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n" + "".join(f"{v},x\n" for v in values))
    opened = open_source(str(tmp_path / "a.csv"))
    assert opened.kinds["a"].kind == kind
    assert rows_of(opened)["a"] == read


def test_a_value_is_named_by_its_own_line_as_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,note,n\n1,"two\nlines, ""so""",5\n\n  \n2,"three\nmore\nlines",x\n')
    kinds = open_source(str(path)).kinds
    assert (kinds["note"].line, kinds["note"].value) == (2, 'two\nlines, "so"')
    assert (kinds["n"].line, kinds["n"].value) == (8, "x")
    path.write_text("a\n1\n  \nx\n3\n")  # of one column, spaces are a row
    source = open_source(str(path))
    assert (source.rows, source.kinds["a"].line) == (4, 4)
    assert [source.place("", row) for row in range(4)] == [f"line {line} of a.csv" for line in (2, 3, 4, 5)]


@pytest.mark.parametrize("rows", [1, 300])
def test_what_python_prints_of_small_numbers_is_a_number_among_decimal_commas(rows: int, tmp_path: Path) -> None:
    values = {"0,25": 0.25, "1e-07": 1e-07, "1E-07": 1e-07, "-2e+3": -2000.0, "1,5e-07": 1.5e-07, "7": 7.0}
    path = tmp_path / "a.csv"
    path.write_text("y;p;x\n" + "".join(f"1;{v.strip('-')};{v}\n" for v in values) * rows)
    opened = open_source(str(path))
    assert (opened.kinds["x"].kind, opened.kinds["x"].comma) == ("number", True)
    assert rows_of(opened)["x"] == [*values.values()] * rows
    path.write_text("y;p;x\n" + "1;0,5;1e-07\n" * rows + "1;0,5;2\n")  # without a mark of its own
    assert rows_of(open_source(str(path)))["x"] == [1e-07] * rows + [2.0]
    path.write_text("y;p;x\n" + "1;0,5;1.0e-07\n" * rows + "1;0,5;0,5\n")
    assert "decimals behind points and behind commas" in open_source(str(path)).kinds["x"].why
    with pytest.raises(BadInput, match=r"score column 'x' holds decimals behind points and behind commas, such as"):
        cal.read(str(path), label="y", score="x")


def test_types_may_change_behind_the_first_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 400)
    rows = [f"{i % 2},0.{i % 10},{i},{i if i < 180 else f'x{i}'}" for i in range(200)]
    (tmp_path / "a.csv").write_text("y,p,n,mixed\n" + "\n".join(rows))
    opened = open_source(str(tmp_path / "a.csv"))
    assert len(opened.parts) > 5
    assert opened.rows == 200
    assert [p.first_row for p in opened.parts] == sorted({p.first_row for p in opened.parts})
    held = rows_of(opened)
    assert held["n"] == list(range(200))
    assert held["mixed"][:2] == ["0", "1"]
    assert held["mixed"][-1] == "x199"


def test_a_later_file_without_leading_zeros_is_read_as_the_first(tmp_path: Path) -> None:
    for name, codes in (("a.csv", ("02139", "2139", "10001")), ("b.csv", ("2139", "10001", "10001"))):
        rows = "".join(f"{i % 2},0.{i % 9 + 1},{codes[i % 3]}\n" for i in range(300))
        (tmp_path / name).write_text("y,p,zip\n" + rows)
    first = cal.sketch(str(tmp_path / "a.csv"), label="y", score="p", by="zip", variables="zip")
    assert first.spec.texts == ("zip",)
    later = cal.sketch(str(tmp_path / "b.csv"), spec=first.spec)
    both = cal.sketch(str(tmp_path / "*.csv"), label="y", score="p", by="zip", variables="zip")
    assert later.spec.by_name["zip"].values == both.spec.by_name["zip"].values == ("02139", "2139", "10001")


def test_only_columns_that_are_read_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y,p,zip\n0,0.2,02139\n")
    opened = open_source(str(tmp_path / "a.csv"), ("y", "p"))
    assert set(opened.kinds) == {"y", "p"}
    assert rows_of(opened)["zip"] == ["02139"]  # found out when it is read after all


# ---- what is refused, in one line that names it ----


REFUSED = {
    b"": "is empty",
    b"\n \n": "is empty: it holds no line of column names",
    b"0,0.2\n1,0.3\n": "has no line of column names, for it begins with '0, 0.2'",
    b"y,p\n0\n": "line 2 has 1 value and the header names 2",
    b"y,p\n0,0.1\n1,0.2,3\n": "line 3 has 3 values and the header names 2",
    b'y,p\n0,"a\nb"\n1\n': "line 4 has 1 value",
    b'y,p\n0,"a\nb"\n\n  \n1,2\n1\n': "line 7 has 1 value",
    b'y,p\n0,1\n\n0,"a\nb"\n1,"c\nd"e\n': "the quoted value of line 6 goes on",
    b"y,p\n0,0.1\n# the end\n": "comments may stand before the header only",
    b'y,p\n0,"0.1\n1,0.2\n1,0.3\n': "the quote in line 2 is never closed",
    b'y,p\n0,"a"b\n': "the quoted value of line 2 goes on after its closing quote",
    b'y,p\n0,"a \\"b\\""\n': "write a quote within quotes twice",
    "y,p,größe\n0,0.2,1\n".encode("latin-1"): "byte 0xF6 in line 1; pass encoding='cp1252' (--encoding cp1252)",
    "y,p,g\n0,0.2,a\n1,0.2,ö\n".encode("cp1252"): "byte 0xF6 in line 3",
    "y,p\n0,0.2\n".encode("utf-16-le"): "if it is UTF-16, pass encoding='utf-16'",
    gzip.compress(b"y,p\n0,0.2\n" * 999, mtime=0)[:40]: "damaged or ends too soon",
    gzip.compress(b"y,p\n0,0.2\n", mtime=0)[:-6] + b"123456": "damaged or ends too soon",
    bz2.compress(b"y,p\n0,0.2\n")[:30]: "damaged or ends too soon",
    lzma.compress(b"y,p\n0,0.2\n")[:30]: "damaged or ends too soon",
    bytes(pa.compress(b"y,p\n0,0.2\n", codec="zstd"))[:-3]: "damaged",
}


@pytest.mark.parametrize("raw", REFUSED, ids=range(len(REFUSED)))  # gzip writes the time, so bytes name no test
def test_what_is_no_table_is_refused_by_line(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(raw)
    with pytest.raises(BadInput) as refused:
        open_source(str(tmp_path / "a.csv"))
    assert REFUSED[raw] in str(refused.value)
    assert "a.csv" in str(refused.value)
    assert "\n" not in str(refused.value)


SCORES = {
    "12%": "holds percentages such as '12%': pass percent=True",
    "1 234": "holds marks between thousands, such as '1 234' in line 3",
    '"1,234"': "holds marks between thousands, such as '1,234' in line 3",
    '"0,5"': "holds decimals behind points and behind commas, such as '0,5' in line 3",
    "0x1F": "hexadecimal digits",
    "abc": "holds text, such as 'abc' in line 3",
    "12 %": "holds text, such as '12 %' in line 3",
    "00.5": "write numbers without leading zeros",
    "inf": "1 value is infinite; correct it, or leave its row out. First: row 1",
}


def test_what_this_python_cannot_unpack_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some are built without liblzma, and those of browsers without several; other files are read all the same."""
    for name, raw in {"a.csv": b"y,p\n0,0.2\n", "a.csv.xz": lzma.compress(b"y,p\n0,0.2\n")}.items():
        (tmp_path / name).write_bytes(raw)
    monkeypatch.setitem(sys.modules, "lzma", None)
    assert open_source(tmp_path / "a.csv").rows == 1
    with pytest.raises(BadInput, match=r"a\.csv\.xz is packed with xz, which this Python was built without: unpack it"):
        open_source(tmp_path / "a.csv.xz")


@pytest.mark.parametrize("score", SCORES)
def test_text_among_scores_is_named(score: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"y,p\n0,{'2%' if score == '12%' else '0.5'}\n1,{score}\n")
    with pytest.raises(BadInput) as refused:
        cal.read(str(tmp_path / "a.csv"), label="y", score="p")
    words = SCORES[score].replace("'12%'", "'2%'").replace("First: row 1", "First: line 3 of a.csv")
    assert words in str(refused.value)


def test_per_cent_signs_and_labels_in_words(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y,p\nno,12%\nyes,85 %\nyes,99.5%\n")
    held = cal.read(str(tmp_path / "a.csv"), label="y", score="p", percent=True, positive="yes")
    assert held.p.tolist() == [0.12, 0.85, 0.995]
    assert held.y.tolist() == [0, 1, 1]
    with pytest.raises(BadInput, match="pass positive= to name the event"):
        cal.read(str(tmp_path / "a.csv"), label="y", score="p", percent=True)


def test_headers(tmp_path: Path) -> None:
    def names(text: str) -> tuple[str, ...]:
        (tmp_path / "a.csv").write_text(text)
        return open_source(str(tmp_path / "a.csv")).columns

    assert names(",y,p\n0,1,0.5\n") == ("column 1", "y", "p")
    assert names('y,p,"a, ""b"""\n0,1,0.5\n') == ("y", "p", 'a, "b"')
    assert names("#id,y,p\n1,0,.2\n") == ("#id", "y", "p")
    assert names("y,p,y\n0,0.5,1\n") == ("y", "p", "y")
    with pytest.raises(BadInput, match="label column 'y' cannot be read: several columns have this name"):
        cal.read(str(tmp_path / "a.csv"), label="y", score="p")
    assert names("y,p,x,x,z\n0,0.5,1,2,5\n1,0.25,3,4,6\n") == ("y", "p", "x", "x", "z")
    left = cal.sketch(str(tmp_path / "a.csv"), label="y", score="p", variables="*").spec.left_out
    assert left == (("x", "several columns have this name: rename all but one"),)
    (both,) = open_source(str(tmp_path / "a.csv")).parts[0].read(["x", "x"], ())
    assert both.columns[1].to_pylist() == [2, 4]


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_a_header_of_too_many_columns_is_refused_for_their_number(end: str, tmp_path: Path) -> None:
    names = ["y", "p", *(f"column_{i}" for i in range(200_000))]
    (tmp_path / "a.csv").write_text(f"{','.join(names)}{end}" + ",".join(["1"] * len(names)), newline="")
    size = len(",".join(names))
    with pytest.raises(BadInput, match=rf"^a\.csv names 200,002 columns in {size:,} bytes, and a line of column names"):
        cal.look(str(tmp_path / "a.csv"))
    (tmp_path / "a.csv").write_text(f"{','.join(f'{i:x}' for i in range(180_000))}{end}", newline="")
    with pytest.raises(BadInput, match="has 180,000 columns in 1 rows: that takes"):
        cal.look(str(tmp_path / "a.csv"))


@pytest.mark.parametrize(
    ("form", "why"),
    [
        (Form(encoding="klingon"), "encoding 'klingon' is unknown"),
        (Form(encoding="hex"), "encoding 'hex' is unknown"),
        (Form(delimiter="::"), "not one plain character"),
        (Form(delimiter='"'), "not one plain character"),
        (Form(decimal="x"), "neither '.' nor ','"),
        (Form(encoding="ascii"), "is not"),
        (Form(encoding="utf-16"), "is not utf-16"),
    ],
)
def test_wrong_forms_are_said(form: Form, why: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("y,p,größe\n0,0.5,ä\n".encode("latin-1"))
    with pytest.raises(BadInput, match=why):
        open_source(str(tmp_path / "a.csv"), (), form)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8", "utf-8-sig", "utf-32"])
@pytest.mark.parametrize("form", [Form(), Form(delimiter=";", decimal=",")])
def test_forms_that_are_told(encoding: str, form: Form, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("y;p;größe\n0;0,5;ä\n".encode(encoding))
    reported = Form(encoding, form.delimiter, form.decimal)
    assert rows_of(open_source(str(tmp_path / "a.csv"), (), reported)) == {"y": [0], "p": [0.5], "größe": ["ä"]}


THOUSANDS = "points that may stand between thousands, for commas stand before decimals"


@pytest.mark.parametrize(
    ("incomes", "kind", "why"),
    [
        (["1.994", "44.446", "731"], "text", THOUSANDS),
        (["-1.994", "", "NA"], "text", THOUSANDS),
        (["1.994", "12,5", "8"], "text", THOUSANDS),
        (["1.994", "1.234.567", "8"], "text", "marks between thousands"),
        (["1.994", "0.5", "8"], "number", ""),  # other points than between thousands: decimals
        (["1.994", "0.511", "8"], "number", ""),
        (["1.9941", "1.5e3", "8"], "number", ""),
        (["1994", "44446", "8"], "whole", ""),
        (["1,994", "44,446", "8"], "number", ""),
    ],
)
@pytest.mark.parametrize("rows", [1, 400])
def test_points_between_thousands_are_no_decimals(
    incomes: list[str], kind: str, why: str, rows: int, tmp_path: Path
) -> None:
    """Where one column has decimal commas, 1.994 of another is not 2 but 1994, or cannot be told."""
    path = tmp_path / "a.csv"
    path.write_text("y;p;income\n" + "".join(f"1;0,{i + 5};{v}\n" for i in range(rows) for v in incomes))
    for wanted in ((), ("income",), ("y", "p", "income")):  # whichever columns are read
        taken = open_source(str(path), wanted).kinds["income"]
        assert taken.kind == kind
        assert taken.why.endswith(why)
    plain = tmp_path / "plain.csv"
    plain.write_text(path.read_text().replace("0,", "0."))  # no decimal comma anywhere: points are decimals
    if not {"1.234.567", "12,5"} & {*incomes}:
        assert open_source(str(plain)).kinds["income"].kind in ("number", "whole", "text")
        assert (open_source(str(plain)).kinds["income"].kind == "text") == ("1,994" in incomes)


def test_who_wants_numbers_of_points_between_thousands_is_told_what_to_do(tmp_path: Path) -> None:
    rows = [f"{i % 2};0,{100 + i % 800};{1 + i % 90}.{100 + i % 899}" for i in range(900)]
    (tmp_path / "a.csv").write_text("\n".join(["y;p;income", *rows]))
    reported = " ".join(str(cal.look(tmp_path / "a.csv")).split())
    assert f"Text income: '1.100' in line 2 of a.csv: {THOUSANDS}. For numbers, write" in reported
    for more in ({"bins": {"income": [1000, 5000]}}, {}):
        with pytest.raises(BadInput, match=r"it is text, such as '1\.100'; write numbers without marks between"):
            cal.audit(tmp_path / "a.csv", label="y", score="p", by="income", quick=True, **more)
    with pytest.raises(BadInput, match=r"'income' holds points that may stand between thousands, such as '1\.100'"):
        cal.audit(tmp_path / "a.csv", label="y", score="income", quick=True)


def rows_of(source: Source) -> dict[str, list[object]]:
    out: dict[str, list[object]] = {c: [] for c in source.columns}
    for part in source.parts:
        for batch in part.read(source.columns, ()):
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                out[name] += column.to_pylist()
    return out


def test_what_a_column_is_does_not_depend_on_which_others_are_read(tmp_path: Path) -> None:
    """1,234 is a decimal or a thousand; another column, read or not, tells which."""
    rows = [f"{i % 2};{i % 90 + 1};{i % 7 + 1},{100 + i};{i % 5},5" for i in range(300)]
    path = tmp_path / "commas.csv"
    path.write_text("\n".join(["y;p;x;z", *rows]), encoding="utf-8")
    held = [
        cal.sketch(str(path), label="y", score="p", percent=True, variables=variables).spec.codings
        for variables in ("*", ["x", "z"], ["x"])
    ]
    found = [next(c for c in codings if c.name == "x") for codings in held]
    assert found[0].kind == "number"
    assert found[0] == found[1] == found[2]


def test_a_look_reads_what_is_not_utf_8_and_prints_the_encoding(tmp_path: Path) -> None:
    """Per cents with decimal commas between semicolons, dates of another country: as offices export them."""
    rows = "".join(
        f"{i};{i % 28 + 1:02}.01.2019;{i * 37 % 901 / 10};{'Süd' if i % 3 else 'Nord'};{i % 2}\n" for i in range(99)
    )
    text = "Nr;Eintritt;Eignung (%);Straße;bestanden\n" + rows.replace(".", ",").replace(",01,2019", ".01.2019")
    path = tmp_path / "bewerber.csv"
    path.write_bytes(text.encode("cp1252"))
    seen = cal.look(str(path))
    assert "Encoding  not UTF-8, so read as cp1252, as in Straße and Süd." in str(seen)
    assert "--encoding cp1252" in seen.command
    assert {c.name: c.kind for c in seen.columns if c.name in ("Eintritt", "Eignung (%)")} == {
        "Eintritt": "date",
        "Eignung (%)": "number",
    }
    assert seen.column("Eignung (%)").high == 89.9
    assert "encoding" not in cal.look(str(path), encoding="cp1252").settings  # it was said, not guessed
    with pytest.raises(
        BadInput, match=r"is not UTF-8: byte 0xDF in line 1; pass encoding='cp1252' \(--encoding cp1252\)"
    ):
        cal.audit(str(path), label="bestanden", score="Eignung (%)", percent=True)


@pytest.mark.parametrize(
    "raw",
    [
        "город;y\nПетербург;1\n".encode("cp1251"),
        "都市;y\n東京;1\n".encode("gb18030"),
        "größe;y\n".encode() + "Süd;1\n".encode("cp1252"),  # two encodings in one file
        "größe;y\n\x81;1\n".encode("latin-1"),  # a byte that stands for nothing
    ],
)
def test_other_encodings_are_not_guessed(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(raw)
    with pytest.raises(BadInput, match=r"is not UTF-8: byte 0x.. in line \d; pass encoding= \(--encoding\), the encod"):
        cal.look(str(tmp_path / "a.csv"))


def test_of_several_files_no_encoding_is_guessed(tmp_path: Path) -> None:
    for name, encoding in (("a", "cp1252"), ("b", "utf-8")):
        (tmp_path / f"{name}.csv").write_bytes("y,p,g\n0,0.2,ö\n1,0.7,ü\n".encode(encoding))
    with pytest.raises(BadInput, match="is not UTF-8"):
        cal.look(str(tmp_path / "*.csv"))


def test_lines_of_json_are_told_to_be_no_utf_8(tmp_path: Path) -> None:
    rows = "\n".join(f'{{"y": {i % 2}, "p": 0.{i + 10}, "g": "Süd"}}' for i in range(80))
    (tmp_path / "a.jsonl").write_bytes(rows.encode("cp1252"))
    assert "--encoding cp1252" in cal.look(str(tmp_path / "a.jsonl")).command
    with pytest.raises(BadInput, match="is not UTF-8: byte 0xFC in line 1"):
        cal.audit(str(tmp_path / "a.jsonl"), label="y", score="p")


def test_a_byte_order_mark_within_a_file_is_text_and_takes_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes('p,q\n\ufeff"0.5,1\n'.encode() + b"0.2,0\n" * 5 + b'"the end",1\n0.3,1\n')
    source = open_source(str(tmp_path / "a.csv"))
    assert (source.rows, source.kinds["p"].value) == (8, '\ufeff"0.5')
    assert [r["p"] for p in source.parts for b in p.read(("p",), ()) for r in b.to_pylist()][-2:] == ["the end", "0.3"]


@pytest.mark.parametrize("word", ["naN", "nAn", "NAN", "nan", "-nAn"])
def test_every_spelling_of_not_a_number_is_missing(tmp_path: Path, word: str) -> None:
    (tmp_path / "a.csv").write_text(f"x\n0.5\n{word}\n NA \n" if word == "naN" else f"x\n0.5\n{word}\n")
    (part,) = open_source(str(tmp_path / "a.csv")).parts
    assert [r["x"] for b in part.read(("x",), ()) for r in b.to_pylist()][:2] == [0.5, None]
