"""Where along the score, or along a variable, the probabilities are off.

The functions are imported here, at once, so that `diagnose.reliability_curve` is always the function and never the
module of the same name, whichever is imported first.
"""

from __future__ import annotations

from calibrant.diagnose.control_chart import control_chart
from calibrant.diagnose.importance import importance
from calibrant.diagnose.local_bias import local_bias
from calibrant.diagnose.rank_variables import rank_variables
from calibrant.diagnose.reliability_curve import reliability_curve
from calibrant.diagnose.subgroups import subgroups
from calibrant.diagnose.variable_curve import variable_curve

__all__ = [
    "control_chart",
    "importance",
    "local_bias",
    "rank_variables",
    "reliability_curve",
    "subgroups",
    "variable_curve",
]


def __dir__() -> list[str]:
    return __all__
