"""What looks right and is not: error probabilities over a half, exit statuses that never come, several classes."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cal
from calibrant.arguments import checked_alpha
from calibrant.cli.parser import COMMANDS
from calibrant.cli.run import BAD, ELSEWHERE, UNEXPECTED, main
from calibrant.errors import BadInput, NotComputable

DATA = cal.predictions([0, 1] * 50, np.linspace(0.1, 0.9, 100), {"x": np.arange(100.0)})

# ---- alpha ----


@pytest.mark.parametrize("alpha", [0.5000001, 0.95, 1.0, 0.0])
def test_an_error_probability_over_a_half_is_refused(alpha: float, capsys: pytest.CaptureFixture[str]) -> None:
    why = f"alpha={alpha}: pass an error probability above 0 and at most 0.5, such as 0.05 for level 0.95"
    calls = (
        lambda: cal.audit(DATA, alpha=alpha),
        lambda: cal.compare({"a": DATA.p, "b": DATA.p}, DATA.y, alpha=alpha),
        lambda: cal.certify.rounded(DATA, alpha=alpha),
        lambda: cal.detect.subgroup_test(DATA, alpha=alpha),
        lambda: cal.papers.published_kernel(DATA, alpha=alpha),
    )
    for call in calls:
        with pytest.raises(BadInput) as refused:
            call()
        assert str(refused.value) == why
    assert checked_alpha(0.5) == 0.5
    assert main(["plan", "0.02", "--alpha", str(alpha)]) == BAD
    assert capsys.readouterr().err == f"calibrant: --{why}\n"


# ---- exit statuses ----


def returned(module: object, name: str) -> set[int]:
    """The statuses that a command can return: constants, verdicts, and those of functions that it returns."""
    (function,) = ast.parse(inspect.getsource(getattr(module, name))).body
    out: set[int] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            for part in (node.value.body, node.value.orelse) if isinstance(node.value, ast.IfExp) else (node.value,):
                if isinstance(part, ast.Attribute) and part.attr == "exit_status":
                    out |= {0, 1, 3}
                elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
                    out |= returned(module, part.func.id)
                else:
                    value = vars(module)[part.id] if isinstance(part, ast.Name) else ast.literal_eval(part)
                    assert isinstance(value, int)
                    out.add(value)
    return out


@pytest.mark.parametrize("command", [c for c in COMMANDS if c not in ("measure", "detect", "diagnose")])
def test_the_help_lists_the_statuses_that_a_command_can_return(command: str) -> None:
    module = import_module(f"calibrant.cli.{ELSEWHERE.get(command, 'commands')}")
    listed = {int(n) for n in re.findall(r"^  (\d+) ", COMMANDS[command][3], flags=re.M)}
    if command == "repair":  # its statuses are named in a table
        assert listed == {0, 1, 2, 3, UNEXPECTED}
    else:
        assert listed | {BAD, UNEXPECTED} == returned(module, command) | {BAD, UNEXPECTED}


# ---- several classes ----


def test_what_reads_one_score_says_so_of_several_classes() -> None:
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 60)
    several = cal.multiclass_predictions(np.arange(60) % 3, p, {"x": np.arange(60.0)})
    readers = [f for name in dir(cal.papers) if callable(f := getattr(cal.papers, name))]
    every = {f: list(inspect.signature(f).parameters.values()) for f in readers}
    alone = {f for f, (_, *rest) in every.items() if all(r.default is not r.empty for r in rest)}
    take_classes = {cal.papers.reliability_diagram, cal.papers.published_variable_table}  # the most probable one
    take_classes |= {cal.papers.jittered_classes, cal.papers.perturb}
    readers = [f for f in alone - take_classes if every[f][0].name == "data"]
    assert cal.papers.published_kernel in readers
    for function in readers:
        with pytest.raises((BadInput, NotComputable), match="several classes") as refused:
            function(several)
        assert "\n" not in str(refused.value)


# ---- models of the user ----


@pytest.mark.slow
def test_a_pipeline_takes_weights_and_one_by_names_is_refused_in_a_line() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 300)
    y = rng.uniform(size=300) < p
    data = cal.predictions(y, p, {"x": rng.normal(size=300)}, weights=rng.uniform(0.5, 1.0, 300))
    how = {"draws": 19, "folds": 2}
    piped = make_pipeline(StandardScaler(), LogisticRegression())
    plain = cal.detect.strong_calibration_test(data, models=[("m", LogisticRegression(C=1e6))], **how)
    assert 0.0 < cal.detect.strong_calibration_test(data, models=[("m", piped)], **how).p_value <= 1.0
    assert 0.0 < plain.p_value <= 1.0
    named = make_pipeline(ColumnTransformer([("x", StandardScaler(), ["x"])]), LogisticRegression())
    with pytest.raises(BadInput, match="'m' cannot be fitted to an array of standardised numbers without names") as why:
        cal.detect.strong_calibration_test(data, models=[("m", named)], **how)
    assert "\n" not in str(why.value)


# ---- names ----


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        (cal, "ece", "write calibrant.measure.ece"),
        (cal, "expected_calibration_error", "write calibrant.measure.ece"),
        (cal.certify, "published_kernel", "write calibrant.papers.published_kernel"),
        (cal.detect, "adaptive_score_test", "write calibrant.papers.adaptive_score_test"),
        (cal.repair, "compare", "write calibrant.repair.evaluate"),
        (cal.repair, "Isotonc", "did you mean Isotonic"),
        (cal.measure, "brierr", "did you mean brier"),
        (cal.testing, "assert_met", "write calibrant.testing.assert_within"),
        (import_module("calibrant.data"), "load_employmnt", "no attribute"),
    ],
)
def test_a_name_that_is_not_there_says_what_to_write(module: object, name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as error:
        getattr(module, name)
    assert instead in str(error.value)
    assert not hasattr(module, "_private")


def test_names_of_scikit_learn_are_those_of_ours() -> None:
    assert cal.measure.roc_auc is cal.measure.auroc
    assert cal.detect.hosmer_lemeshow is cal.detect.hosmer_lemeshow_test
    assert cal.repair.CalibratedClassifierCV is cal.repair.CalibratedClassifier
    assert "roc_auc" not in dir(cal.measure)
    with pytest.raises(TypeError, match=r"calibrant.certify is a module: name the function, such as .*rounded"):
        cal.certify(DATA)  # type: ignore[operator]
