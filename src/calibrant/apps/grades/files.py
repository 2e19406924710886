"""Where a validation of grades goes: a page, a workbook, JSON, or back-testing as CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from calibrant.apps.grades.page import page
from calibrant.apps.grades.sheet import GradeValidation
from calibrant.apps.grades.workbook import BOOK, workbook
from calibrant.errors import BadInput
from calibrant.toolkit.report import results


def _json(result: GradeValidation) -> bytes:
    return f"{result.to_json()}\n".encode()


def _csv(result: GradeValidation, form: results.CsvForm | None = None) -> bytes:
    return results.content(result.table, "x.csv", form or results.CSV)


def _page(result: GradeValidation) -> bytes:
    return page(result).encode()


FORMATS: Mapping[str, Callable[[GradeValidation], bytes]] = {
    BOOK: workbook,
    ".html": _page,
    ".json": _json,
    ".csv": _csv,
}


def checked(out: str) -> str:
    """The name of a file that a validation can be written to."""
    if Path(out).suffix.lower() not in FORMATS:
        raise BadInput(f"cannot write {out!r}: end its name in {', '.join(FORMATS)}")
    return out


def content(result: GradeValidation, out: str, form: results.CsvForm | None = None) -> bytes:
    """A validation in the format of a file's ending; `form` is how CSV writes numbers."""
    ending = Path(out).suffix.lower()
    return _csv(result, form) if ending == ".csv" else FORMATS[ending](result)
