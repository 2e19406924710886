"""Logs of Inspect (`inspect_ai`): `.eval` archives and JSON."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from calibrant.apps.llm_logs.answers import Answer, Tool, named, plain, source_of_answers
from calibrant.apps.llm_logs.decoded import HEADER, START, decoded, member, members
from calibrant.errors import BadInput
from calibrant.toolkit.data import Form, Source, afford, afford_name, json_text

INSPECT = Tool(
    name="an Inspect log",
    looked="the metadata of scores and samples, and the store",
    no_scores="score it first (inspect score), then read it again",
)
SAMPLES = "samples/"
KEPT = 20  # times its JSON that a field takes, about
STARTED, FINISHED = "started", "success"  # the status of an evaluation; others are "cancelled" and "error"


class Evaluated(msgspec.Struct):
    """What was evaluated."""

    task: str = ""
    model: str = ""


class Results(msgspec.Struct):
    """How many answers there were to be."""

    total_samples: int | None = None


class Head(msgspec.Struct):
    """The beginning of a log."""

    eval: Evaluated
    status: str = ""
    results: Results | None = None


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
    """The answers of a log, one a sample and epoch."""
    head, answers = _archive(path) if zipfile.is_zipfile(path) else _json(path, form)
    result = source_of_answers(list(answers), INSPECT, path, name)
    return replace(result, log=replace(result.log, unfinished=_unfinished(head, result.rows, path.name)))


def _unfinished(head: Head, answers: int | None, file: str) -> tuple[str, ...]:
    """Which log holds a part of its answers only, and how many; nothing of one that came to its end."""
    if head.status in ("", FINISHED):
        return ()
    planned, result = None if head.results is None else head.results.total_samples, answers or 0
    of = f" of {planned:,}" if planned else ""
    return (f"{file} ({head.status}, {result:,}{of} answer{'s' * ((planned or result) != 1)})",)


def _json(path: Path, form: Form) -> tuple[Head, Iterator[Answer]]:
    result = decoded(json_text(path, form.encoding), Whole, path.name)
    return result, (_answer(sample, result.eval, path.name) for sample in result.samples or ())


def _archive(path: Path) -> tuple[Head, Iterator[Answer]]:
    kept = members(path)
    head = kept.get(HEADER) or kept.get(START)
    if head is None:
        raise BadInput(f"{path.name} has no {HEADER} in it, so it is no log of Inspect: let the evaluation finish")
    first = decoded(member(path, head), Head, f"{path.name}: {head.filename}")
    if HEADER not in kept:  # which is written last
        first.status = first.status or STARTED
    names = sorted(n for n in kept if n.startswith(SAMPLES) and n.endswith(".json"))
    return first, (
        _answer(sample, first.eval, path.name) for sample in _samples(path, [kept[called] for called in names])
    )


def _samples(path: Path, every: Sequence[zipfile.ZipInfo]) -> Iterator[Sample]:
    """Yield the samples of an archive, as long as what is read of them can be kept."""
    size = 0
    for one in every:
        sample = decoded(member(path, one), Sample, f"{path.name}: {one.filename}")
        try:
            size += KEPT * len(msgspec.json.encode(sample))
        except UnicodeEncodeError:  # half of a character, said where the field is read
            size += KEPT * one.file_size
        afford(path, size, "holds fields of answers")
        yield sample


def _answer(sample: Sample, of: Evaluated, file: str) -> Answer:
    """One answer; a scorer that gives several values is several scorers."""
    scores: dict[str, object] = {}
    reported: dict[str, object] = {}
    for scorer, score in (sample.scores or {}).items():
        if isinstance(score.value, Mapping):
            scores |= {afford_name(f"{scorer}.{key}", file): value for key, value in score.value.items()}
        else:
            scores[scorer] = score.value
        reported |= plain(score.metadata, file, f"scores.{scorer}.metadata.")
    reported |= plain(sample.store, file, "store.")
    return Answer(
        question=named(of.task, sample.id),
        task=of.task,
        model=of.model,
        epoch=sample.epoch,
        scores=scores,
        reported=reported | plain(sample.metadata, file),
    )
