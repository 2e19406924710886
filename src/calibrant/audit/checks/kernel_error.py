"""How large is the error that a kernel along score and covariates sees, with its interval: the local test's sums."""

from __future__ import annotations

from collections.abc import Mapping

from calibrant.audit.context import NO_TESTS, AuditContext, Check, CheckResult, NotRun
from calibrant.audit.record import CheckRecord
from calibrant.results import Curve

KERNEL = "kernel-error"


def kernel_error(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Measure the squared kernel local calibration error of the sums that the local test reads.

    A sketch for tests holds them already, so that no row is read again; rows of clusters or of weights have no
    interval.
    """
    from calibrant.measure.klce import klce

    context.needs_covariates()
    context.needs_tests()
    if "local" not in context.sketch.parts and context.screen is None and not context.sketch.by_clusters:
        raise NotRun(NO_TESTS)
    result = klce(context.tested, alpha=context.judging.alpha, features="default", seed=context.seed)
    return CheckResult(
        checks=(CheckRecord(code=KERNEL, status="measured", estimate=result),), estimates={"klce": result}
    )


DECLARED = (Check(code=KERNEL, order=95, make=kernel_error),)
