"""The command that asks one of the papers' own procedures of a file."""

from __future__ import annotations

from argparse import Namespace

from calibrant.plugins import Command
from calibrant.toolkit.command import CHECK, CHECK_STATUS, asking
from calibrant.toolkit.command import Command as Parser

EXAMPLES = """\
  calibrant papers published_local_test log.parquet --label y --score p --null bounded --variables age
  calibrant papers calibration_function log.parquet --label y --score p --method total-variation"""


class Papers(Command):
    """The command ``papers``."""

    line, more = "print what a paper's own procedure gives", CHECK.format(face="papers", examples=EXAMPLES)
    status, after = CHECK_STATUS, "diagnose"

    def options(self, p: Parser) -> None:
        """Add each procedure with its settings."""
        asking("papers")(p)

    def run(self, inputs: Namespace) -> int:
        """Ask the procedure of the data."""
        from calibrant.toolkit.command import run_method

        return run_method(inputs)


PAPERS = Papers()
