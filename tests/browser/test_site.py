"""The built documentation under axe-core, in the views of test_axe.py; nothing scrolls sideways, nothing is missing."""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from browser.test_axe import ALL, Faults, axe, looking, looks
from browser.test_layout import node
from pages import ROOT

pytestmark = pytest.mark.xdist_group("site")  # one process looks at it, once
GIVEN = "CALIBRANT_SITE"
PAGES = {  # a page of each kind: its address, and words that stand on it
    "index": "What do you want to know?",
    "start": "Your own file",
    "howto/language-models": "Which answers may pass unread?",
    "reference/index": "Find a function by its name",
    "reference/generated/calibrant.certify.accept": "Guarantee.",
    "gallery/index": "Unlisted subgroups",
    "gallery/plot_4_subgroups": "Unlisted subgroups",
    "notebooks/employment": "277,677 people",
    "search": "Search",
    "reference/command-line": "Exit statuses",
    "proofs": "Theorem U.",
    "papers/strong": "Figure 2",
}


class Linked(HTMLParser):
    """What a page links to and loads, and what may be linked to on it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, _: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {key: value for key, value in attrs if value}
        self.names |= {value for key, value in named.items() if key in ("id", "name")}
        self.targets += [value for key, value in named.items() if key in ("href", "src")]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture(scope="module")
def site() -> Path:
    """The folder that sphinx-build wrote: .ci/run builds it once and names it."""
    given = os.environ.get(GIVEN, "")
    if not given:
        pytest.skip(f"set {GIVEN}=DIRECTORY after sphinx-build docs DIRECTORY")
    return Path(given)


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def faults(browser: str, modules: Path, address: str) -> Faults:
    """What axe-core finds; of the search what it found is looked at too."""
    pages = {p: f"{address}/{p}.html{'?q=threshold' if p == 'search' else ''}" for p in PAGES}
    return looking(browser, modules, pages)


@pytest.mark.parametrize(("page", "view"), [*looks(PAGES)])
def test_a_page_of_the_site_is_clean(faults: Faults, page: str, view: str) -> None:
    assert faults(page, view) == []


@pytest.mark.parametrize("page", PAGES)
def test_it_is_the_page_that_is_meant(site: Path, page: str) -> None:
    assert PAGES[page] in (site / f"{page}.html").read_text(encoding="utf-8")


def test_the_start_page_says_what_it_is_before_its_first_heading(site: Path) -> None:
    """One paragraph, read in ten seconds, and a command."""
    text = (site / "index.html").read_text(encoding="utf-8")
    first = text.partition("</h1>")[2].partition("<h2")[0]
    assert "calibrant audit" in first.replace('<span class="w"> </span>', " ")


def written(site: Path) -> list[Path]:
    """Return the pages of a site, without the theme's own templates."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.relative_to(site).parts]


def broken(site: Path) -> list[str]:
    """Return every link of the site that leads to no page, or to no place on it."""
    pages = {path: Linked(path.read_text(encoding="utf-8")) for path in written(site)}
    out = []
    for path, page in pages.items():
        for target in dict.fromkeys(page.targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not there.exists() or (place and there in pages and place not in pages[there].names):
                out.append(f"{path.relative_to(site)}: {target}")
    return out


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    """Those of docstrings, the gallery and the notebook too; test_docs.py knows Markdown alone."""
    assert broken(site.resolve()) == []


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#no"></a><a href="#top"></a><img src="c.png">')
    (tmp_path / "b.html").write_text('<h1 id="yes">B</h1><a href="a.html#top"></a><a href="https://example.org"></a>')
    assert broken(tmp_path) == ["a.html: b.html#no", "a.html: c.png"]


def test_no_page_loads_anything_from_a_network(site: Path) -> None:
    """Scripts, styles, pictures and MathJax are files of the site: it works without a network."""
    remote = re.compile(
        r"""<(?:script|img|iframe)\b[^>]*\bsrc="https?:|<link\b[^>]*rel="stylesheet"[^>]*href="https?:"""
    )
    assert [p.name for p in written(site) if remote.search(p.read_text(encoding="utf-8"))] == []
    assert (site / "_static/tex-svg.js").stat().st_size > 1_000_000
    assert 'src="_static/tex-svg.js' in (site / "proofs.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    ["reliability diagram", "calibration curve", "temperature scaling", "conformal", "drift", "confidence interval"],
)
def test_the_search_finds_a_page_by_words_of_the_field(site: Path, words: str) -> None:
    """A page whose index has every word: those of its title, its text, and the synonyms of its title."""
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    found = None
    for word in words.split():
        here: set[int] = set()
        for terms in (index["terms"], index["titleterms"]):
            for term, pages in terms.items():
                if word[:6] in term:
                    here |= {pages} if isinstance(pages, int) else {*pages}
        found = here if found is None else found & here
    assert found, words


SEARCHES = {  # what people type, and the page that answers it
    "reliability diagram": "measures",
    "Brier": "reference/generated/calibrant.measure.brier",
    "ECE": "measures",
    "calibration slope": "measures",
    "Hosmer-Lemeshow": "tests",
    "drift": "howto/monitoring",
    "fairness": "howto/fairness",
    "survival": "howto/survival",
    "multiclass": "classes",
    "conformal": "reference/generated/calibrant.certify.accept",
    "lost to follow-up": "howto/horizon",
    "late labels": "howto/late-labels",
    "SQL": "deploy",
}


def test_the_search_puts_the_page_that_answers_among_the_first_three(browser: str, modules: Path, address: str) -> None:
    """As a browser orders what it finds: docs/_static/scorer.js puts pages that explain before pages that list."""
    answers = node("search.cjs", modules, browser, address, *SEARCHES)
    found = {words: [*dict.fromkeys(pages)][:3] for words, pages in answers.items()}
    assert found.keys() == SEARCHES.keys()
    assert {words: pages for words, pages in found.items() if f"{SEARCHES[words]}.html" not in pages} == {}


def test_text_ends_within_the_window_of_a_telephone(browser: str, modules: Path, address: str) -> None:
    """The page of `audit` too, whose parameters are the longest."""
    pages = [*PAGES, "reference/generated/calibrant.audit", "groups", "proofs-methods"]
    found = node("clipped.cjs", modules, browser, address, "390", *pages)
    assert found == {name: [] for name in pages}


def test_details_are_in_neither_the_search_nor_the_sidebar(site: Path) -> None:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    details = {i for i, n in enumerate(index["docnames"]) if n.startswith(("papers/", "evidence/"))}
    assert len(details) == 5
    for terms in (index["terms"], index["titleterms"]):
        assert not [t for t, pages in terms.items() if details & ({pages} if isinstance(pages, int) else {*pages})]
    assert (site / "papers/strong.html").exists()
    sidebar = (site / "reproduce.html").read_text(encoding="utf-8").partition("bd-docs-nav")[2].partition("</nav>")[0]
    assert "proofs.html" in sidebar
    assert "papers/strong.html" not in sidebar


def test_a_page_says_what_it_is_to_those_who_do_not_open_it(site: Path) -> None:
    text = (site / "proofs.html").read_text(encoding="utf-8")
    for name in ('name="description" content="Check here', 'property="og:title" content="Proofs'):
        assert name in text
    assert 'rel="icon" href="_static/logo.svg"' in text


EXAMPLES = sorted(p.stem for p in (ROOT / "docs/examples").glob("plot_*.py"))


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_has_a_picture_a_thumbnail_and_says_how_to_read_it(site: Path, example: str) -> None:
    page = (site / f"gallery/{example}.html").read_text(encoding="utf-8")
    gallery = (site / "gallery/index.html").read_text(encoding="utf-8")
    assert "How to read it." in page
    for picture in (f"sphx_glr_{example}_001.png", f"sphx_glr_{example}_thumb.png"):
        assert (site / "_images" / picture).stat().st_size > 5_000
    assert f"sphx_glr_{example}_001.png" in page
    reported = re.search(rf'tooltip="([^"]+)"><img alt="" src="[^"]*sphx_glr_{example}_thumb', gallery)
    assert reported is not None
    assert len(reported[1]) < 130, "a thumbnail has room for two lines"


def test_axe_would_notice_a_fault_of_the_site(site: Path, browser: str, modules: Path, tmp_path: Path) -> None:
    page = (site / "search.html").read_text(encoding="utf-8").replace("<main", '<img src="x"><main')
    (tmp_path / "spoilt.html").write_text(page, encoding="utf-8")
    found = axe(browser, modules, ",".join(ALL), [tmp_path / "spoilt.html"])
    assert all(any(f.startswith("image-alt") for f in stated) for stated in found.values())
