"""Answers of a log as a table: which question, right or wrong, how sure and by what, and what else is known of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from calibrant.errors import BadInput
from calibrant.toolkit.data import (
    CONFIDENCE,
    JUDGE,
    SAMPLED,
    STATED,
    TOKENS,
    Log,
    Source,
    afford_columns,
    afford_name,
    column,
    column_of,
    whole,
)

FIELDS = {  # names of fields, in small letters and without marks between words
    STATED: ("confidence", "statedconfidence", "verbalizedconfidence", "verbalisedconfidence", "selfconfidence"),
    TOKENS: ("tokenprobability", "tokenconfidence", "logprobconfidence", "answerprobability", "ptrue"),
    JUDGE: ("judgeconfidence", "judgescore", "judgeprobability", "graderconfidence"),
    SAMPLED: ("sampledconfidence", "selfconsistency", "agreement", "voteshare", "majorityshare"),
}
OF_NAME = {re.sub(r"[\W_]", "", name): provenance for provenance, names in FIELDS.items() for name in names}
LISTED = ", ".join(("confidence", "token_probability", "judge_confidence", "self_consistency"))  # for refusals


def of_field(name: str) -> str:
    """The provenance of the confidence that a field of a log holds; nothing where it holds none."""
    return OF_NAME.get(re.sub(r"[\W_]", "", name.lower()), "")


# ---- answers as a table ----

QUESTION, TASK, MODEL, EPOCH, CORRECT = "question", "task", "model", "epoch", "correct"
OWN = (QUESTION, TASK, MODEL, EPOCH)
NOUN = "answers"
WORDS = {"c": 1, "i": 0, "n": 0, "correct": 1, "incorrect": 0, "pass": 1, "fail": 0}  # N: no answer was given
NUMBER = re.compile(r"([0-9]*\.?[0-9]+)\s*(%?)")
REQUESTED = {"question", "input", "prompt", "query"}  # fields that are the question itself, and describe it not
# Fields of a question that hold its right answer. It is no column: nobody has it beforehand, and among questions of one
# right answer even honest probabilities are off.
KEY = {"answerkey", "answer_key", "answer", "correct_answer", "gold", "label", "target", "expected", "expected_output"}
KEY |= {"ideal", "reference", "ground_truth"}
SCORED = {"scores", "store", "match", "metrics"}  # what stands before the fields of scorers and of the run
NO_KEY = (
    "it is the right answer to a question, which nobody has beforehand: among questions of one right answer even "
    "honest probabilities are off, so that it can be no group"
)
LONGEST = 100  # characters of a text that describes a question; longer ones are the question itself
FIELD = 4  # times what a column takes that a field of answers does: it is sought in every answer
SHOWN = 40  # characters of a value in a message
Place = tuple[str, str]  # field of the log, and its provenance


@dataclass
class Answer:
    """One answer of a model to one question."""

    # `question`, `task` and `model`: a question has one name in all logs of its task.
    question: str
    task: str
    model: str = ""
    epoch: int = 1  # which of several answers to it
    scores: Mapping[str, object] = field(default_factory=dict)  # by scorer: right or wrong, as the log has it
    # What else the log says of this answer, by field: confidences are looked for by the last word of it.
    reported: Mapping[str, object] = field(default_factory=dict)
    # Confidences that the log holds another way, by field and provenance.
    computed: Mapping[Place, float | None] = field(default_factory=dict)
    more: Mapping[str, object] = field(default_factory=dict)  # what is known of the question


@dataclass(frozen=True)
class Tool:
    """The program that wrote a log."""

    name: str  # as a message calls it: "an Inspect log"
    looked: str  # the fields in which confidences are looked for
    first: tuple[str, ...] = ()  # scorers whose verdict is the label where several give one
    no_scores: str = "run its scorer, then read it again"  # what to do if it holds no scores


def named(task: str, sample: object) -> str:
    """The name of a question, the same in every log of its task."""
    return f"{task}/{sample}" if task else str(sample)


def plain(inputs: Mapping[str, object] | None, where: str, prefix: str = "") -> dict[str, object]:
    """The values of an object that are no objects or lists themselves, by dotted names; those in objects too."""
    out: dict[str, object] = {}
    _add_plain(inputs or {}, where, prefix, out)
    return out


def _add_plain(inputs: Mapping[str, object], where: str, prefix: str, out: dict[str, object]) -> None:
    for key, value in inputs.items():
        if isinstance(value, Mapping):
            _add_plain(value, where, f"{prefix}{key}.", out)
        elif not isinstance(value, list):
            out[afford_name(f"{prefix}{key}", where) if prefix else key] = value


# ---- the table ----


def source_of_answers(answers: Sequence[Answer], tool: Tool, path: Path, name: str) -> Source:
    """Answers as rows."""
    if not answers:
        raise BadInput(f"{path.name} is {tool.name} without answers: let the evaluation finish")
    fields = {name for a in answers for part in (a.more, a.reported, a.scores) for name in part}
    afford_columns(path, len(fields), len(answers), "fields of answers", FIELD)
    # (1) which question, and right or wrong
    columns: dict[str, Sequence[object]] = {QUESTION: [a.question for a in answers]}
    labels, others = _labels(answers, tool, path.name)
    columns |= labels
    # (2) how sure
    result = _confidences(answers, path.name)
    columns |= {called: values for called, _, values in result}
    # (3) what else is known
    known: dict[str, Sequence[object]] = {
        TASK: [a.task for a in answers],
        MODEL: [a.model for a in answers],
        EPOCH: [a.epoch for a in answers],
    }
    columns |= {called: values for called, values in known.items() if any(values)} | others
    taken = {place for _, place, _ in result}
    more, keys = _more(answers, taken, {*columns, *OWN, CONFIDENCE, CORRECT})
    columns |= more
    try:
        table = pa.table({called: column(values) for called, values in columns.items()})
    except UnicodeEncodeError:  # other fields of a log may hold one: what a model answers
        raise BadInput(
            f"{path.name} holds half of a character, such as \\ud800, in what is known of an answer: mend it"
        ) from None
    unread = ({} if result else {CONFIDENCE: no_confidence(tool)}) | dict.fromkeys(keys, NO_KEY)
    log = Log(
        tool=tool.name,
        label=CORRECT if CORRECT in labels else "",
        verdicts=(*labels, *others),
        confidences=tuple((called, place) for called, place, _ in result),
        question=QUESTION,
        noun=NOUN,
        own=OWN,
    )
    return replace(whole(table, name, unread), log=log)


def no_confidence(tool: Tool) -> str:
    """Say that a log holds no confidence, and where it was looked for."""
    return (
        f"{tool.name} holds no confidence: looked in {tool.looked} for a field such as {LISTED}; log one with every "
        "answer, or name another column as the score"
    )


# ---- right or wrong ----


def _labels(
    answers: Sequence[Answer], tool: Tool, file: str
) -> tuple[dict[str, Sequence[object]], dict[str, Sequence[object]]]:
    """What scorers say that know right and wrong, as 0 and 1, and what the others give."""
    scorers = list(dict.fromkeys(s for a in answers for s in a.scores))
    right: dict[str, Sequence[object]] = {}
    others: dict[str, Sequence[object]] = {}
    between = ""
    for scorer in scorers:
        values = [a.scores.get(scorer) for a in answers]
        read = [_right(v) for v in values]
        odd = next((i for i, v in enumerate(values) if read[i] is None and v is not None), None)
        if odd is None and any(v is not None for v in read):
            right[scorer] = read
        elif odd is not None:
            others[f"score_{scorer}"] = values
            reported = f"{str(values[odd])[:SHOWN]!r} to {answers[odd].question!r}"
            between = between or f"scorer {scorer!r} gives {reported}, which is neither right nor wrong"
    if not right:
        why = f"{between}: let it give 1 or 0 (C or I), by a threshold set beforehand" if between else ""
        raise BadInput(f"{file}: {why}" if why else f"{file} is {tool.name} without scores: {tool.no_scores}")
    preferred = next((s for s in tool.first if s in right), next(iter(right)) if len(right) == 1 else "")
    return {CORRECT if s == preferred else f"{CORRECT}_{s}": v for s, v in right.items()}, others


def _right(value: object) -> int | None:
    """1 for right, 0 for wrong; None for what is neither."""
    if isinstance(value, str):
        return WORDS.get(value.strip().lower())
    if isinstance(value, bool | int | float) and value in (0, 1):
        return int(value)
    return None


# ---- how sure ----


def _confidences(answers: Sequence[Answer], file: str) -> list[tuple[str, str, Sequence[object]]]:
    """The confidences: each with its column and the field that it comes from, the model's own first."""
    fields: dict[Place, Sequence[object]] = {}
    for place in dict.fromkeys(place for a in answers for place in a.computed):
        fields[place] = [a.computed.get(place) for a in answers]
    for name in dict.fromkeys(name for a in answers for name in a.reported):
        if provenance := of_field(name.rsplit(".", 1)[-1]):
            fields[name, provenance] = _numbers([a.reported.get(name) for a in answers], name, file)
    there = {place: values for place, values in fields.items() if any(v is not None for v in values)}
    # one confidence that several scorers kept is one
    once = {str(values): place for place, values in reversed(there.items())}
    kept = sorted((p for p in there if once[str(there[p])] == p), key=lambda place: list(FIELDS).index(place[1]))
    several = [provenance for _, provenance in kept]
    return [
        (column_of(p, "" if several.count(p) == 1 else _distinct(f, [g for g, q in kept if q == p])), f, there[f, p])
        for f, p in kept
    ]


def _distinct(field_: str, among: Sequence[str]) -> str:
    """The words of a field that no other of some has alike, as they stand in the name of a column."""
    parts = [re.split(r"\W+", name) for name in among]
    own = [w for w in re.split(r"\W+", field_) if w and not all(w in other for other in parts)]
    return "_".join(own) or re.sub(r"\W+", "_", field_)


def _numbers(values: Sequence[object], name: str, file: str) -> Sequence[object]:
    """Numbers as such, also those written as text; all values as they are if one is no number."""
    texts = [v.strip() for v in values if isinstance(v, str) and v.strip()]
    read = [NUMBER.fullmatch(t) for t in texts]
    if not texts or not all(read):
        return [None if v == "" else v for v in values]
    signs = {m[2] for m in read if m} | {"" for v in values if isinstance(v, int | float)}
    if len(signs) > 1:
        raise BadInput(f"{file}: field {name!r} holds percentages with and without their sign: write them one way")
    scale = 100.0 if signs == {"%"} else 1.0
    return [_number(v, scale) for v in values]


def _number(value: object, scale: float) -> object:
    if not isinstance(value, str):
        return value
    result = NUMBER.fullmatch(value.strip())
    return float(result[1]) / scale if result else None


# ---- what else is known ----


def _more(
    answers: Sequence[Answer], taken: set[str], used: Iterable[str]
) -> tuple[dict[str, Sequence[object]], list[str]]:
    """What is known of questions and answers in numbers and short texts, and the fields of right answers."""
    out: dict[str, Sequence[object]] = {}
    there, keys = {*used}, []
    for part in ("more", "reported"):
        for name in dict.fromkeys(n for a in answers for n in getattr(a, part)):
            values = [getattr(a, part).get(name) for a in answers]
            long = any(isinstance(v, str) and len(v) > LONGEST for v in values)
            if name in taken or name.lower() in REQUESTED or long or all(v is None for v in values):
                continue
            if holds_key(name):
                keys.append(name)
                continue
            called = name if name not in there else f"metadata.{name}"
            there.add(called)
            out[called] = values
    return out, keys


def holds_key(name: str) -> bool:
    """Whether a field, or one within others, is the right answer; a scorer's `answer` is what the model said."""
    words = name.lower().split(".")
    return words[-1] in KEY and (words[0] in SCORED, words[-1]) != (True, "answer")
