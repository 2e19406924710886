"""A bias map made: points, strata, masks, the simulated null, regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from calibrant.data.predictions import Predictions
from calibrant.data.sample import identities_of
from calibrant.diagnose.bias_axes import (
    MOST,
    PAIR_POINTS,
    POINTS,
    Axis,
    Places,
    axes_of,
    grid_for,
    places_of,
    strata_of,
    widths_of,
)
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.stats.nulls import critical, p_value
from calibrant.stats.smoothing import Means, Sample, Spots, means, signed, simulated

# ---- What the simulated null says about a bias map: p-values and bands, at each point and over all of them ----

GUARD = 1.0  # events added to the null variance of each point, so that no point of rare events sets the band of all


@dataclass(frozen=True)
class Judged:
    """The p-values and bands of a map; arrays of shape (points,).

    Parameters
    ----------
    statistic, p_value, critical : float
        Of the whole map.
    low, high : simultaneous band
    low_point, high_point : band of each point by itself
    adjusted, single : p-values over the map, and of each point by itself
    """

    statistic: float
    p_value: float
    critical: float
    low: Any
    high: Any
    low_point: Any
    high_point: Any
    adjusted: Any
    single: Any


def judged(bias: Any, null: Any, spread: Any, per: Any, drawn: Any, alpha: float) -> Judged:
    """Compare a map with its simulated ones.

    Parameters
    ----------
    bias, null, spread : float arrays of shape (points,)
        Estimate, its variance if the model is calibrated, and its variance from the residuals; both positive.
    per : float array of shape (points,)
        What the variance grows by per unit of bias, at most: one over the effective rows.
    drawn : float array of shape (points, draws)
        Simulated estimates; overwritten.
    alpha : float
    """
    scale = np.sqrt(null)
    observed = np.abs(bias) / scale
    np.abs(drawn, out=drawn)
    drawn /= scale[:, None]
    top = drawn.max(axis=0)
    wide = float(critical(top, alpha))
    narrow = critical(drawn.T, alpha)
    ordered = np.sort(top)
    limit = observed - 1e-9 * np.maximum(1.0, observed)
    above = len(top) - np.searchsorted(ordered, limit, side="left")
    single = (1 + (drawn >= limit[:, None]).sum(axis=1)) / (len(top) + 1)
    statistic = float(observed.max())
    return Judged(
        statistic,
        p_value(statistic, top),
        wide,
        *band(bias, null, spread, per, wide),
        *band(bias, null, spread, per, narrow),
        (1 + above) / (len(top) + 1),
        single,
    )


def band(bias: Any, null: Any, spread: Any, per: Any, c: Any) -> tuple[Any, Any]:
    r"""Return the values ``b`` not rejected: ``|bias - b| <= c sd(b)``, a score interval.

    ``sd(b)^2`` is `null` at ``b = 0`` and `spread` at the estimate, linear between, `null` on the other side of zero,
    and from the larger of the two on beyond the estimate, where it grows on at the same rate, at most `per`. The
    interval excludes zero exactly where ``|bias| > c sd(0)``.
    """
    size = np.abs(bias)
    c = np.where(np.isfinite(c), c, 0.0) + np.zeros_like(size) if np.isfinite(c).all() else np.full_like(size, np.inf)
    with np.errstate(invalid="ignore"):
        over = size**2 - c**2 * null
        q = 2 * size**2 + c**2 * (spread - null)
        root = np.sqrt(np.maximum(q * q - 4 * size**2 * over, 0.0))
        t = 2 * over / np.where(over > 0, q + root, 1.0)
        inner = np.where(over > 0, t * size, size - c * np.sqrt(null))
        grows = c**2 * np.clip((spread - null) / np.maximum(size, 1e-12), 0.0, per)
        outer = size + (grows + np.sqrt(grows**2 + 4 * c**2 * np.maximum(null, spread))) / 2
    low, high = np.where(bias < 0, -outer, inner), np.where(bias < 0, -inner, outer)
    return np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)


# ---- A bias map made: points, strata, masks, the simulated null and the table that is returned ----

METHOD = "diagnose.local_bias"
LEAST, NEAR = 10, 5  # effective rows (and clusters), and rows within reach, of a point that is kept
STREAM = 0xB1A5
BAND = (
    "simultaneous over the whole map: if the model is calibrated it excludes zero anywhere with probability at most "
    "alpha; if not, an asymptotic band for the smoothed bias"
)
EXACT, SIGNS = "exact simulation", "asymptotic: random signs of whole clusters"
TOO_FEW = f"no point has {LEAST} effective rows within reach: give a wider bandwidth, fewer strata or more data"


@dataclass(frozen=True)
class Asked:
    """Settings of a map."""

    alpha: float
    draws: int
    seed: int

    @property
    def salt(self) -> int:
        """The key of the simulation."""
        return int(np.random.default_rng([STREAM, self.seed]).integers(1 << 62))


@dataclass(frozen=True)
class Part:
    """The kept points of one stratum: their numbers in its grid, means, variances, and simulated draws."""

    kept: Any
    means: Means
    null: Any
    spread: Any
    draws: Any


def part_of(points: Spots, s: Sample, clustered: bool, ask: Asked) -> Part:
    """Look at the points of one stratum; leave out those that too few rows support."""
    m = means(points, s)
    kept = np.flatnonzero((m.rows >= LEAST) & (m.near >= NEAR))
    points, m = points[kept], m[kept]
    if not len(kept):
        return Part(kept, m, m.null, m.spread, np.zeros((0, ask.draws)))
    if not clustered:
        return Part(kept, m, m.null, m.spread, simulated(points, s, ask.draws, ask.salt))
    found = signed(points, s, ask.draws, ask.salt)
    enough = (found.clusters >= LEAST) & (found.noise > 0)
    noise = found.noise[enough]
    return Part(kept[enough], m[enough], noise, noise, found.draws[enough])


def sample_of(data: Predictions, axes: Sequence[Axis], seed: int) -> Sample:
    """Return the rows on the axes, in the unit of each: bandwidths come later."""
    if data.cluster is None:
        ids = identities_of(data.n, seed)
    else:
        found, code = np.unique(data.cluster, return_inverse=True)
        ids = identities_of(len(found), seed)[code.reshape(-1)]
    weight = np.ones(data.n) if data.weights is None else data.weights / data.weights.mean()
    spots = Spots(np.column_stack([a.position for a in axes]), np.column_stack([a.level for a in axes]))
    return Sample(data.y.astype(float), np.asarray(data.p), weight, ids, spots)


def scaled(spots: Spots, widths: Sequence[float]) -> Spots:
    """Return spots in bandwidths."""
    return Spots(spots.position / np.asarray(widths), spots.level)


def noise_of(data: Predictions) -> Any:
    """Return the null variance of each row; with weights, scaled to the effective number of rows."""
    v = data.p * (1.0 - data.p)
    w = data.weights
    return v if w is None else v * w * (w.sum() / (w @ w))


def mapped(
    data: Predictions,
    names: tuple[str, ...],
    split: tuple[str, ...],
    score: bool,
    grid: Any,
    bandwidth: Any,
    ask: Asked,
) -> Curve:
    """Draw the map of one or two axes, over everyone or in each stratum."""
    axes = axes_of(data, names, score)
    strata, row = strata_of(data, split)
    called = tuple(a.name for a in axes)
    points = POINTS if len(axes) == 1 else PAIR_POINTS
    places = tuple(places_of(a, grid_for(a.name, grid, called), points) for a in axes)
    index = np.array(list(product(*(range(len(p.values)) for p in places))))
    if len(index) * len(strata) > MOST:
        raise BadInput(f"the map would have {len(index) * len(strata):,} points, over {MOST:,}: give a coarser grid")
    there = Spots(
        np.column_stack([p.position[index[:, j]] for j, p in enumerate(places)]),
        np.column_stack([p.level[index[:, j]] for j, p in enumerate(places)]),
    )
    whole, noise = sample_of(data, axes, ask.seed), noise_of(data)
    clustered = data.cluster is not None
    parts, widths = [], []
    for k in range(len(strata)):
        mine = row == k
        widths.append(widths_of(axes, bandwidth, mine, noise))
        s = whole[np.flatnonzero(mine)]
        s = Sample(s.y, s.p, s.weight, s.ids, scaled(s.spots, widths[-1]))
        parts.append(part_of(scaled(there, widths[-1]), s, clustered, ask))
    columns = _coordinates(places, index, parts, strata if split else ())
    nearest = np.column_stack([p.nearest(a) for a, p in zip(axes, places, strict=True)])
    columns["people"] = _people(nearest, index, parts, row, [len(p.values) for p in places])
    found = [strata[k] for k, part in enumerate(parts) if not len(part.kept)]
    settings = {
        "axes": tuple(_described(a, p) for a, p in zip(axes, places, strict=True)),
        "bandwidths": {
            s: {a.name: w[j] for j, a in enumerate(axes) if a.numeric} for s, w in zip(strata, widths, strict=True)
        },
        "kernel": "local",
        "strata": split,
        "strata_left_out": tuple(found) if split else (),
    }
    return curve_of(data, columns, parts, len(index) * len(strata), ask, settings)


def _described(a: Axis, p: Places) -> dict[str, Any]:
    return {"name": a.name, "kind": a.kind, "places": p.values, "scaling": "rank" if a.ranks else "as it is"}


def _coordinates(places: Sequence[Places], index: Any, parts: Sequence[Part], strata: Sequence[str]) -> dict[str, Any]:
    """Return the columns that say where each point is."""
    lines = [(k, *index[i]) for k, part in enumerate(parts) for i in part.kept]
    out: dict[str, Any] = {
        name: tuple(p.values[line[1 + j]] for line in lines)
        for j, (name, p) in enumerate(zip(("x", "x2"), places, strict=False))
    }
    if strata:
        out["stratum"] = tuple(strata[line[0]] for line in lines)
    out["label"] = tuple(", ".join(p.labels[line[1 + j]] for j, p in enumerate(places)) for line in lines)
    return out


def _people(nearest: Any, index: Any, parts: Sequence[Part], row: Any, sizes: list[int]) -> tuple[int, ...]:
    """Count the rows nearest to each kept point."""
    inside = (nearest >= 0).all(axis=1)
    at = np.ravel_multi_index(tuple(np.where(inside, nearest[:, j], 0) for j in range(len(sizes))), sizes)
    out: list[int] = []
    for k, part in enumerate(parts):
        count = np.bincount(at[inside & (row == k)], minlength=len(index))
        out += [int(count[i]) for i in part.kept]
    return tuple(out)


def curve_of(
    data: Predictions, columns: dict[str, Any], parts: Sequence[Part], points: int, ask: Asked, settings: dict[str, Any]
) -> Curve:
    """Judge all parts together, and put the table in order."""
    kept = sum(len(part.kept) for part in parts)
    clustered = data.cluster is not None
    if not kept:
        raise NotComputable(TOO_FEW.replace("rows", "rows and clusters") if clustered else TOO_FEW)
    m = Means(**{k: np.concatenate([getattr(p.means, k) for p in parts]) for k in vars(parts[0].means)})
    null, spread = (np.concatenate([getattr(p, k) for p in parts]) for k in ("null", "spread"))
    drawn = np.concatenate([p.draws for p in parts])
    guard, per = (0.0, 0.0) if clustered else (GUARD / m.rows**2, 1.0 / m.rows)
    j = judged(m.bias, null + guard, spread + guard, per, drawn, ask.alpha)
    contradicted = int(((data.p == 0) & (data.y == 1)).sum() + ((data.p == 1) & (data.y == 0)).sum())
    return Curve(
        method=METHOD,
        columns=_table(columns, m, null, j, data.n),
        settings={
            "alpha": ask.alpha,
            "band": BAND,
            "clusters": clustered,
            "contradicted": contradicted,
            "critical": j.critical,
            "draws": ask.draws,
            "law": SIGNS if clustered else EXACT,
            "masked": points - kept,
            "n": data.n,
            "p_value": 0.0 if contradicted else j.p_value,
            "seed": ask.seed,
            "statistic": j.statistic,
            "weights": data.weights is not None,
            **settings,
        },
    )


def _table(columns: dict[str, Any], m: Means, null: Any, j: Judged, n: int) -> dict[str, Any]:
    made = {
        "gap": m.bias,
        "predicted": m.predicted,
        "observed": m.observed,
        "rows": m.rows,
        "share": m.near / n,
        "null_sd": np.sqrt(null),
        "low": j.low,
        "high": j.high,
        "low_point": j.low_point,
        "high_point": j.high_point,
        "p_adjusted": j.adjusted,
        "p_point": j.single,
    }
    return columns | {k: tuple(np.asarray(v, dtype=float).tolist()) for k, v in made.items()}


# ---- Where on a bias map the probabilities are off: runs of neighbouring points that are significant and of ----

Point = tuple[int, ...]


def regions(curve: Curve) -> list[dict[str, Any]]:
    """Return the significant regions of a map, worst first.

    A region is a set of neighbouring points with ``p_adjusted <= alpha`` and a bias of one sign. Points are neighbours
    along a number, a date or the score; levels of a category, and missing values, stand alone. Where the model is
    off in some region, the map's edges reach about a bandwidth beyond it.

    Parameters
    ----------
    curve : Curve
        From `diagnose.local_bias` on a grid.

    Returns
    -------
    list of dict
        Each with ``sign`` (1: more happens than the model says), ``stratum`` (or None), ``span`` (for each axis its
        ``name``, ``kind`` and ``low`` and ``high`` in the user's unit, equal for a level, None for missing), ``people``
        (rows nearest to its points), ``points``, and of its extreme point ``label``, ``gap``, ``low``, ``high`` (the
        simultaneous band), ``p_adjusted`` and ``rows`` (effective). Worst has the band farthest from zero.
    """
    c, axes = curve.columns, curve.settings["axes"]
    if "places" not in axes[0]:
        return _published(curve)
    names = ("x", "x2")[: len(axes)]
    at = [{v: i for i, v in enumerate(a["places"])} for a in axes]
    stratum = c.get("stratum", (None,) * len(c["gap"]))
    found: dict[Any, dict[Point, int]] = {}
    for i, p in enumerate(c["p_adjusted"]):
        if p <= curve.settings["alpha"] and c["gap"][i]:
            point = tuple(at[j][c[n][i]] for j, n in enumerate(names))
            found.setdefault((stratum[i], 1 if c["gap"][i] > 0 else -1), {})[point] = i
    out = []
    for (group, sign), points in found.items():
        out += [_told(curve, axes, names, group, sign, run) for run in _runs(points, axes)]
    return sorted(out, key=lambda r: (-_least(r), -abs(r["gap"]), str(r["stratum"]), r["label"]))


def _least(region: dict[str, Any]) -> float:
    """Return how far from zero the band of the extreme point stays."""
    return float(region["low"] if region["sign"] > 0 else -region["high"])


def _runs(points: dict[Point, int], axes: Any) -> list[list[int]]:
    """Return connected sets of points, as row numbers of the table."""
    left, out = dict(points), []
    while left:
        front, run = [next(iter(left))], []
        while front:
            p = front.pop()
            if p not in left:
                continue
            run.append(left.pop(p))
            for j, a in enumerate(axes):
                if a["kind"] == "category" or a["places"][p[j]] is None:
                    continue
                for step in (-1, 1):
                    k = p[j] + step
                    if 0 <= k < len(a["places"]) and a["places"][k] is not None:
                        front.append((*p[:j], k, *p[j + 1 :]))
        out.append(sorted(run))
    return out


def _told(curve: Curve, axes: Any, names: Any, group: Any, sign: int, run: list[int]) -> dict[str, Any]:
    c = curve.columns
    worst = max(run, key=lambda i: (sign * (c["low"][i] if sign > 0 else c["high"][i]), -i))
    span = []
    for a, n in zip(axes, names, strict=True):
        order = {v: i for i, v in enumerate(a["places"])}
        values = sorted((c[n][i] for i in run), key=order.__getitem__)
        span.append({"name": a["name"], "kind": a["kind"], "low": values[0], "high": values[-1]})
    return {
        "sign": sign,
        "stratum": group,
        "span": span,
        "people": sum(c["people"][i] for i in run),
        "points": len(run),
        "label": c["label"][worst],
        "gap": c["gap"][worst],
        "low": c["low"][worst],
        "high": c["high"][worst],
        "p_adjusted": c["p_adjusted"][worst],
        "rows": c["rows"][worst],
    }


def _published(curve: Curve) -> list[dict[str, Any]]:
    """Return the significant points of a map at scattered points, each by itself."""
    c, out = curve.columns, []
    for i, p in enumerate(c["p_adjusted"]):
        if p <= curve.settings["alpha"] and c["gap"][i]:
            out.append(
                {
                    "sign": 1 if c["gap"][i] > 0 else -1,
                    "stratum": None,
                    "span": [],
                    "people": 0,
                    "points": 1,
                    "label": c["label"][i],
                    "gap": c["gap"][i],
                    "low": c["low"][i],
                    "high": c["high"][i],
                    "p_adjusted": p,
                    "rows": c["rows"][i],
                }
            )
    return sorted(out, key=lambda r: (-_least(r), r["label"]))
