"""Workbooks of Excel: one sheet, whose first row names the columns."""

from __future__ import annotations

import datetime
import re
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pyarrow as pa

from calibrant.data.columns import EXACT
from calibrant.data.sources.formats.cells import column, seen_in, type_of, whole
from calibrant.data.sources.source import Form, Source
from calibrant.errors import BadInput

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

FREE, RATIO = 1 << 28, 200  # bytes that any workbook may unpack to, and times its own size beyond
UNCOMPUTED = re.compile(  # a formula whose value was never stored; one that gives empty text says that it is text
    rb'<c\b(?![^>]*\bt="str")[^>]*\br="([A-Z]+)([0-9]+)"[^>]*>\s*<f\b[^>]*(?:/>|>[^<]*</f>)\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>'
)
RELATED = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
BROKEN = (OSError, zipfile.BadZipFile, zlib.error, ElementTree.ParseError, LookupError, ValueError, RuntimeError)
WAY = "or save the sheet as CSV"


def excel(path: Path, name: str, form: Form) -> Source:
    """The rows of a sheet that are not empty, whole numbers as such, dates as dates, text as it is."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise BadInput(f"{path.name} is an Excel file: pip install 'calibrant[excel]', {WAY}") from None
    _bounded(path)
    try:
        with CalamineWorkbook.from_path(str(path)) as book:
            sheet = _sheet(book, path.name, form.sheet)
            rows = [_plain(row) for row in sheet.to_python(skip_empty_area=False)]
            merged = sheet.merged_cell_ranges or []
        missing = _uncomputed(path, sheet.name)
    except BadInput:  # which is a ValueError: it says what to do, and saving again is not that
        raise
    except (CalamineError, *BROKEN) as e:
        raise BadInput(f"{path.name} cannot be read as Excel ({str(e).splitlines()[0][:120]}): save it again") from None
    except BaseException as e:
        if type(e).__name__ != "PanicException":  # how the reader, which is not Python, fails
            raise
        raise BadInput(f"{path.name} is damaged: save it again in Excel, {WAY}") from None
    return _source(path.name, name, rows, merged, missing, sheet)


def _source(
    file: str,
    name: str,
    rows: list[list[object]],
    merged: Sequence[tuple[tuple[int, int], tuple[int, int]]],
    missing: dict[int, str],
    sheet: CalamineSheet,
) -> Source:
    """The rows below the first that is not empty as a source."""
    head = next((i for i, row in enumerate(rows) if any(map(_there, row))), None)
    if head is None:
        raise BadInput(f"{file}: sheet {sheet.name!r} is empty: pass sheet= (--sheet) to name another")
    header, body = rows[head], [row for row in rows[head + 1 :] if any(map(_there, row))]
    used = [j for j in range(len(header)) if _there(header[j]) or any(_there(row[j]) for row in body)]
    if len(used) > 1 and sum(_there(header[j]) for j in used) == 1:
        title = next(str(v) for v in header if _there(v))
        raise BadInput(
            f"{file}: row {head + 1} holds {title[:40]!r} alone, a title it seems: delete what stands above the names"
        )
    for (top, left), (bottom, right) in merged:
        if top <= head <= bottom and right > left:
            raise BadInput(
                f"{file}: cells {_letters(left)}{head + 1} to {_letters(right)}{head + 1} of the names of columns are "
                "merged: give each column a name of its own"
            )
    columns: dict[str, pa.Array] = {}
    unread: dict[str, str] = {}
    for j in used:
        label = str(header[j]) if _there(header[j]) else f"column {j + 1}"
        if label in columns or label in unread:
            raise BadInput(f"{file} has two columns named {label!r}: rename one")
        values = [row[j] for row in body]
        if j in missing:
            unread[label] = f"cell {missing[j]} has a formula without a value: open and save the file in Excel"
        elif any(isinstance(v, datetime.time | datetime.timedelta) for v in values):
            unread[label] = "it holds times of day or durations"
        else:
            columns[label] = column(values, type_of(seen_in(values)))
    return whole(pa.table(columns), name, unread)


def _there(value: object) -> bool:
    return value is not None


def _plain(row: Sequence[object]) -> list[object]:
    """Return cells, None where empty, whole numbers as such: Excel stores all as real ones, and 15 digits of them."""
    whole_ones = (int(v) if isinstance(v, float) and v.is_integer() and abs(v) <= EXACT else v for v in row)
    return [None if v == "" else v for v in whole_ones]


def _sheet(book: CalamineWorkbook, file: str, requested: str) -> CalamineSheet:
    """The sheet that was asked for, or the only one that is visible."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    tables = [s for s in book.sheets_metadata if s.typ == SheetTypeEnum.WorkSheet]
    listed = ", ".join(repr(s.name) for s in tables)
    if requested:
        if requested not in [s.name for s in tables]:
            raise BadInput(f"{file} has no sheet {requested!r}: pass one of {listed}")
        return book.get_sheet_by_name(requested)
    shown = [s.name for s in tables if s.visible == SheetVisibleEnum.Visible]
    kept = [sheet for sheet in map(book.get_sheet_by_name, shown) if sheet.height]
    if len(kept) > 1:
        there = ", ".join(repr(sheet.name) for sheet in kept)
        raise BadInput(f"{file} has {len(kept)} sheets, {there}: name one with sheet= (--sheet NAME)")
    if not kept:
        raise BadInput(f"{file} has no sheet with anything in it: put the table on a sheet that is shown")
    return kept[0]


def _letters(place: int) -> str:
    """The name of a column: A for 0, AA for 26."""
    out = ""
    while place >= 0:
        out, place = chr(65 + place % 26) + out, place // 26 - 1
    return out


# ---- what the reader does not tell: how much it would unpack, and formulas that were never computed ----


def _bounded(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(one.file_size for one in archive.infolist())
    except BROKEN as e:
        raise BadInput(f"{path.name} cannot be read as Excel ({e}): save it again, {WAY}") from None
    if size > FREE + RATIO * path.stat().st_size:
        raise BadInput(f"{path.name} would unpack to {size:,} bytes: save it as CSV or Parquet")


def _uncomputed(path: Path, sheet: str) -> dict[int, str]:
    """The first cell of each column that holds a formula and no value: such a cell would be read as empty."""
    with zipfile.ZipFile(path) as archive:
        book = ElementTree.fromstring(archive.read("xl/workbook.xml"))  # noqa: S314 - expat bounds entities
        links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))  # noqa: S314
        targets = {link.get("Id"): link.get("Target", "") for link in links}
        wanted = next(
            (s.get(RELATED) for s in book.iter() if s.tag.endswith("}sheet") and s.get("name") == sheet), None
        )
        target = targets.get(wanted, "")
        inside = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
        raw = archive.read(inside)
    out: dict[int, str] = {}
    for letters, row in UNCOMPUTED.findall(raw):
        place = 0
        for letter in letters:
            place = 26 * place + letter - 64
        out.setdefault(place - 1, (letters + row).decode())
    return out
