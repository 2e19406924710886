"""The page: one self-contained HTML file from a record, the same bytes every time."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache, partial
from importlib.resources import files
from importlib.util import cache_from_source
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING

from calibrant.audit.record import AuditRecord
from calibrant.report import svg
from calibrant.report.brief import brief as first_layer
from calibrant.report.document import Cell, Column, Document, Kind, Node, seen
from calibrant.report.languages.catalogue import ENGLISH, Words, scripted, styled
from calibrant.report.languages.translator import in_language
from calibrant.report.outline import document
from calibrant.report.spans import plain
from calibrant.report.wording.terms import MARKS
from calibrant.sanitize import sanitize

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment
    from jinja2.bccache import Bucket
    from markupsafe import Markup

PLAIN = 1 << 18  # bytes of a record that a page holds as they are


def render(record: AuditRecord, language: str = ENGLISH) -> str:
    """The report as one HTML page that loads nothing, sends nothing and holds no time stamp.

    Parameters
    ----------
    record : AuditRecord
    language : {"en", "de"}
        Of the page; the record inside is the same.

    Returns
    -------
    str
        The page; `record` as JSON is in its element ``calibrant-result``, gzipped and in base64 if it has more than
        256 kB (its ``type`` says which); `AuditRecord.load` reads both.

    Notes
    -----
    **Guarantee.** The same record and versions give the same bytes. Every bound printed is the bound of the
    record rounded outward. Text from the data can not act as markup, and the page's policy lets no other
    script run.
    """
    return written(in_language(document(record), record, language), record)


def brief(record: AuditRecord) -> str:
    return environment().get_template("page.html.j2").render(_context(first_layer(record), alone=True))


def written(of: Document, record: AuditRecord) -> str:
    return page(of, record.to_dict(), record.versions.get("calibrant", ""))


def page(of: Document, result: Mapping[str, object], version: str) -> str:
    """A document as a page, with the result that it shows inside, as plain data."""
    context = _context(of) | {"version": sanitize(version), "name": of.name, **embedded(result)}
    return environment(of.language).get_template("page.html.j2").render(context)


def _context(of: Document, *, alone: bool = False) -> dict[str, object]:
    """What the page is written from; `alone` leaves out the contents, the script and the record."""
    style, script = styled(asset("style.css"), of.language), scripted(asset("script.js"), of.language)
    return {
        "document": of,
        "alone": alone,
        "version": "",
        "name": "",
        "result": "",
        "result_type": "",
        "style": style,
        "script": script,
        "style_hash": digest(style),
        "script_hash": digest(script),
    }


def embedded(result: Mapping[str, object]) -> dict[str, str]:
    """A result as the page holds it, and what its element says it is: plain JSON, packed if it is long."""
    text = island(result)
    if len(text) <= PLAIN:
        return {"result": text, "result_type": "application/json"}
    packed = gzip.compress(text.encode(), mtime=0)
    return {"result": base64.b64encode(packed).decode(), "result_type": "application/gzip"}


def island(value: object) -> str:
    """A value as JSON that is safe inside a page: ASCII only, and no ``<``."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def asset(name: str) -> str:
    """The text of a template, the script, or the style with that of the brief after it."""
    parts = ("style.css", "brief.css") if name == "style.css" else (name,)
    folder = files("calibrant.report") / "templates"
    return "\n".join((folder / part).read_text(encoding="utf-8").strip() for part in parts)


def show(nodes: Iterable[Node], language: str = ENGLISH) -> Markup:
    """The nodes that the page shows, each written by the macro that has the name of its kind."""
    from markupsafe import Markup

    first, rest = (environment(language).get_template(f"{name}.html.j2").module for name in ("brief", "nodes"))
    named = ((type(n).__name__.lower(), n) for n in seen(nodes, "page"))
    return Markup("").join(getattr(first if hasattr(first, name) else rest, name)(n) for name, n in named)


def shown(nodes: Iterable[Kind]) -> tuple[Kind, ...]:
    return seen(nodes, "page")


def paired(columns: Iterable[Column], cells: Iterable[Cell]) -> list[tuple[Column, Cell]]:
    return [(c, cell) for c, cell in zip(columns, cells, strict=True) if "page" in c.where]


@cache
def environment(language: str = ENGLISH) -> Environment:
    """The template engine of a language: everything is escaped, and an unknown name is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(asset),
        bytecode_cache=_compiled(),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        show=partial(show, language=language), t=Words(language), seen=shown, paired=paired, plain=plain, island=island
    )
    made.globals.update(icon=svg.icon, swatch=svg.swatch, marks=MARKS)
    return made


def _compiled() -> BytecodeCache:
    """Find where compiled templates are kept: with the byte code of this file, where and if Python keeps that."""
    from jinja2 import FileSystemBytecodeCache, __version__

    class Attached(FileSystemBytecodeCache):
        """As it is, in a folder that may not be there, or be written by nobody, and of files that may be damaged."""

        def get_bucket(self, environment: Environment, name: str, filename: str | None, source: str) -> Bucket:
            how = environment.autoescape, environment.trim_blocks, environment.lstrip_blocks
            return super().get_bucket(environment, name, filename, f"{how}{source}")  # files outlive an installation

        def load_bytecode(self, bucket: Bucket) -> None:
            with suppress(OSError, EOFError, UnpicklingError):
                super().load_bytecode(bucket)

        def dump_bytecode(self, bucket: Bucket) -> None:
            if not sys.dont_write_bytecode:
                with suppress(OSError):
                    super().dump_bytecode(bucket)

    tag = sys.implementation.cache_tag  # Jinja itself tells versions of Python apart, but not kinds of it
    return Attached(str(Path(cache_from_source(__file__)).parent), f"%s.{tag}.jinja2-{__version__}.template")
