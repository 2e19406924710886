"""Evidence about a population at a limit, exactly: every label vector, so that a mean of e-values is a number."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import multinomial

from calibrant.certify.closed import ErrorEvidence, Limit, SignedEvidence
from calibrant.stats.betting import leaning, sized, steady_bet_sizes
from calibrant.stats.bounds import gap_evidence, lower_evidence, product_evidence
from calibrant.stats.cells import SCALE, Cells
from calibrant.stats.evidence import log_mean_exp
from validity.enumeration import blocked_labels, level_cells

ROWS = np.array([[2, 1], [1, 2], [0, 1]])
VALUES = np.array([0.3, 0.6])
NEAR = (0.0, 0.02, 0.1, 0.3)  # how far a limit is from the truth, on the side where its hypothesis is true


def means(log_e_values, off):
    """Exact means of e-values, from their logarithms as a function of cells; scores are off by `off`."""
    return sum(p * np.exp(log_e_values(level_cells(k, VALUES))) for p, k in blocked_labels(ROWS, VALUES + off))


@pytest.mark.parametrize("off", [(0.0, 0.0), (0.2, 0.2), (-0.3, -0.3), (0.25, 0.1)])
def test_gap_evidence_has_mean_at_most_one(off):
    """Also where rows of one mean gap are off unequally: the product is largest where they are not."""
    gap = float(ROWS.sum(axis=0) @ np.array(off) / ROWS.sum())

    def both(cells):
        found = gap_evidence(cells, 0.1)
        return np.array(
            [e.at(gap + side * away) for e, side in zip(found[:2], (1.0, -1.0), strict=True) for away in NEAR]
        )

    found = means(both, np.array(off))
    assert (found <= 1 + 1e-9).all()
    if off[0] == off[1]:
        assert found[0] == pytest.approx(1.0)


KINDS = np.array([0.25, 0.25, 0.35, 0.15])  # rows by score and outcome: 0.3 said and 0.5 happen, 0.6 and 0.3
BLOCKS = (2, 2, 1)


def random_scores():
    """Yield every data set of rows whose scores are random too, by block, and its probability."""
    each = []
    for n in BLOCKS:
        counts = [k for k in product(range(n + 1), repeat=4) if sum(k) == n]
        each.append([(multinomial.pmf(k, n, KINDS), np.array(k).reshape(2, 2)) for k in counts])
    for sets in product(*each):
        yield np.prod([chance for chance, _ in sets]), level_cells(np.stack([k for _, k in sets]), VALUES)


def test_stakes_have_read_the_scores_of_earlier_rows_only():
    """Scores go with the gap: a stake that had read its own rows' scores would be large where the gap is."""
    gap = 0.5 * 0.2 - 0.5 * 0.3
    found = sum(chance * np.exp([e.at(gap) for e in gap_evidence(cells, 0.9)[:2]]) for chance, cells in random_scores())
    assert found == pytest.approx([1.0, 1.0], abs=1e-9)


@pytest.mark.parametrize("score", [0.3, 0.98, 0.002])
@pytest.mark.parametrize("n", [1, 5, 20, 300])
def test_gap_evidence_keeps_its_order_and_stays_finite(score, n):
    """At any hypothesis, whatever happened: a stake follows it, so that no row takes all of the wealth."""
    for events in {0, 1, n // 2, n}:
        counts = np.zeros((4, 1, 2), dtype=np.int64)
        counts[:, 0, 1] = np.diff(np.arange(5) * events // 4)
        counts[:, 0, 0] = np.diff(np.arange(5) * n // 4) - counts[:, 0, 1]
        if (counts < 0).any():
            continue
        found, m = gap_evidence(level_cells(counts, np.array([score])), 0.0004), np.linspace(-1.0, 1.0, 201)
        rising, falling = (np.array([e.at(x) for x in m]) for e in (found.at_least, found.at_most))
        assert np.isfinite(rising).all()
        assert np.isfinite(falling).all()
        assert (np.diff(rising) >= -1e-9).all()
        assert (np.diff(falling) <= 1e-9).all()


@pytest.mark.parametrize(("score", "events", "most"), [(0.3, 6, 90.0), (0.02, 0, 78.0)])
def test_twenty_rows_at_the_price_of_sixty_groups_say_something(score, events, most):
    """Where a stake could not follow the hypothesis the range was 197 points wide."""
    block, y = np.arange(20) % 8, np.arange(20) < events
    counts = np.stack([np.bincount(block, v, 8) for v in (~y, y)], axis=1)[:, None]
    low, high = SignedEvidence(gap_evidence(level_cells(counts, np.array([score])), 0.0004)).ends(0.0004, 0.0004)
    assert 100.0 * (high - low) < most


@pytest.mark.parametrize("off", [0.0, 0.15, -0.25])
def test_signed_evidence_has_mean_at_most_one_at_every_limit(off):
    def true(cells):
        found = SignedEvidence(gap_evidence(cells, 0.1))
        over = [found.over(Limit(max(off, 0.0) + away, max(-off, 0.0) + away)) for away in NEAR]
        short = [Limit(1.0, -off - away) if off < 0 else Limit(off - away, 1.0) for away in NEAR]
        return np.array(over + [found.within(limit) for limit in short])

    assert (means(true, off) <= 1 + 1e-9).all()


def test_signed_evidence_gives_back_what_reading_scores_took():
    """Scores are read as up to 2^-30 less than they are: the truth is refuted from below no sooner for that."""
    read, price = 2.0**-30, -np.log(0.01)
    found = SignedEvidence(gap_evidence(level_cells(np.full((4, 2, 2), 9), VALUES), 0.05))
    assert found.ends(0.01, 0.01)[0] == pytest.approx(found.gap.at_most.limit(0.01) - read, abs=1e-15)
    assert found.within(Limit(1.0, -0.02)) == -np.inf
    assert found.within(Limit(0.5, 0.3)) == min(found.gap.at_least.at(0.5), found.gap.at_most.at(-0.3 + read))
    assert found.gap.at_most.at(found.ends(0.01, 0.01)[0] + read) == pytest.approx(price, abs=1e-6)


@pytest.mark.parametrize("off", [0.0, 0.1, -0.2])
def test_error_evidence_has_mean_at_most_one_at_every_limit(off):
    def true(cells):
        above = product_evidence(VALUES, cells.totals.sum(axis=1), cells.totals[:, 1])
        found = ErrorEvidence(lower_evidence(cells, 0.2, 3), above, 0.0)
        over = [found.over(Limit(abs(off) + away, 0.0)) for away in NEAR]
        return np.array(over + [found.within(Limit(abs(off) - away, 0.0)) for away in NEAR])

    assert (means(true, off) <= 1 + 1e-9).all()


def test_ends_are_where_the_evidence_reaches_the_price():
    rng = np.random.default_rng(5)
    cells = level_cells(rng.binomial(40, 0.4, (4, 2, 2)) + 5, VALUES)
    found = SignedEvidence(gap_evidence(cells, 0.05))
    low, high = found.ends(0.01, 0.02)
    assert found.gap.at_most.at(low) == pytest.approx(-np.log(0.01), abs=1e-6)
    assert found.gap.at_least.at(high) == pytest.approx(-np.log(0.02), abs=1e-6)
    assert low < cells.residuals.sum() / cells.n < high
    below = lower_evidence(cells, 0.05, 1)
    if below.limit(0.3) > 0:
        assert below.at(below.limit(0.3)) == pytest.approx(-np.log(0.3), abs=1e-6)


def test_gap_evidence_of_a_grid_is_below_that_of_rows():
    rng = np.random.default_rng(6)
    p = rng.uniform(size=3000)
    y, block = (rng.random(3000) < p).astype(int), rng.integers(0, 8, 3000)
    q = (p * SCALE).astype(np.int64)
    counts, sums = np.zeros((8, 1024, 2), dtype=np.int64), np.zeros((8, 1024, 2), dtype=np.int64)
    np.add.at(counts, (block, q >> 20, y), 1)
    np.add.at(sums, (block, q >> 20, y), q)
    cells = Cells.grid(counts, sums)
    found = gap_evidence(cells, 0.05)
    variance, third = (np.bincount(block, v, 8) for v in (p * (1 - p), p * (1 - p) * (1 - 2 * p)))
    skewness = (np.cumsum(third) - third) / (np.cumsum(variance) - variance + 0.25)
    best = steady_bet_sizes(cells.block_rows, variance, 0.05, np.inf)
    for m, side, one in ((0.02, 1.0, found.at_most), (-0.03, -1.0, found.at_least)):
        stakes = sized(leaning(best, side * skewness), m, side)
        rows = log_mean_exp([np.log1p(side * kappa[block] * (y - q / SCALE - m)).sum() for kappa in stakes])
        assert rows - 0.01 <= one.at(m) <= rows + 1e-9
