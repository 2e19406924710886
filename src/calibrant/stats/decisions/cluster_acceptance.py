r"""How far down a list errors stay under a rate, of clusters: one factor a cluster at thresholds fixed beforehand.

At a threshold that no certified row chose, a cluster has ``B_g = sum w 1{wrong}`` and ``W_g = sum w`` over its rows
that pass. If the rate ``E B / E W`` is at least x, ``prod_g [1 - kappa (B_g - x W_g)]`` has mean at most 1; it is
positive as long as ``kappa M < 1``, whatever rows of one cluster have in common. It rises with x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.cells import summed
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.decisions.acceptance import GRID, HALVINGS
from calibrant.stats.evidence import log_mean_exp

Floats = NDArray[np.float64]
LARGEST = 0.95  # times 1 / M: the largest bet; each next one is half of it


@dataclass(frozen=True)
class ClusterRanking:
    """Thresholds that pilot clusters chose, best first, and what passes them of the certified clusters."""

    clusters: Clusters
    wrong: NDArray[np.bool_]  # shape (n,)
    highest: bool  # the highest score is the best, or the lowest

    @cached_property
    def threshold(self) -> Floats:
        """The scores down to which fiftieths of the pilot clusters' weight pass, best first; none without pilots."""
        u, pilot = self.clusters, ~self.clusters.certified[self.clusters.cluster]
        if not pilot.any():
            return np.empty(0)
        sign = -1.0 if self.highest else 1.0
        order = np.argsort(sign * u.p[pilot], kind="stable")
        score, passed = (sign * u.p[pilot])[order], np.cumsum(u.weight[pilot][order])
        at = np.searchsorted(passed, np.arange(1, GRID + 1) / GRID * passed[-1] * (1.0 - 1e-12))
        return sign * np.unique(score[np.minimum(at, len(score) - 1)])

    @cached_property
    def bets(self) -> Floats:
        """``LARGEST / M`` and its halves, down to about one over the root of the certified clusters' number."""
        halvings = math.ceil(0.5 * math.log2(max(int(np.count_nonzero(self.clusters.certified)), 1)))
        return np.array([LARGEST / self.clusters.largest * 0.5**j for j in range(1 + halvings)])

    def passing(self, t: float) -> NDArray[np.bool_]:
        """Return which rows pass a threshold, its own score among them."""
        return self.clusters.p >= t if self.highest else self.clusters.p <= t

    def sums(self, t: float) -> tuple[Floats, Floats]:
        """Return what is wrong, and what there is, among the rows of each certified unit that pass."""
        u, rows = self.clusters, self.passing(t)
        bad, there = (
            summed(u.cluster[some], u.weight[some], u.count)[u.certified] for some in (rows & self.wrong, rows)
        )
        return bad, there

    def log_evidence(self, t: float, rate: float) -> float:
        """The log e-value against "the rate at this threshold is at least `rate`"."""
        bad, there = self.sums(t)
        return self._log(bad - rate * there)

    def _log(self, lost: Floats) -> float:
        logs = [float(np.log1p(-kappa * lost).sum()) for kappa in self.bets]
        return log_mean_exp(logs)

    def highest_rate(self, t: float, alpha: float) -> float:
        """The least rate that is refuted at one threshold; 1 where none is."""
        bad, there = self.sums(t)
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            refuted = self._log(bad - middle * there) >= -np.log(alpha)
            low, high = (low, middle) if refuted else (middle, high)
        return high

    def deepest(self, risk: float, alpha: float) -> int:
        """The last threshold that a fixed sequence of tests accepts; -1 for none.

        Two sequences share alpha: they start where errors of half of `risk` would be refuted if rows of one cluster
        were independent, and if they shared one fate; as reported by pilot clusters.
        """
        last = -1
        if not len(self.threshold):
            return last
        for start in {self._first(risk, 0.5 * alpha, equal) for equal in (False, True)}:
            at = start
            while at < len(self.threshold) and self.log_evidence(self.threshold[at], risk) >= -np.log(0.5 * alpha):
                last, at = max(last, at), at + 1
        return last

    def _first(self, risk: float, alpha: float, equal: bool) -> int:
        """The first threshold at which errors of half of `risk` would be refuted, at the best bet."""
        enough = -np.log(alpha) + np.log(len(self.bets))
        for at, t in enumerate(self.threshold):
            if self._growth(t, risk, equal) >= enough:
                return at
        return len(self.threshold) - 1

    def _growth(self, t: float, risk: float, equal: bool) -> float:
        """The log evidence to expect of the certified clusters, by the rows of pilot clusters that pass.

        Errors come at half of `risk`: to all rows of a cluster that pass, or to each by itself.
        """
        u, rows = self.clusters, self.passing(t) & ~self.clusters.certified[self.clusters.cluster]
        weight = summed(u.cluster[rows], u.weight[rows], u.count) if equal else u.weight[rows]
        half, bets = 0.5 * risk, self.bets[:, None]
        each = half * np.log1p(-bets * weight * (1.0 - risk)) + (1.0 - half) * np.log1p(bets * weight * risk)
        return float(each.sum(axis=1).max()) * np.count_nonzero(u.certified) / max(u.pilots, 1)
