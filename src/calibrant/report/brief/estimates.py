"""Estimates with their ordinary intervals, and what is guaranteed, in words: two layers of the first screen."""

from __future__ import annotations

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report.wording.terms import gap_ends
from calibrant.results import Interval

RARE = 0.05  # share of events under which the ratio of observed to expected says more than their difference


def rare(record: AuditRecord) -> bool:
    """Whether estimates are written as observed over expected events."""
    return record.everyone.events < RARE * record.everyone.rows


def shown(record: AuditRecord, finding: Finding) -> bool:
    """Whether the estimate of a finding may be shown: not where counts to publish leave it a range, or no count."""
    fives = facts.fives(record, finding.rows) if finding.variables else 0
    return not fives or (fives >= num.CLEAR and finding.events > 0)


def estimate_of(record: AuditRecord, finding: Finding, *, unit: bool = False) -> str:
    """The gap with its ordinary interval, such as "+8.9 (+5.4 to +12.4)"; of rare events observed over expected."""
    if not shown(record, finding):
        return "estimate withheld"
    ratio = finding.observed_expected
    if rare(record) and ratio is not None:
        return f"O/E {ratio.value:.2f}{_between(ratio.interval)}"
    value = f"{num.gap(finding.gap.value)}{' points' if unit else ''}"
    of = finding.gap.interval
    return value if of is None else f"{value} ({num.gap(of.low)} to {num.gap(of.high)})"


def _between(of: Interval | None) -> str:
    return "" if of is None else f" ({of.low:.2f} to {of.high:.2f})"


def gap_guaranteed(record: AuditRecord, finding: Finding) -> str:
    """The guaranteed range of a gap, rounded outward; of rare events to hundredths of a point."""
    low, high = num.signed_range(*gap_ends(finding), 2 if rare(record) else 1)
    return f"{low} to {high}"


def heading(record: AuditRecord) -> str:
    """What the estimates of a plot are, where it is a table."""
    return "observed over expected" if rare(record) else "observed minus predicted"
