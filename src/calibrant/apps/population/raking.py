"""Raking: a factor for each level of each margin, so that weighted shares are those of a population."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.errors import NotComputable
from calibrant.toolkit.data import Codes, Floats

ROUNDS = 2000
CLOSE = 1e-10  # by which a share may miss its target


@dataclass(frozen=True, kw_only=True, eq=False)
class Margin:
    """Levels of one column, or of several jointly, in rows and in a population."""

    columns: tuple[str, ...]
    labels: tuple[str, ...]
    codes: Codes  # shape (n,): the level of each row
    shares: Floats  # shape (len(labels),): of the population; they add up to one
    # Shape (len(labels),): rows of the population in each level, where it was given as rows.
    people: Floats | None = None

    @property
    def name(self) -> str:
        """The columns, as one name."""
        return " x ".join(self.columns)

    def current(self, weights: Floats) -> Floats:
        """The weighted share of rows in each level."""
        values: Floats = np.bincount(self.codes, weights, len(self.labels)) / weights.sum()
        return values


def factors(margins: Sequence[Margin], base: Floats) -> tuple[Floats, ...]:
    """A factor for each level of each margin, by which rows of starting weights `base` have its shares.

    Iterative proportional fitting; with one margin, post-stratification, exact after one step. Levels that no row has
    must have share 0; theirs is 1.

    Raises
    ------
    NotComputable
        The margins contradict one another on these rows.
    """
    results = [np.ones(len(m.labels)) for m in margins]
    weights = base / base.sum()
    for _ in range(ROUNDS):
        for m, factor in zip(margins, results, strict=True):
            kept = m.current(weights)
            step = np.divide(m.shares, kept, out=np.ones_like(kept), where=kept > 0)
            factor *= step
            weights = weights * step[m.codes]
        gaps = [float(np.abs(m.current(weights) - m.shares).max()) for m in margins]
        if max(gaps) <= CLOSE:
            return tuple(results)
    worst = margins[int(np.argmax(gaps))].name
    raise NotComputable(
        f"raking does not settle: the margins contradict one another on these rows, {worst!r} is off by "
        f"{100 * max(gaps):.2g} points after {ROUNDS:,} rounds; name fewer margins, or pool their levels"
    )
