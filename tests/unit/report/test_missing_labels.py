"""The first screen says of whom the verdict is where outcomes are missing, and how far it stands for all."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.report import terminal

N = 4000
RNG = np.random.default_rng(0)
P = RNG.integers(1, 100, N) / 100
HAPPENED = (RNG.uniform(size=N) < P).astype(float)


def reported(share: float, limit: float | None, happened: np.ndarray = HAPPENED) -> str:
    y = np.where(np.arange(N) < share * N, np.nan, happened)
    record = cal.audit({"y": y, "p": P}, label="y", score="p", missing="keep", limit=limit, quick=True)
    assert cal.AuditRecord.from_json(record.to_json()) == record
    return " ".join(terminal.render(record).split())


@pytest.mark.parametrize(
    ("share", "limit", "says"),
    [
        (0.1, 0.1, "Within the limit for all, unless the others' odds differ by more than"),
        (0.1, 0.5, "Within the limit for all, whatever the others' outcomes."),
        (0.1, 0.001, "Of all it is undecided, even if outcomes are missing at random."),
        (0.1, None, "points whatever the others' outcomes."),
    ],
)
def test_a_verdict_is_of_those_whose_outcome_is_known(share: float, limit: float | None, says: str) -> None:
    text = reported(share, limit)
    assert "Outcomes are known of 3,600 of 4,000 rows: verdicts are of these." in text
    assert says in text


@pytest.mark.slow
def test_over_the_limit_stands_too() -> None:
    assert "Over the limit for all, whatever the others' outcomes." in reported(0.1, 0.05, np.zeros(N))


@pytest.mark.slow
def test_hardly_anyone_missing_is_not_told() -> None:
    assert "Outcomes are known" not in reported(0.009, 0.1)
    assert "Outcomes are known" not in reported(0.002, 0.1)  # fewer than the mask: nothing is kept either
