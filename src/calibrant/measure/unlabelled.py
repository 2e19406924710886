"""Who is without a label: the share by group and by range of the score, and how these people differ from the others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, names
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sketches.sums import CELLS
from calibrant.errors import NotComputable
from calibrant.results import Curve
from calibrant.stats.nulls import holm
from calibrant.views.unlabelled import Cells, kept_sketch

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
    """P-values that hold simultaneously (Holm); what is None stays so."""
    together = iter(holm([p for p in p_values if p is not None]))
    return [None if p is None else float(next(together)) for p in p_values]


# ---- The share of people without a label, by group and by range of the score ----

METHOD = "diagnose.missing_labels"
RANGES = 5  # of the score
MOST = 100
COLUMNS = ("about", "variable", "level", "rows", "unlabelled", "share", "difference", "p_value", "p_adjusted")


class Part(NamedTuple):
    """People with a label, and without, of one level or one range."""

    level: str
    rows: int
    unlabelled: int

    @property
    def people(self) -> int:
        return self.rows + self.unlabelled


class Family(NamedTuple):
    """The levels of one variable, or the ranges of the score, which take in everyone."""

    about: str
    variable: str
    parts: Sequence[Part]


@takes_arrays
def missing_labels(
    data: Predictions | Sketch,
    *,
    by: Iterable[str] | str | None = None,
    intersections: bool = False,
    ranges: int = RANGES,
    seed: int = 0,
) -> Curve:
    r"""Tell who is without a label: by range of the score, and by group.

    Estimand: the share of people without a label in each level, and the standardised difference of the level's share
    among those without a label and among the others, ``(a - b) / sqrt((a (1 - a) + b (1 - b)) / 2)``.

    Parameters
    ----------
    data : Predictions or Sketch
        Made with ``missing="keep"``.
    by : str or sequence of str, optional
        Covariates whose levels are reported; a sketch brings its own groups.
    intersections : bool
        Also every pair of them.
    ranges : int from 2 to 100
        Ranges of the score, with about as many people each; fewer where scores are tied.
    seed : int
        Of the sketch; nothing here is random.

    Returns
    -------
    Curve
        A line for each range and each level: ``about`` ("score" or "group"), ``variable``, ``level``, ``rows`` with a
        label, ``unlabelled``, ``share`` of people without one, ``difference`` (standardised; None where all are in the
        level on one side and nobody on the other), and of the whole variable ``p_value`` and ``p_adjusted`` (Holm).
        Rows are counted, whatever they weigh.

    Raises
    ------
    NotComputable
        Rows without a label were not kept, or none lacks one.

    Notes
    -----
    **Assumes.** For the test: people lack a label independently of each other. No label is read.
    **Guarantee.** None for shares and differences, which are of these very people; p-values are asymptotic.
    **Method.** Pearson's test that the share is the same at every level, left out where expected counts are too small
    (Cochran's rule), and of rows that have clusters or weights. Not found is not proof that labels are missing at
    random: that is about outcomes nobody has.
    **Cost.** Milliseconds.
    **Reads.** The sketch.

    References
    ----------
    P. C. Austin (2009), Balance diagnostics, doi:10.1002/sim.3697. W. G. Cochran (1954), Strengthening the common
    chi-square tests, doi:10.2307/3001616.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, sex = rng.uniform(size=4000), rng.choice(["f", "m"], 4000)
    >>> y = (rng.uniform(size=4000) < p).astype(float)
    >>> y[rng.uniform(size=4000) < np.where(sex == "f", 0.3, 0.1)] = np.nan
    >>> found = cal.diagnose.missing_labels(cal.predictions(y, p, {"sex": sex}, missing="keep"), by="sex")
    >>> [round(share, 1) for share in found.columns["share"][-2:]]
    [0.3, 0.1]
    """
    count, named = check_int("ranges", ranges, 2, MOST), names("by", by)
    kept = kept_sketch(data, seed, named, intersections)
    cells = Cells.of(kept)
    if not cells.missing:
        raise NotComputable("no label is missing")
    return compared((by_score(cells, kept.spec.score, cells.ranges(count)), *_by_group(kept)), cells)


def by_score(cells: Cells, score: str, ranges: Sequence[tuple[int, int]]) -> Family:
    """The people in each range of the score."""
    return Family("score", score, [_part(cells.part(a, b), a, b) for a, b in ranges])


def _part(there: Cells, low: int, high: int) -> Part:
    return Part(f"{low / CELLS:.3g} to {high / CELLS:.3g}", there.rows, there.missing)


def _by_group(sketch: Sketch) -> Iterable[Family]:
    """Yield the levels of each grouping that have people."""
    rows, first = sketch.group_levels.sum(axis=(1, 2, 3)), 0
    apart = sketch.parts["unlabelled"].stored[1:, :, 0].sum(axis=1)
    for g, (variables, size) in enumerate(zip(sketch.spec.groupings, sketch.spec.sizes, strict=True)):
        levels = [", ".join(level for _, level in name) for name in sketch.spec.group_names(g)]
        parts = [Part(v, int(rows[first + i]), int(apart[first + i])) for i, v in enumerate(levels)]
        yield Family("group", ", ".join(variables), [part for part in parts if part.people])
        first += size


def compared(families: Sequence[Family], cells: Cells, reported: Sequence[Sequence[Part]] = ()) -> Curve:
    """Families as a table; `reported` are their parts as they may be reported, where that is not exactly."""
    p_values = [
        independence([s.rows for s in f.parts], [s.unlabelled for s in f.parts]) if cells.apart else None
        for f in families
    ]
    lines = []
    for f, parts, p, together in zip(
        families, reported or [f.parts for f in families], p_values, adjusted(p_values), strict=True
    ):
        n, m = sum(s.rows for s in parts), sum(s.unlabelled for s in parts)
        for s in parts:
            share = s.unlabelled / max(s.people, 1)
            difference = standardised_difference(s.unlabelled, m, s.rows, n)
            lines.append((f.about, f.variable, *s, share, difference, p, together))
    columns = dict(zip(COLUMNS, map(tuple, zip(*lines, strict=True)), strict=True))
    return Curve(method=METHOD, columns=columns, settings={"rows": cells.rows, "unlabelled": cells.missing})
