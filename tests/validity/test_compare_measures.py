"""Whatever is measured of two models, a verdict is wrong at most alpha of the time."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors import NotComputable
from validity.acceptance import SETS, check
from validity.score_pairs import DESIGNS, Kinds, false, missed

ALPHA = 0.05
MEASURES = ("auroc", "calibration_error", "brier", "log_loss", "error")
OFTEN = {"auroc": SETS, "calibration_error": 300, "brier": SETS, "log_loss": SETS, "error": SETS}
AT_ONCE = {  # the designs of a quick run; of the measures that test_compare holds to designs of its own, a few
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


@pytest.mark.parametrize(("measure", "name"), [(m, name) for m in MEASURES for name in AT_ONCE[m]])
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
    check(lambda seed: audits_wrong(seed, 0.2), 60, 0.4)


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

    check(off, SETS, 0.4)
