"""The score that "within" is about: as it is where it takes few values, otherwise as it is shown."""

from __future__ import annotations

from calibrant.certify.rounded import rounded_of
from calibrant.certify.values import values_of
from calibrant.results import Estimate
from calibrant.views.population import Population


def judged_of(population: Population, steps: int, spend: tuple[float, float], level: float, seed: int) -> Estimate:
    """Certify the judged score of one population; `spend` is for the lower and the upper end.

    ``settings["about"]`` says in words which score that is. Which one was decided from everyone's scores when the
    population was made (`views.population.few`), and is the same for every group.
    """
    if population.exact:
        return values_of(population, spend, level, seed)
    return rounded_of(population, steps, spend, level, seed)
