"""Whose decisions a repair changes at a threshold, in which direction, and what that gains: a certified net benefit.

A row is acted on where its score is at least the threshold t. Given the scores, a row that comes to be acted on adds 1
to the gain if it is an event, and ``-t / (1 - t)`` if not; one no longer acted on adds the reverse; any other
adds 0. So the gain is linear in the outcomes, and the judge's betting limits hold it at any number of rows. All gains
of everyone have half of alpha, those of the groups the other half, each shared by repairs, thresholds and groups alike:
so repair, threshold and group may be picked by what is reported.

Numbers of rows are rounded to multiples of five, gains in steps of two to five people's share, ends moved outward.
Where fewer than 20 rows change side, no more than that is reported: few gains are one person's outcome. The groups of
one variable add up to everyone, so that one of them could be had by subtraction: the next fewest are then not reported
either, until those not reported are 20 together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import MASK
from calibrant.repair.disclosure import PARTS, grain
from calibrant.repair.judge.evidence import JudgedGroups
from calibrant.repair.judge.rows import Judged
from calibrant.repair.judge.verdict import AS_AUDITED, Shown, by_ends, curve_of
from calibrant.repair.regression import Whole, independent
from calibrant.results import Curve
from calibrant.stats.decisions.comparison import benefit_lost

EVERYONE = "everyone"
FIVE = 5  # rows in which numbers are reported; a step of a gain is at most so many people's share
GROUPED, ALONE = {EVERYONE: 0.5, "groups": 0.5}, {EVERYONE: 1.0}  # of alpha


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionChange:
    """What one repair changes at one threshold for one population. None: few change side, or could be subtracted."""

    probability: str
    threshold: float
    population: str  # "everyone", or a group such as "sex=f"
    rows: int  # judged; of a group in multiples of five
    # `to_act` and `to_leave`: rows that come to be acted on, and rows that are not any more, in multiples of five.
    to_act: int | None = None
    to_leave: int | None = None
    # `gain`, `gain_low` and `gain_high`: net benefit after less net benefit as audited, in true positives a row, and
    # its certified range.
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    shown: Shown | Literal["none"] | None = None  # "none": no row changes side


def decision_changes(
    judged: Judged, groups: JudgedGroups, thresholds: Sequence[float], alpha: float, least: int = MASK
) -> Curve:
    """A line for each repair, threshold and population, everyone before the groups."""
    people = [one for one in groups.people if _people(judged, one.rows) >= least]
    shares = GROUPED if people else ALONE
    each = max(len(judged.repairs) * len(thresholds), 1)
    every, result = np.arange(judged.data.n), []
    for name in judged.repairs:
        for t in thresholds:
            moved = (judged.scores[AS_AUDITED] >= t) != (judged.scores[name] >= t)
            result.append(_change(judged, (name, t, EVERYONE), every, alpha * shares[EVERYONE] / each, least))
            few = untold(judged, [g.rows[moved[g.rows]] for g in people], [g.variable for g in people], moved, least)
            for i, one in enumerate(people):
                share = alpha * shares["groups"] / (each * len(people))
                most = judged.data.n + 1 if i in few else least
                result.append(_change(judged, (name, t, one.who), one.rows, share, most, one.pilots))
    settings = {"thresholds": tuple(thresholds), "alpha": alpha, "shares": shares, "groups": len(people)}
    return curve_of("decisions", DecisionChange, result, {**settings, "least": least})


def untold(
    judged: Judged, moved: Sequence[Whole], variables: Sequence[str], everyone: NDArray[np.bool_], least: int
) -> set[int]:
    """The groups of which nothing is reported, given who changes side: few, and what would reveal them.

    Of each variable, rows in no group that is judged are never reported, and nor are groups in which some change side,
    but under `least`. Everyone less the others would be these: so the next fewest join them, until they are none or
    `least` together.
    """
    out: set[int] = set()
    for variable in dict.fromkeys(variables):
        own = [i for i, v in enumerate(variables) if v == variable]
        rest = everyone.copy()
        for i in own:
            rest[moved[i]] = False
        hidden, size = np.flatnonzero(rest), {i: _people(judged, moved[i]) for i in own}
        order = sorted((i for i in own if size[i]), key=lambda i: size[i])
        for i in order:
            if size[i] >= least and not 0 < _people(judged, hidden) < least:
                break
            out.add(i)
            hidden = np.concatenate([hidden, moved[i]])
    return out


def _change(
    judged: Judged,
    named: tuple[str, float, str],
    rows: Whole,
    delta: float,
    least: int,
    pilots: Whole | None = None,
) -> DecisionChange:
    name, t, who = named
    n = len(rows) if who == EVERYONE else _fives(len(rows))
    before, after = judged.scores[AS_AUDITED] >= t, judged.scores[name] >= t
    up, down = (int(np.count_nonzero(side[rows])) for side in (after & ~before, before & ~after))
    line = DecisionChange(probability=name, threshold=t, population=who, rows=n)
    if not up + down:
        return replace(line, to_act=0, to_leave=0, gain=0.0, gain_low=0.0, gain_high=0.0, shown="none")
    if _people(judged, rows[(before != after)[rows]]) < least:
        return line
    (old, old_event), (new, new_event) = (benefit_lost(judged.scores[k], t) for k in (AS_AUDITED, name))
    among = None if who == EVERYONE else rows
    mean, low, high = judged.mean_range(old - new, old_event - new_event, delta, among, pilots)
    u = grain(PARTS * FIVE / len(rows))
    low, high = _plain(u * math.floor(low / u + 1e-9)), _plain(u * math.ceil(high / u - 1e-9))
    return replace(
        line,
        to_act=_fives(up),
        to_leave=_fives(down),
        gain=_plain(u * round(mean / u)),
        gain_low=low,
        gain_high=high,
        shown=by_ends(low, high, upward=True),
    )


def _people(judged: Judged, rows: Whole) -> int:
    return int(independent(judged.data, rows)[1].max(initial=-1)) + 1


def _fives(n: int) -> int:
    return FIVE * round(n / FIVE)


def _plain(value: float) -> float:
    return round(value, 12) + 0.0  # no digits of the step's, and no -0.0
