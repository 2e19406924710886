"""The built documentation under axe-core: two widths, light and dark; nothing scrolls sideways, nothing is missing."""

from __future__ import annotations

import functools
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser.test_axe import VIEWS, axe

pytestmark = pytest.mark.xdist_group("site")  # one process looks at it, once
GIVEN = "CALIBRANT_SITE"
PAGES = {  # a page of each kind: its address, and words that stand on it
    "index": "What have you in your hands?",
    "start": "A softmax array",
    "howto/language-models": "Above which confidence may an answer pass unread?",
    "reference/generated/calibrant.certify.accept": "Guarantee.",
    "gallery/index": "In which pocket that nobody named?",
    "gallery/plot_4_pockets": "In which pocket that nobody named?",
    "notebooks/employment": "277,677 people",
    "search": "Search",
}


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
def faults(browser: str, modules: Path, address: str) -> dict[str, list[str]]:
    """What axe-core finds; of the search what it found is looked at too."""
    return axe(browser, modules, [f"{address}/{p}.html{'?q=threshold' if p == 'search' else ''}" for p in PAGES])


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_the_site_is_clean(faults: dict[str, list[str]], page: str, view: str) -> None:
    assert faults[f"{page} {view}"] == []


@pytest.mark.parametrize("page", PAGES)
def test_it_is_the_page_that_is_meant(site: Path, page: str) -> None:
    assert PAGES[page] in (site / f"{page}.html").read_text(encoding="utf-8")


def test_the_start_page_says_what_it_is_before_its_first_heading(site: Path) -> None:
    """One paragraph, read in ten seconds, and a command."""
    text = (site / "index.html").read_text(encoding="utf-8")
    first = text.partition("</h1>")[2].partition("<h2")[0]
    assert "calibrant audit" in first.replace('<span class="w"> </span>', " ")


def test_axe_would_notice_a_fault_of_the_site(site: Path, browser: str, modules: Path, tmp_path: Path) -> None:
    page = (site / "search.html").read_text(encoding="utf-8").replace("<main", '<img src="x"><main')
    (tmp_path / "spoilt.html").write_text(page, encoding="utf-8")
    found = axe(browser, modules, [tmp_path / "spoilt.html"])
    assert all(any(f.startswith("image-alt") for f in said) for said in found.values())
