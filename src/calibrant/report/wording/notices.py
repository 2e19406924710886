"""What to know of the data before its numbers are used, and where a confidence comes from."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from calibrant.arguments import OTHERS
from calibrant.audit.record import AuditRecord
from calibrant.data.specs.column_names import JUDGE, SAMPLED, STATED, TOKENS, names_weights
from calibrant.report import numbers as num
from calibrant.report.findings import refuted, withheld
from calibrant.report.spans import Span, Text, code, literal, say
from calibrant.report.wording.clusters import wider
from calibrant.report.wording.missing_labels import any_lost, by_each, recorded, way
from calibrant.report.wording.terms import NAMED, capital, joined
from calibrant.sanitize import sanitize

MEANS = {
    STATED: "stated: the model named it in its answer",
    TOKENS: "token probability: computed from the log-probabilities of its tokens",
    JUDGE: "judge: another model scored the answer",
    SAMPLED: "sampled: how often answers to the same question agree",
}
HOW = {
    STATED: "The model was asked how sure it is and named a number; asked in other words, it may name another.",
    TOKENS: "The model's own probability of its answer, among the choices it was offered or of the tokens it wrote.",
    JUDGE: "Another model scored the answer: the audit is of that judge, on answers like these.",
    SAMPLED: "The same question was put several times; the share of answers that agree stands for the confidence.",
}


UNFINISHED = "Answers that are missing may be unlike these: finish the evaluation (inspect eval-retry) first."
NOTICES = {  # what to know of the data, by its code: the words that open it, and what it means for the numbers
    "unfinished-log": ("Unfinished evaluation", UNFINISHED),
    "horizon": ("Outcome by a horizon", "Nothing is assumed of who was lost to follow-up."),
    "perhaps-seen-events": (
        "Event seen?",
        "Whoever was lost early may be no non-event, and then the model seems to overpredict.",
    ),
    "fitted-rows": ("Left out", "On these its scores look better than they are."),
    "one-class": ("One outcome", "All have the same outcome: nothing can be said of the other."),
    "repeated-rows": (
        "Repeated rows",
        "If they are copies, they count more than once and the ranges are too narrow.",
    ),
    "reproduces-outcome": (
        "Known only with the outcome",
        "Left out of subgroups, tests, rankings and repairs. If one was known before the outcome, a very good test, "
        "say, keep it with --allow.",
    ),
    "may-reproduce-outcome": (
        "Known before the outcome?",
        "The verdict on subgroups depends on it. If not, leave it out: name the others with --variables.",
    ),
    "follows-from-score": (
        "The score again",
        "Left out of subgroups, tests, rankings and repairs: it follows from the score. Keep it with --allow.",
    ),
    "likely-id": ("Identifiers left out", "Columns that look like identifiers are neither ranked nor tested"),
    "columns-not-read": ("Columns not read", ""),
    "weights-not-used": (
        "Weights not used",
        "is ranked as a variable. If it says how many people a row stands for, pass it as --weights: now every "
        "row counts once.",
    ),
    "repeats-score": (
        "The score again",
        "Columns reveal the score, or its side of 50%, so error by them is its own; --variables can leave them out",
    ),
    "other-labels": (
        "Other labels",
        "If one means that the outcome is not known, store it as missing.",
    ),
    "mostly-under-1-percent": (
        "Hardly percent",
        "With --percent most scores are under 1 percent. If they are probabilities, leave it out.",
    ),
    "perhaps-points": (
        "Points, perhaps",
        "With --percent all scores are whole numbers below 90. Points, ranks and deciles are no probabilities: if "
        "these are some, fit a calibrator to other rows and audit what it says.",
    ),
    "scores-are-decisions": (
        "Decisions, not probabilities",
        "Every score is 0 or 1. Audit the probabilities behind them.",
    ),
    "one-score": ("One score", "All have the same score, to within 0.01 points."),
}


def notices(record: AuditRecord) -> tuple[tuple[str, Text], ...]:
    """What to know of the data before its numbers are used, each with the words that open it.

    A code that nothing knows is shown as it is, and nothing opens it.
    """
    out = []
    for warning in dict.fromkeys(record.data.get("warnings") or ()):
        lead, text = NOTICES.get(warning, ("", literal(warning)))
        own = OWN.get(warning)
        out.append((lead, say(text) if own is None else say(*own(record, str(text)))))
    return tuple(out)


def _followed(record: AuditRecord, text: str) -> Iterator[str | Span]:
    """Yield whose outcomes by a horizon count, who was left out, and how unlike their scores are."""
    if not (of := record.data.get("horizon")):
        yield text
        return
    closed = of["closed"]
    yield from say(code(of["event"]), " by ", code(f"{of['horizon']:g}"), " of ", code(of["time"]), ". ")
    if (every := record.curve("horizons").settings.get("horizons")) is not None:
        listed = joined([f"{h:g}" for h in every])
        yield from say(f"Horizons {listed} share alpha; this is {recorded(record)}. ", " ".join(by_each(record)), " ")
    if of["late"]:
        when = f" that entered too late to be followed so long by {sanitize(str(closed))}, whatever their outcome"
        yield from say(f"{num.count(of['late'])} of {num.count(of['rows'])} rows{when}, are left out")
        scores = [one for one in record.data.get("kept_and_late") or () if one[0] == record.data["score"]]
        if scores:
            _, _, kept, late = scores[0]
            yield from say(f" (mean score {late * 100:.1f}%, of those kept {kept * 100:.1f}%)")
        yield from say(". ")
    if of["lacking"]:
        yield from say(f"{num.count(of['lacking'])} rows without a time, an event or an entry are left out. ")
    if of["competing_events"]:
        yield from say(f"{num.count(of['competing_events'])} rows with a competing event first count as a non-event. ")
    if any_lost(record):
        yield " ".join(way(record))
    else:
        yield from ("Every other row was followed to the event or to the horizon. ", " ".join(way(record)), text)


def seen_events(of: Mapping[str, str | int | float | bool]) -> Iterator[Span]:
    """Yield the same of what was noticed of the data, nothing but what it means where that was not kept."""
    if of:
        lost, none = int(of["lost"]), int(of["none"])
        yield from say(code(of["time"]), " may be how long rows were followed until ", code(of["label"]), ": ")
        yield from say(f"{num.count(lost)} of {num.count(none)} rows without it were followed for less ")
        yield from say(f"than the latest event took ({of['latest']:g}). ")
    yield from say(NOTICES["perhaps-seen-events"][1])
    if of:
        time, event = (shlex.quote(str(of[name])) for name in ("time", "label"))
        yield from say(" Then write ", code(f"--time {time}"), ", ", code(f"--event {event}"), " and ")
        yield from say(code("--horizon H"), " in place of ", code("--label"), ". If every label is final, ")
        yield from say(code("--horizon none"), " says so.")


def _not_read(record: AuditRecord, _: str) -> Iterator[Span]:
    """Yield the columns that were not read because of their names, each with the reason."""
    kept = [(name, why) for name, why in record.data.get("left_out") or () if "rename" in why]
    for i, (name, why) in enumerate(kept[:NAMED]):
        yield from say("; " if i else "", code(name), ": ", sanitize(why))
    yield from say(f"; and {num.count(len(kept) - NAMED)} more." if len(kept) > NAMED else ".")


def _columns(record: AuditRecord, reason: str) -> Iterator[Span]:
    """Yield columns that are no attributes, or may be none, each with how well it does what it should not."""
    pairs = record.data.get("left_out" if reason else "in_question") or ()
    kept = [(name, why.partition(": ")[2] if reason else why) for name, why in pairs if why.startswith(reason)]
    for i, (name, why) in enumerate(kept[:NAMED]):
        yield from say("; " if i else "", code(name), f" ({sanitize(why)})" if why else "")
    if len(kept) > NAMED:
        yield from say(f"; and {num.count(len(kept) - NAMED)} more")


def _no_events(record: AuditRecord) -> Iterator[Span]:
    """Yield the label's values other than the event, the most frequent first, with their rows that are audited."""
    kept = sorted((record.data.get("other_labels") or {}).items(), key=lambda pair: (-(pair[1] or 0), pair[0]))
    every = record.data.get("other_label_count", len(kept))
    if every is None:
        yield from say(f"More than {num.count(OTHERS)} values")
        return
    for i, (value, rows) in enumerate(kept[:NAMED]):
        yield from say(", " if i else "", code(value), f" ({num.count(rows)})" if rows else "")
    if every > NAMED:
        yield from say(f" and {num.count(every - NAMED)} more")


def _logs(record: AuditRecord, of: str) -> Iterator[str]:
    return (f"{sanitize(log)}. " for log in record.data.get(of) or ())


def _design(record: AuditRecord) -> Span:
    """The column that may say how many people a row stands for."""
    return code(next((c for c in record.data.get("covariates") or () if names_weights(c) == "design"), "a column"))


def _copies(record: AuditRecord, text: str) -> str:
    if withheld(record) and refuted(record) is None:
        narrow = wider(float(record.data["repeats"]["times"]))
        text = f"Ranges take them as independent and are about {narrow} times too narrow, so nothing is decided."
    return f"{_repeats(record)} {text}"


def _repeats(record: AuditRecord) -> str:
    shown = record.data.get("repeats") or {}
    if not shown:
        return "More rows are equal than chance explains."
    about = "" if shown["exact"] else "about "
    count = f"{about}{num.count(shown['rows'])} of {num.count(shown['of'])} rows"
    if shown["by"] == "key":
        return capital(f"{count} have the key of an earlier one.")
    return capital(f"{count} equal an earlier one, more than chance explains.")


def identifiers(record: AuditRecord) -> list[str]:
    """The columns that are no covariates because they look like identifiers; some may be groups."""
    return [name for name, why in record.data.get("left_out") or () if "identifier" in why]


def _listed(names: Sequence[str]) -> Text:
    if not names:
        return ()
    more = f" and {num.count(len(names) - NAMED)} more" if len(names) > NAMED else ""
    listed = [piece for name in names[:NAMED] for piece in (code(name), ", ")][:-1]
    return say(": ", *listed, *((more,) if more else ()))


# How a notice goes on, or begins, that says more than its words: by the record and these.
OWN: Mapping[str, Callable[[AuditRecord, str], Iterable[str | Span]]] = {
    "columns-not-read": _not_read,
    "perhaps-seen-events": lambda record, _: seen_events(record.data.get("seen_events") or {}),
    "horizon": _followed,
    "likely-id": lambda record, text: (text, *_listed(identifiers(record)), "."),
    "repeats-score": lambda record, text: (text, *_listed(record.data.get("repeats_score") or ()), "."),
    "reproduces-outcome": lambda record, text: (*_columns(record, "it reproduces the outcome"), ". ", text),
    "may-reproduce-outcome": lambda record, text: (*_columns(record, ""), ". ", text),
    "follows-from-score": lambda record, text: (*_columns(record, "it follows from the score"), ". ", text),
    "weights-not-used": lambda record, text: (_design(record), " ", text),
    "other-labels": lambda record, text: (*_no_events(record), " count as a non-event. ", text),
    "unfinished-log": lambda record, text: (*_logs(record, "unfinished"), text),
    "fitted-rows": lambda record, text: (*_logs(record, "excluded"), text),
    "repeated-rows": lambda record, text: (_copies(record, text),),
}
