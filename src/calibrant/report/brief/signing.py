"""The block that somebody signs: what was audited, by which limit, how often it is wrong, and what was not checked."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import AuditRecord
from calibrant.report import document as doc
from calibrant.report.brief.rests import not_checked
from calibrant.report.findings import limit_of, stated_of
from calibrant.report.spans import Text, code, literal, say
from calibrant.report.wording.terms import at_thresholds, bound_of, joint_shares
from calibrant.sanitize import sanitize

DIGITS = 16  # of the fingerprint; whole where the data are described
BLANK = ("Signed by", "Date")


def signing(record: AuditRecord) -> doc.Signing:
    """Return who signs and when, to be filled in, and what they sign."""
    return doc.Signing(tuple(_entries(record)), BLANK)


def _entries(record: AuditRecord) -> Iterator[doc.Entry]:
    by = stated_of(record, "set_by")
    yield doc.Entry("Limit", _limit(record, by))
    over, within, error = joint_shares(record)
    verdicts = "" if limit_of(record) is None else f"over {over}, within {within}, "
    acting = at_thresholds(record)
    more = f" Certified at thresholds, each by itself: {acting}." if acting else ""
    joint = f"at most: {verdicts}error shown {error}." if record.shares else "none: nothing is decided."
    yield doc.Entry("Joint error", say(f"{joint}{more}"))
    version = sanitize(record.versions.get("calibrant", ""))
    made = say(
        "data ", code(str(record.data.get("fingerprint", ""))[:DIGITS]), f", calibrant {version}" if version else ""
    )
    yield doc.Entry("Fingerprint", made, doc.EVERYWHERE)
    if undone := not_checked(record):
        yield doc.Entry("Not checked", undone, doc.EVERYWHERE)


def _limit(record: AuditRecord, by: str) -> Text:
    if limit_of(record) is None:
        return say("none set: nothing is judged.")
    return (
        say(bound_of(record), ", set by ", literal(by), ".")
        if by
        else say(f"{bound_of(record)}; who set it is not stated.")
    )
