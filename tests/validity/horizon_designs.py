"""Worlds of outcomes by a horizon whose truth is a formula: exponential or Weibull times, and follow-up that ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MONTH = 30.0


@dataclass(frozen=True)
class Drawn:
    """One data set, with what nobody knows."""

    log: dict[str, NDArray[np.generic]]
    truth: Floats  # shape (n,): the probability of the event by the horizon
    followed: Callable[[Floats], Floats]  # the probability of still being followed just before a time
    alike: bool  # it is the same for every row

    @property
    def gap(self) -> float:
        return float((self.truth - self.log["p"]).mean())

    def known(self, horizon: float) -> NDArray[np.bool_]:
        """Which rows have an outcome."""
        known: NDArray[np.bool_] = (self.log["kind"] != 0) | (self.log["t"] >= horizon)
        return known

    def order(self, horizon: float) -> NDArray[np.intp]:
        """The rows as `at_horizon` has them: those with an outcome first."""
        return np.argsort(~self.known(horizon), kind="stable")


@dataclass(frozen=True)
class World:
    """Times to the event and to the end of follow-up, and the probability of the event by the horizon."""

    shape: float = 1.0  # of Weibull times of the event
    lost: float = 900.0  # mean of exponential follow-up
    admin: bool = False  # it also ends at one closing date, after uniform entry
    by_site: float = 1.0  # how many times as fast the rows of the second site are lost
    by_risk: bool = False  # rows of high risk are lost sooner: what nobody accounts for
    rival: float = 0.0  # rate of a competing event
    off: float = 0.0  # what the score says more than the truth
    months: bool = False  # times are whole months, so that events and ends tie
    scales: tuple[float, ...] = ()  # of times of the event, drawn for each row; by default 900 and 300 by site

    def draw(self, rng: np.random.Generator, n: int, horizon: float) -> Drawn:
        """Draw one."""
        site = rng.integers(0, 2, n)
        scale = rng.choice(self.scales, n) if self.scales else np.where(site == 1, 300.0, 900.0)
        truth = 1.0 - np.exp(-((horizon / scale) ** self.shape))
        event = scale * rng.weibull(self.shape, n)
        other = rng.exponential(1.0 / self.rival, n) if self.rival else np.full(n, np.inf)
        if self.rival:  # shape 1: the event is first with probability rate / (rate + rival)
            every = 1.0 / scale + self.rival
            truth = (1.0 - np.exp(-every * horizon)) / (scale * every)
        mean = np.full(n, self.lost) / np.where(site == 1, self.by_site, 1.0)
        mean = mean / np.where((scale < 600.0) & self.by_risk, 3.0, 1.0)
        ends = rng.exponential(mean)
        if self.admin:
            ends = np.minimum(ends, rng.uniform(200.0, 1200.0, n))
        if self.months:
            event, ends = np.ceil(event / MONTH) * MONTH, np.ceil(ends / MONTH) * MONTH
        first = np.minimum(event, other)
        kind = np.where(ends < first, 0, np.where(event <= other, 1, 2))
        late = MONTH if self.months else 0.0
        alike = self.by_site == 1.0 and not self.by_risk

        def followed(t: Floats) -> Floats:
            out = np.exp(-np.maximum(t - late, 0.0) / (mean[0] if alike else mean))
            return out * (np.clip((1200.0 - t) / 1000.0, 0.0, 1.0) if self.admin else 1.0)

        log = {"t": np.minimum(first, ends), "kind": kind, "p": np.clip(truth + self.off, 0.0, 1.0), "site": site}
        return Drawn(log, truth, followed, alike)
