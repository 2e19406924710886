"""What the log of an evaluation says of its columns: right or wrong, how sure, and what explains nothing."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from calibrant.data.reading import FORM, Reading
from calibrant.data.sources.source import Log
from calibrant.data.survey import EVERY
from calibrant.inspect.command import typed
from calibrant.inspect.looked import Column

KEPT = ("positive", "percent", "allow_same", *FORM)  # of the audit's options, in the command that compares


def with_parts(options: Reading, log: Log) -> Reading:
    """Return what was asked, with the label and the confidence of the log where none was named."""
    score = options.score or next((name for name, _ in log.confidences), "")
    return replace(options, label=options.label or log.label, score=score)


def mended(options: Reading, log: Log, columns: Sequence[Column], rows: int) -> Reading:
    """The audit of a log: its clusters are questions, where answers share one."""
    if not log.tool:
        return options
    question = next((c for c in columns if c.name == log.question), None)
    shared = question is not None and (question.distinct or rows) < rows
    shared = shared and not options.levels and options.missing != "keep"
    cluster = options.cluster or (log.question if shared else "")
    verdicts, variables = {*log.verdicts} - {options.label}, options.variables
    if verdicts and EVERY in variables:
        left = {options.label, options.score, cluster, log.question, *verdicts, *options.key}
        variables = tuple(c.name for c in columns if c.name not in left and c.role != "left out")
    return replace(options, cluster=cluster, variables=variables)


def facts(log: Log, files: Sequence[str], planned: Reading) -> Mapping[str, object]:
    """Return what a log is, and the command that compares its confidences if there are several."""
    names = ",".join(name for name, _ in log.confidences)
    words = ["calibrant compare", *map(shlex.quote, files), f"--label {shlex.quote(planned.label)} --score {names}"]
    words += [f"--cluster {planned.cluster}"] if planned.cluster == log.question else []
    words += typed(planned, KEPT)
    several = len(log.confidences) > 1 and bool(planned.label) and bool(files)
    return {
        "tool": log.tool,
        "confidences": dict(log.confidences),
        "noun": log.noun,
        "unfinished": log.unfinished,
        "compare": " ".join(words) if several else "",
    }
