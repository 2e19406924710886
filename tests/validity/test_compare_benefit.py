"""Verdicts on net benefit are wrong at most alpha of the time, on designs chosen to hurt; what breaks it is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.measures import normal_quantile
from validity.acceptance import check, count, refuted
from validity.benefit_designs import AWAKE, DESIGNS, SLEEPS, Design

ALPHA = 0.05
NARROW = {name: design for name, design in DESIGNS.items() if design.margin() > 0.0}  # "no worse" can be wrong


@pytest.mark.parametrize("name", DESIGNS)
def test_verdicts_on_net_benefit_are_kept(name: str) -> None:
    check(DESIGNS[name].wrong, 60, ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize("name", DESIGNS)
def test_verdicts_on_net_benefit_are_kept_at_size(name: str) -> None:
    check(DESIGNS[name].wrong, 1000, ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NARROW)
def test_no_worse_is_wrong_at_most_alpha_of_the_time(name: str) -> None:
    check(NARROW[name].falsely_no_worse, 1000, ALPHA)


@pytest.mark.parametrize("n", [200, 3000])
def test_net_benefit_of_these_rows_is_kept(n: int) -> None:
    """Given the scores: the rates of the rows at hand are known here, and so is their difference."""
    design = Design(n, (0.3,), **{**SLEEPS, "share": (0.9, 0.1)})
    odds = 0.3 / 0.7

    def missed(seed: int) -> bool:
        models, _, _ = design.drawn(seed)
        kind = (models["old"] > 0.5).astype(int)
        truth = float((kind * (0.7 - 0.3 * odds)).mean())
        return truth not in design.found(seed, 0.005, target="rows").differences[0].interval

    check(missed, 150, ALPHA)


# ---- saboteurs: each must be refuted ----


def test_the_range_of_these_rows_taken_for_the_populations_is_found_out() -> None:
    """The two targets differ: rows on which models decide otherwise may be missing here, and not in the population."""
    design = DESIGNS["one row in a hundred"]
    assert refuted(count(lambda seed: design.wrong(seed, target="rows"), 200), 200, ALPHA)
    check(design.wrong, 200, ALPHA)


def test_a_wald_range_of_rare_changes_is_found_out() -> None:
    """Near a threshold of 1 one needless treatment in a thousand costs much, and most data sets hold none."""
    design = DESIGNS["threshold near 1"]
    (t,) = design.thresholds

    def wrong(seed: int) -> bool:
        models, y, _ = design.drawn(seed)
        worth = np.where(y == 1, 1.0, -t / (1.0 - t))
        d = worth * ((models["old"] >= t).astype(float) - (models["new"] >= t))
        return bool(d.mean() + normal_quantile(ALPHA) * d.std(ddof=1) / np.sqrt(len(d)) < design.truth(t))

    assert refuted(count(wrong, 300), 300, ALPHA)
    check(design.wrong, 200, ALPHA)


def test_a_false_positive_that_counts_the_threshold_and_not_its_odds_is_found_out() -> None:
    design = Design(4000, (0.8,), **{**AWAKE, "share": (0.8, 0.2), "rate": (0.3, 0.5)})

    def wrong(seed: int) -> bool:
        models, y, _ = design.drawn(seed)
        worth = np.where(y == 1, 1.0, -0.8)
        d = worth * ((models["old"] >= 0.8).astype(float) - (models["new"] >= 0.8))
        return bool(d.mean() + 4.0 * d.std(ddof=1) / np.sqrt(len(d)) < design.truth(0.8))

    assert refuted(count(wrong, 40), 40, ALPHA)
    check(design.wrong, 40, ALPHA)


def worthless(seed: int, thresholds: int, n: int) -> tuple[dict[str, np.ndarray], np.ndarray, list[float]]:
    """Return models that decide otherwise at random on rows whose rate is the threshold: none gains or loses."""
    rng = np.random.default_rng([seed, 32])
    at = np.linspace(0.1, 0.9, thresholds).round(3)
    t = at[rng.integers(0, thresholds, n)]
    off = 0.2 / thresholds
    models = {name: t + off * rng.choice([-1.0, 1.0], n) for name in ("old", "new")}
    return models, (rng.uniform(size=n) < t).astype(int), at.tolist()


def test_the_best_of_many_thresholds_is_found_out() -> None:
    """Every threshold is compared as if it were the only one, and the best of them is told."""

    def wrong(seed: int) -> bool:
        models, y, at = worthless(seed, 40, 4000)
        return any(
            cal.compare(models, y, measure="net_benefit", threshold=t, alpha=0.2, margin=0.0).verdict
            in ("better", "worse")
            for t in at
        )

    def kept(seed: int) -> bool:
        models, y, at = worthless(seed, 40, 4000)
        found = cal.compare(models, y, measure="net_benefit", threshold=at, alpha=0.2, margin=0.0)
        return any(d.verdict in ("better", "worse") for d in found.differences)

    assert refuted(count(wrong, 30), 30, 0.2)
    check(kept, 30, 0.2)


def test_rows_of_units_taken_as_independent_are_found_out() -> None:
    design = replace(DESIGNS["units of five alike"], size=20)
    (t,) = design.thresholds

    def wrong(seed: int) -> bool:
        models, y, _ = design.drawn(seed)
        found = cal.compare(models, y, measure="net_benefit", threshold=t, seed=seed)
        return design.truth(t) not in found.differences[0].interval

    assert refuted(count(wrong, 100), 100, ALPHA)
    check(design.wrong, 50, ALPHA)
