"""The audit of a log, next to it: which files, columns and clusters, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant as cal


def inspect_log(path: Path, epochs: int = 1, field: str = "confidence") -> Path:
    """Write a log in the fields of Inspect: 120 questions, confidence as stated."""
    rng = np.random.default_rng(2)
    samples = []
    for q in range(120):
        sure = round(rng.uniform(), 2)
        for epoch in range(1, epochs + 1):
            score = {"value": "C" if rng.uniform() < sure else "I", "metadata": {field: sure}}
            kept = {"scores": {"choice": score}, "metadata": {"topic": "ab"[q % 2]}}
            samples.append({"id": f"q{q}", "epoch": epoch, **kept})
    log = {"version": 2, "status": "success", "eval": {"task": "sums", "model": "m"}, "samples": samples}
    path.write_text(json.dumps(log))
    return path


def lm_eval_run(folder: Path, task: str, date: str) -> Path:
    """Write samples in the fields of lm-evaluation-harness: 60 questions of two choices."""
    rng = np.random.default_rng(3)
    lines = []
    for q in range(60):
        sure = rng.uniform(0.5, 1.0)
        choices = [[str(np.log(v)), "False"] for v in (sure, 1 - sure)]
        lines.append({"doc_id": q, "doc": {"subject": "ab"[q % 2]}, "filtered_resps": choices, "filter": "none"})
        lines[-1] |= {"metrics": ["acc"], "acc": float(rng.uniform() < sure)}
    path = folder / f"samples_{task}_{date}.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("epochs", "cluster"), [(1, None), (2, "question")])
def test_answers_to_one_question_are_a_cluster_where_questions_repeat(
    tmp_path: Path, epochs: int, cluster: Any
) -> None:
    path = inspect_log(tmp_path / "sums.json", epochs)
    record = cal.tracking.audit_log(path.as_uri() if epochs == 1 else path, by="topic", limit=0.05, quick=True)
    assert (record.name, record.data["rows"], record.data["cluster"]) == ("sums", 120 * epochs, cluster)
    assert record.data["label"] == "correct"
    assert record.data["score"] == "confidence_stated"
    assert [dict(g.variables) for g in record.groups] == [{"topic": "a"}, {"topic": "b"}]
    made = {p.name for p in tmp_path.iterdir()} - {path.name}
    assert made == {"calibrant_sums.json", "calibrant_sums.html"}
    assert all(cal.AuditRecord.load(tmp_path / name) == record for name in made)


@pytest.mark.slow
def test_the_newest_run_of_a_folder_is_audited_with_all_its_tasks(tmp_path: Path) -> None:
    lm_eval_run(tmp_path, "old", "2026-11-28T10-00-00.000001")
    for task in ("arc", "hella_swag"):
        lm_eval_run(tmp_path, task, "2026-11-29T09-00-00.000001")
    record = cal.tracking.audit_log(tmp_path, by="task", quick=True)
    assert (record.name, record.data["rows"]) == ("2026-11-29T09-00-00.000001", 120)
    assert record.data["score"] == "confidence_token_probability"
    assert sorted(str(dict(g.variables)["task"]) for g in record.groups) == ["arc", "hella_swag"]
    assert (tmp_path / "calibrant_2026-11-29T09-00-00.000001.html").exists()


def test_what_is_not_clear_is_asked(tmp_path: Path) -> None:
    path = inspect_log(tmp_path / "two.json", field="luck")
    with pytest.raises(cal.BadInput, match=r"score is not clear: pass score=, one of scores\.choice\.metadata\.luck"):
        cal.tracking.audit_log(path)
    with pytest.raises(cal.BadInput, match=r"holds no samples_TASK_DATE.jsonl: run lm-evaluation-harness with --log_s"):
        cal.tracking.audit_log(tmp_path)
    with pytest.raises(
        cal.BadInput, match=r"s3://logs/a\.eval: record and page are written next to a log on this machine"
    ):
        cal.tracking.audit_log("s3://logs/a.eval")
    assert [p.name for p in tmp_path.iterdir()] == ["two.json"]
