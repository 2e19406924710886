"""An audit in a run of MLflow, and measures with intervals as metrics that `mlflow.models.evaluate` accepts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibrant import AuditRecord, Predictions, predictions
from calibrant.apps.trackers.streamed import certified
from calibrant.apps.trackers.summaries import metrics
from calibrant.arguments import checked_alpha, checked_seed
from calibrant.errors import NotComputable
from calibrant.measure import auroc, brier, log_loss
from calibrant.results import Estimate
from calibrant.toolkit.report import document, states, write_all

if TYPE_CHECKING:
    from mlflow.metrics import EvaluationMetric, MetricValue
    from numpy.typing import ArrayLike

    Column = ArrayLike  # as pandas has it

Measured = Callable[[Predictions], dict[str, float]]
BATCH = 1000  # metrics that a server takes at once
FOLDER = "calibrant"


def log_record(record: AuditRecord, *, run_id: str | None = None, folder: str = FOLDER) -> str:
    """Log an audit to a run of MLflow: numbers with intervals, the verdict, and the page as an artefact.

    Parameters
    ----------
    record : AuditRecord
    run_id : str, optional
        A run; by default the one that is active, or else a new one, which is ended.
    folder : str
        Where the artefacts go: the page, the record, the brief, the checklist and the tables. Names of metrics and
        tags begin with it too, so that a run can hold several audits.

    Returns
    -------
    str
        The id of the run.

    Raises
    ------
    ImportError
        MLflow is missing: ``pip install mlflow-skinny`` is enough.

    Notes
    -----
    **Guarantee.** That of each number in the record; `calibrant.tracking.metrics` lists them.
    **Cost.** Writes the page once.
    **Reads.** The record.
    """
    import mlflow

    run = None
    if run_id is None and (run := mlflow.active_run()) is None:
        with mlflow.start_run() as started:
            return log_record(record, run_id=started.info.run_id, folder=folder)
    into = run_id if run is None else run.info.run_id
    client = mlflow.MlflowClient()
    for name, value in _tags(record).items():
        client.set_tag(into, f"{folder}.{name}", value)
    results = [
        mlflow.entities.Metric(f"{folder}/{name}", value, timestamp=0, step=0)
        for name, value in metrics(record).items()
    ]
    for first in range(0, len(results), BATCH):
        client.log_batch(into, metrics=results[first : first + BATCH])
    with tempfile.TemporaryDirectory() as made:
        write_all(record, document(record), Path(made))
        client.log_artifacts(into, made, folder)
    return str(into)


def _tags(record: AuditRecord) -> dict[str, str]:
    stated = {f"verdict_{part}": state for part, state in states(record).items()}
    settings = {k: str(record.settings.get(k)) for k in ("limit", "judge", "alpha", "steps", "seed")}
    return {
        "verdict": record.verdict,
        **stated,
        **settings,
        "version": str(record.versions.get("calibrant", "unknown")),
    }


# ---- metrics of an evaluation ----


def mlflow_metrics(*, alpha: float = 0.05, seed: int = 0) -> list[EvaluationMetric]:
    """Measures of probabilities for `mlflow.models.evaluate`, each as ``NAME/value``, ``/low`` and ``/high``.

    Parameters
    ----------
    alpha : float in (0, 0.5]
        Error probability of each interval.
    seed : int

    Returns
    -------
    list of mlflow.metrics.EvaluationMetric
        For ``extra_metrics=``: ``calibration_error``, with certified ends (`certify.raw_lower` from below,
        `certify.rounded` from above); ``brier``, ``log_loss`` and ``auroc``, with asymptotic ones.

    Raises
    ------
    ImportError
        MLflow is missing.

    Notes
    -----
    **Assumes.** Independent rows; predictions are probabilities of the event, or two columns, one for each class.
    **Guarantee.** `calibration_error`: each end is wrong with probability at most ``alpha / 2``.
    **Method.** The functions of `calibrant.measure` and `calibrant.certify`.
    **Reads.** Rows.
    """
    from mlflow.metrics import make_metric

    level, number = checked_alpha(alpha), checked_seed(seed)
    known: dict[str, tuple[Measured, bool]] = {
        "calibration_error": (partial(_certified, alpha=level, seed=number), False),
        "brier": (lambda data: _ends(brier(data, alpha=level)), False),
        "log_loss": (lambda data: _ends(log_loss(data, alpha=level)), False),
        "auroc": (lambda data: _ends(auroc(data, alpha=level)), True),
    }
    return [
        make_metric(eval_fn=_evaluated(measured), greater_is_better=up, name=name)
        for name, (measured, up) in known.items()
    ]


def _certified(data: Predictions, *, alpha: float, seed: int) -> dict[str, float]:
    lower, upper = certified(data, alpha=alpha, seed=seed)
    return {"value": float(upper.value), "low": lower.low, "high": upper.high}


def _ends(e: Estimate) -> dict[str, float]:
    return {"value": float(e.value), "low": e.low, "high": e.high}


def _evaluated(measured: Measured) -> Callable[[Column, Column], MetricValue]:
    """What MLflow calls with a column of predictions and one of labels."""

    def evaluated(predictions: Column, targets: Column) -> MetricValue:
        from mlflow.metrics import MetricValue

        if len(np.asarray(targets)) == 1:  # MLflow tries each metric on the first row, of which nothing can be reported
            return MetricValue(aggregate_results={})
        result = measured(_scored(predictions, targets))
        return MetricValue(aggregate_results={k: v for k, v in result.items() if np.isfinite(v)})

    return evaluated


def _scored(value: Column, targets: Column) -> Predictions:
    """Predictions as MLflow hands them over: probabilities of the event, never classes."""
    p = np.asarray(value)
    if p.ndim == 2 and p.shape[1] in (1, 2):
        p = p[:, -1]
    elif p.dtype == object and len(p) and np.ndim(p[0]) == 1:  # a column of pairs
        p = np.stack(p.tolist())[:, -1]
    if p.ndim == 1 and np.isin(p, (0, 1)).all():
        raise NotComputable("the predictions are classes: log the model so that it predicts probabilities")
    return predictions(targets, p)
