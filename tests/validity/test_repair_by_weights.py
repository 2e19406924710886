"""Repairs by weights of censoring: worlds whose truth is a formula, on rows that no repair was fitted on."""

from __future__ import annotations

import numpy as np

import calibrant as cal
from calibrant.repair.judge.evaluate import EVERYONE
from calibrant.repair.judge.evidence import group_changes, groups_of, score_changes
from calibrant.repair.judge.fixed import Fixed
from calibrant.repair.judge.lost import JudgedByWeights, by_weights, fits_by_weights
from calibrant.repair.judge.rows import LOSSES, Judging, People
from calibrant.repair.judge.verdict import AS_AUDITED
from validity.acceptance import check
from validity.horizon_designs import Drawn, Floats, World

ALPHA, H, SETS = 0.2, 365.0, 200
SLACK = 1e-12  # of rounding: a gap that only changes its side is the end of its range
RECIPES = {"Platt": cal.repair.Platt(), "Isotonic": cal.repair.Isotonic()}
# Rows of the second site have three times the risk and are lost three times as fast: one law for all misses.
OFF = World(off=0.1, by_site=3.0, lost=1500.0)
NULL = World(by_site=3.0, lost=1500.0)


def judged(world: World, seed: int, n: int = 600) -> tuple[JudgedByWeights, Floats]:
    """Repairs fitted on a half of the rows, and the truth of those that judge them."""
    drawn = world.draw(np.random.default_rng([seed, 21]), n, H)
    fits = fits_by_weights(made(drawn), by_weights(Judging(repairs=RECIPES, seed=seed)))
    assert isinstance(fits.judged, JudgedByWeights)
    return fits.judged, drawn.truth[drawn.order(H)][fits.at]


def made(drawn: Drawn) -> cal.Predictions:
    at = {"time": "t", "event": "kind", "horizon": H, "way": "weights", "within": "site"}
    return cal.at_horizon(drawn.log, score="p", by="site", **at)


def test_paired_changes_and_gaps_hold_by_the_law_of_the_rows_of_the_fit() -> None:
    """Every change of a score, of everyone, and of a group's gap, before and after: all of them at once."""

    def miss(seed: int) -> bool:
        of, truth = judged(OFF, seed)
        wrong = []
        for c in score_changes(of, ALPHA / 2.0)[0]:
            (zero, one), (zero_now, one_now) = (LOSSES[c.measure](of.scores[k]) for k in (c.probability, AS_AUDITED))
            true = float(((zero - zero_now) * (1.0 - truth) + (one - one_now) * truth).mean())
            true = -true if c.measure == "accuracy" else true
            wrong.append(not c.change_low - SLACK <= true <= c.change_high + SLACK)
        groups = groups_of(of.data, ("site",), {}, 20, 0, of.others)
        level = {one.value: one.rows for one in groups.people}
        for c in group_changes(of, groups, ALPHA / 2.0):
            at = level[c.level]
            now, then = (abs(float((truth - of.scores[k])[at].mean())) for k in (AS_AUDITED, c.probability))
            wrong.append(not c.change_low - SLACK <= then - now <= c.change_high + SLACK)
        return any(wrong)

    check(miss, SETS, ALPHA)


def test_nothing_helps_where_the_score_is_right() -> None:
    """A calibrated score has the least Brier score and log loss that there are: whatever is called better is not."""

    def wrongly(seed: int) -> bool:
        changes = score_changes(judged(NULL, seed)[0], ALPHA)[0]
        return any(c.shown == "better" and c.measure != "accuracy" for c in changes)

    check(wrongly, SETS, ALPHA)


def test_everyone_before_and_after_holds_under_every_repair() -> None:
    def miss(seed: int) -> bool:
        of, truth = judged(OFF, seed)
        whole = People(id=EVERYONE, who=EVERYONE, kind="everyone", rows=np.arange(of.data.n))
        fixed = Fixed.of(of, [whole], by_weights(Judging(repairs=RECIPES, alpha=ALPHA)))
        ends = {name: fixed.ends(whole, name) for name in of.scores}
        return any(not low <= float((truth - of.scores[k]).mean()) <= high for k, (low, high) in ends.items())

    check(miss, SETS, ALPHA)
