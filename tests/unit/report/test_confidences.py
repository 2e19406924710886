"""A record and its page keep where a confidence comes from, through a sketch too."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import calibrant as cal
from calibrant.apps.llm_logs.answers import FIELDS
from calibrant.data.specs.column_names import column_of
from calibrant.report import html, markdown
from calibrant.report.wording.notices import HOW, MEANS

SCHEMA = json.loads(Path(__file__).parents[3].joinpath("docs/schema/calibrant-4.json").read_text(encoding="utf-8"))
FIELD = "scores.match.metadata.confidence"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a log of Inspect, of four hundred answers."""
    rng = np.random.default_rng(0)
    samples = []
    for i, p in enumerate(rng.uniform(0.3, 1.0, 400).round(3).tolist()):
        score = {"value": "C" if rng.uniform() < p else "I", "metadata": {"confidence": p}}
        samples.append({"id": i, "scores": {"match": score}})
    path = tmp_path_factory.mktemp("logs") / "run.json"
    whole = {"version": 2, "status": "success", "eval": {"task": "quiz", "model": "m"}, "samples": samples}
    path.write_text(json.dumps(whole))
    return str(path)


@pytest.mark.slow
def test_the_record_and_the_page_say_where_a_confidence_comes_from(log: str) -> None:
    record = cal.audit(log, label="correct", score="confidence_stated", noun="answers", quick=True)
    assert record.data["confidence"] == {"provenance": "stated", "tool": "an Inspect log", "field": FIELD}
    jsonschema.validate(json.loads(record.to_json()), SCHEMA)
    for text in (html.render(record), markdown.render(record)):
        assert MEANS["stated"] in text
        assert HOW["stated"] in text
        assert FIELD in text.replace("<wbr>", "").replace("\\", "")
    again = cal.AuditRecord.from_dict(record.to_dict())
    assert html.render(again) == html.render(record)


def test_a_stored_sketch_keeps_the_provenance_by_the_name_of_its_score(log: str) -> None:
    sketch = cal.sketch(log, label="correct", score="confidence_stated")
    for held, tool in ((sketch, "an Inspect log"), (cal.Sketch.from_bytes(sketch.to_bytes()), None)):
        found = cal.audit(held, quick=True).data["confidence"]
        assert (found["provenance"], found["tool"]) == ("stated", tool)


def test_a_column_of_another_name_is_no_confidence(log: str) -> None:
    table = {"y": [0, 1] * 50, "p": [0.2, 0.7] * 50}
    record = cal.audit(table, label="y", score="p", quick=True, allow_same=True)
    assert "confidence" not in record.data
    assert "Confidence" not in markdown.render(record)
    reported = cal.audit(
        {"y": table["y"], column_of("judge"): table["p"]}, label="y", score=column_of("judge"), quick=True
    )
    assert MEANS["judge"] in markdown.render(reported)


def test_every_provenance_has_its_words() -> None:
    assert set(FIELDS) == set(MEANS) == set(HOW)
