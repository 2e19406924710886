"""The command that asks one of the papers' own procedures of a file."""

from __future__ import annotations

from argparse import Namespace

from calibrant.plugins import Command
from calibrant.toolkit.command import ASKED, ASKED_STATUS, asking
from calibrant.toolkit.command import Command as Parser

EXAMPLES = """\
  calibrant papers published_local_test log.parquet --label y --score p --null bounded --variables age
  calibrant papers calibration_function log.parquet --label y --score p --method total-variation"""


class Papers(Command):
    """The command ``papers``."""

    line, more = "print what a paper's own procedure gives", ASKED.format(face="papers", examples=EXAMPLES)
    status, after = ASKED_STATUS, "diagnose"

    def options(self, p: Parser) -> None:
        """Add each procedure with its settings."""
        asking("papers")(p)

    def run(self, given: Namespace) -> int:
        """Ask the procedure of the data."""
        from calibrant.toolkit.command import asked

        return asked(given)


PAPERS = Papers()
