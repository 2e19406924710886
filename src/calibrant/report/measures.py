"""The standard measures, in plain words; none of them is certified."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.spans import visible
from calibrant.results import Estimate

WORDS = {  # name in the record: its name on the page, what it says, its decimals (None: points)
    "ece": ("Binned calibration error (ECE)", "average gap over ranges of the score; grows with chance", None),
    "smooth_ece": ("Smooth calibration error", "the same without ranges: the score is smoothed", None),
    "max_calibration_error": ("Largest binned error (MCE)", "the largest of those gaps; grows with chance", None),
    "brier": ("Brier score", "mean squared distance from what happened; smaller is better", 4),
    "log_loss": ("Log loss", "punishes confident mistakes; smaller is better", 4),
    "auroc": ("AUROC", "how well people are told apart; 0.5 is guessing, 1 is perfect", 4),
    "calibration_intercept": ("Calibration intercept", "0 if right on balance; above 0: the model says too little", 3),
    "calibration_slope": ("Calibration slope", "1 if right; below 1: scores too extreme; above 1: too timid", 3),
    "observed_expected": (
        "Observed over expected cases",
        "1 if right on balance; above 1: the model says too little",
        3,
    ),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """One row of the table of standard measures."""

    name: str
    value: str
    range: str
    says: str


def measures(record: AuditRecord) -> tuple[Measured, ...]:
    """Return the standard measures of a record, in the order of this page; one not known here is shown as it is."""
    known = [k for k in WORDS if k in record.measures]
    others = sorted(k for k in record.measures if k not in WORDS)
    return tuple(_measured(k, record.measures[k]) for k in (*known, *others))


def _measured(key: str, e: Estimate) -> Measured:
    name, says, digits = WORDS.get(key, (visible(key), "", None if e.unit == "probability" else 4))
    low, high = e.interval.low, e.interval.high
    if digits is None:
        return Measured(name, f"{num.nearest(e.value)} points", f"{num.nearest(low)} to {num.nearest(high)}", says)
    shown = [num.decimals(v, digits) for v in (e.value, low, high)]
    return Measured(name, shown[0], f"{shown[1]} to {shown[2]}", says)


def note(record: AuditRecord) -> str:
    """Return what the ranges of the measures rest on."""
    levels = {e.interval.level for e in record.measures.values()}
    held = f"{num.percent(levels.pop())}% ranges" if len(levels) == 1 else "Ranges"
    return f"{held} are approximate and each stands by itself; no verdict rests on them."
