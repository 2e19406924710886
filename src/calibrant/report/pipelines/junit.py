"""An audit as test results in JUnit's XML, which every CI service shows."""

from __future__ import annotations

from xml.etree import ElementTree as Xml  # written and never read here

from calibrant.audit.record import AuditRecord
from calibrant.report.findings import limit_of
from calibrant.report.wording.judged import Judged, judged
from calibrant.sanitize import sanitize

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
            why = _why(j)
            Xml.SubElement(event, "failure", type=why, message=f"{why}: {sanitize(j.reported)}" if j.reported else why)
        elif j.state != "within":
            Xml.SubElement(event, "skipped", message=sanitize(j.reported))
    Xml.indent(top)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(top, encoding="unicode")}\n'


def _why(j: Judged) -> str:
    if j.state == "undecided":
        return "undecided"
    return "error shown" if j.kind == "check" else "over the limit"


def _properties(record: AuditRecord) -> dict[str, object]:
    return {
        "verdict": record.verdict,
        "exit_status": record.exit_status,
        "limit": "none" if limit_of(record) is None else limit_of(record),
        "alpha": record.settings["alpha"],
        "rows": record.everyone.rows,
        "calibrant": record.versions.get("calibrant", "unknown"),
    }
