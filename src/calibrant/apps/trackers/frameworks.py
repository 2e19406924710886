"""Metrics of other packages, made where these are installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from calibrant.apps.trackers.streamed import CalibrationMetric
from calibrant.arguments import checked_alpha, checked_seed, optional, share, text

if TYPE_CHECKING:
    from calibrant.apps.trackers.evidently import CalibrationError
    from calibrant.apps.trackers.torchmetrics import TorchCalibration


def torchmetrics_metric(
    *,
    measures: Sequence[str] = ("ece",),
    alpha: float = 0.05,
    seed: int = 0,
    logits: bool = False,
    part: str = "",
    **options: object,
) -> TorchCalibration:
    """`CalibrationMetric` as a `torchmetrics.Metric`: in a ``MetricCollection``, over processes, in checkpoints.

    Parameters
    ----------
    measures, alpha, seed, logits, part
        As `CalibrationMetric`. With ``torch.distributed`` each rank is a part by itself.
    options
        As ``torchmetrics.Metric``: ``dist_sync_on_step``, ``process_group`` and so on.

    Returns
    -------
    torchmetrics.Metric
        ``compute()`` returns tensors, since torchmetrics refuses frozen results: ``calibration_error``,
        ``calibration_error_low``, ``calibration_error_high``, and of each measure the same three. After it the
        attribute ``estimates`` holds what `CalibrationMetric` returns.

    Raises
    ------
    ImportError
        torchmetrics is missing: ``pip install torchmetrics``.

    Notes
    -----
    **Guarantee.** That of `CalibrationMetric`, over the rows of all processes. A ``DistributedSampler`` repeats rows to
    fill the last batch, and these count twice: pass it ``drop_last=True``.
    **Method.** The state is the bytes of a sketch, which processes exchange once, at ``compute()``.
    **Cost.** At most a few megabytes for each process; a step by ``forward`` computes, and takes 0.1 s more.
    **Reads.** Batches.
    """
    checked = CalibrationMetric(measures=measures, alpha=alpha, seed=seed, logits=logits, part=part)
    from calibrant.apps.trackers.torchmetrics import TorchCalibration

    return TorchCalibration(checked, **options)


def evidently_metric(
    *,
    limit: float | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    classification: str = "default",
) -> CalibrationError:
    """A metric for a report of Evidently: the certified calibration error, with tests against a limit.

    Parameters
    ----------
    limit : float in (0, 1), optional
        Largest acceptable calibration error. Two tests then judge it: "at least" fails where the error is certified
        over the limit; "at most" succeeds where it is certified within, and is a warning otherwise. Undecided is thus
        one success and one warning.
    alpha : float in (0, 0.5]
        Error probability of the range.
    seed : int
    classification : str
        The ``name`` of the ``BinaryClassification`` in the data definition, which names label, probability and
        ``pos_label``.

    Returns
    -------
    evidently.core.metric_types.Metric
        Its value has the labels ``"estimate"``, ``"at least"`` and ``"at most"``.

    Raises
    ------
    ImportError
        Evidently is missing: ``pip install evidently``. Version 0.7.23 does not load with pandas 3.

    Notes
    -----
    **Assumes.** Independent rows.
    **Guarantee.** Each end is wrong with probability at most ``alpha / 2``.
    **Method.** `certify.raw_lower` from below, `certify.rounded` from above, of current data and of the reference.
    **Reads.** Rows.
    """
    name, most = text("classification", classification), optional(share)("limit", limit)
    level, number = checked_alpha(alpha), checked_seed(seed)
    from calibrant.apps.trackers.evidently import CalibrationError, against

    tests = None if most is None else against(most)
    return CalibrationError(classification_name=name, alpha=level, seed=number, tests=tests)
