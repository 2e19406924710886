"""What to read and what to judge: refused once, in one line, by the names of whoever asked."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.arguments import COMMAND, PYTHON
from calibrant.audit.judging import Judging, verdict_of, worst
from calibrant.data.progress import ProgressEvent, counted
from calibrant.data.reading import Reading
from calibrant.errors import BadInput

GATES = ("local-calibration", "strong-calibration")
ROWS = {"y": [0, 1, 1, 0] * 20, "p": [0.2, 0.7, 0.9, 0.4] * 20, "g": ["a", "b"] * 40}
BOTH = pytest.mark.parametrize(("caller", "stated"), [(PYTHON, "{}="), (COMMAND, "--{}")], ids=["python", "command"])


@BOTH
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"limit": 1.5}, "1.5: pass a number between 0 and 1, such as 0.02 for two points"),
        ({"limit": True}, "True: pass a number between 0 and 1"),
        ({"steps": 1}, "1: pass a whole number of steps from 2 to 1,024"),
        ({"alpha": 0}, "0: pass an error probability above 0 and at most 0.5, such as 0.05 for level 0.95"),
        ({"tolerance": 1}, "1: pass a number from 0 to below 1"),
    ],
)
def test_a_setting_is_refused_by_its_name(caller: Any, stated: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput) as refused:
        Judging.of(gates=GATES, caller=caller, **given)
    name = stated.format(next(iter(given))).removesuffix("=")
    assert str(refused.value).startswith(f"{name}={words}")


@pytest.mark.parametrize(
    ("caller", "quick", "words"),
    [
        (PYTHON, False, "fail_on='brier': pass 'local-calibration', 'strong-calibration' or 'error-shown'"),
        (COMMAND, False, "--fail-on='brier': pass 'local-calibration', 'strong-calibration' or 'error-shown'"),
        (PYTHON, True, "fail_on='local-calibration' needs the tests that quick leaves out: drop one of the two"),
        (COMMAND, True, "--fail-on='local-calibration' needs the tests that --quick leaves out: drop one of the two"),
    ],
)
def test_a_gate_must_be_a_test_that_is_run(caller: Any, quick: bool, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        Judging.of(gates=GATES, caller=caller, quick=quick, fail_on="local-calibration" if quick else "brier")
    assert str(refused.value) == words


@BOTH
def test_what_a_source_brings_is_not_given_again(caller: Any, stated: str) -> None:
    whole = cal.sketch(ROWS, label="y", score="p", seed=3)

    def refusal(asked: Reading, refuse: Any) -> str:
        with pytest.raises(BadInput) as refused:
            refuse(asked)
        return str(refused.value)

    label, by, seed, drop = (stated.format(n) for n in ("label", "by", "seed", "drop_missing"))
    drop = "--missing drop" if caller is COMMAND else drop
    asked = Reading.of(caller=caller, label="y", by="g", seed=4)
    reported = refusal(asked, lambda a: a.for_a_sketch(whole.spec))
    assert reported == f"a sketch brings its own columns, groups and seed: leave {label}, {by} and {seed} out"
    Reading.of(caller=caller, variables="*", seed=3).for_a_sketch(whole.spec)
    reported = refusal(Reading.of(caller=caller, label="y", drop_missing=True), lambda a: a.for_predictions())
    assert reported == f"predictions bring their own labels and scores: leave {label} and {drop} out"
    like = "--like" if caller is COMMAND else "spec="
    reported = refusal(Reading.of(caller=caller, spec=whole.spec, by="g"), lambda a: a.for_a_spec())
    assert reported == f"{like} brings columns, groups, key, positive value and seed: leave {by} out"
    Reading.of(caller=caller, spec=whole.spec, drop_missing=True).for_a_spec()
    reported = refusal(Reading.of(caller=caller, label="y"), lambda a: a.named())
    assert reported.startswith(f"name the columns: {label} for the labels")


@BOTH
@pytest.mark.parametrize(
    "given", [{"quick": "no"}, {"name": 3}, {"outcome": b"employed"}, {"date": dt.date(2026, 1, 31)}]
)
def test_a_flag_is_true_or_false_and_words_are_text(caller: Any, stated: str, given: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        Judging.of(gates=GATES, caller=caller, **given)
    name, value = next(iter(given.items()))
    fix = "True or False" if name == "quick" else "text, such as '2026-01-31'" if name == "date" else "text"
    called = stated.format(name).removesuffix("=")
    if caller is COMMAND and name != "quick":
        called = f"--about: {name}"  # the command has words of the report in a file
    assert str(refused.value) == f"{called}={value!r}: pass {fix}"


@pytest.mark.parametrize("flag", ["drop_missing", "intersections", "tests"])
@pytest.mark.parametrize("value", ["no", "yes", 1, None])
def test_a_flag_of_reading_is_true_or_false(flag: str, value: Any) -> None:
    with pytest.raises(BadInput, match=f"^{flag}={value!r}: pass True or False$"):
        cal.sketch(ROWS, label="y", score="p", **{flag: value})


def test_predictions_check_flag_and_name() -> None:
    arrays: Any = [0, 1], [0.2, 0.7]
    with pytest.raises(BadInput, match=r"^drop_missing='no': pass True or False$"):
        cal.predictions(*arrays, drop_missing="no")  # type: ignore[arg-type]
    for value in (3, None):
        with pytest.raises(BadInput, match=f"^name={value}: pass text$"):
            cal.predictions(*arrays, name=value)  # type: ignore[arg-type]
        with pytest.raises(BadInput, match=f"^name={value}: pass text$"):
            cal.multiclass_predictions([0, 1, 2], np.eye(3), name=value)  # type: ignore[arg-type]


def test_sketch_and_audit_refuse_alike() -> None:
    data = cal.predictions([0, 1] * 30, [0.2, 0.7] * 30)
    for entry in (cal.sketch, cal.audit):
        with pytest.raises(BadInput, match=r"^predictions bring .* leave label= and key= out$"):
            entry(data, label="y", key="id")
        with pytest.raises(BadInput, match=r"^a sketch brings .* leave by= out$"):
            entry(cal.sketch(data), by="g")
        with pytest.raises(BadInput, match=r"^name the columns: label= for the labels and score= for the prob"):
            entry(ROWS, label="y")
        with pytest.raises(BadInput, match=r"arrays are calibrant.predictions\(y_true, y_prob\)"):
            entry([0.2, 0.7], label="y", score="p")
    with pytest.raises(BadInput, match="several classes"):
        cal.sketch(cal.multiclass_predictions([0, 1, 2], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]))


def test_the_verdict_is_three_valued_and_the_worst_counts() -> None:
    assert [verdict_of(*r, 0.02) for r in ((0.021, 0.03), (0.0, 0.02), (0.02, 0.03))] == ["over", "within", "undecided"]
    assert verdict_of(0.5, 0.6, None) == "not_checked"
    assert [worst(v) for v in (("within", "undecided"), ("undecided", "over"), ())] == [
        "undecided",
        "over",
        "not_checked",
    ]


def test_progress_is_told_what_is_done_and_the_rows_so_far() -> None:
    reported: list[ProgressEvent] = []
    add = counted(reported.append, "reading", 9)
    assert add is not None
    add(3)
    add(4)
    assert reported == [ProgressEvent(step="reading", rows=n, of=9) for n in (0, 3, 7)]
    assert counted(None, "reading") is None
    reported.clear()
    cal.audit(ROWS, label="y", score="p", quick=True, progress=reported.append)
    assert reported[0].step.startswith("data: 80 rows"), "a look comes first"
    steps = [d.step for d in reported]
    assert steps.index("reading") < steps.index("certifying everyone")
    assert steps[-1] == "ranking variables"
    assert {(d.rows, d.of) for d in reported if d.step == "reading"} == {(0, 80), (80, 80)}
    shares = [d.share for d in reported if d.share is not None]
    assert shares == sorted(shares)
    assert all(d.share is not None and d.left is not None for d in reported if "certifying" in d.step)
