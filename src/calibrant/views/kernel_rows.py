"""Rows as a kernel reads them: checked, coded, scaled, and equal ones joined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, choice, names, number
from calibrant.data.predictions import MulticlassPredictions, Predictions, checked_data, codes_of
from calibrant.data.sketches.sample import identities_of
from calibrant.data.specs.coding import Coding, codings, encode
from calibrant.errors import BadInput, NotComputable
from calibrant.stats.local.kernel_sums import DEGREE, FAMILIES, ClusterRows, Family, Kernel, Rows, typical_distance
from calibrant.views.kinds import refuse_rows
from calibrant.views.people import people_of

Floats = NDArray[np.float64]
Checked = TypeVar("Checked", Predictions, MulticlassPredictions)

NULL = "given score and covariates, outcomes are independent with the probabilities stated"
CONTRADICTED = "a row with score 0 or 1 has the other outcome"
NO_WEIGHTS = "this kernel statistic has no form for weighted rows"
UNWEIGHTED = (
    f"{NO_WEIGHTS}: use local_calibration_test with default features, or of the score alone kernel_calibration_test"
)
UNWEIGHTED_CLASSES = (
    f"{NO_WEIGHTS} of several classes: use local_calibration_test on data.top_label(), or on data.one_vs_rest(k)"
)
SINGLE = "a single row has no pairs: pass two rows or more"
LEAST_DRAWS = 19  # so that a p-value can be 0.05
LARGEST = 50_000  # distinct rows: about a CPU-minute at 999 draws, and four times that for twice as many
MOST_DEGREE = 10
USUAL = 2.0  # width, in median distances
NARROWEST, WIDEST = 1e-9, 1e9  # widths whose squares, and those of the distances in them, are numbers
FLAT = 1e-12  # a deviation below it is rounding: every score is the same


def checked_family(family: object, degree: object) -> tuple[Family, int]:
    """The family of a kernel and the degree that a polynomial has, 3 if none is given."""
    chosen = choice("family", family, FAMILIES)
    if degree is not None and chosen != "polynomial":
        raise BadInput(f"degree={degree!r} has no meaning with family={chosen!r}: leave it out")
    return chosen, DEGREE if degree is None else check_int("degree", degree, 1, MOST_DEGREE)


def checked_width(name: str, value: object, hint: str = "") -> float:
    """A width; refuse one whose kernel is beyond what numbers hold."""
    return number(name, value, least=NARROWEST, most=WIDEST, hint=hint)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Which kernel on standardised score and covariates."""

    family: Family = "gaussian"
    degree: int | None = None  # of a polynomial; 3 by default
    # `score_width` and `covariate_width`: in standard deviations; by default twice the median distance between rows.
    score_width: float | None = None
    covariate_width: float | None = None

    def __post_init__(self) -> None:
        checked_family(self.family, self.degree)
        for name in ("score_width", "covariate_width"):
            if getattr(self, name) is not None:
                checked_width(name, getattr(self, name), hint="or None for the default")

    def of(self, unit: Kernel, seed: int) -> tuple[Kernel, dict[str, str | float]]:
        """This kernel, given that of width one, and what it is called in settings."""
        family, degree = checked_family(self.family, self.degree)
        usual = USUAL * typical_distance(unit, identities_of(unit.rows, seed))
        widths = self.score_width or usual, self.covariate_width or usual
        reported: dict[str, str | float] = {"family": family, "score_width": widths[0], "covariate_width": widths[1]}
        made = narrowed(replace(unit, family=family, degree=degree), *widths)
        return made, reported | ({"degree": degree} if family == "polynomial" else {})


def checked_rows(data: object, **reasons: str) -> Predictions:
    """Rows of two classes; refuse what is none, and by its reason what no proof covers, such as ``weights``."""
    return _checked(checked_data(data, Predictions), reasons)


def checked_classes(data: object, **reasons: str) -> MulticlassPredictions:
    """Rows of several classes; refuse other data, and by its reason what no proof covers."""
    return _checked(checked_data(data, MulticlassPredictions), reasons)


def _checked(rows: Checked, reasons: Mapping[str, str]) -> Checked:
    refuse_rows(rows, **reasons)
    if rows.n < 2:
        raise NotComputable(SINGLE)
    return rows


def coded(data: Predictions | MulticlassPredictions, variables: Iterable[str] | str | None) -> tuple[Coding, ...]:
    """How the covariates asked for are coded; refuse data without any."""
    how = codings(data.covariates, None if variables is None else names("variables", variables, what="a covariate"))
    if not how:
        raise BadInput("no covariates: pass predictions(..., covariates=...) or use detect.kernel_calibration_test")
    return how


def checked_size(kernel: Kernel) -> None:
    """Refuse more distinct rows than all pairs are summed of."""
    if kernel.rows > LARGEST:
        raise NotComputable(
            f"{kernel.rows:,} distinct rows: all pairs are summed up to {LARGEST:,}; the default features take any "
            "number"
        )


def residuals_of(data: Predictions | MulticlassPredictions) -> tuple[Floats, Floats]:
    """Scores and residuals: a column, or one of each class."""
    if isinstance(data, MulticlassPredictions):
        out, own = 0.0 - data.p, (np.arange(data.n), data.y)
        out[own] = 1.0 - data.p[own]
        return data.p, out
    return data.p[:, None], (data.y - data.p)[:, None]


def rows_of(data: Predictions, ids: NDArray[np.uint64]) -> Rows:
    """The rows of predictions, with their clusters."""
    rows = Rows(data.p, np.ones(data.n), data.y.astype(np.float64), ids)
    if data.cluster is None:
        return rows
    people_of(data).needs_two()
    return ClusterRows(rows.rate, rows.rows, rows.events, ids, clusters=codes_of(data).astype(np.int64))


def cluster_kernel(data: Predictions | MulticlassPredictions, how: tuple[Coding, ...]) -> Kernel:
    """The Gaussian kernel of width one: standardised score first, then the numbers; categories as penalties.

    The score is a column, or one of each class, which are divided by one deviation, the root of their added variances.
    A category counts as a standardised coordinate: rows of different levels are at squared distance ``2 / P(differ)``,
    which takes ``1 / P(differ)`` off the exponent. A category of one level is left out.
    """
    p, encoded = data.p.reshape(len(data.p), -1), encode(data.covariates, how)
    spread = float(np.sqrt(p.var(axis=0).sum()))
    score = (p - p.mean(axis=0)) / (spread if spread > FLAT else 1.0)
    differ = np.array([1.0 - np.sum((np.bincount(c) / len(p)) ** 2) for c in encoded.codes.T])
    kept = differ > 0
    points = np.column_stack([score, encoded.scaled])
    return Kernel(points, encoded.codes[:, kept], 1.0 / differ[kept], lead=p.shape[1])


def narrowed(kernel: Kernel, score_width: float, covariate_width: float) -> Kernel:
    """A kernel of width one with other widths."""
    widths = np.full(kernel.points.shape[1], covariate_width)
    widths[: kernel.lead] = score_width
    return replace(kernel, points=kernel.points / widths, penalties=kernel.penalties / covariate_width**2)


def joined(kernel: Kernel, rows: Rows) -> tuple[Kernel, Rows]:
    """Join equal rows into cells if that leaves at most half as many; rows in clusters stay apart."""
    first, cells = rows.joined(np.column_stack([rows.rate, kernel.points[:, 1:], kernel.codes]))
    return replace(kernel, points=kernel.points[first], codes=kernel.codes[first]), cells
