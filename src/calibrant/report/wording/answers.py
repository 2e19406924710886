"""What the sections of a report answer in their first lines, and what they say of one group."""

from __future__ import annotations

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import numbers as num
from calibrant.report.commands import naming_groups
from calibrant.report.findings import (
    by_gap,
    check_of,
    ends,
    gap_side,
    limit_of,
    need_of,
    needed,
    noun,
    only_together,
    reported,
    with_verdict,
)
from calibrant.report.spans import Text, code, literal, say, sentence, strong
from calibrant.report.wording.clusters import (
    by_clusters,
    no_plan,
)
from calibrant.report.wording.missing_labels import of_known
from calibrant.report.wording.terms import all_groups, capital, cardinal


def two_way(finding: Finding) -> bool:
    """Whether the raw lower bound exceeds the upper bound of the rounded score: two scores, two truths."""
    return finding.lower.interval.low > finding.upper.interval.high


def error_bounds(record: AuditRecord, finding: Finding) -> tuple[str, str]:
    """Return both certified ends of the calibration error, in points, whatever the limit is about."""
    return num.bounds(finding, limit_of(record), "gap" if by_gap(record) else "error")


def certified_range(record: AuditRecord, finding: Finding, *, dashed: bool = False) -> str:
    """The certified range of the calibration error in points: "0.6 to 1.2", in a table "0.6–1.2"."""
    low, high = error_bounds(record, finding)
    if two_way(finding):
        return f"raw {low}, rounded {high}"
    return num.between(low, high) if dashed else f"{low} to {high}"


def judged_range(record: AuditRecord, finding: Finding) -> str:
    """The certified range of what the limit is about: the calibration error, or the size of the gap."""
    if not by_gap(record):
        return certified_range(record, finding)
    (low, high), limit = ends(record, finding), limit_of(record)
    return f"{num.lower_bound(low, limit)} to {num.upper_bound(high, limit)}"


def error_at_most(record: AuditRecord) -> str:
    """Return what the limit is a limit of."""
    limit, what = limit_of(record), "gap" if by_gap(record) else "calibration error"
    return what if limit is None else f"{what} at most {num.limit_points(limit)} points"


def people(record: AuditRecord, finding: Finding) -> Text:
    """The natural frequencies of a finding, such as "expects 562 to be employed; 585 were"."""
    d = num.denominator(reported(record))
    expected, happened = map(num.count, num.of_every(finding, d))
    if finding.variables:
        expected, happened = (num.reported_of_every(finding.rows, n, d) for n in (finding.expected, finding.events))
    outcome, was = record.settings.get("outcome"), "was" if happened == "1" else "were"
    if outcome is None:
        events = "event" if expected == "1" else "events"
        return say(f"expects {expected} {events}; there {was} {happened}")
    return say(f"expects {expected} to be ", literal(outcome), f"; {happened} {was}")


def every(record: AuditRecord) -> str:
    """The one denominator of the page, written."""
    return num.count(num.denominator(reported(record)))


def too(record: AuditRecord) -> str:
    """The direction of the overall gap as a sentence, or nothing where it is not shown."""
    words = {"low": "The model underpredicts. ", "high": "The model overpredicts. "}
    return words.get(gap_side(record) or "", "")


def would_decide(record: AuditRecord, finding: Finding, where: str = "") -> Text:
    """Return how many people would decide, and on what condition."""
    e = num.nearest(finding.error)
    need = need_of(finding)
    if need is None and (unplanned := no_plan(record)):
        return say(f"{unplanned} ")
    if need is None:
        close = f"The error is estimated at {e} points, so close to the limit that no number of {needed(record)}"
        return say(f"{close}{where} is certain to decide. ")
    n = num.rows_needed(need[0])
    amount = strong(f"{n.removeprefix('over ')} {needed(record)}")
    condition = f"{where} would decide, if the error is as estimated ({e} points). "
    if finding.rows_at_least:
        return say("To find it within the limit takes at least ", amount, f"{where}. ")
    return say("Over " if n.startswith("over ") else "About ", amount, condition)


def overall_answer(record: AuditRecord) -> Text:
    """The first line of "How far off are the probabilities?"."""
    one = record.everyone
    predicted, observed = num.rates(one.expected / one.rows, one.events / one.rows)
    start = f"On average by {certified_range(record, one)} points."
    if two_way(one):
        low, high = error_bounds(record, one)
        start = f"On average the raw score by at least {low} points, the rounded score by at most {high}."
    mostly = {
        "low": "Mostly the model underpredicts: it",
        "high": "Mostly the model overpredicts: it",
        "unclear": "On balance it is not shown to be off: the model",
    }.get(gap_side(record) or "", "The model")
    return say(f"{of_known(record, start)} {mostly} predicts {predicted} in 100, and {observed} in 100 happened.")


def unshown_reason(record: AuditRecord) -> str:
    """Return why no group is shown although some were named; empty where none were named."""
    check = check_of(record, "error-groups")
    if record.groups or check is None or check.status != "not-applicable":
        return ""
    return sentence(check.reason or "no group could be certified")


def no_groups(record: AuditRecord) -> Text:
    """Return what is said in place of the groups: that none were given, or why none is shown."""
    reason = unshown_reason(record)
    if reason:
        return say(strong("No group can be shown."), f" {reason} Name coarser groups, or audit more {noun(record)}.")
    by = code(naming_groups(record))
    return say(strong("No groups were given."), " Add ", by, " to see for whom the probabilities are off.")


def groups_answer(record: AuditRecord) -> Text:
    """The first line of "For whom are they off?"."""
    total = len(record.groups)
    if not total:
        reason = unshown_reason(record)
        return say(f"Not answered. {reason}" if reason else "Not checked: no groups were given.")
    if limit_of(record) is None:
        return say("No limit was given; the largest certified errors come first.")
    broken, undecided = (len(with_verdict(record, v)) for v in ("over", "undecided"))
    if not broken and not undecided:
        small = only_together(record)
        of, more = (" shown", f"; {num.count(small)} small ones only pooled") if small else ("", "")
        reported = f"{all_groups(total).capitalize()}{of} {'are' if total > 1 else 'is'} within the limit{more}."
        return say(of_known(record, reported))
    first = f"{capital(cardinal(broken))} of {num.count(total)} groups {'is' if broken == 1 else 'are'} over the limit."
    if not broken:
        first = "No group is shown to be over the limit."
    first = of_known(record, first)
    if not undecided:
        return say(f"{first} The largest certified errors come first.")
    of = "clusters" if by_clusters(record) else noun(record)
    few = f"For {cardinal(undecided)} there are too few {of} to decide; the largest certified errors come first."
    return say(f"{first} {few}")
