"""Whoever a limit or a named test judges, each with its state and a few words; and all that fail in one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from calibrant.audit.record import AuditRecord, CheckRecord, Finding
from calibrant.report import numbers as num
from calibrant.report.findings import ends, limit_of, need_of, needed, ordered, subgroups_over, suppressed
from calibrant.report.spans import clipped, label
from calibrant.report.wording.answers import judged_range
from calibrant.report.wording.terms import cardinal, p_reported
from calibrant.sanitize import sanitize

State = Literal["within", "over", "undecided", "open", "absent"]
Kind = Literal["everyone", "group", "subgroups", "check"]
ERROR = "error-"  # the start of the codes of checks that a limit counts
SUBGROUPS = "unlisted subgroups"
OPEN = {
    "undecided": "not shown to be within the limit",
    "error_shown": "a test shows error, and no subgroup is certified over the limit",
}
LONGEST = 60  # characters of a name in the line
NAMED = 3  # of those that are over, or undecided, the line names so many


@dataclass(frozen=True, slots=True)
class Judged:
    """One answer of an audit that counts for a pipeline."""

    kind: Kind
    name: str  # as it is read
    # The worst of all is the exit status: "over" 1, "undecided" 3. "open" counts for none: unlisted subgroups of which
    # none is certified over the limit, nor all within it. "absent" was not judged.
    state: State
    reported: str  # how far off, or why not judged, in a few words
    short: str = ""  # the same in the fewest; empty where there are none


def judged(record: AuditRecord) -> list[Judged]:
    """Return who and what is judged: everyone, groups and subgroups against the limit, then the tests that count.

    Without a limit people are there as not judged.
    """
    people = [_finding(record, f) for f in (record.everyone, *ordered(record.groups))]
    return [*people, _subgroups(record), *_checks(record)]


def line(record: AuditRecord, of: Iterable[Judged]) -> str:
    """Return in one line who is over the limit and who is undecided; empty where nobody is."""
    result = list(of)
    over = [j for j in result if j.state == "over" and j.kind != "check"]
    limit = limit_of(record)
    bound = "" if limit is None else f" of {num.limit_points(limit)} points"
    parts = (
        (f"over the limit{bound}", over),
        ("error shown by", [j for j in result if j.state == "over" and j.kind == "check"]),
        ("undecided", [j for j in result if j.state == "undecided"]),
    )
    reported = "; ".join(f"{head}: {_named(some)}" for head, some in parts if some)
    return f"{clipped(sanitize(record.name), LONGEST)}: {reported}" if reported else ""


def _named(some: Sequence[Judged]) -> str:
    first = ", ".join(
        f"{clipped(j.name, LONGEST)} ({short})" if (short := j.short or j.reported) else j.name for j in some[:NAMED]
    )
    more = len(some) - NAMED
    return f"{first} and {cardinal(more)} more" if more > 0 else first


def _finding(record: AuditRecord, f: Finding) -> Judged:
    kind: Kind = "group" if f.variables else "everyone"
    name = label(f)
    least = num.lower_bound(ends(record, f)[0], limit_of(record))
    if f.verdict == "not_checked":
        return Judged(kind, name, "absent", "no limit was given")
    if f.verdict == "over":
        return Judged(kind, name, "over", f"at least {least} points off", f"at least {least}")
    span = judged_range(record, f)
    reported = f"{span} points off"
    if f.verdict == "undecided" and (need := need_of(f)) is not None:
        reported += f", {num.amount(*need)} {needed(record)} would decide"
    if f.verdict == "undecided" and suppressed(record):
        reported += ", rows are copies"
    return Judged(kind, name, f.verdict, reported, span)


def _subgroups(record: AuditRecord) -> Judged:
    state = record.verdicts["subgroups"]
    if state == "over":
        worst = subgroups_over(record)[:1]
        least = f"at least {num.lower_bound(worst[0].least, limit_of(record))}" if worst else ""
        name = f"subgroup {sanitize(worst[0].rule)}" if worst and worst[0].rule else "an unlisted subgroup"
        return Judged("subgroups", name, "over", f"{least} points off" if least else "", least)
    if state == "within":
        return Judged("subgroups", SUBGROUPS, "within", "none over the limit")
    if state in OPEN:
        return Judged("subgroups", SUBGROUPS, "open", OPEN[state])
    return Judged("subgroups", SUBGROUPS, "absent", "no limit was given" if state == "not_checked" else "not searched")


def _checks(record: AuditRecord) -> Iterator[Judged]:
    """Yield the tests that somebody named to count, and what a limit asked for and could not be judged."""
    gates, limited = record.settings.get("fail_on", ()), limit_of(record) is not None
    for check in record.checks:
        if check.code in gates:
            yield _gate(record, check)
        elif limited and check.code.startswith(ERROR) and check.status == "not-applicable":
            yield Judged("check", check.code, "undecided", sanitize(check.reason).rstrip("."))


def _gate(record: AuditRecord, check: CheckRecord) -> Judged:
    p = "" if check.outcome is None else p_reported(check.outcome)
    if record.error_shown(check):
        return Judged("check", check.code, "over", p)
    if check.status in ("undecided", "not-run", "not-applicable"):
        return Judged("check", check.code, "undecided", sanitize(check.reason).rstrip(".") or p)
    return Judged("check", check.code, "within", f"no error shown, {p}" if p else "")
