"""Streams whose scores are right: alarms and verdicts are wrong as seldom as they say; an error is found, for whom."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.monitor.plan import Plan, settings_of
from calibrant.stats.sequential.detector import Detector

from . import acceptance

pytestmark = pytest.mark.slow

ALPHA, DAYS, ROWS = 0.3, 25, 60
Stream = Callable[[np.random.Generator, int], cal.Predictions]


def drifting(rng: np.random.Generator, day: int) -> cal.Predictions:
    """Scores rise, and one group grows: outcomes follow the scores."""
    p = rng.beta(2, 6 - 4 * day / DAYS, ROWS)
    g = np.where(rng.uniform(size=ROWS) < day / DAYS, "a", "b")
    return cal.predictions(rng.uniform(size=ROWS) < p, p, {"g": g})


def shocked(rng: np.random.Generator, day: int) -> cal.Predictions:
    """A day's rows share a shock of mean zero."""
    p = rng.uniform(0.3, 0.7, ROWS)
    eta = p + rng.choice([-0.25, 0.25])
    return cal.predictions(rng.uniform(size=ROWS) < eta, p, {"g": rng.choice(["a", "b"], ROWS)})


def clustered(rng: np.random.Generator, day: int) -> cal.Predictions:
    """Ten clusters of six rows that share one uniform number, and one score."""
    p, u = (np.repeat(rng.uniform(0.1, 0.9, 10), 6) for _ in range(2))
    u = np.repeat(rng.uniform(size=10), 6)
    return cal.predictions(u < p, p, {"g": np.repeat(rng.choice(["a", "b"], 10), 6)}, cluster=np.arange(ROWS) // 6)


STREAMS: dict[str, tuple[Stream, dict[str, object]]] = {
    "drift of scores": (drifting, {}),
    "shocks of a day": (shocked, {"shared_shocks": True}),
    "clusters": (clustered, {"cluster": "c"}),
}


def plan_of(rows: cal.Predictions, **more: object) -> Plan:
    defaults = {n: p.default for n, p in __import__("inspect").signature(cal.Monitor).parameters.items()}
    own = defaults | {"label": "y", "score": "p", "by": "g", "limit": 0.9, "tolerance": 0.0} | more
    own.pop("reference")
    return Plan.of(settings_of(own), rows)


def ever(stream: Stream, more: dict[str, object], seed: int) -> bool:
    """Tell whether the e-process of a stream ever asks for an alarm."""
    rng = np.random.default_rng(seed)
    first = stream(rng, 0)
    plan = plan_of(first, **more)
    d = Detector.fresh(plan.prior)
    for day in range(DAYS):
        d = d.after(plan.day(first if day == 0 else stream(rng, day))[0], day, 1)
        if d.log_ever >= -np.log(ALPHA):
            return True
    return False


@pytest.mark.parametrize("name", STREAMS)
def test_an_alarm_is_ever_false_with_at_most_alpha(name: str) -> None:
    acceptance.check(partial(ever, *STREAMS[name]), 60, ALPHA)


@pytest.mark.parametrize("name", ["shocks of a day", "clusters"])
def test_rows_by_themselves_are_seen_to_fail(name: str) -> None:
    """The saboteur: rows of one fate as independent."""
    stream, _ = STREAMS[name]

    def apart(rng: np.random.Generator, day: int) -> cal.Predictions:
        rows = stream(rng, day)
        return cal.predictions(rows.y, rows.p, rows.covariates)

    assert acceptance.refuted(acceptance.count(partial(ever, apart, {}), 30), 30, ALPHA)


def test_alarms_of_a_change_come_as_seldom_as_promised() -> None:
    """With A of 12 days the time to an alarm, cut at 60 days, has a mean of no less than it promises."""
    times = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        first = drifting(rng, 0)
        plan = plan_of(first)
        d, day = Detector.fresh(plan.prior), 0
        while d.log_change < np.log(12.0) and day < 60:
            d, day = d.after(plan.day(drifting(rng, day % DAYS))[0], day, 1), day + 1
        times.append(day)
    assert np.mean(times) + 5.0 * np.std(times) / np.sqrt(len(times)) >= 12.0


def test_verdicts_are_right_at_every_look_and_an_error_is_found() -> None:
    """One group is off by 12 points from the tenth day on; the limit is 6, and looks are at alpha of a half."""
    wrong = late = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        watch = cal.Monitor(label="y", score="p", by="g", limit=0.06, alpha=0.5, window=10, judge="gap")
        truth: list[tuple[np.ndarray, np.ndarray]] = []
        for day in range(20):
            p, g = rng.uniform(0.2, 0.8, 1000), rng.choice(["a", "b"], 1000)
            off = np.where((g == "b") & (day >= 10), 0.12, 0.0)
            state = watch.update(cal.predictions(rng.uniform(size=1000) < p + off, p, {"g": g}), at=day)
            truth.append((off, g))
            off, g = (np.concatenate([t[i] for t in truth[-10:]]) for i in (0, 1))
            gaps = {"everyone": off.mean(), "g = a": off[g == "a"].mean(), "g = b": off[g == "b"].mean()}
            for r in state.window:
                if r.name in gaps:
                    right = {"over": gaps[r.name] > 0.06, "within": gaps[r.name] <= 0.06}
                    wrong += not right.get(r.verdict, True) or not r.low <= gaps[r.name] <= r.high
        first = next((a for a in state.alarms if a.kind == "changed"), None)
        late += first is None or first.suspects[0].name != "g = b" or not 8 <= int(first.onset) <= 12
    assert wrong == 0
    assert late <= 1
    assert state.verdict == "over"
