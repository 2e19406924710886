"""Rows without a label: the range of every verdict, whatever their outcomes, and under a stated bound."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from calibrant.arguments import checked_alpha, checked_steps, names, number
from calibrant.certify.certificate import Setting, certificate
from calibrant.certify.closed import Judge, Verdict
from calibrant.certify.groups import checked_judge, checked_limit
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.results import Curve
from calibrant.stats.missing.unlabelled import ODDS as RATIOS
from calibrant.stats.missing.unlabelled import Ends, stands_to
from calibrant.views.population import QUANTISATION
from calibrant.views.sample import keyed
from calibrant.views.unlabelled import Cells, kept_sketch

Stated: TypeAlias = Verdict | Literal["not_checked"]  # "none" without a limit
EVERYONE = "everyone"
ODDS = 2.0  # the stated bound, where nobody states one
LABELLED, AT_RANDOM, BOUNDED, ANY = "labelled", "at random", "odds", "any"
COLUMNS = ("people", "assumption", "odds", "rows", "unlabelled", "low", "high", "verdict", "stands_to")


class MissingLabelOptions(NamedTuple):
    """What is certified of each population."""

    judge: Judge
    limit: float | None
    odds: float
    steps: int


class Row(NamedTuple):
    """A line of the table."""

    people: str
    assumption: str
    odds: float | None
    rows: int
    unlabelled: int
    low: float
    high: float
    verdict: Stated
    stands_to: float


OWN = (
    Setting("limit", None, "L", "largest acceptable error, or gap, to judge by"),
    Setting("odds", ODDS, "G", "how many times the odds may differ of those without a label"),
    Setting("steps", 100, "K", "steps"),
)


@certificate(order=120, settings=OWN, grouped=True)
@takes_arrays
def missing_labels(
    data: Predictions | Sketch,
    *,
    by: Iterable[str] | str | None = None,
    intersections: bool = False,
    limit: float | None = None,
    judge: Judge = "error",
    odds: float = ODDS,
    steps: int = 100,
    alpha: float = 0.05,
    seed: int = 0,
) -> Curve:
    r"""Certify the error, or the gap, of everyone and of each group, those without a label among them.

    Estimand, of the people in the data, with or without a label: ``sum_c N_c |s_c - e_c| / N``, in probability
    clusters. ``N_c`` of the N people have a score in step c, of mean ``s_c``, and the mean of their probabilities of
    the outcome is ``e_c``. With ``judge="gap"``: ``sum_c N_c (e_c - s_c) / N``, in which errors cancel.

    Parameters
    ----------
    data : Predictions or Sketch
        Made with ``missing="keep"``.
    by : str or sequence of str, optional
        Covariates whose levels are the groups; a sketch brings its own.
    intersections : bool
        Also every pair of them.
    limit : float in (0, 1), optional
        Size of error, or of gap, to judge by.
    judge : {"error", "gap"}
    odds : float, at least 1
        The stated bound: among people of one step of the score (and one group), the odds of the outcome of those
        without a label are at most so many times those of the others, and at least one so-many-th.
    steps : int from 2 to 1024
        Steps of the score.
    alpha : float in (0, 0.5]
        Everyone's two ends share it; so do, once more, all ends of all groups.
    seed : int
        Of the sketch; nothing here is random.

    Returns
    -------
    Curve
        Four lines for everyone, and for each group, by ``assumption``: ``"labelled"`` is about those who have a label
        alone; ``"at random"`` says that labels are missing at random given the score (odds 1); ``"odds"`` is the stated
        bound; ``"any"`` assumes nothing. ``low`` and ``high`` are certified, ``verdict`` is "within", "over",
        "undecided", or "none" without a limit. ``stands_to``: the verdict at random stands unless the odds differ by
        more than this; infinite if it stands whatever the missing labels, 0 if it is undecided.

    Raises
    ------
    NotComputable
        Rows without a label were not kept, or a sketch has clusters or weights: pass the rows.

    Notes
    -----
    **Assumes.** Outcomes independent given the scores and whose label is missing; nothing of why it is. Steps, groups
    and `odds` chosen without the outcomes. Of clusters: these are independent, their rows as dependent as they like; of
    weights, that they do not depend on outcomes: all means and shares are then weighted, counts are not.
    **Guarantee.** Finite-sample: under its assumption each end is wrong with probability at most its share of alpha,
    and so is "stands to": if the verdict is wrong although the odds differ by less, that had this probability.
    **Method.** One bet for every person, or cluster; of those without a label the worst share that the assumption
    allows, a line above the largest (below the least) probability at these odds, by which those of the same step who
    have a label stand for them (documentation: missing labels). Gaps of the labelled, and of all where nothing is
    assumed: binomial limits of the number of events, as of `groups`, where they are narrower. **Cost.** Milliseconds a
    population, a tenth of a second with a limit. **Reads.** The sketch; of clusters and weights the rows.

    References
    ----------
    C. F. Manski (1989), Anatomy of the selection problem, doi:10.2307/145818. J. M. Robins, A. Rotnitzky, D. O.
    Scharfstein (2000), Sensitivity analysis for selection bias, doi:10.1007/978-1-4612-1284-3_1.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> y = (rng.uniform(size=20_000) < p).astype(float)
    >>> y[rng.uniform(size=20_000) < 0.1] = np.nan  # one in ten is lost
    >>> found = cal.certify.missing_labels(cal.predictions(y, p, missing="keep"), limit=0.05)
    >>> found.columns["verdict"]
    ('within', 'within', 'within', 'undecided')
    """
    options = MissingLabelOptions(checked_judge(judge), checked_limit(limit), checked_odds(odds), checked_steps(steps))
    alpha, named = checked_alpha(alpha), names("by", by)
    whole = kept_sketch(data, seed, named, intersections)
    groups = present(whole)
    everyone = Cells.of(whole)
    rows = list(lines(EVERYONE, everyone, options, alpha / 2.0))
    for name, index in groups:
        rows += lines(name, Cells.of(whole, index), options, alpha / 2.0 / len(groups))
    return table(rows, options, alpha, everyone)


def checked_odds(odds: object, name: str = "odds") -> float:
    """A ratio of odds; refuse one out of range."""
    return number(name, odds, least=1.0, most=1e6)


def table(rows: list[Row], options: MissingLabelOptions, alpha: float, everyone: Cells) -> Curve:
    """Lines as a curve."""
    settings = {**options._asdict(), "alpha": alpha, "assumes": everyone.assumes, **everyone.reported}
    columns = dict(zip(COLUMNS, map(tuple, zip(*rows, strict=True)), strict=True))
    return Curve(method="certify.missing_labels", columns=columns, settings=settings)


def present(sketch: Sketch) -> list[tuple[str, int]]:
    """Name and number of every group that has rows, with a label or without."""
    named = [n for g in range(len(sketch.spec.groupings)) for n in sketch.spec.group_names(g)]
    apart = sketch.parts["unlabelled"].stored[1:, :, 0].sum(axis=1)
    rows = sketch.group_levels.sum(axis=(1, 2, 3)) + apart
    return [(keyed(name), i) for i, name in enumerate(named) if rows[i] > 0]


class Exact:
    """Reports every end as it is; whoever may not tell it so exactly moves it outward."""

    def end(self, value: float, _: int) -> float:
        """An end from below (-1) or from above (1) as it is reported, no tighter than it is."""
        return value

    def over(self, limit: float) -> float:
        """The least that an end from below must be for the end as reported to be over a limit."""
        return limit

    def within(self, limit: float) -> float:
        """The most that an end from above may be for the end as reported to be within a limit."""
        return limit


EXACT = Exact()


def lines(
    people: str, cells: Cells, options: MissingLabelOptions, delta: float, reported: Exact = EXACT
) -> Iterable[Row]:
    """One population's lines as reported; each end of each is wrong with probability at most `delta`."""
    results = {
        LABELLED: (cells.rows, 1.0, None),
        AT_RANDOM: (cells.rows + cells.missing, 1.0, 1.0),
        BOUNDED: (cells.rows + cells.missing, options.odds, options.odds),
        ANY: (cells.rows + cells.missing, math.inf, None),
    }
    stands = _stands_to(cells, options, delta, reported)
    for assumption, (n, odds, stated) in results.items():
        q = cells.ranged(options.steps, odds, labelled_only=assumption == LABELLED) if n else None
        low, high = ends(q, options.judge, delta, reported)
        yield Row(
            people, assumption, stated, cells.rows, cells.missing, low, high, verdict(low, high, options.limit), stands
        )


def ends(q: Ends | None, judge: Judge, delta: float, reported: Exact = EXACT) -> tuple[float, float]:
    """The certified ends of the error, or of the signed gap, as they are reported; of nobody all that may be."""
    least = 0.0 if judge == "error" else -1.0
    if q is None:
        low, high = least, 1.0
    elif judge == "gap":
        low, high = q.gap(delta)
    else:
        low, high = q.error_below(delta), q.error_above(delta)
    low, high = max(low - QUANTISATION, least), min(high + QUANTISATION, 1.0)
    return reported.end(low, -1), reported.end(high, 1)


def verdict(low: float, high: float, limit: float | None) -> Stated:
    """Judge a range of the error, or of the signed gap."""
    if limit is None:
        return "not_checked"
    if low > limit or high < -limit:
        return "over"
    return "within" if -limit <= low and high <= limit else "undecided"


def _stands_to(cells: Cells, options: MissingLabelOptions, delta: float, reported: Exact) -> float:
    """Up to which odds the verdict at random stands, at every ratio asked up to there."""
    if not cells.rows + cells.missing or options.limit is None:
        return 0.0
    of, ratios = partial(cells.ranged, options.steps), (*RATIOS[: -1 : cells.every], RATIOS[-1])  # the last is infinite

    def stated(odds: float) -> Stated:
        return verdict(*ends(of(odds), options.judge, delta, reported), options.limit)

    first = stated(1.0)
    if first not in ("within", "over"):
        return 0.0
    if options.judge == "gap":
        return stands_to(lambda odds: stated(odds) == first, ratios)
    enough, limit = -math.log(delta), options.limit
    if first == "within":
        return stands_to(lambda odds: of(odds).refutes_less(reported.within(limit) - QUANTISATION) >= enough, ratios)
    return stands_to(lambda odds: of(odds).refutes_more(reported.over(limit) + QUANTISATION) >= enough, ratios)
