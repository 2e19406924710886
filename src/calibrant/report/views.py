"""What each section of the page prints: one function a section, from a record to plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import layout, provenance, standing
from calibrant.report import measures as standard
from calibrant.report import numbers as num
from calibrant.report.checks import check_line, together
from calibrant.report.figure import figure
from calibrant.report.guidance import caveats, next_steps
from calibrant.report.order import MOST_ROWS, carries_curve, check_of, few, limit_of, with_verdict
from calibrant.report.spans import Text, clipped, label, say, sentence, strong, visible
from calibrant.report.wording import (
    groups_answer,
    headline,
    lead,
    no_groups,
    overall_answer,
    people,
    tally,
)
from calibrant.results import Estimate

View = Mapping[str, Any]


def summary(record: AuditRecord) -> View:
    """Return the verdict, the ruler, the tally, three caveats and at most three next steps."""
    return {
        "headline": headline(record),
        "lead": lead(record),
        "ruler": layout.summary_ruler(record),
        "ruler_label": ruler_label(record),
        "dots": layout.tally_dots(record) if limit_of(record) is not None else None,
        "tally": tally(record),
        "no_groups": no_groups(record),
        "caveats": caveats(record),
        "steps": next_steps(record),
    }


def ruler_label(record: AuditRecord) -> str:
    """Return what the ruler of the first screen shows."""
    n = min(layout.WORST, len(record.groups))
    more = f" and of the {n} groups with the largest certified error" if n > 1 else " and of the group" if n else ""
    return f"Certified average error of everyone{more}"


@dataclass(frozen=True, slots=True)
class Certified:
    """One row of the table of what is certified."""

    quantity: str
    points: str
    about: str
    assumes: str


def overall(record: AuditRecord) -> View:
    """Return the reliability figure, what is certified, and the standard measures."""
    return {
        "answer": overall_answer(record),
        "figure": figure(record) if carries_curve(record) else None,
        "no_figure": no_figure(record),
        "certified": certified(record),
        "holds": holds(record),
        "assumptions": len({c.assumes for c in certified(record)}) > 1,
        "measures": standard.measures(record),
        "measures_note": standard.note(record),
    }


def holds(record: AuditRecord) -> str:
    """Return the caption of what is certified; an assumption that all lines share is told here."""
    assumptions = {c.assumes for c in certified(record)}
    shared = f" All assume {assumptions.pop()}." if len(assumptions) == 1 else ""
    return f"What is certified, and about which score. Each line holds by itself, {together(record)}.{shared}"


def no_figure(record: AuditRecord) -> Text:
    """Return why there is no curve, with the counts."""
    one = record.everyone
    check = check_of(record, "reliability")
    counts = strong(f"No curve: {num.count(one.rows)} people, {num.count(one.cases)} cases.")
    why = "A curve needs at least 50 expected cases and 50 expected non-cases."
    if not few(record) and check is not None and check.status in ("not-applicable", "not-run"):
        why = sentence(check.reason or "it was not drawn")
    return say(counts, f" {why} The certified range above is still valid.")


def certified(record: AuditRecord) -> tuple[Certified, ...]:
    """Return the rows of the table of what is certified."""
    one, limit = record.everyone, limit_of(record)
    low, high = num.bounds(one, limit)
    steps = f"the score in steps of {num.step(record.settings['levels'])}"
    rows = [
        Certified("Average error, at least", low, "the raw score", assumption(one.lower)),
        Certified("Average error, at most", high, steps, assumption(one.upper)),
    ]
    about = {
        "distance": ("Distance from calibration, at most", "the raw score, nothing changed"),
        "jittered": ("Average error with noise added, at most", "the raw score plus a little noise"),
        "shift": ("Overall shift", "the raw score"),
    }
    for key, (quantity, subject) in about.items():
        e = record.estimates.get(key)
        if e is not None:
            low, high = num.signed_range(e.interval.low, e.interval.high)
            shown = f"{low} to {high}" if key == "shift" else num.upper_bound(e.interval.high)
            rows.append(Certified(quantity, shown, subject, assumption(e)))
    return tuple(rows)


def assumption(estimate: Estimate) -> str:
    """Return what an estimate assumes, and whether it is exact at this number of rows."""
    rough = "; many rows" if estimate.interval.guarantee == "asymptotic" else ""
    return visible(estimate.assumes) + rough


def groups(record: AuditRecord) -> View:
    """Return the picture of the worst group and the tables of groups."""
    if not record.groups:
        return {"answer": groups_answer(record), "short": None, "none": no_groups(record)}
    short, whole = layout.forest(record)
    broken = with_verdict(record, "broken")
    total = num.count(len(record.groups))
    return {
        "answer": groups_answer(record),
        "short": short,
        "whole": whole,
        "icons": layout.icons(record),
        "worst": clipped(label(broken[0])) if broken else "",
        "frequencies": people(record, broken[0]) if broken else (),
        "outcome": visible(record.settings["outcome"]) if record.settings.get("outcome") is not None else "",
        "caption": caption(record, whole is not None),
        "total": total,
        "all": f"the first {num.count(MOST_ROWS)} of {total}" if cut_short(record) else f"all {total}",
        "cut_short": cut_short(record),
        "notes": provenance.group_notes(record),
        "mask": num.count(int(record.settings.get("mask", 20))),
    }


def cut_short(record: AuditRecord) -> str:
    """Return that the long table of groups is cut, and where the rest is; empty where it is whole."""
    total = len(record.groups)
    if total <= MOST_ROWS:
        return ""
    return (
        f"The first {num.count(MOST_ROWS)} of {num.count(total)} groups, the worst first. "
        "The others are in the JSON of this audit, which the last section describes."
    )


def caption(record: AuditRecord, shortened: bool) -> str:
    """Return the caption of the first table of groups."""
    total = len(record.groups)
    if total == 1:
        return "The one group that was given."
    first = "The nine groups with the largest certified error. All" if shortened else "All groups; their"
    return f"{first} {num.count(total)} ranges hold together, {together(record)}."


def checks(record: AuditRecord) -> View:
    """Return every check as a row."""
    return {"lines": tuple(check_line(c, record) for c in record.checks)}


def limits(record: AuditRecord) -> View:
    """Return what the report does not show."""
    return {"items": standing.limits(record)}


def methods(record: AuditRecord) -> View:
    """Return how the numbers were computed."""
    return {"entries": standing.methods(record)}


def glossary(record: AuditRecord) -> View:
    """Return the words used."""
    return {"entries": standing.glossary(record)}
