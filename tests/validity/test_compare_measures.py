"""Whatever is measured of two models, a verdict is wrong at most alpha of the time; what breaks this is found out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import calibrant as cal
from calibrant.errors import NotComputable
from calibrant.stats.decisions.paired import PairedUnits
from calibrant.stats.measures import placements
from validity.acceptance import check, count, refuted
from validity.score_pairs import DESIGNS, Kinds, false, missed

ALPHA = 0.05
MEASURES = ("auroc", "calibration_error", "brier", "log_loss", "error")
OFTEN = {"auroc": 80, "calibration_error": 8, "brier": 40, "log_loss": 40, "error": 40}
HELD = {  # the designs of a quick run; of the measures that test_compare holds to designs of its own, a few
    "auroc": tuple(DESIGNS),
    "calibration_error": ("too high by six points", "rare events", "not in whole per cent", "units of five alike"),
    "brier": ("one row in two hundred is turned", "three models"),
    "log_loss": ("one row in two hundred is turned", "six groups"),
    "error": ("one row in two hundred is turned", "three values, ties"),
}


def wrong(design: Kinds, measure: str, seed: int) -> bool:
    """Tell whether something wrong is said; what a sample cannot answer, such as one without cases, says nothing."""
    try:
        return design.wrong(seed, measure, design.tight(measure))
    except NotComputable:
        return False


@pytest.mark.parametrize(("measure", "name"), [(m, name) for m in MEASURES for name in HELD[m]])
def test_verdicts_are_kept(measure: str, name: str) -> None:
    check(lambda seed: wrong(DESIGNS[name], measure, seed), OFTEN[measure], ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("measure", MEASURES)
def test_verdicts_are_kept_at_size(measure: str, name: str) -> None:
    check(lambda seed: wrong(DESIGNS[name], measure, seed), 1000, ALPHA)


def audits_wrong(seed: int, runs_alpha: float) -> bool:
    """Audit two models on rows of their own, and hold the audits against each other."""
    design = DESIGNS["too high by six points"]
    kept = {}
    for i, name in enumerate(("old", "new")):
        models, y, _ = Kinds(600, design.share, design.eta, design.scores).drawn(2 * seed + i)
        kept[name] = cal.audit(cal.predictions(y, models[name]), quick=True, alpha=runs_alpha, seed=seed)
    truth, margin = design.truth("calibration_error", "new"), design.tight("calibration_error")
    found = cal.compare(kept, margin=margin).differences[0]
    return missed((found.interval.low, found.interval.high), truth) or false(found.verdict, truth, margin)


def test_verdicts_on_two_audits_are_kept() -> None:
    """Of alpha a fifth each, so that few data sets tell; the two add up."""
    check(lambda seed: audits_wrong(seed, 0.2), 12, 0.4)


@pytest.mark.nightly
def test_verdicts_on_two_audits_are_kept_at_size() -> None:
    check(lambda seed: audits_wrong(seed, 0.05), 1000, 0.1)


def test_an_area_without_noise_misses_no_more_than_alpha() -> None:
    """Tight: pairs are right or reversed by one coin a row, so that what is bet on varies as much as it can."""

    def off(seed: int) -> bool:
        rng = np.random.default_rng([seed, 31])
        y = np.arange(240) % 2
        new = np.where(y == 1, np.where(rng.uniform(size=240) < 0.9, 0.9, 0.1), 0.5)
        found = cal.compare({"old": np.full(240, 0.5), "new": new}, y, measure="auroc", alpha=0.4, seed=seed)
        return -0.4 not in found.differences[0].interval

    check(off, 300, 0.4)


# ---- saboteurs: each must be refuted on some design ----


def delong(models: dict[str, np.ndarray], y: np.ndarray) -> tuple[float, float]:
    """Return DeLong's 95 % interval of how much smaller the new area is, from placement values."""
    ones = np.ones(len(y))
    (old, one), (new, two) = (placements(p, y == 1, ones) for p in models.values())
    error = np.sqrt(sum(np.var((two - one)[rows], ddof=1) / rows.sum() for rows in (y == 1, y == 0)))
    reach = norm.ppf(0.975) * error
    return old - new - reach, old - new + reach


@pytest.mark.parametrize("name", ["one row in two hundred is turned", "apart, and few cases"])
def test_delong_is_found_out(name: str) -> None:
    design = DESIGNS[name]
    truth = design.truth("auroc", "new")

    def off(seed: int) -> bool:
        models, y, _ = design.drawn(seed)
        return y.sum() > 1 and missed(delong(models, y), truth)

    assert refuted(count(off, 150), 150, ALPHA)


def bets(value: np.ndarray) -> tuple[float, float]:
    return PairedUnits(value, np.ones(len(value)), 1.0, 1.0).limits(ALPHA)


def test_pairs_that_share_rows_taken_as_independent_are_found_out() -> None:
    """Every case against the same twenty others."""
    design = DESIGNS["ranked worse"]
    truth = design.truth("auroc", "new")

    def off(seed: int) -> bool:
        models, y, _ = design.drawn(seed)
        case, few = np.flatnonzero(y == 1), np.flatnonzero(y == 0)[:20]
        old, new = (((p[case][:, None] > p[few]) + 0.5 * (p[case][:, None] == p[few])).ravel() for p in models.values())
        return missed(bets(np.random.default_rng(seed).permutation(old - new)), truth)

    assert refuted(count(off, 150), 150, ALPHA)


def test_rows_of_units_taken_as_independent_are_found_out() -> None:
    design = replace(DESIGNS["units of five alike"], size=30, n=3000)
    truth = design.truth("auroc", "new")

    def off(seed: int) -> bool:
        models, y, _ = design.drawn(seed)
        found = cal.compare(models, y, measure="auroc", alpha=0.2, seed=seed).differences[0].interval
        return missed((found.low, found.high), truth)

    assert refuted(count(off, 60), 60, 0.2)


def test_a_bootstrap_of_the_error_of_bins_is_found_out() -> None:
    """The error of many bins is mostly noise, and more of it where a score takes more values."""
    design = DESIGNS["the new says a constant"]
    truth = design.truth("calibration_error", "new")

    def error(p: np.ndarray, y: np.ndarray) -> float:
        return float(np.abs(np.bincount((100 * p + 0.5).astype(int), p - y)).sum()) / len(y)

    def off(seed: int) -> bool:
        models, y, _ = design.drawn(seed)
        rng, n = np.random.default_rng(seed), len(y)
        drawn = [rng.integers(0, n, n) for _ in range(200)]
        d = [error(models["new"][i], y[i]) - error(models["old"][i], y[i]) for i in drawn]
        return missed((float(np.quantile(d, 0.025)), float(np.quantile(d, 0.975))), truth)

    assert refuted(count(off, 60), 60, ALPHA)


def test_floors_in_place_of_a_floor_and_a_ceiling_are_found_out() -> None:
    """Less the old's floor from the new's own: each may be far below its error."""
    design = DESIGNS["too high by six points"]
    truth = design.truth("calibration_error", "new")

    def off(seed: int) -> bool:
        models, y, _ = design.drawn(seed)
        low = [cal.certify.raw_lower(cal.predictions(y, p), alpha=ALPHA, seed=seed).low for p in models.values()]
        return missed((-1.0, low[1] - low[0]), truth)

    assert refuted(count(off, 15), 15, ALPHA)
