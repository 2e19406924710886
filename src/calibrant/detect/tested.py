"""What the tests of the score alone read, and how they turn a statistic into an outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.certify.population import everyone
from calibrant.data.identity import identities_of
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.seed import checked_seed
from calibrant.data.sketch import Sketch
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Outcome
from calibrant.stats.scored import Scored, scored
from calibrant.stats.simulate import p_value

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
    if data.clusters is not None:
        raise NotComputable(f"{what} takes rows as independent; those of one cluster are not: leave clusters out")
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
