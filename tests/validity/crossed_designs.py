"""Persons who answer questions: outcomes share effects of both, and the truth is known."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

# Persons, questions, variance of persons' and of questions' effects out of 1, share of pairs there, error of the score
DESIGNS = {
    "small, one fate a question": (24, 24, 0.0, 0.98, 1.0, 0.0),
    "both effects": (60, 40, 0.3, 0.3, 1.0, 0.0),
    "few questions, one fate each way": (200, 20, 0.49, 0.49, 1.0, 0.0),
    "half of the pairs": (80, 60, 0.3, 0.3, 0.5, 0.0),
    "off": (60, 40, 0.3, 0.3, 1.0, 0.15),
}


def drawn(name, rng):
    """Return codes of persons and questions, scores and outcomes: every score p happens with rate p, or p + error."""
    persons, questions, of_person, of_question, there, off = DESIGNS[name]
    person, question = np.divmod(np.arange(persons * questions), questions)
    keep = rng.uniform(size=len(person)) < there
    person, question = person[keep], question[keep]
    z = (
        np.sqrt(of_person) * rng.normal(size=persons)[person]
        + np.sqrt(of_question) * rng.normal(size=questions)[question]
    )
    z = z + np.sqrt(1.0 - of_person - of_question) * rng.normal(size=len(person))
    p = rng.choice([0.1, 0.5, 0.8], len(person))
    return np.array([person, question]), p, (ndtr(z) < p + off).astype(np.int8)
