"""The folder of the page that runs in a browser: complete, held against hashes, and with a policy that fits it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from calibrant.report.html import asset, digest
from pages import ROOT


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("browser_build", ROOT / "docs/browser/build.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["browser_build"] = made
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def pyodide(tool: ModuleType, tmp_path: Path) -> Path:
    """A distribution in small: files of a few bytes under the names that count."""
    folder = tmp_path / "pyodide"
    folder.mkdir()
    packages = {}
    for name in (*tool.COMPILED, "joblib", "pandas"):
        (folder / f"{name}.whl").write_bytes(name.encode())
        sha = hashlib.sha256(name.encode()).hexdigest()
        depends = {"pyarrow": ["numpy", "pandas"], "scikit-learn": ["scipy", "joblib"]}.get(name, [])
        packages[name] = {"file_name": f"{name}.whl", "sha256": sha, "depends": depends}
    (folder / "pyodide-lock.json").write_text(json.dumps({"info": {}, "packages": packages}))
    for name in ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip"):
        (folder / name).write_text(name)
    return folder


def test_all_that_the_page_loads_is_there(tool: ModuleType, pyodide: Path, tmp_path: Path) -> None:
    facts = tool.build(pyodide, pyodide, tmp_path / "out", {})
    out = tmp_path / "out"
    assert set(facts["packages"]) == {*tool.COMPILED, "joblib"}
    for name, size in facts["bytes"].items():
        found = out / name if (out / name).exists() else out / "pyodide" / name
        assert found.stat().st_size == size
    lock = json.loads((out / "pyodide/pyodide-lock.json").read_text())
    assert lock["packages"]["pyarrow"]["depends"] == ["numpy"]
    held = zipfile.ZipFile(out / "python.zip").namelist()
    assert {"calibrant/__init__.py", "calibrant/report/templates/style.css", "rich/__init__.py"} <= set(held)
    assert not [n for n in held if n.endswith((".so", ".pyd", ".pyc"))]
    assert (out / "example.csv").read_text().splitlines()[0] == "readmitted,risk,age,sex,site"
    for name in ("index.html", "page.js", "page.css", "worker.js", "inside.py"):
        assert (out / name).is_file()


def test_the_policy_lets_the_page_ask_itself_only_and_the_report_be_seen(
    tool: ModuleType, pyodide: Path, tmp_path: Path
) -> None:
    tool.build(pyodide, pyodide, tmp_path / "out", {})
    text = (tmp_path / "out/index.html").read_text(encoding="utf-8")
    policy = text.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    assert rules["default-src"] == ["'none'"]
    assert rules["connect-src"] == ["'self'"]
    assert "'unsafe-inline'" not in policy
    assert f"'{digest(asset('script.js'))}'" in rules["script-src"]
    assert f"'{digest(asset('style.css'))}'" in rules["style-src"]
    assert "{" not in text


def test_a_package_that_is_another_or_is_not_there_is_refused(tool: ModuleType, pyodide: Path, tmp_path: Path) -> None:
    (pyodide / "scipy.whl").write_bytes(b"another")
    with pytest.raises(SystemExit, match=r"scipy\.whl is not the file that pyodide-lock\.json names"):
        tool.build(pyodide, pyodide, tmp_path / "out", {})
    (pyodide / "scipy.whl").unlink()
    with pytest.raises(SystemExit, match=r"scipy\.whl is not in"):
        tool.build(pyodide, pyodide, tmp_path / "out", {})
    with pytest.raises(SystemExit, match=r"out has no pyodide-lock\.json"):
        tool.build(tmp_path / "out", pyodide, tmp_path / "out", {})
    with pytest.raises(SystemExit, match="--instead scipy=none: there is no such file"):
        tool.build(pyodide, pyodide, tmp_path / "out", {"scipy": Path("none")})


def test_a_module_may_stand_in_for_a_package(tool: ModuleType, pyodide: Path, tmp_path: Path) -> None:
    own = tmp_path / "some.py"
    own.write_text("here = 1\n")
    facts = tool.build(pyodide, pyodide, tmp_path / "out", {"msgspec": own})
    assert "msgspec" not in facts["packages"]
    assert zipfile.ZipFile(tmp_path / "out/python.zip").read("msgspec.py") == b"here = 1\n"
