"""The judge of repairs: before and after, on rows that no repair was fitted on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from calibrant.arguments import (
    MASK,
    Judge,
    acting,
    check_int,
    checked_alpha,
    checked_steps,
    choice,
    flag,
    names,
    share,
)
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.reading import Reading
from calibrant.data.survey import EVERY, survey_rows
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.runtime import one_thread, sized
from calibrant.repair.catalogue import tried_by_default
from calibrant.repair.judge.decisions import decision_changes
from calibrant.repair.judge.evidence import (
    CLEAR,
    TESTS,
    JudgedGroups,
    certified,
    group_changes,
    groups_of,
    score_changes,
    tested,
    variable_changes,
)
from calibrant.repair.judge.fixed import Fixed
from calibrant.repair.judge.lost import by_weights
from calibrant.repair.judge.rows import (
    FEWEST,
    Fits,
    Judging,
    LeftOut,
    People,
    Repair,
    checked_folds,
    clusters_in,
    named,
)
from calibrant.repair.judge.verdict import (
    AS_AUDITED,
    METHOD,
    UNASKED,
    Changes,
    Comparison,
    GroupChange,
    ScoreChange,
    Summary,
    VariableChange,
    by_estimates,
    curve_of,
    recommended,
    verdict_of,
)
from calibrant.results import Curve
from calibrant.views.population import Target, are_few, values_of_scores

EVERYONE = "everyone"
FIXED = f"{METHOD}.fixed"
LISTED = 12  # groups that are all reported before and after; of more only those over the limit
SHARES = {"scores": 0.5, "variables": 0.25, "groups": 0.25}  # of alpha, among the paired statements


@takes_arrays
def evaluate(
    data: Predictions,
    *,
    repairs: Mapping[str, Repair] | Sequence[Repair] | Repair | None = None,
    fit_on: Predictions | None = None,
    folds: int = 0,
    by: Iterable[str] | str | None = None,
    variables: Iterable[str] | str | None = None,
    bins: Mapping[str, Sequence[float]] | None = None,
    limit: float | None = None,
    judge: Judge = "auto",
    target: Target | None = None,
    threshold: float | Sequence[float] | None = None,
    costs: Sequence[float] | None = None,
    steps: int = 100,
    alpha: float = 0.05,
    tests: Iterable[str] | str | None = tuple(TESTS),
    test_rows: int = 20_000,
    draws: int = 999,
    certify_groups: bool = True,
    smallest_group: int = FEWEST,
    distinct_clusters: bool = False,
    seed: int = 0,
) -> Comparison:
    r"""Judge repairs on rows that none of them was fitted on: what got better, what got worse, what is undecided.

    Estimand of a paired change: the mean of ``loss(q, Y) - loss(p, Y)`` over the rows judged, given who they are; p as
    audited, q repaired. Negative is better.

    Parameters
    ----------
    data : Predictions
        Weights enter fits, scores and paired changes; whole clusters are kept together, and are the clusters of paired
        changes. Neither has certificates. Rows from `at_horizon` with ``way="weights"`` are judged by weights of
        censoring: what reads covariates is left out, gaps alone are held against the limit, and `settings` says what is
        assumed.
    repairs : sequence or mapping of str, optional
        Recipes, fitted maps, or both, by name. By default Platt, Beta and Isotonic, and with variables
        AugmentedLogistic.
    fit_on : Predictions, optional
        Other rows to fit on, such as earlier years; `data` is then judged whole. By default one half of `data`, chosen
        by hashed identity, is fitted on and the other judged; if every repair is fitted already, all of `data` is
        judged.
    folds : int, 2 to 20, or 0
        Cross-fit instead: each fold is judged with maps fitted on the others.
    by : str or sequence of str, optional
        Covariates whose levels are the groups.
    variables : str or sequence of str, optional
        Covariates along which error is audited, and that the tests read; every one that can be used by default.
    bins : mapping of str to sequence of float, optional
        Inner bin edges of a numeric group column.
    limit : float in (0, 1), optional
        Largest acceptable error, 0.02 for two points: ``fixed`` then says who is over it before and after, and the
        recommendation takes it into account.
    judge : {"auto", "error", "gap"}
        What the limit is about: the calibration error, or the gap between what happened and what was said.
    target : {"rows", "population"}, optional
        Whose gap, unless ``judge="error"``: of the rows judged, given who they are (default), or of all rows like
        these.
    threshold : float in (0, 1), or several, optional
        Act where the probability is at least this: ``decisions`` then says how many rows change side under each repair,
        for everyone and in every group, and what that gains in net benefit. Of fewer than 20 rows no more is reported.
    costs : two positive numbers, optional
        In place of `threshold`: what it costs to act on a non-event, and not to act on an event; ``(1, 4)`` acts from
        0.2 on.
    steps : int from 2 to 1024
        Steps in which probabilities are shown; the certified upper ends are about that display.
    alpha : float in (0, 0.5]
    tests : subset of {"local", "strong", "scan"}
        Tests to run on each probability; ``()`` for none. Their p-values decide nothing.
    test_rows : int
        Rows tested, at most about: a uniform sample of the judged ones.
    draws : int from 99
        Of the tests.
    certify_groups : bool
        Certify every group of every probability: about 5 ms each.
    smallest_group : int
        People in the smallest group that is judged. The largest certified upper bound of a group is mostly that of a
        small one, whatever the repair.
    distinct_clusters : bool
        Clusters of `fit_on` are others than those of `data`, even where their names are alike, as numbers that start
        again in each file are; by default a name means the same cluster, and one on both sides is refused.
    seed : int
        Deals rows into halves or folds, and serves certificates and tests.

    Returns
    -------
    Comparison

    Raises
    ------
    BadInput
        A map would be judged on rows it was fitted on; `fit_on` and `data` overlap; a repair is neither recipe nor map;
        a setting is out of range.
    NotComputable
        No repair can be fitted, or there are too few rows or clusters to keep fit and judgement apart.

    Notes
    -----
    **Assumes.** Rows (or clusters) independent given scores and covariates; certificates also one distribution. With
    clusters or weights whole clusters certify (Theorems CL, CU and CD; documentation: Proofs), dealt whatever their
    sizes. Repairs, groups and variables chosen without the judged outcomes. **Guarantee.** Finite-sample. All paired
    statements (a Brier score, log loss, accuracy, error along a variable or gap of a group is better, or worse) hold
    simultaneously with probability ``1 - alpha``; half of alpha goes to the scores, a quarter each to variables and
    groups. So do, each family by itself, the certified ranges of all probabilities (raw below, shown in steps above),
    those of the scores as shown (by which "error" is judged: like with like), the distances, and the same two ranges of
    the groups (by which "worst group" is), and all gains in net benefit of ``decisions``. Tests keep their own level;
    with folds p-values are Bonferroni's over folds.
    **Method.** Given the scores every paired change is linear in the outcomes: betting limits with stakes fixed by the
    scores (`stats.betting`). For a group one range of its gap as audited gives the change of every repair, since
    the mean score moves by a known amount. Along a variable the judged change is that of ``sum_b P(b) E[Y - p | b]^2``.
    Where nothing that matters is shown better, ordinary intervals of paired differences and of groups' gaps decide,
    which hold in large samples: ``settings["basis"]`` is then "estimated". A gap of a group decides nothing there where
    fewer than ten events, or non-events, are expected. A repair whose Brier score or log loss ordinary intervals show
    to be worse is never recommended, whatever is guaranteed. Folds: each has its limits and certificates
    at ``alpha / folds``, averaged by size; they are about the average over the folds' maps, while `calibrators` are
    fitted on all rows. Recommendation: `judge.verdict`. Before and after: each range now has its share of alpha among
    all groups, each range after among all groups and repairs, so that the groups
    reported and the repair taken may be chosen by the judged outcomes: no "within" and no "over" of those picked is
    wrong, with probability ``1 - alpha`` for everyone and for groups (`judge.fixed` has the proof). **Cost.** The fits;
    then with 140,000 judged rows, 9 variables and 60 groups about 0.6 CPU-seconds a repair without tests. **Reads.**
    Rows.

    References
    ----------
    Waudby-Smith and Ramdas (2024), doi:10.1093/jrsssb/qkad009 (betting); theory in docs/repair.md.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> true = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < true, true**2)  # underpredicts by far
    >>> found = cal.repair.evaluate(data, repairs=[cal.repair.Platt()], tests=())
    >>> found.recommended, found.verdicts["Platt"]["better"]
    ('Platt', ('error', 'brier', 'log_loss', 'accuracy'))
    """
    rows = data if getattr(data, "weighs", False) else checked_data(data, Predictions)  # refuses all else
    if rows.n < 2:
        raise NotComputable("a repair is judged on other rows than it was fitted on: at least two rows are needed")
    chosen = names("tests", tests)
    for test in chosen:
        if test not in TESTS:
            raise BadInput(f"tests={test!r}: choose from {', '.join(TESTS)}, or pass () for none")
    reading = Reading.of(by=by, bins=bins, seed=seed)
    alpha, steps = checked_alpha(alpha), checked_steps(steps)
    by_variable, left_out = audited_variables(rows, variables, reading.seed)
    judging = Judging(
        repairs=tried_by_default(by_variable) if repairs is None else named(repairs),
        variables=by_variable,
        left_out=left_out,
        fit_on=fit_on,
        distinct_clusters=flag("distinct_clusters", distinct_clusters),
        folds=checked_folds(folds),
        by=reading.by,
        bins=reading.bins,
        smallest_group=check_int("smallest_group", smallest_group, 1),
        certify_groups=flag("certify_groups", certify_groups),
        thresholds=acting(threshold, costs)[0],
        steps=steps,
        alpha=alpha,
        tests=chosen,
        test_rows=check_int("test_rows", test_rows, 100),
        draws=check_int("draws", draws, 99),
        seed=reading.seed,
        limit=None if limit is None else share("limit", limit, hint="such as 0.02 for two points"),
        judge=choice("judge", judge, get_args(Judge)),
        target=_checked_target(target, judge),
        exact=are_few(len(values_of_scores(rows.p)), rows.n),
    )
    return compared(rows, judging)


def _checked_target(target: Target | None, judge: Judge) -> Target:
    if target is not None and judge == "error":
        raise BadInput(f"target={target!r} (--target) is about gaps: leave judge='error' (--judge error) out")
    return "rows" if target is None else choice("target", target, get_args(Target))


def compared(rows: Predictions, how: Judging) -> Comparison:
    """The comparison: what `evaluate` and an audit both run; by weights of censoring where rows were lost."""
    how = by_weights(how) if rows.weighs else how
    with sized(rows.n), one_thread():
        fits = how.fits(rows, how)
        return _compared(fits, _groups(fits, how), how)


def _groups(fits: Fits, how: Judging) -> JudgedGroups:
    """The groups of the judged rows that can be judged."""
    judged = fits.judged
    made = groups_of(judged.data, how.by, how.bins, how.smallest_group, how.seed, judged.others)
    # Whether somebody is followed to the horizon is read of judged rows: alpha is shared before it is seen.
    return made.some([i for i, one in enumerate(made.people) if judged.reaches(one.rows)], len(made.people))


def audited_variables(
    data: Predictions, variables: Iterable[str] | str | None, seed: int, allow: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], LeftOut]:
    """The covariates to audit; of "every one" those that can be used, and why others cannot."""
    every = variables is None or variables in (EVERY, (EVERY,))
    wanted = (EVERY,) if every and data.covariates is not None else () if every else names("variables", variables)
    result = survey_rows(data, wanted, seed, allow)
    return ((), ()) if result is None else (result.names, result.left_out)


def _compared(fits: Fits, groups: JudgedGroups, how: Judging) -> Comparison:
    judged = fits.judged
    # (1) Paired changes, which share alpha: by these a repair is better, worse or undecided.
    scores, worse_than, behind = score_changes(judged, how.alpha * SHARES["scores"])
    changes = Changes(
        scores=scores,
        variables=variable_changes(judged, how.variables, how.alpha * SHARES["variables"], how.seed),
        groups=group_changes(judged, groups, how.alpha * SHARES["groups"]),
    )
    # (2) Certificates of each probability, by itself; each family shares alpha over all probabilities.
    table, reason = {}, ""
    for name in judged.scores:
        row = judged.summary(name, fits.calibrators.get(name))  # no map of what is audited
        try:
            row = certified(row, judged, groups, how)
        except NotComputable as e:  # a single cluster
            reason = e.reason
        table[name] = _with_largest(row, changes)
    # (3) Verdicts; who is over the limit under each probability; and the repair to take.
    verdicts = {name: verdict_of(name, table, changes) for name in judged.repairs}
    fixed, unjudged = _against(fits, groups, how)
    over = {} if fixed is None or how.limit is None else {k: fixed.left(k) for k in judged.scores}
    chosen = recommended(table, verdicts, worse_than, over)
    basis = "guaranteed" if chosen != AS_AUDITED else ""
    if not basis:
        chosen = recommended(table, by_estimates(verdicts), behind, over)
        basis = "estimated" if chosen != AS_AUDITED else ""
    line = Curve(method=FIXED, columns={}) if fixed is None else fixed.curve(chosen, fits.calibrators)
    decisions = UNASKED
    if how.thresholds:
        decisions = decision_changes(judged, groups, how.thresholds, how.alpha, max(how.smallest_group, MASK))
    judged.forget()
    # (4) Tests: reported, but they decide nothing.
    picked = tuple(judged.scores) if how.every else tuple(dict.fromkeys((AS_AUDITED, chosen)))
    table, tested_rows, refused = tested(table, judged, how, picked)
    reported = {"rows_fit": fits.rows_fit, "test_rows": tested_rows, "tests": _tests_of(table, chosen, how.tests)}
    return Comparison(
        table=curve_of("table", Summary, list(table.values())),
        differences=curve_of("differences", ScoreChange, changes.scores),
        variables=curve_of("variables", VariableChange, changes.variables),
        groups=curve_of("groups", GroupChange, changes.groups),
        fixed=line if fixed is None else replace(line, settings={**line.settings, **reported}),
        decisions=decisions,
        verdicts=verdicts,
        recommended=chosen,
        calibrators=dict(fits.calibrators),
        settings={
            "how": fits.how,
            "basis": basis,
            "rows_fit": fits.rows_fit,
            "rows_judged": judged.data.n,
            "clusters_fit": fits.clusters_fit,
            "clusters_judged": clusters_in(judged.data),
            "events_judged": round(judged.events_of(np.arange(judged.data.n))),
            "folds": judged.folds,
            "steps": how.steps,
            "limit": how.limit,
            "judge": how.judge,
            **({"target": how.target} if how.judge == "gap" else {}),
            "alpha": how.alpha,
            "shares": SHARES,
            "groups": len(groups.people),
            "variables": how.variables,
            "variables_left_out": how.left_out,
            "left_out": fits.left_out,
            "tests": how.tests,
            "test_rows": tested_rows,
            "draws": how.draws,
            "certify_groups": how.certify_groups,
            "smallest_group": how.smallest_group,
            "seed": how.seed,
            "not_applicable": (
                *((("certificates", reason),) if reason else ()),
                *unjudged,
                *refused,
                *how.unproved,
            ),
            **judged.reported,
        },
    )


def _against(fits: Fits, groups: JudgedGroups, how: Judging) -> tuple[Fixed | None, tuple[tuple[str, str], ...]]:
    """Populations held against the limit; or why they are not, where there is a limit or someone asks."""
    if how.limit is None and how.people is None:
        return None, ()
    # Everyone is always reported, and groups where they are over the limit; all of them are listed if they are few.
    listed = len(groups.people) <= LISTED
    every = [everyone_of(fits), *(replace(one, listed=listed) for one in groups.people)]
    people = every if how.people is None else how.people(fits)
    try:
        return Fixed.of(fits.judged, people, how), ()
    except NotComputable as e:
        return None, (("fixed", e.reason),)


def everyone_of(fits: Fits) -> People:
    return People(id=EVERYONE, who=EVERYONE, kind="everyone", rows=np.arange(fits.judged.data.n))


def _tests_of(table: Mapping[str, Summary], chosen: str, tests: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """The p-values of each test as audited and after the repair to take."""
    now, after = table[AS_AUDITED], None if chosen == AS_AUDITED else table[chosen]
    results = {test: {"now": now.p(test), "after": None if after is None else after.p(test)} for test in tests}
    return {test: p for test, p in results.items() if p["now"] is not None}


def _with_largest(row: Summary, changes: Changes) -> Summary:
    """The row with the largest error along a variable and of a group, and groups counted by what they show."""
    variables = [c for c in changes.variables if c.probability == row.probability]
    groups = [c for c in changes.groups if c.probability == row.probability]
    if variables:
        vece = max(variables, key=lambda c: c.vece)
        row = replace(row, largest_vece=vece.vece, largest_vece_variable=vece.variable)
    if groups:
        gap = max(groups, key=lambda c: abs(c.gap))
        row = replace(row, largest_gap=abs(gap.gap), largest_gap_group=f"{gap.variable} = {gap.level}")
    return replace(
        row,
        groups_better=sum(c.change < -CLEAR for c in groups),
        groups_worse=sum(c.change > CLEAR for c in groups),
        groups_shown_better=sum(c.shown == "better" for c in groups),
        groups_shown_worse=sum(c.shown == "worse" for c in groups),
    )
