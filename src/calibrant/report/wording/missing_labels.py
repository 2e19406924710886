"""Of whom a verdict is where outcomes are not known, and what the others could change."""

from __future__ import annotations

import math
from collections.abc import Iterator

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.findings import limit_of, noun
from calibrant.report.spans import Text, say

LEAST = 0.01  # share of people without an outcome that the first screen tells
OF_KNOWN = "Of those whose outcome is known: "
SHORTER = ("Where the outcome is known: ", "Known outcomes: ")  # where a sentence must be short
EVERYONE, EVERYONE_KNOWN = "everyone together", "everyone whose outcome is known"
UNDECIDED = "Too few "  # how a sentence starts that claims nothing
FELL = {"met": "Within the limit", "broken": "Over the limit"}


def partly(record: AuditRecord) -> bool:
    """Tell whether outcomes are known of some only, so that every verdict is of those."""
    columns = record.curve("missing_labels").columns
    if not columns:
        return False
    rows, missing = int(columns["rows"][0]), int(columns["unlabelled"][0])
    return missing >= LEAST * (rows + missing)


def of_known(record: AuditRecord, text: str) -> str:
    """Return a sentence, which says that it is of those whose outcome is known where that is not everyone."""
    return _after(OF_KNOWN, text) if partly(record) else text


def known_only(record: AuditRecord) -> str:
    """Return the end of the name of a part of the verdict: of whom it is."""
    return ", outcomes known" if partly(record) else ""


def qualified(record: AuditRecord, form: str) -> Iterator[str]:
    """Yield ways to say of whom a headline is, the clearest first; one that decides nothing stays as it is."""
    if not partly(record) or form.startswith(UNDECIDED):
        yield form
        return
    yield _after(OF_KNOWN, form.replace(" together", ""))
    if EVERYONE in form:
        yield form.replace(EVERYONE, EVERYONE_KNOWN)
    for lead in SHORTER:
        yield _after(lead, form.replace(" together", ""))


def _after(lead: str, sentence: str) -> str:
    return f"{lead}{sentence[:1].lower()}{sentence[1:]}"


def unknown(record: AuditRecord) -> Iterator[Text]:
    """Yield of whom the verdict is, and how far it stands for the others; nothing where hardly anyone is missing."""
    if not partly(record):
        return
    columns = record.curve("missing_labels").columns
    rows, missing = int(columns["rows"][0]), int(columns["unlabelled"][0])
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
