"""The options of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from calibrant.audit.record import GATES
from calibrant.errors import BadInput


def data_options(p: argparse.ArgumentParser) -> None:
    """Add the files and how to read them."""
    p.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="Parquet, CSV, Arrow IPC, sketch; a quoted glob or a directory works too",
    )
    p.add_argument("--label", metavar="COLUMN", help="outcomes: 0 and 1, or any values with --positive")
    p.add_argument("--score", metavar="COLUMN", help="predicted probabilities, 0 to 1")
    p.add_argument("--positive", metavar="VALUE", help="the label value that counts as a case")
    p.add_argument(
        "--drop-missing", action="store_true", help="leave out, and count, rows with a missing label or score"
    )
    p.add_argument(
        "--key",
        metavar="COLUMNS",
        type=names,
        default=(),
        help="columns that identify a row (default: file and row number)",
    )
    p.add_argument("--seed", type=int, default=0, help="deals the rows into random blocks (default 0)")


def group_options(p: argparse.ArgumentParser) -> None:
    """Add the groups."""
    p.add_argument("--by", metavar="COLUMNS", type=names, default=(), help="group columns, separated by commas")
    p.add_argument(
        "--variables",
        metavar="COLUMNS",
        type=names,
        default=("*",),
        help="covariates to rank and test (default: every other column that can be used; 'none' for none)",
    )
    p.add_argument("--intersections", action="store_true", help="also every pair of the group columns")
    p.add_argument(
        "--bins",
        metavar="COLUMN=A,B,…",
        action="append",
        default=[],
        help="bin edges of a numeric group column, such as age=18,40,65",
    )


def audit_options(
    p: argparse.ArgumentParser, limit: float | None = None, outcome: str | None = None, report: str | None = None
) -> None:
    """Add limit, display and outputs."""
    p.add_argument(
        "--limit", type=float, default=limit, metavar="L", help="largest acceptable average error; 0.02 is two points"
    )
    p.add_argument(
        "--levels",
        type=int,
        default=50,
        metavar="K",
        help="steps in which probabilities are shown (default 50: steps of 2%%)",
    )
    p.add_argument("--alpha", type=float, default=0.05, help="error probability of each certificate (default 0.05)")
    p.add_argument("--quick", action="store_true", help="leave out the tests; measures and certificates remain")
    p.add_argument(
        "--tolerance",
        type=float,
        default=0.0,
        metavar="D",
        help="of the strong calibration test: how far off a probability may be for anyone (default 0)",
    )
    p.add_argument(
        "--fail-on",
        metavar="TESTS",
        type=names,
        default=(),
        help="exit with 1 if one of these tests finds error: " + ", ".join(GATES),
    )
    p.add_argument("--outcome", default=outcome, metavar="WORD", help="what a case is, for wording: employed")
    p.add_argument("--name", metavar="NAME", help="name of the data in the report (default: the file's)")
    p.add_argument("--date", metavar="DATE", help="date to print in the report (default: none)")
    p.add_argument("--report", default=report, metavar="OUT.html", help="write the HTML report")
    p.add_argument("--markdown", metavar="OUT.md", help="write the report as Markdown (- for standard output)")
    p.add_argument("--json", metavar="OUT.json", help="write the record as JSON (- for standard output)")
    if report:
        p.add_argument("--seed", type=int, default=0, help="deals the rows into random blocks (default 0)")


def certify_options(p: argparse.ArgumentParser) -> None:
    """Add methods and their settings."""
    p.add_argument(
        "--method",
        type=names,
        default=("raw_lower", "rounded", "distance"),
        metavar="NAMES",
        help="raw_lower, rounded, jittered, distance, bounded_variation (default: raw_lower,rounded,distance)",
    )
    p.add_argument("--side", choices=("two-sided", "lower", "upper"), default="two-sided")
    p.add_argument(
        "--levels", type=int, default=100, metavar="K", help="steps of rounded (default 100: whole per cent)"
    )
    p.add_argument("--bandwidth", type=float, default=2**-6, metavar="H", help="of jittered (default 2^-6)")
    p.add_argument(
        "--variation",
        type=float,
        default=1.0,
        metavar="V",
        help="of bounded_variation (default 1: a monotone event rate)",
    )
    p.add_argument("--alpha", type=float, default=0.05)
    p.add_argument("--json", action="store_true", help="print JSON instead of a table")


def plan_options(p: argparse.ArgumentParser) -> None:
    """Add what to plan for."""
    p.add_argument("gap", type=float, help="how close the bound should come to the truth; 0.02 is two points")
    p.add_argument("--method", choices=("rounded", "jittered"), default="rounded")
    p.add_argument("--levels", type=int, default=100, metavar="K")
    p.add_argument("--bandwidth", type=float, default=2**-6, metavar="H")
    p.add_argument("--alpha", type=float, default=0.05)
    p.add_argument("--side", choices=("upper", "lower", "two-sided"), default="upper")
    p.add_argument("--data", metavar="FILE", help="rows whose scores to plan for (needs --label and --score)")
    p.add_argument("--label", metavar="COLUMN")
    p.add_argument("--score", metavar="COLUMN")
    p.add_argument("--positive", metavar="VALUE", help="the label value that counts as a case")
    p.add_argument("--drop-missing", action="store_true", help="leave out rows with a missing label or score")


def names(text: str) -> tuple[str, ...]:
    """Split a list at its commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def bins(items: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Return bin edges by column."""
    out = {}
    for item in items:
        name, _, edges = item.rpartition("=")
        try:
            out[name] = tuple(float(e) for e in edges.split(","))
        except ValueError:
            name = ""
        if not name:
            raise BadInput(f"--bins {item!r}: write COLUMN=EDGE,EDGE,… such as age=18,40,65")
    return out
