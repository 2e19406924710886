"""The control chart of the strong calibration test: evidence added up over the rows, most suspicious first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np

from calibrant.arguments import checked_alpha, choice, one_source
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.kernels.draws import words
from calibrant.results import Curve
from calibrant.search.detectors import FOLDS, DetectorInputs, Settings, detector_inputs
from calibrant.search.models import Floats, Models, Rows
from calibrant.search.nulls import SALT, SHOWN, Drawn, Verdict, checked_draws, chosen_null, under, verdict_of
from calibrant.stats.cusum import Alternative, Detector, Path
from calibrant.stats.nulls import critical

ChartNull = Literal["auto", "fixed", "split", "refit"]
NULLS: tuple[ChartNull, ...] = ("auto", "fixed", "split", "refit")
POINTS = 60  # that are drawn: finer than a pen
LEAST = 20  # rows up to the first point that is drawn, so that none shows a single person's outcome
MOSTLY = 0.9  # share of the rows up to the peak, by weight, that are off to one side where the chart names that side


@one_source
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
    q = detector_inputs(data, settings)
    used = chosen_null(q, null)
    q = under(q, used)
    v = verdict_of(q, used, checked_draws(draws, q, used))
    # (1) The path of the model with the largest statistic, at the steps that the test looks at.
    score, seen = v.path.curve(q.sample.y[v.rows]), np.flatnonzero(v.path.scale > 0)
    if not len(seen):
        raise NotComputable("no model predicts an error beyond the tolerance for enough rows: there is no path to draw")
    share, top = _shares(q, v.path, v.rows), int(seen[np.argmax(score[seen])])
    # (2) Points at equally many steps, the peak among them.
    at = np.unique([*seen[np.linspace(0, len(seen) - 1, POINTS - 2).round().astype(int)], top])
    at = at[at + 1 >= min(LEAST, len(share))]
    grid = share[at]
    # (3) The line: the critical value of the whole test, the same everywhere; none if so few draws cannot reach alpha.
    limit = float(critical(v.peaks, level))
    line = limit if np.isfinite(limit) else None
    columns: dict[str, Any] = {
        "x": (0.0, *grid.tolist()),
        "evidence": (0.0, *score[at].tolist()),
        "line": (line,) * (len(grid) + 1),
    }
    for b, (where, values) in enumerate(v.drawn or _kept_paths(q, v)):
        columns[f"null_{b + 1}"] = (0.0, *(round(value, 3) for value in _read(where, values, grid)))
    facts = _facts(q, v, used, top, share, score)
    return Curve(method="diagnose.control_chart", columns=columns, settings=facts | {"alpha": level, "line": line})


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


def _read(share: Floats, values: Floats, grid: Floats) -> list[float]:
    """A path's value at the last step that it is looked at, up to each share of the rows; 0 before the first."""
    at = np.searchsorted(share, grid * (1.0 + 1e-12), side="right")  # 1e-12: equal shares differ by rounding
    results: list[float] = np.append(0.0, values)[at].tolist()
    return results


# ---- Simulated paths, of the very draws that the line comes from ----


def _kept_paths(q: DetectorInputs, v: Verdict) -> Iterator[Drawn]:
    """Yield the first simulated paths, models held, in the order of the chosen model."""
    seen = v.path.scale > 0
    share = _shares(q, v.path, v.rows)[seen]
    for score in _drawn_scores(q, v):
        yield Drawn(share, (v.path.scale * np.cumsum(score))[seen])


def _drawn_scores(q: DetectorInputs, v: Verdict) -> Iterator[Floats]:
    """Yield each step's score in the first draws, models held."""
    path, clusters = v.path, q.clusters_of(v.rows)
    if clusters is None:
        edge = q.edge.rows(v.rows)
        bits = words(q.ids[v.rows], edge.low, edge.high, 0, SALT).reshape(-1)[path.word]
        for b in range(SHOWN):
            yield path.weight * (((bits >> np.uint64(b)) & np.uint64(1)).astype(float) - path.rate)
        return
    codes, ids = clusters
    half = np.full(len(ids), 0.5)
    bits, own = words(ids, half, half, 0, SALT)[codes[path.rows], 0], path.scores(q.sample.y[v.rows])
    for b in range(SHOWN):
        yield (2.0 * ((bits >> np.uint64(b)) & np.uint64(1)).astype(float) - 1.0) * own
