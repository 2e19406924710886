"""Answers whose risk of being wrong is a formula of their score, for `certify.accept`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

import calibrant as cal
from calibrant.results import Estimate

FINE = (np.arange(200_000) + 0.5) / 200_000
Floats = np.ndarray


@dataclass(frozen=True)
class Design:
    """Scores that are uniform, cut to `ties` values where given, and the probability that an answer is wrong.

    Parameters
    ----------
    n : int
    risk : float
        Asked of `accept`.
    wrong : callable
        The probability of being wrong, of scores in (0, 1).
    ties : int
        Values of the score; 0 for a continuous one.
    groups : int
    size : int
        Rows of a unit, which share one fate with correlation `intraclass_correlation`; 0 for independent rows.
    intraclass_correlation : float
    weighted : float
        Coefficient of variation of log-normal weights.
    """

    n: int
    risk: float
    wrong: Callable[[Floats], Floats]
    ties: int = 0
    groups: int = 1
    size: int = 0
    intraclass_correlation: float = 0.0
    weighted: float = 0.0

    def drawn(self, seed: int) -> cal.Predictions:
        """Return one data set."""
        rng = np.random.default_rng([seed, 7])
        score = self.tied(rng.uniform(size=self.n))
        fate = rng.uniform(size=self.n)
        cluster_code = None
        if self.size:
            cluster_code = np.arange(self.n) // self.size
            shared, own = rng.normal(size=cluster_code[-1] + 1)[cluster_code], rng.normal(size=self.n)
            fate = ndtr(
                np.sqrt(self.intraclass_correlation) * shared + np.sqrt(1.0 - self.intraclass_correlation) * own
            )
        weights = None
        if self.weighted:
            spread = np.sqrt(np.log1p(self.weighted**2))
            weights = np.exp(spread * rng.normal(size=self.n))
        group = {"g": rng.integers(0, self.groups, self.n).astype(str)} if self.groups > 1 else None
        return cal.predictions(fate >= self.wrong(score), score, group, cluster=cluster_code, weights=weights)

    def tied(self, score: Floats) -> Floats:
        """Return scores in as many values as they take."""
        return score if not self.ties else np.floor(score * self.ties) / self.ties

    def rate(self, threshold: float) -> float:
        """Return the probability that an accepted answer is wrong."""
        score = self.tied(FINE)
        return float(self.wrong(score[score >= threshold]).mean())

    def asks(self) -> Mapping[str, object]:
        """Return what `accept` is asked."""
        return {"risk": self.risk, "by": "g" if self.groups > 1 else None}

    def broken(self, found: Estimate) -> bool:
        """Tell whether the risk of what was accepted, of anyone, is above what was asked for."""
        marks = [g["threshold"] for g in found.settings["groups"].values()]
        return any(t is not None and self.rate(t) > self.risk for t in marks)


def flat(q: float) -> Callable[[Floats], Floats]:
    """Everyone is wrong as often."""
    return lambda s: np.full(len(s), q)


def falling(top: float) -> Callable[[Floats], Floats]:
    """The better the score, the fewer are wrong."""
    return lambda s: top * (1.0 - s)


def bump(s: Floats) -> Floats:
    """The very best scores are wrong most often, as of a model that is too sure."""
    return np.where(s > 0.97, 0.3, 0.02 + 0.08 * (1.0 - s))


def waves(s: Floats) -> Floats:
    """Neither rising nor falling: the mean rate crosses the limit again and again."""
    return 0.05 + 0.045 * np.sin(40.0 * s)


def step(s: Floats) -> Floats:
    """Right down to a point, and mostly wrong beyond."""
    return np.where(s > 0.6, 0.004, 0.5)


def wrong_first(limit: float) -> Callable[[Floats], Floats]:
    """Half of the best tenth are wrong, and so many of the others that all together are at the limit."""
    return lambda s: np.where(s > 0.9, 0.5, (limit - 0.05) / 0.9)


JUST = 1.0000001  # the limit is broken wherever anything is accepted
DESIGNS: Mapping[str, Design] = {
    "at the limit everywhere": Design(2000, 0.05, flat(0.05 * JUST)),
    "falling": Design(2000, 0.05, falling(0.2)),
    "rare errors": Design(4000, 0.005, falling(0.02)),
    "too sure at the top": Design(3000, 0.05, bump),
    "not monotone": Design(3000, 0.05, waves),
    "step": Design(1000, 0.02, step),
    "ten values": Design(2000, 0.05, falling(0.2), ties=10),
    "two values, at the limit": Design(1500, 0.05, flat(0.05 * JUST), ties=2),
    "few rows": Design(120, 0.1, falling(0.4)),
    "few rows, at the limit": Design(300, 0.1, flat(0.1 * JUST)),
    "wrong first, all at the limit": Design(600, 0.1, wrong_first(0.1 * 1.00001)),
    "many rows": Design(20_000, 0.05, flat(0.05 * JUST)),
    "thirty groups": Design(9000, 0.1, flat(0.1 * JUST), groups=30),
    "units that share a fate": Design(6000, 0.1, flat(0.1 * JUST), size=30, intraclass_correlation=0.99),
    "units, falling": Design(6000, 0.1, falling(0.4), size=10, intraclass_correlation=0.5),
    "weights": Design(3000, 0.1, flat(0.1 * JUST), weighted=1.0),
}
