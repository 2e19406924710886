"""A short summary for a pull request: the verdict, what to do, and what changed against an earlier audit."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant import AuditRecord
from calibrant.sanitize import sanitize
from calibrant.toolkit.report import (
    EVERYONE,
    VERDICTS,
    Cell,
    Column,
    Difference,
    Document,
    Finding,
    Heading,
    Node,
    Opening,
    Paragraph,
    Parts,
    Row,
    Section,
    Span,
    Table,
    Text,
    audits_compared,
    clipped,
    decision,
    facts,
    headline,
    judged_range,
    keyed,
    label,
    limit_of,
    page_title,
    parts,
    say,
    states,
    verdict_word,
    written,
)
from calibrant.toolkit.report import numbers as num

MOST = 10  # of those that changed are listed


def summary(record: AuditRecord, *, against: AuditRecord | None = None) -> str:
    """A summary of an audit in Markdown, short enough for a pull request.

    Parameters
    ----------
    record : AuditRecord
    against : AuditRecord, optional
        An earlier audit, such as that of the main branch: the summary then shows whose verdict changed, and for whom
        the calibration error is certified to be larger or smaller.

    Returns
    -------
    str
        GitHub-flavoured Markdown in which no name from the data can act as markup.

    Notes
    -----
    **Guarantee.** A change is called certified where the certified ranges of both audits do not meet: wrong with
    probability at most the sum of their alphas, whether or not they share rows. A change of verdict by itself proves
    no change of the error.
    **Reads.** The records.
    """
    reported: list[Node] = [Opening(headline(record)), Parts(parts(record)), decision(record)]
    if against is not None:
        reported += _changes(record, against)
    section = Section("summary", "The brief", "", tuple(reported), record.verdict)
    return written(Document(sanitize(record.name), page_title(record), tuple(facts(record)), (section,)))


def _changes(now: AuditRecord, before: AuditRecord) -> Iterator[Node]:
    """Yield who changed, at most ten of them, and how many others did."""
    result = audits_compared({"before": before, "now": now}, margin=0.0)
    earlier, later = _by_name(before), _by_name(now)
    pairs = [(earlier[d.population], later[d.population], d) for d in result.differences]
    changed = [(old, new, d) for old, new, d in pairs if old.verdict != new.verdict or _certified(d)]
    changed.sort(key=lambda pair: (not _certified(pair[2]), -pair[2].interval.low))
    yield Heading("What changed")
    if (now.settings["judge"], limit_of(now)) != (before.settings["judge"], limit_of(before)):
        yield Paragraph(say("The audits were made against different limits: compare ranges, not verdicts."))
    if changed:
        heads = ("Who", "Before", "Now", "Certified change in points")
        rows = tuple(
            Row(tuple(map(Cell, (*_who(new), *_reported(before, old), *_reported(now, new), say(_change(d))))))
            for old, new, d in changed[:MOST]
        )
        yield Table(tuple(Column(say(h)) for h in heads), rows)
    if states(now)["subgroups"] != states(before)["subgroups"]:
        was, is_now = (verdict_word(r, "subgroups")[1].lower() for r in (before, now))
        yield Paragraph(say(f"Unlisted subgroups: {was} before, {is_now} now."))
    alone = len(earlier.keys() ^ later.keys())
    yield Paragraph(say(_rest(len(pairs) - len(changed), max(len(changed) - MOST, 0), alone)))


def _by_name(record: AuditRecord) -> dict[str, Finding]:
    """Return everyone and the groups; pooled values are not the same people in two audits."""
    return {EVERYONE: record.everyone} | {keyed(f.variables): f for f in record.groups if not f.pooled}


def _certified(d: Difference) -> bool:
    return d.interval.low > 0.0 or d.interval.high < 0.0


def _who(finding: Finding) -> tuple[Text]:
    return (say(Span(clipped(label(finding)), "name") if finding.variables else "Everyone"),)


def _reported(record: AuditRecord, finding: Finding) -> tuple[Text]:
    return (say(f"{judged_range(record, finding)}, {VERDICTS[finding.verdict].lower()}"),)


def _change(d: Difference) -> str:
    """Return by how much the calibration error is certified to have changed, in points."""
    if d.interval.low > 0.0:
        return f"larger by at least {num.lower_bound(d.interval.low)}"
    return f"smaller by at least {num.lower_bound(-d.interval.high)}" if d.interval.high < 0.0 else "none shown"


def _rest(same: int, more: int, alone: int) -> str:
    """Return how many are not in the table."""
    reported = [f"{num.count(more)} more changed."] if more else []
    reported.append(
        f"For {num.count(same)} of those in both audits, everyone counted, the verdict is the same "
        "and no change is certified; that does not show that there is none."
        if same
        else "All that are in both audits changed."
    )
    if alone:
        reported.append(f"{num.count(alone)} group{' is' if alone == 1 else 's are'} in one audit only.")
    return " ".join(reported)
