"""What a pipeline reads of an audit: whoever is judged, an assertion that nobody is over the limit, and JUnit's XML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree as Xml

from calibrant.arguments import flag
from calibrant.audit.record import ALL_CLASSES, ERROR_SHOWN, AuditRecord, CheckRecord, Finding
from calibrant.errors import BadInput
from calibrant.report import numbers as num
from calibrant.report.findings import limit_of, need_of, ordered, subgroups_over
from calibrant.report.findings import state as state_of
from calibrant.report.spans import clipped, label
from calibrant.report.wording.clusters import independent
from calibrant.report.wording.terms import cardinal, joined, judged_range, p_reported
from calibrant.sanitize import sanitize

State = Literal["within", "over", "undecided", "open", "absent"]
Kind = Literal["everyone", "group", "subgroups", "check"]
ERROR = "error-"  # the start of the codes of checks that a limit counts
SUBGROUPS = "unlisted subgroups"
PARTS = {"everyone": "everyone", "groups": "named groups", "subgroups": SUBGROUPS, "classes": "classes"}
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
    """Who and what is judged: everyone, groups, classes and subgroups by limits, then the tests that count.

    Without a limit people are there as not judged.
    """
    people = [_finding(record, f) for f in (record.everyone, *ordered(record.groups), *ordered(record.classes))]
    return [*people, _subgroups(record), *_checks(record)]


def line(record: AuditRecord, of: Iterable[Judged]) -> str:
    """Who is over the limit and who is undecided, in one line; empty where nobody is."""
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
    least = num.lower_bound(f.shown[0], f.limit)
    if f.withheld is not None:
        return Judged(kind, name, "undecided", f"withheld: {sanitize(f.withheld)}", "withheld")
    if f.verdict == "not_checked":
        return Judged(kind, name, "absent", "no limit was given")
    if f.verdict == "over":
        return Judged(kind, name, "over", f"at least {least} points off", f"at least {least}")
    span = judged_range(f)
    reported = f"{span} points off"
    if f.verdict == "undecided" and (need := need_of(f)) is not None:
        reported += f", {num.amount(*need)} {independent(record).needed} would decide"
    if f.error_shown and f.verdict in ("within", "undecided"):
        reported += ", error shown"
    return Judged(kind, name, f.verdict, reported, span)


def _subgroups(record: AuditRecord) -> Judged:
    state = state_of(record, "subgroups")
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
    gates, limited = record.settings.get("fail_on", ()), limit_of(record) is not None
    if ERROR_SHOWN in gates:
        where = [PARTS[part] for part, shown in record.error_shown.items() if shown]
        yield Judged("check", ERROR_SHOWN, "over" if where else "within", joined(where) if where else "no error shown")
    for check in record.checks:
        if check.code in gates:
            yield _gate(record, check)
        elif limited and check.code.startswith(ERROR) and check.status == "not-applicable":
            yield Judged("check", check.code, "undecided", sanitize(check.reason).rstrip("."))
        elif check.code == ALL_CLASSES and (limit := record.settings.get("limit_classes")) is not None:
            yield _all_classes(record, check, limit)


def _all_classes(record: AuditRecord, check: CheckRecord, limit: float) -> Judged:
    """The errors of all classes, added up, against their own limit."""
    name, of = "all classes added up", f"limit {num.limit_points(limit)}"
    if check.estimate is None or record.withheld is not None:
        return Judged("check", name, "undecided", sanitize(check.reason or record.withheld or "").rstrip("."))
    ends = check.estimate.interval
    span = num.span(ends.low, ends.high, limit)
    state: dict[str, State] = {"over": "over", "within": "within"}
    return Judged("check", name, state.get(check.status, "undecided"), f"errors of {span} points, {of}", span)


def _gate(record: AuditRecord, check: CheckRecord) -> Judged:
    p = "" if check.outcome is None else p_reported(check.outcome)
    if record.test_shows(check):
        return Judged("check", check.code, "over", p)
    if check.status in ("undecided", "not-run", "not-applicable"):
        return Judged("check", check.code, "undecided", sanitize(check.reason).rstrip(".") or p)
    return Judged("check", check.code, "within", f"no error shown, {p}" if p else "")


def assert_within(
    record: AuditRecord, *, groups: bool = True, subgroups: bool = True, allow_undecided: bool = False
) -> None:
    """Pass where an audit is met, and fail in one line that names who is over the limit or undecided.

    As it is called without settings it passes where the exit status of the command would be 0.

    Parameters
    ----------
    record : AuditRecord
        Of an audit with a limit, or with tests that count (`fail_on`).
    groups : bool
        Whether named groups count.
    subgroups : bool
        Whether an unlisted subgroup counts that is certified over the limit. Subgroups that are undecided never count.
    allow_undecided : bool
        Whether to pass where too few rows leave somebody undecided. It is no proof that they are within the limit.

    Raises
    ------
    AssertionError
        Somebody is over the limit, or undecided, or a test that counts found error. The message is one line.
    BadInput
        The audit had neither a limit nor a test that counts: it judged nobody.

    Notes
    -----
    **Assumes.** What the audit assumes, of its rows.
    **Guarantee.** That of the verdicts in the record: who is within the limit is certified to be.
    **Method.** Reads the verdicts; computes nothing.
    **Cost.** None.
    **Reads.** The record.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> p = np.random.default_rng(0).uniform(size=4000)
    >>> y = np.random.default_rng(1).uniform(size=4000) < p
    >>> cal.testing.assert_within(cal.audit(cal.predictions(y, p), limit=0.1, quick=True))
    >>> cal.testing.assert_within(cal.audit(cal.predictions(y, p / 2), limit=0.1, quick=True, name="halved"))
    Traceback (most recent call last):
        ...
    AssertionError: halved: over the limit of 10.0 points: everyone (at least 22.7)
    """
    __tracebackhide__ = True  # pytest then shows the line of the test, and this message
    if not isinstance(record, AuditRecord):
        raise BadInput(f"record is a {type(record).__name__}: pass what calibrant.audit or AuditRecord.load returned")
    wanted = {"group": flag("groups", groups), "subgroups": flag("subgroups", subgroups)}
    failing = {"over"} if flag("allow_undecided", allow_undecided) else {"over", "undecided"}
    result = judged(record)
    if all(j.state == "absent" for j in result):
        raise BadInput("the audit judged nobody: give it a limit, such as limit=0.02")
    left_out = {"error-groups"} if not groups else set()
    reported = line(
        record,
        (j for j in result if j.state in failing and wanted.get(j.kind, True) and j.name not in left_out),
    )
    if reported:
        raise AssertionError(reported)


FAILS = ("over", "undecided")


def junit(record: AuditRecord) -> str:
    """An audit as JUnit XML: a test case for everyone, each group, unlisted subgroups and each test that counts.

    A case fails where it is over the limit, and where it is undecided: the suite passes exactly where the exit status
    is 0. What was not judged is skipped, and so are unlisted subgroups that are neither over the limit nor within it.

    Parameters
    ----------
    record : AuditRecord

    Returns
    -------
    str
        XML, ending in a line break.

    Notes
    -----
    **Reads.** The record.
    """
    result = judged(record)
    counts = {
        "tests": len(result),
        "failures": sum(j.state in FAILS for j in result),
        "errors": 0,
        "skipped": sum(j.state in ("open", "absent") for j in result),
    }
    name = f"calibrant.{sanitize(record.name)}"
    numbers = {k: str(n) for k, n in counts.items()}
    top = Xml.Element("testsuites", {"name": "calibrant", **numbers})
    suite = Xml.SubElement(top, "testsuite", {"name": name, **numbers})
    reported = Xml.SubElement(suite, "properties")
    for key, value in _properties(record).items():
        Xml.SubElement(reported, "property", name=key, value=sanitize(value))
    for j in result:
        event = Xml.SubElement(suite, "testcase", classname=name, name=sanitize(j.name))
        if j.state in FAILS:
            why = "undecided" if j.state == "undecided" else "error shown" if j.kind == "check" else "over the limit"
            Xml.SubElement(event, "failure", type=why, message=f"{why}: {sanitize(j.reported)}" if j.reported else why)
        elif j.state != "within":
            Xml.SubElement(event, "skipped", message=sanitize(j.reported))
    Xml.indent(top)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(top, encoding="unicode")}\n'


def _properties(record: AuditRecord) -> dict[str, object]:
    return {
        "verdict": record.verdict,
        "exit_status": record.exit_status,
        "limit": "none" if limit_of(record) is None else limit_of(record),
        "alpha": record.settings["alpha"],
        "rows": record.everyone.rows,
        "calibrant": record.versions.get("calibrant", "unknown"),
    }
