"""What a release publishes: the same bytes twice, all of the package, addresses and links by one setting."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest

import calibrant as cal
from pages import ROOT

HERE = "https://example.org/someone/calibrant"

pytestmark = pytest.mark.skipif(not (ROOT / "hatch_build.py").exists(), reason="an installed package")


def hook() -> Any:
    found = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_links_of_the_readme_work_on_an_index() -> None:
    absolute = hook().absolute
    assert absolute("[a](docs/a.md#b) ![p](docs/p.png)", HERE + "/", "v1") == (
        f"[a]({HERE}/blob/v1/docs/a.md#b) ![p]({HERE}/raw/v1/docs/p.png)"
    )
    for kept in ("[a](https://x.org/y)", "[a](#here)", "[a](mailto:x)", "`f(x)` and [a]"):
        assert absolute(kept, HERE, "v1") == kept
    readme = absolute((ROOT / "README.md").read_text(encoding="utf-8"), HERE, "v1")
    assert "](docs/" not in readme
    assert f"]({HERE}/raw/v1/docs/img/report.png)" in readme


def built(folder: Path, monkeypatch: Any, repository: str = "", kind: str = "wheel") -> Path:
    from hatchling import build

    monkeypatch.chdir(ROOT)
    monkeypatch.setitem(os.environ, "SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setitem(os.environ, "CALIBRANT_REPOSITORY", repository)
    folder.mkdir()
    return folder / getattr(build, f"build_{kind}")(str(folder))


@pytest.mark.slow
def test_a_wheel_is_the_same_bytes_twice_and_whole(tmp_path: Path, monkeypatch: Any) -> None:
    first, second = (built(tmp_path / name, monkeypatch) for name in ("first", "second"))
    assert hashlib.sha256(first.read_bytes()).digest() == hashlib.sha256(second.read_bytes()).digest()
    with zipfile.ZipFile(first) as wheel:
        names = set(wheel.namelist())
    source = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src/calibrant").rglob("*.py")}
    assert source <= names
    assert {"calibrant/py.typed", "calibrant/schema/calibrant-4.json", "calibrant/cli/guide.md"} <= names
    assert all(name.startswith(("calibrant/", "calibrant-")) for name in names)  # no tests, nothing of the machine
    assert not [name for name in names if "__pycache__" in name]


@pytest.mark.slow
def test_a_source_distribution_is_the_same_bytes_twice_and_whole(tmp_path: Path, monkeypatch: Any) -> None:
    first, second = (built(tmp_path / name, monkeypatch, kind="sdist") for name in ("first", "second"))
    assert hashlib.sha256(first.read_bytes()).digest() == hashlib.sha256(second.read_bytes()).digest()
    with tarfile.open(first) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    tests = {p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").rglob("*.py")}
    assert tests <= names
    assert {"hatch_build.py", "action.yml", "AGENTS.md", ".ci/run", ".ci/lowest", ".ci/release"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith((".venv", ".cache", "dist"))]


@pytest.mark.slow
@pytest.mark.parametrize("repository", ["", HERE])
def test_addresses_are_given_where_the_repository_is_known(repository: str, tmp_path: Path, monkeypatch: Any) -> None:
    with zipfile.ZipFile(built(tmp_path / "wheel", monkeypatch, repository)) as wheel:
        (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
        reported = message_from_bytes(wheel.read(name))
    addresses = reported.get_all("Project-URL") or []
    assert reported["Version"] == cal.__version__
    assert reported["Description-Content-Type"] == "text/markdown"
    assert bool(addresses) == bool(repository)
    assert all(f", {repository}" in address for address in addresses)
    assert (f"({repository}/blob/v{cal.__version__}/docs/start.md)" in reported.get_payload()) == bool(repository)
    assert sys.version_info >= tuple(int(v) for v in reported["Requires-Python"].removeprefix(">=").split("."))
