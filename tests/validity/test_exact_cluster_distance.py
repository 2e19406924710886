"""The distance from calibration by units: exact sums over every data set, simulation, and broken copies."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.certify.whole import distance
from calibrant.stats.betting import BLOCK_ORDERS
from calibrant.stats.bounds import KNOTS, lipschitz_witness
from calibrant.stats.clusters import distance as by_clusters
from calibrant.stats.clusters.bounds import Above, below_of
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.clusters.distance import distance_above, distance_below, hats
from calibrant.views.sample import everyone
from validity.acceptance import refuted
from validity.designs import lower_distance
from validity.test_clusters import DESIGNS, VALUES, drawn
from validity.test_exact_clusters import KINDS, all_or_none, by_rows, largest_known, means, rate_of_misses, truth

# the whole file takes seconds: it waits for --rest
pytestmark = pytest.mark.slow

__all__ = ["largest_known"]  # the fixture, found by its name
ALPHA = 0.05
NONE = np.zeros(0)


def log_means(held, x):
    """Return the log e-value of every wager by itself."""
    return [replace(held, wagers=[replace(w, share=1.0)]).at(x) for w in held.wagers]


# ---- Every data set of three or four units, rows of which share their fates ----


def known():
    """Return the distance of the kinds: both scores are too low, so that it is the gap, and the error."""
    error, gap = truth()
    assert error == pytest.approx(gap)
    sums = np.zeros((2, 2))
    for chance, p, w, y in KINDS:
        for score, weight, event in zip(p, w, y, strict=True):
            sums[int(score == 0.6)] += chance * weight * np.array([1.0, event])
    shares = sums[:, 0] / sums[:, 0].sum()
    assert lower_distance([0.2, 0.6], sums[:, 1] / sums[:, 0], shares) == pytest.approx(gap, abs=1e-9)
    return gap


@pytest.mark.parametrize("clusters", [3, pytest.param(4, marks=pytest.mark.nightly)])
@pytest.mark.usefixtures("largest_known")
def test_below_at_the_true_distance(clusters):
    d = known()
    found = means(lambda held: log_means(distance_below(held, ALPHA, 0), d), clusters)
    assert found.max() <= 1 + 1e-9
    assert found.max() > 0.8


@pytest.mark.usefixtures("largest_known")
def test_above_at_the_true_distance():
    """At most one at the distance, for each display and their mean; by the score as it is, nearly one."""
    d = known()

    def logs(clusters):
        made = distance_above(clusters, np.array([0.2, 0.6]))
        return [made.at(d), *(one.at(d) for one in made.above)]

    found = means(logs, 3)
    assert found.max() <= 1 + 1e-9
    assert found[-1] > 0.7


# ---- All-or-none units of one score: the distance is that of the score from the rate ----


def of_one_score(score, events, clusters):
    """Return units of one score; so many of them, in order, have the event in all rows. A tenth are pilots."""
    held = all_or_none(events, clusters, 3)
    return replace(held, p=np.full(len(held.p), score))


@pytest.mark.parametrize("score", [0.0, 0.3, 0.52, 1.0])
def test_high_end_by_enumeration(score):
    clusters = 60
    ends = np.array([distance_above(of_one_score(score, k, clusters), NONE).limit(ALPHA) for k in range(clusters + 1)])
    for rate in np.clip(np.concatenate([np.linspace(0, 1, 41), score + ends + 1e-9, score - ends - 1e-9]), 0.0, 1.0):
        assert binom.pmf(np.arange(clusters + 1), clusters, rate)[ends < abs(rate - score) - 1e-12].sum() <= ALPHA


def test_high_end_is_tight(monkeypatch):
    """At score 0 nothing is moved and all displays are one: with one bet the bound misses almost as often as it may."""
    monkeypatch.setattr(by_clusters, "bets", lambda _, largest: np.array([0.999 / largest]))
    monkeypatch.setattr(by_clusters, "STEPS", (1 << 20,))
    monkeypatch.setattr(by_clusters, "SHARED", 2)
    ends = np.array([distance_above(all_or_none(k), np.zeros(1)).limit(ALPHA) for k in range(7)])
    wrong = [binom.pmf(np.arange(7), 200, rate)[ends < rate].sum() for rate in np.append(ends + 1e-9, 0.0152)]
    assert max(wrong) <= ALPHA
    assert wrong[-1] > 0.04


# ---- What is summed is what is said ----


def test_sums_by_knot_are_the_witness_of_each_row():
    rng = np.random.default_rng(5)
    cluster, n = np.repeat(np.arange(30), 7), 210
    y = rng.integers(0, 2, n).astype(np.int8)
    held = Clusters(cluster, rng.uniform(size=n), y, rng.gamma(1.0, size=n), np.minimum(np.arange(30), 1))
    held.p[:2] = 0.0, 1.0
    w = rng.normal(size=KNOTS + 1)
    each = held.weight * np.interp(held.p, np.linspace(0, 1, len(w)), w) * (held.y - held.p)
    assert hats(held).witnessed(w) == pytest.approx(np.bincount(cluster, each), abs=1e-12)


def test_order_of_rows_and_units_is_nothing():
    data, _ = drawn(DESIGNS["weights and units"], np.random.default_rng(6))
    held = everyone(data).clusters
    order = np.random.default_rng(7).permutation(data.n)
    turned = replace(
        held, cluster=held.cluster[order], p=held.p[order], y=held.y[order], input_weights=held.input_weights[order]
    )
    one, other = (distance_above(u, NONE).limit(ALPHA) for u in (held, turned))
    assert one == pytest.approx(other, abs=1e-9)
    one, other = (distance_below(u, ALPHA, 0).limit(ALPHA) for u in (held, turned))
    assert one == pytest.approx(other, abs=1e-9)


# ---- The public function, where the truth is a linear programme ----


def missed(design, sets):
    """Count the misses of the low and the high end."""
    out, reported = np.zeros(2, dtype=int), {}
    for k in range(sets):
        data, truth_of = drawn(design, np.random.default_rng([0x24, k]))
        largest = everyone(data).clusters.largest
        if largest not in reported:
            rates = VALUES + signed(design, largest)
            reported[largest] = lower_distance(VALUES, rates, np.full(len(VALUES), 1 / len(VALUES)))
            assert reported[largest] <= truth_of(largest)[0] + 1e-9
        low, high = (distance(data, alpha=ALPHA, side=side).interval for side in ("lower", "upper"))
        out += [low.low > reported[largest] + 1e-9, high.high < reported[largest] - 0.0025]  # the programme's steps
    return out


def signed(design, largest):
    """Return how far the rate is above the score, by score, where a unit weighs at most `largest`."""
    _, sizes, _, off, large, cv = design
    size = np.minimum(np.array(sizes, dtype=float), largest if cv == 0 else np.inf)
    sign = np.where(np.arange(len(VALUES)) % 2, -1.0, 1.0)
    tilt = np.where(np.array(sizes) > np.median(sizes), large, -large)
    return off * np.minimum(VALUES, 1 - VALUES) * sign + float(tilt @ size) / size.sum()


@pytest.mark.parametrize("name", DESIGNS)
def test_both_ends(name):
    for count in missed(DESIGNS[name], 8):
        assert not refuted(count, 8, ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize("name", DESIGNS)
def test_both_ends_often(name):
    for count in missed(DESIGNS[name], 300):
        assert not refuted(count, 300, ALPHA)


# ---- Broken copies ----


def two_scores(rng):
    """4,000 units of two rows at 0.3 or 0.7, each with one fate, a coin: in halves they are calibrated, yet far off."""
    cluster = np.repeat(np.arange(4001), 2)
    y = (rng.uniform(size=4001) < 0.5)[cluster].astype(np.int8)
    block = np.minimum(np.arange(4001), 1)
    p = np.where(np.arange(4001) % 2, 0.3, 0.7)[cluster]
    held = Clusters(cluster, p, y, np.ones(len(cluster)), block)
    return held, lower_distance([0.3, 0.7], [0.5, 0.5], [0.5, 0.5])


def upper(held):
    return distance_above(held, NONE).limit(ALPHA)


def test_saboteur_without_how_far_rounding_moves(monkeypatch):
    monkeypatch.setattr(by_clusters, "STEPS", (2,))

    def moves_nothing(held):
        level = np.floor(held.p * 2 + 0.5).astype(np.int64)
        return Above.of(held.tallies(level, 3, level / 2)).limit(ALPHA)

    assert rate_of_misses(upper, two_scores, 20) <= ALPHA
    assert rate_of_misses(moves_nothing, two_scores, 20) > 2 * ALPHA


def same_fate(rng):
    """100 units of 20 rows at scores of 0.3 that share one outcome, half of which happen: off by 0.2."""
    cluster = np.repeat(np.arange(101), 20)
    y = (rng.uniform(size=101) < 0.5)[cluster].astype(np.int8)
    return Clusters(cluster, np.full(len(cluster), 0.3), y, np.ones(len(cluster)), np.minimum(np.arange(101), 1)), 0.2


def test_saboteur_rows_without_their_units():
    def without(held):
        return by_rows(held, upper)

    assert rate_of_misses(upper, same_fate, 20) <= ALPHA
    assert rate_of_misses(without, same_fate, 30) > 2 * ALPHA


def alternating(rng):
    """Units of two rows whose score is too high and too low by turns: much error, and little distance."""
    cluster = np.repeat(np.arange(3001), 2)
    cell = rng.integers(0, 2, len(cluster))
    p = np.array([0.48, 0.52])[cell]
    y = (rng.uniform(size=len(cluster)) < np.array([0.7, 0.3])[cell]).astype(np.int8)
    block = np.concatenate([[0], 1 + np.arange(3000) % 8])
    held = Clusters(cluster, p, y, np.ones(len(cluster)), block)
    return held, lower_distance([0.48, 0.52], [0.7, 0.3], [0.5, 0.5])


def too_high(bound, sets):
    """Return the share of data sets whose low end is above the truth."""
    found = [(bound(held), d) for held, d in (alternating(np.random.default_rng(k)) for k in range(sets))]
    return float(np.mean([low > d for low, d in found]))


def signs_for_a_witness(held):
    """Any function bounded by one, as of the error, where its slope has to be bounded too."""
    return below_of(held.tallies((held.p > 0.5).astype(np.int64), 2, held.p), ALPHA, 0, few=True).limit(ALPHA)


def test_saboteur_a_witness_that_may_jump():
    assert too_high(lambda held: distance_below(held, ALPHA, 0).limit(ALPHA), 10) <= ALPHA
    assert too_high(signs_for_a_witness, 10) > 2 * ALPHA


@pytest.mark.usefixtures("largest_known")
def test_saboteur_learnt_on_the_units_it_bets_on():
    """The witness has seen what it bets on: its mean at the truth is above one."""
    d = known()

    def seen(clusters):
        tallies, made = hats(clusters), distance_below(clusters, ALPHA, 0)
        won = tallies.witnessed(lipschitz_witness(tallies.by_block().sum(axis=0)))[clusters.certified]
        return log_means(replace(made, wagers=[replace(w, gain=won) for w in made.wagers[-BLOCK_ORDERS:]]), d)

    assert means(seen, 3).min() > 1.05
