"""TRIPOD+AI: its 52 items by number, in words of our own, and what a record answers of each.

Collins GS, Moons KGM, Dhiman P, et al. (2024), TRIPOD+AI statement: updated guidance for reporting clinical prediction
models that use regression or machine learning methods, BMJ 385:e078378, doi:10.1136/bmj-2023-078378. The text of the
items is in the statement and not here; labels are short and do not replace it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from calibrant import AuditRecord
from calibrant.apps.guidelines import answers as reported
from calibrant.apps.guidelines.answers import Lines
from calibrant.errors import BadInput
from calibrant.results import Curve
from calibrant.toolkit.data import checked_targets, written
from calibrant.toolkit.report import ENGLISH, Span, Text, code, literal, marked, plain, results, say, worded

State = Literal["answered", "in part", "not given", "for the authors"]
METHOD = "report.tripod"
CITED = "Collins et al. (2024), BMJ 385:e078378, doi:10.1136/bmj-2023-078378"
COLUMNS = "item", "section", "applies", "topic", "state", "answer", "authors"
STATES: dict[State, str] = {
    "answered": "answered by the audit",
    "in part": "in part: the authors add the rest",
    "not given": "an audit can carry it; this one was not given it",
    "for the authors": "for the authors: an audit cannot know it",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the guideline."""

    number: str
    applies: str  # "D", "E" or "D;E": to reports of development, of evaluation, or both
    topic: str  # a few words of our own
    answer: Callable[[AuditRecord], Lines] | None = None  # what a record says of it; None where no record can
    authors: str = ""  # what is left for the authors to write


@dataclass(frozen=True, slots=True)
class Answer:
    """An item with what a record says of it."""

    item: Item
    section: str
    state: State
    lines: Lines


SECTIONS: tuple[tuple[str, tuple[Item, ...]], ...] = (
    (
        "Title and abstract",
        (
            Item("1", "D;E", "title", reported.study, "the title itself"),
            Item("2", "D;E", "abstract", None, "see the checklist for abstracts"),
        ),
    ),
    (
        "Introduction",
        (
            Item("3a", "D;E", "context, rationale, earlier models"),
            Item("3b", "D;E", "whom the model is for, and its users", reported.purpose, "place in the pathway, users"),
            Item("3c", "D;E", "known inequalities"),
            Item("4", "D;E", "objectives", reported.objective, "objectives beyond calibration"),
        ),
    ),
    (
        "Methods",
        (
            Item(
                "5a", "D;E", "sources of data", reported.source, "kind of source, why it was used, representativeness"
            ),
            Item("5b", "D;E", "dates", reported.dates, "start and end of recruitment, end of follow-up"),
            Item("6a", "D;E", "setting and centres", reported.cluster_count, "kind of setting, place of the centres"),
            Item("6b", "D;E", "eligibility"),
            Item("6c", "D;E", "treatments"),
            Item("7", "D;E", "data preparation and quality", reported.preparation, "what was done before the audit"),
            Item("8a", "D;E", "outcome", reported.outcome, "definition, horizon, how and when assessed, in all groups"),
            Item("8b", "D;E", "who assessed the outcome", None, "if it takes judgement"),
            Item("8c", "D;E", "blinding of the outcome"),
            Item("9a", "D", "choice of predictors"),
            Item("9b", "D;E", "definition of predictors", reported.covariates, "the model's predictors, how measured"),
            Item("9c", "D;E", "who assessed predictors", None, "if it takes judgement"),
            Item("10", "D;E", "sample size", reported.sample, "how the size was arrived at"),
            Item("11", "D;E", "missing data", reported.missing, ""),
            Item("12a", "D", "use and partition of the data"),
            Item("12b", "D", "handling of predictors"),
            Item("12c", "D", "kind of model and its building"),
            Item("12d", "D;E", "clusters, how handled", reported.clusters, ""),
            Item("12e", "D;E", "measures and plots", reported.methods, "why these; clinical utility if claimed"),
            Item("12f", "E", "model updating", reported.updating, ""),
            Item("12g", "E", "how predictions were made", None, "formula, code, object or service"),
            Item("13", "D;E", "class imbalance"),
            Item("14", "D;E", "fairness", reported.fairness, "what was done in the model, and why"),
            Item("15", "D", "output of the model", reported.output, "thresholds, if people are classified"),
            Item("16", "D;E", "differences from the development data"),
            Item("17", "D;E", "ethical approval"),
        ),
    ),
    (
        "Open science",
        (
            Item("18a", "D;E", "funding"),
            Item("18b", "D;E", "conflicts of interest"),
            Item("18c", "D;E", "protocol"),
            Item("18d", "D;E", "registration"),
            Item("18e", "D;E", "data sharing", reported.shared, "where the data can be had"),
            Item("18f", "D;E", "code sharing", reported.again, "where the code of the model can be had"),
        ),
    ),
    ("Patients and public", (Item("19", "D;E", "involvement"),)),
    (
        "Results",
        (
            Item("20a", "D;E", "flow of participants", reported.flow, "follow-up; who was excluded before the data"),
            Item("20b", "D;E", "characteristics", reported.characteristics, "dates, treatments, follow-up by source"),
            Item("20c", "E", "comparison with the development data"),
            Item("21", "D;E", "participants and events by analysis", reported.analyses, ""),
            Item("22", "D", "the full model"),
            Item("23a", "D;E", "performance, with intervals, by subgroup", reported.performance, ""),
            Item("23b", "D;E", "heterogeneity across clusters", reported.heterogeneity, ""),
            Item("24", "E", "results of updating", reported.updated, ""),
        ),
    ),
    (
        "Discussion",
        (
            Item("25", "D;E", "interpretation", reported.interpretation, "what it means, fairness, earlier studies"),
            Item("26", "D;E", "limitations", reported.limitations, "limitations beyond the audit"),
            Item("27a", "D", "poor or missing inputs in use"),
            Item("27b", "D", "users, and what they must know"),
            Item("27c", "D;E", "next steps"),
        ),
    ),
)
ABSENT = {  # what an audit would need to carry an item, where this one was not given it
    "3b": "audit with intended_use and population in the file of --about",
    "5b": "audit with period in the file of --about",
    "6a": "audit with --cluster",
    "9b": "audit with covariates",
    "12d": "audit with --cluster",
    "12f": "audit without --quick",
    "14": "audit with --by",
    "20b": "audit with --by",
    "23b": "audit with --cluster, five clusters or more of enough rows",
    "24": "audit without --quick",
}


def answers(record: AuditRecord) -> tuple[Answer, ...]:
    """Every item of TRIPOD+AI in order, with what the record says of it.

    Parameters
    ----------
    record : AuditRecord

    Returns
    -------
    tuple of Answer
        52 items. An item that no record can answer is for the authors; one that this record could carry and does not
        is not given. Nothing is inferred from what is absent.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.apps.guidelines import tripod
    >>> record = cal.audit(cal.predictions([0, 1] * 50, [0.4, 0.6] * 50), quick=True)
    >>> [a.item.number for a in tripod.answers(record) if a.state == "answered"]
    ['11', '21', '23a']
    """
    return tuple(_answer(record, item, section) for section, items in SECTIONS for item in items)


def _answer(record: AuditRecord, item: Item, section: str) -> Answer:
    lines = () if item.answer is None else item.answer(record)
    if item.answer is None:
        return Answer(item, section, "for the authors", lines)
    if not lines:
        return Answer(item, section, "not given", lines)
    return Answer(item, section, "in part" if item.authors else "answered", lines)


def table(record: AuditRecord) -> Curve:
    """The same as a table, a line an item: item, section, applies, topic, state, answer, authors."""
    rows = [
        (
            a.item.number,
            a.section,
            a.item.applies,
            a.item.topic,
            a.state,
            "\n".join(map(plain, a.lines)),
            "; ".join(_lacking(a)),
        )
        for a in answers(record)
    ]
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    return Curve(method=METHOD, columns=columns, settings={"guideline": "TRIPOD+AI", "cites": CITED})


def _lacking(a: Answer) -> tuple[str, ...]:
    needs = ABSENT.get(a.item.number, "") if a.state == "not given" else ""
    return tuple(words for words in (needs, a.item.authors) if words)


# ---- as a file ----


Words = Text | tuple[str, ...]  # of a line: a sentence about the record, or pieces of our own
Line = tuple[str, Words]  # what a line of Markdown begins with, which is the same in every language, and its words
EMPTY: Line = ("", ())


def markdown(record: AuditRecord, language: str = ENGLISH) -> str:
    """The items as Markdown: those an audit answers with their answers, then those it cannot."""
    lines = tuple(_lines(record))
    made, left = worded(tuple(words for _, words in lines), record, language)
    out = [f"{start}{_written(words)}" for (start, _), words in zip(lines, made, strict=True)]
    return "\n".join((*out, *(("", marked(left)) if left else ()))) + "\n"


def _written(words: Words) -> str:
    spans = tuple(w for w in words if isinstance(w, Span))
    return marked(spans) if spans else "".join(w for w in words if isinstance(w, str))


def _lines(record: AuditRecord) -> Iterator[Line]:
    result = answers(record)
    yield from (("# ", ("TRIPOD+AI, as far as an audit answers it",)), EMPTY)
    kept = f". Of {len(result)} items {sum(bool(a.lines) for a in result)} are answered, in whole or in part."
    whole = "Numbers are those of the statement, which has the text of the items: "
    cited = say(whole, CITED, ". Record: ", code("calibrant/4"), ". What was not in the record is not filled in.")
    yield from (("", say("Audit of ", literal(record.name), kept)), EMPTY, ("", cited), EMPTY)
    section = ""
    for a in (a for a in result if a.lines):
        if a.section != section:
            section = a.section
            yield from (("## ", (section,)), EMPTY)
        yield from ((f"### {a.item.number} ", (a.item.topic,)), EMPTY, *(("* ", line) for line in a.lines), EMPTY)
        if a.item.authors:
            yield from (("", ("For the authors", ": ", a.item.authors, ".")), EMPTY)
    yield from (("## ", ("What this audit was not given",)), EMPTY, *_rest(result, "not given"), EMPTY)
    yield from (("## ", ("For the authors",)), EMPTY, ("", ("An audit cannot know these.",)), EMPTY)
    yield from _rest(result, "for the authors")


def _rest(results: tuple[Answer, ...], state: State) -> Iterator[Line]:
    named = [a for a in results if a.state == state]
    for a in named:
        of = (" (of the development)",) if a.item.applies == "D" else ()
        lacking = (piece for words in _lacking(a) for piece in ("; ", words))
        yield f"* {a.item.number} ", (a.item.topic, *of, *((": ", *list(lacking)[1:]) if _lacking(a) else ()))
    if not named:
        yield "* ", ("none",)


def as_csv(record: AuditRecord) -> str:
    """The items as CSV, a line an item; text that a spreadsheet would take for a formula is kept from it."""
    columns = table(record).columns
    return results.written(tuple(columns), zip(*columns.values(), strict=True))


FORMATS: dict[str, Callable[[AuditRecord, str], str]] = {
    ".md": markdown,
    ".csv": lambda record, _: as_csv(record),  # in English, as every table for programs
}


def ending(out: str) -> str:
    """The format that the ending of a file's name asks for; ``-`` is Markdown."""
    result = ".md" if out == "-" else Path(out).suffix.lower()
    if result not in FORMATS:
        raise BadInput(f"cannot write {out!r} as a checklist: end its name in {' or '.join(FORMATS)}")
    return result


def save(record: AuditRecord, target: str | os.PathLike[str], *, language: str = ENGLISH) -> Path:
    """Write the items to a file, whole or not at all: ``.md`` or ``.csv``.

    Raises
    ------
    BadInput
        Another ending, or a place that cannot be written.
    """
    out = os.fspath(target)
    made = FORMATS[ending(out)]
    path = checked_targets({"the target": out}, ())["the target"]
    written(str(path), made(record, language).encode())
    return path
