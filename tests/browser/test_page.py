"""The page in a browser: it logs nothing, asks for nothing, fits a phone and runs no other script."""

from __future__ import annotations

import functools
import html as markup
import http.server
import json
import re
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import factories
from calibrant.report.html import brief, render

pytestmark = pytest.mark.xdist_group("browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--enable-logging=stderr",
)
RECORDS = {
    "employment": factories.employment,
    "hostile": factories.hostile,
    "tiny": factories.tiny,
    "nolimit": lambda: factories.employment(limit=None),
    "undecided": lambda: factories.mixture("undecided", ["undecided", "within"]),
    "variables": factories.variables,
    "hidden": factories.hidden,
    "subgroups": lambda: factories.scanned(factories.hidden()),
    "hostile subgroups": factories.hostile_subgroups,
}
HARNESS = """<!doctype html><title>harness</title>
<iframe id="f" width="390" height="844" src="page.html#TARGET"></iframe>
<script>
const f = document.getElementById('f');
f.addEventListener('load', () => setTimeout(() => {
  const w = f.contentWindow, d = w.document, out = {};
  out.title = d.title;
  out.width = w.innerWidth;
  out.overflow = d.documentElement.scrollWidth - w.innerWidth;
  out.resources = w.performance.getEntriesByType('resource').map(r => r.name);
  out.images = d.images.length;
  out.scripts = [...d.scripts].filter(s => s.type !== 'application/json').length;
  out.script = d.documentElement.classList.contains('js');
  const target = d.getElementById('TARGET');
  out.opened = target ? target.getClientRects().length > 0 : null;
  const slider = d.querySelector('.scrub'), read = d.querySelector('.read');
  if (slider) {
    out.read = read.textContent;
    slider.dispatchEvent(new w.KeyboardEvent('keydown', { key: 'ArrowLeft' }));
    out.moved = read.textContent;
  }
  d.querySelectorAll('details').forEach(x => { x.open = true; });
  out.opened_overflow = d.documentElement.scrollWidth - w.innerWidth;
  const button = d.querySelectorAll('#groups-all th button')[1];
  if (button) {
    button.click();
    out.sorted = button.parentNode.getAttribute('aria-sort');
    out.people = [...button.closest('table').tBodies[0].rows].map(r => +r.cells[1].textContent.replace(/\\D/g, ''));
  }
  document.title = 'done';
  document.body.textContent = '\\u0001' + JSON.stringify(out) + '\\u0001';
}, 300));
</script>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves one folder and remembers what was asked for."""

    requested: list[str]

    def log_message(self, *_: Any) -> None:
        self.requested.append(self.path)


def run(browser: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    profile = folder / "profile"
    command = [browser, *FLAGS, f"--user-data-dir={profile}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, encoding="utf-8")


@pytest.fixture(scope="module", params=RECORDS)
def seen(request, browser, tmp_path_factory) -> tuple[str, dict[str, Any], list[str], str]:
    """What the browser made of a page: its name, the facts, the paths it asked for and the log."""
    folder = tmp_path_factory.mktemp("page")
    record = RECORDS[request.param]()
    target = record.groups[-1].id
    site = folder / "site"
    site.mkdir()
    (site / "page.html").write_text(render(record), encoding="utf-8")
    (site / "harness.html").write_text(HARNESS.replace("TARGET", target), encoding="utf-8")
    handler = type("Handler", (Quiet,), {"requested": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(site)))
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}/harness.html"
        done = run(browser, folder, "--virtual-time-budget=8000", "--window-size=900,900", "--dump-dom", address)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    body = re.search("\x01(.*)\x01", done.stdout, re.S)
    assert body, done.stdout[:500]
    return request.param, json.loads(markup.unescape(body[1])), handler.requested, done.stderr


def test_it_logs_nothing_and_asks_for_nothing(seen):
    _, facts, asked, log = seen
    assert facts["script"], "the page's own script did not run"
    assert facts["resources"] == []
    assert set(asked) <= {"/harness.html", "/page.html", "/favicon.ico"}
    assert [line for line in log.splitlines() if "CONSOLE" in line and "favicon" not in line] == []


def test_it_fits_a_phone(seen):
    _, facts, _, _ = seen
    assert facts["width"] == 390
    assert facts["overflow"] <= 0
    assert facts["opened_overflow"] <= 0


def test_no_name_from_the_data_runs(seen):
    _, facts, _, _ = seen
    assert facts["title"] != "owned"
    assert facts["images"] == 0
    assert facts["scripts"] == 1


def test_sorting_readout_and_links_work(seen):
    name, facts, _, _ = seen
    assert facts["sorted"] == "descending"
    assert facts["people"] == sorted(facts["people"], reverse=True)
    if name in ("employment", "nolimit", "hostile"):
        assert facts["opened"] is True
    if name != "tiny":
        assert facts["read"].startswith("Where the model says")
        assert facts["moved"] != facts["read"]


def test_it_prints_on_a_few_pages(browser, tmp_path):
    (tmp_path / "page.html").write_text(render(factories.employment()), encoding="utf-8")
    target = tmp_path / "page.pdf"
    run(
        browser,
        tmp_path,
        "--no-pdf-header-footer",
        f"--print-to-pdf={target}",
        (tmp_path / "page.html").as_uri(),
    )
    pages = len(re.findall(rb"/Type\s*/Page\b", target.read_bytes()))
    assert 5 <= pages <= 12


def test_the_harness_would_notice_a_script_that_the_policy_stops(browser, tmp_path):
    page = render(factories.tiny()).replace("<footer>", "<script>document.title='owned'</script><footer>")
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    done = run(browser, tmp_path, "--dump-dom", (tmp_path / "page.html").as_uri())
    assert "<title>owned" not in done.stdout
    assert "CONSOLE" in done.stderr


def test_the_brief_is_at_most_two_printed_pages_and_the_appendix_begins_on_its_own(browser, tmp_path):
    record = factories.whole(use="lending")
    more = [factories.finding(0.0, 0.04, variables=[("site", f"site {i}")], rows=900) for i in range(21)]
    record = replace(record, groups=(*record.groups, *more))
    pages = {}
    for name, text in (("brief", brief(record)), ("page", render(record))):
        source, target = tmp_path / f"{name}.html", tmp_path / f"{name}.pdf"
        source.write_text(text, encoding="utf-8")
        command = (browser, *FLAGS, "--no-pdf-header-footer", f"--print-to-pdf={target}", source.as_uri())
        subprocess.run(command, capture_output=True, timeout=180, check=True)
        pages[name] = len(re.findall(rb"/Type\s*/Page\b", target.read_bytes()))
    assert len(record.groups) == 62
    assert pages["brief"] <= 2
    assert pages["page"] > pages["brief"]
