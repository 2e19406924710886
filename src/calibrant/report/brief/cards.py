"""The verdict in three cards: everyone, the named groups, unlisted subgroups; each with estimate and guarantee."""

from __future__ import annotations

from calibrant.audit.record import AuditRecord, Finding, size
from calibrant.report import document as doc
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report.commands import naming_groups
from calibrant.report.findings import decimals
from calibrant.report.spans import Span, Text, clipped, code, say
from calibrant.report.wording.clusters import independent, too_narrow
from calibrant.report.wording.headline import group_named
from calibrant.report.wording.missing_labels import happened, known_only
from calibrant.report.wording.parts import gap_shows_none, subgroups_reported, unshown_reason, verdict_word
from calibrant.report.wording.terms import (
    ATTRIBUTES,
    certified_range,
    classes_counted,
    gap_guaranteed,
    over_expected,
    p_reported,
)
from calibrant.results import Estimate
from calibrant.sanitize import sanitize


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


def by_error(finding: Finding) -> bool:
    """Whether its state is about the calibration error: it is what is judged, or shows what the gap does not."""
    if finding.by == "error":
        return True
    over = finding.limit is not None and size(*finding.gap_ends)[0] > finding.limit
    return not over if finding.verdict == "over" else finding.error_shown and gap_shows_none(finding)


def least_error(finding: Finding) -> str:
    """The lower end of the certified calibration error, with the digits that show it to be above 0 where it is."""
    reported, low = num.lower_bound(finding.error_ends[0], finding.limit), finding.lower.interval.low
    return num.lower_bound(low, 0.0001) if finding.error_shown and low > 0 and float(reported) == 0 else reported


# ---- the cards ----

MOST_WORDS = 25
NAMED = 60  # characters of the name of a group, or the rule of a subgroup


def cards(record: AuditRecord) -> tuple[doc.Part, ...]:
    """Everyone, the named groups and unlisted subgroups: always all three; and classes, if there are any."""
    total, known = len(record.groups), known_only(record)
    shown = " shown" if total and facts.only_together(record) else ""
    named = f"{num.count(total)} groups{shown}" if total > 1 else f"One group{shown}" if total else "Named groups"
    several = len(record.classes)
    classes = doc.Part(classes_counted(record), *verdict_word(record, "classes"), _classes(record)) if several else None
    return (
        doc.Part(
            f"{'Most probable class' if several else 'Everyone'}{known}",
            *verdict_word(record, "everyone"),
            _everyone(record),
        ),
        *filter(None, [classes]),
        doc.Part(f"{named}{known}", *verdict_word(record, "groups"), _groups(record)),
        doc.Part(f"Unlisted subgroups{known}", *verdict_word(record, "subgroups"), _subgroups(record)),
    )


def _everyone(record: AuditRecord) -> Text:
    one = record.everyone
    predicted, observed = num.rates(one.expected / one.rows, one.events / one.rows, facts.decimals(record))
    ratio = f" observed over expected {over_expected(one)}," if facts.rare(record) and one.observed_expected else ""
    start = f"{happened(record, predicted, observed)}:{ratio} {estimate_of(record, one, unit=True)}."
    if facts.withheld(record):
        return say(f"{start} {too_narrow(record)}")
    if one.by == "gap":
        if facts.cancels(record):
            least = num.lower_bound(one.error_ends[0], one.limit)
            return say(f"{start} Errors cancel: calibration error at least {least} guaranteed.")
        return say(f"{start} Guaranteed: gap {gap_guaranteed(record, one)}.")
    low, high = one.gap_ends
    cancel = "; errors cancel in the gap" if record.error_shown["everyone"] and low <= 0.0 <= high else ""
    return say(f"{start} Guaranteed: {_error(one)}{cancel}.")


def _error(finding: Finding) -> str:
    reported = certified_range(finding)
    if reported.startswith("0.0 "):
        reported = f"{least_error(finding)}{reported.removeprefix('0.0')}"
    return reported if finding.two_scores else f"calibration error {reported}"


def _groups(record: AuditRecord) -> Text:
    if not record.groups:
        reason = unshown_reason(record)
        if reason:
            return say(f"{reason} Name coarser ones.")
        if not facts.other_columns(record):
            return say("Label and score are the only columns: add one that names groups.")
        return say("Name some: ", code(naming_groups(record)), ".")
    if facts.withheld(record):
        return say(too_narrow(record))
    ranked = facts.by_evidence(record.groups)
    first = next((f for f in ranked if f.verdict == "over"), ranked[0])
    href = f"#{first.id}" if len(record.groups) <= facts.MOST_ROWS else ""
    lead = "" if facts.is_off(first) or len(record.groups) == 1 else "Most evident gap: "
    lead = f"No group is shown to be off. {lead}" if lead and facts.state(record, "groups") == "undecided" else lead
    name = Span(clipped(group_named(first), NAMED), "name", href)
    return say(lead, name, f": {estimate_of(record, first, unit=True)}; {_sure(record, first)}.")


def _classes(record: AuditRecord) -> Text:
    """The class that is most evidently off, and the certified error of all classes together."""
    if facts.withheld(record):
        return say(too_narrow(record))
    ranked = facts.by_evidence(record.classes)
    first = next((f for f in ranked if f.verdict == "over"), ranked[0])
    lead = "" if facts.is_off(first) else "Most evident: "
    name = Span(clipped(sanitize(first.variables[0][1]), NAMED), "name", "#classes")
    ends = record.estimates[facts.ALL_CLASSES].interval if facts.ALL_CLASSES in record.estimates else None
    limit = record.settings.get("limit_classes")
    of = "" if limit is None else f" (limit {num.limit_points(limit)})"
    summed = None if ends is None else f"{num.lower_bound(ends.low)} to {num.upper_bound(ends.high)} points{of}"
    total = f" Errors of all classes add up to {summed}." if summed else ""
    stated = f": {estimate_of(record, first, unit=True)}; {_sure(record, first)}.{total}"
    return say(lead, name, stated, *_exchanged(record))


def _exchanged(record: AuditRecord) -> Text:
    """Which class gets too much at the cost of which, where the test of all classes shows error."""
    for test, of, where in ((facts.CLASS_LOCAL, "", "By score, "), (facts.CLASS_STRONG, "peak_", "Somewhere ")):
        check = facts.ran(record, test)
        if check is None or check.outcome is None or not record.test_shows(check):
            continue
        named = [check.outcome.parts.get(f"{of}{k}_class") for k in ("over", "under")]
        if None not in named:
            over, under = (Span(clipped(sanitize(str(name)), NAMED), "name") for name in named)
            return say(f" {where}", over, " gets too much, mostly at the cost of ", under, ".")
    return ()


def _sure(record: AuditRecord, finding: Finding) -> str:
    """What is guaranteed of a group: at least how far it is off, where anything is; else the range of its gap."""
    if finding.by == "error":
        return f"{_error(finding)} guaranteed"
    if by_error(finding):
        return f"calibration error at least {least_error(finding)} guaranteed"
    reported = num.lower_bound(finding.shown[0], finding.limit, facts.decimals(record))
    if float(reported) > 0:
        return f"at least {reported} guaranteed"
    return f"guaranteed {gap_guaranteed(record, finding)}"


def _subgroups(record: AuditRecord) -> Text:
    check, e = facts.check_of(record, facts.SUBGROUPS), record.estimates.get(facts.SUBGROUPS)
    if check is None or e is None:
        return subgroups_reported(record)
    n, of = num.count(int(e.settings["subgroups"])), ATTRIBUTES[int(e.settings["order"]) - 1]
    shown = check.outcome is not None and record.test_shows(check)
    known = facts.subgroups_over(record) or facts.unlisted_known(record)
    p = p_reported(check.outcome).partition(",")[0] if shown and check.outcome is not None else ""
    tested = f" {'A test shows error' if known else 'Error shown somewhere'} ({p})." if p else ""
    return say(f"Searched {n}, of {of}.{tested} ", *_most_evident(record, e))


def _most_evident(record: AuditRecord, worst: Estimate) -> Text:
    """The subgroup with the largest certified gap, or the first of the search; what none exceeds, if none is named."""
    limit, c = facts.limit_of(record), record.curve(facts.SUBGROUPS).columns
    known = facts.unlisted_known(record)[:1]
    if not known and facts.subgroups_known(record):
        return say("Apart from the named groups, none is guaranteed to be off.")
    rule = known[0].rule if known else str((c.get("rule") or ("",))[0])
    if known and not rule:
        return say(
            f"One is off by at least {num.lower_bound(known[0].least, limit, facts.decimals(record))}, guaranteed."
        )
    if not rule:
        high = worst.interval.high
        if high >= facts.UNREPORTED:
            return say(f"Too few {independent(record).called} to say what none exceeds.")
        return say(f"None of size is off by more than {num.upper_bound(high, limit)}.")
    at = c["rule"].index(rule)
    if not known and num.gap(float(c["gap"][at])) == num.gap(0.0):
        return say("None is guaranteed to be off.")
    name = Span(clipped(sanitize(rule), NAMED), "name", "#subgroups")
    ends = " to ".join(num.signed_range(float(c["low"][at]), float(c["high"][at]), facts.decimals(record)))
    least = num.lower_bound(known[0].least, limit, facts.decimals(record)) if known else ""
    sure = f"at least {least} guaranteed" if known else f"guaranteed {ends}"
    return say("Most evident: ", name, f": {num.gap(float(c['gap'][at]), facts.decimals(record))}; {sure}.")
