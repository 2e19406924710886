"""Names that break out where text is taken for something else, and every output for programs, tried with them."""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant as cal
import engines
import factories
from calibrant.cli.options import outputs as named
from calibrant.cli.parser import build_parser
from calibrant.cli.reporting import ENDINGS
from calibrant.cli.run import main
from calibrant.repair.fitted import Calibrator
from calibrant.repair.formulas.dialects import DIALECTS
from calibrant.report.commands import toml_line
from calibrant.report.html import render
from calibrant.sanitize import sanitize

NAMES: Mapping[str, str] = {
    "soft hyphen": "a\xadb",
    "zero width space": "a\u200bb",
    "byte order mark": "\ufeffa",
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
    "right-to-left override": "\u202eabc",
    "isolate": "\u2066a\u2069",
    "colours of a terminal": "\x1b[31mred",
    "title of a terminal": "\x1b]0;owned\x07",
    "NUL": "a\x00b",
    "delete": "a\x7f",
    "control of one byte": "a\x9b31m",
    "next line": "a\x85b",
    "vertical tab": "a\x0bb\x0cc",
    "new line": "a\nb",
    "carriage return": "a\rb",
    "both": "a\r\nb",
    "tabs": "\ta\tb",
    "apostrophe": "O'Brien",
    "quotes": 'a"b"',
    "backslash": "a\\'b\\",
    "escape in text": "\\u202e\\n",
    "template": "${process.exit(1)}",
    "backticks": "`id`",
    "end of a script": "</script><script>document.title='owned'</script>",
    "comment of HTML": "<!-- a --!> <img src=x onerror=alert(1)>",
    "end of CDATA": "]]>",
    "percent": "%s%n%% 100%",
    "braces": "{}{0}{{x}}{% raw %}",
    "emoji": "👩\u200d⚕\ufe0f🏳\ufe0f\u200d🌈",
    "combining": "e" + "\u0301\u0308" * 20,
    "full width": "＝ｓｕｍ（１）",
    "right to left": "שלום عرب",
    "private": "\ue000",
    "no character": "a\ufffeb",
    "tag": "\U000e0041",
    "half a character": "a\ud800b",
    "empty": "",
    "10,000 characters": "x" * 10_000,
    "200 characters": "long " * 40,
    "blanks around": "  a  ",
    "blank": " ",
    "keyword": "SELECT",
    "injection": "'; DROP TABLE scores; --",
    "comment of SQL": "/* a */ -- b",
    "dollar quotes": "$$a$$",
    "formula": "=1+1",
    "plus": "+1",
    "minus": "-1+1",
    "at": "@SUM(A1)",
    "formula behind blanks": " \n=1+1",
    "delimiters": "a,b;c|d",
    "prototype": "__proto__",
    "constructor": "constructor",
    "code": "⟨U+00AD⟩",
    "expression": "[a](javascript:alert(1)) | b",
}
REFUSED = "half a character", "empty", "10,000 characters"  # as a level: no text, a missing value, too long
RECORD = {  # of `report` and `audit`: outputs that may be printed, and an ending of a file for each
    "html": "html",
    "markdown": "md",
    "json": "json",
    "tripod": "md",
    "junit": "xml",
    "summary": "md",
    "metrics": "json",
    "model-card": "md",
}
BUNDLED = "example"  # an audit of data without such names, delivered as audits are


def outputs() -> set[tuple[str, str]]:
    """Command and option of everything that is printed for programs, or written to a file of its own."""
    top = build_parser()
    out = set()
    for command, p in _commands(top).items():
        p._filled()
        for face in [p, *list(_commands(p).values())[:1]]:
            face._filled()
            options = face._option_string_actions
            if "--json" in options:
                out.add((command, "json"))
            if "--open" in options:  # it writes a record, of which all but a PDF may be printed
                out |= {(command, name) for name in {*ENDINGS.values(), *named("record")} - {"pdf"}}
            if "--keep" in options:
                out |= {(command, name) for name in ("sql", *named("calibrator"))}
    return out


def _commands(p: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    groups = [a for a in p._actions if isinstance(a, argparse._SubParsersAction)]
    return groups[0].choices if groups else {}


class Refused(Exception):
    """The command said in a line why it cannot be done."""


@dataclass(frozen=True)
class Scenario:
    """Rows whose levels, column, event and files are called as `levels`, `column`, `event` say."""

    folder: Path
    levels: Sequence[str]
    column: str
    event: str

    @property
    def data(self) -> Path:
        return self.folder / "data.parquet"

    @property
    def rows(self) -> tuple[str, ...]:
        return (str(self.data), "--label", "y", f"--positive={self.event}", "--score", "p")

    @property
    def by(self) -> str:
        return f"--by={quoted(self.column)}"

    def write(self, rows: int = 60, audit: bool = True) -> None:
        """Write the rows, a calibrator of them, and the record of their audit."""
        rng = np.random.default_rng([40, len(self.levels)])
        n = max(600, rows * len(self.levels))
        k, p = np.arange(n) % len(self.levels), rng.uniform(0.2, 0.8, n)
        y = rng.random(n) < np.clip(p + 0.2 * np.cos(k), 0.02, 0.98)
        text = pa.array([self.levels[i] for i in k])
        columns = {
            "id": pa.array(np.arange(n)),
            "y": pa.array([self.event if v else "other" for v in y]),
            "p": pa.array(p),
            "q": pa.array(np.clip(p + 0.1 * (y - 0.5), 0.01, 0.99)),
            self.column: text,
        }
        pq.write_table(pa.table(columns), self.data)
        data = cal.predictions(y, p, pa.table({self.column: text}), name=self.column or "rows")
        fit = cal.repair.AugmentedLogistic(variables=(self.column,)).fit(data)
        (self.folder / "calibrator.json").write_text(fit.to_json(), encoding="utf-8")
        if not audit:
            return
        record = ("-o", str(self.folder / "record.json"))
        self.run("audit", *self.rows, self.by, "--limit", "0.2", "--quick", *self.about(), *record)

    def about(self) -> tuple[str, str]:
        """The option that names the file of words, which is written with the event as the name and the outcome."""
        path, text = self.folder / "about.toml", toml_line("name", self.event) + "\n" + toml_line("outcome", self.event)
        path.write_bytes(text.encode(errors="surrogatepass"))
        return "--about", str(path)

    @property
    def calibrator(self) -> Calibrator:
        return Calibrator.from_json((self.folder / "calibrator.json").read_text(encoding="utf-8"))

    def asked(self) -> tuple[pa.Table, list[float]]:
        """A row of each level, and what Python repairs of it."""
        p, one = np.linspace(0.1, 0.9, len(self.levels)), self.calibrator
        table = pa.table({"id": np.arange(len(p)), "p": p, one.reads[0]: list(self.levels)})
        return table, one.scores(p, columns=table.select(list(one.reads))).tolist()

    def run(self, *arguments: str) -> str:
        """What a command prints; `Refused` where it says in one line why not."""
        out, err = io.StringIO(newline=""), io.StringIO(newline="")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(arguments)
        if status == 2 and not out.getvalue() and err.getvalue().count("\n") in (1, 2):
            raise Refused(err.getvalue().splitlines()[-1])
        if status == 2 and arguments[0] == "look" and not err.getvalue():  # JSON says what is in the way
            raise Refused(json.loads(out.getvalue())["refusals"][0])
        assert status in (0, 1, 3), (status, err.getvalue()[-300:])
        return out.getvalue()


def quoted(name: str) -> str:
    """A name in a list on the command line."""
    return '"' + name.replace('"', '""') + '"'


# ---- each output against its file, or against what Python has ----


def of_record(name: str, s: Scenario) -> None:
    """What is printed of a record is its file, byte for byte."""
    target = s.folder / f"out.{RECORD[name]}"
    s.run("report", str(s.folder / "record.json"), "-o", f"{name}:{target}")
    assert s.run("report", str(s.folder / "record.json"), "-o", f"{name}:-").encode() == target.read_bytes()


def of_audit(name: str, s: Scenario) -> None:
    """What an audit prints is what it writes, byte for byte."""
    target, audit = s.folder / f"audit.{RECORD[name]}", ("audit", *s.rows, s.by, "--quick", *s.about())
    s.run(*audit, "-o", f"{name}:{target}")
    assert s.run(*audit, "-o", f"{name}:-").encode() == target.read_bytes()


def as_json(s: Scenario, *command: str, names: Sequence[str] = (), file: bool = False) -> None:
    """The JSON holds every name as it is, and is that of the file where a command can write one."""
    printed = s.run(*command, "--json")
    kept = "\0".join(_texts(json.loads(printed)))
    assert not [name for name in names if name not in kept and json.dumps(name, ensure_ascii=False) not in kept]
    if file:
        s.run(*command, "--out", str(s.folder / "out.json"))
        assert printed.encode() == (s.folder / "out.json").read_bytes()


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        yield from _texts(list(value.values()))
    elif isinstance(value, list):
        for v in value:
            yield from _texts(v)


def of_look(s: Scenario) -> None:
    as_json(s, "look", *s.rows, s.by, names=[s.column, s.event])


def of_certify(s: Scenario) -> None:
    as_json(s, "certify", *s.rows, s.by, "--method", "worst_group")


def of_measure(s: Scenario) -> None:
    as_json(s, "measure", "ece", *s.rows, s.by, names=s.levels, file=True)


def of_detect(s: Scenario) -> None:
    as_json(s, "detect", "cox_test", *s.rows, file=True)


def of_diagnose(s: Scenario) -> None:
    one = f"--variable={s.column}"
    as_json(s, "diagnose", "variable_curve", *s.rows, one, names=s.levels, file=True)


def of_papers(s: Scenario) -> None:
    as_json(s, "papers", "adaptive_chi_square_test", *s.rows, file=True)


def of_accept(s: Scenario) -> None:
    as_json(s, "accept", *s.rows, s.by, names=s.levels)


def of_compare(s: Scenario) -> None:
    as_json(s, "compare", *s.rows[:-1], "p,q", s.by, names=s.levels)


def of_grades(s: Scenario) -> None:
    as_json(s, "grades", *s.rows, f"--grade={s.column}", "--average-pd", "--draws", "19", names=s.levels, file=True)


def of_plan(s: Scenario) -> None:
    as_json(s, "plan", "0.02", "--data", *s.rows)


def of_weights(s: Scenario) -> None:
    as_json(s, "weights", str(s.data), "--to", str(s.data), s.by)


def of_repair(s: Scenario) -> None:
    one = f"--variables={quoted(s.column)}"
    as_json(s, "repair", *s.rows, s.by, one, "--key", "id", "--method", "platt", "--quick", names=[s.column])


def of_sql(s: Scenario) -> None:
    """Printed SQL is that of Python, in every dialect, and two engines that are always there repair as Python does."""
    for dialect in DIALECTS:
        assert sql(s, dialect) == s.calibrator.to_sql(dialect, score="p", table="scores", keep=["id"]) + "\n"


def sql(s: Scenario, dialect: str) -> str:
    return s.run("apply", _kept(s), "-o", f"{dialect}:-", "--score", "p", "--table", "scores", "--keep", "id")


def of_javascript(s: Scenario) -> None:
    assert javascript(s) == s.calibrator.to_javascript()


def javascript(s: Scenario) -> str:
    return s.run("apply", _kept(s), "-o", "javascript:-")


def _kept(s: Scenario) -> str:
    return str(s.folder / "calibrator.json")


# ---- what engines make of it, and what is read back ----


def worst(s: Scenario, engine: str, postgres: Callable[[str], str] | None = None) -> float:
    """The largest difference between what an engine repairs by what is printed, and Python."""
    table, wanted = s.asked()
    if engine == "duckdb":
        import duckdb

        con = duckdb.connect()
        con.register("scores", table)
        rows = con.execute(sql(s, "duckdb")).fetchall()
    elif engine == "sqlite":
        rows = engines.in_sqlite(table, sql(s, "sqlite"))
    elif engine == "postgres":
        assert postgres is not None
        rows = engines.in_postgres(postgres, table, sql(s, "postgres").rstrip("\n"))
    else:
        inputs = json.dumps(json.dumps(table.to_pylist()))
        rows = engines.in_node(javascript(s), f"JSON.parse({inputs}).map(r => [r.id, repaired(r.p, r)])")
    assert len(rows) == len(wanted)
    return max(abs(v - w) for (_, v), w in zip(sorted(rows), wanted, strict=True))


def cells_read_back(s: Scenario) -> None:
    """Every group is in the tables of a folder once, as it is called, and no cell is a formula."""
    s.run("report", str(s.folder / "record.json"), "-o", f"{s.folder / 'all'}/")
    for path in sorted((s.folder / "all" / "tables").glob("*.csv")):
        text = path.read_bytes().decode()
        rows = list(csv.reader(io.StringIO(text, newline="")))
        assert len({len(row) for row in rows}) == 1, path.name
        assert not [cell for row in rows for cell in row if runs(cell)], path.name
        assert not CONTROLS.search(text), path.name
        if path.name == "groups.csv":
            record = cal.AuditRecord.load(s.folder / "record.json")
            wanted = {CONTROLS.sub(lambda m: f"⟨U+{ord(m[0]):04X}⟩", n) for n in record.groups.names}
            cells = [row[1] for row in rows[2:]]  # those behind a quotation mark have an apostrophe too
            assert {cell if cell in wanted else cell.removeprefix("'") for cell in cells} == wanted
            assert len(cells) == len(wanted)


def workbook_read_back(s: Scenario) -> None:
    """Every grade is in the workbook, as text and no formula."""
    import openpyxl

    target = s.folder / "grades.xlsx"
    s.run("grades", *s.rows, f"--grade={s.column}", "--average-pd", "--draws", "19", "--out", str(target))
    for page in openpyxl.load_workbook(target):
        for cell in [cell for row in page.iter_rows() for cell in row]:
            assert cell.data_type != "f", (page.title, cell.coordinate)
            assert cell.hyperlink is None
    grades = [row[0].value for row in openpyxl.load_workbook(target)["PD back-testing"].iter_rows(min_row=2)]
    assert sorted(grades[:-1]) == sorted(sanitize(level) for level in s.levels)


def page(s: Scenario) -> str:
    """The page of the record, with a curve by every level."""
    record, gaps = cal.AuditRecord.load(s.folder / "record.json"), [0.03 - 0.001 * k for k in range(len(s.levels))]
    curve = factories.by_variable("odd", labels=s.levels, gaps=gaps)
    return render(factories.drawn(record, **dict(record.curves), **{"variable_curve/odd": curve}))


def downloads_read_back(s: Scenario, files: Sequence[Path]) -> None:
    """Every level is in the tables that a page saves, as the page shows it, and no cell is a formula."""
    cells = []
    for path in files:
        text = path.read_bytes().decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text, newline="")))
        assert len({len(row) for row in rows}) == 1, path.name
        assert not [cell for row in rows for cell in row if runs(cell)], path.name
        assert not CONTROLS.search(text), path.name
        cells += [cell for row in rows for cell in row]
    seen = [re.sub(r"[ \n\t]+", " ", sanitize(level)).strip() for level in s.levels]
    assert not [name for name in seen if not any(name in cell for cell in cells)]


def pdf_read_back(s: Scenario) -> None:
    """The PDF is called as the page is, and nothing in it acts."""
    target = s.folder / "audit.pdf"
    s.run("report", str(s.folder / "record.json"), "-o", str(target))
    content = target.read_bytes()
    assert content.startswith(b"%PDF")
    assert content.count(b"/Type /Page\n") >= 2
    acts = (b"/JavaScript", b"/JS", b"/Launch", b"/EmbeddedFile", b"/SubmitForm", b"javascript:", b"alert(1)")
    assert not [act for act in acts if act in content]
    title = re.search(rb"/Title (<[0-9A-Fa-f]+>|\((?:[^\\)]|\\.)*\))", content)
    assert title is not None
    made = bytes.fromhex(title[1][1:-1].decode()).decode("utf-16") if title[1][:1] == b"<" else title[1][1:-1].decode()
    assert made != "owned"


CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def runs(cell: str) -> bool:
    """Whether a spreadsheet may take a cell for a formula, as OWASP lists it; a number is none."""
    with contextlib.suppress(ValueError):
        return not math.isfinite(float(cell))
    first = next((c for c in cell if not c.isspace() and unicodedata.category(c)[0] != "C"), "")
    return first in tuple("=+-@＝＋－＠") or cell[:1] in tuple("\t\r\n")


CHECKS: Mapping[tuple[str, str], Callable[[Scenario], None]] = {
    **{("report", name): partial(of_record, name) for name in RECORD},
    **{("audit", name): partial(of_audit, name) for name in RECORD},
    ("look", "json"): of_look,
    ("certify", "json"): of_certify,
    ("measure", "json"): of_measure,
    ("detect", "json"): of_detect,
    ("diagnose", "json"): of_diagnose,
    ("papers", "json"): of_papers,
    ("accept", "json"): of_accept,
    ("compare", "json"): of_compare,
    ("grades", "json"): of_grades,
    ("plan", "json"): of_plan,
    ("weights", "json"): of_weights,
    ("repair", "json"): of_repair,
    ("apply", "sql"): of_sql,
    ("apply", "javascript"): of_javascript,
}
