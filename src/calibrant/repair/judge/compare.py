"""The judge of repairs: before and after, on rows that no repair was fitted on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.arguments import checked_levels, checked_seed, names
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.spec import Spec
from calibrant.data.survey import EVERY, survey_rows
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.threads import one_thread
from calibrant.repair.catalogue import tried_by_default
from calibrant.repair.judge.groups import (
    CLEAR,
    FEWEST,
    Groups,
    certificates,
    group_rows,
    groups_of,
    p_values,
    unproved,
    variable_rows,
)
from calibrant.repair.judge.rows import LOSSES, Fits, Judged, checked_folds, fits_of, named
from calibrant.repair.judge.verdict import AS_AUDITED, Comparison, by_ends, curve_of, recommended, verdict_of
from calibrant.views.population import shares

TESTS = ("local", "strong")
TABLE = (
    "probability",
    "recipe",
    "order",
    "error_low",
    "error_high",
    "error_shown_low",
    "distance_high",
    "brier",
    "log_loss",
    "auroc",
    "accuracy",
    "impossible",
    "local_p",
    "strong_p",
    "largest_vece",
    "largest_vece_variable",
    "largest_gap",
    "largest_gap_group",
    "worst_group_low",
    "worst_group_low_group",
    "worst_group_high",
    "worst_group_high_group",
    "worst_group_shown_low",
    "groups_better",
    "groups_worse",
    "groups_shown_better",
    "groups_shown_worse",
)
DIFFERENCES = ("probability", "measure", "change", "change_low", "change_high", "shown")
VARIABLES = (
    "probability",
    "variable",
    "vece",
    "beyond_shift",
    "change_squared",
    "change_low",
    "change_high",
    "shown",
)
GROUPS = ("probability", "variable", "level", "rows", "gap", "change", "change_low", "change_high", "shown")
SHARES = {"scores": 0.5, "variables": 0.25, "groups": 0.25}  # of alpha, among the paired statements


@dataclass(frozen=True)
class Plan:
    """Settings shared by every part."""

    levels: int
    alpha: float
    tests: tuple[str, ...]
    test_rows: int
    draws: int
    certify_groups: bool
    smallest_group: int
    seed: int


def compare(
    data: Any,
    repairs: Any = None,
    *,
    fit_on: Any = None,
    folds: int = 0,
    by: Iterable[str] | str | None = None,
    variables: Iterable[str] | str | None = None,
    bins: Mapping[str, Sequence[float]] | None = None,
    levels: int = 50,
    alpha: float = 0.05,
    tests: Iterable[str] | str | None = TESTS,
    test_rows: int = 20_000,
    draws: int = 999,
    certify_groups: bool = True,
    smallest_group: int = FEWEST,
    seed: int = 0,
) -> Comparison:
    r"""Judge repairs on rows that none of them was fitted on: what got better, what got worse, what is undecided.

    Estimand of a paired change: the mean of ``loss(q, Y) - loss(p, Y)`` over the rows judged, given who they are; p as
    audited, q repaired. Negative is better.

    Parameters
    ----------
    data : Predictions
        Weights enter fits, scores and paired changes; whole clusters are kept together, and are the units of paired
        changes. Neither has certificates.
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
    levels : int from 2 to 1024
        Steps in which probabilities are shown; the certified upper ends are about that display.
    alpha : float in (0, 1)
    tests : subset of {"local", "strong"}
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
    **Assumes.** Rows (or clusters) independent given scores and covariates; certificates also one distribution.
    Repairs, groups and variables chosen without the judged outcomes. **Guarantee.** Finite-sample. All paired
    statements (a Brier score, log loss, accuracy, error along a variable or gap of a group is better, or worse) hold
    together with probability ``1 - alpha``; half of alpha goes to the scores, a quarter each to variables and groups.
    So do, each family by itself, the certified ranges of all probabilities (raw below, shown in steps above), those of
    the scores as shown (by which "error" is judged: like with like), the distances, and the same two ranges of the
    groups (by which "worst group" is). Tests keep their own level; with folds p-values are Bonferroni's over folds.
    **Method.** Given the scores every paired change is linear in the outcomes: betting limits with stakes fixed by the
    scores (`stats.differences`). For a group one range of its gap as audited gives the change of every repair, since
    the mean score moves by a known amount. Along a variable the judged change is that of ``sum_b P(b) E[Y - p | b]^2``.
    Folds: each has its limits and certificates at ``alpha / folds``, averaged by size; they are about the average over
    the folds' maps, while `maps` are fitted on all rows. Recommendation: `repair.verdict`. **Cost.** The fits; then
    with 140,000 judged rows, 9 variables and 60 groups about 1 CPU-second a repair without tests. **Reads.** Rows.

    References
    ----------
    Waudby-Smith and Ramdas (2024), doi:10.1093/jrsssb/qkad009 (betting); theory in docs/repair.md.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> true = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < true, true**2)  # far too low
    >>> found = cal.repair.compare(data, [cal.repair.Platt()], tests=())
    >>> found.recommended, found.verdicts["Platt"]["better"]
    ('Platt', ('error', 'brier', 'log_loss', 'accuracy'))
    """
    rows, seed = _checked(data), checked_seed(seed)
    shares(alpha, "two-sided")
    plan = Plan(
        checked_levels(levels),
        float(alpha),
        _checked_tests(tests),
        _count(test_rows, "test_rows", 100),
        _count(draws, "draws", 99),
        bool(certify_groups),
        _count(smallest_group, "smallest_group", 1),
        seed,
    )
    along, left_out = audited_variables(rows, variables, seed)
    chosen = tried_by_default(along) if repairs is None else named(repairs)
    grouping = names("by", by)
    if stray := sorted(set(bins or ()) - set(grouping)):
        raise BadInput(f"bins for {stray[0]!r}: it is not among the groups; name it in by=, or leave its bins out")
    with one_thread():
        fits = fits_of(rows, chosen, fit_on, checked_folds(folds), seed)
        groups = groups_of(fits.judged.data, grouping, bins or {}, plan.smallest_group, seed) if grouping else None
        return _compared(fits, along, groups, plan, left_out)


def _checked(data: Any) -> Predictions:
    if isinstance(data, MulticlassPredictions):
        raise BadInput("several classes: pass data.top_label(), or data.one_vs_rest(k) with alpha / K")
    if not isinstance(data, Predictions):
        raise BadInput(f"data is a {type(data).__name__}: pass calibrant.predictions(...) or calibrant.read(...)")
    if data.n < 2:
        raise NotComputable("a repair is judged on other rows than it was fitted on: at least two rows are needed")
    return data


def _checked_tests(tests: Any) -> tuple[str, ...]:
    chosen = names("tests", tests)
    for test in chosen:
        if test not in TESTS:
            raise BadInput(f"tests={test!r}: choose from {', '.join(TESTS)}, or pass () for none")
    return chosen


def _count(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise BadInput(f"{name}={value!r}: pass a whole number from {least} up")
    return int(value)


def audited_variables(
    data: Predictions, variables: Any, seed: int
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Return the covariates to audit; of "every one" those that can be used, and why others cannot."""
    every = variables is None or variables in (EVERY, (EVERY,))
    wanted = (EVERY,) if every and data.covariates is not None else () if every else names("variables", variables)
    found = survey_rows(data, Spec(label="y_true", score="y_prob", seed=seed), wanted)
    return ((), ()) if found is None else (found.names, found.left_out)


def _compared(
    fits: Fits, variables: tuple[str, ...], groups: Groups | None, plan: Plan, left_out: tuple[tuple[str, str], ...]
) -> Comparison:
    judged = fits.judged
    if groups is not None and not groups.names:
        groups = None
    differences, worse_than = _differences(judged, plan.alpha * SHARES["scores"])
    along = variable_rows(judged, variables, plan.alpha * SHARES["variables"], plan.seed)
    grouped = [] if groups is None else group_rows(judged.data, groups, judged.scores, plan.alpha * SHARES["groups"])
    certified = certificates(judged, groups, plan.levels, plan.alpha, plan.certify_groups, plan.seed)
    tested, tested_rows, refused = p_values(judged, variables, plan.tests, plan.test_rows, plan.draws, plan.seed)
    table = {
        name: {
            "probability": name,
            "recipe": "" if name == AS_AUDITED else fits.maps[name].recipe,
            "order": "kept" if name == AS_AUDITED else fits.maps[name].order,
            **certified[name],
            **judged.plain_scores(name),
            **tested[name],
            **_largest(name, along, grouped),
        }
        for name in judged.scores
    }
    verdicts = {name: verdict_of(name, table, differences, along, grouped) for name in judged.repairs}
    reason = unproved(judged)
    return Comparison(
        table=curve_of("table", list(table.values()), TABLE),
        differences=curve_of("differences", differences, DIFFERENCES),
        variables=curve_of("variables", along, VARIABLES),
        groups=curve_of("groups", grouped, GROUPS),
        verdicts=verdicts,
        recommended=recommended(table, verdicts, worse_than),
        maps=dict(fits.maps),
        settings={
            "how": fits.how,
            "rows_fit": fits.rows_fit,
            "rows_judged": judged.data.n,
            "cases_judged": judged.data.cases,
            "folds": judged.folds,
            "levels": plan.levels,
            "alpha": plan.alpha,
            "shares": SHARES,
            "groups": len(groups.names) if groups else 0,
            "variables": variables,
            "variables_left_out": left_out,
            "left_out": fits.left_out,
            "tests": plan.tests,
            "test_rows": tested_rows,
            "draws": plan.draws,
            "certify_groups": plan.certify_groups,
            "smallest_group": plan.smallest_group,
            "seed": plan.seed,
            "not_applicable": (*((("certificates", reason),) if reason else ()), *refused),
        },
    )


def _differences(judged: Judged, alpha: float) -> tuple[list[dict[str, Any]], dict[str, tuple[str, ...]]]:
    """Return the paired change of each score from as audited, and for each probability those with a better Brier score.

    Each of the three scores has a third of alpha, shared by the repairs; that of the Brier score by all pairs.
    """
    rows, names = [], tuple(judged.scores)
    pairs = len(names) * (len(names) - 1) // 2
    for name in judged.repairs:
        for measure in LOSSES:
            delta = alpha / len(LOSSES) / (pairs if measure == "brier" else len(judged.repairs))
            change, low, high = judged.change(measure, name, AS_AUDITED, delta)
            shown = by_ends(low, high, upward=measure == "accuracy")
            rows.append(
                {
                    "probability": name,
                    "measure": measure,
                    "change": change,
                    "change_low": low,
                    "change_high": high,
                    "shown": shown,
                }
            )
    worse: dict[str, list[str]] = {name: [] for name in names}
    for i, one in enumerate(judged.repairs):
        for other in judged.repairs[i + 1 :]:
            _, low, high = judged.change("brier", one, other, alpha / len(LOSSES) / pairs)
            if low > 0.0:
                worse[one].append(other)
            elif high < 0.0:
                worse[other].append(one)
    return rows, {name: tuple(v) for name, v in worse.items()}


def _largest(name: str, along: Sequence[Mapping[str, Any]], grouped: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the largest error along a variable and of a group, and how many groups got better and worse."""
    mine = [row for row in along if row["probability"] == name]
    vece = max(mine, key=lambda row: row["vece"], default=None)
    groups = [row for row in grouped if row["probability"] == name]
    gap = max(groups, key=lambda row: abs(row["gap"]), default=None)
    return {
        "largest_vece": vece and vece["vece"],
        "largest_vece_variable": vece and vece["variable"],
        "largest_gap": gap and abs(gap["gap"]),
        "largest_gap_group": gap and f"{gap['variable']}={gap['level']}",
        "groups_better": sum(row["change"] < -CLEAR for row in groups),
        "groups_worse": sum(row["change"] > CLEAR for row in groups),
        "groups_shown_better": sum(row["shown"] == "better" for row in groups),
        "groups_shown_worse": sum(row["shown"] == "worse" for row in groups),
    }
