"""What is written of a record, by audits and from a record that was kept: files, a folder, a page that is opened."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.audit.record import AuditRecord
from calibrant.cli.options import arranged, requested
from calibrant.cli.options import target as target_of
from calibrant.cli.standard_output import write_exact
from calibrant.data.targets import checked_targets, written
from calibrant.errors import BadInput
from calibrant.plugins import OUTPUTS
from calibrant.sanitize import sanitize

if TYPE_CHECKING:
    from calibrant.data.sources.query import Query

STDOUT = "-"
OWN = "json", "report", "markdown", "pdf", "junit"  # the outputs that are no plug-ins


def targets_of(a: Namespace) -> dict[str, str | None]:
    """The file of every output by its name, None where it was not asked for."""
    return {name: target_of(a, name) for name in arranged(OWN, requested(a, "record"))}


def report(a: Namespace) -> int:
    """Write what is asked for of a record that was kept; print its summary unless standard output was claimed."""
    check_outputs(a, [a.record])
    deliver(AuditRecord.load(a.record), a)
    return 0


def check_outputs(a: Namespace, files: Sequence[str] | Sequence[Query]) -> None:
    """Refuse outputs that cannot be written, or that claim one place, before any work is done."""
    targets, plugged = targets_of(a), requested(a, "record")
    outs = {f"--{name}": out for name, out in targets.items() if name != "pdf"} | {"--pdf": a.pdf}
    claims = [option for option, out in outs.items() if out == STDOUT]
    if a.pdf == STDOUT:
        raise BadInput("--pdf -: a PDF goes to a file")
    if len(claims) > 1:
        raise BadInput(f"{claims[0]} - and {claims[1]} - both claim standard output: write one to a file")
    if a.open and not a.out and a.report in (None, STDOUT):
        raise BadInput("--open shows a page: name one with --report OUT.html, or a directory with --out DIR")
    read = [*files, *(row_attributes for one in plugged.values() for row_attributes in one.reads(a))]
    checked_targets({option: out for option, out in outs.items() if out != STDOUT}, read)
    for name, one in plugged.items():
        with OUTPUTS.calling(name):
            one.check(targets[name], a)
    if a.pdf:
        from calibrant.report.outputs.files import browser

        browser()
    if a.out is not None:
        from calibrant.report.outputs.files import checked_folder

        checked_folder(a.out, read, plugged)


def deliver(record: AuditRecord, a: Namespace) -> None:
    """Write what was asked for; print the summary unless standard output was claimed."""
    from calibrant.report import html, markdown, outline, terminal

    document = outline.document(record)
    page = html.written(document, record) if a.report or a.pdf else ""
    if a.report:
        write(a.report, page)
        _say("report", a.report)
    if a.pdf:
        from calibrant.report.outputs import files

        written(a.pdf, files.printed(page.encode()))
        _say("pdf", a.pdf)
    if a.json:
        write(a.json, record.to_json() + "\n")
    if a.markdown:
        write(a.markdown, markdown.written(document))
    if a.junit:
        from calibrant.report.pipelines import junit

        write(a.junit, junit(record))
    _write_plugged(record, a)
    if a.out:
        from calibrant.report.outputs import files, results

        form = results.CsvForm(a.csv_decimal, a.csv_digits)
        files.write_all(record, document, Path(a.out), requested(a, "record"), form)
        _say("written to", a.out)
    if STDOUT not in targets_of(a).values():
        print(terminal.render(_as_typed(record, getattr(a, "files", ()))))
    if a.open:
        from calibrant.report.outputs.files import PAGE

        _open(Path(a.out) / PAGE if a.report in (None, STDOUT) else Path(a.report))


def _write_plugged(record: AuditRecord, a: Namespace) -> None:
    """Write the outputs of plug-ins that were asked for."""
    for name, one in requested(a, "record").items():
        if target := target_of(a, name):
            with OUTPUTS.calling(name):
                content = one.content(record, target, a)
            write(target, content)
            if one.says and target != STDOUT:
                _say(one.says, target)


def _as_typed(record: AuditRecord, files: Sequence[str]) -> AuditRecord:
    """A record whose commands name the files as they were typed here; a record itself keeps no folders."""
    if not files or any(f.endswith(".sketch") for f in files):
        return record
    return replace(record, data={**record.data, "sources": tuple(files), "file_count": len(files)})


def write(target: str, content: str) -> None:
    """Write text to a file, or to standard output for ``-``."""
    if target == STDOUT:
        write_exact(content)
    else:
        written(target, content.encode())


def _say(what: str, target: str) -> None:
    print(f"{what}: {sanitize(target)}", file=sys.stderr)


def _open(page: Path) -> None:
    """Show a page that is written in the browser of this desktop."""
    import webbrowser

    if not webbrowser.open(page.resolve().as_uri()):
        print(f"no browser could be opened: open {sanitize(page)} in one", file=sys.stderr)
