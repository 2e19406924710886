"""Where the probabilities are off, and by how much: along the score, along variables, in groups nobody named."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule

if TYPE_CHECKING:
    from calibrant.decisions.acceptance_curve import acceptance_curve as acceptance_curve
    from calibrant.decisions.net_benefit import decision_curve as decision_curve
    from calibrant.diagnose.local_bias import local_bias as local_bias
    from calibrant.diagnose.rank_variables import rank_variables as rank_variables
    from calibrant.diagnose.reliability_curve import reliability_curve as reliability_curve
    from calibrant.diagnose.reliability_display import ReliabilityDisplay as ReliabilityDisplay
    from calibrant.diagnose.strong_diagnosis import control_chart as control_chart
    from calibrant.diagnose.strong_diagnosis import importance as importance
    from calibrant.diagnose.subgroups import subgroup_map as subgroup_map
    from calibrant.diagnose.subgroups import subgroups as subgroups
    from calibrant.diagnose.variable_curve import variable_curve as variable_curve
    from calibrant.measure.by_horizon import curve_by_horizon as curve_by_horizon
    from calibrant.measure.heterogeneity import heterogeneity as heterogeneity
    from calibrant.measure.unlabelled import missing_labels as missing_labels

_WHERE = {
    "ReliabilityDisplay": "calibrant.diagnose.reliability_display",
    "acceptance_curve": "calibrant.decisions.acceptance_curve",
    "control_chart": "calibrant.diagnose.strong_diagnosis",
    "curve_by_horizon": "calibrant.measure.by_horizon",
    "decision_curve": "calibrant.decisions.net_benefit",
    "heterogeneity": "calibrant.measure.heterogeneity",
    "importance": "calibrant.diagnose.strong_diagnosis",
    "local_bias": "calibrant.diagnose.local_bias",
    "missing_labels": "calibrant.measure.unlabelled",
    "rank_variables": "calibrant.diagnose.rank_variables",
    "reliability_curve": "calibrant.diagnose.reliability_curve",
    "subgroup_map": "calibrant.diagnose.subgroups",
    "subgroups": "calibrant.diagnose.subgroups",
    "variable_curve": "calibrant.diagnose.variable_curve",
}
__all__ = list(_WHERE)

sys.modules[__name__].__class__ = LazyModule
