"""The command that weighs rows to a population: what it takes, and what the help says."""

from __future__ import annotations

from argparse import Namespace

from calibrant.plugins import Command, Parser
from calibrant.toolkit.command import APPLY_STATUS
from calibrant.toolkit.command import options as take

MORE = """\
Makes the rows look like a named population, without reading a label, and prints what that costs. OUT holds every column
and the weights; rows left out (pilot rows, rows unlike the population) have none: audit with --missing drop then.

examples:
  calibrant weights log.parquet --margins census.toml -o weighted.parquet
  calibrant weights 2015.parquet --to 2018.parquet --by sex,age --method rake -o weighted.parquet
  calibrant audit weighted.parquet --label y --score p --weights weight
"""


class Weights(Command):
    """The command ``weights``."""

    line, more, status, after = "weigh rows so that they look like a named population", MORE, APPLY_STATUS, "repair"

    def options(self, p: Parser) -> None:
        """Add the options."""
        take.files(p)
        p.add_argument("--to", metavar="TARGET", help="rows of the population, in a file with the same columns")
        p.add_argument("--margins", metavar="FILE", help="or its shares, or counts, by level: .toml or .json")
        take.listed(p, "--by", "of --to: the columns in which rows are to be like the population")
        p.add_argument("--method", choices=("cells", "rake", "classifier"), help="of --to (default cells)")
        p.add_argument("--to-weights", metavar="COLUMN", help="of --to: how many people each of its rows stands for")
        p.add_argument("--weights", metavar="COLUMN", help="weights that the rows have already, which are multiplied")
        take.listed(p, "--cluster", "clusters, which pilot rows and folds keep whole; of several columns the coarsest")
        p.add_argument("--cap", metavar="X", help="largest weight in means, or none (default: 20 for the classifier)")
        p.add_argument(
            "--pool", metavar="COLUMN=A,B=C", action="append", default=[], help="count levels A and B of a column as C"
        )
        p.add_argument(
            "--leave-out", action="store_true", help="leave out of the population, and name, who is like no row"
        )
        p.add_argument("--pilot", type=float, default=0.0, metavar="S", help="share of rows to learn from, which leave")
        p.add_argument("--learner", choices=("logistic", "trees"), default="logistic", help="of --method classifier")
        p.add_argument("--column", default="weight", metavar="NAME", help="of the weights in OUT (default weight)")
        take.one_out(p, "write the rows with their weights: .parquet, .csv, .tsv, .arrow")
        take.as_json(p, "print JSON, which holds every weight, instead of text")
        take.seed(p)

    def run(self, inputs: Namespace) -> int:
        """Make weights, print what they do, and write the rows with them."""
        from calibrant.apps.population.weighing import weights

        return weights(inputs)


WEIGHTS = Weights()
