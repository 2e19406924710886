"""What was read as what, and what its reader should know: the part of a record that is about the data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import OTHERS
from calibrant.audit.context import AuditContext
from calibrant.audit.pooling import MASK, pool_levels
from calibrant.audit.rounding import two_digits
from calibrant.data.columns import FEW
from calibrant.data.predictions import MulticlassPredictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.column_names import POINTS, names_percent, names_weights, of_column
from calibrant.data.specs.spec import Spec
from calibrant.data.survey import LEAKED, ONE_VALUE, REPEATED
from calibrant.kernels.tally import CELL_BITS, SCORE_BITS

EPOCH = date(1970, 1, 1)
FULL = 10  # times as many rows in the first or last cell as in most: dates beyond are counted there
LEAST_DAYS, DAYS_A_YEAR = 7, 365.25  # in a few days rows may arrive at another rate than in a year
FILES = 20  # named in a record
FINEST = 0.01  # step in which a share of missing values is reported
IDENTIFIER = "identifier"  # in the reason why a column is left out
RENAME = "rename"  # in the reason why a column was not read: its name is the fault
LEAST_CELL, LEAST_SPREAD, FOLLOWS = 10, 0.002 * 2**16, 0.99  # rows of a cell; deviation; share of the score's variance
ONE_PER_CENT = -(-(2**14) // 100)  # the first cell of scores that are all above 0.01
WHOLE = 1e-6  # how far scores that are held as whole multiples of 2**-30 may be from whole percent
STEPS = 2**14  # cells of the score: scores of 0 and 1 only are in the first and the last


def inputs(context: AuditContext) -> dict[str, Any]:
    """What a record holds of the data: names, counts and kinds, no row."""
    sketch, crossing, fewest = context.sketch, context.people.columns, context.fewest_rows
    spec = sketch.spec
    results: dict[str, Any] = {
        "label": spec.label,
        "score": spec.score,
        "positive": spec.positive,
        "percent": spec.percent,
        "missing": spec.missing,
        "by": tuple(tuple(g) for g in spec.groupings),
        "key": tuple(spec.key),
        "cluster": spec.cluster or None,
        "nested": dict(sketch.nested[1:]),
        "weights": spec.weights or None,
        "rows": sketch.n,
        "events": sketch.events,
        "dropped": sketch.dropped,
        "dropped_for": sketch.dropped_for,
        "unlabelled": None if 0 < context.unlabelled < context.mask else sketch.unlabelled,
        "covariates": tuple(c.name for c in spec.codings),
        "left_out": tuple(tuple(v) for v in spec.left_out),
        "columns": columns(sketch, tuple(crossing), fewest),
        "repeats": context.repeats.to_dict(),
        "fingerprint": sketch.fingerprint,
        "files": tuple(sketch.files[:FILES]),
        "file_count": len(sketch.files),
        "variables": {v.name: {"kind": v.kind, "edges": tuple(v.edges), "folded": v.folded} for v in spec.variables},
        "repeats_score": (reported := repeats_score(sketch)),
        "warnings": (*warnings(sketch, context.repeats.copied), *(("repeats-score",) if reported else ())),
    }
    results |= {"noun": sketch.log.noun} if sketch.log.noun else {}
    results |= {"unfinished": sketch.log.unfinished} if sketch.log.unfinished else {}
    results |= {"in_question": tuple(tuple(v) for v in spec.in_question)} if spec.in_question else {}
    results |= {"excluded": sketch.log.excluded} if sketch.log.excluded else {}
    results |= {"seen_events": dict(sketch.log.seen_events)} if sketch.log.seen_events else {}
    if sketch.log.horizon:
        results["horizon"] = dict(sketch.log.horizon)
        results["kept_and_late"] = tuple(tuple(one) for one in sketch.log.compared)
    return results | _others(sketch, fewest) | confidence(sketch) | ({"two_way": crossing} if crossing else {})


def rest(rows: MulticlassPredictions) -> dict[str, object]:
    """The mean probability of what rows do not list."""
    return {"rest_mass": float(np.average(rows.p[:, -1], weights=rows.weights))}


def _others(sketch: Sketch, fewest: int) -> dict[str, object]:
    """The most frequent of the label's values that count as a non-event, where there are several, and how many.

    Small counts are nobody's business, and do not order values either; with them go the next smallest, or the
    non-events less all others would tell them.
    """
    kept = sketch.no_event
    if len(kept) <= 1:
        return {}
    if len(kept) > OTHERS:  # which are the most frequent is not known
        return {"other_labels": {}, "other_label_count": None}
    shown = {group[0] for group in pool_levels(tuple(kept.values()), fewest) if len(group) == 1}
    reported = {v: n if i in shown else None for i, (v, n) in enumerate(kept.items())}
    most = sorted(reported.items(), key=lambda pair: (-(pair[1] or 0), pair[0]))[:FEW]
    return {"other_labels": dict(most), "other_label_count": len(kept)}


def confidence(sketch: Sketch) -> dict[str, object]:
    """Where the confidence that is audited comes from, as its column's name and its log say; else nothing."""
    score = sketch.spec.score
    if not (provenance := of_column(score)):
        return {}
    return {
        "confidence": {
            "provenance": provenance,
            "tool": sketch.log.tool or None,
            "field": dict(sketch.log.confidences).get(score),
        }
    }


def repeats_score(sketch: Sketch) -> tuple[str, ...]:
    """The covariates from which the score, or its side of one half, can be known: its complement, a decision.

    Along such a column the error is the score's own. By the sums in the cells along each covariate, neighbours joined
    until they hold ten rows: at least 99% of the score's variance lies between them (the share is corrected for the
    cells that chance would need, and reported for scores whose standard deviation is above 0.002), or two values part
    the scores at one half. Rows in small numbers are not reported.
    """
    fine = sketch.parts.get("fine")
    return tuple(name for name, kept in (fine.stored if fine else {}).items() if _reports(kept))


def _reports(values: NDArray[np.int64]) -> bool:
    """Whether one covariate's cells tell the score."""
    rows = values[..., 0].sum(axis=2)  # by cell and side of the score
    sides = rows[rows.sum(axis=1) > 0]
    if len(sides) == 2 and ((sides == 0).sum(axis=0) == 1).all() and sides.max(axis=1).min() >= LEAST_CELL:
        return True
    # 1. Rows, score sums and squares (in 16 bits) of every cell, neighbours joined until they hold enough rows.
    n, s = rows.sum(axis=1).astype(float), values[..., 1].sum(axis=(1, 2)) / 2.0**14
    total, before = n.sum(), np.concatenate([[0.0], n.cumsum()[:-1]])
    joined = np.unique(np.floor(before / LEAST_CELL)[n > 0], return_inverse=True)[1]
    many = np.bincount(joined, n[n > 0])
    if total - len(many) < LEAST_CELL * LEAST_CELL or len(many) < 3:
        return False
    # 2. Shares of variance: epsilon squared is the correlation ratio less what as many cells share by chance.
    mean = np.bincount(joined, s[n > 0]) / many
    whole = values[..., 2].sum() / total - (s.sum() / total - 0.5) ** 2  # squares are of scores rounded down, by 0.5
    within = whole - (many @ mean**2 / total - (s.sum() / total) ** 2)
    return bool(whole > LEAST_SPREAD**2 and within * total / (total - len(many)) <= (1.0 - FOLLOWS) * whole)


def arrival(sketch: Sketch, fewest: int = MASK) -> dict[str, Any] | None:
    """From when to when rows arrived, and how many a year, where exactly one covariate is a date; else None.

    So many rows at either end (`fewest`) are left out, that the first and the last day are nobody's own, and that a
    date mistyped does not stretch the years. Dates outside the range that a sketch first saw count in its end cells:
    where one is so much fuller than the others, nothing is reported.
    """
    dates = [c for c in sketch.spec.codings if c.kind == "date"]
    if len(dates) != 1:
        return None
    (when,) = dates
    rows = sketch.parts["fine"].stored[when.name][:-1, ..., 0].sum(axis=(1, 2))  # the last cell is of missing dates
    starts = [math.floor(v) for v in when.cells[:-1]]
    if int(rows.sum()) < 2 * fewest or max(rows[0], rows[-1]) > fewest + FULL * np.median(rows[rows > 0]):
        return None
    first, last = (int((side.cumsum() >= fewest).argmax()) for side in (rows, rows[::-1]))
    last = len(rows) - 1 - last
    between = int(rows[first : last + 1].sum())
    days = starts[last] - starts[first] + 1
    if last <= first or days < LEAST_DAYS:
        return None
    reported = [(EPOCH + timedelta(days=starts[i])).isoformat() for i in (first, last)]
    a_year = two_digits(between / days * DAYS_A_YEAR)
    return {"column": when.name, "first": reported[0], "last": reported[1], "rows_a_year": a_year}


def columns(sketch: Sketch, crossing: tuple[str, ...], fewest: int) -> dict[str, dict[str, Any]]:
    """What each column was interpreted as, what it was used as, and the share of rows in which it is missing.

    Shares are rounded up to steps of at least so many rows, so that no small group can be identified from them.
    """
    spec, absent, nested = sketch.spec, _absent(sketch), [name for name, _ in sketch.nested[1:]]
    kinds = {c.name: str(c.kind) for c in spec.codings}
    kinds |= {v.name: "date" if v.kind not in ("category", "number") else v.kind for v in spec.variables}
    step = max(FINEST, fewest / sketch.n)
    results: dict[str, dict[str, Any]] = {
        spec.label: {"kind": "label", "used": "label", "missing": None},
        spec.score: {"kind": "score", "used": "score", "missing": None},
    }
    for name in spec.key:
        results[name] = {"kind": "id", "used": "key", "missing": None}
    clusters = crossing or (spec.cluster, *nested)
    for name, used in (*((c, "cluster") for c in clusters), (spec.weights, "weights")):
        if name:
            results.setdefault(name, {"kind": "number" if used == "weights" else "id", "used": used, "missing": None})
    for name, kind in kinds.items():
        share = min(math.ceil(absent.get(name, 0) / sketch.n / step - 1e-9) * step, 1.0)
        results[name] = {
            "kind": kind,
            "used": "group" if name in spec.by_name else "covariate",
            "missing": round(share, 6),
        }
    for name, why in spec.left_out:
        kind = "id" if IDENTIFIER in why else "constant" if why == ONE_VALUE or "empty" in why else "unusable"
        results.setdefault(name, {"kind": kind, "used": "left out", "missing": None})
    return results


def _absent(sketch: Sketch) -> dict[str, int]:
    """The rows in which a group column or a covariate is missing."""
    result, first = {}, 0
    for names, size in zip(sketch.spec.groupings, sketch.spec.sizes, strict=True):
        if len(names) == 1:
            result[names[0]] = int(sketch.group_levels[first + size - 1].sum())
        first += size
    fine = sketch.parts.get("fine")
    return {name: int(kept[-1, ..., 0].sum()) for name, kept in (fine.stored if fine else {}).items()} | result


def _of_columns(spec: Spec) -> Iterator[str]:
    """Yield the codes of what to know of columns in addition to label and score."""
    if any(why.startswith(LEAKED) for _, why in spec.left_out):
        yield "reproduces-outcome"
    if spec.in_question:
        yield "may-reproduce-outcome"
    if any(why == REPEATED for _, why in spec.left_out):
        yield "follows-from-score"
    if any(RENAME in why for _, why in spec.left_out):
        yield "columns-not-read"
    if not spec.weights and any(c.kind == "number" and names_weights(c.name) == "design" for c in spec.codings):
        yield "weights-not-used"
    if any(IDENTIFIER in why for _, why in spec.left_out):
        yield "likely-id"


def _whole_and_low(sketch: Sketch) -> bool:
    """Whether all scores, as percent, are whole numbers that end below 90: points, ranks or deciles may be."""
    counts = sketch.cells.sum(axis=0)
    rows = counts[:, :2].sum(axis=1)
    there = rows.nonzero()[0]
    within = counts[there, 2:4].sum(axis=1) / rows[there]
    percent = 100.0 * ((there << (SCORE_BITS - CELL_BITS)) + within) / (1 << SCORE_BITS)
    return bool(len(there) > 1 and np.rint(percent[-1]) < POINTS and (np.abs(percent - np.rint(percent)) < WHOLE).all())


def warnings(sketch: Sketch, copied: bool) -> Iterator[str]:
    """Yield the codes of what the reader should know."""
    if sketch.events in (0, sketch.n):
        yield "one-class"
    if len(sketch.no_event) > 1:
        yield "other-labels"
    if sketch.spec.percent and 2 * int(sketch.cells[:, ONE_PER_CENT:, :2].sum()) < sketch.n:
        yield "mostly-under-1-percent"
    if sketch.spec.percent and not names_percent(sketch.spec.score) and _whole_and_low(sketch):
        yield "perhaps-points"
    if copied:
        yield "repeated-rows"
    of_log = {
        "unfinished-log": sketch.log.unfinished,
        "fitted-rows": sketch.log.excluded,
        "horizon": sketch.log.horizon,
        "perhaps-seen-events": sketch.log.seen_events,
    }
    yield from (code for code, there in of_log.items() if there)
    yield from _of_columns(sketch.spec)
    rows = sketch.cells[..., :2].sum(axis=(0, 2))
    there = rows.nonzero()[0]
    if set(there.tolist()) <= {0, STEPS - 1}:
        yield "scores-are-decisions"
    elif len(there) == 1:
        yield "one-score"
