"""One question by itself: every public function of the data from the command, with the settings that Python has."""

from __future__ import annotations

import csv
import inspect
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import calibrant as cal
from calibrant.cli import build_parser, main
from calibrant.cli.methods import DATA, Method, Setting, methods
from calibrant.results import Curve, Estimate, Outcome, frozen

FACES = "measure", "detect", "diagnose", "papers"
OFFERED = {(face, name): m for face in FACES for name, m in methods(face).items()}
NEEDED = {  # what a method cannot do without, as it is typed
    "heterogeneity": "--site age",
    "inferred_gap": "--variable sex --level f",
    "inferred_mean": "--variable age",
    "jeffreys_test": "--by sex",
    "kernel_tuning": "--by-variable age --runs 20 --widths 1 --families gaussian",
    "local_bias": "--variables age --grid 5",
    "net_benefit": "--threshold 0.4",
    "regret": "--threshold 0.4",
    "subgroup_map": "--first age --second sex",
    "published_local_bias": "--variables age",
    "published_local_test": "--variables age",
    "published_variable_curve": "--variable age",
    "variable_curve": "--variable age",
    "vece": "--variable age",
}
SLOW = {  # they fit models, or search
    *("adaptive_chi_square_test", "adaptive_score_cusum_test", "adaptive_score_test"),
    *("multicalibration_score_test", "strong_calibration_test"),
    *("control_chart", "importance", "subgroup_test", "subgroups", "searched_subgroups"),
}
ELSEWHERE = {"missing_labels"}  # of files that lack labels: test_missing_labels.py
ELSEWHERE |= {
    "classwise",
    "jittered_classes",
    "classwise_ece",
    "ranked_probability_score",
}  # of several classes: the test below
BY_A_HORIZON = ("measure", "integrated_calibration_index"), ("diagnose", "curve_by_horizon")
ELSEWHERE |= {name for _, name in BY_A_HORIZON}  # of follow-up: the test after it
COLUMNS = ("--label", "y", "--score", "p")
FOR_PYTHON = {("rate", "kernel_tuning"), ("subgroups", "subgroup_map")}  # arrays and curves; models everywhere


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, n, at = np.random.default_rng(5), 400, tmp_path_factory.mktemp("methods")
    p, age = rng.uniform(0.1, 0.9, n), rng.integers(20, 80, n)
    y = (rng.uniform(size=n) < np.clip(p + np.where(age > 50, 0.1, -0.1), 0, 1)).astype(int)
    table = pa.table({"y": y, "p": p, "age": age, "sex": rng.choice(["f", "m"], n)})
    pa.csv.write_csv(table, at / "log.csv")
    named = table.append_column("id", pa.array([f"u{i}" for i in range(n)]))
    pa.csv.write_csv(named, at / "named.csv")
    pa.csv.write_csv(table.set_column(1, "p", pa.array(np.log(p / (1 - p)))), at / "logits.csv")
    pa.csv.write_csv(table.set_column(1, "p", pa.array([None, *p[1:]])), at / "missing.csv")
    pa.csv.write_csv(table.set_column(0, "y", pa.array(np.ones(n, dtype=int))), at / "ones.csv")
    pa.csv.write_csv(table.slice(0, 10), at / "ten.csv")
    pa.csv.write_csv(table.slice(0, 0), at / "none.csv")
    shares = rng.dirichlet([1, 1, 1], n)
    label = np.array(["ill", "well", "dead"])[[rng.choice(3, p=q) for q in shares]]
    classes = {"y": label, **dict(zip(("ill", "well", "dead"), shares.T, strict=True)), "age": age}
    pa.csv.write_csv(pa.table(classes), at / "classes.csv")
    return at


@pytest.fixture
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def draws(m: Method) -> list[str]:
    least = "99" if m.name == "vece" else "19"
    return ["--draws", least] if any(s.name == "draws" for s in m.settings) and m.name != "rank_variables" else []


def events() -> Iterator[Any]:
    """Every method; quickly those with a setting of a kind, or a result, that none before them has."""
    seen: set[Any] = set()
    for face, name in sorted(n for n in OFFERED if n[1] not in ELSEWHERE):
        m = OFFERED[face, name]
        kinds = {m.returns, *((s.parsed, s.kinds, bool(s.choices)) for s in m.settings)}
        new = name not in SLOW and not kinds <= seen
        seen |= kinds if new else set()
        yield pytest.param(face, name, id=name, marks=[] if new else [pytest.mark.slow])


@pytest.mark.parametrize(("face", "name"), [*events()])
def test_every_method_prints_what_the_function_returns(
    inside: None, capsys: pytest.CaptureFixture[str], face: str, name: str
) -> None:
    m = OFFERED[face, name]
    typed = [*NEEDED.get(name, "").split(), *draws(m)]
    assert main([face, name, "log.csv", *COLUMNS, *typed, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    kinds = {s.name: s for s in m.settings}
    own: dict[str, Any] = {}
    for option, value in zip(typed[::2], typed[1::2], strict=True):
        s = kinds[option[2:].replace("-", "_")]
        own[s.name] = s.read(value) if s.parsed == "one" else tuple(map(s.read, value.split(",")))
    own = {k: v[0] if isinstance(v, tuple) and len(v) == 1 and k != "families" else v for k, v in own.items()}
    data = cal.read("log.csv", label="y", score="p", by=["age", "sex"])
    found = m.function(data, **own)
    assert isinstance(found, m.returns)
    assert frozen(printed) == frozen(json.loads(json.dumps(found.to_dict())))
    assert type(found).from_dict(printed) == found


@pytest.mark.parametrize("name", ["classwise_ece", "ranked_probability_score"])
def test_measures_of_several_classes_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / "log.csv").write_text("kind,a,b,c\n" + "a,.5,.3,.2\nb,.2,.3,.5\nc,.1,.2,.7\n" * 20)
    words = ["measure", name, str(tmp_path / "log.csv"), "--label", "kind", "--scores", "a,b,c", "--json"]
    assert main(words) == 0
    data = cal.multiclass_predictions([0, 1, 2] * 20, [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.1, 0.2, 0.7]] * 20)
    assert json.loads(capsys.readouterr().out)["value"] == getattr(cal.measure, name)(data).value


@pytest.mark.slow
@pytest.mark.parametrize(("face", "name"), BY_A_HORIZON)
def test_methods_of_follow_up_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], face: str, name: str
) -> None:
    rng = np.random.default_rng(0)
    p, ends, lost = rng.uniform(0.1, 0.6, 400).round(3), rng.exponential(300, 400), rng.uniform(10, 900, 400)
    log = pa.table({"risk": p, "days": np.minimum(ends, lost), "died": (ends <= lost).astype(int)})
    pa.csv.write_csv(log, tmp_path / "log.csv")
    asked = {"score": "risk", "time": "days", "event": "died", "horizon": 180, "way": "weights"}
    words = [w for k, v in asked.items() for w in (f"--{k}", str(v))]
    assert main([face, name, str(tmp_path / "log.csv"), *words, "--json"]) == 0
    found = getattr(getattr(cal, face), name)(cal.at_horizon(str(tmp_path / "log.csv"), **asked))
    assert frozen(json.loads(capsys.readouterr().out)) == frozen(json.loads(json.dumps(found.to_dict())))


def test_every_public_function_of_the_data_is_offered() -> None:
    public = {(face, n) for face in FACES for n in getattr(cal, face).__all__}
    # by_group is --by of the measures; a scorer is asked by scikit-learn, and a display is drawn in Python
    left = {("measure", "by_group"), ("measure", "scorer"), ("diagnose", "ReliabilityDisplay")}
    left |= {("measure", "rows_needed"), ("detect", "rows_needed"), ("detect", "smallest_error")}  # the command plans
    left |= {("papers", "perturb"), ("papers", "Perturbed")}  # a command of its own, which writes rows
    assert public - set(OFFERED) == left


def test_every_setting_is_an_option() -> None:
    for m in OFFERED.values():
        every = set(inspect.signature(m.function).parameters) - {DATA, *(s.name for s in m.settings)}
        assert every <= {"models", *(name for name, of in FOR_PYTHON if of == m.name)}, m.name


@pytest.mark.slow
@pytest.mark.parametrize("face", FACES)
def test_help_says_what_each_setting_is(face: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, m in methods(face).items():
        assert main([face, name.replace("_", "-"), "--help"]) == 0
        reported = capsys.readouterr().out
        assert m.line in " ".join(reported.split())
        assert not re.search(r"\\|\*\*[A-Z]|`|\.\. \w+::|:math:", reported), name
        assert f"reference/generated/{m.page(face)}.html" in reported
        assert name in getattr(cal, m.page(face).split(".")[1]).__all__
        (example,) = re.findall(rf"^  (calibrant {face} .+)$", reported, re.MULTILINE)
        build_parser().parse_args(shlex.split(example)[1:])
        for s in m.settings:
            assert f"--{s.name.replace('_', '-')} " in reported or f"--no-{s.name.replace('_', '-')}" in reported, name
        assert m.settings[0].words, name


@pytest.mark.parametrize("face", FACES)
def test_a_face_lists_its_methods(face: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([face, "--help"]) == 0
    reported = capsys.readouterr().out
    assert all(name in reported for of, name in OFFERED if of == face)


# ---- what is printed and written ----


@pytest.mark.slow
def test_an_estimate_an_outcome_and_a_curve_are_told(inside: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "klce", "log.csv", *COLUMNS, "--family", "laplace"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("measure.klce: ")
    assert "95% interval, finite-sample" in out
    assert "laplace" in out
    command = ["papers", "published-local-test", "log.csv", *COLUMNS, "--draws", "19"]
    assert main([*command, "--null", "bounded", "--variables", "age"]) == 0
    assert capsys.readouterr().out.startswith("papers.published_local_test: p = ")
    assert main(["papers", "calibration_function", "log.csv", *COLUMNS, "--no-perturb"]) == 0
    out = capsys.readouterr().out
    assert "more: -o FILE.csv has all" in out
    assert "perturb              False" in out


def test_groups_are_measured_one_by_one(inside: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "brier", "log.csv", *COLUMNS, "--by", "sex", "--out", "brier.csv"]) == 0
    assert "of 2 groups, each separately" in capsys.readouterr().out
    rows = list(csv.DictReader(Path("brier.csv").read_text().splitlines()))
    data = cal.read("log.csv", label="y", score="p", by="sex")
    found = cal.measure.by_group(cal.measure.brier, data, by="sex")
    exact = {k: e.value for k, e in found.items()}
    assert {r["group"]: float(r["value"]) for r in rows} == pytest.approx(exact, rel=1e-3)  # four digits


@pytest.mark.parametrize(
    ("face", "typed", "kind"),
    [
        ("measure", "brier", Estimate),
        ("detect", "spiegelhalter_test", Outcome),
        ("papers", "calibration_function --method total-variation", Curve),
    ],
)
def test_results_are_written(inside: None, face: str, typed: str, kind: Any) -> None:
    for ending in ("json", "csv"):
        assert main([face, *typed.split(), "log.csv", *COLUMNS, "--out", f"out.{ending}"]) == 0
    found = kind.from_dict(json.loads(Path("out.json").read_text()))
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    assert len(rows) == (len(found.columns["x"]) if kind is Curve else 1)
    first = {Estimate: "value", Outcome: "p_value", Curve: "x"}[kind]
    exact = found.columns["x"][0] if kind is Curve else getattr(found, first)
    assert float(rows[0][first]) == pytest.approx(exact, rel=1e-3)  # four digits


@pytest.mark.parametrize(
    "typed",
    [
        "papers calibration_function",
        "papers calibration_function --method total-variation",
        "detect kernel_tuning --by-variable age --runs 20 --widths 1,2 --draws 19",
        "detect kernel_tuning --by-variable age --runs 20 --widths 1 --draws 19",
    ],
)
def test_a_curve_has_a_page_with_its_picture(inside: None, typed: str) -> None:
    face, *more = typed.split()
    assert main([face, *more, "log.csv", *COLUMNS, "--out", "out.html"]) == 0
    page = Path("out.html").read_text()
    assert page.startswith("<!doctype html>")
    assert 'class="plot' in page
    assert "http" not in page


def test_several_classes_are_read(inside: None, capsys: pytest.CaptureFixture[str]) -> None:
    several = ["classes.csv", "--label", "y", "--scores", "ill,well,dead"]
    assert main(["measure", "klce", *several, "--json"]) == 0
    printed = Estimate.from_dict(json.loads(capsys.readouterr().out))
    table = pa.csv.read_csv("classes.csv")
    many = cal.multiclass_predictions(table["y"], table.select(["ill", "well", "dead"]), table.select(["age"]))
    assert printed == cal.measure.klce(many)
    assert main(["detect", "local_calibration_test", *several, "--features", "exact", "--draws", "19"]) == 0
    assert "class_adjusted_p" in capsys.readouterr().out
    assert main(["measure", "klce", *several, "--classes", "dead,ill,well", "--json"]) == 0
    assert Estimate.from_dict(json.loads(capsys.readouterr().out)) != printed
    assert main(["measure", "klce", *several, "--score", "ill"]) == 2
    assert "--score and --scores name the same columns" in capsys.readouterr().err
    assert main(["measure", "brier", *several, "--by", "site"]) == 2
    assert "of several classes no group is measured: leave --by out" in capsys.readouterr().err
    assert main(["measure", "klce", "classes.csv", "--label", "y", "--score", "ill,well,dead", "--json"]) == 0
    assert Estimate.from_dict(json.loads(capsys.readouterr().out)) == printed


def test_what_cannot_be_a_covariate_is_left_out_aloud(inside: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "klce", "named.csv", *COLUMNS, "--json"]) == 0
    reported = capsys.readouterr()
    assert reported.err.startswith("left out id: it looks like an identifier")
    assert json.loads(reported.out)["settings"]["variables"] == ["age", "sex"]
    assert main(["measure", "brier", "missing.csv", *COLUMNS, "--missing", "drop"]) == 0
    assert "left out 1 row without label or score" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sketch_is_asked_like_the_rows(inside: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sketch", "log.csv", *COLUMNS, "--out", "log.sketch"]) == 0
    capsys.readouterr()
    values = []
    for given in (["log.csv", *COLUMNS], ["log.sketch"]):
        assert main(["measure", "brier", *given, "--json"]) == 0
        values.append(json.loads(capsys.readouterr().out)["value"])
    assert values[0] == pytest.approx(values[1], abs=1e-6)
    assert main(["measure", "klce", "log.sketch"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    shutil.copy("log.sketch", "again.sketch")
    assert main(["measure", "brier", "log.sketch", "again.sketch"]) == 2
    assert "leave one out, or pass --allow-same" in capsys.readouterr().err
    assert main(["measure", "brier", "log.sketch", "again.sketch", "--allow-same", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(values[1])


# ---- what is refused, in one line ----


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("measure klce log.csv --label y --score q", "score column 'q' is not in the data; there are:"),
        ("measure klce log.csv --label z --score p", "label column 'z' is not in the data"),
        ("measure klce log.csv --label y", "name the columns: --label for the labels and --score"),
        ("measure klce logits.csv --label y --score p", "did you pass logits?"),
        ("measure klce missing.csv --label y --score p", "pass --missing drop to leave those rows out"),
        ("measure klce none.csv --label y --score p", "no rows"),
        ("measure klce nowhere.csv --label y --score p", "nowhere.csv"),
        ("measure klce log.csv --label y --score p --variables height", "covariate column 'height' is not in the data"),
        ("measure klce log.csv --label y --score p --variables p", "is the label, the score or the key"),
        ("measure klce log.csv --label y --score p --alpha 2", "alpha=2.0: pass"),
        ("measure klce log.csv log.csv --label y --score p", "twice"),
        ("measure klce log.csv --label y --score p --out klce.html", "only curves have a page"),
        ("measure klce log.csv --label y --score p --out klce.docx", "end its name in .json, .csv, .html"),
        ("measure klce log.csv --label y --score p --out log.csv", "is among the files to read"),
        ("measure auroc ones.csv --label y --score p", "both"),
        ("detect kernel_tuning log.csv --label y --score p", "pass one of by_variable="),
        ("detect strong_calibration_test ten.csv --label y --score p", "rows"),
    ],
)
def test_bad_input_is_one_line(inside: None, capsys: pytest.CaptureFixture[str], typed: str, says: str) -> None:
    assert main(typed.split()) == 2
    reported = capsys.readouterr()
    assert reported.err.count("\n") == 1
    assert says in reported.err
    assert not reported.out


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("measure magic log.csv", "no method 'magic'; all methods: calibrant measure --help"),
        ("detect", "METHOD"),
        ("measure ece log.csv --bins few", "'few': pass a whole number"),
        ("detect kernel_tuning log.csv --widths 1,wide", "'1,wide': pass a number"),
        ("measure klce log.csv --family square", "invalid choice: 'square'"),
        ("measure klce log.csv --bins 3", "no option --bins"),
        ("measure vece log.csv", "--variable"),
    ],
)
def test_a_wrong_option_is_named(capsys: pytest.CaptureFixture[str], typed: str, says: str) -> None:
    assert main(typed.split()) == 2
    assert says in capsys.readouterr().err


# ---- a function that does not exist yet ----


def columns_of(
    data: cal.Predictions, *, first: str | None = None, second: str | None = None, alpha: float = 0.05
) -> Outcome:
    """Return which columns were named, and what the data brings with it."""
    held = sorted(data.covariates.schema.names)
    brought = [data.cluster is not None, data.weights is not None]
    return Outcome(
        method="measure.columns_of",
        statistic=alpha,
        p_value=1.0,
        alternative="",
        null="",
        law="",
        settings={"held": held, "brought": brought},
    )


def test_a_column_that_a_setting_names_is_read(
    inside: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever function comes to take it: nothing lists the methods, nor the settings of one."""
    monkeypatch.setattr(cal.measure, "brier", columns_of)
    named = ["--first", "sex", "--second", "age", "--cluster", "sex", "--weights", "age"]
    assert main(["measure", "brier", "log.csv", *COLUMNS, *named, "--json"]) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert settings["held"] == ["age", "sex"]
    assert settings["brought"] == [True, True]


def test_a_value_is_the_strictest_kind_that_takes_it() -> None:
    level = next(s for s in OFFERED["measure", "inferred_mean"].settings if s.name == "level")
    assert isinstance(level, Setting)
    assert [level.read(t) for t in ("3", "3.5", "f")] == [3, 3.5, "f"]
    assert replace(level, kinds=(float,)).read("3") == 3.0


@pytest.mark.parametrize(
    ("command", "more", "stated"),
    [
        ("accept", ["--risk", "0.6", "--missing", "drop"], "left out 1 row without label or score"),
        ("certify", ["--missing", "drop"], "left out 1 row without label or score"),
        ("repair", ["--missing", "drop", "--quick", "--method", "platt"], "left out 1 row without label or score"),
    ],
)
def test_rows_left_out_are_told(
    command: str, more: list[str], stated: str, inside: None, capsys: pytest.CaptureFixture[str]
) -> None:
    main([command, "missing.csv", *COLUMNS, *more])
    assert stated in capsys.readouterr().err
    main([command, "log.csv", *COLUMNS, *more])
    assert "left out" not in capsys.readouterr().err
