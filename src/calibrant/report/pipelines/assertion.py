"""The assertion of a test suite: nobody is over the limit or undecided."""

from __future__ import annotations

from calibrant.arguments import flag
from calibrant.audit.record import AuditRecord
from calibrant.errors import BadInput
from calibrant.report.wording.judged import judged, line


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
