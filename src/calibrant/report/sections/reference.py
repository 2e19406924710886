"""What a reviewer looks up: every check, what was audited, how it was computed, words used, how to do it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.audit.about import About
from calibrant.audit.pooling import MASK
from calibrant.audit.record import AuditRecord, Check
from calibrant.data.dates import UNITS
from calibrant.report import numbers as num
from calibrant.report.document import (
    PAGE,
    TERMINAL,
    Cell,
    Column,
    Command,
    Details,
    Entries,
    Entry,
    Items,
    Node,
    Paragraph,
    Row,
    Table,
)
from calibrant.report.findings import MOST_ROWS, POCKETS, limit_of
from calibrant.report.outline import Asked, Declared, declared
from calibrant.report.spans import Span, Text, code, given, say, sentence, title
from calibrant.report.wording import FINDINGS, VERDICTS, notices
from calibrant.visible import visible

# ---- every check: what was asked, what was found, and what that means ----

UNDONE = ("not-applicable", "not-run")  # neither is a pass
NOTE = (
    "“Error found” says that error exists, however small; only the limit says whether it is too much. "
    "“Not applicable” and “not run” are not a pass."
)


def checks(record: AuditRecord) -> Iterator[Node]:
    """Return every check as a row."""
    heads = ("Check", "Finding", "Numbers", "What it means")
    columns = tuple(Column(say(h), "quiet" if h == heads[-1] else "") for h in heads)
    yield Table(columns, tuple(_row(line(c, record)) for c in record.checks))
    yield Paragraph(say(NOTE), "note", PAGE)
    undone = [visible(c.code) for c in record.checks if c.status in UNDONE]
    if undone:
        yield Paragraph(say(f"Not checked, which is not a pass: {', '.join(undone)}."), where=TERMINAL)


@dataclass(frozen=True, slots=True)
class Line:
    """One check; `status` picks the icon: met, undecided, broken, found, unfound, measured or absent."""

    question: Text
    status: str
    found: str
    numbers: str
    meaning: str


def line(check: Check, record: AuditRecord) -> Line:
    """Return what a check asked and found; a code that nothing knows is shown as it is."""
    read = next((d.checks[check.code] for d in declared() if check.code in d.checks), _plainly)
    asked = read(check, record)
    question = say(asked.question) if asked.question else say("Check ", code(check.code))
    status, words = _finding(check, record, asked.found)
    numbers = sentence(check.reason or "no reason given") if check.status in UNDONE else asked.numbers
    return Line(question, status, words, numbers, asked.meaning)


def _plainly(check: Check, _: AuditRecord) -> Asked:
    """Read a check that no section reads: by the words of its own file, if it has some."""
    from calibrant.audit.checks import questions  # loads numerical libraries, which most reports do without

    asks, means = next(((q.asks, q.means) for q in questions() if q.code == check.code), ("", ""))
    return Asked(asks, num.interval(check.estimate), means)


def _finding(check: Check, record: AuditRecord, found: bool | None) -> tuple[str, str]:
    """Return the status that picks an icon, and its words; a measurement is never met or broken."""
    if check.status in ("met", "undecided", "broken"):
        return check.status, VERDICTS[check.status]
    if check.status in UNDONE:
        return "absent", FINDINGS[check.status]
    if found is None and check.outcome is not None:
        found = record.found(check)
    status = "measured" if found is None else "found" if found else "unfound"
    return status, FINDINGS[status]


def _row(c: Line) -> Row:
    numbers = Cell(say(c.numbers), brief=say(given(c.numbers)) if c.status == "absent" else ())
    return Row((Cell(c.question), Cell(say(c.found), icon=c.status), numbers, Cell(say(c.meaning))))


# ---- what was audited ----

NOT_GIVEN = say(Span("not given", "missing"))


def about(record: AuditRecord) -> Iterator[Node]:
    """Return what was audited."""
    one, data, limit, words = record.everyone, record.data, limit_of(record), record.settings["about"]

    def told(word: str) -> Text:
        return NOT_GIVEN if words[word] is None else say(given(words[word]))

    outcome = say(
        code(data.get("label", "")),
        " = ",
        code(1 if data.get("positive") is None else data["positive"]),
        f": {num.count(one.cases)} of {num.count(one.rows)} ({num.nearest(one.cases / one.rows)}%); ",
        f"expected by the model {num.count(one.expected)}",
    )
    bound = "none"
    if limit is not None:
        by = "the caller" if words["set_by"] is None else str(words["set_by"])
        bound = f"{num.limit_points(limit)} points, given by {by}. "
        bound += "Whether it was set before the data were seen is not known." if words["set_by"] is None else ""
    entries = [
        Entry("Model", told("model")),
        Entry("Meant for", told("intended_use")),
        Entry("Outcome", outcome),
        Entry("Score", say(code(data.get("score", "")))),
        Entry("Population", told("population")),
        Entry("Period", told("period")),
        Entry("Rows", say(f"{num.count(one.rows + dropped(data))} read, {num.count(dropped(data))} dropped")),
        Entry("Limit", say(visible(bound.strip()))),
        Entry("Groups", _groups(record)),
    ]
    if record.settings.get("date") is not None:
        entries.append(Entry("Date of the report", say(given(record.settings["date"]))))
    entries += [Entry("Note", say(given(n))) for n in listed(data.get("notes"))]
    entries += [Entry(lead or "Note", text) for lead, text in notices(record)]
    yield Entries(tuple(entries))
    if data.get("columns"):
        yield Details("How each column was read", (_columns(record),), id="columns")


def _columns(record: AuditRecord) -> Table:
    """Return what each column was taken for, what it was used as, and where it is missing."""
    reasons, rows = dict(map(tuple, record.data.get("left_out") or ())), []
    for name, c in list(record.data["columns"].items())[:MOST_ROWS]:
        missing = c.get("missing")
        share = "–" if missing is None else "none" if not missing else f"at most {num.percent(missing)}%"
        used = c.get("used", "")
        why = (": ", given(reasons[name])) if name in reasons else ()
        rows.append(Row(tuple(map(Cell, (say(code(name)), say(c.get("kind", "")), say(used, *why), say(share))))))
    heads = ("Column", "Taken for", "Used as", "Missing")
    more = len(record.data["columns"]) - len(rows)
    caption = f"The first {num.count(len(rows))} columns; the JSON names {num.count(more)} more." if more > 0 else ""
    return Table(tuple(Column(say(h)) for h in heads), tuple(rows), caption)


def _groups(record: AuditRecord) -> Text:
    by = groupings(record)
    if not by:
        return say(Span("none given", "missing"))
    pieces = [p for names in by for p in (code(" and ".join(names)), ", ")][:-1]
    noun = "variable" if len(by) == 1 else "variables"
    count = f"{len(by)} {noun}, {num.count(len(record.groups))} groups, chosen by the caller: "
    out: list[str | Span] = [count, *pieces]
    for name, edges in cuts(record).items():
        out += ["; ", code(name), f" cut at {', '.join(f'{e:g}' for e in edges)}"]
    for name, unit in units(record).items():
        out += ["; ", code(name), f" by {unit}"]
    for group in record.groups:
        if group.pooled:
            values = ", ".join(v for _, v in group.variables)
            out += ["; too small to show alone, so shown together: ", given(values)]
    for text in folded(record):
        out += ["; ", *text]
    return say(*out)


def groupings(record: AuditRecord) -> list[tuple[str, ...]]:
    """Return the columns that form groups, alone or crossed, however the record holds them."""
    by = record.data.get("by") or ()
    return [tuple(map(str, b)) if isinstance(b, (list, tuple)) else (str(b),) for b in by]


def _variables(record: AuditRecord) -> Mapping[str, Mapping[str, Any]]:
    described: Mapping[str, Mapping[str, Any]] = record.data.get("variables") or {}
    return described


def cuts(record: AuditRecord) -> dict[str, Sequence[float]]:
    """Return the numeric columns that were cut into bands, and where."""
    return {name: d["edges"] for name, d in _variables(record).items() if d.get("edges")}


def units(record: AuditRecord) -> dict[str, str]:
    """Return the columns of dates, and the unit of time that makes their groups."""
    return {name: str(d["kind"]) for name, d in _variables(record).items() if d.get("kind") in UNITS}


def folded(record: AuditRecord) -> tuple[Text, ...]:
    """Return for each variable with too many values how many of them share the level "other"."""
    out = []
    for name, d in _variables(record).items():
        n = int(d.get("folded") or 0)
        if n:
            values = "1 less frequent value is" if n == 1 else f"{num.count(n)} less frequent values are"
            out.append(say(f"{values} shown together as “other” in ", code(name)))
    return tuple(out)


def dropped(data: Mapping[str, Any]) -> int:
    """Return how many rows were left out, in all."""
    d = data.get("dropped", 0)
    return int(sum(d.values())) if isinstance(d, Mapping) else int(d or 0)


def listed(value: object) -> list[str]:
    """Return notes, sources or columns as a list of text, however the record holds them."""
    if value is None or value == "":
        return []
    if isinstance(value, Mapping):
        return [f"{k}: {v}" for k, v in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [str(v) for v in value]
    return [str(value)]


# ---- the command that does it again ----

EVERY = "*"  # all columns that can be used
BANDWIDTH = 2**-6  # of the jittered certificate: the command line takes no other
ARRAYS = "The data came as arrays or as a frame, so there is no command: call "
UNTYPABLE = "The command line cannot name all that this audit was given, so there is no command: call "


def reproduce(record: AuditRecord) -> Iterator[Node]:
    """Return the command and what it rests on."""
    data, one = record.data, record.everyone
    typed = command(record)
    if typed:
        yield Command(typed)
    else:
        start = UNTYPABLE if listed(data.get("files")) else ARRAYS
        yield Paragraph(say(start, code("calibrant.audit"), " with the settings below."), where=PAGE)
    left_out = num.count(dropped(data)) if dropped(data) else "none"
    rows = f"{num.count(one.rows)} rows, {left_out} dropped; fingerprint "
    same = "The same data, settings, seed and versions give this file byte for byte; it holds no time stamp."
    machines = (
        *say("All results are in this page as JSON: element ", code("calibrant-result"), ", schema "),
        *say(code(record.schema), ". No row of the data is in it."),
    )
    yield Entries(
        (
            Entry("Data", say(rows, code(data.get("fingerprint", "")))),
            Entry("Settings", pairs({k: v for k, v in record.settings.items() if k != "about"})),
            Entry("Software", pairs(record.versions)),
            Entry("Same bytes", say(same), where=PAGE),
            Entry("For machines", machines, where=PAGE),
        )
    )


def pairs(values: Mapping[str, object]) -> Text:
    """Return names and values as one line; what is None is left out."""
    told = [given(f"{k} {_setting(v)}") for k, v in sorted(values.items()) if v is not None]
    return say(*[piece for span in told for piece in (span, ", ")][:-1])


def _setting(value: object) -> str:
    return " and ".join(map(str, value)) or "none" if isinstance(value, (list, tuple)) else str(value)


def command(record: AuditRecord) -> str:
    """Return the command that writes this report again; empty where no command can."""
    data, s, by = record.data, record.settings, groupings(record)
    sources = listed(data.get("sources") or data.get("files"))
    if not sources or _untypable(record, sources):
        return ""
    paths = (f"./{x}" if x.startswith("-") and x != "-" else x for x in sources)
    lines = [f"calibrant audit {' '.join(map(shlex.quote, paths))}"]
    for flag, value in _flags(record):
        typed = shlex.quote(str(value))
        lines.append(f"  {flag}={typed}" if typed.startswith(("-", "'-")) else f"  {flag} {typed}")
    switches = {
        "--intersections": any(len(b) > 1 for b in by),
        "--percent": bool(data.get("percent")),
        "--drop-missing": bool(dropped(data)),
        "--quick": bool(s.get("quick")),
    }
    lines += [f"  {flag}" for flag, wanted in switches.items() if wanted]
    return " \\\n".join(map(visible, [*lines, "  --report audit.html"]))


def _list(names: Sequence[str]) -> str | None:
    """Return names as an option takes them, in quotes those that would be read as something else; None for none."""
    return ",".join('"' + n.replace('"', '""') + '"' if _odd(n) else n for n in names) or None


def _odd(name: str) -> bool:
    return not name or name != name.strip() or "," in name or name.startswith('"')


def _flags(record: AuditRecord) -> list[tuple[str, object]]:
    """Return every option with a value that changes the result, but those that were not given."""
    data, s = record.data, record.settings
    asked, files = s.get("variables", (EVERY,)), listed(data.get("files"))
    named_after_file = len(files) == 1 and files[0].split(".")[0] == record.name
    flags: list[tuple[str, object]] = [("--label", data.get("label")), ("--score", data.get("score"))]
    flags += [("--positive", data.get("positive")), ("--key", _list(listed(data.get("key"))))]
    flags += [("--by", _list(_group_columns(record)))]
    flags += [("--missing", "refuse" if data.get("missing") == "refuse" else None)]
    flags += [("--bins", f"{name}={','.join(map(_edge, edges))}") for name, edges in cuts(record).items()]
    flags += [("--variables", None if tuple(asked) == (EVERY,) else _list(asked) or "none")]
    flags += [(f"--{k}", s.get(k)) for k in ("limit", "levels", "alpha", "tolerance", "seed")]
    flags += [("--mask", s.get("mask") if s.get("mask") != MASK else None)]
    flags += [("--fail-on", ",".join(listed(s.get("fail_on"))) or None), ("--outcome", s.get("outcome"))]
    flags += [("--judge", s["judge"] if s["judge"] != "error" else None)]
    flags += [(f"--{k.replace('_', '-')}", v) for k, v in s["about"].items() if v != getattr(About(), k)]
    flags += [("--name", None if named_after_file else record.name), ("--date", s.get("date"))]
    return [(flag, value) for flag, value in flags if value is not None]


def _edge(edge: float) -> str:
    """Write the edge of a group, short where that is the same number."""
    return f"{edge:g}" if float(f"{edge:g}") == edge else repr(float(edge))


def _group_columns(record: AuditRecord) -> list[str]:
    return list(dict.fromkeys(name for pair in groupings(record) for name in pair))


def _untypable(record: AuditRecord, sources: Sequence[str]) -> bool:
    """Tell whether the record does not name all files, or was made with what is no option."""
    more = int(record.data.get("file_count") or 0) > len(sources)
    return more or record.settings.get("bandwidth") not in (None, BANDWIDTH)


# ---- what the report does not show, how it was computed, and the words it uses; sections add to the last two ----

LIMITS = (
    ("Whether decisions are good or fair.", "Probabilities can be right and the rule built on them wrong."),
    ("Whether the model ranks people well.", "A model that says 50% to everyone can be perfectly calibrated."),
    ("Other people, places or years.", "The certificate covers the population these {rows} rows were drawn from."),
    ("Groups nobody listed.", "{searched} No finding is not a proof."),
    ("Whether the recorded outcome is true.", "Errors in the labels count as errors of the model."),
)
SEARCHED = {
    "certified": "Pockets of one or two traits are certified; mixes of more are searched, and some are found.",
    "searched": "Only the groups named are certified. The search finds some mixes of traits, not all.",
    "": "Only the groups named are audited.",
}
ALWAYS = (
    Entry(
        "Estimates",
        say("The error as estimated, and the rows that would decide, are guides; no verdict rests on them."),
    ),
    Entry(
        "Rounding", say("Lower bounds are rounded down and upper bounds up, so every printed bound is true as printed.")
    ),
)
WORDS = {
    "Point": "One hundredth of probability; one person in 100. From 70% to 72% is 2 points.",
    "Score": (
        "The probability the model gives a person. Raw: exactly as given. "
        "As shown: rounded to the nearest step of {step}."
    ),
    "Average error": (
        "Take everyone given the same probability, compare it with the share of them for whom it happened, "
        "and average the size of the gap over all people."
    ),
    "Certified": (
        "Proved to hold in at least {times} of {of} audits like this one, whatever the model, if rows are independent."
    ),
    "Certified range": (
        "From the least the raw score can be off to the most the score as shown can be off. "
        "A headline calls it the interval."
    ),
    "Met, broken, undecided": (
        "The whole certified range is within the limit; the whole range is over it; the limit lies inside."
    ),
    "Calibrated": "Of all people told 70%, 70 in 100 have the outcome; likewise for every other number.",
    "Case": "A person with the outcome.",
    "Gap, overall shift": (
        "What happened minus what the model says: in one group, or over everyone. Errors in both directions cancel."
    ),
    "Distance from calibration": "How far scores would have to move, on average, to be calibrated.",
    "Brier score, log loss": (
        "How far single predictions are from what happened; smaller is better. "
        "They mix calibration with how well people are told apart."
    ),
    "AUROC": "How often a person with the outcome has a higher score than one without; 0.5 is guessing.",
}
JUDGED = "Met, broken, undecided"  # a word of reports with a limit


def limits(record: AuditRecord) -> Iterator[Node]:
    """Return what the report does not show."""
    rows = num.count(record.everyone.rows)
    tested = any(c.outcome is not None for c in record.checks)
    searched = SEARCHED["certified" if POCKETS in record.estimates else "searched" if tested else ""]
    yield Items(tuple(say(title(start), text.format(rows=rows, searched=searched)) for start, text in LIMITS))


def methods(record: AuditRecord) -> Iterator[Node]:
    """Return how each number was computed, in the order of the sections."""
    yield Entries((*(e for d in declared() for e in d.methods(record)), *ALWAYS))


def glossary(record: AuditRecord) -> Iterator[Node]:
    """Return the words used on the page, each in plain language."""
    times, of = num.confidence(1 - float(record.settings["alpha"]))
    step = num.step(record.settings["levels"])
    ours = (
        Entry(word, say(text.format(step=step, times=times, of=of)))
        for word, text in WORDS.items()
        if word != JUDGED or limit_of(record) is not None
    )
    yield Entries((*ours, *(e for d in declared() for e in d.words(record))))


# ---- the sections, in their order ----

DECLARED = (
    Declared(id="checks", order=70, nav="Every check", heading="Every check, and what it found", nodes=checks),
    Declared(id="about", order=80, nav="What was audited", heading="What was audited", nodes=about),
    Declared(id="limits", order=90, nav="Not shown here", heading="What this report does not show", nodes=limits),
    Declared(id="methods", order=100, nav="How computed", heading="How this was computed", nodes=methods),
    Declared(id="glossary", order=110, nav="Words used", heading="Words used here", nodes=glossary),
    Declared(id="reproduce", order=120, nav="Reproduce it", heading="Reproduce this report", nodes=reproduce),
)
