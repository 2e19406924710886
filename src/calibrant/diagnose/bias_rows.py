"""The local calibration bias at every row, from the other rows, and the probabilities it corrects."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.predictions import Predictions
from calibrant.diagnose.bias_axes import axes_of
from calibrant.diagnose.bias_map import METHOD, noise_of, sample_of, scaled
from calibrant.diagnose.bias_published import published_axes
from calibrant.diagnose.bias_widths import widths_of
from calibrant.errors import NotComputable
from calibrant.results import Curve
from calibrant.stats.bias import kernel_bias

MOST_ROWS = 100_000


def bias_at_rows(data: Predictions, names: tuple[str, ...], score: bool, bandwidth: Any, gamma: float | None) -> Curve:
    """Return eq. 7 at the rows, each left out of its own mean; `gamma` selects the published kernel."""
    if data.n > MOST_ROWS:
        raise NotComputable(f"at='rows' compares all pairs of rows: {data.n:,} are over {MOST_ROWS:,}; pass a sample")
    if gamma is None:
        axes = axes_of(data, names, score)
        widths = widths_of(axes, bandwidth, np.ones(data.n, dtype=bool), noise_of(data))
    else:
        axes = published_axes(data, names)
        widths = ((2.0 * gamma) ** -0.5,) * len(axes)
    s = sample_of(data, axes, 0)
    spots = scaled(s.spots, widths)
    bias, rows = kernel_bias(spots, s.weight, s.y - s.p, spots, same=True)
    columns = {"predicted": s.p, "bias": bias, "corrected": np.clip(s.p + bias, 0.0, 1.0), "rows": rows}
    return Curve(
        method=METHOD,
        columns={"row": tuple(range(data.n))} | {k: tuple(v.tolist()) for k, v in columns.items()},
        settings={
            "axes": tuple({"name": a.name, "kind": a.kind, "scaling": "rank" if a.ranks else "as it is"} for a in axes),
            "bandwidths": {"everyone": {a.name: w for a, w in zip(axes, widths, strict=True) if a.numeric}},
            "gamma": gamma,
            "kernel": "local" if gamma is None else "published",
            "left_out": "the row itself",
            "n": data.n,
            "weights": data.weights is not None,
        },
    )
