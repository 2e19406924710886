"""The standard measures of the raw score, with asymptotic intervals: none is certified, no verdict rests on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from calibrant.audit.context import AuditContext, Check, CheckResult
from calibrant.audit.lost import measured
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
ICI = "integrated_calibration_index"
BY_CENSORING = *MEASURES[3:], ICI  # those that have weights of censoring


def _measured(name: str) -> Callable[[AuditContext, Mapping[str, Curve]], CheckResult]:
    """Return what computes a measure; it lists a check only where the measure does not exist for the data."""

    def answer(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
        from calibrant import measure

        return CheckResult(estimates={name: getattr(measure, name)(context.read, alpha=context.judging.alpha)})

    return answer


def _measured_of_lost(name: str) -> Callable[[AuditContext, Mapping[str, Curve]], CheckResult]:
    """The same by weights of censoring, of the measures that have them."""

    def answer(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
        if name not in BY_CENSORING:
            context.needs_outcomes()
        return CheckResult(estimates={name: measured(name, context)})

    return answer


def _only_by_a_horizon(_context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Ask nothing where every outcome is known: the smoothed curve says more."""
    return CheckResult()


DECLARED = (
    *(
        Check(
            code=name.replace("_", "-"),
            order=70 + i,
            make=_measured(name),
            make_of_lost=_measured_of_lost(name),
            step="measuring",
        )
        for i, name in enumerate(MEASURES)
    ),
    Check(
        code=ICI.replace("_", "-"),
        crosses=True,  # it asks nothing where no horizon is named
        order=79,
        make=_only_by_a_horizon,
        make_of_lost=_measured_of_lost(ICI),
        step="measuring",
    ),
)
