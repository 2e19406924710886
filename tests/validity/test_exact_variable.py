"""Certificates along a variable, exactly: every sample of a few rows, and the inequalities they rest on."""

from dataclasses import replace
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest

from calibrant.stats import variable
from calibrant.stats.variable import ChordLedger, PowerLedger, RowLedger


def rng(*stream):
    return np.random.default_rng([0xA10C, *stream])


LAWS = {  # probability of cell, score, outcome; the error along the cells is a finite sum
    "calibrated": [(0, 0.2, 0, 0.4), (0, 0.2, 1, 0.1), (1, 0.7, 0, 0.15), (1, 0.7, 1, 0.35)],
    "opposite": [(0, 0.5, 1, 0.35), (0, 0.5, 0, 0.15), (1, 0.5, 1, 0.1), (1, 0.9, 0, 0.4)],
    "one cell, certain": [(0, 0.0, 0, 0.9), (0, 0.0, 1, 0.1)],
    "many scores": [(0, 0.1, 0, 0.3), (0, 0.9, 1, 0.2), (1, 0.4, 1, 0.3), (1, 0.6, 0, 0.2)],
}


def error_of(law):
    sums = np.zeros(2)
    for cell, p, y, mass in law:
        sums[cell] += mass * (y - p)
    return float(np.abs(sums).sum())


def ledgers(law, n):
    """Every sequence of n rows with its probability."""
    for rows in product(law, repeat=n):
        cell = np.array([r[0] for r in rows], dtype=np.int32)
        residual = np.array([r[2] - r[1] for r in rows])
        block = np.zeros(n, dtype=np.uint8)
        yield RowLedger(residual, cell, block, 2, 1), float(np.prod([r[3] for r in rows]))


@pytest.mark.parametrize("name", LAWS)
def test_products_are_e_values(name):
    law, n = LAWS[name], 4
    truth = error_of(law)
    gammas, kappas = (0.3, 0.95), (1.0, 1.6)
    upper, lower = np.zeros(2), np.zeros((2, 2))
    for ledger, mass in ledgers(law, n):
        upper += [mass * np.exp(-variable._cost(ledger, g, 0.0, None)) for g in gammas]
        for i, bet_size in enumerate(kappas):
            for j, ordered in enumerate((True, False)):
                lower[i, j] += mass * np.exp(variable._forward(ledger, bet_size, ordered, (0.0,), 1.0)[0])
    for i, gamma in enumerate(gammas):
        assert upper[i] <= (1 - gamma * truth) ** n * (1 + 1e-12)
    for i, bet_size in enumerate(kappas):
        assert (lower[i] <= (1 + min(bet_size / 2, 0.9) * truth) ** n * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", LAWS)
def test_limits_miss_exactly_as_seldom_as_claimed(name):
    truth, missed = error_of(LAWS[name]), np.zeros(2)
    for ledger, mass in ledgers(LAWS[name], 4):
        missed[0] += mass * (variable.upper_bound(ledger, 0.3) < truth - 1e-9)
        missed[1] += mass * (variable.lower_bound(ledger, 0.3, 0, True) > truth + 1e-9)
    assert (missed <= 0.3).all()


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("delta", [0.01, 0.9])
def test_evidence_of_the_shift_has_mean_one(name, delta):
    """Where every stake is cut, and where none is: it has read the residuals of earlier blocks and no others."""
    law, found = LAWS[name], np.zeros(2)
    gap = sum(mass * (y - p) for _, p, y, mass in law)
    for ledger, mass in ledgers(law, 4):
        dealt = replace(ledger, block=np.array([0, 0, 1, 2], dtype=np.uint8), blocks=3)
        found += [mass * np.exp(side.at(gap)) for side in variable.gap_evidence(dealt, delta)[:2]]
    assert found == pytest.approx([1.0, 1.0], abs=1e-9)


def test_ledgers_never_claim_more_than_the_rows():
    g = rng(1)
    n, cells = 3000, 5
    p, cell = g.uniform(size=n), g.integers(0, cells, n).astype(np.int32)
    y = (g.uniform(size=n) < p).astype(float)
    block = g.integers(0, 4, n).astype(np.uint8)
    rows = RowLedger(y - p, cell, block, cells, 4)
    at = (block, cell, (p >= 0.5).astype(int), y.astype(int))
    counts, scores, squares = (np.zeros((4, cells, 2, 2)) for _ in range(3))
    for out, value in ((counts, 1.0), (scores, p), (squares, p**2)):
        np.add.at(out, at, value)
    ends = np.array([0.0, 0.5]), np.array([0.5, 1.0])
    for other in (
        PowerLedger.of(rows),
        ChordLedger(counts, scores, *ends),
        ChordLedger(counts, scores, *ends, squares),
    ):
        for t in (-0.8, -0.1, 0.02, 0.5):
            for gap in (-0.05, 0.0, 0.1):
                tilt = np.full(cells, t)
                for block_number in (None, 2):
                    exact = rows.growth(tilt, gap, block_number)
                    bound = other.growth(tilt, gap, block_number)
                    assert (bound <= exact + 1e-9).all()
                    slack = 0.1 if isinstance(other, PowerLedger) else 60.0
                    assert abs(t) > 0.1 or (bound >= exact - slack * t**2 - 1e-9).all()


def test_bets_beyond_the_shift_read_the_past_only():
    """Rows of the block that is played last, and limits of the shift that all rows set, move no bet placed before."""

    def placed(last):
        g = rng(9)
        residual, block = g.uniform(-0.5, 0.5, 800), np.repeat(np.arange(8, dtype=np.uint8), 100)
        residual[block == 7] = last
        seen = []

        def bet(block_rows, order, delta, learn, grow):
            order = np.arange(8)
            seen.extend(learn(order[: i + 1]) for i in range(7))
            return 0.0, np.full(7, 0.1), block_rows[order[1:]]

        ledger = RowLedger(residual, g.integers(0, 3, 800).astype(np.int32), block, 3, 8)
        with patch.object(variable, "bet", bet):
            variable.lower_bound(ledger, 0.05, 0, True, variable.gap_limits(ledger, 0.01))
        return [np.append(signal, moment) for signal, moment in seen]

    assert np.array_equal(placed(0.0), placed(0.9))
