"""What is written of a record, by audits and from a record that was kept: files, a folder, a page that is opened."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.audit.record import AuditRecord
from calibrant.cli.options import PREFIX, Of, outputs
from calibrant.cli.standard_output import write_exact
from calibrant.data.targets import checked_targets, written
from calibrant.errors import BadInput
from calibrant.plugins import OUTPUTS, Output
from calibrant.sanitize import sanitize

if TYPE_CHECKING:
    from calibrant.data.sources.query import Query
    from calibrant.report.document import Document

STDOUT, FOLDER, PAGE = "-", "folder", "html"
ENDINGS = {".html": PAGE, ".json": "json", ".md": "markdown", ".pdf": "pdf", ".xml": "junit"}  # of a record


# ---- where -o writes, and what ----


@dataclass(frozen=True)
class Target:
    """One place that ``-o`` names."""

    typed: str  # as a message names it: "-o audit.html"
    kind: str  # what is written there: "html", "folder", or the name of a plug-in
    path: str  # "-" for standard output


def target_of(text: str, of: Of, kinds: Mapping[str, str], more: Collection[str] = ()) -> Target | None:
    """What a value of ``-o`` names, by the word before its colon or by its ending; None for another ending.

    `kinds` are the endings, and what each writes; `more` are further words.
    """
    if prefix := PREFIX.fullmatch(text):
        name, path = prefix.groups()
        known = {*kinds.values(), *more, *outputs(of)}
        if name not in known and name in OUTPUTS.installed and OUTPUTS.loaded(name).of == of:
            known.add(name)
        if name not in known:
            close = get_close_matches(name, known, 1)
            instead = f"write {close[0]}:{path}" if close else f"choose from {', '.join(sorted(known))}"
            raise BadInput(
                f"-o {text}: {name!r} names no output: {instead}, or ./{text} for a file whose name has a colon"
            )
        return Target(f"-o {text}", name, path)
    kind = kinds.get(Path(text).suffix.lower())
    return None if kind is None else Target(f"-o {text}", kind, text)


def only_target(outs: Sequence[str]) -> str | None:
    """The one file that a command writes, None where none is named."""
    if len(outs) > 1:
        raise BadInput(f"-o {outs[0]} and -o {outs[1]}: this command writes one file, name one")
    return outs[0] if outs else None


# ---- of a record ----


def _of_record(text: str) -> Target:
    if not text:  # as an unset variable of a shell leaves it
        raise BadInput("cannot write '': name a file")
    if text.endswith(("/", os.sep)) or (text != STDOUT and Path(text).is_dir()):
        return Target(f"-o {text}", FOLDER, text)
    result = target_of(text, "record", ENDINGS)
    if result is None:
        endings = ", ".join(ENDINGS)
        raise BadInput(
            f"-o {text}: end the name of a file in {endings}, that of a directory in /; or say what to write before a "
            f"colon, such as markdown:{text} or tripod:{text}"
        )
    return result


def _plugged(targets: Iterable[Target]) -> dict[str, Output]:
    """The outputs of plug-ins that may be written: ours, and those installed that are named."""
    named = {t.kind for t in targets} - {FOLDER, *ENDINGS.values()}
    ours = outputs("record")
    return ours | {name: OUTPUTS.loaded(name) for name in sorted(named - {*ours})}


def report(a: Namespace) -> int:
    """Write what is asked for of a record that was kept; print its summary unless standard output was claimed."""
    targets = check_outputs(a, [a.record])
    deliver(AuditRecord.load(a.record), targets, a)
    return 0


def check_outputs(a: Namespace, files: Sequence[str] | Sequence[Query]) -> list[Target]:
    """What is to be written; refuse what cannot be, or claims one place, before any work is done."""
    from calibrant.report.outputs.files import browser, checked_folder

    targets = [*map(_of_record, a.out), *([Target("--json", "json", STDOUT)] if a.json else [])]
    plugged = _plugged(targets)
    claims = [t.typed for t in targets if t.path == STDOUT]
    if len(claims) > 1:
        raise BadInput(f"{claims[0]} and {claims[1]} both claim standard output: write one to a file")
    if a.open and _page(targets) is None:
        raise BadInput("--open shows a page: name one with -o audit.html, or a directory with -o DIR/")
    read = [*files, *(row_attributes for one in plugged.values() for row_attributes in one.reads(a))]
    checked_targets({t.typed: t.path for t in targets if t.path != STDOUT and t.kind != FOLDER}, read)
    for name, one in plugged.items():
        with OUTPUTS.calling(name):
            named: list[str | None] = [t.path for t in targets if t.kind == name]
            for path in named or [None]:
                one.check(path, a)
    for t in targets:
        if t.kind == FOLDER:
            checked_folder(t.path, read, plugged)
        elif t.kind == "pdf":
            if t.path == STDOUT:
                raise BadInput(f"{t.typed}: a PDF goes to a file")
            browser()
    return targets


def deliver(record: AuditRecord, targets: Sequence[Target], a: Namespace) -> None:
    """Write what was asked for; print the summary unless standard output was claimed."""
    from calibrant.report import outline, terminal
    from calibrant.report.languages.translator import in_language
    from calibrant.report.outputs import files, results

    document = in_language(outline.document(record), record, a.language)
    for t in targets:
        if t.kind == FOLDER:
            form = results.CsvForm(a.csv_decimal, a.csv_digits)
            files.write_all(record, document, Path(t.path), _plugged(targets), form)
        else:
            write(t.path, _content(record, document, t, a))
        if t.path != STDOUT:
            print(f"written: {sanitize(t.path)}", file=sys.stderr)
    if all(t.path != STDOUT for t in targets):
        print(terminal.render(_as_typed(record, getattr(a, "files", ())), a.language))
    if a.open and (page := _page(targets)) is not None:
        import webbrowser

        if not webbrowser.open(page.resolve().as_uri()):
            print(f"no browser could be opened: open {sanitize(page)} in one", file=sys.stderr)


def _content(record: AuditRecord, document: Document, t: Target, a: Namespace) -> bytes:
    from calibrant.report.outputs import files

    if ending := next((e for e, kind in ENDINGS.items() if kind == t.kind), ""):
        return files.FORMATS[ending](record, document)
    with OUTPUTS.calling(t.kind):
        return _plugged([t])[t.kind].content(record, t.path, a).encode()


def _as_typed(record: AuditRecord, files: Sequence[str]) -> AuditRecord:
    """A record whose commands name the files as they were typed here; a record itself keeps no folders."""
    if not files or any(f.endswith(".sketch") for f in files):
        return record
    return replace(record, data={**record.data, "sources": tuple(files), "file_count": len(files)})


def write(target: str, content: bytes) -> None:
    """Write to a file, or text to standard output for ``-``."""
    if target == STDOUT:
        write_exact(content.decode())
    else:
        written(target, content)


def _page(targets: Iterable[Target]) -> Path | None:
    """The first page that is written to a file."""
    from calibrant.report.outputs.files import PAGE as INSIDE

    kept = (t for t in targets if t.kind in (PAGE, FOLDER) and t.path != STDOUT)
    return next((Path(t.path) / (INSIDE if t.kind == FOLDER else "") for t in kept), None)
