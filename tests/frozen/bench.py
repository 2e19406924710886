"""How a frozen case runs: commands in one process, functions of the API, and what each leaves, as readable bytes."""

from __future__ import annotations

import base64
import contextlib
import functools
import gzip
import hashlib
import io
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import calibrant as cal

Outputs = dict[str, bytes]  # by the name of a step and of what it left
PLACE, PACKAGE, VERSION = "FOLDER", "PACKAGE", "VERSION"
ENVIRONMENT = {"COLUMNS": "100", "LINES": "40", "TERM": "dumb", "NO_COLOR": "1", "TZ": "UTC"}
UNSET = ("SOURCE_DATE_EPOCH", "CALIBRANT_TRACEBACK", "FORCE_COLOR", "CALIBRANT_KERNELS")
LIBRARIES = ("calibrant", "numpy", "scipy", "numba", "scikit-learn", "pyarrow", "pandas", "polars", "duckdb", "jinja2")


@functools.cache
def versions() -> dict[str, str]:
    """The versions that an output may print: of the interpreter and of the libraries."""
    out = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in LIBRARIES:
        with contextlib.suppress(PackageNotFoundError):
            out[name] = version(name)
    return out


class Bench:
    """A folder in which one case runs; every step leaves outputs under its name.

    Parameters
    ----------
    folder : Path
        Empty; the current folder while the case runs.
    names : mapping
        How a word of the cases is spelled now (`cases.NAMES`).
    """

    def __init__(self, folder: Path, names: Mapping[str, str]) -> None:
        self.folder, self.names, self.outputs = folder, names, Outputs()
        self.seen: dict[Path, bytes] = {}

    # ---- what a case calls ----

    def run(self, words: str | list[str], step: str, *, files: bool = True, joined: bool = False) -> int:
        """Run a command in this process; keep its words, exit status, both streams, and the files that it wrote.

        With `joined`, printed commands stand on one line, where the length of a path would decide where they break.
        """
        from calibrant.cli import main

        said, told = io.StringIO(), io.StringIO()
        argv = words.split() if isinstance(words, str) else words
        self._look()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
            status = main(self._spelled(argv))
        printed = said.getvalue()
        printed = re.sub(r" \\\n\s+", " ", printed) if joined else printed
        self._ran(step, argv, status, (printed, told.getvalue()))
        self._written(step, files)
        return status

    def piped(self, words: str, step: str, given: bytes) -> int:
        """Run a command in a process of its own that reads these bytes from standard input."""
        self._look()
        command = [sys.executable, "-m", "calibrant", *self._spelled(words.split())]
        ran = subprocess.run(command, input=given, capture_output=True, check=False)
        streams = ran.stdout.decode(), ran.stderr.decode()
        self._ran(step, words.split(), ran.returncode, streams)
        self._written(step, True)
        return ran.returncode

    def call(self, path: str, step: str, *data: Any, **settings: Any) -> Any:
        """Call a public function; keep what it returns as JSON and as it prints, or the line in which it refuses."""
        function = self.function(path)
        how = {self.names.get(f"{path}:{k}=", self.names.get(f"{k}=", k)): v for k, v in settings.items()}
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                found = function(*data, **how)
                text = shown(found)
            except (cal.BadInput, cal.NotComputable, AssertionError) as e:
                found, text = None, f"{type(e).__name__}: {e}\n"
        ours = [f"{w.category.__name__}: {w.message}\n" for w in told if w.category.__module__.startswith("calibrant")]
        self.keep(step, text + "".join(ours))
        return found

    def keep(self, step: str, content: str | bytes) -> None:
        """Keep something under a name of its own."""
        if step in self.outputs:
            raise ValueError(f"two outputs are called {step}")
        text = content if isinstance(content, bytes) else content.encode()
        self.outputs[step] = self._plain(text)

    def function(self, path: str) -> Callable[..., Any]:
        """The public function with this name, such as ``measure.brier``."""
        found: Any = cal
        for part in self.names.get(path, path).split("."):
            found = getattr(found, part)
        return found  # type: ignore[no-any-return]

    # ---- what is kept ----

    def _spelled(self, argv: list[str]) -> list[str]:
        """The words of a command as they are spelled now: a method by its face, an option, an option's value."""
        out = [self.names.get(w, w) for w in argv]
        if len(argv) > 1 and (now := self.names.get(f"{argv[0]} {argv[1]}")):
            out[:2] = now.split()
        for i, word in enumerate(argv[2:], 2):
            if now := self.names.get(f"{argv[i - 1]} {word}"):
                out[i] = now
        return out

    def _ran(self, step: str, argv: list[str], status: int, streams: tuple[str, str]) -> None:
        out, err = streams
        self.keep(
            f"{step}.txt",
            f"$ calibrant {' '.join(argv)}\nexit status {status}\n"
            f"---- standard output\n{out}---- standard error\n{err}",
        )

    def _files(self) -> Iterator[tuple[Path, bytes]]:
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                yield path, path.read_bytes()

    def _look(self) -> None:
        self.seen = {path: hashlib.sha256(content).digest() for path, content in self._files()}

    def _written(self, step: str, keep: bool) -> None:
        for path, content in self._files():
            if keep and self.seen.get(path) != hashlib.sha256(content).digest():
                self.keep(f"{step}/{path.relative_to(self.folder).as_posix()}", readable(path.name, content))

    def _plain(self, content: bytes) -> bytes:
        """Content without what the machine put in: folders, and versions where they stand with their names."""
        for place in {str(self.folder), str(self.folder.resolve())}:
            content = content.replace(place.encode(), PLACE.encode())
        content = content.replace(str(Path(cal.__file__).parent).encode(), PACKAGE.encode())
        for name, number in versions().items():
            before = rb"(?i)(\b" + re.escape(name).encode() + rb'(?:"?[:=]\s*"?|\s+))'
            told = re.compile(before + re.escape(number).encode() + rb"(?![\w.]*\d)")
            content = told.sub(rb"\1" + VERSION.encode(), content)
        return content


@contextlib.contextmanager
def bench(names: Mapping[str, str]) -> Iterator[Bench]:
    """A bench in an empty temporary folder, with nothing of the caller's terminal and environment."""
    here, kept = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="frozen-") as folder:
        try:
            os.environ.update(ENVIRONMENT)
            for name in UNSET:
                os.environ.pop(name, None)
            os.chdir(folder)
            yield Bench(Path(folder), names)
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(kept)


# ---- results of the API and files, as text ----


def shown(found: Any) -> str:
    """What a function returned, as JSON, and what it prints; of a dictionary every value."""
    plain = json.dumps(as_plain(found), sort_keys=True, indent=1, ensure_ascii=False)
    printed = "" if isinstance(found, (dict, list, tuple, float, int, str)) else f"{found}\n"
    return f"{plain}\n{printed}"


def as_plain(found: Any) -> Any:
    """A result as values that JSON has."""
    if hasattr(found, "to_dict"):
        return as_plain(found.to_dict())
    if hasattr(found, "to_json"):
        return json.loads(found.to_json())
    if isinstance(found, Mapping):
        return {str(k): as_plain(v) for k, v in found.items()}
    if isinstance(found, (list, tuple)):
        return [as_plain(v) for v in found]
    if hasattr(found, "tolist"):
        return found.tolist()
    return found if found is None or isinstance(found, (str, int, float, bool)) else str(found)


ISLAND = re.compile(rb'(<script type="application/gzip"[^>]*>)([A-Za-z0-9+/=\s]+)(</script>)')
SKETCH, SIZES, CHECKSUM = b"calibrant sketch\n", struct.Struct("<QQ"), 32


def readable(name: str, content: bytes) -> bytes:
    """A file's content so that words and numbers can be compared: what is packed is unpacked, tables are lines."""
    if name.endswith(".gz"):
        return gzip.decompress(content)
    if name.endswith(".html"):
        return ISLAND.sub(lambda m: m[1] + gzip.decompress(base64.b64decode(m[2])) + m[3], content)
    if name.endswith(".xlsx"):
        return _workbook(content)
    if name.endswith((".parquet", ".arrow", ".feather")):
        return _table(name, content)
    return _sketch(content) if content.startswith(SKETCH) else content


def _workbook(content: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return b"".join(b"== %s\n%s\n" % (n.encode(), archive.read(n)) for n in sorted(archive.namelist()))


def _table(name: str, content: bytes) -> bytes:
    import pyarrow.feather
    import pyarrow.parquet

    read = pyarrow.parquet.read_table if name.endswith(".parquet") else pyarrow.feather.read_table
    table = read(io.BytesIO(content))
    lines = [json.dumps([str(v) if hasattr(v, "isoformat") else v for v in row.values()]) for row in table.to_pylist()]
    return "\n".join([str(table.schema), *lines, ""]).encode()


def _sketch(content: bytes) -> bytes:
    """The header of a sketch, and the digest of its numbers."""
    at = len(SKETCH) + CHECKSUM
    header, body = SIZES.unpack_from(content, at)
    at += SIZES.size
    numbers = zlib.decompress(content[at + header : at + header + body])
    told = f"{len(numbers)} bytes of numbers, {hashlib.sha256(numbers).hexdigest()}\n"
    return content[at : at + header].replace(b",", b",\n") + b"\n" + told.encode()
