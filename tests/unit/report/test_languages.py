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

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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


def written(folder: Path) -> None:
    """Files of outcomes by a horizon, with rows that are lost or come too late, and of three classes in two forms."""
    rng = np.random.default_rng(4)
    n, m = 1200, 1500
    entered = np.datetime64("2024-01-01") + rng.integers(0, 900, n)
    ward, rate = rng.choice(["A", "B"], n), rng.gamma(1.5, 0.0006, n)
    death = np.ceil(rng.exponential(1 / np.where(ward == "B", 2.5 * rate, rate)))
    followed = (np.datetime64("2026-06-30") - entered).astype(int)
    days, died = np.minimum(death, followed).astype(int), (death <= followed).astype(int)
    risks = {f"p{h}": 1 - np.exp(-h * rate) for h in (90, 365)}
    stays = {"entered": entered, "ward": ward, "days": days, "died": died, **risks}
    pq.write_table(pa.table(stays), folder / "stays.parquet")
    churn = {"tenure": days, "churn": died, "p365": risks["p365"], "ward": ward}
    pq.write_table(pa.table(churn), folder / "churn.parquet")
    branch, monthly = rng.choice(["x", "y"], m), rng.gamma(2.0, 0.004, m)
    moved = np.where(branch == "x", 0.06, 0.01)
    times = np.array([rng.exponential(1 / r, m) for r in (monthly, 0.01 + 0 * monthly, moved)])
    end = np.array(["default", "repaid", "moved"])[times.argmin(axis=0)]
    loans = {"pd": 1 - np.exp(-12 * monthly), "months": times.min(axis=0), "end": end, "branch": branch}
    pq.write_table(pa.table(loans), folder / "loans.parquet")
    names, p = np.array(["ant", "bee", "cow"]), rng.dirichlet([0.6] * 3, m)
    truth = p**0.5 / (p**0.5).sum(axis=1, keepdims=True)
    label = names[(rng.uniform(size=(m, 1)) > truth.cumsum(axis=1)).sum(axis=1)]
    classes = {f"p_{k}": p[:, i] for i, k in enumerate(names)} | {"label": label, "site": rng.choice(["N", "S"], m)}
    first = np.argsort(-p, axis=1)[:, :2]
    for j in range(2):
        classes |= {f"class_{j + 1}": names[first[:, j]], f"prob_{j + 1}": np.take_along_axis(p, first, 1)[:, j]}
    pq.write_table(pa.table(classes), folder / "classes.parquet")


STAYS = "stays.parquet --time days --event died --by ward --limit 0.03"
LATE = "--entered entered --closed 2026-06-30"
LOANS = (
    "loans.parquet --time months --event end --positive default --competing repaid --horizon 12 --score pd --by branch"
)
CLASSES = "classes.parquet --label label --by site"
KINDS = {
    "classes": f"{CLASSES} --score p_* --limit 0.05 --variables none",
    "classes in order": f"{CLASSES} --score p_* --ordered ant,bee,cow --limit 0.05 --limit-classes 0.1 --quick",
    "classes without a limit": f"{CLASSES} --score p_* --quick",
    "classes listed": f"{CLASSES} --score prob_* --listed class_* --limit 0.2 --quick",
    "followed long enough": f"{STAYS} --horizon 365 --score p365 {LATE} --quick",
    "several horizons": f"{STAYS} --horizon 90,365 --score p90,p365 {LATE} --quick",
    "several horizons, lost": f"{STAYS} --horizon 90,365 --score p90,p365 --way weights --quick",
    "by weights": f"{LOANS} --way weights --limit 0.05 --quick",
    "within levels": f"{LOANS} --way weights --within branch --limit 0.05 --quick",
    "nothing assumed": f"{LOANS} --way unknown --limit 0.3 --quick",
    "an event seen": "churn.parquet --label churn --score p365 --by ward --quick",
}


def kind(folder: Path, of: str, name: str) -> cal.AuditRecord:
    """The record of an audit of one of those files."""
    record = folder / f"{name}.json"
    assert main(["audit", *of.split(), "-o", str(record)]) in (0, 1, 3)
    return cal.AuditRecord.load(record)


@pytest.mark.slow(turns=8)
@pytest.mark.parametrize("name", KINDS)
def test_no_english_sentence_is_left_in_reports_of_classes_and_by_a_horizon(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    holds_no_english(kind(tmp_path, KINDS[name], "now"))


@pytest.mark.slow(turns=4)
def test_no_english_sentence_is_left_in_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    kind(tmp_path, KINDS["followed long enough"], "earlier")
    of = kind(tmp_path, f"{KINDS['followed long enough']} --against earlier.json", "now")
    assert of.curve("change").columns
    holds_no_english(of)


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
        ("North and one more are over it.", "North und eine weitere sind darüber."),
        ("One class and two groups are over it.", "Eine Klasse und zwei Gruppen sind darüber."),
        ("Predicted 8.4%, estimated 8.3%.", "Vorhergesagt 8,4\u202f%, geschätzt 8,3\u202f%."),
        ("site = the rows", "site = the rows"),
        ("home and away over 3", "home and away über 3"),
        ('site = "this or that" or west', 'site = "this or that" oder west'),
        ("site = West and age over 62.5", "site = West und age über 62,5"),
    ],
)
def test_numbers_plurals_and_names(english: str, german: str) -> None:
    said = Translator(GERMAN, {"site", "age", "home and away", "North"})
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
