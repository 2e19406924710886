"""Ends for people without a label, exactly: means of the evidence over every outcome, of people and of units."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.certify.missing_labels import verdict
from calibrant.stats.missing.unlabelled import (
    HEAVIEST,
    WITHOUT,
    ClusterRange,
    Counts,
    Ends,
    Range,
    line_above,
    most_likely,
    stands_to,
)
from validity.test_missing_labels import ENDS, Design
from validity.test_missing_labels_clusters import DELTA, Floats
from validity.test_missing_labels_clusters import ENDS as CLUSTER_ENDS
from validity.test_missing_labels_clusters import Design as ClusterDesign
from validity.test_missing_labels_clusters import design as cluster_design

# ---- people ----


@pytest.mark.parametrize("odds", [1.0, 2.0, 7.0, np.inf])
@pytest.mark.parametrize("end", ENDS)
def test_the_mean_of_the_evidence_is_at_most_one_in_every_small_table(odds: float, end: str) -> None:
    """Exactly: over every outcome of ten people in three cells, one of which has nobody with a label."""
    known, unknown, score = np.array([5, 5, 0]), np.array([2, 0, 3]), np.array([0.1, 0.55, 0.8])
    for q in product((0.0, 0.08, 0.4, 1.0), (0.2, 0.6)):
        own = np.array([*q, 0.5])
        for absent in (most_likely(own, odds), 1.0 - most_likely(1.0 - own, odds)):
            d = Design(known, unknown, score, own, np.array([*absent[:2], 1.0]), odds)
            mean = 0.0
            for events in product(range(6), range(6)):
                counts = Counts(known, np.array([*events, 0]), unknown, score)
                chance = float(np.prod(binom.pmf(events, 5, own[:2])))
                mean += chance * float(np.exp(ENDS[end](Range(counts, odds), d))) if chance else 0.0
            assert mean <= 1.0 + 1e-9


@pytest.mark.parametrize("odds", [1.0, 1.05, 2.0, 30.0, 1e6, np.inf])
def test_a_line_lies_above_every_probability_that_the_odds_allow(odds: float) -> None:
    q = np.linspace(0.0, 1.0, 2001)
    for known, unknown in ((100, 1), (10, 10), (1, 500), (0, 3)):
        score = np.linspace(0.0, 1.0, 41)
        counts = Counts(*(np.full(41, v) for v in (known, 0, unknown)), score)
        c, b = line_above(counts, score, odds)
        assert (c[:, None] + b[:, None] * q >= most_likely(q, odds) - 1e-12).all()
        assert (known == 0) <= (b == 0.0).all()
        assert (1.0 + unknown / max(known, 1) * b <= HEAVIEST + 1e-9).all()


@pytest.mark.parametrize("unknown", [(0, 0), (3, 1)])
@pytest.mark.parametrize("delta", [0.2, 0.025])
def test_by_the_number_of_events_an_end_is_wrong_as_often_as_it_may_be(unknown: tuple[int, int], delta: float) -> None:
    """Over every number of events, the rates of those with an outcome equal or not, of the others all 0 or all 1."""
    known, score = np.array([6, 9]), np.array([0.2, 0.6])
    ends = {}
    for events in product(range(7), range(10)):
        counts = Counts(known, np.array(events), np.array(unknown), score)
        ends[events] = Range(counts, np.inf)._by_events(delta)
        assert Range(counts, np.inf).gap(delta) == ends[events]
    said = float(score @ (known + np.array(unknown)))
    for q in product((0.0, 0.03, 0.3, 0.7, 1.0), repeat=2):
        chance = {e: float(np.prod(binom.pmf(e, known, q))) for e in ends}
        for others, end in ((0, 0), (sum(unknown), 1)):  # the least that can have happened, and the most
            gap = (float(known @ np.array(q)) + others - said) / (known.sum() + sum(unknown))
            missed = sum(c for e, c in chance.items() if (ends[e][0] > gap + 1e-12, ends[e][1] < gap - 1e-12)[end])
            assert missed <= delta + 1e-12


def test_bets_stay_where_scores_are_nearly_sure() -> None:
    known, unknown = np.array([500, 500]), np.array([0, 20])
    for score, bets in (([0.01, 0.99], True), ([0.4, 0.6], False)):
        for events in ([5, 495], [200, 300]):  # which of the two it is, outcomes do not decide
            counts = Counts(known, np.array(events), unknown, np.array(score))
            found = Range(counts, np.inf)
            assert found.gap(0.025) == (Ends.gap(found, 0.025) if bets else found._by_events(0.025))
    labelled = Counts(np.array([1000]), np.array([300]), np.array([0]), np.array([0.3]))
    low, high = Range(labelled, 1.0).gap(0.025)
    assert high - low < 0.92 * float(np.subtract(*Ends.gap(Range(labelled, 1.0), 0.025)[::-1]))


# ---- units ----


@pytest.mark.slow
@pytest.mark.parametrize("odds", [1.0, 2.0, 7.0, np.inf])
@pytest.mark.parametrize("end", CLUSTER_ENDS)
def test_the_mean_of_the_evidence_is_at_most_one_over_every_outcome(odds: float, end: str) -> None:
    """Exactly: four units of three rows in three steps, rows of one fate, weights that differ, one step all lost."""
    cluster, step = np.repeat(np.arange(4), 3), np.array([0, 1, 2, 0, 0, 1, 1, 1, 2, 0, 1, 2])
    weight = np.array([1.0, 0.5, 2.0, 1.0, 3.0, 0.2, 1.0, 1.0, 1.0, 0.7, 2.0, 1.5])
    lost = np.array([0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1], dtype=bool)
    score = np.array([0.1, 0.55, 0.8])
    for first, second in product((0.0, 0.08, 0.6, 1.0), (0.2, 0.7)):
        q = np.array([first, second, 0.5])
        for far in (most_likely(q, odds), 1.0 - most_likely(1.0 - q, odds)):
            far = np.array([*far[:2], 1.0])
            d = ClusterDesign(cluster, step, score[step], weight, lost, np.where(lost, far[step], q[step]), 1.0)
            fates = [cluster_fates(d.eta[cluster == g]) for g in range(4)]
            mean = 0.0
            for each in product(*fates):
                chance = float(np.prod([c for c, _ in each]))
                y = np.concatenate([v for _, v in each])
                evidence = CLUSTER_ENDS[end](ClusterRange(d.counts(np.where(lost, np.nan, y)), odds), d)
                mean += chance * float(np.exp(evidence))
            assert mean <= 1.0 + 1e-9


def cluster_fates(eta: Floats) -> list[tuple[float, Floats]]:
    """Return what may happen to rows that share one uniform number, with its chance."""
    cuts = np.unique([0.0, *eta, 1.0])
    return [(b - a, (eta > a).astype(float)) for a, b in pairwise(cuts)]


@pytest.mark.parametrize("odds", [1.0, 2.0, np.inf])
def test_units_of_one_row_that_weigh_alike_are_people(odds: float) -> None:
    d = cluster_design(1500, 1, 2.0, intraclass_correlation=0.0)
    found = d.draw(0)
    held = np.isnan(found.y)
    known, unknown = (np.bincount(found.step[at], minlength=12) for at in (~held, held))
    counts = Counts(known, np.bincount(found.step, found.y == 1.0, 12).astype(int), unknown, found.score)
    people, clusters = Range(counts, odds), ClusterRange(found, odds)
    assert clusters.gap(DELTA) == pytest.approx(Ends.gap(people, DELTA), abs=1e-3)
    assert clusters.error_above(DELTA) == pytest.approx(people.error_above(DELTA), abs=1e-3)


def test_a_verdict_stands_to_the_last_ratio_at_which_it_holds() -> None:
    ratios = (1.0, 1.1, 1.2, 1.3)
    assert [stands_to(lambda odds, most=most: odds <= most, ratios) for most in (0.9, 1.0, 1.2, 2.0)] == [
        0,
        1,
        1.2,
        1.3,
    ]


def test_two_kinds_of_line_share_the_evidence() -> None:
    counts = Counts(np.array([40, 60]), np.array([9, 30]), np.array([10, 5]), np.array([0.3, 0.6]))
    both = Range(counts, 2.0)
    for x in (-0.2, 0.0, 0.1):
        each = [np.exp(bets.refute_mean(1.0, x)) for bets in (both.evidence(2.0), both.evidence(np.inf))]
        assert both.refutes_gap(1.0, x) == pytest.approx(np.log((1.0 - WITHOUT) * each[0] + WITHOUT * each[1]))


def test_a_gap_is_within_a_limit_on_both_sides() -> None:
    ends = [(-0.05, 0.05), (-0.5, 0.05), (-0.05, 0.5), (0.2, 0.3), (-0.3, -0.2)]
    assert [verdict(*e, 0.1) for e in ends] == ["within", "undecided", "undecided", "over", "over"]


@pytest.mark.parametrize("delta", [0.3, 0.01])
def test_ends_of_a_gap_are_where_the_evidence_reaches_the_price(delta: float) -> None:
    counts = Counts(np.array([400, 600]), np.array([90, 300]), np.array([100, 50]), np.array([0.3, 0.6]))
    both = Range(counts, 2.0)
    low, high = both.gap(delta)
    assert both.refutes_gap(1.0, -low) == pytest.approx(-np.log(delta), abs=1e-6)
    assert both.refutes_gap(-1.0, high) == pytest.approx(-np.log(delta), abs=1e-6)
