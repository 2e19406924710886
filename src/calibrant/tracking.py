"""Calibration where people work: trackers of experiments, MLflow, model cards, torchmetrics, Evidently, Inspect."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule

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

_WHERE = {
    "CalibrationMetric": "calibrant.apps.trackers.streamed",
    "audit_log": "calibrant.apps.trackers.logs",
    "evidently_metric": "calibrant.apps.trackers.frameworks",
    "inspect_hooks": "calibrant.apps.trackers.logs",
    "inspect_metric": "calibrant.apps.trackers.logs",
    "log_record": "calibrant.apps.trackers.mlflow",
    "metrics": "calibrant.apps.trackers.summaries",
    "mlflow_metrics": "calibrant.apps.trackers.mlflow",
    "model_card": "calibrant.apps.trackers.summaries",
    "torchmetrics_metric": "calibrant.apps.trackers.frameworks",
}
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
