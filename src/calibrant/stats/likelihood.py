"""Logistic recalibration fitted to many outcomes at once: the likelihood depends on two sums of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

STEPS, HALVINGS = 40, 12
SETTLED = 1e-11  # of the log-likelihood, in which a step must still gain something
NODES = 128
FARTHEST = 60.0  # standard units a coefficient may move: beyond it next to nothing is left to gain


@dataclass(frozen=True)
class Fit:
    """Recalibrations ``logit P(Y = 1) = a + b x``.

    Parameters
    ----------
    gain : float array of shape (draws,)
        Twice the log-likelihood gained over ``a = 0, b = 1``.
    intercept, slope : float arrays of shape (draws,)
    information : float array of shape (draws, 2, 2)
        Of intercept and slope, at the fit.
    settled : bool array of shape (draws,)
        Newton's method has arrived.
    """

    gain: Any
    intercept: Any
    slope: Any
    information: Any
    settled: Any


def compressed(x: Any, mass: Any) -> tuple[Any, Any]:
    """Return at most 128 nodes and their mass: means of consecutive stretches of sorted logits."""
    if len(x) <= NODES:
        return x, mass
    upto = np.cumsum(mass)
    first = np.unique(np.searchsorted(upto, upto[-1] * np.arange(NODES) / NODES, side="right"))
    size = np.add.reduceat(mass, first)
    return np.add.reduceat(mass * x, first) / size, size


def likelihood(excess: Any, x: Any, mass: Any, slope: bool) -> Fit:
    """Maximise the likelihood for outcomes given by their residual sums.

    The log-likelihood is ``a S0 + b S1 - K(a, b)`` with ``S0 = sum Y``, ``S1 = sum Y x`` and
    ``K = sum ln(1 + exp(a + b x))``: one convex function for all draws. Here S is the expectation at ``a = 0, b = 1``
    plus `excess`, so that no excess gains nothing, whatever nodes x stands on. Newton's method, steps halved until
    they gain.

    Parameters
    ----------
    excess : float array of shape (draws, 2)
        ``sum (Y - p)`` and ``sum (Y - p) x``.
    x, mass : float arrays of shape (m,)
    slope : bool
        Fit the slope too; otherwise it stays 1.
    """
    centre = float(mass @ x / mass.sum())
    spread = float(np.sqrt(mass @ (x - centre) ** 2 / mass.sum())) or 1.0
    z = (x - centre) / spread
    start = _expit(x)
    target = np.stack([excess[:, 0], (excess[:, 1] - centre * excess[:, 0]) / spread], axis=1)
    target += np.array([mass @ start, mass @ (start * z)])
    null = np.array([centre, spread])  # a = 0, b = 1 in standard units
    theta = np.tile(null, (len(excess), 1))
    value, slopes, bend = _bend(theta, target, z, mass)
    base = value.copy()
    for _ in range(STEPS):
        move = _newton(slopes, bend, slope)
        open_ = (move * slopes).sum(axis=1) > SETTLED * (1.0 + np.abs(value))
        open_ &= np.abs(theta - null).max(axis=1) < FARTHEST
        if not open_.any():
            break
        theta, value, slopes, bend = _advance(theta, value, slopes, bend, move, np.flatnonzero(open_), target, z, mass)
    move = _newton(slopes, bend, slope)
    settled = np.abs((move * slopes).sum(axis=1)) < 1e-6 + 10 * SETTLED * np.abs(value)
    theta = theta + np.where(settled[:, None], move, 0.0)  # one step more than the value can tell
    _, _, bend = _bend(theta, target, z, mass)
    b = theta[:, 1] / spread
    turn = np.array([[1.0, 0.0], [centre, spread]])
    information = turn @ bend @ turn.T
    return Fit(2.0 * np.maximum(value - base, 0.0), theta[:, 0] - b * centre, b, information, settled)


def _expit(t: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-np.clip(t, -700.0, 700.0)))


def _bend(theta: Any, target: Any, z: Any, mass: Any) -> tuple[Any, Any, Any]:
    """Return log-likelihood, gradient and information at theta, a row a draw."""
    eta = theta[:, :1] + theta[:, 1:] * z
    q = _expit(eta)
    value = (theta * target).sum(axis=1) - np.logaddexp(0.0, eta) @ mass
    terms = np.stack([mass, mass * z], axis=1)
    spread = (q * (1.0 - q)) @ np.stack([mass, mass * z, mass * z * z], axis=1)
    return value, target - q @ terms, spread[:, [[0, 1], [1, 2]]]


def _newton(slopes: Any, bend: Any, slope: bool) -> Any:
    if not slope:
        move = np.zeros_like(slopes)
        move[:, 0] = slopes[:, 0] / np.maximum(bend[:, 0, 0], 1e-300)
        return np.clip(move, -3.0, 3.0)
    ridge = 1e-10 * np.trace(bend, axis1=1, axis2=2) + 1e-300
    a, b, c = bend[:, 0, 0] + ridge, bend[:, 0, 1], bend[:, 1, 1] + ridge
    base = np.maximum(a * c - b * b, 1e-300)
    move = np.stack([c * slopes[:, 0] - b * slopes[:, 1], a * slopes[:, 1] - b * slopes[:, 0]], axis=1) / base[:, None]
    return move * np.minimum(1.0, 3.0 / np.maximum(np.abs(move).max(axis=1), 1e-300))[:, None]


def _advance(
    theta: Any, value: Any, slopes: Any, bend: Any, move: Any, left: Any, target: Any, z: Any, mass: Any
) -> tuple[Any, Any, Any, Any]:
    """Take the step of the draws that are `left`, each halved until it gains."""
    theta, value, slopes, bend = theta.copy(), value.copy(), slopes.copy(), bend.copy()
    size = 1.0
    for _ in range(HALVINGS):
        if not len(left):
            break
        trial = theta[left] + size * move[left]
        found = _bend(trial, target[left], z, mass)
        better = found[0] > value[left]
        won = left[better]
        theta[won], value[won] = trial[better], found[0][better]
        slopes[won], bend[won] = found[1][better], found[2][better]
        left, size = left[~better], 0.5 * size
    return theta, value, slopes, bend
