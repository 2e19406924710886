"""A page printed to PDF by a browser of this machine; calibrant brings none."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from calibrant.data.targets import KEPT, remove
from calibrant.errors import BadInput

NAMED = "CALIBRANT_BROWSER"  # an environment variable that names one
COMMANDS = (
    "chromium",
    "chromium-browser",
    "chromium-headless-shell",  # what servers have
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "microsoft-edge-stable",
    "msedge",
)
APPLICATIONS = ("Google Chrome", "Chromium", "Microsoft Edge")
PROGRAMS = (r"Google\Chrome\Application\chrome.exe", r"Microsoft\Edge\Application\msedge.exe")
FOLDERS = ("ProgramFiles", "ProgramFiles(x86)", "LocalAppData")
OPTIONS = (
    "--headless",
    "--disable-gpu",
    "--disable-extensions",
    "--no-first-run",
    "--no-pdf-header-footer",
    "--print-to-pdf-no-header",  # what older ones call it
)
PATIENCE = 120  # seconds: a first start on a slow disk takes some ten
INSTEAD = f"or save .html, open it, and print it there; {NAMED} names a browser that is elsewhere"


def browser() -> str:
    """A Chromium, Chrome or Edge of this machine.

    Raises
    ------
    BadInput
        There is none.
    """
    if named := os.environ.get(NAMED):
        if (result := shutil.which(named)) is None:
            raise BadInput(f"{NAMED}={named!r} is no program: name a Chromium, Chrome or Edge")
        return result
    result = next((p for p in _places() if p), None)
    if result is None:
        raise BadInput(f"a PDF needs a browser to print it: install Chromium, Chrome or Edge, {INSTEAD}")
    return result


def _places() -> Iterator[str | None]:
    yield from (shutil.which(c) for c in COMMANDS)
    if sys.platform == "darwin":
        for name in APPLICATIONS:
            for home in (Path("/Applications"), Path.home() / "Applications"):
                yield shutil.which(home / f"{name}.app/Contents/MacOS/{name}")
    for folder in FOLDERS:
        if base := os.environ.get(folder):
            yield from (shutil.which(Path(base) / program) for program in PROGRAMS)


def printed(page: bytes) -> bytes:
    """A page as PDF, as its style has it for paper.

    Raises
    ------
    BadInput
        There is no browser, or it could not print.
    """
    import subprocess
    import tempfile

    program = browser()
    folder = Path(tempfile.mkdtemp(prefix="calibrant-"))
    KEPT.add(folder)
    try:
        source, target = folder / "report.html", folder / "report.pdf"
        source.write_bytes(page)
        reported = [*OPTIONS, f"--user-data-dir={folder / 'profile'}", f"--print-to-pdf={target}", source.as_uri()]
        if getattr(os, "geteuid", lambda: 1)() == 0:  # as in a container: a browser refuses to start otherwise
            reported.insert(0, "--no-sandbox")
        try:
            done = subprocess.run([program, *reported], capture_output=True, timeout=PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            raise BadInput(f"{program} could not print ({type(e).__name__}): install another, {INSTEAD}") from None
        if not target.exists() or not target.stat().st_size:
            stated = done.stderr.decode(errors="replace").strip().splitlines()
            why = stated[-1][:200] if stated else f"exit status {done.returncode}"
            raise BadInput(f"{program} could not print ({why}): install another, {INSTEAD}")
        return target.read_bytes()
    finally:
        remove(folder)
