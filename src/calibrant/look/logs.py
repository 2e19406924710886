"""What the log of an evaluation says of its columns: right or wrong, how sure, and what explains nothing."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from calibrant.data.reading import FORM, Reading
from calibrant.data.sources.source import Log
from calibrant.data.survey import EVERY
from calibrant.look.command import typed
from calibrant.look.looked import Column

KEPT = ("positive", "percent", "allow_same", *FORM)  # of the audit's options, in the command that compares


def with_parts(asked: Reading, log: Log) -> Reading:
    """Return what was asked, with the label and the confidence of the log where none was named."""
    score = asked.score or next((name for name, _ in log.confidences), "")
    return replace(asked, label=asked.label or log.label, score=score)


def mended(asked: Reading, log: Log, columns: Sequence[Column], rows: int) -> Reading:
    """Return the audit of a log: its clusters are questions, where answers share one."""
    if not log.tool:
        return asked
    question = next((c for c in columns if c.name == log.question), None)
    shared = question is not None and (question.distinct or rows) < rows
    shared = shared and not asked.levels and asked.missing != "keep"
    cluster = asked.cluster or (log.question if shared else "")
    verdicts, variables = {*log.verdicts} - {asked.label}, asked.variables
    if verdicts and EVERY in variables:
        left = {asked.label, asked.score, cluster, log.question, *verdicts, *asked.key}
        variables = tuple(c.name for c in columns if c.name not in left and c.role != "left out")
    return replace(asked, cluster=cluster, variables=variables)


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
