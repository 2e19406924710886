"""Every check as one row: what was asked, what was found, and what that means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calibrant.audit.record import AuditRecord, Check
from calibrant.report import numbers as num
from calibrant.report import repairs, searched
from calibrant.report.evidence import summary
from calibrant.report.measures import WORDS
from calibrant.report.order import limit_of, shift_side, side, with_verdict
from calibrant.report.ranking import draws, ranked
from calibrant.report.spans import Text, code, say, sentence, visible
from calibrant.report.wording import FINDINGS, VERDICTS, certified_range

Described = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One row of the table of checks.

    Parameters
    ----------
    question : Text
    status : str
        Picks the icon: met, undecided, broken, found, unfound, measured or absent.
    found : str
        The finding in words.
    numbers, meaning : str
    """

    question: Text
    status: str
    found: str
    numbers: str
    meaning: str


def check_line(check: Check, record: AuditRecord) -> CheckLine:
    """Return what a check asked and found; a code not known here is shown as it is."""
    describe = KNOWN.get(check.code)
    if describe is None:
        question, numbers, meaning = say("Check ", code(check.code)), _interval(check), ""
    else:
        asked, numbers, meaning = describe(check, record)
        question = say(asked)
    if check.status in ("not-applicable", "not-run"):
        numbers = sentence(check.reason or "no reason given")
    return CheckLine(question, *finding_word(check, record), numbers, meaning)


def finding_word(check: Check, record: AuditRecord) -> tuple[str, str]:
    """Return the status that picks an icon, and its words; a measurement is never met or broken."""
    if check.status in ("met", "undecided", "broken"):
        return check.status, VERDICTS[check.status]
    if check.status in ("not-applicable", "not-run"):
        return "absent", FINDINGS[check.status]
    status = "measured"
    if check.code == "shift":
        status = "found" if shift_side(record) in ("low", "high") else "unfound"
    elif check.code == "reliability":
        status = "found" if along_found(record) else "unfound"
    elif check.code == "variables":
        status = "found" if any(r.found for r in ranked(record)) else "unfound"
    elif check.outcome is not None:
        status = "found" if record.found(check) else "unfound"
    return status, FINDINGS[status]


def bins_off(record: AuditRecord) -> int:
    """Return in how many ranges of the score the simultaneous range of the gap excludes zero."""
    columns = record.curve("bins").columns
    ends = zip(columns.get("low", ()), columns.get("high", ()), strict=True)
    return sum(side(low, high) != "unclear" for low, high in ends)


def along_found(record: AuditRecord) -> bool:
    """Tell whether error along the score was found: by the test of the whole curve, or without a curve by a bin."""
    p = record.curve("reliability").settings.get("p_value")
    return bins_off(record) > 0 if p is None else float(p) <= float(record.settings["alpha"])


def together(record: AuditRecord) -> str:
    """Return how often all ranges hold, such as "95 of 100 times"."""
    times, of = num.confidence(1 - float(record.settings["alpha"]))
    return f"{times} of {of} times"


def _at_most(record: AuditRecord) -> str:
    limit = limit_of(record)
    return "average error" if limit is None else f"average error at most {num.limit_points(limit)} points"


def _everyone(_: Check, record: AuditRecord) -> Described:
    one = record.everyone
    shown = f"{certified_range(one, limit_of(record))} points"
    return f"Everyone: {_at_most(record)}", shown, f"certified; assumes {visible(one.upper.assumes)}"


def _groups(_: Check, record: AuditRecord) -> Described:
    found = [f"{len(with_verdict(record, v))} {v}" for v in ("met", "broken", "undecided")]
    total = num.count(len(record.groups))
    if limit_of(record) is None:
        found = [f"{total} certified ranges"]
    meaning = f"all {total} ranges hold together, {together(record)}"
    return (
        f"Every group: {_at_most(record)}",
        ", ".join(found),
        meaning if record.groups else "for whom is it off?",
    )


def _shift(_: Check, record: AuditRecord) -> Described:
    one, shift = record.everyone, record.estimates.get("shift")
    if shift is None:
        return "Overall shift", "", "is the model too low or too high on balance?"
    low, high = num.signed_range(shift.interval.low, shift.interval.high)
    predicted, observed = num.rates(one.expected / one.rows, one.cases / one.rows)
    meaning = f"the model says {predicted} in 100; {observed} happened"
    return "Overall shift", f"{num.gap(shift.value)} points ({low} to {high})", meaning


def _distance(_: Check, record: AuditRecord) -> Described:
    e = record.estimates.get("distance")
    numbers = "" if e is None else f"at most {num.upper_bound(e.interval.high)} points"
    return "Distance from calibration", numbers, "how far the scores would have to move"


def _jittered(_: Check, record: AuditRecord) -> Described:
    e = record.estimates.get("jittered")
    numbers = "" if e is None else f"at most {num.upper_bound(e.interval.high)} points"
    return (
        "Average error with noise added",
        numbers,
        "the noise adds error of its own; no evidence against the model",
    )


def _reliability(_: Check, record: AuditRecord) -> Described:
    total = len(record.curve("bins").columns.get("predicted", ()))
    numbers = f"off in {bins_off(record)} of {total} ranges of the score"
    p = record.curve("reliability").settings.get("p_value")
    if p is None:
        return "Error along the score", numbers, f"all {total} ranges hold together, {together(record)}"
    tested = num.p_value(float(p), draws=int(record.curve("reliability").settings["draws"]))
    return "Error along the score", f"{tested}; {numbers}", "test of the whole curve against simulated outcomes"


def _variables(_: Check, record: AuditRecord) -> Described:
    """Return how many variables the error is shown to follow; the smallest p-value decides whether any."""
    question, meaning = "Error by variable", "does error follow a variable, beyond the overall shift?"
    found = ranked(record)
    if not found:
        return question, "", meaning
    least = num.p_value(min(r.adjusted for r in found), draws=draws(record))
    following = sum(r.found for r in found)
    return question, f"{following} of {num.count(len(found))} variables; smallest adjusted {least}", meaning


def _local(check: Check, record: AuditRecord) -> Described:
    return "Local calibration test", summary(check, record), "is error left among people with the same score?"


def _strong(check: Check, record: AuditRecord) -> Described:
    numbers = "" if check.outcome is None else searched.summary(record)
    return "Strong calibration test", numbers, f"does some mix of traits predict {searched.sought(record)}?"


def _repair(_: Check, record: AuditRecord) -> Described:
    return "Comparing repairs", repairs.summary(record), "what would lower the error, judged on people held out?"


def _asked(question: str, meaning: str) -> Callable[[Check, AuditRecord], Described]:
    return lambda check, _: (question, _interval(check), meaning)


def _interval(check: Check) -> str:
    e = check.estimate
    if e is None:
        return ""
    if e.unit == "probability":
        low, high = num.lower_bound(e.interval.low), num.upper_bound(e.interval.high)
        return f"{low} to {high} points"
    return f"{float(e.value):.4g} ({float(e.interval.low):.4g} to {float(e.interval.high):.4g})"


KNOWN: dict[str, Callable[[Check, AuditRecord], Described]] = {
    "error-everyone": _everyone,
    "error-groups": _groups,
    "shift": _shift,
    "distance": _distance,
    "jittered": _jittered,
    "reliability": _reliability,
    "variables": _variables,
    "local-calibration": _local,
    "strong-calibration": _strong,
    **{k.replace("_", "-"): _asked(name, "") for k, (name, *_) in WORDS.items()},
    "repair": _repair,
}
