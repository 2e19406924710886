"""Results of promptfoo, as `promptfoo eval --output` writes them: JSON, or JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from calibrant.apps.llm_logs.answers import Answer, Place, Tool, named, of_field, plain, source_of_answers
from calibrant.apps.llm_logs.decoded import decoded, lines_of
from calibrant.toolkit.data import JUDGE, Form, Source, json_text

PROMPTFOO = Tool(
    name="a log of promptfoo",
    looked="named scores, the metadata of tests, results and responses, and outputs that are a JSON object",
    no_scores="its results have no success and no grading",
)
JUDGES = (
    "llm-rubric",
    "g-eval",
    "factuality",
    "answer-relevance",
    "context-",
    "model-graded-",
    "conversation-relevance",
)


class Assertion(msgspec.Struct):
    """What was asserted of an answer."""

    type: str = ""
    metric: str | None = None


class Component(msgspec.Struct, rename="camel"):
    """What became of one assertion."""

    passed: bool = msgspec.field(default=False, name="pass")
    score: float | None = None
    assertion: Assertion | None = None

    @property
    def judged(self) -> bool:
        """Another model judged it."""
        return self.assertion is not None and self.assertion.type.removeprefix("not-").startswith(JUDGES)


class Grading(msgspec.Struct, rename="camel"):
    """What became of all."""

    component_results: list[Component] | None = None


class Provider(msgspec.Struct):
    """Who answered."""

    id: str = ""
    label: str | None = None


class Response(msgspec.Struct):
    """The answer."""

    output: object = None
    metadata: dict[str, object] | None = None


class Test(msgspec.Struct):
    """The question."""

    description: str | None = None
    metadata: dict[str, object] | None = None


class Result(msgspec.Struct, rename="camel"):
    """One answer to one test."""

    success: bool | None = None
    test_idx: int | None = None
    prompt_idx: int = 0
    repeat_index: int = 0
    provider: Provider | None = None
    response: Response | None = None
    test_case: Test | None = None
    vars: dict[str, object] | None = None
    named_scores: dict[str, float] | None = None
    grading_result: Grading | None = None
    metadata: dict[str, object] | None = None


class Results(msgspec.Struct):
    """All answers."""

    results: list[Result] = []


class Evaluation(msgspec.Struct, rename="camel"):
    """A file of JSON."""

    eval_id: str | None = None
    results: Results = msgspec.field(default_factory=Results)


def promptfoo_log(path: Path, name: str, form: Form) -> Source:
    """The answers of an evaluation, one a test, prompt, provider and repetition."""
    text = json_text(path, form.encoding)
    if b'"evalId"' in text[:4096] or b'"results"' in text[:4096]:
        results: Sequence[Result] = decoded(text, Evaluation, path.name).results.results
    else:
        results = [result for _, result in lines_of(path, Result, form.encoding)]
    return source_of_answers(list(_answers(results, path.name)), PROMPTFOO, path, name)


def _answers(results: Sequence[Result], file: str) -> Iterator[Answer]:
    task = file.split(".")[0]
    for i, result in enumerate(results):
        test, response = result.test_case or Test(), result.response or Response()
        reported: dict[str, object] = plain(result.named_scores, file, "namedScores.") if result.named_scores else {}
        reported |= plain(result.metadata, file, "metadata.") | plain(response.metadata, file, "response.metadata.")
        stated = plain(_object(response.output), file, "response.output.")
        reported |= {k: v for k, v in stated.items() if of_field(k.split(".")[-1])}
        scores, judged = _graded(result)
        yield Answer(
            question=named("", i if result.test_idx is None else f"test {result.test_idx}"),
            task=task,
            model=(result.provider.label or result.provider.id) if result.provider else "",
            epoch=result.repeat_index + 1,
            scores=scores,
            reported=reported,
            computed=judged,
            more={"prompt_index": result.prompt_idx, **plain(result.vars, file), **plain(test.metadata, file)},
        )


def _object(output: object) -> dict[str, object]:
    """An output that is a JSON object, or a text that is one and nothing else; of every other text nothing."""
    if isinstance(output, dict):
        return output
    if not isinstance(output, str):
        return {}
    try:
        return msgspec.json.decode(output, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError, RecursionError):  # prose, a list, or cut off: it stays text
        return {}


def _graded(result: Result) -> tuple[dict[str, object], dict[Place, float | None]]:
    """Whether an answer is right, by what no model judged if there is such, and how the judges scored it."""
    parts = (result.grading_result.component_results if result.grading_result else None) or []
    checked = [c for c in parts if not c.judged]
    if not checked or len(checked) == len(parts):
        return ({} if result.success is None else {"success": result.success}), {}
    judged = {(f"gradingResult.{_metric(c)}.score", JUDGE): c.score for c in parts if c.judged}
    return {"success": all(c.passed for c in checked)}, judged


def _metric(part: Component) -> str:
    of = part.assertion or Assertion()
    return of.metric or of.type
