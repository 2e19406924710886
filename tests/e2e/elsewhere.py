"""The packages that are too large for `.ci/run`, as they are: run by `.ci/elsewhere`, which installs them."""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from schedules import DAYS, OFF, entered, folder, recipe, scored

__all__ = ["folder"]
pytestmark = pytest.mark.filterwarnings("ignore")  # theirs


# ---- Evidently ----


def evidently_run(rows: int, power: float, labels: tuple[Any, Any] = (0, 1), limit: float | None = 0.03) -> Any:
    """Run a report on rows whose outcomes follow the score to this power."""
    evidently = pytest.importorskip("evidently", reason="pip install evidently 'pandas<3'")
    import pandas as pd

    rng = np.random.default_rng(0)
    p = rng.uniform(size=rows)
    frame = pd.DataFrame({"y": np.array(labels)[(rng.uniform(size=rows) < p**power).astype(int)], "risk": p})
    task = evidently.BinaryClassification(target="y", prediction_probas="risk", pos_label=labels[1])
    named = evidently.Dataset.from_pandas(frame, data_definition=evidently.DataDefinition(classification=[task]))
    return evidently.Report([cal.tracking.evidently_metric(limit=limit)]).run(named, None), frame


@pytest.mark.parametrize(
    ("rows", "power", "statuses"),
    [
        (50_000, 1.0, ["SUCCESS", "SUCCESS"]),  # within
        (2_000, 1.0, ["SUCCESS", "WARNING"]),  # undecided
        (20_000, 1.5, ["FAIL", "WARNING"]),  # over
    ],
)
def test_evidently_tests_both_ends_against_the_limit(rows: int, power: float, statuses: list[str]) -> None:
    snapshot, frame = evidently_run(rows, power)
    reported = json.loads(snapshot.json())
    data = cal.predictions(frame["y"], frame["risk"])
    (metric,) = reported["metrics"]
    assert metric["value"]["at least"] == cal.certify.raw_lower(data, side="lower", alpha=0.025).low
    assert metric["value"]["at most"] == cal.certify.rounded(data, side="upper", alpha=0.025).high
    assert [t["status"] for t in reported["tests"]] == statuses
    assert "in percentage points" in snapshot.get_html_str(as_iframe=False)


def test_evidently_names_the_class_and_refuses_in_our_words() -> None:
    plain, named = evidently_run(500, 1.3, limit=None)[0], evidently_run(500, 1.3, ("no", "yes"), limit=None)[0]
    values = [json.loads(s.json())["metrics"][0]["value"] for s in (plain, named)]
    assert values[0] == values[1]
    assert not json.loads(plain.json())["tests"]
    import evidently
    import pandas as pd

    frame = pd.DataFrame({"y": [0, 1], "risk": [0.2, 1.4]})
    report = evidently.Report([cal.tracking.evidently_metric()])
    with pytest.raises(cal.BadInput, match="has no binary classification 'default' with prediction_probas"):
        report.run(frame, None).json()
    task = evidently.BinaryClassification(target="y", prediction_probas="risk")
    definition = evidently.DataDefinition(classification=[task])
    with pytest.raises(cal.BadInput, match="column 'risk': 1 value is outside 0 to 1"):
        report.run(evidently.Dataset.from_pandas(frame, data_definition=definition), None).json()


# ---- Inspect ----

INSPECT = """
import sys
import numpy as np
import calibrant as cal
from inspect_ai import Task, eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import generate

folder, field = sys.argv[1:]
cal.tracking.inspect_hooks(by="topic", limit=0.05, quick=True)


@scorer(metrics=[accuracy(), cal.tracking.inspect_metric()])
def stated():
    async def score(state, target):
        answer, _, confidence = state.output.completion.partition(" | ")
        value = "C" if answer == target.text else "I"
        return Score(value=value, answer=answer, metadata={field: float(confidence)})

    return score


def outputs():
    rng = np.random.default_rng(0)
    while True:
        sure = round(float(rng.uniform()), 2)
        made = ModelOutput.from_content("mockllm/model", f"{'2' if rng.uniform() < sure else '0'} | {sure}")
        made.usage = ModelUsage(input_tokens=5, output_tokens=5, total_tokens=10)  # else it asks a tokenizer
        yield made


samples = [Sample(id=f"q{i}", input="1 + 1", target="2", metadata={"topic": "ab"[i % 2]}) for i in range(50)]
task = Task(dataset=samples, solver=generate(), scorer=stated(), name="sums")
model = get_model("mockllm/model", custom_outputs=outputs())
evaluate(task, model=model, epochs=2, log_dir=folder, display="plain", log_realtime=False)
"""


def inspect_run(folder: Path, field: str) -> tuple[Any, str]:
    """Run a task of 50 questions, asked twice, with our metric and hook; return its log and what was printed."""
    log = pytest.importorskip("inspect_ai.log", reason="pip install inspect-ai")
    command = [sys.executable, "-W", "ignore", "-c", INSPECT, str(folder), field]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder.parent)
    (one,) = log.list_eval_logs(str(folder))  # our files are none of its logs
    return log.read_eval_log(one.name), run.stdout + run.stderr


def test_inspect_has_the_range_in_its_log_and_our_record_next_to_it(tmp_path: Path) -> None:
    log, _ = inspect_run(tmp_path / "logs", "confidence")
    assert log.status == "success"
    found = {name: m.value for score in log.results.scores for name, m in score.metrics.items()}
    right, sure, questions = zip(
        *((s.scores["stated"].value == "C", s.scores["stated"].metadata["confidence"], s.id) for s in log.samples),
        strict=True,
    )
    data = cal.predictions(right, np.array(sure), cluster=questions)
    assert found["calibration_error_low"] == cal.certify.raw_lower(data, side="lower", alpha=0.025).low
    assert found["calibration_error_high"] == cal.certify.rounded(data, side="upper", alpha=0.025).high
    (page,), (kept,) = ((tmp_path / "logs").glob(f"calibrant_*_sums_*.{kind}") for kind in ("html", "json"))
    record = cal.AuditRecord.load(kept)
    assert (record.data["rows"], record.data["cluster"], record.verdict) == (100, "question", "undecided")
    assert cal.AuditRecord.load(page) == record


def test_inspect_stands_where_there_is_no_confidence(tmp_path: Path) -> None:
    log, printed = inspect_run(tmp_path / "logs", "luck")
    assert log.status == "success"
    assert not [name for score in log.results.scores for name in score.metrics if name.startswith("calibration")]
    said = " ".join(printed.split())
    assert "has no number metadata['confidence']" in said
    assert "score is not clear: pass score=" in said
    assert len(list((tmp_path / "logs").iterdir())) == 1


# ---- lm-evaluation-harness ----

TASK = """
task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {docs}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{gold}}}}"
doc_to_choice: "{{{{choices}}}}"
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
"""


@pytest.fixture
def lm_eval_folder(tmp_path: Path) -> Path:
    """The folder of results of two tasks of 100 questions, answered by chance."""
    pytest.importorskip("lm_eval", reason="pip install lm-eval")
    docs = tmp_path / "docs.jsonl"
    lines = [{"question": f"{i} + 1", "choices": [str(i + 1), str(i + 2)], "gold": i % 2} for i in range(100)]
    docs.write_text("\n".join(map(json.dumps, lines)))
    for name in ("sums_one", "sums_two"):
        (tmp_path / f"{name}.yaml").write_text(TASK.format(name=name, docs=docs))
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache")}
    asked = ["--model", "dummy", "--tasks", "sums_one,sums_two", "--include_path", ".", "--log_samples"]
    command = [sys.executable, "-m", "lm_eval", "run", *asked, "--output_path", "results"]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, **offline}, capture_output=True, check=True)
    (folder,) = (tmp_path / "results").iterdir()
    return folder


def test_results_of_lm_eval_are_audited_next_to_them(lm_eval_folder: Path) -> None:
    record = cal.tracking.audit_log(lm_eval_folder, by="task", limit=0.05, quick=True)
    assert record.data["rows"] == 200
    assert record.data["confidence"]["provenance"] == "token_probability"
    assert len(record.groups) == 2
    (results,) = lm_eval_folder.glob("results_*.json")
    date = results.name.removeprefix("results_")
    assert cal.AuditRecord.load(lm_eval_folder / f"calibrant_{date}") == record


# ---- Airflow ----


def test_airflow_runs_the_days_of_the_recipe(folder: Path) -> None:
    """Airflow has an environment of its own: its versions are pinned."""
    airflow = os.environ["AIRFLOW"]
    (folder / "scored").mkdir()
    (folder / "dags").mkdir()
    (folder / "dags/calibration.py").write_text(recipe("python no-run", "airflow").replace("/srv/watch", str(folder)))
    home = {"AIRFLOW_HOME": str(folder / "airflow"), "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags")}
    home |= {"AIRFLOW__CORE__LOAD_EXAMPLES": "False", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}

    def run(*words: str) -> str:
        done = subprocess.run([airflow, *words], env={**os.environ, **home}, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    run("db", "migrate")
    for day in (*DAYS[:3], DAYS[2]):  # the last twice
        pq.write_table(scored(day), folder / f"scored/{day}.parquet")
        run("dags", "test", "calibration", day)
        assert (folder / "sent.txt").exists() == (day in OFF)
    assert entered(folder).state.rows == 3 * 400
    assert "Alarm" in (folder / "sent.txt").read_text()
    runs = run("dags", "next-execution", "calibration", "--num-executions", "1")
    begins = datetime.datetime.fromisoformat(re.findall(r"\d{4}-\d\d-\d\dT[\d:+]+", runs)[-1])
    assert begins.date() < datetime.datetime.now(datetime.UTC).date()  # the day that enters is over when the run begins


# ---- lifelines and scikit-survival ----


def held_out(unit: float = 1.0) -> tuple[Any, Any, Any]:
    """A Cox model of half of a data set, and the other half with its risk within three years."""
    lifelines = pytest.importorskip("lifelines", reason="pip install lifelines")
    import pandas as pd
    from lifelines.datasets import load_gbsg2

    patients = load_gbsg2()
    patients["time"] = patients["time"] / unit
    numbers = pd.get_dummies(patients, drop_first=True).astype(float)
    fitted = numbers.sample(frac=0.5, random_state=0)
    cox = lifelines.CoxPHFitter(penalizer=0.01).fit(fitted, "time", "cens")
    held = patients.drop(fitted.index)
    at = 1095 / unit
    held["risk"] = 1 - cox.predict_survival_function(numbers.loc[held.index], times=[at]).T[at]
    return cox, numbers.loc[held.index], held


def test_lifelines_a_cox_model_comes_to_a_page(tmp_path: Path) -> None:
    _, _, held = held_out()
    record = cal.audit(
        held, score="risk", time="time", event="cens", horizon=1095, way="weights", by="horTh", limit=0.1
    )
    assert record.everyone.rows == len(held)
    assert record.verdict == "undecided"
    record.save(tmp_path / "gbsg2.html")
    assert "were lost before 1095" in (tmp_path / "gbsg2.html").read_text(encoding="utf-8")


def test_lifelines_smooth_curve_is_as_far_off_as_ours_in_months() -> None:
    """Two smoothers of the same points; in days theirs does not converge."""
    import matplotlib

    matplotlib.use("Agg")
    cox, numbers, held = held_out(30.4)
    from lifelines.calibration import survival_probability_calibration

    theirs = survival_probability_calibration(cox, numbers, 1095 / 30.4)[1]
    rows = cal.at_horizon(held, score="risk", time="time", event="cens", horizon=1095 / 30.4, way="weights")
    ours = cal.measure.integrated_calibration_index(rows)
    assert ours.value == pytest.approx(theirs, abs=0.01)
    days = cal.at_horizon(held_out()[2], score="risk", time="time", event="cens", horizon=1095, way="weights")
    assert cal.measure.integrated_calibration_index(days).value == pytest.approx(ours.value, rel=1e-3)


def test_scikit_survival_has_the_same_scores_where_nothing_ties() -> None:
    """Of an event and an end on one day it takes the end to be first, and leaves out who was followed to the horizon.

    So events are moved before ends of their day, and the horizon is at noon.
    """
    metrics = pytest.importorskip("sksurv.metrics", reason="pip install scikit-survival")
    _, _, held = held_out()
    held["time"] -= 0.25 * (held["cens"] == 1)
    kinds = [("event", bool), ("time", float)]
    seen = np.array(list(zip(held["cens"] == 1, held["time"], strict=True)), dtype=kinds)
    rows = cal.at_horizon(held, score="risk", time="time", event="cens", horizon=1095.5, way="weights")
    theirs = metrics.brier_score(seen, seen, 1 - held["risk"].to_numpy(), 1095.5)[1][0]
    assert cal.measure.brier(rows).value == pytest.approx(theirs, rel=1e-9)
    theirs = metrics.cumulative_dynamic_auc(seen, seen, held["risk"].to_numpy(), 1095.5)[0][0]
    assert cal.measure.auroc(rows).value == pytest.approx(theirs, rel=1e-9)
