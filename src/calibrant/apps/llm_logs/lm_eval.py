"""Samples of lm-evaluation-harness: a line an answer, written with `--log_samples`.

Of a multiple choice a line has the log-likelihood of every choice; their softmax is the probability of each, and that
of the likeliest the confidence of `acc`, which takes the likeliest for the answer. (`acc_norm` may take another.)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from calibrant.apps.llm_logs.answers import Answer, Tool, named, plain, source_of_answers
from calibrant.apps.llm_logs.decoded import lines_of, of_kind
from calibrant.toolkit.data import TOKENS, Form, Source

SAMPLES = re.compile(r"samples_(.+?)(_\d{4}-\d{2}-\d{2}T[\d.:-]+)?\.jsonl?(\.\w+)?")
LM_EVAL = Tool(
    name="a log of lm-evaluation-harness",
    looked="the log-likelihoods of choices (filtered_resps), and the fields of each line",
    first=("acc", "exact_match"),
    no_scores="its lines have no metric such as acc; run it with --log_samples",
)
METRICS = ("acc", "acc_norm", "exact_match", "em", "acc_mutual_info", "f1", "mc1", "mc2", "pass@1", "bleu", "rouge1")
OWN = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"}
OWN |= {"doc_hash", "prompt_hash", "target_hash"}


class Line(msgspec.Struct):
    """What a line says of one answer, in addition to its metrics."""

    doc_id: int | str
    doc: dict[str, object] | None = None
    filtered_resps: list[object] | None = None
    filter: str = ""
    metrics: list[str] | None = None


def lm_eval_log(path: Path, name: str, form: Form) -> Source:
    """The answers of a file of samples; its task stands in its name."""
    result = SAMPLES.fullmatch(path.name)
    task = result[1] if result else path.name.split(".")[0]
    return source_of_answers(list(_answers(path, form, task)), LM_EVAL, path, name)


def _answers(path: Path, form: Form, task: str) -> Iterator[Answer]:
    for where, values in lines_of(path, dict[str, object], form.encoding):
        line = of_kind(values, Line, where)
        metrics = line.metrics or [m for m in METRICS if m in values]
        likeliest = probability(line.filtered_resps or ())
        reported = {k: v for k, v in plain(values, where).items() if k.split(".")[0] not in {*OWN, *metrics}}
        yield Answer(
            question=named(task, line.doc_id),
            task=task,
            scores={m: values.get(m) for m in metrics},
            reported=reported | ({"filter": line.filter} if line.filter else {}),
            computed={} if likeliest is None else {("filtered_resps", TOKENS): likeliest},
            more=plain(line.doc, where),
        )


def probability(responses: Sequence[object]) -> float | None:
    """The probability of the likeliest of two choices or more, from the log-likelihood of each."""
    logs = [_log_likelihood(r) for r in responses]
    known = [v for v in logs if v is not None]
    if len(known) < max(len(logs), 2):
        return None
    top = max(known)
    return 1.0 / math.fsum(math.exp(v - top) for v in known)


def _log_likelihood(response: object) -> float | None:
    """The first of a pair: log-likelihood, and whether greedy decoding gives it; numbers may be text."""
    if not isinstance(response, list) or len(response) != 2 or str(response[1]) not in ("True", "False"):
        return None
    try:
        value = float(str(response[0]))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
