"""The score that "met" is about: as it is where it takes few values, otherwise as it is shown."""

from __future__ import annotations

from calibrant.certify.rounded import rounded_of
from calibrant.results import Estimate
from calibrant.views.population import Population


def judged_of(population: Population, levels: int, spend: tuple[float, float], level: float, seed: int) -> Estimate:
    """Certify the judged score of one population; `spend` is for the lower and the upper end.

    ``settings["about"]`` says in words which score that is.
    """
    return rounded_of(population, levels, spend, level, seed)
