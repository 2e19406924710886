"""Whether the probabilities hold at every site: how far clusters differ, and what a new one is to expect."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from calibrant.audit.context import AuditContext, Check, CheckResult, Cost
from calibrant.measure.heterogeneity import heterogeneity
from calibrant.results import Curve

CODE, METHOD = "sites", "audit.sites"
FEWEST = 5  # clusters of as many rows as are shown, from which on they are taken for sites
MOST = 60  # of them in a record: more would be no picture
CLIP = 1e-6  # of scores of 0 and 1, whose logits are infinite
STEP = 20  # of a logit: what is reported of one site is in steps of a twentieth, ends outward


def sites(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Compare the clusters where five or more of them have rows enough.

    A cluster may be one person with many rows, so that of a single one no name and no count is reported: its place
    among the others, its intercept and the limits, rounded.
    """
    rows = context.sketch.rows() if context.sketch.spec.cluster else None
    if rows is None or rows.cluster is None:
        return CheckResult()
    count = np.unique(rows.cluster, return_counts=True)[1]
    if int((count >= context.mask).sum()) < FEWEST:
        return CheckResult()
    context.needs_outcomes()
    clip = CLIP if bool(((rows.p == 0.0) | (rows.p == 1.0)).any()) else 0.0
    result = heterogeneity(rows, clip=clip, alpha=context.judging.alpha)
    return CheckResult(status="measured", curves={CODE: _reported(context, result)})


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
    return Curve(method=METHOD, columns=columns, settings=settings)


DECLARED = (
    Check(
        code=CODE,
        order=26,
        make=sites,
        optional=True,
        step="comparing sites",
        cost=Cost(flat=0.3, sample_rows=0.004),
        crosses=True,
    ),
)
