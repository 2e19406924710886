"""Coverage where persons and questions cross: by persons, by questions, the worse end of both, and both in the proof.

200 data sets a design, `--full` 1,000; every person answers every question, and every score is right. Prints the tables
of docs/clusters.md; with `--gap` the second alone.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import ndtr

import calibrant as cal

PERSONS, QUESTIONS = 60, 40
DESIGNS = ((0.0, 0.0), (0.3, 0.0), (0.0, 0.3), (0.15, 0.15), (0.3, 0.3))


def drawn(of_person: float, of_question: float, rng: np.random.Generator) -> tuple[cal.Predictions, ...]:
    """Return one data set with persons as units, questions, and both; the normal numbers of rows share both effects."""
    person, question = np.divmod(np.arange(PERSONS * QUESTIONS), QUESTIONS)
    own = rng.normal(0.0, np.sqrt(1.0 - of_person - of_question), len(person))
    z = (
        rng.normal(0.0, np.sqrt(of_person), PERSONS)[person]
        + rng.normal(0.0, np.sqrt(of_question), QUESTIONS)[question]
    )
    p = np.round(rng.uniform(0.1, 0.9, len(person)), 1)
    y = (ndtr(z + own) < p).astype(int)
    every, both = {"all": np.zeros(len(y), dtype=int)}, {"person": person, "question": question}
    return tuple(cal.predictions(y, p, every, cluster=cluster_code) for cluster_code in (person, question, both))


def missed(data: cal.Predictions) -> tuple[bool, bool]:
    """Return whether the interval of O/E leaves out 1, and whether a lower bound of the error is above 0."""
    ratio = cal.measure.observed_expected(data).interval
    return not ratio.low <= 1.0 <= ratio.high, cal.certify.raw_lower(data).interval.low > 0.0


def line(design: tuple[float, float], runs: int) -> str:
    """Return a line of the table: shares of data sets in which an interval is wrong, the worse end of both last."""
    rng = np.random.default_rng(5)
    found = np.array([[missed(data) for data in drawn(*design, rng)[:2]] for _ in range(runs)])
    worse = found.all(axis=1)  # an end is wrong only if the worse of two is
    shares = [*found.mean(axis=0).T.tolist(), *worse.mean(axis=0).tolist()]
    (ratio_p, ratio_q), (low_p, low_q), ratio, low = shares
    reported = " | ".join(f"{x:.3f}" for x in (ratio_p, ratio_q, ratio, low_p, low_q, low))
    return f"| {design[0]} | {design[1]} | {reported} |"


def gap_line(design: tuple[float, float], runs: int) -> str:
    """Return shares of data sets in which a certified range of the gap leaves out 0, and its mean half width."""
    rng, found = np.random.default_rng(6), np.empty((runs, 3, 2))
    for run in range(runs):
        for j, data in enumerate(drawn(*design, rng)):
            found[run, j] = gap_of(data)
    wrong, half = ((found > 0.0) == [True, False]).any(axis=2), (found[..., 1] - found[..., 0]) / 2.0
    either = wrong[:, :2].all(axis=1)  # a worse end is wrong only if both are
    shares = [*wrong[:, :2].mean(axis=0), either.mean(), wrong[:, 2].mean()]
    widths = " | ".join(f"{100.0 * x:.1f}" for x in half.mean(axis=0))
    return f"| {design[0]} | {design[1]} | {' | '.join(f'{x:.3f}' for x in shares)} | {widths} |"


def gap_of(data: cal.Predictions) -> tuple[float, float]:
    """Return the certified range of the gap."""
    (found,) = cal.certify.groups(data, by="all", judge="gap").values()
    return found.interval.low, found.interval.high


def main(runs: int) -> None:
    """Print the first table."""
    heads = "O/E by person", "by question", "worse end", "`raw_lower` by person", "by question", "worse end"
    print(f"| person | question | {' | '.join(heads)} |")
    print("|---|---|---|---|---|---|---|---|")
    for one in DESIGNS:
        print(line(one, runs), flush=True)


if __name__ == "__main__":
    runs = 1000 if "--full" in sys.argv else 200
    if "--gap" not in sys.argv:
        main(runs)
    heads = "wrong: by person", "by question", "worse end", "both", "half width: by person", "by question", "both"
    print(f"| person | question | {' | '.join(heads)} |")
    print("|---|---|---|---|---|---|---|---|---|")
    for one in DESIGNS:
        print(gap_line(one, runs), flush=True)
