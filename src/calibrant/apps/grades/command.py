"""The command that validates default probabilities by rating grade: what it takes, and what the help says."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

from calibrant.plugins import Command, Parser
from calibrant.toolkit.command import CHECK_STATUS
from calibrant.toolkit.command import options as take

MORE = """\
A supervisor's validation sheet of default probabilities: one row a customer at the beginning of the observation period,
the label a default within it, the score the PD. Jeffreys tests by grade, with correlation, traffic lights, the AUC
against its initial value, migrations between grades, and concentration; as a page to sign, a workbook or JSON. Rows of
one customer (--cluster) count once.

examples:
  calibrant grades book.csv --label default --score pd --grade grade --rho 0.12 -o sheet.xlsx
  calibrant grades book.csv --label default --score pd --grade grade --by region --limit-relative 0.2 -o page.html
  calibrant grades book.csv --label default --score pd --grade grade --end-grade next --exposure ead --initial first.csv
  calibrant grades book.csv --label default --score pd --grade grade --order A,B,C --initial-auc 0.81 --json
"""


class Grades(Command):
    """The command ``grades``."""

    line, more, status, after = "validate default probabilities by rating grade", MORE, CHECK_STATUS, "compare"

    def options(self, p: Parser) -> None:
        """Add the options."""
        take.files(p)
        take.columns(p)
        p.add_argument("--grade", metavar="COLUMN", help="rating grade at the beginning of the observation period")
        p.add_argument("--end-grade", metavar="COLUMN", help="and at its end, empty for none: for migrations")
        p.add_argument("--exposure", metavar="COLUMN", help="owed at the beginning: for concentration by exposure")
        take.listed(p, "--by", "segments, such as region and product: each by grade and in all")
        line = "defaults within this share of those expected: 0.2 is 0.8 to 1.2 times as many"
        p.add_argument("--limit-relative", type=float, metavar="R", help=line)
        p.add_argument("--alpha", type=float, metavar="A", help="error probability of ranges (default 0.05)")
        take.listed(p, "--order", "every grade, the best first (default: those of the data by their PD)", "GRADES")
        p.add_argument("--average-pd", action="store_true", help="take the mean where PDs differ within a grade")
        p.add_argument("--initial", metavar="FILE", help="rows of the initial validation, with the same columns")
        p.add_argument("--initial-auc", type=float, metavar="AUC", help="or its AUC alone")
        p.add_argument("--initial-herfindahl", type=float, metavar="HI", help="and its Herfindahl index, by number")
        p.add_argument(
            "--rho", type=float, default=0.0, metavar="R", help="correlation of defaults, such as 0.12 (default 0)"
        )
        p.add_argument(
            "--lights",
            type=_levels,
            default=(0.05, 0.001),
            metavar="A,B",
            help="p-values: green above A, red at most B, amber between (default 0.05,0.001)",
        )
        p.add_argument("--draws", type=int, default=999, metavar="N", help="simulated data sets (default 999)")
        take.seed(p)
        take.as_json(p)
        take.out(p, "also write it, once or more: .html to sign, .xlsx, .json, or .csv of back-testing", "FILE")
        take.csv_form(p)

    def run(self, inputs: Namespace) -> int:
        """Print the validation, and write its workbook."""
        from calibrant.apps.grades.call import grades

        return grades(inputs)


def _levels(text: str) -> tuple[float, ...]:
    """The levels of the lights."""
    try:
        return tuple(float(v) for v in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"{text!r}: write two p-values such as 0.05,0.001") from None


GRADES = Grades()
