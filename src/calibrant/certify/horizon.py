"""Outcomes by a horizon, some of them lost to follow-up: the gap of everyone and of groups, by weights of censoring."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import checked_alpha, checked_seed, names, number
from calibrant.certify.certificate import Setting, certificate
from calibrant.certify.groups import checked_limit
from calibrant.certify.missing_labels import verdict
from calibrant.data.calls import takes_arrays
from calibrant.data.columns import as_float, require
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.horizon import level_keys
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.stats.betting import Clusters, mean_limits
from calibrant.stats.missing.survival import LEAST, censoring_band
from calibrant.views.sample import keyed
from calibrant.views.unlabelled import FollowedRows, groups_of_all

Floats = NDArray[np.float64]

PILOTS = 0.3  # of the rows, from which that probability is estimated: they are certified nowhere
BAND = 0.2  # of alpha, that a limit of that probability is wrong
DRAWN = 0x0E11  # stream of random numbers, apart from those of other methods at the same seed
EVERYONE = "everyone"
STATED = "independent rows, lost to follow-up independently of outcomes, by the probabilities in {}"
ESTIMATED = "independent rows of one law, lost to follow-up independently of outcome and score{} among these rows"
COLUMNS = ("people", "rows", "unknown", "value", "low", "high", "verdict")
Survival = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Strata:
    """The levels within which follow-up ends independently of outcome and score."""

    of: NDArray[np.int64]  # shape (n,): the level of each row, those of unknown outcome last
    within: tuple[str, ...]  # the columns; none for one level

    @classmethod
    def by(cls, data: Predictions, within: tuple[str, ...]) -> Strata:
        """Levels of these columns; of none those that the rows were made with."""
        apart = data.unlabelled
        if not within and data.followed is not None:
            return cls(data.followed.level, data.followed.within)
        n = data.n + (0 if apart is None else len(apart.p))
        if not within or apart is None:  # no row was lost
            return cls(np.zeros(n, dtype=np.int64), ())
        require(within, [] if data.covariates is None else data.covariates.column_names, "covariate")
        tables = data.covariates, apart.covariates
        keys = [level_keys(pa.concat_tables([t.select([name]) for t in tables]).column(name)) for name in within]
        levels = {key: i for i, key in enumerate(dict.fromkeys(zip(*keys, strict=True)))}
        return cls(np.array([levels[key] for key in zip(*keys, strict=True)], dtype=np.int64), within)


@dataclass(frozen=True)
class Reach:
    """How likely each row was followed to where its outcome is decided, between limits, and to the horizon."""

    rows: NDArray[np.bool_]  # shape (n,): which rows are certified
    low: Floats  # shape (n,)
    high: Floats  # shape (n,)
    end_low: Floats  # shape (n,): the same at the horizon
    end_high: Floats  # shape (n,)
    share: float  # of alpha that these limits spend
    assumes: str
    settings: dict[str, object]


@certificate(order=125, settings=(Setting("limit", None, "L", "largest acceptable gap, to judge by"),), grouped=True)
@takes_arrays
def horizon(
    data: Predictions | Sketch,
    *,
    by: Iterable[str] | str | None = None,
    intersections: bool = False,
    limit: float | None = None,
    judge: str = "gap",
    within: Iterable[str] | str | None = None,
    censoring_survival: str | Survival | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> Curve:
    r"""Certify the gap by a horizon of everyone and of each group, where follow-up ended early for some.

    Estimand: the mean over rows of ``P(T <= H, the event | x) - p``. With ``G(t) = P(C >= t)``, the probability of
    being followed to t, a known outcome adds ``(Y - p) / G(min(T, H))`` and an unknown one nothing: each row's mean is
    its gap.

    Parameters
    ----------
    data : Predictions
        From `calibrant.at_horizon` with ``way="weights"``.
    by : str or sequence of str, optional
        Covariates whose levels are the groups.
    intersections : bool
        Also every pair of them.
    limit : float in (0, 1), optional
        Size of gap to judge by.
    judge : {"gap"}
        The calibration error has no proof here.
    within : str or sequence of str, optional
        Covariates within whose levels follow-up ends independently of outcome and score; by default those of
        `calibrant.at_horizon`, and without these all rows are one level. A group's range takes its own rows alone.
    censoring_survival : str or callable, optional
        The probability of being followed, where it is known: a covariate that holds G at the event or at the horizon,
        whichever is first; or G itself, a function of times, which holds in every group. By default limits of it come
        from pilot rows, of each group from its own.
    alpha : float in (0, 0.5]
        Everyone's two ends share it; so do, once more, all ends of all groups.
    seed : int
        Chooses the pilot rows, a third or so, which are certified nowhere.

    Returns
    -------
    Curve
        A line for everyone and for each group: certified ``rows``, of how many the outcome is ``unknown``; ``value``,
        the weighted mean; ``low`` and ``high``; ``verdict`` "within", "over", "undecided", or "not_checked" without
        a limit. Settings hold ``guarantee``, the least probability of being followed to the horizon, and the pilots.
        A group that is followed to the horizon with less than 5% has no value and the range from -1 to 1; ``unbounded``
        in the settings has the reason. All ranges are of the rows that are no pilots.

    Raises
    ------
    NotComputable
        Rows have no follow-up, or clusters or weights; or being followed to the horizon is less likely than 5%.

    Notes
    -----
    **Assumes.** Independent rows of one law. Of everyone: within the levels of `within`, follow-up ends independently
    of outcome and score together. Of a group: the same among its rows, whatever the follow-up of other groups. A group
    that is lost sooner and has more events than its score breaks what everyone's range assumes, not its own: name it in
    `within`. Whoever was lost because of the outcome breaks both, and no data show that: `missing_labels` assumes
    nothing.
    **Guarantee.** Finite-sample: each end is wrong with probability at most its share of alpha. With G from pilot rows
    a fifth of alpha is spent on limits of G that hold at all times, and ends take the worst between them. Groups spend
    once more a fifth of alpha, in equal shares, each on limits of its own G.
    **Method.** Bets on the weighted residuals, stakes fixed by the scores, each row between ``-p / G(H)`` and
    ``(1 - p) / G(H)``. Limits of G: martingales of the rows that were lost, one after another; see documentation:
    Proofs, Theorem S.
    **Cost.** Linear in the rows. **Reads.** Rows.

    References
    ----------
    J. Robins, A. Rotnitzky (1992), Recovery of information and adjustment for dependent censoring using surrogate
    markers, doi:10.1007/978-1-4757-1229-2_14.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ends, lost = rng.exponential(1000, 4000), rng.exponential(2000, 4000)
    >>> log = {"days": np.minimum(ends, lost), "died": ends <= lost, "risk": np.full(4000, 1 - np.exp(-0.365))}
    >>> rows = cal.at_horizon(log, score="risk", time="days", event="died", horizon=365, way="weights")
    >>> cal.certify.horizon(rows, limit=0.1).columns["verdict"]
    ('within',)
    """
    alpha, limit, by, seed = checked_alpha(alpha), checked_limit(limit), names("by", by), checked_seed(seed)
    if judge not in ("gap", "error"):
        raise BadInput(f"judge={judge!r}: pass 'gap', for by weights of censoring the gap alone is certified")
    q, data = FollowedRows.of(data), cast(Predictions, data)
    strata, every = Strata.by(data, names("within", within)), np.ones(len(q.p), dtype=np.bool_)
    reach = (
        estimated(q, strata, every, alpha * BAND, seed)
        if censoring_survival is None
        else stated(data, q, censoring_survival)
    )
    people = [(EVERYONE, reach.rows)]
    for group, rows in groups_of_all(data, by, intersections) if by else ():
        at = np.zeros(len(q.p), dtype=np.bool_)
        at[rows] = True
        people += [(keyed(group), at)] if (at & reach.rows).any() else []
    table: list[tuple[str | int | float | None, ...]] = []
    unbounded = {}
    for i, (name, at) in enumerate(people):
        share = alpha / (1 if i == 0 else len(people) - 1)
        mine = at & reach.rows
        value, low, high = None, -1.0, 1.0
        try:
            own = reach if i == 0 or not reach.share else estimated(q, strata, at, share * BAND, seed)
            value, low, high = certified(q, own, mine, share * (1.0 - own.share))
        except NotComputable as e:
            unbounded[name] = e.reason
        row = name, int(mine.sum()), int((mine & ~q.known).sum())
        table.append((*row, value, low, high, verdict(low, high, limit)))
    settings: dict[str, object] = {"alpha": alpha, "limit": limit, "horizon": q.horizon, "guarantee": "finite-sample"}
    settings |= {"judge": "gap", **({"unbounded": unbounded} if unbounded else {})}
    return Curve(
        method="certify.horizon",
        columns=dict(zip(COLUMNS, zip(*table, strict=True), strict=True)),
        settings={**settings, **reach.settings, "assumes": reach.assumes, "seed": seed},
    )


def certified(
    q: FollowedRows, reach: Reach, at: NDArray[np.bool_], delta: float, slope: Floats | None = None
) -> tuple[float, float, float]:
    """The weighted mean gap of some rows, and limits of the gap, both wrong with probability at most `delta`.

    With slopes, fixed by scores, shape (n,) of these rows: the same of the mean of each row's gap times its slope.
    """
    p, y, n = q.p[at], q.y[at], int(at.sum())
    by = np.ones(n) if slope is None else slope
    low, high, end_low, end_high = (each[at] for each in (reach.low, reach.high, reach.end_low, reach.end_high))
    spread = np.clip(p, 1e-3, 1.0 - 1e-3)
    scale = float(np.sqrt((by**2 * spread * (1.0 - spread) / end_low).sum()))

    def limits(event: Floats, none: Floats, event_end: Floats, none_end: Floats) -> tuple[float, float, float]:
        # what makes a row's gap small makes it large once it is multiplied by a slope below 0
        pairs = (event, none), (none, event), (event_end, none_end), (none_end, event_end)
        event, none, event_end, none_end = (np.where(by < 0.0, turned, one) for one, turned in pairs)
        value = by * np.where(np.isnan(y), 0.0, np.where(y == 1.0, (1.0 - p) / event, -p / none))
        ends = -by * p / none_end, by * (1.0 - p) / event_end
        u = Clusters(value=value, least=np.minimum(*ends), most=np.maximum(*ends), size=np.ones(n), scale=scale)
        return (u.mean, *mean_limits(u, delta))

    # the lower end: events count least where being followed was most likely, non-events most where it was least likely
    least, below, _ = limits(high, low, end_high, end_low)
    most, _, above = limits(low, high, end_low, end_high)
    widest = 1.0 if slope is None else float(np.abs(by).mean())
    return float((least + most) / 2.0), max(below, -widest), min(above, widest)


# ---- how likely rows were followed ----


def stated(data: Predictions, q: FollowedRows, survival: str | Survival) -> Reach:
    """As somebody knows it: of a covariate, or a function of time."""
    if isinstance(survival, str):
        require((survival,), [] if data.covariates is None else data.covariates.column_names, "covariate")
        apart = data.unlabelled
        tables = (data.covariates,) if apart is None else (data.covariates, apart.covariates)
        g = np.concatenate([as_float(t.column(survival), survival, "covariate") for t in tables])
        end, of = np.full(len(g), LEAST), f"column {survival!r}"
    else:
        g, of = np.asarray(survival(q.until), dtype=np.float64), "censoring_survival="
        end = np.full(len(g), float(np.asarray(survival(np.array([q.horizon])))[0]))
    if (wrong := ~((g >= LEAST) & (g <= 1.0)) & q.known).any():
        at = int(np.argmax(wrong))
        raise BadInput(
            f"censoring_survival: {int(wrong.sum()):,} values of {of} are not from {LEAST:g} to 1, the first "
            f"{g[at]:g}: it holds the probability of being followed to the event or the horizon, whichever is first; "
            "where that is smaller, leave such rows out by what was known at entry, or name an earlier horizon"
        )
    g = np.where(q.known, g, 1.0)
    every = np.ones(len(g), dtype=np.bool_)
    least = number("censoring_survival at the horizon", float(end.min()), least=LEAST, most=1)
    if (g[q.known] < least).any():
        raise BadInput(
            f"censoring_survival: {of} is {float(g[q.known].min()):g} before the horizon and {least:g} at it, and the "
            "probability of being followed so far only falls with time"
        )
    settings = {"censoring": "stated", "followed_at_least": least, "pilots": 0}
    return Reach(every, g, g, end, end, 0.0, STATED.format(of), settings)


def pilots(q: FollowedRows, seed: int) -> NDArray[np.bool_]:
    """Which rows are pilots, by their places alone: the same rows whoever is asked about, and however it ended."""
    return np.random.default_rng([seed, DRAWN]).random(len(q.p))[q.rank] < PILOTS


def estimated(q: FollowedRows, strata: Strata, at: NDArray[np.bool_], delta: float, seed: int) -> Reach:
    """Limits of it for some rows, by the pilot rows among them, which no certificate reads.

    Both are wrong at any time with probability at most `delta`.
    """
    return learned(q, strata, at, delta, pilots(q, seed))


def learned(q: FollowedRows, strata: Strata, at: NDArray[np.bool_], delta: float, pilot: NDArray[np.bool_]) -> Reach:
    """The same by pilot rows that were chosen, whatever their outcomes."""
    low, high, end_low, end_high = np.ones((4, len(q.p)))
    levels = np.unique(strata.of[at])
    for s in levels:
        own = at & (strata.of == s)
        if not (own & pilot).any():
            raise NotComputable(_too_few(q, 0.0, own & pilot, strata.within))
        band = censoring_band(q.time[own & pilot], q.kind[own & pilot], delta / len(levels), q.horizon)
        least = float(band.low.before(np.array([q.horizon]))[0])
        if least < LEAST:
            fits = band.low.time[band.low.value[:-1] >= LEAST]
            raise NotComputable(_too_few(q, float(fits[-1]) if len(fits) else 0.0, own & pilot, strata.within))
        low[own], high[own] = band.low.before(q.until[own]), band.high.before(q.until[own])
        end_low[own], end_high[own] = least, float(band.high.before(np.array([q.horizon]))[0])
    of = f" within levels of {', '.join(strata.within)}" if strata.within else ""
    settings = {
        "censoring": "pilot rows",
        "followed_at_least": float(end_low[at].min()),
        "pilots": int((pilot & at).sum()),
    }
    return Reach(~pilot & at, low, high, end_low, end_high, BAND, ESTIMATED.format(of), settings)


def _too_few(q: FollowedRows, far: float, rows: NDArray[np.bool_], within: tuple[str, ...]) -> str:
    """Say that weights have no bound at this horizon, and up to which time they have."""
    of = f" in a level of {', '.join(within)}" if within else ""
    earlier = f"name an earlier horizon, up to {far:g}" if far > 0.0 else "name an earlier horizon"
    earlier = f"leave within= (--within) out, or merge small levels; or {earlier}" if within else earlier
    return (
        f"by {int(rows.sum()):,} pilot rows{of}, being followed to {q.horizon:g} may be less likely than {LEAST:g}, so "
        f"that weights have no bound: {earlier}, or assume nothing by certify.missing_labels (--way unknown)"
    )
