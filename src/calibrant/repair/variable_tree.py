"""Variable-based calibration: a small tree of variables, and a beta curve in each of its leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.seed import checked_seed
from calibrant.errors import BadInput
from calibrant.repair.branches import Branches
from calibrant.repair.fitting import fit_rows
from calibrant.repair.inputs import checked_names, edges_of, encoded
from calibrant.repair.provenance import fitted_on
from calibrant.repair.shrinkage import FOLDS, folds_of
from calibrant.repair.tree_fit import DEEPEST, Growth, Target, best_depth, grown, leaves_told, table_of

STREAM = 0x7EAF
FEWEST = 20  # cases, and non-cases, from which a depth can be chosen


@dataclass(frozen=True, kw_only=True)
class VariableTree:
    r"""Variable-based calibration: a beta curve for each of a few groups of people, found by a small tree of variables.

    Estimand: ``logit P(Y = 1 | p, leaf) = a ln p - b ln(1 - p) + c`` in each leaf of the tree.

    Parameters
    ----------
    variables : str or sequence of str
        Covariates of any kind.
    depth : int from 0 to 8, optional
        Of the tree. By default that from 0 to 4 which cross-fitted log loss prefers, 0 being one curve for everyone (2
        with `paper`).
    leaf : float in (0, 0.5)
        Least share of the rows (by weight) in a leaf; never under ten rows.
    target : {"residual", "outcome"}
        What the tree explains: what beta calibration of everyone leaves, or the outcome itself.
    shrink : float, 0 or more
        How strongly a node's curve is drawn to its parent's: penalty on the difference of slopes, in rows' worth, and a
        tenth of it on the difference of heights.
    paper : bool
        The published procedure: the tree explains the outcome, and each leaf has a curve of its own, fitted with
        scikit-learn's default ridge to outcomes 0 and 1; a leaf of one class takes its parent's. `target` and `shrink`
        are not read.
    seed : int
        Of the folds.

    Raises
    ------
    BadInput
        A setting out of range; no such covariate.
    NotComputable
        One class only.

    Notes
    -----
    **Assumes.** Within a leaf the error depends on the score alone. Independent rows or clusters, for the choice of the
    depth. **Guarantee.** None by itself: judge with `calibrant.repair.compare` on other rows. For people of one leaf
    the order is kept. **Method.** Section 6 and appendix B of the paper. Its text has depth 2 and leaves of a tenth of
    the rows; its tables depth 3 on Adult. Departures: the tree explains residuals, so that it parts people for whom the
    score is wrong, not those whose outcomes differ; curves are drawn to their parents', by penalised maximum
    likelihood, so that small leaves do not follow noise and one-class leaves need no rule; a and b stay at least 0; the
    depth is chosen, and must gain more than a standard error; several variables and categories, whose levels are put in
    the order of their mean residual, drawn in by 20 rows. Missing numbers go with the median, or, if there were such at
    the fit, may be split off; unseen levels stand in the middle of the order. **Cost.** Six trees, and Newton's method
    in each node: 5 s of CPU time for 100,000 rows and ten variables. **Reads.** Rows; weights and clusters are used.

    References
    ----------
    Kelly and Smyth, "Variable-based calibration for machine learning classifiers", AAAI 2023, arXiv:2209.15154.
    Leathart, Frank, Holmes and Pfahringer, "Probability calibration trees", ACML 2017.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.uniform(0.2, 0.8, 20_000), rng.integers(18, 90, 20_000)
    >>> y = rng.uniform(size=20_000) < p + np.where(age < 40, 0.1, -0.05)  # too low for the young, too high for others
    >>> data = cal.predictions(y, p, {"age": age})
    >>> fitted = cal.repair.VariableTree(variables="age", depth=1).fit(data)
    >>> fitted.leaves
    ('age <= 39.5', 'age > 39.5')
    >>> round(cal.measure.vece(data, "age").value, 2), round(cal.measure.vece(fitted(data), "age").value, 2)
    (0.07, 0.0)
    """

    variables: str | Sequence[str]
    depth: int | None = None
    leaf: float = 0.05
    target: Target = "residual"
    shrink: float = 10.0
    paper: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        checked_names(self.variables)
        d, low = self.depth, self.shrink
        if d is not None and (isinstance(d, bool) or not isinstance(d, (int, np.integer)) or not 0 <= d <= 8):
            raise BadInput(f"depth={d!r}: pass a whole number from 0 to 8, or None to choose it")
        if isinstance(self.leaf, bool) or not isinstance(self.leaf, (float, np.floating)) or not 0 < self.leaf < 0.5:
            raise BadInput(f"leaf={self.leaf!r}: pass a share of the rows between 0 and 0.5, such as 0.05")
        if self.target not in ("residual", "outcome"):
            raise BadInput(f"target={self.target!r}: choose 'residual' or 'outcome'")
        if isinstance(low, bool) or not isinstance(low, (int, float, np.number)) or not 0 <= low < np.inf:
            raise BadInput(f"shrink={low!r}: pass a number from 0 up, such as 10.0")
        if not isinstance(self.paper, bool):
            raise BadInput(f"paper={self.paper!r}: pass True or False")
        checked_seed(self.seed)

    def fit(self, data: Any) -> Branches:
        """Grow the tree on rows and fit the curves."""
        rows = fit_rows(data, "VariableTree")
        how, x, constants = encoded(rows, checked_names(self.variables))
        edges = edges_of(rows.p)
        table = table_of(rows, how, x, edges, self.paper)
        depth, gain = self._depth(rows, table)
        tree = grown(table, self._growth(depth))
        leaves = [i for i, f in enumerate(tree.feature) if f < 0]
        settings = {
            "variables": checked_names(self.variables),
            "depth": depth,
            "depth_asked": self.depth,
            "leaf": float(self.leaf),
            "target": "outcome" if self.paper else self.target,
            "shrink": 0.0 if self.paper else float(self.shrink),
            "paper": self.paper,
            "constant": constants,
            "one_class_leaves": sum(tree.fell_back[i] for i in leaves),
            **gain,
            **leaves_told(tree, leaves),
            "seed": self.seed,
        }
        return Branches(
            recipe="VariableTree",
            settings=settings,
            codings=how,
            fitted_on=fitted_on(rows),
            feature=tree.feature,
            threshold=tree.threshold,
            left=tree.left,
            right=tree.right,
            slopes=tuple(map(tuple, tree.slopes.tolist())),
            intercepts=tuple(tree.intercepts.tolist()),
            places=tree.places,
            edges=edges,
            form="published beta" if self.paper else "beta",
        )

    def _growth(self, depth: int) -> Growth:
        target: Target = "outcome" if self.paper else self.target
        return Growth(depth=depth, leaf=float(self.leaf), target=target, shrink=float(self.shrink), paper=self.paper)

    def _depth(self, rows: Any, table: Any) -> tuple[int, dict[str, Any]]:
        if self.depth is not None or self.paper:
            return (2 if self.depth is None else int(self.depth)), {"gain": None, "gain_error": None}
        unit, fold = folds_of(rows, np.random.default_rng([self.seed, STREAM]))
        if min(rows.cases, rows.n - rows.cases) < FEWEST or unit.max() + 1 < FOLDS:
            return 0, {"gain": None, "gain_error": None}
        depth, gain, error = best_depth(table, self._growth(DEEPEST), unit, fold)
        return depth, {"gain": gain, "gain_error": error}
