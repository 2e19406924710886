"""Plans of the subgroup test: what is simulated by hand, against the test itself, refusals, the command."""

from __future__ import annotations

import itertools
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logit, ndtr

import calibrant as cal
from calibrant.cli import main
from calibrant.detect.subgroup_tests import WEIGHT
from calibrant.stats.nulls import p_value

cal.detect.rows_needed  # noqa: B018  (its module is loaded, which is called as the function is)
plans = sys.modules["calibrant.detect.rows_needed"]


@pytest.fixture(autouse=True)
def few_draws(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "every_draw" not in request.fixturenames:
        monkeypatch.setattr(plans, "NULL_DRAWS", 511)
        monkeypatch.setattr(plans, "DRAWS", 127)
        monkeypatch.setattr(plans, "SAMPLES", 2)
        monkeypatch.setattr("calibrant.search.nulls.checked_draws", lambda *_: 99)


@pytest.fixture
def every_draw() -> None:
    """No draw is spared."""


def pilot(n: int = 400, seed: int = 0) -> cal.Predictions:
    """Rows of few covariates, so that there are few subgroups."""
    rng = np.random.default_rng(seed)
    p, site, sex = rng.uniform(0.1, 0.6, n), rng.choice(list("abcde"), n), rng.choice(["f", "m"], n)
    return cal.predictions(rng.uniform(size=n) < p, p, {"site": site, "sex": sex})


def plan(data: cal.Predictions, **settings: object) -> plans.SubgroupPlan:
    how = {"share": 0.2, "order": 1, "beta": None, "power": 0.8, "alpha": 0.05} | settings
    return plans.SubgroupPlan.of(data, (how["share"], how["order"], how["beta"]), (how["power"], how["alpha"]), 0)  # type: ignore[arg-type]


def design(data: cal.Predictions, n: int = 400) -> plans.Design:
    own = plan(data)
    return own.design(own.searched(n))


def test_scores_move_on_the_logit_scale_until_their_mean_is_higher_by_the_error() -> None:
    p = np.array([0.05, 0.2, 0.7, 0.4])
    inside = np.array([True, True, False, True])
    out = plans.moved(p, inside, 0.15)
    assert out[~inside] == p[~inside]
    assert (out - p)[inside].mean() == pytest.approx(0.15)
    assert np.ptp((logit(out) - logit(p))[inside]) < 1e-9


def test_what_is_detected_has_a_p_value_that_the_scans_part_of_alpha_reaches() -> None:
    own = design(pilot())
    null = np.concatenate([one.null for one in own.searched])
    assert len(np.unique(null.round(9))) > 0.5 * len(null)  # each sample has draws of its own
    low, margin, high = own.margins
    assert p_value(margin + 1e-6, null) <= WEIGHT * 0.05 < p_value(margin - 1e-6, null)
    assert low < margin < high


def test_power_is_the_share_of_outcomes_that_are_detected() -> None:
    own = design(pilot())
    calibrated, off = own.power(1e-9, 600), own.power(0.3, 100)
    assert 0.01 < calibrated.value < 0.09
    assert calibrated.error >= math.sqrt(calibrated.value * (1 - calibrated.value) / 605)
    assert off.value > 0.95


@pytest.mark.slow
def test_outcomes_are_detected_that_the_test_of_subgroups_rejects() -> None:
    """Its two halves, on the same outcomes; what a table shows first is what all tables show."""
    data = pilot(300)
    whole = design(data, 300)
    own, margins, level = whole.searched[0], whole.margins, (1.0 - WEIGHT) * 0.05
    rng = np.random.default_rng(3)
    rate = np.clip(own.drawn.p + np.where(np.arange(300) % 3 == 0, 0.25, 0.0), 0.0, 1.0)
    y = (rng.random((300, 12)) < rate[:, None]).astype(np.uint8)
    strong = own.strong.p_values(y.T)
    for table in (0, 3):
        seen = own.detected(y, table, margins, level)[1]
        for s in range(12):
            made = cal.predictions(y[:, s], own.drawn.p, own.drawn.covariates)
            scanned = plans.scan_of(plans.tables_of(made, None, 2, 0), plans.MIN_SIZE, 0.0, "two-sided")
            assert seen[s] == (scanned.best().margin > margins[1] or strong[s] <= level)
    for s in range(3):  # and the strong test's p-values are its own, but for ties among its draws
        made = cal.predictions(y[:, s], own.drawn.p, own.drawn.covariates)
        assert strong[s] == pytest.approx(cal.detect.strong_calibration_test(made, draws=99).p_value, abs=0.011)


def test_subgroups_of_pilot_rows_have_about_the_share() -> None:
    own = design(pilot())
    assert len(own.subgroups) == plans.SAMPLES
    for inside, _ in itertools.chain(*own.subgroups):
        assert 0.2 / plans.NEAR <= inside.mean() <= 0.2 * plans.NEAR


@pytest.mark.slow
def test_corners_of_made_up_covariates_have_the_share() -> None:
    for order in (1, 2):
        made = plan(None, share=0.3, order=order)  # type: ignore[arg-type]
        own = made.design(made.searched(500, 2))
        for one, ((inside, table),) in zip(own.searched, own.subgroups, strict=True):
            assert inside.mean() == pytest.approx(0.3, abs=0.001)
            assert tuple(one.scan.family.combined[table]) == (1, 2)[:order]
        assert not np.array_equal(own.searched[0].drawn.p, own.searched[1].drawn.p)


@pytest.mark.parametrize("start", [0.02, 0.2, 0.9])
def test_a_power_is_solved_for(start: float) -> None:
    def power(x: float) -> float:
        return float(ndtr(20.0 * x - 4.0))

    assert power(plans.solved(power, 0.8, (start, 1.0), 0.01)) == pytest.approx(0.8, abs=0.01)
    assert math.isinf(plans.solved(power, 0.8, (start, 0.1), 0.01))


@pytest.mark.slow
def test_rows_and_errors_answer_each_other() -> None:
    data = pilot(1000)
    error = cal.detect.smallest_error(600, data, share=0.2, order=1).value
    assert cal.detect.rows_needed(error, data, share=0.2, order=1).value == pytest.approx(600, rel=0.3)


@pytest.mark.slow
def test_beyond_the_rows_that_are_simulated_errors_shrink_as_their_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MOST_DRAWN", 400)
    data = pilot()
    few, many = (cal.detect.smallest_error(n, data, share=0.2, order=1).value for n in (400, 40_000))
    assert many == pytest.approx(few / 10.0)
    needed = cal.detect.rows_needed(many, data, share=0.2, order=1).value
    assert needed == pytest.approx(40_000, rel=0.01)
    assert math.isinf(cal.detect.rows_needed(1e-6, data, share=0.2, order=1).value)


@pytest.mark.slow(turns=10)
@pytest.mark.usefixtures("every_draw")
@pytest.mark.parametrize(("n", "order", "share"), [(500, 1, 0.2), (3000, 2, 0.1)])
def test_the_power_is_that_of_the_test(n: int, order: int, share: float) -> None:
    """Within five points, and the noise of 150 data sets."""
    source = pilot(n, seed=n)
    own = plan(source, share=share, order=order)
    searched = own.searched(n)
    error, reached = own.error(n, searched)
    planned, promised = own.design(searched), reached.value
    rng, sets, detected = np.random.default_rng(7), 150, 0
    for seed in range(sets):  # each has reference outcomes of its own
        one, some = (v[seed % plans.SAMPLES] for v in (searched, planned.subgroups))
        rate = plans.moved(one.drawn.p, some[seed % len(some)][0], error)
        data = cal.predictions(rng.uniform(size=n) < rate, one.drawn.p, one.drawn.covariates)
        detected += cal.detect.subgroup_test(data, seed=seed).p_value <= 0.05
    assert abs(detected / sets - promised) <= 0.05 + 2.0 * math.sqrt(promised * (1 - promised) / sets)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"error": 0.0}, r"error=0\.0: pass an error in probability units"),
        ({"error": 0.9}, r"error=0\.9: pass less than"),
        ({"share": 1.0}, r"share=1\.0: pass"),
        ({"share": 0.9}, r"share=0\.9: pass a share that a subgroup of one attribute has"),
        ({"order": 3}, "order=3: pass a whole number from 1 to 2"),
        ({"power": 1.0}, r"power=1\.0"),
        ({"alpha": 1e-6}, "alpha=1e-06"),
        ({"beta": (1, 1)}, "either data or a beta distribution"),
    ],
)
def test_refusals(settings: dict[str, object], says: str) -> None:
    how = {"error": 0.2, "data": pilot(), "share": 0.2, "order": 1} | settings
    with pytest.raises(cal.BadInput, match=says):
        cal.detect.rows_needed(**how)  # type: ignore[arg-type]


def test_what_has_no_plan_is_not_computable() -> None:
    data = pilot(60)
    for rows, says in (
        (cal.predictions(data.y, data.p, data.covariates, cluster=np.arange(60) // 3), "cluster= and weights="),
        (cal.predictions(data.y, data.p), "no covariates"),
    ):
        with pytest.raises(cal.NotComputable, match=says):
            cal.detect.smallest_error(100, rows)


@pytest.mark.slow
def test_the_command_plans_for_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, path = pilot(), tmp_path / "pilot.csv"
    columns = (data.y, data.p, data.covariates["site"].to_pylist(), data.covariates["sex"].to_pylist())
    path.write_text("y,p,site,sex\n" + "".join(f"{y},{p},{a},{b}\n" for y, p, a, b in zip(*columns, strict=True)))
    named = ["plan", "--strong", "--data", str(path), "--label", "y", "--score", "p", "--order", "1"]
    assert main([*named, "--rows", "400", "--share", "0.2,0.5"]) == 0
    printed = capsys.readouterr().out
    assert "400 rows: the subgroup test detects these errors with probability 80%." in printed
    assert "20% of rows" in printed
    assert "50% of rows" in printed
    assert main([*named, "--error", "0.3", "--share", "0.2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["method"], found["settings"]["order"]) == ("detect.rows_needed", 1)
    assert main([*named, "--rows", "400", "--error", "0.3"]) == 2
    assert "--rows N" in capsys.readouterr().err
    assert main(["plan", "--strong"]) == 2
