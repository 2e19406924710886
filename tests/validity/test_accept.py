"""What is accepted keeps its risk, on designs chosen to hurt."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.views.people import people_of
from validity.accept_designs import DESIGNS
from validity.acceptance import SETS, check

ALPHA = 0.05


@pytest.mark.parametrize("name", DESIGNS)
def test_the_risk_of_what_is_accepted_is_kept(name: str) -> None:
    design = DESIGNS[name]
    check(lambda seed: design.broken(cal.certify.accept(design.drawn(seed), seed=seed, **design.asks())), SETS, ALPHA)


@pytest.mark.parametrize("name", ["at the limit everywhere", "falling", "too sure at the top", "ten values"])
def test_the_mean_risk_of_these_rows_is_kept(name: str) -> None:
    design = DESIGNS[name]

    def broken(seed: int) -> bool:
        data = design.drawn(seed)
        found = cal.certify.accept(data, risk=design.risk, target="rows")
        t = found.settings["groups"]["everyone"]["threshold"]
        return t is not None and design.wrong(data.p[data.p >= t]).mean() > design.risk

    check(broken, SETS, ALPHA)


def unlike(seed: int) -> bool:
    """Tell whether the risk of these rows is broken: every other unit of forty is always right."""
    rng = np.random.default_rng([seed, 11])
    cluster_code = np.arange(6000) // 40
    risk, wrong = 0.1, np.where(cluster_code % 2 == 0, 0.204, 0.0)
    score = rng.uniform(size=len(cluster_code))
    data = cal.predictions(rng.uniform(size=150)[cluster_code] >= wrong, score, cluster=cluster_code)
    found = cal.certify.accept(data, risk=risk, target="rows", seed=seed)
    t = found.settings["groups"]["everyone"]["threshold"]
    clusters = people_of(data).clusters(seed)
    here = clusters.certified[cluster_code]
    return t is not None and bool(wrong[here & (score >= t)].mean() > risk)


def test_the_mean_risk_of_rows_of_unlike_units_is_kept() -> None:
    check(unlike, SETS, ALPHA)


def in_bursts(seed: int) -> bool:
    """Tell whether a certified rate of the curve is too low: wrong rows come in bursts, each longer than the last."""
    rng = np.random.default_rng([seed, 12])
    edges = 0.01 * 1.5 ** np.arange(12)  # of the share accepted, at which bursts begin: a third of each is wrong
    share = rng.uniform(size=3000)
    at = np.searchsorted(edges, share, side="right") - 1
    wrong = (at >= 0) & (share < edges[at] * (1.0 + 0.5 / 3.0))
    curve = cal.diagnose.acceptance_curve(cal.predictions(~wrong, 1.0 - share), risk=0.2, alpha=0.2, seed=seed).columns
    depth = 1.0 - np.array(curve["threshold"])
    ends = np.minimum(edges * (1.0 + 0.5 / 3.0), depth[:, None])
    true = np.maximum(ends - edges, 0.0).sum(axis=1) / depth
    return bool((np.array(curve["high"]) < true).any())


def test_certified_rates_of_the_curve_hold_where_wrong_rows_come_in_bursts() -> None:
    check(in_bursts, SETS, 0.2)


TOPICS = np.array(["law", "art", "biology", "history", "math"])


def pool_of(seed: int, history: float, math: float, n: int = 2000, size: int = 1) -> tuple[float, set[str]]:
    """The share accepted at a risk of 5 %, and the groups told as above it: three are at 1 %, two as asked for.

    `size`: answers of one question, which are right or wrong together.
    """
    rng = np.random.default_rng([seed, 13])
    question = np.arange(n) // size
    topic = rng.choice(5, question[-1] + 1, p=(0.4, 0.15, 0.15, 0.15, 0.15))[question]
    wrong = rng.uniform(size=question[-1] + 1)[question] < np.array([0.01, 0.01, 0.01, history, math])[topic]
    score = rng.beta(5, 1, n)
    data = cal.predictions(~wrong, score, {"topic": TOPICS[topic]}, cluster=question if size > 1 else None)
    found = cal.certify.accept(data, risk=0.05, alpha=0.2, seed=seed)
    return found.low, set(found.settings["pool"]["above_risk"])


@pytest.mark.parametrize(("n", "size"), [(2000, 1), (6000, 3)])
def test_no_group_within_the_risk_is_told_as_above_it(n: int, size: int) -> None:
    check(lambda seed: bool(pool_of(seed, 0.05, 0.05, n, size)[1]), 200, 0.2)


@pytest.mark.parametrize(("n", "size"), [(2000, 1), (12_000, 3)])
def test_a_group_with_fifteen_in_a_hundred_wrong_is_found(n: int, size: int) -> None:
    found = [above for share, above in (pool_of(seed, 0.01, 0.15, n, size) for seed in range(40)) if share > 0.5]
    assert len(found) >= 10
    assert sum(above == {"topic = math"} for above in found) >= 0.9 * len(found)


def test_the_risk_of_every_predicted_class_is_kept() -> None:
    """Three classes, each at the limit wherever it is the most probable one: alpha is shared."""
    risk, n, k = 0.2, 150, 3

    def broken(seed: int) -> bool:
        rng = np.random.default_rng([seed, 0xACC])
        top, confidence = rng.integers(0, k, n), rng.uniform(0.6, 0.99, n)
        p = np.repeat(((1.0 - confidence) / (k - 1))[:, None], k, axis=1)
        p[np.arange(n), top] = confidence
        y = np.where(rng.uniform(size=n) < risk + 1e-9, (top + 1) % k, top)
        found = cal.certify.accept(cal.multiclass_predictions(y, p), risk=risk, by="class", alpha=0.1, seed=seed)
        return any(g["threshold"] is not None for g in found.settings["groups"].values())

    check(broken, SETS, 0.1)
