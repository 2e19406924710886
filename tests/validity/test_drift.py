"""Streams whose rows are like those of the reference: drift is named as seldom as promised; where there is, it is."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.monitor.drift import Drift
from calibrant.audit.monitor.plan import Plan, Settings
from calibrant.stats.sequential import exchange

from . import acceptance

pytestmark = pytest.mark.slow

ALPHA, DAYS, ROWS = 0.3, 30, 80


def some(rng: np.random.Generator, n: int, more: float = 0.0) -> cal.Predictions:
    """Rows of two columns that depend on each other and on the score; `more`: ward a is more frequent."""
    u = rng.uniform(size=n)
    ward = np.where(u < 0.2 + more, "a", np.where(u < 0.6, "b", "c"))
    p = np.clip(rng.beta(2, 4, n) + 0.1 * (ward == "b"), 0.0, 1.0)
    age = np.where(rng.uniform(size=n) < p, "old", "young")
    return cal.predictions(rng.uniform(size=n) < p, p, {"ward": ward, "age": age})


def found(seed: int, more: float = 0.0, stays: float = 0.0) -> Drift:
    """The watch after all days; `stays`: the share of a day's rows who are the same people on the next."""
    rng = np.random.default_rng(seed)
    s = Settings(label="y", score="p", by=("ward", "age"), drift_alpha=ALPHA)
    reference = some(rng, 400)
    drift, rows = Drift.of(s, Plan.of(s, reference), reference), some(rng, ROWS)
    for day in range(DAYS):
        new, old = some(rng, ROWS, more * (day >= 10)), rng.uniform(size=ROWS) < stays
        columns = {n: np.where(old, rows.covariates[n], new.covariates[n]) for n in ("ward", "age")}
        rows = cal.predictions(new.y, np.where(old, rows.p, new.p), columns)
        drift = drift.after(rows, s, day, dated=False)
    return drift


def named(seed: int, stays: float = 0.0) -> bool:
    now = found(seed, stays=stays).now(28)
    return now is not None and bool(now.changes)


def test_drift_is_ever_false_with_at_most_alpha() -> None:
    acceptance.check(named, 60, ALPHA)


def again(seed: int) -> bool:
    """Whether a change is named that is none: the ward grows once, and each change that is named is one of that."""
    drift, later = found(seed, 0.3), 0
    for f in drift._now(28).detected:
        later += f.day < 10 or f.earlier > 0
    return later > 0


def test_a_change_after_the_one_that_is_there_is_false_with_at_most_alpha() -> None:
    acceptance.check(again, 60, ALPHA)


def test_the_same_people_on_several_days_are_seen_to_fail() -> None:
    """The assumption that rows of different days are different draws: people who stay ten days in the mean."""
    assert acceptance.refuted(acceptance.count(partial(named, stays=0.9), 40), 40, ALPHA)


def test_a_reference_that_is_used_again_is_seen_to_fail() -> None:
    """The saboteur: rows of earlier days do not join those that a day is compared with."""
    ranks = exchange.ranks

    def against_the_reference(counts, rows, before, rows_before, draws, kept={}):  # noqa: B006
        if np.all(rows_before == 320):
            kept["before"] = before
        return ranks(counts, rows, kept["before"], 320, draws)

    with patch.object(exchange, "ranks", against_the_reference):
        assert acceptance.refuted(acceptance.count(named, 40), 40, ALPHA)


def test_bets_that_have_seen_the_day_are_seen_to_fail() -> None:
    """The saboteur: each day the bet is on the side on which its count is."""
    gains = exchange.gains
    with patch.object(exchange, "gains", lambda z: gains(np.abs(z))):
        assert acceptance.refuted(acceptance.count(named, 40), 40, ALPHA)


def test_a_ward_that_grows_is_named_since_when_and_by_how_much() -> None:
    late = 0
    for seed in range(5):
        now = found(seed, 0.15).now(15)
        assert now is not None
        first = next((f for f in now.changes if f.name == "ward = a"), None)
        late += first is None or not 4 <= int(first.onset) <= 12
        if first is not None:
            assert first.before == pytest.approx(0.2, abs=0.08)
            assert first.now == pytest.approx(0.35, abs=0.05)
    assert late <= 1
