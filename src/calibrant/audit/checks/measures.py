"""The standard measures of the raw score, with asymptotic intervals: none is certified, no verdict rests on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from calibrant.audit.question import Answer, Case, Question
from calibrant.results import Curve

MEASURES = (
    "ece",
    "smooth_ece",
    "max_calibration_error",
    "brier",
    "log_loss",
    "auroc",
    "calibration_intercept",
    "calibration_slope",
    "observed_expected",
)


def _measured(name: str) -> Callable[[Case, Mapping[str, Curve]], Answer]:
    """Return what computes a measure; it lists a check only where the measure does not exist for the data."""

    def answer(case: Case, _: Mapping[str, Curve]) -> Answer:
        from calibrant import measure

        return Answer(estimates={name: getattr(measure, name)(case.read, alpha=case.judging.alpha)})

    return answer


DECLARED = tuple(
    Question(code=name.replace("_", "-"), order=70 + i, make=_measured(name), step="measuring")
    for i, name in enumerate(MEASURES)
)
