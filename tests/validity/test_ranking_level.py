"""The joined p-value of a variable: its level on models that are right, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import calibrant as cal
from calibrant.diagnose.ranking import Counted, Line, SimulatedNull, lines_of, ranked
from calibrant.stats.nulls import p_value
from validity.acceptance import refuted

ALPHA, DRAWS = 0.1, 99


def forty(rng: Any, n: int = 1600, by: float = 0.0) -> tuple[Any, Any, Any]:
    """Forty levels, one of which may be off."""
    g, p = rng.integers(0, 40, n), rng.beta(2, 8, n)
    return p, np.clip(p + by * (g == 7), 0, 1), np.array([f"level {k:02d}" for k in range(40)])[g]


def rare(rng: Any, n: int = 1600, by: float = 0.0) -> tuple[Any, Any, Any]:
    """Rare events along a number, off by its sign."""
    x, p = rng.normal(size=n), expit(-4 + 0.5 * rng.normal(size=n))
    return p, p * (1 + by * np.where(x > 0, 1.0, -0.6)), x


def trend(rng: Any, n: int = 1600, by: float = 0.0) -> tuple[Any, Any, Any]:
    """Log odds off in proportion to a number."""
    x, eta = rng.normal(size=n), -0.5 + 1.2 * rng.normal(size=n)
    return expit(eta), expit(eta + by * x), x


def few(rng: Any) -> tuple[Any, Any, Any]:
    """Thirty rows, values that repeat and some that are missing."""
    x = np.where(rng.random(30) < 0.2, np.nan, rng.integers(0, 4, 30).astype(float))
    p = rng.choice([0.05, 0.3, 0.9], 30)
    return p, p, x


def uneven(rng: Any) -> tuple[Any, Any, Any]:
    """A level of certain scores, one of a coin's, others with a case in thirty rows."""
    g = rng.choice(8, 240, p=[0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05])
    p = np.where(g == 0, 0.0, np.where(g == 1, 0.5, 0.03))
    return p, p, np.array(list("abcdefgh"))[g]


RIGHT: dict[str, Callable[[Any], tuple[Any, Any, Any]]] = {
    "forty levels": forty,
    "rare": rare,
    "trend": trend,
    "few": few,
    "uneven": uneven,
}


def drawn(design: Callable[..., tuple[Any, Any, Any]], run: int, **more: Any) -> tuple[Counted, list[Line]]:
    rng = np.random.default_rng([0x2A4C, run, *design.__name__.encode()])
    p, rate, x = design(rng, **more)
    rows = ranked(cal.predictions(rng.random(len(p)) < rate, p, {"v": x}))
    return rows, lines_of(rows, ["v"], "probability", 10, True)[0]


def p_values(rows: Counted, lines: list[Line], run: int) -> Any:
    """Each line's p-value by itself."""
    null = rows.null(len(lines), DRAWS, run, 2)
    return null.judged(null.measures(lines, lines))[0]


def found(design: Callable[..., tuple[Any, Any, Any]], runs: int, **more: Any) -> int:
    """Count the data sets in which the variable is found."""
    return sum(float(p_values(*drawn(design, r, **more), r)[0]) <= ALPHA for r in range(runs))


@pytest.mark.parametrize("name", RIGHT)
def test_level(name: str) -> None:
    wrong = found(RIGHT[name], 150)
    assert not refuted(wrong, 150, ALPHA), f"{wrong} of 150"


@pytest.mark.nightly
@pytest.mark.parametrize("name", RIGHT)
def test_level_at_length(name: str) -> None:
    wrong = found(RIGHT[name], 1000)
    assert not refuted(wrong, 1000, ALPHA), f"{wrong} of 1000"


def calibrated(line: Line, rows: Counted, run: int) -> Any:
    """Return the statistics as observed and of draws with the noise of a calibrated model."""
    (sums,) = SimulatedNull(run, rows.data, DRAWS, 2).residuals([line])
    observed = (line.bins.residual / line.bins.total)[None, :]
    return np.hstack([line.statistics(s, line.bins.noise) for s in (observed, sums)])


# ---- what a hand analysis found and the size alone did not ----


@pytest.mark.parametrize(("design", "by"), [(forty, 0.28), (rare, 0.9), (trend, 0.18)])
def test_errors_of_one_form_are_found(design: Any, by: float) -> None:
    assert found(design, 40, by=by) >= 26


def test_the_size_alone_does_not_find_one_level_of_forty() -> None:
    events = [(r, *drawn(forty, r, by=0.28)) for r in range(40)]
    sizes = [calibrated(lines[0], rows, r)[0] for r, rows, lines in events]
    assert sum(p_value(float(s[0]), s[1:]) <= ALPHA for s in sizes) <= 22
