"""What the `calibrant` command takes: its commands, their options, and what the help says."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from calibrant import __version__
from calibrant.arguments import COMMAND, OUTPUT, Judge
from calibrant.cli import options as take
from calibrant.cli.options import (
    CHECK_STATUS,
    Command,
    Options,
    arranged,
    output_line,
    outputs,
    plugged_outputs,
    statuses,
)
from calibrant.errors import BadInput
from calibrant.plugins import COMMANDS as PLUGGED
from calibrant.plugins import Parser
from calibrant.report.languages.catalogue import ENGLISH, LANGUAGES

if TYPE_CHECKING:
    from calibrant.certify.certificate import Offer, Setting
    from calibrant.plugins import Command as CommandPlugin


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    raw = argparse.RawDescriptionHelpFormatter
    top = Command(prog="calibrant", description=ABOUT, epilog=STATUS, formatter_class=raw)
    top.add_argument("--version", action="version", version=f"calibrant {__version__}")
    top.lists = "more"
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, help=argparse.SUPPRESS)

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
    """What the parser takes of the command of a plug-in."""
    return one.line.replace("%", "%%"), one.more, one.options, one.status


def _unusable(name: str, _: Command) -> None:
    PLUGGED.loaded(name)  # raises what is wrong with it


# ---- what the help says ----

STATUS = statuses(
    "within the limit, or no limit was given",
    "certified over the limit: everyone, a group or an unlisted subgroup",
    three="undecided at this sample size, or a limited check was not applicable",
)
PRINTED_STATUS = statuses("it is printed, whatever it says")
WRITTEN_STATUS = statuses("it is written")
ABOUT = """Audit the predicted probabilities of any classifier: how far off they are, for whom, with guaranteed bounds.

commands:
  calibrant example                           audit bundled real data, and write the report
  calibrant look FILE                         check a file, and print the audit to run
  calibrant audit FILE --label Y --score P --by A,B --limit 0.02 -o audit.html
                                              bound the error of everyone, of groups and of unlisted subgroups
  calibrant compare FILE --label Y --score old,new
                                              is a model better, or no worse, than another?
  calibrant repair FILE --label Y --score P -o calibrator.json
                                              recalibrate, judged on rows that nothing was fitted on
  calibrant apply calibrator.json FILE --score P -o repaired.parquet
                                              recalibrate new rows
  calibrant report audit.json -o audit.pdf    write the report of a stored audit again

`calibrant COMMAND --help` describes a command, and `calibrant more` lists the others.
"""
FIRST = "example", "look", "audit", "compare", "repair", "apply", "report"  # in the first help
COMPLETION = """\
Commands, methods, options and their values; files elsewhere.

put it where the shell reads it:
  eval "$(calibrant completion bash)"                  in ~/.bashrc
  eval "$(calibrant completion zsh)"                   in ~/.zshrc
  calibrant completion fish > ~/.config/fish/completions/calibrant.fish
"""
GUIDE = "How to read a verdict, and what never to claim: the text of AGENTS.md, as Markdown."
GUIDE_STATUS = """exit status:
  0   it is printed
"""
LOOK_STATUS = statuses(
    "the audit that is printed would run", two="something is in the way, or the data cannot be read; all of it is said"
)
LOOK = """\
How each column is interpreted, what is missing, whether scores are probabilities, percent or logits, repeated rows, all
that would make an audit refuse, and the command to run. Columns that are not named are proposed. Labels are never
compared with scores, so that running it does not affect the guarantee.

examples:
  calibrant look scores.csv
  calibrant look 'log/*.parquet' --label readmitted --score risk --by sex,age
"""
ACCEPT = """\
The largest share of rows that may pass unseen, best scores first, with at most so many of them wrong: certified for all
thresholds at once, so that a threshold may be chosen after looking. Labels say whether an answer was right. Without
--by every column is read, and groups in which more than that are wrong are named.

examples:
  calibrant accept answers.csv --label right --score confidence --risk 0.02
  calibrant accept answers.csv --label right --score confidence --by topic --cluster question -o curve.html
  calibrant accept patients.csv --label readmitted --score risk --end low --risk 0.005
  calibrant accept --risk 0.01 --error 0.005 --share 0.6
"""
ACCEPT_STATUS = statuses("some may be accepted, or rows were planned", three="nothing can be accepted, certified")
COMPARE = """\
Models on the same rows, for everyone and every group: what the new one loses more than the old, certified; "no worse"
by a margin that you fix beforehand, or that follows the rate of events. Or audits of different rows, such as two
months', that were kept as JSON.

examples:
  calibrant compare log.parquet --label y --score old,new --margin 0.005 --by sex,age
  calibrant compare log.parquet --label y --score old,new,newer --measure log_loss --cluster patient
  calibrant compare log.parquet --label y --score old,new --measure net_benefit --threshold 0.1,0.2 --by sex
  calibrant compare january.json february.json --margin 0.02
"""
COMPARE_STATUS = statuses(
    "better, no worse for anyone, or worse within the margin",
    "worse by more than the margin for everyone, or for a group",
    three="undecided",
)
AUDIT = """\
One pass over the file (two with --by), whatever its size; then certified bounds for everyone and every group.

examples:
  calibrant audit scores.csv --label readmitted --score risk
  calibrant audit 'log/*.parquet' --label y --score p --by sex,age,site --limit 0.02 -o audit.html -o audit.json
  calibrant audit scores.csv --label outcome --positive yes --score p --json | jq .verdict
  calibrant audit month/*.sketch --limit 0.02
"""
EXAMPLE = """277,677 Massachusetts residents, 2015 to 2018: a classifier's probability that a person is employed.
Writes calibrant-example.html into the current directory; open it in a browser.
"""
REPORT = """\
Writes from the record alone, which holds no rows: the same bytes as the audit wrote.

examples:
  calibrant audit log.parquet --label y --score p --limit 0.02 -o record.json
  calibrant report record.json -o audit.html --open
  calibrant report record.json -o audit.pdf -o tripod:items.md
"""
REPORT_STATUS = statuses(
    "it is written, whatever its verdict", two="there is no such record, or it cannot be written; one line says why"
)
CERTIFY = """\
Each line says which classifier it is about: the raw score, the score in rounding steps, or a jittered score.

example:
  calibrant certify scores.csv --label y --score p --method rounded,jittered,distance
"""
CHECK = """\
Prints what `calibrant.{face}.METHOD` returns for the rows of the files, which are read into memory, or for a sketch.
`calibrant {face} METHOD --help` lists its settings, and what it assumes and guarantees.

examples:
{examples}
"""
MEASURE = """\
  calibrant measure klce log.parquet --label y --score p --variables age,sex
  calibrant measure ece log.parquet --label y --score p --by site -o ece.csv"""
DETECT = """\
  calibrant detect local_calibration_test log.parquet --label y --score p --features exact --family laplace
  calibrant detect kernel_tuning log.parquet --label y --score p --by-variable age --gap 0.05 -o tuning.csv"""
DIAGNOSE = """\
  calibrant diagnose rank_variables log.parquet --label y --score p
  calibrant diagnose reliability_curve log.parquet --label y --score p -o curve.html"""
MERGE = "Sketches merge if they were made from one spec: see sketch --like."
PLAN = """An average case for planning, not a certificate. Uniform scores unless --data or --beta gives others.

examples:
  calibrant plan 0.02                        whole percent, within two points
  calibrant plan 0.01 --steps 50 --side two-sided
  calibrant plan 0.02 --data pilot.parquet --label y --score p
  calibrant plan --oe 0.2 --slope 0.2 --auroc 0.1 --beta 2,8    intervals so wide
  calibrant plan --strong --rows 5000        errors of subgroups that 5,000 rows detect
  calibrant plan --strong --error 0.1 --share 0.05
  calibrant plan --data log.csv --label y --score p --by site --limit 0.05
                                             what this log can decide
"""
SKETCH = """\
A sketch holds counts of people by score, label and group. Where a group is small they reveal as much as the rows:
guard a sketch like the data. Audits of it give the same numbers as audits of the file.

example:
  calibrant sketch january.parquet --label y --score p --by sex,age -o january.sketch
  calibrant sketch february.parquet --like january.sketch -o february.sketch
  calibrant merge january.sketch february.sketch -o winter.sketch
"""
REPAIR_STATUS = statuses(
    "a repair is shown, or estimated, to be better; its calibrator is written",
    "the one repair asked for is shown to be worse; its calibrator is written all the same",
    three="no repair is recommended. With --method auto, or several, nothing is written",
)
APPLY_STATUS = statuses(
    "every row is written",
    two="the data, the calibrator or a setting cannot be used; one line says why, and nothing is written",
)
REPAIR = """\
Fits repairs on one half of a sample of the rows and judges them on the other; then streams every row through the
one recommended. The calibrator that is written is the one that was judged, as JSON without code.

The rows written hold every column, SCORE_repaired, and SCORE_fitted_on: true for the rows the calibrator was fitted on,
on which it must never be judged.

examples:
  calibrant repair log.parquet --label y --score p
  calibrant repair log.parquet --label y --score p --by sex,age -o calibrator.json -o repaired.parquet
  calibrant repair log.parquet --label y --score p --by sex,age --limit 0.02
  calibrant repair log.parquet --label y --score p --by sex,age --threshold 0.2
  calibrant repair 2015.parquet --judge-on 2017.parquet --label y --score p --method platt,isotonic -o calibrator.json
"""
APPLY = """\
Streams files of any size; covariates that the calibrator reads must be there. The rows written hold every column and
SCORE_repaired. Or writes the calibrator as SQL or JavaScript, which repair scores where they are, without Python.

examples:
  calibrant apply calibrator.json tomorrow.parquet --score p -o tomorrow-repaired.parquet
  calibrant apply calibrator.json --score p -o postgres:- --table scores
"""


# ---- the options of each command ----

WRITTEN = """  -o audit.html               the report; for a file without the ending html:FILE
  -o audit.json               the record, which `calibrant report` and `compare` read (json:FILE)
  -o audit.md                 the report as Markdown (markdown:FILE; markdown:- prints it)
  -o audit.pdf                the report, printed by a Chromium, Chrome or Edge found here (pdf:FILE)
  -o junit.xml                everyone, groups and tests as test results for a CI service (junit:FILE)
  -o DIR/                     report, record, Markdown, checklist and every table, in a directory"""
OLD_OUTPUTS = {  # options of before, and what names the same
    "--report": ("html", "audit.html"),
    "--markdown": ("markdown", "audit.md"),
    "--pdf": ("pdf", "audit.pdf"),
    "--junit": ("junit", "junit.xml"),
    **{f"--{name}": (name, "FILE") for name in ("tripod", "summary", "metrics", "model-card")},
}


def _of_wording(name: str, _: str, value: str) -> str:
    return (
        f"write {name} = {json.dumps(value or '…', ensure_ascii=False)} into a file, and pass it by --about about.toml"
    )


def _of_output(option: str, value: str) -> str:
    kind, usual = OLD_OUTPUTS[option]
    target = value or usual
    fits = Path(target).suffix == Path(usual).suffix and usual != "FILE"
    return f"write -o {target if fits else f'{kind}:{target}'}"


def _data(p: Command) -> None:
    take.files(p, ", sketch")
    take.reading(p, *take.COLUMNS, *take.CLASSES, "key", "seed", *take.GROUPS)


def _look(p: Command) -> None:
    _data(p)
    take.as_json(p)


def _audit(p: Command) -> None:
    _data(p)
    _judging(p)
    p.under(OUTPUT, "--rows-of").add_argument(
        "--rows-of",
        metavar="GROUP",
        help="audit nothing, and write to -o rows.csv the rows of a group or subgroup, named as the report names it "
        "('site = Valley')",
    )


def _example(p: Command) -> None:
    _judging(p)
    take.seed(p)
    p.set_defaults(limit=0.014)


def _judging(p: Command) -> None:
    from calibrant.arguments import declared
    from calibrant.audit.checks import gates
    from calibrant.audit.judging import WORDS, JudgingOptions
    from calibrant.audit.record import ERROR_SHOWN

    p.old |= {COMMAND.name(name): partial(_of_wording, name) for name in WORDS}
    what = declared(JudgingOptions)["fail_on"][1].words
    take.of_options(p, JudgingOptions, fail_on=what + ", ".join((*gates(), ERROR_SHOWN)))
    _written(p)


def _written(p: Command) -> None:
    kinds = (
        "by its ending .html, .json, .md, .pdf, .xml (JUnit); DIR/ for all; or by a word before a colon (tripod:FILE)"
    )
    take.out(p, f"write the report or record, once or more: {kinds}")
    take.as_json(p, "print the record as JSON instead of the summary")
    take.csv_form(p)
    line = "language of report, Markdown, summary, model card and TRIPOD items (default en)"
    p.under(OUTPUT, "--language").add_argument("--language", choices=LANGUAGES, default=ENGLISH, help=line)
    p.under(OUTPUT.first).add_argument("--open", action="store_true", help="then show the report in a browser")
    plugged_outputs(p, "record")
    p.old |= dict.fromkeys(OLD_OUTPUTS, _of_output)
    p.old["--json"] = lambda _, value: (
        f"--json prints the record: {'leave - out' if value == '-' else f'write -o {value}'}"
    )
    p.note("\n".join((WRITTEN, *(output_line(name, one) for name, one in outputs("record").items()))))


def _report(p: Command) -> None:
    p.add_argument("record", metavar="RECORD.json", help="that an audit wrote, or its HTML report")
    _written(p)


def _certify(p: Command) -> None:
    from calibrant.certify.certificate import certificates
    from calibrant.certify.groups import groups

    known = certificates()
    usual = tuple(c.name for c in known if c.usual)
    tests = ", ".join(c.name for c in known if c.tests)
    grouped = ", ".join(c.name for c in known if c.grouped)
    take.files(p, ", sketch")
    take.reading(p, *take.COLUMNS, "key", "seed")
    take.listed(p, "--method", f"{', '.join(c.name for c in known)} (default: {','.join(usual)})", "NAMES")
    take.listed(p, "--variables", f"of {tests}: covariates (default: every other column that can be used)")
    take.listed(p, "--by", f"of {grouped}: group columns, separated by commas (a sketch brings its own)")
    take.of_function(p, groups, judge=f"of {grouped}: what is certified", target="of worst_group: of whose gap")
    p.add_argument("--side", choices=("two-sided", "lower", "upper"), default="two-sided")
    _settings(p, known)
    p.old["--odds"] = lambda _, value: f"write --missing-odds {value}".rstrip()
    p.add_argument("--alpha", type=float, default=0.05)
    take.as_json(p)


def _settings(p: Command, known: Sequence[Offer]) -> None:
    """Add the settings that are a certificate's own, once by name; where it is not given, each has its own default."""
    shared: dict[str, dict[Setting, list[str]]] = {}
    for c in known:
        for own in c.settings:
            shared.setdefault(own.name, {}).setdefault(own, []).append(c.name)
    for name, kept in shared.items():
        first = next(iter(kept))
        default = {own: "none" if own.default is None else f"{own.default:g}" for own in kept}
        lines = (f"of {', '.join(of)}: {own.help} (default {default[own]})" for own, of in kept.items())
        kind = float if first.default is None else type(first.default)
        p.add_argument(COMMAND.name(name), dest=name, type=kind, metavar=first.letter, help="; ".join(lines))


def asking(
    face: str, notes: Mapping[str, str] | None = None, own: Mapping[str, tuple[str, str, Options]] | None = None
) -> Callable[[Parser], None]:
    """What adds the functions of a face, each with its note in the help, if it has one; and commands besides.

    `own`: of each its line, its help, and what adds its options.
    """

    def options(p: Parser) -> None:
        from calibrant.cli.methods import add_methods

        add_methods(p, face, notes or {}, own or {})

    return options


def _accept(p: Command) -> None:
    from calibrant.certify import accept
    from calibrant.decisions.terms import TermOptions

    take.files(p, ", sketch")
    take.columns(p)
    take.reading(p, *take.CLASSES, "allow")
    take.of_function(
        p,
        accept,
        risk=("R", "largest share of wrong rows among those accepted (0.01)"),
        by="group columns: a threshold for each group, and the risk holds in every one",
        end="accept the highest scores, of which label 0 is wrong (default), or the lowest, of which label 1 is",
    )
    take.of_options(p, TermOptions, "target", "alpha", alpha="error probability (default 0.05)")
    take.seed(p)
    take.as_json(p)
    take.out(p, "also write certified risk against share accepted: .json, .csv, .html", "FILE")
    take.csv_form(p)
    p.add_argument("--error", type=float, metavar="E", help="plan, without data: the share of errors to expect")
    p.add_argument("--share", type=float, metavar="S", help="of a plan: the share of rows to accept (default 1)")
    p.add_argument("--power", type=float, metavar="P", help="of a plan: with which probability (default 0.8)")


def _compare(p: Command) -> None:
    from calibrant.decisions.terms import TermOptions

    take.files(p, "; or two audits that were kept as JSON")
    take.reading(p, "label")
    take.listed(p, "--score", "probabilities of each model, 0 to 1, separated by commas; the first is the reference")
    take.reading(p, "percent")
    p.add_argument("--reference", metavar="COLUMN", help="another model than the first")
    by = "group columns: the verdict holds for everyone and in every group"
    take.reading(p, *take.ROW_OPTIONS, "by", "allow", by=by)
    take.of_options(p, TermOptions)
    take.as_json(p)
    take.out(p, "also write the table: .json, .csv, .html", "FILE")
    take.csv_form(p)


def _plan(p: Command) -> None:
    from calibrant.certify import rows_needed

    words = "how close the bound should come to the truth: 0.02 is two points; without it, what a log can decide"
    p.add_argument("gap", nargs="?", type=float, help=words)
    take.of_function(
        p,
        rows_needed,
        method="",
        steps=("K", "of rounded: rounding steps (default 100: whole percent)"),
        bandwidth=("H", "of jittered (default 2^-6)"),
        alpha="",
        side="",
    )
    for option, of in {"oe": "observed over expected", "slope": "the calibration slope", "auroc": "the AUROC"}.items():
        p.add_argument(f"--{option}", type=float, metavar="W", help=f"plan for an interval of {of} that is W wide")
    p.add_argument("--rate", type=float, metavar="R", help="of these: the share of events to expect")
    p.add_argument("--expected-auroc", type=float, metavar="C", help="of these: the AUROC to expect")
    p.add_argument("--strong", action="store_true", help="plan for the test of all subgroups: --rows or --error")
    p.add_argument("--rows", type=int, metavar="N", help="of --strong: the smallest errors that N rows detect")
    p.add_argument("--error", type=float, metavar="E", help="of --strong: the rows that detect an error of E in one")
    p.add_argument(
        "--share", type=take.numbers, metavar="S,…", help="of --strong: the share of rows that the subgroup has"
    )
    p.add_argument("--order", type=int, choices=(1, 2), help="of --strong: attributes of the subgroup (default 2)")
    p.add_argument(
        "--power",
        type=float,
        metavar="P",
        help="of --strong, and of a log: with which probability (default 0.8)",
    )
    p.add_argument(
        "--beta", type=take.numbers, metavar="A,B", help="scores of a beta distribution, where there are no --data"
    )
    p.add_argument("--data", metavar="FILE", help="rows whose scores to plan for (needs --label and --score)")
    take.source(p)
    take.columns(p)
    take.reading(p, *take.CLASSES, "by", "bins", "intersections", by="groups of which to say what the log can decide")
    p.add_argument("--limit", type=float, metavar="L", help="the limit planned for, of what the log can decide")
    p.add_argument("--draws", type=int, metavar="N", help="of that: sets of outcomes drawn from scores (default 200)")
    p.add_argument("--judge", choices=get_args(Judge), help="of that: what the audit's limit is about (default auto)")
    take.as_json(p)


def _sketch(p: Command) -> None:
    take.files(p)
    take.reading(p, *take.COLUMNS, *take.CLASSES, "key", "seed", *take.GROUPS)
    p.add_argument("--like", metavar="SKETCH", help="use the columns and groups of this sketch, so that the two merge")
    p.add_argument(
        "--tests", action="store_true", help="also hold what tests need, whole rows among it: guard it like the data"
    )
    take.one_out(p, "where to write the sketch", "FILE", required=True)


def _merge(p: Command) -> None:
    p.add_argument("sketches", nargs="+", metavar="SKETCH")
    take.reading(p, "allow_same")
    take.one_out(p, "where to write the sum", "FILE", required=True)


def _repair(p: Command) -> None:
    from calibrant.audit.judging import JudgingOptions
    from calibrant.repair.catalogue import recipes

    offered = [e for e in recipes().values() if e.command]
    tried = [e for e in offered if e.tried != "when named"]
    score = ", ".join(e.command for e in tried if not e.covariates)
    more = ", ".join(e.command for e in tried if e.covariates)
    take.files(p)
    every = "every other column that can be used; 'none' for none"
    names = *take.COLUMNS, *take.CLASSES, "key", "seed", "by", "variables", "bins"
    take.reading(p, *names, variables=f"covariates to audit and repair by (default: {every})")
    some = ", ".join(e.command for e in offered)
    take.listed(p, "--method", f"auto: {score} and, with covariates, {more}; or some of: {some}", "NAMES")
    p.add_argument("--judge-on", metavar="FILE", help="judge on these rows instead, and fit on all of FILE's sample")
    p.add_argument(
        "--distinct-clusters",
        action="store_true",
        help="a cluster's name means another one in --judge-on: numbered separately",
    )
    take.of_options(
        p,
        JudgingOptions,
        *("limit", "judge", "target", "threshold", "costs", "steps", "alpha", "quick"),
        target="with --judge gap: of the rows judged (default), or of all rows like these",
        limit="who is over it before and after: 0.02 is two points",
        threshold="act from this score on, or several (0.1,0.2): whose decisions a repair changes, and the gain",
        steps="rounding steps of the certified error (default 100: whole percent)",
        alpha="error probability of the verdicts (default 0.05)",
        quick="leave out the tests, and the slower repairs from auto",
    )
    take.out(
        p,
        "write the calibrator (.json; as SQL .sql or DIALECT:FILE; .js) or every row repaired (.parquet, .csv, .tsv, "
        ".arrow, .feather), once or more",
    )
    _of_sql(p, "a file of that name, which DuckDB reads, or a table called as it")
    take.as_json(p, "print the comparison as JSON instead of a table")
    p.old["--calibrator"] = lambda _, value: f"write -o {value or 'calibrator.json'}"


def _apply(p: Command) -> None:
    p.add_argument(
        "calibrator", metavar="CALIBRATOR.json", help="a calibrator that `calibrant repair` or `to_json` wrote"
    )
    take.files(p)
    take.reading(p, *take.SCORE, "renormalize", "logits")
    take.listed(p, "--scores", "of a calibrator of several classes: a column each, in place of --score")
    take.out(
        p,
        "write every row repaired (.parquet, .csv, .tsv, .arrow, .feather), or the calibrator as code, for which no "
        "data are read (.sql, .js, DIALECT:FILE; FILE may be -), once or more",
    )
    _of_sql(p, "none: an expression of columns")
    take.listed(p, "--keep", "of --table: the columns to return with the repaired scores (default: all)")
    p.old["--print-sql"] = lambda _, value: f"write -o {value or 'duckdb'}:-"
    p.old["--print-javascript"] = lambda *_: "write -o javascript:-"


def _of_sql(p: Command, default: str) -> None:
    from calibrant.repair.formulas.dialects import DIALECTS

    line = f"of SQL ({', '.join(DIALECTS)}; .sql is DuckDB's): the table that the query reads (default: {default})"
    p.add_argument("--table", metavar="NAME", help=line)
    plugged_outputs(p, "calibrator")


def _completion(p: Command) -> None:
    p.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")


def _face(face: str, line: str, examples: str) -> tuple[str, str, Options, str]:
    return line, CHECK.format(face=face, examples=examples), asking(face), CHECK_STATUS


COMMANDS: dict[str, tuple[str, str, Options, str]] = {  # a line, more, options, exit status
    "more": ("list the commands that the first help leaves out", "", lambda _: None, PRINTED_STATUS),
    "guide": ("which command for which question, for agents and people", GUIDE, lambda _: None, GUIDE_STATUS),
    "look": ("look at a file before anything is computed", LOOK, _look, LOOK_STATUS),
    "audit": ("audit a file of labels, probabilities and covariates", AUDIT, _audit, STATUS),
    "example": ("run the audit on the bundled employment data", EXAMPLE, _example, PRINTED_STATUS),
    "report": ("write the report of an audit that was kept, in any format", REPORT, _report, REPORT_STATUS),
    "certify": ("print certificates for everyone", CERTIFY, _certify, CHECK_STATUS),
    "measure": _face("measure", "print one estimate", MEASURE),
    "detect": _face("detect", "print one test", DETECT),
    "diagnose": _face("diagnose", "print one curve or table of where, and for whom", DIAGNOSE),
    "accept": ("the share that may be accepted above a threshold", ACCEPT, _accept, ACCEPT_STATUS),
    "compare": ("whether a model is better or no worse than another", COMPARE, _compare, COMPARE_STATUS),
    "plan": ("rows that a certificate, an interval or the subgroup test takes", PLAN, _plan, PRINTED_STATUS),
    "sketch": ("summarise a file into a small mergeable sketch", SKETCH, _sketch, WRITTEN_STATUS),
    "merge": ("add sketches up into one", MERGE, _merge, WRITTEN_STATUS),
    "repair": ("fit repairs, judge them on other rows, and write the best", REPAIR, _repair, REPAIR_STATUS),
    "apply": ("stream files through a calibrator", APPLY, _apply, APPLY_STATUS),
    "completion": ("print what completes the command in bash, zsh or fish", COMPLETION, _completion, WRITTEN_STATUS),
}
