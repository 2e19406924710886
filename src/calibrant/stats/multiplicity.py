"""p-values of several tests that are looked at together."""

from __future__ import annotations

from typing import Any

import numpy as np


def step_down(observed: Any, simulated: Any) -> Any:
    """Return Westfall and Young's step-down adjusted p-values of statistics simulated together.

    The largest statistic is held against the largest of all in each draw, the next against the largest of the rest,
    and so on; an adjusted p-value is never below that of a larger statistic.

    Parameters
    ----------
    observed : array of shape (tests,)
    simulated : array of shape (tests, draws)

    Returns
    -------
    float array of shape (tests,)
    """
    order = np.argsort(-observed, kind="stable")
    top = np.maximum.accumulate(simulated[order[::-1]], axis=0)[::-1]
    slack = 1e-9 * np.maximum(1.0, np.abs(observed[order]))
    at_least = (top >= (observed[order] - slack)[:, None]).sum(axis=1)
    out = np.empty(len(order))
    out[order] = np.maximum.accumulate((1.0 + at_least) / (simulated.shape[1] + 1.0))
    return out


def holm(p: Any) -> Any:
    """Return Holm's adjusted p-values, shape (tests,): valid whatever the dependence."""
    order = np.argsort(p, kind="stable")
    size = len(order)
    out = np.empty(size)
    out[order] = np.minimum(np.maximum.accumulate(np.asarray(p)[order] * (size - np.arange(size))), 1.0)
    return out
