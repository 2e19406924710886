"""The reliability curve as a scikit-learn display: from an estimator or from predictions, drawn with Matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.arguments import Caller
from calibrant.data.arrays import matrix_of
from calibrant.data.calls import Classifier, answers_of
from calibrant.data.predictions import frozen
from calibrant.diagnose.reliability_curve import METHOD, Axis, reliability_curve
from calibrant.errors import BadInput
from calibrant.results import Curve
from calibrant.views.people import people_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


Floats = NDArray[np.float64]
DIAGONAL = "Calibrated"  # what the legend calls it; of several displays on the same axes it is drawn once
BAND = 0.2  # how opaque a band is, so that two can be seen where they lie over each other

# What scikit-learn calls the arguments; rows with gaps are for the caller to leave out.
CALLER = Caller(
    lacks=("missing",), calls=(("positive", "pos_label"), ("weights", "sample_weight"), ("cluster", "groups"))
)


class Settings(TypedDict, total=False):
    """What may be said of the rows and of the curve; see `ReliabilityDisplay.from_predictions`."""

    sample_weight: ArrayLike | None
    groups: ArrayLike | None
    name: str | None
    ref_line: bool
    grid: int | Sequence[float]
    bandwidth: float | None
    axis: Axis
    alpha: float
    draws: int
    seed: int


class ReliabilityDisplay:
    """What happened against what the model says, with a band that holds for the whole curve at once.

    Make one by `from_estimator` or `from_predictions`, as scikit-learn's ``CalibrationDisplay``; no bins are chosen.

    Estimand: the smoothed event rate among people who are reported a probability, as in `reliability_curve`.

    Parameters
    ----------
    curve : Curve
        Of `calibrant.diagnose.reliability_curve`, smooth.
    estimator_name : str, optional
        What the legend calls it.
    pos_label : label, optional
        The case, for the axes' titles.

    Attributes
    ----------
    curve : Curve
        The numbers that are drawn; ``curve.settings["p_value"]`` tests the whole curve.
    line_ : matplotlib Line2D
    band_ : matplotlib PolyCollection
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    BadInput
        Another curve, or a label, class or setting that is not there.
    NotComputable
        The curve cannot be computed: under 50 expected events or non-events, a single score, under 20 groups.
    ImportError
        Matplotlib is missing: ``pip install "calibrant[displays]"``.

    Notes
    -----
    **Assumes.** Rows, or groups, are independent. **Guarantee.** If the model is calibrated, the band holds the
    diagonal everywhere with probability at least ``1 - alpha``, at any number of rows (of groups: asymptotically in
    their number); if it is not, the band is an asymptotic simultaneous confidence band for the smoothed rate: see
    `reliability_curve`. It is no finite-sample certificate of the error; `calibrant.certify` gives those. **Method.**
    The line is ``predicted + gap`` against ``predicted``, the band ``predicted + low`` to ``predicted + high``, both
    kept in [0, 1]; where too few people are, nothing is drawn. **Cost.** That of the curve. **Reads.** Rows; weights
    and groups.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> display = cal.diagnose.ReliabilityDisplay.from_predictions(rng.uniform(size=2000) < p, p, name="model")
    >>> display.ax_.get_xlabel(), len(display.ax_.lines)
    ('Predicted probability', 2)
    """

    line_: Line2D
    band_: PolyCollection
    ax_: Axes
    figure_: Figure

    def __init__(
        self, curve: Curve, *, estimator_name: str | None = None, pos_label: str | float | bool | None = None
    ) -> None:
        if not isinstance(curve, Curve) or curve.method != METHOD or curve.settings["method"] != "smooth":
            raise BadInput(f"curve={type(curve).__name__}: pass a smooth curve of calibrant.diagnose.reliability_curve")
        self.curve = curve
        self.estimator_name = estimator_name
        self.pos_label = pos_label

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: ArrayLike,
        y: ArrayLike,
        *,
        pos_label: str | float | bool | None = None,
        ax: Axes | None = None,
        **settings: Unpack[Settings],
    ) -> Self:
        """Draw the curve of a fitted classifier of two classes, or a pipeline that ends in one.

        Parameters
        ----------
        estimator : classifier
            With ``predict_proba``.
        X : array-like or frame of shape (n, d)
            Rows that it was not fitted on.
        y : array-like of shape (n,)
        pos_label : label, optional
            The case; by default the second of ``estimator.classes_``.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **settings
            As in `from_predictions`.

        Returns
        -------
        ReliabilityDisplay
        """
        happened, p, event = answers_of(estimator, X, y, pos_label)
        inputs: Settings = {"name": type(estimator).__name__, **settings}
        out = cls.from_predictions(happened, p, ax=ax, **inputs)
        out.pos_label = event
        out._named()
        return out

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        pos_label: str | float | bool | None = None,
        ax: Axes | None = None,
        **settings: Unpack[Settings],
    ) -> Self:
        """Draw the curve of probabilities that were predicted.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels 0 and 1, or any two with `pos_label`.
        y_prob : array-like of shape (n,)
            Probabilities of the event.
        pos_label : label, optional
            The case.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **settings
            ``sample_weight`` and ``groups`` (which rows share clusters), of shape (n,); ``name`` for the legend;
            ``ref_line=False`` leaves out the diagonal; and of the curve ``grid``, ``bandwidth``, ``axis``, ``alpha``,
            ``draws`` and ``seed``, as in `calibrant.diagnose.reliability_curve`.

        Returns
        -------
        ReliabilityDisplay
        """
        known = Settings.__optional_keys__
        if extra := sorted(set(settings) - known):
            every = f"pass {', '.join(sorted({*known, 'ax', 'pos_label'}))}"
            fix = "leave it out, there are no bins" if extra[0] == "n_bins" else every
            raise BadInput(f"{extra[0]}= has no meaning here: {fix}")
        several = matrix_of(y_prob, "y_prob")
        if several is not None and (k := several.shape[1]) > 2:
            raise BadInput(f"y_prob has {k} columns, one for each class: pass that of the event, and pos_label=")
        name, ref_line = settings.pop("name", None), settings.pop("ref_line", True)
        weights, cluster = settings.pop("sample_weight", None), settings.pop("groups", None)
        data = frozen((y_true, y_prob, None), weights, cluster, positive=pos_label, caller=CALLER)
        people_of(data).needs_two(CALLER)
        curve = reliability_curve(data, **settings)  # type: ignore[call-overload]  # what is left is the curve's
        return cls(curve, estimator_name=name, pos_label=pos_label).plot(ax=ax, ref_line=ref_line)

    def plot(self, *, ax: Axes | None = None, name: str | None = None, ref_line: bool = True, **kwargs: object) -> Self:
        """Draw it, on new axes unless some are given.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        name : str, optional
            What the legend calls it; `estimator_name` by default.
        ref_line : bool
            Draw the diagonal, where the model is right.
        **kwargs
            For ``Axes.plot``, such as ``color="k"``.

        Returns
        -------
        ReliabilityDisplay
            Itself.
        """
        axes = _axes(ax)
        label = DIAGONAL if DIAGONAL not in axes.get_legend_handles_labels()[1] else None
        if ref_line and label:
            axes.plot([0, 1], [0, 1], color="0.5", linestyle=":", label=label)
        columns = {k: np.asarray(self.curve.columns[k], dtype=np.float64) for k in ("predicted", "low", "gap", "high")}
        ends = [np.clip(columns["predicted"] + columns[k], 0.0, 1.0) for k in ("low", "gap", "high")]
        after = np.flatnonzero(np.diff(np.asarray(self.curve.columns["stretch"]))) + 1  # NaN between two stretches
        stated, low, middle, high = (np.insert(v, after, np.nan) for v in (columns["predicted"], *ends))
        name = self.estimator_name if name is None else name
        reported = {"label": f"{name or 'Model'} (p = {self.curve.settings['p_value']:.3g})"}
        (self.line_,) = axes.plot(stated, middle, **reported | kwargs)  # type: ignore[arg-type]
        color = self.line_.get_color()
        self.band_ = axes.fill_between(stated, low, high, color=color, alpha=BAND, linewidth=0)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.legend(loc="upper left")
        self.ax_, self.figure_ = axes, axes.get_figure(root=True)  # type: ignore[assignment]
        self._named()
        return self

    def _named(self) -> None:
        of = "" if self.pos_label in (None, 1) else f" of {self.pos_label}"  # True is 1
        self.ax_.set(xlabel=f"Predicted probability{of}", ylabel=f"Observed rate{of}")


def _axes(ax: Axes | None) -> Axes:
    """Axes to draw on."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as e:
        raise ImportError('a display needs Matplotlib: pip install "calibrant[displays]"') from e
    if ax is not None:
        return ax
    made: Axes = plt.subplots()[1]
    return made
