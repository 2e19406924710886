"""The calibration error of batches as they come, in constant memory: `update`, `compute`, `reset`, `merge`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from calibrant import Predictions, Sketch, measure, sketch
from calibrant.arguments import checked_alpha, checked_seed, choice, flag, shown, text
from calibrant.certify import raw_lower, rounded
from calibrant.errors import BadInput
from calibrant.results import Estimate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

MEASURES = ("auroc", "brier", "calibration_intercept", "calibration_slope", "ece", "log_loss", "smooth_ece")
SUM = 1e-3  # by which the probabilities of the classes may miss one, as in `multiclass_predictions`


def certified(data: Predictions | Sketch, *, alpha: float, seed: int = 0) -> tuple[Estimate, Estimate]:
    """Both certified ends of the calibration error: of the raw score from below, rounded to percent from above."""
    lower = raw_lower(data, side="lower", alpha=alpha / 2, seed=seed)
    return lower, rounded(data, side="upper", alpha=alpha / 2, seed=seed)


class CalibrationMetric:
    r"""Calibration error of a stream of batches, with certified ends, in the shape of a metric of torchmetrics.

    Estimand: ``E|p - E[Y|p]|`` of all rows since the last reset, between ``raw_lower`` (of the raw score, from below)
    and ``rounded`` (of the score rounded to whole percent, from above).

    Parameters
    ----------
    measures : sequence of str
        Measures to compute too: ``"auroc"``, ``"brier"``, ``"calibration_intercept"``, ``"calibration_slope"``,
        ``"ece"``, ``"log_loss"``, ``"smooth_ece"``.
    alpha : float in (0, 0.5]
        Error probability of each interval; of the certified range, half for each end.
    seed : int
        Deals the rows into random blocks.
    logits : bool
        Apply the logistic function to `preds`, or the softmax if it has three columns or more.
    part : str
        Name of this process, where several count and are merged: each needs a name of its own.

    Raises
    ------
    BadInput
        A setting out of range; in `update`, values that are no probabilities or no labels, by their row in the batch.
        A refused batch is not counted.

    Notes
    -----
    **Assumes.** Independent rows, each counted once. A sampler that repeats rows to fill the last batch breaks this.
    **Guarantee.** Each certified end is wrong with probability at most ``alpha / 2`` if it is computed once, at a
    number of rows fixed beforehand. Of ends computed after every batch some may be wrong. Intervals of measures are
    asymptotic.
    **Method.** Batches are counted in a `calibrant.Sketch`: the result has the same bits as one from all rows at once,
    in the same order. Rows are known by `part` and their number, never by content.
    **Cost.** 10 MB, however many rows; 1 ms for a batch of 256; compute 0.1 s.
    **Reads.** Batches; of three columns or more the most probable class and whether it occurred.

    Examples
    --------
    >>> import calibrant as cal
    >>> metric = cal.tracking.CalibrationMetric()
    >>> for preds, target in [([0.2, 0.7], [0, 1]), ([0.4, 0.9], [1, 1])]:
    ...     metric.update(preds, target)
    >>> metric.n, sorted(metric.compute())
    (4, ['ece', 'raw_lower', 'rounded'])
    """

    def __init__(
        self,
        *,
        measures: Sequence[str] = ("ece",),
        alpha: float = 0.05,
        seed: int = 0,
        logits: bool = False,
        part: str = "",
    ) -> None:
        self.measures = tuple(choice("measures", name, MEASURES) for name in measures)
        self.alpha, self.seed, self.logits = checked_alpha(alpha), checked_seed(seed), flag("logits", logits)
        self.part = text("part", part)
        self._spec = sketch({"target": [0], "preds": [0.5]}, label="target", score="preds", seed=self.seed).spec
        self.reset()

    @property
    def n(self) -> int:
        """Rows counted since the last reset."""
        return self._sketch.rows_read

    @property
    def sketch(self) -> Sketch:
        """A copy of the counts: `calibrant.audit` takes it, and ``to_bytes`` stores it for the command."""
        return self._sketch.copy()

    def update(self, preds: ArrayLike, target: ArrayLike) -> None:
        """Count a batch.

        Parameters
        ----------
        preds : array or tensor of shape (n,), (n, 1), (n, 2) or (n, K)
            Probabilities of the event; of two columns the second; of more the probabilities of all classes.
        target : array or tensor of shape (n,)
            0 and 1; of several classes 0 to K - 1.
        """
        p, y = _batch(_array(preds), _array(target), self.logits)
        if len(p):
            self._sketch.update(pa.record_batch({"target": y, "preds": p}), part=self.part, first_row=self.n)

    def compute(self) -> dict[str, Estimate]:
        """The certified lower end (``"raw_lower"``) and upper end (``"rounded"``), and the measures, by name."""
        lower, upper = certified(self._sketch, alpha=self.alpha, seed=self.seed)
        also = {name: getattr(measure, name)(self._sketch, alpha=self.alpha) for name in self.measures}
        return {"raw_lower": lower, "rounded": upper, **also}

    def reset(self) -> None:
        """Forget all rows."""
        self._sketch = Sketch(self._spec)

    def merge(self, other: CalibrationMetric) -> None:
        """Add the rows that another metric has counted.

        Parameters
        ----------
        other : CalibrationMetric
            Of the same seed, and of another `part`.
        """
        if self.n and other.n and self.part == other.part:
            raise BadInput(f"both metrics count part {self.part!r}: give each process a part= of its own")
        self._sketch.add(other._sketch)

    def to_bytes(self) -> bytes:
        """The counts as bytes, which `add_bytes` of another metric takes: for another process."""
        return self._sketch.to_bytes(level=1)

    def add_bytes(self, raw: bytes) -> None:
        """Add the counts that `to_bytes` wrote."""
        self._sketch.add(Sketch.from_bytes(raw))


# ---- a batch ----


def _array(values: object) -> NDArray[np.float64]:
    """An array, a list, or a tensor on any device, as doubles."""
    if hasattr(values, "detach"):  # a tensor: half precision and other devices are nothing that NumPy reads
        values = values.detach().cpu().double().numpy()
    return np.asarray(values, dtype=np.float64)


def _batch(
    p: NDArray[np.float64], y: NDArray[np.float64], logits: bool
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Probabilities and outcomes; of three classes or more those of the most probable one."""
    if y.ndim != 1 or p.ndim not in (1, 2) or len(p) != len(y):
        raise BadInput(
            f"preds has shape {p.shape} and target {y.shape}: pass one label a row, and one probability or one for "
            "each class"
        )
    p = p[:, 0] if p.ndim == 2 and p.shape[1] == 1 else p
    classes = 2 if p.ndim == 1 else p.shape[1]
    known = "neither 0 nor 1" if classes == 2 else f"none of 0 to {classes - 1}"
    _refuse("target", y, ~np.isin(y, np.arange(classes)), known, f"number the classes 0 to {classes - 1}")
    rows = p if p.ndim == 2 else p[:, None]
    _refuse("preds", p, ~np.isfinite(rows).all(axis=1), "missing or infinite", "leave the row out of the batch")
    if logits:
        from scipy.special import expit, softmax

        p = expit(p) if p.ndim == 1 else softmax(p, axis=1)
    outside = ((p < 0) | (p > 1)).reshape(rows.shape).any(axis=1)
    _refuse("preds", p, outside, "outside 0 to 1", "correct it, or pass logits=True if these are logits")
    if p.ndim == 1:
        return p, y.astype(np.int8)
    total = p.sum(axis=1, keepdims=True)
    _refuse("preds", p, (np.abs(total - 1) > SUM)[:, 0], "not of sum 1", "pass the probabilities of all classes")
    p, top = p / total, p.argmax(axis=1)
    if classes == 2:
        return p[:, 1], y.astype(np.int8)
    return p[np.arange(len(p)), top], (top == y).astype(np.int8)


def _refuse(name: str, values: NDArray[np.float64], wrong: ArrayLike, what: str, fix: str) -> None:
    """Refuse a batch in one line, where it has such a row."""
    rows = np.flatnonzero(wrong)
    if count := len(rows):
        row = int(rows[0])
        are = "value is" if count == 1 else "values are"
        raise BadInput(
            f"{name}: {count:,} {are} {what}: {fix}. First: row {row:,} of the batch, counting from 0 "
            f"({shown(values[row].tolist())})."
        )
