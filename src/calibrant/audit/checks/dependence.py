"""Whether rows share clusters that nobody named: columns that rows share as those of one person do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.audit.question import NO_TESTS, Answer, Case, Cost, NotRun, Question
from calibrant.audit.record import ALIKE, Check
from calibrant.data.columns import Floats
from calibrant.data.sketches.candidates import Candidates
from calibrant.data.sketches.parts import SampledRows
from calibrant.data.sketches.sample import COVARIATES, doubles_of, labels_of, scores_of
from calibrant.data.specs.coding import Coding
from calibrant.data.specs.unit_names import FEWEST, names_unit, numbered
from calibrant.data.survey import CANDIDATES
from calibrant.results import Curve
from calibrant.stats.units.alike import Alike, alike

CODE, METHOD = "dependence", "audit.dependence"
LEVEL = 0.01  # of all columns together
SHARED = 1.05  # rows a unit, on average, from which on rows share it


class Candidate(NamedTuple):
    """A column that may say which rows share clusters, and of the rows held that have a value their unit.

    `share` is that of all rows which these are, a uniform sample; `units` that of all clusters which are held whole.
    """

    name: str
    unit: NDArray[np.int64]
    p: Floats
    y: Floats
    share: float = 1.0
    units: float = 1.0

    @property
    def shared(self) -> bool:
        """Return whether clusters are enough to say anything, and rows share them."""
        units = len(np.unique(self.unit))
        return units >= FEWEST and len(self.unit) >= SHARED * units


def dependence(case: Case, _: Mapping[str, Curve]) -> Answer:
    """Test every column that rows may share as those of one person do, where nobody named the cluster."""
    if case.whole.spec.cluster:
        return Answer()
    if case.whole.spec.candidates is None and "sample" not in case.whole.parts:
        raise NotRun(NO_TESTS)
    found = tuple(_tested(candidates(case), case.seed))
    columns = {k: tuple(row[i] for row in found) for i, k in enumerate(NAMES)}
    seen = case.whole.spec.candidates is not None  # identifiers too, which are no covariates
    settings = {"level": LEVEL, "simultaneous": "Bonferroni", "identifiers": seen}
    curve = Curve(method=METHOD, columns=columns, settings=settings)
    return Answer(checks=(Check(code=CODE, status="measured"),), curves={CODE: curve})


NAMES = ("column", "units", "rows", "design_effect", "p_adjusted", "found")


def _tested(named: list[Candidate], seed: int) -> Iterator[tuple[str, int, int, float, float, bool]]:
    """Yield each column with its design effect, the largest first."""
    told: list[tuple[Candidate, Alike]] = []
    for one in named:
        at = alike(one.unit, one.p, one.y, share=one.share, level=LEVEL / len(named), seed=seed)
        told.append((one, at))
    for one, at in sorted(told, key=lambda pair: -pair[1].design_effect):
        adjusted = min(at.p_value * len(named), 1.0)
        found = adjusted <= LEVEL and at.design_effect > ALIKE
        yield one.name, round(at.units / one.units), round(at.rows / one.units), at.design_effect, adjusted, found


def candidates(case: Case) -> list[Candidate]:
    """Return the columns that may say which rows share clusters, with the rows held of them; groups are none.

    Whole clusters where the sketch holds them, and else, or where its clusters have too many rows, the rows for tests.
    """
    kept, sample, named = case.whole.parts.get("candidates"), case.whole.parts.get("sample"), case.whole.spec.candidates
    whole = {} if kept is None else {one.name: one for one in _of_units(kept) if one.shared}
    rows = () if sample is None else _of_rows(case, sample, tuple(whole), named)
    return [*whole.values(), *(one for one in rows if one.shared)][:CANDIDATES]


def _of_units(kept: Candidates) -> Iterator[Candidate]:
    for name in kept.held:
        yield Candidate(name, *kept.of(name), units=kept.share(name))


def _of_rows(
    case: Case, sample: SampledRows, known: tuple[str, ...], named: tuple[str, ...] | None
) -> Iterator[Candidate]:
    """Yield columns of rows for tests that are called as a cluster is, or whose values are names with a number each.

    Of their values no label and no score is read.
    """
    p, y = scores_of(sample.lines), labels_of(sample.lines).astype(np.float64)
    for j, coding in enumerate((*sample.numbers, *sample.categories), COVARIATES):
        if coding.name in case.whole.spec.by_name or coding.name in known or not _may_be(coding):
            continue
        if named is None or coding.name in named:
            unit = _unit(coding, sample.lines[:, j])
            there = unit >= 0
            yield Candidate(coding.name, unit[there], p[there], y[there], min(len(p) / case.whole.n, 1.0))


def _may_be(coding: Coding) -> bool:
    """Return whether a covariate may be what rows belong to, by its name or by how its values are written."""
    if coding.kind == "number":
        return coding.whole and names_unit(coding.name)
    return coding.kind == "category" and (names_unit(coding.name) or numbered(coding.levels))


def _unit(coding: Coding, held: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cluster of each row; negative where the value is missing, or one of those that share a level."""
    if coding.kind == "category":
        return np.where(held < len(coding.levels), held, -1)
    values = doubles_of(held)
    units = np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return np.where(np.isnan(values), -1, units)


DECLARED = (
    Question(
        code=CODE,
        order=25,
        make=dependence,
        step="testing for rows that share a cluster",
        cost=Cost(flat=0.05, held=0.002),
        crosses=True,
        asks="Rows that share a cluster",
        means="rows that share a column, such as a patient's, may be correlated beyond what their scores explain",
    ),
)
