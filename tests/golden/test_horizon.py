"""Outcomes by a horizon against programs not written here.

`data/horizon.csv` has 240 rows: exponential times of an event (kind 1) and of a competing one (2), follow-up that ends
at random (0), and a score, which is not quite calibrated. `data/horizon.json` holds at 365 what lifelines says of them
(versions inside): `KaplanMeierFitter` with kind 2 as the end of follow-up, Greenwood's standard error by its table of
events, `AalenJohansenFitter` with its variance; and scikit-survival: `brier_score`, `cumulative_dynamic_auc` and
`CensoringDistributionEstimator`, with the same rows as training and test data; `scaled_brier` is one less its score
over that of the Kaplan-Meier estimate for everyone. `data/horizon_r.json` is what `data/horizon.R` prints, by R's
survival: `survfit`, and `coxph` on a restricted cubic spline, whose convergence is good to nine digits; with competing
events after `finegray`.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.missing.survival import Cohort, cloglog, fit
from calibrant.views.unlabelled import FollowedRows

DATA = Path(__file__).parent / "data"
THEIRS = json.loads((DATA / "horizon.json").read_text(encoding="utf-8"))
with (DATA / "horizon.csv").open(encoding="utf-8", newline="") as file:
    LINES = list(csv.DictReader(file))
ROWS = {name: np.array([float(line[name]) for line in LINES]) for name in LINES[0]}
ROWS["alone"] = ROWS["kind"] == 1
R = json.loads((DATA / "horizon_r.json").read_text(encoding="utf-8"))
EXACT, CONVERGED = 1e-12, 1e-7


@pytest.fixture(scope="module")
def alone() -> cal.Predictions:
    return cal.at_horizon(ROWS, score="score", time="time", event="alone", horizon=365, way="weights")


@pytest.fixture(scope="module")
def competing() -> cal.Predictions:
    return cal.at_horizon(ROWS, score="score", time="time", event="kind", competing="2", horizon=365, way="weights")


def test_kaplan_meier_and_greenwood_are_those_of_lifelines(alone: cal.Predictions) -> None:
    rows = FollowedRows.of(alone)
    assert rows.risk == pytest.approx(THEIRS["risk"], rel=EXACT)
    assert rows.risk_error == pytest.approx(THEIRS["risk_error"], rel=EXACT)


def test_aalen_johansen_and_its_variance_are_those_of_lifelines(competing: cal.Predictions) -> None:
    rows = FollowedRows.of(competing)
    assert rows.risk == pytest.approx(THEIRS["competing_risk"], rel=EXACT)
    assert rows.risk_error == pytest.approx(THEIRS["competing_risk_error"], rel=EXACT)
    found = cal.measure.observed_expected(competing)
    assert found.value == pytest.approx(THEIRS["competing_risk"] / ROWS["score"].mean(), rel=EXACT)


def test_brier_score_and_auroc_are_those_of_scikit_survival(alone: cal.Predictions) -> None:
    assert cal.measure.brier(alone).value == pytest.approx(THEIRS["brier"], rel=EXACT)
    assert cal.measure.auroc(alone).value == pytest.approx(THEIRS["auroc"], rel=EXACT)


def test_the_scaled_brier_score_is_that_of_scikit_survival(alone: cal.Predictions) -> None:
    assert cal.measure.brier(alone).settings["scaled"] == pytest.approx(THEIRS["scaled_brier"], rel=EXACT)


def test_risks_and_their_errors_are_those_of_r(alone: cal.Predictions, competing: cal.Predictions) -> None:
    rows = FollowedRows.of(alone)
    assert (rows.risk, rows.risk_error) == pytest.approx(
        (R["survival"]["risk"], R["survival"]["risk_error"]), rel=EXACT
    )
    assert FollowedRows.of(competing).risk == pytest.approx(R["survival"]["competing_risk"], rel=EXACT)


@pytest.mark.parametrize("knots", [3, 5])
def test_the_integrated_calibration_index_is_that_of_r(alone: cal.Predictions, knots: int) -> None:
    found, theirs = cal.measure.integrated_calibration_index(alone, knots=knots), R["ici"][str(knots)]
    assert found.value == pytest.approx(theirs["ici"], rel=CONVERGED)
    for name in ("e50", "e90", "emax"):
        assert found.settings[name] == pytest.approx(theirs[name], rel=CONVERGED)


@pytest.mark.parametrize("knots", [3, 5])
def test_with_competing_events_the_index_is_that_of_r(competing: cal.Predictions, knots: int) -> None:
    found, theirs = cal.measure.integrated_calibration_index(competing, knots=knots), R["competing_ici"][str(knots)]
    assert found.value == pytest.approx(theirs["ici"], rel=CONVERGED)
    for name in ("e50", "e90", "emax"):
        assert found.settings[name] == pytest.approx(theirs[name], rel=CONVERGED)


@pytest.mark.parametrize(("kind", "of"), [("alone", "ties"), ("kind", "competing_ties")])
def test_ties_of_coxs_model_and_of_fine_and_grays_are_those_of_r(kind: str, of: str) -> None:
    months = np.ceil(ROWS["time"] / 30.0)
    made = fit(Cohort.of(months, ROWS[kind].astype(np.int8), cloglog(ROWS["score"])[:, None]), 12.0)
    assert made.beta[0] == pytest.approx(R["survival"][f"{of}_beta"], rel=CONVERGED)
    assert made.hazard == pytest.approx(R["survival"][f"{of}_hazard"], rel=CONVERGED)


def test_the_law_of_censoring_is_that_of_scikit_survival(alone: cal.Predictions) -> None:
    followed = FollowedRows.of(alone).remaining[0].before(np.array([365.0]))[0]
    assert followed == pytest.approx(THEIRS["censoring_at_horizon"], rel=EXACT)
