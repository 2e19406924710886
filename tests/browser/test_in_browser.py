"""The page of docs/browser in Chromium: the same audit as here, and nothing leaves the machine."""

from __future__ import annotations

import functools
import http.server
import json
import math
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import calibrant as cal
from pages import ROOT

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("in_browser")]
GIVEN = "CALIBRANT_PYODIDE"
SCRIPT = Path(__file__).with_name("in_browser.cjs")
STAND_IN = Path(__file__).with_name("stand_in") / "msgspec.py"
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
CLOSE = 1e-6  # the optimisers of another version of SciPy stop a trifle elsewhere
ESTIMATES = 0.1  # a shuffled row may cross an edge that has moved by that trifle


class Asked(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and keeps what it is asked for."""

    kept: list[str]

    def do_POST(self) -> None:
        self.send_response(204)
        self.end_headers()

    def copyfile(self, source: Any, outputfile: Any) -> None:
        with suppress(ConnectionError):  # the browser is closed before all is loaded
            super().copyfile(source, outputfile)

    def log_message(self, *_: Any) -> None:
        self.kept.append(f"{self.command} {self.path}")


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve a folder on this machine: its address, and what it is asked for."""
    handler = type("Handler", (Asked,), {"kept": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", handler.kept
    server.shutdown()
    thread.join()
    server.server_close()


def built(out: Path) -> Path:
    """Return the folder that the command makes."""
    pyodide = Path(os.environ.get(GIVEN, ""))
    if not os.environ.get(GIVEN) or not (pyodide / "pyodide-lock.json").is_file():
        pytest.skip(f"set {GIVEN}=DIRECTORY to a distribution of Pyodide: docs/browser.md says where it comes from")
    command = [sys.executable, ROOT / "docs/browser/build.py", "--pyodide", pyodide, "--out", out]
    held = json.loads((pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    if not (pyodide / held["msgspec"]["file_name"]).is_file():
        command += ["--instead", f"msgspec={STAND_IN}"]
    subprocess.run(command, check=True)
    return out


def driven(browser: str, modules: Path, *given: object) -> dict[str, Any]:
    """Return what the script tells."""
    command = ["node", str(SCRIPT), str(modules), browser, *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("in_browser")


@pytest.fixture(scope="module")
def site(folder: Path) -> Path:
    return built(folder / "site")


@pytest.fixture(scope="module")
def told(browser: str, modules: Path, site: Path, folder: Path) -> dict[str, Any]:
    """What the browser did, with what both servers saw; files are in the folder."""
    with serving(site) as (address, seen), serving(folder) as (other, elsewhere):
        out = driven(browser, modules, f"{address}/", site / "example.csv", 2, folder, other)
    print({k: out[k] for k in ("seconds", "told", "headline")})
    return out | {"seen": seen, "elsewhere": elsewhere, "address": address}


def differences(here: Any, there: Any, at: str = "") -> Iterator[str]:
    """Yield where two records differ: numbers that are drawn by chance by more than a trifle, all else at all."""
    if isinstance(here, dict) and isinstance(there, dict):
        for key in sorted(here.keys() | there.keys()):
            yield from differences(here.get(key, "nothing"), there.get(key, "nothing"), f"{at}/{key}")
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for i, pair in enumerate(zip(here, there, strict=True)):
            yield from differences(*pair, f"{at}/{i}")
    elif isinstance(here, float) and isinstance(there, (int, float)):
        rel = ESTIMATES if at.startswith("/curves/importance/") else CLOSE
        if not math.isclose(here, there, rel_tol=rel, abs_tol=1e-9):
            yield f"{at}: {here} here, {there} there"
    elif here != there:
        yield f"{at}: {here} here, {there} there"


def in_order(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record as JSON has it, the conditions of a rule sorted: in which order they are found is no matter."""
    out: dict[str, Any] = json.loads(json.dumps(record))
    rules = out["curves"]["subgroups"]
    rules["columns"]["rule"] = [" and ".join(sorted(r.split(" and "))) for r in rules["columns"]["rule"]]
    rules["settings"]["conditions"] = [sorted(c, key=json.dumps) for c in rules["settings"]["conditions"]]
    return out


def test_the_audit_is_the_one_that_is_made_here(told: dict[str, Any], site: Path, folder: Path) -> None:
    """Verdict, p-values, ranges, pockets and repairs; of the importance of variables, an estimate, all but a trifle."""
    here = cal.audit(site / "example.csv", label="readmitted", score="risk", by=["age", "sex", "site"], limit=0.02)
    there = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    own = here.to_dict() | {"versions": there["versions"]}
    assert there["verdict"] == here.verdict == "broken"
    assert list(differences(in_order(own), in_order(there))) == []
    assert told["guessed"] == {"label": "readmitted", "score": "risk"}
    assert "age over 70 with site = C" in told["headline"]


def test_another_record_would_be_noticed(folder: Path, told: dict[str, Any]) -> None:
    there = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    spoilt = json.loads(json.dumps(there))
    spoilt["everyone"]["upper"]["value"] *= 1 + 1e-5
    assert len(list(differences(there, spoilt))) == 1


def test_the_page_that_is_saved_is_that_of_the_record(told: dict[str, Any], folder: Path) -> None:
    again = cal.AuditRecord.load(folder / "audit.json").save(folder / "again.html")
    assert (folder / "audit.html").read_bytes() == again.read_bytes()


def test_nothing_leaves_the_machine(told: dict[str, Any]) -> None:
    """All requests are for the page's own files; with the network off none is made; one to another place is refused."""
    assert told["asked"]
    assert [u for u in told["asked"] if not u.startswith((told["address"], f"blob:{told['address']}", "data:"))] == []
    assert all(line.startswith("GET ") for line in told["seen"])
    assert told["later"] == []
    assert told["elsewhere"] == []
    assert "Failed to fetch" in told["page"]
    assert "Failed to fetch" in told["worker"]


def test_without_its_policy_the_page_could_send(browser: str, modules: Path, site: Path, folder: Path) -> None:
    """So it is the policy that keeps both the page and its worker from it."""
    page = site / "index.html"
    text = page.read_text(encoding="utf-8")
    bare = POLICY.sub("", text)
    assert bare != text
    (site / "bare.html").write_text(bare, encoding="utf-8")
    with serving(site) as (address, _), serving(folder) as (other, elsewhere):
        told = driven(browser, modules, f"{address}/bare.html", "", "", folder, other)
    assert told["page"] == told["worker"] == "sent"
    assert sorted(elsewhere) == ["POST /page", "POST /worker"]


def test_the_page_is_for_everyone(told: dict[str, Any]) -> None:
    """At two widths, light and dark, before and after the audit: axe-core finds nothing, nothing is cut off."""
    assert told["faults"] == []
    assert told["errors"] == []
