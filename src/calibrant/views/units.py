"""From rows with clusters or weights to what certificates read of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import Asker, shown
from calibrant.data.given import ALL_AS_ONE, UnitsCross
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sketches.units import rows_of_units, unit_ids
from calibrant.errors import NotComputable
from calibrant.stats.units.crossed import Design, Shifted
from calibrant.stats.units.units import Units

UNPROVED = (
    "this is proved for independent rows of equal weight: with cluster= or weights= use certify.rounded, values, "
    "raw_lower, distance, groups, worst_group, variable or subgroups"
)
ALONE = "rows alone"


def units_of(given: Predictions | Sketch, seed: int) -> Units | None:
    """Return the clusters of rows, or those that a sketch holds; None where rows are independent and count alike.

    Whether a cluster is a pilot, and its block, hashes of the values of `cluster` decide (`unit_ids`), whatever the
    order of rows and the same from rows and from a sketch; without `cluster` a row is a cluster, known by its number.

    Raises
    ------
    UnitsCross
        Columns of clusters cross: see `crossed_of`.
    """
    if isinstance(given, Sketch) and not given.by_units:
        return None
    data = rows_of_units(given)
    if data.crossing is not None:
        raise UnitsCross(ALL_AS_ONE.format(*data.crossing.names))
    if data.weights is None and data.cluster is None:
        return None
    if ("units", seed) not in data.cache:
        if data.cluster is not None and not (data.cluster != data.cluster[0]).any():
            raise one_unit(given)
        data.cache["units", seed] = _dealt(data, seed)
    return data.cache["units", seed]  # type: ignore[no-any-return]


def crossed_of(given: Predictions | Sketch, seed: int) -> tuple[Shifted, ...]:
    """Return the blocks of each shift where columns of clusters cross; nothing where they do not."""
    if isinstance(given, Sketch):
        return () if given.crossed is None else crossed_of(given.crossed, seed)
    if given.crossing is None:
        return ()
    if ("crossed", seed) not in given.cache:
        codes = given.crossing.codes.astype(np.int64)
        given.cache["crossed", seed] = tuple(
            replace(each, units=replace(each.units, columns=given.crossing.names))
            for each in Design(codes, seed).shifted(given.p, given.y, given.weights)
        )
    return given.cache["crossed", seed]  # type: ignore[no-any-return]


def one_unit(given: Predictions | Sketch, asker: Asker | None = None) -> NotComputable:
    """Say that all rows are one cluster, by which column and which value as far as they are known, and the way out."""
    says = "cluster= (--cluster)" if asker is None else asker.says("cluster")
    if isinstance(given, Sketch):
        column, value = f"column {given.spec.cluster!r}", given.faults.unit
    else:
        column = f"column {given.levels[0][0]!r}" if given.levels else says.split(" ")[0]
        known = None if given.unit_ids is not None else given.cluster  # otherwise units are named by hash
        value = "" if known is None else shown(pa.array(known[:1])[0].as_py())
    held = f"is {value} in every row" if value else "takes one value"
    return NotComputable(
        f"{column} {held}: all rows are one cluster, and nothing independent separates its noise from an error; name "
        f"in {says} a column that distinguishes clusters, or leave it out if rows are independent"
    )


def _dealt(data: Predictions, seed: int) -> Units | None:
    """Choose pilot clusters and deal the others; None where every row is a cluster and counts as much as any other."""
    ids = unit_ids(data, seed)
    unit: NDArray[np.int64] = np.arange(data.n)
    if data.cluster is not None:
        ids, unit = np.unique(ids, return_inverse=True)
    if len(ids) == data.n and (data.weights is None or bool((data.weights == data.weights[0]).all())):
        return None
    found = Units.dealt(unit.reshape(-1), data.p, data.y, data.weights, ids)
    return replace(found, columns=tuple(name for name, _ in data.levels)) if data.levels else found


def alone(data: Predictions) -> Predictions:
    """Return the rows without clusters and weights: what is counted and shown, not what is certified."""
    if data.weights is None and data.cluster is None:
        return data
    if ALONE not in data.cache:
        data.cache[ALONE] = replace(data, weights=None, cluster=None, unit_ids=None, crossing=None, cache={})
    return data.cache[ALONE]  # type: ignore[no-any-return]


def assumed(units: Units) -> str:
    """Say what certificates of clusters take for granted."""
    parts = ["independent rows"]
    if len(units.unit) > units.count:
        parts = ["independent clusters", "rows of one cluster as dependent as they like"]
    if bool((units.given != units.given[0]).any()):
        parts.append("weights that do not depend on outcomes")
    return ", ".join(parts)


def assumed_of_crossed(shifts: Sequence[Units]) -> str:
    """Say what certificates of clusters that cross take for granted."""
    first, second = shifts[0].columns
    return (
        f"independent clusters of {first} and of {second}: rows that share neither are independent; which rows there "
        "are, and what they weigh, does not depend on scores and outcomes"
    )


def told_of_crossed(shifts: Sequence[Units]) -> dict[str, object]:
    """Return what the settings of a result tell of clusters that cross: blocks are of the mean shift."""
    return {
        "crossed": shifts[0].columns,
        "shifts": len(shifts),
        "blocks": round(sum(u.count for u in shifts) / len(shifts)),
        "effective_blocks": sum(u.effective for u in shifts) / len(shifts),
        "largest_block": max(u.largest for u in shifts),
    }


def told(units: Units) -> dict[str, object]:
    """Return what the settings of a result tell of clusters."""
    return named(units.columns) | {
        "units": units.count,
        "effective_units": units.effective,
        "pilot_units": units.pilots,
        "largest_unit": units.largest,
        "lightened_units": units.lightened,
    }


def named(columns: Sequence[str]) -> dict[str, object]:
    """Return what settings tell of columns that named clusters, the coarsest first; nothing unless they are several."""
    return {"unit": columns[0], "nested": tuple(columns[1:])} if columns else {}


@dataclass(frozen=True)
class Members:
    """Which group of each grouping every row is in.

    Parameters
    ----------
    group : int array of shape (groupings, n)
        Numbers of a sketch's groups.
    """

    group: NDArray[np.int64]

    @classmethod
    def of(cls, data: Predictions | Sketch, whole: Sketch) -> Members:
        """Return them of the rows that a sketch with groups was made of, or of those that it holds itself."""
        spec = whole.spec
        data = data.crossed if isinstance(data, Sketch) and data.crossed is not None else data
        if isinstance(data, Sketch):
            bases, held = np.cumsum([0, *spec.sizes]), whole.parts["sample"]
            return cls(np.array([held.levels(i) + bases[i] for i in range(len(spec.groupings))]))
        return cls.of_rows(data.covariates, data.n, whole)

    @classmethod
    def of_rows(cls, table: pa.Table, n: int, whole: Sketch) -> Members:
        """Return them of n rows with these covariates."""
        spec = whole.spec
        codes: dict[str, NDArray[Any]] = {v.name: v.codes(table.column(v.name)) for v in spec.variables}
        out, start = np.empty((len(spec.groupings), n), dtype=np.int64), 0
        for i, (names, size) in enumerate(zip(spec.groupings, spec.sizes, strict=True)):
            out[i] = codes[names[0]]
            for name in names[1:]:
                out[i] = out[i] * len(spec.by_name[name].labels) + codes[name]
            out[i], start = out[i] + start, start + size
        return cls(out)

    def rows(self, groups: Sequence[int]) -> NDArray[np.bool_]:
        """Return which rows are in one of the groups."""
        return np.asarray(np.isin(self.group, list(groups)).any(axis=0))
