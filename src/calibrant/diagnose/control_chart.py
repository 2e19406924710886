"""The control chart of the strong calibration test: evidence added up over the rows, most suspicious first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from calibrant.data.sample import identities_of
from calibrant.detect.strong_calibration_test import checked_draws, chosen_null, contradictions
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.search import nulls as strong_nulls
from calibrant.search.detectors import FOLDS, Question, check_choice, detectors_of, halves_of, question_of, small
from calibrant.search.models import cross_fit
from calibrant.search.nulls import AGAIN, REFIT_TREES, SALT, Verdict
from calibrant.stats.cusum import Alternative, Detector, Path, observed
from calibrant.stats.nulls import critical
from calibrant.views.features import rows_of

METHOD = "diagnose.control_chart"
Null = Literal["auto", "fixed", "split", "refit"]
NULLS = ("auto", "fixed", "split", "refit")
POINTS = 60  # that are drawn
SHOWN = 8  # simulated paths that are drawn
LEAST = 20  # rows up to the first point that is drawn


def control_chart(
    data: Any,
    variables: Sequence[str] | None = None,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
    null: Null = "auto",
    draws: int | None = None,
    seed: int = 0,
    *,
    alpha: float = 0.05,
    detector: Detector = "default",
    models: Sequence[tuple[str, Any]] | None = None,
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
    alpha : float in (0, 1)
        Share of simulated repeats, under the null hypothesis, that cross the line anywhere.

    Returns
    -------
    Curve
        At most 60 points: ``x`` (share of the rows tested, by weight), ``evidence``, ``line`` (the same everywhere: its
        crossing means a p-value of at most `alpha`; None if so few draws were made that nothing could), and
        ``null_1`` to ``null_8``, simulated paths. ``settings``: ``p_value``, ``statistic``, ``peak_share``,
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
    Simulated paths have models held, in the order of the chosen model, or are fitted anew for ``"refit"``. **Cost.**
    That of the test; for ``"refit"`` eight fits more. **Reads.** Rows.

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
    (True, 'too little')
    """
    check_choice("null", null, NULLS)
    check_alpha(alpha)
    data = rows_of(data)
    q = question_of(
        data, variables, tolerance, alternative, seed, detector=detector, models=models, min_size=min_size, folds=folds
    )
    used = chosen_null(q, null)
    v = _verdict(q, data, variables, used, checked_draws(draws, used))
    y, weights = q.sample.y[v.rows], q.sample.heft(v.rows)
    score, seen = v.path.curve(y), np.flatnonzero(v.path.scale > 0)
    if not len(seen):
        raise NotComputable("no model predicts an error beyond the tolerance for enough rows: there is no path to draw")
    w = np.ones(len(v.rows)) if weights is None else weights
    share = np.cumsum(w[v.path.rows]) / w.sum()
    top = int(seen[np.argmax(score[seen])])
    at = np.unique([*seen[np.linspace(0, len(seen) - 1, POINTS - 2).round().astype(int)], top])
    at = at[at + 1 >= min(LEAST, len(share))]
    grid = share[at]
    columns: dict[str, Any] = {"x": [0.0, *grid.tolist()], "evidence": [0.0, *score[at].tolist()]}
    limit = float(critical(v.peaks, alpha))
    line = limit if np.isfinite(limit) else None
    columns["line"] = [line] * len(columns["x"])
    for b, (where, values) in enumerate(_simulated_paths(q, v, used)):
        columns[f"null_{b + 1}"] = [0.0, *(round(v, 3) for v in _read(where, values, grid))]
    return Curve(
        method=METHOD,
        columns={k: tuple(c) for k, c in columns.items()},
        settings=_settings(q, v, used, top, share, score) | {"alpha": float(alpha), "line": line},
    )


def check_alpha(alpha: Any) -> None:
    """Refuse what is not an error probability."""
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float, np.number)) or not 0.0 < alpha < 1.0:
        raise BadInput(f"alpha={alpha!r}: pass a number between 0 and 1, such as 0.05")


def _verdict(q: Question, data: Any, variables: Sequence[str] | None, null: str, draws: int) -> Verdict:
    if null == "fixed":
        return strong_nulls.fixed(detectors_of(q, data, variables), draws)
    if null == "refit":
        return strong_nulls.refit(q, draws)
    return strong_nulls.split(q, halves_of(q, data, variables), draws)


def _settings(q: Question, v: Verdict, null: str, top: int, share: Any, score: Any) -> dict[str, Any]:
    path, p = v.path, q.edge.p[v.rows]
    y = q.sample.y[v.rows]
    weights = q.sample.heft(v.rows)
    inside, found = path.rows[: top + 1], bool(score[top] > 0)
    w = np.ones(len(inside)) if weights is None else weights[inside]
    up = float(w[path.upper[: top + 1]].sum() / w.sum())
    impossible = contradictions(q)
    return {
        "alternative": q.alternative,
        "detector": q.detector,
        "draws": len(v.peaks),
        "law": v.law,
        "model": q.pool.names[v.chosen],
        "null": null,
        "p_value": 0.0 if impossible else v.p_value,
        "impossible": impossible,
        "peak_observed": float(w @ y[inside] / w.sum()),
        "peak_predicted": float(w @ p[inside] / w.sum()),
        "peak_rows": top + 1 if found else 0,
        "peak_score": float(score[top]),
        "peak_share": float(share[top]) if found else 0.0,
        "rows_beyond": len(path.rows),
        "rows_tested": len(v.rows),
        "seed": q.seed,
        "side": "too little" if up >= 0.9 else "too much" if up <= 0.1 else "both ways",
        "statistic": v.statistic,
        "threshold": float(path.excess[top]) if found else 0.0,
        "tolerance": q.edge.tolerance,
    }


def _read(share: Any, values: Any, grid: Any) -> list[float]:
    """Return a path's value at the last step that it is looked at, up to each share of the rows; 0 before the first."""
    seen = np.flatnonzero(np.isfinite(values))
    at = np.searchsorted(share[seen], grid * (1.0 + 1e-12), side="right")
    return np.append(0.0, values[seen])[at].tolist()  # type: ignore[no-any-return]


def _simulated_paths(q: Question, v: Verdict, null: str) -> Iterator[tuple[Any, Any]]:
    """Yield simulated paths: shares of the rows, and scores there."""
    if null == "refit":
        yield from _refitted(q, len(v.peaks))
        return
    path, y = v.path, q.sample.y[v.rows]
    for score in _drawn_scores(q, path, v.rows, y):
        yield _shares(q, path, v.rows), np.where(path.scale > 0, path.scale * np.cumsum(score), np.nan)


def _shares(q: Question, path: Path, rows: Any) -> Any:
    w = q.sample.heft(rows)
    w = np.ones(len(rows)) if w is None else w
    return np.cumsum(w[path.rows]) / w.sum()


def _drawn_scores(q: Question, path: Path, rows: Any, y: Any) -> Iterator[Any]:
    """Yield each step's score in the first draws of the simulation that the line comes from."""
    from calibrant.kernels.draws import words

    if q.cluster is None:
        edge = q.edge.rows(rows)
        bits = words(q.ids[rows], edge.low, edge.high, 0, SALT).reshape(-1)[path.word]
        for b in range(SHOWN):
            yield path.heft * (((bits >> np.uint64(b)) & np.uint64(1)).astype(float) - path.rate)
        return
    kept, codes = np.unique(q.cluster[rows], return_inverse=True)
    half = np.full(len(kept), 0.5)
    ids = identities_of(int(q.cluster.max()) + 1, q.seed)[kept]
    bits = words(ids, half, half, 0, SALT)[codes[path.rows], 0]
    for b in range(SHOWN):
        sign = 2.0 * ((bits >> np.uint64(b)) & np.uint64(1)).astype(float) - 1.0
        yield sign * path.scores(y)


def _refitted(q: Question, most: int) -> Iterator[tuple[Any, Any]]:
    """Fit to the first simulated outcomes again, and yield the path of the model that did best on them."""
    from dataclasses import replace

    from calibrant.kernels.draws import outcomes

    q = replace(q, pool=small(q.pool, REFIT_TREES))
    rate = q.edge.low if q.alternative == "less" else q.edge.high
    for b in range(min(SHOWN, most)):
        drawn = q.with_outcomes(outcomes(q.ids, rate, b, 1, AGAIN)[:, 0])
        paths = drawn.paths(cross_fit(drawn.sample, drawn.pool, drawn.fold, drawn.seed)[0])
        best = paths[int(np.argmax(observed(paths, drawn.sample.y, q.detector)))]
        yield _shares(drawn, best, np.arange(q.n)), best.curve(drawn.sample.y)
