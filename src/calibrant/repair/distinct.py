"""Rows put in order of their score, those of one score together."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.predictions import Predictions

_LABEL = np.uint64(1)


def distinct(rows: Predictions) -> tuple[Any, Any, Any]:
    """Return the scores that occur, increasing, and the weight of the rows and of the cases at each.

    Without weights the label rides in the lowest bit of a whole number that orders like the score, so that one plain
    sort does it.
    """
    p = rows.p + 0.0  # so that -0.0 is 0.0
    if rows.weights is None:
        keys = (p.view(np.uint64) << _LABEL) | rows.y.astype(np.uint64)
        keys.sort()
        scores, y, weight = (keys >> _LABEL).view(np.float64), (keys & _LABEL).astype(np.float64), None
    else:
        order = np.argsort(p, kind="stable")
        scores, weight = p[order], rows.weights[order]
        y = rows.y[order] * weight
    first = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
    if len(first) == len(scores):
        return scores, np.ones(len(y)) if weight is None else weight, y
    heft = np.diff(np.append(first, len(scores))).astype(float) if weight is None else np.add.reduceat(weight, first)
    return scores[first], heft, np.add.reduceat(y, first)
