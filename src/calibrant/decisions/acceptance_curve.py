"""The certified rate of errors against the share accepted, at every threshold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from calibrant.arguments import names, one_source, whole
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.decisions.accept import Asked, End, Part, Target, parts_of
from calibrant.results import Curve
from calibrant.stats.decisions import acceptance
from calibrant.stats.decisions.acceptance import Ranking
from calibrant.stats.decisions.unit_acceptance import UnitRanking

COLUMNS = ("group", "share", "threshold", "rows", "wrong", "rate", "high", "high_alone")
Row = tuple[str | float | int, ...]


@one_source
def acceptance_curve(
    data: Predictions | Sketch,
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
        The rate that the tests in the settings are about.
    points : int from 2 to 1000
        Shares, evenly spaced, of each group.

    Returns
    -------
    Curve
        Columns: ``group`` (``"everyone"`` without `by`), ``share`` accepted, ``threshold``, ``rows`` accepted and
        ``wrong`` among them, ``rate``; ``high``, at most which the rate is, at all thresholds of all groups together;
        and ``high_alone``, by Clopper-Pearson for this threshold alone, as if it had been fixed beforehand: not to be
        chosen by. ``settings`` tell of each group the share that `certify.accept` accepts (``accepted``), that a fixed
        sequence of Clopper-Pearson tests does (``sequence``), and what picking by ``high_alone`` would (``picked``),
        which keeps no promise.

    Notes
    -----
    **Assumes.** As `certify.accept`; the sequence, fixed by scores alone, is about the rows at hand.
    **Guarantee.** Finite-sample; ``high`` simultaneously. Of clusters the thresholds of pilot clusters, which share
    alpha equally.
    **Method.** `certify.accept`, inverted at each threshold.
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
    >>> 0.3 < max(within) < 0.4
    True
    """
    asked = Asked.of(risk, end, target, alpha, seed)
    steps = whole("points", points, 2, 1000)
    parts = list(parts_of(data, names("by", by), asked))
    each = asked.alpha / len(parts)
    rows = [row for p in parts for row in _rows(p, asked, each, steps)]
    columns = dict(zip(COLUMNS, (tuple(v) for v in zip(*rows, strict=True)), strict=True)) if rows else {}
    return Curve(
        method="diagnose.acceptance_curve",
        columns=columns or dict.fromkeys(COLUMNS, ()),
        settings={
            "risk": asked.risk,
            "end": asked.end,
            "target": asked.target,
            "alpha": asked.alpha,
            "level": 1.0 - asked.alpha,
            "groups": {p.name: _compared(p, asked, each) for p in parts},
            "seed": asked.seed,
        },
    )


def _rows(part: Part, asked: Asked, alpha: float, points: int) -> Iterator[Row]:
    by_units = part.ranked_units(asked.highest)
    if by_units is not None:
        yield from _unit_rows(part, by_units, alpha)
        return
    ranking = part.ranking
    certifying, left = part.certifying(asked, alpha)
    # A share's threshold is the first one that passes as many rows; scores alone choose it.
    at = np.unique(np.searchsorted(ranking.rows, np.arange(1, points + 1) / points * ranking.n))
    held = Ranking(certifying.threshold[at], certifying.rows[at], certifying.wrong[at])
    high = acceptance.highest_rate(held, left)
    alone = acceptance.clopper_pearson(ranking.rows[at], ranking.wrong[at], alpha)
    for i, k in enumerate(at):
        rows, wrong = int(ranking.rows[k]), int(ranking.wrong[k])
        told = (rows / ranking.n, float(ranking.threshold[k]), rows, wrong, wrong / rows)
        yield (part.name, *told, float(high[i]), float(alone[i]))


def _unit_rows(part: Part, by_units: UnitRanking, alpha: float) -> Iterator[Row]:
    shared = alpha / max(len(by_units.threshold), 1)
    for t in map(float, by_units.threshold):
        told = part.down_to(t, by_units.highest)
        if told.rows:
            high = by_units.highest_rate(t, shared)
            alone = by_units.highest_rate(t, alpha)
            yield (part.name, told.share, t, told.rows, told.wrong, told.wrong / told.rows, high, alone)


def _compared(part: Part, asked: Asked, alpha: float) -> dict[str, float | None]:
    """Return the shares that three ways of choosing would accept."""
    accepted = float(part.accepted(asked, alpha)["share"] or 0.0)
    if part.units is not None:
        return {"accepted": accepted, "sequence": None, "picked": None}
    ranking = part.ranking
    passed = acceptance.sequence(ranking, asked.risk, alpha)
    picked = np.nonzero(acceptance.clopper_pearson(ranking.rows, ranking.wrong, alpha) <= asked.risk)[0]
    shares = ranking.rows / ranking.n
    return {
        "accepted": accepted,
        "sequence": float(shares[passed]) if passed >= 0 else 0.0,
        "picked": float(shares[picked.max()]) if len(picked) else 0.0,
    }
