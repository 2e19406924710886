"""calibrant: audit the predicted probabilities of any classifier.

Importing loads the standard library only; each name loads what it needs when it is first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "AuditRecord": "calibrant.audit.record",
    "BadInput": "calibrant.errors",
    "EngineFailed": "calibrant.errors",
    "GradeValidation": "calibrant.apps.grades.sheet",
    "Look": "calibrant.inspect.looked",
    "ModelComparison": "calibrant.decisions.comparison",
    "Monitor": "calibrant.audit.monitor.monitor",
    "MulticlassPredictions": "calibrant.data.predictions",
    "NotComputable": "calibrant.errors",
    "Predictions": "calibrant.data.predictions",
    "Sketch": "calibrant.data.sketches.sketch",
    "at_horizon": "calibrant.views.unlabelled",
    "audit": "calibrant.audit.run",
    "compare": "calibrant.audit.compare",
    "grades": "calibrant.apps.grades.validation",
    "look": "calibrant.inspect.run",
    "multiclass_predictions": "calibrant.data.classes.rows",
    "predictions": "calibrant.data.predictions",
    "read": "calibrant.data.read",
    "sketch": "calibrant.data.read",
    "sql": "calibrant.data.sources.query",
}
_MODULES = (
    "certify",
    "datasets",
    "detect",
    "diagnose",
    "measure",
    "papers",
    "repair",
    "testing",
    "tracking",
    "weights",
)
__all__ = ["__version__", *_WHERE, *_MODULES]

if TYPE_CHECKING:
    from calibrant import certify as certify
    from calibrant import datasets as datasets
    from calibrant import detect as detect
    from calibrant import diagnose as diagnose
    from calibrant import measure as measure
    from calibrant import papers as papers
    from calibrant import repair as repair
    from calibrant import testing as testing
    from calibrant import tracking as tracking
    from calibrant import weights as weights
    from calibrant.apps.grades.sheet import GradeValidation as GradeValidation
    from calibrant.apps.grades.validation import grades as grades
    from calibrant.audit.compare import compare as compare
    from calibrant.audit.monitor.monitor import Monitor as Monitor
    from calibrant.audit.record import AuditRecord as AuditRecord
    from calibrant.audit.run import audit as audit
    from calibrant.data.classes.rows import multiclass_predictions as multiclass_predictions
    from calibrant.data.predictions import MulticlassPredictions as MulticlassPredictions
    from calibrant.data.predictions import Predictions as Predictions
    from calibrant.data.predictions import predictions as predictions
    from calibrant.data.read import read as read
    from calibrant.data.read import sketch as sketch
    from calibrant.data.sketches.sketch import Sketch as Sketch
    from calibrant.data.sources.query import sql as sql
    from calibrant.decisions.comparison import ModelComparison as ModelComparison
    from calibrant.errors import BadInput as BadInput
    from calibrant.errors import EngineFailed as EngineFailed
    from calibrant.errors import NotComputable as NotComputable
    from calibrant.inspect.looked import Look as Look
    from calibrant.inspect.run import look as look
    from calibrant.views.unlabelled import at_horizon as at_horizon


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"calibrant.{name}")
    if name not in _WHERE:
        raise import_module("calibrant.lazy_module").lacking(__name__, name, __all__)
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


class _Package(ModuleType):
    """Keeps `audit` and `look` the functions: importing the subpackages would bind their modules to these names."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in ("audit", "look") and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted(__all__)
