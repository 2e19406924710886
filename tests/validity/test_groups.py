"""Groups against a limit: no group wrongly over it or within it, no gap outside its range, none off by more than U."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.certify.closed import Limit, SignedEvidence, refuted, stakes_for, verdicts
from calibrant.certify.groups import groups, worst_group
from calibrant.stats.bounds import GapEvidence, lower_evidence, product_evidence
from validity import saboteurs
from validity.acceptance import check, count
from validity.acceptance import refuted as refutes
from validity.enumeration import level_cells

ALPHA = 0.05


def rng_of(*stream):
    return np.random.default_rng([0x6A09, *stream])


def dealt(rng, rows, values, rates):
    """Cells in eight blocks of so many rows of scores that take these values, with these event rates."""
    level, block = rng.integers(0, len(values), rows), rng.integers(0, 8, rows)
    counts = np.zeros((8, len(values), 2), dtype=np.int64)
    np.add.at(counts, (block, level, (rng.random(rows) < np.asarray(rates)[level]).astype(int)), 1)
    return level_cells(counts, values)


# ---- wrongly met: fifty groups that all are over the limit by a hair ----

ROWS, GROUPS = 200, 50


def zero_evidence(limit):
    """The log e-value that a group of score 0 is within a limit, by its number of cases."""
    one = np.zeros(1), np.array([ROWS])
    return np.array([product_evidence(*one, np.array([k])).at(limit) for k in range(ROWS // 4)])


def wrongly_met(decide, limit):
    table = zero_evidence(limit)

    def miss(replicate):
        cases = rng_of(1, replicate).binomial(ROWS, limit + 1e-9, GROUPS)
        return bool(np.any(decide(table[np.minimum(cases, len(table) - 1)], ALPHA / 2)))

    return miss


ALONE = next(x for x in np.arange(0.01, 0.1, 1e-4) if zero_evidence(x)[0] > -np.log(ALPHA / 2))  # met by no case


@pytest.mark.parametrize("limit", [ALONE, 0.03, 0.05])
def test_no_group_is_wrongly_met(limit):
    check(wrongly_met(refuted, limit), 2000, ALPHA / 2)


def test_closed_testing_that_does_not_share():
    assert refutes(count(wrongly_met(saboteurs.each_alone, ALONE), 400), 400, ALPHA / 2)


# ---- wrongly broken: groups exactly at the limit ----


@pytest.mark.parametrize(("rows", "runs"), [(60, 60), (3000, 40)])
@pytest.mark.parametrize("off", [0.0, 0.1, -0.1])
def test_no_group_is_wrongly_broken(rows, runs, off):
    values = np.array([0.3, 0.6])
    limit = max(abs(off), 0.01)

    def miss(replicate):
        over = [
            lower_evidence(dealt(rng_of(2, rows, replicate, g), rows, values, values + off), ALPHA / 20, g).at(limit)
            for g in range(10)
        ]
        return bool(refuted(over, ALPHA / 2).any())

    check(miss, runs, ALPHA / 2)


@pytest.mark.parametrize(("rows", "runs"), [(60, 600), (3000, 400)])
@pytest.mark.parametrize("off", [0.05, -0.05])
def test_verdicts_on_gaps(rows, runs, off):
    """Half of the groups at the limit, half over it by a hair: none is wrongly broken, none wrongly met."""
    values, limit, half = np.array([0.2, 0.5]), abs(off), 10
    stakes = stakes_for(ALPHA / 2, 2 * half)

    def says(replicate):
        found = [
            SignedEvidence(GapEvidence.of(dealt(rng_of(3, rows, replicate, g), rows, values, values + off), stakes))
            for g in range(2 * half)
        ]
        at, below = Limit(limit, limit), Limit(limit - 1e-9, limit - 1e-9)
        over, within = [f.over(at) for f in found[:half]], [f.within(below) for f in found[half:]]
        none = [-np.inf] * half
        return verdicts(over + none, none + within, "gap", ALPHA)

    seen = [says(r) for r in range(runs)]
    assert not refutes(sum("broken" in s for s in seen), runs, ALPHA)
    assert not refutes(sum("met" in s for s in seen), runs, ALPHA / 2)


def gap_misses(share, rows, runs, each=20):
    """Sets in which any group's gap is outside its range."""
    values, off = np.array([0.02, 0.1]), 0.01
    stakes = stakes_for(ALPHA / 2, each)

    def miss(replicate):
        for g in range(each):
            cells = dealt(rng_of(4, rows, replicate, g), rows, values, values + off)
            low, high = SignedEvidence(GapEvidence.of(cells, stakes)).ends(share, share)
            if not low <= off <= high:
                return True
        return False

    return count(miss, runs)


@pytest.mark.parametrize("rows", [60, 2000])
def test_gaps_of_all_groups_are_in_their_ranges(rows):
    assert not refutes(gap_misses(ALPHA / 40, rows, 150), 150, ALPHA)


def test_gap_ranges_that_do_not_share():
    assert refutes(gap_misses(ALPHA, 2000, 60, 60), 60, ALPHA)


# ---- the worst of all ----


def worst_misses(delta, runs):
    """Sets in which one group of many is off by more than the largest end: the others are known to be fine."""
    eta, one = ALONE - 1e-4, (np.zeros(1), np.array([ROWS]))
    top = np.array([product_evidence(*one, np.array([k])).limit(delta) for k in range(ROWS // 4)])
    fine = product_evidence(np.zeros(1), np.array([20 * ROWS]), np.zeros(1)).limit(delta)

    def miss(replicate):
        cases = rng_of(5, replicate).binomial(ROWS, eta)
        return max(top[min(cases, len(top) - 1)], fine) < eta

    return count(miss, runs)


def test_worst_group_shares_with_nobody_and_holds():
    assert not refutes(worst_misses(ALPHA / 2, 2000), 2000, ALPHA / 2)


def test_worst_group_by_ends_that_hold_half_the_time():
    assert refutes(worst_misses(0.5, 400), 400, ALPHA / 2)


# ---- the public functions ----


def sites(replicate, rows=400, each=8, off=0.06):
    """Eight sites, of which every other is off by so much."""
    rng = rng_of(6, replicate)
    p, site = rng.uniform(0.2, 0.8, rows * each), np.repeat(np.arange(each), rows)
    y = rng.random(rows * each) < p + np.where(site % 2, off, 0.0)
    return cal.predictions(y, p, {"site": np.char.add("s", site.astype(str))}), off


@pytest.mark.parametrize("judge", ["error", "gap"])
def test_whole_functions(judge):
    wrong = {"broken": 0, "met": 0, "worst": 0, "range": 0}
    runs = 15
    for r in range(runs):
        data, off = sites(r)
        at = groups(data, by="site", limit=off, judge=judge, alpha=ALPHA)
        below = groups(data, by="site", limit=off - 1e-6, judge=judge, alpha=ALPHA)
        wrong["broken"] += any(e.settings["verdict"] == "broken" for e in at.values())
        wrong["met"] += any(e.settings["verdict"] == "met" for e in list(below.values())[1::2])
        wrong["worst"] += worst_group(data, by="site", judge=judge, alpha=ALPHA).interval.high < off - 0.005
        if judge == "gap":
            truth = [off * (i % 2) for i in range(8)]
            wrong["range"] += any(
                not e.interval.low <= t <= e.interval.high for e, t in zip(at.values(), truth, strict=True)
            )
    assert not any(refutes(n, runs, ALPHA) for n in wrong.values()), wrong
