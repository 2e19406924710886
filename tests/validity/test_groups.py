"""Groups against a limit: no group wrongly over it or within it, no gap outside its range, none off by more than U."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.certify.closed import refuted
from calibrant.certify.groups import groups, worst_group
from calibrant.stats.bounds import product_evidence
from validity.acceptance import check, count
from validity.acceptance import refuted as refutes

ALPHA = 0.05


def rng_of(*stream):
    return np.random.default_rng([0x6A09, *stream])


# ---- wrongly met: fifty groups that all are over the limit by a hair ----

ROWS, GROUPS = 200, 50


def zero_evidence(limit):
    """The log e-value that a group of score 0 is within a limit, by its number of cases."""
    one = np.zeros(1), np.array([ROWS])
    return np.array([product_evidence(*one, np.array([k])).at(limit) for k in range(ROWS // 4)])


def wrongly_met(decide, limit):
    table = zero_evidence(limit)

    def miss(replicate):
        events = rng_of(1, replicate).binomial(ROWS, limit + 1e-9, GROUPS)
        return bool(np.any(decide(table[np.minimum(events, len(table) - 1)], ALPHA / 2)))

    return miss


ALONE = next(x for x in np.arange(0.01, 0.1, 1e-4) if zero_evidence(x)[0] > -np.log(ALPHA / 2))  # met by no case


@pytest.mark.parametrize("limit", [ALONE, 0.03, 0.05])
def test_no_group_is_wrongly_met(limit):
    check(wrongly_met(refuted, limit), 2000, ALPHA / 2)


# ---- wrongly broken: groups exactly at the limit ----


# ---- the worst of all ----


def worst_misses(delta, runs):
    """Sets in which one group of many is off by more than the largest end: the others are known to be fine."""
    eta, one = ALONE - 1e-4, (np.zeros(1), np.array([ROWS]))
    top = np.array([product_evidence(*one, np.array([k])).limit(delta) for k in range(ROWS // 4)])
    fine = product_evidence(np.zeros(1), np.array([20 * ROWS]), np.zeros(1)).limit(delta)

    def miss(replicate):
        events = rng_of(5, replicate).binomial(ROWS, eta)
        return max(top[min(events, len(top) - 1)], fine) < eta

    return count(miss, runs)


def test_worst_group_shares_with_nobody_and_holds():
    assert not refutes(worst_misses(ALPHA / 2, 2000), 2000, ALPHA / 2)


# ---- the public functions ----


def sites(replicate, rows=400, each=8, off=0.06):
    """Eight sites, of which every other is off by so much."""
    rng = rng_of(6, replicate)
    p, site = rng.uniform(0.2, 0.8, rows * each), np.repeat(np.arange(each), rows)
    y = rng.random(rows * each) < p + np.where(site % 2, off, 0.0)
    return cal.predictions(y, p, {"site": np.char.add("s", site.astype(str))}), off


@pytest.mark.parametrize("judge", ["error", "gap"])
def test_whole_functions(judge):
    wrong = {"over": 0, "within": 0, "worst": 0, "range": 0}
    runs = 100
    for r in range(runs):
        data, off = sites(r)
        at = groups(data, by="site", limit=off, judge=judge, alpha=ALPHA)
        below = groups(data, by="site", limit=off - 1e-6, judge=judge, alpha=ALPHA)
        wrong["over"] += any(e.settings["verdict"] == "over" for e in at.values())
        wrong["within"] += any(e.settings["verdict"] == "within" for e in list(below.values())[1::2])
        wrong["worst"] += worst_group(data, by="site", judge=judge, alpha=ALPHA).interval.high < off - 0.005
        if judge == "gap":
            truth = [off * (i % 2) for i in range(8)]
            wrong["range"] += any(
                not e.interval.low <= t <= e.interval.high for e, t in zip(at.values(), truth, strict=True)
            )
    assert not any(refutes(n, runs, ALPHA) for n in wrong.values()), wrong
