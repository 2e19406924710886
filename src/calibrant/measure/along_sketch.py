"""From a sketch to the cells along one of its variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.coding import Coding
from calibrant.data.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.stats.cells import SCALE
from calibrant.stats.ledger import ChordLedger
from calibrant.stats.strata import Strata, View

SHORT = 65_536.0  # steps of the squared score
PLACES = 65_535.0  # steps of a value's place in its cell


def sketched_strata(sketch: Sketch, variable: tuple[str, ...], view: View) -> Strata:
    """Return the cells of a variable, or the groups of a pair, that a sketch kept.

    Raises
    ------
    NotComputable
        The sketch kept neither.
    """
    sketch.checked()
    fine = sketch.parts.get("fine")
    if fine is not None and len(variable) == 1 and variable[0] in fine.held:
        coding = next(c for c in sketch.spec.codings if c.name == variable[0])
        return _fine(coding, fine.held[coding.name], view)
    for i, names in enumerate(sketch.spec.groupings):
        if sorted(names) == sorted(variable):
            return _grouped(sketch, i, " x ".join(variable), view)
    raise NotComputable(
        f"this sketch did not count {' and '.join(map(repr, variable))}: sketch again with variables= or by="
    )


def fine_ledger(held: Any, view: View) -> ChordLedger:
    """Return what certificates read from the cells along a variable; squares are bounded from above."""
    sums = held[None].astype(np.float64)
    rows, score = sums[..., 0], sums[..., 1] / SCALE
    squares = (sums[..., 2] + 2.0 * SHORT * score + rows) / SHORT**2
    ledger = ChordLedger(rows, score, np.array([0.0, 0.5]), np.array([0.5, 1.0]), squares)
    return ledger.turned() if view == "confidence" else ledger


def _fine(coding: Coding, held: Any, view: View) -> Strata:
    kept = _ordered(coding, held[..., 0].sum(axis=(1, 2)))
    sums = held[kept].astype(np.float64)
    rows, score = sums[..., 0], sums[..., 1] / SCALE
    short = SHORT * score - 0.5 * rows  # about the sum of the 16-bit scores
    square = np.clip((sums[..., 2] + short + rows / 3.0) / SHORT**2, 0.0, score)
    if coding.kind == "category":
        labels: tuple[str, ...] | None = tuple(coding.labels[int(i)] for i in kept)
        missing = bool(len(kept)) and int(kept[-1]) == len(held) - 1
        x = np.arange(len(kept), dtype=np.float64)
        return _strata(coding.name, labels, (x, x, x), rows, score, square, missing, view, False)
    labels, missing = None, int(kept[-1]) == len(held) - 1
    ends = np.array([*coding.cells, np.nan])
    low, high = ends[kept], ends[kept + 1]
    place = sums[..., 3].sum(axis=(1, 2)) / rows.sum(axis=(1, 2))
    x = low + (high - low) * place / PLACES
    x, high = np.where(place > 0, x, low), np.where(place > 0, high, low)
    if missing:
        x[-1] = low[-1] = high[-1] = np.nan
    return _strata(coding.name, labels, (x, low, high), rows, score, square, missing, view, coding.kind == "date")


def _ordered(coding: Coding, rows: Any) -> Any:
    """Return the cells that hold rows: a category's most frequent level first, as rows in memory are coded.

    The first look orders levels by a sample, and simulations depend on the order.
    """
    kept = np.flatnonzero(rows)
    own = len(coding.levels)
    if coding.kind != "category" or coding.levels == ("false", "true"):
        return kept
    levels = sorted((int(i) for i in kept if i < own), key=lambda i: (-int(rows[i]), coding.levels[i]))
    return np.array([*levels, *(int(i) for i in kept if i >= own)], dtype=np.int64)


def _grouped(sketch: Sketch, grouping: int, name: str, view: View) -> Strata:
    """Return the groups of a grouping as levels; sums of squares are those of each score cell's mean."""
    start = sum(sketch.spec.sizes[:grouping])
    raw = sketch.group_cells[start : start + sketch.spec.sizes[grouping]].sum(axis=1).astype(np.float64)
    cells = raw.shape[1]
    rows, rest = raw[..., :2], raw[..., 2:4]
    score = (rows * (np.arange(cells) * (SCALE / cells))[None, :, None] + rest) / SCALE
    square = score**2 / np.maximum(rows, 1.0)
    halves = [np.stack([v[:, : cells // 2].sum(axis=1), v[:, cells // 2 :].sum(axis=1)], axis=1) for v in (rows, score)]
    square = np.stack([square[:, : cells // 2].sum(axis=1), square[:, cells // 2 :].sum(axis=1)], axis=1)
    kept = np.flatnonzero(halves[0].sum(axis=(1, 2)))
    names = sketch.spec.group_names(grouping)
    pairs = sketch.spec.groupings[grouping]
    labels = tuple(
        names[int(i)][0][1] if len(pairs) == 1 else ", ".join(f"{k} {v}" for k, v in names[int(i)]) for i in kept
    )
    last = len(pairs) == 1 and bool(len(kept)) and int(kept[-1]) == len(names) - 1
    x = np.arange(len(kept), dtype=np.float64)
    return _strata(name, labels, (x, x, x), halves[0][kept], halves[1][kept], square[kept], last, view, False)


def _strata(
    name: str,
    labels: tuple[str, ...] | None,
    at: tuple[Any, Any, Any],
    rows: Any,
    score: Any,
    square: Any,
    missing: bool,
    view: View,
    date: bool,
) -> Strata:
    """Add up sums by cell, side of the score and label, shape (cells, 2, 2), in the view asked for."""
    if view == "confidence":
        below = np.array([True, False])[None, :, None]
        square = np.where(below, (rows - 2 * score + square)[..., ::-1], square)
        score = np.where(below, (rows - score)[..., ::-1], score)
        rows = np.where(below, rows[..., ::-1], rows)
    n, s, q = (v.sum(axis=(1, 2)) for v in (rows, score, square))
    cases = rows[..., 1].sum(axis=1)
    right = rows[..., 1] - 2 * score[..., 1] + square[..., 1]
    return Strata(
        name=name,
        labels=labels,
        x=at[0],
        low=at[1],
        high=at[2],
        rows=n,
        weight=n,
        weight2=n,
        cases=cases,
        score=s,
        noise=np.maximum(s - q, 0.0),
        resid2=right.sum(axis=1) + square[..., 0].sum(axis=1),
        missing=missing,
        view=view,
        date=date,
    )
