"""What is said of an audit in which some outcomes by a horizon are unknown: the way that was chosen, and its price."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.findings import limit_of, lost, unestimated
from calibrant.report.spans import Text, clipped, code, label, say
from calibrant.report.wording.terms import gap_ends
from calibrant.sanitize import sanitize

LEAST_P = 1e-4  # below which a p-value is shown as below it
NAMED, LONGEST = 3, 60  # groups that are not judged, and characters of a name

TAKES = (
    "Weights of censoring take being lost as independent of outcome and score together: for everyone among all rows, "
    "for a group among its own. No data can show it. A group that is lost sooner and has more events than its score "
    "breaks it for everyone."
)
TAKES_WITHIN = (
    "Weights of censoring take being lost as independent of outcome and score together within each level of {}. No "
    "data can show it."
)
UNLIKE = "Rows of some levels of {} are lost sooner than others (log-rank test of pilot rows, p {})."
NO_LAW = "Levels of {} are too small or too many for a law of their own each: merge them in a new column."
LAW = (
    "The law of censoring{of} comes from {pilots} pilot rows, which are certified nowhere, with "
    "limits that hold at this number of rows: being followed to {horizon} has probability {least} or more, so no row "
    "counts over {most} times. None was truncated."
)
UNKNOWN = "Nothing is assumed of them: guaranteed ranges hold whatever their outcomes."
OUTSIDE = (
    "Everyone's estimate lies outside of the guaranteed range: being lost depends on outcome or score, so that neither "
    "can be relied on."
)
NO_ESTIMATE = "Nobody was followed to {}, so that there is no estimate, only the guaranteed range."
ESTIMATED = "Estimates are Aalen and Johansen's, which take being lost as independent of the outcome."
HOW = (
    "Each known outcome counts by the inverse of how probable it was to be followed to it, between limits that pilot "
    "rows give at all times together; the ends take the worst between these. True at this number of rows. Function "
)
HOW_UNKNOWN = (
    "Each row whose outcome is unknown counts as the worst that its score allows. True at this number of rows. "
    "Function "
)
ODDS = (
    "Known outcomes are no fair sample: events are known sooner. If loss were independent of the outcome, the odds of "
    "those lost would be about {odds} times those of the others at all scores together."
)


def way(record: AuditRecord) -> Iterator[str]:
    """Yield how many rows were lost, the way that was chosen, and what it takes for granted; nothing of others."""
    of = record.data.get("horizon") or {}
    if not lost(record):
        others = [assumed for _, assumed, unknown in each(record) if unknown]
        yield from (TAKES if others[0] == "weights" else UNKNOWN, ESTIMATED) if others else ()
        return
    audited = of["rows"] - of["late"] - of["lacking"]
    yield f"{num.count(of['unknown'])} of {num.count(audited)} rows were lost before {of['horizon']:g}."
    if lost(record) == "unknown":
        yield UNKNOWN
    else:
        least = float(of["followed_at_least"])
        yield TAKES_WITHIN.format(sanitize(of["within"])) if of.get("within") else TAKES
        for name, p in (of.get("lost_unlike") or {}).items():
            yield UNLIKE.format(sanitize(name), f"= {p:.2g}" if p >= LEAST_P else f"< {LEAST_P:g}")
            if name not in of.get("own_law", ()):
                yield NO_LAW.format(sanitize(name))
        yield LAW.format(
            of=f" of each level of {sanitize(of['within'])}" if of.get("within") else "",
            pilots=num.count(of["pilots"]),
            horizon=f"{of['horizon']:g}",
            least=f"{int(least * 1000) / 1000:g}",
            most=f"{int(10.0 / least) / 10 + 0.1:.1f}",
        )
        low, high = gap_ends(record.everyone)
        if not low <= record.everyone.gap.value <= high:
            yield OUTSIDE
    yield NO_ESTIMATE.format(f"{of['horizon']:g}") if unestimated(record.everyone) else ESTIMATED
    apart = [f for f in record.groups if f.withheld is not None]
    for f in apart[:NAMED]:
        yield f"Not judged is {clipped(label(f), LONGEST)}: {sanitize(f.withheld or '')}."
    if len(apart) > NAMED:
        yield f"{num.count(len(apart) - NAMED)} more groups are not judged."


def each(record: AuditRecord) -> list[tuple[float, str, int]]:
    """Of several horizons each, the way of its rows that were lost, and how many these are."""
    of = record.curve("horizons").settings
    return list(zip(*(of.get(k, ()) for k in ("horizons", "ways", "unknown")), strict=True))


def any_lost(record: AuditRecord) -> bool:
    """Whether rows were lost before the horizon, of several before any."""
    return bool(lost(record)) or any(unknown for _, _, unknown in each(record))


def by_each(record: AuditRecord) -> Iterator[str]:
    """Yield a sentence for each of several horizons: rows lost, the way, what is judged, and what the share is."""
    of = record.curve("horizons").settings
    for (horizon, how, unknown), by in zip(each(record), of.get("judged", ()), strict=True):
        about = f"the {'gap' if by == 'gap' else 'calibration error'} is {'judged' if limit_of(record) else 'shown'}"
        if not unknown:
            yield f"By {horizon:g}: no row lost, nothing assumed, events observed, {about}."
        elif how == "weights":
            yield f"By {horizon:g}: {num.count(unknown)} rows lost, weights of censoring, events estimated, {about}."
        else:
            yield f"By {horizon:g}: {num.count(unknown)} rows lost, nothing assumed, events estimated, {about}."


def recorded(record: AuditRecord) -> str:
    """Which of several horizons a page is about."""
    if limit_of(record) is not None:
        return "the one with the worst verdict"
    return "one that shows error" if any(record.error_shown.values()) else "the last, for none shows error"


def happened(record: AuditRecord, predicted: str, observed: str) -> str:
    """What is predicted and what is known of what happened, in percent, as the start of a sentence."""
    if lost(record) != "unknown":
        return f"Predicted {predicted}%, {'estimated' if lost(record) else 'observed'} {observed}%"
    low, high = gap_ends(record.everyone)
    mean = record.everyone.expected / record.everyone.rows
    ends = (max(mean + low, 0.0), min(mean + high, 1.0))
    return f"Predicted {predicted}%, {num.nearest(ends[0])}% to {num.nearest(ends[1])}% happened"


def implied(record: AuditRecord) -> str:
    """How unlike those known the others would be if loss were independent of the outcome; empty where not known."""
    odds = (record.data.get("horizon") or {}).get("implied_odds")
    return "" if odds is None or not lost(record) else ODDS.format(odds=f"{float(odds):.2g}")


def methods(record: AuditRecord) -> Text:
    """How it is computed."""
    weights = lost(record) == "weights"
    return say(HOW if weights else HOW_UNKNOWN, code(record.everyone.upper.method), ".")
