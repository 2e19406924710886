"""Theorems CL and CU by summing over every data set, at designs where a mistake shows: no simulation."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.stats.clusters import bounds
from calibrant.stats.clusters.bounds import Above, Pairs, Quadratic, Separable, below_of, gap_of
from calibrant.stats.clusters.clusters import Clusters

ALPHA = 0.05

# Kinds of units: (probability, scores, weights, outcomes). Rows of a unit share their fate, large units have more
# events than small ones, and outcomes go with the scores of the other rows: only between units is independence.
KINDS = (
    (0.3, (0.2,), (1.0,), (0,)),
    (0.2, (0.2, 0.6), (1.0, 2.0), (1, 1)),
    (0.3, (0.6, 0.6), (0.5, 0.5), (0, 0)),
    (0.2, (0.6, 0.2, 0.2), (1.0, 1.0, 1.0), (1, 0, 1)),
)
VALUES = np.array([0.2, 0.6])


def data_sets(clusters):
    """Yield the probability and the rows of every data set of so many units."""
    for kinds in itertools.product(range(len(KINDS)), repeat=clusters):
        own = [KINDS[k] for k in kinds]
        cluster = np.repeat(np.arange(clusters), [len(k[1]) for k in own])
        p, w, y = (np.concatenate([k[i] for k in own]) for i in (1, 2, 3))
        yield math.prod(k[0] for k in own), cluster, p, w, y.astype(np.int8)


def hash_split(cluster, p, w, y):
    """Deal units to fixed places, the first as the pilot; M is given: the largest that there is."""
    block = np.array([0, 1, 1, 2, 5, 8])[: cluster.max() + 1]
    return replace(Clusters(cluster, p, y, w, block, most=3.0), block=block)


@pytest.fixture
def largest_known(monkeypatch):
    """Let M be 3, as if the pilot units had shown it, so that every data set has one estimand."""
    monkeypatch.setattr(Clusters, "largest", 3.0)


def truth():
    """Return error and gap of the kinds."""
    sums, size = np.zeros(2), 0.0
    for chance, p, w, y in KINDS:
        for score, weight, event in zip(p, w, y, strict=True):
            sums[int(score == 0.6)] += chance * weight * (event - score)
            size += chance * weight
    return np.abs(sums).sum() / size, sums.sum() / size


def cells(p):
    return (p == 0.6).astype(np.int64)


def means(evidence, clusters=4):
    """Return the exact mean of exponentials of what `evidence` returns of units."""
    return sum(chance * np.exp(np.asarray(evidence(hash_split(*rows)))) for chance, *rows in data_sets(clusters))


@pytest.mark.usefixtures("largest_known")
def test_below_at_the_true_error():
    error, _ = truth()

    def wagers(clusters):
        found = below_of(clusters.tallies(cells(clusters.p), 2, clusters.p), ALPHA, 0, few=True)
        return [replace(found, wagers=[replace(w, share=1.0)]).at(error) for w in found.wagers]

    found = means(wagers)
    assert found.max() <= 1 + 1e-9
    assert found.max() > 0.8  # and none is far below, where nothing could go wrong


@pytest.mark.usefixtures("largest_known")
@pytest.mark.parametrize("delta", [ALPHA, 0.95])
def test_gap_at_the_true_gap(delta):
    """Where every bet is cut, and where none is: what a bet has read is another matter in each."""
    _, gap = truth()
    found = means(lambda clusters: [side.at(gap) for side in gap_of(clusters, delta)[:2]])
    assert found == pytest.approx([1, 1], abs=1e-9)


def test_shares_of_the_evidence_add_up_to_one():
    clusters = hash_split(*list(data_sets(4))[7][1:])
    found = below_of(clusters.tallies(cells(clusters.p), 2, clusters.p), ALPHA, 0, few=True)
    assert sum(w.share for w in found.wagers) == pytest.approx(1.0)


@pytest.mark.parametrize("delta", [0.0004, 0.3])
def test_evidence_of_units_keeps_its_order(delta):
    """One unit as large as all others, one fate each: a cut bet loses at most nineteen twentieths on any of them."""
    size = np.append(np.ones(19, dtype=int), 19)
    cluster = np.repeat(np.arange(20), size)
    for fate in (0, 1):
        y = np.where(cluster == 19, fate, cluster % 3 == 0).astype(np.int8)
        clusters = Clusters(cluster, np.full(38, 0.3), y, np.ones(38), np.arange(20) % 9, most=19.0, designed=True)
        x = np.linspace(-1.0, 1.0, 201)
        gap = gap_of(clusters, delta)
        below = below_of(clusters.tallies(np.zeros(38, dtype=np.int64), 1, clusters.p), delta, 0, few=True)
        rising = np.array([gap.at_least.at(m) for m in x])
        falling = np.array([[gap.at_most.at(m), below.at(max(m, 0.0))] for m in x])
        assert np.isfinite(rising).all()
        assert np.isfinite(falling).all()
        assert (np.diff(rising) >= -1e-9).all()
        assert (np.diff(falling, axis=0) <= 1e-9).all()


def in_a_range(clusters, certified):
    """Return evidence at the true gap of the scores up to the median, of certified units' scores or of the pilot's."""
    chosen = clusters.p[clusters.certified[clusters.cluster] == certified]
    top = np.median(chosen) if len(chosen) else VALUES[0]
    held = [(w, e - s) for c, p, ws, y in KINDS for s, w, e in zip(p, c * np.array(ws), y, strict=True) if s <= top]
    size, sums = (sum(v) for v in ([w for w, _ in held], [w * r for w, r in held]))
    part = replace(clusters.within(clusters.p <= top), most=3.0) if (clusters.p <= top).any() else None
    if part is None or not part.certified.any():
        return [0.0, 0.0]
    return [side.at(sums / size) for side in gap_of(part, ALPHA)[:2]]


@pytest.mark.usefixtures("largest_known")
def test_gap_in_a_range_that_pilot_units_choose():
    found = means(lambda clusters: in_a_range(clusters, certified=False))
    assert found.max() <= 1 + 1e-9
    assert found.max() > 0.9


@pytest.mark.usefixtures("largest_known")
def test_saboteur_range_that_certified_units_choose():
    """Outcomes go with the scores of a unit's other rows, which choose the range."""
    assert means(lambda clusters: in_a_range(clusters, certified=True)).max() > 1.03


@pytest.mark.usefixtures("largest_known")
def test_above_at_the_true_error():
    error, _ = truth()

    def forms(clusters):
        tallies = clusters.tallies(cells(clusters.p), 2, clusters.p)
        q = Pairs.of(tallies)
        plain = [Quadratic.of(q, k) for k in (0.3, 0.1)]
        return [
            Above.of(tallies).at(error),
            *(Separable(q, k).at(error) for k in (0.3, 0.1)),
            *(f.at(error) for f in plain),
            *(f.relaxed(0.4).at(error) for f in plain),
        ]

    found = means(forms, 3)
    assert found.max() <= 1 + 1e-9
    assert found[1:3].max() > 0.7


# ---- All-or-none units at score 0: the bound is as tight as can be ----


def all_or_none(events, clusters=200, size=10, weight=None):
    """Return units without an event but for so many, all of whose rows have it; the first unit is the pilot."""
    cluster = np.repeat(np.arange(clusters + 1), size)
    y = ((cluster > 0) & (cluster <= events)).astype(np.int8)
    block = np.minimum(np.arange(clusters + 1), 1)
    return Clusters(cluster, np.zeros(len(cluster)), y, np.ones(len(cluster)) if weight is None else weight, block)


def limits(most, kappa, changed=lambda a: a):
    """Return upper limits at 0 to `most` cases, with one bet."""
    out = []
    for events in range(most + 1):
        clusters = all_or_none(events)
        tallies = clusters.tallies(np.zeros(len(clusters.p), dtype=np.int64), 1, clusters.p)
        out.append(changed(Above.of(tallies, np.array([kappa / clusters.largest]))).limit(ALPHA))
    return np.array(out)


def missed(ends, eta, clusters=200):
    """Return the probability of an end below the event rate."""
    return float(binom.pmf(np.arange(len(ends)), clusters, eta)[ends < eta].sum())


def test_tight_probe_holds():
    ends = limits(6, 0.999)
    assert missed(ends, 0.0152) <= ALPHA
    assert missed(ends, 0.0152) > 0.04
    worst = max(missed(ends, e) for e in np.concatenate([ends + 1e-9, np.linspace(0, 0.05, 101)]))
    assert worst <= ALPHA


def test_saboteur_spends_too_much():
    """A bound that asks for 90 % of ln(1 / delta)."""
    ends = limits(6, 0.999, lambda a: Louder(a))
    assert max(missed(ends, e) for e in ends + 1e-9) > 1.1 * ALPHA


class Louder:
    """Evidence that is told a tenth larger than it is."""

    def __init__(self, evidence):
        self.evidence = evidence

    def limit(self, delta):
        return self.evidence.limit(delta**0.9)


def rate_of_misses(bound, draw, sets):
    """Return the share of data sets whose bound is below the truth."""
    misses = 0
    for k in range(sets):
        clusters, error = draw(np.random.default_rng(k))
        misses += bound(clusters) < error
    return misses / sets


def upper(clusters):
    return Above.of(tallies_of(clusters)).limit(ALPHA)


def tallies_of(clusters):
    values, cell = np.unique(clusters.p, return_inverse=True)
    return clusters.tallies(cell, len(values), clusters.p)


def lottery(rng):
    """Units of one row, and one in a hundred of 40 rows all of which are events: the error is mostly theirs."""
    size = np.where(rng.uniform(size=101) < 0.02, 40, 1)
    size[0] = 40  # the pilot has seen a large one
    cluster = np.repeat(np.arange(101), size)
    y = (size[cluster] == 40).astype(np.int8)
    clusters = Clusters(cluster, np.zeros(len(cluster)), y, np.ones(len(cluster)), np.minimum(np.arange(101), 1))
    return clusters, 0.02 * 40 / (0.02 * 40 + 0.98)


def largest_seen(clusters):
    """M from the units certified, which the outcomes go with."""
    size = float(clusters.size_at[clusters.certified].max())
    return upper(replace(clusters, block=np.where(clusters.block == 0, 1, clusters.block), most=size))


def test_saboteur_largest_from_certified_units():
    assert rate_of_misses(upper, lottery, 300) <= ALPHA
    assert rate_of_misses(largest_seen, lottery, 300) > 2 * ALPHA


def mean_size(clusters):
    """The mean size in place of ``W_g``."""
    made = Above.of(tallies_of(clusters))
    q = made.forms[0][0].pairs
    other = replace(q, size=np.full(len(q.size), q.size.mean()))
    return Above([[Separable(other, f[0].kappa)] for f in made.forms]).limit(ALPHA)


def one_event_each(rng):
    """Units of one row and of 40, at score 0, each with one event: what a unit adds has nothing to do with its size."""
    size = np.where(rng.uniform(size=6401) < 0.05, 40, 1)
    size[0] = 40
    cluster = np.repeat(np.arange(6401), size)
    y = (np.diff(cluster, prepend=-1) > 0).astype(np.int8)
    clusters = Clusters(cluster, np.zeros(len(cluster)), y, np.ones(len(cluster)), np.minimum(np.arange(6401), 1))
    return clusters, 1 / (0.05 * 40 + 0.95)


@pytest.mark.slow
def test_saboteur_mean_size():
    assert rate_of_misses(upper, one_event_each, 40) <= ALPHA
    assert rate_of_misses(mean_size, one_event_each, 100) > 2 * ALPHA


def by_rows(clusters, bound=None):
    """Rows dealt without their units."""
    n = len(clusters.p)
    block = np.ones(n, dtype=np.int64)
    block[np.flatnonzero(clusters.cluster == 0)] = 0
    return (bound or upper)(Clusters(np.arange(n), clusters.p, clusters.y, clusters.input_weights, block))


def same_fate(rng):
    """100 units of 20 rows at scores of 0.3, each unit with one outcome: by chance too few or too many."""
    cluster = np.repeat(np.arange(101), 20)
    y = (rng.uniform(size=101) < 0.5)[cluster].astype(np.int8)
    clusters = Clusters(cluster, np.full(len(cluster), 0.3), y, np.ones(len(cluster)), np.minimum(np.arange(101), 1))
    return clusters, 0.2


@pytest.mark.slow
def test_saboteur_rows_without_their_units():
    assert rate_of_misses(upper, same_fate, 40) <= ALPHA
    assert rate_of_misses(by_rows, same_fate, 100) > 2 * ALPHA


def together(rng):
    """300 units of one fate, in 30 cells at scores of about one half; the rate is ten points higher."""
    cluster = np.repeat(np.arange(301), 30)
    score = np.tile(0.5 + 1e-6 * np.arange(30), 301)
    y = (rng.uniform(size=301) < 0.6)[cluster].astype(np.int8)
    clusters = Clusters(cluster, score, y, np.ones(len(cluster)), np.minimum(np.arange(301), 1))
    return clusters, 0.1 - 14.5e-6


def diagonal_only(clusters):
    """The off-diagonal of G dropped, as if cells had nothing to do with each other."""
    q, forms = Pairs.of(tallies_of(clusters)), []
    for kappa in bounds.bets(len(q.size), clusters.largest).tolist():
        plain = Quadratic.of(q, kappa)
        forms.append([replace(plain, least=float(np.trace(plain.g)))])
    return Above(forms).limit(ALPHA)


@pytest.mark.slow
def test_saboteur_without_the_eigenvalue():
    assert rate_of_misses(upper, together, 20) <= ALPHA
    assert rate_of_misses(diagonal_only, together, 100) > 2 * ALPHA
