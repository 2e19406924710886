"""Certified intervals: finite-sample, distribution-free, and clear about which classifier they are about.

To add a certificate, write a file here whose function stands under ``@certificate(...)``, and add its line below: the
line makes it public, and the command offers what is declared in a file that is imported here.

The functions are imported here, at once, so that `certify.rounded` is always the function and never the module
of the same name, whichever is imported first.
"""

from __future__ import annotations

import sys

from calibrant.certify.classes import classwise, jitter_classes, jittered_classes
from calibrant.certify.decidable import decidable
from calibrant.certify.groups import groups, worst_group
from calibrant.certify.horizon import horizon
from calibrant.certify.jittered import jitter_bandwidth, jitter_cost, jittered
from calibrant.certify.missing_labels import missing_labels
from calibrant.certify.rows_needed import rows_needed
from calibrant.certify.subgroups import subgroups
from calibrant.certify.variable import variable
from calibrant.certify.whole import bounded_variation, distance, raw_lower, rounded, values
from calibrant.decisions.accept import accept, rows_to_accept
from calibrant.lazy_module import PublicModule

__all__ = [
    "accept",
    "bounded_variation",
    "classwise",
    "decidable",
    "distance",
    "groups",
    "horizon",
    "jitter_bandwidth",
    "jitter_classes",
    "jitter_cost",
    "jittered",
    "jittered_classes",
    "missing_labels",
    "raw_lower",
    "rounded",
    "rows_needed",
    "rows_to_accept",
    "subgroups",
    "values",
    "variable",
    "worst_group",
]
sys.modules[__name__].__class__ = PublicModule


def __dir__() -> list[str]:
    return __all__
