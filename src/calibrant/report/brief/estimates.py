"""Estimates with their ordinary intervals, and what is guaranteed, in words: two layers of the first screen."""

from __future__ import annotations

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report.findings import decimals
from calibrant.report.wording.parts import gap_shows_none
from calibrant.report.wording.terms import error_bounds, gap_ends


def shown(record: AuditRecord, finding: Finding) -> bool:
    """Whether the estimate of a finding may be shown: not where counts to publish leave it a range, or no count.

    Nor where nobody was followed to the horizon.
    """
    if facts.unestimated(finding):
        return False
    fives = facts.fives(record, finding.rows) if finding.variables else 0
    return not fives or (fives >= num.CLEAR and finding.events > 0)


def estimate_of(record: AuditRecord, finding: Finding, *, unit: bool = False) -> str:
    """The gap with its ordinary interval, such as "+8.9 (+5.4 to +12.4)"."""
    if not shown(record, finding):
        return "no estimate" if facts.unestimated(finding) else "estimate withheld"
    value, of, n = (
        f"{num.gap(finding.gap.value, decimals(record))}{' points' * unit}",
        finding.gap.interval,
        decimals(record),
    )
    return value if of is None else f"{value} ({num.gap(of.low, n)} to {num.gap(of.high, n)})"


def by_error(record: AuditRecord, finding: Finding) -> bool:
    """Whether its state is about the calibration error: it is what is judged, or shows what the gap does not."""
    low, high = gap_ends(finding)
    limit = facts.limit_for(record, finding)
    over = limit is not None and max(low, -high) > limit
    if not facts.by_gap(record, finding):
        return True
    return not over if finding.verdict == "over" else finding.error_shown and gap_shows_none(record, finding)


def least_error(record: AuditRecord, finding: Finding) -> str:
    """The lower end of the certified calibration error, with the digits that show it to be above 0 where it is."""
    reported, low = error_bounds(record, finding)[0], finding.lower.interval.low
    return num.lower_bound(low, 0.0001) if finding.error_shown and low > 0 and float(reported) == 0 else reported


def gap_guaranteed(record: AuditRecord, finding: Finding) -> str:
    """The guaranteed range of a gap, rounded outward; of rare events to hundredths of a point."""
    low, high = num.signed_range(*gap_ends(finding), decimals(record))
    return f"{low} to {high}"
