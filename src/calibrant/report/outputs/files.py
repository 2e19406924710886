"""A record as a file: which format the ending of its name asks for, how it is written or printed, and read again."""

from __future__ import annotations

import base64
import binascii
import os
import re
import shutil
import sys
import zlib
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from calibrant.audit.record import AuditRecord
from calibrant.data.targets import KEPT as TO_REMOVE
from calibrant.data.targets import checked_path, checked_targets, remove, written
from calibrant.errors import BadInput
from calibrant.plugins import OUTPUTS
from calibrant.report.document import Document
from calibrant.report.languages.catalogue import ENGLISH
from calibrant.report.languages.translator import in_language
from calibrant.report.outline import document
from calibrant.report.outputs import results

if TYPE_CHECKING:
    from calibrant.data.sources.query import Query
    from calibrant.plugins import Output


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
    """A Chromium, Chrome or Edge of this machine; `BadInput` where there is none."""
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
    """A page as PDF, as its style has it for paper; `BadInput` where nothing can print it."""
    import subprocess
    import tempfile

    program = browser()
    folder = Path(tempfile.mkdtemp(prefix="calibrant-"))
    TO_REMOVE.add(folder)
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


Record = TypeVar("Record", bound=AuditRecord)
LARGEST = 1 << 26  # bytes of a record that is read: those of a thousand covariates have a few million
ISLAND = re.compile(r'<script type="application/(json|gzip)" id="calibrant-result"[^<>]*>')
PAGE = "report.html"
KEPT = PAGE, "record.json", "brief.md"  # of a folder, next to what plug-ins keep there and its tables
TABLES = "tables"


# ---- one file ----


def save(record: AuditRecord, target: str | os.PathLike[str], language: str = ENGLISH) -> Path:
    out = os.fspath(target)
    path = checked(out)
    write(record, in_language(document(record), record, language), path)
    return path


def checked(out: str, option: str = "the target") -> Path:
    """Check where a record is to be written: a place for a file, of a format that is known and can be made here."""
    ending = Path(out).suffix.lower()
    if ending not in FORMATS:
        raise BadInput(f"cannot write {out!r}: end its name in {', '.join(FORMATS)}")
    path = checked_targets({option: out}, ())[option]
    if ending == ".pdf":
        browser()
    return path


def write(record: AuditRecord, of: Document, path: Path) -> None:
    """Write a record, whose report is made already, to a place that was checked."""
    make = FORMATS[path.suffix.lower()]
    written(str(path), make(record, of))


def _html(record: AuditRecord, of: Document) -> bytes:
    from calibrant.report import html

    return html.written(of, record).encode()


def _json(record: AuditRecord, _: Document) -> bytes:
    return f"{record.to_json()}\n".encode()


def _markdown(_: AuditRecord, of: Document) -> bytes:
    from calibrant.report import markdown

    return markdown.written(of).encode()


def _pdf(record: AuditRecord, of: Document) -> bytes:
    return printed(_html(record, of))


def _junit(record: AuditRecord, _: Document) -> bytes:
    from calibrant.report.pipelines import junit

    return junit(record).encode()


FORMATS: Mapping[str, Callable[[AuditRecord, Document], bytes]] = {
    ".html": _html,
    ".json": _json,
    ".md": _markdown,
    ".pdf": _pdf,
    ".xml": _junit,
}


# ---- a folder of all that is kept of an audit ----


def checked_folder(out: str, read: Iterable[str | Query], outputs: Mapping[str, Output] | None = None) -> Path:
    """A folder to write into, which need not be there yet; no file that is read may be one that is written."""
    folder = checked_path(out)
    above = next(p for p in (folder, *folder.resolve().parents) if p.exists())
    if not out or not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise BadInput(
            f"cannot write into {out!r}: name a directory that may be written; it is made if it is not there"
        )
    kept = (name for one in _kept(outputs).values() for name in one.kept)
    inside = {*(folder / name for name in (*KEPT, *kept)), *folder.glob(f"{TABLES}/*.csv")}
    checked_targets({str(p): str(p) for p in inside if p.exists()}, read)
    return folder


def write_all(
    record: AuditRecord,
    of: Document,
    folder: Path,
    outputs: Mapping[str, Output] | None = None,
    form: results.CsvForm = results.CSV,
) -> None:
    """Write the page, the record, the Markdown, every table, and what plug-ins keep of a record into a folder."""
    (folder / TABLES).mkdir(parents=True, exist_ok=True)
    for name in KEPT:
        write(record, of, folder / name)
    for name, text in results.tables(record, form):
        written(str(folder / TABLES / name), text.encode())
    for plugged, one in _kept(outputs).items():
        for name in one.kept:
            with OUTPUTS.calling(plugged):
                text = one.content(record, name, Namespace(language=of.language))
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            written(str(folder / name), text.encode())


def _kept(outputs: Mapping[str, Output] | None) -> Mapping[str, Output]:
    return OUTPUTS.ours() if outputs is None else outputs


# ---- back again ----


def loaded(path: Path, kind: type[Record]) -> Record:
    """The record that a file holds: its JSON, or a page with the record inside."""
    try:
        if checked_path(str(path)).stat().st_size > LARGEST:
            raise BadInput(f"{str(path)!r} is too large for a record: pass the JSON or the page of an audit")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else "not text"
        raise BadInput(f"cannot read {str(path)!r}: {why or e}") from None
    if (kept := ISLAND.search(text)) is not None:
        inside = text[kept.end() :].partition("</script>")[0]  # sought once, however many begin
        text = inside if kept[1] == "json" else _unpacked(inside, path)
    elif text.lstrip()[:1] == "<":
        raise BadInput(f"{str(path)!r} holds no record: pass the page or the JSON that an audit wrote")
    try:
        return kind.from_json(text)
    except BadInput as e:
        raise BadInput(f"{str(path)!r}: {e}") from None


def _unpacked(text: str, path: Path) -> str:
    """The record that a page holds packed; never more than `LARGEST` bytes of it are made."""
    stream = zlib.decompressobj(wbits=31)  # gzip
    try:
        content = stream.decompress(base64.b64decode(text, validate=True), LARGEST)
        if stream.eof:
            return content.decode()
    except (binascii.Error, zlib.error, UnicodeDecodeError):
        pass
    raise BadInput(f"the record in {str(path)!r} was changed or is too large: pass the page as an audit wrote it")
