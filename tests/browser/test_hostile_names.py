"""Names that break out, in what a page saves and in its PDF: each is there as text, and nothing runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import hostile_names
from hostile_names import NAMES, REFUSED, Scenario

pytestmark = pytest.mark.xdist_group("browser")
ALL = [text for name, text in NAMES.items() if name not in REFUSED]


@pytest.fixture(scope="module", params=range(5))
def some(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A fifth of the names, as levels; the first is the name of their column, of the data and of the event."""
    levels = ALL[request.param :: 5]
    column = NAMES["end of a script"] if request.param == 0 else levels[0]
    out = Scenario(tmp_path_factory.mktemp("names"), levels, column, NAMES["end of a script"])
    out.write()
    return out


def test_what_a_page_saves_is_read_back(some: Scenario, browser: str, modules: Path) -> None:
    script = Path(__file__).parent / "downloads.cjs"
    page = some.folder / "page.html"
    page.write_text(hostile_names.page(some), encoding="utf-8")
    command = ["node", str(script), str(modules), browser, str(some.folder), str(page), "CSV"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    reported = json.loads(done.stdout)
    assert reported["said"] == []
    assert reported["title"] != "owned"
    assert len(reported["files"]) >= 3
    hostile_names.downloads_read_back(some, [some.folder / f["name"] for f in reported["files"]])


def test_a_pdf_is_read_back(some: Scenario, browser: str) -> None:
    hostile_names.pdf_read_back(some)
