"""The command that watches a model: days or predictions and labels into a folder, and what is known out of it."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.cli import options as take
from calibrant.cli.options import Options, statuses
from calibrant.errors import BadInput
from calibrant.plugins import Command, Parser

if TYPE_CHECKING:
    from calibrant.audit.monitor.folder import Arrived

MORE = """\
A guarantee at every look: ranges and verdicts that hold simultaneously over all days, and alarms that say for whom an
error began and when. What is kept holds sums and no rows, but those that still wait for their label.

examples:
  calibrant watch start readmission --label y --score p --limit 0.02 --by site
  calibrant watch update readmission monday.parquet --at 2026-01-05
  calibrant watch report readmission -o page.html -o alert.md

labels that come late (a day is complete 90 days after it, whatever came by then):
  calibrant watch start readmission --label y --score p --limit 0.02 --key visit --labels-within 90
  calibrant watch predictions readmission scored.parquet --at 2026-01-05
  calibrant watch labels readmission outcomes.parquet --at 2026-02-11
"""
STATUS = statuses(
    "no alarm, and nobody is certified over the limit",
    "an alarm on the latest day, or certified over the limit in the recent window: everyone or a group",
)
WORDS: dict[str, str | tuple[str, str]] = {
    "label": ("COLUMN", "outcomes: 0 and 1, or any values with --positive"),
    "score": ("COLUMN", "predicted probabilities, 0 to 1"),
    "positive": ("VALUE", "the label value that counts as an event"),
    "percent": "scores are percentages, 0 to 100",
    "limit": ("L", "largest acceptable error, such as 0.02; fixed beforehand"),
    "by": "group columns, which get verdicts",
    "variables": "further columns in which alarms look for errors",
    "cluster": ("COLUMN", "rows of one value on one day are one cluster; days are independent"),
    "shared_shocks": "the rows of a day may share a shock: a day counts as one cluster",
    "tolerance": ("T", "what alarms tolerate of every single row (default: the limit)"),
    "judge": "what of everyone is to be within the limit (default: error; gap for clusters)",
    "alpha": ("A", "probability, at most, that any verdict at any look is ever wrong (default 0.05)"),
    "days_between_false_alarms": ("DAYS", "mean time to a false alarm of a change, at least (default 3650)"),
    "window": ("DAYS", "length of the recent window (default 28)"),
    "labels_within": ("DAYS", "predictions come first: a day is complete so many days after it"),
    "key": "columns that name a row, by which its label finds it",
    "drift_alpha": (
        "A",
        "probability, at most, that drift is ever false (default 0.05); not with --cluster or --shared-shocks",
    ),
}
AT = "the day, such as 2026-01-05, or a whole number"


class Watch(Command):
    """The command ``watch``."""

    line, more, status, after = "watch a model: a guarantee at every look, alarms, and for whom", MORE, STATUS, "merge"

    def options(self, p: Parser) -> None:
        """Add what can be done."""
        raw = argparse.RawDescriptionHelpFormatter
        each = p.add_subparsers(dest="action", metavar="ACTION", required=True)
        for name, (line, options, _) in ACTIONS.items():
            sub = each.add_parser(name, help=line, description=line, epilog=STATUS, formatter_class=raw)
            sub.options = options

    def run(self, inputs: Namespace) -> int:
        """Do it, and return the exit status."""
        return ACTIONS[inputs.action][2](inputs)


def _folder(p: Parser) -> None:
    p.add_argument("folder", metavar="DIR", help="the directory of the monitor")


def _start(p: Parser) -> None:
    from calibrant.audit.monitor.monitor import Monitor

    _folder(p)
    take.of_function(p, Monitor.__init__, **WORDS)
    p.add_argument("--reference", metavar="FILE", help="rows whose scores and columns fix levels (default: first day)")


def _of_day(p: Parser) -> None:
    _folder(p)
    p.add_argument("files", nargs="+", metavar="FILE", help="the rows")
    p.add_argument("--at", required=True, metavar="DAY", help=AT)


def _language(p: Parser) -> None:
    from calibrant.report.languages.catalogue import ENGLISH, LANGUAGES

    line = "language of what is printed, of the page and of the alert (default en)"
    p.add_argument("--language", choices=LANGUAGES, default=ENGLISH, help=line)


def _predictions(p: Parser) -> None:
    _of_day(p)
    _language(p)


def _update(p: Parser) -> None:
    _of_day(p)
    p.add_argument("--replace", action="store_true", help="if this is the latest day, put these rows in its place")
    _language(p)
    take.as_json(p, "print what is known as JSON")


def _labels(p: Parser) -> None:
    _folder(p)
    p.add_argument("files", nargs="*", metavar="FILE", help="labels that came; none: only close days that are complete")
    p.add_argument("--at", required=True, metavar="DAY", help=AT)
    _language(p)
    take.as_json(p, "print what is known as JSON")


def _report(p: Parser) -> None:
    _folder(p)
    take.out(p, "write the page (.html), the state (.json) or the text of an alert (.md)")
    _language(p)
    take.as_json(p, "print what is known as JSON")


def _at(text: str) -> int | str:
    return int(text) if text.isdigit() and len(text) < 8 else text


def _files(a: Namespace) -> list[str] | str:
    return a.files if len(a.files) > 1 else str(a.files[0])


def start(a: Namespace) -> int:
    """Start a monitor."""
    from calibrant.audit.monitor import folder
    from calibrant.audit.monitor.monitor import Monitor
    from calibrant.audit.monitor.plan import settings_of
    from calibrant.sanitize import sanitize

    inputs = {name: getattr(a, name) for name in WORDS}
    if not (isinstance(a.label, str) and isinstance(a.score, str)):
        raise BadInput("name the columns: --label for the labels and --score for the probabilities")
    folder.start(Path(a.folder), Monitor.of(settings_of(inputs, folder.COMMAND), a.reference, folder.COMMAND))
    print(f"{sanitize(a.folder)}: started; enter a first day with calibrant watch")
    return 0


def update(a: Namespace) -> int:
    """Enter a complete day."""
    from calibrant.audit.monitor import folder
    from calibrant.cli.standard_output import print_result
    from calibrant.report.outputs.monitored import lines

    monitor = folder.update(Path(a.folder), _files(a), _at(a.at), replace=a.replace)
    print_result(a.json, monitor.state.to_dict, lambda: lines(monitor, (), a.language))
    return monitor.state.exit_status


def predictions(a: Namespace) -> int:
    """Keep predictions until their labels have come."""
    from calibrant.audit.monitor import folder
    from calibrant.report.outputs.drifted import wait

    rows, drift = folder.predictions(Path(a.folder), _files(a), _at(a.at))
    print(wait(a.at, rows, drift, a.language))
    return 0


def labels(a: Namespace) -> int:
    """Keep labels, and enter days that are complete."""
    from calibrant.audit.monitor import folder
    from calibrant.cli.standard_output import print_result
    from calibrant.report.languages.translator import in_words
    from calibrant.report.outputs.monitored import lines

    monitor, new = folder.labels(Path(a.folder), _files(a) if a.files else None, _at(a.at))
    counts = {name: getattr(new, name) for name in ("matched", "again", "unmatched", "absent")}
    content = counts | {"entered": list(new.entered), "alarmed": new.alarmed}
    content |= {"state": None if new.state is None else new.state.to_dict()}
    summary = in_words(_arrived(new), (), a.language)

    def text() -> str:
        return summary if new.state is None else f"{summary}\n{lines(monitor, (), a.language)}"

    print_result(a.json, lambda: content, text)
    return max(int(new.alarmed), 0 if new.state is None else new.state.exit_status)


def _arrived(new: Arrived) -> str:
    """What came of a delivery of labels, in a line."""
    more = (
        (new.again, "known before"),
        (new.unmatched, "of rows that do not wait"),
        (new.absent, "without a value yet"),
    )
    counts = ", ".join((f"{new.matched - new.again:,} labels kept", *(f"{n:,} {what}" for n, what in more if n)))
    return f"{counts}; entered: {', '.join(new.entered) or 'no day'}{' (alarm)' * new.alarmed}"


def report(a: Namespace) -> int:
    """Write or print what is known."""
    from calibrant.audit.monitor import folder
    from calibrant.cli.standard_output import print_result
    from calibrant.data.targets import checked_targets, written
    from calibrant.report.outputs.monitored import content, known, lines

    where = Path(a.folder)
    monitor = folder.opened(where)
    open_days = folder.waiting(where)
    checked_targets({f"-o {o}": o for o in a.out}, [str(where)])
    for target in a.out:
        written(target, content(monitor, target, open_days, a.language).encode())
    if a.json or not a.out:
        print_result(a.json, lambda: known(monitor, open_days), lambda: lines(monitor, open_days, a.language))
    return 0 if monitor.last is None else monitor.state.exit_status


ACTIONS: dict[str, tuple[str, Options, Callable[[Namespace], int]]] = {  # each with its line, options and what it does
    "start": ("start a monitor in a directory", _start, start),
    "update": ("enter a day that is complete", _update, update),
    "predictions": ("enter a day's predictions, whose labels come later", _predictions, predictions),
    "labels": ("enter labels that have come, and close days that are complete", _labels, labels),
    "report": ("write or print what is known", _report, report),
}
WATCH = Watch()
