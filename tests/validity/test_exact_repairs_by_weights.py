"""Repairs by weights of censoring, exactly: what gives the law, what is spent, and how slopes turn its limits."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import calibrant as cal
from calibrant.certify.horizon import BAND, Reach, certified
from calibrant.repair.judge import lost as module
from calibrant.repair.judge.evidence import group_changes, groups_of, score_changes
from calibrant.repair.judge.lost import JudgedByWeights, by_weights, fits_by_weights
from calibrant.repair.judge.rows import Judging
from calibrant.views.unlabelled import FollowedRows

H = 365.0
RECIPES = {"Platt": cal.repair.Platt(), "Temperature": cal.repair.Temperature()}


def rows(n: int = 400, seed: int = 0) -> cal.Predictions:
    rng = np.random.default_rng(seed)
    g, p = rng.integers(0, 2, n), rng.uniform(0.1, 0.8, n)
    event, end = rng.exponential(-H / np.log1p(-p)), rng.exponential(np.where(g == 0, 500.0, 1500.0))
    log = {"t": np.minimum(event, end), "e": event <= end, "p": p, "g": g}
    return cal.at_horizon(log, score="p", time="t", event="e", horizon=H, way="weights", by="g")


def judged(n: int = 400, seed: int = 0) -> JudgedByWeights:
    of = fits_by_weights(rows(n, seed), by_weights(Judging(repairs=RECIPES))).judged
    assert isinstance(of, JudgedByWeights)
    return of


def test_exact_rows_of_the_fit_and_of_the_law_judge_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the rows fit and give the law, whatever their outcomes; the other half alone is certified."""
    fitted: list[int] = []
    monkeypatch.setattr(
        cal.repair.Platt,
        "fit",
        lambda self, data: (fitted.append(data.n + len(data.unlabelled.p)), OURS(self, data))[1],
    )
    laws, seen = [], []
    learned, limits = module.learned, module.certified
    monkeypatch.setattr(
        module, "learned", lambda q, s, at, d, pilot: (laws.append(pilot & at), learned(q, s, at, d, pilot))[1]
    )
    monkeypatch.setattr(module, "certified", lambda q, r, at, d, s=None: (seen.append(at), limits(q, r, at, d, s))[1])
    of = judged()
    score_changes(of, 0.1)
    group_changes(of, groups_of(of.data, ("g",), {}, 20, 0, of.others), 0.1)
    assert fitted == [200]
    assert len(of.at) == len(of.pilots) == 200
    for certain in seen:
        assert set(np.flatnonzero(certain)) <= set(of.at.tolist())
        assert all(not (law & certain).any() for law in laws)
    assert all(set(np.flatnonzero(law)) <= set(of.pilots.tolist()) for law in laws)


OURS = cal.repair.Platt.fit


def test_exact_the_law_of_a_group_comes_from_its_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    laws = []
    learned = module.learned
    monkeypatch.setattr(
        module, "learned", lambda q, s, at, d, pilot: (laws.append(pilot & at), learned(q, s, at, d, pilot))[1]
    )
    of = judged(1500)
    laws.clear()
    of_groups = groups_of(of.data, ("g",), {}, 20, 0, of.others)
    group_changes(of, of_groups, 0.1)
    whole = of.covariates.column("g").to_numpy()
    for law, level in zip(laws, (one.value for one in of_groups.people), strict=True):
        assert (np.flatnonzero(law) == of.pilots[whole[of.pilots] == int(level)]).all()
    with pytest.raises(ValueError, match="some judged rows and some pilot rows"):
        of.gap_range(0.1, of_groups.people[0].rows)


def test_exact_shares_of_the_law_and_of_the_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of each statement's share is spent on the law, the rest on both ends of its range."""
    laws, ends = [], []
    learned, limits = module.learned, module.certified
    monkeypatch.setattr(module, "learned", lambda q, s, at, d, pilot: (laws.append(d), learned(q, s, at, d, pilot))[1])
    monkeypatch.setattr(module, "certified", lambda q, r, at, d, s=None: (ends.append(d), limits(q, r, at, d, s))[1])
    of = judged(1500)
    laws.clear()
    of.change("brier", "Platt", "as audited", 0.1)
    assert (laws, ends) == ([pytest.approx(0.1 * BAND)], [pytest.approx(0.1 * (1.0 - BAND))])
    laws.clear(), ends.clear()
    groups = groups_of(of.data, ("g",), {}, 20, 0, of.others)
    group_changes(of, groups, 0.1)  # which serves every repair, shared by the groups
    assert sum(laws) + sum(ends) == pytest.approx(0.1)
    assert len(ends) == 2
    of._laws.clear()
    laws.clear(), ends.clear()
    score_changes(of, 0.1)
    assert sum(ends) == pytest.approx(0.1 * (1.0 - BAND))
    spent = sorted({round(d * BAND / (1.0 - BAND), 12) for d in ends})  # a law at one share is made once
    assert sorted(laws) == pytest.approx(spent)


@pytest.mark.parametrize("slope", [-2.0, -0.3, 0.7])
def test_exact_slopes_turn_the_limits_of_the_law(slope: float) -> None:
    """Ends hold the mean at every law between the limits, whatever the sign; events and non-events of every kind."""
    rng = np.random.default_rng(0)
    n = 60
    p, y = rng.uniform(0.1, 0.9, n), rng.choice([0.0, 1.0, np.nan], n)
    q = FollowedRows(p, y, np.full(n, H), np.zeros(n, np.int8), np.zeros(n, np.int64), np.arange(n), H)
    every = np.ones(n, dtype=np.bool_)
    low, high = np.full(n, 0.5), np.full(n, 0.8)
    by = np.where(np.arange(n) % 2 == 0, slope, 0.4)

    def range_of(event: np.ndarray, none: np.ndarray) -> tuple[float, float, float]:
        g = np.where(y == 1.0, event, none)
        law = Reach(every, g, g, low, low, 0.0, "", {})
        return certified(q, law, every, 0.1, by)

    both = certified(q, Reach(every, low, high, low, high, 0.0, "", {}), every, 0.1, by)
    means = [range_of(a, b)[0] for a in (low, high) for b in (low, high)]
    # the middle is that of the least and the most that any law between the limits makes of each row
    terms = [by * np.where(np.isnan(y), 0.0, np.where(y == 1.0, 1.0 - p, -p)) / g for g in (low, high)]
    least, most = (float(pick(*terms).mean()) for pick in (np.minimum, np.maximum))
    assert both[0] == pytest.approx((least + most) / 2.0)
    assert both[1] <= least
    assert both[2] >= most
    assert all(both[1] <= mean <= both[2] for mean in means)
    mirror = certified(q, Reach(every, low, high, low, high, 0.0, "", {}), every, 0.1, -by)
    assert mirror == pytest.approx((-both[0], -both[2], -both[1]))


def test_exact_a_slope_of_one_is_the_gap_and_of_minus_one_its_mirror() -> None:
    of = judged()
    people = of.people(None, None)
    law, at = of.law(people, 0.02), people.copy()
    at[of.pilots] = False
    plain = certified(of.q, law, at, 0.1)
    ones = np.ones(len(of.at))
    assert certified(of.q, law, at, 0.1, ones) == pytest.approx(plain)
    assert certified(of.q, law, at, 0.1, -ones) == pytest.approx((-plain[0], -plain[2], -plain[1]))


def test_exact_no_outcome_of_the_blank_rows_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """`data` of the judge holds no outcome: were every label 1 in place of 0, nothing would change."""
    data = rows(1500)
    one = cal.repair.evaluate(data, by="g", limit=0.05, threshold=0.3)
    blank = import_module("calibrant.views.unlabelled").without_outcomes

    def ones(given: cal.Predictions) -> cal.Predictions:
        made = blank(given)
        return cal.Predictions(y=np.ones_like(made.y), p=made.p, covariates=made.covariates, name=made.name)

    monkeypatch.setattr(module, "without_outcomes", ones)
    assert cal.repair.evaluate(data, by="g", limit=0.05, threshold=0.3).to_json() == one.to_json()
