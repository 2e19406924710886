"""What people whose outcome is not known could change, in one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.findings import limit_of, noun
from calibrant.report.spans import Text, say

LEAST = 0.01  # share of people without an outcome that the first screen tells
FELL = {"met": "Within the limit", "broken": "Over the limit"}


def unknown(record: AuditRecord) -> Iterator[Text]:
    """Yield of whom the verdict is, and how far it stands for the others; nothing where hardly anyone is missing."""
    columns = record.curve("missing_labels").columns
    if not columns:
        return
    rows, missing = int(columns["rows"][0]), int(columns["unlabelled"][0])
    if missing < LEAST * (rows + missing):
        return
    of = (
        f"Outcomes are known of {num.count(rows)} of {num.count(rows + missing)} {noun(record)}: verdicts are of these."
    )
    yield say(f"{of} {_of_all(record)}")


def _of_all(record: AuditRecord) -> str:
    """Return what is certified of all of them."""
    columns, limit = record.curve("missing_labels").columns, limit_of(record)
    at_random, stands = str(columns["verdict"][1]), float(columns["stands_to"][1])
    if limit is None:
        high = max(abs(float(columns[end][3])) for end in ("low", "high"))
        return f"Of all, off by at most {num.upper_bound(high)} points whatever the others' outcomes."
    if at_random not in FELL:
        return "Of all it is undecided, even if outcomes are missing at random."
    if math.isinf(stands):
        return f"{FELL[at_random]} for all, whatever the others' outcomes."
    odds = math.floor(stands * 10.0) / 10.0
    return f"{FELL[at_random]} for all, unless the others' odds differ by more than {odds:.1f} times at one score."
