"""What each kind of curve is drawn as: `charts` draws it with Altair (`Curve.chart`), `plots` with Matplotlib.

`marks` holds what a picture is made of, `curves` the lines and maps, `tables` bars and ranges under each other. The
page's own pictures (`report/svg.py`) are others: smaller, and next to words.
"""

from __future__ import annotations

from collections.abc import Callable

from calibrant.errors import NotComputable
from calibrant.report.figures import curves, tables
from calibrant.report.figures.marks import Figure
from calibrant.results import Curve

FIGURES: dict[str, Callable[[Curve], Figure]] = {
    **dict.fromkeys(tables.RANGES, tables.ranges),
    **dict.fromkeys(tables.INFERRED, tables.inferred),
    "detect.kernel_tuning": curves.kernel_tuning,
    "diagnose.acceptance_curve": curves.acceptance_curve,
    "diagnose.control_chart": curves.control_chart,
    "diagnose.decision_curve": curves.decision_curve,
    "diagnose.heterogeneity": tables.heterogeneity,
    "diagnose.importance": tables.importance,
    "diagnose.local_bias": curves.local_bias,
    "diagnose.rank_variables": tables.ranking,
    "diagnose.reliability_curve": curves.reliability,
    "diagnose.subgroup_map": tables.subgroup_map,
    "diagnose.subgroups": tables.subgroups,
    "diagnose.subgroups.searched": tables.searched_subgroups,
    "diagnose.variable_curve": curves.variable,
    "papers.calibration_function": curves.calibration_function,
    "papers.reliability_diagram": curves.calibration_function,
    "reliability": curves.bins,
}


def figure(curve: Curve) -> Figure:
    """What a curve is drawn as; `NotComputable` where nothing can be drawn."""
    make = FIGURES.get(curve.method)
    if make is None:
        raise NotComputable(f"there is no picture of {curve.method}, a table: use to_frame()")
    if not next(iter(curve.columns.values()), ()):
        raise NotComputable(f"the curve is empty: {curve.settings.get('reason') or 'there is nothing to draw'}")
    return make(curve)
