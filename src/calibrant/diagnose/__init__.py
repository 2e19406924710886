"""Where the probabilities are off, and by how much: along the score, along variables, in groups nobody named."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule, where

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

_WHERE = where(
    {
        "calibrant.decisions.acceptance_curve": "acceptance_curve",
        "calibrant.decisions.net_benefit": "decision_curve",
        "calibrant.diagnose.local_bias": "local_bias",
        "calibrant.diagnose.rank_variables": "rank_variables",
        "calibrant.diagnose.reliability_curve": "reliability_curve",
        "calibrant.diagnose.reliability_display": "ReliabilityDisplay",
        "calibrant.diagnose.strong_diagnosis": "control_chart importance",
        "calibrant.diagnose.subgroups": "subgroup_map subgroups",
        "calibrant.diagnose.variable_curve": "variable_curve",
        "calibrant.measure.by_horizon": "curve_by_horizon",
        "calibrant.measure.heterogeneity": "heterogeneity",
        "calibrant.measure.unlabelled": "missing_labels",
    }
)
__all__ = sorted(_WHERE)

sys.modules[__name__].__class__ = LazyModule
