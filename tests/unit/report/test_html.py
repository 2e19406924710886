from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import sys
from decimal import Decimal
from html.parser import HTMLParser
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from jinja2 import Environment

import factories
from calibrant.audit.record import AuditRecord
from calibrant.report import html
from calibrant.report.numbers import exact
from calibrant.report.wording.terms import MARKS

pytestmark = pytest.mark.xdist_group("pages")  # one process makes the pages, each once
RECORDS = {
    "employment": factories.employment,
    "no limit": lambda: factories.employment(limit=None),
    "hostile": factories.hostile,
    "tiny": factories.tiny,
    "hidden": factories.hidden,
    "no groups": factories.record,
    "within": lambda: factories.mixture("within", ["within"] * 3),
    "undecided": lambda: factories.mixture("undecided", ["undecided"] * 3),
    "over": lambda: factories.mixture("over", ["over", "within"]),
}
VOID = {"meta", "br", "input", "link", "img"}


class Page(HTMLParser):
    """The elements of a page, and the text of each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)

    def ids(self) -> list[str]:
        return [a["id"] for _, a in self.elements if a.get("id")]


@pytest.fixture(scope="module")
def pages() -> dict[str, tuple[AuditRecord, str]]:
    made = {name: make() for name, make in RECORDS.items()}
    return {name: (record, html.render(record)) for name, record in made.items()}


def island(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="calibrant-result"[^>]*>(.*?)</script>', page, re.S)
    return json.loads(found[1])


LARGE = ("hostile", "hidden")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LARGE else n for n in RECORDS])
def test_page_is_well_formed_self_contained_and_small(pages, name):
    text = pages[name][1]
    page = Page(text)
    assert page.open == []
    assert len(text.encode()) < 400_000
    assert len(page.ids()) == len(set(page.ids()))
    tags = [t for t, _ in page.elements]
    assert not {"img", "link", "iframe", "object", "base", "form"} & set(tags)
    assert tags.count("h1") == 1
    levels = [int(t[1]) for t in tags if re.fullmatch("h[1-6]", t)]
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    for tag, attributes in page.elements:
        assert "style" not in attributes, tag
        assert not any(k.startswith("on") for k in attributes), tag
        assert "src" not in attributes
        target = attributes.get("href") or attributes.get("xlink:href") or "#summary"
        assert target.startswith("#")
        assert target[1:] in page.ids()
        if tag == "svg" and attributes.get("role") == "img":
            assert attributes["aria-label"]


@pytest.mark.parametrize("name", RECORDS)
def test_the_json_of_the_page_is_the_record(pages, name):
    record, text = pages[name]
    assert AuditRecord.from_dict(island(text)).to_dict() == record.to_dict()
    assert text.count("</script>") == len(re.findall("<script", text))


def test_same_record_same_bytes(pages):
    record, text = pages["employment"]
    assert html.render(AuditRecord.from_json(record.to_json())) == text


@pytest.mark.slow
def test_compiled_templates_are_kept_with_the_byte_code_where_that_is_kept(
    pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, text = pages["tiny"]

    def written() -> str:
        html.environment.cache_clear()
        return html.render(record)

    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    folder = Path(cache_from_source(html.__file__)).parent
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert written() == text  # there is no folder to write to, and nobody is told
    folder.mkdir(parents=True)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert written() == text
    assert not list(folder.iterdir())
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert written() == text
    assert len(list(folder.iterdir())) == 3
    with monkeypatch.context() as m:
        m.setattr(Environment, "compile", None)  # nothing is compiled again
        assert written() == text
    for kept in folder.iterdir():
        whole = kept.read_bytes()
        for size in (0, 8, len(whole) // 30, 40, len(whole) // 2):
            kept.write_bytes(whole[:size])
            assert written() == text
    html.environment.cache_clear()
    html.environment("en").trim_blocks = False  # as another version may have it
    assert html.render(record) != text
    html.environment.cache_clear()


def test_policy_knows_exactly_this_style_and_script(pages):
    text = pages["hostile"][1]
    for kind, body in (
        ("style", re.search(r"<style>(.*?)</style>", text, re.S)[1]),
        ("script", re.search(r"<script>(.*?)</script>", text, re.S)[1]),
    ):
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text


def test_hostile_names_stay_text(pages):
    text = pages["hostile"][1]
    assert "<img" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "<script>document.title" not in text
    assert "{{ 7 * 7 }}" in text
    text = re.sub(' data-f="[^"]*"', "", text)  # a sentence of the page's own, in which names stand apart
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b\ud800]", text)
    assert "⟨U+202E⟩" in text
    assert "⟨U+001B⟩" in text
    text.encode("utf-8")


@pytest.mark.parametrize("name", ["employment", "within", "undecided", "over"])
def test_every_certified_number_is_the_json_rounded_outward(pages, name):
    text = pages[name][1]
    result = island(text)
    limit = exact(result["settings"]["limit"])
    for group in result["groups"]:
        cells = re.search(rf'<tr id="{group["id"]}">.*?</tr>', text, re.S)[0]
        low, high = map(Decimal, re.search(r'class="r iv"[^>]*>([\d.]+)–([\d.]+)<', cells).groups())
        true_low, true_high = (
            exact(group["lower"]["interval"]["low"]),
            exact(group["upper"]["interval"]["high"]),
        )
        assert low <= true_low < low + Decimal("0.1")
        assert high - Decimal("0.1") < true_high <= high
        says = group["verdict"]
        assert low >= limit if says == "over" else high <= limit if says == "within" else low <= limit < high
        assert f'class="v {says}"' in cells
    one = result["everyone"]
    low, high = map(Decimal, re.search(r"Guaranteed: calibration error ([\d.]+) to ([\d.]+)\.<", text).groups())
    assert low <= exact(one["lower"]["interval"]["low"])
    assert high >= exact(one["upper"]["interval"]["high"])


def test_the_headline_is_the_title_and_every_entry_of_the_contents_has_a_mark(pages):
    text = pages["employment"][1]
    stated = "Within the limit overall. Group foreign born is over it"
    assert f"<title>{stated}: calibration audit of employment_ma</title>" in text
    assert f'<h1 id="summary-h">{stated}.</h1>' in text
    for name in RECORDS:
        nav = re.search(r'<nav class="toc".*?</nav>', pages[name][1], re.S)[0]
        marks = re.findall(r'<a href="#[\w-]+">[^<]+<span class="([\w-]+)"><svg.*?"hush"> \((.*?)\)</span>', nav, re.S)
        assert len(marks) == nav.count("<li>")
        assert all(words == MARKS[status] for status, words in marks)


def test_without_a_limit_nothing_is_judged(pages):
    text = pages["no limit"][1].split("<script", 1)[0]
    body = text.split("</style>")[1]
    assert "Verdict" not in body
    assert "Rows that" not in body
    assert 'class="lim"' not in body
    assert "No limit is set. No group is shown to be miscalibrated." in body


def test_without_groups_it_says_how_to_get_them(pages):
    assert "Name some: <code><bdi>--by COLUMN</bdi></code>." in pages["no groups"][1]


def test_too_little_data_for_a_curve(pages):
    text = pages["tiny"][1]
    assert "<b>No curve: 64 rows, 9 events.</b> A curve needs at least 50 expected events" in text
    assert "<figure" not in text


def test_many_groups_stay_under_half_a_megabyte():
    rows = [(f"variable {i % 5}", f"a rather long value, number {i}") for i in range(50)]
    groups = [factories.finding(0.001 * (i % 20), 0.02, variables=[pair]) for i, pair in enumerate(rows)]
    assert len(html.render(factories.record(groups=groups)).encode()) < 400_000


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.04, 0.01), (0.0, 0.0), (1.0, 1.0)])
def test_extreme_ranges_are_drawn_inside_the_axis(low, high):
    group = factories.finding(low, high, variables=[("g", "x")])
    text = html.render(factories.record(factories.finding(low, high), [group]))
    for x, width in re.findall(r'<rect class="ivl \w+" x="([\d.]+)%" width="([\d.]+)%"', text):
        assert float(x) >= 0
        assert float(x) + float(width) <= 100.02


def test_sections_that_are_not_built_say_so_in_one_line(pages):
    text = pages["employment"][1]
    stated = {
        "variables": "not built in this version",
        "hidden": "not built in this version",
        "repair": "not built in this version",
    }
    for section, words in stated.items():
        body = re.search(rf'<section id="{section}".*?</section>', text, re.S)[0]
        assert words in body
