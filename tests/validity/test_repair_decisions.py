"""Gains of decisions under repairs miss at most alpha of the time, of any repair, threshold or group together."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.repair.judge.decisions import decision_changes
from calibrant.repair.judge.evidence import groups_of
from calibrant.repair.judge.rows import Judged
from calibrant.repair.judge.verdict import AS_AUDITED
from factories import decision_lines
from validity.acceptance import SETS, check

AT, ALPHA = (0.1, 0.3, 0.8), 0.2


def drawn(seed: int, n: int, size: int = 1, lean: float = 0.0) -> tuple[Judged, np.ndarray]:
    """Return rows, repairs that decide otherwise at random, and the rates given the scores; units are copies.

    With a lean of 1 both repairs act on everyone who was not acted on, with -1 the reverse.
    """
    rng = np.random.default_rng([seed, 41])
    m = n // size
    eta = rng.choice(AT, m) + rng.choice([-0.05, 0.0, 0.05], m)  # acting gains little or loses little
    y = rng.uniform(size=m) < eta
    sides = [lean * v or rng.choice([-1.0, 1.0], m) for v in (-1.0, 1.0, 1.0)]
    scores = [np.clip(eta + 0.06 * side, 0.0, 1.0) for side in sides]
    group = rng.choice(["a", "b", "c"], m)
    y, eta, group, cluster = (np.repeat(v, size) for v in (y, eta, group, np.arange(m)))
    names = (AS_AUDITED, "one", "two")
    kept = {k: np.repeat(p, size) for k, p in zip(names, scores, strict=True)}
    more = {"cluster": cluster} if size > 1 else {}
    data = cal.predictions(y, kept[AS_AUDITED], {"g": group}, **more)
    return Judged.of(data, kept, np.zeros(n, dtype=np.int64)), eta


def wrong(of: Judged, eta: np.ndarray, alpha: float = ALPHA, judged: Judged | None = None) -> bool:
    """Tell whether any range misses the mean gain of the rows given their scores, or any verdict is wrong."""
    groups = groups_of(of.data, ["g"], {}, 20, 0)
    rows = {"everyone": np.arange(of.data.n)}
    rows |= {one.who: one.rows for one in groups.people}
    for line in decision_lines(decision_changes(judged or of, groups, AT, alpha)):
        if line.gain_low is None:
            continue
        t, some = line.threshold, rows[line.population]
        moved = (of.scores[line.probability] >= t).astype(float) - (of.scores[AS_AUDITED] >= t)
        truth = float((moved * (eta - (1.0 - eta) * t / (1.0 - t)))[some].mean())
        stated = {"better": truth <= 0.0, "worse": truth >= 0.0}.get(line.shown, False)
        if stated or not line.gain_low - 1e-9 <= truth <= line.gain_high + 1e-9:
            return True
    return False


@pytest.mark.parametrize(("n", "size"), [(150, 1), (2000, 1), (2000, 10)])
def test_gains_are_kept(n: int, size: int) -> None:
    check(lambda seed: wrong(*drawn(seed, n, size)), SETS, ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize(("n", "size"), [(60, 1), (20_000, 1)])
def test_gains_are_kept_at_size(n: int, size: int) -> None:
    check(lambda seed: wrong(*drawn(seed, n, size)), SETS, ALPHA)
