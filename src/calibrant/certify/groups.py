"""Everyone's turn: certified intervals for all groups at once, who is over a limit, and the worst of all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import get_args

import numpy as np

from calibrant.arguments import checked_steps, choice, names, number, share
from calibrant.certify.certificate import Setting, certificate
from calibrant.certify.closed import Evidence, Judge, Limit, SignedEvidence, bet_sizes_for, evidence_of, verdicts
from calibrant.certify.whole import raw_certificate, shown_certificate
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Estimate, Interval, Side
from calibrant.views.population import Population, Target, shares
from calibrant.views.sample import grouped_sketch, groups_of, keyed, named_groups

GAP = "the raw score: happened minus said"
OF_TARGET = {"rows": "the rows in the data", "population": "all rows like these"}
CLEAR_SIZE = 0.05  # share of the rows of groups whose worst is reported by itself, as of subgroups


@takes_arrays
def groups(
    data: Predictions | Sketch,
    *,
    by: Iterable[str] | str | None = None,
    intersections: bool = False,
    limit: float | None = None,
    judge: Judge = "error",
    target: Target | None = None,
    steps: int = 100,
    alpha: float = 0.05,
    side: Side = "two-sided",
    seed: int = 0,
) -> dict[str, Estimate]:
    r"""Certify the average calibration error of every group, or its gap, all at once; and who is over a limit.

    Estimand, for each group g: from below ``E[|p - E[Y|p, g]| | g]`` of the raw score; from above ``E[|r - E[Y|r, g]| |
    g]`` of the score rounded to `levels` steps, or of the raw score too if it takes few values: at most 1,024, and at
    most one for ten rows of all groups together. With ``judge="gap"``, from both sides the mean over the rows of g of
    ``E[Y | p, x] - p``, in which errors cancel; with ``target="population"`` ``E[Y - p | g]``. In probability units.

    Parameters
    ----------
    data : Predictions or Sketch
        A sketch brings its own groups; then leave `by` and `intersections` out.
    by : str or sequence of str
        Covariates whose levels are the groups; numbers are binned at round numbers without looking at labels.
    intersections : bool
        Also every pair of the covariates.
    limit : float in (0, 1), optional
        Size of error, or of gap, to judge every group by.
    judge : {"error", "gap"}
    target : {"rows", "population"}, optional
        Whose gap: of the rows at hand, given their scores and covariates; or of future rows like these, which varies
        more. By default of the rows; with ``cluster=`` or ``weights=`` of the population, which alone is proved then.
    steps : int from 2 to 1024
    alpha : float in (0, 0.5]
        Probability, at most, that *any* end of *any* group's interval is wrong.
    side : {"two-sided", "lower", "upper"}
        A limit is judged from both sides.
    seed : int

    Returns
    -------
    dict of str to Estimate
        A group is named as ``"sex = f"``; empty groups are left out. Order: as the levels. ``settings["verdict"]`` is
        "within", "over", "undecided" or, without a limit, "not_checked".

    Notes
    -----
    **Assumes.** Independent rows from one distribution (gaps of rows: outcomes independent given the scores); groups
    named without looking at outcomes.
    **Guarantee.** Finite-sample, in three statements of their own. All ends of all groups hold simultaneously with
    probability ``1 - alpha``. No group is wrongly "over" with probability ``1 - alpha / 2`` (``1 - alpha`` for gaps,
    which have two signs). No group is wrongly "within" with probability ``1 - alpha / 2``. Where the score takes many
    values the two ends of an error are about different classifiers: call it a certified range. Where the display
    repairs the score, the low end can lie above the high one; ``value`` is about the display.
    **Method.** `raw_lower` and `values` or `rounded` within each group, conditionally on membership; the raw score on
    ``2^10`` cells, so that rounding is exact for 10, 20, 50 and 100 levels and powers of two up to 512, and otherwise
    rounds the middle of the score's cell. Gaps of rows: binomial limits of the number of events, which hold for rows
    of any rates (Hoeffding 1956; a single event has a limit of its own), less the mean score; or one bet on all
    residuals, where scores, which alone decide, are so near 0 or 1 that it is narrower. Gaps of a population: bets,
    stakes by earlier blocks. Ranges share alpha equally over all ends (Bonferroni). Verdicts never decide less than the
    ranges. Those of gaps of rows are Holm's, on p-values at the limit; others come from closed testing by averages of
    e-values, and are "within" for all groups where no group needs to share: see `worst_group`. Data with
    ``cluster=`` or ``weights=``: independent clusters, Theorems CL and CU (documentation: Proofs); error and gap are
    of these weights.
    **Cost.** Linear in the rows, then about 20 ms a group; of clusters, a tenth of a second.
    **Reads.** The sketch; rows, where they have clusters or weights.

    References
    ----------
    R. Marcus, E. Peritz, K. R. Gabriel (1976), On closed testing procedures, doi:10.1093/biomet/63.3.655. V. Vovk,
    R. Wang (2021), E-values: calibration, combination and applications, doi:10.1214/20-AOS2020. W. Hoeffding (1956),
    doi:10.1214/aoms/1177728178. S. Holm (1979), A simple sequentially rejective multiple test procedure.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, sex = rng.uniform(size=4000), np.array(["f", "m"])[rng.integers(0, 2, 4000)]
    >>> data = cal.predictions(rng.uniform(size=4000) < p, p, {"sex": sex})
    >>> {name: e.settings["verdict"] for name, e in cal.certify.groups(data, by="sex", limit=0.1).items()}
    {'sex = f': 'within', 'sex = m': 'within'}
    """
    steps, judge, limit = checked_steps(steps), checked_judge(judge), checked_limit(limit)
    if limit is not None and side != "two-sided":
        raise BadInput(f"side={side!r} goes without limit=: a limit is judged from both sides")
    _, present = _present(data, by, intersections, seed)
    count, spend, target = len(present), shares(alpha, side), checked_target(target, judge, present[0][1])
    each = spend[0] / count, spend[1] / count
    bet_sizes = bet_sizes_for(alpha / 2.0, count)
    results = {
        name: certified_range(q, steps, each, 1.0 - alpha, seed, bet_sizes)
        if judge == "error"
        else signed(q, each, 1.0 - alpha, bet_sizes, target)
        for name, q in present
    }
    says: Iterable[str] = ("not_checked",) * count
    if limit is not None:
        of = [evidence_of(q, judge, steps, bet_sizes, seed, target) for _, q in present]
        at, holm = Limit(limit, limit), any(e.p_values for e in of)
        says = verdicts([e.over(at) for e in of], [e.within(at) for e in of], judge, alpha, holm)
    return {
        name: replace(e, settings={**e.settings, "judge": judge, "limit": limit, "verdict": verdict})
        for (name, e), verdict in zip(results.items(), says, strict=True)
    }


@certificate(
    order=55,
    grouped=True,
    settings=(
        Setting("steps", 100, "K", "rounding steps of the score"),
        Setting("clear_size", CLEAR_SIZE, "SHARE", "smallest share of the rows of the groups distinguished"),
    ),
)
@takes_arrays
def worst_group(
    data: Predictions | Sketch,
    *,
    by: Iterable[str] | str | None = None,
    intersections: bool = False,
    judge: Judge = "error",
    target: Target | None = None,
    steps: int = 100,
    clear_size: float = CLEAR_SIZE,
    alpha: float = 0.05,
    side: Side = "two-sided",
    seed: int = 0,
) -> Estimate:
    r"""Certify the worst of all groups: no named group is off by more than the high end.

    Estimand: ``max over groups g of E[|p - E[Y|p, g]| | g]``, from above of the rounded score, as `groups`; with
    ``judge="gap"`` the largest size of the groups' gaps, as there. In probability units.

    Parameters
    ----------
    data, by, intersections, judge, target, steps
        As `groups`.
    clear_size : float in [0, 1)
        Groups with at least this share of the rows have a high end of their own: that of all is mostly about the
        smallest.
    alpha : float in (0, 0.5]
        Probability, at most, that an end is wrong.
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int

    Returns
    -------
    Estimate
        ``value`` is the largest estimate of a group, moved into the interval. ``settings`` tell the groups behind the
        two ends, ``group_low`` and ``group_high``, and ``clear_high``, the high end of the groups with `clear_size` of
        the rows; None without any.

    Notes
    -----
    **Assumes.** As `groups`.
    **Guarantee.** Finite-sample. The high end shares alpha with nobody: the group that is truly the worst is one group,
    fixed before any outcome was read; its own upper end covers it, and the largest of all upper ends is no smaller. The
    low end is the largest of floors that hold simultaneously, and shares alpha over the groups.
    **Method.** That of `groups`. Where the upper side of `groups` refutes that any group is over a limit, the high end
    is at most that: each is then "within", except one whose raw score is "over" though its display is within. The
    other way round this holds of e-values; Holm's procedure can leave groups undecided that are within together.
    **Cost.** As `groups`. **Reads.** The sketch.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.uniform(size=20_000), np.array([f"site {i}" for i in range(10)])[rng.integers(0, 10, 20_000)]
    >>> data = cal.predictions(rng.uniform(size=20_000) < p, p, {"site": site})
    >>> worst = cal.certify.worst_group(data, by="site").interval.high
    >>> bool(worst < max(e.interval.high for e in cal.certify.groups(data, by="site").values()))
    True
    """
    steps, judge = checked_steps(steps), checked_judge(judge)
    clear_size = number("clear_size", clear_size, least=0, below=1, hint="such as 0.01")
    whole, present = _present(data, by, intersections, seed)
    low_share, high_share = shares(alpha, side)
    bet_sizes, target = bet_sizes_for(alpha / 2.0, len(present)), checked_target(target, judge, present[0][1])
    of = [evidence_of(q, judge, steps, bet_sizes, seed, target) for _, q in present]
    floors = [sizes(e, low_share / len(present), judge)[0] for e in of]
    tops = [sizes(e, high_share, judge)[1] for e in of]
    values = [abs(q.off) if judge == "gap" else q.judged(steps).debiased for _, q in present]
    low, high = max(floors), max(tops)
    shown = present[0][1].judged(steps)
    about = gap_about(target) if judge == "gap" else _about(present[0][1], steps)
    return Estimate(
        method="certify.worst_group",
        value=min(max(*values, low), max(low, high)),
        unit="probability",
        n=whole.n,
        interval=Interval(low=low, high=high, level=1.0 - alpha, guarantee="finite-sample"),
        assumes=present[0][1].assumed(target) if judge == "gap" else present[0][1].assumes,
        settings={
            "about": f"the worst of {len(present):,} groups: {about}",
            "judge": judge,
            **({"target": target} if judge == "gap" else {}),
            **shown.display,
            "groups": len(present),
            "group_low": present[int(np.argmax(floors))][0] if low > 0.0 else None,
            "group_high": present[int(np.argmax(tops))][0],
            "clear_size": clear_size,
            "clear_high": max(
                (u for (_, q), u in zip(present, tops, strict=True) if q.n >= clear_size * whole.n), default=None
            ),
            "delta": (low_share, high_share),
            "seed": seed,
        },
    )


def sizes(of: Evidence, delta: float, judge: Judge) -> tuple[float, float]:
    """How large an error, or a gap of either sign, is at least and at most, each wrong at most with `delta`.

    A gap is below its floor on one of two sides, which share; above its top it is on one side only, and nothing is.
    """
    if not delta:
        return 0.0, 1.0
    if judge == "error":
        return of.ends(delta, delta)
    (low, high), (least, most) = of.ends(delta / 2.0, delta / 2.0), of.ends(delta, delta)
    return max(low, -high, 0.0), max(most, -least)


def checked_judge(judge: Judge) -> Judge:
    """What is judged, "error" or "gap"; refuse any other."""
    return choice("judge", judge, get_args(Judge))


def checked_target(target: Target | None, judge: Judge, q: Population) -> Target:
    """Whose gap is judged: as asked for, if it is proved of such data, or as the data have it."""
    if target is None:
        return q.target
    if judge != "gap":
        raise BadInput(f"target={target!r} is about gaps: it goes with judge='gap'")
    if choice("target", target, get_args(Target)) == "rows" and q.target != "rows":
        raise NotComputable(
            "target='rows' (--target rows) is proved for independent rows of equal weight: with clusters or weights "
            "leave it out, and the gap is of the population"
        )
    return target


def checked_limit(limit: float | None) -> float | None:
    """The limit, if there is one; refuse one that is no share."""
    return None if limit is None else share("limit", limit, hint="such as 0.02 for two points")


def _present(
    data: Predictions | Sketch, by: Iterable[str] | str | None, intersections: bool, seed: int
) -> tuple[Sketch, list[tuple[str, Population]]]:
    """A sketch with groups, and the name and the population of each that has rows."""
    sketch = grouped_sketch(data, names("by", by), intersections, seed)
    named = named_groups(sketch)
    parts = groups_of(data, sketch, [[i] for _, i in named], seed)
    present = [(keyed(name), q) for (name, _), q in zip(named, parts, strict=True)]
    if not present:
        raise NotComputable("there are no groups: pass by=")
    return sketch, present


def _about(q: Population, steps: int) -> str:
    """Say which scores the two ends of an error are about."""
    shown = q.judged(steps)
    return shown.about if q.exact else f"from below the raw score, from above {shown.about}"


def certified_range(
    q: Population, steps: int, spend: tuple[float, float], level: float, seed: int, bet_sizes: float = 0.0
) -> Estimate:
    """One group's estimate: raw score from below, by bets the best at `bet_sizes`, judged score from above."""
    above = shown_certificate(q, q.judged(steps)).run((0.0, spend[1]), level, seed)
    low = raw_certificate(q, bet_sizes).run((spend[0], 0.0), level, seed).interval.low
    settings = {**above.settings, "about": _about(q, steps), "delta": tuple(spend), "grid": q.grid}
    return replace(above, method="certify.groups", interval=replace(above.interval, low=low), settings=settings)


def gap_about(target: Target) -> str:
    """Say whose gap it is."""
    return f"{GAP}, of {OF_TARGET[target]}"


def signed(
    q: Population,
    spend: tuple[float, float],
    level: float,
    bet_sizes: float,
    target: Target,
    evidence: SignedEvidence | None = None,
) -> Estimate:
    """One group's gap, happened minus said on average, by bets the best at `bet_sizes` or without any.

    `evidence`: the same, where it is made already.
    """
    evidence = evidence or SignedEvidence.of(q, bet_sizes, target)
    low, high = evidence.ends(*spend)
    return Estimate(
        method="certify.gap",
        value=min(max(q.off, low), high),
        unit="probability",
        n=q.n,
        interval=Interval(low=low, high=high, level=level, guarantee="finite-sample"),
        assumes=q.assumed(target),
        settings={
            "about": gap_about(target),
            "target": target,
            "by": "binomial" if evidence.p_values else "bets",
            **q.reported,
            "delta": tuple(spend),
            "grid": q.grid,
        },
    )
