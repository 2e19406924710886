"""The gap by a horizon where rows are lost: worlds whose truth is a formula, and ends that hold it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import calibrant as cal
from calibrant.certify.horizon import DRAWN, PILOTS
from calibrant.stats.missing.survival import censoring_band
from validity.acceptance import SETS, check, count, refuted
from validity.horizon_designs import World

ALPHA = 0.2
H = 365.0
Floats = NDArray[np.float64]


def rows(world: World, rng: np.random.Generator, n: int) -> tuple[cal.Predictions, Floats, dict[str, object]]:
    drawn = world.draw(rng, n, H)
    log = drawn.log
    rivals = "2" if world.rival and bool((log["kind"] == 2).any()) else None
    log["g"] = drawn.followed(np.minimum(log["t"], H))
    made = cal.at_horizon(
        log, score="p", time="t", event="kind", horizon=H, competing=rivals, way="weights", by=["site", "g"]
    )
    return made, drawn.truth, log


WORLDS = {
    "calibrated": World(),
    "off": World(off=0.1, admin=True),
    "lost by site": World(by_site=3.0, off=-0.05),
    "competing": World(rival=0.001),
    "lost a little by site": World(by_site=1.5, off=-0.05),
    "weibull": World(shape=2.0, lost=500.0),
}


@pytest.mark.parametrize("name", WORLDS)
def test_weights_that_are_known_hold_the_gap(name: str) -> None:
    world = WORLDS[name]

    def miss(seed: int) -> bool:
        data, truth, log = rows(world, np.random.default_rng([seed, 5]), 150)
        table = cal.certify.horizon(data, censoring_survival="g", alpha=ALPHA).columns
        gap = float((truth - log["p"]).mean())
        return not table["low"][0] <= gap <= table["high"][0]

    check(miss, SETS, ALPHA)


@pytest.mark.parametrize("name", ["off", "lost a little by site"])
def test_weights_from_pilot_rows_hold_the_gap(name: str) -> None:
    world = WORLDS[name]

    def miss(seed: int) -> bool:
        data, truth, log = rows(world, np.random.default_rng([seed, 6]), 1200)
        table = cal.certify.horizon(data, within="site", alpha=ALPHA, seed=seed).columns
        gap = float((truth - log["p"])[certified_rows(data, log, seed)].mean())
        return not table["low"][0] <= gap <= table["high"][0]

    check(miss, 300, ALPHA)


def test_everyone_is_held_within_levels_that_are_lost_unlike() -> None:
    """Rows of the second site have more events than their score and are lost sooner: one law of all is off."""
    scales, means = np.array([1600.0, 350.0]), np.array([2400.0, 400.0])
    score = float((1.0 - np.exp(-H / scales)).mean())

    def drawn(seed: int, n: int) -> tuple[dict[str, NDArray[np.generic]], Floats]:
        rng = np.random.default_rng([seed, 12])
        site = rng.integers(0, 2, n)
        event, end = rng.exponential(scales[site]), rng.exponential(means[site])
        log = {"t": np.minimum(event, end), "kind": (event <= end).astype(int), "p": np.full(n, score), "site": site}
        return log, 1.0 - np.exp(-H / scales[site])

    def miss(seed: int) -> bool:
        log, truth = drawn(seed, 1500)
        data = cal.at_horizon(log, score="p", time="t", event="kind", horizon=H, way="weights", within="site")
        table = cal.certify.horizon(data, alpha=ALPHA, seed=seed).columns
        gap = float((truth - score)[certified_rows(data, log, seed)].mean())
        return not table["low"][0] <= gap <= table["high"][0]

    check(miss, 100, ALPHA)
    log, truth = drawn(0, 200_000)
    whole, own = (
        cal.measure.observed_expected(
            cal.at_horizon(log, score="p", time="t", event="kind", horizon=H, way="weights", within=within)
        )
        for within in (None, "site")
    )
    assert abs(own.value - truth.mean() / score) < 0.02 < 0.05 < abs(whole.value - truth.mean() / score)


def certified_rows(data: cal.Predictions, log: dict[str, object], seed: int) -> NDArray[np.bool_]:
    """Which rows of a log are no pilots: rows of unknown outcome are drawn after all others."""
    known = (log["kind"] != 0) | (log["t"] >= H)
    order = np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])
    kept = np.zeros(len(order), dtype=np.bool_)
    kept[order] = np.random.default_rng([seed, DRAWN]).random(len(order)) >= PILOTS
    return kept


def test_groups_followed_unlike_one_another_hold_their_gaps() -> None:
    """Being lost depends on the group, the outcome does not: one law of censoring for both misses in most sets."""

    def miss(seed: int) -> bool:
        rng = np.random.default_rng([seed, 11])
        site = rng.integers(0, 2, 2500)
        event, end = rng.exponential(900.0, 2500), rng.exponential(np.where(site == 0, 300.0, 3000.0))
        p = np.full(2500, 1.0 - np.exp(-H / 900.0))
        log = {"t": np.minimum(event, end), "kind": (event <= end).astype(int), "p": p, "site": site}
        data = cal.at_horizon(log, score="p", time="t", event="kind", horizon=H, way="weights", by="site")
        table = cal.certify.horizon(data, by="site", alpha=ALPHA, seed=seed).columns
        return not all(low <= 0.0 <= high for low, high in zip(table["low"][1:], table["high"][1:], strict=True))

    check(miss, 200, ALPHA)


def test_limits_of_being_followed_hold_at_all_times() -> None:
    def miss(seed: int) -> bool:
        rng = np.random.default_rng([seed, 7])
        event, lost = rng.exponential(400.0, 80), rng.exponential(500.0, 80)
        band = censoring_band(np.minimum(event, lost), (event <= lost).astype(np.int8), ALPHA, H)
        t = np.linspace(1.0, H, 50)
        true = np.exp(-t / 500.0)
        return bool((band.low.before(t) > true).any() or (band.high.before(t) < true).any())

    check(miss, SETS, ALPHA)


def test_followed_long_enough_holds_the_gap_whatever_the_reason_of_late_entry() -> None:
    """Who entered late has three times the risk: rows kept are certified as they are."""

    def miss(seed: int) -> bool:
        rng = np.random.default_rng([seed, 8])
        start = rng.integers(0, 800, 300)
        scale = np.where(start > 400, 300.0, 900.0)
        event, end = rng.exponential(scale), 800.0 - start
        log = {"t": np.minimum(event, end), "e": event <= end, "p": np.full(300, 0.4), "start": start}
        data = cal.at_horizon(log, score="p", time="t", event="e", horizon=H, entered="start", closed=800)
        kept = scale[start + H <= 800]
        found = cal.certify.groups(cal.predictions(data.y, data.p, {"g": ["a"] * data.n}), by="g", judge="gap",
                                   alpha=ALPHA)["g = a"].interval  # fmt: skip
        return not found.low <= float((1.0 - np.exp(-H / kept) - 0.4).mean()) <= found.high

    check(miss, SETS, ALPHA)


def test_no_assumption_holds_the_gap_where_loss_depends_on_the_outcome() -> None:
    def miss(seed: int) -> bool:
        rng = np.random.default_rng([seed, 9])
        p = rng.integers(1, 20, 200) / 20
        event = rng.exponential(-H / np.log1p(-p))
        lost = np.where(event < H, rng.uniform(0.0, 500.0, 200), 1000.0)  # those about to die are lost
        log = {"t": np.minimum(event, lost), "e": event <= lost, "p": p}
        data = cal.at_horizon(log, score="p", time="t", event="e", horizon=H, way="unknown")
        table = cal.certify.missing_labels(data, judge="gap", alpha=ALPHA).columns
        return not table["low"][3] <= 0.0 <= table["high"][3]

    check(miss, 300, ALPHA)


# ---- saboteurs: what a hasty analyst would do, and these worlds refute ----


def naive(log: dict[str, object], data: cal.Predictions) -> tuple[Floats, Floats]:
    """Who was lost is no event."""
    return (log["kind"] == 1) & (log["t"] <= H), log["p"]


def complete(_: dict[str, object], data: cal.Predictions) -> tuple[Floats, Floats]:
    """Those known are a fair sample."""
    return data.y, data.p


def censored_rivals(log: dict[str, object], data: cal.Predictions) -> tuple[Floats, Floats]:
    """One minus Kaplan-Meier with the competing event as the end of follow-up, drawn as labels of all rows."""
    from calibrant.stats.missing.survival import incidence

    risk = incidence(np.asarray(log["t"]), np.where(log["kind"] == 1, 1, 0).astype(np.int8)).at(H)
    n = len(log["p"])
    return np.arange(n) < round(risk * n), log["p"]


@pytest.mark.parametrize(
    ("saboteur", "world"),
    [(naive, "off"), (complete, "calibrated"), (censored_rivals, "competing")],
    ids=["lost is no event", "known are all", "rivals are lost"],
)
def test_saboteurs_are_refuted(saboteur: Callable[..., tuple[Floats, Floats]], world: str) -> None:
    def miss(seed: int) -> bool:
        data, truth, log = rows(WORLDS[world], np.random.default_rng([seed, 10]), 1500)
        y, p = saboteur(log, data)
        e = cal.certify.groups(cal.predictions(y, p, {"g": ["a"] * len(p)}), by="g", judge="gap", alpha=ALPHA)
        found, gap = e["g = a"].interval, float((truth - log["p"]).mean())
        return not found.low <= gap <= found.high

    assert refuted(count(miss, 60), 60, ALPHA)
