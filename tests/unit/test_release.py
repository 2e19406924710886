"""What a release publishes: the same bytes twice, all of the package, addresses and links by one setting."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
import yaml

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
    assert {
        "hatch_build.py",
        "action.yml",
        "AGENTS.md",
        ".ci/run",
        ".ci/lowest",
        ".ci/release",
        "packaging/conda/recipe.yaml",
    } <= names
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


# ---- conda-forge, and the job that publishes ----


def spaced(requirement: str) -> str:
    """Return `numpy>=1.26` as conda writes it: `numpy >=1.26`."""
    return re.sub(r"(?<=[\w.-])(?=[<>=!~])", " ", requirement, count=1)


def recipe() -> Any:
    return yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8"))


def test_the_recipe_asks_for_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    made, own = recipe(), project["project"]
    python = "python >=${{ python_min }}"
    assert made["requirements"]["run"] == [python, *map(spaced, own["dependencies"])]
    assert made["requirements"]["host"][2:] == [*map(spaced, project["build-system"]["requires"])]
    assert f">={made['context']['python_min']}" == own["requires-python"]
    (script,) = made["build"]["python"]["entry_points"]
    assert dict([script.split(" = ")]) == own["scripts"]
    assert made["about"]["license"] == own["license"]
    assert made["about"]["license_file"] == own["license-files"]
    assert made["context"]["version"] == cal.__version__


def test_the_release_writes_version_and_sum_into_the_recipe(tmp_path: Path) -> None:
    """By the last lines of `.ci/release`, on a source distribution that is none."""
    lines = (ROOT / ".ci/release").read_text(encoding="utf-8").partition("# The recipe of conda-forge")[2]
    content = b"not really a source distribution"
    (tmp_path / "calibrant-9.8.7rc1.tar.gz").write_bytes(content)
    ran = ["bash", "-euo", "pipefail", "-c", f"out=$1\n#{lines}", "release", str(tmp_path)]
    subprocess.run(ran, cwd=ROOT, check=True)
    made, before = yaml.safe_load((tmp_path / "recipe.yaml").read_text(encoding="utf-8")), recipe()
    assert made["context"].pop("version") == "9.8.7rc1"
    assert made["context"].pop("sha256") == hashlib.sha256(content).hexdigest()
    assert made["context"] == {k: v for k, v in before["context"].items() if k == "python_min"}
    assert {k: v for k, v in made.items() if k != "context"} == {k: v for k, v in before.items() if k != "context"}


def test_the_job_publishes_without_a_token_and_only_the_tagged_version() -> None:
    text = (ROOT / "ci/publish.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert "secrets." not in text
    rights = {name: job["permissions"] for name, job in jobs.items()}
    publishes = {"id-token": "write"}
    assert rights == {"build": {"contents": "read"}, "test-index": publishes, "index": publishes}
    assert (jobs["index"]["environment"], jobs["index"]["needs"]) == ("pypi", ["build", "test-index"])
    steps = {step["name"]: step["run"] for step in jobs["build"]["steps"] if "run" in step}
    check = steps["The tag is the version of the code"]
    assert any(run.startswith(".ci/release ") for run in steps.values())
    for tag, status in ((f"v{cal.__version__}", 0), ("v99.0.0", 1), (cal.__version__, 1)):
        tagged = {**os.environ, "GITHUB_REF_NAME": tag}
        assert subprocess.run(["bash", "-c", check], cwd=ROOT, env=tagged, check=False).returncode == status
