"""Score distributions and event rates whose calibration error is a formula."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.stats import beta

import calibrant as cal


@dataclass(frozen=True)
class Design:
    """A distribution of scores with an event rate.

    Parameters
    ----------
    name : str
    scores : callable
        Generator and n to n scores.
    eta : callable
        Event rate given the score.
    raw : float
        ``E|p - eta(p)|``.
    masses : callable
        Increasing edges to two arrays, ``P(a <= p < b)`` and ``E[eta(p); a <= p < b]`` per interval.
    variation : float
        Total variation of the event rate.
    distance : float or None
        Distance from calibration, where known.
    """

    name: str
    scores: Callable[[np.random.Generator, int], Any]
    eta: Callable[[Any], Any]
    raw: float
    masses: Callable[[Any], tuple[Any, Any]] = field(repr=False)
    variation: float = 1.0
    distance: float | None = None

    def draw(self, n: int, *stream: int) -> Any:
        """Rows; the stream never coincides with the library's own ``[seed, constant]``."""
        rng = np.random.default_rng([0x7E57, n, *stream])
        p = self.scores(rng, n)
        return cal.predictions(rng.random(n) < self.eta(p), p)

    def rounded(self, steps: int) -> float:
        """Error of the score rounded to multiples of ``1 / steps``."""
        mass, events = self.masses(np.clip((np.arange(steps + 2) - 0.5) / steps, 0.0, 1.0))
        return float(np.abs(np.arange(steps + 1) / steps * mass - events).sum())

    def jittered(self, bandwidth: float, grid: int = 1 << 14) -> float:
        """Error of the jittered score on a grid, by plain convolution."""
        mass, events = self.masses(np.arange(grid + 1) / grid)
        kernel = 1.0 / np.cosh(np.clip(np.arange(1 - grid, grid) / grid / bandwidth, -700, 700))
        whole = slice(grid - 1, 2 * grid - 1)
        total = np.convolve(np.ones(grid), kernel)[whole]
        shown, event_count = (np.convolve(v / total, kernel)[whole] for v in (mass, events))
        return float(np.abs((np.arange(grid) + 0.5) / grid * shown - event_count).sum())


def spread_out(
    name: str, eta: Callable[[Any], Any], integral: Callable[[Any], Any], raw: float, top: float = 1.0, **more: Any
) -> Design:
    """Uniform scores on [0, top]; `integral` is the antiderivative of eta."""

    def masses(edges: Any) -> tuple[Any, Any]:
        e = np.minimum(edges, top)
        return np.diff(e) / top, np.diff(integral(e)) / top

    return Design(name, lambda rng, n: top * rng.random(n), eta, raw, masses, **more)


def atoms(name: str, values: Any, rates: Any, shares: Any = None, **more: Any) -> Design:
    """Finitely many scores, each with its event rate."""
    v, r = np.array(values, dtype=float), np.array(rates, dtype=float)
    w = np.full(len(v), 1 / len(v)) if shares is None else np.array(shares, dtype=float)
    kept = np.minimum((np.floor(v * 2**30) + 1) / 2**30, 1.0)  # a score half-way between two steps goes up

    def masses(edges: Any) -> tuple[Any, Any]:
        return tuple(np.histogram(kept, edges, weights=m)[0] for m in (w, w * r))

    return Design(
        name,
        lambda rng, n: rng.choice(v, n, p=w),
        lambda p: r[np.searchsorted(v, p)],
        float(w @ np.abs(v - r)),
        masses,
        variation=float(np.abs(np.diff(r)).sum()) or 0.01,
        **more,
    )


def beta_masses(edges: Any) -> tuple[Any, Any]:
    return np.diff(beta.cdf(edges, 0.3, 0.3)), 0.5 * np.diff(beta.cdf(edges, 1.3, 0.3))


def lower_distance(values: Any, rates: Any, shares: Any, grid: int = 200) -> float:
    """Least ``E|p - u|`` over calibrated u on a grid: a linear programme over the joint law of (p, y, u)."""
    v, r, w = (np.asarray(a, dtype=float) for a in (values, rates, shares))
    u = np.arange(grid + 1) / grid
    k, m = len(v), grid + 1
    cost = np.abs(v[:, None, None] - u) + np.zeros((k, 2, 1))
    marginal = np.kron(np.eye(2 * k), np.ones(m))
    calibrated = np.tile(np.hstack([np.diag(-u), np.diag(1 - u)]), k)
    given = np.stack([w * (1 - r), w * r], axis=1).reshape(-1)
    found = linprog(
        cost.reshape(-1), A_eq=np.vstack([marginal, calibrated]), b_eq=np.append(given, np.zeros(m)), method="highs"
    )
    assert found.status == 0
    return float(found.fun)


IDENTITY = spread_out("identity", lambda p: p, lambda p: p**2 / 2, 0.0, distance=0.0)
SQUARE = spread_out("square", lambda p: p**2, lambda p: p**3 / 3, 1 / 6)
STEP = spread_out("step", lambda p: 1.0 * (p > 0.5), lambda p: np.maximum(p - 0.5, 0.0), 1 / 4)
RARE = spread_out("rare", lambda p: p / 2, lambda p: p**2 / 4, 0.005, top=0.02)
SKEWED = Design("skewed", lambda rng, n: rng.beta(0.3, 0.3, n), lambda p: p, 0.0, beta_masses, distance=0.0)
ONE = atoms("one score", [0.3], [0.36], distance=0.06)
CALIBRATED_ONE = atoms("one calibrated score", [0.5], [0.5], distance=0.0)
ZERO = atoms("score zero", [0.0], [0.004], distance=0.004)
TIES = atoms("ties", np.arange(1, 20) / 20, np.arange(1, 20) / 20, distance=0.0)
FEW = atoms("few scores", [0.05, 0.3, 0.62, 0.9], [0.1, 0.25, 0.62, 0.99], [0.4, 0.3, 0.2, 0.1])
TWO = atoms("two scores", [0.3, 0.7], [0.5, 0.5], distance=lower_distance([0.3, 0.7], [0.5, 0.5], [0.5, 0.5]))
ALL = (IDENTITY, SQUARE, STEP, RARE, SKEWED, ONE, CALIBRATED_ONE, ZERO, TIES, FEW, TWO)


def named(design: Design) -> str:
    return design.name
