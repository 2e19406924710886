"""Rows dealt into blocks and cut along a variable, by edges that no label and no certified row has touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.coding import is_date, is_number
from calibrant.data.identity import identities, identities_of
from calibrant.data.predictions import Predictions
from calibrant.data.spec import Spec
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.strata import locate
from calibrant.measure.along import along_of, checked_rows, covariate, numbers_of
from calibrant.stats.binning import equal_mass_edges
from calibrant.stats.ledger import Ledger, RowLedger, ledger_of
from calibrant.stats.strata import View

BLOCKS = 8
PILOT = 1000  # rows at most, and a tenth at most, that set a number's edges and then leave


@dataclass(frozen=True)
class Cut:
    """What certificates along one variable read.

    Parameters
    ----------
    ledger : Ledger
    ordered : bool
        The cells are in the order of a number or date; that of missing values is last.
    points : int
        Cells of values, without that of missing values.
    cells : int
        Cells, empty ones included.
    edges_from : str
        ``"levels"``, ``"pilot rows"`` or ``"the sketch"``.
    pilot : int
        Rows that set the edges and left.
    reads : str
    rounding : float
        By how much reading the scores to fixed precision can move the estimand.
    """

    ledger: Ledger
    ordered: bool
    points: int
    cells: int
    edges_from: str
    pilot: int
    reads: str = "rows"
    rounding: float = 0.0

    def about(self, bandwidth: float | None) -> str:
        """Say in a phrase what the certificate is about."""
        if bandwidth is not None:
            return f"the raw score, along the variable's rank jittered by {bandwidth:g}"
        return f"the raw score, along {self.cells} cells of the variable"


@dataclass(frozen=True)
class Dealt:
    """Rows with what all variables share: residuals of the view, random blocks, pilot rows.

    Parameters
    ----------
    rows : Predictions
    view : {"probability", "confidence"}
    residual : float64 array of shape (n,)
    block : uint8 array of shape (n,)
    pilot : int array
        Rows that set edges of numbers.
    """

    rows: Predictions
    view: View
    residual: Any
    block: Any
    pilot: Any


def dealt_of(data: Any, view: View, seed: int) -> Dealt:
    """Return rows dealt by their identity; refuse what no proof covers."""
    rows = checked_rows(data)
    if rows.weights is not None:
        raise NotComputable("no certificate here is proved for weights=: leave weights out")
    residual = rows.y - rows.p
    if view == "confidence":
        residual = np.where(rows.p < 0.5, -residual, residual)
    block = ((identities_of(rows.n, seed) >> np.uint64(32)) * np.uint64(BLOCKS)) >> np.uint64(32)
    chosen = identities(rows.n, 0, Spec(label="y", score="p", seed=seed).salt("pilot"))
    size = min(PILOT, rows.n // 10)
    pilot = np.argpartition(chosen, size)[:size] if size else np.zeros(0, dtype=np.int64)
    return Dealt(rows, view, residual, block.astype(np.uint8), np.sort(pilot))


def cut_of(dealt: Dealt, name: Any, bins: int, fine: bool) -> Cut:
    """Cut rows along a variable or a pair; `fine` for a grid of ranks that is to be jittered."""
    if isinstance(name, str):
        cell, points, cells, ordered = _cells(dealt, name, bins, fine)
    elif fine or len(name) != 2 or name[0] == name[1]:
        raise BadInput(f"variable={name!r}: pass one covariate, or two different ones without bandwidth")
    else:
        first, second = (_cells(dealt, each, bins, False) for each in name)
        cell, cells, ordered = first[0] * np.int32(second[2]) + second[0], first[2] * second[2], False
        points = cells
        if cells > 1 << 20:
            raise BadInput(f"variable={name!r} has {cells:,} cells: pass fewer bins")
        ordered = first[3] and second[3]
    leaves = _is_cut(dealt, name)
    keep: Any = slice(None)
    if leaves and len(dealt.pilot):
        mask = np.ones(dealt.rows.n, dtype=bool)
        mask[dealt.pilot] = False
        keep = np.flatnonzero(mask)
    rows = RowLedger(dealt.residual[keep], cell[keep], dealt.block[keep], cells, BLOCKS)
    left = len(dealt.pilot) if leaves else 0
    return Cut(ledger_of(rows), ordered, points, cells, "pilot rows" if leaves else "levels", left)


def _is_cut(dealt: Dealt, name: Any) -> bool:
    types = [covariate(dealt.rows, each).type for each in ((name,) if isinstance(name, str) else name)]
    return any(is_number(t) or is_date(t) for t in types)


def _cells(dealt: Dealt, name: str, bins: int, fine: bool) -> tuple[Any, int, int, bool]:
    """Return each row's cell, how many cells values have, how many cells there are, and whether they are in order."""
    column = covariate(dealt.rows, name)
    if not (is_number(column.type) or is_date(column.type)):
        if fine:
            raise NotComputable(f"covariate {name!r} is a category: its levels have no order to jitter along")
        found = along_of(dealt.rows, name, dealt.view)
        return found.cell, found.strata.there, found.strata.size, False
    values = numbers_of(dealt.rows, name)
    seen = values[dealt.pilot]
    seen = np.sort(seen[~np.isnan(seen)])
    if fine:
        cell = _ranks(values, seen, bins)
    else:
        cell = locate(values, _edges(seen, bins))
        bins = len(_edges(seen, bins)) + 1
    return cell, bins, bins + 1, True


def _edges(seen: Any, bins: int) -> Any:
    """Return inner edges from pilot values: a cell for each where they are few."""
    if not len(seen):
        return np.zeros(0)
    distinct = np.unique(seen)
    return distinct[1:] if len(distinct) <= bins else equal_mass_edges(seen, None, bins)


def _ranks(values: Any, seen: Any, points: int) -> Any:
    """Return the cell of each value's middle rank among pilot values; `points` for a missing one."""
    if not len(seen):
        return np.where(np.isnan(values), points, 0).astype(np.int32)
    distinct, first = np.unique(seen, return_index=True)
    after = np.append(first[1:], len(seen))
    # a value between two pilot values ranks between them; one that equals a pilot value ranks in its middle
    at = locate(values, distinct).astype(np.int64)
    below, equal = np.concatenate([[0], after]), np.concatenate([[0], first])
    missing = np.isnan(values)
    at = np.minimum(at, len(distinct))
    hit = (at > 0) & (distinct[np.maximum(at - 1, 0)] == values)
    rank = np.where(hit, 0.5 * (equal[at] + below[at]), below[at]) / len(seen)
    cell = np.minimum((rank * points).astype(np.int64), points - 1)
    return np.where(missing, points, cell).astype(np.int32)
