"""From a sketch to what certificates along a variable read."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.certify.raw_lower import QUANTISATION
from calibrant.certify.residuals import Cut
from calibrant.data.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.measure.along_sketch import fine_ledger, sketched_strata
from calibrant.stats.cells import SCALE
from calibrant.stats.ledger import ChordLedger
from calibrant.stats.strata import View


def sketched_cut(sketch: Sketch, name: Any, bins: int, bandwidth: float | None, view: View) -> Cut:
    """Return the cut along a variable or pair that a sketch grouped by."""
    sketch.checked()
    wanted = (name,) if isinstance(name, str) else tuple(name)
    if bandwidth is not None:
        raise NotComputable("a jitter of the variable is certified from rows only: pass rows")
    found = [i for i, g in enumerate(sketch.spec.groupings) if sorted(g) == sorted(wanted)]
    return _grouped(sketch, found[0], view) if found else _fine(sketch, wanted, bins, view)


def _fine(sketch: Sketch, wanted: tuple[str, ...], bins: int, view: View) -> Cut:
    """Return the cells along a variable joined to bins; there are no random blocks."""
    strata = sketched_strata(sketch, wanted, view)
    held = sketch.parts["fine"].held[strata.name]
    kept = held[np.flatnonzero(held[..., 0].sum(axis=(1, 2)))]
    group = strata.bin_of(bins)
    joined = np.zeros((int(group.max()) + 1, *kept.shape[1:]), dtype=np.int64)
    np.add.at(joined, group, kept)
    cells = len(joined)
    return Cut(
        fine_ledger(joined, view),
        strata.ordered,
        cells - int(strata.missing),
        cells,
        "the sketch",
        0,
        "the sketch's cells along the variable",
        QUANTISATION,
    )


def _grouped(sketch: Sketch, grouping: int, view: View) -> Cut:
    """Return the cells of the groups of one grouping: levels of the variable, and the score in 1,024 ranges."""
    sizes, names = sketch.spec.sizes, sketch.spec.groupings[grouping]
    start = sum(sizes[:grouping])
    raw = np.moveaxis(sketch.group_cells[start : start + sizes[grouping]], 1, 0)
    ranges = raw.shape[2]
    counts = raw[..., :2].astype(np.float64)
    width = SCALE / ranges
    scores = (counts * (np.arange(ranges) * width)[None, None, :, None] + raw[..., 2:4]) / SCALE
    edges = np.arange(ranges + 1) / ranges
    ledger = ChordLedger(counts, scores, edges[:-1], edges[1:])
    ordered = len(names) == 1 and sketch.spec.by_name[names[0]].kind != "category"
    cells = sizes[grouping]
    return Cut(
        ledger.turned() if view == "confidence" else ledger,
        ordered,
        cells - int(ordered),
        cells,
        "the sketch",
        0,
        f"{ranges} score ranges of each group",
        QUANTISATION,
    )
