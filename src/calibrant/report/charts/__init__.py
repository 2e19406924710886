"""Interactive charts of curves for notebooks, with tooltips in the user's units; `Curve.chart` loads this folder.

`parts` holds what all are made of, `curves` draws lines with bands, `tables` bars, rules and the control chart,
`subgroups` a few subgroups and the map of a pair of attributes, `sites` the caterpillar plot of sites, `decisions` what
acting above a threshold is worth and how much may be accepted.
"""

from __future__ import annotations

from collections.abc import Callable

from calibrant.errors import NotComputable
from calibrant.report.charts import curves, tables
from calibrant.report.charts.parts import Drawn, dressed
from calibrant.results import Curve


def chart(curve: Curve) -> Drawn:
    """A curve as an interactive Altair chart; `NotComputable` where nothing can be drawn."""
    make = CHARTS.get(curve.method)
    if make is None:
        raise NotComputable(f"there is no chart for {curve.method}: use to_frame()")
    if not next(iter(curve.columns.values()), ()):
        raise NotComputable("the curve is empty: there is nothing to draw")
    return dressed(make(curve))


CHARTS: dict[str, Callable[[Curve], Drawn]] = {
    "detect.kernel_tuning": curves.kernel_tuning,
    "diagnose.acceptance_curve": tables.acceptance_curve,
    "papers.calibration_function": curves.calibration_function,
    "papers.reliability_diagram": curves.calibration_function,
    "diagnose.control_chart": tables.control_chart,
    "diagnose.decision_curve": tables.decision_curve,
    "diagnose.heterogeneity": tables.heterogeneity,
    "diagnose.importance": tables.importance,
    "diagnose.local_bias": curves.local_bias,
    "diagnose.subgroup_map": tables.subgroup_map,
    "diagnose.subgroups": tables.subgroups,
    "diagnose.rank_variables": tables.ranking,
    "diagnose.reliability_curve": curves.reliability,
    "diagnose.subgroups.searched": tables.searched_subgroups,
    "diagnose.variable_curve": curves.variable,
}
