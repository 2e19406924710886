"""What a banded curve says as a whole: where it is worst, and whether it lies on one side."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.diagnose.banded import Banded


def worst(found: Banded) -> dict[str, Any]:
    """Return the point of the largest gap, and an interval for the largest gap wherever it is.

    The low end is the largest distance from zero that the band shows anywhere, the high end the farthest that it
    reaches: both hold for ``max |g|`` whenever the band holds g at every point.
    """
    best: tuple[float, Any] = (-1.0, None)
    low = high = 0.0
    for b in found.bands:
        looked = np.flatnonzero(b.panel.kind[b.kept] != 0)
        if not len(looked):
            continue
        size, wide = np.abs(b.gap[looked]), b.wide[looked]
        low, high = max(low, float((size - wide).max())), max(high, float((size + wide).max()))
        i = int(np.argmax(size))
        if size[i] > best[0]:
            best = (float(size[i]), (b, int(looked[i])))
    if best[1] is None:
        return dict.fromkeys(("worst_group", "worst_at", "worst_label", "worst_gap", "worst_low", "worst_high"))
    b, i = best[1]
    at = int(b.kept[i])
    x = float(b.panel.x[at])
    return {
        "worst_group": b.panel.group,
        "worst_at": None if np.isnan(x) else x,
        "worst_label": b.panel.labels[at],
        "worst_gap": float(b.gap[i]),
        "worst_low": low,
        "worst_high": min(high, 1.0),
    }


def consistency(found: Banded) -> dict[str, Any]:
    """Return the side on which the curve lies everywhere, if it does, and what that rests on (Definition 5.3)."""
    gap = np.concatenate([b.gap for b in found.bands])
    wide = np.concatenate([b.wide for b in found.bands])
    side = "over" if (gap < 0).all() else "under" if (gap > 0).all() else None
    clear = np.abs(gap) > wide
    if side is None:
        how = "the gap is on both sides of zero"
    elif clear.all():
        how = "shown: the simultaneous band is on this side of zero at every point"
    elif clear.any():
        how = f"estimated: the gap is on this side at every point, the simultaneous band at {100 * clear.mean():.0f} %"
    else:
        side, how = None, "the simultaneous band holds zero at every point"
    return {"consistent": side, "consistent_how": how}
