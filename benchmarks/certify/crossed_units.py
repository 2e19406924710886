"""Coverage where persons and questions cross: by persons, by questions, and by the worse end of both.

200 data sets a design, `--full` 1,000; every person answers every question, and every score is right. Prints the table
of docs/units.md.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import ndtr

import calibrant as cal

PERSONS, QUESTIONS = 60, 40
DESIGNS = ((0.0, 0.0), (0.3, 0.0), (0.0, 0.3), (0.15, 0.15), (0.3, 0.3))


def drawn(of_person: float, of_question: float, rng: np.random.Generator) -> tuple[cal.Predictions, cal.Predictions]:
    """Return one data set with persons as units, and with questions; the normal numbers of rows share both effects."""
    person, question = np.divmod(np.arange(PERSONS * QUESTIONS), QUESTIONS)
    own = rng.normal(0.0, np.sqrt(1.0 - of_person - of_question), len(person))
    z = (
        rng.normal(0.0, np.sqrt(of_person), PERSONS)[person]
        + rng.normal(0.0, np.sqrt(of_question), QUESTIONS)[question]
    )
    p = np.round(rng.uniform(0.1, 0.9, len(person)), 1)
    y = (ndtr(z + own) < p).astype(int)
    return cal.predictions(y, p, cluster=person), cal.predictions(y, p, cluster=question)


def missed(data: cal.Predictions) -> tuple[bool, bool]:
    """Return whether the interval of O/E leaves out 1, and whether a lower bound of the error is above 0."""
    ratio = cal.measure.observed_expected(data).interval
    return not ratio.low <= 1.0 <= ratio.high, cal.certify.raw_lower(data).interval.low > 0.0


def line(design: tuple[float, float], runs: int) -> str:
    """Return a line of the table: shares of data sets in which an interval is wrong, the worse end of both last."""
    rng = np.random.default_rng(5)
    found = np.array([[missed(data) for data in drawn(*design, rng)] for _ in range(runs)])
    worse = found.all(axis=1)  # an end is wrong only if the worse of two is
    shares = [*found.mean(axis=0).T.tolist(), *worse.mean(axis=0).tolist()]
    (ratio_p, ratio_q), (low_p, low_q), ratio, low = shares
    told = " | ".join(f"{x:.3f}" for x in (ratio_p, ratio_q, ratio, low_p, low_q, low))
    return f"| {design[0]} | {design[1]} | {told} |"


if __name__ == "__main__":
    heads = "O/E by person", "by question", "worse end", "`raw_lower` by person", "by question", "worse end"
    print(f"| person | question | {' | '.join(heads)} |")
    print("|---|---|---|---|---|---|---|---|")
    for one in DESIGNS:
        print(line(one, 1000 if "--full" in sys.argv else 200), flush=True)
