"""The certified rate of errors against the share accepted, at every threshold."""

from __future__ import annotations

from collections.abc import Iterable

from calibrant.arguments import check_int, names
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.decisions.accept import Accepted, AcceptOptions, End, Part, Target, answers, parts_of, pooled
from calibrant.results import Curve

COLUMNS = ("group", "share", "threshold", "rows", "wrong", "rate", "high", "high_alone")


@takes_arrays
def acceptance_curve(
    data: Predictions | MulticlassPredictions | Sketch,
    *,
    risk: float = 0.01,
    by: Iterable[str] | str | None = None,
    end: End = "high",
    target: Target = "population",
    points: int = 100,
    alpha: float = 0.05,
    seed: int = 0,
) -> Curve:
    r"""Draw the certified rate of errors among the accepted against the share accepted.

    Estimand: ``P(Y = 0 | score >= t)`` for every threshold t; with ``end="low"`` ``P(Y = 1 | score <= t)``.

    Parameters
    ----------
    data, by, end, target, alpha, seed
        As `certify.accept`.
    risk : float in (0, 1)
        The rate that the tests in the settings are about, fixed beforehand; of the population ``high`` is this one, or
        the root of 2 times so much or little, and so on.
    points : int from 2 to 1000
        Shares, evenly spaced, of each group.

    Returns
    -------
    Curve
        Columns: ``group`` (``"everyone"`` without `by`), ``share`` accepted, ``threshold``, ``rows`` accepted and
        ``wrong`` among them, ``rate``; ``high``, at most which the rate is, at all thresholds of all groups together,
        of the population one of ``settings["rates"]``, or 1; and ``high_alone``, by Clopper-Pearson for this threshold
        alone, as if it had been fixed beforehand: not to be chosen by. ``settings`` tell of each group the share that
        `certify.accept` accepts (``accepted``), that a fixed sequence of Clopper-Pearson tests does (``sequence``), and
        what picking by ``high_alone`` would (``picked``), which keeps no promise; and of groups in the pool what
        `certify.accept` does (``pool``).

    Notes
    -----
    **Assumes.** As `certify.accept`; the sequence, fixed by scores alone, is about the rows at hand.
    **Guarantee.** Finite-sample; ``high`` simultaneously. Of clusters the thresholds of pilot clusters, which share
    alpha equally. Of the population a grid of rates shares alpha, half of it for `risk`; of these rows all rates hold.
    **Method.** `certify.accept`, inverted at each threshold, or at the rates of the grid.
    **Cost.** As `certify.accept`, and milliseconds.
    **Reads.** Rows or the sketch.

    References
    ----------
    As `certify.accept`.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(0.5, 1.0, 20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < confidence, confidence)
    >>> curve = cal.diagnose.acceptance_curve(data, risk=0.1)
    >>> within = [s for s, u in zip(curve.columns["share"], curve.columns["high"]) if u <= 0.1]
    >>> 0.25 < max(within) < 0.4
    True
    """
    options = AcceptOptions.of(risk, end, target, alpha, seed)
    groups = names("by", by)
    return acceptance_at(answers(data, groups, options), groups, options, check_int("points", points, 2, 1000))


def acceptance_at(data: Predictions | Sketch, by: tuple[str, ...], options: AcceptOptions, steps: int = 100) -> Curve:
    """The curve, as was asked for."""
    parts = list(parts_of(data, by, options))
    each = options.alpha / len(parts)
    results = {p.name: p.accepted(each) for p in parts}
    rows = [row for p in parts for row in p.curve(each, steps)]
    columns = dict(zip(COLUMNS, (tuple(v) for v in zip(*rows, strict=True)), strict=True)) if rows else {}
    return Curve(
        method="diagnose.acceptance_curve",
        columns=columns or dict.fromkeys(COLUMNS, ()),
        settings={
            "risk": options.risk,
            "end": options.end,
            "target": options.target,
            "alpha": options.alpha,
            "level": 1.0 - options.alpha,
            "rates": parts[0].rates,
            "groups": {p.name: _compared(p, results[p.name], each) for p in parts},
            "pool": pooled(data, parts[0], results, options),
            "seed": options.seed,
        },
    )


def _compared(part: Part, result: Accepted, alpha: float) -> dict[str, float | None]:
    """The shares that three ways of choosing would accept."""
    sequence, picked = part.others(alpha)
    return {"accepted": float(result["share"] or 0.0), "sequence": sequence, "picked": picked}
