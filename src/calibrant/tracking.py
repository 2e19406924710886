"""Calibration with a model: numbers for trackers of experiments, a run of MLflow, a section of a model card."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.faces import Face

if TYPE_CHECKING:
    from calibrant.report.pipelines.metrics import metrics as metrics
    from calibrant.report.pipelines.mlflow import log_record as log_record
    from calibrant.report.pipelines.mlflow import mlflow_metrics as mlflow_metrics
    from calibrant.report.pipelines.model_card import model_card as model_card

_WHERE = {
    "log_record": "calibrant.report.pipelines.mlflow",
    "metrics": "calibrant.report.pipelines.metrics",
    "mlflow_metrics": "calibrant.report.pipelines.mlflow",
    "model_card": "calibrant.report.pipelines.model_card",
}
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = Face
