"""Which variables the strong calibration test needs to find what it finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.diagnose.control_chart import check_alpha
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.search.detectors import FOLDS, Detectors, detectors_of, question_of
from calibrant.stats.cusum import EMPTY, Alternative, Detector, observed, path
from calibrant.views.features import SCORE, Features, rows_of

METHOD = "diagnose.importance"
MOST = 10_000  # rows that are read, a uniform sample
SHUFFLE = 0x5AFF1E


def importance(
    data: Any,
    variables: Sequence[str] | None = None,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
    repeats: int = 10,
    alpha: float = 0.05,
    seed: int = 0,
    *,
    detector: Detector = "default",
    models: Sequence[tuple[str, Any]] | None = None,
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
    if isinstance(repeats, bool) or not isinstance(repeats, (int, np.integer)) or not 2 <= repeats <= 1000:
        raise BadInput(f"repeats={repeats!r}: pass a whole number of permutations from 2 to 1,000, such as 10")
    check_alpha(alpha)
    data = rows_of(data)
    q = question_of(
        data, variables, tolerance, alternative, seed, detector=detector, models=models, min_size=min_size, folds=folds
    )
    r = _readable(detectors_of(q, data, variables))
    statistic = r.statistic(r.d.g[r.d.chosen][r.rows], np.arange(len(r.rows)))
    if not np.isfinite(statistic) or statistic <= EMPTY["paper"]:
        raise NotComputable("the statistic is 0: no model predicts an error that the outcomes bear out")
    names = tuple(dict.fromkeys((*q.sample.x.tree_of, *q.sample.x.flat_of)))
    drops = np.array([_drops(r, name, statistic, int(repeats)) for name in names])
    return _table(
        names,
        drops,
        statistic,
        alpha,
        {
            "alpha": float(alpha),
            "alternative": q.alternative,
            "detector": q.detector,
            "folds": q.folds,
            "model": q.pool.names[r.d.chosen],
            "repeats": int(repeats),
            "rows_read": len(r.rows),
            "seed": q.seed,
            "statistic": statistic,
            "tolerance": q.edge.tolerance,
        },
    )


@dataclass(frozen=True)
class _Readable:
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
    rows: Any
    x: Features
    cluster: Any

    def statistic(self, g: Any, drawn: Any) -> float:
        """Return the chosen model's statistic over rows drawn from those read."""
        q, at = self.d.question, self.rows[drawn]
        route = path(g[drawn], q.edge.rows(at), q.alternative, q.detector, q.sample.heft(at), q.min_size)
        found = float(observed([route], q.sample.y[at], q.detector)[0])
        return found if np.isfinite(found) else 0.0

    def predicted(self, x: Features, p: Any) -> Any:
        """Return the chosen model's out-of-fold predictions from other features, and other scores, of these rows."""
        q = self.d.question
        mix, out, fold = np.array(q.pool.mix[self.d.chosen]), np.zeros(len(self.rows)), q.fold[self.rows]
        for f, fitted in enumerate(self.d.fitted):
            here = np.flatnonzero(fold == f)
            for share, model in zip(mix, fitted, strict=True):
                if share > 0 and len(here):
                    out[here] += share * model.predict(x, p, here)
        return out


def _readable(d: Detectors) -> _Readable:
    q = d.question
    rows = np.arange(q.n)
    if q.n > MOST:
        rows = np.sort(np.random.default_rng([q.seed, SHUFFLE]).choice(q.n, MOST, replace=False))
    x = replace(q.sample.x, trees=q.sample.x.trees[rows], flat=q.sample.x.flat[rows])
    cluster = None if q.cluster is None else np.unique(q.cluster[rows], return_inverse=True)[1]
    return _Readable(d, rows, x, cluster)


def _drops(r: _Readable, name: str, statistic: float, repeats: int) -> list[tuple[float, float]]:
    """Return, for each permutation, the drop in these rows, and in rows drawn from them with replacement."""
    q, out = r.d.question, []
    g, p = r.d.g[r.d.chosen][r.rows], q.edge.p[r.rows]
    every = np.arange(len(r.rows))
    for repeat in range(repeats):
        rng = np.random.default_rng([q.seed, SHUFFLE, repeat, 1])
        order, drawn = rng.permutation(len(every)), _resampled(rng, r)
        other = r.predicted(r.x.permuted(name, order), p[order] if name == SCORE else p)
        here = statistic - r.statistic(other, every)
        out.append((here, r.statistic(g, drawn) - r.statistic(other, drawn)))
    return out


def _resampled(rng: Any, r: _Readable) -> Any:
    """Draw rows, or whole clusters, with replacement."""
    if r.cluster is None:
        return rng.integers(len(r.rows), size=len(r.rows))
    order = np.argsort(r.cluster, kind="stable")
    first = np.searchsorted(r.cluster[order], np.arange(r.cluster.max() + 2))
    chosen = rng.integers(len(first) - 1, size=len(first) - 1)
    return np.concatenate([order[first[c] : first[c + 1]] for c in chosen])


def _table(names: tuple[str, ...], drops: Any, statistic: float, alpha: float, settings: dict[str, Any]) -> Curve:
    from scipy.special import stdtrit

    drop = drops[:, :, 0].mean(axis=1)
    half = float(stdtrit(drops.shape[1] - 1, 1.0 - alpha / 2.0)) * drops[:, :, 1].std(axis=1, ddof=1)
    order = sorted(range(len(names)), key=lambda j: (-drop[j], j))
    columns: dict[str, tuple[Any, ...]] = {
        "variable": tuple(names[j] for j in order),
        "drop": tuple(float(drop[j]) for j in order),
        "low": tuple(float(drop[j] - half[j]) for j in order),
        "high": tuple(float(drop[j] + half[j]) for j in order),
        "share": tuple(float(drop[j]) / statistic for j in order),
    }
    return Curve(method=METHOD, columns=columns, settings=settings)
