"""What a terminal shows of plans: rows for certificates, measures and the subgroup test; what a log can decide."""

from __future__ import annotations

import math
from collections.abc import Sequence

from calibrant.report import numbers as num
from calibrant.report import terminal
from calibrant.report.numbers import in_percent
from calibrant.report.terminal import aligned, clip, wrap
from calibrant.results import Curve, Estimate
from calibrant.sanitize import sanitize

NO_CERTIFICATE = "A plan, not a certificate."
WAYS = {"observed_expected": "observed / expected", "calibration_slope": "calibration slope", "auroc": "AUROC"}


def certificate(result: Sequence[Estimate]) -> str:
    """Say how many rows a certificate takes."""
    return terminal.plan(result[0])


def measures(result: Sequence[Estimate]) -> str:
    """Say how many rows each interval takes, and all of them."""
    (one,) = result
    s = one.settings
    rows = [
        ("", "interval", "rows", "events"),
        *(
            (WAYS[name], f"{s['widths'][name]:g} wide", num.count(n), num.count(s["events"][name]))
            for name, n in s["rows"].items()
        ),
    ]
    return "\n".join((
        f"{num.count(int(one.value))} rows for {'all of these intervals' if len(rows) > 2 else 'this interval'}.",
        "",
        *aligned(rows),
        "",
        f"Level {one.interval.level:g}; {one.assumes}; {in_percent(s['rate'])}% events, "
        f"AUROC {s['expected_auroc']:.3g}. {NO_CERTIFICATE}",
    ))  # fmt: skip


def subgroups(result: Sequence[Estimate]) -> str:
    """Say which errors are detected, or how many rows an error takes."""
    first = result[0]
    s, of_rows = first.settings, first.method == "detect.rows_needed"
    table = [("subgroup", "rows" if of_rows else "smallest error", "simulated power")]
    for one in result:
        none = f"over {num.count(10**9)}" if of_rows else "none"
        shown = num.count(math.ceil(one.value)) if of_rows else f"{100 * one.value:.1f} points"
        power = f"{100 * one.settings['simulated_power']:.1f}% ± {100 * one.settings['simulation_error']:.1f}"
        share = f"{in_percent(one.settings['share'])}% of rows"
        table.append((share, shown if math.isfinite(one.value) else none, power))
    power = f"with probability {in_percent(s['power'])}%"
    stated = (
        f"The subgroup test detects an error of {100 * s['error']:g} points {power} from so many rows on"
        if of_rows
        else f"{num.count(int(s['rows']))} rows: the subgroup test detects these errors {power}"
    )
    attributes = "one attribute" if s["order"] == 1 else "two attributes"
    return "\n".join((
        f"{stated}.",
        "",
        *aligned(table),
        "",
        f"Level {1 - s['alpha']:g}; a subgroup of {attributes} in which more happens than the scores say; "
        f"{first.assumes}. ±: one standard error of the simulation.\n{NO_CERTIFICATE}",
    ))  # fmt: skip


def counts_of(plan: Curve) -> list[str]:
    """What a plan counts of everyone and each group: rows, and clusters where rows share some."""
    return [k for k in ("rows", "clusters") if plan.columns[k][0] is not None]


def decidable(results: Sequence[Curve]) -> str:
    """What so many rows can decide, a line for everyone and each group."""
    (result,) = results
    s, c, limit = result.settings, result.columns, result.settings["limit"]
    over = "gap shown" if limit is None else f"gap over {num.limit_points(limit)}"
    counts = counts_of(result)
    heads = ["", *counts, "gap within", "alone", over]
    heads += ["error within", *([f"chance within {num.limit_points(limit)}"] if limit is not None else [])]
    rows: list[Sequence[str]] = [heads]
    for i, name in enumerate(c["group"]):
        row = [clip(sanitize(name), 28), *(num.count(c[k][i]) for k in counts)]
        ends = [c[k][i] for k in ("gap_within", "gap_within_alone", "gap_over", "error_within")]
        row += ["none" if end >= 1.0 else num.upper_bound(end, limit) for end in ends]
        row += [f"{100 * c['power_within'][i]:.0f}%"] if limit is not None else []
        rows.append(row)
    level, shown = f"{100 * s['power']:g}%", "as real" if limit is None else f"to be over {num.limit_points(limit)}"
    notes = [
        f"In points. Within: the limit that a gap, or an error of {s['error']}, is certified to keep with probability "
        f"{level} if scores are right (alone: if no other group were judged).",
        f"{over.capitalize()}: the gap, of more events than expected, that is certified {shown} with that probability.",
        f"The {level} is simulated from {s['draws']} drawn sets: true to about {100 * s['simulation_error']:.1f} "
        "percentage points. No label was compared with a score.",
    ]
    if limit is not None and len(c["group"]) > 1:
        met = sum(v <= limit for v in c["gap_within"][1:])
        alone = sum(v <= limit for v in c["gap_within_alone"][1:])
        notes.append(
            f"Of {num.count(len(c['group']) - 1)} groups {num.count(met)} can be shown to be within "
            f"{num.limit_points(limit)} points together; {num.count(alone)} if each were judged alone."
        )
    if "clusters" in counts:
        notes.append("Rows of one cluster are taken to be no more alike than their scores say: else it takes more.")
    notes.append(NO_CERTIFICATE)
    return "\n".join([*aligned(rows), "", *(line for note in notes for line in wrap(note))])
