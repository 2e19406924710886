"""Which variables the strong calibration test needs to find what it finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.arguments import checked_alpha, one_source, whole
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Curve
from calibrant.search.detectors import FOLDS, Detectors, Settings, detectors_of, question_of
from calibrant.search.models import Floats, Models, Rows
from calibrant.stats.cusum import EMPTY, Alternative, Detector, observed, path
from calibrant.views.features import SCORE, Features

MOST = 10_000  # rows that are read, a uniform sample: predictions of every permutation are the cost
SHUFFLE = 0x5AFF1E


@one_source
def importance(
    data: Predictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
    repeats: int = 10,
    alpha: float = 0.05,
    seed: int = 0,
    detector: Detector = "default",
    models: Models | None = None,
    min_size: float = 0.0,
    folds: int = FOLDS,
) -> Curve:
    r"""Rank variables by what the strong calibration statistic loses when each is shuffled among the rows.

    Estimand, for each variable: ``T - E[T of the same models and outcomes, the variable permuted]``, in units of the
    statistic, of the cross-fitted model with the largest one. It tells which variables point at the badly served, not
    which make the probabilities good on average.

    Parameters
    ----------
    data, variables, tolerance, alternative, seed, detector, models, min_size, folds
        As in `strong_calibration_test`.
    repeats : int from 2 to 1,000
        Permutations of each variable.
    alpha : float in (0, 1)
        Of the intervals.

    Returns
    -------
    Curve
        A line for each variable, the largest ``drop`` first: ``variable`` (the score is ``"the score"``), ``drop``, its
        interval ``low`` to ``high``, and ``share`` of the statistic that is lost. A covariate that is missing for some
        moves with its "is missing". ``settings``: ``statistic``, ``folds``, ``model``, ``repeats``, ``rows_read``.
        ``.chart()`` draws it.

    Raises
    ------
    BadInput
        An argument that cannot be used.
    NotComputable
        The statistic is 0: no model predicts an error beyond the tolerance that the outcomes bear out.

    Notes
    -----
    **Assumes.** Rows (or clusters) independent given scores and covariates.
    **Guarantee.** Asymptotic, each variable by itself: Student's interval by the spread over repeats, of which each
    draws rows (or clusters) with replacement besides, for both terms alike. No test: where `strong_calibration_test`
    finds nothing, drops are drops of noise. **Method.** Section 2.4 of the paper. Models see the permuted variable and
    are not refitted; the row's own score stays in its residual, but where the score is permuted, the model's prediction
    is for the score that it is given. Of variables that say the same, each hides the other's importance. **Cost.**
    Predictions of `repeats` times the variables, for at most 10,000 rows, a uniform sample: 10 s for ten variables at a
    thousand rows. The fits are shared with `strong_calibration_test`. **Reads.** Rows.

    References
    ----------
    Feng, Gossmann, Pirracchio, Petrick, Pennello, Sahiner (2024), "Is this model reliable for everyone? Testing for
    strong calibration", AISTATS, section 2.4.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, p = rng.uniform(20, 90, 1000), rng.uniform(0.1, 0.6, 1000)
    >>> y = rng.random(1000) < np.where(age > 70, p + 0.3, p)
    >>> data = cal.predictions(y, p, {"age": age, "height": rng.normal(170, 10, 1000)})
    >>> table = cal.diagnose.importance(data, tolerance=0.05, repeats=4)
    >>> table.columns["variable"][0], table.columns["low"][0] > 0
    ('age', True)
    """
    repeats = whole("repeats", repeats, 2, 1000, of="permutations", hint="such as 10")
    level = checked_alpha(alpha)
    settings = Settings(
        variables=variables,
        tolerance=tolerance,
        alternative=alternative,
        seed=seed,
        detector=detector,
        models=models,
        min_size=min_size,
        folds=folds,
    )
    q = question_of(data, settings)
    r = _read(detectors_of(q))
    statistic = r.statistic(r.predictions, np.arange(len(r.rows)))
    if not np.isfinite(statistic) or statistic <= EMPTY["paper"]:
        raise NotComputable("the statistic is 0: no model predicts an error that the outcomes bear out")
    names = q.sample.x.variables
    drops = np.array([r.drops(name, statistic, repeats) for name in names])
    return Curve(
        method="diagnose.importance",
        columns=_table(names, drops, statistic, level),
        settings={
            "alpha": level,
            "alternative": q.settings.alternative,
            "detector": q.settings.detector,
            "folds": q.settings.folds,
            "model": q.pool.names[r.d.chosen],
            "repeats": repeats,
            "rows_read": len(r.rows),
            "seed": q.settings.seed,
            "statistic": statistic,
            "tolerance": q.edge.tolerance,
        },
    )


@dataclass(frozen=True)
class _Read:
    """The rows that are read: all, or a uniform sample.

    Parameters
    ----------
    d : Detectors
    rows : int array
    x : Features
        Of these rows.
    cluster : int array or None
        Of these rows, 0 to C - 1.
    """

    d: Detectors
    rows: Rows
    x: Features
    cluster: Rows | None

    @property
    def predictions(self) -> Floats:
        """What the chosen model predicts of these rows, fitted without their folds."""
        found: Floats = self.d.g[self.d.chosen][self.rows]
        return found

    def statistic(self, g: Floats, drawn: Rows) -> float:
        """Return the chosen model's statistic over rows drawn from those read."""
        q, at = self.d.question, self.rows[drawn]
        s = q.settings
        route = path(g[drawn], q.edge.rows(at), s.alternative, s.detector, q.sample.weights_of(at), s.min_size)
        found = float(observed([route], q.sample.y[at], s.detector)[0])
        return found if np.isfinite(found) else 0.0

    def drops(self, name: str, statistic: float, repeats: int) -> list[tuple[float, float]]:
        """Return, for each permutation, the drop in these rows, and in rows drawn from them with replacement."""
        q, out = self.d.question, []
        g, p, every = self.predictions, q.edge.p[self.rows], np.arange(len(self.rows))
        for repeat in range(repeats):
            rng = np.random.default_rng([q.settings.seed, SHUFFLE, repeat, 1])
            order, drawn = rng.permutation(len(every)), self.resampled(rng)
            # The models see the variable permuted; a permuted score moves the prediction and not the row's residual.
            shown = p[order] if name == SCORE else p
            other = self.d.predicted(self.x.permuted(name, order), shown, q.fold[self.rows])
            here = statistic - self.statistic(other, every)
            out.append((here, self.statistic(g, drawn) - self.statistic(other, drawn)))
        return out

    def resampled(self, rng: np.random.Generator) -> Rows:
        """Draw rows, or whole clusters, with replacement."""
        if self.cluster is None:
            return rng.integers(len(self.rows), size=len(self.rows))
        order = np.argsort(self.cluster, kind="stable")
        first = np.searchsorted(self.cluster[order], np.arange(self.cluster.max() + 2))
        chosen: Rows = rng.integers(len(first) - 1, size=len(first) - 1)
        return np.concatenate([order[first[c] : first[c + 1]] for c in chosen])


def _read(d: Detectors) -> _Read:
    q = d.question
    rows = np.arange(q.n)
    if q.n > MOST:
        rows = np.sort(np.random.default_rng([q.settings.seed, SHUFFLE]).choice(q.n, MOST, replace=False))
    clusters = q.clusters_of(rows)
    return _Read(d, rows, q.sample.x.rows(rows), None if clusters is None else clusters[0])


def _table(names: tuple[str, ...], drops: Floats, statistic: float, alpha: float) -> dict[str, tuple[Any, ...]]:
    """Return the columns: mean drops, and Student's intervals by the spread over repeats that resample rows."""
    from scipy.special import stdtrit

    drop = drops[:, :, 0].mean(axis=1)
    half = float(stdtrit(drops.shape[1] - 1, 1.0 - alpha / 2.0)) * drops[:, :, 1].std(axis=1, ddof=1)
    order = sorted(range(len(names)), key=lambda j: (-drop[j], j))
    return {
        "variable": tuple(names[j] for j in order),
        "drop": tuple(float(drop[j]) for j in order),
        "low": tuple(float(drop[j] - half[j]) for j in order),
        "high": tuple(float(drop[j] + half[j]) for j in order),
        "share": tuple(float(drop[j]) / statistic for j in order),
    }
