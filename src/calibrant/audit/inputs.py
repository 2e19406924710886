"""What was read as what, and what its reader should know: the part of a record that is about the data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import numpy as np

from calibrant.audit.pooling import MASK
from calibrant.audit.rounding import two_digits
from calibrant.data.sketches.repeats import Repeats
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sources.logs.provenance import of_column
from calibrant.data.survey import ONE_VALUE

EPOCH = date(1970, 1, 1)
FULL = 10  # times as many rows in the first or last cell as in most: dates beyond are counted there
LEAST_DAYS, DAYS_A_YEAR = 7, 365.25  # in a few days rows may arrive at another rate than in a year
FILES = 20  # named in a record
FINEST = 0.01  # step in which a share of missing values is told
IDENTIFIER = "identifier"  # in the reason why a column is left out
STEPS = 2**14  # cells of the score: scores of 0 and 1 only are in the first and the last


def inputs(whole: Sketch, repeats: Repeats, mask: int = MASK) -> dict[str, Any]:
    """Return what a record holds of the data: names, counts and kinds, no row."""
    spec = whole.spec
    return {
        "label": spec.label,
        "score": spec.score,
        "positive": spec.positive,
        "percent": spec.percent,
        "missing": spec.missing,
        "by": tuple(tuple(g) for g in spec.groupings),
        "key": tuple(spec.key),
        "cluster": spec.cluster or None,
        "nested": dict(whole.nested[1:]),
        "weights": spec.weights or None,
        "rows": whole.n,
        "cases": whole.cases,
        "dropped": whole.dropped,
        "unlabelled": None if 0 < whole.unlabelled < mask else whole.unlabelled,
        "covariates": tuple(c.name for c in spec.codings),
        "left_out": tuple(tuple(v) for v in spec.left_out),
        "columns": columns(whole, mask),
        "repeats": repeats.to_dict(),
        "fingerprint": whole.fingerprint,
        "files": tuple(whole.files[:FILES]),
        "file_count": len(whole.files),
        "variables": {v.name: {"kind": v.kind, "edges": tuple(v.edges), "folded": v.folded} for v in spec.variables},
        "warnings": tuple(warnings(whole, repeats.copied)),
    } | confidence(whole)


def confidence(whole: Sketch) -> dict[str, object]:
    """Return where the confidence that is audited comes from, as its column's name and its log say; else nothing."""
    score = whole.spec.score
    if not (provenance := of_column(score)):
        return {}
    return {
        "confidence": {
            "provenance": provenance,
            "tool": whole.log.tool or None,
            "field": dict(whole.log.confidences).get(score),
        }
    }


def arrival(whole: Sketch, mask: int = MASK) -> dict[str, Any] | None:
    """Return from when to when rows arrived, and how many a year, where exactly one covariate is a date; else None.

    So many rows at either end are left out, that the first and the last day are nobody's own, and that a date mistyped
    does not stretch the years. Dates outside the range that a sketch first saw count in its end cells: where one is so
    much fuller than the others, nothing is told.
    """
    dates = [c for c in whole.spec.codings if c.kind == "date"]
    if len(dates) != 1:
        return None
    (when,) = dates
    rows = whole.parts["fine"].held[when.name][:-1, ..., 0].sum(axis=(1, 2))  # the last cell is of missing dates
    starts = [math.floor(v) for v in when.cells[:-1]]
    if int(rows.sum()) < 2 * mask or max(rows[0], rows[-1]) > mask + FULL * np.median(rows[rows > 0]):
        return None
    first, last = (int((side.cumsum() >= mask).argmax()) for side in (rows, rows[::-1]))
    last = len(rows) - 1 - last
    between = int(rows[first : last + 1].sum())
    days = starts[last] - starts[first] + 1
    if last <= first or days < LEAST_DAYS:
        return None
    told = [(EPOCH + timedelta(days=starts[i])).isoformat() for i in (first, last)]
    a_year = two_digits(between / days * DAYS_A_YEAR)
    return {"column": when.name, "first": told[0], "last": told[1], "rows_a_year": a_year}


def columns(whole: Sketch, mask: int) -> dict[str, dict[str, Any]]:
    """Return what each column was taken for, what it was used as, and the share of rows in which it is missing.

    Shares are rounded up to steps of at least `mask` people, so that no small group can be told from them.
    """
    spec, absent, nested = whole.spec, _absent(whole), [name for name, _ in whole.nested[1:]]
    kinds = {c.name: str(c.kind) for c in spec.codings}
    kinds |= {v.name: "date" if v.kind not in ("category", "number") else v.kind for v in spec.variables}
    step = max(FINEST, mask / whole.n)
    found: dict[str, dict[str, Any]] = {
        spec.label: {"kind": "label", "used": "label", "missing": None},
        spec.score: {"kind": "score", "used": "score", "missing": None},
    }
    for name in spec.key:
        found[name] = {"kind": "id", "used": "key", "missing": None}
    for name, used in (*((c, "cluster") for c in (spec.cluster, *nested)), (spec.weights, "weights")):
        if name:
            found.setdefault(name, {"kind": "number" if used == "weights" else "id", "used": used, "missing": None})
    for name, kind in kinds.items():
        share = min(math.ceil(absent.get(name, 0) / whole.n / step - 1e-9) * step, 1.0)
        found[name] = {
            "kind": kind,
            "used": "group" if name in spec.by_name else "covariate",
            "missing": round(share, 6),
        }
    for name, why in spec.left_out:
        kind = "id" if IDENTIFIER in why else "constant" if why == ONE_VALUE or "empty" in why else "unusable"
        found.setdefault(name, {"kind": kind, "used": "left out", "missing": None})
    return found


def _absent(whole: Sketch) -> dict[str, int]:
    """Return the rows in which a group column or a covariate is missing."""
    found, first = {}, 0
    for names, size in zip(whole.spec.groupings, whole.spec.sizes, strict=True):
        if len(names) == 1:
            found[names[0]] = int(whole.group_levels[first + size - 1].sum())
        first += size
    fine = whole.parts.get("fine")
    return {name: int(held[-1, ..., 0].sum()) for name, held in (fine.held if fine else {}).items()} | found


def warnings(whole: Sketch, copied: bool) -> Iterator[str]:
    """Yield the codes of what the reader should know."""
    if whole.cases in (0, whole.n):
        yield "one-class"
    if copied:
        yield "repeated-rows"
    if any(IDENTIFIER in why for _, why in whole.spec.left_out):
        yield "likely-id"
    rows = whole.cells[..., :2].sum(axis=(0, 2))
    there = rows.nonzero()[0]
    if set(there.tolist()) <= {0, STEPS - 1}:
        yield "scores-are-decisions"
    elif len(there) == 1:
        yield "one-score"
