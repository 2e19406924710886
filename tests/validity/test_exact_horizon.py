"""Limits of being followed, and what the certificate spends: enumerated, without chance."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.certify import horizon as _
from calibrant.stats.missing import survival
from calibrant.stats.missing.survival import censoring_band, products

ROWS = 25
AT = np.linspace(0.02, 1.0, 40)  # true values of L = -ln P(C >= t): hardly ever are all rows lost


@pytest.mark.parametrize("stake", [0.3, 0.9])
def test_exact_products_have_mean_one(stake: float) -> None:
    """Of n rows k are lost by t with probability binomial(n, 1 - exp(-L)), and leave n, n - 1, ... at risk."""
    up, down = products(np.arange(ROWS, 0, -1.0), np.array([stake]))
    for big in AT:
        chance = binom.pmf(np.arange(ROWS + 1), ROWS, 1.0 - np.exp(-big))
        assert chance @ np.exp(up[0] - stake * big) == pytest.approx(1.0, abs=1e-4)
        assert chance @ np.exp(down[0] + stake * big) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("delta", [0.05, 0.4])
def test_exact_limits_miss_no_more_often_than_they_say(delta: float) -> None:
    """By how many are lost before t, whatever their times: the least and the most that the limits allow."""
    low, high = np.empty(ROWS + 1), np.empty(ROWS + 1)
    for k in range(ROWS + 1):
        time = np.append(np.arange(1.0, k + 1.0), np.full(ROWS - k, 100.0))
        band = censoring_band(time, np.zeros(ROWS, dtype=np.int8), delta, 99.0)
        low[k], high[k] = (float(steps.before(np.array([99.0]))[0]) for steps in (band.low, band.high))
    for big in AT:
        chance = binom.pmf(np.arange(ROWS + 1), ROWS, 1.0 - np.exp(-big))
        assert chance @ (np.exp(-big) < low) <= delta / 2.0
        assert chance @ (np.exp(-big) > high) <= delta / 2.0


def test_exact_rows_of_one_time_leave_one_after_another() -> None:
    """Limits of rows lost within a day are those of rows lost at different hours of it."""
    kind = np.zeros(30, dtype=np.int8)
    day = np.repeat([1.0, 2.0, 9.0], 10)
    hours = day + np.tile(np.linspace(0.0, 0.5, 10), 3)
    one, other = (censoring_band(t, kind, 0.1, 5.0) for t in (day, hours))
    for steps, same in ((one.low, other.low), (one.high, other.high)):
        assert steps.before(np.array([1.0, 5.0])) == pytest.approx(same.before(np.array([1.0, 5.0])))


def rows(seed: int, n: int = 400) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    ends, lost = rng.exponential(600.0, n), rng.exponential(900.0, n)
    return {"t": np.minimum(ends, lost), "e": ends <= lost, "p": np.full(n, 0.4), "g": rng.integers(0, 2, n)}


def made(log: dict[str, np.ndarray]) -> cal.Predictions:
    return cal.at_horizon(log, score="p", time="t", event="e", horizon=365, way="weights", by="g")


def test_exact_shares_of_alpha(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth for limits of being followed, the rest for everyone's ends; and once more for all groups' together."""
    import sys

    module = sys.modules[_.__module__]
    spent: list[float] = []
    bands: list[float] = []
    limits, band = module.mean_limits, module.censoring_band
    monkeypatch.setattr(module, "mean_limits", lambda u, delta: (spent.append(delta), limits(u, delta))[1])
    monkeypatch.setattr(module, "censoring_band", lambda t, k, d, h: (bands.append(d), band(t, k, d, h))[1])
    cal.certify.horizon(made(rows(0)), by="g", within="g", alpha=0.1)
    assert bands == [pytest.approx(0.01)] * 4  # of each level among all rows, and of each group its own
    everyone, groups = spent[:2], spent[2:]  # of each people limits are asked twice, and one end of each is used
    assert everyone == [pytest.approx(0.08)] * 2
    assert groups == [pytest.approx(0.04)] * 4


def test_exact_pilot_rows_are_certified_nowhere_and_certified_rows_move_no_limit_of_censoring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    module = sys.modules[_.__module__]
    seen: list[np.ndarray] = []
    band = module.censoring_band
    monkeypatch.setattr(module, "censoring_band", lambda t, k, d, h: (seen.append(t), band(t, k, d, h))[1])
    data = made(rows(1))
    table = cal.certify.horizon(data)
    assert len(seen[0]) + table.columns["rows"][0] == 400
    assert table.settings["pilots"] == len(seen[0])


def test_exact_weights_have_the_gap_for_their_mean() -> None:
    """Two event times, two ends of follow-up: every case is enumerated, with G at the event and not behind it."""
    p, horizon = 0.3, 3.0
    events, ends = {1.0: 0.2, 2.0: 0.3, 9.0: 0.5}, {1.0: 0.1, 2.0: 0.4, 9.0: 0.5}
    g = survival.Steps(np.array([1.0, 2.0, 9.0]), np.array([1.0, 0.9, 0.5, 0.0]))
    total = 0.0
    for t, a in events.items():
        for c, b in ends.items():
            time, kind = min(t, c), int(t <= c)
            w = survival.inverse_weights(np.array([time]), np.array([kind], np.int8), horizon, g)[0]
            total += a * b * w * ((t <= horizon) - p)
    assert total == pytest.approx(0.5 - p)


@pytest.mark.slow
def test_exact_shares_of_an_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of its page: everyone, all groups together, and all ranges of the score together."""
    from calibrant.audit import lost

    spent: list[tuple[int, float]] = []
    certified = lost.certified
    monkeypatch.setattr(
        lost, "certified", lambda q, r, at, delta: (spent.append((int(at.sum()), delta)), certified(q, r, at, delta))[1]
    )
    record = cal.audit(made(rows(3, 3000) | {"p": np.linspace(0.1, 0.7, 3000)}), by="g", alpha=0.1, limit=0.2)
    ranges = len(record.curve("bins").columns["low"])
    assert ranges > 5
    assert [delta for _, delta in spent] == pytest.approx([0.08, 0.04, 0.04, *([0.08 / ranges] * ranges)])
    assert sum(n for n, _ in spent) == 3 * spent[0][0]  # all of those that are no pilots, and no pilot
    within = [s.alpha for s in record.shares if (s.wrong, s.part) == ("within", "everyone")]
    assert within == pytest.approx([0.02 + 0.04])  # a wrong limit of the law moves both ends


def test_exact_outcomes_of_every_kind() -> None:
    """Before, at and behind the horizon, by the event, by another one and by nothing."""
    from calibrant.data.specs.horizon import Outcomes

    time, kind = np.tile([1.0, 2.0, 3.0], 3), np.repeat([0, 1, 2], 3).astype(np.int8)
    labels = Outcomes(time, kind, np.zeros(9, dtype=bool), pa.array(kind), {}).labels(2.0)
    assert labels.tolist()[1:] == [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert np.isnan(labels[0])


def test_exact_worst_of_both_limits_of_the_law() -> None:
    """An end from below is no higher than at any law between the limits, and from above no lower."""
    import sys
    from dataclasses import replace

    module = sys.modules[_.__module__]
    data = made(rows(5))
    q = module.FollowedRows.of(data)
    everyone = np.ones(len(q.p), dtype=np.bool_)
    reach = module.estimated(q, module.Strata.by(data, ()), everyone, 0.02, 0)
    low, high = module.certified(q, reach, reach.rows, 0.08)[1:]
    for g, end in ((reach.low, reach.end_low), (reach.high, reach.end_high)):
        law = replace(reach, low=g, high=g, end_low=end, end_high=end)
        one = module.certified(q, law, reach.rows, 0.08)
        assert low <= one[1] + 1e-9
        assert one[2] <= high + 1e-9


def test_exact_shares_of_the_limits_of_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of delta is for limits from below at every time, half for those from above."""
    spent: dict[str, set[float]] = {"_least": set(), "_most": set()}
    for name in spent:
        of = getattr(survival, name)
        monkeypatch.setattr(
            survival,
            name,
            lambda logs, bets, delta, of=of, name=name: (spent[name].add(delta), of(logs, bets, delta))[1],
        )
    censoring_band(np.arange(1.0, 31.0), np.zeros(30, dtype=np.int8), 0.1, 20.0)
    assert spent == {"_least": {0.05}, "_most": {0.05}}
