"""Verdicts on models are wrong at most alpha of the time, on designs chosen to hurt."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from validity.acceptance import SETS, check
from validity.compare_designs import DESIGNS, MARGIN

ALPHA = 0.05


@pytest.mark.parametrize("name", DESIGNS)
def test_verdicts_of_a_population_are_kept(name: str) -> None:
    design = DESIGNS[name]
    margin = min(MARGIN, max(design.truth, 0.0)) * (1.0 - 1e-8)
    check(lambda seed: design.wrong(seed, margin), SETS, ALPHA)


@pytest.mark.parametrize("name", ["rare events", "one row in two hundred is far off", "units in groups"])
def test_a_margin_made_of_the_rate_keeps_verdicts(name: str) -> None:
    """It varies with the rows, and every verdict is held against the margin that it was given."""
    check(lambda seed: DESIGNS[name].wrong(seed, None), SETS, ALPHA)


@pytest.mark.parametrize("name", ["worse by just over the margin", "the same, few rows", "units of five alike"])
@pytest.mark.parametrize("measure", ["brier"])
def test_verdicts_of_these_rows_are_kept(name: str, measure: str) -> None:
    """Moved by a constant, rows differ in Brier score by the same amount given their scores."""
    design = DESIGNS[name]
    check(lambda seed: design.wrong(seed, MARGIN, measure=measure, target="rows"), SETS, ALPHA)


def test_log_loss_of_a_calibrated_score_is_never_beaten() -> None:
    """Moved, a calibrated score loses more in expectation: the true difference by quadrature."""
    u = (np.arange(100_000) + 0.5) / 100_000
    eta = 0.1 + 0.6 * u**2
    off = np.clip(eta - 0.09, 0.001, 0.999)
    truth = float((eta * np.log(eta / off) + (1 - eta) * np.log((1 - eta) / (1 - off))).mean())

    def missed(seed: int) -> bool:
        rng = np.random.default_rng([seed, 12])
        v = rng.uniform(size=800)
        p = 0.1 + 0.6 * v**2
        found = cal.compare({"a": p, "b": p - 0.09}, rng.uniform(size=800) < p, measure="log_loss", seed=seed)
        return truth not in found.differences[0].interval

    check(missed, SETS, ALPHA)


# ---- many models ----


COIN = 0.2


def coins(seed: int, count_of: int) -> tuple[np.ndarray, np.ndarray]:
    """Return outcomes of rate one half, and scores of 0.4 or 0.6 at random: each is as good as any other."""
    rng = np.random.default_rng([seed, 13])
    return rng.uniform(size=400) < 0.5, rng.choice([0.4, 0.6], (count_of, 400))


def test_many_models_at_once_keep_alpha() -> None:
    def wrong(seed: int) -> bool:
        y, scores = coins(seed, 21)
        found = cal.compare({str(i): p for i, p in enumerate(scores)}, y, alpha=COIN)
        return "better" in found.verdicts.values()

    check(wrong, SETS, COIN)
