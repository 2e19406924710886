"""Events of OpenAI's evals: JSON lines, a line a thing that happened to a sample."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from calibrant.apps.llm_logs.answers import Answer, Tool, named, plain, source_of_answers
from calibrant.apps.llm_logs.decoded import lines_of
from calibrant.toolkit.data import Form, Source

OPENAI_EVALS = Tool(
    name="a log of OpenAI evals",
    looked="the data of match and metrics events",
    first=("correct",),
    no_scores="it has no event of type match, nor metrics of a sample",
)
TEXTS = ("expected", "picked", "sampled", "prompt", "options")  # what was asked and said, not what is known of it


class Run(msgspec.Struct):
    """What was run."""

    eval_name: str = ""
    base_eval: str = ""
    completion_fns: list[str] = []


class Event(msgspec.Struct):
    """One line: what was run, what came of it, or an event of a sample."""

    spec: Run | None = None
    sample_id: str | None = None
    type: str = ""
    data: dict[str, object] | None = None


def openai_evals_log(path: Path, name: str, form: Form) -> Source:
    """The answers of a log, one a sample that was matched."""
    return source_of_answers(list(_answers(path, form)), OPENAI_EVALS, path, name)


def _answers(path: Path, form: Form) -> Iterator[Answer]:
    run, kept = Run(), dict[str, dict[str, object]]()
    for where, event in lines_of(path, Event, form.encoding):
        run = event.spec or run
        if event.sample_id is not None and event.type in ("match", "metrics"):
            reported = {k: v for k, v in plain(event.data, where).items() if k not in TEXTS}
            kept.setdefault(event.sample_id, {}).update({f"{event.type}.{k}": v for k, v in reported.items()})
    task = run.base_eval or run.eval_name
    for sample, reported in kept.items():
        matched = reported.pop("match.correct", reported.pop("metrics.correct", reported.pop("metrics.accuracy", None)))
        yield Answer(
            question=named(task, sample),
            task=task,
            model=", ".join(run.completion_fns),
            scores={} if matched is None else {"correct": matched},
            reported=reported,
        )
