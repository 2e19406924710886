"""What the tests of the score alone read, and how a statistic becomes an outcome, with or without a tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calibrant.arguments import choice, number
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.sample import identities_of
from calibrant.data.seed import checked_seed
from calibrant.data.sketch import Sketch
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Outcome
from calibrant.stats.classical import Scored, along_logit, group_squares, paired_totals, scored
from calibrant.stats.cusum import Alternative
from calibrant.stats.nulls import p_value
from calibrant.views.population import everyone

# ---- What the tests of the score alone read, and how they turn a statistic into an outcome ----

Null = Literal["simulated", "asymptotic"]
CALIBRATED = "the outcomes are independent and happen with the probabilities given"
EXACT = "exact simulation"
FROM_CELLS = "simulation from cells"
ASYMPTOTIC = "asymptotic"
IMPOSSIBLE = "exact: outcomes happened that have probability zero"
MOST_DRAWS = 1_000_000


@dataclass(frozen=True)
class Tested:
    """Scored rows with the settings of a test.

    Parameters
    ----------
    q : Scored
    draws : int
    null : {"simulated", "asymptotic"}
    seed : int
    reads : str
        ``"rows"``, or the cells of the sketch.
    """

    q: Scored
    draws: int
    null: Null
    seed: int
    reads: str

    @property
    def simulates(self) -> bool:
        """Whether the p-value comes from simulated outcomes."""
        return self.null == "simulated"

    @property
    def ids(self) -> Any:
        """Identities of the entries: their rank by score, so that neither row order nor chunks matter."""
        return identities_of(len(self.q.p), self.seed)

    @property
    def law(self) -> str:
        """Where the p-value comes from."""
        return ASYMPTOTIC if not self.simulates else EXACT if self.reads == "rows" else FROM_CELLS

    def where(self, keep: Any) -> Tested:
        """Return the entries that are kept, with the same settings."""
        return Tested(self.q.where(keep), self.draws, self.null, self.seed, self.reads)

    def outcome(
        self, name: str, statistic: float, p: float, alternative: str, impossible: int, settings: Any, parts: Any
    ) -> Outcome:
        """Wrap a result; outcomes of probability zero refute calibration whatever the statistic says."""
        known: Mapping[str, Any] = {
            "draws": self.draws if self.simulates else 0,
            "null": self.null,
            "reads": self.reads,
            "seed": self.seed,
            "weights": self.q.weight is not None,
            **settings,
        }
        return Outcome(
            method=f"detect.{name}",
            statistic=float(statistic),
            p_value=0.0 if impossible else float(p),
            alternative=alternative,
            null=CALIBRATED,
            law=IMPOSSIBLE if impossible else self.law,
            settings=known,
            parts={"rows": self.q.n, "impossible": impossible, **parts},
        )

    def judge(self, statistic: float, simulated: Any, tail: float) -> float:
        """Return the p-value by the null asked for."""
        return p_value(statistic, simulated) if self.simulates else tail


def checked_null(draws: Any, null: Any, seed: Any) -> None:
    """Refuse settings that no test takes."""
    if null not in ("simulated", "asymptotic"):
        raise BadInput(f"null={null!r}: pass 'simulated' or 'asymptotic'")
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or not 19 <= draws <= MOST_DRAWS:
        raise BadInput(f"draws={draws!r}: pass a whole number from 19 to {MOST_DRAWS:,}, such as 999")
    checked_seed(seed)


def checked_rows(data: Any, what: str, weighted: bool) -> Predictions:
    """Return predictions that the test is defined for, or say why it is not."""
    if isinstance(data, MulticlassPredictions):
        raise BadInput("several classes: pass data.top_label(), or data.one_vs_rest(k) with alpha / K")
    if not isinstance(data, Predictions):
        raise BadInput(
            f"data is a {type(data).__name__}: pass calibrant.predictions(...), calibrant.read(...) or calibrant.sketch(...)"
        )
    if data.cluster is not None:
        raise NotComputable(f"{what} takes rows as independent; those of one cluster are not: leave cluster out")
    if data.weights is not None and not weighted:
        raise NotComputable(f"{what} counts rows and has no form for weights: leave weights out, or use score_test")
    if data.n == 0:
        raise NotComputable("there are no rows")
    return data


def tested(data: Any, draws: Any, null: Any, seed: Any, what: str, weighted: bool) -> Tested:
    """Check everything once; read rows, or the cells of a sketch at their mean score."""
    checked_null(draws, null, seed)
    if isinstance(data, Sketch):
        cells = everyone(data).cells
        return Tested(cell_entries(cells), int(draws), null, int(seed), f"{cells.size} score cells")
    rows = checked_rows(data, what, weighted)
    return Tested(scored(rows.p, rows.y, rows.weights), int(draws), null, int(seed), "rows")


def cell_entries(cells: Any) -> Scored:
    """Return a sketch's occupied cells, each at the mean score of its rows."""
    at = cells.occupied()
    rows = cells.totals[at].sum(axis=1)
    mean = np.clip(cells.score_sums[at].sum(axis=1) / rows, 0.0, 1.0)
    return Scored(mean, cells.totals[at, 1].astype(float), rows, None, None)


def impossible(q: Scored) -> int:
    """Count the outcomes that the scores rule out: cases at 0 and non-cases at 1."""
    return q.impossible_cases + q.impossible_others


# ---- The tests of the score alone, with room for a tolerance: exact, by simulation at both edges of it ----

SIDES = ("two-sided", "greater", "less")


def leaves_room(t: Tested, tolerance: Any, alternative: Any) -> bool:
    """Check both arguments, and tell whether the test is another than that of exact calibration."""
    number("tolerance", tolerance, least=0, below=1, hint="such as 0.05")
    choice("alternative", alternative, SIDES)
    if tolerance == 0.0 and alternative == "two-sided":
        return False
    if not t.simulates:
        raise NotComputable("a tolerance, or one side alone, has no asymptotic law here: pass null='simulated'")
    return True


def grouped_within(t: Tested, groups: Any, tolerance: float, alternative: Alternative) -> tuple[float, float]:
    """Return the Hosmer-Lemeshow statistic beyond a tolerance, and its p-value."""
    q = t.q
    found = float(group_squares(q, groups, tolerance, alternative, (groups.observed, groups.observed)))
    totals = paired_totals(q, groups.first, tolerance, t.ids, t.draws, t.seed)
    return found, p_value(found, group_squares(q, groups, tolerance, alternative, totals))


def scored_within(t: Tested, x: Any, tolerance: float, alternative: Alternative) -> tuple[list[float], list[float]]:
    """Return the score statistics beyond a tolerance (whole, intercept, slope; one-sided: one), and their p-values."""
    pulls = along_logit(t.q, x, alternative)
    found = pulls.observed(t.q, tolerance)
    drawn = pulls.simulated(t.q, tolerance, t.ids, t.draws, t.seed)
    values = [float(found.sum()), *found.tolist()]
    columns = [drawn.sum(axis=1), *drawn.T]
    return values, [p_value(v, d) for v, d in zip(values, columns, strict=True)]


def within(outcome: Outcome, tolerance: float, alternative: Alternative) -> Outcome:
    """Say in an outcome what was tested, and with what tolerance; none of the outcomes is impossible beyond it."""
    t = f"{tolerance:g}"
    null, other = {
        "two-sided": (f"|E[Y | p] - p| <= {t} for every row", "the event rate is off the score somewhere"),
        "greater": (f"E[Y | p] - p <= {t} for every row", "the event rate is above the score somewhere"),
        "less": (f"p - E[Y | p] <= {t} for every row", "the event rate is below the score somewhere"),
    }[alternative]
    by = f" by more than {t}" if tolerance else ""
    settings = {**outcome.settings, "tolerance": float(tolerance), "alternative": alternative}
    return replace(outcome, null=null, alternative=other + by, settings=settings)


def contradicted(t: Tested, tolerance: float, alternative: Alternative) -> int:
    """Count outcomes that have probability zero under every rate within the tolerance."""
    q = t.q
    up = float(q.cases[np.minimum(q.p + tolerance, 1.0) <= 0.0].sum()) if alternative != "less" else 0.0
    other = q.times - q.cases
    down = float(other[np.maximum(q.p - tolerance, 0.0) >= 1.0].sum()) if alternative != "greater" else 0.0
    return int(up + down)
