"""Groups that one threshold for everyone hides: those of whose accepted rows more are wrong than was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.arguments import MASK
from calibrant.data.columns import as_float, is_number
from calibrant.data.layouts import decoded
from calibrant.data.predictions import Predictions
from calibrant.data.profile import FEW, TOP_LEVELS
from calibrant.data.survey import no_attributes
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.decisions import acceptance
from calibrant.stats.decisions.acceptance import ClusterRanking
from calibrant.views.sample import keyed, rows_of_groups


@dataclass(frozen=True)
class Threshold:
    """Which rows of everyone are accepted, and what was asked for."""

    at: float
    highest: bool  # the highest scores are accepted, or the lowest
    risk: float
    alpha: float
    choices: int  # thresholds of clusters, one of which this is

    def passing(self, p: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which scores pass, the threshold's own among them."""
        return p >= self.at if self.highest else p <= self.at


def not_looked_at() -> dict[str, object]:
    """What settings tell where no groups were looked at."""
    return {"columns": (), "left_out": (), "groups": 0, "above_risk": {}, "by": ()}


def above_risk(
    data: Predictions, t: Threshold, clusters: Clusters | None, seed: int, allow: Sequence[str] = ()
) -> dict[str, object]:
    """What settings tell of the groups in the pool: which were looked at, and which are above the risk.

    A group is above it if its own evidence at this threshold is ``G / alpha`` or more, of G groups. The evidence holds
    at all thresholds at once, so that this one may have been chosen by outcomes. Shares of alpha are equal, and not
    Holm's: which groups are within the risk changes from threshold to threshold, and Holm's second step would need one
    set of them. Columns that reproduce the outcome, or follow from the score, are counted and left out, but
    for those of `allow`.
    """
    columns = tuple(_columns(data))
    if not columns:
        return not_looked_at()
    known = tuple(name for name in no_attributes(data, seed, allow) if name in columns)
    groups = {name: (c, r) for c in columns for name, r in _groups(data, c)}
    above = dict[str, dict[str, float | int]]()
    for name, (column, rows) in groups.items():
        if column in known:
            continue
        inside = rows[t.passing(data.p[rows])]
        wrong = int(np.count_nonzero(data.y[inside] == (0 if t.highest else 1)))
        if len(inside) >= MASK and _evidence(rows, inside, wrong, clusters, t) >= np.log(len(groups) / t.alpha):
            above[name] = {"accepted": len(inside), "wrong": wrong, "rate": wrong / len(inside)}
    looked = tuple(c for c in columns if c not in known)
    return {
        "columns": looked,
        "left_out": known,
        "groups": sum(c not in known for c, _ in groups.values()),
        "above_risk": dict(sorted(above.items(), key=lambda g: -g[1]["rate"])),
        "by": tuple(dict.fromkeys(groups[name][0] for name in above)),
    }


def _evidence(
    rows: NDArray[np.intp], inside: NDArray[np.intp], wrong: int, clusters: Clusters | None, t: Threshold
) -> float:
    """The log e-value against "at most `risk` of the group's accepted rows are wrong", at every threshold."""
    if clusters is None:
        return float(acceptance.log_evidence_above(len(inside), wrong, t.risk))
    ranked = ClusterRanking.of(clusters.of_rows(rows), t.highest)
    return ranked.log_evidence_above(t.at, t.risk) - float(np.log(t.choices))


def _groups(data: Predictions, column: str) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Yield the groups of a column that are large enough to be shown."""
    return ((keyed(g), rows) for g, rows in rows_of_groups(data, (column,)) if len(rows) >= MASK)


def _columns(data: Predictions) -> Iterator[str]:
    """Yield the covariates that name groups: texts and truth values of few levels, and numbers of few values."""
    table = pa.table({}) if data.covariates is None else data.covariates
    for name in dict.fromkeys(table.column_names):
        t = table.schema.field(name).type
        t = t.value_type if pa.types.is_dictionary(t) else t
        texts = pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_boolean(t)
        if texts or is_number(t):
            levels = pc.unique(decoded(table.column(name), name)).drop_null()
            finite = texts or bool(np.isfinite(as_float(levels, name, "covariate")).all())
            if 1 < len(levels) <= (TOP_LEVELS if texts else FEW) and finite:
                yield name
