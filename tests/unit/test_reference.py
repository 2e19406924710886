"""The reference that the site makes from the code names everything, and its search knows the words of the field."""

from __future__ import annotations

import csv
import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator

import pytest

import calibrant as cal
from calibrant.cli import build_parser
from pages import ROOT

pytest.importorskip("sphinx")
if not (ROOT / "docs/_ext").exists():
    pytest.skip("a source distribution without docs", allow_module_level=True)
sys.path.insert(0, str(ROOT / "docs/_ext"))

import made
import site_parts


def public() -> Iterator[tuple[str, str]]:
    """Module and name of everything public."""
    for name in cal.__all__:
        if name != "__version__" and name not in cal._MODULES:
            yield "calibrant", name
    for module in cal._MODULES:
        yield from ((f"calibrant.{module}", name) for name in getattr(cal, module).__all__)


def test_the_index_has_every_public_name_with_what_it_does() -> None:
    text = "\n".join(made.api())
    for module, name in public():
        row = re.search(rf"^\| \{{py:obj\}}`{name} <{module}\.{name}>` \| (.+) \|$", text, re.M)
        assert row is not None, f"{module}.{name}"
        assert len(row[1]) > 10, f"{module}.{name}"


def test_the_index_has_the_fields_of_every_result() -> None:
    text = "\n".join(made.api())
    for kind in made.RESULTS:
        row = re.search(rf"^\| `{kind.__name__}` \|.*$", text, re.M)
        assert row is not None
        assert {f.name for f in dataclasses.fields(kind)} <= {*re.findall(r"`(\w+)`", row[0])}


def test_every_command_is_described_with_its_exit_statuses() -> None:
    text = "\n".join(made.commands())
    for name, parser in made.commands_of(build_parser()).items():
        part = text.partition(f"## calibrant {name}\n")[2].partition("\n## ")[0]
        for one in [*made.commands_of(parser).values()][:3] or [parser]:
            for option in one._option_string_actions:
                shown = one._option_string_actions[option].help != "==SUPPRESS=="
                assert not shown or option in made.COMMON or option in part, f"{name} {option}"
        assert not made.statuses(parser) or re.search(rf"^\| [^|]*`{name}`[^|]* \|", text, re.M)


def test_the_record_has_every_key_and_its_links_lead_to_parts() -> None:
    text = "\n".join(made.record())
    for key in ("verdict", "everyone", "groups", "checks", "curves", "versions"):
        assert f"| `{key}` | " in text
    heads = {head.lower() for head in re.findall(r"^### (\w+)$", text, re.M)}
    assert {*re.findall(r"\]\(#(\w+)\)", text)} <= heads


def test_every_mark_is_made() -> None:
    marks = [m for p in (ROOT / "docs").rglob("*.md") for m in made.MARK.findall(p.read_text(encoding="utf-8"))]
    assert {*made.MADE} <= {*marks}
    assert "<!-- made: changelog -->" not in made.filled("<!-- made: changelog -->\n")


def test_a_cell_shows_its_text_as_it_stands() -> None:
    assert made.cell("a_b | <c> *d*\n e") == r"a\_b \| \<c\> \*d\* e"
    assert inspect.getdoc(cal.audit)
    assert made.first_line(cal.audit).endswith(".")


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Reliability diagrams (calibration curve)", "plot"),
        ("Recalibration", "temperature scaling"),
        ("Accept", "conformal"),
        ("Monitoring", "drift"),
        ("Choosing a bound", "confidence interval"),
        ("reliability_curve", "diagram"),
    ],
)
def test_the_search_knows_the_words_of_the_field(title: str, words: str) -> None:
    assert {*words.split()} <= {*site_parts.keywords(title)}


def test_a_page_of_another_subject_has_no_such_words() -> None:
    assert site_parts.keywords("Changelog") == []


def test_every_table_of_the_evidence_is_there_and_named_once() -> None:
    folder = ROOT / "docs/evidence"
    with (folder / "tables.csv").open(encoding="utf-8", newline="") as file:
        listed = [line["file"] for line in csv.DictReader(file)]
    assert sorted(listed) == sorted(p.name for p in folder.glob("*.csv") if p.name != "tables.csv")
    text = "".join(made.tables(folder))
    for name in listed:
        with (folder / name).open(encoding="utf-8", newline="") as file:
            lines = [*csv.reader(file)]
        assert len(lines) > 1
        assert {len(line) for line in lines} == {len(lines[0])}, name
        assert f":file: {name}" in text
