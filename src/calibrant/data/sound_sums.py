"""Whether stored counts can be those of rows: none negative, none too large, and every table with the same totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.data.coding import Coding
from calibrant.data.fine import MOST as MOST_FINE
from calibrant.data.stored import Damaged
from calibrant.kernels.features_reference import UNIT, VARIANCE
from calibrant.kernels.reference import CELL_BITS, GROUP_BITS, LEVELS, SCORE_BITS

if TYPE_CHECKING:
    from calibrant.data.sketch import Sketch

MOST_ROWS = 1 << 40  # so that no sum over all rows leaves 64 bits
LIMB = 1 << 20  # of the local test's sums
REST = SCORE_BITS - CELL_BITS
GROUP_REST = SCORE_BITS - GROUP_BITS
LATEST = 106_751_991.0  # days that microseconds in 64 bits can hold


def check_sums(sketch: Sketch) -> None:
    """Refuse counts that contradict themselves, one another or the spec."""
    everyone, levels = sketch._arrays["cells"], sketch._arrays["levels"]
    at = np.unique(np.flatnonzero(everyone) // everyone.shape[2] % everyone.shape[1])
    held = everyone[:, at]  # the cells that hold rows: most may be empty
    rows = _checked_everyone(at, held, levels)
    complete = sketch.rows_read == sketch.n if not sketch.drop_missing else sketch.rows_read >= sketch.n
    _need(complete and sketch.rows_read <= MOST_ROWS, "the number of rows read", "is not that of the counts")
    if sketch.spec.groupings:
        _check_groups(sketch, _folded(at, held, GROUP_REST), levels)
    if "fine" in sketch.parts:
        totals = _folded(at, held.sum(axis=0), SCORE_BITS - 1)
        for c in sketch.spec.codings:
            _check_fine(sketch.parts["fine"].held[c.name], totals, f"covariate {c.name!r}")
    if "sample" in sketch.parts:
        _check_sample(sketch, int(rows.sum()), int(rows[1]))
    if "local" in sketch.parts:
        shown = (
            float((held[..., :2].sum(axis=(0, 2)) * (at * 2.0**REST)).sum() + held[..., 2:4].sum()) / 2.0**SCORE_BITS
        )
        _check_local(sketch.parts["local"], int(rows.sum()), int(rows[1]), shown)


def _need(sound: Any, where: str, what: str) -> None:
    if not sound:
        raise Damaged(where, what)


def _within(counts: Any, sums: Any, step: int, where: str) -> None:
    """Check counts of rows, and sums over them of whole numbers from 0 to ``step - 1``."""
    _need((counts >= 0).all() and (counts <= MOST_ROWS).all(), where, "has a negative or impossible count")
    _need((sums >= 0).all() and (sums <= counts * (step - 1)).all(), where, "has a sum that its rows cannot have")


def _checked_everyone(at: Any, held: Any, levels: Any) -> Any:
    """Return rows by label; `at` are the cells held."""
    counts, where = held[..., :2], "the cells"
    _within(counts, held[..., 2:4], 1 << REST, where)
    low, high, n = held[..., 4], held[..., 5], counts.sum(axis=-1)
    _need((low >= 0).all() and (low <= 0xFFFFFFFF).all() and (high >= 0).all(), where, "have squares out of range")
    square, total = high * 2.0**32 + low, held[..., 2:4].sum(axis=-1).astype(np.float64)
    _need((square <= total * ((1 << REST) - 1)).all(), where, "have squares that their rows cannot have")
    _need((square * n >= total**2 * (1 - 1e-9)).all(), where, "have squares that their rows cannot have")
    rows = counts.sum(axis=1)
    _need(rows.astype(np.float64).sum() <= MOST_ROWS, where, "have an impossible number of rows")
    _within(levels, np.zeros(1, dtype=np.int64), 1, "the levels")
    _need((levels.sum(axis=1) == rows).all(), "the levels", "do not add up to the cells")
    below = np.concatenate([np.zeros_like(rows[:, None]), counts.cumsum(axis=1)], axis=1)
    end, up_to = -(-(np.arange(1, LEVELS + 1, dtype=np.int64) << SCORE_BITS) // LEVELS), levels.cumsum(axis=1)
    least, most = (below[:, np.searchsorted(at, cell)] for cell in (end >> REST, -(-end >> REST)))
    _need((least <= up_to).all() and (up_to <= most).all(), "the levels", "do not agree with the cells")
    return rows.sum(axis=0)


def _folded(at: Any, held: Any, to: int) -> Any:
    """Return counts and remainder sums by label of coarser cells, whose remainders have `to` bits."""
    counts, sums = held[..., :2], held[..., 2:4]
    place = (at % (1 << (to - REST)))[:, None] << REST
    out = np.zeros((*held.shape[:-2], 1 << (SCORE_BITS - to), 4), dtype=np.int64)
    to_cell: Any = (..., at >> (to - REST), slice(None))
    np.add.at(out, to_cell, np.concatenate([counts, sums + counts * place], axis=-1))
    return out


def _check_groups(sketch: Sketch, coarse: Any, levels: Any) -> None:
    none, first = np.zeros(1, dtype=np.int64), 0
    for names, size in zip(sketch.spec.groupings, sketch.spec.sizes, strict=True):
        where, cells, levels_of = f"the groups of {' and '.join(names)}", np.zeros_like(coarse), np.zeros_like(levels)
        for g in range(first, first + size):
            own, shown = sketch._arrays["group_cells"][g], sketch._arrays["group_levels"][g]
            _within(own[..., :2], own[..., 2:], 1 << GROUP_REST, where)
            _within(shown, none, 1, where)
            _need((own[..., :2].sum(axis=1) == shown.sum(axis=1)).all(), where, "have levels unlike their cells")
            cells += own
            levels_of += shown
        _need((cells == coarse).all() and (levels_of == levels).all(), where, "do not add up to everyone")
        first += size


def _check_fine(held: Any, totals: Any, where: str) -> None:
    """Check one covariate's sums; `totals` are everyone's counts and remainder sums by side and label."""
    n, q, square, place = (
        held[..., k] for k in range(4)
    )  # sums of q wrap where they leave 64 bits, alike on both sides
    _need((n <= MOST_FINE).all(), where, "has an impossible count")
    _within(n, place, 1 << 16, where)
    low = np.array([0, 1 << (SCORE_BITS - 1)], dtype=np.int64)[:, None]
    _within(n, q - n * low, 1 << (SCORE_BITS - 1), where)
    side = (n.sum(axis=0), (q - n * low).sum(axis=0))
    _need((side[0] == totals[:, :2]).all() and (side[1] == totals[:, 2:]).all(), where, "does not add up to the cells")
    most, least = q * (((1 << 16) - 1) / 2.0**14), (np.maximum(q / 2.0**14 - n, 0.0)) ** 2
    slack = 1e-9
    _need((square >= 0).all() and (square <= most * (1 + slack)).all(), where, "has squares that its rows cannot have")
    _need(
        (square * n.astype(np.float64) * (1 + slack) + slack >= least).all(),
        where,
        "has squares that its rows cannot have",
    )


def _check_sample(sketch: Sketch, n: int, cases: int) -> None:
    lines, where = sketch.parts["sample"].lines, "the sample"
    _need(len(lines) <= min(n, sketch.spec.sample), where, "has too many rows")
    if not len(lines):
        return
    hashes, p, y = lines[:, 0].view(np.uint64), np.ascontiguousarray(lines[:, 1]).view(np.float64), lines[:, 2]
    _need((hashes[1:] >= hashes[:-1]).all(), where, "is out of order")
    _need(((p >= 0.0) & (p <= 1.0)).all() and ((y == 0) | (y == 1)).all(), where, "has a score or label that is none")
    _need(len(lines) < n or int(y.sum()) == cases, where, "has other labels")
    column = 3
    for c in (c for c in sketch.spec.codings if c.kind != "category"):
        values = np.ascontiguousarray(lines[:, column]).view(np.float64)
        reach = LATEST if c.kind == "date" else np.finfo(np.float64).max
        _need((np.isnan(values) | (np.abs(values) <= reach)).all(), where, f"has an impossible {c.name!r}")
        column += 1
    for name, most in _levels(sketch.spec.codings):
        codes = lines[:, column]
        _need(((codes >= 0) & (codes < most)).all(), where, f"has an impossible {name!r}")
        column += 1


def _levels(how: tuple[Coding, ...]) -> list[tuple[str, int]]:
    """Return the level variables of encoded rows and how many levels each has."""
    categories = [(c.name, len(c.labels)) for c in how if c.kind == "category"]
    return categories + [(c.name, 2) for c in how if c.kind != "category" and c.missing]


def _check_local(sums: Any, n: int, cases: int, shown: float) -> None:
    """Check the local test's sums; `shown` is the sum of everyone's scores by the cells."""
    where = "the local test"
    counts, hits, means, gram, diagonal = (sums.arrays()[k] for k in ("counts", "hits", "means", "gram", "diagonal"))
    _need(counts[0] == n and counts[1] == cases and 0 <= counts[2] <= n, where, "has another number of rows")
    _need((np.abs(hits.astype(np.float64)) <= float(UNIT) * n).all(), where, "has impossible sums of outcomes")
    _need(hits[0, 0] == cases and (hits[0] >= 0).all() and (hits[0] <= n).all(), where, "has other outcomes")
    reach = float(UNIT) * n * np.array([1 << 15, 1 << 15, 1])
    _need((np.abs(means.astype(np.float64)) <= reach).all() and means[0, 2] == n, where, "has impossible means")
    scores = (means[0, 0] * 2.0**15 + means[0, 1]) / 2.0**SCORE_BITS
    _need(abs(scores - shown) <= 4.0 * n / 2.0**SCORE_BITS + 1e-12 * n, where, "has other scores")
    for limbs, most in ((gram, float(UNIT) ** 2 * VARIANCE), (diagonal, float(UNIT) * (1 << 20) * len(gram[0]))):
        _need(((limbs[0] >= 0) & (limbs[0] < LIMB)).all(), where, "has sums out of range")
        _need((np.abs(limbs[1].astype(np.float64)) * LIMB <= most * n + LIMB).all(), where, "has sums out of range")
