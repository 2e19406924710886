"""The streamed calibration error as a `torchmetrics.Metric`: in collections, over processes, in checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from calibrant.apps.trackers.streamed import CalibrationMetric

try:
    import torch
    import torchmetrics
    from torch import Tensor
except ImportError:
    raise ImportError("calibrant.tracking.torchmetrics_metric needs torchmetrics: pip install torchmetrics") from None

if TYPE_CHECKING:
    from calibrant.results import Estimate

LENGTH = 8  # bytes before each sketch in the state: how many follow


class TorchCalibration(torchmetrics.Metric):  # type: ignore[misc]
    """See `calibrant.tracking.torchmetrics_metric`."""

    is_differentiable = False
    higher_is_better = False
    # A step counts its batch twice, for all rows and by itself. The other way of torchmetrics joins batches that each
    # begin at row 0, so that a row's place in its batch, which may follow the label, would choose its random block.
    full_state_update = True

    def __init__(self, counted: CalibrationMetric, **options: object) -> None:
        super().__init__(**options)
        self.counted = counted
        self.estimates: dict[str, Estimate] = {}  # of the last `compute`
        self.add_state("sketches", default=[], dist_reduce_fx="cat", persistent=True)

    @property
    def sketches(self) -> list[Tensor]:
        """The state: bytes of one sketch and, where those of several processes are joined, of theirs."""
        raw = self.counted.to_bytes() if self.counted.n else b""
        framed = len(raw).to_bytes(LENGTH, "little") + raw
        return [torch.from_numpy(np.frombuffer(framed, dtype=np.uint8).copy()).to(self.device)]

    @sketches.setter
    def sketches(self, value: Sequence[Tensor] | Tensor) -> None:
        self.counted.reset()
        self._add([value] if isinstance(value, Tensor) else value)

    def _add(self, tensors: Sequence[Tensor]) -> None:
        """Add the sketches of some states."""
        for tensor in tensors:
            raw = tensor.cpu().to(torch.uint8).numpy().tobytes()
            while raw:
                end = LENGTH + int.from_bytes(raw[:LENGTH], "little")
                if end > LENGTH:
                    self.counted.add_bytes(raw[LENGTH:end])
                raw = raw[end:]

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Count a batch."""
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        if distributed and not self.counted.part:
            self.counted.part = f"rank {torch.distributed.get_rank()}"
        self.counted.update(preds, target)

    def compute(self) -> dict[str, Tensor]:
        """Each number and both ends of its interval as tensors; `estimates` then has the same as `Estimate`."""
        self.estimates = self.counted.compute()
        also = {k: e for k, e in self.estimates.items() if k not in ("raw_lower", "rounded")}
        lower, upper = self.estimates["raw_lower"], self.estimates["rounded"]
        out = {
            "calibration_error": upper.value,
            "calibration_error_low": lower.low,
            "calibration_error_high": upper.high,
        }
        for name, e in also.items():
            out |= {name: e.value, f"{name}_low": e.low, f"{name}_high": e.high}
        return {name: torch.tensor(float(v), dtype=torch.float64, device=self.device) for name, v in out.items()}

    def reset(self) -> None:
        """Forget all rows."""
        super().reset()
        self.counted.reset()

    def merge_state(self, incoming_state: dict[str, Sequence[Tensor]] | TorchCalibration) -> None:
        """Add the rows of another metric, or of its state."""
        if isinstance(incoming_state, TorchCalibration):
            self.counted.merge(incoming_state.counted)
        else:
            self._add(incoming_state["sketches"])
        self._computed = None
