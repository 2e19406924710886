"""What is accepted keeps its risk, on designs chosen to hurt; what breaks the rule is found out."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.decisions import acceptance
from calibrant.stats.decisions.acceptance import Ranking
from calibrant.views.units import alone, units_of
from validity.accept_designs import DESIGNS
from validity.acceptance import check, count, refuted

ALPHA = 0.05


@pytest.mark.parametrize("name", DESIGNS)
def test_the_risk_of_what_is_accepted_is_kept(name: str) -> None:
    design = DESIGNS[name]
    check(lambda seed: design.broken(cal.certify.accept(design.drawn(seed), seed=seed, **design.asks())), 100, ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize("name", DESIGNS)
def test_the_risk_of_what_is_accepted_is_kept_at_size(name: str) -> None:
    design = DESIGNS[name]
    check(lambda seed: design.broken(cal.certify.accept(design.drawn(seed), seed=seed, **design.asks())), 1000, ALPHA)


@pytest.mark.parametrize("name", ["at the limit everywhere", "falling", "too sure at the top", "ten values"])
def test_the_mean_risk_of_these_rows_is_kept(name: str) -> None:
    design = DESIGNS[name]

    def broken(seed: int) -> bool:
        data = design.drawn(seed)
        found = cal.certify.accept(data, risk=design.risk, target="rows")
        t = found.settings["groups"]["everyone"]["threshold"]
        return t is not None and design.wrong(data.p[data.p >= t]).mean() > design.risk

    check(broken, 150, ALPHA)


def unlike(seed: int, by_units: bool) -> bool:
    """Tell whether the risk of these rows is broken: every other unit of forty is always right."""
    rng = np.random.default_rng([seed, 11])
    unit = np.arange(6000) // 40
    risk, wrong = 0.1, np.where(unit % 2 == 0, 0.204, 0.0)
    score = rng.uniform(size=len(unit))
    data = cal.predictions(rng.uniform(size=150)[unit] >= wrong, score, cluster=unit)
    found = cal.certify.accept(data if by_units else alone(data), risk=risk, target="rows", seed=seed)
    t = found.settings["groups"]["everyone"]["threshold"]
    units = units_of(data, seed)
    here = units.certified[unit] if by_units else np.ones(len(unit), dtype=bool)
    return t is not None and bool(wrong[here & (score >= t)].mean() > risk)


def test_the_mean_risk_of_rows_of_unlike_units_is_kept() -> None:
    check(lambda seed: unlike(seed, True), 150, ALPHA)
    assert refuted(count(lambda seed: unlike(seed, False), 150), 150, ALPHA)


# ---- saboteurs: each must be refuted on some design ----


def test_picking_the_threshold_by_clopper_pearson_is_found_out() -> None:
    design = DESIGNS["at the limit everywhere"]

    def broken(seed: int) -> bool:
        data = design.drawn(seed)
        ranking = Ranking.of(data.p, data.y == 0, True)
        return bool((acceptance.clopper_pearson(ranking.rows, ranking.wrong, ALPHA) <= design.risk).any())

    assert refuted(count(broken, 100), 100, ALPHA)


def test_alpha_not_shared_over_groups_is_found_out() -> None:
    design = DESIGNS["thirty groups"]

    def broken(seed: int) -> bool:
        data = design.drawn(seed)
        group = np.array(data.covariates["g"].to_pylist())
        each = (cal.predictions(data.y[group == g], data.p[group == g]) for g in np.unique(group))
        return any(design.broken(cal.certify.accept(d, risk=design.risk)) for d in each)

    assert refuted(count(broken, 60), 60, ALPHA)


def test_rows_of_units_taken_as_independent_are_found_out() -> None:
    design = DESIGNS["units that share a fate"]

    def broken(seed: int) -> bool:
        data = design.drawn(seed)
        return design.broken(cal.certify.accept(cal.predictions(data.y, data.p), risk=design.risk))

    assert refuted(count(broken, 100), 100, ALPHA)


def test_thresholds_down_to_the_first_error_of_a_tie_are_found_out() -> None:
    """Right answers of a tie stand before wrong ones: order within a tie that looks at labels."""
    rng = np.random.default_rng(0)

    def broken(_: int) -> bool:
        wrong = np.sort(rng.uniform(size=1000) < 0.1)  # one score: right ones first
        ranking = Ranking(np.zeros(1000), np.arange(1, 1001), np.cumsum(wrong))
        return acceptance.deepest(ranking, 0.1, ALPHA) >= 0

    assert refuted(count(broken, 60), 60, ALPHA)
