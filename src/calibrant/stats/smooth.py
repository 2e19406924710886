"""Residuals smoothed by a reflected Gaussian kernel on a grid (Blasiok & Nakkiran 2023)."""

from __future__ import annotations

from typing import Any

import numpy as np

STEPS = 1 << 12
FINEST = 1 << 15
SMALLEST = 2.0**-10  # least automatic bandwidth
PER_WIDTH = 16  # grid points per bandwidth, at least


def smoothed(mass: Any, width: float) -> Any:
    """Smooth masses at ``0, 1/m, ..., 1`` (last axis) into a density there, reflected at both ends.

    The reflected Gaussian is the heat kernel of [0, 1] with closed ends, so the cosines are its eigenvectors and
    two cosine transforms smooth exactly, however wide the kernel.
    """
    from scipy.fft import dct

    last = mass.shape[-1] - 1
    half = np.concatenate([mass[..., :1], 0.5 * mass[..., 1:-1], mass[..., -1:]], axis=-1)
    waves = dct(half, type=1, axis=-1) * np.exp(-0.5 * (np.pi * width * np.arange(last + 1)) ** 2)
    waves[..., -1] *= 2.0
    return dct(waves, type=1, axis=-1)


def length(density: Any) -> Any:
    """Integral over [0, 1] of the absolute value, by the trapezoid rule, over the last axis."""
    size = np.abs(density)
    return (size.sum(axis=-1) - 0.5 * (size[..., 0] + size[..., -1])) / (density.shape[-1] - 1)


def fixed_point(mass: Any) -> float:
    """Return the bandwidth that equals the smoothed size, or the smallest one if that is larger.

    The size does not increase with the bandwidth, so there is exactly one.
    """
    from scipy.optimize import brentq

    def excess(width: float) -> float:
        return float(length(smoothed(mass, width))) - width

    if excess(SMALLEST) <= 0.0:
        return SMALLEST
    return float(brentq(excess, SMALLEST, 1.0 + 1e-9, xtol=1e-7))


def steps_for(width: float) -> int:
    """Grid steps that resolve a bandwidth."""
    return min(FINEST, max(STEPS, 1 << int(np.ceil(np.log2(PER_WIDTH / width)))))


def noise_steps(width: float) -> int:
    """Grid steps of the simulated noise: about four to a bandwidth."""
    return min(STEPS, max(64, 1 << int(np.ceil(np.log2(4.0 / width)))))


def coarser(values: Any, steps: int) -> Any:
    """Share masses at ``0, 1/m, ..., 1`` among fewer grid points, nearness deciding; m is a multiple of `steps`."""
    ratio = (len(values) - 1) // steps
    if ratio == 1:
        return values
    share = np.arange(ratio) / ratio
    body = values[:-1].reshape(steps, ratio)
    out = np.zeros(steps + 1)
    out[:-1] += body @ (1.0 - share)
    out[1:] += body @ share
    out[-1] += values[-1]
    return out
