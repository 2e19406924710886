"""Where a report goes: files of four formats, a folder, a notebook, a few lines; all from the record alone."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.csv
import pytest

import calibrant as cal
import factories
from calibrant.errors import BadInput
from calibrant.report import html, markdown
from calibrant.report.outline import document
from calibrant.report.outputs import files, notebook, results
from calibrant.results import Curve

CURVES = {
    **factories.kinds_of_curve(),
    "bins": replace(factories.reliability(), method="diagnose.reliability_curve"),
    "control": factories.control_chart(),
}
TABLES = {
    "rules": factories.searched_subgroups(),
    "subgroups": factories.subgroup_lines(),
    "subgroup map": factories.subgroup_map(),
    "ranking": factories.ranking(),
    "unknown": Curve(method="other", columns={"a": (1.0, None), "b": ("x", "y")}),
    "empty": Curve(method="diagnose.reliability_curve", columns={}),
}
RECORDS = {
    "groups": factories.employment(),
    "all": factories.scanned(factories.repaired()),
    "few people": factories.tiny(),
    "no limit": factories.employment(limit=None),
}


# ---- a notebook ----


def outside(text: str) -> list[str]:
    """Return what a page would fetch or run."""
    return re.findall(r"<(?:script|link|iframe|img)\b|https?://|@import|url\(|\son\w+=", text)


@pytest.mark.parametrize("name", [*CURVES, *TABLES])
def test_a_curve_is_shown_without_a_network(name: str) -> None:
    curve = {**CURVES, **TABLES}[name]
    shown = curve._repr_html_()
    assert ("<svg" in shown) == (name in CURVES)
    assert "<table" in shown or not curve.columns or name == "control"
    assert outside(shown) == []
    assert len(shown) < 60_000
    assert "nan" not in shown.lower()


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_its_first_screen(name: str) -> None:
    shown = RECORDS[name]._repr_html_()
    assert outside(shown) == []
    assert "href" not in shown
    assert "<svg" in shown
    assert len(shown) < 60_000


def test_groups_of_a_curve_are_drawn_one_by_one() -> None:
    for curve, of in ((factories.by_variable(), "sex = "), (factories.bias_map(), "")):
        rows = len(curve.columns["x"])
        names = ("female",) * (rows // 2) + ("male",) * (rows - rows // 2)
        reported = replace(curve, columns={**curve.columns, "group": names}, settings={**curve.settings, "by": "sex"})
        shown = reported._repr_html_()
        assert shown.count('<svg class="plot') == 4
        assert f"{of}female. By" in shown


def test_names_from_the_data_stay_text() -> None:
    record = factories.hostile_subgroups()
    shown = [record._repr_html_(), *(c._repr_html_() for c in record.curves.values())]
    shown += [c._repr_html_() for c in (factories.by_variable(factories.HOSTILE[1], labels=factories.HOSTILE),)]
    for text in shown:
        assert outside(re.sub(r"&lt;.*?&gt;", "", text)) == []
        assert re.findall(r"<(?!/?[a-z!])", text) == []
    assert all(len(line) < 120 for line in repr(record).splitlines())


def test_every_rule_of_style_stays_inside_the_room() -> None:
    shown = RECORDS["all"]._repr_html_()
    style = re.search("<style>(.*?)</style>", shown, re.DOTALL)
    assert style is not None
    outer = list(notebook.blocks(style[1]))
    inner = [r for head, body in outer if head.startswith("@") for r in notebook.blocks(body)]
    rules = [head for head, _ in outer if not head.startswith("@")] + [head for head, _ in inner]
    selectors = [s for head in rules for s in notebook.APART.split(head)]
    assert selectors
    assert all(f".{notebook.ROOM}" in s for s in selectors)


def test_colours_are_those_of_the_page_light_and_dark() -> None:
    page, room = html.asset("style.css"), notebook.palette()
    for variable in ("--ink", "--line", "--band", "--bro", "--within"):
        colours = re.findall(rf"{variable}: ([^;]+);", page)
        light, dark, *stated = re.findall(rf"{variable}: ([^;]+);", room)
        assert [light, dark] == colours[:2]
        assert stated == [light, dark], "as the notebook says"


# ---- a few lines ----


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_few_lines_at_a_prompt(name: str) -> None:
    record = RECORDS[name]
    lines = repr(record).splitlines()
    assert 5 <= len(lines) <= 20
    assert record.name in lines[0]
    groups = "groups shown" if any(f.pooled for f in record.groups) else "group"
    for who in ("Everyone", groups, "Unlisted subgroups", "What to do: ", "    calibrant ", "record.save("):
        assert any(who in line for line in lines)


# ---- a file ----


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDS)
def test_a_file_is_what_its_ending_says_and_is_read_again(name: str, tmp_path: Path) -> None:
    record = RECORDS[name]
    for ending in ("html", "json", "md"):
        record.save(tmp_path / f"audit.{ending}")
    assert (tmp_path / "audit.html").read_text() == html.render(record)
    assert (tmp_path / "audit.json").read_text() == f"{record.to_json()}\n"
    assert (tmp_path / "audit.md").read_text() == markdown.render(record)
    for ending in ("html", "json"):
        again = cal.AuditRecord.load(tmp_path / f"audit.{ending}")
        assert again == record
        assert html.render(again) == html.render(record)
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["audit.html", "audit.json", "audit.md"]


def test_a_long_record_is_packed_into_its_page_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = RECORDS["few people"]
    long = replace(record, data={**record.data, "covariates": [f"{i:06d}" for i in range(60_000)]})
    path = long.save(tmp_path / "long.html")
    assert path.stat().st_size < 400_000 < len(long.to_json())
    assert cal.AuditRecord.load(path) == long
    page = path.read_text()
    for changed in (page.replace("H4sI", "H4sJ"), re.sub(r"H4sI[^<]*", lambda m: m[0][:4000], page)):
        path.write_text(changed)
        with pytest.raises(BadInput, match="was changed or is too large"):
            cal.AuditRecord.load(path)
    path.write_text(page)
    monkeypatch.setattr("calibrant.report.outputs.files.LARGEST", path.stat().st_size)  # a page that unpacks to more
    with pytest.raises(BadInput, match="was changed or is too large"):
        cal.AuditRecord.load(path)


def test_what_cannot_be_written_or_read_says_the_way_out(tmp_path: Path) -> None:
    record = RECORDS["few people"]
    for target, why in (
        ("audit.docx", "end its name in .html, .json, .md, .pdf"),
        ("no/audit.html", "there is no directory"),
    ):
        with pytest.raises(BadInput, match=why):
            record.save(tmp_path / target)
    (tmp_path / "x.html").write_text("<p>")
    (tmp_path / "x.json").write_text("{}")
    (tmp_path / "x.bin").write_bytes(b"\xff\xfe")
    for source, why in (
        ("absent.json", "cannot read"),
        ("x.html", "holds no record"),
        ("x.json", "not an audit record"),
        ("x.bin", "not text"),
    ):
        with pytest.raises(BadInput, match=why):
            cal.AuditRecord.load(tmp_path / source)


def test_a_pdf_without_a_browser_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.shutil, "which", lambda _: None)
    with pytest.raises(BadInput, match=r"install Chromium, Chrome or Edge, or save \.html"):
        RECORDS["few people"].save(tmp_path / "audit.pdf")
    monkeypatch.setenv(files.NAMED, "nothing")
    with pytest.raises(BadInput, match="CALIBRANT_BROWSER='nothing' is no program"):
        RECORDS["few people"].save(tmp_path / "audit.pdf")
    assert list(tmp_path.iterdir()) == []


def test_a_browser_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "browser"
    broken.write_text("#!/bin/sh\necho cannot start >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv(files.NAMED, str(broken))
    with pytest.raises(BadInput, match=r"could not print \(cannot start\)"):
        RECORDS["few people"].save(tmp_path / "audit.pdf")
    assert list(tmp_path.iterdir()) == [broken]


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, files.COMMANDS)), reason="no browser")
def test_a_pdf_is_printed(tmp_path: Path) -> None:
    made = RECORDS["all"].save(tmp_path / "audit.pdf").read_bytes()
    assert made.startswith(b"%PDF")
    assert made.count(b"/Type /Page") > 2


# ---- a folder ----


@pytest.mark.slow
def test_a_folder_holds_page_record_markdown_and_tables(tmp_path: Path) -> None:
    record = RECORDS["all"]
    files.write_all(record, document(record), files.checked_folder(str(tmp_path / "a" / "b"), []))
    folder = tmp_path / "a" / "b"
    assert {p.name for p in folder.iterdir()} == {*files.KEPT, "tripod.md", files.TABLES}
    assert cal.AuditRecord.load(folder / "record.json") == record
    names = {p.name for p in (folder / "tables").iterdir()}
    assert {"groups.csv", "checks.csv", "estimates.csv", "reliability.csv", "repairs.csv", "subgroups.csv"} <= names
    groups = list(csv.DictReader(io.StringIO((folder / "tables" / "groups.csv").read_text(encoding="utf-8"))))
    assert len(groups) == 1 + len(record.groups)
    assert groups[0]["group"] == "everyone"
    end = record.everyone.error.guaranteed.low
    assert end - 1e-4 < float(groups[0]["error_guaranteed_low"]) <= end


@pytest.mark.parametrize(
    ("value", "down", "near", "up"),
    [
        (0.0123456, "0.01234", "0.01235", "0.01235"),
        (-0.0123456, "-0.01235", "-0.01235", "-0.01234"),
        (123456.7, "123456", "123457", "123457"),
        (0.5, "0.5", "0.5", "0.5"),
        (0.0, "0", "0", "0"),
        (1.23456e-7, "1.234e-7", "1.235e-7", "1.235e-7"),
        (float("inf"), "inf", "inf", "inf"),
    ],
)
def test_csv_has_four_digits_and_ends_outward(value: float, down: str, near: str, up: str) -> None:
    made = results.written(("gap_low", "gap", "gap_high", "p_value"), [(value, value, value, value)])
    assert made.split("\n")[1] == f"{down},{near},{up},{up}"
    every = results.written(("gap",), [(value,)], results.CsvForm(digits=17))
    assert float(every.split("\n")[1]) == value


def test_csv_in_the_form_of_a_country() -> None:
    form = results.CsvForm(decimal=",")
    made = results.written(("g", "gap"), [("a;b", 0.25), ("c,d", -1.5)], form)
    assert made == 'g;gap\n"a;b";0,25\nc,d;-1,5\n'


RUN = (
    "=1+1",
    "@x",
    "-2",
    "+",
    " =1",
    "\xa0=1",
    "\u3000@x",
    "\r=1",
    "\n=1",
    "\t=1",
    "\tx",
    "\r",
    "'=1",
    '"=1',
    "\xad=1",
)
RUN += (
    "\u200b+1",
    "\u202e=1",
    "\x1b=1",
    "\x00=1",
    "\ufeff=1",
    "＝1",
    "＋1",
    "－1",
    "＠x",
    "﹦1",
    "⁼1",
    " \u2028＝1",
    "\x85=1",
)
EXACT = (
    "a=1",
    "a\r=1",
    "a\n+1",
    'a"b',
    "a,b",
    "a\u2028b",
    "a\xadb",
    "\u202ea",
    "é=",
    "=".join("ab"),
    "",
    "–",
    "(=1)",
    "👩\u200d⚕️",
)


def test_no_cell_is_a_formula_and_every_other_text_is_exact() -> None:
    texts = (*RUN, *EXACT, "a\x1b[31m\x00\x9b")
    curve = Curve(method="m", columns={"=a": texts, "n": (-1.5, None, *["+"] * (len(texts) - 2))})
    made = dict(results.tables(factories.drawn(factories.tiny(), x=curve)))["x.csv"]
    heads, *rows = csv.reader(io.StringIO(made, newline=""))
    assert heads == ["'=a", "n"]
    assert [row[0].lstrip("'")[-1:] for row in rows[: len(RUN)]] == [text[-1:] for text in RUN]
    assert all(row[0].startswith("'") for row in rows[: len(RUN)])
    assert [row[0] for row in rows[len(RUN) :]] == [*EXACT, "a⟨U+001B⟩[31m⟨U+0000⟩⟨U+009B⟩"]
    assert [row[1] for row in rows[:3]] == ["-1.5", "", "'+"]
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", made)


def test_text_of_lines_is_read_back_in_one_cell() -> None:
    hard = ("a\rb", "a\r\nb", "a\nb", '"', ",", '",\r"')
    made = results.written(("t",), [(text,) for text in hard] + [("",)])
    assert list(csv.reader(io.StringIO(made, newline=""))) == [["t"], *([text] for text in hard), [""]]
    read = pyarrow.csv.read_csv(
        io.BytesIO(made.encode()),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=False),
    )
    assert read["t"].to_pylist() == [*hard, ""]


def test_a_folder_that_cannot_be_is_refused_before_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in ("", str(tmp_path / "file"), str(tmp_path / "file" / "inside")):
        with pytest.raises(BadInput, match="name a directory"):
            files.checked_folder(out, [])
    (tmp_path / "record.json").write_text("{}")
    with pytest.raises(BadInput, match="among the files to read"):
        files.checked_folder(str(tmp_path), [str(tmp_path / "record.json")])


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_told_without_a_numerical_library(name: str, tmp_path: Path) -> None:
    kept, out = tmp_path / "record.json", tmp_path / "page.html"
    kept.write_text(RECORDS[name].to_json(), encoding="utf-8")
    code = (
        "import sys\nfrom calibrant.cli import main\n"
        f"assert main(['report', {str(kept)!r}, '-o', {str(out)!r}, '-o', {str(tmp_path / 'all') + '/'!r}]) == 0\n"
        "heavy = {'numpy', 'scipy', 'pyarrow', 'numba', 'sklearn', 'narwhals'} & {*sys.modules}\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert out.read_text(encoding="utf-8") == html.render(RECORDS[name])
