"""The report for a terminal, and as Markdown for a pull request or a log."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import following, hidden, inference, provenance, repairs, searched, standing, views
from calibrant.report import measures as standard
from calibrant.report import numbers as num
from calibrant.report.checks import check_line
from calibrant.report.evidence import local_test, note
from calibrant.report.guidance import caveats, next_steps
from calibrant.report.order import MOST_ROWS, limit_of, ordered
from calibrant.report.ranking import certified_or, draws, ranked, shown
from calibrant.report.spans import Text, fenced, label, plain, say, visible
from calibrant.report.spans import markdown as marked
from calibrant.report.wording import VERDICTS, certified_range, headline, lead, no_groups, overall_answer, tally

SHOWN = 9  # groups in the terminal
NAME = 34  # cells for a name
RULE = 90  # cells for a rule
WIDTH = 88
FLOOR = re.compile(", the smallest that [^ ]+ simulations can show")


def terminal(record: AuditRecord) -> str:
    """Return a summary for a terminal: headline, certified ranges worst first, and what to do next.

    Parameters
    ----------
    record : AuditRecord

    Returns
    -------
    str
        Plain text without colour codes.
    """
    limit = limit_of(record)
    top = headline(record) if limit is None else f"{VERDICTS[record.verdict].upper()}. {headline(record)}"
    facts = [visible(record.name), "no limit" if limit is None else f"limit {num.limit_points(limit)} points"]
    facts.append(f"{num.percent(1 - float(record.settings['alpha']))}% certificates")
    groups = ordered(record.groups)
    lines = [" · ".join(facts), "", *wrap(top), "", *wrap(plain(lead(record))), ""]
    lines += table([record.everyone, *groups[:SHOWN]], limit)
    if len(groups) > SHOWN:
        lines.append(f"  and {num.count(len(groups) - SHOWN)} more groups")
    if not groups:
        lines += wrap(plain(no_groups(record)), "  ")
    elif limit is not None:
        lines += ["", *wrap(plain(tally(record)))]
    if ranked(record):
        lines += ["", *wrap(f"Variables the error follows: {plain(following.answer(record))}")]
    if inference.wrong(record):
        lines += wrap(f"In place of labels: {inference.heading(record)}.")
    if local_test(record) is not None or searched.strong_test(record) is not None:
        found = FLOOR.sub("", plain(hidden.answer(record)))
        lines += ["", *wrap(f"Error hiding in traits: {found}")]
        lines += (
            wrap(f"{searched.WHO}: {clip(who.text, RULE)}{who.told}") if (who := searched.first_shown(record)) else []
        )
    if repairs.compared(record):
        lines += ["", *wrap(f"What would repair it: {plain(repairs.answer(record))}")]
    lines.append("")
    unrun = [c for c in record.checks if c.status in ("not-applicable", "not-run")]
    if unrun:
        lines += [
            *wrap("Not checked, which is not a pass: " + ", ".join(visible(c.code) for c in unrun) + "."),
            "",
        ]
    for i, step in enumerate(next_steps(record), 1):
        lines += wrap(plain(step), f"{i}. ")
    return "\n".join(lines).rstrip()


def table(findings: Sequence[Finding], limit: float | None) -> list[str]:
    """Return the certified ranges as aligned lines."""
    names = [clip(label(f) if f.variables else "Everyone", NAME) for f in findings]
    people = [num.count(f.rows) for f in findings]
    ranges = [certified_range(f, limit) for f in findings]
    columns = (("", names), ("people", people), ("points off", ranges))
    wide = [max(cells(x) for x in (head, *column)) for head, column in columns]
    out = [f"  {pad('', wide[0])}  {'people':>{wide[1]}}  {'points off':>{wide[2]}}"]
    for f, who, n, r in zip(findings, names, people, ranges, strict=True):
        word = "" if limit is None else f"  {VERDICTS[f.verdict].lower()}"
        out.append(f"  {pad(who, wide[0])}  {n:>{wide[1]}}  {r:>{wide[2]}}{word}")
    return out


def cells(text: str) -> int:
    """Return how many columns a terminal needs for a text."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(bool(unicodedata.combining(c)) for c in text)


def clip(text: str, width: int) -> str:
    """Return a text cut to a number of columns."""
    if cells(text) <= width:
        return text
    while cells(text) > width - 1:
        text = text[:-1]
    return text + "…"


def pad(text: str, width: int) -> str:
    """Return a text filled up with spaces to a number of columns."""
    return text + " " * max(0, width - cells(text))


def wrap(text: str, start: str = "") -> list[str]:
    """Return a text as lines that fit a terminal, the first with a number or mark before it."""
    lines, line = [], start
    for word in text.split(" "):
        if cells(line) + cells(word) + 1 > WIDTH and line.strip() and line != start:
            lines.append(line)
            line = " " * len(start)
        line += word if line in (start, " " * len(start)) else f" {word}"
    return [*lines, line]


def markdown(record: AuditRecord) -> str:
    """Return the report as Markdown; no name from the data can act as markup, a mention or a link.

    Parameters
    ----------
    record : AuditRecord

    Returns
    -------
    str
        GitHub-flavoured Markdown, ending in a line break.
    """
    limit = limit_of(record)
    badge = "" if limit is None else f"**{VERDICTS[record.verdict]}.** "
    parts = [
        f"# Calibration audit of {fenced(visible(record.name))}\n\n## {headline(record)}",
        badge + marked(lead(record)),
        _tally(record, limit),
        *_listed("### Before you use these numbers", caveats(record)),
        *_listed("### What to do next", next_steps(record), numbered=True),
        "## How far off are the probabilities?",
        marked(overall_answer(record)),
        _certified(record),
        _measures(record),
        "## For whom are they off?",
        _groups(record, limit),
        *_variables(record),
        *_hidden(record),
        *_repairs(record),
        "## Every check, and what it found",
        _checks(record),
        "## What was audited",
        _entries(provenance.about(record)["entries"]),
        *_listed("## What this report does not show", standing.limits(record)),
        "## How this was computed",
        _entries(standing.methods(record)),
        "## Words used here",
        _entries(standing.glossary(record)),
        "## Reproduce this report",
        _command(record),
        _entries(provenance.reproduce(record)["entries"][:3]),
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def _tally(record: AuditRecord, limit: float | None) -> str:
    return marked(tally(record)) if record.groups and limit is not None else ""


def _listed(heading: str, items: Sequence[Text], numbered: bool = False) -> list[str]:
    lines = [f"{f'{i}.' if numbered else '-'} {marked(item)}" for i, item in enumerate(items, 1)]
    return [heading, "\n".join(lines)] if items else []


def _entries(entries: Iterable[standing.Entry]) -> str:
    return "\n".join(f"- **{term}:** {marked(text)}" for term, text in entries)


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    rule = ["--:" if i in right else "---" for i in range(len(head))]
    return "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in [head, rule, *rows])


def _cell(text: str) -> str:
    return text.replace("\\|", "|").replace("|", "\\|")


def _certified(record: AuditRecord) -> str:
    rows = [(c.quantity, c.points, c.about, fenced(c.assumes)) for c in views.certified(record)]
    return _rows(("Certified", "Points", "About", "Assumes"), rows, (1,))


def _measures(record: AuditRecord) -> str:
    rows = [(c.name, c.value, c.range, c.says) for c in standard.measures(record)]
    head = ("Standard measure, not certified", "Value", "Range", "What it says")
    return f"{_rows(head, rows, (1, 2))}\n\n{standard.note(record)}" if rows else ""


def _groups(record: AuditRecord, limit: float | None) -> str:
    if not record.groups:
        return marked(no_groups(record))
    head = [
        "Group",
        "People",
        "Model says, in 100",
        "Happened, in 100",
        "Gap, points",
        "Certified range, points",
    ]
    judged = limit is not None
    rows = []
    for f in [record.everyone, *ordered(record.groups)[:MOST_ROWS]]:
        says, happened = num.nearest(f.expected / f.rows), num.nearest(f.cases / f.rows)
        who = fenced(label(f)) if f.variables else "Everyone"
        cells_ = [who, num.count(f.rows), says, happened, num.gap(f.gap), certified_range(f, limit)]
        need = "–" if f.rows_needed is None else num.rows_needed(f.rows_needed)
        rows.append([*cells_, VERDICTS[f.verdict], need] if judged else cells_)
    table_ = _rows([*head, "Verdict", "Rows that would decide"] if judged else head, rows, (1, 2, 3, 4, 5, 7))
    notes = [
        *([views.cut_short(record)] if views.cut_short(record) else []),
        *map(marked, provenance.group_notes(record)),
    ]
    return "\n\n".join([table_, *notes])


def _variables(record: AuditRecord) -> list[str]:
    found = ranked(record)
    if not found:
        told = inference.short(record)
        why = marked(standing.absent(record, "variables"))
        return ["## Which variables does the error follow?", why, marked(told)] if told else []
    head = ("Variable", "Beyond the overall shift, points", "Range, points", "With the shift, points", "Adjusted p")
    n = draws(record)
    rows = [
        (
            fenced(shown(r.variable)),
            num.nearest(r.beyond),
            "–" if r.high is None else certified_or(r.beyond, r.low, r.high),
            num.nearest(r.whole),
            num.p_value(r.adjusted, draws=n).partition(",")[0],
        )
        for r in found[:MOST_ROWS]
    ]
    return [
        "## Which variables does the error follow?",
        marked(following.answer(record)),
        _rows(head, rows, (1, 2, 3, 4)),
        following.shift_note(record),
        marked(inference.short(record)),
    ]


def _rules(record: AuditRecord) -> list[str]:
    if searched.strong_test(record) is None:
        return []
    head = (
        "Rule",
        "Share of people",
        "Model says, in 100",
        "Happened, in 100",
        "Gap and its range, points",
        "The model says",
    )
    rows = [
        (f"{fenced(r.text)} ({r.again})", r.share, r.says, r.happened, r.gap, r.word) for r in searched.rules(record)
    ]
    peak = searched.spread(record)
    over = f"### {searched.rules_heading(record)}" if rows else ""
    return [peak, over, _rows(head, rows, (1, 2, 3, 4)) if rows else "", searched.rules_note(record)]


def _needs(record: AuditRecord) -> list[str]:
    if searched.strong_test(record) is None:
        return []
    found = hidden.bars(record)
    rows = [(fenced(n["name"]), n["lost"], n["range"], n["word"]) for n in found["needs"]]
    head = ("Which variables the search needs", "Evidence lost without it", "Range", "")
    return [_rows(head, rows, (1, 2)) if rows else "", marked(say(searched.needs_note(record)))]


def _hidden(record: AuditRecord) -> list[str]:
    if local_test(record) is None and searched.strong_test(record) is None:
        return []
    head = ("Variable", "Evidence", "Adjusted p", "On its map, farthest off at", "Gap there, points (band)")
    rows = [
        (fenced(r.name), r.word, r.p, fenced(r.where) if r.gap else r.where, r.gap or "–") for r in hidden.rows(record)
    ]
    return [
        "## Is error hiding in a mix of traits?",
        marked(hidden.answer(record)),
        marked(hidden.worst(record)),
        *map(marked, hidden.untested(record)),
        *_rules(record),
        *_needs(record),
        _rows(head, rows, (2, 4)) if rows else "",
        marked(say(note(record))),
    ]


def _repairs(record: AuditRecord) -> list[str]:
    if not repairs.compared(record):
        return []
    found = repairs.repairs(record)
    head = (
        "Probabilities",
        "Certified error, points",
        "Largest group gap, points",
        "Brier score",
        "Log loss",
        "AUROC",
        "Local p†",
        "Groups better, worse*",
    )
    rows = [
        (
            x.name,
            x.certified,
            f"{x.gap} {fenced(x.group)}" if x.group else x.gap,
            x.brier,
            x.log_loss,
            x.auroc,
            x.local,
            x.groups,
        )
        for x in found["lines"]
    ]
    return [
        "## What would repair it?",
        marked(found["answer"]),
        marked(say(found["caption"])),
        _rows(head, rows, (1, 2, 3, 4, 5, 6, 7)),
        marked(say(found["note"])),
        marked(found["how"]),
    ]


def _checks(record: AuditRecord) -> str:
    rows = []
    for line in (check_line(c, record) for c in record.checks):
        numbers = fenced(line.numbers) if line.status == "absent" else marked(say(line.numbers))
        rows.append((marked(line.question), line.found, numbers, marked(say(line.meaning))))
    return _rows(("Check", "Finding", "Numbers", "What it means"), rows)


def _command(record: AuditRecord) -> str:
    command = provenance.command(record)
    if not command:
        return ""
    fence = "`" * max(3, max((len(run) for run in _ticks(command)), default=0) + 1)
    return f"{fence}sh\n{command}\n{fence}"


def _ticks(text: str) -> list[str]:
    return "".join(c if c == "`" else " " for c in text).split()
