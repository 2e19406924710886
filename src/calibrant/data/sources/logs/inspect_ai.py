"""Logs of Inspect (`inspect_ai`): `.eval` archives and JSON."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from calibrant.data.sources.logs.answers import Answer, Tool, named, plain, source_of_answers
from calibrant.data.sources.logs.decoded import decoded, member, members, text_of
from calibrant.data.sources.source import Form, Source
from calibrant.errors import BadInput

INSPECT = Tool(
    name="an Inspect log",
    looked="the metadata of scores and samples, and the store",
    no_scores="score it first (inspect score), then read it again",
)
HEADER, START, SAMPLES = "header.json", "_journal/start.json", "samples/"


class Evaluated(msgspec.Struct):
    """What was evaluated."""

    task: str = ""
    model: str = ""


class Head(msgspec.Struct):
    """The beginning of a log."""

    eval: Evaluated


class Score(msgspec.Struct):
    """What one scorer said of one answer."""

    value: object = None
    metadata: dict[str, object] | None = None


class Sample(msgspec.Struct):
    """One answer."""

    id: str | int
    epoch: int = 1
    scores: dict[str, Score] | None = None
    metadata: dict[str, object] | None = None
    store: dict[str, object] | None = None


class Whole(Head):
    """A log of JSON."""

    samples: list[Sample] | None = None


def inspect_log(path: Path, name: str, form: Form) -> Source:
    """Return the answers of a log, one a sample and epoch."""
    answers = _archive(path) if zipfile.is_zipfile(path) else _json(path, form)
    return source_of_answers(list(answers), INSPECT, path, name)


def _json(path: Path, form: Form) -> Iterator[Answer]:
    found = decoded(text_of(path, form.encoding), Whole, path.name)
    for sample in found.samples or ():
        yield _answer(sample, found.eval)


def _archive(path: Path) -> Iterator[Answer]:
    held = members(path)
    head = held.get(HEADER) or held.get(START)
    if head is None:
        raise BadInput(f"{path.name} has no {HEADER} in it, so it is no log of Inspect: let the evaluation finish")
    of = decoded(member(path, head), Head, f"{path.name}: {head.filename}").eval
    for called in sorted(n for n in held if n.startswith(SAMPLES) and n.endswith(".json")):
        yield _answer(decoded(member(path, held[called]), Sample, f"{path.name}: {called}"), of)


def _answer(sample: Sample, of: Evaluated) -> Answer:
    """Return one answer; a scorer that gives several values is several scorers."""
    scores: dict[str, object] = {}
    told: dict[str, object] = {}
    for scorer, score in (sample.scores or {}).items():
        if isinstance(score.value, Mapping):
            scores |= {f"{scorer}.{key}": value for key, value in score.value.items()}
        else:
            scores[scorer] = score.value
        told |= plain(score.metadata, f"scores.{scorer}.metadata.")
    told |= plain(sample.store, "store.")
    return Answer(
        question=named(of.task, sample.id),
        task=of.task,
        model=of.model,
        epoch=sample.epoch,
        scores=scores,
        told=told | plain(sample.metadata),
    )
