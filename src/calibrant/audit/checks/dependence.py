"""Whether rows share clusters that nobody named: columns that rows share as those of one person do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.audit.context import NO_TESTS, AuditContext, Check, CheckResult, Cost, NotRun
from calibrant.audit.record import SAME_VARIANCE
from calibrant.data.columns import Floats
from calibrant.data.sketches.parts import Candidates, SampledRows
from calibrant.data.sketches.sample import COVARIATES, doubles_of, labels_of, scores_of
from calibrant.data.specs.coding import Coding
from calibrant.data.specs.column_names import FEWEST, names_cluster, numbered
from calibrant.data.survey import CANDIDATES
from calibrant.results import Curve
from calibrant.stats.clusters.intraclass_correlation import IntraclassCorrelation, intraclass_correlation

CODE, METHOD = "dependence", "audit.dependence"
LEVEL = 0.01  # of all columns together
SHARED = 1.05  # rows a cluster, on average, from which on rows share it


class Candidate(NamedTuple):
    """A column that may say which rows share clusters, and of the rows held that have a value their cluster.

    `share` is that of all rows which these are, a uniform sample; `clusters` that of all clusters which are held whole.
    """

    name: str
    cluster: NDArray[np.int64]
    p: Floats
    y: Floats
    share: float = 1.0
    clusters: float = 1.0

    @property
    def shared(self) -> bool:
        """Whether clusters are enough to say anything, and rows share them."""
        clusters = len(np.unique(self.cluster))
        return clusters >= FEWEST and len(self.cluster) >= SHARED * clusters


def dependence(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Test every column that rows may share as those of one person do, where nobody named the cluster."""
    if context.sketch.spec.cluster:
        return CheckResult()
    if context.sketch.spec.candidates is None and "sample" not in context.sketch.parts:
        raise NotRun(NO_TESTS)
    result = tuple(_tested(candidates(context), context.seed))
    columns = {k: tuple(row[i] for row in result) for i, k in enumerate(NAMES)}
    seen = context.sketch.spec.candidates is not None  # identifiers too, which are no covariates
    settings = {"level": LEVEL, "simultaneous": "Bonferroni", "identifiers": seen}
    curve = Curve(method=METHOD, columns=columns, settings=settings)
    return CheckResult(status="measured", curves={CODE: curve})


NAMES = ("column", "clusters", "rows", "design_effect", "p_adjusted", "found")


def _tested(named: list[Candidate], seed: int) -> Iterator[tuple[str, int, int, float, float, bool]]:
    """Yield each column with its design effect, the largest first."""
    reported: list[tuple[Candidate, IntraclassCorrelation]] = []
    for one in named:
        at = intraclass_correlation(one.cluster, one.p, one.y, share=one.share, level=LEVEL / len(named), seed=seed)
        reported.append((one, at))
    for one, at in sorted(reported, key=lambda pair: -pair[1].design_effect):
        adjusted = min(at.p_value * len(named), 1.0)
        shown = adjusted <= LEVEL and at.design_effect > SAME_VARIANCE
        yield (
            one.name,
            round(at.clusters / one.clusters),
            round(at.rows / one.clusters),
            at.design_effect,
            adjusted,
            shown,
        )


def candidates(context: AuditContext) -> list[Candidate]:
    """The columns that may say which rows share clusters, with the rows held of them; groups are none.

    Whole clusters where the sketch holds them, and else, or where its clusters have too many rows, the rows for tests.
    """
    kept, sample, named = (
        context.sketch.parts.get("candidates"),
        context.sketch.parts.get("sample"),
        context.sketch.spec.candidates,
    )
    whole = {} if kept is None else {one.name: one for one in _of_clusters(kept) if one.shared}
    rows = () if sample is None else _of_rows(context, sample, tuple(whole), named)
    return [*whole.values(), *(one for one in rows if one.shared)][:CANDIDATES]


def _of_clusters(kept: Candidates) -> Iterator[Candidate]:
    for name in kept.counted:
        yield Candidate(name, *kept.of(name), clusters=kept.share(name))


def _of_rows(
    context: AuditContext, sample: SampledRows, known: tuple[str, ...], named: tuple[str, ...] | None
) -> Iterator[Candidate]:
    """Yield columns of rows for tests that are called as a cluster is, or whose values are names with a number each.

    Of their values no label and no score is read.
    """
    p, y = scores_of(sample.lines), labels_of(sample.lines).astype(np.float64)
    for j, coding in enumerate((*sample.numbers, *sample.categories), COVARIATES):
        if coding.name in context.sketch.spec.by_name or coding.name in known or not _may_be(coding):
            continue
        if named is None or coding.name in named:
            cluster = _cluster(coding, sample.lines[:, j])
            there = cluster >= 0
            yield Candidate(coding.name, cluster[there], p[there], y[there], min(len(p) / context.sketch.n, 1.0))


def _may_be(coding: Coding) -> bool:
    """Whether a covariate may be what rows belong to, by its name or by how its values are written."""
    if coding.kind == "number":
        return coding.whole and names_cluster(coding.name)
    return coding.kind == "category" and (names_cluster(coding.name) or numbered(coding.levels))


def _cluster(coding: Coding, stored: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cluster of each row; negative where the value is missing, or one of those that share a level."""
    if coding.kind == "category":
        return np.where(stored < len(coding.levels), stored, -1)
    values = doubles_of(stored)
    clusters = np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return np.where(np.isnan(values), -1, clusters)


DECLARED = (
    Check(
        code=CODE,
        order=25,
        make=dependence,
        step="testing for rows that share a cluster",
        cost=Cost(flat=0.05, sample_rows=0.002),
        crosses=True,
        asks="Rows that share a cluster",
        means="rows that share a column, such as a patient's, may be correlated beyond what their scores explain",
    ),
)
