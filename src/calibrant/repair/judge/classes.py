"""Repairs of all classes at once, judged on rows that none of them was fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.certify.classes import classwise
from calibrant.data.predictions import MulticlassPredictions
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import hash_split, mix
from calibrant.kernels.runtime import one_thread
from calibrant.measure.classes import brier_losses, log_losses, own_class
from calibrant.repair.catalogue import recipes
from calibrant.repair.fitted import Calibrator, overlap
from calibrant.repair.judge.verdict import AS_AUDITED
from calibrant.results import Curve
from calibrant.stats.measures import normal_quantile
from calibrant.views.points import clusters_or_rows, hash_part, points

Floats = NDArray[np.float64]
TRIED = (("Temperature", 10**6), ("VectorScaling", 30), ("Dirichlet", 12))  # with the classes up to which it is quick
FEWEST, TINY = 100, 1e-12  # rows of half of the data; of a probability whose logarithm is taken
FITTED = 5_000_000  # probabilities at most that a repair is fitted to
METHOD = "audit.class_repairs"


@dataclass(frozen=True, slots=True)
class ClassRepair:
    """One repair of all classes, as other rows judge it."""

    repair: str
    # `low` and `high`: certified range of the class-wise error.
    low: float
    high: float
    log_loss: float
    brier: float
    # Change of either score against the probabilities as audited, paired, with the ordinary interval; 0 of these.
    log_loss_change: float
    log_loss_change_low: float
    log_loss_change_high: float
    brier_change: float
    brier_change_low: float
    brier_change_high: float


@dataclass(frozen=True)
class Judged:
    """What other rows say of repairs of all classes, and the repairs."""

    curve: Curve
    calibrators: dict[str, Calibrator]
    fitted: NDArray[np.intp]  # the rows that they were fitted on, by number

    @property
    def recommended(self) -> str:
        """The repair that lowers a score most, if its change is shown to be below zero; else ``"as audited"``.

        The log loss, or the Brier score where a class came true whose probability was 0: its log loss is infinite.
        """
        return str(self.curve.settings["recommended"])


def judged_classes(
    rows: MulticlassPredictions,
    names: Sequence[str] = (),
    *,
    judge_on: MulticlassPredictions | None = None,
    steps: int,
    alpha: float,
    seed: int,
) -> Judged:
    """Fit repairs on half of the rows, or clusters, and judge them on the other half; or on all, judged on others.

    Intervals of changes hold for all repairs together, and so do the certificates of all lines.
    """
    k = rows.p.shape[1]
    names = names or [name for name, most in TRIED if k <= most]
    variables = () if rows.covariates is None else tuple(rows.covariates.schema.names)
    reading = [recipes()[name] for name in names if recipes()[name].covariates]
    if reading and not variables:
        raise BadInput(f"--method {reading[0].command} reads covariates: name them in --by or --variables")
    if not reading:  # rows are copied: leave out what nothing reads
        rows = replace(rows, covariates=None)
        judge_on = None if judge_on is None else replace(judge_on, covariates=None)
    who = clusters_or_rows(rows)
    half = hash_split(mix(np.arange(int(who.max()) + 1, dtype=np.uint64) ^ np.uint64(seed)), 2)[who]
    fit = np.flatnonzero(half == 0) if judge_on is None else np.arange(rows.n)
    kept = judge_on if judge_on is not None else rows.part(np.flatnonzero(half == 1))
    if min(len(fit), kept.n) < FEWEST:
        raise NotComputable(f"repairs of classes are judged on {FEWEST} rows or more, half of all: pass more rows")
    fit = fit[hash_part(who[fit], max(FITTED // k, FEWEST), seed)]
    fitting = rows.part(fit)
    import scipy.optimize  # noqa: F401  # so that its linear algebra is there to be kept to one thread

    with one_thread():
        calibrators: dict[str, Calibrator] = {name: recipes()[name].make(variables).fit(fitting) for name in names}
    for one in calibrators.values() if judge_on is not None else ():
        if why := overlap(one.fitted_on, kept):
            raise BadInput(f"{why}: judge a calibrator on rows that it was not fitted on")
    tried = {AS_AUDITED: kept} | {name: one(kept) for name, one in calibrators.items()}
    before, how = _losses(kept), (steps, alpha / len(tried), seed)
    made = [_judged(name, data, (before, alpha / len(names)), how) for name, data in tried.items()]
    impossible = int(np.count_nonzero(own_class(kept) < TINY))
    by = "brier" if impossible else "log_loss"
    best = min(made[1:], key=lambda one: float(getattr(one, by)))
    recommended = best.repair if getattr(best, f"{by}_change_high") < 0.0 else AS_AUDITED
    settings = {
        "recommended": recommended,
        "by": by,
        "impossible": impossible,
        "clip": TINY,
        "command": "" if recommended == AS_AUDITED else recipes()[recommended].command,
        "rows_fitted": fitting.n,
        "rows_judged": kept.n,
        "alpha": alpha,
    }
    columns = {f.name: tuple(getattr(one, f.name) for one in made) for f in fields(ClassRepair)}
    return Judged(Curve(method=METHOD, columns=columns, settings=settings), calibrators, fit)


def _judged(
    name: str, data: MulticlassPredictions, against: tuple[Floats, float], how: tuple[int, float, int]
) -> ClassRepair:
    """Certify the class-wise error of probabilities, and compare their losses with those before, at a level."""
    (before, level), (steps, alpha, seed) = against, how
    losses, q = _losses(data), points(data.top_label()).weighed
    ends = classwise(data, steps=steps, alpha=alpha, seed=seed).interval
    changes: list[float] = []
    for loss in losses - before:
        mean, wide = q.mean(loss), normal_quantile(q.level(level)) * float(np.sqrt(q.variance(loss)))
        changes += [mean, mean - wide, mean + wide]
    return ClassRepair(name, ends.low, ends.high, *(q.mean(loss) for loss in losses), *changes)


def _losses(data: MulticlassPredictions) -> Floats:
    """Log loss and Brier score of each row, shape (2, n)."""
    return np.stack([log_losses(data, TINY), brier_losses(data)])
