"""The logs that are read: which tool wrote one is recognised by its first bytes; its reader is loaded at need."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.apps.llm_logs.decoded import HEADER, START
from calibrant.plugins import Format

if TYPE_CHECKING:
    from calibrant.toolkit.data import Form, Source


@dataclass(frozen=True)
class Log(Format):
    """The log of one tool."""

    called: str
    reader: tuple[str, str]  # the file and its function
    beginnings: tuple[re.Pattern[bytes], ...]  # how its JSON begins
    # `endings` and `members`: ends of names of files, and names in a zip file, that no other file has.
    endings: tuple[str, ...] = ()
    members: tuple[str, ...] = ()

    def begins(self, first: bytes) -> bool:
        """Tell whether a file of JSON is such a log."""
        text = first.removeprefix(b"\xef\xbb\xbf").lstrip()
        return any(pattern.match(text) for pattern in self.beginnings)

    def holds(self, names: Collection[str]) -> bool:
        """Tell whether a zip file of these names is such a log."""
        return any(name in names for name in self.members)

    def open(self, path: Path, name: str, form: Form) -> Source:
        """Its answers as rows."""
        file, function = self.reader
        source: Source = getattr(import_module(f"calibrant.apps.llm_logs.{file}"), function)(path, name, form)
        return source


INSPECT = Log(
    "an Inspect log",
    ("inspect_ai", "inspect_log"),
    (re.compile(rb'\{\s*"version":\s*\d+,\s*"status":\s*"\w+",\s*"eval":\s*\{'),),
    (".eval",),
    (HEADER, START),
)
LM_EVAL = Log(
    "a log of lm-evaluation-harness",
    ("lm_eval", "lm_eval_log"),
    (re.compile(rb'\[?\s*\{\s*"doc_id":\s*[\d"][^,]*,\s*"doc":\s*\{'),),
)
OPENAI_EVALS = Log(
    "a log of OpenAI evals",
    ("openai_evals", "openai_evals_log"),
    (
        re.compile(rb'\{"spec":\s*\{[^\n]*"completion_fns":'),
        re.compile(rb'\{"run_id":[^\n]*"event_id":[^\n]*"sample_id":'),
    ),
)
PROMPTFOO = Log(
    "a log of promptfoo",
    ("promptfoo", "promptfoo_log"),
    (
        re.compile(rb'\{\s*"evalId":\s*("|null)[^{]*"results":\s*\{'),
        re.compile(rb'\{[^\n]*"promptIdx":[^\n]*"provider":[^\n]*"testCase":'),
    ),
)
DEEPEVAL = Log(
    "a test run of DeepEval",
    ("deepeval", "deepeval_log"),
    (re.compile(rb'\{(?=.*"testCases":)(?=.*"(metricsData|actualOutput|testFile|testPassed)":)', re.DOTALL),),
)
