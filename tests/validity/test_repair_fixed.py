"""Is it fixed? "Met" and "broken" are wrong no oftener than they say.

What is spent of alpha is added up in test_exact_repairs; here ranges and verdicts are simulated on designs whose truth
is a formula, and which are chosen from as freely as an audit does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.repair.judge.fixed import Fixed
from calibrant.repair.judge.rows import Judged, Judging, People
from calibrant.repair.judge.verdict import AS_AUDITED
from validity.acceptance import SETS, check

ALPHA = 0.2
EACH = 400  # rows of a group
LIMIT = 0.1


def against(judge: Any, limit: float = LIMIT) -> Judging:
    return Judging(limit=limit, judge=judge, alpha=ALPHA)


def judged(y: Any, scores: dict[str, Any], part: Any = None) -> Judged:
    data = cal.predictions(y, scores[AS_AUDITED])
    return Judged.of(data, scores, np.zeros(len(y), dtype=np.int64) if part is None else part)


def people(group: Any, share: float) -> list[People]:
    """Return a population for each level of a column."""
    return [
        People(id=str(g), who=str(g), kind="group", rows=np.flatnonzero(group == g), share=share, shown=False)
        for g in np.unique(group)
    ]


# ---- groups whose gap is at the limit, whatever repair is taken: the luckiest is looked for ----


def wrongly_met(seed: int, groups: int, share: float) -> bool:
    """Tell whether a group is called met, before or after, whose truth is just over the limit."""
    rng = np.random.default_rng([seed, 0xF1ED])
    group = np.repeat(np.arange(groups), EACH)
    eta = np.full(len(group), 0.4)
    y = (rng.uniform(size=len(group)) < eta).astype(np.int8)
    off = LIMIT + 1e-6
    scores = {AS_AUDITED: eta - off, "higher": eta + off, "mixed": eta + off * np.where(group % 2 == 0, 1.0, -1.0)}
    found = Fixed.of(judged(y, scores), people(group, share), against("gap"))
    return any(found.verdict(one, name) == "within" for one in found.people for name in scores)


def test_no_group_picked_for_its_luck_is_wrongly_met() -> None:
    check(lambda seed: wrongly_met(seed, 20, 1.0 / 20), 500, ALPHA)


def wrongly_broken(seed: int) -> bool:
    """Tell whether a group is called broken, before or after, whose truth is just within the limit."""
    rng = np.random.default_rng([seed, 0xB0])
    group = np.repeat(np.arange(20), EACH)
    eta = np.full(len(group), 0.4)
    y = (rng.uniform(size=len(group)) < eta).astype(np.int8)
    scores = {AS_AUDITED: eta - LIMIT + 1e-6, "higher": eta + LIMIT - 1e-6}
    found = Fixed.of(judged(y, scores), people(group, 1.0 / 20), against("gap"))
    return any(found.verdict(one, name) == "over" for one in found.people for name in scores)


def test_no_group_picked_for_its_luck_is_wrongly_broken() -> None:
    check(wrongly_broken, 500, ALPHA)


# ---- a repair that only seems to mend: it learnt its rows by heart ----

SITES, PEOPLE = 120, 10


def seems_mended(seed: int) -> bool:
    """Tell whether a map of noise is called met: each site's rate among ten people, where all have the same rate."""
    rng = np.random.default_rng([seed, 0x5EE])
    site = np.repeat(np.arange(SITES), PEOPLE)
    fit, new = (rng.integers(0, 2, len(site)).astype(np.int8) for _ in range(2))
    rate = np.bincount(site, fit) / PEOPLE
    scores = {AS_AUDITED: np.full(len(site), 0.7), "by site": rate[site]}
    rows = judged(new, scores)
    everyone = People(id="everyone", who="everyone", kind="everyone", rows=np.arange(len(site)))
    truth = float(np.abs(rate - 0.5).mean())  # every event rate is one half, at every value of the score
    limit = 0.95 * truth
    return Fixed.of(rows, [everyone], against("error", limit)).verdict(everyone, "by site") == "within"


def test_a_repair_that_only_seems_to_mend_is_not_met() -> None:
    check(seems_mended, SETS, ALPHA)


# ---- a repair that truly mends ----


def test_a_repair_that_truly_mends_is_met_where_there_are_rows_enough() -> None:
    rng = np.random.default_rng(17)
    group = np.repeat(np.arange(4), 4000)
    eta = rng.choice([0.3, 0.5, 0.6], len(group))
    y = (rng.uniform(size=len(group)) < eta).astype(np.int8)
    scores = {AS_AUDITED: np.where(group == 0, eta - 0.15, eta), "mended": eta}
    for judge in ("error", "gap"):
        found = Fixed.of(judged(y, scores), people(group, 0.25), against(judge))
        first = found.people[0]
        assert (found.verdict(first, AS_AUDITED), found.verdict(first, "mended")) == ("over", "within")


# ---- the whole: a repair chosen by the limit, groups chosen by their verdicts ----


def wrong_after_choice(seed: int) -> bool:
    """Tell whether any verdict that `compare` tells, of the repair that it took, is wrong."""
    rng = np.random.default_rng([seed, 0xA11])
    n = 1600
    p, site = rng.choice([0.3, 0.5, 0.7], n), rng.integers(0, 4, n)
    gap = np.array([0.12, 0.1, 0.0, -0.1])
    data = cal.predictions(rng.uniform(size=n) < p + gap[site], p, {"site": site.astype(str)})
    repairs = [cal.repair.Platt(), cal.repair.Isotonic(), cal.repair.AugmentedLogistic(variables=["site"])]
    found = cal.repair.evaluate(
        data, repairs=repairs, by="site", limit=0.1, judge="gap", alpha=ALPHA, tests=(), certify_groups=False
    )
    from calibrant.repair.judge.rows import hash_split

    rows = data.part(np.flatnonzero(hash_split(data, 2, 0) == 1))
    where = rows.covariates.column("site").to_numpy().astype(int)
    eta = rows.p + gap[where]
    after = rows.p if found.recommended == AS_AUDITED else found.calibrators[found.recommended](rows).p
    c = found.fixed.columns
    for i, value in enumerate(c["value"]):
        at = slice(None) if not value else where == int(value)
        for when, q in (("now", rows.p), ("after", after)):
            size = abs(float((eta - q)[at].mean()))
            if c[when][i] == ("within" if size > 0.1 else "over"):
                return True
    return False


def test_what_compare_tells_of_the_repair_it_took_is_right() -> None:
    check(wrong_after_choice, 300, ALPHA)


# ---- rows that belong together: whole units certify, under every repair and in every group ----


def by_clusters(
    seed: int, clusters: int, sizes: tuple[int, int] = (10, 10), weigh: bool = False, folds: int = 1
) -> Judged:
    """Return rows whose units are copies, of sizes without and with the outcome, all of whose errors are formulas.

    As audited and under "higher" every score is off by `LIMIT`, under "mixed" too, and under "right" none is.
    """
    rng = np.random.default_rng([seed, 0xC1])
    eta = rng.choice([0.3, 0.4, 0.5], clusters)
    y = rng.uniform(size=clusters) < eta
    rate = eta * sizes[1] / (eta * sizes[1] + (1.0 - eta) * sizes[0])  # of a row drawn
    cluster_code = np.repeat(np.arange(clusters), np.where(y, sizes[1], sizes[0]))
    side = np.where(eta == 0.4, -1.0, 1.0)
    scores = {AS_AUDITED: rate - LIMIT, "higher": rate + LIMIT, "mixed": rate + side * LIMIT, "right": rate}
    weights = rng.gamma(1.0, size=clusters)[cluster_code] if weigh else None
    data = cal.predictions(y[cluster_code], scores[AS_AUDITED][cluster_code], cluster=cluster_code, weights=weights)
    return Judged.of(data, {k: v[cluster_code] for k, v in scores.items()}, (cluster_code % folds).astype(np.int64))


def misses(of: Judged) -> bool:
    """Tell whether a range of an average error, of everyone or a group, under any probability, misses the truth."""
    group = np.unique(of.data.cluster, return_inverse=True)[1] % 3
    every = [People(id="everyone", who="everyone", kind="everyone", rows=np.arange(of.data.n))]
    found = Fixed.of(of, [*every, *people(group, 1.0 / 3)], against("error"))
    for one in found.people:
        for name in of.scores:
            low, high = found.ends(one, name)
            if not low - 1e-9 <= (0.0 if name == "right" else LIMIT) <= high + 1e-9:
                return True
    return False


DESIGNS = {
    "copies": {"clusters": 400},
    "larger with the outcome": {"clusters": 400, "sizes": (2, 8)},
    "weights": {"clusters": 400, "weigh": True},
    "folds": {"clusters": 400, "folds": 2},
    "few": {"clusters": 60, "sizes": (5, 20)},
}


@pytest.mark.parametrize("design", ["copies", "larger with the outcome", "few"])
def test_errors_by_units_are_kept(design: str) -> None:
    check(lambda seed: misses(by_clusters(seed, **DESIGNS[design])), 100, 2 * ALPHA)  # of everyone, and of groups


@pytest.mark.nightly
@pytest.mark.parametrize("design", DESIGNS)
def test_errors_by_units_are_kept_in_many_sets(design: str) -> None:
    check(lambda seed: misses(by_clusters(seed, **DESIGNS[design])), 300, 2 * ALPHA)
