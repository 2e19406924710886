"""What a reviewer looks up: every check, what was audited, how it was computed, words used, how to do it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from calibrant.arguments import UNITS
from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.report import document as doc
from calibrant.report import numbers as num
from calibrant.report.commands import ABOUT, command, cuts, described, listed, wording
from calibrant.report.findings import (
    SUBGROUPS,
    TOGETHER,
    dropped,
    groupings,
    limit_of,
    lost,
    mask_of,
    noun,
    screened,
    stands,
    unestimated,
    withheld,
)
from calibrant.report.outline import Declared, OutlineCheck, declared
from calibrant.report.spans import Span, Text, code, literal, say, sentence, title
from calibrant.report.wording.clusters import independent, weighing
from calibrant.report.wording.notices import HOW, MEANS, notices
from calibrant.report.wording.terms import FINDINGS, VERDICTS, bound_of, rows_counted
from calibrant.sanitize import sanitize

# ---- every check: what was asked, what was found, and what that means ----

COLUMNS = 60  # in the table of how each was read; the others are in the JSON only
UNDONE = ("not-applicable", "not-run")  # neither is a pass
NOTE = (
    "“Error shown” says that error exists, however small; only the limit says whether it is too much. "
    "“Not applicable” and “not run” are not a pass."
)


def checks(record: AuditRecord) -> Iterator[doc.Node]:
    heads = [doc.Column(say(h)) for h in ("Check", "Finding", "Numbers")]
    rows = []
    for c in (line(check, record) for check in record.checks):
        numbers = doc.Cell(say(c.numbers), brief=say(literal(c.numbers)) if c.status == "absent" else ())
        rows.append((c.question, doc.Cell(say(c.error_shown), icon=c.status), numbers, c.meaning))
    yield doc.number_table("", [*heads, doc.Column(say("What it means"), "quiet")], rows, "cards")
    yield doc.Paragraph(say(NOTE), "note", doc.PAGE)


@dataclass(frozen=True, slots=True)
class Line:
    """One check; `status` picks the icon: met, undecided, broken, found, unfound, measured or absent."""

    question: Text
    status: str
    error_shown: str
    numbers: str
    meaning: str


def line(check: CheckRecord, record: AuditRecord) -> Line:
    """What a check asked and found; a code that nothing knows is shown as it is."""
    read = next((d.checks[check.code] for d in declared() if check.code in d.checks), _plainly)
    options = read(check, record)
    question = say(options.question) if options.question else say("Check ", code(check.code))
    status, words = _finding(check, record, options.error_shown)
    numbers = sentence(check.reason or "no reason given") if check.status in UNDONE else options.numbers
    return Line(question, status, words, numbers, options.meaning.replace("people", noun(record)))


def _plainly(check: CheckRecord, record: AuditRecord) -> OutlineCheck:
    """Read a check that no section reads: by the words of its own file, if it has some."""
    from calibrant.audit.checks import of_code  # loads numerical libraries, which most reports do without

    own = of_code(check.code)
    asks, means = (own.asks, own.means) if own else ("", "")
    numbers = num.interval(check.estimate)
    if check.code == TOGETHER and (looked := record.curve(TOGETHER).settings):
        n = int(looked.get("columns", 0))
        detected = len(record.curve(TOGETHER).columns.get("columns", ()))
        correlated = num.count(detected) if detected else "none"
        numbers = f"looked at {num.count(n)} column{'' if n == 1 else 's'}; correlated in {correlated}"
    return OutlineCheck(asks, numbers, means)


def _finding(check: CheckRecord, record: AuditRecord, shown: bool | None) -> tuple[str, str]:
    """The status that picks an icon, and its words; a measurement is never within or over."""
    if check.status in ("within", "undecided", "over"):
        return check.status, VERDICTS[check.status]
    if check.status in UNDONE:
        return "absent", FINDINGS[check.status]
    if check.code in ("error-everyone", "error-groups") and withheld(record) and limit_of(record) is not None:
        return "undecided", "Withheld"
    if shown is None and check.outcome is not None:
        shown = stands(record, check)
    status = "measured" if shown is None else "found" if shown else "unfound"
    return status, FINDINGS[status]


# ---- what was audited ----

NOT_PASSED = say(Span("not given", "missing"))


def about(record: AuditRecord) -> Iterator[doc.Node]:
    one, data, limit, words = record.everyone, record.data, limit_of(record), record.settings["about"]

    def reported(word: str) -> Text:
        return NOT_PASSED if words[word] is None else say(literal(words[word]))

    what = independent(record)
    outcome = say(
        code(data.get("label", "")),
        " = ",
        code(1 if data.get("positive") is None else data["positive"]),
        ": "
        if unestimated(one)
        else f": {'about ' if lost(record) else ''}{num.count(one.events)} of {num.count(one.rows)} "
        f"({num.nearest(one.events / one.rows)}%); ",
        f"expected by the model {num.count(one.expected)}{weighing(record).counts}",
    )
    bound = "none"
    if limit is not None:
        by = "the caller" if words["set_by"] is None else str(words["set_by"])
        bound = f"{bound_of(record)}, given by {by}. "
        bound += "Whether it was set before the data were seen is not known." if words["set_by"] is None else ""
    entries = [
        doc.Entry("Model", reported("model")),
        doc.Entry("Meant for", reported("intended_use")),
        doc.Entry("Outcome", outcome),
        doc.Entry("Score", _score(record)),
        doc.Entry("Population", reported("population")),
        doc.Entry("Period", reported("period")),
        doc.Entry("Rows", say(_read(record))),
        *((doc.Entry(what.head, what.counted),) if what.head else ()),
        doc.Entry("Limit", say(sanitize(bound.strip()))),
        doc.Entry("Groups", _groups(record)),
    ]
    if record.settings.get("date") is not None:
        entries.append(doc.Entry("Date of the report", say(literal(record.settings["date"]))))
    entries += [doc.Entry("Note", say(literal(n))) for n in listed(data.get("notes"))]
    entries += [doc.Entry(lead or "Note", text) for lead, text in notices(record)]
    if chosen := screened(record):
        entries.append(doc.Entry("Columns tested", _tested(record, chosen)))
    yield doc.Entries(tuple(entries))
    if data.get("columns"):
        yield doc.Details("How each column was read", (_columns(record),), id="columns")


def _score(record: AuditRecord) -> Text:
    name, of = code(record.data.get("score", "")), record.data.get("confidence")
    if not of:
        return say(name)
    reported = say(name, "; ", MEANS[of["provenance"]])
    return (
        reported if of["field"] is None else say(*reported, "; field ", code(of["field"]), " of ", literal(of["tool"]))
    )


def _read(record: AuditRecord) -> str:
    data = record.data
    gone, apart = dropped(data), data.get("unlabelled", 0)
    every = record.everyone.rows + gone + (0 if lost(record) else apart or 0)
    reported = f"{num.count(every)} read, {num.count(gone)} dropped"
    if lost(record):
        return f"{reported}, {num.count(record.data['horizon']['unknown'])} lost before the horizon"
    if apart is None:
        return f"{reported}; fewer than {num.count(mask_of(record))} more have no label"
    return f"{reported}, {num.count(apart)} counted apart: they have no label" if apart else reported


def _tested(record: AuditRecord, chosen: Mapping[str, Any]) -> Text:
    read, of = chosen["chosen"], int(chosen["of"])
    rows, others = (f"{num.count(chosen[k])} {noun(record)}" for k in ("rows_chose", "rows_tested"))
    how = f"{num.count(len(read))} of {num.count(of)}: "
    then = f"the first of those named as groups, which leave no choice; all {others} were tested. "
    if chosen["rows_chose"]:
        how += "those named as groups, and " if groupings(record) else ""
        how += f"those along which {rows} depart most from the model; "
        then = f"{others} who had no part in the choice were tested, so that it costs no error probability. "
    left = f"The other {num.count(of - len(read))} are in the ranking only, each separately. Read:  "
    named = [piece for name in read for piece in (code(name), ", ")][:-1]
    return say(how, then, left, *named)


def _columns(record: AuditRecord) -> doc.Table:
    reasons, rows = dict(map(tuple, record.data.get("left_out") or ())), []
    for name, c in list(record.data["columns"].items())[:COLUMNS]:
        missing = c.get("missing")
        share = "–" if missing is None else "none" if not missing else f"at most {num.percent(missing)}%"
        used = c.get("used", "")
        why = (": ", literal(reasons[name])) if name in reasons else ()
        rows.append(doc.row(say(code(name)), c.get("kind", ""), say(used, *why), share))
    heads = ("Column", "Interpreted as", "Used as", "Missing")
    more = len(record.data["columns"]) - len(rows)
    caption = f"The first {num.count(len(rows))} columns; the JSON names {num.count(more)} more." if more > 0 else ""
    return doc.Table(tuple(doc.Column(say(h)) for h in heads), tuple(rows), caption)


def _groups(record: AuditRecord) -> Text:
    by = groupings(record)
    if not by:
        return say(Span("none given", "missing"))
    pieces = [p for names in by for p in (code(" and ".join(names)), ", ")][:-1]
    noun = "variable" if len(by) == 1 else "variables"
    groups = "1 group" if len(record.groups) == 1 else f"{num.count(len(record.groups))} groups"
    count = f"{len(by)} {noun}, {groups}, chosen by the caller: "
    out: list[str | Span] = [count, *pieces]
    for name, edges in cuts(record).items():
        out += ["; ", code(name), f" cut at {', '.join(f'{e:g}' for e in edges)}"]
    for name, cluster in clusters(record).items():
        out += ["; ", code(name), f" by {cluster}"]
    for group in record.groups:
        if group.pooled:
            values = ", ".join(v for _, v in group.variables)
            out += ["; too small to show alone, so shown together: ", literal(values)]
    for text in folded(record):
        out += ["; ", *text]
    return say(*out)


def clusters(record: AuditRecord) -> dict[str, str]:
    return {name: str(d["kind"]) for name, d in described(record).items() if d.get("kind") in UNITS}


def folded(record: AuditRecord) -> tuple[Text, ...]:
    """How many values share the level "other", for each variable with too many."""
    out = []
    for name, d in described(record).items():
        n = int(d.get("folded") or 0)
        if n:
            values = "1 less frequent value is" if n == 1 else f"{num.count(n)} less frequent values are"
            out.append(say(f"{values} shown together as “other” in ", code(name)))
    return tuple(out)


# ---- the command that does it again ----

UNTYPABLE = "The command line cannot name all that this audit was given, so there is no command: call "


def reproduce(record: AuditRecord) -> Iterator[doc.Node]:
    data, one = record.data, record.everyone
    typed = command(record)
    if typed:
        yield doc.Command(typed)
        if lines := wording(record):
            yield doc.Paragraph(say(code(ABOUT), " holds the words of this report:"))
            yield doc.Command(lines, language="toml")
    else:
        yield doc.Paragraph(say(UNTYPABLE, code("calibrant.audit"), " with the settings below."), where=doc.PAGE)
    left_out = num.count(dropped(data)) if dropped(data) else "none"
    rows = f"{num.count(one.rows)} rows, {left_out} dropped; fingerprint "
    same = "The same data, settings, seed and versions give this file byte for byte; it holds no time stamp."
    machines = (
        *say("All results are in this page as JSON: element ", code("calibrant-result"), " (gzipped if long), schema "),
        *say(code(record.schema), ". No row of the data is in it."),
    )
    yield doc.Entries(
        (
            doc.Entry("Data", say(rows, code(data.get("fingerprint", "")))),
            doc.Entry("Settings", pairs({k: v for k, v in record.settings.items() if k != "about"})),
            doc.Entry("Software", pairs(record.versions)),
            doc.Entry("Same bytes", say(same), where=doc.PAGE),
            doc.Entry("For machines", machines, where=doc.PAGE),
        )
    )


def pairs(values: Mapping[str, object]) -> Text:
    """Write names and values as one line; what is None is left out."""
    reported = [literal(f"{k} {_setting(v)}") for k, v in sorted(values.items()) if v is not None]
    return say(*[piece for span in reported for piece in (span, ", ")][:-1])


def _setting(value: object) -> str:
    return " and ".join(map(str, value)) or "none" if isinstance(value, (list, tuple)) else str(value)


# ---- what the report does not show, how it was computed, and the words it uses; sections add to the last two ----

LIMITS = (
    ("Whether decisions are good or fair.", "Probabilities can be calibrated and the rule built on them poor."),
    ("Whether the model ranks well.", "A model that says 50% every time can be perfectly calibrated."),
    ("Other places, years or populations.", "The certificate covers the population {which}."),
    ("Groups nobody listed.", "{searched} No finding is not a proof."),
    ("Whether the recorded outcome is true.", "Errors in the labels count as errors of the model."),
)
SEARCHED = {
    "certified": "Subgroups of one or two attributes are certified; mixes of more are searched, and some are found.",
    "searched": "Only the groups named are certified. The search finds some mixes of attributes, not all.",
    "": "Only the groups named are audited.",
}
ALWAYS = (
    doc.Entry(
        "Estimates",
        say("The error as estimated, and the rows that would decide, are guides; no verdict rests on them."),
    ),
    doc.Entry(
        "Rounding", say("Lower bounds are rounded down and upper bounds up, so every printed bound is true as printed.")
    ),
)
WORDS = {
    "Point": "One percentage point: one hundredth of probability, one person in 100. From 70% to 72% is 2 points.",
    "Score": (
        "The probability the model gives a person. Raw: exactly as given. Rounded: to the nearest step of {step}."
    ),
    "Calibration error": (
        "Take everyone given the same probability, compare it with the share of them for whom it happened, "
        "and average the size of the gap over all people: E|p − E[Y|p]|."
    ),
    "Certified": (
        "Proved to hold in at least {times} of {of} audits like this one, whatever the model, if {rows} are "
        "independent."
    ),
    "Certified range": ("From the least the raw score can be off to the most the raw or rounded score can be off."),
    "Within the limit, over the limit, undecided": (
        "The whole certified range is within the limit; the whole range is over it; the limit lies inside."
    ),
    "Calibrated": "Of all people given 70%, 70 in 100 have the outcome; likewise for every other number.",
    "Event": "A person with the outcome.",
    "Gap, overall gap": (
        "Observed minus predicted event rate: in one group, or overall (calibration-in-the-large). Errors in both "
        "directions cancel."
    ),
    "Distance from calibration": "How far scores would have to move, on average, to be calibrated.",
    "Brier score, log loss": (
        "How far single predictions are from what happened; smaller is better. "
        "They mix calibration with how well people are distinguished."
    ),
    "AUROC": "How often a person with the outcome has a higher score than one without; 0.5 is guessing.",
}
JUDGED = "Within the limit, over the limit, undecided"  # a word of reports with a limit


def limits(record: AuditRecord) -> Iterator[doc.Node]:
    which = weighing(record).stand_for.format(rows_counted(record))
    tested = any(c.outcome is not None for c in record.checks)
    searched = SEARCHED["certified" if SUBGROUPS in record.estimates else "searched" if tested else ""]
    if chosen := screened(record):
        searched += f" {num.count(len(chosen['chosen']))} of {num.count(chosen['of'])} columns were read for it."
    yield doc.Items(tuple(say(title(start), text.format(which=which, searched=searched)) for start, text in LIMITS))


def methods(record: AuditRecord) -> Iterator[doc.Node]:
    of = record.data.get("confidence")  # how it came to be decides what an audit of it is about
    confidence = (doc.Entry("Confidence", say(HOW[of["provenance"]])),) if of else ()
    sections = (e for d in declared() for e in d.methods(record))
    every = (*confidence, *sections, *independent(record).methods, *ALWAYS)
    yield doc.Entries(tuple(_called(e, record) for e in every))


def glossary(record: AuditRecord) -> Iterator[doc.Node]:
    times, of = num.confidence(1 - float(record.settings["alpha"]))
    step, rows = num.step(record.settings["steps"]), independent(record).many
    ours = (
        doc.Entry(word, say(text.format(step=step, times=times, of=of, rows=rows)))
        for word, text in WORDS.items()
        if word != JUDGED or limit_of(record) is not None
    )
    yield doc.Entries(tuple(_called(e, record) for e in (*ours, *(e for d in declared() for e in d.words(record)))))


def _called(entry: doc.Entry, record: AuditRecord) -> doc.Entry:
    """A text of this library with what the rows of this data are called."""
    text = (replace(s, text=s.text.replace("people", noun(record))) if s.kind == "text" else s for s in entry.text)
    return replace(entry, text=tuple(text))


# ---- the sections, in their order ----


def _count(things: Callable[[AuditRecord], Iterable[doc.Node]], what: str) -> Callable[[AuditRecord], str]:
    def reported(record: AuditRecord) -> str:
        return f"{sum(len(n.entries) for n in things(record) if isinstance(n, doc.Entries))} {what}"

    return reported


def _tally(record: AuditRecord) -> str:
    undone = sum(c.status in UNDONE for c in record.checks)
    rest = f", {num.count(undone)} not made, which is not a pass" if undone else ""
    return f"{num.count(len(record.checks))} checks{rest}"


DECLARED = (
    Declared(
        id="checks",
        order=70,
        nav="Every check",
        heading="Every check, and what it found",
        nodes=checks,
        closed=_tally,
    ),
    Declared(
        id="about", order=80, nav="What was audited", heading="What was audited", nodes=about, closed=rows_counted
    ),
    Declared(
        id="limits",
        order=90,
        nav="Not shown here",
        heading="What this report does not show",
        nodes=limits,
        closed=lambda _: f"{len(LIMITS)} things",
    ),
    Declared(
        id="methods",
        order=100,
        nav="How computed",
        heading="How this was computed",
        nodes=methods,
        closed=_count(methods, "methods"),
    ),
    Declared(
        id="glossary",
        order=110,
        nav="Words used",
        heading="Words used here",
        nodes=glossary,
        closed=_count(glossary, "words"),
    ),
    Declared(
        id="reproduce",
        order=120,
        nav="Reproduce it",
        heading="Reproduce this report",
        nodes=reproduce,
        closed=lambda _: "command, data, settings, versions",
    ),
)
