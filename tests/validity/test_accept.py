"""What is accepted keeps its risk, on designs chosen to hurt."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.views.sample import cluster_totals
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
    clusters = cluster_totals(data, seed)
    here = clusters.certified[cluster_code]
    return t is not None and bool(wrong[here & (score >= t)].mean() > risk)


def test_the_mean_risk_of_rows_of_unlike_units_is_kept() -> None:
    check(unlike, SETS, ALPHA)
