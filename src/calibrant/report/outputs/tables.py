"""The tables of a record as CSV, for a spreadsheet or another program."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report.by_variable import anchor_of
from calibrant.report.findings import ordered
from calibrant.results import plain

GROUPS = (
    "id",
    "group",
    "rows",
    "events",
    "expected",
    "error_low",
    "error_high",
    "gap",
    "gap_low",
    "gap_high",
    "verdict",
    "rows_needed",
    "clusters_needed",
    "rows_at_least",
    "pooled",
)
CHECKS = "code", "status", "reason", "p_value", "statistic"
ESTIMATES = "name", "method", "value", "low", "high", "level", "guarantee", "unit", "rows"
FORMULA = "=+-@\t\r"  # first letters by which a spreadsheet takes text for a formula


def tables(record: AuditRecord) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each table: groups, checks, estimates, and every curve that has rows."""
    yield "groups.csv", written(GROUPS, (_group(f) for f in (record.everyone, *ordered(record.groups))))
    checks = (
        (c.code, c.status, c.reason, *((None, None) if c.outcome is None else (c.outcome.p_value, c.outcome.statistic)))
        for c in record.checks
    )
    yield "checks.csv", written(CHECKS, checks)
    results = (
        (k, e.method, e.value, e.low, e.high, e.interval.level, e.interval.guarantee, e.unit, e.n)
        for k, e in sorted(record.estimates.items())
    )
    yield "estimates.csv", written(ESTIMATES, results)
    for name, curve in sorted(record.curves.items()):
        if any(curve.columns.values()):
            kind, _, about = name.partition("/")
            title = anchor_of(kind, about) if about else kind
            yield f"{title}.csv", written(tuple(curve.columns), zip(*curve.columns.values(), strict=True))


def _group(f: Finding) -> tuple[object, ...]:
    name = ", ".join(f"{variable} = {value}" for variable, value in f.variables) or "everyone"
    ends = f.lower.low, f.upper.high, f.gap.value, f.gap.low, f.gap.high
    return (
        f.id,
        name,
        f.rows,
        f.events,
        f.expected,
        *ends,
        f.verdict,
        f.rows_needed,
        f.clusters_needed,
        f.rows_at_least,
        f.pooled,
    )


def written(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_cell(h) for h in heads])
    writer.writerows([_cell(v) for v in row] for row in rows)
    return out.getvalue()


def _cell(value: object) -> object:
    """A value as a cell; text that a spreadsheet would take for a formula has an apostrophe before it."""
    made = plain(value, str)
    if isinstance(made, str) and made[:1] in FORMULA and made and isinstance(value, str):
        return f"'{made}"
    return "" if made is None else made
