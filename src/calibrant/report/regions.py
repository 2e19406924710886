"""Where on a map the probabilities are off: runs of neighbouring points that are significant and of one sign."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from calibrant.results import Curve

Point = tuple[int, ...]  # numbers of its places along the axes


def regions(curve: Curve) -> list[dict[str, Any]]:
    """The significant regions of a map, worst first.

    A region is a set of neighbouring points with ``p_adjusted <= alpha`` and a bias of one sign. Points are neighbours
    along a number, a date or the score; levels of a category, missing values and the scattered points of the published
    map stand alone. Where the model is off in some region, the map's edges reach about a bandwidth beyond it.

    Parameters
    ----------
    curve : Curve
        From `diagnose.local_bias` on a grid.

    Returns
    -------
    list of dict
        Each with ``sign`` (1: more happens than the model says), ``group`` (or None), ``span`` (for each axis its
        ``name``, ``kind`` and ``low`` and ``high`` in the user's unit, equal for a level, None for missing), ``people``
        (rows nearest to its points), ``points``, and of its extreme point ``label``, ``gap``, ``low``, ``high`` (the
        simultaneous band), ``p_adjusted`` and ``rows`` (effective). Worst has the band farthest from zero.
    """
    c = curve.columns
    axes = [a for a in curve.settings["axes"] if "places" in a]
    places = ("x", "x2")[: len(axes)]
    at = [{v: i for i, v in enumerate(a["places"])} for a in axes]
    group = c.get("group", (None,) * len(c["gap"]))
    results: dict[Any, dict[Point, int]] = {}
    for i, p in enumerate(c["p_adjusted"]):
        if p <= curve.settings["alpha"] and c["gap"][i]:
            point = tuple(at[j][c[n][i]] for j, n in enumerate(places)) if axes else (i,)
            results.setdefault((group[i], 1 if c["gap"][i] > 0 else -1), {})[point] = i
    reported = [_reported(curve, g, sign, run) for (g, sign), points in results.items() for run in _runs(points, axes)]
    return sorted(reported, key=lambda r: (-_least(r), -abs(r["gap"]), str(r["group"]), r["label"]))


def _least(region: dict[str, Any]) -> float:
    """Return how far from zero the band of the extreme point stays."""
    return float(region["low"] if region["sign"] > 0 else -region["high"])


def _runs(points: dict[Point, int], axes: Sequence[dict[str, Any]]) -> list[list[int]]:
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
                for k in (p[j] - 1, p[j] + 1):
                    if 0 <= k < len(a["places"]) and a["places"][k] is not None:
                        front.append((*p[:j], k, *p[j + 1 :]))
        out.append(sorted(run))
    return out


def _reported(curve: Curve, group: str | None, sign: int, run: list[int]) -> dict[str, Any]:
    """Describe a region: its extent, and its extreme point."""
    c = curve.columns
    worst = max(run, key=lambda i: (sign * (c["low"][i] if sign > 0 else c["high"][i]), -i))
    span = []
    for a, column in zip(curve.settings["axes"], ("x", "x2"), strict=False):
        if "places" in a:
            place: Callable[[Any], int] = list(a["places"]).index
            values = sorted((c[column][i] for i in run), key=place)
            span.append({"name": a["name"], "kind": a["kind"], "low": values[0], "high": values[-1]})
    return {
        "sign": sign,
        "group": group,
        "span": span,
        "people": sum(c["people"][i] for i in run) if "people" in c else 0,
        "points": len(run),
        **{k: c[k][worst] for k in ("label", "gap", "low", "high", "p_adjusted", "rows")},
    }
