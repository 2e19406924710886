"""The checklist as an output of a record: ``-o tripod:FILE``, and two files of the folder of ``-o DIR/``."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from calibrant.plugins import Output

if TYPE_CHECKING:
    from calibrant import AuditRecord
    from calibrant.results import Curve


class Tripod(Output):
    """The items of TRIPOD+AI with what a record answers of each."""

    line = "the TRIPOD+AI items that an audit answers"
    metavar = "OUT.md|.csv"
    kept = "tripod.md", "tables/tripod.csv"

    def check(self, target: str | None, inputs: Namespace) -> None:
        """Refuse another ending than those of Markdown and CSV."""
        from calibrant.apps.guidelines.tripod import ending

        if target:
            ending(target)

    def content(self, thing: AuditRecord, target: str, inputs: Namespace) -> str:
        """The items as Markdown in the language of the report, or as CSV where the name of the file ends so."""
        from calibrant.apps.guidelines.tripod import FORMATS, ending

        return FORMATS[ending(target)](thing, inputs.language)

    def table(self, record: AuditRecord) -> Curve:
        """The items as a table, for Python."""
        from calibrant.apps.guidelines.tripod import table

        return table(record)


TRIPOD = Tripod()
