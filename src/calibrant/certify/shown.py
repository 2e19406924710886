"""The certificate of a score in finitely many values: as it is where it takes few, otherwise as it is shown.

Which of the two "within" is about (`Population.judged`) was decided from everyone's scores when the population was made
(`views.sample.few`), and is the same for every group.
"""

from __future__ import annotations

from calibrant.certify.certificate import Certificate
from calibrant.certify.raw_lower import raw_certificate
from calibrant.views.population import Population, Shown


def shown_certificate(q: Population, shown: Shown) -> Certificate:
    """The certificate of one population's score as it is shown; from below, one of few values is the raw score."""
    return Certificate(
        "values" if shown.slack else "rounded",
        q,
        shown.about,
        raw_certificate(q).below if shown.slack else lambda delta, seed: shown.below(delta, seed).limit(delta),
        lambda delta: (min(shown.above.limit(delta) + shown.slack, 1.0), {}),
        estimate=shown.debiased,
        display=shown.display,
        spends=True,
    )
