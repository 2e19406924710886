"""The upper bounds that Figures 3 and 4 compare, at level 0.05, each about one classifier."""

from collections.abc import Callable
from typing import Any

import calibrant as cal

H = 2.0**-6  # the paper's jitter
KERNEL, DENOISER, BUCKETS = PUBLISHED = ("NW kernel", "TV denoising", "Lipschitz buckets")
JITTERED, ROUNDED, BOUNDED = OURS = (
    "calibrant: jittered",
    "calibrant: rounded, 50 steps",
    "calibrant: bounded_variation",
)
ECE = "ECE, 15 bins"
COLOURS = {
    KERNEL: "#1f4e9c",
    DENOISER: "#c0392b",
    BUCKETS: "#2e8b57",
    ECE: "#888888",
    JITTERED: "#5aa9e6",
    ROUNDED: "#8e5bd0",
    BOUNDED: "#e67e22",
}
ABOUT = {
    KERNEL: "jittered",
    BUCKETS: "jittered",
    JITTERED: "jittered",
    ROUNDED: "rounded",
    DENOISER: "as it is",
    ECE: "as it is",
    BOUNDED: "as it is",
}

BOUNDS: dict[str, Callable[[Any, float], float]] = {
    KERNEL: lambda d, _: high(cal.papers.published_kernel(d, bandwidth=H, subsample=True)),
    DENOISER: lambda d, variation: high(cal.papers.published_total_variation(d, variation=variation)),
    BUCKETS: lambda d, _: high(cal.papers.published_lipschitz(d, bandwidth=H)),
    ECE: lambda d, _: float(cal.measure.ece(d).value),
    JITTERED: lambda d, _: high(cal.certify.jittered(d, bandwidth=H, side="upper")),
    ROUNDED: lambda d, _: high(cal.certify.rounded(d, steps=50, side="upper")),
    BOUNDED: lambda d, variation: high(cal.certify.bounded_variation(d, variation=variation, side="upper")),
}


def high(estimate: Any) -> float:
    """Upper end."""
    return float(estimate.interval.high)


def powers(low: int, high: int) -> list[float]:
    """Powers of ten from `low` to `high`, for an axis."""
    return [10.0**k for k in range(low, high + 1)]
