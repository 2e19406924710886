"""Whether rows share clusters that nobody named: the columns, whatever they are called, whose rows are correlated."""

from __future__ import annotations

from collections.abc import Mapping

from calibrant.audit.context import NO_TESTS, AuditContext, Check, CheckResult, Cost, NotRun
from calibrant.results import Curve
from calibrant.stats.clusters.shared_values import LEVEL

CODE, METHOD = "dependence", "audit.dependence"


def dependence(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Look at every column whose values rows share, at pairs and at triples, where nobody named the cluster."""
    if context.sketch.spec.cluster:
        return CheckResult()
    looked = context.clusters_sought
    if looked is None:
        raise NotRun(NO_TESTS)
    columns = {
        "columns": tuple(one.columns for one in looked.detected),
        "clusters": tuple(one.clusters for one in looked.detected),
        "rows": tuple(one.rows for one in looked.detected),
        "design_effect": tuple(one.design_effect for one in looked.detected),
        "trimmed": tuple(one.trimmed for one in looked.detected),
        "p_adjusted": tuple(one.p_value for one in looked.detected),
        "one_outcome": tuple(one.one_outcome for one in looked.detected),
        "kind": tuple(one.kind for one in looked.detected),
        "refutes": tuple(one.refutes for one in looked.detected),
    }
    settings = {
        "level": LEVEL,
        "columns": looked.columns,
        "joint": looked.joint,
        "identifiers": context.sketch.shared is not None,  # columns too that are no covariates
    }
    return CheckResult(status="measured", curves={CODE: Curve(method=METHOD, columns=columns, settings=settings)})


DECLARED = (
    Check(
        code=CODE,
        order=25,
        make=dependence,
        step="testing for rows that share a cluster",
        cost=Cost(flat=0.05, sample_rows=0.01),
        crosses=True,
        asks="Rows that share a cluster",
        means="rows that share a column, such as a patient's, may be correlated beyond what their scores explain",
    ),
)
