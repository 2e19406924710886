"""Test runs of DeepEval, as it keeps them in JSON: test cases, each with the data of its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from calibrant.apps.llm_logs.answers import Answer, Place, Tool, named, plain, source_of_answers
from calibrant.apps.llm_logs.decoded import decoded
from calibrant.toolkit.data import JUDGE, Form, Source, json_text

DEEPEVAL = Tool(
    name="a test run of DeepEval",
    looked="the metadata of test cases, and the scores of metrics with an evaluation model",
    no_scores="its test cases have no metrics",
)


class Metric(msgspec.Struct, rename="camel"):
    """What one metric said of one answer; one with an evaluation model is a judge."""

    name: str
    success: bool | None = None
    score: float | None = None
    evaluation_model: str | None = None


class Case(msgspec.Struct, rename="camel"):
    """One answer."""

    name: str = ""
    success: bool | None = None
    metrics_data: list[Metric] | None = None
    additional_metadata: dict[str, object] | None = None
    metadata: dict[str, object] | None = None
    tags: list[str] | None = None


class Run(msgspec.Struct, rename="camel"):
    """A test run."""

    test_cases: list[Case] = []
    test_file: str | None = None


def deepeval_log(path: Path, name: str, form: Form) -> Source:
    """The answers of a test run."""
    result = decoded(json_text(path, form.encoding), Run, path.name)
    return source_of_answers(list(_answers(result, path.name)), DEEPEVAL, path, name)


def _answers(run: Run, file: str) -> Iterator[Answer]:
    task = (run.test_file or "").rsplit("/", 1)[-1]
    for i, case in enumerate(run.test_cases):
        right, judged = _graded(case.metrics_data or (), case.success)
        yield Answer(
            question=named(task, case.name or i),
            task=task,
            scores=right,
            reported=plain(case.metadata or case.additional_metadata, file),
            computed=judged,
            more={"tags": ", ".join(case.tags)} if case.tags else {},
        )


def _graded(metrics: Sequence[Metric], success: bool | None) -> tuple[dict[str, object], dict[Place, float | None]]:
    """Whether an answer is right, by the metrics without a judge if there are such, and the judges' scores."""
    checked = [m for m in metrics if not m.evaluation_model]
    if not checked or len(checked) == len(metrics):
        known = success if success is not None else all(m.success for m in metrics) if metrics else None
        return ({} if known is None else {"success": known}), {}
    judged = {(f"metricsData.{m.name}.score", JUDGE): m.score for m in metrics if m.evaluation_model}
    return {"success": all(m.success for m in checked)}, judged
