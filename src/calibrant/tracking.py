"""Calibration with a model: numbers for trackers of experiments, a run of MLflow, a section of a model card."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule

if TYPE_CHECKING:
    from calibrant.apps.trackers.metrics import metrics as metrics
    from calibrant.apps.trackers.mlflow import log_record as log_record
    from calibrant.apps.trackers.mlflow import mlflow_metrics as mlflow_metrics
    from calibrant.apps.trackers.model_card import model_card as model_card

_WHERE = {
    "log_record": "calibrant.apps.trackers.mlflow",
    "metrics": "calibrant.apps.trackers.metrics",
    "mlflow_metrics": "calibrant.apps.trackers.mlflow",
    "model_card": "calibrant.apps.trackers.model_card",
}
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
