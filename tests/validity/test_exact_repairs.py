"""The judge of repairs, exactly: limits of paired changes over every outcome, and what is spent of alpha."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.repair.judge import fixed as module
from calibrant.repair.judge.fixed import Fixed
from calibrant.repair.judge.rows import Judged, Judging, People, fits_of
from calibrant.repair.judge.verdict import AS_AUDITED
from calibrant.stats.betting import Clusters, mean_limits
from calibrant.stats.evidence import Gap
from validity.test_repair_fixed import ALPHA, against, judged, people

SLACK = 1e-9
DESIGNS = {
    "coins": (np.full(8, -0.5), np.full(8, 0.5), np.full(8, 0.5)),
    "rare": (np.full(8, -0.1), np.full(8, 0.9), np.full(8, 0.1)),
    "one heavy row": (np.r_[np.full(7, -0.05), -1.0], np.r_[np.full(7, 0.05), 3.0], np.r_[np.full(7, 0.5), 0.2]),
    "all sure": (np.full(8, -0.2), np.full(8, 0.8), np.full(8, 0.999)),
    "mixed": (np.linspace(-1, 0, 8), np.linspace(1, -0.5, 8), np.linspace(0.05, 0.9, 8)),
}


def missed(
    limits: Any, z0: Any, z1: Any, rate: Any, p: Any, delta: float, *, cluster: Any = None
) -> tuple[float, float]:
    """Return the exact probabilities that the mean of the means lies below and above the limits."""
    truth = float((z0 * (1 - rate) + z1 * rate).mean())
    below = above = 0.0
    for outcome in itertools.product((0, 1), repeat=len(p)):
        y = np.array(outcome)
        weight = float(np.prod(np.where(y == 1, rate, 1 - rate)))
        low, high = limits(Clusters.of_values(y, p, (z0, z1), np.ones(len(p)), cluster), delta)
        below += weight * (truth < low - SLACK)
        above += weight * (truth > high + SLACK)
    return below, above


def normal_limits(u: Any, delta: float) -> tuple[float, float]:
    """Saboteur: the large-sample interval."""
    half = 2.0 * u.value.std() / np.sqrt(len(u.value))
    return u.mean - half, u.mean + half


@pytest.mark.parametrize("delta", [0.5, 0.1])
@pytest.mark.parametrize("design", DESIGNS)
def test_limits_miss_no_more_than_they_say(design: str, delta: float) -> None:
    z0, z1, rate = DESIGNS[design]
    for p in (rate, 1 - rate):
        below, above = missed(mean_limits, z0, z1, rate, p, delta)
        assert below <= delta / 2
        assert above <= delta / 2


def test_limits_hold_for_clusters_of_one_fate() -> None:
    cluster = np.repeat(np.arange(8), 3)
    z0, z1 = np.full(24, -0.3), np.full(24, 0.7)
    for rate in (0.3, 0.1):
        truth, miss = float(z0[0] * (1 - rate) + z1[0] * rate), 0.0
        for fate in itertools.product((0, 1), repeat=8):
            y = np.repeat(fate, 3)
            low, high = mean_limits(Clusters.of_values(y, np.full(24, 0.3), (z0, z1), np.ones(24), cluster), 0.2)
            miss += float(rate ** sum(fate) * (1 - rate) ** (8 - sum(fate))) * (not low <= truth <= high)
        assert miss <= 0.2


def test_the_gap_of_judged_clusters_of_one_fate_is_kept() -> None:
    p, of, rows, miss = np.full(96, 0.5), np.repeat(np.arange(8), 12), np.arange(96), 0.0
    for fate in itertools.product((0, 1), repeat=8):
        judged = Judged.of(cal.predictions(np.repeat(fate, 12), p, cluster=of), {AS_AUDITED: p}, 0 * rows)
        _, low, high = judged.gap_range(0.1, rows)
        miss += 0.5**8 * (not low <= 0.0 <= high)
    assert miss <= 0.1


def test_rows_of_one_fate_taken_as_independent_are_caught() -> None:
    miss = 0.0
    for fate in itertools.product((0, 1), repeat=8):
        y, half, one = np.repeat(fate, 12), np.full(96, 0.5), np.ones(96)
        low, high = mean_limits(Clusters.of_values(y, half, (-half, half), one), 0.1)
        miss += 0.5**8 * (not low <= 0.0 <= high)
    assert miss > 0.1


def test_a_normal_interval_is_caught() -> None:
    z0, z1, rate = DESIGNS["rare"]
    assert missed(normal_limits, z0, z1, rate, rate, 0.05)[1] > 0.3


# ---- what is spent ----


def spent(monkeypatch: Any, kind: type[Fixed], share: float, folds: int) -> dict[str, float]:
    """Return the error probability spent on all ends now, and on all ends after, of all groups and repairs."""
    rng = np.random.default_rng(5)
    n, used, when = 240, {"now": 0.0, "after": 0.0}, ["now"]

    def below(q: Any, delta: float, *rest: Any) -> Any:
        used[when[0]] += delta
        return lower(q, delta, *rest)

    def above(*of: Any) -> Any:
        def end(delta: float) -> Any:
            used[when[0]] += delta
            return c.above(delta)

        c = upper(*of)
        return replace(c, above=end)

    lower, upper = module.lower_of, module.shown_certificate
    monkeypatch.setattr(module, "lower_of", below)
    monkeypatch.setattr(module, "shown_certificate", above)
    scores = {name: rng.uniform(0.3, 0.7, n) for name in (AS_AUDITED, "one", "two", "three")}
    rows = judged(rng.integers(0, 2, n), scores, np.arange(n) % folds)
    found = kind.of(rows, people(np.arange(n) // 40, share), against("error"))
    for name in scores:
        when[0] = "now" if name == AS_AUDITED else "after"
        for one in found.people:
            found.ends(one, name)
    return used


class FreeRepairs(Fixed):
    """Saboteur: alpha is not shared by the repairs among which one is chosen."""

    def _share(self, one: People, _: str) -> float:
        return self.how.alpha * one.share


class FreeFolds(Fixed):
    """Saboteur: each fold spends what all have."""

    def _share(self, one: People, name: str) -> float:
        return super()._share(one, name) * self.judged.folds


@pytest.mark.slow
@pytest.mark.parametrize("folds", [1, 2])
def test_no_more_than_alpha_is_spent_now_and_after(monkeypatch: Any, folds: int) -> None:
    used = spent(monkeypatch, Fixed, 1 / 6, folds)
    assert used["now"] == pytest.approx(ALPHA)
    assert used["after"] == pytest.approx(ALPHA)


@pytest.mark.parametrize(("kind", "share", "folds"), [(FreeRepairs, 1 / 6, 1), (Fixed, 1.0, 1), (FreeFolds, 1 / 6, 2)])
def test_who_spends_more_is_caught(monkeypatch: Any, kind: type[Fixed], share: float, folds: int) -> None:
    assert spent(monkeypatch, kind, share, folds)["after"] > 1.5 * ALPHA


def test_gaps_of_groups_spend_their_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """One range of a group's gap as audited serves every repair."""
    used, real = [], Gap.limits

    def limits(gap: Gap, delta: float) -> Any:
        used.append(delta)
        return real(gap, delta)

    monkeypatch.setattr(Gap, "limits", limits)
    rng = np.random.default_rng(5)
    scores = {name: rng.uniform(0.3, 0.7, 240) for name in (AS_AUDITED, "one", "two")}
    rows = judged(rng.integers(0, 2, 240), scores, np.arange(240) % 2)
    found = Fixed.of(rows, people(np.arange(240) // 40, 1 / 6), against("gap"))
    for name in scores:
        for one in found.people:
            found.ends(one, name)
    assert sum(used) == pytest.approx(ALPHA)


# ---- on which rows ----


@pytest.mark.parametrize("folds", [0, 3])
def test_no_row_is_judged_by_a_map_that_it_was_fitted_on(folds: int) -> None:
    """A recipe that tells who it has seen: by the score, which is the row's own."""
    rng = np.random.default_rng(4)
    data = cal.predictions(rng.integers(0, 2, 300), np.arange(300) / 300)

    class Seen:
        """Says 1 of rows that it has seen, and 0 of others."""

        def fit(self, rows: cal.Predictions) -> Any:
            return lambda new: SimpleNamespace(p=np.isin(new.p, rows.p).astype(float))

    found = fits_of(data, Judging(repairs={"seen": Seen()}, folds=folds)).judged  # type: ignore[dict-item]
    assert found.data.n == (300 if folds else 150)
    assert not found.scores["seen"].any()


@pytest.mark.slow
@pytest.mark.parametrize(
    "rate", [np.full(8, 0.3), np.linspace(0.02, 0.9, 8), np.r_[np.zeros(7), 0.099], np.full(8, 0.97)]
)
def test_a_gap_of_rows_is_missed_no_more_than_is_said(rate: Any) -> None:
    """Whatever folds the rows are in: scores as audited are of none."""
    p, miss, delta = np.linspace(0.1, 0.8, 8), 0.0, 0.2
    for outcome in itertools.product((0, 1), repeat=8):
        y = np.array(outcome)
        gap, low, high = judged(y, {AS_AUDITED: p}, np.arange(8) % 2).gap_range(delta, np.arange(8))
        assert gap == pytest.approx((y - p).mean())
        truth = float((rate - p).mean())
        miss += float(np.prod(np.where(y == 1, rate, 1 - rate))) * (not low - SLACK <= truth <= high + SLACK)
    assert 0.0 < miss <= delta


def test_a_gap_of_rows_is_narrower_than_any_mean_over_rows() -> None:
    rng = np.random.default_rng(9)
    p = rng.beta(2, 8, 2000)
    of = judged((rng.random(2000) < p).astype(int), {AS_AUDITED: p}, np.zeros(2000, dtype=int))
    (_, low, high), (_, *ends) = of.gap_range(0.01, np.arange(2000)), of.mean_range(-p, 1.0 - p, 0.01)
    assert high - low < 0.9 * (ends[1] - ends[0])
