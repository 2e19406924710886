"""What the strong calibration test rests on: its evidence as it adds up over the rows, and the variables it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from calibrant.arguments import check_int, checked_alpha, choice
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Curve
from calibrant.search.detectors import FOLDS, DetectorInputs, Fits, Settings, detector_inputs
from calibrant.search.models import Floats, Models, Rows
from calibrant.search.nulls import SALT, SHOWN, Drawn, Verdict, question_of, verdict_of
from calibrant.stats.cusum import EMPTY, Alternative, Detector, Path, path
from calibrant.stats.nulls import critical
from calibrant.views.features import SCORE, Features

ChartNull = Literal["auto", "fixed", "split", "refit"]
NULLS: tuple[ChartNull, ...] = ("auto", "fixed", "split", "refit")
POINTS = 60  # that are drawn: finer than a pen
LEAST = 20  # rows up to the first point that is drawn, so that none shows a single person's outcome
MOSTLY = 0.9  # share of the rows up to the peak, by weight, that are off to one side where the chart names that side


@takes_arrays
def control_chart(
    data: Predictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
    null: ChartNull = "auto",
    draws: int | None = None,
    seed: int = 0,
    alpha: float = 0.05,
    detector: Detector = "default",
    models: Models | None = None,
    min_size: float = 0.0,
    folds: int = FOLDS,
) -> Curve:
    r"""Draw the evidence of the strong calibration test as it adds up, from the most suspicious row on.

    Estimand: the scaled cumulative score ``c_k sum_{i <= k} h_i sigma_i (y_i - t_i)`` of `strong_calibration_test`,
    along the order of the model with the largest statistic. A peak before a fifth of the rows says that the error is
    concentrated in few people, one after half of them that it is widely spread.

    Parameters
    ----------
    data, variables, tolerance, alternative, draws, seed, detector, models, min_size, folds
        As in `strong_calibration_test`.
    null : {"auto", "fixed", "split", "refit"}
        As there; ``"auto"`` chooses as there. The other nulls have no single path.
    alpha : float in (0, 0.5]
        Share of simulated repeats, under the null hypothesis, that cross the line anywhere.

    Returns
    -------
    Curve
        At most 60 points: ``x`` (share of the rows tested, by weight), ``evidence``, ``line`` (the same everywhere: its
        crossing means a p-value of at most `alpha`; None if so few draws were made that nothing could. A p-value that
        is joined with that of products can be at most `alpha` without it), and
        ``null_1`` to ``null_8``, simulated paths. ``settings``: ``p_value``, ``p_models`` (by
        the models alone, where products are tested too), ``statistic``, ``peak_share``,
        ``peak_rows``, ``peak_score``, ``threshold`` (predicted residual beyond the tolerance there), ``peak_predicted``
        and ``peak_observed`` (mean score and event rate of the rows up to the peak, which was chosen by these
        outcomes), ``side``, ``model``, ``null``, ``law``, ``rows_tested``.

    Raises
    ------
    BadInput
        An argument that cannot be used.
    NotComputable
        No model predicts an error beyond the tolerance for enough rows; and as in `strong_calibration_test`.

    Notes
    -----
    **Assumes.** Rows (or clusters) independent given scores and covariates.
    **Guarantee.** That of the null used, named in ``settings["law"]``. The line is the critical value of the whole
    test, over all models and thresholds, not a quantile at each point. **Method.** Figures 1 and 3 of the paper.
    Simulated paths have models held, in the order of the chosen model, or fitted again for ``"refit"``: the very draws
    that the p-value comes from. **Cost.** That of the test, made once for both. **Reads.** Rows.

    References
    ----------
    Feng, Gossmann, Pirracchio, Petrick, Pennello, Sahiner (2024), "Is this model reliable for everyone? Testing for
    strong calibration", AISTATS.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, p = rng.uniform(20, 90, 2000), rng.uniform(0.1, 0.6, 2000)
    >>> data = cal.predictions(rng.random(2000) < np.where(age > 75, p + 0.3, p), p, {"age": age})
    >>> chart = cal.diagnose.control_chart(data, tolerance=0.05)
    >>> chart.settings["p_value"], max(chart.columns["evidence"]) > chart.columns["line"][0]
    (0.001, True)
    >>> 0.15 < chart.settings["peak_share"] < 0.35, chart.settings["side"]
    (True, 'underpredicts')
    """
    choice("null", null, NULLS)
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
    q, used, count = question_of(detector_inputs(data, settings), null, draws)
    v = verdict_of(q, used, count)
    # (1) The path of the model with the largest statistic, at the steps that the test looks at.
    score, seen = v.path.curve(q.sample.y[v.rows]), np.flatnonzero(v.path.scale > 0)
    if not len(seen):
        raise NotComputable("no model predicts an error beyond the tolerance for enough rows: there is no path to draw")
    share, top = _shares(q, v.path, v.rows), int(seen[np.argmax(score[seen])])
    # (2) Points at equally many steps, the peak among them.
    at = np.unique([*seen[np.linspace(0, len(seen) - 1, POINTS - 2).round().astype(int)], top])
    at = at[at + 1 >= min(LEAST, len(share))]
    grid = np.minimum(share[at], 1.0)  # sums of weights end at one but for rounding
    # (3) The line: where the models take the whole test to alpha, the same everywhere; none if so few draws cannot.
    limit = float(critical(v.peaks, level if v.joint is None else v.joint.models_alpha(level)))
    line = limit if np.isfinite(limit) else None
    columns: dict[str, Any] = {
        "x": (0.0, *grid.tolist()),
        "evidence": (0.0, *score[at].tolist()),
        "line": (line,) * (len(grid) + 1),
    }
    for b, (where, values) in enumerate(v.drawn or _kept_paths(q, v)):
        # The value at the last step that is looked at, up to each share; 1e-12: equal shares differ by rounding.
        last = np.searchsorted(where, grid * (1.0 + 1e-12), side="right")
        columns[f"null_{b + 1}"] = (0.0, *(round(value, 3) for value in np.append(0.0, values)[last].tolist()))
    reported = {
        **_facts(q, v, used, top, share, score),
        **q.clusters_along(v.rows[v.path.rows], at),
        **q.reported(peak_clusters=q.people(v.rows, np.isin(np.arange(len(v.rows)), v.path.rows[: top + 1]))),
        "alpha": level,
        "line": line,
    }
    return Curve(method="diagnose.control_chart", columns=columns, settings=reported)


def _facts(q: DetectorInputs, v: Verdict, null: str, top: int, share: Floats, score: Floats) -> dict[str, Any]:
    path, s, impossible = v.path, q.settings, q.impossible
    inside, result = path.rows[: top + 1], bool(score[top] > 0)
    y, p, w = q.sample.y[v.rows][inside], q.edge.p[v.rows][inside], q.sample.mass_of(v.rows)[inside]
    up = float(w[path.upper[: top + 1]].sum() / w.sum())
    return {
        "alternative": s.alternative,
        "detector": s.detector,
        "draws": len(v.peaks),
        "law": v.law,
        "model": q.pool.names[v.chosen],
        "null": null,
        "p_value": 0.0 if impossible else v.p_value,
        "p_models": v.facts.get("p_models"),
        "impossible": impossible,
        "peak_observed": float(w @ y / w.sum()),
        "peak_predicted": float(w @ p / w.sum()),
        "peak_rows": top + 1 if result else 0,
        "peak_score": float(score[top]),
        "peak_share": float(share[top]) if result else 0.0,
        "rows_beyond": len(path.rows),
        "rows_tested": len(v.rows),
        "seed": s.seed,
        "side": "underpredicts" if up >= MOSTLY else "overpredicts" if up <= 1.0 - MOSTLY else "both ways",
        "statistic": v.statistic,
        "threshold": float(path.excess[top]) if result else 0.0,
        "tolerance": q.edge.tolerance,
    }


def _shares(q: DetectorInputs, path: Path, rows: Rows) -> Floats:
    """The share of the weight of some rows up to each step of a path over them."""
    w = q.sample.mass_of(rows)
    result: Floats = np.cumsum(w[path.rows]) / w.sum()
    return result


# ---- Simulated paths, of the very draws that the line comes from ----


def _kept_paths(q: DetectorInputs, v: Verdict) -> Iterator[Drawn]:
    """Yield the first simulated paths, models held, in the order of the chosen model."""
    seen = v.path.scale > 0
    share = _shares(q, v.path, v.rows)[seen]
    for score in q.first_scores(v.path, v.rows, SHOWN, SALT):
        yield Drawn(share, (v.path.scale * np.cumsum(score))[seen])


# ---- Which variables the test needs to find what it finds ----

MOST = 10_000  # rows that are read, a uniform sample: predictions of every permutation are the cost
VALUES = 1 << 20  # of permuted rows that are predicted at once, rows times columns, for memory
SHUFFLE = 0x5AFF1E


@takes_arrays
def importance(
    data: Predictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
    null: ChartNull = "auto",
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
    statistic, of the model with the largest one: over the rows read (``rows_read``: all that the test tests, or a
    uniform sample of 10,000, on whose scale drop and statistic then are), by the fits that it tests, none of which has
    seen the row that it predicts. It says which variables point at the badly served, not which make the probabilities
    good on average.

    Parameters
    ----------
    data, variables, tolerance, alternative, seed, detector, models, min_size, folds
        As in `strong_calibration_test`.
    null : {"auto", "fixed", "split", "refit"}
        As there: it decides which rows are tested, and by which fits. ``"split"``: one half, by models fitted to the
        other; else all rows, each by models fitted without its fold.
    repeats : int from 2 to 1,000
        Permutations of each variable.
    alpha : float in (0, 0.5]
        Of the intervals.

    Returns
    -------
    Curve
        A line for each variable, the largest ``drop`` first: ``variable`` (the score is ``"the score"``), ``drop``, its
        interval ``low`` to ``high``, and ``share`` of the statistic that is lost. A covariate that is missing for some
        moves with its "is missing". ``settings``: ``statistic`` (of the rows read), ``folds`` (0 where
        halves were tested), ``null``, ``model``, ``repeats``, ``rows_read``, ``rows_tested``. ``.chart()`` draws it.

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
    That of `strong_calibration_test`, made once for both; then predictions of `repeats` times the variables, for at
    most 10,000 of the rows tested, a uniform sample. **Reads.** Rows.

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
    repeats = check_int("repeats", repeats, 2, 1000, of="permutations", hint="such as 10")
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
    choice("null", null, NULLS)
    q, used, count = question_of(detector_inputs(data, settings), null, None)
    r = _read(q, verdict_of(q, used, count))
    statistic = r.statistic(r.g, np.arange(len(r.rows)))
    if not np.isfinite(statistic) or statistic <= EMPTY["paper"]:
        raise NotComputable("the statistic is 0: no model predicts an error that the outcomes bear out")
    names, shuffles = q.sample.x.variables, r.shuffles(repeats)
    drops = np.array([r.drops(name, statistic, shuffles) for name in names])
    return Curve(
        method="diagnose.importance",
        columns=_table(names, drops, statistic, level),
        settings={
            "alpha": level,
            "alternative": q.settings.alternative,
            "detector": q.settings.detector,
            "folds": 0 if used == "split" else q.settings.folds,
            "model": q.pool.names[r.chosen],
            "null": used,
            "repeats": repeats,
            "rows_read": len(r.rows),
            "rows_tested": r.tested,
            "seed": q.settings.seed,
            "statistic": statistic,
            "tolerance": q.edge.tolerance,
        },
    )


@dataclass(frozen=True)
class _Shuffle:
    """One permutation of the rows read, rows drawn from them with replacement, and those rows' own statistic."""

    order: Rows
    drawn: Rows
    statistic: float


@dataclass(frozen=True, kw_only=True)
class _Read:
    """The rows that are read: all that are tested, or a uniform sample."""

    question: DetectorInputs
    fits: Fits
    chosen: int  # the model with the largest statistic
    tested: int  # rows that were tested
    rows: Rows  # the rows read, as the question numbers them
    x: Features  # of these rows
    cluster: Rows  # of these rows, 0 to C - 1

    @cached_property
    def g(self) -> Floats:
        """What the chosen model predicts of these rows, by fits that have not seen them."""
        p, part = self.question.edge.p[self.rows], self.fits.part[self.rows]
        return self.fits.predict(self.chosen, self.x, p, part)

    def statistic(self, g: Floats, drawn: Rows) -> float:
        """The chosen model's statistic over rows drawn from those read."""
        q, at = self.question, self.rows[drawn]
        s = q.settings
        route = path(g[drawn], q.edge.rows(at), s.alternative, s.detector, q.sample.mass_of(at), s.min_size)
        seen = route.scale > 0
        return max(float(route.curve(q.sample.y[at])[seen].max(initial=EMPTY[s.detector])), EMPTY["paper"])

    def shuffles(self, repeats: int) -> list[_Shuffle]:
        """The permutations, the same for every variable."""
        out = []
        for repeat in range(repeats):
            rng = np.random.default_rng([self.question.settings.seed, SHUFFLE, repeat, 1])
            order, drawn = rng.permutation(len(self.rows)), self.resampled(rng)
            out.append(_Shuffle(order, drawn, self.statistic(self.g, drawn)))
        return out

    def drops(self, name: str, statistic: float, shuffles: Sequence[_Shuffle]) -> list[tuple[float, float]]:
        """For each permutation, the drop in these rows, and in rows drawn from them with replacement."""
        out, every = [], np.arange(len(self.rows))
        at_once = max(VALUES // (self.x.flat.shape[1] * len(self.rows)), 1)
        for first in range(0, len(shuffles), at_once):
            some = shuffles[first : first + at_once]
            for shuffle, g in zip(some, self._permuted(name, [s.order for s in some]), strict=True):
                here = statistic - self.statistic(g, every)
                out.append((here, shuffle.statistic - self.statistic(g, shuffle.drawn)))
        return out

    def _permuted(self, name: str, orders: Sequence[Rows]) -> Floats:
        """Predictions with one variable permuted, of several permutations at once."""
        p, part, order = self.question.edge.p[self.rows], self.fits.part[self.rows], np.concatenate(orders)
        # The models see the variable permuted; a permuted score moves the prediction and not the row's residual.
        shown = p[order] if name == SCORE else np.tile(p, len(orders))
        x = self.x.rows(np.tile(np.arange(len(p)), len(orders))).altered(name, self.x, order)
        moved = self.fits.predict(self.chosen, x, shown, np.tile(part, len(orders)), name)
        gap: Floats = moved.reshape(len(orders), len(p)) - self.fits.predict(self.chosen, self.x, p, part, name)
        return self.g + gap

    def resampled(self, rng: np.random.Generator) -> Rows:
        """Draw rows, or whole clusters, with replacement."""
        order = np.argsort(self.cluster, kind="stable")
        first = np.searchsorted(self.cluster[order], np.arange(self.cluster.max() + 2))
        chosen: Rows = rng.integers(len(first) - 1, size=len(first) - 1)
        return np.concatenate([order[first[c] : first[c + 1]] for c in chosen])


def _read(q: DetectorInputs, v: Verdict) -> _Read:
    if v.fits is None:
        raise NotComputable("several nulls are joined: no single set of fits predicts the rows tested")
    rows = v.rows
    if len(rows) > MOST:
        rng = np.random.default_rng([q.settings.seed, SHUFFLE])
        rows = v.rows[np.sort(rng.choice(len(v.rows), MOST, replace=False))]
    return _Read(
        question=q,
        fits=v.fits,
        chosen=v.chosen,
        tested=len(v.rows),
        rows=rows,
        x=q.sample.x.rows(rows),
        cluster=q.clusters_of(rows)[0],
    )


def _table(names: tuple[str, ...], drops: Floats, statistic: float, alpha: float) -> dict[str, tuple[Any, ...]]:
    """The columns: mean drops, and Student's intervals by the spread over repeats that resample rows."""
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
