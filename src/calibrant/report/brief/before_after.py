"""Is it fixed? The same rows before and after the repair that is recommended, as the record holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.brief import sparks
from calibrant.report.document import Change, Changes
from calibrant.report.findings import FIXED, decided, limit_of, noun, size
from calibrant.report.places import ruler_top_of
from calibrant.report.spans import clipped, shown
from calibrant.report.wording.decisions import lost_by_repair
from calibrant.report.wording.terms import VERDICTS, cardinal, repair_named

MOST = 6  # populations on the brief; the others are in the section about repairs
LONG = 40  # characters of a name
KINDS = {"everyone": 0, "subgroup": 1, "group": 1}
TESTS = {"scan": "subgroup"}  # what a test is called, where that is not its name


@dataclass(frozen=True, slots=True)
class Side:
    """A certified range and its verdict; None where nothing was judged."""

    low: float
    high: float
    verdict: str | None


@dataclass(frozen=True, slots=True)
class Population:
    """One population on held-out rows, as it is now and after the repair."""

    who: str
    of: str
    kind: str
    rows: int
    now: Side
    after: Side | None


def populations(record: AuditRecord) -> list[Population]:
    """Return everyone, then the groups and subgroups, the farthest off now first."""
    c = record.curve(FIXED).columns
    lines = [dict(zip(c, row, strict=True)) for row in zip(*c.values(), strict=True)]
    results = [_population(line, limit_of(record)) for line in lines]
    return sorted(results, key=lambda p: (KINDS.get(p.kind, 1), -p.now.low, -p.now.high, p.who))


def _population(line: Mapping[str, Any], limit: float | None) -> Population:
    after = None if line["after_low"] is None else _side(line, "after", limit)
    kind = str(line["kind"])
    who = "Everyone" if kind == "everyone" else shown(line["who"])
    of = "subgroup" if kind == "subgroup" else ""
    return Population(who, of, kind, int(line["rows"]), _side(line, "now", limit), after)


def _side(line: Mapping[str, Any], when: str, limit: float | None) -> Side:
    verdict = line[when]
    low, high = float(line[f"{when}_low"]), float(line[f"{when}_high"])
    if line["measure"] == "gap":
        low, high = size(low, high)
    return Side(*decided(low, high, verdict, limit), verdict)


def candidate(record: AuditRecord) -> str:
    """The repair that is recommended, as it is called everywhere; empty where none is shown to help."""
    name = str(record.curve(FIXED).settings.get("candidate") or "")
    return repair_named(name) if name else ""


def lost(record: AuditRecord) -> str:
    """Return at which thresholds, and for whom, the repair is shown to lose net benefit; empty where it is not."""
    changes = record.curve("repair_decisions")
    return lost_by_repair(changes, record.curve("repairs").settings["recommended"]) if changes.columns else ""


def judged(record: AuditRecord) -> bool:
    """Whether repairs were judged by the limit on held-out rows."""
    return bool(record.curve(FIXED).columns.get("id"))


def helped(record: AuditRecord) -> bool:
    """Whether a repair is shown to help, so that there is an after."""
    return judged(record) and bool(candidate(record))


def changes(record: AuditRecord) -> Changes:
    """The table of the same rows, before in grey and after in colour."""
    limit, result = limit_of(record), populations(record)
    few = result[:MOST]
    top = ruler_top_of([(s.low, s.high) for p in few for s in (p.now, p.after) if s is not None], limit)
    rows = tuple(_change(p, record, limit, top) for p in few)
    measures = record.curve(FIXED).columns.get("measure", ("error",))
    what = "gap" if measures[0] == "gap" else f"calibration error{' (subgroups: gap)' if 'gap' in measures else ''}"
    lines = "; limit dashed" if limit is not None else ""
    caption = f"The same {noun(record)} before and after: {what} in points"
    drawn = f"Held-out {noun(record)}, so wider than above: before grey, after coloured; {what}, points{lines}"
    more = len(result) - len(few)
    return Changes(
        caption, drawn, rows, limit is not None, f"and {num.count(more)} more under repairs" if more > 0 else ""
    )


def _change(p: Population, record: AuditRecord, limit: float | None, top: float) -> Change:
    after = p.after or p.now
    status = after.verdict or "not_checked"
    rows = f"{num.count(p.rows)} {noun(record)}" if not p.of else f"{clipped(p.of, LONG)} · {num.count(p.rows)}"
    now, then = _range(p.now, limit), _range(after, limit)
    label = f"now {now}, after {then} points"
    bar = sparks.before_after((p.now.low, p.now.high), (after.low, after.high), top, limit, status, label)
    return Change(clipped(p.who, LONG), rows, now, then, status, VERDICTS[status] if limit is not None else "", bar)


def _range(side: Side, limit: float | None) -> str:
    return num.ends(side.low, side.high, limit)


def outcome(record: AuditRecord) -> str:
    """Return in a sentence what the repair does on rows it was not fitted on."""
    limit, result = limit_of(record), [p for p in populations(record) if p.after is not None]
    n = num.count(int(record.curve(FIXED).settings.get("rows_judged") or 0))
    start = f"On {n} {noun(record)} held out, "
    if limit is None:
        return start + _in_points(result)
    over, few = ([p for p in result if p.after is not None and p.after.verdict == v] for v in ("over", "undecided"))
    was = [p for p in result if p.now.verdict == "over"]
    if over:
        who = clipped(over[0].who, LONG) if over[0].kind != "everyone" else "everyone"
        more = f" and {cardinal(len(over) - 1)} more" if len(over) > 1 else ""
        first = f"{who}{more} {'stay' if more else 'stays'} over the limit"
    elif left(record) or (was and not any(p.after is not None and p.after.verdict == "within" for p in was)):
        first = "it is not shown to be enough"
    else:
        first = "nothing is over the limit any more" if was else "nothing is over the limit"
    if few:
        first += f"; {cardinal(len(few))} {'stays' if len(few) == 1 else 'stay'} undecided"
    return f"{start}{first}."


def _in_points(results: list[Population]) -> str:
    one = next((p for p in results if p.kind == "everyone"), None)
    if one is None or one.after is None:
        return "it is shown to help."
    now, after = num.upper_bound(one.now.high), num.upper_bound(one.after.high)
    return f"everyone is off by at most {after} points instead of {now}." if now != after else "it is shown to help."


def left(record: AuditRecord) -> str:
    """Return which tests still find error after the repair, and which do not any more."""
    tests = record.curve(FIXED).settings.get("tests") or {}
    alpha = float(record.settings["alpha"])
    ps = {k: t.get("after") for k, t in tests.items()}
    results = [k for k, p in ps.items() if p is not None and p <= alpha]
    if not results:
        return ""
    least = num.p_value(min(float(ps[k]) for k in results)).partition(",")[0].replace(" ", "\N{NO-BREAK SPACE}")
    which = f"The {TESTS.get(results[0], results[0])} test" if len(results) == 1 else "Tests"
    return f"{which} still find{'s' if len(results) == 1 else ''} error ({least})."
