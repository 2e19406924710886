"""Who is without an outcome: how a set of people differs among those with one and those without, and a test of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.nulls import holm

LEAST, USUAL, FEW = 1.0, 5.0, 0.2  # expected counts: none under the first, at most a fifth under the second (Cochran)


def standardised_difference(part: int, of: int, rest: int, of_rest: int) -> float | None:
    """The difference of two shares over their pooled standard deviation; None where nobody varies, yet differs.

    Of the people without an outcome `part` are in the set, of those with one `rest`. From 0.1 on it is commonly held
    to matter.
    """
    a, b = part / max(of, 1), rest / max(of_rest, 1)
    spread = math.sqrt((a * (1.0 - a) + b * (1.0 - b)) / 2.0)
    if spread > 0.0:
        return (a - b) / spread
    return 0.0 if a == b else None


def independence(rows: Sequence[int], unlabelled: Sequence[int]) -> float | None:
    """The p-value of Pearson's test that the share without an outcome is the same in every set.

    None where there is nothing to compare, or too few people for the law of the statistic (Cochran's rule).
    """
    table: NDArray[np.int64] = np.array([rows, unlabelled], dtype=np.int64)
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2 or not table.sum(axis=1).all():
        return None
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    if expected.min() < LEAST or (expected < USUAL).mean() > FEW:
        return None
    from scipy.stats import chi2_contingency

    return float(chi2_contingency(table, correction=False).pvalue)


def adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values that hold simultaneously (Holm); what is None stays so."""
    together = iter(holm([p for p in p_values if p is not None]))
    return [None if p is None else float(next(together)) for p in p_values]
