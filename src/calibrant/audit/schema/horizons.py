"""The curve of a record that several horizons share."""

from __future__ import annotations

from calibrant.audit.record import Verdict
from calibrant.audit.schema.curves import Gap, Level, Positive, Share, Some, curve

HORIZONS = curve(
    "audit.horizons",
    "Of several horizons, which share alpha: everyone, then each group, by each. The record is that of the worst "
    "verdict, at its share. Observed is estimated where outcomes are unknown. Absent of one horizon.",
    {
        "horizon": Positive,
        "score people": str,
        "rows": Some,
        "predicted observed": Share,
        "gap low high": Gap,
        "verdict": Verdict,
    },
    {"alpha": Level, "horizons": list[Positive], "scores": list[str]},
)
