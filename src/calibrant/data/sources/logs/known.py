"""Which tool wrote a log, told by its first bytes, and the reader of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path

from calibrant.data.sources.logs.deepeval import deepeval_log
from calibrant.data.sources.logs.inspect_ai import HEADER, START, inspect_log
from calibrant.data.sources.logs.lm_eval import lm_eval_log
from calibrant.data.sources.logs.openai_evals import openai_evals_log
from calibrant.data.sources.logs.promptfoo import promptfoo_log
from calibrant.data.sources.source import Form, Source

INSPECT, LM_EVAL, PROMPTFOO = "an Inspect log", "a log of lm-evaluation-harness", "a log of promptfoo"
DEEPEVAL, OPENAI_EVALS = "a test run of DeepEval", "a log of OpenAI evals"
BEGINNINGS = (  # how the JSON of each begins
    (re.compile(rb'\{\s*"version":\s*\d+,\s*"status":\s*"\w+",\s*"eval":\s*\{'), INSPECT),
    (re.compile(rb'\[?\s*\{\s*"doc_id":\s*[\d"][^,]*,\s*"doc":\s*\{'), LM_EVAL),
    (re.compile(rb'\{"spec":\s*\{[^\n]*"completion_fns":'), OPENAI_EVALS),
    (re.compile(rb'\{"run_id":[^\n]*"event_id":[^\n]*"sample_id":'), OPENAI_EVALS),
    (re.compile(rb'\{\s*"evalId":\s*("|null)[^{]*"results":\s*\{'), PROMPTFOO),
    (re.compile(rb'\{[^\n]*"promptIdx":[^\n]*"provider":[^\n]*"testCase":'), PROMPTFOO),
    (re.compile(rb'\{(?=.*"testCases":)(?=.*"(metricsData|actualOutput|testFile|testPassed)":)', re.DOTALL), DEEPEVAL),
)
LOGS: dict[str, Callable[[Path, str, Form], Source]] = {
    INSPECT: inspect_log,
    LM_EVAL: lm_eval_log,
    PROMPTFOO: promptfoo_log,
    DEEPEVAL: deepeval_log,
    OPENAI_EVALS: openai_evals_log,
}
ENDINGS = (".eval",)


def log_of(first: bytes) -> str:
    """Return which log a file of JSON is, by its first bytes; nothing where it is none."""
    text = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    return next((tool for begins, tool in BEGINNINGS if begins.match(text)), "")


def archived(names: Collection[str]) -> bool:
    """Return whether a zip file of these names is a log of Inspect."""
    return HEADER in names or START in names
