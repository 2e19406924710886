"""What is counted where rows belong together or count more: units, their effective number, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import ALIKE, AuditRecord
from calibrant.report import numbers as num
from calibrant.report.document import Entry
from calibrant.report.findings import noun, units_of
from calibrant.report.spans import Text, code, say

NONE_ALIKE = "the rows of one unit are hardly more alike than others"


def by_units(record: AuditRecord) -> bool:
    """Tell whether rows belong together in units."""
    return bool(record.data.get("cluster"))


def chance(record: AuditRecord, draws: int) -> str:
    """Return what a statistic is compared with: sets of simulated outcomes, or of random signs of whole units."""
    of = "random signs of whole units" if by_units(record) else "simulated outcomes"
    return f"{num.count(draws)} sets of {of}"


def wider(effect: float) -> str:
    """Return how many times as wide ranges are by units as by rows, about, by the design effect."""
    return f"{effect**0.5:.1f}"


def alike(column: str, effect: float) -> Text:
    """Return that rows of one column are alike, though nobody named the unit, and what that does to ranges."""
    alike = f" are more alike than their scores explain: design effect {effect:.1f}."
    return say("Rows of one ", code(column), f"{alike} Ranges and tests here take rows as independent.")


def counted(record: AuditRecord) -> Text:
    """Return what is counted: rows, of how many units, weighted by which column; nothing of independent rows."""
    found, data = units_of(record), record.data
    if not found:
        return ()
    rows = f"{num.count(record.everyone.rows)} {noun(record)}"
    of = say(f" of {_units(record)} (", code(data["cluster"]), *_nested(record), ")") if data.get("cluster") else ()
    by = say(", weighted by ", code(data["weights"])) if data.get("weights") else ()
    return say(rows, *of, *by)


def _nested(record: AuditRecord) -> Text:
    """Return which finer units lie whole in these; nothing where one column names the units."""
    held = [(f"all {num.count(n)} of ", code(name)) for name, n in (record.data.get("nested") or {}).items()]
    parts = [piece for i, pair in enumerate(held) for piece in (*((" and ",) if i else ()), *pair)]
    return say(", in which ", *parts, " lie") if parts else ()


def in_units(record: AuditRecord) -> Iterator[Text]:
    """Yield what ranges by units or weights are about, and what they rest on: at most two lines."""
    if not units_of(record):
        return
    yield say(*counted(record), ": ", *_holds(record))
    if more := tuple(_more(record)):
        yield say(" ".join(more))


def _units(record: AuditRecord) -> str:
    found = units_of(record)
    return f"{'' if found['exact'] else 'about '}{num.count(found['count'])} units"


def _holds(record: AuditRecord) -> Text:
    """Return what the ranges hold for, and the effective number."""
    found, data = units_of(record), record.data
    alike = num.count(found["effective"])
    if not data.get("cluster"):
        told = f"as precise as {alike} that count alike"
        return say(f"ranges are of the weighted rows, {told}; counts of rows and cases are not weighted.")
    also = " Counts of rows and cases are not weighted." if data.get("weights") else ""
    return say(f"ranges hold however alike the rows of one unit are; as precise as {alike} units of equal size.{also}")


def _more(record: AuditRecord) -> Iterator[str]:
    """Yield which units are certified, how much wider that makes ranges, and which were weighted down."""
    found, units = units_of(record), "units" if record.data.get("cluster") else "rows"
    if not found["exact"]:
        held = f"{num.count(found['held'])} of about {num.count(found['count'])} {units}"
        yield f"Certified on the rows of {held}, chosen without looking at outcomes."
    effect, wider = float(found["design_effect"]), found["wider"]
    if record.data.get("cluster"):
        alike = f"the rows of one unit are alike (design effect {effect:.1f})" if effect > ALIKE else NONE_ALIKE
        independent = "as of independent rows"
        wide = "" if wider is None else f": the range of the overall gap is {wider:.1f} times as wide {independent}"
        yield f"{alike[:1].upper()}{alike[1:]}{wide}."
    elif wider is not None:
        yield f"The range of the overall gap is {wider:.1f} times as wide as with all rows alike."
    if found["lightened"]:
        n, pilots = int(found["lightened"]), num.count(found["pilots"])
        which = f"{units[:-1]} was larger" if n == 1 else f"{units} were larger"
        yield f"{num.count(n)} {which} than the largest of {pilots} pilot {units} and weighted down to it."


def methods(record: AuditRecord) -> tuple[Entry, ...]:
    """Return how units are certified, in plain words; nothing of independent rows."""
    found, data = units_of(record), record.data
    if not found:
        return ()
    units, pilots = "units" if data.get("cluster") else "rows", num.count(found["pilots"])
    bets = (
        "A unit, not a row, is one bet: its rows' errors are added up, weighted, before anything is learnt from them "
        "(Theorem CL from below, CU from above). "
    )
    chosen = (
        f"{pilots} pilot {units}, chosen by name, say how large one is at most, and leave the certificate; larger ones "
        "count as that. Assumed: units are independent, and weights do not depend on outcomes. "
        f"Effective number: the squared sum of sizes over the sum of squares, {num.count(found['effective'])}. "
        "The design effect is the variance of the mean error by units over that by rows. Halves and folds keep units "
        "whole."
    )
    return (Entry("Units and weights", say(bets + chosen)),)
