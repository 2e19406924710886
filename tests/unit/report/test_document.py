"""The tree of the report: sections declare themselves, and each node says where it is shown."""

from __future__ import annotations

import re
import sys

import pytest

import factories
from calibrant.audit.record import CheckRecord
from calibrant.report import html, markdown, outline, sections, terminal
from calibrant.report.document import MARKDOWN, NOWHERE, PAGE, TERMINAL, Cell, Column, Paragraph, Row, Table
from calibrant.report.outline import declared, document
from calibrant.report.spans import say

ADDED = """
from calibrant.report.document import EVERYWHERE, Entry, Paragraph
from calibrant.report.outline import OutlineCheck, Declared
from calibrant.report.spans import say


def weather(record):
    yield Paragraph(say("It rained on ", str(record.everyone.rows), " people."), where=EVERYWHERE)


DECLARED = (
    Declared(
        id="weather",
        order=45,
        nav="Weather",
        heading="Did it rain?",
        nodes=weather,
        methods=lambda _: [Entry("Rain", say("Somebody looked out of the window."))],
        words=lambda _: [Entry("Rain gauge", say("A glass in the garden."))],
        checks={"rain": lambda check, _: OutlineCheck("Rain", "much", "it is wet", True)},
    ),
)
"""
WRITERS = {"page": html.render, "markdown": markdown.render, "terminal": terminal.render}


@pytest.fixture
def one_more(tmp_path, monkeypatch):
    """One more file in the folder of sections, and nothing else."""
    (tmp_path / "weather.py").write_text(ADDED, encoding="utf-8")
    monkeypatch.setattr(sections, "__path__", [*sections.__path__, str(tmp_path)])
    declared.cache_clear()
    yield
    sys.modules.pop("calibrant.report.sections.weather", None)
    declared.cache_clear()


def test_sections_have_ids_orders_and_codes_of_their_own():
    found = declared()
    assert len({d.id for d in found}) == len({d.order for d in found}) == len(found)
    codes = [code for d in found for code in d.checks]
    assert len(set(codes)) == len(codes)
    shown = [
        s.id for s in document(factories.record()).sections
    ]  # others where units are sites, or a threshold or an earlier audit is named
    assert shown == [d.id for d in found if d.id not in ("change", "sites", "decisions", "classes")]


def test_a_file_in_the_folder_is_a_section_everywhere(one_more):
    record = factories.record()
    record = factories.replace(record, checks=(*record.checks, CheckRecord(code="rain", status="measured")))
    page, text, lines = (write(record) for write in WRITERS.values())
    assert page.index('<section id="variables"') < page.index('<section id="weather"') < page.index('id="hidden"')
    assert len(re.findall(r'<a href="#weather">Weather<span class="found">.*?error shown', page)) == 2
    assert "<p>It rained on 10000 people.</p>" in page
    assert "## Did it rain?\n\nIt rained on 10000 people." in text
    assert "It rained" not in lines  # a terminal prints the brief
    assert "- **Rain:** Somebody looked out of the window." in text
    assert "- **Rain gauge:** A glass in the garden." in text
    assert "| Rain | Error shown | much | it is wet |" in text


def test_each_way_of_writing_shows_what_is_marked_for_it(monkeypatch):
    def nodes(_):
        for mark, word in ((PAGE, "seen"), (MARKDOWN, "read"), (TERMINAL, "typed"), (NOWHERE, "hidden")):
            yield Paragraph(say(f"This is {word}."), where=mark)
        columns = (Column(say("Head")), Column(say("Drawn"), where=PAGE), Column(say("Told"), where=MARKDOWN))
        cells = (Cell(say("a")), Cell(say("b")), Cell(say("c"), brief=say("d")))
        yield Table(columns, (Row(cells), Row(cells, where=NOWHERE)))

    only = factories.replace(declared()[-1], nodes=nodes)
    monkeypatch.setattr(outline, "declared", lambda: (only,))
    made = document(factories.record())
    page, text, lines = html.written(made, factories.record()), markdown.written(made), terminal.written(made)
    words = ("seen", "read", "typed", "hidden")
    texts = zip(WRITERS, (page, text, lines), strict=True)
    reported = {name: {w for w in words if f"This is {w}." in t} for name, t in texts}
    assert reported == {"page": {"seen"}, "markdown": {"read"}, "terminal": {"typed"}}
    assert "| Head | Told |\n| --- | --- |\n| a | d |\n" in text
    assert page.count('<tr><th scope="row">a</th><td data-l="Drawn">b</td></tr>') == 1
    assert ">Told<" not in page


def test_a_section_with_nothing_to_show_has_no_heading():
    text = markdown.render(factories.record())
    assert "What would repair it?" not in text
    assert "## How far off are the probabilities?" in text
