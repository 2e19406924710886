"""Multicalibration: right at every level of the score in every group, found by trees or named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from calibrant.data.coding import codings, encode
from calibrant.data.predictions import Predictions
from calibrant.data.seed import checked_seed
from calibrant.detect.residual_models import dealt
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.trees_reference import BINS
from calibrant.repair.binned import binned, number_edges, ordered
from calibrant.repair.boosted_trees import BoostedTrees
from calibrant.repair.boosting import Booster, Problem, Trees
from calibrant.repair.fitting import fit_rows, logit
from calibrant.repair.groups import Groups
from calibrant.repair.inputs import checked_names
from calibrant.repair.level_shifts import LevelShifts, shifted
from calibrant.repair.provenance import fitted_on
from calibrant.repair.tree_count import Choice, choose

NAME = "Multicalibrator"


@dataclass(frozen=True, kw_only=True)
class Multicalibrator:
    r"""Multicalibration: the repaired score is right on average at each level of the score in each of many groups.

    Estimand: p' with ``E[(Y - p') 1{x in S} 1{p' in v}] = 0`` for every group S of a collection and every level v of
    the score. The collection is what small trees can describe, or the groups that are named.

    Parameters
    ----------
    variables : str or sequence of str, optional
        Covariates that make the groups; all by default.
    learner : Trees or Groups
        ``Trees()`` looks for groups itself, by boosting the residual; ``Groups()`` goes over every level of the named
        variables, and over pairs of them, as published.
    seed : int
        Of folds and of the rows that each tree sees.

    Returns
    -------
    BoostedTrees or LevelShifts
        From `fit`, by the learner.

    Raises
    ------
    BadInput
        No such covariate, or a setting that cannot be used.
    NotComputable
        From `fit`: all rows have one outcome; fewer rows, or clusters, than folds.

    Notes
    -----
    **Assumes.** Rows like those to be repaired, which the model was not trained on.
    **Guarantee.** None on other rows by itself: judge with `calibrant.repair.compare`. On the rows of the fit
    ``Groups`` leaves no cell of `fewest` rows with a mean residual beyond `alpha` (``settings["reached"]``). ``Trees``
    changes nothing unless the change lowers the log loss on rows that did not choose it and points along their
    residuals by `doubt` null standard errors; that test is not exact, because folds share rows. **Method.** ``Trees``:
    the log-odds first become a straight line of themselves (logistic regression), then a sum of trees of ``[log-odds as
    they stand, x]`` on bins, each a Newton step of the log loss on a half of the rows; the log-odds that trees ask for
    are brought up to date every 10 trees, so that groups are found at levels of the repaired score, as in MCGrad. The
    number of trees is that of the least loss in cross-validation (clusters kept whole), and the whole change is
    multiplied by the number, up to 2, that fits the held-out rows best. Levels of a category are sorted by their own
    step at each split. ``Groups``: Algorithm 3.2 of Hebert-Johnson et al. without its noise: a cell (group x level)
    whose mean residual is beyond alpha is shifted by it, clipped to [0, 1]; repeated over all cells until none is. Each
    shift lowers the Brier score on the fit's rows by at least ``alpha^2 fewest / n``, so it ends. Departures: cells of
    one variable are shifted at once, being disjoint; a cell must hold a number of rows rather than a share ``alpha
    lambda`` of its group; scores are not rounded to their level at the end, which would lose the order within it.
    **Cost.** ``Trees``: linear in the rows, times columns and trees; two to five CPU-seconds at 100,000 rows and 10
    covariates. ``Groups``: a pass over the rows for each variable and sweep. **Reads.** Rows; weights are used, and
    clusters by ``Trees``. Missing numbers are the median with a flag; levels not seen go with the heavier side of a
    split, and are not shifted by ``Groups``.

    References
    ----------
    Hebert-Johnson, Kim, Reingold and Rothblum (2018), "Multicalibration", ICML. Globus-Harris, Harrison, Kearns, Roth
    and Sorrell (2023), "Multicalibration as boosting for regression", ICML. Tax et al. (2026), "MCGrad:
    multicalibration at web scale", KDD.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, age, sex = rng.uniform(0.1, 0.9, 4000), rng.uniform(20, 80, 4000), rng.choice(["f", "m"], 4000)
    >>> y = rng.uniform(size=4000) < p + 0.1 * ((age > 60) & (sex == "f"))
    >>> fitted = cal.repair.Multicalibrator().fit(cal.predictions(y, p, {"age": age, "sex": sex}))
    >>> two = cal.predictions([0, 1], [0.5, 0.5], {"age": [70, 30], "sex": ["f", "f"]})
    >>> fitted(two).p.round(1).tolist()
    [0.6, 0.5]
    """

    variables: str | Sequence[str] | None = None
    learner: Trees | Groups = field(default_factory=Trees)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.variables is not None:
            checked_names(self.variables)
        checked_seed(self.seed)
        if not isinstance(self.learner, (Trees, Groups)):
            raise BadInput(f"learner={self.learner!r}: pass calibrant.repair.Trees(...) or Groups(...)")

    def fit(self, data: Any) -> BoostedTrees | LevelShifts:
        """Fit to rows."""
        rows = fit_rows(data, NAME)
        names = None if self.variables is None else checked_names(self.variables)
        if isinstance(self.learner, Groups):
            alpha = self.learner.alpha
            settings = {"learner": "groups", **asdict(self.learner)}
            return shifted(
                rows, self.learner.cells(names), lambda rate, score: abs(rate - score) > alpha, NAME, settings
            )
        return _boosted(rows, names, self.learner, int(self.seed))


def _boosted(rows: Predictions, names: tuple[str, ...] | None, learner: Trees, seed: int) -> BoostedTrees:
    how = codings(rows.covariates, names)
    columns = encode(rows.covariates.select([c.name for c in how]), how) if how else None
    edges = () if columns is None else number_edges(columns, how, BINS)
    codes = binned(columns, how, edges, rows.n)
    weight = np.ones(rows.n) if rows.weights is None else rows.weights / rows.weights.mean()
    problem = Problem(codes, ordered(codes.shape[1], edges), logit(rows.p), rows.y, weight)
    clusters = None if rows.clusters is None else np.unique(rows.clusters, return_inverse=True)[1]
    units = rows.n if clusters is None else int(clusters.max()) + 1
    if units < learner.folds:
        what = "rows" if clusters is None else "clusters"
        raise NotComputable(f"{NAME} needs a row for each of its {learner.folds} folds and there are {units} {what}")
    choice = choose(problem, learner, dealt(rows.n, learner.folds, seed, clusters), rows.p, clusters, seed)
    return BoostedTrees(
        recipe=NAME,
        settings={"learner": "trees", **asdict(learner), "seed": seed, **asdict(choice)},
        codings=how,
        fitted_on=fitted_on(rows),
        **_grown(problem, learner, choice, edges, seed),
    )


def _grown(problem: Problem, learner: Trees, choice: Choice, edges: Any, seed: int) -> dict[str, Any]:
    """Grow the chosen number of trees on all rows."""
    if not choice.used:
        return {}
    run = Booster(problem, learner, np.arange(len(problem.y)), (seed, 0))
    for _ in range(choice.trees):
        run.step()
    trees = {
        name: tuple(tuple(one.tolist()) for one in grown)
        for name, grown in (("feature", run.feature), ("left", run.left), ("value", run.value))
    }
    return {
        "slope": run.slope,
        "intercept": run.intercept,
        "scale": choice.scale,
        "edges": edges if choice.trees else (),
        "score_edges": tuple(run.edges),
        **trees,
    }
