"""Clusters: whether rows share some that nobody named, and how far the sites differ that are named."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from calibrant.audit.context import NO_TESTS, AuditContext, Check, CheckResult, Cost, NotRun
from calibrant.measure.heterogeneity import heterogeneity
from calibrant.results import Curve
from calibrant.stats.clusters.shared_values import LEVEL

CODE, DEPENDENCE_METHOD = "dependence", "audit.dependence"


def dependence(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Look at every column whose values rows share, at pairs and at triples, where nobody named the cluster."""
    if not context.people.are_rows:
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
    return CheckResult(
        status="measured", curves={CODE: Curve(method=DEPENDENCE_METHOD, columns=columns, settings=settings)}
    )


# ---- how far sites differ ----

SITES, SITES_METHOD = "sites", "audit.sites"
FEWEST = 5  # clusters of as many rows as are shown, from which on they are taken for sites
MOST = 60  # of them in a record: more would be no picture
CLIP = 1e-6  # of scores of 0 and 1, whose logits are infinite
STEP = 20  # of a logit: what is reported of one site is in steps of a twentieth, ends outward


def sites(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Compare the clusters where five or more of them have rows enough.

    A cluster may be one person with many rows, so that of a single one no name and no count is reported: its place
    among the others, its intercept and the limits, rounded.
    """
    if context.people.are_rows or context.people.columns:
        return CheckResult()
    rows = context.sketch.rows()
    count = np.unique(np.asarray(rows.cluster), return_counts=True)[1]
    if int((count >= context.mask).sum()) < FEWEST:
        return CheckResult()
    context.needs_outcomes()
    clip = CLIP if bool(((rows.p == 0.0) | (rows.p == 1.0)).any()) else 0.0
    result = heterogeneity(rows, clip=clip, alpha=context.judging.alpha)
    return CheckResult(status="measured", curves={SITES: _reported(context, result)})


def _reported(context: AuditContext, result: Curve) -> Curve:
    """The mean and the spread as found, and each site that has rows enough without its name and its counts."""
    c = result.columns
    large = [i for i, n in enumerate(c["rows"]) if n >= context.mask]
    every = max(math.ceil(len(large) / MOST), 1)
    columns = {
        "rank": tuple(range(1, len(large) + 1))[::every],
        "estimate": tuple(round(c["estimate"][i] * STEP) / STEP for i in large)[::every],
        "low": tuple(math.floor(c["low"][i] * STEP) / STEP for i in large)[::every],
        "high": tuple(math.ceil(c["high"][i] * STEP) / STEP for i in large)[::every],
    }
    settings = {
        **result.settings,
        "site": context.sketch.spec.cluster,
        "unshown": result.settings["sites"] - len(large),
    }
    return Curve(method=SITES_METHOD, columns=columns, settings=settings)


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
    Check(
        code=SITES,
        order=26,
        make=sites,
        optional=True,
        step="comparing sites",
        cost=Cost(flat=0.3, sample_rows=0.004),
        crosses=True,
    ),
)
