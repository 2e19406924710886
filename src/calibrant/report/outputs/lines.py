"""A record in ten lines: what Python shows of it at a prompt."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.findings import by_gap, limit_of, only_together, ordered, subgroups_over, together
from calibrant.report.spans import label
from calibrant.report.terminal import WIDTH, cells, clip, pad
from calibrant.report.wording import VERDICTS, headline, judged_range, verdict_word
from calibrant.report.wording.missing_labels import known_only
from calibrant.sanitize import sanitize

LEAD = 17  # cells of the words at the left
SAVE = 'record.save("audit.html") writes the report; also .json, .md and .pdf.'
MORE = "In a notebook the record shows its first screen; record.groups, .checks, .estimates and .curves hold the rest."


def lines(record: AuditRecord) -> str:
    """The verdict in three parts, with ranges of everyone, the worst group and subgroup; and how to save it."""
    return "\n".join(line for text in _texts(record) if (line := clip(text, WIDTH + 32)))


def _texts(record: AuditRecord) -> Iterator[str]:
    limit, total = limit_of(record), len(record.groups)
    bound = "no limit" if limit is None else f"limit {num.limit_points(limit)} points"
    yield f"Audit of {sanitize(record.name)}: {num.count(record.everyone.rows)} rows, {bound}"
    word = "" if limit is None else f"{VERDICTS[record.verdict].upper()}. "
    yield f"{word}{headline(record)}"
    known = known_only(record)
    off = "a gap of" if by_gap(record) else "off by"
    everyone = VERDICTS[record.everyone.verdict] if limit is not None else "Not judged"
    yield _part(f"Everyone{known}", everyone, f"{off} {judged_range(record, record.everyone)} points")
    of = f"{num.count(total)} named groups" if total > 1 else "1 named group" if total else "Named groups"
    of = of.replace("named groups", "groups shown") if only_together(record) else of
    yield _part(f"{of}{known}", verdict_word(record, "groups")[1], "")
    for worst in ordered(record.groups)[:1]:
        yield _part("", "", f"worst, {label(worst)}: {off} {judged_range(record, worst)} points")
    yield _part(f"Unlisted subgroups{known}", verdict_word(record, "subgroups")[1], "")
    for subgroup in subgroups_over(record)[:1]:
        least = num.lower_bound(subgroup.least, limit)
        yield _part("", "", f"worst, {sanitize(subgroup.rule) or 'not shown'}: a gap of at least {least} points")
    if result := together(record):
        yield (
            f"Rows of one {sanitize(result[0])} are correlated: ranges are too narrow. Pass "
            f"cluster={sanitize(result[0])!r}."
        )
    yield SAVE
    yield MORE


def _part(who: str, word: str, text: str) -> str:
    reported = " · ".join(t for t in (word, text) if t)
    return f"  {pad(who, max(LEAD, cells(who)))} {reported}"
