"""The Jeffreys test of each grade, as banking supervisors ask for it, and of all grades together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import choice, number
from calibrant.data.calls import takes_arrays
from calibrant.data.columns import require
from calibrant.data.predictions import Predictions
from calibrant.data.profile import LevelCounts
from calibrant.data.sketches.sketch import Sketch
from calibrant.detect.classical import Finding, Floats, Null, ScoreTestOptions, Tested, covered
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Outcome
from calibrant.stats.classical import Scored, correlated_totals, posterior_tails, runs_of, scored
from calibrant.stats.nulls import holm
from calibrant.views.kinds import ByKind
from calibrant.views.sample import everyone, group

Side = Literal["greater", "less", "two-sided"]
FEW = 50  # distinct scores that can be taken for grades: rating scales have 5 to 25
TIE = 1e-9  # relative: posterior probabilities that are equal but for rounding
AGAINST: dict[Side, str] = {
    "greater": "in some grade more events happen than its scores say",
    "less": "in some grade fewer events happen than its scores say",
    "two-sided": "in some grade the event rate is not its mean score",
}

TOGETHER = "the outcomes happen with the probabilities given; one Gaussian factor moves them, with correlation {:g}"


@takes_arrays
def jeffreys_test(
    data: Predictions | Sketch,
    *,
    by: str | None = None,
    alternative: Side = "greater",
    draws: int = 999,
    null: Null = "simulated",
    rho: float = 0.0,
    seed: int = 0,
) -> Outcome:
    r"""Jeffreys test per grade: do more events happen in some grade than its probability says?

    Statistic: for each grade the probability that its event rate is at most its mean score, under the posterior
    ``Beta(k + 1/2, n - k + 1/2)`` of k events in n rows; the smallest of them. Small values speak against calibration.

    Parameters
    ----------
    data : Predictions or Sketch
        Weights and clusters are refused.
    by : str, optional
        The covariate that holds the grade (of a sketch: one of its group columns). By default each distinct score is a
        grade, if there are at most 50.
    alternative : {"greater", "less", "two-sided"}
        ``"greater"``, the supervisors' question: probabilities that underpredict.
    draws : int from 19
        Simulated data sets.
    null : {"simulated", "asymptotic"}
        How the grades are judged together: ``"asymptotic"`` takes the posterior probabilities for p-values.
    rho : float in [0, 1)
        How strongly defaults move together: the correlation of the Gaussian variables behind any two of them (credit:
        asset correlation; Basel's formulas give .03 to .24). One period's rows, which share one state of the economy.
        Simulated nulls only; 0 for independent rows.

    Returns
    -------
    Outcome
        Parts, per grade: ``grade``, ``grade_rows``, ``events``, ``expected`` (sum of the scores), ``posterior`` (the
        Jeffreys probability, which a supervisor's template calls the p-value) and ``adjusted_p``, for the finding "this
        grade".

    Raises
    ------
    BadInput
        No such covariate; more than 50 distinct scores and no `by`.
    NotComputable
        Weights; clusters; `rho` with the asymptotic null; `by` missing for a sketch whose cells hold several scores.

    Notes
    -----
    **Assumes.** Rows are independent, or move together as `rho` says; scores and grades were made without the outcomes.
    Defaults of one year are rarely independent, and then the test without `rho` rejects too often. **Guarantee.**
    Simulated: the p-value, and the adjusted ones all together, have level alpha at every number of rows and grades,
    with `rho` if it is the true one. Asymptotic: Holm's adjustment of the posterior probabilities, whose own level is
    approximate: it can exceed alpha where few events are expected, and falls far below it where scores differ much
    within a grade. **Method.** Each grade: the ECB's Jeffreys test (section 2.5.3.1). Together: ``(1 + #{min* <= min})
    / (draws + 1)`` with the smallest posterior probability over the grades of each simulated data set; the same law
    adjusts each grade (single-step min-p). Rows of a grade may have different scores: simulated as they are. With
    `rho`: row i is an event if ``sqrt(rho) Z + sqrt(1 - rho) e_i <= Phi^-1(p_i)``, one normal Z for all rows and one
    e_i each (Vasicek 2002); `posterior` stays the supervisors' number, which knows no correlation. A case at a score of
    exactly 0 refutes calibration: p-value 0 (a non-event at 1 for "less"; either for "two-sided"). **Cost.** A sort,
    then rows times draws (about 4 s for a million rows and 999 draws, in bounded memory; far less with ties; more with
    `rho`). **Reads.** Rows, or the sketch's cells at their mean score. Clusters, such as one debtor's loans, and
    several periods with a factor each are not modelled: with `rho` pass one period at a time.

    References
    ----------
    European Central Bank (2019), Instructions for reporting the validation results of internal models, section 2.5.3.1.
    Vasicek (2002), The distribution of loan portfolio value, Risk 15(12). Basel Committee, CRE31 (correlations).
    Brown, Cai, DasGupta (2001), doi:10.1214/ss/1009213286. Westfall, Young (1993), Resampling-based multiple testing.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.choice([0.01, 0.05, 0.2], size=6000)
    >>> defaults = rng.uniform(size=6000) < p + 0.03 * (p == 0.05)
    >>> found = cal.detect.jeffreys_test(cal.predictions(defaults, p))
    >>> found.p_value, [g for g, a in zip(found.parts["grade"], found.parts["adjusted_p"]) if a < 0.05]
    (0.001, ['0.05'])
    """
    a, side = ScoreTestOptions(draws, null, seed).checked(), choice("alternative", alternative, tuple(AGAINST))
    rho = number("rho", rho, least=0, below=1, hint="such as 0.12")
    if rho and a.null == "asymptotic":
        raise NotComputable("outcomes that move together (rho) have no asymptotic law here: pass null='simulated'")
    g = grades_of(data, by)
    t = Tested(g.q, a, g.reads)
    rows, events, expected = (np.add.reduceat(v, g.first) for v in (g.q.times, g.q.events, g.q.times * g.q.p))
    posterior: Floats = posterior_tails(events, rows, expected / rows, side)
    adjusted = holm(posterior)
    if t.simulates:
        drawn = correlated_totals(g.q, g.first, rho, a.draws, a.seed) if rho else g.q.totals(g.first, t.drawing)
        # Single-step min-p (Westfall and Young 1993): ranks among the smallest of each draw
        least = _smallest(drawn, rows, expected, side)
        at_most = np.searchsorted(np.sort(least), posterior * (1.0 + TIE), side="right")
        adjusted = np.asarray((1.0 + at_most) / (len(least) + 1.0), dtype=np.float64)
    worst = int(np.argmin(posterior))
    columns = {
        "grade_rows": rows.astype(np.int64),
        "events": events.astype(np.int64),
        "expected": expected,
        "posterior": posterior,
        "adjusted_p": adjusted,
    }
    result = t.outcome(
        "jeffreys_test",
        Finding(posterior[worst], adjusted[worst], AGAINST[side], replace(a, alternative=side).impossible(g.q)),
        {"alternative": side, "by": by, "rho": rho},
        {"grade": g.names, **{k: tuple(v.tolist()) for k, v in columns.items()}},
    )
    return replace(result, null=TOGETHER.format(rho)) if rho else result


def _smallest(drawn: Floats, rows: Floats, expected: Floats, side: Side) -> Floats:
    """The smallest posterior probability over the grades of each simulated data set."""
    least: Floats = np.ones(len(drawn))
    for j in range(len(rows)):
        seen, back = np.unique(drawn[:, j], return_inverse=True)
        tails: Floats = posterior_tails(seen, rows[j], expected[j] / rows[j], side)
        np.minimum(least, tails[back], out=least)
    return least


# ---- Grades: a covariate's levels, or distinct scores ----


@dataclass(frozen=True)
class Grades:
    """Entries in order of their grade, where each grade begins, and its name."""

    q: Scored
    first: NDArray[np.int64]
    names: tuple[str, ...]
    reads: str


def _graded(data: Predictions, by: str | None) -> Grades:
    rows = covered(data, "the Jeffreys test")
    if by is None:
        q = scored(rows.p, rows.y)
        first = runs_of(q.p)
        if len(first) > FEW:
            raise BadInput(f"{len(first):,} distinct scores are too many grades: name the column of the grade in by=")
        return Grades(q, first, tuple(f"{s:.6g}" for s in q.p[first]), "rows")
    table = rows.covariates
    require([by], () if table is None else tuple(table.schema.names), "grade")
    profile, column = LevelCounts(by), table.column(by)
    profile.update(column)
    levels = profile.variable()
    q = scored(rows.p, rows.y, grade=levels.codes(column).astype(np.int64))
    first = runs_of(q.grades)
    return Grades(q, first, tuple(levels.labels[i] for i in q.grades[first]), "rows")


def _sketched(data: Sketch, by: str | None) -> Grades:
    if by is None:
        whole = everyone(data)
        q = Scored.of_cells(whole.cells)
        if len(q.p) > FEW or not whole.single[whole.cells.occupied()].all():
            raise NotComputable(
                "the sketch's cells hold several scores and are no grades: sketch with by=, or pass rows"
            )
        return Grades(q, np.arange(len(q.p)), tuple(f"{s:.6g}" for s in q.p), f"{whole.grid} score cells")
    sketch = data.checked()
    spec = sketch.spec
    require([by], tuple(v.name for v in spec.variables), "grade")
    start = sum(spec.sizes[: spec.groupings.index((by,))])
    parts, names = [], []
    for i, label in enumerate(spec.by_name[by].labels):
        entries = group(sketch, start + i)
        if entries.n:
            parts.append(Scored.of_cells(entries.cells))
            names.append(label)
    if not parts:
        raise NotComputable("there are no rows")
    first = np.cumsum([0, *(len(q.p) for q in parts[:-1])])
    p, events, rows = (np.concatenate([getattr(q, k) for q in parts]) for k in ("p", "events", "rows"))
    cells = f"{data.group_cells.shape[2]} score cells a grade"
    return Grades(Scored(p, events, rows), first, tuple(names), cells)


grades_of = ByKind(rows=_graded, counts=_sketched)
