"""Covariates that tell the score: its complement, a transform, a decision made by it; and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.inputs import repeats_score
from calibrant.data.survey import REPEATED
from calibrant.report import markdown


def made(n: int, seed: int = 0, spread: float = 1.0):
    rng = np.random.default_rng(seed)
    p = 0.3 + spread * (rng.beta(1, 5, n) - 0.3)
    columns = {
        "complement": 1 - p,
        "log odds": np.log(p / (1 - p)),
        "decision": np.where(p > 0.5, "yes", "no"),
        "near": p + rng.normal(scale=0.03 * spread, size=n),  # 95 % of the variance
        "decile": np.floor(p * 4),
        "noise": rng.normal(size=n),
        "every row its own": rng.permutation(n) / 7.0,
        "letter": rng.choice(list("abc"), n),
    }
    return cal.predictions(rng.uniform(size=n) < p, p, columns)


@pytest.mark.parametrize("n", [2_000, 20_000])
def test_copies_of_the_score_are_named_and_no_other(n: int) -> None:
    again = {"complement", "log odds", "decision"}
    sketch = cal.sketch(made(n), variables="*")
    assert {name for name, why in sketch.spec.left_out if why == REPEATED} == again
    assert not repeats_score(sketch)
    assert set(repeats_score(cal.sketch(made(n), variables="*", allow=list(again)))) == again


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [60, 150, 300])
def test_chance_in_few_rows_is_not_told(n: int, seed: int) -> None:
    reported = set(repeats_score(cal.sketch(made(n, seed), variables="*", allow=["decision"])))
    assert reported <= {"complement", "log odds", "decision"}


def test_nothing_is_told_of_scores_without_spread() -> None:
    assert repeats_score(cal.sketch(made(2_000, spread=1e-4), variables="*")) == ()


@pytest.mark.slow
def test_the_page_says_so_and_draws_others() -> None:
    record = cal.audit(made(2_000), seed=0, allow=["complement", "log odds", "decision"])
    assert record.data["repeats_score"] == ("complement", "log odds", "decision")
    assert "repeats-score" in record.data["warnings"]
    text = markdown.render(record)
    assert "reveal the score" in text
    assert "leave them out: `complement`, `log odds`, `decision`" in text
