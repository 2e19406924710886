"""Verdicts on net benefit are wrong at most alpha of the time, on designs chosen to hurt."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from validity.acceptance import SETS, check
from validity.benefit_designs import DESIGNS, SLEEPS, Design

ALPHA = 0.05
NARROW = {name: design for name, design in DESIGNS.items() if design.margin() > 0.0}  # "no worse" can be wrong


@pytest.mark.parametrize("name", DESIGNS)
def test_verdicts_on_net_benefit_are_kept(name: str) -> None:
    check(DESIGNS[name].wrong, SETS, ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NARROW)
def test_no_worse_is_wrong_at_most_alpha_of_the_time(name: str) -> None:
    check(NARROW[name].falsely_no_worse, SETS, ALPHA)


@pytest.mark.parametrize("n", [200, 3000])
def test_net_benefit_of_these_rows_is_kept(n: int) -> None:
    """Given the scores: the rates of the rows at hand are known here, and so is their difference."""
    design = Design(n, (0.3,), **{**SLEEPS, "share": (0.9, 0.1)})
    odds = 0.3 / 0.7

    def missed(seed: int) -> bool:
        models, _, _ = design.drawn(seed)
        kind = (models["old"] > 0.5).astype(int)
        truth = float((kind * (0.7 - 0.3 * odds)).mean())
        return truth not in design.error_shown(seed, 0.005, target="rows").differences[0].interval

    check(missed, SETS, ALPHA)


# ---- many thresholds ----


def worthless(seed: int, thresholds: int, n: int) -> tuple[dict[str, np.ndarray], np.ndarray, list[float]]:
    """Return models that decide otherwise at random on rows whose rate is the threshold: none gains or loses."""
    rng = np.random.default_rng([seed, 32])
    at = np.linspace(0.1, 0.9, thresholds).round(3)
    t = at[rng.integers(0, thresholds, n)]
    off = 0.2 / thresholds
    models = {name: t + off * rng.choice([-1.0, 1.0], n) for name in ("old", "new")}
    return models, (rng.uniform(size=n) < t).astype(int), at.tolist()


def test_many_thresholds_at_once_keep_alpha() -> None:
    def kept(seed: int) -> bool:
        models, y, at = worthless(seed, 40, 4000)
        found = cal.compare(models, y, measure="net_benefit", threshold=at, alpha=0.2, margin=0.0)
        return any(d.verdict in ("better", "worse") for d in found.differences)

    check(kept, 200, 0.2)
