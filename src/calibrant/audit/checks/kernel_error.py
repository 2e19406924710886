"""How large is the error that a kernel along score and covariates sees, with its interval: the local test's sums."""

from __future__ import annotations

from collections.abc import Mapping

from calibrant.audit.question import NO_TESTS, Answer, Case, NotRun, Question
from calibrant.audit.record import Check
from calibrant.results import Curve

KERNEL = "kernel-error"


def kernel_error(case: Case, _: Mapping[str, Curve]) -> Answer:
    """Measure the squared kernel local calibration error of the sums that the local test reads.

    A sketch for tests holds them already, so that no row is read again; rows of clusters or of weights have no
    interval.
    """
    from calibrant.measure.klce import klce

    case.needs_covariates()
    case.needs_tests()
    if "local" not in case.whole.parts and case.screen is None and not case.whole.by_units:
        raise NotRun(NO_TESTS)
    found = klce(case.tested, alpha=case.judging.alpha, features="default", seed=case.seed)
    return Answer(checks=(Check(code=KERNEL, status="measured", estimate=found),), estimates={"klce": found})


DECLARED = (Question(code=KERNEL, order=95, make=kernel_error),)
