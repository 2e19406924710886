"""Measures as scikit-learn scorers, for model selection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.arguments import choice
from calibrant.data.predictions import predictions
from calibrant.measure.ece import ece, max_calibration_error, smooth_ece
from calibrant.measure.scores import auroc, brier, log_loss
from calibrant.results import Estimate

if TYPE_CHECKING:
    from sklearn.metrics._scorer import _Scorer

# Each measure, and whether more of it is better. A slope or a ratio, which is best at 1, is no score.
MEASURES: Mapping[str, tuple[Callable[..., Estimate], bool]] = MappingProxyType(
    {
        "auroc": (auroc, True),
        "brier": (brier, False),
        "ece": (ece, False),
        "log_loss": (log_loss, False),
        "max_calibration_error": (max_calibration_error, False),
        "smooth_ece": (smooth_ece, False),
    }
)


def scorer(
    measure: str | Callable[..., Estimate], /, *, pos_label: str | float | None = None, **settings: object
) -> _Scorer:
    """A measure as a scorer for ``GridSearchCV`` and ``cross_val_score``, larger being better.

    Parameters
    ----------
    measure : str or function
        "auroc", "brier", "ece", "log_loss", "max_calibration_error" or "smooth_ece"; or the function of that name.
    pos_label : label, optional
        The case, where labels are not 0 and 1.
    **settings
        Of the measure, such as ``bins=10``.

    Returns
    -------
    scorer
        Called with a fitted classifier, rows and labels, it returns the value, or minus it where smaller is better. It
        takes ``sample_weight`` and ``groups`` (rows of one cluster, the measures' `cluster`) where scikit-learn routes
        them: ``scorer(...).set_score_request(sample_weight=True, groups=True)``.

    Raises
    ------
    BadInput
        Another measure; from the scorer, labels that are not 0 and 1 without `pos_label`.

    Notes
    -----
    **Assumes.** What the measure does. **Guarantee.** None: errors estimated on few rows are too large by their noise,
    alike for all candidates only where they are as variable. **Method.** `sklearn.metrics.make_scorer` on
    ``predict_proba``. **Cost.** That of the measure. **Reads.** Rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = rng.uniform(size=600) < 1 / (1 + np.exp(-X[:, 0]))
    >>> found = cross_val_score(LogisticRegression(), X, y, scoring=cal.measure.scorer("brier"), cv=3)
    >>> bool((found < -0.1).all())
    True
    """
    from sklearn.metrics import make_scorer

    own = next((name for name, (function, _) in MEASURES.items() if function is measure), measure)
    measure = choice("measure", own, tuple(MEASURES))
    function, larger = MEASURES[measure]
    value = partial(_value, partial(function, **settings))
    value.__name__ = measure  # type: ignore[attr-defined]  # what scikit-learn prints
    # scikit-learn reads pos_label to choose the column of predict_proba, and passes it on
    named = {} if pos_label is None else {"pos_label": pos_label}
    return make_scorer(value, response_method="predict_proba", greater_is_better=larger, **named)


def _value(
    function: Callable[..., Estimate],
    y_true: ArrayLike,
    y_prob: NDArray[np.float64],
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    pos_label: str | float | None = None,
) -> float:
    """A measure of labels and probabilities."""
    own = predictions(y_true, y_prob, weights=sample_weight, cluster=groups, positive=pos_label)
    return function(own).value
