"""Pipelines by their own commands: options, the fixture of pytest, the action, the template, trackers from PyPI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
import yaml

import calibrant as cal
import factories
from calibrant.cli import main
from pages import ROOT


def log(path: Path, power: float = 1.0, rows: int = 4_000) -> Path:
    """Write a log whose outcomes follow the score to this power."""
    rng = np.random.default_rng(7)
    p = rng.uniform(size=rows)
    y = rng.uniform(size=rows) < p**power
    lines = (f"{int(a)},{b:.4f},{'ab'[i % 2]}\n" for i, (a, b) in enumerate(zip(y, p, strict=True)))
    path.write_text("y,p,g\n" + "".join(lines))
    return path


# ---- options of the command ----


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    factories.scanned(factories.employment()).save("record.json")
    factories.employment(0.02).save("base.html")
    return "record.json"


def test_the_command_writes_what_the_functions_return(kept: str, capsys: pytest.CaptureFixture[str]) -> None:
    outs = ["-o", "j.xml", "-o", "summary:s.md", "-o", "metrics:m.json", "-o", "model-card:c.md"]
    assert main(["report", kept, *outs, "--against", "base.html"]) == 0
    record, base = cal.AuditRecord.load(kept), cal.AuditRecord.load("base.html")
    reported = {name: Path(name).read_text(encoding="utf-8") for name in ("j.xml", "s.md", "m.json", "c.md")}
    assert reported["j.xml"] == cal.testing.junit(record)
    assert reported["s.md"] == cal.testing.summary(record, against=base)
    assert reported["c.md"] == cal.tracking.model_card(record)
    assert json.loads(reported["m.json"]) == cal.tracking.metrics(record)
    capsys.readouterr()
    assert main(["report", kept, "-o", "metrics:-"]) == 0
    assert capsys.readouterr().out == reported["m.json"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["--against", "base.html"], "--against goes with -o summary:FILE"),
        (["-o", "summary:s.md", "--against", "none.json"], "cannot read 'none.json'"),
        (["-o", "summary:base.html", "--against", "base.html"], "among the files to read"),
        (["-o", "junit:-", "-o", "model-card:-"], "-o junit:- and -o model-card:- both claim standard output"),
        (["-o", "junit:x", "-o", "metrics:x"], "would write one file"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(
    kept: str, given: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", kept, *given]) == 2
    assert why in capsys.readouterr().err
    assert sorted(p.name for p in Path().iterdir()) == ["base.html", kept]


@pytest.mark.slow
def test_an_audit_writes_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log(Path("log.csv"), power=3.0, rows=600)
    stated = ["--label", "y", "--score", "p", "--by", "g", "--quick", "--limit", "0.05"]
    assert main(["audit", "log.csv", *stated, "-o", "j.xml", "-o", "metrics:m.json"]) == 1
    assert Xml.parse("j.xml").getroot().find("testsuite/testcase/failure") is not None  # noqa: S314
    assert json.loads(Path("m.json").read_text(encoding="utf-8"))["exit_status"] == 1.0


# ---- pytest ----

SUITE = """
import numpy as np
import calibrant as cal

p = np.random.default_rng(0).uniform(size=4000)
y = np.random.default_rng(1).uniform(size=4000) < p


def test_right(calibrant_audit):
    assert calibrant_audit(cal.predictions(y, p), limit=0.1, quick=True).verdict == "within"


def test_halved(calibrant_audit):
    calibrant_audit(cal.predictions(y, p / 2), limit=0.1, quick=True, name="halved")


def test_few(calibrant_audit):
    calibrant_audit(cal.predictions(y[:50], p[:50]), limit=0.1, quick=True, allow_undecided=True)
"""


def test_the_entry_point_is_a_plugin() -> None:
    (name, value), *more = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "entry-points"
    ]["pytest11"].items()
    assert not more
    assert hasattr(EntryPoint(name, value, "pytest11").load(), "calibrant_audit")


def test_the_plugin_costs_other_suites_nothing(tmp_path: Path) -> None:
    code = "import sys, pytest; before = {*sys.modules}\nimport calibrant.pytest_plugin\n"
    code += "print(*sorted(m for m in {*sys.modules} - before if not m.startswith('calibrant')))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {m.split(".")[0] for m in run.stdout.split()} <= sys.stdlib_module_names


@pytest.mark.slow
def test_the_fixture_fails_in_one_line_and_keeps_the_pages(tmp_path: Path) -> None:
    (tmp_path / "test_model.py").write_text(SUITE)
    asked = ["-p", "no:calibrant", "-p", "calibrant.pytest_plugin", "-p", "no:randomly", "-p", "no:cacheprovider"]
    reported = ["--calibrant-pages", "pages", "--junitxml", "j.xml", "-q"]
    command, wide = [sys.executable, "-m", "pytest", *asked, *reported], {**os.environ, "COLUMNS": "300"}
    run = subprocess.run(command, cwd=tmp_path, env=wide, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stdout + run.stderr
    message = "halved: over the limit of 10.0 points: everyone (at least 22.7)"
    assert f"FAILED test_model.py::test_halved - AssertionError: {message}" in run.stdout
    assert "2 passed" in run.stdout
    assert "pytest_plugin.py" not in run.stdout  # the traceback ends in the test
    assert sorted(p.name for p in (tmp_path / "pages").iterdir()) == [
        "test_few.html",
        "test_halved.html",
        "test_right.html",
    ]
    events = {c.get("name"): c for c in Xml.parse(tmp_path / "j.xml").getroot().iter("testcase")}  # noqa: S314
    reported_of = {p.get("name"): p.get("value") for p in events["test_halved"].iter("property")}
    assert reported_of == {"calibrant halved": "over"}


# ---- the action and the template, by their own lines ----


def shell(lines: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run lines as a runner does, with this interpreter's commands first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", lines]
    return subprocess.run(
        ran, cwd=folder, env={**os.environ, "PATH": path, **more}, capture_output=True, text=True, check=False
    )


def action(folder: Path, **inputs: str) -> tuple[int, dict[str, str], str]:
    """Run the steps of the action with these inputs; return its status, outputs and step summary."""
    made = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    given = {k: inputs.pop(k.replace("-", "_"), str(v.get("default", ""))) for k, v in made["inputs"].items()}
    assert not inputs
    given |= {"package || github.action_path": given["package"] or str(ROOT)}
    held = {"GITHUB_OUTPUT": folder / "output", "GITHUB_STEP_SUMMARY": folder / "step-summary.md"}
    for path in held.values():
        path.write_text("")
    status = 0
    for step in made["runs"]["steps"]:
        env = {k: given[v.removeprefix("${{ inputs.").removesuffix(" }}")] for k, v in step["env"].items()}
        assert "${{" not in step["run"]  # what is given never becomes code
        run = shell(step["run"], folder, **env, **{k: str(v) for k, v in held.items()})
        if (status := run.returncode) != 0:
            break
    outputs = dict(line.split("=", 1) for line in held["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines())
    return status, outputs, held["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_action_audits_by_its_own_commands(tmp_path: Path) -> None:
    good, bad = log(tmp_path / "good.csv"), log(tmp_path / "bad.csv", power=3.0)
    asked = {"package": "calibrant", "label": "y", "score": "p", "by": "g", "options": "--quick --variables none"}
    status, outputs, reported = action(tmp_path, files="g*.csv", limit="0.1", **asked)
    assert (status, outputs) == (0, {"exit-status": "0", "verdict": "within"}), reported
    assert "Within the limit" in reported
    made = sorted(p.name for p in (tmp_path / "calibrant-audit").iterdir())
    assert made == ["junit.xml", "metrics.json", "record.json", "report.html", "summary.md"]
    base = (tmp_path / "calibrant-audit/record.json").rename(tmp_path / "base.json")
    status, outputs, reported = action(tmp_path, files=bad.name, limit="0.1", against=base.name, **asked)
    assert (status, outputs["verdict"]) == (1, "over")
    assert "### What changed" in reported
    assert "larger by at least" in reported
    status, outputs, _ = action(tmp_path, files=good.name, limit="0.02", undecided="pass", **asked)
    assert (status, outputs) == (0, {"exit-status": "3", "verdict": "undecided"})
    status, _, _ = action(tmp_path, files=good.name, limit="0.02", **asked)
    assert status == 3
    status, outputs, reported = action(tmp_path, files="none.csv", limit="0.02; touch hacked", **asked)
    assert (status, outputs, reported) == (2, {"exit-status": "2"}, "")
    assert not (tmp_path / "hacked").exists()


@pytest.mark.slow
def test_the_template_audits_by_its_own_commands(tmp_path: Path) -> None:
    job: dict[str, Any] = yaml.safe_load((ROOT / "ci/calibrant.gitlab-ci.yml").read_text(encoding="utf-8"))[
        ".calibrant"
    ]
    log(tmp_path / "one.csv", power=1.6)
    lines = "\n".join((*job["before_script"], *job["script"]))
    unnamed = shell(lines, tmp_path, **job["variables"])
    assert unnamed.returncode == 2  # neither met, nor over the limit, nor undecided
    assert "CALIBRANT_PACKAGE is empty: say in the variables of the job what pip installs" in unnamed.stderr
    given = {
        **job["variables"],
        "CALIBRANT_PACKAGE": "calibrant",  # installed already
        "CALIBRANT_FILES": "one.csv",
        "CALIBRANT_LABEL": "y",
        "CALIBRANT_SCORE": "p",
        "CALIBRANT_LIMIT": "0.05",
        "CALIBRANT_OPTIONS": "--by g --quick",
    }
    assert given.keys() == job["variables"].keys()
    run = shell(lines, tmp_path, **given)
    assert run.returncode == 1, run.stderr
    suite = Xml.parse(tmp_path / job["artifacts"]["reports"]["junit"]).getroot()  # noqa: S314
    assert int(str(suite.get("failures"))) >= 1
    assert (tmp_path / job["artifacts"]["paths"][0] / "report.html").exists()


# ---- programs from PyPI ----


def audited() -> cal.AuditRecord:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=5_000)
    sex = np.where(rng.uniform(size=5_000) < 0.5, "f", "m")
    data = cal.predictions(rng.uniform(size=5_000) < p**1.2, p, {"sex": sex})
    return cal.audit(data, by="sex", limit=0.02, quick=True, name="toy", model="risk 3")


@pytest.mark.slow
def test_the_hub_reads_the_model_card(tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="pip install huggingface_hub to read a model card")
    record, path = audited(), tmp_path / "README.md"
    path.write_text(cal.tracking.model_card(record), encoding="utf-8")
    card = hub.ModelCard.load(path)
    assert card.data.model_name == "risk 3"
    found = {r.metric_type: r for r in card.data.eval_results}
    assert found["calibration_error"].metric_value == record.everyone.error.value
    assert found["calibration_error"].metric_args["high"] == record.everyone.upper.high
    assert found["brier_score"].metric_value == record.estimates["brier"].value
    assert {r.task_type for r in found.values()} == {"tabular-classification"}
    assert "## Calibration" in card.text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # its own
def test_mlflow_keeps_an_audit_and_evaluates_with_its_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="pip install mlflow-skinny to log an audit")
    pd = pytest.importorskip("pandas")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    record = audited()
    run = mlflow.get_run(cal.tracking.log_record(record))
    assert run.info.status == "FINISHED"
    assert mlflow.active_run() is None
    assert run.data.metrics == {f"calibrant/{k}": v for k, v in cal.tracking.metrics(record).items()}
    assert run.data.tags["calibrant.verdict"] == record.verdict
    kept = mlflow.MlflowClient().download_artifacts(run.info.run_id, "calibrant/report.html")
    assert cal.AuditRecord.load(kept) == record
    rng = np.random.default_rng(3)
    p = rng.uniform(size=3_000)
    frame = pd.DataFrame({"y": (rng.uniform(size=3_000) < p).astype(float), "p": p})
    with mlflow.start_run() as started:
        found = mlflow.models.evaluate(
            data=frame, targets="y", predictions="p", extra_metrics=cal.tracking.mlflow_metrics(), evaluators="default"
        )
        assert cal.tracking.log_record(record, folder="audits/toy") == started.info.run_id
    data = cal.predictions(frame["y"], p)
    certified = cal.certify.rounded(data, alpha=0.025, side="upper")
    assert found.metrics["calibration_error/high"] == certified.high
    assert found.metrics["calibration_error/low"] == cal.certify.raw_lower(data, alpha=0.025, side="lower").low
    for name in ("brier", "log_loss", "auroc"):
        e = getattr(cal.measure, name)(data)
        assert [found.metrics[f"{name}/{k}"] for k in ("value", "low", "high")] == [e.value, e.low, e.high]
    logged = mlflow.get_run(started.info.run_id).data.metrics
    assert logged["audits/toy/everyone/error"] == record.everyone.error.value
    assert logged["brier/value"] == found.metrics["brier/value"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of MLflow
def test_classes_are_no_probabilities_to_mlflow() -> None:
    pytest.importorskip("mlflow", reason="pip install mlflow-skinny to log an audit")
    pd = pytest.importorskip("pandas")
    brier = next(m for m in cal.tracking.mlflow_metrics() if m.name == "brier")
    y, p = pd.Series([0, 1] * 50), pd.Series([0.2, 0.7] * 50)
    pair = pd.DataFrame({0: 1 - p, 1: p})
    plain = brier.eval_fn(p, y).aggregate_results
    assert brier.eval_fn(pair, y).aggregate_results == plain
    assert brier.eval_fn(pd.Series(pair.to_numpy().tolist()), y).aggregate_results == plain
    with pytest.raises(cal.NotComputable, match="predictions are classes"):
        brier.eval_fn(y, y)
    assert brier.eval_fn(p[:1], y[:1]).aggregate_results == {}


@pytest.mark.slow
def test_another_reader_of_junit_counts_the_same(tmp_path: Path) -> None:
    junitparser = pytest.importorskip("junitparser", reason="pip install junitparser to read JUnit's XML by another")
    record, path = factories.mixture("within", ["over", "within", "undecided"]), tmp_path / "j.xml"
    path.write_text(cal.testing.junit(record), encoding="utf-8")
    (suite,) = junitparser.JUnitXml.fromfile(str(path))
    assert (suite.tests, suite.failures, suite.skipped) == (5, 2, 1)
    reported = {case.name: case.result[0].message for case in suite if case.result}
    assert reported["region = region 0"] == "over the limit: at least 2.9 points off"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of PyTorch
def test_torchmetrics_keeps_and_joins_the_counts(tmp_path: Path) -> None:
    """In a collection, by steps, in a checkpoint, and joined as those of two processes are."""
    torch = pytest.importorskip("torch", reason="pip install 'calibrant[torch]' to pass tensors")
    torchmetrics = pytest.importorskip("torchmetrics", reason="pip install torchmetrics for its base class")
    make = cal.tracking.torchmetrics_metric
    rng = np.random.default_rng(3)
    p = torch.tensor(np.sort(rng.uniform(size=3_000)))  # in an order that blocks must not follow
    y = (torch.tensor(rng.uniform(size=3_000)) < p**1.4).int()
    batches = list(zip(p.split(200), y.split(200), strict=True))
    whole = cal.sketch({"y": y.numpy(), "p": p.numpy()}, label="y", score="p")
    both = torchmetrics.MetricCollection({"ours": make(), "auroc": torchmetrics.AUROC(task="binary")})
    for batch in batches:
        both.update(*batch)
    found, ours = both.compute(), both["ours"]
    assert set(found) >= {"auroc", "calibration_error", "calibration_error_low", "calibration_error_high", "ece_high"}
    assert found["calibration_error_low"] == cal.certify.raw_lower(whole, side="lower", alpha=0.025).low > 0
    assert found["calibration_error_high"] == cal.certify.rounded(whole, side="upper", alpha=0.025).high
    assert ours.estimates["ece"].value == cal.measure.ece(whole).value
    steps = make()
    for batch in batches[:3]:
        steps(*batch)  # computes of the batch, and counts it
    torch.save(steps.state_dict(), tmp_path / "metric.pt")
    loaded = make()
    loaded.load_state_dict(torch.load(tmp_path / "metric.pt"))
    for batch in batches[3:]:
        loaded(*batch)
    assert (loaded.counted.sketch.cells == whole.cells).all()
    parts = make(part="a"), make(part="b")
    for k, batch in enumerate(batches):
        parts[k % 2].update(*batch)
    joined, frames = make(), torch.cat([part.metric_state["sketches"][0] for part in parts])
    joined.sketches = frames  # as torchmetrics sets it once it has gathered the states of all processes
    parts[0].merge_state(parts[1])
    assert joined.counted.n == parts[0].counted.n == 3_000
    assert joined.compute() == parts[0].compute()
    joined.reset()
    assert joined.counted.n == 0
