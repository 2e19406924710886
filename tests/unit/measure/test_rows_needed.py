"""Rows for intervals of measures: by hand, against the intervals themselves, refusals, the command."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli import main

ALL = {"observed_expected": 0.2, "calibration_slope": 0.3, "auroc": 0.1}


def drawn(n: int, seed: int = 0, values: int = 0) -> cal.Predictions:
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 8, n)
    p = np.ceil(p * values) / (values + 1) if values else p
    return cal.predictions(rng.uniform(size=n) < p, p)


def test_rows_of_observed_over_expected_by_hand() -> None:
    """An interval from exp(-1.96 SE) to exp(1.96 SE), with SE^2 = (1 - rate) / (n rate)."""
    n = cal.measure.rows_needed({"observed_expected": 0.3}, rate=0.1).value
    for rows, is_narrow in ((n, True), (n - 1, False)):
        half = 1.959964 * math.sqrt(0.9 / (rows * 0.1))
        assert (math.exp(half) - math.exp(-half) <= 0.3) == is_narrow


def test_rows_of_the_auroc_solve_newcombes_variance() -> None:
    n, c, rate = cal.measure.rows_needed({"auroc": 0.1}, rate=0.2, expected_auroc=0.8).value, 0.8, 0.2

    def error(n: float) -> float:
        inner = 1 + (n / 2 - 1) * (1 - c) / (2 - c) + (n / 2 - 1) * c / (1 + c)
        return math.sqrt(c * (1 - c) * inner / (n**2 * rate * (1 - rate)))

    assert 2 * 1.959964 * error(n) <= 0.1 < 2 * 1.959964 * error(n - 1)


def test_the_auroc_expected_is_that_of_calibrated_scores() -> None:
    """Two scores: an event outscores a non-event with the probability by hand."""
    p = np.array([0.2] * 3 + [0.6])
    plan = cal.measure.rows_needed({"auroc": 0.1}, cal.predictions([0, 0, 1, 1], p))
    high, low = 0.6, 3 * 0.2
    better = high * 3 * 0.8 + 0.5 * (high * 0.4 + low * 2.4)
    assert plan.settings["expected_auroc"] == pytest.approx(better / ((high + low) * 2.8))
    assert plan.settings["rate"] == pytest.approx(0.3)


def test_a_beta_distribution_is_that_of_its_draws() -> None:
    by_beta = cal.measure.rows_needed(ALL, beta=(2, 8)).settings["rows"]
    by_rows = cal.measure.rows_needed(ALL, drawn(100_000)).settings["rows"]
    assert list(by_rows.values()) == pytest.approx(list(by_beta.values()), rel=0.02)
    assert cal.measure.rows_needed(ALL).value == cal.measure.rows_needed(ALL, beta=(1, 1)).value


@pytest.mark.parametrize("name", ALL)
def test_intervals_of_the_planned_rows_are_as_wide(name: str) -> None:
    n = int(cal.measure.rows_needed({name: ALL[name]}, beta=(2, 8)).value)
    widths = [e.interval.high - e.interval.low for e in (getattr(cal.measure, name)(drawn(n, s)) for s in range(6))]
    assert np.mean(widths) == pytest.approx(ALL[name], rel=0.08)


def test_a_sketch_is_planned_for_as_its_rows(tmp_path: Path) -> None:
    data = drawn(5000, values=50)
    sketch = cal.sketch({"y": data.y, "p": data.p}, label="y", score="p")
    rows = [cal.measure.rows_needed(ALL, of).settings["rows"] for of in (data, sketch)]
    assert list(rows[1].values()) == pytest.approx(list(rows[0].values()), rel=0.01)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"widths": {}}, "widths="),
        ({"widths": {"brier": 0.1}}, "observed_expected, calibration_slope, auroc"),
        ({"widths": {"auroc": 2}}, "width of auroc=2: pass a number above 0 and at most 1"),
        ({"beta": (2,)}, "beta="),
        ({"beta": (0, 1)}, "beta="),
        ({"rate": 1.0}, r"rate=1\.0"),
        ({"expected_auroc": 0}, "expected_auroc=0"),
        ({"alpha": 0.7}, r"alpha=0\.7"),
        ({"data": drawn(50), "beta": (1, 1)}, "beta="),
    ],
)
def test_refusals(settings: dict[str, object], says: str) -> None:
    with pytest.raises(cal.BadInput, match=says):
        cal.measure.rows_needed(**{"widths": ALL, **settings})  # type: ignore[arg-type]


def test_what_has_no_plan_is_not_computable() -> None:
    with pytest.raises(cal.NotComputable, match="leave cluster= and weights= out"):
        cal.measure.rows_needed(ALL, cal.predictions([0, 1, 0], [0.1, 0.5, 0.2], weights=[1, 2, 1]))
    with pytest.raises(cal.NotComputable, match="all alike"):
        cal.measure.rows_needed({"calibration_slope": 0.2}, cal.predictions([0, 1], [0.3, 0.3]))
    with pytest.raises(cal.NotComputable, match="0 or 1"):
        cal.measure.rows_needed({"calibration_slope": 0.2}, cal.predictions([0, 1], [0.0, 1.0]), rate=0.5)


def test_the_command_prints_each_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--oe", "0.2", "--slope", "0.3", "--auroc", "0.1", "--beta", "2,8", "--rate", "0.1"]) == 0
    printed = capsys.readouterr().out
    rows = cal.measure.rows_needed(ALL, beta=(2, 8), rate=0.1).settings["rows"]
    assert all(f"{n:,}" in printed for n in rows.values())
    assert "10% events" in printed
    data = drawn(500)
    path = tmp_path / "pilot.csv"
    path.write_text("y,p\n" + "".join(f"{y},{p}\n" for y, p in zip(data.y, data.p, strict=True)))
    assert main(["plan", "--auroc", "0.1", "--data", str(path), "--label", "y", "--score", "p", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["method"] == "measure.rows_needed"
    assert found["assumes"] == "scores distributed as given"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "pass a gap such as 0.02, a log (--data), --strong"),
        (["0.02", "--slope", "0.2"], "one thing at a time"),
        (["0.02", "--beta", "2,8"], "--beta does not go with a gap"),
        (["--slope", "0.2", "--steps", "50"], "--steps does not go with --slope"),
        (["--auroc", "0.2", "--expected-auroc", "2"], "--expected-auroc=2.0: pass"),
        (["--oe", "0.2", "--label", "y"], "go with --data"),
        (["--strong", "--oe", "0.2"], "one thing at a time"),
        (["--data", "x.csv", "--rate", "0.1"], "--rate does not go with what a log can decide"),
    ],
)
def test_the_command_plans_one_thing(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *words]) == 2
    assert says in capsys.readouterr().err
