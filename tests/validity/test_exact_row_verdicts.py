"""Groups judged by the gaps of their rows: no verdict wrong more often than it may be, by the law of every count."""

from __future__ import annotations

from itertools import product
from math import log
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.certify.closed import Limit, SignedEvidence, refuted_in_order, verdicts
from calibrant.errors import BadInput, NotComputable
from calibrant.stats.subgroups.row_gaps import binomial
from calibrant.views.population import INDEPENDENT

ALPHA = 0.2
# A limit, and groups that do not overlap: rows, mean score, and the gap of each, at the limit or beyond it, or inside
FAMILIES: dict[str, tuple[float, Any]] = {
    "all at a small limit": (0.1, ((12, 0.5, 0.1), (12, 0.3, 0.1), (12, 0.7, -0.1))),
    "all at a large limit": (0.3, ((15, 0.2, 0.3), (15, 0.3, 0.3), (15, 0.8, -0.3))),
    "two at a large limit": (0.3, ((18, 0.1, 0.0), (16, 0.2, 0.3), (13, 0.75, -0.3))),
    "one at the limit": (0.1, ((12, 0.4, 0.1), (14, 0.5, 0.0), (9, 0.6, -0.02))),
    "rare": (0.25, ((20, 0.02, -0.02), (20, 0.05, 0.25), (20, 0.7, 0.25))),
    "none off": (0.05, ((12, 0.5, 0.0), (12, 0.3, 0.0), (12, 0.7, 0.0))),
    "alone": (1e-6, ((25, 0.5, 0.0),)),
}


def told(family: Any, decide: Any) -> tuple[float, float]:
    """Probabilities that a group is wrongly over, and wrongly within: every count of every group."""
    (limit, groups), evidence, law = family, [], []
    for n, score, gap in groups:
        each = [SignedEvidence(binomial(k, n, n * score)) for k in range(n + 1)]
        evidence.append(np.array([(e.over(Limit(limit, limit)), e.within(Limit(limit, limit))) for e in each]))
        law.append(binom.pmf(np.arange(n + 1), n, score + gap))
    inside = [abs(gap) < limit + 1e-9 for *_, gap in groups]
    outside = [abs(gap) > limit - 1e-9 for *_, gap in groups]
    wrong = [0.0, 0.0]
    for counts in product(*(range(n + 1) for n, *_ in groups)):
        at = np.array([e[k] for e, k in zip(evidence, counts, strict=True)])
        says = decide(at)
        chance = float(np.prod([p[k] for p, k in zip(law, counts, strict=True)]))
        for i, (verdict, true) in enumerate((("over", inside), ("within", outside))):
            wrong[i] += chance * any(s == verdict and t for s, t in zip(says, true, strict=True))
    return wrong[0], wrong[1]


def decided(at: Any) -> Any:
    return verdicts(at[:, 0], at[:, 1], "gap", ALPHA, p_values=True)


@pytest.mark.parametrize("name", FAMILIES)
def test_no_verdict_is_wrong_more_often_than_it_may_be(name: str) -> None:
    over, within = told(FAMILIES[name], decided)
    assert over <= ALPHA
    assert within <= ALPHA / 2


def without_order(at: Any) -> Any:
    """Holm's procedure without its order: each group at the price of its own place, whatever came before."""

    def rejected(log_e: Any, delta: float) -> Any:
        rank = np.argsort(np.argsort(-log_e))
        return log_e + log(delta) >= np.log(len(log_e) - np.clip(rank + 1, 0, len(log_e) - 1))

    each = rejected(at[:, 0], ALPHA), rejected(at[:, 1], ALPHA / 2)
    return ["over" if over else "within" if within else "" for over, within in zip(*each, strict=True)]


def each_alone(at: Any) -> Any:
    """Every group at all of alpha."""
    return ["over" if o >= -log(ALPHA) else "within" if w >= -log(ALPHA / 2) else "" for o, w in at]


def one_sided(at: Any) -> Any:
    """Over on either side, at the price of one."""
    return verdicts(at[:, 0] + log(2.0), at[:, 1], "gap", ALPHA, p_values=True)


@pytest.mark.slow
@pytest.mark.parametrize("decide", [without_order, each_alone, one_sided])
def test_broken_procedures_are_wrong_more_often(decide: Any) -> None:
    wrong = np.array([told(family, decide) for family in FAMILIES.values()])
    assert wrong[:, 0].max() > ALPHA or wrong[:, 1].max() > ALPHA / 2


def test_what_a_range_decides_is_decided() -> None:
    """Ends share alpha over all of them, and a range on one side of the limit is enough."""
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(300):
        n, limit = rng.integers(5, 400, 6), float(rng.choice([0.03, 0.1, 0.2]))
        score = rng.uniform(0.02, 0.9, 6)
        k = rng.binomial(n, np.clip(score + rng.choice([0.0, 0.0, 0.15, -0.1, 0.3], 6), 0.0, 1.0))
        of = [SignedEvidence(binomial(int(e), int(m), float(m * s))) for e, m, s in zip(k, n, score, strict=True)]
        at = Limit(limit, limit)
        says = verdicts([e.over(at) for e in of], [e.within(at) for e in of], "gap", ALPHA, p_values=True)
        for e, verdict in zip(of, says, strict=True):
            low, high = e.ends(ALPHA / 12, ALPHA / 12)
            if low > limit or high < -limit:
                assert verdict == "over"
            elif -limit <= low and high <= limit:
                assert verdict == "within"
            seen.add(verdict)
    assert seen == {"over", "within", "undecided"}


def test_holm_by_hand() -> None:
    """In whatever order they come; e-values may be among them; and all before the first that falls short."""
    assert refuted_in_order(-np.log([0.016, 0.04, 0.024]), 0.05).tolist() == [True, True, True]
    assert refuted_in_order(-np.log([0.017, 0.017, 0.017]), 0.05).tolist() == [False, False, False]
    assert refuted_in_order([np.inf, 0.0, log(40.0)], 0.05).tolist() == [True, False, True]
    assert refuted_in_order([], 0.05).tolist() == []


# ---- the public functions ----


def sites(scores: Any = None, seed: int = 0, **more: Any) -> Any:
    rng = np.random.default_rng(seed)
    site = np.repeat(["a", "b", "c"], [600, 300, 60])
    p = rng.uniform(0.1, 0.6, 960) if scores is None else scores(rng, 960)
    return cal.predictions(rng.random(960) < np.clip(p + 0.2 * (site == "b"), 0.0, 1.0), p, {"site": site}, **more)


def test_gaps_are_of_the_rows_by_clopper_and_pearson() -> None:
    data = sites()
    found = cal.certify.groups(data, by="site", judge="gap", limit=0.1, alpha=0.06)
    for name, e in found.items():
        rows = data.covariates.column("site").to_numpy(zero_copy_only=False) == name[-1]
        k, n, score = int(data.y[rows].sum()), int(rows.sum()), float(data.p[rows].mean())
        high = 1.0 - binom_end(n - k, n, 0.01)
        assert (e.interval.low, e.interval.high) == pytest.approx(
            (binom_end(k, n, 0.01) - score, high - score), abs=1e-8
        )
        assert e.interval.low <= binom_end(k, n, 0.01) - score  # whatever reading scores took
        assert e.settings["target"] == "rows"
        assert e.settings["by"] == "binomial"
        assert e.assumes == "outcomes of different rows independent given the scores"
    assert [e.settings["verdict"] for e in found.values()] == ["within", "over", "undecided"]


def binom_end(k: int, n: int, delta: float) -> float:
    """The rate at which k events or more have the probability delta, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if binom.sf(k - 1, n, middle) < delta else (low, middle)
    return low


def test_of_the_population_they_are_wider_and_assume_more() -> None:
    rows, all_ = (cal.certify.groups(sites(), by="site", judge="gap", target=t) for t in (None, "population"))
    for name, e in all_.items():
        assert e.interval.high - e.interval.low > 1.1 * (rows[name].interval.high - rows[name].interval.low)
        assert e.assumes == INDEPENDENT
        assert (e.settings["target"], e.settings["by"]) == ("population", "bets")


def test_where_scores_are_nearly_sure_bets_are_narrower() -> None:
    data = sites(lambda rng, n: np.where(rng.random(n) < 0.5, 0.02, 0.97))
    found = cal.certify.groups(data, by="site", judge="gap", limit=0.05)
    assert {e.settings["by"] for e in found.values()} == {"bets"}
    assert found["site = b"].settings["verdict"] == "over"


def test_of_clusters_gaps_are_of_the_population() -> None:
    data = sites(cluster=np.arange(960) // 4)
    found = cal.certify.groups(data, by="site", judge="gap")
    assert {e.settings["target"] for e in found.values()} == {"population"}
    with pytest.raises(NotComputable, match="is proved for independent rows of equal weight: with clusters"):
        cal.certify.groups(data, by="site", judge="gap", target="rows")


def test_a_target_is_of_gaps() -> None:
    with pytest.raises(BadInput, match="target='rows' is about gaps: it goes with judge='gap'"):
        cal.certify.groups(sites(), by="site", target="rows")
    with pytest.raises(BadInput, match="target"):
        cal.certify.worst_group(sites(), by="site", judge="gap", target="people")  # type: ignore[arg-type]


def test_the_worst_group_shares_nothing_from_above() -> None:
    found = cal.certify.worst_group(sites(), by="site", judge="gap", side="upper")
    each = cal.certify.groups(sites(), by="site", judge="gap", side="two-sided", alpha=0.3)  # 0.05 an end, as unshared
    assert found.interval.high == pytest.approx(max(max(e.interval.high, -e.interval.low) for e in each.values()))
    assert found.settings["target"] == "rows"
    assert "of the rows in the data" in str(found.settings["about"])
