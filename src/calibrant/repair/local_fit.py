"""The fit of a local correction: nothing, the overall curve, or both and a kernel's, whichever cross-fitting prefers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.data.coding import codings
from calibrant.data.predictions import Predictions
from calibrant.repair.fitting import logistic_fit, targets
from calibrant.repair.inputs import Edges, edges_of, encoded, kept_levels, log_odds
from calibrant.repair.kernel_features import Frame, frame_of
from calibrant.repair.kernel_shift import codes_of, positions
from calibrant.repair.shrinkage import FOLDS, Choice, Trial, chosen, fitted, folds_of, losses, paired

STREAM = 0xB1A5
MOST = 200_000  # rows; of more, a uniform sample is fitted


@dataclass(frozen=True)
class Overall:
    """The curve ``slope t + intercept`` of the score's log-odds t, shape (n,)."""

    t: Any
    edges: Edges
    slope: float
    intercept: float

    @property
    def log_odds(self) -> Any:
        """Log-odds that the curve says."""
        return self.slope * self.t + self.intercept


def sample_of(rows: Predictions, seed: int) -> Predictions:
    """Return all rows, or a uniform sample of the most that are fitted."""
    if rows.n <= MOST:
        return rows
    at = np.sort(np.random.default_rng([seed, STREAM, 1]).choice(rows.n, MOST, replace=False))
    table = None if rows.covariates is None else rows.covariates.take(at)
    weights, clusters = (None if v is None else v[at] for v in (rows.weights, rows.clusters))
    return replace(rows, y=rows.y[at], p=rows.p[at], covariates=table, weights=weights, clusters=clusters, cache={})


def local_fit(
    rows: Predictions,
    names: tuple[str, ...] | None,
    widths: Sequence[float],
    shrink: float | None,
    landmarks: int,
    seed: int,
) -> dict[str, Any]:
    """Return the fields of the map that is fitted, its settings among them."""
    rng = np.random.default_rng([seed, STREAM])
    score_only = names is None and rows.covariates is None
    how, x, constants = ((), None, ()) if score_only else encoded(rows, names)
    score = _score_axis(rows.p)
    z, codes = positions(rows.p, None if x is None else x.scaled, score), codes_of(x, slice(None), rows.n)
    kept, overall = () if x is None else kept_levels(x), _overall(rows)
    free = np.column_stack([np.ones(rows.n), overall.t])[:, : 1 + (np.ptp(overall.t) > 0)]
    units, tried = folds_of(rows, rng), []
    for width in widths:
        frame = frame_of(z, codes, kept, landmarks, width, np.random.default_rng([seed, STREAM, 2]))
        t = _trial(rows, overall, frame, frame.columns(free, z, codes), free.shape[1], units)
        choice = chosen(t) if shrink is None else Choice(t.penalty(shrink, 1.0), shrink, 1.0, 0.0, 0.0)
        tried.append((choice, frame, t, width))
    choice, frame, t, width = max(tried, key=lambda entry: entry[0].gain)
    found: Mapping[str, Any] = {}
    if choice.penalty is not None:
        beta = fitted(t, choice.penalty)
        found = _shape(beta, t.free, frame)
        slope = overall.slope + (float(beta[1]) if t.free == 2 else 0.0)
        overall, kind = replace(overall, slope=slope, intercept=overall.intercept + float(beta[0])), "local"
    elif _better(rows, overall, t):
        kind = "overall"
    else:
        overall, kind = replace(overall, slope=1.0, intercept=0.0), "none"
    return {
        "codings": how,
        "slope": overall.slope,
        "intercept": overall.intercept,
        "score": score,
        "edges": overall.edges,
        "settings": {
            "constant": constants,
            "correction": kind,
            "bandwidth": width,
            "shrink_asked": shrink,
            "shrink": None if choice.penalty is None else float(choice.strength),
            "joint": float(choice.joint),
            "gain": choice.gain,
            "gain_error": choice.error,
            "features": t.features.shape[1],
            "rows_used": rows.n,
            "seed": seed,
        },
        **found,
    }


def _score_axis(p: Any) -> tuple[float, ...]:
    import pyarrow as pa

    (c,) = codings(pa.table({"score": np.asarray(p)}))
    return (float(p[0]), 1.0) if c.kind == "constant" else (c.location, c.scale, *c.ranks)


def _overall(rows: Predictions) -> Overall:
    edges = edges_of(rows.p)
    t = log_odds(rows.p, edges)
    return _line(t, edges, targets(rows), rows.weights)


def _line(t: Any, edges: Edges, target: Any, weight: Any) -> Overall:
    if np.ptp(t) == 0:
        mean = float(np.average(target, weights=weight))
        return Overall(t, edges, 1.0, float(np.log(mean / (1.0 - mean)) - t[0]))
    slopes, intercept = logistic_fit(t[:, None], target, weight)
    return Overall(t, edges, float(slopes[0]), intercept)


def _trial(
    rows: Predictions, overall: Overall, frame: Frame, features: Any, free: int, units: tuple[Any, Any]
) -> Trial:
    weight = np.ones(rows.n) if rows.weights is None else rows.weights / rows.weights.mean()
    joint = 0 if frame.joint is None else frame.joint.half.shape[1]
    return Trial(rows.y.astype(np.float64), weight, overall.log_odds, features, free, joint, units[1], units[0])


def _better(rows: Predictions, overall: Overall, t: Trial) -> bool:
    """Tell whether the overall curve, fitted on other folds, beats the scores as they are by a standard error."""
    after, target = np.empty(rows.n), targets(rows)
    for k in range(FOLDS):
        out, weight = t.fold == k, None if rows.weights is None else rows.weights[t.fold != k]
        line = _line(overall.t[~out], overall.edges, target[~out], weight)
        after[out] = line.slope * overall.t[out] + line.intercept
    gain, error = paired(t.weight * (losses(t.y, overall.t) - losses(t.y, after)), t.unit)
    return gain > error


def _shape(beta: Any, free: int, frame: Frame) -> dict[str, Any]:
    """Return the map's bells and constants, given coefficients of the features."""
    at, lines = free, []
    for k in frame.lines:
        lines.append(k.line(beta[at : at + k.half.shape[1]]))
        at += k.half.shape[1]
    levels = sum(map(len, frame.kept))
    out = {"lines": tuple(lines), "kept": frame.kept, "constants": tuple(beta[at : at + levels].tolist())}
    own = beta[at + levels :]
    if frame.joint is None or not own.any():
        return out
    k = frame.joint
    return out | {
        "landmarks": tuple(map(tuple, k.marks.tolist())),
        "levels_there": tuple(map(tuple, k.codes.tolist())),
        "heights": tuple((k.half @ own).tolist()),
        "width": k.width,
    }
