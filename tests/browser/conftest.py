"""The browser that pages are tested in, and the Node packages that test them."""

import os
import shutil
from pathlib import Path

import pytest

BROWSERS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
GIVEN = "CALIBRANT_NODE_MODULES"


@pytest.fixture(scope="session")
def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium: install one to test the page in a browser")
    return found


@pytest.fixture(scope="session")
def modules() -> Path:
    """The folder that holds axe-core and playwright-core."""
    if shutil.which("node") is None:
        pytest.skip("there is no Node: install it to test the page with axe-core")
    given = os.environ.get(GIVEN, "")
    for folder in (Path(given) / "node_modules", Path(given)):
        if given and all((folder / name).is_dir() for name in ("axe-core", "playwright-core")):
            return folder
    pytest.skip(f"set {GIVEN}=DIRECTORY after npm install --no-save --prefix DIRECTORY axe-core playwright-core")
