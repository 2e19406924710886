"""Calibration where people work: trackers of experiments, MLflow, model cards, torchmetrics, Evidently, Inspect."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule, where

if TYPE_CHECKING:
    from calibrant.apps.trackers.frameworks import evidently_metric as evidently_metric
    from calibrant.apps.trackers.frameworks import torchmetrics_metric as torchmetrics_metric
    from calibrant.apps.trackers.logs import audit_log as audit_log
    from calibrant.apps.trackers.logs import inspect_hooks as inspect_hooks
    from calibrant.apps.trackers.logs import inspect_metric as inspect_metric
    from calibrant.apps.trackers.mlflow import log_record as log_record
    from calibrant.apps.trackers.mlflow import mlflow_metrics as mlflow_metrics
    from calibrant.apps.trackers.streamed import CalibrationMetric as CalibrationMetric
    from calibrant.apps.trackers.summaries import metrics as metrics
    from calibrant.apps.trackers.summaries import model_card as model_card

_WHERE = where(
    {
        "calibrant.apps.trackers.frameworks": "evidently_metric torchmetrics_metric",
        "calibrant.apps.trackers.logs": "audit_log inspect_hooks inspect_metric",
        "calibrant.apps.trackers.mlflow": "log_record mlflow_metrics",
        "calibrant.apps.trackers.streamed": "CalibrationMetric",
        "calibrant.apps.trackers.summaries": "metrics model_card",
    }
)
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
