"""Put together a folder with a page that audits a CSV file in the browser: static files, for any web server.

    python docs/browser/build.py --pyodide FOLDER --out SITE
    python -m http.server --bind 127.0.0.1 --directory SITE 8000

FOLDER holds a distribution of Pyodide: what npm's package `pyodide` has, and beside it (or in the folder of `--wheels`)
the packages for it. Each is held against the hash in the distribution's `pyodide-lock.json`; nothing is downloaded.
calibrant and what it needs of plain Python are taken from the environment that this runs in.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib.metadata
import json
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import calibrant
from calibrant.report.html import asset, digest

HERE = Path(__file__).parent
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
ONE_OF = {"pyodide.asm.mjs", "pyodide.asm.js"}  # a distribution has the one or the other
COMPILED = ("numpy", "scipy", "pyarrow", "scikit-learn", "msgspec")
SPARED = {"pandas"}  # Arrow asks for it, and an audit does not
PLAIN = ("jinja2", "markupsafe", "markdown-it-py", "mdurl", "narwhals", "rich")  # what of them is compiled is left out
PAGES = ("page.css", "page.js", "worker.js", "inside.py")
LOCK = "pyodide-lock.json"
STAMP = (1980, 1, 1, 0, 0, 0)  # of files in archives: the same input, the same bytes
ROWS = 2000  # of the example


class Missing(SystemExit):
    """A file that is not there, or is not what it should be; it says what to do."""


def needed(packages: dict[str, Any], own: Iterable[str]) -> dict[str, Any]:
    """Return the compiled packages and all that they depend on, as the lock file describes them."""
    found: dict[str, Any] = {}
    queue = [name for name in COMPILED if name not in set(own)]
    while queue:
        name = queue.pop()
        if name in found or name in SPARED:
            continue
        if name not in packages:
            raise Missing(f"{LOCK} knows no {name}: take a distribution of Pyodide that has it")
        found[name] = {**packages[name], "depends": [d for d in packages[name]["depends"] if d not in SPARED]}
        queue += found[name]["depends"]
    return dict(sorted(found.items()))


def copied(folders: Sequence[Path], name: str, sha256: str, out: Path) -> int:
    """Copy a file from the first folder that has it, if it is the one that is meant; return its bytes."""
    source = next((f / name for f in folders if (f / name).is_file()), None)
    if source is None:
        raise Missing(f"{name} is not in {' or '.join(map(str, folders))}: get it with the distribution of Pyodide")
    content = source.read_bytes()
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        raise Missing(f"{source} is not the file that {LOCK} names (its SHA-256 is another): get it anew")
    (out / name).write_bytes(content)
    return len(content)


def modules(own: dict[str, Path]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each file of plain Python: calibrant's, its dependencies' and those given."""
    root = Path(calibrant.__file__).parent
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix in (".py", ".j2", ".css", ".js", ".md"):
            yield f"calibrant/{path.relative_to(root).as_posix()}", path.read_bytes()
    for name in PLAIN:
        try:
            held = importlib.metadata.distribution(name).files or ()
        except importlib.metadata.PackageNotFoundError:
            raise Missing(f"{name} is not in this environment: install it (`pip install {name}`)") from None
        for file in sorted(held, key=str):
            if ".." not in file.parts and file.suffix in (".py", "") and "__pycache__" not in file.parts:
                yield file.as_posix(), Path(str(file.locate())).read_bytes()
    for name, path in own.items():
        yield f"{name}.py", path.read_bytes()


def archive(files: Iterable[tuple[str, bytes]], out: Path) -> int:
    """Write an archive that Pyodide unpacks; return its bytes."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files:
            packed.writestr(zipfile.ZipInfo(name, STAMP), content, zipfile.ZIP_DEFLATED)
    return out.stat().st_size


def example(out: Path) -> None:
    """Write the example: made-up patients, and a score that is too low for those over 70 at one of three sites."""
    rng = np.random.default_rng(7)
    risk, age = rng.beta(2, 5, ROWS).round(3), rng.integers(18, 90, ROWS)
    sex, site = rng.choice(["f", "m"], ROWS), rng.choice(["A", "B", "C"], ROWS)
    truth = np.clip(risk + 0.3 * ((site == "C") & (age > 70)), 0, 1)
    happened = (rng.uniform(size=ROWS) < truth).astype(int)
    with out.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["readmitted", "risk", "age", "sex", "site"])
        rows.writerows(zip(*(c.tolist() for c in (happened, risk, age, sex, site)), strict=True))


def page(facts: dict[str, Any]) -> str:
    """Return the page: its policy lets it ask its own address only, and lets the report's own style and script run."""
    text = (HERE / "index.html").read_text(encoding="utf-8")
    held = {
        "STYLE": digest(asset("style.css")),
        "SCRIPT": digest(asset("script.js")),
        "CALIBRANT": calibrant.__version__,
        "MEGABYTES": f"{sum(facts['bytes'].values()) / 1e6:.0f}",
    }
    for name, value in held.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def build(pyodide: Path, wheels: Path, out: Path, own: dict[str, Path]) -> dict[str, Any]:
    """Write the folder; return what is in it: the packages, and the bytes of each file that the page loads."""
    if not (pyodide / LOCK).is_file():
        raise Missing(f"{pyodide} has no {LOCK}: name the folder of a distribution of Pyodide")
    for name, path in own.items():
        if not path.is_file():
            raise Missing(f"--instead {name}={path}: there is no such file; give NAME=FILE")
    lock = json.loads((pyodide / LOCK).read_text(encoding="utf-8"))
    packages = needed(lock["packages"], own)
    there = out / "pyodide"
    shutil.rmtree(there, ignore_errors=True)
    there.mkdir(parents=True)
    runtime = [n for n in RUNTIME if n not in ONE_OF or (pyodide / n).is_file()]
    size = {name: copied([pyodide], name, "", there) for name in runtime}
    for about in packages.values():
        size[about["file_name"]] = copied([wheels, pyodide], about["file_name"], about["sha256"], there)
    (there / LOCK).write_text(json.dumps({**lock, "packages": packages}), encoding="utf-8")
    size["python.zip"] = archive(modules(own), out / "python.zip")
    facts = {"calibrant": calibrant.__version__, "packages": list(packages), "bytes": size}
    (out / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    for name in PAGES:
        shutil.copyfile(HERE / name, out / name)
    (out / "index.html").write_text(page(facts), encoding="utf-8")
    example(out / "example.csv")
    return facts


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and write the folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pyodide", type=Path, required=True, help="folder of a distribution of Pyodide")
    parser.add_argument("--wheels", type=Path, help="folder of its packages, if they are elsewhere")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument(
        "--instead", action="append", default=[], metavar="NAME=FILE", help="a module in place of a package that lacks"
    )
    a = parser.parse_args(arguments)
    own = {name: Path(file) for name, _, file in (given.partition("=") for given in a.instead)}
    facts = build(a.pyodide, a.wheels or a.pyodide, a.out, own)
    print(f"{a.out}: {len(facts['bytes'])} files to load, {sum(facts['bytes'].values()) / 1e6:.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
