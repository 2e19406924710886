"""People whose outcome is not known: what they could change about the range of everyone, and about its verdict."""

from __future__ import annotations

from collections.abc import Mapping

from calibrant.audit.question import Answer, Case, Question
from calibrant.certify.missing_labels import ODDS, Asked, of_everyone
from calibrant.results import Curve

NAME = "missing_labels"


def unlabelled(case: Case, _: Mapping[str, Curve]) -> Answer:
    """Certify everyone with the people whose label is missing; of fewer than the mask nothing is told."""
    if case.whole.unlabelled < case.mask:
        return Answer()
    plan = case.judging
    found = of_everyone(case.whole, Asked(plan.judge, plan.limit, ODDS, plan.levels), plan.alpha)
    return Answer(curves={NAME: found})


DECLARED = (Question(code="missing-labels", order=27, make=unlabelled, step="asking what missing labels could change"),)
