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


def in_bursts(seed: int) -> bool:
    """Tell whether a certified rate of the curve is too low: wrong rows come in bursts, each longer than the last."""
    rng = np.random.default_rng([seed, 12])
    edges = 0.01 * 1.5 ** np.arange(12)  # of the share accepted, at which bursts begin: a third of each is wrong
    share = rng.uniform(size=3000)
    at = np.searchsorted(edges, share, side="right") - 1
    wrong = (at >= 0) & (share < edges[at] * (1.0 + 0.5 / 3.0))
    curve = cal.diagnose.acceptance_curve(cal.predictions(~wrong, 1.0 - share), risk=0.2, alpha=0.2, seed=seed).columns
    depth = 1.0 - np.array(curve["threshold"])
    ends = np.minimum(edges * (1.0 + 0.5 / 3.0), depth[:, None])
    true = np.maximum(ends - edges, 0.0).sum(axis=1) / depth
    return bool((np.array(curve["high"]) < true).any())


def test_certified_rates_of_the_curve_hold_where_wrong_rows_come_in_bursts() -> None:
    check(in_bursts, SETS, 0.2)
