"""Where on a bias map the probabilities are off: runs of neighbouring points that are significant and of one sign."""

from __future__ import annotations

from typing import Any

from calibrant.results import Curve

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
        (rows nearest to its points), ``points``, and of its extreme point ``label``, ``bias``, ``low``, ``high`` (the
        simultaneous band), ``p_adjusted`` and ``rows`` (effective). Worst has the band farthest from zero.
    """
    c, axes = curve.columns, curve.settings["axes"]
    if "places" not in axes[0]:
        return _published(curve)
    names = ("x", "x2")[: len(axes)]
    at = [{v: i for i, v in enumerate(a["places"])} for a in axes]
    stratum = c.get("stratum", (None,) * len(c["bias"]))
    found: dict[Any, dict[Point, int]] = {}
    for i, p in enumerate(c["p_adjusted"]):
        if p <= curve.settings["alpha"] and c["bias"][i]:
            point = tuple(at[j][c[n][i]] for j, n in enumerate(names))
            found.setdefault((stratum[i], 1 if c["bias"][i] > 0 else -1), {})[point] = i
    out = []
    for (group, sign), points in found.items():
        out += [_told(curve, axes, names, group, sign, run) for run in _runs(points, axes)]
    return sorted(out, key=lambda r: (-_least(r), -abs(r["bias"]), str(r["stratum"]), r["label"]))


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
    worst = max(run, key=lambda i: (sign * (c["bias_low"][i] if sign > 0 else c["bias_high"][i]), -i))
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
        "bias": c["bias"][worst],
        "low": c["bias_low"][worst],
        "high": c["bias_high"][worst],
        "p_adjusted": c["p_adjusted"][worst],
        "rows": c["rows"][worst],
    }


def _published(curve: Curve) -> list[dict[str, Any]]:
    """Return the significant points of a map at scattered points, each by itself."""
    c, out = curve.columns, []
    for i, p in enumerate(c["p_adjusted"]):
        if p <= curve.settings["alpha"] and c["bias"][i]:
            out.append(
                {
                    "sign": 1 if c["bias"][i] > 0 else -1,
                    "stratum": None,
                    "span": [],
                    "people": 0,
                    "points": 1,
                    "label": c["label"][i],
                    "bias": c["bias"][i],
                    "low": c["bias_low"][i],
                    "high": c["bias_high"][i],
                    "p_adjusted": p,
                    "rows": c["rows"][i],
                }
            )
    return sorted(out, key=lambda r: (-_least(r), r["label"]))
