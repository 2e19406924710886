"""What a terminal shows of plans: rows for certificates, for measures and for the subgroup test."""

from __future__ import annotations

import math
from collections.abc import Sequence

from calibrant.report import numbers as num
from calibrant.report import terminal
from calibrant.report.terminal import aligned
from calibrant.results import Estimate

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
        f"Level {one.interval.level:g}; {one.assumes}; {_percent(s['rate'])}% events, AUROC {s['expected_auroc']:.3g}. "
        f"{NO_CERTIFICATE}",
    ))  # fmt: skip


def subgroups(result: Sequence[Estimate]) -> str:
    """Say which errors are detected, or how many rows an error takes."""
    first = result[0]
    s, of_rows = first.settings, first.method == "detect.rows_needed"
    table = [("subgroup", "rows" if of_rows else "smallest error")]
    for one in result:
        none = f"over {num.count(10**9)}" if of_rows else "none"
        shown = num.count(math.ceil(one.value)) if of_rows else f"{100 * one.value:.1f} points"
        table.append((f"{_percent(one.settings['share'])}% of rows", shown if math.isfinite(one.value) else none))
    power = f"with probability {_percent(s['power'])}%"
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
        f"{first.assumes}.\n{NO_CERTIFICATE}",
    ))  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.3g}"
