"""The command that asks one of the papers' own procedures of a file."""

from __future__ import annotations

from argparse import Namespace

from calibrant.apps.papers.published import PAPERS as PUBLISHED
from calibrant.apps.papers.published import listed
from calibrant.plugins import Command
from calibrant.toolkit.command import CHECK, CHECK_STATUS, asking
from calibrant.toolkit.command import Command as Parser
from calibrant.toolkit.command import options as take

EXAMPLES = """\
  calibrant papers published_local_test log.parquet --label y --score p --null bounded --variables age
  calibrant papers published_variable_table log.parquet --label y --score p
  calibrant papers calibration_function log.parquet --label y --score p --method total-variation
  calibrant papers perturb log.parquet --label y --score p -o perturbed.parquet"""
NUMBERS = "methods of this command, and other commands, with their numbers in print:"
PERTURB = """\
Chooses the bandwidth on pilot rows, perturbs every score, and certifies the perturbed score on the other rows. The rows
written hold every column, SCORE_perturbed, and SCORE_certified: false for pilot rows. The calibrator (.json) perturbs
the next rows: calibrant apply jitter.json TOMORROW --score SCORE -o OUT.parquet.

Of several classes (--score 'p_*') it chooses the number of steps, and writes each class's column.

example:
  calibrant papers perturb log.parquet --label y --score p --loss 0.001 -o perturbed.parquet -o jitter.json
  calibrant papers perturb digits.parquet --label digit --score 'p_*' -o perturbed.parquet
"""


class Papers(Command):
    """The command ``papers``."""

    line = "print what a paper's own procedure gives"
    more = f"{CHECK.format(face='papers', examples=EXAMPLES)}\n{NUMBERS}\n{listed()}"
    status, after = CHECK_STATUS, "diagnose"

    def options(self, p: Parser) -> None:
        """Add each procedure with its settings."""
        numbers = {name: text for paper in PUBLISHED for name, text in paper.methods.items()}
        own = {"perturb": ("Perturb a score and certify the perturbed score.", PERTURB, perturbing)}
        asking("papers", numbers, own)(p)

    def run(self, inputs: Namespace) -> int:
        """Ask the procedure of the data."""
        if inputs.method == "perturb":
            from calibrant.apps.papers.perturbed import run

            return run(inputs)
        from calibrant.toolkit.command import run_method

        return run_method(inputs)


def perturbing(p: Parser) -> None:
    """Add the options of `perturb`."""
    take.files(p)
    take.columns(p)
    take.reading(p, "renormalize", "logits")
    line = "AUROC that it may cost, of several classes Brier score (default 0.001)"
    p.add_argument("--loss", type=float, default=0.001, metavar="X", help=line)
    p.add_argument("--pilot", type=float, default=0.1, metavar="S", help="share of rows that choose (default 0.1)")
    p.add_argument("--bandwidth", type=float, metavar="H", help="in place of a pilot: fixed before labels are seen")
    p.add_argument("--steps", type=int, metavar="M", help="the same of several classes: multiples of 1/M")
    p.add_argument("--alpha", type=float, default=0.05, metavar="X", help="error probability (default 0.05)")
    p.add_argument("--side", choices=("two-sided", "lower", "upper"), default="two-sided")
    take.seed(p)
    take.as_json(p, "print JSON instead of text")
    take.out(p, "write the rows (.parquet, .csv, .tsv, .arrow) or the calibrator (.json), once each")


PAPERS = Papers()
