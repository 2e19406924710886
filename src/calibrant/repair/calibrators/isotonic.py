"""Isotonic regression: the best increasing map, whatever its shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.data.predictions import Predictions
from calibrant.kernels.isotonic import isotonic
from calibrant.repair.catalogue import recipe
from calibrant.repair.disclosure import DECIMALS, MASK, checked_fewest
from calibrant.repair.fitted import Batch, Calibrator, Order, fitted_on, rising, shares, sound
from calibrant.repair.formulas import expression
from calibrant.repair.formulas.expression import Formula, Term
from calibrant.repair.regression import Floats, fit_rows, scores_of
from calibrant.repair.tunable import Tunable


@dataclass(frozen=True, kw_only=True)
class Piecewise(Calibrator):
    """The map through the points ``(scores, shown)``, straight between them and level outside."""

    knots: tuple[float, ...]
    shown: tuple[float, ...]

    @property
    def order(self) -> Order:
        """Kept up to ties if what is shown never falls."""
        return "kept up to ties" if bool((np.diff(self.shown) >= 0).all()) else "may change"

    def check(self) -> None:
        """Raise `ValueError` if the points are not in order, or not probabilities."""
        sound(len(self.knots) == len(self.shown) > 0, "knots and shown must be equally many")
        sound(rising(self.knots, strictly=True), "knots must rise")
        sound(shares(self.shown), "shown must lie within 0 and 1")

    def values(self, rows: Batch) -> Floats:
        """The repaired scores."""
        x, v = np.array(self.knots), np.array(self.shown)
        if len(x) == 1:
            return np.full(len(rows.p), v[0])
        at = np.clip(np.searchsorted(x, rows.p, side="right") - 1, 0, len(x) - 2)
        left, right = v[at], v[at + 1]
        share = (np.clip(rows.p, x[at], x[at + 1]) - x[at]) / (x[at + 1] - x[at])
        low, high = np.minimum(left, right), np.maximum(left, right)
        out: Floats = np.clip(left + share * (right - left), low, high)  # rounding must not swap two scores
        return out

    def formula(self, row: Formula) -> Term:
        """The repaired score as a formula."""
        return expression.broken_line(row.score, self.knots, self.shown)


@recipe(calibrators=[Piecewise], words="isotonic regression", simplicity=60, command="isotonic", tried="always")
@dataclass(frozen=True, kw_only=True)
class Isotonic(Tunable):
    r"""Isotonic regression: the increasing function of the score nearest to the outcomes.

    Estimand: the increasing f that minimises ``E (Y - f(p))^2`` (and the log loss).

    Parameters
    ----------
    fewest : int, 1 or more
        Rows on which every point of the map rests: neighbouring scores are joined until they are so many, at their
        mean. 1 is the textbook's function, which tells the scores and outcomes of single people.

    Raises
    ------
    BadInput
        A setting that cannot be used.
    NotComputable
        The rows have one outcome only.

    Notes
    -----
    **Assumes.** The true curve never falls. Needs rows: below a thousand or so `Platt` or `Beta` is usually nearer.
    **Guarantee.** None by itself: judge with `calibrant.repair.compare` on other rows. Order is kept up to ties: the
    fitted function has level stretches, which tie the scores within. Its ends may be exactly 0 and 1, where a single
    surprise makes the log loss infinite. **Method.** Rows of one score are pooled, and neighbours up to `fewest`, then
    SciPy's pool-adjacent-violators. Between the ends of neighbouring level stretches the map is straight, and beyond
    the outermost scores level: with ``fewest=1`` scikit-learn's ``IsotonicRegression(out_of_bounds="clip")``. **Cost.**
    One sort: less than scikit-learn's fit, a third of it at a million rows. **Reads.** Rows; weights are used.

    References
    ----------
    Zadrozny, Elkan, "Transforming classifier scores into accurate multiclass probability estimates", KDD 2002.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p**2, p)
    >>> fitted = cal.repair.Isotonic().fit(data)
    >>> fitted.scores(np.array([0.3, 0.6])).round(1), fitted.order
    (array([0.1, 0.4]), 'kept up to ties')
    """

    fewest: int = MASK

    def __post_init__(self) -> None:
        checked_fewest(self.fewest)

    def fit(self, data: Predictions) -> Piecewise:
        """Fit the function to rows."""
        rows = fit_rows(data, "Isotonic")
        scores, weight, events = scores_of(rows, int(self.fewest))
        result = isotonic(events / weight, weight)
        # Both ends of each level stretch are enough to draw it; of stretches at one height only the outer ends.
        first = np.flatnonzero(np.diff(result, prepend=-np.inf))
        at = np.unique(np.concatenate([first, first - 1, [len(result) - 1]]))[1:]
        shown = np.clip(result[at], 0.0, 1.0)
        shown = shown if self.fewest == 1 else np.round(shown, DECIMALS)
        inner = np.ones(len(at), dtype=bool)
        inner[1:-1] = (shown[1:-1] != shown[:-2]) | (shown[1:-1] != shown[2:])
        return Piecewise(
            recipe="Isotonic",
            settings={"fewest": int(self.fewest)},
            fitted_on=fitted_on(rows),
            mask=int(self.fewest),
            knots=tuple(scores[at][inner].tolist()),
            shown=tuple(shown[inner].tolist()),
        )
