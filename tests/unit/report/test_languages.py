"""A report in German: no English sentence is left, names stay, and numbers are written as German writes them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.errors import BadInput
from calibrant.report import document as doc
from calibrant.report import html, markdown, terminal
from calibrant.report.brief import brief
from calibrant.report.languages.catalogue import HOLE, LANGUAGES, NUMBER, catalogue, numbers
from calibrant.report.languages.translator import Translator, in_language, names_of
from calibrant.report.outline import document
from calibrant.report.spans import Span, say
from frozen import freeze

GERMAN = catalogue("de")
QUICK = ("audit-over", "audit-small-groups", "audit-within")
UNREAD = ("script", "style", "pre", "code", "bdi")
# Words that every longer English sentence has, and that no German one has.
ENGLISH_WORDS = re.compile(
    r"(?<![-\w])(the|of|is|are|rows?|at (?:least|most)|not|and|with|for|by|from|points|which|that|each|over)\b"
)


@cache
def kept(case: str) -> tuple[cal.AuditRecord, ...]:
    texts = (content.decode() for name, content in freeze.kept()[case].items() if name.endswith(".json"))
    return tuple(cal.AuditRecord.from_json(text) for text in texts if '"calibrant/4"' in text)


def audits() -> Iterator[str]:
    yield from (case for case in freeze.kept() if case.startswith(("audit-", "example")))


class Words(HTMLParser):
    """What a page says: its text and the words of its attributes, without code and names of the data."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNREAD:
            self.inside.append(tag)
        self.said += [
            v for k, v in attrs if k in ("aria-label", "title", "alt", "placeholder", "data-f", "data-l") and v
        ]

    def handle_endtag(self, tag: str) -> None:
        if tag in UNREAD:
            self.inside.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self.inside and data.strip():
            self.said.append(data)


def english(texts: list[str], names: set[str]) -> list[str]:
    """Texts that hold an English word outside of the words of the data."""
    known = sorted((n for n in names if len(n) > 2), key=len, reverse=True)
    of_data = re.compile("|".join(rf"(?<!\w){re.escape(n)}(?!\w)" for n in known) or "$^")
    return [
        t
        for t in texts
        if "…" not in t and ENGLISH_WORDS.search(of_data.sub("", t).replace("calibration-in-the-large", ""))
    ]


def unsaid(record: cal.AuditRecord) -> list[str]:
    """Sentences of a report, and of its first screen, that the catalogue lacks."""
    said = Translator(GERMAN, names_of(record))
    for of in (document(record), brief(record)):
        said.document(of)
    return [m for m in said.missing if "VERSION" not in m]


def holds_no_english(record: cal.AuditRecord) -> None:
    assert not unsaid(record)
    words = Words()
    words.feed(html.render(record, "de"))
    assert len(words.said) > 100
    assert not english(words.said, names_of(record))
    assert "Was zu tun ist: " in terminal.render(record, "de") or "Was zu tun ist" not in html.render(record, "de")


@pytest.mark.parametrize("case", QUICK)
def test_no_english_sentence_is_left_in_a_german_report(case: str) -> None:
    assert kept(case)
    for record in kept(case):
        holds_no_english(record)


@pytest.mark.slow(turns=6)
@pytest.mark.parametrize("case", [c for c in audits() if c not in QUICK])
def test_no_english_sentence_is_left_in_any_frozen_report(case: str) -> None:
    for record in kept(case):
        holds_no_english(record)


def test_a_sentence_without_an_entry_stays_english_and_is_counted() -> None:
    record = kept("audit-over")[0]
    of = document(record)
    new = doc.Paragraph(say("The moon is made of green cheese."))
    spoilt = replace(of, sections=(replace(of.sections[0], nodes=(new, *of.sections[0].nodes)), *of.sections[1:]))
    made = in_language(spoilt, record, "de")
    assert made.sections[0].nodes[0] == new
    last = made.sections[-1].nodes[-1]
    assert isinstance(last, doc.Paragraph)
    assert "auf Englisch" in last.text[0].text
    assert english(["The moon is made of green cheese."], set())


def test_english_is_untouched() -> None:
    record = kept("audit-over")[0]
    of = document(record)
    assert in_language(of, record, "en") is of
    assert html.render(record) == html.render(record, "en") == record.to_html()


def test_the_record_inside_a_german_page_is_the_same(tmp_path: Path) -> None:
    record = kept("audit-over")[0]
    page = tmp_path / "a.html"
    record.save(page, language="de")
    assert '<html lang="de">' in page.read_text(encoding="utf-8")
    assert cal.AuditRecord.load(page).to_json() == record.to_json()
    assert record.to_html(language="de") == page.read_text(encoding="utf-8")


def test_the_command_writes_and_prints_german(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, page, text = tmp_path / "r.json", tmp_path / "r.html", tmp_path / "r.md"
    record.write_text(kept("audit-over")[0].to_json(), encoding="utf-8")
    assert main(["report", str(record), "--language", "de", "-o", str(page), "-o", str(text)]) == 0
    assert "Was zu tun ist:" in capsys.readouterr().out
    assert "**Was zu tun ist.**" in text.read_text(encoding="utf-8")
    assert '<html lang="de">' in page.read_text(encoding="utf-8")


def test_an_unknown_language_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput, match="language='fr': a report is written in en or de"):
        kept("audit-over")[0].to_html(language="fr")
    assert main(["report", "r.json", "--language", "fr"]) == 2
    assert "--language" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("1,234.5", "1\u202f234,5"),
        ("+0.9 (-0.7 to +1.0)", "+0,9 (-0,7 bis +1,0)"),
        ("95%", "95\u202f%"),
        ("2026-01-05", "05.01.2026"),
        ("1 group", "1 Gruppe"),
        ("2 groups", "2 Gruppen"),
        ("Two groups are undecided.", "Zwei Gruppen sind nicht entschieden."),
        ("One group is undecided.", "Eine Gruppe ist nicht entschieden."),
        ("site = the rows", "site = the rows"),
        ("home and away over 3", "home and away über 3"),
        ('site = "this or that" or west', 'site = "this or that" oder west'),
        ("site = West and age over 62.5", "site = West und age über 62,5"),
    ],
)
def test_numbers_plurals_and_names(english: str, german: str) -> None:
    said = Translator(GERMAN, {"site", "age", "home and away"})
    assert said.string(english) == german
    assert not said.missing


def test_a_name_of_the_data_stays_inside_a_sentence() -> None:
    said = Translator(GERMAN, {"site"})
    text = said.text(say("Error is shown along ", Span("over the limit", "code"), "."))
    assert text == (Span("Fehler nachgewiesen entlang "), Span("over the limit", "code"), Span("."))


def entries() -> Iterator[tuple[str, str]]:
    for file in (files("calibrant.report.languages") / "de").iterdir():
        yield from tomllib.loads(file.read_text(encoding="utf-8")).get("sentences", {}).items()


def test_every_entry_fills_each_of_its_holes_and_stands_once() -> None:
    keys = [key for key, _ in entries()]
    assert len(keys) == len(set(keys)) > 1000
    for key, said in entries():
        order = iter(range(1, 99))
        used = [int(hole[1]) if hole[1] else next(order) for hole in HOLE.finditer(said)]
        assert sorted(used) == list(range(1, len(HOLE.findall(key)) + 1)), key


def test_what_the_script_says_is_there_to_be_replaced() -> None:
    script = html.asset("script.js")
    assert GERMAN.script
    for piece, said in GERMAN.script.items():
        assert piece in script, piece
        assert piece != said
    for word in ("Download", "Filter ${", "Show all", "this figure"):
        assert word not in html.scripted(script, "de")


def test_numbers_are_found_and_versions_are_not() -> None:
    assert NUMBER.findall("1,234 of 5.5 at 0.1.0 and v2 or 3%") == ["1,234", "5.5", "3"]
    assert numbers("0.1.0") == "0.1.0"
    assert "de" in LANGUAGES


def test_markdown_is_german_and_keeps_its_commands() -> None:
    record = kept("audit-over")[0]
    text = markdown.render(record, "de")
    assert text.startswith("# Kalibrierungsaudit von `log`")
    assert "calibrant repair" in text
