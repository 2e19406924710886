"""The certified calibration error as a metric of Evidently, with tests against a limit."""

from __future__ import annotations

import numpy as np

from calibrant import Predictions, read
from calibrant.apps.trackers.streamed import certified
from calibrant.errors import BadInput

try:
    from evidently.core.datasets import BinaryClassification, Dataset
    from evidently.core.metric_types import ByLabelCalculation, ByLabelMetric, ByLabelValue, MetricTest, TMetricResult
    from evidently.core.report import Context
    from evidently.legacy.renderers.html_widgets import CounterData, counter
    from evidently.tests import lte
except ImportError as e:  # Evidently 0.7.23 names what pandas 3 no longer has
    raise ImportError(
        f"calibrant.tracking.evidently_metric needs Evidently 0.7: pip install evidently 'pandas<3' ({e})"
    ) from None

ESTIMATE, LOW, HIGH = "estimate", "at least", "at most"  # the labels of the three values


class CalibrationError(ByLabelMetric):  # type: ignore[misc]
    """See `calibrant.tracking.evidently_metric`."""

    classification_name: str = "default"
    alpha: float = 0.05
    seed: int = 0


def against(limit: float) -> dict[str, list[MetricTest]]:
    """A test of each end: certified over the limit fails, not certified within it is a warning."""
    return {LOW: [lte(limit)], HIGH: [lte(limit, is_critical=False)]}


class CalibrationErrorCalculation(ByLabelCalculation[CalibrationError]):  # type: ignore[misc]
    """Reads label and probability as the data definition names them."""

    def calculate(self, context: Context, current_data: Dataset, reference_data: Dataset | None) -> TMetricResult:
        """Both ends, of the current data and of the reference."""
        current = self._of(context, current_data)
        return current if reference_data is None else (current, self._of(context, reference_data))

    def _of(self, context: Context, data: Dataset) -> ByLabelValue:
        rows = _rows(context, data, self.metric.classification_name)
        lower, upper = certified(rows, alpha=self.metric.alpha, seed=self.metric.seed)
        values = {ESTIMATE: upper.value, LOW: lower.low, HIGH: upper.high}
        out = self.result({name: float(value) for name, value in values.items()})
        out.widget = [
            counter(
                title=self.display_name(),
                counters=[CounterData(f"{name}, in percentage points", f"{100 * v:.2f}") for name, v in values.items()],
            )
        ]
        return out

    def display_name(self) -> str:
        """The title."""
        return f"Calibration error, certified at {1 - self.metric.alpha:.0%}"

    def label_display_name(self, label: object) -> str:
        """The title of one of the three values."""
        return f"Calibration error, {label}"


def _rows(context: Context, data: Dataset, name: str) -> Predictions:
    """The rows of a binary classification that the data definition names."""
    task = context.data_definition.get_classification(name)
    if not isinstance(task, BinaryClassification) or task.prediction_probas is None:
        raise BadInput(
            f"the data definition has no binary classification {name!r} with prediction_probas: name target and "
            "prediction_probas in BinaryClassification(...)"
        )
    label, score = task.target, task.prediction_probas
    frame = data.as_dataframe()[[label, score]]
    binary = np.isin(frame[label].to_numpy(), (0, 1)).all() and task.pos_label in (1, "1")
    return read(frame, label=label, score=score, positive=None if binary else str(task.pos_label))
