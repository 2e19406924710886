"""A bias map made: points, strata, masks, the simulated null and the table that is returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from calibrant.data.identity import identities_of
from calibrant.data.predictions import Predictions
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
)
from calibrant.diagnose.bias_bands import GUARD, Judged, judged
from calibrant.diagnose.bias_widths import widths_of
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.stats.bias import Means, Sample, Spots, means, signed, simulated

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
    if data.clusters is None:
        ids = identities_of(data.n, seed)
    else:
        found, code = np.unique(data.clusters, return_inverse=True)
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
    clustered = data.clusters is not None
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
    clustered = data.clusters is not None
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
        "bias": m.bias,
        "predicted": m.predicted,
        "observed": m.observed,
        "rows": m.rows,
        "share": m.near / n,
        "null_sd": np.sqrt(null),
        "bias_low": j.low,
        "bias_high": j.high,
        "point_low": j.point_low,
        "point_high": j.point_high,
        "p_adjusted": j.adjusted,
        "p_point": j.single,
    }
    return columns | {k: tuple(np.asarray(v, dtype=float).tolist()) for k, v in made.items()}
