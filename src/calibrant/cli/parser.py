"""What the `calibrant` command takes: its commands, their options, and what the help says."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from calibrant import __version__
from calibrant.cli import options as take
from calibrant.cli import words
from calibrant.cli.options import Command, Listed, Options, names
from calibrant.cli.plugged import add_output, arranged, outputs, with_installed_outputs
from calibrant.errors import BadInput
from calibrant.plugins import COMMANDS as PLUGGED

if TYPE_CHECKING:
    from calibrant.certify.certificate import Offer, Setting
    from calibrant.cli.signature import Method
    from calibrant.cli.signature import Setting as Own
    from calibrant.plugins import Command as CommandPlugin


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    raw = argparse.RawDescriptionHelpFormatter
    top = Command(prog="calibrant", description=words.ABOUT, epilog=words.STATUS, formatter_class=raw)
    top.add_argument("--version", action="version", version=f"calibrant {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Command)

    def add(name: str, line: str, more: str, options: Options, status: str) -> None:
        sub = commands.add_parser(name, help=line, description=f"{line}\n\n{more}", epilog=status, formatter_class=raw)
        sub.options = options

    def add_installed(_: Command) -> None:
        for name in PLUGGED.installed:
            try:
                add(name, *entry(PLUGGED.loaded(name)))
            except BadInput as e:  # the help says why; who asks for it gets the same
                add(name, str(e).replace("%", "%%"), "", partial(_unusable, name), "")

    for name in arranged(COMMANDS, PLUGGED.ours()):
        add(name, *(COMMANDS[name] if name in COMMANDS else entry(PLUGGED.own(name))))
    top.installed = add_installed
    return top


def entry(one: CommandPlugin) -> tuple[str, str, Options, str]:
    """Return what the parser takes of the command of a plug-in."""
    return one.line.replace("%", "%%"), one.more, one.options, one.status


def _unusable(name: str, _: Command) -> None:
    PLUGGED.loaded(name)  # raises what is wrong with it


# ---- the options of each command ----


def _audit(p: Command) -> None:
    take.files(p, ", sketch")
    take.columns(p)
    take.identity(p)
    take.groups(p, "rank and test")
    take.intersections(p)
    _judging(p)


def _look(p: Command) -> None:
    take.files(p, ", sketch")
    take.columns(p)
    take.identity(p)
    take.groups(p, "rank and test")
    take.intersections(p)
    p.add_argument("--json", action="store_true", help="print JSON instead of a table")


def _guide(_: Command) -> None:
    """Take nothing."""


def _example(p: Command) -> None:
    _judging(p, limit=0.014, outcome="employed", report="calibrant-example.html")
    take.seed(p)


def _judging(p: Command, limit: float | None = None, outcome: str | None = None, report: str | None = None) -> None:
    from calibrant.audit.checks import gates

    p.add_argument(
        "--limit",
        type=float,
        default=limit,
        metavar="L",
        help="largest acceptable calibration error; 0.02 is two points",
    )
    p.add_argument(
        "--judge",
        choices=("error", "gap"),
        default="error",
        help="what the limit is about: the calibration error (default), or the gap, observed minus predicted",
    )
    take.levels(p, "rounding steps of scores of many values; scores of few values are judged raw")
    p.add_argument("--alpha", type=float, default=0.05, help="error probability of each certificate (default 0.05)")
    p.add_argument("--quick", action="store_true", help="leave out the tests; measures and certificates remain")
    p.add_argument(
        "--mask",
        type=int,
        default=20,
        metavar="N",
        help="smallest group size shown; smaller groups are pooled (default 20, least 5)",
    )
    p.add_argument(
        "--tolerance",
        type=float,
        default=0.0,
        metavar="D",
        help="of the strong calibration test: how far off a probability may be for anyone (default 0)",
    )
    p.add_argument(
        "--missing-odds",
        type=float,
        default=2.0,
        metavar="G",
        help="with --missing keep: how many times the odds may differ of people without a label (default 2, least 1)",
    )
    take.listed(
        p, "--fail-on", "exit with 1 if one of these finds error, 3 if undecided: " + ", ".join(gates()), "TESTS"
    )
    take.acting(
        p, "act on people from this score on (up to five): reports net benefit and errors at each, certified separately"
    )
    p.add_argument("--outcome", default=outcome, metavar="WORD", help="what an event is, for wording: employed")
    _about(p)
    p.add_argument("--name", metavar="NAME", help="name of the data in the report (default: the file's)")
    p.add_argument("--date", metavar="DATE", help="date to print in the report (default: none)")
    _written(p, report)


def _about(p: Command) -> None:
    p.add_argument("--about", metavar="FILE.toml", help='the next six in a file, such as: model = "risk 3.1"')
    p.add_argument("--noun", metavar="WORD", help="what a row is, for wording: people, loans (default: rows)")
    p.add_argument("--model", metavar="TEXT", help="name and version of the model")
    p.add_argument("--intended-use", metavar="TEXT", help="what the probabilities are used for")
    p.add_argument("--period", metavar="TEXT", help="when the rows were recorded")
    p.add_argument("--population", metavar="TEXT", help="whom or what they stand for")
    p.add_argument("--set-by", metavar="TEXT", help="who set the limit, and when")


def _written(p: Command, report: str | None = None) -> None:
    own: dict[str, tuple[str, str | None, str]] = {
        "report": ("OUT.html", report, "write the HTML report"),
        "markdown": ("OUT.md", None, "write the report as Markdown (- for standard output)"),
        "json": ("OUT.json", None, "write the record as JSON (- for standard output)"),
        "pdf": ("OUT.pdf", None, "print the report with a Chromium, Chrome or Edge found here"),
        "junit": ("OUT.xml", None, "write everyone, groups and tests as test results for a CI service"),
    }
    plugged = outputs("record")
    for name in arranged(own, plugged):
        if name in plugged:
            add_output(p, p, name, plugged[name], "record")
        else:
            metavar, default, line = own[name]
            p.add_argument(f"--{name}", default=default, metavar=metavar, help=line)
    p.add_argument("--out", metavar="DIR", help="write page, record, Markdown, checklist and tables into a directory")
    p.add_argument("--open", action="store_true", help="then show the report in a browser")
    p.installed = lambda p: with_installed_outputs(p, p, "record")


def _report(p: Command) -> None:
    p.add_argument("record", metavar="RECORD.json", help="that an audit wrote with --json or --out, or its HTML report")
    _written(p)


def _certify(p: Command) -> None:
    from calibrant.certify.certificate import certificates

    known = certificates()
    usual = tuple(c.name for c in known if c.usual)
    take.files(p, ", sketch")
    take.columns(p)
    take.identity(p)
    take.listed(p, "--method", f"{', '.join(c.name for c in known)} (default: {','.join(usual)})", "NAMES")
    of = ", ".join(c.name for c in known if c.tests)
    take.listed(p, "--variables", f"of {of}: covariates (default: every other column that can be used)")
    of = ", ".join(c.name for c in known if c.grouped)
    take.listed(p, "--by", f"of {of}: group columns, separated by commas (a sketch brings its own)")
    p.add_argument("--judge", choices=("error", "gap"), default="error", help=f"of {of}: what is certified")
    p.add_argument("--side", choices=("two-sided", "lower", "upper"), default="two-sided")
    _settings(p, known)
    p.add_argument("--alpha", type=float, default=0.05)
    p.add_argument("--json", action="store_true", help="print JSON instead of a table")


def _settings(p: Command, known: Sequence[Offer]) -> None:
    """Add the settings that are a certificate's own, once by name; where it is not given, each has its own default."""
    shared: dict[str, dict[Setting, list[str]]] = {}
    for c in known:
        for own in c.settings:
            shared.setdefault(own.name, {}).setdefault(own, []).append(c.name)
    for name, kept in shared.items():
        first = next(iter(kept))
        lines = (f"of {', '.join(of)}: {own.help} (default {_of_setting(own)})" for own, of in kept.items())
        kind = float if first.default is None else type(first.default)
        p.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar=first.letter, help="; ".join(lines))


def _of_setting(own: Setting) -> str:
    return "none" if own.default is None else f"{own.default:g}"


# ---- the functions of a face, each with its own settings ----

VALUES = {int: "N", float: "X", str: "TEXT"}  # how the help writes a value


def asking(face: str) -> Options:
    """Return what adds the functions of a face."""

    def options(p: Command) -> None:
        from calibrant.cli.signature import methods

        known = methods(face)
        each = p.add_subparsers(dest="method", metavar="METHOD", required=True, parser_class=Command)
        for name, m in known.items():
            sub = each.add_parser(
                name,
                help=m.line.replace("%", "%%"),
                description=m.about,
                epilog=f"{m.notes}\n\n{words.CHECK_STATUS}",
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
            sub.options = partial(_method, m)
        p.spelt = {name.replace("_", "-"): name for name in known}

    return options


def _method(m: Method, p: Command) -> None:
    """Add what a function can be asked with; what the reading of the data has already is reported there."""
    from calibrant.data.reading import OF_ROWS

    take.files(p, ", sketch")
    take.columns(p)
    if m.several:
        take.listed(p, "--scores", "of several classes: a column of probabilities each, in place of --score")
        take.listed(
            p, "--classes", "what the labels call them, in that order (default: by column, or 0, 1, 2, …)", "NAMES"
        )
    if m.grouped:
        take.listed(p, "--by", "group columns: each group separately, not simultaneously")
        take.intersections(p)
    for own in m.settings:
        if own.name not in OF_ROWS:
            _own(p, own)
    p.add_argument("--json", action="store_true", help="print JSON, which holds all of it, instead of text")
    kinds = ".json, .csv or, of a curve, .html"
    p.add_argument("--out", metavar="FILE", help=f"also write it: {kinds}")


def _own(p: Command, own: Own) -> None:
    """Add a setting; where it is not given, the function has its default."""
    from calibrant.cli.signature import OWN

    option, dest = f"--{own.name.replace('_', '-')}", OWN + own.name
    line = own.words.replace("`", "").replace("%", "%%")
    if own.parsed == "flag":
        option, action = (f"--no-{option[2:]}", "store_false") if own.default is True else (option, "store_true")
        p.add_argument(option, dest=dest, action=action, default=None, help=line)
        return
    many = own.parsed == "many"
    value = "COLUMN" if own.columns else VALUES[own.kinds[0]]
    metavar = f"{value}S" if own.columns and many else f"{value},…" if many else value
    line += "" if own.needed or own.default is None else f" (default {_shown(own.default)})"
    how: dict[str, Any] = {"type": partial(_value, own), "metavar": metavar}
    if own.columns and many:
        how |= {"type": names, "action": Listed}
    elif own.choices and not many:
        how |= {"choices": own.choices, "metavar": None}
    p.add_argument(option, dest=dest, required=own.needed, help=line.strip(), **how)


def _value(own: Own, text: str) -> Any:
    """Return what was written; one of several is itself, where the function takes it so."""
    try:
        if own.parsed == "one":
            return own.read(text)
        result = tuple(map(own.read, names(text)))
    except ValueError:
        kind = "a whole number" if own.kinds == (int,) else "a number"
        raise argparse.ArgumentTypeError(f"{text!r}: pass {kind}") from None
    return result if len(result) > 1 or isinstance(own.default, tuple) else result[0]


def _shown(default: object) -> str:
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)


def _plan(p: Command) -> None:
    p.add_argument("gap", type=float, help="how close the bound should come to the truth; 0.02 is two points")
    p.add_argument("--method", choices=("rounded", "jittered"), default="rounded")
    take.levels(p, "of rounded: rounding steps")
    p.add_argument("--bandwidth", type=float, default=2**-6, metavar="H", help="of jittered (default 2^-6)")
    p.add_argument("--alpha", type=float, default=0.05)
    p.add_argument("--side", choices=("upper", "lower", "two-sided"), default="upper")
    p.add_argument("--data", metavar="FILE", help="rows whose scores to plan for (needs --label and --score)")
    take.source(p)
    take.columns(p)


def _accept(p: Command) -> None:
    take.files(p, ", sketch")
    take.columns(p)
    p.add_argument(
        "--risk", type=float, default=0.01, metavar="R", help="largest share of wrong rows among those accepted (0.01)"
    )
    take.listed(p, "--by", "group columns: a threshold for each group, and the risk holds in every one")
    p.add_argument(
        "--end",
        choices=("high", "low"),
        default="high",
        help="accept the highest scores, of which label 0 is wrong (default), or the lowest, of which label 1 is",
    )
    take.target(p)
    p.add_argument("--alpha", type=float, default=0.05, help="error probability (default 0.05)")
    take.seed(p)
    p.add_argument("--json", action="store_true", help="print JSON instead of a table")
    p.add_argument("--out", metavar="FILE", help="also write certified risk against share accepted: .json, .csv, .html")
    p.add_argument("--error", type=float, metavar="E", help="plan, without data: the share of errors to expect")
    p.add_argument("--share", type=float, metavar="S", help="of a plan: the share of rows to accept (default 1)")
    p.add_argument("--power", type=float, metavar="P", help="of a plan: with which probability (default 0.8)")


def _compare(p: Command) -> None:
    take.files(p, "; or two audits that were kept as JSON")
    take.label(p)
    take.listed(p, "--score", "probabilities of each model, 0 to 1, separated by commas; the first is the reference")
    p.add_argument("--percent", action="store_true", help="they are percentages, 0 to 100")
    p.add_argument("--reference", metavar="COLUMN", help="another model than the first")
    take.row_options(p)
    take.listed(p, "--by", "group columns: the verdict holds for everyone and in every group")
    p.add_argument(
        "--measure",
        choices=("brier", "log_loss", "error", "calibration_error", "auroc", "net_benefit"),
        default="brier",
        help="what a model loses (default brier); error: called wrongly at a score of 0.5",
    )
    take.acting(p, "of net_benefit: act from this score on; several, separated by commas, are judged simultaneously")
    p.add_argument(
        "--margin",
        type=float,
        default=0.005,
        metavar="M",
        help="by how much more a model may lose and be no worse, fixed before looking (default 0.005)",
    )
    p.add_argument("--clip", type=float, default=0.001, metavar="C", help="of log_loss: scores are kept in [C, 1 - C]")
    take.target(p)
    p.add_argument("--alpha", type=float, default=0.05, help="error probability of all verdicts (default 0.05)")
    p.add_argument("--seed", type=int, default=0, help="puts the rows in a random order (default 0)")
    p.add_argument("--json", action="store_true", help="print JSON instead of a table")
    p.add_argument("--out", metavar="FILE", help="also write the table: .json, .csv, .html")


def _sketch(p: Command) -> None:
    take.files(p)
    take.columns(p)
    take.identity(p)
    take.groups(p, "rank and test")
    take.intersections(p)
    p.add_argument("--like", metavar="SKETCH", help="use the columns and groups of this sketch, so that the two merge")
    p.add_argument(
        "--tests", action="store_true", help="also hold what tests need, whole rows among it: guard it like the data"
    )
    p.add_argument("--out", required=True, metavar="FILE", help="where to write the sketch")


def _merge(p: Command) -> None:
    p.add_argument("sketches", nargs="+", metavar="SKETCH")
    take.allow_same(p)
    p.add_argument("--out", required=True, metavar="FILE", help="where to write the sum")


def _repair(p: Command) -> None:
    from calibrant.repair.catalogue import recipes

    offered = [e for e in recipes().values() if e.command]
    tried = [e for e in offered if e.tried != "when named"]
    score = ", ".join(e.command for e in tried if not e.covariates)
    more = " and ".join(e.command for e in tried if e.covariates)
    take.files(p)
    take.columns(p)
    take.identity(p)
    take.groups(p, "audit and repair by")
    some = ", ".join(e.command for e in offered)
    take.listed(p, "--method", f"auto: {score} and, with covariates, {more}; or some of: {some}", "NAMES")
    p.add_argument("--judge-on", metavar="FILE", help="judge on these rows instead, and fit on all of FILE's sample")
    p.add_argument(
        "--distinct-clusters",
        action="store_true",
        help="a cluster's name means another one in --judge-on: numbered separately",
    )
    p.add_argument("--limit", type=float, metavar="E", help="who is over it before and after: 0.02 is two points")
    p.add_argument(
        "--judge",
        choices=("error", "gap"),
        default="error",
        help="what the limit is about: the calibration error (default), or the gap, observed minus predicted",
    )
    take.acting(p, "act from this score on, or several (0.1,0.2): whose decisions a repair changes, and the gain")
    take.levels(p, "rounding steps of the certified error")
    p.add_argument("--alpha", type=float, default=0.05, help="error probability of the verdicts (default 0.05)")
    p.add_argument("--quick", action="store_true", help="leave out the tests, and multicalibration from auto")
    p.add_argument("--out", metavar="OUT", help="write every row repaired: .parquet, .csv, .tsv, .arrow or .feather")
    p.add_argument("--calibrator", metavar="CALIBRATOR.json", help="write the calibrator")
    p.add_argument("--json", action="store_true", help="print the comparison as JSON instead of a table")


def _apply(p: Command) -> None:
    from calibrant.repair.formulas.dialects import DIALECTS

    p.add_argument(
        "calibrator",
        metavar="CALIBRATOR.json",
        help="a calibrator that `calibrant repair --calibrator` or `to_json` wrote",
    )
    take.files(p)
    take.score(p)
    take.listed(p, "--scores", "of --print-sql and a calibrator of several classes: a column each, in place of --score")
    p.add_argument("--out", metavar="OUT", help="write every row repaired: .parquet, .csv, .tsv, .arrow or .feather")
    shown = p.add_mutually_exclusive_group()
    shown.add_argument(
        "--print-sql", metavar="DIALECT", help=f"print the calibrator as SQL instead: {', '.join(DIALECTS)}"
    )
    for name, one in outputs("calibrator").items():
        add_output(p, shown, name, one, "calibrator")
    p.installed = lambda p: with_installed_outputs(p, shown, "calibrator")
    p.add_argument(
        "--table", metavar="NAME", help="of --print-sql: a query of this table, not an expression of columns"
    )
    take.listed(p, "--keep", "of --table: the columns to return with the repaired scores (default: all)")


COMMANDS: dict[str, tuple[str, str, Options, str]] = {  # a line, more, options, exit status
    "guide": ("which command for which question, for agents and people", words.GUIDE, _guide, words.GUIDE_STATUS),
    "look": ("look at a file before anything is computed", words.LOOK, _look, words.LOOK_STATUS),
    "audit": ("audit a file of labels, probabilities and covariates", words.AUDIT, _audit, words.STATUS),
    "example": ("run the audit on the bundled employment data", words.EXAMPLE, _example, words.STATUS),
    "report": ("write the report of an audit that was kept, in any format", words.REPORT, _report, words.REPORT_STATUS),
    "certify": ("print certificates for everyone", words.CERTIFY, _certify, words.STATUS),
    "measure": (
        "print one estimate",
        words.CHECK.format(face="measure", examples=words.MEASURE),
        asking("measure"),
        words.CHECK_STATUS,
    ),
    "detect": (
        "print one test",
        words.CHECK.format(face="detect", examples=words.DETECT),
        asking("detect"),
        words.CHECK_STATUS,
    ),
    "diagnose": (
        "print one curve or table of where, and for whom",
        words.CHECK.format(face="diagnose", examples=words.DIAGNOSE),
        asking("diagnose"),
        words.CHECK_STATUS,
    ),
    "accept": ("the share that may be accepted above a threshold", words.ACCEPT, _accept, words.ACCEPT_STATUS),
    "compare": ("whether a model is better or no worse than another", words.COMPARE, _compare, words.COMPARE_STATUS),
    "plan": ("rows that a certificate of a given tightness takes", words.PLAN, _plan, words.STATUS),
    "sketch": ("summarise a file into a small mergeable sketch", words.SKETCH, _sketch, words.STATUS),
    "merge": ("add sketches up into one", words.MERGE, _merge, words.STATUS),
    "repair": ("fit repairs, judge them on other rows, and write the best", words.REPAIR, _repair, words.REPAIR_STATUS),
    "apply": ("stream files through a calibrator", words.APPLY, _apply, words.APPLY_STATUS),
}
