"""Whether rows belong together that nobody named: columns that rows share as those of one person do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.audit.question import NO_TESTS, QUICK, Answer, Case, Cost, NotRun, Question
from calibrant.audit.record import ALIKE, Check
from calibrant.data.sketches.parts import SampledRows
from calibrant.data.sketches.sample import COVARIATES, doubles_of, labels_of, scores_of
from calibrant.data.specs.coding import Coding
from calibrant.look.roles import names_unit
from calibrant.results import Curve
from calibrant.stats.units.alike import Alike, alike

CODE, METHOD = "dependence", "audit.dependence"
LEVEL = 0.01  # of all columns together
FEWEST = 20  # units, under which nothing by units could be certified
SHARED = 1.05  # rows a unit, on average, from which on rows share it
MOST = 6  # columns
COUNTED = re.compile(r"([^\W\d]+[\W_]*)[0-9]+")  # a value such as "P0012"


class Candidate(NamedTuple):
    """A column that may say which rows belong together, and the unit of each row held; negative where it has none."""

    name: str
    unit: NDArray[np.int64]


def dependence(case: Case, _: Mapping[str, Curve]) -> Answer:
    """Test every column that rows may share as those of one person do, where nobody named the unit."""
    if case.whole.spec.cluster:
        return Answer()
    if case.judging.quick:
        raise NotRun(QUICK)
    sample = case.whole.parts.get("sample")
    if sample is None:
        raise NotRun(NO_TESTS)
    found = tuple(_tested(case, sample))
    columns = {k: tuple(row[i] for row in found) for i, k in enumerate(NAMES)}
    curve = Curve(method=METHOD, columns=columns, settings={"level": LEVEL, "simultaneous": "Bonferroni"})
    return Answer(checks=(Check(code=CODE, status="measured"),), curves={CODE: curve})


NAMES = ("column", "units", "rows", "design_effect", "p_adjusted", "found")


def _tested(case: Case, sample: SampledRows) -> Iterator[tuple[str, int, int, float, float, bool]]:
    """Yield each column with its design effect, the largest first."""
    named = candidates(case, sample)
    p, y = scores_of(sample.lines), labels_of(sample.lines).astype(np.float64)
    share = min(len(p) / case.whole.n, 1.0)
    told: list[tuple[str, Alike]] = []
    for name, unit in named:
        there = unit >= 0
        at = alike(unit[there], p[there], y[there], share=share, level=LEVEL / len(named), seed=case.seed)
        told.append((name, at))
    for name, at in sorted(told, key=lambda one: -one[1].design_effect):
        adjusted = min(at.p_value * len(named), 1.0)
        yield name, at.units, at.rows, at.design_effect, adjusted, adjusted <= LEVEL and at.design_effect > ALIKE


def candidates(case: Case, sample: SampledRows) -> list[Candidate]:
    """Return the columns that are called as a unit is, or whose values are names with a number each; groups are none.

    Of their values no label and no score is read.
    """
    found = []
    for j, coding in enumerate((*sample.numbers, *sample.categories), COVARIATES):
        if coding.name in case.whole.spec.by_name or not _may_be(coding):
            continue
        unit = _unit(coding, sample.lines[:, j])
        units, rows = len(np.unique(unit[unit >= 0])), int((unit >= 0).sum())
        if units >= FEWEST and rows >= SHARED * units:
            found.append(Candidate(coding.name, unit))
    return found[:MOST]


def _may_be(coding: Coding) -> bool:
    """Tell whether a covariate may be what rows belong to, by its name or by how its values are written."""
    if coding.kind == "number":
        return coding.whole and names_unit(coding.name)
    if coding.kind != "category":
        return False
    return names_unit(coding.name) or numbered(coding.levels)


def numbered(values: tuple[str, ...]) -> bool:
    """Tell whether values are one word with a number each, such as P0012: names dealt out, not kinds of something."""
    starts = {m[1] if (m := COUNTED.fullmatch(value)) else "" for value in values}
    return len(values) >= FEWEST and len(starts) == 1 and starts != {""}


def _unit(coding: Coding, held: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the unit of each row; negative where the value is missing, or one of those that share a level."""
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
        step="looking for rows that belong together",
        cost=Cost(flat=0.05, held=0.002, tests=True),
        asks="Rows that belong together",
        means="rows that share a column, such as a patient's, may be alike beyond what their scores explain",
    ),
)
